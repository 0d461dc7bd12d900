"""Validate documents against JSON Schemas (draft 2020-12) with a compiled validator, and prune unknown fields as an API server
does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from gitsched.manifests.parsed_file import MAX_ISSUES
from gitsched.model.document import KRAKE_GROUPS, Body
from gitsched.model.finding import Issue, Pointer, ValidationResult

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator


_OPEN_KEYWORDS = ("additionalProperties", "patternProperties", "x-kubernetes-preserve-unknown-fields", "unevaluatedProperties")
_NEVER_PRUNED = frozenset({"apiVersion", "api", "kind", "metadata", "status"})
_STRICT_DEFINITION = "gitsched-clean"


class _Fields(NamedTuple):
    """What a schema says of an object's members or a list's entries; `rest` is for members that it does not name."""

    known: dict[str, Any]
    is_open: bool
    rest: Body | None
    items: Body | None


class SchemaPruner:
    """Drops what one schema does not know.

    Known are the `properties` of a schema, of its local `$ref` and of its `allOf`. A schema that lists no properties, or says
    anything about additional ones, leaves the object alone. The document's type, metadata and status are never touched.
    """

    __slots__ = ("_fields", "_root")

    def __init__(self, schema: Body) -> None:
        self._root = schema
        self._fields: dict[int, _Fields] = {}  # by identity: the parts of a schema live as long as the schema

    def make_strict_schema(self) -> Body:
        """The schema of the documents that it allows as it is and that have nothing to drop.

        It says the same as pruning, for a validator that says it faster: nearly all documents are of that kind.
        """
        known, is_open, _, _ = self._get_fields(self._root)
        definitions: dict[str, Any] = {}
        inner = {name: name in _NEVER_PRUNED or self._make_definition(part, definitions) for name, part in known.items()}
        top = {"properties": {**dict.fromkeys(_NEVER_PRUNED, True), **inner}, "additionalProperties": is_open} if known else True
        return {
            **self._root,
            "$defs": {**self._root.get("$defs", {}), **definitions, _STRICT_DEFINITION: top},
            "allOf": [*self._root.get("allOf", ()), {"$ref": f"#/$defs/{_STRICT_DEFINITION}"}],
        }

    def prune(self, body: Body) -> tuple[Body, list[Issue]]:
        """The body without unknown fields, and a warning for each of the first twenty; the same object when it has none."""
        issues: list[Issue] = []
        known, is_open, _, _ = self._get_fields(self._root)
        if not known:
            return body, issues
        members: Body = {}
        same = True
        for name, old in body.items():
            new = old
            if name not in _NEVER_PRUNED:
                if name in known:
                    new = self._prune_value(old, known[name], (name,), issues)
                elif not is_open:
                    _report_unknown_field(issues, name, known, ())
                    same = False
                    continue
            same = same and new is old
            members[name] = new
        return (body if same else members), issues

    def _make_definition(self, schema: Any, definitions: dict[str, Any]) -> Body | bool:
        """What a value is like that has nothing to drop. Every place of a schema has one definition, as a schema may hold itself."""
        known, is_open, rest, items = self._get_fields(schema)
        if not known and rest is None and items is None:
            return True
        name = f"{_STRICT_DEFINITION}-{id(schema)}"  # by identity, as the shapes are
        if name not in definitions:
            entry: Body = {}
            definitions[name] = entry
            if items is not None:
                entry["items"] = self._make_definition(items, definitions)
            if known or rest is not None:
                entry["properties"] = {member: self._make_definition(part, definitions) for member, part in known.items()}
                entry["additionalProperties"] = is_open if rest is None else self._make_definition(rest, definitions)
        return {"$ref": f"#/$defs/{name}"}

    def _prune_value(self, value: Any, schema: Any, at: Pointer, issues: list[Issue]) -> Any:
        kind = value.__class__
        if kind is not dict and kind is not list:
            return value
        known, is_open, rest, items = self._get_fields(schema)
        if kind is list:
            if items is None:
                return value
            entries = [self._prune_value(entry, items, (*at, place), issues) for place, entry in enumerate(value)]
            return value if all(new is old for new, old in zip(entries, value, strict=True)) else entries
        if not known and rest is None:
            return value
        members: Body = {}
        same = True
        for name, old in value.items():
            if name in known:
                new = self._prune_value(old, known[name], (*at, name), issues)
            elif rest is not None:
                new = self._prune_value(old, rest, (*at, name), issues)
            elif is_open:
                new = old
            else:
                _report_unknown_field(issues, name, known, at)
                same = False
                continue
            same = same and new is old
            members[name] = new
        return value if same else members

    def _get_fields(self, schema: Any) -> _Fields:
        shape = self._fields.get(id(schema))
        if shape is None:
            known: dict[str, Any] = {}
            parts = self._list_parts(schema)
            for part in parts:
                known.update(part.get("properties", {}))
            rest, items = (
                next((part[word] for part in parts if isinstance(part.get(word), dict)), None)
                for word in ("additionalProperties", "items")
            )
            shape = self._fields[id(schema)] = _Fields(
                known, any(word in part for part in parts for word in _OPEN_KEYWORDS), rest, items
            )
        return shape

    def _list_parts(self, schema: Any, depth: int = 0) -> list[Body]:
        """The schema with what it includes: its `$ref` and `allOf`, followed sixteen deep at most."""
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


def _report_unknown_field(issues: list[Issue], name: str, known: dict[str, Any], at: Pointer) -> None:
    if len(issues) >= MAX_ISSUES:
        return
    from difflib import get_close_matches  # rarely needed

    lower = {candidate.lower(): candidate for candidate in known}
    near = get_close_matches(name[:100].lower(), lower, n=1)
    hint = f"; did you mean '{lower[near[0]]}'?" if near else ""
    shown = name if len(name) <= 60 else name[:57] + "..."
    issues.append(Issue("warning", "unknown-field", f"the field {shown!r} is unknown and ignored{hint}", (*at, name)))


SchemaKey = tuple[str, str, str]
"""Group ("" for the core), version, kind."""

_UNCHECKED_KINDS = frozenset(("Role", "RoleBinding", "ManifestWork"))
"""Kinds that have nothing to do with placement, in groups that are read, and whose names are close to others."""


class _KindValidator:
    """The validators of one kind, of its very schema and of documents that have nothing unknown either."""

    def __init__(self, schema: Body) -> None:
        self.schema = schema
        self.pruner = SchemaPruner(schema)
        self.strict = _compile_schema(self.pruner.make_strict_schema())

    @cached_property
    def lenient(self) -> Draft202012Validator:
        return _compile_schema(self.schema)


class SchemaValidator:
    """Schemas by kind; each is compiled when the first document of its kind arrives.

    A schema refers to nothing outside itself: any `$ref` but `#` and `#/...` is a ValueError, and nothing is ever fetched.
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

    def validate(self, body: Body, written: Body | None = None) -> ValidationResult:
        """The document without unknown fields, and what its schema says about it; nothing for a kind without a schema.

        `written` is the document as it stands in its file, where `body` is what defaults made of it. Empty members may have vanished on
        the way; those that could not have been what they stand for are told, too.
        """
        key = get_schema_key(body)
        entry = self._compiled.get(key) or self._compile_kind(key)
        if entry is None:
            return ValidationResult(
                body, self._check_krake_kind(key) if body.get("api") and not body.get("apiVersion") else self._check_kind(key)
            )
        pruned, issues, is_valid = body, list[Issue](), entry.strict.is_valid(body)
        if not is_valid:
            pruned, issues = entry.pruner.prune(body)
            is_valid = entry.lenient.is_valid(pruned)
        if not is_valid:
            from gitsched.manifests.schema_errors import explain_errors  # costs 100 ms, and most runs have nothing to explain

            issues = [*issues, *explain_errors(pruned, entry.schema, entry.lenient)]
        elif written is not None and not entry.lenient.is_valid(written):
            from gitsched.manifests.schema_errors import explain_errors

            told = explain_errors(written, entry.schema, entry.lenient)
            issues = [*issues, *(issue for issue in told if issue.code == "wrong-type" and _is_empty(written, issue.pointer))]
        return ValidationResult(pruned, tuple(issues))

    def _check_kind(self, key: SchemaKey) -> tuple[Issue, ...]:
        """What to say about a kind without a schema: where it is nearly one that has a schema, it is a slip of the pen."""
        group, version, kind = key
        versions = self._versions.get((group, kind))
        if versions is not None:
            message = f"{kind} is read as {' or '.join(versions)}, not as {group}/{version}"
            return (Issue("error", "unknown-version", message, ("apiVersion",)),)
        if kind in self._groups:
            meant = _find_similar_group(group, version, self._groups[kind])
            return _report_unknown_group(group, version, kind, self._versions[meant, kind]) if meant else ()
        kinds = self._kinds.get(group)
        if kinds is None or kind in _UNCHECKED_KINDS:
            return ()
        from difflib import get_close_matches  # rarely needed

        # All of Krake's kinds are known. Other groups have kinds that have nothing to do with placement.
        near = get_close_matches(kind[:100], kinds, n=1, cutoff=0.6 if version == "krake" else 0.8)
        if not near and version != "krake":
            return ()
        hint = f"; did you mean {near[0]}?" if near else ""
        return (Issue("warning", "unknown-kind", f"there is no kind {kind[:60]!r} in {group}: it is not read{hint}", ("kind",)),)

    def _check_krake_kind(self, key: SchemaKey) -> tuple[Issue, ...]:
        """The same about a document with `api`, as only Krake's have it."""
        _, version, kind = key
        if version == "krake":
            return self._check_kind(key)
        known = [group for group in self._groups.get(kind, ()) if group in KRAKE_GROUPS]
        if not known:
            return ()
        message = f"{kind} of the api {version[:60]!r} is not read; did you mean {known[0]}?"
        return (Issue("warning", "unknown-kind", message, ("api",)),)

    def _compile_kind(self, key: SchemaKey) -> _KindValidator | None:
        schema = self._mapping.get(key)
        if schema is None:
            return None
        for reference in _list_references(schema):
            if not (isinstance(reference, str) and (reference == "#" or reference.startswith("#/"))):
                raise ValueError(f"the schema of {key[2]} refers to {reference!r}, which is outside of it")
        entry = self._compiled[key] = _KindValidator(schema)
        return entry


