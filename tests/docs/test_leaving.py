"""What docs/cut-over.md says about leaving gitsched takes away what gitsched wrote, and nothing of others."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from gitsched.git.notes import NOTES_REF
from tests.scenarios.conftest import Fleet, cluster, deployment, policy

PAGE = Path(__file__).parents[2] / "docs" / "cut-over.md"


def test_the_notes_of_the_output_branch_go_and_those_of_others_stay(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "fleet", tmp_path / "cache")
    remote = tmp_path / "remote.git"
    fleet.git("init", "-q", "--bare", str(remote))
    fleet.git("remote", "add", "origin", str(remote))
    fleet.commit({"one.yaml": cluster("one"), "web.yaml": deployment("web"), "policy.yaml": policy("one")})
    fleet.reconcile()
    fleet.git("notes", "--ref", "hydrator.metadata", "add", "-m", "{}", "HEAD")
    fleet.git("push", "-q", "origin", NOTES_REF)
    notes = fleet.git("notes", "--ref", "hydrator.metadata", "list").splitlines()
    assert len(notes) == 2
    commands = re.findall(r"`(git (?:rev-list|push origin refs/notes)[^`]+)`", PAGE.read_text(encoding="utf-8"))
    assert len(commands) == 2
    for command in commands:
        subprocess.run(["sh", "-ec", command], cwd=fleet.path, check=True, capture_output=True)
    assert [line.split()[1] for line in fleet.git("notes", "--ref", "hydrator.metadata", "list").splitlines()] == [
        fleet.git("rev-parse", "HEAD").strip()
    ]
    assert fleet.git("ls-remote", "origin", NOTES_REF).split()[0] == fleet.git("rev-parse", NOTES_REF).strip()
