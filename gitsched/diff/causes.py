"""Find why a workload moves: fields that differ between two commits in its document, its policy and its clusters, and the rule that
rejects a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from gitsched.apis.topology import CLUSTER
from gitsched.decide.catalog import Catalog
from gitsched.decide.registry import policy_apis, reserved_groups
from gitsched.model.changes import Cause, Move
from gitsched.model.document import Body, Document, Key
from gitsched.model.explanation import ExplainedCandidate, Explanation
from gitsched.model.finding import FieldOrigin, Location, Pointer, locate_document
from gitsched.model.scheduling import Outcome

MAX_FIELDS = 50
"""Differences that are looked at in one document."""
_MAX_VALUE_LENGTH = 48
_MISSING = object()
_SERVER_FIELDS = frozenset(
    ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "lastTransitionTime", "lastHeartbeatTime")
)
_SECRET_NAMES = ("kubeconfig", "token", "password", "auth", "secret", "credential", "proxy", "certificate", "cabundle", "data")


class FieldDifference(NamedTuple):
    """A member that differs. `text` is like `spec.replicas 2 -> 4`; `gone` says that the later version has no such member."""

    pointer: Pointer
    text: str
    gone: bool


def list_field_differences(before: Body, after: Body) -> list[FieldDifference]:
    """The first differences between two documents; what servers stamp on them is left out."""
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
    """Entries that both have at the ends are the same ones; between them, an equal number is compared and the rest came or went."""
    shortest = min(len(before), len(after))
    head = next((at for at in range(shortest) if before[at] != after[at]), shortest)
    tail = next((at for at in range(shortest - head) if before[-1 - at] != after[-1 - at]), shortest - head)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    for at in range(max(len(old), len(new))):
        yield from _compare_values(
            old[at] if at < len(old) else _MISSING, new[at] if at < len(new) else _MISSING, (*pointer, head + at)
        )


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
"""Differences of one document, and names in one sentence, that are told one by one."""
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
"""Members of a workload that a policy or the scheduler looks at; all else can change without moving it."""


class CatalogComparison(NamedTuple):
    """The documents of two commits by identity, and by how outcomes and moves name policies and clusters."""

    before: Mapping[Key, Document]
    after: Mapping[Key, Document]
    policies: Mapping[str, Key]
    clusters: Mapping[str, tuple[Key, ...]]
    changed_keys: tuple[Key, ...]


def compare_catalogs(before: Catalog, after: Catalog) -> CatalogComparison:
    """What two commits have to say."""
    old, new = _index_documents(before), _index_documents(after)
    settings = sorted(key for key in old.keys() | new.keys() if key.group in reserved_groups())
    topologies = (api.topology for api in policy_apis() if api.topology is not None)
    cluster_kinds = {(topology.group, topology.kind) for topology in topologies if topology.level == CLUSTER}
    clusters: dict[str, tuple[Key, ...]] = {}
    for key in settings:
        if (key.group, key.kind) in cluster_kinds:
            name = f"{key.namespace}.{key.name}" if key.namespace else key.name
            clusters[name] = (*clusters.get(name, ()), key)
    changed = tuple(key for key in settings if _get_body(old, key) != _get_body(new, key))
    return CatalogComparison(old, new, {name: key for key in settings for name in (str(key), key.title)}, clusters, changed)


def find_causes(
    move: Move, was: Outcome | None, now: Outcome | None, ground: CatalogComparison, explanation: Explanation | None
) -> tuple[Cause, ...]:
    """The causes of a move, the most telling first; none where only time has passed."""
    own = list(_list_workload_causes(move, ground))
    policies = [] if now is None else list(_list_policy_causes(move, was, now, ground))
    clusters = list(_list_cluster_causes(move, ground, explanation))
    found = [*policies, *own, *clusters] if move.before else [*own, *policies, *clusters]
    deselected = now is None and move.key in ground.after
    if deselected:
        found = own  # whatever became of its clusters, nobody asks for it any more
    if deselected or not found:
        known = {key for keys in ground.clusters.values() for key in keys}
        others = [key for key in ground.changed_keys if key not in known] or ground.changed_keys
        found += [cause for key in others[:MAX_CAUSES] for cause in _list_document_causes(key, ground)]
    # What somebody changed says more than a rule that stood before.
    paths = {document.origin.path for key in ground.changed_keys if (document := ground.after.get(key)) and document.origin}
    return tuple(sorted(dict.fromkeys(found), key=lambda cause: not _is_from_change(cause, move, paths)))


def _is_from_change(cause: Cause, move: Move, paths: set[str]) -> bool:
    return cause.location is None or cause.removed or cause.location.path in paths or cause.text.startswith(move.key.title)


def _list_workload_causes(move: Move, ground: CatalogComparison) -> Iterator[Cause]:
    old, new = ground.before.get(move.key), ground.after.get(move.key)
    if new is None:
        if old is not None:
            yield Cause("it is not in the repository any more", locate_document(old), removed=True)
    elif old is None:
        yield Cause("it is new in the repository", locate_document(new))
    else:
        yield from _list_field_causes(
            move.key, old, new, lambda pointer: move.key.group in reserved_groups() or bool(_SCHEDULING_FIELDS & set(pointer))
        )


def _list_policy_causes(move: Move, was: Outcome | None, now: Outcome, ground: CatalogComparison) -> Iterator[Cause]:
    # Of what lies on the output branch only the places are known: its policy is taken to be the same one.
    before = was.policy if was is not None else now.policy if move.before else ""
    for name in now.policy.split(", "):
        key = ground.policies.get(name)
        if key is None:
            continue
        old, new = ground.before.get(key), ground.after.get(key)
        if new is None:
            continue
        if name not in before.split(", ") or old is None:
            yield Cause(_describe_policy_change(name, before, ground), locate_document(new))
        else:
            yield from _list_field_causes(key, old, new, lambda pointer: pointer[0] == "spec")


def _describe_policy_change(name: str, before: str, ground: CatalogComparison) -> str:
    if not before or before == name:
        return f"{name} selects it"
    former = ground.policies.get(before)
    gone = ", which is gone" if former is not None and former not in ground.after else ""
    return f"{name} takes it over from {before}{gone}"


def _list_cluster_causes(move: Move, ground: CatalogComparison, explanation: Explanation | None) -> Iterator[Cause]:
    left = sorted(move.before.keys() - move.after.keys())
    refused = _find_rejections(explanation) if explanation else {}
    told: dict[str, list[ExplainedCandidate]] = {}
    for name in left:
        if name in refused and any(key in ground.after for key in ground.clusters.get(name, ())):
            told.setdefault(refused[name].result.reason, []).append(refused[name])
    for reason, candidates in told.items():
        yield Cause(
            f"{_format_names(c.result.name for c in candidates)}: {reason}", _parse_location(candidates[0]), candidates[0].field
        )
    known = {candidate.result.name for candidates in told.values() for candidate in candidates}
    touched = sorted(
        name for name in move.before.keys() | move.after.keys() if move.before.get(name, -1) != move.after.get(name, -1)
    )
    for name in touched:
        if name not in known:
            for key in ground.clusters.get(name, ()):
                if key in ground.changed_keys:
                    yield from _list_document_causes(key, ground)


def _find_rejections(explanation: Explanation) -> dict[str, ExplainedCandidate]:
    """What speaks against each cluster, in the first group that it was tried in: a later one may just not be meant for it."""
    order = {attempt.name: position for position, attempt in enumerate(explanation.attempts)}
    found: dict[str, ExplainedCandidate] = {}
    for entry in sorted(explanation.candidates, key=lambda entry: order.get(entry.group, len(order))):
        found.setdefault(entry.result.name, entry)
    return {name: entry for name, entry in found.items() if not entry.result.eligible}


def _list_document_causes(key: Key, ground: CatalogComparison) -> Iterator[Cause]:
    old, new = ground.before.get(key), ground.after.get(key)
    if new is None and old is not None:
        yield Cause(f"{key.title} is gone", locate_document(old), removed=True)
    elif old is None and new is not None:
        yield Cause(f"{key.title} is new", locate_document(new))
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
    known = sorted(names)
    more = f" and {len(known) - MAX_CAUSES} more" if len(known) > MAX_CAUSES else ""
    return ", ".join(known[:MAX_CAUSES]) + more


def _index_documents(catalog: Catalog) -> dict[Key, Document]:
    return {**catalog.api_documents_by_key, **catalog.templates}


def _get_body(documents: Mapping[Key, Document], key: Key) -> object:
    document = documents.get(key)
    return document.body if document is not None else None
