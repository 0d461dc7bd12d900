"""Open Cluster Management over one commit: every Placement is decided when the session opens, workloads follow the decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gitsched.apis.gitsched.config import GROUP as CONFIG_GROUP
from gitsched.apis.ocm import names
from gitsched.apis.ocm.basis import digest_documents, write_basis
from gitsched.apis.ocm.cel.clusters import Compiler
from gitsched.apis.ocm.delivery import deliver, keep
from gitsched.apis.ocm.fleet import read_clusters
from gitsched.apis.ocm.history import History
from gitsched.apis.ocm.memory import recall
from gitsched.apis.ocm.notes import note_run
from gitsched.apis.ocm.placement import parse_placement
from gitsched.apis.ocm.reports import KIND as REPORT
from gitsched.apis.ocm.reports import read_reports
from gitsched.apis.ocm.run import Sets, list_decisions, run
from gitsched.apis.ocm.scores import Scores
from gitsched.apis.ocm.workloads import Standing, Workload, named_placement, read_replica_set, read_template, spread
from gitsched.apis.world import Edit, World, list_previous
from gitsched.model.cluster import ClusterFacts
from gitsched.model.decision import Verdict
from gitsched.model.document import Body, Document, Key
from gitsched.model.explanation import Explanation
from gitsched.model.outcome import Outcome


class OcmSession:
    """See `gitsched.apis.world.Session`."""

    name = "ocm"

    def __init__(self, world: World) -> None:
        self.world = world
        self._clusters = read_clusters(self._documents(names.CLUSTER))
        self.fleet = self._clusters.fleet
        placements = [parse_placement(document) for document in self._documents(names.PLACEMENT)]
        self._broken = sorted(key for key in world.broken if (key.group, key.kind) == (names.GROUP, names.PLACEMENT))
        known = frozenset((key.namespace, key.name) for key in (*(placement.key for placement in placements), *self._broken))
        past = list_previous(world.previous, names.GROUP, names.DECISION)
        self._history = History(list_decisions(past, self._documents(names.DECISION)), known)
        scores = Scores(self._documents(names.SCORE), self.fleet.names, self._clusters.bodies)
        self.sets = Sets(self._documents(names.SET), self._documents(names.BINDING), self.fleet)
        self._compiler = Compiler(self._clusters.bodies, scores.of)
        self.run = run(
            placements,
            self.sets,
            self.fleet,
            scores,
            self._compiler.compile,
            self._history,
            world.previous.get,
            digest_documents(world.documents, world.broken),
            world.at,
            world.now,
        )
        self.findings = tuple(note_run(self.run, self.fleet, self._compiler.overspent))
        self._standing = dict(self._stand())
        written = world.documents.get((CONFIG_GROUP, REPORT), ())
        self._reports = read_reports(written, world.observations)
        self.wakeup, self.time = self.run.wakeup, self.run.time

    def renew(self, world: World, /) -> bool:
        """The Placements stand as long as nothing is due; ManifestWorkReplicaSets are no templates, and have to be asked for anew."""
        due = self.wakeup is not None and self.wakeup <= world.now
        if due or (names.WORK_GROUP, names.REPLICA_SET) in world.documents or world.observations != self.world.observations:
            return False
        self.world, self.time = world, None
        return True

    def own(self) -> Iterator[tuple[Document, Outcome]]:
        for document in self.world.documents.get((names.WORK_GROUP, names.REPLICA_SET), ()):
            yield document, self._deliver(read_replica_set(document))

    def clusters(self) -> Mapping[str, ClusterFacts]:
        return self._clusters.facts

    def documents(self) -> Iterator[tuple[Key, Body]]:
        for key, standing in self._standing.items():
            found = self.run.evaluations.get(key)
            record = self.world.previous.get(key) if found is None else found.record
            if record is not None:
                yield key, record
            yield from standing.decisions
        if self.run.basis is not None:
            yield write_basis(self.run.basis)

    def selects(self, template: Document, /) -> bool:
        return named_placement(template) is not None

    def place(self, template: Document, /) -> Outcome | None:
        workload = read_template(template)
        return None if workload is None else self._deliver(workload)

    def basis(self, template: Document) -> tuple[object, ...]:
        """The decisions that a template follows."""
        placement = named_placement(template)
        found = None if placement is None else self._standing.get(placement)
        return () if found is None else (found.decisions,)

    @property
    def learned(self) -> int:
        return 0

    def further(self, _dirty: frozenset[Key]) -> frozenset[Key]:
        return frozenset()

    def keep(self, template: Document, why: str) -> Outcome | None:
        own = (template.key.group, template.key.kind) == (names.WORK_GROUP, names.REPLICA_SET)
        workload = None if own else read_template(template)
        record = template.key if own else workload.record if workload is not None else None
        previous = None if record is None else self.world.previous.get(record)
        if record is None or previous is None:
            return None
        return keep(template, record, recall(previous), previous, why, self.world.at)

    def candidates(self, template: Document, /) -> list[Verdict]:
        workload = self._workload(template)
        if workload is None:
            return []
        placement = workload.references[0][0]
        return self.verdicts(names.PLACEMENT, placement.name, placement.namespace) or []

    def verdicts(self, kind: str, name: str, namespace: str, /) -> list[Verdict] | None:
        from gitsched.apis.ocm.explanation import judge_clusters

        key = names.placement_key(namespace or "default", name)
        found = self.run.evaluations.get(key)
        if kind != names.PLACEMENT or found is None:
            return None
        return judge_clusters(found, self.fleet)

    def propose(self, template: Document, cluster: str, /) -> Edit | None:
        from gitsched.apis.ocm.advice import propose  # only who asks for it needs it

        workload = self._workload(template)
        found = None if workload is None else self.run.evaluations.get(workload.references[0][0])
        return None if found is None else propose(self, found, cluster)

    def explain(self, template: Document) -> Explanation | None:
        from gitsched.apis.ocm.explanation import explain_placement, explain_workload  # only the verb explain needs it

        def tell(placement: Key) -> Explanation | None:
            found = self.run.evaluations.get(placement)
            return None if found is None else explain_placement(found.placement.document, found, self.fleet, self.findings)

        if (template.key.group, template.key.kind) == (names.GROUP, names.PLACEMENT):
            return tell(template.key)
        workload = self._workload(template)
        if workload is None:
            return None
        first = workload.references[0][0]
        return explain_workload(workload, self._deliver(workload), tell(first))

    def _workload(self, document: Document) -> Workload | None:
        own = (document.key.group, document.key.kind) == (names.WORK_GROUP, names.REPLICA_SET)
        workload = read_replica_set(document) if own else read_template(document)
        return workload if workload is not None and workload.references else None

    def _deliver(self, workload: Workload) -> Outcome:
        world, previous = self.world, self.world.previous.get(workload.record)
        memory = recall(previous)
        spreading = spread(workload, self._standing, memory, self._reports, self._clusters.facts, world.at, world.now)
        return deliver(workload, spreading, memory, self._standing, previous)

    def _stand(self) -> Iterator[tuple[Key, Standing]]:
        """Every Placement with its decisions, those that are left alone or broken with what they had decided."""
        for key, found in self.run.evaluations.items():
            yield key, Standing(found.decisions, found.placement.per_group, found.wakeup)
        for key, blocked in self.run.blocked.items():
            yield key, Standing(tuple(self._kept(key)), blocked.placement.per_group)
        for key in self._broken:
            yield key, Standing(tuple(self._kept(key)))

    def _documents(self, kind: str) -> tuple[Document, ...]:
        return self.world.documents.get((names.GROUP, kind), ())

    def _kept(self, key: Key) -> Iterator[tuple[Key, Body]]:
        yield from self._history.of((key.namespace, key.name)).documents(key.namespace)
