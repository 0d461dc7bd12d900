"""Overlays that nothing builds: a plan, a run and a status say so, and that a new cluster gets nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.reconcile.incremental import new_state
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.report.fleet_status import write_fleet_status
from gitsched.report.review import Review
from gitsched.report.summary import format_headline, list_summary_rows
from tests.scenarios.conftest import Fleet, cluster, deployment, policy

pytestmark = [pytest.mark.usefixtures("bugs_are_raised"), pytest.mark.needs("kubectl")]

OVERLAY = "namespace: %s\nresources: [../../base]\n"
BUNDLE = (
    "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: api, namespace: default}\n"
    "spec: {variants: [{path: apps/api/overlays/eu, clusters: {names: [eu]}}]}\n"
)
CONFIG = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {source: {kustomize: {ignore: [%s]}}}\n"


def write_app(name: str, *overlays: str) -> dict[str, str]:
    """Return a base with a Deployment and a ConfigMap, and its overlays."""
    base = f"apps/{name}/base"
    return {
        f"{base}/web.yaml": deployment(name),
        f"{base}/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n",
        f"{base}/kustomization.yaml": "resources: [web.yaml, settings.yaml]\n",
        **write_overlays(name, *overlays),
    }


def write_overlays(name: str, *overlays: str) -> dict[str, str]:
    return {f"apps/{name}/overlays/{one}/kustomization.yaml": OVERLAY % name for one in overlays}


@pytest.fixture(params=["complete", "incremental"])
def compared(fleet: Fleet, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """A reconciled fleet, whose comparisons are made completely, or from the state of the last run."""
    monkeypatch.setattr(new_state, "MIN_WORKLOADS", 0)
    placed = policy("eu", kind="Bundle").replace("apps/v1", "gitsched.io/v1alpha1")
    fleet.commit({**write_app("api", "eu"), "bundles.yaml": BUNDLE, "all.yaml": placed, "clusters/eu.yaml": cluster("eu")})
    fleet.reconcile()
    fleet.complete = request.param == "complete"  # type: ignore[attr-defined]
    return fleet


def review(fleet: Fleet, files: dict[str, str | None]) -> Review:
    fleet.git("checkout", "-q", "-B", "change")
    fleet.commit(files, hour=1)
    complete = getattr(fleet, "complete", True)
    found = compare_plans(fleet.settings(1, revision="HEAD"), "main", complete=complete)
    assert found.run.plan.complete or not complete
    return found.review


def list_new(found: Review) -> list[str]:
    return [f"{one.location}: {one.code}: {one.message}" for one in found.new_findings if one.severity == "warning"]


NO_BUILD = (
    "Deployment default/pay is selected by no policy, so that it runs in no cluster: kustomize changes it, and nothing builds the result: "
    "apps/pay/overlays/eu/kustomization.yaml (namespace pay), apps/pay/overlays/us/kustomization.yaml (namespace pay); place the overlay "
    "with a Bundle (spec.path), or name it in source.kustomize.build"
)


def test_a_new_application_whose_overlays_nothing_builds_is_no_plan_without_changes(compared: Fleet) -> None:
    found = review(compared, {**write_app("pay", "eu", "us")})
    assert format_headline(found) == "No workload moves, 1 new object is selected by no policy"
    assert list_new(found) == [f"apps/pay/base/web.yaml:1:1: kustomize-unbuilt: {NO_BUILD}"]
    compared.git("checkout", "-q", "main")
    compared.git("merge", "-q", "change")
    run = compared.reconcile(1)
    assert NO_BUILD in [finding.message for finding in run.plan.findings]
    compared.commit({"note.yaml": "# a comment\n"}, hour=2)
    assert NO_BUILD in [finding.message for finding in compared.reconcile(2).plan.findings], "from the state of the last run"
    status = read_fleet_status(compared.settings(2))
    assert list(status.list_problems()) == ["1 workload is changed by kustomizations that nothing builds"]
    assert NO_BUILD in write_fleet_status(status, 200, unclaimed=True)
    assert NO_BUILD not in write_fleet_status(status, 200, unclaimed=True, namespace="shop")


def test_an_application_without_pods_or_with_a_bundle_is_not_named(compared: Fleet) -> None:
    files = {name: text for name, text in write_app("pay", "eu").items() if not name.endswith("web.yaml")}
    files["apps/pay/base/kustomization.yaml"] = "resources: [settings.yaml]\n"
    bundle = BUNDLE.replace("name: api", "name: shop").replace("apps/api", "apps/shop")
    assert list_new(review(compared, {**files, **write_app("shop", "eu"), "shop.yaml": bundle})) == []


def test_a_new_cluster_and_its_overlay_that_no_bundle_names_are_reported(compared: Fleet) -> None:
    found = review(compared, {**write_overlays("api", "ap"), "clusters/ap.yaml": cluster("ap")})
    assert format_headline(found) == "No workload moves, new cluster ap gets nothing"
    assert list_new(found) == [
        "apps/api/overlays/ap/kustomization.yaml:1:1: overlay-unused: no cluster gets what apps/api/overlays/ap builds of Deployment "
        "default/api, because nothing builds this overlay: add a variant with this path to Bundle default/api (spec.variants), or name "
        "the overlay in source.kustomize.ignore"
    ]
    assert [row.after for row in list_summary_rows(found) if row.name.startswith("clusters added")] == ["ap (gets nothing)"]


def test_a_new_cluster_that_gets_something_is_not_empty(compared: Fleet) -> None:
    variant = BUNDLE.replace("names: [eu]", "names: [ap, eu]")
    placed = policy("ap", "eu", kind="Bundle").replace("apps/v1", "gitsched.io/v1alpha1")
    found = review(compared, {"bundles.yaml": variant, "all.yaml": placed, "clusters/ap.yaml": cluster("ap")})
    assert found.comparison.added_clusters == ["ap"]
    assert found.comparison.empty_clusters == []


def test_an_overlay_that_settings_ignore_or_another_one_includes_is_used(fleet: Fleet, tmp_path: Path) -> None:
    files = {**write_app("api", "eu", "us"), "bundles.yaml": BUNDLE, "clusters/eu.yaml": cluster("eu")}
    fleet.commit({**files, "gitsched.yaml": CONFIG % "apps/api/overlays/us"})
    assert not [one for one in fleet.preview().plan.findings if one.code == "overlay-unused"]
    outer = {"apps/api/outer/kustomization.yaml": "resources: [../overlays/us]\nnameSuffix: -2\n", "gitsched.yaml": CONFIG % ""}
    fleet.commit(outer, hour=1)
    (finding,) = [one for one in fleet.preview(1).plan.findings if one.code == "overlay-unused"]
    assert str(finding.location) == "apps/api/outer/kustomization.yaml:1:1"


def test_an_overlay_beside_one_that_settings_build_is_named(fleet: Fleet) -> None:
    settings = CONFIG.replace("ignore", "build") % "apps/api/overlays/eu"
    fleet.commit({**write_app("api", "eu", "us"), "gitsched.yaml": settings, "clusters/eu.yaml": cluster("eu")})
    (finding,) = [one for one in fleet.preview().plan.findings if one.code == "overlay-unused"]
    assert "name it in source.variants or source.kustomize.build" in finding.message


def test_a_base_that_cannot_be_built_has_no_new_objects(compared: Fleet) -> None:
    found = review(compared, {"apps/api/base/kustomization.yaml": "resources: [wbe.yaml, settings.yaml]\n"})
    assert format_headline(found) == "apps/api/base/kustomization.yaml is invalid, no workload moves, only status records change"
    assert (found.moves, found.comparison.unplaced) == ((), ())
    compared.git("checkout", "-q", "main")
    compared.git("merge", "-q", "change")
    against_output = compare_plans(compared.settings(1), complete=getattr(compared, "complete", True)).review
    assert against_output.comparison.unplaced == ()
