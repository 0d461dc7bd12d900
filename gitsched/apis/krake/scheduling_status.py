"""Scheduling status of a resource: read from its previous record and its document, written to its next record."""

from __future__ import annotations

import json
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, TypeVar

from gitsched.apis.krake.names import NO_SUITABLE_RESOURCE, ResourceRef, read_ref
from gitsched.model.document import Body, Document, as_object, get_field, list_objects
from gitsched.model.time import format_time, parse_time
from gitsched.named_tuples import NamedTuple

SPEC_DIGEST_ANNOTATION: Final = "gitsched.io/spec-digest"
"""Record annotation with a digest of the document version that was scheduled."""
VERSIONED_METADATA: Final = ("annotations", "inherit_labels", "labels")
"""Metadata fields that belong to a document version, together with the spec."""
DELETION_STATES: Final = frozenset(("DELETING", "DELETED"))
"""States of a resource that is being deleted or has been deleted."""
T = TypeVar("T")
_WAITING: Final = "WAITING_FOR_CLUSTER_CREATION"
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


class _Record(NamedTuple):
    """What an earlier run has recorded of a resource. Users can edit the output branch, so that a record may have any shape.

    `digest` identifies the present version of the document, "" without a record. `unchanged` and `changed` compare it with the recorded
    version; both are false if there is none.
    """

    status: Body = {}
    metadata: Body = {}
    digest: str = ""
    unchanged: bool = False
    changed: bool = False

    @property
    def state(self) -> str | None:
        state = self.status.get("state")
        return state if isinstance(state, str) else None

    def has_own_failure(self, final: tuple[str, ...]) -> bool:
        """Return whether the scheduler set the recorded failure, or the wait for a cluster."""
        is_own = self.state == _WAITING or get_field(self.status, "reason", "code") == NO_SUITABLE_RESOURCE
        return is_own and self.state in final

    def find_state(self, source_state: str, given: object, final: tuple[str, ...]) -> str:
        """Return the state of the resource, `given` that of its document if that says one, which is then `source_state`."""
        if self.has_own_failure(final):
            return source_state if self.changed else str(self.state)
        if self.state in DELETION_STATES or self.state in final:
            return source_state  # a deletion, or a failure that another controller set, ends when the document stops saying so
        state = str(given or self.state or "PENDING")
        return source_state if self.changed and state in final else state

    def find_reason(self, given: Body | None, final: tuple[str, ...]) -> Body | None:
        """Return the reason of the state: that of the recorded failure while it counts, else the one in the document."""
        if not self.has_own_failure(final):
            return given
        return None if self.changed else _keep_type(self.status.get("reason"), dict)


def _read_record(document: Document, previous: Body | None) -> _Record:
    if previous is None:
        return _Record()
    metadata, digest = as_object(previous.get("metadata")), digest_version(document.body)
    recorded = get_field(metadata, "annotations", SPEC_DIGEST_ANNOTATION)
    return _Record(
        as_object(previous.get("status")),
        metadata,
        digest,
        unchanged=recorded == digest,
        changed=recorded is not None and recorded != digest,
    )


def read_previous(document: Document, previous: Body | None, time: datetime, final: tuple[str, ...]) -> SchedulingStatus:
    """Read the status of a document from its previous record and the document itself.

    `final` are the states that gitsched sets; they stay until the document changes. A failure applies only to the version that failed:
    in Git, users correct a document instead of deleting the resource and creating it again.
    """
    source, metadata = as_object(document.body.get("status")), as_object(document.body.get("metadata"))
    source_state = str(source.get("state") or "PENDING")
    if previous is None and source.keys() <= _STATE_FIELD and _HISTORY_FIELDS.isdisjoint(metadata):  # fast path: most clusters
        return SchedulingStatus(source_state, time, time, "", recorded=False, source_state=source_state)
    record = _read_record(document, previous)

    created, modified, owners = _read_history(metadata, record.metadata)
    state = record.find_state(source_state, source.get("state"), final)
    status = {**source, **{name: value for name, value in record.status.items() if value is not None}}
    retries, next_retry = (None, None) if record.changed else (status.get("retries"), status.get("scheduled_retry"))
    awaiting = record.status if record.unchanged or record.changed else {**source, **record.status}
    source_reason = _keep_type(source.get("reason"), dict)
    return SchedulingStatus(
        state=state,
        modified=time if record.changed else modified or created or time,
        created=created or time,
        digest=record.digest,
        recorded=record.unchanged,
        target=read_ref(status.get("project" if document.key.kind == "MagnumCluster" else "scheduled_to")),
        scheduled=parse_time(status.get("scheduled")),
        triggered=parse_time(status.get("kube_controller_triggered")),
        retries=_keep_type(retries, int),
        next_retry=parse_time(next_retry),
        reason=record.find_reason(source_reason, final),
        owners=owners,
        awaited_cluster=str(awaiting.get("auto_cluster_create_started") or ""),
        migration_timeout=_keep_type(source.get("migration_timeout"), int) or 0,
        failed_before=record.unchanged and state in final and source_state != state,
        source_state=source_state,
        source_reason=source_reason,
    )


def _read_history(source: Body, recorded: Body) -> tuple[datetime | None, datetime | None, tuple[Body, ...]]:
    """Return when a resource was created and modified, and its owners, given the metadata of the document and of the record."""
    created, modified = (parse_time(source.get(name)) or parse_time(recorded.get(name)) for name in ("created", "modified"))
    return created, modified, tuple(list_objects(recorded.get("owners") or source.get("owners")))


def _keep_type(value: Any, kind: type[T]) -> T | None:
    return value if isinstance(value, kind) else None


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
