"""Images of containers that change in delivered manifests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest

from gitsched.model.changes import ImageChange

MAX_COMPARED = 100_000
"""The number of changed manifests whose images are compared."""
_IMAGE = re.compile(rb"""(?:^|[\s{,-])["']?image["']?[ \t]*:[ \t]*["']?([^\s"',{}\[\]#&*!|>]+)""")
_TEXTS = ("configmap-", "secret-")
"""How the names of manifests begin in which an image is a part of a text."""


def find_image_changes(
    changed: Mapping[tuple[str, str, str], Iterable[str]], read: Callable[[str], bytes]
) -> tuple[ImageChange, ...]:
    """Return the images that change, each with the manifests and clusters where it does.

    `changed` maps the relative path and the two blob ids of a manifest to its clusters. Images are found in the text, so that no manifest
    is parsed: the values of members `image`, without those in comments.
    """
    found: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
    for (path, old, new), clusters in list(changed.items())[:MAX_COMPARED]:
        if path.rpartition("/")[2].startswith(_TEXTS):
            continue
        for change in _pair(_list_images(read(old)), _list_images(read(new))):
            paths, where = found.setdefault(change, (set(), set()))
            paths.add(path)
            where.update(clusters)
    return tuple(
        ImageChange(*change, tuple(sorted(paths)), tuple(sorted(where))) for change, (paths, where) in sorted(found.items())
    )


def _list_images(text: bytes) -> list[str]:
    if b"image" not in text:
        return []
    lines = (line for line in text.splitlines() if b"image" in line and not line.lstrip().startswith(b"#"))
    return [match.decode("utf-8", "replace") for line in lines for match in _IMAGE.findall(line)]


def _pair(before: list[str], after: list[str]) -> Iterable[tuple[str, str]]:
    """Yield what replaces what: by position if the number is the same, else by repository; "" stands for none."""
    if len(before) == len(after):
        yield from (pair for pair in zip(before, after, strict=True) if pair[0] != pair[1])
        return
    old, new = ([image for image in one if image not in other] for one, other in ((before, after), (after, before)))
    for repository in dict.fromkeys(map(_find_repository, (*old, *new))):
        sides = ([image for image in images if _find_repository(image) == repository] for images in (old, new))
        yield from zip_longest(*sides, fillvalue="")


def _find_repository(image: str) -> str:
    head, _, name = image.partition("@")[0].rpartition("/")
    return f"{head}/{name.partition(':')[0]}"
