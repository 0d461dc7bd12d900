"""Parse a Placement: cluster selectors, predicates, tolerations, prioritizers, decision groups and spread constraints."""

from __future__ import annotations

from typing import Any

from gitsched.apis.ocm.names import SCHEDULING_DISABLED_ANNOTATION, SPREAD_POLICY_ANNOTATION
from gitsched.model.document import Body, Document, Key, as_string_map, get_field, read_annotations
from gitsched.model.finding import Pointer
from gitsched.model.labels import Requirement, Selector, is_label_key, is_label_value, parse_selector
from gitsched.model.preferred_clusters import read_preferred_clusters
from gitsched.model.scheduling import Affinity
from gitsched.model.taints import Toleration, parse_toleration
from gitsched.named_tuples import NamedTuple


def parse_cluster_selector(selector: Body) -> Affinity | str:
    """Parse a clusterSelector to its requirements on labels and claims; a string says why it is invalid."""
    labels = _parse_selector(selector.get("labelSelector"))
    claims = _parse_selector(selector.get("claimSelector"))
    if isinstance(labels, str):
        return labels
    if isinstance(claims, str):
        return claims
    return Affinity(labels=labels or None, fields=claims.requirements if claims else ())


def parse_label_selector(value: Any) -> Affinity | str:
    """Parse the labelSelector of a ManagedClusterSet; `{}` selects all clusters. A string says why it is invalid."""
    labels = _parse_selector(value)
    return labels if isinstance(labels, str) else Affinity(labels=labels)


def select_label(key: str, value: str) -> Affinity:
    """Return the requirement that a label has a value, which need not be valid in a selector."""
    return Affinity(labels=Selector((Requirement(key, "In", (value,)),)))


def _parse_selector(value: Any) -> Selector | str | None:
    if value is None:
        return None
    selector = parse_selector(value)
    return describe_invalid_selector(value) if selector is None else selector


def describe_invalid_selector(value: Body) -> str:
    """Describe why a label selector is invalid."""
    for key, text in (value.get("matchLabels") or {}).items():
        if not is_label_key(key):
            return f"{key!r} is not a valid label key"
        if not is_label_value(text):
            return f"{text!r} is not a valid label value"
    for expression in value.get("matchExpressions") or ():
        key, operator, values = expression.get("key"), expression.get("operator"), expression.get("values") or []
        if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            return f"{operator!r} is not a valid operator: use In, NotIn, Exists or DoesNotExist"
        if not is_label_key(key):
            return f"{key!r} is not a valid label key"
        if operator in ("In", "NotIn") and not values:
            return f"the operator {operator} requires values"
        if operator in ("Exists", "DoesNotExist") and values:
            return f"the operator {operator} does not accept values"
        for text in values:
            if not is_label_value(text):
                return f"{text!r} is not a valid value of a label or claim in a selector"
    return "the selector is not valid"


BUILT_IN, ADD_ON = "BuiltIn", "AddOn"
DEFAULT_WEIGHTS = {"Balance": 1, "Steady": 1}
BUILT_IN_PRIORITIZERS = ("Balance", "Steady", "ResourceAllocatableCPU", "ResourceAllocatableMemory")


class Misconfiguration(NamedTuple):
    """Why a Placement is misconfigured: the filter `plugin` that rejects it ("" if none), and the `code` of its finding, if special.

    `pointer` is the field with the mistake, if known, and `cure` says what to write instead; the condition has neither, as upstream.
    """

    plugin: str
    message: str
    code: str = ""
    pointer: Pointer = ()
    cure: str = ""

    def __str__(self) -> str:
        return f"{self.plugin}:{self.message}"


class ClusterPredicate(NamedTuple):
    """One of the alternative predicates; `expressions` are CEL."""

    affinity: Affinity
    expressions: tuple[str, ...] = ()


class ScoreCoordinate(NamedTuple):
    """A built-in score, or a score of the AddOnPlacementScores with a name."""

    type: str
    built_in: str = ""
    resource_name: str = ""
    score_name: str = ""


class PrioritizerConfig(NamedTuple):
    """A score with its weight."""

    score_coordinate: ScoreCoordinate
    weight: int


class DecisionGroup(NamedTuple):
    """A decision group; `error` says why its selector is invalid."""

    name: str
    affinity: Affinity
    error: str = ""


class SpreadConstraintsTerm(NamedTuple):
    """A spread constraint: `topology_key_type` is Label or Claim, `hard` means DoNotSchedule."""

    topology_key: str
    topology_key_type: str
    max_skew: int
    hard: bool


class OcmPlacement(NamedTuple):
    """A parsed Placement.

    `cluster_sets` is empty for all sets bound to the namespace, `number_of_clusters` is None for all clusters, and `spread_constraints`
    is empty unless an annotation enables the spreadPolicy. `preferred` are the clusters that an annotation
    names as preferred, None without it.
    """

    document: Document
    spec: Body
    cluster_sets: tuple[str, ...]
    number_of_clusters: int | None
    predicates: tuple[ClusterPredicate, ...] | Misconfiguration
    tolerations: tuple[Toleration, ...]
    prioritizers: tuple[PrioritizerConfig, ...] | Misconfiguration
    decision_groups: tuple[DecisionGroup, ...]
    clusters_per_group: Any
    spread_constraints: tuple[SpreadConstraintsTerm, ...] = ()
    preferred: tuple[str, ...] | None = None

    @property
    def key(self) -> Key:
        return self.document.key

    @property
    def skipped(self) -> bool:
        """Whether it is not scheduled: it is being deleted, or scheduling is disabled by annotation."""
        return bool(self.document.body["metadata"].get("deletionTimestamp")) or self.scheduling_disabled

    @property
    def scheduling_disabled(self) -> bool:
        """Whether an annotation disables its scheduling."""
        annotations = as_string_map(self.document.body["metadata"].get("annotations"))
        return annotations.get(SCHEDULING_DISABLED_ANNOTATION) == "true"


