"""gitsched export tenants: print the ServiceAccounts, RBAC objects and AppProjects of tenants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import formats, output
from gitsched.reconcile import RunSettings
from gitsched.reconcile.tenants.tenant_rights import read_tenant_rights
from gitsched.render.tenant_objects import make_app_project, make_flux_account
from gitsched.render.yaml import dump

if TYPE_CHECKING:
    from gitsched.model.document import Body


def run(
    names: tuple[str, ...], tool: str, cluster: str | None, url: str | None, namespace: str | None, form: str, **chosen: Any
) -> None:
    """Carry out the command."""
    output.configure_logging(chosen.pop("log_format"))
    with output.show_progress("Planning"):
        found = read_tenant_rights(RunSettings(output=chosen.pop("output_repository"), **chosen), url)
    unknown = sorted(set(names) - {rights.name for rights in found.rights})
    if unknown:
        raise click.UsageError(f"unknown tenant: {', '.join(map(repr, unknown))}")
    selected = [
        rights for rights in found.rights if (not names or rights.name in names) and (cluster is None or cluster in rights.clusters)
    ]
    objects: list[Body] = []
    if tool == "flux":
        for rights in selected:
            objects += make_flux_account(rights, namespace or "flux-system")
    elif not found.url and selected:
        raise click.UsageError("the output has no URL that Argo CD can reach: set --url")
    else:
        objects += [make_app_project(rights, found.url, namespace or "argocd") for rights in selected]
    text = "---\n".join(map(dump, objects))
    formats.show_document(form, text, lambda: {"apiVersion": "v1", "kind": "List", "items": objects})
