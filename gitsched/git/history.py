"""List the commits between an earlier commit and a later one, the newest first. Histories may be rewritten, shallow or long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from gitsched.model.commit import Commit
from gitsched.named_tuples import NamedTuple


class CommitRange(NamedTuple):
    """Commits, each before its parents. `missing` is the id of the newest commit that is not available, "" if there is none;
    `reached` says whether the earlier commit was found, `truncated` whether the limit ended the walk."""

    commits: tuple[Commit, ...] = ()
    missing: str = ""
    reached: bool = False
    truncated: bool = False


def list_commits_since(earlier: str, heads: Sequence[str], read_commit: Callable[[str], Commit | None], limit: int) -> CommitRange:
    """Return at most `limit` commits that descend from `earlier`, which is left out, and that `heads` contain.

    Each commit is before its parents, and of two parallel lines of a merge that of the first parent comes first. Commits that do not
    descend from `earlier` are left out: they do not have what that commit has. Where `earlier` is not found, all commits count.
    `read_commit` returns None for a commit that is not available.
    """
    found, missing, truncated = _collect(earlier, heads, read_commit, limit)
    order = _sort(found, heads)
    descends: dict[str, bool] = {}
    for commit in reversed(order):
        descends[commit.oid] = any(parent == earlier or descends.get(parent, False) for parent in commit.parents)
    reached = earlier in heads or any(descends.values())
    return CommitRange(tuple(c for c in order if descends[c.oid] or not reached), missing, reached, truncated)


def _collect(
    earlier: str, heads: Sequence[str], read_commit: Callable[[str], Commit | None], limit: int
) -> tuple[dict[str, Commit], str, bool]:
    """Return the newest commits up to `earlier`, the first one that is not available, and whether there are more than `limit`."""
    found: dict[str, Commit] = {}
    pending: list[tuple[float, str, Commit]] = []
    seen, missing = {earlier}, ""

    def add(oid: str) -> None:
        nonlocal missing
        if oid not in seen:
            seen.add(oid)
            commit = read_commit(oid)
            if commit is not None:
                heappush(pending, (-commit.time.timestamp(), oid, commit))
            else:
                missing = missing or oid

    for oid in heads:
        add(oid)
    while pending and len(found) < limit:
        _, oid, commit = heappop(pending)
        found[oid] = commit
        for parent in commit.parents:
            add(parent)
    return found, missing, bool(pending)


def _sort(found: dict[str, Commit], heads: Sequence[str]) -> list[Commit]:
    """Return the commits, each before its parents; the line of a first parent comes before those of the others."""
    order: list[Commit] = []
    seen: set[str] = set()
    stack = [(oid, False) for oid in heads]  # the last is visited first, and what is visited first comes last
    while stack:
        oid, finished = stack.pop()
        if finished:
            order.append(found[oid])
        elif oid in found and oid not in seen:
            seen.add(oid)
            stack.append((oid, True))
            stack += [(parent, False) for parent in found[oid].parents]
    return order[::-1]
