"""JSON Schemas that ship with gitsched, by group, version and kind."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from gitsched.model.document import Body

SchemaKey = tuple[str, str, str]
"""API group, version and kind, as in ("policy.karmada.io", "v1alpha1", "PropagationPolicy")."""


@cache
def shipped_schemas() -> Mapping[SchemaKey, Body]:
    """Every schema of the package, as a mapping that parses a schema when it is first asked for.

    In a wheel the schemas are in gitsched/schemas; in a checkout they lie in schemas/ beside the package.
    """
    package = files("gitsched")
    inside = package.joinpath("schemas")
    return SchemaDirectory(inside if inside.is_dir() else package.joinpath("..", "schemas"))


class SchemaDirectory(Mapping[SchemaKey, Body]):
    """The schemas of a directory laid out as <group>/<version>/<Kind>.json; anything else in it is left alone."""

    def __init__(self, root: Traversable) -> None:
        self._files = dict(sorted(_list_files(root)))
        self._parsed: dict[SchemaKey, Body] = {}

    def __getitem__(self, key: SchemaKey) -> Body:
        if key not in self._parsed:
            self._parsed[key] = json.loads(self._files[key].read_bytes())
        return self._parsed[key]

    def __iter__(self) -> Iterator[SchemaKey]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __contains__(self, key: object) -> bool:
        return key in self._files


def _list_files(root: Traversable) -> Iterator[tuple[SchemaKey, Traversable]]:
    for group in _list_directories(root):
        for version in _list_directories(group):
            for file in version.iterdir():
                if file.name.endswith(".json"):
                    yield (group.name, version.name, file.name.removesuffix(".json")), file


def _list_directories(parent: Traversable) -> Iterator[Traversable]:
    return (entry for entry in parent.iterdir() if entry.is_dir())
