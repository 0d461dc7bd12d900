"""gitsched export: print the Flux and Argo CD objects that deliver the output branch, and decisions as kubectl patches for an API
server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gitsched.apis.export import Export, ExportInput
from gitsched.cli import formats, output, reports
from gitsched.cli.export import name_parameter
from gitsched.model.finding import format_count, format_names
from gitsched.model.similar_names import suggest_names
from gitsched.model.urls import normalize_repository_url
from gitsched.reconcile import RunSettings, preview
from gitsched.reconcile.builds.delivery_source import DeliverySource, read_delivery_source
from gitsched.render.bundle_delivery.argocd import make_application_set, make_hub_application
from gitsched.render.delivery_tools import ArgoOptions, FluxOptions, make_argocd_objects, make_flux_objects
from gitsched.render.output_files import escape_segment
from gitsched.render.yaml import dump
from gitsched.report.lines import escape_unprintable

if TYPE_CHECKING:
    from gitsched.model.document import Body


def print_flux(
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
    names = (name, name) if name else FluxOptions().names
    found = _read_delivery(url, clusters, chosen, names)
    keys = keys or ("gitsched-keys" if found.signed else "")
    options = FluxOptions(names, namespace, access, keys, decryption)
    if not access:
        url = found.branch.url
        need = "needs" if normalize_repository_url(url).startswith("ssh:") else "needs for a private repository"
        click.echo(escape_unprintable(f"note: Flux {need} a Secret with credentials for {url}: name it with --secret"), err=True)
    selected = clusters or found.clusters
    if directory is not None:
        for cluster in selected:
            path = directory / escape_segment(cluster) / f"{options.names[0]}.yaml"
            text = _format_stream(make_flux_objects(found.branch, cluster, options))
            reports.write_file(path, text, make_directories=True)
        formats.show_text(f"wrote {format_count(len(selected), 'file')} to {directory}\n")
        return
    if len(selected) != 1:
        number = f"there are {len(selected)} clusters" if selected else "there is no cluster yet"
        raise click.UsageError(f"{number}: select one with --cluster, or write a file for each cluster with --directory")
    _print_objects(make_flux_objects(found.branch, selected[0], options), form)


def print_argocd(
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
    if clusters and bundles == "hub":
        raise click.UsageError("--bundles hub delivers the Applications of all clusters: omit --cluster")
    found = _read_delivery(url, clusters, chosen, (name, f"{name}-bundles"))
    selected = clusters or None
    objects = make_argocd_objects(found.branch, selected, ArgoOptions(name, namespace, project, generator))
    if found.has_applications:
        prune, title = found.prunes_applications, f"{name}-bundles"
        objects.append(
            make_application_set(found.branch, selected, title, namespace, prune)
            if bundles == "set"
            else make_hub_application(found.branch, title, namespace, project, prune)
        )
    _print_objects(objects, form)


def print_decisions(
    api: str,
    export: Export,
    worktree: bool,
    form: str,
    log_format: str,
    location: str,
    output_repository: str | None,
    **chosen: Any,
) -> None:
    if worktree and chosen["revision"] is not None:
        raise click.UsageError("--worktree and --revision exclude each other")

    output.configure_logging(log_format)
    values = {option.name: _format_value(chosen.pop(name_parameter(option))) for option in export.options}
    settings = RunSettings(location=location, worktree=worktree, output=output_repository, observations="recorded", **chosen)
    with output.show_progress("Planning") as progress:
        decisions = preview(settings._replace(progress=progress), complete=True).plan.decisions
    records = [record for engine in decisions.engines if engine.name == api for record in engine.records()]
    catalog = decisions.catalog
    result = export.make(ExportInput(records, catalog.api_documents, catalog.templates, decisions.outcomes, values))
    output.log_findings(result.findings)
    formats.show_document(form, result.text, lambda: result.document)


def _read_delivery(url: str | None, clusters: Sequence[str], chosen: dict[str, Any], own: Sequence[str]) -> DeliverySource:
    """Return what delivery tools need. Warn about those of the source that would delete what these objects take over, and say what has to
    be pushed."""
    output.configure_logging(chosen.pop("log_format"))
    with output.show_progress("Planning") as progress:
        found = read_delivery_source(RunSettings(progress=progress, output=chosen.pop("output_repository"), **chosen), url, own)
    unknown = sorted(set(clusters) - set(found.clusters))
    if unknown:
        others = suggest_names(unknown[0], found.clusters)
        raise click.UsageError(f"unknown cluster: {', '.join(map(repr, unknown))}{others}")
    if found.armed:
        named = format_names([*map(str, found.armed)])
        text = (
            f"warning: {format_count(len(found.armed), 'object')} of the source would delete what these objects take over: {named}. "
            "First set prune: false and suspend: true in Kustomizations, preserveResourcesOnDeletion: true in ApplicationSets, and "
            "remove automated and the finalizer from Applications; docs/cut-over.md has the order"
        )
        click.echo(escape_unprintable(text), err=True)
    if found.unpushed:
        click.echo(escape_unprintable(f"note: {found.unpushed}"), err=True)
    return found


def _print_objects(objects: list[Body], form: str) -> None:
    formats.show_document(form, _format_stream(objects), lambda: {"apiVersion": "v1", "kind": "List", "items": objects})


def _format_stream(objects: list[Body]) -> str:
    return "---\n".join(map(dump, objects))


def _format_value(value: str | bool) -> str:
    return value if isinstance(value, str) else "true" if value else ""
