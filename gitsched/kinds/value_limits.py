"""The types of the rows about fields of Kubernetes' own kinds, and the parts of JSON Schemas in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from gitsched.named_tuples import NamedTuple

Limit = Mapping[str, Any]
"""A part of a JSON Schema; `x-gitsched-expected` says in messages what a text must be."""


class FieldValues(NamedTuple):
    """The `limit` of some `fields` of a definition. A name that ends with `[]` stands for the entries of a list, with `.*` for the members
    of a mapping; "" for the definition itself. `place` is the function that checks it."""

    definition: str
    fields: str
    limit: Limit
    place: str


Rule = Literal[
    "allowed",
    "at-most",
    "at-most-one",
    "exactly-one",
    "forbidden",
    "host-ports",
    "labels",
    "least-one",
    "length",
    "limited-resources",
    "named-entries",
    "needs",
    "needs-unless",
    "no-address",
    "not-all-zero",
    "one-not-zero",
    "only-with",
    "refers",
    "schedule",
    "secret-keys",
    "selects",
    "service-account",
    "total-size",
    "trimmed",
    "unique",
]


class FieldRelation(NamedTuple):
    """A rule for the object at a path, such as `spec.containers[]`; "" for the object itself.

    `arguments` depend on the rule. `whole` says that it only holds for whole objects, not for a patch of one.
    """

    path: str
    rule: Rule
    arguments: tuple[str, ...]
    place: str
    whole: bool = False


def one_of(*values: str) -> Limit:
    """One of some texts, or nothing."""
    return {"enum": [*values, "", None]}


def exactly(*values: str) -> Limit:
    """One of some texts, without a default: the field is required."""
    return {"enum": [*values, None]}


def between(low: int, high: int) -> Limit:
    """A number in a range."""
    return {"minimum": low, "maximum": high}


def text(pattern: str, description: str, size: int = 0, least: int = 0) -> Limit:
    """A text that matches a pattern, of a number of characters; 0 for no limit."""
    sizes = {"maxLength": size, "minLength": least}
    return {"pattern": pattern, "x-gitsched-expected": description, **{name: limit for name, limit in sizes.items() if limit}}


_UNIT = r"([eE][+-]?[0-9]+|Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])?\s*$"
_AMOUNT = rf"([0-9]+\.?[0-9]*|\.[0-9]+){_UNIT}"
AMOUNT_TEXT = "a quantity such as 500m, 2 or 1Gi"
QUANTITY = text(rf"^\s*[+-]?{_AMOUNT}", AMOUNT_TEXT)
RESOURCES = {**text(rf"^\s*\+?{_AMOUNT}", f"{AMOUNT_TEXT}, and not negative"), "minimum": 0}

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
DNS_LABEL = text(f"^{_LABEL}$", "lower-case letters, digits and '-', beginning and ending with a letter or digit", 63)
DNS_LABEL_OR_NONE = {**DNS_LABEL, "pattern": f"^({_LABEL})?$"}
SUBDOMAIN = text(rf"^({_LABEL}(\.{_LABEL})*)?$", "lower-case letters, digits, '-' and '.'", 253)
_OCTET = "(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
_IPV4, _IPV6 = rf"{_OCTET}(\.{_OCTET}){{3}}", "[0-9a-fA-F.]*:[0-9a-fA-F:.]*"
ADDRESS = text(rf"^({_IPV4}|{_IPV6})$", "an address such as 10.0.0.1")
ADDRESS_OR_NONE = text(rf"^({_IPV4}|{_IPV6}|None|)$", "an address such as 10.0.0.1, None, or absent")
RANGE = text(rf"^({_IPV4}/([0-9]|[12][0-9]|3[0-2])|{_IPV6}/[0-9]{{1,3}})$", "a range of addresses such as 10.0.0.0/8")
_NOT_UP = r"([^/.][^/]*|\.([^/.][^/]*)?|\.\.[^/]+)"
DESCENDING = text(f"^({_NOT_UP}(/{_NOT_UP}?)*)?$", "a relative path without ..")
WITHOUT_UP = text(f"^/*({_NOT_UP}(/+{_NOT_UP})*)?/*$", "a path without ..", least=1)
_LABEL_NAME = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
QUALIFIED = text(rf"^([a-z0-9][-a-z0-9.]*/)?{_LABEL_NAME}$", "the key of a label, such as app or example.com/app")
QUALIFIED_OR_NONE = {**QUALIFIED, "pattern": rf"^(([a-z0-9][-a-z0-9.]*/)?{_LABEL_NAME})?$"}
LABEL_VALUE = text(f"^({_LABEL_NAME})?$", "a label's value: at most 63 letters, digits, '-', '_' and '.'", 63)
PATH_SEGMENT = text("^[^/%]+$", "a name without '/' and '%'")
TIME = text(
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9:]{8}(\.[0-9]+)?([Zz]|[-+][0-9]{2}:[0-9]{2})$", "a time such as 2006-01-02T15:04:05Z"
)
PROVISIONER = text(rf"^([A-Za-z0-9][-A-Za-z0-9.]*/)?{_LABEL_NAME}$", "the name of a provisioner, such as ebs.csi.aws.com")
HOST = text(rf"^((\*\.)?{_LABEL}(\.{_LABEL})*)?$", "a host name in lower case, without a scheme, port or path", 253)
_PORT_NAME = "([0-9]+-)*[0-9]*[a-z][a-z0-9]*(-[a-z0-9]+)*"
PORT_NAME_TEXT = "a number, or a name of at most 15 lower-case letters, digits and '-', with a letter"
NAMED_PORT = text(f"^({_PORT_NAME})?$", PORT_NAME_TEXT.partition(", or ")[2], 15)
PORT = between(1, 65535)
PORT_OR_NONE = between(0, 65535)
PORT_OR_NAME = {**PORT, **text(f"^{_PORT_NAME}$", PORT_NAME_TEXT, 15)}
TARGET_PORT = {**PORT_OR_NONE, **text(f"^({_PORT_NAME})?$", PORT_NAME_TEXT, 15)}
NUMBER_OR_PERCENT = {**between(0, (1 << 31) - 1), **text("^[0-9]+%$", "a number that is not negative, or a percentage such as 25%")}
NUMBER_OR_PART = {
    **between(0, (1 << 31) - 1),
    **text("^0*(100|[0-9]{1,2})%$", "a number that is not negative, or a percentage of at most 100%"),
}
POSITIVE_AMOUNT = {
    **text(rf"^\s*\+?([0-9]*[1-9][0-9]*\.?[0-9]*|[0-9]*\.[0-9]*[1-9][0-9]*){_UNIT}", f"{AMOUNT_TEXT}, above 0"),
    "exclusiveMinimum": 0,
}
NOT_NEGATIVE = {"minimum": 0}
POSITIVE = {"minimum": 1}
NOT_EMPTY = {"minLength": 1}
ENTRIES = {"minItems": 1}
MODE = {**between(0, 0o777), "x-gitsched-expected": "the octal numbers 0 to 0777; write 0644, or 420"}
KEY = text("^[-._a-zA-Z0-9]+$", "keys of letters, digits, '-', '_' and '.'", 253)
KEYS = {"propertyNames": KEY}
PROTOCOL = one_of("TCP", "UDP", "SCTP")
ACCESS_MODE = exactly("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
SELECTOR_OPERATOR = exactly("In", "NotIn", "Exists", "DoesNotExist")
TIME_ZONE = text("^[A-Za-z][-+A-Za-z0-9_/]*$", "a time zone such as Europe/Berlin")
