"""The documents of a commit by identity: whose namespace is what, which are there twice, and which an API reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gitsched.apis.gitsched.config import KindScope
from gitsched.model.document import Body, Document, Key, Origin, group_of, member
from gitsched.model.finding import Finding, Location
from gitsched.model.scope import is_namespaced


class Loose(NamedTuple):
    """A document as it was read, its namespace still as written. A `broken` one is quarantined."""

    body: Body
    origin: Origin | None = None
    broken: bool = False


class Catalog(NamedTuple):
    """`settings` are the documents that APIs read, by (group, kind) in the order of their keys; `templates` everything else, by
    (namespace, name). `twins` are identities that stand in several places, `broken` those without any valid document."""

    settings: Mapping[tuple[str, str], tuple[Document, ...]]
    templates: tuple[Document, ...]
    twins: Mapping[Key, tuple[Document, ...]]
    broken: Mapping[Key, Document]
    findings: tuple[Finding, ...]


def build_catalog(documents: Iterable[Loose], kinds: Iterable[KindScope], reserved: frozenset[str]) -> Catalog:
    """Resolve identities. `reserved` are the API groups whose documents are settings, never templates."""
    loose = list(documents)
    scopes = _Scopes(loose, kinds)
    by_key: dict[Key, list[Document]] = {}
    broken: dict[Key, Document] = {}
    for body, origin, is_broken in loose:
        document = scopes.resolve(body, origin)
        if is_broken:
            broken.setdefault(document.key, document)
        else:
            by_key.setdefault(document.key, []).append(document)
    twins = {key: tuple(copies) for key, copies in by_key.items() if len(copies) > 1}
    settings: dict[tuple[str, str], list[Document]] = {}
    templates: list[Document] = []
    for key, copies in by_key.items():
        if key.group in reserved:
            if len(copies) == 1:
                settings.setdefault((key.group, key.kind), []).append(copies[0])
            else:
                broken.setdefault(key, copies[0])
        elif len(copies) == 1:
            templates.append(copies[0])
    for key in by_key:
        broken.pop(key, None) if key not in twins else None
    findings = [*scopes.findings, *(twin_finding(copies) for key, copies in sorted(twins.items()) if key.group in reserved)]
    return Catalog(
        {kind: tuple(sorted(entries, key=lambda document: document.key)) for kind, entries in settings.items()},
        tuple(sorted(templates, key=lambda document: (document.key.namespace, document.key.name, document.key))),
        {key: copies for key, copies in twins.items() if key.group not in reserved},
        broken,
        tuple(findings),
    )


def twin_finding(copies: tuple[Document, ...]) -> Finding:
    """The error that an identity stands in several places, all of them named."""
    places = ", ".join(str(place) for place in map(locate, copies) if place) or f"{len(copies)} documents"
    key = copies[0].key
    return Finding("error", "duplicate-identity", f"{key} stands in several places: {places}", locate(copies[0]), key.resource)


def locate(document: Document) -> Location | None:
    """Where a document begins."""
    origin = document.origin
    return Location(origin.path, origin.line, origin.column) if origin else None


class _Scopes:
    """Which kinds are in namespaces: built-in kinds by a table, others by their CRD, by the settings, or by how they are used."""

    def __init__(self, documents: list[Loose], kinds: Iterable[KindScope]) -> None:
        self._known: dict[tuple[str, str], bool] = {(group_of(kind.api_version), kind.kind): kind.namespaced for kind in kinds}
        self._used: set[tuple[str, str]] = set()
        self._guessed: dict[tuple[str, str], Document] = {}
        for body, _, is_broken in documents:
            kind = str(body.get("kind"))
            if kind == "CustomResourceDefinition" and not is_broken:
                self._declare(body)
            elif member(body, "metadata", "namespace"):
                self._used.add((group_of(str(body.get("apiVersion") or body.get("api") or "")), kind))

    @property
    def findings(self) -> list[Finding]:
        return [
            Finding(
                "info",
                "scope-guessed",
                f"{kind} of {group or 'the core'} is taken to be cluster-scoped: no CustomResourceDefinition says otherwise, nor `kinds:`",
                locate(document),
                document.key.resource,
            )
            for (group, kind), document in sorted(self._guessed.items(), key=lambda entry: entry[0])
        ]

    def resolve(self, body: Body, origin: Origin | None) -> Document:
        api_version, kind = str(body.get("apiVersion") or body.get("api") or ""), str(body.get("kind") or "")
        group = group_of(api_version)
        metadata = body.get("metadata") or {}
        namespaced = is_namespaced(group, kind)
        guessed = False
        if namespaced is None:
            namespaced = self._known.get((group, kind))
        if namespaced is None:
            namespaced = (group, kind) in self._used
            guessed = not namespaced
        namespace = str(metadata.get("namespace") or "default") if namespaced else ""
        document = Document(Key(group, kind, namespace, str(metadata.get("name") or "")), api_version, body, origin)
        if guessed:
            self._guessed.setdefault((group, kind), document)
        return document

    def _declare(self, crd: Body) -> None:
        group, kind, scope = member(crd, "spec", "group"), member(crd, "spec", "names", "kind"), member(crd, "spec", "scope")
        if isinstance(group, str) and isinstance(kind, str) and scope in ("Namespaced", "Cluster"):
            self._known[group, kind] = scope == "Namespaced"
