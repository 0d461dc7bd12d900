"""Restore broken documents of a source from the newest commit in which they are valid."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from gitsched.decide.catalog import RawDocument, make_origin, make_raw_document
from gitsched.decide.last_valid_files import LastValidFile
from gitsched.decide.registry import reserved_groups
from gitsched.manifests.parsed_file import DEFAULT_LIMITS, NOT_YAML, Identity, ParsedDocument, ParsedFile, read_identity
from gitsched.manifests.unreadable_text import UNKNOWN_NAME, find_unreadable_objects
from gitsched.model.document import Body, Origin, SourceSpans
from gitsched.model.finding import LAST_VALID_USED, Finding, Location, format_names
from gitsched.model.rollouts import ROLLOUT_KIND
from gitsched.model.system_errors import is_bug
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.cache.caches import SourceFile
from gitsched.reconcile.source.file_version import FileVersion
from gitsched.reconcile.source.source_reader import SourceReader
from gitsched.render.yaml import dump
from gitsched.report.lines import abbreviate_oid

FindVersions = Callable[[str], Iterable[FileVersion]]
"""Return the earlier versions of a path, the newest first."""


class RestoredFile(NamedTuple):
    """The documents of a broken file: those of earlier versions, and broken ones that no version has. `last_valid` are the bytes to
    keep, None if there are none; `versions` are the versions that were used."""

    documents: tuple[RawDocument, ...]
    last_valid: LastValidFile | None = None
    versions: tuple[FileVersion, ...] = ()


class _UsedVersion(NamedTuple):
    """An earlier version of a file, its content, and the documents that replace broken ones."""

    version: FileVersion
    file: ParsedFile
    found: list[ParsedDocument]


def needs_last_valid(file: SourceFile) -> bool:
    """Return whether a file has documents that cannot be used, or is no YAML any more."""
    return file.broken or file.file.reason == NOT_YAML


class _WantedDocuments:
    """Documents of a file that earlier versions have to replace.

    `broken` are those that cannot be used, by identity. While documents are `hidden`, because a syntax error hides the identities or other
    content took the place of documents, every document of the newest readable version counts that the file does not have.
    """

    def __init__(self, path: str, blob: str, file: ParsedFile, *, lost: bool) -> None:
        self._path = path
        self._present = {read_identity(parsed.body) for parsed in file.documents if not parsed.broken}
        self.broken = {read_identity(parsed.body): self._keep_broken(parsed, blob) for parsed in file.documents if parsed.broken}
        self.hidden = file.unreadable or lost or not file.documents

    def take(self, before: ParsedFile, blob: str) -> list[ParsedDocument]:
        """Return the valid documents of an earlier version that replace broken or hidden ones, which are not wanted any more."""
        earlier = {read_identity(parsed.body): parsed for parsed in before.documents if not parsed.broken}
        hidden = {read_identity(parsed.body) for parsed in before.documents} - self._present if self.hidden else set[Identity]()
        found = {identity: parsed for identity, parsed in earlier.items() if identity in self.broken or identity in hidden}
        for parsed in before.documents:
            if parsed.broken and read_identity(parsed.body) in hidden:
                self.broken.setdefault(read_identity(parsed.body), self._keep_broken(parsed, blob))
        self.hidden = False
        for identity in found:
            self.broken.pop(identity, None)
        return list(found.values())

    def _keep_broken(self, parsed: ParsedDocument, blob: str) -> RawDocument:
        return make_raw_document(parsed.body, make_origin(parsed, self._path, blob), broken=True)


class LastValidDocuments:
    """Restores broken files of a tree, each once. `failed` are those on which a bug shows, so that nobody knows their documents."""

    def __init__(self, reader: SourceReader, find_versions: FindVersions) -> None:
        self._reader, self._find_versions = reader, find_versions
        self._restored: dict[str, RestoredFile] = {}
        self.failed: list[str] = []

    def restore(self, path: str, file: SourceFile, *, lost: bool = False) -> RestoredFile:
        """Return the last valid documents in place of the broken ones of a file, and of those that are `lost`."""
        if path not in self._restored:
            try:
                self._restored[path] = self._restore(path, file.blob, file.file, lost)
            except Exception as error:
                if not is_bug(error):
                    raise
                self._restored[path] = RestoredFile(())
                self.failed.append(path)
        return self._restored[path]

    def restore_all(self, files: Mapping[str, SourceFile], lost: Collection[str] = ()) -> dict[str, RestoredFile]:
        """Return the last valid documents of all broken files, and of those that lost their documents, by path."""
        return {
            path: self.restore(path, file, lost=path in lost)
            for path, file in files.items()
            if needs_last_valid(file) or path in lost
        }

    def _restore(self, path: str, blob: str, file: ParsedFile, lost: bool) -> RestoredFile:
        """Replace documents by identity, each with the newest version of it that is valid."""
        wanted = _WantedDocuments(path, blob, file, lost=lost)
        used = list(self._take_versions(path, blob, wanted, len(file.others) if lost and file.documents else None))
        used = [entry for entry in used if entry.found] or used[:1]
        versions = tuple(entry.version for entry in used)
        own = self._reader.repository
        for version in versions:
            if version.repository is not own:  # the output branch is in another one
                own.keep_blob(version.repository.blob(version.blob), version.blob)
        if len(used) > 1:
            used = [self._combine(path, used)]
        documents = [make_raw_document(p.body, make_origin(p, path, entry.version.blob)) for entry in used for p in entry.found]
        documents += wanted.broken.values()
        documents += self._find_hidden_rollouts(path, blob, file, documents) if file.unreadable else ()
        return RestoredFile(tuple(documents), _make_last_valid(used[0]) if used else None, versions)

    def _take_versions(self, path: str, blob: str, wanted: _WantedDocuments, others: int | None) -> Iterator[_UsedVersion]:
        """Yield the versions that have something of what is wanted, and the first one with valid documents. One with at least as many
        `others` is left out: it lost its documents as well."""
        is_first = True
        for version in self._find_versions(path):
            if not (wanted.broken or wanted.hidden):
                return
            if version.blob == blob:
                continue  # the last run read the same bytes
            before = self._reader.read(version.blob, path, version.repository)
            is_emptied = others is not None and len(before.others) >= others
            if before.unreadable or is_emptied or all(parsed.broken for parsed in before.documents):
                continue
            found = wanted.take(before, version.blob)
            if found or is_first:
                yield _UsedVersion(version, before, found)
            is_first = False

    def _find_hidden_rollouts(
        self, path: str, blob: str, file: ParsedFile, documents: Sequence[RawDocument]
    ) -> Iterator[RawDocument]:
        """Yield the Rollouts that a syntax error hides and of which there is no earlier version: changes wait for them."""
        data = self._reader.repository.read_small_blob(blob, DEFAULT_LIMITS.size) or b""
        if ROLLOUT_KIND[1].encode() not in data:
            return
        known = {document.name for document in documents if (document.group, document.kind) == ROLLOUT_KIND}
        for line, body in find_unreadable_objects(data.decode("utf-8", "replace"), file, *ROLLOUT_KIND):
            name = body["metadata"]["name"]
            if name not in known and (name != UNKNOWN_NAME or not known):
                origin = Origin(path, blob, 0, -1, line, 1)
                yield make_raw_document(body, origin, broken=True)

    def _combine(self, path: str, used: list[_UsedVersion]) -> _UsedVersion:
        """Combine documents of several versions to one version of the file, so that the output branch can keep it."""
        newest = used[0]
        parts = [(newest, parsed) for parsed in newest.file.documents if not parsed.broken]
        parts += [(entry, parsed) for entry in used[1:] for parsed in entry.found]
        text = "---\n".join(_read_text(entry, parsed) for entry, parsed in parts)
        blob = self._reader.repository.keep_blob(text.encode())
        file = self._reader.read(blob, path)
        wanted = {read_identity(parsed.body) for entry in used for parsed in entry.found}
        found = [parsed for parsed in file.documents if not parsed.broken and read_identity(parsed.body) in wanted]
        return _UsedVersion(FileVersion(self._reader.repository, blob, newest.version.commit), file, found)


def keep_version(version: FileVersion, file: ParsedFile) -> RestoredFile:
    """Return an earlier version of a file that is used for what it says, without documents of its own."""
    return RestoredFile((), _make_last_valid(_UsedVersion(version, file, [])), (version,))


def make_findings(restored: Mapping[str, RestoredFile]) -> list[Finding]:
    """Return a note for each file whose last valid documents are used: it names the commits that they come from."""
    findings = []
    for path, file in restored.items():
        if not file.versions:
            continue
        commits = [abbreviate_oid(version.commit) for version in file.versions if version.commit]
        origin = (
            f"commit{'s' if len(commits) > 1 else ''} {format_names(commits, len(commits))}" if commits else "the output branch"
        )
        message = (
            f"{path} has errors: what is broken in it is used as of {origin}, where it is valid for the last time; correct the errors to "
            "use its present content"
        )
        findings.append(Finding("info", LAST_VALID_USED, message, Location(path, 1, 1)))
    return findings


def _make_last_valid(used: _UsedVersion) -> LastValidFile:
    documents, pruned = used.file.documents, _is_pruned(used.file)
    valid = [parsed for parsed in documents if not parsed.broken] if pruned else documents
    return LastValidFile(
        used.version.blob,
        tuple((parsed.body, parsed.spans if parsed.item < 0 else None) for parsed in valid),
        pruned,
        used.version.commit,
    )


def _read_text(used: _UsedVersion, parsed: ParsedDocument) -> str:
    """Return the text of a document, which ends in a newline; members that parsing removed are left out."""
    if parsed.item >= 0 or _is_pruned(used.file):
        return dump(parsed.body)
    return read_document_text(used.version.repository.blob(used.version.blob), parsed.body, parsed.spans)


def read_document_text(data: bytes, body: Body, spans: SourceSpans | None) -> str:
    """Return the text of a document, which ends in a newline: that which it has in the content of a file, or new text without `spans`."""
    if spans is None:
        return dump(body)
    text = data.decode("utf-8", "replace")
    part = text if spans.whole_file else text[spans.start : spans.end]
    return part if part.endswith("\n") else f"{part}\n"


def _is_pruned(file: ParsedFile) -> bool:
    """Return whether parsing left out fields; objects of built-in kinds keep theirs."""
    pruned = {problem.resource for problem in file.issues if problem.code == "unknown-field"}
    if not pruned:
        return False
    identities = (read_identity(parsed.body) for parsed in file.documents)
    return any(group in reserved_groups for group, kind, namespace, name in identities if (kind, namespace, name) in pruned)
