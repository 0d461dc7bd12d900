"""Read a source with tenants: what each owner's files build, with the last valid documents of broken files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gitsched.decide.catalog import RawDocument
from gitsched.model.finding import Finding
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.builds.build_context import BuildContext
from gitsched.reconcile.source.config_file import OpenHistory
from gitsched.reconcile.source.lost_documents import list_restored_findings, make_unverified_finding
from gitsched.reconcile.source.source_reader import SourceReader
from gitsched.reconcile.tenants.tenant_trees import OwnedFiles, TenantTree, read_tenant_files


class TenantSource(NamedTuple):
    """The files of a source without tenants, the Tenants of the trusted side, all documents, the findings about the files, and the files
    of which nobody knows whether they lost documents."""

    owned: OwnedFiles
    trusted: Sequence[Mapping[str, Any]]
    documents: list[RawDocument]
    findings: tuple[Finding, ...]
    unverified: tuple[str, ...]


def read_tenant_source(
    source: TenantSource, reader: SourceReader, builds: Callable[[], BuildContext] | None, open_history: OpenHistory | None
) -> TenantTree:
    """Return the tree of a source with tenants, with all findings about its files."""
    found = read_tenant_files(source.owned, source.trusted, source.documents, reader, builds)
    kept = {path: file.last_valid for path, file in found.restored.items() if file.last_valid is not None}
    findings = list(source.findings)
    if found.restored:
        findings += list_restored_findings(found.restored, kept, found.files)
    if found.restored and open_history is not None:
        findings += open_history().list_findings()
    if source.unverified:
        findings.append(make_unverified_finding(source.unverified))
    other_findings = (*findings, *found.tree.other_findings)
    return found._replace(tree=found.tree._replace(last_valid=kept, other_findings=other_findings, unverified=source.unverified))
