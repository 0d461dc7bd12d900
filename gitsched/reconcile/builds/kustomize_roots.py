"""Build the kustomize roots that settings name: their objects are objects of the source, located where they come from."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from gitsched.apis.gitsched.config import FILE
from gitsched.build.builder import Builder, find_builder
from gitsched.build.closure import Closure
from gitsched.build.commit_files import BuildProblem
from gitsched.build.kustomize import BuildResult, BuiltObject, build_root, compute_build_key
from gitsched.build.process import EXPIRED
from gitsched.git import TreeEntry
from gitsched.model.errors import Permanent
from gitsched.model.finding import Finding, Location, format_names
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.builds.build_context import BuildContext
from gitsched.reconcile.builds.build_runs import find_program, run_builds
from gitsched.reconcile.builds.built_roots import BuiltRoots
from gitsched.reconcile.builds.charts import compare_helm, load_helm
from gitsched.reconcile.builds.known_roots import KnownRoots, is_reusable
from gitsched.reconcile.builds.kustomizations import FileReader
from gitsched.reconcile.builds.object_sources import list_object_sources
from gitsched.reconcile.builds.origins import OriginLocator, compute_origins_key
from gitsched.reconcile.cache.build_cache import BuildCache
from gitsched.reconcile.cache.failed_builds import FailedBuild, FailedBuilds
from gitsched.reconcile.source.commit_tree import CommitTree, open_commit_tree, resolve_closures
from gitsched.reconcile.source.source_history import list_introduced
from gitsched.render.run_metadata import NOTHING_BUILT, BuildRecord, RunMetadata
from gitsched.report.lines import abbreviate_oid

PROGRAM_MISSING = "program-missing"
"""The code of the finding that a program which builds something is not installed."""
MAX_ROOTS = 2_000
"""Roots that are built for one commit."""
MAX_NAMED_ROOTS = 5
"""Roots that one finding names."""
MAX_EARLIER_COMMITS = 100
"""Commits since the last run that are searched for a version of a root that can be built."""
_PASSING_CODES = ("kustomize-helm", "kustomize-remote")
"""Codes of problems that may be those of this machine, or of the network."""
MAX_EARLIER_BUILDS = 10
"""Versions of a root since the last run that are built."""


def build_roots(
    entries: Iterable[TreeEntry],
    reader: FileReader,
    patterns: Iterable[str],
    context: BuildContext,
    excluded: Container[str] = (),
) -> BuiltRoots:
    """Build all roots of a tree that match the patterns. A root that cannot be built keeps the objects that it had in the last run.

    Those in `excluded` are built elsewhere. Without kustomize none is built, and what was delivered before stays.
    """
    commit = open_commit_tree(context, entries, reader)
    matching, findings = _select_roots(commit, patterns)
    roots = [root for root in matching if root not in excluded]
    if not roots:
        return BuiltRoots((), tuple(findings), failed=bool(findings))
    cache = context.caches.open_builds()
    try:
        builder = load_builder(cache)
    except Permanent as error:
        return _refuse_roots(resolve_closures(roots, commit), str(error), findings)
    known = KnownRoots(commit, reader, builder, cache)
    read = known.find(roots)
    built = build_directories([root for root in roots if root not in read], commit, reader, context)
    findings += built.findings
    reader.prefetch(entry for root in built.roots.values() for entry in root.locator.list_read_files(root.result.objects))
    for name, root in built.roots.items():
        found: list[Finding] = []
        documents = [document for printed in root.result.objects for document in root.locator.read(printed, found)]
        read[name] = known.make(root.closure, documents, found)
    known.keep({name: read[name] for name in roots if name not in built.roots or built.roots[name].is_reusable})
    findings += (finding for root in read.values() for finding in root.findings)
    kept = [root.kept for root in built.roots.values() if root.kept is not None]
    charts = (path for root in built.roots.values() for path in root.closure.list_chart_files())
    return BuiltRoots(
        tuple(document for name in roots for document in read[name].documents),
        tuple(findings),
        frozenset().union(*(root.resources for root in read.values()), *(root.resources for root in kept)),
        built.record,
        any(finding.severity == "error" for finding in findings),
        frozenset(charts).union(*(root.files.keys() - root.resources for root in kept)),
        failures=built.failures,
        unbuilt=_list_unbuilt(root.closure for root in built.roots.values() if root.failed),
    )


def _refuse_roots(closures: Iterable[Closure], reason: str, findings: Sequence[Finding]) -> BuiltRoots:
    """Return roots of which none is built, with an error at each one."""
    refused = [closure._replace(problems=(BuildProblem(PROGRAM_MISSING, reason, closure.kustomization),)) for closure in closures]
    return BuiltRoots(
        (),
        (*findings, *_describe_failures([(closure, BuildResult(())) for closure in refused], {})),
        frozenset().union(*(closure.resources for closure in refused)),
        failed=True,
        failures={closure.root: FailedBuild("", lasting=False) for closure in refused},
        unbuilt=_list_unbuilt(refused),
    )


def _list_unbuilt(closures: Iterable[Closure]) -> dict[str, tuple[str, ...]]:
    """Return the roots that cannot be built by the files whose objects they build."""
    found: dict[str, tuple[str, ...]] = {}
    for closure in closures:
        for path in closure.resources:
            found[path] = (*found.get(path, ()), closure.root)
    return found


class BuiltRoot(NamedTuple):
    """A root and what it builds. `closure` is that of the commit; the objects are those of an earlier commit if `failed`, with the
    `locator` for them. They are empty if no earlier commit can be built either. `kept` is the closure of the earlier commit: its files are
    no objects of their own until the root can be built."""

    closure: Closure
    result: BuildResult
    locator: OriginLocator
    failed: bool = False
    kept: Closure | None = None

    @property
    def is_reusable(self) -> bool:
        """Whether the next run may use its documents again if its files are the same."""
        return not self.failed and is_reusable(self.closure)


class BuiltDirectories(NamedTuple):
    """Roots by their directory, findings about those that cannot be built, and the record of the builds. `failures`: see BuiltRoots."""

    roots: Mapping[str, BuiltRoot]
    findings: tuple[Finding, ...] = ()
    record: BuildRecord = NOTHING_BUILT
    failures: FailedBuilds | None = {}


def build_directories(
    roots: Sequence[str], commit: CommitTree, reader: FileReader, context: BuildContext, *, keep: bool = True
) -> BuiltDirectories:
    """Build roots of a commit, several at a time. With `keep`, a root that cannot be built has the objects of the newest commit since the
    last run that can be built, else those that it had in the last run.

    Raises Permanent if there is no program that builds them.
    """
    record = context.record
    cache = context.caches.open_builds()
    builder = load_builder(cache)
    closures = resolve_closures(roots, commit)
    builder, closures = add_helm(builder, closures, cache)
    results = build_closures([(closure, commit) for closure in closures], builder, cache)
    cache.load([compute_origins_key(closure, reader) for closure in closures if not closure.problems])
    found: dict[str, BuiltRoot] = {}
    failures: list[tuple[Closure, BuildResult]] = []
    kept: dict[str, str] = {}
    failed_builds: dict[str, FailedBuild] = {}
    earlier_builds = EarlierBuilds(reader, context, builder, cache)
    for closure, result in zip(closures, results, strict=True):
        locator, failed = OriginLocator(closure, commit, reader, cache), bool(closure.problems or result.failed)
        earlier: EarlierBuild | None = None
        if failed:
            failures.append((closure, result))
            earlier = earlier_builds.build(closure.root) if keep else None
            if earlier is not None:
                kept[closure.root] = earlier.commit
            lasting = is_lasting(closure.problems, result) and earlier_builds.are_lasting
            failed_builds[closure.root] = FailedBuild(kept.get(closure.root, ""), lasting)
            locator, result = (earlier.locator, earlier.result) if earlier is not None else (locator, BuildResult(()))
        found[closure.root] = BuiltRoot(closure, result, locator, failed, earlier.closure if earlier is not None else None)
    findings = [*compare_builder(builder, record), *_describe_failures(failures, kept)]
    warnings = (problem for root in found.values() if not root.failed for problem in root.result.problems)
    for problem in dict.fromkeys(warnings):
        findings.append(Finding("warning", problem.code, problem.message, Location(problem.path, problem.line, problem.column)))
    helm = builder.helm.version if builder.helm is not None else ""
    known = None if any(map(is_expired, results)) else failed_builds
    return BuiltDirectories(found, tuple(findings), BuildRecord(builder.version, kept, helm), known)


def is_expired(result: BuildResult) -> bool:
    """Return whether a build did not end in time: to try it again in the same run takes as long."""
    return EXPIRED in result.describe_failure()


def is_lasting(problems: Iterable[BuildProblem], result: BuildResult | None) -> bool:
    """Return whether a build fails in each run with the same files and programs, whatever this machine and other repositories have."""
    codes = {problem.code for problem in problems}
    return codes.isdisjoint(_PASSING_CODES) and (bool(codes) or (result is not None and result.lasting))


class EarlierBuild(NamedTuple):
    """A root as an earlier commit has it."""

    commit: str
    closure: Closure
    locator: OriginLocator
    result: BuildResult


class EarlierBuilds:
    """Builds roots as earlier commits have them, the newest commit first. `are_lasting`: the next run finds the same in them."""

    def __init__(self, reader: FileReader, context: BuildContext, builder: Builder, cache: BuildCache) -> None:
        self._reader, self._context, self._builder, self._cache = reader, context, builder, cache
        self._trees: dict[str, CommitTree] = {}
        self.are_lasting = True

    def build(self, root: str) -> EarlierBuild | None:
        """Return a root of the newest commit that can be built, up to that of the last run; None if there is none."""
        last = self._context.find_last_commit(root)
        if not last:
            return None
        found: dict[str, EarlierBuild | None] = {}
        keys: dict[str, str] = {}

        def find_key(oid: str) -> str:
            """Return the key of the root in a commit; "" if it cannot be built."""
            if oid not in keys:
                keys[oid] = self._build_at(root, oid, found, oid == last)
            return keys[oid]

        introduced = list_introduced(self._context.list_earlier(MAX_EARLIER_COMMITS), find_key)
        oid, key = next(introduced, None) or (last, find_key(last))
        earlier = found.get(key)
        return earlier._replace(commit=oid) if earlier is not None else None

    def _build_at(self, root: str, oid: str, found: dict[str, EarlierBuild | None], required: bool) -> str:
        """Build a root of a commit, unless as many as allowed were built, and add it to `found`; return its key, or ""."""
        commit = self._open(oid)
        if commit is None:
            self.are_lasting = False
            return ""
        builder, (closure,) = add_helm(self._builder, resolve_closures([root], commit), self._cache)
        key = compute_build_key(closure, builder)
        if not closure.problems and key not in found and (required or len(found) < MAX_EARLIER_BUILDS):
            (result,) = build_closures([(closure, commit)], builder, self._cache)
            locator = OriginLocator(closure, commit, self._reader, self._cache)
            found[key] = None if result.failed else EarlierBuild(oid, closure, locator, result)
            self.are_lasting &= result.lasting or not result.failed
        self.are_lasting &= not closure.problems or is_lasting(closure.problems, None)
        return key if found.get(key) is not None else ""

    def _open(self, oid: str) -> CommitTree | None:
        """Return the files of a commit; None if it is not available."""
        if oid not in self._trees:
            context = self._context
            if not context.fetch_commit(oid):
                return None
            tree = context.repository.commit(oid).tree
            # The settings of that commit count: the run that planned it could read no more, also if the root could not be built.
            allowed = context.remotes._replace(trusted=None, own=context.list_allowed(tree))
            entries = context.list_entries(tree)
            self._trees[oid] = open_commit_tree(context._replace(remotes=allowed), entries, self._reader)
        return self._trees[oid]


def add_helm(builder: Builder, closures: list[Closure], cache: BuildCache) -> tuple[Builder, list[Closure]]:
    """Add helm to the builder if a root renders a chart; without helm, such a root has a problem."""
    if not any(closure.charts for closure in closures):
        return builder, closures
    try:
        return builder._replace(helm=load_helm(cache)), closures
    except Permanent as error:
        text = str(error)
        return builder, [
            closure._replace(problems=(*closure.problems, BuildProblem("kustomize-helm", text, closure.kustomization)))
            if closure.charts
            else closure
            for closure in closures
        ]


def _select_roots(commit: CommitTree, patterns: Iterable[str]) -> tuple[list[str], list[Finding]]:
    roots: dict[str, None] = {}
    findings: list[Finding] = []
    for pattern in patterns:
        matched = commit.list_roots(pattern)
        roots.update(dict.fromkeys(matched))
        if not matched:
            text = f"source.kustomize.build names {pattern}, and no directory with a kustomization matches it: correct or remove it"
            findings.append(Finding("error", "kustomize-no-root", text, Location(FILE, 1, 1)))
    if len(roots) > MAX_ROOTS:
        text = f"source.kustomize.build matches {len(roots)} directories; only the first {MAX_ROOTS} are built"
        findings.append(Finding("error", "kustomize-no-root", text, Location(FILE, 1, 1)))
    return list(roots)[:MAX_ROOTS], findings


def compare_builder(builder: Builder, record: RunMetadata | None) -> list[Finding]:
    """Return a finding if the last run built with another version, which may print other bytes for the same files."""
    helm = compare_helm(builder.helm, record) if builder.helm is not None else []
    before = record.builds.builder if record is not None else ""
    if before in ("", builder.version):
        return helm
    text = f"built with {builder.version}, and the output branch with {before}: objects may differ although their files do not"
    return [Finding("warning", "kustomize-version", text), *helm]


def load_builder(cache: BuildCache) -> Builder:
    """Find the builder with the versions of executables that earlier runs have read."""
    return find_program(cache, find_builder)


def build_closures(closures: list[tuple[Closure, CommitTree]], builder: Builder, cache: BuildCache) -> list[BuildResult]:
    """Build the closures without problems, several at a time, or return their results from the cache."""
    keys = [compute_build_key(closure, builder) for closure, _ in closures]
    cache.load([key for key, (closure, _) in zip(keys, closures, strict=True) if not closure.problems])
    missing = {
        key: (closure, commit)
        for key, (closure, commit) in zip(keys, closures, strict=True)
        if not closure.problems and cache.get(key) is None
    }
    blobs: dict[str, bytes] = {}
    for closure, commit in missing.values():
        blobs.update((blob, commit.read_blob(blob)) for blob in closure.files.values() if blob not in blobs)
    done = run_builds(
        {key: (closure, list_object_sources(closure, commit)) for key, (closure, commit) in missing.items()},
        lambda root, limits: build_root(root[0], blobs, builder, limits, root[1]),
        is_expired,
        cache,
    )
    for key, result in done.items():
        if not result.failed or result.lasting:
            rows = [(text.text.decode("utf-8", "surrogateescape"), text.path, text.generated) for text in result.objects]
            cache.put(key, [rows, result.problems, result.error])
    return [
        BuildResult(()) if closure.problems else done.get(key) or _restore(*cache.get(key))
        for key, (closure, _) in zip(keys, closures, strict=True)
    ]


def _restore(
    rows: Iterable[tuple[str, str, bool]], problems: Iterable[tuple[str, str, str, int, int]], error: str = ""
) -> BuildResult:
    objects = (BuiltObject(text.encode("utf-8", "surrogateescape"), path, generated) for text, path, generated in rows)
    restored = BuildResult(tuple(objects), error, tuple(BuildProblem(*problem) for problem in problems))
    return restored._replace(lasting=restored.failed)


def _describe_failures(failures: Iterable[tuple[Closure, BuildResult]], kept: Mapping[str, str]) -> Iterator[Finding]:
    """Yield one finding for each problem, with the roots that cannot be built because of it. `kept` are the commits whose objects are used
    instead."""
    by_problem: dict[BuildProblem, list[str]] = {}
    for closure, result in failures:
        for problem in (*closure.problems, *result.problems):
            by_problem.setdefault(problem, []).append(closure.root)
        if result.error:
            text = f"kustomize cannot build this: {result.error}"
            by_problem.setdefault(BuildProblem("kustomize-build", text, closure.kustomization), []).append(closure.root)
    for problem, roots in by_problem.items():
        by_commit: dict[str, list[str]] = {}
        for root in roots:
            by_commit.setdefault(kept.get(root, ""), []).append(root)
        effects = (
            f"{f'with the objects of commit {abbreviate_oid(oid)}' if oid else 'without objects'}: {format_names(named, MAX_NAMED_ROOTS)}"
            for oid, named in by_commit.items()
        )
        text = f"{problem.message}. Not built, {'; '.join(effects)}"
        yield Finding("error", problem.code, text, Location(problem.path, problem.line, problem.column))
