"""`gitsched status` blames the commits of the source that may have moved something, not those that were only planned last."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from gitsched.model.explanation import Explanation
from gitsched.model.history import HistoryFilter
from gitsched.reconcile.output.output_history import open_history
from gitsched.reconcile.review import narrowed_sources, recent_runs, run_causes, withheld_requests
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.reconcile.run import RunResult, make_review
from gitsched.report.fleet_status import serialize_fleet_status, write_fleet_status
from gitsched.report.history import describe_evictions, write_entry
from gitsched.report.page.history import HistoryPage, write_history_page
from gitsched.report.serialization import serialize_review
from gitsched.report.summary import format_headline
from gitsched.report.text import write_run
from tests.scenarios.conftest import Fleet, cluster, deployment, policy

MANY = {f"w{number}.yaml": deployment(f"w{number}") for number in range(9)}
FILES = {"one.yaml": cluster("one"), "two.yaml": cluster("two"), "policy.yaml": policy("one", "two"), **MANY}
SPREAD = "    spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]\n"
MOVE = {"policy.yaml": policy("oen", "two")}


def commit_after_the_move(fleet: Fleet) -> str:
    moving = fleet.commit(MOVE, hour=1, message="Move")
    fleet.commit({"README.md": "x"}, hour=1, message="Describe it")
    return moving


def plan_without_a_change_before(fleet: Fleet) -> str:
    fleet.commit({"policy.yaml": f"{FILES['policy.yaml']}# a comment\n"}, hour=1, message="Comment")
    fleet.reconcile(1)
    return fleet.commit(MOVE, hour=1, message="Move")


def merge_and_commit_a_text(fleet: Fleet) -> str:
    fleet.git("checkout", "-q", "-b", "topic")
    fleet.commit(MOVE, hour=1)
    fleet.git("checkout", "-q", "main")
    fleet.commit({"notes.md": "x"}, hour=1)
    fleet.git("merge", "-q", "--no-commit", "--no-ff", "topic")
    moving = fleet.record(1, "Move")
    fleet.commit({"README.md": "x"}, hour=1, message="Describe it")
    return moving


def allow_what_was_withheld(fleet: Fleet) -> str:
    moving = fleet.commit(dict.fromkeys(MANY), hour=1, message="Move")
    withheld = fleet.reconcile(1).plan.withheld
    assert withheld.moves, "the guard withholds it"
    fleet.commit({}, hour=1, message=f"Allow it\n\nGitsched-Allow: {withheld.digest}\n")
    return moving


def commit_about_others(fleet: Fleet) -> str:
    fleet.commit({"new.yaml": deployment("new")}, hour=1)
    fleet.reconcile(1)
    moving = fleet.commit(MOVE, hour=1, message="Move")
    fleet.commit({"new.yaml": deployment("new", 5), "w1.yaml": f"# the same\n{MANY['w1.yaml']}"}, hour=1, message="Scale another")
    return moving


CASES: dict[str, tuple[Callable[[Fleet], str], str]] = {
    "a text for readers was planned, too": (commit_after_the_move, "git revert {}"),
    "a run before planned a commit without an effect": (plan_without_a_change_before, "git revert {}"),
    "a commit about another workload was planned, too": (commit_about_others, "git revert {}"),
    "a merge, and a text for readers": (merge_and_commit_a_text, "git revert -m 1 {}"),
    "an allowance": (allow_what_was_withheld, "git revert {}"),
}


def read(fleet: Fleet, hour: float) -> list[str]:
    return write_fleet_status(read_fleet_status(fleet.settings(hour))).splitlines()


@pytest.mark.parametrize("name", CASES)
def test_the_commit_that_moved_something_is_named(name: str, fleet: Fleet) -> None:
    prepare, revert = CASES[name]
    fleet.commit(FILES)
    fleet.reconcile(0)
    moving = prepare(fleet)
    fleet.reconcile(1)
    lines = read(fleet, 2)
    assert next(line for line in lines if line.startswith("Changed ")).startswith(f"Changed 1h ago by {moving[:10]} Move (")
    undo = f"  to undo it: {revert.format(moving[:10])}, "
    assert any(line.startswith(undo) and ", and gitsched reconcile; all moves: " in line for line in lines)


def test_a_withheld_merge_is_withdrawn_as_one(fleet: Fleet) -> None:
    fleet.commit(FILES)
    fleet.reconcile(0)
    fleet.git("checkout", "-q", "-b", "topic")
    fleet.commit(dict.fromkeys(MANY), hour=1)
    fleet.git("checkout", "-q", "main")
    fleet.git("merge", "-q", "--no-commit", "--no-ff", "topic")
    moving = fleet.record(1, "Merge topic")
    fleet.reconcile(1)
    assert any(line.endswith(f"; to withdraw it: git revert -m 1 {moving[:10]}") for line in read(fleet, 1))


def test_a_hand_edit_that_is_taken_back_is_the_cause_as_in_the_history(fleet: Fleet) -> None:
    fleet.commit(FILES)
    fleet.reconcile(0)
    path = "placements/default/deployment-w0.yaml"
    record, manifest = fleet.read(path), "clusters/one/default/deployment-w0.yaml"
    text = fleet.read(manifest)
    fleet.git("checkout", "-q", "placements")
    fleet.commit({manifest: f"{text}# edited\n", path: record.replace('\\"one\\":2', '\\"one\\":5')}, hour=1)
    fleet.git("checkout", "-q", "main")
    fleet.reconcile(2)
    (entry,) = open_history(fleet.settings(2), HistoryFilter()).read_entries(1)
    (run,) = serialize_fleet_status(read_fleet_status(fleet.settings(2)))["recent"]
    assert (entry.cause, run["cause"], run["sources"]) == ("edit", "edit", [])


def edit_branch(fleet: Fleet, path: str, old: str, new: str, hour: float) -> str:
    """Replace text in a file of the output branch as Ann, with a commit that a forge makes. Return the commit."""
    text = fleet.read(path)
    assert old in text
    fleet.git("checkout", "-q", "placements")
    fleet.commit({path: text.replace(old, new)}, hour=hour, message="Mend it")
    fleet.git(
        "commit", "-q", "--amend", "--no-edit", "--author", "Ann <ann@example.com>", environment={"GIT_COMMITTER_NAME": "Forge"}
    )
    edit = fleet.git("rev-parse", "HEAD")
    fleet.git("checkout", "-q", "main")
    return edit


RECORD = "status/work.karmada.io/resourcebinding/default/w0-deployment.yaml"


@pytest.mark.parametrize("also", [False, True])
def test_a_record_that_was_edited_by_hand_is_the_cause_of_its_move(also: bool, fleet: Fleet) -> None:
    fleet.commit({**FILES, "policy.yaml": policy("one,two", more=SPREAD)})
    fleet.reconcile(0)
    edit = edit_branch(fleet, RECORD, "name: one", "name: two", 1)
    status = read_fleet_status(fleet.settings(1))
    assert [(one.commit, one.author) for one in status.edits] == [(edit, "Ann")], "not the forge"
    if also:
        fleet.commit({"w9.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: w9, namespace: default}\n"}, hour=1)
    assert_named_beforehand(fleet, edit)
    run = fleet.reconcile(2)
    assert f": files change, no workload moves besides what records edited by hand in {edit[:10]} move, from " in describe(run)
    assert f": {edit[:10]} Mend it (Ann)" in explain(fleet, "w0").trigger, "also after the run that followed it"
    assert edit[:10] not in explain(fleet, "w1").trigger
    (finding,) = (each for each in run.plan.findings if each.code == "output-edited")
    assert f" changed {RECORD} on the output branch" in finding.message
    assert f": a run decides from these records: unless that is meant, git revert {edit[:10]} on that branch" in finding.message
    (entry, by_hand) = open_history(fleet.settings(2), HistoryFilter()).read_entries(2)
    assert entry.summary.startswith("edited records followed"), "not only manifests"
    history = write_history_page(HistoryPage("placements", fleet.head or "", [entry, by_hand]))
    assert "records edited, from which runs decide: deployment default/w0" in history
    assert (entry.cause, [one.commit for one in entry.edits], by_hand.author) == ("records", [edit], "Ann")
    named = f"records edited by hand: {edit[:10]} Mend it (Ann)"
    assert f"  cause: {named}" in write_entry(entry).splitlines()
    lines = read(fleet, 2)
    start = next(number for number, line in enumerate(lines) if line.startswith("Changed ") and line.endswith(f" by {named}:"))
    assert lines[start + 1] == "  1 workload moved: Deployment default/w0 (one 2 -> two 2)"
    undo = f"git revert {edit[:10]} on the output branch, and gitsched reconcile"
    assert lines[start + 2].startswith(f"  to undo it: {undo}")


def test_a_record_that_a_run_takes_back_explains_nothing(fleet: Fleet) -> None:
    """Its policy does not allow the cluster that someone wrote. The new record has other times than the one before."""
    fleet.commit({**FILES, "policy.yaml": policy("one", more=SPREAD)})
    fleet.reconcile(0)
    before = fleet.files()
    edit = edit_branch(fleet, RECORD, "name: one", "name: two", 1)
    fleet.commit({"README.md": "Later"}, hour=2)
    fleet.reconcile(2)
    after = fleet.files()
    assert [path for path in after if "/" in path and before[path] != after[path]] == [RECORD]
    assert edit[:10] not in explain(fleet, "w0").trigger


def describe(run: RunResult) -> str:
    return write_run(make_review(run), 10_000)


def explain(fleet: Fleet, name: str) -> Explanation:
    found = explain_resource(fleet.settings(2), "Deployment", "default", name)
    assert isinstance(found, Explanation)
    return found


def assert_named_beforehand(fleet: Fleet, edit: str) -> None:
    """Assert that a plan, an explanation and the history of the workload name an edit before a run follows it."""
    review = make_review(fleet.preview(2))
    saved = serialize_review(review)
    assert saved["output"]["edits"] == [edit]
    headline = format_headline(review)
    assert headline.startswith(f"No workload moves besides what records edited by hand in {edit[:10]} move")
    assert f": {edit[:10]} Mend it (Ann); unless that is meant, git revert {edit[:10]} on that" in explain(fleet, "w0").trigger
    first = {name: next(open_history(fleet.settings(2), HistoryFilter(name)).read_entries(1)) for name in ("w0", "w1")}
    assert "  records edited, from which runs decide: deployment default/w0" in write_entry(first["w0"]).splitlines()
    assert first["w0"].commit == edit != first["w1"].commit


def test_a_run_that_takes_back_a_manifest_names_the_edit(fleet: Fleet) -> None:
    fleet.commit(FILES)
    fleet.reconcile(0)
    edit = edit_branch(fleet, "clusters/one/default/deployment-w0.yaml", "kind:", "# x\nkind:", 1)
    fleet.reconcile(2)
    (entry,) = open_history(fleet.settings(2), HistoryFilter()).read_entries(1)
    cause = f"  cause: what people changed on this branch is taken back: {edit[:10]} Mend it (Ann)"
    assert cause in write_entry(entry).splitlines()


def test_an_edit_is_named_beside_another_cause(fleet: Fleet) -> None:
    fleet.commit(FILES)
    fleet.reconcile(0)
    edit = edit_branch(fleet, RECORD, "name: one", "name: two", 1)
    moving = fleet.commit(MOVE, hour=2, message="Move")
    fleet.reconcile(2)
    (entry,) = open_history(fleet.settings(2), HistoryFilter()).read_entries(1)
    assert f"  cause: a commit of the source; after edits by hand: {edit[:10]} Mend it (Ann)" in write_entry(entry).splitlines()
    assert any(line.startswith("Changed ") and moving[:10] in line for line in read(fleet, 2))


TOLERANT = policy(
    "one", "two", more="    clusterTolerations: [{key: power, operator: Exists, effect: NoExecute, tolerationSeconds: 3600}]\n"
)


def end_a_toleration(fleet: Fleet) -> None:
    fleet.commit({"policy.yaml": TOLERANT}, hour=0.4)
    fleet.reconcile(0.4)
    fleet.commit({"one.yaml": cluster("one", "power:NoExecute")}, hour=0.5, message="Drain")
    fleet.reconcile(0.5)
    fleet.commit({"w1.yaml": deployment("w1", 5)}, hour=1.5, message="Scale another")


def allow_after_another_commit(fleet: Fleet) -> None:
    allow_what_was_withheld(fleet)
    fleet.commit({"other.yaml": policy("one", name="other", kind="StatefulSet")}, hour=1, message="Add")


def remove_what_has_no_policy(fleet: Fleet) -> None:
    fleet.commit({"policy.yaml": None, "w0.yaml": MANY["w0.yaml"] + "# more\n"}, hour=1, message="Drop")
    fleet.reconcile(1, allowed=(fleet.preview(1).plan.withheld.digest,))
    fleet.commit({"w0.yaml": None}, hour=1, message="Remove")


LIMITS: dict[str, tuple[Callable[[Fleet], object], ModuleType, str, str, str]] = {
    "compared files": (commit_about_others, narrowed_sources, "MAX_COMPARED", "Move", "Scale another; Move"),
    "searched files": (end_a_toleration, run_causes, "MAX_FILES", "Drain", "a drain of one"),
    "removals": (remove_what_has_no_policy, recent_runs, "MAX_REMOVED", "unplaced", "removed"),
    "requests": (allow_after_another_commit, withheld_requests, "MAX_RUNS", "Move", "Add; Move"),
}


@pytest.mark.parametrize("name", LIMITS)
def test_what_is_compared_is_limited(name: str, fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare, module, limit, within, beyond = LIMITS[name]
    fleet.commit(FILES)
    fleet.reconcile(0)
    prepare(fleet)
    fleet.reconcile(1.6)

    def find_named() -> str:
        run = read_fleet_status(fleet.settings(2)).recent[0]
        named = "; ".join(one.subject.partition("\n")[0] for one in run.sources) or describe_evictions(run.departures)
        return next((one.kind for one in run.losses if one.move.key.name == "w0"), "unplaced") if name == "removals" else named

    assert find_named() == within
    monkeypatch.setattr(module, limit, 0)
    assert find_named() == beyond


def test_an_edit_that_runs_still_follow_stays_named(fleet: Fleet) -> None:
    fleet.commit({**FILES, "policy.yaml": policy("one,two", more=SPREAD)})
    fleet.reconcile(0)
    edit = edit_branch(fleet, RECORD, "name: one", "name: two", 1)
    assert any(line.startswith(f"Edited by hand: {edit[:10]} Mend it (Ann, ") for line in read(fleet, 1))
    fleet.reconcile(2)
    assert not any(line.startswith("Followed: ") for line in read(fleet, 2)), "what it moved is named with it"
    (line,) = (line for line in read(fleet, 100) if line.startswith("Followed: "))
    assert line.startswith(
        f"Followed: {edit[:10]} Mend it (Ann, 4d ago) edited {RECORD} by hand, and runs still decide from that; "
    )
    assert line.endswith(f"; to undo it: git revert {edit[:10]} on placements, and gitsched reconcile")
    fleet.git("checkout", "-q", "placements")
    fleet.git("revert", "--no-edit", edit)
    fleet.git("checkout", "-q", "main")
    fleet.reconcile(101)
    assert not any(line.startswith("Followed: ") for line in read(fleet, 200))
