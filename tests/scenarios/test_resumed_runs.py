"""Runs that resume after something moved: the source went back, a person rewound the output branch, or the runner was away for days."""

from __future__ import annotations

import json
import re

import pytest

from gitsched.git import Repository
from gitsched.git.notes import read_note

from .conftest import UNGUARDED, Fleet, cluster, deployment, policy

WEB = "default/deployment-web"
DRAINED = cluster("first", "power:NoExecute")


def noted_source(fleet: Fleet) -> str:
    """Return the source commit in the note of the output's head."""
    head = fleet.head
    assert head is not None
    return str(json.loads(read_note(Repository(fleet.path), head) or "{}").get("drySha"))


def state(fleet: Fleet) -> dict[str, str]:
    """Return decisions and deliveries, without metadata of the run. The times in records are those of the source commits that a run has
    seen, so they differ where a run has not seen each commit."""
    metadata = ("README.md", "gitsched.json", "hydrator.metadata")
    files = {path: blob for path, blob in fleet.files().items() if path not in metadata}
    return {
        path: re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME", fleet.read(path)) if path.startswith("status/") else blob
        for path, blob in files.items()
    }


class TestTheSourceWentBack:
    """A force-push to an older commit, which the operator allows: decisions are those of the older commit, as far as no rule remembers."""

    def test_a_reset_takes_back_workloads_and_replicas(self, pair: Fleet) -> None:
        pair.commit({"gitsched.yaml": UNGUARDED})
        pair.reconcile()
        old, before = pair.git("rev-parse", "HEAD"), state(pair)
        pair.commit({"apps/web.yaml": deployment("web", 7), "apps/new.yaml": deployment("new")}, hour=1)
        pair.reconcile(1)
        pair.git("reset", "-q", "--hard", old)
        run = pair.reconcile(2, allow_older=True)
        assert run.after is not None
        assert (state(pair), pair.trailers()["Gitsched-Source"]) == (before, old)
        assert (pair.load("gitsched.json")["source"], noted_source(pair)) == (old, old)
        assert pair.reconcile(3).after is None

    def test_time_does_not_run_backwards(self, pair: Fleet) -> None:
        """The output commit of an older source commit is not older than its parent, and timers keep their start."""
        pair.reconcile()
        old = pair.git("rev-parse", "HEAD")
        pair.commit({"clusters/first.yaml": DRAINED}, hour=5)
        pair.reconcile(5)
        pair.reconcile(6)
        assert pair.where(WEB) == ["second"]
        pair.git("reset", "-q", "--hard", old)
        pair.reconcile(7, allow_older=True)
        dates = pair.git("log", "--format=%ct", "placements").splitlines()
        assert dates == sorted(dates, reverse=True)
        assert pair.where(WEB) == ["second"], "nothing returns by itself to an earlier group"
        assert pair.load("gitsched.json")["source"] == old

    def test_a_reset_and_a_new_commit(self, pair: Fleet) -> None:
        pair.reconcile()
        old = pair.git("rev-parse", "HEAD")
        pair.commit({"apps/taken-back.yaml": deployment("taken-back")}, hour=1)
        pair.reconcile(1)
        pair.git("reset", "-q", "--hard", old)
        pair.commit({"apps/other.yaml": deployment("other")}, hour=1)
        pair.reconcile(2)
        assert (pair.where("default/deployment-taken-back"), pair.where("default/deployment-other")) == ([], ["first"])

    def test_a_rebalancer_that_was_taken_back_can_be_requested_again(self, pair: Fleet) -> None:
        pair.reconcile()
        workloads = "  workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}]\n"
        head = "apiVersion: apps.karmada.io/v1alpha1\nkind: WorkloadRebalancer\nmetadata: {name: again}\nspec:\n"
        pair.commit({"clusters/first.yaml": DRAINED}, hour=1)
        pair.reconcile(1)
        pair.commit({"clusters/first.yaml": cluster("first")}, hour=2)
        pair.reconcile(2)
        old = pair.git("rev-parse", "HEAD")
        pair.commit({"again.yaml": head + workloads}, hour=3)
        pair.git("reset", "-q", "--hard", old)
        pair.reconcile(4)
        assert pair.where(WEB) == ["second"]
        pair.commit({"again.yaml": head + workloads}, hour=5)
        pair.reconcile(5)
        pair.reconcile(6)
        assert pair.where(WEB) == ["first"]


