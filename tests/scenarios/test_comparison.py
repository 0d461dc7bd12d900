"""Comparison of two commits on the same output: moves with their causes, and recognition of the reviewed plan by its digest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from gitsched.diff.plans import ReviewedPlan, parse_reviewed_plan
from gitsched.model.errors import Permanent
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.report.review import Review
from gitsched.report.serialization import serialize_review
from gitsched.report.text import write_plan

from .conftest import Fleet, cluster, deployment, policy

Files = Mapping[str, str | bytes | None]
TAINTED = cluster("first", "power:NoExecute")


@pytest.fixture
def placed(pair: Fleet) -> Fleet:
    """A fleet with `web` in `first`, reconciled; a branch `change` is checked out."""
    pair.reconcile()
    pair.git("checkout", "-q", "-b", "change")
    return pair


def compared(fleet: Fleet, base: str | None = "main", hour: float = 1, **more: object) -> Review:
    return compare_plans(fleet.settings(hour, **{"revision": "HEAD" if base else None, **more}), base).review


def reasons(review: Review) -> dict[str, list[str]]:
    return {move.key.name: [str(cause) for cause in move.causes] for move in review.moves}


@pytest.mark.parametrize(
    ("files", "name", "reason"),
    [
        pytest.param({"clusters/first.yaml": TAINTED}, "web", "Cluster/first: spec.taints added: ", id="a taint"),
        pytest.param(
            {"policies/all.yaml": policy("second")},
            "web",
            "spec.placement.clusterAffinities[0].clusterNames[0] first -> second (policies/all.yaml:12)",
            id="a policy's clusters",
        ),
        pytest.param({"apps/web.yaml": deployment("web", 5)}, "web", "spec.replicas 2 -> 5 (apps/web.yaml:7)", id="replicas"),
        pytest.param({"apps/new.yaml": deployment("new")}, "new", "added to the source (apps/new.yaml:1)", id="a new one"),
        pytest.param({"apps/web.yaml": None}, "web", "removed from the source (was apps/web.yaml:1)", id="one less"),
        pytest.param(
            {"clusters/first.yaml": None}, "web", "Cluster/first removed (was clusters/first.yaml:1)", id="a cluster less"
        ),
        pytest.param(
            {"policies/all.yaml": None, "policies/other.yaml": policy("second", name="other")},
            "web",
            "PropagationPolicy/default/all removed (was policies/all.yaml:1)",
            id="another policy",
        ),
    ],
)
def test_a_move_is_reported_with_the_line_that_causes_it(placed: Fleet, files: Files, name: str, reason: str) -> None:
    placed.commit(files, hour=1)
    assert any(reason in text for text in reasons(compared(placed)).get(name, [])), reasons(compared(placed))


def test_a_merge_does_what_the_review_of_the_branch_shows(placed: Fleet) -> None:
    """The result is the same if main gets unrelated commits in the meantime."""
    placed.commit({"clusters/first.yaml": TAINTED}, hour=1)
    placed.git("checkout", "-q", "main")
    placed.commit({"apps/other.yaml": deployment("other")}, hour=1)
    placed.reconcile(1)
    review = compared(placed, "main", revision="change")
    assert review.base.merged
    assert {move.key.name: (dict(move.before), dict(move.after)) for move in review.moves} == {
        "other": ({"first": 2}, {"second": 2}),
        "web": ({"first": 2}, {"second": 2}),
    }
    placed.git("merge", "-q", "--no-edit", "change")
    assert compared(placed, None, hour=2).comparison.digest == review.comparison.digest
    run = placed.reconcile(2, reviewed=ReviewedPlan(review.comparison.digest), require_reviewed=True)
    assert run.after is not None
    assert run.reviewed == (f"As reviewed: plan {review.comparison.digest}.",)


def test_a_trailer_of_the_merge_commit_names_the_reviewed_plan(placed: Fleet) -> None:
    placed.commit({"clusters/first.yaml": TAINTED}, hour=1)
    digest = compared(placed).comparison.digest
    placed.git("checkout", "-q", "main")
    placed.git("merge", "-q", "--no-ff", "-m", f"Merge\n\nGitsched-Reviewed: {digest}", "change")
    run = placed.reconcile(2, require_reviewed=True)
    assert (run.after is not None, run.reviewed) == (True, (f"As reviewed: plan {digest}.",))


@pytest.mark.parametrize(("review_at", "merge_at", "run_at"), [(1, 30, 30), (300, 300, 300), (1, 1, 2), (50, 60, 61)])
def test_a_review_stays_valid_on_an_old_branch_and_in_a_late_job(
    placed: Fleet, review_at: float, merge_at: float, run_at: float
) -> None:
    """Remaining old copies depend on the time; the new placement does not."""
    placed.commit({"clusters/first.yaml": TAINTED}, hour=1)
    digest = compared(placed, hour=review_at).comparison.digest
    placed.git("checkout", "-q", "main")
    placed.git("merge", "-q", "--no-ff", "--no-commit", "change")
    placed.record(merge_at, "Merge")
    assert placed.reconcile(run_at, reviewed=ReviewedPlan(digest)).reviewed == (f"As reviewed: plan {digest}.",)


def test_differences_from_the_review_are_listed_and_refused_on_request(placed: Fleet) -> None:
    placed.commit({"clusters/first.yaml": TAINTED}, hour=1)
    seen = parse_reviewed_plan(json.dumps(serialize_review(compared(placed))))
    placed.commit({"apps/more.yaml": deployment("more")}, hour=1)
    placed.git("checkout", "-q", "main")
    placed.git("merge", "-q", "change")
    refused = placed.reconcile(2, reviewed=seen, require_reviewed=True)
    assert (refused.after, refused.refused) == (None, "the plan differs from the reviewed plan")
    assert "Not as reviewed: " in refused.reviewed[0]
    assert refused.reviewed[1:] == ("  Deployment default/more: reviewed: no change; now: nowhere -> second 2",)
    run = placed.reconcile(2, reviewed=seen)
    assert run.after is not None
    assert run.reviewed[1:] == refused.reviewed[1:]


def test_only_changes_of_a_commit_need_a_review(placed: Fleet) -> None:
    """The end of an eviction is not a change that can be reviewed."""
    placed.git("checkout", "-q", "main")
    placed.commit({"clusters/first.yaml": TAINTED}, hour=1)
    without = placed.reconcile(1, require_reviewed=True)
    assert without.after is None
    assert "names no reviewed plan" in without.refused
    assert placed.reconcile(1).after is not None
    late = placed.reconcile(3, require_reviewed=True)
    assert (late.after is not None, late.refused) == (True, "")


@pytest.mark.parametrize("text", ["", "sha256:12", "{}", '{"moves": [], "digest": "x", "output": {"before": null}}', "[]"])
def test_an_invalid_plan_digest_is_refused(text: str) -> None:
    with pytest.raises(Permanent):
        parse_reviewed_plan(text)


def test_differences_of_the_output_branch_are_not_part_of_the_change(placed: Fleet) -> None:
    placed.git("checkout", "-q", "main")
    placed.commit({"apps/waiting.yaml": deployment("waiting")}, hour=1)
    placed.git("checkout", "-q", "-B", "change")
    placed.commit({"apps/web.yaml": deployment("web", 3)}, hour=1)
    review = compared(placed)
    assert [move.key.name for move in review.moves] == ["web"]
    assert any("1 more workload" in note for note in review.comparison.notes)


def test_branches_of_a_url_are_compared_without_a_clone(placed: Fleet, tmp_path: Path) -> None:
    """The private clone is shallow until a merge needs more commits."""
    placed.commit({"clusters/first.yaml": TAINTED}, hour=1)
    placed.git("checkout", "-q", "main")
    placed.commit({"apps/other.yaml": deployment("other")}, hour=1)
    placed.git("clone", "-q", "--bare", ".", str(tmp_path / "remote.git"))
    review = compared(placed, "main", revision="change", location=(tmp_path / "remote.git").as_uri())
    assert (review.base.merged, list(review.comparison.notes)[:1]) == (
        True,
        [note for note in review.comparison.notes if "1 more workload" in note],
    )
    assert {move.key.name: dict(move.after) for move in review.moves} == {"other": {"second": 2}, "web": {"second": 2}}


def test_conflicting_commits_are_planned_as_they_are_with_a_note(placed: Fleet) -> None:
    placed.commit({"apps/web.yaml": deployment("web", 3)}, hour=1)
    placed.git("checkout", "-q", "main")
    placed.commit({"apps/web.yaml": deployment("web", 4)}, hour=1)
    review = compared(placed, "main", revision="change")
    assert not review.base.merged
    assert any("cannot be merged automatically" in note for note in review.comparison.notes)
    assert [dict(move.after) for move in review.moves] == [{"first": 3}]


def test_the_worktree_can_be_compared_with_a_commit(placed: Fleet) -> None:
    placed.write({"apps/web.yaml": deployment("web", 7)})
    review = compared(placed, "main", revision=None, worktree=True)
    assert [dict(move.after) for move in review.moves] == [{"first": 7}]
    assert "the worktree against main" in write_plan(review, 200)


def test_a_comparison_moves_no_ref_and_reports_an_unknown_revision(placed: Fleet) -> None:
    before = placed.git("for-each-ref")
    placed.commit({"clusters/first.yaml": TAINTED}, hour=1)
    refs = placed.git("for-each-ref")
    compared(placed)
    assert placed.git("for-each-ref") == refs != before
    with pytest.raises(Permanent, match="nowhere"):
        compared(placed, "nowhere")


def test_findings_are_new_fixed_or_existing(placed: Fleet) -> None:
    wrong = {name: cluster(name).replace("Push", "Pusch") for name in ("old", "new", "mended")}
    placed.git("checkout", "-q", "main")
    placed.commit({"clusters/old.yaml": wrong["old"], "clusters/mended.yaml": wrong["mended"]}, hour=1)
    placed.git("checkout", "-q", "-B", "change")
    files = {"old": f"# moved by a line\n{wrong['old']}", "mended": cluster("mended"), "new": wrong["new"]}
    placed.commit({f"clusters/{name}.yaml": text for name, text in files.items()}, hour=1)
    review = compared(placed)
    errors = [finding for finding in review.new_findings if finding.severity == "error"]
    assert [finding.location and finding.location.path for finding in errors] == ["clusters/new.yaml"]
    assert review.fixed_count == 1
    text = write_plan(review, 200)
    assert "1 new error, 1 existing error, 2 existing notes, 1 fixed error." in text
    assert text.count("Fixed: ") == 1


def test_a_first_plan_is_compared_with_an_empty_output(pair: Fleet) -> None:
    review = compared(pair, None)
    assert review.before is None
    text = write_plan(review, 80)
    assert text.startswith("First placement: ")
    assert "@@" not in text


def test_a_changed_secret_is_listed_and_its_content_is_not_shown(placed: Fleet) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: default}\nstringData: {password: hunter2}\n"
    placed.commit({"policies/secrets.yaml": policy("first", name="secrets", kind="Secret"), "apps/key.yaml": secret}, hour=1)
    review = compared(placed)
    data = json.dumps(serialize_review(review)) + write_plan(review, 200)
    assert "secret-key.yaml" in data
    assert "hunter2" not in data


def test_a_new_copy_is_compared_with_the_existing_one(placed: Fleet) -> None:
    placed.commit({"policies/all.yaml": policy("first,second")}, hour=1)
    (entry,) = compared(placed).comparison.delivery.rendered
    assert (entry.clusters, entry.copied, entry.diff, entry.verb) == (("second",), "first", "", "added")
