"""gitsched shadow: compare gitsched's decisions with those of a running hub."""

from __future__ import annotations

from pathlib import Path

import click

from gitsched.cli import LazyCommand, options


@click.command(
    "shadow",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("What a hub has decided since yesterday", "shadow monday.yaml tuesday.yaml"),
        ("The same as a page, for a hub that evicts by taints", "shadow monday tuesday --settings gitsched.yaml -o html"),
    ),
)
@click.argument("first", type=click.Path(path_type=Path), metavar="FIRST")
@click.argument("second", type=click.Path(path_type=Path), metavar="SECOND")
@click.option(
    "--settings",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A gitsched.yaml to decide with; what it leaves out is as on the hub by default.",
)
@click.option(
    "--now",
    metavar="TIME",
    callback=options.read_given_now,
    help="Time of the second dump for deadlines (RFC 3339); the latest time in it by default.",
)
@options.choose_format("text", "json", "yaml", "html")
@options.LOG
def command() -> None:
    """Compare the decisions of a running hub of Karmada or Open Cluster Management with those of gitsched.

    FIRST and SECOND are two dumps of the hub, each a file or a directory of what `kubectl get -A -o yaml` (or json) prints: policies,
    clusters, workloads, and the bindings or decisions of the hub. Decides from the records of FIRST and the documents of SECOND, and
    compares with the records of SECOND. Nothing is written, and values of Secrets are dropped.

    Exits with 0 if all compared decisions are equal, 1 if some differ or a document of the hub has an error, and 2 if the dumps cannot be
    compared.
    """
