"""`gitsched export tenants`: accounts for Flux and projects for Argo CD that have no more rights than the Tenants."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Run
from tests.upstream_schemas import validate

ADDRESS = "https://git.example.com/platform/fleet.git"
TENANT = """\
apiVersion: gitsched.io/v1alpha1
kind: Tenant
metadata: {name: payments}
spec:
  paths: [teams/payments]
  namespaces: [payments, payments-*]
  clusters: {matchLabels: {ownership: cloud}}
  kinds:
    allow: [Deployment.apps, ConfigMap, NetworkPolicy.networking.k8s.io]
    deny: [Secret]
  clusterKinds: [{kind: Namespace, names: [payments]}]
"""


@pytest.fixture
def objects(
    gitsched: Run, fleet: Path, git: Callable[..., str], commit: Callable[..., None]
) -> Callable[..., list[dict[str, Any]]]:
    git("remote", "add", "origin", ADDRESS, at=fleet)
    commit(fleet, tenant=TENANT)

    def export(*arguments: str) -> list[dict[str, Any]]:
        done = gitsched("export", "tenants", *arguments)
        assert done.returncode == 0, done.stderr
        return [document for document in yaml.safe_load_all(done.stdout) if document]

    return export


@pytest.mark.needs("kubectl")
def test_the_account_of_flux_may_do_what_the_tenant_may(objects: Callable[..., list[dict[str, Any]]], tmp_path: Path) -> None:
    found = objects("--for", "flux")
    assert [f"{each['kind']}/{each['metadata'].get('namespace', '')}/{each['metadata']['name']}" for each in found] == [
        "ServiceAccount/flux-system/tenant-payments",
        "Role/payments/tenant-payments",
        "RoleBinding/payments/tenant-payments",
        "ClusterRole//tenant-payments",
        "ClusterRoleBinding//tenant-payments",
    ]
    rules = {(tuple(rule["apiGroups"]), tuple(rule["resources"])) for rule in found[1]["rules"]}
    assert rules == {(("",), ("configmaps",)), (("apps",), ("deployments",)), (("networking.k8s.io",), ("networkpolicies",))}
    assert [rule.get("resourceNames") for rule in found[3]["rules"]] == [None, ["payments"]]
    subject = {"kind": "ServiceAccount", "name": "tenant-payments", "namespace": "flux-system"}
    assert all(each["subjects"] == [subject] for each in found if "subjects" in each)
    (tmp_path / "kustomization.yaml").write_text("resources: [objects.yaml]\n")
    (tmp_path / "objects.yaml").write_text(yaml.safe_dump_all(found))
    done = subprocess.run(["kubectl", "kustomize", str(tmp_path)], capture_output=True, text=True, check=True)
    assert len(list(yaml.safe_load_all(done.stdout))) == len(found)


def test_the_project_of_argo_cd_has_the_clusters_and_kinds_of_the_tenant(objects: Callable[..., list[dict[str, Any]]]) -> None:
    (project,) = objects("payments", "--for", "argocd")
    validate(project)
    assert project["spec"] == {
        "description": "What the Tenant payments allows",
        "sourceRepos": [ADDRESS],
        "destinations": [{"name": "two", "namespace": "payments"}, {"name": "two", "namespace": "payments-*"}],
        "clusterResourceWhitelist": [{"group": "", "kind": "Namespace"}],
        "namespaceResourceWhitelist": [
            {"group": "apps", "kind": "Deployment"},
            {"group": "", "kind": "ConfigMap"},
            {"group": "networking.k8s.io", "kind": "NetworkPolicy"},
        ],
        "namespaceResourceBlacklist": [{"group": "", "kind": "Secret"}],
    }
    assert objects("--for", "argocd", "--cluster", "one") == []


def test_an_unknown_tenant_is_an_error(gitsched: Run, fleet: Path) -> None:
    done = gitsched("export", "tenants", "nobody", "--for", "flux")
    assert (done.returncode, "unknown tenant: 'nobody'" in done.stderr) == (2, True)
