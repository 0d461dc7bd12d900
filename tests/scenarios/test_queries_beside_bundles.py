"""What is asked about a fleet with Bundles is answered from the state of the last run, as a complete plan answers it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.apis.topology import CLUSTER
from gitsched.model.simulation import FailureDomain
from gitsched.reconcile import source_plan
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.run_settings import RunSettings
from gitsched.simulate.scenario import Scenario
from tests.scenarios.conftest import Fleet, cluster, deployment, policy
from tests.scenarios.test_incremental_comparison import write_html, write_reports
from tests.scenarios.test_planned_workloads import explain, show, simulate

pytestmark = pytest.mark.usefixtures("bugs_are_raised")

USER = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: user, namespace: default}
spec:
  template:
    metadata: {labels: {app: user}}
    spec: {containers: [{name: app, image: app, envFrom: [{configMapRef: {name: conf}}]}]}
"""
FILES = {
    "web/conf.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf, namespace: default}\n",
    "web/app.yaml": deployment("app"),
    "web.yaml": "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: web, namespace: default}\n"
    "spec: {variants: [{path: web, clusters: {names: [one]}}]}\n",
    "bundles.yaml": policy("one", name="bundles", kind="Bundle").replace("apps/v1", "gitsched.io/v1alpha1"),
    "policy.yaml": policy("one", "two"),
    "user.yaml": USER,
    **{f"{name}.yaml": cluster(name) for name in ("one", "two", "three")},
}


def test_explanations_simulations_and_reports_beside_bundles_start_from_the_last_run(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = fleet.commit(FILES)
    fleet.reconcile()
    head = fleet.commit({"user.yaml": USER.replace("spec:\n", "spec:\n  replicas: 3\n", 1)}, hour=0.1)
    settings = fleet.settings(0.1, trusted=False)

    def answer(settings: RunSettings) -> list[object]:
        asked = (("deployment", "user"), ("bundle", "web"), ("cluster", "three"))
        compared = compare_plans(settings._replace(revision=head), base, shows_fleet=True)
        return [
            *(explain(settings, *words, why_not=()) for words in asked),
            simulate(settings, Scenario(lose=(FailureDomain(CLUSTER, "one"),))),
            show(settings, "user"),
            write_reports(compared),
            write_html(compared),
        ]

    whole = answer(settings._replace(cache=tmp_path / "none"))
    assert not any(isinstance(one, str) for one in whole[:5])
    assert "part of Bundle" in str(whole[0])
    monkeypatch.setattr(source_plan, "_plan_source", None)
    assert answer(settings) == whole


def test_a_cluster_beside_a_bundle_that_stays_is_planned_from_the_last_run(fleet: Fleet, tmp_path: Path) -> None:
    fleet.commit(FILES)
    assert fleet.reconcile().plan.complete
    fleet.commit({"one.yaml": cluster("one", "a:PreferNoSchedule")}, hour=1)
    whole, result = fleet.preview(1, cache=tmp_path / "none"), fleet.reconcile(1)
    assert (whole.plan.complete, result.plan.complete) == (True, False)
    assert (result.tree, result.plan.findings) == (whole.tree, whole.plan.findings)
