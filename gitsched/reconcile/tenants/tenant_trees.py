"""Read a source with tenants: each owner's files are read and built as if no other owner's files existed, but those it may read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from gitsched.apis.gitsched.config import FILE, Config, KindScope
from gitsched.apis.gitsched.tenancy import PLATFORM, Tenancy, TenantPaths
from gitsched.apis.gitsched.tenant import Tenant
from gitsched.apis.topology import list_cluster_kinds
from gitsched.build.commit_files import HIDDEN
from gitsched.decide.catalog import RawDocument, read_declared_scopes
from gitsched.decide.plan_input import SourceTree
from gitsched.decide.tenants.tenant_admission import OwnedDocument, admit, is_about_one_document
from gitsched.git import Repository, TreeEntry
from gitsched.manifests.sourceignore import IGNORE_FILE
from gitsched.model.document import Key
from gitsched.model.finding import Finding
from gitsched.model.tenants import TENANT_CHANGED
from gitsched.model.variants import WorkloadVariants
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.builds.build_context import BuildContext
from gitsched.reconcile.builds.kustomizations import KustomizedTree
from gitsched.reconcile.builds.kustomized_tree import read_kustomized_tree
from gitsched.reconcile.cache.caches import SourceFile
from gitsched.reconcile.source.source_reader import SourceReader, read_source_files
from gitsched.reconcile.tenants.source_tenants import read_tenants
from gitsched.reconcile.tenants.tenant_reads import ReadableEntries, find_unreadable, list_known
from gitsched.reconcile.tenants.tenant_rules import make_rule_locator
from gitsched.render.run_metadata import BuildRecord

if TYPE_CHECKING:
    from gitsched.reconcile.source.last_valid_documents import RestoredFile

T = TypeVar("T")
_REPEATED_CODES = frozenset(("kustomize-no-root", "variant-unused"))
"""Codes of findings about gitsched.yaml that say that something matches nothing: it may match something of another owner."""


class OwnedFiles(NamedTuple):
    """The files of a source as they are without tenants: its entries, those that can be documents, the files that are read and the last
    valid documents of broken ones, and the settings.

    `select` returns which files are read, given .sourceignore files and the files that can be documents; `restore` returns the last valid
    documents of broken files; `needs_builds` says of entries, files and documents whether there is something to build.
    """

    repository: Repository
    entries: list[TreeEntry]
    manifests: list[TreeEntry]
    files: Mapping[str, SourceFile]
    restored: Mapping[str, RestoredFile]
    config: Config
    select: Callable[[list[TreeEntry], list[TreeEntry]], list[TreeEntry]]
    restore: Callable[[Mapping[str, SourceFile]], Mapping[str, RestoredFile]]
    needs_builds: Callable[[list[TreeEntry], bool, Mapping[str, SourceFile], Sequence[RawDocument]], bool]


class TenantTree(NamedTuple):
    """The files of a source with tenants without parts of kustomizations, the restored ones, and the source tree of what counts. It
    `is_plain` if nothing is built, no tenant hides files, and nothing is found about Tenants but changes and single documents that they do
    not allow. `kustomized` are the trees of the owners that have kustomizations or files that are not read."""

    files: Mapping[str, SourceFile]
    restored: Mapping[str, RestoredFile]
    tree: SourceTree
    is_plain: bool = False
    kustomized: tuple[KustomizedTree, ...] = ()


def read_tenant_files(
    source: OwnedFiles,
    trusted: Sequence[Mapping[str, Any]],
    documents: Sequence[RawDocument],
    reader: SourceReader,
    builds: Callable[[], BuildContext] | None,
) -> TenantTree:
    """Return the source tree with what each owner's files build, and with the documents that the Tenants allow.

    `documents` are all documents of the source, `trusted` the Tenants of the trusted side as gitsched.json records them.
    """
    tenants = read_tenants(documents, trusted, make_rule_locator(source.repository))
    paths, config, given = tenants.paths, source.config, source
    source = _read_hidden_files(source, paths, reader)
    known = list_known(source.entries)
    made = _build_each_owner(source, paths, reader, builds, known)
    remaining = _merge_files(source.files, paths, made)
    admitted = _list_documents(source, remaining, paths, made)
    parts = [(part, _list_rules(paths, owner, part.document)) for owner, one in made.items() for part in one.documents]
    kinds = (*_list_kinds(made.get(PLATFORM)), *config.kinds)
    admission = admit(admitted, parts, kinds, paths)
    replaced = tuple(part for one in made.values() for part in one.replaced)
    unreadable = find_unreadable(source.entries, source.files, admitted, paths, reader, known)
    findings = (*_list_build_findings(made, unreadable), *tenants.findings, *admission.findings, *unreadable)
    tree = SourceTree(
        admission.documents,
        {path: file.findings for path, file in remaining.items() if file.findings},
        findings,
        config._replace(kinds=kinds),
        {},
        admission.parts,
        _merge_records(made),
        _merge_variants(made, admission.tenancy),
        replaced,
        tenancy=admission.tenancy,
        tenants=tenants.records,
    )
    refusals = frozenset(filter(is_about_one_document, admission.findings))
    is_allowed = all(finding.code == TENANT_CHANGED or finding in refusals for finding in findings)
    is_plain = source is given and is_allowed and all(one.is_unchanged for one in made.values())
    return TenantTree(remaining, _list_restored(source, remaining), tree, is_plain, tuple(made.values()))


def _build_each_owner(
    source: OwnedFiles,
    paths: TenantPaths,
    reader: SourceReader,
    builds: Callable[[], BuildContext] | None,
    known: Container[str],
) -> dict[str, KustomizedTree]:
    """Build the kustomizations of each owner from its own files, and from others that it may read. The platform is the first."""
    files_by_owner = {PLATFORM: dict[str, SourceFile](), **_group_by_owner(source.files, paths)}
    restored = _group_by_owner(source.restored, paths)
    readable = ReadableEntries(source.entries, paths)
    with_unread = {paths.find_owner(entry.path) for entry in source.manifests if entry.path not in source.files}
    clusters = _list_clusters(source, paths)
    made: dict[str, KustomizedTree] = {}
    for owner, files in sorted(files_by_owner.items()):
        own = [document for file in files.values() for document in file.documents]
        own += [document for path, found in restored.get(owner, {}).items() if path in files for document in found.documents]
        entries = readable.list_of(owner)
        if source.needs_builds(entries, owner in with_unread, files, own):
            if owner != PLATFORM:  # clusters of tenants have no labels or annotations that choose variants
                own = [*clusters, *(document for document in own if document[4:6] not in list_cluster_kinds())]
            restricted = None if builds is None else _restrict(builds, paths, owner, known)
            made[owner] = read_kustomized_tree(entries, files, reader, source.config, restricted, own)
    return made


def _group_by_owner(files: Mapping[str, T], paths: TenantPaths) -> dict[str, dict[str, T]]:
    found: dict[str, dict[str, T]] = {}
    for path, file in files.items():
        found.setdefault(paths.find_owner(path), {})[path] = file
    return found


def _list_restored(source: OwnedFiles, remaining: Mapping[str, SourceFile]) -> dict[str, RestoredFile]:
    """Return the restored files of which more than a part is broken."""
    files = ((path, file, remaining.get(path)) for path, file in source.restored.items())
    return {path: file for path, file, kept in files if kept is not None and (kept.broken or not source.files[path].broken)}


def _read_hidden_files(source: OwnedFiles, paths: TenantPaths, reader: SourceReader) -> OwnedFiles:
    """Return the files with those that the .sourceignore of another tenant hides: each owner's rules count for its own files."""
    rules = [entry for entry in source.entries if entry.path.rpartition("/")[2] == IGNORE_FILE]
    hiding = sorted({owner for entry in rules if (owner := paths.find_owner(entry.path)) != PLATFORM})
    if not hiding:
        return source
    wanted: list[TreeEntry] = []
    manifests: dict[str, list[TreeEntry]] = {}
    for entry in source.manifests:
        manifests.setdefault(paths.find_owner(entry.path), []).append(entry)
    for owner, found in manifests.items():
        own = [entry for entry in rules if paths.find_owner(entry.path) in (PLATFORM, owner)]
        wanted += source.select(own, found)
    order = {entry.path: index for index, entry in enumerate(source.manifests)}
    wanted.sort(key=lambda entry: order[entry.path])
    read = read_source_files([entry for entry in wanted if entry.path not in source.files], reader)
    files = {entry.path: source.files.get(entry.path) or read[entry.path] for entry in wanted}
    return source._replace(files=files, restored={**source.restore(files), **source.restored})


