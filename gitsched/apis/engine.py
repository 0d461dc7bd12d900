"""The contract between planning and the policy APIs: the Snapshot that an API reads, the PolicyEngine that it implements and its optional
capabilities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol, runtime_checkable

from gitsched.apis.gitsched.config import Config
from gitsched.model.document import Body, Document, Key
from gitsched.model.explanation import ExplainedCandidate, Explanation, ProposedChange, ReplicaShare
from gitsched.model.finding import Finding
from gitsched.model.planned_files import ClusterInfo
from gitsched.model.scheduling import CandidateResult, Outcome
from gitsched.schedule.estimator import Capacity


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The complete input of one scheduling run.

    `documents` are those of the policy APIs' own groups, by (group, kind), sorted by key; `templates` are all other documents by key, in
    the order of namespace and name. `quarantined` are the keys of documents that are broken or defined more than once. `previous` are the
    records of the previous output. `at` is the time of the source commit and `now` the time that deadlines are compared with.
    `observations` are the values that metrics providers returned. `duplicates` are the copies of documents that are defined more than
    once. `input_order` lists the keys of all valid documents in the order in which they were read. `single_cycle` asks for one cycle of
    the scheduler even if the next one would decide otherwise; without it decisions are repeated until they are stable.
    """

    documents: Mapping[tuple[str, str], tuple[Document, ...]]
    templates: Mapping[Key, Document]
    quarantined: frozenset[Key]
    previous: Mapping[Key, Body]
    config: Config
    at: datetime
    now: datetime
    observations: Mapping[Any, Any] = field(default_factory=dict)
    duplicates: Mapping[Key, tuple[Document, ...]] = field(default_factory=dict)
    input_order: tuple[Key, ...] = ()
    single_cycle: bool = False


@runtime_checkable
class RecordsByKind(Protocol):
    """Previous records that can list one kind without decoding all others."""

    def of_kind(self, group: str, kind: str) -> Iterator[tuple[Key, Body]]: ...


def list_previous_records(previous: Mapping[Key, Body], group: str, kind: str) -> list[tuple[Key, Body]]:
    """Return the previous records of one kind, sorted by key."""
    if isinstance(previous, RecordsByKind):
        return sorted(previous.of_kind(group, kind), key=lambda entry: entry[0])
    return sorted(((key, body) for key, body in previous.items() if key[:2] == (group, kind)), key=lambda entry: entry[0])


class PolicyEngine(ABC):
    """The decisions of one policy API over one snapshot.

    An API implements `decide` and `clusters`; everything else has a default. What only some APIs can do is a capability: a protocol below
    that the engine implements as well.

    `findings` are about the API's own documents. `wakeup` is the first time after which `own_workloads`, `records` or `clusters` differ
    without a change of the input; None if there is none. `time` is the latest deadline after the commit that changed one of `records` in
    this run; None if there is none.
    """

    name: str
    findings: tuple[Finding, ...] = ()
    wakeup: datetime | None = None
    time: datetime | None = None

    @abstractmethod
    def decide(self, template: Document, /) -> Outcome | None:
        """Decide one workload; None when no policy of this API selects it."""

    @abstractmethod
    def clusters(self) -> Mapping[str, ClusterInfo]:
        """Return the clusters that have a directory on the output branch, by name."""

    def records(self) -> Iterable[tuple[Key, Body]]:
        """Return the records that belong to no workload."""
        return ()

    def own_workloads(self) -> Iterable[tuple[Document, Outcome]]:
        """Return the decisions about the API's own documents that are workloads, such as a Krake Application."""
        return ()

    def selects(self, template: Document, /) -> bool:
        """Return whether a policy of this API selects a workload."""
        return self.decide(template) is not None

    def keep_previous(self, template: Document, why: str, /) -> Outcome | None:  # noqa: ARG002 - nothing is kept by default
        """Return the previous decision of a workload whose document is broken, unchanged and marked stale; None when there is none."""
        return None

    def update(self, snapshot: Snapshot, /) -> bool:  # noqa: ARG002 - a new engine is made by default
        """Continue with another snapshot in which only templates, previous records and times differ.

        Return False if that is impossible, for example because decisions about other documents may differ: a new engine is made then.
        """
        return False

    def evaluate_candidates(self, template: Document, /) -> list[CandidateResult]:  # noqa: ARG002 - optional
        """Return the result of every cluster for a workload, by name; empty when no policy selects it."""
        return []

    def evaluate_own(self, kind: str, name: str, namespace: str, /) -> list[CandidateResult] | None:  # noqa: ARG002 - optional
        """Return the result of every candidate for one of the API's own documents, by name; None when there is no such document."""
        return None

    def explain(self, template: Document, /) -> Explanation | None:
        """Explain the decision about a workload; None when no policy of this API selects it."""
        outcome = self.decide(template)
        return None if outcome is None else explain_outcome(template, outcome, self.evaluate_candidates(template))


