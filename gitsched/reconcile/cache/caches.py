"""All caches of one process, with the cache of parsed files. The package docstring lists them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gitsched.decide.plan import InMemoryCaches
from gitsched.manifests.parsed_file import NOT_YAML, FileIssue, ParsedFile
from gitsched.model.system_errors import is_bug
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.cache.failed_builds import FailedBuilds
from gitsched.reconcile.cache.ownership import check_cache_directory
from gitsched.reconcile.cache.plan_cache import PlanCache
from gitsched.reconcile.cache.plan_file import PlanFile
from gitsched.reconcile.cache.reading_rules import ReadingRules
from gitsched.reconcile.cache.shared_rows import SharedRows
from gitsched.reconcile.cache.storage import RowFile, identify_build

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.decide.catalog import RawDocument
    from gitsched.decide.plan_input import SourceTree
    from gitsched.decide.plan_result import Plan
    from gitsched.edits.manifest_edits import ManifestText
    from gitsched.model.document import Body
    from gitsched.model.finding import Finding
    from gitsched.model.observation import Observations
    from gitsched.model.planned_files import PatchedBlob
    from gitsched.reconcile.cache.build_cache import BuildCache
    from gitsched.reconcile.source.file_version import FileVersion


Quarantine = Mapping[str, Mapping[tuple[int, int], "FileIssue | None"]]
"""Documents that count as broken because a bug shows on them: by blob, and position in it and in a List, with the error about each."""


class ParseCache:
    """Parsed files by key, in memory and in one file that all processes of a user share. Raise Permanent for a cache directory that is
    part of the checked-out commit. The `quarantine` is that of the current run, and part of no entry. `config` are the settings of the tree
    (hex) whose valid gitsched.yaml was read last.
    """

    def __init__(self, cache: Path) -> None:
        check_cache_directory(cache)
        self._rows = RowFile(cache / f"parsed-{identify_build()}.sqlite3")
        self.parsed: dict[str, ParsedFile] = {}
        self._unsaved: dict[str, ParsedFile] = {}
        self.quarantine: Quarantine = {}
        self.config: tuple[str, Config] | None = None

    def load(self, keys: Iterable[str]) -> None:
        """Load the rows of these keys from disk into memory at once."""
        try:
            for key, value in self._rows.read([key for key in keys if key not in self.parsed]).items():
                self.parsed[key] = ParsedFile.from_json(value)
        except Exception as error:
            if not is_bug(error):
                raise
            self._rows.discard(error)  # also because of a bug: the files are parsed again

    def put(self, key: str, file: ParsedFile) -> None:
        self.parsed[key] = self._unsaved[key] = file

    def save(self) -> None:
        """Write the new entries to disk. Log a failure instead of raising it: the run does not need the file."""
        self._rows.write(self._unsaved)
        self._unsaved.clear()


MAX_OLD_VERSIONS = 1_000
"""Parsed files that are kept in memory beyond twice those of the last complete plan."""


class SourceFile(NamedTuple):
    """One file of a source tree. `findings` are about its content; `broken`: a document of the file cannot be used; `kustomized`: a
    kustomization changes or may change its objects."""

    blob: str
    file: ParsedFile
    documents: tuple[RawDocument, ...]
    findings: tuple[Finding, ...]
    broken: bool
    kustomized: bool = False

    @property
    def independent(self) -> bool:
        """Whether the file is valid, and depends neither on other files nor on an earlier version of itself."""
        file = self.file
        return not (self.broken or self.kustomized or file.kustomization is not None or file.reason == NOT_YAML)


class TreeCache(NamedTuple):
    """The last source tree: its files by path and its content. It is `valid` where neither a file nor gitsched.yaml is broken;
    `config_valid` is about gitsched.yaml alone. `source_paths` are the files whose documents depend on no other file,
    `built` the documents that kustomize roots build. `depends_on_policies`: other policies may need other builds.
    Files may come and go as the `reading_rules` allow; without rules only a complete plan knows what they concern.
    `used_versions` are the versions that are used of broken files, None for a file without an earlier one. It is None itself where the next
    run may use others. `failed_builds` are the builds that fail; None where nobody knows what they would be in another run."""

    tree: str
    files: Mapping[str, SourceFile]
    source_tree: SourceTree
    valid: bool
    config_valid: bool
    source_paths: Collection[str] = ()
    built: tuple[RawDocument, ...] = ()
    depends_on_policies: bool = False
    reading_rules: ReadingRules | None = None
    used_versions: Mapping[str, FileVersion | None] | None = None
    failed_builds: FailedBuilds | None = {}


class LastWritten(NamedTuple):
    """The last complete plan that this process committed, and its output tree."""

    output_tree: str
    plan: Plan


@dataclass(slots=True)
class Caches:
    """All caches of one process. `plan_size` is the number of parsed files that the last complete plan needed. `builds` is opened by the
    first build of a kustomize root. `shared_rows` are
    for commands that make many plans from one state. `made_plan` is the complete plan from which
    `gitsched.reconcile.incremental.new_state` has tried to make the state that these caches did not have."""

    directory: Path
    files: ParseCache
    record_bodies: dict[str, Body] = field(default_factory=dict)
    tree: TreeCache | None = None
    decisions: InMemoryCaches = field(default_factory=InMemoryCaches)
    plan: PlanCache | None = None
    shared_rows: SharedRows | None = None
    made_plan: object | None = None
    last_written: LastWritten | None = None
    metric_values: Observations | None = None
    plan_size: int = 0
    builds: BuildCache | None = None
    patches: dict[PatchedBlob, ManifestText] = field(default_factory=dict)

    def set_quarantine(self, quarantine: Quarantine) -> None:
        """Let other documents count as broken than before: what was read and decided with these is discarded."""
        if quarantine or self.files.quarantine:
            self.files.quarantine, self.files.config, self.tree, self.decisions = quarantine, None, None, InMemoryCaches()

    def take_plan(
        self,
        key: str,
        output_tree: str | None,
        open_shared: Callable[[], PlanCache | None],
        continue_earlier: Callable[[PlanCache], PlanCache | None],
    ) -> PlanCache | None:
        """Return the plan cache of this key for an output tree, from memory, from disk or from what `open_shared` returns; None if there
        is none. `continue_earlier` makes one of that of an earlier output tree, if it can.

        It is removed from here, because an incremental plan changes it. The run puts it back once the plan is published.
        """
        cache, self.plan = self.plan, None
        if cache is not None and (cache.header.cache_key, cache.header.output_tree) == (key, output_tree):
            return cache
        file = PlanFile.open(self.get_plan_path(key))
        cache = PlanCache.open(file, key, shared=self.shared_rows) if file is not None else None
        if cache is not None and cache.header.output_tree == output_tree:
            return cache
        found = open_shared()
        if found is None and cache is not None:
            found = continue_earlier(cache)
        if file is not None and (found is None or found.store is not file):
            file.close()
        return found

    def open_builds(self) -> BuildCache:
        """Return the cache of builds, which is opened once."""
        if self.builds is None:
            from gitsched.reconcile.cache.build_cache import BuildCache  # most sources have nothing to build

            self.builds = BuildCache(self.directory)
        return self.builds

    def get_plan_path(self, key: str) -> Path:
        """Return the file of the plan cache."""
        return self.directory / f"plan-{key[:32]}.sqlite3"

    def save(self) -> None:
        """Write new entries to disk, and discard old versions of files from memory."""
        self.files.save()
        if self.builds is not None:
            self.builds.save()
        if self.plan is not None:
            self.plan.save()
        if len(self.files.parsed) > 2 * self.plan_size + MAX_OLD_VERSIONS:
            self.files.parsed.clear()  # what is saved stays on disk
            self.record_bodies.clear()
