"""Applications onto clusters.

One look at an application, in this order: is it to be scheduled at all; is a retry due; may it move; is a cluster being made for it; is
its cluster still fit and its last move recent; else the best cluster by score. The order and the words are Krake's.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from gitsched.apis.krake import names
from gitsched.apis.krake.arena import Arena
from gitsched.apis.krake.constraint_sets import Constraints, parse_constraints
from gitsched.apis.krake.inventory import is_deleted
from gitsched.apis.krake.memory import Memory
from gitsched.apis.krake.metrics import read_float
from gitsched.model.document import Body, Document, Key, member

FINAL = ("DEGRADED", "FAILED", "WAITING_FOR_CLUSTER_CREATION")
"""The states that the scheduler gives to an application."""
NO_MATCH = {"code": names.NO_SUITABLE_RESOURCE, "message": "No matching Kubernetes cluster found"}
_LONGEST = timedelta(days=3650)

Action = Literal["bind", "touch", "none", "fail", "ignored", "create", "hold"]


class Application(NamedTuple):
    """An application as its document describes it; `delay` is between two tries, `tries` how often again (-1: for ever)."""

    document: Document
    constraints: Constraints
    migration: bool
    delay: timedelta
    tries: int
    creates: bool

    @property
    def key(self) -> Key:
        return self.document.key

    @property
    def identity(self) -> str:
        """What its lots are drawn with."""
        return f"Application/{self.key.namespace}/{self.key.name}"


class Surroundings(NamedTuple):
    """What an application may be put on. `clouds` matter only to one that may have a cluster made; `broken` are clusters that cannot be
    read, or whose clouds cannot: what runs there stays."""

    clusters: Arena
    clouds: Arena | None
    broken: frozenset[Key]
    reschedule_after: timedelta
    hold: bool


class Step(NamedTuple):
    """One look. `memory` is what it leaves, `mask` the clusters that satisfy everything, `held` the present one. `at` is its index where
    one was chosen; `compared` says that scores decided. `change` is when time alone will change the outcome. `cloud` is where a cluster
    is to be made."""

    moment: datetime
    action: Action
    memory: Memory
    mask: int = 0
    held: int | None = None
    compared: bool = False
    why: str = ""
    change: datetime | None = None
    cloud: names.Ref | None = None

    @property
    def changes(self) -> bool:
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
        delay=_delay(spec.get("backoff"), spec.get("backoff_delay")),
        tries=int(spec["backoff_limit"]) if spec.get("backoff_limit") is not None else -1,
        creates=spec.get("auto_cluster_create") is True,
    )


def look(app: Application, memory: Memory, around: Surroundings, moment: datetime, source: datetime) -> Step:
    """Decide one application at a moment. `source` is the moment of its document: a look that something else causes leaves no trace of
    one more try in vain."""
    quiet = _rest(app, memory, moment)
    if quiet is not None:
        return quiet
    clusters = around.clusters
    if memory.awaited and not (memory.target and memory.target.name == memory.awaited):
        return _await(memory, clusters, moment)
    mask, held = clusters.matching(app.constraints), clusters.index(memory.target)
    kept = _hold(app, memory, around, mask, held)
    if kept:
        return Step(moment, "hold", memory, mask, held, why=kept)
    if not mask and not app.creates:
        return _fail(app, memory, mask, held, moment, source)
    fresh = memory.scheduled is not None and moment - memory.scheduled < around.reschedule_after
    if held is not None and mask >> held & 1 and fresh:
        chosen, _ = clusters.choose(mask, held, app.identity)
        change = None if chosen == held else (memory.scheduled or moment) + around.reschedule_after
        step = _stay(memory, mask, held, moment)
        return step._replace(change=change, why="it was placed a short while ago")
    if app.creates:
        created = _create(app, memory, around, mask, held, moment, source)
        if created is not None:
            return created
    chosen, _ = clusters.choose(mask, held, app.identity)
    if chosen == held:
        return _stay(memory, mask, held, moment)._replace(compared=True)
    bound = memory.own(clusters.sites[chosen].ref)._replace(scheduled=moment, triggered=moment)
    return Step(moment, "bind", bound, mask, held, compared=True)


def _rest(app: Application, memory: Memory, moment: datetime) -> Step | None:
    """The look that leads to nothing, for reasons of the application itself; None where it has to be scheduled."""
    if is_deleted(app.document.body):
        return Step(moment, "ignored", memory, why="it is being deleted")
    if memory.state == "FAILED":
        return Step(moment, "ignored", memory, why="it has failed; only another version of it is looked at again")
    if memory.state == "DEGRADED" and (memory.retry is None or moment < memory.retry):
        return Step(moment, "none", memory, why="its next try is not due", change=memory.retry)
    if memory.target is not None and not app.migration:
        if memory.triggered is None or memory.modified > memory.triggered:
            return Step(moment, "touch", memory._replace(triggered=moment), why="it must not migrate")
        return Step(moment, "none", memory, why="it must not migrate")
    if memory.paused > int(moment.timestamp()):
        end = datetime.fromtimestamp(memory.paused, moment.tzinfo) if memory.paused < 1 << 37 else None
        return Step(moment, "none", memory, why="its migration has a time-out that is not over", change=end)
    return None


def _stay(memory: Memory, mask: int, held: int, moment: datetime) -> Step:
    """On the same cluster. A new version is marked as seen by the scheduler; a periodic look leaves no trace."""
    if memory.triggered is not None and memory.modified <= memory.triggered:
        return Step(moment, "none", memory, mask, held)
    return Step(moment, "touch", memory._replace(triggered=moment), mask, held)


def _fail(app: Application, memory: Memory, mask: int, held: int | None, moment: datetime, source: datetime) -> Step:
    """Nothing matches: try again later while there are tries, else give up. What is bound stays where it is."""
    left = app.tries if memory.retries is None else memory.retries
    endless = app.tries <= 0 and (left > 0 or app.tries == -1)
    again = memory.state == "DEGRADED" and memory.reason == NO_MATCH
    if endless and again and (memory.known or moment > source):
        return Step(moment, "none", memory, mask, held, why=NO_MATCH["message"])
    failed = memory._replace(reason=NO_MATCH, retries=left)
    if left > 0 or app.tries == -1:
        retry = moment + app.delay
        failed = failed._replace(state="DEGRADED", retry=retry, retries=left - 1 if app.tries > 0 else left)
        return Step(moment, "fail", failed, mask, held, why=NO_MATCH["message"], change=None if endless else retry)
    return Step(moment, "fail", failed._replace(state="FAILED"), mask, held, why=NO_MATCH["message"])


def _hold(app: Application, memory: Memory, around: Surroundings, mask: int, held: int | None) -> str:
    """Why an application keeps what it has, because nobody knows what is best; "" where that is known."""
    if memory.target is not None and Key(*memory.target) in around.broken:
        return f"the document of its cluster {memory.target.name}, or of that cluster's cloud, is broken"
    if not around.hold:
        return ""
    clusters = around.clusters
    unknown = clusters.standby & clusters.meeting(app.constraints)
    if held is not None:
        return f"nobody knows the metrics of its cluster {memory.target.name}" if memory.target and unknown >> held & 1 else ""
    return "nobody knows the metrics of the clusters that could take it" if unknown and not mask and not app.creates else ""


def _await(memory: Memory, clusters: Arena, moment: datetime) -> Step:
    """A cluster is being made for it: as soon as that is there, it is taken, whatever the constraints."""
    at = clusters.fleet.index.get(memory.awaited)
    if at is None or not clusters.sites[at].online:
        return Step(moment, "none", memory, why=f"it waits for the cluster {memory.awaited}")
    bound = memory.own(clusters.sites[at].ref)._replace(scheduled=moment, triggered=moment)
    return Step(moment, "bind", bound, why=f"the cluster {memory.awaited} was made for it")


def _create(
    app: Application, memory: Memory, around: Surroundings, mask: int, held: int | None, moment: datetime, source: datetime
) -> Step | None:
    """Have a cluster made, where a cloud is better than every cluster; None where a cluster wins. Equals are won by clusters."""
    clouds = around.clouds
    offered = clouds.preferred(clouds.matching(app.constraints)) if clouds is not None else 0
    if clouds is None or not offered:
        return None if mask else _fail(app, memory, mask, held, moment, source)
    cloud, score = clouds.choose(offered, None, app.identity)
    if mask and around.clusters.choose(mask, held, app.identity)[1] >= score:
        return None
    waiting = memory._replace(state="WAITING_FOR_CLUSTER_CREATION")
    return Step(moment, "create", waiting, mask, held, compared=True, cloud=clouds.sites[cloud].ref)


def _delay(factor: object, seconds: object) -> timedelta:
    """backoff times backoff_delay, within what a calendar can hold."""
    product = 1.0
    for value in (factor, seconds):
        product *= read_float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 1.0
    return timedelta(seconds=product) if 0 <= product <= _LONGEST.total_seconds() else _LONGEST if product > 0 else timedelta()


def objects_of(document: Document) -> list[Body]:
    """The Kubernetes objects of an application."""
    return [entry for entry in member(document.body, "spec", "manifest") or () if isinstance(entry, dict)]
