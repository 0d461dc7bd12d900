"""What a repository deploys where, as its layout says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

DirectoryKind = Literal["kustomize", "helm", "plain"]


class Target(NamedTuple):
    """The clusters that a directory is deployed to: those with these names, or those of an environment. Neither: all clusters."""

    names: tuple[str, ...] = ()
    environment: str = ""


class HelmRelease(NamedTuple):
    """The release of a chart: its name and namespace, "" for those of the Bundle."""

    name: str = ""
    namespace: str = ""


class DeployedPath(NamedTuple):
    """A directory that the layout deploys. `bundle` identifies the directories that are variants of each other; `values_files` are those
    of a Helm chart, from its directory. `variables` are what Flux substitutes, for each cluster. `explicit` says that a document of a
    delivery tool names the directory and its clusters."""

    path: str
    target: Target
    bundle: str
    kind: DirectoryKind = "kustomize"
    values_files: tuple[str, ...] = ()
    explicit: bool = False
    variables: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    release: HelmRelease = HelmRelease()


class LeftOut(NamedTuple):
    """A directory that is not proposed. `place` is the file that names it, as PATH:LINE, or the directory. `reason` is the same for all
    directories that are left out for it, and `detail` is about this one."""

    place: str
    reason: str
    detail: str = ""


class Recognition(NamedTuple):
    """A layout that was recognized: its name, and what shows it."""

    layout: str
    reason: str


class Findings(NamedTuple):
    """What one recognizer finds. `clusters` are names of clusters with the environment of each one, "" if it is unknown. `own` are
    directories with the documents of the delivery tool itself, which are no bundles."""

    recognitions: tuple[Recognition, ...] = ()
    deployed: tuple[DeployedPath, ...] = ()
    clusters: Mapping[str, str] = {}
    left_out: tuple[LeftOut, ...] = ()
    own: tuple[str, ...] = ()


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
    """The proposal for a repository. `build` are directories for source.kustomize.build, if nothing differs between clusters.

    `clusters` are names with the environment of each one. `invented` says that the repository names no cluster.
    """

    recognitions: tuple[Recognition, ...] = ()
    bundles: tuple[ProposedBundle, ...] = ()
    build: tuple[str, ...] = ()
    clusters: Mapping[str, str] = {}
    invented: bool = False
    left_out: tuple[LeftOut, ...] = ()


def count_words(number: int, word: str, plural: str = "") -> str:
    """Return a number with a word in the singular or plural."""
    return f"{number} {word if number == 1 else plural or f'{word}s'}"
