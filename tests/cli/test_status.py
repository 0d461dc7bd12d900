"""`gitsched status`: its first lines say whether anything is wrong, and what."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from gitsched.cli.history import command as history
from gitsched.decide.cluster_conditions import index_cluster_kinds
from gitsched.model.document import Body, Key
from gitsched.model.fleet_status import ClusterStatus, FleetStatus, WorkloadStatus
from gitsched.model.fleet_topology import ResourceUse
from gitsched.model.time import EPOCH, format_age
from gitsched.reconcile import RunSettings
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.report.fleet_problems import describe_problems
from gitsched.report.fleet_status import write_fleet_status
from tests.cli.conftest import CLUSTER, POLICY, TAINT, WORKLOAD, Run

Commit = Callable[..., None]
READY = "status: {conditions: [{type: Ready, status: 'True'}]}\n"
DATABASE = WORKLOAD.replace("Deployment", "StatefulSet").replace("name: web", "name: db") + (
    "  serviceName: db\n  volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: 1Gi}}}}]\n"
)
DATABASE_POLICY = POLICY.replace("Deployment, name: web", "StatefulSet, name: db").replace("name: web\n  n", "name: db\n  n")


def read(fleet: Path, now: str = "2026-03-02T10:00:40+00:00") -> list[str]:
    """Return the status as lines."""
    settings = RunSettings(now=datetime.fromisoformat(now), location=str(fleet), cache=fleet.parent / "cache")
    return write_fleet_status(read_fleet_status(settings)).splitlines()


def find_row(lines: list[str], cluster: str) -> list[str]:
    return next(line for line in lines if line.startswith(f"{cluster} ")).split()


def test_nothing_is_wrong_and_nobody_has_observed_one_cluster(fleet: Path, commit: Commit, gitsched: Run) -> None:
    assert read(fleet)[0] == "Nothing is placed yet."
    commit(fleet, one=CLUSTER.format(name="one", owner="private") + READY)
    gitsched("reconcile", "--now", "2026-03-02T09:00:40Z")
    lines = read(fleet)
    assert lines[0] == "Nothing is wrong: 2 clusters, 1 workload; 1 cluster has not been observed."
    assert (find_row(lines, "one"), find_row(lines, "two")) == (["one", "True", "1"], ["two", "Unknown", "0"])
    assert lines[-1].endswith("of 2026-03-02T09:00:20Z (1h ago).")
    assert gitsched("status", "--detailed-exitcode").returncode == 0
    found = json.loads(gitsched("status", "-o", "json").stdout)
    assert ([one["ready"] for one in found["clusters"]], found["problems"]) == ([True, None], [])


def test_the_first_lines_say_what_is_wrong_and_what_to_do(fleet: Path, commit: Commit, gitsched: Run) -> None:
    commit(fleet, db=DATABASE, dbpolicy=DATABASE_POLICY)
    gitsched("reconcile", "--now", "2026-03-02T09:00:40Z")
    gitsched("freeze", "network\nsecond line", "--now", "2026-03-02T09:01:00Z")
    commit(fleet, one=CLUSTER.format(name="one", owner="private") + TAINT + READY, two=None, bad="kind: [")
    gitsched("reconcile", "--now", "2026-03-02T09:02:00Z")
    lines = read(fleet)
    assert lines[0] == (
        "Needs attention: placements are frozen, 1 error, 1 policy wants a label or name that no cluster has, 1 change is withheld, "
        "1 workload is held, 1 of 2 clusters is drained."
    )
    assert any(line.startswith("bad.yaml") for line in lines)
    assert lines[1].startswith(
        "Frozen: network second line (Ada, 59m ago, by the file FREEZE of the branch placements); to lift it: "
    )
    assert any(line.startswith("StatefulSet shop/db is held on one 2: a taint evicts it from one") for line in lines)
    assert "drained by the taint power:NoExecute (one.yaml:9)" in next(line for line in lines if line.startswith("one "))
    assert gitsched("status", "--detailed-exitcode").returncode == 2
    workloads = gitsched("status", "--workloads", "-n", "shop").stdout
    assert next(line for line in workloads.splitlines() if "shop/db" in line).split()[-1] == "held"
    assert gitsched("status", "--workloads", "-n", "other").stdout == "No policy places a workload.\n"
    assert gitsched("status", "-n", "shop").returncode == 2


def test_a_commit_by_hand_on_the_output_branch_is_named(
    fleet: Path, commit: Commit, gitsched: Run, git: Callable[..., str]
) -> None:
    gitsched("reconcile", "--now", "2026-03-02T09:00:40Z")
    gitsched("freeze", "network", "--now", "2026-03-02T09:01:00Z")
    assert "edited" not in read(fleet)[0], "a freeze is not an edit"
    git("checkout", "-q", "placements", at=fleet)
    manifest = fleet / "clusters/one/shop/deployment-web.yaml"
    manifest.write_text(manifest.read_text().replace("replicas: 2", "replicas: 9"))
    commit(fleet)
    edited = git("rev-parse", "HEAD", at=fleet)
    git("checkout", "-q", "main", at=fleet)
    lines = read(fleet)
    assert lines[0] == "Needs attention: placements are frozen, placements was edited by hand."
    assert lines[2].startswith(f"Edited by hand: {edited[:10]} Change (Ada, ")
    assert lines[2].endswith(" changed clusters/one/shop/deployment-web.yaml; the next run takes this back")
    (found,) = json.loads(gitsched("status", "-o", "json").stdout)["edits"]
    assert (found["commit"], found["files"]) == (edited, ["clusters/one/shop/deployment-web.yaml"])
    git("checkout", "-q", "placements", at=fleet)
    record = fleet / "status/work.karmada.io/resourcebinding/shop/web-deployment.yaml"
    record.write_text(f"# edited\n{record.read_text()}")
    commit(fleet)
    edited = git("rev-parse", "HEAD", at=fleet)
    git("checkout", "-q", "main", at=fleet)
    decides = f"the next run decides from these records: unless that is meant, git revert {edited[:10]} on that branch"
    assert any(decides in line for line in read(fleet))
    git("update-ref", "refs/heads/placements", "placements~", at=fleet)
    gitsched("freeze", "--lift")
    gitsched("reconcile", "--now", "2026-03-02T09:02:00Z")
    assert "edited" not in read(fleet)[0]
    assert "  cause: what people changed on this branch is taken back" in gitsched("history", "-m", "1").stdout


def test_what_a_lifted_freeze_has_withheld_waits_for_a_run(fleet: Path, commit: Callable[..., None], gitsched: Run) -> None:
    unreconciled = "; the source has changes that are not reconciled."
    gitsched("reconcile", "--now", "2026-03-02T09:00:40Z")
    gitsched("freeze", "network", "--now", "2026-03-02T09:01:00Z")
    assert "wait" not in gitsched("freeze", "--lift", "--now", "2026-03-02T09:01:10Z").stdout
    gitsched("freeze", "network", "--now", "2026-03-02T09:01:20Z")
    commit(fleet, web=WORKLOAD.replace("replicas: 2", "replicas: 5"))
    gitsched("reconcile", "--now", "2026-03-02T09:02:00Z")
    assert not read(fleet)[-1].endswith(unreconciled), "a run would withhold the same"
    assert gitsched("freeze", "--lift", "--now", "2026-03-02T09:03:00Z").stdout.splitlines()[1:] == [
        "The changes of 1 workload wait: gitsched plan shows them, and gitsched reconcile makes those that the guard does not withhold."
    ]
    lines = read(fleet)
    assert (lines[0].partition(":")[0], "1 change is not withheld any more" in lines[1]) == ("Nothing is wrong", True)
    gitsched("reconcile", "--now", "2026-03-02T09:04:00Z")
    assert not read(fleet)[-1].endswith(unreconciled)
    assert "wait" not in gitsched("freeze", "--lift").stdout


def test_withheld_workloads_with_data_are_named_first_with_what_would_happen_to_them(
    fleet: Path, commit: Commit, gitsched: Run
) -> None:
    others = {f"other{number}": WORKLOAD.replace("name: web", f"name: other{number}") for number in range(10)}
    policies = {f"policy-{name}": POLICY.replace("name: web", f"name: {name}") for name in others}
    commit(fleet, db=DATABASE, policy_db=DATABASE_POLICY, **others, **policies)
    gitsched("reconcile", "--now", "2026-03-02T09:00:40Z")
    gitsched("freeze", "network", "--now", "2026-03-02T09:01:00Z")
    commit(fleet, policy_db=None, db=None, **{name: text.replace("replicas: 2", "replicas: 5") for name, text in others.items()})
    gitsched("reconcile", "--now", "2026-03-02T09:02:00Z")
    lines = read(fleet)
    assert lines[0] == "Needs attention: placements are frozen, 11 changes are withheld (workloads with data: 1)."
    assert lines[2:5] == [
        "Withheld by the freeze: 11 changes, since 2026-03-02T09:01:10Z (59m ago).",
        "  StatefulSet shop/db on one 2 is removed; its data: claim template data (1Gi)",
        "  each of 10 workloads (Deployment shop/other0, Deployment shop/other1, Deployment shop/other2 and 7 more) goes from one 2 to "
        "one 5",
    ]
    found = json.loads(gitsched("status", "-o", "json").stdout)
    assert [(each["workload"]["name"], each["data"]) for each in found["withheldData"]] == [("db", ["claim template data (1Gi)"])]


def test_full_clusters_are_named_with_what_does_not_fit_there_and_unknown_ones_are_not_empty() -> None:
    used = {"a": 1000, "b": 996, "c": 1100}
    clusters = [ClusterStatus(name, "", 1, None, resources=(ResourceUse("cpu", 1000, amount),)) for name, amount in used.items()]
    status = FleetStatus("placements", "", EPOCH, False, (*clusters, ClusterStatus("d", "", 1, None)), (), (), ())
    lines = write_fleet_status(status, 100).splitlines()
    assert lines[1] == "Full: 2 of 4 clusters are full (a, c): no new workload that requests cpu fits there"
    assert [line.split()[3:] for line in lines[4:8]] == [["cpu", "100", "%"], ["cpu", "99", "%"], ["cpu", "110", "%"], ["unknown"]]


def test_the_reason_of_an_unplaced_workload_does_not_repeat_its_name() -> None:
    for key in (Key("apps", "Deployment", "shop", "web"), Key("kubernetes", "Application", "shop", "web")):
        for name in (str(key), key.title):
            unplaced = WorkloadStatus(key, "", {}, state="unplaced", reason=f"{name}: no cluster fits")
            status = FleetStatus("placements", "", EPOCH, False, (), (), (unplaced,), ())
            assert describe_problems(status, 1000)[1] == f"Unplaced: {key.kind} shop/web: no cluster fits"


def test_a_workload_without_capacity_has_the_command_that_explains_it() -> None:
    reason = "failed to assign replicas: failed to scale up: Clusters available replicas 6 are not enough to schedule."
    unplaced = WorkloadStatus(Key("apps", "Deployment", "shop", "web"), "", {}, state="unplaced", reason=f"{reason} (8 missing)")
    status = FleetStatus("placements", "", EPOCH, False, (), (), (unplaced,), ())
    assert describe_problems(status, 1000)[1].endswith(
        f"{reason} (8 missing); what each cluster lacks: gitsched explain deployment/shop/web"
    )


def test_a_policy_that_wants_a_label_that_no_cluster_has_needs_attention(fleet: Path, commit: Commit, gitsched: Run) -> None:
    gitsched("reconcile", "--now", "2026-03-02T09:00:40Z")
    assert read(fleet)[0].startswith("Nothing is wrong: ")
    commit(fleet, one=CLUSTER.format(name="one", owner="privte"))
    gitsched("reconcile", "--now", "2026-03-02T09:02:00Z")
    lines = read(fleet)
    assert lines[0] == "Needs attention: 1 policy wants a label or name that no cluster has."
    assert lines[1].startswith("policy.yaml:")
    assert "no cluster has ownership=private; the fleet has privte, cloud [selector-unmatched]" in lines[1]
    assert gitsched("status", "--detailed-exitcode").returncode == 2
    commit(fleet, one=None, two=None, lost=CLUSTER.format(name="lost", owner="privte"))
    gitsched("reconcile", "--now", "2026-03-02T09:04:00Z")
    lines = read(fleet)
    assert "1 workload is unplaced" in lines[0]
    assert sum("no cluster has ownership=" in line for line in lines) == 1, "the reason of an unplaced workload is not repeated"


def test_rows_that_need_attention_come_first_and_messages_are_wrapped(fleet: Path, commit: Commit, gitsched: Run) -> None:
    taint = TAINT.replace("power", "a-long-key.example.com/power-supply-of-the-hall").replace("NoExecute", "NoSchedule")
    commit(fleet, one=CLUSTER.format(name="one", owner="private") + taint, two=CLUSTER.format(name="two", owner="cloud") + TAINT)
    gitsched("reconcile", "--now", "2026-03-02T09:00:40Z")
    settings = RunSettings(now=datetime(2026, 3, 2, 10, tzinfo=UTC), location=str(fleet), cache=fleet.parent / "cache")
    lines = write_fleet_status(read_fleet_status(settings), 70).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("CLUSTER"))
    assert lines[start + 1 : start + 5] == [
        "two      Unknown  0          drained by the taint power:NoExecute",
        "                             (two.yaml:9)",
        "one      Unknown  0          has the taint",
        "                             a-long-key.example.com/power-supply-of-the-hall:NoSchedule",
    ]


def test_a_cluster_that_lacks_capacity_is_named(fleet: Path, commit: Commit, gitsched: Run) -> None:
    container = "{name: web, image: web, resources: {requests: {cpu: '2'}}}"
    requests = "  selector: {matchLabels: {app: web}}\n"
    requests += f"  template: {{metadata: {{labels: {{app: web}}}}, spec: {{containers: [{container}]}}}}\n"
    small = CLUSTER.format(name="one", owner="private") + (
        "status: {resourceSummary: {allocatable: {cpu: '%s', pods: '9'}, allocated: {cpu: '0', pods: '0'}}}\n"
    )
    commit(fleet, web=WORKLOAD + requests, one=small % 8)
    gitsched("reconcile", "--now", "2026-03-02T09:00:40Z")
    assert read(fleet)[0].startswith("Nothing is wrong")
    commit(fleet, one=small % 1)
    lines = read(fleet)
    assert lines[0] == "Needs attention: 1 workload exceeds the capacity of its cluster, 1 of 2 clusters lacks capacity."
    assert lines[2].startswith(
        "one.yaml:1:1: warning: cluster one lacks capacity for what is placed there: 4 cpu requested, 1 allocatable"
    )


def test_a_clone_without_the_output_branch_says_how_to_get_it(
    fleet: Path, gitsched: Run, git: Callable[..., str], tmp_path: Path
) -> None:
    gitsched("reconcile")
    clone = tmp_path / "clone"
    git("clone", "-q", "--single-branch", fleet.as_uri(), str(clone), at=tmp_path)
    lines = read(clone)
    assert lines[0] == "Needs attention: placements is not in this clone."
    assert "git fetch origin placements:placements" in lines[1]
    for command in (("tree", "web"), ("history",)):
        found = gitsched(*command, at=clone)
        assert (found.returncode, "git fetch origin placements:placements" in found.stderr) == (1, True)
    git("fetch", "-q", "origin", "placements:refs/remotes/origin/placements", at=clone)
    assert read(clone)[-1].endswith(" ago), as this clone fetched it last (later runs: git fetch, or --fetch origin).")
    assert "fetched" not in read(fleet)[-1]


def test_a_shallow_clone_says_that_it_does_not_know_what_runs_took(
    fleet: Path, commit: Commit, gitsched: Run, git: Callable[..., str], tmp_path: Path
) -> None:
    gitsched("reconcile", "--now", "2026-03-02T09:00:40Z")
    commit(fleet, one=CLUSTER.format(name="one", owner="private") + TAINT)
    gitsched("reconcile", "--now", "2026-03-02T09:01:00Z")
    clone = tmp_path / "clone"
    git("clone", "-q", "--depth", "1", "--no-single-branch", fleet.as_uri(), str(clone), at=tmp_path)
    unknown = "What the runs of the last three days took is not known, because this clone lacks the history of placements: "
    assert read(clone)[1] == f"{unknown}git fetch --unshallow, or fetch-depth: 0 in CI, brings it"
    assert not any(line.startswith(unknown) for line in read(clone, "2026-03-06T10:00:40+00:00"))
    git("fetch", "-q", "--unshallow", at=clone)
    assert read(clone)[1].startswith("Changed ")
    assert not any(line.startswith(unknown) for line in (*read(clone), *read(fleet)))


@pytest.mark.parametrize("now", ["2026-03-02T10:00:40Z", "2026-03-09T10:00:40Z"])
def test_the_history_of_a_url_is_read_without_a_clone_of_the_user(
    fleet: Path, commit: Commit, gitsched: Run, git: Callable[..., str], now: str
) -> None:
    gitsched("reconcile", "--now", "2026-03-02T09:00:40Z")
    first = git("rev-parse", "placements", at=fleet)
    report = f"""{{appliedCommit: {first}, health: Healthy, since: "2026-03-02T09:00:45Z"}}"""
    commit(fleet, report=f"apiVersion: gitsched.io/v1alpha1\nkind: ClusterReport\nmetadata: {{name: one}}\nspec: {report}\n")
    commit(fleet, one=CLUSTER.format(name="one", owner="private") + TAINT)
    gitsched("reconcile", "--now", "2026-03-02T09:01:00Z")
    own = gitsched("status", "--now", now).stdout
    assert "1 of 2 clusters is behind" in own
    assert ("Changed 1h ago by" in own) == (now < "2026-03-04")
    remote = "-C", fleet.as_uri(), "--now", now, "--cache-dir"
    assert gitsched("status", *remote, str(fleet.parent / "first")).stdout == own
    found = gitsched("rebalance", "--to", first, *remote, str(fleet.parent / "second"))
    assert found.stderr.startswith(f"Placements of output commit {first[:10]} of 2026-03-02T09:00:10Z"), found.stderr
    assert found.stderr == gitsched("rebalance", "--to", first, "--now", now).stderr


def test_a_freeze_in_the_settings_has_the_author_of_its_commit(fleet: Path, commit: Commit, gitsched: Run) -> None:
    frozen = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {guard: {freeze: audit}}\n"
    gitsched("reconcile", "--now", "2026-03-02T09:00:40Z")
    commit(fleet, gitsched=frozen)
    commit(fleet, web=WORKLOAD.replace("2", "3"))
    lines = read(fleet)
    assert (
        lines[1]
        == "Frozen: audit (Ada, 1h ago, by guard.freeze in gitsched.yaml); to lift it: remove guard.freeze in gitsched.yaml"
    )


def test_workloads_on_a_cluster_without_a_document_are_counted(fleet: Path, commit: Commit, gitsched: Run) -> None:
    gitsched("reconcile", "--now", "2026-03-02T09:00:40Z")
    gitsched("freeze", "network", "--now", "2026-03-02T09:01:00Z")
    commit(fleet, one=None)
    gitsched("reconcile", "--now", "2026-03-02T09:02:00Z")
    lines = read(fleet)
    assert "1 change is withheld" in lines[0]
    assert "1 of 2 clusters is gone" in lines[0]
    assert find_row(lines, "one")[:3] == ["one", "Gone", "1"]
    assert gitsched("tree", "one", "--now", "2026-03-02T09:01:00Z").stdout.splitlines()[:2] == [
        "cluster one: gone: it has no document any more; 1 workload, 2 replicas",
        "  frozen: network (Ada, 0s ago, by the file FREEZE of the branch placements); to lift it: gitsched freeze --lift",
    ]
    tree = gitsched("tree", "web").stdout
    assert "  withheld: the freeze withholds that it goes to two 2; to allow it, add the trailer Gitsched-Allow" in tree
    explained = gitsched("explain", "deploy/shop/web").stdout.splitlines()[1]
    assert (
        explained
        == "  Placed on 1 cluster with 2 replicas; the freeze withholds that it goes to two 2. Placements are frozen: network"
    )


FACTS = """\
apiVersion: gitsched.io/v1alpha1
kind: ClusterFacts
metadata: {{name: {name}}}
status: {{observedAt: "{time}", ready: {{status: "True"}}}}
"""
CONFIG = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec: {source: {facts: {branch: facts, staleAfter: 1h}}}
"""


