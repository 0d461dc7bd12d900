"""gitsched schedule: schedule the documents of files and print the result, without a Git repository."""

from __future__ import annotations

import click

from gitsched.cli import LazyCommand, options


@click.command(
    "schedule",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("Documents of two files", "schedule -f clusters.yaml -f web.yaml"),
        ("From stdin, with the result of an earlier run", "schedule -f - --previous placed.yaml"),
    ),
)
@click.option("-f", "--filename", "names", metavar="FILE", multiple=True, help="File of documents, `-` for stdin; may be repeated.")
@click.argument("more", metavar="[FILE]...", nargs=-1)
@click.option("--previous", metavar="FILE", multiple=True, help="Output of an earlier run to continue from.")
@click.option(
    "--now",
    metavar="TIME",
    callback=options.read_given_now,
    help="Time for deadlines (RFC 3339); the latest time in the documents by default.",
)
@options.STRICT
@options.FAIL_ON
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="A YAML stream, or a JSON List.",
)
@options.LOG
def command() -> None:
    """Schedule the documents of files and print the scheduled documents.

    The first Config among the documents (apiVersion gitsched.io/v1alpha1) contains the settings. Findings go to stderr.
    """
