"""What a plan changes compared with the previous output: moved workloads, changed selections, changed manifests and their
causes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gitsched.model.document import Key
from gitsched.model.finding import FieldOrigin, Location


class Cause(NamedTuple):
    """One thing that makes a workload move: `text` says it in one line, `location` where it stands, None where nobody wrote it.

    `rule` is what `location` can be told more exactly from. `gone`: the place is in the earlier commit.
    """

    text: str
    location: Location | None = None
    field: FieldOrigin | None = None
    removed: bool = False

    def __str__(self) -> str:
        place = f"{self.location.path}:{self.location.line}" if self.location else ""
        return f"{self.text} ({'was ' if self.removed else ''}{place})" if place else self.text


class Move(NamedTuple):
    """`before` and `after` map clusters to replicas (None where the manifest is rendered as it is); empty means placed nowhere.

    `reason` is one line; `causes` are what it comes from, the most telling first, and empty where nobody looked.
    """

    key: Key
    before: Mapping[str, int | None]
    after: Mapping[str, int | None]
    reason: str
    causes: tuple[Cause, ...] = ()

    @property
    def becomes_unplaced(self) -> bool:
        """Whether the workload loses its last place."""
        return bool(self.before) and not self.after

    @property
    def main_reason(self) -> str:
        """The most telling cause with its place, else the reason."""
        return str(self.causes[0]) if self.causes else self.reason


class SelectionChange(NamedTuple):
    """A document that chooses clusters and places nothing itself, such as a Placement, and which it chose and chooses; in name order."""

    key: Key
    before: tuple[str, ...]
    after: tuple[str, ...]


class RetainedWorkload(NamedTuple):
    """A workload that a change concerns and that stays where it is, because what was decided is remembered.

    `places` is where it is, `anew` where it would be were it decided now for the first time. `remedy` says what would bring it there.
    """

    key: Key
    current: Mapping[str, int | None]
    if_rescheduled: Mapping[str, int | None]
    remedy: str


class ManifestChange(NamedTuple):
    """One manifest that clusters get, get otherwise or get no longer; clusters for which that is the same text are taken together.

    `path` is below a cluster's directory. `before` and `after` are blob ids; None: it is not there. `diff` is the unified diff without
    its head; of a manifest that is new in a cluster, against the one that another cluster has had (`copied`: its name), else against
    nothing. "" where the texts are the same, and where `note` says why it is not shown.
    """

    path: str
    clusters: tuple[str, ...]
    before: str | None
    after: str | None
    diff: str = ""
    copied: str = ""
    note: str = ""

    @property
    def verb(self) -> str:
        """added, removed or changed."""
        return "added" if self.before is None else "removed" if self.after is None else "changed"
