"""Optional capabilities of a policy engine: protocols that an engine implements as well."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.gitsched.tenancy import Tenancy
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.apis.snapshot import Snapshot
    from gitsched.model.changes import Cause
    from gitsched.model.document import Document, Key
    from gitsched.model.explanation import NearSelection, ProposedChange
    from gitsched.model.finding import Finding
    from gitsched.model.placement_groups import PlacementGroups
    from gitsched.model.scheduling import EqualPods, Outcome
    from gitsched.model.source_edits import SourceEdits
    from gitsched.model.template_index import TemplateIndex
    from gitsched.schedule.estimator import Capacity
    from gitsched.schedule.shared_capacity import SharedCapacity


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
class PolicyReading(Protocol):
    """Capability of an engine that tells what a decision reads of policies. `policy_kinds` are the groups and kinds of these."""

    policy_kinds: tuple[tuple[str, str], ...]

    def list_policy_inputs(self, template: Document) -> tuple[object, ...] | None:
        """Return what the decision about a workload reads of policies, to be compared with ==; None if the decision depends on others,
        which may be decided by any policy."""
        ...


DocumentPair = tuple["Document | None", "Document | None"]
"""A document before and after a change; None where it does not exist."""


class SnapshotChanges(NamedTuple):
    """The documents that differ between the snapshot of the last plan and that of the next one, by key.

    `api_documents` are those of policy APIs, of all groups; `templates` are all others. `template_index` has what selectors read of every
    template of the last plan; `read_outcome` returns the outcome of a workload in the last plan, without its records and bodies, None if
    no policy selected it. Reading all templates of the snapshot costs as much as a complete plan. `concerns_all` says that something else
    differs, too: the records that the last plan wrote, observations, or which objects kustomizations change. `groups` are the workloads
    of `template_index`, None if they are not grouped yet. `former_tenancy` are the Tenants of the last plan if the rules of some changed.
    """

    api_documents: Mapping[Key, DocumentPair]
    templates: Mapping[Key, DocumentPair]
    template_index: TemplateIndex
    read_outcome: Callable[[Key], Outcome | None]
    concerns_all: bool = False
    groups: PlacementGroups | None = None
    former_tenancy: Tenancy | None = None


class Continuation(NamedTuple):
    """An engine for the new snapshot, the same object or another one, and the workloads that have to be decided again.

    `affected` are all templates whose outcome may differ, besides those that changed themselves: more is allowed, fewer never.
    """

    engine: PolicyEngine
    affected: frozenset[Key]


@runtime_checkable
class Continuing(Protocol):
    """Capability of an engine that continues with changed documents of policy APIs, so that only affected workloads are decided again."""

    def continue_with(self, snapshot: Snapshot, changes: SnapshotChanges, /) -> Continuation | None:
        """Return the engine for another snapshot; None if only a new engine and a complete plan can tell what is affected.

        It takes the place of `update` if a document of a policy API changed, if templates came or went or have other labels, or if the last
        plan changed one of `records`, which are then those of the previous output. A refused engine is discarded, so it may be half
        updated. `findings`, `records`, `clusters`, `wakeup` and `time` of the returned engine are those of a new engine for the snapshot. A
        DependencyTracking engine is asked afterwards what depends on the changed and affected workloads.
        """
        ...


@runtime_checkable
class SelectionTracking(Protocol):
    """Capability of an engine that can say what changed documents may place otherwise, whatever earlier runs decided."""

    @property
    def reads_other_templates(self) -> bool:
        """Whether the decision about a workload may depend on other templates than its own."""
        ...

    def list_selectable(self, before: PolicyEngine, after: PolicyEngine, changes: SnapshotChanges, /) -> frozenset[Key] | None:
        """Return the templates that `after` may place in other clusters than `before` does; None if this cannot be told.

        Both are new engines of the API for snapshots without records, whose templates can only be read one by one: what depends on all
        templates is known to this engine alone. Return None where a decision about a template of a policy depends on others.
        `api_documents` and `templates` are what differs between the two snapshots; `template_index` is that of the later one. Templates
        that changed themselves may be left out.
        """
        ...


@runtime_checkable
class CapacityReporting(Protocol):
    """Capability of an engine whose clusters have capacity that workloads use, so that a simulation can report what fits together."""

    def free_capacity(self) -> Mapping[str, Capacity | None]:
        """Return the free capacity of each cluster; None if it is unknown."""
        ...

    def resource_request(self, template: Document, cluster: str, /) -> tuple[tuple[str, int], ...]:
        """Return the resources that one replica of a workload uses in a cluster, its pod included (see `gitsched.schedule.estimator`); of a
        Bundle that is placed as a whole set, those of the set."""
        ...

    def relevant_clusters(self, template: Document, /) -> frozenset[str] | None:
        """Return the clusters whose removal could change the decision about a workload; None if any cluster could."""
        ...

    def list_concerned(self, index: TemplateIndex, clusters: frozenset[str], /) -> frozenset[Key]:
        """Return the workloads of the last plan to which one of these clusters may be relevant: more is allowed, fewer never."""
        ...


class ClusterCapacity(NamedTuple):
    """The capacity of a cluster: what is free, what it has in `total`, None if that is unknown, and when both were `observed`, None if
    nothing says so."""

    free: Capacity
    total: Capacity | None
    observed: datetime | None


class QueuePosition(NamedTuple):
    """When a workload is decided, as a value that sorts, and whether its replicas follow capacity."""

    order: tuple[Any, ...]
    follows_capacity: bool


class Coupling(NamedTuple):
    """Outcomes that count for others besides capacity, such as by a quota: the workloads that are `counted`, and the `members` that have to
    be decided one after the other because their outcomes may not go together. Which ones are can be said of all but the `unclear` ones
    without an outcome."""

    counted: frozenset[Key] = frozenset()
    members: frozenset[Key] = frozenset()
    unclear: frozenset[Key] = frozenset()


@runtime_checkable
class CapacitySharing(Protocol):
    """Capability of an engine where what is placed counts for what is placed next: it takes free capacity, or what else workloads share."""

    def list_capacities(self) -> Mapping[str, ClusterCapacity]:
        """Return the clusters with a known capacity, by name; none if replicas do not share capacity."""
        ...

    def find_queue_position(self, template: Document, /) -> QueuePosition | None:
        """Return when a workload is decided; None if no policy of the API selects it."""
        ...

    def measure_pods(self, template: Document, replicas: Mapping[str, int | None], /) -> Mapping[str, tuple[EqualPods, ...]]:
        """Return the pods of a workload of any API in clusters, given its replicas there, None for as many as it has itself, or the number
        of sets if it is placed whole."""
        ...

    def share_capacity(self, template: Document, shared: SharedCapacity, /) -> None:
        """Decide a workload from now on with what is left at this moment, of the shared capacity and of what else workloads share."""
        ...

    def join(self, engines: Iterable[PolicyEngine], /) -> None:
        """Know the engines of the API for all owners of a source with tenants, this one included: what their workloads take counts here."""
        ...

    def find_coupling(self, outcomes: Mapping[Key, Outcome], postponed: frozenset[Key] = frozenset(), /) -> Coupling:
        """Return which of some outcomes count for others besides capacity, and which have to be decided in turns. Workloads whose decision
        is `postponed` have no outcome yet, and had none in the last run."""
        ...

    def begin_turns(self, removed: Iterable[Key], /) -> None:
        """Begin to count outcomes, with what the last run has left without some removed workloads."""
        ...

    def count(self, key: Key, outcome: Outcome | None, /) -> None:
        """Count the outcome of a workload for those whose turns come after it."""
        ...

    def list_limited(self) -> frozenset[Key]:
        """Return the workloads that would be placed otherwise if others took less of what they share besides capacity."""
        ...

    def follow_shares(self) -> None:
        """Let records and findings about workloads follow the decisions that `share_capacity` has changed."""
        ...

    def reads_capacity(self, outcome: Outcome, /) -> bool:
        """Return whether an outcome says what would fit elsewhere, though nothing is placed there: it depends on what others take."""
        ...


@runtime_checkable
class TurnPostponing(Protocol):
    """Capability of an engine that can tell of workloads without an outcome that they will be decided in turns."""

    def list_certain_turns(self) -> frozenset[Key]:
        """Return new workloads that are almost certainly decided in turns."""
        ...

    def may_reach(self, template: Document, clusters: Iterable[str], /) -> bool:
        """Return whether a workload that has no cluster yet may get one of these."""
        ...

    def outside_turns(self) -> AbstractContextManager[None]:
        """Decide alone, as if no other workload had had a turn."""
        ...


@runtime_checkable
class AvailabilityReporting(Protocol):
    """Capability of an engine that knows which clusters cannot run workloads, so that leaving them is failover."""

    def unavailable_clusters(self) -> Mapping[str, str]:
        """Return the clusters that a taint, a condition or a state makes unavailable, with the reason."""
        ...

    def clusters_reported_unready(self) -> Collection[str]:
        """Return the unavailable clusters about which only reported facts say so: conditions, states, and taints of controllers."""
        ...


class HealthReport(NamedTuple):
    """What a cluster reports about a workload, and when it was reported at the latest."""

    is_healthy: bool
    time: datetime


@runtime_checkable
class HealthReporting(Protocol):
    """Capability of an engine that reads from the source or from commit statuses whether workloads are healthy in their clusters."""

    def list_health_reports(self, workload: Key, /) -> Mapping[str, HealthReport]:
        """Return the last report of each cluster about a workload; empty if no cluster reports."""
        ...


@runtime_checkable
class SharedDecisions(Protocol):
    """Capability of an engine whose workloads follow decisions that they share with others, such as that of a Placement."""

    def list_shared_records(self, document: Document, /) -> Mapping[Key, frozenset[Key]]:
        """Return the decisions that a workload follows, by the key of the document that they are about, each with the keys of its records
        now and in the previous output."""
        ...


@runtime_checkable
class ObservationFollowing(Protocol):
    """Capability of an engine whose decisions may change without an edit of the source: with a metric, a score, a status or a timer."""

    def list_observed_decisions(self, document: Document, edits: SourceEdits, /) -> frozenset[Key]:
        """Return the decisions that a workload follows, by the keys of the documents that they are about, if nothing but observations and
        time can have changed its clusters since the last run: no edit of the source and no request. Else return an empty set."""
        ...


@runtime_checkable
class ReferenceReading(Protocol):
    """Capability of an engine that reads documents outside the API's own groups: these are not counted as unclaimed workloads."""

    def referenced_keys(self) -> Iterable[Key]:
        """Return the keys of those documents."""
        ...


