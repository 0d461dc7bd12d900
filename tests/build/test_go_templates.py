"""Go templates give what Go gives: each result is that of Go's text/template with the functions of sprig."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from gitsched.build.go_functions import TemplateError
from gitsched.build.go_templates import Parameters, find_unknown, render_go_template, split_unknown
from gitsched.build.template_functions import FUNCTIONS, UNREAD_FUNCTIONS
from tests.tables import each_row

CASES: Final = yaml.safe_load(Path(__file__).with_name("go_templates.yaml").read_text(encoding="utf-8"))
VALUES: Final[dict[str, Any]] = CASES["values"]


@each_row(("text", "expected"), [(case["template"], case["result"]) for case in CASES["renders"]])
def test_a_template_gives_what_go_gives(text: str, expected: str) -> None:
    assert render_go_template(text, Parameters(VALUES)) == expected


@each_row("text", CASES["fails"])
def test_a_template_that_go_refuses_is_an_error(text: str) -> None:
    with pytest.raises(TemplateError):
        render_go_template(text, Parameters(VALUES), "zero")


@each_row("name", sorted(UNREAD_FUNCTIONS))
def test_a_function_that_is_not_evaluated_leaves_the_text_unknown(name: str) -> None:
    assert find_unknown(render_go_template(f"a{{{{ {name} .env }}}}", Parameters(VALUES))) is not None
    assert name not in FUNCTIONS


def test_a_template_does_not_change_the_parameters() -> None:
    before = repr(VALUES)
    for text in (
        '{{ $_ := set .m "q" "r" }}',
        '{{ $_ := merge .m (dict "q" "r") }}{{ $_ = set $_ "s" "t" }}',
        '{{ $_ := unset .m "k" }}',
    ):
        render_go_template(text, Parameters(VALUES))
    assert repr(VALUES) == before


BOUNDED: Final = (
    "{{ range until 10000000 }}x{{ end }}",
    '{{ $x := "ab" }}{{ range until 1000 }}{{ $x = print $x $x }}{{ end }}{{ $x }}',
    '{{ repeat 1000000 "ab" }}',
    '{{ indent 1000000000 "a" }}',
    "{{ seq 1 100000000 }}",
    "{{ range until 9000 }}{{ range until 9000 }}xxxxxxxxxxxxxxxxx{{ end }}{{ end }}",
)


@each_row("text", BOUNDED)
def test_a_template_is_evaluated_in_a_limited_number_of_steps(text: str) -> None:
    with pytest.raises(TemplateError):
        render_go_template(text, Parameters(VALUES))


UNKNOWN: Final = (
    ("{{ .server }}-{{ .env }}", ("", "-Prod")),
    ("{{ if .env }}{{ .server }}{{ end }}-{{ .env }}", ("", "-Prod")),
    ("{{ if .server }}a{{ else }}b{{ end }}-{{ .env }}", ("", "-Prod")),
    ("{{ $x := .server }}{{ .env }}{{ $x }}", ("Prod", "")),
    ('{{ $x := "a" }}{{ if .server }}{{ $x = "b" }}{{ end }}-{{ $x }}', ("", "-", "")),
    ("{{ range .servers }}{{ . }}{{ end }}x", ("", "x")),
    ("{{ toJson . }}", ("", "")),
)


@each_row(("text", "parts"), UNKNOWN)
def test_what_depends_on_an_unknown_value_is_unknown_and_nothing_else(text: str, parts: tuple[str, ...]) -> None:
    assert split_unknown(render_go_template(text, Parameters(VALUES, is_open=True))) == list(parts)
