"""YAML nodes → JSON values, strictly: duplicate keys, foreign tags and what JSON cannot hold are faults."""

from __future__ import annotations

from itertools import takewhile
from math import isfinite
from sys import intern
from typing import Any

from yaml import MappingNode, Node, ScalarNode, SequenceNode

from gitsched.manifests.compose import Fault, Tree
from gitsched.manifests.limits import MOST_PROBLEMS, Limits
from gitsched.manifests.scalars import NUMERIC, WORDS, OutOfRange, resolve_number, write_key

_CORE = "tag:yaml.org,2002:"
_ODD_KEYS = frozenset(WORDS) | {"<<"}


class Builder:
    """Builds the values of one document. `faults` collects what is wrong; a value stands in for what could not be built."""

    __slots__ = ("faults", "line", "warnings")

    def __init__(self, line: int) -> None:
        self.line = line
        self.faults: list[Fault] = []
        self.warnings: list[Fault] = []

    def build(self, node: Any) -> Any:
        """The JSON value of a node. Aliased nodes are built once for every use, so no two places share a value."""
        kind = node.__class__
        if kind is ScalarNode:
            text = node.value
            if node.tag or (not node.style and (text in WORDS or text[:1] in NUMERIC)):
                return self._scalar(node)
            return text
        if node.tag:
            self._check_tag(node, "map" if kind is MappingNode else "seq")
        if kind is SequenceNode:
            return [self.build(child) for child in node.value]
        members: dict[str, Any] = {}
        build = self.build
        merges = None
        for key, value in node.value:
            name = key.value
            if key.__class__ is not ScalarNode or key.tag or (not key.style and (name in _ODD_KEYS or name[:1] in NUMERIC)):
                if is_merge(key):
                    if merges is not None:
                        self._fault("duplicate-key", f"duplicate key '<<': line {self._line(merges[0])} has it already", key)
                    merges = merges or (key, value)
                    continue
                name = self._key(key)
                if name is None:
                    continue
            if name in members:
                self._duplicate(node, name, key)
            elif value.__class__ is ScalarNode and not value.tag and value.style:
                members[intern(name)] = value.value
            else:
                members[intern(name)] = build(value)
        return members if merges is None else self._merge(node, members, *merges)

    def _scalar(self, node: Any) -> Any:
        tag, text = node.tag, node.value
        if tag == _CORE + "str":
            return text
        if tag and not (tag.startswith(_CORE) and tag[len(_CORE) :] in ("null", "bool", "int", "float", "timestamp")):
            self._check_tag(node, "str")
            return text
        try:
            value = WORDS[text] if text in WORDS else resolve_number(text) if text[0] in NUMERIC else text
        except OutOfRange:
            self._fault("number-out-of-range", "the number is too large for Kubernetes; quote it if it is a text", node)
            return text
        if value.__class__ is float and not isfinite(value):
            self._fault("not-in-json", f"{text} is a number that JSON cannot hold; quote it if it is a text", node)
            return text
        if tag and tag != _CORE + "timestamp" and not _fits(tag[len(_CORE) :], value):
            # Without the text: it may be a value of a Secret, and findings are committed.
            self._fault("wrong-tag", f"the value is no {tag[len(_CORE) :]}, which its tag demands", node)
            return text
        return text if tag == _CORE + "timestamp" else value

    def _check_tag(self, node: Any, core: str) -> None:
        if node.tag == _CORE + core:
            return
        tag = "!!" + node.tag[len(_CORE) :] if node.tag.startswith(_CORE) else node.tag
        hint = "; write base64 text without the tag" if tag == "!!binary" else ""
        self._fault("unsupported-tag", f"the tag {_shorten(tag)} has no meaning in a Kubernetes object{hint}", node)

    def _key(self, key: Any) -> str | None:
        if key.__class__ is ScalarNode:
            value = self.build(key)
            if value is not None:
                name = write_key(value)
                if value.__class__ is bool and len(self.warnings) < MOST_PROBLEMS and key.value.lower() != name:
                    what = f"the key {key.value} is read as {name}, as Kubernetes reads it; quote it if it is a text"
                    self.warnings.append(self._make("boolean-key", what, key))
                return name
        what = "null" if key.__class__ is ScalarNode else "a mapping" if key.__class__ is MappingNode else "a list"
        self._fault("unsupported-key", f"{what} cannot be a key; quote the key if it is a text", key)
        return None

    def _duplicate(self, node: Any, name: str, key: Any) -> None:
        if len(self.faults) >= MOST_PROBLEMS:
            return
        quiet = Builder(self.line)
        first = next(k for k, _ in node.value if k.__class__ is ScalarNode and not is_merge(k) and quiet._key(k) == name)
        self._fault("duplicate-key", f"duplicate key '{_shorten(name)}': line {self._line(first)} has it already", key)

    def _merge(self, node: Any, members: dict[str, Any], key: Any, value: Any) -> dict[str, Any]:
        """Members of what `<<` names, too. A written key wins wherever `<<` stands, an earlier mapping before a later."""
        merged: dict[str, Any] = {}
        for source in value.value if value.__class__ is SequenceNode else (value,):
            if source.__class__ is not MappingNode:
                self._fault("unsupported-merge", "'<<' takes a mapping, or a list of mappings", key)
                continue
            for name, inherited in self.build(source).items():
                merged.setdefault(name, inherited)
        before = takewhile(lambda name: name is not key, (name for name, _ in node.value))
        late = next((name.value for name in before if name.__class__ is ScalarNode and name.value in merged), None)
        if late is not None and len(self.warnings) < MOST_PROBLEMS:
            what = f"'<<' stands after the key '{_shorten(late)}', which it sets too: the written key is taken; put '<<' first"
            self.warnings.append(self._make("late-merge", what, key))
        return {**merged, **members}

    def _line(self, node: Any) -> int:
        return int(self.line + node.start_mark.line + 1)

    def _make(self, code: str, message: str, node: Any) -> Fault:
        return Fault(code, message, self._line(node), node.start_mark.column + 1)

    def _fault(self, code: str, message: str, node: Any) -> None:
        if len(self.faults) < MOST_PROBLEMS:
            self.faults.append(self._make(code, message, node))


