"""All Placements of a commit at one moment after another: the order in which upstream would come to the same decisions.

They are decided by (namespace, name), and each sees what the same run decided before it. A deadline that lies between the source's
moment and now is a moment of its own, so that a late run gives what a punctual one would have given. Documents that were decided about
already are not decided about again: what stands, stands until the next deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.ocm import names
from gitsched.apis.ocm.basis import KEY as BASIS
from gitsched.apis.ocm.basis import Basis, read_basis
from gitsched.apis.ocm.evaluation import Compile, Evaluation, Scene, evaluate
from gitsched.apis.ocm.fleet import set_members
from gitsched.apis.ocm.history import History, Past
from gitsched.apis.ocm.placement import Placement
from gitsched.apis.ocm.scores import Scores
from gitsched.apis.ocm.status import Offer
from gitsched.model.document import Body, Document, Key, member, text_map
from gitsched.schedule.fleet import Fleet

MOMENTS = 64
"""Deadlines that one run makes up for at most."""


class Blocked(NamedTuple):
    """A Placement that nothing is decided about, and what it had decided: because of a set that cannot be used, or by its own wish."""

    placement: Placement
    past: Past
    record: Body | None
    unusable: Document | None
    why: str


class Sets:
    """The ManagedClusterSets of a fleet and the namespaces that are bound to them."""

    __slots__ = ("_bound", "_fleet", "_members", "documents")

    def __init__(self, sets: Iterable[Document], bindings: Iterable[Document], fleet: Fleet) -> None:
        self.documents = {document.key.name: document for document in sets}
        self._fleet = fleet
        self._members = {name: set_members(document, fleet) for name, document in self.documents.items()}
        self._bound: dict[str, list[str]] = {}
        for binding in bindings:
            if binding.key.name in self.documents:
                self._bound.setdefault(binding.key.namespace, []).append(binding.key.name)

    def offer(self, placement: Placement) -> Offer | tuple[Document, str]:
        """What a Placement may choose from, or the set that cannot be used and why."""
        bound = tuple(sorted(self._bound.get(placement.key.namespace, ())))
        eligible = tuple(name for name in bound if not placement.sets or name in placement.sets)
        available = 0
        for name in eligible:
            members = self._members[name]
            if isinstance(members, str):
                return self.documents[name], members
            available |= members
        return Offer(bound, eligible, available & ~self._fleet.leaving)

    def holding(self, index: int) -> list[str]:
        """The sets that a cluster is in, by name."""
        return [name for name, members in sorted(self._members.items()) if not isinstance(members, str) and members >> index & 1]


class Run(NamedTuple):
    """What came of all Placements, by key. `time` is the latest deadline after the source's moment that changed one of them,
    `basis` what the decisions that stand were made from."""

    evaluations: Mapping[Key, Evaluation]
    blocked: Mapping[Key, Blocked]
    wakeup: datetime | None
    time: datetime | None
    basis: Basis | None


def run(
    placements: Iterable[Placement],
    sets: Sets,
    fleet: Fleet,
    scores: Scores,
    compile_tests: Compile,
    history: History,
    record: Callable[[Key], Body | None],
    digest: str,
    at: datetime,
    now: datetime,
) -> Run:
    """Decide at the source's moment, and at each deadline until now."""
    basis = read_basis(record(BASIS))
    stands = basis is not None and basis.digest == digest and basis.moment <= now
    ordered = sorted(placements, key=lambda placement: (placement.key.namespace, placement.key.name))
    records: dict[Key, Body | None] = {placement.key: record(placement.key) for placement in ordered}
    moment = basis.moment if basis is not None and stands else at
    evaluations, blocked = dict[Key, Evaluation](), dict[Key, Blocked]()
    time: datetime | None = None
    for _ in range(MOMENTS):
        scene = Scene(fleet, scores, compile_tests, moment)
        for placement in ordered:
            key = placement.key
            owner = (key.namespace, key.name)
            past = history.of(owner)
            offer = sets.offer(placement)
            if placement.skipped or not isinstance(offer, Offer):
                unusable, why = (None, "") if isinstance(offer, Offer) or placement.skipped else offer
                blocked[key] = Blocked(placement, past, records[key], unusable, why)
                continue
            found = evaluate(placement, offer, past, history.load(owner), records[key], scene)
            if stands and (known := records[key]) is not None:
                found = found._replace(decisions=past.documents(key.namespace), record=known)
            elif found.record != records[key] or history.differs(owner, found.decisions):
                basis = Basis(digest, moment)
                time = moment if moment > at else time
                history.put(owner, found.decisions)
            evaluations[key], records[key] = found, found.record
        wakeup = min((found.wakeup for found in evaluations.values() if found.wakeup is not None), default=None)
        if wakeup is None or wakeup > now:
            break
        moment, stands = wakeup, False
    return Run(evaluations, blocked, wakeup, time, basis)


def list_decisions(previous: Iterable[tuple[Key, Body]], documents: Iterable[Document]) -> list[tuple[Key, Body]]:
    """The PlacementDecisions that stand: those of the last output, and the source's for a Placement that has none there."""
    written = list(previous)
    owners = {(key.namespace, _owner(body)) for key, body in written}
    own = [(d.key, d.body) for d in documents if (d.key.namespace, _owner(d.body)) not in owners]
    return [*written, *own]


def _owner(body: Body) -> str:
    return text_map(member(body, "metadata", "labels")).get(names.PLACEMENT_LABEL, "")
