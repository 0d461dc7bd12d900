"""Facts branches: scores that machines commit, how they reach decisions, and what is reported about them."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitsched.git import FactsNames, FactsRepository, open_source
from tests.builders.ocm import addon_scores, to_yaml
from tests.cli.conftest import Run
from tests.cli.test_scores import ASKED, AT, PUSHED, chosen, vector
from tests.local import PATIENCE
from tests.metrics.conftest import Server
from tests.scenarios.test_krake_servers import Prometheus

pytestmark = pytest.mark.usefixtures("local_servers")

CONFIG = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: fleet}
spec:
  source:
    facts:
      branch: facts
      clusterBranches: cluster-facts/{cluster}
      history: 3
"""
CLUSTERS_ONLY = CONFIG.replace("      branch: facts\n", "")
NAMES = FactsNames("facts", "cluster-facts/")
Git, Commit = Callable[..., str], Callable[..., None]
Push = Callable[..., None]
UNTIL = "2026-03-02T09:00:00Z"
FINDING = "Placement.cluster.open-cluster-management.io/ns1/placement"


@pytest.fixture
def facts(place: Path, commit: Commit) -> Path:
    """A fleet whose scores are on facts branches."""
    commit(place, gitsched=CONFIG, source=PUSHED)
    return place


@pytest.fixture
def push(git: Git, tmp_path: Path) -> Push:
    """Push a file to a branch as an agent in a cluster does: from a repository of its own, without history."""

    def run(url: Path, branch: str, text: str, file: str = "scores.yaml") -> None:
        agent = tmp_path / "agent"
        git("init", "-q", str(agent), at=tmp_path)
        git("checkout", "-q", "--orphan", f"new-{time.monotonic_ns()}", at=agent)
        git("rm", "-rqf", "--ignore-unmatch", ".", at=agent)
        (agent / file).write_text(text)
        git("add", ".", at=agent)
        git("commit", "-qm", "Scores", at=agent)
        git("push", "-qf", str(url), f"HEAD:refs/heads/{branch}", at=agent)

    return run


def own_scores(cluster: str, value: int, *, valid_until: str = UNTIL) -> str:
    return to_yaml(addon_scores(cluster, {"cpuratio": value}, valid_until=valid_until))


def list_findings(gitsched: Run, now: str = "2026-03-02T08:00:00Z", *arguments: str) -> list[tuple[str, str]]:
    done = gitsched("plan", "--now", now, "-o", "json", *arguments)
    assert done.returncode == 0, done.stderr
    findings = json.loads(done.stdout)["findings"]
    return [(finding["code"], finding["message"]) for finding in findings if finding["severity"] != "info"]


def test_scores_are_committed_to_the_facts_branch_and_not_to_the_source(gitsched: Run, git: Git, facts: Path) -> None:
    source = git("rev-parse", "main", at=facts)
    done = gitsched("scores", "--now", "2090-03-02T08:00:00Z")
    commit = git("rev-parse", "facts", at=facts)
    assert done.stdout == f"scores/default.yaml: scores of 5 clusters\nCommitted {commit[:10]} to facts.\n", done.stderr
    assert git("status", "--porcelain", at=facts) == ""
    assert git("rev-parse", "main", at=facts) == source
    assert git("log", "-1", "--format=%ct %an", "facts", at=facts) == "3792124800 gitsched"
    assert chosen(gitsched, git, facts, "2090-03-02T08:05:00Z") == ["ash", "bru", "cph"]
    assert "Gitsched-Cause: facts" in git("log", "-1", "--format=%B", "placements", at=facts)
    assert json.loads(git("show", "placements:gitsched.json", at=facts))["facts"] == {"facts": commit}


