"""The ConfigMaps config-scheduler and config-descheduler as profiles."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from gitsched.apis.knative.arguments import Mistake, decode, read_argument
from gitsched.apis.knative.names import DESCHEDULER, SCHEDULER
from gitsched.model.document import Body, member
from gitsched.model.issue import Issue
from gitsched.schedule.vreplicas.plugins import ALIASES, PREDICATES, PRIORITIES, Plugin
from gitsched.schedule.vreplicas.profile import Profile

P = TypeVar("P", bound=Plugin)
MOST_PLUGINS = 1000
GREATEST_WEIGHT = 10


class Entry(NamedTuple):
    """One element of a list of plug-ins, as written."""

    name: str
    args: Any
    weight: int


def check_policies(body: Body) -> Iterator[Issue]:
    """What is wrong with a ConfigMap, if it is one of the two."""
    if member(body, "metadata", "name") in (SCHEDULER, DESCHEDULER):
        yield from read_profile(body)[1]


def read_profile(body: Body, strict: bool = False) -> tuple[Profile, list[Issue]]:
    """The profile of a ConfigMap, and what is wrong with it; with an error the profile is of no use.

    `predicates` may be left out for the descheduler. Names that nobody knows are passed over. A priority that is listed twice counts once,
    as it was listed last. `strict` reads EvenPodSpread as upstream does.
    """
    issues: list[Issue] = []
    optional = member(body, "metadata", "name") == DESCHEDULER
    predicates = _instantiate("predicates", _read_table(body, "predicates", optional, issues), PREDICATES, strict, issues)
    priorities = _instantiate("priorities", _read_table(body, "priorities", False, issues), PRIORITIES, strict, issues)
    once = {plugin.name: (plugin, weight) for plugin, weight in priorities}
    if len(once) < len(priorities):
        issues.append(
            Issue("warning", "knative-duplicate-plugin", "a priority is listed twice: the last one counts", ("data", "priorities"))
        )
    return Profile(tuple(plugin for plugin, _ in predicates), tuple(once.values())), issues


def _read_table(body: Body, key: str, optional: bool, issues: list[Issue]) -> list[Entry]:
    text = member(body, "data", key)
    if text is None:
        if not optional:
            issues.append(Issue("error", "knative-policy", f"data.{key} is missing; for none, write []"))
        return []
    try:
        return list(_read_entries(text, weighed=key == "priorities"))
    except Mistake as mistake:
        issues.append(Issue("error", "knative-policy", str(mistake), ("data", key)))
        return []


def _read_entries(text: object, weighed: bool) -> Iterator[Entry]:
    value = decode(text)
    if value is None:
        return
    if not isinstance(value, list):
        raise Mistake("must hold a JSON list")
    if len(value) > MOST_PLUGINS:
        raise Mistake(f"lists more than {MOST_PLUGINS} plug-ins")
    for index, element in enumerate(value):
        if element is not None and not isinstance(element, dict):
            raise Mistake(f"[{index}] must be an object with a Name")
        fields = {name.lower(): value for name, value in (element or {}).items()}
        name, weight = fields.get("name"), fields.get("weight")
        if name is not None and not isinstance(name, str):
            raise Mistake(f"[{index}].Name must be a string")
        if weighed and weight is not None and (type(weight) is not int or not 0 <= weight <= GREATEST_WEIGHT):
            raise Mistake(f"[{index}].Weight must be a whole number from 0 to {GREATEST_WEIGHT}")
        yield Entry(name or "", fields.get("args"), (weight or 0) if weighed else 1)


def _instantiate(
    key: str, entries: Iterable[Entry], registry: Mapping[str, type[P]], strict: bool, issues: list[Issue]
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
            value = read_argument(entry.args, plugin.argument, plugin.bits) if plugin.argument else 0
        except Mistake as mistake:
            issues.append(Issue("error", "knative-arguments", f"{name}: Args {mistake}", ("data", key)))
            continue
        made.append((plugin(value, strict), entry.weight))
    return made
