"""A report as paragraphs and tables, to be written as Markdown or as one page of HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from gitsched.model.markdown import prose
from gitsched.report.table import printable

Cells = Sequence[str]
_LONGEST = 2_000
"""Characters of one cell or paragraph that are shown."""
_STYLE = """\
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem; color-scheme: light dark }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8886 }
td.number, th.number { text-align: right }
caption { text-align: left; font-weight: 600; padding: .3rem 0 }
tr.bad td { background: #d331 } tr.bad th { border-left: 4px solid #c22; padding-left: .4rem }
.wide { overflow-x: auto }
.wide table { min-width: 44rem }"""


class Paragraph(NamedTuple):
    text: str
    heading: bool = False


class Grid(NamedTuple):
    """A table; `bad` are the rows, by number, that somebody should look at. Every row has as many cells as `head`."""

    head: Cells
    rows: Sequence[Cells]
    bad: frozenset[int] = frozenset()
    caption: str = ""


class Items(NamedTuple):
    """A list, with a title before it."""

    title: str
    lines: Sequence[str]


Block = Paragraph | Grid | Items


def write_markdown(blocks: Iterable[Block]) -> str:
    """GitHub's Markdown; names cannot become links, mentions, tags or another cell."""
    parts = []
    for block in blocks:
        if isinstance(block, Paragraph):
            parts.append(("### " if block.heading else "") + quote(block.text))
        elif isinstance(block, Items):
            parts += [f"**{quote(block.title)}**", "\n".join(f"- {quote(line)}" for line in block.lines)] if block.lines else []
        elif block.rows:
            lines = [block.head, ["---"] * len(block.head), *([quote(cell) for cell in row] for row in block.rows)]
            parts.append("\n".join(f"| {' | '.join(cells)} |" for cells in lines))
    return "\n\n".join(parts) + "\n"


def quote(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return prose(text, _LONGEST)


def write_html(title: str, blocks: Iterable[Block]) -> str:
    """One self-contained page: no script, nothing to load."""
    parts = [part for block in blocks for part in _tag(block)]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    body = "\n".join([f"<h1>{escape(title)}</h1>", *parts])
    return f'<!doctype html>\n<html lang="en"><head>{head}<style>\n{_STYLE}\n</style></head><body>\n{body}\n</body></html>\n'


def _tag(block: Block) -> Iterable[str]:
    if isinstance(block, Paragraph):
        name = "h2" if block.heading else "p"
        yield f"<{name}>{escape(printable(block.text))}</{name}>"
        return
    if isinstance(block, Items):
        lines = "".join(f"<li>{escape(printable(line))}</li>" for line in block.lines)
        yield f"<h3>{escape(block.title)}</h3><ul>{lines}</ul>"
        return
    if not block.rows:
        return
    numeric = list(map(_is_numeric, zip(*block.rows, strict=True)))
    yield '<div class="wide" tabindex="0"><table>' + (f"<caption>{escape(block.caption)}</caption>" if block.caption else "")
    titles = "".join(_cell('th scope="col"', cell, number) for cell, number in zip(block.head, numeric, strict=True))
    yield f"<thead><tr>{titles}</tr></thead><tbody>"
    for number, row in enumerate(block.rows):
        first, *rest = zip(row, numeric, strict=True)
        cells = _cell('th scope="row"', first[0], number=False) + "".join(_cell("td", cell, num) for cell, num in rest)
        mark = ' class="bad"' if number in block.bad else ""
        yield f"<tr{mark}>{cells}</tr>"
    yield "</tbody></table></div>"


def _is_numeric(column: Sequence[str]) -> bool:
    return any(map(str.isdecimal, column)) and all(cell in ("-", "") or cell.isdecimal() for cell in column)


def _cell(tag: str, text: str, number: bool) -> str:
    mark = " class=number" if number else ""
    return f"<{tag}{mark}>{escape(printable(text))}</{tag.partition(' ')[0]}>"
