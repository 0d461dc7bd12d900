"""Read YAML nodes: construct their JSON values as sigs.k8s.io/yaml does, and locate fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import takewhile
from math import isfinite
from sys import intern
from typing import TYPE_CHECKING, Any, Final

from yaml import MappingNode, ScalarNode, SequenceNode

from gitsched.manifests.parsed_file import MAX_ISSUES
from gitsched.manifests.plain_scalars import NON_STRING_KEY, NUMBER_START, RESERVED_SCALARS, NumberOutOfRange, resolve_number
from gitsched.manifests.printed_scalars import format_key, is_reprinted_timestamp, is_timestamp
from gitsched.manifests.yaml_errors import ParseError

if TYPE_CHECKING:
    from gitsched.manifests.yaml_composer import YamlDocument
    from gitsched.model.finding import Pointer

_AMBIGUOUS_WORDS = frozenset(
    word for word, value in RESERVED_SCALARS.items() if value in (True, False) and word.lower() not in ("true", "false")
)
"""Booleans of YAML 1.1, which sigs.k8s.io/yaml reads as such and kyaml as strings."""
AMBIGUOUS_VALUE: Final = "ambiguous-value"
_CORE_TAG = "tag:yaml.org,2002:"
_UNSUPPORTED_TAGS = frozenset(("binary", "map", "omap", "pairs", "seq", "set", "str", "timestamp", "bool", "float", "int", "null"))
"""Tags of YAML that messages name; any other one may be the text of a password, without quotes."""
_RESERVED_KEYS = frozenset(RESERVED_SCALARS) | {"<<"}
_FIRST_KEYS = ("apiVersion", "kind")
"""With which an object begins."""


class Constructor:
    """Builds `value`, the value of a document's node, as sigs.k8s.io/yaml reads it. `errors` collects invalid nodes; each has a placeholder
    value. `differences` collects nodes that kyaml, the reader of kustomize, refuses or reads as another value.

    Messages contain keys and no values: any value can be that of a Secret, and findings are committed.
    """

    __slots__ = ("differences", "errors", "line", "value", "warnings")

    def __init__(self, line: int, node: Any = None) -> None:
        self.line = line
        self.errors: list[ParseError] = []
        self.warnings: list[ParseError] = []
        self.differences: list[ParseError] = []
        self.value: Any = self.construct(node) if node is not None else None

    def construct(self, node: Any) -> Any:
        """Return the JSON value of a node. An aliased node is built once per use, so no two places share a value."""
        kind = node.__class__
        if kind is ScalarNode:
            text = node.value
            if node.tag or (not node.style and (text in RESERVED_SCALARS or text[:1] in NUMBER_START)):
                return self._construct_scalar(node)
            return text
        if node.tag:
            self._check_tag(node, "map" if kind is MappingNode else "seq")
        if node.flow_style:
            self._check_flow_values(node)
        if kind is SequenceNode:
            return [self.construct(child) for child in node.value]
        members: dict[str, Any] = {}
        build = self.construct
        merges = None
        for key, value in node.value:
            name = key.value
            if (
                key.__class__ is not ScalarNode
                or key.tag
                or (not key.style and (name in _RESERVED_KEYS or name[:1] in NUMBER_START))
            ):
                if is_merge_key(key):
                    if merges is not None:
                        self._add_error("duplicate-key", f"duplicate key '<<': line {self._line_of(merges[0])} has it already", key)
                    merges = merges or (key, value)
                    continue
                name = self.construct_key(key)
                if name is None:
                    continue
            if name in members:
                self._report_duplicate_key(node, name, key)
            elif value.__class__ is ScalarNode and not value.tag and value.style:
                members[intern(name)] = value.value
            else:
                members[intern(name)] = build(value)
        return members if merges is None else self._merge_mappings(node, members, *merges)

    def _construct_scalar(self, node: Any) -> Any:
        tag, text = node.tag, node.value
        if tag == _CORE_TAG + "str":
            return text
        if text in _AMBIGUOUS_WORDS or (text[4:5] == "-" and is_reprinted_timestamp(text)):
            self._report_ambiguous(node)
        if tag and not (tag.startswith(_CORE_TAG) and tag[len(_CORE_TAG) :] in ("null", "bool", "int", "float", "timestamp")):
            self._check_tag(node, "str")
            return text
        try:
            value = (
                RESERVED_SCALARS[text] if text in RESERVED_SCALARS else resolve_number(text) if text[0] in NUMBER_START else text
            )
        except NumberOutOfRange:
            self._add_error(
                "number-out-of-range",
                "the number is too large for Kubernetes; quote it if it is a text",
                node,
            )
            return text
        if value.__class__ is float and not isfinite(value):
            self._add_error("not-in-json", "JSON has no infinite numbers and no nan; quote it if it is a text", node)
            return text
        if tag and tag != _CORE_TAG + "timestamp" and not _matches_tag(tag[len(_CORE_TAG) :], value):
            self._add_error("wrong-tag", f"the value is not a valid {tag[len(_CORE_TAG) :]}, as its tag requires", node)
            return text
        if tag == _CORE_TAG + "timestamp":
            if not is_timestamp(text):
                self._add_error("wrong-tag", "the value is not a valid timestamp, as its tag requires", node)
            return text
        return value

    def _check_tag(self, node: Any, core: str) -> None:
        if node.tag == _CORE_TAG + core:
            return
        name = node.tag[len(_CORE_TAG) :] if node.tag.startswith(_CORE_TAG) else ""
        hint = "; write base64 text without the tag" if name == "binary" else "; quote it if it is a text that begins with !"
        shown = f"the tag !!{name}" if name in _UNSUPPORTED_TAGS else "the tag of this value"
        self._add_error("unsupported-tag", f"{shown} has no meaning in a Kubernetes object{hint}", node)

    def _report_ambiguous(self, node: Any) -> None:
        word = RESERVED_SCALARS.get(node.value)
        if word is None:
            message = "kubectl reads this date or time as it is written, and kustomize prints it in another form: quote it"
        else:
            name = format_key(word)
            message = f"kubectl reads this word as {name}, and kustomize as a text: write {name}, or quote it if it is a text"
        self._add_difference(AMBIGUOUS_VALUE, message, node)

    def _check_flow_values(self, node: Any) -> None:
        """Report missing values in braces or brackets."""
        for value in node.value if node.__class__ is SequenceNode else [value for _, value in node.value]:
            if value.__class__ is ScalarNode and not (value.value or value.style or value.tag):
                message = (
                    'kubectl reads a missing value in braces or brackets as null, and kustomize as an empty text: write null or ""'
                )
                self._add_difference(AMBIGUOUS_VALUE, message, value)

    def construct_key(self, key: Any) -> str | None:
        """Return the name of a member; None with an error for a key that no reader accepts."""
        if key.__class__ is ScalarNode:
            count = len(self.differences)
            value = self.construct(key)
            del self.differences[count:]  # of the same text as a value
            if value is not None:
                name = format_key(value)
                if value.__class__ is not str or (not key.style and is_timestamp(name)):
                    self._report_non_string_key(key, value, name)
                return name
        description = "null" if key.__class__ is ScalarNode else "a mapping" if key.__class__ is MappingNode else "a list"
        self._add_error("unsupported-key", f"{description} cannot be a key; quote the key if it is a text", key)
        return None

    def _report_non_string_key(self, key: Any, value: Any, name: str) -> None:
        if key.value in _AMBIGUOUS_WORDS:
            problem = f"kubectl reads the key {key.value} as {name}, and kustomize as a text"
        else:
            kind = "boolean" if value.__class__ is bool else "date" if value.__class__ is str else "number"
            problem = f"kustomize does not read the key {_shorten(key.value)}, because it is a {kind}"
        self._add_difference(NON_STRING_KEY, f"{problem}: quote it", key)

    def _report_duplicate_key(self, node: Any, name: str, key: Any) -> None:
        """Report a duplicate key with the line of the first one."""
        if len(self.errors) >= MAX_ISSUES:
            return
        temporary_constructor = Constructor(self.line)
        first = next(
            k
            for k, _ in node.value
            if k.__class__ is ScalarNode and not is_merge_key(k) and temporary_constructor.construct_key(k) == name
        )
        starts = name in _FIRST_KEYS and key.start_mark.column == 0
        hint = "; if another document begins here, write a line '---' before it" if starts else ""
        self._add_error("duplicate-key", f"duplicate key '{_shorten(name)}': line {self._line_of(first)} has it already{hint}", key)

    def _merge_mappings(self, node: Any, members: dict[str, Any], key: Any, value: Any) -> dict[str, Any]:
        """Add the members of the mappings that `<<` refers to. A written key takes precedence wherever `<<` is, an earlier
        mapping over a later."""
        merged: dict[str, Any] = {}
        if value.__class__ is SequenceNode and value.start_mark.index < key.start_mark.index:
            message = "kubectl and kustomize refuse an alias of a list as the value of '<<': write the list itself"
            self._add_error("unsupported-merge", message, key)
        for source in value.value if value.__class__ is SequenceNode else (value,):
            if source.__class__ is not MappingNode:
                self._add_error("unsupported-merge", "'<<' takes a mapping, or a list of mappings", key)
                continue
            for name, inherited in self.construct(source).items():
                merged.setdefault(name, inherited)
        before = takewhile(lambda name: name is not key, (name for name, _ in node.value))
        late_key = next((name.value for name in before if name.__class__ is ScalarNode and name.value in merged), None)
        if late_key is not None and len(self.differences) < MAX_ISSUES:
            description = (
                f"kubectl takes '{_shorten(late_key)}' of '<<', which comes after it, and kustomize the key itself: put '<<' first"
            )
            self.differences.append(self._make_error("late-merge", description, key))
        return {**merged, **members}

    def _line_of(self, node: Any) -> int:
        return int(self.line + node.start_mark.line + 1)

    def _make_error(self, code: str, message: str, node: Any) -> ParseError:
        return ParseError(code, message, self._line_of(node), node.start_mark.column + 1)

    def _add_difference(self, code: str, message: str, node: Any) -> None:
        if len(self.differences) < MAX_ISSUES:
            self.differences.append(self._make_error(code, message, node))

    def _add_error(self, code: str, message: str, node: Any) -> None:
        if len(self.errors) < MAX_ISSUES:
            self.errors.append(self._make_error(code, message, node))


def is_merge_key(key: Any) -> bool:
    """Return whether a key is YAML 1.1's merge key, a plain `<<`."""
    return key.__class__ is ScalarNode and key.value == "<<" and ((not key.tag and not key.style) or key.tag == _CORE_TAG + "merge")


