"""Regular expressions compared with Go's regexp package: accepted patterns, and their matches.

go-regexp.jsonl.xz has one JSON object per line, written by Go 1.26.6, the version that builds Open Cluster Management: a random `pattern`,
whether regexp.Compile `accepted` it, and the matches that FindAllString `found` in some texts. The second column of ACCEPTED is from the
same Go; the last column is RE2 without translation, so the test fails if a new version of RE2 changes.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import re2

from gitsched.apis.ocm.cel.regex import InvalidPattern, compile_pattern, search
from tests.tables import each_row


def recorded() -> list[Mapping[str, Any]]:
    with lzma.open(Path(__file__).with_name("go-regexp.jsonl.xz"), "rt", encoding="utf-8") as lines:
        return list(map(json.loads, lines))


def accepts(pattern: str) -> bool:
    try:
        compile_pattern(pattern)
    except InvalidPattern:
        return False
    return True


def re2_accepts(pattern: str) -> bool:
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error:
        return False
    return True


def test_recorded_patterns_match_where_go_matches() -> None:
    cases = recorded()
    differing = []
    for case in cases:
        pattern = case["pattern"]
        if accepts(pattern) != case["accepted"]:
            differing.append(pattern)
            continue
        for text, found in case.get("found", {}).items():
            if search(pattern, text, lambda steps: None) != found:
                differing.append((pattern, text))
    assert len(cases) == 3000
    assert sum(case["accepted"] for case in cases) > 1000
    assert not differing


ACCEPTED = [
    # pattern, Go 1.26, RE2 alone
    (r"\C", False, True),
    (r"[\C]", False, False),
    (r"a{1001}", False, False),
    (r"a{1000}", True, True),
    (r"a{0,1001}", False, False),
    (r"a{2,1}", False, False),
    (r"a{99999999999}", False, True),
    (r"a{01}", True, True),
    (r"a{,2}", True, True),
    (r"(?:a{100}){10}", True, True),
    (r"(?:a{100}){11}", False, False),
    (r"(?:a*){1000}", True, True),
    ("(" * 999 + "a" + ")" * 999, True, True),
    ("(" * 1000 + "a" + ")" * 1000, False, True),
    ("(?:" * 2000 + "a" + ")" * 2000, True, True),
    ("(?:" * 1000 + "a" + "b)" * 1000, True, True),
    ("(?:" * 500 + "a" + ")?b" * 500, False, True),
    ("(?:" * 499 + "a" + ")?b" * 499, True, True),
    (r"(?P<n>a)", True, True),
    (r"(?<n>a)", True, True),
    (r"(?'n'a)", False, False),
    (r"(?P<é>a)", False, True),
    (r"(?<é>a)", False, True),
    (r"(?P<n-m>a)", False, False),
    (r"(?P<>a)", False, False),
    (r"(?P<1>a)", True, True),
    (r"(?P<n>a)(?P<n>b)", True, True),
    (r"(?P=n)", False, False),
    (r"(?=a)", False, False),
    (r"(?<=a)b", False, False),
    (r"(?>a)", False, False),
    (r"(a)\1", False, False),
    (r"\12", True, True),
    (r"\8", False, False),
    (r"\_", True, True),
    (r"\é", False, False),
    (r"\q", False, False),
    (r"\z", True, True),
    (r"\Z", False, False),
    (r"\A", True, True),
    (r"\G", False, False),
    (r"\h", False, False),
    (r"\Qa*b", True, True),
    (r"\Qa*b\E+", True, True),
    (r"\Qa\b\E", True, True),
    (r"\E", False, False),
    (r"[\Qa\E]", False, False),
    (r"a**", False, False),
    (r"a{2}{3}", False, False),
    (r"a??", True, True),
    (r"^*", True, True),
    (r"\b+", True, True),
    (r"(?imsU)a", True, True),
    (r"(?i-s:a)", True, True),
    (r"(?x)a", False, False),
    (r"(?-)a", False, False),
    (r"(?)a", True, True),
    (r"\pN", True, True),
    (r"\PN", True, True),
    (r"\pn", True, False),
    (r"\p{^N}", True, True),
    (r"\pé", False, False),
    (r"\p{", False, False),
    (r"\p{}", False, False),
    (r"\p{Greek}", True, True),
    (r"\p{greek}", True, False),
    (r"[\p{ Greek }x]", True, False),
    (r"\p{Grek}", False, False),
    (r"\p{Letter}", True, False),
    (r"\p{Lowercase_Letter}", True, False),
    (r"\p{lowercase letter}", True, False),
    (r"\p{Any}", True, True),
    (r"\p{ASCII}", True, False),
    (r"[^\p{ASCII}]", True, False),
    (r"\p{LC}", True, False),
    (r"\P{LC}", True, False),
    (r"\p{Assigned}", True, False),
    (r"\p{Cn}", True, False),
    (r"\p{Kawi}", True, True),
    (r"\p{Garay}", False, False),
    (r"\p{Alphabetic}", False, False),
    (r"\x{10FFFF}", True, True),
    (r"\x{110000}", False, False),
    (r"\x{D800}", True, True),
    (r"[[:word:]]", True, True),
    (r"[[:foo:]]", False, False),
    (r"[a-\d]", False, False),
    (r"[z-a]", False, False),
    (r"[]a]", True, True),
    (r"[]", False, False),
    ("\0[\0]", True, True),
]
DIFFERENCES = [
    (r"\p{Old_Italic}", False, True),
    (r"\p{SignWriting}", False, True),
    (r"[\p{Cn}]", True, False),
    (r"[\P{LC}]", True, False),
]


@each_row(("pattern", "go", "untranslated"), ACCEPTED)
def test_patterns_that_go_rejects_are_rejected(pattern: str, go: bool, untranslated: bool) -> None:
    assert accepts(pattern) is go
    assert re2_accepts(pattern) is untranslated


@pytest.mark.parametrize(("pattern", "go", "accepted"), DIFFERENCES)
def test_known_differences_from_go_are_current(pattern: str, go: bool, accepted: bool) -> None:
    """Go 1.25 and 1.26 reject names with an underscore by mistake; RE2 cannot express unassigned characters in brackets."""
    assert accepts(pattern) is accepted is not go


@each_row(
    ("pattern", "text", "found"),
    [
        (r"\B", "aé1😀b", []),  # RE2 itself finds two, between the bytes of a character
        (r"\B", "abé", ["", ""]),
        (r"a*", "baaac", ["", "aaa", ""]),
        (r"a|", "aab", ["a", "a", ""]),
        (r"", "é€", ["", "", ""]),
        (r"(|a)+", "aa", ["", "", ""]),
        (r"^a", "aaa", ["a"]),
        (r"(?m)^.", "ab\ncd", ["a", "c"]),
        (r"b$", "b\n", []),
        (r"[^a]", "a\n", ["\n"]),
        (r".", "a\nb", ["a", "b"]),
        (r"\s", "\v\f ", ["\f", " "]),
        (r"\d", "1٣", ["1"]),
        (r"(?i)k", "kK\u212a", ["k", "K", "\u212a"]),
        (r"(?i)\p{Lu}", "aA1", ["a", "A"]),
        (r"\p{greek}+", "abγδ", ["γδ"]),
        (r"\P{ASCII}", "aé", ["é"]),
        (r"[\p{LC}1]", "aA1-", ["a", "A", "1"]),
        (r"\p{Cn}", "a\u0378", ["\u0378"]),
        (r"[\p{Assigned}]", "a\u0378", ["a"]),
        (r"\x{00e9}|\xe9", "é", ["é"]),
        ("\0+", "a\0\0", ["\0\0"]),
        (r"\Q.*\E+", "a.**", [".**"]),
    ],
)
def test_matches_equal_those_of_go(pattern: str, text: str, found: list[str]) -> None:
    assert search(pattern, text, lambda steps: None) == found
