"""The verdict on one document: defaults, then its schema, then the rules that a schema cannot say."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from gitsched.apis.gitsched import config
from gitsched.apis.schemas import shipped_schemas
from gitsched.apis.world import Check
from gitsched.manifests.schema import Schemas
from gitsched.model.document import Body, group_of, member
from gitsched.model.finding import Finding
from gitsched.model.issue import Issue, Verdict
from gitsched.plan.registry import APIS

_BY_GROUP = {group: api for api in APIS for group in api.groups}


def waive(settings: config.Config) -> frozenset[str]:
    """The codes of the rules that settings turn off."""
    return frozenset[str]().union(*(api.waive(settings) for api in APIS))


def check(body: Body, waived: frozenset[str] = frozenset()) -> Verdict:
    """Check a document of any kind. Rules are asked only where the schema has no objection: they rely on its word.

    `waived` are codes of rules that do not count.
    """
    group, kind = group_of(str(body.get("apiVersion") or body.get("api") or "")), str(body.get("kind") or "")
    api = _BY_GROUP.get(group)
    try:
        filled = api.default(body) if api else body
        verdict = _schemas().check(filled, None if filled is body else body)
    except (TypeError, ValueError):
        strange = find_strange(body)
        if strange is None:
            raise
        return Verdict(body, (strange,))
    rules = _find_rules(group, kind)
    if rules is None or any(issue.severity == "error" for issue in verdict.issues):
        return verdict
    broken = [issue for issue in rules(verdict.body) if issue.code not in waived]
    return Verdict(verdict.body, (*verdict.issues, *broken)) if broken else verdict


def find_strange(body: Any) -> Issue | None:
    """What no JSON can hold and other parsers than ours give: a key that is no text, text that is none of Unicode, a date. None where
    there is nothing of that kind."""
    rest: list[tuple[Any, tuple[str | int, ...]]] = [(body, ())]
    while rest:
        value, pointer = rest.pop()
        if isinstance(value, dict):
            for key, held in value.items():
                if not isinstance(key, str):
                    return Issue("error", "wrong-type", f"the key {key!r:.60} must be a string; quote it", pointer)
                rest.append((held, (*pointer, key)))
        elif isinstance(value, str) and not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            return Issue("error", "wrong-type", "the text has half a character, which UTF-8 cannot hold", pointer)
        elif isinstance(value, list):
            rest += [(held, (*pointer, index)) for index, held in enumerate(value)]
        elif value is not None and not isinstance(value, (str, int, float)):
            return Issue("error", "wrong-type", f"a {type(value).__name__} is no value of JSON; quote it", pointer)
    return None


def find(body: Body, waived: frozenset[str] = frozenset()) -> list[Finding]:
    """What checking says about a plain mapping, without a place."""
    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    namespace = member(body, "metadata", "namespace")
    resource = (str(body.get("kind")), namespace if isinstance(namespace, str) else "", name) if isinstance(name, str) else None
    return [
        Finding(issue.severity, issue.code, f"{_pointer(issue.pointer)}{issue.message}", None, resource)
        for issue in check(body, waived).issues
    ]


def _pointer(pointer: Iterable[str | int]) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in pointer)[1:]
    return f"{path}: " if path else ""


@cache
def _find_rules(group: str, kind: str) -> Check | None:
    if (group, kind) == (config.GROUP, config.KIND):
        return config.check_config
    return next((rules for api in APIS if (rules := api.rules(group, kind)) is not None), None)


@cache
def _schemas() -> Schemas:
    return Schemas(shipped_schemas())
