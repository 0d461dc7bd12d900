"""gitsched adopt: take over a running fleet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import exit_codes, options, output

if TYPE_CHECKING:
    from gitsched.reconcile.adoption.running_objects import ClusterInput


def _split_assignment(value: str, expected: str) -> tuple[str, str]:
    name, separator, rest = value.partition("=")
    if not (separator and name and rest):
        raise click.BadParameter(f"{value!r} is not of the form {expected}")
    return name, rest


def _read_clusters(_ctx: click.Context, _parameter: click.Parameter, value: tuple[str, ...]) -> tuple[ClusterInput, ...]:
    from gitsched.reconcile.adoption.running_objects import ClusterInput

    return tuple(ClusterInput(name, Path(path)) for name, path in (_split_assignment(text, "CLUSTER=PATH") for text in value))


def _read_contexts(_ctx: click.Context, _parameter: click.Parameter, value: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(_split_assignment(text if "=" in text else f"{text}={text}", "CLUSTER=CONTEXT") for text in value)


@click.command(
    "adopt",
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
def command(
    dumps: tuple[str, ...],
    directories: tuple[Path, ...],
    clusters: tuple[ClusterInput, ...],
    contexts: tuple[tuple[str, str], ...],
    kubeconfig: str,
    executable: str,
    timeout: float,
    not_running: tuple[str, ...],
    dry_run: bool,
    form: str,
    fail_on: exit_codes.FailOn,
    log_format: str,
    location: str,
    output_repository: str | None,
    **chosen: Any,
) -> int:
    """Take over a running fleet: commit an output branch that has everything where it runs, and report what the next run would move.

    Each DUMP is what `kubectl get rb,crb,works,placements,placementdecisions,manifestworks -A -o yaml` (or json) prints on a hub; `-` is
    standard input. Without a hub, give directories of clusters or contexts.
    """
    if not (dumps or directories or clusters or contexts):
        raise click.UsageError("say what runs: a DUMP, --directories, --cluster or --context")
    from gitsched.kubectl.client import KubectlOptions
    from gitsched.reconcile import RunSettings
    from gitsched.reconcile.adoption.running_fleet import AdoptionInputs, adopt
    from gitsched.report.adoption import AdoptionReport, serialize_adoption, write_adoption

    output.configure_logging(log_format)
    inputs = AdoptionInputs(
        dumps, directories, clusters, contexts, KubectlOptions("", kubeconfig, timeout, executable), not_running
    )
    settings = RunSettings(location=location, output=output_repository, observations="recorded", trusted=False, **chosen)
    with output.show_progress("Reading what runs"):
        result = adopt(settings, inputs, dry_run=dry_run)
    report = AdoptionReport(
        result.adoption,
        result.findings,
        result.source,
        result.branch,
        result.before or "",
        result.commit or "",
        result.changed,
        dry_run,
        result.objects,
    )
    output.show_as(form, lambda width: write_adoption(report, width), lambda: serialize_adoption(report))
    return exit_codes.get_run_code(result.findings, fail_on)
