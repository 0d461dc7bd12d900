"""`gitsched fits` merges branches in memory, and says which fit together, as plans of the merges that git makes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any

import pygit2
import pytest

from gitsched.cli import main
from gitsched.decide.incremental import known_decisions
from gitsched.decide.workload_decision import decide_workload
from gitsched.git import Repository, ancestry
from gitsched.manifests.parsed_file import DEFAULT_LIMITS
from gitsched.model.document import Document
from gitsched.reconcile.incremental import new_state
from gitsched.reconcile.review import merged_changes
from tests.scenarios.conftest import Fleet, at_hour
from tests.simulate.conftest import cluster, deployment, divide

Fits = Callable[..., Any]
GUARDED = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n  guard: {fleet: {removed: 40}}\n"
BASE = {
    "gitsched.yaml": GUARDED,
    "clusters/a.yaml": cluster("a", pods=12),
    **{f"apps/{name}.yaml": deployment(name, 2) for name in ("cart", "pay", "site", "web")},
    **{f"policies/{name}.yaml": divide(name, "labelSelector: {}") for name in ("cart", "new", "pay", "site", "web")},
}
BRANCHES: dict[str, dict[str, str | None]] = {
    "more-web": {"apps/web.yaml": deployment("web", 4)},
    "most-web": {"apps/web.yaml": deployment("web", 5)},
    "more-site": {"apps/site.yaml": deployment("site", 3)},
    "new-one": {"apps/one.yaml": deployment("new", 1)},
    "new-two": {"apps/two.yaml": deployment("new", 2)},
    "second-pay": {"apps/second.yaml": deployment("pay", 3)},
    "no-pay": {"apps/pay.yaml": None},
}


@pytest.fixture
def branches(fleet: Fleet) -> str:
    """Reconcile the base, and commit a branch for each change; return the commit of the base."""
    fleet.commit(BASE)
    fleet.reconcile()
    base = fleet.git("rev-parse", "HEAD")
    for name, files in BRANCHES.items():
        branch(fleet, name, files)
    return base


def branch(fleet: Fleet, name: str, files: dict[str, str | None]) -> None:
    fleet.git("switch", "-q", "-c", name, "main")
    fleet.commit(files, hour=1)
    fleet.git("switch", "-q", "main")


@pytest.fixture
def fits(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, fleet: Fleet) -> Fits:
    """Run `gitsched fits`; return its exit code, and its output, parsed if it is JSON."""
    monkeypatch.setenv("COLUMNS", "400")

    def run(*arguments: str) -> Any:
        capsys.readouterr()
        code = main(["fits", "-C", str(fleet.path), "--onto", "main", "--now", at_hour(2).isoformat(), *arguments])
        printed = capsys.readouterr()
        return code, json.loads(printed.out) if "json" in arguments else printed.out + printed.err

    return run


def test_branches_that_fit_together_are_named_in_their_order(fleet: Fleet, branches: str, fits: Fits) -> None:
    refs = fleet.git("for-each-ref")
    code, text = fits("more-web", "more-site", "no-pay")
    assert code == 0
    assert re.match(r"3 changes fit together on main \([0-9a-f]+\), merged in this order: more-web, more-site, no-pay\.\n$", text)
    assert fleet.git("for-each-ref") == refs
    assert fleet.git("status", "--porcelain") == ""


def test_conflicts_are_named_by_file(branches: str, fits: Fits) -> None:
    code, text = fits("more-web", "most-web", "no-pay")
    assert code == 1
    assert "2 of 3 changes fit together" in text
    assert "\nmost-web fits only if more-web is not merged first:\n  conflicts in apps/web.yaml\n" in text


def test_what_fits_alone_and_not_together_is_named_with_the_reason(branches: str, fits: Fits) -> None:
    found = fits("new-one", "new-two", "-o", "json")[1]
    assert (found["sequence"], found["complete"]) == (["new-one"], True)
    (conflict,) = found["conflicts"]
    assert (conflict["changes"], conflict["files"]) == (["new-one", "new-two"], [])
    assert all("apps/one.yaml" in reason or "apps/two.yaml" in reason for reason in conflict["reasons"])
    assert [change["onlyWithout"] for change in found["changes"]] == [[["new-two"]], [["new-one"]]]


def test_a_change_that_needs_another_one_comes_after_it(branches: str, fits: Fits) -> None:
    code, text = fits("second-pay", "no-pay")
    assert code == 0
    assert "2 changes fit together" in text
    assert "merged in this order: no-pay, second-pay" in text
    assert "second-pay fits only after no-pay. Alone it does not fit:" in text


def plan(fleet: Fleet, capsys: pytest.CaptureFixture[str], revision: str) -> bool:
    capsys.readouterr()
    return main(["plan", "-C", str(fleet.path), "--now", at_hour(2).isoformat(), "main", revision]) == 0


def merge(fleet: Fleet, names: Iterable[str]) -> bool:
    """Merge branches with git, one after the other, and return whether that succeeds; HEAD is the merge then."""
    fleet.git("switch", "-q", "--detach", "main")
    for name in names:
        try:
            fleet.git("merge", "-q", "--no-ff", "-m", name, name)
        except AssertionError:
            fleet.git("merge", "--abort")
            return False
    return True


@pytest.mark.long
def test_the_verdict_of_each_set_is_that_of_a_plan_of_its_merge(
    fleet: Fleet, branches: str, fits: Fits, capsys: pytest.CaptureFixture[str]
) -> None:
    names = list(BRANCHES)
    found = fits(*names, "-o", "json")[1]
    verdicts = {}
    for size in range(1, len(names) + 1):
        for members in combinations(names, size):
            verdicts[frozenset(members)] = merge(fleet, members) and plan(fleet, capsys, "HEAD")
            fleet.git("switch", "-q", "main")
    assert {change["name"]: change["alone"]["fits"] for change in found["changes"]} == {
        name: verdicts[frozenset((name,))] for name in names
    }
    assert all(verdicts[frozenset(found["sequence"][:number])] for number in range(1, len(found["sequence"]) + 1))
    smallest = {
        one for one, fits in verdicts.items() if not fits and len(one) > 1 and all(verdicts[p] for p in verdicts if p < one)
    }
    assert {frozenset(conflict["changes"]) for conflict in found["conflicts"]} == smallest


def test_the_guard_of_the_base_counts(fleet: Fleet, branches: str, fits: Fits) -> None:
    """Each branch removes one of four workloads, and one of them allows more than the base does."""
    branch(fleet, "no-web", {"apps/web.yaml": None, "policies/web.yaml": None, "gitsched.yaml": GUARDED.replace("40", "100")})
    branch(fleet, "not-pay", {"apps/pay.yaml": None, "policies/pay.yaml": None})
    branch(fleet, "no-site", {"apps/site.yaml": None, "policies/site.yaml": None})
    branch(fleet, "no-cart", {"apps/cart.yaml": None, "policies/cart.yaml": None})
    found = fits("no-web", "not-pay", "no-site", "no-cart", "-o", "json")[1]
    (conflict,) = found["conflicts"]
    assert len(conflict["changes"]) == 4
    assert "changes-withheld" in conflict["reasons"][0]


def test_the_settings_of_the_base_count(fleet: Fleet, branches: str, fits: Fits) -> None:
    """A change of settings that hides the second definition of an object does not make another change fit, nor does a broken file."""
    branch(fleet, "hides", {"gitsched.yaml": GUARDED + "  source: {ignore: [second.yaml]}\n"})
    branch(fleet, "broken", {"gitsched.yaml": "a: ["})
    found = fits("hides", "second-pay", "more-web", "-o", "json")[1]
    assert found["sequence"] == ["hides", "more-web"]
    assert [change["changesSettings"] for change in found["changes"]] == [True, False, False]
    assert [change["alone"]["fits"] for change in found["changes"]] == [True, False, True]
    assert found["changes"][1]["onlyAfter"] == []
    text = fits("hides", "broken", "no-pay")[1]
    assert "hides, broken change gitsched.yaml. These settings were not applied: those of main count for each set." in text
    assert "broken fits only if hides is not merged first:\n  conflicts in gitsched.yaml" in text


def test_the_tenants_of_the_base_count(fleet: Fleet, fits: Fits) -> None:
    tenant = (
        "apiVersion: gitsched.io/v1alpha1\nkind: Tenant\nmetadata: {name: shop}\nspec:\n  paths: [apps, policies]\n"
        "  namespaces: [default]\n  limits: {replicas: 8}\n"
    )
    names = ("pay", "web")
    apps = {f"apps/{name}.yaml": deployment(name, 2) for name in names}
    policies = {f"policies/{name}.yaml": divide(name, "labelSelector: {}") for name in names}
    fleet.commit({"clusters/a.yaml": cluster("a", pods=50), "tenants/shop.yaml": tenant, **apps, **policies})
    fleet.reconcile()
    branch(fleet, "more-web", {"apps/web.yaml": deployment("web", 5)})
    branch(fleet, "more-pay", {"apps/pay.yaml": deployment("pay", 5)})
    branch(fleet, "raise", {"tenants/shop.yaml": tenant.replace("8", "100")})
    found = fits("raise", "more-web", "more-pay", "-o", "json")[1]
    assert found["sequence"] == ["raise", "more-web"]
    assert [conflict["changes"] for conflict in found["conflicts"]] == [["more-web", "more-pay"]]
    assert "tenant" in found["conflicts"][0]["reasons"][0]


def test_a_reserve_counts_for_what_is_merged_together(fleet: Fleet, fits: Fits) -> None:
    fleet.commit(
        {
            "gitsched.yaml": GUARDED + "  reserve: {lose: cluster}\n",
            **{f"clusters/{name}.yaml": cluster(name, pods=9) for name in "ab"},
            **{f"apps/{name}.yaml": deployment(name, 3) for name in ("pay", "web")},
            **{f"policies/{name}.yaml": divide(name, "labelSelector: {}") for name in ("pay", "web")},
        }
    )
    fleet.reconcile()
    branch(fleet, "more-web", {"apps/web.yaml": deployment("web", 5)})
    branch(fleet, "more-pay", {"apps/pay.yaml": deployment("pay", 5)})
    found = fits("more-web", "more-pay", "-o", "json")[1]
    assert [change["alone"]["fits"] for change in found["changes"]] == [True, True]
    (conflict,) = found["conflicts"]
    assert all("[reserve-short]" in reason for reason in conflict["reasons"])


def test_a_workload_is_decided_once_with_the_same_policy(
    fleet: Fleet, branches: str, fits: Fits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One branch removes the policy of a workload, another one adds a policy that selects it as well."""
    monkeypatch.setattr(new_state, "MIN_WORKLOADS", 0)
    decided: list[str] = []

    def decide(document: Document, *others: Any) -> Any:
        decided.append(document.key.name)
        return decide_workload(document, *others)

    monkeypatch.setattr(known_decisions, "decide_workload", decide)
    branch(fleet, "no-policy", {"policies/web.yaml": None})
    branch(fleet, "one-cluster", {"policies/pay.yaml": divide("pay", "clusterNames: [a]")})
    branch(fleet, "all", {"policies/all.yaml": divide("all", "clusterNames: [a]").replace(", name: all}", "}")})
    found = fits("no-policy", "one-cluster", "all", "-o", "json")[1]
    assert found["sequence"] == ["one-cluster", "all", "no-policy"]
    assert [change["onlyAfter"] for change in found["changes"]] == [[["all"]], [], []]
    assert found["plans"] == 7
    assert decided.count("pay") == 1
    assert decided.count("web") == 2