class TestTheOutputWasRewound:
    """A person reset the output branch to an older commit: the next run decides from the records there, and gets to the same place."""

    @pytest.mark.parametrize("commits", [1, 2, 3])
    def test_the_next_run_catches_up(self, pair: Fleet, commits: int) -> None:
        pair.commit({"gitsched.yaml": UNGUARDED})
        pair.reconcile()
        for hour in (1, 2, 3):
            pair.commit(
                {f"apps/app-{hour}.yaml": deployment(f"app-{hour}"), "apps/web.yaml": deployment("web", 2 + hour)}, hour=hour
            )
            pair.reconcile(hour)
        expected, head = state(pair), pair.head
        pair.git("update-ref", "refs/heads/placements", f"placements~{commits}")
        assert pair.reconcile(4).after is not None
        assert state(pair) == expected
        source = pair.git("rev-parse", "main")
        assert (pair.load("gitsched.json")["source"], noted_source(pair)) == (source, source)
        assert pair.head != head or commits == 1
        assert pair.reconcile(5).after is None

    def test_a_drain_before_the_rewind_is_made_again(self, pair: Fleet) -> None:
        pair.reconcile()
        pair.commit({"clusters/first.yaml": DRAINED}, hour=1)
        pair.reconcile(1)
        pair.reconcile(2)
        assert pair.where(WEB) == ["second"]
        pair.git("update-ref", "refs/heads/placements", pair.git("rev-list", "--max-parents=0", "placements"))
        pair.reconcile(3)
        assert "second" in pair.where(WEB)
        pair.reconcile(4)
        assert pair.where(WEB) == ["second"]

    def test_a_file_that_broke_since_then_has_its_last_valid_version(self, pair: Fleet) -> None:
        """The commit that the record names is older than the last valid version, and kept/ is gone with the rewind."""
        pair.reconcile()
        pair.commit({"apps/web.yaml": deployment("web", 5)}, hour=1)
        pair.reconcile(1)
        pair.commit({"apps/web.yaml": deployment("web", 9) + "  oops: [\n"}, hour=2)
        pair.reconcile(2)
        pair.git("update-ref", "refs/heads/placements", pair.git("rev-list", "--max-parents=0", "placements"))
        pair.reconcile(3)
        assert pair.load(f"clusters/first/{WEB}.yaml")["spec"]["replicas"] == 5

    def test_a_run_with_the_plan_of_the_newer_head_in_its_cache_starts_from_the_branch(self, pair: Fleet) -> None:
        pair.reconcile()
        for hour in (1, 2):
            pair.commit({"apps/web.yaml": deployment("web", 2 + hour)}, hour=hour)
            pair.reconcile(hour)
        pair.git("update-ref", "refs/heads/placements", "placements~2")
        pair.commit({"apps/web.yaml": deployment("web", 9)}, hour=3)
        pair.reconcile(3)
        assert pair.load(f"clusters/first/{WEB}.yaml")["spec"]["replicas"] == 9
        assert pair.git("rev-list", "--count", "placements") == "2"

    def test_a_rewound_remote_decides(self, pair: Fleet) -> None:
        bare = pair.path.parent / "remote.git"
        pair.git("clone", "-q", "--bare", ".", str(bare))
        pair.git("remote", "add", "origin", bare.as_uri())
        pair.reconcile(push="origin")
        first = pair.head
        pair.commit({"apps/web.yaml": deployment("web", 5)}, hour=1)
        pair.reconcile(1, push="origin")
        newest = pair.head
        assert first is not None
        pair.git("--git-dir", str(bare), "update-ref", "refs/heads/placements", first)
        run = pair.reconcile(2, push="origin")
        assert (run.before, pair.git("--git-dir", str(bare), "rev-parse", "placements")) == (first, run.after)
        assert pair.git("rev-parse", f"{run.after}:clusters") == pair.git("rev-parse", f"{newest}:clusters")


class TestTheRunnerWasAway:
    """A runner that resumes after days has the records, the notes and the metadata of one that ran all the time."""

    def test_the_state_is_that_of_a_runner_that_was_never_away(self, pair: Fleet) -> None:
        pair.commit({"gitsched.yaml": UNGUARDED})
        pair.reconcile()
        present = Fleet(pair.path.parent / "present", pair.path.parent / "present-cache")
        present.git("fetch", "-q", str(pair.path), "main:refs/heads/copy", "placements:placements")
        present.git("reset", "-q", "--hard", "copy")
        for hour, files in (
            (1, {"apps/one.yaml": deployment("one")}),
            (2, {"apps/web.yaml": deployment("web", 5)}),
            (3, {"apps/one.yaml": None, "apps/two.yaml": deployment("two")}),
            (4, {"policies/all.yaml": policy("first", "second", more="  priority: 1\n")}),
        ):
            pair.commit(files, hour=hour)
            present.git("fetch", "-q", str(pair.path), "main")
            present.git("reset", "-q", "--hard", "FETCH_HEAD")
            present.reconcile(hour)
        pair.reconcile(24 * 5)
        present.reconcile(24 * 5)
        assert state(pair) == state(present)
        source = pair.git("rev-parse", "main")
        assert {noted_source(fleet) for fleet in (pair, present)} == {source}
        assert pair.reconcile(24 * 5 + 1).after is None

    def test_commits_that_change_nothing_are_noted(self, pair: Fleet) -> None:
        pair.reconcile()
        head = pair.head
        for hour in range(1, 6):
            pair.commit({"note.txt": str(hour)}, hour=hour)
        pair.reconcile(24 * 9)
        assert (pair.head, noted_source(pair)) == (head, pair.git("rev-parse", "main"))
