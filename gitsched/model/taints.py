"""Taints and tolerations, by the rules of Kubernetes' core API."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gitsched.model.time import parse_time
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.finding import FieldOrigin

NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"


_CONTROLLER_TAINTS = (
    "cluster.karmada.io/not-ready",
    "cluster.karmada.io/unreachable",
    "node.kubernetes.io/",
)
"""Keys, and prefixes of keys that end in a slash, of taints that controllers add by themselves when a cluster or node is not ready."""


class Taint(NamedTuple):
    """A taint; `since` is timeAdded, or None if the document does not set it."""

    key: str
    value: str
    effect: str
    since: datetime | None = None

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class ClusterTaint(NamedTuple):
    """A taint that people have set on a cluster. `evicts`: workloads that do not tolerate it leave the cluster; else it only gets no new
    ones.

    `field` is where it is written, None for a document that no file has; `location` is FILE:LINE, "" until it is looked up. `cordons`: it
    is the one that `gitsched cordon` writes.
    """

    taint: Taint
    evicts: bool
    field: FieldOrigin | None
    location: str = ""
    cordons: bool = False

    def __str__(self) -> str:
        where = f" ({self.location})" if self.location else ""
        verb = "drained by" if self.evicts else "cordoned by" if self.cordons else "has"
        return f"{verb} the taint {self.taint}{where}"


class Toleration(NamedTuple):
    """A toleration; `seconds` is tolerationSeconds: None means without limit. It applies to NoExecute taints only."""

    key: str
    operator: str
    value: str
    effect: str
    seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Return whether the effect is empty or equal, the key is empty or equal, and the operator is Exists, or Equal with the
        same value. Lt and Gt are not supported."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return self.operator in ("", "Equal") and self.value == taint.value


class TolerationIndex:
    """Tolerations by their keys, so that a taint is compared with few of them."""

    def __init__(self, tolerations: Iterable[Toleration]) -> None:
        self._by_key: dict[str, list[tuple[int, Toleration]]] = {}
        for position, toleration in enumerate(tolerations):
            self._by_key.setdefault(toleration.key, []).append((position, toleration))

    def find_first(self, taint: Taint) -> Toleration | None:
        """Return the first toleration that tolerates a taint; None if there is none."""
        found = [
            next((entry for entry in self._by_key.get(key, ()) if entry[1].tolerates(taint)), None)
            for key in dict.fromkeys((taint.key, ""))
        ]
        return min((entry for entry in found if entry is not None), key=lambda entry: entry[0], default=(0, None))[1]


def is_controller_taint(taint: Taint) -> bool:
    """Return whether a controller adds a taint by itself when a cluster or a node is not ready."""
    return any(taint.key == key or (key.endswith("/") and taint.key.startswith(key)) for key in _CONTROLLER_TAINTS)


def parse_taint(value: Any) -> Taint:
    """Parse a corev1.Taint; missing members are empty."""
    entry = value if isinstance(value, dict) else {}
    return Taint(_get_text(entry, "key"), _get_text(entry, "value"), _get_text(entry, "effect"), parse_time(entry.get("timeAdded")))


def split_taint(text: str, since: datetime | None = None) -> Taint:
    """Return the taint with this text."""
    name, _, effect = text.rpartition(":")
    key, _, value = name.partition("=")
    return Taint(key, value, effect, since)


def parse_toleration(value: Any) -> Toleration:
    """Parse a corev1.Toleration; missing members are empty."""
    entry = value if isinstance(value, dict) else {}
    seconds = entry.get("tolerationSeconds")
    return Toleration(
        _get_text(entry, "key"),
        _get_text(entry, "operator"),
        _get_text(entry, "value"),
        _get_text(entry, "effect"),
        seconds if isinstance(seconds, int) and not isinstance(seconds, bool) else None,
    )


def _get_text(entry: dict[str, Any], name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""
