"""Which workloads changed policies and override policies can affect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import DocumentPair, SnapshotChanges
from gitsched.apis.karmada import names
from gitsched.apis.karmada.overrides.override_policy import OVERRIDE_KINDS, OverrideIndex
from gitsched.apis.karmada.policy.policy_options import list_missing_overrides
from gitsched.apis.karmada.policy.propagation_policy import PolicyIndex, PropagationPolicy, parse_policy
from gitsched.model.document import Document, Key
from gitsched.model.template_index import PlacementSummary, TemplateEntry, make_selectable
from gitsched.schedule.fleet import Fleet

if TYPE_CHECKING:
    from gitsched.apis.karmada.state import KarmadaState


def find_affected_by_policies(before: KarmadaState, after: KarmadaState, changes: SnapshotChanges) -> Iterator[Key]:
    """Yield the templates that a changed policy claimed, selected or selects.

    A settled workload of another policy is not affected: that policy has claimed it, unless preemption is enabled. A policy changes as
    well if an override policy that it depends on comes or goes. One that only moves within its file concerns the workloads for which
    something is reported, perhaps at its line.
    """
    documents = {key: pair for key, pair in changes.api_documents.items() if key[:2] in names.POLICY_KINDS}
    moved = {key.title for key, pair in documents.items() if _only_moves(pair)}
    changed = [pair for key, pair in documents.items() if key.title not in moved]
    waiting = list_waiting_policies(before, after)
    if not documents and not waiting:
        return
    former, present = (index_policies((pair[side] for pair in changed), waiting) for side in (0, 1))
    titles = {key.title for key in (*former.policies, *present.policies)}
    for key, entry in changes.template_index.items():
        placement = entry.placement
        if placement is not None and placement.policy in titles:
            yield key
        elif placement is not None and placement.policy in moved:
            if not placement.is_settled:
                yield key
        elif after.settings.preemption or not is_claimed(placement):
            template = make_selectable(key, entry)
            if former.list_matching_rules(template) or present.list_matching_rules(template):
                yield key


def index_policies(documents: Iterable[Document | None], more: Iterable[PropagationPolicy]) -> PolicyIndex:
    """Return some policies, given the documents of one side of changes and others."""
    return PolicyIndex([*(parse_policy(document) for document in documents if document is not None), *more])


def is_claimed(placement: PlacementSummary | None) -> bool:
    """Return whether the binding of a workload names its policy, so that it stays with it as long as that policy selects it."""
    return placement is not None and placement.is_settled and placement.policy != "" and placement.api == names.API_NAME


def list_waiting_policies(before: KarmadaState, after: KarmadaState) -> list[PropagationPolicy]:
    """Return the policies for which override policies are missing that were there before, or the other way round."""
    return [
        policy
        for policy in after.policies.policies.values()
        if policy.has_prerequisites
        and list_missing_overrides(policy, before.overrides) != list_missing_overrides(policy, after.overrides)
    ]


def find_affected_by_overrides(before: KarmadaState, after: KarmadaState, changes: SnapshotChanges) -> Iterator[Key]:
    """Yield the workloads that a changed override policy selects and that are in clusters which it names, before or now."""
    changed = {key: pair for key, pair in changes.api_documents.items() if key[:2] in OVERRIDE_KINDS}
    if not changed:
        return
    former = _ClusterOverrides((pair[0] for pair in changed.values()), before.fleet)
    present = _ClusterOverrides((pair[1] for pair in changed.values()), after.fleet)
    for key, entry in changes.template_index.items():
        if entry.placement is not None and (former.concern(key, entry) or present.concern(key, entry)):
            yield key


class _ClusterOverrides:
    """Some override policies, and the clusters that their rules name."""

    def __init__(self, documents: Iterable[Document | None], fleet: Fleet) -> None:
        self._index = OverrideIndex([document for document in documents if document is not None], (), fleet)
        masks = (
            fleet.all if rule.affinity is None else fleet.matching(rule.affinity)
            for policy in self._index.policies
            for rule in policy.rules
        )
        clusters = {fleet.names[position] for mask in masks for position in fleet.members(mask)}
        self._clusters = frozenset(clusters)

    def concern(self, key: Key, entry: TemplateEntry) -> bool:
        """Return whether a policy may change the manifest of a workload, or what is reported about it."""
        placement = entry.placement
        if placement is None:
            return False
        if placement.is_settled and self._clusters.isdisjoint(placement.clusters) and key.name not in self._index.names:
            return False
        return self._index.selects(make_selectable(key, entry))


def _only_moves(pair: DocumentPair) -> bool:
    before, after = pair
    return before is not None and after is not None and before.body == after.body
