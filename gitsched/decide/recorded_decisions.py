"""Decisions whose only result is a record: describe the records of a plan and of the previous output, and compare both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.policy_api import GroupKind, PolicyAPI
from gitsched.apis.snapshot import list_previous_records, list_records_outside
from gitsched.decide.registry import policy_apis, reserved_groups
from gitsched.model.changes import RecordChange
from gitsched.model.document import Body, Key
from gitsched.render.output_files import status_path

if TYPE_CHECKING:
    from gitsched.model.scheduling import RecordedDecision, RecordTarget

_NUMBER = re.compile(r"[0-9]+")
DecisionKey = tuple[str, str, Key, str]
"""Namespace and name of the subject, its key, and the kind of target: recorded decisions are in this order."""


def describe_records(records: Iterable[tuple[Key, Body]]) -> tuple[RecordedDecision, ...]:
    """Return the decisions of records by namespace and name of their subjects. Records about the same decision are combined."""
    by_kind, others = _index_descriptions()
    found: dict[DecisionKey, RecordedDecision] = {}
    for key, body in records:
        for api in (*by_kind.get((key.group, key.kind), ()), *(() if key.group in reserved_groups else others)):
            described = api.recorded_decisions.describe(key, body) if api.recorded_decisions else None
            if described is not None:
                identity = _identify(described)
                earlier = found[identity].targets if identity in found else ()
                found[identity] = described._replace(targets=(*earlier, *described.targets), api=api.name)
    return tuple(found[identity]._replace(targets=_sort_targets(found[identity].targets)) for identity in sorted(found))


def describe_previous(previous: Mapping[Key, Body]) -> tuple[RecordedDecision, ...]:
    """Return the recorded decisions of the previous output."""
    return describe_records(_list_described(previous))


def compare_recorded(before: Iterable[RecordedDecision], after: Iterable[RecordedDecision]) -> tuple[RecordChange, ...]:
    """Return the decisions that are added, changed or removed, by namespace and name of their subjects."""
    old, new = ({_identify(decision): decision for decision in decisions} for decisions in (before, after))
    changes = []
    for identity in sorted(old.keys() | new.keys()):
        earlier, later = (decisions[identity].targets if identity in decisions else () for decisions in (old, new))
        if earlier != later:
            known = new.get(identity) or old[identity]
            changes.append(RecordChange(known.subject, known.target_kind, earlier, later, known.api))
    return tuple(changes)


def _identify(decision: RecordedDecision) -> DecisionKey:
    subject = decision.subject
    return subject.namespace, subject.name, subject, decision.target_kind


def _sort_targets(targets: Iterable[RecordTarget]) -> tuple[RecordTarget, ...]:
    return tuple(sorted(dict.fromkeys(targets), key=_target_sort_key))


def _target_sort_key(target: RecordTarget) -> tuple[str, str, str]:
    """Sort numbers in names by value: pod-2 before pod-10."""
    return target.group, _NUMBER.sub(lambda match: match[0].zfill(20), target.name), target.name


def _index_descriptions() -> tuple[Mapping[GroupKind, list[PolicyAPI]], list[PolicyAPI]]:
    """Return the APIs by the kinds of records that they describe, and those that describe all kinds outside of the groups of APIs."""
    by_kind: dict[GroupKind, list[PolicyAPI]] = {}
    others = []
    for api in policy_apis.values():
        description = api.recorded_decisions
        if description is not None and description.kinds is None:
            others.append(api)
        elif description is not None and description.kinds is not None:
            for kind in description.kinds:
                by_kind.setdefault(kind, []).append(api)
    return by_kind, others


def select_described(paths: Iterable[str]) -> Iterator[str]:
    """Yield the paths below status/ of records that an API may describe."""
    by_kind, others = _index_descriptions()
    kinds = {tuple(status_path(Key(*group_kind, "", "")).split("/")[1:3]) for group_kind in by_kind}
    reserved = {status_path(Key(group, "", "", "")).split("/")[1] for group in reserved_groups}
    for path in paths:
        group, _, rest = path.partition("/")
        if (group, rest.partition("/")[0]) in kinds or (others and group not in reserved):
            yield path


def _list_described(previous: Mapping[Key, Body]) -> Iterator[tuple[Key, Body]]:
    """Yield the previous records that an API describes; others are not decoded where that is possible."""
    by_kind, others = _index_descriptions()
    for group, kind in sorted(by_kind):
        yield from list_previous_records(previous, group, kind)
    if others:
        yield from (entry for entry in list_records_outside(previous, reserved_groups) if entry[0][:2] not in by_kind)
