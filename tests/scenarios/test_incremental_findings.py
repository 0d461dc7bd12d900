"""An incremental plan has the findings of a complete one, also about objects that did not change."""

from __future__ import annotations

from pathlib import Path

from tests.scenarios.conftest import Fleet
from tests.scenarios.histories import PLACEMENT
from tests.scenarios.test_incremental_plan import ThreeVariants
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
