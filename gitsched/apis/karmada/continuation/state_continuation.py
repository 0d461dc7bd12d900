"""Continue a state with changed policies, override policies, Clusters, ClusterTaintPolicies, rebalancers and reported bindings.

The new state reads all documents of the API again, and takes over what the old one knows of templates. What the old one knows of clusters
is compared with what the new one knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from gitsched.apis.capabilities import DocumentPair, SnapshotChanges
from gitsched.apis.continuation import changes_selection, is_plain, keeps_followers
from gitsched.apis.karmada import names
from gitsched.apis.karmada.autoscalers import NO_AUTOSCALERS, AutoscalerIndex
from gitsched.apis.karmada.binding.resource_binding import binding_key
from gitsched.apis.karmada.continuation.cluster_changes import find_affected_by_clusters
from gitsched.apis.karmada.continuation.policy_changes import (
    find_affected_by_overrides,
    find_affected_by_policies,
)
from gitsched.apis.karmada.overrides.override_policy import OVERRIDE_KINDS
from gitsched.apis.karmada.queue.coupled_decisions import needs_queue
from gitsched.apis.karmada.state import KarmadaState
from gitsched.apis.replicas import AUTOSCALER_KINDS
from gitsched.apis.snapshot import Snapshot
from gitsched.model.document import Document, Key, as_object, get_field
from gitsched.model.template_index import make_selectable
from gitsched.named_tuples import NamedTuple

_REBALANCER = (names.APPS_GROUP, names.REBALANCER)
_QUOTA = (names.POLICY_GROUP, names.QUOTA)
_BINDINGS = ((names.WORK_GROUP, names.BINDING), (names.WORK_GROUP, names.CLUSTER_BINDING))


class ContinuedState(NamedTuple):
    """The state for a new snapshot, the workloads that have to be decided again, what lists the templates with no more than selectors
    read, the templates that are gone, whether the findings about policies stay as they are, and whether the selectors of policies match
    what they have matched."""

    state: KarmadaState
    affected: frozenset[Key]
    list_templates: Callable[[], Iterable[Document]]
    gone: frozenset[Key]
    keeps_warnings: bool
    keeps_selections: bool


def continue_state(before: KarmadaState, snapshot: Snapshot, changes: SnapshotChanges) -> ContinuedState | None:
    """Return the state for a snapshot and the workloads that its changes can affect; None if only a new engine can tell."""
    if not _can_continue(before, snapshot, changes):
        return None
    keeps_policies = not any(key[:2] in names.POLICY_KINDS for key in changes.api_documents)
    after = KarmadaState(snapshot, before, _add_autoscalers(before, changes), keeps_policies=keeps_policies)
    triggers = after.reschedule_triggers
    if not _has_same_needs(before, after):
        return None
    missing = triggers.list_missing(snapshot.templates)
    if missing:
        if any(True for _ in _find_bound(chain(changes.template_index, changes.templates), missing)):
            return None  # upstream finds a workload by the name of its binding
        triggers.absent = missing
    bindings = _list_reported(changes) | triggers.list_concerned(before.reschedule_triggers)
    affected = {
        *find_affected_by_policies(before, after, changes),
        *find_affected_by_overrides(before, after, changes),
        *find_affected_by_clusters(before, after, changes),
        *_find_bound(changes.template_index, bindings),
    }
    removed = frozenset(key for key, (_, template) in changes.templates.items() if template is None)
    keeps_selections = _keep_selections(after, changes)
    has_overrides = any(key[:2] in OVERRIDE_KINDS for key in changes.api_documents)
    keeps_warnings = keeps_policies and not has_overrides and keeps_selections and before.fleet.names == after.fleet.names
    return ContinuedState(
        after, frozenset(affected - removed), lambda: _list_templates(changes), removed, keeps_warnings, keeps_selections
    )


def _keep_selections(after: KarmadaState, changes: SnapshotChanges) -> bool:
    """Return whether no policy selects otherwise, and no other object can be selected. Quotas are not compared."""
    if changes.concerns_all or after.snapshot.part_kinds or changes_selection(changes.templates):
        return False
    return not any(key[:2] == _QUOTA or _selects_otherwise(key, pair) for key, pair in changes.api_documents.items())


def _selects_otherwise(key: Key, pair: DocumentPair) -> bool:
    """Return whether a document comes or goes, or is a policy with other selectors."""
    before, after = pair
    if before is None or after is None:
        return True
    selectors = [get_field(one.body, "spec", "resourceSelectors") for one in (before, after)]
    return key[:2] in (*names.POLICY_KINDS, *OVERRIDE_KINDS) and selectors[0] != selectors[1]


def _can_continue(before: KarmadaState, snapshot: Snapshot, changes: SnapshotChanges) -> bool:
    """Return whether nothing has changed that concerns all workloads or a time at which workloads are scheduled again."""
    return (
        is_plain(snapshot)
        and before.broken_policies is before.broken_overrides is None
        and before.has_settings_of(snapshot.config)
        and not (snapshot.part_kinds and _REBALANCER in snapshot.documents)
        and not (before.settings.gates.quota and any(map(_limits_more, changes.api_documents.items())))
        and keeps_followers(snapshot, changes, has_followers=before.has_followers)
    )


def _limits_more(change: tuple[Key, DocumentPair]) -> bool:
    """Return whether a quota comes or goes, or limits a resource that it did not limit before: nothing has counted the usage of that."""
    key, (before, after) = change
    if key[:2] != _QUOTA:
        return False
    if before is None or after is None:
        return True
    limited = [as_object(get_field(one.body, "spec", "overall")).keys() for one in (before, after)]
    return not limited[1] <= limited[0]


def _has_same_needs(before: KarmadaState, after: KarmadaState) -> bool:
    """Return whether decisions depend on other objects in the same ways, and both times on the Clusters of Karmada alone."""
    if any(before.settings.gates) and needs_queue(before) != needs_queue(after):
        return False
    needs = ((state.has_dependencies, state.brings_dependencies, state.interpreted_kinds) for state in (before, after))
    return len(set(needs)) == 1 and not (before.other_clusters or after.other_clusters)


def _list_templates(changes: SnapshotChanges) -> Iterator[Document]:
    """Yield every template of the new snapshot with what selectors read."""
    yield from (make_selectable(key, entry) for key, entry in changes.template_index.items() if key not in changes.templates)
    yield from (template for _, template in changes.templates.values() if template is not None)


def _add_autoscalers(before: KarmadaState, changes: SnapshotChanges) -> AutoscalerIndex:
    """Return the autoscalers of the new snapshot. An index that has any reads those that changed when it is asked what they affect."""
    if not before.autoscalers.is_empty:
        return before.autoscalers
    added = [
        template for _, template in changes.templates.values() if template is not None and template.key[:2] in AUTOSCALER_KINDS
    ]
    return AutoscalerIndex(added, before.settings.autoscaler_limits == "divide") if added else NO_AUTOSCALERS


def _list_reported(changes: SnapshotChanges) -> frozenset[Key]:
    """Return the bindings, which report health or come from a hub, that have changed in the source."""
    return frozenset(key for key, pair in changes.api_documents.items() if key[:2] in _BINDINGS and _differ(pair))


def _find_bound(templates: Iterable[Key], bindings: frozenset[Key]) -> Iterator[Key]:
    """Yield the templates that have one of these bindings."""
    namespaces = {key.namespace for key in bindings}
    for key in templates if bindings else ():
        if key.namespace in namespaces and binding_key(key) in bindings:
            yield key


def _differ(pair: DocumentPair) -> bool:
    before, after = pair
    return before is None or after is None or before.body != after.body
