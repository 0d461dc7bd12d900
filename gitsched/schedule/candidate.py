"""A candidate of a scheduling run."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.model.taints import Taint
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.estimator import Capacity


class Candidate(NamedTuple):
    """A cluster, or another kind of target. `fields` are multi-valued (provider, region, zone); an absent or empty field has no
    values.

    `enabled_apis` None means that every API is served. `frozen` marks a candidate whose document is invalid: it keeps its
    workloads and gets no new ones. `capacity` None means unknown, which counts as sufficient.
    """

    name: str
    labels: Mapping[str, str]
    fields: Mapping[str, tuple[str, ...]]
    taints: tuple[Taint, ...] = ()
    enabled_apis: frozenset[tuple[str, str]] | None = None
    deleting: bool = False
    frozen: bool = False
    capacity: Capacity | None = None
