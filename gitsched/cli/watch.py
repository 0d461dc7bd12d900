"""gitsched watch: reconcile whenever the source changes."""

from __future__ import annotations

import click

from gitsched.cli import LazyCommand, options, service_options


@click.command(
    "watch",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("Run once, with the log of watch", "watch --once"),
        ("Reconcile this worktree when a branch changes, and serve the pages", "watch --listen 127.0.0.1:8080"),
        ("A remote repository", "watch -C https://git.example.com/fleet.git"),
    ),
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to poll a remote; changes of local refs are detected immediately.",
)
@click.option("--once", is_flag=True, help="Run once and exit, like reconcile, but with the log of watch.")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=20.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a run that publishes its commit may continue after SIGTERM or SIGINT.",
)
@service_options.SERVICE
@options.SOURCE
@options.TARGET
@options.STATE
@options.COMMIT
@options.LIVE_METRICS
@options.RUN_CONDITIONS
@options.FAIL_ON
@options.LOG
def command() -> None:
    """Reconcile when the source changes or a deadline passes.

    Errors are logged, and the next run tries again. SIGTERM exits with 0, SIGINT (Ctrl-C) with 130. Either ends a run that is not
    publishing yet; one that publishes its commit is aborted after --grace seconds or at a second signal. No partial output is left.
    """


options.add_environment_variables(command)