def explain_outcome(template: Document, outcome: Outcome, candidates: Iterable[CandidateResult] = ()) -> Explanation:
    """Return the explanation that follows from an outcome and the results of the candidates alone."""
    return Explanation(
        str(template.key),
        location=f"{template.origin.path}:{template.origin.line}" if template.origin is not None else "",
        policy=outcome.policy,
        policy_reason=outcome.reason,
        candidates=tuple(ExplainedCandidate(result) for result in candidates),
        trigger=outcome.trigger,
        result=tuple(ReplicaShare(target.cluster, None, target.replicas) for target in outcome.targets),
        findings=outcome.findings,
    )


@runtime_checkable
class DependencyTracking(Protocol):
    """Capability of an engine whose decisions depend on more than a workload's document and record, for example on other workloads.

    Such an engine obtains the decisions that it needs by itself, so the order of workloads has no effect. `revision` grows whenever
    `affected_by` changes the state of the engine: a copy that was stored before is out of date.
    """

    @property
    def revision(self) -> int: ...

    def affected_by(self, dirty: frozenset[Key]) -> frozenset[Key]:
        """Return the workloads that have to be decided again because these are; called once after `update`."""
        ...

    def decision_inputs(self, template: Document) -> tuple[object, ...]:
        """Return all other inputs of the decision about a workload, to be compared with ==; () for most workloads."""
        ...


@runtime_checkable
class CapacityReporting(Protocol):
    """Capability of an engine whose clusters have capacity that workloads use, so that a simulation can report what fits together."""

    def free_capacity(self) -> Mapping[str, Capacity | None]:
        """Return the free capacity of each cluster; None if it is unknown."""
        ...

    def resource_request(self, template: Document, /) -> tuple[tuple[str, int], ...]:
        """Return the resources that one replica of a workload uses, its pod included (see `gitsched.schedule.estimator`)."""
        ...

    def relevant_clusters(self, template: Document, /) -> frozenset[str] | None:
        """Return the clusters whose removal could change the decision about a workload; None if any cluster could."""
        ...


@runtime_checkable
class ReferenceReading(Protocol):
    """Capability of an engine that reads documents outside the API's own groups: these are not counted as unclaimed workloads."""

    def referenced_keys(self) -> Iterable[Key]:
        """Return the keys of those documents."""
        ...


class InnerPlacement(NamedTuple):
    """Placement of one workload inside a cluster: `desired` replicas, those `placed` by location, and the `nodes` (node/NAME) of the
    locations."""

    desired: int
    placed: Mapping[str, int]
    nodes: Mapping[str, str]


@runtime_checkable
class InnerPlacementReporting(Protocol):
    """Capability of an engine that places something inside a cluster, so that a simulation can report the effect of a lost node."""

    def inner_placements(self) -> Mapping[Key, InnerPlacement]:
        """Return the placement of every such workload."""
        ...


class ChangeProposal(NamedTuple):
    """A proposed change and the document after it; None for a change that can only be described."""

    change: ProposedChange
    document: Document | None = None


@runtime_checkable
class ChangeProposing(Protocol):
    """Capability of an engine that can say which change of a document would bring a workload to a cluster."""

    def propose(self, template: Document, cluster: str, /) -> ChangeProposal | None:
        """Return the next, smallest change that would bring a workload nearer to a cluster; None if none is known."""
        ...


@runtime_checkable
class Rescheduling(Protocol):
    """Capability of an engine where workloads keep clusters that the current policies would not choose."""

    def make_rescheduling_document(self, templates: Iterable[Document], /) -> Document:
        """Return the document to commit so that workloads are scheduled again."""
        ...

    def describe_remedy(self, template: Document, kept: Outcome, rescheduled: Outcome | None, expected: Outcome, /) -> str:
        """Describe how a workload that keeps its clusters moves to the `expected` ones; `rescheduled` is the result of rescheduling it."""
        ...
