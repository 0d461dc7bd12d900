"""The annotation by which a workload names the clusters that come first among those that its policy allows."""

from __future__ import annotations

import re
from typing import Final

from gitsched.model.document import Body, Document, read_annotations
from gitsched.model.finding import Finding, Severity, locate_document, locate_field
from gitsched.named_tuples import NamedTuple

PREFERRED_CLUSTERS: Final = "gitsched.io/preferred-clusters"
"""The annotation: names of clusters, separated by commas, the most preferred one first."""
INVALID = "preferred-clusters-invalid"
UNKNOWN = "preferred-clusters-unknown"
UNUSED = "preferred-clusters-unused"
"""Codes of the findings about the annotation."""
MAX_PREFERRED = 1_000
_MAX_SHOWN = 100
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_./]{0,251}[A-Za-z0-9])?", re.ASCII)


class PreferredClusters(NamedTuple):
    """The names in the annotation in their order, none if it is malformed: `error` says why then, as a clause."""

    names: tuple[str, ...]
    error: str = ""


def read_preferred_clusters(body: Body) -> PreferredClusters | None:
    """Return what the annotation of an object names; None without the annotation."""
    text = read_annotations(body).get(PREFERRED_CLUSTERS)
    return parse_preferred_clusters(text) if text is not None else None


def parse_preferred_clusters(text: str) -> PreferredClusters:
    """Parse names that are separated by commas."""
    names = [name.strip() for name in text.split(",")]
    if len(names) > MAX_PREFERRED:
        return PreferredClusters((), f"it has more than {MAX_PREFERRED} names")
    for name in names:
        if not name:
            return PreferredClusters((), "a name is empty")
        if not _NAME.fullmatch(name):
            return PreferredClusters((), f"{name[:_MAX_SHOWN]!r} is not the name of a cluster")
    repeated = next((name for name in names if names.count(name) > 1), None)
    return PreferredClusters((), f"{repeated} is there twice") if repeated is not None else PreferredClusters(tuple(names))


def make_preference_finding(document: Document, severity: Severity, code: str, message: str) -> Finding:
    """Return a finding about the annotation of an object, at the line of the annotation."""
    pointer = ("metadata", "annotations", PREFERRED_CLUSTERS)
    field = locate_field(document.origin, pointer)
    return Finding(severity, code, message, locate_document(document), document.key.resource, field)