def test_unchanged_scores_make_no_commit_on_either_branch(gitsched: Run, git: Git, facts: Path) -> None:
    gitsched("scores", *AT)
    gitsched("reconcile", "--now", "2026-03-02T08:01:00Z")
    heads = [git("rev-parse", branch, at=facts) for branch in ("facts", "placements")]
    done = gitsched("scores", "--now", "2026-03-02T08:20:00Z")
    assert done.stdout == "scores/default.yaml: scores of 5 clusters, unchanged\nNothing to commit to facts.\n"
    assert "Committed" in gitsched("scores", "--now", "2026-03-02T08:40:00Z").stdout
    assert "No changes" in gitsched("reconcile", "--now", "2026-03-02T08:41:00Z").stdout, "only the expiry of the scores moved"
    assert [git("rev-parse", branch, at=facts) == head for branch, head in zip(("facts", "placements"), heads, strict=True)] == [
        False,
        True,
    ]


def test_a_local_facts_branch_that_origin_has_continued_is_not_read(gitsched: Run, git: Git, facts: Path) -> None:
    gitsched("scores", *AT)
    old = git("rev-parse", "facts", at=facts)
    gitsched("scores", "--now", "2026-03-02T08:40:00Z")
    new = git("rev-parse", "facts", at=facts)
    git("update-ref", "refs/remotes/origin/facts", new, at=facts)
    git("update-ref", "refs/heads/facts", old, at=facts)
    assert gitsched("scores", "--now", "2026-03-02T09:30:00Z").returncode == 0
    assert git("rev-parse", "facts^", at=facts) == new


def test_the_history_of_a_facts_branch_is_bounded(gitsched: Run, git: Git, facts: Path) -> None:
    counts = []
    for hour in range(8, 15):
        gitsched("scores", "--now", f"2026-03-02T{hour:02}:00:00Z")
        counts.append(int(git("rev-list", "--count", "facts", at=facts)))
    assert counts == [1, 2, 3, 1, 2, 3, 1]


def test_the_facts_branch_is_pushed_and_a_clone_with_a_url_reads_it(
    gitsched: Run, git: Git, facts: Path, tmp_path: Path, push: Push
) -> None:
    remote = tmp_path / "remote.git"
    git("init", "-q", "--bare", "-b", "main", str(remote), at=tmp_path)
    git("remote", "add", "origin", str(remote), at=facts)
    git("push", "-q", "origin", "main", at=facts)
    assert gitsched("scores", "--push", "origin", *AT).returncode == 0
    assert git("rev-parse", "facts", at=remote) == git("rev-parse", "refs/remotes/origin/facts", at=facts)
    push(remote, "cluster-facts/edi", own_scores("edi", 99).replace("default", "other"))
    url = f"file://{remote}"
    assert "Committed" in gitsched("reconcile", "-C", url, "--now", "2026-03-02T08:05:00Z").stdout
    for hour in (9, 10, 11, 12):
        done = gitsched("scores", "-C", url, "--now", f"2026-03-02T{hour:02}:00:00Z")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("scores/default.yaml: scores of 5 clusters\nCommitted")
    assert git("rev-list", "--count", "facts", at=remote) == "2", "the new history was pushed, too"
    fresh = tmp_path / "fresh"
    git("clone", "-q", "--single-branch", str(remote), str(fresh), at=tmp_path)
    codes = [code for code, _ in list_findings(gitsched, "2026-03-02T12:01:00Z", "-C", str(fresh))]
    assert codes == ["output-not-fetched", "facts-missing", "ocm-score-unknown"]
    assert list_findings(gitsched, "2026-03-02T12:01:00Z", "-C", str(fresh), "--fetch", "origin") == []


