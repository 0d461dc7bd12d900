"""Find the document on which deciding or planning fails with an unexpected error, and go on without its present content.

Such an error is a bug. It must not stop the decisions about all other documents, so the document counts as broken: its workload keeps
its placement, as with a policy that has an error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Generic, TypeVar

from gitsched.apis.topology import list_cluster_kinds
from gitsched.decide.catalog import RawDocument
from gitsched.decide.registry import reserved_groups
from gitsched.model.document import Key
from gitsched.model.errors import DocumentFault
from gitsched.model.fault import describe_fault
from gitsched.model.finding import Finding, locate_origin
from gitsched.model.system_errors import is_bug

T = TypeVar("T")

MAX_FAULTS = 20
"""The number of searches for a document in one run; with more faults the run fails."""

Attempt = Callable[[Sequence[RawDocument], Collection[Key], Sequence[Finding]], T]
"""Decide or plan with these documents, without the previous records of these keys, and with these findings about both."""


def isolate_faults(documents: Iterable[RawDocument], records: Iterable[Key], attempt: Attempt[T]) -> T:
    """Repeat a failed attempt, each time without one more document or previous record on which it fails.

    `records` are the keys of the previous records. Raise the error of the attempt if it does not depend on a single document.
    """
    return _Isolation(list(documents), sorted(records), attempt).run()


class _Isolation(Generic[T]):
    """One search. `broken` are the documents that count as broken, by position, `dropped` the records that are not read, each with its
    finding. `restored` are documents that count again, because a record was at fault."""

    def __init__(self, documents: list[RawDocument], records: list[Key], attempt: Attempt[T]) -> None:
        self._documents, self._records, self._attempt = documents, records, attempt
        self._broken: dict[int, Finding] = {}
        self._dropped: dict[Key, Finding] = {}
        self._restored: set[int] = set()

    def run(self) -> T:
        for _ in range(MAX_FAULTS):
            try:
                return self._try(self._documents, self._dropped)
            except Exception as error:
                if not is_bug(error) or not (self._break_documents(error) or self._drop_record(error)):
                    raise
        return self._try(self._documents, self._dropped)

    def _try(self, documents: Iterable[RawDocument], dropped: Collection[Key]) -> T:
        findings = (*self._broken.values(), *self._dropped.values())
        return self._attempt([self._mark(document) for document in documents], dropped, findings)

    def _mark(self, document: RawDocument) -> RawDocument:
        return document._replace(broken=True) if self._broken and self._find(document) in self._broken else document

    def _find(self, document: RawDocument) -> int:
        return next((number for number in self._broken if self._documents[number] is document), -1)

    def _break_documents(self, error: Exception) -> bool:
        """Break the documents that the error names, or the one that a search finds; return whether there are any."""
        if not isinstance(error, DocumentFault):
            return self._break_one(error)
        found = {number: fault for key, fault in error.errors.items() for number in self._list_positions(key)}
        found = {number: fault for number, fault in found.items() if number not in self._restored and self._is_usable(number)}
        for number, fault in found.items():
            self._broken[number] = make_fault_finding(self._documents[number], fault)
        return bool(found)

    def _list_positions(self, key: Key) -> list[int]:
        return [
            number
            for number, document in enumerate(self._documents)
            if (document.group, document.kind, document.name) == (key.group, key.kind, key.name)
            and document.namespace in (key.namespace, "")
        ]

    def _is_usable(self, number: int) -> bool:
        return number not in self._broken and not self._documents[number].broken

    def _break_one(self, error: Exception) -> bool:
        """Break the first document with which an attempt fails: first among templates, then among documents of policy APIs, those of
        clusters first. Return whether there is one, and whether the attempt is better without its content."""
        kinds = list_cluster_kinds()
        usable = [number for number in range(len(self._documents)) if self._is_usable(number)]
        templates = [number for number in usable if self._documents[number].group not in reserved_groups]
        others = [number for number in usable if self._documents[number].group in reserved_groups]
        others.sort(key=lambda number: (self._documents[number].group, self._documents[number].kind) not in kinds)
        for candidates in (templates, others):
            fixed = set(range(len(self._documents))) - set(candidates)
            position = self._find_first(candidates, fixed)
            if position is not None:
                number = candidates[position]
                self._broken[number] = make_fault_finding(self._documents[number], error)
                if not self._fails_with({*fixed, *candidates[: position + 1]}):
                    return True
                del self._broken[number]
                return False
        return False

    def _find_first(self, candidates: Sequence[int], fixed: Collection[int]) -> int | None:
        return _find_first_failure(len(candidates), lambda count: self._fails_with({*fixed, *candidates[:count]}))

    def _fails_with(self, included: Collection[int]) -> bool:
        return self._fails([document for number, document in enumerate(self._documents) if number in included], self._dropped)

    def _drop_record(self, error: Exception) -> bool:
        """Search the first previous record with which an attempt fails, and drop it. Return whether there is one.

        Broken documents that the error names count again: without its record such a workload is decided anew, and does not go.
        """
        named = {
            number for key in (error.errors if isinstance(error, DocumentFault) else ()) for number in self._list_positions(key)
        }
        self._restored |= named
        self._broken = {number: finding for number, finding in self._broken.items() if number not in named}
        kept = [key for key in self._records if key not in self._dropped]
        position = _find_first_failure(len(kept), lambda count: self._fails(self._documents, {*self._dropped, *kept[count:]}))
        if position is not None:
            self._dropped[kept[position]] = _make_record_finding(kept[position], error)
        return position is not None

    def _fails(self, documents: Iterable[RawDocument], dropped: Collection[Key]) -> bool:
        try:
            self._try(documents, dropped)
        except Exception as error:
            if not is_bug(error):
                raise
            return True
        return False


def _find_first_failure(size: int, fails: Callable[[int], bool]) -> int | None:
    """Return the position whose addition makes the first entries fail; None if they fail without any, or do not fail at all."""
    if not size or fails(0) or not fails(size):
        return None
    good, bad = 0, size
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if fails(middle) else (middle, bad)
    return good


def make_fault_finding(document: RawDocument, error: BaseException) -> Finding:
    """Return the error about a document that could not be handled."""
    name = "/".join(filter(None, (document.namespace, document.name)))
    message = (
        f"{describe_fault(error)} while {document.kind or 'a document'} {name} was handled: it counts as broken, and what it placed stays; "
        "report this bug with the id, and change or remove what is unusual in the document"
    )
    resource = document.kind, document.namespace, document.name
    return Finding("error", "internal-error", message, locate_origin(document.origin) if document.origin else None, resource)


def _make_record_finding(key: Key, error: BaseException) -> Finding:
    message = (
        f"{describe_fault(error)} while the previous record {key} was read: it counts as missing, and what it describes is decided again; "
        "report this bug with the id"
    )
    return Finding("error", "internal-error", message, None, key.resource)
