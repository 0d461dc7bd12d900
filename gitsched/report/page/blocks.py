"""Paragraphs, tables, lists and maps of numbers as one self-contained HTML page in the style of the plan's page, without scripts."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from gitsched.report.blocks import Block, HeatMap, ListBlock, Paragraph, TableBlock
from gitsched.report.lines import escape_unprintable
from gitsched.report.page import embed_resource, load_template, read_resource

_HEAT_LEVELS = 4


class Download(NamedTuple):
    """A file that a page contains, and that a link of the page saves."""

    name: str
    media_type: str
    text: str


def write_csv(table: TableBlock) -> str:
    """Return a table as CSV."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows((table.head, *table.rows))
    return text.getvalue()


def write_blocks_page(title: str, blocks: Sequence[Block], downloads: Iterable[Download] = ()) -> str:
    """Return the page; its headline is the first paragraph. Text from documents is escaped: it is no markup."""
    summary, rest = (blocks[0].text, blocks[1:]) if blocks and isinstance(blocks[0], Paragraph) else (title, blocks)
    rows = list(_build_rows(rest))
    return load_template("blocks.html.j2").render(
        title=escape_unprintable(title),
        summary=escape_unprintable(summary),
        rows=rows,
        downloads=list(map(_build_download, downloads)),
        headings=[row for row in rows if row["kind"] == "heading"],
        **embed_resource("style", read_resource("page.css") + read_resource("blocks.css")),
    )


def _build_download(one: Download) -> dict[str, str]:
    content = base64.b64encode(one.text.encode("utf-8", "replace")).decode()
    return {
        "name": one.name,
        "label": one.name.rpartition(".")[2].upper(),
        "address": f"data:{one.media_type};charset=utf-8;base64,{content}",
    }


def _build_rows(blocks: Iterable[Block]) -> Iterator[dict[str, Any]]:
    """Yield what the template shows of each block; a heading has the id to which links lead."""
    for number, block in enumerate(blocks):
        if isinstance(block, Paragraph):
            kind = "heading" if block.heading else "paragraph"
            yield {"kind": kind, "text": escape_unprintable(block.text), "id": f"part-{number}"}
        elif isinstance(block, ListBlock):
            yield {"kind": "list", "title": escape_unprintable(block.title), "lines": list(map(escape_unprintable, block.lines))}
        elif isinstance(block, HeatMap):
            yield _build_heat_map(block)
        elif block.rows:
            yield _build_table(block)


def _build_table(block: TableBlock) -> dict[str, Any]:
    numeric = list(map(_is_numeric, zip(*block.rows, strict=True)))
    return {
        "kind": "table",
        "caption": escape_unprintable(block.caption),
        "head": list(zip(map(escape_unprintable, block.head), numeric, strict=True)),
        "rows": [
            {"bad": number in block.highlighted, "cells": list(zip(map(escape_unprintable, row), numeric, strict=True))}
            for number, row in enumerate(block.rows)
        ],
    }


def _build_heat_map(block: HeatMap) -> dict[str, Any]:
    """Return a table of numbers with a level for each, which chooses its colour: those of the loads of clusters."""
    largest = max((number for _, numbers in block.rows for number in numbers), default=0)
    return {
        "kind": "heat",
        "caption": escape_unprintable(block.caption),
        "columns": list(map(escape_unprintable, block.columns)),
        "rows": [
            (escape_unprintable(name), [(number, _HEAT_LEVELS * number // largest if number else None) for number in numbers])
            for name, numbers in block.rows
        ],
    }


def _is_numeric(column: Sequence[str]) -> bool:
    return any(column) and all(cell in ("-", "") or cell.isdecimal() for cell in column)
