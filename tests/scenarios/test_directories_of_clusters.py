"""Objects that the directories of clusters define differently: a plan names them, and nothing says that the source lacks them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.model.explanation import Explanation
from gitsched.reconcile import validate_source
from gitsched.reconcile.adoption.running_fleet import AdoptionInputs, adopt
from gitsched.reconcile.adoption.running_objects import ClusterInput
from gitsched.reconcile.incremental import new_state
from gitsched.reconcile.review.explanation import explain_resource
from tests.scenarios.conftest import Fleet, cluster, deployment, policy

pytestmark = pytest.mark.usefixtures("bugs_are_raised")

SERVICE = (
    "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"
)
BOTH = ("fra-1", "ash-1")


def write_clusters(*, replicas: tuple[int, int] = (3, 2)) -> dict[str, str]:
    files = {f"clusters/{name}/web.yaml": deployment("web", count) for name, count in zip(BOTH, replicas, strict=True)}
    return {**files, **{f"clusters/{name}/service.yaml": SERVICE for name in BOTH}}


def test_a_plan_without_a_policy_names_what_the_directories_define_differently(fleet: Fleet) -> None:
    fleet.commit(write_clusters())
    (finding,) = [one for one in validate_source(fleet.settings()).findings if one.code == "duplicate-identity"]
    assert (finding.severity, str(finding.location)) == ("warning", "clusters/ash-1/web.yaml:1:1")
    assert finding.message.endswith(
        "also clusters/fra-1/web.yaml:1:1; keep one, or hide overlays with .sourceignore or source.paths; if these directories are for "
        "different clusters, `gitsched init --cluster DIR=NAME` proposes a Bundle of them, or map them to clusters in source.variants"
    )


def test_a_service_whose_pods_are_defined_differently_selects_pods(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_state, "MIN_WORKLOADS", 0)
    fleet.commit({**write_clusters(), "all.yaml": policy("one", kind="Service"), "one.yaml": cluster("one")})
    assert "service-selects-nothing" not in {one.code for one in fleet.reconcile().plan.findings}
    fleet.commit({"clusters/fra-1/web.yaml": deployment("web", 5)}, hour=1)
    assert "service-selects-nothing" not in {one.code for one in fleet.reconcile(1).plan.findings}
    gone = {f"clusters/{name}/web.yaml": None for name in BOTH}
    fleet.commit(gone, hour=2)
    assert "service-selects-nothing" in {one.code for one in fleet.reconcile(2).plan.findings}


def test_adoption_does_not_call_them_missing_in_the_source(fleet: Fleet) -> None:
    fleet.commit({**write_clusters(), "all.yaml": policy("one", kind="Service")})
    clusters = tuple(ClusterInput(name, fleet.path / "clusters" / name) for name in BOTH)
    adoption = adopt(fleet.settings(), AdoptionInputs(clusters=clusters), dry_run=True).adoption
    assert adoption.foreign == ()
    assert [one.key.kind for one in adoption.unselected] == ["Deployment"]


@pytest.mark.needs("kubectl")
def test_adoption_does_not_call_parts_of_an_unplaced_bundle_missing(fleet: Fleet) -> None:
    variants = ", ".join(f"{{path: clusters/{name}, clusters: {{names: [{name}]}}}}" for name in BOTH)
    head = "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: all, namespace: default}\n"
    bundle = f"{head}spec: {{variants: [{variants}]}}\n"
    fleet.commit({**write_clusters(), "bundle.yaml": bundle, **{f"fleet/{name}.yaml": cluster(name) for name in BOTH}})
    clusters = tuple(ClusterInput(name, fleet.path / "clusters" / name) for name in BOTH)
    adoption = adopt(fleet.settings(observations="recorded"), AdoptionInputs(clusters=clusters), dry_run=True).adoption
    assert adoption.foreign == ()
    assert [one.key.kind for one in adoption.unselected] == ["Service", "Deployment"]


@pytest.mark.parametrize("running", [(3, 2), (3, 1)])
def test_adoption_counts_what_the_directories_of_variants_run(fleet: Fleet, tmp_path: Path, running: tuple[int, int]) -> None:
    variants = ", ".join(f"{{path: clusters/{name}, clusters: {{names: [{name}]}}}}" for name in BOTH)
    config = f"apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {{name: gitsched}}\nspec: {{source: {{variants: [{variants}]}}}}\n"
    clusters = {f"fleet/{name}.yaml": cluster(name) for name in BOTH}
    fleet.commit({**write_clusters(), **clusters, "gitsched.yaml": config, "all.yaml": policy("fra-1, ash-1")})
    for name, count in zip(BOTH, running, strict=True):
        (tmp_path / name).mkdir()
        (tmp_path / name / "web.yaml").write_text(deployment("web", count))
    inputs = AdoptionInputs(clusters=tuple(ClusterInput(name, tmp_path / name) for name in BOTH))
    adoption = adopt(fleet.settings(observations="recorded"), inputs, dry_run=True).adoption
    others = [(one.key.name, dict(one.before)) for one in (*adoption.held, *adoption.moving, *adoption.unknown)]
    if running == (3, 2):
        assert (adoption.in_place, others) == (1, [])
        fleet.reconcile()
        explanation = explain_resource(fleet.settings(), "deployment", "default", "web")
        assert isinstance(explanation, Explanation)
        assert ([share.replicas for share in explanation.result], explanation.division) == ([2, 3], ())
    else:
        assert (adoption.in_place, others) == (0, [("web", {"fra-1": 3, "ash-1": 1})])
