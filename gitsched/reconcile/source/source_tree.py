"""Read the source tree of a run, or of another commit as the run does: documents, findings, gitsched.yaml, and the last valid bytes of
broken files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache as cached
from functools import partial
from typing import TYPE_CHECKING, Any

from gitsched.apis.gitsched.config import FILE, GROUP, Config
from gitsched.build.remote_base import RemotePolicy
from gitsched.decide.plan_input import SourceTree
from gitsched.git import Repository, TreeEntry
from gitsched.manifests.parsed_file import NOT_YAML
from gitsched.model.finding import Finding
from gitsched.model.progress import Progress
from gitsched.model.tenants import TENANT
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.builds.build_context import BuildContext
from gitsched.reconcile.builds.remote_policy import decide_remotes
from gitsched.reconcile.cache.caches import ParseCache, SourceFile, TreeCache
from gitsched.reconcile.cache.reading_rules import ReadingRules
from gitsched.reconcile.run import Fetched, RunContext
from gitsched.reconcile.source.config_file import (
    OpenHistory,
    check_output_config,
    make_no_config_finding,
    read_config,
    read_valid_config,
)
from gitsched.reconcile.source.file_selection import choose_reading_rules
from gitsched.reconcile.source.hidden_sources import find_hidden_sources
from gitsched.reconcile.source.last_valid_documents import RestoredFile
from gitsched.reconcile.source.lost_documents import list_restored_findings, make_unverified_finding, restore_last_valid
from gitsched.reconcile.source.settled_files import list_used_versions
from gitsched.reconcile.source.source_history import SourceHistory
from gitsched.reconcile.source.source_reader import (
    DEFINITION_KIND,
    SourceReader,
    has_builds,
    has_policy_documents,
    is_manifest_path,
    list_manifests,
    read_ignore_rules,
    read_source_files,
    select_entries,
)
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES, find_path_collisions, find_unread_entries

if TYPE_CHECKING:
    from gitsched.decide.catalog import RawDocument
    from gitsched.decide.last_valid_files import LastValidFile
    from gitsched.manifests.sourceignore import SourceIgnore
    from gitsched.model.commit import Commit
    from gitsched.reconcile.builds.kustomizations import KustomizedTree
    from gitsched.reconcile.source.file_version import FileVersion


class _Request(NamedTuple):
    """The tree that is read and what it is read with; see read_source_tree. `config` are the settings of the tree or their last valid
    version, which `replaced_config` is then; `config_valid` says whether its own are valid or missing."""

    repository: Repository
    tree: str
    open_history: OpenHistory | None
    builds: Callable[[], BuildContext] | None
    tenants: Sequence[Mapping[str, Any]]
    config: Config
    config_valid: bool
    replaced_config: RestoredFile | None
    roots: tuple[str, ...]
    """The directories and files that are read; all without any."""


class _Selection(NamedTuple):
    """The entries of a tree, those that can be manifests and those that are read, the rules that hide others, whether there are symlinks
    or the like, and findings about all of them."""

    entries: list[TreeEntry]
    manifests: list[TreeEntry]
    wanted: list[TreeEntry]
    ignore: SourceIgnore | None
    has_odd: bool
    findings: tuple[Finding, ...]

    def select_by_rules(self, request: _Request, rules: list[TreeEntry], manifests: list[TreeEntry]) -> list[TreeEntry]:
        """Return which of some manifests are read, given .sourceignore files."""
        found, _ = read_ignore_rules(request.repository, rules, request.config.source.ignore)
        return select_entries(self.entries, manifests, request.roots, found)


class _Contents(NamedTuple):
    """The files that were read, and the last valid ones of broken files. `unverified` are files of which nobody knows whether they lost
    documents."""

    files: Mapping[str, SourceFile]
    restored: dict[str, RestoredFile]
    unverified: tuple[str, ...]
    findings: tuple[Finding, ...]

    def list_documents(self) -> list[RawDocument]:
        """Return the documents of the files, then those of restored ones."""
        return [document for found in (self.files, self.restored) for file in found.values() for document in file.documents]


def load(context: RunContext, fetched: Fetched, *, check_output: bool = True) -> SourceTree:
    """Read the source commit. Broken files contribute their last valid documents.

    With `check_output`, raise Permanent if gitsched.yaml is broken and might have named another output.
    """
    caches = context.caches
    caches.tree = read_tree(context, fetched, fetched.source.tree, caches.tree)
    if check_output and not caches.tree.config_valid:
        check_output_config(context.settings, fetched, caches.tree)
    return caches.tree.source_tree


def read_tree(
    context: RunContext,
    fetched: Fetched,
    tree: str,
    last: TreeCache | None,
    *,
    is_planned: bool = False,
    remotes: RemotePolicy | None = None,
) -> TreeCache:
    """Read a tree as the run reads its source commit. `last` is another tree that was read: what both have is not read again.

    Where the tree `is_planned`, the last run has read it: of what is broken in it, no later commit counts. `remotes` are
    what may be read of other repositories for a commit that is not planned.
    """
    caches, tenants = context.caches, fetched.base_tenants
    if tenants is None:
        tenants = fetched.record.tenants if fetched.record is not None else ()

    read = fetched.source._replace(oid="", tree=tree, parents=()) if is_planned else fetched.source
    open_history = cached(partial(SourceHistory, context, fetched._replace(source=read)))
    return read_source_tree(
        context.source.repository,
        tree,
        caches.files,
        open_history,
        context.settings.paths,
        last,
        lambda: BuildContext(
            context.source.repository,
            caches,
            fetched.record,
            context.source.fetch_commit,
            fetched.source.oid if remotes is None else "",
            decide_remotes(context, fetched) if remotes is None else remotes,
            list_earlier=lambda limit: open_history().list_commits(limit),
        ),
        tenants,
        context.settings.strict,
        context.settings.progress,
    )


def read_source_at(context: RunContext, fetched: Fetched, commit: Commit) -> SourceTree:
    """Read another commit of the source. Broken files contribute the last valid documents that a run of it would use now."""
    context = context._replace(settings=context.settings._replace(progress=None))
    fetched = fetched._replace(source=commit, base_tenants=())
    return read_tree(context, fetched, commit.tree, None, remotes=RemotePolicy(trusted=None)).source_tree


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
    known = _continue_last(repository, tree, cache, last) if last is not None and last.valid and not tenants else None
    if known is not None:
        return known
    config, findings, config_valid, replaced = read_valid_config(repository, tree, cache, open_history)
    if strict:
        config = config._replace(source=config.source._replace(strict=True))
    builds = partial(_narrow_remotes, builds, config) if builds is not None else None
    roots = paths or config.source.paths
    request = _Request(repository, tree, open_history, builds, tenants, config, config_valid, replaced, roots)
    selection = _select_files(request)
    reader = SourceReader(repository, cache, config, strict=config.source.strict)
    contents = _read_files(request, selection, reader, progress)
    contents = contents._replace(findings=(*findings, *selection.findings, *contents.findings))
    documents = contents.list_documents()
    if tenants or any(document.kind == TENANT and document.group == GROUP for document in documents):
        made = _make_tenant_tree(request, selection, contents, reader, documents)
    else:
        made = _make_tree(request, selection, contents, reader, documents)
    return _check_custom_resources(made, repository)


def _continue_last(repository: Repository, tree: str, cache: ParseCache, last: TreeCache) -> TreeCache | None:
    """Return the last tree, with the files that changed; None if it has to be read as a whole."""
    if last.tree == tree:
        return last
    if not repository.has(last.tree):  # a private clone that was made anew does not have it
        return None
    from gitsched.reconcile.source.changed_tree import read_changed_files  # processes that run once have no last tree

    return read_changed_files(repository, tree, cache, last)


def _select_files(request: _Request) -> _Selection:
    """Choose the files of a tree that are read."""
    repository, findings = request.repository, []
    entries = repository.entries(request.tree)
    has_odd = any(entry.unsafe or entry.mode not in REGULAR_FILE_MODES for entry in entries)
    if has_odd:
        findings += find_unread_entries(repository, entries, [entry for entry in entries if is_manifest_path(entry.path)])
    manifests = list_manifests(entries)
    if len({entry.path.lower() for entry in manifests}) != len(manifests) or not all(entry.path.isascii() for entry in manifests):
        findings += find_path_collisions([entry.path for entry in manifests])
    ignore, limits = read_ignore_rules(repository, entries, request.config.source.ignore)
    wanted = select_entries(entries, manifests, request.roots, ignore)
    return _Selection(entries, manifests, wanted, ignore, has_odd, (*findings, *limits))


def _read_files(request: _Request, selection: _Selection, reader: SourceReader, progress: Progress | None) -> _Contents:
    """Read the selected files, and restore what is broken."""
    findings: list[Finding] = []
    files = read_source_files(selection.wanted, reader, progress)
    if selection.ignore is not None and not has_policy_documents(files.values()):
        every = select_entries(selection.entries, selection.manifests, request.roots, None)
        unread = [entry for entry in every if entry.path not in files]
        findings += find_hidden_sources(request.repository, unread, selection.ignore, files)
    may_lack = any(map(_may_need_history, files.values()))
    restored, unverified = restore_last_valid(files, reader, request.open_history) if may_lack else ({}, ())
    if request.replaced_config is not None and FILE in files and FILE not in restored:
        restored[FILE] = request.replaced_config
        findings.append(make_no_config_finding())
    return _Contents(files, restored, unverified, tuple(findings))


def _may_need_history(file: SourceFile) -> bool:
    """Return whether earlier versions of a file may have had documents that it lacks."""
    read = file.file
    return file.broken or bool(read.others) or read.reason == NOT_YAML or read.status in ("not-a-resource", "invalid")


def _make_tenant_tree(
    request: _Request, selection: _Selection, contents: _Contents, reader: SourceReader, documents: list[RawDocument]
) -> TreeCache:
    """Return the tree of a source with tenants, in which each owner's files count for themselves."""
    from gitsched.reconcile.source.tenant_source import TenantSource, read_tenant_source  # few sources have tenants
    from gitsched.reconcile.tenants.tenant_trees import OwnedFiles

    config = request.config
    owned = OwnedFiles(
        request.repository,
        selection.entries,
        selection.manifests,
        contents.files,
        contents.restored,
        config,
        partial(selection.select_by_rules, request),
        lambda files: restore_last_valid(files, reader, request.open_history)[0],
        partial(has_builds, config),
    )
    source = TenantSource(owned, request.tenants, documents, contents.findings, contents.unverified)
    found = read_tenant_source(source, reader, request.builds, request.open_history)
    is_whole = request.config_valid and not (contents.unverified or any(file.broken for file in contents.files.values()))
    made = TreeCache(request.tree, found.files, found.tree, False, request.config_valid, found.files.keys())
    if not (found.is_plain and is_whole and not contents.restored and not found.restored and request.builds is not None):
        return made
    rules = choose_reading_rules(request.repository, selection.entries, request.roots, found.kustomized, documents)
    return made._replace(reading_rules=rules, source_paths=[path for path, file in found.files.items() if not file.kustomized])


