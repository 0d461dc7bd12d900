"""Check custom resources against the CustomResourceDefinitions of the same source; entered only where there are definitions."""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.apis.snapshot import read_defined_kind
from gitsched.decide.catalog import RawDocument
from gitsched.manifests.custom_schemas import CustomKind
from gitsched.model.finding import FieldOrigin, Finding, Issue, Severity, locate_origin
from gitsched.named_tuples import NamedTuple

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
            kind = read_defined_kind(document.body)
            if kind is not None and kind[0] not in reserved:
                found.setdefault(kind, document)
    return found


def check_custom_resources(documents: Iterable[RawDocument], reserved: frozenset[str], severity: Severity) -> CustomResourceResult:
    """Check every document whose kind a definition among them defines. `reserved` are the groups of policy APIs, which have schemas of
    their own. All findings have this severity."""
    documents = list(documents)
    definitions = list_definitions(documents, reserved)
    kinds = {kind: CustomKind(document.body, _describe_place(document)) for kind, document in definitions.items()}
    findings: list[Finding] = []
    paths: set[str] = set()
    omitted = 0
    for document in documents:
        kind = (document.group, document.kind)
        custom = kinds.get(kind)
        if custom is None or document.broken:
            continue
        paths |= {path for path in (document.path, definitions[kind].path) if path}
        for issue in custom.find_issues(document.api_version.rpartition("/")[2], document.body):
            if len(findings) < MAX_FINDINGS:
                findings.append(_make_finding(document, issue._replace(severity=severity)))
            else:
                omitted += 1
    findings += (_make_finding(definitions[kind], issue) for kind, custom in kinds.items() for issue in custom.list_unchecked())
    if omitted:
        message = f"custom resources have {omitted} further mistakes that are not listed: correct the listed ones first"
        findings.append(Finding(severity, "too-many-problems", message))
    return CustomResourceResult(findings, frozenset(paths))


def _describe_place(definition: RawDocument) -> str:
    origin = definition.origin
    return f"{origin.path}:{origin.line}" if origin is not None else definition.name


def _make_finding(document: RawDocument, issue: Issue) -> Finding:
    origin = document.origin
    location, field = (locate_origin(origin), FieldOrigin(origin, issue.pointer)) if origin is not None else (None, None)
    resource = (document.kind, document.namespace, document.name)
    return Finding(issue.severity, issue.code, issue.message, location, resource, field)
