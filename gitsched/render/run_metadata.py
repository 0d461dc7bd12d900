"""Metadata of a run: gitsched.json (its inputs and findings, for replay), hydrator.metadata, .gitattributes, README.md (a bounded
summary with untrusted text escaped) and the message of the output commit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from gitsched.model.document import as_object, list_objects
from gitsched.model.errors import Permanent
from gitsched.model.finding import SEVERITIES, Finding, Location, Severity
from gitsched.model.markdown import format_code, format_code_cells, format_text
from gitsched.model.planned_files import NewBlob
from gitsched.model.time import EPOCH, format_time, parse_time
from gitsched.model.urls import strip_credentials
from gitsched.render.output_files import RUN_METADATA

if TYPE_CHECKING:
    from gitsched.model.changes import RetainedCopy
    from gitsched.model.rollouts import RolloutRecord
    from gitsched.render.readme_content import DecisionRow, FleetRow, HeldRow, ReadmeContent, RecordedRow

FORMAT_VERSION: Final = 1

GITATTRIBUTES: Final = NewBlob(b"* linguist-generated=true gitlab-generated\n")
""".gitattributes: GitHub and GitLab collapse the diffs of generated files and exclude them from statistics."""


class BuildRecord(NamedTuple):
    """How kustomize roots were built: the program with its version, or "" if there are none; and for each root that cannot be built the
    source commit whose objects are used instead. `helm` is helm with its version, or "" if no chart is rendered."""

    builder: str = ""
    kept: Mapping[str, str] = {}
    helm: str = ""


NOTHING_BUILT = BuildRecord()


class RunMetadata(NamedTuple):
    """The content of gitsched.json.

    `source` and `source_tree` are Git object ids in hex; `observations` maps the name of an observation to its value (JSON).
    `observed_at` is the time of the observations, None if there are none. `retiring` maps a cluster without document that still has a
    directory to the time since when it has had no document. `facts` are the commits of the facts branches by branch.
    `builds` says how kustomize roots were built. `kept_files` maps each broken file to the source commit whose version of it is used.
    `workloads` counts the workloads by state; None in a file of a gitsched that did not count them. `retained` are copies that the output
    has only for an overlap. `guard` is as `gitsched.decide.guard_settings` writes it. `tenants` are the Tenants that the next run trusts.
    `rollouts` are those that are not complete.
    `adopted` says why objects that gitsched took over keep their placement, by key as text.
    """

    source: str
    version: str
    time: datetime = EPOCH
    source_tree: str = ""
    observations: Mapping[str, Any] = {}
    observed_at: datetime | None = None
    findings: Sequence[Finding] = ()
    next_wakeup: datetime | None = None
    input_digest: str = ""
    retiring: Mapping[str, datetime] = {}
    facts: Mapping[str, str] = {}
    builds: BuildRecord = NOTHING_BUILT
    kept_files: Mapping[str, str] = {}
    workloads: Mapping[str, int] | None = None
    retained: tuple[RetainedCopy, ...] = ()
    guard: Mapping[str, Any] = {}
    rollouts: tuple[RolloutRecord, ...] = ()
    adopted: Mapping[str, str] = {}
    tenants: tuple[Mapping[str, Any], ...] = ()


def write_run_metadata(value: RunMetadata) -> NewBlob:
    """Return canonical JSON: ASCII, sorted members, a line for each entry of an object or a list."""
    members = {
        "findings": [_write_finding(finding) for finding in value.findings],
        "formatVersion": FORMAT_VERSION,
        "inputDigest": value.input_digest,
        "nextWakeup": format_time(value.next_wakeup) if value.next_wakeup else None,
        "observations": dict(value.observations),
        "observedAt": format_time(value.observed_at) if value.observed_at else None,
        "retiring": {name: format_time(since) for name, since in value.retiring.items()},
        "source": value.source,
        "sourceTree": value.source_tree,
        "time": format_time(value.time),
        "version": value.version,
    }
    if value.facts:
        members["facts"] = dict(value.facts)
    if value.builds.builder:
        members["builder"] = value.builds.builder
    if value.builds.helm:
        members["helm"] = value.builds.helm
    if value.builds.kept:
        members["keptRoots"] = dict(value.builds.kept)
    if value.kept_files:
        members["keptFiles"] = dict(value.kept_files)
    if value.workloads is not None:
        members["workloads"] = dict(value.workloads)
    if value.retained:
        from gitsched.render.retained_copies import write_retained_copy  # most outputs have none

        members["retainedCopies"] = [write_retained_copy(copy) for copy in value.retained]
    if value.rollouts:
        from gitsched.render.rollout_records import write_rollouts  # as above

        members["rollouts"] = write_rollouts(value.rollouts)
    if value.adopted:
        members["adopted"] = dict(value.adopted)
    if value.guard:
        members["guard"] = dict(value.guard)
    if value.tenants:
        members["tenants"] = [dict(tenant) for tenant in value.tenants]
    body = ",\n".join(f"  {_write_compact(name)}: {_write_member(member)}" for name, member in sorted(members.items()))
    return NewBlob(f"{{\n{body}\n}}\n".encode())


def parse_run_metadata(data: bytes) -> RunMetadata:
    """Parse gitsched.json of an earlier run; unknown members are ignored.

    Raises Permanent if it is not valid or has another format version: gitsched must not overwrite output that it cannot read.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Permanent(
            f"{RUN_METADATA} of the output branch is not JSON: {error}; revert the commit that changed the file"
        ) from error
    if not isinstance(value, dict) or value.get("formatVersion") != FORMAT_VERSION:
        found = value.get("formatVersion") if isinstance(value, dict) else None
        raise Permanent(
            f"{RUN_METADATA} of the output branch has format version {found!r}; this gitsched reads {FORMAT_VERSION}: use a newer one, or "
            "revert the commit that changed the file"
        )
    findings = value.get("findings")
    retained: tuple[RetainedCopy, ...] = ()
    if value.get("retainedCopies"):
        from gitsched.render.retained_copies import read_retained_copies  # most outputs have none

        retained = read_retained_copies(value["retainedCopies"])
    rollouts: tuple[RolloutRecord, ...] = ()
    if value.get("rollouts"):
        from gitsched.render.rollout_records import read_rollouts  # as above

        rollouts = read_rollouts(value["rollouts"])
    retiring, workloads = as_object(value.get("retiring")), value.get("workloads")
    return RunMetadata(
        source=_as_text(value.get("source")),
        version=_as_text(value.get("version")),
        time=parse_time(value.get("time")) or EPOCH,
        source_tree=_as_text(value.get("sourceTree")),
        observations=as_object(value.get("observations")),
        observed_at=parse_time(value.get("observedAt")),
        findings=tuple(_read_finding(entry) for entry in findings if isinstance(entry, dict)) if isinstance(findings, list) else (),
        next_wakeup=parse_time(value.get("nextWakeup")),
        input_digest=_as_text(value.get("inputDigest")),
        retiring={name: since for name, text in retiring.items() if (since := parse_time(text))},
        facts={name: oid for name, oid in as_object(value.get("facts")).items() if isinstance(oid, str)},
        builds=BuildRecord(
            _as_text(value.get("builder")),
            {root: oid for root, oid in as_object(value.get("keptRoots")).items() if isinstance(oid, str)},
            _as_text(value.get("helm")),
        ),
        kept_files={path: oid for path, oid in as_object(value.get("keptFiles")).items() if isinstance(oid, str)},
        workloads={state: count for state, count in workloads.items() if isinstance(count, int)}
        if isinstance(workloads, dict)
        else None,
        retained=retained,
        guard=as_object(value.get("guard")),
        rollouts=rollouts,
        adopted={name: why for name, why in as_object(value.get("adopted")).items() if isinstance(why, str)},
        tenants=tuple(list_objects(value.get("tenants"))),
    )