@runtime_checkable
class InputListing(Protocol):
    """Capability of an engine whose decisions may depend on other templates than the one that is decided."""

    def list_inputs(self) -> Iterable[Key]:
        """Return the keys of all templates on which decisions about others may depend. A new engine for these and for one more template
        decides that one as this engine does."""
        ...


@runtime_checkable
class DependencyDelivering(Protocol):
    """Capability of an engine that can deliver the objects that a workload refers to together with it."""

    def describe_delivery(self, template: Document, key: Key, /) -> str:
        """Return the change that would deliver an object together with a workload, such as a setting of its policy; "" if there is none."""
        ...


@runtime_checkable
class CompanionSelecting(Protocol):
    """Capability of an engine whose policies can select companions of a workload, such as its Service."""

    def describe_selection(self, template: Document, companions: Iterable[Document], /) -> str:
        """Return the change after which the policy of a workload selects its companions as well."""
        ...


@runtime_checkable
class NearSelecting(Protocol):
    """Capability of an engine whose policies select workloads: it can say which of them nearly selects an object, or selects nothing."""

    def describe_near_selections(self, templates: Iterable[Document], /) -> Mapping[Key, NearSelection]:
        """Return what the nearest policy selects, and what an object has instead; only for objects with such a policy."""
        ...

    def describe_lost_selection(self, policy: Key, workloads: Collection[Key], /) -> Cause | None:
        """Return why it may be a mistake that a policy no longer selects workloads: it has a selector that matches nothing and is similar
        to something, or selects nothing at all, maybe in another namespace. None for a policy that is gone, or that selects others."""
        ...

    def find_policies_without_effect(
        self, applying: Collection[str], list_workloads: Callable[[], Iterable[tuple[Document, str]]], /
    ) -> Iterable[Finding]:
        """Return a finding for each policy that selects objects, all of which other policies apply to. `applying` are the titles of the
        policies that apply to anything, and `list_workloads` returns each object with that of its policy, "" if it is not known."""
        ...

    def list_rivals(
        self, policy: Key, list_workloads: Callable[[], Iterable[tuple[Document, str]]], /
    ) -> list[tuple[Key, str, str]] | None:
        """Return the objects that a policy selects and that another one applies to, each with the title of that one, "" if it is not known,
        and why it applies; None if the API has no such policy."""
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