def test_pull_requests_are_those_that_the_clone_has(fleet: Fleet, branches: str, fits: Fits) -> None:
    fleet.git("update-ref", "refs/remotes/origin/pull/41", "more-web")
    fleet.git("update-ref", "refs/pull/52/head", "most-web")
    assert "\n#52 fits only if #41 is not merged first:\n" in fits("#41", "#52")[1]
    code, text = fits("#41", "#60")
    assert code == 1
    assert "no commit of #60: run git fetch origin 'refs/pull/60/head:refs/remotes/origin/pull/60'" in text


def test_stacked_and_merged_branches_add_nothing(fleet: Fleet, branches: str, fits: Fits) -> None:
    fleet.git("switch", "-q", "-c", "stacked", "more-web")
    fleet.commit({"apps/site.yaml": deployment("site", 3)}, hour=1)
    fleet.git("switch", "-q", "main")
    assert fits("more-web", "stacked", branches)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("missing",), "has no branch, tag or commit 'missing'", id="unknown"),
        pytest.param(("no-pay", "no-pay"), "no-pay is there twice", id="twice"),
        pytest.param(tuple(f"b{number}" for number in range(101)), "101 branches are too many", id="too many"),
    ],
)
def test_wrong_branches_are_refused(branches: str, fits: Fits, arguments: tuple[str, ...], message: str) -> None:
    code, text = fits(*arguments)
    assert code == 1
    assert message in text


