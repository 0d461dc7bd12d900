"""Produce the score files that ClusterScores documents define, from current metric values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from gitsched.apis.policy_api import ClusterScoring, ScoreMeasurement
from gitsched.decide.plan import SourceTree
from gitsched.decide.registry import policy_apis
from gitsched.metrics.observer import query_vector
from gitsched.metrics.queries import InvalidMetricValue, ProviderUnreachable
from gitsched.model.document import Body
from gitsched.model.errors import Permanent
from gitsched.model.time import parse_duration
from gitsched.reconcile.fetch import fetch
from gitsched.reconcile.run import RunSettings, open_context
from gitsched.reconcile.source_tree import load
from gitsched.render.yaml import dump

VALID_FOR = timedelta(hours=1)
_HEADER = "# Written by `gitsched scores` from the {kind} {name}. Change that instead.\n"


class ScoreFile(NamedTuple):
    """The result of one ClusterScores: the text of its file, or why the file does not change. `left_out` are clusters without any score."""

    name: str
    path: str
    text: str
    clusters: int
    left_out: tuple[str, ...]
    failure: str = ""


def produce_scores(settings: RunSettings) -> list[ScoreFile]:
    """Query the values of the score definitions in the source. Raises Permanent if one of them is broken, or there is none."""
    context = open_context(settings)
    source = load(context, fetch(context), check_output=False)
    scorings = [api.scoring for api in policy_apis.values() if api.scoring is not None]
    scored = [file for scoring in scorings for file in _list_score_files(scoring, source, settings)]
    kinds = " or ".join(scoring.definition[1] for scoring in scorings)
    if not scored:
        raise Permanent(f"there is no {kinds} in the source; add one that defines scores")
    paths = [one.path for one in scored]
    if len(set(paths)) < len(paths):
        raise Permanent(f"two {kinds} write the same file")
    return scored


def _list_score_files(scoring: ClusterScoring, source: SourceTree, settings: RunSettings) -> list[ScoreFile]:
    definitions: list[Body] = []
    clusters: set[str] = set()
    for document in source.documents:
        if (document.group, document.kind) == scoring.definition:
            if document.broken:
                raise Permanent(f"the {document.kind} {document.name} is broken; `gitsched validate` shows its errors")
            definitions.append(document.body)
        elif (document.group, document.kind) == scoring.cluster:
            clusters.add(document.name)
    timeout = source.config.observations.timeout
    definitions.sort(key=lambda body: str(body["metadata"]["name"]))
    return [_make_score_file(scoring, body, clusters, settings, timeout) for body in definitions]


def _make_score_file(
    scoring: ClusterScoring, definition: Body, clusters: set[str], settings: RunSettings, timeout: float
) -> ScoreFile:
    spec, name = definition["spec"], str(definition["metadata"]["name"])
    path = str(spec.get("path") or f"scores/{name}.yaml")
    values: dict[str, Mapping[str, float]] = {}
    for measurement in scoring.list_measurements(definition):
        try:
            measured = _query_values(measurement, timeout, settings.hosts)
        except (ProviderUnreachable, InvalidMetricValue) as error:
            return ScoreFile(name, path, "", 0, (), f"{measurement.name}: {error}")
        values[measurement.name] = {cluster: measured[cluster] for cluster in sorted(clusters & measured.keys())}
    documents = scoring.build_documents(definition, clusters, values, _compute_expiry(spec, settings.now))
    written = {str(document["metadata"]["namespace"]) for document in documents}
    text = _HEADER.format(kind=scoring.definition[1], name=name) + "---\n".join(map(dump, documents))
    return ScoreFile(name, path, text, len(documents), tuple(sorted(clusters - written)))


def _query_values(measurement: ScoreMeasurement, timeout: float, hosts: tuple[str, ...] | None) -> Mapping[str, float]:
    if measurement.source == "static":
        values: dict[str, Any] = measurement.spec
        return {cluster: float(value) for cluster, value in values.items()}
    return query_vector(measurement.spec, timeout, hosts)


def _compute_expiry(spec: Body, now: datetime) -> datetime | None:
    """Return the time until which the scores are valid; None without a limit."""
    if spec.get("validFor") == "forever":
        return None
    wait = parse_duration(spec.get("validFor")) or VALID_FOR
    return now.replace(microsecond=0) + wait
