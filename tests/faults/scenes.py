"""Repositories in which runs are disturbed: a local source, one that pushes, one by URL, and one whose cache another process shares."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.scenarios.conftest import UNGUARDED, Fleet, at_hour, cluster, deployment, execute, policy

SCENES = ("local", "push", "url", "shared", "cold")
"""`cold` is `url` with an empty cache. In `shared`, another process plans the same URL with the same cache meanwhile."""
_FILES_BY_SCENE = {"local": 60}
_TEMPORARY = re.compile(
    r"\.lock$|\.new$|\.damaged$|\.tmp$|(?:^|/)(?:tmp_|tmp-|incoming-|gc\.pid)|/plan-[0-9a-f]+\.\d+$|-journal$|-wal$"
)
_HOUR = 3600.0


class Scene(NamedTuple):
    """A place below `root`. Each disturbed run starts from a copy of the same files; `old` and `new` are the output commits before and
    after a run that nothing disturbs."""

    name: str
    root: Path
    old: str
    new: str

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def target(self) -> Path:
        """The repository whose output branch counts."""
        return self.work / ("fleet" if self.name == "local" else "remote.git")

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "TMPDIR": str(self.work / "tmp")}

    def list_arguments(self, command: str = "reconcile") -> list[str]:
        """Return the arguments of a run."""
        return make_arguments(self.name, self.work, command)

    def restore(self) -> None:
        """Put everything back as it was before the first disturbed run."""
        shutil.rmtree(self.work, ignore_errors=True)
        subprocess.run(["cp", "-a", self.root / "template", self.work], check=True)

    def read_head(self) -> str:
        """Return the commit of the output branch."""
        return execute("rev-parse", "refs/heads/placements", at=self.target)

    def list_damage(self) -> list[str]:
        """Return what `git fsck` says about the repositories that are no caches."""
        found = []
        for name in ("fleet", "remote.git"):
            checked = ["git", "fsck", "--strict", "--no-dangling", "--no-progress"]
            done = subprocess.run(checked, cwd=self.work / name, capture_output=True, text=True)
            if done.returncode != 0 or "missing" in done.stdout or "broken" in done.stdout:
                found.append(f"git fsck of {name}: {done.stdout}{done.stderr}")
        return found

    def age_temporary_files(self) -> None:
        """Let an hour pass for what a process left behind."""
        before = time.time() - _HOUR
        for path in self._list_files():
            if _TEMPORARY.search(str(path)) and not path.is_symlink():
                os.utime(path, (before, before))

    def list_leftovers(self) -> list[str]:
        """Return the lock files and temporary files that have stayed. The lock of a clone stays: it is only held while it is open."""
        locks = {path.with_suffix(".lock") for path in (self.work / "cache").glob("*.git")}
        left = {path for path in self._list_files() if _TEMPORARY.search(str(path)) or self.work / "tmp" in path.parents} - locks
        # `git gc` removes temporary objects of a killed process in the user's own repositories. Locks of a killed server stay in the remote
        # until a push to the same ref says so.
        left = {path for path in left if not (self.work / "remote.git" in path.parents and path.suffix == ".lock")}
        return sorted(str(path.relative_to(self.work)) for path in left if "cache" in path.parts or "/tmp_" not in str(path))

    def _list_files(self) -> Iterator[Path]:
        return (Path(parent, name) for parent, folders, names in os.walk(self.work) for name in (*folders, *names))


def make_arguments(name: str, work: Path, command: str = "reconcile") -> list[str]:
    location = str(work / "fleet") if name in ("local", "push") else f"file://{work}/remote.git"
    options = ["-C", location, "--cache-dir", str(work / "cache"), "--now", at_hour(2).isoformat()]
    return [command, *options, *(["--push", "origin"] if name == "push" else [])]


def build_template(name: str, root: Path) -> None:
    """Reconcile a fleet once, and commit a change."""
    work = root / "work"
    fleet = Fleet(work / "fleet", work / "cache")
    (work / "tmp").mkdir()
    files = {f"apps/{number}.yaml": deployment(f"app-{number}") for number in range(_FILES_BY_SCENE.get(name, 3))}
    clusters = {f"clusters/{each}.yaml": cluster(each) for each in ("first", "second")}
    fleet.commit({**files, **clusters, "policies/all.yaml": policy("first", "second"), "gitsched.yaml": UNGUARDED})
    fleet.git("clone", "-q", "--bare", ".", "../remote.git")
    fleet.git("remote", "add", "origin", str(work / "remote.git"))


def change_source(name: str, root: Path) -> None:
    """Commit and push a change of every workload."""
    work = root / "work"
    fleet = Fleet(work / "fleet", work / "cache")
    fleet.commit(
        {
            str(path.relative_to(fleet.path)): path.read_text().replace("replicas: 2", "replicas: 5")
            for path in sorted((fleet.path / "apps").iterdir())
        },
        hour=1,
    )
    fleet.git("push", "-q", "origin", "main")
    if name == "cold":
        shutil.rmtree(work / "cache")
