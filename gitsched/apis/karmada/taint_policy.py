"""ClusterTaintPolicy: taints that come and go with the conditions of clusters (spec/karmada.md §9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.karmada.conditions import Match, parse_matches
from gitsched.apis.karmada.placement import parse_affinity
from gitsched.model.document import Body, Document, Key, member
from gitsched.model.request import Affinity
from gitsched.model.taints import Taint, parse_taint
from gitsched.model.time import format_time, parse_time


class TaintPolicy(NamedTuple):
    """`target` None means every cluster. `created` orders policies, then their names do."""

    created: datetime
    name: str
    target: Affinity | None
    add: tuple[Match, ...]
    remove: tuple[Match, ...]
    taints: tuple[Taint, ...]


class TaintPolicies(NamedTuple):
    """`policies` in the order in which they act. `names` has those that are broken, too. `records` say when those were first seen whose
    documents do not."""

    policies: tuple[TaintPolicy, ...] = ()
    names: frozenset[str] = frozenset()
    records: tuple[tuple[Key, Body], ...] = ()


NO_POLICIES = TaintPolicies()


def read_taint_policies(
    documents: Iterable[Document], broken: Iterable[Key], previous: Mapping[Key, Body], moment: datetime
) -> TaintPolicies:
    """Read every ClusterTaintPolicy. A broken one does nothing, and is still remembered."""
    broken = sorted(broken)
    policies: list[TaintPolicy] = []
    records: list[tuple[Key, Body]] = []
    for document in documents:
        written = parse_time(member(document.body, "metadata", "creationTimestamp"))
        created = written or parse_time(member(previous.get(document.key) or {}, "metadata", "creationTimestamp")) or moment
        if written is None:
            records.append((document.key, _record(document, created)))
        policies.append(_parse(document, created))
    kept = [(key, previous[key]) for key in broken if key in previous]
    names = {policy.name for policy in policies} | {key.name for key in broken}
    return TaintPolicies(tuple(sorted(policies, key=lambda policy: policy[:2])), frozenset(names), (*records, *kept))


def _parse(document: Document, created: datetime) -> TaintPolicy:
    spec = document.body["spec"]
    target = spec.get("targetClusters")
    return TaintPolicy(
        created,
        document.key.name,
        parse_affinity(target) if target is not None else None,
        parse_matches(spec.get("addOnConditions")),
        parse_matches(spec.get("removeOnConditions")),
        tuple(map(parse_taint, spec["taints"])),
    )


def _record(document: Document, created: datetime) -> Body:
    metadata = {"name": document.key.name, "creationTimestamp": format_time(created)}
    return {"apiVersion": document.api_version, "kind": document.key.kind, "metadata": metadata}
