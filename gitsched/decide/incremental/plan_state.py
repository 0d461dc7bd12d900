"""The state of a plan that the next incremental plan starts from: one row for each workload and cluster, and totals.

The state describes one output tree. When it is lost, a complete plan gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from gitsched.model.capacity_use import NO_CAPACITY_USE, CapacityUse
from gitsched.model.changes import NOTHING_WITHHELD
from gitsched.model.document import Body, Document, Key, workload_sort_key
from gitsched.model.finding import Finding
from gitsched.model.scheduling import Outcome, RecordedDecision
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.apis.gitsched.tenant import Tenant
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.decide.engines import EngineRecords
    from gitsched.decide.incremental.known_decisions import KnownDecisions
    from gitsched.decide.relations.located_findings import LocatedFinding
    from gitsched.decide.relations.plan_relations import FactChanges, PlanRelations
    from gitsched.decide.tenants.tenant_amounts import Amounts
    from gitsched.model.capacity_use import PlacedRequests
    from gitsched.model.changes import RetainedCopy, WithheldChanges
    from gitsched.model.holds import HeldPlacement
    from gitsched.model.observation import Observation, ObservationKey
    from gitsched.model.planned_files import ClusterInfo, PlannedFile
    from gitsched.model.scheduling import EqualPods
    from gitsched.model.template_index import TemplateEntry, TemplateIndex


class PlanTimes(NamedTuple):
    """`source_time` is the time of the source; deadlines are compared with `now`."""

    source_time: datetime
    now: datetime


class PreviousOutput(NamedTuple):
    """The previous output.

    `records` are by identity; `list_other_records` returns those without the given identities; `find_blob` returns the blob of a path.
    `clusters` are the names of the cluster directories, `retiring` clusters without a document, with the time since when they retire.
    `list_delivered` returns for each cluster directory which of some relative paths it has. `retained` are copies that it has only for an
    overlap; of the `undelivered` workloads a cluster may have another manifest than was decided. `read_manifest` reads one. `has_files`
    says whether a commit of the output branch has files at some paths as the previous output does; None for another commit. `placed`
    is what was placed on clusters since their facts were observed, `withheld` are the pods of workloads whose removal is withheld.
    """

    records: Mapping[Key, Body]
    list_other_records: Callable[[Iterable[Key]], Iterable[Body]]
    find_blob: Callable[[str], str | None]
    clusters: frozenset[str]
    retiring: Mapping[str, datetime]
    list_delivered: Callable[[Iterable[str]], Mapping[str, frozenset[str]]] = lambda _: {}
    retained: tuple[RetainedCopy, ...] = ()
    undelivered: frozenset[Key] = frozenset()
    read_manifest: Callable[[str], Body | None] = dict[str, Body]().get
    has_files: Callable[[str, Iterable[str]], bool | None] = lambda _commit, _paths: None
    placed: Mapping[str, tuple[PlacedRequests, ...]] = {}
    withheld: Mapping[Key, Mapping[str, tuple[EqualPods, ...]]] = {}

    def without_records(self, keys: Collection[Key]) -> PreviousOutput:
        """Return the previous output without some records."""
        if not keys:
            return self
        records = {key: self.records[key] for key in self.records if key not in keys}
        return self._replace(records=records, list_other_records=lambda known: self.list_other_records((*known, *keys)))


NO_OUTPUT = PreviousOutput({}, lambda _: (), dict[str, str]().get, frozenset(), {})
"""The previous output of a first run."""


class WorkloadRow(NamedTuple):
    """One workload: its outcome without documents and bodies, the path of its source file, the paths of its records, by cluster the paths
    of its manifests, relative to the directory of the cluster, and the keys of the records that its policy API has. `amounts` are what it
    has in its clusters, if it belongs to a tenant with limits."""

    outcome: Outcome
    source_path: str
    record_paths: tuple[str, ...]
    manifest_paths: Mapping[str, tuple[str, ...]]
    record_keys: tuple[Key, ...] = ()
    amounts: Amounts | None = None


class ClusterRow(NamedTuple):
    """One cluster: its facts, and the relative paths of the manifests that workloads have there."""

    facts: ClusterInfo
    manifest_paths: frozenset[str]


class SourceTotals(NamedTuple):
    """What the source has besides single workloads.

    `kind_scopes` says for kinds that are not built in whether they are namespaced, and `guessed_kinds` are those of which nothing says so.
    `repeated` are objects with several documents, and `unused` those with different or broken ones, which are not placed. `with_variants`
    are workloads with variants. `part_kinds` are the kinds of objects that kustomizations change, and that are not placed. `hidden_codes`
    are those of findings of engines that reports leave out. `input_counts` are the numbers of documents of policy APIs and of templates.
    """

    kind_scopes: Mapping[tuple[str, str], bool] = {}
    guessed_kinds: frozenset[tuple[str, str]] = frozenset()
    repeated: frozenset[Key] = frozenset()
    unused: frozenset[Key] = frozenset()
    with_variants: frozenset[Key] = frozenset()
    part_kinds: frozenset[tuple[str, str]] = frozenset()
    hidden_codes: frozenset[str] = frozenset()
    input_counts: tuple[int, int] = (0, 0)


class EngineTotals(NamedTuple):
    """What the policy engines say of no single workload.

    `records` belong to no workload, `recorded` are decisions that only records show. `wakeups` are the times at which the engines have to
    check the same documents and output again; None if they have to do so in the next run. `has_new_records` says that the plan changed
    records that belong to no workload, so that the engines have not read them yet, or that the engines say what it changes. `own` are the
    workloads that policy APIs decide themselves: each run that is not idle decides them all. `observations` are the values that metrics
    providers returned. `kept` are the keys of records that stay as they were, because workloads with withheld changes follow them.
    """

    findings: tuple[Finding, ...] = ()
    records: EngineRecords = ()
    recorded: tuple[RecordedDecision, ...] = ()
    wakeups: tuple[datetime, ...] | None = None
    has_new_records: bool = False
    own: frozenset[Key] = frozenset()
    observations: Mapping[ObservationKey, Observation] = {}
    kept: frozenset[Key] = frozenset()


class Overview(NamedTuple):
    """What README.md shows: numbers of workloads by state and of all of them, of objects that no policy selects and of clusters, and the
    first of them."""

    state_counts: Mapping[str, int] = {}
    unclaimed: int = 0
    first_outcomes: Mapping[Key, Outcome] = {}
    first_clusters: Mapping[str, ClusterInfo] = {}
    cluster_count: int = 0
    workload_count: int = 0


class Totals(NamedTuple):
    """The state of a plan without its rows.

    `wakeups` are the times at which a decision about a workload may change without a commit. `unstable` are workloads that may be decided
    differently next time. `relation_findings` are those about what delivered manifests refer to and where companions go. `retained` are
    copies that the output has only for an overlap, `undelivered` is as in `PreviousOutput`. `held` are the stateful workloads that keep
    their clusters. `capacity` is what workloads use of clusters. `has_settled_copies` says that the next plan retains the same copies as
    long as nothing moves and no end of theirs passes. `adopted` says why objects that gitsched took over keep their placement, by key as
    text. `owners` are the platform and the tenants that define anything; () without Tenants. `trusted_tenants` are those of the trusted
    side, if other rules count once the planned commit is that side, else None. `withheld` are the changes that the guard withholds, and
    `withheld_wakeups` the times at which they may be others without a commit.
    """

    config: Config
    source_time: datetime
    now: datetime
    source: SourceTotals = SourceTotals()
    engines: EngineTotals = EngineTotals()
    overview: Overview = Overview()
    findings_by_file: Mapping[str, tuple[Finding, ...]] = {}
    findings_by_workload: Mapping[Key, tuple[Finding, ...]] = {}
    other_findings: tuple[Finding, ...] = ()
    relation_findings: tuple[LocatedFinding, ...] = ()
    wakeups: Mapping[Key, datetime] = {}
    unstable: frozenset[Key] = frozenset()
    capacity: CapacityUse = NO_CAPACITY_USE
    held: Mapping[Key, HeldPlacement] = {}
    retiring: Mapping[str, datetime] = {}
    namespace_manifests: Mapping[str, tuple[str, PlannedFile]] = {}
    retained: tuple[RetainedCopy, ...] = ()
    has_settled_copies: bool = False
    undelivered: frozenset[Key] = frozenset()
    adopted: Mapping[str, str] = {}
    owners: tuple[str, ...] = ()
    trusted_tenants: tuple[Tenant, ...] | None = None
    withheld: WithheldChanges = NOTHING_WITHHELD
    withheld_wakeups: Mapping[Key, datetime] = {}


class PlanRows(Protocol):
    """The rows of a plan state, and what other plans that start from it have decided, if they share that."""

    known_decisions: KnownDecisions | None

    def read_workload(self, key: Key) -> WorkloadRow | None:
        """Return the row of a workload; None when no policy selects it."""
        ...

    def read_cluster(self, name: str) -> ClusterRow | None:
        """Return the row of a cluster; None when it has no directory."""
        ...

    def list_workloads(self) -> Iterator[WorkloadRow]:
        """Yield the row of every workload, by (namespace, name)."""
        ...

    @property
    def relations(self) -> PlanRelations:
        """The relations of the plan, which may be forked."""
        ...

    @property
    def template_index(self) -> TemplateIndex:
        """What selectors read of every template, read on demand."""
        ...

    @property
    def engines(self) -> tuple[PolicyEngine, ...]:
        """The policy engines of the plan."""
        ...


class StateChanges(NamedTuple):
    """The rows that a plan changes, and None for those that it removes.

    `facts` are those about relations of the objects that have changed. `api_documents` are all documents of the changed kinds of policy
    APIs. `engines` are new ones; None if they are the same. `added_paths` and `removed_paths` are source files.
    """

    workloads: Mapping[Key, WorkloadRow | None] = {}
    clusters: Mapping[str, ClusterRow | None] = {}
    templates: Mapping[Key, TemplateEntry | None] = {}
    facts: FactChanges | None = None
    api_documents: Mapping[tuple[str, str], tuple[Document, ...]] = {}
    engines: tuple[PolicyEngine, ...] | None = None
    added_paths: frozenset[str] = frozenset()
    removed_paths: frozenset[str] = frozenset()


class StoredOutcomes(Mapping[Key, Outcome]):
    """The outcomes of a plan state, some of them changed or removed (None) since. Rows are read on demand."""

    def __init__(self, rows: PlanRows, count: int, changed: Mapping[Key, Outcome | None]) -> None:
        self._rows, self._count, self._changed = rows, count, changed

    def __getitem__(self, key: Key) -> Outcome:
        if key in self._changed:
            outcome = self._changed[key]
        else:
            row = self._rows.read_workload(key)
            outcome = row.outcome if row is not None else None
        if outcome is None:
            raise KeyError(key)
        return outcome

    def __iter__(self) -> Iterator[Key]:
        """Yield the keys by (namespace, name). The cache may have the changed rows already."""
        stored = (row.outcome.key for row in self._rows.list_workloads())
        keys = {*(key for key in stored if key not in self._changed), *(key for key, found in self._changed.items() if found)}
        return iter(sorted(keys, key=workload_sort_key))

    def __len__(self) -> int:
        return self._count
