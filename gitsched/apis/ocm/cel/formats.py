"""Formats by name: what Kubernetes says of names, labels and other texts."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import NamedTuple

from gitsched.apis.ocm.cel.network import is_url
from gitsched.apis.ocm.cel.registry import function
from gitsched.apis.ocm.cel.values import NONE, Optional
from gitsched.model.labels import is_label_key, is_label_value
from gitsched.model.time import parse_time

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_OLD_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_UUID = re.compile(r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


class Format(NamedTuple):
    name: str

    @property
    def type(self) -> str:
        return "format"


def _fits(pattern: re.Pattern[str], longest: int) -> Callable[[str], bool]:
    return lambda text: len(text) <= longest and bool(pattern.fullmatch(text))


def _prefixed(holds: Callable[[str], bool]) -> Callable[[str], bool]:
    """A name that a server may put something behind: it may end with a dash."""
    return lambda text: holds(text[:-1] + "a" if text.endswith("-") else text)


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


_label, _old_label, _subdomain = _fits(_LABEL, 63), _fits(_OLD_LABEL, 63), _fits(_SUBDOMAIN, 253)
_FORMATS: dict[str, Callable[[str], bool]] = {
    "dns1123Label": _label,
    "dns1123Subdomain": _subdomain,
    "dns1035Label": _old_label,
    "qualifiedName": is_label_key,
    "labelValue": is_label_value,
    "dns1123LabelPrefix": _prefixed(_label),
    "dns1123SubdomainPrefix": _prefixed(_subdomain),
    "dns1035LabelPrefix": _prefixed(_old_label),
    "uri": is_url,
    "uuid": _fits(_UUID, 36),
    "byte": _is_base64,
    "date": lambda text: bool(_DATE.fullmatch(text)) and parse_time(f"{text}T00:00:00Z") is not None,
    "datetime": lambda text: parse_time(text) is not None,
}


def _offer(name: str) -> None:
    function(f"global format.{name}(): format")(lambda: Format(name))


for _name in _FORMATS:
    _offer(_name)


@function("global format.named(string): optional")
def named(name: str) -> Optional:
    return Optional(True, Format(name)) if name in _FORMATS else NONE


@function("format.validate(string): optional")
def validate(value: Format, text: str) -> Optional:
    """What is wrong with a text, none where nothing is."""
    return NONE if _FORMATS[value.name](text) else Optional(True, [f"the text is no {value.name}"])
