"""Limit an explanation to the clusters that --why-not names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gitsched.model.document import Key
from gitsched.model.errors import UnknownCluster
from gitsched.model.explanation import Explanation
from gitsched.model.finding import format_names
from gitsched.model.similar_names import suggest_names
from gitsched.simulate.failure_domains import ClusterIndex


def complete_clusters(names: Iterable[str], namespace: str, known: ClusterIndex) -> tuple[str, ...]:
    """Return the full names of clusters that may be given without their namespace. Of several clusters, that in `namespace` is meant; raise
    UnknownCluster if there is none, or it is not clear which one is meant."""
    return tuple(dict.fromkeys(name if name in known else _complete(name, namespace, known) for name in names))


def _complete(name: str, namespace: str, known: ClusterIndex) -> str:
    found = {cluster: key.namespace for cluster in known for key in _list_keys(cluster, known) if key.name == name}
    own = [cluster for cluster, place in found.items() if place == namespace]
    if len(own or found) != 1:
        meant = f"; did you mean one of {format_names(sorted(found))}?"
        raise UnknownCluster(name, meant if found else suggest_names(name, known))
    return next(iter(own or found))


def _list_keys(cluster: str, known: ClusterIndex) -> list[Key]:
    return [document.key for _, document, _ in known[cluster]]


def select_clusters(found: Explanation, clusters: Sequence[str], namespace: str, known: ClusterIndex) -> Explanation:
    """Return what an explanation has about some clusters. Candidates in the `namespace` of the workload are named without it."""
    names = {name: name for name in clusters}
    names |= {key.name: name for name in clusters for key in _list_keys(name, known) if key.namespace == namespace}
    kept = tuple(candidate for candidate in found.candidates if candidate.result.name in names)
    result = tuple(share for share in found.result if share.cluster in clusters)
    stays = []
    for share in result:
        own = [candidate.result for candidate in kept if names[candidate.result.name] == share.cluster]
        if own and not any(each.eligible for each in own):
            stays.append(f"It stays on {share.cluster}, although it does not fit there: {own[0].reason}.")
    if not found.policy and not result:
        only = f"no {'further ' if found.result else ''}cluster gets it"
        only = "only clusters of what it is attached to get it" if found.attached_to else only
        stays.append(f"No policy selects it, so {only}.")
    return found._replace(
        state=" ".join(stays),
        candidates=kept,
        result=result,
        division=(),
        division_rule=(),
        only_some_clusters=True,
    )
