"""Two plans over the same previous output: which workloads the one places otherwise than the other."""

from __future__ import annotations

from collections.abc import Collection

from gitsched.model.change import Move
from gitsched.model.document import Key
from gitsched.plan.planning import Plan, tell


def list_changes(base: Plan, head: Plan, held: Collection[Key]) -> tuple[Move, ...]:
    """What `head` changes against `base`, in the order of the outcomes; what only `base` places comes last.

    `held` are the documents that the later commit has.
    """
    moves = []
    for key, outcome in head.outcomes.items():
        known = base.outcomes.get(key)
        earlier = known.shares if known is not None else {}
        if earlier != outcome.shares:
            moves.append(Move(key, earlier, outcome.shares, tell(outcome)))
    for key, outcome in base.outcomes.items():
        if key not in head.outcomes and outcome.shares:
            moves.append(Move(key, outcome.shares, {}, _UNSELECTED if key in held else _GONE))
    return tuple(moves)


_GONE = "it is not in the repository any more"
_UNSELECTED = "no policy selects it any more"
