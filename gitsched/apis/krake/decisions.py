"""Everything that Krake decides over one world, in this order: clusters onto clouds, applications onto clusters, the clusters that are
to be made for applications onto clouds, Magnum clusters onto projects."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from gitsched.apis.krake import applications, backends, names
from gitsched.apis.krake.applications import Application, Step, Surroundings, look, parse_application
from gitsched.apis.krake.arena import Arena, Rules, Site
from gitsched.apis.krake.backends import Binding, bind_cluster, bind_magnum_cluster, judge_clouds, judge_projects, settle
from gitsched.apis.krake.creation import create_cluster, name_cluster
from gitsched.apis.krake.inventory import Cluster, Inventory, project_site
from gitsched.apis.krake.memory import Memory, recall
from gitsched.apis.world import World
from gitsched.model.decision import Verdict
from gitsched.model.document import Document, Key

_DEADLINES = 64
"""Deadlines that one run makes up for at most, for one application."""


class Decided(NamedTuple):
    """An application with what was known of it, and every look at it in this run: the first, and one at each deadline up to now."""

    app: Application
    before: Memory
    steps: tuple[Step, ...]
    around: Surroundings

    @property
    def step(self) -> Step:
        """The look that says most: the last one that changed something, else the last."""
        return next((step for step in reversed(self.steps) if step.changes), self.steps[-1])


class Decisions:
    """`applications`, `bindings` (of clusters) and `magnum` are by key, in its order; `created` are clusters without a document."""

    def __init__(self, world: World) -> None:
        settings = world.config.krake
        self.world = world
        self.inventory = Inventory(world)
        self.hold = world.config.observations.on_failure == "hold"
        self._reschedule_after = settings.reschedule_after
        self._rules = Rules(settings.stickiness, settings.stickiness_formula == "document", settings.metric_constraints)
        self._seen: datetime | None = getattr(world.observations, "time", None)
        self._backends: dict[str, Arena] = {}
        self.broken = frozenset(key for key in world.broken if (key.group, key.kind) == names.CLUSTER)
        documents = world.documents.get(names.CLUSTER, ())
        self.bindings = {document.key: (document, self._bind(document)) for document in documents}
        bound = {key: binding.memory.target for key, (_, binding) in self.bindings.items()}
        self.clusters: Mapping[Key, Cluster] = {
            cluster.document.key: cluster for cluster in self.inventory.clusters(documents, bound)
        }
        unsure = (key for key, cluster in self.clusters.items() if cluster.unsure)
        self._uncertain = self.broken.union(unsure)
        self.arenas = self._gather()
        self.created: dict[Key, Document] = {}
        self.applications = {
            document.key: self._decide(parse_application(document)) for document in world.documents.get(names.APPLICATION, ())
        }
        self.bindings |= {key: (document, self._bind(document)) for key, document in self.created.items()}
        magnum = world.documents.get(names.MAGNUM_CLUSTER, ())
        self.magnum = {document.key: (document, self._bind_magnum(document)) for document in magnum}

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        """All clouds and projects of the world, whether anybody asked for them or not."""
        spaces = sorted({"", *self.inventory.cloud_namespaces})
        clouds = (site for space in spaces for site in self._cloud_arena(space).sites)
        projects = (project_site(document, readings, "") for document, readings in self.inventory.projects())
        return (*clouds, *projects)

    def cloud_arenas(self, namespace: str) -> tuple[Arena, Arena]:
        """The clouds of a namespace, and the global ones."""
        return self._cloud_arena(namespace), self._cloud_arena("")

    def _cloud_arena(self, namespace: str) -> Arena:
        arena = self._backends.get(namespace)
        if arena is None:
            arena = self._backends[namespace] = Arena(self.inventory.clouds(namespace), Rules(measure=self._rules.measure))
        return arena

    def judge(self, key: Key) -> list[Verdict] | None:
        """How every cloud or project fares for a cluster or Magnum cluster, in name order; None where there is no such document."""
        if key in self.bindings:
            return judge_clouds(self.bindings[key][0], self.cloud_arenas(key.namespace))
        if key in self.magnum:
            return judge_projects(self.magnum[key][0], self._projects_for(key.namespace))
        return None

    def _gather(self) -> dict[str, Arena]:
        sites: dict[str, list[Site]] = {}
        for key, cluster in self.clusters.items():
            sites.setdefault(key.namespace, []).append(cluster.site)
        return {namespace: Arena(found, self._rules) for namespace, found in sites.items()}

    def _bind(self, document: Document) -> Binding:
        memory = recall(document, self.world.previous.get(document.key), self.world.at, backends.FINAL)
        why = settle(document, memory)
        if why:
            return Binding("ignored", memory, why)
        arenas = self.cloud_arenas(document.key.namespace)
        return bind_cluster(document, memory, arenas, self._moment(*arenas), hold=self.hold)

    def _bind_magnum(self, document: Document) -> Binding:
        memory = recall(document, self.world.previous.get(document.key), self.world.at, backends.FINAL)
        arena = self._projects_for(document.key.namespace)
        return bind_magnum_cluster(document, memory, arena, hold=self.hold)

    def _projects_for(self, namespace: str) -> Arena:
        if namespace not in self._project_arenas:
            found = self.inventory.projects()
            sites = (project_site(document, readings, namespace) for document, readings in found)
            self._project_arenas[namespace] = Arena(sites, Rules(measure=self._rules.measure))
        return self._project_arenas[namespace]

    @cached_property
    def _project_arenas(self) -> dict[str, Arena]:
        return {}

    def _decide(self, app: Application) -> Decided:
        key = app.key
        before = recall(app.document, self.world.previous.get(key), self.world.at, applications.FINAL)
        clusters = self.arenas.get(key.namespace) or Arena((), self._rules)
        around = Surroundings(
            clusters, self._all_clouds(key.namespace) if app.creates else None, self._uncertain, self._reschedule_after, self.hold
        )
        moment = self._moment(clusters, *((around.clouds,) if around.clouds else ()))
        steps = [look(app, before, around, moment, self.world.at)]
        for _ in range(_DEADLINES):
            last = steps[-1]
            if last.change is None or not last.moment < last.change <= self.world.now:
                break
            steps.append(look(app, last.memory, around, last.change, self.world.at))
        if steps[-1].action == "create" or (steps[-1].memory.awaited and steps[-1].memory.target is None):
            steps[-1] = self._create(app, steps[-1])
        return Decided(app, before, tuple(steps), around)

    def _create(self, app: Application, step: Step) -> Step:
        """The look with the name of the cluster that is to be made, whose document is kept as long as nobody commits one."""
        taken = {key.name for key in (*self.clusters, *self.created, *self.broken) if key.namespace == app.key.namespace}
        name = step.memory.awaited or name_cluster(app.identity, taken)
        document = create_cluster(app.document, name)
        if document.key not in self.clusters:
            self.created[document.key] = document
        return step._replace(memory=step.memory._replace(awaited=name), why=step.why or f"it waits for the cluster {name}")

    def _all_clouds(self, namespace: str) -> Arena:
        """The clouds of a namespace and the global ones together, each with its kind in its name.

        As in Krake an application does not ask whether a cloud is being deleted; only a cluster does that is to be bound to it.
        """
        sites = (
            site._replace(name=f"{site.ref.kind}/{site.name}", open=True, why="")
            for arena in self.cloud_arenas(namespace)
            for site in arena.sites
        )
        # Where stickiness stands in every denominator, a cloud has to be as far from it as a cluster.
        return Arena(sites, self._rules)

    def _moment(self, *arenas: Arena) -> datetime:
        """When a decision is made: at the source's moment, or when the metrics that it rests upon were observed, if that was later."""
        at, seen = self.world.at, self._seen
        return max(at, seen) if seen is not None and any(arena.live for arena in arenas) else at
