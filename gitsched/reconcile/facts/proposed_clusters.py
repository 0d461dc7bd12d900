"""Leave invalid labels, zones and taints of a hub or of nodes out of the document that is proposed for a cluster."""

from __future__ import annotations

from typing import Any, Final

from gitsched.decide.validation import validate_document
from gitsched.model.document import Body, as_object
from gitsched.model.finding import Pointer
from gitsched.model.labels import is_label

_OPTIONAL: Final = (
    ("metadata", "labels"),
    ("metadata", "annotations"),
    ("spec", "labels"),
    ("spec", "region"),
    ("spec", "provider"),
    ("spec", "zones"),
    ("spec", "taints"),
)
"""Members of which a document can lack a part."""
_MAX_DROPPED: Final = 50
"""Parts that are left out; a document with more problems is not proposed."""


def drop_invalid_metadata(body: Body) -> tuple[Body, tuple[str, ...]]:
    """Return a document without invalid labels and other optional parts that are not valid, and a note about each."""
    notes: list[str] = []
    labels = as_object(as_object(body.get("metadata")).get("labels"))
    for name, value in labels.items():
        if not is_label(name, value):
            body = _remove(body, ("metadata", "labels", name))
            notes.append(f"the label {name[:100]}: {value!r:.100} is left out: Kubernetes does not accept it")
    for _ in range(_MAX_DROPPED):
        errors = [issue for issue in validate_document(body).issues if issue.severity == "error"]
        found = next((issue for issue in errors if any(issue.pointer[: len(known)] == known for known in _OPTIONAL)), None)
        if found is None:
            break
        depth = 2 if found.pointer[:2] in (("spec", "region"), ("spec", "provider")) else 3
        body = _remove(body, found.pointer[:depth])
        notes.append(f"{'.'.join(map(str, found.pointer[:depth]))} is left out: {found.message}")
    return body, tuple(notes)


def _remove(value: Any, pointer: Pointer) -> Any:
    """Return a value without the part at a pointer; a mapping or list without entries is left out, too."""
    first, rest = pointer[0], pointer[1:]
    if isinstance(value, list) and isinstance(first, int):
        return [_remove(entry, rest) if rest and at == first else entry for at, entry in enumerate(value) if rest or at != first]
    if not isinstance(value, dict) or first not in value:
        return value
    if not rest:
        return {name: entry for name, entry in value.items() if name != first}
    changed = _remove(value[first], rest)
    return {name: changed if name == first else entry for name, entry in value.items() if name != first or changed not in ({}, [])}
