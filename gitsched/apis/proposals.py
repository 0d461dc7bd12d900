"""Build the document changes that a policy API proposes to bring a workload to a cluster; no document is changed in place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gitsched.apis.engine import ChangeProposal
from gitsched.model.document import Body, Document
from gitsched.model.explanation import ProposedChange
from gitsched.model.finding import FieldOrigin, Pointer
from gitsched.model.labels import Requirement
from gitsched.model.taints import Taint


def propose_edit(text: str, document: Document, path: Pointer, value: Any, pointer: Pointer | None = None) -> ChangeProposal:
    """A change of one place of a document; `pointer` is where somebody should look, if that is another one."""
    changed = document._replace(body=set_at(document.body, path, value))
    return ChangeProposal(describe_change(text, document, path if pointer is None else pointer), changed)


def describe_change(text: str, document: Document | None, pointer: Pointer = ()) -> ProposedChange:
    """A change that is said, with its place."""
    origin = document.origin if document is not None else None
    rule = FieldOrigin(origin, pointer) if origin is not None else None
    return ProposedChange(text, f"{origin.path}:{origin.line}" if origin is not None else "", rule)


def propose_labels(document: Document, labels: Mapping[str, str], asked: Iterable[Requirement]) -> ChangeProposal | None:
    """The labels that a selector asks for and a cluster does not have."""
    new, told = dict(labels), []
    for requirement in (requirement for requirement in asked if not requirement.matches(labels)):
        if requirement.operator in ("NotIn", "DoesNotExist"):
            told.append(f"not the label {requirement.key}={new.pop(requirement.key)}")
        else:
            new[requirement.key] = requirement.values[0] if requirement.values else "true"
            told.append(f"the label {requirement.key}={new[requirement.key]}")
    return propose_edit(f"it had {' and '.join(told)}", document, ("metadata", "labels"), new) if told else None


def propose_undelete(document: Document) -> ChangeProposal:
    """A document whose object stays."""
    metadata = {name: value for name, value in document.body["metadata"].items() if name != "deletionTimestamp"}
    return propose_edit("it were not being deleted", document, ("metadata",), metadata, ("metadata", "deletionTimestamp"))


def make_toleration(taint: Taint) -> Body:
    """The toleration of exactly one taint."""
    matching = {"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}
    return {"key": taint.key, "effect": taint.effect, **matching}


def get_at(value: Any, path: Pointer) -> Any:
    """What stands at a place; None where nothing does."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def set_at(value: Any, path: Pointer, new: Any) -> Any:
    """A copy with something else at a place; members that are not there are made."""
    if not path:
        return new
    step, *rest = path
    if isinstance(step, int):
        return [set_at(entry, tuple(rest), new) if i == step else entry for i, entry in enumerate(value)]
    members = value if isinstance(value, dict) else {}
    return {**members, step: set_at(members.get(step), tuple(rest), new)}