def is_merge(key: Any) -> bool:
    """Whether a key is YAML 1.1's merge key, which only a plain `<<` is."""
    return key.__class__ is ScalarNode and key.value == "<<" and ((not key.tag and not key.style) or key.tag == _CORE + "merge")


def _fits(name: str, value: Any) -> bool:
    if name == "null":
        return value is None
    if name == "bool":
        return isinstance(value, bool)
    return isinstance(value, (int, float)) and not isinstance(value, bool) and (name == "float" or isinstance(value, int))


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def weigh(tree: Tree, limits: Limits) -> Fault | None:
    """The first bound on aliases that a document breaks: recursion, their number, or what they expand to.

    Only for documents that may contain aliases. Each node is visited once: an alias comes after the node that it names.
    """
    sizes: dict[int, tuple[int, int]] = {}
    open_nodes: set[int] = set()
    uses = added = 0

    def visit(node: Node, depth: int, place: Node) -> tuple[int, int] | Fault:
        nonlocal uses, added
        here = id(node)
        mark = place.start_mark
        line, column = tree.line + mark.line + 1, mark.column + 1
        if here in sizes:
            size, height = sizes[here]
            uses += 1
            added += size
            if uses > limits.aliases:
                return Fault("too-many-aliases", f"the document uses aliases more than {limits.aliases} times", line, column)
            if added > limits.expansion:
                return Fault("too-many-aliases", f"aliases expand to more than {limits.expansion} values", line, column)
            if depth + height > limits.depth:
                return Fault("too-deep", f"aliases nest collections more than {limits.depth} deep", line, column)
            return size, height
        if here in open_nodes:
            return Fault("recursive-alias", "the alias refers to a collection that contains it", line, column)
        if isinstance(node, ScalarNode):
            sizes[here] = 1 + len(node.value) // 32, 0
            return sizes[here]
        open_nodes.add(here)
        size, height = 1, 0
        pairs = (
            ((child, key) for key, value in node.value for child in (key, value))
            if isinstance(node, MappingNode)
            else ((c, c) for c in node.value)
        )
        for child, beside in pairs:
            inner = visit(child, depth + 1, beside)
            if isinstance(inner, Fault):
                return inner
            size += inner[0]
            height = max(height, inner[1] + 1)
        open_nodes.discard(here)
        sizes[here] = size, height
        return size, height

    outcome = visit(tree.node, 0, tree.node)
    return outcome if isinstance(outcome, Fault) else None
