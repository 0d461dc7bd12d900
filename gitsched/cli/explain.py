"""gitsched explain: why a workload is placed on its clusters and not on others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import options, output
from gitsched.decide.registry import policy_apis

if TYPE_CHECKING:
    from gitsched.model.explanation import ClusterExplanation, Explanation

_SHAPES = {api.name: api.native_explanation for api in policy_apis() if api.native_explanation}

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
"""Short names of kubectl."""
KINDS = (
    *SHORT_NAMES.values(),
    *("Job", "Secret", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
    *(kind for api in policy_apis() for kind in api.explained_kinds),
)


@click.command("explain")
@click.argument("workload", metavar="KIND/NAME")
@click.option("-n", "--namespace", metavar="NAMESPACE", help="Namespace of the workload; `default` by default.")
@click.option(
    "--why-not", metavar="CLUSTER", multiple=True, help="Only say what is against this cluster, and what would change that."
)
@click.option("--revision", "--at", metavar="REVISION", help="Explain at this branch, tag or commit.")
@click.option("--worktree", is_flag=True, help="Explain the files as they lie in the worktree.")
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
    help="; ".join(("What -o json and -o yaml are shaped like", *(f"{name}: {text}" for name, text in _SHAPES.items()))) + ".",
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
) -> None:
    """Say which policy a workload has and why, which groups were tried, what is against each cluster, how replicas are divided.

    KIND may be written as for kubectl (deploy, deployments, Deployment); KIND/NAMESPACE/NAME does without -n. For cluster/NAME (a
    ManagedCluster, too): what runs there, what room is left, and why not more.
    """
    kind, space, name = parse_workload(workload, namespace)
    if worktree and chosen["revision"] is not None:
        raise click.UsageError("--worktree and --revision exclude each other")
    if shape != "gitsched" and form in ("text", "markdown"):
        raise click.UsageError(f"--format {shape} needs -o json or -o yaml")
    from gitsched.model.explanation import ClusterExplanation
    from gitsched.reconcile import RunSettings
    from gitsched.reconcile.explanation import explain_resource

    output.configure_logging(log_format)
    settings = RunSettings(location=location, worktree=worktree, output=output_repository, trusted=False, **chosen)
    with output.show_progress("Planning"):
        found = explain_resource(settings, kind, space, name, why_not)
    if isinstance(found, ClusterExplanation):
        _show_cluster(found, form)
    else:
        _show_workload(found, form, shape)


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
    """Kind, namespace and name; the namespace is `default` where nobody gave one."""
    parts = text.split("/")
    if len(parts) not in (2, 3) or not all(parts):
        raise click.UsageError(f"{text!r} is neither KIND/NAME nor KIND/NAMESPACE/NAME")
    if len(parts) == 3 and namespace not in (None, parts[1]):
        raise click.UsageError(f"-n {namespace} and {text!r} name two namespaces")
    return parse_kind(parts[0]), parts[1] if len(parts) == 3 else namespace or "default", parts[-1]


def parse_kind(text: str) -> str:
    """A kind, with its group (deployments.apps) if there is one, from how kubectl lets people write it.

    What is not Kubernetes' own is passed on as it is.
    """
    word, dot, group = text.partition(".")
    low = word.lower()
    return (_find_short_name(low) or next((kind for kind in KINDS if low in _list_spellings(kind)), word)) + dot + group


def _find_short_name(word: str) -> str | None:
    return SHORT_NAMES.get(word) or next((api.short_names[word] for api in policy_apis() if word in api.short_names), None)


def _list_spellings(kind: str) -> tuple[str, str]:
    word = kind.lower()
    plural = f"{word}es" if word.endswith("ss") else f"{word[:-1]}ies" if word.endswith("cy") else f"{word}s"
    return word, plural