def test_two_concurrent_writers_of_a_facts_branch_lose_nothing(gitsched: Run, git: Git, facts: Path, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    git("clone", "-q", "--bare", str(facts), str(remote), at=tmp_path)
    url = f"file://{remote}"
    gitsched("scores", "-C", url, "--cache-dir", str(tmp_path / "one"), *AT)
    gitsched("scores", "-C", url, "--cache-dir", str(tmp_path / "two"), "--now", "2026-03-02T10:00:00Z")
    done = gitsched("scores", "-C", url, "--cache-dir", str(tmp_path / "one"), "--now", "2026-03-02T12:00:00Z")
    assert done.returncode == 0, done.stderr
    assert git("rev-list", "--count", "facts", at=remote) == "3"


def test_files_of_removed_definitions_leave_the_facts_branch(gitsched: Run, git: Git, facts: Path, commit: Commit) -> None:
    gitsched("scores", *AT)
    commit(facts, source=PUSHED.replace("name: default", "name: better"))
    gitsched("scores", *AT)
    assert git("ls-tree", "-r", "--name-only", "facts", at=facts) == "scores/better.yaml"


def test_a_cluster_pushes_its_scores_to_its_own_branch(gitsched: Run, git: Git, commit: Commit, facts: Path, push: Push) -> None:
    commit(facts, source=None, gitsched=CLUSTERS_ONLY)
    for cluster, value in {"ash": 10, "bru": 20, "cph": 30, "dub": 40, "edi": 50}.items():
        push(facts, f"cluster-facts/{cluster}", own_scores(cluster, value))
    assert chosen(gitsched, git, facts, "2026-03-02T08:00:00Z") == ["cph", "dub", "edi"]
    push(facts, "cluster-facts/ash", own_scores("ash", 100))
    assert chosen(gitsched, git, facts, "2026-03-02T08:01:00Z") == ["ash", "dub", "edi"]


def test_a_cluster_speaks_only_for_itself(gitsched: Run, git: Git, commit: Commit, facts: Path, push: Push) -> None:
    commit(facts, source=None, gitsched=CLUSTERS_ONLY)
    workload = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: ns1}\n"
    push(facts, "cluster-facts/ash", own_scores("ash", 1) + "---\n" + own_scores("bru", -100) + workload)
    push(facts, "cluster-facts/bru", own_scores("bru", 2))
    found = dict(list_findings(gitsched, "2026-03-02T08:00:00Z"))
    assert found["facts-foreign"] == (
        "AddOnPlacementScore bru/default is not of the cluster ash, to which the branch cluster-facts/ash belongs: the document is not "
        "read; set metadata.namespace: ash"
    )
    assert found["facts-ignored"].startswith(
        "a facts branch holds only AddOnPlacementScore or ClusterFacts or ClusterReport, not ConfigMap"
    )
    assert found["ocm-score-missing"] == f"{FINDING} uses 0 for the score default/cpuratio of cph, dub, edi: there is no such score"
    assert chosen(gitsched, git, facts, "2026-03-02T08:00:00Z") == ["ash", "bru", "cph"]


INVALID = {
    "out of range": (own_scores("bru", 101), "out-of-range"),
    "not a number": (own_scores("bru", 1).replace("value: 1", "value: NaN"), "wrong-type"),
    "not YAML": ("status: [", "facts-ignored"),
    "too large": ("x" * 300_000, "facts-ignored"),
    "empty": ("# empty\n", None),
}


def test_an_invalid_file_of_a_cluster_costs_the_scores_of_this_cluster_only(
    gitsched: Run, git: Git, commit: Commit, facts: Path, push: Push
) -> None:
    commit(facts, source=None, gitsched=CLUSTERS_ONLY)
    for cluster in ("ash", "cph", "dub", "edi"):
        push(facts, f"cluster-facts/{cluster}", own_scores(cluster, 50))
    for case, (text, code) in INVALID.items():
        push(facts, "cluster-facts/bru", text)
        done = gitsched("plan", "--now", "2026-03-02T08:00:00Z", "-o", "json")
        assert done.returncode == 0, f"{case}: a machine does not fail the run of the fleet"
        found = json.loads(done.stdout)["findings"]
        findings = {finding["code"]: finding for finding in found if finding["severity"] != "info"}
        assert findings.pop("ocm-score-missing")["message"].endswith("cpuratio of bru: there is no such score"), case
        assert list(findings) == ([code] if code else []), case
        assert all(finding["severity"] == "warning" for finding in findings.values())
        assert all(finding["location"]["path"] == "cluster-facts/bru:scores.yaml" for finding in findings.values())
    assert chosen(gitsched, git, facts, "2026-03-02T08:00:00Z") == ["ash", "cph", "dub"]


