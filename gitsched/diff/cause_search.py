"""Search for the changes whose reversal undoes moves, and prove each by deciding again.

Workloads whose moves look alike share a search: it is made for one of them, and the result is proved for each of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Mapping, Sequence
from typing import Protocol

from gitsched.diff.document_changes import OBSERVATIONS, TIME, Change, DocumentChanges
from gitsched.model.document import Key
from gitsched.named_tuples import NamedTuple

MAX_SETS = 5
"""The maximum number of sets of changes that are named for one move, each of which undoes it."""
_SHARE = 4
"""The first step of all searches may take one part in this of the work that is left; the units are as small as that allows."""
_MAX_ROUNDS = 100
"""The maximum number of times that workloads are divided into smaller groups because a result does not hold for some of them."""

Changes = frozenset[Change]


class Subject(NamedTuple):
    """What changes: the placement of a workload, or another aspect of a document.

    `aspect` is a noun for the targets of the recorded decision about it, or the failure domain whose loss it suffers from.
    """

    key: Key
    aspect: str = ""


Request = tuple[Subject, Changes]


class Counterfactuals(Protocol):
    """Says of changes whether taking them back undoes the change of a subject.

    The work is counted in decisions of one workload, so the same input always gets the same answers. When none are `remaining`, `exhausted`
    is true and every further answer is no.
    """

    changes: DocumentChanges
    exhausted: bool

    @property
    def remaining(self) -> int:
        """The decisions that are left."""
        ...

    @property
    def engine_cost(self) -> int:
        """The cost of one evaluation without its decisions."""
        ...

    def may_evaluate(self, *, optional: bool) -> bool:
        """Return whether enough decisions are left for another evaluation."""
        ...

    def evaluate(self, requests: Iterable[Request], /, *, optional: bool = False) -> Mapping[Request, bool]:
        """Return for each request whether taking the changes back undoes the change of the subject.

        `optional` requests are only answered while most of the decisions are left.
        """
        ...


class SearchSpace(NamedTuple):
    """What the search knows of the changes.

    `list_near` returns the documents that are closest to a subject: its own, its policies and its clusters. `levels` are lists of units,
    from small to large ones: sets of changes that are taken back as a whole before their parts are, and that together have all changes.
    `group` says which moves look alike.
    """

    list_near: Callable[[Subject], Sequence[Key]]
    levels: Sequence[Sequence[Changes]]
    group: Callable[[Subject], Hashable]


class _Step(NamedTuple):
    """Sets of changes to take back, one after the other."""

    sets: Sequence[Changes]
    optional: bool = False


_Search = Generator[_Step, Sequence[bool], tuple[Changes, ...]]
"""A search yields steps and receives for each set whether taking it back undoes the move. It returns the sets that explain the move."""
_Part = Generator[_Step, Sequence[bool], list[Changes]]
"""A part of a search, which returns sets in the same way."""


def find_explanations(
    subjects: Iterable[Subject], counterfactuals: Counterfactuals, space: SearchSpace
) -> dict[Subject, tuple[Changes, ...]]:
    """Return the sets of changes that explain each move: taking back all changes of a set undoes it, and of no smaller one of them.

    A subject without a result has no proved explanation.
    """
    changes = counterfactuals.changes
    documents = frozenset(change for document in changes.by_key.values() for change in document.changes)
    documents |= {Change(key) for key in changes.others if key != OBSERVATIONS}
    conditions = [Change(key) for key in changes.others if key == OBSERVATIONS] + [Change(TIME)] * changes.time_differs
    found: dict[Subject, tuple[Changes, ...]] = {}
    rest, searched = list(subjects), []
    pools = [documents, *(frozenset({condition}) for condition in conditions), documents.union(conditions)]
    for pool in dict.fromkeys(filter(None, pools)):
        answers = counterfactuals.evaluate((subject, pool) for subject in rest)
        explained = [subject for subject in rest if answers[subject, pool]]
        rest = [subject for subject in rest if not answers[subject, pool]]
        if len(pool) == 1:
            found.update(dict.fromkeys(explained, (pool,)))
        elif explained:
            searched.append((pool, explained))
    for pool, explained in searched:
        found.update(_search_in_groups(pool, explained, counterfactuals, space))
    return found


def _search_in_groups(
    pool: Changes, subjects: Iterable[Subject], counterfactuals: Counterfactuals, space: SearchSpace
) -> dict[Subject, tuple[Changes, ...]]:
    groups: dict[Hashable, list[Subject]] = {}
    for subject in subjects:
        groups.setdefault(space.group(subject), []).append(subject)
    pending, found = sorted(groups.values(), key=len, reverse=True), {}
    for _ in range(_MAX_ROUNDS):
        first = _run_searches([group[0] for group in pending], pool, counterfactuals, space)
        found.update({subject: sets for subject, sets in first.items() if sets})
        requests = {
            (group[0], member): [(member, _transfer(changes, group[0], member)) for changes in first[group[0]]]
            for group in pending
            for member in group[1:]
        }
        answers = counterfactuals.evaluate(request for each in requests.values() for request in each)
        for (_, member), each in requests.items():
            proved = tuple(request[1] for request in each if answers[request])
            if proved:
                found[member] = proved
        pending = [rest for group in pending if (rest := [subject for subject in group[1:] if subject not in found])]
        if not pending or counterfactuals.exhausted:
            break
    return found


def _transfer(changes: Changes, subject: Subject, other: Subject) -> Changes:
    """Return changes with those of a workload's own document replaced by the same ones of another workload."""
    return frozenset(change._replace(key=other.key) if change.key == subject.key else change for change in changes)


