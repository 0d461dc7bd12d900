"""Find the causes of moves and of changed recorded decisions: the changes without which they do not happen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from gitsched.apis.topology import list_cluster_kinds
from gitsched.decide.registry import reserved_groups
from gitsched.diff.cause_search import Changes, SearchSpace, Subject, find_explanations
from gitsched.diff.changed_documents import ChangedDocuments
from gitsched.diff.counterfactual_placements import CounterfactualPlacements, DecidedCommit, Placement
from gitsched.diff.document_changes import (
    OBSERVATIONS,
    READ_ORDER,
    RELEASES,
    SETTINGS,
    TIME,
    WHOLE,
    BuildInput,
    Change,
    DocumentChanges,
)
from gitsched.diff.policy_names import PolicyNames, split_policies
from gitsched.model.changes import Cause, Move, RecordChange, RetainedWorkload
from gitsched.model.document import Key
from gitsched.model.finding import Location, locate_document, locate_field
from gitsched.model.progress import Progress
from gitsched.model.time import format_time
from gitsched.named_tuples import NamedTuple

MIN_DECISIONS, DECISIONS_PER_WORKLOAD = 5_000, 2
"""How many decisions the search for causes may make: a minimum, and some for each workload of the plan."""
MAX_NAMED = 20
"""The number of changes of one set that are each a cause; where there are more, the same change of several documents is one cause."""
MAX_UNPROVED = 3
"""The number of changed documents that are listed for a move without a proved cause; the others are counted."""
_Alike = tuple[str, str]
"""The kind of the changed document, and what changed in it."""
_SPECIAL_TEXTS = {
    SETTINGS: "the settings changed",
    READ_ORDER: "the order of documents changed",
    RELEASES: "a trailer or an option releases held workloads",
    OBSERVATIONS: "observed values changed",
}


LocateBuilt = Callable[[BuildInput], Location | None]


def _locate_nothing(_built: BuildInput) -> Location | None:
    return None


class Causes(NamedTuple):
    """The moves and changed recorded decisions with their causes. `spent` is the work of the search, in decisions of one workload."""

    moves: tuple[Move, ...]
    records: tuple[RecordChange, ...]
    spent: int = 0


def find_causes(
    moves: tuple[Move, ...],
    records: tuple[RecordChange, ...],
    changes: DocumentChanges,
    names: tuple[PolicyNames, PolicyNames],
    decided: DecidedCommit,
    progress: Progress | None = None,
    locate_built: LocateBuilt = _locate_nothing,
) -> Causes:
    """Return the moves and records with their causes, of which each is proved, or only told as changed with them.

    `names` are those of the policies of the earlier plan, none if that is the previous output, and of the later one. `decided` are the
    decisions of the later one. `locate_built` returns the line that changes what is built.
    """
    expected: dict[Subject, Placement] = {Subject(move.key): move.before for move in moves}
    expected |= {Subject(record.subject, record.target_kind): record.before for record in records}
    removed = {move.key for move in moves if move.key not in decided.outcomes}
    limit = MIN_DECISIONS + DECISIONS_PER_WORKLOAD * (len(decided.outcomes) + len(removed))
    counterfactuals = CounterfactualPlacements(changes, decided, expected, limit, progress)
    documents = ChangedDocuments(changes)
    view = _SubjectView(moves, records, names, documents, changes)
    found = find_explanations(expected, counterfactuals, SearchSpace(view.list_near, documents.list_levels(), view.group))
    writer = CauseWriter(changes, view.list_near, locate_built)
    return Causes(
        tuple(move._replace(causes=writer.write(Subject(move.key), found, move.causes, lost=not move.after)) for move in moves),
        tuple(
            record._replace(
                causes=writer.write(Subject(record.subject, record.target_kind), found), intended=changes.removes(record.subject)
            )
            for record in records
        ),
        counterfactuals.spent,
    )


def name_near_changes(
    retained: Iterable[RetainedWorkload],
    changes: DocumentChanges,
    names: PolicyNames,
    locate: Callable[[tuple[Cause, ...]], tuple[Cause, ...]],
) -> tuple[RetainedWorkload, ...]:
    """Return workloads that stay with the changes of the documents that are closest to them; `names` are those of the later plan."""
    documents = ChangedDocuments(changes)
    writer = CauseWriter(changes, lambda _: ())
    known: dict[tuple[Key, ...], tuple[Cause, ...]] = {}
    named = []
    for workload in retained:
        clusters = (*sorted(workload.current), *sorted(workload.if_rescheduled))
        near = tuple(documents.list_near(workload.key, split_policies(names.list_policies(workload.key)), clusters))
        if near not in known:
            known[near] = locate(writer.write_near(near))
        named.append(workload._replace(causes=known[near]))
    return tuple(named)


class _SubjectView:
    """Finds the documents that are close to a subject, and groups subjects that change alike."""

    def __init__(
        self,
        moves: Iterable[Move],
        records: Iterable[RecordChange],
        names: tuple[PolicyNames, PolicyNames],
        documents: ChangedDocuments,
        changes: DocumentChanges,
    ) -> None:
        self._documents, self._changes = documents, changes
        self._policies: dict[Subject, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self._clusters: dict[Subject, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        earlier, later = names
        for move in moves:
            subject = Subject(move.key)
            self._policies[subject] = earlier.list_policies(move.key), later.list_policies(move.key)
            self._clusters[subject] = tuple(sorted(move.before)), tuple(sorted(move.after))
        for record in records:
            subject = Subject(record.subject, record.target_kind)
            before, after = ((target.name for target in targets) for targets in (record.before, record.after))
            self._clusters[subject] = tuple(sorted(before)), tuple(sorted(after))

    def list_near(self, subject: Subject) -> list[Key]:
        """Return the changed documents that are closest to a subject: its own, its policies, and its clusters."""
        policies = split_policies(name for names in self._policies.get(subject, ()) for name in names)
        before, after = self._clusters[subject]
        return self._documents.list_near(subject.key, policies, (*before, *after))

    def group(self, subject: Subject) -> tuple[object, ...]:
        """Return what subjects that change alike have in common."""
        own = self._changes.by_key.get(subject.key)
        texts = (own.text, *(difference.text for difference in own.differences)) if own is not None else ()
        policies = self._policies.get(subject, ())
        place = policies if any(policies) else subject.key.namespace
        return (*subject.key[:2], subject.aspect, place, self._clusters[subject], texts)


class CauseWriter:
    """Describes changes as causes. `locate_built` returns the line that changes what is built."""

    def __init__(
        self, changes: DocumentChanges, list_near: Callable[[Subject], Sequence[Key]], locate_built: LocateBuilt = _locate_nothing
    ) -> None:
        self._changes, self._list_near, self._locate_built = changes, list_near, locate_built
        self._written: dict[Change, Cause] = {}
        self._groups: dict[Changes, Mapping[_Alike, Sequence[Change]]] = {}
        self._ordered = sorted(changes.by_key, key=lambda key: key.group not in reserved_groups)

    def write(
        self, subject: Subject, found: Mapping[Subject, tuple[Changes, ...]], known: tuple[Cause, ...] = (), *, lost: bool = False
    ) -> tuple[Cause, ...]:
        """Return the causes of one subject, the nearest first. `known` describes why its own document was removed.

        `lost`: the workload has no cluster any more; then changes of its former clusters matter less than those of policies.
        """
        near = {key: position for position, key in enumerate(self._list_near(subject))}
        causes: list[Cause] = []
        number, kinds = 0, list_cluster_kinds()

        def rank(change: Change) -> tuple[bool, int, Change]:
            return lost and change.key[:2] in kinds, near.get(change.key, len(near)), change

        own = Change(subject.key, WHOLE)
        for changes in found.get(subject, ()):
            number += len(changes) > 1
            whole = own in changes and not subject.aspect
            found_causes = [self._write_own(own, known)] if whole else []
            others = changes - {own} if whole else changes
            if len(others) <= MAX_NAMED:
                found_causes += [self._write_change(change) for change in sorted(others, key=rank)]
            else:
                found_causes += self._combine_alike(others, near, rank)
            causes += [cause._replace(together=number if len(changes) > 1 else 0) for cause in found_causes]
        return tuple(causes or [cause._replace(proved=False) for cause in known] or self._list_unproved(near))

    def write_near(self, near: Iterable[Key]) -> tuple[Cause, ...]:
        """Return the first changes of some documents."""
        found = (change for key in near for change in self._changes.by_key[key].changes)
        return tuple(self._write_change(change)._replace(proved=False) for change in islice(found, MAX_UNPROVED))

    def _list_unproved(self, near: Collection[Key]) -> Iterator[Cause]:
        """Yield some of the changed documents, the nearest first and those of workloads last, and the number of others."""
        others = (key for key in self._ordered if key not in near)
        for key in islice(chain(near, others), MAX_UNPROVED):
            yield self._write_change(self._changes.by_key[key].changes[0])._replace(proved=False)
        if len(self._ordered) > MAX_UNPROVED:
            yield Cause(f"{len(self._ordered) - MAX_UNPROVED} more documents", proved=False)

    def _combine_alike(
        self, changes: Changes, near: Iterable[Key], rank: Callable[[Change], tuple[bool, int, Change]]
    ) -> list[Cause]:
        """Return one cause for the same change of several documents, with the location of the nearest of them."""
        groups = self._group_alike(changes)
        nearest = {group: members[0] for group, members in groups.items()}
        close = (change for key in near if key in self._changes.by_key for change in self._changes.by_key[key].changes)
        for change in close:
            if change in changes:
                group = self._describe_alike(change)
                nearest[group] = min(nearest[group], change, key=rank)
        ordered = sorted(nearest.items(), key=lambda entry: rank(entry[1]))
        return [_count_alike(self._write_change(change), len(groups[group])) for group, change in ordered]

    def _group_alike(self, changes: Changes) -> Mapping[_Alike, Sequence[Change]]:
        """Return changes by what is the same in them. Many subjects ask for the same changes."""
        if changes not in self._groups:
            groups: dict[_Alike, list[Change]] = {}
            for change in sorted(changes):
                groups.setdefault(self._describe_alike(change), []).append(change)
            self._groups[changes] = groups
        return self._groups[changes]

    def _describe_alike(self, change: Change) -> _Alike:
        title, _, detail = self._write_change(change).text.partition(" ")
        return title.partition("/")[0], detail

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
        relabelled = self._changes.list_relabelled(change.key) if change.position == WHOLE else []
        if relabelled:
            alike = self._group_alike(frozenset(relabelled))[self._describe_alike(relabelled[0])]
            return _count_alike(self._write_change(relabelled[0]), len(alike))
        difference = document.difference if change.position == WHOLE else document.differences[change.position]
        if difference is None:
            built = self._locate_built(document.built) if document.built.files else None
            location = built or locate_document(shown)
            return Cause(f"{change.key.title} {document.text}", location, removed=removed)
        field = locate_field(shown.origin, difference.pointer)
        found = difference.change
        return Cause(f"{change.key.title}: {found.text}", locate_document(shown), field, change=found)


def _count_alike(cause: Cause, count: int) -> Cause:
    """Return the cause for a number of documents with the same change."""
    if count == 1:
        return cause
    title, _, detail = cause.text.partition(" ")
    return cause._replace(text=f"{title.removesuffix(':')} and {count - 1:,} more{':' if title.endswith(':') else ''} {detail}")
