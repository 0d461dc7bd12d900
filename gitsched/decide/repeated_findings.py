"""Fold findings that many files of a repository share into one for each directory at its top."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gitsched.model.finding import Finding

MAX_SHOWN: Final = 3
"""Findings of one directory that are shown one by one."""
FOLDED_CODES: Final = frozenset(("git-lfs-pointer", "git-crypt"))
"""Codes of findings about files whose content Git does not have: a pattern in .gitattributes is the cause of all of them."""


def fold_findings(findings: Iterable[Finding]) -> set[Finding]:
    """Return the findings, with the first one of a directory in place of more than `MAX_SHOWN` that say the same.

    Its message has no number of files, so that a change to one of them is no new finding."""
    shown = set[Finding]()
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        if finding.code not in FOLDED_CODES or finding.location is None:
            shown.add(finding)
        else:
            directory, slash, _ = finding.location.path.partition("/")
            groups.setdefault((f"{directory}/" if slash else "./", finding.code, finding.message), []).append(finding)
    for (directory, _, message), group in groups.items():
        if len(group) <= MAX_SHOWN:
            shown.update(group)
        else:
            first = min(group, key=lambda finding: finding.location.path if finding.location else "")
            shown.add(first._replace(message=f"{message}; the same is true of other files below {directory}"))
    return shown
