"""Build the directories that delivery tools reconcile by documents of the commit, as these tools build them.

Only those are built that have something a policy may select. The documents that a build prints are read as well: a Flux Kustomization that
another one patches counts as it is after that.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from gitsched.apis.gitsched.config import Config, KindScope
from gitsched.apis.policy_api import WorkloadSelector
from gitsched.build.kustomize import BuildResult
from gitsched.decide.catalog import KindScopes, KustomizedDocument, RawDocument, make_origin, make_raw_document
from gitsched.manifests.parsed_file import read_identity
from gitsched.model.finding import Finding
from gitsched.model.tool_groups import PATH_KINDS, TOOL_GROUPS
from gitsched.reconcile.builds.build_context import BuildContext
from gitsched.reconcile.builds.kustomizations import FileReader, is_read_by_api
from gitsched.reconcile.builds.kustomize_roots import is_expired, is_lasting
from gitsched.reconcile.builds.last_paths import LastPaths
from gitsched.reconcile.builds.path_builder import PathBuilder, list_empty_findings, list_path_problems, make_hidden_finding
from gitsched.reconcile.builds.path_selection import PathSelection, list_selectors
from gitsched.reconcile.builds.printed_objects import NOT_BUILT, PlacedObjects, PrintedObjects
from gitsched.reconcile.builds.reconciled_objects import NO_PATHS, NOTHING_RECONCILED, ReconciledPaths
from gitsched.reconcile.builds.reconciled_path import (
    BundledPaths,
    ReconciledPath,
    apply_recipe,
    index_builders,
    is_built_by_another,
)
from gitsched.reconcile.builds.tool_documents import DocumentIndex
from gitsched.reconcile.builds.tool_paths import ToolPathReader
from gitsched.reconcile.cache.caches import SourceFile
from gitsched.reconcile.cache.failed_builds import FailedBuild
from gitsched.reconcile.source.commit_tree import CommitTree, open_commit_tree
from gitsched.reconcile.source.source_history import list_introduced
from gitsched.reconcile.source.source_reader import is_manifest_path
from gitsched.report.lines import abbreviate_oid

MAX_PATHS = 2_000
"""Directories that are built for one commit."""
MAX_EARLIER_COMMITS = 5
"""Commits since the last run that are built for what cannot be built now, besides that of the last run."""
MAX_DEPTH = 10
"""Documents of tools that are built by others, one by the next."""


_Identity = tuple[str, str, str]


def build_reconciled_paths(
    commit: CommitTree,
    files: Mapping[str, SourceFile],
    reader: FileReader,
    config: Config,
    context: BuildContext,
    documents: Sequence[RawDocument] = (),
) -> ReconciledPaths:
    """Build what tools reconcile and policies may select. `files` are those that are read for policies, `documents` what counts of them.

    Without a program that builds them, they are not placed.
    """
    index = DocumentIndex(commit, files, reader, documents)
    tool_documents = index.list_groups(TOOL_GROUPS)
    if not tool_documents:
        return NO_PATHS
    paths = ToolPathReader(commit, tool_documents, list(index.list_read_documents()), reader, config, LastPaths(context, reader))
    found = paths.read_all()
    nothing = NOTHING_RECONCILED._replace(inputs=paths.inputs)
    if not (found or paths.bundled or paths.findings):
        return nothing
    selection = PathSelection(list_selectors((*index.list_read_documents(), *index.list_restored())), reader)
    if not found and not paths.bundled:
        return nothing if selection.is_empty else nothing._replace(findings=tuple(dict.fromkeys(paths.findings)))
    read_commit = partial(_EarlierCommit, reader, config, context)
    return _PathBuilds(commit, index, paths, selection, reader, context, config.kinds, read_commit).run(found)


class _EarlierCommit:
    """What tools build of an earlier commit. Only what is asked for is built, as far as it depends on no other build."""

    def __init__(self, reader: FileReader, config: Config, context: BuildContext, oid: str) -> None:
        repository = context.repository
        commit = open_commit_tree(context, context.list_entries(repository.commit(oid).tree), reader)
        index = DocumentIndex(commit, {}, reader)
        paths = ToolPathReader(commit, index.list_groups(TOOL_GROUPS), [], reader, config)
        self._found = paths.read_all()
        self._open_builds = partial(
            _PathBuilds, commit, index, paths, PathSelection((WorkloadSelector(),), reader), reader, context, config.kinds
        )
        self._direct: dict[str, list[ReconciledPath]] = {}
        for path in _list_direct(self._found, paths):
            self._direct.setdefault(path.name, []).append(path)
        self._built: dict[str, list[RawDocument]] = {}
        self._all: Mapping[str, list[RawDocument]] | None = None

    def read(self, name: str) -> list[RawDocument]:
        """Return the objects of a path by its name; none if there is no such path."""
        direct = self._direct.get(name, [])
        if self._all is None and direct and not any(_has_value_sources(path) for path in direct):
            if name not in self._built:
                self._built[name] = self._open_builds().build_only(direct).get(name, [])
            return self._built[name]
        if self._all is None:
            builds = self._open_builds()
            if self._found:
                builds.run(self._found)
            self._all = builds.by_name
        return self._all.get(name, [])

    def list_files(self, name: str) -> Iterator[tuple[str, bool]]:
        """Yield the files that a path read, and whether their objects were built; none of a path that another build prints."""
        for path in self._direct.get(name, []):
            yield from ((path.find_source(file), file in path.closure.resources) for file in path.closure.files)


def _list_direct(found: list[ReconciledPath], paths: ToolPathReader) -> list[ReconciledPath]:
    """Return the paths whose documents are what the files have: no other path builds them."""
    builders = index_builders(path for path in found if path.changes_objects())
    return [path for path in found if not paths.is_part(path) and not is_built_by_another(path, builders)]


def _has_value_sources(path: ReconciledPath) -> bool:
    """Return whether a build reads values of variables from objects that other builds may print."""
    return path.recipe.substitution is not None and bool(path.recipe.substitution.sources)


class _PathBuilds:
    def __init__(
        self,
        commit: CommitTree,
        index: DocumentIndex,
        paths: ToolPathReader,
        selection: PathSelection,
        reader: FileReader,
        context: BuildContext,
        kinds: Iterable[KindScope],
        read_commit: Callable[[str], _EarlierCommit] | None = None,
    ) -> None:
        self._commit, self._index, self._paths, self._selection = commit, index, paths, selection
        self._reader, self._context = reader, context
        self._documents: list[RawDocument] = []
        self._unplaced: list[KustomizedDocument] = []
        self._findings: dict[Finding, None] = {}
        self._built_files: set[str] = set()
        self._charts: set[str] = set()
        self._failed_files: set[str] = set()
        self._held_files: set[str] = set()
        self._kept_resources: set[str] = set()
        self._kept_inputs: set[str] = set()
        self._builder = PathBuilder(commit, context)
        self._inputs: set[str] = set()
        self._scopes = KindScopes(index.list_declaring(), kinds)
        self._failed = False
        self._kept: dict[str, str] = {}
        self._failures: dict[str, FailedBuild] = {}
        self._has_expired = False
        self._empty: list[ReconciledPath] = []
        self._read_commit = read_commit
        self._earlier: dict[str, _EarlierCommit | None] = {}
        self._by_name: dict[str, list[RawDocument]] = {}
        self._hiding: set[str] = set()

    @property
    def by_name(self) -> Mapping[str, list[RawDocument]]:
        """What each path prints, by name, but for those that print an object with an error in what identifies it."""
        return {name: documents for name, documents in self._by_name.items() if name not in self._hiding}

    def build_only(self, paths: list[ReconciledPath]) -> Mapping[str, list[RawDocument]]:
        """Build some paths, and nothing that their builds print; return what each one prints, by name."""
        self._build([path for path in paths if self._is_wanted(path)])
        return self.by_name

    def run(self, found: list[ReconciledPath]) -> ReconciledPaths:
        """Build the paths of the files, and then those of the documents that these builds print."""
        changing = [path for path in found if path.changes_objects()]
        left_to_bundles = list(self._paths.bundled)
        builders = index_builders(changing)
        reached = rest = _list_direct(found, self._paths)
        seen = {path.content for path in rest}
        above: dict[_Identity, frozenset[_Identity]] = {}
        left = list[ReconciledPath]()
        for _ in range(MAX_DEPTH):
            wanted = [path for path in rest if self._is_wanted(path)]
            wanted, left, rest = wanted[:MAX_PATHS], left + wanted[MAX_PATHS:], []
            for parent, documents in zip(wanted, self._build(wanted), strict=True):
                parents = above.get(parent.identity, frozenset()) | {parent.identity}
                for path in self._paths.read_printed(documents):
                    if path.identity not in parents and path.content not in seen:
                        if len(seen) >= MAX_PATHS:
                            left.append(path)
                            continue
                        seen.add(path.content)
                        above[path.identity] = parents
                        rest.append(path)
            reached = [*reached, *rest]
            if not rest:
                break
        if left:
            self._failed = True
            text = f"tools reconcile more than {MAX_PATHS} directories: the other ones, such as {left[0].name}, are not built"
            self._findings[Finding("error", NOT_BUILT, text, left[0].location)] = None
        if rest:
            text = (
                f"Kustomizations and Applications build each other over more than {MAX_DEPTH} levels: the next ones, such as "
                f"{rest[0].name}, are not built"
            )
            self._findings[Finding("warning", NOT_BUILT, text, rest[0].location)] = None
        known = {path.identity for path in reached}
        self._hold_back(path for path in changing if path.identity not in known)
        self._findings |= dict.fromkeys(self._builder.findings)
        parts = self._list_parts(reached)
        bundled = self._list_bundled(left_to_bundles, builders)
        self._inputs.update(path.location.path for path in (*found, *bundled.paths, *bundled.unknown))
        if not self._selection.is_empty:
            self._findings |= dict.fromkeys(self._paths.findings)
            self._findings |= dict.fromkeys(list_empty_findings(reached, self._empty))
        return ReconciledPaths(
            tuple(self._documents),
            tuple(self._unplaced),
            tuple(self._findings),
            parts,
            self._paths.inputs.union(self._inputs),
            frozenset(path.recipe.directory for path in reached if not path.origins and path.changes_objects()),
            self._builder.record._replace(kept=self._kept),
            bool(parts) or bool(self._paths.bundled),
            self._failed,
            bundled,
            failures=None if self._has_expired else self._failures,
            kept_inputs=frozenset(self._kept_inputs),
            charts=frozenset(self._charts),
        )

    def _list_bundled(self, written: list[ReconciledPath], builders: Mapping[str, set[_Identity]]) -> BundledPaths:
        """Return the paths that are left to Bundles, given those of the documents as files have them."""
        changed = [path for path in written if self._paths.is_part(path) or is_built_by_another(path, builders)]
        printed = self._paths.bundled[len(written) :]
        direct = [path for path in written if path not in changed]
        unknown = tuple(path for path in changed if path.location.path not in self._built_files)
        return BundledPaths((*direct, *printed), unknown, lambda kind, name: self._find_values(kind, name, []), self._scopes)

    def _hold_back(self, paths: Iterable[ReconciledPath]) -> None:
        """Keep the objects of directories out of the plan that are built as a document says which is not complete."""
        for path in paths:
            if path.recipe.changes:
                reason = (
                    f"{path.describe()}, and a kustomization changes {path.name} ({path.location.path}) in a way that is not known here, "
                    "because no document says who builds it: name the directory of that kustomization in source.kustomize.build"
                )
                for name in sorted(path.resources - self._built_files - self._held_files):
                    self._held_files.add(name)
                    for document in self._list_file_documents(name, self._commit.entries[name][0]):
                        self._unplaced.append(KustomizedDocument(document, partial(str, reason), code=NOT_BUILT))

    def _is_wanted(self, path: ReconciledPath) -> bool:
        if (self._selection.is_empty and not self._paths.bundled) or not path.changes_objects():
            return False
        if self._selection.may_select(path.closure, path.commit, path.own_values):
            return True
        files = (self._reader.read(path.closure.files[name], name) for name in path.closure.resources)
        documents = (make_raw_document(parsed.body) for file in files for parsed in file.documents)
        return any((one.group, one.kind) in PATH_KINDS for one in documents)

    def _build(self, wanted: list[ReconciledPath]) -> list[list[RawDocument]]:
        """Build paths, several at a time; return what each one prints."""
        results = self._builder.build(wanted)
        self._inputs.update(path.find_source(name) for path in wanted for name in path.closure.files)
        objects: list[tuple[ReconciledPath, PrintedObjects]] = []
        for path, result in zip(wanted, results, strict=True):
            if result is None or result.failed:
                self._report_failure(path, result)
            else:
                self._built_files |= path.resources
                self._charts.update(map(path.find_source, path.closure.charts))
                if path.recipe.chart is not None:
                    self._charts.add(path.recipe.chart.chart)
                if not result.objects:
                    self._empty.append(path)
                objects.append((path, PrintedObjects(path, result, self._commit, self._reader, self._scopes)))
        values = [document for _, entry in objects for document in entry.list_value_sources()]
        printed: dict[int, list[RawDocument]] = {}
        for path, entry in objects:
            placed = entry.read(lambda kind, name: self._find_values(kind, name, values), self._inputs)
            documents = printed[id(path)] = placed.documents
            self._documents += documents
            self._by_name.setdefault(path.name, []).extend(documents)
            self._unplaced += placed.unplaced
            self._findings |= dict.fromkeys(placed.findings)
            if placed.unidentified:
                self._restore_hidden(path, placed)
        return [printed.get(id(path), []) for path in wanted]

    def _find_values(self, kind: str, name: str, printed: list[RawDocument]) -> list[RawDocument]:
        """Return the ConfigMaps or Secrets with a name: as they are built, else as files have them."""
        known = (*printed, *self._documents)
        built = [document for document in known if (document.group, document.kind, document.name) == ("", kind, name)]
        found = list({document.origin: document for document in built}.values()) or self._index.list_named(kind, name)
        self._inputs.update(one.origin.path for one in found if one.origin is not None)
        return found

    def _report_failure(self, path: ReconciledPath, result: BuildResult | None) -> None:
        """Report why a path cannot be built, and keep its objects out of the plan."""
        self._failed = True
        problems = list_path_problems(path, result, self._commit)
        earlier = self._read_earlier(path.name)
        self._documents += earlier
        is_sure = bool(earlier) and not path.problem and is_lasting(path.closure.problems, result)
        is_sure = is_sure and self._failures.get(path.name, FailedBuild("", True)).lasting
        self._failures[path.name] = FailedBuild(self._kept.get(path.name, ""), is_sure)
        self._has_expired |= result is not None and is_expired(result)
        for code, message, location, field in problems:
            effect = f"that of commit {abbreviate_oid(self._kept[path.name])}" if earlier else "not placed"
            text = f"{message}. {path.name} is not built, and what it reconciles is {effect}"
            self._findings[Finding("error", code, text, location, field=field)] = None
        reason = f"{path.describe()}, which fails: {problems[0].message}" if problems else path.describe()
        files = {path.find_source(name): path.closure.files[name] for name in sorted(path.closure.resources)}
        self._failed_files.update(files)
        for name, blob in (*files.items(), *self._list_templates(path)):
            for document in self._list_file_documents(name, blob):
                self._unplaced.append(KustomizedDocument(apply_recipe(document, path), lambda: reason, code=NOT_BUILT))

    def _restore_hidden(self, path: ReconciledPath, placed: PlacedObjects) -> None:
        """Keep the objects of an earlier commit that may be meant by those whose kind or name an error hides."""
        self._hiding.add(path.name)
        known = {read_identity(document.body) for document in placed.documents}
        earlier = [document for document in self._read_earlier(path.name) if read_identity(document.body) not in known]
        if not earlier:
            return
        self._failed = True
        self._documents += earlier
        self._failures[path.name] = FailedBuild(self._kept[path.name], lasting=False)
        self._findings[make_hidden_finding(path, placed.unidentified, self._kept[path.name])] = None

    def _list_templates(self, path: ReconciledPath) -> Iterator[tuple[str, str]]:
        """Yield the templates of the chart of a path that cannot be built, which are parts of this chart all the same."""
        if path.recipe.chart is not None:
            self._charts.add(path.recipe.chart.chart)
            start = posixpath.normpath(posixpath.join(path.recipe.chart.chart, "templates")) + "/"
            yield from (
                (name, self._commit.entries[name][0])
                for name in sorted(self._commit.entries)
                if name.startswith(start) and is_manifest_path(name)
            )

    def _read_earlier(self, name: str) -> list[RawDocument]:
        """Return the objects of a path as the newest commit has them that can be built, up to that of the last run; none if there is no
        such commit."""
        last = self._context.find_last_commit(name)
        if not last:
            return []
        commits = self._context.list_earlier(MAX_EARLIER_COMMITS)
        introduced = list_introduced(commits, lambda oid: self._read_commit_objects(oid, name) or None)
        oid, found = next(introduced, None) or (last, self._read_commit_objects(last, name))
        earlier = self._earlier.get(oid)
        if found and earlier is not None:
            self._kept[name] = oid
            # They are no objects of their own until the path can be built.
            for path, is_resource in earlier.list_files(name):
                (self._kept_resources if is_resource else self._kept_inputs).add(path)
        return found

    def _read_commit_objects(self, oid: str, name: str) -> list[RawDocument]:
        """Return the objects of a path as an earlier commit has it; none if it is not available."""
        if oid not in self._earlier:
            self._earlier[oid] = (
                self._read_commit(oid) if self._read_commit is not None and self._context.fetch_commit(oid) else None
            )
        earlier = self._earlier[oid]
        return earlier.read(name) if earlier is not None else []

    def _list_parts(self, reached: Iterable[ReconciledPath]) -> frozenset[str]:
        """Return the files whose documents are parts. Those of directories that are not built become documents that are not placed."""
        parts: dict[str, ReconciledPath] = {}
        for path in reached:
            if path.changes_objects():
                parts |= {name: path for name in path.resources if not self._paths.is_ignored(name) and name not in parts}
        for name, path in parts.items():
            if name not in self._built_files | self._failed_files | self._held_files:
                for document in self._list_file_documents(name, self._commit.entries[name][0]):
                    self._unplaced.append(KustomizedDocument(document, path.describe, code=NOT_BUILT))
        return frozenset(parts) | self._held_files | self._kept_resources

    def _list_file_documents(self, path: str, blob: str) -> Iterator[RawDocument]:
        for parsed in self._reader.read(blob, path).documents:
            document = make_raw_document(parsed.body, make_origin(parsed, path, blob))
            if not is_read_by_api(document):
                yield document
