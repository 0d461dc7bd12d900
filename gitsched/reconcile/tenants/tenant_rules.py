"""Find where the rules of Tenants are written: the line and column of each field that a document can break."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from gitsched.git import Repository
from gitsched.manifests.parsed_file import DEFAULT_LIMITS
from gitsched.model.document import Body, Origin, as_object, get_field
from gitsched.model.finding import Pointer

if TYPE_CHECKING:
    from gitsched.manifests.field_locations import FieldLocator

RulePositions = Mapping[str, tuple[int, int]]
"""Line and column of fields, by their dotted path in the document."""
LocateRules = Callable[[Body, Origin | None], RulePositions]

_FIELDS: Final = (
    "paths",
    "namespaces",
    "kinds",
    "clusterKinds",
    "clusters",
    "policies",
    "priorityClasses",
    "limits",
    "reads",
    "precedence",
)
_MAX_ENTRIES: Final = 100
"""Entries of one list or mapping that are located."""


def make_rule_locator(repository: Repository) -> LocateRules:
    """Return a function that returns the positions of the rules of a Tenant; none where its text is not known."""

    last: tuple[str, FieldLocator] | None = None

    def locate(body: Body, origin: Origin | None) -> RulePositions:
        nonlocal last
        if origin is None or origin.root or not repository.has(origin.blob):
            return {}
        if repository.blob_size(origin.blob) > DEFAULT_LIMITS.size:
            return {}
        if last is None or last[0] != origin.blob:
            from gitsched.manifests.field_locations import FieldLocator  # loads PyYAML, and most sources have no tenants

            last = origin.blob, FieldLocator(repository.blob(origin.blob))
        pointers = list(_list_pointers(as_object(body.get("spec"))))
        found = last[1].locate(origin.index, origin.item, pointers)
        return {".".join(map(str, pointer)): position for pointer, position in zip(pointers, found, strict=False)}

    return locate


def read_positions(record: Mapping[str, Any]) -> RulePositions:
    """Return the positions that gitsched.json records of a Tenant."""
    return {
        name: (position[0], position[1])
        for name, position in as_object(record.get("fields")).items()
        if isinstance(position, list) and len(position) == 2 and all(type(number) is int for number in position)
    }


def _list_pointers(spec: Body) -> Iterator[Pointer]:
    yield ("spec",)
    for name in _FIELDS:
        if name in spec:
            yield ("spec", name)
    for name in ("kinds", "limits"):
        for member in islice(as_object(spec.get(name)), _MAX_ENTRIES):
            yield ("spec", name, str(member))
    denied = get_field(spec, "kinds", "deny")
    for index in range(min(len(denied), _MAX_ENTRIES) if isinstance(denied, list) else 0):
        yield ("spec", "kinds", "deny", index)
    for name in islice(as_object(get_field(spec, "limits", "requests")), _MAX_ENTRIES):
        yield ("spec", "limits", "requests", str(name))
