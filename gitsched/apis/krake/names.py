"""Krake's groups and kinds, rules for names and labels, resource references and reason codes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Body, Key

CORE, INFRASTRUCTURE, KUBERNETES, OPENSTACK = "core", "infrastructure", "kubernetes", "openstack"
GROUPS: Final = frozenset((CORE, INFRASTRUCTURE, KUBERNETES, OPENSTACK))

APPLICATION: Final = (KUBERNETES, "Application")
CLUSTER: Final = (KUBERNETES, "Cluster")
CLOUD: Final = (INFRASTRUCTURE, "Cloud")
GLOBAL_CLOUD: Final = (INFRASTRUCTURE, "GlobalCloud")
MAGNUM_CLUSTER: Final = (OPENSTACK, "MagnumCluster")
PROJECT: Final = (OPENSTACK, "Project")
METRIC_KINDS: Final = ((CORE, "GlobalMetric"), (CORE, "Metric"))
METRICS_PROVIDER_KINDS: Final = ((CORE, "GlobalMetricsProvider"), (CORE, "MetricsProvider"))
"""The global kind and the namespaced kind."""

NO_SUITABLE_RESOURCE: Final = "NO_SUITABLE_RESOURCE"
INVALID_METRIC: Final = "INVALID_METRIC"
UNREACHABLE_METRICS_PROVIDER: Final = "UNREACHABLE_METRICS_PROVIDER"
UNKNOWN_METRIC: Final = "UNKNOWN_METRIC"
UNKNOWN_METRICS_PROVIDER: Final = "UNKNOWN_METRICS_PROVIDER"

NAME_RULE: Final = "1 to 255 letters, digits, '-', '_', '.' and ':', beginning and ending with a letter, a digit or '_'"
KEY_RULE: Final = (
    "at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter, a digit or '_', after an optional prefix/"
)
VALUE_RULE: Final = "1 to 63 letters, digits, '-', '_' and '.', beginning and ending with a letter, a digit or '_'"

_NAME = re.compile(r"\w([\w.:-]{0,253}\w)?", re.ASCII)
_PREFIX = re.compile(r"\w([\w.-]{0,251}\w)?", re.ASCII)
_LABEL_PART = re.compile(r"\w([\w.-]{0,61}\w)?", re.ASCII)


class ResourceRef(NamedTuple):
    """Krake's reference to a cluster, cloud or project; `namespace` is "" for a global resource."""

    group: str
    kind: str
    namespace: str
    name: str

    @property
    def body(self) -> Body:
        """The reference in Krake's JSON form."""
        return {"api": self.group, "kind": self.kind, "namespace": self.namespace or None, "name": self.name}


def describe_backend(ref: ResourceRef, namespace: str) -> str:
    """Return the kind and name of a cloud or project, with its namespace if that is not `namespace`."""
    name = ref.name if ref.namespace in ("", namespace) else f"{ref.namespace}/{ref.name}"
    return f"{ref.kind} {name}"


def is_name(text: object) -> bool:
    """Return whether the text is a valid name of a resource or namespace."""
    return isinstance(text, str) and bool(_NAME.fullmatch(text))


def is_label_key(text: object) -> bool:
    """Return whether the text is a valid label key: a name of at most 63 characters after an optional prefix of at most 253."""
    if not isinstance(text, str):
        return False
    prefix, slash, name = text.partition("/")
    return bool(_PREFIX.fullmatch(prefix) and _LABEL_PART.fullmatch(name)) if slash else bool(_LABEL_PART.fullmatch(text))


def is_label_value(text: object) -> bool:
    """Return whether the text is a valid label value. An empty value is invalid."""
    return isinstance(text, str) and bool(_LABEL_PART.fullmatch(text))


def read_ref(value: Any) -> ResourceRef | None:
    """Parse a reference in a status; None if it is not a reference."""
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str) or not isinstance(value.get("name"), str):
        return None
    return ResourceRef(str(value.get("api") or ""), value["kind"], str(value.get("namespace") or ""), value["name"])


def make_ref(key: Key) -> ResourceRef:
    """Return the reference to a document."""
    return ResourceRef(*key)


def cluster_directory(namespace: str, name: str) -> str:
    """Return the name of a cluster's directory on the output branch, which holds the clusters of all namespaces."""
    return f"{namespace}.{name}"
