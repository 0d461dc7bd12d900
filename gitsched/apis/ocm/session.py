"""Open Cluster Management over one commit: every Placement is decided when the session opens, workloads follow the decisions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gitsched.apis.ocm import names
from gitsched.apis.ocm.cel.clusters import Compiler
from gitsched.apis.ocm.fleet import read_clusters
from gitsched.apis.ocm.history import History
from gitsched.apis.ocm.notes import note_run
from gitsched.apis.ocm.placement import parse_placement
from gitsched.apis.ocm.run import Sets, list_decisions, run
from gitsched.apis.ocm.scores import Scores
from gitsched.apis.world import World, list_previous
from gitsched.model.decision import Verdict
from gitsched.model.document import Body, Document, Key
from gitsched.model.explanation import Explanation
from gitsched.model.outcome import Outcome
from gitsched.render.cluster import ClusterFacts
from gitsched.schedule.choose import explain

OUTSIDE = "it is in none of the cluster sets that the Placement may choose from"


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
        written = list_previous(world.previous, names.GROUP, names.DECISION)
        self._history = History(list_decisions(written, self._documents(names.DECISION)), known)
        scores = Scores(self._documents(names.SCORE), self.fleet.names, self._clusters.bodies)
        sets = Sets(self._documents(names.SET), self._documents(names.BINDING), self.fleet)
        self._compiler = Compiler(self._clusters.bodies, scores.of)
        self.run = run(
            placements, sets, self.fleet, scores, self._compiler.compile, self._history, world.previous.get, world.at, world.now
        )
        self.findings = tuple(note_run(self.run, self._compiler.overspent))
        self.wakeup, self.time = self.run.wakeup, self.run.time

    def renew(self, _world: World, /) -> bool:
        """Placements are no templates, so a new session has to decide them."""
        return False

    def own(self) -> Iterable[tuple[Document, Outcome]]:
        return ()

    def clusters(self) -> Mapping[str, ClusterFacts]:
        return self._clusters.facts

    def documents(self) -> Iterator[tuple[Key, Body]]:
        for key, found in self.run.evaluations.items():
            yield key, found.record
            yield from found.decisions
        for key, blocked in self.run.blocked.items():
            if blocked.record is not None:
                yield key, blocked.record
            yield from self._kept(key)
        for key in self._broken:
            record = self.world.previous.get(key)
            if record is not None:
                yield key, record
            yield from self._kept(key)

    def selects(self, _template: Document, /) -> bool:
        return False

    def place(self, _template: Document, /) -> Outcome | None:
        return None

    def keep(self, template: Document, why: str) -> Outcome | None:
        _ = template, why
        return None

    def candidates(self, _template: Document, /) -> list[Verdict]:
        return []

    def verdicts(self, kind: str, name: str, namespace: str, /) -> list[Verdict] | None:
        key = names.placement_key(namespace or "default", name)
        found = self.run.evaluations.get(key)
        if kind != names.PLACEMENT or found is None:
            return None
        if found.request is None or found.choice is None:
            return []
        return explain(found.request, found.choice, self.fleet, OUTSIDE)

    def explain(self, template: Document) -> Explanation | None:
        _ = template
        return None

    def _documents(self, kind: str) -> tuple[Document, ...]:
        return self.world.documents.get((names.GROUP, kind), ())

    def _kept(self, key: Key) -> Iterator[tuple[Key, Body]]:
        for name, body in self._history.of((key.namespace, key.name)).decisions.items():
            yield names.decision_key(key.namespace, name), body
