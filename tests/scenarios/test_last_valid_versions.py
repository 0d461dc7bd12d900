"""A broken file counts as in the newest commit in which it is valid, also if no run has seen that commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.model.finding import Finding
from gitsched.reconcile import RunResult
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.source import source_history

from .conftest import Fleet, cluster, deployment, execute
from .test_kustomize_builds import LAYOUT as KUSTOMIZE
from .test_kustomize_builds import OVERLAY

WEB = "default/deployment-web"
FIRST = "clusters/first.yaml"
DRAINED = cluster("first", "power:NoExecute")
TYPO = "  oops: [\n"
NOW_ON_SECOND = ["second"]


def find(run: RunResult, code: str) -> list[Finding]:
    return [finding for finding in run.plan.findings if finding.code == code]


@pytest.mark.parametrize(
    "typo", [TYPO, "  taint: []\n  syncMode: Pul\n", "  region: south\n"], ids=["no YAML", "schema", "key twice"]
)
def test_a_drain_takes_effect_if_a_typo_follows_before_the_next_run(pair: Fleet, typo: str) -> None:
    pair.reconcile()
    drain = pair.commit({FIRST: DRAINED}, hour=1)
    pair.commit({"apps/other.yaml": deployment("other")}, hour=1)
    pair.commit({FIRST: DRAINED + typo}, hour=1)
    run = pair.reconcile(1)
    assert pair.where(WEB) == NOW_ON_SECOND
    assert pair.files()[f"kept/{FIRST}"] == pair.git("rev-parse", f"{drain}:{FIRST}")
    (note,) = find(run, "last-valid-used")
    assert (note.severity, str(note.location)) == ("info", f"{FIRST}:1:1")
    assert f"as of commit {drain[:10]}" in note.message
    assert pair.load("gitsched.json")["keptFiles"] == {FIRST: drain}


def test_the_finding_names_the_commit_as_long_as_the_file_is_broken(pair: Fleet) -> None:
    pair.reconcile()
    drain = pair.commit({FIRST: DRAINED}, hour=1)
    pair.commit({FIRST: DRAINED + TYPO}, hour=1)
    pair.reconcile(1)
    assert pair.load("gitsched.json")["keptFiles"] == {FIRST: drain}
    for hour in (2, 3):
        pair.commit({"apps/web.yaml": deployment("web", hour)}, hour=hour)
        run = pair.reconcile(hour)
        assert run.after is not None
        assert [drain[:10] in finding.message for finding in find(run, "last-valid-used")] == [True]
        assert pair.where(WEB) == ["second"]
    pair.commit({FIRST: cluster("first")}, hour=4)
    run = pair.reconcile(4)
    assert find(run, "last-valid-used") == []
    assert "keptFiles" not in pair.load("gitsched.json") or run.after is None


def test_of_several_valid_versions_the_newest_counts(pair: Fleet) -> None:
    pair.reconcile()
    for replicas in (3, 4, 5):
        pair.commit({"apps/web.yaml": deployment("web", replicas)}, hour=1)
    for _ in range(2):
        pair.commit({"apps/web.yaml": deployment("web", 9) + TYPO, "note.txt": "x"}, hour=1)
    pair.reconcile(1)
    assert pair.load(f"clusters/first/{WEB}.yaml")["spec"]["replicas"] == 5


def test_each_document_of_a_file_has_its_own_last_valid_version(pair: Fleet) -> None:
    """No commit has both documents valid after the change of the first one."""

    def write(one: str, two: str) -> dict[str, str]:
        return {"apps/both.yaml": f"{one}---\n{two}"}

    bad = "  labels: [a]\n"
    one, two = deployment("one"), deployment("two")
    pair.commit(write(one, two))
    pair.reconcile()
    broken_two = two.replace("spec:\n", f"{bad}spec:\n").replace("replicas: 2", "replicas: 7")
    pair.commit(write(deployment("one", 5), broken_two), hour=1)
    pair.commit(write(deployment("one", 6).replace("spec:\n", f"{bad}spec:\n"), broken_two), hour=1)
    run = pair.reconcile(1)
    shown = {name: pair.load(f"clusters/first/default/deployment-{name}.yaml")["spec"]["replicas"] for name in ("one", "two")}
    assert shown == {"one": 5, "two": 2}
    assert "as of commits" in find(run, "last-valid-used")[0].message
    before = {path: blob for path, blob in pair.files().items() if path.startswith("clusters/")}
    assert "# as many as it takes" in pair.read("clusters/first/default/deployment-one.yaml")
    pair.commit({"apps/web.yaml": deployment("web", 8)}, hour=2)
    pair.reconcile(2)
    after = {path: blob for path, blob in pair.files().items() if path.startswith("clusters/")}
    assert {path for path in before if before[path] != after[path]} == {f"clusters/first/{WEB}.yaml", "clusters/first/cluster.json"}


def test_broken_settings_are_those_of_the_newest_valid_commit(pair: Fleet) -> None:
    settings = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {karmada: {taintEviction: %s}}\n"
    pair.commit({"gitsched.yaml": settings % "true"})
    pair.reconcile()
    pair.commit({"gitsched.yaml": settings % "false"}, hour=1)
    pair.commit({"gitsched.yaml": settings % "["}, hour=1)
    pair.commit({FIRST: DRAINED}, hour=1)
    pair.reconcile(1)
    assert pair.where(WEB) == ["first"], "eviction was switched off before the typo"


class TestMerges:
    """Which version counts where branches were merged since the last run."""

    def start(self, pair: Fleet) -> None:
        pair.commit({FIRST: cluster("first") + "# end\n"})
        pair.reconcile()

    def test_a_merged_branch_with_a_drain_and_a_typo(self, pair: Fleet) -> None:
        self.start(pair)
        pair.git("checkout", "-q", "-b", "feature")
        pair.commit({FIRST: DRAINED}, hour=1)
        pair.commit({FIRST: DRAINED + TYPO}, hour=1)
        pair.git("checkout", "-q", "main")
        pair.commit({"apps/other.yaml": deployment("other")}, hour=1)
        pair.git("merge", "-q", "--no-ff", "--no-edit", "feature")
        pair.reconcile(24 * 365 * 2)
        assert pair.where(WEB) == ["second"]

    def test_an_older_branch_does_not_take_back_a_drain_that_was_planned(self, pair: Fleet) -> None:
        """The valid version of the branch is newer than the drain, and it does not have it."""
        self.start(pair)
        pair.git("checkout", "-q", "-b", "feature")
        pair.git("checkout", "-q", "main")
        pair.commit({FIRST: DRAINED}, hour=1)
        pair.reconcile(1)
        pair.git("checkout", "-q", "feature")
        pair.commit({FIRST: "# note\n" + cluster("first")}, hour=2)
        pair.commit({FIRST: "# note\n" + cluster("first") + TYPO}, hour=2)
        pair.git("checkout", "-q", "main")
        pair.git("merge", "-q", "--no-ff", "--no-edit", "-X", "theirs", "feature")
        pair.reconcile(3)
        assert pair.where(WEB) == ["second"]

    @pytest.mark.parametrize("pulled", [False, True], ids=["a drain on the branch", "a drain that was pulled"])
    def test_of_parallel_valid_versions_that_of_the_branch_counts(self, pair: Fleet, pulled: bool) -> None:
        self.start(pair)
        pair.git("checkout", "-q", "-b", "other")
        pair.commit({FIRST: DRAINED}, hour=1)
        pair.git("checkout", "-q", "main")
        pair.commit({FIRST: cluster("first") + "# start\n" + TYPO}, hour=2)
        if not pulled:  # main fast-forwards to what others call theirs
            pair.git("branch", "-f", "mine")
            pair.git("reset", "-q", "--hard", "other")
            pair.git("merge", "-q", "--no-ff", "--no-edit", "-X", "theirs", "mine")
        else:
            pair.git("merge", "-q", "--no-ff", "--no-edit", "-X", "ours", "other")
        assert "oops" in pair.git("show", f"HEAD:{FIRST}")
        pair.reconcile(24 * 365 * 2)
        assert pair.where(WEB) == ["second"]


class TestRewrittenHistory:
    def test_a_branch_reset_to_a_broken_commit_keeps_what_was_delivered(self, pair: Fleet) -> None:
        pair.reconcile()
        broken = pair.commit({"apps/web.yaml": deployment("web", 9) + TYPO}, hour=1)
        pair.commit({"apps/web.yaml": deployment("web", 5)}, hour=2)
        pair.reconcile(2)
        pair.git("reset", "-q", "--hard", broken)
        pair.reconcile(3, allow_older=True)
        assert pair.load(f"clusters/first/{WEB}.yaml")["spec"]["replicas"] == 5

    def test_commits_after_the_last_common_one_count(self, pair: Fleet) -> None:
        start = pair.git("rev-parse", "HEAD")
        pair.commit({"apps/web.yaml": deployment("web", 3)}, hour=1)
        pair.reconcile(1)
        pair.git("reset", "-q", "--hard", start)
        pair.commit({"apps/web.yaml": deployment("web", 6)}, hour=2)
        pair.commit({"apps/web.yaml": deployment("web", 7) + TYPO}, hour=2)
        pair.reconcile(2)
        assert pair.load(f"clusters/first/{WEB}.yaml")["spec"]["replicas"] == 6

    def test_a_history_without_a_common_commit_counts_as_far_as_it_goes(self, pair: Fleet) -> None:
        pair.reconcile()
        pair.git("checkout", "-q", "--orphan", "fresh")
        pair.commit({"apps/web.yaml": deployment("web", 6)}, hour=1)
        pair.commit({"apps/web.yaml": deployment("web", 7) + TYPO}, hour=1)
        pair.git("branch", "-M", "fresh", "main")
        pair.reconcile(2)
        assert pair.load(f"clusters/first/{WEB}.yaml")["spec"]["replicas"] == 6


class TestShallowClones:
    @pytest.fixture
    def remote(self, pair: Fleet, tmp_path: Path) -> str:
        """Return a bare repository whose last run did not see a drain and the typo after it."""
        bare = tmp_path / "remote.git"
        execute("init", "-q", "--bare", "-b", "main", str(bare), at=tmp_path)
        pair.git("remote", "add", "origin", bare.as_uri())
        pair.git("push", "-q", "origin", "main")
        pair.reconcile(push="origin")
        pair.commit({FIRST: DRAINED}, hour=1)
        pair.commit({FIRST: DRAINED + TYPO}, hour=1)
        for number in range(3):
            pair.commit({"note.txt": str(number)}, hour=1)
        pair.git("push", "-q", "origin", "main")
        return bare.as_uri()

    def clone(self, remote: str, path: Path) -> Fleet:
        execute("clone", "-q", "--depth=1", remote, str(path), at=path.parent)
        fleet = Fleet(path, path.parent / "new-cache")
        fleet.git("fetch", "-q", "origin", "placements:placements")
        return fleet

    def test_the_source_at_a_url_fetches_the_history(self, pair: Fleet, remote: str, tmp_path: Path) -> None:
        run = pair.reconcile(1, location=remote, cache=tmp_path / "new-cache")
        assert find(run, "history-incomplete") == []
        pair.git("fetch", "-q", "-f", "origin", "placements:placements")
        assert pair.where(WEB) == NOW_ON_SECOND

    def test_a_shallow_clone_fetches_commits(self, remote: str, tmp_path: Path) -> None:
        clone = self.clone(remote, tmp_path / "clone")
        run = clone.reconcile(1)
        assert find(run, "history-incomplete") == []
        assert clone.where(WEB) == NOW_ON_SECOND

    def test_what_cannot_be_fetched_is_reported(self, pair: Fleet, remote: str, tmp_path: Path) -> None:
        clone = self.clone(remote, tmp_path / "clone")
        clone.git("fetch", "-q", "--depth=1", "origin", pair.git("rev-parse", "HEAD~5"))
        clone.git("remote", "set-url", "origin", str(tmp_path / "gone"))
        run = clone.reconcile(1)
        (finding,) = find(run, "history-incomplete")
        assert finding.severity == "warning"
        assert f"commit {pair.git('rev-parse', 'HEAD~1')[:10]} is missing in this clone" in finding.message
        assert "git fetch --unshallow" in finding.message
        assert clone.where(WEB) == ["first"], "what is known stays as it was"


def test_a_history_that_is_too_long_is_reported(pair: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_history, "MAX_COMMITS", 3)
    pair.reconcile()
    pair.commit({FIRST: DRAINED}, hour=1)
    for number in range(4):
        pair.commit({FIRST: DRAINED + TYPO, "note.txt": str(number)}, hour=1)
    run = pair.reconcile(1)
    assert [finding.severity for finding in find(run, "history-incomplete")] == ["warning"]
    assert pair.where(WEB) == ["first"]


@pytest.mark.parametrize("worktree", [True, False], ids=["files of the worktree", "a branch that is planned as merged"])
def test_a_plan_shows_what_a_run_will_do(pair: Fleet, worktree: bool) -> None:
    pair.reconcile()
    if worktree:
        pair.commit({FIRST: DRAINED}, hour=1)
        pair.write({FIRST: DRAINED + TYPO})
        review = compare_plans(pair.settings(1, worktree=True)).review
    else:
        pair.git("checkout", "-q", "-b", "feature")
        pair.commit({FIRST: DRAINED}, hour=1)
        pair.commit({FIRST: DRAINED + TYPO}, hour=1)
        pair.git("checkout", "-q", "main")
        pair.commit({"note.txt": "x"}, hour=1)
        review = compare_plans(pair.settings(1, revision="feature"), "main").review
    assert [(move.key.name, sorted(move.after)) for move in review.moves] == [("web", ["second"])]


def test_a_root_that_cannot_be_built_has_the_objects_of_the_newest_commit_that_can(fleet: Fleet) -> None:
    fleet.commit(KUSTOMIZE)
    fleet.reconcile()
    path = "overlays/prod/kustomization.yaml"
    valid = fleet.commit({"overlays/prod/replicas.yaml": KUSTOMIZE["overlays/prod/replicas.yaml"].replace("6", "8")}, hour=1)
    fleet.commit({"note.txt": "x"}, hour=1)
    fleet.commit({path: OVERLAY + "openapi: {path: absent.json}\n"}, hour=1)
    fleet.commit({path: OVERLAY + "openapi: {path: gone.json}\n"}, hour=1)
    run = fleet.reconcile(1)
    assert fleet.load("clusters/one/shop/deployment-web.yaml")["spec"]["replicas"] == 8
    assert fleet.load("gitsched.json")["keptRoots"] == {"overlays/prod": valid}
    assert [
        f"Not built, with the objects of commit {valid[:10]}: overlays/prod" in finding.message
        for finding in find(run, "kustomize-missing")
    ] == [True]


def test_every_run_of_a_broken_history_gives_the_same_output(pair: Fleet, tmp_path: Path) -> None:
    pair.reconcile()
    pair.commit({FIRST: DRAINED}, hour=1)
    pair.commit({FIRST: DRAINED + TYPO}, hour=1)
    other = Fleet(tmp_path / "other", tmp_path / "other-cache")
    other.git("fetch", "-q", str(pair.path), "main:refs/heads/copy", "placements:placements")
    other.git("checkout", "-q", "-B", "main", "copy")
    other.git("branch", "-D", "copy")
    assert pair.reconcile(1).after == other.reconcile(1).after is not None