def test_the_source_wins_over_facts_and_the_shared_branch_over_that_of_a_cluster(
    gitsched: Run, facts: Path, commit: Commit, push: Push
) -> None:
    commit(facts, own=own_scores("ash", 1))
    gitsched("scores", *AT)
    push(facts, "cluster-facts/bru", own_scores("bru", 1))
    messages = [message for code, message in list_findings(gitsched) if code == "facts-duplicate"]
    assert [message.partition(", which counts")[0] for message in messages] == [
        "AddOnPlacementScore bru/default is also in facts:scores/default.yaml:13:1",
        "AddOnPlacementScore ash/default is also in own.yaml:1:1",
    ]


def test_expired_scores_are_reported_with_clusters_and_time(gitsched: Run, facts: Path) -> None:
    gitsched("scores", *AT)
    assert list_findings(gitsched, "2026-03-02T09:00:01Z") == [
        (
            "ocm-scores-expired",
            f"{FINDING} uses 0 for the score default/cpuratio, which has expired: ash, bru, cph, dub, edi since 2026-03-02T09:00:00Z; "
            "update the scores",
        )
    ]


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (
            ("scoreName: cpuratio", "scoreName: cpuratoi"),
            "uses 0 for the score default/cpuratoi: no AddOnPlacementScore default has a score cpuratoi; did you mean cpuratio?",
        ),
        (
            ("resourceName: default", "resourceName: defualt"),
            "uses 0 for the score defualt/cpuratio: no AddOnPlacementScore has the name defualt; did you mean default?",
        ),
        (
            ("resourceName: default", "resourceName: qqq"),
            "uses 0 for the score qqq/cpuratio: no AddOnPlacementScore has the name qqq",
        ),
    ],
)
def test_a_misspelt_score_is_reported_at_its_field(
    gitsched: Run, facts: Path, commit: Commit, change: tuple[str, str], finding: str
) -> None:
    gitsched("scores", *AT)
    commit(facts, placement=(facts / "placement.yaml").read_text().replace(*change))
    done = gitsched("validate", *AT)
    assert " ".join(done.stdout.split()).startswith(f"placement.yaml:{15 if 'score' in change[0] else 14}:")
    assert list_findings(gitsched) == [("ocm-score-unknown", f"{FINDING} {finding}")]


def test_scores_of_unknown_clusters_are_reported(gitsched: Run, facts: Path, push: Push) -> None:
    gitsched("scores", *AT)
    push(facts, "cluster-facts/dubb", own_scores("dubb", 1))
    (found,) = list_findings(gitsched)
    assert found == (
        "ocm-score-cluster-unknown",
        "AddOnPlacementScore.cluster.open-cluster-management.io/dubb/default has no effect: there is no ManagedCluster dubb; "
        "did you mean dub?",
    )


@pytest.mark.parametrize(
    ("facts_section", "field"),
    [
        ("{branch: placements}", "source.facts.branch"),
        ("{branch: refs/tags/x}", "source.facts.branch"),
        ("{branch: facts, clusterBranches: 'facts/{cluster}'}", "source.facts.clusterBranches"),
        ("{clusterBranches: cluster-facts}", "source.facts.clusterBranches"),
        ("{clusterBranches: '{cluster}'}", "a name that no other branch can have"),
        ("{clusterBranches: 'p{cluster}'}", "a name that no other branch can have"),
        (
            "{branch: cluster-facts/all, clusterBranches: 'refs/heads/cluster-facts/{cluster}'}",
            "a name that no other branch can have",
        ),
        ("{branch: facts, history: 0}", "history"),
    ],
)
def test_invalid_names_of_facts_branches_are_reported(
    gitsched: Run, place: Path, commit: Commit, facts_section: str, field: str
) -> None:
    commit(
        place,
        gitsched=f"apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {{name: x}}\nspec: {{source: {{facts: {facts_section}}}}}\n",
    )
    done = gitsched("validate")
    assert (done.returncode, field in " ".join(done.stdout.split())) == (1, True), done.stdout


def test_the_source_branch_is_never_a_facts_branch(gitsched: Run, git: Git, facts: Path, commit: Commit) -> None:
    commit(facts, gitsched=CONFIG.replace("branch: facts", "branch: main"))
    head = git("rev-parse", "main", at=facts)
    done = gitsched("scores", *AT)
    assert (done.returncode, "is the source branch" in done.stderr) == (1, True)
    assert git("rev-parse", "main", at=facts) == head


