"""Whether a run does what somebody reviewed: the plan's digest is compared with the one that the reviewer saw."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from gitsched.git import Commit
from gitsched.model.change import Move
from gitsched.model.document import Key
from gitsched.model.errors import Permanent
from gitsched.report.digest import PREFIX
from gitsched.report.verdict import REVIEWED, label, short, write_places

SHOWN = 10
"""Workloads whose difference from the reviewed plan is told."""
_DIGEST = re.compile(rf"{PREFIX}[0-9a-f]{{64}}")

Places = Mapping[str, int | None]


class Reviewed(NamedTuple):
    """The plan that somebody reviewed. `output` is the head of the output branch that it was computed over; `moves` are None where only
    the digest is known."""

    digest: str
    output: str = ""
    moves: Mapping[Key, tuple[Places, Places]] | None = None


class Comparison(NamedTuple):
    """`same` says that the run does what was reviewed; `lines` tell it."""

    same: bool
    lines: tuple[str, ...]


def parse_reviewed(text: str) -> Reviewed:
    """From a digest, or from what `gitsched plan -o json` printed; Permanent for anything else."""
    if _DIGEST.fullmatch(text.strip()):
        return Reviewed(text.strip())
    try:
        data = json.loads(text)
        moves = {Key(**move["workload"]): (_read_places(move["before"]), _read_places(move["after"])) for move in data["moves"]}
        found = Reviewed(data["digest"], data["output"]["before"] or "", moves)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Permanent(f"neither a plan's digest ({PREFIX}...) nor what `gitsched plan -o json` printed") from error
    if not _DIGEST.fullmatch(str(found.digest)):
        raise Permanent("the plan has no digest")
    return found


def find_reviewed(source: Commit) -> Reviewed | None:
    """The review that a commit's trailer names; the last one counts."""
    digests = [text.strip() for name, text in source.trailers if name.lower() == REVIEWED.lower()]
    return Reviewed(digests[-1]) if digests and _DIGEST.fullmatch(digests[-1]) else None


def compare_with_review(reviewed: Reviewed, digest: str, output: str | None, moves: tuple[Move, ...]) -> Comparison:
    """What differs between a reviewed plan and the one of a run over the output branch at `output`."""
    if reviewed.digest == digest:
        return Comparison(True, (f"As reviewed: plan {digest}.",))
    over = f", computed over {short(reviewed.output)} of the output branch," if reviewed.output else ""
    now = f" over {short(output)}" if output else ""
    lines = [f"Not as reviewed: the reviewed plan{over} is {reviewed.digest}, this one{now} is {digest}."]
    if reviewed.moves is not None:
        lines += _list_differences(reviewed.moves, {move.key: (move.before, move.after) for move in moves})
    return Comparison(False, tuple(lines))


def _list_differences(reviewed: Mapping[Key, tuple[Places, Places]], found: Mapping[Key, tuple[Places, Places]]) -> list[str]:
    different = sorted(key for key in reviewed.keys() | found.keys() if reviewed.get(key) != found.get(key))
    lines = [f"  {label(key)}: reviewed {_say(reviewed.get(key))}; now {_say(found.get(key))}" for key in different[:SHOWN]]
    if len(different) > SHOWN:
        lines.append(f"  and {len(different) - SHOWN} more workloads")
    return lines or ["  The same workloads move in the same way, but some manifest is delivered otherwise."]


def _say(move: tuple[Places, Places] | None) -> str:
    return "it stays as it is" if move is None else f"{write_places(move[0])} -> {write_places(move[1])}"


def _read_places(entries: list[dict[str, Any]]) -> dict[str, int | None]:
    return {str(entry["cluster"]): entry["replicas"] for entry in entries}
