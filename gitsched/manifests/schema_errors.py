"""Describe schema violations in plain English with jsonschema; imported only for documents that the compiled validator rejects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match, relevance
from referencing import Registry

from gitsched.manifests.parsed_file import MAX_ISSUES
from gitsched.model.document import Body, is_secret_value
from gitsched.model.finding import Issue, Pointer
from gitsched.model.similar_names import find_similar

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator as Compiled

MAX_ERRORS = 1_000
"""Violations of a schema that are looked at in one document, to report the first twenty locations."""
_EXPECTED = "x-gitsched-expected"
"""Keyword of schemas: what messages say that a text must be."""
_REDACTED = "a value that is not shown"
_Error = Any  # a ValidationError, whose attributes are typed as possibly unset, which they never are in errors from iter_errors


def explain_errors(body: Body, schema: Body, compiled: Compiled) -> list[Issue]:
    """Return at most twenty errors in the order of their locations, one per location.

    When jsonschema finds no error (it uses Python's regular expressions, the validator ECMA's) or fails on deep nesting, the
    validator's own messages are used, so a rejected document always has an error.
    """
    try:
        found = list(_iterate_issues(body, schema))
    except RecursionError:
        found = []
    if not found:
        found = [
            Issue("error", "invalid-field", _redact_message(error.message, body, error.instance_path), tuple(error.instance_path))
            for error in islice(compiled.iter_errors(body), MAX_ISSUES)
        ]
    return found[:MAX_ISSUES]


def _iterate_issues(body: Body, schema: Body) -> Iterator[Issue]:
    by_location: dict[Pointer, list[_Error]] = {}
    for error in islice(Draft202012Validator(schema, registry=Registry()).iter_errors(body), MAX_ERRORS):
        by_location.setdefault(tuple(error.absolute_path), []).append(error)
    for pointer in sorted(by_location, key=_path_sort_key):
        errors = by_location[pointer]
        missing = [error for error in errors if error.validator == "required"]
        if len(missing) == len(errors):
            for error in missing:
                yield _make_issue(error, body)
        else:
            yield _make_issue(_find_closest(max(errors, key=relevance)), body)


def _path_sort_key(pointer: Pointer) -> tuple[tuple[int, str], ...]:
    return tuple((step, "") if isinstance(step, int) else (-1, step) for step in pointer)


def _find_closest(error: _Error) -> _Error:
    """Return the alternative of an anyOf or oneOf that came closest; the error itself when no alternative did."""
    if error.validator not in ("anyOf", "oneOf") or not error.context:
        return error
    depths = {len(inner.absolute_path) for inner in error.context}
    if max(depths) == len(error.absolute_path):
        return error  # all alternatives fail at the value itself, so naming one would hide the others
    return best_match(iter(error.context)) or error


def _make_issue(error: _Error, body: Body) -> Issue:
    entry = _MESSAGES.get(str(error.validator))
    pointer = tuple(error.absolute_path)
    name = f"'{pointer[-1]}'" if pointer and isinstance(pointer[-1], str) else f"entry {pointer[-1]}" if pointer else "the document"
    if entry is None:
        return Issue("error", "invalid-field", f"{name}: {_redact_message(_shorten(error.message), body, pointer)}", pointer)
    code, describe = entry
    return Issue("error", code, f"{name} {describe(error, body)}", pointer)


def _describe_type(error: _Error, body: Body) -> str:
    types = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
    hint = _QUOTE_HINTS[type(error.instance)] if "string" in types and type(error.instance) in _QUOTE_HINTS else ""
    if "array" in types and error.instance is not None:
        hint = _LIST_HINT
    meant = [kind for kind in types if kind != "null"] or types  # null is allowed as the absence of a value
    return (
        f"must be {' or '.join(_TYPE_NAMES.get(str(kind), str(kind)) for kind in meant)}, not {_format_instance(error, body)}{hint}"
    )


def _describe_values(error: _Error, body: Body) -> str:
    allowed = [value for value in error.validator_value if value not in (None, "")] or [None]  # both are the absence of a value
    texts = [value for value in allowed if isinstance(value, str)]
    similar = find_similar(error.instance, texts) if isinstance(error.instance, str) else ""
    hint = f"; did you mean {_format_value(similar)}?" if similar else ""
    return f"must be {_join_values(allowed)}, not {_format_instance(error, body)}{hint}"


def _describe_missing(error: _Error, _: Body) -> str:
    missing = [name for name in error.validator_value if isinstance(error.instance, dict) and name not in error.instance]
    # one error for each missing name; only the messages differ
    name = next((name for name in missing if error.message.startswith(f"{name!r} ")), missing[0] if missing else "?")
    return f"lacks '{name}', which is required"


def _describe_minimum(error: _Error, unit: str) -> str:
    return "must not be empty" if error.validator_value == 1 else f"must have at least {error.validator_value} {unit}"


def _describe_alternatives(error: _Error, body: Body) -> str:
    if not error.context:
        return f"matches more than one of its schemas: {_format_instance(error, body)}"
    return f"matches none of its schemas: {'; or '.join(dict.fromkeys(_describe_error(inner, body) for inner in error.context))}"


def _describe_error(error: _Error, body: Body) -> str:
    entry = _MESSAGES.get(str(error.validator))
    return entry[1](error, body) if entry else _redact_message(_shorten(error.message), body, error.absolute_path)


_QUOTE_HINTS = {bool: "; quote it (YAML reads y, n, yes, no, on and off as booleans)", int: "; quote it", float: "; quote it"}
"""Hints for a value of another type that was probably meant as a string."""
_LIST_HINT = '; make it an entry of a list, with "- " before it'

_TYPE_NAMES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "object": "a mapping",
    "array": "a list",
    "null": "null",
}


def _describe_pattern(error: _Error, body: Body) -> str:
    if error.schema.get("contentEncoding") == "base64":
        advice = "plain text belongs into stringData" if body.get("kind") == "Secret" else "encode it, and keep the = at its end"
        return f"must be base64, not {_format_instance(error, body)}; {advice}"
    if _EXPECTED in error.schema:
        is_key = "propertyNames" in error.schema_path  # a key is no secret
        return (
            f"must be {error.schema[_EXPECTED]}, not {_format_value(error.instance) if is_key else _format_instance(error, body)}"
        )
    examples = [str(example) for example in error.schema.get("examples") or () if isinstance(example, str)]
    hint = f"; write it like {' or '.join(examples[:2])}" if examples else ""
    return f"has a wrong format: {_format_instance(error, body)} does not match {error.validator_value}{hint}"


_MESSAGES: dict[str, tuple[str, Callable[[_Error, Body], str]]] = {
    "type": ("wrong-type", _describe_type),
    "enum": ("value-not-allowed", _describe_values),
    "const": ("value-not-allowed", lambda e, body: f"must be {_format_value(e.validator_value)}, not {_format_instance(e, body)}"),
    "required": ("missing-field", _describe_missing),
    "pattern": ("wrong-format", _describe_pattern),
    "minimum": ("out-of-range", lambda e, body: f"must be at least {e.validator_value}, not {_format_instance(e, body)}"),
    "maximum": ("out-of-range", lambda e, body: f"must be at most {e.validator_value}, not {_format_instance(e, body)}"),
    "exclusiveMinimum": ("out-of-range", lambda e, body: f"must be more than {e.validator_value}, not {_format_instance(e, body)}"),
    "exclusiveMaximum": ("out-of-range", lambda e, body: f"must be less than {e.validator_value}, not {_format_instance(e, body)}"),
    "minLength": ("out-of-range", lambda e, _: _describe_minimum(e, "characters")),
    "maxLength": ("out-of-range", lambda e, _: f"must have at most {e.validator_value} characters, not {len(e.instance)}"),
    "minItems": ("out-of-range", lambda e, _: _describe_minimum(e, "entries")),
    "maxItems": ("out-of-range", lambda e, _: f"must have at most {e.validator_value} entries, not {len(e.instance)}"),
    "minProperties": ("out-of-range", lambda e, _: _describe_minimum(e, "members")),
    "maxProperties": ("out-of-range", lambda e, _: f"must have at most {e.validator_value} members, not {len(e.instance)}"),
    "uniqueItems": ("invalid-field", lambda *_: "contains duplicate entries"),
    "anyOf": ("invalid-field", _describe_alternatives),
    "oneOf": ("invalid-field", _describe_alternatives),
}


def _join_values(values: list[Any]) -> str:
    shown = [_format_value(value) for value in values]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _redact_message(message: str, body: Body, pointer: Iterable[str | int]) -> str:
    """Redact a message of the validator, which contains the value, for a secret one."""
    return f"is wrong: {_REDACTED}" if is_secret_value(body, pointer) else message


def _format_instance(error: _Error, body: Body) -> str:
    """Format the invalid value, redacted for a secret one. Only here do findings of schemas get values of documents."""
    is_secret = is_secret_value(body, error.absolute_path) or (
        isinstance(error.schema, dict) and error.schema.get("writeOnly") is True
    )
    return _REDACTED if is_secret and not isinstance(error.instance, dict | list) else _format_value(error.instance)


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return f'"{_shorten(value)}"'
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _shorten(text: str) -> str:
    """Return one line of at most 80 characters."""
    plain = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return plain if len(plain) <= 80 else plain[:77] + "..."
