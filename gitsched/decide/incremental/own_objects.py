"""The objects that workloads of policy APIs consist of, such as those of an Application, in an incremental plan.

No template has these objects. Only a complete plan can tell how they and other objects concern each other: where they have the same path,
refer to each other, or may be companions of each other because they have the same namespace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from gitsched.decide.incremental.companion_changes import NEVER_RELATED
from gitsched.decide.incremental.plan_state import NO_REFERENCE_ROW
from gitsched.decide.incremental.reference_changes import concerns_others, find_required, has_bindings
from gitsched.decide.removals import read_removed_placement
from gitsched.kinds.companion_kinds import COMPANION_KINDS
from gitsched.kinds.companion_targets import is_far, read_features
from gitsched.kinds.requirements import read_references
from gitsched.model.document import is_known_group
from gitsched.model.references import NO_REFERENCES
from gitsched.render.output_files import STUB_MANIFEST_PATH, relative_path

if TYPE_CHECKING:
    from gitsched.apis.snapshot import Snapshot
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.decide.incremental.own_workloads import OwnWorkload
    from gitsched.decide.incremental.plan_state import PlanRows, ReferenceRow, Totals, WorkloadRow
    from gitsched.decide.relations.delivered_objects import ManifestReferences
    from gitsched.model.document import Key
    from gitsched.model.scheduling import Outcome

_ACCOUNT = ("", "ServiceAccount")


class OwnObjects(NamedTuple):
    """The objects of all such workloads by their keys, with the workload; and of the changed workloads, those that they have or had."""

    owners: Mapping[Key, Key]
    changed: Mapping[Key, frozenset[Key]]

    @property
    def namespaces(self) -> frozenset[str]:
        """The namespaces in which other objects may be related to one of these."""
        return _list_namespaces(self.owners)


def update_own_objects(changes: IncrementalChanges, references: Mapping[Key, ReferenceRow]) -> dict[Key, ReferenceRow] | None:
    """Return the references of all changed workloads, given those of templates; None if only a complete plan can tell what templates and
    the objects of other workloads mean for each other."""
    outcomes, removed, own = changes.outcomes, changes.removed, changes.totals.own
    changed = {key for key, outcome in outcomes.items() if outcome.manifests is not None}
    objects = _read_own_objects(changes.continued.own, changed | (removed.keys() & own), changes.snapshot)
    if objects is None:
        return None
    same = {key: row.references for key in outcomes if (row := _find_same_delivery(key, changes)) is not None}
    decided = (key for key in (*outcomes, *removed) if key not in changed and key not in own and key not in same)
    templates = {*changes.templates, *decided}
    moving = objects._replace(changed={key: found for key, found in objects.changed.items() if key not in same})
    if _have_taken_paths(moving, changes.rows, templates) or not _keeps_companions(moving, changes, templates):
        return None
    if any(_requires(row, objects) for key, row in references.items() if key in templates):
        return None
    updated = _update_references(moving, changes)
    return None if updated is None else {**references, **{key: same[key] for key in objects.changed if key in same}, **updated}


def _find_same_delivery(key: Key, changes: IncrementalChanges) -> WorkloadRow | None:
    """Return the row of a workload whose clusters get the same objects as before, whatever else its outcome says; None for others."""
    row, outcome = changes.rows.read_workload(key), changes.outcomes.get(key)
    if (
        row is None
        or outcome is None
        or key in changes.diff.stored_documents
        or key in changes.templates
        or row.outcome.state != outcome.state
    ):
        return None
    return row if _list_targets(row.outcome) == _list_targets(outcome) else None


def _list_targets(outcome: Outcome) -> frozenset[tuple[str, bool]]:
    return frozenset((target.cluster, target.evicting) for target in outcome.targets)


def _read_own_objects(own: Mapping[Key, OwnWorkload], changed: Iterable[Key], snapshot: Snapshot) -> OwnObjects | None:
    """Return the objects of workloads; None if two objects have the same path, or if an earlier one is not known."""
    owners = {one: key for key, (_, outcome) in own.items() for one, _ in outcome.manifests or ()}
    paths = Counter(path for _, outcome in own.values() for path in {relative_path(one) for one, _ in outcome.manifests or ()})
    if STUB_MANIFEST_PATH in paths or any(count > 1 for count in paths.values()):
        return None
    found: dict[Key, frozenset[Key]] = {}
    for key in changed:
        record = snapshot.previous.get(key)
        objects: set[Key] = set()
        before = read_removed_placement(record) if record is not None else None
        if before is not None:
            if before.workload.objects is None:
                return None
            objects.update(before.workload.objects)
        if key in own:
            objects.update(one for one, _ in own[key].outcome.manifests or ())
        found[key] = frozenset(objects)
    return OwnObjects(owners, found)


def _have_taken_paths(objects: OwnObjects, rows: PlanRows, templates: Iterable[Key]) -> bool:
    """Return whether an object of a changed workload has the path of a template, or a changed template that of one of all objects."""
    paths = {relative_path(one) for one in objects.owners}
    if any(relative_path(key) in paths for key in templates):
        return True
    names = {(one.namespace, one.name) for found in objects.changed.values() for one in found}
    return bool(names) and any((key.namespace, key.name) in names and relative_path(key) in paths for key in rows.template_index)


def _update_references(objects: OwnObjects, changes: IncrementalChanges) -> dict[Key, ReferenceRow] | None:
    """Return the references of changed workloads; None if only a complete plan can tell what they mean for other objects."""
    rows, outcomes, totals, changed_documents = changes.rows, changes.outcomes, changes.totals, changes.diff.api_documents
    updated: dict[Key, ReferenceRow] = {}
    for key, keys in objects.changed.items():
        row, outcome = rows.read_workload(key), outcomes.get(key)
        before = row.references if row is not None else NO_REFERENCE_ROW
        if row is not None and outcome is not None and key not in changed_documents and row.outcome.clusters == outcome.clusters:
            updated[key] = before
            continue
        if before.misses or totals.creators or any(concerns_others(one) or one.kind == "Namespace" for one in keys):
            return None
        if any(not is_known_group(one.group) or (one[:2] == _ACCOUNT and has_bindings(rows)) for one in keys):
            return None
        if any(referrer != key for one in keys for referrer in rows.list_referrers(one)):
            return None
        if outcome is None:
            continue
        manifests = _read_references(outcome, totals)
        if any(references.writes for references, _ in (*before.manifests, *manifests)):
            return None
        own = {one for one, _ in outcome.manifests or ()}
        required = [(one, clusters) for references, clusters in manifests for one in references.requires]
        others = [entry for entry in required if entry[0].key not in own]
        if any(one.key in objects.owners for one, _ in others):
            return None
        found = find_required(changes, before, others)
        if found is None or found.absent:
            return None
        is_required = before.is_required or len(others) < len(required)
        updated[key] = before._replace(manifests=manifests, is_required=is_required)
    return updated


def _requires(row: ReferenceRow, objects: OwnObjects) -> bool:
    """Return whether a workload refers to an object that another one contains."""
    return any(required.key in objects.owners for references, _ in row.manifests for required in references.requires)


def _keeps_companions(objects: OwnObjects, changes: IncrementalChanges, templates: Iterable[Key]) -> bool:
    """Return whether neither the objects of changed workloads nor the changed templates can be companions or targets of other ones."""
    rows, outcomes, totals = changes.rows, changes.outcomes, changes.totals
    keys = frozenset(one for found in objects.changed.values() for one in found)
    if not totals.has_companions:
        return not any(one[:2] in COMPANION_KINDS for one in keys)
    if any(key.namespace in objects.namespaces and key[:2] not in NEVER_RELATED for key in templates):
        return False
    namespaces = _list_namespaces(keys)
    if not namespaces:
        return True
    pod_paths = totals.config.pod_paths
    bodies = (entry for key in objects.changed if key in outcomes for entry in outcomes[key].manifests or ())
    if totals.has_far_companions or any(is_far(one, read_features(one, body, pod_paths)) for one, body in bodies):
        return False
    if any(key.namespace in namespaces and key[:2] not in NEVER_RELATED for key in rows.template_index):
        return False
    owners: dict[str, set[Key]] = {}
    for key, found in (*objects.changed.items(), *((owner, (one,)) for one, owner in objects.owners.items())):
        for namespace in _list_namespaces(found) & namespaces:
            owners.setdefault(namespace, set()).add(key)
    return all(len(found) == 1 for found in owners.values())


def _list_namespaces(keys: Iterable[Key]) -> frozenset[str]:
    return frozenset(key.namespace for key in keys if key[:2] not in NEVER_RELATED)


def _read_references(outcome: Outcome, totals: Totals) -> ManifestReferences:
    """Return the references of the objects of a workload, in the form that a complete plan has them."""
    clusters = outcome.clusters
    if not clusters:
        return ()
    active = clusters - {target.cluster for target in outcome.targets if target.evicting}
    found = (read_references(key, body, totals.config.pod_paths) for key, body in outcome.manifests or ())
    return tuple((references, active) for references in found if references is not NO_REFERENCES)
