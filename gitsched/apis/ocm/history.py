"""What was decided before: PlacementDecisions by Placement, and how often each cluster is in one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gitsched.apis.ocm.decisions import list_clusters
from gitsched.apis.ocm.names import DECISION, GROUP, PLACEMENT, PLACEMENT_LABEL, decision_key
from gitsched.apis.world import list_previous
from gitsched.model.document import Body, Key, group_of, member, text_map

Owner = tuple[str, str]
"""Namespace and name of a Placement; the name is "" for a decision that does not say whose it is."""


class Past(NamedTuple):
    """The PlacementDecisions of one Placement by name, and their clusters in order."""

    decisions: Mapping[str, Body]
    clusters: tuple[str, ...]

    def documents(self, namespace: str) -> tuple[tuple[Key, Body], ...]:
        """The decisions with their identities."""
        return tuple((decision_key(namespace, name), body) for name, body in self.decisions.items())


_NOTHING = Past({}, ())


def list_choices(records: Mapping[Key, Body]) -> dict[Key, frozenset[str]]:
    """The clusters of every Placement, by the PlacementDecisions among the records."""
    found: dict[Key, set[str]] = {}
    for key, body in list_previous(records, GROUP, DECISION):
        owner = text_map(member(body, "metadata", "labels")).get(PLACEMENT_LABEL, "")
        found.setdefault(Key(GROUP, PLACEMENT, key.namespace, owner), set()).update(list_clusters(body))
    return {key: frozenset(clusters) for key, clusters in found.items()}


class History:
    """Every decision that stands, as the Placements of a run change it one after another."""

    __slots__ = ("_load", "_past")

    def __init__(self, decisions: Iterable[tuple[Key, Body]], placements: frozenset[Owner]) -> None:
        by_owner: dict[Owner, dict[str, Body]] = {}
        for key, body in decisions:
            name = text_map(member(body, "metadata", "labels")).get(PLACEMENT_LABEL, "")
            if not _is_garbage(body, key.namespace, placements):
                by_owner.setdefault((key.namespace, name), {})[key.name] = body
        self._past = {owner: _summarise(bodies) for owner, bodies in by_owner.items()}
        self._load = Counter(name for past in self._past.values() for name in past.clusters)

    def of(self, owner: Owner) -> Past:
        """What a Placement decided last."""
        return self._past.get(owner, _NOTHING)

    def load(self, owner: Owner) -> Mapping[str, int]:
        """How often each cluster is in a decision of anybody else."""
        own = self._past.get(owner, _NOTHING).clusters
        if not own:
            return self._load
        others = self._load.copy()
        others.subtract(own)
        return others

    def differs(self, owner: Owner, decisions: Iterable[tuple[Key, Body]]) -> bool:
        """Whether these are other decisions than a Placement's last ones."""
        return self.of(owner).decisions != {key.name: body for key, body in decisions}

    def put(self, owner: Owner, decisions: Iterable[tuple[Key, Body]]) -> None:
        """What a Placement has decided now."""
        self._load.subtract(self._past.get(owner, _NOTHING).clusters)
        past = self._past[owner] = _summarise({key.name: body for key, body in decisions})
        self._load.update(past.clusters)


def _summarise(bodies: Mapping[str, Body]) -> Past:
    ordered = dict(sorted(bodies.items(), key=lambda entry: (_number(entry[0]), entry[0])))
    return Past(ordered, tuple(name for body in ordered.values() for name in list_clusters(body)))


def _number(name: str) -> int:
    number = name.rpartition("-")[2]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 0


def _is_garbage(decision: Body, namespace: str, placements: frozenset[Owner]) -> bool:
    """Whether the Placement that owns a decision is gone: a server would have collected it."""
    owners = member(decision, "metadata", "ownerReferences") or ()
    return any(
        owner.get("kind") == PLACEMENT
        and group_of(str(owner.get("apiVersion"))) == GROUP
        and (namespace, str(owner.get("name"))) not in placements
        for owner in owners
    )
