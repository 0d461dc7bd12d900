"""Autoscalers own replicas: manifests keep those of the source, bindings have the divided ones, and limits are divided on request."""

from __future__ import annotations

from textwrap import dedent

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gitsched.apis.karmada.autoscalers import _divide
from gitsched.reconcile import Reconciler

from .conftest import Fleet, cluster, policy

WEB = """\
# The shop's front.
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  # The autoscaler sets the replicas.
  selector: {matchLabels: {app: web}}
"""
HPA = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: default}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 3  # by experience
  maxReplicas: 10
"""
SCALED_OBJECT = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web, namespace: default}
spec:
  scaleTargetRef: {name: web}
  triggers: []
"""
VPA = """\
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web, namespace: default}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
"""
SETTINGS = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec:
  karmada: {autoscalerLimits: divide}
"""


def selects(version: str, kind: str, scheduling: str = "Duplicated") -> str:
    return dedent(f"""\
        apiVersion: policy.karmada.io/v1alpha1
        kind: PropagationPolicy
        metadata: {{name: {kind.lower()}, namespace: default}}
        spec:
          resourceSelectors: [{{apiVersion: {version}, kind: {kind}}}]
          placement:
            replicaScheduling: {{replicaSchedulingType: {scheduling}, replicaDivisionPreference: Weighted}}
        """)


BASE = {
    "clusters.yaml": cluster("ash") + "---\n" + cluster("bru"),
    "policies.yaml": "---\n".join(
        (
            selects("apps/v1", "Deployment", "Divided"),
            selects("autoscaling/v2", "HorizontalPodAutoscaler"),
            selects("keda.sh/v1alpha1", "ScaledObject"),
        )
    ),
}
FOUR = WEB.replace("spec:\n", "spec:\n  replicas: 4\n")
WEB_PATH = "clusters/{}/default/deployment-web.yaml"
HPA_PATH = "clusters/{}/default/horizontalpodautoscaler.autoscaling-web.yaml"


def bound(fleet: Fleet) -> dict[str, int]:
    return {entry["name"]: entry["replicas"] for entry in fleet.binding("web-deployment")["spec"]["clusters"]}


@pytest.mark.parametrize("autoscaler", [HPA, SCALED_OBJECT], ids=["HorizontalPodAutoscaler", "ScaledObject"])
@pytest.mark.parametrize("workload", [WEB, FOUR], ids=["without replicas", "with replicas"])
def test_the_target_of_an_autoscaler_keeps_the_bytes_of_its_source(fleet: Fleet, autoscaler: str, workload: str) -> None:
    fleet.commit({**BASE, "web.yaml": workload, "scaler.yaml": autoscaler})
    run = fleet.reconcile()
    for name in fleet.where("default/deployment-web"):
        assert fleet.read(WEB_PATH.format(name)) == workload
    found = [finding for finding in run.plan.findings if finding.code == "scaled-per-cluster"]
    if workload is WEB:
        assert (bound(fleet), found) == ({"ash": 1}, [])
        return
    assert bound(fleet) == {"ash": 2, "bru": 2}, "records are those of Karmada"
    (finding,) = found
    limits = "3 to 10" if autoscaler is HPA else "0 to 100"
    assert (finding.severity, finding.location and finding.location.path) == ("warning", "web.yaml")
    assert "(ash 2, bru 2), but its manifests keep spec.replicas as in the source (4)" in finding.message
    assert f"sets {limits} replicas in each; to divide these limits, set spec.karmada.autoscalerLimits: divide" in finding.message


@pytest.mark.parametrize(
    ("label", "owner", "expected"),
    [
        pytest.param('"true"', "", "as written", id="the label keeps replicas without an autoscaler"),
        pytest.param('"false"', HPA, "divided", id="the label divides replicas although an autoscaler exists"),
        pytest.param('"yes"', "", "divided", id="Karmada knows only true"),
        pytest.param("", VPA, "divided", id="a VerticalPodAutoscaler sets no replicas"),
        pytest.param("", HPA.replace("name: web}", "name: api}"), "divided", id="an autoscaler of another workload"),
        pytest.param("", HPA.replace("kind: Deployment", "kind: StatefulSet"), "divided", id="an autoscaler of another kind"),
        pytest.param("", HPA.replace("namespace: default", "namespace: shop"), "divided", id="an autoscaler of another namespace"),
        pytest.param("", HPA.replace("autoscaling/v2", "autoscaling/v1"), "as written", id="an older version"),
    ],
)
def test_who_owns_the_replicas(fleet: Fleet, label: str, owner: str, expected: str) -> None:
    labels = f", labels: {{resourcetemplate.karmada.io/retain-replicas: {label}}}}}" if label else "}"
    workload = FOUR.replace("namespace: default}", f"namespace: default{labels}")
    fleet.commit({**BASE, "web.yaml": workload, **({"scaler.yaml": owner} if owner else {})})
    run = fleet.reconcile()
    kept = workload if expected == "as written" else workload.replace("replicas: 4", "replicas: 2")
    assert {fleet.read(WEB_PATH.format(name)) for name in ("ash", "bru")} == {kept}
    codes = [(finding.code, finding.severity) for finding in run.plan.findings if finding.code == "scaled-per-cluster"]
    severity = "warning" if owner else "info"
    assert codes == ([("scaled-per-cluster", severity)] if expected == "as written" else [])


def test_an_autoscaler_that_no_policy_selects_scales_nothing(fleet: Fleet) -> None:
    only_web = selects("apps/v1", "Deployment", "Divided")
    fleet.commit({**BASE, "policies.yaml": only_web, "web.yaml": FOUR, "scaler.yaml": HPA})
    for policies, text in ((only_web, ", which no policy selects: each cluster runs 4; "), (BASE["policies.yaml"], "sets 3 to 10")):
        fleet.commit({"policies.yaml": policies})
        found = [finding.message for finding in fleet.reconcile().plan.findings if finding.code == "scaled-per-cluster"]
        assert [text in message for message in found] == [True], found
        assert ("each cluster scales by itself" in found[0]) == (policies != only_web)


def test_a_workload_without_an_owner_gets_its_replicas_in_one_new_line(fleet: Fleet) -> None:
    fleet.commit({**BASE, "web.yaml": WEB})
    fleet.reconcile()
    assert fleet.read(WEB_PATH.format("ash")) == WEB.replace("spec:\n", "spec:\n  replicas: 1\n")


def test_full_copies_scale_on_their_own_without_a_finding(fleet: Fleet) -> None:
    files = {**BASE, "policies.yaml": policy("", name="all"), "web.yaml": FOUR, "scaler.yaml": HPA}
    fleet.commit(files)
    assert "scaled-per-cluster" not in [finding.code for finding in fleet.reconcile().plan.findings]


@pytest.mark.parametrize("by", ["setting", "annotation"])
def test_limits_are_divided_in_proportion_on_request(fleet: Fleet, by: str) -> None:
    policies = BASE["policies.yaml"].replace(
        "Divided, replicaDivisionPreference: Weighted}",
        "Divided, replicaDivisionPreference: Weighted, weightPreference: {staticWeightList: ["
        "{targetCluster: {clusterNames: [ash]}, weight: 3}, {targetCluster: {clusterNames: [bru]}, weight: 1}]}}",
    )
    scaler = (
        HPA
        if by == "setting"
        else HPA.replace("{name: web,", "{annotations: {gitsched.io/autoscaler-limits: divide}, name: web,", 1)
    )
    more = {"gitsched.yaml": SETTINGS} if by == "setting" else {}
    fleet.commit({**BASE, "policies.yaml": policies, "web.yaml": FOUR, "scaler.yaml": scaler, **more})
    run = fleet.reconcile()
    assert bound(fleet) == {"ash": 3, "bru": 1}
    assert "scaled-per-cluster" not in [finding.code for finding in run.plan.findings]
    edited = {name: fleet.read(HPA_PATH.format(name)) for name in ("ash", "bru")}
    assert edited == {
        "ash": scaler.replace("minReplicas: 3", "minReplicas: 2").replace("maxReplicas: 10", "maxReplicas: 7"),
        "bru": scaler.replace("minReplicas: 3", "minReplicas: 1").replace("maxReplicas: 10", "maxReplicas: 3"),
    }


def test_the_default_maximum_of_a_scaled_object_is_divided(fleet: Fleet) -> None:
    fleet.commit({**BASE, "web.yaml": FOUR, "scaler.yaml": SCALED_OBJECT, "gitsched.yaml": SETTINGS})
    fleet.reconcile()
    path = "clusters/ash/default/scaledobject.keda.sh-web.yaml"
    assert fleet.read(path) == SCALED_OBJECT.replace("spec:\n", "spec:\n  maxReplicaCount: 50\n")


def test_the_annotation_takes_precedence_over_the_setting(fleet: Fleet) -> None:
    scaler = HPA.replace("{name: web,", "{annotations: {gitsched.io/autoscaler-limits: keep}, name: web,", 1)
    fleet.commit({**BASE, "web.yaml": FOUR, "scaler.yaml": scaler, "gitsched.yaml": SETTINGS})
    run = fleet.reconcile()
    assert fleet.read(HPA_PATH.format("ash")) == scaler
    assert "scaled-per-cluster" in [finding.code for finding in run.plan.findings]


def test_an_override_of_a_limit_takes_precedence_over_its_part(fleet: Fleet) -> None:
    override = dedent("""\
        apiVersion: policy.karmada.io/v1alpha1
        kind: OverridePolicy
        metadata: {name: big, namespace: default}
        spec:
          resourceSelectors: [{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler}]
          overrideRules:
          - targetCluster: {clusterNames: [ash]}
            overriders: {plaintext: [{path: /spec/maxReplicas, operator: replace, value: 9}]}
        """)
    fleet.commit({**BASE, "web.yaml": FOUR, "scaler.yaml": HPA, "gitsched.yaml": SETTINGS, "override.yaml": override})
    fleet.reconcile()
    limits = {name: yaml.safe_load(fleet.read(HPA_PATH.format(name)))["spec"] for name in ("ash", "bru")}
    assert {name: (spec["minReplicas"], spec["maxReplicas"]) for name, spec in limits.items()} == {"ash": (2, 9), "bru": (1, 5)}


def test_a_changed_autoscaler_or_target_updates_the_other(fleet: Fleet) -> None:
    """In one process, with incremental plans, as with complete ones."""
    filler = {f"apps/{n}.yaml": FOUR.replace("name: web", f"name: w{n}").replace("app: web", f"app: w{n}") for n in range(8)}
    fleet.commit({**BASE, **filler, "web.yaml": FOUR, "scaler.yaml": HPA, "gitsched.yaml": SETTINGS})
    resident = Reconciler(fleet.settings(0, output_branch="resident"))
    resident.run(fleet.settings(0).now)
    fleet.reconcile(0, cache=fleet.cache.parent / "none-0")
    other = HPA.replace("kind: Deployment, name: web", "kind: Deployment, name: w1")
    commits = (
        {"web.yaml": FOUR.replace("replicas: 4", "replicas: 6")},
        {"scaler.yaml": HPA.replace("maxReplicas: 10", "maxReplicas: 7")},
        {"scaler.yaml": other},
        {"web.yaml": FOUR},
        {"scaler.yaml": HPA},
    )
    for hour, files in enumerate(commits, start=1):
        fleet.commit(files, hour=hour)
        resident.settings = fleet.settings(hour, output_branch="resident")
        run = resident.run(resident.settings.now)
        fleet.reconcile(hour, cache=fleet.cache.parent / f"none-{hour}")
        ours, theirs = fleet.files("resident"), fleet.files()
        assert {path for path in ours if ours[path] != theirs[path]} <= {"gitsched.json", "hydrator.metadata", "README.md"}
        assert ours.keys() == theirs.keys()
        assert not run.plan.complete, hour
    assert "maxReplicas: 5" in fleet.read(HPA_PATH.format("ash"), "resident")


@given(st.integers(0, 1000), st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_parts_are_at_least_one_and_add_up(total: int, votes: list[int]) -> None:
    parts = _divide(total, votes)
    assert min(parts) >= min(total, 1)
    assert sum(parts) == (max(total, len(votes)) if total else 0)


def test_an_autoscaler_in_another_bundle_counts_with_its_minimum(fleet: Fleet) -> None:
    bundles = "".join(
        f"---\napiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {{name: {name}}}\nspec: {{path: {name}}}\n"
        for name in ("web", "scaler")
    )
    files = {"web/web.yaml": FOUR, "scaler/hpa.yaml": HPA, "bundles.yaml": bundles, "cluster.yaml": cluster("ash")}
    fleet.commit({**files, "policy.yaml": policy("ash", kind="Bundle").replace("apps/v1", "gitsched.io/v1alpha1")})
    for hour, text in enumerate((FOUR, FOUR.replace("replicas: 4", "replicas: 6"))):
        fleet.commit({"web/web.yaml": text}, hour=hour)
        moves = {move.key.name: move for move in fleet.reconcile(hour).plan.moves}
        if hour:
            assert moves == {}, "the autoscaler sets the replicas"
        else:
            assert str(moves["web"].after["ash"]) == "3+"
    assert fleet.binding("web-bundle")["spec"]["clusters"] == [{"name": "ash", "replicas": 6}]
