"""A directory that a delivery tool reconciles: the files that it reads, the document that says so, and where its objects come from."""

from __future__ import annotations

import copy
import posixpath
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping

from gitsched.apis.built_in_schemas import find_wrong_types
from gitsched.build.chart_files import ChartRequest, resolve_chart
from gitsched.build.closure import Closure
from gitsched.build.commit_files import BuildProblem, join_path, list_parents
from gitsched.build.go_templates import hide_marks
from gitsched.build.path_recipe import PathRecipe, ToolName
from gitsched.decide.catalog import KindScopes, RawDocument, make_raw_document
from gitsched.git import TreeEntry
from gitsched.git.trees import FILE_MODE
from gitsched.manifests.kustomize import Kustomization
from gitsched.manifests.schema import get_schema_key
from gitsched.model.document import Body, as_object, is_namespaced
from gitsched.model.finding import Location
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.builds.kustomizations import FileReader
from gitsched.reconcile.source.commit_tree import CommitTree, resolve_closures


class ReconciledPath(NamedTuple):
    """A directory and the document of the tool that reconciles it.

    `commit` has the files as the tool sees them, with its own kustomization. `origins` maps their paths to those in the commit where these
    differ. `problem` says why the directory cannot be built and what to do, or is ""; one that `is_missing` is not in the commit.
    """

    tool: ToolName
    document: RawDocument
    recipe: PathRecipe
    commit: CommitTree
    closure: Closure
    origins: Mapping[str, str]
    problem: str = ""
    is_missing: bool = False

    @property
    def name(self) -> str:
        """The name of the tool's document, such as `Flux Kustomization flux-system/apps`."""
        return f"the kustomization {self.recipe.directory}" if self.tool == "kustomization" else name_path(self.tool, self.document)

    @property
    def identity(self) -> tuple[str, str, str]:
        """The name, the directory and the file of the tool's document: the same for a document that its own build prints again."""
        return self.name, self.recipe.directory, self.location.path

    @property
    def content(self) -> tuple[object, ...]:
        """Everything that the objects depend on besides values of other documents: two paths with the same content are one."""
        recipe = self.recipe
        return (*self.identity, recipe.kustomization, repr(recipe.substitution), recipe.default_namespace)

    @property
    def location(self) -> Location:
        """The position of the tool's document."""
        origin = self.document.origin
        return Location(origin.path, origin.line, origin.column) if origin is not None else Location("", 1, 1)

    @property
    def resources(self) -> frozenset[str]:
        """The files of the commit whose objects the directory builds."""
        return frozenset(map(self.find_source, self.closure.resources))

    @property
    def source_directory(self) -> str:
        """The directory of the commit that is built."""
        kustomization = self.find_source(self.recipe.path or posixpath.join(self.recipe.directory, "Chart.yaml"))
        return posixpath.dirname(kustomization) or "."

    @property
    def own_values(self) -> Mapping[str, str]:
        """The values of variables that the tool's document sets itself, and that no other document overrules."""
        return self.recipe.substitution.values if self.recipe.substitution is not None else {}

    def find_source(self, path: str) -> str:
        """Return the path in the commit of a file that the tool sees."""
        return self.origins.get(path, path)

    def changes_objects(self) -> bool:
        """Return whether a build can differ from what the files have."""
        if self.recipe.changes or self.recipe.default_namespace or self.problem or self.closure.problems:
            return True
        return any(self._is_changing(path) for path in self.closure.files.keys() - self.closure.resources)

    def _is_changing(self, path: str) -> bool:
        """Return whether a file that is no resource makes or changes objects: all but a kustomization that only lists resources."""
        kustomization = self.commit.read_kustomization(self.closure.files[path], path)
        return kustomization is None or bool(kustomization.changes or kustomization.helm or kustomization.build_metadata)

    def has_no_objects(self) -> bool:
        """Return whether there is nothing in the directory of which objects could be built."""
        if self.recipe.chart is not None or self.problem or self.closure.problems or self.closure.resources:
            return False
        found = (self.commit.read_kustomization(blob, path) for path, blob in self.closure.files.items())
        return not any(one is None or makes_objects(one) for one in found)

    def lacks_namespaces(self, read: Callable[[str, str], Iterable[RawDocument]]) -> bool:
        """Return whether the directory may build an object without a namespace. `read` returns the documents of a blob with a path."""
        others = self.closure.files.keys() - self.closure.resources
        if others - {self.recipe.path} or self.recipe.chart is not None or any(map(self._is_changing, others)):
            return True
        documents = (document for path in self.closure.resources for document in read(self.closure.files[path], path))
        return any(not document.namespace and is_namespaced(document.group, document.kind) is not False for document in documents)

    def describe(self) -> str:
        """Describe what builds an object of this directory."""
        changes = f" ({', '.join(self.recipe.changes)})" if self.recipe.changes else ""
        return f"{self.name} builds {self.recipe.directory}{changes}"


def name_path(tool: ToolName, document: RawDocument) -> str:
    """Return the name of what a document of a tool reconciles."""
    return f"{tool} {document.namespace or 'default'}/{hide_marks(document.name)}"


def makes_objects(kustomization: Kustomization) -> bool:
    """Return whether a kustomization may have objects that are in no file of resources: of charts, generators or plug-ins."""
    generated = any(reference.field == "generators" for reference in kustomization.references)
    return (
        generated or kustomization.helm or bool(kustomization.charts) or any(one.kind == "mention" for one in kustomization.changes)
    )


