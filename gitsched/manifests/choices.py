"""List the selectors and names in a document by which it chooses workloads or clusters, as its schema marks them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gitsched.manifests.unknown_fields import Chosen, SchemaNode
from gitsched.model.document import Body
from gitsched.model.finding import Pointer
from gitsched.named_tuples import NamedTuple

_SELECTOR_MEMBERS = ("matchLabels", "matchExpressions")


class Choice(NamedTuple):
    """A selector, or a list of names, at a place of a document."""

    pointer: Pointer
    value: Any
    chosen: Chosen


def list_choices(body: Body, root: Body, read_node: Callable[[Any], SchemaNode]) -> Iterator[Choice]:
    """Yield the selectors and the lists of names of a document that is valid by the schema `root`."""
    waiting: list[tuple[Pointer, Any, Any, Chosen | None]] = [((), body, root, None)]
    for pointer, value, schema, outer in waiting:
        node = read_node(schema)
        chosen = node.chooses or outer
        if isinstance(value, list):
            if chosen == "cluster-names":
                yield Choice(pointer, value, chosen)
            elif node.items is not None:
                waiting += [((*pointer, index), entry, node.items, chosen) for index, entry in enumerate(value)]
        elif isinstance(value, dict):
            if chosen is not None and any(member in value for member in _SELECTOR_MEMBERS):
                yield Choice(pointer, value, chosen)
            waiting += [
                ((*pointer, name), entry, node.known_names[name], chosen)
                for name, entry in value.items()
                if name in node.known_names and name not in _SELECTOR_MEMBERS
            ]
