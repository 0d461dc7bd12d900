"""Names, labels and annotations of Knative Eventing, and the annotations of gitsched's records."""

from __future__ import annotations

import re

from gitsched.model.document import Key

SCHEDULER, DESCHEDULER = "config-scheduler", "config-descheduler"
UNSCHEDULABLE = "eventing.knative.dev/unschedulable"
"""Annotation of a pod that takes no new vreplicas and is being emptied."""
ZONE_LABEL = "topology.kubernetes.io/zone"
UNKNOWN_ZONE = "unknown"
UNREACHABLE = "node.kubernetes.io/unreachable"

GROUP = "sources.knative.dev"
KAFKA = "KafkaSource"
DOMAIN = "knative.dev"
"""Kinds that `workloads` declares in groups of this domain are event sources."""
DESCRIBED_KINDS = ("ApiServerSource", "ContainerSource", "IntegrationSource", "PingSource", "SinkBinding")
"""Kinds of the group besides KafkaSource whose fields are known."""
ADAPTER = "kafkasource-mt-adapter"
"""The StatefulSet of Kafka's multi-tenant sources."""
ADAPTER_SUFFIX = "-mt-adapter"
"""A StatefulSet named after a kind in lower case and this suffix runs the vreplicas of that kind."""
SCALABLE_KINDS = ((GROUP, "RedisStreamSource"),)
"""Kinds besides KafkaSource whose definition upstream has spec.consumers, with the subresource scale."""
KINDS_WITHOUT_VREPLICAS = frozenset(
    (
        *(
            "ApiServerSource",
            "AwsSqsSource",
            "ContainerSource",
            "CouchDbSource",
            "GitHubSource",
            "GitLabSource",
            "IntegrationSource",
        ),
        *("PingSource", "PrometheusSource", "RabbitmqSource"),
    )
)
"""Kinds of event sources that Knative runs in a Deployment or StatefulSet for each source, unless they are declared."""

SURPLUS_SINCE = "gitsched.io/surplus-since"
"""Time since which fewer pods would be sufficient."""
COMPACTED_AT = "gitsched.io/compacted-at"
SOURCE_REPLICAS = "gitsched.io/source-replicas"
"""spec.replicas in the source at the time of the decision. If the source has another number now, a user changed it, and it is used."""
RENDERED_TO = "gitsched.io/cluster"

MAX_ORDINAL = 99_999
"""Maximum pod ordinal; larger ones are treated as typing errors."""
MAX_VREPLICAS = 100_000

_ORDINAL = re.compile(r"(.+)-(0|[1-9][0-9]{0,4})", re.ASCII)
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))


def read_ordinal(pod: str, stateful_set: str | None = None) -> int | None:
    """Return the ordinal in a pod's name; None if it has none or belongs to another StatefulSet."""
    match = _ORDINAL.fullmatch(pod)
    return int(match[2]) if match and stateful_set in (None, match[1]) else None


def is_true(text: object) -> bool:
    """Parse a boolean as Go's strconv.ParseBool does; False for invalid text."""
    return text in _TRUE


def make_pod_key(adapter: Key, ordinal: int) -> Key:
    return Key("", "Pod", adapter.namespace, f"{adapter.name}-{ordinal}")
