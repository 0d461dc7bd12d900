"""The contract between planning and the policy APIs: the PolicyEngine that an API implements with its optional capabilities, and the
PolicyAPI that describes it. The functions of a description import their code when they are called."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gitsched.apis.snapshot import Snapshot
from gitsched.model.document import ApiKinds, Body, Document, Key
from gitsched.model.finding import FieldOrigin, Finding, Issue, Pointer
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.added_taints import AddedTaint
    from gitsched.apis.adoption import HubObjects
    from gitsched.apis.cluster_format import ClusterFormat
    from gitsched.apis.export import Export
    from gitsched.apis.gitsched.config import Config
    from gitsched.apis.gitsched.config_section import SettingsSection
    from gitsched.apis.live_apply import LiveApply
    from gitsched.apis.topology import Topology
    from gitsched.model.explanation import Explanation
    from gitsched.model.observation import MetricQuery
    from gitsched.model.planned_files import ClusterInfo
    from gitsched.model.scheduling import CandidateResult, Outcome, RecordedDecision, TargetCluster
    from gitsched.model.template_index import PlacementSummary


class PolicyEngine(ABC):
    """The decisions of one policy API over one snapshot.

    An API implements `decide` and `clusters`; everything else has a default. What only some APIs can do is a capability: a protocol of
    `gitsched.apis.capabilities` that the engine implements as well.

    `findings` are about the API's own documents. `wakeup` is the first time after which `own_workloads`, `records` or `clusters` differ
    without a change of the input; None if there is none. `time` is the latest deadline after the commit that changed one of `records` in
    this run; None if there is none. An API that decides only documents of its own has False as `decides_templates`. With
    `shares_capacity` it has the capability CapacitySharing, and what is placed counts for what is placed next.
    """

    name: str
    decides_templates = True
    shares_capacity = False
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

    def keep_outcomes(self, kept: Mapping[Key, Outcome], /) -> frozenset[Key]:  # noqa: ARG002 - nothing follows by default
        """Let workloads keep their previous placement, with these outcomes, whatever the engine has decided about them. Return the
        templates that have to be decided again because they depend on these workloads.

        Afterwards `findings`, `records`, `wakeup` and `time` are about what these workloads keep: no record says that a request took effect
        for them, and their requests are still pending in the next run. This holds, also for those of an earlier call, until `update` or
        `continue_with` is called.
        """
        return frozenset()

    def may_place(self, template: Document, cluster: str, /) -> bool:  # noqa: ARG002 - no policy excludes a cluster by default
        """Return whether the policy that selects a workload may choose a cluster, in whatever state the cluster is."""
        return True

    def customize(self, template: Document, target: TargetCluster, /) -> TargetCluster:  # noqa: ARG002 - all clusters get the same
        """Return a target with the manifest that its cluster gets of a workload, given its edits, whether or not it is chosen."""
        return target

    def find_overrider(
        self,
        template: Document,  # noqa: ARG002 - all clusters get the same
        cluster: str,  # noqa: ARG002
        path: Sequence[str],  # noqa: ARG002
        /,
    ) -> FieldOrigin | None:
        """Return what changes a field of a workload's manifest in a cluster; None if the cluster gets it as the source has it."""
        return None

    def update(self, snapshot: Snapshot, /) -> bool:  # noqa: ARG002 - a new engine is made by default
        """Continue with another snapshot in which only templates, previous records and times differ.

        Return False if that is impossible, for example because decisions about other documents may differ: a new engine is made then.
        """
        return False

    def evaluate_candidates(self, template: Document, /) -> list[CandidateResult]:  # noqa: ARG002 - optional
        """Return the result of every cluster for a workload, by name; empty when no policy selects it."""
        return []

    def evaluate_candidate(self, template: Document, cluster: str, /) -> CandidateResult | None:
        """Return the result of one cluster for a workload; None for a cluster that the API does not have, or without a policy."""
        return next((result for result in self.evaluate_candidates(template) if result.name == cluster), None)

    def evaluates_alike(self, placement: PlacementSummary, api: tuple[str, str], cluster: str, /) -> bool:  # noqa: ARG002 - optional
        """Return whether a cluster has the same result for all settled workloads of an API (apiVersion, kind) with this summary that do not
        run there, whatever clusters they have."""
        return False

    def evaluate_own(self, kind: str, name: str, namespace: str, /) -> list[CandidateResult] | None:  # noqa: ARG002 - optional
        """Return the result of every candidate for one of the API's own documents, by name; None when there is no such document."""
        return None

    def explain(self, template: Document, /) -> Explanation | None:
        """Explain the decision about a workload; None when no policy of this API selects it."""
        outcome = self.decide(template)
        return None if outcome is None else explain_outcome(template, outcome, self.evaluate_candidates(template))


