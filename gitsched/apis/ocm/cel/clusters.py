"""Expressions about managed clusters: as tests that the scheduler asks, with bounds on what they cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gitsched.apis.ocm.cel.machine import Program
from gitsched.apis.ocm.cel.registry import function
from gitsched.apis.ocm.cel.syntax import Refused
from gitsched.apis.ocm.cel.values import Failed, Spent
from gitsched.model.document import Body
from gitsched.schedule.fleet import Fleet, bits

STEPS, ALL_STEPS = 1_000_000, 20_000_000
"""What one expression may cost for one cluster, and for all clusters together."""
_CLUSTER = "managedCluster"
_SHOWN = 100
"""Characters of an expression that a message has."""

ScoresOf = Callable[[str, str], "list[Body] | None"]
"""The scores of a cluster by its name and that of the AddOnPlacementScore; None where there is no such object."""


class Subject(dict[str, Any]):
    """A managed cluster as expressions see it. `scores_of` is what its member function asks."""

    __slots__ = ("name", "scores_of")
    type = "cluster"
    name: str
    scores_of: ScoresOf


@function("cluster.scores(string): list")
def scores(cluster: Subject, resource: str) -> list[Body]:
    """Expired or not: upstream does not look at validUntil here."""
    found = cluster.scores_of(cluster.name, resource)
    if found is None:
        raise Failed(f"{cluster.name} has no AddOnPlacementScore {resource}")
    return found


class Expression:
    """One expression over one fleet; equal only to itself. It knows which clusters it has been asked about."""

    __slots__ = ("_asked", "_holding", "_left", "_program", "_subjects", "spent")

    def __init__(self, text: str, subjects: Callable[[int], Subject]) -> None:
        self._program = Program(text, {_CLUSTER: "cluster"})
        self._subjects = subjects
        self._asked = self._holding = 0
        self._left = ALL_STEPS
        self.spent = False

    @property
    def text(self) -> str:
        return self._program.text

    def mask(self, fleet: Fleet, left: int) -> int:
        for bit in bits(left & ~self._asked):
            self._asked |= bit
            if self._holds(self._subjects(bit.bit_length() - 1)):
                self._holding |= bit
        return left & self._holding

    def _holds(self, subject: Subject) -> bool:
        steps = min(STEPS, self._left)
        try:
            holds, taken = self._program.run({_CLUSTER: subject}, steps)
        except Spent:
            holds, taken, self.spent = False, steps, True
        self._left -= taken
        return holds


class Compiler:
    """Expressions of one run, each compiled and asked once however many Placements have it."""

    __slots__ = ("_bodies", "_known", "_scores_of", "_subjects")

    def __init__(self, bodies: tuple[Body, ...], scores_of: ScoresOf) -> None:
        self._bodies, self._scores_of = bodies, scores_of
        self._subjects: dict[int, Subject] = {}
        self._known: dict[str, Expression | Refused] = {}

    def compile(self, texts: tuple[str, ...]) -> tuple[Expression, ...] | Refused:
        """Tests for all of these, or what is wrong with the first that cannot be used."""
        found = []
        for text in texts:
            expression = self._compile(text)
            if isinstance(expression, Refused):
                return expression
            found.append(expression)
        return tuple(found)

    def overspent(self, texts: tuple[str, ...]) -> bool:
        """Whether one of these took more steps than it may, for some cluster."""
        known = (self._known.get(text) for text in texts)
        return any(isinstance(expression, Expression) and expression.spent for expression in known)

    def _compile(self, text: str) -> Expression | Refused:
        if text not in self._known:
            try:
                self._known[text] = Expression(text, self._subject)
            except Refused as problem:
                self._known[text] = Refused(
                    f"{problem}, in the expression {text if len(text) <= _SHOWN else text[:_SHOWN] + '...'}", problem.code
                )
        return self._known[text]

    def _subject(self, index: int) -> Subject:
        subject = self._subjects.get(index)
        if subject is None:
            body = self._bodies[index]
            subject = self._subjects[index] = Subject(show_cluster(body))
            subject.name, subject.scores_of = body["metadata"]["name"], self._scores_of
        return subject


_ALWAYS = frozenset({"conditions", "version", "creationTimestamp", "timeAdded", "hubAcceptsClient"})
"""Members that Go writes even when they are empty."""


def show_cluster(body: Body) -> Body:
    """A ManagedCluster as Go writes the typed object: some members are there even when nobody wrote them, others are absent when they
    are empty, quantities are texts."""
    spec, status = body.get("spec") or {}, body.get("status") or {}
    shown: Body = {**body, "metadata": {"creationTimestamp": None, **_leave_out(body["metadata"])}}
    shown["spec"] = {"hubAcceptsClient": False, "leaseDurationSeconds": 60, **_leave_out(spec)}
    if spec.get("taints"):
        shown["spec"]["taints"] = [{"timeAdded": None, **_leave_out(taint)} for taint in spec["taints"]]
    shown["status"] = {"conditions": None, "version": {}, **_leave_out(status)}
    for name in ("allocatable", "capacity"):
        if status.get(name):
            shown["status"][name] = {resource: str(amount) for resource, amount in status[name].items()}
    return shown


def _leave_out(body: Body) -> Body:
    """Without what is empty."""
    return {name: value for name, value in body.items() if name in _ALWAYS or (value not in ("", 0, None, [], {}))}
