"""What two output trees deliver otherwise."""

from __future__ import annotations

from gitsched.git import Repository
from gitsched.model.change import Choice, Move
from gitsched.plan.delivery import Difference, Lookup, compare_manifests, list_differences
from gitsched.render.layout import CLUSTERS, object_path
from gitsched.report.digest import digest
from gitsched.report.review import Delivery


def find_differences(repository: Repository, prefix: str, before: str | None, after: str) -> tuple[Difference, ...]:
    """The manifests that differ between two trees of the output branch; `prefix` is where the output lies inside them."""
    changed = (path.removeprefix(prefix) for path in repository.changed(before, after) if path.startswith(prefix))
    return list_differences(changed, _looking(repository, prefix, before), _looking(repository, prefix, after))


def describe_differences(repository: Repository, prefix: str, before: str | None, differences: tuple[Difference, ...]) -> Delivery:
    """The same with their text, against the tree that was there before."""

    def former() -> list[str]:
        entries = repository.entries(before, f"{prefix}{CLUSTERS}") if before else []
        return [entry.path.removeprefix(prefix) for entry in entries]

    return compare_manifests(differences, former, _looking(repository, prefix, before), repository.blob)


def digest_of(moves: tuple[Move, ...], differences: tuple[Difference, ...], choices: tuple[Choice, ...] = ()) -> str:
    """The digest of a plan: see `report.digest`.

    A copy in a cluster that a workload leaves may stay for a while or be gone at once, which is a matter of the moment.
    """
    leaving = {object_path(cluster, move.key) for move in moves for cluster in move.before if cluster not in move.after}
    return digest(moves, {entry.path: entry.after for entry in differences if entry.path not in leaving}, choices)


def _looking(repository: Repository, prefix: str, tree: str | None) -> Lookup:
    def look(path: str) -> str | None:
        entry = repository.entry(tree, f"{prefix}{path}") if tree else None
        return entry[0] if entry else None

    return look