def test_the_branch_of_head_is_never_the_branch_of_a_cluster(gitsched: Run, place: Path, commit: Commit) -> None:
    commit(place, gitsched=CLUSTERS_ONLY.replace("cluster-facts/{cluster}", "m{cluster}"))
    assert [code for code, _ in list_findings(gitsched)] == ["ocm-score-unknown"]


def test_a_tree_without_end_on_the_branch_of_a_cluster_is_ignored(gitsched: Run, git: Git, facts: Path) -> None:
    """A few small trees that refer to each other have 10^8 entries, and must neither stop the fleet nor use its time."""
    gitsched("scores", *AT)
    blob = git("hash-object", "-w", "placement.yaml", at=facts)
    line = f"100644 blob {blob}\t%d.yaml\n"
    environment = {"GIT_DIR": str(facts / ".git")}
    for _ in range(4):
        text = "".join(line % number for number in range(100)).encode()
        tree = subprocess.run(["git", "mktree"], input=text, env=os.environ | environment, capture_output=True, check=True)
        line = f"040000 tree {tree.stdout.decode().strip()}\t%d\n"
    commit = git("commit-tree", "-m", "Scores", tree.stdout.decode().strip(), at=facts)
    git("update-ref", "refs/heads/cluster-facts/edi", commit, at=facts)
    assert list_findings(gitsched) == [
        ("facts-ignored", "the facts branch cluster-facts/edi is not read: the tree has more than 10,000 entries")
    ]


def test_too_many_facts_branches_are_reported(facts: Path, git: Git, push: Push, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = facts.parent / "remote.git"
    git("clone", "-q", "--bare", str(facts), str(remote), at=facts)
    for cluster in ("ash", "bru", "cph"):
        push(remote, f"cluster-facts/{cluster}", own_scores(cluster, 1))
    push(remote, "facts", own_scores("edi", 1))
    monkeypatch.setattr("gitsched.git.facts.MAX_BRANCHES", 3)
    repository = FactsRepository(open_source(remote.as_uri(), cache=facts.parent / "clones"), NAMES, None)
    for _ in range(2):
        found = repository.fetch()
        assert ([branch.cluster for branch in found], repository.ignored) == (["", "ash", "bru"], 1)


def test_a_failed_query_keeps_the_scores_on_the_facts_branch(
    gitsched: Run, git: Git, facts: Path, commit: Commit, server: Server
) -> None:
    server.handle = lambda received: vector({"ash": "1"})
    commit(facts, source=ASKED.replace("URL", server.url))
    gitsched("scores", *AT)
    head = git("rev-parse", "facts", at=facts)
    server.close()
    done = gitsched("scores", "--now", "2026-03-02T08:59:00Z")
    assert (done.returncode, "not changed" in done.stderr) == (4, True)
    assert git("rev-parse", "facts", at=facts) == head


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Prometheus]:
    (tmp_path / "prometheus").mkdir()
    running = Prometheus(tmp_path / "prometheus", "127.0.0.1:1")
    yield running
    running.stop()


@pytest.mark.needs("prometheus")
def test_nan_and_infinity_of_a_real_prometheus_cost_single_scores(
    gitsched: Run, facts: Path, commit: Commit, prometheus: Prometheus
) -> None:
    series = {"ash": "1", "bru": "0/0", "cph": "1/0", "dub": "2", "edi": "-1/0"}
    query = " or ".join(f'label_replace(vector({value}), "cluster", "{name}", "", "")' for name, value in series.items())
    text = ASKED.replace("URL", prometheus.url).replace("'free by (cluster)'", json.dumps(query))
    commit(facts, source=text)
    end = time.monotonic() + PATIENCE
    while (done := gitsched("scores", "--dry-run", *AT)).returncode != 0:
        assert time.monotonic() < end, done.stderr
        time.sleep(0.2)
    assert done.stdout.count("kind: AddOnPlacementScore") == 2
    for cluster, value in (("bru", "NaN"), ("cph", "+Inf"), ("edi", "-Inf")):
        assert f"cluster {cluster} without the score cpuratio, which counts as 0: the value is {value}" in done.stderr
