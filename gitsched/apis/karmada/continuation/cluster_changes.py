"""Which workloads changed Clusters can affect: those for which the scheduler decides otherwise than before, and those that are bound to a
Cluster of which Karmada itself reads something else. A label that nothing reads affects none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from gitsched.apis.karmada import names
from gitsched.apis.karmada.continuation.fleet_comparison import FleetComparison, WorkloadApi
from gitsched.apis.karmada.overrides.override_policy import OverrideIndex, OverridePolicy
from gitsched.apis.karmada.policy.matching_clusters import find_matching_mask
from gitsched.model.document import Document, Key, parse_api_group
from gitsched.model.placement_groups import PlacementGroup, PlacementGroups, group_placement
from gitsched.model.template_index import PlacementSummary, TemplateEntry, TemplateIndex, make_selectable
from gitsched.model.variants import BUNDLE_KIND
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.fleet_changes import DifferingCandidates

if TYPE_CHECKING:
    from gitsched.apis.capabilities import SnapshotChanges
    from gitsched.apis.karmada.policy.propagation_policy import PolicyIndex, PropagationPolicy
    from gitsched.apis.karmada.state import KarmadaState


def find_affected_by_clusters(before: KarmadaState, after: KarmadaState, changes: SnapshotChanges) -> Iterator[Key]:
    """Yield the workloads that the Clusters of another commit can affect."""
    fleets = FleetComparison(before, after)
    if not fleets.changed:
        return
    groups, entries = changes.groups or PlacementGroups(changes.template_index), changes.template_index
    concerned = _list_concerned_groups(before, after, fleets, groups, entries)
    yield from _find_placed_otherwise(_WorkloadComparison(fleets, after), concerned, groups, entries)
    yield from (
        key for key in after.snapshot.variants if key in entries and entries[key].placement is not None
    )  # no class has them
    overrides = _find_changed_overrides(before, after, fleets)
    for name in overrides.clusters if overrides is not None else ():
        for key in groups.placed.get(name, ()):
            if overrides is not None and overrides.policies.selects(make_selectable(key, entries[key])):
                yield key


def _find_placed_otherwise(
    workloads: _WorkloadComparison, concerned: Iterable[PlacementGroup], groups: PlacementGroups, entries: TemplateIndex
) -> Iterator[Key]:
    """Yield the workloads of some groups about which a decision may differ."""
    held: dict[PlacementGroup, DifferingCandidates] = {}
    for group in concerned:
        keys, differing = groups.alike[group], workloads.find_differing(group[0], group[1:])
        if differing is None:
            yield from keys
        elif differing.new:
            yield from (key for key in keys if differing.concern(_list_clusters(entries[key])))
        elif differing.held:
            held[group] = differing
    for name in sorted(frozenset().union(*{differing.held for differing in held.values()})):
        for key in groups.placed.get(name, ()):
            group_of_key = group_placement(key, entries[key])
            if group_of_key in held and name in held[group_of_key].held:
                yield key


def _list_clusters(entry: TemplateEntry) -> tuple[str, ...]:
    return entry.placement.clusters if entry.placement is not None else ()


class _ReachedGroups(NamedTuple):
    """The groups of workloads of a plan by what can concern them: `undecided` are those of which nothing is known in advance, and `placed`
    those of each policy, with the candidates of the fleet that it matches."""

    policies: PolicyIndex
    fleet: Fleet
    undecided: Sequence[PlacementGroup]
    placed: Sequence[tuple[PropagationPolicy, int, Sequence[PlacementGroup]]]


def _list_concerned_groups(
    before: KarmadaState, after: KarmadaState, fleets: FleetComparison, groups: PlacementGroups, entries: TemplateIndex
) -> Iterable[PlacementGroup]:
    """Return the groups with workloads that the changed Clusters may concern: all, unless policies and names of Clusters are as before, and
    each filter judges a Cluster by itself."""
    sets = fleets.changed_sets
    if after.policies is not before.policies or sets is None:
        return groups.alike
    reached = groups.known.get(names.API_NAME)
    if not isinstance(reached, _ReachedGroups) or reached.policies is not before.policies or reached.fleet is not before.fleet:
        reached = groups.known[names.API_NAME] = _index_groups(before, groups)
    found = dict.fromkeys(reached.undecided)
    for policy, matching, own in reached.placed:
        if sets.concern(matching, partial(find_matching_mask, after.fleet, policy)):
            found.update(dict.fromkeys(own))
    for name in fleets.changed:
        placed = (group_placement(key, entries[key]) for key in groups.placed.get(name, ()))
        found.update((group, None) for group in placed if group is not None)
    return found


def _index_groups(state: KarmadaState, groups: PlacementGroups) -> _ReachedGroups:
    policies = {policy.key.title: policy for policy in state.policies.policies.values()}
    undecided: list[PlacementGroup] = []
    placed: dict[str, list[PlacementGroup]] = {}
    for group in groups.alike:
        absent, api_version, kind = group
        policy = policies.get(absent.policy) if absent.api == names.API_NAME else None
        if not absent.is_settled or (parse_api_group(api_version), kind) == BUNDLE_KIND or (policy is not None and policy.is_lazy):
            undecided.append(group)
        elif policy is not None:
            placed.setdefault(absent.policy, []).append(group)
    found = ((policies[title], own) for title, own in placed.items())
    masks = [(policy, find_matching_mask(state.fleet, policy), own) for policy, own in found]
    return _ReachedGroups(state.policies, state.fleet, undecided, masks)


class _WorkloadComparison:
    """Says by which Clusters decisions may differ, for workloads that have everything but their clusters in common."""

    def __init__(self, fleets: FleetComparison, after: KarmadaState) -> None:
        self._fleets = fleets
        self._policies = {policy.key.title: policy for policy in after.policies.policies.values()}
        # An object may be where its own policy does not place it.
        self._has_attachments = after.has_dependencies or after.has_followers
        self._fails_back = after.settings.failback.mode != "Never"

    def find_differing(self, absent: PlacementSummary, api: WorkloadApi) -> DifferingCandidates | None:
        """Return the Clusters by which the decisions about workloads of an API may differ which have this summary, without clusters; None
        if all of these workloads may be affected."""
        policy = self._policies.get(absent.policy) if absent.api == names.API_NAME else None
        if not absent.is_settled:
            return None  # what is reported about it may depend on any fact
        if policy is None:  # it goes where its dependents go, or another API places it
            return DifferingCandidates(held=self._fleets.came_or_went)
        if policy.is_lazy:
            return None  # its binding may have the placement of an earlier version of the policy
        there = DifferingCandidates(held=frozenset(self._fleets.list_differing_there(policy)))
        fails_back = self._fails_back and len(policy.placement.groups) > 1
        if policy.placement.is_divided and absent.assigned and not fails_back:
            return there  # the scheduler is not called: no trigger says so
        scheduled = self._compare_scheduling(policy, absent, api, fails_back=fails_back)
        return None if scheduled is None else there | scheduled

    def _compare_scheduling(
        self, policy: PropagationPolicy, absent: PlacementSummary, api: WorkloadApi, *, fails_back: bool
    ) -> DifferingCandidates | None:
        """Return the Clusters by which the scheduler may decide otherwise: in the affinity group in use, and with failback in the earlier
        ones."""
        used = policy.placement.find_group_index(absent.group)
        found = self._fleets.list_differing(policy, api, used, range(used + 1) if fails_back else (used,))
        if found is None or not (fails_back or self._has_attachments):
            return found
        # Its binding need not have all clusters where it is.
        return DifferingCandidates(found.new, found.new | found.held)


class _ChangedOverrides(NamedTuple):
    """The override policies with rules for other Clusters than before, and these Clusters."""

    policies: OverrideIndex
    clusters: frozenset[str]


def _find_changed_overrides(before: KarmadaState, after: KarmadaState, fleets: FleetComparison) -> _ChangedOverrides | None:
    """Return the override policies whose rules match other Clusters than before; None if there are none."""
    documents: list[Document] = []
    clusters: set[str] = set()
    for policy in after.overrides.policies:
        sides = (before.fleet, after.fleet)
        differing = {
            name for name in fleets.changed if len({tuple(_list_matching_rules(fleet, policy, name)) for fleet in sides}) > 1
        }
        if differing:
            documents.append(policy.document)
            clusters |= differing
    return _ChangedOverrides(OverrideIndex(documents, (), after.fleet), frozenset(clusters)) if documents else None


def _list_matching_rules(fleet: Fleet, policy: OverridePolicy, name: str) -> list[bool]:
    """Return for each rule of an override policy whether it matches a Cluster."""
    index = fleet.index.get(name)
    matching = (fleet.all if rule.affinity is None else fleet.matching(rule.affinity) for rule in policy.rules)
    return [index is not None and bool(mask >> index & 1) for mask in matching]
