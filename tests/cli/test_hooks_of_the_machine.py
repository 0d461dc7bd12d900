"""Hooks, programs and defaults in the configuration of a machine: none has an effect on private clones, and those of the user's own
repositories run as for any other git command."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pygit2
import pytest

from tests.cli.conftest import WORKLOAD, Run

HOOKS = ("fsmonitor-watchman", "post-checkout", "post-index-change", "post-merge", "post-receive", "post-rewrite", "post-update")
HOOKS += ("pre-auto-gc", "pre-push", "pre-receive", "reference-transaction", "update")
CONFIG = """\
[core]
    hooksPath = {hooks}
    fsmonitor = {hooks}/fsmonitor-watchman
    alternateRefsCommand = {hooks}/alternate-refs
    logAllRefUpdates = always
[init]
    templateDir = {template}
    defaultObjectFormat = sha256
    defaultRefFormat = reftable
[user]
    name = Ada
    email = ada@example.org
[feature]
    experimental = true
[gc]
    auto = 1
    pruneExpire = now
[pack]
    indexVersion = 1
[fetch]
    prune = true
    fsckObjects = false
[push]
    recurseSubmodules = on-demand
    followTags = true
[hook "configured"]
    command = {hooks}/configured
    event = reference-transaction
    event = pre-push
"""
"""What would run programs, delete objects, or make repositories that libgit2 cannot open. The last section is for git 2.54."""


class Machine:
    """Where the programs of a configuration run: each leaves the names of its directory and of itself."""

    def __init__(self, directory: Path) -> None:
        self.hooks, self.template, self.log = directory / "hooks", directory / "template", directory / "log"
        self.config = directory / "config"
        self.config.write_text(CONFIG.format(hooks=self.hooks, template=self.template))
        (self.template / "hooks").mkdir(parents=True)
        self.hooks.mkdir()
        for path in (*(self.hooks / name for name in (*HOOKS, "configured", "alternate-refs")), self.template / "hooks/pre-push"):
            path.write_text(f'#!/bin/sh\necho "${{GIT_DIR:-}} $(pwd) {path.name}" >>{self.log}\n')
            path.chmod(0o755)

    def list_runs(self, directory: Path) -> set[str]:
        """Return the names of the hooks that have run in repositories below a directory."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return {line.split()[-1] for line in lines if str(directory) in line}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    directory = tmp_path / "machine"
    directory.mkdir()
    return Machine(directory)


@pytest.fixture
def configured(machine: Machine, environment: dict[str, str]) -> dict[str, str]:
    """Variables with which git reads the configuration of the machine in each place where it can be."""
    del environment["GIT_CONFIG_NOSYSTEM"]
    listed = subprocess.run(
        ["git", "config", "--file", machine.config, "--list", "--null"], capture_output=True, text=True, check=True
    )
    pairs = [entry.split("\n") for entry in listed.stdout.split("\0") if entry]
    numbered = {f"GIT_CONFIG_{what}_{i}": pair[part] for i, pair in enumerate(pairs) for part, what in enumerate(("KEY", "VALUE"))}
    files = {"GIT_CONFIG_SYSTEM": str(machine.config), "GIT_CONFIG_GLOBAL": str(machine.config)}
    return files | numbered | {"GIT_CONFIG_COUNT": str(len(pairs))}


@pytest.fixture
def remote(fleet: Path, tmp_path: Path, git: Callable[..., str]) -> Path:
    git("clone", "-q", "--bare", str(fleet), str(tmp_path / "remote.git"), at=tmp_path)
    return tmp_path / "remote.git"


def test_nothing_that_a_machine_configures_runs_in_a_private_clone(
    configured: dict[str, str],
    machine: Machine,
    fleet: Path,
    remote: Path,
    commit: Callable[..., None],
    git: Callable[..., str],
    gitsched: Run,
    tmp_path: Path,
) -> None:
    for replicas in (2, 3):
        commit(fleet, web=WORKLOAD.replace("replicas: 2", f"replicas: {replicas}"))
        git("push", "-q", str(remote), "main", at=fleet)
        done = gitsched("reconcile", "-C", remote.as_uri(), "--state", "on", **configured)
        assert done.returncode == 0, done.stderr
    assert "replicas: 3" in git("show", "placements:clusters/one/shop/deployment-web.yaml", at=remote)
    clones = list((tmp_path / "cache").rglob("*.git"))
    assert clones
    assert machine.list_runs(tmp_path / "cache") == set()
    assert not any((clone / name).exists() for clone in clones for name in ("hooks", "logs", "reftable"))
    assert {path.read_bytes()[:4] for clone in clones for path in clone.glob("objects/pack/*.idx")} == {b"\xfftOc"}, "version 2"
    # What receives the commits is on this machine, too, but no private clone.
    assert {"pre-receive", "update", "post-receive", "reference-transaction"} <= machine.list_runs(remote)


def test_hooks_of_the_users_own_repository_run(machine: Machine, fleet: Path, remote: Path, gitsched: Run, tmp_path: Path) -> None:
    """Also where a private clone keeps the state of the last plan beside it."""
    done = gitsched("reconcile", "--push", remote.as_uri(), "--state", "on", GIT_CONFIG_GLOBAL=str(machine.config))
    assert done.returncode == 0, done.stderr
    assert {"pre-push", "reference-transaction"} <= machine.list_runs(fleet)
    assert machine.list_runs(tmp_path / "cache") == set()


def test_init_and_private_clones_work_where_git_makes_other_formats_by_default(
    machine: Machine, tmp_path: Path, gitsched: Run
) -> None:
    defaults = {"GIT_CONFIG_GLOBAL": str(machine.config), "GIT_DEFAULT_HASH": "sha256", "GIT_DEFAULT_REF_FORMAT": "reftable"}
    place = tmp_path / "new"
    place.mkdir()
    for command in (("init", "--commit"), ("reconcile",), ("plan", "-C", place.as_uri())):
        done = gitsched(*command, at=place, **defaults)
        assert done.returncode == 0, done.stderr
    assert pygit2.Repository(str(place)).branches.local["placements"]
