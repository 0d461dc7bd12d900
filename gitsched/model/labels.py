"""Label selectors, and the syntax of labels, by the rules of Kubernetes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from gitsched.named_tuples import NamedTuple

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", re.ASCII)
_PREFIX = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII)
_MAX_PREFIX_LENGTH, _MAX_NAME_LENGTH = 253, 63
_MAX_KEY_LENGTH = _MAX_PREFIX_LENGTH + 1 + _MAX_NAME_LENGTH


class Requirement(NamedTuple):
    """One condition; `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt. `values` are sorted and distinct."""

    key: str
    operator: str
    values: tuple[str, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        return False


class Selector(NamedTuple):
    """Requirements that must all hold; an empty selector matches everything."""

    requirements: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


def format_requirement(requirement: Requirement) -> str:
    """Write a condition as kubectl does."""
    key, operator, values = requirement
    if operator in ("In", "NotIn"):
        if len(values) == 1:
            return f"{key}{'=' if operator == 'In' else '!='}{values[0]}"
        return f"{key} {operator.lower()} ({', '.join(values)})"
    return key if operator == "Exists" else f"!{key}"


def is_label_key(text: object) -> bool:
    """Return whether a text is a label key: an optional DNS prefix of at most 253 characters and a name of at most 63."""
    return isinstance(text, str) and len(text) <= _MAX_KEY_LENGTH and _is_key(text)


@lru_cache(maxsize=1 << 12)
def _is_key(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    if slash and not (len(prefix) <= _MAX_PREFIX_LENGTH and _PREFIX.fullmatch(prefix)):
        return False
    return bool(_NAME.fullmatch(name))


def is_label(key: object, value: object) -> bool:
    """Return whether a key and a value are those of a label."""
    return is_label_key(key) and is_label_value(value)


def is_label_value(text: object) -> bool:
    """Return whether a text is a label value: empty, or at most 63 characters that begin and end alphanumeric."""
    return isinstance(text, str) and len(text) <= _MAX_NAME_LENGTH and _is_value(text)


@lru_cache(maxsize=1 << 12)
def _is_value(text: str) -> bool:
    return text == "" or bool(_NAME.fullmatch(text))


def parse_selector(value: Any, *, any_value: bool = False) -> Selector | None:
    """Parse a metav1.LabelSelector; None when Kubernetes would reject it (such a selector matches nothing).

    The rules are those of apimachinery's LabelSelectorAsSelector: known operators, valid keys and values, In and NotIn with at
    least one value, Exists and DoesNotExist with none. `any_value`: values need not be values of labels.
    """
    if not isinstance(value, dict):
        return None
    requirements: list[Requirement] = []
    labels, expressions = value.get("matchLabels") or {}, value.get("matchExpressions") or []
    if not (isinstance(labels, dict) and isinstance(expressions, list)):
        return None
    for key, text in sorted(labels.items()):
        if not (is_label_key(key) and (is_label_value(text) or (any_value and isinstance(text, str)))):
            return None
        requirements.append(Requirement(key, "In", (text,)))
    for expression in expressions:
        if not isinstance(expression, dict):
            return None
        requirement = _parse_requirement(expression, any_value)
        if requirement is None:
            return None
        requirements.append(requirement)
    return Selector(tuple(requirements))


def describe_invalid_expression(selector: Mapping[str, Any]) -> tuple[tuple[str | int, ...], str] | None:
    """Return the place in a metav1.LabelSelector of what `parse_selector` refuses first, and what is wrong there; None if it is valid."""
    labels, expressions = selector.get("matchLabels") or {}, selector.get("matchExpressions") or []
    for name, found, kind in (("matchLabels", labels, dict), ("matchExpressions", expressions, list)):
        if not isinstance(found, kind):
            return (name,), f"must be a {'mapping' if kind is dict else 'list'}"
    for key, value in labels.items():
        if not is_label_key(key):
            return ("matchLabels", key), f"{str(key)[:100]!r} cannot be the name of a label"
        if not is_label_value(value):
            return ("matchLabels", key), f"{str(value)[:100]!r} cannot be the value of a label"
    for index, expression in enumerate(expressions):
        if isinstance(expression, dict) and _parse_requirement(expression) is None:
            member, message = _describe_expression(expression)
            return ("matchExpressions", index, member), message
    return None


def _describe_expression(expression: Mapping[str, Any]) -> tuple[str, str]:
    """Return the member of an invalid expression that is wrong, and what is wrong."""
    key, operator, values = expression.get("key"), str(expression.get("operator")), expression.get("values") or []
    if not is_label_key(key):
        return "key", f"{str(key)[:100]!r} cannot be the name of a label"
    if operator not in _OPERATORS:
        similar = [known for known in _OPERATORS if known.lower() == operator.lower()]
        hint = f"; did you mean {similar[0]}?" if similar else ""
        return "operator", f"the operator must be In, NotIn, Exists or DoesNotExist, not {operator[:40]!r}{hint}"
    if not values:
        return "operator", f"{operator} requires at least one value"
    if operator in ("Exists", "DoesNotExist"):
        return "values", f"{operator} allows no values; remove them, or use {'In' if operator == 'Exists' else 'NotIn'}"
    wrong = next(value for value in values if not is_label_value(value))
    return "values", f"{str(wrong)[:100]!r} cannot be the value of a label"


_SELECTOR_TERM = re.compile(
    r"(?:(?P<absent>!)\s*(?P<missing>[^\s,()=!]+)|(?P<key>[^\s,()=!]+)(?:\s*(?P<compare>==|=|!=)\s*(?P<value>[^\s,()=!]*)"
    r"|\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\))?)\s*(?:,\s*|\Z)"
)


def parse_selector_text(text: str) -> Selector | None:
    """Parse a label selector as kubectl writes it, such as `app=web,tier in (a, b),!legacy`; None if it is invalid or empty."""
    requirements: list[Requirement | None] = []
    position, text = 0, text.strip()
    while position < len(text):
        term = _SELECTOR_TERM.match(text, position)
        if term is None:
            return None
        position = term.end()
        if term["absent"]:
            expression: dict[str, Any] = {"key": term["missing"], "operator": "DoesNotExist"}
        elif term["compare"]:
            expression = {"key": term["key"], "operator": "NotIn" if term["compare"] == "!=" else "In", "values": [term["value"]]}
        elif term["operator"]:
            values = [value.strip() for value in term["values"].split(",")]
            expression = {"key": term["key"], "operator": "In" if term["operator"] == "in" else "NotIn", "values": values}
        else:
            expression = {"key": term["key"], "operator": "Exists"}
        requirements.append(_parse_requirement(expression))
    known = tuple(requirement for requirement in requirements if requirement is not None)
    return Selector(known) if known and len(known) == len(requirements) and not text.endswith(",") else None


def _parse_requirement(expression: dict[str, Any], any_value: bool = False) -> Requirement | None:
    key, operator, values = expression.get("key"), expression.get("operator"), expression.get("values") or []
    if not is_label_key(key) or not isinstance(values, list):
        return None
    if not all(is_label_value(value) or (any_value and isinstance(value, str)) for value in values):
        return None
    if operator in ("In", "NotIn"):
        return Requirement(str(key), operator, tuple(sorted(set(values)))) if values else None
    if operator in ("Exists", "DoesNotExist"):
        return Requirement(str(key), operator, ()) if not values else None
    return None
