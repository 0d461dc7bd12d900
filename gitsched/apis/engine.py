"""The contract between planning and the policy APIs: the snapshot an API reads, the PolicyEngine it implements, its optional
capabilities and its registry entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol, runtime_checkable

from gitsched.apis.gitsched.config import Config
from gitsched.apis.topology import Topology
from gitsched.model.document import Body, Document, Key
from gitsched.model.explanation import Explanation, ProposedChange
from gitsched.model.finding import Finding, Issue
from gitsched.model.planned_files import ClusterInfo
from gitsched.model.scheduling import CandidateResult, Outcome
from gitsched.schedule.estimator import Capacity


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`documents` are those of the APIs' own groups, by (group, kind), in the order of their keys; `templates` are all others, by
    (namespace, name).

    `broken` are identities whose document is quarantined: it has no valid version left, or stands in several places. `at` is the moment
    of the source, `now` what deadlines are compared with. `observations` are what metrics providers said.
    `contested` are the documents that an API would read, were they not several of one identity. `arrival` are the
    identities of all sound documents in the order in which they were read. `once` asks for one cycle of a scheduler, also where the next
    one would decide otherwise; without it decisions are those of which a second look changes nothing.
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
    """A previous output that finds the records of one kind without decoding all others."""

    def of_kind(self, group: str, kind: str) -> Iterator[tuple[Key, Body]]: ...


def list_previous_records(previous: Mapping[Key, Body], group: str, kind: str) -> list[tuple[Key, Body]]:
    """What was decided before about one kind, in the order of the keys."""
    if isinstance(previous, RecordsByKind):
        return sorted(previous.of_kind(group, kind), key=lambda entry: entry[0])
    return sorted(((key, body) for key, body in previous.items() if key[:2] == (group, kind)), key=lambda entry: entry[0])


class PolicyEngine(Protocol):
    """One API over one world. `findings` are about the API's own documents, not about a workload; `wakeup` is the first moment at which
    time alone can change what `own` and `documents` give, or None; `time` is the latest deadline after the source's moment that changed
    one of `documents` in this run, or None."""

    name: str
    findings: tuple[Finding, ...]
    wakeup: datetime | None
    time: datetime | None

    def update(self, world: Snapshot, /) -> bool:
        """Go on in another world that has the same settings: only templates, what was decided before, and the moments differ.

        False where that cannot be done, because more than the decisions about changed templates may differ: a new session is due.
        """
        ...

    def own_workloads(self) -> Iterable[tuple[Document, Outcome]]:
        """Decisions about documents of the API itself that are workloads (a Krake Application, a ManifestWorkReplicaSet)."""
        ...

    def clusters(self) -> Mapping[str, ClusterInfo]:
        """The clusters that have a directory on the output branch."""
        ...

    def records(self) -> Iterable[tuple[Key, Body]]:
        """Records that belong to no workload."""
        ...

    def decide(self, template: Document, /) -> Outcome | None:
        """Decide one workload; None when no policy of this API selects it."""
        ...

    def selects(self, template: Document, /) -> bool:
        """Whether a policy of this API selects a workload."""
        ...

    def keep_previous(self, template: Document, why: str) -> Outcome | None:
        """The previous decision of a workload, unchanged and marked stale; None when there is none."""
        ...

    def evaluate_candidates(self, template: Document, /) -> list[CandidateResult]:
        """How every cluster fares for a workload, in name order; empty when no policy selects it."""
        ...

    def evaluate_own(self, kind: str, name: str, namespace: str, /) -> list[CandidateResult] | None:
        """How every candidate fares for one of the API's own documents, in name order; None when it has no such document."""
        ...

    def explain(self, template: Document) -> Explanation | None:
        """Everything about the decision of a workload."""
        ...


@runtime_checkable
class DependencyTracking(Protocol):
    """What a session offers besides where decisions depend on more than a workload's own document and record: on other workloads, say.

    Such a session asks for the decisions that it needs by itself, so that the order of workloads never matters. `learned` grows whenever
    `further` changes what the session knows: a copy of it that was put away before is out of date.
    """

    @property
    def revision(self) -> int: ...

    def affected_by(self, dirty: frozenset[Key]) -> frozenset[Key]:
        """The workloads that have to be decided anew because these are; asked once after `renew`."""
        ...

    def decision_inputs(self, template: Document) -> tuple[object, ...]:
        """Everything else that the decision about a workload is made from, to be compared with ==; () for most."""
        ...


