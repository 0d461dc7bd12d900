"""Queries that say to which Rollout a workload belongs: one that selects it or its policy, or a workload that brings it along.

Of several Rollouts that select a workload, the first one has it: valid ones before broken ones, then those of the platform, then by name.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gitsched.apis.gitsched.rollout import ObjectSelector, RolloutSpec
from gitsched.apis.gitsched.tenancy import PLATFORM, find_owner
from gitsched.decide.registry import read_required_by
from gitsched.decide.relations.schema import (
    DIRECT,
    PLACED,
    PLACED_FACTS,
    RECORD_ROLLOUTS,
    ROLLOUT,
    ROLLOUT_CLUSTERS,
    ROLLOUT_OVERLAPS,
    ROLLOUT_RULES,
    ROLLOUTS,
)
from gitsched.model.document import Key, read_labels
from gitsched.model.labels import Requirement, Selector
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.gitsched.tenancy import Tenancy
    from gitsched.decide.relations.object_queries import RelationReader
    from gitsched.decide.workload_files import WorkloadFiles
    from gitsched.model.document import Document
    from gitsched.model.scheduling import Outcome
    from gitsched.query.canonical import Key as QueryKey
    from gitsched.query.reader import Reader

_Lookup = tuple[str, ...]
"""What an object is looked up by: its name, a label with its value, or nothing."""
_ANY_OBJECT: _Lookup = ()
_ANY = ""
"""The row of ROLLOUT_CLUSTERS of a Rollout with workloads, also of those that are in no cluster."""


class PlacedFacts(NamedTuple):
    """What Rollouts read of a placed workload: `records` are the namespaces and names of its records, `required_by` those of the workloads
    that bring it along, and `owner` is its tenant, or the platform."""

    labels: tuple[tuple[str, str], ...]
    policies: tuple[str, ...]
    clusters: tuple[str, ...]
    records: tuple[tuple[str, str], ...]
    required_by: tuple[tuple[str, str], ...]
    owner: str = PLATFORM


class RolloutRule(NamedTuple):
    """What one Rollout selects, as plain values: objects by `selectors`, None for all, and workloads with one of these `policies`."""

    name: str
    selectors: tuple[tuple[Any, ...], ...] | None
    policies: tuple[str, ...]
    broken: bool = False
    owner: str = PLATFORM


class RolloutMembers(NamedTuple):
    """The workloads of a Rollout: the files of those whose files may differ from those of the previous output, the clusters of all, and
    whether there are any."""

    files: Sequence[WorkloadFiles]
    clusters: frozenset[str]
    exist: bool


def make_rules(
    specs: Iterable[RolloutSpec], documents: Mapping[tuple[str, str], tuple[Document, ...]], tenancy: Tenancy | None
) -> tuple[RolloutRule, ...]:
    """Return what Rollouts select, the first ones first, given all documents of policy APIs."""
    rules = []
    for spec in specs:
        wanted = {selector.kind for selector in spec.selectors or ()}
        listed = (
            document for kind, found in documents.items() if kind[1] in wanted for document in found if spec.selects(document)
        )
        policies = {name for document in listed for name in (document.key.title, str(document.key))}
        selectors = None if spec.selectors is None else tuple(map(_flatten, spec.selectors))
        owner = find_owner(tenancy, spec.document.key)
        rules.append(RolloutRule(spec.name, selectors, tuple(sorted(policies)), spec.broken, owner))
    return tuple(sorted(rules, key=lambda rule: (rule.broken, rule.owner != PLATFORM)))


def read_placed_facts(outcome: Outcome, template: Document, tenancy: Tenancy | None) -> PlacedFacts:
    """Return what Rollouts read of a workload."""
    return PlacedFacts(
        tuple(sorted(read_labels(template.body).items())),
        tuple(outcome.policy.split(", ")),
        tuple(outcome.replicas_by_cluster),
        tuple((record.namespace, record.name) for record, _ in outcome.records),
        tuple(sorted(read_required_by(outcome.api, (body for _, body in outcome.records)))),
        find_owner(tenancy, outcome.key),
    )


def read_placed(db: Reader, key: QueryKey) -> object:
    """Return what Rollouts read of a workload."""
    return db.input(PLACED, key)


def read_rules(db: Reader, key: QueryKey) -> RolloutIndex:
    """Return what the Rollouts select, to be looked up."""
    return RolloutIndex([RolloutRule(*plain) for plain in db.input(ROLLOUTS, key) or ()])


class RolloutIndex:
    """The rules of Rollouts, the first ones first. Sets of rules are integers with a bit for the position of each.

    Selectors are grouped by what can be looked up: a name, else a label with its value. What a group selects is found once for all
    workloads that do not differ in what its selectors read.
    """

    __slots__ = ("_all", "_broken", "_by_owner", "_by_policy", "_groups", "_known", "_rules")

    def __init__(self, rules: Sequence[RolloutRule]) -> None:
        self._rules, self._all, self._broken = rules, 0, 0
        self._by_owner: dict[str, int] = {}
        self._by_policy: dict[str, int] = {}
        groups: dict[_Lookup, list[tuple[int, ObjectSelector]]] = {}
        self._known: dict[tuple[_Lookup, tuple[str, str, str], tuple[str | None, ...]], int] = {}
        for number, rule in enumerate(rules):
            bit = 1 << number
            self._broken |= bit if rule.broken else 0
            self._all |= bit if rule.selectors is None else 0
            self._by_owner[rule.owner] = self._by_owner.get(rule.owner, 0) | bit
            for policy in rule.policies:
                self._by_policy[policy] = self._by_policy.get(policy, 0) | bit
            for selector in map(_restore, rule.selectors or ()):
                for lookup in _list_lookups(selector):
                    groups.setdefault(lookup, []).append((bit, selector))
        self._groups = {lookup: (found, _list_label_keys(found)) for lookup, found in groups.items()}

    def select(self, workload: Key, facts: PlacedFacts) -> tuple[str, int]:
        """Return the first Rollout that selects a workload or its policy, "" if none does, and the valid others."""
        labels, found = dict(facts.labels), self._all
        for lookup in (_ANY_OBJECT, (workload.name,), *facts.labels):
            if lookup in self._groups:
                found |= self._select_group(lookup, workload, labels)
        for policy in facts.policies:
            found |= self._by_policy.get(policy, 0)
        found &= self._by_owner.get(PLATFORM, 0) | self._by_owner.get(facts.owner, 0)
        first = found & -found
        return self._rules[first.bit_length() - 1].name if found else "", found & ~(first | self._broken)

    def list_names(self, selected: int) -> list[str]:
        """Return the names of a set of rules."""
        return [self._rules[number].name for number in range(selected.bit_length()) if selected >> number & 1]

    def _select_group(self, lookup: _Lookup, workload: Key, labels: Mapping[str, str]) -> int:
        selectors, label_keys = self._groups[lookup]
        read = lookup, workload[:3], tuple(map(labels.get, label_keys))
        if read not in self._known:
            bits = (bit for bit, selector in selectors if selector.selects(workload, labels))
            self._known[read] = functools.reduce(operator.or_, bits, 0)
        return self._known[read]


def _list_label_keys(selectors: Iterable[tuple[int, ObjectSelector]]) -> tuple[str, ...]:
    """Return the keys of the labels that selectors read."""
    found = (one.labels.requirements for _, one in selectors if one.labels is not None)
    return tuple(dict.fromkeys(requirement.key for requirements in found for requirement in requirements))


def _list_lookups(selector: ObjectSelector) -> list[_Lookup]:
    """Return the groups of a selector: an object that it selects is looked up in one of them at least."""
    if selector.name:
        return [(selector.name,)]
    requirements = selector.labels.requirements if selector.labels is not None else ()
    wanted = next((one for one in requirements if one.operator == "In"), None)
    return [_ANY_OBJECT] if wanted is None else [(wanted.key, value) for value in wanted.values]


def find_direct(db: Reader, key: QueryKey) -> str:
    """Return the Rollout that selects a workload or its policy; "" if none does."""
    facts = PlacedFacts(*db.read(PLACED_FACTS, key))
    first, others = db.read(ROLLOUT_RULES, ()).select(Key(*key), facts)
    for record in facts.records if first else ():
        db.emit(RECORD_ROLLOUTS, (*record, first))
    if others:
        db.emit(ROLLOUT_OVERLAPS, ("", first, f"{others:x}", *key))
    return str(first)


def find_rollout(db: Reader, key: QueryKey) -> str:
    """Return the Rollout to which a workload belongs; "" if none."""
    facts = PlacedFacts(*db.read(PLACED_FACTS, key))
    found = str(db.read(DIRECT, key))
    if not found:
        owners = [str(name) for record in facts.required_by for (name,) in db.rows_of(RECORD_ROLLOUTS, record)]
        found = min(owners, default="")
    if found:
        for cluster in (_ANY, *facts.clusters):
            db.emit(ROLLOUT_CLUSTERS, (found, cluster))
    return found


def list_clusters(database: RelationReader, rollout: str) -> frozenset[str]:
    """Return the clusters of the workloads of a Rollout, and "" if it has any workload."""
    return frozenset(cluster for (cluster,) in database.rows_of(ROLLOUT_CLUSTERS, (rollout,)))


def list_members(
    database: RelationReader, specs: Iterable[RolloutSpec], files: Mapping[Key, WorkloadFiles]
) -> dict[str, RolloutMembers]:
    """Return the workloads of each Rollout by its name, with those of some files that belong to it."""
    own: dict[str, list[WorkloadFiles]] = {}
    for key, one in files.items():
        own.setdefault(database.read(ROLLOUT, tuple(key)) or "", []).append(one)
    clusters = {spec.name: list_clusters(database, spec.name) for spec in specs}
    return {name: RolloutMembers(own.get(name, ()), found - {_ANY}, bool(found)) for name, found in clusters.items()}


def _flatten(selector: ObjectSelector) -> tuple[Any, ...]:
    labels = selector.labels
    return (*selector[:4], None if labels is None else tuple(map(tuple, labels.requirements)))


def _restore(plain: tuple[Any, ...]) -> ObjectSelector:
    group, kind, namespace, name, requirements = plain
    labels = None if requirements is None else Selector(tuple(Requirement(*one) for one in requirements))
    return ObjectSelector(group, kind, namespace, name, labels)
