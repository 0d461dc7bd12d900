"""Metadata of a run: gitsched.json (its inputs and findings, for replay), hydrator.metadata and .gitattributes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gitsched.model.document import as_object, list_objects
from gitsched.model.errors import DamagedOutput
from gitsched.model.finding import SEVERITIES, Finding, Location, Severity
from gitsched.model.planned_files import NewBlob
from gitsched.model.time import EPOCH, format_time, parse_time
from gitsched.model.urls import strip_credentials
from gitsched.named_tuples import NamedTuple
from gitsched.render.format_versions import FORMAT_MEMBER, FORMAT_VERSION, check_version, upgrade_metadata
from gitsched.render.output_files import RUN_METADATA
from gitsched.render.retained_copies import read_key, read_placed, read_retained_copy, write_key, write_placed, write_retained_copy
from gitsched.render.rollout_records import read_rollout, write_rollout

if TYPE_CHECKING:
    from gitsched.model.capacity_use import PlacedRequests
    from gitsched.model.changes import RetainedCopy
    from gitsched.model.document import Key
    from gitsched.model.rollouts import RolloutRecord

T = TypeVar("T")

GITATTRIBUTES: Final = NewBlob(b"* linguist-generated=true gitlab-generated\n")
""".gitattributes: GitHub and GitLab collapse the diffs of generated files and exclude them from statistics."""


class BuildRecord(NamedTuple):
    """How kustomize roots were built: the program with its version, or "" if there are none; and for each root that cannot be built the
    source commit whose objects are used instead. `helm` is helm with its version, or "" if no chart is rendered."""

    builder: str = ""
    kept: Mapping[str, str] = {}
    helm: str = ""


NOTHING_BUILT = BuildRecord()
VERSION_CODES = frozenset(("kustomize-version", "helm-version"))
"""Codes of findings that compare the programs of a run with those of the last one."""


class RunMetadata(NamedTuple):
    """The content of gitsched.json.

    `source` and `source_tree` are Git object ids in hex; `observations` maps the name of an observation to its value (JSON).
    `observed_at` is the time of the observations, None if there are none. `retiring` maps a cluster without document that still has a
    directory to the time since when it has had no document. `facts` are the commits of the facts branches by branch.
    `builds` says how kustomize roots were built. `kept_files` maps each broken file to the source commit whose version of it is used.
    `workloads` counts the workloads by state; None in a file of a gitsched that did not count them. `unclaimed` is the number of objects
    that no policy selects. `retained` are copies that the output has only for an overlap; of the `undelivered` workloads a cluster may
    have another manifest than was decided. `guard` is as
    `gitsched.decide.guard.guard_settings` writes it. `tenants` are the Tenants that the next run trusts.
    `rollouts` are those that are not complete.
    `placed` is what was placed on clusters since their facts were observed.
    `adopted` says why objects that gitsched took over keep their placement, by key as text. `format_version` is that of the file, whose
    other members are in the present form.
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
    unclaimed: int = 0
    retained: tuple[RetainedCopy, ...] = ()
    undelivered: tuple[Key, ...] = ()
    guard: Mapping[str, Any] = {}
    rollouts: tuple[RolloutRecord, ...] = ()
    adopted: Mapping[str, str] = {}
    tenants: tuple[Mapping[str, Any], ...] = ()
    placed: Mapping[str, tuple[PlacedRequests, ...]] = {}
    format_version: int = FORMAT_VERSION


