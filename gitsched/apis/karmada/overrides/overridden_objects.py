"""Check what override policies make of an object as the API server of its cluster does, as objects of the source are checked."""

from __future__ import annotations

from collections.abc import Sequence

from gitsched.apis.built_in_schemas import find_object_issues
from gitsched.apis.karmada.overrides.combined_rules import CombinedRules, InapplicableOverride, OverrideRule
from gitsched.apis.karmada.overrides.json_patch import InapplicablePatch, PatchedObject
from gitsched.apis.karmada.overrides.overriders import apply_entry, check_identity, list_entries
from gitsched.manifests.object_meta import validate_object_meta
from gitsched.manifests.schema import get_schema_key
from gitsched.model.document import Body
from gitsched.model.finding import Issue, Pointer

_Step = tuple[OverrideRule, str, int, Body]
"""One entry of the overriders of a rule: the name of its list, its index and the entry."""


def find_invalid_override(before: Body, after: Body, combined: Sequence[CombinedRules]) -> InapplicableOverride | None:
    """Return the overrider that makes an object one that an API server refuses, with the reason; None if it is accepted.

    What is refused of the object as the source has it is not the overriders' mistake.
    """
    errors = _list_errors(after)
    if not errors:
        return None
    known = {(issue.code, issue.pointer) for issue in _list_errors(before)}
    steps: list[_Step] = [
        (rule, name, index, entry)
        for rules in combined
        for rule in rules.rules
        for name, index, entry in list_entries(rule.overriders)
    ]
    error = next((issue for issue in errors if (issue.code, issue.pointer) not in known), None)
    if error is None or not steps:
        return None
    valid, invalid = 0, len(steps)
    while (
        invalid - valid > 1
    ):  # the object is valid after the first `valid` steps, and has the error after the first `invalid` ones
        middle = (valid + invalid) // 2
        errors = _list_step_errors(before, steps[:middle])
        found = next((issue for issue in errors if (issue.code, issue.pointer) not in known), None)
        if found is None:
            valid = middle
        else:
            invalid, error = middle, found
    rule, name, index, _ = steps[valid]
    reason = f"{name}[{index}]: {_format(error.pointer)}{error.message}, which an API server refuses"
    return InapplicableOverride(rule, reason, (*rule.pointer, name, index))


def _list_errors(body: Body) -> list[Issue]:
    """Return what an API server refuses, also a missing field: the object of the source has it."""
    found = [*validate_object_meta(body), *find_object_issues(get_schema_key(body), body)]
    return [issue for issue in found if issue.severity == "error" or issue.code == "missing-field"]


def _list_step_errors(before: Body, steps: Sequence[_Step]) -> list[Issue]:
    """Return the errors after some steps; none if one of them only applies together with the others."""
    patched = PatchedObject(before)
    try:
        for _, name, _, entry in steps:
            apply_entry(patched, name, entry)
        check_identity(patched)
    except InapplicablePatch:
        return []
    return _list_errors(patched.root)


def _format(pointer: Pointer) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in pointer)[1:]
    return f"{path}: " if path else ""
