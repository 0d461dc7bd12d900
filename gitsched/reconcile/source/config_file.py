"""Read gitsched.yaml of a source tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.config import FILE, GROUP, KIND, Config, parse_config
from gitsched.git import Repository, TreeEntry
from gitsched.manifests.parsed_file import ParsedDocument, ParsedFile
from gitsched.model.document import parse_api_group
from gitsched.model.errors import Permanent
from gitsched.model.finding import Finding, Location
from gitsched.reconcile.cache.caches import ParseCache
from gitsched.reconcile.source.last_valid_documents import RestoredFile, keep_version
from gitsched.reconcile.source.source_reader import SourceReader
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES

if TYPE_CHECKING:
    from gitsched.reconcile.cache.caches import TreeCache
    from gitsched.reconcile.run import Fetched
    from gitsched.reconcile.run_settings import RunSettings
    from gitsched.reconcile.source.source_history import SourceHistory

OpenHistory = Callable[[], "SourceHistory"]


def read_config(repository: Repository, tree: str, cache: ParseCache) -> Config | None:
    """Return the settings of a tree, the defaults where it has no gitsched.yaml; None if that is broken."""
    config, _, valid, _ = read_valid_config(repository, tree, cache, None)
    return config if valid else None


def read_config_document(repository: Repository, tree: str, cache: ParseCache) -> ParsedDocument | None:
    """Return the valid document in gitsched.yaml of a tree; None if there is none."""
    entry = repository.find_entry(tree, FILE)
    if entry is None or entry[1] not in REGULAR_FILE_MODES:
        return None
    return _find_config_document(SourceReader(repository, cache).read(entry[0], FILE))


def read_valid_config(
    repository: Repository, tree: str, cache: ParseCache, open_history: OpenHistory | None
) -> tuple[Config, list[Finding], bool, RestoredFile | None]:
    """Return the settings of a tree, findings about them, whether its own gitsched.yaml is valid or missing, and the version of the file
    that is used in its place, if there is one."""
    known = cache.config
    if known is not None and known[0] == tree:
        return known[1], [], True, None
    entry = repository.find_entry(tree, FILE)
    if entry is None or entry[1] not in REGULAR_FILE_MODES:
        cache.config = tree, Config()
        return Config(), [], True, None
    reader = SourceReader(repository, cache)
    reader.prefetch([TreeEntry(FILE, *entry)])
    file = reader.read(entry[0], FILE)
    parsed = _find_config_document(file)
    if parsed is not None:
        config = parse_config(parsed.body.get("spec") or {})
        cache.config = tree, config
        return config, [], True, None
    for version in open_history().list_versions(FILE) if open_history is not None else ():
        before = reader.read(version.blob, FILE, version.repository)
        parsed = _find_config_document(before)
        if parsed is not None:
            return parse_config(parsed.body.get("spec") or {}), [], False, keep_version(version, before)
    return Config(), [make_no_config_finding()], False, None


def check_output_config(settings: RunSettings, fetched: Fetched, tree: TreeCache) -> None:
    """Raise Permanent because gitsched.yaml is broken, unless the last valid one names the same output."""
    record, source = fetched.record, tree.source_tree
    branch = settings.output_branch or source.config.output.branch
    if not settings.findings_only and settings.output_branch is None and (record is None or branch != fetched.output.branch):
        findings = (*source.other_findings, *source.file_findings.get(FILE, ()))
        errors = [f for f in findings if f.severity == "error" and f.location is not None and f.location.path == FILE]
        # The error at the top of the file only says that it has no valid settings; any other one says why.
        first = min(errors, key=lambda f: (f.location == Location(FILE, 1, 1), f.location), default=None)
        reason = f" ({first})" if first else ""
        raise Permanent(f"{FILE} is broken{reason}, so the location of the output is unknown; fix it, or pass --output-branch")


def make_no_config_finding() -> Finding:
    message = (
        f"{FILE} has no valid document with apiVersion: {GROUP}/v1alpha1, kind: {KIND}, metadata: {{name: gitsched}} and settings under "
        "spec; to use the defaults, remove the file"
    )
    return Finding("error", "invalid-config", message, Location(FILE, 1, 1))


def _find_config_document(file: ParsedFile) -> ParsedDocument | None:
    valid = (parsed for parsed in file.documents if not parsed.broken)
    return next((p for p in valid if (parse_api_group(str(p.body.get("apiVersion"))), p.body.get("kind")) == (GROUP, KIND)), None)
