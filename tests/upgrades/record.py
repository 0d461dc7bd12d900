"""Record output branches with the installed gitsched: `python -m tests.upgrades.record VERSION [STORY...]`.

Writes tests/upgrades/VERSION/STORY.bundle, with the source and the output, and STORY.json, with what this gitsched does next. Do this
before a change of what the output records, because the changed code cannot write such branches any more.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pygit2
from pygit2.enums import ConfigLevel

from tests.scenarios.conftest import Fleet
from tests.upgrades.recorded import DIRECTORY, describe_run
from tests.upgrades.stories import STORIES, Story

ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "Ada Author",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Carl Committer",
    "GIT_COMMITTER_EMAIL": "carl@example.com",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def main(version: str, *names: str) -> None:
    os.environ |= ENVIRONMENT
    for name in names or STORIES:
        with tempfile.TemporaryDirectory() as scratch:
            os.environ |= {"HOME": scratch, "XDG_CACHE_HOME": f"{scratch}/cache"}
            for level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL):
                pygit2.settings.search_path[level] = scratch
            record(STORIES[name], DIRECTORY / version / name, Path(scratch))


def record(story: Story, target: Path, scratch: Path) -> None:
    """Write the bundle and the description of a story, without the ending of their names."""
    fleet = Fleet(scratch / "fleet", scratch / "cache")
    story.write(fleet, scratch)
    target.parent.mkdir(exist_ok=True)
    fleet.git("gc", "-q", "--prune=now")
    fleet.git("bundle", "create", "-q", str(target.with_suffix(".bundle")), "--all")
    later: list[dict[str, Any]] = []
    for step in story.later:
        is_commit = bool(step.files) or step.message != "Change"
        if is_commit:
            fleet.commit(step.files, hour=step.hour, message=step.message)
        run = fleet.reconcile(step.hour, observations="recorded", **story.options)
        files = dict(step.files) if is_commit else None
        later.append({"hour": step.hour, "files": files, "message": step.message, "expected": describe_run(fleet, run)})
    target.with_suffix(".json").write_text(
        json.dumps({"hour": story.hour, "options": story.options, "later": later}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
