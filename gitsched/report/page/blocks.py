"""Paragraphs, tables, lists and maps of numbers as one self-contained HTML page in the style of the plan's page, with a search."""

from __future__ import annotations

import base64
import csv
import io
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any

from markupsafe import Markup

from gitsched.model.history import SourceChange
from gitsched.model.simulation import SimulatedSource
from gitsched.model.time import format_time
from gitsched.named_tuples import NamedTuple
from gitsched.report.blocks import Block, HeatMap, ListBlock, Paragraph, TableBlock, Tile, TileMap
from gitsched.report.lines import escape_unprintable
from gitsched.report.page import embed_resource, load_template, read_resource
from gitsched.report.page.links import PageLinks

CsvRow = tuple[str, ...]
_HEAT_LEVELS = 4
_LOAD_STEPS = (25, 50, 75, 90)
"""The percentages from which a tile has the next style."""
_TILE_KEYS = (
    ("load-0", "less than 25 %"),
    ("load-1", "25 to 50 %"),
    ("load-2", "50 to 75 %"),
    ("load-3", "75 to 90 %"),
    ("load-4", "90 % and more"),
    ("load-none", "not known"),
    ("gains", "gains"),
    ("loses", "loses"),
    ("drained", "drained"),
)
_TILE_SIZES = (("named", 60), ("large", 300), ("small", inf))
"""The styles of maps, and the most tiles that they are for."""


class Download(NamedTuple):
    """A file that a page contains, and that a link of the page with the label saves."""

    name: str
    media_type: str
    text: str
    label: str


def list_csv_files(name: str, blocks: Iterable[Block], source: SimulatedSource | None = None) -> list[Download]:
    """Return the tables and heat maps of a page as CSV files. Tables with equal columns are one, with their headings as a column.

    Their last columns are the id and the time of the source commit.
    """
    origin = _list_commits(source) if source is not None else []
    columns = tuple(column for title, _ in origin for column in (title.capitalize(), f"{title.capitalize()} time"))
    values = tuple(value for _, one in origin for value in (one.commit, format_time(one.time) if one.time is not None else ""))
    titles: dict[CsvRow, list[str]] = {}
    lines: dict[CsvRow, list[CsvRow]] = {}
    for title, head, rows in _list_tables(blocks):
        titles.setdefault(head, []).append(title)
        lines.setdefault(head, []).extend(rows)
    several = len(lines) > 1
    return [
        Download(
            f"{name}-{number}.csv" if number > 1 else f"{name}.csv",
            "text/csv",
            write_csv((*head, *columns), [(*row, *values) for row in rows]),
            f"CSV: {titles[head][0] if len(titles[head]) == 1 else head[1]}" if several else "CSV",
        )
        for number, (head, rows) in enumerate(lines.items(), 1)
    ]


def _list_tables(blocks: Iterable[Block]) -> Iterator[tuple[str, CsvRow, list[CsvRow]]]:
    """Yield the title, the columns and the rows of each table and heat map."""
    heading: tuple[str, ...] = ()
    for block in blocks:
        if isinstance(block, Paragraph) and block.heading:
            heading = (block.text,)
        elif isinstance(block, HeatMap) and block.rows:
            yield block.caption, ("", *block.columns), [(row, *map(str, numbers)) for row, numbers in block.rows]
        elif isinstance(block, TableBlock) and block.rows:
            head = ("",) * len(heading) + tuple(block.head)
            yield block.caption or (*heading, block.head[0])[0], head, [(*heading, *row) for row in block.rows]


