"""Schedule one Application to a cluster, in the order of Krake's scheduler.

An attempt checks in Krake's order: whether to schedule the application at all, whether a retry is due, whether migration is allowed,
whether a cluster is being created for it, whether its matching cluster was chosen recently, and last which cluster has the best score.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Literal

from gitsched.apis.krake.candidates import ScoredCandidates, is_deleted
from gitsched.apis.krake.constraints import ConstraintSet, parse_constraints
from gitsched.apis.krake.metrics import read_float
from gitsched.apis.krake.names import CLUSTER, NO_SUITABLE_RESOURCE, ResourceRef
from gitsched.apis.krake.scheduling_status import SchedulingStatus
from gitsched.model.document import Body, Document, Key, get_field, list_objects
from gitsched.model.preferred_clusters import PREFERRED_CLUSTERS, read_preferred_clusters
from gitsched.model.time import add_duration
from gitsched.named_tuples import NamedTuple

FINAL_APPLICATION_STATES = ("DEGRADED", "FAILED", "WAITING_FOR_CLUSTER_CREATION")
"""Application states that the scheduler sets."""
NO_MATCH_REASON = {"code": NO_SUITABLE_RESOURCE, "message": "No matching Kubernetes cluster found"}
PREFERRED_REASON = f"the annotation {PREFERRED_CLUSTERS} names it first"
_MAX_DELAY = timedelta(days=3650)

Action = Literal["bind", "touch", "none", "fail", "ignored", "create", "hold"]


class Application(NamedTuple):
    """The scheduling settings of an Application document: its constraints, migration and retries. A `retry_limit` of -1 means no limit.

    `preferred` are the clusters that an annotation names as preferred, None without it.
    """

    document: Document
    constraints: ConstraintSet
    migration: bool
    retry_delay: timedelta
    retry_limit: int
    creates_cluster: bool
    preferred: tuple[str, ...] | None = None

    @property
    def key(self) -> Key:
        return self.document.key

    @property
    def identity(self) -> str:
        """The key of deterministic tie-breaking."""
        return f"Application/{self.key.namespace}/{self.key.name}"


class ApplicationContext(NamedTuple):
    """Candidates and settings of an application's namespace.

    `clouds` is set only for applications with auto_cluster_create. `uncertain_clusters` have an invalid document, a cloud with one, or
    stale facts: applications that run there stay. `shares_clusters` means that `clusters` are those of all namespaces;
    `cluster_namespaces` are these.
    """

    clusters: ScoredCandidates
    clouds: ScoredCandidates | None
    uncertain_clusters: frozenset[Key]
    reschedule_after: timedelta
    hold_on_failure: bool
    shares_clusters: bool
    cluster_namespaces: Collection[str] = ()

    @property
    def candidate_sets(self) -> tuple[ScoredCandidates, ...]:
        """The clusters, and the clouds on which a cluster can be created."""
        return (self.clusters,) if self.clouds is None else (self.clusters, self.clouds)


class ApplicationAttempt(NamedTuple):
    """One scheduling attempt of an application.

    `status` is the resulting status. `matching` is the bit mask of the clusters that satisfy all constraints, `current` the index of the
    cluster before the attempt. `next_change` is the time at which the result changes without a commit. `cloud` is the cloud for a cluster
    that has to be created.
    """

    time: datetime
    action: Action
    status: SchedulingStatus
    matching: int = 0
    current: int | None = None
    scores_compared: bool = False
    reason: str = ""
    next_change: datetime | None = None
    cloud: ResourceRef | None = None

    @property
    def changes_status(self) -> bool:
        """Whether the attempt changes the recorded status."""
        return self.action in ("bind", "touch", "fail", "create")


def parse_application(document: Document) -> Application:
    """Parse a valid Application document."""
    spec: Body = document.body.get("spec") or {}
    constraints = spec.get("constraints") or {}
    preferred = read_preferred_clusters(document.body)
    return Application(
        document=document,
        constraints=parse_constraints(constraints.get("cluster")),
        migration=constraints.get("migration") is not False,
        retry_delay=_read_retry_delay(spec.get("backoff"), spec.get("backoff_delay")),
        retry_limit=int(spec["backoff_limit"]) if spec.get("backoff_limit") is not None else -1,
        creates_cluster=spec.get("auto_cluster_create") is True,
        preferred=preferred.names if preferred is not None else None,
    )


def schedule_application(
    app: Application, status: SchedulingStatus, context: ApplicationContext, time: datetime, source_time: datetime
) -> ApplicationAttempt:
    """Schedule one application at a given time.

    `source_time` is the time of the source commit. A later attempt that fails again without using up a retry does not change the status.
    """
    skipped = _skip_scheduling(app, status, time)
    if skipped is not None:
        return skipped
    clusters = context.clusters
    if status.waits_for_cluster:
        return _wait_for_cluster(app, status, clusters, time)
    matching, current = clusters.match_constraints(app.constraints), clusters.find_index(status.target)
    hold_reason = _find_hold_reason(app, status, context, matching, current)
    if hold_reason:
        return ApplicationAttempt(time, "hold", status, matching, current, reason=hold_reason)
    if not matching and not app.creates_cluster:
        return _fail_scheduling(app, status, matching, current, time, source_time)
    recently_scheduled = status.scheduled is not None and time - status.scheduled < context.reschedule_after
    if current is not None and matching >> current & 1 and recently_scheduled:
        chosen, _ = _choose(app, clusters, matching, current)
        next_change = None if chosen == current else add_duration(status.scheduled or time, context.reschedule_after)
        attempt = _keep_cluster(status, matching, current, time)
        return attempt._replace(next_change=next_change, reason="it was scheduled recently")
    if app.creates_cluster and clusters.find_preferred(app.preferred or (), app.key.namespace, matching) is None:
        created = _request_cluster(app, status, context, matching, current, time, source_time)
        if created is not None:
            return created
    chosen, reason = _choose(app, clusters, matching, current)
    if chosen == current:
        return _keep_cluster(status, matching, current, time)._replace(scores_compared=not reason, reason=reason)
    bound = status.bind(clusters.candidates[chosen].ref)._replace(scheduled=time, triggered=time)
    return ApplicationAttempt(time, "bind", bound, matching, current, scores_compared=not reason, reason=reason)


def _choose(app: Application, clusters: ScoredCandidates, matching: int, current: int | None) -> tuple[int, str]:
    """Return the first preferred cluster, with a reason, else the one with the best score and ""; `matching` is not empty."""
    preferred = clusters.find_preferred(app.preferred, app.key.namespace, matching) if app.preferred else None
    if preferred is not None:
        return preferred, PREFERRED_REASON
    return clusters.choose_best(matching, current, app.identity)[0], ""


def _skip_scheduling(app: Application, status: SchedulingStatus, time: datetime) -> ApplicationAttempt | None:
    """Return the attempt that ends because of the application's state or disabled migration; None if it has to be scheduled."""
    if is_deleted(app.document.body):
        return ApplicationAttempt(time, "ignored", status, reason="it is being deleted")
    if status.state == "FAILED":
        return ApplicationAttempt(time, "ignored", status, reason=_describe_failed_state(app))
    if status.state == "DEGRADED" and (status.next_retry is None or time < status.next_retry):
        return ApplicationAttempt(time, "none", status, reason="its next retry is not due", next_change=status.next_retry)
    if status.target is not None and not app.migration:
        if status.triggered is None or status.modified > status.triggered:
            return ApplicationAttempt(time, "touch", status._replace(triggered=time), reason="its migration is disabled")
        return ApplicationAttempt(time, "none", status, reason="its migration is disabled")
    if status.migration_timeout > int(time.timestamp()):
        end = datetime.fromtimestamp(status.migration_timeout, time.tzinfo) if status.migration_timeout < 1 << 37 else None
        return ApplicationAttempt(time, "none", status, reason="its migration timeout has not passed", next_change=end)
    return None


