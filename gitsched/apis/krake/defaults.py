"""Krake's documents as its server would store them, as far as decisions or schemas ask for it."""

from __future__ import annotations

from gitsched.model.document import Body

_WITHOUT_CONSTRAINTS = {"Application": "cluster", "Cluster": "cloud"}


def default(body: Body) -> Body:
    """The body with the constraints that its command line always sends; the same object when they are there."""
    wanted = _WITHOUT_CONSTRAINTS.get(str(body.get("kind")))
    spec = body.get("spec")
    if wanted is None or body.get("api") != "kubernetes" or not isinstance(spec, dict) or spec.get("constraints") is not None:
        return body
    return {**body, "spec": {**spec, "constraints": {wanted: {}}}}
