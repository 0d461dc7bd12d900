"""gitsched export: print the Flux and Argo CD objects that deliver the output branch, and decisions as kubectl patches for an API
server."""

from __future__ import annotations

from pathlib import Path

import click

from gitsched.apis.export import Export, ExportOption
from gitsched.apis.policy_api import PolicyAPI
from gitsched.cli import LazyCommand, options
from gitsched.cli.export_tenants import tenants
from gitsched.decide.registry import policy_apis

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
    cls=LazyCommand,
    module="export",
    function="print_flux",
    epilog=options.show_examples(
        ("For the Flux of one cluster", "export flux --cluster cloud-1 --url https://git.example.com/fleet.git"),
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
def flux() -> None:
    """Print the GitRepository and Kustomization of a cluster, to be applied in that cluster by its own Flux.

    The objects of different clusters have the same names: print them for one cluster, or write a file for each cluster.
    """


@click.command(
    "argocd",
    cls=LazyCommand,
    module="export",
    function="print_argocd",
    epilog=options.show_examples(
        ("For all clusters", "export argocd --url https://git.example.com/fleet.git"),
        ("For one cluster, in a project", "export argocd --cluster cloud-1 --project shop --url https://git.example.com/fleet.git"),
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
def argocd() -> None:
    """Print an ApplicationSet that creates an Application for each cluster, to be applied where Argo CD runs.

    Argo CD must know the clusters by the same names as gitsched. If the plan has Bundles with delivery argocd, a second object brings
    along the Application of each of them and each of its clusters.
    """


def make_export_command(api: PolicyAPI, export: Export) -> click.Command:
    """Return the command that prints the decisions of a policy API."""

    @click.command(
        api.name,
        cls=LazyCommand,
        module="export",
        function="print_decisions",
        given={"api": api.name, "export": export},
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
    def print_export() -> None:
        pass  # see LazyCommand

    return print_export


def _make_option(option: ExportOption) -> options.Decorator:
    name, parameter = f"--{option.name}", name_parameter(option)
    if option.flag:
        return click.option(name, parameter, is_flag=True, help=option.help)
    shown = bool(option.default)
    if option.choices:
        return click.option(
            name, parameter, type=click.Choice(option.choices), default=option.default, show_default=shown, help=option.help
        )
    return click.option(name, parameter, metavar=option.metavar, default=option.default, show_default=shown, help=option.help)


def name_parameter(option: ExportOption) -> str:
    return f"export_{option.name.replace('-', '_')}"


_EXPORTS = {api.name: (api, api.commands.export) for api in policy_apis.values() if api.commands.export is not None}
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
        return {"flux": flux, "argocd": argocd, "tenants": tenants}.get(name)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(CONSUMERS.items()))


@click.group("export", cls=ConsumerGroup)
def command() -> None:
    """Print objects and patches for other programs. Writes nothing to Git."""
