"""Values of options that few commands are given, parsed; a wrong value is a usage error. See `gitsched.cli.options.read_with`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from gitsched.apis.gitsched.branch_names import check_branch_name
from gitsched.apis.gitsched.guard_config import GuardLimit, parse_limit
from gitsched.model.allow_list import HostRule, TokenRule, parse_host_rule, parse_remote, parse_token_rule
from gitsched.model.labels import Selector, parse_selector_text

Value = TypeVar("Value")


def read_branch(value: str) -> str:
    """Return the name of a branch."""
    expected = check_branch_name(value)
    if expected:
        raise click.BadParameter(f"{value!r} is not {expected}")
    return value


def parse_guard_limit(value: str) -> GuardLimit:
    """Return the limit of LIMIT=PERCENT."""
    return _parse(parse_limit, value)


def parse_host_rules(value: str) -> tuple[HostRule, ...]:
    """Return hosts, with commas between them."""
    return _parse_list(parse_host_rule, value)


def parse_token_rules(value: str) -> tuple[TokenRule, ...]:
    """Return the rules of tokens, with commas between them."""
    return _parse_list(parse_token_rule, value)


def parse_remotes(value: str) -> tuple[str, ...]:
    """Return other repositories, with commas between them."""
    return _parse_list(parse_remote, value)


def _parse_list(parse: Callable[[str], Value], value: str) -> tuple[Value, ...]:
    return tuple(_parse(parse, text) for text in map(str.strip, str(value).split(",")) if text)


def _parse(parse: Callable[[str], Value], value: str) -> Value:
    try:
        return parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def parse_labels(value: str) -> Selector:
    """Parse a label selector."""
    selector = parse_selector_text(value)
    if selector is None:
        raise click.BadParameter(f"{value!r} is not a label selector such as app=web,tier in (a,b)")
    return selector
