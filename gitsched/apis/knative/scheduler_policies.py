"""Scheduler policies: read the ConfigMaps config-scheduler and config-descheduler, and the JSON in their arguments as Go decodes
it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from gitsched.apis.knative.names import DESCHEDULER, SCHEDULER
from gitsched.model.document import Body, get_field
from gitsched.model.finding import Issue
from gitsched.schedule.vreplicas.plugins import ALIASES, PREDICATES, PRIORITIES, Profile, SchedulerPlugin


class ArgumentError(ValueError):
    """What is wrong, in words for the person who wrote it."""


def decode_json(text: object) -> Any:
    """The first JSON value of a text; what follows it is ignored. Mistake when there is none."""
    if not isinstance(text, str):
        raise ArgumentError("must be a string that holds JSON")
    try:
        value, _ = json.JSONDecoder(parse_constant=_reject_constant).raw_decode(text.lstrip(" \t\r\n"))
    except json.JSONDecodeError as error:
        raise ArgumentError(f"is no JSON: {error.msg}") from error
    except RecursionError as error:
        raise ArgumentError("is no JSON: too deep") from error
    except ValueError as error:  # Python reads no number of thousands of digits
        raise ArgumentError("holds a number that is too long") from error
    return value


def read_plugin_argument(args: object, name: str, bits: int = 32) -> int:
    """The one argument of a plug-in from its `Args`; 0 where the object says nothing.

    A field that is not known is a mistake, its case does not matter, and the value is a whole number of so many bits.
    """
    if not isinstance(args, str):
        raise ArgumentError(f'must be a string such as "{{\\"{name}\\": 2}}"')
    value = decode_json(args)
    if value is None:
        return 0
    if not isinstance(value, dict):
        raise ArgumentError("must hold one JSON object")
    number = 0
    for field, entry in value.items():
        if field.casefold() != name.casefold():
            raise ArgumentError(f"has the unknown field {field!r}; it takes {name}")
        if entry is None:
            continue
        if type(entry) is not int or not -(2 ** (bits - 1)) <= entry < 2 ** (bits - 1):
            raise ArgumentError(f"{name} must be a whole number of {bits} bits")
        number = entry
    return number


def _reject_constant(constant: str) -> Any:
    raise json.JSONDecodeError(f"{constant} is no JSON", constant, 0)


P = TypeVar("P", bound=SchedulerPlugin)
MAX_PLUGINS = 1000
MAX_WEIGHT = 10


class PluginEntry(NamedTuple):
    """One element of a list of plug-ins, as written."""

    name: str
    args: Any
    weight: int


def validate_policies(body: Body) -> Iterator[Issue]:
    """What is wrong with a ConfigMap, if it is one of the two."""
    if get_field(body, "metadata", "name") in (SCHEDULER, DESCHEDULER):
        yield from read_profile(body)[1]


def read_profile(body: Body, strict: bool = False) -> tuple[Profile, list[Issue]]:
    """The profile of a ConfigMap, and what is wrong with it; with an error the profile is of no use.

    `predicates` may be left out for the descheduler. Names that nobody knows are passed over. A priority that is listed twice counts once,
    as it was listed last. `strict` reads EvenPodSpread as upstream does.
    """
    issues: list[Issue] = []
    optional = get_field(body, "metadata", "name") == DESCHEDULER
    predicates = _create_plugins("predicates", _read_plugin_list(body, "predicates", optional, issues), PREDICATES, strict, issues)
    priorities = _create_plugins("priorities", _read_plugin_list(body, "priorities", False, issues), PRIORITIES, strict, issues)
    once = {plugin.name: (plugin, weight) for plugin, weight in priorities}
    if len(once) < len(priorities):
        issues.append(
            Issue("warning", "knative-duplicate-plugin", "a priority is listed twice: the last one counts", ("data", "priorities"))
        )
    return Profile(tuple(plugin for plugin, _ in predicates), tuple(once.values())), issues


def _read_plugin_list(body: Body, key: str, optional: bool, issues: list[Issue]) -> list[PluginEntry]:
    text = get_field(body, "data", key)
    if text is None:
        if not optional:
            issues.append(Issue("error", "knative-policy", f"data.{key} is missing; for none, write []"))
        return []
    try:
        return list(_read_entries(text, weighed=key == "priorities"))
    except ArgumentError as mistake:
        issues.append(Issue("error", "knative-policy", str(mistake), ("data", key)))
        return []


def _read_entries(text: object, weighed: bool) -> Iterator[PluginEntry]:
    value = decode_json(text)
    if value is None:
        return
    if not isinstance(value, list):
        raise ArgumentError("must hold a JSON list")
    if len(value) > MAX_PLUGINS:
        raise ArgumentError(f"lists more than {MAX_PLUGINS} plug-ins")
    for index, element in enumerate(value):
        if element is not None and not isinstance(element, dict):
            raise ArgumentError(f"[{index}] must be an object with a Name")
        fields = {name.lower(): value for name, value in (element or {}).items()}
        name, weight = fields.get("name"), fields.get("weight")
        if name is not None and not isinstance(name, str):
            raise ArgumentError(f"[{index}].Name must be a string")
        if weighed and weight is not None and (type(weight) is not int or not 0 <= weight <= MAX_WEIGHT):
            raise ArgumentError(f"[{index}].Weight must be a whole number from 0 to {MAX_WEIGHT}")
        yield PluginEntry(name or "", fields.get("args"), (weight or 0) if weighed else 1)


def _create_plugins(
    key: str, entries: Iterable[PluginEntry], registry: Mapping[str, type[P]], strict: bool, issues: list[Issue]
) -> list[tuple[P, int]]:
    made = []
    for entry in entries:
        name = ALIASES.get(entry.name, entry.name)
        plugin = registry.get(name)
        if plugin is None:
            near = difflib.get_close_matches(name[:100], registry, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            message = f"there is no plug-in {name[:100]!r} among the {key}: it is passed over{hint}"
            issues.append(Issue("warning", "knative-unknown-plugin", message, ("data", key)))
            continue
        try:
            value = read_plugin_argument(entry.args, plugin.argument, plugin.bits) if plugin.argument else 0
        except ArgumentError as mistake:
            issues.append(Issue("error", "knative-arguments", f"{name}: Args {mistake}", ("data", key)))
            continue
        made.append((plugin(value, strict), entry.weight))
    return made
