"""The content of README.md on the output branch: clusters, decisions and held workloads, as rows of its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from gitsched.named_tuples import NamedTuple


class FleetRow(NamedTuple):
    """One cluster; `note` is its state, such as "retiring"."""

    name: str
    region: str
    note: str
    workloads: int
    replicas: int


class DecisionRow(NamedTuple):
    """One workload ("Deployment shop/web") with its policy, or the reason for its placement.

    `placement` are clusters and replicas (None for a kind without replicas). `variants` are the directories of a workload with variants, by
    cluster.
    """

    workload: str
    policy: str
    placement: Sequence[tuple[str, int | None]]
    variants: Mapping[str, str] = {}


class HeldRow(NamedTuple):
    """A held workload: where it stays, why it would move, where it would go, and what releases it, as text."""

    workload: str
    clusters: Sequence[str]
    reason: str
    wanted: Sequence[str]
    release: str


class RecordedRow(NamedTuple):
    """A decision whose only result is a record: its subject ("Cluster prod/new"), the kind of target ("cloud") and the targets as text."""

    subject: str
    target_kind: str
    targets: Sequence[str]


class ReadmeContent(NamedTuple):
    """The content of README.md.

    `findings` counts findings by severity, `unclaimed` the objects that no policy selects; `repository` is the URL of the source. `freeze`
    is why placements are frozen, or ""; `withheld` counts the changes that the guard withholds, which the digest `allowance` allows.
    `workloads` and `clusters` are the total numbers if `decisions` and `fleet` are not complete.
    """

    source: str
    version: str
    time: datetime
    fleet: Sequence[FleetRow] = ()
    decisions: Sequence[DecisionRow] = ()
    recorded: Sequence[RecordedRow] = ()
    held: Sequence[HeldRow] = ()
    copies: Sequence[str] = ()
    findings: Mapping[str, int] = {}
    unclaimed: int = 0
    repository: str | None = None
    next_wakeup: datetime | None = None
    workloads: int = 0
    clusters: int = 0
    freeze: str = ""
    withheld: int = 0
    allowance: str = ""