def _matches_tag(name: str, value: Any) -> bool:
    if name == "null":
        return value is None
    if name == "bool":
        return isinstance(value, bool)
    return isinstance(value, (int, float)) and not isinstance(value, bool) and (name == "float" or isinstance(value, int))


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def is_converted(key: Any) -> bool:
    """Return whether the name of a scalar key may differ from its text: `yes` is read as true, and 0x1 as 1."""
    return bool(key.tag or (not key.style and (key.value in _RESERVED_KEYS or key.value[:1] in NUMBER_START)))


def find_member(node: Any, name: str) -> tuple[Any, Any] | None:
    """Return the key and value nodes of a member that is written in this mapping; merged members are not found."""
    if node.__class__ is not MappingNode:
        return None
    for key, value in node.value:
        if key.__class__ is ScalarNode and not is_merge_key(key):
            if key.value == name:
                return key, value
            if is_converted(key) and Constructor(0).construct(key) is not None and Constructor(0).construct_key(key) == name:
                return key, value
    return None


def list_item_nodes(node: Any, count: int) -> list[Any]:
    """Return the nodes of the items of a List with this number of items; its own node for each where they are merged."""
    pair = find_member(node, "items")
    written = pair is not None and pair[1].__class__ is SequenceNode and len(pair[1].value) == count
    return list(pair[1].value) if pair is not None and written else [node] * count


