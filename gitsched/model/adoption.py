"""What already runs in a fleet when gitsched takes it over: the records of a hub, and where objects run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Body, Key

ClusterReplicas = Mapping[str, int | None]
"""Replicas by cluster; None where an object has no number of replicas."""


class RunningObjects(NamedTuple):
    """The objects of a running fleet.

    `records` are what a hub recorded: bindings, decisions. `clusters` says where each object runs. `complete` are the names of the policy
    APIs whose workloads are all known, so that one which is not among them runs nowhere; `partial` those of which some may be missing, as
    of every dump: nothing in a dump says that it has all namespaces.
    `observed` are the clusters all of whose objects were read from themselves or from a directory, which `has_clusters` says was tried.
    `complete_kinds` are the kinds (group, kind) of hubs of which all objects are known.
    """

    records: Mapping[Key, Body] = {}
    clusters: Mapping[Key, ClusterReplicas] = {}
    complete: frozenset[str] = frozenset()
    partial: frozenset[str] = frozenset()
    observed: frozenset[str] = frozenset()
    complete_kinds: frozenset[tuple[str, str]] = frozenset()
    has_clusters: bool = False


class AdoptedRecord(NamedTuple):
    """A record that a run before the first one would have written, made from what runs. `subject` is the workload or document that it is
    about, `clusters` where that runs. `missing` says what the record lacks because nobody knows it."""

    key: Key
    body: Body
    subject: Key
    clusters: ClusterReplicas
    missing: tuple[str, ...] = ()


class AdoptedObject(NamedTuple):
    """An object with where it runs (`before`), where its policies would have it (`after`), and why."""

    key: Key
    before: ClusterReplicas = {}
    after: ClusterReplicas = {}
    reason: str = ""


class Adoption(NamedTuple):
    """What happens to each object of a running fleet.

    `in_place` counts objects that stay where they are. `moving` are those that their policies place elsewhere: the next run moves them.
    `held` stay where they are although their policies place them elsewhere, because what is known about them is incomplete. `unknown` are
    selected by a policy and placed nowhere, because it is not known where they run. `new` run nowhere, and the next run places them.
    `unselected` run and no policy selects them; `foreign` run and are not in the source. Neither is changed or deleted. `excluded` are
    those in place in a cluster that their policies exclude: nothing moves them until they are scheduled again.
    """

    in_place: int = 0
    moving: tuple[AdoptedObject, ...] = ()
    held: tuple[AdoptedObject, ...] = ()
    unknown: tuple[AdoptedObject, ...] = ()
    new: tuple[AdoptedObject, ...] = ()
    unselected: tuple[AdoptedObject, ...] = ()
    foreign: tuple[AdoptedObject, ...] = ()
    excluded: tuple[AdoptedObject, ...] = ()

    @property
    def holds(self) -> Mapping[str, str]:
        """Why each object keeps its placement until it is released, by its key as text."""
        return {str(one.key): one.reason for one in (*self.held, *self.unknown)}
