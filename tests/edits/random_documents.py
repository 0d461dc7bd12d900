"""Random manifests as a person might write them (styles, comments, anchors, line ends), and random changes of their value."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

from gitsched.render.yaml import quote, quote_always

NAMES = ("a", "b", "app.kubernetes.io/name", "image", "name", "x y", "yes", "1", "é", "k: v", "#n", "a\u2028b")
STRINGS = (
    "web",
    "nginx:1.27",
    "yes",
    "1",
    "",
    "a: b",
    "# no",
    "it's",
    'say "x"',
    "é\u2028",
    "- x",
    "a b",
    "{x}",
    "1e3",
    "x\ty",
    "*a",
    "&a",
    "\U0001f600",
)
TEXTS = ("a\nb\n", "echo 1\n\necho 2", "x\n\n", "  lead\nx\n", "# c\nkey: v\n", "tail \nx\n", "\n\na\n")
SCALARS = (*STRINGS, *TEXTS, None, True, False, 0, 3, -1, 2.5, 10**12)
COMMENTS = ("# c", "#", "# image: x", "# - a", "# \"'{[", "# é")


def _write_json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON without characters that YAML reads differently."""
    return json.dumps(value, indent=indent, ensure_ascii=False).replace("\u2028", "\\u2028")


class Writer:
    """Writes a value as text in random styles."""

    def __init__(self, random: Random, *, anchors: bool = False) -> None:
        self._random, self._anchors = random, anchors
        self._known: list[tuple[str, Any]] = []
        self._count = 0

    def write(self, value: dict[str, Any], line_end: str = "\n") -> str:
        """Return a document."""
        lines = (
            self._members(value, 0) if self._random.random() < 0.9 else [_write_json(value, indent=self._random.choice([None, 2]))]
        )
        text = "\n".join([*self._own_lines(0), *lines, *self._own_lines(0)])
        return text.replace("\n", line_end) + line_end * (self._random.random() < 0.8 or "|" in lines[-1])

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _own_lines(self, column: int) -> list[str]:
        if self._chance(0.75):
            return []
        return [
            self._random.choice(["", " " * self._random.choice([column, column, 0, column + 3]) + self._random.choice(COMMENTS)])
        ]

    def _beside(self) -> str:
        return " " * self._random.randint(1, 3) + self._random.choice(COMMENTS) if self._chance(0.2) else " " * self._chance(0.1)

    def _key(self, name: str) -> str:
        return quote(name) if self._chance(0.85) else quote_always(name)

    def _members(self, value: dict[str, Any], column: int) -> list[str]:
        lines = []
        for name, member in value.items():
            lines += self._own_lines(column)
            head, rest = self._value(member, column, entry=False)
            gap = " " * self._chance(0.05)
            lines += [f"{' ' * column}{self._key(name)}{gap}:{head}", *rest]
        return lines

    def _entries(self, value: list[Any], column: int) -> list[str]:
        lines = []
        for entry in value:
            lines += self._own_lines(column)
            head, rest = self._value(entry, column, entry=True)
            lines += [f"{' ' * column}-{head}", *rest]
        return lines

    def _value(self, value: Any, column: int, *, entry: bool) -> tuple[str, list[str]]:
        """Return what follows a key or dash, and the lines below."""
        if self._anchors:
            for name, known in self._known:
                if type(known) is type(value) and known == value and self._chance(0.6):
                    return f" *{name}{self._beside()}", []
        if isinstance(value, dict | list) and value and self._chance(0.75):
            properties = ""
            if self._anchors and self._chance(0.15):
                self._count += 1
                properties = f" &n{self._count}"
            inner = column + self._random.choice([1, 2, 2, 2, 4])
            if isinstance(value, list):
                inner = column + self._random.choice([0, 2, 2]) if not entry else column + 2
                block = self._entries(value, inner)
            else:
                block = self._members(value, inner)
            if properties:
                self._known.append((properties[2:], value))
                return f"{properties}{self._beside()}", block
            if entry and not block[0].strip().startswith("#") and block[0].strip() and inner > column + 1 and self._chance(0.85):
                return " " * (inner - column - 1) + block[0][inner:], block[1:]
            return self._beside(), block
        if isinstance(value, str) and "\n" in value and self._chance(0.8):
            found = self._literal(value, column + self._random.choice([1, 2, 4]))
            if found is not None:
                return found
        if value is None and self._chance(0.4):
            return self._beside(), []
        text = self._flow(value, column + 2)
        if self._anchors and self._chance(0.15) and not isinstance(value, dict | list):
            self._count += 1
            self._known.append((f"n{self._count}", value))
            text = f"&{self._known[-1][0]} {text}"
        return f" {text}{self._beside()}", []

    def _literal(self, text: str, column: int) -> tuple[str, list[str]] | None:
        body = text.rstrip("\n")
        ends = len(text) - len(body)
        if not body or text[0] in " \n" or ends > 1:
            return None
        lines = [" " * column + line if line else "" for line in body.split("\n")]
        mark = "" if ends else "-"
        blank = [""] * self._random.randint(0, 2)
        return f" |{mark}{self._beside()}", [*lines, *blank]

    def _flow(self, value: Any, column: int) -> str:
        if isinstance(value, dict):
            return self._join(
                "{}",
                [
                    f"{quote_always(name) if self._chance(0.7) or not name.isalnum() else quote(name)}: {self._flow(member, column + 2)}"
                    for name, member in value.items()
                ],
                column,
            )
        if isinstance(value, list):
            return self._join("[]", [self._flow(entry, column + 2) for entry in value], column)
        if isinstance(value, str):
            if "\n" not in value and "'" not in value and "\u2028" not in value and "\t" not in value and self._chance(0.3):
                return f"'{value}'"
            plain = quote(value)
            return plain if plain.isalnum() and self._chance(0.8) else _write_json(value)
        return _write_json(value)

    def _join(self, brackets: str, parts: list[str], column: int) -> str:
        if not parts or self._chance(0.6):
            return brackets[0] + ", ".join(parts) + brackets[1]
        pad = "\n" + " " * column
        comma = "," * self._chance(0.3)
        return f"{brackets[0]}{pad}{f',{pad}'.join(parts)}{comma}{pad}{brackets[1]}"