def _make_tree(
    request: _Request, selection: _Selection, contents: _Contents, reader: SourceReader, documents: list[RawDocument]
) -> TreeCache:
    """Return the tree with what its kustomizations and Bundles build."""
    kustomized = None
    has_unread = len(selection.manifests) > len(contents.files)
    if has_builds(request.config, selection.entries, has_unread, contents.files, documents):
        from gitsched.reconcile.builds.kustomized_tree import read_kustomized_tree  # many sources build nothing

        kustomized = read_kustomized_tree(selection.entries, contents.files, reader, request.config, request.builds, documents)
        contents = _take_built(contents, kustomized)
    kept = {path: file.last_valid for path, file in contents.restored.items() if file.last_valid is not None}
    findings = _list_restored_findings(request, contents, kept, was_built=kustomized is not None and bool(kustomized.findings))
    valid = not kept and not contents.unverified and request.config_valid
    valid = valid and not any(file.broken for file in contents.files.values())
    documents_read = [document for file in contents.files.values() for document in file.documents]
    file_findings = {path: file.findings for path, file in contents.files.items() if file.findings}
    source_tree = SourceTree(
        (*documents_read, *_list_last_valid(contents, kustomized)),
        file_findings,
        tuple(findings),
        request.config,
        kept,
        unverified=contents.unverified,
    )
    made = TreeCache(request.tree, contents.files, source_tree, valid, request.config_valid, contents.files.keys())
    used = _list_used_versions(request, selection, contents)
    if used is not None and not request.config.source.variants:
        made = made._replace(reading_rules=_choose_rules(request, selection, kustomized, documents))
    made = made._replace(used_versions=used)
    return kustomized.add_to(made) if kustomized is not None else made