def _compile_schema(schema: Body) -> Draft202012Validator:
    from jsonschema_rs import Draft202012Validator  # not every command validates

    return Draft202012Validator(schema, retriever=_refuse_fetch)


def _find_similar_group(group: str, version: str, known: list[str]) -> str | None:
    """The group of a kind that one is spelt nearly like, or that stands where the version should; None where there is none."""
    if not group and version in known:
        return version
    from difflib import get_close_matches  # rarely needed

    return next(iter(get_close_matches(group[:100], known, n=1, cutoff=0.9)), None)


def _report_unknown_group(group: str, version: str, kind: str, known: list[str]) -> tuple[Issue, ...]:
    written = f"{group}/{version}" if group else version
    message = f"{kind} of {written[:100]!r} is not read; did you mean {' or '.join(known)}?"
    return (Issue("warning", "unknown-kind", message, ("apiVersion",)),)


def _is_empty(body: Any, pointer: Iterable[str | int]) -> bool:
    """Whether there is an empty text or list at a place of the document."""
    for part in pointer:
        body = body[part]
    return body in ("", [])


def get_schema_key(body: Body) -> SchemaKey:
    """Group, version and kind of a document; "" where it does not say. Krake's `api` has no version: `krake` stands for it."""
    text = str(body.get("apiVersion") or body.get("api") or "")
    group, _, version = text.rpartition("/")
    if version in KRAKE_GROUPS and not group:
        group, version = version, "krake"
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
