"""What only an API server writes into an object, and what a dump of one carries along."""

from __future__ import annotations

from typing import Final

from gitsched.model.document import Body

SERVER_OWNED: Final = frozenset(
    (
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    )
)
"""Members of metadata that only an API server writes; the top-level status is the other one."""
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def owned_members(body: Body) -> list[tuple[str, ...]]:
    """The paths of what is to be cut from a dump, none inside another; an annotation map that would be left empty goes whole."""
    metadata = body.get("metadata")
    found: list[tuple[str, ...]] = []
    if isinstance(metadata, dict):
        found += [("metadata", name) for name in metadata if name in SERVER_OWNED]
        annotations = metadata.get("annotations")
        if isinstance(annotations, dict) and LAST_APPLIED in annotations:
            found.append(("metadata", "annotations") if len(annotations) == 1 else ("metadata", "annotations", LAST_APPLIED))
    if "status" in body:
        found.append(("status",))
    return found


def remove_owned(body: Body) -> Body:
    """The body without what a server owns; the same object when there is nothing of it."""
    for path in owned_members(body):
        body = _without(body, path)
    return body


def _without(body: Body, path: tuple[str, ...]) -> Body:
    name, *rest = path
    if not rest:
        return {k: v for k, v in body.items() if k != name}
    return {k: _without(v, tuple(rest)) if k == name else v for k, v in body.items()}
