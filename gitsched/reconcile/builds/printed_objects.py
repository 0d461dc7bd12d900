"""The objects that the build of a reconciled directory prints: with their variables substituted, and located in the commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from gitsched.build.flux import is_substitution_disabled
from gitsched.build.kustomize import BuildResult, BuiltObject
from gitsched.build.path_recipe import decode_value
from gitsched.decide.catalog import KindScopes, KustomizedDocument, RawDocument, make_added_namespace_finding, make_raw_document
from gitsched.edits.manifest_edits import set_namespace
from gitsched.manifests.envsubst import SubstitutionError, substitute_variables
from gitsched.manifests.kustomize import Kustomization
from gitsched.manifests.parsed_file import ParsedFile
from gitsched.model.document import Origin, as_string_map
from gitsched.model.finding import Finding, Location, locate_origin
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.builds.kustomizations import FileReader, is_read_by_api
from gitsched.reconcile.builds.lost_quotes import describe_substituted
from gitsched.reconcile.builds.origins import OriginLocator
from gitsched.reconcile.builds.reconciled_path import ReconciledPath
from gitsched.reconcile.builds.variable_values import ResolvedVariables, resolve_variables
from gitsched.reconcile.source.commit_tree import CommitTree

NOT_BUILT = "reconciled-path"
"""The code of the finding about an object that a tool builds and gitsched cannot build."""
VARIABLE = "flux-variable"
"""The code of the finding about an object with a variable whose value is not known."""


_ENCRYPTED = "ENC[AES256_GCM,"


class _Printed(NamedTuple):
    built: BuiltObject
    document: RawDocument


class PlacedObjects(NamedTuple):
    """The objects of a directory, those that cannot be placed, findings about them, and the names of objects of which an error hides what
    identifies them."""

    documents: list[RawDocument]
    unplaced: list[KustomizedDocument]
    findings: list[Finding]
    unidentified: list[str]


class PrintedObjects:
    """What the build of one directory prints. `scopes` gets what it declares."""

    def __init__(
        self,
        path: ReconciledPath,
        result: BuildResult,
        commit: CommitTree,
        reader: FileReader,
        scopes: KindScopes,
    ) -> None:
        self._path, self._commit, self._reader, self._scopes = path, commit, reader, scopes
        self._guessed: set[tuple[str, str]] = set()
        self._locator = OriginLocator(path.closure, path.commit, reader)
        self._printed: list[_Printed] = []
        self._nameless: list[tuple[BuiltObject, ParsedFile]] = []
        for built in result.objects:
            file = reader.read(commit.repository.keep_blob(built.text), "built.yaml")
            self._printed += [_Printed(built, make_raw_document(parsed.body)) for parsed in file.documents]
            if not file.documents:
                self._nameless.append((built, file))
        scopes.add(document for _, document in self._printed)

    def list_value_sources(self) -> list[RawDocument]:
        """Return the ConfigMaps and Secrets, from which other Kustomizations may read variables."""
        return [
            document._replace(origin=self._locate(built, document))
            for built, document in self._printed
            if not document.group and document.kind in ("ConfigMap", "Secret")
        ]

    def list_omitted(self) -> list[RawDocument]:
        """Return the documents of policy APIs, which are read from their own files and are none of the objects."""
        return [
            document._replace(origin=self._locate(built, document)) for built, document in self._printed if is_read_by_api(document)
        ]

    def read(self, find_documents: Callable[[str, str], Iterable[RawDocument]], inputs: set[str]) -> PlacedObjects:
        """Return the objects. `find_documents` finds ConfigMaps and Secrets; `inputs` gets the files that the result depends on."""
        substitution = self._path.recipe.substitution
        variables = None
        if substitution is not None:
            document = self._path.document
            inputs.add(self._path.location.path)
            variables = resolve_variables(substitution, document.namespace or "default", self._path.location.path, find_documents)
            known = variables.values
            if not (known.values or known.unknown or known.incomplete or substitution.always):
                variables = None
        placed = PlacedObjects([], [], [], [])
        for built, document in self._printed:
            if not is_read_by_api(document):
                self._place(built, document, variables, placed)
        for built, file in self._nameless:
            self._report_nameless(built, file, placed)
        return placed

    def _report_nameless(self, built: BuiltObject, file: ParsedFile, placed: PlacedObjects) -> None:
        """Add the error about a text that is no object, such as one without a name, as a chart may print it."""
        path = self._path.find_source(built.path)
        location = Location(path, 1, 1) if path in self._commit.entries else self._path.location
        code, message = next(((issue.code, issue.message) for issue in file.issues), (NOT_BUILT, f"no object: {file.reason}"))
        placed.findings.append(Finding("error", code, f"{message} (as {self._path.describe()})", location))
        placed.unidentified.append(f"an object of {path}")

    def _place(self, built: BuiltObject, document: RawDocument, variables: ResolvedVariables | None, placed: PlacedObjects) -> None:
        origin, text = self._locate(built, document), built.text
        if built.generated and _has_encrypted_values(document):
            reason = (
                f"{self._path.describe()}, and the file that this object is generated from is encrypted with SOPS: Flux decrypts it before "
                "the build, which needs the key. Commit the object itself, encrypted"
            )
            placed.unplaced.append(KustomizedDocument(document._replace(origin=origin), lambda: reason, code=NOT_BUILT))
            return
        if variables is not None and b"$" in text and not is_substitution_disabled(document.body):
            try:
                text = substitute_variables(text.decode("utf-8", "surrogateescape"), variables.values).encode(
                    "utf-8", "surrogateescape"
                )
            except SubstitutionError as error:
                why = variables.describe_missing(error.variable) if error.variable else "correct it"
                reason = f"{self._path.name} substitutes its variables, and {error} here: {why}"
                placed.unplaced.append(KustomizedDocument(document._replace(origin=origin), lambda: reason, code=VARIABLE))
                return
        if self._lacks_namespace(document, origin, placed.findings):
            text = set_namespace(text, document.body, self._path.recipe.default_namespace)
        blob = self._commit.repository.keep_blob(text)
        file = self._reader.read(blob, "built.yaml")
        describe = partial(describe_substituted, "spec.postBuild.substitute", document, built.text if text != built.text else b"")
        if len(file.documents) != 1:
            problems = "; ".join(describe(issue) for issue in file.issues) or "it is empty"
            reason = f"{self._path.describe()}, and the result is not one object: {problems}"
            placed.unplaced.append(KustomizedDocument(document._replace(origin=origin), lambda: reason, code=VARIABLE))
            return
        for issue in file.issues:
            message = f"{describe(issue)} (as {self._path.name} builds {self._path.recipe.directory})"
            placed.findings.append(Finding(issue.severity, issue.code, message, locate_origin(origin), issue.resource))
        parsed = file.documents[0]
        origin = origin._replace(blob=blob, index=parsed.index, item=parsed.item, spans=parsed.spans)
        placed.documents.append(make_raw_document(parsed.body, origin, parsed.broken))
        if file.list_unidentified():
            placed.unidentified.append(f"{document.kind} {document.name}")

    def _lacks_namespace(self, document: RawDocument, origin: Origin, findings: list[Finding]) -> bool:
        """Return whether the tool sets the namespace of an object; a kind of which nothing says so counts as namespaced, with a finding."""
        namespace = self._path.recipe.default_namespace
        if not namespace or document.namespace:
            return False
        kind = document.group, document.kind
        namespaced = self._scopes.find_scope(*kind)
        if namespaced is None and kind not in self._guessed:
            self._guessed.add(kind)
            findings.append(make_added_namespace_finding(document._replace(origin=origin), namespace, self._path.name))
        return namespaced is not False

    def _locate(self, built: BuiltObject, document: RawDocument) -> Origin:
        """Return where an object comes from in the commit. The tool's own kustomization has other lines than that of the commit."""
        path, line, column, changed_by = self._locator.locate(built, document)
        source = self._path.find_source(path)
        if source not in self._commit.entries:
            position = self._path.location
            source, line, column = position.path, position.line, position.column
        elif path == self._path.recipe.path:
            original = self._commit.read_kustomization(self._commit.entries[source][0], source) or Kustomization()
            named = [change for change in original.changes if change.kind == "mention" and change.value in document.name]
            line, column = max(named, key=lambda change: len(change.value)).line if named else 1, 1
        root = self._path.find_source(self._path.recipe.path).rpartition("/")[0] or "."
        return Origin(source, "", 0, -1, line, column, None, root, self._path.location.path, self._find_change(changed_by))

    def _find_change(self, changed_by: str) -> str:
        """Return the position of a change in the commit; that of the tool's document if the tool makes it."""
        path, _, line = changed_by.rpartition(":")
        source, tool = self._path.find_source(path), self._path.location
        if source in self._commit.entries and path == self._path.recipe.path:
            blob = self._path.closure.files.get(path)
            written = (self._path.commit.read_kustomization(blob, path) if blob else None) or Kustomization()
            original = self._commit.read_kustomization(self._commit.entries[source][0], source) or Kustomization()
            texts = {change.text for change in written.changes if str(change.line) == line}
            line = next((str(change.line) for change in original.changes if change.text in texts), "")
        if not path:
            return ""
        return f"{source}:{line}" if line and source in self._commit.entries else f"{tool.path}:{tool.line}"


def _has_encrypted_values(document: RawDocument) -> bool:
    """Return whether a generated ConfigMap or Secret has values that SOPS has encrypted, and nothing with which to decrypt them."""
    if document.group or document.kind not in ("ConfigMap", "Secret"):
        return False
    values = as_string_map(document.body.get("data")).values()
    return any(_ENCRYPTED in (decode_value(value) if document.kind == "Secret" else value) for value in values)
