"""The JSON Schemas of gitsched, by group, version and kind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from gitsched.apis.policy_api import SchemaKey
from gitsched.model.document import Body


@cache
def shipped_schemas() -> Mapping[SchemaKey, Body]:
    """Return every schema of the package, as a mapping that parses a schema on first use."""
    return SchemaDirectory(find_schema_directory())


def find_schema_directory() -> Traversable:
    """Return the directory of the schemas: in a wheel gitsched/schemas, in a checkout schemas/ beside the package."""
    package = files("gitsched")
    inside = package.joinpath("schemas")
    return inside if inside.is_dir() else package.joinpath("..", "schemas")


def list_schemas(others: Iterable[Mapping[SchemaKey, Body]]) -> Mapping[SchemaKey, Body]:
    """Return the shipped schemas and those in `others`, which take precedence."""
    return _LayeredSchemas((*(schemas for schemas in others if schemas), shipped_schemas()))


class _LayeredSchemas(Mapping[SchemaKey, Body]):
    """Several mappings combined into one; a schema is parsed when it is looked up."""

    def __init__(self, layers: tuple[Mapping[SchemaKey, Body], ...]) -> None:
        self._layers = layers

    def __getitem__(self, key: SchemaKey) -> Body:
        for layer in self._layers:
            if key in layer:
                return layer[key]
        raise KeyError(key)

    def __iter__(self) -> Iterator[SchemaKey]:
        return iter(dict.fromkeys(key for layer in self._layers for key in layer))

    def __len__(self) -> int:
        return len(set(self))


class SchemaDirectory(Mapping[SchemaKey, Body]):
    """The schemas of a directory with files <group>/<version>/<Kind>.json; other files are ignored."""

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
