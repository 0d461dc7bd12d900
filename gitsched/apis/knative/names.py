"""Names, labels and annotations of Knative Eventing, and the annotations of gitsched's records."""

from __future__ import annotations

import re

from gitsched.model.document import Key

SCHEDULER, DESCHEDULER = "config-scheduler", "config-descheduler"
UNSCHEDULABLE = "eventing.knative.dev/unschedulable"
"""The annotation of a pod that is to be emptied."""
ZONE_LABEL = "topology.kubernetes.io/zone"
UNKNOWN_ZONE = "unknown"
UNREACHABLE = "node.kubernetes.io/unreachable"

GROUP = "sources.knative.dev"
KAFKA = "KafkaSource"
DOMAIN = "knative.dev"
"""Kinds of this domain's groups that `workloads` declares are event sources."""
ADAPTER = "kafkasource-mt-adapter"
"""The StatefulSet of Kafka's multi-tenant sources."""

SURPLUS_SINCE = "gitsched.io/surplus-since"
"""Since when fewer pods would do."""
COMPACTED_AT = "gitsched.io/compacted-at"
SOURCE_REPLICAS = "gitsched.io/source-replicas"
"""What the source said when replicas were decided: another number there is somebody's word and counts."""
RENDERED_TO = "gitsched.io/cluster"

MAX_ORDINAL = 99_999
"""A StatefulSet with more pods is a typing error, not a plan."""
MAX_VREPLICAS = 100_000

_ORDINAL = re.compile(r"(.+)-(0|[1-9][0-9]{0,4})", re.ASCII)
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))


def read_ordinal(pod: str, stateful_set: str | None = None) -> int | None:
    """The ordinal in a pod's name; None where there is none, or where it is another StatefulSet's pod."""
    match = _ORDINAL.fullmatch(pod)
    return int(match[2]) if match and stateful_set in (None, match[1]) else None


def is_true(text: object) -> bool:
    """As Go reads a boolean."""
    return text in _TRUE


def make_pod_key(adapter: Key, ordinal: int) -> Key:
    return Key("", "Pod", adapter.namespace, f"{adapter.name}-{ordinal}")
