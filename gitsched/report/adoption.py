"""The report of an adoption, as text and as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gitsched.model.adoption import AdoptedObject, Adoption
from gitsched.model.finding import Finding, format_names
from gitsched.named_tuples import NamedTuple
from gitsched.report.lines import abbreviate_oid, format_cluster, list_limited, serialize_replicas
from gitsched.report.serialization import API_VERSION, serialize_finding
from gitsched.report.text import write_findings

MAX_ROWS = 50
"""Objects of one group that the text lists."""
MAX_CLUSTERS = 6


class AdoptionReport(NamedTuple):
    """What a report is written from; `commit` is "" if nothing was written."""

    adoption: Adoption
    findings: tuple[Finding, ...]
    source: str
    branch: str
    before: str
    commit: str
    changed: bool
    dry_run: bool
    objects: int


def write_adoption(report: AdoptionReport, width: int) -> str:
    """Return the report as text."""
    text = "\n".join(_list_lines(report)) + "\n"
    return f"{text}\n{write_findings(report.findings, width)}" if report.findings else text


def _list_lines(report: AdoptionReport) -> Iterator[str]:
    adoption = report.adoption
    yield _describe_result(report)
    yield ""
    excluded = f", {len(adoption.excluded)} of them in a cluster that their policies exclude" if adoption.excluded else ""
    yield f"  {adoption.in_place} where they run{excluded}"
    yield f"  {len(adoption.moving)} that the policies place elsewhere: the next run moves them"
    for count, text in (
        (len(adoption.held), "kept where they run, because what is known about them is incomplete"),
        (len(adoption.unknown), "placed nowhere, because it is not known where they run"),
        (len(adoption.new), "that run nowhere: the next run places them"),
    ):
        if count:
            yield f"  {count} {text}"
    others = f"{len(adoption.unselected)} that no policy selects, and {len(adoption.foreign)} that the source does not have"
    yield f"  {others}: left as they are"
    groups: Iterable[tuple[str, tuple[AdoptedObject, ...]]] = (
        ("Would move", adoption.moving),
        ("Would go elsewhere if scheduled again, as `gitsched rebalance` requests it", adoption.excluded),
        ("Kept", adoption.held),
        ("Not known", adoption.unknown),
        ("New", adoption.new),
        ("Not selected by a policy", adoption.unselected),
        ("Not in the source", adoption.foreign),
    )
    for title, found in groups:
        if found:
            yield ""
            yield f"{title}:"
            elsewhere = "unknown" if found is adoption.unknown else "nowhere"
            yield from list_limited([_format_object(one, elsewhere) for one in found], MAX_ROWS, "  and {} more, see -o json")


def _describe_result(report: AdoptionReport) -> str:
    if report.dry_run:
        return f"Nothing was written. Without --dry-run, branch {report.branch} {'gets a commit' if report.changed else 'does not change'}."
    if report.commit:
        return f"Committed {abbreviate_oid(report.commit)} to branch {report.branch}, from commit {abbreviate_oid(report.source)}."
    return f"Branch {report.branch} has all of this already."


def _format_object(one: AdoptedObject, elsewhere: str) -> str:
    """Return a line about an object; `elsewhere` says where it runs if it runs in no known cluster."""
    places = _format_clusters(one.before) or elsewhere
    if one.after or one.reason:
        places = f"{places} -> {_format_clusters(one.after) or 'nowhere'}"
    return f"  {one.key}  {places}{f'  {one.reason}' if one.reason else ''}"


def _format_clusters(replicas: Mapping[str, int | None]) -> str:
    return format_names([format_cluster(name, count) for name, count in replicas.items()], MAX_CLUSTERS)


def serialize_adoption(report: AdoptionReport) -> dict[str, Any]:
    """Return the report as data."""
    adoption = report.adoption
    return {
        "apiVersion": API_VERSION,
        "kind": "Adoption",
        "branch": report.branch,
        "source": report.source,
        "before": report.before or None,
        "commit": report.commit or None,
        "changed": report.changed,
        "objectsRead": report.objects,
        "inPlace": adoption.in_place,
        "moving": list(map(_serialize_object, adoption.moving)),
        "held": list(map(_serialize_object, adoption.held)),
        "unknown": list(map(_serialize_object, adoption.unknown)),
        "new": list(map(_serialize_object, adoption.new)),
        "unselected": list(map(_serialize_object, adoption.unselected)),
        "foreign": list(map(_serialize_object, adoption.foreign)),
        "excluded": list(map(_serialize_object, adoption.excluded)),
        "findings": list(map(serialize_finding, report.findings)),
    }


def _serialize_object(one: AdoptedObject) -> dict[str, Any]:
    key = one.key
    return {
        "group": key.group,
        "kind": key.kind,
        "namespace": key.namespace,
        "name": key.name,
        "before": [{"cluster": name, **serialize_replicas(count)} for name, count in one.before.items()],
        "after": [{"cluster": name, **serialize_replicas(count)} for name, count in one.after.items()],
        "reason": one.reason,
    }
