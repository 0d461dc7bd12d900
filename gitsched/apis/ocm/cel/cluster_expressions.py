"""celExpressions of predicates: compile them and evaluate them against ManagedClusters within a cost budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gitsched.apis.ocm.cel.interpreter import Program
from gitsched.apis.ocm.cel.overloads import cel_function
from gitsched.apis.ocm.cel.syntax import InvalidExpression
from gitsched.apis.ocm.cel.types import CostLimitExceeded, EvaluationError
from gitsched.model.document import Body, Key
from gitsched.schedule.fleet import Fleet

PER_CALL_LIMIT = 1_000_000
"""The cost limit of one evaluation, that of Kubernetes (k8s.io/apiserver/pkg/apis/cel/config.go)."""
ASSURED_COST, ASSURED_COST_PER_CLUSTER = 10_000, 100
"""What the expressions of each Placement may cost whatever others do: a constant, and an amount for each cluster of the fleet."""
PLACEMENT_LIMIT, SHARED_COST = 1_000_000, 2_000_000
"""What the expressions of one Placement, and of all of a run together, may cost beyond that. A cost of 1,000,000 takes less than a
second. Kubernetes allows 10,000,000 for one object, which one API server evaluates for one request and not for the whole fleet."""
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


class SharedBudget:
    """The cost that all Placements of a run have left together."""

    __slots__ = ("remaining",)

    def __init__(self, remaining: int = SHARED_COST) -> None:
        self.remaining = remaining


class CostBudget:
    """The cost that the expressions of one Placement have left: an assured part, and then one that all of a run share."""

    __slots__ = ("_assured", "_remaining", "_shared")

    def __init__(self, shared: SharedBudget, cluster_count: int) -> None:
        self._assured = ASSURED_COST + ASSURED_COST_PER_CLUSTER * cluster_count
        self._remaining, self._shared = PLACEMENT_LIMIT, shared

    @property
    def limit(self) -> int:
        """The cost that the next evaluation may have."""
        return min(PER_CALL_LIMIT, self._assured + min(self._remaining, self._shared.remaining))

    def charge(self, cost: int) -> None:
        """Take the cost of an evaluation off."""
        assured = min(cost, self._assured)
        self._assured -= assured
        self._remaining -= cost - assured
        self._shared.remaining -= cost - assured


class ClusterExpression:
    """One expression over one fleet, evaluated once for each cluster; equal only to itself. The first Placement that uses it pays."""

    __slots__ = ("_budget", "_cluster_value", "_evaluated", "_failed", "_matching", "_program", "error", "exceeded_limit")

    def __init__(self, text: str, cluster_values: Callable[[int], ManagedClusterValue], budget: CostBudget) -> None:
        self._program = Program(text, {_CLUSTER_VARIABLE: "cluster"})
        self._cluster_value = cluster_values
        self._evaluated = self._matching = self._failed = 0
        self._budget = budget
        self.exceeded_limit = False
        self.error = ""

    @property
    def fails_always(self) -> bool:
        """Whether the evaluation has an error for each cluster for which it took place; `error` is one of them."""
        return 0 < self._failed == self._evaluated.bit_count()

    @property
    def text(self) -> str:
        return self._program.text

    def mask(self, fleet: Fleet, remaining: int) -> int:
        for index in fleet.members(remaining & ~self._evaluated):
            self._evaluated |= 1 << index
            if self._matches(self._cluster_value(index)):
                self._matching |= 1 << index
        return remaining & self._matching

    def _matches(self, cluster_value: ManagedClusterValue) -> bool:
        limit = self._budget.limit
        try:
            matches, cost, error = self._program.evaluate_with_error({_CLUSTER_VARIABLE: cluster_value}, limit)
        except CostLimitExceeded:
            matches, cost, error, self.exceeded_limit = False, limit, "", True
        if error:
            self._failed, self.error = self._failed + 1, self.error or error
        self._budget.charge(cost)
        return matches


class ExpressionCompiler:
    """Compiles the expressions of one run; Placements with the same expression share it."""

    __slots__ = ("_bodies", "_budgets", "_cluster_values", "_compiled", "_score_lookup", "_shared")

    def __init__(self, bodies: tuple[Body, ...], score_lookup: ScoreLookup) -> None:
        self._bodies, self._score_lookup = bodies, score_lookup
        self._cluster_values: dict[int, ManagedClusterValue] = {}
        self._compiled: dict[str, ClusterExpression | InvalidExpression] = {}
        self._budgets: dict[Key, CostBudget] = {}
        self._shared = SharedBudget()

    def compile(self, texts: tuple[str, ...], placement: Key) -> tuple[ClusterExpression, ...] | InvalidExpression:
        """Compile expressions of a Placement; an InvalidExpression describes the first that is invalid."""
        budget = self._budgets.setdefault(placement, CostBudget(self._shared, len(self._bodies)))
        result = []
        for text in texts:
            expression = self._compile(text, budget)
            if isinstance(expression, InvalidExpression):
                return expression
            result.append(expression)
        return tuple(result)

    def list_exceeding(self, texts: Iterable[str]) -> list[str]:
        """Return those of the expressions that exceeded a cost limit for any cluster, shortened."""
        expressions = [self._compiled.get(text) for text in dict.fromkeys(texts)]
        return [_shorten(found.text) for found in expressions if isinstance(found, ClusterExpression) and found.exceeded_limit]

    def list_failing(self, texts: Iterable[str]) -> list[tuple[str, str]]:
        """Return those of the expressions whose evaluation fails for every cluster, shortened, each with an error."""
        expressions = [self._compiled.get(text) for text in dict.fromkeys(texts)]
        return [
            (_shorten(one.text), one.error[:200]) for one in expressions if isinstance(one, ClusterExpression) and one.fails_always
        ]

    def _compile(self, text: str, budget: CostBudget) -> ClusterExpression | InvalidExpression:
        if text not in self._compiled:
            try:
                self._compiled[text] = ClusterExpression(text, self._cluster_value, budget)
            except InvalidExpression as problem:
                self._compiled[text] = InvalidExpression(f"{problem}, in the expression {_shorten(text)}", problem.code)
        return self._compiled[text]

    def _cluster_value(self, index: int) -> ManagedClusterValue:
        cluster_value = self._cluster_values.get(index)
        if cluster_value is None:
            body = self._bodies[index]
            cluster_value = self._cluster_values[index] = ManagedClusterValue(convert_managed_cluster(body))
            cluster_value.name, cluster_value.score_lookup = body["metadata"]["name"], self._score_lookup
        return cluster_value


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


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
