"""Explanations of `gitsched explain` as plain data: why a workload runs where it does, and what a cluster runs and could run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from gitsched.model.document import Key, Origin
    from gitsched.model.finding import FieldOrigin, Finding
    from gitsched.model.history import RolloutHistory
    from gitsched.model.rollouts import RolloutStatus
    from gitsched.model.scheduling import CandidateResult
    from gitsched.model.taints import ClusterTaint


class RejectedPolicy(NamedTuple):
    """A policy that also selects the workload, and why it is not used."""

    policy: str
    why: str


class GroupAttempt(NamedTuple):
    """One ordered cluster group. `name` is "" for a policy without groups; `verdict` is "scheduled", "no-fit", "unschedulable",
    "error" or "not tried"; `message` says why the group was not used."""

    name: str
    verdict: str
    message: str = ""


class ExplainedCandidate(NamedTuple):
    """The result for one cluster in one group.

    `location` is the file:line of the rule that failed, "" if unknown or if nothing failed. `group` is "" for a policy without
    groups. `field` gives the exact location. `capacity` is the calculation of how many replicas fit, "" when irrelevant;
    `score_details` is the calculation of its score, "" when the scores are self-explanatory.
    """

    result: CandidateResult
    location: str = ""
    group: str = ""
    field: FieldOrigin | None = None
    capacity: str = ""
    score_details: str = ""


class ReplicaShare(NamedTuple):
    """The share of one cluster. `weight` is None without weights, `replicas` without replicas. `assigned` are those that the API assigns
    where others are delivered, `copied` those of a copy that stays there for an overlap instead; None elsewhere."""

    cluster: str
    weight: int | None = None
    replicas: int | None = None
    assigned: int | None = None
    copied: int | None = None


class AppliedOverride(NamedTuple):
    """A policy that selects a workload, and the clusters of the workload that it applies to, if any. `changes` names its overriders that
    change the manifest in some of them, `unchanged` those that change it in none."""

    policy: str
    location: str
    clusters: tuple[str, ...]
    changes: tuple[str, ...]
    unchanged: tuple[str, ...] = ()


class ExplainedReference(NamedTuple):
    """An object that the workload refers to: `clusters` are those of the workload that it goes to, for the `reason`, and `missing` those
    that lack it."""

    object: str
    clusters: tuple[str, ...]
    missing: tuple[str, ...]
    reason: str


class ExplanationTable(NamedTuple):
    """Further data that the decision used; every row has one cell per column."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class ProposedChange(NamedTuple):
    """One change of a document: `text` completes "it would be chosen if". `field` gives the exact location."""

    text: str
    location: str = ""
    field: FieldOrigin | None = None


class NearSelection(NamedTuple):
    """A policy that selects an object but for one property, as `text`; `field` is the path of the property in the object."""

    text: str
    field: tuple[str, ...]


class Counterfactual(NamedTuple):
    """The changes that would place a workload on a cluster: all of `changes` together, in the order in which they were found.

    `sufficient` means that scheduling again with these changes selects the cluster; then `replicas` is the number of replicas
    there, None without replicas. Otherwise the changes are the known obstacles.
    """

    cluster: str
    changes: tuple[ProposedChange, ...] = ()
    sufficient: bool = False
    replicas: int | None = None


class ExplainedRollout(NamedTuple):
    """A rollout in which clusters have the new content of a workload (`updated`) or the earlier one (`kept`), with their replicas, and
    `lacking` ones have nothing of it yet, with the replicas that they get. Ages count from `now`."""

    status: RolloutStatus
    updated: Mapping[str, int | None]
    kept: Mapping[str, int | None]
    lacking: Mapping[str, int | None]
    history: RolloutHistory
    now: datetime


class ExplainedDelivery(NamedTuple):
    """What clusters have of a workload besides its decision: lines about `copies` that stay for an overlap, and until when, the `rollouts`
    that it waits for, and why its manifest is not edited in place, "" if it is. `is_part`: something else has the object as a part, so that
    policies do not place it. `copied` are the replicas of the copies by cluster."""

    copies: tuple[str, ...] = ()
    rollouts: tuple[ExplainedRollout, ...] = ()
    rewritten: str = ""
    is_part: bool = False
    copied: Mapping[str, int | None] = {}


NOTHING_DELIVERED: Final = ExplainedDelivery()

CLAIM_OF: Final = "the claim of "
POLICY_DELETED: Final = "that policy was deleted"
"""How the claim of a former policy is described: its title follows the first text, and the second one ends the description of a policy
that has no document any more."""


