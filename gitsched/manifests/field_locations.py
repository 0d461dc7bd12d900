"""Find many fields in the text of a file that was parsed before."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from yaml import MappingNode, ScalarNode

from gitsched.manifests.parsed_file import DEFAULT_LIMITS
from gitsched.manifests.yaml_composer import YamlDocument, compose_documents, join_surrogates
from gitsched.manifests.yaml_nodes import Constructor, is_converted, is_merge_key, locate_node

if TYPE_CHECKING:
    from gitsched.model.finding import Pointer


class MemberIndex:
    """Finds many members of the mappings of one document: the first search in a mapping indexes it, so that no other one reads it again."""

    def __init__(self) -> None:
        self._members: dict[int, tuple[Any, dict[str, tuple[Any, Any]]]] = {}

    def find_member(self, node: Any, name: str) -> tuple[Any, Any] | None:
        """Return what the function `find_member` returns."""
        if node.__class__ is not MappingNode:
            return None
        if id(node) not in self._members:
            members: dict[str, tuple[Any, Any]] = {}
            for key, value in node.value:
                if key.__class__ is ScalarNode and not is_merge_key(key):
                    members.setdefault(key.value, (key, value))
                    converted = Constructor(0).construct_key(key) if is_converted(key) else None
                    if converted is not None:
                        members.setdefault(converted, (key, value))
            self._members[id(node)] = node, members
        return self._members[id(node)][1].get(name)


class FieldLocator:
    """Finds fields in a file that was parsed before. Each of its documents is composed once, and only up to the last one that is needed."""

    def __init__(self, data: bytes) -> None:
        trees = compose_documents(join_surrogates(data.decode("utf-8-sig", "replace")), DEFAULT_LIMITS)
        self._trees = (tree for tree in trees if isinstance(tree, YamlDocument))
        self._composed: list[YamlDocument] = []

    def locate(self, index: int, item: int, pointers: Iterable[Pointer]) -> list[tuple[int, int]]:
        """Return line and column, from 1, of fields in document `index` (item `item` of a List, or -1), each that of the nearest existing
        ancestor when the document has no such field; [] when the file has no such document."""
        self._composed += islice(self._trees, max(0, index + 1 - len(self._composed)))
        if index >= len(self._composed):
            return []
        tree, prefix = self._composed[index], ("items", item) if item >= 0 else ()
        return [locate_node(tree, tree.node, (*prefix, *pointer)) for pointer in pointers]
