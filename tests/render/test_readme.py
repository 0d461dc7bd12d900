"""README.md of the output branch: decisions in a bounded length, with escaped text."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.model.markdown import format_code
from gitsched.model.time import EPOCH
from gitsched.render.readme import write_readme
from gitsched.render.readme_content import DecisionRow, FleetRow, ReadmeContent
from tests.tables import each_row

OID = "a" * 40
HOSTILE = [
    "a|b",
    "a`b",
    "``",
    "@everyone",
    "<img src=x>",
    "a\nb",
    "a\\|b",
    "[x](http://y)",
    "**b**",
    "&lt;",
    "a\u202eb",
    "www.evil.example",
    "#1",
    " x",
]
GOLDEN = f"""\
# Placements

gitsched writes this branch. Do not edit it: the next run overwrites manual changes.

Scheduled from commit `{OID}` of `https://example.com/a/b` at 1970-01-01T00:00:00Z by gitsched `0.1.0`.

To reproduce these decisions, run in a clone of the source repository:

```sh
git checkout {OID}
gitsched plan --observations recorded
```

## Findings

- 1 error
- 3 notes
- 2 objects are not selected by any policy

## Clusters

| cluster | region | state | workloads | replicas |
|---|---|---|--:|--:|
| `eu-1` | `eu` | `ready` | 2 | 4 |
| `us-1` |  | `taint down:NoExecute` | 0 | 0 |

## Decisions

| workload | policy | placement |
|---|---|---|
| `Deployment shop/web` | `PropagationPolicy shop/p` | `eu-1 4`, `us-1` |
| `Job shop/j` | `PropagationPolicy shop/p` | nowhere |
"""


def write(summary: ReadmeContent) -> str:
    return write_readme(summary).data.decode()


def test_a_complete_readme() -> None:
    summary = ReadmeContent(
        source=OID,
        version="0.1.0",
        time=EPOCH,
        fleet=[FleetRow("eu-1", "eu", "ready", 2, 4), FleetRow("us-1", "", "taint down:NoExecute", 0, 0)],
        decisions=[
            DecisionRow("Deployment shop/web", "PropagationPolicy shop/p", [("eu-1", 4), ("us-1", None)]),
            DecisionRow("Job shop/j", "PropagationPolicy shop/p", []),
        ],
        findings={"info": 3, "error": 1, "warning": 0},
        unclaimed=2,
        repository="https://me:secret@example.com/a/b?token=secret",
    )
    assert write(summary) == GOLDEN


def test_an_empty_repository_has_a_readme() -> None:
    assert write(ReadmeContent(OID, "0.1.0", EPOCH)).count("None.") == 3


def test_the_next_wakeup_is_named() -> None:
    assert "Next change without a commit: 1970-01-01T00:00:00Z." in write(ReadmeContent(OID, "0.1.0", EPOCH, next_wakeup=EPOCH))


@pytest.mark.parametrize(
    ("clusters", "workloads", "shown"),
    [(3, 500, (3, 197)), (1000, 10_000, (100, 100)), (1000, 5, (195, 5)), (120, 80, (120, 80)), (100, 100, (100, 100))],
)
def test_at_most_two_hundred_rows_are_shown_and_the_rest_is_counted(clusters: int, workloads: int, shown: tuple[int, int]) -> None:
    fleet = [FleetRow(f"c{n}", "", "", 0, 0) for n in range(clusters)]
    everywhere = [("c0", 1)] * 1000
    decisions = [DecisionRow(f"w{n}", "p", everywhere) for n in range(workloads)]
    text = write(ReadmeContent(OID, "0.1.0", EPOCH, fleet, decisions))
    assert (len(re.findall(r"^\| `c", text, re.M)), len(re.findall(r"^\| `w", text, re.M))) == shown
    for total, part in zip((clusters, workloads), shown, strict=True):
        assert (f"and {total - part} more," in text) == (total > part)
    assert len(text) < 65_536


@each_row("text", HOSTILE)
def test_markup_in_names_does_not_break_table_cells(text: str) -> None:
    row = FleetRow(text, text, text, 1, 1)
    lines = write(ReadmeContent(OID, "0.1.0", EPOCH, [row], [DecisionRow(text, text, [(text, 1)])])).splitlines()
    cells = [line.split("|") for line in lines if line.startswith(("| `", "| <code>"))]
    assert [len(cell) for cell in cells] == [7, 5]


@given(st.text(max_size=40) | st.text("`|\\<>&@#[]()*_ a\n", max_size=12))
def test_text_in_a_cell_is_shown_literally(text: str) -> None:
    shown = format_code(text)
    if shown.startswith("`"):
        assert re.fullmatch(r"`[^`|\\<>&\[\]*]+`", shown)
        inner = shown[1:-1]
    else:
        assert re.fullmatch(r"(<code>([A-Za-z0-9 ,=+-]|&#\d+;)+</code>)?", shown)
        inner = html.unescape(shown.removeprefix("<code>").removesuffix("</code>"))
    assert inner == "".join(c if c.isprintable() else "\ufffd" for c in text)


def test_a_long_name_is_truncated() -> None:
    assert format_code("a" * 300) == f"<code>{'a' * 200}&#8230;</code>"


def test_the_command_to_copy_contains_only_an_object_id() -> None:
    assert "git checkout COMMIT\n" in write(ReadmeContent("x; rm -rf ~", "0.1.0", EPOCH))
