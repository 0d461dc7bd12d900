"""gitsched reconcile: schedule workloads and commit the result to the output branch."""

from __future__ import annotations

import click

from gitsched.cli import LazyCommand, options, output


@click.command(
    "reconcile",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("Commit to the output branch of this repository", "reconcile"),
        ("Push the output branch to origin as well", "reconcile --push"),
        ("Push signed commits", "reconcile --push --sign ssh:/keys/gitsched"),
    ),
)
@options.SOURCE
@options.TARGET
@options.STATE
@options.COMMIT
@click.option(
    "--reviewed",
    metavar="DIGEST|FILE",
    callback=options.read_with("read_reviewed_plan", "gitsched.cli.saved_plan"),
    help="The reviewed plan: its digest, or the output of `gitsched plan -o json`. By default, the trailer of the source commit.",
)
@click.option(
    "--plan",
    "saved",
    metavar="FILE",
    callback=options.read_with("read_saved_review", "gitsched.cli.saved_plan"),
    help="Carry out exactly the plan that `gitsched plan --out FILE` has saved, or nothing.",
)
@options.LIVE_METRICS
@options.RUN_CONDITIONS
@options.RELEASED_CLUSTERS
@click.option(
    "--allow-older",
    is_flag=True,
    envvar="GITSCHED_ALLOW_OLDER",
    show_envvar=True,
    help="Reconcile also a commit that is older than that of the last run, or does not have it: what came since is taken back.",
)
@click.option(
    "--verify",
    is_flag=True,
    help="Make the complete plan as well, from empty caches, and compare it with the one that starts from the state of the last run.",
)
@options.FAIL_ON
@output.report_option("env")
@options.FORMAT
@options.EACH_WORKLOAD
@options.COLOR
@options.LOG
def command() -> None:
    """Schedule all workloads and commit the result to the output branch.

    Commits only if a decision or a manifest changes. Invalid documents do not affect valid ones.
    """
