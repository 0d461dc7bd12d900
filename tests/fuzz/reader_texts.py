"""Write documents in the styles that YAML has, and mutate their texts: what the readers of Kubernetes must read alike."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from .yaml_agreement import mutate

# fmt: off
_TOKENS = (
    "?", "? a", "a?b", "http://x/?q=1", "\\/", '"a\\/b"', '"\\x41\\u00e9"', '"\\_\\N\\L\\P"', "'it''s'", '"a\\\n b"', "|", "|-", "|+",
    "|2", ">", ">-", ">+", ">2-", "!", "! a", "!!str 1", "!!int 1", "!!float 1", "!!bool true", "!!null x", "!!map {}", "!!seq []",
    "!!set {a}", "!!binary eA==", "!!timestamp 2001-01-01", "!a b", "!<tag:yaml.org,2002:str> 1", "&a", "&a b", "*a", "&a-b.c 1", "<<",
    "'<<'", "=", "~", "null", "Null", "NULL", "nUll", "yes", "Yes", "on", "OFF", "y", "N", "true", "TRUE", "tRUE", "0x1F", "0X1f", "0o17",
    "0O17", "017", "09", "0b11", "-0b1", "0b2", "1_000", "_1", "1__0", "1e3", "1E+3", "1e", "1.", ".5", "-.5", "+.5", "1.0", "-0", "+0",
    "-0.0", "00", "0.10", "1:30", "1:30:45", "190:20:30.15", ".inf", "-.Inf", "+.INF", ".nan", ".NaN", "2001-01-01", "2001-1-1",
    "2001-01-01T00:00:00Z", "1e400", "9223372036854775807", "9223372036854775808", "18446744073709551616", "-9223372036854775809",
    "123456789012345678901234", "0.1e-400", "1.7976931348623157e308", "12345678.9", "100000000000000000000000.0", "1e21", "0x", "0x_1",
    "0_7", "+1", "+0x1", "+017", "--1", "-", "- ", "%a", "@a", "`a", "a#b", "a #b", "#", "a:b", "a: b", ":a", "a:", "[a, b]", "[a, b,]",
    "{a: b}", "{a, b: }", "{a: b,}", "[a: b]", "{? a : b}", "{a: 1, 1: 2}", "{true: a}", "{null: a}", "{1.5: a}", '{"a":b}', "{a:b}",
    "[]", "{}", "[,]", "[[a]]", "---", "--- a", "...", "---a", "--", "\t", "a\tb", "\ta", "a\t", "\x85", "\u2028", "\u2029", "\xa0",
    "\ufeff", "é", "😀", "\x7f", "\x1b", "\ud800", "${A}", "${a?b}", "{{ a }}", "a  b", "  a", "a,b", "a]b", "a}b", "a{b", '"a" b', "'a'b",
    '"', "'", "a'b", 'a"b', "|a", ">a", "-a", "?a", ": a", "- a", "&", "*", "!a",
)
_KEYS = (
    "1", "1.5", "true", "yes", "null", "~", "2001-01-01", "'1'", '"a b"', "<<", '"<<"', "? a", "a b", "a:b", "=", ".inf", "0x1", "é",
    "''", "-a", "!!str 1", "&k a", "*a", "[a]", "{a: b}",
)
_HEADS = ("---\n", "--- # c\n", "%YAML 1.2\n---\n", "%TAG ! a\n---\n", "--- !!map\n", "# c\n", "--- ", "\n\n", "---\n---\n", "...\n")
# fmt: on


def vary(text: str, body: Any, random: Random) -> str:
    """Return a variant of the text of a document with this value: in another style, with other scalars or keys, or with mutated lines."""
    if random.random() < 0.3:
        text = _write(body, random, 0)
    for _ in range(random.choice((0, 1, 1, 1, 2))):
        text = random.choice((_replace_value, _replace_value, _replace_key, _break_line, _insert, _anchor))(text, random)
    if random.random() < 0.25:
        text = mutate(text, random)
    return _change_bytes(text, random)


def _replace_value(text: str, random: Random) -> str:
    return _change_line(text, random, lambda key, _: f"{key}: {random.choice(_TOKENS)}")


def _replace_key(text: str, random: Random) -> str:
    def change(key: str, value: str) -> str:
        return f"{key[: len(key) - len(key.lstrip(' -'))]}{random.choice(_KEYS)}: {value}"

    return _change_line(text, random, change)


def _break_line(text: str, random: Random) -> str:
    """Continue a scalar on the next lines, or write it as a block."""

    def change(key: str, value: str) -> str:
        indent = " " * (len(key) - len(key.lstrip(" -")) + random.choice((1, 2, 2, 4)))
        head = random.choice(("", "", "|", "|-", "|+", ">", ">-", ">+", "|1", "|2", '"', "'", "# c", "&a", "!!str", "| # c"))
        lines = [
            value,
            *random.choices(("a", "  b", "", " ", "\t", "c ", "# c", "- d", "e: f", "?", "---", "#"), k=random.randint(0, 4)),
        ]
        end = head if head in ('"', "'") else ""
        return (
            f"{key}: {head}"
            + ("\n" if not end else "")
            + "\n".join(f"{indent if line.strip() else ''}{line}" for line in lines)
            + end
        )

    return _change_line(text, random, change)


def _insert(text: str, random: Random) -> str:
    """Insert a token anywhere."""
    at = random.randint(0, len(text))
    return text[:at] + random.choice(_TOKENS) + text[at:]


def _anchor(text: str, random: Random) -> str:
    """Give one value an anchor, and use it in other places."""
    text = _change_line(text, random, lambda key, value: f"{key}: &a {value}")
    return _change_line(text, random, lambda key, _: f"{key}: *a" if random.random() < 0.7 else f"{key}:\n  <<: *a")


def _change_line(text: str, random: Random, change: Any) -> str:
    lines = text.split("\n")
    chosen = [number for number, line in enumerate(lines) if ":" in line and not line.lstrip().startswith("#")]
    if chosen:
        number = random.choice(chosen)
        key, _, value = lines[number].partition(":")
        lines[number] = change(key, value.strip())
    return "\n".join(lines)


def _change_bytes(text: str, random: Random) -> str:
    """Change line breaks, and what stands before and behind the document."""
    match random.randrange(40):
        case 0 | 1:
            return text.replace("\n", "\r\n")
        case 2:
            return text.replace("\n", "\r")
        case 3:
            return "\ufeff" + text
        case 4:
            return text.rstrip("\n")
        case 5:
            return text + random.choice(("...\n", "---\n", "--- \n", "# c", "\n\n", " ", "\t\n", "---", "...", "%YAML 1.2\n---\n"))
        case 6:
            return random.choice(_HEADS) + text
        case _:
            return text


def _write(value: Any, random: Random, depth: int) -> str:
    """Return the value as YAML: each collection as a block, in flow style or as JSON, each text in one of its styles."""
    style = random.random()
    if isinstance(value, dict) and value and style < 0.75:
        return "".join(
            f"{' ' * depth}{_write_key(key, random)}:{_write_below(inner, random, depth)}\n" for key, inner in value.items()
        )
    if isinstance(value, list) and value and style < 0.75:
        return "".join(f"{' ' * depth}-{_write_below(inner, random, depth)}\n" for inner in value)
    return f"{' ' * depth}{_write_flow(value, random)}\n"


def _write_below(value: Any, random: Random, depth: int) -> str:
    if isinstance(value, dict | list) and value and random.random() < 0.8:
        return "\n" + _write(value, random, depth + random.choice((1, 2, 2, 2, 4))).rstrip("\n")
    if isinstance(value, str) and "\n" in value.strip("\n") and random.random() < 0.7 and value[0] not in " \n":
        indent = " " * (depth + 2)
        chomp = "-" if not value.endswith("\n") else "" if not value.endswith("\n\n") else "+"
        return f" |{chomp}\n" + "\n".join(f"{indent}{line}" if line else "" for line in value.rstrip("\n").split("\n"))
    return " " + _write_flow(value, random)


def _write_flow(value: Any, random: Random) -> str:
    if random.random() < 0.3 or not isinstance(value, dict | list | str):
        return json.dumps(value, ensure_ascii=random.random() < 0.5)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_write_key(key, random)}: {_write_flow(inner, random)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_write_flow(inner, random) for inner in value) + "]"
    match random.randrange(3):
        case 0 if "\n" not in value:
            return "'" + value.replace("'", "''") + "'"
        case 1 if value[:1].isalpha() and value.isascii() and value.replace("-", "").replace(".", "").replace("/", "").isalnum():
            return value
        case _:
            return json.dumps(value, ensure_ascii=random.random() < 0.5)


def _write_key(key: str, random: Random) -> str:
    return json.dumps(key) if random.random() < 0.15 or not key.isascii() or not key.replace("-", "").isalnum() else key
