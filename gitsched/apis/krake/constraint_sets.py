"""All the constraints of one application or cluster, as questions to a fleet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gitsched.apis.krake.constraints import LabelConstraint, MetricConstraint, parse_label_constraint, parse_metric_constraint
from gitsched.model.document import Body
from gitsched.model.labels import Requirement, Selector
from gitsched.model.request import Affinity
from gitsched.schedule.fleet import Fleet, pack

RESOURCES = "custom_resources"
"""The field of a candidate that says which custom resources it has."""


class Constraints(NamedTuple):
    """What a candidate must satisfy. `affinity` is what a fleet answers by itself: labels and custom resources."""

    labels: tuple[LabelConstraint, ...]
    resources: tuple[str, ...]
    metrics: tuple[MetricConstraint, ...]
    affinity: Affinity


def parse_constraints(value: Any) -> Constraints:
    """The member of a spec's `constraints`. The texts are valid: admission has seen them."""
    body: Body = value if isinstance(value, dict) else {}
    labels = tuple(parse_label_constraint(text) for text in body.get("labels") or ())
    resources = tuple(str(name) for name in body.get(RESOURCES) or ())
    metrics = tuple(parse_metric_constraint(text) for text in body.get("metrics") or ())
    requirements = tuple(requirement for constraint in labels for requirement in _require(constraint))
    fields = tuple(Requirement(RESOURCES, "In", (name,)) for name in resources)
    return Constraints(labels, resources, metrics, Affinity(labels=Selector(requirements) if requirements else None, fields=fields))


def tell_constraints(constraints: Constraints) -> str:
    """All constraints in one line; "" without any."""
    custom = (f"custom resource {name}" for name in constraints.resources)
    return "; ".join((*map(_write, constraints.labels), *custom, *map(_write, constraints.metrics)))


def _require(constraint: LabelConstraint) -> Iterator[Requirement]:
    """A label that is missing satisfies no operator of Krake's, so that an exclusion asks for the label, too."""
    if constraint.operator in ("==", "in"):
        yield Requirement(constraint.key, "In", constraint.values)
    else:
        yield Requirement(constraint.key, "Exists", ())
        yield Requirement(constraint.key, "NotIn", constraint.values)


def satisfying(constraint: MetricConstraint, fleet: Fleet, measures: Sequence[Mapping[str, float]]) -> int:
    """The candidates whose measurements, by index, satisfy a metric constraint."""
    return fleet.remember(("metric", constraint), lambda: pack(constraint.match(measured) for measured in measures))


def tell_mismatch(
    constraints: Constraints, labels: Mapping[str, str], resources: Sequence[str], measured: Mapping[str, float]
) -> str:
    """Why a candidate does not satisfy constraints: the first one that it does not; "" if it does."""
    for label in constraints.labels:
        if not label.match(labels):
            return f"label constraint {_write(label)}: {_have(labels.get(label.key), f'there is no label {label.key}')}"
    for resource in constraints.resources:
        if resource not in resources:
            return f"custom resource {resource} is not there"
    for metric in constraints.metrics:
        if not metric.match(measured):
            value = measured.get(metric.key)
            return f"metric constraint {_write(metric)}: {_have(value, f'there is no metric {metric.key}')}"
    return ""


def _have(value: object, nothing: str) -> str:
    return nothing if value is None else f"it is {value}"


def _write(constraint: LabelConstraint | MetricConstraint) -> str:
    values = ", ".join(constraint.values)
    return f"{constraint.key} {constraint.operator} {f'({values})' if 'in' in constraint.operator else values}"
