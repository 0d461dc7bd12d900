"""Canonical YAML emitter: each value has exactly one text, which YAML 1.1, YAML 1.2 and go-yaml parse to the same value.

PyYAML is not used for two reasons: it writes the strings `1e3`, `012` and `0o17` plain, which other parsers read as numbers; and this
emitter writes a binding of forty lines in about a tenth of libyaml's time, which matters because every run writes all bindings.
"""

from __future__ import annotations

import json
import re
from functools import cache, lru_cache
from typing import Any, Literal

from gitsched.named_tuples import NamedTuple

NodeKind = Literal["mapping", "sequence", "scalar"]

# Words that some parser reads as a boolean, a null or a float, in any case.
_AMBIGUOUS_SCALARS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf", "infinity"))
_MAX_AMBIGUOUS_LENGTH = max(map(len, _AMBIGUOUS_SCALARS))
# Strings that can be written plain: a safe first character; no ": ", " #", double or trailing blank; ASCII only.
_PLAIN_SCALAR = re.compile(r"[A-Za-z_/$0-9](?:[A-Za-z0-9_./$@%+=~;,()*&!?<>{}\\-]|:(?=[^ ])| (?=[^ #]))*")
# A plain scalar that begins with a digit must contain a letter that no number (hexadecimal, octal, exponent) or timestamp contains.
_NON_NUMERIC = re.compile(r"[g-nq-su-wyG-NQ-SU-WY]")
# Not printable in YAML, a line break in YAML 1.1, or a control character that changes the order of displayed text.
_UNSAFE_CHARACTERS = "[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]"
_quote_json = json.JSONEncoder(ensure_ascii=False).encode
_MAX_KEY_LENGTH = 1000  # an implicit key ends within 1,024 characters; longer ones take the explicit form
_MAX_KNOWN_KEYS = 4096
_MAX_CACHED_LENGTH = 200  # longer strings rarely occur twice and should not occupy memory


class Fragment(NamedTuple):
    """A value dumped ahead of time to be embedded in others, as in `dump({"placement": dump_fragment(value), ...})`.

    `text` is the value at indentation 0 without a final newline; `has_blank_lines` is true if it has empty lines, which get no
    indentation.
    """

    text: str
    kind: NodeKind
    has_blank_lines: bool


def dump(value: Any, entry_indent: int = 0) -> str:
    """Return a JSON-like value, which may contain Fragments, as one YAML document that ends in a newline.

    `entry_indent` is the number of columns by which the entries of a list are indented below its key. Members keep their order. Strings
    are written plain if every parser agrees on them, as literal blocks if they have several lines that a block preserves exactly, and as
    JSON strings otherwise. A lone surrogate, which UTF-8 cannot encode, becomes U+FFFD as in Go.
    Raises TypeError for a value that JSON cannot represent, and RecursionError for one nested deeper than Python's stack.
    """
    return _render(value, " " * entry_indent)[0] + "\n"


def dump_fragment(value: Any) -> Fragment:
    """Dump `value` once to embed it many times; the resulting bytes are the same as with the value itself."""
    text, shape = _render(value, "")
    return Fragment(text, shape, "\n\n" in text)


def quote(text: str) -> str:
    """Return a string on one line: plain if that is safe, else in double quotes."""
    return _cached_quote(text) if len(text) <= _MAX_CACHED_LENGTH else _quote_uncached(text)


def _quote_uncached(text: str) -> str:
    if (
        _PLAIN_SCALAR.fullmatch(text)
        and (len(text) > _MAX_AMBIGUOUS_LENGTH or text.lower() not in _AMBIGUOUS_SCALARS)
        and (not "0" <= text[0] <= "9" or _NON_NUMERIC.search(text))
    ):
        return text
    return quote_always(text)


def quote_always(text: str) -> str:
    """Return a string in double quotes, which YAML and JSON read alike."""
    quoted = _quote_json(text)
    return quoted if quoted.isascii() and "\x7f" not in quoted else _compile_unsafe().sub(_escape, quoted)


_cached_quote = lru_cache(maxsize=1 << 13)(_quote_uncached)  # names of workloads occur a few times, one after another
_quoted_keys: dict[str, str] = {}
"""Keys of mappings, which are a few words that occur in each record, with their text."""


def _quote_key(key: str) -> str:
    """Return the text of a key. A short one is remembered."""
    text = quote(key)
    if len(text) <= _MAX_CACHED_LENGTH:
        if len(_quoted_keys) >= _MAX_KNOWN_KEYS:
            _quoted_keys.clear()
        _quoted_keys[key] = text
    return text


