"""What Bundles have: workloads without replicas, and more objects than gitsched reads."""

from __future__ import annotations

import pytest

from gitsched.reconcile import RunResult

from .conftest import Fleet, cluster, deployment, policy

BUNDLE = "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: %s, namespace: default}\nspec: {path: %s}\n"
ALL = (
    "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: all, namespace: default}\nspec:\n"
    "  resourceSelectors: [{apiVersion: gitsched.io/v1alpha1, kind: Bundle}]\n"
    "  placement: {clusterAffinity: {clusterNames: [one]}}\n"
)
REQUESTS = "      containers: [{name: web, image: web, resources: {requests: {cpu: 100m}}}]\n"


def codes(run: RunResult) -> set[tuple[str, str]]:
    return {(finding.severity, finding.code) for finding in run.plan.findings if not finding.code.endswith("-assumed")}


def without_replicas(name: str) -> str:
    return (
        f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, namespace: default}}\nspec:\n  replicas: 0\n"
        f"  selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n{REQUESTS}"
    )


def test_a_bundle_whose_only_workload_has_no_replicas_is_delivered(fleet: Fleet) -> None:
    account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web, namespace: default}\n"
    app = {"app/web.yaml": without_replicas("web"), "app/account.yaml": account, "all.yaml": ALL, "b.yaml": BUNDLE % ("b", "app")}
    fleet.commit({**app, "clusters/one.yaml": cluster("one")})
    assert codes(fleet.reconcile()) == set()
    assert fleet.read("clusters/one/default/deployment-web.yaml") == without_replicas("web")
    assert fleet.read("clusters/one/default/serviceaccount-web.yaml") == account


def test_a_workload_without_replicas_that_goes_nowhere_has_a_note(fleet: Fleet) -> None:
    fleet.commit({"web.yaml": without_replicas("web"), "all.yaml": policy("one"), "clusters/one.yaml": cluster("one")})
    assert codes(fleet.reconcile()) == {("info", "no-replicas")}
    setting = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\n"
    fleet.commit({"gitsched.yaml": f"{setting}spec: {{karmada: {{enableEmptyWorkloadPropagation: true}}}}\n"}, hour=1)
    assert codes(fleet.reconcile(1)) == set()
    assert fleet.where("default/deployment-web") == ["one"]


def test_bundles_with_more_objects_than_the_limit_are_an_error(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.reconcile.bundles.bundle_variants.MAX_OBJECTS", 1)
    bundles = {f"{name}.yaml": BUNDLE % (name, name) for name in "abcd"}
    apps = {f"{name}/{kind}.yaml": deployment(f"{name}-{kind}") for name in "abcd" for kind in "xy"}
    fleet.commit({**bundles, **apps, "all.yaml": ALL, "clusters/one.yaml": cluster("one")})
    run = fleet.reconcile()
    assert [finding.code for finding in run.plan.findings if finding.severity == "error"] == ["bundle-limit"]
    assert fleet.where("default/deployment-a-x") == ["one"]
    assert fleet.where("default/deployment-d-x") == []


def test_a_directory_is_read_once_for_all_bundles_and_clusters(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.reconcile.bundles.bundle_variants.MAX_OBJECTS", 3)
    bundles = {f"{name}.yaml": BUNDLE % (name, "app") for name in "ab"}
    clusters = {f"clusters/{name}.yaml": cluster(name) for name in ("one", "two", "three", "four")}
    fleet.commit({**bundles, **clusters, "app/p.yaml": deployment("p"), "app/q.yaml": deployment("q"), "all.yaml": ALL})
    assert codes(fleet.reconcile()) == set()
    assert fleet.where("default/deployment-p") == ["one"]


CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: default\ndata:\n  id: %s\n"
CURE = "the quotes of a file are lost before variables are substituted: write %s, and set quote: '\"' in spec.values"


@pytest.mark.parametrize(
    ("name", "text", "value", "cured", "code"),
    [
        pytest.param("ids", '"${ID}"', "0999", "${quote}${ID}${quote}", "wrong-type", id="a number"),
        pytest.param("ids", '"1${ID}"', "0", "${quote}1${ID}${quote}", "wrong-type", id="a part of a number"),
        pytest.param("ids", '"${ID}"', "2026-01-01", "${quote}${ID}${quote}", "ambiguous-value", id="a date"),
        pytest.param("ids", '"${ID}"', "[a]", "${quote}${ID}${quote}", "wrong-type", id="a list"),
        pytest.param("ids", '"${ID}"', "a: b", "${quote}${ID}${quote}", "yaml-syntax", id="no YAML"),
        pytest.param('"${ID}"', '"x"', "12", "${quote}${ID}${quote}", "invalid-name", id="the name"),
    ],
)
def test_a_value_that_needs_quotes_after_the_build_is_an_error_with_the_cure(
    fleet: Fleet, name: str, text: str, value: str, cured: str, code: str
) -> None:
    bundle = (BUNDLE % ("b", "k")).replace("path: k", f"path: k, values: {{ID: '{value}'}}")
    files = {"k/kustomization.yaml": "resources: [a.yaml, b.yaml]\n", "k/a.yaml": CONFIG_MAP % (name, text), "b.yaml": bundle}
    fleet.commit({**files, "k/b.yaml": CONFIG_MAP % ("other", '"x"'), "all.yaml": ALL, "clusters/one.yaml": cluster("one")})
    run = fleet.reconcile()
    (found,) = (finding for finding in run.plan.findings if finding.severity == "error")
    assert (found.code, found.location is not None and found.location.text, CURE % cured in found.message) == (
        code,
        "k/a.yaml:1",
        True,
    )
    assert not [path for path in fleet.files() if path.startswith("clusters/one/default/")], "not a part of the Bundle"
    quoted = (CONFIG_MAP % (name, text)).replace(cured.replace("${quote}", "").join('""'), cured)
    fleet.commit({"k/a.yaml": quoted, "b.yaml": bundle.replace("values: {", "values: {quote: '\"', ")}, hour=1)
    assert codes(fleet.reconcile(1)) == set()
    assert "clusters/one/default/configmap-other.yaml" in fleet.files()


def test_a_text_of_a_chart_that_needs_quotes_is_quoted_in_the_template(fleet: Fleet) -> None:
    template = CONFIG_MAP % ("ids", "{{ .Values.id }}")
    chart = {
        "c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n",
        "c/values.yaml": 'id: "0123"\n',
        "c/templates/a.yaml": template,
    }
    bundle = (BUNDLE % ("b", "c")).replace("path: c", "path: c, helm: {}")
    fleet.commit({**chart, "b.yaml": bundle, "all.yaml": ALL, "clusters/one.yaml": cluster("one")})
    (found,) = (finding for finding in fleet.reconcile().plan.findings if finding.severity == "error")
    assert found.message.endswith("quote it in the template, as with {{ .Values.NAME | quote }}")
    fleet.commit({"c/templates/a.yaml": template.replace(".id }}", ".id | quote }}")}, hour=1)
    assert codes(fleet.reconcile(1)) == set()
