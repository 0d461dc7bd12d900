"""Knative's event sources over one commit: from sources, pods and nodes to placements, replicas and marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from gitsched.apis.knative import names, notes
from gitsched.apis.knative.memory import (
    Rendering,
    recall_adapter,
    recall_marks,
    recall_rendering,
    record_adapter,
    record_mark,
    record_source,
)
from gitsched.apis.knative.pods import node_of
from gitsched.apis.knative.reading import Reading, Sources, Stuck, read_sources, read_world
from gitsched.apis.knative.settling import Settled, settle
from gitsched.apis.sites import NODE
from gitsched.apis.world import Load, World
from gitsched.model.cluster import ClusterFacts
from gitsched.model.decision import Verdict
from gitsched.model.document import Body, Document, Key
from gitsched.model.explanation import Explanation
from gitsched.model.finding import Finding
from gitsched.model.outcome import Outcome, Placed

_READ = frozenset((("", "Pod"), ("", "Node"), ("", "ConfigMap"), ("apps", "StatefulSet")))


class KnativeSession:
    """See `gitsched.apis.world.Session`. Everything is decided when it is made."""

    name = "knative"

    def __init__(self, world: World) -> None:
        self.world = world
        self.sources: Sources = read_sources(world)
        self.reading: Reading | None = None
        self.settled: Settled | None = None
        self.findings: tuple[Finding, ...] = self.sources.findings
        self.stuck: Finding | None = None
        self.wakeup: datetime | None = None
        self.time: datetime | None = None
        self._records: tuple[tuple[Key, Body], ...] = ()
        self._known: tuple[Key, Body] | None = None
        try:
            self._decide(read_world(world, self.sources))
        except Stuck as stuck:
            self._stay(stuck.finding)

    def _stay(self, finding: Finding) -> None:
        """Nothing can be decided: everything is as the last run left it."""
        world = self.world
        self.findings = (*self.findings, finding)
        self.stuck = finding
        self._known = recall_adapter(world)
        sources = (key for key in (*(document.key for document, _ in self.sources.sound.values()), *self.sources.broken))
        marks = recall_marks(self._known[0], world) if self._known else []
        self._records = (*([self._known] if self._known else []), *marks, *_recorded(sources, world))

    def _decide(self, reading: Reading) -> None:
        world = self.world
        settled = settle(reading.question, reading.memory, dict(reading.held), world.at, world.now)
        adapter = reading.adapter
        records = [(adapter.key, record_adapter(adapter, settled.memory, world.config.knative.cluster))]
        records += [(d.key, record_source(d, adapter.key, settled.held[name])) for name, d in reading.sources.items()]
        marks, lifted = settled.memory.marks, settled.memory.lifted
        pods = [(names.pod_key(adapter.key, ordinal), ordinal in marks) for ordinal in sorted(marks | lifted)]
        records += [(key, record_mark(key, marked)) for key, marked in pods]
        self.reading, self.settled = reading, settled
        self.wakeup, self.time = settled.wakeup, settled.time
        self._records = (*records, *_recorded(self.sources.broken, world))
        self.findings = (*self.findings, *notes.describe(reading, settled, self.sources, world.config.knative.cluster))

    def renew(self, world: World) -> bool:
        """Only where nothing that was read is another object now: one source that differs may move the others."""
        old = self.world
        if self.wakeup is not None and self.wakeup <= world.now:
            return False
        kinds = {(document.key.group, document.key.kind) for document, _ in self.sources.sound.values()} | _READ
        read = [key for key in world.templates if (key.group, key.kind) in kinds]
        same = all(world.templates[key] is old.templates.get(key) for key in read)
        if not same or any(world.previous.get(key) is not old.previous.get(key) for key in (*read, *dict(self._records))):
            return False
        self.world = world
        return True

    def own(self) -> Iterable[tuple[Document, Outcome]]:
        if self.reading is not None and self.settled is not None:
            adapter, replicas = self.reading.adapter, self.settled.memory.replicas
            cluster = self.world.config.knative.cluster
            if cluster:
                reason, time = notes.tell_replicas(self.settled), self.settled.time or self.world.at
                yield adapter, self._outcome(adapter, Rendering(cluster, replicas), "placed", reason, time)
        elif self._known is not None and self._known[0] in self.world.templates and self.stuck is not None:
            adapter, rendering = self.world.templates[self._known[0]], recall_rendering(self._known[1])
            if rendering is not None:
                yield adapter, self._outcome(adapter, rendering, "stale", self.stuck.message, self.world.at)

    def _outcome(self, adapter: Document, rendering: Rendering, state: str, reason: str, time: datetime) -> Outcome:
        before = recall_rendering(self.world.previous.get(adapter.key))
        cluster, replicas = rendering
        return Outcome(
            key=adapter.key,
            api=self.name,
            state=state,
            policy="knative.cluster",
            group="",
            placed=(Placed(cluster, replicas, edits=(("spec.replicas", replicas),)),),
            replicas=replicas,
            documents=(),
            reason=reason,
            time=time,
            before=(Placed(before.cluster, before.replicas),) if before else (),
        )

    def loads(self) -> Mapping[Key, Load]:
        """The sources by pod."""
        if self.reading is None or self.settled is None:
            return {}
        reading, adapter = self.reading, self.reading.adapter.key
        sites = {names.pod_key(adapter, o).name: f"{NODE}/{node_of(pod)}" for o, pod in reading.cluster.pods.items()}
        return {
            document.key: Load(
                reading.question.wanted[name],
                {names.pod_key(adapter, ordinal).name: count for ordinal, count in sorted(self.settled.held[name].items())},
                sites,
            )
            for name, document in reading.sources.items()
        }

    def clusters(self) -> Mapping[str, ClusterFacts]:
        rendering = recall_rendering(self._known[1]) if self._known else None
        name = self.world.config.knative.cluster if self.settled else rendering.cluster if rendering else ""
        return {name: ClusterFacts(name, {})} if name else {}

    def documents(self) -> Iterable[tuple[Key, Body]]:
        return self._records

    def consulted(self) -> Iterable[Key]:
        """Nodes, the StatefulSet's Pods, and what configures the two schedulers."""
        adapter = self.reading.adapter.key if self.reading else self._known[0] if self._known else None
        for key in self.world.templates:
            match key:
                case Key("", "Node"):
                    yield key
                case Key("", "Pod", namespace, name) if adapter and namespace == adapter.namespace:
                    if names.read_ordinal(name, adapter.name) is not None:
                        yield key
                case Key("", "ConfigMap", _, names.SCHEDULER | names.DESCHEDULER):
                    yield key

    def place(self, _template: Document) -> Outcome | None:
        return None

    def selects(self, template: Document) -> bool:
        return template.key in self.sources.broken or (self._known is not None and template.key == self._known[0])

    def keep(self, template: Document, why: str) -> Outcome | None:
        rendering = recall_rendering(self._known[1]) if self._known and template.key == self._known[0] else None
        return self._outcome(template, rendering, "stale", why, self.world.at) if rendering else None

    def candidates(self, _template: Document) -> list[Verdict]:
        return []

    def verdicts(self, kind: str, name: str, namespace: str, /) -> list[Verdict] | None:
        from gitsched.apis.knative.explanation import judge  # only `explain` needs it

        return judge(self.reading, self.settled, kind, name, namespace) if self.reading and self.settled else None

    def explain(self, template: Document) -> Explanation | None:
        from gitsched.apis.knative.explanation import explain, explain_stay  # only the verb explain needs it

        if self.reading is None or self.settled is None:
            return explain_stay(template, self._records, self.stuck) if self.stuck else None
        return explain(self.reading, self.settled, template, self.findings)


def _recorded(keys: Iterable[Key], world: World) -> Iterable[tuple[Key, Body]]:
    """What the last run wrote, unchanged."""
    return ((key, record) for key in keys if (record := world.previous.get(key)) is not None)
