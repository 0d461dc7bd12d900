"""Data of the HTML page about where workloads are written that it does not explain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gitsched.model.document import Key
from gitsched.model.scheduling import Outcome
from gitsched.report.lines import escape_unprintable
from gitsched.report.page.content import StringTable


def add_places(matrix: dict[str, Any], outcomes: Iterable[Outcome], places: Mapping[Key, str], policies: Mapping[str, str]) -> None:
    """Add to the rows of workloads without an explanation where they and their policies are written, as far as that is known."""
    if not places:
        return
    names, texts = {outcome.key[1:]: outcome for outcome in outcomes}, StringTable(matrix["texts"])
    for row in matrix["workloads"]:
        outcome = names.get((row["kind"], row["namespace"], row["name"]))
        if outcome is None or "why" in row:
            continue
        written = policies.get(outcome.policy, "")
        policy = f"{outcome.policy} ({written})" if outcome.policy and written else outcome.policy
        row["written"] = [texts.index_of(escape_unprintable(text)) for text in (places.get(outcome.key, ""), policy)]
    matrix["texts"] = texts.strings
