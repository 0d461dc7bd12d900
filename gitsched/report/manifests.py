"""Changed manifests in reports: their diffs, and one title for many that are only added or removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gitsched.model.changes import ManifestChange
from gitsched.model.finding import format_count, format_names
from gitsched.named_tuples import NamedTuple
from gitsched.report.lines import CLUSTERS_SHOWN, escape_unprintable, wrap
from gitsched.report.name_ranges import format_ranges
from gitsched.report.paint import Paint, paint_diff, paint_start
from gitsched.report.review import DeliveryChanges

DIFF_LINES = 400
"""The number of lines of manifest diffs that are printed; JSON contains more."""
MIN_GROUP_SIZE = 4
"""The number of manifests without a diff from which those of the same clusters have one title."""
NAMES_SHOWN = 3
"""The number of manifests that such a title names."""


class ManifestGroup(NamedTuple):
    """Manifests of a report with one title.

    `clusters` are those that the first of `entries` is changed, added or removed in, with others where it has the same change. `moved_from`
    are the clusters that lose manifests which are added elsewhere.
    """

    entries: list[ManifestChange]
    clusters: tuple[str, ...]
    moved_from: tuple[str, ...] = ()

    @property
    def diff(self) -> str:
        """The diff of the only manifest, "" for several."""
        return self.entries[0].diff

    @property
    def title(self) -> str:
        """The manifests, what happens to them and in which clusters."""
        first = self.entries[0]
        if len(self.entries) == 1:
            return format_manifest_title(first, self.clusters, self.moved_from)
        names = format_names([entry.path for entry in self.entries], NAMES_SHOWN)
        number, copied = format_count(len(self.entries), "manifest"), {entry.copied for entry in self.entries} - {""}
        if self.moved_from:
            return f"{number} {_format_move(self.moved_from, self.clusters, len(self.entries))}: {names}"
        change = f"{first.verb} in {format_names(self.clusters, CLUSTERS_SHOWN)}"
        return f"{number} {change}{f', same as in {format_ranges(copied)}' if copied else ''}: {names}"


def list_manifest_lines(delivery: DeliveryChanges, width: int, paint: Paint | None) -> list[str]:
    """Return the changed manifests as unified diffs; their lines are not wrapped, so that they can be copied."""
    lines: list[str] = []
    shown = 0
    for group in group_manifests(delivery.rendered):
        title, body = wrap(group.title, width), [escape_unprintable(line) for line in group.diff.splitlines()]
        if len(lines) + len(body) > DIFF_LINES:
            break
        if paint is not None:
            title, body = paint_start(title, "", "heading", paint), paint_diff(body, paint)
        lines += [*title, *body]
        shown += len(group.entries)
    total = len(join_equal_changes(delivery.rendered))
    omitted = total - shown + delivery.omitted
    return [*lines, f"and {format_count(omitted, 'more manifest')}; use -o json for their names"] if omitted else lines


def group_manifests(entries: Iterable[ManifestChange]) -> list[ManifestGroup]:
    """Return manifests with a diff or a note alone, and those that are equally added to, removed from or moved between the same clusters
    together."""
    groups: dict[tuple[object, ...], list[ManifestGroup]] = {}
    for group in join_equal_changes(entries):
        entry = group.entries[0]
        alone = (entry.path, entry.before, entry.after) if entry.diff or entry.note else ()
        groups.setdefault((entry.verb, group.clusters, group.moved_from, bool(entry.copied), *alone), []).append(group)
    return [part for same in groups.values() for part in _join(same)]


def _join(same: list[ManifestGroup]) -> list[ManifestGroup]:
    if len(same) < MIN_GROUP_SIZE:
        return same
    return [same[0]._replace(entries=[group.entries[0] for group in same])]


def join_equal_changes(entries: Iterable[ManifestChange]) -> list[ManifestGroup]:
    """Return one group for each change: a manifest that is removed from some clusters and added to others moves, and clusters in which the
    same lines of a manifest change, although its other lines differ, have one diff."""
    entries = list(entries)
    removed = {entry.path: entry for entry in entries if entry.verb == "removed"}
    added = Counter(entry.path for entry in entries if entry.verb == "added")
    moved = {
        entry.path
        for entry in entries
        if entry.copied and added[entry.path] == 1 and entry.path in removed and entry.copied in removed[entry.path].clusters
    }
    groups: dict[tuple[object, ...], ManifestGroup] = {}
    for number, entry in enumerate(entries):
        if entry.path in moved and entry.verb == "removed":
            continue
        lines = tuple(line for line in entry.diff.splitlines() if line.startswith(("+", "-")))
        identity = (entry.path, lines, entry.note) if lines and entry.verb == "changed" else (number,)
        group = groups.get(identity, ManifestGroup([entry], ()))
        moved_from = removed[entry.path].clusters if entry.path in moved and entry.verb == "added" else ()
        groups[identity] = group._replace(clusters=tuple(sorted({*group.clusters, *entry.clusters})), moved_from=moved_from)
    return list(groups.values())


def format_manifest_title(entry: ManifestChange, clusters: tuple[str, ...] = (), moved_from: tuple[str, ...] = ()) -> str:
    """Return the path of a manifest, what happens to it and on which clusters, by default those of the entry."""
    note = f" ({entry.note})" if entry.note else ""
    if moved_from:
        return f"{entry.path} {_format_move(moved_from, clusters, 1)}{note}"
    change = f"{entry.verb} in {format_names(clusters or entry.clusters, CLUSTERS_SHOWN)}"
    copied = f", {'compared with' if entry.diff else 'same as in'} {entry.copied}" if entry.copied else ""
    shown = f", shown as in {format_ranges(entry.clusters)}" if clusters and clusters != entry.clusters else ""
    return f"{entry.path} {change}{copied}{shown}{note}"


def _format_move(before: tuple[str, ...], after: tuple[str, ...], number: int) -> str:
    verb = "moves" if number == 1 else "move"
    return f"{verb} from {format_names(before, CLUSTERS_SHOWN)} to {format_names(after, CLUSTERS_SHOWN)}"
