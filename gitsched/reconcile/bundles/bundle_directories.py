"""Build the directories of Bundles: kustomize roots, Helm charts and plain YAML files, each once for all clusters that get it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from gitsched.build.builder import Builder
from gitsched.build.flux import SUBSTITUTE_KEY, is_substitution_disabled
from gitsched.decide.catalog import RawDocument, make_raw_document
from gitsched.edits.manifest_edits import set_namespace
from gitsched.manifests.envsubst import SubstitutionError, VariableValues, substitute_variables
from gitsched.model.document import Origin, SourceSpans
from gitsched.model.errors import Permanent
from gitsched.model.finding import Finding, Location
from gitsched.model.variants import VariantFormat
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.builds.build_context import BuildContext
from gitsched.reconcile.builds.charts import load_helm
from gitsched.reconcile.builds.kustomizations import FileReader, is_read_by_api
from gitsched.reconcile.builds.kustomize_roots import BuiltRoot, build_directories, load_builder
from gitsched.reconcile.builds.lost_quotes import describe_rendered
from gitsched.reconcile.bundles.bundle_charts import render_bundle_charts
from gitsched.reconcile.bundles.bundle_files import DirectoryFiles, DirectoryRequest, PrintedDocument, make_chart_request
from gitsched.reconcile.cache.build_cache import BuildCache
from gitsched.reconcile.source.commit_tree import CommitTree
from gitsched.render.run_metadata import NOTHING_BUILT, BuildRecord

_LOADERS: Mapping[VariantFormat, Callable[[BuildCache], Builder]] = {"helm": load_helm, "kustomize": load_builder}


class BuiltDirectory(NamedTuple):
    """A directory with what it builds: the roots that kustomize built, and documents. `namespace` is that of a chart's release."""

    files: DirectoryFiles
    failed: bool = False
    roots: tuple[BuiltRoot, ...] = ()
    documents: tuple[PrintedDocument, ...] = ()
    namespace: str = ""


class BuiltBundles(NamedTuple):
    """Directories by the digest of their request, findings about them, and the record of the builds."""

    directories: Mapping[str, BuiltDirectory]
    findings: tuple[Finding, ...] = ()
    record: BuildRecord = NOTHING_BUILT


def build_bundle_directories(
    requests: Mapping[str, DirectoryRequest],
    files: Mapping[str, DirectoryFiles],
    commit: CommitTree,
    reader: FileReader,
    context: BuildContext,
) -> BuiltBundles:
    """Build directories, several at a time, by their digests. `files` are those of each one; none lacks its program."""
    found = {digest: BuiltDirectory(files[digest], failed=bool(files[digest].missing)) for digest in requests}
    findings: list[Finding] = []
    record = NOTHING_BUILT
    wanted = {digest: request for digest, request in requests.items() if not files[digest].missing}
    roots = dict.fromkeys(root for digest in wanted for root in files[digest].roots)
    if roots:
        built = build_directories(list(roots), commit, reader, context, keep=False)
        findings += built.findings
        record = built.record
        for digest in wanted:
            own = tuple(built.roots[root] for root in files[digest].roots)
            read = {path: blob for root in own for path, blob in root.closure.files.items()}  # with those of other repositories
            listed = files[digest]._replace(files={**files[digest].files, **read})
            found[digest] = found[digest]._replace(files=listed, roots=own, failed=any(root.failed for root in own))
    charts = {digest: request for digest, request in wanted.items() if files[digest].format == "helm"}
    if charts:
        rendered, version = render_bundle_charts(charts, commit, context, findings)
        record = record._replace(helm=version)
        for digest, documents in rendered.items():
            namespace = make_chart_request(charts[digest]).namespace
            found[digest] = found[digest]._replace(failed=documents is None, documents=documents or (), namespace=namespace)
    for digest in wanted:
        if (listed := files[digest]).plain:
            texts = tuple(PrintedDocument(commit.read_blob(listed.files[path]), path, listed.files[path]) for path in listed.plain)
            found[digest] = found[digest]._replace(documents=texts)
    return BuiltBundles(found, tuple(findings), record)


def find_missing_programs(directories: Iterable[DirectoryFiles], context: BuildContext) -> dict[VariantFormat, str]:
    """Return the programs that build some directories and are not installed, with what to do."""
    needed = {one.program for one in directories if not one.missing}
    missing: dict[VariantFormat, str] = {}
    for program, load in _LOADERS.items():
        if program in needed:
            try:
                load(context.caches.open_builds())
            except Permanent as error:
                missing[program] = str(error)
    return missing


