"""What a schema does not like about a document, in plain words. Only for documents that the compiled validator refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match, relevance
from referencing import Registry

from gitsched.manifests.limits import MOST_PROBLEMS
from gitsched.model.document import SECRET, Body
from gitsched.model.issue import Issue

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator as Compiled

_WITHHELD = "a value that is not shown"
_Error = Any  # a ValidationError: its attributes are typed as maybe unset, which they never are in an error that iter_errors gave


def explain(body: Body, schema: Body, compiled: Compiled) -> list[Issue]:
    """Errors in the order of their places, one a place and at most twenty.

    Where jsonschema sees no error (its regular expressions are Python's, the validator's are ECMA's) or gives up on the nesting,
    the validator's own words are used: a refused document is never without a reason.
    """
    try:
        found = list(_explain_errors(body, schema))
    except RecursionError:
        found = []
    if not found:
        found = [
            Issue("error", "invalid-field", _repeat(error.message, error.instance_path), tuple(error.instance_path))
            for error in islice(compiled.iter_errors(body), MOST_PROBLEMS)
        ]
    return found[:MOST_PROBLEMS]


def _explain_errors(body: Body, schema: Body) -> Iterator[Issue]:
    by_place: dict[tuple[str | int, ...], list[_Error]] = {}
    for error in Draft202012Validator(schema, registry=Registry()).iter_errors(body):
        by_place.setdefault(tuple(error.absolute_path), []).append(error)
    for place in sorted(by_place, key=_order):
        errors = by_place[place]
        missing = [error for error in errors if error.validator == "required"]
        if len(missing) == len(errors):
            for error in missing:
                yield _say(error)
        else:
            yield _say(_deepest(max(errors, key=relevance)))


def _order(place: tuple[str | int, ...]) -> tuple[tuple[int, str], ...]:
    return tuple((step, "") if isinstance(step, int) else (-1, step) for step in place)


def _deepest(error: _Error) -> _Error:
    """The alternative of an anyOf or oneOf that came closest; the error itself where none came closer than another."""
    if error.validator not in ("anyOf", "oneOf") or not error.context:
        return error
    depths = {len(inner.absolute_path) for inner in error.context}
    if max(depths) == len(error.absolute_path):
        return error  # all alternatives fail at the value itself: naming one would hide the others
    return best_match(iter(error.context)) or error


def _say(error: _Error) -> Issue:
    words = _WORDS.get(str(error.validator))
    place = tuple(error.absolute_path)
    name = f"'{place[-1]}'" if place and isinstance(place[-1], str) else f"entry {place[-1]}" if place else "the document"
    if words is None:
        return Issue("error", "invalid-field", f"{name}: {_repeat(_cut(error.message), place)}", place)
    code, say = words
    return Issue("error", code, f"{name} {say(error)}", place)


def _say_type(error: _Error) -> str:
    wanted = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
    hint = _QUOTE[type(error.instance)] if "string" in wanted and type(error.instance) in _QUOTE else ""
    return f"must be {' or '.join(_TYPES.get(str(kind), str(kind)) for kind in wanted)}, not {_given(error)}{hint}"


def _say_values(error: _Error) -> str:
    from difflib import get_close_matches

    allowed = error.validator_value
    texts = [value for value in allowed if isinstance(value, str)]
    near = get_close_matches(error.instance[:100], texts, n=1) if isinstance(error.instance, str) else []
    hint = f"; did you mean {_show(near[0])}?" if near else ""
    return f"must be {_enumerate(allowed)}, not {_given(error)}{hint}"


def _say_missing(error: _Error) -> str:
    missing = [name for name in error.validator_value if isinstance(error.instance, dict) and name not in error.instance]
    # one error a missing name, told apart by its message only
    name = next((name for name in missing if error.message.startswith(f"{name!r} ")), missing[0] if missing else "?")
    return f"lacks '{name}', which is required"


def _say_least(error: _Error, unit: str) -> str:
    return "must not be empty" if error.validator_value == 1 else f"must have at least {error.validator_value} {unit}"


def _say_alternatives(error: _Error) -> str:
    if not error.context:
        return f"fits more than one of its forms: {_given(error)}"
    return f"fits none of its forms: {'; or '.join(dict.fromkeys(_say_bare(inner) for inner in error.context))}"


def _say_bare(error: _Error) -> str:
    words = _WORDS.get(str(error.validator))
    return words[1](error) if words else _repeat(_cut(error.message), error.absolute_path)


_QUOTE = {bool: "; quote it (YAML reads y, n, yes, no, on and off as booleans)", int: "; quote it", float: "; quote it"}
"""What a value that was meant as a text needs."""

_TYPES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "object": "a mapping",
    "array": "a list",
    "null": "null",
}

_WORDS: dict[str, tuple[str, Callable[[_Error], str]]] = {
    "type": ("wrong-type", _say_type),
    "enum": ("value-not-allowed", _say_values),
    "const": ("value-not-allowed", lambda e: f"must be {_show(e.validator_value)}, not {_given(e)}"),
    "required": ("missing-field", _say_missing),
    "pattern": ("wrong-format", lambda e: f"has not the expected form: {_given(e)} does not match {e.validator_value}"),
    "minimum": ("out-of-range", lambda e: f"must be at least {e.validator_value}, not {_given(e)}"),
    "maximum": ("out-of-range", lambda e: f"must be at most {e.validator_value}, not {_given(e)}"),
    "exclusiveMinimum": ("out-of-range", lambda e: f"must be more than {e.validator_value}, not {_given(e)}"),
    "exclusiveMaximum": ("out-of-range", lambda e: f"must be less than {e.validator_value}, not {_given(e)}"),
    "minLength": ("out-of-range", lambda e: _say_least(e, "characters")),
    "maxLength": ("out-of-range", lambda e: f"must have at most {e.validator_value} characters, not {len(e.instance)}"),
    "minItems": ("out-of-range", lambda e: _say_least(e, "entries")),
    "maxItems": ("out-of-range", lambda e: f"must have at most {e.validator_value} entries, not {len(e.instance)}"),
    "minProperties": ("out-of-range", lambda e: _say_least(e, "members")),
    "maxProperties": ("out-of-range", lambda e: f"must have at most {e.validator_value} members, not {len(e.instance)}"),
    "uniqueItems": ("invalid-field", lambda _: "lists the same entry twice"),
    "anyOf": ("invalid-field", _say_alternatives),
    "oneOf": ("invalid-field", _say_alternatives),
}


def _enumerate(values: list[Any]) -> str:
    shown = [_show(value) for value in values]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _repeat(message: str, place: Iterable[str | int]) -> str:
    """A validator's own words, which hold the value."""
    return f"is wrong: {_WITHHELD}" if SECRET.intersection(map(str, place)) else message


def _given(error: _Error) -> str:
    """The value that is wrong, unless nobody should read it."""
    return _WITHHELD if SECRET.intersection(map(str, error.absolute_path)) else _show(error.instance)


def _show(value: Any) -> str:
    if isinstance(value, str):
        return f'"{_cut(value)}"'
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _cut(text: str) -> str:
    """One line of at most 80 characters."""
    plain = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return plain if len(plain) <= 80 else plain[:77] + "..."
