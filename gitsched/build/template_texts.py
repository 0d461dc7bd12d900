"""The functions of Go templates about texts and paths. Source: Masterminds/sprig and the strings and fmt packages of Go."""

from __future__ import annotations

import binascii
import hashlib
import posixpath
import re
from collections.abc import Callable
from typing import Any, Final

from gitsched.build.go_functions import MAX_TEXT, Integer, NotEvaluatedError, TemplateError, TextMap, normalize_name, print_value
from gitsched.model.go_escapes import GO_ESCAPES

BLANKS: Final = " \t\n\v\f\r\x85\xa0"


_VERB = re.compile(r"%([-+# 0]*)(\d*)(\.\d+)?(.)", re.DOTALL)


def get_kind(value: Any) -> str:
    if value is None:
        return "invalid"
    if isinstance(value, Integer):
        return "int"
    kinds = {bool: "bool", str: "string", int: "float64", float: "float64"}
    return kinds.get(type(value), "map" if isinstance(value, dict) else "slice")


def format_text(pattern: str, *values: Any) -> str:
    rest = list(values)

    def replace(found: re.Match[str]) -> str:
        flags, width, precision, verb = found.groups()
        if verb == "%" and not (flags or width or precision):
            return "%"
        if (
            verb not in "svdqt"
            or precision
            or flags.strip("0-" if verb == "d" else "-")
            or (width and (verb not in "ds" or len(width) > 3))
        ):
            raise NotEvaluatedError("`printf` with this pattern")
        if not rest:
            return f"%!{verb}(MISSING)"
        value = rest.pop(0)
        if verb == "v":
            return print_value(value)
        if get_kind(value) != {"s": "string", "q": "string", "d": "int", "t": "bool"}[verb]:
            if verb == "s" and isinstance(value, list) and all(isinstance(each, str) for each in value):
                return print_value(value)
            if isinstance(value, (list, dict)):
                raise NotEvaluatedError("`printf` with a list or a map")
            return f"%!{verb}({_describe(value)})"
        text = quote_text(str(value)) if verb == "q" else print_value(value)
        if not width:
            return text
        if verb == "d" and "0" in flags and "-" not in flags:
            return text.zfill(int(width))
        return text.ljust(int(width)) if "-" in flags else text.rjust(int(width))

    if re.search(r"%[-+# 0]*\d*(?:\.\d+)?$", _VERB.sub("", pattern)):
        raise NotEvaluatedError("`printf` with this pattern")
    text = _VERB.sub(replace, pattern)
    return text + (f"%!(EXTRA {', '.join(_describe(value) for value in rest)})" if rest else "")


def _describe(value: Any) -> str:
    """Return a value with its type, as Go prints one that a pattern has no place for."""
    kind = get_kind(value)
    return f"{kind}={print_value(value)}" if kind in ("bool", "float64", "int", "string") else print_value(value)


def print_all(*values: Any) -> str:
    parts: list[str] = []
    for index, value in enumerate(values):
        spaced = index and not isinstance(value, str) and not isinstance(values[index - 1], str)
        parts += [" "] * bool(spaced) + [print_value(value)]
    return "".join(parts)


def quote_text(text: str) -> str:
    """Return a text as `%q` of Go prints it."""

    def escape(character: str) -> str:
        if character in GO_ESCAPES:
            return GO_ESCAPES[character]
        code = ord(character)
        if character.isprintable():
            return character
        return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    return f'"{"".join(map(escape, text))}"'


def check_size(text: str, count: int = 1) -> None:
    if len(text) * count > MAX_TEXT:
        raise TemplateError(f"gitsched evaluates a function for at most {MAX_TEXT:,} characters")


def replace_text(old: str, new: str, text: str) -> str:
    check_size(new, text.count(old) + 1)
    return text.replace(old, new)


def repeat_text(count: int, text: str) -> str:
    if count < 0:
        raise ValueError
    check_size(text, count)
    return text * count


