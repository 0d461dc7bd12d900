"""A Placement, read once: what it asks, in the scheduler's terms, and what is wrong with it."""

from __future__ import annotations

from typing import Any, NamedTuple

from gitsched.apis.ocm.names import DISABLED, SPREAD
from gitsched.apis.ocm.selectors import parse_affinity
from gitsched.model.document import Body, Document, Key, member, text_map
from gitsched.model.request import Affinity
from gitsched.model.taints import Toleration, parse_toleration

BUILT_IN, ADD_ON = "BuiltIn", "AddOn"
DEFAULT_WEIGHTS = {"Balance": 1, "Steady": 1}


class Mistake(NamedTuple):
    """Why a Placement is misconfigured; `plugin` is "" where no filter is to blame.

    `code` is that of the finding, where it has one of its own.
    """

    plugin: str
    message: str
    code: str = ""

    def __str__(self) -> str:
        return f"{self.plugin}:{self.message}"


class Predicate(NamedTuple):
    """One alternative; `expressions` are in the Common Expression Language."""

    affinity: Affinity
    expressions: tuple[str, ...] = ()


class Coordinate(NamedTuple):
    """Which score: a built-in one, or one of the AddOnPlacementScores of a name."""

    type: str
    built_in: str = ""
    resource: str = ""
    score: str = ""


class Weighted(NamedTuple):
    coordinate: Coordinate
    weight: int


class Group(NamedTuple):
    """A decision group; `mistake` is why its selector cannot be used."""

    name: str
    affinity: Affinity
    mistake: str = ""


class Constraint(NamedTuple):
    """A spread constraint: `kind` is Label or Claim, `hard` means DoNotSchedule."""

    key: str
    kind: str
    skew: int
    hard: bool


class Placement(NamedTuple):
    """What a Placement asks. `spread` is empty unless it asks that its spreadPolicy counts.

    `sets` are empty for all that the namespace is bound to. `number` is how many clusters are wanted, None means all."""

    document: Document
    spec: Body
    sets: tuple[str, ...]
    number: int | None
    predicates: tuple[Predicate, ...] | Mistake
    tolerations: tuple[Toleration, ...]
    weights: tuple[Weighted, ...] | Mistake
    groups: tuple[Group, ...]
    per_group: Any
    spread: tuple[Constraint, ...] = ()

    @property
    def key(self) -> Key:
        return self.document.key

    @property
    def skipped(self) -> bool:
        """Whether it is left alone: on its way out, or switched off."""
        metadata = self.document.body["metadata"]
        disabled = text_map(metadata.get("annotations")).get(DISABLED) == "true"
        return bool(metadata.get("deletionTimestamp")) or disabled


def parse_placement(document: Document) -> Placement:
    """Read a Placement whose document passed its schema and rules."""
    spec = document.body["spec"]
    count = spec.get("numberOfClusters")
    strategy = member(spec, "decisionStrategy", "groupStrategy") or {}
    return Placement(
        document,
        spec,
        tuple(dict.fromkeys(spec.get("clusterSets") or ())),
        None if count is None else int(count),
        _parse_predicates(spec.get("predicates") or ()),
        tuple(parse_toleration(toleration) for toleration in spec.get("tolerations") or ()),
        _parse_weights(spec.get("prioritizerPolicy") or {}),
        tuple(_parse_group(group) for group in strategy.get("decisionGroups") or ()),
        strategy.get("clustersPerDecisionGroup"),
        tuple(map(_parse_constraint, member(spec, "spreadPolicy", "spreadConstraints") or ())) if is_spread(document.body) else (),
    )


def is_spread(body: Body) -> bool:
    """Whether a Placement asks that its spreadPolicy counts, which upstream's controller does not read."""
    return text_map(member(body, "metadata", "annotations")).get(SPREAD) == "true"


def _parse_constraint(constraint: Body) -> Constraint:
    hard = constraint["whenUnsatisfiable"] == "DoNotSchedule"
    return Constraint(constraint["topologyKey"], constraint["topologyKeyType"], int(constraint["maxSkew"]), hard)


def judge_tolerations(placement: Placement) -> Mistake | None:
    """What upstream refuses about tolerations as soon as there is a cluster to ask them for."""
    for toleration in placement.tolerations:
        if not toleration.key and toleration.operator != "Exists":
            return Mistake("TaintToleration", "If the key is empty, operator must be Exists.")
        if toleration.operator == "Exists" and toleration.value:
            return Mistake("TaintToleration", "If the operator is Exists, the value should be empty.")
    return None


def _parse_predicates(predicates: Any) -> tuple[Predicate, ...] | Mistake:
    parsed = []
    for predicate in predicates:
        selector = predicate.get("requiredClusterSelector") or {}
        affinity = parse_affinity(selector)
        if isinstance(affinity, str):
            return Mistake("Predicate", affinity)
        expressions = tuple(member(selector, "celSelector", "celExpressions") or ())
        parsed.append(Predicate(affinity, expressions))
    return tuple(parsed)


def _parse_group(group: Body) -> Group:
    affinity = parse_affinity(group.get("groupClusterSelector") or {})
    if isinstance(affinity, str):
        return Group(group["groupName"], Affinity(), affinity)
    return Group(group["groupName"], affinity)


def _parse_weights(policy: Body) -> tuple[Weighted, ...] | Mistake:
    """The prioritizers that count, in a fixed order.

    A built-in score counts once, with the weight that was said last. Each score with an addOn block counts beside all others, even the
    same one: upstream tells them apart by the address of the block.
    """
    mode = policy.get("mode", "")
    if mode not in ("", "Additive", "Exact"):
        return Mistake("", f"incorrect prioritizer policy mode: {mode}")
    plain: dict[Coordinate, int] = {}
    if mode != "Exact":
        plain |= {Coordinate(BUILT_IN, name): weight for name, weight in DEFAULT_WEIGHTS.items()}
    several: list[Weighted] = []
    for configuration in policy.get("configurations") or ():
        written = configuration["scoreCoordinate"]
        add_on = written.get("addOn")
        coordinate = Coordinate(written["type"], str(written.get("builtIn") or ""))
        weight = int(configuration["weight"])
        if add_on is None:
            plain[coordinate] = weight
        else:
            several.append(Weighted(coordinate._replace(resource=add_on["resourceName"], score=add_on["scoreName"]), weight))
    weights = tuple(entry for entry in (*map(Weighted, plain, plain.values()), *several) if entry.weight)
    mistakes = (_judge(entry.coordinate) for entry in weights)
    return next((mistake for mistake in mistakes if mistake is not None), weights)


def _judge(coordinate: Coordinate) -> Mistake | None:
    if coordinate.type == ADD_ON:
        return None if coordinate.resource else Mistake("", "addOn should not be empty")
    if coordinate.built_in in ("Balance", "Steady", "ResourceAllocatableCPU", "ResourceAllocatableMemory"):
        return None
    return Mistake("", f"incorrect builtin prioritizer: {coordinate.built_in}")
