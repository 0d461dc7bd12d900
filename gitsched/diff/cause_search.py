"""Search for the changes whose reversal undoes moves, and prove each by deciding again.

Workloads whose moves look alike share a search: it is made for one of them, and the result is proved for each of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from gitsched.diff.document_changes import OBSERVATIONS, TIME, Change, DocumentChanges
from gitsched.model.document import Key

MAX_SETS = 5
"""The maximum number of sets of changes that are named for one move, each of which undoes it."""
_MAX_ROUNDS = 100
"""The maximum number of times that workloads are divided into smaller groups because a result does not hold for some of them."""

Changes = frozenset[Change]
_Search = Generator[Sequence[Changes], Sequence[bool], tuple[Changes, ...]]
"""A search yields sets of changes, and receives whether taking each back undoes the move. It returns the sets that explain it."""


class Subject(NamedTuple):
    """What changes: the placement of a workload, or another aspect of a document.

    `aspect` is a noun for the targets of the recorded decision about it, or the failure domain whose loss it suffers from.
    """

    key: Key
    aspect: str = ""


Request = tuple[Subject, Changes]
Rank = Callable[[Subject, Key], int]
"""The relevance of a changed document to a subject: 0 for its own, the smaller the higher."""


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

    def evaluate(self, requests: Iterable[Request], /) -> Mapping[Request, bool]:
        """Return for each request whether taking the changes back undoes the change of the subject."""
        ...


class SearchSpace(NamedTuple):
    """What the search knows: the documents with the smallest ranks, up to each of `nearest`, are tried together before all of them.
    `group` says which moves look alike.
    """

    rank: Rank
    nearest: Sequence[int]
    group: Callable[[Subject], Hashable]


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
    affordable = counterfactuals.remaining // (3 * (counterfactuals.engine_cost + len(subjects)))
    searches = {subject: _search(subject, pool, counterfactuals, space, affordable) for subject in subjects}
    steps: dict[Subject, Sequence[Changes]] = {}
    found: dict[Subject, tuple[Changes, ...]] = {}
    answers: Mapping[Request, bool] = {}
    while searches:
        for subject, search in list(searches.items()):
            received = [answers[subject, changes] for changes in steps[subject]] if subject in steps else None
            try:
                steps[subject] = next(search) if received is None else search.send(received)
            except StopIteration as end:
                found[subject] = end.value
                del searches[subject]
        answers = counterfactuals.evaluate((subject, changes) for subject in searches for changes in steps[subject])
    return found


def _search(subject: Subject, pool: Changes, counterfactuals: Counterfactuals, space: SearchSpace, affordable: int) -> _Search:
    """Search the smallest sets of changes that undo a move which taking back the whole pool undoes.

    Documents that undo it alone come first. Else, documents are left out one after the other as long as the rest undoes it.
    """
    by_key: dict[Key, set[Change]] = {}
    for change in pool:
        by_key.setdefault(change.key, set()).add(change)
    ranks = {key: space.rank(subject, key) for key in by_key}
    ordered = sorted(by_key, key=lambda key: (ranks[key], key))
    documents = [frozenset(by_key[key]) for key in ordered]
    tried = documents[: max(affordable, sum(rank <= max(space.nearest) for rank in ranks.values()))]
    alone = yield tried
    sets: list[Changes] = []
    for document, undone in zip(tried, alone, strict=True):
        if undone and len(sets) < MAX_SETS:
            sets += yield from _narrow(document)
    if not sets:
        start = documents
        for nearest in space.nearest:
            near = [document for key, document in zip(ordered, documents, strict=True) if ranks[key] <= nearest]
            if 1 < len(near) < len(documents) and (yield [_unite(near)])[0]:
                start = near
                break
        kept = yield from _minimize(start)
        fields = yield from _minimize([frozenset({change}) for document in kept for change in sorted(document)])
        if counterfactuals.exhausted:
            return ()  # the rest is too large to be named
        sets = [_unite(fields)]
    return tuple(sets[:MAX_SETS])


def _narrow(document: Changes) -> Generator[Sequence[Changes], Sequence[bool], list[Changes]]:
    """Return the fields of a document that undo a move alone, else the fewest that undo it together."""
    fields = [frozenset({change}) for change in sorted(document)]
    if len(fields) == 1:
        return fields
    alone = yield fields
    found = [field for field, undone in zip(fields, alone, strict=True) if undone]
    return found or [_unite((yield from _minimize(fields)))]


def _minimize(sets: Sequence[Changes]) -> Generator[Sequence[Changes], Sequence[bool], list[Changes]]:
    """Leave out sets as long as the union of the others undoes a move: first many at a time, the last ones first, then each one."""
    kept, size = list(sets), len(sets) // 2
    while size and len(kept) > 1:
        end = len(kept)
        while end > 0:
            start = max(end - size, 0)
            others = kept[:start] + kept[end:]
            if others and (yield [_unite(others)])[0]:
                kept = others
            end = start
        size //= 2
    return kept


def _unite(sets: Iterable[Changes]) -> Changes:
    return frozenset[Change]().union(*sets)
