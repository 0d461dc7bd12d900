"""Validate documents against JSON Schemas (draft 2020-12) with a compiled validator, and prune unknown fields as an API server
does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from gitsched.manifests.parsed_file import MAX_ISSUES
from gitsched.model.document import Body, find_unversioned_group
from gitsched.model.finding import Issue, Pointer, ValidationResult

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator


_OPEN_KEYWORDS = ("additionalProperties", "patternProperties", "x-kubernetes-preserve-unknown-fields", "unevaluatedProperties")
_NEVER_PRUNED = frozenset({"apiVersion", "api", "kind", "metadata", "status"})
_STRICT_DEFINITION = "gitsched-clean"


class _Fields(NamedTuple):
    """The fields of an object's members or a list's items in a schema; `additional` is the schema of members without a name."""

    known_names: dict[str, Any]
    is_open: bool
    additional: Body | None
    items: Body | None


class SchemaPruner:
    """Removes fields that a schema does not define.

    A schema defines its `properties` and those of its local `$ref` and `allOf`. A schema that lists no properties, or allows
    additional ones, leaves the object unchanged. Type, metadata and status of the document are never changed.
    """

    __slots__ = ("_fields", "_root")

    def __init__(self, schema: Body) -> None:
        self._root = schema
        self._fields: dict[int, _Fields] = {}  # by id(): the parts of a schema live as long as the schema

    def make_strict_schema(self) -> Body:
        """Return a schema that accepts the documents that are valid and have no unknown field.

        It is equivalent to pruning, but a compiled validator checks it faster, and nearly all documents pass.
        """
        known_names, is_open, _, _ = self._get_fields(self._root)
        definitions: dict[str, Any] = {}
        inner = {name: name in _NEVER_PRUNED or self._make_definition(part, definitions) for name, part in known_names.items()}
        top = (
            {"properties": {**dict.fromkeys(_NEVER_PRUNED, True), **inner}, "additionalProperties": is_open}
            if known_names
            else True
        )
        return {
            **self._root,
            "$defs": {**self._root.get("$defs", {}), **definitions, _STRICT_DEFINITION: top},
            "allOf": [*self._root.get("allOf", ()), {"$ref": f"#/$defs/{_STRICT_DEFINITION}"}],
        }

    def prune(self, body: Body) -> tuple[Body, list[Issue]]:
        """Return the body without unknown fields, and a warning for each of the first twenty; the same object when it has none."""
        issues: list[Issue] = []
        known_names, is_open, _, _ = self._get_fields(self._root)
        if not known_names:
            return body, issues
        members: Body = {}
        same = True
        for name, old in body.items():
            new = old
            if name not in _NEVER_PRUNED:
                if name in known_names:
                    new = self._prune_value(old, known_names[name], (name,), issues)
                elif not is_open:
                    _report_unknown_field(issues, name, known_names, ())
                    same = False
                    continue
            same = same and new is old
            members[name] = new
        return (body if same else members), issues

    def _make_definition(self, schema: Any, definitions: dict[str, Any]) -> Body | bool:
        """Return the schema of a value without unknown fields. Each part of a schema has one definition, since schemas can be
        recursive."""
        known_names, is_open, additional, items = self._get_fields(schema)
        if not known_names and additional is None and items is None:
            return True
        name = f"{_STRICT_DEFINITION}-{id(schema)}"  # by id(), like the cached fields
        if name not in definitions:
            entry: Body = {}
            definitions[name] = entry
            if items is not None:
                entry["items"] = self._make_definition(items, definitions)
            if known_names or additional is not None:
                entry["properties"] = {member: self._make_definition(part, definitions) for member, part in known_names.items()}
                entry["additionalProperties"] = is_open if additional is None else self._make_definition(additional, definitions)
        return {"$ref": f"#/$defs/{name}"}

    def _prune_value(self, value: Any, schema: Any, pointer: Pointer, issues: list[Issue]) -> Any:
        kind = value.__class__
        if kind is not dict and kind is not list:
            return value
        known_names, is_open, additional, items = self._get_fields(schema)
        if kind is list:
            if items is None:
                return value
            entries = [self._prune_value(entry, items, (*pointer, index), issues) for index, entry in enumerate(value)]
            return value if all(new is old for new, old in zip(entries, value, strict=True)) else entries
        if not known_names and additional is None:
            return value
        members: Body = {}
        same = True
        for name, old in value.items():
            if name in known_names:
                new = self._prune_value(old, known_names[name], (*pointer, name), issues)
            elif additional is not None:
                new = self._prune_value(old, additional, (*pointer, name), issues)
            elif is_open:
                new = old
            else:
                _report_unknown_field(issues, name, known_names, pointer)
                same = False
                continue
            same = same and new is old
            members[name] = new
        return value if same else members

    def _get_fields(self, schema: Any) -> _Fields:
        fields = self._fields.get(id(schema))
        if fields is None:
            known_names: dict[str, Any] = {}
            parts = self._list_parts(schema)
            for part in parts:
                known_names.update(part.get("properties", {}))
            additional, items = (
                next((part[word] for part in parts if isinstance(part.get(word), dict)), None)
                for word in ("additionalProperties", "items")
            )
            fields = self._fields[id(schema)] = _Fields(
                known_names, any(word in part for part in parts for word in _OPEN_KEYWORDS), additional, items
            )
        return fields

    def _list_parts(self, schema: Any, depth: int = 0) -> list[Body]:
        """Return the schema and what it includes by `$ref` and `allOf`, at most sixteen levels deep."""
        if not isinstance(schema, dict) or depth > 16:
            return []
        parts = [schema]
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            target: Any = self._root
            for step in reference[2:].split("/") if len(reference) > 1 else ():
                target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
            parts += self._list_parts(target, depth + 1)
        for included in schema.get("allOf", ()):
            parts += self._list_parts(included, depth + 1)
        return parts


def _report_unknown_field(issues: list[Issue], name: str, known_names: dict[str, Any], pointer: Pointer) -> None:
    if len(issues) >= MAX_ISSUES:
        return
    from difflib import get_close_matches  # rarely needed

    lower = {candidate.lower(): candidate for candidate in known_names}
    matches = get_close_matches(name[:100].lower(), lower, n=1)
    hint = f"; did you mean '{lower[matches[0]]}'?" if matches else ""
    shown = name if len(name) <= 60 else name[:57] + "..."
    issues.append(Issue("warning", "unknown-field", f"the field {shown!r} is unknown and ignored{hint}", (*pointer, name)))


SchemaKey = tuple[str, str, str]
"""Group ("" for the core), version, kind."""

_UNCHECKED_KINDS = frozenset(("Role", "RoleBinding", "ManifestWork"))
"""Kinds that are unrelated to placement but have names similar to known kinds of the same group."""


class _KindValidator:
    """The validators of one kind: for its schema, and for its schema without unknown fields."""

    def __init__(self, schema: Body) -> None:
        self.schema = schema
        self.pruner = SchemaPruner(schema)
        self.strict = _compile_schema(self.pruner.make_strict_schema())

    @cached_property
    def lenient(self) -> Draft202012Validator:
        return _compile_schema(self.schema)


class SchemaValidator:
    """Schemas by kind, each compiled for the first document of its kind.

    A schema is self-contained: a `$ref` other than `#` and `#/...` is a ValueError, and nothing is ever fetched.
    """

    __slots__ = ("_compiled", "_groups", "_kinds", "_mapping", "_versions")

    def __init__(self, mapping: Mapping[SchemaKey, Body]) -> None:
        self._mapping = mapping
        self._versions: dict[tuple[str, str], list[str]] = {}
        self._groups: dict[str, list[str]] = {}
        self._kinds: dict[str, list[str]] = {}
        for group, version, kind in sorted(mapping, reverse=True):
            self._versions.setdefault((group, kind), []).append(f"{group}/{version}")
            self._groups.setdefault(kind, []).append(group)
            self._kinds.setdefault(group, []).append(kind)
        self._compiled: dict[SchemaKey, _KindValidator] = {}

    def validate(self, body: Body, original: Body | None = None) -> ValidationResult:
        """Return the document without unknown fields, and the issues of its schema; no issues for a kind without a schema.

        `original` is the document as written, `body` the same with defaults. Defaulting may have removed empty values; those of a
        wrong type are reported, too.
        """
        key = get_schema_key(body)
        entry = self._compiled.get(key) or self._compile_kind(key)
        if entry is None:
            return ValidationResult(
                body, self._check_unversioned_kind(key) if body.get("api") and not body.get("apiVersion") else self._check_kind(key)
            )
        pruned, issues, is_valid = body, list[Issue](), entry.strict.is_valid(body)
        if not is_valid:
            pruned, issues = entry.pruner.prune(body)
            is_valid = entry.lenient.is_valid(pruned)
        if not is_valid:
            from gitsched.manifests.schema_errors import explain_errors  # lazy: takes 100 ms, and most runs have no errors

            issues = [*issues, *explain_errors(pruned, entry.schema, entry.lenient)]
        elif original is not None and not entry.lenient.is_valid(original):
            from gitsched.manifests.schema_errors import explain_errors

            errors = explain_errors(original, entry.schema, entry.lenient)
            issues = [*issues, *(issue for issue in errors if issue.code == "wrong-type" and _is_empty(original, issue.pointer))]
        return ValidationResult(pruned, tuple(issues))

    def _check_kind(self, key: SchemaKey) -> tuple[Issue, ...]:
        """Report a kind without a schema that is probably a misspelling of a kind with one."""
        group, version, kind = key
        versions = self._versions.get((group, kind))
        if versions is not None:
            message = f"{kind} is read as {' or '.join(versions)}, not as {group}/{version}"
            return (Issue("error", "unknown-version", message, ("apiVersion",)),)
        if kind in self._groups:
            similar_group = _find_similar_group(group, version, self._groups[kind])
            return _report_unknown_group(group, version, kind, self._versions[similar_group, kind]) if similar_group else ()
        kinds = self._kinds.get(group)
        if kinds is None or kind in _UNCHECKED_KINDS:
            return ()
        from difflib import get_close_matches  # rarely needed

        # All kinds of an unversioned group have a schema. Other groups have kinds that have nothing to do with scheduling.
        unversioned = find_unversioned_group(group) == version
        matches = get_close_matches(kind[:100], kinds, n=1, cutoff=0.6 if unversioned else 0.8)
        if not matches and not unversioned:
            return ()
        hint = f"; did you mean {matches[0]}?" if matches else ""
        return (Issue("warning", "unknown-kind", f"there is no kind {kind[:60]!r} in {group}: it is ignored{hint}", ("kind",)),)

    def _check_unversioned_kind(self, key: SchemaKey) -> tuple[Issue, ...]:
        """Check the kind of a document that has `api` in place of apiVersion."""
        group, version, kind = key
        if find_unversioned_group(group) == version:
            return self._check_kind(key)
        known_names = [group for group in self._groups.get(kind, ()) if find_unversioned_group(group) is not None]
        if not known_names:
            return ()
        message = f"{kind} of the api {version[:60]!r} is ignored; did you mean {known_names[0]}?"
        return (Issue("warning", "unknown-kind", message, ("api",)),)

    def _compile_kind(self, key: SchemaKey) -> _KindValidator | None:
        group, version, kind = key
        if f"{group}/{version}" not in self._versions.get((group, kind), ()):
            return None
        schema = self._mapping[key]
        for reference in _list_references(schema):
            if not (isinstance(reference, str) and (reference == "#" or reference.startswith("#/"))):
                raise ValueError(f"the schema of {key[2]} refers to {reference!r}, which is outside of it")
        entry = self._compiled[key] = _KindValidator(schema)
        return entry


def _compile_schema(schema: Body) -> Draft202012Validator:
    from jsonschema_rs import Draft202012Validator  # lazy: not every command validates

    return Draft202012Validator(schema, retriever=_refuse_fetch)


def _find_similar_group(group: str, version: str, known_names: list[str]) -> str | None:
    """Return the group with a similar name, or the group that is written in place of the version; None when there is none."""
    if not group and version in known_names:
        return version
    from difflib import get_close_matches  # rarely needed

    return next(iter(get_close_matches(group[:100], known_names, n=1, cutoff=0.9)), None)


def _report_unknown_group(group: str, version: str, kind: str, known_names: list[str]) -> tuple[Issue, ...]:
    original = f"{group}/{version}" if group else version
    message = f"{kind} of {original[:100]!r} is ignored; did you mean {' or '.join(known_names)}?"
    return (Issue("warning", "unknown-kind", message, ("apiVersion",)),)


def _is_empty(body: Any, pointer: Iterable[str | int]) -> bool:
    """Return whether the value at a pointer is an empty string or list."""
    for part in pointer:
        body = body[part]
    return body in ("", [])


def get_schema_key(body: Body) -> SchemaKey:
    """Return group, version and kind of a document; "" for what it does not have. Unversioned groups have a name in place of a version."""
    text = str(body.get("apiVersion") or body.get("api") or "")
    group, _, version = text.rpartition("/")
    if not group and (unversioned := find_unversioned_group(version)) is not None:
        group, version = version, unversioned
    return group, version, str(body.get("kind") or "")


def _list_references(schema: Any) -> Iterator[Any]:
    if isinstance(schema, dict):
        for name, value in schema.items():
            if name in ("$ref", "$dynamicRef"):
                yield value
            else:
                yield from _list_references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _list_references(value)


def _refuse_fetch(address: str) -> Any:
    raise ValueError(f"schemas are never fetched: {address}")
