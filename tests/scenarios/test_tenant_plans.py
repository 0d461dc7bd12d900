"""With Tenants and adopted objects, what only looks starts from the state of the last run, too, and says what complete plans say."""

from __future__ import annotations

import inspect
from pathlib import Path
from random import Random

import pytest

from gitsched.apis import capabilities
from gitsched.apis.karmada.engine import KarmadaEngine
from gitsched.apis.snapshot import EMPTY_SNAPSHOT
from gitsched.apis.topology import CLUSTER
from gitsched.decide.tenants.tenant_engines import make_tenant_engine
from gitsched.model.simulation import FailureDomain
from gitsched.reconcile import Reconciler, source_plan
from gitsched.reconcile.adoption.running_fleet import AdoptionInputs, adopt
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.run_settings import RunSettings
from gitsched.simulate.scenario import Scenario
from tests.scenarios.conftest import Fleet
from tests.scenarios.plain_histories import CLUSTER as DOCUMENT
from tests.scenarios.plain_histories import DEPLOYMENT, PlainHistory, write_policy
from tests.scenarios.tenant_histories import NAMESPACE, OWN_POLICY, TENANT, TenantHistory
from tests.scenarios.test_incremental_comparison import write_reports
from tests.scenarios.test_incremental_plan import ThreeVariants
from tests.scenarios.test_planned_workloads import explain, show, simulate

pytestmark = pytest.mark.usefixtures("bugs_are_raised")


def test_the_engine_of_all_owners_can_do_what_theirs_can() -> None:
    own = KarmadaEngine(EMPTY_SNAPSHOT)
    made = make_tenant_engine("karmada", {"": own})
    protocols = [one for _, one in inspect.getmembers(capabilities, inspect.isclass) if getattr(one, "_is_runtime_protocol", False)]
    assert len(protocols) > 10
    lacking = [one for one in protocols if isinstance(own, one) and not isinstance(made, one)]
    assert lacking == [capabilities.PolicyReading], "plans of sources with tenants share no decisions"


@pytest.mark.parametrize("adopts", [False, True], ids=["tenants", "adopted"])
def test_sources_are_planned_explained_and_simulated_from_the_state(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adopts: bool
) -> None:
    history = (PlainHistory if adopts else TenantHistory)(Random(3), lenient=True)
    base, path = fleet.commit(history.files), min(path for path in history.files if path.startswith("blue/app"))
    if adopts:
        running = tmp_path / "running" / "ber"
        running.mkdir(parents=True)
        (running / "app.yaml").write_text(str(history.files[path]))
        adopt(fleet.settings(0), AdoptionInputs(directories=(running.parent,)))
        assert fleet.load("gitsched.json", "placements")["adopted"]
    fleet.reconcile()
    fleet.reconcile()
    heads = [fleet.commit(history.go_on(kind), hour=0.1) for kind in ("policy" if adopts else "own policy", "edit")]
    known, scenario = fleet.settings(0.2, trusted=False), Scenario(lose=(FailureDomain(CLUSTER, "ams"),))
    whole, name = known._replace(cache=tmp_path / "none"), Path(path).stem

    def query(settings: RunSettings) -> list[object]:
        explained = explain(settings, "deployment", name, "blue", why_not=())
        return [explained, simulate(settings, scenario), show(settings, "ams")]

    expected = [write_reports(compare_plans(whole._replace(revision=head), base, complete=True)) for head in heads]
    answers = query(whole)
    monkeypatch.setattr(source_plan, "_plan_source", None)
    assert [write_reports(compare_plans(known._replace(revision=head), base)) for head in heads] == expected
    assert query(known) == answers


NARROW = TENANT % (*("blue",) * 6, "  clusters: {names: [ams, bru]}\n")


CHANGED_RULES = (
    ("[ams, bru]", "[ams, bru, cph]"),
    ("[ams, bru, cph]", "[bru, cph]"),
    ("  clusters:", "  limits: {replicas: 20}\n  clusters:"),
)


def test_a_move_out_of_a_forbidden_cluster_is_reported_once(fleet: Fleet, tmp_path: Path) -> None:
    variants = ThreeVariants(fleet, tmp_path)
    files = {f"{name}.yaml": DOCUMENT % (name, "east", 1, "") for name in ("ams", "bru")}
    files |= {"policy.yaml": write_policy("one", "east", "Divided"), "tenant.yaml": NARROW}
    files["blue/web.yaml"] = DEPLOYMENT % {"name": "web", "team": "blue", "lane": "one", "number": 4, "more": ""}
    fleet.commit(files)
    variants.run(0, "first")
    fleet.commit({"tenant.yaml": NARROW.replace(", bru", "")}, hour=1)
    moves = [list(map(str, variants.run(hour, "narrower")[0].plan.moves)) for hour in (1, 1, 2)]
    assert list(map(len, moves)) == [1, 0, 0]
    fleet.commit({"blue/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map, namespace: blue}\n"}, hour=3)
    (resident, _) = variants.run(3, "another object")
    assert (resident.plan.complete, list(resident.plan.moves)) == (False, [])
    assert {finding.code for finding in resident.plan.findings} >= {"cluster-gone"}


