"""A HelmRelease with propagateDeps brings along its source, its values, and what makes their Secrets; encrypted files keep their bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from gitsched.reconcile import Reconciler

from .conftest import Fleet, at_hour, cluster, execute

RELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {{name: {name}, namespace: apps}}
spec:
  chartRef: {{kind: OCIRepository, name: podinfo, namespace: flux-system}}
  dependsOn: [{depends}]
  valuesFrom: [{{kind: ConfigMap, name: values}}, {{kind: Secret, name: passwords}}]
"""
SOURCE = """\
# The chart
apiVersion: source.toolkit.fluxcd.io/v1beta2
kind: OCIRepository
metadata: {{name: podinfo, namespace: flux-system}}
spec: {{url: "oci://ghcr.io/stefanprodan/charts/podinfo", secretRef: {{name: {secret}}}}}
"""
VALUES = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: values, namespace: apps}\ndata: {values.yaml: 'replicaCount: 2'}\n"
SEALED = """\
apiVersion: bitnami.com/v1alpha1
kind: SealedSecret
metadata: {{name: passwords, namespace: apps, annotations: {{{annotations}}}}}
spec: {{encryptedData: {{token: AgBy3i4OJSWK}}}}
"""
EXTERNAL = """\
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {{name: pull, namespace: flux-system}}
spec: {{secretStoreRef: {{kind: ClusterSecretStore, name: vault}}, target: {{name: {target}}}}}
"""
STORE = """\
apiVersion: external-secrets.io/v1
kind: ClusterSecretStore
metadata: {name: vault}
spec: {provider: {vault: {auth: {tokenSecretRef: {name: token, namespace: vault, key: token}}}}}
"""
SOPS = """\
# Encrypted with age
apiVersion: v1
kind: Secret
metadata:
    name: token
    namespace: vault
    creationTimestamp: null
stringData:
    token: ENC[AES256_GCM,data:c2VjcmV0,iv:x,tag:y,type:str]
sops:
    lastmodified: "2026-01-01T00:00:00Z"
    mac: ENC[AES256_GCM,data:bWFj,iv:x,tag:y,type:str]
    encrypted_regex: ^(data|stringData)$
    version: 3.9.4
"""
POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {{name: {name}, namespace: apps}}
spec:
  propagateDeps: true
  resourceSelectors: [{{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, name: {name}}}]
  placement: {{clusterAffinity: {{clusterNames: [{clusters}]}}}}
