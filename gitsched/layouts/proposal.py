"""Write the proposal for a layout: Bundles and settings as files, and the text that says what was recognized."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from gitsched.layouts.layout import NOT_BUILT, DeployedPath, Layout, LeftOut, ProposedBundle, Target
from gitsched.model.document import Body
from gitsched.model.finding import format_count, format_names
from gitsched.render.yaml import dump, quote

DIRECTORY: Final = "fleet"
"""The directory of the files that are proposed."""
BUNDLES: Final = f"{DIRECTORY}/bundles.yaml"
CLUSTERS: Final = f"{DIRECTORY}/clusters.yaml"
POLICIES: Final = f"{DIRECTORY}/policies.yaml"
ENVIRONMENT_LABEL: Final = "environment"
MAX_LISTED: Final = 8
"""Bundles and roots that the text lists."""
MAX_EXAMPLES: Final = 2
"""Directories that the text lists for each reason."""


def write_bundles(layout: Layout, annotations: Mapping[str, str], label: str = ENVIRONMENT_LABEL) -> str:
    """Return the Bundles of a layout, each with the annotations. `label` is the label of clusters that names their environment."""
    head = "# What is placed as one, and what each cluster gets of it: the first variant that selects it, else spec.path.\n"
    return head + "---\n".join(dump(_make_bundle(bundle, annotations, label)) for bundle in layout.bundles)


def _make_bundle(bundle: ProposedBundle, annotations: Mapping[str, str], label: str) -> Body:
    metadata = {"name": bundle.name, **({"annotations": dict(annotations)} if annotations else {})}
    spec: Body = {}
    for_all = next((variant for variant in bundle.variants if variant.target == Target()), None)
    if for_all is not None:
        spec["path"] = for_all.path
    if bundle.variants[0].kind == "helm":
        spec["helm"] = {"releaseName": bundle.name[:53], **(_make_values(for_all) if for_all is not None else {})}
    values = {name: _describe_value(bundle, name, clusters) for name, clusters in bundle.list_variables().items()}
    if values:
        spec["values"] = values
    variants = [_make_variant(variant, label) for variant in bundle.variants if variant is not for_all]
    if variants:
        spec["variants"] = variants
    return {"apiVersion": "gitsched.io/v1alpha1", "kind": "Bundle", "metadata": metadata, "spec": spec}


def _make_variant(variant: DeployedPath, label: str) -> Body:
    names, environment = variant.target.names, variant.target.environment
    clusters = {"names": list(names)} if names else {"matchLabels": {label: environment}}
    values = _make_values(variant)
    return {"path": variant.path, "clusters": clusters, **({"helm": values} if values else {})}


def _make_values(variant: DeployedPath) -> Body:
    """Return the options of a chart. A Bundle has the paths of its values files from the root of the repository."""
    files = [posixpath.normpath(posixpath.join(variant.path, name)) for name in variant.values_files]
    release = {"releaseName": variant.release.name, "namespace": variant.release.namespace}
    own = {"values": json.loads(variant.release.values)} if variant.release.values else {}
    return {**{name: text for name, text in release.items() if text}, **({"valuesFiles": files} if files else {}), **own}


def _describe_value(bundle: ProposedBundle, name: str, values: Mapping[str, str]) -> str:
    """Return the value of a variable in a Bundle: the text, or where clusters differ, the annotation of `list_cluster_metadata`."""
    texts = set(values.values())
    return texts.pop() if len(texts) == 1 else f"cluster.annotations.{_make_annotation(bundle, name)}"


def _list_annotations(layout: Layout) -> dict[str, dict[str, str]]:
    """Return the annotations of clusters with the values of variables in which they differ."""
    found: dict[str, dict[str, str]] = {}
    for bundle in layout.bundles:
        for name, values in bundle.list_variables().items():
            for cluster, value in values.items() if len(set(values.values())) > 1 else ():
                found.setdefault(cluster, {})[_make_annotation(bundle, name)] = value
    return found


def list_cluster_metadata(layout: Layout, label: str, described: Collection[str]) -> dict[str, Body]:
    """Return the labels and annotations of the clusters without documents, by name."""
    annotations = _list_annotations(layout)
    found: dict[str, Body] = {}
    for name, environment in layout.clusters.items():
        if name not in described:
            metadata = {"labels": {label: environment} if environment else {}, "annotations": annotations.get(name, {})}
            found[name] = {field: values for field, values in metadata.items() if values}
    return found


def _make_annotation(bundle: ProposedBundle, name: str) -> str:
    return f"{bundle.name}.{name}"


def write_source_settings(layout: Layout, hidden: bool) -> str:
    """Return the section `source` of gitsched.yaml; "" for the defaults. `hidden`: .sourceignore hides the files that are proposed."""
    lines: list[str] = []
    if hidden:
        lines += ["    ignore:", f'      - "!/{DIRECTORY}/" # .sourceignore hides it from Flux, and gitsched reads the same file']
    if layout.build:
        text = "objects are as kustomize builds them; policies select them one by one"
        text = "they change documents of Flux" if layout.bundles else text
        lines += ["    kustomize:", f"      build: # {text}"]
        lines += [f"        - {quote(path)}" for path in layout.build]
    if layout.rules:
        lines += ["    variants: # which documents of the delivery tool count for which cluster"]
        for rule in layout.rules:
            lines += [f"      - path: {quote(rule.directory)}", f"        clusters: {{names: [{quote(rule.cluster)}]}}"]
    if layout.hidden_documents:
        lines += [
            "    deliveryTools:",
            "      ignore: # hidden directories: their documents build nothing",
        ]
        lines += [f"        - {quote(f'/{path}/')}" for path in layout.hidden_documents]
    return "\n".join(["  source:", *lines]) + "\n" if lines else ""


def describe_layout(layout: Layout) -> str:
    """Return what was recognized and why, what is proposed, and what is left out."""
    lines = [f"Recognized {recognition.layout}: {recognition.reason}." for recognition in layout.recognitions]
    if layout.bundles:
        lines += ["", f"{format_count(len(layout.bundles), 'bundle')}:"]
        lines += [f"  {bundle.name}: {_describe_variants(bundle)}" for bundle in layout.bundles[:MAX_LISTED]]
        lines += _count_more(len(layout.bundles), BUNDLES)
    if layout.invented:
        names = format_names(list(layout.clusters), MAX_LISTED)
        text = f"No file names a cluster, so that {CLUSTERS} has one for each environment in the names of files: {names}"
        lines += ["", text]
    if layout.build:
        reason = (
            "they change documents of Flux, and none names them" if layout.bundles else "nothing in them differs between clusters"
        )
        lines += ["", f"Built by kustomize (source.kustomize.build), because {reason}:"]
        lines += [f"  {path}" for path in layout.build[:MAX_LISTED]]
        lines += _count_more(len(layout.build), "gitsched.yaml")
    if layout.rules:
        text = "Documents build directories differently for each cluster (source.variants):"
        lines += ["", text, *(f"  {rule.directory} for {rule.cluster}" for rule in layout.rules[:MAX_LISTED])]
        lines += _count_more(len(layout.rules), "gitsched.yaml")
    if layout.hidden_documents:
        lines += ["", "Not read for what is built (source.deliveryTools.ignore), because they are hidden:"]
        lines += [f"  {path}" for path in layout.hidden_documents[:MAX_LISTED]]
        lines += _count_more(len(layout.hidden_documents), "gitsched.yaml")
    lines += _describe_left_out(layout)
    lines += _describe_lost_settings(layout)
    return "\n".join(lines)


def _describe_left_out(layout: Layout) -> Iterator[str]:
    """Yield what is not proposed: one line for each reason, with the first places."""
    by_reason: dict[str, list[LeftOut]] = {}
    for entry in layout.left_out:
        by_reason.setdefault(entry.reason, []).append(entry)
    if by_reason:
        yield from ("", "Left out:")
    for reason, entries in by_reason.items():
        noun = ("source",) if reason == NOT_BUILT else ("directory", "directories")
        yield f"  {format_count(len(entries), *noun)}: {reason}"
        yield from (f"    {entry.place}{f': {entry.detail}' if entry.detail else ''}" for entry in entries[:MAX_EXAMPLES])
        if len(entries) > MAX_EXAMPLES:
            yield f"    and {len(entries) - MAX_EXAMPLES} more"
    choice = next((entry.place for reason, entries in by_reason.items() if "--cluster" in reason for entry in entries), "")
    if choice:
        directory = posixpath.dirname(choice) if choice.rpartition(":")[2].isdigit() else choice
        yield f"  To look at what a choice proposes: gitsched init --dry-run --cluster {directory or 'DIR'}=NAME"


def _describe_lost_settings(layout: Layout) -> Iterator[str]:
    """Yield the settings of documents of delivery tools that nothing takes over, each with the documents that have it."""
    places: dict[str, dict[str, None]] = {}
    for entry in (entry for bundle in layout.bundles for variant in bundle.variants for entry in variant.lost_settings):
        places.setdefault(entry.reason, {})[entry.place] = None
    if places:
        yield from ("", "Not taken over: gitsched export writes one object for each cluster, with other values or none of")
    yield from (f"  {field}: {format_names(list(named), MAX_LISTED)}" for field, named in sorted(places.items()))


def _describe_variants(bundle: ProposedBundle) -> str:
    shown = [f"{variant.path}{__describe_values(variant)} for {_describe_target(variant)}" for variant in bundle.variants[:3]]
    more = len(bundle.variants) - len(shown)
    return "; ".join(shown) + (f"; {more} more" if more > 0 else "")


def __describe_values(variant: DeployedPath) -> str:
    return f" with {', '.join(variant.values_files)}" if variant.values_files else ""


def _describe_target(variant: DeployedPath) -> str:
    names, environment = variant.target.names, variant.target.environment
    return ", ".join(names) if names else f"{ENVIRONMENT_LABEL}={environment}" if environment else "all clusters"


def _count_more(total: int, place: str = "") -> list[str]:
    where = f", see {place}" if place else ""
    return [f"  and {total - MAX_LISTED} more{where}"] if total > MAX_LISTED else []
