"""Build the document changes that a policy API proposes to bring a workload to a cluster; no document is changed in place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gitsched.apis.capabilities import ChangeProposal
from gitsched.apis.cluster_format import replace_condition
from gitsched.model.cluster_facts import Readiness
from gitsched.model.document import as_object, list_objects
from gitsched.model.explanation import ProposedChange
from gitsched.model.finding import Pointer, join_all, locate_field
from gitsched.model.known_values import find_near
from gitsched.model.labels import format_requirement

if TYPE_CHECKING:
    from gitsched.apis.topology import MaintenanceTaints
    from gitsched.model.document import Body, Document
    from gitsched.model.labels import Requirement
    from gitsched.model.taints import Taint


def propose_edit(text: str, document: Document, path: Pointer, value: Any, pointer: Pointer | None = None) -> ChangeProposal:
    """Propose a new value at a path of a document; `pointer` is the field to show, if it is not the path."""
    changed = document._replace(body=set_at(document.body, path, value))
    return ChangeProposal(describe_change(text, document, path if pointer is None else pointer), changed)


def describe_change(text: str, document: Document | None, pointer: Pointer = ()) -> ProposedChange:
    """Return a proposed change with the location of the field to edit."""
    origin = document.origin if document is not None else None
    rule = locate_field(origin, pointer)
    return ProposedChange(text, f"{origin.path}:{origin.line}" if origin is not None else "", rule)


def propose_labels(document: Document, labels: Mapping[str, str], requirements: Iterable[Requirement]) -> ChangeProposal | None:
    """Propose the labels that a selector requires and a cluster does not have; None if it has them all. Where conditions on one
    label exclude each other, say so."""
    new, changes, required = dict(labels), [], tuple(requirements)
    for key in dict.fromkeys(requirement.key for requirement in required if not requirement.matches(labels)):
        own = [requirement for requirement in required if requirement.key == key]
        wanted = (value for requirement in own if requirement.operator == "In" for value in requirement.values)
        for value in (None, *wanted, "true", "other"):
            if all(requirement.matches({} if value is None else {key: value}) for requirement in own):
                break
        else:
            text = join_all(list(map(format_requirement, own)))
            return ChangeProposal(ProposedChange(f"the conditions {text} did not exclude each other"))
        if value is None:
            changes.append(f"not the label {key}={new.pop(key)}")
        else:
            new[key] = value
            changes.append(f"the label {key}={value}")
    return propose_edit(f"it had {' and '.join(changes)}", document, ("metadata", "labels"), new) if changes else None


def find_misspelling(
    requirements: Iterable[Requirement], labels: Mapping[str, str], fleet: Iterable[Mapping[str, str]]
) -> tuple[Requirement, str, str] | None:
    """Return a condition that no cluster of a fleet satisfies and that is similar to one that some do, with the label of a cluster that
    would satisfy it in its place; None if there is none."""
    known = list(fleet)
    for requirement in requirements:
        if requirement.operator != "In" or requirement.matches(labels):
            continue
        key, values = requirement.key, {one[requirement.key] for one in known if requirement.key in one}
        if not values:
            near = find_near(key, {name for one in known for name in one})
            if near in labels:
                return requirement, near, labels[near]
        elif key in labels and values.isdisjoint(requirement.values) and any(find_near(one, values) for one in requirement.values):
            return requirement, key, labels[key]
    return None


def propose_undelete(document: Document) -> ChangeProposal:
    """Propose to keep an object that is being deleted."""
    metadata = {name: value for name, value in document.body["metadata"].items() if name != "deletionTimestamp"}
    return propose_edit("it were not being deleted", document, ("metadata",), metadata, ("metadata", "deletionTimestamp"))


def propose_taint_end(
    document: Document | None, taint: Taint, taints: MaintenanceTaints | None, condition: str
) -> ChangeProposal | None:
    """Propose to end the drain or the cordon to which a taint of a cluster belongs, or that the cluster is not ready or not observed,
    which facts with the `condition` end; None for any other taint."""
    if document is None or taints is None:
        return None
    if taint.key in taints.automatic:
        body = taints.remove(document.body, taints.automatic)
        status = as_object(body.get("status"))
        ready = {**body, "status": {**status, "conditions": replace_condition(status, condition, Readiness("True"))}}
        text = f"current facts said that it is ready, so that it had no taint {taint}"
        return ChangeProposal(describe_change(text, document), document._replace(body=ready))
    if taint.key not in taints.own_keys:
        return None
    changed = taints.remove(document.body, taints.own_keys)
    if changed is document.body:
        return None
    entries = list_objects(as_object(document.body.get("spec")).get("taints"))
    index = next(index for index, entry in enumerate(entries) if entry.get("key") in taints.own_keys)
    text = f"gitsched uncordon {document.key.name} had removed its taint {taint}"
    return ChangeProposal(describe_change(text, document, ("spec", "taints", index)), document._replace(body=changed))


def make_toleration(taint: Taint) -> Body:
    """Return a toleration that matches exactly one taint."""
    matching = {"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}
    return {"key": taint.key, "effect": taint.effect, **matching}


def get_at(value: Any, path: Pointer) -> Any:
    """Return the value at a path; None if there is none."""
    for part in path:
        if isinstance(part, int):
            value = value[part] if isinstance(value, list) and part < len(value) else None
        else:
            value = value.get(part) if isinstance(value, dict) else None
    return value


def set_at(value: Any, path: Pointer, new: Any) -> Any:
    """Return a copy with another value at a path; missing objects on the way are created."""
    if not path:
        return new
    step, *rest = path
    if isinstance(step, int):
        return [set_at(entry, tuple(rest), new) if i == step else entry for i, entry in enumerate(value)]
    members = value if isinstance(value, dict) else {}
    return {**members, step: set_at(members.get(step), tuple(rest), new)}
