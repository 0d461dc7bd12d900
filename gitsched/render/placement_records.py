"""Read the PlacementDecisions of an output branch: which workload is where, and why."""

from __future__ import annotations

import json
import re

from gitsched.model.document import Key, as_object, list_objects
from gitsched.model.scheduling import decode_replicas
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import APPS_KINDS, REPLICAS_ANNOTATION

_ESCAPED = re.compile(r"(?:_[0-9a-f]{2})+")
_GROUP_END = re.compile(r"\.(?:app|cloud|com|dev|io|net|org|sh)-")


class PlacementRecord(NamedTuple):
    """Where a workload is: its clusters with replicas, None without replicas, and the reason that most of them have.

    `damage` says what of the record cannot be read.
    """

    clusters: dict[str, int | None]
    reason: str = ""
    damage: str = ""


def read_placement_record(bodies: list[dict[str, object]]) -> PlacementRecord:
    """Read the documents of the record of one workload; one for each 100 clusters."""
    clusters: dict[str, int | None] = {}
    reasons: dict[str, int] = {}
    damage = "" if bodies else "it has no document"
    for body in bodies:
        if body.get("kind") != "PlacementDecision":
            damage = "it is no PlacementDecision"
            continue
        annotations = as_object(as_object(body.get("metadata")).get("annotations"))
        try:
            replicas = as_object(json.loads(str(annotations.get(REPLICAS_ANNOTATION) or "{}")))
        except (ValueError, RecursionError):
            replicas, damage = {}, f"its annotation {REPLICAS_ANNOTATION} is no JSON"
        for decision in list_objects(body.get("decisions")):
            name = as_object(decision.get("clusterProfileRef")).get("name")
            if not isinstance(name, str):
                damage = "a decision names no cluster"
                continue
            clusters[name] = decode_replicas(replicas.get(name))
            reason = decision.get("reason")
            if isinstance(reason, str):
                reasons[reason] = reasons.get(reason, 0) + 1
    return PlacementRecord(clusters, max(reasons, key=lambda text: reasons[text], default=""), damage)


def read_placement_key(path: str) -> Key | None:
    """Return the workload of a path below placements/, with its kind and group in lower case; None for another file.

    A name that was shortened keeps the digest in its place.
    """
    directory, slash, file = path.partition("/")
    if not slash or "/" in file or not file.endswith(".yaml"):
        return None
    segment = file.removesuffix(".yaml")
    kind_end = next((index for index, letter in enumerate(segment) if letter in ".-"), -1)
    if kind_end < 1:
        return None
    namespace = "" if directory == "_" else unescape_segment(directory)
    kind = unescape_segment(segment[:kind_end])
    tail = segment[kind_end + 1 :]
    if segment[kind_end] == "-":
        return Key("apps" if kind in APPS_KINDS else "", kind, namespace, unescape_segment(tail))
    end = _GROUP_END.search(tail)
    group, name = (tail[: end.end() - 1], tail[end.end() :]) if end else tail.partition("-")[::2]
    group = "" if group == "_" else unescape_segment(group)
    return Key(group, kind, namespace, unescape_segment(name))


def unescape_segment(text: str) -> str:
    """Return the text of a path segment that `escape_segment` made and did not shorten, in lower case."""
    return _ESCAPED.sub(lambda match: bytes.fromhex(match[0].replace("_", "")).decode("utf-8", "replace"), text)
