"""What a cluster is, what runs there, and why not more: what `gitsched explain cluster/NAME` shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gitsched.model.document import Key


class Resident(NamedTuple):
    """A workload that runs there; `replicas` None where nothing is counted. `new` says that the plan brings it, `leaving` that only its old
    copy is there for a while."""

    key: Key
    replicas: int | None
    policy: str
    new: bool = False
    leaving: bool = False


class Stock(NamedTuple):
    """One resource: what is free by the cluster's own account, and what remains when the plan has been carried out. Texts are as
    Kubernetes writes amounts."""

    resource: str
    free: str
    left: str


class Candidacy(NamedTuple):
    """A workload that may run there: `here` says that it does. `more` replicas fit into what is left, each workload as if it were alone;
    None where nothing is counted, or nobody knows what is free."""

    key: Key
    here: bool
    more: int | None


class Absence(NamedTuple):
    """Why workloads are not there: one reason, how many it keeps away, and the first of them by name."""

    reason: str
    workloads: int
    examples: tuple[Key, ...]


class Standing(NamedTuple):
    """A cluster. `stocks` is None where nobody knows what is free. `candidacies` are by namespace and name. `absences` are the most
    frequent first; workloads that could go there and were not chosen, and workloads that nothing selects, are among them."""

    name: str
    location: str
    region: str
    provider: str
    zones: tuple[str, ...]
    labels: Mapping[str, str]
    remarks: tuple[str, ...]
    residents: tuple[Resident, ...]
    stocks: tuple[Stock, ...] | None
    candidacies: tuple[Candidacy, ...]
    absences: tuple[Absence, ...]
