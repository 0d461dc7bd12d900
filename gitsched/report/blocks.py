"""Paragraphs, tables and lists, written as Markdown or as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from gitsched.model.markdown import format_text
from gitsched.report.lines import escape_unprintable

Cells = Sequence[str]
_MAX_LENGTH = 2_000
"""The maximum number of characters of one cell or paragraph."""
_HEAT_LEVELS = 4
_STYLE = """\
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem; color-scheme: light dark }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8886 }
td.number, th.number { text-align: right }
caption { text-align: left; font-weight: 600; padding: .3rem 0 }
tr.bad td { background: #d331 } tr.bad th { border-left: 4px solid #c22; padding-left: .4rem }
.heat0 { background: #d3310c1a } .heat1 { background: #d3310c40 } .heat2 { background: #d3310c66 }
.heat3 { background: #d3310c80 } .heat4 { background: #d3310ca0 } td.heat0:empty { background: none }
.wide { overflow-x: auto }
.wide table { min-width: 44rem }"""


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
    """A table of numbers, of which a page shows the larger ones in a stronger colour. Each row has a name and a number for each column."""

    caption: str
    columns: Cells
    rows: Sequence[tuple[str, Sequence[int]]]


Block = Paragraph | TableBlock | ListBlock | HeatMap


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
        elif block.rows:
            lines = [block.head, ["---"] * len(block.head), *([escape_markdown(cell) for cell in row] for row in block.rows)]
            parts.append("\n".join(f"| {' | '.join(cells)} |" for cells in lines))
    return "\n\n".join(parts) + "\n"


def _heat_map_to_markdown(block: HeatMap) -> str:
    rows = [(name, *(str(number) if number else "" for number in numbers)) for name, numbers in block.rows]
    return blocks_to_markdown([Paragraph(block.caption), TableBlock(("", *block.columns), rows)]).rstrip("\n")


def escape_markdown(text: str) -> str:
    """Escape text so that Markdown shows it literally, on one line."""
    return format_text(text, _MAX_LENGTH)


def blocks_to_html(title: str, blocks: Iterable[Block]) -> str:
    """Return one self-contained HTML page without scripts and external resources."""
    parts = [part for block in blocks for part in _block_to_html(block)]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    body = "\n".join([f"<h1>{escape(title)}</h1>", *parts])
    return f'<!doctype html>\n<html lang="en"><head>{head}<style>\n{_STYLE}\n</style></head><body>\n{body}\n</body></html>\n'


def _block_to_html(block: Block) -> Iterable[str]:
    if isinstance(block, Paragraph):
        name = "h2" if block.heading else "p"
        yield f"<{name}>{escape(escape_unprintable(block.text))}</{name}>"
        return
    if isinstance(block, ListBlock):
        lines = "".join(f"<li>{escape(escape_unprintable(line))}</li>" for line in block.lines)
        yield f"<h3>{escape(block.title)}</h3><ul>{lines}</ul>"
        return
    if isinstance(block, HeatMap):
        yield from _heat_map_to_html(block)
        return
    if not block.rows:
        return
    numeric = list(map(_is_numeric, zip(*block.rows, strict=True)))
    yield '<div class="wide" tabindex="0"><table>' + (f"<caption>{escape(block.caption)}</caption>" if block.caption else "")
    titles = "".join(_cell_to_html('th scope="col"', cell, number) for cell, number in zip(block.head, numeric, strict=True))
    yield f"<thead><tr>{titles}</tr></thead><tbody>"
    for number, row in enumerate(block.rows):
        first, *rest = zip(row, numeric, strict=True)
        cells = _cell_to_html('th scope="row"', first[0], number=False) + "".join(
            _cell_to_html("td", cell, num) for cell, num in rest
        )
        attribute = ' class="bad"' if number in block.highlighted else ""
        yield f"<tr{attribute}>{cells}</tr>"
    yield "</tbody></table></div>"


def _heat_map_to_html(block: HeatMap) -> Iterable[str]:
    largest = max((number for _, numbers in block.rows for number in numbers), default=0)
    yield f'<div class="wide" tabindex="0"><table class="heat"><caption>{escape(block.caption)}</caption>'
    titles = "".join(_cell_to_html('th scope="col"', cell, number=False) for cell in ("", *block.columns))
    yield f"<thead><tr>{titles}</tr></thead><tbody>"
    for name, numbers in block.rows:
        levels = ((number, _HEAT_LEVELS * number // largest if largest else 0) for number in numbers)
        cells = "".join(f'<td class="number heat{level}">{number or ""}</td>' for number, level in levels)
        head = _cell_to_html('th scope="row"', name, number=False)
        yield f"<tr>{head}{cells}</tr>"
    yield "</tbody></table></div>"


def _is_numeric(column: Sequence[str]) -> bool:
    return any(map(str.isdecimal, column)) and all(cell in ("-", "") or cell.isdecimal() for cell in column)


def _cell_to_html(tag: str, text: str, number: bool) -> str:
    attribute = " class=number" if number else ""
    return f"<{tag}{attribute}>{escape(escape_unprintable(text))}</{tag.partition(' ')[0]}>"
