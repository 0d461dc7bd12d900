"""Recognize the layout of a repository: a table of recognizers, and the bundles that follow from what they find."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from gitsched.layouts.argocd import recognize_argocd
from gitsched.layouts.flux import recognize_flux
from gitsched.layouts.helm import recognize_charts
from gitsched.layouts.kustomize import recognize_overlays
from gitsched.layouts.layout import (
    UNUSED,
    DeployedPath,
    DocumentRule,
    Findings,
    Layout,
    LeftOut,
    ProposedBundle,
    Recognition,
    Target,
)
from gitsched.layouts.overlay_names import (
    ENVIRONMENTS,
    has_container,
    is_cluster_name,
    is_unused,
    is_version,
    make_bundle_name,
    split_path,
)
from gitsched.layouts.plain_directories import recognize_plain_directories
from gitsched.layouts.repository_files import MANIFEST_SUFFIXES, NAMES_DIRECTORY, RepositoryFiles, is_below
from gitsched.model.finding import format_count

MAX_BUNDLES: Final = 500
"""Bundles that are proposed; a note counts the others."""

Recognizer = Callable[[RepositoryFiles, Collection[str]], Findings]
LAYOUTS: Final[tuple[Recognizer, ...]] = (
    recognize_flux,
    recognize_argocd,
    recognize_overlays,
    recognize_charts,
    recognize_plain_directories,
)
"""The recognizers. Those that know where a directory goes come first: a directory belongs to the first one that finds it. They receive the
files and the names of the clusters that are known by then."""


TOOLS: Final = (recognize_flux, recognize_argocd)
"""The recognizers of documents that say what is deployed."""
_NOWHERE: Final = "no directory or document says where it is deployed: say it with --cluster DIR=NAME, or add a Bundle"
_NO_CLUSTER: Final = "no cluster is in its environment: say the cluster with --cluster DIR=NAME, or label one with the environment"
_UNNAMED: Final = (
    "no document of Flux or Argo CD names it, so that it may not be deployed: if a cluster gets it, say so with --cluster DIR=NAME, or add "
    "a Bundle"
)


def recognize_layout(
    files: Mapping[str, bytes], described: Collection[str] = (), directories: Mapping[str, str] | None = None
) -> Layout:
    """Return the proposal for the files of a repository, by path. `described` are the clusters that it has documents for, and `directories`
    those of which the user says the cluster, with its name."""
    repository = RepositoryFiles(files, directories)
    clusters = dict.fromkeys((*described, *repository.clusters.values()), "")
    recognitions: list[Recognition] = []
    left_out: list[LeftOut] = []
    deployed: list[DeployedPath] = []
    covered: set[str] = set()
    own: list[str] = []
    roots: dict[str, None] = {}
    rules: dict[DocumentRule, None] = {}
    has_tools = bool(repository.templates)
    for recognize in LAYOUTS:
        found = recognize(repository, clusters)
        if recognize in TOOLS:
            has_tools |= bool(found.deployed) or any(entry.detail in repository.directories for entry in found.left_out)
        new = [
            entry for entry in found.deployed if entry.path not in covered and not any(is_below(entry.path, path) for path in own)
        ]
        own += found.own
        rules |= dict.fromkeys(found.rules)
        roots |= dict.fromkeys(found.roots)
        left_out += found.left_out
        for path in {entry.detail for entry in found.left_out if entry.detail in repository.directories}:
            covered |= {path, *repository.list_reached(path)[0]} if path in repository.kustomizations else {path}
        if found.deployed and not new:
            continue
        deployed += new
        for path in {entry.path for entry in new}:
            covered |= {path, *repository.list_reached(path)[0]}
        if recognize in TOOLS or not has_tools or repository.clusters:
            recognitions += found.recognitions
        for name, environment in found.clusters.items():
            clusters[name] = clusters.get(name) or environment
    deployed = [_add_target(entry, clusters, repository.find_cluster(entry.path)[1]) for entry in deployed]
    deployed, others = _leave_out_unclear(deployed, repository, has_tools)
    left_out += others
    deployed, others = _leave_out_names(deployed, {*repository.clusters.values()})
    left_out += others
    clusters = {name: environment for name, environment in clusters.items() if is_cluster_name(name) or name in described}
    if not any(entry.target != Target() for entry in deployed):
        build = () if recognitions else tuple(sorted(entry.path for entry in deployed if entry.kind == "kustomize"))
        charts = [entry for entry in deployed if entry.kind == "helm"]
        bundles = _make_bundles(charts)
        environments_of = _name_environments(clusters)
        notes = (*_note_templates(repository), *repository.notes, *_note_bundles(bundles))
        return Layout(tuple(recognitions), bundles[:MAX_BUNDLES], build, environments_of, False, tuple(left_out), notes=notes)
    placed = [entry for entry in deployed if entry.target != Target()]
    left_out += [LeftOut(entry.path, _NOWHERE) for entry in deployed if entry.target == Target()]
    environments = {entry.target.environment: "" for entry in placed if entry.target.environment}
    used = {*described, *(name for entry in placed for name in entry.target.names)}
    clusters = {name: environment for name, environment in clusters.items() if name in used}
    invented = not clusters
    if invented:
        clusters = {name: name for name in environments}
    fleet = _name_environments(clusters)
    empty = {*environments} - {*fleet.values()} if not described else set[str]()
    left_out += [
        LeftOut(entry.path, _NO_CLUSTER, entry.target.environment) for entry in placed if entry.target.environment in empty
    ]
    placed = [entry for entry in placed if entry.target.environment not in empty]
    hidden = _list_hidden_documents(files) if any(entry.explicit for entry in placed) else ()
    bundles = _make_bundles(placed, fleet)
    notes = (*_note_templates(repository), *repository.notes, *_note_bundles(bundles))
    build = tuple(roots) if bundles else ()
    return Layout(tuple(recognitions), bundles[:MAX_BUNDLES], build, fleet, invented, tuple(left_out), tuple(rules), hidden, notes)


def _leave_out_unclear(
    deployed: Iterable[DeployedPath], repository: RepositoryFiles, has_tools: bool
) -> tuple[list[DeployedPath], list[LeftOut]]:
    """Return the directories without those that may not be deployed at all, and these as left out. `has_tools`: documents of delivery tools
    say what is deployed."""
    kept: list[DeployedPath] = []
    left_out: list[LeftOut] = []
    for entry in deployed:
        if entry.explicit or repository.find_cluster(entry.path)[1]:
            kept.append(entry)
        elif has_tools or is_unused(entry.path):
            left_out.append(LeftOut(entry.path, _UNNAMED if has_tools else UNUSED))
        else:
            kept.append(entry)
    return kept, left_out


def _leave_out_names(deployed: Iterable[DeployedPath], named: Collection[str]) -> tuple[list[DeployedPath], list[LeftOut]]:
    """Return the directories without those for what is no cluster, and these as left out. `named` are clusters that the user names."""
    kept: list[DeployedPath] = []
    left_out: list[LeftOut] = []
    for entry in deployed:
        wrong = next((name for name in entry.target.names if not is_cluster_name(name)), None)
        version = next((name for name in entry.target.names if not entry.explicit and is_version(name) and name not in named), None)
        if version is not None:
            reason = "named like a version, not like a cluster: if it is for one, say so with --cluster DIR=NAME"
            left_out.append(LeftOut(entry.path, reason, version))
        elif wrong is not None:
            reason = "no cluster can have this name, of lower case letters, digits and '-': say the name with --cluster DIR=NAME"
            left_out.append(LeftOut(entry.path, reason, wrong))
        else:
            kept.append(entry)
    return kept, left_out


def _note_templates(repository: RepositoryFiles) -> tuple[str, ...]:
    found = repository.templates
    words = "file with documents of Flux or Argo CD is a template", "files with documents of Flux or Argo CD are templates"
    text = f"{format_count(len(found), *words)} of a chart, such as {next(iter(found), '')}: what is deployed depends on its values"
    return (text,) if found else ()


def _note_bundles(bundles: Collection[ProposedBundle]) -> tuple[str, ...]:
    text = f"{len(bundles):,} bundles were found: only the first {MAX_BUNDLES:,} are proposed; add a Bundle for each of the others"
    return (text,) if len(bundles) > MAX_BUNDLES else ()


def _list_hidden_documents(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the outermost hidden directories with documents of delivery tools that name directories."""
    found: dict[str, None] = {}
    for path in sorted(files):
        parts = path.split("/")
        index = next((index for index, part in enumerate(parts[:-1]) if part.startswith(".")), None)
        if index is not None and path.endswith(MANIFEST_SUFFIXES) and NAMES_DIRECTORY.search(files[path]):
            found["/".join(parts[: index + 1])] = None
    return tuple(found)