def explain_outcome(template: Document, outcome: Outcome, candidates: Iterable[CandidateResult] = ()) -> Explanation:
    """Return the explanation that follows from an outcome and the results of the candidates alone."""
    from gitsched.model.explanation import ExplainedCandidate, Explanation, ReplicaShare  # only to explain

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


GroupKind = tuple[str, str]
"""API group and kind, as in ("apps", "Deployment")."""
SchemaKey = tuple[str, str, str]
"""API group, version and kind, as in ("policy.karmada.io", "v1alpha1", "PropagationPolicy")."""
DocumentValidator = Callable[[Body], Iterator[Issue]]
"""List what is wrong with a defaulted document that its schema accepts."""


class WorkloadSelector(NamedTuple):
    """Workloads that a policy may select: those of a group and kind, with a name, and with an annotation; "" stands for any."""

    group: str = ""
    kind: str = ""
    name: str = ""
    annotation: str = ""


class MetricSource(NamedTuple):
    """Metrics that documents of the API query from providers.

    `groups` are the API groups of the documents. `list_queries` returns one query per metric, in the order of their keys. The codes are
    those of the findings about providers that are not queried because the output is not trusted, or because they changed.
    """

    groups: frozenset[str]
    list_queries: Callable[[Iterable[Body]], list[MetricQuery]]
    not_queried_code: str
    provider_changed_code: str


class DeliveryReports(NamedTuple):
    """Reports of clusters about the output, which are read from commit statuses.

    `groups` are the API groups of the documents. `list_clusters` returns the clusters whose reports are read. The code is that of the
    finding about reports that could not be read.
    """

    groups: frozenset[str]
    list_clusters: Callable[[Iterable[Body]], set[str]]
    unknown_code: str


class ScoreMeasurement(NamedTuple):
    """A value of each cluster: `source` is prometheus, with its query as `spec`, or static, with the values by cluster. `pointer` is its
    field in the definition."""

    name: str
    source: str
    spec: Body
    pointer: Pointer


class ScoreInput(NamedTuple):
    """What scores are computed from: a definition, the names of all clusters, the values by measurement and cluster, the documents of the
    last time by cluster, and the present time."""

    definition: Body
    clusters: frozenset[str]
    values: Mapping[str, Mapping[str, float]]
    previous: Mapping[str, Body]
    now: datetime


class ClusterScoring(NamedTuple):
    """Scores that `gitsched scores` computes from measured values and writes as documents.

    `definition` is the kind that defines scores, `cluster` the kind of the clusters and `score` the kind of the documents; each document
    is in the namespace of its cluster. `is_current` says of an earlier document and a new one of the same cluster whether the earlier one
    can stay at a time: it has the same scores, and remains valid for long enough.
    """

    definition: GroupKind
    cluster: GroupKind
    score: GroupKind
    list_measurements: Callable[[Body], list[ScoreMeasurement]]
    build_documents: Callable[[ScoreInput], list[Body]]
    is_current: Callable[[Body, Body, datetime], bool]


class SharedWorkloads(NamedTuple):
    """Workloads of all tenants that an API places together, because they share the same capacity.

    `list_kinds` returns the kinds of the workloads and of what only concerns one of them; no other object of a tenant has an effect on
    such an API. `measure` returns how much of the capacity each workload asks for.
    """

    list_kinds: Callable[[Snapshot], frozenset[GroupKind]]
    measure: Callable[[Snapshot], Mapping[Key, int]]


