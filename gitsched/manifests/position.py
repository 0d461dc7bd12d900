"""Where in the source text a place of a document's body stands, on demand."""

from __future__ import annotations

from typing import Any

from yaml import MappingNode, ScalarNode, SequenceNode

from gitsched.manifests.compose import Tree, compose
from gitsched.manifests.construct import Builder, is_merge
from gitsched.manifests.decoding import join_surrogates
from gitsched.manifests.limits import LIMITS

Pointer = tuple[str | int, ...]


def find_member(node: Any, name: str) -> tuple[Any, Any] | None:
    """The key and value nodes of a member written in this mapping; merged members are not looked for."""
    if node.__class__ is not MappingNode:
        return None
    for key, value in node.value:
        if key.__class__ is ScalarNode and not is_merge(key):
            if key.value == name:
                return key, value
            if (key.tag or not key.style) and Builder(0).build(key) is not None and Builder(0)._key(key) == name:
                return key, value
    return None


def locate_node(tree: Tree, node: Any, pointer: Pointer) -> tuple[int, int]:
    """Line and column, from 1, of a pointer below `node`; of the nearest ancestor that exists where it does not.

    A member of a mapping is where its value is, if the value is a scalar on the key's own line, else where its key is.
    """
    place = node
    for step in pointer:
        if isinstance(step, int) and node.__class__ is SequenceNode and 0 <= step < len(node.value):
            node = place = node.value[step]
            continue
        pair = find_member(node, step) if isinstance(step, str) else None
        if pair is None:
            break
        key, node = pair
        here, there = key.start_mark, node.start_mark
        place = node if node.__class__ is ScalarNode and here.line == there.line and there.index >= here.index else key
    return tree.line + place.start_mark.line + 1, place.start_mark.column + 1


def locate(data: bytes, index: int, item: int, pointer: Pointer) -> tuple[int, int] | None:
    """Line and column, from 1, of a place in document `index` (entry `item` of a List, or -1) of a file that was read before.

    None when the file has no such document; the nearest existing ancestor when the document has no such place.
    """
    text = data.decode("utf-8-sig", "replace")
    found = -1
    for tree in compose(join_surrogates(text), LIMITS):
        if isinstance(tree, Tree):
            found += 1
            if found == index:
                return locate_node(tree, tree.node, (*(("items", item) if item >= 0 else ()), *pointer))
    return None
