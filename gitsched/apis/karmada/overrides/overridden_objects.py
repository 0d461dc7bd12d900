"""Check what override policies make of an object as the API server of its cluster does, as objects of the source are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from gitsched.apis.built_in_schemas import find_object_issues
from gitsched.apis.karmada.overrides.combined_rules import CombinedRules, InapplicableOverride, OverrideRule
from gitsched.apis.karmada.overrides.json_patch import InapplicablePatch, PatchedObject
from gitsched.apis.karmada.overrides.overriders import apply_entry, check_identity, list_entries
from gitsched.manifests.custom_schemas import CustomKind
from gitsched.manifests.object_meta import validate_object_meta
from gitsched.manifests.schema import get_schema_key
from gitsched.model.document import Body, Document
from gitsched.model.finding import Issue, Pointer
from gitsched.named_tuples import NamedTuple


class DoubtfulOverride(NamedTuple):
    """An overrider after which an API server may refuse or change an object: the code of the issue, and the reason."""

    rule: OverrideRule
    code: str
    reason: str
    pointer: Pointer


class OverrideCheck(NamedTuple):
    """What is wrong with an overridden object: the overrider that makes it one that an API server refuses, else those that are doubtful."""

    failure: InapplicableOverride | None = None
    doubtful: tuple[DoubtfulOverride, ...] = ()


class ObjectRules(NamedTuple):
    """What an object is checked against, beside the schemas of built-in kinds: the definition of its kind if it is a custom one.

    With `strict`, what is a warning in the source is an error.
    """

    custom: CustomKind | None = None
    strict: bool = False

    def list_issues(self, body: Body) -> list[Issue]:
        """Return what an API server refuses as errors, also a missing field: the object of the source has it, and is no patch."""
        group, version, kind = get_schema_key(body)
        found = [*validate_object_meta(body), *find_object_issues((group, version, kind), body, may_be_patch=False)]
        issues = [issue._replace(severity="error") if issue.code == "missing-field" else issue for issue in found]
        if self.custom is not None:
            issues += (
                issue if issue.code == "unknown-field" else issue._replace(severity="error")
                for issue in self.custom.find_issues(version, body)
            )
        return [issue.as_error() if self.strict else issue for issue in issues if issue.severity != "info"]


def make_rules(definition: Document | None, strict: bool, known: dict[str, tuple[Body, CustomKind]]) -> ObjectRules:
    """Return the rules for a kind with this definition, None for one without. `known` are the definitions that were read before."""
    if definition is None:
        return ObjectRules(strict=strict)
    name, origin = definition.key.name, definition.origin
    if name not in known or known[name][0] is not definition.body:
        known[name] = (definition.body, CustomKind(definition.body, f"{origin.path}:{origin.line}" if origin is not None else name))
    return ObjectRules(known[name][1], strict)


def check_override(before: Body, after: Body, combined: Sequence[CombinedRules], rules: ObjectRules) -> OverrideCheck:
    """Return what overriders make wrong in an object. What is wrong in it as the source has it is not their mistake."""
    issues = rules.list_issues(after)
    if not issues:
        return OverrideCheck()
    search = _Search(before, combined, rules)
    added = search.list_added(issues)
    if not added or not search.steps:
        return OverrideCheck()
    if any(issue.severity == "error" for issue in added):
        entry, issue = search.find_first(lambda issue: issue.severity == "error", added)
        rule, pointer, reason = _describe(entry, issue, "an API server refuses the result: ")
        return OverrideCheck(InapplicableOverride(rule, reason, pointer))
    doubtful = []
    for identity in dict.fromkeys((issue.code, issue.pointer) for issue in added):
        entry, issue = search.find_first(partial(_is_same, identity), added)
        rule, pointer, reason = _describe(entry, issue)
        doubtful.append(DoubtfulOverride(rule, issue.code, reason, pointer))
    return OverrideCheck(None, tuple(doubtful))


def _is_same(identity: tuple[str, Pointer], issue: Issue) -> bool:
    return (issue.code, issue.pointer) == identity


class _Entry(NamedTuple):
    """One entry of the overriders of a rule: the name of its list, its number there and the entry itself."""

    rule: OverrideRule
    name: str
    number: int
    body: Body

    @property
    def pointer(self) -> Pointer:
        return (*self.rule.pointer, self.name, self.number)


def _list_entries(combined: Iterable[CombinedRules]) -> list[_Entry]:
    return [
        _Entry(rule, name, number, body)
        for rules in combined
        for rule in rules.rules
        for name, number, body in list_entries(rule.overriders)
    ]


class _Search:
    """The search for the overrider after which an object has an issue."""

    def __init__(self, before: Body, combined: Sequence[CombinedRules], rules: ObjectRules) -> None:
        self._before, self._rules = before, rules
        self.steps = _list_entries(combined)
        self._known = {key for issue in rules.list_issues(before) for key in _identify(issue)}

    def list_added(self, issues: Iterable[Issue]) -> list[Issue]:
        """Return the issues that the object of the source does not have."""
        return [issue for issue in issues if self._known.isdisjoint(_identify(issue))]

    def find_first(self, matches: Callable[[Issue], bool], added: Iterable[Issue]) -> tuple[_Entry, Issue]:
        """Return the entry after which the object first has such an issue, with the issue; `added` are those after all entries."""
        valid, invalid = 0, len(self.steps)  # it has none after the first `valid` steps, and one after the first `invalid` ones
        issue = next(filter(matches, added))
        while invalid - valid > 1:
            middle = (valid + invalid) // 2
            found = next(filter(matches, self.list_added(self._list_issues(middle))), None)
            if found is None:
                valid = middle
            else:
                invalid, issue = middle, found
        return self.steps[valid], issue

    def _list_issues(self, number: int) -> list[Issue]:
        """Return the issues after some steps; none if one of them only applies together with the others."""
        patched = PatchedObject(self._before)
        try:
            for entry in self.steps[:number]:
                apply_entry(patched, entry.name, entry.body)
            check_identity(patched)
        except InapplicablePatch:
            return []
        return self._rules.list_issues(patched.root)


def _identify(issue: Issue) -> Iterable[tuple[str, Pointer, str]]:
    """Return what identifies an issue, also where an entry that is added to a list moves it."""
    names = tuple(part for part in issue.pointer if isinstance(part, str))
    return (issue.code, issue.pointer, ""), (issue.code, names, issue.message)


def _describe(entry: _Entry, issue: Issue, cause: str = "") -> tuple[OverrideRule, Pointer, str]:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in issue.pointer)[1:]
    return entry.rule, entry.pointer, f"{entry.name}[{entry.number}]: {cause}{f'{path}: ' if path else ''}{issue.message}"