class BundledPaths(NamedTuple):
    """The paths of delivery tools in the directories of Bundles.

    `unknown` are those whose document is changed by a build that is not known. `find_values` returns the ConfigMaps or Secrets with a
    name; `scopes` says of which kinds the objects are namespaced.
    """

    paths: tuple[ReconciledPath, ...] = ()
    unknown: tuple[ReconciledPath, ...] = ()
    find_values: Callable[[str, str], Iterable[RawDocument]] = lambda *_: ()
    scopes: KindScopes = KindScopes((), ())


NO_BUNDLED_PATHS = BundledPaths()


def open_path(
    tool: ToolName,
    document: RawDocument,
    base: CommitTree,
    origins: Mapping[str, str],
    make_recipe: Callable[[CommitTree], PathRecipe],
) -> ReconciledPath:
    """Return the path that a document of a tool reconciles, in a commit or in an artifact whose files `origins` maps to the commit."""
    recipe = make_recipe(base)
    if document.broken:
        recipe = recipe._replace(problem=_describe_error(document))
    if recipe.chart is not None:
        return _open_chart(tool, document, base, origins, recipe, recipe.chart)
    blob = base.repository.keep_blob(recipe.kustomization)
    commit = copy.copy(base)
    commit.entries = ChainMap(
        {recipe.path: (blob, FILE_MODE)}, dict(base.entries) if not isinstance(base.entries, dict) else base.entries
    )
    (closure,) = resolve_closures([recipe.directory], commit)
    return ReconciledPath(tool, document, recipe, commit, closure, origins, recipe.problem)


def _describe_error(document: RawDocument) -> str:
    """Return why a document with an error builds nothing. Its own build may have its file, whose findings are those of what is built."""
    issues = find_wrong_types(get_schema_key(document.body), document.body)
    cause = next((issue.message for issue in issues if issue.severity == "error"), "correct it")
    return f"it has an error, so that no API server accepts it: {cause}"


def _open_chart(
    tool: ToolName,
    document: RawDocument,
    base: CommitTree,
    origins: Mapping[str, str],
    recipe: PathRecipe,
    request: ChartRequest,
) -> ReconciledPath:
    """Return the path of a Helm chart. Its templates are parts of the chart anyway, so the path has no resources."""
    chart = resolve_chart(request, base)
    main = join_path(request.chart, "Chart.yaml")
    closure = Closure(request.chart, main, chart.files, frozenset(), chart.problems)
    return ReconciledPath(tool, document, recipe, base, closure, origins, recipe.problem)


def index_builders(paths: Iterable[ReconciledPath]) -> dict[str, set[tuple[str, str, str]]]:
    """Return the paths that build each file."""
    found: dict[str, set[tuple[str, str, str]]] = {}
    for path in paths:
        for name in path.resources:
            found.setdefault(name, set()).add(path.identity)
    return found


def is_built_by_another(path: ReconciledPath, builders: Mapping[str, set[tuple[str, str, str]]]) -> bool:
    """Return whether the document of a path is a part of another one. `builders` are the paths that build each file."""
    return not builders.get(path.location.path, set()) <= {path.identity}


def apply_recipe(document: RawDocument, path: ReconciledPath) -> RawDocument:
    """Return a document with the namespace and the name that it would have if the path could be built, as far as they are known, and with
    the file of the tool's document as its origin."""
    settings = dict(entry.split(" ", 1) for entry in path.recipe.changes if " " in entry)
    metadata = dict(as_object(document.body.get("metadata")))
    if "targetNamespace" in settings or path.recipe.default_namespace:
        metadata["namespace"] = settings.get("targetNamespace") or metadata.get("namespace") or path.recipe.default_namespace
    metadata["name"] = f"{settings.get('namePrefix', '')}{document.name}{settings.get('nameSuffix', '')}"
    body: Body = {**document.body, "metadata": metadata}
    origin = document.origin
    return make_raw_document(body, origin and origin._replace(tool=path.location.path))


def read_artifact_tree(commit: CommitTree, files: Mapping[str, str], reader: FileReader) -> CommitTree:
    """Return the files of an artifact, given the path in the commit of each."""
    entries = (TreeEntry(path, *commit.entries[source]) for path, source in files.items())
    return CommitTree(commit.repository, entries, reader, commit.remotes)


def locate_problem(path: ReconciledPath, problem: BuildProblem, base: CommitTree) -> Location:
    """Return the position of a problem in the commit: the kustomization has other lines where the tool changes it."""
    source = path.find_source(problem.path)
    if source not in base.entries:
        return path.location
    if problem.path != path.recipe.path:
        return Location(source, problem.line, problem.column)
    blob = path.closure.files.get(problem.path)
    written = path.commit.read_kustomization(blob, problem.path) if blob else None
    original = base.read_kustomization(base.entries[source][0], source)
    named = next(
        (
            reference
            for reference in (written.references if written else ())
            if (reference.line, reference.column) == (problem.line, problem.column)
        ),
        None,
    )
    for reference in original.references if original and named else ():
        if named is not None and (reference.field, reference.path) == (named.field, named.path):
            return Location(source, reference.line, reference.column)
    return path.location if named is not None else Location(source, 1, 1)


def is_below(path: str, directories: frozenset[str]) -> bool:
    """Return whether a directory is one of the given ones or below one."""
    return any(directory in directories for directory in (path, *list_parents(path)))