@runtime_checkable
class CapacityReporting(Protocol):
    """What a session offers besides where clusters have room that workloads use up, so that a simulation can tell what fits together."""

    def free_capacity(self) -> Mapping[str, Capacity | None]:
        """What is free on each cluster; None where nobody knows."""
        ...

    def resource_request(self, template: Document, /) -> tuple[tuple[str, int], ...]:
        """What one replica of a workload uses up, by resource (see `gitsched.schedule.estimator`), its pod included."""
        ...

    def relevant_clusters(self, template: Document, /) -> frozenset[str] | None:
        """The clusters without which the decision about a workload could be another one; None where it could be any."""
        ...


@runtime_checkable
class ReferenceReading(Protocol):
    """What a session offers besides where it reads documents that are of no API's own group: they are no workloads that somebody forgot."""

    def referenced_keys(self) -> Iterable[Key]:
        """Their identities."""
        ...


class InnerPlacement(NamedTuple):
    """What one workload has on places inside a cluster: `shares` by place, and how many are `wanted`.

    `sites` are the nodes of places, as node/NAME.
    """

    desired: int
    placed: Mapping[str, int]
    nodes: Mapping[str, str]


@runtime_checkable
class InnerPlacementReporting(Protocol):
    """What a session offers besides where it places something inside a cluster, so that a simulation can tell what a lost node bears."""

    def inner_placements(self) -> Mapping[Key, InnerPlacement]:
        """Every workload that it places so."""
        ...


class ChangeProposal(NamedTuple):
    """A change of one document, and the document with it; None where it can only be said."""

    change: ProposedChange
    document: Document | None = None


@runtime_checkable
class ChangeProposing(Protocol):
    """What a session offers besides where it knows what is in the way of a workload."""

    def propose(self, template: Document, cluster: str, /) -> ChangeProposal | None:
        """The next, smallest change that would bring a workload nearer to a cluster; None where it knows none."""
        ...


@runtime_checkable
class Rescheduling(Protocol):
    """What a session offers besides where workloads stay because of what was decided before, though the rules would have them elsewhere."""

    def make_rescheduling_document(self, templates: Iterable[Document], /) -> Document:
        """What somebody would commit to have workloads placed anew."""
        ...

    def describe_remedy(self, template: Document, stays: Outcome, anew: Outcome | None, wanted: Outcome, /) -> str:
        """What brings a workload that stays to where it is wanted; `anew` is what came of asking."""
        ...


DocumentValidator = Callable[[Body], Iterator[Issue]]
"""What is wrong with a document that its schema has no objection to."""


class PolicyAPI(NamedTuple):
    """One policy API, as the registry knows it.

    `groups` are the API groups whose documents it reads and that are never placed. `is_used` says, cheaply, whether a world has anything
    for it; `open` makes its session (and imports what that needs). `default` gives a document as its server would store it. `rules` gives,
    for a group and a kind, what a schema cannot say about a defaulted document (and imports what that needs). `waive` names the codes of
    those that settings turn off. `sites` are its documents that stand for clusters, None where it has none. `resumes` says that its
    session may be put away and taken out again in another process: it keeps nothing of its world but what `renew` replaces. `choices` are
    the clusters that its documents which place nothing themselves chose, by the records of a plan; None where it has no such documents.
    """

    name: str
    groups: frozenset[str]
    is_used: Callable[[Snapshot], bool]
    create_engine: Callable[[Snapshot], PolicyEngine]
    apply_defaults: Callable[[Body], Body]
    find_validator: Callable[[str, str], DocumentValidator | None]
    ignored_codes: Callable[[Config], frozenset[str]] = lambda _: frozenset()
    topology: Topology | None = None
    serializable: bool = False
    chosen_clusters: Callable[[Mapping[Key, Body]], Mapping[Key, frozenset[str]]] | None = None