"""
PARTS = {
    "HelmRelease": "apps/helmrelease.helm.toolkit.fluxcd.io-podinfo",
    "OCIRepository": "flux-system/ocirepository.source.toolkit.fluxcd.io-podinfo",
    "ConfigMap": "apps/configmap-values",
    "SealedSecret": "apps/sealedsecret.bitnami.com-passwords",
    "ExternalSecret": "flux-system/externalsecret.external-secrets.io-pull",
    "ClusterSecretStore": "_/clustersecretstore.external-secrets.io-vault",
    "Secret": "vault/secret-token",
}


def files(clusters: str = "first", depends: str = "", annotations: str = "") -> dict[str, str]:
    return {
        "release.yaml": RELEASE.format(name="podinfo", depends=depends),
        "source.yaml": SOURCE.format(secret="ghcr"),
        "values.yaml": VALUES,
        "sealed.yaml": SEALED.format(annotations=annotations),
        "external.yaml": EXTERNAL.format(target="ghcr"),
        "store.yaml": STORE,
        "token.yaml": SOPS,
        "policy.yaml": POLICY.format(name="podinfo", clusters=clusters),
        **{f"clusters/{name}.yaml": cluster(name) for name in ("first", "second")},
    }


def places(fleet: Fleet) -> dict[str, list[str]]:
    return {kind: fleet.where(path) for kind, path in PARTS.items()}


def messages(run: Any, code: str) -> list[str]:
    return [finding.message for finding in run.plan.findings if finding.code == code]


def test_everything_that_a_release_needs_goes_along_with_its_bytes(fleet: Fleet) -> None:
    fleet.commit(files())
    fleet.reconcile()
    assert places(fleet) == {key: ["first"] for key in PARTS}
    assert all(f"clusters/first/{path}.yaml" in fleet.files() for path in PARTS.values())
    for name, kind in (("token.yaml", "Secret"), ("sealed.yaml", "SealedSecret"), ("source.yaml", "OCIRepository")):
        assert fleet.files()[f"clusters/first/{PARTS[kind]}.yaml"] == fleet.git("rev-parse", f"main:{name}")
    recorded = yaml.safe_load(
        fleet.binding("podinfo-helmrelease", "apps")["metadata"]["annotations"]["resourcebinding.karmada.io/dependencies"]
    )
    assert [(entry["kind"], entry["namespace"], entry["name"]) for entry in recorded] == [
        ("ConfigMap", "apps", "values"),
        ("Secret", "apps", "passwords"),
        ("OCIRepository", "flux-system", "podinfo"),
    ]
    assert fleet.reconcile(1).after is None


def test_a_sealed_secret_in_several_clusters_is_reported_until_they_share_the_key(fleet: Fleet) -> None:
    fleet.commit(files("first, second"))
    run = fleet.reconcile()
    (message,) = messages(run, "sealed-for-one-cluster")
    assert "goes to 2 clusters (first, second)" in message
    assert "gitsched.io/sealing-key: shared" in message
    wide = 'sealedsecrets.bitnami.com/cluster-wide: "true"'
    fleet.commit({"sealed.yaml": SEALED.format(annotations=wide)}, hour=1)
    (message,) = messages(fleet.reconcile(1), "sealed-for-one-cluster")
    assert "its scope, cluster-wide, is within one cluster" in message
    fleet.commit({"sealed.yaml": SEALED.format(annotations="gitsched.io/sealing-key: shared")}, hour=2)
    assert messages(fleet.reconcile(2), "sealed-for-one-cluster") == []


def test_a_sealed_secret_that_moves_is_reported_in_the_plan_of_the_move(fleet: Fleet) -> None:
    fleet.commit(files("first"))
    assert messages(fleet.reconcile(), "sealed-for-one-cluster") == []
    fleet.commit({"policy.yaml": POLICY.format(name="podinfo", clusters="second")}, hour=1)
    (message,) = messages(fleet.reconcile(1), "sealed-for-one-cluster")
    assert "moves from first to second" in message


def test_an_override_does_not_change_what_sops_encrypted(fleet: Fleet) -> None:
    override = """\
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterOverridePolicy
metadata: {name: label}
spec:
  resourceSelectors: [{apiVersion: v1, kind: Secret}, {apiVersion: v1, kind: ConfigMap}]
  overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {tier: gold}}]}}]
