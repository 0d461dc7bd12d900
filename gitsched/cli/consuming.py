"""gitsched export flux and argocd: the objects with which delivery tools take the output branch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import options, output

if TYPE_CHECKING:
    from gitsched.model.document import Body
    from gitsched.reconcile.delivery import Delivery

URL = click.option(
    "--url", metavar="URL", help="How delivery tools reach the repository with the output branch; its remote by default."
)
CLUSTER = click.option("--cluster", "clusters", metavar="NAME", multiple=True, help="Only this cluster; may be repeated.")


def _read_secret(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> str:
    return value or ""


@click.command("flux")
@CLUSTER
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write DIRECTORY/CLUSTER/NAME.yaml for every cluster instead of printing.",
)
@URL
@click.option("--name", metavar="NAME", help="What both objects are called; `placements` and `placed` by default.")
@click.option("--namespace", metavar="NAMESPACE", default="flux-system", show_default=True, help="Where the objects live.")
@click.option("--secret", "access", metavar="SECRET", callback=_read_secret, help="Credentials for the repository.")
@click.option(
    "--verify",
    "keys",
    metavar="SECRET",
    callback=_read_secret,
    help="Public keys: only signed commits are taken; `gitsched-keys` if the settings have commits signed.",
)
@options.SOURCE
@options.TARGET
@options.NOW
@options.FORMAT
@options.LOG
def flux(
    clusters: tuple[str, ...],
    directory: Path | None,
    url: str | None,
    name: str | None,
    namespace: str,
    access: str,
    keys: str,
    form: str,
    **chosen: Any,
) -> None:
    """Print GitRepository and Kustomization of a cluster, to be applied in it by its own Flux.

    The objects of different clusters have the same names, so they are printed for one cluster, or written to a file for each.
    """
    from gitsched.render.consumers import FluxChoice, flux_objects
    from gitsched.render.layout import segment

    found = _survey(url, clusters, chosen)
    keys = keys or ("gitsched-keys" if found.signed else "")
    choice = FluxChoice((name, name) if name else FluxChoice().names, namespace, access, keys)
    wanted = clusters or found.clusters
    if directory is not None:
        for cluster in wanted:
            place = directory / segment(cluster) / f"{choice.names[0]}.yaml"
            _write(place, _write_stream(flux_objects(found.branch, cluster, choice)))
        output.show(f"wrote {len(wanted)} file{'' if len(wanted) == 1 else 's'} to {directory}\n")
        return
    if len(wanted) != 1:
        known = f"there are {len(wanted)} clusters" if wanted else "there is no cluster yet"
        raise click.UsageError(f"{known}: name one with --cluster, or write a file for each with --directory")
    _show(flux_objects(found.branch, wanted[0], choice), form)


@click.command("argocd")
@CLUSTER
@URL
@click.option("--name", metavar="NAME", default="placed", show_default=True, help="What the ApplicationSet is called.")
@click.option("--namespace", metavar="NAMESPACE", default="argocd", show_default=True, help="Where it lives.")
@click.option("--project", metavar="PROJECT", default="default", show_default=True, help="The Applications' project.")
@click.option(
    "--generator",
    type=click.Choice(["files", "directories"]),
    default="files",
    show_default=True,
    help="Find clusters by their cluster.json, whose members templates can use, or by their directories.",
)
@options.SOURCE
@options.TARGET
@options.NOW
@options.FORMAT
@options.LOG
def argocd(
    clusters: tuple[str, ...], url: str | None, name: str, namespace: str, project: str, generator: Any, form: str, **chosen: Any
) -> None:
    """Print an ApplicationSet with an Application for each cluster, to be applied beside Argo CD.

    Clusters must be known to Argo CD by the names that they have here.
    """
    from gitsched.render.consumers import ArgoChoice, argocd_objects

    found = _survey(url, clusters, chosen)
    _show(argocd_objects(found.branch, clusters or None, ArgoChoice(name, namespace, project, generator)), form)


def _survey(url: str | None, clusters: Sequence[str], chosen: dict[str, Any]) -> Delivery:
    from gitsched.reconcile import Settings
    from gitsched.reconcile.delivery import survey

    output.start_log(chosen.pop("log_format"))
    with output.progress("Planning"):
        found = survey(Settings(output=chosen.pop("output_repository"), **chosen), url)
    unknown = sorted(set(clusters) - set(found.clusters))
    if unknown:
        raise click.UsageError(f"there is no cluster {', '.join(map(repr, unknown))}")
    return found


def _show(objects: list[Body], form: str) -> None:
    output.show_as(form, lambda _: _write_stream(objects), lambda: {"apiVersion": "v1", "kind": "List", "items": objects})


def _write_stream(objects: list[Body]) -> str:
    from gitsched.render.yaml import dump

    return "---\n".join(map(dump, objects))


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from error
