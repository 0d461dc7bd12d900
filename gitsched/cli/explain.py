"""gitsched explain: why a workload is placed on its clusters and not on others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import exit_codes, options, output
from gitsched.cli.workload_names import parse_workload
from gitsched.cli.worktree import NOT_PLANNED, note_uncommitted
from gitsched.decide.registry import policy_apis
from gitsched.model.finding import list_faults

if TYPE_CHECKING:
    from gitsched.model.explanation import ClusterExplanation, Explanation

_SHAPES = {api.name: api.native_explanation for api in policy_apis.values() if api.native_explanation}


@click.command(
    "explain",
    epilog=options.show_examples(
        ("Why a workload is where it is", "explain deploy/web -n shop"),
        ("Why it is not in one cluster, and what would move it there", "explain deploy/shop/web --why-not cloud-1"),
        ("What runs in a cluster, and what does not fit", "explain cluster/cloud-1"),
    ),
)
@click.argument("workload", metavar="KIND/NAME", shell_complete=options.complete_with("explained"))
@click.option(
    "-n",
    "--namespace",
    metavar="NAMESPACE",
    shell_complete=options.complete_with("namespaces"),
    help="Namespace of the workload.  [default: default]",
)
@click.option(
    "--why-not",
    metavar="CLUSTER",
    multiple=True,
    shell_complete=options.complete_with("clusters"),
    help="Only explain why this cluster is not selected, and what would select it.",
)
@click.option(
    "--revision",
    "--at",
    metavar="REVISION",
    shell_complete=options.complete_with("revisions"),
    help="Explain the result for this branch, tag or commit.",
)
@click.option("--worktree", is_flag=True, help="Explain the result for the files of the worktree.")
@options.RECORDED_METRICS
@options.SOURCE
@options.TARGET
@options.STATE
@options.FETCH
@options.NOW
@options.choose_format("text", "markdown", "json", "yaml")
@click.option(
    "--format",
    "shape",
    type=click.Choice(["gitsched", *_SHAPES]),
    default="gitsched",
    show_default=True,
    help="; ".join(("Schema of -o json and -o yaml", *(f"{name}: {text}" for name, text in _SHAPES.items()))) + ".",
)
@options.LOG
def command(
    workload: str,
    namespace: str | None,
    why_not: tuple[str, ...],
    worktree: bool,
    form: str,
    shape: str,
    log_format: str,
    location: str,
    output_repository: str | None,
    **chosen: Any,
) -> int:
    """Explain the policy of a workload, the groups that were tried, why clusters are rejected, and how replicas are divided.

    KIND is written as for kubectl (deploy, deployments, Deployment); KIND/NAMESPACE/NAME replaces -n. For cluster/NAME (also a
    ManagedCluster): the workloads that run there, the free capacity, and why other workloads do not run there.
    """
    kind, space, name = parse_workload(workload, namespace)
    if worktree and chosen["revision"] is not None:
        raise click.UsageError("--worktree and --revision exclude each other")
    if shape != "gitsched" and form in ("text", "markdown"):
        raise click.UsageError(f"--format {shape} needs -o json or -o yaml")
    from gitsched.model.explanation import ClusterExplanation, Explanation
    from gitsched.reconcile import RunSettings
    from gitsched.reconcile.review.explanation import explain_resource

    output.configure_logging(log_format)
    settings = RunSettings(location=location, worktree=worktree, output=output_repository, trusted=False, **chosen)
    if not worktree and chosen["revision"] is None and chosen["branch"] is None:
        note_uncommitted(location, log_format, NOT_PLANNED)
    with output.show_progress("Planning") as progress:
        found = explain_resource(settings._replace(progress=progress), kind, space, name, why_not)
    if isinstance(found, ClusterExplanation):
        _show_cluster(found, form)
    else:
        _show_workload(found, form, shape)
    return exit_codes.FINDINGS if isinstance(found, Explanation) and list_faults(found.findings) else exit_codes.DONE


def _show_cluster(found: ClusterExplanation, form: str) -> None:
    from gitsched.report.blocks import blocks_to_markdown
    from gitsched.report.explanation import (
        list_cluster_explanation_blocks,
        serialize_cluster_explanation,
        write_cluster_explanation,
    )

    if form == "markdown":
        output.show_text(blocks_to_markdown(list_cluster_explanation_blocks(found)))
    else:
        output.show_as(form, lambda width: write_cluster_explanation(found, width), lambda: serialize_cluster_explanation(found))


def _show_workload(found: Explanation, form: str, shape: str) -> None:
    from gitsched.report.explanation import list_explanation_blocks, write_explanation
    from gitsched.report.serialization import serialize_explanation

    native = found.native
    if shape != "gitsched" and native is None:
        raise click.UsageError(
            f"{found.workload} has no explanation with --format {shape}: the policy API {shape!r} does not decide it"
        )
    if form == "markdown":
        from gitsched.report.blocks import blocks_to_markdown

        output.show_text(blocks_to_markdown(list_explanation_blocks(found)))
        return
    output.show_as(
        form,
        lambda width: write_explanation(found, width),
        lambda: serialize_explanation(found) if shape == "gitsched" or native is None else dict(native),
    )
