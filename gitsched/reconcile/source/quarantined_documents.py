"""Leave out the documents of a source on which reading, building, observing or planning it fails with an unexpected error.

Such an error is a bug, and must not stop what is decided about all other documents. The plan of a commit isolates most bugs itself
(`gitsched.decide.fault_isolation`); this is for those that show before a plan is made, such as while directories are built, and for those
that are too many. A document that is left out counts as broken wherever files are read: its last valid version applies, and what it
placed stays.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

from gitsched.apis.gitsched.config import FILE, GROUP
from gitsched.apis.topology import list_cluster_kinds
from gitsched.decide.fault_suspects import MAX_SUSPECTS, FaultSuspects, Place, list_frame_origins
from gitsched.decide.registry import reserved_groups
from gitsched.manifests.parsed_file import ABSENT, FileIssue, ParsedDocument
from gitsched.model.bisection import bisect_failures
from gitsched.model.document import Body, get_field, parse_api_group
from gitsched.model.errors import DocumentFault, GitschedError
from gitsched.model.fault import describe_fault
from gitsched.model.finding import INTERNAL_ERROR, format_count
from gitsched.model.system_errors import is_bug
from gitsched.model.tenants import TENANT
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.run import Fetched, RunContext
from gitsched.reconcile.source.config_file import read_config
from gitsched.reconcile.source.source_reader import SourceReader, list_manifests

T = TypeVar("T")

MAX_OWNER_FAULTS = 5
"""Documents of one tenant or directory that are left out one by one; with more, all of its documents are."""
MAX_FAULTS = 20
"""Documents that are left out one by one. After that, tenants and directories are tried one by one, and what fails without any single
document of one is left out with all documents of a tenant or directory."""


class SourceDocument(NamedTuple):
    """A document of a file. `owner` is the tenant or the directory that it belongs to."""

    owner: str
    path: str
    blob: str
    parsed: ParsedDocument

    @property
    def place(self) -> Place:
        """What identifies the document."""
        return self.blob, self.parsed.index, self.parsed.item


def quarantine_faults(context: RunContext, fetched: Fetched, attempt: Callable[[], T], error: Exception) -> T:
    """Repeat a failed attempt without the documents on which it fails. Raise the error if it does not depend on them."""
    reader = _open_reader(context, fetched)
    return _Search(context, reader, list_source_documents(reader, fetched.source.tree), attempt).run(error)


def _open_reader(context: RunContext, fetched: Fetched) -> SourceReader:
    """Return a reader that returns the same files as that of the run."""
    repository, cache = context.source.repository, context.caches.files
    config = read_config(repository, fetched.source.tree, cache)
    strict = context.settings.strict or (config is not None and config.source.strict)
    return SourceReader(repository, cache, config, strict=strict)


def list_source_documents(reader: SourceReader, tree: str) -> list[SourceDocument]:
    """Return the documents of a tree, sorted by owner."""
    files = [(entry.path, entry.blob) for entry in list_manifests(reader.repository.entries(tree)) if entry.path != FILE]
    found = [(path, blob, parsed) for path, blob in files for parsed in reader.read(blob, path).documents]
    paths = {directory for *_, parsed in found for directory in _list_tenant_paths(parsed.body)}
    directories = sorted(paths, key=len, reverse=True)
    owned = (SourceDocument(_find_owner(path, directories), path, blob, parsed) for path, blob, parsed in found)
    return sorted(owned, key=lambda document: (document.owner, document.path, document.parsed.index, document.parsed.item))


def _list_tenant_paths(body: Mapping[str, Any]) -> Iterator[str]:
    if body.get("kind") == TENANT and parse_api_group(str(body.get("apiVersion"))) == GROUP:
        paths = get_field(dict(body), "spec", "paths")
        yield from (path.strip("/") for path in paths if isinstance(path, str)) if isinstance(paths, list) else ()


def _find_owner(path: str, directories: Sequence[str]) -> str:
    """Return the directory of the Tenant that has a path, else its first two directories, else the path itself."""
    tenant = next((directory for directory in directories if path.startswith(f"{directory}/")), "")
    return tenant or "/".join(posixpath.dirname(path).split("/")[:2]) or path


class _Search(Generic[T]):
    """A search for the documents that are left out: each with the error that it causes, by its position.

    After MAX_FAULTS of them, each tenant or directory is tried without the others, in halves of halves: attempts with few documents cost
    little, so that all of these attempts cost about as much as some with all documents.
    """

    def __init__(
        self, context: RunContext, reader: SourceReader, documents: list[SourceDocument], attempt: Callable[[], T]
    ) -> None:
        self._context, self._reader, self._documents, self._attempt = context, reader, documents, attempt
        self._left_out: dict[int, Exception] = {}
        self._absent: frozenset[int] = frozenset()
        self._whole: dict[str, Exception] = {}
        self._by_owner: dict[str, list[int]] = {}
        for number, document in enumerate(documents):
            self._by_owner.setdefault(document.owner, []).append(number)

    def run(self, error: Exception) -> T:
        is_separated = False
        while True:
            error = _find_cause(error)
            if not is_separated and len(self._left_out) >= MAX_FAULTS:
                is_separated = True
                self._separate_owners()
            else:
                number = self._find_faulty(error)
                if number is None:
                    self._context.caches.set_quarantine({})
                    raise error
                self._leave_out(number, error)
            try:
                return self._try(self._left_out)
            except Exception as other:
                if not is_bug(other):
                    raise
                error = other

    def _leave_out(self, number: int, error: Exception) -> None:
        owner = self._documents[number].owner
        self._left_out[number] = error
        if self._count_faults(owner) > MAX_OWNER_FAULTS or len(self._left_out) > MAX_FAULTS:
            self._leave_out_owner(owner, error)

    def _count_faults(self, owner: str) -> int:
        return sum(each in self._left_out for each in self._by_owner[owner])

    def _leave_out_owner(self, owner: str, error: Exception) -> None:
        self._whole[owner] = error
        self._left_out |= dict.fromkeys(self._by_owner[owner], error)

    def _separate_owners(self) -> None:
        """Leave out the documents with which an attempt fails that has no other ones of owners, but those for all."""
        shared = {number for number, document in enumerate(self._documents) if _is_shared(document.parsed.body)}
        self._try_alone(shared, MAX_FAULTS)
        groups = [sorted(owner for owner in self._by_owner if owner not in self._whole)]
        while groups:
            group = groups.pop()
            present = shared.union(*(self._by_owner[owner] for owner in group))
            if len(group) > 1:
                self._absent = frozenset(range(len(self._documents))) - present
                if self._find_fault(self._left_out) is not None:
                    groups += [group[: len(group) // 2], group[len(group) // 2 :]]
            elif group and (error := self._try_alone(present, MAX_OWNER_FAULTS - self._count_faults(group[0]))) is not None:
                self._leave_out_owner(group[0], error)
        self._absent = frozenset()

    def _try_alone(self, present: Collection[int], limit: int) -> Exception | None:
        """Leave out documents with which an attempt fails that has only these, up to a limit; return the error that remains."""
        self._absent = frozenset(range(len(self._documents))).difference(present)
        for _ in range(limit):
            error = self._find_fault(self._left_out)
            if error is None:
                return None
            number = self._find_faulty(error)
            if number is None:
                return None  # it fails without any document
            self._left_out[number] = error
        return self._find_fault(self._left_out)

    def _try(self, left_out: Mapping[int, Exception]) -> T:
        quarantine: dict[str, dict[tuple[int, int], FileIssue | None]] = {}
        told: set[str] = set()
        for number in self._absent:
            blob, index, item = self._documents[number].place
            quarantine.setdefault(blob, {})[index, item] = ABSENT
        for number in sorted(left_out):
            document = self._documents[number]
            message = self._describe(document, left_out[number], told)
            blob, index, item = document.place
            parsed = document.parsed
            issue = (
                FileIssue("error", INTERNAL_ERROR, message, parsed.line, parsed.column, _read_resource(parsed)) if message else None
            )
            if number not in self._absent:
                quarantine.setdefault(blob, {})[index, item] = issue
        self._context.caches.set_quarantine(quarantine)
        return self._attempt()

    def _find_fault(self, left_out: Mapping[int, Exception]) -> Exception | None:
        """Return the unexpected error of an attempt without some documents; None if there is none."""
        try:
            self._try(left_out)
        except GitschedError:
            return None  # such as broken settings, which are no bug
        except Exception as error:
            if not is_bug(error):
                raise
            return _find_cause(error)
        return None

    def _describe(self, document: SourceDocument, error: Exception, told: set[str]) -> str:
        """Return what is wrong with a document; "" for one whose tenant or directory is left out, but for the first of these."""
        kind = document.parsed.body.get("kind")
        if document.owner not in self._whole:
            return (
                f"{describe_fault(error)} while this {kind} was handled: it counts as broken, and what it placed stays; report this bug "
                "with the id, and change or remove what is unusual in the document"
            )
        if document.owner in told:
            return ""
        told.add(document.owner)
        count = len(self._by_owner[document.owner])
        return (
            f"{describe_fault(self._whole[document.owner])}, and others, while documents of {document.owner} were "
            f"handled: its {format_count(count, 'document')} count as broken, and what they placed stays; report this bug with the id, "
            "and change or remove what is unusual in them"
        )

    def _find_suspect(self, error: Exception) -> int | None:
        """Return a document that the failed functions had as a value, if the attempt without it does not fail in the same way."""
        suspects = self._list_suspects(error)
        for number in suspects[:MAX_SUSPECTS]:
            other = self._find_fault({**self._left_out, number: error})
            if other is None or describe_fault(other) != describe_fault(error):
                return number
            left = self._list_suspects(other)
            if number not in left and (number == suspects[0] or left[:1] != suspects[:1]):
                return number  # another document has the same fault
        return None

    def _list_suspects(self, error: Exception) -> list[int]:
        found = self._suspects.list(error)
        return [one for one in found if one not in self._left_out and one not in self._absent] or self._find_earlier(error)

    def _find_earlier(self, error: Exception) -> list[int]:
        """Return documents of earlier versions of files, which apply in place of broken ones, and which the error may be about."""
        known = {document.place: number for number, document in enumerate(self._documents)}
        owners = {document.path: document.owner for document in self._documents}
        found = []
        for origin in list_frame_origins(error):
            place = (origin.blob, origin.index, origin.item)
            if place not in known and origin.path in owners:
                file = self._reader.read(origin.blob, origin.path)
                for parsed in file.documents:
                    if (parsed.index, parsed.item) == place[1:]:
                        known[place] = len(self._documents)
                        self._by_owner[owners[origin.path]].append(len(self._documents))
                        self._documents.append(SourceDocument(owners[origin.path], origin.path, origin.blob, parsed))
            if place in known and known[place] not in self._left_out:
                found.append(known[place])
        return found

    @cached_property
    def _suspects(self) -> FaultSuspects:
        return FaultSuspects((document.parsed.body, document.place) for document in self._documents)

    def _find_faulty(self, error: Exception) -> int | None:
        """Return the next document to leave out; None if the attempt fails without any."""
        number = self._find_suspect(error)
        return self._find_first() if number is None else number

    def _find_first(self) -> int | None:
        """Return the first document with which the attempt fails, in the order of their owners; None if it fails without any."""
        rest = [one for one in range(len(self._documents)) if one not in self._left_out and one not in self._absent]
        error = next(iter(self._left_out.values()), ValueError())

        def fails(count: int) -> bool:
            return self._find_fault({**self._left_out, **dict.fromkeys(rest[count:], error)}) is not None

        return None if not rest or fails(0) else rest[bisect_failures(len(rest), fails)]


def _is_shared(body: Body) -> bool:
    """Return whether a document counts for all owners: a cluster, or a policy without a namespace."""
    group, kind = parse_api_group(str(body.get("apiVersion") or body.get("api") or "")), body.get("kind")
    is_policy = group in reserved_groups and not get_field(body, "metadata", "namespace")
    return is_policy or (group, kind) in list_cluster_kinds()


def _find_cause(error: Exception) -> Exception:
    """Return the error about the first document, where one names documents."""
    return next(iter(error.errors.values()), error) if isinstance(error, DocumentFault) else error


def _read_resource(parsed: ParsedDocument) -> tuple[str, str, str]:
    metadata = parsed.body.get("metadata") or {}
    return str(parsed.body.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
