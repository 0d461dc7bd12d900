"""ClusterScores: normalize observed values to scores from -100 to 100 and build AddOnPlacementScores from them.

Small changes of a value do not change its score, and the expiry moves only when necessary, so that most runs write the documents of the
last one. Pure: package `metrics` queries the values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from gitsched.apis.ocm.names import ADDON_SCORE, GROUP, VERSIONS
from gitsched.apis.policy_api import ScoreInput, ScoreMeasurement
from gitsched.model.document import Body, get_field
from gitsched.model.finding import Issue
from gitsched.model.time import format_time, parse_duration, parse_time
from gitsched.named_tuples import NamedTuple

MIN_SCORE, MAX_SCORE = -100, 100
DEFAULT_STEP = 5
_VALID_FOR = timedelta(hours=1)


class ScoreRange(NamedTuple):
    """The values that get the scores -100 and 100; `worst` may be greater than `best`."""

    worst: float
    best: float


class ScoreDefinition(NamedTuple):
    """One score of a ClusterScores: `source` is prometheus or static, `spec` is the field of that name.

    Without a `range`, the lowest and highest values are the range, and `prefer` (High or Low) says which is best. Scores are multiples of
    `step`.
    """

    name: str
    source: str
    spec: Body
    range: ScoreRange | None
    prefer: str
    step: int = 1


def read_score_definitions(body: Body) -> tuple[ScoreDefinition, ...]:
    """Return the scores that a validated ClusterScores defines."""
    return tuple(_read_score_definition(entry) for entry in body["spec"]["scores"])


def _read_score_definition(entry: Body) -> ScoreDefinition:
    source = "prometheus" if "prometheus" in entry else "static"
    bounds = entry.get("range")
    score_range = ScoreRange(float(bounds["worst"]), float(bounds["best"])) if bounds else None
    step = int(entry.get("step") or (DEFAULT_STEP if source == "prometheus" else 1))
    return ScoreDefinition(entry["name"], source, entry.get(source) or {}, score_range, str(entry.get("prefer") or "High"), step)


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


def normalize_scores(values: Mapping[str, float], definition: ScoreDefinition, previous: Mapping[str, int] = {}) -> dict[str, int]:
    """Return the score of each cluster. Values outside the range get the nearest score of it; equal values without a range get 100.

    A score is rounded to a multiple of the step. The `previous` score of a cluster stays while the exact score is less than a step away.
    """
    score_range = definition.range
    if score_range is None:
        low, high = min(values.values(), default=0.0), max(values.values(), default=0.0)
        if low == high:
            return dict.fromkeys(values, MAX_SCORE)
        score_range = ScoreRange(low, high) if definition.prefer == "High" else ScoreRange(high, low)
    width = score_range.best - score_range.worst
    exact = {
        cluster: MIN_SCORE + (MAX_SCORE - MIN_SCORE) * (value - score_range.worst) / width for cluster, value in values.items()
    }
    return {
        cluster: _round_score(max(MIN_SCORE, min(MAX_SCORE, score)), definition.step, previous.get(cluster))
        for cluster, score in exact.items()
    }


def _round_score(exact: float, step: int, previous: int | None) -> int:
    if previous is not None and step > 1 and abs(exact - previous) < step and abs(exact) < MAX_SCORE:
        return previous
    return round(exact) if abs(exact) == MAX_SCORE else step * round(exact / step)


def build_documents(wanted: ScoreInput) -> list[Body]:
    """Build an AddOnPlacementScore for each cluster that has a score.

    A document of the last time stays while it is current. If one has to be extended, all are extended, so that they expire together and
    few runs change anything. Clusters without a score are omitted: upstream reads a missing score as 0.
    """
    name = str(wanted.definition["metadata"]["name"])
    columns: dict[str, dict[str, int]] = {}
    for one in read_score_definitions(wanted.definition):
        columns[one.name] = normalize_scores(wanted.values[one.name], one, _list_previous_scores(wanted.previous, one.name))
    documents = _build_addon_scores(name, wanted.clusters, columns, _compute_expiry(wanted.definition["spec"], wanted.now))
    earlier = [wanted.previous.get(document["metadata"]["namespace"]) for document in documents]
    pairs = [(document if before is None else before, document) for before, document in zip(earlier, documents, strict=True)]
    current = [is_current(before, document, wanted.now) for before, document in pairs]
    if any(_identify(before) == _identify(document) for (before, document), kept in zip(pairs, current, strict=True) if not kept):
        return documents
    return [before if kept else document for (before, document), kept in zip(pairs, current, strict=True)]


def is_current(before: Body, document: Body, now: datetime) -> bool:
    """Return whether an earlier AddOnPlacementScore can stay: it has the scores of a new one, and at least half as long to live."""
    if _identify(before) != _identify(document):
        return False
    until, wanted = (parse_time(get_field(body, "status", "validUntil")) for body in (before, document))
    if until is None or wanted is None:
        return until is wanted
    return until <= wanted and until - now >= (wanted - now) / 2


def _identify(body: Body) -> tuple[object, ...]:
    metadata = body.get("metadata") or {}
    scores = get_field(body, "status", "scores") or ()
    return metadata.get("namespace"), metadata.get("name"), tuple(sorted((score["name"], score["value"]) for score in scores))


def _list_previous_scores(previous: Mapping[str, Body], name: str) -> dict[str, int]:
    return {
        cluster: int(score["value"])
        for cluster, body in previous.items()
        for score in get_field(body, "status", "scores") or ()
        if score["name"] == name
    }


def _compute_expiry(spec: Body, now: datetime) -> datetime | None:
    """Return the time until which new scores are valid; None without a limit."""
    if spec.get("validFor") == "forever":
        return None
    return now.replace(microsecond=0) + (parse_duration(spec.get("validFor")) or _VALID_FOR)


def _build_addon_scores(
    name: str, clusters: frozenset[str], columns: Mapping[str, Mapping[str, int]], valid_until: datetime | None
) -> list[Body]:
    """Build the documents; `columns` are scores by name and cluster."""
    documents: list[Body] = []
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


def list_measurements(definition: Body) -> list[ScoreMeasurement]:
    """Return what is measured for the scores of a ClusterScores document."""
    return [
        ScoreMeasurement(one.name, one.source, one.spec, ("spec", "scores", index, one.source))
        for index, one in enumerate(read_score_definitions(definition))
    ]
