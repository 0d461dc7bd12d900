"""The clusters of a commit: candidates for the scheduler, facts for the output branch, and when undated taints were first seen."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.karmada.cluster import has_facts, parse_cluster, undated_taints
from gitsched.apis.karmada.names import CLUSTER, CLUSTER_GROUP
from gitsched.model.document import Body, Document, Key, member, text_map
from gitsched.model.finding import Finding, Location
from gitsched.model.time import format_time, parse_time
from gitsched.render.cluster import ClusterFacts
from gitsched.schedule.fleet import Candidate, Fleet

FIRST_SEEN = "gitsched.io/taints-first-seen"
"""On the record of a Cluster: when each NoExecute taint without timeAdded was first seen, as JSON."""


NAMED = 3
"""Clusters that one note names; the others are counted."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,46}[a-z0-9])?")
"""What Karmada takes for a cluster's name; nothing can be placed on one with another."""


class Clusters(NamedTuple):
    """`records` are status documents of clusters with undated NoExecute taints."""

    fleet: Fleet
    facts: Mapping[str, ClusterFacts]
    findings: tuple[Finding, ...]
    records: tuple[tuple[Key, Body], ...]


def read_clusters(
    documents: Iterable[Document], broken: Iterable[Key], previous: Mapping[Key, Body], assume_facts: bool, moment: datetime
) -> Clusters:
    """Read every Cluster. A broken one is a candidate that keeps what it holds and gets nothing new."""
    candidates: list[Candidate] = []
    facts: dict[str, ClusterFacts] = {}
    without_apis: list[Document] = []
    without_room: list[Document] = []
    records: list[tuple[Key, Body]] = []
    for document in documents:
        since = _first_seen(document, previous.get(document.key), moment)
        candidates.append(parse_cluster(document, assume_facts, since))
        spec = document.body.get("spec") or {}
        labels = text_map(member(document.body, "metadata", "labels"))
        facts[document.key.name] = ClusterFacts(
            document.key.name, labels, str(spec.get("region") or ""), str(spec.get("provider") or "")
        )
        if since:
            records.append((document.key, _record(document, since)))
        if assume_facts:
            for facts_missing, known in zip((without_apis, without_room), has_facts(document.body), strict=True):
                if not known:
                    facts_missing.append(document)
    for key in sorted(broken):
        if (key.group, key.kind) == (CLUSTER_GROUP, CLUSTER) and key.name not in facts and _NAME.fullmatch(key.name):
            candidates.append(Candidate(key.name, {}, {}, frozen=True))
            facts[key.name] = ClusterFacts(key.name, {})
    findings = (
        *_assumed("cluster-apis-assumed", "status.apiEnablements", "to serve every API", without_apis),
        *_assumed("cluster-room-assumed", "status.resourceSummary", "to have room", without_room),
    )
    return Clusters(Fleet(candidates), facts, findings, tuple(records))


def _first_seen(document: Document, previous: Body | None, moment: datetime) -> dict[str, datetime]:
    taints = undated_taints(document.body)
    if not taints:
        return {}
    try:
        noted = json.loads(text_map(member(previous or {}, "metadata", "annotations")).get(FIRST_SEEN, "{}"))
    except ValueError:
        noted = {}
    known = noted if isinstance(noted, dict) else {}
    return {str(taint): parse_time(known.get(str(taint))) or moment for taint in taints}


def _record(document: Document, since: Mapping[str, datetime]) -> Body:
    noted = json.dumps({text: format_time(moment) for text, moment in sorted(since.items())}, separators=(",", ":"))
    return {
        "apiVersion": document.api_version,
        "kind": document.key.kind,
        "metadata": {"name": document.key.name, "annotations": {FIRST_SEEN: noted}},
    }


def _assumed(code: str, fact: str, taken: str, documents: list[Document]) -> list[Finding]:
    """One note for all Clusters without a fact; it stands at the first of them."""
    if not documents:
        return []
    first, *others = documents
    if not others:
        message = f"Cluster {first.key.name} has no {fact}: it is taken {taken}"
        return [Finding("info", code, message, locate(first), first.key.resource)]
    more = f" and {len(documents) - NAMED} more" if len(documents) > NAMED else ""
    named = ", ".join(document.key.name for document in documents[:NAMED])
    message = f"{len(documents)} Clusters have no {fact}: they are taken {taken} ({named}{more})"
    return [Finding("info", code, message, locate(first), first.key.resource)]


def locate(document: Document) -> Location | None:
    """Where a document begins."""
    origin = document.origin
    return Location(origin.path, origin.line, origin.column) if origin else None
