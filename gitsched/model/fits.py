"""Which of several changes fit together, as plain data."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.named_tuples import NamedTuple

ChangeSet = frozenset[int]
"""Changes by their positions in the order in which they are to be merged."""


class FittingSets(NamedTuple):
    """`sequence` are changes of which each fits after those before it. `conflicts` are the smallest sets that do not fit although each
    part of them does, of two changes at least. `requirements` has for a change that does not fit alone the smallest sets with which it
    does. `is_complete`: every set was tried that could add to these."""

    sequence: tuple[int, ...]
    conflicts: tuple[ChangeSet, ...] = ()
    requirements: tuple[tuple[int, ChangeSet], ...] = ()
    is_complete: bool = True

    def list_conflicts_of(self, change: int) -> list[ChangeSet]:
        """Return what must not be merged before a change: the rest of each set with which it does not fit."""
        return [conflict - {change} for conflict in self.conflicts if change in conflict]

    def list_requirements_of(self, change: int) -> list[ChangeSet]:
        """Return the sets of which one has to be merged before a change."""
        return [required for one, required in self.requirements if one == change]


class SetVerdict(NamedTuple):
    """Whether the changes of a set fit together: `files` are those with conflicts, `reasons` say why the plan of the merge fails."""

    reasons: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        return not (self.reasons or self.files)


class FitReport(NamedTuple):
    """Which changes fit together on top of a base commit. `changes` are the names of the changes with the ids of their commits, `verdicts`
    those of the sets that were tried, and `plans` is how many plans were made for that. `with_settings` are the changes that change
    settings, which were not applied."""

    base: tuple[str, str]
    changes: tuple[tuple[str, str], ...]
    found: FittingSets
    verdicts: Mapping[ChangeSet, SetVerdict]
    plans: int
    with_settings: ChangeSet = frozenset()
