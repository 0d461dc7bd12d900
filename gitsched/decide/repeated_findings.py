"""Fold findings that many files of a repository share into one for each directory at its top."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from gitsched.model.finding import Finding

MAX_SHOWN: Final = 3
"""Findings of one directory that are shown one by one."""
_FOLDED: Final = frozenset(("git-lfs-pointer", "git-crypt"))
"""Codes of findings about files whose content Git does not have: a pattern in .gitattributes is the cause of all of them."""


def fold_findings(findings: Collection[Finding]) -> Iterator[Finding]:
    """Yield the findings, with the first one of a directory in place of more than `MAX_SHOWN` that say the same.

    Its message has no number of files, so that a change to one of them is no new finding."""
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        if finding.code not in _FOLDED or finding.location is None:
            yield finding
        else:
            directory, slash, _ = finding.location.path.partition("/")
            groups.setdefault((f"{directory}/" if slash else "./", finding.code, finding.message), []).append(finding)
    for (directory, _, message), group in groups.items():
        if len(group) <= MAX_SHOWN:
            yield from group
        else:
            first = min(group, key=lambda finding: finding.location.path if finding.location else "")
            yield first._replace(message=f"{message}; the same is true of other files below {directory}")
