"""From the pull request to the revert: a contributor's branch, the review comment, the merge, watch and the revert."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Process

GOLDEN = Path(__file__).with_name("review-comment.md")
Run = Callable[..., subprocess.CompletedProcess[str]]
Git = Callable[..., str]
Commit = Callable[..., None]

API = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: api
  namespace: shop
spec:
  replicas: 3
"""
NAMED = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: api
  namespace: shop
spec:
  resourceSelectors:
    - {apiVersion: apps/v1, kind: Deployment, name: api}
  placement:
    clusterAffinity:
      clusterNames: [one]
"""


@pytest.fixture
def remote(fleet: Path, git: Git, commit: Commit, tmp_path: Path) -> Path:
    """Return a bare repository; `fleet` is the contributor's clone of it."""
    commit(fleet, api=API, named=NAMED)
    path = tmp_path / "remote.git"
    git("clone", "-q", "--bare", str(fleet), str(path), at=tmp_path)
    git("remote", "add", "origin", str(path), at=fleet)
    return path


def push(git: Git, at: Path) -> None:
    git("push", "-q", "origin", "HEAD", at=at)
    git("fetch", "-q", "origin", at=at)


def holds(git: Git, at: Path, *paths: str) -> Callable[[], bool]:
    """Return whether the output branch has exactly these manifests."""

    def look() -> bool:
        try:
            found = git("ls-tree", "-r", "--name-only", "placements", "clusters", at=at).splitlines()
        except subprocess.CalledProcessError:
            return False
        return {path for path in found if "/deployment-" in path} == {f"clusters/{path}.yaml" for path in paths}

    return look


def normal(text: str) -> str:
    """Return the comment without commit ids and times, which differ between runs."""
    return re.sub(r"`20[0-9T:-]+Z`", "`2026-01-01T00:00:00Z`", re.sub(r"`[0-9a-f]{10}`", "`1234567890`", text))


def test_a_change_from_pull_request_to_merge(
    remote: Path, fleet: Path, git: Git, commit: Commit, gitsched: Run, watcher: Callable[..., Process], tmp_path: Path
) -> None:
    resident = watcher(tmp_path, "-C", remote.as_uri(), "--interval", "0.2")
    resident.wait_for(holds(git, remote, "one/shop/deployment-api", "one/shop/deployment-web"))
    before = git("rev-parse", "placements:clusters", at=remote)

    # A contributor's branch: both policies select the other cluster.
    git("fetch", "-q", "origin", at=fleet)
    git("checkout", "-q", "-b", "move", at=fleet)
    policy = (fleet / "policy.yaml").read_text()
    commit(fleet, named=NAMED.replace("[one]", "[two]"), policy=policy.replace("ownership: private", "ownership: leased", 1))
    comment, plan = tmp_path / "comment.md", tmp_path / "plan.json"
    planned = gitsched(
        "plan", "origin/main", "HEAD", "--report", f"markdown={comment}", "--report", f"json={plan}", "--detailed-exitcode"
    )
    assert (planned.returncode, planned.stderr) == (2, "")
    if os.environ.get("REWRITE"):
        GOLDEN.write_text(normal(comment.read_text()))
    assert normal(comment.read_text()) == GOLDEN.read_text(), "REWRITE=1 writes what is printed now, to be looked at"

    # The merge, with the digest of what was reviewed; watch follows, and the manifests are there.
    digest = json.loads(plan.read_text())["digest"]
    git("checkout", "-q", "main", at=fleet)
    git("merge", "-q", "--no-ff", "-m", f"Merge move\n\nGitsched-Reviewed: {digest}", "move", at=fleet)
    checked = gitsched("plan", "--revision", "HEAD", "-o", "json")
    assert json.loads(checked.stdout)["digest"] == digest
    push(git, fleet)
    both = ("api", "web")  # the former copies stay for the overlap
    resident.wait_for(holds(git, remote, *(f"{site}/shop/deployment-{name}" for site in ("one", "two") for name in both)))

    # The revert: what no rule remembers goes back, and the plan says what does not, and what would bring it back.
    git("fetch", "-q", "origin", at=fleet)
    git("revert", "-m", "1", "--no-edit", "HEAD", at=fleet)
    back = gitsched("plan", "origin/main", "HEAD")
    assert re.search(r"Deployment shop/api\s+- two 3, \+ one 3[ ;]", back.stdout)
    assert "Deployment shop/web stays on two 2\n" in back.stdout
    stays = json.loads(gitsched("plan", "origin/main", "HEAD", "-o", "json").stdout)["stays"]
    assert [entry["anew"] for entry in stays] == [[{"cluster": "one", "replicas": 2}]]
    assert "WorkloadRebalancer" in stays[0]["remedy"]
    push(git, fleet)
    resident.wait_for(holds(git, remote, "one/shop/deployment-api", "one/shop/deployment-web", "two/shop/deployment-web"))

    # And that brings it back: the clusters get the very bytes that they had.
    commit(fleet, back=REBALANCE)
    push(git, fleet)
    resident.wait_for(holds(git, remote, "one/shop/deployment-api", "one/shop/deployment-web"))
    assert git("rev-parse", "placements:clusters", at=remote) == before


REBALANCE = """\
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata:
  name: back
spec:
  workloads:
    - {apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}
"""


def test_a_revert_restores_the_output_of_policies_without_history(
    remote: Path, fleet: Path, git: Git, commit: Commit, gitsched: Run
) -> None:
    gitsched("reconcile")
    before = git("rev-parse", "placements:clusters", at=fleet)
    commit(fleet, named=NAMED.replace("[one]", "[one, two]"), api=API.replace("3", "5"))
    gitsched("reconcile")
    assert git("rev-parse", "placements:clusters", at=fleet) != before
    git("revert", "--no-edit", "HEAD", at=fleet)
    assert "stays on" not in gitsched("plan", "HEAD~1", "HEAD").stdout
    gitsched("reconcile")
    assert git("rev-parse", "placements:clusters", at=fleet) == before


def test_watch_refuses_changes_until_they_match_the_reviewed_plan(
    fleet: Path, git: Git, commit: Commit, gitsched: Run, watcher: Callable[..., Process]
) -> None:
    gitsched("reconcile")
    digest = json.loads(gitsched("plan", "-o", "json").stdout)["digest"]
    commit(fleet, api=API, named=NAMED)
    resident = watcher(fleet, "--interval", "3600", "--require-reviewed")
    resident.wait_for(lambda: any("names no reviewed plan" in line["message"] for line in resident.events("refused")))
    git("commit", "-q", "--allow-empty", "-m", f"Reviewed\n\nGitsched-Reviewed: {digest}", at=fleet)
    resident.wait_for(lambda: any("Not as reviewed" in line["message"] for line in resident.events("review")))
    digest = json.loads(gitsched("plan", "-o", "json").stdout)["digest"]
    git("commit", "-q", "--allow-empty", "-m", f"Reviewed\n\nGitsched-Reviewed: {digest}", at=fleet)
    resident.wait_for(holds(git, fleet, "one/shop/deployment-api", "one/shop/deployment-web"))
    resident.wait_for(lambda: any(line["message"] == f"As reviewed: plan {digest}." for line in resident.events("review")))
