"""Holds of stateful workloads: what is held, why, and what releases it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from gitsched.model.commit import RELEASE_TRAILER
from gitsched.model.document import Key
from gitsched.named_tuples import NamedTuple

STATEFUL_LABEL = "gitsched.io/stateful"
"""The label of a workload that says whether it has data: "true", or "false" to move it like a workload without data."""
RELEASE_ANNOTATION = "gitsched.io/release"
"""The annotation of a workload with the clusters that it may leave, separated by commas."""
HELD_ANNOTATION = "gitsched.io/held"
"""The annotation of the record of a held workload."""


class Releases(NamedTuple):
    """What a run releases: workloads as [kind/]namespace/name, and clusters that every workload may leave."""

    workloads: frozenset[str] = frozenset()
    clusters: frozenset[str] = frozenset()

    def names_workload(self, key: Key) -> bool:
        """Return whether a workload is named."""
        return bool(self.workloads) and not self.workloads.isdisjoint(list_release_names(key))

    def releases(self, key: Key, leaving: Collection[str]) -> bool:
        """Return whether a workload may leave some clusters."""
        return self.names_workload(key) or not self.clusters.isdisjoint(leaving)


NO_RELEASES = Releases()


def make_releases(workloads: Iterable[str], clusters: Iterable[str]) -> Releases:
    """Return the releases that trailers and options write."""
    return Releases(frozenset(name.lower() for name in split_names(workloads)), split_names(clusters))


def split_names(texts: Iterable[str]) -> frozenset[str]:
    """Return the names in texts where commas separate them."""
    return frozenset(name.strip() for text in texts for name in text.split(",") if name.strip())


def list_release_names(key: Key) -> tuple[str, ...]:
    """Return the texts that name a workload in a release, in lower case, the shortest first."""
    path = f"{key.namespace}/{key.name}" if key.namespace else key.name
    return path.lower(), key.title.lower(), str(key).lower()


class HeldPlacement(NamedTuple):
    """A stateful workload that keeps its clusters although the policies choose others.

    `clusters` are those that it keeps, `wanted` those that it would have, with their replicas. `reason` says in one clause why it would
    move, `data` lists what stays behind. `leaving` are the clusters that it would leave, `lost` those of them without a document.
    `evicted` says that a taint, a condition or bad health causes the move. `adopted` says why a workload is held that gitsched took over,
    else it is "".
    """

    clusters: Mapping[str, int | None]
    wanted: Mapping[str, int | None]
    reason: str
    data: tuple[str, ...]
    leaving: tuple[str, ...]
    lost: tuple[str, ...] = ()
    evicted: bool = False
    adopted: str = ""


def describe_release(key: Key, held: HeldPlacement) -> str:
    """Return how to release a held workload, as an imperative."""
    name = f"{key.namespace}/{key.name}" if key.namespace else f"{key.kind}/{key.name}"
    clusters = ",".join(held.leaving or sorted(held.wanted.keys() - held.clusters.keys()))
    text = f"add the trailer {RELEASE_TRAILER}: {name} to a commit, or annotate the workload with {RELEASE_ANNOTATION}: {clusters}"
    return f"{text}, or pass --release-cluster {held.lost[0]} if that cluster is lost" if held.lost else text
