"""The names of the policies that place workloads in one plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from gitsched.decide.registry import read_required_by
from gitsched.model.document import Body, Key
from gitsched.model.scheduling import Outcome

Records = Iterable[tuple[Key, Body]]


class PolicyNames:
    """Names the policies of workloads with these outcomes.

    `list_records` returns the records of an outcome, by default those that it has; `list_owners` the keys of the records of all workloads
    with a policy in a namespace, each with the name of that policy.
    """

    def __init__(
        self,
        outcomes: Mapping[Key, Outcome],
        list_records: Callable[[Outcome], Records] | None = None,
        list_owners: Callable[[str], Iterable[tuple[Key, str]]] | None = None,
    ) -> None:
        self._outcomes = outcomes
        self._list_records = list_records if list_records is not None else _list_records
        self._list_owners = list_owners if list_owners is not None else self._list_all_owners
        self._by_record: dict[str, Mapping[str, str]] = {}

    def list_policies(self, key: Key) -> tuple[str, ...]:
        """Return the policies that place a workload, or else those of the workloads that bring it along."""
        outcome = self._outcomes.get(key)
        if outcome is None or outcome.policy:
            return (outcome.policy,) if outcome is not None else ()
        required_by = read_required_by(outcome.api, (body for _, body in self._list_records(outcome)))
        names = (self._index_owners(namespace).get(name) for namespace, name in required_by)
        return tuple(sorted({name for name in names if name is not None}))

    def _index_owners(self, namespace: str) -> Mapping[str, str]:
        """Return the policy of each workload that has one, by the name of its records in a namespace."""
        if namespace not in self._by_record:
            self._by_record[namespace] = {key.name: policy for key, policy in self._list_owners(namespace)}
        return self._by_record[namespace]

    def _list_all_owners(self, namespace: str) -> Iterable[tuple[Key, str]]:
        owners = (outcome for outcome in self._outcomes.values() if outcome.policy)
        return ((record, owner.policy) for owner in owners for record, _ in owner.records if record.namespace == namespace)


def split_policies(names: Iterable[str]) -> list[str]:
    """Return the names of single policies: a workload of several has their joined names."""
    return [name for joined in names for name in joined.split(", ")]


def _list_records(outcome: Outcome) -> Records:
    return outcome.records
