"""Print the error with which a command ends, and choose its exit code."""

from __future__ import annotations

import os
import traceback

import click

from gitsched.cli import exit_codes
from gitsched.git.lost_objects import describe_loss
from gitsched.git.objects import LostObject
from gitsched.model.system_errors import convert_system_error
from gitsched.report.lines import escape_ci_commands, escape_unprintable


def report_error(error: Exception) -> int:
    """Print an error and return its exit code. One that no class of errors describes is a bug."""
    error = convert_system_error(error) or error
    if type(error).__name__ == "LostObject":
        error = describe_loss(error) if isinstance(error, LostObject) else error
    code = exit_codes.get_error_code(error)
    if code != exit_codes.BUG:
        click.echo(f"gitsched: {escape_ci_commands(escape_unprintable(str(error)))}", err=True)
        return code
    if os.environ.get("GITSCHED_DEBUG", "") not in ("", "0"):
        traceback.print_exception(error)
    click.echo(f"gitsched: this is a bug: {type(error).__name__}: {escape_ci_commands(escape_unprintable(str(error)))}", err=True)
    click.echo("Please report it, with the output of the same command under GITSCHED_DEBUG=1.", err=True)
    return code
