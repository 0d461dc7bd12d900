"""Find the causes of moves and of changed recorded decisions: the changes without which they do not happen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from gitsched.apis.topology import list_cluster_kinds
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.registry import reserved_groups
from gitsched.diff.cause_search import Changes, Rank, SearchSpace, Subject, find_explanations
from gitsched.diff.counterfactual_placements import CounterfactualPlacements, Placement
from gitsched.diff.document_changes import OBSERVATIONS, READ_ORDER, RELEASES, SETTINGS, TIME, WHOLE, Change, DocumentChanges
from gitsched.model.changes import Cause, Move, RecordChange
from gitsched.model.document import Key
from gitsched.model.finding import FieldOrigin, locate_document
from gitsched.model.scheduling import Outcome
from gitsched.model.time import format_time

MIN_DECISIONS, DECISIONS_PER_WORKLOAD = 6_000, 3
"""How many decisions the search for causes may make: a minimum, and some for each workload of the plan."""
MAX_UNPROVED = 3
"""The number of changed documents that are listed for a move without a proved cause; the others are counted."""
_OWN, _POLICY, _CLUSTER, _OTHER, _OTHER_CLUSTER, _NAMESPACE, _TEMPLATE = range(7)
_SPECIAL_TEXTS = {
    SETTINGS: "the settings changed",
    READ_ORDER: "the order of documents changed",
    RELEASES: "a trailer or an option releases held workloads",
    OBSERVATIONS: "observed values changed",
}


class Causes(NamedTuple):
    """The moves and changed recorded decisions with their causes. `spent` is the work of the search, in decisions of one workload."""

    moves: tuple[Move, ...]
    records: tuple[RecordChange, ...]
    spent: int = 0


def find_causes(
    moves: tuple[Move, ...],
    records: tuple[RecordChange, ...],
    changes: DocumentChanges,
    outcomes: Mapping[Key, Outcome],
    decided: DecisionSet,
) -> Causes:
    """Return the moves and records with their causes, of which each is proved, or only told as changed with them.

    `outcomes` are those of the earlier plan; they are empty if that is the previous output. `decided` are the decisions of the later one.
    """
    expected: dict[Subject, Placement] = {Subject(move.key): move.before for move in moves}
    expected |= {Subject(record.subject, record.target_kind): record.before for record in records}
    limit = MIN_DECISIONS + DECISIONS_PER_WORKLOAD * len(decided.outcomes)
    counterfactuals = CounterfactualPlacements(changes, decided, expected, limit)
    view = _SubjectView(moves, records, outcomes, decided, changes)
    found = find_explanations(expected, counterfactuals, SearchSpace(view.rank, (_CLUSTER, _OTHER), view.group))
    writer = CauseWriter(changes, view.rank)
    return Causes(
        tuple(move._replace(causes=writer.write(Subject(move.key), found, move.causes)) for move in moves),
        tuple(record._replace(causes=writer.write(Subject(record.subject, record.target_kind), found)) for record in records),
        counterfactuals.spent,
    )


class _SubjectView:
    """Sorts changed documents by their relevance to a subject, and groups subjects that change alike."""

    def __init__(
        self,
        moves: Iterable[Move],
        records: Iterable[RecordChange],
        outcomes: Mapping[Key, Outcome],
        decided: DecisionSet,
        changes: DocumentChanges,
    ) -> None:
        self._changes, self._cluster_kinds = changes, list_cluster_kinds()
        self._policies: dict[Subject, tuple[str, ...]] = {}
        self._clusters: dict[Subject, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        for move in moves:
            subject, known = Subject(move.key), (outcomes.get(move.key), decided.outcomes.get(move.key))
            self._policies[subject] = tuple(outcome.policy if outcome is not None else "" for outcome in known)
            self._clusters[subject] = tuple(sorted(move.before)), tuple(sorted(move.after))
        for record in records:
            subject = Subject(record.subject, record.target_kind)
            before, after = ((target.name for target in targets) for targets in (record.before, record.after))
            self._clusters[subject] = tuple(sorted(before)), tuple(sorted(after))

    def rank(self, subject: Subject, key: Key) -> int:
        """Return the relevance of a changed document, the smaller the higher."""
        if key == subject.key:
            return _OWN
        if any(name in (key.title, str(key)) for policies in self._policies.get(subject, ()) for name in policies.split(", ")):
            return _POLICY
        before, after = self._clusters[subject]
        name = f"{key.namespace}.{key.name}" if key.namespace else key.name
        is_target = name in before or name in after
        if key[:2] in self._cluster_kinds:
            # A workload that no policy selects any more loses its clusters whatever happens to these.
            near = _OTHER if not after else _CLUSTER
            return near if is_target else _OTHER_CLUSTER
        if key.group in reserved_groups or key in _SPECIAL_TEXTS or key == TIME:
            return _CLUSTER if is_target or not after else _OTHER
        return _NAMESPACE if key.namespace == subject.key.namespace else _TEMPLATE

    def group(self, subject: Subject) -> tuple[object, ...]:
        """Return what subjects that change alike have in common."""
        own = self._changes.by_key.get(subject.key)
        texts = (own.text, *(difference.text for difference in own.differences)) if own is not None else ()
        return (*subject.key[:2], subject.aspect, self._policies.get(subject), self._clusters[subject], texts)


class CauseWriter:
    """Describes changes as causes."""

    def __init__(self, changes: DocumentChanges, rank: Rank) -> None:
        self._changes, self._rank = changes, rank
        self._written: dict[Change, Cause] = {}

    def write(
        self, subject: Subject, found: Mapping[Subject, tuple[Changes, ...]], known: tuple[Cause, ...] = ()
    ) -> tuple[Cause, ...]:
        """Return the causes of one subject, the nearest first. `known` describes why its own document was removed."""
        causes: list[Cause] = []
        number = 0
        for changes in found.get(subject, ()):
            number += len(changes) > 1
            ordered = sorted(changes, key=lambda change: (self._rank(subject, change.key), change))
            for change in ordered:
                own = change.key == subject.key and change.position == WHOLE and not subject.aspect
                cause = self._write_own(change, known) if own else self._write_change(change)
                causes.append(cause._replace(together=number if len(changes) > 1 else 0))
        return tuple(causes or [cause._replace(proved=False) for cause in known] or self._list_unproved(subject))

    def _list_unproved(self, subject: Subject) -> Iterator[Cause]:
        keys = sorted(self._changes.by_key, key=lambda key: (self._rank(subject, key), key))
        for key in keys[:MAX_UNPROVED]:
            change = self._changes.by_key[key].changes[0]
            yield self._write_change(change)._replace(proved=False)
        if len(keys) > MAX_UNPROVED:
            yield Cause(f"{len(keys) - MAX_UNPROVED} more documents", proved=False)

    def _write_own(self, change: Change, known: tuple[Cause, ...]) -> Cause:
        text = self._changes.by_key[change.key].text
        cause = self._write_change(change)
        if text == "removed" and known:
            return known[0]
        return (
            cause._replace(text=f"{text} {'to' if text == 'added' else 'from'} the source")
            if text in ("added", "removed")
            else cause
        )

    def _write_change(self, change: Change) -> Cause:
        if change not in self._written:
            self._written[change] = self._describe(change)
        return self._written[change]

    def _describe(self, change: Change) -> Cause:
        if change.key == TIME:
            before, after = self._changes.before.now, self._changes.after.now
            return Cause(f"time passed: {format_time(before)} -> {format_time(after)}")
        if change.key in _SPECIAL_TEXTS:
            return Cause(_SPECIAL_TEXTS[change.key])
        document = self._changes.by_key[change.key]
        shown = document.after or document.before
        assert shown is not None, "a changed document is in one of the commits"
        removed = document.after is None
        if change.position == WHOLE:
            return Cause(f"{change.key.title} {document.text}", locate_document(shown), removed=removed)
        difference = document.differences[change.position]
        field = FieldOrigin(shown.origin, difference.pointer) if shown.origin else None
        return Cause(f"{change.key.title}: {difference.text}", locate_document(shown), field)
