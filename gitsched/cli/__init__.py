"""The command line: one module for each command, loaded when it is called. Turns arguments and environment into typed values; no
logic."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from importlib import import_module

import click

from gitsched.cli import exit_codes

COMMANDS = {
    "init": "Write gitsched.yaml and an example of a policy into a repository.",
    "validate": "Check manifests, clusters and policies; plan and write nothing.",
    "plan": "Show what a commit would change, against another one or the output branch.",
    "reconcile": "Plan, and commit to the output branch.",
    "watch": "Reconcile whenever the source moves or a deadline passes.",
    "explain": "Say why a workload is where it is.",
    "simulate": "Say what would happen if a cluster or a region were lost.",
    "scores": "Turn observations of clusters into scores that Placements use.",
    "export": "Print what Flux, Argo CD and API servers need besides the output branch.",
    "comment": "Write a plan into a pull or merge request, or renew it there.",
    "schedule": "Decide without Git: documents in, decided documents out.",
    "help-code": "Say what a finding means, and what to do about it.",
    "version": "Print the version.",
}


ALIASES = {"diff": "plan"}


class LazyGroup(click.Group):
    """Imports the module of a verb when it is called, so that `--help` and every verb cost only themselves."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        name = ALIASES.get(name, name)
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"gitsched.cli.{name.replace('-', '_')}").command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if not word.startswith("-") and word not in COMMANDS and word not in ALIASES:
            from difflib import get_close_matches  # rarely needed

            near = get_close_matches(word[:100], COMMANDS, n=1)
            ctx.fail(f"there is no command {word[:100]!r}" + (f"; did you mean {near[0]}?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gitsched", message="gitsched %(version)s")
def cli() -> None:
    """Place Kubernetes workloads on a fleet of clusters, with Git as the control plane.

    Reads the manifests, clusters and policies of a commit, and commits the decisions to an output branch.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. Without arguments the process is taken to be over afterwards."""
    try:
        return _run(arguments)
    finally:
        if arguments is None:
            gc.freeze()  # what is left need not be looked through for cycles once more


def _run(arguments: Sequence[str] | None) -> int:
    try:
        code = cli.main(args=None if arguments is None else list(arguments), prog_name="gitsched", standalone_mode=False)
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.ClickException as error:
        error.show()
        return exit_codes.USAGE
    except (KeyboardInterrupt, click.Abort):
        return exit_codes.INTERRUPTED
    # The last line of defence: whatever else goes wrong is told in one line and has its own exit code.
    except Exception as error:  # noqa: BLE001
        return _report_error(error)
    return code if isinstance(code, int) else exit_codes.DONE


def _report_error(error: Exception) -> int:
    from gitsched.report.terminal import escape_ci_commands, escape_unprintable

    code = exit_codes.get_error_code(error)
    if code != exit_codes.BUG:
        click.echo(f"gitsched: {escape_ci_commands(escape_unprintable(str(error)))}", err=True)
        return code
    if os.environ.get("GITSCHED_DEBUG", "") not in ("", "0"):
        import traceback

        traceback.print_exception(error)
    click.echo(f"gitsched: this is a bug: {type(error).__name__}: {escape_ci_commands(escape_unprintable(str(error)))}", err=True)
    click.echo("Please report it, with the output of the same command under GITSCHED_DEBUG=1.", err=True)
    return code
