"""What the scheduler answers."""

from __future__ import annotations

from typing import Literal, NamedTuple

from gitsched.model.request import Target

Outcome = Literal["scheduled", "no-fit", "unschedulable", "error"]
"""no-fit: no candidate passes the filters; unschedulable: too little room; error: the constraints cannot be met."""


class Decision(NamedTuple):
    """`group` is the name of the ordered group that succeeded; `message` says why where nothing did."""

    outcome: Outcome
    targets: tuple[Target, ...]
    group: str
    message: str


class Verdict(NamedTuple):
    """How one candidate fared: for `explain`. `total` is None where the candidate was not scored."""

    name: str
    eligible: bool
    reason: str
    scores: dict[str, float]
    total: float | None
