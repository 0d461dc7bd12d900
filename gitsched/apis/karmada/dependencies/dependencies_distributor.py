"""Dependencies distributor: attached bindings for what workloads with propagateDeps need, and which decisions depend on each
other."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, NamedTuple

from gitsched.apis.karmada import names
from gitsched.apis.karmada.binding.resource_binding import BINDING_ID_LABEL, make_permanent_id, make_resource_reference
from gitsched.apis.karmada.dependencies.dependency_index import DependencyIndex, Dependent, list_quarantined_dependents
from gitsched.apis.karmada.interpreter import DEPENDENCY_KINDS, DependentObjectReference, format_references, read_references
from gitsched.apis.karmada.names import WORK_VERSION, binding_key, depended_by_label, read_claim
from gitsched.apis.karmada.policy import propagation_policy
from gitsched.apis.karmada.policy.propagation_policy import TEMPLATE_DIGEST, PropagationPolicy, digest_template, is_lazy
from gitsched.model.document import Body, Document, Key, as_string_map, get_field, list_objects
from gitsched.model.finding import Finding, locate_document
from gitsched.model.scheduling import Assignment, Outcome, TargetCluster

if TYPE_CHECKING:
    from gitsched.apis.karmada.engine import KarmadaEngine


class Attachment(NamedTuple):
    """What the owners of an object ask for.

    `clusters` are all that an owner is bound to, `leaving` those on which only the end of an eviction still keeps an owner. `resolution`
    and `preserve` are the owners' where they agree, else the ones that are no default; `clashes` are the fields in which they differ.
    """

    dependents: tuple[Dependent, ...]
    clusters: tuple[str, ...]
    evicting: tuple[str, ...]
    conflict_resolution: str
    preserve_on_deletion: bool
    conflicts: tuple[str, ...]

    @property
    def required_by(self) -> list[Body]:
        """The owners' bindings as upstream repeats them."""
        return [_make_binding_snapshot(owner) for owner in self.dependents]

    @property
    def labels(self) -> dict[str, str]:
        """By which label Karmada finds the attached bindings of an owner."""
        ids = (
            (owner, as_string_map(get_field(owner.body, "metadata", "labels")).get(BINDING_ID_LABEL, ""))
            for owner in self.dependents
        )
        return {depended_by_label(owner.binding): identity for owner, identity in ids}

    @property
    def reason(self) -> str:
        """One line for people."""
        owners = [_format_workload(owner.key) for owner in self.dependents]
        return f"attached to {', '.join(owners[:3])}" + (f" and {len(owners) - 3} more" if len(owners) > 3 else "")


def build_attachment(owners: Iterable[Dependent]) -> Attachment | None:
    """What these workloads ask for together; None without any that brings something along."""
    bringing = tuple(owner for owner in owners if get_field(owner.body, "spec", "propagateDeps") is True)
    if not bringing:
        return None
    clusters = tuple(dict.fromkeys(name for owner in bringing for name in _list_clusters(owner.body)))
    tasks = [task for owner in bringing for task in get_field(owner.body, "spec", "gracefulEvictionTasks") or ()]
    sources = (str(task.get("fromCluster")) for task in tasks if task.get("purgeMode") != "Directly")
    overwrite = {get_field(owner.body, "spec", "conflictResolution") == "Overwrite" for owner in bringing}
    preserve = {get_field(owner.body, "spec", "preserveResourcesOnDeletion") is True for owner in bringing}
    fields = (("conflictResolution", overwrite), ("preserveResourcesOnDeletion", preserve))
    return Attachment(
        bringing,
        clusters,
        tuple(dict.fromkeys(name for name in sources if name not in clusters)),
        "Overwrite" if True in overwrite else "Abort",
        True in preserve,
        tuple(name for name, values in fields if len(values) > 1),
    )


def write_attached_binding(template: Document, attachment: Attachment) -> Body:
    """The binding of an object that no policy selects, as Karmada's API server would show it."""
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


def decide_attached(session: KarmadaEngine, template: Document, attachment: Attachment, before: Body | None) -> Outcome:
    """The outcome of an object that no policy selects."""
    placed, misfits = session.overrides.apply(template, merge_target_clusters((), attachment, session.fleet.index))
    return Outcome(
        key=template.key,
        api=session.name,
        state="placed" if attachment.clusters else "pending",
        policy="",
        group="",
        targets=placed,
        replicas=None,
        records=((binding_key(template.key), write_attached_binding(template, attachment)),),
        reason=attachment.reason,
        time=session.snapshot.at,
        findings=(*misfits, *_find_conflicts(template, attachment)),
        previous_targets=list_previous_targets((), before),
    )


