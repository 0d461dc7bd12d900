"""The objects that workloads of policy APIs consist of, such as those of an Application, in an incremental plan: where one of them has the
path of another object, only a complete plan can tell what clusters get."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.decide.removals import read_removed_placement
from gitsched.render.output_files import STUB_MANIFEST_PATH, relative_path

if TYPE_CHECKING:
    from gitsched.apis.snapshot import Snapshot
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.decide.incremental.own_workloads import OwnWorkload
    from gitsched.model.document import Key
    from gitsched.model.scheduling import Outcome


def have_taken_paths(changes: IncrementalChanges) -> bool:
    """Return whether an object of a workload may have the path of another object now, or had it."""
    outcomes, removed, own, workloads = changes.outcomes, changes.removed, changes.totals.engines.own, changes.continued.own
    changed = {key for key, outcome in outcomes.items() if outcome.manifests is not None}
    paths = Counter(path for one in workloads.values() for path in {relative_path(key) for key, _ in one.outcome.manifests or ()})
    if STUB_MANIFEST_PATH in paths or any(count > 1 for count in paths.values()):
        return True
    same = {key for key in outcomes if _has_same_delivery(key, changes)}
    moving = _list_objects(workloads, (changed | (removed.keys() & own)) - same, changes.snapshot)
    if moving is None:
        return True
    templates = {
        *changes.templates,
        *(key for key in (*outcomes, *removed) if key not in changed and key not in own and key not in same),
    }
    if any(relative_path(key) in paths for key in templates):
        return True
    names = {(one.namespace, one.name) for one in moving}
    return bool(names) and any(
        (key.namespace, key.name) in names and relative_path(key) in paths for key in changes.rows.template_index
    )


def _has_same_delivery(key: Key, changes: IncrementalChanges) -> bool:
    """Return whether the clusters of a workload get the same objects as before, whatever else its outcome says."""
    row, outcome = changes.rows.read_workload(key), changes.outcomes.get(key)
    if (
        row is None
        or outcome is None
        or key in changes.diff.stored_documents
        or key in changes.templates
        or row.outcome.state != outcome.state
    ):
        return False
    return _list_targets(row.outcome) == _list_targets(outcome)


def _list_targets(outcome: Outcome) -> frozenset[tuple[str, bool]]:
    return frozenset((target.cluster, target.evicting) for target in outcome.targets)


def _list_objects(own: Mapping[Key, OwnWorkload], changed: Iterable[Key], snapshot: Snapshot) -> set[Key] | None:
    """Return the objects that changed workloads have or had; None if an earlier one is not known."""
    found: set[Key] = set()
    for key in changed:
        record = snapshot.previous.get(key)
        before = read_removed_placement(record) if record is not None else None
        if before is not None:
            if before.workload.objects is None:
                return None
            found.update(before.workload.objects)
        if key in own:
            found.update(one for one, _ in own[key].outcome.manifests or ())
    return found
