"""Objects that make a delivery tool deliver to another cluster, such as an Application of Argo CD, where they are placed in clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gitsched.kinds.kind import find_values
from gitsched.kinds.table import find_kind
from gitsched.model.document import Body, Document, as_object, read_annotations
from gitsched.model.finding import Finding, format_names, locate_document
from gitsched.model.scheduling import Outcome

DESTINATION = "gitsched.io/destination"
"""An annotation of such an object; the value "fixed" says that its destination is right wherever the object is."""

_MAX_NAMES = 5
_OWN_CLUSTER = frozenset(("https://kubernetes.default.svc", "in-cluster"))


def find_delivered_elsewhere(document: Document, outcome: Outcome) -> Iterator[Finding]:
    """Yield a finding if clusters get the document, and a controller there would deliver to another cluster."""
    bodies = {
        target.cluster: document.body if target.body is None else target.body for target in outcome.targets if not target.evicting
    }
    finding = find_remote_destination(document, bodies)
    if finding is not None:
        yield finding


def find_remote_destination(document: Document, bodies: Mapping[str, Body]) -> Finding | None:
    """Return a finding if the destination of an object is another cluster; `bodies` is what each cluster gets."""
    row = find_kind(document.key.group, document.key.kind)
    if row is None or not row.destination or read_annotations(document.body).get(DESTINATION) == "fixed":
        return None
    remote = {cluster: name for cluster, body in bodies.items() if (name := _read_destination(body, row.destination, cluster))}
    if not remote:
        return None
    clusters, names = (format_names(sorted(found), _MAX_NAMES) for found in (remote, set(remote.values())))
    key = document.key
    tool, cure = (
        (
            "Argo CD",
            "place what it deploys as a Bundle with delivery argocd, or set the destination to https://kubernetes.default.svc",
        )
        if key.group == "argoproj.io"
        else ("Flux", "remove spec.kubeConfig, so that each cluster applies it to itself")
    )
    message = (
        f"{key} goes to {clusters}, and no policy changes its destination, {names}: {tool} in these clusters would "
        f"deploy there; {cure}, or annotate it with {DESTINATION}: fixed if this is meant"
    )
    return Finding("warning", "destination-unchanged", message, locate_document(document), key.resource)


def _read_destination(body: Body, path: str, cluster: str) -> str:
    """Return what names the destination; "" if it is the cluster itself."""
    found = next((value for value in find_values(body, path) if isinstance(value, dict)), None)
    if path.endswith("kubeConfig"):
        return "the cluster of spec.kubeConfig" if found is not None else ""
    destination = as_object(found)
    name = str(destination.get("server") or destination.get("name") or "")
    return "" if name in _OWN_CLUSTER or name == cluster else name or "which names no cluster"
