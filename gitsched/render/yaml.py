"""Canonical block YAML: one value, one text, read alike by YAML 1.1, YAML 1.2 and go-yaml.

An emitter of our own because PyYAML's leaves `1e3`, `012` and `0o17` plain, which other readers take for numbers, and because every
binding of every run passes through here: this one writes a binding of forty lines in about a tenth of libyaml's time.
"""

from __future__ import annotations

import json
import re
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

Shape = Literal["mapping", "sequence", "scalar"]

# Words that some reader takes for a boolean, a null or a float, in any case.
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf", "infinity"))
# What may stand plain: an unremarkable first character; no ": ", " #", doubled or trailing blank; ASCII, so nothing is invisible.
_PLAIN = re.compile(r"[A-Za-z_/$0-9](?:[A-Za-z0-9_./$@%+=~;,()*&!?<>{}\\-]|:(?=[^ ])| (?=[^ #]))*")
# A plain scalar that begins with a digit must hold a letter that no number (hexadecimal, octal, exponent) or timestamp can hold.
_NO_NUMBER = re.compile(r"[g-nq-su-wyG-NQ-SU-WY]")
# Not printable in YAML, a line break in YAML 1.1, or a control that reorders what a reviewer sees.
_UNSAFE = "[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]"
_quote = json.JSONEncoder(ensure_ascii=False).encode
_KEY_LIMIT = 1000  # an implicit key ends within 1,024 characters; longer ones take the explicit form
_CACHED = 200  # longer strings are rarely met twice, and should not stay in memory


class Fragment(NamedTuple):
    """A value dumped ahead of time, to be embedded anywhere: as in `dump({"placement": fragment(value), ...})`.

    `text` is the value at indentation 0 without a final newline; `blank` says that it has empty lines, which take no indentation.
    """

    text: str
    shape: Shape
    blank: bool


def dump(value: Any) -> str:
    """A JSON-like value (or Fragments inside one) as one YAML document that ends in a newline.

    Members keep their order: the caller decides it. Strings are plain where every reader agrees on them, literal blocks where they
    have several lines and survive that exactly, JSON strings otherwise. A lone surrogate, which no file can hold, becomes U+FFFD as
    in Go. Raises TypeError for a value that JSON does not know, and RecursionError for one nested as deep as Python's stack.
    """
    return _render(value)[0] + "\n"


def fragment(value: Any) -> Fragment:
    """Dump `value` once for many embeddings; the bytes are those of embedding the value itself."""
    text, shape = _render(value)
    return Fragment(text, shape, "\n\n" in text)


def quote(text: str) -> str:
    """A string on one line: plain if it is safe so, else in double quotes."""
    return _cached_quote(text) if len(text) <= _CACHED else _quote_afresh(text)


def _quote_afresh(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS and (not "0" <= text[0] <= "9" or _NO_NUMBER.search(text)):
        return text
    quoted = _quote(text)
    return quoted if quoted.isascii() and "\x7f" not in quoted else _unsafe().sub(_escape, quoted)


_cached_quote = lru_cache(maxsize=1 << 16)(_quote_afresh)


def _is_safe(text: str) -> bool:
    """Whether every reader sees the same characters."""
    return (text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()) or not _unsafe().search(text)


@cache
def _unsafe() -> re.Pattern[str]:
    return re.compile(_UNSAFE)  # takes 5 ms, and most runs write ASCII alone


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return "\\ufffd" if 0xD800 <= code <= 0xDFFF else f"\\u{code:04x}"


def _render(value: Any) -> tuple[str, Shape]:
    lines: list[str] = []
    if isinstance(value, Fragment):
        return value.text, value.shape
    if isinstance(value, dict) and value:
        _mapping(value, "", "", lines)
        return "\n".join(lines), "mapping"
    if isinstance(value, list) and value:
        _sequence(value, "", "", lines)
        return "\n".join(lines), "sequence"
    return _scalar(value, ""), "scalar"


def _mapping(members: dict[str, Any], lead: str, pad: str, lines: list[str]) -> None:
    """Append the lines of a non-empty mapping; `lead` begins the first one (it may hold "- "), `pad` the others."""
    for key, value in members.items():
        name = quote(key)
        if len(name) > _KEY_LIMIT:
            lines.append(f"{lead}? {name}")
            lead, name = pad, ""
        kind = type(value)
        if kind is str and "\n" not in value:
            lines.append(f"{lead}{name}: {quote(value)}")
        elif kind is dict and value:
            lines.append(f"{lead}{name}:")
            _mapping(value, pad + "  ", pad + "  ", lines)
        elif kind is list and value:
            lines.append(f"{lead}{name}:")
            _sequence(value, pad, pad, lines)
        elif kind is Fragment and value.shape != "scalar":
            inner = pad + "  " if value.shape == "mapping" else pad
            lines.append(f"{lead}{name}:")
            lines.append(inner + _indent(value, inner))
        else:
            lines.append(f"{lead}{name}: {_scalar(value, pad)}")
        lead = pad


def _sequence(items: list[Any], lead: str, pad: str, lines: list[str]) -> None:
    """Append the lines of a non-empty sequence; `lead` and `pad` as in `_mapping`."""
    inner = pad + "  "
    for item in items:
        kind = type(item)
        if kind is dict and item:
            _mapping(item, lead + "- ", inner, lines)
        elif kind is list and item:
            _sequence(item, lead + "- ", inner, lines)
        elif kind is Fragment and item.shape != "scalar":
            lines.append(f"{lead}- {_indent(item, inner)}")
        else:
            lines.append(f"{lead}- {_scalar(item, pad)}")
        lead = pad


def _scalar(value: Any, pad: str) -> str:
    """The text of a scalar or of an empty collection; `pad` is the indentation of what holds it."""
    match value:
        case str():
            return _literal(value, pad) if "\n" in value else quote(value)
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case int():
            return int.__repr__(value)
        case float():
            return _float(value)
        case Fragment():
            return _indent(value, pad)
        case dict():
            return "{}"
        case list():
            return "[]"
    raise TypeError(f"{type(value).__name__} has no place in a manifest")


def _float(value: float) -> str:
    text = float.__repr__(value)
    if "n" in text:  # nan, inf
        return text.replace("nan", ".nan").replace("inf", ".inf")
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa}.0e{exponent}" if mark and "." not in mantissa else text  # YAML 1.1 wants the point


def _literal(text: str, pad: str) -> str:
    """A literal block where it gives back exactly `text`, else a JSON string."""
    body = text.rstrip("\n")
    if text[0] in " \t\n" or body[-1] in " \t" or not _is_safe(text):
        return quote(text)
    ends = len(text) - len(body)
    indent = "\n" + pad + "  "
    block = "".join(indent + line if line else "\n" for line in body.split("\n"))
    return f"|{'-' if not ends else '' if ends == 1 else '+'}{block}" + "\n" * (ends - 1)


def _indent(part: Fragment, pad: str) -> str:
    """The text of a fragment with every line but the first indented."""
    if not pad:
        return part.text
    if not part.blank:
        return part.text.replace("\n", "\n" + pad)
    return "\n".join(pad + line if line else line for line in part.text.split("\n"))[len(pad) :]
