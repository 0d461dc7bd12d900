"""What makes a workload move: what differs between two commits in its document, its policy and its clusters, and which rule refuses it.

No API is asked how it decides. Only what differs between the commits can have moved anything, but for time, and each API's own `explain`
says what is against a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from gitsched.model.change import Cause, Move
from gitsched.model.document import Document, Key
from gitsched.model.explanation import Candidate, Explanation
from gitsched.model.finding import Location, Pointer, Rule, locate
from gitsched.model.outcome import Outcome
from gitsched.plan.catalog import Catalog
from gitsched.plan.differing import differences
from gitsched.plan.registry import RESERVED

_Counts = Callable[[Pointer], bool]
SHOWN = 3
"""Differences of one document, and names in one sentence, that are told one by one."""
_CLUSTERS = frozenset(("Cluster", "ManagedCluster"))
_DEMANDS = frozenset(
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


class Ground(NamedTuple):
    """The documents of two commits by identity, and by how outcomes and moves name policies and clusters."""

    before: Mapping[Key, Document]
    after: Mapping[Key, Document]
    policies: Mapping[str, Key]
    clusters: Mapping[str, tuple[Key, ...]]
    changed: tuple[Key, ...]


def survey(before: Catalog, after: Catalog) -> Ground:
    """What two commits have to say."""
    old, new = _list(before), _list(after)
    settings = sorted(key for key in old.keys() | new.keys() if key.group in RESERVED)
    clusters: dict[str, tuple[Key, ...]] = {}
    for key in settings:
        if key.kind in _CLUSTERS:
            name = f"{key.namespace}.{key.name}" if key.namespace else key.name
            clusters[name] = (*clusters.get(name, ()), key)
    changed = tuple(key for key in settings if _body(old, key) != _body(new, key))
    return Ground(old, new, {name: key for key in settings for name in (str(key), key.title)}, clusters, changed)


def find_causes(
    move: Move, was: Outcome | None, now: Outcome | None, ground: Ground, explanation: Explanation | None
) -> tuple[Cause, ...]:
    """The causes of a move, the most telling first; none where only time has passed."""
    own = list(_workload_causes(move, ground))
    policies = [] if now is None else list(_policy_causes(move, was, now, ground))
    clusters = list(_cluster_causes(move, ground, explanation))
    found = [*policies, *own, *clusters] if move.before else [*own, *policies, *clusters]
    deselected = now is None and move.key in ground.after
    if deselected:
        found = own  # whatever became of its clusters, nobody asks for it any more
    if deselected or not found:
        known = {key for keys in ground.clusters.values() for key in keys}
        others = [key for key in ground.changed if key not in known] or ground.changed
        found += [cause for key in others[:SHOWN] for cause in _document_causes(key, ground)]
    # What somebody changed says more than a rule that stood before.
    paths = {document.origin.path for key in ground.changed if (document := ground.after.get(key)) and document.origin}
    return tuple(sorted(dict.fromkeys(found), key=lambda cause: not _is_new(cause, move, paths)))


def _is_new(cause: Cause, move: Move, paths: set[str]) -> bool:
    return cause.location is None or cause.gone or cause.location.path in paths or cause.text.startswith(move.key.title)


def _workload_causes(move: Move, ground: Ground) -> Iterator[Cause]:
    old, new = ground.before.get(move.key), ground.after.get(move.key)
    if new is None:
        if old is not None:
            yield Cause("it is not in the repository any more", locate(old), gone=True)
    elif old is None:
        yield Cause("it is new in the repository", locate(new))
    else:
        yield from _differences(move.key, old, new, lambda pointer: move.key.group in RESERVED or bool(_DEMANDS & set(pointer)))


def _policy_causes(move: Move, was: Outcome | None, now: Outcome, ground: Ground) -> Iterator[Cause]:
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
            yield Cause(_take_over(name, before, ground), locate(new))
        else:
            yield from _differences(key, old, new, lambda pointer: pointer[0] == "spec")


def _take_over(name: str, before: str, ground: Ground) -> str:
    if not before or before == name:
        return f"{name} selects it"
    former = ground.policies.get(before)
    gone = ", which is gone" if former is not None and former not in ground.after else ""
    return f"{name} takes it over from {before}{gone}"


def _cluster_causes(move: Move, ground: Ground, explanation: Explanation | None) -> Iterator[Cause]:
    left = sorted(move.before.keys() - move.after.keys())
    refused = _find_refusals(explanation) if explanation else {}
    told: dict[str, list[Candidate]] = {}
    for name in left:
        if name in refused and any(key in ground.after for key in ground.clusters.get(name, ())):
            told.setdefault(refused[name].verdict.reason, []).append(refused[name])
    for reason, candidates in told.items():
        yield Cause(f"{_names(c.verdict.name for c in candidates)}: {reason}", _place(candidates[0]), candidates[0].rule)
    known = {candidate.verdict.name for candidates in told.values() for candidate in candidates}
    touched = sorted(
        name for name in move.before.keys() | move.after.keys() if move.before.get(name, -1) != move.after.get(name, -1)
    )
    for name in touched:
        if name not in known:
            for key in ground.clusters.get(name, ()):
                if key in ground.changed:
                    yield from _document_causes(key, ground)


def _find_refusals(explanation: Explanation) -> dict[str, Candidate]:
    """What speaks against each cluster, in the first group that it was tried in: a later one may just not be meant for it."""
    order = {attempt.name: position for position, attempt in enumerate(explanation.attempts)}
    found: dict[str, Candidate] = {}
    for entry in sorted(explanation.candidates, key=lambda entry: order.get(entry.group, len(order))):
        found.setdefault(entry.verdict.name, entry)
    return {name: entry for name, entry in found.items() if not entry.verdict.eligible}


def _document_causes(key: Key, ground: Ground) -> Iterator[Cause]:
    old, new = ground.before.get(key), ground.after.get(key)
    if new is None and old is not None:
        yield Cause(f"{key.title} is gone", locate(old), gone=True)
    elif old is None and new is not None:
        yield Cause(f"{key.title} is new", locate(new))
    elif old is not None and new is not None:
        yield from _differences(key, old, new, lambda pointer: pointer[0] != "metadata" or "labels" in pointer)


def _differences(key: Key, old: Document, new: Document, counts: _Counts) -> Iterator[Cause]:
    if old.body == new.body:
        return
    found = [entry for entry in differences(old.body, new.body) if entry.pointer and counts(entry.pointer)]
    for entry in found[:SHOWN]:
        rule = Rule(new.origin, entry.pointer) if new.origin else None
        yield Cause(f"{key.title}: {entry.text}", locate(new), rule)
    if len(found) > SHOWN:
        yield Cause(f"{key.title}: {len(found) - SHOWN} more differences", locate(new))


def _place(candidate: Candidate) -> Location | None:
    path, colon, line = candidate.location.rpartition(":")
    return Location(path, int(line), 1) if colon and line.isdigit() else None


def _names(names: Iterable[str]) -> str:
    known = sorted(names)
    more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
    return ", ".join(known[:SHOWN]) + more


def _list(catalog: Catalog) -> dict[Key, Document]:
    return {**catalog.settings_by_key, **catalog.templates}


def _body(documents: Mapping[Key, Document], key: Key) -> object:
    document = documents.get(key)
    return document.body if document is not None else None
