"""gitsched export tenants: print the ServiceAccounts, RBAC objects and AppProjects of tenants."""

from __future__ import annotations

import click

from gitsched.cli import LazyCommand, options


@click.command(
    "tenants",
    cls=LazyCommand,
    module="export_tenants",
    epilog=options.show_examples(
        ("ServiceAccounts of all tenants for Flux in one cluster", "export tenants --for flux --cluster cloud-1"),
        ("The AppProject of one tenant for Argo CD", "export tenants shop --for argocd --url https://git.example.com/fleet.git"),
    ),
)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--for",
    "tool",
    type=click.Choice(["flux", "argocd"]),
    required=True,
    help="flux: a ServiceAccount with RBAC for each cluster. argocd: an AppProject where Argo CD runs.",
)
@click.option("--cluster", metavar="NAME", help="Only tenants that may use this cluster.")
@click.option(
    "--url", metavar="URL", help="URL under which Argo CD reaches the output repository; the URL of its remote by default."
)
@click.option(
    "--namespace", metavar="NAMESPACE", help="Namespace of the ServiceAccounts (flux-system) or AppProjects (argocd) by default."
)
@options.SOURCE
@options.TARGET
@options.NOW
@options.FORMAT
@options.LOG
def tenants() -> None:
    """Print what gives the delivery tools of tenants no more rights than their Tenants; of all tenants if no NAME is given."""
