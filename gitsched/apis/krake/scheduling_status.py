"""Scheduling status of a resource: read from its previous record and its document, written to its next record."""

from __future__ import annotations

import json
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, NamedTuple

from gitsched.apis.krake.names import NO_SUITABLE_RESOURCE, ResourceRef, read_ref
from gitsched.model.document import Body, Document, as_object, get_field
from gitsched.model.time import format_time, parse_time

SPEC_DIGEST_ANNOTATION: Final = "gitsched.io/spec-digest"
"""Record annotation with a digest of the document version that was scheduled."""
VERSIONED_METADATA: Final = ("annotations", "inherit_labels", "labels")
"""Metadata fields that belong to a document version, together with the spec."""
DELETION_STATES: Final = frozenset(("DELETING", "DELETED"))
"""States of a resource that is being deleted or has been deleted."""
_STATE_FIELD: Final = frozenset(("state",))
_HISTORY_FIELDS: Final = frozenset(("created", "modified", "owners"))


class SchedulingStatus(NamedTuple):
    """The scheduling status of an Application, Cluster or MagnumCluster; `target` is the cluster, cloud or project that it is bound to.

    `modified` is the time of the document's current version and `digest` identifies that version ("" without a previous record).
    `recorded` means that the previous run recorded the same version. `failed_before` means that `state` is a failure, or a wait, that
    gitsched recorded; it ends when scheduling succeeds, and then `source_state` and `source_reason` count again.
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
    failed_before: bool = False
    source_state: str = "PENDING"
    source_reason: Body | None = None

    def bind(self, target: ResourceRef) -> SchedulingStatus:
        """Return the status bound to a target, which also becomes an owner; an earlier failure is removed."""
        owners = self.owners if target.body in self.owners else (*self.owners, target.body)
        return self.recover()._replace(target=target, owners=owners)

    @property
    def waits_for_cluster(self) -> bool:
        """Whether the cluster that was requested for the application has not been bound to it."""
        return bool(self.awaited_cluster) and (self.target is None or self.target.name != self.awaited_cluster)

    def recover(self) -> SchedulingStatus:
        """Return the status without a failure that gitsched recorded, its reason and its retries; the same status without one."""
        if not self.failed_before:
            return self
        return self._replace(state=self.source_state, reason=self.source_reason, retries=None, next_retry=None, failed_before=False)


def read_previous(document: Document, previous: Body | None, time: datetime, final: tuple[str, ...]) -> SchedulingStatus:
    """Read the status of a document from its previous record and the document itself.

    `final` are the states that gitsched sets; they stay until the document changes. A failure applies only to the version that failed:
    in Git, users correct a document instead of deleting the resource and creating it again.
    """
    source, metadata = as_object(document.body.get("status")), as_object(document.body.get("metadata"))
    if previous is None and source.keys() <= _STATE_FIELD and _HISTORY_FIELDS.isdisjoint(metadata):  # fast path: most clusters
        state = str(source.get("state") or "PENDING")
        return SchedulingStatus(state, time, time, "", recorded=False, source_state=state)
    # Users can edit the output branch, so a record may have any shape.
    record, previous_metadata = (
        part if isinstance(part, dict) else {} for part in map((previous or {}).get, ("status", "metadata"))
    )
    if not isinstance(record.get("state"), str):
        record = {**record, "state": None}
    # The digest is only compared with a previous record, which most clusters do not have.
    digest = digest_version(document.body) if previous is not None else ""
    recorded = get_field(previous_metadata, "annotations", SPEC_DIGEST_ANNOTATION)
    unchanged, changed = recorded is not None and recorded == digest, recorded is not None and recorded != digest

    def read(name: str) -> Any:
        value = record.get(name)
        return source.get(name) if value is None else value

    created = parse_time(metadata.get("created")) or parse_time(previous_metadata.get("created")) or time
    modified = parse_time(metadata.get("modified")) or parse_time(previous_metadata.get("modified"))
    source_state = str(source.get("state") or "PENDING")
    # A deletion, or a failure that another controller set, ends when the document stops saying so.
    own_failure = record.get("state") in final and _is_own_failure(record)
    from_document = record.get("state") in DELETION_STATES or (record.get("state") in final and not own_failure)
    state = source_state if from_document else str(source.get("state") or record.get("state") or "PENDING")
    if own_failure:
        state = str(record["state"])
    if changed and state in final:
        state = source_state
    source_reason = source.get("reason")
    retries, owners, reason = (
        read("retries"),
        previous_metadata.get("owners") or metadata.get("owners"),
        record.get("reason") if own_failure else source_reason,
    )
    migration_timeout = source.get("migration_timeout")
    return SchedulingStatus(
        state=state,
        modified=time if changed else modified or created,
        created=created,
        digest=digest,
        recorded=unchanged,
        target=read_ref(read("project" if document.key.kind == "MagnumCluster" else "scheduled_to")),
        scheduled=parse_time(read("scheduled")),
        triggered=parse_time(read("kube_controller_triggered")),
        retries=retries if isinstance(retries, int) and not changed else None,
        next_retry=None if changed else parse_time(read("scheduled_retry")),
        reason=reason if isinstance(reason, dict) and not (changed and reason is not source.get("reason")) else None,
        owners=tuple(owner for owner in owners if isinstance(owner, dict)) if isinstance(owners, list) else (),
        awaited_cluster=str((record if recorded is not None else {**source, **record}).get("auto_cluster_create_started") or ""),
        migration_timeout=migration_timeout if isinstance(migration_timeout, int) else 0,
        failed_before=unchanged and state in final and source_state != state,
        source_state=source_state,
        source_reason=source_reason if isinstance(source_reason, dict) else None,
    )


def _is_own_failure(record: Body) -> bool:
    """Return whether the scheduler set the failure, or the wait for a cluster, in a recorded status."""
    waits = record.get("state") == "WAITING_FOR_CLUSTER_CREATION"
    return waits or get_field(record, "reason", "code") == NO_SUITABLE_RESOURCE


def digest_version(body: Body) -> str:
    """Return a digest of a document's version: its spec and the metadata that users write."""
    found = body.get("metadata")
    metadata = found if isinstance(found, dict) else {}  # broken documents have a version, too
    parts = [body.get("spec"), {name: metadata[name] for name in VERSIONED_METADATA if metadata.get(name)}]
    try:
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    except TypeError:  # keys of mixed types cannot be sorted
        text = json.dumps(_stringify_keys(parts), sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:16]


