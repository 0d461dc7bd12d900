"""Validate documents against JSON Schemas (draft 2020-12) with a compiled validator, and prune unknown fields as an API server
does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from gitsched.manifests.unknown_fields import IGNORED, ChoosingFields, SchemaNode, UnknownFieldReport
from gitsched.model.document import Body, find_unversioned_group
from gitsched.model.finding import Issue, Pointer, ValidationResult

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

    from gitsched.manifests.choices import Choice
    from gitsched.manifests.misspelled_kinds import KnownKinds


Strictness = Literal["upstream", "protective", "strict"]
"""Which issues of schemas are errors.

`upstream`: what API servers reject; they ignore unknown fields. `protective`: also an unknown field where a document chooses workloads or
clusters, because without it the document would choose others. `strict`: every issue.
"""

_OPEN_KEYWORDS = ("additionalProperties", "patternProperties", "x-kubernetes-preserve-unknown-fields", "unevaluatedProperties")
_NEVER_PRUNED = frozenset({"apiVersion", "api", "kind", "metadata", "status"})
_STRICT_DEFINITION = "gitsched-clean"
_CHOOSES = "x-gitsched-chooses"
"""Keyword of schemas: the value and everything in it chooses. It says what the selectors and names in it choose (`Chosen`)."""


class SchemaPruner:
    """Removes fields that a schema does not define.

    A schema defines its `properties` and those of its local `$ref` and `allOf`. A schema that lists no properties, or allows
    additional ones, leaves the object unchanged. The `kept` members of the document are never changed: its type, metadata and status.
    `described` is what warnings say of an unknown field.
    """

    __slots__ = ("_choosing", "_described", "_fields", "_kept", "_root")

    def __init__(self, schema: Body, kept: frozenset[str] = _NEVER_PRUNED, described: str = IGNORED) -> None:
        self._root, self._kept, self._described = schema, kept, described
        self._choosing: ChoosingFields | None = None
        self._fields: dict[int, SchemaNode] = {}  # by id(): the parts of a schema live as long as the schema

    def make_strict_schema(self) -> Body:
        """Return a schema that accepts the documents that are valid and have no unknown field.

        It is equivalent to pruning, but a compiled validator checks it faster, and nearly all documents pass.
        """
        known_names, is_open, *_ = self._read_node(self._root)
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

    def prune(self, body: Body, *, is_protective: bool = False) -> tuple[Body, list[Issue]]:
        """Return the body without unknown fields, and a warning for each of the first twenty; the same object when it has none.

        With `is_protective`, an unknown field where the document chooses workloads or clusters is an error.
        """
        if is_protective and self._choosing is None:
            self._choosing = ChoosingFields(self._root, self._read_node, _NEVER_PRUNED)
        report = UnknownFieldReport(self._choosing if is_protective else None, self._described)
        root = self._read_node(self._root)
        known_names, is_open, *_ = root
        chooses = root.chooses is not None
        if not known_names:
            return body, report.issues
        members: Body = {}
        same = True
        for name, old in body.items():
            new = old
            if name not in self._kept:
                if name in known_names:
                    new = self._prune_value(old, known_names[name], (name,), report, chooses)
                elif not is_open:
                    report.add(name, root, body, (), chooses)
                    same = False
                    continue
            same = same and new is old
            members[name] = new
        return (body if same else members), report.issues

    def list_choices(self, body: Body) -> Iterator[Choice]:
        """Yield the selectors and names by which a valid document chooses workloads or clusters."""
        from gitsched.manifests.choices import list_choices  # many sources have no selectors

        return list_choices(body, self._root, self._read_node)

    def _make_definition(self, schema: Any, definitions: dict[str, Any]) -> Body | bool:
        """Return the schema of a value without unknown fields. Each part of a schema has one definition, since schemas can be
        recursive."""
        known_names, is_open, additional, items, _ = self._read_node(schema)
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

    def _prune_value(self, value: Any, schema: Any, pointer: Pointer, report: UnknownFieldReport, chooses: bool) -> Any:
        kind = value.__class__
        if kind is not dict and kind is not list:
            return value
        node = self._read_node(schema)
        known_names, is_open, additional, items, chooses_itself = node
        chooses = chooses or chooses_itself is not None
        if kind is list:
            if items is None:
                return value
            entries = [self._prune_value(entry, items, (*pointer, index), report, chooses) for index, entry in enumerate(value)]
            return value if all(new is old for new, old in zip(entries, value, strict=True)) else entries
        if not known_names and additional is None:
            return value
        members: Body = {}
        same = True
        for name, old in value.items():
            if name in known_names:
                new = self._prune_value(old, known_names[name], (*pointer, name), report, chooses)
            elif additional is not None:
                new = self._prune_value(old, additional, (*pointer, name), report, chooses)
            elif is_open:
                new = old
            else:
                report.add(name, node, value, pointer, chooses)
                same = False
                continue
            same = same and new is old
            members[name] = new
        return value if same else members

    def _read_node(self, schema: Any) -> SchemaNode:
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
            fields = self._fields[id(schema)] = SchemaNode(
                known_names,
                any(part.get(word, False) is not False for part in parts for word in _OPEN_KEYWORDS),
                additional,
                items,
                next((part[_CHOOSES] for part in parts if _CHOOSES in part), None),
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


SchemaKey = tuple[str, str, str]
"""Group ("" for the core), version, kind."""


class _KindValidator:
    """The validators of one kind: for its schema, and for its schema without unknown fields.

    Metadata and a status belong to every document, also where a schema for editors closes the document without listing them.
    """

    def __init__(self, schema: Body) -> None:
        self.schema = schema = {key: part for key, part in schema.items() if key != "additionalProperties" or part is not False}
        self.pruner = SchemaPruner(schema)
        self.strict = _compile_schema(self.pruner.make_strict_schema())

    @cached_property
    def has_choices(self) -> bool:
        """Whether documents of this kind may choose workloads or clusters."""
        return any(True for _ in _list_values(self.schema, _CHOOSES))

    @cached_property
    def lenient(self) -> Draft202012Validator:
        return _compile_schema(self.schema)


class SchemaValidator:
    """Schemas by kind, each compiled for the first document of its kind.

    A schema is self-contained: a `$ref` other than `#` and `#/...` is a ValueError, and nothing is ever fetched.
    """

    __slots__ = ("_compiled", "_groups", "_keys", "_kinds", "_known_kinds", "_mapping", "_other_kinds")

    def __init__(self, mapping: Mapping[SchemaKey, Body], other_kinds: Iterable[tuple[str, str]] = ()) -> None:
        """`other_kinds` are groups and kinds that are known and have no schema."""
        self._mapping, self._keys, self._other_kinds = mapping, frozenset(mapping), tuple(other_kinds)
        self._groups = {group for group, _, _ in self._keys} | {group for group, _ in self._other_kinds}
        self._kinds = {kind for _, _, kind in self._keys} | {kind for _, kind in self._other_kinds}
        self._known_kinds: KnownKinds | None = None
        self._compiled: dict[SchemaKey, _KindValidator] = {}

    def validate(self, body: Body, original: Body | None = None, strictness: Strictness = "upstream") -> ValidationResult:
        """Return the document without unknown fields, and the issues of its schema; no issues for a kind without a schema. Fields of other
        types than the schema says are left out, too.

        `original` is the document as written, `body` the same with defaults. Defaulting may have removed empty values; those of a
        wrong type are reported, too.
        """
        key = get_schema_key(body)
        entry = self._compiled.get(key) or self._compile_kind(key)
        if entry is None:
            return ValidationResult(body, self._check_kind(key, body))
        if original is not None and _has_only_additions(body, original) and entry.strict.is_valid(original):
            return ValidationResult(body, ())  # defaults are valid themselves, and a document is smaller without them
        pruned, issues, is_valid = body, list[Issue](), entry.strict.is_valid(body)
        if not is_valid:
            pruned, issues = entry.pruner.prune(body, is_protective=strictness != "upstream")
            is_valid = entry.lenient.is_valid(pruned)
        if not is_valid:
            from gitsched.manifests.schema_errors import explain_errors  # lazy: takes 100 ms, and most runs have no errors
            from gitsched.manifests.typed_part import keep_typed_part

            issues = [*issues, *explain_errors(pruned, entry.schema, entry.lenient)]
            pruned = keep_typed_part(pruned, entry.lenient)
        elif original is not None and not entry.lenient.is_valid(original):
            from gitsched.manifests.schema_errors import explain_errors

            errors = explain_errors(original, entry.schema, entry.lenient)
            issues = [*issues, *(issue for issue in errors if issue.code == "wrong-type" and _is_empty(original, issue.pointer))]
        return ValidationResult(pruned, tuple(issues))

    def list_choices(self, body: Body) -> Iterator[Choice]:
        """Yield the selectors and names by which a valid document chooses workloads or clusters; none for a kind without a schema."""
        key = get_schema_key(body)
        entry = self._compiled.get(key) or self._compile_kind(key)
        return entry.pruner.list_choices(body) if entry is not None and entry.has_choices else iter(())

    def _check_kind(self, key: SchemaKey, body: Body) -> tuple[Issue, ...]:
        """Report a kind without a schema that is probably a misspelling of a kind with one."""
        group, _, kind = key
        if kind not in self._kinds and group not in self._groups:
            return ()
        from gitsched.manifests.misspelled_kinds import KnownKinds  # few documents have such a kind or group

        if self._known_kinds is None:
            self._known_kinds = KnownKinds([*self._keys, *((group, "", kind) for group, kind in self._other_kinds)])
        return self._known_kinds.check(*key, has_api=bool(body.get("api") and not body.get("apiVersion")))

    def _compile_kind(self, key: SchemaKey) -> _KindValidator | None:
        if key not in self._keys:
            return None
        schema = self._mapping[key]
        for reference in _list_values(schema, "$ref", "$dynamicRef"):
            if not (isinstance(reference, str) and (reference == "#" or reference.startswith("#/"))):
                raise ValueError(f"the schema of {key[2]} refers to {reference!r}, which is outside of it")
        entry = self._compiled[key] = _KindValidator(schema)
        return entry


def _compile_schema(schema: Body) -> Draft202012Validator:
    from jsonschema_rs import Draft202012Validator  # lazy: not every command validates

    return Draft202012Validator(schema, retriever=_refuse_fetch)


_ABSENT = object()


def _has_only_additions(filled: Any, original: Any) -> bool:
    """Return whether defaulting only added members, so that `filled` has every value of the original."""
    if filled is original:
        return True
    if isinstance(filled, dict) and isinstance(original, dict):
        for name, value in original.items():
            kept = filled.get(name, _ABSENT)
            if kept is not value and (kept is _ABSENT or not _has_only_additions(kept, value)):
                return False
        return True
    if isinstance(filled, list) and isinstance(original, list) and len(filled) == len(original):
        return all(map(_has_only_additions, filled, original))
    return False


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


def _list_values(schema: Any, *keywords: str) -> Iterator[Any]:
    """Yield the values of some keywords anywhere in a schema."""
    if isinstance(schema, dict):
        for name, value in schema.items():
            if name in keywords and not isinstance(value, dict):  # a mapping is the schema of a field with this name
                yield value
            else:
                yield from _list_values(value, *keywords)
    elif isinstance(schema, list):
        for value in schema:
            yield from _list_values(value, *keywords)


def _refuse_fetch(uri: str) -> Any:
    raise ValueError(f"schemas are never fetched: {uri}")
