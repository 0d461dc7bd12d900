"""Which templates changed documents may place otherwise where no earlier decision exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.apis.karmada import names
from gitsched.apis.karmada.continuation.fleet_comparison import FleetComparison, WorkloadApi
from gitsched.apis.karmada.continuation.policy_changes import index_policies, list_waiting_policies
from gitsched.apis.karmada.overrides.override_policy import OVERRIDE_KINDS, OverrideIndex
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.model.document import Document, Key
from gitsched.model.template_index import make_selectable

if TYPE_CHECKING:
    from gitsched.apis.capabilities import SnapshotChanges
    from gitsched.apis.karmada.state import KarmadaState

_COMPARED_KINDS = (
    *names.POLICY_KINDS,
    *OVERRIDE_KINDS,
    (names.CLUSTER_GROUP, names.CLUSTER),
    (names.POLICY_GROUP, names.TAINT_POLICY),
    (names.APPS_GROUP, names.REBALANCER),  # requests nothing of what has never been scheduled
)


def find_selectable(before: KarmadaState, after: KarmadaState, changes: SnapshotChanges) -> frozenset[Key] | None:
    """Return the templates that the documents of `after` may place otherwise than those of `before`, both without records and without
    decisions that depend on other templates. The limits of autoscalers choose no cluster. None if other documents changed."""
    own = {key: pair for key, pair in changes.api_documents.items() if key.group in names.GROUPS}
    if any(key[:2] not in _COMPARED_KINDS for key in own):
        return None
    waiting = list_waiting_policies(before, after)
    changed = [pair for key, pair in own.items() if key[:2] in names.POLICY_KINDS]
    indexes = [index_policies((pair[side] for pair in changed), waiting) for side in (0, 1)]
    ranking = _list_policies_with_other_candidates(before, after)
    overrides = [one for key, pair in own.items() if key[:2] in OVERRIDE_KINDS for one in pair if one is not None]
    # A workload that leaves a cluster before now stays where its overrides cannot be applied for the next one.
    failing = OverrideIndex(overrides, (), after.fleet) if overrides and (before.may_evict or after.may_evict) else None
    found = set()
    for key, entry in changes.template_index.items():
        template = make_selectable(key, entry)
        if (
            any(index.policies and index.list_matching_rules(template) for index in indexes)
            or (ranking and (key in after.snapshot.variants or _is_listed(after, template, ranking)))
            or (failing is not None and failing.selects(template))
        ):
            found.add(key)
    return frozenset(found)


def _list_policies_with_other_candidates(before: KarmadaState, after: KarmadaState) -> frozenset[tuple[Key, WorkloadApi]]:
    """Return the policies, each with an apiVersion and kind, whose first placement may be another one because of changed Clusters."""
    fleets = FleetComparison(before, after)
    if not fleets.changed:
        return frozenset()
    return frozenset(
        (policy.key, api)
        for policy in after.policies.policies.values()
        for api in _list_selected_apis(policy)
        if (differing := fleets.list_differing(policy, api, 0, range(len(policy.placement.groups)))) is None or differing.new
    )


def _is_listed(after: KarmadaState, template: Document, policies: frozenset[tuple[Key, WorkloadApi]]) -> bool:
    policy = after.find_policy(template)[0]
    return policy is not None and (policy.key, (template.api_version, template.key.kind)) in policies


def _list_selected_apis(policy: PropagationPolicy) -> set[WorkloadApi]:
    """Return the apiVersion and kind of what a policy selects."""
    selectors = policy.spec.get("resourceSelectors") or ()
    return {(str(selector.get("apiVersion")), str(selector.get("kind"))) for selector in selectors}
