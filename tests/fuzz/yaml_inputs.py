"""Texts of any size, each made of one construct of YAML over and over, to measure what parsing costs per byte."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from random import Random

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

Generate = Callable[[int], str]


def repeat(unit: str, *, before: str = "", after: str = "") -> Generate:
    """Repeat a text. `{n}` in it is a running number."""

    def generate(size: int) -> str:
        parts, length = [before], 0
        for number in count():
            part = unit.replace("{n}", str(number))
            parts.append(part)
            length += len(part)
            if length >= size:
                return "".join((*parts, after))
        raise AssertionError

    return generate


def _staircase(size: int) -> str:
    """Mappings that nest up to the limit and come back, again and again."""
    stair = "".join(f"{' ' * level}k:\n" for level in range(150)) + " " * 150 + "v: 1\n"
    return HEAD + "data:\n" + "".join(f" r{n}:\n" + stair.replace("\n", "\n  ") + "\n" for n in range(size // len(stair) // 2 + 1))


_TOKENS = (
    *("- ", "? ", ": ", "a", "b: ", "[", "]", "{", "}", ",", "\n", "\n  ", "\n    ", '"x"', "'y'", "#c\n", "&a ", "*a", "!t "),
    *("!!str ", ">\n", "|\n", "\\", "\n", "%", "\t", "---\n", "...\n", "<<: ", "~", "0x1f", "1e3", "@", "`", "%TAG !a! b\n"),
)


def _random_tokens(seed: int) -> Generate:
    def generate(size: int) -> str:
        random = Random(seed)  # the same texts in every run
        unit = "".join(random.choices(_TOKENS, k=random.choice((3, 6, 12, 40))))
        return HEAD + unit * (size // len(unit) + 1)

    return generate


CONSTRUCTS: Mapping[str, Generate] = {
    "tag directives": repeat("%TAG !t{n}! tag:x,{n}:\n", after="--- a\n"),
    "tag directives of many documents": repeat("%TAG !t! tag:x,{n}:\n--- a\n...\n"),
    "the same directive": repeat("%FOO bar\n", after="--- a\n"),
    "anchors": repeat("- &a{n} x\n", before=HEAD + "data:\n"),
    "the same anchor": repeat("- &a x\n", before=HEAD + "data:\n"),
    "aliases": repeat("- *a\n", before=HEAD + "x: &a 1\ndata:\n"),
    "long anchors": repeat("a", before=HEAD + "x: &", after=" 1\n"),
    "comments": repeat("# comment {n}\n", before=HEAD),
    "a long comment": repeat("#", before=HEAD),
    "comments between entries": repeat("- a # b\n  # c\n", before=HEAD + "data:\n"),
    "blank lines": repeat("\n", before=HEAD, after="data: 1\n"),
    "blanks": repeat(" ", before=HEAD + "data:", after="1\n"),
    "blanks at line ends": repeat("a:         \n - b        \n", before=HEAD),
    "tabs": repeat("\t", before=HEAD + "data:", after="1\n"),
    "nested mappings": _staircase,
    "nested lists in one line": repeat("- ", before=HEAD + "data:\n ", after="a\n"),
    "nested flow lists": repeat("[", before=HEAD + "data: "),
    "nested flow mappings": repeat("{a: ", before=HEAD + "data: "),
    "flow lists up to the limit": repeat("- " + "[" * 150 + "]" * 150 + "\n", before=HEAD + "data:\n"),
    "a flow list": repeat("a,", before=HEAD + "data: [", after="]\n"),
    "a flow list below nested ones": repeat("a,", before=HEAD + "data: " + "[" * 150, after="]" * 150 + "\n"),
    "a flow list over many lines": repeat("a\n,", before=HEAD + "data: [", after="]\n"),
    "a flow mapping": repeat("k{n}: 1,", before=HEAD + "data: {", after="}\n"),
    "flow mappings without values": repeat("? a,", before=HEAD + "data: {", after="}\n"),
    "adjacent values": repeat('"k{n}":1,', before=HEAD + "data: {", after="}\n"),
    "keys": repeat("k{n}: 1\n", before=HEAD),
    "the same key": repeat("k: 1\n", before=HEAD),
    "numbers as keys": repeat("{n}: 1\n", before=HEAD),
    "keys at the limit of length": repeat("k" * 1020 + "{n}: 1\n", before=HEAD),
    "keys over the limit of length": repeat("k" * 1100 + "{n}: 1\n", before=HEAD),
    "explicit keys": repeat("? k{n}\n: 1\n", before=HEAD),
    "nested explicit keys": repeat("? ", before=HEAD),
    "merge keys": repeat("<<: {a: 1}\n", before=HEAD),
    "nested merge keys": repeat("- {" + "<<: {" * 100 + "}" * 101 + "\n", before=HEAD + "data:\n"),
    "a long plain value": repeat("a", before=HEAD + "data: ", after="\n"),
    "a long number": repeat("1", before=HEAD + "data: ", after="\n"),
    "a long number with an exponent": repeat("1", before=HEAD + "data: 1e", after="\n"),
    "many long numbers": repeat("- 1" + "1" * 4000 + "\n", before=HEAD + "data:\n"),
    "a plain value of many lines": repeat("a\n ", before=HEAD + "data: ", after="\n"),
    "a plain value with blank lines": repeat("a\n\n ", before=HEAD + "data: ", after="\n"),
    "a plain value with blanks": repeat("a  ", before=HEAD + "data: ", after="\n"),
    "single quotes": repeat("''", before=HEAD + "data: '", after="'\n"),
    "double quotes": repeat("a\n ", before=HEAD + 'data: "', after='"\n'),
    "an open quote": repeat("a\n ", before=HEAD + 'data: "'),
    "escapes": repeat("\\u00e9\\n", before=HEAD + 'data: "', after='"\n'),
    "escaped line ends": repeat("\\\n ", before=HEAD + 'data: "', after='"\n'),
    "backslashes": repeat("\\\\", before=HEAD + 'data: "', after='\\ud83d"\n'),
    "surrogate pairs": repeat("\\ud83d\\ude00", before=HEAD + 'data: "', after='"\n'),
    "a literal": repeat("  a\n", before=HEAD + "data: |\n"),
    "a folded text": repeat("  a\n\n   b\n", before=HEAD + "data: >\n"),
    "a literal of blank lines": repeat(" \n", before=HEAD + "data: |\n", after="  a\n"),
    "a literal after deep blank lines": repeat(" " * 200 + "\n", before=HEAD + "data: |\n", after="  a\n"),
    "many literals": repeat("- |\n   a\n", before=HEAD + "data:\n"),
    "tags": repeat("- !!str a\n", before=HEAD + "data:\n"),
    "a long tag": repeat("a", before=HEAD + "data: !<", after="> 1\n"),
    "escapes in a tag": repeat("%41", before=HEAD + "data: !", after=" 1\n"),
    "byte order marks": repeat("﻿", before=HEAD + "data: "),
    "documents": repeat(HEAD + "---\n"),
    "empty documents": repeat("---\n"),
    "ends of documents": repeat("a: 1\n...\n"),
    "documents after errors": repeat("a: b: c\n---\n"),
    "an error at the end": repeat("- a\n", before=HEAD + "data:\n", after="  b: ]\n"),
    "helm templates": repeat("{{ .Values.a }}: {{ b }}\n", before=HEAD),
    "braces": repeat("{{", before=HEAD),
    "a list of objects": repeat(
        "- {apiVersion: v1, kind: ConfigMap, metadata: {name: a{n}}}\n", before="apiVersion: v1\nkind: List\nitems:\n"
    ),
    "a list with many members": lambda size: (
        repeat("k{n}: 1\n", before="apiVersion: v1\nkind: List\n")(size // 2)
        + repeat("- {kind: A, apiVersion: v1, metadata: {name: a{n}}}\n", before="items:\n")(size // 2)
    ),
    "nameless items": repeat("- {kind: A, apiVersion: v1}\n", before="apiVersion: v1\nkind: List\nitems:\n"),
    "unknown fields": repeat("  k{n}: 1\n", before="apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n"),
    "labels": repeat("    k{n}: 1\n", before="apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels:\n"),
    "containers": repeat(
        "      - {name: a{n}, image: x, resources: {requests: {cpu: x}}}\n",
        before="apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  template:\n    spec:\n      containers:\n",
    ),
    "wide characters": repeat("é漢😀", before=HEAD + "data: ", after="\n"),
    "carriage returns": repeat("a: 1\r", before=HEAD),
    "line separators": repeat("a\u2028", before=HEAD + "data: ", after="\n"),
    **{f"tokens {seed}": _random_tokens(seed) for seed in range(60)},
}
