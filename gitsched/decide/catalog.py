"""Index the documents of a commit by identity: templates, documents of policy APIs, duplicates, and the scope of each kind."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.config import KindScope
from gitsched.kinds.table import is_namespaced as is_namespaced_by_table
from gitsched.model.document import Body, Document, Key, Origin, get_field, is_namespaced, is_unread_kind, parse_api_group
from gitsched.model.finding import Finding, format_names, locate_document, locate_origin
from gitsched.model.variants import BUNDLE_KIND
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.manifests.parsed_file import ParsedDocument, ParsedFile

_CROSSPLANE_GROUP = "apiextensions.crossplane.io"
DEFINITION_KINDS = ("CustomResourceDefinition", "CompositeResourceDefinition")
"""Kinds whose documents declare the scope of other kinds."""
DEFINITION_GROUPS = ("apiextensions.k8s.io", _CROSSPLANE_GROUP)
"""The API groups of these kinds."""
_SCOPE_CURE = "commit its CustomResourceDefinition, or declare the kind under `spec.kinds` in gitsched.yaml"
_CLUSTERS_CURE = (
    "if these directories are for different clusters, `gitsched init --cluster DIR=NAME` proposes a Bundle of them, or map them to "
    "clusters in source.variants"
)
MAX_DUPLICATE_LOCATIONS = 3
"""Locations of one duplicate identity that a message names; it only counts the others."""


class RawDocument(NamedTuple):
    """A document of a file, with the namespace as written. A `broken` one is quarantined. Create it with `make_raw_document`."""

    body: Body
    origin: Origin | None
    broken: bool
    api_version: str
    group: str
    kind: str
    namespace: str
    name: str

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Group, kind, namespace as written, and name."""
        return self[4:]

    @property
    def path(self) -> str:
        """The path of the file that has the document; "" for one that no file has."""
        return self.origin.path if self.origin is not None else ""


def make_raw_document(body: Body, origin: Origin | None = None, broken: bool = False) -> RawDocument:
    """Return a document with the fields that identify it."""
    api_version = str(body.get("apiVersion") or body.get("api") or "")
    metadata = body.get("metadata")
    entries = metadata if isinstance(metadata, dict) else {}
    return RawDocument(
        body,
        origin,
        broken,
        api_version,
        parse_api_group(api_version),
        str(body.get("kind") or ""),
        str(entries.get("namespace") or ""),
        str(entries.get("name") or ""),
    )


def make_raw_documents(file: ParsedFile, path: str, blob: str) -> list[RawDocument]:
    """Return the documents of a file, with their origins."""
    return [make_raw_document(one.body, make_origin(one, path, blob), one.broken) for one in file.documents]


def make_origin(parsed: ParsedDocument, path: str, blob: str) -> Origin:
    """Return the origin of a document of a file."""
    return Origin(path, blob, parsed.index, parsed.item, parsed.line, parsed.column, parsed.spans)


UNBUILT = ""
"""The code of a part of a Bundle or of a directory that cannot be built, which has no finding of its own: the directory has one."""


class KustomizedDocument(NamedTuple):
    """A document that a kustomization or a delivery tool builds and changes, so that it is no object of its own.

    `describe` says what changes it. `chart` is the directory of the Helm chart that has the document as a template, in place of a
    kustomization, `bundles` those that have it in their directories. `code` is that of the finding if a policy selects it; other codes than
    `kustomized` are those of objects that could not be built, and `describe` says why and what to do. An `UNBUILT` one has none.
    """

    document: RawDocument
    describe: Callable[[], str]
    chart: str = ""
    code: str = "kustomized"
    bundles: tuple[Key, ...] = ()

    @property
    def is_reported(self) -> bool:
        """Whether it is a finding that a policy selects the document."""
        return self.code != UNBUILT


