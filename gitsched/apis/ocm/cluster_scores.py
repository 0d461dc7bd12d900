"""ClusterScores: normalize observed values to scores from -100 to 100 and build AddOnPlacementScores from them.

Pure: who asks whom is the business of `metrics`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from gitsched.apis.ocm.names import ADDON_SCORE, GROUP, VERSIONS
from gitsched.model.document import Body, get_field
from gitsched.model.finding import Issue
from gitsched.model.time import format_time

GITSCHED_GROUP, CLUSTER_SCORES = "gitsched.io", "ClusterScores"
MIN_SCORE, MAX_SCORE = -100, 100


class ScoreRange(NamedTuple):
    """The measure that is scored -100, and the one that is scored 100; the first may be the greater one."""

    worst: float
    best: float


class ScoreDefinition(NamedTuple):
    """One score. `source` is prometheus or static, `spec` what the document says under that name. Without a `range` the lowest and the
    highest value seen make one; `prefer` says which of them is best."""

    name: str
    source: str
    spec: Body
    range: ScoreRange | None
    prefer: str


def read_score_definitions(body: Body) -> tuple[ScoreDefinition, ...]:
    """The scores of a ClusterScores that passed its schema."""
    return tuple(_read_score_definition(entry) for entry in body["spec"]["scores"])


def _read_score_definition(entry: Body) -> ScoreDefinition:
    source = "prometheus" if "prometheus" in entry else "static"
    written = entry.get("range")
    scale = ScoreRange(float(written["worst"]), float(written["best"])) if written else None
    return ScoreDefinition(entry["name"], source, entry.get(source) or {}, scale, str(entry.get("prefer") or "High"))


def validate_cluster_scores(body: Body) -> Iterator[Issue]:
    """What a schema cannot say about a ClusterScores."""
    seen: set[str] = set()
    for index, entry in enumerate(get_field(body, "spec", "scores") or ()):
        at: tuple[str | int, ...] = ("spec", "scores", index)
        if entry["name"] in seen:
            yield Issue("error", "ocm-score-duplicate", f"the score {entry['name']!r} is there twice", (*at, "name"))
        seen.add(entry["name"])
        if ("prometheus" in entry) == ("static" in entry):
            yield Issue("error", "ocm-score-source", "a score has either prometheus or static", at)
        written = entry.get("range")
        if written and written["worst"] == written["best"]:
            yield Issue("error", "ocm-score-source", "the worst value cannot be the best", (*at, "range"))


def normalize_scores(values: Mapping[str, float], measure: ScoreDefinition) -> dict[str, int]:
    """The score of each cluster; values beyond the range count as its end. All are best where there is nothing between them."""
    scale = measure.range
    if scale is None:
        low, high = min(values.values(), default=0.0), max(values.values(), default=0.0)
        if low == high:
            return dict.fromkeys(values, MAX_SCORE)
        scale = ScoreRange(low, high) if measure.prefer == "High" else ScoreRange(high, low)
    width = scale.best - scale.worst
    return {
        cluster: max(MIN_SCORE, min(MAX_SCORE, round(MIN_SCORE + (MAX_SCORE - MIN_SCORE) * (value - scale.worst) / width)))
        for cluster, value in values.items()
    }


def build_addon_scores(
    name: str, clusters: Iterable[str], columns: Mapping[str, Mapping[str, int]], until: datetime | None
) -> list[dict[str, Any]]:
    """A document for each cluster that has a score; `columns` are scores by name and cluster. One without a score is left out: it counts
    as 0."""
    documents = []
    for cluster in sorted(clusters):
        scores = [{"name": score, "value": column[cluster]} for score, column in columns.items() if cluster in column]
        if scores and "." not in cluster:  # a namespace has no dots, so such a cluster can have no scores
            status: dict[str, Any] = {"validUntil": format_time(until)} if until is not None else {}
            documents.append(
                {
                    "apiVersion": f"{GROUP}/{VERSIONS[GROUP, ADDON_SCORE]}",
                    "kind": ADDON_SCORE,
                    "metadata": {"name": name, "namespace": cluster},
                    "status": {**status, "scores": scores},
                }
            )
    return documents