def _stringify_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _stringify_keys(item) for key, item in value.items()}
    return [_stringify_keys(item) for item in value] if isinstance(value, list) else value


def make_record(
    document: Document, scheduling: SchedulingStatus, status: Body, labels: Body | None = None, spec: Body | None = None
) -> Body:
    """Return the resource as Krake's API server would show it; other members of its spec may contain secrets and are left out."""
    key = document.key
    metadata: Body = {"name": key.name, "namespace": key.namespace}
    uid = get_field(document.body, "metadata", "uid")
    if isinstance(uid, str) and uid:
        metadata["uid"] = uid
    deleted = get_field(document.body, "metadata", "deleted")
    if isinstance(deleted, str) and deleted:
        metadata["deleted"] = deleted
    if labels is not None:
        metadata["labels"] = labels
    if spec is not None and get_field(document.body, "metadata", "inherit_labels") is True:
        metadata["inherit_labels"] = True
    metadata |= {
        "created": format_time(scheduling.created),
        "modified": format_time(scheduling.modified),
        "owners": list(scheduling.owners),
        "annotations": {SPEC_DIGEST_ANNOTATION: scheduling.digest or digest_version(document.body)},
    }
    body: Body = {"api": key.group, "kind": key.kind, "metadata": metadata}
    if spec is not None:
        body["spec"] = spec
    return {**body, "status": {name: value for name, value in status.items() if value is not None}}


def format_optional_time(time: datetime | None) -> str | None:
    """Return the time in the format of a record, or None."""
    return format_time(time) if time else None
