"""Records under status/ (what the upstream API server would store) and SIG-Multicluster PlacementDecisions under placements/.

Delivery tools must not apply them. They have the annotation `config.kubernetes.io/local-config`, with which kustomize omits an object.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from gitsched.model.document import Body, Key
from gitsched.model.planned_files import NewBlob
from gitsched.render.layout import object_name, placement_path
from gitsched.render.yaml import dump

LOCAL_CONFIG: Final = "config.kubernetes.io/local-config"
API_VERSION: Final = "multicluster.x-k8s.io/v1alpha1"
DECISION_KEY: Final = "multicluster.x-k8s.io/decision-key"
DECISION_INDEX: Final = "multicluster.x-k8s.io/decision-index"
PLACEMENT_KEY: Final = "multicluster.x-k8s.io/placement-key"
MAX_SLICE_DECISIONS = 100
"""The maximum number of decisions in one PlacementDecision, as in the upstream schema."""

_MAPPINGS = ("metadata", "spec", "status")
_RECORD_FIELDS = ("apiVersion", "api", "kind", "metadata", "spec", "status")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,239}[a-z0-9])?")


class ClusterDecision(NamedTuple):
    """One cluster of a decision; replicas and score are None if they do not apply."""

    cluster: str
    replicas: int | None = None
    score: int | float | None = None
    reason: str = ""


def write_record(body: Body) -> NewBlob:
    """Return the file under status/ with apiVersion (Krake: api), kind, metadata, spec if present, and status.

    Annotations are sorted by name, so that a record has the same bytes whether it is new or read from an earlier run.
    """
    return NewBlob(dump(make_record(body)).encode())


def make_record(body: Body) -> Body:
    """Return the body of a record."""
    record = {name: body[name] for name in _RECORD_FIELDS if name in body}
    return {**record, "metadata": _mark_local_config(body.get("metadata") or {})}


def strip_record(body: Body) -> Body:
    """Remove from a record the annotation that only its file has, and members of a wrong type, which other tools may have written."""
    body = {name: value for name, value in body.items() if isinstance(value, dict) or name not in _MAPPINGS}
    metadata = body.get("metadata") or {}
    annotations = metadata.get("annotations")
    kept = {name: text for name, text in annotations.items() if name != LOCAL_CONFIG} if isinstance(annotations, dict) else {}
    # The order of the members stays: an unchanged record is written with the same bytes.
    metadata = {name: kept if name == "annotations" else value for name, value in metadata.items()}
    return {**body, "metadata": {name: value for name, value in metadata.items() if value or name != "annotations"}}


def write_placement_decision(
    key: Key, decisions: Sequence[tuple[str, int | None, int | float | None, str]], scheduler: str, placement_key: str = ""
) -> dict[str, NewBlob]:
    """Return the PlacementDecision of a workload (KEP-5313) by path: one file with a document for each 100 clusters.

    Without decisions, the file has one empty document. Decisions keep their order. `placement_key` is the workload's label of that
    name. Replicas and scores are JSON objects in annotations, because the type has no fields for them. ClusterProfile references have
    no namespace, because it is not known in Git.
    """
    targets = [ClusterDecision(*decision) for decision in decisions]
    slices = [targets[start : start + MAX_SLICE_DECISIONS] for start in range(0, len(targets), MAX_SLICE_DECISIONS)] or [[]]
    texts = [
        dump(
            {
                "apiVersion": API_VERSION,
                "kind": "PlacementDecision",
                "metadata": _make_metadata(key, part, index, len(slices), placement_key),
                "schedulerName": scheduler,
                "decisions": [_make_decision(one) for one in part],
            }
        )
        for index, part in enumerate(slices)
    ]
    return {placement_path(key): NewBlob("---\n".join(texts).encode())}


def _mark_local_config(metadata: Mapping[str, Any]) -> Body:
    annotations = metadata.get("annotations")
    entries = {**annotations} if isinstance(annotations, dict) else {}
    return {**metadata, "annotations": dict(sorted({**entries, LOCAL_CONFIG: "true"}.items()))}


def _make_metadata(key: Key, part: list[ClusterDecision], index: int, count: int, placement_key: str) -> Body:
    namespace, base = key.namespace or "default", object_name(key)
    annotations = {LOCAL_CONFIG: "true"}
    for name, values in (
        ("gitsched.io/replicas", {one.cluster: one.replicas for one in part if one.replicas is not None}),
        ("gitsched.io/scores", {one.cluster: one.score for one in part if one.score is not None}),
    ):
        if values:
            annotations[name] = json.dumps(values, sort_keys=True, separators=(",", ":"))
    labels = {DECISION_KEY: _make_label(f"{namespace}.{base}")}
    if count > 1:
        labels[DECISION_INDEX] = str(index)
    if placement_key:
        labels[PLACEMENT_KEY] = placement_key
    # The KEP's deterministic naming: base and index of the slice. A base that is not a valid object name (system:foo) becomes a digest.
    name = base if _NAME.fullmatch(base) else _digest(base)
    return {"name": f"{name}-{index}", "namespace": namespace, "labels": dict(sorted(labels.items())), "annotations": annotations}


def _make_decision(one: ClusterDecision) -> Body:
    reference = {"apiVersion": API_VERSION, "kind": "ClusterProfile", "name": one.cluster}
    return {"clusterProfileRef": reference, "reason": one.reason} if one.reason else {"clusterProfileRef": reference}


def _make_label(text: str) -> str:
    """Return the text if it is a valid label value, else its digest."""
    return text if len(text) <= 63 and _NAME.fullmatch(text) else _digest(text)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]
