"""The JSON Schemas of gitsched, by group, version and kind, and the tables of what gitsched makes of each field of the policy APIs.

A table of `schemas/fields/` lists all fields of the kinds of an API with their types, and rows that say of fields and everything below them
whether gitsched does the same as upstream. The site shows them below docs/api-fields.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any, Final, Literal

from gitsched.apis.policy_api import SchemaKey
from gitsched.model.document import Body
from gitsched.model.finding import Issue
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.policy_api import DocumentValidator
    from gitsched.model.finding import Pointer


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


Verdict = Literal["same", "differs", "recorded", "finding"]
FIELD_CODE: Final = "field-unsupported"
KIND_CODE: Final = "kind-unsupported"


class FieldVerdict(NamedTuple):
    """What gitsched makes of `fields` and everything below them, unless another row names a longer path; "" is the whole document.

    `same`: as upstream. `differs`: `reason` says how. `recorded`: gitsched decides nothing by it; `reason` says who does. `finding`: where
    it is set, `reason` is what the finding says. Other code reports it if `code` is given. Otherwise it is a
    warning. A row concerns all values, those of `values`, or all but those of `unless`, such as a default.
    """

    fields: tuple[str, ...]
    verdict: Verdict
    reason: str = ""
    code: str = ""
    values: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


class KindFields(NamedTuple):
    """The fields of kinds that have the same ones, with their types by path: `[]` is each entry of a list, `*` each key of a map.

    A type is `string`, `integer`, `boolean`, `time`, `amount` (a number, a quantity or a percentage), `object`, `any`, or `=A|B` for an
    enumeration.
    """

    group: str
    versions: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: tuple[FieldVerdict, ...]
    fields: Mapping[str, str]

    def find_row(self, path: str) -> FieldVerdict | None:
        """Return the row of a field: the one that names the longest path that leads to it."""
        named = [(len(prefix), row) for row in self.rows for prefix in row.fields if is_below(path, prefix)]
        return max(named, key=lambda pair: pair[0])[1] if named else None


def is_below(path: str, prefix: str) -> bool:
    """Return whether a field is another one, or below it."""
    return not prefix or path == prefix or path.startswith((f"{prefix}.", f"{prefix}["))


@cache
def load_field_table(api: str) -> tuple[KindFields, ...]:
    """Return the table of a policy API, by its name; an empty one for an API without a table."""
    file = find_schema_directory().joinpath("fields", f"{api}.json")
    if not file.is_file():
        return ()
    table = json.loads(file.read_bytes())
    return tuple(
        KindFields(
            entry["group"],
            tuple(entry["versions"]),
            tuple(entry["kinds"]),
            tuple(_read_row(row) for row in entry["rows"]),
            dict(_expand(entry["fields"], table["shapes"])),
        )
        for entry in table["kinds"]
    )


def _read_row(row: Mapping[str, Any]) -> FieldVerdict:
    values, unless = tuple(row.get("values", ())), tuple(row.get("unless", ()))
    fields = tuple(row["fields"].split()) or ("",)
    return FieldVerdict(fields, row["verdict"], row.get("reason", ""), row.get("code", ""), values, unless)


def _expand(fields: Mapping[str, str], shapes: Mapping[str, Mapping[str, str]], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the fields with their types; `@name` is that of a shape with fields of its own."""
    for path, type_ in fields.items():
        if type_.startswith("@"):
            yield from _expand(shapes[type_[1:]], shapes, f"{prefix}{path}.")
        else:
            yield f"{prefix}{path}", type_


def make_schema(entry: KindFields) -> Body:
    """Return a JSON schema of the fields of a kind, without their types: which names there are."""
    root: Body = {}
    for path, type_ in entry.fields.items():
        node = root
        for part in path.split("."):
            name = part.removesuffix("[]")
            if name == "*":
                node["additionalProperties"] = node = node.get("additionalProperties", {})
            else:
                node = node.setdefault("properties", {}).setdefault(name, {})
            node = node.setdefault("items", {}) if part.endswith("[]") else node
        if type_ in ("object", "any"):
            node["additionalProperties"] = True
    return root


def has_field_table(api: str, group: str, kind: str) -> bool:
    """Return whether there is a table of the fields of a kind."""
    return any(entry.group == group and kind in entry.kinds for entry in load_field_table(api))


@cache
def make_field_validator(api: str, group: str, kind: str) -> DocumentValidator | None:
    """Return a validator that reports what documents of a kind set and gitsched does not support; None if there is nothing of the kind."""
    entries = [entry for entry in load_field_table(api) if entry.group == group and kind in entry.kinds]
    rows = dict.fromkeys(row for entry in entries for row in entry.rows if row.verdict == "finding" and not row.code)
    return partial(_find_unsupported, tuple(rows)) if rows else None


def list_differing_fields(api: str, group: str, body: Body) -> Iterator[tuple[str, FieldVerdict]]:
    """Yield the fields below spec that a document sets and by which gitsched decides otherwise than upstream, or decides nothing."""
    for entry in load_field_table(api):
        rows = entry.rows if entry.group == group and body.get("kind") in entry.kinds else ()
        for row in rows:
            for path in row.fields if row.verdict in ("differs", "recorded") else ():
                values = _list_values(body, tuple(path.split("."))) if path.startswith("spec.") else ()
                if any(_is_reported(row, value) for _, value in values):
                    yield path, row


def _find_unsupported(rows: tuple[FieldVerdict, ...], body: Body) -> Iterator[Issue]:
    for row in rows:
        for path in row.fields:
            if not path:
                yield Issue("warning", KIND_CODE, f"{body['kind']} is not supported: {row.reason}", ("kind",))
            for pointer, value in _list_values(body, tuple(path.split("."))) if path else ():
                if _is_reported(row, value):
                    yield Issue("warning", FIELD_CODE, _describe(row, path, value), pointer)


def _is_reported(row: FieldVerdict, value: Any) -> bool:
    if value in (None, "", False, 0, [], {}):
        return False
    return str(value) in row.values if row.values else str(value) not in row.unless


def _describe(row: FieldVerdict, path: str, value: Any) -> str:
    name = path.rpartition(".")[2].removesuffix("[]")
    # Other values may have what nobody else is to read, such as the password of an address.
    is_shown = (row.values or row.unless) and isinstance(value, str | int) and not isinstance(value, bool)
    text = str(value) if is_shown else ""
    shown = f"{name}: {text:.60}" if text else name
    return f"{shown} is not supported: {row.reason}"


def _list_values(value: Any, parts: tuple[str, ...], pointer: Pointer = ()) -> Iterator[tuple[Pointer, Any]]:
    """Yield the values at a path, with their places."""
    if not parts:
        yield pointer, value
        return
    name = parts[0].removesuffix("[]")
    inner = value.get(name) if isinstance(value, dict) else None
    if parts[0].endswith("[]"):
        for index, entry in enumerate(inner if isinstance(inner, list) else ()):
            yield from _list_values(entry, parts[1:], (*pointer, name, index))
    elif inner is not None:
        yield from _list_values(inner, parts[1:], (*pointer, name))