def is_printable(text: str) -> bool:
    """Return whether the text has only characters that are safe outside of double quotes; line feeds count as such."""
    return (text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()) or not _compile_unsafe().search(text)


@cache
def _compile_unsafe() -> re.Pattern[str]:
    return re.compile(_UNSAFE_CHARACTERS)  # takes 5 ms, and most runs write ASCII alone


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return "\\ufffd" if 0xD800 <= code <= 0xDFFF else f"\\u{code:04x}"


def _render(value: Any, step: str) -> tuple[str, NodeKind]:
    lines: list[str] = []
    if isinstance(value, Fragment):
        return value.text, value.kind
    if isinstance(value, dict) and value:
        _write_mapping(value, "", "", lines, step)
        return "\n".join(lines), "mapping"
    if isinstance(value, list) and value:
        _write_sequence(value, "", "", lines, step)
        return "\n".join(lines), "sequence"
    return _format_scalar(value, ""), "scalar"


def _write_mapping(members: dict[str, Any], lead: str, pad: str, lines: list[str], step: str) -> None:
    """Append the lines of a non-empty mapping; `lead` starts the first line (it may contain "- "), `pad` starts the others, and `step`
    is added to it for the entries of a list."""
    for key, value in members.items():
        name = _quoted_keys.get(key)
        if name is None:
            name = _quote_key(key)
            if len(name) > _MAX_KEY_LENGTH:
                lines.append(f"{lead}? {name}")
                lead, name = pad, ""
        kind = type(value)
        if kind is str and "\n" not in value:
            text = _cached_quote(value) if len(value) <= _MAX_CACHED_LENGTH else _quote_uncached(value)
            lines.append(f"{lead}{name}: {text}")
        elif kind is int:
            lines.append(f"{lead}{name}: {value}")
        elif kind is dict and value:
            lines.append(f"{lead}{name}:")
            _write_mapping(value, pad + "  ", pad + "  ", lines, step)
        elif kind is list and value:
            lines.append(f"{lead}{name}:")
            _write_sequence(value, pad + step, pad + step, lines, step)
        elif kind is Fragment and value.kind != "scalar":
            inner = pad + "  " if value.kind == "mapping" else pad
            lines.append(f"{lead}{name}:")
            lines.append(inner + _indent(value, inner))
        else:
            lines.append(f"{lead}{name}: {_format_scalar(value, pad)}")
        lead = pad


def _write_sequence(items: list[Any], lead: str, pad: str, lines: list[str], step: str) -> None:
    """Append the lines of a non-empty sequence; `lead`, `pad` and `step` as in `_write_mapping`."""
    inner = pad + "  "
    for item in items:
        kind = type(item)
        if kind is dict and item:
            _write_mapping(item, lead + "- ", inner, lines, step)
        elif kind is list and item:
            _write_sequence(item, lead + "- ", inner, lines, step)
        elif kind is Fragment and item.kind != "scalar":
            lines.append(f"{lead}- {_indent(item, inner)}")
        else:
            lines.append(f"{lead}- {_format_scalar(item, pad)}")
        lead = pad


def _format_scalar(value: Any, pad: str) -> str:
    """Return the text of a scalar or an empty collection; `pad` is the indentation of its parent."""
    match value:
        case str():
            return _format_literal(value, pad) if "\n" in value else quote(value)
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case int():
            return int.__repr__(value)
        case float():
            return _format_float(value)
        case Fragment():
            return _indent(value, pad)
        case dict():
            return "{}"
        case list():
            return "[]"
    raise TypeError(f"a manifest cannot contain a value of type {type(value).__name__}")


def _format_float(value: float) -> str:
    text = float.__repr__(value)
    if "n" in text:  # nan, inf
        return text.replace("nan", ".nan").replace("inf", ".inf")
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa}.0e{exponent}" if mark and "." not in mantissa else text  # YAML 1.1 requires the decimal point


def _format_literal(text: str, pad: str) -> str:
    """Return a literal block if it preserves `text` exactly, else a JSON string."""
    body = text.rstrip("\n")
    if text[0] in " \t\n" or body[-1] in " \t" or not is_printable(text):
        return quote(text)
    ends = len(text) - len(body)
    indent = "\n" + pad + "  "
    block = "".join(indent + line if line else "\n" for line in body.split("\n"))
    return f"|{'-' if not ends else '' if ends == 1 else '+'}{block}" + "\n" * (ends - 1)


def _indent(part: Fragment, pad: str) -> str:
    """Return the text of a fragment with every line except the first one indented."""
    if not pad:
        return part.text
    if not part.has_blank_lines:
        return part.text.replace("\n", "\n" + pad)
    return "\n".join(pad + line if line else line for line in part.text.split("\n"))[len(pad) :]
