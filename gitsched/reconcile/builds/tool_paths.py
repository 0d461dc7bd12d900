"""Read from the documents of delivery tools which directories of this repository they reconcile."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial

from gitsched.apis.gitsched.bundle import parse_bundle
from gitsched.apis.gitsched.config import Config
from gitsched.build import argo_cd, flux
from gitsched.build.application_sets import (
    APPLICATION_SET,
    CLUSTER_LABEL,
    MAX_APPLICATIONS,
    MAX_STEPS,
    list_applications,
    list_unread_generators,
)
from gitsched.build.argo_cd import APPLICATION
from gitsched.build.commit_files import CommitFiles
from gitsched.build.go_templates import find_unknown, hide_marks, split_unknown
from gitsched.build.parameter_sets import GeneratorInput
from gitsched.build.path_recipe import PathRecipe, ToolName, find_kustomization
from gitsched.build.tool_fields import SOURCE_KIND, list_unread_fields
from gitsched.decide.catalog import RawDocument, make_raw_document
from gitsched.git import TreeEntry
from gitsched.git.remote_refs import find_remote_url
from gitsched.manifests.charts import ChartIndex
from gitsched.manifests.flux_ignore import FluxIgnore
from gitsched.manifests.sourceignore import SourceIgnore
from gitsched.model.document import Body, Origin, as_object, get_field, get_text, read_labels
from gitsched.model.finding import Finding, locate_origin
from gitsched.model.tool_groups import ARGO_GROUP, KUSTOMIZE_GROUP
from gitsched.reconcile.builds.flux_instances import UNREAD_DOCUMENT, add_instances, find_unread
from gitsched.reconcile.builds.kustomizations import FileReader, KustomizeParts, read_kustomizations
from gitsched.reconcile.builds.last_paths import LastPaths
from gitsched.reconcile.builds.path_selection import UNKNOWN_NAME, find_matching_directory
from gitsched.reconcile.builds.printed_objects import NOT_BUILT
from gitsched.reconcile.builds.reconciled_path import ReconciledPath, is_below, open_path, read_artifact_tree
from gitsched.reconcile.builds.source_identity import (
    ARTIFACT_KINDS,
    NO_ROOT,
    Artifact,
    ObjectName,
    SourceIdentity,
    read_artifact,
    read_flux_exclusions,
)
from gitsched.reconcile.bundles.bundle_parts import list_bundles
from gitsched.reconcile.source.commit_tree import CommitTree

_ARTIFACT = "ExternalArtifact"
_NO_GENERATOR = (
    "no ArtifactGenerator of this repository makes the artifact {} by this name; commit the one that does, or name the directories of this "
    "repository in source.deliveryTools.ignore"
)
_TEMPLATE = (
    "it is a template of the chart {}, whose values say what it is: name the file in source.deliveryTools.ignore, and, if Argo CD applies "
    "what the chart makes of it, commit what `helm template` prints"
)
_MAX_CANDIDATES = 100
"""Directories that are held back for a Kustomization whose directory is not known."""
FOREIGN_SOURCE = "foreign-source"
"""The code of the finding about options of a document that reads another repository or branch."""
UNKNOWN_PATH = "unknown-path"
"""The code of the finding about directories that only Argo CD knows."""


class ToolPathReader:
    """Reads documents of delivery tools. `tool_documents` are all of a commit, `documents` those that are read for policies.

    Directories that a Bundle places are left to it, and those that settings ignore to nobody.
    """

    def __init__(
        self,
        commit: CommitTree,
        tool_documents: Iterable[RawDocument],
        documents: Sequence[RawDocument],
        reader: FileReader,
        config: Config,
        last: LastPaths | None = None,
    ) -> None:
        source, self._last = config.source, last
        self._commit, self._reader, self._config = commit, reader, config
        self._tool_documents = add_instances(tool_documents)
        declared: dict[ObjectName, list[RawDocument]] = {}
        for document in self._tool_documents:
            declared.setdefault((document.kind, document.namespace, document.name), []).append(document)
        own_url = config.delivery.source.url or find_remote_url(commit.repository, "origin")
        self._identity = SourceIdentity(source.delivery_tools.repositories, own_url, declared, config.output.branch)
        self._output_branch = config.output.branch
        self._secrets = [document for document in documents if (document.group, document.kind) == ("", "Secret")]
        self._exclusions: dict[tuple[bool, str], FluxIgnore] = {}
        self.findings: list[Finding] = []
        self._ignored = SourceIgnore.parse({"": "\n".join((*source.delivery_tools.ignore, *source.kustomize.ignore))})
        self._parts: KustomizeParts | None = None
        self._bundles = frozenset(rule.path for bundle in list_bundles(documents) for rule in parse_bundle(bundle.body).variants)
        self.bundled: list[ReconciledPath] = []
        """Paths in directories of Bundles, which are left to these."""

    @property
    def inputs(self) -> frozenset[str]:
        """The files with values for the generators of ApplicationSets."""
        return frozenset(self._generator_input.read)

    def is_ignored(self, path: str) -> bool:
        """Return whether settings say that a file is placed as it is."""
        return self._ignored.is_ignored(path)

    def read_all(self) -> list[ReconciledPath]:
        """Return the directories that the documents of the commit reconcile, and the roots of settings that have such documents."""
        roots = dict.fromkeys(root for pattern in self._config.source.kustomize.build for root in self._commit.list_roots(pattern))
        found = [path for document in self._tool_documents for path in self.read(document)]
        unread = [document for document in self._tool_documents if document.origin and not self.is_ignored(document.origin.path)]
        self.findings += filter(None, map(find_unread, unread))
        files = {path.location.path for path in (*found, *self.bundled)}
        opened = (self._open_root(root) for root in roots) if files else ()
        return [*(path for path in opened if not files.isdisjoint(path.resources)), *found]

    def _open_root(self, root: str) -> ReconciledPath:
        """Return a root of the settings, whose kustomization is built as it is."""
        path = find_kustomization(root, self._commit)
        blob = self._commit.entries[path][0]
        body = {"kind": "Kustomization", "metadata": {"name": root}}
        document = make_raw_document(body, Origin(path, blob, 0, -1, 1, 1))
        recipe = PathRecipe(root, path, self._commit.read_blob(blob))
        return open_path("kustomization", document, self._commit, {}, lambda _: recipe)

    def is_part(self, path: ReconciledPath) -> bool:
        """Return whether a kustomization changes the document of a path, so that it counts as a build prints it, not as its file has it."""
        if path.location.path in path.resources:
            return False  # its own build prints it, as with the Kustomization that `flux bootstrap` commits
        return self._is_changed(path.document)

    def _is_changed(self, document: RawDocument) -> bool:
        if self._parts is None:
            regular = (TreeEntry(name, *entry) for name, entry in self._commit.entries.items() if entry[1] & 0o170000 == 0o100000)
            self._parts = read_kustomizations(regular, self._reader, self._config)
        return document.origin is not None and self._parts.is_part(document.origin.path, document)

    def read(self, document: RawDocument) -> Iterator[ReconciledPath]:
        """Yield the directories of this repository that a document reconciles: none for other documents and other repositories."""
        if document.origin is not None and self.is_ignored(document.origin.path):
            return
        kind = document.group, document.kind
        if kind == (KUSTOMIZE_GROUP, flux.KIND):
            yield from self._read_flux(document)
        elif kind == (ARGO_GROUP, APPLICATION):
            yield from self._read_application(document)
        elif kind == (ARGO_GROUP, APPLICATION_SET):
            unknown: dict[str, None] = {}
            made = list_applications(document.body, self._generator_input)
            if not made.is_complete:
                self._report_limit(document)
            if made.problem and not self._is_changed(document):
                self._report_failure(document, made.problem)
            for body in made.applications:
                yield from self._read_application(make_raw_document(body, document.origin, document.broken), unknown, made.problem)
            if unknown:
                reasons = [made.problem] if made.problem else list_unread_generators(document.body, self._generator_input)
                self._report_unknown(document, unknown, reasons)

    def read_printed(self, documents: Sequence[RawDocument]) -> Iterator[ReconciledPath]:
        """Yield the directories that documents reconcile which a build prints, with findings about what is not read of them."""
        known = {finding.message for finding in self.findings}
        for document in documents:
            unread = find_unread(document)
            if (
                unread is not None
                and unread.message not in known
                and not self.is_ignored(unread.location.path if unread.location else "")
            ):
                self.findings.append(unread)
            made = add_instances([document])
            for source in made[1:]:
                self._identity.declare(source)
            for each in made:
                yield from self.read(each)

    def _read_flux(self, document: RawDocument) -> Iterator[ReconciledPath]:
        source = flux.read_source(document.body)
        directory, tree, origins = flux.read_path(document.body), self._commit, dict[str, str]()
        file = document.path
        roots = self._list_roots(directory, file) if source[0] in ARTIFACT_KINDS else ["."]
        if source[0] == _ARTIFACT:
            generator = self._identity.find_generator(*source[1:], file)
            artifact = Artifact({}, _NO_GENERATOR.format(source[2]))
            if generator is not None:
                artifact = read_artifact(generator, source[2], self._identity, self._commit, self._list_roots)
            if artifact.problem:
                yield from self._hold_back(document, directory, roots, artifact.problem)
                return
            origins = dict(artifact.files)
            tree = read_artifact_tree(self._commit, origins, self._reader)
        elif not self._is_own_source(document, source, directory, roots[0]):
            if directory in tree.directories and self._is_bundled(directory):
                recipe = self._make_flux_recipe(document, False, tree)
                self._report_foreign(document, recipe, self._identity.describe_flux_source(source, file))
            return
        if roots != ["."] and directory not in (tree.directories if origins else ()):
            if len(roots) > 1 or not roots[0]:
                yield from self._hold_back(document, directory, roots, NO_ROOT)
                return
            prefix = f"{roots[0]}/"
            origins = {path[len(prefix) :]: path for path in self._commit.entries if path.startswith(prefix)}
            tree = read_artifact_tree(self._commit, origins, self._reader)
        if directory not in tree.directories:
            holder = "artifact" if origins else "commit"
            yield from self._read_missing("Flux Kustomization", document, directory, f"the {holder} does not have")
            return
        path = open_path("Flux Kustomization", document, tree, origins, partial(self._make_flux_recipe, document, bool(origins)))
        if not self._is_left_out(path):
            self._report_fields(document, flux.KIND, as_object(document.body.get("spec")), "spec")
            described = self._identity.find_source(source, file)
            if described is not None:
                self._report_fields(described, described.kind, as_object(described.body.get("spec")), "spec")
            yield path

    def _list_roots(self, directory: str, file: str) -> list[str]:
        """Return the directories that an artifact may be of, if its path is `directory`: those of the settings, else the root of the
        repository, else those with the file of the document; [""] if none has the path."""
        settings = [posixpath.normpath(root.strip("/") or ".") for root in self._config.source.delivery_tools.roots]
        parents = [file[:index] for index, character in enumerate(file) if character == "/"]
        for roots in (settings, ["."], parents):
            having = [root for root in roots if posixpath.normpath(posixpath.join(root, directory)) in self._commit.directories]
            if having:
                return having[:1] if roots is settings else having
        return [""]

    def _hold_back(self, document: RawDocument, directory: str, roots: Sequence[str], problem: str) -> Iterator[ReconciledPath]:
        """Yield the directories that a Kustomization may mean, with the problem that its own is not known; without any, report it."""
        wanted = f"/{directory}"
        found = [posixpath.normpath(posixpath.join(root, directory)) for root in roots if root] or [
            path for path in sorted(self._commit.directories) if path.endswith(wanted)
        ]
        if directory == "." or not found:
            yield from self._read_missing("Flux Kustomization", document, directory, f"is in an artifact, and {problem}")
            return
        for path in found[:_MAX_CANDIDATES]:
            body = {**document.body, "spec": {**as_object(document.body.get("spec")), "path": path}}
            held = document._replace(body=body)
            opened = open_path("Flux Kustomization", held, self._commit, {}, partial(self._make_flux_recipe, held, False))
            if not self._is_left_out(opened):
                yield opened._replace(problem=f"its path {directory} is in an artifact, and {problem}")

    def _read_application(
        self, document: RawDocument, unknown: dict[str, None] | None = None, problem: str = ""
    ) -> Iterator[ReconciledPath]:
        """Yield the directories that an Application reconciles. Those whose path is not known are added to `unknown`. A `problem` is why
        Argo CD makes no such Application."""
        sources = argo_cd.list_sources(document.body)
        template = self._describe_template(document)
        for source in sources:
            url, directory = str(source.get("repoURL") or ""), str(source.get("path") or "")
            if not directory or source.get("chart") or source.get("targetRevision") == self._output_branch:
                continue
            directory = posixpath.normpath(directory.strip("/") or ".")
            is_unknown = find_unknown(directory) is not None
            if is_unknown and unknown is not None and (find_unknown(url) is not None or self._is_generator_url(url)):
                unknown[directory] = None
            if is_unknown:
                continue
            is_known = self._is_own_url(url, directory) or self._had_directory(
                "Argo CD Application", document, directory, partial(argo_cd.list_directories, url=url)
            )
            if not is_known:
                if directory in self._commit.directories and self._is_bundled(directory):
                    recipe = argo_cd.make_argo_recipe(document.body, source, self._commit, find_reference=lambda _: None)
                    self._report_foreign(document, recipe, url)
                continue
            if directory not in self._commit.directories:
                yield from self._read_missing("Argo CD Application", document, directory, "the commit does not have")
                continue
            find_reference = partial(argo_cd.find_reference, sources, is_own=self._is_own_url)
            make_recipe = partial(argo_cd.make_argo_recipe, document.body, source, find_reference=find_reference)
            path = open_path("Argo CD Application", document, self._commit, {}, make_recipe)
            if problem:
                path = path._replace(problem=f"{APPLICATION_SET} makes no Application, because {problem}")
            if template:
                path = path._replace(problem=template)
            if path.recipe.default_namespace and not path.lacks_namespaces(self._read_documents):
                path = path._replace(recipe=path.recipe._replace(default_namespace=""))
            if not self._is_left_out(path):
                self._report_fields(document, APPLICATION, as_object(document.body.get("spec")), "spec")
                self._report_fields(document, SOURCE_KIND, source, "its source")
                yield path

    def _describe_template(self, document: RawDocument) -> str:
        """Return why an Application is not known that a chart renders, or ""."""
        chart = self._charts.find_chart(document.origin.path) if document.origin is not None else None
        return _TEMPLATE.format(chart) if chart is not None and "{{" in str(document.body.get("spec")) else ""

    @cached_property
    def _charts(self) -> ChartIndex:
        return ChartIndex(self._commit.entries)

    def _read_documents(self, blob: str, path: str) -> Iterator[RawDocument]:
        return (make_raw_document(parsed.body) for parsed in self._reader.read(blob, path).documents)

    def _is_own_source(self, document: RawDocument, source: ObjectName, directory: str, root: str) -> bool:
        """Return whether the source of a Flux Kustomization is this repository, of which it has the files below `root`."""
        file = document.path
        path = posixpath.normpath(posixpath.join(root, directory))
        return self._identity.is_flux_source(source, path, self._commit, file) or self._had_directory(
            "Flux Kustomization", document, directory, partial(flux.list_directories, source=source)
        )

    def _had_directory(
        self, tool: ToolName, document: RawDocument, directory: str, list_directories: Callable[[Body], Iterable[str]]
    ) -> bool:
        """Return whether a directory is missing, and the document named one of this repository before."""
        if self._last is None or directory in self._commit.directories:
            return False
        return self._last.had_directory(tool, document, list_directories)

    def _is_own_url(self, url: str, path: str) -> bool:
        return self._identity.is_own_url(url, path, self._commit)

    def _is_generator_url(self, url: str) -> bool:
        """Return whether a generator reads this repository. It reads patterns in place of one directory."""
        return self._is_own_url(url, next((path for path in sorted(self._commit.directories) if path != "."), "."))

    @cached_property
    def _generator_input(self) -> GeneratorInput:
        name, value = CLUSTER_LABEL
        clusters = tuple(secret.body for secret in self._secrets if read_labels(secret.body).get(name) == value)
        return GeneratorInput(self._commit, clusters, self._is_generator_url)

    def _make_flux_recipe(self, document: RawDocument, artifact: bool, commit: CommitFiles) -> PathRecipe:
        reference = as_object(get_field(document.body, "spec", "sourceRef"))
        namespace = str(reference.get("namespace") or document.namespace or "default")
        file = document.path
        name = str(reference.get("kind") or "GitRepository"), namespace, str(reference.get("name") or "")
        source = self._identity.find_source(name, file)
        key = artifact, get_text(source.body, "spec", "ignore") if source is not None else ""
        if key not in self._exclusions:
            self._exclusions[key] = (
                FluxIgnore(more=key[1], is_artifact=True) if artifact else read_flux_exclusions(self._commit, key[1])
            )
        return flux.make_flux_recipe(document.body, commit, self._exclusions[key].is_ignored)

    def _is_left_out(self, path: ReconciledPath) -> bool:
        """Return whether settings ignore a path, or a Bundle places it. The latter are added to `bundled`."""
        directory = path.source_directory
        if self.is_ignored(posixpath.join(directory, posixpath.basename(path.recipe.path) or "Chart.yaml")):
            return True
        if self._is_bundled(directory):
            self.bundled.append(path)
            return True
        return False

    def _is_bundled(self, directory: str) -> bool:
        return bool(self._bundles) and is_below(directory, self._bundles)

    def _report_foreign(self, document: RawDocument, recipe: PathRecipe, source: str) -> None:
        """Report that a Bundle of a directory lacks the options of a document, because its source is not this repository."""
        if not recipe.changes:
            return
        name = f"{document.namespace}/{document.name}" if document.namespace else document.name
        text = (
            f"{document.kind} {name} builds {recipe.directory} with options ({', '.join(recipe.changes)}) from {source}, which does not "
            "count as this repository: the Bundle of this directory is built without them. If it is this repository, name it in "
            "source.deliveryTools.repositories, together with all others that are; else name this file in source.deliveryTools.ignore"
        )
        self.findings.append(Finding("warning", FOREIGN_SOURCE, text, locate_origin(document.origin) if document.origin else None))

    def _report_unknown(self, document: RawDocument, paths: Iterable[str], reasons: Sequence[str]) -> None:
        """Report an ApplicationSet that may build directories of the commit of which only Argo CD knows the names."""
        known = dict.fromkeys(UNKNOWN_NAME.join(split_unknown(path)) for path in paths)
        matching = find_matching_directory(self._commit.directories, known)
        if not matching or self._is_changed(document):
            return
        name = f"{document.namespace}/{document.name}" if document.namespace else document.name
        why = f", because {' and '.join(reasons)}" if reasons else ""
        text = (
            f"ApplicationSet {name} builds directories such as {matching}{why}: gitsched does not know with which options, and places "
            "their objects as files have them. Write Applications, or list generators, for these directories; or name this file in "
            "source.deliveryTools.ignore"
        )
        location = locate_origin(document.origin) if document.origin else None
        self.findings.append(Finding("warning", UNKNOWN_PATH, text, location))

    def _report_fields(self, document: RawDocument, kind: str, spec: Body, where: str) -> None:
        """Report the fields of a document that change what is delivered, and that gitsched does not read."""
        fields = list(list_unread_fields(kind, spec))
        if not fields or document.origin is None:
            return
        name = f"{document.kind} {document.namespace or 'default'}/{hide_marks(document.name)}"
        for field, reason in fields:
            text = f"{name} sets {field} in {where}, which gitsched does not read: {reason}"
            finding = Finding("warning", UNREAD_DOCUMENT, text, locate_origin(document.origin))
            if finding not in self.findings:
                self.findings.append(finding)

    def _report_failure(self, document: RawDocument, problem: str) -> None:
        name = f"{document.namespace}/{document.name}" if document.namespace else document.name
        text = f"Argo CD makes no Application of ApplicationSet {name}: {problem}"
        self.findings.append(Finding("error", NOT_BUILT, text, locate_origin(document.origin) if document.origin else None))

    def _report_limit(self, document: RawDocument) -> None:
        name = f"{document.namespace}/{document.name}" if document.namespace else document.name
        text = (
            f"ApplicationSet {name} makes more than {MAX_APPLICATIONS:,} Applications, or combines more than {MAX_STEPS:,} values for "
            "them: the rest is not read, and what it builds is placed as files have it; divide it into several"
        )
        self.findings.append(
            Finding("warning", "applications-limit", text, locate_origin(document.origin) if document.origin else None)
        )

    def _read_missing(self, tool: ToolName, document: RawDocument, directory: str, problem: str) -> Iterator[ReconciledPath]:
        """Yield a directory that does not exist: nothing is built, and its tool prunes nothing either."""
        if self._is_changed(document):
            return  # a build may give it another path
        recipe = PathRecipe(directory, posixpath.join(directory, "kustomization.yaml"), b"")
        path = open_path(tool, document, self._commit, {}, lambda _: recipe)
        path = path._replace(problem=f"{path.name} names the path {directory}, which {problem}", is_missing=True)
        if not self._is_left_out(path):
            yield path
