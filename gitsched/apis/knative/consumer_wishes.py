"""The number of consumers that an autoscaler wants for a source: a HorizontalPodAutoscaler, which KEDA makes, or a ScaledObject.

KEDA creates for a ScaledObject a HorizontalPodAutoscaler that scales the source through its subresource `scale`. Its status has the wish,
`status.desiredReplicas`. Both are read like Pods and Nodes, from dumps of the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.apis.knative.names import MAX_VREPLICAS
from gitsched.model.document import Document, Key, get_field, parse_api_group, read_annotations
from gitsched.named_tuples import NamedTuple

HPA_KIND = ("autoscaling", "HorizontalPodAutoscaler")
SCALED_OBJECT_KIND = ("keda.sh", "ScaledObject")
PAUSED_REPLICAS = "autoscaling.keda.sh/paused-replicas"
"""Annotation of a ScaledObject that fixes the number."""


class ConsumerWish(NamedTuple):
    """The number of consumers that an object wants for a source; None if the object does not say it yet."""

    consumers: int | None
    origin: Document


def read_consumer_wishes(templates: Mapping[Key, Document]) -> dict[Key, ConsumerWish]:
    """Return the wishes by the key of the source that is scaled.

    A paused ScaledObject takes precedence over a HorizontalPodAutoscaler, which takes precedence over other ScaledObjects, whose number
    only the HorizontalPodAutoscaler knows.
    """
    wishes: dict[Key, tuple[int, ConsumerWish]] = {}
    for key, document in templates.items():
        if key[:2] not in (HPA_KIND, SCALED_OBJECT_KIND):
            continue
        source = find_scaled_source(document)
        if source is None:
            continue
        rank, consumers = _read_wish(document)
        known = wishes.get(source)
        if known is None or rank > known[0]:
            wishes[source] = rank, ConsumerWish(consumers, document)
    return {source: wish for source, (_, wish) in wishes.items()}


def find_scaled_source(document: Document) -> Key | None:
    """Return the object that a HorizontalPodAutoscaler or ScaledObject scales; None if it does not name one."""
    target = get_field(document.body, "spec", "scaleTargetRef")
    version, kind, name = (get_field(target or {}, member) for member in ("apiVersion", "kind", "name"))
    if not isinstance(version, str) or not isinstance(kind, str) or not isinstance(name, str) or not kind or not name:
        return None
    return Key(parse_api_group(version), kind, document.key.namespace, name)


def _read_wish(document: Document) -> tuple[int, int | None]:
    """Return the rank and the number of a wish."""
    if document.key[:2] == HPA_KIND:
        number = get_field(document.body, "status", "desiredReplicas")
        consumers = number if type(number) is int and 0 <= number <= MAX_VREPLICAS else None
        return (2 if consumers is not None else 1), consumers
    paused = read_annotations(document.body).get(PAUSED_REPLICAS, "")
    if paused.isascii() and paused.isdecimal() and len(paused) < 7 and int(paused) <= MAX_VREPLICAS:
        return 3, int(paused)
    return 0, None
