"""Render the Helm charts of Bundles."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.build.chart_stability import is_error
from gitsched.build.commit_files import HIDDEN
from gitsched.model.finding import Finding, Location, Severity
from gitsched.reconcile.builds.build_context import BuildContext
from gitsched.reconcile.builds.charts import compare_helm, load_helm, render_charts
from gitsched.reconcile.bundles.bundle_files import DirectoryRequest, PrintedDocument, make_chart_request
from gitsched.reconcile.source.commit_tree import CommitTree


def render_bundle_charts(
    charts: Mapping[str, DirectoryRequest], commit: CommitTree, context: BuildContext, findings: list[Finding]
) -> tuple[dict[str, tuple[PrintedDocument, ...] | None], str]:
    """Return what charts render by the digest of their request, None for one that cannot be rendered; and the version of helm.

    Adds findings about charts.
    """
    cache = context.caches.open_builds()
    helm = load_helm(cache)
    findings += compare_helm(helm, context.record)
    rendered: dict[str, tuple[PrintedDocument, ...] | None] = {}
    requests = [make_chart_request(request) for request in charts.values()]
    for digest, result in zip(charts, render_charts(requests, commit, cache, helm), strict=True):
        failed = any(map(is_error, result.problems))
        rendered[digest] = None if failed else tuple(PrintedDocument(text, path) for text, path in result.objects)
        for problem in result.problems:
            if problem.code == HIDDEN:  # it is reported where the Bundle names the file
                continue
            severity: Severity = "error" if is_error(problem) else "warning"
            more = ". Not rendered, so that clusters keep what they have" if severity == "error" else ""
            location = Location(problem.path, problem.line, problem.column)
            finding = Finding(severity, problem.code, f"{problem.message}{more}", location)
            if finding not in findings:
                findings.append(finding)
    return rendered, helm.version