def update_attached_binding(binding: Body, attachment: Attachment | None) -> Body | None:
    """A binding that stays what it was but for its owners; None when nothing else but owners ever held it, and none does now."""
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


def merge_target_clusters(
    places: tuple[TargetCluster, ...], attachment: Attachment | None, known: Container[str]
) -> tuple[TargetCluster, ...]:
    """Places of its own first, then those of its owners; a copy that an owner needs does not leave."""
    if attachment is None:
        return places
    joined = {place.cluster: place for place in places}
    for name in attachment.clusters:
        if name in known and (name not in joined or joined[name].evicting):
            joined[name] = TargetCluster(name)
    for name in attachment.evicting:
        if name in known:
            joined.setdefault(name, TargetCluster(name, evicting=True))
    return tuple(joined.values())


def list_previous_targets(clusters: Iterable[Assignment], previous: Body | None) -> tuple[TargetCluster, ...]:
    """Where the last run had an object: on clusters of its own, and on those that its owners asked for."""
    places = {target.name: TargetCluster(target.name, target.replicas or None) for target in clusters}
    for entry in list_objects(get_field(previous or {}, "spec", "requiredBy")):
        for cluster in list_objects(entry.get("clusters")):
            places.setdefault(str(cluster.get("name")), TargetCluster(str(cluster.get("name"))))
    return tuple(places.values())


def _find_conflicts(template: Document, attachment: Attachment) -> tuple[Finding, ...]:
    """Where the policies of the owners do not agree about what is shared."""
    if not attachment.conflicts:
        return ()
    values = {
        "conflictResolution": attachment.conflict_resolution,
        "preserveResourcesOnDeletion": "true" if attachment.preserve_on_deletion else "false",
    }
    used = " and ".join(f"{name} {values[name]}" for name in attachment.conflicts)
    message = f"{template.key} is needed by workloads whose policies differ: {used} counts ({attachment.reason})"
    return (Finding("warning", "karmada-dependency-conflict", message, locate_document(template), template.key.resource),)


def _make_binding_snapshot(owner: Dependent) -> Body:
    snapshot: Body = {"namespace": owner.binding.namespace, "name": owner.binding.name}
    clusters = get_field(owner.body, "spec", "clusters")
    return {**snapshot, "clusters": clusters} if clusters else snapshot


def _list_clusters(binding: Body) -> list[str]:
    return [str(cluster.get("name")) for cluster in get_field(binding, "spec", "clusters") or ()]


def _format_workload(key: Key) -> str:
    return f"{key.kind} {key.namespace}/{key.name}"


