"""Kinds whose replicas only an interpreter of the control plane knows: a script of a ResourceInterpreterCustomization, or a webhook.

gitsched runs neither. A workload of such a kind whose replicas a policy divides keeps its previous placement, unless gitsched.yaml declares
where its replicas are: without its replicas it would run in full in every cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gitsched.apis.karmada.names import CUSTOMIZATION, INTERPRETER_KINDS
from gitsched.apis.karmada.policy.policy_options import MissingPrerequisite
from gitsched.model.document import Document, as_object, get_field, list_objects, parse_api_group
from gitsched.model.finding import Finding, locate_document
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.karmada.interpreter import ReplicaRequirements
    from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
    from gitsched.apis.snapshot import Snapshot

_REPLICA_SCRIPTS = ("replicaResource", "componentResource")
_REPLICA_OPERATIONS = frozenset(("InterpretReplica", "InterpretComponent", "*"))


class InterpretedKinds(NamedTuple):
    """Objects whose replicas an interpreter knows, and the title of its document. "*" stands for any group, version or kind."""

    groups: frozenset[str]
    versions: frozenset[str]
    kinds: frozenset[str]
    interpreter: str

    def has(self, template: Document) -> bool:
        """Return whether a workload is of the kinds."""
        version = template.api_version.rpartition("/")[2]
        pairs = ((self.groups, template.key.group), (self.versions, version), (self.kinds, template.key.kind))
        return all("*" in names or name in names for names, name in pairs)


def read_interpreted_kinds(snapshot: Snapshot) -> tuple[InterpretedKinds, ...]:
    """Return the kinds whose replicas the interpreters of a source know."""
    documents = [document for kind in INTERPRETER_KINDS for document in snapshot.documents.get(kind, ())]
    return tuple(found for document in documents for found in _list_kinds(document))


def _list_kinds(document: Document) -> Iterator[InterpretedKinds]:
    title = document.key.title
    if document.key.kind == CUSTOMIZATION:
        target, scripts = get_field(document.body, "spec", "target"), as_object(get_field(document.body, "spec", "customizations"))
        api_version, kind = str(get_field(target, "apiVersion") or ""), str(get_field(target, "kind") or "")
        if any(scripts.get(name) for name in _REPLICA_SCRIPTS):
            version = api_version.rpartition("/")[2]
            yield InterpretedKinds(frozenset((parse_api_group(api_version),)), frozenset((version,)), frozenset((kind,)), title)
        return
    for rule in (rule for webhook in list_objects(document.body.get("webhooks")) for rule in list_objects(webhook.get("rules"))):
        operations, *names = (_read_texts(rule.get(name)) for name in ("operations", "apiGroups", "apiVersions", "kinds"))
        if not _REPLICA_OPERATIONS.isdisjoint(operations):
            yield InterpretedKinds(names[0], names[1], names[2], title)


def _read_texts(value: object) -> frozenset[str]:
    return frozenset(map(str, value)) if isinstance(value, list) else frozenset()


def find_missing_interpreter(
    interpreted: tuple[InterpretedKinds, ...], template: Document, policy: PropagationPolicy, requirements: ReplicaRequirements
) -> MissingPrerequisite | None:
    """Return why the replicas of a workload cannot be divided: they are not known, and an interpreter of the source knows them."""
    is_known = requirements.is_workload or requirements.replicas is not None or requirements.invalid_replicas
    if is_known or not policy.placement.is_divided:
        return None
    interpreter = next((kinds.interpreter for kinds in interpreted if kinds.has(template)), None)
    if interpreter is None:
        return None
    message = (
        f"{template.key} has no known replicas, which {policy.key.title} divides: {interpreter} says where they are, and gitsched runs no "
        f"interpreters. Declare the replicas of {template.api_version} {template.key.kind} under spec.workloads in gitsched.yaml"
    )
    finding = Finding("error", "karmada-interpreter", message, locate_document(template), template.key.resource)
    return MissingPrerequisite(f"its replicas are known to {interpreter} only", finding)
