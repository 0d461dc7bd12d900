"""Find what kustomizations and Bundles name that belongs to others."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from gitsched.apis.gitsched.bundle import parse_bundle
from gitsched.apis.gitsched.tenancy import PLATFORM, TenantPaths, is_below
from gitsched.apis.gitsched.tenant import Tenant
from gitsched.build.commit_files import HIDDEN, list_parents
from gitsched.decide.tenants.tenant_admission import OwnedDocument, Violation
from gitsched.git import TreeEntry
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES
from gitsched.manifests.kustomize_graph import resolve_path
from gitsched.model.finding import FieldOrigin, Finding, Location, locate_origin
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.bundles.bundle_findings import point_to_path
from gitsched.reconcile.bundles.bundle_parts import list_bundles
from gitsched.reconcile.cache.caches import SourceFile
from gitsched.reconcile.source.source_reader import SourceReader

MAX_FINDINGS = 1_000
"""Findings about references to files of others."""


class _Reference(NamedTuple):
    """A path that a build of something reads, and where that is written."""

    path: str
    location: Location
    built: str
    field: FieldOrigin | None = None


class ReadableEntries:
    """The entries of a source by what owners may read: their own, and those in directories that their Tenants name."""

    def __init__(self, entries: Sequence[TreeEntry], paths: TenantPaths) -> None:
        self._entries, self._paths = entries, paths
        self._own: dict[str, list[int]] = {}
        self._below: dict[str, list[int]] = {directory: [] for tenant in (*paths.trusted, *paths.own) for directory in tenant.reads}
        for number, entry in enumerate(entries):
            self._own.setdefault(paths.find_owner(entry.path), []).append(number)
            for directory in (entry.path, *list_parents(entry.path)) if self._below else ():
                if directory in self._below:
                    self._below[directory].append(number)

    def list_of(self, owner: str) -> list[TreeEntry]:
        """Return the entries that builds of an owner may read, in the order of the source (`TenantPaths.may_read`)."""
        readable = [
            {number for directory in tenant.reads for number in self._below[directory]} for tenant in self._paths.list_rules(owner)
        ]
        numbers = {*self._own.get(owner, ()), *(readable[0].intersection(*readable[1:]) if readable else ())}
        return [self._entries[number] for number in sorted(numbers)]


def find_unreadable(
    entries: Sequence[TreeEntry],
    files: Mapping[str, SourceFile],
    documents: Iterable[OwnedDocument],
    paths: TenantPaths,
    reader: SourceReader,
    known: Container[str],
) -> list[Finding]:
    """Return an error for each path that a kustomization or Bundle names and that its owner may not read. `known` are the paths of the
    commit."""
    findings: dict[Finding, None] = {}
    for owner, reference in (*_list_kustomizations(entries, files, paths, reader), *_list_bundles(documents)):
        if len(findings) >= MAX_FINDINGS:
            break
        if owner == PLATFORM:
            found = paths.find(reference.path)
            if found and reference.path in known:
                message = (
                    f"builds of the platform do not read {reference.path}, which belongs to {found[0].title}, so that {reference.built} is "
                    "not built: have the tenant build it, or move what both use to a directory of the platform"
                )
                findings[Finding("error", HIDDEN, message, reference.location, field=reference.field)] = None
            continue
        tenant = _find_forbidding(owner, reference.path, paths)
        if tenant is not None and reference.path in known:
            message = f"builds to read {reference.path}, so that {reference.built} is not built"
            violation = Violation(HIDDEN, tenant, message, "name the directory in spec.reads, or copy what is needed", "spec.reads")
            findings[Finding("error", HIDDEN, violation.text, reference.location, field=reference.field)] = None
    return list(findings)


def _find_forbidding(owner: str, path: str, paths: TenantPaths) -> Tenant | None:
    """Return the Tenant that keeps an owner from reading a path, or a directory that also has files of others."""
    if paths.may_read(owner, path):
        return None
    return next(
        (tenant for tenant in paths.list_rules(owner) if not any(is_below(path, directory) for directory in tenant.reads)), None
    )


def _list_kustomizations(
    entries: Sequence[TreeEntry], files: Mapping[str, SourceFile], paths: TenantPaths, reader: SourceReader
) -> Iterator[tuple[str, _Reference]]:
    for entry in entries:
        directory, _, name = entry.path.rpartition("/")
        if name not in KUSTOMIZATION_NAMES or entry.unsafe:
            continue
        owner = paths.find_owner(entry.path)
        file = files[entry.path].file if entry.path in files else reader.read(entry.blob, entry.path)
        for reference in file.kustomization.references if file.kustomization is not None else ():
            path = resolve_path(directory or ".", reference.path)
            if path:
                yield owner, _Reference(path, Location(entry.path, reference.line, reference.column), directory or ".")


def _list_bundles(documents: Iterable[OwnedDocument]) -> Iterator[tuple[str, _Reference]]:
    for owner, raw in ((owned.owner, raw) for owned in documents for raw in list_bundles([owned.document])):
        if raw.origin is None:
            continue
        location, name = locate_origin(raw.origin), f"Bundle {raw.namespace or 'default'}/{raw.name}"
        for variant in parse_bundle(raw.body).variants:
            yield owner, _Reference(variant.path, location, name, FieldOrigin(raw.origin, point_to_path(raw, variant)))
            for path in variant.helm.values_files if variant.helm is not None else ():
                yield owner, _Reference(path, location, name)


def list_known(entries: Iterable[TreeEntry]) -> frozenset[str]:
    """Return the paths of all files and directories of a commit."""
    return frozenset(parent for entry in entries for parent in (entry.path, *list_parents(entry.path)))
