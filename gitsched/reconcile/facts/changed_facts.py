"""Read the facts branches again for an incremental plan: clusters whose documents get other facts, and scores that changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from gitsched.decide.catalog import resolve_key
from gitsched.decide.incremental.changed_documents import SourceDiff, pair_documents
from gitsched.decide.plan_input import SourceTree
from gitsched.decide.registry import load_cluster_formats
from gitsched.git import TreeEntry
from gitsched.model.cluster_facts import NO_FACTS, AppliedFacts
from gitsched.model.document import Document, Key
from gitsched.reconcile.facts.facts_branches import CLUSTER_KINDS, list_score_kinds
from gitsched.reconcile.run import Facts
from gitsched.reconcile.source.source_reader import SourceReader, read_source_file
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES

if TYPE_CHECKING:
    from gitsched.decide.catalog import RawDocument
    from gitsched.decide.incremental.plan_state import Totals
    from gitsched.reconcile.cache.plan_cache import PlanCache
    from gitsched.reconcile.run import Fetched, RunContext

_Kinds = Collection[tuple[str, str]]


class ChangedFacts(NamedTuple):
    """The changes of a source with the facts of its clusters, the totals of the last plan with the findings about facts, and the facts."""

    diff: SourceDiff
    totals: Totals
    facts: AppliedFacts


def read_changed_facts(
    context: RunContext, fetched: Fetched, cache: PlanCache, totals: Totals, diff: SourceDiff, now: datetime
) -> ChangedFacts | None:
    """Return the changes of a source with those of the facts branches; None if only a complete plan can tell."""
    facts, config = cache.header.facts, totals.config
    if fetched.facts == Facts() and facts == NO_FACTS:
        return ChangedFacts(diff, totals, facts)
    if config.source.facts != fetched.trusted.config.source.facts:
        return None
    formats = {(one.group, one.kind) for one in load_cluster_formats().values()}
    kinds = formats | list_score_kinds() | CLUSTER_KINDS
    is_same = facts.digest == fetched.facts.digest and (facts.valid_until is None or now < facts.valid_until)
    if is_same and not any(key[:2] in kinds for key in diff.api_documents):
        return ChangedFacts(diff, totals, facts)
    if not cache.header.reading_rules:
        return None
    before = {document.key: document for kind in kinds for document in cache.api_documents.get(kind, ())}
    source = _read_source(context, fetched, cache, diff, before, kinds, totals)
    if source is None:
        return None
    from gitsched.reconcile.facts.cluster_facts import add_all_facts  # only where branches or clusters changed

    tree = SourceTree(tuple(source), {}, (), config, {})
    tree, new = add_all_facts(context, fetched.facts, tree, now, fetched.record.facts if fetched.record else {})
    after = _identify(tree.documents, totals)
    if after is None:
        return None
    pairs = pair_documents(before, after)
    others = {key: pair for key, pair in diff.api_documents.items() if key[:2] not in kinds}
    findings = (*(finding for finding in totals.other_findings if finding not in facts.findings), *new.findings)
    return ChangedFacts(diff._replace(api_documents={**others, **pairs}), totals._replace(other_findings=findings), new)


def _read_source(
    context: RunContext,
    fetched: Fetched,
    cache: PlanCache,
    diff: SourceDiff,
    before: Mapping[Key, Document],
    kinds: _Kinds,
    totals: Totals,
) -> list[RawDocument] | None:
    """Return the documents of some kinds as the source has them, in its order; None if they are not those of the last plan and the
    changes."""
    known = {key: document.origin for key, document in before.items() if key not in diff.api_documents}
    known |= {key: after.origin for key, (_, after) in diff.api_documents.items() if after is not None and key[:2] in kinds}
    own = {key: origin.path for key, origin in known.items() if origin is not None and not _is_of_branch(origin.path, cache, diff)}
    repository, config = context.source.repository, totals.config
    reader = SourceReader(repository, context.caches.files, config, strict=config.source.strict)
    entries = []
    for path in sorted(set(own.values())):
        entry = repository.find_entry(fetched.source.tree, path)
        if entry is None or entry[1] not in REGULAR_FILE_MODES:
            return None
        entries.append(TreeEntry(path, *entry))
    reader.prefetch(entries)
    files = (read_source_file(entry.path, entry.blob, reader) for entry in entries)
    documents = [one for file in files for one in file.documents if (one.group, one.kind) in kinds]
    found = _identify(documents, totals)
    return documents if found is not None and found.keys() == own.keys() else None


def _is_of_branch(path: str, cache: PlanCache, diff: SourceDiff) -> bool:
    """Return whether a document is from a facts branch: the path is then BRANCH:FILE."""
    return ":" in path and path not in diff.findings and not cache.has_source_file(path)


def _identify(documents: Iterable[RawDocument], totals: Totals) -> dict[Key, Document] | None:
    """Return documents by identity; None if an identity is unknown or used twice."""
    found: dict[Key, Document] = {}
    for one in documents:
        key = resolve_key(one, totals.kind_scopes)
        if key is None or key in found:
            return None
        found[key] = Document(key, one.api_version, one.body, one.origin)
    return found
