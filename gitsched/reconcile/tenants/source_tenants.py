"""Read the Tenants of a source, and those of the trusted side that the output branch records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gitsched.apis.capabilities import DocumentPair
from gitsched.apis.gitsched.tenancy import Tenancy, TenantPaths, fold_path
from gitsched.apis.gitsched.tenant import Tenant, parse_tenant, read_closed_tenant
from gitsched.decide.catalog import RawDocument
from gitsched.decide.incremental.continued_views import SourceOwners
from gitsched.model.document import Body, Document, Key, Origin, as_object
from gitsched.model.finding import Finding, Location, locate_origin, sort_findings
from gitsched.model.template_index import TemplateIndex
from gitsched.model.tenants import TENANT, TENANT_CHANGED, TENANT_KIND
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.tenants.tenant_rules import LocateRules, read_positions

MAX_TENANTS = 2_000
"""Tenants of one source."""


class FoundTenants(NamedTuple):
    """The Tenants of a commit, those that the next run trusts as they are written in gitsched.json, and findings."""

    paths: TenantPaths
    records: tuple[Mapping[str, Any], ...]
    findings: tuple[Finding, ...]


def read_trusted_tenants(records: Sequence[Mapping[str, Any]]) -> tuple[Tenant, ...]:
    """Return the Tenants that gitsched.json records."""
    found = []
    for record in records:
        path, line = record.get("path"), record.get("line")
        location = Location(path, line, 1) if isinstance(path, str) and isinstance(line, int) else None
        fields = read_positions(record)
        body = {"metadata": {"name": record.get("name")}, "spec": as_object(record.get("spec"))}
        closed = str(record.get("closed") or "")
        tenant = read_closed_tenant(body, location, closed) if closed else parse_tenant(body, location)
        found.append(tenant._replace(fields=fields))
    return tuple(found)


def make_trusted_paths(records: Sequence[Mapping[str, Any]]) -> TenantPaths:
    """Return the paths of the Tenants that gitsched.json records."""
    return TenantPaths(read_trusted_tenants(records), ())


def make_tenancy(
    paths: TenantPaths,
    index: TemplateIndex,
    documents: Mapping[tuple[str, str], tuple[Document, ...]],
    changes: Mapping[Key, DocumentPair],
) -> Tenancy:
    """Return the owners of a source in which nothing but its path decides whose a document is. `index` has the templates of the last plan,
    `documents` those of policy APIs, and `changes` what changed in both."""
    return Tenancy(paths, SourceOwners(paths, index, documents, changes))


def read_tenants(
    documents: Iterable[RawDocument], trusted: Sequence[Mapping[str, Any]], locate: LocateRules = lambda *_: {}
) -> FoundTenants:
    """Return the Tenants that count for a commit. `trusted` are those of the trusted side, as gitsched.json records them. `locate` returns
    the positions of the rules of a document.

    A Tenant inside of the path of another one is ignored. One inside of its own path allows nothing, because its tenant could change it,
    and neither does one that cannot be used.
    """
    candidates = [document for document in documents if document.kind == TENANT and document[4:6] == TENANT_KIND]
    parsed = [
        (document, _parse(document)._replace(fields=locate(document.body, document.origin)))
        for document in candidates[:MAX_TENANTS]
    ]
    known = _locate_unchanged(read_trusted_tenants(trusted), parsed)
    reading = _TenantReading(known)
    if len(candidates) > MAX_TENANTS:
        text = f"the source has {len(candidates)} Tenants: only the first {MAX_TENANTS} count; remove the others"
        reading.findings.append(Finding("error", "tenant-invalid", text))
    for document, tenant in _order(parsed, known):
        reading.add(document, tenant)
    own, records, findings = reading.own, reading.records, reading.findings
    kept = {str(record.get("name")): record for record in trusted}
    for tenant in own:
        if not tenant.closed:
            continue
        records.append(kept[tenant.name] if tenant.name in kept else _write_closed_record(tenant))
        if not tenant.paths and tenant.name not in kept:
            findings.append(_report_unreadable(tenant))
    names = {tenant.name for tenant in own}
    for tenant in known:
        if tenant.name not in names:
            text = f"{tenant.title} is removed: its rules still count in this run, because the trusted side has it"
            findings.append(Finding("warning", TENANT_CHANGED, text, tenant.location, (TENANT, "", tenant.name), is_change=True))
    ordered = sorted(records, key=lambda record: str(record.get("name")))
    return FoundTenants(TenantPaths(known, own), tuple(ordered), tuple(findings))


def _report_unreadable(tenant: Tenant) -> Finding:
    text = (
        f"{tenant.title} cannot be read: {tenant.closed}, and neither says which directories it is for; a run writes nothing, because they "
        "would belong to the platform; correct the Tenant"
    )
    return Finding("error", "tenant-unreadable", text, tenant.location, (TENANT, "", tenant.name))


def _locate_unchanged(known: Sequence[Tenant], parsed: Iterable[tuple[RawDocument, Tenant]]) -> tuple[Tenant, ...]:
    """Return the Tenants of the trusted side, those that the commit does not change where it has them."""
    own = {tenant.name: tenant for _, tenant in parsed}
    return tuple(
        found if (found := own.get(tenant.name)) is not None and tenant.has_rules_of(found) else tenant for tenant in known
    )


def _parse(document: RawDocument) -> Tenant:
    location = locate_origin(document.origin) if document.origin is not None else None
    if document.broken:
        return read_closed_tenant(document.body, location, "its document has errors, and no earlier version of it can be used")
    return parse_tenant(document.body, location)


def _order(parsed: list[tuple[RawDocument, Tenant]], known: Sequence[Tenant]) -> list[tuple[RawDocument, Tenant]]:
    """Return Tenants whose file is in no path of a Tenant first: only these decide whether others count."""
    paths = _PathIndex([*known, *(tenant for _, tenant in parsed)])

    def is_inside(document: RawDocument) -> bool:
        return document.origin is not None and paths.find(document.origin.path) is not None

    return sorted(parsed, key=lambda entry: (is_inside(entry[0]), entry[1].name))


class _TenantReading:
    """Reads the Tenants of a source one after the other: those that count are `own`, with their `records` unless they allow nothing."""

    def __init__(self, known: Sequence[Tenant]) -> None:
        self._known, self._known_paths, self._paths = known, _PathIndex(known), _PathIndex(known)
        self._known_names = {tenant.name: tenant for tenant in reversed(known)}
        self._names: set[str] = set()
        self._taken: dict[str, Tenant] = {}
        self.own: list[Tenant] = []
        self.records: list[Mapping[str, Any]] = []
        self.findings: list[Finding] = []

    def add(self, document: RawDocument, tenant: Tenant) -> None:
        path = document.path
        outer = self._paths.find(path, other_than=tenant.name)
        if outer is not None or self._known_paths.find(path) is not None:
            if outer is not None or tenant not in self._known:
                whose = outer.title if outer is not None else f"Tenant {tenant.name}"
                text = f"this Tenant has no effect: it is in a path of {whose}; define Tenants outside of the paths of all tenants"
                self._report(document, text, "tenant-kind")
            return
        if tenant.name in self._names:
            text = f"Tenant {tenant.name} is defined more than once: only the first one counts; remove the others"
            self._report(document, text)
            return
        self._names.add(tenant.name)
        if not tenant.closed and _PathIndex([tenant]).find(path) is not None:
            reason = "it is in one of its own paths, where its tenant could change it"
            tenant = read_closed_tenant(document.body, tenant.location, reason)._replace(fields=tenant.fields)
            self._report(document, f"{tenant.title} allows nothing: {reason}; move it to another directory")
        for directory in tenant.paths:
            folded = fold_path(directory)
            if folded in self._taken:
                self._report(document, f"{directory} belongs to {self._taken[folded].title}: remove it from this Tenant")
            self._taken.setdefault(folded, tenant)
        self.own.append(tenant)
        self._paths.add(tenant)
        self.findings += _describe_change(document, tenant, self._known_names.get(tenant.name))
        if not tenant.closed:
            self.records.append(_write_record(document, tenant))

    def _report(self, document: RawDocument, text: str, code: str = "tenant-invalid") -> None:
        self.findings.append(_make_finding(document, code, text))


class _PathIndex:
    """Tenants by their paths."""

    def __init__(self, tenants: Iterable[Tenant] = ()) -> None:
        self._by_path: dict[str, list[tuple[int, Tenant]]] = {}
        self._count = 0
        for tenant in tenants:
            self.add(tenant)

    def add(self, tenant: Tenant) -> None:
        self._count += 1
        for directory in tenant.paths:
            self._by_path.setdefault(fold_path(directory), []).append((self._count, tenant))

    def find(self, path: str, other_than: str | None = None) -> Tenant | None:
        """Return the first Tenant, but the one of a name, in one of whose paths a file is."""
        parts = fold_path(path).split("/")
        found = [
            next(((number, tenant) for number, tenant in self._by_path.get(directory, ()) if tenant.name != other_than), None)
            for directory in (".", *("/".join(parts[:count]) for count in range(1, len(parts) + 1)))
        ]
        return min(filter(None, found), key=lambda entry: entry[0], default=(0, None))[1]


def _describe_change(document: RawDocument, tenant: Tenant, before: Tenant | None) -> list[Finding]:
    if before is not None and before.has_rules_of(tenant):
        return []
    if before is None:
        return [_report_new(document.name, document.origin)]
    text = f"Tenant {tenant.name} differs from that of the trusted side: what it allows in addition counts from the next run"
    return [_make_finding(document, TENANT_CHANGED, text, "info")]


def _report_new(name: str, origin: Origin | None) -> Finding:
    location = locate_origin(origin) if origin is not None else None
    return Finding("info", TENANT_CHANGED, f"Tenant {name} is new: it counts at once", location, (TENANT, "", name), is_change=True)


def report_first_tenants(
    findings: Iterable[Finding], documents: Mapping[tuple[str, str], tuple[Document, ...]]
) -> tuple[Finding, ...]:
    """Return the findings of a plan, with those about its Tenants where no trusted side has any. `documents` are those of policy APIs."""
    new = (_report_new(document.key.name, document.origin) for document in documents.get(TENANT_KIND, ()))
    return sort_findings((*findings, *new))


def _make_finding(document: RawDocument, code: str, text: str, severity: Any = "error") -> Finding:
    location = locate_origin(document.origin) if document.origin is not None else None
    return Finding(severity, code, text, location, (TENANT, "", document.name), is_change=code == TENANT_CHANGED)


def _write_record(document: RawDocument, tenant: Tenant) -> dict[str, Any]:
    """Return a Tenant as gitsched.json has it."""
    spec: Body = as_object(document.body.get("spec"))
    record: dict[str, Any] = {"name": document.name, "spec": spec}
    if document.origin is not None:
        record |= {"path": document.origin.path, "line": document.origin.line}
    if tenant.fields:
        record["fields"] = {name: list(position) for name, position in sorted(tenant.fields.items())}
    return record


def _write_closed_record(tenant: Tenant) -> dict[str, Any]:
    """Return a Tenant that allows nothing as gitsched.json has it, so that nothing below its paths counts when it is removed."""
    record: dict[str, Any] = {"name": tenant.name, "spec": {"paths": list(tenant.paths)}, "closed": tenant.closed}
    if tenant.location is not None:
        record |= {"path": tenant.location.path, "line": tenant.location.line}
    return record
