"""The page about queries, and what the package may know."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_example_of_the_page_runs() -> None:
    text = (ROOT / "docs/development/queries.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(code, "queries.md", "exec"), {})


def test_the_package_knows_no_kubernetes() -> None:
    words = re.compile(r"\b(kubernetes|karmada|cluster|workload|policy|namespace|manifest|placement|git)s?\b", re.IGNORECASE)
    for path in sorted((ROOT / "gitsched/query").glob("*.py")):
        assert not words.findall(path.read_text()), path.name