def make_value(random: Random, depth: int = 3) -> Any:
    """Return a random value."""
    kind = random.random()
    if depth and kind < 0.4:
        return {name: make_value(random, depth - 1) for name in random.sample(NAMES, random.randint(0, 4))}
    if depth and kind < 0.65:
        return [make_value(random, depth - 1) for _ in range(random.randint(0, 4))]
    return random.choice(SCALARS)


def make_manifest(random: Random) -> dict[str, Any]:
    """Return a random manifest."""
    body = {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "web"}}
    for name in random.sample(["spec", "data", "labels"], random.randint(1, 3)):
        body[name] = make_value(random)
    return body


def change_value(random: Random, body: dict[str, Any]) -> dict[str, Any]:
    """Return a copy with a few changes below the members that identify the object."""
    body = copy.deepcopy(body)
    for _ in range(random.randint(1, 3)):
        holder: Any = body
        step: Any = random.choice([name for name in body if name not in ("apiVersion", "kind", "metadata")] or ["spec"])
        while isinstance(holder.get(step) if isinstance(holder, dict) else holder[step], dict | list) and random.random() < 0.8:
            inner = holder[step]
            if not inner:
                break
            holder, step = inner, random.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
        action = random.random()
        if isinstance(holder, list):
            if action < 0.3:
                holder.insert(random.randint(0, len(holder)), make_value(random, 2))
            elif action < 0.5:
                del holder[step]
            else:
                holder[step] = make_value(random, 2)
        elif action < 0.3:
            holder[random.choice(NAMES)] = make_value(random, 2)
        elif action < 0.5 and holder is not body:
            del holder[step]
        else:
            holder[step] = make_value(random, 2)
    return body