def _describe_failed_state(app: Application) -> str:
    """Return why a failed application is not scheduled, and what ends its failure."""
    if get_field(app.document.body, "status", "state") == "FAILED":
        return "status.state of its document is FAILED; to schedule it again, remove the state"
    return "it has failed; it is scheduled again when its document changes"


def _keep_cluster(status: SchedulingStatus, matching: int, current: int, time: datetime) -> ApplicationAttempt:
    """Keep the current cluster. A new version of the document is marked as processed; the end of a failure is recorded."""
    if status.failed_before:
        recovered = status.recover()
        triggered = time if status.triggered is None or status.modified > status.triggered else status.triggered
        status = recovered._replace(triggered=triggered)
        return ApplicationAttempt(time, "touch", status, matching, current)
    if status.triggered is not None and status.modified <= status.triggered:
        return ApplicationAttempt(time, "none", status, matching, current)
    return ApplicationAttempt(time, "touch", status._replace(triggered=time), matching, current)


def _fail_scheduling(
    app: Application, status: SchedulingStatus, matching: int, current: int | None, time: datetime, source_time: datetime
) -> ApplicationAttempt:
    """Handle an application without a matching cluster: schedule a retry, or fail when none is left. A bound application stays."""
    retries = app.retry_limit if status.retries is None else status.retries
    unlimited = app.retry_limit <= 0 and (retries > 0 or app.retry_limit == -1)
    failed_before = status.state == "DEGRADED" and status.reason == NO_MATCH_REASON
    if unlimited and failed_before and (status.recorded or time > source_time):
        return ApplicationAttempt(time, "none", status, matching, current, reason=NO_MATCH_REASON["message"])
    failed = status._replace(reason=NO_MATCH_REASON, retries=retries, failed_before=True)
    if retries > 0 or app.retry_limit == -1:
        retry = add_duration(time, app.retry_delay)
        failed = failed._replace(state="DEGRADED", next_retry=retry, retries=retries - 1 if app.retry_limit > 0 else retries)
        return ApplicationAttempt(
            time, "fail", failed, matching, current, reason=NO_MATCH_REASON["message"], next_change=None if unlimited else retry
        )
    return ApplicationAttempt(time, "fail", failed._replace(state="FAILED"), matching, current, reason=NO_MATCH_REASON["message"])