def find_written_member(node: Any, path: Iterable[str]) -> tuple[Any, Any] | None:
    """Return the key and value nodes at a path of members; None if one of them is missing, merged, or an alias to shared text."""
    pair: tuple[Any, Any] | None = None
    after = 0
    for name in path:
        pair = find_member(node, name)
        if pair is None or pair[1].start_mark.index < pair[0].end_mark.index or pair[0].start_mark.index < after:
            return None
        node, after = pair[1], pair[0].end_mark.index
    return pair


def find_written_mapping(node: Any, path: Iterable[str]) -> tuple[Any, Any] | None:
    """Return the key and value nodes of a mapping as `find_written_member` does; None if it merges others into it: of a new member, parsers
    would disagree which value counts."""
    pair = find_written_member(node, path)
    is_plain = pair is not None and pair[1].__class__ is MappingNode and not any(is_merge_key(key) for key, _ in pair[1].value)
    return pair if is_plain else None


FindMember = Callable[[Any, str], tuple[Any, Any] | None]
"""Return the key and value nodes of a member of a mapping."""


def locate_node(
    tree: YamlDocument, node: Any, pointer: Pointer, *, at_key: bool = False, find: FindMember = find_member
) -> tuple[int, int]:
    """Return line and column, from 1, of a pointer below `node`; of the nearest existing ancestor when it does not exist.

    A mapping member is located at its value when that is a scalar on the line of its key, else or with `at_key` at its key.
    """
    located = node
    for step in pointer:
        if isinstance(step, int) and node.__class__ is SequenceNode and 0 <= step < len(node.value):
            node = located = node.value[step]
            continue
        pair = find(node, step) if isinstance(step, str) else None
        if pair is None:
            break
        key, node = pair
        key_mark, value_mark = key.start_mark, node.start_mark
        located = (
            node
            if not at_key
            and node.__class__ is ScalarNode
            and key_mark.line == value_mark.line
            and value_mark.index >= key_mark.index
            else key
        )
    return tree.line + located.start_mark.line + 1, located.start_mark.column + 1
