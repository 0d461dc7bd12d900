"""Numbers agree with their nouns, in the helper and in all messages of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gitsched.model.finding import choose_form, format_count, format_part

PACKAGE = Path(__file__).parents[2] / "gitsched"
COUNTED = "workloads|v?replicas|clusters|objects|findings|errors|warnings|nodes|commits|policies|problems"
PLURALS = re.compile(rf"\{{([^{{}}]+)\}} (?:more |other |unplaced )?(?:{COUNTED})\b")
AGREEING = re.compile(r"format_(?:count|part)|MAX|\belse\b|title|verb|word")
"""What a value that is no number, or that agrees with its noun, contains."""
PLURAL = {
    "apis/krake/pending_clusters.py": "only more than three are counted",
    "apis/karmada/policy/equal_policies.py": "a kind",
    "apis/ocm/explanation.py": "the singular is written out",
    "cli/commands/export.py": "0 and 1 are written out",
    "decide/adoption.py": "the singular is written out",
    "decide/catalog.py": "at least two objects have the same name",
    "decide/relations/companion_findings.py": "only several are counted",
    "decide/encrypted.py": "only several are counted",
    "decide/relations/reference_findings.py": "only several are counted",
    "kubectl/proxy.py": "a limit",
    "report/annotations.py": "at least two are left out",
    "report/markdown_moves.py": "a change of replicas such as 8 -> 4",
    "report/page/content.py": "a change of replicas such as 8 -> 4",
    "report/lines.py": "at least two were there before",
    "report/simulation.py": "the singular is written out",
    "apis/karmada/explanation/reasons.py": "the singular is written out",
    "apis/karmada/autoscalers.py": "a range of replicas such as 1-8",
    "simulate/simulation.py": "the text of the upstream",
    "simulate/loss_list.py": "more pairs than the limit have many clusters",
    "schedule/pipeline.py": "the text of the upstream",
    "schedule/spread_constraints.py": "the text of the upstream",
    "apis/ocm/manifestworkreplicaset.py": "the text of the upstream",
}
"""Modules in which a number stands before a plural all the same, and why that is right."""


def find_plurals() -> set[str]:
    """Return the modules in which a value stands before the plural of a counted noun, without limits and what the helper formats."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        if any(not AGREEING.search(value) for value in PLURALS.findall(path.read_text(encoding="utf-8"))):
            found.add(path.relative_to(PACKAGE).as_posix())
    return found


def test_numbers_before_plurals_are_formatted_by_the_helper() -> None:
    assert find_plurals() == PLURAL.keys(), "use gitsched.model.finding.format_count"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (format_count(0, "replica"), "0 replicas"),
        (format_count(1, "more loss", "more losses"), "1 more loss"),
        (format_count(2_000, "policy", "policies"), "2,000 policies"),
        (format_part(1, 3, "replica", "is", "are"), "1 of 3 replicas is"),
        (format_part(0, 1, "node"), "0 of 1 node"),
        (choose_form(2, "is", "are"), "are"),
    ],
)
def test_a_number_agrees_with_its_noun_and_verb(text: str, expected: str) -> None:
    assert text == expected
