"""Read a source tree: documents, findings, gitsched.yaml, and the last valid bytes of broken files."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from gitsched.apis.gitsched.config import FILE, GROUP, Config
from gitsched.decide.incremental.changed_documents import may_contain_bundle
from gitsched.decide.plan_input import SourceTree
from gitsched.decide.registry import apis_by_group, policy_apis
from gitsched.git import Repository, TreeEntry
from gitsched.manifests.charts import CHART_FILE
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES
from gitsched.manifests.parsed_file import NOT_YAML
from gitsched.model.document import is_known_group, parse_api_group
from gitsched.model.finding import Finding
from gitsched.model.progress import Progress, follow
from gitsched.model.system_errors import is_bug
from gitsched.model.tenants import TENANT
from gitsched.model.tool_groups import TOOL_GROUPS
from gitsched.model.variants import BUNDLE_KIND
from gitsched.reconcile.builds.build_context import BuildContext
from gitsched.reconcile.cache.caches import ParseCache, SourceFile, TreeCache
from gitsched.reconcile.cache.reading_rules import ReadingRules
from gitsched.reconcile.source.config_file import (
    OpenHistory,
    make_no_config_finding,
    read_config,
    read_valid_config,
)
from gitsched.reconcile.source.file_selection import DEFINITION_KIND, choose_reading_rules
from gitsched.reconcile.source.source_reader import (
    SourceReader,
    is_manifest_path,
    list_manifests,
    read_ignore_rules,
    read_source_file,
    select_entries,
)
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES, find_path_collisions, find_unread_entries

if TYPE_CHECKING:
    from gitsched.decide.catalog import RawDocument
    from gitsched.decide.last_valid_files import LastValidFile
    from gitsched.reconcile.source.file_version import FileVersion
    from gitsched.reconcile.source.last_valid_documents import RestoredFile

_log = logging.getLogger("gitsched.reconcile")
_ROOT_NAMES = (*KUSTOMIZATION_NAMES, CHART_FILE)


def read_source_tree(
    repository: Repository,
    tree: str,
    cache: ParseCache,
    open_history: OpenHistory | None,
    paths: tuple[str, ...] = (),
    last: TreeCache | None = None,
    builds: Callable[[], BuildContext] | None = None,
    tenants: Sequence[Mapping[str, Any]] = (),
    strict: bool = False,
    progress: Progress | None = None,
) -> TreeCache:
    """Read a tree. Where only the content of a few files changed since the `last` one, read only these.

    Symlinks, submodules and unusual entries are findings and are never followed. Broken documents are restored from the history that
    `open_history` returns; None: from nothing. `tenants` are the Tenants of the trusted side.
    With `strict`, every issue of a schema is an error, as if the settings said so.
    """
    last = None if tenants else last
    if last is not None and last.tree == tree and last.valid:
        return last
    if last is not None and last.valid and repository.has(last.tree):  # a private clone that was made anew does not have it
        updated = _read_changed_files(repository, tree, cache, last)
        if updated is not None:
            return updated
    entries = repository.entries(tree)
    config, findings, config_valid, last_config = read_valid_config(repository, tree, cache, open_history)
    if strict:
        config = config._replace(source=config.source._replace(strict=True))
    has_odd = any(entry.unsafe or entry.mode not in REGULAR_FILE_MODES for entry in entries)
    if has_odd:
        findings += find_unread_entries(repository, entries, [entry for entry in entries if is_manifest_path(entry.path)])
    if builds is not None:
        builds = partial(_narrow_remotes, builds, config)
    manifests = list_manifests(entries)
    if len({entry.path.lower() for entry in manifests}) != len(manifests) or not all(entry.path.isascii() for entry in manifests):
        findings += find_path_collisions([entry.path for entry in manifests])
    reader = SourceReader(repository, cache, config, strict=config.source.strict)
    ignore, limits = read_ignore_rules(repository, entries, config.source.ignore)
    findings += limits
    wanted = select_entries(entries, manifests, paths or config.source.paths, ignore)
    reader.prefetch(wanted)
    followed = wanted if progress is None else follow(wanted, "reading files", progress)
    files = {entry.path: read_source_file(entry.path, entry.blob, reader) for entry in followed}
    if ignore is not None and not has_policy_documents(files.values()):
        from gitsched.reconcile.source.hidden_sources import find_hidden_sources  # most sources have policies

        every = select_entries(entries, manifests, paths or config.source.paths, None)
        findings += find_hidden_sources(repository, [entry for entry in every if entry.path not in files], ignore, files)
    kustomized = None
    restored, unverified = _restore_last_valid(files, reader, open_history)
    if last_config is not None and FILE in files and FILE not in restored:
        restored[FILE], findings = last_config, [*findings, make_no_config_finding()]
    documents = [document for file in files.values() for document in file.documents]
    documents += [document for file in restored.values() for document in file.documents]
    if tenants or any(document.kind == TENANT and document.group == GROUP for document in documents):
        from gitsched.reconcile.source.lost_documents import make_unverified_finding
        from gitsched.reconcile.tenants.tenant_trees import OwnedFiles, read_tenant_files  # few sources have tenants

        def select(rules: list[TreeEntry], those: list[TreeEntry]) -> list[TreeEntry]:
            found, _ = read_ignore_rules(repository, rules, config.source.ignore)
            return select_entries(entries, those, paths or config.source.paths, found)

        owned = OwnedFiles(
            repository,
            entries,
            manifests,
            files,
            restored,
            config,
            select,
            lambda those: _restore_last_valid(those, reader, open_history)[0],
            lambda entries, unread, files, documents: (
                bool(config.source.variants) or _may_have_bundles(documents) or _needs_builds(config, entries, unread, files)
            ),
        )
        found = read_tenant_files(owned, tenants, documents, reader, builds)
        kept = {path: file.last_valid for path, file in found.restored.items() if file.last_valid is not None}
        if found.restored:
            from gitsched.reconcile.source.lost_documents import list_restored_findings  # most sources are valid

            findings += list_restored_findings(found.restored, kept, found.files)
        findings += open_history().list_findings() if open_history is not None and found.restored else ()
        tree_cache = _make_tree_cache(tree, found.files, found.tree.config, findings, [], kept, False, config_valid)
        findings += [make_unverified_finding(unverified)] if unverified else ()
        other_findings = (*findings, *found.tree.other_findings)
        merged = found.tree._replace(last_valid=kept, other_findings=other_findings, unverified=unverified)
        is_valid = config_valid and not (restored or found.restored or unverified or any(file.broken for file in files.values()))
        if found.is_plain and is_valid and builds is not None:
            found_rules = choose_reading_rules(repository, entries, paths or config.source.paths, found.kustomized, documents)
            source_paths = [path for path, file in found.files.items() if not file.kustomized]
            tree_cache = tree_cache._replace(reading_rules=found_rules, source_paths=source_paths)
        return _check_custom_resources(tree_cache._replace(source_tree=merged), repository)
    if config.source.variants or _may_have_bundles(documents) or _needs_builds(config, entries, len(manifests) > len(files), files):
        from gitsched.reconcile.builds.kustomized_tree import read_kustomized_tree

        kustomized = read_kustomized_tree(entries, files, reader, config, builds, documents)
        read, files, findings = files, kustomized.files, [*findings, *kustomized.findings]
        # Where only parts of kustomizations were broken, what is built says whether they are.
        restored = {
            path: file for path, file in restored.items() if path in files and (files[path].broken or not read[path].broken)
        }
    last_valid_documents = [document for file in restored.values() for document in file.documents]
    if kustomized is not None:
        last_valid_documents = [document for document in last_valid_documents if not kustomized.contains(document)]
    kept = {path: file.last_valid for path, file in restored.items() if file.last_valid is not None}
    if restored:
        from gitsched.reconcile.source.lost_documents import list_restored_findings  # most sources are valid

        findings += list_restored_findings(restored, kept, files)
    if open_history is not None and (restored or (kustomized is not None and kustomized.findings)):
        findings += open_history().list_findings()
    if unverified:
        from gitsched.reconcile.source.lost_documents import make_unverified_finding

        findings.append(make_unverified_finding(unverified))
    valid = not kept and not unverified and not any(file.broken for file in files.values()) and config_valid
    made = _make_tree_cache(tree, files, config, findings, last_valid_documents, kept, valid, config_valid)
    if unverified:
        made = made._replace(source_tree=made.source_tree._replace(unverified=unverified))
    used: Mapping[str, FileVersion | None] | None = {}
    if restored and open_history is not None:
        from gitsched.reconcile.source.settled_files import list_used_versions  # most sources are valid

        used = list_used_versions(restored, files, open_history())
    if not (config_valid and not unverified and builds is not None and (ignore is None or has_policy_documents(files.values()))):
        used = None
    if used is not None and not config.source.variants:
        rules: ReadingRules | None = ReadingRules()
        roots = paths or config.source.paths
        if has_odd or roots or ignore is not None or kustomized is not None or _has_definitions(documents):
            rules = choose_reading_rules(repository, entries, roots, () if kustomized is None else (kustomized,), documents)
        made = made._replace(reading_rules=rules)
    made = made._replace(used_versions=used)
    return _check_custom_resources(kustomized.add_to(made) if kustomized is not None else made, repository)


def _check_custom_resources(cache: TreeCache, repository: Repository) -> TreeCache:
    """Return the tree with findings about custom resources, if the source defines their kinds."""
    if not _has_definitions(cache.source_tree.documents):
        return cache
    from gitsched.reconcile.source.custom_resources import add_custom_resource_findings  # many sources have no definitions

    return add_custom_resource_findings(cache, repository)


def _has_definitions(documents: Iterable[RawDocument]) -> bool:
    return any(document.kind == DEFINITION_KIND for document in documents)


def _narrow_remotes(builds: Callable[[], BuildContext], config: Config) -> BuildContext:
    """Return the context of builds, with the other repositories that the read commit itself allows."""
    context = builds()

    def list_allowed(tree: str) -> tuple[str, ...]:
        found = read_config(context.repository, tree, context.caches.files)
        return found.source.kustomize.remotes if found is not None else ()

    return context._replace(remotes=context.remotes._replace(own=config.source.kustomize.remotes), list_allowed=list_allowed)


def _read_changed_files(repository: Repository, tree: str, cache: ParseCache, last: TreeCache) -> TreeCache | None:
    """Return the last tree with its changed files; None if anything but the content of known, valid files changed."""
    changed = repository.changed_paths(last.tree, tree)
    if len(changed) > len(last.files) // 4 or any(path not in last.files or path == FILE for path in changed):
        return None
    config = last.source_tree.config
    reader = SourceReader(repository, cache, config, strict=config.source.strict)
    files = dict(last.files)
    for path in changed:
        entry = repository.find_entry(tree, path)
        if entry is None or entry[1] not in REGULAR_FILE_MODES or not last.files[path].independent:
            return None
        files[path] = read_source_file(path, entry[0], reader)
        if any(document.kind == TENANT and document.group == GROUP for document in files[path].documents):
            return None
        if last.files[path].documents and not files[path].documents and files[path].file.status != "empty":
            return None  # the file keeps the documents that it had
        if len(files[path].file.others) > len(last.files[path].file.others):
            return None  # it may keep some of them
        if not files[path].independent or has_policy_documents([files[path]]) != has_policy_documents([last.files[path]]):
            return None  # the finding about hidden sources depends on whether there are policy documents
        if last.depends_on_policies and (has_policy_documents([files[path]]) or may_change_builds(files[path])):
            return None
        if (last.source_tree.variants or config.source.variants) and has_policy_documents([files[path]]):
            return None  # labels and annotations of clusters choose variants
        if has_tool_documents([files[path], last.files[path]]) or _may_have_bundles(files[path].documents):
            return None  # they may be built
        custom = [document for document in files[path].documents if not is_known_group(document.group)]
        if _has_definitions(files[path].documents) or (custom and _has_definitions(last.source_tree.documents)):
            return None  # custom resources are checked against their definitions
    before = last.source_tree
    made = _make_tree_cache(tree, files, before.config, list(before.other_findings), list(last.built), {}, True, True)
    source_tree = made.source_tree._replace(
        kustomized=before.kustomized,
        builds=before.builds,
        variants=before.variants,
        replaced=before.replaced,
        incomplete=before.incomplete,
    )
    return made._replace(
        source_tree=source_tree,
        built=last.built,
        source_paths=last.source_paths,
        depends_on_policies=last.depends_on_policies,
        reading_rules=last.reading_rules,
    )


def has_policy_documents(files: Iterable[SourceFile]) -> bool:
    """Return whether a file has a document of a policy API, such as a policy or a cluster."""
    return any(document.group in apis_by_group for file in files for document in file.documents)


def _needs_builds(config: Config, entries: list[TreeEntry], has_unread: bool, files: Mapping[str, SourceFile]) -> bool:
    """Return whether there is something to build, or manifests that are not read may say so: most sources have neither."""
    return (
        bool(config.source.kustomize.build)
        or any(entry.path.endswith(_ROOT_NAMES) for entry in entries)
        or has_unread
        or has_tool_documents(files.values())
    )


def has_tool_documents(files: Iterable[SourceFile]) -> bool:
    """Return whether a file has a document of Flux or Argo CD, a broken one included."""
    return any(
        any(document.group in TOOL_GROUPS for document in file.documents)
        or (
            file.broken
            and any(parse_api_group(str(parsed.body.get("apiVersion"))) in TOOL_GROUPS for parsed in file.file.documents)
        )
        for file in files
    )


def may_change_builds(file: SourceFile) -> bool:
    """Return whether a file has documents on which builds of delivery tools may depend, such as a Flux Kustomization or a ConfigMap."""
    values = (not document.group and document.kind in ("ConfigMap", "Secret") for document in file.documents)
    return has_tool_documents([file]) or any(values)


def _may_have_bundles(documents: Iterable[RawDocument]) -> bool:
    """Return whether a document is a Bundle or contains one. After a bug it may, which costs work only."""
    kinds = {BUNDLE_KIND, *(kind for api in policy_apis.values() for kind in api.embedded_objects)}
    try:
        return any((document.group, document.kind) in kinds and may_contain_bundle(document) for document in documents)
    except Exception as error:
        if not is_bug(error):
            raise
        from gitsched.model.fault import describe_fault  # only after a bug

        _log.warning("%s while Bundles were looked for; the next run plans everything; report this bug", describe_fault(error))
        return True


def _make_tree_cache(
    tree: str,
    files: Mapping[str, SourceFile],
    config: Config,
    findings: list[Finding],
    restored: list[RawDocument],
    kept: Mapping[str, LastValidFile],
    valid: bool,
    config_valid: bool,
) -> TreeCache:
    documents = [document for file in files.values() for document in file.documents]
    file_findings = {path: file.findings for path, file in files.items() if file.findings}
    source_tree = SourceTree((*documents, *restored), file_findings, tuple(findings), config, kept)
    return TreeCache(tree, files, source_tree, valid, config_valid, files.keys())


def _restore_last_valid(
    files: Mapping[str, SourceFile], reader: SourceReader, open_history: OpenHistory | None
) -> tuple[dict[str, RestoredFile], tuple[str, ...]]:
    """Return the last valid documents of broken files, and of files that lost their documents, by path; and the files of which nobody
    knows whether they lost some."""
    lost: list[str] = []
    has_unread = open_history is not None and any(
        file.file.others or file.file.status in ("not-a-resource", "invalid") for file in files.values()
    )
    if has_unread and open_history is not None:
        from gitsched.reconcile.source.lost_documents import find_lost_documents  # not without any other YAML

        lost = find_lost_documents(files, reader, open_history())
    restored: dict[str, RestoredFile] = {}
    failed: tuple[str, ...] = ()
    if lost or any(file.broken or file.file.reason == NOT_YAML for file in files.values()):
        from gitsched.reconcile.source.last_valid_documents import LastValidDocuments  # most sources are valid

        find_versions = open_history().list_versions if open_history is not None else lambda _: ()
        last_valid = LastValidDocuments(reader, find_versions)
        restored, failed = last_valid.restore_all(files, lost), tuple(last_valid.failed)
    if not has_unread or open_history is None:
        return restored, failed
    from gitsched.reconcile.source.lost_documents import find_unverified_files

    return restored, tuple(dict.fromkeys((*failed, *find_unverified_files(files, restored, open_history()))))
