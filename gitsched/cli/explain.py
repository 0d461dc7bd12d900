"""gitsched explain: why a workload is placed on its clusters and not on others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import exit_codes, options, output
from gitsched.cli.worktree import NOT_PLANNED, note_uncommitted
from gitsched.decide.registry import policy_apis
from gitsched.model.finding import list_faults

if TYPE_CHECKING:
    from gitsched.model.explanation import ClusterExplanation, Explanation

_SHAPES = {api.name: api.native_explanation for api in policy_apis.values() if api.native_explanation}

SHORT_NAMES = {
    "cj": "CronJob",
    "cm": "ConfigMap",
    "crd": "CustomResourceDefinition",
    "deploy": "Deployment",
    "ds": "DaemonSet",
    "hpa": "HorizontalPodAutoscaler",
    "ing": "Ingress",
    "netpol": "NetworkPolicy",
    "ns": "Namespace",
    "pdb": "PodDisruptionBudget",
    "po": "Pod",
    "pvc": "PersistentVolumeClaim",
    "rs": "ReplicaSet",
    "sa": "ServiceAccount",
    "sts": "StatefulSet",
    "svc": "Service",
}
"""Short names as in kubectl."""
KINDS = (
    *SHORT_NAMES.values(),
    *("Job", "Secret", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
    *(kind for api in policy_apis.values() for kind in api.explained_kinds),
)


@click.command("explain")
@click.argument("workload", metavar="KIND/NAME")
@click.option("-n", "--namespace", metavar="NAMESPACE", help="Namespace of the workload.  [default: default]")
@click.option(
    "--why-not", metavar="CLUSTER", multiple=True, help="Only explain why this cluster is not selected, and what would select it."
)
@click.option("--revision", "--at", metavar="REVISION", help="Explain the result for this branch, tag or commit.")
@click.option("--worktree", is_flag=True, help="Explain the result for the files of the worktree.")
@options.RECORDED_METRICS
@options.SOURCE
@options.TARGET
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
    from gitsched.reconcile.explanation import explain_resource

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


def parse_workload(text: str, namespace: str | None) -> tuple[str, str, str]:
    """Return kind, namespace and name; without a namespace it is `default`."""
    parts = text.split("/")
    if len(parts) not in (2, 3) or not all(parts):
        raise click.UsageError(f"invalid workload {text!r}: expected KIND/NAME or KIND/NAMESPACE/NAME")
    if len(parts) == 3 and namespace not in (None, parts[1]):
        raise click.UsageError(f"-n {namespace} and {text!r} name different namespaces")
    return parse_kind(parts[0]), parts[1] if len(parts) == 3 else namespace or "default", parts[-1]


def parse_kind(text: str) -> str:
    """Return the kind, with its group if given, for a name as in kubectl: a kind, a plural or a short name, as in deployments.apps.

    Unknown names are returned unchanged.
    """
    name, dot, group = text.partition(".")
    lower = name.lower()
    return (_find_short_name(lower) or next((kind for kind in KINDS if lower in _list_spellings(kind)), name)) + dot + group


def _find_short_name(name: str) -> str | None:
    return SHORT_NAMES.get(name) or next((api.short_names[name] for api in policy_apis.values() if name in api.short_names), None)


def _list_spellings(kind: str) -> tuple[str, str]:
    singular = kind.lower()
    if singular.endswith("ss"):
        return singular, f"{singular}es"
    return singular, f"{singular[:-1]}ies" if singular.endswith("cy") else f"{singular}s"
