"""Changed images of containers in reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gitsched.model.finding import count_shown, format_count, format_names
from gitsched.report.lines import CLUSTERS_SHOWN

if TYPE_CHECKING:
    from gitsched.model.changes import ImageChange

IMAGES_SHOWN = 10
"""The number of changed images that are listed."""
PATHS_SHOWN = 3
"""The number of manifests that are named for each."""


def describe_image_changes(images: Sequence[ImageChange], arrow: str = "->") -> list[str]:
    """Return a line for each changed image: what it is replaced by, in which manifests and clusters."""
    shown = count_shown(len(images), IMAGES_SHOWN)
    lines = [
        f"image {_describe(one, arrow)} in {format_names(one.clusters, CLUSTERS_SHOWN)}: {format_names(one.paths, PATHS_SHOWN)}"
        f"{f' ({one.location.text})' if one.location is not None else ''}"
        for one in images[:shown]
    ]
    more = len(images) - shown
    return [*lines, f"and {format_count(more, 'more image')}; use -o json for all"] if more else lines


def _describe(change: ImageChange, arrow: str) -> str:
    if not change.before:
        return f"{change.after} added"
    return f"{change.before} {arrow} {change.after}" if change.after else f"{change.before} removed"


def serialize_images(images: Sequence[ImageChange]) -> list[dict[str, Any]]:
    """Return the member `images` of a Plan."""
    return [
        {
            "before": one.before,
            "after": one.after,
            "manifests": list(one.paths),
            "clusters": list(one.clusters),
            "location": one.location.to_json() if one.location is not None else None,
        }
        for one in images
    ]