def _list_last_valid(contents: _Contents, kustomized: KustomizedTree | None) -> list[RawDocument]:
    """Return the last valid documents of broken files that are not parts of kustomizations."""
    found = [document for file in contents.restored.values() for document in file.documents]
    return found if kustomized is None else [document for document in found if not kustomized.contains(document)]


def _take_built(contents: _Contents, kustomized: KustomizedTree) -> _Contents:
    """Return the files without parts of kustomizations. Where only parts were broken, what is built says whether they are."""
    read, files = contents.files, kustomized.files
    restored = {
        path: file for path, file in contents.restored.items() if path in files and (files[path].broken or not read[path].broken)
    }
    return contents._replace(files=files, restored=restored, findings=(*contents.findings, *kustomized.findings))


def _list_restored_findings(
    request: _Request, contents: _Contents, kept: Mapping[str, LastValidFile], *, was_built: bool
) -> list[Finding]:
    """Return all findings of a tree, those about restored files and their history at the end."""
    findings = list(contents.findings)
    if contents.restored:
        findings += list_restored_findings(contents.restored, kept, contents.files)
    if request.open_history is not None and (contents.restored or was_built):
        findings += request.open_history().list_findings()
    if contents.unverified:
        findings.append(make_unverified_finding(contents.unverified))
    return findings


