"""Decisions that depend on each other through affinity groups and quotas, whoever places them and in whatever order.

A binding is first decided alone: beside the clusters that all others of its groups have in their records, and what these use of its quotas.
Where the outcomes of several would not go together (a member of a group gets other clusters, or a quota may not allow all of them) their
turns come one after the other, and each sees what those before it have taken. What a workload sees in its turn stays known, so that it
can be explained afterwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import Coupling
from gitsched.apis.karmada import names
from gitsched.apis.karmada.binding.resource_binding import ScheduleResult, binding_key, read_previous, write_clusters
from gitsched.apis.karmada.interpreter import ReplicaRequirements, write_replicas
from gitsched.apis.karmada.queue.affinity_groups import (
    AffinityGroups,
    GroupId,
    list_group_keys,
    make_affinity_groups,
    read_affinity_groups,
)
from gitsched.apis.karmada.queue.coupled_decisions import list_quotas
from gitsched.apis.karmada.queue.coupling_warnings import find_quota_warnings, find_unused_terms
from gitsched.apis.karmada.queue.federated_quotas import FederatedQuotas, Usage, measure_usage
from gitsched.apis.karmada.queue.quota_refusal import QuotaRefusal
from gitsched.apis.snapshot import list_previous_records
from gitsched.model.document import Body, Document, Key, get_field, list_objects, read_labels
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.karmada.state import KarmadaState
    from gitsched.model.finding import Finding
    from gitsched.model.scheduling import Outcome, PeerClusters

Groups = Mapping[str, str]
_REQUESTS = ("replicas", "replicaRequirements", "components")
"""The fields of a binding that say what its workload requests."""


class _Turn(NamedTuple):
    """What a binding sees when it is decided."""

    peers: PeerClusters | None
    quotas: FederatedQuotas


class _Change(NamedTuple):
    """What a binding uses of its quotas before and after a decision."""

    key: Key
    before: Usage
    after: Usage


class CoupledBindings:
    """See `gitsched.apis.karmada.binding_queue.BindingQueue`."""

    def __init__(self, state: KarmadaState) -> None:
        """Read the groups of all templates."""
        self._state, self._has_groups, self._has_quotas = state, state.settings.gates.workload_affinity, state.settings.gates.quota
        self.revision = 0
        self._gone: frozenset[Key] | None = None
        self._others: tuple[CoupledBindings, ...] = ()
        self._groups_of = self._read_groups() if self._has_groups else {}
        self._forget()

    def continue_with(self, state: KarmadaState, gone: frozenset[Key]) -> CoupledBindings:
        """Return what another state begins with: the groups of the same templates, which `update_groups` changes, and the quotas as their
        records say. `gone` are the templates that it does not have any more."""
        other = copy(self)
        other._state, other._others = state, ()
        other.restart(gone)
        return other

    def join(self, all_owners: Iterable[CoupledBindings]) -> None:
        """Count what the workloads of other owners use of the same quotas. Groups are those of one owner."""
        others = tuple(one for one in all_owners if one is not self)
        if others != self._others:
            self._others = others
            self._forget()

    def __getstate__(self) -> dict[str, object]:
        """Return what is stored with an engine: everything else belongs to a snapshot."""
        names_of_stored = ("_state", "_has_groups", "_has_quotas", "_groups_of", "revision")
        return {name: getattr(self, name) for name in names_of_stored}

    def __setstate__(self, stored: dict[str, object]) -> None:
        self.__dict__.update(stored)
        self._others = ()
        self.restart(frozenset())

    def restart(self, gone: frozenset[Key]) -> None:
        """Begin with the records of the last run. `gone` are templates that have records and are not there any more."""
        self._gone = gone
        self._forget()

    def _forget(self) -> None:
        self._known_groups: AffinityGroups | None = None
        self._known_quotas: FederatedQuotas | None = None
        self._turns: dict[Key, _Turn] = {}
        self._running: tuple[AffinityGroups, FederatedQuotas] | None = None
        self._pending: set[Key] = set()
        self._counted: dict[Key, Body | None] = {}
        self._refused: dict[Key, bool] = {}
        self.quota_refusals: dict[Key, QuotaRefusal] = {}

    # Groups

    def _read_groups(self) -> dict[Key, Groups]:
        state, found = self._state, dict[Key, Groups]()
        keys = list_group_keys(state.policies.policies.values())
        for key, template in state.snapshot.templates.items() if keys else ():
            if key.namespace and not keys.isdisjoint(read_labels(template.body)):
                groups = self._make_groups(template)
                if groups:
                    found[key] = groups
        for key in state.snapshot.quarantined if keys else ():
            record = state.snapshot.previous.get(binding_key(key))
            groups = read_affinity_groups(record) if record is not None else {}
            if groups:
                found[key] = groups
        return found

    def _make_groups(self, template: Document) -> Groups:
        policy, _ = self._state.find_selecting_policy(template, self._state.find_record(template))
        return make_affinity_groups(template, policy) if policy is not None else {}

    def update_groups(self, dirty: frozenset[Key]) -> frozenset[Key]:
        """Read the groups of changed workloads again. Return the others of the groups that they were and are in."""
        if not self._has_groups:
            return frozenset()
        touched, known = set[GroupId](), self._groups_of
        for key in dirty:
            template = self._state.snapshot.templates.get(key) if key.namespace else None
            before, after = self._groups_of.get(key, {}), self._make_groups(template) if template is not None else {}
            touched.update((key.namespace, *entry) for groups in (before, after) for entry in groups.items())
            if before != after:
                self.revision += 1
                self._groups_of = {**self._groups_of, key: after}
                if not after:
                    del self._groups_of[key]
        if self._groups_of is not known:
            self._forget()
        return self._list_members(touched) - dirty

    def find_warnings(self) -> Iterator[Finding]:
        """Yield the warnings about quotas and groups that limit nothing."""
        if self._has_quotas:
            yield from find_quota_warnings(list_quotas(self._state))
        if self._has_groups:
            texts = ((key.namespace, text) for key, groups in self._groups_of.items() for text in groups.values())
            used = {(namespace, text.partition("=")[0]) for namespace, text in texts}
            yield from find_unused_terms(self._state.policies.policies.values(), used)

    def find_groups(self, template: Document) -> Groups:
        return self._groups_of.get(template.key, {})

    def find_peers(self, template: Document) -> PeerClusters | None:
        if template.key not in self._groups_of:
            return None
        turn = self._turns.get(template.key)
        return turn.peers if turn is not None else self._base_groups.find_peers(template.key)

    # Quotas

    @property
    def _base_groups(self) -> AffinityGroups:
        """The groups with the clusters that the records of the last run have."""
        if self._known_groups is None:
            self._known_groups = AffinityGroups(self._groups_of, self._find_recorded)
        return self._known_groups

    @property
    def _base_quotas(self) -> FederatedQuotas:
        """The quotas with what the bindings of the last run use, without those of templates that are gone."""
        if self._known_quotas is None:
            self._known_quotas = self._read_quotas()
        return self._known_quotas

    def _find_recorded(self, key: Key) -> Iterable[str]:
        return list_clusters(self._state.snapshot.previous.get(binding_key(key)))

    def _read_quotas(self) -> FederatedQuotas:
        quotas, previous = FederatedQuotas(list_quotas(self._state), allows_less=True), self._state.snapshot.previous
        if self._gone is not None and all(key in previous for key, _ in quotas.records):
            quotas = quotas.read_recorded(previous)
            for key in sorted(self._list_gone()):
                if key.namespace in quotas.namespaces:
                    quotas = quotas.add(key.namespace, self._measure(previous.get(binding_key(key))), {})
            return quotas
        usages = defaultdict[str, list[Usage]](list)
        for one in (self, *self._others) if quotas.namespaces else ():
            for namespace, usage in one._list_usages(quotas.namespaces):
                usages[namespace].append(usage)
        for namespace in quotas.namespaces:
            quotas = quotas.recount(namespace, usages[namespace])
        return quotas

    def _list_gone(self) -> frozenset[Key]:
        """Return the templates of all owners that are gone."""
        return frozenset[Key]().union(*(one._gone or () for one in (self, *self._others)))

    def _list_usages(self, namespaces: frozenset[str]) -> Iterator[tuple[str, Usage]]:
        snapshot = self._state.snapshot
        templates = (key for key in (*snapshot.templates, *snapshot.quarantined) if key.namespace in namespaces)
        present = set(map(binding_key, templates))
        for key, record in list_previous_records(snapshot.previous, names.WORK_GROUP, names.BINDING):
            if key.namespace in namespaces and key in present:
                yield key.namespace, self._measure(record)

    def _measure(self, record: Body | None) -> Usage:
        return measure_usage(record["spec"], whole=True) if record is not None else {}

    def _find_quotas(self, key: Key) -> FederatedQuotas:
        turn = self._turns.get(key)
        return turn.quotas if turn is not None else self._base_quotas

    def _has_quota(self, key: Key) -> bool:
        return self._has_quotas and key.namespace in self._base_quotas.namespaces

    def refuses_update(self, template: Document) -> bool:
        """Return whether a quota refuses that a binding gets the requests that its template has now, in the clusters that it has."""
        key = template.key
        known = self._refused.get(key)
        if known is None:
            known = self._refused[key] = self._has_quota(key) and self._refuses_requests(template)
        return known

    def _refuses_requests(self, template: Document) -> bool:
        key, record = template.key, self._state.find_record(template)
        if record is None:
            return False
        before, spec = record["spec"], write_replicas(self._state.read_wanted_requirements(template))
        refusal: QuotaRefusal | None = None
        if any(before.get(name) != spec.get(name) for name in _REQUESTS):
            after = measure_usage({**spec, "clusters": before.get("clusters")}, whole=True)
            refusal = self._find_quotas(key).refuse(key.namespace, self._measure(record), after)
        self._set_refusal(key, refusal)
        return refusal is not None

    def _set_refusal(self, key: Key, refusal: QuotaRefusal | None) -> None:
        if refusal is None:
            self.quota_refusals.pop(key, None)
        else:
            self.quota_refusals[key] = refusal

    def limit(self, template: Document, requirements: ReplicaRequirements, result: ScheduleResult) -> ScheduleResult:
        """Return the result of a pass; where a quota refuses it, with the former clusters."""
        key = template.key
        if not self._has_quota(key):
            return result
        record = self._state.find_record(template)
        after = measure_usage({**write_replicas(requirements), "clusters": write_clusters(result.clusters)}, whole=True)
        refusal = self._find_quotas(key).refuse(key.namespace, self._measure(record), after)
        if refusal is None:
            if not self._refused.get(key):
                self._set_refusal(key, None)
            return result
        self._set_refusal(key, refusal)
        return keep_former(result, record, refusal)

    @property
    def records(self) -> Iterable[tuple[Key, Body]]:
        """The quotas with their usage."""
        return (self._base_quotas if self._running is None else self._running[1]).records

    # Turns

    def list_certain_turns(self) -> Iterator[Key]:
        """Yield the members of groups that have no binding yet: they and the others of their groups are decided in turns, if those have
        outcomes as well."""
        snapshot = self._state.snapshot
        for key in self._groups_of:
            if key in snapshot.templates and key not in snapshot.kept and binding_key(key) not in snapshot.previous:
                yield key

    @contextmanager
    def outside_turns(self) -> Iterator[None]:
        """Let workloads see the groups and quotas as the last run has left them."""
        known = self._turns, self._refused, self.quota_refusals
        self._turns, self._refused, self.quota_refusals = {}, {}, {}
        try:
            yield
        finally:
            self._turns, self._refused, self.quota_refusals = known

    def find_coupling(self, outcomes: Mapping[Key, Outcome], postponed: frozenset[Key] = frozenset()) -> Coupling:
        """Return which outcomes count for others, and which of them have to be decided in turns. Workloads whose decision is `postponed`
        count as members of their groups; what they use of quotas is not known."""
        records = self._state.snapshot.previous
        bodies = [
            (key, record := records.get(binding_key(key)), _read_body(outcome, record))
            for key, outcome in outcomes.items()
            if outcome.api == names.API_NAME and key.namespace and (self._has_groups or self._has_quota(key))
        ]
        groups = self._couple_groups([*bodies, *((key, None, None) for key in sorted(postponed))])
        quotas, namespaces = self._couple_quotas(bodies), {key.namespace for key in postponed if self._has_quota(key)}
        unclear = postponed - groups.members
        if namespaces:
            using = {key.namespace for key in quotas.counted} & namespaces
            unclear |= {key for key in postponed if key.namespace in using}
        return Coupling(groups.counted | quotas.counted, groups.members | quotas.members, unclear)

    def _couple_groups(self, bodies: Iterable[tuple[Key, Body | None, Body | None]]) -> Coupling:
        """Return the workloads with other clusters or groups than before, and all members of their groups, unless these are alone."""
        members_of, changed, counted = defaultdict[GroupId, list[Key]](list), set[GroupId](), set[Key]()
        snapshot = self._state.snapshot
        for key, record, body in bodies if self._has_groups else ():
            if self._others and key not in snapshot.templates and key not in snapshot.quarantined:
                continue  # another owner's
            groups, former = self._groups_of.get(key, {}), read_affinity_groups(record) if record is not None else {}
            for side, text in groups.items():
                members_of[key.namespace, side, text].append(key)
            if groups != former or (groups and sorted(list_clusters(record)) != sorted(list_clusters(body))):
                counted.add(key)
                changed.update((key.namespace, *entry) for one in (groups, former) for entry in one.items())
        members = (key for group in changed if len(members_of[group]) > 1 for key in members_of[group])
        return Coupling(frozenset(counted), frozenset(members))

    def _couple_quotas(self, bodies: Iterable[tuple[Key, Body | None, Body | None]]) -> Coupling:
        """Return the workloads with other requests than before or that a quota stops, and all of them where a quota may stop one."""
        changes = defaultdict[str, list[_Change]](list)
        for key, record, body in bodies:
            if self._has_quota(key):
                change = _Change(key, self._measure(record), self._measure(body))
                if change.before != change.after or key in self.quota_refusals:
                    changes[key.namespace].append(change)
        counted = (change.key for found in changes.values() for change in found)
        members = (
            change.key
            for namespace, found in changes.items()
            if len(found) > 1 and self._may_exceed(namespace, found)
            for change in found
        )
        return Coupling(frozenset(counted), frozenset(members))

    def _may_exceed(self, namespace: str, changes: Iterable[_Change]) -> bool:
        """Return whether a quota may refuse one of some changes in some order."""
        more: dict[str, int] = {}
        for key, before, after in changes:
            if key in self.quota_refusals:
                return True
            for name, amount in after.items():
                more[name] = more.get(name, 0) + max(0, amount - before.get(name, 0))
        return self._base_quotas.refuse(namespace, {}, more) is not None

    def _read_running(self) -> tuple[AffinityGroups, FederatedQuotas]:
        if self._running is None:
            self.begin_turns(())
        assert self._running is not None, "the turns have begun"
        return self._running

    def begin_turns(self, removed: Iterable[Key]) -> None:
        """Begin with what the last run has left, without workloads that have no outcome any more."""
        for key in self._turns:
            self._refused.pop(key, None)
        self._turns, self._counted, self._pending = {}, dict.fromkeys(self._list_gone()), set()
        self._running = self._base_groups.copy(), self._base_quotas
        for key in removed:
            self._count(key, None)

    def begin_turn(self, key: Key) -> None:
        """Let a workload see from now on what those before it have taken."""
        groups, quotas = self._read_running()
        self._refused.pop(key, None)
        self._turns[key] = _Turn(groups.find_peers(key), quotas)

    def count(self, key: Key, outcome: Outcome | None) -> None:
        """Count what an outcome takes; one that was counted before is replaced."""
        for one in (self, *self._others):
            one._count(key, outcome)

    def _count(self, key: Key, outcome: Outcome | None) -> None:
        if outcome is not None and (outcome.api != names.API_NAME or not key.namespace):
            return
        groups, quotas = self._read_running()
        record = self._state.snapshot.previous.get(binding_key(key))
        body = None if outcome is None else _read_body(outcome, record)
        before = self._counted.get(key, record)
        self._counted[key] = body
        if self._has_quota(key):
            quotas = quotas.add(key.namespace, self._measure(before), self._measure(body))
        if key in self._groups_of:
            groups.set_clusters(key, list_clusters(body))
        self._running = groups, quotas

    def keep(self, kept: Mapping[Key, Outcome]) -> frozenset[Key]:
        """Count what workloads keep, and return the others that have to be decided again: from now on each in the order of the calls."""
        mates = self._list_members({(key.namespace, *entry) for key in kept for entry in self._groups_of.get(key, {}).items()})
        namespaces = {key.namespace for key in kept if self._has_quota(key)}
        mates |= {key for key in self._counted if key.namespace in namespaces}
        for key, outcome in kept.items():
            self._count(key, outcome)
        others = mates - kept.keys()
        self._pending |= others
        return others

    def _list_members(self, touched: Container[GroupId]) -> frozenset[Key]:
        """Return all members of some groups."""
        found = self._groups_of.items() if touched else ()
        return frozenset(key for key, groups in found if any((key.namespace, *entry) in touched for entry in groups.items()))

    def list_inputs(self, template: Document) -> tuple[object, ...]:
        """Return what a decision reads that is made alone."""
        key = template.key
        quotas = self._base_quotas.list_usage(key.namespace) if self._has_quota(key) else ()
        return (self.find_groups(template), self._base_groups.find_peers(key), quotas)

    def find_remaining(self) -> None:
        """Return nothing: capacity is shared by all APIs."""

    def takes_turn(self, key: Key) -> bool:
        """Return whether a workload is to be decided beside what others keep; only once."""
        if key not in self._pending:
            return False
        self._pending.discard(key)
        return True

    @property
    def refused(self) -> frozenset[Key]:
        """The workloads that a quota stops."""
        return frozenset(self.quota_refusals)


def _read_body(outcome: Outcome, record: Body | None) -> Body | None:
    """Return the binding after an outcome: the new one, else that of the last run."""
    return outcome.records[0][1] if outcome.records else record


def list_clusters(record: Body | None) -> list[str]:
    """Return the clusters of a binding."""
    return [str(target.get("name")) for target in list_objects(get_field(record or {}, "spec", "clusters"))]


def keep_former(result: ScheduleResult, record: Body | None, refusal: QuotaRefusal) -> ScheduleResult:
    """Return the result of a pass that a quota refuses: the former clusters, and why."""
    previous = read_previous(record)
    return result._replace(
        clusters=previous.clusters,
        components=previous.components,
        applied_placement=previous.applied_placement,
        last_scheduled=previous.last_scheduled,
        reason="QuotaExceeded",
        message=refusal.message,
    )
