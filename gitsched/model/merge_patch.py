"""Merge patches that set one value of an object in a cluster, and the results of applying them."""

from __future__ import annotations

from typing import Any, Literal

from gitsched.model.document import Body, Key, get_field
from gitsched.named_tuples import NamedTuple


class MergePatch(NamedTuple):
    """A JSON merge patch (RFC 7386) that sets the value at `path`. `subresource` is "" for the main resource."""

    target: Key
    api_version: str
    path: tuple[str, ...]
    value: Any
    subresource: str = ""

    @property
    def body(self) -> Body:
        """The patch document."""
        body = self.value
        for name in reversed(self.path):
            body = {name: body}
        result: Body = body
        return result

    def is_needed(self, live: Body) -> bool:
        """Return whether the object has another value. An empty list equals a missing one."""
        current = get_field(live, *self.path)
        return bool(current != self.value and (current or self.value != []))


class RefusedRecord(NamedTuple):
    """A record that must not be applied, and why."""

    target: Key
    reason: str


class ApplicablePatches(NamedTuple):
    """The patches of a policy API, and the records that it refuses to apply.

    More `replicas` are applied before the updates, fewer after all of them.
    """

    updates: tuple[MergePatch, ...]
    replicas: tuple[MergePatch, ...] = ()
    refused: tuple[RefusedRecord, ...] = ()


ApplyState = Literal["patched", "unchanged", "missing", "waiting", "failed", "temporary"]
"""The result for one object. "waiting": fewer replicas wait for placements that failed; "missing": the cluster has no such object."""


class ApplyResult(NamedTuple):
    """The result for one object; `message` has the reason for a failure. `contended`: another writer replaced a value that was applied."""

    patch: MergePatch
    state: ApplyState
    message: str = ""
    contended: bool = False


class ApplyReport(NamedTuple):
    """The results of one run, in the order in which patches were applied."""

    commit: str
    dry_run: bool
    results: tuple[ApplyResult, ...]
    refused: tuple[RefusedRecord, ...]

    def list_state(self, *states: ApplyState) -> list[ApplyResult]:
        """Return the results with one of these states."""
        return [result for result in self.results if result.state in states]
