"""Findings about add-on scores that count as 0: expired, missing or misspelt ones, and scores of unknown clusters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from typing import Any

from gitsched.apis.ocm.prioritizers import AddOnScores, PrioritizerScores
from gitsched.apis.ocm.scheduling import PlacementResult
from gitsched.model.document import Body, Document, get_field
from gitsched.model.finding import FieldOrigin, Finding, Pointer, format_names, locate_document
from gitsched.model.similar_names import find_similar
from gitsched.model.time import format_time

MAX_CLUSTERS = 20
"""Clusters that one message names; it counts the others."""
MAX_DOCUMENTS = 20
"""Findings about scores of unknown clusters; the last one counts the others."""
_MAX_LOOKUPS = 100
"""Unknown names of scores for which a similar one is sought; further ones are reported without it."""


def list_placement_findings(
    results: Iterable[PlacementResult], scores: PrioritizerScores, names: tuple[str, ...]
) -> Iterator[Finding]:
    """Yield the findings about the scores that Placements use. `names` are the clusters by candidate index."""
    suggest = _Suggestions().suggest
    for result in results:
        pointers: dict[tuple[Any, Any], Pointer] | None = None
        candidates = frozenset(result.choice.members) if result.choice is not None and result.add_ons else frozenset[int]()
        for (resource, score), add_on in result.add_ons.items():
            if candidates:
                for finding, member in _list_add_on_findings(
                    result.placement.document, (resource, score), add_on, scores, candidates, names, suggest
                ):
                    pointers = _index_add_ons(result.placement.document.body) if pointers is None else pointers
                    pointer, origin = pointers.get((resource, score)), result.placement.document.origin
                    yield (
                        finding._replace(field=FieldOrigin(origin, (*pointer, member)))
                        if pointer and origin is not None
                        else finding
                    )


def _list_add_on_findings(
    placement: Document,
    coordinate: tuple[str, str],
    add_on: AddOnScores,
    scores: PrioritizerScores,
    candidates: frozenset[int],
    names: tuple[str, ...],
    suggest: Callable[[str, Collection[str]], str],
) -> Iterator[tuple[Finding, str]]:
    """Yield the findings about one score, with the member of its coordinate that each is about."""
    resource, score = coordinate
    if len(add_on.missing) == len(names):
        if resource not in (known := scores.list_resources()):
            message = f"{placement.key} uses 0 for the score {resource}/{score}: no AddOnPlacementScore has the name {resource}"
            yield _make_score_finding("ocm-score-unknown", f"{message}{suggest(resource, known)}", placement), "resourceName"
            return
        known = scores.list_score_names(resource)
        message = f"{placement.key} uses 0 for the score {resource}/{score}: no AddOnPlacementScore {resource} has a score {score}"
        yield _make_score_finding("ocm-score-unknown", f"{message}{suggest(score, known)}", placement), "scoreName"
        return
    missing = [names[index] for index in add_on.missing if index in candidates]
    if missing:
        where = format_names(missing, MAX_CLUSTERS)
        message = f"{placement.key} uses 0 for the score {resource}/{score} of {where}: there is no such score"
        yield _make_score_finding("ocm-score-missing", message, placement), "scoreName"
    expired: dict[datetime, list[str]] = {}
    for index, valid_until in add_on.expired:
        if index in candidates:
            expired.setdefault(valid_until, []).append(names[index])
    if expired:
        parts = [
            f"{format_names(clusters, MAX_CLUSTERS)} since {format_time(until)}"
            for until, clusters in sorted(expired.items())[:MAX_CLUSTERS]
        ]
        more = f", and others at {len(expired) - MAX_CLUSTERS} more times" if len(expired) > MAX_CLUSTERS else ""
        message = f"{placement.key} uses 0 for the score {resource}/{score}, which has expired: {', '.join(parts)}{more}; update the scores"
        yield _make_score_finding("ocm-scores-expired", message, placement), "scoreName"


def list_unknown_clusters(documents: Iterable[Document], known: Collection[str]) -> Iterator[Finding]:
    """Yield a finding for each AddOnPlacementScore whose namespace is not the name of a ManagedCluster."""
    suggest = _Suggestions().suggest
    others = [document for document in documents if document.key.namespace not in known]
    for document in others[:MAX_DOCUMENTS]:
        message = f"{document.key} has no effect: there is no ManagedCluster {document.key.namespace}"
        hint = suggest(document.key.namespace, known)
        yield Finding("warning", "ocm-score-cluster-unknown", f"{message}{hint}", locate_document(document), document.key.resource)
    if len(others) > MAX_DOCUMENTS:
        message = (
            f"{len(others) - MAX_DOCUMENTS} more AddOnPlacementScores have no effect: their namespaces are not ManagedClusters"
        )
        yield Finding("warning", "ocm-score-cluster-unknown", message)


def _make_score_finding(code: str, message: str, placement: Document) -> Finding:
    return Finding("warning", code, message, locate_document(placement), placement.key.resource)


def _index_add_ons(body: Body) -> dict[tuple[Any, Any], Pointer]:
    """Return the fields of the prioritizers that use the score of an add-on, by the name of the resource and of the score."""
    found: dict[tuple[Any, Any], Pointer] = {}
    for index, entry in enumerate(get_field(body, "spec", "prioritizerPolicy", "configurations") or ()):
        add_on = get_field(entry, "scoreCoordinate", "addOn") or {}
        pointer = ("spec", "prioritizerPolicy", "configurations", index, "scoreCoordinate", "addOn")
        found.setdefault((add_on.get("resourceName"), add_on.get("scoreName")), pointer)
    return found


class _Suggestions:
    """The most similar existing names for the first unknown ones, because each is compared with all existing names."""

    def __init__(self) -> None:
        self._lookups = 0

    def suggest(self, name: str, known: Collection[str]) -> str:
        """Return which existing name is probably meant; "" if none is similar, or after too many names."""
        self._lookups += 1
        if self._lookups > _MAX_LOOKUPS:
            return ""
        near = find_similar(name, known)
        return f"; did you mean {near}?" if near else ""
