"""What docs/cut-over.md says about leaving gitsched takes away what gitsched wrote, and nothing of others."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from gitsched.git.notes import NOTES_REF
from gitsched.reconcile import validate_source
from tests.scenarios.conftest import Fleet, cluster, deployment, policy

PAGE = Path(__file__).parents[2] / "docs" / "cut-over.md"


def test_checks_pass_with_the_copied_directories_and_nothing_else_stays(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "fleet", tmp_path / "cache")
    settings = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n  output: {branch: placements}\n"
    files = {"gitsched.yaml": settings, "web.yaml": deployment("web", 4), "policy.yaml": policy("", scheduling="Divided")}
    fleet.commit({"one.yaml": cluster("one"), "two.yaml": cluster("two"), **files})
    fleet.reconcile()
    block = re.search(r"^ *\$ git worktree add .*?^ *```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert block is not None
    *commands, shown = re.findall(r"^ *\$ (.+)$", block.group(), re.MULTILINE)
    assert shown.startswith("ls delivered/")
    for command in commands:
        subprocess.run(["sh", "-ec", command], cwd=fleet.path, check=True, capture_output=True)

    assert fleet.git("status", "--porcelain") == ""
    assert len(fleet.git("worktree", "list").splitlines()) == 1
    assert (fleet.path / "delivered/one/default/deployment-web.yaml").read_text() == deployment("web", 2)
    assert [finding for finding in validate_source(fleet.settings()).findings if finding.severity == "error"] == []
    assert not fleet.preview().plan.moves
    fleet.commit({"gitsched.yaml": settings})
    codes = {finding.code for finding in validate_source(fleet.settings()).findings}
    assert "duplicate-identity" in codes, "the setting is what hides the copies"


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
    text = PAGE.read_text(encoding="utf-8")
    commands = [
        *re.findall(r"^ *\$ (git rev-list .+)$", text, re.MULTILINE),
        *re.findall(r"`(git push origin refs/notes[^`]+)`", text),
    ]
    assert len(commands) == 2
    for command in commands:
        subprocess.run(["sh", "-ec", command], cwd=fleet.path, check=True, capture_output=True)
    assert [line.split()[1] for line in fleet.git("notes", "--ref", "hydrator.metadata", "list").splitlines()] == [
        fleet.git("rev-parse", "HEAD").strip()
    ]
    assert fleet.git("ls-remote", "origin", NOTES_REF).split()[0] == fleet.git("rev-parse", NOTES_REF).strip()
