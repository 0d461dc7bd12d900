"""The command line: a module for each command has its options, and is imported when the command is named. What the command does is in the
module of the same name in `gitsched.cli.commands`, which is imported when it runs: help and completion need none of it.

Parses arguments and environment variables into typed values; contains no logic."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import exit_codes

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "init": "Write gitsched.yaml and an example policy into a repository.",
    "validate": "Check manifests, clusters and policies without writing anything.",
    "plan": "Show the changes of a commit, relative to another commit or the output branch.",
    "reconcile": "Schedule workloads and commit the result to the output branch.",
    "watch": "Reconcile when the source changes or a deadline passes.",
    "explain": "Explain why a workload is placed on its clusters.",
    "simulate": "Simulate the loss of a cluster or a region, and other events.",
    "fits": "Show which branches or pull requests fit together.",
    "status": "Say whether anything is wrong, and what is where.",
    "tree": "Show a cluster with its workloads, or a workload with its clusters.",
    "history": "Show which workload moved when, from where to where, and why.",
    "drain": "Drain clusters: edit their documents, and show what moves.",
    "cordon": "Keep new workloads away from clusters.",
    "uncordon": "End a drain or a cordon.",
    "freeze": "Freeze placements, or lift the freeze.",
    "rebalance": "Write a request to schedule workloads again.",
    "tidy": "List and remove expired documents of the worktree.",
    "collect": "Observe clusters through kubectl, and commit facts about them.",
    "scores": "Compute AddOnPlacementScores from metrics.",
    "export": "Print objects for Flux and Argo CD, and patches for API servers.",
    "adopt": "Take over a running fleet: keep everything where it runs.",
    "shadow": "Compare decisions with those of a running hub.",
    "apply": "Set values such as a status in a cluster, with kubectl.",
    "comment": "Create or update the comment of a plan on a pull or merge request.",
    "schedule": "Schedule documents without Git and print the result.",
    "schemas": "List the kinds that have a JSON Schema, or write it for an editor.",
    "help-code": "Print the cause and the fix of a finding.",
    "version": "Print the version.",
}


ALIASES = {"diff": "plan"}
_OTHER_NAMES = {
    **dict.fromkeys(("undo", "rollback", "revert"), "rebalance --to COMMIT"),
    **dict.fromkeys(("check", "lint"), "validate"),
    **dict.fromkeys(("undrain", "untaint"), "uncordon"),
    **dict.fromkeys(("unfreeze", "thaw", "release", "resume"), "freeze --lift"),
    **dict.fromkeys(("evict", "evacuate"), "drain"),
    "restore": "rebalance --to COMMIT",
    "import": "adopt",
    "why": "explain",
}
"""Words that other tools use for what a command does."""


class LazyCommand(click.Command):
    """A command with its options and its help. What it does is a function of a module in `gitsched.cli.commands`, by default `run` of that
    with the name of the command, which is imported when the command runs. `given` are arguments beside those of its parameters."""

    def __init__(
        self,
        name: str | None,
        *,
        module: str = "",
        function: str = "run",
        given: Mapping[str, Any] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(name, **attributes)
        self.module, self.function, self.given = module or (name or "").replace("-", "_"), function, given or {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        import_module("gitsched.cli.help_sections").write_options(self, ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            form = error.option_name.lstrip("-")
            if any(form in one.type.choices for one in self.params if isinstance(one.type, click.Choice) and "-o" in one.opts):
                raise click.NoSuchOption(error.option_name, possibilities=[f"-o {form}"], ctx=ctx) from None
            raise

    def invoke(self, ctx: click.Context) -> Any:
        module = import_module(f"gitsched.cli.commands.{self.module}")
        self.callback = partial(getattr(module, self.function), **self.given)
        return super().invoke(ctx)


class LazyGroup(click.Group):
    """A group that imports the module of a command only when the command is used."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        name = ALIASES.get(name, name)
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"gitsched.cli.{name.replace('-', '_')}").command
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [_make_item(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and name not in COMMANDS and name not in ALIASES:
            from difflib import get_close_matches  # rarely needed

            similar = [one for one in get_close_matches(name[:100], COMMANDS) if name != f"un{one}"]  # that would do the opposite
            meant = _OTHER_NAMES.get(name) or next(iter(similar), "")
            ctx.fail(f"there is no command {name[:100]!r}" + (f"; did you mean {meant}?" if meant else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def complete_directory(incomplete: str) -> list[CompletionItem]:
    """Let the shell complete a directory."""
    return [_make_item(incomplete, type="dir")]


def _make_item(value: str, **more: str) -> CompletionItem:
    from click.shell_completion import CompletionItem  # only for completion

    return CompletionItem(value, **more)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-C",
    "--repo",
    "location",
    metavar="LOCATION",
    shell_complete=lambda _ctx, _parameter, incomplete: complete_directory(incomplete),
    help="Source repository of the command: a path or a URL.",
)
@click.version_option(package_name="gitsched", message="gitsched %(version)s")
@click.pass_context
def cli(ctx: click.Context, location: str | None) -> None:
    """Schedule Kubernetes workloads on a fleet of clusters, with Git as the control plane.

    Reads the manifests, clusters and policies of a commit, and commits the decisions to an output branch. `gitsched COMMAND --help` has
    examples.
    """
    command = cli.get_command(ctx, ctx.invoked_subcommand or "")
    if location is None or command is None or isinstance(command, click.Group):
        return
    if not any(parameter.callback.__name__ == "read_location" for parameter in command.params if parameter.callback is not None):
        raise click.UsageError(f"-C is for commands that read a repository, and `{command.name}` reads none")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Without arguments, the process is expected to exit afterwards.

    Such a process does not collect garbage: each collection after a run would check all of its objects. `watch` and `apply --watch` run
    for long and do.
    """
    if arguments is not None:
        return _run(arguments)
    gc.disable()
    try:
        return _run(arguments)
    finally:
        gc.freeze()  # the interpreter collects garbage when it exits, whether or not the collector is disabled


def _run(arguments: Sequence[str] | None) -> int:
    try:
        code = cli.main(args=None if arguments is None else list(arguments), prog_name="gitsched", standalone_mode=False)
    except click.exceptions.Exit as exit_request:
        return exit_request.exit_code
    except Exception as error:  # noqa: BLE001 - see _report_error
        # A shell that asks for words to complete has no place for messages.
        return exit_codes.USAGE if os.environ.get("_GITSCHED_COMPLETE", "").endswith("_complete") else _report_error(error)
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    return code if isinstance(code, int) else exit_codes.DONE


def _report_error(error: Exception) -> int:
    """Print an error and return its exit code."""
    if isinstance(error, click.Abort):
        return exit_codes.INTERRUPTED
    if isinstance(error, click.ClickException):
        error.show()
        return exit_codes.USAGE
    from gitsched.cli.error_report import report_error

    return report_error(error)
