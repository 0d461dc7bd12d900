"""gitsched collect: observe clusters through kubectl, and commit facts about them to facts branches."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import click

from gitsched.cli import LazyCommand, options
from gitsched.model.time import parse_duration


def _read_refresh(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> timedelta | None:
    duration = parse_duration(value) if value is not None else None
    if value is not None and duration is None:
        raise click.BadParameter(f"{value!r} is not a duration such as 20m")
    return duration


@click.command(
    "collect",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("Facts about the cluster of a context, without a commit", "collect --context cloud-1 --dry-run"),
        ("Facts about the clusters of all contexts, pushed to origin", "collect --all-contexts --push"),
    ),
)
@options.LOCATION
@options.OPERATOR_FILE
@options.FACTS_REPOSITORY
@options.CACHE
@options.FACTS_COMMIT
@options.NOW
@click.option(
    "--context",
    "contexts",
    metavar="[CLUSTER=]CONTEXT",
    multiple=True,
    help="Observe the cluster of this context; may be repeated.",
)
@click.option("--all-contexts", is_flag=True, help="Observe the clusters of all contexts of the kubeconfig.")
@click.option(
    "--from",
    "sources",
    metavar="SOURCE[=CONTEXT]",
    multiple=True,
    callback=options.read_with("read_sources", "gitsched.cli.commands.collect"),
    help="Clusters that a cluster knows: karmada or ocm (a hub), clusterprofiles, or argocd (its Secrets); may be repeated.",
)
@click.option("--self", "own", metavar="CLUSTER", default="", help="Observe the cluster in which gitsched runs, under this name.")
@click.option(
    "--output-branch",
    metavar="NAME",
    default="",
    help="With --self: the output branch to report about; by default that of the settings.",
)
@click.option("--facts-branch", metavar="NAME", default="", help="Commit to this branch; by default to that of `source.facts`.")
@click.option(
    "--write-clusters",
    metavar="DIRECTORY",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also write a document for each cluster into this directory, for the source. Files that exist are not changed.",
)
@click.option(
    "--api", metavar="NAME", default="karmada", show_default=True, help="With --write-clusters: the policy API of the documents."
)
@options.KUBECTL
@click.option(
    "--cluster-timeout",
    "seconds",
    type=click.FloatRange(min=1, max=3600),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="For each cluster.",
)
@click.option(
    "--refresh",
    metavar="DURATION",
    callback=_read_refresh,
    help="Write unchanged facts again when they are this old; by default half of `source.facts.staleAfter`.",
)
@click.option("--dry-run", is_flag=True, help="Print the facts to stdout instead of committing them.")
@options.FORMAT
@options.LOG
def command() -> None:
    """Observe clusters through kubectl, and commit facts about them to facts branches.

    Facts are the readiness, the version, the APIs and the resources of a cluster. They become the status of its document in the source.
    Labels, taints and the existence of clusters come from the source alone; --write-clusters proposes documents for it.

    Small changes of amounts are no change. A cluster that cannot be observed keeps its facts, which become stale.
    """


options.add_environment_variables(command)
