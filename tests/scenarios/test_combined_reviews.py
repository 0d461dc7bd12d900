"""Reviewed pull requests that are merged before one run are reviewed together. What none of them has is named."""

from __future__ import annotations

import pytest

from gitsched.reconcile import RunResult
from gitsched.reconcile.review.comparison import compare_plans

from .conftest import UNGUARDED, Fleet, cluster, deployment, policy

TRAILER = "Gitsched-Reviewed"


def place(name: str, *names: str) -> str:
    """Return a policy for one Deployment."""
    return policy(",".join(names), name=name).replace("kind: Deployment}", f"kind: Deployment, name: {name}}}")


@pytest.fixture
def shop(fleet: Fleet) -> Fleet:
    """Deployments `api`, `web` and `job` on cluster `first`, each with a policy of its own. Reconciled."""
    files = {"gitsched.yaml": UNGUARDED, "README": "shop\n"}
    files |= {f"clusters/{name}.yaml": cluster(name) for name in ("first", "second", "third")}
    for name in ("api", "web", "job"):
        files |= {f"apps/{name}.yaml": deployment(name), f"policies/{name}.yaml": place(name, "first")}
    fleet.commit(files)
    fleet.reconcile()
    return fleet


def review(shop: Fleet, branch: str, files: dict[str, str], base: str = "main", message: str = "Change") -> str:
    """Commit files to a branch from `base`, and return the digest of its review."""
    shop.git("checkout", "-q", "-b", branch, base)
    shop.commit(files, hour=1, message=message)
    digest = compare_plans(shop.settings(1, revision=branch), base).review.comparison.digest
    shop.git("checkout", "-q", "main")
    return digest


def merge(shop: Fleet, branch: str, digest: str = "", *, squash: bool = False) -> None:
    message = f"Merge {branch}" + (f"\n\n{TRAILER}: {digest}" if digest else "")
    if squash:
        shop.git("merge", "-q", "--squash", branch)
        shop.record(1, message)
        return
    shop.git("merge", "-q", "--no-ff", "--no-commit", branch)
    shop.record(1, message)


def reconcile(shop: Fleet, hour: float = 1) -> RunResult:
    return shop.reconcile(hour, require_reviewed=True)


@pytest.mark.parametrize("squash", [False, True], ids=["merged", "squashed"])
def test_two_reviewed_branches_are_reviewed_together(shop: Fleet, squash: bool) -> None:
    one = review(shop, "one", {"policies/api.yaml": place("api", "second")})
    two = review(shop, "two", {"policies/web.yaml": place("web", "third"), "apps/job.yaml": deployment("job", 5)})
    merge(shop, "one", one, squash=squash)
    merge(shop, "two", two, squash=squash)
    run = reconcile(shop)
    assert run.refused == ""
    (line,) = run.reviewed
    assert line.startswith("As reviewed: plans ")
    assert one in line
    assert two in line
    assert (shop.where("default/deployment-api")[-1], shop.where("default/deployment-web")[-1]) == ("second", "third")


def test_a_branch_that_was_reviewed_on_top_of_another_one(shop: Fleet) -> None:
    """The second one moves what the first one moved before: the workload goes the way of both."""
    one = review(shop, "one", {"policies/api.yaml": place("api", "second")})
    merge(shop, "one", one)
    two = review(shop, "two", {"policies/api.yaml": place("api", "third")})
    merge(shop, "two", two)
    run = reconcile(shop)
    assert (run.refused, [line[:11] for line in run.reviewed]) == ("", ["As reviewed"])
    assert "third" in shop.where("default/deployment-api")


def test_commits_that_change_no_placement_need_no_review(shop: Fleet) -> None:
    one = review(shop, "one", {"policies/api.yaml": place("api", "second")})
    shop.commit({"README": "more\n"}, hour=1)
    merge(shop, "one", one)
    shop.commit({"README": "most\n"}, hour=1)
    assert (reconcile(shop).refused, "second" in shop.where("default/deployment-api")) == ("", True)


def test_what_no_review_has_is_named_and_refused(shop: Fleet) -> None:
    one = review(shop, "one", {"policies/api.yaml": place("api", "second")})
    merge(shop, "one", one)
    shop.commit({"policies/web.yaml": place("web", "third")}, hour=1)
    two = review(shop, "two", {"apps/job.yaml": deployment("job", 5)})
    merge(shop, "two", two)
    head = shop.head
    run = reconcile(shop)
    assert (run.refused, shop.head) == ("the plan differs from the reviewed plan", head)
    lines = [line for line in run.reviewed if "in no reviewed plan" in line]
    assert lines[0] == "  in no reviewed plan: Deployment default/web: first 2 -> third 2"
    assert len(lines) == 1