def _name_environments(clusters: Mapping[str, str]) -> dict[str, str]:
    """Return clusters with their environments; a cluster whose name is that of an environment is the cluster of it."""
    return {name: environment or (name if name in ENVIRONMENTS else "") for name, environment in sorted(clusters.items())}


def _add_target(entry: DeployedPath, clusters: Collection[str], cluster: str) -> DeployedPath:
    """Return a directory with the clusters that its path names, if nothing else says where it goes. `cluster` is what the user says."""
    if cluster and not (entry.target != Target() and all(map(is_cluster_name, entry.target.names))):
        return entry._replace(target=Target((cluster,)))
    if entry.target != Target():
        return entry
    name = split_path(entry.path, clusters)
    names = (name.cluster,) if name.cluster in clusters else ()
    return entry._replace(target=Target(names, "" if names else name.environment))


def _make_bundles(deployed: Iterable[DeployedPath], clusters: Collection[str] = ()) -> tuple[ProposedBundle, ...]:
    """Group directories by their bundle. Two directories for the same clusters are not variants: the second is a bundle of its own."""
    groups: dict[str, list[DeployedPath]] = {}
    entries = sorted(deployed)
    sharing = Counter(entry.bundle for entry in entries)
    for entry in entries:
        bundle = entry.path if sharing[entry.bundle] == 1 and _has_misleading_name(entry) else entry.bundle
        for key in (bundle, entry.path, f"{entry.path} {' '.join(entry.values_files)}"):
            group = groups.setdefault(key, [])
            if not any(_overlaps(entry.target, other.target) for other in group):
                group.append(entry)
                break
    bundles: dict[str, ProposedBundle] = {}
    common = _find_common_directory(groups)
    for key, variants in sorted(groups.items()):
        if variants:
            name = make_bundle_name(key.removeprefix(common), bundles)
            ordered = sorted(variants, key=lambda entry: (not entry.target.names, not entry.target.environment, entry.path))
            bundles[name] = ProposedBundle(name, tuple(_drop_target(entry, clusters) for entry in ordered))
    return tuple(bundles.values())


def _has_misleading_name(entry: DeployedPath) -> bool:
    """Return whether a directory looks like an overlay of a cluster, and a document says that it goes to another one: a namespace `dev` is
    no environment."""
    return entry.explicit and split_path(entry.path).cluster not in ("", *entry.target.names) and not has_container(entry.path)


def _find_common_directory(paths: Collection[str]) -> str:
    """Return the directory that all paths are in, with a slash at the end; "" for the root."""
    parents = [path.rpartition("/")[0] for path in paths]
    common = posixpath.commonpath(parents) if parents and all(parents) else ""
    return f"{common}/" if common else ""


def _overlaps(left: Target, right: Target) -> bool:
    if left.names and right.names:
        return bool({*left.names} & {*right.names})
    return left == right


def _drop_target(entry: DeployedPath, clusters: Collection[str]) -> DeployedPath:
    """Return a directory that all clusters get, and that is not named like one of them, without their names: further clusters get it,
    too."""
    is_general = entry.explicit and entry.bundle == entry.path and not entry.values_files
    return entry._replace(target=Target()) if is_general and {*entry.target.names} >= {*clusters} else entry
