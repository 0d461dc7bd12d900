"""Pages that are stories: their files are laid down, their commands executed, and what those print is what the page says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests import fork_server
from tests.builders.recorded_cluster import RecordedCluster
from tests.docs.cut_over import check_cut_over

ROOT = Path(__file__).parents[2]
PROGRAMS_OF_GUIDES = {
    "kustomize.md": ("kubectl",),
    "helm.md": ("kubectl", "helm"),
    "flux.md": ("kubectl",),
    "argocd.md": ("kubectl",),
    "cut-over.md": ("kubectl",),
    "deploy.md": ("kubectl", "helm"),
    "facts.md": ("kubectl",),
}
"""Guides that start from a repository in examples/, with the programs that they need besides gitsched and git."""
STORIES = ["adopt.md", "bundles.md", "first-placement.md", "from-karmada.md", "from-ocm.md", "rollouts.md", *PROGRAMS_OF_GUIDES]
CUT_OVERS = ("cut-over.md", "flux.md")
"""Guides in which the output branch takes over running clusters, and gives them back."""
START = datetime(2026, 3, 2, 8, 0, 0, tzinfo=UTC)
BLOCK = re.compile(r'```(?:yaml title="(?P<file>[^"]+)"\n(?P<text>.*?)|console\n(?P<console>.*?))```\n', re.DOTALL)
PROGRAM = """\
#!/bin/sh
case $1 in
plan | reconcile | explain | simulate | status | adopt | collect) verb=$1; shift; exec "$GITSCHED" "$verb" --now "$NOW" "$@" ;;
*) exec "$GITSCHED" "$@" ;;
esac
"""
"""gitsched at the hour of the page: a reader's clock would tell when a grace period is over."""


def play(page: str, at: Path) -> str:
    """The page with what its commands print today. From one block of commands to the next an hour passes."""
    at.mkdir()
    programs = at.parent / "programs"
    programs.mkdir()
    (at.parent / "gitsched").symlink_to(ROOT)  # the clone from which guides copy their examples
    fork_server.write_script(at.parent / "process")
    (programs / "gitsched").write_text(PROGRAM)
    (programs / "gitsched").chmod(0o755)
    environment = {
        **os.environ,
        "COLUMNS": "400",  # so that nothing is wrapped: where, would depend on the directory
        "PATH": os.pathsep.join((str(programs), sysconfig.get_path("scripts"), os.environ["PATH"])),
        "GITSCHED": str(at.parent / "process"),
        "XDG_CACHE_HOME": str(at.parent / "cache"),
    }
    if "gitsched collect" in page:
        environment["KUBECONFIG"] = str(write_fleet(at.parent / "kubeconfig"))
    execute("git init -q -b main . && git config user.name Ada && git config user.email ada@example.com", at, environment)
    hours = 0

    def step(block: re.Match[str]) -> str:
        nonlocal hours
        if name := block["file"]:
            path = at / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block["text"])
            return block[0]
        moment = (START + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
        hours += 1
        dated = {**environment, "NOW": moment, "GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}
        commands = [line for line in block["console"].splitlines() if line.startswith("$ ")]
        printed = [f"{line}\n{execute(line.removeprefix('$ '), at, dated)}" for line in commands]
        return "```console\n" + "".join(printed) + "```\n"

    return BLOCK.sub(step, page)


def write_fleet(path: Path) -> Path:
    """Start two clusters with two and one nodes, and write a kubeconfig with these and one that does not answer."""
    made = {"dub-1": RecordedCluster(), "ash-1": RecordedCluster()}
    made["ash-1"].lists["/api/v1/nodes"].pop()
    servers = {name: cluster.url for name, cluster in made.items()} | {"gone": "http://127.0.0.1:1"}
    parts = {
        "clusters": [{"name": name, "cluster": {"server": url}} for name, url in servers.items()],
        "users": [{"name": "me", "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "me"}} for name in servers],
    }
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **parts}))
    return path


def execute(command: str, at: Path, environment: Mapping[str, str]) -> str:
    """What a terminal would show; commits under names that do not depend on what came before them, the repository under its own."""
    done = subprocess.run(["sh", "-c", f"{command} 2>&1"], cwd=at, env=environment, capture_output=True, text=True)
    assert done.returncode in (0, 1), f"{command}: {done.stdout}"
    shown = re.sub(r"\b[0-9a-f]{10}\b", "1234567890", done.stdout.replace(str(at), "fleet"))
    quoted = re.sub(r"(?<=: )[0-9a-f]{40}$", r'"\g<0>"', shown, flags=re.MULTILINE)  # YAML quotes ids that begin with a digit
    shown = re.sub(r"\b[0-9a-f]{40}\b", "1234567890" * 4, quoted)
    return re.sub(r"[ \t]+$", "", shown, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[getattr(pytest.mark, program) for program in PROGRAMS_OF_GUIDES.get(name, ())]) for name in STORIES],
)
def test_a_tutorial_shows_the_output_of_the_program(name: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / name).read_text()
    assert play(page, tmp_path / "fleet") == page, (
        "see what differs; `python -m tests.docs.test_tutorials` writes what is printed now"
    )
    if name in CUT_OVERS:
        check_cut_over(tmp_path / "fleet")


def rewrite() -> None:
    """Let the named stories, or all, say what the program prints now, to be looked at as a diff."""
    os.environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for name in sys.argv[1:] or STORIES:
        with tempfile.TemporaryDirectory() as directory:
            path = ROOT / "docs" / name
            path.write_text(play(path.read_text(), Path(directory).resolve() / "fleet"))


if __name__ == "__main__":
    rewrite()