class Catalog(NamedTuple):
    """The documents of a commit by identity.

    `api_documents` are those of policy APIs, by (group, kind), sorted by key; `templates` are all others, sorted by (namespace, name).
    Duplicates are identities that are defined more than once. `broken` are identities without a usable document. `guessed_scopes` are the
    kinds that nothing declares as namespaced or cluster-scoped, with one document each; `kind_scopes` says of all kinds that are not built
    in whether they are namespaced. `read_order` are the identities in the order of the files. `identical`
    are identities with several documents of the same content, which count as one.
    """

    api_documents: Mapping[tuple[str, str], tuple[Document, ...]]
    templates: Mapping[Key, Document]
    duplicate_templates: Mapping[Key, tuple[Document, ...]]
    duplicate_api_documents: Mapping[Key, tuple[Document, ...]]
    broken: Mapping[Key, Document]
    guessed_scopes: Mapping[tuple[str, str], Document]
    kind_scopes: Mapping[tuple[str, str], bool]
    findings: tuple[Finding, ...]
    read_order: tuple[Key, ...] = ()
    identical: frozenset[Key] = frozenset()

    @property
    def api_documents_by_key(self) -> dict[Key, Document]:
        """Every document of a policy API."""
        return {document.key: document for documents in self.api_documents.values() for document in documents}


def build_catalog(documents: Iterable[RawDocument], kinds: Iterable[KindScope], reserved: Set[str]) -> Catalog:
    """Resolve identities. `reserved` are the groups of the policy APIs, whose documents are never templates."""
    raw = list(documents)
    scopes = KindScopes(raw, kinds)
    by_key: dict[Key, list[Document]] = {}
    broken: dict[Key, Document] = {}
    for entry in raw:
        document = scopes.resolve(entry)
        if entry.broken:
            broken.setdefault(document.key, document)
        else:
            by_key.setdefault(document.key, []).append(document)
    listed = {key for key in by_key if not is_template(key.group, key.kind, reserved)}
    several = {key: tuple(copies) for key, copies in by_key.items() if len(copies) > 1}
    identical = frozenset(key for key, copies in several.items() if _are_identical(copies))
    duplicates = {key: copies for key, copies in several.items() if key not in identical}
    api_documents: dict[tuple[str, str], list[Document]] = {}
    templates: list[Document] = []
    for key, copies in by_key.items():
        is_usable = len(copies) == 1 or key in identical
        if key not in listed:
            if is_usable:
                templates.append(copies[0])
        elif is_usable:
            api_documents.setdefault((key.group, key.kind), []).append(copies[0])
        else:
            broken[key] = copies[0]
        if len(copies) == 1:
            broken.pop(key, None)  # a with a broken and a valid document, the valid one counts
    findings = [make_duplicate_finding(copies) for key, copies in sorted(duplicates.items()) if key in listed]
    templates.sort(key=lambda document: (document.key.namespace, document.key.name, document.key))
    return Catalog(
        {kind: tuple(sorted(entries, key=lambda document: document.key)) for kind, entries in api_documents.items()},
        {document.key: document for document in templates},
        {key: copies for key, copies in duplicates.items() if key not in listed},
        {key: copies for key, copies in duplicates.items() if key in listed},
        broken,
        scopes.guessed,
        scopes.resolved,
        tuple(findings),
        tuple(by_key),
        identical,
    )


def is_template(group: str, kind: str, reserved: Set[str]) -> bool:
    """Return whether policies can select documents of a kind: a Bundle, and any kind that no API of the `reserved` groups reads."""
    return group not in reserved or (group, kind) == BUNDLE_KIND or is_unread_kind(group, kind)


def _are_identical(copies: Iterable[Document]) -> bool:
    """Return whether all documents of an object have the same content."""
    first, *others = copies
    return all(other.api_version == first.api_version and other.body == first.body for other in others)


def resolve_key(document: RawDocument, scopes: Mapping[tuple[str, str], bool]) -> Key | None:
    """Return the identity of a document; None for a kind that is neither built in nor in `scopes`."""
    namespaced = is_namespaced(document.group, document.kind)
    if namespaced is None:
        namespaced = scopes.get((document.group, document.kind))
    if namespaced is None:
        return None
    return Key(document.group, document.kind, (document.namespace or "default") if namespaced else "", document.name)


