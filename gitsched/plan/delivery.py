"""The manifests that a change delivers, taken together by what they say, with their differences as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from gitsched.model.change import Rendered
from gitsched.render.layout import CLUSTERS
from gitsched.report.review import Delivery

SHOWN = 200
"""Manifests whose text is compared; the others are counted."""
LINES = 120
"""Lines of one difference."""
_READ = 2_000
_SIZE = 200_000
_SECRETS = "secret-"
_NAMESPACE = "_/namespace-"

Read = Callable[[str], bytes]
Lookup = Callable[[str], str | None]


class Difference(NamedTuple):
    """A manifest that a cluster gets otherwise: its path on the output branch, and the blobs (hex), None where there is none."""

    path: str
    before: str | None
    after: str | None


def list_differences(changed: Iterable[str], before: Lookup, after: Lookup) -> tuple[Difference, ...]:
    """Which of the changed paths of the output are manifests; the lookups give the blob of a path.

    What only keeps the books (cluster.json, the list of files, a Namespace that comes or goes along) is left out.
    """
    found = []
    for path in changed:
        if path.startswith(f"{CLUSTERS}/") and path.count("/") > 2:
            entry = Difference(path, before(path), after(path))
            if not (_inside(path).startswith(_NAMESPACE) and None in entry):
                found.append(entry)
    return tuple(found)


def compare_manifests(
    differences: Iterable[Difference], former: Callable[[], Iterable[str]], before: Lookup, read: Read
) -> Delivery:
    """The manifests with what differs in them; what is the same for several clusters is told once.

    `former` are the paths that the output had, asked for only where something is new.
    """
    entries = list(differences)
    groups: dict[tuple[str, str | None, str | None], list[str]] = {}
    for path, old, new in entries:
        groups.setdefault((_inside(path), old, new), []).append(path.split("/")[1])
    known = _find_copies({path for path, old, _ in groups if old is None}, former)
    # What changes in place says more than what comes or goes as it was.
    order = sorted(groups, key=lambda group: (group[1] is None or group[2] is None, group[0], group[1] or "", group[2] or ""))
    rendered = []
    for path, old, new in order[:SHOWN]:
        copied = known.get(path, "") if old is None else ""
        source = before(f"{CLUSTERS}/{copied}/{path}") if copied else old
        entry = Rendered(path, tuple(sorted(groups[path, old, new])), old, new, copied=copied)
        rendered.append(_compare(entry, source, read))
    return Delivery(rendered, max(len(order) - SHOWN, 0), len(entries))


def _inside(path: str) -> str:
    """The path relative to the cluster's directory."""
    return path.split("/", 2)[2]


def _find_copies(paths: set[str], former: Callable[[], Iterable[str]]) -> dict[str, str]:
    """For each path below a cluster's directory, the first cluster that had something there."""
    found: dict[str, str] = {}
    for path in sorted(former()) if paths else ():
        cluster, _, inner = path.removeprefix(f"{CLUSTERS}/").partition("/")
        if inner in paths:
            found.setdefault(inner, cluster)
    return found


def _compare(entry: Rendered, source: str | None, read: Read) -> Rendered:
    if entry.after is None or source == entry.after:
        return entry  # what goes needs no text, and what is copied as it was has no difference
    if entry.path.rpartition("/")[2].startswith(_SECRETS):
        return entry._replace(note="a Secret: its text is not shown")
    data = [b"" if blob is None else read(blob) for blob in (source, entry.after)]
    if any(len(text) > _SIZE for text in data):
        return entry._replace(note="too large to be compared here")
    old, new = (text.decode("utf-8", "replace").splitlines() for text in data)
    if max(len(old), len(new)) > _READ:
        return entry._replace(note="too long to be compared here")
    from difflib import unified_diff  # only plans compare texts

    lines = list(unified_diff(old, new, lineterm=""))[2:]
    left = len(lines) - LINES
    note = f"{left} more lines are not shown" if left > 0 else ""
    return entry._replace(diff="\n".join(lines[:LINES]), note=note)
