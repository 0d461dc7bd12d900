"""What changes are compared with: the workloads and replicas of the fleet, of a namespace and of a cluster before the changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.guard_config import MIN_PERCENT_SIZE, MIN_SCOPE_SIZE
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.changes import GuardEffect, GuardScope
    from gitsched.model.document import Key


class PlacedWorkload(NamedTuple):
    """A workload of the previous output: its replicas by cluster, None without replicas. `stays`: it keeps its placement whatever its
    policy says, because it is held, or because its document or policy cannot be used."""

    key: Key
    replicas: Mapping[str, int | None]
    stays: bool = False


class MeasuredAmount(NamedTuple):
    """What changes count for against a limit, of a whole scope or of one owner: the `size` that it is compared with, and the `workloads`
    there. The `staying` workloads or replicas are not in these, because they keep their placement."""

    amount: int
    size: int
    workloads: int
    staying: int = 0


class ScopeSizes:
    """The workloads and replicas of each scope. Those that stay as they are must not hide that everything else goes, so amounts are
    compared with the others."""

    def __init__(self, placed: Iterable[PlacedWorkload]) -> None:
        self._all: Counter[tuple[GuardScope, str, str]] = Counter()
        self._staying: Counter[tuple[GuardScope, str, str]] = Counter()
        for workload in placed:
            for sizes in (self._all, self._staying) if workload.stays else (self._all,):
                for cluster in workload.replicas:
                    sizes["cluster", cluster, "workloads"] += 1
                replicas = count_replicas(workload.replicas)
                for scope, name in list_scopes(workload.key):
                    sizes[scope, name, "workloads"] += 1
                    sizes[scope, name, "replicas"] += replicas

    def measure(self, scope: GuardScope, name: str, effect: GuardEffect, amount: int) -> MeasuredAmount:
        """Return an amount with the workloads of its scope that may change. Where these are so few that no limit in percent applies, and
        do not all go, all workloads count."""
        unit = "workloads" if effect in ("removed", "moved") else "replicas"
        size, workloads = self._all[scope, name, unit], self._all[scope, name, "workloads"]
        free = workloads - self._staying[scope, name, "workloads"]
        staying = self._staying[scope, name, unit] if effect != "replicasAdded" else 0  # which replicas stay limits no addition
        goes = effect == "removed" and MIN_SCOPE_SIZE < free <= amount
        if free > MIN_PERCENT_SIZE or workloads <= MIN_PERCENT_SIZE or goes:
            return MeasuredAmount(amount, size - staying, free, staying)
        return MeasuredAmount(amount, size, workloads)


def list_scopes(key: Key) -> tuple[tuple[GuardScope, str], ...]:
    """Return the scopes of a workload besides its clusters: the fleet, its namespace and itself, with their names."""
    return ("fleet", ""), ("namespace", key.namespace), ("workload", str(key))


def count_replicas(replicas: Mapping[str, int | None]) -> int:
    return sum(count or 0 for count in replicas.values())
