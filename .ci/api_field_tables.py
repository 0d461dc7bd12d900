"""The tables of docs/api-fields.md, which the site has and which are made from schemas/fields/."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gitsched.apis.schemas import FIELD_CODE, KIND_CODE, FieldVerdict, KindFields, load_field_table

FIELDS = Path(__file__).resolve().parent.parent / "schemas" / "fields"
TITLES = {"karmada": "Karmada", "ocm": "Open Cluster Management", "krake": "Krake", "knative": "Knative Eventing"}


def write_tables() -> str:
    """Return a table for each kind of a policy API."""
    return "\n".join(line for api, title in TITLES.items() for line in _render_api(api, title))


def _render_api(api: str, title: str) -> Iterator[str]:
    if not (FIELDS / f"{api}.json").exists():
        return
    yield from (f"## {title}", "")
    for kind in load_field_table(api):
        yield f"### {', '.join(kind.kinds)} ({', '.join(f'{kind.group}/{version}'.strip('/') for version in kind.versions)})"
        yield from ("", "| fields | gitsched | |", "|---|---|---|", *(_render_row(kind, row) for row in kind.rows), "")


def _render_row(kind: KindFields, row: FieldVerdict) -> str:
    fields = ", ".join(f"`{path}`" for path in row.fields if path) or "all"
    if len(kind.rows) > 1 and row.fields == ("",):
        fields = "all others"
    limits = f": {', '.join(f'`{value}`' for value in row.values)}" if row.values else ""
    limits += f", unless it is {', '.join(f'`{value}`' for value in row.unless)}" if row.unless else ""
    verdict = row.verdict
    if verdict == "finding":
        code = row.code or (FIELD_CODE if all(row.fields) else KIND_CODE)
        verdict = f"finding [`{code}`](findings.md#{code})"
    return f"| {fields}{limits} | {verdict} | {row.reason} |"
