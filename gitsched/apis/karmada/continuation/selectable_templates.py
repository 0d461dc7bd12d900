"""Which templates changed documents may place otherwise where no earlier decision exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.apis.karmada import names
from gitsched.apis.karmada.continuation.cluster_answers import FleetSide, list_changed_clusters, ranks_otherwise
from gitsched.apis.karmada.continuation.policy_changes import POLICY_KINDS, list_waiting_policies, make_selectable
from gitsched.apis.karmada.overrides.override_policy import OVERRIDE_KINDS, OverrideIndex
from gitsched.apis.karmada.policy.propagation_policy import PolicyIndex, PropagationPolicy, parse_policy
from gitsched.model.document import Key

if TYPE_CHECKING:
    from gitsched.apis.capabilities import SnapshotChanges
    from gitsched.apis.karmada.state import KarmadaState

_COMPARED_KINDS = (
    *POLICY_KINDS,
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
    changed = [pair for key, pair in own.items() if key[:2] in POLICY_KINDS]
    indexes = [
        PolicyIndex([*(parse_policy(one) for pair in changed if (one := pair[side]) is not None), *waiting]) for side in (0, 1)
    ]
    ranking = _list_policies_with_other_candidates(before, after)
    overrides = [one for key, pair in own.items() if key[:2] in OVERRIDE_KINDS for one in pair if one is not None]
    # A workload that leaves a cluster before now stays where its overrides cannot be applied for the next one.
    failing = OverrideIndex(overrides, (), after.fleet) if overrides and (before.may_evict or after.may_evict) else None
    found = set()
    for key, entry in changes.template_index.items():
        template = make_selectable(key, entry)
        if (
            any(index.policies and index.list_matching_rules(template) for index in indexes)
            or (ranking and (policy := after.find_policy(template)[0]) is not None and policy.key in ranking)
            or (failing is not None and failing.selects(template))
        ):
            found.add(key)
    return frozenset(found)


def _list_policies_with_other_candidates(before: KarmadaState, after: KarmadaState) -> frozenset[Key]:
    """Return the policies for which a changed Cluster becomes a candidate, ceases to be one, or may be chosen otherwise."""
    changed = list_changed_clusters(before, after)
    if not changed:
        return frozenset()
    sides = FleetSide(before, changed), FleetSide(after, changed)
    policies = after.policies.policies.values()
    return frozenset(policy.key for policy in policies if any(_is_other_candidate(policy, name, sides) for name in changed))


def _is_other_candidate(policy: PropagationPolicy, name: str, sides: tuple[FleetSide, FleetSide]) -> bool:
    """Return whether one Cluster may be chosen otherwise than before, or with other replicas."""
    answers = tuple(side.answer(policy, name) for side in sides)
    former, present = answers
    apis = [candidate and candidate.enabled_apis for candidate in (side.find_candidate(name) for side in sides)]
    if former == present and apis[0] == apis[1]:
        return False
    eligible = [
        (group, [answer is not None and answer.is_eligible(group) for answer in answers])
        for group in range(len(policy.placement.groups))
    ]
    if former is None or present is None or former.unready != present.unready or apis[0] != apis[1]:
        return any(any(both) for _, both in eligible)
    return any(any(both) and (not all(both) or ranks_otherwise(policy, (former, present), group)) for group, both in eligible)
