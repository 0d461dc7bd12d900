"""The line on which a rule stands, for people who want to change it: the core knows the place in the document, the text is in Git."""

from __future__ import annotations

from gitsched.git import Repository
from gitsched.manifests.limits import LIMITS
from gitsched.manifests.reading import locate
from gitsched.model.explanation import Candidate, Explanation, Rule


def point(explanation: Explanation, repository: Repository) -> Explanation:
    """The explanation with the line of each rule instead of that of its document, where the text is at hand."""
    lines: dict[Rule, str] = {}
    return explanation._replace(candidates=tuple(_point(candidate, repository, lines) for candidate in explanation.candidates))


def _point(candidate: Candidate, repository: Repository, lines: dict[Rule, str]) -> Candidate:
    rule = candidate.rule
    if rule is None:
        return candidate
    if rule not in lines:
        lines[rule] = _find(rule, repository) or candidate.location
    return candidate._replace(location=lines[rule])


def _find(rule: Rule, repository: Repository) -> str:
    origin, pointer = rule
    if not repository.has(origin.blob) or repository.size(origin.blob) > LIMITS.size:
        return ""
    found = locate(repository.blob(origin.blob), origin.index, origin.item, pointer)
    return f"{origin.path}:{found[0]}" if found else ""
