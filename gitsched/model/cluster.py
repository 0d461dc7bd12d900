"""What the output branch says about a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ClusterFacts(NamedTuple):
    """What generators downstream read about a cluster; `replicas` and `workloads` count what is placed there."""

    name: str
    labels: Mapping[str, str]
    region: str = ""
    provider: str = ""
    replicas: int = 0
    workloads: int = 0
