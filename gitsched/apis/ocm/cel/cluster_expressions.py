"""celExpressions of predicates: compile them and evaluate them against ManagedClusters within a cost budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gitsched.apis.ocm.cel.interpreter import Program
from gitsched.apis.ocm.cel.overloads import cel_function
from gitsched.apis.ocm.cel.syntax import InvalidExpression
from gitsched.apis.ocm.cel.types import CostLimitExceeded, EvaluationError
from gitsched.model.document import Body
from gitsched.schedule.fleet import Fleet, iterate_bits

PER_CALL_LIMIT, COST_BUDGET = 1_000_000, 20_000_000
"""What one expression may cost for one cluster, and for all clusters together."""
_CLUSTER_VARIABLE = "managedCluster"
_MAX_SHOWN = 100
"""Characters of an expression that a message has."""

ScoreLookup = Callable[[str, str], "list[Body] | None"]
"""The scores of a cluster by its name and that of the AddOnPlacementScore; None where there is no such object."""


class ManagedClusterValue(dict[str, Any]):
    """A managed cluster as expressions see it. `scores_of` is what its member function asks."""

    __slots__ = ("name", "score_lookup")
    type = "cluster"
    name: str
    score_lookup: ScoreLookup


@cel_function("cluster.scores(string): list")
def scores(cluster: ManagedClusterValue, resource: str) -> list[Body]:
    """Expired or not: upstream does not look at validUntil here."""
    found = cluster.score_lookup(cluster.name, resource)
    if found is None:
        raise EvaluationError(f"{cluster.name} has no AddOnPlacementScore {resource}")
    return found


class ClusterExpression:
    """One expression over one fleet; equal only to itself. It knows which clusters it has been asked about."""

    __slots__ = ("_cluster_value", "_evaluated", "_matching", "_program", "_remaining_budget", "exceeded_limit")

    def __init__(self, text: str, subjects: Callable[[int], ManagedClusterValue]) -> None:
        self._program = Program(text, {_CLUSTER_VARIABLE: "cluster"})
        self._cluster_value = subjects
        self._evaluated = self._matching = 0
        self._remaining_budget = COST_BUDGET
        self.exceeded_limit = False

    @property
    def text(self) -> str:
        return self._program.text

    def mask(self, fleet: Fleet, left: int) -> int:
        for bit in iterate_bits(left & ~self._evaluated):
            self._evaluated |= bit
            if self._matches(self._cluster_value(bit.bit_length() - 1)):
                self._matching |= bit
        return left & self._matching

    def _matches(self, subject: ManagedClusterValue) -> bool:
        steps = min(PER_CALL_LIMIT, self._remaining_budget)
        try:
            holds, taken = self._program.evaluate({_CLUSTER_VARIABLE: subject}, steps)
        except CostLimitExceeded:
            holds, taken, self.exceeded_limit = False, steps, True
        self._remaining_budget -= taken
        return holds


class ExpressionCompiler:
    """Expressions of one run, each compiled and asked once however many Placements have it."""

    __slots__ = ("_bodies", "_cluster_values", "_compiled", "_score_lookup")

    def __init__(self, bodies: tuple[Body, ...], scores_of: ScoreLookup) -> None:
        self._bodies, self._score_lookup = bodies, scores_of
        self._cluster_values: dict[int, ManagedClusterValue] = {}
        self._compiled: dict[str, ClusterExpression | InvalidExpression] = {}

    def compile(self, texts: tuple[str, ...]) -> tuple[ClusterExpression, ...] | InvalidExpression:
        """Tests for all of these, or what is wrong with the first that cannot be used."""
        found = []
        for text in texts:
            expression = self._compile(text)
            if isinstance(expression, InvalidExpression):
                return expression
            found.append(expression)
        return tuple(found)

    def exceeded_limit(self, texts: tuple[str, ...]) -> bool:
        """Whether one of these took more steps than it may, for some cluster."""
        known = (self._compiled.get(text) for text in texts)
        return any(isinstance(expression, ClusterExpression) and expression.exceeded_limit for expression in known)

    def _compile(self, text: str) -> ClusterExpression | InvalidExpression:
        if text not in self._compiled:
            try:
                self._compiled[text] = ClusterExpression(text, self._cluster_value)
            except InvalidExpression as problem:
                self._compiled[text] = InvalidExpression(
                    f"{problem}, in the expression {text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + '...'}", problem.code
                )
        return self._compiled[text]

    def _cluster_value(self, index: int) -> ManagedClusterValue:
        subject = self._cluster_values.get(index)
        if subject is None:
            body = self._bodies[index]
            subject = self._cluster_values[index] = ManagedClusterValue(convert_managed_cluster(body))
            subject.name, subject.score_lookup = body["metadata"]["name"], self._score_lookup
        return subject


_NEVER_OMITTED = frozenset({"conditions", "version", "creationTimestamp", "timeAdded", "hubAcceptsClient"})
"""Members that Go writes even when they are empty."""


def convert_managed_cluster(body: Body) -> Body:
    """A ManagedCluster as Go writes the typed object: some members are there even when nobody wrote them, others are absent when they
    are empty, quantities are texts."""
    spec, status = body.get("spec") or {}, body.get("status") or {}
    shown: Body = {**body, "metadata": {"creationTimestamp": None, **_omit_empty(body["metadata"])}}
    shown["spec"] = {"hubAcceptsClient": False, "leaseDurationSeconds": 60, **_omit_empty(spec)}
    if spec.get("taints"):
        shown["spec"]["taints"] = [{"timeAdded": None, **_omit_empty(taint)} for taint in spec["taints"]]
    shown["status"] = {"conditions": None, "version": {}, **_omit_empty(status)}
    for name in ("allocatable", "capacity"):
        if status.get(name):
            shown["status"][name] = {resource: str(amount) for resource, amount in status[name].items()}
    return shown


def _omit_empty(body: Body) -> Body:
    """Without what is empty."""
    return {name: value for name, value in body.items() if name in _NEVER_OMITTED or (value not in ("", 0, None, [], {}))}
