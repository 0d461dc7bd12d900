"""Companions of workloads, such as Services and autoscalers: a finding where they do not go along with their targets."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitsched.decide.relations.companion_findings import NOT_SELECTED
from gitsched.decide.relations.companion_findings import SEPARATED_CODE as SEPARATED
from gitsched.decide.relations.located_findings import MAX_FINDINGS
from gitsched.model.finding import Finding
from gitsched.reconcile import RunResult

from .conftest import Fleet, cluster, policy
from .test_references import CODES, FLEET, WORK, place, settings

CASES = yaml.safe_load((Path(__file__).parent / "companions.yaml").read_text())


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path / "source", tmp_path / "cache")


def list_found(run: RunResult) -> list[Finding]:
    return [finding for finding in run.plan.findings if finding.code in (SEPARATED, NOT_SELECTED)]


def summarize(finding: Finding) -> list[str]:
    """Return lines as under `found`."""
    if unselected := re.match(r"no policy selects (.*?):", finding.message):
        return [f"{finding.severity} {unselected[1]} not selected"]
    name = finding.message.split(" ")[0]
    lacks = re.search(r"does not go to (.*?), where", finding.message)
    idle = re.search(r" goes to (.*?), where", finding.message)
    assert lacks or idle, finding.message
    return [
        *([f"{finding.severity} {name} lacks {lacks[1]}"] if lacks else ()),
        *([f"{finding.severity} {name} idle in {idle[1]}"] if idle else ()),
    ]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_companion_apart_from_its_targets_is_one_finding(fleet: Fleet, case: dict[str, Any]) -> None:
    objects = {f"apps/{number:02}.yaml": place(entry["object"], entry["to"]) for number, entry in enumerate(case["objects"])}
    fleet.commit({**FLEET, **objects, "gitsched.yaml": settings(case.get("assumed", []))})
    run = fleet.preview()
    found = list_found(run)
    assert sorted(line for finding in found for line in summarize(finding)) == sorted(case["found"])
    messages = "\n".join(finding.message for finding in found)
    assert [part for part in case.get("says", ()) if part not in messages] == []
    assert all(finding.location is not None and finding.resource is not None for finding in found)
    assert sorted({finding.code for finding in run.plan.findings} & CODES) == case.get("others", [])
    errors = {finding.code for finding in run.plan.findings if finding.severity == "error"}
    assert errors == set(case.get("errors", ()))


def deployment(name: str, **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop"}
    template = {"metadata": {"labels": {"app": name, **labels}}, "spec": {"containers": [{"name": name, "image": "nginx"}]}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"template": template}}


def service(name: str, **selector: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": {"app": name, **selector}}}


def test_the_number_of_findings_is_limited(fleet: Fleet) -> None:
    count = MAX_FINDINGS + 30
    files = {
        f"apps/{n}.yaml": "\n---\n".join((place(deployment(f"w{n}"), ["ash", "oak"]), place(service(f"w{n}"), ["ash"])))
        for n in range(count)
    }
    fleet.commit({**FLEET, **files})
    found = list_found(fleet.preview())
    assert len(found) == MAX_FINDINGS + 1
    assert any(finding.message.startswith("30 more companions") for finding in found)


def test_many_companions_that_no_policy_selects_are_one_finding(fleet: Fleet) -> None:
    policy = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "ClusterPropagationPolicy",
        "metadata": {"name": "deployments"},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}], "placement": {}},
    }
    files = {f"{n:02}.yaml": json.dumps(obj(f"w{n:02}")) for n in range(20) for obj in (service,)}
    files |= {f"deployment-{n:02}.yaml": json.dumps(deployment(f"w{n:02}")) for n in range(20)}
    fleet.commit({**FLEET, **files, "policy.yaml": json.dumps(policy)})
    (finding,) = list_found(fleet.preview())
    assert "no policy selects Service/shop/w00, Service/shop/w01, Service/shop/w02 and 17 more: they belong to " in finding.message
    assert "ClusterPropagationPolicy/deployments: {apiVersion: v1, kind: Service}, set spec.followTargets: true" in finding.message
    assert str(finding.location) == "00.yaml:1:1"
    assert len(finding.message) < 400


def test_objects_of_a_set_are_compared_with_objects_outside_of_it(fleet: Fleet) -> None:
    """What is in one ManifestWorkReplicaSet goes together; nothing follows it from outside."""
    manifests = json.dumps([deployment("web"), service("web"), service("db")])[1:-1]
    others = {
        "alone.yaml": json.dumps(service("alone") | {"spec": {"selector": {"app": "web"}}}),
        "db.yaml": json.dumps(deployment("db")),
    }
    fleet.commit({"work.yaml": WORK % manifests, **others})
    run = fleet.preview()
    found = {finding.message.partition(" ")[0]: finding for finding in list_found(run)}
    assert sorted(found) == ["Service/shop/db", "no"]
    unselected = found["no"].message
    assert "no policy selects Service/shop/alone: it belongs to Deployment.apps/shop/web in " in unselected
    assert "add it to ManifestWorkReplicaSet.work.open-cluster-management.io/default/app" in unselected
    assert "for Deployment.apps/shop/db, no policy selects it" in found["Service/shop/db"].message


def test_variants_of_one_base_for_two_clusters_have_companions_of_their_own(fleet: Fleet) -> None:
    base = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  replicas: 1\n"
        "  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n"
        "    spec: {containers: [{name: web, image: 'registry.example.com/web:1'}]}\n---\n"
        "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"
    )
    files = {"base/kustomization.yaml": "resources: [all.yaml]\n", "base/all.yaml": base}
    for name, target in (("eu", "one"), ("us", "two")):
        bundle = f"apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {{name: {name}, namespace: default}}\nspec: {{path: {name}}}\n"
        rule = policy(target, name=name, kind="Bundle").replace("apps/v1", "gitsched.io/v1alpha1")
        files |= {
            f"{name}/kustomization.yaml": f"namePrefix: {name}-\nresources: [../base]\n",
            f"fleet/{name}.yaml": f"{bundle}---\n{rule.replace('kind: Bundle', f'kind: Bundle, name: {name}')}",
            f"fleet/{target}.yaml": cluster(target),
        }
    fleet.commit(files)
    found = [finding.message for finding in fleet.reconcile().plan.findings if finding.code == "companion-separated"]
    assert found == []
    without = base.replace("kind: Service", "kind: ConfigMap").replace(
        "spec: {selector: {app: web}, ports: [{port: 80}]}", "data: {}"
    )
    fleet.commit({"us/kustomization.yaml": "namePrefix: us-\nresources: [all.yaml]\n", "us/all.yaml": without}, hour=1)
    found = [finding.message for finding in fleet.reconcile(hour=1).plan.findings if finding.code == "companion-separated"]
    assert len(found) == 1  # nothing of its own serves the workload of the other cluster now
    assert found[0].startswith("Service/shop/eu-web does not go to two, where its target Deployment.apps/shop/us-web is")
