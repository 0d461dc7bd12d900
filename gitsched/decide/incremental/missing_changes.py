"""Update for an incremental plan the findings about objects that delivered manifests refer to and that the source does not have.

A plan keeps which objects these are, with those that may create each: `Totals.creators`. Where the source has an object, or what writes it,
that does not go to all clusters of what refers to it, only a complete plan can tell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from gitsched.decide.incremental.written_changes import find_written
from gitsched.decide.relations.assumed_objects import is_assumed, is_preinstalled, may_be_assumed
from gitsched.decide.relations.delivered_objects import NO_CLUSTERS
from gitsched.decide.relations.missing_references import MissingReference
from gitsched.decide.relations.reference_findings import (
    MAX_FINDINGS,
    MAX_NAMES,
    NEEDED_KINDS,
    NOT_DELIVERED,
    NOT_IN_SOURCE,
    make_absent_finding,
    make_unknown_finding,
)
from gitsched.kinds.possible_creators import CHART_KINDS, PossibleCreators
from gitsched.kinds.written_objects import list_written_objects
from gitsched.model.finding import locate_document

if TYPE_CHECKING:
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.decide.incremental.plan_state import PlanRows, ReferenceRow, Totals
    from gitsched.decide.relations.delivered_objects import Clusters
    from gitsched.decide.relations.reference_findings import LocatedFinding
    from gitsched.model.document import Key
    from gitsched.model.finding import Finding, Location

MAX_READ = 500
"""Objects whose documents are read to find out which of them may create or write a missing one; beyond that, a complete plan reads all."""


class MissingChanges(NamedTuple):
    """The findings about references, what the plan keeps of missing objects, and the changed rows of references."""

    findings: tuple[LocatedFinding, ...]
    creators: Mapping[Key, frozenset[Key]]
    rows: Mapping[Key, ReferenceRow]


def lacks_source_objects(references: ReferenceRow, totals: Totals, rows: PlanRows) -> bool:
    """Return whether a workload of the last plan may miss an object that the source has, in one of its clusters."""
    if not references.misses:
        return False
    if references.implied or totals.part_kinds or totals.unused or totals.own or totals.varied:
        return True
    for found, clusters in references.manifests:
        for required in found.requires:
            if required.key in totals.creators:
                continue
            row = rows.read_workload(required.key)
            if row is None and (required.key in rows.template_index or is_reported(required.key, totals)):
                return True
            if row is not None and not clusters <= row.outcome.clusters:
                return True
    return False


def is_reported(key: Key, totals: Totals) -> bool:
    """Return whether a finding of the last plan may say that an object of the source, or what writes it, does not go to some clusters."""
    resources = (finding.resource for _, finding in totals.reference_findings if finding.code == NOT_DELIVERED)
    return any(
        resource is None or resource == key.resource or (not key.namespace and (resource[0], resource[2]) == (key.kind, key.name))
        for resource in resources
    )


def list_absent(references: ReferenceRow, wanted: Collection[Key]) -> Iterator[Key]:
    """Yield those of some objects that a workload refers to."""
    return (required.key for found, _ in references.manifests for required in found.requires if required.key in wanted)


def is_absent(key: Key, changes: IncrementalChanges) -> bool:
    """Return whether the source has no document of an object, and no other object in it may contain or write it."""
    totals = changes.totals
    if totals.part_kinds or changes.snapshot.part_kinds or totals.unused or totals.own or totals.varied or changes.own:
        return False
    return key not in changes.snapshot.templates


def update_missing(
    changes: IncrementalChanges,
    findings: tuple[LocatedFinding, ...],
    references: Mapping[Key, ReferenceRow],
    touched: Collection[Key],
) -> MissingChanges | None:
    """Return the `findings` with those about the `touched` objects, which the source does not have, as they are now; None if only a
    complete plan can tell. `references` are the changed rows."""
    creators, config = dict(changes.totals.creators), changes.totals.config
    settled = [key for key in creators if may_be_assumed(key, config)] if changes.diff.settings is not None else []
    referenced, touched = touched, {*touched, *settled}
    if not touched:
        return MissingChanges(findings, changes.totals.creators, references)
    kinds = {key[:2] for key in touched if key.kind not in NEEDED_KINDS}
    if len({kind for kind in {key[:2] for key in creators} | kinds if kind[1] in {name for _, name in kinds}}) > len(kinds):
        return None  # kinds of several groups have the same name
    if not all(is_absent(key, changes) for key in touched) or any(is_reported(key, changes.totals) for key in touched):
        return None
    shown = sum(finding.code in (NOT_IN_SOURCE, NOT_DELIVERED) for _, finding in findings)
    if shown + len(touched) > MAX_FINDINGS:
        return None
    comparison = _AbsentObjects(changes, references)
    missing = {key: comparison.read(key) for key in sorted(touched)}
    written = find_written(changes, touched, references, MAX_READ)
    if written is None or not all(comparison.is_delivered(key, clusters) for key, clusters in written.items()):
        return None
    missing |= dict.fromkeys(written)
    left = {key: one for key, one in missing.items() if one is not None}
    found = _find_creators(changes, {*referenced, *left} - written.keys(), left)
    if found is None:
        return None
    for key, one in missing.items():
        creators.pop(key, None)
        if one is not None:
            creators[key] = frozenset(found[key].creators)
    about = {key.resource for key in touched}
    names = {name for _, name in kinds}

    def is_updated(finding: Finding) -> bool:
        return finding.code == NOT_IN_SOURCE and (finding.resource in about or (finding.resource or ("",))[0] in names)

    kept = [entry for entry in findings if not is_updated(entry[1])]
    for key, one in sorted(found.items()):
        if key.kind in NEEDED_KINDS and one.reported:
            kept.append((one.referrers[0], make_absent_finding(one, comparison.locate(one))))
    for kind in sorted(kinds):
        listed, count = _list_first(kind, creators, found, comparison)
        if count:
            kept.append((listed[0].referrers[0], make_unknown_finding(listed, count, comparison.locate(listed[0]))))
    rows = dict(references)
    for referrer in {referrer for one in found.values() for referrer in one.referrers}:
        row = rows.get(referrer) or _read_references(changes, referrer)
        rows |= {referrer: row._replace(misses=True)} if row is not None else {}
    return MissingChanges(tuple(kept), dict(sorted(creators.items())), rows)


def _read_references(changes: IncrementalChanges, key: Key) -> ReferenceRow | None:
    row = changes.rows.read_workload(key)
    return row.references if row is not None and key not in changes.removed else None


def _list_first(
    kind: tuple[str, str], creators: Mapping[Key, frozenset[Key]], known: Mapping[Key, MissingReference], objects: _AbsentObjects
) -> tuple[list[MissingReference], int]:
    """Return the first missing objects of a kind that are reported, and the number of all."""
    listed: list[MissingReference] = []
    count = 0
    for key in sorted(key for key in creators if key[:2] == kind):
        one = known.get(key)
        if one is None and (creators[key] or len(listed) < MAX_NAMES):
            one = objects.read(key)
            one = None if one is None else objects.add_creators(one, creators[key])
        if one is not None and not one.reported:
            continue
        count += 1
        if one is not None and len(listed) < MAX_NAMES:
            listed.append(one)
    return listed, count


class _AbsentObjects:
    """What refers to objects that the source does not have, and where, with what changes."""

    def __init__(self, changes: IncrementalChanges, references: Mapping[Key, ReferenceRow]) -> None:
        self._changes, self._references = changes, references
        self._referrers: dict[Key, set[Key]] = {}
        for referrer, row in references.items():
            for key in (required.key for found, _ in row.manifests for required in found.requires):
                self._referrers.setdefault(key, set()).add(referrer)

    def read(self, key: Key) -> MissingReference | None:
        """Return which clusters lack an object; None if none does, or if it may be left out."""
        config, clusters, referrers, expected = self._changes.totals.config, NO_CLUSTERS, [], False
        for referrer in sorted({*self._changes.rows.list_referrers(key), *self._referrers.get(key, ())}):
            absent, needed = self._find_lacking(referrer, key)
            if absent:
                referrers.append(referrer)
                clusters, expected = clusters | absent, expected or needed
        if not expected or is_preinstalled(key, config):
            return None
        return MissingReference(key, clusters, tuple(referrers), in_source=False)

    def _find_lacking(self, referrer: Key, key: Key) -> tuple[Clusters, bool]:
        """Return the clusters in which a workload needs an object that these do not have, and whether one of its manifests expects it."""
        row = self._references.get(referrer) or _read_references(self._changes, referrer)
        lacking, expected = NO_CLUSTERS, False
        for found, clusters in row.manifests if row is not None else ():
            for required in found.requires:
                if required.key == key:
                    absent = frozenset(name for name in clusters if not is_assumed(key, name, self._changes.totals.config))
                    lacking, expected = lacking | absent, expected or (required.expected and bool(absent))
        return lacking, expected

    def is_delivered(self, key: Key, written: Clusters) -> bool:
        """Return whether an object, which a controller writes in some clusters, is in all clusters of what refers to it."""
        referrers = {*self._changes.rows.list_referrers(key), *self._referrers.get(key, ())}
        return all(self._find_lacking(referrer, key)[0] <= written for referrer in referrers)

    def add_creators(self, missing: MissingReference, found: Iterable[Key]) -> MissingReference:
        """Return a missing object with those of some workloads that may create it where it is missing."""
        others = {key: self._list_clusters(key) for key in sorted(set(found).difference(missing.referrers))}
        creators = tuple(key for key, clusters in others.items() if not clusters.isdisjoint(missing.clusters))
        reached = NO_CLUSTERS.union(*(others[key] for key in creators))
        return missing._replace(creators=creators, uncertain=missing.clusters & reached)

    def _list_clusters(self, key: Key) -> Clusters:
        outcome = self._changes.find_outcome(key)
        return outcome.clusters if outcome is not None else NO_CLUSTERS

    def locate(self, missing: MissingReference) -> Location | None:
        """Return where the first workload that refers to an object is defined."""
        key = missing.referrers[0]
        document = self._changes.documents.get(key) or self._changes.snapshot.templates[key]
        return locate_document(document)


def _find_creators(
    changes: IncrementalChanges, touched: Collection[Key], missing: Mapping[Key, MissingReference]
) -> dict[Key, MissingReference] | None:
    """Return missing objects with the delivered ones that may create them; None if an annotation may let a controller write one that is
    `touched`, or if too many documents would have to be read."""
    if not touched:
        return {}
    names, namespaces = {(key.kind, key.name) for key in touched}, {key.namespace for key in touched}
    wanted = []
    for key in dict.fromkeys((*(key for key, _ in changes.rows.template_index.items()), *changes.documents)):
        if key not in changes.snapshot.templates:
            continue
        if not key.group and (key.kind, key.name) in names:
            return None  # it may be copied from another namespace
        if key.namespace in namespaces or key[:2] in CHART_KINDS:
            wanted.append(key)
    if len(wanted) > MAX_READ:
        return None
    creators = PossibleCreators(missing)
    for key in wanted:
        if changes.find_outcome(key) is None:
            continue
        document = changes.documents.get(key) or changes.snapshot.templates[key]
        if not set(touched).isdisjoint(list_written_objects(key, document.body)):
            return None
        creators.add(key, document.body)
    objects = _AbsentObjects(changes, {})
    return {key: objects.add_creators(one, creators.find(key)) for key, one in missing.items()}
