"""gitsched export: print the Flux and Argo CD objects that deliver the output branch, and decisions as kubectl patches for an API
server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gitsched.apis.export import Export, ExportInput, ExportOption
from gitsched.apis.policy_api import PolicyAPI
from gitsched.cli import options, output
from gitsched.decide.registry import policy_apis
from gitsched.model.finding import format_count

if TYPE_CHECKING:
    from gitsched.model.document import Body
    from gitsched.reconcile.builds.delivery_source import DeliverySource


URL_OPTION = click.option(
    "--url", metavar="URL", help="URL under which delivery tools reach the output repository; the URL of its remote by default."
)
CLUSTER_OPTION = click.option(
    "--cluster",
    "clusters",
    metavar="NAME",
    multiple=True,
    shell_complete=options.complete_with("clusters"),
    help="Only this cluster; may be repeated.",
)


def _read_secret_name(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> str:
    return value or ""


@click.command(
    "flux",
    epilog=options.show_examples(
        ("For the Flux of one cluster", "export flux --cluster cloud-1"),
        ("A file for each cluster", "export flux --directory flux --url https://git.example.com/fleet.git"),
    ),
)
@CLUSTER_OPTION
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write DIRECTORY/CLUSTER/NAME.yaml for each cluster instead of printing to stdout.",
)
@URL_OPTION
@click.option("--name", metavar="NAME", help="Name of both objects; `placements` and `placed` by default.")
@click.option("--namespace", metavar="NAMESPACE", default="flux-system", show_default=True, help="Namespace of the objects.")
@click.option(
    "--secret", "access", metavar="SECRET", callback=_read_secret_name, help="Secret with credentials for the repository."
)
@click.option(
    "--verify",
    "keys",
    metavar="SECRET",
    callback=_read_secret_name,
    help="Secret with public keys; Flux then accepts only signed commits. `gitsched-keys` by default if commits are signed.",
)
@click.option(
    "--decryption",
    metavar="SECRET",
    callback=_read_secret_name,
    help="Secret with the private keys of SOPS; Flux then decrypts the manifests that SOPS encrypted.",
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
    decryption: str,
    form: str,
    **chosen: Any,
) -> None:
    """Print the GitRepository and Kustomization of a cluster, to be applied in that cluster by its own Flux.

    The objects of different clusters have the same names: print them for one cluster, or write a file for each cluster.
    """
    from gitsched.render.delivery_tools import FluxOptions, make_flux_objects
    from gitsched.render.output_files import escape_segment

    found = _read_delivery(url, clusters, chosen)
    keys = keys or ("gitsched-keys" if found.signed else "")
    options = FluxOptions((name, name) if name else FluxOptions().names, namespace, access, keys, decryption)
    selected = clusters or found.clusters
    if directory is not None:
        for cluster in selected:
            path = directory / escape_segment(cluster) / f"{options.names[0]}.yaml"
            text = _format_stream(make_flux_objects(found.branch, cluster, options))
            output.write_file(path, text, make_directories=True)
        output.show_text(f"wrote {format_count(len(selected), 'file')} to {directory}\n")
        return
    if len(selected) != 1:
        number = f"there are {len(selected)} clusters" if selected else "there is no cluster yet"
        raise click.UsageError(f"{number}: select one with --cluster, or write a file for each cluster with --directory")
    _print_objects(make_flux_objects(found.branch, selected[0], options), form)


@click.command(
    "argocd",
    epilog=options.show_examples(
        ("For all clusters", "export argocd"),
        ("For some clusters, in a project", "export argocd --cluster cloud-1 --cluster cloud-2 --project shop"),
    ),
)
@CLUSTER_OPTION
@URL_OPTION
@click.option("--name", metavar="NAME", default="placed", show_default=True, help="Name of the ApplicationSet.")
@click.option("--namespace", metavar="NAMESPACE", default="argocd", show_default=True, help="Namespace of the ApplicationSet.")
@click.option("--project", metavar="PROJECT", default="default", show_default=True, help="Project of the Applications.")
@click.option(
    "--generator",
    type=click.Choice(["files", "directories"]),
    default="files",
    show_default=True,
    help="Generate from cluster.json files, whose members are template parameters, or from directories.",
)
@click.option(
    "--bundles",
    type=click.Choice(["set", "hub"]),
    default="set",
    show_default=True,
    help="How the Applications of Bundles get to Argo CD: an ApplicationSet creates them, or one Application delivers the directory "
    "hub/argocd.",
)
@options.SOURCE
@options.TARGET
@options.NOW
@options.FORMAT
@options.LOG
def argocd(
    clusters: tuple[str, ...],
    url: str | None,
    name: str,
    namespace: str,
    project: str,
    generator: Any,
    bundles: str,
    form: str,
    **chosen: Any,
) -> None:
    """Print an ApplicationSet that creates an Application for each cluster, to be applied where Argo CD runs.

    Argo CD must know the clusters by the same names as gitsched. If the plan has Bundles with delivery argocd, a second object brings
    along the Application of each of them and each of its clusters.
    """
    from gitsched.render.delivery_tools import ArgoOptions, make_argocd_objects

    if clusters and bundles == "hub":
        raise click.UsageError("--bundles hub delivers the Applications of all clusters: omit --cluster")
    found = _read_delivery(url, clusters, chosen)
    selected = clusters or None
    objects = make_argocd_objects(found.branch, selected, ArgoOptions(name, namespace, project, generator))
    if found.has_applications:
        from gitsched.render.bundle_delivery.argocd import make_application_set, make_hub_application

        prune, title = found.prunes_applications, f"{name}-bundles"
        objects.append(
            make_application_set(found.branch, selected, title, namespace, prune)
            if bundles == "set"
            else make_hub_application(found.branch, title, namespace, project, prune)
        )
    _print_objects(objects, form)


def _read_delivery(url: str | None, clusters: Sequence[str], chosen: dict[str, Any]) -> DeliverySource:
    from gitsched.reconcile import RunSettings
    from gitsched.reconcile.builds.delivery_source import read_delivery_source

    output.configure_logging(chosen.pop("log_format"))
    with output.show_progress("Planning") as progress:
        found = read_delivery_source(RunSettings(progress=progress, output=chosen.pop("output_repository"), **chosen), url)
    unknown = sorted(set(clusters) - set(found.clusters))
    if unknown:
        raise click.UsageError(f"unknown cluster: {', '.join(map(repr, unknown))}")
    return found


def _print_objects(objects: list[Body], form: str) -> None:
    output.show_document(form, _format_stream(objects), lambda: {"apiVersion": "v1", "kind": "List", "items": objects})


def _format_stream(objects: list[Body]) -> str:
    from gitsched.render.yaml import dump

    return "---\n".join(map(dump, objects))


def make_export_command(api: PolicyAPI, export: Export) -> click.Command:
    """Return the command that prints the decisions of a policy API."""

    @click.command(
        api.name,
        help=export.description,
        epilog=options.show_examples(
            ("The result for the last commit", f"export {api.name}"),
            ("The result for the files of the worktree", f"export {api.name} --worktree"),
        ),
    )
    @options.combine(*map(_make_option, export.options))
    @click.option(
        "--revision",
        metavar="REVISION",
        shell_complete=options.complete_with("revisions"),
        help="Export the result for this branch, tag or commit.",
    )
    @click.option("--worktree", is_flag=True, help="Export the result for the files of the worktree.")
    @options.SOURCE
    @options.TARGET
    @options.NOW
    @options.FORMAT
    @options.LOG
    def print_export(
        worktree: bool, form: str, log_format: str, location: str, output_repository: str | None, **chosen: Any
    ) -> None:
        if worktree and chosen["revision"] is not None:
            raise click.UsageError("--worktree and --revision exclude each other")
        from gitsched.reconcile import RunSettings, preview

        output.configure_logging(log_format)
        values = {option.name: _format_value(chosen.pop(_parameter_name(option))) for option in export.options}
        settings = RunSettings(location=location, worktree=worktree, output=output_repository, observations="recorded", **chosen)
        with output.show_progress("Planning") as progress:
            decisions = preview(settings._replace(progress=progress), complete=True).plan.decisions
        records = [record for engine in decisions.engines if engine.name == api.name for record in engine.records()]
        catalog = decisions.catalog
        result = export.make(ExportInput(records, catalog.api_documents, catalog.templates, decisions.outcomes, values))
        output.log_findings(result.findings)
        output.show_document(form, result.text, lambda: result.document)

    return print_export


def _make_option(option: ExportOption) -> options.Decorator:
    name, parameter = f"--{option.name}", _parameter_name(option)
    if option.flag:
        return click.option(name, parameter, is_flag=True, help=option.help)
    shown = bool(option.default)
    if option.choices:
        return click.option(
            name, parameter, type=click.Choice(option.choices), default=option.default, show_default=shown, help=option.help
        )
    return click.option(name, parameter, metavar=option.metavar, default=option.default, show_default=shown, help=option.help)


def _parameter_name(option: ExportOption) -> str:
    return f"export_{option.name.replace('-', '_')}"


def _format_value(value: str | bool) -> str:
    return value if isinstance(value, str) else "true" if value else ""


_EXPORTS = {api.name: (api, api.export) for api in policy_apis.values() if api.export is not None}
CONSUMERS = {
    "flux": "Print the Flux objects that deliver the directory of a cluster.",
    "argocd": "Print the Argo CD ApplicationSets that deliver all directories and Bundles.",
    "tenants": "Print the ServiceAccounts and AppProjects of tenants.",
    **{name: export.summary for name, (_, export) in _EXPORTS.items()},
}


class ConsumerGroup(click.Group):
    """A group with one command for each consumer."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(CONSUMERS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name in _EXPORTS:
            return make_export_command(*_EXPORTS[name])
        if name == "tenants":
            from gitsched.cli.export_tenants import tenants  # few sources have tenants

            return tenants
        return {"flux": flux, "argocd": argocd}.get(name)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(CONSUMERS.items()))


@click.group("export", cls=ConsumerGroup)
def command() -> None:
    """Print objects and patches for other programs. Writes nothing to Git."""
