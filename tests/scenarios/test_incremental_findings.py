"""An incremental plan has the findings of a complete one, also about objects that did not change."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.reconcile.run import make_review
from gitsched.report.text import write_run
from tests.scenarios.conftest import Fleet, cluster, deployment, policy
from tests.scenarios.histories import PLACEMENT
from tests.scenarios.test_incremental_plan import ReconcilerVariant, ThreeVariants
from tests.scenarios.test_rollouts import SETS, managed

MISSPELT = "{cluster.open-cluster-management.io/placements: everywhere}"
WEB = "apiVersion: %s\nkind: Deployment\nmetadata: {name: web, namespace: shop, annotations: %s}\nspec: {replicas: %d}\n"


def test_a_finding_about_an_annotation_does_not_depend_on_a_namesake_in_another_group(fleet: Fleet, tmp_path: Path) -> None:
    clusters = {f"managed/{name}.yaml": managed(name, "live") for name in ("ash", "bru")}
    new, old = WEB % ("apps/v1", MISSPELT, 1), WEB % ("apps.example.com/v1", MISSPELT, 1)
    variants = ThreeVariants(fleet, tmp_path)
    fleet.commit({**clusters, "sets.yaml": SETS, "placement.yaml": PLACEMENT % (1, 1), "new.yaml": new, "old.yaml": old})
    variants.run(0, "first")
    variants.run(0, "second")
    steps = (({"new.yaml": WEB % ("apps/v1", MISSPELT, 2)}, 2), ({"old.yaml": WEB % ("apps.example.com/v1", "{}", 1)}, 1))
    for hour, (changes, count) in enumerate(steps, 1):
        fleet.commit(changes, hour=hour)
        for run in variants.run(hour, f"hour {hour}"):
            assert not run.plan.complete
            assert [finding.code for finding in run.plan.findings].count("annotation-unread") == count


def test_many_files_that_git_does_not_have_are_one_finding_for_each_directory(fleet: Fleet) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 1\n"
    many = {f"vendor/{part}/{number}.yaml": pointer % number for part in "ab" for number in range(3)}
    fleet.commit({"one.yaml": pointer % 1, "apps/one.yaml": pointer % 2, "vendor.yaml": pointer % 3, **many})
    shown = [(str(finding.location), finding.message.partition("; ")[2]) for finding in fleet.reconcile().plan.findings]
    folded = ("vendor/a/0.yaml:1:1", "the same is true of other files below vendor/")
    assert shown == [("apps/one.yaml:1:1", ""), ("one.yaml:1:1", ""), ("vendor.yaml:1:1", ""), folded]
    fleet.commit({"vendor/b/1.yaml": None})
    assert (str(fleet.reconcile().plan.findings[-1].location), fleet.reconcile().plan.findings[-1].message[-24:]) == (
        folded[0],
        folded[1][-24:],
    )


def test_a_namespace_that_two_documents_define_differently_stays_as_it_was_delivered(fleet: Fleet, tmp_path: Path) -> None:
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {pod-security.kubernetes.io/enforce: %s}}\n"
    rules = policy("first").replace("kind: Propagation", "kind: ClusterPropagation").replace("  namespace: default\n", "")
    files = {f"clusters/{name}.yaml": cluster(name) for name in ("first", "second")}
    files |= {f"apps/{name}.yaml": namespace % (name, "restricted") for name in ("shop", "later")}
    variants = ThreeVariants(fleet, tmp_path)
    fleet.commit({**files, "policy.yaml": rules, "web.yaml": deployment("web", namespace="shop")})
    copies = {f"copy/{name}.yaml": namespace % (name, "privileged") for name in ("shop", "later")}
    steps = (
        ({}, [], ["restricted", ""]),
        ({"copy/later.yaml": copies["copy/later.yaml"]}, [], ["restricted", ""]),
        ({"copy/shop.yaml": copies["copy/shop.yaml"]}, ["shop"], ["restricted", ""]),
        ({"web.yaml": deployment("web", 3, namespace="shop")}, ["shop"], ["restricted", ""]),
        ({"policy.yaml": rules.replace("[first]", "[first, second]")}, ["shop"], ["restricted", "restricted"]),
        ({"copy/shop.yaml": None, "apps/shop.yaml": namespace % ("shop", "baseline")}, [], ["baseline", "baseline"]),
        ({"web.yaml": deployment("web", 4, namespace="shop")}, [], ["baseline", "baseline"]),
        ({"api.yaml": deployment("api", namespace="later")}, ["later"], ["baseline", "baseline"]),
    )
    for hour, (changes, names, levels) in enumerate(steps):
        fleet.commit(changes, hour=hour)
        for run in variants.run(hour, f"hour {hour}"):
            found = [one for one in run.plan.findings if one.code == "duplicate-identity"]
            assert [(one.severity, str(one.location)) for one in found] == [("error", f"apps/{name}.yaml:1:1") for name in names]
        tree = fleet.git("ls-tree", "-r", "--name-only", "resident")
        for name, level in zip(("first", "second"), levels, strict=True):
            path = f"clusters/{name}/_/namespace-shop.yaml"
            assert (path in tree.split()) == bool(level)
            assert not level or f"enforce: {level}" in fleet.git("show", f"resident:{path}")


def test_a_misspelled_label_of_a_cluster_comes_and_goes_with_it(fleet: Fleet, tmp_path: Path) -> None:
    labelled = cluster("first").replace("metadata:\n", "metadata:\n  labels: {region: eu}\n")
    chosen = policy("first").replace("clusterNames: [first]", "labelSelector: {matchLabels: {region: eu}}")
    variants = ThreeVariants(fleet, tmp_path)
    others = {f"clusters/{name}.yaml": labelled.replace("name: first", f"name: {name}") for name in ("second", "third")}
    fleet.commit({"clusters/first.yaml": labelled, **others, "policy.yaml": chosen, "web.yaml": deployment("web", 6)})
    variants.run(0, "first")
    for hour, (label, count) in enumerate((("regoin: eu", 1), ("region: eu", 0)), 1):
        fleet.commit({"clusters/first.yaml": labelled.replace("region: eu", label)}, hour=hour)
        for run in variants.run(hour, f"hour {hour}"):
            assert [finding.code for finding in run.plan.findings].count("cluster-label-misspelled") == count


def test_a_run_names_the_new_objects_that_no_policy_selects(fleet: Fleet, tmp_path: Path) -> None:
    variants = ThreeVariants(fleet, tmp_path)
    fleet.commit({"clusters/first.yaml": cluster("first"), "policy.yaml": policy("first"), "web.yaml": deployment("web", 2)})
    variants.run(0, "first")
    api = deployment("api", 2, namespace="billing")
    steps: tuple[tuple[dict[str, str | bytes | None], list[str]], ...] = (
        ({"api.yaml": api}, ["Deployment billing/api is selected by no policy, so that it runs in no cluster: ", " (api.yaml:5)"]),
        ({"web.yaml": deployment("web", 3)}, []),
        ({"api.yaml": None, "moved.yaml": api + "---\n" + deployment("web", 3), "web.yaml": None}, []),
        ({"policy.yaml": policy("first") + "---\n" + policy("first").replace("namespace: default", "namespace: billing")}, []),
    )
    for hour, (files, lines) in enumerate(steps, 1):
        fleet.commit(files, hour=hour)
        for run in variants.run(hour, f"hour {hour}"):
            text = write_run(make_review(run), 1_000)
            assert [line in text for line in lines] == [True] * len(lines), text
            assert ("is selected by no policy" in text) == bool(lines)


def test_machines_that_write_one_output_name_a_new_object_that_no_policy_selects_once(fleet: Fleet, tmp_path: Path) -> None:
    one, other = (ReconcilerVariant(fleet, "output", tmp_path / name) for name in ("one", "other"))
    steps: tuple[tuple[dict[str, str | bytes | None], ReconcilerVariant, list[str]], ...] = (
        ({"clusters/first.yaml": cluster("first"), "policy.yaml": policy("first"), "web.yaml": deployment("web", 2)}, one, []),
        ({"api.yaml": deployment("api", 2, namespace="billing")}, other, ["api"]),
        ({}, one, []),
        ({"cart.yaml": deployment("cart", 2, namespace="billing")}, other, ["cart"]),
        ({"docs.yaml": deployment("docs", 2, namespace="billing")}, one, ["docs"]),
    )
    for hour, (files, machine, names) in enumerate(steps):
        if files:
            fleet.commit(files, hour=hour)
        run = machine.run(hour, fresh=True)
        assert [found.key.name for found in run.unselected] == names, hour
        assert run.plan.complete == (hour < 2)


UNUSED = {
    "an invalid label": {
        f"apps/web-{number}.yaml": deployment(f"web-{number}").replace("  namespace", "  labels: {old: yes}\n  namespace", 1)
        for number in range(6)
    },
    "an object with two documents": {"apps/one.yaml": deployment("web", 1), "apps/two.yaml": deployment("web", 2)},
}


@pytest.mark.parametrize("name", UNUSED)
def test_selectors_match_documents_that_stay_invalid_as_in_a_complete_plan(fleet: Fleet, tmp_path: Path, name: str) -> None:
    variants = ThreeVariants(fleet, tmp_path)
    fleet.commit({**UNUSED[name], "clusters/one.yaml": cluster("one"), "policy.yaml": policy("")})
    variants.run(0, "first")
    steps: list[tuple[dict[str, str], bool]] = [
        ({"clusters/two.yaml": cluster("two")}, name == "an invalid label"),
        ({"policy.yaml": policy("one")}, False),
        ({"conf.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf, namespace: default}\n"}, False),
        ({next(iter(UNUSED[name])): deployment("web")}, False),
    ]
    for hour, (changes, is_incremental) in enumerate(steps, 1):
        fleet.commit(changes, hour=hour)
        runs = variants.run(hour, f"hour {hour}")
        assert not is_incremental or not any(run.plan.complete for run in runs)
