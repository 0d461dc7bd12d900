"""The tables of the page about fields of Flux and Argo CD, made from the rows of gitsched/build/tool_fields.py while the site is built."""

from __future__ import annotations

from collections.abc import Iterator

from gitsched.build.tool_fields import FIELD_ROWS

TABLES = "<!-- the tables of fields -->"


def write_tables(page: str) -> str:
    """Return docs/delivery-tool-fields.md as the site shows it: with a section for each kind."""
    return page.replace(TABLES, "\n".join(_render_kinds()))


def _render_kinds() -> Iterator[str]:
    for kind in dict.fromkeys(row.kind for row in FIELD_ROWS):
        yield from (f"## {kind}", "", "| fields | gitsched | |", "|---|---|---|")
        for row in FIELD_ROWS:
            if row.kind == kind:
                fields = ", ".join(f"`{field}`" for field in row.fields.split())
                yield f"| {fields} | {row.treatment} | {row.reason} |"
        yield ""
