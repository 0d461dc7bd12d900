"""Objects of a dump, as they are read from YAML and from JSON, without what nobody needs."""

from __future__ import annotations

from typing import Any, Final, Self

from gitsched.model.document import Body
from gitsched.named_tuples import NamedTuple

NAMELESS: Final = "it has no apiVersion, kind and name"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_DROPPED_MEMBERS = frozenset(("data", "binaryData", "stringData"))


class DumpedObject(NamedTuple):
    """One object of a dump, or why it cannot be read; `line` and `column` are where it begins, or where the problem is."""

    body: Body | None
    line: int
    column: int = 1
    problem: str = ""


class DumpEnd(NamedTuple):
    """The end of a dump. `cut`: the text ends before the dump does, at this line and column, so that further objects may be missing."""

    cut: bool
    line: int = 1
    column: int = 1


class ListType(NamedTuple):
    """The kind of a List, and with it that of items that do not say theirs."""

    api_version: str = ""
    kind: str = ""

    @property
    def is_typed(self) -> bool:
        return self.kind.endswith("List") and self.kind != "List" and bool(self.api_version)

    @property
    def members(self) -> Body:
        return {"apiVersion": self.api_version, "kind": self.kind.removesuffix("List")}

    @classmethod
    def read(cls, value: Any) -> Self:
        """Return the kind that an object says; none if it says none."""
        members = value if isinstance(value, dict) else {}
        return cls(*(text if isinstance(text := members.get(name), str) else "" for name in ("apiVersion", "kind")))


def drop_members(body: Body) -> Body:
    """Return an object without values of Secrets and ConfigMaps, without managedFields and without what kubectl applied last."""
    metadata = body.get("metadata")
    found = {name: member for name, member in body.items() if name not in _DROPPED_MEMBERS}
    if isinstance(metadata, dict):
        annotations = metadata.get("annotations")
        kept = {name: member for name, member in metadata.items() if name != "managedFields"}
        if isinstance(annotations, dict) and _LAST_APPLIED in annotations:
            kept["annotations"] = {name: text for name, text in annotations.items() if name != _LAST_APPLIED}
        found["metadata"] = kept
    return found