def test_facts_say_when_a_cluster_was_observed_and_stale_ones_nothing_about_now(
    fleet: Path, commit: Commit, git: Callable[..., str], gitsched: Run
) -> None:
    commit(fleet, gitsched=CONFIG)
    git("checkout", "-q", "--orphan", "facts", at=fleet)
    git("rm", "-rfq", ".", at=fleet)
    times = {"one": "2026-03-02T08:55:00Z", "two": "2026-03-02T06:00:00Z"}
    commit(fleet, **{name: FACTS.format(name=name, time=time) for name, time in times.items()})
    git("checkout", "-q", "main", at=fleet)
    gitsched("reconcile", "--now", "2026-03-02T09:05:00Z")
    lines = read(fleet, "2026-03-02T09:05:00+00:00")
    assert lines[0] == "Needs attention: 1 of 2 clusters is no longer observed."
    assert find_row(lines, "one") == ["one", "True", "1", "10m", "ago"]
    assert find_row(lines, "two")[:5] == ["two", "Unknown", "0", "3h", "ago"]
    assert "its facts are stale: check that gitsched collect runs" in lines[4], "what needs attention is first"


KARMADA, OCM, KRAKE = (
    ("cluster.karmada.io", "Cluster"),
    ("cluster.open-cluster-management.io", "ManagedCluster"),
    ("kubernetes", "Cluster"),
)
CONDITION = "ManagedClusterConditionAvailable"
OBSERVED: list[tuple[tuple[str, str], Body, str | None]] = [
    (KARMADA, {}, None),
    (KARMADA, {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, "Unknown"),
    (OCM, {"status": {"conditions": [{"type": "HubAccepted", "status": "True"}]}}, None),
    (OCM, {"status": {"conditions": [{"type": CONDITION, "status": "False"}]}}, "False"),
    (KRAKE, {"spec": {}}, None),
    (KRAKE, {"status": {"state": "ONLINE"}}, "True"),
    (KRAKE, {"status": {"state": "OFFLINE"}}, "False"),
]


def test_each_api_says_what_was_observed() -> None:
    for kind, body, expected in OBSERVED:
        readiness = index_cluster_kinds()[kind].read_readiness(body)
        assert (readiness.status if readiness is not None else None) == expected, body


NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
SINCE = {
    "90m": NOW - timedelta(minutes=90),
    "2d": NOW - timedelta(days=2),
    "1w": NOW - timedelta(days=7),
    "today": datetime(2026, 3, 2, tzinfo=UTC),
    "yesterday": datetime(2026, 3, 1, tzinfo=UTC),
    "2026-02-01": datetime(2026, 2, 1, tzinfo=UTC),
    "2026-02-01T01:00:00+01:00": datetime(2026, 2, 1, tzinfo=UTC),
}


def test_times_of_the_history_are_relative_to_now() -> None:
    for text, expected in SINCE.items():
        context = history.make_context("history", ["--since", text, "--now", "2026-03-02T09:30:00Z", "-n", "shop", "-m", "3"])
        assert (context.params["since"], context.params["namespace"], context.params["limit"]) == (expected, "shop", 3)
    with pytest.raises(click.BadParameter, match="neither a day"):
        history.make_context("history", ["--since", "last week"])


@pytest.mark.parametrize(
    ("seconds", "text"), [(-5, "0s"), (59, "59s"), (200, "3m"), (7_200, "2h"), (100_000, "1d"), (40_000_000, "1y")]
)
def test_an_age_has_one_unit(seconds: int, text: str) -> None:
    assert format_age(EPOCH, EPOCH + timedelta(seconds=seconds)) == text


def test_nothing_is_wrong_only_without_warnings_and_without_workloads_that_no_policy_selects(
    fleet: Path, commit: Commit, gitsched: Run
) -> None:
    gitsched("reconcile", "--now", "2026-03-02T09:00:40Z")
    misspelled = WORKLOAD.replace("  replicas: 2", "  replicas: 2\n  minReadySecond: 5")
    other = WORKLOAD.replace("name: web", "name: lobby")
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
    commit(fleet, web=misspelled, lobby=other, namespace=namespace)
    gitsched("reconcile", "--now", "2026-03-02T09:01:40Z")
    lines = read(fleet)
    assert lines[:3] == [
        "No errors, but 1 warning and 1 workload that no policy selects: 2 clusters, 1 workload; nobody has observed the clusters.",
        f"1 warning: unknown-field (web.yaml:{find_line(misspelled, 'minReadySecond')}); gitsched validate shows it",
        "Selected by no policy, so in no cluster: 1 workload (Deployment shop/lobby); gitsched status --unclaimed says why",
    ]
    assert gitsched("status", "--detailed-exitcode").returncode == 0, "nothing that is placed needs attention"
    commit(fleet, bad="kind: [")
    assert read(fleet)[0].startswith("Needs attention: ")
    assert lines[1] in read(fleet)
    commit(fleet, bad=None, web=WORKLOAD, lobby=None)
    gitsched("reconcile", "--now", "2026-03-02T09:02:40Z")
    assert read(fleet)[0].startswith("Nothing is wrong: "), "clusters get a Namespace without a policy"


def find_line(text: str, word: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if word in line)
