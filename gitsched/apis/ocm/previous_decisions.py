"""PlacementDecisions of the previous output by Placement, and the DecisionBasis: the digest of the documents behind them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from gitsched.apis.gitsched.config import GROUP as OWN_GROUP
from gitsched.apis.gitsched.config import VERSION as OWN_VERSION
from gitsched.apis.ocm.decisions import list_decision_clusters
from gitsched.apis.ocm.names import (
    DECISION_BASIS,
    GROUP,
    GROUP_INDEX_LABEL,
    GROUP_NAME_LABEL,
    MANAGED_CLUSTER,
    PLACEMENT,
    PLACEMENT_LABEL,
    decision_key,
)
from gitsched.model.document import Body, Document, Key, get_field, list_objects, parse_api_group, read_annotations, read_labels
from gitsched.model.scheduling import RecordedDecision, RecordTarget
from gitsched.model.time import format_time, parse_time
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.selection import SelectionFilter

PlacementName = tuple[str, str]
"""Namespace and name of a Placement; the name is "" for a PlacementDecision without the placement label."""


class PreviousDecisions(NamedTuple):
    """The previous PlacementDecisions of one Placement by name, and their clusters in order."""

    decisions: Mapping[str, Body]
    clusters: tuple[str, ...]

    def records(self, namespace: str) -> tuple[tuple[Key, Body], ...]:
        """Return the PlacementDecisions with their keys."""
        return tuple((decision_key(namespace, name), body) for name, body in self.decisions.items())


_NO_DECISIONS = PreviousDecisions({}, ())


def describe_decision(key: Key, record: Body) -> RecordedDecision | None:
    """Return the clusters that a Placement has chosen, from one of its PlacementDecisions; None without a Placement.

    The group of a cluster is its decision group: the name, else the index if it is not the first group.
    """
    labels = read_labels(record)
    owner, index = labels.get(PLACEMENT_LABEL), labels.get(GROUP_INDEX_LABEL, "0")
    if not owner:
        return None
    group = labels.get(GROUP_NAME_LABEL) or (f"group {index}" if index != "0" else "")
    clusters = list_decision_clusters(record)
    targets = (RecordTarget(name, group=group, key=Key(GROUP, MANAGED_CLUSTER, "", name)) for name in clusters)
    return RecordedDecision(Key(GROUP, PLACEMENT, key.namespace, owner), "cluster", tuple(targets))


class DecisionIndex:
    """The current PlacementDecisions of all Placements; a run updates them one Placement after another."""

    __slots__ = ("_decision_counts", "_previous")

    def __init__(self, decisions: Iterable[tuple[Key, Body]], placements: frozenset[PlacementName]) -> None:
        by_owner: dict[PlacementName, dict[str, Body]] = {}
        for key, body in decisions:
            name = read_labels(body).get(PLACEMENT_LABEL, "")
            if not _is_orphaned(body, key.namespace, placements):
                by_owner.setdefault((key.namespace, name), {})[key.name] = body
        self._previous = {owner: _sort_decisions(bodies) for owner, bodies in by_owner.items()}
        self._decision_counts = Counter(name for last in self._previous.values() for name in last.clusters)

    def find(self, owner: PlacementName) -> PreviousDecisions:
        """Return the last decisions of a Placement."""
        return self._previous.get(owner, _NO_DECISIONS)

    def count_other_decisions(self, owner: PlacementName) -> Mapping[str, int]:
        """Count for each cluster how many decisions of other Placements contain it."""
        previous_clusters = self._previous.get(owner, _NO_DECISIONS).clusters
        if not previous_clusters:
            return self._decision_counts
        others = self._decision_counts.copy()
        others.subtract(previous_clusters)
        return others

    def has_changed(self, owner: PlacementName, decisions: Iterable[tuple[Key, Body]]) -> bool:
        """Report whether the decisions differ from the last ones of the Placement."""
        return self.find(owner).decisions != {key.name: body for key, body in decisions}

    def update(self, owner: PlacementName, decisions: Iterable[tuple[Key, Body]]) -> None:
        """Replace the decisions of a Placement."""
        self._decision_counts.subtract(self._previous.get(owner, _NO_DECISIONS).clusters)
        last = self._previous[owner] = _sort_decisions({key.name: body for key, body in decisions})
        self._decision_counts.update(last.clusters)


def merge_decisions(previous: Iterable[tuple[Key, Body]], documents: Iterable[Document]) -> list[tuple[Key, Body]]:
    """Return the PlacementDecisions of the previous output, and those in the source for Placements that have none in the output."""
    from_output = list(previous)
    owners = {(key.namespace, _placement_name(body)) for key, body in from_output}
    from_source = [(d.key, d.body) for d in documents if (d.key.namespace, _placement_name(d.body)) not in owners]
    return [*from_output, *from_source]


def _placement_name(body: Body) -> str:
    return read_labels(body).get(PLACEMENT_LABEL, "")


def _sort_decisions(bodies: Mapping[str, Body]) -> PreviousDecisions:
    ordered = dict(sorted(bodies.items(), key=lambda entry: (_parse_suffix(entry[0]), entry[0])))
    return PreviousDecisions(ordered, tuple(name for body in ordered.values() for name in list_decision_clusters(body)))


def _parse_suffix(name: str) -> int:
    number = name.rpartition("-")[2]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 0


def _is_orphaned(decision: Body, namespace: str, placements: frozenset[PlacementName]) -> bool:
    """Report whether the Placement that owns a decision is deleted, so that garbage collection would delete the decision."""
    owners = list_objects(get_field(decision, "metadata", "ownerReferences"))
    return any(
        owner.get("kind") == PLACEMENT
        and parse_api_group(str(owner.get("apiVersion"))) == GROUP
        and (namespace, str(owner.get("name"))) not in placements
        for owner in owners
    )


BASIS_KEY = Key(OWN_GROUP, DECISION_BASIS, "", "open-cluster-management")
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str).encode
_DIGEST, _DECIDED_AT = "gitsched.io/digest", "gitsched.io/decided-at"


class DecisionBasis(NamedTuple):
    """The digest of the documents that the current decisions were made from, and when a decision last changed."""

    digest: str
    decided_at: datetime


_KNOWN_FILTERS = ["Predicate", "TaintToleration"]
"""The filters that are no part of a digest: output branches have digests without them."""


def digest_documents(
    documents: Mapping[tuple[str, str], tuple[Document, ...]], broken: Iterable[Key], filters: Iterable[SelectionFilter]
) -> str:
    """Return a digest of all documents of Open Cluster Management, by blob id where they have one, else by content, and of the filters if
    there are others than those of gitsched."""
    state = hashlib.sha256()
    for (group, kind), entries in sorted(documents.items()):
        if group == GROUP:
            for document in entries:
                state.update(
                    f"{kind} {document.key.namespace}/{document.key.name} {_document_digest(document)}\n".encode("utf-8", "replace")
                )
    for key in sorted(key for key in broken if key.group == GROUP):
        state.update(f"broken {key}\n".encode("utf-8", "replace"))
    listed = list(filters)
    if [rule.name for rule in listed] != _KNOWN_FILTERS:
        for rule in listed:
            state.update(f"filter {rule.name} {getattr(rule, 'version', '')}\n".encode("utf-8", "replace"))
    return state.hexdigest()[:32]


def _document_digest(document: Document) -> str:
    origin = document.origin
    if origin is not None and origin.blob:
        return f"{origin.blob} {origin[2]} {origin.item}"
    return _encode(document.body)


def read_basis(record: Body | None) -> DecisionBasis | None:
    """Read the basis from its record."""
    annotations = read_annotations(record or {})
    decided_at = parse_time(annotations.get(_DECIDED_AT))
    return DecisionBasis(annotations[_DIGEST], decided_at) if decided_at is not None and _DIGEST in annotations else None


def write_basis(basis: DecisionBasis) -> tuple[Key, Body]:
    """Return the record of a basis."""
    annotations = {_DIGEST: basis.digest, _DECIDED_AT: format_time(basis.decided_at)}
    metadata = {"name": BASIS_KEY.name, "annotations": annotations}
    return BASIS_KEY, {"apiVersion": f"{BASIS_KEY.group}/{OWN_VERSION}", "kind": BASIS_KEY.kind, "metadata": metadata}
