"""Separate the parts of kustomizations from the objects of a source tree."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import partial
from typing import Protocol

from gitsched.apis.gitsched.config import FILE, Config
from gitsched.decide.catalog import KustomizedDocument, RawDocument, make_origin, make_raw_document, read_declared_scopes
from gitsched.decide.registry import policy_apis, reserved_groups
from gitsched.git import Repository, TreeEntry
from gitsched.manifests.charts import ChartIndex
from gitsched.manifests.kustomization import write_identity_selector
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES, Kustomization
from gitsched.manifests.kustomize_graph import (
    MAX_VISITS,
    KustomizeGraph,
    ReferenceProblem,
    SourceObject,
    describe_changes,
    resolve_path,
)
from gitsched.manifests.parsed_file import ParsedDocument, ParsedFile
from gitsched.manifests.sourceignore import SourceIgnore
from gitsched.model.document import is_unread_kind
from gitsched.model.finding import Finding, Location, format_names
from gitsched.model.variants import TemplateVariants
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.builds.built_roots import NO_ROOTS, BuiltRoots
from gitsched.reconcile.builds.kustomized_policies import KustomizedPolicies
from gitsched.reconcile.builds.missing_files import find_missing_files
from gitsched.reconcile.builds.plugin_inputs import PluginInputs
from gitsched.reconcile.builds.unbuilt_parts import list_unbuilt
from gitsched.reconcile.bundles.bundle_parts import NO_PARTS, BundleParts
from gitsched.reconcile.cache.caches import SourceFile, TreeCache

_TOLERATED_CODES = frozenset(("generated-name", "invalid-annotations", "invalid-labels", "invalid-name", "invalid-namespace"))
"""Issues of a document that kustomize accepts: it replaces names and namespaces, and quotes numbers in labels and annotations."""


_EXHAUSTED = (
    f"the kustomizations of the commit include each other more than {MAX_VISITS:,} times: further objects in their files count as "
    "changed and are not placed; include fewer kustomizations in each other"
)


class KustomizedTree(NamedTuple):
    """The files of a source tree without the parts of kustomizations; the documents among these parts; and findings about paths.

    `replaced` are documents in whose place there is what builds make of them. `has_tools`: delivery tools have documents in the commit.
    """

    files: dict[str, SourceFile]
    documents: tuple[KustomizedDocument, ...]
    findings: tuple[Finding, ...]
    parts: KustomizeParts
    built: BuiltRoots
    bundles: BundleParts = NO_PARTS
    variants: TemplateVariants = {}
    replaced: tuple[KustomizedDocument, ...] = ()
    has_tools: bool = False

    @property
    def is_unchanged(self) -> bool:
        """Whether all documents are objects as their files have them, and nothing is built."""
        return (self.built, self.bundles) == (NO_ROOTS, NO_PARTS) and not (
            self.documents
            or self.replaced
            or self.variants
            or self.has_tools
            or self.parts.has_plugins
            or self.parts.graph.is_exhausted
        )

    def contains(self, document: RawDocument) -> bool:
        """Return whether a document of an earlier version of a file is a part of a kustomization now."""
        origin = document.origin
        if origin is None:
            return False
        if origin.path in self.bundles.inputs:
            return True
        if origin.path in self.parts.graph.inputs or self.parts.is_part(origin.path, document):
            return True
        is_whole_part = self.parts.find_chart(origin.path) is not None or self.parts.find_wrapper(origin.path)
        return bool(is_whole_part) and not is_read_by_api(document)

    def add_to(self, cache: TreeCache) -> TreeCache:
        """Return a source tree with the documents that are parts, and with the scopes that CustomResourceDefinitions among them declare."""
        tree = cache.source_tree
        declared = (kind for part in self.documents for kind in read_declared_scopes(part.document))
        kinds = (*declared, *self.bundles.kinds, *tree.config.kinds)
        config = tree.config._replace(kinds=kinds) if len(kinds) > len(tree.config.kinds) else tree.config
        built, bundles = self.built, self.bundles
        record = built.record._replace(
            builder=built.record.builder or bundles.record.builder, helm=built.record.helm or bundles.record.helm
        )
        tree = tree._replace(
            documents=(*tree.documents, *built.documents),
            kustomized=self.documents,
            config=config,
            builds=record,
            variants={**bundles.variants, **self.variants},
            replaced=self.replaced,
            incomplete=built.failed,
        )
        failed_builds = None if bundles.failed else built.failures
        return cache._replace(
            source_tree=tree,
            source_paths=[path for path, file in cache.files.items() if not file.kustomized],
            built=built.documents,
            valid=cache.valid and not built.failed and not bundles.failed,
            used_versions=None if failed_builds is None else cache.used_versions,
            failed_builds=failed_builds,
            depends_on_policies=built.depends_on_policies,
        )


class FileReader(Protocol):
    """Parses files of the source. `rules` are what a parsed file depends on besides its path and blob."""

    @property
    def rules(self) -> str: ...

    def read(self, blob: str, path: str, repository: Repository | None = None, /) -> ParsedFile:
        """Parse a blob that has this path; by default of the source."""
        ...

    def read_blob(self, blob: str, /) -> bytes:
        """Return the content of a blob."""
        ...

    def prefetch(self, entries: Iterable[TreeEntry], /) -> None:
        """Load cached files into memory at once."""
        ...


def separate_parts(
    entries: Iterable[TreeEntry],
    files: Mapping[str, SourceFile],
    reader: FileReader,
    config: Config,
    built: BuiltRoots = NO_ROOTS,
    bundles: BundleParts = NO_PARTS,
    hiding: Container[str] = (),
    is_hidden: Callable[[str], bool] = lambda _: False,
) -> KustomizedTree:
    """Remove from the files what kustomizations read as patches and the like, and the documents that they build and change.

    `entries` are all regular files of the commit, `files` those that are read as documents. What `built` builds replaces the documents of
    its resources, and what `bundles` are made of is no object of its own. In place of documents that files are `hiding`, earlier versions
    are built, so that these files stay broken.
    """
    resources = built.resources | bundles.resources
    parts = read_kustomizations(entries, reader, config, resources)
    rendered = tuple("" if chart == "." else f"{chart}/" for chart in sorted(built.charts))
    remaining: dict[str, SourceFile] = {}
    documents: list[KustomizedDocument] = []
    replaced: list[KustomizedDocument] = []
    for path, file in files.items():
        if path in parts.graph.inputs or path in built.inputs or path in bundles.inputs:
            replaced += parts.list_replaced(path, file, bundles)
            continue
        if path in resources:
            replaced += parts.list_replaced(path, file, bundles)
        wrapper = parts.find_wrapper(path)
        if wrapper:
            remaining[path] = _separate_file(path, file, documents, describe=wrapper)
        elif path in parts.graph.resources or path in resources:
            remaining[path] = parts.separate(path, file, documents, is_hiding=path in hiding)
        else:
            chart = parts.find_chart(path)
            if chart is not None and f"{chart}/".startswith(rendered):
                replaced += parts.list_replaced(path, file, bundles)
                remaining[path] = _separate_file(path, file, [], chart=chart)
            else:
                remaining[path] = file if chart is None else _separate_file(path, file, documents, chart=chart)
        if path in built.dependencies or path in bundles.dependencies:
            remaining[path] = remaining[path]._replace(kustomized=True)
    problems = dict.fromkeys(map(_make_problem_finding, parts.graph.problems))
    if parts.graph.is_exhausted:
        problems[Finding("error", "kustomization-limit", _EXHAUSTED)] = None
    builds = (*built.findings, *bundles.findings, *parts.policies.list_findings())
    reported = {(finding.code, finding.location) for finding in builds}
    located = {finding.location for finding in builds}
    if parts.kustomizations:
        problems |= dict.fromkeys(finding for finding in parts.list_missing(is_hidden) if finding.location not in located)
    findings = (*(finding for finding in problems if (finding.code, finding.location) not in reported), *builds)
    documents += (*built.unplaced, *list_unbuilt(replaced, built, bundles))
    return KustomizedTree(remaining, tuple(documents), findings, parts, built, bundles, replaced=tuple(replaced))


def _separate_file(
    path: str, file: SourceFile, found: list[KustomizedDocument], *, chart: str = "", describe: str = ""
) -> SourceFile:
    """Return a file without its documents but those of policy APIs; the others are added to `found`.

    The file is a template of a `chart`, or read by the plug-in that `describe` names. It has no findings: it need not have complete
    objects, nor be YAML.
    """
    kept: list[ParsedDocument] = []
    for parsed in file.file.documents:
        document = make_raw_document(parsed.body, make_origin(parsed, path, file.blob))
        if is_read_by_api(document):
            kept.append(parsed)
        else:
            found.append(KustomizedDocument(document, partial(str, describe), chart))
    resources = {_identify(document) for document in file.documents if is_read_by_api(document)}
    return SourceFile(
        file.blob,
        file.file._replace(documents=tuple(kept), unreadable=False, reason="a part"),
        tuple(document for document in file.documents if is_read_by_api(document)),
        tuple(finding for finding in file.findings if finding.resource in resources),
        any(parsed.broken for parsed in kept),
        True,
    )


class KustomizeParts:
    """The kustomizations of a commit, and which documents are parts of them."""

    def __init__(
        self,
        graph: KustomizeGraph,
        kustomizations: Mapping[str, tuple[str, Kustomization]],
        ignore: SourceIgnore | None,
        reader: FileReader,
        blobs: Mapping[str, str],
        built: frozenset[str],
        wrapped: Mapping[str, str],
    ) -> None:
        self.graph, self.kustomizations, self.ignore = graph, kustomizations, ignore
        self._reader, self._blobs, self._built = reader, blobs, built
        self._patched: dict[str, tuple[str, ...] | None] = {}
        self.policies = KustomizedPolicies()
        self._charts, self._wrapped = ChartIndex(blobs), wrapped

    @property
    def has_plugins(self) -> bool:
        """Whether plug-ins of other programs read files."""
        return bool(self._wrapped)

    def list_references(self) -> frozenset[str]:
        """Return the paths that kustomizations name, whether there is a file or not."""
        return frozenset(
            resolve_path(directory, reference.path)
            for directory, (_, kustomization) in self.kustomizations.items()
            for reference in kustomization.references
        )

    def list_missing(self, is_hidden: Callable[[str], bool]) -> Iterator[Finding]:
        """Yield notes about files that kustomizations name and the commit does not have, but for those that settings ignore."""
        return find_missing_files(self.kustomizations, self._blobs, self.list_ignored(), is_hidden)

    def list_ignored(self) -> set[str]:
        """Return the directories of the kustomizations that settings ignore."""
        ignore = self.ignore
        return {place for place, (path, _) in self.kustomizations.items() if ignore is not None and ignore.is_ignored(path)}

    def find_wrapper(self, path: str) -> str:
        """Return a description of the plug-in of another program that reads a file; "" if there is none, or if settings say so."""
        wrapper = self._wrapped.get(path, "")
        return "" if not wrapper or (self.ignore and self.ignore.is_ignored(path)) else wrapper

    def find_chart(self, path: str) -> str | None:
        """Return the Helm chart that a file is a template of; None if it is none, or if a kustomization has it as a resource."""
        return None if path in self.graph.resources or path in self._built else self._charts.find_chart(path)

    def separate(self, path: str, file: SourceFile, found: list[KustomizedDocument], *, is_hiding: bool = False) -> SourceFile:
        """Return a file without the documents that are parts of a kustomization; they are added to `found`. One that `is_hiding` others
        keeps its errors about what identifies these."""
        if not (file.broken or path in self._built or self.graph.may_change(path)):
            return file
        kept: list[ParsedDocument] = []
        removed: list[RawDocument] = []
        for parsed in file.file.documents:
            document = make_raw_document(parsed.body, make_origin(parsed, path, file.blob))
            tolerated = parsed.broken and all(
                issue.code in _TOLERATED_CODES for issue in file.file.issues if issue.resource == _identify(document)
            )
            if self.is_part(path, document, tolerated):
                removed.append(document)
                if path in self._built:
                    continue
                found.append(KustomizedDocument(document, partial(self.describe, path, document)))
            else:
                kept.append(parsed)
                self._record_policy(path, document, parsed.broken)
        if not removed:
            return file._replace(kustomized=path in self._built or self.graph.may_change(path))
        names, origins = {_identify(document) for document in removed}, {document.origin for document in removed}
        names -= file.file.list_unidentified() if is_hiding else set()
        has_other_errors = any(issue.severity == "error" and issue.resource not in names for issue in file.file.issues)
        return SourceFile(
            file.blob,
            file.file._replace(documents=tuple(kept)),
            tuple(document for document in file.documents if document.origin not in origins),
            tuple(finding for finding in file.findings if finding.resource not in names and finding.code != "generated-name"),
            (file.file.unreadable and has_other_errors) or any(parsed.broken for parsed in kept),
            True,
        )

    def list_replaced(self, path: str, file: SourceFile, bundles: BundleParts) -> Iterator[KustomizedDocument]:
        """Yield the documents of a file that builds read, as the file has them."""
        for parsed in file.file.documents:
            document = make_raw_document(parsed.body, make_origin(parsed, path, file.blob))
            if not is_read_by_api(document):
                yield KustomizedDocument(document, partial(self._describe_reader, path), bundles=bundles.owners.get(path, ()))

    def _describe_reader(self, path: str) -> str:
        """Say which kustomization reads a file."""
        if path in self.graph.inputs:
            kustomization, field = self.graph.inputs[path]
            return f"read by {kustomization} as an entry of {field}"
        directories = self.graph.resources.get(path, ())
        names = format_names([self.kustomizations[directory][0] for directory in directories])
        return f"built by {names}" if names else "read by what builds its directory"

    def _record_policy(self, path: str, document: RawDocument, broken: bool) -> None:
        """Record a document of a policy API that kustomizations may change. Settings are read from the root of the repository only."""
        ignored = self.ignore is not None and self.ignore.is_ignored(path)
        if not (broken or ignored) and path in self.graph.resources and is_read_by_api(document) and path != FILE:
            self.policies.add(document, self.graph.list_changes(path, _describe_object(document), self._list_patched))

    def is_part(self, path: str, document: RawDocument, tolerated: bool = False) -> bool:
        """Return whether kustomize builds a document and changes it, so that it is not an object of its own.

        Documents of policy APIs never are. `tolerated`: the document has an error that kustomize corrects.
        """
        if path in self._built:
            return not is_read_by_api(document)
        if path not in self.graph.resources or is_read_by_api(document) or (self.ignore and self.ignore.is_ignored(path)):
            return False
        return tolerated or self.graph.is_changed(path, _describe_object(document), self._list_patched)

    def describe(self, path: str, document: RawDocument) -> str:
        """Describe what builds a document, and what it changes."""
        changes = list(self.graph.list_changes(path, _describe_object(document), self._list_patched))
        if changes:
            return describe_changes(changes)
        return ", ".join(self.kustomizations[directory][0] for directory in self.graph.resources[path][:3])

    def _list_patched(self, kustomization: str, patch: str) -> tuple[str, ...] | None:
        """Return the selectors of the objects that a patch file names; None if it is not readable or names none."""
        path = resolve_path(posixpath.dirname(kustomization), patch)
        if path not in self._patched:
            blob = self._blobs.get(path)
            documents = self._reader.read(blob, path if path.endswith(".json") else f"{path}.yaml").documents if blob else ()
            self._patched[path] = tuple(write_identity_selector(parsed.body) for parsed in documents) or None
        return self._patched[path]


def read_kustomizations(
    entries: Iterable[TreeEntry], reader: FileReader, config: Config, built: frozenset[str] = frozenset()
) -> KustomizeParts:
    """Read all kustomizations of a tree, whatever `source.paths` and `.sourceignore` say: an overlay may be elsewhere than its base.

    Where settings ignore a kustomization, only its patches and the like are parts. `built` are files whose objects are built.
    """
    ignored = config.source.kustomize.ignore
    ignore = SourceIgnore.parse({"": "\n".join(ignored)}) if ignored else None
    regular = list(entries)
    found = [entry for entry in regular if entry.path.rpartition("/")[2] in KUSTOMIZATION_NAMES]
    reader.prefetch(found)
    kustomizations: dict[str, tuple[str, Kustomization]] = {}
    blobs = {entry.path: entry.blob for entry in regular}
    plugins = PluginInputs(blobs.keys(), reader.read_blob, blobs)
    for entry in found:
        kustomization = reader.read(entry.blob, entry.path).kustomization or Kustomization()
        if ignore is not None and ignore.is_ignored(entry.path):
            inputs = tuple(reference for reference in kustomization.references if reference.role == "input")
            kustomization = kustomization._replace(references=inputs, changes=())
        directory = posixpath.dirname(entry.path) or "."
        kustomizations.setdefault(directory, (entry.path, plugins.add(directory, kustomization)))
    graph = KustomizeGraph(kustomizations, blobs.keys())
    return KustomizeParts(graph, kustomizations, ignore, reader, blobs, built, plugins.wrapped)


def is_read_by_api(document: RawDocument) -> bool:
    """Return whether a policy API reads a document, so that a kustomization does not take it away."""
    if document.group in reserved_groups and not is_unread_kind(document.group, document.kind):
        return True
    identity, kind = (document.group, document.kind, document.name), (document.group, document.kind)
    return any(identity in api.active_objects or kind in api.active_templates for api in policy_apis.values())


def _identify(document: RawDocument) -> tuple[str, str, str]:
    return document.kind, document.namespace, document.name


def _describe_object(document: RawDocument) -> SourceObject:
    return SourceObject(document.group, document.kind, document.namespace, document.name, document.body)


def _make_problem_finding(problem: ReferenceProblem) -> Finding:
    reference = problem.reference
    location = Location(problem.path, reference.line, reference.column)
    if problem.kind == "cycle":
        message = f"{reference.field} names {reference.path}, which includes this kustomization: kustomize cannot build a cycle"
    else:
        message = f"{reference.field} names {reference.path}, which is outside of the repository: it is not read"
    return Finding("warning", f"kustomize-{problem.kind}", message, location)
