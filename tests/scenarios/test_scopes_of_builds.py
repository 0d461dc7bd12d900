"""Custom resources of builds: which get the namespace of a tool, and what is said about kinds of which nothing declares the scope."""

from __future__ import annotations

import pytest

from .conftest import Fleet, cluster
from .test_argo_paths import POLICY, application

pytestmark = pytest.mark.needs("kubectl")
WIDGET = "# A part\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: %s}\nspec: {size: 1}\n"
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: %s
  names: {kind: Widget, plural: widgets}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
"""
SELECTED = POLICY.replace("apps/v1", "example.com/v1").replace("Deployment", "Widget")
LAYOUT = {
    "fleet/one.yaml": cluster("one"),
    "fleet/policy.yaml": SELECTED,
    "argo/web.yaml": application(""),
    "apps/web/widget.yaml": WIDGET % "a",
    "apps/web/second.yaml": WIDGET % "b",
}
ASSUMED = (
    "Widget of example.com is assumed to be namespaced, and gets the namespace shop of Argo CD Application argocd/web, which leaves it out "
    "where the API server of the cluster says that the kind is cluster-scoped: commit its CustomResourceDefinition, or declare the kind "
    "under `spec.kinds` in gitsched.yaml"
)
CHART = {"charts/widget/Chart.yaml": "apiVersion: v2\nname: widget\nversion: 1.0.0\n"}
SETTINGS = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec: {kinds: [{apiVersion: example.com/v1, kind: Widget, scope: %s}]}
"""


def guesses(fleet: Fleet) -> list[tuple[str, int, int, str]]:
    found = [one for one in fleet.reconcile().plan.findings if one.code == "scope-guessed"]
    assert {one.severity for one in found} <= {"warning"}
    return [(one.location.path, one.location.line, one.location.column, one.message) for one in found if one.location]


def delivered(fleet: Fleet) -> list[str]:
    return [path for path in fleet.files() if path.startswith("clusters/one/") and "/widget." in path]


def test_a_kind_of_which_nothing_declares_the_scope_is_reported_once_for_each_build(fleet: Fleet) -> None:
    fleet.commit(LAYOUT)
    assert guesses(fleet) == [("apps/web/widget.yaml", 2, 1, ASSUMED)]
    assert delivered(fleet) == [f"clusters/one/shop/widget.example.com-{name}.yaml" for name in "ab"]


@pytest.mark.parametrize("scope", ["Cluster", "Namespaced"])
@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"crds/widget.yaml": DEFINITION}, id="definition"),
        pytest.param({**CHART, "charts/widget/crds/widget.yaml": DEFINITION}, id="definition of a chart"),
        pytest.param({"gitsched.yaml": SETTINGS}, id="settings"),
    ],
)
def test_a_declared_scope_counts_without_a_finding(fleet: Fleet, files: dict[str, str], scope: str) -> None:
    fleet.commit({**LAYOUT, **{path: text % scope if "%s" in text else text for path, text in files.items()}})
    assert guesses(fleet) == []
    assert [path.split("/")[2] for path in delivered(fleet)] == ["_" if scope == "Cluster" else "shop"] * 2


def test_a_definition_that_another_build_prints_declares_the_scope(fleet: Fleet) -> None:
    templates = {**CHART, "charts/widget/templates/widget.yaml": "{{ if true }}\n" + DEFINITION % "Cluster" + "{{ end }}\n"}
    chart = application("helm: {releaseName: widget}", path="charts/widget").replace("name: web,", "name: widget,")
    fleet.commit(
        {
            **LAYOUT,
            **templates,
            "argo/widget.yaml": chart,
            "fleet/more.yaml": SELECTED.replace("all", "more").replace("Widget", "*"),
        }
    )
    assert guesses(fleet) == []
    assert [path.split("/")[2] for path in delivered(fleet)] == ["_", "_"]


def test_an_object_with_a_namespace_says_that_its_kind_is_namespaced(fleet: Fleet) -> None:
    fleet.commit({**LAYOUT, "apps/web/third.yaml": (WIDGET % "c").replace("name: c", "name: c, namespace: own")})
    assert guesses(fleet) == []
    assert [path.split("/")[2] for path in delivered(fleet)] == ["own", "shop", "shop"]


def test_kinds_of_common_operators_need_no_definition(fleet: Fleet) -> None:
    text = (WIDGET % "a").replace("example.com/v1", "cdi.kubevirt.io/v1beta1").replace("Widget", "StorageProfile")
    chosen = SELECTED.replace("example.com/v1", "cdi.kubevirt.io/v1beta1").replace("Widget", "StorageProfile")
    fleet.commit({**LAYOUT, "apps/web/widget.yaml": text, "apps/web/second.yaml": "", "fleet/policy.yaml": chosen})
    assert guesses(fleet) == []
    assert "clusters/one/_/storageprofile.cdi.kubevirt.io-a.yaml" in fleet.files()


BUNDLE = """\
apiVersion: gitsched.io/v1alpha1
kind: Bundle
metadata: {name: web, namespace: shop}
spec: {path: %s}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: bundles, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: gitsched.io/v1alpha1, kind: Bundle}]
  placement: {}
"""


def test_a_bundle_that_an_application_deploys_says_the_same(fleet: Fleet) -> None:
    fleet.commit({**LAYOUT, "fleet/two.yaml": cluster("two"), "fleet/policy.yaml": BUNDLE % "apps/web"})
    assert guesses(fleet) == [("apps/web/widget.yaml", 2, 1, ASSUMED)]
    assert delivered(fleet) == [f"clusters/one/shop/widget.example.com-{name}.yaml" for name in "ab"]


@pytest.mark.needs("helm")
def test_an_object_of_a_chart_without_a_namespace_is_reported(fleet: Fleet) -> None:
    files = {**CHART, "charts/widget/templates/a.yaml": WIDGET % "{{ .Release.Name }}"}
    fleet.commit(
        {"fleet/one.yaml": cluster("one"), "fleet/bundle.yaml": BUNDLE % "charts/widget, helm: {namespace: shop}", **files}
    )
    ((path, _, _, message),) = guesses(fleet)
    assert path == "charts/widget/templates/a.yaml"
    assert message == ASSUMED.replace("Argo CD Application argocd/web", "the Helm release of charts/widget")
    assert [path.split("/")[2] for path in delivered(fleet)] == ["shop"]
    fleet.commit({"crds/widget.yaml": DEFINITION % "Cluster"}, hour=1)
    assert (guesses(fleet), [path.split("/")[2] for path in delivered(fleet)]) == ([], ["_"])
