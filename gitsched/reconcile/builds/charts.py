"""Render Helm charts of a commit: several at a time, each once for the files and values that it reads."""

from __future__ import annotations

from collections.abc import Sequence

from gitsched.build.builder import Builder
from gitsched.build.chart_files import ChartFiles, ChartRequest, resolve_chart
from gitsched.build.chart_stability import is_repeatable
from gitsched.build.commit_files import BuildProblem
from gitsched.build.helm import ChartResult, RenderedObject, compute_chart_key, find_helm, render_chart
from gitsched.build.process import EXPIRED
from gitsched.model.finding import Finding
from gitsched.reconcile.builds.build_runs import find_program, run_builds
from gitsched.reconcile.cache.build_cache import BuildCache
from gitsched.reconcile.source.commit_tree import CommitTree
from gitsched.render.run_metadata import RunMetadata


def render_charts(requests: Sequence[ChartRequest], commit: CommitTree, cache: BuildCache, helm: Builder) -> list[ChartResult]:
    """Return what each chart renders, in the order of the requests; a chart that cannot be rendered has a problem that is an error.

    Results are cached by all that they depend on. `helm` is that of `load_helm`.
    """
    charts = [resolve_chart(request, commit) for request in requests]
    keys = [compute_chart_key(chart, helm) for chart in charts]
    cache.load([key for key, chart in zip(keys, charts, strict=True) if not chart.problems])
    missing: dict[str, ChartFiles] = {
        key: chart for key, chart in zip(keys, charts, strict=True) if not chart.problems and cache.get(key) is None
    }
    blobs = {blob: commit.read_blob(blob) for chart in missing.values() for blob in chart.files.values()}
    done = run_builds(
        missing,
        lambda chart, limits: render_chart(chart, blobs, helm, limits),
        lambda result: any(EXPIRED in problem.message for problem in result.problems),
        cache,
    )
    for key, result in done.items():
        if all(map(is_repeatable, result.problems)):
            rows = [(rendered.text.decode("utf-8", "surrogateescape"), rendered.path) for rendered in result.objects]
            cache.put(key, [rows, result.problems])
    return [
        ChartResult((), chart.problems) if chart.problems else done.get(key) or _restore(*cache.get(key))
        for key, chart in zip(keys, charts, strict=True)
    ]


def load_helm(cache: BuildCache) -> Builder:
    """Find helm with the versions of executables that earlier runs have read. Raises Permanent if there is none."""
    return find_program(cache, find_helm)


def compare_helm(helm: Builder, record: RunMetadata | None) -> list[Finding]:
    """Return a finding if the last run rendered charts with another version, which may print other bytes for the same files."""
    before = record.builds.helm if record is not None else ""
    if before in ("", helm.version):
        return []
    text = f"rendered with {helm.version}, and the output branch with {before}: objects may differ although their charts do not"
    return [Finding("warning", "helm-version", text)]


def _restore(rows: Sequence[tuple[str, str]], problems: Sequence[tuple[str, str, str, int, int]]) -> ChartResult:
    objects = tuple(RenderedObject(text.encode("utf-8", "surrogateescape"), path) for text, path in rows)
    return ChartResult(objects, tuple(BuildProblem(*problem) for problem in problems))
