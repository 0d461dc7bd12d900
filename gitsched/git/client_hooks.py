"""Hooks of the user's repository that refuse what git does there for gitsched: a push, or the move of a ref."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gitsched.git.failures import summarize_output
from gitsched.git.process import run_git
from gitsched.model.errors import Permanent

if TYPE_CHECKING:
    from gitsched.git.repository import Repository

HookName = Literal["pre-push", "reference-transaction"]
_CURES: dict[HookName, str] = {
    "pre-push": "let it pass {ref}, or give --output-repository {url} instead of --push: gitsched pushes from a clone of its own "
    "then, where no hook of this repository runs",
    "reference-transaction": "let it pass {ref}",
}


def explain_refusal(
    repository: Repository, name: HookName, action: str, output: str, *, ref: str, url: str = ""
) -> Permanent | None:
    """Return the error for what a hook refused, with the hook, its output and a cure; None if the repository has no such hook.

    `action` says what failed, and `output` is what git and the hook printed.
    """
    hook = _find_hook(repository, name)
    if hook is None:
        return None
    cure = _CURES[name].format(ref=ref, url=shlex.quote(url))
    return Permanent(f"{action}: the {name} hook {hook} refused it: {summarize_output(output)}; {cure}")


def _find_hook(repository: Repository, name: HookName) -> str | None:
    """Return the file of a hook (core.hooksPath counts), or the setting hook.NAME.command that git 2.54 reads."""
    if repository.private is not None:  # it has none
        return None
    found = Path(repository.root, run_git(["rev-parse", "--git-path", f"hooks/{name}"], repository=repository).stdout.strip())
    if found.is_file() and os.access(found, os.X_OK):
        return str(found)
    listed = run_git(["config", "--null", "--get-regexp", r"^hook\..*\.event$"], repository=repository).stdout.split("\0")
    settings = (entry.partition("\n") for entry in listed)
    return next((f"{setting.removesuffix('event')}command" for setting, _, event in settings if event == name), None)
