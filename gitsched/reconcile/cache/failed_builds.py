"""Builds of a source that fail, and what the plan has in their place."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.named_tuples import NamedTuple


class FailedBuild(NamedTuple):
    """A build that fails. `commit` is the source commit whose objects are used, "" without objects. `lasting`: each run finds the same with
    the same files, history and programs."""

    commit: str
    lasting: bool


FailedBuilds = Mapping[str, FailedBuild]
"""Builds by the directory of their root, or by the name of what a delivery tool reconciles."""


def merge_failed(first: FailedBuilds | None, second: FailedBuilds | None) -> FailedBuilds | None:
    """Return the failed builds of both; None if nobody knows those of one, or if the same name is in both."""
    if first is None or second is None or not first.keys().isdisjoint(second):
        return None
    return {**first, **second}
