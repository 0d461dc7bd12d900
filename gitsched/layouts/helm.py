"""Recognize Helm charts, and values files for an environment or a cluster each."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Mapping

from gitsched.layouts.layout import DeployedPath, Findings, LeftOut, Recognition, Target
from gitsched.layouts.overlay_names import ENVIRONMENTS, is_base, names_place
from gitsched.layouts.repository_files import CHART, RepositoryFiles, normalize_path
from gitsched.model.document import get_field
from gitsched.model.finding import format_count

_VALUES = re.compile(r"values[-_.](?P<after>[\w.-]+)\.ya?ml|(?P<before>[\w.-]+)[-_.]values\.ya?ml")
_DIRECTORIES = ("values", "environments", "envs")
_UNCLEAR = (
    "a values file may be for a cluster, or for another purpose: if it is for a cluster, add a variant to the Bundle of the chart"
)
_LIBRARY = re.compile(rb"^type:[ \t]*[\"']?library\b", re.MULTILINE)


def recognize_charts(files: RepositoryFiles, known_clusters: Collection[str]) -> Findings:
    """Return the charts. Values files such as values-production.yaml, beside the chart's own, are variants; libraries are left out."""
    charts = [chart for chart in files.charts if not (is_base(chart) or _is_library(files, chart) or _is_part(files, chart))]
    if not charts:
        return Findings()
    variants, left_out = _choose_variants({chart: _find_values_files(files, chart) for chart in charts}, known_clusters)
    deployed: list[DeployedPath] = []
    for chart in charts:
        own = {} if files.find_cluster(chart)[1] else variants[chart]
        for name, path in own.items():
            target = Target((name,)) if name in known_clusters or name not in ENVIRONMENTS else Target(environment=name)
            deployed.append(DeployedPath(chart, target, chart, "helm", (path,)))
        if not own:
            deployed.append(DeployedPath(chart, Target(), chart, "helm"))
    with_values = sum(bool(entry.values_files) for entry in deployed)
    values = (
        f"; {with_values} values files, such as {next(e.values_files[0] for e in deployed if e.values_files)}"
        if with_values
        else ""
    )
    text = f"{format_count(len(charts), 'chart')}, such as {charts[0]}{values}"
    named = {name: "" for entry in deployed for name in entry.target.names}
    return Findings((Recognition("Helm charts", text),), tuple(deployed), named, tuple(left_out))


def _choose_variants(
    found: Mapping[str, Mapping[str, str]], known_clusters: Collection[str]
) -> tuple[dict[str, dict[str, str]], list[LeftOut]]:
    """Return the values files of charts that are for environments or clusters, by their names, and what is left out. Others may be for one
    purpose, as values-minimal.yaml."""
    counts = Counter(name for variants in found.values() for name in variants)
    clear = {name for name, count in counts.items() if name in known_clusters or count > 1 or names_place(name)} | ENVIRONMENTS
    variants = {chart: {name: path for name, path in files.items() if name in clear} for chart, files in found.items()}
    return variants, [
        LeftOut(chart, _UNCLEAR, path)
        for chart, files in found.items()
        for name, path in files.items()
        if name not in clear and variants[chart]
    ]


def _is_library(files: RepositoryFiles, chart: str) -> bool:
    return bool(_LIBRARY.search(files.files[posixpath.normpath(posixpath.join(chart, CHART))]))


def _is_part(files: RepositoryFiles, chart: str) -> bool:
    """Return whether kustomize or Flux renders a chart: a kustomization above it has helmCharts, or a HelmRelease names it."""
    above = {directory for directory in files.kustomizations if f"{chart}/".startswith(f"{directory}/") or directory == "."}
    if any(files.kustomizations[directory][1].helm or files.kustomizations[directory][1].charts for directory in above):
        return True
    releases = files.list_documents("helm.toolkit.fluxcd.io", "HelmRelease")
    return any(normalize_path(str(get_field(release.body, "spec", "chart", "spec", "chart"))) == chart for release in releases)


def _find_values_files(files: RepositoryFiles, chart: str) -> dict[str, str]:
    """Return the values files of a chart by the environment or cluster in their names; the paths are from the chart."""
    found: dict[str, str] = {}
    for path in files.list_files(chart):
        match = _VALUES.fullmatch(posixpath.basename(path))
        if match:
            found[match["after"] or match["before"]] = posixpath.basename(path)
    for name in _DIRECTORIES:
        for path in files.list_files(posixpath.join(chart, name) if chart != "." else name):
            stem, suffix = posixpath.splitext(posixpath.basename(path))
            if suffix in (".yaml", ".yml"):
                found.setdefault(stem, f"{name}/{posixpath.basename(path)}")
    return found
