"""A source tree as the plan needs it: documents, findings, settings, and the last valid bytes of what is broken."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from gitsched.apis.gitsched.config import FILE, GROUP, KIND, Config, parse_config
from gitsched.git import Entry, Repository
from gitsched.manifests.file import NO_YAML, File, Parsed, Problem, too_large
from gitsched.manifests.ignore import IGNORE_FILE, LONGEST_RULE, MOST_RULES, Excess, Ignore, is_candidate
from gitsched.manifests.kustomize import FILE_NAMES
from gitsched.manifests.limits import LIMITS
from gitsched.model.document import Origin, group_of
from gitsched.model.errors import Permanent
from gitsched.model.finding import Finding, Location, begin
from gitsched.plan.catalog import Loose, loosen
from gitsched.plan.checking import check, waive
from gitsched.plan.keeping import Kept
from gitsched.reconcile.memo import Memo

LastValid = Callable[[str], Iterable[tuple[Repository, str]]]
"""Where earlier bytes of a path may be: repositories and blobs, newest first."""

_MARKS = ("spec.replicas", "spec.parallelism", "spec.completions")
REGULAR = (0o100644, 0o100755, 0o100664)


class Snapshot(NamedTuple):
    """`findings` are by file, `beside` those about no file that was read. `kept` maps the path of each broken file to its last valid
    bytes."""

    documents: tuple[Loose, ...]
    findings: Mapping[str, tuple[Finding, ...]]
    beside: tuple[Finding, ...]
    config: Config
    kept: Mapping[str, Kept]


class Page(NamedTuple):
    """One file as it was read."""

    blob: str
    file: File
    documents: tuple[Loose, ...]
    findings: tuple[Finding, ...]

    @property
    def broken(self) -> bool:
        """Whether some document of it cannot be used."""
        return self.file.unreadable or any(parsed.broken for parsed in self.file.documents)

    @property
    def alone(self) -> bool:
        """Whether it is sound, and says nothing about other files or an earlier version of itself."""
        return not (self.broken or self.file.patches or self.file.reason == NO_YAML)


class Book(NamedTuple):
    """A tree as it was read, to go on from: its pages by path. `whole`: no page is broken, nor are the settings."""

    tree: str
    pages: Mapping[str, Page]
    snapshot: Snapshot
    whole: bool


class Reader:
    """Reads files of one repository, each blob once."""

    def __init__(self, repository: Repository, memo: Memo, config: Config | None = None) -> None:
        kinds = config.workloads if config is not None else ()
        self.repository, self._memo = repository, memo
        self._marks = tuple(dict.fromkeys((*_MARKS, *(kind.replicas_path for kind in kinds if kind.replicas_path))))
        self._waived = waive(config) if config is not None else frozenset[str]()
        self._check = partial(check, waived=self._waived)

    def key(self, blob: str, path: str) -> str:
        name = path.rpartition("/")[2]
        return f"{blob}:{name if name in FILE_NAMES else name.rpartition('.')[2]}:{','.join((*self._marks, *sorted(self._waived)))}"

    def read(self, blob: str, path: str, repository: Repository | None = None) -> File:
        """The reading of a blob under a path."""
        key = self.key(blob, path)
        file = self._memo.get(key)
        if file is None:
            source = repository or self.repository
            size = source.size(blob)
            from gitsched.manifests.reading import read  # loads PyYAML, and most files are remembered

            file = (
                too_large(size, path)
                if size > LIMITS.size
                else read(source.blob(blob), path=path, check=self._check, marks=self._marks)
            )
            self._memo.put(key, file)
        return file

    def load(self, entries: Iterable[Entry]) -> None:
        self._memo.load(self.key(entry.blob, entry.path) for entry in entries)


def read_tree(
    repository: Repository, tree: str, memo: Memo, last_valid: LastValid, paths: tuple[str, ...] = (), last: Book | None = None
) -> Book:
    """Read a tree, from the last one where little differs. Symlinks, submodules and odd entries are findings and never followed."""
    if last is not None and last.tree == tree and last.whole:
        return last
    if last is not None and last.whole:
        book = _turn_pages(repository, tree, memo, last)
        if book is not None:
            return book
    entries = repository.entries(tree)
    config, beside = _read_config(repository, tree, memo, last_valid)
    beside += _odd(entries)
    reader = Reader(repository, memo, config)
    ignore = _read_ignore(repository, entries, config.source.ignore)
    beside += [_too_much(excess) for excess in ignore.excess]
    wanted = _select(entries, paths or config.source.paths, ignore)
    reader.load(wanted)
    pages = {entry.path: read_page(entry.path, entry.blob, reader) for entry in wanted}
    patches = {
        posixpath.normpath(posixpath.join(posixpath.dirname(path), p)) for path, page in pages.items() for p in page.file.patches
    }
    for path in patches & pages.keys():
        del pages[path]
    mended: list[Loose] = []
    kept: dict[str, Kept] = {}
    for path, page in pages.items():
        if page.broken or page.file.reason == NO_YAML:
            mended += _mend(path, page.blob, page.file, reader, last_valid, kept)
    beside += [_spoilt(path) for path, page in pages.items() if path in kept and not page.broken]
    whole = not kept and not any(page.broken for page in pages.values()) and read_config(repository, tree, memo) is not None
    return _bind(tree, pages, config, beside, mended, kept, whole)


def _turn_pages(repository: Repository, tree: str, memo: Memo, last: Book) -> Book | None:
    """The last book with a few pages read anew; None when more than the text of known, sound files differs."""
    changed = repository.changed(last.tree, tree)
    if len(changed) > len(last.pages) // 4 or any(path not in last.pages or path == FILE for path in changed):
        return None
    reader = Reader(repository, memo, last.snapshot.config)
    pages = dict(last.pages)
    for path in changed:
        entry = repository.entry(tree, path)
        if entry is None or entry[1] not in REGULAR or not last.pages[path].alone:
            return None
        pages[path] = read_page(path, entry[0], reader)
        if not pages[path].alone:
            return None
    return _bind(tree, pages, last.snapshot.config, list(last.snapshot.beside), [], {}, True)


def read_page(path: str, blob: str, reader: Reader) -> Page:
    """A file of the source."""
    file = reader.read(blob, path)
    documents = tuple(loosen(parsed.body, _origin(parsed, path, blob)) for parsed in file.documents if not parsed.broken)
    problems = (place(problem, path) for problem in file.problems)
    used, stray = _part_stray(path, documents)
    return Page(blob, file, used, (*problems, *(_tell_stray(path, document) for document in stray)))


def _part_stray(path: str, documents: Iterable[Loose]) -> tuple[tuple[Loose, ...], list[Loose]]:
    """The documents without settings that nobody reads, because they are not the first of the one file where settings stand; and those."""
    used: list[Loose] = []
    stray: list[Loose] = []
    is_read = path == FILE
    for document in documents:
        if (document.group, document.kind) != (GROUP, KIND):
            used.append(document)
        else:
            (used if is_read else stray).append(document)
            is_read = False
    return tuple(used), stray


def _tell_stray(path: str, document: Loose) -> Finding:
    why = f"only the {FILE} at the top of the repository is" if path != FILE else "only the first of the file is"
    where = begin(document.origin) if document.origin else Location(path, 1, 1)
    return Finding("warning", "stray-config", f"this {KIND} is not read: {why}", where, (KIND, "", document.name))


def _bind(
    tree: str,
    pages: Mapping[str, Page],
    config: Config,
    beside: list[Finding],
    mended: list[Loose],
    kept: Mapping[str, Kept],
    whole: bool,
) -> Book:
    documents = [document for page in pages.values() for document in page.documents]
    findings = {path: page.findings for path, page in pages.items() if page.findings}
    return Book(tree, pages, Snapshot((*documents, *mended), findings, tuple(beside), config, kept), whole)


def _spoilt(path: str) -> Finding:
    message = f"{path} held documents when it was last read and is no YAML now: they are kept as they were; delete the file to let them go"
    return Finding("error", "no-longer-yaml", message, Location(path, 1, 1))


def place(problem: Problem, path: str) -> Finding:
    """A problem of a file as a finding."""
    return Finding(problem.severity, problem.code, problem.message, Location(path, problem.line, problem.column), problem.resource)


def _mend(path: str, blob: str, file: File, reader: Reader, last_valid: LastValid, kept: dict[str, Kept]) -> list[Loose]:
    """What takes the place of a file's broken documents: the same identities as they last were valid.

    Where a syntax error hides identities, every earlier document that the file does not have now is taken.
    """
    present = {_identity(parsed) for parsed in file.documents if not parsed.broken}
    broken = {_identity(parsed): parsed for parsed in file.documents if parsed.broken}
    hidden = file.unreadable or file.reason == NO_YAML
    mended: list[Loose] = []
    for repository, earlier in last_valid(path):
        if earlier == blob:
            continue  # the last run saw these very bytes
        before = reader.read(earlier, path, repository)
        good = [parsed for parsed in before.documents if not parsed.broken]
        if not good or before.unreadable:
            continue
        pruned = any(problem.code == "unknown-field" for problem in before.problems)
        held = good if pruned else before.documents
        kept[path] = Kept(earlier, tuple((parsed.body, parsed.text if parsed.item < 0 else None) for parsed in held), pruned)
        for parsed in good:
            identity = _identity(parsed)
            if identity in broken or (hidden and identity not in present):
                broken.pop(identity, None)
                mended.append(loosen(parsed.body, _origin(parsed, path, earlier)))
        break
    return mended + [loosen(parsed.body, _origin(parsed, path, blob), broken=True) for parsed in broken.values()]


def read_config(repository: Repository, tree: str, memo: Memo) -> Config | None:
    """The settings of a tree, the defaults where it has no gitsched.yaml; None where that is broken."""
    config, findings = _read_config(repository, tree, memo, lambda _: ())
    return None if findings else config


def _read_config(repository: Repository, tree: str, memo: Memo, last_valid: LastValid) -> tuple[Config, list[Finding]]:
    entry = repository.entry(tree, FILE)
    if entry is None or entry[1] not in REGULAR:
        return Config(), []
    reader = Reader(repository, memo)
    reader.load([Entry(FILE, *entry)])
    file = reader.read(entry[0], FILE)
    versions = [file, *(reader.read(blob, FILE, other) for other, blob in last_valid(FILE))] if _config(file) is None else [file]
    for version in versions:
        parsed = _config(version)
        if parsed is not None:
            return parse_config(parsed.body.get("spec") or {}), []
    message = f"{FILE} holds no valid document with apiVersion: {GROUP}/v1alpha1 and kind: {KIND}"
    return Config(), [Finding("error", "invalid-config", message, Location(FILE, 1, 1))]


def _config(file: File) -> Parsed | None:
    sound = (parsed for parsed in file.documents if not parsed.broken)
    return next((p for p in sound if (group_of(str(p.body.get("apiVersion"))), p.body.get("kind")) == (GROUP, KIND)), None)


def _read_ignore(repository: Repository, entries: list[Entry], ignored: tuple[str, ...]) -> Ignore:
    texts = {
        posixpath.dirname(entry.path): repository.blob(entry.blob).decode("utf-8", "replace")
        for entry in entries
        if entry.path.rpartition("/")[2] == IGNORE_FILE
        and entry.mode in REGULAR
        and not entry.odd
        and repository.size(entry.blob) < 1 << 20
    }
    if ignored:
        texts[""] = "\n".join((texts.get("", ""), *ignored))
    return Ignore.parse(texts)


def _too_much(excess: Excess) -> Finding:
    path = posixpath.join(excess.directory, IGNORE_FILE)
    what = (
        f"is longer than {LONGEST_RULE} characters"
        if excess.long
        else f"is one more than the {MOST_RULES} that a repository may have"
    )
    message = f"the rule {what}: it is not heeded, nor is what follows it in {path}"
    return Finding("error", "ignore-rules", message, Location(path, excess.line, 1))


def _select(entries: list[Entry], paths: tuple[str, ...], ignore: Ignore) -> list[Entry]:
    roots = tuple(f"{path.strip('/')}/" for path in paths if path.strip("./"))
    for root in roots:
        if not any(f"{entry.path}/".startswith(root) for entry in entries):
            raise Permanent(f"the source has nothing at {root.rstrip('/')}: placing nothing would empty the output branch")
    return [
        entry
        for entry in entries
        if entry.mode in REGULAR
        and not entry.odd
        and is_candidate(entry.path)
        and (not roots or entry.path.startswith(roots) or f"{entry.path}/" in roots)
        and not ignore.match(entry.path)
    ]


def _odd(entries: list[Entry]) -> list[Finding]:
    findings = []
    for entry in entries:
        where = Location(entry.path, 1, 1)
        if entry.odd:
            findings.append(
                Finding("warning", "odd-path", f"{entry.path!r} is no path that a file should have: it is not read", where)
            )
        elif entry.mode == 0o120000:
            findings.append(Finding("info", "symlink", f"{entry.path} is a symbolic link: it is not followed", where))
        elif entry.mode == 0o160000:
            findings.append(Finding("info", "submodule", f"{entry.path} is a submodule: it is not read", where))
        elif entry.mode not in REGULAR:
            findings.append(Finding("warning", "odd-mode", f"{entry.path} has mode {entry.mode:o}: it is not read", where))
    return findings


def _origin(parsed: Parsed, path: str, blob: str) -> Origin:
    return Origin(path, blob, parsed.index, parsed.item, parsed.line, parsed.column, parsed.text)


def _identity(parsed: Parsed) -> tuple[str, str, str, str]:
    metadata = parsed.body.get("metadata") or {}
    group = group_of(str(parsed.body.get("apiVersion") or parsed.body.get("api") or ""))
    return group, str(parsed.body.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name"))
