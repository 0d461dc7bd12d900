"""What is new in a source tree, as far as it is only the text of known, sound files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

from gitsched.apis.gitsched.config import FILE
from gitsched.git import Entry, Repository
from gitsched.model.document import Document, Key
from gitsched.model.outcome import Outcome
from gitsched.plan.amending import Edition
from gitsched.plan.catalog import Loose, resolve_key
from gitsched.plan.ledger import Sums
from gitsched.plan.registry import RESERVED
from gitsched.reconcile.packing import Damaged
from gitsched.reconcile.shelf import Shelf
from gitsched.reconcile.snapshot import REGULAR, Page, Reader, read_page

MOST = 20
"""One file in so many, and as many, may have changed for this to be worth while."""


class Templates(Mapping[Key, Document]):
    """All templates of a source; but for those that were read already, they are found when somebody asks for one, and all read when
    somebody asks for all, or for one that has no trace."""

    def __init__(
        self,
        known: Mapping[Key, Document],
        find: Callable[[Key], Document | None],
        read: Callable[[], Mapping[Key, Document]],
    ) -> None:
        self._known, self._find, self._read = dict(known), find, read
        self._all: Mapping[Key, Document] | None = None

    def __getitem__(self, key: Key) -> Document:
        if key not in self._known:
            self._known[key] = (self._find(key) if self._all is None else None) or self._everything()[key]
        return self._known[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._everything())

    def __len__(self) -> int:
        return len(self._everything())

    def _everything(self) -> Mapping[Key, Document]:
        if self._all is None:
            self._all = self._read()
        return self._all


class Recalled(Mapping[Key, Outcome]):
    """Outcomes of an amended plan. Rows that cannot be read any more, when somebody asks at last, are made `anew`, to the same effect."""

    def __init__(self, known: Mapping[Key, Outcome], anew: Callable[[], Mapping[Key, Outcome]]) -> None:
        self._known, self._anew, self._count = known, anew, len(known)

    def __getitem__(self, key: Key) -> Outcome:
        try:
            return self._known[key]
        except Damaged:
            self._known = self._anew()
            return self._known[key]

    def __iter__(self) -> Iterator[Key]:
        try:
            keys = list(self._known)
        except Damaged:
            self._known = self._anew()
            keys = list(self._known)
        return iter(keys)

    def __len__(self) -> int:
        return self._count


def read_edition(repository: Repository, tree: str, shelf: Shelf, reader: Reader, now: datetime) -> Edition | None:
    """What differs from the ledger's source tree, and what is due anyway; None where more than known templates differs."""
    sums = shelf.head.sums
    if not repository.has(shelf.head.source):
        return None
    changed = repository.changed(shelf.head.source, tree)
    due = {key for key, moment in sums.wakeups.items() if moment <= now} | sums.restless
    if len(changed) + len(due) > MOST + sums.workloads // MOST:
        return None
    reader.load(Entry(path, entry[0], entry[1]) for path in changed if (entry := repository.entry(shelf.head.source, path)))
    documents: dict[Key, Document] = {}
    findings = {}
    for path in changed:
        was, page = (_read(repository, at, path, reader) for at in (shelf.head.source, tree))
        if path == FILE or not shelf.holds(path) or was is None or page is None:
            return None
        found = _match(was.documents, page.documents, sums)
        if found is None:
            return None
        documents.update(found)
        findings[path] = page.findings
    for key in sorted(due - documents.keys()):
        document = find_document(repository, tree, shelf, reader, key)
        if document is None:
            return None
        documents[key] = document
    return Edition(documents, findings)


def find_document(repository: Repository, tree: str, shelf: Shelf, reader: Reader, key: Key) -> Document | None:
    """A workload's document in the file that it was read from; None where it has no trace, or the file something else by now."""
    trace = shelf.trace(key)
    page = _read(repository, tree, trace.source, reader) if trace is not None else None
    found = _match(page.documents, page.documents, shelf.head.sums) if page is not None else None
    return found.get(key) if found else None


def _read(repository: Repository, tree: str, path: str, reader: Reader) -> Page | None:
    entry = repository.entry(tree, path)
    if entry is None or entry[1] not in REGULAR:
        return None
    page = read_page(path, entry[0], reader)
    return page if page.alone else None


def _match(before: Iterable[Loose], after: Iterable[Loose], sums: Sums) -> dict[Key, Document] | None:
    """The documents of a file by identity, if they have the same identities as before and are templates, all of them."""
    was, now = list(before), list(after)
    if [loose[3:] for loose in was] != [loose[3:] for loose in now]:
        return None
    found = {}
    for loose in now:
        key = resolve_key(loose, sums.scopes)
        if key is None or loose.group in RESERVED or loose.kind == "CustomResourceDefinition":
            return None
        found[key] = Document(key, loose.api_version, loose.body, loose.origin)
    return found