def _restrict(
    builds: Callable[[], BuildContext], paths: TenantPaths, owner: str, known: Container[str]
) -> Callable[[], BuildContext]:
    """Return the context of builds that read only what an owner may read, in earlier commits, too."""

    def may_read(path: str) -> bool:
        return paths.may_read(owner, path)

    return lambda: builds()._replace(may_read=may_read, is_hidden=lambda path: path in known and not may_read(path))


def _list_clusters(source: OwnedFiles, paths: TenantPaths) -> list[RawDocument]:
    """Return the clusters of the platform, which decide what variants the Bundles of tenants use."""
    kinds = list_cluster_kinds()
    return [
        document
        for path, file in source.files.items()
        if paths.find_owner(path) == PLATFORM
        for document in (*file.documents, *(source.restored[path].documents if path in source.restored else ()))
        if (document.group, document.kind) in kinds
    ]


def _merge_files(files: Mapping[str, SourceFile], paths: TenantPaths, made: Mapping[str, KustomizedTree]) -> dict[str, SourceFile]:
    """Return the files without what builds of their owners make of them."""
    merged: dict[str, SourceFile] = {}
    for path, file in files.items():
        built = made.get(paths.find_owner(path))
        if built is None:
            merged[path] = file
        elif path in built.files:
            merged[path] = built.files[path]
    return merged


