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
"""The cost limits of one expression: for one cluster, and for all clusters together."""
_CLUSTER_VARIABLE = "managedCluster"
_MAX_SHOWN = 100
"""Characters of an expression that are shown in a message."""

ScoreLookup = Callable[[str, str], "list[Body] | None"]
"""Returns the scores of a cluster from the AddOnPlacementScore with a name; None if it does not exist."""


class ManagedClusterValue(dict[str, Any]):
    """The value of the variable managedCluster."""

    __slots__ = ("name", "score_lookup")
    type = "cluster"
    name: str
    score_lookup: ScoreLookup


@cel_function("cluster.scores(string): list")
def scores(cluster: ManagedClusterValue, resource: str) -> list[Body]:
    """Return the scores, expired or not: upstream does not check validUntil here."""
    result = cluster.score_lookup(cluster.name, resource)
    if result is None:
        raise EvaluationError(f"{cluster.name} has no AddOnPlacementScore {resource}")
    return result


class ClusterExpression:
    """One expression over one fleet, evaluated once for each cluster; equal only to itself."""

    __slots__ = ("_cluster_value", "_evaluated", "_matching", "_program", "_remaining_budget", "exceeded_limit")

    def __init__(self, text: str, cluster_values: Callable[[int], ManagedClusterValue]) -> None:
        self._program = Program(text, {_CLUSTER_VARIABLE: "cluster"})
        self._cluster_value = cluster_values
        self._evaluated = self._matching = 0
        self._remaining_budget = COST_BUDGET
        self.exceeded_limit = False

    @property
    def text(self) -> str:
        return self._program.text

    def mask(self, fleet: Fleet, remaining: int) -> int:
        for bit in iterate_bits(remaining & ~self._evaluated):
            self._evaluated |= bit
            if self._matches(self._cluster_value(bit.bit_length() - 1)):
                self._matching |= bit
        return remaining & self._matching

    def _matches(self, cluster_value: ManagedClusterValue) -> bool:
        limit = min(PER_CALL_LIMIT, self._remaining_budget)
        try:
            matches, cost = self._program.evaluate({_CLUSTER_VARIABLE: cluster_value}, limit)
        except CostLimitExceeded:
            matches, cost, self.exceeded_limit = False, limit, True
        self._remaining_budget -= cost
        return matches


class ExpressionCompiler:
    """Compiles the expressions of one run; Placements with the same expression share it."""

    __slots__ = ("_bodies", "_cluster_values", "_compiled", "_score_lookup")

    def __init__(self, bodies: tuple[Body, ...], score_lookup: ScoreLookup) -> None:
        self._bodies, self._score_lookup = bodies, score_lookup
        self._cluster_values: dict[int, ManagedClusterValue] = {}
        self._compiled: dict[str, ClusterExpression | InvalidExpression] = {}

    def compile(self, texts: tuple[str, ...]) -> tuple[ClusterExpression, ...] | InvalidExpression:
        """Compile expressions; an InvalidExpression describes the first that is invalid."""
        result = []
        for text in texts:
            expression = self._compile(text)
            if isinstance(expression, InvalidExpression):
                return expression
            result.append(expression)
        return tuple(result)

    def exceeded_limit(self, texts: tuple[str, ...]) -> bool:
        """Report whether one of the expressions exceeded its cost limit for any cluster."""
        expressions = (self._compiled.get(text) for text in texts)
        return any(isinstance(expression, ClusterExpression) and expression.exceeded_limit for expression in expressions)

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
        cluster_value = self._cluster_values.get(index)
        if cluster_value is None:
            body = self._bodies[index]
            cluster_value = self._cluster_values[index] = ManagedClusterValue(convert_managed_cluster(body))
            cluster_value.name, cluster_value.score_lookup = body["metadata"]["name"], self._score_lookup
        return cluster_value


_NEVER_OMITTED = frozenset({"conditions", "version", "creationTimestamp", "timeAdded", "hubAcceptsClient"})
"""Fields that Go encodes even if they are empty."""


def convert_managed_cluster(body: Body) -> Body:
    """Return a ManagedCluster as Go encodes the typed object: some fields exist even if they are not set, empty fields with omitempty do
    not, and quantities are strings."""
    spec, status = body.get("spec") or {}, body.get("status") or {}
    converted: Body = {**body, "metadata": {"creationTimestamp": None, **_omit_empty(body["metadata"])}}
    converted["spec"] = {"hubAcceptsClient": False, "leaseDurationSeconds": 60, **_omit_empty(spec)}
    if spec.get("taints"):
        converted["spec"]["taints"] = [{"timeAdded": None, **_omit_empty(taint)} for taint in spec["taints"]]
    converted["status"] = {"conditions": None, "version": {}, **_omit_empty(status)}
    for name in ("allocatable", "capacity"):
        if status.get(name):
            converted["status"][name] = {resource: str(amount) for resource, amount in status[name].items()}
    return converted


def _omit_empty(body: Body) -> Body:
    """Remove empty fields."""
    return {name: value for name, value in body.items() if name in _NEVER_OMITTED or (value not in ("", 0, None, [], {}))}