def write_hydrator_metadata(
    source: str, repo_url: str | None, subject: str, author: str, date: datetime, body: str = ""
) -> NewBlob:
    """Return hydrator.metadata for Argo CD's source hydrator and GitOps Promoter; `author` is "Name <address>"."""
    members = {
        "author": author,
        "body": body,
        "date": format_time(date),
        "drySha": source,
        "repoURL": strip_credentials(repo_url) if repo_url else "",
        "subject": subject,
    }
    shown = {name: text for name, text in members.items() if text}
    return NewBlob((json.dumps(shown, indent=2, sort_keys=True) + "\n").encode())


def _write_finding(finding: Finding) -> dict[str, Any]:
    entry: dict[str, Any] = {"code": finding.code, "message": finding.message, "severity": finding.severity}
    if finding.location:
        entry |= finding.location.to_json()
    if finding.resource:
        entry["resource"] = dict(zip(("kind", "namespace", "name"), finding.resource, strict=True))
    return entry


def _read_finding(entry: dict[str, Any]) -> Finding:
    severity: Severity = next((known for known in SEVERITIES if known == entry.get("severity")), "error")
    line, column, resource = entry.get("line"), entry.get("column"), entry.get("resource")
    location = (
        Location(_as_text(entry.get("path")), line, column, _as_text(entry.get("changedBy")))
        if isinstance(line, int) and isinstance(column, int)
        else None
    )
    key = (
        (_as_text(resource.get("kind")), _as_text(resource.get("namespace")), _as_text(resource.get("name")))
        if isinstance(resource, dict)
        else None
    )
    return Finding(severity, _as_text(entry.get("code")), _as_text(entry.get("message")), location, key)


