"""Names of branches in settings and options."""

from __future__ import annotations

import re

_BRANCH = re.compile(r"(?!.*(?://|\.\.|@\{|/\.|\.lock(?:/|$)))[^-./\x00-\x20\x7f~^:?*\[\\][^\x00-\x20\x7f~^:?*\[\\]*(?<![/.])")
"""The rules of git-check-ref-format."""


def check_branch_name(name: str) -> str:
    """Return what a branch name must be if it cannot name the output branch, else ""; it may begin with refs/heads/."""
    short = name.removeprefix("refs/heads/")
    if short.startswith("origin/"):
        return f"the branch's own name, without its remote: {short.removeprefix('origin/')}"
    if short.startswith("refs/") or short in ("HEAD", "@") or len(name) > 250 or not _BRANCH.fullmatch(short):
        return "the name of a branch, such as placements"
    return ""
