"""Locate the objects that kustomize roots build in the files that they come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256

from gitsched.build.closure import Closure
from gitsched.build.kustomize import BuiltObject
from gitsched.decide.catalog import RawDocument, make_raw_document
from gitsched.git import TreeEntry
from gitsched.git.trees import FILE_MODE
from gitsched.manifests.kustomize import Kustomization
from gitsched.manifests.parsed_file import FileIssue, ParsedDocument, ParsedFile
from gitsched.model.document import Origin
from gitsched.model.finding import Finding, Location
from gitsched.reconcile.builds.kustomizations import FileReader, is_read_by_api
from gitsched.reconcile.builds.last_changes import LastChanges
from gitsched.reconcile.builds.lost_quotes import describe_substituted
from gitsched.reconcile.cache.build_cache import BuildCache
from gitsched.reconcile.cache.storage import identify_build
from gitsched.reconcile.source.commit_tree import CommitTree

_BUILT = "built.yaml"


def compute_origins_key(closure: Closure, reader: FileReader) -> str:
    """Return a digest of everything that the locations of the objects of a root depend on."""
    rows = ("origins", identify_build(), reader.rules, *closure.list_inputs())
    return sha256("\n".join(rows).encode("utf-8", "surrogatepass")).hexdigest()


class OriginLocator:
    """Locates the objects that a root builds in the files that they come from. Where it has a cache, locations are found once for the same
    files."""

    def __init__(self, closure: Closure, commit: CommitTree, reader: FileReader, cache: BuildCache | None = None) -> None:
        self._closure, self._commit, self._reader = closure, commit, reader
        self._changes = LastChanges(closure, commit)
        self._cache, self._key = cache, compute_origins_key(closure, reader) if cache is not None else ""
        self._known: dict[str, list[str | int]] = (cache.get(self._key) if cache is not None else None) or {}

    def read(
        self, built: BuiltObject, findings: list[Finding], omitted: list[RawDocument] | None = None, before: bytes = b""
    ) -> Iterator[RawDocument]:
        """Yield the documents of an object that is built: one, or none if a policy API reads it from its own file, which is then added to
        `omitted`. `before` is the text before values were substituted."""
        blob = self._commit.repository.keep_blob(built.text)
        file = self._reader.read(blob, _BUILT)
        if not file.documents:
            findings += self._list_unreadable(built, file, before)
        for parsed in file.documents:
            document = make_raw_document(parsed.body)
            path, line, column, changed_by = self.locate(built, document)
            origin = Origin(
                path, blob, parsed.index, parsed.item, line, column, parsed.spans, self._closure.root, changed_by=changed_by
            )
            if is_read_by_api(document):
                if omitted is not None:
                    omitted.append(document._replace(origin=origin))
                if self._find_remote(built.path):
                    text = f"{document.kind} {document.name} comes from another repository: a policy is only read from this one"
                    findings.append(Finding("warning", "kustomize-remote", text, Location(path, line, column)))
                continue
            for issue in file.issues:
                text = f"{describe_substituted('spec.values', document, before, issue)} (as kustomize builds {self._closure.root})"
                findings.append(Finding(issue.severity, issue.code, text, Location(path, line, column, changed_by), issue.resource))
            yield make_raw_document(parsed.body, origin, parsed.broken)

    def _list_unreadable(self, built: BuiltObject, file: ParsedFile, before: bytes) -> Iterator[Finding]:
        """Yield the errors about a text that is no object, such as one that a value has made unreadable."""
        written = self._reader.read(self._commit.repository.keep_blob(before or built.text), _BUILT).documents
        document = make_raw_document(written[0].body) if written else RawDocument({}, None, False, "", "", "", "", "")
        path, line, column, changed_by = self.locate(built, document)
        reason = FileIssue("error", "kustomize-build", f"this is no object: {file.reason}", 1, 1)
        for issue in file.issues or (reason,):
            text = f"{describe_substituted('spec.values', document, before, issue)} (as kustomize builds {self._closure.root})"
            yield Finding(issue.severity, issue.code, text, Location(path, line, column, changed_by))

    def list_read_files(self, objects: Iterable[BuiltObject]) -> Iterator[TreeEntry]:
        """Yield the objects and the patches of the root as files, so that their parsed forms are loaded from the cache at once. Patches are
        read to locate objects only."""
        for built in objects:
            yield TreeEntry(_BUILT, self._commit.repository.keep_blob(built.text), FILE_MODE)
        for path, blob in self._closure.files.items() if not self._known else ():
            if path not in self._closure.resources:
                yield TreeEntry(path if path.endswith(".json") else f"{path}.yaml", blob, FILE_MODE)

    def _find_remote(self, path: str) -> tuple[str, int, int] | None:
        """Return the position of the reference to the repository that a path is in; None for this one."""
        return next((position for prefix, position in self._closure.remotes.items() if path.startswith(f"{prefix}/")), None)

    def locate(self, built: BuiltObject, document: RawDocument) -> Location:
        """Return where an object comes from, and what changes it last, given the document in what is printed for it."""
        identity = document.group, document.kind, document.namespace, document.name
        key = "\n".join((built.path, "generated" if built.generated else "", *identity))
        known = self._known.get(key)
        if known is not None:
            path, line, column, changed_by = known
            return Location(str(path), int(line), int(column), str(changed_by))
        found = self._search(built, document)
        if self._cache is not None:
            self._known[key] = list(found)
            self._cache.put(self._key, self._known)
        return found

    def _search(self, built: BuiltObject, document: RawDocument) -> Location:
        if (built.generated or built.path not in self._closure.resources) and (remote := self._find_remote(built.path)):
            return Location(*remote)
        if built.generated and built.path in self._closure.files:
            return Location(built.path, self._find_generator(built.path, document), 1)
        for path in [built.path] if built.path in self._closure.files else sorted(self._closure.resources):
            parsed = self._find_source(path, document)
            if parsed is not None:
                changed_by = self._changes.find(path, parsed, document)
                remote = self._find_remote(path)
                return Location(*(remote or (path, parsed.line, parsed.column)), changed_by)
        return Location(built.path if built.path in self._closure.files else self._closure.kustomization, 1, 1)

    def _find_source(self, path: str, document: RawDocument) -> ParsedDocument | None:
        """Return the document of a file that an object comes from: that with its name, else the one whose name is a part of it."""
        same_kind = [
            parsed
            for parsed in self._commit.read_file(self._closure.files[path], path).documents
            if parsed.body["kind"] == document.kind
        ]
        names = [(parsed, str(parsed.body["metadata"]["name"])) for parsed in same_kind]
        exact = (parsed for parsed, name in names if name == document.name)
        similar = (parsed for parsed, name in sorted(names, key=lambda entry: -len(entry[1])) if name in document.name)
        return next(exact, None) or next(similar, None)

    def _find_generator(self, path: str, document: RawDocument) -> int:
        kustomization = self._commit.read_kustomization(self._closure.files[path], path) or Kustomization()
        named = [change for change in kustomization.changes if change.kind == "mention" and change.value in document.name]
        return max(named, key=lambda change: len(change.value)).line if named else 1
