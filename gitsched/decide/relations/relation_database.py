"""The database of relations of a plan: the facts of all objects, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gitsched.decide.relations.schema import OBJECT, PLACED, ROLLOUTS, SCHEMA, SETTINGS
from gitsched.named_tuples import NamedTuple
from gitsched.query import BufferedStore, Database, QueryFailedError, digest_value

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.decide.relations.object_facts import ObjectFacts
    from gitsched.decide.rollouts.rollout_members import PlacedFacts, RolloutRule
    from gitsched.model.document import Key
    from gitsched.query.canonical import Key as QueryKey

_KEPT = ((SETTINGS, ()), (ROLLOUTS, ()))
"""The inputs that results are computed from again in later plans."""


class FactChanges(NamedTuple):
    """The facts of objects that have changed, and what Rollouts read of placed workloads that have changed; None for what is gone. `rules`
    are what all Rollouts select."""

    objects: Mapping[Key, ObjectFacts | None] = {}
    placed: Mapping[Key, PlacedFacts | None] = {}
    rules: tuple[RolloutRule, ...] = ()


class PlanRelations:
    """The database of relations of one plan, which continues that of the last one if there are rows of it."""

    def __init__(self, read_row: Callable[[str], bytes | None] = lambda _: None) -> None:
        """`read_row` returns the rows that the last plan has left; its own are taken from the `store`. Those of one that `is_stored`
        belong to a plan state."""
        self.is_stored = False
        self.store = BufferedStore(read_row)
        self._values: dict[tuple[str, QueryKey], Any] = {}
        self.database = Database(SCHEMA, self._load, self.store)

    def _load(self, name: str, key: QueryKey) -> Any:
        return self._values[name, key]

    def assign(self, changes: FactChanges, config: Config) -> None:
        """Set the facts that have changed, and the settings."""
        settings = tuple(map(tuple, config.assumed)), config.output.protected_namespaces
        rules = tuple(map(tuple, changes.rules)) or None
        self._assign(SETTINGS, {(): settings})
        self._assign(ROLLOUTS, {(): rules})
        self._assign(OBJECT, changes.objects)
        self._assign(PLACED, changes.placed)

    def _assign(self, name: str, values: Mapping[Any, tuple[Any, ...] | None]) -> None:
        plain = {tuple(key): None if value is None else tuple(value) for key, value in values.items()}
        self._values.update({(name, key): value for key, value in plain.items()})
        self.database.assign_all(name, ((key, None if value is None else digest_value(value)) for key, value in plain.items()))

    def update(self) -> Mapping[str, set[QueryKey]]:
        """Bring everything up to date, and return which results have changed. Raise QueryFailedError after a bug in a query."""
        self.database.update()
        for node, reason in self.database.take_failures().items():
            raise QueryFailedError(node, reason)
        return self.database.take_changes()

    def save(self) -> None:
        """Bring everything up to date and write it to the store. Facts are not read again after that."""
        self.database.save()
        self.is_stored = True
        self._values = {one: self._values[one] for one in _KEPT}

    def fork(self) -> PlanRelations:
        """Return relations that change without an effect on these."""
        fork = PlanRelations.__new__(PlanRelations)
        fork.store, fork._values, fork.is_stored = self.store, self._values.copy(), True
        fork.database = self.database.fork(fork._load)
        return fork