class ExpiredDocument(NamedTuple):
    """A document of the source without further effect, and since when: it can be removed."""

    document: Document
    since: datetime


@runtime_checkable
class ExpiryReporting(Protocol):
    """Capability of an engine with documents that expire, such as requests that have been handled."""

    def expired_documents(self) -> Iterable[ExpiredDocument]:
        """Return the expired documents, in the order of their keys."""
        ...


class Companions(NamedTuple):
    """Objects that belong to workloads, such as the Service of a Deployment; `shared` ones also belong to other workloads."""

    own: tuple[Document, ...] = ()
    shared: tuple[Document, ...] = ()


@runtime_checkable
class Rescheduling(Protocol):
    """Capability of an engine where workloads keep clusters that the current policies would not choose."""

    def make_rescheduling_document(self, templates: Iterable[Document], /) -> Document:
        """Return the document to commit so that workloads are scheduled again."""
        ...

    def make_reschedule_request(
        self, templates: Iterable[Document], ttl: timedelta | None, /, *, only_unavailable: bool = False
    ) -> Document:
        """Return a document that requests once that workloads are scheduled again, with a time to live after it has been handled. With
        `only_unavailable`, replicas that clusters report as available stay.

        Its name depends on the workloads and on when they were scheduled last: the same request has the same name, a later one another.
        """
        ...

    def list_pending_requests(self) -> Iterable[Key]:
        """Return the documents of the source that request rescheduling and that no earlier run has handled."""
        ...

    def list_companions(self, templates: Iterable[Document], among: Mapping[Key, Document] | None = None, /) -> Companions:
        """Return the objects that belong to workloads and are scheduled on their own, of some templates or of all."""
        ...

    def list_evictions(self, template: Document, outcome: Outcome, /) -> Mapping[str, datetime | None]:
        """Return the clusters that a workload was evicted from and to which it cannot go until a time; None where only people end that."""
        ...

    def describe_remedy(self, template: Document, kept: Outcome, rescheduled: Outcome | None, expected: Outcome, /) -> str:
        """Describe how a workload that keeps its clusters moves to the `expected` ones; `rescheduled` is the result of rescheduling it."""
        ...


@runtime_checkable
class Repeating(Protocol):
    """Capability of an engine that knows of many decisions that they stay the same in the next run."""

    def repeats(self, template: Document, outcome: Outcome, /) -> bool:
        """Return whether deciding again, with the records of an outcome as the previous ones, certainly gives the same outcome."""
        ...
