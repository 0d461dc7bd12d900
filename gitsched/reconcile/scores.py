"""Scores of clusters from what is observed now, as files of the source."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from gitsched.apis.ocm.names import CLUSTER
from gitsched.apis.ocm.names import GROUP as OCM
from gitsched.apis.ocm.producing import GROUP_OWN, KIND, Measure, normalise, read_measures, write_scores
from gitsched.metrics.failures import Invalid, Unreachable
from gitsched.metrics.vectors import ask_vector
from gitsched.model.document import Body
from gitsched.model.errors import Permanent
from gitsched.model.time import parse_duration
from gitsched.reconcile.session import Session
from gitsched.reconcile.settings import Settings
from gitsched.render.yaml import dump

VALID_FOR = timedelta(hours=1)
_HEAD = "# Written by `gitsched scores` from the {kind} {name}. Change that instead.\n"


class Scored(NamedTuple):
    """What one ClusterScores gives: the text of its file, or why it stays as it is. `left_out` are clusters without any score."""

    name: str
    path: str
    text: str
    clusters: int
    left_out: tuple[str, ...]
    failure: str = ""


def produce_scores(settings: Settings) -> list[Scored]:
    """Ask for everything that the source's ClusterScores name. Raises Permanent when one of them is broken, or there is none."""
    session = Session(settings)
    snapshot = session.read(session.observe())
    sources: list[Body] = []
    clusters: set[str] = set()
    for loose in snapshot.documents:
        if (loose.group, loose.kind) == (GROUP_OWN, KIND):
            if loose.broken:
                raise Permanent(f"the {KIND} {loose.name} is broken; `gitsched validate` says where")
            sources.append(loose.body)
        elif (loose.group, loose.kind) == (OCM, CLUSTER):
            clusters.add(loose.name)
    if not sources:
        raise Permanent(f"there is no {KIND} in the source, so nothing says what to observe")
    timeout = snapshot.config.observations.timeout
    sources.sort(key=lambda body: str(body["metadata"]["name"]))
    scored = [_produce(body, clusters, settings, timeout) for body in sources]
    paths = [one.path for one in scored]
    if len(set(paths)) < len(paths):
        raise Permanent(f"two {KIND} write the same file")
    return scored


def _produce(body: Body, clusters: set[str], settings: Settings, timeout: float) -> Scored:
    spec, name = body["spec"], str(body["metadata"]["name"])
    path = str(spec.get("path") or f"scores/{name}.yaml")
    columns: dict[str, Mapping[str, int]] = {}
    for measure in read_measures(body):
        try:
            values = _observe(measure, timeout, settings.hosts)
        except (Unreachable, Invalid) as error:
            return Scored(name, path, "", 0, (), f"{measure.name}: {error}")
        columns[measure.name] = normalise({cluster: values[cluster] for cluster in sorted(clusters & values.keys())}, measure)
    documents = write_scores(name, clusters, columns, _end(spec, settings.now))
    written = {str(document["metadata"]["namespace"]) for document in documents}
    text = _HEAD.format(kind=KIND, name=name) + "---\n".join(map(dump, documents))
    return Scored(name, path, text, len(documents), tuple(sorted(clusters - written)))


def _observe(measure: Measure, timeout: float, hosts: tuple[str, ...] | None) -> Mapping[str, float]:
    if measure.source == "static":
        values: dict[str, Any] = measure.spec
        return {cluster: float(value) for cluster, value in values.items()}
    return ask_vector(measure.spec, timeout, hosts)


def _end(spec: Body, now: datetime) -> datetime | None:
    """Until when the scores count; for ever where the document says so."""
    if spec.get("validFor") == "forever":
        return None
    wait = parse_duration(spec.get("validFor")) or VALID_FOR
    return now.replace(microsecond=0) + wait
