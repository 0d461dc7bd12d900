"""Find the causes of a move: changed fields of the workload, its policy and its clusters, and the rule that rejects a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from gitsched.apis.topology import CLUSTER
from gitsched.decide.catalog import Catalog
from gitsched.decide.registry import apis_by_group, policy_apis, reserved_groups
from gitsched.model.changes import Cause, Move, RecordChange
from gitsched.model.document import Body, Document, Key
from gitsched.model.explanation import ExplainedCandidate, Explanation
from gitsched.model.finding import FieldOrigin, Location, Pointer, locate_document
from gitsched.model.scheduling import Outcome

MAX_FIELDS = 50
"""The maximum number of differences that are reported for one document."""
_MAX_VALUE_LENGTH = 48
_MISSING = object()
_SERVER_FIELDS = frozenset(
    ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "lastTransitionTime", "lastHeartbeatTime")
)
_SECRET_NAMES = ("kubeconfig", "token", "password", "auth", "secret", "credential", "proxy", "certificate", "cabundle", "data")


class FieldDifference(NamedTuple):
    """A field that differs. `text` is like `spec.replicas 2 -> 4`; `gone` is true if the later version does not have the field."""

    pointer: Pointer
    text: str
    gone: bool


def list_field_differences(before: Body, after: Body) -> list[FieldDifference]:
    """Return the first differences between two documents, without fields that API servers set."""
    return list(islice(_compare_values(before, after, ()), MAX_FIELDS))


def _compare_values(before: Any, after: Any, pointer: Pointer) -> Iterator[FieldDifference]:
    if before is after or before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*after, *before)):
            if name not in _SERVER_FIELDS:
                yield from _compare_values(before.get(name, _MISSING), after.get(name, _MISSING), (*pointer, name))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _compare_lists(before, after, pointer)
    else:
        yield FieldDifference(pointer, _describe_difference(before, after, pointer), after is _MISSING)


def _compare_lists(before: list[Any], after: list[Any], pointer: Pointer) -> Iterator[FieldDifference]:
    """Compare two lists: skip equal entries at both ends, then compare the others by position."""
    shortest = min(len(before), len(after))
    head = next((i for i in range(shortest) if before[i] != after[i]), shortest)
    tail = next((i for i in range(shortest - head) if before[-1 - i] != after[-1 - i]), shortest - head)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    for i in range(max(len(old), len(new))):
        yield from _compare_values(old[i] if i < len(old) else _MISSING, new[i] if i < len(new) else _MISSING, (*pointer, head + i))


def _describe_difference(before: Any, after: Any, pointer: Pointer) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in pointer)[1:]
    if any(word in str(part).lower() for part in pointer for word in _SECRET_NAMES):
        return f"{path} changed"
    if before is _MISSING:
        return f"{path} added: {_format_value(after)}"
    if after is _MISSING:
        return f"{path} removed: {_format_value(before)}"
    return f"{path} {_format_value(before)} -> {_format_value(after)}"


def _format_value(value: Any) -> str:
    if isinstance(value, dict | list) and _contains_secret(value):
        return "..."
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[: _MAX_VALUE_LENGTH - 3]}..."


def _contains_secret(value: Any) -> bool:
    if isinstance(value, dict):
        return any(word in str(name).lower() for name in value for word in _SECRET_NAMES) or any(
            map(_contains_secret, value.values())
        )
    return isinstance(value, list) and any(map(_contains_secret, value))


_FieldFilter = Callable[[Pointer], bool]
MAX_CAUSES = 3
"""The number of differences of one document, and of names in one sentence, that are listed."""
_SCHEDULING_FIELDS = frozenset(
    (
        "replicas",
        "parallelism",
        "completions",
        "labels",
        "resources",
        "nodeSelector",
        "tolerations",
        "affinity",
        "constraints",
        "propagate",
    )
)
"""Fields of a workload that a policy or the scheduler reads; other fields cannot cause a move."""


class CatalogComparison(NamedTuple):
    """The documents of two commits by key, and the keys of policies and clusters by the names that outcomes and moves use."""

    before: Mapping[Key, Document]
    after: Mapping[Key, Document]
    policies: Mapping[str, Key]
    clusters: Mapping[str, tuple[Key, ...]]
    changed_keys: tuple[Key, ...]


def compare_catalogs(before: Catalog, after: Catalog) -> CatalogComparison:
    """Index the documents of two commits and find those that differ."""
    old, new = _index_documents(before), _index_documents(after)
    settings = sorted(key for key in old.keys() | new.keys() if key.group in reserved_groups)
    topologies = (api.topology for api in policy_apis.values() if api.topology is not None)
    cluster_kinds = {(topology.group, topology.kind) for topology in topologies if topology.level == CLUSTER}
    clusters: dict[str, tuple[Key, ...]] = {}
    for key in settings:
        if (key.group, key.kind) in cluster_kinds:
            name = f"{key.namespace}.{key.name}" if key.namespace else key.name
            clusters[name] = (*clusters.get(name, ()), key)
    changed = tuple(key for key in settings if _get_body(old, key) != _get_body(new, key))
    return CatalogComparison(old, new, {name: key for key in settings for name in (str(key), key.title)}, clusters, changed)


def find_causes(
    move: Move, before: Outcome | None, after: Outcome | None, catalogs: CatalogComparison, explanation: Explanation | None
) -> tuple[Cause, ...]:
    """Return the causes of a move, the most specific first; empty if only time has passed."""
    own = list(_list_workload_causes(move, catalogs))
    policies = [] if after is None else list(_list_policy_causes(move, before, after, catalogs))
    clusters = list(_list_cluster_causes(move, catalogs, explanation))
    found = [*policies, *own, *clusters] if move.before else [*own, *policies, *clusters]
    deselected = after is None and move.key in catalogs.after
    if deselected:
        found = own  # no policy selects the workload, so changes of clusters do not matter
    if deselected or not found:
        cluster_keys = {key for keys in catalogs.clusters.values() for key in keys}
        others = [key for key in catalogs.changed_keys if key not in cluster_keys] or catalogs.changed_keys
        found += [cause for key in others[:MAX_CAUSES] for cause in _list_document_causes(key, catalogs)]
    # A changed document is a better explanation than an existing rule.
    paths = {document.origin.path for key in catalogs.changed_keys if (document := catalogs.after.get(key)) and document.origin}
    return tuple(sorted(dict.fromkeys(found), key=lambda cause: not _is_from_change(cause, move, paths)))


def find_record_causes(
    change: RecordChange, catalogs: CatalogComparison, related: Iterable[Key], explanation: Explanation | None
) -> tuple[Cause, ...]:
    """Return the causes of a changed recorded decision: its own document, those of its targets, else other documents of its API.

    `related` are documents outside of the API's groups that it reads. The result is empty if no document changed.
    """
    targets: dict[str, tuple[Key, ...]] = {}
    for target in (*change.before, *change.after):
        targets[target.name] = (target.key,) if target.key is not None else ()
    before, after = ({target.name: target.amount for target in each} for each in (change.before, change.after))
    move = Move(change.subject, before, after, "")
    found = list(_list_document_causes(change.subject, catalogs))
    found += _list_cluster_causes(move, catalogs._replace(clusters=targets), explanation)
    if not found:
        apis = {key.group: apis_by_group.get(key.group) for key in catalogs.changed_keys}
        others = [key for key in catalogs.changed_keys if (api := apis[key.group]) is None or api.name == change.api]
        others += [key for key in sorted(related) if _get_body(catalogs.before, key) != _get_body(catalogs.after, key)]
        found = [cause for key in others[:MAX_CAUSES] for cause in _list_document_causes(key, catalogs)]
    return tuple(dict.fromkeys(found))


def _is_from_change(cause: Cause, move: Move, paths: set[str]) -> bool:
    return cause.location is None or cause.removed or cause.location.path in paths or cause.text.startswith(move.key.title)


def _list_workload_causes(move: Move, catalogs: CatalogComparison) -> Iterator[Cause]:
    old, new = catalogs.before.get(move.key), catalogs.after.get(move.key)
    if new is None:
        if old is not None:
            yield from move.causes or (Cause("removed from the source", locate_document(old), removed=True),)
    elif old is None:
        yield Cause("added to the source", locate_document(new))
    else:
        yield from _list_field_causes(
            move.key, old, new, lambda pointer: move.key.group in reserved_groups or bool(_SCHEDULING_FIELDS & set(pointer))
        )


def _list_policy_causes(move: Move, before: Outcome | None, after: Outcome, catalogs: CatalogComparison) -> Iterator[Cause]:
    # The output branch records clusters but not policies, so the policy is assumed to be unchanged.
    policy_before = before.policy if before is not None else after.policy if move.before else ""
    for name in after.policy.split(", "):
        key = catalogs.policies.get(name)
        if key is None:
            continue
        old, new = catalogs.before.get(key), catalogs.after.get(key)
        if new is None:
            continue
        if name not in policy_before.split(", ") or old is None:
            yield Cause(_describe_policy_change(name, policy_before, catalogs), locate_document(new))
        else:
            yield from _list_field_causes(key, old, new, lambda pointer: pointer[0] == "spec")


def _describe_policy_change(name: str, before: str, catalogs: CatalogComparison) -> str:
    if not before or before == name:
        return f"{name} selects it"
    former = catalogs.policies.get(before)
    removed = ", which was removed" if former is not None and former not in catalogs.after else ""
    return f"{name} selects it instead of {before}{removed}"


def _list_cluster_causes(move: Move, catalogs: CatalogComparison, explanation: Explanation | None) -> Iterator[Cause]:
    lost = sorted(move.before.keys() - move.after.keys())
    rejections = _find_rejections(explanation) if explanation else {}
    by_reason: dict[str, list[ExplainedCandidate]] = {}
    for name in lost:
        if name in rejections and any(key in catalogs.after for key in catalogs.clusters.get(name, ())):
            by_reason.setdefault(rejections[name].result.reason, []).append(rejections[name])
    for reason, candidates in by_reason.items():
        yield Cause(
            f"{_format_names(c.result.name for c in candidates)}: {reason}", _parse_location(candidates[0]), candidates[0].field
        )
    explained = {candidate.result.name for candidates in by_reason.values() for candidate in candidates}
    changed = sorted(
        name for name in move.before.keys() | move.after.keys() if move.before.get(name, -1) != move.after.get(name, -1)
    )
    for name in changed:
        if name not in explained:
            for key in catalogs.clusters.get(name, ()):
                if key in catalogs.changed_keys:
                    yield from _list_document_causes(key, catalogs)


def _find_rejections(explanation: Explanation) -> dict[str, ExplainedCandidate]:
    """Return the rejected clusters with the result of the first group in which they were tried, since later groups may target others."""
    order = {attempt.name: position for position, attempt in enumerate(explanation.attempts)}
    found: dict[str, ExplainedCandidate] = {}
    for entry in sorted(explanation.candidates, key=lambda entry: order.get(entry.group, len(order))):
        found.setdefault(entry.result.name, entry)
    return {name: entry for name, entry in found.items() if not entry.result.eligible}


def _list_document_causes(key: Key, catalogs: CatalogComparison) -> Iterator[Cause]:
    old, new = catalogs.before.get(key), catalogs.after.get(key)
    if new is None and old is not None:
        yield Cause(f"{key.title} removed", locate_document(old), removed=True)
    elif old is None and new is not None:
        yield Cause(f"{key.title} added", locate_document(new))
    elif old is not None and new is not None:
        yield from _list_field_causes(key, old, new, lambda pointer: pointer[0] != "metadata" or "labels" in pointer)


def _list_field_causes(key: Key, old: Document, new: Document, counts: _FieldFilter) -> Iterator[Cause]:
    if old.body == new.body:
        return
    found = [entry for entry in list_field_differences(old.body, new.body) if entry.pointer and counts(entry.pointer)]
    for entry in found[:MAX_CAUSES]:
        rule = FieldOrigin(new.origin, entry.pointer) if new.origin else None
        yield Cause(f"{key.title}: {entry.text}", locate_document(new), rule)
    if len(found) > MAX_CAUSES:
        yield Cause(f"{key.title}: {len(found) - MAX_CAUSES} more differences", locate_document(new))


def _parse_location(candidate: ExplainedCandidate) -> Location | None:
    path, colon, line = candidate.location.rpartition(":")
    return Location(path, int(line), 1) if colon and line.isdigit() else None


def _format_names(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - MAX_CAUSES} more" if len(ordered) > MAX_CAUSES else ""
    return ", ".join(ordered[:MAX_CAUSES]) + more


def _index_documents(catalog: Catalog) -> dict[Key, Document]:
    return {**catalog.api_documents_by_key, **catalog.templates}


def _get_body(documents: Mapping[Key, Document], key: Key) -> object:
    document = documents.get(key)
    return document.body if document is not None else None
