"""What a repository deploys where, as its layout says it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from gitsched.named_tuples import NamedTuple

UNUSED: Final = "its name says that it is not in use: if a cluster gets it, say so with --cluster DIR=NAME, or add a Bundle"
"""Why what is below a directory such as `_archive` is left out."""
NOT_BUILT: Final = "gitsched does not build what comes from elsewhere: keep it in its document, or commit the files"
"""Why charts and directories of other servers are left out."""
DirectoryKind = Literal["kustomize", "helm", "plain"]


class Target(NamedTuple):
    """The clusters that a directory is deployed to: those with these names, or those of an environment. Neither: all clusters."""

    names: tuple[str, ...] = ()
    environment: str = ""


class HelmRelease(NamedTuple):
    """The release of a chart: its name and namespace, "" for those of the Bundle, and its own values as JSON, "" for none."""

    name: str = ""
    namespace: str = ""
    values: str = ""


class LeftOut(NamedTuple):
    """A directory that is not proposed. `place` is the file that names it, as PATH:LINE, or the directory. `reason` is the same for all
    directories that are left out for it, and `detail` is about this one."""

    place: str
    reason: str
    detail: str = ""


class DeployedPath(NamedTuple):
    """A directory that the layout deploys. `bundle` identifies the directories that are variants of each other; `values_files` are those
    of a Helm chart, from its directory. `variables` are what Flux substitutes, for each cluster. `explicit` says that a document of a
    delivery tool names the directory and its clusters; `documents` are the files and lines of these, and `lost_settings` their settings
    that `gitsched export` does not write, each as the reason."""

    path: str
    target: Target
    bundle: str
    kind: DirectoryKind = "kustomize"
    values_files: tuple[str, ...] = ()
    explicit: bool = False
    variables: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    release: HelmRelease = HelmRelease()
    documents: tuple[tuple[str, int], ...] = ()
    lost_settings: tuple[LeftOut, ...] = ()


class DocumentRule(NamedTuple):
    """The documents of a delivery tool in a directory say how a cluster gets what several documents build differently."""

    directory: str
    cluster: str


class Recognition(NamedTuple):
    """A layout that was recognized: its name, and what shows it."""

    layout: str
    reason: str


class Findings(NamedTuple):
    """What one recognizer finds. `clusters` are names of clusters with the environment of each one, "" if it is unknown. `own` are
    directories with the documents of the delivery tool itself, which are no bundles. `rules` are needed where documents differ, and `roots`
    where kustomizations change documents of the tool and no document says what builds them."""

    recognitions: tuple[Recognition, ...] = ()
    deployed: tuple[DeployedPath, ...] = ()
    clusters: Mapping[str, str] = {}
    left_out: tuple[LeftOut, ...] = ()
    own: tuple[str, ...] = ()
    rules: tuple[DocumentRule, ...] = ()
    roots: tuple[str, ...] = ()


class ProposedBundle(NamedTuple):
    """A bundle with its variants. Clusters are chosen by the first variant that matches them, so those by name come first."""

    name: str
    variants: tuple[DeployedPath, ...]

    def list_variables(self) -> dict[str, dict[str, str]]:
        """Return the variables by name, with their values by cluster."""
        found: dict[str, dict[str, str]] = {}
        for variant in self.variants:
            for cluster, values in variant.variables:
                for name, value in values:
                    found.setdefault(name, {})[cluster] = value
        return found


class Layout(NamedTuple):
    """The proposal for a repository. `build` are directories for source.kustomize.build: with `bundles` those that have documents of Flux.

    `clusters` are names with the environment of each one. `invented` says that the repository names no cluster. `rules` are for
    source.variants. `hidden_documents` are hidden directories with documents of delivery tools. `notes` name the limits that were exceeded.
    """

    recognitions: tuple[Recognition, ...] = ()
    bundles: tuple[ProposedBundle, ...] = ()
    build: tuple[str, ...] = ()
    clusters: Mapping[str, str] = {}
    invented: bool = False
    left_out: tuple[LeftOut, ...] = ()
    rules: tuple[DocumentRule, ...] = ()
    hidden_documents: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def choose_rules(
    documents: Mapping[str, Mapping[str, str]], own: Mapping[str, str] | None = None
) -> tuple[DocumentRule, ...] | None:
    """Return rules that choose the documents of each cluster; None if directories do not tell them apart.

    `documents` are the files of the documents by cluster, each with a text that is equal for documents which build alike, "" for a file
    with several that differ. `own` are directories of clusters.
    """
    if len(documents) < 2:
        return None
    directories: dict[str, str] = {}
    for cluster, files in documents.items():
        directory = (own or {}).get(cluster, "")
        inside = directory and all(file.startswith(f"{directory}/") for file in files)
        directories[cluster] = directory if inside else _find_common_directory(files)
    for cluster, directory in directories.items():
        below = [text for files in documents.values() for file, text in files.items() if f"{file}/".startswith(f"{directory}/")]
        if directory == "." or len(set(below)) != 1 or "" in documents[cluster]:
            return None
    return tuple(DocumentRule(directory, cluster) for cluster, directory in sorted(directories.items()))


def _find_common_directory(files: Iterable[str]) -> str:
    return posixpath.commonpath([posixpath.dirname(file) or "." for file in files])