def _list_documents(
    source: OwnedFiles, files: Mapping[str, SourceFile], paths: TenantPaths, made: Mapping[str, KustomizedTree]
) -> list[OwnedDocument]:
    """Return all documents with the Tenants whose rules count: those of files, last valid ones, and those that are built."""
    owned = [OwnedDocument(document, paths.find(path)) for path, file in files.items() for document in file.documents]
    for path, restored in source.restored.items():
        built = made.get(paths.find_owner(path))
        if built is None or path in built.files:
            owned += [
                OwnedDocument(document, paths.find(path))
                for document in restored.documents
                if built is None or not built.contains(document)
            ]
    for owner, one in made.items():
        owned += [OwnedDocument(document, _list_rules(paths, owner, document)) for document in one.built.documents]
    return owned


def _list_rules(paths: TenantPaths, owner: str, document: RawDocument) -> tuple[Tenant, ...]:
    """Return the Tenants whose rules count for what an owner builds."""
    if owner == PLATFORM:
        return ()
    origin = document.origin
    found = paths.find(origin.root or origin.path) if origin is not None else ()
    return found if found and found[0].name == owner else paths.list_rules(owner)


def _list_kinds(tree: KustomizedTree | None) -> tuple[KindScope, ...]:
    """Return the scopes that definitions declare which the platform's kustomizations and Bundles have."""
    if tree is None:
        return ()
    declared = (kind for part in tree.documents for kind in read_declared_scopes(part.document))
    return (*declared, *tree.bundles.kinds)


def _list_build_findings(made: Mapping[str, KustomizedTree], unreadable: Iterable[Finding]) -> list[Finding]:
    """Return the findings of the builds of all owners, without those about paths that are `unreadable` for the owner of the reference."""
    reported = {(finding.location, finding.field) for finding in unreadable}
    found: dict[Finding, None] = {}
    counts = Counter(finding for tree in made.values() for finding in dict.fromkeys(tree.findings))
    for tree in made.values():
        for finding in tree.findings:
            about_settings = finding.code in _REPEATED_CODES and finding.location is not None and finding.location.path == FILE
            is_reported = finding.code == HIDDEN and (finding.location, finding.field) in reported
            if not is_reported and (not about_settings or counts[finding] == len(made)):
                found[finding] = None
    return list(found)


def _merge_records(made: Mapping[str, KustomizedTree]) -> BuildRecord:
    records = [record for tree in made.values() for record in (tree.built.record, tree.bundles.record)]
    kept = {root: commit for record in records for root, commit in record.kept.items()}
    builder = next((record.builder for record in records if record.builder), "")
    return BuildRecord(builder, kept, next((record.helm for record in records if record.helm), ""))


def _merge_variants(made: Mapping[str, KustomizedTree], tenancy: Tenancy) -> dict[Key, WorkloadVariants]:
    """Return the variants of each object that its owner makes."""
    return {
        key: variants
        for owner, tree in made.items()
        for key, variants in {**tree.bundles.variants, **tree.variants}.items()
        if owner == tenancy.find_owner(key) or (owner != PLATFORM and _is_embedded(key, owner, tenancy))
    }


def _is_embedded(key: Key, owner: str, tenancy: Tenancy) -> bool:
    """Return whether nothing but a workload of a tenant has a Bundle: it is in a namespace of that tenant."""
    rules = tenancy.list_rules(owner)
    return key not in tenancy.owners and bool(rules) and all(tenant.allows_namespace(key.namespace) for tenant in rules)
