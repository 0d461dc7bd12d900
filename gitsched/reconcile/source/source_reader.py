"""Read files of a source: which files it consists of, and the documents of each blob with their origins and findings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from hashlib import blake2b
from typing import TYPE_CHECKING

from gitsched.apis.registered import Registered
from gitsched.decide.catalog import make_raw_documents
from gitsched.decide.incremental.changed_documents import may_contain_bundle
from gitsched.decide.registry import apis_by_group, policy_apis
from gitsched.manifests.charts import CHART_FILE, find_release_chart
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES
from gitsched.manifests.parsed_file import (
    ABSENT,
    DEFAULT_LIMITS,
    MANY_FILES,
    FileIssue,
    ParsedFile,
    SharedValues,
    reject_large_file,
)
from gitsched.manifests.sourceignore import IGNORE_FILE, SourceIgnore
from gitsched.model.document import keep_identity, parse_api_group
from gitsched.model.errors import Permanent
from gitsched.model.fault import describe_fault
from gitsched.model.finding import INTERNAL_ERROR, Finding, Location
from gitsched.model.progress import Progress, follow
from gitsched.model.system_errors import is_bug
from gitsched.model.tool_groups import ARGO_GROUP, PATH_KINDS, TOOL_GROUPS
from gitsched.model.variants import BUNDLE_KIND
from gitsched.reconcile.cache.caches import ParseCache, SourceFile
from gitsched.reconcile.source.ignore_files import parse_ignore_files
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.decide.catalog import RawDocument
    from gitsched.git import Repository, TreeEntry
    from gitsched.manifests.schema import Strictness
    from gitsched.model.document import Body
    from gitsched.model.finding import ValidationResult

_SPLIT_UNREAD_CONFIGS = Registered("gitsched.decide.validation", "split_unread_configs")
_ROOT_NAMES = (*KUSTOMIZATION_NAMES, CHART_FILE)
_log = logging.getLogger("gitsched.reconcile")
_SUFFIXES = (".yaml", ".yml", ".json")
DEFINITION_KIND = "CustomResourceDefinition"
_REPLICA_PATHS = (
    *("spec.replicas", "spec.parallelism", "spec.completions"),
    *("spec.minReplicas", "spec.maxReplicas", "spec.minReplicaCount", "spec.maxReplicaCount"),
)
MIN_PARALLEL_FILES = 2_000
"""Files that no cache has, from which on it pays to parse on all cores."""
_PREPARING_FILES = 100


def is_manifest_path(path: str) -> bool:
    """Return whether a path can contain documents: YAML or JSON by its name, and not below a directory whose name starts with a
    dot."""
    directory, _, name = path.rpartition("/")
    if not name.endswith(_SUFFIXES) and name not in KUSTOMIZATION_NAMES:
        return False
    return not name.startswith(".") and not directory.startswith(".") and "/." not in directory


def is_searched(path: str) -> bool:
    """Return whether a file is searched for documents of delivery tools if it is not read anyway."""
    return path.endswith(_SUFFIXES)


def list_manifests(entries: Iterable[TreeEntry]) -> list[TreeEntry]:
    """Return the regular files of a tree that can contain documents."""
    return [entry for entry in entries if entry.mode in REGULAR_FILE_MODES and not entry.unsafe and is_manifest_path(entry.path)]


def list_ignore_files(entries: Iterable[TreeEntry]) -> list[TreeEntry]:
    """Return the files with rules that hide others."""
    return [
        entry
        for entry in entries
        if entry.path.rpartition("/")[2] == IGNORE_FILE and entry.mode in REGULAR_FILE_MODES and not entry.unsafe
    ]


def read_ignore_rules(
    repository: Repository, entries: list[TreeEntry], ignored: tuple[str, ...]
) -> tuple[SourceIgnore | None, list[Finding]]:
    """Return the rules of all `.sourceignore` files and of the settings, None where there is neither, and findings about them."""
    files = list_ignore_files(entries)
    if not (files or ignored):
        return None, []
    return parse_ignore_files(repository, files, ignored)


def select_entries(
    entries: list[TreeEntry], manifests: list[TreeEntry], paths: tuple[str, ...], ignore: SourceIgnore | None
) -> list[TreeEntry]:
    """Return the manifests below the paths that `.sourceignore` does not hide. Raise Permanent for a path without files."""
    roots = tuple(f"{path.strip('/')}/" for path in paths if path.strip("./"))
    for root in roots:
        if not any(f"{entry.path}/".startswith(root) for entry in entries):
            raise Permanent(f"the source has no files at {root.rstrip('/')}: an empty plan would empty the output branch")
    return [
        entry
        for entry in manifests
        if (not roots or entry.path.startswith(roots) or f"{entry.path}/" in roots)
        and (ignore is None or not ignore.is_ignored(entry.path))
    ]


class SourceReader:
    """Parses files of one repository, each blob once, with the rules that settings turn on.

    With `strict`, every issue of a schema is an error, else an unknown field only where a document chooses workloads or clusters.
    """

    def __init__(self, repository: Repository, cache: ParseCache, config: Config | None = None, *, strict: bool = False) -> None:
        self._strict = strict
        self._shared: SharedValues | None = None
        kinds = config.workloads if config is not None else ()
        self.repository, self._parse_cache = repository, cache
        self._replica_paths = tuple(dict.fromkeys((*_REPLICA_PATHS, *(kind.replicas_path for kind in kinds if kind.replicas_path))))
        self._ignored_codes = config.ignored_codes if config is not None else frozenset[str]()
        self.rules = ",".join((*self._replica_paths, *sorted(self._ignored_codes), *(("strict",) if strict else ())))
        self._rules_digest = blake2b(
            self.rules.encode("utf-8", "surrogatepass"), digest_size=8
        ).hexdigest()  # short: each file has a key

    @cached_property
    def _validate(self) -> Callable[[Body], ValidationResult]:
        from gitsched.decide.validation import validate_source_document  # most files are cached

        strictness: Strictness = "strict" if self._strict else "protective"
        return partial(validate_source_document, ignored=self._ignored_codes, strictness=strictness)

    def make_cache_key(self, blob: str, path: str) -> str:
        """Return the key of a parsed file: its blob, and everything else that parsing depends on."""
        name = path.rpartition("/")[2]
        kind = name if name in KUSTOMIZATION_NAMES else name.rpartition(".")[2]
        return f"{blob}:{kind}:{self._rules_digest}"

    def read(self, blob: str, path: str, repository: Repository | None = None) -> ParsedFile:
        """Parse a blob that has this path, or return it from the cache."""
        key = self.make_cache_key(blob, path)
        file = self._parse_cache.parsed.get(key)
        if file is None:
            file = self._parse(repository or self.repository, blob, path)
            self._keep(key, file)
        return _quarantine(file, self._parse_cache.quarantine[blob]) if blob in self._parse_cache.quarantine else file

    def _parse(self, repository: Repository, blob: str, path: str) -> ParsedFile:
        data = repository.read_small_blob(blob, DEFAULT_LIMITS.size)
        if data is None:
            return reject_large_file(repository.blob_size(blob), path)
        from gitsched.manifests.parser import parse_file  # loads PyYAML, and most files are cached

        return parse_file(
            data,
            path=path,
            validate=self._validate,
            editable=self._replica_paths,
            strict=self._strict,
            shared=self._shared,
        )

    def _keep(self, key: str, file: ParsedFile) -> None:
        if not any(issue.code == INTERNAL_ERROR for issue in file.issues):  # another version may read it
            self._parse_cache.put(key, file)

    def read_blob(self, blob: str) -> bytes:
        """Return the content of a blob."""
        return self.repository.blob(blob)

    def load(self, entries: Iterable[TreeEntry]) -> dict[str, TreeEntry]:
        """Load the cached files of these entries into memory at once. Return the entries by the key of their file."""
        wanted = {self.make_cache_key(entry.blob, entry.path): entry for entry in entries}
        self._parse_cache.load(wanted)
        return wanted

    def prefetch(self, entries: Iterable[TreeEntry]) -> None:
        """Load the cached files of these entries into memory at once. Of many other ones, parse most on all cores."""
        wanted = self.load(entries)
        missing = [(key, entry) for key, entry in wanted.items() if key not in self._parse_cache.parsed]
        if self.repository.promised is not None:
            self.repository.prefetch(entry.blob for _, entry in missing)
        if len(missing) >= MANY_FILES:
            self._shared = SharedValues({}, {})
        if len(missing) >= MIN_PARALLEL_FILES:
            from gitsched.reconcile.worker_processes import count_processes, map_in_processes  # few runs read so many

            first, rest = missing[:_PREPARING_FILES], missing[_PREPARING_FILES:]
            for _, entry in first:  # so that copies of this process have what parsing loads
                self.read(entry.blob, entry.path)
            processes = count_processes()
            files: list[ParsedFile | None] = (
                map_in_processes(self._try_to_parse, [entry for _, entry in rest], processes) if processes > 1 else []
            )
            for (key, _), file in zip(rest, files, strict=False):
                if file is not None:
                    self._keep(key, file)

    def _try_to_parse(self, entry: TreeEntry) -> ParsedFile | None:
        """Parse a file; None where it cannot be read, which `read` reports."""
        try:
            return self._parse(self.repository, entry.blob, entry.path)
        except Exception:  # noqa: BLE001 - as above
            return None


def _quarantine(file: ParsedFile, issues: Mapping[tuple[int, int], FileIssue | None]) -> ParsedFile:
    """Return a file without the documents that are absent, and with the others as broken ones, of which only the identity is left."""
    documents = tuple(
        parsed._replace(body=keep_identity(parsed.body), broken=True) if (parsed.index, parsed.item) in issues else parsed
        for parsed in file.documents
        if issues.get((parsed.index, parsed.item)) is not ABSENT
    )
    found = (issue for issue in issues.values() if issue is not None and issue is not ABSENT)
    return file._replace(documents=documents, issues=(*file.issues, *found))


def read_source_files(
    entries: Sequence[TreeEntry], reader: SourceReader, progress: Progress | None = None
) -> dict[str, SourceFile]:
    """Read files of the source, and return them by path."""
    reader.prefetch(entries)
    followed = entries if progress is None else follow(entries, "reading files", progress)
    return {entry.path: read_source_file(entry.path, entry.blob, reader) for entry in followed}


def read_source_file(path: str, blob: str, reader: SourceReader) -> SourceFile:
    """Read a file of the source. One on which a bug shows counts as broken."""
    try:
        return _read_source_file(path, blob, reader)
    except Exception as error:
        if not is_bug(error):
            raise
        message = f"{describe_fault(error)} while this file was read: it counts as broken; report this bug with the id"
        file = ParsedFile("invalid", (), (FileIssue("error", INTERNAL_ERROR, message, 1, 1),), unreadable=True)
        return SourceFile(blob, file, (), (make_problem_finding(file.issues[0], path),), broken=True)


def _read_source_file(path: str, blob: str, reader: SourceReader) -> SourceFile:
    file = reader.read(blob, path)
    documents = tuple(document for document in make_raw_documents(file, path, blob) if not document.broken)
    problems = (make_problem_finding(problem, path) for problem in file.issues)
    has_settings = any(document.group == BUNDLE_KIND[0] for document in documents)
    used, ignored = _SPLIT_UNREAD_CONFIGS(path, documents) if has_settings else (documents, ())
    broken = file.unreadable or any(parsed.broken for parsed in file.documents)
    return SourceFile(blob, file, used, (*problems, *ignored), broken)


def make_problem_finding(problem: FileIssue, path: str) -> Finding:
    """Return an issue of a file as a finding."""
    return Finding(problem.severity, problem.code, problem.message, Location(path, problem.line, problem.column), problem.resource)


def has_policy_documents(files: Iterable[SourceFile]) -> bool:
    """Return whether a file has a document of a policy API, such as a policy or a cluster."""
    return any(document.group in apis_by_group for file in files for document in file.documents)


def has_tool_documents(files: Iterable[SourceFile]) -> bool:
    """Return whether a file has a document of Flux or Argo CD, a broken one included."""
    return any(
        any(document.group in TOOL_GROUPS for document in file.documents)
        or (
            file.broken
            and any(parse_api_group(str(parsed.body.get("apiVersion"))) in TOOL_GROUPS for parsed in file.file.documents)
        )
        for file in files
    )


def names_paths(file: SourceFile) -> bool:
    """Return whether a file has documents that say which directories delivery tools build, or of which source."""
    documents = (document for document in file.documents if document.group in TOOL_GROUPS)
    return any(document.group != ARGO_GROUP or (ARGO_GROUP, document.kind) in PATH_KINDS for document in documents)


def list_release_charts(file: SourceFile | None) -> frozenset[str]:
    """Return the directories of the charts that Flux takes from files of a source for the releases in a file; None has none."""
    documents = file.documents if file is not None else ()
    named = (find_release_chart(document.group, document.kind, document.body) for document in documents)
    return frozenset(chart for chart in named if chart is not None)


def may_change_builds(file: SourceFile) -> bool:
    """Return whether a file has documents on which builds of delivery tools may depend, such as a Flux Kustomization or a ConfigMap."""
    values = (not document.group and document.kind in ("ConfigMap", "Secret") for document in file.documents)
    return has_tool_documents([file]) or any(values)


def may_have_bundles(documents: Iterable[RawDocument]) -> bool:
    """Return whether a document is a Bundle or contains one. After a bug it may, which costs work only."""
    kinds = {BUNDLE_KIND, *(kind for api in policy_apis.values() for kind in api.embedded_objects)}
    try:
        return any((document.group, document.kind) in kinds and may_contain_bundle(document) for document in documents)
    except Exception as error:
        if not is_bug(error):
            raise
        _log.warning("%s while Bundles were looked for; the next run plans everything; report this bug", describe_fault(error))
        return True


def has_builds(
    config: Config,
    entries: list[TreeEntry],
    has_unread: bool,
    files: Mapping[str, SourceFile],
    documents: Sequence[RawDocument],
) -> bool:
    """Return whether there is something to build, or manifests that are not read may say so: most sources have neither."""
    return (
        bool(config.source.variants)
        or may_have_bundles(documents)
        or bool(config.source.kustomize.build)
        or any(entry.path.endswith(_ROOT_NAMES) for entry in entries)
        or has_unread
        or any(document.group in TOOL_GROUPS for document in documents)
        or has_tool_documents(files.values())
    )
