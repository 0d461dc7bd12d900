"""Dependencies distributor: which objects the workloads with propagateDeps refer to, which companions follow workloads, and which
decisions depend on each other.

A companion that follows is a dependency of the workload, as if Karmada's interpreter of the workload's kind returned it.

References are read from the templates alone, before any decision. The decision about an object needs the bindings of its dependents,
so they are decided first although outcomes are computed in the order of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Protocol

from gitsched.apis.companions import CompanionFollowers
from gitsched.apis.karmada import names
from gitsched.apis.karmada.binding.resource_binding import binding_key
from gitsched.apis.karmada.dependencies.attached_binding import Attachment, Dependent, build_attachment
from gitsched.apis.karmada.dependencies.dependency_index import MAX_REACHED, DependencyIndex
from gitsched.apis.karmada.dependencies.references import (
    DependentObjectReference,
    find_written_secret_key,
    format_references,
    read_references,
    sort_references,
)
from gitsched.apis.karmada.policy.policy_options import (
    PRIORITY_CLASS_GROUP,
    PRIORITY_CLASS_KIND,
    TEMPLATE_DIGEST,
    digest_template,
    priority_class_key,
    read_schedule_priority,
)
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.apis.karmada.state import KarmadaState
from gitsched.kinds.companion_kinds import COMPANION_KINDS
from gitsched.kinds.companion_targets import NO_FEATURES, read_features
from gitsched.model.document import Body, Document, Key, get_field, list_objects, parse_api_group
from gitsched.model.finding import Finding, locate_document
from gitsched.model.scheduling import Outcome, TargetCluster
from gitsched.model.variants import BUNDLE_KIND, Variant


class WorkloadDecider(Protocol):
    """The engine, which decides one workload."""

    def decide_workload(self, template: Document, /) -> Outcome | None: ...


class DependenciesDistributor:
    """Dependencies of the workloads of one commit. Outcomes of dependents are cached until the snapshot changes."""

    __slots__ = ("_decider", "_dependencies", "_followers", "_outcomes", "_priority_classes", "_propagates", "_state")

    def __init__(self, state: KarmadaState, decider: WorkloadDecider) -> None:
        self._set_state(state, decider)
        templates = state.snapshot.templates
        self._dependencies = DependencyIndex(templates if self._propagates else {}, self)
        self._followers = CompanionFollowers(templates, state.snapshot.config) if state.has_followers else None

    def _set_state(self, state: KarmadaState, decider: WorkloadDecider) -> None:
        self._state, self._decider = state, decider
        self._priority_classes = frozenset({policy.priority_class_name for policy in state.policies.policies.values()} - {""})
        # A Lazy or a quarantined policy may have had propagateDeps when bindings were last written.
        quarantined = any(key.group == names.POLICY_GROUP for key in state.snapshot.quarantined)
        self._propagates = state.brings_dependencies or quarantined
        self._outcomes: dict[Key, Outcome | None] = {}

    def continue_with(self, state: KarmadaState, decider: WorkloadDecider) -> DependenciesDistributor:
        """Return the distributor of another state. Both know the references and companions of the same templates: what one of them updates,
        the other one has as well."""
        other = copy(self)
        other._set_state(state, decider)
        return other

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        """Return what is stored with an engine: the outcomes belong to a snapshot."""
        return None, {name: getattr(self, name) for name in self.__slots__} | {"_outcomes": {}}

    def clear(self) -> None:
        """Forget all outcomes: the snapshot has changed."""
        self._outcomes.clear()

    @property
    def revision(self) -> int:
        """How many workloads have changed their references or companions since the engine was created."""
        return self._dependencies.revision + (self._followers.revision if self._followers is not None else 0)

    def list_references(self, template: Document) -> tuple[DependentObjectReference, ...]:
        """Return what a workload depends on, whether it is in the repository or not."""
        return self._dependencies.references.get(template.key, ())

    def list_findings(self, template: Document) -> Iterator[Finding]:
        """Yield the warning that a workload refers to more objects than come along."""
        if self._dependencies.is_cut(template.key):
            message = (
                f"{template.key} refers, directly or through others, to more than {MAX_REACHED} objects: the rest does not come along; "
                "divide it, or place these objects with a policy"
            )
            yield Finding("warning", "dependencies-limit", message, locate_document(template), template.key.resource)

    def decide(self, template: Document) -> Outcome | None:
        """Decide a workload, once per snapshot if it depends on other objects or companions may follow it."""
        key = template.key
        is_followed = self._followers is not None and self._followers.is_workload(key)
        if not is_followed and key not in self._dependencies.references:
            return self._decider.decide_workload(template)
        if key not in self._outcomes:
            self._outcomes[key] = self._decider.decide_workload(template)
        return self._outcomes[key]

    @property
    def relates_objects(self) -> bool:
        """Whether objects may bring others along, besides that policies name PriorityClasses."""
        return self._propagates or self._followers is not None

    def find_attachment(self, template: Document) -> Attachment | None:
        """Return what the dependents of an object require; None without dependents."""
        if not self.relates_objects:
            return None
        dependents = {dependent.key: dependent for dependent in self._list_dependents(template)}
        return build_attachment(sorted(dependents.values(), key=lambda dependent: dependent.binding)) if dependents else None

    def merge_dependents(self, template: Document, outcome: Outcome) -> Outcome:
        """Return the outcome of an attached object with the latest time and the first deadline among it and its dependents.

        It stays with dependents that are held in a cluster without a document.
        """
        keys = (*self._dependencies.list_dependents(template), *self._list_followed(template))
        dependents = [found for key in keys if (found := self._outcomes.get(key))]
        ends = [end for end in (outcome.wakeup, *(dependent.wakeup for dependent in dependents)) if end is not None]
        latest = max((outcome.time, *(dependent.time for dependent in dependents)))
        lost = {name for dependent in dependents if dependent.held is not None for name in dependent.held.lost}
        lost -= {target.cluster for target in outcome.targets}
        targets = (*outcome.targets, *(TargetCluster(name, keeps_manifest=True) for name in sorted(lost)))
        return outcome._replace(targets=targets, time=latest, wakeup=min(ends, default=None))

    def annotate_binding(self, binding: Body, template: Document, policy: PropagationPolicy, attachment: Attachment | None) -> None:
        """Add to a new binding its dependencies, the labels of its dependents, the digest of a Lazy policy and its priority."""
        metadata, references = binding["metadata"], self.list_references(template)
        annotations = dict(metadata["annotations"])
        if references and policy.spec.get("propagateDeps"):
            annotations[names.DEPENDENCIES_ANNOTATION] = format_references(references)
        if policy.is_lazy:
            annotations[TEMPLATE_DIGEST] = digest_template(template)
        metadata["annotations"] = annotations
        if attachment is not None:
            metadata["labels"].update(attachment.labels)
        if template.key.namespace and "schedulePriority" in policy.spec:
            priority = read_schedule_priority(policy, self._state.snapshot.templates)
            if priority is not None:
                binding["spec"]["schedulePriority"] = priority

    def decision_inputs(self, template: Document) -> tuple[object, ...]:
        """Return what a decision reads besides the workload's own manifest and binding."""
        snapshot = self._state.snapshot
        inputs: list[object] = []
        if self.relates_objects:
            for key in (*self._dependencies.list_dependents(template), *self._list_followed(template)):
                inputs += (snapshot.templates[key], snapshot.previous.get(binding_key(key)))
            record = self._state.find_record(template)
            inputs += list_quarantined_dependents(record, snapshot.previous, snapshot.quarantined)
        if self._priority_classes:
            policy, _ = self._state.find_policy(template, self._state.find_record(template))
            name = policy.priority_class_name if policy else ""
            inputs += (name, snapshot.templates.get(priority_class_key(name)))
        return tuple(inputs)

    def affected_by(self, dirty: frozenset[Key]) -> frozenset[Key]:
        """Return the other workloads that must be decided again because these have changed."""
        templates = self._state.snapshot.templates
        classes = {
            key.name for key in dirty if (key.group, key.kind) == (PRIORITY_CLASS_GROUP, PRIORITY_CLASS_KIND)
        } & self._priority_classes
        found: set[Key] = set()
        if classes:
            found.update(template.key for template in templates.values() if self._uses_priority_class(template, classes))
        pending = {*dirty, *found}
        while pending:
            new = self._dependencies.update(pending, templates, self) if self._propagates else set[Key]()
            if self._followers is not None:
                new |= self._followers.update(pending, templates)
            pending = new - found - dirty
            found |= new
        return frozenset(found) - dirty

    def list_required(self, workloads: frozenset[Key]) -> frozenset[Key]:
        """Return the objects that workloads without a document brought along in the last run."""
        bindings = {(key.namespace, key.name) for key in map(binding_key, workloads)}
        return frozenset(
            key
            for key, template in self._state.snapshot.templates.items()
            for entry in list_objects(get_field(self._state.find_record(template) or {}, "spec", "requiredBy"))
            if (entry.get("namespace"), entry.get("name")) in bindings
        )

    def list_related(self) -> Iterator[Key]:
        """Yield all objects that bring others along, that may be brought along, and that lead to these."""
        yield from self._dependencies.list_related()
        if self._followers is not None:
            yield from self._followers.list_related()

    def may_be_brought(self, key: Key) -> bool:
        """Return whether other objects may bring an object along: more often than they do."""
        followed = self._followers is not None and bool(self._followers.list_workloads(key))
        return followed or self._dependencies.may_have_dependents(key)

    def list_reached(self, template: Document, templates: Mapping[Key, Document]) -> frozenset[Key] | None:
        """Return the objects that a template refers to, directly or through others, whether its policy has propagateDeps or not; None if
        other things relate it to objects, or if this cannot be told from single templates."""
        if self._followers is not None or find_written_secret_key(template) is not None:
            return None
        return self._dependencies.list_reached(self.read_references(template), templates, self)

    def relates_alike(self, before: Document | None, after: Document | None) -> bool:
        """Return whether an object refers to the same others before and after a change, and has the same part in what follows."""
        sides = [
            (
                self.read_references(one),
                find_written_secret_key(one),
                read_features(one.key, one.body, self._state.snapshot.config.pod_paths),
            )
            if one is not None
            else ((), None, NO_FEATURES)
            for one in (before, after)
        ]
        return sides[0] == sides[1]

    def read_references(self, template: Document) -> tuple[DependentObjectReference, ...]:
        """Return what an object refers to, whether its policy has propagateDeps or not; of a Bundle, what its objects refer to and do not
        have among them."""
        variants = self._state.snapshot.variants.get(template.key) if template.key[:2] == BUNDLE_KIND else None
        if variants is not None:
            found = {reference for variant in variants.variants for reference in self._read_outside_references(variant)}
            return sort_references(found)
        paths = self._state.declared_paths.get((template.api_version, template.key.kind))
        return read_references(template, paths.pod_spec if paths else ())

    def _read_outside_references(self, variant: Variant) -> Iterator[DependentObjectReference]:
        """Yield what the objects of a variant refer to, without its own objects."""
        own = {document.key for document in variant.objects}
        for document in variant.objects:
            for reference in self.read_references(document):
                if not reference.name or reference.key not in own:
                    yield reference

    def propagates(self, template: Document) -> bool:
        """Return whether the binding of a workload has propagateDeps, or will have it."""
        record = self._state.find_record(template)
        policy, claim = self._state.find_policy(template, record)
        if policy is not None:
            return policy.spec.get("propagateDeps") is True
        quarantined = claim in self._state.snapshot.quarantined
        return quarantined and get_field(record or {}, "spec", "propagateDeps") is True

    def _list_dependents(self, template: Document) -> Iterable[Dependent]:
        snapshot, followed = self._state.snapshot, self._list_followed(template)
        for key in dict.fromkeys((*self._dependencies.list_dependents(template), *followed)):
            outcome = self.decide(snapshot.templates[key])
            if outcome is not None and outcome.records:
                binding, body = outcome.records[0]
                yield Dependent(key, binding, body, key in followed)
        for dependent in list_quarantined_dependents(self._state.find_record(template), snapshot.previous, snapshot.quarantined):
            yield dependent._replace(followed=template.key[:2] in COMPANION_KINDS and self._followers is not None)

    def list_companions(self, workload: Key) -> list[Key]:
        """Return the companions that follow a workload."""
        if self._followers is None:
            return []
        templates = self._state.snapshot.templates
        found = (key for key in self._followers.list_companions(workload) if key in templates)
        return sorted(key for key in found if workload in self._list_followed(templates[key]))

    def _list_followed(self, template: Document) -> list[Key]:
        """Return the workloads that a companion follows; [] for another object."""
        followers, state = self._followers, self._state
        if followers is None or template.key[:2] not in COMPANION_KINDS:
            return []
        found: list[Key] = []
        for key in followers.list_workloads(template.key):
            workload = state.snapshot.templates[key]
            policy, _ = state.find_policy(workload, state.find_record(workload))
            if followers.follows(template.key, policy.document if policy is not None else None):
                found.append(key)
        return found

    def _uses_priority_class(self, template: Document, classes: set[str]) -> bool:
        policy, _ = self._state.find_policy(template, self._state.find_record(template))
        return policy is not None and policy.priority_class_name in classes


def list_quarantined_dependents(
    record: Body | None, bindings: Mapping[Key, Body], quarantined: frozenset[Key]
) -> Iterator[Dependent]:
    """Yield the dependents of the last run whose document is quarantined now: their binding is kept, and so is what it requires."""
    for entry in list_objects(get_field(record or {}, "spec", "requiredBy")) if quarantined else ():
        binding = Key(names.WORK_GROUP, names.BINDING, str(entry.get("namespace") or ""), str(entry.get("name")))
        body = bindings.get(binding)
        resource = get_field(body or {}, "spec", "resource")
        if body is None or not isinstance(resource, dict):
            continue
        group, kind = parse_api_group(str(resource.get("apiVersion"))), str(resource.get("kind"))
        key = Key(group, kind, str(resource.get("namespace") or ""), str(resource.get("name")))
        if key in quarantined:
            yield Dependent(key, binding, body)
