"""Results as text for people, JSON and YAML, in which a CI runner finds no commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from gitsched.cli.log_lines import escape_json
from gitsched.cli.output import find_width, show, show_formatted
from gitsched.model.finding import Finding
from gitsched.model.system_errors import is_bug
from gitsched.render.yaml import dump
from gitsched.report.lines import escape_ci_commands, escape_unprintable
from gitsched.report.review import Review

Rendered = TypeVar("Rendered")


def show_faults(faults: Iterable[Finding]) -> None:
    """Write findings about documents on which a bug shows to stderr, for commands whose result has no findings."""
    for fault in faults:
        click.echo(escape_unprintable(str(fault)), err=True)


def show_text(text: str) -> None:
    """Write text for people to stdout, with CI commands escaped."""
    show_formatted("text", escape_ci_commands(text))


def show_as(form: str, text: Callable[[int], str], data: Callable[[], dict[str, Any]]) -> None:
    """Write a result as text for the current width, or as JSON or YAML."""
    show_formatted(form, format_as(form, text, data))


def format_as(form: str, text: Callable[[int], str], data: Callable[[], dict[str, Any]]) -> str:
    """Return a result as text for the current width, with CI commands escaped, or as JSON or YAML."""
    if form != "text":
        return format_document(form, "", data)

    return escape_ci_commands(text(find_width()))


def show_document(form: str, text: str, data: Callable[[], dict[str, Any]]) -> None:
    """Write what another program reads: the text as it is, or JSON or YAML."""
    show(format_document(form, text, data))


def format_document(form: str, text: str, data: Callable[[], dict[str, Any]]) -> str:
    """Return what another program reads: the text as it is, or JSON or YAML.

    YAML in which a CI runner would find a command is written as JSON, which is YAML, too. Only JSON can escape the command so that its
    meaning stays the same.
    """
    if form == "json":
        return format_json(data())

    written = text if form == "text" else dump(data())
    return written if escape_ci_commands(written) == written else format_json(data())


def format_json(data: dict[str, Any]) -> str:
    """Return data as indented JSON with CI commands escaped."""
    return escape_json(json.dumps(data, indent=2)) + "\n"


class ReviewRenderer:
    """Renders a review. Entries on which that fails because of a bug are left out of `review`, which has a finding about each instead."""

    def __init__(self, review: Review) -> None:
        self.review = review

    def render(self, write: Callable[[Review], Rendered]) -> Rendered:
        try:
            return write(self.review)
        except Exception as error:
            if not is_bug(error):
                raise
            from gitsched.report.isolated_review import isolate_review  # only after a bug

            self.review = isolate_review(self.review, write)
            return write(self.review)

    def format_as(self, form: str, text: Callable[[Review, int], str], data: Callable[[Review], dict[str, Any]]) -> str:
        """Return the review as text for the current width, or as JSON or YAML."""
        return format_as(form, lambda width: self.render(lambda review: text(review, width)), lambda: self.render(data))

    def show_as(self, form: str, text: Callable[[Review, int], str], data: Callable[[Review], dict[str, Any]]) -> None:
        """Write the review as text for the current width, or as JSON or YAML."""
        show_formatted(form, self.format_as(form, text, data))
