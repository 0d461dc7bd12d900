"""Report objects of a dump that a controller made, such as the Pods of a ReplicaSet: the controller of each cluster makes its own."""

from __future__ import annotations

from collections.abc import Iterator

from gitsched.model.document import Document, get_field, list_objects
from gitsched.model.finding import Finding, locate_document
from gitsched.model.scheduling import Outcome

MADE_BY_CONTROLLER = "made-by-controller"


def find_controlled(document: Document, outcome: Outcome) -> Iterator[Finding]:
    """Yield a warning if the controller of an object with owners is one of them, and the object is delivered."""
    owners = list_objects(get_field(document.body, "metadata", "ownerReferences"))
    owner = next((owner for owner in owners if owner.get("controller") is True), None)
    if owner is None or not outcome.targets:
        return
    title = f"{owner.get('kind')}/{owner.get('name')}"
    message = (
        f"{document.key} is made by the controller of {title}, which makes one in each cluster as well, and {outcome.policy} delivers a "
        "second one: remove it from the source, and leave what controllers make out of dumps"
    )
    yield Finding("warning", MADE_BY_CONTROLLER, message, locate_document(document), document.key.resource)