class DirectoryReader:
    """Reads the documents that directories build, with the values of some clusters."""

    def __init__(self, commit: CommitTree, reader: FileReader) -> None:
        self._commit, self._reader = commit, reader

    def read(
        self,
        directory: BuiltDirectory,
        values: Mapping[str, str] | None,
        findings: list[Finding],
        omitted: list[RawDocument],
    ) -> tuple[RawDocument, ...] | None:
        """Return the documents of a directory; None with findings if they cannot be used.

        `values` are substituted for `${name}`, None for nothing. Documents that policy APIs read are `omitted`.
        """
        errors = len(findings)
        documents: list[RawDocument] = []
        for root in directory.roots:
            for printed in root.result.objects:
                text = self._substitute(printed.text, values, printed.path or root.closure.kustomization, findings)
                before = printed.text if text != printed.text else b""
                documents += root.locator.read(printed._replace(text=text), findings, omitted, before)
        for document in directory.documents:
            documents += self._read_documents(document, values, findings, omitted)
        failed = any(finding.severity == "error" for finding in findings[errors:]) or any(document.broken for document in documents)
        return None if failed else tuple(documents)

    def _read_documents(
        self,
        printed: PrintedDocument,
        values: Mapping[str, str] | None,
        findings: list[Finding],
        omitted: list[RawDocument],
    ) -> Iterator[RawDocument]:
        text = self._substitute(printed.text, values, printed.path, findings)
        is_source = bool(printed.blob) and text == printed.text
        blob = printed.blob if is_source else self._commit.repository.keep_blob(text)
        file = self._reader.read(blob, printed.path if printed.blob else "built.yaml")
        for issue in file.issues:
            line, column = (issue.line, issue.column) if printed.blob else (1, 1)
            message = issue.message if printed.blob else describe_rendered(issue)
            message += "" if text == printed.text else " (with spec.values of the Bundle)"
            findings.append(Finding(issue.severity, issue.code, message, Location(printed.path, line, column), issue.resource))
        for parsed in file.documents:
            line, column = (parsed.line, parsed.column) if printed.blob else (1, 1)
            origin = Origin(printed.path, blob, parsed.index, parsed.item, line, column, parsed.spans)
            raw = make_raw_document(parsed.body, origin, parsed.broken)
            if is_read_by_api(raw):
                omitted.append(raw)
            else:
                yield raw

    def _substitute(self, text: bytes, values: Mapping[str, str] | None, path: str, findings: list[Finding]) -> bytes:
        """Return the text with the values, but for the objects in which Flux would not substitute them."""
        if values is None or b"${" not in text:
            return text
        written = text.decode("utf-8", "surrogateescape")
        variables, parts, end = VariableValues(values), list[str](), 0
        try:
            for spans in self._list_excluded(text, path) if SUBSTITUTE_KEY.encode() in text else ():
                parts += (substitute_variables(written[end : spans.start], variables), written[spans.start : spans.end])
                end = spans.end
            parts.append(substitute_variables(written[end:], variables))
        except SubstitutionError as error:
            message = f"{error}: add it to spec.values of the Bundle, or write $${{...}} for a text that stays as it is"
            findings.append(Finding("error", "bundle-value", message, Location(path, 1, 1)))
            return text
        return "".join(parts).encode("utf-8", "surrogateescape")

    def _list_excluded(self, text: bytes, path: str) -> Iterator[SourceSpans]:
        """Yield the extents of the documents in which nothing is substituted, in their order: those of objects that say so."""
        end = 0
        for document in self._reader.read(self._commit.repository.keep_blob(text), path).documents:
            if is_substitution_disabled(document.body) and document.spans.end > end:
                yield document.spans
                end = document.spans.end

    def add_namespace(self, document: RawDocument, namespace: str) -> RawDocument:
        """Return a namespaced object of a chart with the namespace of its release, as `helm install` sets it."""
        origin = document.origin
        if document.namespace or origin is None:
            return document
        text = set_namespace(self._commit.repository.blob(origin.blob), document.body, namespace)
        blob = self._commit.repository.keep_blob(text)
        parsed = self._reader.read(blob, "built.yaml").documents
        if origin.item >= 0 or len(parsed) != 1:
            body = {**document.body, "metadata": {**document.body["metadata"], "namespace": namespace}}
            return make_raw_document(body, origin._replace(spans=None), document.broken)
        return make_raw_document(parsed[0].body, origin._replace(blob=blob, spans=parsed[0].spans), document.broken)
