"""Karmada's Cluster as a candidate of the fleet."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from gitsched.model.document import Body, Document, member, text_map
from gitsched.model.taints import NO_EXECUTE, Taint, parse_taint
from gitsched.schedule.fleet import Candidate


def parse_cluster(document: Document, assume_facts: bool, since: Mapping[str, datetime]) -> Candidate:
    """A Cluster as a candidate.

    With `assume_facts` a Cluster without status.apiEnablements serves everything; strictly it serves nothing. `since` says when an
    undated NoExecute taint was first seen, by its text.
    """
    body = document.body
    spec = body.get("spec") or {}
    metadata = body["metadata"]
    enablements = member(body, "status", "apiEnablements") or []
    return Candidate(
        document.key.name,
        text_map(metadata.get("labels")),
        {
            "provider": _present(spec.get("provider")),
            "region": _present(spec.get("region")),
            "zone": tuple(spec.get("zones") or _present(spec.get("zone"))),
        },
        tuple(_dated(parse_taint(entry), since) for entry in spec.get("taints") or ()),
        None if assume_facts and not enablements else _features(enablements),
        bool(metadata.get("deletionTimestamp")),
    )


def has_facts(body: Body) -> tuple[bool, bool]:
    """Whether a Cluster says which APIs it serves, and what room it has."""
    return bool(member(body, "status", "apiEnablements")), bool(member(body, "status", "resourceSummary"))


def undated_taints(body: Body) -> list[Taint]:
    """NoExecute taints without timeAdded: they count from when they are first seen."""
    taints = [parse_taint(entry) for entry in member(body, "spec", "taints") or ()]
    return [taint for taint in taints if taint.effect == NO_EXECUTE and taint.since is None]


def _dated(taint: Taint, since: Mapping[str, datetime]) -> Taint:
    return taint if taint.since or taint.effect != NO_EXECUTE else taint._replace(since=since.get(str(taint)))


def _present(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) and value else ()


def _features(enablements: list[Body]) -> frozenset[tuple[str, str]]:
    return frozenset(
        (str(entry.get("groupVersion")), str(resource.get("kind")))
        for entry in enablements
        for resource in entry.get("resources") or ()
    )
