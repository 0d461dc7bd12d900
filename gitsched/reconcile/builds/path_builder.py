"""Build reconciled directories: with kustomize or helm, several at a time, and with results of earlier runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from gitsched.build.argo_cd import read_directory
from gitsched.build.chart_stability import is_error, is_repeatable
from gitsched.build.helm import ChartResult
from gitsched.build.kustomize import BuildResult, BuiltObject
from gitsched.model.document import as_object, get_field
from gitsched.model.errors import Permanent
from gitsched.model.finding import LAST_VALID_USED, FieldOrigin, Finding, Location, Pointer, format_names, locate_field
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.builds.build_context import BuildContext
from gitsched.reconcile.builds.charts import compare_helm, load_helm, render_charts
from gitsched.reconcile.builds.kustomize_roots import add_helm, build_closures, compare_builder, load_builder
from gitsched.reconcile.builds.printed_objects import NOT_BUILT
from gitsched.reconcile.builds.reconciled_path import ReconciledPath, locate_problem
from gitsched.reconcile.source.commit_tree import CommitTree
from gitsched.render.run_metadata import NOTHING_BUILT, BuildRecord
from gitsched.report.lines import abbreviate_oid

EMPTY_BUILD = "empty-build"
"""The code of the finding about a directory that builds no object."""
MAX_NAMED_OBJECTS = 5
"""The maximum number of objects that a message lists."""
MISSING_PATH = "missing-path"
"""The code of the finding about a directory that is not in the source of its document."""


class PathProblem(NamedTuple):
    """Why a path cannot be built, and where the commit says so; `field` is that of the tool's document, if it is one."""

    code: str
    message: str
    location: Location
    field: FieldOrigin | None = None


def list_path_problems(path: ReconciledPath, result: BuildResult | None, commit: CommitTree) -> list[PathProblem]:
    """Return why a path cannot be built; nothing if it is built."""
    if path.problem:
        field = locate_field(path.document.origin, _find_path_field(path)) if path.is_missing else None
        return [PathProblem(MISSING_PATH if path.is_missing else NOT_BUILT, path.problem, path.location, field)]
    if result is not None and result.failed:
        errors = [problem for problem in result.problems if is_error(problem)]
        if errors:
            return [PathProblem(problem.code, problem.message, locate_problem(path, problem, commit)) for problem in errors]
        program = "helm" if path.recipe.chart else "kustomize"
        return [PathProblem("kustomize-build", f"{program} cannot build this: {result.describe_failure()}", path.location)]
    if result is not None:
        return []
    return [PathProblem(problem.code, problem.message, locate_problem(path, problem, commit)) for problem in path.closure.problems]


def _find_path_field(path: ReconciledPath) -> Pointer:
    """Return the field of the tool's document that names the directory."""
    if path.tool == "Flux Kustomization":
        return "spec", "path"
    sources = get_field(path.document.body, "spec", "sources")
    if not isinstance(sources, list):
        return "spec", "source", "path"
    named = (index for index, source in enumerate(sources) if read_directory(as_object(source)) == path.recipe.directory)
    return "spec", "sources", next(named, 0), "path"


def list_empty_findings(paths: Iterable[ReconciledPath], built: Iterable[ReconciledPath]) -> Iterator[Finding]:
    """Yield a remark for each document of a tool whose directory has nothing to build, or among those that are `built` without objects."""
    empty = dict.fromkeys([(path.location, path.describe()) for path in paths if path.has_no_objects()])
    empty |= dict.fromkeys((path.location, path.describe()) for path in built)
    for location, names in groupby(sorted(empty), key=itemgetter(0)):
        listed = [name for _, name in names]
        verb, pronoun = ("has", "it") if len(listed) == 1 else ("have", "them")
        text = f"{format_names(listed)}, which {verb} no object: nothing is placed for {pronoun}. Add an object, or remove the document"
        yield Finding("info", EMPTY_BUILD, text, location)


def make_hidden_finding(path: ReconciledPath, unidentified: Sequence[str], commit: str) -> Finding:
    """Return the note about a directory that builds objects of which an error hides what identifies them: objects of an earlier commit may
    be meant, and stay."""
    names = format_names(unidentified, MAX_NAMED_OBJECTS)
    text = (
        f"{path.name} builds {names} with an error in what identifies it: objects that it built as of commit {abbreviate_oid(commit)}, and "
        "does not build now, stay; correct the error"
    )
    return Finding("info", LAST_VALID_USED, text, path.location)


class PathBuilder:
    """Builds directories of one commit. `record` says with which programs, `findings` are about these programs and charts."""

    def __init__(self, commit: CommitTree, context: BuildContext) -> None:
        self._commit, self._context = commit, context
        self.record = NOTHING_BUILT
        self.findings: dict[Finding, None] = {}

    def build(self, paths: Sequence[ReconciledPath]) -> list[BuildResult | None]:
        """Return what each path prints, None for one with problems. Without a program, all results are failures."""
        buildable = [path for path in paths if not path.problem and not path.closure.problems]
        charts = [path for path in buildable if path.recipe.chart is not None]
        others = [path for path in buildable if path.recipe.chart is None]
        results: dict[int, BuildResult] = {}
        for build, group in ((self._render_charts, charts), (self._build_closures, others)):
            if group:
                results |= dict(zip(map(id, group), build(group), strict=True))
        return [results.get(id(path)) for path in paths]

    def _render_charts(self, paths: list[ReconciledPath]) -> list[BuildResult]:
        cache = self._context.caches.open_builds()
        try:
            helm = load_helm(cache)
        except Permanent as error:
            return [BuildResult((), str(error))] * len(paths)
        self.record = self.record._replace(helm=helm.version)
        self.findings |= dict.fromkeys(compare_helm(helm, self._context.record))
        requests = [path.recipe.chart for path in paths if path.recipe.chart is not None]
        return list(map(self._read_chart_result, render_charts(requests, self._commit, cache, helm)))

    def _read_chart_result(self, result: ChartResult) -> BuildResult:
        for problem in result.problems:
            if not is_error(problem):
                location = Location(problem.path, problem.line, problem.column)
                self.findings[Finding("warning", problem.code, problem.message, location)] = None
        objects = tuple(BuiltObject(rendered.text, rendered.path, False) for rendered in result.objects)
        built = BuildResult(objects, problems=result.problems)
        return built._replace(lasting=built.failed and all(map(is_repeatable, result.problems)))

    def _build_closures(self, paths: list[ReconciledPath]) -> list[BuildResult]:
        cache = self._context.caches.open_builds()
        try:
            builder = load_builder(cache)
        except Permanent as error:
            return [BuildResult((), str(error))] * len(paths)
        builder, closures = add_helm(builder, [path.closure for path in paths], cache)
        self.record = BuildRecord(builder.version, {}, builder.helm.version if builder.helm is not None else self.record.helm)
        self.findings |= dict.fromkeys(compare_builder(builder, self._context.record))
        results = build_closures([(closure, path.commit) for closure, path in zip(closures, paths, strict=True)], builder, cache)
        return [
            BuildResult((), closure.problems[-1].message) if closure.problems else result
            for closure, result in zip(closures, results, strict=True)
        ]