def write_csv(head: CsvRow, rows: Iterable[CsvRow]) -> str:
    """Return a table as CSV."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows((head, *rows))
    return text.getvalue()


def _list_commits(source: SimulatedSource) -> list[tuple[str, SourceChange]]:
    return [(title, one) for title, one in (("commit", source.commit), ("against", source.against)) if one is not None]


def write_blocks_page(
    title: str, blocks: Sequence[Block], downloads: Iterable[Download] = (), source: SimulatedSource | None = None
) -> str:
    """Return the page; its headline is the first paragraph. Text from documents is escaped: it is no markup.

    With a `source`, the page shows its commits, and lines of files are links."""
    summary, rest = (blocks[0].text, blocks[1:]) if blocks and isinstance(blocks[0], Paragraph) else (title, blocks)
    links = _make_links(source)
    rows = list(_build_rows(rest, links))
    return load_template("blocks.html.j2").render(
        title=escape_unprintable(title),
        summary=escape_unprintable(summary),
        commits=[
            (name, links.describe_commit(one) if one.commit else Markup("the worktree"))
            for name, one in (_list_commits(source) if source is not None else ())
        ],
        time=format_time(source.time) if source is not None and source.time is not None else "",
        rows=rows,
        downloads=list(map(_build_download, downloads)),
        headings=[row for row in rows if row["kind"] == "heading"],
        **embed_resource("style", read_resource("page.css") + read_resource("blocks.css")),
        **embed_resource("script", read_resource("blocks.js")),
    )


def _make_links(source: SimulatedSource | None) -> PageLinks:
    if source is None:
        return PageLinks()
    return PageLinks(source.web, source.commit.commit, source.against.commit if source.against is not None else "")


def _build_download(one: Download) -> dict[str, str]:
    content = base64.b64encode(one.text.encode("utf-8", "replace")).decode()
    return {
        "name": one.name,
        "label": escape_unprintable(one.label),
        "address": f"data:{one.media_type};charset=utf-8;base64,{content}",
    }


def _build_rows(blocks: Iterable[Block], links: PageLinks) -> Iterator[dict[str, Any]]:
    """Yield what the template shows of each block; a heading has the id to which links lead. Titles of lists and tables are below the last
    heading, if there is one."""
    level = 2
    for number, block in enumerate(blocks):
        if isinstance(block, Paragraph):
            kind = "heading" if block.heading else "paragraph"
            level = 3 if block.heading else level
            text = escape_unprintable(block.text)
            yield {"kind": kind, "text": text if block.heading else links.link_places(text), "id": f"part-{number}"}
        elif isinstance(block, ListBlock):
            yield {
                "kind": "list",
                "title": escape_unprintable(block.title),
                "lines": [links.link_places(escape_unprintable(line)) for line in block.lines],
                "level": level,
            }
        elif isinstance(block, HeatMap):
            level = 3
            yield _build_heat_map(block)
        elif isinstance(block, TileMap):
            level = 3
            yield _build_tile_map(block)
        elif block.rows:
            yield {**_build_table(block, links), "level": level}


def _build_table(block: TableBlock, links: PageLinks) -> dict[str, Any]:
    numeric = list(map(_is_numeric, zip(*block.rows, strict=True)))
    return {
        "kind": "table",
        "caption": escape_unprintable(block.caption),
        "head": list(zip(map(escape_unprintable, block.head), numeric, strict=True)),
        "rows": [
            {
                "bad": number in block.highlighted,
                "cells": [(links.link_places(escape_unprintable(cell)), right) for cell, right in zip(row, numeric, strict=True)],
            }
            for number, row in enumerate(block.rows)
        ],
    }


def _build_heat_map(block: HeatMap) -> dict[str, Any]:
    """Return a table of numbers with a level for each, which chooses its colour: those of the loads of clusters."""
    largest = max((number for _, numbers in block.rows for number in numbers), default=0)
    starts = [max(-(-level * largest // _HEAT_LEVELS), 1) for level in range(_HEAT_LEVELS + 1)]
    ranges = zip(range(_HEAT_LEVELS + 1), starts, [start - 1 for start in starts[1:]] + [largest], strict=True)
    return {
        "kind": "heat",
        "caption": escape_unprintable(block.caption),
        "note": escape_unprintable(block.note),
        "legend": [
            (level, f"{first:,}" if first == last else f"{first:,} to {last:,}") for level, first, last in ranges if first <= last
        ],
        "columns": list(map(escape_unprintable, block.columns)),
        "rows": [
            (escape_unprintable(name), [(number, _HEAT_LEVELS * number // largest if number else None) for number in numbers])
            for name, numbers in block.rows
        ],
    }


def _build_tile_map(block: TileMap) -> dict[str, Any]:
    """Return the tiles with the styles of the map of a plan, and the keys of these; on a large map they have no names."""
    sides = [(caption, [(place, list(map(_build_tile, tiles))) for place, tiles in places]) for caption, places in block.sides]
    tiles = [[tile for _, found in places for tile in found] for _, places in sides]
    used = {style for side in tiles for tile in side for style in tile["styles"].split()}
    return {
        "kind": "tiles",
        "title": block.title,
        "note": escape_unprintable(block.note),
        "bad": block.bad_text if "bad" in used else "",
        "keys": [(style, words) for style, words in _TILE_KEYS if style in used],
        "size": next(size for size, most in _TILE_SIZES if max(map(len, tiles)) <= most),
        "sides": [
            (caption, [(escape_unprintable(place), f"{len(found):,}", found) for place, found in places])
            for caption, places in sides
        ],
    }


def _build_tile(tile: Tile) -> dict[str, str]:
    step = "none" if tile.level is None else bisect_right(_LOAD_STEPS, tile.level)
    styles = (f"load-{step}", "vacant" if tile.level == 0 else "", *tile.marks)
    return {
        "name": escape_unprintable(tile.name),
        "text": escape_unprintable(tile.text),
        "label": f"{'! ' if 'bad' in tile.marks else ''}{tile.label}",
        "styles": " ".join(filter(None, styles)),
    }


def _is_numeric(column: Sequence[str]) -> bool:
    return any(column) and all(cell in ("-", "") or cell.isdecimal() for cell in column)