def test_a_finding_names_the_line_to_which_a_rule_has_moved(fleet: Fleet, tmp_path: Path) -> None:
    variants = ThreeVariants(fleet, tmp_path)
    other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map, namespace: green}\n"
    fleet.commit({"tenant.yaml": NARROW, "blue/map.yaml": other, "ams.yaml": DOCUMENT % ("ams", "east", 1, "")})
    lines = []
    for step in range(3):
        for result in variants.run(step, f"step {step}"):
            (refused,) = (finding.message for finding in result.plan.findings if finding.code == "tenant-namespace")
            lines.append(int(refused.partition("tenant.yaml:")[2].partition(":")[0]))
        fleet.commit({"tenant.yaml": "# moved\n" * (step + 1) + NARROW}, hour=step + 1)
    assert lines == [lines[0] + step for step in (0, 0, 1, 1, 2, 2)]


def test_a_service_decides_again_what_a_tenant_allows_in_addition(fleet: Fleet, tmp_path: Path) -> None:
    files = {f"{name}.yaml": DOCUMENT % (name, "east", 1, "") for name in ("ams", "bru", "cph")}
    files |= {"tenant.yaml": NARROW, "blue/own.yaml": OWN_POLICY % ("own", "blue", "one", "ams, cph", "Duplicated")}
    files["blue/web.yaml"] = DEPLOYMENT % {"name": "web", "team": "blue", "lane": "one", "number": 4, "more": ""}
    fleet.commit(files)
    session = Reconciler(fleet.settings(0, cache=tmp_path / "service"))
    session.run(fleet.settings(0).now)
    fleet.commit({"tenant.yaml": NARROW.replace("bru", "cph")}, hour=1)
    runs = [session.run(fleet.settings(1).now) for _ in range(2)]
    assert [(run.plan.complete, len(run.plan.moves)) for run in runs] == [(True, 0), (True, 1)]


def test_changed_rules_are_planned_from_the_state(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variants = ThreeVariants(fleet, tmp_path)
    files = {f"{name}.yaml": DOCUMENT % (name, "east", 1, "") for name in ("ams", "bru", "cph")}
    files |= {
        "policy.yaml": write_policy("one", "east", "Duplicated"),
        "tenant.yaml": NARROW,
        "blue/space.yaml": NAMESPACE % ("blue", 1),
    }
    named = {"team": "blue", "lane": "one", "number": 4, "more": ""}
    files["blue/web.yaml"] = DEPLOYMENT % {"name": "web", **named}
    files["shared.yaml"] = DEPLOYMENT % {"name": "agent", **named}
    fleet.commit(files)
    variants.run(0, "first")
    found = []
    for step, (old, new) in enumerate(CHANGED_RULES, 1):
        files["tenant.yaml"] = str(files["tenant.yaml"]).replace(old, new)
        fleet.commit({"tenant.yaml": files["tenant.yaml"]}, hour=step)
        runs = [variants.run(step, new)[0] for _ in range(2)]
        found.append(("".join("c" if run.plan.complete else "i" for run in runs), [len(run.plan.moves) for run in runs]))
    assert found == [("ii", [0, 1]), ("ii", [1, 0]), ("ii", [0, 0])]
    head = fleet.commit({"tenant.yaml": str(files["tenant.yaml"]).replace("[bru, cph]", "[ams, bru, cph]")}, hour=9)
    known = fleet.settings(9, trusted=False, cache=tmp_path / "restarted", output_branch="restarted", revision=head)
    expected = write_reports(compare_plans(known._replace(cache=tmp_path / "none"), "main~1", complete=True))
    monkeypatch.setattr(source_plan, "plan_source", None)
    assert write_reports(compare_plans(known, "main~1")) == expected
    assert "tenant-changed" in expected["text"]


LANE = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: %s, namespace: blue}
spec:
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {lane: %s}}}
  placement: {clusterAffinity: {clusterNames: [ams]}}
"""


def test_the_policies_of_a_tenant_select_otherwise_where_labels_change(fleet: Fleet, tmp_path: Path) -> None:
    """All ways of one plan say the same of policies that select nothing."""
    variants = ThreeVariants(fleet, tmp_path)
    files = {f"{name}.yaml": DOCUMENT % (name, "east", 1, "") for name in ("ams", "bru")}
    files |= {f"blue/{lane}.yaml": LANE % (lane, lane) for lane in ("one", "two")}
    web = {"name": "web", "team": "blue", "lane": "one", "number": 4, "more": ""}
    fleet.commit({**files, "tenant.yaml": NARROW, "blue/web.yaml": DEPLOYMENT % web})
    for hour, lane in enumerate(("one", "two")):
        fleet.commit({"blue/web.yaml": DEPLOYMENT % {**web, "lane": lane}}, hour=hour)
        for result in variants.run(hour, lane):
            assert result.plan.complete == (hour == 0)
            found = [one.resource for one in result.plan.findings if one.code == "karmada-selects-nothing"]
            assert found == [("PropagationPolicy", "blue", "two" if lane == "one" else "one")]
