"""Command-line options that several commands share, parsed into typed values; a wrong value is a usage error."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from gitsched.model.time import parse_time

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_AUTHOR = re.compile(r"\s*([^<>]*[^<>\s])\s*<([^<>\s]+)>\s*")


def combine(*decorators: Decorator) -> Decorator:
    """Several options as one decorator, in the order in which help shows them."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def add_environment_variables(command: click.Command) -> None:
    """Let every option of a command be given by a variable, too: --cache-dir by GITSCHED_CACHE_DIR."""
    for option in command.params:
        if isinstance(option, click.Option):
            option.envvar = option.envvar or "GITSCHED_" + max(option.opts, key=len).lstrip("-").replace("-", "_").upper()
            option.show_envvar = True


def read_now(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> datetime:
    """--now, else the clock: commands read it once and nothing below them does."""
    if value is None:
        return datetime.now(UTC)
    moment = parse_time(value)
    if moment is None:
        raise click.BadParameter(f"{value!r} is no RFC 3339 time such as 2026-01-12T09:00:00Z")
    return moment


def _read_author(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[str, str] | None:
    match = _AUTHOR.fullmatch(value) if value is not None else None
    if value is not None and match is None:
        raise click.BadParameter(f"{value!r} is not of the form 'NAME <EMAIL>'")
    return (match[1], match[2]) if match else None


def _read_signing(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[str, str] | None:
    form, _, key = (value or "").partition(":")
    if value is not None and (form not in ("ssh", "gpg") or not key):
        raise click.BadParameter(f"{value!r} is neither ssh:PATH nor gpg:KEY")
    return (form, key) if value is not None else None


def _read_branch(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None:
        from gitsched.apis.gitsched.config import check_branch_name  # not every command writes

        wanted = check_branch_name(value)
        if wanted:
            raise click.BadParameter(f"{value!r} is not {wanted}")
    return value


def find_cache_directory() -> Path:
    """Where private copies and memory are kept between runs; all of it may be deleted at any moment."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification wants relative values ignored.
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "gitsched"  # noqa: PTH117  # on the text, before it is a Path


def _read_cache_directory(_ctx: click.Context, _parameter: click.Parameter, value: Path | None) -> Path:
    return value or find_cache_directory()


LOCATION = click.option("-C", "--repo", "location", metavar="LOCATION", default=".", help="Source repository: a path or a URL.")
CACHE = click.option(
    "--cache-dir",
    "cache",
    type=click.Path(file_okay=False, path_type=Path),
    callback=_read_cache_directory,
    help="Where private copies are kept; $XDG_CACHE_HOME/gitsched by default.",
)
NOW = click.option(
    "--now", metavar="TIME", callback=read_now, help="What deadlines are compared with (RFC 3339); the clock by default."
)
LOG = click.option(
    "--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How stderr is written."
)


def choose_format(*forms: str) -> Decorator:
    """-o, with the first form as its default."""
    return click.option(
        "-o", "--output", "form", type=click.Choice(forms), default=forms[0], show_default=True, help="How stdout is written."
    )


FORMAT = choose_format("text", "json", "yaml")
FAIL_ON = click.option(
    "--fail-on",
    type=click.Choice(["error", "unschedulable", "none"]),
    default="error",
    show_default=True,
    help="What makes the exit code 1: findings of severity error; also workloads without a place; nothing.",
)

SOURCE = combine(
    LOCATION,
    click.option("--branch", metavar="NAME", help="Source branch; the one that HEAD names by default."),
    click.option("--path", "paths", metavar="PATH", multiple=True, help="Read only this directory or file; may be repeated."),
    CACHE,
)
TARGET = combine(
    click.option("--output-repository", metavar="LOCATION", help="Where to write, a path or a URL; the source by default."),
    click.option("--output-branch", metavar="NAME", callback=_read_branch, help="Branch to write; `placements` by default."),
)
FETCH = click.option(
    "--fetch",
    "push",
    metavar="REMOTE",
    help="Compare with the output branch as this remote has it now; with the one in this repository by default.",
)
COMMIT = combine(
    click.option(
        "--push",
        metavar="REMOTE",
        is_flag=False,
        flag_value="origin",
        help="Push the output branch to this remote (`origin` if none is named); a remote repository is always pushed to.",
    ),
    click.option("--author", metavar="'NAME <EMAIL>'", callback=_read_author, help="Who the commits are from."),
    click.option("--sign", "signing", metavar="ssh:PATH|gpg:KEY", callback=_read_signing, help="Sign the commits."),
    click.option(
        "--require-reviewed",
        is_flag=True,
        help="Commit what a new source commit changes only if it is the plan that its trailer Gitsched-Reviewed names.",
    ),
)


_HOSTS_VARIABLE = "GITSCHED_METRICS_HOSTS"


def _read_hosts(_ctx: click.Context, _parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...] | None:
    """The hosts, also as a list with commas. What could match none is refused: nobody would find out why nothing is asked."""
    hosts = tuple(host.strip().removeprefix("[").removesuffix("]") for text in value for host in text.split(",") if host.strip())
    for host in hosts:
        if not re.fullmatch(r"(\*\.)?[\w-]+(\.[\w-]+)*\.?|[0-9a-fA-F]*:[0-9a-fA-F:.]*:[0-9a-fA-F.]*", host):
            raise click.BadParameter(f"{host!r} is no host, nor '*.' and a domain; it has neither a port nor a path")
    # A variable that is set and empty is most often one of a pipeline that nobody filled in: it must not open what it was to close.
    if not hosts and (value or _HOSTS_VARIABLE in os.environ):
        raise click.BadParameter(f"no host is named; without the option, and with {_HOSTS_VARIABLE} not set, all may be asked")
    return hosts or None


HOSTS = click.option(
    "--metrics-host",
    "hosts",
    metavar="HOST",
    multiple=True,
    envvar=_HOSTS_VARIABLE,
    callback=_read_hosts,
    help="Ask only providers of metrics at this host, or *.domain; may be repeated. All that the documents name by default.",
)


def _choose_observations(*choices: str, told: str) -> Decorator:
    """--observations with the first choice as its default, and whom they may be asked of."""
    option = click.option("--observations", type=click.Choice(choices), default=choices[0], show_default=True, help=told)
    return combine(option, HOSTS)


RECORDED_METRICS = _choose_observations(
    "recorded",
    "live",
    told="Metrics as the output branch recorded them, or of now, from providers that are what the output branch was made with.",
)
"""How metrics are come by for whoever only looks."""
LIVE_METRICS = _choose_observations(
    "live", "recorded", told="Ask the providers of metrics, or take what the output branch recorded."
)
ALLOW_REMOVALS = click.option("--allow-removals", is_flag=True, help="Let a commit pass that the guard would refuse.")
RUN_CONDITIONS = combine(ALLOW_REMOVALS, NOW)