def _find_hold_reason(
    app: Application, status: SchedulingStatus, context: ApplicationContext, matching: int, current: int | None
) -> str:
    """Return why the application keeps its cluster without comparison (invalid documents, missing metrics); "" if there is no reason."""
    if status.target is not None and Key(*status.target) in context.uncertain_clusters:
        invalid = f"the document of its cluster {status.target.name}, or of that cluster's cloud, is invalid"
        return f"{invalid}, or the facts about it are stale"
    if not context.hold_on_failure:
        return ""
    clusters = context.clusters
    unknown = clusters.awaiting_metrics & clusters.match_affinity(app.constraints)
    if current is not None:
        return f"the metrics of its cluster {status.target.name} are unknown" if status.target and unknown >> current & 1 else ""
    return "the metrics of the clusters that match are unknown" if unknown and not matching and not app.creates_cluster else ""


def _wait_for_cluster(app: Application, status: SchedulingStatus, clusters: ScoredCandidates, time: datetime) -> ApplicationAttempt:
    """Wait for the cluster that is being created for the application; bind to it once it is online, regardless of the constraints."""
    index = clusters.find_index(ResourceRef(*CLUSTER, app.key.namespace, status.awaited_cluster))
    if index is None or not clusters.candidates[index].online:
        return ApplicationAttempt(time, "none", status, reason=f"it is waiting for the cluster {status.awaited_cluster}")
    bound = status.bind(clusters.candidates[index].ref)._replace(scheduled=time, triggered=time, awaited_cluster="")
    return ApplicationAttempt(time, "bind", bound, reason=f"the cluster {status.awaited_cluster} was created for it")


def _request_cluster(
    app: Application,
    status: SchedulingStatus,
    context: ApplicationContext,
    matching: int,
    current: int | None,
    time: datetime,
    source_time: datetime,
) -> ApplicationAttempt | None:
    """Request a new cluster if a cloud scores higher than every matching cluster; return None if a cluster wins or ties."""
    clouds = context.clouds
    matching_clouds = clouds.select_comparable(clouds.match_constraints(app.constraints)) if clouds is not None else 0
    if clouds is None or not matching_clouds:
        return None if matching else _fail_scheduling(app, status, matching, current, time, source_time)
    cloud, score = clouds.choose_best(matching_clouds, None, app.identity)
    if matching and context.clusters.choose_best(matching, current, app.identity)[1] >= score:
        return None
    waiting = status._replace(state="WAITING_FOR_CLUSTER_CREATION", failed_before=True)
    return ApplicationAttempt(time, "create", waiting, matching, current, scores_compared=True, cloud=clouds.candidates[cloud].ref)


def _read_retry_delay(factor: object, seconds: object) -> timedelta:
    """Return backoff * backoff_delay, limited to ten years."""
    product = 1.0
    for value in (factor, seconds):
        product *= read_float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 1.0
    return timedelta(seconds=product) if 0 <= product <= _MAX_DELAY.total_seconds() else _MAX_DELAY if product > 0 else timedelta()


def list_manifests(document: Document) -> list[Body]:
    """Return the Kubernetes objects in spec.manifest."""
    return list_objects(get_field(document.body, "spec", "manifest"))
