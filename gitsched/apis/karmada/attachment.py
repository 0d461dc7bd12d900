"""Attached bindings: what goes along with the workloads that need it (spec/karmada.md §2).

An attached binding has no placement and is never scheduled: its `spec.requiredBy` repeats the clusters of its owners' bindings. An
object that a policy selects as well has one binding for both, scheduled, with `requiredBy` beside its own clusters.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, NamedTuple

from gitsched.apis.karmada.binding import BINDING_ID, describe_resource, permanent_id
from gitsched.apis.karmada.dependencies import Owner
from gitsched.apis.karmada.names import WORK_VERSION, binding_key, claimed_policy, depended_by_label
from gitsched.model.document import Body, Document, Key, list_objects, member, text_map
from gitsched.model.finding import Finding, locate
from gitsched.model.outcome import Outcome, Placed
from gitsched.model.request import Target

if TYPE_CHECKING:  # the session calls this module
    from gitsched.apis.karmada.session import KarmadaSession


class Attachment(NamedTuple):
    """What the owners of an object ask for.

    `clusters` are all that an owner is bound to, `leaving` those on which only the end of an eviction still keeps an owner. `resolution`
    and `preserve` are the owners' where they agree, else the ones that are no default; `clashes` are the fields in which they differ.
    """

    owners: tuple[Owner, ...]
    clusters: tuple[str, ...]
    leaving: tuple[str, ...]
    resolution: str
    preserve: bool
    clashes: tuple[str, ...]

    @property
    def required_by(self) -> list[Body]:
        """The owners' bindings as upstream repeats them."""
        return [_snapshot(owner) for owner in self.owners]

    @property
    def labels(self) -> dict[str, str]:
        """By which label Karmada finds the attached bindings of an owner."""
        ids = ((owner, text_map(member(owner.body, "metadata", "labels")).get(BINDING_ID, "")) for owner in self.owners)
        return {depended_by_label(owner.binding): identity for owner, identity in ids}

    @property
    def reason(self) -> str:
        """One line for people."""
        owners = [_name(owner.key) for owner in self.owners]
        return f"attached to {', '.join(owners[:3])}" + (f" and {len(owners) - 3} more" if len(owners) > 3 else "")


def attach(owners: Iterable[Owner]) -> Attachment | None:
    """What these workloads ask for together; None without any that brings something along."""
    bringing = tuple(owner for owner in owners if member(owner.body, "spec", "propagateDeps") is True)
    if not bringing:
        return None
    clusters = tuple(dict.fromkeys(name for owner in bringing for name in _clusters(owner.body)))
    tasks = [task for owner in bringing for task in member(owner.body, "spec", "gracefulEvictionTasks") or ()]
    sources = (str(task.get("fromCluster")) for task in tasks if task.get("purgeMode") != "Directly")
    overwrite = {member(owner.body, "spec", "conflictResolution") == "Overwrite" for owner in bringing}
    preserve = {member(owner.body, "spec", "preserveResourcesOnDeletion") is True for owner in bringing}
    fields = (("conflictResolution", overwrite), ("preserveResourcesOnDeletion", preserve))
    return Attachment(
        bringing,
        clusters,
        tuple(dict.fromkeys(name for name in sources if name not in clusters)),
        "Overwrite" if True in overwrite else "Abort",
        True in preserve,
        tuple(name for name, values in fields if len(values) > 1),
    )


def write_attached(template: Document, attachment: Attachment) -> Body:
    """The binding of an object that no policy selects, as Karmada's API server would show it."""
    key = binding_key(template.key)
    return {
        "apiVersion": WORK_VERSION,
        "kind": key.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": {**attachment.labels, BINDING_ID: permanent_id(key)},
        },
        "spec": {
            "resource": describe_resource(template),
            "conflictResolution": attachment.resolution,
            "preserveResourcesOnDeletion": attachment.preserve,
            "requiredBy": attachment.required_by,
        },
    }


def place_attached(session: KarmadaSession, template: Document, attachment: Attachment, before: Body | None) -> Outcome:
    """The outcome of an object that no policy selects."""
    placed, misfits = session.overrides.apply(template, join_places((), attachment, session.fleet.index))
    return Outcome(
        key=template.key,
        api=session.name,
        state="placed" if attachment.clusters else "pending",
        policy="",
        group="",
        placed=placed,
        replicas=None,
        documents=((binding_key(template.key), write_attached(template, attachment)),),
        reason=attachment.reason,
        time=session.world.at,
        findings=(*misfits, *_find_clashes(template, attachment)),
        before=was_placed((), before),
    )


def keep_attached(binding: Body, attachment: Attachment | None) -> Body | None:
    """A binding that stays what it was but for its owners; None when nothing else but owners ever held it, and none does now."""
    before: Body = binding.get("spec") or {}
    metadata: Body = binding.get("metadata") or {}
    spec = {name: value for name, value in before.items() if name != "requiredBy"}
    if attachment is None:
        claimed = claimed_policy(text_map(metadata.get("annotations"))) is not None
        return binding if spec == before else {**binding, "spec": spec} if claimed else None
    return {
        **binding,
        "metadata": {**metadata, "labels": {**text_map(metadata.get("labels")), **attachment.labels}},
        "spec": {**spec, "requiredBy": attachment.required_by},
    }


def join_places(places: tuple[Placed, ...], attachment: Attachment | None, known: Container[str]) -> tuple[Placed, ...]:
    """Places of its own first, then those of its owners; a copy that an owner needs does not leave."""
    if attachment is None:
        return places
    joined = {place.cluster: place for place in places}
    for name in attachment.clusters:
        if name in known and (name not in joined or joined[name].leaving):
            joined[name] = Placed(name)
    for name in attachment.leaving:
        if name in known:
            joined.setdefault(name, Placed(name, leaving=True))
    return tuple(joined.values())


def was_placed(clusters: Iterable[Target], previous: Body | None) -> tuple[Placed, ...]:
    """Where the last run had an object: on clusters of its own, and on those that its owners asked for."""
    places = {target.name: Placed(target.name, target.replicas or None) for target in clusters}
    for entry in list_objects(member(previous or {}, "spec", "requiredBy")):
        for cluster in list_objects(entry.get("clusters")):
            places.setdefault(str(cluster.get("name")), Placed(str(cluster.get("name"))))
    return tuple(places.values())


def _find_clashes(template: Document, attachment: Attachment) -> tuple[Finding, ...]:
    """Where the policies of the owners do not agree about what is shared."""
    if not attachment.clashes:
        return ()
    values = {
        "conflictResolution": attachment.resolution,
        "preserveResourcesOnDeletion": "true" if attachment.preserve else "false",
    }
    used = " and ".join(f"{name} {values[name]}" for name in attachment.clashes)
    message = f"{template.key} is needed by workloads whose policies differ: {used} counts ({attachment.reason})"
    return (Finding("warning", "karmada-dependency-conflict", message, locate(template), template.key.resource),)


def _snapshot(owner: Owner) -> Body:
    snapshot: Body = {"namespace": owner.binding.namespace, "name": owner.binding.name}
    clusters = member(owner.body, "spec", "clusters")
    return {**snapshot, "clusters": clusters} if clusters else snapshot


def _clusters(binding: Body) -> list[str]:
    return [str(cluster.get("name")) for cluster in member(binding, "spec", "clusters") or ()]


def _name(key: Key) -> str:
    return f"{key.kind} {key.namespace}/{key.name}"
