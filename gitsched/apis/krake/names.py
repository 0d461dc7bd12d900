"""Krake's groups and kinds, rules for names and labels, resource references and reason codes."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

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
"""The global kind, and the one inside a namespace."""

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
    """A reference to one of Krake's resources, whose cluster, cloud or project it is; `namespace` is "" for a global one."""

    group: str
    kind: str
    namespace: str
    name: str

    @property
    def body(self) -> Body:
        """As Krake writes it."""
        return {"api": self.group, "kind": self.kind, "namespace": self.namespace or None, "name": self.name}


def is_name(text: object) -> bool:
    """Whether a resource or namespace may be called so."""
    return isinstance(text, str) and bool(_NAME.fullmatch(text))


def is_label_key(text: object) -> bool:
    """A name of at most 63 characters after an optional prefix of at most 253."""
    if not isinstance(text, str):
        return False
    prefix, slash, name = text.partition("/")
    return bool(_PREFIX.fullmatch(prefix) and _LABEL_PART.fullmatch(name)) if slash else bool(_LABEL_PART.fullmatch(text))


def is_label_value(text: object) -> bool:
    """Whether a label may have this value; an empty one is none."""
    return isinstance(text, str) and bool(_LABEL_PART.fullmatch(text))


def read_ref(value: Any) -> ResourceRef | None:
    """The reference that a status holds, or None."""
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str) or not isinstance(value.get("name"), str):
        return None
    return ResourceRef(str(value.get("api") or ""), value["kind"], str(value.get("namespace") or ""), value["name"])


def make_ref(key: Key) -> ResourceRef:
    """The reference to a document."""
    return ResourceRef(*key)


def cluster_directory(namespace: str, name: str) -> str:
    """A cluster's name on the output branch, where clusters of all namespaces lie side by side."""
    return f"{namespace}.{name}"