def _run_searches(
    subjects: Collection[Subject], pool: Changes, counterfactuals: Counterfactuals, space: SearchSpace
) -> dict[Subject, tuple[Changes, ...]]:
    """Run the searches for several subjects step by step, so that they share evaluations."""
    affordable = counterfactuals.remaining // (_SHARE * (counterfactuals.engine_cost + len(subjects)))
    units = next((level for level in space.levels if len(level) <= affordable), space.levels[-1])
    near = {subject: space.list_near(subject) for subject in subjects}
    searches = {subject: _search(subject, pool, counterfactuals, units, near[subject]) for subject in subjects}
    steps: dict[Subject, _Step] = {}
    found: dict[Subject, tuple[Changes, ...]] = {}
    answers: dict[Request, bool] = {}
    while searches:
        for subject, search in list(searches.items()):
            received = [answers[subject, changes] for changes in steps[subject].sets] if subject in steps else None
            try:
                steps[subject] = next(search) if received is None else search.send(received)
            except StopIteration as end:
                found[subject] = end.value
                del searches[subject]
        answers = {}
        for optional in (False, True):
            wanted = ((subject, changes) for subject in searches for changes in steps[subject].sets)
            requests = [request for request in wanted if steps[request[0]].optional == optional]
            answers |= counterfactuals.evaluate(requests, optional=optional)
    return found


def _search(
    subject: Subject, pool: Changes, counterfactuals: Counterfactuals, all_units: Iterable[Changes], near: Sequence[Key]
) -> _Search:
    """Search the smallest sets of changes that undo a move which taking back the whole pool undoes.

    Units that undo it alone come first. Else, units are left out one after the other as long as the rest undoes it. What is found is
    divided into documents and fields as far as the work allows; each set that is kept is proved.
    """
    if len(pool) == 1:
        return (pool,)
    own = counterfactuals.changes.list_changes(subject.key) & pool
    units = list(dict.fromkeys(filter(None, [own, *(unit & pool for unit in all_units)])))
    alone = yield _Step(units)
    found = [unit for unit, undone in zip(units, alone, strict=True) if undone and unit != pool]
    found = [unit for unit in found if not any(other < unit for other in found)]
    sets: list[Changes] = []
    for unit in found[:MAX_SETS]:
        sets += yield from _divide(unit, counterfactuals, near)
    if not sets:
        kept = _unite((yield from _minimize(units, counterfactuals, optional=False)))
        if counterfactuals.exhausted:
            return ()  # the rest is too large to be named
        sets += yield from _divide(kept, counterfactuals, near)
    return tuple(dict.fromkeys(sets))[:MAX_SETS]


def _divide(changes: Changes, counterfactuals: Counterfactuals, near: Sequence[Key]) -> _Part:
    """Return the documents of a set of changes that undo a move alone, else the fewest that undo it together, and of these the fields."""
    if not counterfactuals.may_evaluate(optional=True):
        return [changes]
    by_key: dict[Key, set[Change]] = {}
    for change in changes:
        by_key.setdefault(change.key, set()).add(change)
    close = [frozenset(by_key[key]) for key in near if key in by_key]
    if len(by_key) > 1 and close:
        alone = yield _Step(close, optional=True)
        found = [document for document, undone in zip(close, alone, strict=True) if undone]
        if found:
            sets = []
            for document in found[:MAX_SETS]:
                sets += yield from _divide(document, counterfactuals, near)
            return sets
        if 1 < len(close) < len(by_key) and (yield _Step([_unite(close)], optional=True))[0]:
            return (yield from _divide(_unite(close), counterfactuals, ()))
    if len(by_key) > 1:
        documents = yield from _minimize([frozenset(by_key[key]) for key in sorted(by_key)], counterfactuals, optional=True)
        return [_unite((yield from _minimize_fields(_unite(documents), counterfactuals)))]
    fields = [frozenset({change}) for change in sorted(changes)]
    if len(fields) == 1:
        return fields
    alone = yield _Step(fields, optional=True)
    found = [field for field, undone in zip(fields, alone, strict=True) if undone]
    return found or [_unite((yield from _minimize_fields(changes, counterfactuals)))]


def _minimize_fields(changes: Changes, counterfactuals: Counterfactuals) -> _Part:
    return (yield from _minimize([frozenset({change}) for change in sorted(changes)], counterfactuals, optional=True))


def _minimize(sets: Sequence[Changes], counterfactuals: Counterfactuals, *, optional: bool) -> _Part:
    """Leave out sets as long as the union of the others undoes a move: first many at a time, the last ones first, then each one.

    End when no further evaluation is possible: each step without an answer would still cost time.
    """
    kept, size = list(sets), len(sets) // 2
    while size and len(kept) > 1:
        end = len(kept)
        while end > 0:
            if not counterfactuals.may_evaluate(optional=optional):
                return kept
            start = max(end - size, 0)
            others = kept[:start] + kept[end:]
            if others and (yield _Step([_unite(others)], optional))[0]:
                kept = others
            end = start
        size //= 2
    return kept


def _unite(sets: Iterable[Changes]) -> Changes:
    return frozenset[Change]().union(*sets)
