"""Read the rules of `.sourceignore` files, and report those that exceed a limit."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from gitsched.git import Repository, TreeEntry
from gitsched.manifests.sourceignore import IGNORE_FILE, MAX_RULE_LENGTH, MAX_RULES, ExcessRule, SourceIgnore
from gitsched.model.finding import Finding, Location

MAX_IGNORE_SIZE = 1 << 20
"""Bytes of a file with rules."""


def parse_ignore_files(
    repository: Repository, files: Iterable[TreeEntry], ignored: tuple[str, ...]
) -> tuple[SourceIgnore, list[Finding]]:
    """Return the rules of these files and of the settings, and an error about each rule or file beyond a limit."""
    texts: dict[str, str] = {}
    findings: list[Finding] = []
    for entry in files:
        data = repository.read_small_blob(entry.blob, MAX_IGNORE_SIZE)
        if data is None:
            message = f"the file has more than {MAX_IGNORE_SIZE} bytes: its rules are ignored; shorten it"
            findings.append(Finding("error", "ignore-rules", message, Location(entry.path, 1, 1)))
        else:
            texts[posixpath.dirname(entry.path)] = data.decode("utf-8", "replace")
    rules = "\n".join(ignored)
    if ignored:
        texts[""] = "\n".join((texts.get("", ""), rules))
    found = SourceIgnore.parse(texts, rules.count("\n") + 1 if ignored else 0)
    return found, [*findings, *map(_make_excess_finding, found.excess)]


def _make_excess_finding(excess: ExcessRule) -> Finding:
    path = posixpath.join(excess.directory, IGNORE_FILE)
    what = (
        f"is longer than {MAX_RULE_LENGTH} characters"
        if excess.too_long
        else f"exceeds the limit of {MAX_RULES} rules for a repository"
    )
    message = f"the rule {what}: it is ignored, and so are the rules after it in {path}"
    return Finding("error", "ignore-rules", message, Location(path, excess.line, 1))
