"""Objects whose destination is another cluster, such as Applications of Argo CD, where policies place them."""

from __future__ import annotations

import pytest

from gitsched.model.finding import Finding

from .conftest import Fleet, cluster

POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {{name: web, namespace: argocd}}
spec:
  resourceSelectors: [{{apiVersion: {version}, kind: {kind}, name: web}}]
  placement: {{clusterAffinity: {{clusterNames: [first, second]}}}}
"""
OVERRIDE = """\
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {{name: {name}, namespace: argocd}}
spec:
  resourceSelectors: [{{apiVersion: argoproj.io/v1alpha1, kind: Application, name: web}}]
  overrideRules:
  - targetCluster: {{clusterNames: [{name}]}}
    overriders:
      plaintext: [{{path: /spec/destination/server, operator: replace, value: "https://kubernetes.default.svc"}}]
"""


def made(kind: str, version: str, spec: str, annotations: str = "") -> str:
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: web, namespace: argocd{annotations}}}\nspec: {spec}\n"


def application(destination: str, annotations: str = "") -> str:
    return made("Application", "argoproj.io/v1alpha1", f"{{project: default, destination: {destination}}}", annotations)


def place(fleet: Fleet, text: str, **others: str) -> list[Finding]:
    version, kind = text.split("\n")[0].removeprefix("apiVersion: "), text.split("\n")[1].removeprefix("kind: ")
    files = {f"clusters/{name}.yaml": cluster(name) for name in ("first", "second")}
    fleet.commit({"web.yaml": text, "policy.yaml": POLICY.format(version=version, kind=kind), **files, **others})
    return [finding for finding in fleet.reconcile().plan.findings if finding.code == "destination-unchanged"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (application("{server: 'https://10.0.0.1:6443', namespace: web}"), "https://10.0.0.1:6443"),
        (application("{name: production, namespace: web}"), "production"),
        (application("{namespace: web}"), "names no cluster"),
        (
            made("ApplicationSet", "argoproj.io/v1alpha1", "{generators: [], template: {spec: {destination: {name: '{{name}}'}}}}"),
            "{{name}}",
        ),
        (
            made("Kustomization", "kustomize.toolkit.fluxcd.io/v1", "{kubeConfig: {secretRef: {name: production}}}"),
            "spec.kubeConfig",
        ),
    ],
)
def test_a_destination_that_is_another_cluster_is_reported_with_a_cure(fleet: Fleet, text: str, named: str) -> None:
    (finding,) = place(fleet, text)
    assert finding.severity == "warning"
    assert "goes to first, second" in finding.message
    assert named in finding.message
    assert ("delivery argocd" if "argoproj" in text else "remove spec.kubeConfig") in finding.message
    assert str(finding.location) == "web.yaml:1:1"


@pytest.mark.parametrize(
    "text",
    [
        application("{server: 'https://kubernetes.default.svc', namespace: web}"),
        application("{name: in-cluster, namespace: web}"),
        application("{name: production}", ", annotations: {gitsched.io/destination: fixed}"),
        made("Kustomization", "kustomize.toolkit.fluxcd.io/v1", "{path: ./web}"),
    ],
)
def test_a_destination_that_is_the_cluster_itself_is_right(fleet: Fleet, text: str) -> None:
    assert place(fleet, text) == []


def test_overrides_that_set_the_destination_count(fleet: Fleet) -> None:
    overrides = {f"{name}.yaml": OVERRIDE.format(name=name) for name in ("first", "second")}
    text = application("{server: 'https://10.0.0.1:6443', namespace: web}")
    (finding,) = place(fleet, text, **{"first.yaml": overrides["first.yaml"]})
    assert "goes to second," in finding.message
    assert place(fleet, text, **overrides) == []


def test_objects_of_bundles_count(fleet: Fleet) -> None:
    bundle = "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: web, namespace: argocd}\nspec: {path: hub}\n"
    (finding,) = place(fleet, bundle, **{"hub/web.yaml": application("{name: production}")})
    assert "goes to first, second" in finding.message
    assert str(finding.location) == "hub/web.yaml:1:1"
