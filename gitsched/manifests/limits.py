"""How much of a file is read. Every bound is checked before anything of that size is built."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """`size` in bytes; `depth` in nested collections; `nodes` of a file.

    `aliases` counts uses of anchors in one document; `expansion` bounds what those uses add to it, one for a node and one for every
    32 characters of its text.
    """

    size: int = 4 * 1024 * 1024
    depth: int = 200
    nodes: int = 1_000_000
    documents: int = 5_000
    aliases: int = 1_000
    expansion: int = 100_000


LIMITS = Limits()

MOST_PROBLEMS = 20
"""How many mistakes of one kind are told of one document: the next ones wait until these are mended."""
