"""The search for causes: its work is limited, and it ends when the limit is reached."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from gitsched.diff.cause_search import Changes, Request, SearchSpace, Subject, find_explanations
from gitsched.diff.document_changes import Change, DocumentChanges
from gitsched.model.document import Key


class _Document:
    def __init__(self, key: Key) -> None:
        self.changes = (Change(key, 0), Change(key, 1))


class _AllNeeded:
    """A move of each workload that only taking back everything undoes, and work for a few answers."""

    def __init__(self, documents: int, limit: int) -> None:
        found = {key: _Document(key) for key in (_name("PropagationPolicy", number) for number in range(documents))}
        self.pool = frozenset(change for document in found.values() for change in document.changes)
        self.changes = cast(DocumentChanges, _Changes(found))
        self.remaining, self.engine_cost, self.exhausted, self.received = limit, 1, False, 0

    def may_evaluate(self, *, optional: bool) -> bool:
        return self.remaining > 0

    def evaluate(self, requests: Iterable[Request], /, *, optional: bool = False) -> dict[Request, bool]:
        answers = {}
        for subject, changes in requests:
            self.received += 1
            self.remaining -= self.remaining > 0
            answers[subject, changes] = changes == self.pool
        return answers


class _Changes:
    others: tuple[Key, ...] = ()
    time_differs = False

    def __init__(self, by_key: Any) -> None:
        self.by_key = by_key

    def list_changes(self, key: Key) -> Changes:
        return frozenset()


def _name(kind: str, number: int) -> Key:
    return Key("", kind, "default", f"{number:03}")


def test_a_search_ends_when_no_evaluation_is_left() -> None:
    subjects = [Subject(_name("Deployment", number)) for number in range(50)]
    placements = _AllNeeded(100, limit=500)
    space = SearchSpace(lambda subject: (), [[placements.pool]], lambda subject: subject)
    found = find_explanations(subjects, placements, space)
    assert found == dict.fromkeys(subjects, (placements.pool,))
    assert placements.received < 800
