"""Report that `.sourceignore` hides the fleet: no document of a policy API is read, and hidden files have some."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

from gitsched.apis.gitsched.config import FILE
from gitsched.decide.registry import apis_by_group
from gitsched.git import Repository, TreeEntry
from gitsched.manifests.sourceignore import IGNORE_FILE, IgnoreRule, SourceIgnore
from gitsched.model.document import parse_api_group
from gitsched.model.finding import Finding, Location

MAX_FILES: Final = 1_000
"""Maximum number of hidden files that are searched."""
MAX_SIZE: Final = 1 << 18
"""Maximum size in bytes of a hidden file that is searched."""
_MAX_RULES: Final = 3
_API_VERSION = re.compile(r"""^[ \t{"'-]*(?:apiVersion|api)["']?[ \t]*:[ \t]*["']?([^\s"'#,}]+)""", re.MULTILINE)


def find_hidden_sources(
    repository: Repository, hidden: list[TreeEntry], ignore: SourceIgnore, read_paths: Collection[str]
) -> list[Finding]:
    """Return a warning that names the rules that hide most files; none if nothing of a policy API is hidden.

    `hidden` are the entries that could have documents and that rules exclude, `read_paths` the files that are read. Without any of
    these, or only gitsched.yaml, the warning needs no document of a policy API.
    """
    if not hidden:
        return []
    fleet = _find_policy_file(repository, hidden)
    unread = not any(path != FILE for path in read_paths)
    if not fleet and not unread:
        return []
    rules = Counter(rule for entry in hidden if (rule := ignore.find_rule(entry.path)) is not None)
    ordered = sorted(rules.items(), key=lambda item: (-item[1], item[0].directory, item[0].line))
    listed = ", ".join(f"{_describe_rule(rule)} hides {count}" for rule, count in ordered[:_MAX_RULES])
    more = f", {len(ordered) - _MAX_RULES} more rules hide the others" if len(ordered) > _MAX_RULES else ""
    total = len(hidden) + len(read_paths)
    what = "no file of the source is read" if unread else "no policy and no cluster is read"
    example = f", such as {fleet}" if fleet else ""
    message = (
        f"{what}: {len(hidden)} of {total} YAML and JSON files are hidden{example} ({listed}{more}); remove the rule, or add one such as "
        "!/fleet after it; Flux reads the same file: to hide files only from Flux, use spec.ignore of its GitRepository"
    )
    first = ordered[0][0]
    location = Location(f"{first.directory}{IGNORE_FILE}", first.line, 1) if first.line else Location(FILE, 1, 1)
    return [Finding("warning", "source-hidden", message, location)]


def _find_policy_file(repository: Repository, hidden: Iterable[TreeEntry]) -> str:
    """Return a hidden file with a document of a policy API; "" if none of the files that are searched has one."""
    for entry in sorted(hidden, key=lambda entry: entry.path)[:MAX_FILES]:
        text = (repository.read_small_blob(entry.blob, MAX_SIZE) or b"").decode("utf-8", "replace")
        if any(parse_api_group(version) in apis_by_group for version in _API_VERSION.findall(text)):
            return entry.path
    return ""


def _describe_rule(rule: IgnoreRule) -> str:
    where = f"line {rule.line} of {rule.directory}{IGNORE_FILE}" if rule.line else f"source.ignore in {FILE}"
    return f"{rule.text} in {where}" if rule.line else f"{rule.text} of {where}"
