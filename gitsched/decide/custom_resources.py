"""Check custom resources against the CustomResourceDefinitions of the same source; entered only where there are definitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gitsched.decide.catalog import RawDocument
from gitsched.manifests.custom_schemas import CustomSchema, list_schemas_by_version, make_custom_schema
from gitsched.model.document import Body, get_field
from gitsched.model.finding import FieldOrigin, Finding, Issue, Severity, locate_origin

_DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
MAX_FINDINGS = 1_000
"""Findings about custom resources in one plan; those of further objects are left out."""


class CustomResourceResult(NamedTuple):
    """The findings about custom resources, and the files that they depend on: those of resources and of definitions."""

    findings: list[Finding]
    paths: frozenset[str]


def is_definition(document: RawDocument) -> bool:
    """Return whether a document is a CustomResourceDefinition."""
    return (document.api_version, document.kind) == _DEFINITION and not document.broken


def list_definitions(documents: Iterable[RawDocument], reserved: frozenset[str]) -> dict[tuple[str, str], RawDocument]:
    """Return the first definition of each kind by its group and kind; `reserved` are the groups of policy APIs."""
    found: dict[tuple[str, str], RawDocument] = {}
    for document in documents:
        if is_definition(document):
            group, kind = get_field(document.body, "spec", "group"), get_field(document.body, "spec", "names", "kind")
            if isinstance(group, str) and isinstance(kind, str) and group not in reserved:
                found.setdefault((group, kind), document)
    return found


def check_custom_resources(documents: Iterable[RawDocument], reserved: frozenset[str], severity: Severity) -> CustomResourceResult:
    """Check every document whose kind a definition among them defines. `reserved` are the groups of policy APIs, which have schemas of
    their own. All findings have this severity."""
    documents = list(documents)
    kinds = {kind: _CustomKind(document) for kind, document in list_definitions(documents, reserved).items()}
    findings: list[Finding] = []
    paths: set[str] = set()
    omitted = 0
    for document in documents:
        custom = kinds.get((document.group, document.kind))
        if custom is None or document.broken:
            continue
        paths |= {path for path in (_get_path(document), _get_path(custom.definition)) if path}
        for issue in custom.find_issues(document.api_version.rpartition("/")[2], document.body):
            if len(findings) < MAX_FINDINGS:
                findings.append(_make_finding(document, issue._replace(severity=severity)))
            else:
                omitted += 1
    findings += (finding for custom in kinds.values() for finding in custom.list_unchecked())
    if omitted:
        message = f"custom resources have {omitted} further mistakes that are not listed: correct the listed ones first"
        findings.append(Finding(severity, "too-many-problems", message))
    return CustomResourceResult(findings, frozenset(paths))


class _CustomKind:
    """The kind that a definition defines; its schemas are compiled for the first object of a version."""

    def __init__(self, definition: RawDocument) -> None:
        self.definition = definition
        self._versions = list_schemas_by_version(definition.body)
        self._compiled: dict[str, CustomSchema] = {}
        origin = definition.origin
        self._where = f"{origin.path}:{origin.line}" if origin is not None else definition.name

    def find_issues(self, version: str, body: Body) -> list[Issue]:
        """Return the issues of an object of this version."""
        if version not in self._versions:
            known = ", ".join(list(self._versions)[:10]) or "no version"
            message = f"the CustomResourceDefinition of {body['kind']} has {known}, not {version[:60]!r} ({self._where})"
            return [Issue("warning", "unknown-version", message, ("apiVersion",))]
        if version not in self._compiled:
            schema = self._versions[version]
            self._compiled[version] = CustomSchema(None) if schema is None else make_custom_schema(schema)
        compiled = self._compiled[version].checked
        issues = compiled.find_issues(body) if compiled is not None else []
        return [issue._replace(message=f"{issue.message} ({self._where})") for issue in issues]

    def list_unchecked(self) -> Iterator[Finding]:
        """Yield a finding about each version whose objects are not checked against its schema, or not completely."""
        for version, (_, unchecked) in self._compiled.items():
            if unchecked:
                message = f"objects of version {version} are not checked completely: {unchecked}"
                yield _make_finding(self.definition, Issue("info", "schema-unchecked", message, ("spec", "versions")))


def _get_path(document: RawDocument) -> str:
    return document.origin.path if document.origin is not None else ""


def _make_finding(document: RawDocument, issue: Issue) -> Finding:
    origin = document.origin
    location, field = (locate_origin(origin), FieldOrigin(origin, issue.pointer)) if origin is not None else (None, None)
    resource = (document.kind, document.namespace, document.name)
    return Finding(issue.severity, issue.code, issue.message, location, resource, field)
