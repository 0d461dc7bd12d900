"""gitsched adopt: take over a running fleet."""

from __future__ import annotations

from pathlib import Path

import click

from gitsched.cli import LazyCommand, options


def _split_assignment(value: str, expected: str) -> tuple[str, str]:
    name, separator, rest = value.partition("=")
    if not (separator and name and rest):
        raise click.BadParameter(f"{value!r} is not of the form {expected}")
    return name, rest


def _read_clusters(_ctx: click.Context, _parameter: click.Parameter, value: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(_split_assignment(text, "CLUSTER=PATH") for text in value)


def _read_contexts(_ctx: click.Context, _parameter: click.Parameter, value: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(_split_assignment(text if "=" in text else f"{text}={text}", "CLUSTER=CONTEXT") for text in value)


@click.command(
    "adopt",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("Take over what a dump of the clusters has", "adopt dump.yaml"),
        ("The same as JSON", "adopt dump.yaml -o json"),
    ),
)
@click.argument("dumps", nargs=-1, metavar="[DUMP]...")
@click.option(
    "--directories",
    metavar="DIRECTORY",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Directory with a directory of manifests for each cluster, named as the cluster; may be repeated.",
)
@click.option(
    "--cluster",
    "clusters",
    metavar="CLUSTER=PATH",
    multiple=True,
    callback=_read_clusters,
    help="File or directory with the objects of one cluster; may be repeated.",
)
@click.option(
    "--context",
    "contexts",
    metavar="[CLUSTER=]CONTEXT",
    multiple=True,
    callback=_read_contexts,
    help="Ask this cluster with kubectl where the objects of the source run; may be repeated.",
)
@options.KUBECTL
@click.option(
    "--not-running",
    "not_running",
    metavar="API",
    multiple=True,
    help="Policy API, such as ocm, of which what is found nowhere runs nowhere: no dump has to say so. May be repeated.",
)
@click.option("--dry-run", is_flag=True, help="Print the report and write nothing.")
@options.SOURCE
@options.TARGET
@options.OUTPUT_COMMIT
@options.NOW
@options.FAIL_ON
@options.FORMAT
@options.LOG
def command() -> None:
    """Take over a running fleet: commit an output branch that has everything where it runs, and report what the next run would move.

    Each DUMP is what `kubectl get rb,crb,works,placements,placementdecisions,manifestworks -A -o yaml` (or json) prints on a hub; `-` is
    standard input. Without a hub, give directories of clusters or contexts.
    """
