"""The rules of several override policies, combined for each cluster so that each of many workloads needs few steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from gitsched.apis.karmada.overrides.json_patch import InapplicablePatch, PatchedObject, parse_pointer
from gitsched.apis.karmada.overrides.overriders import (
    apply_entry,
    apply_overriders,
    change_images,
    check_identity,
    find_labels,
    list_entries,
    override_image,
)
from gitsched.model.document import get_field
from gitsched.model.finding import FieldOrigin
from gitsched.model.json_values import is_same_json
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Body, Document, Key
    from gitsched.model.finding import Pointer
    from gitsched.model.scheduling import Affinity
    from gitsched.schedule.fleet import Fleet

_MAX_IMAGES = 1_000
"""Maximum number of images whose changed name is remembered for other workloads."""


class OverrideRule(NamedTuple):
    """Overriders for some clusters, all of them when `affinity` is None.

    `pointer` is their location in the policy; `duplicated` says that the policy is defined more than once, so it is unknown which
    definition applies.
    """

    policy: Document
    affinity: Affinity | None
    overriders: Body
    pointer: Pointer
    duplicated: bool

    @property
    def matches_by_name(self) -> bool:
        """Whether the name of a cluster is sufficient to match it."""
        return self.affinity is None or (self.affinity.labels is None and not self.affinity.fields and not self.affinity.invalid)


class InapplicableOverride(NamedTuple):
    """A rule that cannot be applied to a workload, and the reason."""

    rule: OverrideRule
    reason: str
    pointer: Pointer


class CombinedRules:
    """Rules that apply one after the other. Equal rules of several clusters and workloads are mostly the same object."""

    def __init__(self, rules: tuple[OverrideRule, ...]) -> None:
        self.rules = rules

    @cached_property
    def steps(self) -> list[_Step]:
        """The changes of all rules, in an order that gives the same result. Labels, annotations and images change once, where the first
        rule changes them, unless another change between may concern the same field."""
        steps: list[_Step] = []
        combined: dict[str, _MetadataChange | _ImageChange] = {}
        for rule in self.rules:
            is_checked = False
            for name, index, entry in list_entries(rule.overriders):
                path = _find_path(name, entry)
                if path is None and name in combined:
                    combined[name].add(entry)
                    continue
                change: Callable[[PatchedObject], None] = partial(apply_entry, name=name, entry=entry)
                if path is not None:
                    is_checked = is_checked or path[:1] in ((), ("apiVersion",), ("kind",)) or path[:2] in _NAMES
                    if name == "plaintext" and path:
                        change = partial(PatchedObject.apply, operator=entry["operator"], steps=path, value=entry.get("value"))
                    for other in _ABOUT_METADATA if path[:1] == ("metadata",) else (*_ABOUT_METADATA, _IMAGE):
                        combined.pop(other, None)
                elif name in _ABOUT_METADATA or name == _IMAGE:
                    made = combined[name] = _ImageChange() if name == _IMAGE else _MetadataChange(_ABOUT_METADATA[name])
                    made.add(entry)
                    change = made.apply
                steps.append(_Step(change, rule, name, index))
            if is_checked:
                steps.append(_Step(check_identity, rule))
        return steps


class _Step(NamedTuple):
    """A change, and the first overrider that makes it; no `name` for what is about the rule."""

    apply: Callable[[PatchedObject], None]
    rule: OverrideRule
    name: str = ""
    entry: int = 0


def apply_rules(before: Body, combined: Sequence[CombinedRules]) -> Body | InapplicableOverride:
    """Return an object with all changes of rules, or the first rule that cannot be applied."""
    patched = PatchedObject(before)
    for rules in combined:
        for change, rule, name, entry in rules.steps:
            try:
                change(patched)
            except InapplicablePatch as error:
                if name == _IMAGE:  # another rule may have failed before the one whose change was combined with others
                    return _apply_in_order(before, [rule for rules in combined for rule in rules.rules])
                reason = f"{name}[{entry}]: {error}" if name else str(error)
                return InapplicableOverride(rule, reason, (*rule.pointer, *((name, entry) if name else ())))
    changed: Body = patched.root
    return changed


def _apply_in_order(before: Body, rules: Sequence[OverrideRule]) -> Body | InapplicableOverride:
    """Return what `apply_rules` does, without combining anything."""
    patched = PatchedObject(before)
    for rule in rules:
        try:
            apply_overriders(patched, rule.overriders)
        except InapplicablePatch as error:
            return InapplicableOverride(rule, str(error), (*rule.pointer, *error.pointer))
    changed: Body = patched.root
    return changed


def find_overrider(before: Body, combined: Iterable[CombinedRules], path: Sequence[str]) -> FieldOrigin | None:
    """Return the overrider that changes a field of an object last; None if none does, or its policy was not read from a file."""
    patched = PatchedObject(before)
    value, found = get_field(before, *path), None
    for rule in (rule for rules in combined for rule in rules.rules):
        for name, index, entry in list_entries(rule.overriders):
            try:
                apply_entry(patched, name, entry)
            except InapplicablePatch:
                return None
            changed = get_field(patched.root, *path)
            if not is_same_json(value, changed):
                value, found = changed, (rule, (*rule.pointer, name, index))
    if found is None or found[0].policy.origin is None:
        return None
    return FieldOrigin(found[0].policy.origin, found[1])


def list_effective(before: Body, combined: Iterable[CombinedRules]) -> set[tuple[Key, str]] | None:
    """Return the overriders that change an object, each by its policy and name; None if one cannot be applied."""
    found = set()
    for rule in (rule for rules in combined for rule in rules.rules):
        for name, _, entry in list_entries(rule.overriders):
            patched = PatchedObject(before)
            try:
                apply_entry(patched, name, entry)
            except InapplicablePatch:
                return None
            if not is_same_json(before, patched.root):
                found.add((rule.policy.key, name))
            before = patched.root
    return found


def assign_rules(rules: Sequence[OverrideRule], fleet: Fleet) -> dict[str, CombinedRules | None]:
    """Return the rules of each cluster that has any, the same object for equal rules; None if the rules are unknown."""
    masks = [fleet.all if rule.affinity is None else fleet.matching(rule.affinity) for rule in rules]
    unknown = 0 if all(rule.matches_by_name for rule in rules) else fleet.frozen
    for rule, mask in zip(rules, masks, strict=True):
        unknown |= mask if rule.duplicated else 0
    parts: list[tuple[int, _Chain | None]] = [(fleet.all & ~unknown, None)]
    for rule, mask in zip(rules, masks, strict=True):
        split: list[tuple[int, _Chain | None]] = []
        for part, before in parts:
            if inside := part & mask:
                split.append((inside, (before, rule)))
            if inside != part:
                split.append((part & ~inside, before))
        parts = split
    by_cluster: dict[str, CombinedRules | None] = {fleet.names[index]: None for index in fleet.members(unknown)}
    for part, chain in parts:
        if chain is not None:
            by_cluster |= dict.fromkeys((fleet.names[index] for index in fleet.members(part)), CombinedRules(_list_rules(chain)))
    return by_cluster


_Chain = tuple[Any, "OverrideRule"]
"""The rules of some clusters: those before, as another chain or None, and the last one."""


def _list_rules(chain: _Chain | None) -> tuple[OverrideRule, ...]:
    rules = []
    while chain is not None:
        chain, rule = chain
        rules.append(rule)
    return tuple(reversed(rules))


_IMAGE = "imageOverrider"
_NAMES = (("metadata",), ("metadata", "name"), ("metadata", "namespace"))
_ABOUT_METADATA = {"labelsOverrider": "labels", "annotationsOverrider": "annotations"}


def _find_path(name: str, entry: Body) -> tuple[str, ...] | None:
    """Return the path of the field that an entry changes, if the entry says it; an empty one where it is malformed."""
    predicate = entry.get("predicate") if name == _IMAGE else None
    member = {"plaintext": "path", "fieldOverrider": "fieldPath"}.get(name)
    text = predicate["path"] if predicate is not None else entry[member] if member else None
    try:
        return None if text is None else parse_pointer(text)
    except InapplicablePatch:
        return ()


class _Effect(NamedTuple):
    """What becomes of a label: its text if the object has it, and if it has not. `is_removed_first`: it is written behind the others."""

    present: object
    absent: object
    is_removed_first: bool


_KEPT: Final = object()
_REMOVED: Final = object()
_NO_EFFECT = _Effect(_KEPT, _REMOVED, False)


class _MetadataChange:
    """What several overriders do to the labels or the annotations of an object."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._effects: dict[str, _Effect] = {}
        self._adds = False

    def add(self, entry: Body) -> None:
        operator = entry["operator"]
        for key, text in entry["value"].items():
            present, absent, is_removed_first = old = self._effects.get(key, _NO_EFFECT)
            if operator == "remove":
                new = _Effect(_REMOVED, _REMOVED, True)
            elif operator == "replace":
                new = old._replace(
                    present=text if present is not _REMOVED else _REMOVED, absent=text if absent is not _REMOVED else _REMOVED
                )
            else:
                new, self._adds = _Effect(text, text, is_removed_first), True
                if absent is _REMOVED:
                    self._effects.pop(key, None)  # it follows the labels that are added before
            self._effects[key] = new

    def apply(self, patched: PatchedObject) -> None:
        present = find_labels(patched, self._target)
        path = ("metadata", self._target)
        if present is None and self._adds:
            patched.apply("add", path, {})
        for key, effect in self._effects.items():
            is_present = key in (present or ())
            if is_present and effect.is_removed_first:
                patched.apply("remove", (*path, key))
            text = effect.present if is_present else effect.absent
            if text is not _KEPT and text is not _REMOVED:
                patched.apply("add", (*path, key), text)


class _ImageChange:
    """What several overriders do to the images of all containers."""

    def __init__(self) -> None:
        self._entries: list[Body] = []
        self._known: dict[str, str] = {}

    def add(self, entry: Body) -> None:
        self._entries.append(entry)

    def apply(self, patched: PatchedObject) -> None:
        change_images(patched, self._change, len(self._entries))

    def _change(self, image: str) -> str:
        changed = self._known.get(image)
        if changed is None:
            changed = image
            for entry in self._entries:
                changed = override_image(changed, entry["component"], entry["operator"], entry.get("value") or "")
            if len(self._known) >= _MAX_IMAGES:
                self._known.clear()
            self._known[image] = changed
        return changed
