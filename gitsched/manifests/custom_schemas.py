"""The schema that a CustomResourceDefinition has for its kind, as JSON Schema. The definitions of a source are not trusted: their size is
limited, they refer to nothing, and their patterns are matched in time that grows with the text.

Source: apiextensions-apiserver/pkg/apis/apiextensions/v1 of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gitsched.manifests.object_schema import ObjectSchema
from gitsched.model.document import Body, as_object, get_field, list_objects
from gitsched.model.finding import Issue, Severity
from gitsched.named_tuples import NamedTuple

MAX_DEPTH, MAX_NODES, MAX_ALTERNATIVES = 100, 20_000, 1_000
"""Limits on one schema: nested schemas, all schemas, and those below `anyOf`, `oneOf`, `allOf` and `not`."""
_DESCRIBED = "is unknown to the CustomResourceDefinition, so that an API server refuses or drops it"
_OPEN = "x-kubernetes-preserve-unknown-fields"
_LIMITS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_SEVERITIES: Mapping[str, Severity] = dict.fromkeys(
    ("wrong-type", "out-of-range", "value-not-allowed", "missing-field", "wrong-format", "invalid-field"), "warning"
)


class SchemaTooLarge(ValueError):
    """The schema of a definition exceeds a limit."""


def list_schemas_by_version(definition: Body) -> dict[str, Body | None]:
    """Return the openAPIV3Schema of each version of a CustomResourceDefinition; None for a version without one."""
    versions = list_objects(get_field(definition, "spec", "versions"))
    schemas = ((str(version.get("name")), get_field(version, "schema", "openAPIV3Schema")) for version in versions)
    return {name: schema if isinstance(schema, dict) else None for name, schema in schemas}


class CustomSchema(NamedTuple):
    """The schema of the objects of a version; None if they are not checked. `unchecked` says what is not checked and why, "" if all is."""

    checked: ObjectSchema | None
    unchecked: str = ""


def make_custom_schema(schema: Body) -> CustomSchema:
    """Return the schema of the objects of a version; none for one that is too large or that no validator accepts.

    All issues are warnings: the definition in a cluster may be another one. Metadata are those of any object, and checked elsewhere.
    """
    try:
        converted = _Converter().convert(schema)
    except SchemaTooLarge as error:
        return CustomSchema(None, f"its schema is not used: it {error}")
    properties = converted.get("properties")
    if not isinstance(properties, dict):
        return CustomSchema(None)
    converted["properties"] = {**properties, "apiVersion": {}, "kind": {}, "metadata": {}, "status": {}}
    plain = _remove_patterns(converted)
    for candidate, unchecked in ((converted, ""), (plain, "the patterns of its schema are not used: one is invalid or too large")):
        made = ObjectSchema(candidate, _DESCRIBED, _SEVERITIES, explained=plain)
        if made.is_usable:
            return CustomSchema(made, unchecked)
    return CustomSchema(None, "its schema is not used: it is no valid JSON Schema")


class CustomKind:
    """The kind that a CustomResourceDefinition defines; its schemas are compiled for the first object of a version. `where` is the location
    of the definition."""

    def __init__(self, definition: Body, where: str) -> None:
        self._versions, self._where = list_schemas_by_version(definition), where
        self._compiled: dict[str, CustomSchema] = {}

    def find_issues(self, version: str, body: Body) -> list[Issue]:
        """Return the issues of an object of this version."""
        if version not in self._versions:
            known = ", ".join(list(self._versions)[:10]) or "no version"
            message = f"the CustomResourceDefinition of {body['kind']} has {known}, not {version[:60]!r} ({self._where})"
            return [Issue("warning", "unknown-version", message, ("apiVersion",))]
        if version not in self._compiled:
            schema = self._versions[version]
            self._compiled[version] = CustomSchema(None) if schema is None else make_custom_schema(schema)
        compiled = self._compiled[version].checked
        issues = compiled.find_issues(body) if compiled is not None else []
        return [issue._replace(message=f"{issue.message} ({self._where})") for issue in issues]

    def list_unchecked(self) -> Iterator[Issue]:
        """Yield a note about each version whose objects are not checked against its schema, or not completely."""
        for version, (_, unchecked) in self._compiled.items():
            if unchecked:
                message = f"objects of version {version} are not checked completely: {unchecked}"
                yield Issue("info", "schema-unchecked", message, ("spec", "versions"))


class _Converter:
    """The conversion of one schema."""

    def __init__(self) -> None:
        self._nodes = self._alternatives = self._defaults = 0

    def convert(self, schema: Any, depth: int = 0, *, is_alternative: bool = False) -> Body:
        """Return a schema as JSON Schema. An API server removes null where it is not allowed, so that it is allowed everywhere."""
        if not isinstance(schema, dict):
            return {}
        self._nodes += 1
        self._alternatives += is_alternative
        self._defaults += "default" in schema
        defaults = self._defaults
        for count, limit, what in (
            (depth, MAX_DEPTH, "is nested more than {} deep"),
            (self._nodes, MAX_NODES, "has more than {} schemas"),
            (self._alternatives, MAX_ALTERNATIVES, "has more than {} schemas in anyOf, oneOf, allOf and not"),
        ):
            if count > limit:
                raise SchemaTooLarge(what.format(f"{limit:,}"))
        result: Body = {key: schema[key] for key in _LIMITS if isinstance(schema.get(key), int)}
        if schema.get("x-kubernetes-int-or-string") is True:
            result["type"] = ["integer", "string", "null"]
        elif isinstance(schema.get("type"), str):
            result["type"] = [schema["type"], "null"]
        if isinstance(schema.get("enum"), list):
            result["enum"] = [*schema["enum"], *(() if None in schema["enum"] else (None,))]
        if isinstance(schema.get("pattern"), str):
            result["pattern"] = schema["pattern"]
        result |= _convert_range(schema)
        self._add_members(schema, result, depth, is_alternative)
        if self._defaults == defaults:  # alternatives are about objects with their defaults
            self._add_alternatives(schema, result, depth)
        return result

    def _add_alternatives(self, schema: Body, result: Body, depth: int) -> None:
        for word in ("allOf", "anyOf", "oneOf"):
            if isinstance(schema.get(word), list) and schema[word]:
                result[word] = [self.convert(part, depth + 1, is_alternative=True) for part in schema[word]]
        if isinstance(schema.get("not"), dict):
            result["not"] = self.convert(schema["not"], depth + 1, is_alternative=True)

    def _add_members(self, schema: Body, result: Body, depth: int, is_alternative: bool) -> None:
        """Add the members of an object and the items of a list."""
        properties = as_object(schema.get("properties"))
        additional = schema.get("additionalProperties")
        if properties:
            result["properties"] = {
                name: self.convert(part, depth + 1, is_alternative=is_alternative) for name, part in properties.items()
            }
        if isinstance(additional, dict):
            result["additionalProperties"] = self.convert(additional, depth + 1, is_alternative=is_alternative)
        elif properties and not (is_alternative or additional is True or schema.get(_OPEN) is True):
            embedded = schema.get("x-kubernetes-embedded-resource") is True
            result["additionalProperties"] = embedded  # apiVersion, kind and metadata need not be listed
        if isinstance(schema.get("items"), dict):
            result["items"] = self.convert(schema["items"], depth + 1, is_alternative=is_alternative)
        required = schema.get("required")
        if isinstance(required, list):
            filled = {name for name, part in properties.items() if isinstance(part, dict) and "default" in part}
            names = [name for name in required if isinstance(name, str) and name not in filled]
            result |= {"required": names} if names else {}


def _convert_range(schema: Body) -> Body:
    """Return the limits of a number: in OpenAPI 3.0, a flag says whether a limit is exclusive."""
    result: Body = {}
    for word, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        value = schema.get(word)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            result[exclusive if schema.get(exclusive) is True else word] = value
    multiple = schema.get("multipleOf")
    if isinstance(multiple, (int, float)) and not isinstance(multiple, bool) and multiple > 0:
        result["multipleOf"] = multiple
    return result


def _remove_patterns(schema: Any, is_schema: bool = True) -> Any:
    """Return a schema without patterns; the keys of `properties` are names."""
    if isinstance(schema, list):
        return [_remove_patterns(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: part if is_schema and name in ("enum", "required") else _remove_patterns(part, not is_schema or name != "properties")
        for name, part in schema.items()
        if not (is_schema and name == "pattern")
    }
