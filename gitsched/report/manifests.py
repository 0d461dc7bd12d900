"""Changed manifests in reports: their diffs, and one title for many that are only added or removed."""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.model.changes import ManifestChange
from gitsched.model.finding import format_names
from gitsched.report.lines import CLUSTERS_SHOWN, escape_unprintable, format_count, wrap
from gitsched.report.name_ranges import format_ranges
from gitsched.report.paint import Paint, paint_diff, paint_start
from gitsched.report.review import DeliveryChanges

DIFF_LINES = 400
"""The number of lines of manifest diffs that are printed; JSON contains more."""
MIN_GROUP_SIZE = 4
"""The number of manifests without a diff from which those of the same clusters have one title."""
NAMES_SHOWN = 3
"""The number of manifests that such a title names."""


def list_manifest_lines(delivery: DeliveryChanges, width: int, paint: Paint | None) -> list[str]:
    """Return the changed manifests as unified diffs; their lines are not wrapped, so that they can be copied."""
    lines: list[str] = []
    shown = 0
    for same in group_manifests(delivery.rendered):
        title, body = wrap(describe_manifests(same), width), [escape_unprintable(line) for line in same[0].diff.splitlines()]
        if len(lines) + len(body) > DIFF_LINES:
            break
        if paint is not None:
            title, body = paint_start(title, "", "heading", paint), paint_diff(body, paint)
        lines += [*title, *body]
        shown += len(same)
    omitted = len(delivery.rendered) - shown + delivery.omitted
    return [*lines, f"and {format_count(omitted, 'more manifest')}; use -o json for their names"] if omitted else lines


def group_manifests(entries: Iterable[ManifestChange]) -> list[list[ManifestChange]]:
    """Return manifests with a diff or a note alone, and those that are equally added to or removed from the same clusters together."""
    groups: dict[tuple[object, ...], list[ManifestChange]] = {}
    for entry in entries:
        alone = (entry.path, entry.before, entry.after, entry.clusters) if entry.diff or entry.note else ()
        groups.setdefault((entry.verb, entry.clusters, bool(entry.copied), *alone), []).append(entry)
    return [part for same in groups.values() for part in ([same] if len(same) >= MIN_GROUP_SIZE else [[entry] for entry in same])]


def describe_manifests(same: list[ManifestChange]) -> str:
    """Return the title of one manifest, or of a group."""
    if len(same) == 1:
        return format_manifest_title(same[0])
    first, copied = same[0], {entry.copied for entry in same} - {""}
    names = format_names([entry.path for entry in same], NAMES_SHOWN)
    change = f"{first.verb} in {format_names(first.clusters, CLUSTERS_SHOWN)}"
    return f"{format_count(len(same), 'manifest')} {change}{f', same as in {format_ranges(copied)}' if copied else ''}: {names}"


def format_manifest_title(entry: ManifestChange) -> str:
    """Return the path of a manifest, what happens to it and on which clusters."""
    change = f"{entry.verb} in {format_names(entry.clusters, CLUSTERS_SHOWN)}"
    copied = f", {'compared with' if entry.diff else 'same as in'} {entry.copied}" if entry.copied else ""
    return f"{entry.path} {change}{copied}{f' ({entry.note})' if entry.note else ''}"
