"""PlacementDecisions of the previous output by Placement, and the DecisionBasis: the digest of the documents they were made
from."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.engine import list_previous_records
from gitsched.apis.gitsched.config import GROUP as OWN_GROUP
from gitsched.apis.gitsched.config import VERSION as OWN_VERSION
from gitsched.apis.ocm.decisions import list_decision_clusters
from gitsched.apis.ocm.names import GROUP, PLACEMENT, PLACEMENT_DECISION, PLACEMENT_LABEL, decision_key
from gitsched.model.document import Body, Document, Key, as_string_map, get_field, parse_api_group
from gitsched.model.time import format_time, parse_time

PlacementName = tuple[str, str]
"""Namespace and name of a Placement; the name is "" for a decision that does not say whose it is."""


class PreviousDecisions(NamedTuple):
    """The PlacementDecisions of one Placement by name, and their clusters in order."""

    decisions: Mapping[str, Body]
    clusters: tuple[str, ...]

    def records(self, namespace: str) -> tuple[tuple[Key, Body], ...]:
        """The decisions with their identities."""
        return tuple((decision_key(namespace, name), body) for name, body in self.decisions.items())


_NO_DECISIONS = PreviousDecisions({}, ())


def list_chosen_clusters(records: Mapping[Key, Body]) -> dict[Key, frozenset[str]]:
    """The clusters of every Placement, by the PlacementDecisions among the records."""
    found: dict[Key, set[str]] = {}
    for key, body in list_previous_records(records, GROUP, PLACEMENT_DECISION):
        owner = as_string_map(get_field(body, "metadata", "labels")).get(PLACEMENT_LABEL, "")
        found.setdefault(Key(GROUP, PLACEMENT, key.namespace, owner), set()).update(list_decision_clusters(body))
    return {key: frozenset(clusters) for key, clusters in found.items()}


class DecisionIndex:
    """Every decision that stands, as the Placements of a run change it one after another."""

    __slots__ = ("_decision_counts", "_previous")

    def __init__(self, decisions: Iterable[tuple[Key, Body]], placements: frozenset[PlacementName]) -> None:
        by_owner: dict[PlacementName, dict[str, Body]] = {}
        for key, body in decisions:
            name = as_string_map(get_field(body, "metadata", "labels")).get(PLACEMENT_LABEL, "")
            if not _is_orphaned(body, key.namespace, placements):
                by_owner.setdefault((key.namespace, name), {})[key.name] = body
        self._previous = {owner: _sort_decisions(bodies) for owner, bodies in by_owner.items()}
        self._decision_counts = Counter(name for past in self._previous.values() for name in past.clusters)

    def find(self, owner: PlacementName) -> PreviousDecisions:
        """What a Placement decided last."""
        return self._previous.get(owner, _NO_DECISIONS)

    def count_other_decisions(self, owner: PlacementName) -> Mapping[str, int]:
        """How often each cluster is in a decision of anybody else."""
        own = self._previous.get(owner, _NO_DECISIONS).clusters
        if not own:
            return self._decision_counts
        others = self._decision_counts.copy()
        others.subtract(own)
        return others

    def has_changed(self, owner: PlacementName, decisions: Iterable[tuple[Key, Body]]) -> bool:
        """Whether these are other decisions than a Placement's last ones."""
        return self.find(owner).decisions != {key.name: body for key, body in decisions}

    def update(self, owner: PlacementName, decisions: Iterable[tuple[Key, Body]]) -> None:
        """What a Placement has decided now."""
        self._decision_counts.subtract(self._previous.get(owner, _NO_DECISIONS).clusters)
        past = self._previous[owner] = _sort_decisions({key.name: body for key, body in decisions})
        self._decision_counts.update(past.clusters)


def _sort_decisions(bodies: Mapping[str, Body]) -> PreviousDecisions:
    ordered = dict(sorted(bodies.items(), key=lambda entry: (_parse_suffix(entry[0]), entry[0])))
    return PreviousDecisions(ordered, tuple(name for body in ordered.values() for name in list_decision_clusters(body)))


def _parse_suffix(name: str) -> int:
    number = name.rpartition("-")[2]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 0


def _is_orphaned(decision: Body, namespace: str, placements: frozenset[PlacementName]) -> bool:
    """Whether the Placement that owns a decision is gone: a server would have collected it."""
    owners = get_field(decision, "metadata", "ownerReferences") or ()
    return any(
        owner.get("kind") == PLACEMENT
        and parse_api_group(str(owner.get("apiVersion"))) == GROUP
        and (namespace, str(owner.get("name"))) not in placements
        for owner in owners
    )


BASIS_KEY = Key(OWN_GROUP, "DecisionBasis", "", "open-cluster-management")
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str).encode
_DIGEST, _DECIDED_AT = "gitsched.io/digest", "gitsched.io/decided-at"


class DecisionBasis(NamedTuple):
    """`digest` names the documents, `moment` is when they were decided about last with another result than before."""

    digest: str
    decided_at: datetime


def digest_documents(documents: Mapping[tuple[str, str], tuple[Document, ...]], broken: Iterable[Key]) -> str:
    """All of Open Cluster Management's documents: where they have a blob by its name, else by what they say."""
    state = hashlib.sha256()
    for (group, kind), entries in sorted(documents.items()):
        if group == GROUP:
            for document in entries:
                state.update(
                    f"{kind} {document.key.namespace}/{document.key.name} {_document_digest(document)}\n".encode("utf-8", "replace")
                )
    for key in sorted(key for key in broken if key.group == GROUP):
        state.update(f"broken {key}\n".encode("utf-8", "replace"))
    return state.hexdigest()[:32]


def _document_digest(document: Document) -> str:
    origin = document.origin
    if origin is not None and origin.blob:
        return f"{origin.blob} {origin[2]} {origin.item}"
    return _encode(document.body)


def read_basis(record: Body | None) -> DecisionBasis | None:
    """The basis in a record."""
    noted = as_string_map(get_field(record or {}, "metadata", "annotations"))
    moment = parse_time(noted.get(_DECIDED_AT))
    return DecisionBasis(noted[_DIGEST], moment) if moment is not None and _DIGEST in noted else None


def write_basis(basis: DecisionBasis) -> tuple[Key, Body]:
    """The record of a basis."""
    annotations = {_DIGEST: basis.digest, _DECIDED_AT: format_time(basis.decided_at)}
    metadata = {"name": BASIS_KEY.name, "annotations": annotations}
    return BASIS_KEY, {"apiVersion": f"{BASIS_KEY.group}/{OWN_VERSION}", "kind": BASIS_KEY.kind, "metadata": metadata}
