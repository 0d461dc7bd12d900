"""Explanations of `gitsched explain` as plain data: why a workload runs where it does, and what a cluster runs and could run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from gitsched.model.document import Key
from gitsched.model.finding import FieldOrigin, Finding
from gitsched.model.scheduling import CandidateResult


class RejectedPolicy(NamedTuple):
    """A policy that also selects the workload, and why it did not get it."""

    policy: str
    why: str


class GroupAttempt(NamedTuple):
    """One ordered cluster group. `name` is "" for a policy without groups; `verdict` is "scheduled", "no-fit", "unschedulable",
    "error" or "not tried"; `message` says why it was not taken."""

    name: str
    verdict: str
    message: str = ""


class ExplainedCandidate(NamedTuple):
    """How one cluster fared in one group.

    `location` is the file:line of the rule that failed, "" when nobody knows or nothing failed. `group` is "" for a policy without
    groups. `rule` is what `location` can be told more exactly from. `room` is the arithmetic of how many replicas fit, "" where it does
    not matter, `arithmetic` how its score came about, "" where the scores themselves say it.
    """

    result: CandidateResult
    location: str = ""
    group: str = ""
    field: FieldOrigin | None = None
    capacity: str = ""
    score_details: str = ""


class ReplicaShare(NamedTuple):
    """What one cluster gets. `weight` is None where nothing is weighed, `replicas` where nothing is counted."""

    cluster: str
    weight: int | None = None
    replicas: int | None = None


class AppliedOverride(NamedTuple):
    """A policy that changes the manifest in some of the clusters where the workload runs; `changes` names its overriders."""

    policy: str
    location: str
    clusters: tuple[str, ...]
    changes: tuple[str, ...]


class ExplanationTable(NamedTuple):
    """What else was known when it was decided; every row has as many cells as there are columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class ProposedChange(NamedTuple):
    """One change of what somebody wrote: `text` completes "it would be chosen if". `rule` is what `location` can be told more exactly
    from."""

    text: str
    location: str = ""
    field: FieldOrigin | None = None


class Counterfactual(NamedTuple):
    """What would bring a workload to a cluster: all of `changes` together, in the order in which they were found.

    `enough` says that it was decided once more with them, and chosen; then `gets` is how many replicas it had there, None where nothing
    is counted. Without it they are what is in the way as far as is known.
    """

    cluster: str
    changes: tuple[ProposedChange, ...] = ()
    sufficient: bool = False
    replicas: int | None = None


class Explanation(NamedTuple):
    """The whole way of one workload through the scheduler.

    `workload` is the text of its key and `location` its file:line. `policy` is "" where no policy selects it; `policy_reason` says
    why this policy and `claim` what an earlier decision has to do with it. `attempts` are the groups in the order they were tried,
    `candidates` the clusters by name: all of them in the group that was used, and those that a group is for in the others that were
    tried. `selection` are the lines that say what spread constraints made of them. `division` is how the replicas are shared and
    `division_rule` the lines that say by which rule. `trigger` says why the workload was, or was not, scheduled anew; `result` is where
    it runs, and `overrides` what changes its manifest there, in the order in which they are applied. `attached` are the workloads that
    bring it along, with their places. `advice` says what would have to be otherwise for clusters that were not chosen, `unasked` for how
    many more of them nobody looked; `narrowed` says that it is only about some clusters. `among` is what the candidates are; `tables` come
    after the result. `native` is the same as the API's own debugging tools say it, where it has any.
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


class ClusterWorkload(NamedTuple):
    """A workload that runs there; `replicas` None where nothing is counted. `new` says that the plan brings it, `leaving` that only its old
    copy is there for a while."""

    key: Key
    replicas: int | None
    policy: str
    new: bool = False
    evicting: bool = False


class FreeResource(NamedTuple):
    """One resource: what is free by the cluster's own account, and what remains when the plan has been carried out. Texts are as
    Kubernetes writes amounts."""

    resource: str
    free: str
    left: str


class EligibleWorkload(NamedTuple):
    """A workload that may run there: `here` says that it does. `more` replicas fit into what is left, each workload as if it were alone;
    None where nothing is counted, or nobody knows what is free."""

    key: Key
    running: bool
    additional_replicas: int | None


class AbsenceReason(NamedTuple):
    """Why workloads are not there: one reason, how many it keeps away, and the first of them by name."""

    reason: str
    workloads: int
    examples: tuple[Key, ...]


class ClusterExplanation(NamedTuple):
    """A cluster. `stocks` is None where nobody knows what is free. `candidacies` are by namespace and name. `absences` are the most
    frequent first; workloads that could go there and were not chosen, and workloads that nothing selects, are among them."""

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