def make_duplicate_finding(copies: tuple[Document, ...], *, per_directory: bool = False) -> Finding:
    """Return the error that an identity is defined more than once, at the first location. The message names the next ones.

    `per_directory`: they are in different directories, which may be for different clusters.
    """
    known = [f"{location}{_name_root(copy)}" for copy in copies if (location := locate_document(copy))][1:]
    locations = f"also {format_names(known, MAX_DUPLICATE_LOCATIONS)}" if known else f"{len(copies)} documents"
    key = copies[0].key
    cure = f"keep one, or hide overlays with .sourceignore or source.paths{f'; {_CLUSTERS_CURE}' if per_directory else ''}"
    if copies[0].origin is not None and copies[0].origin.root:
        cure = (
            f"the first is{_name_root(copies[0])}: map the directories to clusters in source.variants if they are for different clusters, "
            "else build only one of them, or give the objects different names or namespaces"
        )
    message = f"{key} is defined more than once: {locations}; {cure}"
    return Finding("error", "duplicate-identity", message, locate_document(copies[0]), key.resource)


def make_duplicate_findings(duplicates: Iterable[tuple[Document, ...]]) -> list[Finding]:
    """Return the errors that objects are defined more than once: one for all objects that the same directories define differently."""
    by_directories: dict[tuple[str, ...], list[tuple[Document, ...]]] = {}
    for copies in duplicates:
        by_directories.setdefault(tuple(dict.fromkeys(map(_get_directory, copies))), []).append(copies)
    findings: list[Finding] = []
    for directories, group in by_directories.items():
        if len(group) == 1 or len(directories) == 1:
            findings += (make_duplicate_finding(copies, per_directory=len(directories) > 1) for copies in group)
        else:
            findings.append(_make_directory_finding(directories, group))
    return findings


def _make_directory_finding(directories: tuple[str, ...], group: list[tuple[Document, ...]]) -> Finding:
    names = [str(copies[0].key) for copies in group]
    where = format_names(directories, MAX_DUPLICATE_LOCATIONS + 1)
    message = (
        f"{len(group)} objects are defined with different content in {where}: {format_names(names, MAX_DUPLICATE_LOCATIONS)}; "
        f"{_CLUSTERS_CURE}, else keep one"
    )
    first = group[0][0]
    return Finding("error", "duplicate-identity", message, locate_document(first), first.key.resource)


def _get_directory(document: Document) -> str:
    """Return the root that builds a document, and the file that says how, else the directory of its file."""
    origin = document.origin
    if origin is None or not origin.root:
        return "" if origin is None else posixpath.dirname(origin.path) or "."
    return f"{origin.root} as {origin.tool} builds it" if origin.tool else origin.root


def _name_root(document: Document) -> str:
    return f" built from {_get_directory(document)}" if document.origin is not None and document.origin.root else ""


def make_scope_finding(document: Document) -> Finding:
    """Return the remark that nothing declares whether the kind of a document is namespaced."""
    key = document.key
    guess = f"{key.kind} of {key.group or 'the core'} is assumed to be cluster-scoped"
    message = f"{guess}: no CustomResourceDefinition says otherwise, nor `kinds:`"
    return Finding("info", "scope-guessed", message, locate_document(document), key.resource)


def make_added_namespace_finding(document: RawDocument, namespace: str, tool: str) -> Finding:
    """Return the warning that an object gets the namespace of a tool that asks the API server for the scope of its kind."""
    message = (
        f"{document.kind} of {document.group or 'the core'} is assumed to be namespaced, and gets the namespace {namespace} of {tool}, "
        f"which leaves it out where the API server of the cluster says that the kind is cluster-scoped: {_SCOPE_CURE}"
    )
    location = locate_origin(document.origin) if document.origin else None
    return Finding("warning", "scope-guessed", message, location, (document.kind, "", document.name))


def locate_finding_resources(findings: Iterable[Finding], documents: Iterable[RawDocument]) -> tuple[Finding, ...]:
    """Return the findings with the location of the document of their resource, where it is among the given ones."""
    findings = tuple(findings)
    if not findings:
        return ()
    origins = {(document.kind, document.namespace, document.name): document.origin for document in documents}
    located = []
    for finding in findings:
        kind, namespace, name = finding.resource or ("", "", "")
        origin = origins.get((kind, namespace, name)) or (origins.get((kind, "", name)) if namespace == "default" else None)
        located.append(finding._replace(location=locate_origin(origin)) if origin else finding)
    return tuple(located)