def write_run_metadata(value: RunMetadata) -> NewBlob:
    """Return canonical JSON: ASCII, sorted members, a line for each entry of an object or a list."""
    members = {
        "findings": [_write_finding(finding) for finding in value.findings],
        FORMAT_MEMBER: FORMAT_VERSION,
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
    optional = {
        "adopted": dict(value.adopted),
        "builder": value.builds.builder,
        "facts": dict(value.facts),
        "guard": dict(value.guard),
        "helm": value.builds.helm,
        "keptFiles": dict(value.kept_files),
        "keptRoots": dict(value.builds.kept),
        "placed": {name: write_placed(entries) for name, entries in value.placed.items()},
        "retainedCopies": [write_retained_copy(copy) for copy in value.retained],
        "rollouts": {record.name: write_rollout(record) for record in value.rollouts},
        "tenants": [dict(tenant) for tenant in value.tenants],
        "unclaimed": value.unclaimed,
        "undelivered": [write_key(key) for key in value.undelivered],
    }
    members |= {name: member for name, member in optional.items() if member}
    if value.workloads is not None:
        members["workloads"] = dict(value.workloads)
    return _write_members(members)


def _write_members(members: Mapping[str, Any]) -> NewBlob:
    body = ",\n".join(f"  {_write_compact(name)}: {_write_member(member)}" for name, member in sorted(members.items()))
    return NewBlob(f"{{\n{body}\n}}\n".encode())


def upgrade_run_metadata(data: bytes) -> NewBlob:
    """Return gitsched.json of an earlier format version in the present form, with its unknown members."""
    members, version = _read_members(data)
    return _write_members(upgrade_metadata(members, version))


def parse_run_metadata(data: bytes, reader: str = "") -> RunMetadata:
    """Parse gitsched.json of an earlier run, also of an earlier format version; unknown members are ignored.

    Raises Permanent if it is not valid or has a newer format version than `reader`, the version of this gitsched, knows: gitsched must not
    overwrite output that it cannot read.
    """
    value, version = _read_members(data, reader)
    if version != FORMAT_VERSION:
        value = upgrade_metadata(value, version)
    undelivered, rollouts = value.get("undelivered"), sorted(as_object(value.get("rollouts")).items())
    retiring, workloads, unclaimed = as_object(value.get("retiring")), value.get("workloads"), value.get("unclaimed")
    return RunMetadata(
        source=_as_text(value.get("source")),
        version=_as_text(value.get("version")),
        time=parse_time(value.get("time")) or EPOCH,
        source_tree=_as_text(value.get("sourceTree")),
        observations=as_object(value.get("observations")),
        observed_at=parse_time(value.get("observedAt")),
        findings=tuple(map(_read_finding, list_objects(value.get("findings")))),
        next_wakeup=parse_time(value.get("nextWakeup")),
        input_digest=_as_text(value.get("inputDigest")),
        retiring={name: since for name, text in retiring.items() if (since := parse_time(text))},
        facts=_keep_values(value.get("facts"), str),
        builds=BuildRecord(
            _as_text(value.get("builder")),
            _keep_values(value.get("keptRoots"), str),
            _as_text(value.get("helm")),
        ),
        kept_files=_keep_values(value.get("keptFiles"), str),
        workloads=_keep_values(workloads, int) if isinstance(workloads, dict) else None,
        unclaimed=unclaimed if isinstance(unclaimed, int) else 0,
        retained=tuple(filter(None, map(read_retained_copy, list_objects(value.get("retainedCopies"))))),
        undelivered=tuple(filter(None, map(read_key, undelivered))) if isinstance(undelivered, list) else (),
        guard=as_object(value.get("guard")),
        rollouts=tuple(read_rollout(name, entry) for name, entry in rollouts if isinstance(entry, dict)),
        adopted=_keep_values(value.get("adopted"), str),
        tenants=tuple(list_objects(value.get("tenants"))),
        placed=read_placed(value["placed"]) if "placed" in value else {},
        format_version=version,
    )


def _read_members(data: bytes, reader: str = "") -> tuple[Mapping[str, Any], int]:
    """Return the members of gitsched.json, and its format version."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedOutput(
            f"{RUN_METADATA} of the output branch is not JSON: {error}; revert the commit that changed the file"
        ) from error
    members = as_object(value)
    return members, check_version(members, reader)


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


def _keep_values(value: Any, kind: type[T]) -> dict[str, T]:
    """Return the members of an object whose values are of a kind; {} for anything else."""
    return {name: member for name, member in as_object(value).items() if isinstance(member, kind)}
