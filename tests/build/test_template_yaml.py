"""The YAML that toYaml writes is that of Go, byte for byte."""

from __future__ import annotations

import pytest

from gitsched.build.go_functions import NotEvaluatedError
from gitsched.build.template_values import convert_value
from gitsched.build.template_yaml import write_yaml

ROWS: list[tuple[object, str]] = [
    (
        {"a": "prod", "b": {"c": "A B", "d": []}, "e": ["x", {"f": 1, "g": None}], "h": {}},
        "a: prod\nb:\n  c: A B\n  d: []\ne:\n- x\n- f: 1\n  g: null\nh: {}",
    ),
    ("{{x}}", "'{{x}}'"),
    ("https://h:1", "https://h:1"),
    ("é", "é"),
    ("3", '"3"'),
    ("1e3", '"1e3"'),
    ("0x1F", '"0x1F"'),
    ("1:30", '"1:30"'),
    ("1_000", '"1_000"'),
    ("2024-01-02", '"2024-01-02"'),
    ("yes", '"yes"'),
    ("Null", '"Null"'),
    ("~", '"~"'),
    ("", '""'),
    ("a: b", "'a: b'"),
    ("a #b", "'a #b'"),
    ("- a", "'- a'"),
    ("-a", "-a"),
    ("?a", "?a"),
    (":a", ":a"),
    ("@a", "'@a'"),
    ("it's", "it's"),
    ("'a'", "'''a'''"),
    ("tab\there", '"tab\\there"'),
    ("bell\x07", '"bell\\a"'),
    ("🎉", '"\\U0001F389"'),
    ("\xa0", "\xa0"),
    ("two\nlines", "|-\n  two\n  lines"),
    ("two\nlines\n", "|\n  two\n  lines"),
    ("end\n\n", "|+\n  end\n"),
    (" first\nline", "|2-\n   first\n  line"),
    ("line \nblank", '"line \\nblank"'),
    ({"k": "two\nlines", "l": ["two\nlines"]}, "k: |-\n  two\n  lines\nl:\n- |-\n  two\n  lines"),
    (
        {"item10": 1, "item2": 2, "a_b": 3, "aB": 4, "a-b": 5, "A": 6, "1": 7, "": 8},
        '"": 8\n"1": 7\nA: 6\na-b: 5\na_b: 3\naB: 4\nitem2: 2\nitem10: 1',
    ),
    ({"b": 1.5, "c": 100.0, "d": True, "e": 12345678901}, "b: 1.5\nc: 100\nd: true\ne: 12345678901"),
    ([[1, 2], ["a"]], "- - 1\n  - 2\n- - a"),
    (".nan", '".nan"'),
    ("+.inf", '"+.inf"'),
    ("<<", "<<"),
    ("a...b", "a...b"),
    ("trailing ", "'trailing '"),
    (" leading", "' leading'"),
    ("x:", "'x:'"),
    ("%a", "'%a'"),
    ("`a", "'`a'"),
    ("true", '"true"'),
    ({"yes": "no", "null": 1}, '"null": 1\n"yes": "no"'),
]
"""Values, and what the functions of an ApplicationSet give for them."""


@pytest.mark.parametrize(("value", "text"), ROWS)
def test_a_value_is_written_as_go_writes_it(value: object, text: str) -> None:
    assert write_yaml(convert_value(value)) == text


@pytest.mark.parametrize("value", ["word " * 20 + "end", {"two\nlines": 1}, {"k" * 200: 1}, "a\u2028b", ["\x85"]])
def test_rare_texts_are_not_evaluated(value: object) -> None:
    with pytest.raises(NotEvaluatedError):
        write_yaml(value)


def test_a_long_text_without_blanks_and_lines_of_a_block_are_not_divided() -> None:
    assert write_yaml("x" * 200) == "x" * 200
    assert write_yaml("a word " * 20 + "x\nend") == "|-\n  " + "a word " * 20 + "x\n  end"
