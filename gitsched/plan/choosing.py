"""What documents that place nothing themselves choose: other programs follow them, so a review has to tell."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.model.change import Choice
from gitsched.model.document import Body, Key
from gitsched.plan.deciding import Decided
from gitsched.plan.registry import APIS


def read_choices(records: Mapping[Key, Body]) -> dict[Key, frozenset[str]]:
    """The clusters that are chosen by the records of an output."""
    return {key: clusters for api in APIS if api.choices for key, clusters in api.choices(records).items()}


def list_choices(decided: Decided) -> dict[Key, frozenset[str]]:
    """The same of a plan."""
    return read_choices({key: body for session in decided.sessions for key, body in session.documents()})


def compare_choices(before: Mapping[Key, frozenset[str]], after: Mapping[Key, frozenset[str]]) -> tuple[Choice, ...]:
    """Who chooses other clusters, by namespace and name."""
    nothing = frozenset[str]()
    pairs = ((key, before.get(key, nothing), after.get(key, nothing)) for key in before.keys() | after.keys())
    differ = (Choice(key, tuple(sorted(old)), tuple(sorted(new))) for key, old, new in pairs if old != new)
    return tuple(sorted(differ, key=lambda choice: (choice.key.namespace, choice.key.name, choice.key)))