class KindScopes:
    """The scope of each kind among all documents of a source: by a table for built-in kinds, else by the CRD, by `kinds:` in gitsched.yaml,
    by the table of kinds, or by use of a namespace."""

    def __init__(self, documents: Iterable[RawDocument], kinds: Iterable[KindScope]) -> None:
        self._known: dict[tuple[str, str], bool] = {
            (parse_api_group(kind.api_version), kind.kind): kind.namespaced for kind in kinds
        }
        self._used: set[tuple[str, str]] = set()
        self.resolved: dict[tuple[str, str], bool] = {}
        self.guessed: dict[tuple[str, str], Document] = {}
        self._guessed_kinds: set[tuple[str, str]] = set()
        self.add(documents)

    def add(self, documents: Iterable[RawDocument]) -> None:
        """Read what more documents declare, and which kinds they use with a namespace."""
        for entry in documents:
            if entry.namespace:
                self._used.add((entry.group, entry.kind))
            if entry.kind in DEFINITION_KINDS and not entry.broken:
                self._declare(entry)

    def resolve(self, entry: RawDocument) -> Document:
        """Return a document with its identity."""
        body, origin, _, api_version, group, kind, namespace, name = entry
        namespaced = is_namespaced(group, kind)
        guessed = False
        if namespaced is None:
            namespaced = self.resolved.get((group, kind))
            if namespaced is None:
                namespaced = self._guess_scope(group, kind)
                self.resolved[group, kind] = namespaced
            guessed = (group, kind) in self._guessed_kinds
        document = Document(Key(group, kind, (namespace or "default") if namespaced else "", name), api_version, body, origin)
        if guessed:
            self.guessed.setdefault((group, kind), document)
        return document

    def assume_namespaced(self, group: str, kind: str) -> None:
        """Take a kind of which nothing says so as namespaced."""
        self._used.add((group, kind))
        self.resolved.pop((group, kind), None)

    def find_scope(self, group: str, kind: str) -> bool | None:
        """Return whether a kind is namespaced; None if nothing says so."""
        namespaced = is_namespaced(group, kind)
        if namespaced is None:
            namespaced = self._known.get((group, kind))
        if namespaced is None:
            namespaced = is_namespaced_by_table(group, kind)
        return True if namespaced is None and (group, kind) in self._used else namespaced

    def _guess_scope(self, group: str, kind: str) -> bool:
        """Return whether a kind is namespaced; one of which nothing says so is taken as cluster-scoped."""
        namespaced = self.find_scope(group, kind)
        if namespaced is None:
            self._guessed_kinds.add((group, kind))
        return bool(namespaced)

    def _declare(self, entry: RawDocument) -> None:
        for found in read_declared_scopes(entry):
            self._known[parse_api_group(found.api_version), found.kind] = found.namespaced


def read_declared_scopes(document: RawDocument) -> Iterator[KindScope]:
    """Yield the scopes of the kinds that a definition declares: a CustomResourceDefinition, or one of Crossplane.

    A CompositeResourceDefinition declares the composite resource, cluster-scoped unless it says otherwise or is of version v2, and its
    claim. Source: crossplane/crossplane/apis/apiextensions.
    """
    body = document.body
    group, scope = get_field(body, "spec", "group"), get_field(body, "spec", "scope")
    kind, claim = get_field(body, "spec", "names", "kind"), get_field(body, "spec", "claimNames", "kind")
    if not isinstance(group, str):
        return
    if document.kind == "CustomResourceDefinition":
        if isinstance(kind, str) and scope in ("Namespaced", "Cluster"):
            yield KindScope(f"{group}/", kind, scope == "Namespaced")
    elif document.kind == "CompositeResourceDefinition" and document.group == _CROSSPLANE_GROUP:
        default = "Namespaced" if document.api_version.endswith("/v2") else "LegacyCluster"
        if isinstance(kind, str):
            yield KindScope(f"{group}/", kind, (scope or default) == "Namespaced")
        if isinstance(claim, str):
            yield KindScope(f"{group}/", claim, True)