"""
    fleet.commit({**files(), "override.yaml": override})
    run = fleet.reconcile()
    (message,) = messages(run, "sops-unchanged")
    assert "is encrypted by SOPS" in message
    assert "first" in message
    assert fleet.files()[f"clusters/first/{PARTS['Secret']}.yaml"] == fleet.git("rev-parse", "main:token.yaml")
    assert fleet.load(f"clusters/first/{PARTS['ConfigMap']}.yaml")["metadata"]["labels"] == {"tier": "gold"}


def test_a_file_that_sops_encrypted_completely_is_a_warning(fleet: Fleet) -> None:
    secret = "ENC[AES256_GCM,data:x,iv:x,tag:y,type:str]"
    text = f"apiVersion: {secret}\nkind: {secret}\nmetadata: {{name: '{secret}'}}\nsops: {{mac: '{secret}'}}\n"
    fleet.commit({**files(), "all.yaml": text})
    run = fleet.reconcile()
    (finding,) = [finding for finding in run.plan.findings if finding.code == "sops-no-identity"]
    assert (finding.severity, str(finding.location)) == ("warning", "all.yaml:2:7")
    assert places(fleet) == {key: ["first"] for key in PARTS}


def test_releases_that_depend_on_each_other_do_not_bring_each_other_along(fleet: Fleet) -> None:
    second = {
        "other.yaml": RELEASE.format(name="redis", depends="{name: podinfo}"),
        "other-policy.yaml": POLICY.format(name="redis", clusters="second"),
    }
    fleet.commit({**files("first", depends="{name: redis}"), **second})
    fleet.reconcile()
    assert fleet.where(PARTS["HelmRelease"]) == ["first"]
    assert fleet.where("apps/helmrelease.helm.toolkit.fluxcd.io-redis") == ["second"]
    assert places(fleet)["SealedSecret"] == ["first", "second"]
    fleet.commit({"other.yaml": RELEASE.format(name="redis", depends="")}, hour=1)
    fleet.reconcile(1)
    assert fleet.where("apps/helmrelease.helm.toolkit.fluxcd.io-redis") == ["first", "second"]


def test_a_long_running_process_writes_the_same_as_new_ones(fleet: Fleet, tmp_path: Path) -> None:
    fleet.commit(
        {
            **files(),
            "other.yaml": RELEASE.format(name="redis", depends=""),
            "other-policy.yaml": POLICY.format(name="redis", clusters="second"),
        }
    )
    fleet.reconcile()
    execute("clone", "-q", "--no-hardlinks", str(fleet.path), str(tmp_path / "twin"), at=tmp_path)
    twin = Fleet(tmp_path / "twin", tmp_path / "cache-twin")
    twin.git("branch", "-q", "placements", "origin/placements")
    session = Reconciler(fleet.settings())
    changes: list[tuple[dict[str, str | bytes | None], str, list[str]]] = [
        ({"source.yaml": SOURCE.format(secret="other")}, "ExternalSecret", []),
        ({"external.yaml": EXTERNAL.format(target="other")}, "ExternalSecret", ["first", "second"]),
        ({"external.yaml": EXTERNAL.format(target="nothing")}, "ClusterSecretStore", []),
        ({"source.yaml": SOURCE.format(secret="nothing")}, "Secret", ["first", "second"]),
        ({"other.yaml": RELEASE.format(name="redis", depends="{name: podinfo}")}, "HelmRelease", ["first", "second"]),
        ({"store.yaml": STORE.replace("name: token", "name: none")}, "Secret", []),
        ({"policy.yaml": POLICY.format(name="podinfo", clusters="second")}, "OCIRepository", ["second"]),
        ({"store.yaml": STORE}, "Secret", ["second"]),
    ]
    for hour, (edits, kind, expected) in enumerate(changes, start=1):
        for repository in (fleet, twin):
            repository.commit(edits, hour=hour)
        session.run(at_hour(hour + 0.5))
        twin.reconcile(hour + 0.5)
        assert fleet.head == twin.head, f"after change {hour}"
        assert places(fleet)[kind] == expected, f"after change {hour}"


def test_the_workers_of_a_ray_service_are_divided_between_clusters(fleet: Fleet) -> None:
    service = """\
apiVersion: ray.io/v1
kind: RayService
metadata: {name: serve, namespace: default}
spec:
  rayClusterConfig:
    headGroupSpec: {template: {spec: {containers: [{name: head}]}}}
    workerGroupSpecs:
      - {groupName: small, replicas: 2, template: {spec: {containers: [{name: worker}]}}}
      - {groupName: large, replicas: 5, template: {spec: {containers: [{name: worker}]}}}
"""
    divided = "  placement: {replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}\n"
    rule = (
        "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: ray, namespace: default}\nspec:\n"
        f"  resourceSelectors: [{{apiVersion: ray.io/v1, kind: RayService}}]\n{divided}"
    )
    fleet.commit({**{f"clusters/{name}.yaml": cluster(name) for name in ("first", "second")}, "ray.yaml": service, "p.yaml": rule})
    fleet.reconcile()
    groups = {
        name: fleet.load(f"clusters/{name}/default/rayservice.ray.io-serve.yaml")["spec"]["rayClusterConfig"]["workerGroupSpecs"]
        for name in ("first", "second")
    }
    assert {name: [group["replicas"] for group in found] for name, found in groups.items()} == {"first": [1, 2], "second": [1, 2]}
    assert fleet.binding("serve-rayservice")["spec"]["replicas"] == 8
    assert [group["groupName"] for group in groups["first"]] == ["small", "large"]