def _list_used_versions(request: _Request, selection: _Selection, contents: _Contents) -> Mapping[str, FileVersion | None] | None:
    """Return the earlier versions in use; None if the next run has to read the whole tree."""
    hides_all = selection.ignore is not None and not has_policy_documents(contents.files.values())
    if not request.config_valid or contents.unverified or request.builds is None or hides_all:
        return None
    if not contents.restored or request.open_history is None:
        return {}
    return list_used_versions(contents.restored, contents.files, request.open_history())


def _choose_rules(
    request: _Request, selection: _Selection, kustomized: KustomizedTree | None, documents: list[RawDocument]
) -> ReadingRules | None:
    """Return the rules by which the next run can read changed files alone."""
    roots = request.roots
    is_special = selection.has_odd or selection.ignore is not None or kustomized is not None or bool(roots)
    if not is_special and not any(document.kind == DEFINITION_KIND for document in documents):
        return ReadingRules()
    built = () if kustomized is None else (kustomized,)
    return choose_reading_rules(request.repository, selection.entries, roots, built, documents)


def _check_custom_resources(cache: TreeCache, repository: Repository) -> TreeCache:
    """Return the tree with findings about custom resources, if the source defines their kinds."""
    if not any(document.kind == DEFINITION_KIND for document in cache.source_tree.documents):
        return cache
    from gitsched.reconcile.source.custom_resources import add_custom_resource_findings  # many sources have no definitions

    return add_custom_resource_findings(cache, repository)


def _narrow_remotes(builds: Callable[[], BuildContext], config: Config) -> BuildContext:
    """Return the context of builds, with the other repositories that the read commit itself allows."""
    context = builds()

    def list_allowed(tree: str) -> tuple[str, ...]:
        found = read_config(context.repository, tree, context.caches.files)
        return found.source.kustomize.remotes if found is not None else ()

    return context._replace(remotes=context.remotes._replace(own=config.source.kustomize.remotes), list_allowed=list_allowed)
