"""Command-line options that several commands share, parsed into typed values; a wrong value is a usage error."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gitsched.model.time import add_duration, parse_duration, parse_time

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_AUTHOR = re.compile(r"\s*([^<>]*[^<>\s])\s*<([^<>\s]+)>\s*")


def combine(*decorators: Decorator) -> Decorator:
    """Combine options into one decorator, in the order of --help."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def show_examples(*examples: tuple[str, str]) -> str:
    """Return the end of the help of a command: command lines, each below what it does."""
    lines = [line for text, words in examples for line in (f"  # {text}", f"  gitsched {words}")]
    return "\n".join(("\b", "Examples:", *lines))  # click does not wrap a paragraph that starts with \\b


def complete_with(words: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return what completes an argument or an option in a shell, by the name of its words in `gitsched.cli.completion`."""

    def find_words(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from gitsched.cli.completion import complete  # only for completion

        return complete(words, ctx, incomplete, find_cache_directory())

    return find_words


def add_environment_variables(command: click.Command) -> None:
    """Add an environment variable to each option of a command, such as GITSCHED_CACHE_DIR for --cache-dir."""
    for option in command.params:
        if isinstance(option, click.Option):
            option.envvar = option.envvar or "GITSCHED_" + max(option.opts, key=len).lstrip("-").replace("-", "_").upper()
            option.show_envvar = True


def read_now(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> datetime:
    """Return the value of --now, else the current time. This is the only place where commands read the clock."""
    if value is None:
        return datetime.now(UTC)
    delay = parse_duration(value[1:]) if value.startswith("+") else None
    if delay is not None:
        return add_duration(datetime.now(UTC), delay)
    time = parse_time(value)
    if time is None:
        raise click.BadParameter(
            f"{value!r} is neither an RFC 3339 time such as 2026-01-12T09:00:00Z nor a duration from now such as +15m"
        )
    return time


def read_given_now(ctx: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    """Return the value of --now; None if it is not given, where documents say what time it is."""
    return None if value is None else read_now(ctx, parameter, value)


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


def read_with(function: str, module: str = "gitsched.cli.option_values") -> Callable[..., Any]:
    """Return what reads the value of an option, as its type or as its callback: a function of a module that is imported only if the option
    is used."""

    def read(*arguments: Any) -> Any:
        return None if arguments[-1] is None else getattr(import_module(module), function)(arguments[-1])

    return read


def find_cache_directory() -> Path:
    """Return the default cache directory, whose content may be deleted at any time."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says to ignore relative values.
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "gitsched"  # noqa: PTH117  # Path("") would be relative


def _read_cache_directory(_ctx: click.Context, _parameter: click.Parameter, value: Path | None) -> Path:
    return value or find_cache_directory()


def read_location(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Return the repository of a command. `gitsched -C LOCATION COMMAND` replaces the default and the environment variable."""
    root = ctx.find_root()
    general = root.params.get("location") if root is not ctx else None
    if general is None or ctx.get_parameter_source(parameter.name or "") is click.core.ParameterSource.COMMANDLINE:
        return value
    return parameter.type_cast_value(ctx, general)


LOCATION = click.option(
    "-C",
    "--repo",
    "location",
    metavar="LOCATION",
    default=".",
    callback=read_location,
    shell_complete=complete_with("directories"),
    help="Source repository: a path or a URL.",
)
CACHE = click.option(
    "--cache-dir",
    "cache",
    type=click.Path(file_okay=False, path_type=Path),
    callback=_read_cache_directory,
    help="Cache directory; $XDG_CACHE_HOME/gitsched by default.",
)
NOW = click.option(
    "--now",
    metavar="TIME",
    callback=read_now,
    is_eager=True,  # other times are relative to it
    help="Time for deadlines (RFC 3339, or +15m from now); now by default.",
)
LOG = click.option(
    "--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Format of the log on stderr."
)


def choose_format(*forms: str) -> Decorator:
    """Return the option -o, with the first form as its default."""
    return click.option(
        "-o", "--output", "form", type=click.Choice(forms), default=forms[0], show_default=True, help="Output format."
    )


def choose_namespace(help_text: str, default: str | None = "") -> Decorator:
    """Return the option -n for the namespace of workloads."""
    return click.option(
        "-n",
        "--namespace",
        metavar="NAMESPACE",
        default=default,
        shell_complete=complete_with("namespaces"),
        help=help_text,
    )


def choose_labels(help_text: str) -> Decorator:
    """Return the option -l for the labels of what a command is about."""
    return click.option("-l", "--selector", "labels", metavar="SELECTOR", callback=read_with("parse_labels"), help=help_text)


COLOR = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colours in text; by default on a terminal, unless NO_COLOR is set or TERM is dumb.",
)
EACH_WORKLOAD = click.option(
    "--each-workload", "each", is_flag=True, help="List each workload that moves, also where many move because of the same change."
)
FORMAT = choose_format("text", "json", "yaml")
KUBECTL = combine(
    click.option("--kubeconfig", metavar="PATH", default="", help="Kubeconfig; kubectl's own by default."),
    click.option("--kubectl", "executable", metavar="PATH", default="kubectl", show_default=True, help="The kubectl executable."),
    click.option(
        "--timeout",
        type=click.FloatRange(min=1, max=600),
        default=30.0,
        show_default=True,
        metavar="SECONDS",
        help="For each request.",
    ),
)
FAIL_ON = click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "unschedulable", "none"]),
    default="error",
    show_default=True,
    help="Exit with 1 on findings of severity error and, in a plan with BASE, on workloads that become unplaced or stop, also on warnings, "
    "also on all unplaced workloads, or never.",
)

FACTS_REPOSITORY = click.option(
    "--facts-repository",
    metavar="LOCATION",
    envvar="GITSCHED_FACTS_REPOSITORY",
    help="Repository that may have the facts branches; that of the source by default.",
)
OPERATOR_FILE = click.option(
    "--operator-settings",
    "operator_file",
    metavar="FILE",
    envvar="GITSCHED_OPERATOR_SETTINGS",
    show_envvar=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Settings of the operator, in a file outside of the source: see docs/operator.md.",
)
STRICT = click.option(
    "--strict", is_flag=True, envvar="GITSCHED_STRICT", help="Treat unknown fields and other warnings of schemas as errors."
)
SOURCE = combine(
    LOCATION,
    OPERATOR_FILE,
    click.option(
        "--branch", metavar="NAME", shell_complete=complete_with("branches"), help="Source branch; the branch of HEAD by default."
    ),
    click.option("--path", "paths", metavar="PATH", multiple=True, help="Read only this directory or file; may be repeated."),
    STRICT,
    FACTS_REPOSITORY,
    CACHE,
)
TARGET = combine(
    click.option("--output-repository", metavar="LOCATION", help="Output repository: a path or a URL; the source by default."),
    click.option(
        "--output-branch",
        metavar="NAME",
        callback=read_with("read_branch"),
        shell_complete=complete_with("output branches"),
        help="Output branch; `placements` by default.",
    ),
)
STATE = click.option(
    "--state",
    type=click.Choice(["auto", "on", "off"]),
    default="auto",
    show_default=True,
    envvar="GITSCHED_STATE",
    help="Use the state of the last plan beside the output branch: if a key of the operator signed it (auto), also if the operator lists "
    "none (on), or never (off).",
)
FETCH = click.option(
    "--fetch",
    "push",
    metavar="REMOTE",
    shell_complete=complete_with("remotes"),
    help="Compare with the output branch of this remote; with that of this repository by default.",
)


def _choose_push(help_text: str) -> Decorator:
    return click.option(
        "--push", metavar="REMOTE", is_flag=False, flag_value="origin", shell_complete=complete_with("remotes"), help=help_text
    )


_IDENTITY = combine(
    click.option("--author", metavar="'NAME <EMAIL>'", callback=_read_author, help="Author of the commits."),
    click.option("--sign", "signing", metavar="ssh:PATH|gpg:KEY", callback=_read_signing, help="Sign the commits."),
)
FACTS_COMMIT = combine(
    _choose_push("Push the facts branch to this remote (`origin` if none is given). A source at a URL is always pushed to."),
    _IDENTITY,
)
"""Options of commands that commit to a facts branch."""
OUTPUT_COMMIT = combine(
    _choose_push(
        "Push the output branch to this remote (`origin` if none is given). A remote output repository is always pushed to."
    ),
    _IDENTITY,
)
"""Options of all commands that commit to the output branch."""
COMMIT = combine(
    OUTPUT_COMMIT,
    click.option(
        "--require-reviewed",
        is_flag=True,
        help="Commit the changes of a new source commit only if they match the plan of its trailer Gitsched-Reviewed.",
    ),
)


ALLOW_LIST = combine(
    click.option(
        "--metrics-host",
        "hosts",
        metavar="HOST",
        multiple=True,
        envvar="GITSCHED_METRICS_HOSTS",
        show_envvar=True,
        type=read_with("parse_host_rules"),
        help="Allow queries to metrics providers at this host (HOST, HOST:PORT or *.DOMAIN); may be repeated. None by default.",
    ),
    click.option(
        "--statuses-host",
        "status_hosts",
        metavar="HOST",
        multiple=True,
        envvar="GITSCHED_STATUSES_HOSTS",
        show_envvar=True,
        type=read_with("parse_host_rules"),
        help="Allow queries for commit statuses to the forge at this host; may be repeated. None by default.",
    ),
    click.option(
        "--allow-token",
        "tokens",
        metavar="env:NAME|file:PATH[@HOST]",
        multiple=True,
        envvar="GITSCHED_ALLOW_TOKENS",
        show_envvar=True,
        type=read_with("parse_token_rules"),
        help="Allow to read this environment variable or file for a token, and to send it to HOST only; may be repeated. None by "
        "default.",
    ),
    click.option(
        "--allow-remote",
        "remotes",
        metavar="HOST[/PATH]",
        multiple=True,
        envvar="GITSCHED_ALLOW_REMOTES",
        show_envvar=True,
        type=read_with("parse_remotes"),
        help="Allow to fetch other Git repositories that kustomizations name; may be repeated. None by default.",
    ),
)
"""What the operator allows gitsched to contact and to read for the source."""


def _choose_observations(*choices: str, help_text: str) -> Decorator:
    """Return the option --observations, with the first choice as its default, and those of the allow-list."""
    option = click.option("--observations", type=click.Choice(choices), default=choices[0], show_default=True, help=help_text)
    return combine(option, ALLOW_LIST)


RECORDED_METRICS = _choose_observations(
    "recorded",
    "live",
    help_text="Use the metrics recorded in the output branch, or query the providers with which the output branch was made.",
)
"""Metrics options of commands that do not write."""
LIVE_METRICS = _choose_observations(
    "live", "recorded", help_text="Query the metrics providers, or use the metrics recorded in the output branch."
)
ALLOWED = click.option(
    "--allow", "allowed", metavar="DIGEST", multiple=True, help="Allow the withheld changes with this digest; may be repeated."
)
GUARD_LIMITS = click.option(
    "--guard",
    "guard_limits",
    metavar="LIMIT=PERCENT",
    multiple=True,
    type=read_with("parse_guard_limit"),
    help="Limit of the guard for this run, such as fleet.removed=50; takes precedence over gitsched.yaml. May be repeated.",
)
RUN_CONDITIONS = combine(ALLOWED, GUARD_LIMITS, NOW)
RELEASED_CLUSTERS = click.option(
    "--release-cluster",
    "released_clusters",
    metavar="NAME",
    multiple=True,
    help="Release the stateful workloads that are held in this cluster, such as one that is lost; may be repeated.",
)
"""For runs that a person starts: a service would release every later hold as well."""
