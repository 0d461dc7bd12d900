"""Queries that compare where companions and their targets go: a Service and the pods that it selects, an autoscaler and what it scales.

An entry is an object of the source, or a part of a workload: the key of the workload that delivers it, and the number of the part.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gitsched.decide.relations.delivered_manifests import NO_CLUSTERS, Clusters
from gitsched.decide.relations.missing_objects import read_missing
from gitsched.decide.relations.object_facts import PartFacts, restore_features
from gitsched.decide.relations.object_queries import RelationReader, find_clusters, read_facts, read_placement
from gitsched.decide.relations.placement_texts import describe_placement
from gitsched.decide.relations.schema import (
    ANY_NAMESPACE,
    ASSUMPTIONS,
    CHARTS,
    FAR_INDEX,
    MEMBER_INDEX,
    MEMBERS,
    NAMESPACES,
    OWN_COMPANIONS,
    PLACEMENT,
    RELATED,
    SEPARATED,
    SHARED,
    TARGETED,
    TARGETS,
    UNSELECTED,
    UNTARGETED,
    UNUSABLE,
)
from gitsched.kinds.companion_index import CompanionIndex
from gitsched.kinds.companion_kinds import COMPANION_KINDS
from gitsched.model.document import Key
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.query.canonical import Key as QueryKey
    from gitsched.query.reader import Reader

Entry = tuple[str, ...]


class DeliveredCompanion(NamedTuple):
    """An object of the source with the clusters that it goes to; it counts as running only in the `active` ones, from which it is not being
    evicted. `owner` is the workload that contains it, or the object itself. `state` is that of the owner's placement; "" if no policy
    selects it."""

    key: Key
    owner: Key
    clusters: Clusters = NO_CLUSTERS
    active: Clusters = NO_CLUSTERS
    state: str = ""


class CompanionPlacement(NamedTuple):
    """A companion that is selected and its direct targets.

    It is `lacking` in clusters that have a target, and `idle` in those of its own clusters that have none. `placement` says where the
    policies place it if it is lacking, else where they place a target. `shared_api` is the API whose policy places both; "" if they have
    different policies.
    """

    companion: DeliveredCompanion
    targets: tuple[DeliveredCompanion, ...]
    lacking: Clusters = NO_CLUSTERS
    idle: Clusters = NO_CLUSTERS
    placement: str = ""
    shared_api: str = ""

    @property
    def about(self) -> Key:
        """The object that `placement` is about."""
        return self.companion.key if self.lacking else next((one for one in self.targets if one.state), self.targets[0]).key

    @property
    def apart(self) -> tuple[DeliveredCompanion, ...]:
        """The selected targets in the clusters where it is lacking; all selected ones if it is only idle."""
        selected = (target for target in self.targets if target.state)
        return tuple(target for target in selected if not self.lacking or not target.active.isdisjoint(self.lacking))

    @property
    def is_apart(self) -> bool:
        """Whether the companion and its targets have no cluster in common."""
        return self.idle == self.companion.active and bool(self.idle)

    @property
    def is_serious(self) -> bool:
        """Whether the finding about a separated companion is a warning."""
        vital = COMPANION_KINDS[self.companion.key[:2]].vital
        return self.is_apart or bool(self.lacking and vital)


class UnselectedCompanion(NamedTuple):
    """A companion that no policy selects, the selected workloads that it belongs to, and the clusters of these that should have it."""

    companion: DeliveredCompanion
    workloads: tuple[DeliveredCompanion, ...]
    clusters: Clusters


def index_members(db: Reader, key: QueryKey) -> CompanionIndex[Entry]:
    """Return the companions and targets of a namespace."""
    return _index(db, [key[0]])


def index_far(db: Reader, key: QueryKey) -> CompanionIndex[Entry]:
    """Return the companions and targets of some namespaces; of all for no namespace."""
    return _index(db, key or [name for (name,) in db.rows_of(NAMESPACES, ("",))])


def _index(db: Reader, namespaces: Iterable[str]) -> CompanionIndex[Entry]:
    index: CompanionIndex[Entry] = CompanionIndex()
    for where in namespaces:
        for group, kind, namespace, name, *entry, text in db.rows_of(MEMBERS, (where,)):
            index.add(tuple(entry), Key(group, kind, namespace, name), restore_features(text))
    return index


def find_targets(db: Reader, key: QueryKey) -> object:
    """Return the direct targets of a companion, the workloads at the end of its chain of targets, and two of its features: whether it
    follows its targets, and whether it may be where no target is."""
    namespaces = frozenset((_read_part(db, key)[0].namespace,))
    index: CompanionIndex[Entry] = db.read(MEMBER_INDEX, tuple(namespaces))
    while True:
        reached = _list_namespaces(index, key)
        if reached is not None and reached <= namespaces:
            break
        namespaces = frozenset() if reached is None else namespaces | reached
        index = db.read(FAR_INDEX, tuple(sorted(namespaces)))
        if not namespaces:
            break
    features, targets = index.find_features(key), index.list_targets(key)
    assert features is not None, "the rows of its namespace have it"
    for target in targets:
        db.emit(TARGETED, (*target, *key))
    return tuple(targets), tuple(index.list_workloads(key)), features.follows, features.is_shared


def _list_namespaces(index: CompanionIndex[Entry], companion: Entry) -> frozenset[str] | None:
    """Return the namespaces in which a companion and the companions among its targets have targets; None for all."""
    found: set[str] = set()
    pending, seen = [companion], {companion}
    while pending:
        one = pending.pop()
        features = index.find_features(one)
        if features is None or not features.is_companion:
            continue
        if features.selection is not None:
            if features.selection.namespaces is None:
                return None
            found.update(features.selection.namespaces)
        found.update(name.namespace for name in features.names)
        targets = [target for target in index.list_targets(one) if target not in seen]
        seen.update(targets)
        pending += targets
    return frozenset(found)


def place_companion(db: Reader, key: QueryKey) -> object:
    """Return where a companion and its targets go, as plain values of a CompanionPlacement or an UnselectedCompanion; None if there is
    nothing to compare.

    Left out are companions that are where they are on purpose: their annotation says so, or other clusters reach the Service. What the
    finding about a missing object says does not count as lacking.
    """
    entries, behind, follows, is_shared = db.read(TARGETS, tuple(key))
    companion = _describe(db, key)
    if follows is False or (companion.state and not companion.clusters):
        return None
    described = [(_describe(db, entry), entry) for entry in entries]
    others = [(target, entry) for target, entry in described if not _is_one_set(companion, target)]
    targets = sorted((target for target, _ in others), key=_get_key)
    if not targets:
        return _find_untargeted(db, key, companion) if not entries and not is_shared else None
    if not companion.state:
        running = [(one, entry) for one, entry in ((_describe(db, entry), entry) for entry in behind) if one.state]
        workloads = sorted((one for one, _ in running), key=_get_key)
        if not workloads or read_facts(db, key[:4]).is_refused:  # another finding says why no cluster gets it
            return None
        unserved = [one for one, entry in running if not _is_served(db, companion, (), entry)]
        wanted = _without_known(db, companion.key, NO_CLUSTERS.union(*(one.active for one in unserved or workloads)))
        first = next((one for one in workloads if not one.active.isdisjoint(wanted)), None)
        placement = read_placement(read_facts(db, first.owner)) if first is not None else None
        if placement is not None:
            db.emit(UNSELECTED, (placement.api, placement.policy, *companion.key, *key))
        _relate(db, key, companion, workloads)
        return "", _flatten(companion), tuple(map(_flatten, workloads)), wanted
    present = NO_CLUSTERS.union(*(find_clusters(db, target.key) for target in targets))
    # A reference that is missing, or a workload that is not placed, is another finding.
    is_bound = _are_referenced(db, companion, targets) or all(target.state and not target.clusters for target in targets)
    has_own = len(targets) < len(entries)
    may_be_idle = not (is_bound or is_shared or has_own or db.rows_of(SHARED, (companion.key.namespace, companion.key.name), 1))
    idle = companion.active - present if may_be_idle else NO_CLUSTERS
    # Variants of one base select each other's pods as well, and each has a companion of its own.
    served = {target.active for target, _ in described if target.active and target.active <= companion.active}
    is_variant = has_own or bool(served)
    missing = [target for target, entry in others if not (is_variant and _is_served(db, companion, served, entry))]
    missed = NO_CLUSTERS.union(*(target.active for target in missing)) - find_clusters(db, companion.key)
    lacking = _without_known(db, companion.key, missed) if missed else NO_CLUSTERS
    placed = CompanionPlacement(companion, tuple(targets), lacking, idle)
    _relate(db, key, companion, targets)
    if lacking or idle:
        db.emit(SEPARATED, ("", "warning" if placed.is_serious else "~info", *companion.key, *key))
    if not (lacking or idle):
        return "placed", _flatten(companion), tuple(map(_flatten, targets)), lacking, idle
    texts = describe_placement(db, placed.about), _find_shared_api(db, placed)
    return "placed", _flatten(companion), tuple(map(_flatten, targets)), lacking, idle, *texts


def _find_shared_api(db: RelationReader, placed: CompanionPlacement) -> str:
    """Return the API whose policy places a companion and the targets from which it is separated; "" if they have different policies."""
    facts = (read_placement(read_facts(db, one.owner)) for one in (placed.companion, *placed.apart))
    found = {(placement.api, placement.policy) for placement in facts if placement is not None}
    return min(found)[0] if placed.apart and len(found) == 1 else ""


class UntargetedService(NamedTuple):
    """A Service that goes to clusters and selects no pods there: the labels that it selects, and the first workload of the namespace
    `default` that has them, as an object without a namespace would be there; None if there is none."""

    companion: DeliveredCompanion
    labels: str
    near: Key | None = None


_UNTARGETED = "untargeted"
_SERVICE_KIND = ("", "Service")
_DEFAULT = "default"


def _find_untargeted(db: Reader, key: QueryKey, companion: DeliveredCompanion) -> object:
    """Return a delivered Service that selects no pods of the source, as plain values of an UntargetedService; None if that is not known,
    because it has no selector, or because a chart or an object that is not used may have the pods in its namespace."""
    has_charts = any(db.rows_of(CHARTS, (where,), 1) for where in (companion.key.namespace, ANY_NAMESPACE))
    namespace = companion.key.namespace
    if companion.key[:2] != _SERVICE_KIND or not companion.active or has_charts or db.rows_of(UNUSABLE, (namespace,), 1):
        return None
    index: CompanionIndex[Entry] = db.read(MEMBER_INDEX, (namespace,))
    features = index.find_features(tuple(key))
    selection = features.selection if features is not None else None
    if selection is None or not selection.selector.requirements or index.is_selection_large(selection):
        return None
    labels = ", ".join(f"{one.key}={'|'.join(sorted(one.values))}" for one in selection.selector.requirements)
    near: list[Key] = []
    if namespace != _DEFAULT:
        others: CompanionIndex[Entry] = db.read(MEMBER_INDEX, (_DEFAULT,))
        found = others.list_selected(selection._replace(namespaces=(_DEFAULT,)))
        near = sorted(_read_part(db, entry)[0] for entry in found)
    db.emit(UNTARGETED, ("", *companion.key, *key))
    return _UNTARGETED, _flatten(companion), labels, tuple(near[0]) if near else None


def read_untargeted(db: RelationReader, entry: QueryKey) -> UntargetedService:
    """Return a Service that selects nothing, of a row of UNTARGETED."""
    _, companion, labels, near = db.read(PLACEMENT, tuple(entry))
    return UntargetedService(_restore(companion), labels, Key(*near) if near is not None else None)


def _relate(db: Reader, entry: QueryKey, companion: DeliveredCompanion, others: Iterable[DeliveredCompanion]) -> None:
    for key in dict.fromkeys((companion.key, *(other.key for other in others))):
        db.emit(RELATED, (*key, *entry))


def read_companion(db: RelationReader, entry: QueryKey) -> CompanionPlacement | UnselectedCompanion | None:
    """Return where a companion and its targets go; None if there is nothing to compare."""
    plain = db.read(PLACEMENT, tuple(entry))
    if plain is None or plain[0] == _UNTARGETED:
        return None
    how, companion, others, *rest = plain
    found = _restore(companion), tuple(map(_restore, others))
    return CompanionPlacement(*found, *rest) if how else UnselectedCompanion(*found, *rest)


def _flatten(one: DeliveredCompanion) -> tuple[Any, ...]:
    return tuple(one.key), tuple(one.owner), one.clusters, one.active, one.state


def _restore(plain: tuple[Any, ...]) -> DeliveredCompanion:
    key, owner, *rest = plain
    return DeliveredCompanion(Key(*key), Key(*owner), *rest)


def _read_part(db: RelationReader, entry: QueryKey) -> tuple[Key, PartFacts]:
    part = PartFacts(*read_facts(db, entry[:4]).parts[int(entry[4])])
    return Key(*(part.key or entry[:4])), part


def _describe(db: RelationReader, entry: QueryKey) -> DeliveredCompanion:
    key, part = _read_part(db, entry)
    placement = read_placement(read_facts(db, entry[:4]))
    return DeliveredCompanion(key, Key(*entry[:4]), part.clusters, part.active, placement.state if placement is not None else "")


def _are_referenced(db: RelationReader, companion: DeliveredCompanion, targets: Iterable[DeliveredCompanion]) -> bool:
    """Return whether a companion refers to its targets, so that a missing one is a missing object."""
    if companion.owner[:2] not in COMPANION_KINDS:
        return False
    required = {key for plain in read_facts(db, companion.owner).references for key, _ in plain[0]}
    return all(tuple(target.key) in required for target in targets)


def _without_known(db: RelationReader, key: Key, clusters: Clusters) -> Clusters:
    """Return the clusters that do not have an object by themselves, and for which no other finding reports it."""
    missing, assumptions = read_missing(db, key), db.read(ASSUMPTIONS, ())
    left = clusters - missing.reported if missing is not None else clusters
    return frozenset(name for name in left if not assumptions.has(key, name))


def list_own_companions(db: Reader, key: QueryKey) -> object:
    """Return the companions that go wherever a target goes: their keys and clusters, and whether they are parts of its workload."""
    target = _describe(db, key)
    found = [(one, _is_one_set(one, target)) for one in (_describe(db, entry) for entry in db.rows_of(TARGETED, tuple(key)))]
    return tuple(
        (tuple(one.key), one.active, is_part)
        for one, is_part in found
        if is_part or (target.active and target.active <= one.active)
    )


def _is_served(db: Reader, companion: DeliveredCompanion, served: Iterable[Clusters], entry: QueryKey) -> bool:
    """Return whether a target has another companion of the same kind: in its own workload, such as a Bundle, or one that goes wherever the
    target goes, and not also to all of the clusters that the companion has `served` targets in."""
    return any(
        key[:2] == tuple(companion.key[:2])
        and key != tuple(companion.key)
        and (is_part or not any(clusters <= active for clusters in served))
        for key, active, is_part in db.read(OWN_COMPANIONS, tuple(entry))
    )


def _get_key(one: DeliveredCompanion) -> tuple[Key, Key]:
    return one.key, one.owner


def _is_one_set(companion: DeliveredCompanion, target: DeliveredCompanion) -> bool:
    """Return whether two objects are parts of the same workload, such as a Bundle."""
    return companion.owner == target.owner and companion.key != companion.owner


def count_unselected(db: Reader, key: QueryKey) -> int:
    """Return the number of companions of the workloads of a policy that no policy selects."""
    return len(db.rows_of(UNSELECTED, tuple(key)))


def count_untargeted(db: Reader, key: QueryKey) -> int:
    """Return the number of Services that select nothing."""
    return len(db.rows_of(UNTARGETED, tuple(key)))


def count_separated(db: Reader, key: QueryKey) -> int:
    """Return the number of companions that do not go where their targets go."""
    return len(db.rows_of(SEPARATED, tuple(key)))
