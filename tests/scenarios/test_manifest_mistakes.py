"""A mistake in a manifest is found with its place, and what clusters run stays as it is."""

from __future__ import annotations

import pytest

from gitsched.reconcile import RunResult

from .conftest import Fleet, deployment

WEB, PATH = "apps/web.yaml", "clusters/first/default/deployment-web.yaml"
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties: {spec: {type: object, properties: {size: {type: SIZE}}}}
"""
WIDGET = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: one, namespace: default}\nspec:\n  size: 1\n"


def find(run: RunResult) -> list[str]:
    return [str(finding) for finding in run.plan.findings if finding.severity != "info"]


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("replicas: 2", "replicas: three", "apps/web.yaml:7:13: error: 'replicas' must be an integer, not \"three\" [wrong-type]"),
        ("replicas: 2", "replicas: -6", "apps/web.yaml:7:13: error: 'replicas' must be at least 0, not -6 [out-of-range]"),
        ("apps/v1", "v1", "apps/web.yaml:1:13: error: Kubernetes 1.36 has no Deployment in v1: write apps/v1 [unknown-kind]"),
        ("kind: Deployment", "kind: Deploymnet", "did you mean Deployment? [unknown-kind]"),
    ],
)
def test_what_an_api_server_refuses_leaves_the_last_valid_manifest(pair: Fleet, old: str, new: str, finding: str) -> None:
    pair.reconcile()
    before = pair.read(PATH)
    pair.commit({WEB: deployment("web").replace(old, new)}, hour=1)
    run = pair.reconcile(1)
    assert find(run)[0].endswith(finding)
    assert pair.read(PATH) == before
    pair.commit({WEB: deployment("web", 3)}, hour=2)
    assert find(pair.reconcile(2)) == []
    assert "replicas: 3" in pair.read(PATH)


def test_an_object_that_was_never_valid_is_not_delivered(pair: Fleet) -> None:
    pair.commit({"apps/new.yaml": deployment("new", "three")})
    pair.reconcile()
    assert pair.where("default/deployment-new") == []
    assert pair.where("default/deployment-web") == ["first"]


def test_a_request_that_is_no_quantity_does_not_count_as_no_request(pair: Fleet) -> None:
    pod = (
        "  template:\n    metadata: {labels: {app: web}}\n"
        "    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: %s}}}]}\n"
    )
    pair.commit({WEB: deployment("web", 1) + pod % "500m"})
    pair.reconcile()
    pair.commit({WEB: deployment("web", 6) + pod % "500mi"}, hour=1)
    run = pair.reconcile(1)
    assert "'cpu' must be a quantity such as 500m, 2 or 1Gi, and not negative, not \"500mi\" [wrong-format]" in find(run)[0]
    assert "replicas: 1" in pair.read(PATH)
    assert pair.binding("web-deployment")["spec"]["replicas"] == 1


def test_an_unknown_field_is_delivered_as_written(pair: Fleet) -> None:
    pair.commit({WEB: deployment("web") + "  replica: 2\n"})
    (warning,) = find(pair.reconcile())
    assert "apps/web.yaml:9:3: warning: the field 'replica' is unknown to Kubernetes" in warning
    assert "replica: 2\n" in pair.read(PATH)


def test_custom_resources_are_checked_against_the_definitions_of_the_source(pair: Fleet) -> None:
    pair.commit({"crds/widget.yaml": DEFINITION.replace("SIZE", "integer"), "apps/widget.yaml": WIDGET})
    assert find(pair.reconcile()) == []
    pair.commit({"apps/widget.yaml": WIDGET.replace("size: 1", "size: one")}, hour=1)
    (found,) = find(pair.reconcile(1))
    assert found == "apps/widget.yaml:5:9: warning: 'size' must be an integer, not \"one\" (crds/widget.yaml:1) [wrong-type]"
    pair.commit({WEB: deployment("web", 3)}, hour=2)
    run = pair.reconcile(2)
    assert not run.plan.complete
    assert find(run) == [found]
    pair.commit({"crds/widget.yaml": DEFINITION.replace("SIZE", "string")}, hour=3)
    assert find(pair.reconcile(3)) == []


def test_of_what_kustomize_builds_the_result_counts(pair: Fleet) -> None:
    base = deployment("web")
    patch = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: default}\nspec:\n  replicas: NUMBER\n"
    files = {
        "gitsched.yaml": "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\n"
        "spec: {source: {kustomize: {build: [prod]}}}\n",
        WEB: None,
        "base/web.yaml": base,
        "base/kustomization.yaml": "resources: [web.yaml]\n",
        "prod/kustomization.yaml": "resources: [../base]\npatches: [{path: patch.yaml}]\n",
        "prod/patch.yaml": patch.replace("NUMBER", "5"),
    }
    pair.commit(files)
    pair.reconcile()
    assert "replicas: 5" in pair.read(PATH)
    pair.commit({"base/web.yaml": base.replace("replicas: 2", "replicas: two")}, hour=1)
    assert find(pair.reconcile(1)) == []
    pair.commit({"prod/patch.yaml": patch.replace("NUMBER", "five")}, hour=2)
    found = find(pair.reconcile(2))
    assert found[0].endswith(
        "'replicas' must be an integer, not \"five\" (as kustomize builds prod) (last changed by prod/patch.yaml:1) [wrong-type]"
    )
    assert len(found) == 2  # the other one says that the placement stays
    assert "replicas: 5" in pair.read(PATH)


PODS = "  template:\n    metadata: {labels: {app: LABEL}}\n    spec: {containers: [{name: web, image: nginx}]}\n"


def test_a_selector_selects_the_pods_of_its_template(pair: Fleet) -> None:
    pair.commit({WEB: deployment("web") + PODS.replace("LABEL", "web")})
    assert find(pair.reconcile()) == []
    before = pair.read(PATH)
    pair.commit({WEB: deployment("web") + PODS.replace("LABEL", "wed")}, hour=1)
    error = find(pair.reconcile(1))[0]
    assert "apps/web.yaml:8:33: error: the selector has app=web, and the pods of the template have app=wed" in error
    assert pair.read(PATH) == before
