"""What a review was about, as one text: equal where the same workloads move in the same way and the same manifests are delivered."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256

from gitsched.model.change import Choice, Move

PREFIX = "sha256:"
_FORMAT = 1


def digest(moves: Iterable[Move], delivered: Mapping[str, str | None], choices: Iterable[Choice] = ()) -> str:
    """`sha256:` and 64 hex digits over what changes.

    Covered: each workload that moves, with its clusters and replicas before and after, and each manifest that is delivered otherwise
    than before, by path and new content (`delivered`: blob id, None where it goes; without copies in clusters that a workload leaves),
    and each Placement that chooses other clusters.
    Not covered: commit ids, times, reasons, records, findings, and all that stays as it is; so the merge of a reviewed branch has the
    digest of the review as long as it does the same.
    """
    lines = [
        [*move.key, sorted(move.before.items()), sorted(move.after.items())] for move in sorted(moves, key=lambda move: move.key)
    ]
    chosen = [[*choice.key, choice.before, choice.after] for choice in sorted(choices)]
    value: dict[str, object] = {"files": sorted(delivered.items()), "format": _FORMAT, "moves": lines}
    if chosen:
        value["choices"] = chosen
    return PREFIX + sha256(json.dumps(value, separators=(",", ":"), sort_keys=True).encode()).hexdigest()