def list_texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [print_value(each) for each in value if each is not None]
    return [] if value is None else [print_value(value)]


def join_texts(separator: str, value: Any) -> str:
    texts = list_texts(value)
    check_size(separator, len(texts))
    return separator.join(texts)


def _cut(text: str, start: int, end: int) -> str:
    data = text.encode()
    if not 0 <= start <= end <= len(data):
        raise ValueError
    return data[start:end].decode()


def truncate_text(length: int, text: str) -> str:
    size = len(text.encode())
    if length < 0:
        return _cut(text, size + length, size) if size + length > 0 else text
    return _cut(text, 0, length) if size > length else text


def substring(start: int, end: int, text: str) -> str:
    size = len(text.encode())
    if start < 0:
        return _cut(text, 0, end)
    return _cut(text, start, size if end < 0 or end > size else end)


def _map_case(change: Callable[[str], str]) -> Callable[[str], str]:
    """Return a function that changes each character that stays one character, as Go does."""
    return lambda text: "".join(changed if len(changed := change(character)) == 1 else character for character in text)


to_upper, to_lower = _map_case(str.upper), _map_case(str.lower)


def title_words(text: str) -> str:
    before, found = " ", list[str]()
    for character in text:
        separated = not (before.isalnum() or before == "_") if before.isascii() else before.isspace()
        found.append(to_upper(character) if separated else character)
        before = character
    return "".join(found)


def untitle_words(text: str) -> str:
    return re.sub(r"(?:^|(?<=\s))\S", lambda found: to_lower(found[0]), text)


def indent_text(spaces: int, text: str) -> str:
    if spaces < 0:
        raise ValueError
    check_size(" " * min(spaces, MAX_TEXT), text.count("\n") + 1)
    return " " * spaces + text.replace("\n", "\n" + " " * spaces)


def split_text(separator: str, text: str, count: int = -1) -> TextMap:
    parts = list(text) if not separator else text.split(separator, count - 1 if count > 0 else -1)
    return TextMap({f"_{index}": part for index, part in enumerate(parts if count else [])})


def sort_texts(value: Any) -> list[str]:
    return sorted(list_texts(value), key=str.encode) if isinstance(value, list) else [print_value(value)]


def make_decoder(decode: Callable[[bytes], bytes]) -> Callable[[str], str]:
    def apply(text: str) -> str:
        try:
            return decode(text.replace("\n", "").replace("\r", "").encode()).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise NotEvaluatedError("what is not encoded as it says") from None

    return apply


def clean_path(path: str) -> str:
    cleaned = posixpath.normpath(path or ".")
    return cleaned[1:] if cleaned.startswith("//") else cleaned


def get_base_name(path: str) -> str:
    return posixpath.basename(path.rstrip("/")) or ("/" if path else ".")


def get_extension(path: str) -> str:
    name = path.rpartition("/")[2]
    return name[name.rindex(".") :] if "." in name else ""


def slugify(*values: Any) -> str:
    """Return a name for a URL. Source: gosimple/slug, which gets a normalized name here."""
    if not values or not isinstance(values[-1], str):
        raise TypeError
    size, smart = [*values[:-1], *(50, True)[len(values) - 1 :]][:2]
    if not isinstance(size, Integer | int) or not isinstance(smart, bool) or not values[-1].isascii():
        raise NotEvaluatedError("`slugify` with these values")
    text = re.sub("-+", "-", re.sub(r"[^a-z0-9-_]", "-", normalize_name(values[-1]))).strip("-_")
    if size <= 0 or len(text) <= size:
        return text
    if not smart:
        return text[:size]
    parts, shortened = text.split("-"), ""
    for part in parts:
        if len(shortened) + len(part) + bool(shortened) > size:
            break
        shortened += f"{'-' if shortened else ''}{part}"
    return shortened or parts[0][:size]


def make_hash(name: str) -> Callable[[str], str]:
    return lambda text: hashlib.new(name, text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