class RecordDescription(NamedTuple):
    """Records whose content is the only result of a decision, so that plans, reviews and reports show them.

    `kinds` are the kinds of the records; None stands for all kinds outside of the groups of policy APIs. `describe` returns the decision
    of one record, of this run or of an earlier one, and None for a record without a decision. Records about the same subject and kind of
    target are one decision.
    """

    kinds: frozenset[GroupKind] | None
    describe: Callable[[Key, Body], RecordedDecision | None]


class RecordedEviction(NamedTuple):
    """A workload had to leave a cluster: because of `taints`, none if it is not known which, or because it was `unhealthy` there. Each
    taint has whether the workload tolerated it for a time."""

    cluster: str
    taints: Mapping[AddedTaint, bool] = {}
    unhealthy: bool = False


class EvictionRecords(NamedTuple):
    """What records of an API say about evictions. `find_record` returns the key of the record of a workload. `read` returns the evictions
    between two of them, given the taints of clusters that evict workloads and the time of the later one; where a cluster has no such taint,
    only a record that contains `mark` has any."""

    mark: bytes
    find_record: Callable[[Key], Key]
    read: Callable[[Body, Body, Mapping[str, Sequence[AddedTaint]], datetime], Iterable[RecordedEviction]]


class BundleStarter(NamedTuple):
    """What `gitsched init` writes for a repository in which it finds bundles. `write_clusters` returns documents for clusters, given their
    labels and annotations by name; `policies` places every bundle that has the annotations on all clusters for which it has a variant."""

    write_clusters: Callable[[Mapping[str, Body]], str]
    policies: str
    annotations: Mapping[str, str] = {}


class StarterFiles(NamedTuple):
    """What `gitsched init` writes: a small fleet that works. `settings` are appended to gitsched.yaml, `workloads` are files by path.

    `docs_page` is the page of the documentation. `policy_kinds` are the kinds that say where workloads go; a repository that has one keeps
    its own. `bundles` is None for an API that does not place bundles.
    """

    settings: str
    clusters: str
    policies: str
    """"" for an API whose workloads say themselves where they go."""
    workloads: Mapping[str, str]
    policy_kinds: frozenset[GroupKind]
    docs_page: str
    bundles: BundleStarter | None = None
    write_policies: Callable[[Collection[tuple[str, str]], Sequence[str]], str] | None = None
    """Write policies for the workloads of a repository, given their (apiVersion, kind) and the names of the clusters that are described."""
    list_named_clusters: Callable[[Body], Mapping[str, Body]] | None = None
    """Return the metadata of clusters, by name, that a policy needs to select a cluster."""


class Preservation(NamedTuple):
    """How an API keeps objects in clusters: by a `field` of policies, and in clusters that workloads leave by moves if a `setting` says so.
    `choose` returns its value; None if it is not set."""

    field: str
    setting: str
    choose: Callable[[Config], bool | None]


