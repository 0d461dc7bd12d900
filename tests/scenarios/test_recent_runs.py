"""`gitsched status` says what the latest runs took from workloads, which commit of the source did it, and how to undo that."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gitsched.model.errors import Permanent
from gitsched.model.explanation import Explanation
from gitsched.model.history import HistoryFilter
from gitsched.reconcile.output import deciding_files
from gitsched.reconcile.output.freeze import set_freeze
from gitsched.reconcile.output.output_history import open_history
from gitsched.reconcile.review import recent_runs, run_sources
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.reconcile.review.fleet_tree import read_fleet_tree
from gitsched.reconcile.run import make_review
from gitsched.report.fleet_status import serialize_fleet_status, write_fleet_status
from gitsched.report.fleet_tree import write_fleet_tree
from gitsched.report.recent_runs import NAMES_RETURNED
from gitsched.report.summary import list_summary_rows
from gitsched.report.text import write_plan
from tests.builders.krake import application_yaml, cluster_yaml
from tests.scenarios.conftest import Fleet, cluster, deployment, policy
from tests.scenarios.facts_histories import FACTS, commit_branch

CLUSTERS = {"one.yaml": cluster("one"), "two.yaml": cluster("two")}
WEB = {**CLUSTERS, "web.yaml": deployment("web"), "policy.yaml": policy("one", "two")}
OUT_OF_WORK = "Needs attention: 1 workload is selected by no policy any more."
FINE = "Nothing is wrong: 2 clusters, 1 workload; nobody has observed the clusters."
NARROW = policy("one", kind="StatefulSet", name="narrow").replace("StatefulSet}", "StatefulSet, name: db}")
DATABASE = deployment("db").replace("Deployment", "StatefulSet") + (
    "  serviceName: db\n  volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: 1Gi}}}}]\n"
)
SETTINGS = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {karmada: {preemption: true}}\n"


def read(fleet: Fleet, hour: float) -> list[str]:
    return write_fleet_status(read_fleet_status(fleet.settings(hour))).splitlines()


def merge(fleet: Fleet, files: Mapping[str, str | None], hour: float, message: str = "Tidy") -> str:
    """Commit files, and reconcile. Return the commit of the source."""
    source = fleet.commit(files, hour=hour, message=message)
    fleet.reconcile(hour)
    return source


UNKNOWN = "Needs attention: 1 policy names a cluster that does not exist."
MERGES: dict[str, tuple[dict[str, str | None], str, str]] = {
    "a policy is gone": (
        {"policy.yaml": None},
        OUT_OF_WORK,
        "1 workload became unplaced: Deployment default/web (was on one 2)",
    ),
    "no cluster fits": (
        {"policy.yaml": policy("oen")},
        "Needs attention: 1 workload is unplaced.",
        "1 workload became unplaced: Deployment default/web (was on one 2)",
    ),
    "fewer replicas": ({"web.yaml": deployment("web", 1)}, FINE, "1 workload has fewer replicas: Deployment default/web 2 -> 1"),
    "no replicas": ({"web.yaml": deployment("web", 0)}, FINE, "1 workload has fewer replicas: Deployment default/web 2 -> 0"),
    "other clusters": (
        {"policy.yaml": policy("oen", "two")},
        UNKNOWN,
        "1 workload moved: Deployment default/web (one 2 -> two 2)",
    ),
    "other clusters and fewer replicas": (
        {"policy.yaml": policy("oen", "two"), "web.yaml": deployment("web", 1)},
        UNKNOWN,
        "1 workload has fewer replicas: Deployment default/web 2 -> 1 (one 2 -> two 1)",
    ),
    "a drain": (
        {"one.yaml": cluster("one", "power:NoExecute")},
        "Needs attention: 1 of 2 clusters is drained.",
        "1 workload moved: Deployment default/web (one 2 -> two 2)",
    ),
    "a manifest is gone": (
        {"web.yaml": None},
        FINE.replace("1 workload", "0 workloads"),
        "1 workload was removed from the source: Deployment default/web (was on one 2)",
    ),
}


@pytest.mark.parametrize("name", MERGES)
def test_a_wrong_merge_that_has_run_is_named_until_it_is_undone(name: str, fleet: Fleet) -> None:
    files, first, loss = MERGES[name]
    merge(fleet, WEB, 0)
    source = merge(fleet, files, 1)
    lines = read(fleet, 2)
    assert lines[0] == first
    start = lines.index(f"Changed 1h ago by {source[:10]} Tidy ({fleet.git('log', '-1', '--format=%an')}):")
    assert lines[start + 1] == f"  {loss}"
    assert lines[start + 2].startswith(f"  to undo it: git revert {source[:10]}, ")
    assert ", and gitsched reconcile; all moves: " in lines[start + 2]
    reverted = merge(fleet, {path: WEB[path] for path in files}, 3, f'Revert "Tidy"\n\nThis reverts commit {source}.\n')
    recent = serialize_fleet_status(read_fleet_status(fleet.settings(3)))["recent"]
    if name not in ("other clusters", "other clusters and fewer replicas", "a drain"):
        assert recent == []
        return
    assert [one["revertedBy"]["commit"] for one in recent] == [reverted], "it stays where it is"
    back = fleet.git("rev-parse", "placements~2")[:10]
    cure = f"; to bring back what moved: gitsched rebalance --to {back} deployment/default/web --write for what stays where it is; "
    assert f"{cure}what keeps them there: " in "\n".join(read(fleet, 3))


def test_files_of_a_commit_that_decided_nothing_stay_when_it_is_undone(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    others = {f"{name}.yaml": deployment(name).replace("Deployment", "StatefulSet") for name in ("db", "cache", "queue")}
    merge(fleet, WEB | others | {"other.yaml": policy("one", name="other", kind="StatefulSet")}, 0)
    changed = {path: text.replace("metadata:", "metadata:\n  labels: {release: new}") for path, text in others.items()}
    source = merge(fleet, {"policy.yaml": None, **changed, "README.md": "x"}, 1)[:10]
    cure = f"git checkout {source}^ -- policy.yaml and git commit (git revert {source} would take back 3 other files, too)"
    assert f"  to undo it: {cure}, and gitsched reconcile; all moves: " in "\n".join(read(fleet, 2))
    with monkeypatch.context() as limit:
        limit.setattr(deciding_files, "MAX_FILES", 2)
        all_files = f"git revert {source}, which takes back 4 files"
        assert f"  to undo it: {all_files}, and gitsched reconcile; all moves: " in "\n".join(read(fleet, 2))
    found = explain_resource(fleet.settings(2), "Deployment", "default", "web")
    assert isinstance(found, Explanation)
    author = fleet.git("log", "-1", "--format=%an")
    last = f"Until 1h ago it was on one 2 by PropagationPolicy/default/all, which {source} Tidy ({author}) removed"
    assert (found.state, found.policy_reason) == (f"{last}; to get it back: {cure}.", "")
    fleet.git("checkout", "-q", f"{source}^", "--", "policy.yaml")
    fleet.record(3, "Bring the policy back")
    fleet.reconcile(3)
    assert read(fleet, 3)[0] == FINE.replace("1 workload", "4 workloads"), "that is all"
    assert fleet.read("clusters/one/default/statefulset-db.yaml").count("release: new"), "the others are as they were"


def test_a_file_that_changed_again_is_not_restored(fleet: Fleet) -> None:
    database = deployment("db", 3).replace("Deployment", "StatefulSet")
    merge(fleet, WEB | {"db.yaml": database}, 0)
    source = merge(fleet, {"policy.yaml": policy("two"), "db.yaml": database.replace("3", "4")}, 1)[:10]
    merge(fleet, {"policy.yaml": policy("two", more="# no change\n")}, 2)
    text = "\n".join(read(fleet, 3))
    assert f"  to undo it: git revert {source}, which also takes back 1 other file, then gitsched rebalance --to " in text


def test_a_workload_that_was_scaled_since_has_lost_its_cluster_all_the_same(fleet: Fleet) -> None:
    spread = policy(more="    spreadConstraints: [{spreadByField: cluster, minGroups: 1}]\n", scheduling="Divided")
    merge(fleet, WEB | {"policy.yaml": spread, "web.yaml": deployment("web", 4), "api.yaml": deployment("api", 4)}, 0)
    merge(fleet, {"one.yaml": cluster("one", "power:NoExecute")}, 1, "Drain")
    names = "Deployment default/api (one 2, two 2 -> two 4), Deployment default/web (one 2, two 2 -> two 4)"
    for hour, replicas in ((2, 6), (3, 5), (4, 3), (5, 2)):
        merge(fleet, {"web.yaml": deployment("web", replicas)}, hour, f"Scale to {replicas}")
        lines = read(fleet, hour)
        assert f"  2 workloads moved: {names}" in lines
        fewer = [line for line in lines if "fewer replicas" in line]
        assert len(fewer) == (replicas != 6), "it counts once for those that it has lost"


def test_replicas_that_a_later_commit_gives_back_in_part_are_still_lost(fleet: Fleet) -> None:
    merge(fleet, {**WEB, "web.yaml": deployment("web", 10)}, 0)
    source = merge(fleet, {"web.yaml": deployment("web", 2)}, 1, "Clean up")
    merge(fleet, {"web.yaml": deployment("web", 4)}, 2, "Release")
    lines = read(fleet, 3)
    assert lines[1].startswith(f"Changed 2h ago by {source[:10]} Clean up ")
    assert lines[2] == "  1 workload has fewer replicas: Deployment default/web 10 -> 4"
    merge(fleet, {"web.yaml": deployment("web", 10)}, 4)
    assert not any("fewer replicas" in line for line in read(fleet, 4))


def test_replicas_that_go_to_clusters_which_the_workload_had_are_shown(fleet: Fleet) -> None:
    merge(fleet, WEB | {"policy.yaml": policy("one,two", scheduling="Divided"), "web.yaml": deployment("web", 4)}, 0)
    divided = {"policy.yaml": policy("two,three", scheduling="Divided"), "web.yaml": deployment("web", 8)}
    merge(fleet, {"three.yaml": cluster("three"), **divided}, 1)
    [line] = [line for line in read(fleet, 1) if "moved" in line]
    assert line == "  1 workload moved: Deployment default/web (one 2, two 2 -> three 4, two 4)"


def test_a_merge_commit_is_reverted_as_one(fleet: Fleet) -> None:
    merge(fleet, WEB, 0)
    fleet.git("checkout", "-q", "-b", "topic")
    fleet.commit({"notes.md": "x"}, hour=1)
    fleet.commit({"policy.yaml": None}, hour=1)
    fleet.git("commit", "-q", "--amend", "--no-edit", "--author", "Eve <eve@example.com>")
    fleet.git("checkout", "-q", "main")
    fleet.git("merge", "-q", "--no-commit", "--no-ff", "topic")
    source = fleet.record(1, "Merge topic")
    fleet.reconcile(1)
    text = "\n".join(read(fleet, 1))
    assert f"  to undo it: git revert -m 1 {source[:10]}, and gitsched reconcile; all moves: " in text
    assert ", merging Eve):" in text, "who wrote what was merged"


def test_several_commits_of_one_run_are_named(fleet: Fleet) -> None:
    merge(fleet, {**WEB, "web.yaml": deployment("web", 7)}, 0)
    for number in range(5):
        fleet.commit({"web.yaml": deployment("web", 6 - number)}, hour=1, message=f"Step {number}")
    fleet.commit({"web.yaml": deployment("web", 2) + "# the same\n"}, hour=1, message="Comment")
    fleet.reconcile(1)
    (line,) = (line for line in read(fleet, 1) if line.startswith("Changed "))
    assert [f"Step {number} (" in line for number in range(5)] == [False, False, True, True, True]
    assert line.endswith(" and 2 more commits:")
    assert "git revert the commit that did it" in "\n".join(read(fleet, 1))


def test_a_copy_of_data_that_a_revert_leaves_is_wrong_and_has_a_cure(fleet: Fleet) -> None:
    files = {"db.yaml": DATABASE, "narrow.yaml": NARROW, "wide.yaml": policy("one,two", name="wide", kind="StatefulSet")}
    merge(fleet, {**CLUSTERS, **files}, 0)
    source = merge(fleet, {"narrow.yaml": None}, 1)
    merge(fleet, {"narrow.yaml": NARROW}, 2, f'Revert "Tidy"\n\nThis reverts commit {source}.\n')
    lines = read(fleet, 2)
    assert lines[0] == "Needs attention: 1 workload with data has a copy with other data."
    assert lines[2] == "  1 workload with data got a copy with empty volumes: StatefulSet default/db (data: one 2; copy: two 2)"
    assert lines[3].startswith("  reverted by ")
    assert lines[3].endswith("; what keeps them there: gitsched explain statefulset/default/db")
    preempting = NARROW.replace("spec:\n", "spec:\n  preemption: Always\n  priority: 1\n", 1)
    merge(fleet, {"gitsched.yaml": SETTINGS, "narrow.yaml": preempting}, 3)
    assert read(fleet, 3)[0] == "Needs attention: 1 workload is held, 1 workload with data has a copy with other data."
    fleet.reconcile(4, released_clusters=("two",))
    assert read(fleet, 4)[0] == FINE


def test_only_recent_runs_count_and_only_what_is_still_so(fleet: Fleet) -> None:
    merge(fleet, WEB, 0)
    merge(fleet, {"web.yaml": deployment("web", 1)}, 1)
    assert read(fleet, 2)[1].startswith("Changed 1h ago by ")
    assert read(fleet, 80)[1] == ""
    merge(fleet, {"web.yaml": deployment("web", 2)}, 3)
    assert read(fleet, 3)[1] == ""


def test_copies_that_stay_for_an_overlap_are_named(fleet: Fleet) -> None:
    merge(fleet, WEB, 0)
    merge(fleet, {"policy.yaml": policy("two")}, 1)
    assert (
        "1 workload also runs where it was before, for an overlap until 2026-03-02T09:10:00Z: Deployment default/web "
        "(gitsched tree NAME)."
    ) in read(fleet, 1)


def test_unplaced_and_withheld_workloads_are_named_with_the_reason(fleet: Fleet) -> None:
    more = {f"w{number}.yaml": deployment(f"w{number}") for number in range(9)}
    merge(fleet, {**WEB, **more}, 0)
    source = merge(fleet, {"policy.yaml": None, **dict.fromkeys(more)}, 1)
    lines = read(fleet, 1)
    assert lines[0] == "Needs attention: 10 changes are withheld."
    named = "Deployment default/w0, Deployment default/w1, Deployment default/w2 and 6 more"
    assert lines[2] == f"  each of 9 workloads ({named}) on one 2 is removed"
    assert lines[3] == "  Deployment default/web on one 2 would become unplaced"
    assert lines[4].endswith(f"); to withdraw it: git revert {source[:10]}")
    nowhere = policy("oen", name="nowhere").replace("Deployment}", "Deployment, name: nowhere}")
    back = {**more, "policy.yaml": WEB["policy.yaml"]}
    merge(fleet, {**back, "nowhere.yaml": deployment("nowhere"), "other.yaml": nowhere}, 2)
    lines = read(fleet, 2)
    assert lines[0] == "Needs attention: 1 workload is unplaced."
    cause = "PropagationPolicy/default/nowhere names clusters without a Cluster document: oen; did you mean one? (other.yaml:12)"
    assert lines[1].startswith(f"Unplaced: Deployment default/nowhere: {cause}; 0/2 clusters are available")


def test_only_commits_that_request_withheld_changes_are_named(fleet: Fleet) -> None:
    more = {f"w{number}.yaml": deployment(f"w{number}") for number in range(12)}
    merge(fleet, {**WEB, **more}, 0)
    first = merge(fleet, dict.fromkeys(more), 1, "Remove twelve")

    def find_requests(hour: float) -> str:
        (line,) = (line for line in read(fleet, hour) if line.startswith("  requested by "))
        return line.replace(f" ({fleet.git('log', '-1', '--format=%an')})", "")

    alone = f"  requested by {first[:10]} Remove twelve; to withdraw it: git revert {first[:10]}"
    assert find_requests(1) == alone
    fleet.commit({"web.yaml": deployment("web", 3)}, hour=2, message="Scale")
    assert find_requests(2) == alone, "it is not reconciled"
    fleet.reconcile(2)
    assert find_requests(2) == alone
    second = fleet.commit({"web.yaml": None}, hour=3, message="Remove the last")
    both = (
        f"  requested by {second[:10]} Remove the last; {first[:10]} Remove twelve; to withdraw them: git revert {second[:10]}; "
        f"git revert {first[:10]}"
    )
    assert find_requests(3) == both
    fleet.reconcile(3)
    assert find_requests(3) == both
    plan = write_plan(compare_plans(fleet.settings(3)).review, 1000)
    asked = next(line for line in plan.splitlines() if line.startswith("  requested by "))
    assert asked.replace(f" ({fleet.git('log', '-1', '--format=%an')})", "") == both, "not only by the last commit"
    assert "correct it, or revert what requests it." in plan
    merge(fleet, {"web.yaml": deployment("web", 3)}, 4, "Bring the last back")
    assert find_requests(4) == alone
    for number in range(4):
        fleet.commit({"web.yaml": None if number % 2 else deployment("web", 3 + number)}, hour=5, message=f"Step {number}")
    line = find_requests(5)
    assert [f"Step {number}" in line for number in range(4)] == [False, True, True, True]
    assert line.endswith(" and 1 more commit")


@pytest.mark.parametrize(
    ("later", "is_replaced"),
    [
        pytest.param({"README.md": "approved\n"}, False, id="the withheld change is allowed"),
        pytest.param({"policy.yaml": policy("three"), "three.yaml": cluster("three")}, True, id="a later commit replaces it"),
    ],
)
def test_the_commit_whose_decisions_are_delivered_is_the_cause(later: dict[str, str], is_replaced: bool, fleet: Fleet) -> None:
    """What the guard withheld and nobody delivered is no cause; status and history agree."""
    merge(fleet, {**WEB, **{f"w{number}.yaml": deployment(f"w{number}") for number in range(12)}}, 0)
    first = merge(fleet, {"policy.yaml": policy("two")}, 1, "All to two")
    second = fleet.commit(later, hour=2, message="Later")
    fleet.reconcile(2, allowed=(fleet.preview(2).plan.withheld.digest,))
    text = "\n".join(read(fleet, 2))
    cause, other = (second, first) if is_replaced else (first, second)
    assert f"ago by {cause[:10]}" in text
    undo = (
        f"git revert {second[:10]}, then git revert {first[:10]}, as"
        if is_replaced
        else f"git revert {first[:10]}, then gitsched rebalance"
    )
    assert f"to undo it: {undo}" in " ".join(text.split())
    assert text.count(other[:10]) == (2 if is_replaced else 0)
    (entry,) = open_history(fleet.settings(2), HistoryFilter()).read_entries(1)
    assert [one.commit for one in entry.requested] == ([] if is_replaced else [first])


def test_copies_of_an_unplaced_workload_are_not_lost(fleet: Fleet) -> None:
    merge(fleet, WEB, 0)
    fleet.commit({"policy.yaml": policy("oen")}, hour=1)
    rows = {row.name: row.after for row in list_summary_rows(make_review(fleet.preview(1)))}
    assert rows["replicas removed"] == "2, which stay until other clusters have them"
    fleet.reconcile(1)
    lines = read(fleet, 1)
    assert lines[1].startswith("Unplaced: Deployment default/web: PropagationPolicy/default/all names clusters without a ")
    until = "until another cluster fits: gitsched explain deployment/default/web says what each one lacks"
    assert lines[1].endswith(f"; it still runs in one, {until}")
    assert f"1 workload runs where it was before (Deployment default/web), {until}." in lines


def test_what_is_read_is_limited(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    more = {f"w{number}.yaml": deployment(f"w{number}") for number in range(3)}
    merge(fleet, {**WEB, **more}, 0)
    merge(fleet, {path: text.replace("replicas: 2", "replicas: 1") for path, text in more.items()}, 1)
    merge(fleet, {"web.yaml": deployment("web", 1)}, 2)
    monkeypatch.setattr(recent_runs, "MAX_RECORDS", 2)
    lines = read(fleet, 2)
    assert [line.partition(":")[0] for line in lines if line.startswith("  ")] == [
        "  1 workload has fewer replicas",
        "  to undo it",
        "  2 workloads have fewer replicas",
        "  1 more workload moved, which are not read",
        "  to undo it",
    ]
    monkeypatch.setattr(run_sources, "MAX_COMMITS", 0)
    assert [text for text in (*lines, *read(fleet, 2)) if "by" in text and "Tidy" in text]
    monkeypatch.setattr(recent_runs, "MAX_RUNS", 1)
    assert sum(line.startswith("Changed ") for line in read(fleet, 2)) == 1


def test_a_cluster_that_is_not_ready_has_a_next_step(fleet: Fleet) -> None:
    unready = cluster("one") + "status: {conditions: [{type: Ready, status: 'False', reason: Unreachable}]}\n"
    merge(fleet, {**WEB, "one.yaml": cluster("one")}, 0)
    merge(fleet, {"one.yaml": unready}, 1)
    lines = read(fleet, 1)
    assert lines[0] == "Needs attention: 1 of 2 clusters is not ready."
    assert lines[1] == (
        "Not ready: one: 1 workload stays (Deployment default/web): its condition Ready is False, and no NoExecute taint evicts them; "
        "to move what does not tolerate that, set spec.karmada.failover: cluster, or drain it (gitsched drain one --dry-run); "
        "gitsched simulate --lose one shows what fits elsewhere"
    )
    tree = write_fleet_tree(read_fleet_tree(fleet.settings(1), "", None, "one"))
    assert tree.startswith("cluster one: not ready (Unreachable); 1 workload, 2 replicas\n")
    assert next(line for line in lines if line.startswith("one ")).split()[1] == "False"
    merge(fleet, {"one.yaml": unready.replace("'False', reason: Unreachable", "'Unknown'")}, 2)
    others = read(fleet, 2)
    assert others[:2] == [lines[0], lines[1].replace("is False", "is Unknown")], "Karmada treats both alike"
    assert next(line for line in others if line.startswith("one ")).split()[1] == "Unknown"
    tree = write_fleet_tree(read_fleet_tree(fleet.settings(2), "", None, "one"))
    assert tree.startswith("cluster one: not ready (its condition is Unknown); 1 workload, 2 replicas\n")


def test_a_source_that_is_older_than_the_last_run_is_no_change_to_reconcile(fleet: Fleet) -> None:
    older = merge(fleet, WEB, 0)
    newer = merge(fleet, {"web.yaml": None}, 1)
    expected = read(fleet, 1)
    fleet.git("reset", "-q", "--hard", older)
    first, *others = read(fleet, 1)
    named = f"The source here is older than commit {newer[:10]}, which was reconciled last: pull it"
    assert first == f"{named}. This is the status with commit {newer[:10]}."
    assert others == expected, "what is only missing here is no problem of the fleet"
    plan = write_plan(compare_plans(fleet.settings(1)).review, 1_000).splitlines()
    assert plan[0] == f"{named}, and plan again; what follows would take back what came since, and gitsched reconcile refuses that."
    assert not any(named in line for line in plan[1:])
    fleet.commit({"web.yaml": deployment("web", 3)}, hour=2)
    assert read(fleet, 2)[-1].endswith("; the source has changes that are not reconciled.")


def test_a_source_that_is_older_than_a_branch_that_was_reconciled_is_to_have_it_merged(fleet: Fleet) -> None:
    merge(fleet, WEB, 0)
    fleet.git("checkout", "-q", "-b", "feature")
    newer = fleet.commit({"web.yaml": deployment("web", 3)}, hour=1)
    refused = (
        f"The commit {newer[:10]} of branch feature is not on branch main, which is reconciled: gitsched reconcile refuses it until"
    )
    assert compare_plans(fleet.settings(1)).review.comparison.notes == (f"{refused} it is merged.",)
    fleet.reconcile(1, branch="feature")
    assert compare_plans(fleet.settings(1)).review.comparison.notes == ()
    fleet.git("checkout", "-q", "main")
    cure = "which was reconciled last for branch feature: merge that branch"
    assert (
        read(fleet, 1)[0]
        == f"The source here is older than commit {newer[:10]}, {cure}. This is the status with commit {newer[:10]}."
    )
    plan = write_plan(compare_plans(fleet.settings(1)).review, 1_000).splitlines()
    assert (
        f"{cure}, and plan again; what follows would take back what came since, and gitsched reconcile refuses that without "
        in plan[0]
    )
    with pytest.raises(Permanent, match=r"Merge branch feature, or pass --allow-older$"):
        fleet.reconcile(2)
    fleet.git("merge", "-q", "feature")
    assert "up to date" in write_plan(compare_plans(fleet.settings(2)).review, 1_000).splitlines()[0]


def test_a_revert_on_the_output_branch_is_a_change_by_hand(fleet: Fleet) -> None:
    """It holds where the next run, which decides from the restored records, agrees: docs/going-back.md."""
    merge(fleet, WEB, 0)
    source = merge(fleet, {"one.yaml": cluster("one", "power:NoExecute")}, 1)
    fleet.git("revert", "--no-edit", source)
    fleet.git("checkout", "-q", "placements")
    fleet.git("revert", "--no-edit", "HEAD")
    fleet.git("checkout", "-q", "main")
    assert any(line.startswith("Changed 0s ago by hand:") for line in read(fleet, 1))
    fleet.reconcile(2)
    assert fleet.where("default/deployment-web") == ["one"]


UNDONE: dict[str, tuple[dict[str, str | None], dict[str, str | None]]] = {
    "a drain that ended": ({"one.yaml": cluster("one", "power:NoExecute")}, {"one.yaml": cluster("one")}),
    "a merge that another commit took back": ({"policy.yaml": policy("oen", "two")}, {"policy.yaml": policy("one", "two")}),
}


@pytest.mark.parametrize("name", UNDONE)
def test_a_revert_that_would_change_nothing_is_not_offered(name: str, fleet: Fleet) -> None:
    change, back = UNDONE[name]
    merge(fleet, WEB, 0)
    merge(fleet, change, 1)
    assert any("to undo it: git revert" in line for line in read(fleet, 1))
    merge(fleet, back, 2)
    text = "\n".join(read(fleet, 2))
    assert "git revert" not in text
    assert "  nothing is left to revert; to bring back what moved: gitsched rebalance --to " in text


def test_the_revert_of_an_empty_commit_is_not_offered(fleet: Fleet) -> None:
    merge(fleet, {**CLUSTERS, "db.yaml": DATABASE, "policy.yaml": policy("one", "two", kind="StatefulSet")}, 0)
    merge(fleet, {"one.yaml": cluster("one", "power:NoExecute")}, 1)
    merge(fleet, {}, 2, "Release it\n\nGitsched-Release: default/db\n")
    lines = read(fleet, 2)
    start = next(number for number, line in enumerate(lines) if line.startswith("Changed ") and "Release it" in line)
    assert lines[start + 1] == "  1 workload moved: StatefulSet default/db (one 2 -> two 2)"
    assert lines[start + 2].startswith("  nothing is left to revert; ")


def test_a_freeze_that_a_commit_lifts_is_not_to_be_lifted(fleet: Fleet) -> None:
    frozen = SETTINGS.replace("karmada: {preemption: true}", "guard: {freeze: audit}")
    merge(fleet, {**WEB, "gitsched.yaml": frozen}, 0)
    merge(fleet, {"gitsched.yaml": None, "policy.yaml": policy("two")}, 1)
    text = "\n".join(read(fleet, 1))
    assert "it ends when what is withheld is allowed or reverted" in text
    assert "--lift" not in text
    assert "to withdraw it: git revert" in text
    (finding,) = (each.message for each in fleet.preview(1).plan.findings if each.code == "placements-frozen")
    assert finding.startswith(
        "gitsched.yaml has no guard.freeze any more (audit), but the changes that came with that stay withheld "
    )


def test_changes_that_wait_after_a_freeze_are_named(fleet: Fleet) -> None:
    merge(fleet, WEB, 0)
    set_freeze(fleet.settings(0), "audit")
    merge(fleet, {"policy.yaml": policy("two")}, 1)
    set_freeze(fleet.settings(1), "")
    lines = read(fleet, 1)
    assert lines.index("1 change is not withheld any more: gitsched reconcile carries out what waits.") < lines.index(""), (
        "before tables"
    )


REVERTS: dict[str, str] = {
    "git revert": "This reverts commit {source}.",
    "the same files again": "By hand.",
    "with others": "By hand.",
}


@pytest.mark.parametrize("name", REVERTS)
def test_a_revert_is_not_to_be_undone(name: str, fleet: Fleet) -> None:
    moved = policy("two")
    merge(fleet, {**WEB, "policy.yaml": policy("one")}, 0)
    source = merge(fleet, {"policy.yaml": moved}, 1, "Move it")
    assert f"  to undo it: git revert {source[:10]}, then gitsched rebalance --to " in "\n".join(read(fleet, 1))
    fleet.commit({"policy.yaml": policy("one")}, hour=2, message="Back\n\n" + REVERTS[name].format(source=source))
    (cure,) = (line for line in read(fleet, 2) if "gitsched rebalance --to" in line)
    assert "gitsched reconcile carries that out, then gitsched rebalance --to " in cure
    if name == "with others":
        fleet.commit({"notes.yaml": "# what the same run follows, such as a rebalance\n"}, hour=2, message="Note it")
    fleet.reconcile(2)
    assert read(fleet, 2)[:2] == [FINE, ""]
    assert fleet.where("default/deployment-web") == ["one"]
    again = merge(fleet, {"policy.yaml": moved}, 3, "Move it again")
    text = "\n".join(read(fleet, 3))
    assert f"  to undo it: git revert {again[:10]}, then gitsched rebalance --to " in text
    assert text.count("Changed ") == 1


def test_what_a_revert_does_not_bring_back_is_named(fleet: Fleet) -> None:
    both = {"web.yaml": deployment("web"), "api.yaml": deployment("api")}
    merge(fleet, {**CLUSTERS, **both, "policy.yaml": policy("one")}, 0)
    source = merge(fleet, {"policy.yaml": policy("two")}, 1, "Move them")
    merge(fleet, {"new.yaml": deployment("new")}, 2, "Add one")
    scaled = merge(fleet, {"api.yaml": deployment("api", 1)}, 2, "Scale it")
    merge(fleet, {"policy.yaml": policy("one")}, 3, f"Back\n\nThis reverts commit {source}.\n")
    lines = read(fleet, 3)
    assert [line for line in lines if "moved" in line] == ["  1 workload moved: Deployment default/new (two 2 -> one 2)"]
    assert any(line.startswith(f"  it reverts {source[:10]} Move them (") for line in lines)
    assert [line for line in lines if "fewer" in line] == ["  1 workload has fewer replicas: Deployment default/api 2 -> 1"]
    assert [line.partition(",")[0] for line in lines if "git revert" in line] == [f"  to undo it: git revert {scaled[:10]}"]


def test_the_cause_of_a_release_by_an_option_is_no_deadline(fleet: Fleet) -> None:
    merge(fleet, {**CLUSTERS, "db.yaml": DATABASE, "policy.yaml": policy("one", "two", kind="StatefulSet")}, 0)
    merge(fleet, {"one.yaml": cluster("one", "power:NoExecute")}, 1)
    fleet.reconcile(2, released_clusters=("one",))
    assert "Changed by a release of what was held:" in read(fleet, 2), "without an age: the commit has the time of the source"


def test_all_clusters_that_are_not_ready_come_first_without_a_drain_of_each(fleet: Fleet) -> None:
    unready = "status: {conditions: [{type: Ready, status: 'False', reason: Unreachable}]}\n"
    merge(fleet, {**WEB, "db.yaml": DATABASE, "dbs.yaml": policy("oen", kind="StatefulSet", name="dbs")}, 0)
    merge(fleet, {f"{name}.yaml": cluster(name) + unready for name in ("one", "two")}, 1)
    lines = read(fleet, 1)
    assert lines[0].startswith("Needs attention: 2 of 2 clusters are not ready, ")
    assert lines[0].count("not ready") == 1
    assert [line.partition(":")[0] for line in lines if "Not ready" in line] == ["Not ready"]
    assert "gitsched drain" not in "\n".join(lines)


def test_a_commit_that_no_run_follows_is_wrong_after_an_hour(fleet: Fleet) -> None:
    merge(fleet, WEB, 0)
    first = fleet.commit({"policy.yaml": policy("two")}, hour=50, message="Move it")
    assert read(fleet, 50.5)[0] == FINE, "people reconcile by hand, too"
    assert read(fleet, 51)[0] == f"Needs attention: commit {first[:10]} has not been reconciled for 1h."
    fleet.commit({"web.yaml": deployment("web", 3)}, hour=51)
    lines = read(fleet, 53)
    assert lines[0] == "Needs attention: 2 commits have not been reconciled, the first for 3h."
    assert lines[1].startswith(f"Not reconciled: {first[:10]} Move it (")
    assert " and 1 later commit (gitsched plan shows what they change): check that" in lines[1]
    fleet.reconcile(53)
    assert read(fleet, 53)[0] == FINE
    fleet.reconcile(55)
    fleet.commit({"README.md": "x"}, hour=55)
    assert read(fleet, 60)[0] == FINE, "a run would change nothing"


def test_an_overlap_that_no_run_ends_is_wrong_after_an_hour(fleet: Fleet) -> None:
    overlap = SETTINGS.replace("karmada: {preemption: true}", "output: {overlap: 30m}")
    merge(fleet, {**WEB, "gitsched.yaml": overlap, "policy.yaml": policy("one")}, 0)
    merge(fleet, {"policy.yaml": policy("two")}, 1)
    assert read_fleet_status(fleet.settings(1)).retained
    assert read(fleet, 2)[0] == FINE, "people reconcile by hand, too"
    end = "2026-03-02T09:30:00Z"
    lines = read(fleet, 5)
    assert lines[0] == f"Needs attention: a run has been due since {end} (3h ago)."
    assert lines[1].startswith(f"Due since {end}: copies to remove, because an overlap ended: run gitsched reconcile, or ")
    waiting = fleet.commit({"web.yaml": deployment("web", 3)}, hour=3)
    assert read(fleet, 5)[0] == f"Needs attention: commit {waiting[:10]} has not been reconciled for 2h.", "one cause is said once"
    fleet.reconcile(5)
    assert read(fleet, 5)[0] == FINE


def test_a_workload_whose_new_namespace_no_policy_selects_is_wrong(fleet: Fleet) -> None:
    merge(fleet, {**WEB, "api.yaml": deployment("api"), "other.yaml": deployment("api", namespace="other")}, 0)
    merge(fleet, {"web.yaml": deployment("web", namespace="shop")}, 1)
    lines = read(fleet, 1)
    assert lines[0] == OUT_OF_WORK
    assert lines[1].startswith("Deployment default/web is shop/web now (web.yaml:1), which no policy selects: gitsched explain ")
    assert "  1 workload became unplaced: Deployment default/web (was on one 2)" in lines
    with pytest.raises(
        Permanent, match="deployment/default/web is deployment/shop/web now: `gitsched explain deployment/shop/web`"
    ):
        explain_resource(fleet.settings(1), "Deployment", "default", "web")
    merge(fleet, {"web.yaml": deployment("web"), "api.yaml": None}, 2)
    lines = read(fleet, 2)
    assert lines[0] == FINE.replace("Nothing is wrong", "No errors, but 1 workload that no policy selects"), (
        "the one in the other namespace was there before"
    )
    assert any("1 workload was removed from the source: Deployment default/api" in line for line in lines)


def test_new_facts_after_an_hour_are_no_commit_that_waits(fleet: Fleet) -> None:
    facts = SETTINGS.replace("karmada: {preemption: true}", "source: {facts: {branch: facts}}")
    document = FACTS % {
        "name": "one",
        "time": "2026-03-02T08:00:00Z",
        "ready": "True",
        "version": 1,
        "used": 1,
        "kind": "Deployment",
    }
    commit_branch(fleet, "facts", {"clusters/one.yaml": document}, 0)
    merge(fleet, {**WEB, "gitsched.yaml": facts}, 0)
    merge(fleet, {"notes.txt": "x"}, 1)
    commit_branch(fleet, "facts", {"clusters/one.yaml": document.replace('"True"', '"False"')}, 2)
    assert "has not been reconciled" not in read(fleet, 4)[0]


def test_a_lost_facts_branch_is_wrong(fleet: Fleet) -> None:
    merge(fleet, WEB, 0)
    facts = SETTINGS.replace("karmada: {preemption: true}", "source: {facts: {branch: facts}}")
    merge(fleet, {"gitsched.yaml": facts}, 1)
    lines = read(fleet, 1)
    assert lines[0] == "Needs attention: the facts branch is missing."
    assert lines[1].startswith("warning: source.facts.branch is facts, and there is no such branch: ")


LATER: dict[str, tuple[dict[str, str | None], list[str]]] = {
    "more replicas": ({"web.yaml": deployment("web", 3)}, ["Move", "  1 workload moved: Deployment default/web (one 2 -> two 2)"]),
    "fewer replicas": (
        {"web.yaml": deployment("web", 1)},
        [
            "Later",
            "  1 workload has fewer replicas: Deployment default/web 2 -> 1",
            "Move",
            "  1 workload moved: Deployment default/web (one 2 -> two 2)",
        ],
    ),
    "another cluster": ({"policy.yaml": policy("one")}, ["Later", "  1 workload moved: Deployment default/web (two 2 -> one 2)"]),
}


@pytest.mark.parametrize("name", LATER)
def test_a_later_commit_neither_hides_an_earlier_one_nor_is_blamed_for_it(name: str, fleet: Fleet) -> None:
    merge(fleet, WEB, 0)
    merge(fleet, {"policy.yaml": policy("oen", "two")}, 1, "Move")
    merge(fleet, LATER[name][0], 2, "Later")
    lines = read(fleet, 2)
    named = [line for line in lines if line.startswith(("Changed ", "  1 workload"))]
    assert [line.split()[5] if line.startswith("Changed ") else line for line in named] == LATER[name][1]


def test_a_commit_says_how_many_workloads_it_concerned_and_how_many_are_as_it_left_them(fleet: Fleet) -> None:
    names = ["api", "db", "log", "web"]
    many: dict[str, str | None] = {f"{name}.yaml": deployment(name) for name in names}
    merge(fleet, {**CLUSTERS, **many, "policy.yaml": policy("one", "two")}, 0)
    merge(fleet, {"policy.yaml": policy("two")}, 1, "Move")
    header = next(line for line in read(fleet, 1) if line.startswith("Changed "))
    assert "concerned" not in header, "all are as it left them"
    merge(fleet, {"db.yaml": None}, 2, "Later")
    merge(fleet, {"api.yaml": deployment("api", 3), "one.yaml": cluster("one", "power:NoExecute")}, 3, "Grow")
    lines = read(fleet, 3)
    (start,) = (number for number, line in enumerate(lines) if " Move " in line)
    assert lines[start].endswith("), which concerned 4 workloads, of which 3 are still as it left them:")
    assert lines[start + 1].startswith("  3 workloads moved: Deployment default/api (one 2 -> two 2), ")
    (entry,) = (one for one in serialize_fleet_status(read_fleet_status(fleet.settings(3)))["recent"] if len(one["losses"]) == 3)
    assert entry["concerned"] == 4


@pytest.mark.parametrize("earlier", [None, policy("oen")], ids=["without a policy", "without a cluster"])
def test_a_workload_that_a_later_commit_removes_is_not_removed_by_the_one_before(earlier: str | None, fleet: Fleet) -> None:
    merge(fleet, {**WEB, "api.yaml": deployment("api")}, 0)
    merge(fleet, {"policy.yaml": earlier}, 1)
    merge(fleet, {"web.yaml": None}, 2)
    lines = read(fleet, 2)
    start = next(number for number, line in enumerate(lines) if line.startswith("Changed 1h ago"))
    assert lines[start + 1] == "  1 workload became unplaced: Deployment default/api (was on one 2)"
    assert lines[start + 2].startswith("  to undo it: ")


def test_a_drain_is_not_proposed_where_failover_has_left_nothing_to_move(fleet: Fleet) -> None:
    unready = cluster("one") + "status: {conditions: [{type: Ready, status: 'False', reason: Unreachable}]}\n"
    policies = {"policy.yaml": policy("one", "two"), "dbs.yaml": policy("one", "two", name="dbs", kind="StatefulSet")}
    failover = SETTINGS.replace("preemption: true", "failover: cluster")
    merge(fleet, {**WEB, **policies, "db.yaml": DATABASE, "gitsched.yaml": failover}, 0)
    merge(fleet, {"one.yaml": unready}, 1)
    lines = read(fleet, 1)
    assert any(line.startswith("StatefulSet default/db is held on one 2: ") for line in lines)
    (line,) = (line for line in lines if line.startswith("Not ready: "))
    stays = "Not ready: one: 1 workload stays (StatefulSet default/db), which a drain does not move either"
    assert line == f"{stays}; gitsched explain statefulset/default/db says why"
    assert fleet.where("default/statefulset-db") == ["one"]
    merge(fleet, {"one.yaml": unready.replace("  syncMode", "  taints: [{key: power, effect: NoExecute}]\n  syncMode")}, 2)
    assert fleet.where("default/statefulset-db") == ["one"], "a drain does not move it"


@pytest.mark.parametrize("count", [2, NAMES_RETURNED, NAMES_RETURNED + 1])
def test_what_brings_back_names_only_what_the_commit_moved(count: int, fleet: Fleet) -> None:
    names = [f"web{number:02}" for number in range(count)]
    merge(fleet, {**CLUSTERS, "policy.yaml": policy("one", "two"), **{f"{name}.yaml": deployment(name) for name in names}}, 0)
    before = fleet.git("rev-parse", "placements")[:10]
    merge(fleet, {"one.yaml": cluster("one", "power:NoExecute")}, 1)
    (line,) = (line for line in read(fleet, 1) if "to undo it: " in line)
    words = " ".join(f"deployment/default/{name}" for name in names)
    few = f", then gitsched rebalance --to {before} {words} --write for what stays where it is, then git add and git commit, and "
    many = f", then gitsched rebalance --to {before} shows what stays where it is, and later moves of others, which --write takes back, "
    assert (few if count <= NAMES_RETURNED else many) in line


def test_what_brings_back_does_not_name_workloads_with_data(fleet: Fleet) -> None:
    both = policy("one", "two") + "---\n" + policy("one", "two", kind="StatefulSet", name="data")
    merge(fleet, {**WEB, "policy.yaml": both, "db.yaml": DATABASE}, 0)
    before = fleet.git("rev-parse", "placements")[:10]
    released = DATABASE.replace("  namespace:", "  annotations: {gitsched.io/release: one}\n  namespace:")
    merge(fleet, {"one.yaml": cluster("one", "power:NoExecute"), "db.yaml": released}, 1)
    (line,) = (line for line in read(fleet, 1) if "gitsched rebalance --to" in line)
    assert (
        f" gitsched rebalance --to {before} deployment/default/web --write for what stays where it is, then git add and git commit, and"
        in line
    )
    assert f"; StatefulSet default/db stays with its data unless gitsched rebalance --to {before} names it; " in line


def test_the_commit_that_says_that_a_cluster_failed_is_not_to_be_reverted(fleet: Fleet) -> None:
    unready = cluster("one") + "status: {conditions: [{type: Ready, status: 'False', reason: Unreachable}]}\n"
    merge(fleet, {**WEB, "gitsched.yaml": SETTINGS.replace("preemption: true", "failover: cluster")}, 0)
    before = fleet.git("rev-parse", "placements")[:10]
    source = merge(fleet, {"one.yaml": unready, "README.md": "x"}, 1, "Observe")
    lines = read(fleet, 1)
    (start,) = (number for number, line in enumerate(lines) if line.startswith(f"Changed 0s ago by {source[:10]} Observe "))
    back = f"gitsched rebalance --to {before} deployment/default/web --write for what stays where it is"
    assert lines[start + 2].startswith(f"  when one is ready again: gitsched reconcile, then {back}; all moves: ")
    assert "git revert" not in "\n".join(lines)


def test_a_state_of_krake_that_says_that_a_cluster_failed_is_not_to_be_reverted(fleet: Fleet) -> None:
    """Krake has no taint for that, and workloads leave such a cluster all the same. What stays there is named."""
    fixed = application_yaml("fixed", "  constraints: {migration: false}\n")
    merge(fleet, {"west.yaml": cluster_yaml("west"), "app.yaml": application_yaml("app"), "fixed.yaml": fixed}, 0)
    source = merge(fleet, {"east.yaml": cluster_yaml("east"), "west.yaml": cluster_yaml("west", state="OFFLINE")}, 2, "States")
    text = " ".join(" ".join(read(fleet, 2)).split())
    assert f"Changed 0s ago by {source[:10]} States " in text
    assert "when tenant-a.west is ready again: gitsched reconcile" in text
    assert "git revert" not in text
    assert "1 workload stays (Application tenant-a/fixed), which a drain does not move either" in text
