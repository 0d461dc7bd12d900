"""Read the facts branches again for an incremental plan: clusters whose documents get other facts, and scores that changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from gitsched.decide.catalog import resolve_key
from gitsched.decide.incremental.changed_documents import SourceDiff, pair_documents
from gitsched.decide.plan_input import SourceTree
from gitsched.decide.registry import load_cluster_formats
from gitsched.git import TreeEntry
from gitsched.model.cluster_facts import NO_FACTS, AppliedFacts
from gitsched.model.document import Document, Key
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.facts.cluster_facts import add_all_facts
from gitsched.reconcile.facts.facts_branches import CLUSTER_KINDS, list_score_kinds
from gitsched.reconcile.run import Facts
from gitsched.reconcile.source.source_reader import SourceReader, read_source_files
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES

if TYPE_CHECKING:
    from gitsched.apis.capabilities import DocumentPair
    from gitsched.apis.gitsched.config import Config
    from gitsched.decide.catalog import RawDocument
    from gitsched.decide.incremental.plan_state import Totals
    from gitsched.reconcile.cache.plan_cache import PlanCache
    from gitsched.reconcile.run import Fetched, RunContext


class ChangedFacts(NamedTuple):
    """The changes of a source with the facts of its clusters, the totals of the last plan with the findings about facts, and the facts."""

    diff: SourceDiff
    totals: Totals
    facts: AppliedFacts


class OtherSource(NamedTuple):
    """A version of the source with facts branches at a time. `changes` are its documents of policy APIs that differ from those of the last
    plan, as files have them, and `recorded` the commits of the branches whose facts count where a file is broken."""

    tree: str
    changes: Mapping[Key, DocumentPair]
    facts: Facts
    now: datetime
    recorded: Mapping[str, str] = {}


def list_completed_kinds() -> frozenset[tuple[str, str]]:
    """Return the kinds of the documents that facts branches have, or complete."""
    formats = frozenset((one.group, one.kind) for one in load_cluster_formats().values())
    return formats | list_score_kinds() | CLUSTER_KINDS


def read_changed_facts(
    context: RunContext, fetched: Fetched, cache: PlanCache, totals: Totals, diff: SourceDiff, now: datetime
) -> ChangedFacts | None:
    """Return the changes of a source with those of the facts branches; None if only a complete plan can tell."""
    facts, config = cache.header.facts, totals.config
    if fetched.facts == Facts() and facts == NO_FACTS:
        return ChangedFacts(diff, totals, facts)
    if config.source.facts != fetched.trusted.config.source.facts:
        return None
    kinds = list_completed_kinds()
    is_same = facts.digest == fetched.facts.digest and (facts.valid_until is None or now < facts.valid_until)
    if is_same and not any(key[:2] in kinds for key in diff.api_documents):
        return ChangedFacts(diff, totals, facts)
    if not cache.header.reading_rules:
        return None
    recorded = fetched.record.facts if fetched.record else {}
    found = _add_facts(context, cache, OtherSource(fetched.source.tree, diff.api_documents, fetched.facts, now, recorded))
    if found is None:
        return None
    pairs, new = found
    others = {key: pair for key, pair in diff.api_documents.items() if key[:2] not in kinds}
    findings = (*(finding for finding in totals.other_findings if finding not in facts.findings), *new.findings)
    return ChangedFacts(diff._replace(api_documents={**others, **pairs}), totals._replace(other_findings=findings), new)


def read_facts_changes(context: RunContext, cache: PlanCache, source: OtherSource) -> dict[Key, DocumentPair] | None:
    """Return the documents that differ between the last plan and another version of the source with its facts; None if only all documents
    can tell."""
    found = _add_facts(context, cache, source) if cache.header.reading_rules else None
    return found[0] if found is not None else None


def _add_facts(context: RunContext, cache: PlanCache, source: OtherSource) -> tuple[dict[Key, DocumentPair], AppliedFacts] | None:
    """Return the documents that differ, each in the last plan and in a version of the source with its facts, and the facts."""
    kinds, totals = list_completed_kinds(), cache.header.totals
    before = {document.key: document for kind in kinds for document in cache.api_documents.get(kind, ())}
    documents = _read_source(context, cache, source, before)
    if documents is None:
        return None
    tree, new = add_all_facts(
        context, source.facts, SourceTree(tuple(documents), {}, (), totals.config, {}), source.now, source.recorded
    )
    after = _identify(tree.documents, totals)
    return (pair_documents(before, after), new) if after is not None else None


def _read_files(context: RunContext, config: Config, tree: str, paths: Iterable[str]) -> list[RawDocument] | None:
    """Return the documents of some files of a tree; None if one of them is no file there."""
    repository = context.source.repository
    reader = SourceReader(repository, context.caches.files, config, strict=config.source.strict)
    entries = []
    for path in paths:
        entry = repository.find_entry(tree, path)
        if entry is None or entry[1] not in REGULAR_FILE_MODES:
            return None
        entries.append(TreeEntry(path, *entry))
    return [document for file in read_source_files(entries, reader).values() for document in file.documents]


def _read_source(
    context: RunContext, cache: PlanCache, source: OtherSource, before: Mapping[Key, Document]
) -> list[RawDocument] | None:
    """Return the documents of the kinds that facts complete as files have them, in the order of these; None if they are not those of the
    last plan and the changes. A document of a facts branch has the path BRANCH:FILE."""
    kinds, changes, totals = list_completed_kinds(), source.changes, cache.header.totals
    after = {key: document for key, (_, document) in changes.items() if document is not None}
    changed = {document.origin.path for document in after.values() if document.origin is not None}
    known = {key: document for key, document in before.items() if key not in changes}
    known |= {key: document for key, document in after.items() if key[:2] in kinds}
    paths = {key: document.origin.path for key, document in known.items() if document.origin is not None}
    own = {key: path for key, path in paths.items() if ":" not in path or path in changed or cache.has_source_file(path)}
    documents = _read_files(context, totals.config, source.tree, sorted(set(own.values())))
    if documents is None:
        return None
    documents = [one for one in documents if (one.group, one.kind) in kinds]
    found = _identify(documents, totals)
    return documents if found is not None and found.keys() == own.keys() else None


def _identify(documents: Iterable[RawDocument], totals: Totals) -> dict[Key, Document] | None:
    """Return documents by identity; None if an identity is unknown or used twice."""
    found: dict[Key, Document] = {}
    for one in documents:
        key = resolve_key(one, totals.source.kind_scopes)
        if key is None or key in found:
            return None
        found[key] = Document(key, one.api_version, one.body, one.origin)
    return found
