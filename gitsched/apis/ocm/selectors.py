"""Selectors of clusters, by labels and by claims, as the scheduler's affinities."""

from __future__ import annotations

from typing import Any

from gitsched.model.document import Body
from gitsched.model.labels import Requirement, Selector, is_label_key, is_label_value, parse_selector
from gitsched.model.request import Affinity


def parse_affinity(selector: Body) -> Affinity | str:
    """What a clusterSelector asks of labels and claims, or what Kubernetes would refuse about it."""
    labels = _parse(selector.get("labelSelector"))
    claims = _parse(selector.get("claimSelector"))
    if isinstance(labels, str):
        return labels
    if isinstance(claims, str):
        return claims
    return Affinity(labels=labels or None, fields=claims.requirements if claims else ())


def parse_labels(value: Any) -> Affinity | str:
    """A set's labelSelector; `{}` selects everything."""
    labels = _parse(value)
    return labels if isinstance(labels, str) else Affinity(labels=labels)


def having_label(key: str, value: str) -> Affinity:
    """Clusters whose label has a value, be it one that a selector could not say."""
    return Affinity(labels=Selector((Requirement(key, "In", (value,)),)))


def _parse(value: Any) -> Selector | str | None:
    if value is None:
        return None
    selector = parse_selector(value)
    return explain_refusal(value) if selector is None else selector


def explain_refusal(value: Body) -> str:
    """What is wrong with a selector that cannot be parsed."""
    for key, text in (value.get("matchLabels") or {}).items():
        if not is_label_key(key):
            return f"{key!r} cannot be the key of a label"
        if not is_label_value(text):
            return f"{text!r} cannot be the value of a label"
    for expression in value.get("matchExpressions") or ():
        key, operator, values = expression.get("key"), expression.get("operator"), expression.get("values") or []
        if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            return f"{operator!r} is no operator: In, NotIn, Exists and DoesNotExist are"
        if not is_label_key(key):
            return f"{key!r} cannot be the key of a label"
        if operator in ("In", "NotIn") and not values:
            return f"{operator} needs values"
        if operator in ("Exists", "DoesNotExist") and values:
            return f"{operator} takes no values"
        for text in values:
            if not is_label_value(text):
                return f"{text!r} cannot be the value of a label, nor of a claim in a selector"
    return "the selector is not valid"
