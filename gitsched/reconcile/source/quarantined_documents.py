"""Leave out the documents of a source on which reading, building, observing or planning it fails with an unexpected error.

Such an error is a bug, and must not stop what is decided about all other documents. The plan of a commit isolates most bugs itself
(`gitsched.decide.fault_isolation`); this is for those that show before a plan is made, such as while directories are built, and for those
that are too many. A document that is left out counts as broken wherever files are read: its last valid version applies, and what it
placed stays.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

from gitsched.apis.gitsched.config import FILE, GROUP
from gitsched.decide.fault_isolation import bisect_failures
from gitsched.decide.fault_suspects import MAX_SUSPECTS, FaultSuspects, Place, list_frame_origins
from gitsched.manifests.parsed_file import FileIssue, ParsedDocument
from gitsched.model.document import get_field, parse_api_group
from gitsched.model.errors import DocumentFault, GitschedError
from gitsched.model.fault import describe_fault
from gitsched.model.finding import INTERNAL_ERROR, format_count
from gitsched.model.system_errors import is_bug
from gitsched.model.tenants import TENANT
from gitsched.reconcile.run import Fetched, Planned, RunContext
from gitsched.reconcile.source.config_file import read_config
from gitsched.reconcile.source.source_reader import SourceReader, list_manifests

MAX_OWNER_FAULTS = 5
"""Documents of one tenant or directory that are left out one by one; with more, all of its documents are."""
MAX_FAULTS = 20
"""Documents that are left out one by one; after that, each further one is left out with all documents of its tenant or directory."""


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


def quarantine_faults(
    context: RunContext,
    fetched: Fetched,
    plan: Callable[[], Planned],
    use: Callable[[Planned], object] | None,
    error: Exception,
) -> Planned:
    """Repeat a failed `plan`, and what `use` does with it, without the documents on which one of them fails. Raise the error if it does
    not depend on them."""

    def attempt() -> Planned:
        planned = plan()
        if use is not None:
            with suppress(GitschedError):  # the caller uses the plan again
                use(planned)
        return planned

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


class _Search:
    """A search for the documents that are left out: each with the error that it causes, by its position."""

    def __init__(
        self, context: RunContext, reader: SourceReader, documents: list[SourceDocument], attempt: Callable[[], Planned]
    ) -> None:
        self._context, self._reader, self._documents, self._attempt = context, reader, documents, attempt
        self._left_out: dict[int, Exception] = {}
        self._whole: dict[str, Exception] = {}

    def run(self, error: Exception) -> Planned:
        while True:
            error = _find_cause(error)
            number = self._find_suspect(error)
            if number is None:
                number = self._find_first()
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
        counts = Counter(self._documents[each].owner for each in self._left_out)
        if counts[owner] > MAX_OWNER_FAULTS or sum(counts.values()) > MAX_FAULTS:
            self._whole[owner] = error
            self._left_out |= {each: error for each, document in enumerate(self._documents) if document.owner == owner}

    def _try(self, left_out: Mapping[int, Exception]) -> Planned:
        quarantine: dict[str, dict[tuple[int, int], FileIssue | None]] = {}
        told: set[str] = set()
        for number in sorted(left_out):
            document = self._documents[number]
            message = self._describe(document, left_out[number], told)
            blob, *position = document.place
            parsed = document.parsed
            issue = (
                FileIssue("error", INTERNAL_ERROR, message, parsed.line, parsed.column, _read_resource(parsed)) if message else None
            )
            quarantine.setdefault(blob, {})[position[0], position[1]] = issue
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
        count = sum(each.owner == document.owner for each in self._documents)
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
        return [number for number in self._suspects.list(error) if number not in self._left_out] or self._find_earlier(error)

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
                        self._documents.append(SourceDocument(owners[origin.path], origin.path, origin.blob, parsed))
            if place in known and known[place] not in self._left_out:
                found.append(known[place])
        return found

    @cached_property
    def _suspects(self) -> FaultSuspects:
        return FaultSuspects((document.parsed.body, document.place) for document in self._documents)

    def _find_first(self) -> int | None:
        """Return the first document with which the attempt fails, in the order of their owners; None if it fails without any."""
        rest = [number for number in range(len(self._documents)) if number not in self._left_out]
        error = next(iter(self._left_out.values()), ValueError())

        def fails(count: int) -> bool:
            return self._find_fault({**self._left_out, **dict.fromkeys(rest[count:], error)}) is not None

        return None if not rest or fails(0) else rest[bisect_failures(len(rest), fails)]


def _find_cause(error: Exception) -> Exception:
    """Return the error about the first document, where one names documents."""
    return next(iter(error.errors.values()), error) if isinstance(error, DocumentFault) else error


def _read_resource(parsed: ParsedDocument) -> tuple[str, str, str]:
    metadata = parsed.body.get("metadata") or {}
    return str(parsed.body.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
