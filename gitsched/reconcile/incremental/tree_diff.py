"""Compare two source trees that are read completely, where documents depend on other files: where kustomizations change objects, roots are
built, or delivery tools reconcile directories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.config import FILE
from gitsched.decide.catalog import DEFINITION_KINDS, RawDocument, read_declared_scopes, resolve_key
from gitsched.decide.cluster_metadata import read_cluster_metadata
from gitsched.decide.incremental.changed_documents import (
    ChangedParts,
    FileDocuments,
    SourceDiff,
    concern_everything,
    identify_documents,
    may_contain_bundle,
    pair_documents,
)
from gitsched.decide.incremental.plan_contents import may_select
from gitsched.decide.last_valid_files import render_last_valid
from gitsched.decide.registry import list_absence_codes
from gitsched.decide.variants.kustomized_parts import PART_CODES, describe_part
from gitsched.kinds.table import is_namespaced
from gitsched.model.cluster_facts import NO_FACTS
from gitsched.model.document import Document, Key, is_known_group, parse_api_group
from gitsched.model.errors import NeedsCompletePlan
from gitsched.model.planned_files import ExistingBlob
from gitsched.model.variants import ARGOCD_DESTINATION
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.incremental.changed_files import (
    CONCERNS_ALL,
    MANY_CHANGES,
    MISSING_TREE,
    SELECTS_BROKEN,
    SEVERAL_DOCUMENTS,
    require_document,
)
from gitsched.reconcile.run import Facts
from gitsched.reconcile.source.settled_files import list_commits
from gitsched.reconcile.source.source_history import INCOMPLETE_HISTORY
from gitsched.reconcile.source.source_tree import read_tree
from gitsched.render.output_files import kept_path
from gitsched.render.run_metadata import VERSION_CODES

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import KindScope
    from gitsched.decide.catalog import KustomizedDocument
    from gitsched.decide.incremental.plan_state import Totals
    from gitsched.decide.plan_input import SourceTree
    from gitsched.model.variants import WorkloadVariants
    from gitsched.reconcile.cache.caches import TreeCache
    from gitsched.reconcile.cache.plan_cache import PlanCache, PlanCacheHeader
    from gitsched.reconcile.cache.reading_rules import ReadingRules
    from gitsched.reconcile.run import Fetched, RunContext
    from gitsched.render.run_metadata import BuildRecord

FindTemplate = Callable[[Key], "Document | None"]
_Identity = tuple[str, str, str]


class TreeDiff(NamedTuple):
    """The changes between two source `trees`. `find` returns a template of the second one. `reading_rules` say how its files were chosen,
    `builds` how its roots were built, and `part_kinds` are the kinds of objects that kustomizations change and that are not placed.
    `kept_files` are the last valid bytes of files that broke or were corrected, by the path under which the output branch has them."""

    trees: tuple[TreeCache, TreeCache]
    changes: SourceDiff
    find: FindTemplate
    reading_rules: ReadingRules | None
    builds: BuildRecord
    part_kinds: frozenset[tuple[str, str]]
    kept_files: Mapping[str, ExistingBlob | None]

    @property
    def settled(self) -> Mapping[str, str | None]:
        """The broken files of the second tree, with the source commits of the versions that are used."""
        return list_commits(self.trees[1].used_versions or {})

    @property
    def hidden_codes(self) -> frozenset[str]:
        """The codes of findings that are left out because objects of failed builds are missing."""
        return list_absence_codes() if self.trees[1].source_tree.incomplete else frozenset()


def read_tree_diff(context: RunContext, fetched: Fetched, cache: PlanCache, due: Iterable[Key], limit: int) -> TreeDiff:
    """Return the documents that changed since the last plan, and those of `due` workloads. Raise NeedsCompletePlan if only a complete plan
    can tell what a change means, or if there are more than `limit`."""
    header, repository, tree = cache.header, context.source.repository, fetched.source.tree
    totals, record = header.totals, fetched.record
    if record is None or header.facts != NO_FACTS or fetched.facts != Facts():
        raise NeedsCompletePlan("facts branches complete documents, and files depend on each other")
    if not repository.has(header.source_tree):
        raise NeedsCompletePlan(MISSING_TREE)
    changed = repository.changed_paths(header.source_tree, tree)
    if len(changed) > limit:
        raise NeedsCompletePlan(MANY_CHANGES)
    if FILE in changed:
        raise NeedsCompletePlan("settings change, and files depend on each other")
    caches = context.caches
    # The last tree comes first, because caches keep what was read last.
    before = caches.tree = read_tree(context, fetched, header.source_tree, caches.tree, is_planned=True)
    if not (_is_plain(before) and _is_planned(before, header)):
        raise NeedsCompletePlan("the last plan used other versions of broken files or failed builds")
    after = caches.tree = read_tree(context, fetched, tree, before)
    if not (_is_plain(after) and _are_alike(before, after, totals)):
        raise NeedsCompletePlan("variants for clusters change, or what is used in place of broken files and failed builds")
    return _compare(before, after, changed, cache, due, limit)


def _is_plain(tree: TreeCache) -> bool:
    """Return whether all documents of a tree are those of one owner, and it is known what is used of broken files and failed builds."""
    source = tree.source_tree
    is_known = tree.used_versions is not None and tree.failed_builds is not None
    return (tree.valid or is_known) and not (source.tenancy or source.tenants or source.unverified)


def _is_planned(tree: TreeCache, header: PlanCacheHeader) -> bool:
    """Return whether the last plan had the same in place of broken files and failed builds, and the same findings."""
    source = tree.source_tree
    return (
        list_commits(tree.used_versions or {}) == header.settled
        and (tree.failed_builds, source.builds) == (header.failed_builds, header.builds)
        and frozenset(source.other_findings) <= frozenset(header.totals.other_findings)
    )


def _are_alike(before: TreeCache, after: TreeCache, totals: Totals) -> bool:
    """Return whether trees have the same settings and variants for clusters, and no findings about versions of programs or commits that are
    missing."""
    old, new = before.source_tree, after.source_tree
    findings = (*new.other_findings, *totals.other_findings)
    return (
        old.config == new.config == totals.config
        and _list_variants(old) == _list_variants(new)
        and not any(finding.code in (*VERSION_CODES, INCOMPLETE_HISTORY) for finding in findings)
    )


def _list_variants(source: SourceTree) -> dict[Key, WorkloadVariants]:
    """Return the variants of templates without the commits that they come from: those of a Bundle are in its record."""
    return {
        key: entry._replace(variants=tuple(variant._replace(commit="") for variant in entry.variants))
        for key, entry in source.variants.items()
    }


def _keep_destinations(before: SourceTree, after: SourceTree) -> bool:
    """Return whether both trees describe the same clusters, with the same names in Argo CD."""
    old, new = (
        [(cluster.name, cluster.annotations.get(ARGOCD_DESTINATION)) for cluster in read_cluster_metadata(tree.documents)]
        for tree in (before, after)
    )
    return old == new


def _compare(
    before: TreeCache, after: TreeCache, changed: Iterable[str], cache: PlanCache, due: Iterable[Key], limit: int
) -> TreeDiff:
    totals = cache.header.totals
    scopes = totals.source.kind_scopes
    sides, new = list_differing(before, after), _index(after.source_tree.documents)
    if max(map(len, sides)) > limit:
        raise NeedsCompletePlan(MANY_CHANGES)
    if not _keep_scopes(sides[0], sides[1], new, totals.config.kinds):
        raise NeedsCompletePlan("the scope of a kind may change")
    found = FileDocuments(), FileDocuments()
    for side, into in zip(sides, found, strict=True):
        if any(raw.broken or may_contain_bundle(raw) for raw in side) or not identify_documents(side, scopes, into):
            raise NeedsCompletePlan("a document is broken, a Bundle, or concerns others")
    several = totals.source.repeated | totals.source.unused
    if any(not several.isdisjoint(keys) for one in found for keys in (one.templates, one.api)):
        raise NeedsCompletePlan(SEVERAL_DOCUMENTS)
    templates = pair_documents(found[0].templates, found[1].templates)
    api_documents = pair_documents(found[0].api, found[1].api)
    if may_select(api_documents.values(), totals.source.unused):
        raise NeedsCompletePlan(SELECTS_BROKEN)
    if concern_everything(api_documents):
        raise NeedsCompletePlan(CONCERNS_ALL)

    find = _make_finder(new, scopes)
    documents = {key: document for key, (_, document) in templates.items() if document is not None}
    for key in sorted(set(due) - templates.keys()):
        documents[key] = require_document(key, find(key))
    find_old = make_finder(before, scopes)
    parts = _compare_parts(before, after, totals, (find_old, find), rules_changed=bool(api_documents))
    if totals.source.with_variants and (parts.changed or any(None in pair for pair in templates.values())):
        raise NeedsCompletePlan("what is built for clusters may be a part of a workload that comes, goes or changes")
    if totals.source.with_variants and api_documents and not _keep_destinations(before.source_tree, after.source_tree):
        raise NeedsCompletePlan("what is built for clusters has their names, and clusters change")
    gone = {key for key, (_, document) in templates.items() if document is None}
    replaced = (*after.source_tree.kustomized, *after.source_tree.replaced)
    if gone and not gone.isdisjoint(_resolve(part.document, scopes) for part in replaced):
        raise NeedsCompletePlan("an object becomes a part of a kustomization")
    paths = {one.origin.path for pair in (*templates.values(), *api_documents.values()) for one in pair if one and one.origin}
    findings, known = after.source_tree.file_findings, totals.findings_by_file
    paths |= {*changed, *(path for path in {**known, **findings} if known.get(path, ()) != findings.get(path, ()))}
    files = frozenset(before.source_paths), frozenset(after.source_paths)
    diff = SourceDiff(
        documents,
        {path: findings.get(path, ()) for path in sorted(paths)},
        templates,
        api_documents,
        files[1] - files[0],
        files[0] - files[1],
        parts=parts,
    )
    keys = {_resolve(part.document, scopes) for part in after.source_tree.kustomized}
    part_kinds = frozenset(key[:2] for key in keys if find(key) is None)
    kept_files = _list_kept_files(before, after)
    return TreeDiff((before, after), diff, find, after.reading_rules, after.source_tree.builds, part_kinds, kept_files)


def _list_kept_files(before: TreeCache, after: TreeCache) -> dict[str, ExistingBlob | None]:
    """Return the kept bytes that differ. Raise NeedsCompletePlan if what is kept depends on where objects are placed."""
    old, new = (tree.source_tree.last_valid for tree in (before, after))
    found: dict[str, ExistingBlob | None] = {kept_path(path): None for path in old if path not in new}
    for path, file in new.items():
        if path not in old or old[path] != file:
            rendered = render_last_valid(file, {})
            if not isinstance(rendered, ExistingBlob):
                raise NeedsCompletePlan("what is kept of a broken file depends on where its objects are placed")
            found[kept_path(path)] = rendered
    return found


def list_differing(before: TreeCache, after: TreeCache) -> tuple[list[RawDocument], list[RawDocument]]:
    """Return the documents of each tree whose group, kind and name has other documents in the other one, in their order."""
    old, new = (_index(tree.source_tree.documents) for tree in (before, after))
    names = {name for name in {**old, **new} if old.get(name) != new.get(name)}
    first, second = (
        [raw for raw in tree.source_tree.documents if (raw.group, raw.kind, raw.name) in names] for tree in (before, after)
    )
    return first, second


def keep_order(before: TreeCache, after: TreeCache, scopes: Mapping[tuple[str, str], bool]) -> bool:
    """Return whether the objects that both trees have are in the same order, and the same ones are parts of kustomizations alone."""
    orders = [dict.fromkeys(_resolve(raw, scopes) for raw in tree.source_tree.documents) for tree in (before, after)]
    old, new = ([key for key in order if key in other] for order, other in (orders, reversed(orders)))
    return old == new and _index_parts(before, scopes).keys() == _index_parts(after, scopes).keys()


def make_finder(tree: TreeCache, scopes: Mapping[tuple[str, str], bool]) -> FindTemplate:
    """Return what finds the templates of a tree."""
    return _make_finder(_index(tree.source_tree.documents), scopes)


def _make_finder(index: Mapping[_Identity, list[RawDocument]], scopes: Mapping[tuple[str, str], bool]) -> FindTemplate:
    def find(key: Key) -> Document | None:
        wanted = index.get((key.group, key.kind, key.name), ())
        return next((_make_document(key, one) for one in wanted if not one.broken and resolve_key(one, scopes) == key), None)

    return find


def _index(documents: Iterable[RawDocument]) -> dict[_Identity, list[RawDocument]]:
    """Return documents by group, kind and name."""
    index: dict[_Identity, list[RawDocument]] = {}
    for document in documents:
        index.setdefault((document.group, document.kind, document.name), []).append(document)
    return index


def _keep_scopes(
    before: list[RawDocument], after: list[RawDocument], index: Mapping[_Identity, list[RawDocument]], settings: Iterable[KindScope]
) -> bool:
    """Return whether changed documents leave the scope of each kind as it is. `index` has all documents."""
    identities = [sorted(document[3:] for document in documents) for documents in (before, after)]
    if identities[0] == identities[1]:
        return True
    definitions = (document for name, found in index.items() if name[1] in DEFINITION_KINDS for document in found)
    known = (*settings, *(scope for document in definitions for scope in read_declared_scopes(document)))
    declared = {(parse_api_group(scope.api_version), scope.kind) for scope in known}
    kinds = {(document.group, document.kind) for document in (*before, *after)}
    return all(is_known_group(kind[0]) or kind in declared or is_namespaced(*kind) is not None for kind in kinds)


def _make_document(key: Key, raw: RawDocument) -> Document:
    return Document(key, raw.api_version, raw.body, raw.origin)


def _resolve(raw: RawDocument, scopes: Mapping[tuple[str, str], bool]) -> Key:
    return resolve_key(raw, scopes) or Key(raw.group, raw.kind, raw.namespace, raw.name)


def _compare_parts(
    before: TreeCache, after: TreeCache, totals: Totals, finders: tuple[FindTemplate, FindTemplate], *, rules_changed: bool
) -> ChangedParts:
    """Return the objects that are not placed because kustomizations change them, as far as they differ or policies that did not select them
    may do so. With `rules_changed`, these may select any. `finders` return the templates of the trees, which are placed."""
    scopes, own = totals.source.kind_scopes, before.source_tree.other_findings
    old, new = _index_parts(before, scopes), _index_parts(after, scopes)
    changed = {key for key in {**old, **new} if _describe(old.get(key)) != _describe(new.get(key))}
    changed = {key for key in changed if any(find(key) is None for find in finders)}
    reported = frozenset(finding for finding in totals.other_findings if finding.code in PART_CODES and finding not in own)
    wanted = new if rules_changed or reported else [key for key in new if key in changed]
    unplaced = ((key, part) for key in wanted for part in new[key] if part.is_reported and finders[1](key) is None)
    checked = tuple((_make_document(key, part.document), part) for key, part in unplaced)
    present = {key: describe_part(new[key][-1]) for key in sorted(changed & new.keys())}
    return ChangedParts(frozenset(changed), checked, reported | frozenset(own), after.source_tree.other_findings, present)


def _index_parts(tree: TreeCache, scopes: Mapping[tuple[str, str], bool]) -> dict[Key, list[KustomizedDocument]]:
    index: dict[Key, list[KustomizedDocument]] = {}
    for part in tree.source_tree.kustomized:
        index.setdefault(_resolve(part.document, scopes), []).append(part)
    return index


def _describe(parts: list[KustomizedDocument] | None) -> list[tuple[RawDocument, str, str]]:
    """Return what a plan reads of objects that are not placed, besides what changes them."""
    return [(part.document, part.chart, part.code) for part in parts or ()]
