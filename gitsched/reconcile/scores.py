"""Produce the score files that ClusterScores documents ask for, from current metric values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from gitsched.apis.ocm.cluster_scores import (
    ScoreDefinition,
    build_addon_scores,
    normalize_scores,
    read_score_definitions,
)
from gitsched.apis.ocm.names import CLUSTER_SCORES, GITSCHED_GROUP, MANAGED_CLUSTER
from gitsched.apis.ocm.names import GROUP as OCM
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
    """What one ClusterScores gives: the text of its file, or why it stays as it is. `left_out` are clusters without any score."""

    name: str
    path: str
    text: str
    clusters: int
    left_out: tuple[str, ...]
    failure: str = ""


def produce_scores(settings: RunSettings) -> list[ScoreFile]:
    """Ask for everything that the source's ClusterScores name. Raises Permanent when one of them is broken, or there is none."""
    context = open_context(settings)
    snapshot = load(context, fetch(context), check_output=False)
    sources: list[Body] = []
    clusters: set[str] = set()
    for loose in snapshot.documents:
        if (loose.group, loose.kind) == (GITSCHED_GROUP, CLUSTER_SCORES):
            if loose.broken:
                raise Permanent(f"the {CLUSTER_SCORES} {loose.name} is broken; `gitsched validate` says where")
            sources.append(loose.body)
        elif (loose.group, loose.kind) == (OCM, MANAGED_CLUSTER):
            clusters.add(loose.name)
    if not sources:
        raise Permanent(f"there is no {CLUSTER_SCORES} in the source, so nothing says what to observe")
    timeout = snapshot.config.observations.timeout
    sources.sort(key=lambda body: str(body["metadata"]["name"]))
    scored = [_make_score_file(body, clusters, settings, timeout) for body in sources]
    paths = [one.path for one in scored]
    if len(set(paths)) < len(paths):
        raise Permanent(f"two {CLUSTER_SCORES} write the same file")
    return scored


def _make_score_file(body: Body, clusters: set[str], settings: RunSettings, timeout: float) -> ScoreFile:
    spec, name = body["spec"], str(body["metadata"]["name"])
    path = str(spec.get("path") or f"scores/{name}.yaml")
    columns: dict[str, Mapping[str, int]] = {}
    for measure in read_score_definitions(body):
        try:
            values = _query_values(measure, timeout, settings.hosts)
        except (ProviderUnreachable, InvalidMetricValue) as error:
            return ScoreFile(name, path, "", 0, (), f"{measure.name}: {error}")
        columns[measure.name] = normalize_scores(
            {cluster: values[cluster] for cluster in sorted(clusters & values.keys())}, measure
        )
    documents = build_addon_scores(name, clusters, columns, _compute_expiry(spec, settings.now))
    written = {str(document["metadata"]["namespace"]) for document in documents}
    text = _HEADER.format(kind=CLUSTER_SCORES, name=name) + "---\n".join(map(dump, documents))
    return ScoreFile(name, path, text, len(documents), tuple(sorted(clusters - written)))


def _query_values(measure: ScoreDefinition, timeout: float, hosts: tuple[str, ...] | None) -> Mapping[str, float]:
    if measure.source == "static":
        values: dict[str, Any] = measure.spec
        return {cluster: float(value) for cluster, value in values.items()}
    return query_vector(measure.spec, timeout, hosts)


def _compute_expiry(spec: Body, now: datetime) -> datetime | None:
    """Until when the scores count; for ever where the document says so."""
    if spec.get("validFor") == "forever":
        return None
    wait = parse_duration(spec.get("validFor")) or VALID_FOR
    return now.replace(microsecond=0) + wait