class Explanation(NamedTuple):
    """The complete scheduling of one workload.

    `workload` is the text of its key and `location` its file:line. `policy` is "" when no policy selects it; `policy_reason` says
    why this policy applies and `claim` how a previous decision affects that. `attempts` are the groups in the order in which they
    were tried, `candidates` the clusters by name: all of them for the group that was used, and the clusters of a group for other
    groups that were tried. `selection` are the lines about spread constraints. `division` is the assignment of replicas and
    `division_rule` the lines about its rule. `trigger` says why the workload was, or was not, rescheduled, `rescheduled` which
    request rescheduled it last, "" if none did; `result` are its
    clusters, and `overrides` the changes of its manifest there, in the order in which they apply. `attached_to` are the workloads
    that it depends on for placement, with their locations. `counterfactuals` say what would have to change for clusters that were
    not selected, `unexamined` for how many more this was not computed; `only_some_clusters` means that only some clusters were
    requested. `candidate_kind` is the kind of candidates; `tables` come after the result. `native` is the output of the API's own
    debugging tools, if any. `references` are the objects that the delivered manifests refer to, `targets` those of a companion such as a
    Service, and `targeted_by` the companions of a workload. `origin` is
    where the document of the workload comes from, with the directory that kustomize builds it from and the change that it makes last.
    `delivery` is what clusters have of it that the decision does not say. `state` says whether anything keeps the workload from being
    where its policies want it.
    """

    workload: str
    location: str = ""
    policy: str = ""
    policy_reason: str = ""
    rejected_policies: tuple[RejectedPolicy, ...] = ()
    claim: str = ""
    attempts: tuple[GroupAttempt, ...] = ()
    candidates: tuple[ExplainedCandidate, ...] = ()
    selection: tuple[str, ...] = ()
    division: tuple[ReplicaShare, ...] = ()
    division_rule: tuple[str, ...] = ()
    trigger: str = ""
    rescheduled: str = ""
    result: tuple[ReplicaShare, ...] = ()
    overrides: tuple[AppliedOverride, ...] = ()
    findings: tuple[Finding, ...] = ()
    attached_to: tuple[str, ...] = ()
    candidate_kind: str = "cluster"
    counterfactuals: tuple[Counterfactual, ...] = ()
    unexamined: int = 0
    only_some_clusters: bool = False
    tables: tuple[ExplanationTable, ...] = ()
    native: Mapping[str, Any] | None = None
    references: tuple[ExplainedReference, ...] = ()
    targets: tuple[ExplainedReference, ...] = ()
    targeted_by: tuple[ExplainedReference, ...] = ()
    origin: Origin | None = None
    delivery: ExplainedDelivery = NOTHING_DELIVERED
    state: str = ""

    @property
    def has_no_result(self) -> bool:
        """Whether it says nothing of where the object is, rather than that it is nowhere."""
        return not self.result and (self.only_some_clusters or self.delivery.is_part)

    @property
    def running(self) -> frozenset[str]:
        """The clusters where it runs, those with a copy that stays for an overlap included."""
        return frozenset(share.cluster for share in self.result).union(self.delivery.copied)

    @property
    def title(self) -> str:
        """The workload with its location, and the directory that kustomize builds it from."""
        root, changed_by = (self.origin.root, self.origin.changed_by) if self.origin is not None else ("", "")
        parts = [self.location, root and f"built from {root}", changed_by and f"last changed by {changed_by}"]
        origin = ", ".join(filter(None, parts))
        return f"{self.workload}  ({origin})" if origin else self.workload


class ClusterWorkload(NamedTuple):
    """A workload that runs on the cluster; `replicas` is None without replicas. `new` means that the plan adds it, `evicting`
    that only its old copy remains for a while."""

    key: Key
    replicas: int | None
    policy: str
    new: bool = False
    evicting: bool = False


class FreeResource(NamedTuple):
    """One resource: the free amount that the cluster reports, and the remaining amount after the plan. Texts are Kubernetes
    quantities."""

    resource: str
    free: str
    left: str


class EligibleWorkload(NamedTuple):
    """A workload that may run on the cluster: `running` means that it does. `additional_replicas` fit into the remaining
    capacity, each workload counted alone; None without replicas, or if the capacity is unknown."""

    key: Key
    running: bool
    additional_replicas: int | None


class AbsenceReason(NamedTuple):
    """One reason why workloads do not run on the cluster, their number, and the first of them by name."""

    reason: str
    workloads: int
    examples: tuple[Key, ...]


class ClusterExplanation(NamedTuple):
    """A cluster. `free_resources` is None if unknown. `eligible` are by namespace and name. `absence_reasons` are the most
    frequent first; they include workloads that could run here but were not placed here, and workloads that nothing selects. With
    `is_first`, no run has delivered anything yet."""

    name: str
    location: str
    region: str
    provider: str
    zones: tuple[str, ...]
    labels: Mapping[str, str]
    remarks: tuple[str, ...]
    running: tuple[ClusterWorkload, ...]
    free_resources: tuple[FreeResource, ...] | None
    eligible: tuple[EligibleWorkload, ...]
    absence_reasons: tuple[AbsenceReason, ...]
    taints: tuple[ClusterTaint, ...] = ()
    is_first: bool = False
