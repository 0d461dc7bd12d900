"""Scheduling status of a resource: read from its previous record and its document, written to its next record."""

from __future__ import annotations

import json
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, NamedTuple

from gitsched.apis.krake.names import ResourceRef, read_ref
from gitsched.model.document import Body, Document, get_field
from gitsched.model.time import format_time, parse_time

SPEC_DIGEST_ANNOTATION: Final = "gitsched.io/spec-digest"
"""The annotation of a record that tells a new version of a document from an old one."""
VERSIONED_METADATA: Final = ("annotations", "inherit_labels", "labels")
"""Metadata that a user changes; with the spec they make a version."""
_STATE_FIELD: Final = frozenset(("state",))
_HISTORY_FIELDS: Final = frozenset(("created", "modified", "owners"))


class SchedulingStatus(NamedTuple):
    """Of an Application, Cluster or MagnumCluster; `target` is the cluster, cloud or project that it is bound to.

    `modified` is when the document got its present version, `digest` what tells versions apart, "" where there is no record yet. `known`
    says that the last run recorded this very version.
    """

    state: str
    modified: datetime
    created: datetime
    digest: str
    recorded: bool
    target: ResourceRef | None = None
    scheduled: datetime | None = None
    triggered: datetime | None = None
    retries: int | None = None
    next_retry: datetime | None = None
    reason: Body | None = None
    owners: tuple[Body, ...] = ()
    awaited_cluster: str = ""
    migration_timeout: int = 0

    def bind(self, target: ResourceRef) -> SchedulingStatus:
        """Bound to a target, which is an owner from now on."""
        owners = self.owners if target.body in self.owners else (*self.owners, target.body)
        return self._replace(target=target, owners=owners)


def read_previous(document: Document, previous: Body | None, at: datetime, final: tuple[str, ...]) -> SchedulingStatus:
    """The memory of a document. `final` are the states that gitsched itself gives: they count until the document changes.

    A failure belongs to the version that failed: in Git, nobody can delete and create a resource anew, but everybody can mend it.
    """
    source, metadata = document.body.get("status") or {}, document.body.get("metadata") or {}
    if previous is None and source.keys() <= _STATE_FIELD and _HISTORY_FIELDS.isdisjoint(metadata):  # as most clusters are
        return SchedulingStatus(str(source.get("state") or "PENDING"), at, at, "", recorded=False)
    # A record lies on a branch that people could have written to.
    record, before = (part if isinstance(part, dict) else {} for part in map((previous or {}).get, ("status", "metadata")))
    # Without a record there is nothing to compare with, and most clusters never get one.
    digest = digest_version(document.body) if previous is not None else ""
    recorded = get_field(before, "annotations", SPEC_DIGEST_ANNOTATION)
    known, changed = recorded is not None and recorded == digest, recorded is not None and recorded != digest

    def read(name: str) -> Any:
        value = record.get(name)
        return source.get(name) if value is None else value

    created = parse_time(metadata.get("created")) or parse_time(before.get("created")) or at
    modified = parse_time(metadata.get("modified")) or parse_time(before.get("modified"))
    state = str(source.get("state") or record.get("state") or "PENDING")
    if record.get("state") in final:
        state = str(record["state"])
    if changed and state in final:
        state = str(source.get("state") or "PENDING")
    retries, owners, reason = read("retries"), before.get("owners") or metadata.get("owners"), read("reason")
    paused = source.get("migration_timeout")
    return SchedulingStatus(
        state=state,
        modified=at if changed else modified or created,
        created=created,
        digest=digest,
        recorded=known,
        target=read_ref(read("project" if document.key.kind == "MagnumCluster" else "scheduled_to")),
        scheduled=parse_time(read("scheduled")),
        triggered=parse_time(read("kube_controller_triggered")),
        retries=retries if isinstance(retries, int) and not changed else None,
        next_retry=None if changed else parse_time(read("scheduled_retry")),
        reason=reason if isinstance(reason, dict) and not (changed and reason is not source.get("reason")) else None,
        owners=tuple(owner for owner in owners if isinstance(owner, dict)) if isinstance(owners, list) else (),
        awaited_cluster=str(read("auto_cluster_create_started") or ""),
        migration_timeout=paused if isinstance(paused, int) else 0,
    )


def digest_version(body: Body) -> str:
    """What tells versions of a document apart: the spec, and the metadata that users write."""
    metadata = body.get("metadata") or {}
    parts = [body.get("spec"), {name: metadata[name] for name in VERSIONED_METADATA if metadata.get(name)}]
    try:
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    except TypeError:  # keys that are no texts, from a parser other than ours, have no order
        text = json.dumps(_stringify_keys(parts), sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:16]


def _stringify_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _stringify_keys(held) for key, held in value.items()}
    return [_stringify_keys(held) for held in value] if isinstance(value, list) else value


def make_record(
    document: Document, memory: SchedulingStatus, status: Body, labels: Body | None = None, spec: Body | None = None
) -> Body:
    """The resource as Krake's server would show it, without the rest of its spec: that may hold what nobody should read."""
    key = document.key
    metadata: Body = {"name": key.name, "namespace": key.namespace}
    uid = get_field(document.body, "metadata", "uid")
    if isinstance(uid, str) and uid:
        metadata["uid"] = uid
    if labels is not None:
        metadata["labels"] = labels
    if spec is not None and get_field(document.body, "metadata", "inherit_labels") is True:
        metadata["inherit_labels"] = True
    metadata |= {
        "created": format_time(memory.created),
        "modified": format_time(memory.modified),
        "owners": list(memory.owners),
        "annotations": {SPEC_DIGEST_ANNOTATION: memory.digest or digest_version(document.body)},
    }
    body: Body = {"api": key.group, "kind": key.kind, "metadata": metadata}
    if spec is not None:
        body["spec"] = spec
    return {**body, "status": {name: value for name, value in status.items() if value is not None}}


def format_optional_time(moment: datetime | None) -> str | None:
    """A moment as a record has it."""
    return format_time(moment) if moment else None
