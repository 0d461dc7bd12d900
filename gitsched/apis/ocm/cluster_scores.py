"""ClusterScores: normalize observed values to scores from -100 to 100 and build AddOnPlacementScores from them.

Pure: package `metrics` queries the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from gitsched.apis.ocm.names import ADDON_SCORE, GROUP, VERSIONS
from gitsched.model.document import Body, get_field
from gitsched.model.finding import Issue
from gitsched.model.time import format_time

MIN_SCORE, MAX_SCORE = -100, 100


class ScoreRange(NamedTuple):
    """The values that get the scores -100 and 100; `worst` may be greater than `best`."""

    worst: float
    best: float


class ScoreDefinition(NamedTuple):
    """One score of a ClusterScores: `source` is prometheus or static, `spec` is the field of that name.

    Without a `range`, the lowest and highest values are the range, and `prefer` (High or Low) says which is best.
    """

    name: str
    source: str
    spec: Body
    range: ScoreRange | None
    prefer: str


def read_score_definitions(body: Body) -> tuple[ScoreDefinition, ...]:
    """Return the scores that a validated ClusterScores defines."""
    return tuple(_read_score_definition(entry) for entry in body["spec"]["scores"])


def _read_score_definition(entry: Body) -> ScoreDefinition:
    source = "prometheus" if "prometheus" in entry else "static"
    bounds = entry.get("range")
    score_range = ScoreRange(float(bounds["worst"]), float(bounds["best"])) if bounds else None
    return ScoreDefinition(entry["name"], source, entry.get(source) or {}, score_range, str(entry.get("prefer") or "High"))


def validate_cluster_scores(body: Body) -> Iterator[Issue]:
    """Validate a ClusterScores beyond its schema."""
    seen: set[str] = set()
    for index, entry in enumerate(get_field(body, "spec", "scores") or ()):
        pointer: tuple[str | int, ...] = ("spec", "scores", index)
        if entry["name"] in seen:
            yield Issue("error", "ocm-score-duplicate", f"duplicate score {entry['name']!r}", (*pointer, "name"))
        seen.add(entry["name"])
        if ("prometheus" in entry) == ("static" in entry):
            yield Issue("error", "ocm-score-source", "a score requires exactly one of prometheus and static", pointer)
        bounds = entry.get("range")
        if bounds and bounds["worst"] == bounds["best"]:
            yield Issue("error", "ocm-score-source", "worst and best must be different", (*pointer, "range"))


def normalize_scores(values: Mapping[str, float], definition: ScoreDefinition) -> dict[str, int]:
    """Return the score of each cluster. Values outside the range get the nearest score of it; equal values without a range get 100."""
    score_range = definition.range
    if score_range is None:
        low, high = min(values.values(), default=0.0), max(values.values(), default=0.0)
        if low == high:
            return dict.fromkeys(values, MAX_SCORE)
        score_range = ScoreRange(low, high) if definition.prefer == "High" else ScoreRange(high, low)
    width = score_range.best - score_range.worst
    return {
        cluster: max(MIN_SCORE, min(MAX_SCORE, round(MIN_SCORE + (MAX_SCORE - MIN_SCORE) * (value - score_range.worst) / width)))
        for cluster, value in values.items()
    }


def build_addon_scores(
    name: str, clusters: Iterable[str], columns: Mapping[str, Mapping[str, int]], valid_until: datetime | None
) -> list[dict[str, Any]]:
    """Build an AddOnPlacementScore for each cluster that has a score; `columns` are values by score name and cluster.

    Clusters without a score are omitted: upstream reads a missing score as 0.
    """
    documents = []
    for cluster in sorted(clusters):
        scores = [{"name": score, "value": column[cluster]} for score, column in columns.items() if cluster in column]
        if scores and "." not in cluster:  # the namespace of the cluster cannot have a dot
            status: dict[str, Any] = {"validUntil": format_time(valid_until)} if valid_until is not None else {}
            documents.append(
                {
                    "apiVersion": f"{GROUP}/{VERSIONS[GROUP, ADDON_SCORE]}",
                    "kind": ADDON_SCORE,
                    "metadata": {"name": name, "namespace": cluster},
                    "status": {**status, "scores": scores},
                }
            )
    return documents
