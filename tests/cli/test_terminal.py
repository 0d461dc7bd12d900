"""What a terminal gets: colours where it has them."""

from __future__ import annotations

import io
import sys

import pytest

from gitsched.cli import output


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("color", "stdout", "environment", "painted"),
    [
        ("auto", Terminal(), {}, True),
        ("auto", Terminal(), {"NO_COLOR": "1"}, False),
        ("auto", Terminal(), {"NO_COLOR": ""}, True),
        ("auto", Terminal(), {"TERM": "dumb"}, False),
        ("auto", io.StringIO(), {}, False),
        ("never", Terminal(), {}, False),
        ("always", io.StringIO(), {"NO_COLOR": "1", "TERM": "dumb"}, True),
    ],
)
def test_colours_are_for_terminals_that_have_them(
    monkeypatch: pytest.MonkeyPatch, color: str, stdout: io.StringIO, environment: dict[str, str], painted: bool
) -> None:
    monkeypatch.setattr(sys, "stdout", stdout)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    paint = output.choose_paint(color)
    assert (paint is not None) == painted
    if paint is not None:
        assert paint("+", "added") == "\x1b[32m+\x1b[0m"
