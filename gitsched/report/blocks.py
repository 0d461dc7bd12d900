"""Paragraphs, tables and lists, written as Markdown; `gitsched.report.page.blocks` writes them as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from gitsched.model.markdown import format_text
from gitsched.named_tuples import NamedTuple

Cells = Sequence[str]
_MAX_LENGTH = 2_000
"""The maximum number of characters of one cell or paragraph."""


class Paragraph(NamedTuple):
    text: str
    heading: bool = False


class TableBlock(NamedTuple):
    """A table. Every row has as many cells as `head`; `highlighted` are the indices of rows that need attention."""

    head: Cells
    rows: Sequence[Cells]
    highlighted: frozenset[int] = frozenset()
    caption: str = ""


class ListBlock(NamedTuple):
    """A list with a title."""

    title: str
    lines: Sequence[str]


class HeatMap(NamedTuple):
    """A table of numbers, of which a page shows how large they are. Each row has a name and a number for each column; `note` says what
    counts, "" if the caption does."""

    caption: str
    columns: Cells
    rows: Sequence[tuple[str, Sequence[int]]]
    note: str = ""


TileMark = Literal["", "bad", "drained", "gains", "loses"]


class Tile(NamedTuple):
    """A cluster, or what is lost with others, on a map: `level` is how full the tile is in percent, None if that is not known, `label` is
    short, and `text` says what happens there."""

    name: str
    level: int | None
    label: str
    text: str
    marks: tuple[TileMark, ...] = ()


class TileMap(NamedTuple):
    """Tiles by place, on several sides such as before and after a change. Only a page shows them; `note` says how full a tile is, and
    `bad_text` what is bad."""

    title: str
    note: str
    bad_text: str
    sides: Sequence[tuple[str, Sequence[tuple[str, Sequence[Tile]]]]]


Block = Paragraph | TableBlock | ListBlock | HeatMap | TileMap


def blocks_to_markdown(blocks: Iterable[Block]) -> str:
    """Return GitHub Flavored Markdown; names in the text cannot become links, mentions, tags or table cells."""
    parts = []
    for block in blocks:
        if isinstance(block, Paragraph):
            parts.append(("### " if block.heading else "") + escape_markdown(block.text))
        elif isinstance(block, HeatMap):
            parts.append(_heat_map_to_markdown(block))
        elif isinstance(block, ListBlock):
            parts += (
                [f"**{escape_markdown(block.title)}**", "\n".join(f"- {escape_markdown(line)}" for line in block.lines)]
                if block.lines
                else []
            )
        elif isinstance(block, TableBlock) and block.rows:
            lines = [
                list(map(escape_markdown, block.head)),
                ["---"] * len(block.head),
                *([escape_markdown(cell) for cell in row] for row in block.rows),
            ]
            parts.append("\n".join(f"| {' | '.join(cells)} |" for cells in lines))
    return "\n\n".join(parts) + "\n"


def _heat_map_to_markdown(block: HeatMap) -> str:
    rows = [(name, *(str(number) if number else "" for number in numbers)) for name, numbers in block.rows]
    title = f"{block.caption}. {block.note}" if block.note else block.caption
    return blocks_to_markdown([Paragraph(title), TableBlock(("", *block.columns), rows)]).rstrip("\n")


def escape_markdown(text: str) -> str:
    """Escape text so that Markdown shows it literally, on one line."""
    return format_text(text, _MAX_LENGTH)
