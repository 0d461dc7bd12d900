"""Scheduler policies: read the ConfigMaps config-scheduler and config-descheduler, and the JSON in their arguments as Go decodes
it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from gitsched.apis.knative.names import DESCHEDULER, SCHEDULER
from gitsched.model.document import Body, get_field
from gitsched.model.finding import Issue
from gitsched.model.similar_names import find_similar
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.vreplicas.plugins import ALIASES, PREDICATES, PRIORITIES, Profile, SchedulerPlugin


class ArgumentError(ValueError):
    """An invalid value in a scheduler policy; the message continues a sentence that begins with the value's name."""


def decode_json(text: object) -> Any:
    """Return the first JSON value of a text and ignore the rest, as Go's decoder does. Raises ArgumentError."""
    if not isinstance(text, str):
        raise ArgumentError("must be a string that contains JSON")
    try:
        value, _ = json.JSONDecoder(parse_constant=_reject_constant).raw_decode(text.lstrip(" \t\r\n"))
    except json.JSONDecodeError as error:
        raise ArgumentError(f"is not valid JSON: {error.msg}") from error
    except RecursionError as error:
        raise ArgumentError("is not valid JSON: nested too deeply") from error
    except ValueError as error:  # Python limits the number of digits
        raise ArgumentError("contains a number with too many digits") from error
    return value


def read_plugin_argument(args: object, name: str, bits: int = 32) -> int:
    """Return the argument of a plug-in from its `Args`, 0 by default.

    Field names are case-insensitive, unknown fields are errors, and the value must be an integer of `bits` bits.
    """
    if not isinstance(args, str):
        raise ArgumentError(f'must be a string such as "{{\\"{name}\\": 2}}"')
    value = decode_json(args)
    if value is None:
        return 0
    if not isinstance(value, dict):
        raise ArgumentError("must contain one JSON object")
    number = 0
    for field, entry in value.items():
        if field.casefold() != name.casefold():
            raise ArgumentError(f"has the unknown field {field!r}; it takes {name}")
        if entry is None:
            continue
        if type(entry) is not int or not -(2 ** (bits - 1)) <= entry < 2 ** (bits - 1):
            raise ArgumentError(f"{name} must be an integer of {bits} bits")
        number = entry
    return number


def _reject_constant(constant: str) -> Any:
    raise json.JSONDecodeError(f"{constant} is not valid JSON", constant, 0)


P = TypeVar("P", bound=SchedulerPlugin)
MAX_PLUGINS = 1000
MAX_WEIGHT = 10


class PluginEntry(NamedTuple):
    """One element of a list of plug-ins."""

    name: str
    args: Any
    weight: int


def validate_policies(body: Body) -> Iterator[Issue]:
    """Yield the issues of a ConfigMap if it is config-scheduler or config-descheduler."""
    if get_field(body, "metadata", "name") in (SCHEDULER, DESCHEDULER):
        yield from read_profile(body)[1]


def read_profile(body: Body, strict: bool = False) -> tuple[Profile, list[Issue]]:
    """Return the profile of a ConfigMap and its issues; a profile with an error must not be used.

    The descheduler's `predicates` are optional. Unknown plug-ins are ignored. Of duplicate priorities the last one counts. `strict`
    reads EvenPodSpread as upstream does.
    """
    issues: list[Issue] = []
    optional = get_field(body, "metadata", "name") == DESCHEDULER
    predicates = _create_plugins("predicates", _read_plugin_list(body, "predicates", optional, issues), PREDICATES, strict, issues)
    priorities = _create_plugins("priorities", _read_plugin_list(body, "priorities", False, issues), PRIORITIES, strict, issues)
    weighted = {plugin.name: (plugin, weight) for plugin, weight in priorities}
    if len(weighted) < len(priorities):
        issues.append(
            Issue(
                "warning",
                "knative-duplicate-plugin",
                "a priority is listed more than once: the last one is used",
                ("data", "priorities"),
            )
        )
    return Profile(tuple(plugin for plugin, _ in predicates), tuple(weighted.values())), issues


def _read_plugin_list(body: Body, key: str, optional: bool, issues: list[Issue]) -> list[PluginEntry]:
    text = get_field(body, "data", key)
    if text is None:
        if not optional:
            issues.append(Issue("error", "knative-policy", f"data.{key} is required; for an empty list, write []"))
        return []
    try:
        return list(_read_entries(text, weighted=key == "priorities"))
    except ArgumentError as error:
        issues.append(Issue("error", "knative-policy", str(error), ("data", key)))
        return []


def _read_entries(text: object, weighted: bool) -> Iterator[PluginEntry]:
    value = decode_json(text)
    if value is None:
        return
    if not isinstance(value, list):
        raise ArgumentError("must contain a JSON list")
    if len(value) > MAX_PLUGINS:
        raise ArgumentError(f"lists more than {MAX_PLUGINS} plug-ins")
    for index, element in enumerate(value):
        if element is not None and not isinstance(element, dict):
            raise ArgumentError(f"[{index}] must be an object with a Name")
        fields = {name.lower(): value for name, value in (element or {}).items()}
        name, weight = fields.get("name"), fields.get("weight")
        if name is not None and not isinstance(name, str):
            raise ArgumentError(f"[{index}].Name must be a string")
        if weighted and weight is not None and (type(weight) is not int or not 0 <= weight <= MAX_WEIGHT):
            raise ArgumentError(f"[{index}].Weight must be an integer from 0 to {MAX_WEIGHT}")
        yield PluginEntry(name or "", fields.get("args"), (weight or 0) if weighted else 1)


def _create_plugins(
    key: str, entries: Iterable[PluginEntry], registry: Mapping[str, type[P]], strict: bool, issues: list[Issue]
) -> list[tuple[P, int]]:
    plugins = []
    for entry in entries:
        name = ALIASES.get(entry.name, entry.name)
        plugin = registry.get(name)
        if plugin is None:
            similar = find_similar(name, registry)
            hint = f"; did you mean {similar}?" if similar else ""
            message = f"unknown plug-in {name[:100]!r} in {key}: it is ignored{hint}"
            issues.append(Issue("warning", "knative-unknown-plugin", message, ("data", key)))
            continue
        try:
            value = read_plugin_argument(entry.args, plugin.argument, plugin.bits) if plugin.argument else 0
        except ArgumentError as error:
            issues.append(Issue("error", "knative-arguments", f"{name}: Args {error}", ("data", key)))
            continue
        plugins.append((plugin(value, strict), entry.weight))
    return plugins
