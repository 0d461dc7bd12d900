"""Schedule one Application to a cluster, in the order of Krake's scheduler.

One look at an application, in this order: is it to be scheduled at all; is a retry due; may it move; is a cluster being made for it; is
its cluster still fit and its last move recent; else the best cluster by score. The order and the words are Krake's.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from gitsched.apis.krake import names
from gitsched.apis.krake.candidates import ScoredCandidates, is_deleted
from gitsched.apis.krake.constraints import ConstraintSet, parse_constraints
from gitsched.apis.krake.metrics import read_float
from gitsched.apis.krake.scheduling_status import SchedulingStatus
from gitsched.model.document import Body, Document, Key, get_field

FINAL_STATES = ("DEGRADED", "FAILED", "WAITING_FOR_CLUSTER_CREATION")
"""The states that the scheduler gives to an application."""
NO_MATCH_REASON = {"code": names.NO_SUITABLE_RESOURCE, "message": "No matching Kubernetes cluster found"}
_MAX_DELAY = timedelta(days=3650)

Action = Literal["bind", "touch", "none", "fail", "ignored", "create", "hold"]


class Application(NamedTuple):
    """An application as its document describes it; `delay` is between two tries, `tries` how often again (-1: for ever)."""

    document: Document
    constraints: ConstraintSet
    migration: bool
    retry_delay: timedelta
    retry_limit: int
    creates_cluster: bool

    @property
    def key(self) -> Key:
        return self.document.key

    @property
    def identity(self) -> str:
        """What its lots are drawn with."""
        return f"Application/{self.key.namespace}/{self.key.name}"


class ApplicationContext(NamedTuple):
    """What an application may be put on. `clouds` matter only to one that may have a cluster made; `broken` are clusters that cannot be
    read, or whose clouds cannot: what runs there stays."""

    clusters: ScoredCandidates
    clouds: ScoredCandidates | None
    uncertain_clusters: frozenset[Key]
    reschedule_after: timedelta
    hold_on_failure: bool


class ApplicationAttempt(NamedTuple):
    """One look. `memory` is what it leaves, `mask` the clusters that satisfy everything, `held` the present one. `at` is its index where
    one was chosen; `compared` says that scores decided. `change` is when time alone will change the outcome. `cloud` is where a cluster
    is to be made."""

    time: datetime
    action: Action
    status: SchedulingStatus
    matching: int = 0
    current: int | None = None
    scores_compared: bool = False
    reason: str = ""
    next_change: datetime | None = None
    cloud: names.ResourceRef | None = None

    @property
    def changes_status(self) -> bool:
        """Whether it leaves a trace."""
        return self.action in ("bind", "touch", "fail", "create")


def parse_application(document: Document) -> Application:
    """The application of a valid document."""
    spec: Body = document.body.get("spec") or {}
    constraints = spec.get("constraints") or {}
    return Application(
        document=document,
        constraints=parse_constraints(constraints.get("cluster")),
        migration=constraints.get("migration") is not False,
        retry_delay=_read_retry_delay(spec.get("backoff"), spec.get("backoff_delay")),
        retry_limit=int(spec["backoff_limit"]) if spec.get("backoff_limit") is not None else -1,
        creates_cluster=spec.get("auto_cluster_create") is True,
    )


def schedule_application(
    app: Application, memory: SchedulingStatus, around: ApplicationContext, moment: datetime, source: datetime
) -> ApplicationAttempt:
    """Decide one application at a moment. `source` is the moment of its document: a look that something else causes leaves no trace of
    one more try in vain."""
    quiet = _skip_scheduling(app, memory, moment)
    if quiet is not None:
        return quiet
    clusters = around.clusters
    if memory.awaited_cluster and not (memory.target and memory.target.name == memory.awaited_cluster):
        return _wait_for_cluster(memory, clusters, moment)
    mask, held = clusters.match_constraints(app.constraints), clusters.find_index(memory.target)
    kept = _find_hold_reason(app, memory, around, mask, held)
    if kept:
        return ApplicationAttempt(moment, "hold", memory, mask, held, reason=kept)
    if not mask and not app.creates_cluster:
        return _fail_scheduling(app, memory, mask, held, moment, source)
    fresh = memory.scheduled is not None and moment - memory.scheduled < around.reschedule_after
    if held is not None and mask >> held & 1 and fresh:
        chosen, _ = clusters.choose_best(mask, held, app.identity)
        change = None if chosen == held else (memory.scheduled or moment) + around.reschedule_after
        step = _keep_cluster(memory, mask, held, moment)
        return step._replace(next_change=change, reason="it was placed a short while ago")
    if app.creates_cluster:
        created = _request_cluster(app, memory, around, mask, held, moment, source)
        if created is not None:
            return created
    chosen, _ = clusters.choose_best(mask, held, app.identity)
    if chosen == held:
        return _keep_cluster(memory, mask, held, moment)._replace(scores_compared=True)
    bound = memory.bind(clusters.candidates[chosen].ref)._replace(scheduled=moment, triggered=moment)
    return ApplicationAttempt(moment, "bind", bound, mask, held, scores_compared=True)


def _skip_scheduling(app: Application, memory: SchedulingStatus, moment: datetime) -> ApplicationAttempt | None:
    """The look that leads to nothing, for reasons of the application itself; None where it has to be scheduled."""
    if is_deleted(app.document.body):
        return ApplicationAttempt(moment, "ignored", memory, reason="it is being deleted")
    if memory.state == "FAILED":
        return ApplicationAttempt(moment, "ignored", memory, reason="it has failed; only another version of it is looked at again")
    if memory.state == "DEGRADED" and (memory.next_retry is None or moment < memory.next_retry):
        return ApplicationAttempt(moment, "none", memory, reason="its next try is not due", next_change=memory.next_retry)
    if memory.target is not None and not app.migration:
        if memory.triggered is None or memory.modified > memory.triggered:
            return ApplicationAttempt(moment, "touch", memory._replace(triggered=moment), reason="it must not migrate")
        return ApplicationAttempt(moment, "none", memory, reason="it must not migrate")
    if memory.migration_timeout > int(moment.timestamp()):
        end = datetime.fromtimestamp(memory.migration_timeout, moment.tzinfo) if memory.migration_timeout < 1 << 37 else None
        return ApplicationAttempt(moment, "none", memory, reason="its migration has a time-out that is not over", next_change=end)
    return None


def _keep_cluster(memory: SchedulingStatus, mask: int, held: int, moment: datetime) -> ApplicationAttempt:
    """On the same cluster. A new version is marked as seen by the scheduler; a periodic look leaves no trace."""
    if memory.triggered is not None and memory.modified <= memory.triggered:
        return ApplicationAttempt(moment, "none", memory, mask, held)
    return ApplicationAttempt(moment, "touch", memory._replace(triggered=moment), mask, held)


def _fail_scheduling(
    app: Application, memory: SchedulingStatus, mask: int, held: int | None, moment: datetime, source: datetime
) -> ApplicationAttempt:
    """Nothing matches: try again later while there are tries, else give up. What is bound stays where it is."""
    left = app.retry_limit if memory.retries is None else memory.retries
    endless = app.retry_limit <= 0 and (left > 0 or app.retry_limit == -1)
    again = memory.state == "DEGRADED" and memory.reason == NO_MATCH_REASON
    if endless and again and (memory.recorded or moment > source):
        return ApplicationAttempt(moment, "none", memory, mask, held, reason=NO_MATCH_REASON["message"])
    failed = memory._replace(reason=NO_MATCH_REASON, retries=left)
    if left > 0 or app.retry_limit == -1:
        retry = moment + app.retry_delay
        failed = failed._replace(state="DEGRADED", next_retry=retry, retries=left - 1 if app.retry_limit > 0 else left)
        return ApplicationAttempt(
            moment, "fail", failed, mask, held, reason=NO_MATCH_REASON["message"], next_change=None if endless else retry
        )
    return ApplicationAttempt(moment, "fail", failed._replace(state="FAILED"), mask, held, reason=NO_MATCH_REASON["message"])


def _find_hold_reason(app: Application, memory: SchedulingStatus, around: ApplicationContext, mask: int, held: int | None) -> str:
    """Why an application keeps what it has, because nobody knows what is best; "" where that is known."""
    if memory.target is not None and Key(*memory.target) in around.uncertain_clusters:
        return f"the document of its cluster {memory.target.name}, or of that cluster's cloud, is broken"
    if not around.hold_on_failure:
        return ""
    clusters = around.clusters
    unknown = clusters.awaiting_metrics & clusters.match_affinity(app.constraints)
    if held is not None:
        return f"nobody knows the metrics of its cluster {memory.target.name}" if memory.target and unknown >> held & 1 else ""
    return "nobody knows the metrics of the clusters that could take it" if unknown and not mask and not app.creates_cluster else ""


def _wait_for_cluster(memory: SchedulingStatus, clusters: ScoredCandidates, moment: datetime) -> ApplicationAttempt:
    """A cluster is being made for it: as soon as that is there, it is taken, whatever the constraints."""
    at = clusters.fleet.index.get(memory.awaited_cluster)
    if at is None or not clusters.candidates[at].online:
        return ApplicationAttempt(moment, "none", memory, reason=f"it waits for the cluster {memory.awaited_cluster}")
    bound = memory.bind(clusters.candidates[at].ref)._replace(scheduled=moment, triggered=moment)
    return ApplicationAttempt(moment, "bind", bound, reason=f"the cluster {memory.awaited_cluster} was made for it")


def _request_cluster(
    app: Application,
    memory: SchedulingStatus,
    around: ApplicationContext,
    mask: int,
    held: int | None,
    moment: datetime,
    source: datetime,
) -> ApplicationAttempt | None:
    """Have a cluster made, where a cloud is better than every cluster; None where a cluster wins. Equals are won by clusters."""
    clouds = around.clouds
    offered = clouds.select_comparable(clouds.match_constraints(app.constraints)) if clouds is not None else 0
    if clouds is None or not offered:
        return None if mask else _fail_scheduling(app, memory, mask, held, moment, source)
    cloud, score = clouds.choose_best(offered, None, app.identity)
    if mask and around.clusters.choose_best(mask, held, app.identity)[1] >= score:
        return None
    waiting = memory._replace(state="WAITING_FOR_CLUSTER_CREATION")
    return ApplicationAttempt(moment, "create", waiting, mask, held, scores_compared=True, cloud=clouds.candidates[cloud].ref)


def _read_retry_delay(factor: object, seconds: object) -> timedelta:
    """backoff times backoff_delay, within what a calendar can hold."""
    product = 1.0
    for value in (factor, seconds):
        product *= read_float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 1.0
    return timedelta(seconds=product) if 0 <= product <= _MAX_DELAY.total_seconds() else _MAX_DELAY if product > 0 else timedelta()


def list_manifests(document: Document) -> list[Body]:
    """The Kubernetes objects of an application."""
    return [entry for entry in get_field(document.body, "spec", "manifest") or () if isinstance(entry, dict)]