def test_a_digest_that_is_not_that_of_the_change_counts_for_nothing(shop: Fleet) -> None:
    one = review(shop, "one", {"policies/api.yaml": place("api", "second")})
    review(shop, "two", {"policies/web.yaml": place("web", "third")})
    merge(shop, "one", one)
    merge(shop, "two", one)
    run = reconcile(shop)
    assert run.refused
    oid = shop.git("rev-parse", "HEAD")[:10]
    assert f"  commit {oid} names {one}, which is not the plan of its changes" in run.reviewed
    assert "  in no reviewed plan: Deployment default/web: first 2 -> third 2" in run.reviewed


def test_trailers_inside_of_a_merged_branch_are_its_authors(shop: Fleet) -> None:
    digest = review(shop, "one", {"policies/api.yaml": place("api", "second")})
    shop.git("checkout", "-q", "one")
    shop.git("commit", "-q", "--amend", "-m", f"Change\n\n{TRAILER}: {digest}")
    shop.git("checkout", "-q", "main")
    merge(shop, "one")
    shop.commit({"README": "more\n"}, hour=1)
    assert "names no reviewed plan" in reconcile(shop).refused


def test_branches_that_do_something_else_together_are_not_as_reviewed(shop: Fleet) -> None:
    """Each one changes the replicas of the same manifest in another way; together they make a manifest that nobody has reviewed."""
    text = deployment("api") + "---\n" + deployment("extra").replace("name: extra\n  n", "name: extra\n  labels: {a: b}\n  n")
    shop.commit({"apps/api.yaml": text.replace("    a", "    a")}, hour=1)
    shop.reconcile(1)
    lines = deployment("api", 4).replace(
        "selector: {matchLabels: {app: api}}", "minReadySeconds: 1\n  selector: {matchLabels: {app: api}}"
    )
    one = review(shop, "one", {"apps/api.yaml": lines})
    two = review(shop, "two", {"policies/api.yaml": place("api", "second")})
    merge(shop, "one", one)
    merge(shop, "two", two)
    run = reconcile(shop, 2)
    assert run.refused
    assert any(line.startswith("  in no reviewed plan: Deployment default/api") for line in run.reviewed)


def test_what_time_changes_since_the_last_run_needs_no_review(shop: Fleet) -> None:
    tolerated = "  placement:\n    clusterTolerations: [{key: power, operator: Exists%s}]\n"
    policies = {
        "policies/job.yaml": place("job", "first", "second").replace("  placement:\n", tolerated % ", tolerationSeconds: 3600"),
        **{f"policies/{name}.yaml": place(name, "first").replace("  placement:\n", tolerated % "") for name in ("api", "web")},
    }
    shop.commit(policies, hour=0.2)
    shop.reconcile(0.2)
    shop.commit({"clusters/first.yaml": cluster("first", "power:NoExecute")}, hour=0.5)
    shop.reconcile(0.5)
    one = review(shop, "one", {"apps/api.yaml": deployment("api", 7)})
    merge(shop, "one", one)
    run = reconcile(shop, 3)
    assert {move.key.name for move in run.plan.moves} == {"api", "job"}
    assert (run.refused, [line[:11] for line in run.reviewed]) == ("", ["As reviewed"])


def test_the_number_of_commits_is_bounded(shop: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    from gitsched.reconcile.review import combined_reviews

    monkeypatch.setattr(combined_reviews, "MAX_COMMITS", 2)
    merge(shop, "one", review(shop, "one", {"policies/api.yaml": place("api", "second")}))
    for text in ("a", "b", "c"):
        shop.commit({"README": text}, hour=1)
    assert reconcile(shop).refused


def test_a_review_that_takes_too_many_plans_to_verify_is_named(shop: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        workload = "api" if name == "one" else "web"
        merge(shop, name, review(shop, name, {f"policies/{workload}.yaml": place(workload, "second")}))
    monkeypatch.setattr("gitsched.reconcile.review.combined_reviews.MAX_PLANS", 1)
    run = reconcile(shop)
    assert run.refused
    assert sum("which would take more than 1 plans to verify" in line for line in run.reviewed) >= 1
