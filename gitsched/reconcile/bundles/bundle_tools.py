"""Find the documents of delivery tools that reconcile the directories of Bundles, and build these directories as the tools do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gitsched.apis.gitsched.bundle import BundleSpec, ClusterMetadata, VariantRule
from gitsched.apis.gitsched.source_config import SourceVariant
from gitsched.build.commit_files import list_parents
from gitsched.build.kustomize import BuildResult
from gitsched.build.path_recipe import Substitution, read_kustomization_body, write_kustomization
from gitsched.decide.catalog import RawDocument
from gitsched.model.finding import Finding, locate_origin
from gitsched.model.variants import MANIFESTS, HelmOptions
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.builds.build_context import BuildContext
from gitsched.reconcile.builds.kustomizations import FileReader
from gitsched.reconcile.builds.path_builder import PathBuilder, list_path_problems
from gitsched.reconcile.builds.printed_objects import PrintedObjects
from gitsched.reconcile.builds.reconciled_path import BundledPaths, ReconciledPath, is_below
from gitsched.reconcile.bundles.bundle_files import DirectoryFiles
from gitsched.reconcile.source.commit_tree import CommitTree, compile_path_pattern
from gitsched.render.run_metadata import BuildRecord

_MAX_NAMED = 3
"""Documents or fields that one finding names."""


class ToolChoice(NamedTuple):
    """How a variant is built for a cluster: as `path` says, None for the directory as it is; or why it is not built.

    `rule` is the index of the entry of `source.variants` that chooses the path, if it is needed.
    """

    path: ReconciledPath | None = None
    problem: str = ""
    rule: int | None = None


class BundleTools:
    """Says as which document of a delivery tool a variant is built."""

    def __init__(self, bundled: BundledPaths, rules: Sequence[SourceVariant], commit: CommitTree) -> None:
        self._commit, self._bundled = commit, bundled
        self._rules = [(rule, compile_path_pattern(rule.path)) for rule in rules]
        self._by_directory: dict[str, list[ReconciledPath]] = {}
        for path in bundled.paths:
            self._by_directory.setdefault(path.source_directory, []).append(path)
        self._changing: dict[tuple[int, frozenset[str]], bool] = {}
        self._inner: dict[tuple[str, frozenset[str]], ReconciledPath | None] = {}
        self._unknown = {path.source_directory: path for path in bundled.unknown if self._changes(path, frozenset())}

    def choose(self, spec: BundleSpec, rule: VariantRule, files: DirectoryFiles, cluster: ClusterMetadata) -> ToolChoice:
        """Return how the variant of a cluster is built."""
        paths = self._by_directory.get(rule.path, [])
        values = frozenset(spec.values)
        if rule.helm is not None:
            return ToolChoice(problem=_find_lacking_values(paths, rule.helm, values))
        if rule.path in self._unknown:
            path = self._unknown[rule.path]
            problem = (
                f"a kustomization changes {path.name} ({path.location.path}) in a way that is not known here: name the directory of that "
                "kustomization in source.kustomize.build"
            )
            return ToolChoice(problem=f"{_describe(path)}, and {problem}")
        key = rule.path, values
        inner = self._inner[key] if key in self._inner else self._find_inner(rule.path, files, values)
        self._inner[key] = inner
        if inner is not None:
            return ToolChoice(
                problem=f"{_describe(inner)}, which is a part of {rule.path}: name {inner.source_directory} as the path"
            )
        found, index = self._select(paths, values, cluster)
        if len(found) > 1 and any(self._changes(path, values) for path in found):
            names = ", ".join(f"{path.name} ({path.location.path})" for path in found[:_MAX_NAMED])
            more = f" and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
            fields = ", ".join(dict.fromkeys(change.split(" ")[0] for path in found for change in path.recipe.changes))
            problem = (
                f"{names}{more} build {rule.path} with different options ({fields or 'destination'}): map the directories of these "
                "documents to clusters in source.variants, or name an overlay for each"
            )
            return ToolChoice(problem=problem)
        changing = next((path for path in found if self._changes(path, values)), None)
        if changing is None:
            return ToolChoice(rule=index)
        if spec.delivery != MANIFESTS:
            problem = (
                f"{_describe(changing)}, which the delivery {spec.delivery} does not carry over: move the options to the overlay"
            )
            return ToolChoice(problem=f"{problem}, or set spec.delivery to {MANIFESTS}")
        return ToolChoice(changing, rule=index)

    def _select(
        self, paths: Sequence[ReconciledPath], values: frozenset[str], cluster: ClusterMetadata
    ) -> tuple[list[ReconciledPath], int | None]:
        """Return paths that differ in what they build for a cluster: one if the choice is clear. Values of the Bundle overrule theirs."""
        distinct = _list_distinct(paths, values)
        if len(distinct) < 2:
            return distinct, None
        for index, (rule, pattern) in enumerate(self._rules):
            if rule.clusters.matches(cluster):
                matching = [path for path in paths if any(map(pattern.fullmatch, list_parents(path.location.path)))]
                if matching:
                    return _list_distinct(matching, values), index
        return distinct, None

    def _find_inner(self, directory: str, files: DirectoryFiles, values: frozenset[str]) -> ReconciledPath | None:
        """Return a path below a directory that a tool changes, and whose objects the directory has as well."""
        for inner, paths in self._by_directory.items():
            if inner != directory and is_below(inner, frozenset((directory,))):
                for path in paths:
                    if not files.resources.isdisjoint(path.resources) and self._changes(path, values):
                        return path
        return None

    def _changes(self, path: ReconciledPath, values: frozenset[str]) -> bool:
        """Return whether a tool changes what a directory builds by more than the variables that the Bundle sets."""
        key = id(path), values
        if key not in self._changing:
            self._changing[key] = self._find_changes(path, values)
        return self._changing[key]

    def _find_changes(self, path: ReconciledPath, values: frozenset[str]) -> bool:
        recipe = path.recipe
        file = path.find_source(recipe.path)
        body = read_kustomization_body(file, self._commit) if file in self._commit.entries else None
        if path.problem or recipe.chart is not None or (recipe.default_namespace and not (body and body.get("namespace"))):
            return True
        variables = recipe.substitution
        if variables is not None and (variables.sources or variables.always or not values.issuperset(variables.values)):
            return True
        if not [change for change in recipe.changes if change != "postBuild"]:
            return False
        return body is None or write_kustomization(body) != recipe.kustomization


def _describe(path: ReconciledPath) -> str:
    return f"{path.describe()} at {path.location}"


def _list_distinct(paths: Iterable[ReconciledPath], values: frozenset[str]) -> list[ReconciledPath]:
    """Return paths that build different objects, apart from the variables whose values a Bundle sets."""
    found: dict[object, ReconciledPath] = {}
    for path in paths:
        recipe = path.recipe
        variables = recipe.substitution or Substitution()
        own = {name: value for name, value in variables.values.items() if name not in values}
        nearest = path.location.path if variables.sources else ""
        found.setdefault(
            (recipe.kustomization, repr(own), variables.sources, nearest, recipe.default_namespace, path.problem), path
        )
    return list(found.values())


def _find_lacking_values(paths: Sequence[ReconciledPath], helm: HelmOptions, values: frozenset[str]) -> str:
    """Return which values and namespace Applications set that the options of a Bundle lack; "" if the Bundle has all of one of them."""
    problem = ""
    for path in paths:
        request = path.recipe.chart
        if request is None:
            continue
        lacking = [name for name in request.values_files if name not in helm.values_files]
        lacking += [] if helm.namespace or request.namespace in ("", "default") else [f"the namespace {request.namespace}"]
        own = {*_list_names(helm.values), *values}
        lacking += [name for name in (*_list_names(request.values), *request.list_set_names()) if name not in own]
        if not lacking and not path.problem:
            return ""
        names = f"{', '.join(lacking[:_MAX_NAMED])}{' and more' if len(lacking) > _MAX_NAMED else ''}"
        reason = f"with {names}, which spec.helm lacks: add it there" if lacking else f"in a way that is not known: {path.problem}"
        problem = problem or f"{path.name} at {path.location} renders {path.recipe.directory} {reason}"
    return problem


def _list_names(values: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    """Yield the names of values, with dots between the names of nested ones."""
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _list_names(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def list_tool_files(path: ReconciledPath, files: DirectoryFiles, commit: CommitTree) -> DirectoryFiles:
    """Return the files that a directory and the document of the tool that reconciles it consist of."""
    document = path.location.path
    own = {path.find_source(name): blob for name, blob in path.closure.files.items()}
    read = {**own, **({document: commit.entries[document][0]} if document in commit.entries else {})}
    return files._replace(files=read, resources=files.resources | path.resources, roots=(), plain=())


class ToolBuilds:
    """Directories as delivery tools build them. `inputs` are files with values of variables, `record` says with which programs."""

    def __init__(
        self,
        paths: Mapping[str, ReconciledPath],
        bundled: BundledPaths,
        commit: CommitTree,
        reader: FileReader,
        context: BuildContext,
    ) -> None:
        self._paths, self._bundled, self._commit, self._reader = paths, bundled, commit, reader
        self.inputs: set[str] = set()
        builder = PathBuilder(commit, context)
        self._results = dict(zip(paths, builder.build(list(paths.values())), strict=True))
        self.record: BuildRecord = builder.record
        self.findings = list(builder.findings)
        for key, path in paths.items():
            result = self._results[key]
            if path.recipe.default_namespace and result is not None and not result.failed:
                self._print(path, result, {})  # its definitions count for all others
            for problem in list_path_problems(path, self._results[key], commit):
                text = f"{problem.message}. {path.name} is not built, and clusters keep what they have"
                self.findings.append(Finding("error", problem.code, text, problem.location))

    def __contains__(self, key: str) -> bool:
        return key in self._paths

    def read(
        self, key: str, values: Mapping[str, str], findings: list[Finding], omitted: list[RawDocument]
    ) -> tuple[RawDocument, ...] | None:
        """Return the objects of a directory; None with findings if one cannot be built. `values` overrule those of the tool."""
        path, result = self._paths[key], self._results[key]
        if result is None or result.failed:
            return None
        printed = self._print(path, result, values)
        omitted += printed.list_omitted()
        placed = printed.read(self._find_values, self.inputs)
        for part in placed.unplaced:
            document = part.document
            name = (
                f"{document.kind} {document.namespace}/{document.name}"
                if document.namespace
                else f"{document.kind} {document.name}"
            )
            message = f"{name} is not built: {part.describe()}. Clusters that have this variant keep what they have"
            location = locate_origin(document.origin) if document.origin is not None else path.location
            resource = (document.kind, document.namespace, document.name)
            findings.append(Finding("error", part.code, message, location, resource))
        findings += placed.findings
        failed = bool(placed.unplaced) or any(finding.severity == "error" for finding in placed.findings)
        return None if failed or any(document.broken for document in placed.documents) else tuple(placed.documents)

    def _print(self, path: ReconciledPath, result: BuildResult, values: Mapping[str, str]) -> PrintedObjects:
        if values:
            variables = path.recipe.substitution or Substitution()
            changed = variables._replace(values={**variables.values, **values})
            path = path._replace(recipe=path.recipe._replace(substitution=changed))
        return PrintedObjects(path, result, self._commit, self._reader, self._bundled.scopes)

    def _find_values(self, kind: str, name: str) -> list[RawDocument]:
        found = list(self._bundled.find_values(kind, name))
        self.inputs.update(document.origin.path for document in found if document.origin is not None)
        return found


def make_key(path: ReconciledPath | None) -> str:
    """Return a text that is equal for paths with equal content; "" for none."""
    return "" if path is None else repr(path.content)
