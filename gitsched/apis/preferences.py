"""Findings about preferred clusters that all policy APIs report in the same words."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence

from gitsched.model.document import Document
from gitsched.model.finding import Finding, format_names
from gitsched.model.known_values import find_near
from gitsched.model.preferred_clusters import (
    INVALID,
    PREFERRED_CLUSTERS,
    UNKNOWN,
    UNUSED,
    make_preference_finding,
    read_preferred_clusters,
)

_MAX_LISTED = 5
"""Clusters with a reason in one finding; the others are counted."""


def read_names(document: Document) -> Generator[Finding, None, tuple[str, ...]]:
    """Return the names in the annotation of an object, none without the annotation; yield the finding about a malformed one."""
    read = read_preferred_clusters(document.body)
    if read is not None and read.error:
        written = f"the annotation {PREFERRED_CLUSTERS} of {document.key} has no effect"
        message = f"{written}: {read.error}; write names of clusters, separated by commas"
        yield make_preference_finding(document, "warning", INVALID, message)
    return read.names if read is not None else ()


def make_unknown_finding(document: Document, unknown: Sequence[str], known: Iterable[str], kind: str) -> Finding:
    """Return the finding about names without a document of a kind, such as Cluster."""
    near = find_near(unknown[0], known)
    cure = f"did you mean {near}?" if near else f"correct or remove {'it' if len(unknown) == 1 else 'them'}"
    written = f"the annotation {PREFERRED_CLUSTERS} of {document.key} names {format_names(unknown)}"
    return make_preference_finding(document, "warning", UNKNOWN, f"{written}, and there is no such {kind}; {cure}")


def make_unused_finding(document: Document, reason: str) -> Finding:
    """Return the finding about an annotation that has no effect now, or not for all clusters that it names."""
    return make_preference_finding(document, "info", UNUSED, f"the annotation {PREFERRED_CLUSTERS} of {document.key}: {reason}")


def describe_unused(
    document: Document, excluded: Mapping[str, str], stays: Sequence[str], placed: Iterable[str], cure: str = ""
) -> str:
    """Return why preferred clusters have no effect: `excluded` with a reason for each, and those that would be chosen if the workload did
    not stay where it is `placed`; "" without any."""
    parts = [f"{name} is {reason}" for name, reason in list(excluded.items())[:_MAX_LISTED]]
    if len(excluded) > _MAX_LISTED:
        parts.append(f"so are {len(excluded) - _MAX_LISTED} more")
    if stays:
        key = document.key
        namespace = f"-n {key.namespace} " if key.namespace else ""
        where = format_names(sorted(placed)) or "no cluster"
        then = cure or f"`gitsched rebalance {namespace}{key.kind}/{key.name}` writes a request"
        parts.append(f"it stays on {where} until it is rescheduled ({then}), and prefers {format_names(stays)} then")
    return "; ".join(parts)