def _write_member(value: Any) -> str:
    """Return JSON with the first level on separate lines and deeper levels in compact form, which uses the fast C encoder."""
    if isinstance(value, dict) and value:
        return "{\n" + ",\n".join(f"    {_write_compact(name)}: {_write_compact(value[name])}" for name in sorted(value)) + "\n  }"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"    {_write_compact(entry)}" for entry in value) + "\n  ]"
    return _write_compact(value)


_write_compact = json.JSONEncoder(sort_keys=True).encode


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


MAX_ROWS = 200
"""The number of rows of all tables; clusters get at most half of them, or as many as decisions do not need."""
MAX_CLUSTERS = 10
"""The number of clusters listed for one decision; the others are counted."""
_COMMIT_ID = re.compile(r"[0-9a-f]{4,64}")


def write_readme(summary: ReadmeContent) -> NewBlob:
    """Return README.md: how to reproduce the decisions, the findings by severity, and at most 200 rows of clusters and decisions.

    The sections of held workloads, of recorded decisions and of `copies` that stay for an overlap are left out if there are none.
    """
    workloads = max(summary.workloads, len(summary.decisions))
    clusters = max(summary.clusters, len(summary.fleet))
    fleet = summary.fleet[: max(MAX_ROWS // 2, MAX_ROWS - workloads - len(summary.recorded))]
    remaining = MAX_ROWS - len(fleet)
    recorded = summary.recorded[: max(remaining // 2, remaining - workloads)]
    decisions = summary.decisions[: remaining - len(recorded)]
    text = _TEMPLATE.format(
        origin=_format_source(summary),
        commit=summary.source if _COMMIT_ID.fullmatch(summary.source) else "COMMIT",
        findings="".join(f"- {line}\n" for line in _count_findings(summary)) or "None.\n",
        fleet=_format_table(_FLEET_HEADER, map(_format_fleet_row, fleet), clusters - len(fleet), "`clusters/`"),
        decisions=_format_table(_DECISIONS_HEADER, map(_format_decision_row, decisions), workloads - len(decisions), "`status/`"),
    )
    if summary.held:
        rows, more = map(_format_held_row, summary.held[:MAX_HELD]), max(0, len(summary.held) - MAX_HELD)
        text += f"\n## Held workloads\n\n{_HELD_TEXT}{_format_table(_HELD_HEADER, rows, more, '`gitsched plan`')}"
    if recorded:
        more = len(summary.recorded) - len(recorded)
        text += (
            f"\n## Recorded decisions\n\n{_format_table(_RECORDED_HEADER, map(_format_recorded_row, recorded), more, '`status/`')}"
        )
    if summary.copies:
        text += "\n## Copies that stay for an overlap\n\n" + "".join(f"- {format_code(line)}\n" for line in summary.copies)
    return NewBlob(text.encode())


_TEMPLATE = """\
# Placements

gitsched writes this branch. Do not edit it: the next run overwrites manual changes.

{origin}

To reproduce these decisions, run in a clone of the source repository:

```sh
git checkout {commit}
gitsched plan --observations recorded
```

## Findings

{findings}
## Clusters

{fleet}
## Decisions

{decisions}"""
_FLEET_HEADER = "| cluster | region | state | workloads | replicas |\n|---|---|---|--:|--:|\n"
_DECISIONS_HEADER = "| workload | policy | placement |\n|---|---|---|\n"
MAX_HELD = 50
"""The number of held workloads that README.md lists."""
_HELD_TEXT = "These workloads have data in their clusters, or were adopted there. They stay until they are released.\n\n"
_HELD_HEADER = "| workload | held in | why | when released | to release it |\n|---|---|---|---|---|\n"
_RECORDED_HEADER = "| object | chosen | result |\n|---|---|---|\n"


def _format_source(summary: ReadmeContent) -> str:
    url = strip_credentials(summary.repository) if summary.repository else None
    repository = f" of {format_code(url)}" if url else ""
    time, version = format_time(summary.time), format_code(summary.version)
    text = f"Scheduled from commit {format_code(summary.source)}{repository} at {time} by gitsched {version}."
    return text + (f" Next change without a commit: {format_time(summary.next_wakeup)}." if summary.next_wakeup else "")


def _count_findings(summary: ReadmeContent) -> Iterator[str]:
    for severity in SEVERITIES:
        number = summary.findings.get(severity)
        if number:
            yield f"{number} {'note' if severity == 'info' else severity}{'s' if number > 1 else ''}"
    if summary.unclaimed:
        yield f"{summary.unclaimed} {'object is' if summary.unclaimed == 1 else 'objects are'} not selected by any policy"
    if summary.freeze:
        yield f"placements are frozen: {format_text(summary.freeze)}"
    if summary.withheld:
        plural = "changes are" if summary.withheld > 1 else "change is"
        yield f"{summary.withheld} {plural} withheld by the guard; the digest {format_code(summary.allowance)} allows exactly these"


def _format_table(head: str, rows: Iterable[str], more: int, location: str) -> str:
    lines = "".join(rows)
    if not lines:
        return "None.\n"
    return head + lines + (f"\nand {more} more, see {location}.\n" if more else "")


def _format_fleet_row(row: FleetRow) -> str:
    return f"{format_code_cells(row.name, row.region, row.note)} {row.workloads} | {row.replicas} |\n"


def _format_decision_row(row: DecisionRow) -> str:
    return f"{format_code_cells(row.workload, row.policy)} {_format_placement(row.placement, row.variants)} |\n"


def _format_held_row(row: HeldRow) -> str:
    clusters, wanted = _format_names(row.clusters), _format_names(row.wanted) or "nowhere"
    return f"| {format_code(row.workload)} | {clusters} | {format_code(row.reason)} | {wanted} | {format_code(row.release)} |\n"


def _format_recorded_row(row: RecordedRow) -> str:
    return f"{format_code_cells(row.subject, row.target_kind)} {_format_names(row.targets) or 'none'} |\n"


def _format_placement(placement: Sequence[tuple[str, int | None]], variants: Mapping[str, str]) -> str:
    if variants:
        return _format_variants(placement, variants) or "nowhere"
    return _format_names([name if count is None else f"{name}:{count}" for name, count in placement]) or "nowhere"


def _format_variants(placement: Sequence[tuple[str, int | None]], variants: Mapping[str, str]) -> str:
    """Return the clusters of each variant, followed by its directory."""
    by_path: dict[str, list[str]] = {}
    for name, count in placement:
        by_path.setdefault(variants.get(name, ""), []).append(name if count is None else f"{name}:{count}")
    groups = (f"{_format_names(names)} ({format_code(path) if path else 'unchanged'})" for path, names in sorted(by_path.items()))
    return "; ".join(groups)


def _format_names(names: Sequence[str]) -> str:
    shown, more = ", ".join(map(format_code, names[:MAX_CLUSTERS])), len(names) - MAX_CLUSTERS
    return f"{shown} and {more} more" if more > 0 else shown


CommitCause = Literal["source", "facts", "deadline", "observation"]

SUBJECT_LIMIT = 100
LINE_LIMIT = 200
BODY_LIMIT = 50
_BLANKS = re.compile(r" {2,}")
# [skip ci] in the subject of a source commit must not disable the pipelines of the output branch.
_BRACKETS = str.maketrans("[]", "()")


def format_line(text: str, limit: int = LINE_LIMIT) -> str:
    """Return untrusted text as one line of at most `limit` printable characters."""
    printable = text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
    line = _BLANKS.sub(" ", printable).strip()
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


SOURCE_TRAILER = "Gitsched-Source"
"""The source commit of an output commit."""


def write_commit_message(
    summary: str,
    lines: Iterable[str],
    *,
    source: str,
    version: str,
    cause: CommitCause,
    trailers: Mapping[str, str] | None = None,
    fixed_subject: str = "",
) -> str:
    """Return the subject `place: <summary>`, a list of the lines (at most 50, then a count), and the trailers.

    With a `fixed_subject`, this is the first line, and the summary is the first one of the list.
    `trailers` follow the standard trailers; their names are constants of the caller, never input. The text ends in one newline.
    """
    fixed_subject = format_line(fixed_subject, SUBJECT_LIMIT).translate(_BRACKETS)
    subject = fixed_subject or format_line(f"place: {summary}", SUBJECT_LIMIT).translate(_BRACKETS)
    entries = [
        entry for line in ((summary, *lines) if fixed_subject else lines) if (entry := format_line(line).translate(_BRACKETS))
    ]
    # A list item cannot be mistaken for a trailer, a comment, or the "---" at which Git ends a message.
    body = [f"- {entry}" for entry in entries[:BODY_LIMIT]]
    if len(entries) > BODY_LIMIT:
        body.append(f"- and {len(entries) - BODY_LIMIT} more")
    all_trailers = {SOURCE_TRAILER: source, "Gitsched-Version": version, "Gitsched-Cause": cause, **(trailers or {})}
    tail = "\n".join(f"{name}: {format_line(value)}" for name, value in all_trailers.items())
    return "\n\n".join(part for part in (subject, "\n".join(body), tail) if part) + "\n"
