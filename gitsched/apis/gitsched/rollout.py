"""The Rollout: which workloads reach their clusters in waves, in which groups of clusters, and by which strategy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from gitsched.model.document import (
    Body,
    Document,
    Key,
    as_object,
    get_field,
    list_objects,
    parse_api_group,
    read_annotations,
    read_labels,
)
from gitsched.model.finding import Issue
from gitsched.model.labels import Selector, parse_selector
from gitsched.model.rollouts import ACCEPT_ANNOTATION
from gitsched.model.time import parse_duration, parse_time
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.rollout import RolloutGroup, RolloutStrategy, parse_int_or_percent, parse_rollout_strategy

ANY_GROUP: Final = "*"
"""The group of a selector whose group cannot be read."""
_SECTIONS: Final = {"All": "all", "Progressive": "progressive", "ProgressivePerGroup": "progressivePerGroup"}
_ACCEPTED = re.compile(r"([^@,\s]+)@([^@,\s]+)")


class ObjectSelector(NamedTuple):
    """Objects of one kind; an empty namespace or name and no labels match all."""

    group: str
    kind: str
    namespace: str
    name: str
    labels: Selector | None

    def __str__(self) -> str:
        """The objects as messages name them."""
        name = self.name or "*"
        labels = " with some labels" if self.labels is not None else ""
        return f"{self.kind} {f'{self.namespace}/{name}' if self.namespace else name}{labels}"

    def selects(self, key: Key, labels: Mapping[str, str]) -> bool:
        """Return whether the selector matches an object."""
        return (
            self.kind == key.kind
            and self.group in (key.group, ANY_GROUP)
            and self.namespace in ("", key.namespace)
            and self.name in ("", key.name)
            and (self.labels is None or self.labels.matches(labels))
        )


class ClusterGroup(NamedTuple):
    """A group of clusters with its name; None selects nothing."""

    name: str
    clusters: Selector | None


class RolloutSpec(NamedTuple):
    """A parsed Rollout. Without `selectors` it is about all workloads. `accepted` are the failures that it goes on without, as cluster and
    time of the change. A `broken` one has no valid document: nothing that it selects changes."""

    document: Document
    selectors: tuple[ObjectSelector, ...] | None
    groups: tuple[ClusterGroup, ...]
    clusters_per_group: object
    strategy: RolloutStrategy
    accepted: frozenset[tuple[str, datetime]] = frozenset()
    broken: bool = False

    @property
    def name(self) -> str:
        return self.document.key.name

    def selects(self, document: Document) -> bool:
        """Return whether the rollout names a workload, a Bundle or a policy."""
        labels = read_labels(document.body)
        return any(selector.selects(document.key, labels) for selector in self.selectors or ())

    def divide(self, clusters: Iterable[str], labels: Mapping[str, Mapping[str, str]]) -> list[RolloutGroup]:
        """Divide clusters into the groups that get a change one after another: a cluster belongs to the first group that it matches, and
        those that match none are the last group."""
        names = sorted(clusters)
        members: list[tuple[str, list[str]]] = [*((group.name, list[str]()) for group in self.groups), ("", [])]
        for name in names:
            index = next((at for at, group in enumerate(self.groups) if _matches(group, labels.get(name, {}))), len(self.groups))
            members[index][1].append(name)
        total = len(names)
        size = min(parse_int_or_percent(self.clusters_per_group, total) or total, total) or 1
        parts = [(name, part[at : at + size]) for name, part in members for at in range(0, len(part), size)]
        return [RolloutGroup(name, index, tuple(part)) for index, (name, part) in enumerate(parts)]

    def order(self, groups: Sequence[RolloutGroup]) -> list[RolloutGroup]:
        """Return the groups that have clusters in the order of the waves: mandatory ones first."""
        first = [group for one in self.strategy.mandatory_groups for group in groups if one in (group.name, group.group_index)]
        return [group for group in dict.fromkeys([*first, *groups]) if group.clusters]


def _matches(group: ClusterGroup, labels: Mapping[str, str]) -> bool:
    return group.clusters is not None and group.clusters.matches(labels)


def parse_rollout(document: Document) -> RolloutSpec:
    """Parse a valid Rollout."""
    spec = as_object(document.body.get("spec"))
    groups = as_object(spec.get("groupStrategy"))
    per_group = groups.get("clustersPerDecisionGroup", "100%")
    selectors = spec.get("resourceSelectors")
    return RolloutSpec(
        document,
        tuple(map(_parse_selector, list_objects(selectors))) if isinstance(selectors, list) else None,
        tuple(
            ClusterGroup(
                str(entry.get("groupName")), parse_selector(get_field(entry, "groupClusterSelector", "labelSelector") or {})
            )
            for entry in list_objects(groups.get("decisionGroups"))
        ),
        per_group,
        parse_rollout_strategy(as_object(spec.get("rolloutStrategy")), per_group),
        frozenset(read_accepted(document.body)),
    )


def parse_broken_rollout(document: Document) -> RolloutSpec:
    """Parse what can be read of a Rollout with errors. It selects at least what a corrected one would: a selector without a kind selects
    everything, and one with other mistakes all objects of its kind that the rest of it matches."""
    spec = as_object(document.body.get("spec"))
    entries = spec.get("resourceSelectors")
    strategy = str(as_object(spec.get("rolloutStrategy")).get("type"))
    readable = isinstance(entries, list) and all(_has_kind(entry) for entry in entries)
    selectors = tuple(_parse_readable(entry) for entry in list_objects(entries)) if readable else None
    return RolloutSpec(
        document, selectors, (), "100%", RolloutStrategy(strategy if strategy in _SECTIONS else "Progressive"), broken=True
    )


def _has_kind(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("kind"), str) and bool(entry["kind"])


def _parse_readable(entry: Body) -> ObjectSelector:
    found = _parse_selector({**entry, "labelSelector": None})
    texts = {member: entry.get(member) for member in ("apiVersion", "namespace", "name")}
    return found._replace(
        group=found.group if isinstance(texts["apiVersion"], str) else ANY_GROUP,
        namespace=found.namespace if isinstance(texts["namespace"], str) else "",
        name=found.name if isinstance(texts["name"], str) else "",
        labels=_parse_readable_labels(entry.get("labelSelector")),
    )


def _parse_readable_labels(value: object) -> Selector | None:
    """Return a label selector; None, which matches all labels, if it cannot be read."""
    labels, terms = (value.get("matchLabels"), value.get("matchExpressions")) if isinstance(value, dict) else (None, None)
    if not isinstance(labels or {}, dict) or not all(isinstance(text, str) for text in (labels or {}).values()):
        return None
    well_formed = isinstance(terms or [], list) and all(isinstance(term, dict) for term in terms or ())
    return parse_selector(value) if well_formed else None


def _parse_selector(entry: Body) -> ObjectSelector:
    labels = entry.get("labelSelector")
    return ObjectSelector(
        parse_api_group(str(entry.get("apiVersion") or "")),
        str(entry.get("kind") or ""),
        str(entry.get("namespace") or ""),
        str(entry.get("name") or ""),
        None if labels is None else parse_selector(labels),
    )


def read_accepted(body: Body) -> Iterator[tuple[str, datetime]]:
    """Yield the accepted failures of a Rollout: cluster and time of the change."""
    for entry in _list_accepted(body):
        match = _ACCEPTED.fullmatch(entry)
        time = parse_time(match[2]) if match else None
        if match and time is not None:
            yield match[1], time


def _list_accepted(body: Body) -> list[str]:
    return [entry for entry in re.split(r"[,\s]+", read_annotations(body).get(ACCEPT_ANNOTATION, "")) if entry]


def validate_rollout(body: Body) -> Iterator[Issue]:
    """Yield what a schema cannot say about a Rollout: durations, selectors, unknown groups, and accepted failures."""
    spec = as_object(body.get("spec"))
    yield from _check_strategy(as_object(spec.get("rolloutStrategy")), list_objects(_list_groups(spec)))
    for at, entry in enumerate(list_objects(spec.get("resourceSelectors"))):
        if entry.get("labelSelector") is not None and parse_selector(entry["labelSelector"]) is None:
            yield _make_selector_issue(("spec", "resourceSelectors", at, "labelSelector"))
    for at, entry in enumerate(list_objects(_list_groups(spec))):
        selector = get_field(entry, "groupClusterSelector", "labelSelector")
        if selector is not None and parse_selector(selector) is None:
            where = ("spec", "groupStrategy", "decisionGroups", at, "groupClusterSelector", "labelSelector")
            yield _make_selector_issue(where)
    known = len(list(read_accepted(body)))
    if known < len(_list_accepted(body)):
        message = f"the annotation {ACCEPT_ANNOTATION} is not a list of CLUSTER@TIME: copy it from the finding about the failure"
        yield Issue("error", "invalid-field", message, ("metadata", "annotations", ACCEPT_ANNOTATION))


def _list_groups(spec: Body) -> Any:
    return get_field(spec, "groupStrategy", "decisionGroups")


def _make_selector_issue(pointer: tuple[str | int, ...]) -> Issue:
    return Issue("error", "invalid-field", "the label selector is not valid, so it would select nothing", pointer)


def _check_strategy(strategy: Body, groups: Sequence[Body]) -> Iterator[Issue]:
    chosen = _SECTIONS.get(str(strategy.get("type") or "All"), "all")
    names = {entry.get("groupName") for entry in groups}
    for section in _SECTIONS.values():
        settings = strategy.get(section)
        if not isinstance(settings, dict):
            continue
        at = ("spec", "rolloutStrategy", section)
        if section != chosen:
            message = f"{section} has no effect: the type is {strategy.get('type') or 'All'}"
            yield Issue("warning", "rollout-setting-unused", message, at)
        for field in ("minSuccessTime", "progressDeadline"):
            value = settings.get(field)
            unlimited = (None, "None") if field == "progressDeadline" else (None, "0")
            if value not in unlimited and parse_duration(value) is None:
                yield Issue("error", "invalid-field", f"{value!r} is not a duration such as 10m or 1h30m", (*at, field))
        for index, entry in enumerate(list_objects(settings.get("mandatoryDecisionGroups"))):
            name = entry.get("groupName")
            if name and name not in names:
                message = f"there is no decision group {name!r}: add it to spec.groupStrategy.decisionGroups"
                yield Issue("error", "invalid-field", message, (*at, "mandatoryDecisionGroups", index, "groupName"))
