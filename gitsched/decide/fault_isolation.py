"""Find the document on which deciding or planning fails with an unexpected error, and go on without its present content.

Such an error is a bug. It must not stop the decisions about all other documents, so the document counts as broken: its workload keeps
its placement, as with a policy that has an error. A document that cannot be handled as a broken one either is skipped, with the previous
records of its workload: the caller keeps its files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Generic, TypeVar

from gitsched.apis.topology import list_cluster_kinds
from gitsched.decide.catalog import RawDocument
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.fault_suspects import MAX_SUSPECTS, FaultSuspects
from gitsched.decide.registry import reserved_groups
from gitsched.decide.skipped_workloads import OwnedRecords
from gitsched.model.bisection import bisect_failures
from gitsched.model.document import Body, Key
from gitsched.model.errors import DocumentFault
from gitsched.model.fault import describe_fault
from gitsched.model.finding import INTERNAL_ERROR, Finding, locate_origin
from gitsched.model.system_errors import is_bug
from gitsched.named_tuples import NamedTuple

T = TypeVar("T")

MAX_FAULTS = 5
"""The number of searches for a document in one plan. With more faults a run searches among the files of the source, by tenant and
directory (`gitsched.reconcile.source.quarantined_documents`), and `gitsched.schedule` fails."""


class Isolated(NamedTuple):
    """What an attempt leaves out because of bugs: the keys of previous records that it does not read, the documents that it does not have,
    and the findings about these and about the documents that count as broken."""

    records: Collection[Key] = ()
    skipped: tuple[RawDocument, ...] = ()
    findings: tuple[Finding, ...] = ()


Attempt = Callable[[Sequence[RawDocument], Isolated], T]
"""Decide or plan with these documents."""


def isolate_faults(
    documents: Iterable[RawDocument], records: Mapping[Key, Body], attempt: Attempt[T], decisions: Callable[[T], DecisionSet]
) -> T:
    """Repeat a failed attempt, each time without one more document or previous record on which it fails.

    `decisions` returns those of an attempt. Raise the error of the attempt if it does not depend on a single document.
    """

    def count(made: T) -> int:
        found = decisions(made)
        return sum(outcome.state == "placed" for outcome in found.outcomes.values()) + len(found.recorded)

    return _Isolation(list(documents), records, attempt, count).run()


class _Isolation(Generic[T]):
    """One search. `broken` are the documents that count as broken, by position, `skipped` those that the attempts do not have, `dropped`
    the records that are not read, each with its finding. `restored` are documents that count again, because a record was at fault."""

    def __init__(
        self, documents: list[RawDocument], records: Mapping[Key, Body], attempt: Attempt[T], count: Callable[[T], int]
    ) -> None:
        self._documents, self._records, self._attempt, self._count = documents, records, attempt, count
        self._broken: dict[int, Finding] = {}
        self._skipped: dict[int, Finding] = {}
        self._dropped: dict[Key, Finding] = {}
        self._restored: set[int] = set()

    def run(self) -> T:
        for _ in range(MAX_FAULTS):
            try:
                return self._try(range(len(self._documents)), self._dropped)
            except Exception as error:
                if not is_bug(error) or not self._leave_out(error):
                    raise
        return self._try(range(len(self._documents)), self._dropped)

    def _leave_out(self, error: Exception) -> bool:
        if self._break_documents(error) or self._drop_record(error):
            self._skip_without_records()
            return True
        return self._skip_documents(error)

    def _try(self, included: Iterable[int], dropped: Collection[Key]) -> T:
        findings = (*self._broken.values(), *self._skipped.values(), *self._dropped.values())
        skipped = tuple(self._documents[number] for number in self._skipped)
        documents = [self._mark(number) for number in included if number not in self._skipped]
        return self._attempt(documents, Isolated(dropped, skipped, findings))

    def _mark(self, number: int) -> RawDocument:
        document = self._documents[number]
        return document._replace(broken=True) if number in self._broken else document

    def _break_documents(self, error: Exception) -> bool:
        """Break the documents that the error names, or the one that a search finds; return whether there are any."""
        if not isinstance(error, DocumentFault):
            return self._break_suspect(error) or self._break_one(error)
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
        return number not in self._broken and number not in self._skipped and not self._documents[number].broken

    def _break_suspect(self, error: Exception) -> bool:
        """Break a document that the functions had as a value in which the error was raised, if the attempt does not fail there then."""
        suspects = [number for number in self._suspects.list(error) if self._is_usable(number) and number not in self._restored]
        for number in suspects[:MAX_SUSPECTS]:
            self._broken[number] = make_fault_finding(self._documents[number], error)
            other = self._find_fault(range(len(self._documents)), self._dropped)
            if other is None or (describe_fault(other) != describe_fault(error) and number not in self._suspects.list(other)):
                return True
            if number == suspects[0] and number not in self._suspects.list(other):
                return True  # another document has the same fault
            del self._broken[number]
        return False

    @cached_property
    def _suspects(self) -> FaultSuspects:
        origins = (document.origin for document in self._documents)
        places = ((origin.blob, origin.index, origin.item) if origin is not None else None for origin in origins)
        return FaultSuspects(zip((document.body for document in self._documents), places, strict=True))

    def _break_one(self, error: Exception) -> bool:
        """Break or skip a document without whose content an attempt does not fail; return whether there is one.

        An attempt may need both a template and a policy to fail. The one without which more is decided is at fault, and where that is
        equal, the one that has a record of its own.
        """
        best: tuple[tuple[int, bool], int, bool] | None = None
        for candidates in self._group_candidates([n for n in range(len(self._documents)) if self._is_usable(n)]):
            fixed = set(range(len(self._documents))) - set(candidates)

            position = self._find_first(candidates, fixed)
            if position is None:
                continue
            number, included = candidates[position], fixed.union(candidates[: position + 1])
            for is_broken, left_out in ((True, self._broken), (False, self._skipped)):
                left_out[number] = make_fault_finding(self._documents[number], error)
                decided = self._count_decided(included)
                if decided is not None:  # unless other documents fail as well, all of them count
                    decided = max(decided, self._count_decided(range(len(self._documents))) or 0)
                del left_out[number]
                if decided is not None:
                    decided += not is_broken  # what a skipped one has stays
                    rank = decided, bool(self._owned.list_of([self._documents[number]]))
                    best = (rank, number, is_broken) if best is None or rank > best[0] else best
                    break
        if best is not None:
            (self._broken if best[2] else self._skipped)[best[1]] = make_fault_finding(self._documents[best[1]], error)
        return best is not None

    def _find_first(self, candidates: Sequence[int], fixed: set[int]) -> int | None:
        """Return the position of the first candidate with which an attempt fails.

        A document that is left out on trial is left out with the records of its workload: otherwise the attempt would handle its removal.
        """

        def fails(count: int) -> bool:
            absent = [self._documents[number] for number in candidates[count:]]
            return self._fails(fixed.union(candidates[:count]), {*self._dropped, *self._owned.list_of(absent)})

        return _find_first_failure(len(candidates), fails)

    def _count_decided(self, included: Iterable[int]) -> int | None:
        """Return how much an attempt decides; None if it fails."""
        try:
            return self._count(self._try(sorted(included), self._dropped))
        except Exception as error:
            if not is_bug(error):
                raise
            return None

    def _group_candidates(self, numbers: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the templates among documents, and the documents of policy APIs, those of clusters first."""
        kinds = list_cluster_kinds()
        templates = [number for number in numbers if self._documents[number].group not in reserved_groups]
        others = [number for number in numbers if self._documents[number].group in reserved_groups]
        others.sort(key=lambda number: (self._documents[number].group, self._documents[number].kind) not in kinds)
        return templates, others

    def _drop_record(self, error: Exception) -> bool:
        """Search the first previous record with which an attempt fails, and drop it. Return whether there is one.

        Broken documents that the error names count again: without its record such a workload is decided anew, and does not go.
        """
        named = {
            number for key in (error.errors if isinstance(error, DocumentFault) else ()) for number in self._list_positions(key)
        }
        self._restored |= named
        self._broken = {number: finding for number, finding in self._broken.items() if number not in named}
        kept = [key for key in sorted(self._records) if key not in self._dropped]
        every = range(len(self._documents))
        position = _find_first_failure(len(kept), lambda count: self._fails(every, {*self._dropped, *kept[count:]}))
        if position is not None:
            self._dropped[kept[position]] = _make_record_finding(kept[position], error)
            self._skip_owners(kept[position], error)
        return position is not None

    def _skip_owners(self, record: Key, error: Exception) -> None:
        """Skip the documents of the workload of a record that is not read, so that its files stay, if an attempt succeeds then."""
        owners = set(self._owned.find_owners(record, self._documents)) - self._skipped.keys()
        if owners and not self._fails(sorted(set(range(len(self._documents))) - owners), self._dropped):
            self._skip(dict.fromkeys(owners, error))
            self._dropped[record] = _make_record_finding(record, error, "what it describes stays as it is")

    def _skip_documents(self, error: Exception) -> bool:
        """Skip the documents that the error names, or the first one with which an attempt fails; return whether there are any."""
        if isinstance(error, DocumentFault):
            found = {number: fault for key, fault in error.errors.items() for number in self._list_positions(key)}
            found = {number: fault for number, fault in found.items() if number not in self._skipped}
            self._skip(found)
            return bool(found)
        for candidates in self._group_candidates([n for n in range(len(self._documents)) if n not in self._skipped]):
            fixed = set(range(len(self._documents))) - set(candidates)
            position = self._find_first(candidates, fixed)
            if position is not None:
                self._skip({candidates[position]: error})
                return True
        return False

    def _skip_without_records(self) -> None:
        """Skip broken documents whose record is not read: without it, what they placed would not stay."""
        for number in list(self._broken) if self._dropped else ():
            if not self._dropped.keys().isdisjoint(self._owned.list_of([self._documents[number]])):
                self._skipped[number] = self._broken.pop(number)

    @cached_property
    def _owned(self) -> OwnedRecords:
        return OwnedRecords(self._records)

    def _skip(self, found: Mapping[int, Exception]) -> None:
        for number, fault in found.items():
            self._broken.pop(number, None)
            self._skipped[number] = make_fault_finding(self._documents[number], fault)

    def _fails(self, included: Iterable[int], dropped: Collection[Key]) -> bool:
        return self._find_fault(included, dropped) is not None

    def _find_fault(self, included: Iterable[int], dropped: Collection[Key]) -> Exception | None:
        """Return the unexpected error of an attempt with some documents; None if there is none."""
        try:
            self._try(sorted(included), dropped)
        except Exception as error:
            if not is_bug(error):
                raise
            return error
        return None


def _find_first_failure(size: int, fails: Callable[[int], bool]) -> int | None:
    """Return the position whose addition makes the first entries fail; None if they fail without any, or do not fail at all."""
    return None if not size or fails(0) or not fails(size) else bisect_failures(size, fails)


def make_fault_finding(document: RawDocument, error: BaseException) -> Finding:
    """Return the error about a document that could not be handled."""
    name = "/".join(filter(None, (document.namespace, document.name)))
    message = (
        f"{describe_fault(error)} while {document.kind or 'a document'} {name} was handled: it counts as broken, and what it placed stays; "
        "report this bug with the id, and change or remove what is unusual in the document"
    )
    resource = document.kind, document.namespace, document.name
    return Finding("error", INTERNAL_ERROR, message, locate_origin(document.origin) if document.origin else None, resource)


def _make_record_finding(key: Key, error: BaseException, effect: str = "what it describes is decided again") -> Finding:
    message = (
        f"{describe_fault(error)} while the previous record {key} was read: it counts as missing, and {effect}; "
        "report this bug with the id"
    )
    return Finding("error", INTERNAL_ERROR, message, None, key.resource)
