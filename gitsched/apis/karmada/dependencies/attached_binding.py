"""Attached bindings: bindings of objects that other workloads depend on (propagateDeps).

An attached binding has no placement of its own. `requiredBy` repeats the clusters of the bindings of its dependents, and a label names
each of them, as Karmada's dependencies distributor writes it.
"""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.apis.karmada.binding.resource_binding import (
    BINDING_ID_LABEL,
    binding_key,
    make_permanent_id,
    make_resource_reference,
    read_claim,
)
from gitsched.apis.karmada.names import WORK_VERSION, depended_by_label
from gitsched.model.document import Body, Document, Key, as_string_map, get_field, read_labels
from gitsched.model.finding import Finding, locate_document
from gitsched.named_tuples import NamedTuple


class Dependent(NamedTuple):
    """A workload that depends on other objects, with the key and the body of its present binding. `followed`: a companion follows it, also
    without propagateDeps."""

    key: Key
    binding: Key
    body: Body
    followed: bool = False


class Attachment(NamedTuple):
    """What the dependents of an object require.

    `clusters` are those that a dependent is bound to, `evicting` those where only a graceful eviction task still keeps a dependent.
    `conflict_resolution` and `preserve_on_deletion` are those of the dependents where they agree, else the value that is not the
    default; `conflicts` are the fields in which they differ.
    """

    dependents: tuple[Dependent, ...]
    clusters: tuple[str, ...]
    evicting: tuple[str, ...]
    conflict_resolution: str
    preserve_on_deletion: bool
    conflicts: tuple[str, ...]

    @property
    def required_by(self) -> list[Body]:
        """The value of spec.requiredBy: a BindingSnapshot for each dependent."""
        return [_make_binding_snapshot(dependent) for dependent in self.dependents]

    @property
    def labels(self) -> dict[str, str]:
        """The labels by which Karmada finds the attached bindings of each dependent."""
        ids = ((dependent, read_labels(dependent.body).get(BINDING_ID_LABEL, "")) for dependent in self.dependents)
        return {depended_by_label(dependent.binding): permanent_id for dependent, permanent_id in ids}

    @property
    def reason(self) -> str:
        """The reason of the placement in one line."""
        dependents = [_format_workload(dependent.key) for dependent in self.dependents]
        more = f" and {len(dependents) - 3} more" if len(dependents) > 3 else ""
        return f"attached to {', '.join(dependents[:3])}{more}"


def build_attachment(dependents: Iterable[Dependent]) -> Attachment | None:
    """Combine the clusters, conflictResolution and preserveResourcesOnDeletion of these dependents; None when none has propagateDeps and
    none is followed."""
    propagating = tuple(d for d in dependents if d.followed or get_field(d.body, "spec", "propagateDeps") is True)
    if not propagating:
        return None
    clusters = tuple(dict.fromkeys(name for d in propagating for name in _list_clusters(d.body)))
    tasks = [task for d in propagating for task in get_field(d.body, "spec", "gracefulEvictionTasks") or ()]
    sources = (str(task.get("fromCluster")) for task in tasks if task.get("purgeMode") != "Directly")
    overwrite = {get_field(d.body, "spec", "conflictResolution") == "Overwrite" for d in propagating}
    preserve = {get_field(d.body, "spec", "preserveResourcesOnDeletion") is True for d in propagating}
    fields = (("conflictResolution", overwrite), ("preserveResourcesOnDeletion", preserve))
    return Attachment(
        propagating,
        clusters,
        tuple(dict.fromkeys(name for name in sources if name not in clusters)),
        "Overwrite" if True in overwrite else "Abort",
        True in preserve,
        tuple(name for name, values in fields if len(values) > 1),
    )


def write_attached_binding(template: Document, attachment: Attachment) -> Body:
    """Return the binding of an object that no policy selects, as Karmada's API server would return it."""
    key = binding_key(template.key)
    return {
        "apiVersion": WORK_VERSION,
        "kind": key.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": {**attachment.labels, BINDING_ID_LABEL: make_permanent_id(key)},
        },
        "spec": {
            "resource": make_resource_reference(template),
            "conflictResolution": attachment.conflict_resolution,
            "preserveResourcesOnDeletion": attachment.preserve_on_deletion,
            "requiredBy": attachment.required_by,
        },
    }


def update_attached_binding(binding: Body, attachment: Attachment | None) -> Body | None:
    """Replace the dependents in a binding that is kept otherwise.

    None when the binding has neither a policy nor a dependent any more.
    """
    before: Body = binding.get("spec") or {}
    metadata: Body = binding.get("metadata") or {}
    spec = {name: value for name, value in before.items() if name != "requiredBy"}
    if attachment is None:
        claimed = read_claim(as_string_map(metadata.get("annotations"))) is not None
        return binding if spec == before else {**binding, "spec": spec} if claimed else None
    return {
        **binding,
        "metadata": {**metadata, "labels": {**as_string_map(metadata.get("labels")), **attachment.labels}},
        "spec": {**spec, "requiredBy": attachment.required_by},
    }


def find_conflicts(template: Document, attachment: Attachment) -> tuple[Finding, ...]:
    """Report the fields in which the policies of the dependents differ."""
    if not attachment.conflicts:
        return ()
    values = {
        "conflictResolution": attachment.conflict_resolution,
        "preserveResourcesOnDeletion": "true" if attachment.preserve_on_deletion else "false",
    }
    used = " and ".join(f"{name} {values[name]}" for name in attachment.conflicts)
    message = f"the policies of workloads that depend on {template.key} differ: {used} is used ({attachment.reason})"
    return (Finding("warning", "karmada-dependency-conflict", message, locate_document(template), template.key.resource),)


def _make_binding_snapshot(dependent: Dependent) -> Body:
    snapshot: Body = {"namespace": dependent.binding.namespace, "name": dependent.binding.name}
    clusters = get_field(dependent.body, "spec", "clusters")
    return {**snapshot, "clusters": clusters} if clusters else snapshot


def _list_clusters(binding: Body) -> list[str]:
    return [str(cluster.get("name")) for cluster in get_field(binding, "spec", "clusters") or ()]


def _format_workload(key: Key) -> str:
    return f"{key.kind} {key.namespace}/{key.name}"
