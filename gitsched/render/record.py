"""gitsched.json: what a run saw and found, so that it can be replayed; and what forges and Argo CD ask of a branch."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from gitsched.model.errors import Permanent
from gitsched.model.files import Bytes
from gitsched.model.finding import SEVERITIES, Finding, Location, Severity
from gitsched.model.time import EPOCH, format_time, parse_time
from gitsched.render.layout import RECORD

FORMAT_VERSION: Final = 1

GITATTRIBUTES: Final = Bytes(b"* linguist-generated=true gitlab-generated\n")
""".gitattributes: GitHub and GitLab fold the diffs of generated files and leave them out of the statistics."""

_SCP = re.compile(r"(?:[A-Za-z0-9_.-]+@)?[A-Za-z0-9][A-Za-z0-9.-]*:(?!/)[^\s:]+")


class Record(NamedTuple):
    """`source` and `source_tree` are Git object ids in hex; `observations` maps an observation's name to what was observed (JSON).

    `observed_at` is when that was, None where nothing was. `retiring` holds since when a cluster that keeps its directory has had no
    document.
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


def record(value: Record) -> Bytes:
    """Canonical JSON: members sorted, a line for each entry of an object or a list, ASCII."""
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
    body = ",\n".join(f"  {_compact(name)}: {_spread(member)}" for name, member in sorted(members.items()))
    return Bytes(f"{{\n{body}\n}}\n".encode())


def parse_record(data: bytes) -> Record:
    """The record of an earlier run; members it does not know are left aside.

    Raises Permanent when it is no record, or one of a later format: an older gitsched must not overwrite what it cannot read.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Permanent(f"{RECORD} of the output branch is not JSON: {error}") from error
    if not isinstance(value, dict) or value.get("formatVersion") != FORMAT_VERSION:
        found = value.get("formatVersion") if isinstance(value, dict) else None
        raise Permanent(f"{RECORD} of the output branch has format version {found!r}; this gitsched reads {FORMAT_VERSION}")
    findings = value.get("findings")
    retiring = _object(value.get("retiring"))
    return Record(
        source=_text(value.get("source")),
        version=_text(value.get("version")),
        time=parse_time(value.get("time")) or EPOCH,
        source_tree=_text(value.get("sourceTree")),
        observations=_object(value.get("observations")),
        observed_at=parse_time(value.get("observedAt")),
        findings=tuple(_read_finding(entry) for entry in findings if isinstance(entry, dict)) if isinstance(findings, list) else (),
        next_wakeup=parse_time(value.get("nextWakeup")),
        input_digest=_text(value.get("inputDigest")),
        retiring={name: since for name, text in retiring.items() if (since := parse_time(text))},
    )


def hydrator_metadata(source: str, repo_url: str | None, subject: str, author: str, date: datetime, body: str = "") -> Bytes:
    """hydrator.metadata, the contract of Argo CD's hydrator and GitOps Promoter; `author` is "Name <address>"."""
    members = {
        "author": author,
        "body": body,
        "date": format_time(date),
        "drySha": source,
        "repoURL": public_url(repo_url) or "",
        "subject": subject,
    }
    shown = {name: text for name, text in members.items() if text}
    return Bytes((json.dumps(shown, indent=2, sort_keys=True) + "\n").encode())


def public_url(url: str | None) -> str | None:
    """A repository's URL without anything secret, or None where it names a place on one machine only.

    User information goes from http and https (a token may stand for the user, too), the password from ssh; query and fragment go.
    """
    if not url or not url.isprintable():
        return None
    if "://" not in url:
        return url if _SCP.fullmatch(url) else None
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    if parts.scheme not in ("http", "https", "ssh", "git") or not parts.hostname:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    user = f"{parts.username}@" if parts.scheme == "ssh" and parts.username else ""
    return urlunsplit((parts.scheme, f"{user}{host}{port}", parts.path, "", ""))


def _write_finding(finding: Finding) -> dict[str, Any]:
    entry: dict[str, Any] = {"code": finding.code, "message": finding.message, "severity": finding.severity}
    if finding.location:
        entry |= finding.location._asdict()
    if finding.resource:
        entry["resource"] = dict(zip(("kind", "namespace", "name"), finding.resource, strict=True))
    return entry


def _read_finding(entry: dict[str, Any]) -> Finding:
    severity: Severity = next((known for known in SEVERITIES if known == entry.get("severity")), "error")
    line, column, resource = entry.get("line"), entry.get("column"), entry.get("resource")
    where = Location(_text(entry.get("path")), line, column) if isinstance(line, int) and isinstance(column, int) else None
    about = (
        (_text(resource.get("kind")), _text(resource.get("namespace")), _text(resource.get("name")))
        if isinstance(resource, dict)
        else None
    )
    return Finding(severity, _text(entry.get("code")), _text(entry.get("message")), where, about)


def _spread(value: Any) -> str:
    """JSON with the first level on lines of its own; what lies deeper is compact, which also keeps to the fast encoder."""
    if isinstance(value, dict) and value:
        return "{\n" + ",\n".join(f"    {_compact(name)}: {_compact(value[name])}" for name in sorted(value)) + "\n  }"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"    {_compact(entry)}" for entry in value) + "\n  ]"
    return _compact(value)


_compact = json.JSONEncoder(sort_keys=True).encode


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
