"""Describe fields that a schema does not define, and decide which of them are errors because the document chooses by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from gitsched.manifests.parsed_file import MAX_ISSUES
from gitsched.model.finding import Issue, Pointer, Severity
from gitsched.model.similar_names import find_similar
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Body

IGNORED = "is unknown and ignored"
_MAX_SHOWN = 60


Chosen = Literal["clusters", "cluster-fields", "cluster-claims", "cluster-names", "workloads", "manifests"]
"""What a selector or a list of names chooses: clusters by labels, by fields such as region, by claims or by names; or workloads. What
clusters receive, such as overriders, is "manifests"."""


class SchemaNode(NamedTuple):
    """The fields of an object's members or a list's items in a schema.

    `additional` is the schema of members without a name. With `chooses`, the object and everything in it chooses workloads or clusters.
    """

    known_names: dict[str, Any]
    is_open: bool
    additional: Body | None
    items: Body | None
    chooses: Chosen | None

    def list_members(self) -> Iterator[tuple[str, Any]]:
        """Yield the schemas of the members by name; "" for members without a name and for the items of a list."""
        yield from self.known_names.items()
        yield from (("", part) for part in (self.additional, self.items) if part is not None)


class UnknownFieldReport:
    """The issues of the first twenty unknown fields of one document; without `choosing` all are warnings, as API servers give them.

    `described` is what the warnings say of a field.
    """

    def __init__(self, choosing: ChoosingFields | None, described: str = IGNORED) -> None:
        self._choosing, self._described = choosing, described
        self.issues: list[Issue] = []

    def add(self, name: str, node: SchemaNode, holder: Body, pointer: Pointer, chooses: bool) -> None:
        """Report the field `name` of `holder`, an object of this node at `pointer`. `chooses`: everything in it chooses."""
        if len(self.issues) < MAX_ISSUES:
            field = _UnknownField(name, node, holder, pointer, chooses, _find_similar(name, node.known_names))
            self.issues.append(field.ignore(self._described) if self._choosing is None else self._choosing.describe(field))


class _UnknownField(NamedTuple):
    """A field that a schema does not define, with the object that has it. `near` is the most similar name of the object, or ""."""

    name: str
    node: SchemaNode
    holder: Body
    pointer: Pointer
    chooses: bool
    near: str

    @property
    def shown(self) -> str:
        """The name for a message."""
        return repr(self.name if len(self.name) <= _MAX_SHOWN else self.name[: _MAX_SHOWN - 3] + "...")

    def ignore(self, described: str = IGNORED) -> Issue:
        """Return the warning that the field is ignored, or what is `described`."""
        hint = f"; did you mean '{self.near}'?" if self.near else ""
        return self._report("warning", f"the field {self.shown} {described}{hint}")

    def refuse(self, hint: str) -> Issue:
        """Return the error that the document is not used because of the field."""
        return self._report(
            "error",
            f"the field {self.shown} is unknown where the document chooses, so the document's present content is not used; {hint}",
        )

    def _report(self, severity: Severity, message: str) -> Issue:
        return Issue(severity, "unknown-field", message, (*self.pointer, self.name))


class ChoosingFields:
    """The fields of one schema by which its documents choose workloads or clusters."""

    def __init__(self, root: Body, read_node: Callable[[Any], SchemaNode], ignored: frozenset[str]) -> None:
        self._read_node, self._ignored = read_node, ignored
        self._leads: dict[int, bool] = {}
        self._parents: dict[str, str] = {}
        """The path of the object that has a field, by the name of the field in lower case; the one nearest to the root."""
        self._names: dict[str, str] = {}
        self._collect_names(root)

    def describe(self, field: _UnknownField) -> Issue:
        """Return the issue of an unknown field: an error if it may stand for one that chooses."""
        elsewhere = self._find_elsewhere(field)
        if not field.chooses and not self._may_choose(field, elsewhere):
            return field.ignore()
        if elsewhere:
            parent = self._parents[elsewhere.lower()]
            if elsewhere == field.name:
                return field.refuse(
                    f"it belongs into '{parent}': check the indentation" if parent else "it belongs to the top level"
                )
            return field.refuse(f"did you mean '{elsewhere}'{f' in {parent!r}' if parent else ''}?")
        return field.refuse(f"did you mean '{field.near}'?" if field.near else "correct or remove it")

    def _find_elsewhere(self, field: _UnknownField) -> str:
        """Return the choosing field of another object that a field stands for; "" if it rather stands for one of its own object."""
        lower = field.name.lower()
        if lower in self._names and lower not in map(str.lower, field.node.known_names):
            return self._names[lower]
        return "" if field.near else _find_similar(field.name, self._names.values())

    def _may_choose(self, field: _UnknownField, elsewhere: str) -> bool:
        """Return whether an unknown field of an object that does not choose itself may stand for a field that does.

        It may if it resembles one, or if it resembles nothing and the object lacks a field that chooses.
        """
        members = field.node.known_names.items()
        leading = [name for name, part in members if name not in self._ignored and self._leads_to_choice(part)]
        if not leading:
            return False
        if elsewhere:
            return True
        return field.near in leading if field.near else any(name not in field.holder for name in leading)

    def _leads_to_choice(self, schema: Any) -> bool:
        """Return whether a schema or one of its parts chooses."""
        if id(schema) not in self._leads:
            self._leads[id(schema)] = False  # for recursive schemas
            node = self._read_node(schema)
            self._leads[id(schema)] = node.chooses is not None or any(
                self._leads_to_choice(part) for _, part in node.list_members()
            )
        return self._leads[id(schema)]

    def _collect_names(self, root: Body) -> None:
        waiting: list[tuple[str, Any, bool]] = [("", root, False)]
        seen: set[tuple[int, bool]] = set()
        for path, schema, chooses in waiting:
            node = self._read_node(schema)
            chooses = chooses or node.chooses is not None
            if (id(schema), chooses) in seen:
                continue
            seen.add((id(schema), chooses))
            for name, part in node.list_members():
                if not path and name in self._ignored:
                    continue
                if name and (chooses or self._leads_to_choice(part)):
                    self._parents.setdefault(name.lower(), path)
                    self._names.setdefault(name.lower(), name)
                waiting.append((f"{path}.{name}".strip("."), part, chooses))


def _find_similar(name: str, names: Iterable[str]) -> str:
    """Return the most similar one of some names, whatever their case; "" if none is similar."""
    by_lower = {candidate.lower(): candidate for candidate in names}
    return by_lower.get(find_similar(name.lower(), by_lower), "")