def test_an_unrelated_history_is_a_reason(fleet: Fleet, branches: str, fits: Fits) -> None:
    fleet.git("switch", "-q", "--orphan", "foreign")
    fleet.commit({"apps/web.yaml": deployment("web", 1)}, hour=1)
    fleet.git("switch", "-q", "main")
    text = fits("foreign")[1]
    assert text.startswith("0 of 1 change fits on main")
    assert "there is no common ancestor with" in text


def test_plans_beyond_the_limit_are_not_made(branches: str, fits: Fits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged_changes, "MAX_PLANS", 2)
    code, found = fits("more-web", "more-site", "no-pay", "-o", "json")
    assert (code, found["plans"], found["complete"]) == (1, 2, False)
    text = fits("more-web", "more-site", "no-pay")[1]
    assert "Not every set was tried" in text
    assert "no-pay was not tried." in text


def test_of_many_branches_few_more_plans_are_made(fleet: Fleet, branches: str, fits: Fits, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine branches define the same object in nine files."""
    names = [f"new-{number}" for number in range(9)]
    for number, name in enumerate(names, 1):
        branch(fleet, name, {f"apps/{name}.yaml": deployment("new", number)})
    assert fits(*names, "-o", "json")[1]["plans"] > 12
    monkeypatch.setattr(merged_changes, "MAX_SEARCHED", 3)
    found = fits(*names, "-o", "json")[1]
    assert (found["plans"], found["sequence"], found["complete"]) == (12, [names[0]], False)


@pytest.fixture
def removals(fleet: Fleet, branches: str) -> list[str]:
    """Ten branches: four remove a workload each, of which the guard lets three go, and the last one defines a workload twice."""
    names = [f"drop-{name}" for name in ("web", "site", "cart", "pay")]
    for name in names:
        branch(fleet, name, {f"apps/{name[5:]}.yaml": None, f"policies/{name[5:]}.yaml": None})
    labels = [f"label-{number}" for number in range(5)]
    for name in labels:
        branch(fleet, name, {f"docs/{name}.md": name})
    return [*labels, *names, "second-pay"]


def test_of_many_branches_those_that_exceed_the_guard_together_are_named(removals: list[str], fits: Fits) -> None:
    found = fits(*removals, "-o", "json")[1]
    assert found["sequence"] == removals[:8]
    (conflict,) = found["conflicts"]
    assert conflict["changes"] == removals[5:9]
    (reason,) = conflict["reasons"]
    assert reason.endswith("[changes-withheld]")


def test_several_processes_say_what_one_says(removals: list[str], fits: Fits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged_changes, "MIN_WORKLOADS", 0)
    found = []
    for processes in (1, 2, 3):
        monkeypatch.setattr(merged_changes, "count_processes", lambda processes=processes: processes)
        found.append(fits(*removals, "-o", "json"))
    assert found[0] == found[1] == found[2]


def test_of_many_branches_that_fit_not_every_part_was_tried(fleet: Fleet, branches: str, fits: Fits) -> None:
    names = [f"label-{number}" for number in range(9)]
    for name in names:
        branch(fleet, name, {f"docs/{name}.md": name})
    code, text = fits(*names)
    assert code == 0
    assert "a part of these changes may not fit without the others." in text


def test_of_many_branches_plans_decide_a_limited_number_of_workloads(
    removals: list[str], fits: Fits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merged_changes, "MAX_DECIDED", 1)
    text = fits(*removals)[1]
    assert "drop-pay was not tried after the others." in text
    assert "second-pay does not fit:" in text
    assert "Not every set was tried" in text


def test_reasons_and_conflicts_are_limited(fleet: Fleet, branches: str, fits: Fits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged_changes, "MAX_REASONS", 1)
    monkeypatch.setattr(ancestry, "MAX_CONFLICTS", 1)
    for name, number in (("one", 5), ("two", 6)):
        branch(fleet, name, {f"apps/{app}.yaml": deployment(app, number) for app in ("site", "web")})
    branch(fleet, "three", {"apps/second.yaml": deployment("pay", 3), "apps/third.yaml": deployment("cart", 3)})
    found = fits("one", "two", "three", "-o", "json")[1]
    assert [len(conflict["files"]) for conflict in found["conflicts"]] == [1]
    assert len(found["changes"][2]["alone"]["reasons"]) == 1


def test_a_broken_branch_does_not_keep_others_out(fleet: Fleet, branches: str, fits: Fits) -> None:
    branch(fleet, "broken", {"policies/web.yaml": "kind: [\n", "apps/web.yaml": "\0\0"})
    code, text = fits("broken", "more-site", "no-pay")
    assert code == 1
    assert "2 of 3 changes fit together" in text
    assert "\nbroken does not fit:\n" in text


@pytest.mark.parametrize("path", ["apps/web.yaml", "apps/huge.yaml", ".sourceignore", "apps/kustomization.yaml"])
def test_a_file_that_is_too_large_is_not_read(
    fleet: Fleet, branches: str, fits: Fits, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(ancestry, "MAX_MERGED_SIZE", DEFAULT_LIMITS.size)
    sizes: list[int] = []
    read = Repository._read_object

    def measure(repository: Repository, oid: str, kind: int) -> bytes:
        data = read(repository, oid, kind)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(Repository, "_read_object", measure)
    branch(fleet, "huge", {path: "a: b\n" * DEFAULT_LIMITS.size})
    found = fits("huge", "more-web", "-o", "json")[1]
    assert found["sequence"] == ["more-web"]
    assert 0 < max(sizes) < DEFAULT_LIMITS.size


@pytest.mark.long
def test_a_hostile_branch_costs_little_and_keeps_no_other_out(fleet: Fleet, branches: str, fits: Fits) -> None:
    """Its tree has a million million files, a link out of the repository, a file that is no YAML, and directories without an end."""
    repository = fleet.repository
    blob, builder = repository.create_blob(b"{" * 1_000_000), repository.TreeBuilder()
    for number in range(10):
        builder.insert(f"{number}.yaml", blob, pygit2.enums.FileMode.BLOB)
    tree = builder.write()
    for level in range(60):
        builder = repository.TreeBuilder()
        for number in range(10 if level < 12 else 1):
            builder.insert(str(number), tree, pygit2.enums.FileMode.TREE)
        tree = builder.write()
    link = repository.create_blob(b"../../../../etc/passwd")
    nobody = pygit2.Signature("A", "a@example.com", 0, 0)
    main_branch = repository.branches["main"].peel(pygit2.Commit)
    for name in ("bomb", "bomb-too"):
        builder = repository.TreeBuilder(main_branch.tree)
        builder.insert("bomb", tree, pygit2.enums.FileMode.TREE)
        builder.insert(f"{name}.yaml", link, pygit2.enums.FileMode.LINK)
        repository.create_commit(f"refs/heads/{name}", nobody, nobody, name, builder.write(), [main_branch.id])
    found = fits("bomb", "more-web", "bomb-too", "more-site", "-o", "json")[1]
    assert found["sequence"] == ["more-web", "more-site"]
    for change in (found["changes"][0], found["changes"][2]):
        assert not change["alone"]["fits"]
        assert "entries" in change["alone"]["reasons"][0]
