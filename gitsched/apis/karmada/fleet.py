"""The clusters of a commit: candidates for the scheduler, facts for the output branch, and when undated taints were first seen."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.karmada.cluster import has_facts, parse_cluster, undated_taints
from gitsched.apis.karmada.cluster_taints import NAMED, taint_clusters, tell_taints
from gitsched.apis.karmada.names import CLUSTER, CLUSTER_GROUP
from gitsched.apis.karmada.taint_policy import NO_POLICIES, TaintPolicies
from gitsched.apis.karmada.tainting import ADDED, Added, Tainted, apply_taints, note_taints
from gitsched.model.cluster import ClusterFacts
from gitsched.model.document import Body, Document, Key, member, text_map
from gitsched.model.finding import Finding, locate
from gitsched.model.time import format_time, parse_time
from gitsched.schedule.fleet import Candidate, Fleet

FIRST_SEEN = "gitsched.io/taints-first-seen"
"""On the record of a Cluster: when each NoExecute taint without timeAdded was first seen, as JSON."""


_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,46}[a-z0-9])?")
"""What Karmada takes for a cluster's name; nothing can be placed on one with another."""


class Clusters(NamedTuple):
    """`records` are status documents of clusters with undated NoExecute taints, or with taints beside those of their documents, which
    `added` has by cluster."""

    fleet: Fleet
    facts: Mapping[str, ClusterFacts]
    findings: tuple[Finding, ...]
    records: tuple[tuple[Key, Body], ...]
    added: Mapping[str, tuple[Added, ...]]


def read_clusters(
    documents: Iterable[Document],
    broken: Iterable[Key],
    previous: Mapping[Key, Body],
    assume_facts: bool,
    moment: datetime,
    policies: TaintPolicies = NO_POLICIES,
) -> Clusters:
    """Read every Cluster. A broken one is a candidate that keeps what it holds and gets nothing new."""
    candidates: list[Candidate] = []
    facts: dict[str, ClusterFacts] = {}
    without_apis: list[Document] = []
    without_room: list[Document] = []
    records: list[tuple[Key, Body]] = []
    clusters = [(d, _first_seen(d, previous.get(d.key), moment)) for d in documents]
    parsed = [parse_cluster(document, assume_facts, since) for document, since in clusters]
    tainted = taint_clusters(list(zip((d for d, _ in clusters), parsed, strict=True)), previous, assume_facts, moment, policies)
    for (document, since), candidate in zip(clusters, parsed, strict=True):
        change = tainted.get(candidate.name, Tainted())
        candidates.append(candidate._replace(taints=apply_taints(candidate.taints, change)) if change != Tainted() else candidate)
        spec = document.body.get("spec") or {}
        labels = text_map(member(document.body, "metadata", "labels"))
        facts[document.key.name] = ClusterFacts(
            document.key.name, labels, str(spec.get("region") or ""), str(spec.get("provider") or "")
        )
        if since or change.added:
            records.append((document.key, _record(document, since, change.added)))
        if assume_facts:
            for facts_missing, known in zip((without_apis, without_room), has_facts(document.body), strict=True):
                if not known:
                    facts_missing.append(document)
    for key in sorted(broken):
        if (key.group, key.kind) == (CLUSTER_GROUP, CLUSTER) and key.name not in facts and _NAME.fullmatch(key.name):
            candidates.append(Candidate(key.name, {}, {}, frozen=True))
            facts[key.name] = ClusterFacts(key.name, {})
            if key in previous:
                records.append((key, previous[key]))  # its timers go on when it is mended
    findings = (
        *_assumed("cluster-apis-assumed", "status.apiEnablements", "to serve every API", without_apis),
        *_assumed("cluster-room-assumed", "status.resourceSummary", "to have room", without_room),
        *tell_taints(
            [
                (document.key, locate(document), tainted[document.key.name])
                for document, _ in clusters
                if document.key.name in tainted
            ],
            policies,
        ),
    )
    added = {name: change.added for name, change in tainted.items() if change.added}
    return Clusters(Fleet(candidates), facts, findings, tuple(records), added)


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


def _record(document: Document, since: Mapping[str, datetime], added: tuple[Added, ...]) -> Body:
    annotations: dict[str, str] = {}
    if added:
        annotations[ADDED] = note_taints(added)
    if since:
        times = {text: format_time(moment) for text, moment in sorted(since.items())}
        annotations[FIRST_SEEN] = json.dumps(times, separators=(",", ":"))
    metadata = {"name": document.key.name, "annotations": annotations}
    return {"apiVersion": document.api_version, "kind": document.key.kind, "metadata": metadata}


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
