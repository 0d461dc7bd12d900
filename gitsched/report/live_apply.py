"""The result of `gitsched apply` as text and as an object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gitsched.model.document import Body
from gitsched.model.finding import format_count, format_names
from gitsched.model.merge_patch import ApplyReport, ApplyResult, MergePatch
from gitsched.report.lines import escape_unprintable

CONTENDED = "another writer replaced the value that gitsched had set: turn off the scheduler in the cluster, see the Knative page"
MAX_ITEMS = 8
"""Items of one value that a line shows."""


def format_apply(report: ApplyReport) -> str:
    """Return one line for each object that is not unchanged, and a line with the totals."""
    return "".join(f"{escape_unprintable(line)}\n" for line in (*list_events(report), _summarize(report)))


def list_events(report: ApplyReport) -> Iterator[str]:
    """Yield one line for each object that is not unchanged."""
    for record in report.refused:
        yield f"refused {record.target if record.target.name else 'a file'}: {record.reason}"
    for result in report.results:
        target, what = result.patch.target, _describe(result.patch)
        if result.state == "patched":
            yield f"{'would set' if report.dry_run else 'set'} {target}: {what}"
            if result.contended:
                yield f"warning: {target}: {CONTENDED}"
        elif result.state == "missing":
            yield f"missing {target}: the cluster has no such object; it is patched once it exists"
        elif result.state == "waiting":
            yield f"waiting {target}: {what}: {result.message}"
        elif result.state != "unchanged":
            yield f"failed {target}: {result.message}"


def make_apply_object(report: ApplyReport) -> Body:
    """Return the report as an ApplyReport object."""
    return {
        "apiVersion": "gitsched.io/v1alpha1",
        "kind": "ApplyReport",
        "commit": report.commit,
        "dryRun": report.dry_run,
        "results": [_make_result(result) for result in report.results],
        "refused": [{"target": record.target._asdict(), "reason": record.reason} for record in report.refused],
    }


def _make_result(result: ApplyResult) -> dict[str, Any]:
    patch = result.patch
    entry: dict[str, Any] = {
        "target": {"apiVersion": patch.api_version, **patch.target._asdict()},
        "subresource": patch.subresource,
        "patch": patch.body,
        "state": result.state,
    }
    if result.message:
        entry["message"] = result.message
    if result.contended:
        entry["contended"] = True
    return entry


def _summarize(report: ApplyReport) -> str:
    counts = {state: len(report.list_state(state)) for state in ("patched", "unchanged", "missing", "waiting")}
    failed = len(report.list_state("failed", "temporary"))
    verb = "would be set" if report.dry_run else "set"
    parts = [f"{format_count(counts['patched'], 'object')} {verb}", f"{counts['unchanged']} unchanged"]
    parts += [f"{counts[state]} {state}" for state in ("missing", "waiting") if counts[state]]
    parts += [f"{len(report.refused)} refused"] if report.refused else []
    parts += [f"{failed} failed"] if failed else []
    return f"commit {report.commit[:12]}: {', '.join(parts)}"


def _describe(patch: MergePatch) -> str:
    name, value = patch.path[-1], patch.value
    if not isinstance(value, list):
        return f"{name} {value}"
    items = [f"{entry.get('podName')} ({entry.get('vreplicas')})" for entry in value]
    return f"{name} {format_names(items, MAX_ITEMS) or 'none'}"
