"""Recognize the layout of a worktree, and leave out of the proposal what cannot be built."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from gitsched.apis.policy_api import GroupKind
from gitsched.build.closure import resolve_closure
from gitsched.build.remote_base import RemoteBase, RemoteTree
from gitsched.git import Repository, TreeEntry
from gitsched.kinds.foreign_apis import find_foreign_api
from gitsched.layouts.layout import DeployedPath, Layout, LeftOut
from gitsched.layouts.other_tools import describe_other_tools
from gitsched.layouts.proposal import BUNDLES, ENVIRONMENT_LABEL
from gitsched.layouts.recognition import recognize_layout
from gitsched.layouts.repository_files import MANIFEST_SUFFIXES, MAX_FILES, list_parents, parse_documents
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES, Kustomization
from gitsched.manifests.parsed_file import DEFAULT_LIMITS
from gitsched.manifests.parser import parse_file
from gitsched.manifests.sourceignore import IGNORE_FILE, SourceIgnore
from gitsched.manifests.yaml_composer import is_lfs_pointer
from gitsched.model.document import Body, parse_api_group, read_labels
from gitsched.model.finding import Finding, Location, format_count
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.builds.kustomize_roots import PROGRAM_MISSING
from gitsched.reconcile.fetch import write_worktree
from gitsched.reconcile.source.source_reader import is_manifest_path
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES, SYMLINK_MODE

MAX_KINDS = 50
"""Kinds of workloads that a proposed policy selects."""
_DELIVERY_GROUPS = ("argoproj.io", "kustomize.config.k8s.io", "kustomize.toolkit.fluxcd.io", "source.toolkit.fluxcd.io")
_NO_WORKLOADS = ("Namespace", "Node", "Pod")


class Worktree(NamedTuple):
    """The files of a worktree that Git does not ignore, and the documents of those that are manifests, each with its path.

    `notes` name the limits that it exceeds.
    """

    repository: Repository
    entries: list[TreeEntry]
    files: Mapping[str, bytes]
    documents: list[tuple[str, Body]]
    notes: tuple[str, ...] = ()

    def list_groups(self) -> frozenset[str]:
        """Return the API groups of all documents."""
        return frozenset(_read_group(body) for _, body in self.documents)


class DocumentKinds(NamedTuple):
    """Which documents of a repository are what: `cluster` describes clusters, `policies` are the kinds that say where workloads go,
    `policies_of_all` those of all policy APIs, and documents of `groups` are no workloads. The files `written` are left out: an earlier
    `gitsched init` wrote them. `directories` are those of which the user says the cluster, with its name."""

    cluster: GroupKind | None
    policies: Collection[GroupKind]
    policies_of_all: Collection[GroupKind]
    groups: Collection[str]
    written: Collection[str]
    directories: Mapping[str, str] = {}


class RecognizedLayout(NamedTuple):
    """The layout of a worktree. `described` are the labels of the clusters that have documents, by name; `label` is the label of clusters
    that names their environment; `hidden` says that .sourceignore hides the files that are proposed. `policies` are the documents that
    say where workloads go, and `kinds` the (apiVersion, kind) of the workloads. `has_other_policies`: another API places some of them.
    `other_tools` are lines about documents of tools that gitsched does not read, `left_kinds` those about kinds that no policy can select
    without an error."""

    layout: Layout
    files: _WorktreeFiles
    described: Mapping[str, Mapping[str, str]]
    label: str
    hidden: bool
    policies: tuple[Body, ...]
    kinds: tuple[tuple[str, str], ...]
    has_other_policies: bool
    other_tools: tuple[str, ...]
    left_kinds: tuple[str, ...] = ()


def read_worktree(root: Path) -> Worktree:
    """Read the files of a worktree. Raise Permanent if they cannot be read."""
    repository = Repository(root)
    entries = [entry for entry in repository.entries(write_worktree(repository)) if not entry.unsafe]
    notes = [f"the repository has {len(entries):,} files: only the first {MAX_FILES:,} by path are considered"]
    notes, entries = notes if len(entries) > MAX_FILES else [], entries[:MAX_FILES]
    files = {
        entry.path: repository.blob(entry.blob)
        for entry in entries
        if entry.mode in REGULAR_FILE_MODES
        and (is_manifest_path(entry.path) or entry.path.endswith(MANIFEST_SUFFIXES))
        and repository.blob_size(entry.blob) <= DEFAULT_LIMITS.size
    }
    documents = [
        (path, parsed.body)
        for path, data in files.items()
        if is_manifest_path(path)
        for parsed in parse_file(data, path=path, validate=None).documents
    ]
    missing = [path for path, data in files.items() if is_lfs_pointer(data)]
    if missing:
        text = f"{format_count(len(missing), 'manifest is a pointer', 'manifests are pointers')} of Git LFS, such as {missing[0]}"
        notes.append(f"{text}: commit the files themselves, without LFS")
    return Worktree(repository, entries, files, documents, tuple(notes))


def copy_files(root: Path, copy: Path) -> None:
    """Copy the files and links of a worktree that Git does not ignore into another directory."""
    repository = Repository(root)
    for entry in repository.entries(write_worktree(repository)):
        target = copy / entry.path
        if entry.unsafe or entry.mode not in (*REGULAR_FILE_MODES, SYMLINK_MODE):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        data = repository.blob(entry.blob)
        if entry.mode == SYMLINK_MODE:
            target.symlink_to(data.decode("utf-8", "surrogateescape"))
        else:
            target.write_bytes(data)


def recognize_layout_of(worktree: Worktree, wanted: DocumentKinds) -> RecognizedLayout:
    """Recognize the layout of a worktree, and what its documents are."""
    described: dict[str, Mapping[str, str]] = {}
    policies: list[Body] = []
    kinds: dict[tuple[str, str], None] = {}
    other = False
    for path, body in worktree.documents:
        group, kind = _read_group(body), body.get("kind")
        if path in wanted.written:
            continue
        if (group, kind) == wanted.cluster:
            described[str(body["metadata"]["name"])] = read_labels(body)
        elif (group, kind) in wanted.policies:
            policies.append(body)
        elif (group, kind) in wanted.policies_of_all:
            other = True
        elif not (
            group in wanted.groups or group in _DELIVERY_GROUPS or kind in _NO_WORKLOADS or find_foreign_api(group, str(kind))
        ):
            kinds[str(body.get("apiVersion")), str(kind)] = None
    layout = recognize_layout(worktree.files, described, wanted.directories)
    commit = _WorktreeFiles(worktree.repository, worktree.entries)
    layout = _leave_out_unbuildable(layout, commit)
    hidden = _is_hidden(worktree.repository, worktree.entries)
    if len(kinds) > MAX_KINDS and not layout.bundles:
        layout = layout._replace(
            notes=(*layout.notes, f"there are {len(kinds)} kinds of workloads: a proposed policy selects the first {MAX_KINDS}")
        )
    layout = layout._replace(notes=(*worktree.notes, *layout.notes))
    label, documents = _find_label(layout, described), [entry for entry in worktree.documents if entry[0] not in wanted.written]
    tools = tuple(describe_other_tools((entry.path for entry in worktree.entries), documents))
    return RecognizedLayout(layout, commit, described, label, hidden, tuple(policies), tuple(kinds)[:MAX_KINDS], other, tools)


def _read_group(body: Body) -> str:
    return parse_api_group(str(body.get("apiVersion") or body.get("api")))


def _find_label(layout: Layout, described: Mapping[str, Mapping[str, str]]) -> str:
    """Return the label of the described clusters that has the environments of the layout as values."""
    wanted = {variant.target.environment for bundle in layout.bundles for variant in bundle.variants} - {""}
    keys = sorted({key for labels in described.values() for key, value in labels.items() if value in wanted})
    return max(keys, key=lambda key: sum(labels.get(key) in wanted for labels in described.values()), default=ENVIRONMENT_LABEL)


def _is_hidden(repository: Repository, entries: Iterable[TreeEntry]) -> bool:
    texts = {
        entry.path.rpartition("/")[0]: repository.blob(entry.blob).decode("utf-8", "replace")
        for entry in entries
        if entry.path.rpartition("/")[2] == IGNORE_FILE and entry.mode in REGULAR_FILE_MODES
    }
    return SourceIgnore.parse(texts).is_ignored(BUNDLES)


class _WorktreeFiles:
    """The files of a worktree; see `gitsched.build.closure.CommitFiles`."""

    def __init__(self, repository: Repository, entries: Iterable[TreeEntry]) -> None:
        self._repository = repository
        self.entries: Mapping[str, tuple[str, int]] = {entry.path: (entry.blob, entry.mode) for entry in entries}
        self.directories: Collection[str] = {".", *(parent for path in self.entries for parent in list_parents(path))}

    def read_blob(self, blob: str, /) -> bytes:
        return self._repository.blob(blob)

    def open_remote(self, base: RemoteBase, /) -> RemoteTree | str:
        return f"gitsched fetches nothing here; allow {base.name} in source.kustomize.remotes, and build it"

    def is_hidden(self, _path: str, /) -> bool:
        return False

    def read_kustomization(self, blob: str, path: str, /) -> Kustomization | None:
        return parse_file(self.read_blob(blob), path=path, validate=None).kustomization


def _leave_out_unbuildable(layout: Layout, commit: _WorktreeFiles) -> Layout:
    """Return the layout without the directories that gitsched refuses to build, with the first reason of each one."""
    reasons: dict[str, LeftOut] = {}
    for path in dict.fromkeys((*layout.build, *_list_paths(layout))):
        if any(f"{path}/{name}".removeprefix("./") in commit.entries for name in KUSTOMIZATION_NAMES):
            problem = next(iter(resolve_closure(path, commit).problems), None)
            if problem is not None:
                where = f"{problem.path}:{problem.line}"
                reasons[path] = LeftOut(path, f"gitsched cannot build it ({problem.code})", f"{where}: {problem.message}")
    return _leave_out(layout, reasons)


def _leave_out(layout: Layout, reasons: Mapping[str, LeftOut]) -> Layout:
    """Return the layout without these directories."""
    bundles = [
        bundle._replace(variants=tuple(variant for variant in bundle.variants if variant.path not in reasons))
        for bundle in layout.bundles
    ]
    return layout._replace(
        bundles=tuple(bundle for bundle in bundles if bundle.variants),
        build=tuple(path for path in layout.build if path not in reasons),
        left_out=(*layout.left_out, *reasons.values()),
    )


def _find_readers(place: Location, closures: Mapping[str, set[str]], documents: Mapping[str, Mapping[int, list[str]]]) -> list[str]:
    """Return the directories that read the file of a finding, else those of the document of a tool at its line, or that of the change."""
    file, (changed, _, line) = place.path, place.changed_by.rpartition(":")
    readers = [path for path, files in closures.items() if file in files or (not files and file.startswith(f"{path}/"))]
    positions = [(file, place.line), *([(changed, int(line))] if changed else [])]
    starts = [(path, max((start for start in documents.get(path, ()) if start <= line), default=0)) for path, line in positions]
    return readers or [directory for path, start in starts if start for directory in documents[path][start]]


def _list_documents(found: RecognizedLayout) -> dict[str, dict[int, list[str]]]:
    """Return the lines of the documents of files that say what is deployed, each with the directories of its document."""
    variants = [variant for bundle in found.layout.bundles for variant in bundle.variants]
    documents: dict[str, dict[int, list[str]]] = {}
    for path in {path for variant in variants for path, _ in variant.documents}:
        data = found.files.read_blob(found.files.entries[path][0])
        documents[path] = {document.line: [] for document in parse_documents(path, data)}
    for variant in variants:
        for path, line in variant.documents:
            documents[path][line].append(variant.path)
    return documents


def list_new_errors(findings: Iterable[Finding], before: Iterable[Finding]) -> list[Finding]:
    """Return the errors with a place that an earlier validation did not find; a program that is not installed is no reason to leave out
    what it builds."""
    known = {(one.code, one.location, one.message) for one in before if one.severity == "error"}
    return [
        one
        for one in findings
        if one.severity == "error"
        and one.code != PROGRAM_MISSING
        and one.location is not None
        and (one.code, one.location, one.message) not in known
    ]


def leave_out_errors(found: RecognizedLayout, written: str, errors: Iterable[Finding]) -> RecognizedLayout:
    """Return a layout without what the errors of a validation are about, given the text of the file of Bundles that it read.

    An error in that file is about the Bundle at its line, any other one about the directories that read the file of the error, else about
    the kind of the object: a policy selects it.
    """
    layout, reasons = found.layout, dict[str, LeftOut]()
    starts = [number for number, line in enumerate(written.splitlines(), 1) if line.startswith("apiVersion:")]
    dropped: dict[str, LeftOut] = {}
    closures = {path: {*resolve_closure(path, found.files).files} for path in dict.fromkeys((*layout.build, *_list_paths(layout)))}
    documents = _list_documents(found)
    selected: dict[str, Finding] = {}
    for finding in errors:
        if (place := finding.location) is None:
            continue
        text = f"{place.path}:{place.line}: {finding.message}"
        reason = f"gitsched cannot place it ({finding.code})"
        if place.path == BUNDLES and starts:
            bundle = layout.bundles[max(bisect_right(starts, place.line) - 1, 0)]
            dropped.setdefault(bundle.name, LeftOut(bundle.name, reason, finding.message))
        readers = _find_readers(place, closures, documents)
        for path in readers:
            reasons.setdefault(path, LeftOut(path, reason, text))
        if not readers and finding.resource is not None:
            selected.setdefault(finding.resource[0], finding)
    kept = layout._replace(bundles=tuple(bundle for bundle in layout.bundles if bundle.name not in dropped))
    kept = kept._replace(left_out=(*kept.left_out, *dropped.values()))
    return _leave_out_kinds(found._replace(layout=_leave_out(kept, reasons)), selected)


def _leave_out_kinds(found: RecognizedLayout, errors: Mapping[str, Finding]) -> RecognizedLayout:
    """Return the layout without the kinds about whose objects there are errors: the first one of each."""
    left = [kind for _, kind in found.kinds if kind in errors]
    if not left:
        return found
    lines = [f"{kind}: {errors[kind].location}: {errors[kind].message}" for kind in dict.fromkeys(left)]
    kinds = tuple(one for one in found.kinds if one[1] not in errors)
    return found._replace(kinds=kinds, left_kinds=(*found.left_kinds, *lines))


def _list_paths(layout: Layout) -> list[str]:
    variants: Iterable[DeployedPath] = (variant for bundle in layout.bundles for variant in bundle.variants)
    return [variant.path for variant in variants]