class DependenciesDistributor:
    """Over the session's world. What owners came to is remembered until the world changes."""

    __slots__ = ("_dependencies", "_outcomes", "_priority_classes", "_propagates", "_state")

    def __init__(self, session: KarmadaEngine) -> None:
        self._state = session
        policies = session.policies.policies.values()
        self._priority_classes = frozenset(filter(None, map(propagation_policy.read_priority_class_name, policies)))
        # A Lazy policy, or one that is broken now, may have had propagateDeps when bindings were last written.
        brings = any(policy.spec.get("propagateDeps") or is_lazy(policy) for policy in policies)
        self._propagates = brings or any(key.group == names.POLICY_GROUP for key in session.snapshot.quarantined)
        self._dependencies = DependencyIndex(session.snapshot.templates.values() if self._propagates else (), self)
        self._outcomes: dict[Key, Outcome | None] = {}

    def clear(self) -> None:
        """The world is another one."""
        self._outcomes.clear()

    @property
    def revision(self) -> int:
        """How many owners came to need something else since this was made."""
        return self._dependencies.revision

    def list_references(self, template: Document) -> tuple[DependentObjectReference, ...]:
        """What a workload brings along, whether that is in the repository or not."""
        return self._dependencies.references.get(template.key, ())

    def decide(self, template: Document) -> Outcome | None:
        """Decide a workload, once in a world if others need to know what it came to."""
        key = template.key
        if key not in self._dependencies.references:
            return self._state.decide_workload(template)
        if key not in self._outcomes:
            self._outcomes[key] = self._state.decide_workload(template)
        return self._outcomes[key]

    def find_attachment(self, template: Document) -> Attachment | None:
        """What the owners of an object ask for; None without owners."""
        if not self._can_be_dependency(template):
            return None
        owners = {owner.key: owner for owner in self._list_dependents(template)}
        return build_attachment(sorted(owners.values(), key=lambda owner: owner.binding)) if owners else None

    def merge_dependents(self, template: Document, outcome: Outcome) -> Outcome:
        """The outcome of what is attached, at the moment of its latest cause and until its first deadline: its owners' as well."""
        owners = [found for key in self._dependencies.list_dependents(template) if (found := self._outcomes.get(key))]
        ends = [end for end in (outcome.wakeup, *(owner.wakeup for owner in owners)) if end is not None]
        return outcome._replace(time=max((outcome.time, *(owner.time for owner in owners))), wakeup=min(ends, default=None))

    def annotate_binding(self, binding: Body, template: Document, policy: PropagationPolicy, attachment: Attachment | None) -> None:
        """Write into a new binding what it owes to others, and what the next run has to know of that."""
        metadata, references = binding["metadata"], self.list_references(template)
        if references and policy.spec.get("propagateDeps"):
            metadata["annotations"][names.DEPENDENCIES_ANNOTATION] = format_references(references)
        if is_lazy(policy):
            metadata["annotations"][TEMPLATE_DIGEST] = digest_template(template)
        if attachment is not None:
            metadata["labels"].update(attachment.labels)
        shown = propagation_policy.read_schedule_priority(policy, self._state.snapshot.templates)
        if shown is not None and template.key.namespace:
            binding["spec"]["schedulePriority"] = shown

    def decision_inputs(self, template: Document) -> tuple[object, ...]:
        """What a decision reads besides the workload's own manifest and record."""
        world = self._state.snapshot
        basis: list[object] = []
        if self._can_be_dependency(template):
            for key in self._dependencies.list_dependents(template):
                basis += (world.templates[key], world.previous.get(names.binding_key(key)))
            basis += list_quarantined_dependents(self._previous_binding(template), world.previous, world.quarantined)
        if self._priority_classes:
            policy, _ = self._state.find_policy(template, self._previous_binding(template))
            name = propagation_policy.read_priority_class_name(policy) if policy else ""
            basis += (name, world.templates.get(propagation_policy.priority_class_key(name)))
        return tuple(basis)

    def affected_by(self, dirty: frozenset[Key]) -> frozenset[Key]:
        """What else has to be decided anew because these are."""
        templates = self._state.snapshot.templates
        classes = {
            key.name
            for key in dirty
            if (key.group, key.kind) == (propagation_policy.PRIORITY_CLASS_GROUP, propagation_policy.PRIORITY_CLASS_KIND)
        } & self._priority_classes
        found: set[Key] = set()
        if classes:
            found.update(template.key for template in templates.values() if self._uses_priority_class(template, classes))
        if self._propagates:
            found |= self._dependencies.update(dirty | found, templates)
        return frozenset(found) - dirty

    def _list_dependents(self, template: Document) -> Iterable[Dependent]:
        world = self._state.snapshot
        for key in self._dependencies.list_dependents(template):
            outcome = self.decide(world.templates[key])
            if outcome is not None and outcome.records:
                binding, body = outcome.records[0]
                yield Dependent(key, binding, body)
        yield from list_quarantined_dependents(self._previous_binding(template), world.previous, world.quarantined)

    def _can_be_dependency(self, template: Document) -> bool:
        return self._propagates and (template.api_version, template.key.kind) in DEPENDENCY_KINDS

    def _uses_priority_class(self, template: Document, classes: set[str]) -> bool:
        policy, _ = self._state.find_policy(template, self._previous_binding(template))
        return policy is not None and propagation_policy.read_priority_class_name(policy) in classes

    def read_references(self, template: Document) -> tuple[DependentObjectReference, ...]:
        """The references of a workload whose binding says propagateDeps, or will."""
        shape = self._state.declared_paths.get((template.api_version, template.key.kind))
        references = read_references(template, shape.pod_spec if shape else ())
        if not references:
            return ()
        record = self._previous_binding(template)
        policy, claim = self._state.find_policy(template, record)
        if policy is not None:
            brings = policy.spec.get("propagateDeps") is True
        else:
            brings = claim in self._state.snapshot.quarantined and get_field(record or {}, "spec", "propagateDeps") is True
        return references if brings else ()

    def _previous_binding(self, template: Document) -> Body | None:
        return self._state.snapshot.previous.get(names.binding_key(template.key))