def parse_placement(document: Document) -> OcmPlacement:
    """Parse a Placement that passed its schema and validators."""
    spec = document.body["spec"]
    count = spec.get("numberOfClusters")
    strategy = get_field(spec, "decisionStrategy", "groupStrategy") or {}
    preferred = read_preferred_clusters(document.body)
    return OcmPlacement(
        document,
        spec,
        tuple(dict.fromkeys(spec.get("clusterSets") or ())),
        None if count is None else int(count),
        _parse_predicates(spec.get("predicates") or ()),
        tuple(parse_toleration(toleration) for toleration in spec.get("tolerations") or ()),
        _parse_prioritizers(spec.get("prioritizerPolicy") or {}),
        tuple(_parse_decision_group(group) for group in strategy.get("decisionGroups") or ()),
        strategy.get("clustersPerDecisionGroup"),
        tuple(map(_parse_spread_constraint, get_field(spec, "spreadPolicy", "spreadConstraints") or ()))
        if uses_spread_policy(document.body)
        else (),
        preferred.names if preferred is not None else None,
    )


def uses_spread_policy(body: Body) -> bool:
    """Report whether an annotation enables the spreadPolicy, which upstream's controller does not read."""
    return read_annotations(body).get(SPREAD_POLICY_ANNOTATION) == "true"


def _parse_spread_constraint(constraint: Body) -> SpreadConstraintsTerm:
    hard = constraint["whenUnsatisfiable"] == "DoNotSchedule"
    return SpreadConstraintsTerm(constraint["topologyKey"], constraint["topologyKeyType"], int(constraint["maxSkew"]), hard)


def validate_tolerations(placement: OcmPlacement) -> Misconfiguration | None:
    """Return the error that upstream reports about tolerations if at least one cluster matches the predicates."""
    for toleration in placement.tolerations:
        if not toleration.key and toleration.operator != "Exists":
            return Misconfiguration("TaintToleration", "If the key is empty, operator must be Exists.")
        if toleration.operator == "Exists" and toleration.value:
            return Misconfiguration("TaintToleration", "If the operator is Exists, the value should be empty.")
    return None


def _parse_predicates(predicates: Any) -> tuple[ClusterPredicate, ...] | Misconfiguration:
    parsed = []
    for predicate in predicates:
        selector = predicate.get("requiredClusterSelector") or {}
        affinity = parse_cluster_selector(selector)
        if isinstance(affinity, str):
            return Misconfiguration("Predicate", affinity)
        expressions = tuple(get_field(selector, "celSelector", "celExpressions") or ())
        parsed.append(ClusterPredicate(affinity, expressions))
    return tuple(parsed)


def _parse_decision_group(group: Body) -> DecisionGroup:
    affinity = parse_cluster_selector(group.get("groupClusterSelector") or {})
    if isinstance(affinity, str):
        return DecisionGroup(group["groupName"], Affinity(), affinity)
    return DecisionGroup(group["groupName"], affinity)


def _parse_prioritizers(policy: Body) -> tuple[PrioritizerConfig, ...] | Misconfiguration:
    """Parse the prioritizers with a weight other than 0, in a fixed order.

    A built-in score is used once, with the last weight. Each entry with an addOn block is used, even the same score twice: upstream
    compares the address of the block.
    """
    mode = policy.get("mode", "")
    if mode not in ("", "Additive", "Exact"):
        message = f"incorrect prioritizer policy mode: {mode}"
        return Misconfiguration("", message, pointer=("spec", "prioritizerPolicy", "mode"), cure="use Additive or Exact")
    weights_by_coordinate: dict[ScoreCoordinate, int] = {}
    if mode != "Exact":
        weights_by_coordinate |= {ScoreCoordinate(BUILT_IN, name): weight for name, weight in DEFAULT_WEIGHTS.items()}
    add_on_configs: list[PrioritizerConfig] = []
    positions: dict[ScoreCoordinate, int] = {}
    for position, configuration in enumerate(policy.get("configurations") or ()):
        written = configuration["scoreCoordinate"]
        add_on = written.get("addOn")
        coordinate = ScoreCoordinate(written["type"], str(written.get("builtIn") or ""))
        weight = int(configuration["weight"])
        if add_on is None:
            weights_by_coordinate[coordinate] = weight
        else:
            coordinate = coordinate._replace(resource_name=add_on["resourceName"], score_name=add_on["scoreName"])
            add_on_configs.append(PrioritizerConfig(coordinate, weight))
        positions[coordinate] = position
    configs = tuple(
        entry
        for entry in (*map(PrioritizerConfig, weights_by_coordinate, weights_by_coordinate.values()), *add_on_configs)
        if entry.weight
    )
    for entry in configs:
        error = _validate_score_coordinate(entry.score_coordinate)
        if error is not None:
            pointer = ("spec", "prioritizerPolicy", "configurations", positions[entry.score_coordinate], "scoreCoordinate")
            return error._replace(pointer=pointer)
    return configs


def _validate_score_coordinate(coordinate: ScoreCoordinate) -> Misconfiguration | None:
    if coordinate.type == ADD_ON:
        if coordinate.resource_name:
            return None
        return Misconfiguration("", "addOn should not be empty", cure="set its resourceName and scoreName")
    if coordinate.built_in in BUILT_IN_PRIORITIZERS:
        return None
    cure = f"use one of {', '.join(BUILT_IN_PRIORITIZERS)}"
    return Misconfiguration("", f"incorrect builtin prioritizer: {coordinate.built_in}", cure=cure)