class RemovedWorkload(NamedTuple):
    """A workload that only the previous output has, with its replicas by cluster; `dependent`: other workloads brought it along.

    `objects` are the objects in its clusters; None for the workload itself. `required_by` are the records of the workloads that brought it
    along, as (namespace, name). With a `preservation` it stays in its clusters when its template or policy is deleted. `policy` is the one
    that selected it, None where that is not recorded.
    """

    key: Key
    replicas: Mapping[str, int | None]
    dependent: bool = False
    objects: tuple[Key, ...] | None = None
    required_by: frozenset[tuple[str, str]] = frozenset()
    preservation: Preservation | None = None
    policy: Key | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommandSupport:
    """What commands have for one policy API."""

    load_starter: Callable[[], StarterFiles] | None = None
    load_hub_objects: Callable[[], HubObjects] | None = None
    """Return the kinds of the API's hub, which `gitsched adopt` and `gitsched shadow` read."""
    export: Export | None = None
    apply: LiveApply | None = None
    evictions: EvictionRecords | None = None
    """The records that say why workloads had to leave clusters."""
    native_explanation: str = ""
    """What `gitsched explain --format NAME` prints for documents of the API (see Explanation.native)."""
    explained_kinds: tuple[str, ...] = ()
    """Kinds that `gitsched explain` accepts in any spelling of kubectl."""
    short_names: Mapping[str, str] = field(default_factory=dict)
    """Short names of kinds for `gitsched explain`, as the API's own command line has them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolicyAPI:
    """One policy API. Only `name`, `groups` and `create_engine` are required.

    The engine is created when the source has a document that needs it: one of `groups` (or, if `active_kinds` is given, one of those
    kinds), an object of `active_objects`, a kind of `active_templates`, a previous record of `active_records`, or settings other than
    the defaults.
    """

    name: str
    groups: frozenset[str]
    """API groups whose documents the API reads; they are never delivered as they are."""
    create_engine: Callable[[Snapshot], PolicyEngine]

    kinds: ApiKinds = field(default_factory=ApiKinds)
    """Scopes of kinds, groups without versions and secret members."""
    active_kinds: frozenset[GroupKind] | None = None
    active_objects: frozenset[tuple[str, str, str]] = frozenset()
    """Group, kind and name of objects outside `groups`."""
    active_templates: frozenset[GroupKind] = frozenset()
    """Kinds outside `groups`."""
    active_records: tuple[GroupKind, ...] = ()

    settings: SettingsSection[Any] | None = None
    """The section of the API in gitsched.yaml."""
    schemas: Mapping[SchemaKey, Body] = field(default_factory=dict)
    """JSON Schemas besides those in the directory schemas/ of gitsched."""
    apply_defaults: Callable[[Body], Body] | None = None
    """Return a document as the API server would store it."""
    find_validator: Callable[[str, str], DocumentValidator | None] | None = None
    """Return the validator of a group and kind."""
    validated_objects: Mapping[GroupKind, frozenset[str]] = field(default_factory=dict)
    """Kinds outside `groups` that are validated as well, with the names that count; no names means all."""

    list_selectors: Callable[[Iterable[Body]], Iterable[WorkloadSelector]] = lambda bodies: (WorkloadSelector() for _ in bodies)
    """Return which workloads documents of the API may select, also because others refer to them; by default, all."""
    selecting_annotation: str = ""
    """The annotation by which workloads choose their policy; "" for an API whose policies select workloads only."""
    embedded_objects: Mapping[GroupKind, tuple[str, ...]] = field(default_factory=dict)
    """Where kinds of workloads have the list of the objects that they consist of. An API with such kinds assigns no replicas: it delivers
    all its workloads as they are."""
    remove_secrets: Callable[[Body], Body] | None = None
    """Return a document of the API without what must not be copied to the output; the same object when there is nothing of it."""
    read_removed_workload: Callable[[Body], RemovedWorkload | None] | None = None
    """Return the workload of a previous record that has not been written again; None for a record that places nothing."""

    metrics: MetricSource | None = None
    delivery_reports: DeliveryReports | None = None
    scoring: ClusterScoring | None = None
    load_cluster_format: Callable[[], ClusterFormat] | None = None
    """Return how the API writes clusters as documents, also with the facts that `gitsched collect` observes."""

    topology: Topology | None = None
    """The kind that describes clusters or nodes, for simulations."""
    shared_workloads: SharedWorkloads | None = None
    """Workloads of tenants that the API decides together; by default, the documents of each tenant are decided on their own."""
    absence_codes: frozenset[str] = frozenset()
    """Codes of findings that say that a document of the API selects or names nothing: a tenant may have what it selects,
    and so may a build that failed."""
    serializable: bool = False
    """Whether the engine can be stored and continue in another process: it keeps nothing of its snapshot that `update` does not replace."""
    recorded_decisions: RecordDescription | None = None
    preferred_targets: str = ""
    """What the annotation `gitsched.io/preferred-clusters` names: "workload" for the clusters of a workload, else the kind of target of the
    recorded decisions that are about the annotated document; "" for an API that does not read it."""

    commands: CommandSupport = field(default_factory=CommandSupport)
