"""Knative's event sources over one commit: from sources, pods and nodes to placements, replicas and marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from gitsched.apis.knative import names, notes
from gitsched.apis.knative.memory import recall_rendering, record_adapter, record_mark, record_source
from gitsched.apis.knative.reading import Reading, Sources, Stuck, read_sources, read_world
from gitsched.apis.knative.settling import Settled, settle
from gitsched.apis.world import World
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
        self.wakeup: datetime | None = None
        self.time: datetime | None = None
        self._records: tuple[tuple[Key, Body], ...] = ()
        try:
            self._decide(read_world(world, self.sources))
        except Stuck as stuck:
            self.findings = (*self.findings, stuck.finding)
            kept = (key for key in (*(document.key for document, _ in self.sources.sound.values()), *self.sources.broken))
            self._records = tuple(_recorded(kept, world))

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
        cluster = self.world.config.knative.cluster
        if not cluster or self.reading is None or self.settled is None:
            return
        adapter, replicas = self.reading.adapter, self.settled.memory.replicas
        before = recall_rendering(self.world.previous.get(adapter.key))
        yield (
            adapter,
            Outcome(
                key=adapter.key,
                api=self.name,
                state="placed",
                policy="knative.cluster",
                group="",
                placed=(Placed(cluster, replicas, edits=(("spec.replicas", replicas),)),),
                replicas=replicas,
                documents=(),
                reason=notes.tell_replicas(self.settled),
                time=self.settled.time or self.world.at,
                before=(Placed(before.cluster, before.replicas),) if before else (),
            ),
        )

    def clusters(self) -> Mapping[str, ClusterFacts]:
        cluster = self.world.config.knative.cluster
        return {cluster: ClusterFacts(cluster, {})} if cluster and self.settled else {}

    def documents(self) -> Iterable[tuple[Key, Body]]:
        return self._records

    def consulted(self) -> Iterable[Key]:
        """Nodes, the StatefulSet's Pods, and what configures the two schedulers."""
        if self.reading is None:
            return ()
        adapter = self.reading.adapter.key
        pods = (document.key for document in self.reading.cluster.pods.values())
        policies = (Key("", "ConfigMap", adapter.namespace, name) for name in (names.SCHEDULER, names.DESCHEDULER))
        nodes = (key for key in self.world.templates if (key.group, key.kind) == ("", "Node"))
        return (*pods, *policies, *nodes)

    def place(self, _template: Document) -> Outcome | None:
        return None

    def selects(self, template: Document) -> bool:
        return template.key in self.sources.broken

    def keep(self, _template: Document, _why: str) -> Outcome | None:
        return None

    def candidates(self, _template: Document) -> list[Verdict]:
        return []

    def verdicts(self, kind: str, name: str, namespace: str, /) -> list[Verdict] | None:
        from gitsched.apis.knative.explanation import judge  # only `explain` needs it

        return judge(self.reading, self.settled, kind, name, namespace) if self.reading and self.settled else None

    def explain(self, template: Document) -> Explanation | None:
        from gitsched.apis.knative.explanation import explain  # only the verb explain needs it

        return explain(self.reading, self.settled, template, self.findings) if self.reading and self.settled else None


def _recorded(keys: Iterable[Key], world: World) -> Iterable[tuple[Key, Body]]:
    """What the last run wrote, unchanged."""
    return ((key, record) for key in keys if (record := world.previous.get(key)) is not None)
