"""Directories that Argo CD Applications of the repository reconcile: their objects are those that Argo CD would apply."""

from __future__ import annotations

import json

import pytest

from .conftest import Fleet, cluster, policy
from .test_flux_paths import findings

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example.com/web:1.0"}]}
"""
POLICY = policy("one").replace("kind: PropagationPolicy", "kind: ClusterPropagationPolicy").replace(", namespace: default}", "}")


def application(source: str, namespace: str = "shop", path: str = "apps/web", kind: str = "Application") -> str:
    """Return an Application of this repository with more fields of its source."""
    return (
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web, namespace: argocd}\nspec:\n  project: default\n"
        f"  source: {{repoURL: 'https://github.com/acme/fleet', path: {path}, targetRevision: HEAD, {source}}}\n"
        f"  destination: {{server: 'https://kubernetes.default.svc', namespace: {namespace}}}\n"
    )


LAYOUT = {
    "fleet/one.yaml": cluster("one"),
    "fleet/policy.yaml": POLICY,
    "argo/web.yaml": application(""),
    "apps/web/deployment.yaml": DEPLOYMENT,
}


def placed(fleet: Fleet) -> list[str]:
    return sorted(path for path in fleet.files() if path.startswith("clusters/one/") and "/deployment-" in path)


def test_the_kustomize_options_of_an_application_are_applied(fleet: Fleet) -> None:
    options = (
        "kustomize: {namePrefix: eu-, namespace: own, images: ['registry.example.com/web=mirror/web:2'], "
        "replicas: [{name: web, count: '3'}], commonLabels: {team: shop}, labelWithoutSelector: true, commonAnnotations: {a: b}, "
        """patches: [{patch: '[{"op": "add", "path": "/spec/paused", "value": true}]', target: {kind: Deployment}}]}"""
    )
    fleet.commit({**LAYOUT, "argo/web.yaml": application(options), "apps/web/kustomization.yaml": "resources: [deployment.yaml]\n"})
    assert findings(fleet.reconcile()) == []
    (path,) = placed(fleet)
    built = fleet.load(path)
    assert path == "clusters/one/own/deployment-eu-web.yaml"
    assert built["metadata"] == {"name": "eu-web", "namespace": "own", "labels": {"team": "shop"}, "annotations": {"a": "b"}}
    assert (built["spec"]["replicas"], built["spec"]["paused"]) == (3, True)
    assert built["spec"]["template"]["spec"]["containers"][0]["image"] == "mirror/web:2"
    assert built["spec"]["selector"] == {"matchLabels": {"app": "web"}}


def test_objects_without_a_namespace_go_to_that_of_the_destination(fleet: Fleet) -> None:
    other = DEPLOYMENT.replace("name: web\n", "name: other\n  namespace: own\n", 1)
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: web}\n"
    roles = (
        POLICY.replace("name: all", "name: roles")
        .replace("apps/v1", "rbac.authorization.k8s.io/v1")
        .replace("Deployment", "ClusterRole")
    )
    fleet.commit({**LAYOUT, "apps/web/other.yaml": other, "apps/web/role.yaml": role, "fleet/roles.yaml": roles})
    assert findings(fleet.reconcile()) == []
    assert placed(fleet) == ["clusters/one/own/deployment-other.yaml", "clusters/one/shop/deployment-web.yaml"]
    assert "namespace" not in fleet.read("clusters/one/_/clusterrole.rbac.authorization.k8s.io-web.yaml")


def test_what_only_a_generator_makes_goes_to_the_namespace_of_the_destination(fleet: Fleet) -> None:
    generator = "configMapGenerator: [{name: x, literals: [a=b], options: {disableNameSuffixHash: true}}]\n"
    policies = POLICY.replace("apps/v1", "v1").replace("Deployment", "ConfigMap")
    files = {name: text for name, text in LAYOUT.items() if name != "apps/web/deployment.yaml"}
    fleet.commit({**files, "fleet/policy.yaml": policies, "apps/web/kustomization.yaml": generator})
    assert findings(fleet.reconcile()) == []
    assert {"clusters/one/shop/configmap-x.yaml", "clusters/one/default/configmap-x.yaml"} & set(fleet.files()) == {
        "clusters/one/shop/configmap-x.yaml"
    }


def test_files_are_delivered_as_they_are_where_argo_cd_changes_nothing(fleet: Fleet) -> None:
    text = "# The web server\n" + DEPLOYMENT.replace("name: web\n", "name: web\n  namespace: shop\n", 1)
    fleet.commit({**LAYOUT, "apps/web/deployment.yaml": text})
    assert findings(fleet.reconcile()) == []
    assert fleet.read("clusters/one/shop/deployment-web.yaml") == text


@pytest.mark.parametrize(
    ("options", "built"),
    [
        ("", ["web"]),
        ("directory: {recurse: true}", ["a", "b", "web"]),
        ("directory: {recurse: true, exclude: 'x/*'}", ["b", "web"]),
        ("directory: {recurse: true, include: '{x,y}/*'}", ["a", "b"]),
    ],
)
def test_a_directory_has_the_files_that_argo_cd_reads(fleet: Fleet, options: str, built: list[str]) -> None:
    more = {
        f"apps/web/{place}/d.yaml": DEPLOYMENT.replace("name: web", f"name: {name}", 1) for place, name in (("x", "a"), ("y", "b"))
    }
    fleet.commit({**LAYOUT, **more, "argo/web.yaml": application(options)})
    fleet.reconcile()
    assert [path for path in placed(fleet) if "/shop/" in path] == [f"clusters/one/shop/deployment-{name}.yaml" for name in built]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("plugin: {name: tanka}", "plugin"),
        ("kustomize: {images: ['nginx:$ARGOCD_APP_REVISION']}", "which changes with each commit"),
        ("kustomize: {components: [../missing]}", "does not have"),
    ],
)
def test_what_gitsched_cannot_build_is_not_placed(fleet: Fleet, options: str, reason: str) -> None:
    fleet.commit({**LAYOUT, "argo/web.yaml": application(options), "apps/web/kustomization.yaml": "resources: [deployment.yaml]\n"})
    run = fleet.reconcile()
    assert "reconciled-path" in [finding.code for finding in findings(run)]
    assert any(reason in finding.message for finding in findings(run))
    assert placed(fleet) == []


GENERATED = """\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: envs, namespace: argocd}
spec:
  goTemplate: %s
  generators: [%s]
  template:
    metadata: {name: "%s"}
    spec:
      project: default
      source: {repoURL: "https://github.com/acme/fleet", path: "%s", targetRevision: HEAD}
      destination: {server: "https://kubernetes.default.svc", namespace: "%s"}
"""
GIT = "git: {repoURL: 'https://github.com/acme/fleet', directories: [{path: envs/*}, {path: envs/us, exclude: true}]}"


@pytest.mark.parametrize(
    ("generator", "go", "path", "namespace", "expected"),
    [
        (f"{{{GIT}}}", False, "{{path}}", "env-{{path.basename}}", "env-eu"),
        (f"{{{GIT}}}", True, "{{ .path.path }}", "env-{{ index .path.segments 1 }}", "env-eu"),
        ("{list: {elements: [{env: eu, ns: shop}]}}", False, "envs/{{env}}", "{{ns}}", "shop"),
        ("{clusters: {values: {env: eu}}}", False, "envs/{{values.env}}", "fixed", "fixed"),
        (
            "{matrix: {generators: [{list: {elements: [{a: eu}]}}, {list: {elements: [{b: shop}]}}]}}",
            True,
            "envs/{{.a}}",
            "{{.b}}",
            "shop",
        ),
        (
            "{merge: {mergeKeys: [k], generators: [{list: {elements: [{k: x, e: us}]}}, {list: {elements: [{k: x, e: eu}]}}]}}",
            False,
            "envs/{{e}}",
            "shop",
            "shop",
        ),
        (
            "{git: {repoURL: 'https://github.com/acme/fleet', pathParamPrefix: here, files: [{path: envs/*/env.conf}]}}",
            True,
            "{{ .here.path.path }}",
            "{{ .ns }}",
            "own",
        ),
        ("{list: {elementsYaml: '[{env: eu, ns: shop}]'}}", True, "envs/{{.env}}", "{{.ns}}", "shop"),
        (
            "{matrix: {generators: [{list: {elements: [{e: eu}]}}, {git: {repoURL: 'https://github.com/acme/fleet', "
            "files: [{path: 'envs/{{.e}}/env.conf'}]}}]}}",
            True,
            "{{.path.path}}",
            "{{.e}}-{{.ns}}",
            "eu-own",
        ),
        ("{clusters: {}}", False, "envs/eu", "{{name}}", None),
        ("{pullRequest: {github: {owner: a, repo: b}}}", False, "envs/{{branch}}", "shop", None),
    ],
)
def test_an_application_set_builds_what_its_generators_name(
    fleet: Fleet, generator: str, go: bool, path: str, namespace: str, expected: str | None
) -> None:
    text = GENERATED % (str(go).lower(), generator, "env-x", path, namespace)
    envs = {f"envs/{env}/d.yaml": DEPLOYMENT for env in ("eu", "us")} | {"envs/eu/env.conf": '[{"ns": "own"}]'}
    fleet.commit({**LAYOUT, "argo/web.yaml": text, **envs, "apps/web/deployment.yaml": "# nothing\n"})
    fleet.reconcile()
    built = [found for found in placed(fleet) if "/default/" not in found]
    assert built == ([f"clusters/one/{expected}/deployment-web.yaml"] if expected else [])


PATCH = """\
  templatePatch: |
    spec:
      project: stolen
      destination: {namespace: "%s"}
      source:
        kustomize: {namePrefix: "{{ .env }}-"}
"""


@pytest.mark.parametrize(
    ("namespace", "path", "expected"),
    [
        ("patched", "envs/{{.env}}", "clusters/one/patched/deployment-eu-web.yaml"),
        ("{{ if .env }}a{{ end }}", "envs/{{.env}}", "clusters/one/a/deployment-eu-web.yaml"),
        ("{{ randAlpha 2 }}", "envs/{{.env}}", None),
    ],
)
def test_the_template_patch_of_an_application_set_is_applied(fleet: Fleet, namespace: str, path: str, expected: str | None) -> None:
    text = GENERATED % ("true", "{list: {elements: [{env: eu}]}}", "env-x", path, "shop") + PATCH % namespace
    files = {"envs/eu/d.yaml": DEPLOYMENT, "envs/eu/kustomization.yaml": "resources: [d.yaml]\n"}
    fleet.commit({**LAYOUT, "argo/web.yaml": text, **files, "apps/web/deployment.yaml": "# nothing\n"})
    run = fleet.reconcile()
    assert placed(fleet) == ([expected] if expected else [])
    reported = [finding.message for finding in findings(run) if finding.code == "reconciled-path"]
    assert (bool(reported), all("templatePatch" in message for message in reported)) == (expected is None, True)


@pytest.mark.parametrize(
    ("generator", "path", "reasons"),
    [
        ("{clusters: {}}", "envs/{{.name}}", "its generator clusters reads clusters that no Secret here describes"),
        ("{scmProvider: {github: {organization: a}}}", "envs/{{.branch}}", "its generator scmProvider reads what only Argo CD has"),
        ("{clusters: {}}", "other/{{.name}}", None),
    ],
)
def test_directories_that_only_argo_cd_knows_are_reported(fleet: Fleet, generator: str, path: str, reasons: str | None) -> None:
    text = GENERATED % ("true", generator, "env-x", path, "shop")
    fleet.commit({**LAYOUT, "argo/web.yaml": text, "envs/eu/d.yaml": DEPLOYMENT, "apps/web/deployment.yaml": "# nothing\n"})
    found = [finding for finding in findings(fleet.reconcile()) if finding.code == "unknown-path"]
    assert [str(finding.location) for finding in found] == (["argo/web.yaml:1:1"] if reasons else [])
    assert all(
        "directories such as envs/eu, because" in finding.message and (reasons or "") in finding.message for finding in found
    )


@pytest.mark.needs("helm")
def test_a_chart_of_the_repository_is_rendered_with_the_values_of_the_application(fleet: Fleet) -> None:
    chart = {
        "apps/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        "apps/web/values.yaml": "replicas: 1\nimage: {tag: '1'}\n",
        "apps/web/values-eu.yaml": "replicas: 2\n",
        "apps/web/templates/deployment.yaml": DEPLOYMENT.replace("name: web\n", "name: {{ .Release.Name }}\n", 1)
        .replace("replicas: 1", "replicas: {{ .Values.replicas }}")
        .replace(":1.0", ":{{ .Values.image.tag }}"),
        "apps/web/deployment.yaml": "# nothing\n",
    }
    options = "helm: {releaseName: shop-web, valueFiles: [values-eu.yaml], parameters: [{name: image.tag, value: '7', forceString: true}]}"
    fleet.commit({**LAYOUT, **chart, "argo/web.yaml": application(options)})
    assert findings(fleet.reconcile()) == []
    built = fleet.load("clusters/one/shop/deployment-shop-web.yaml")
    assert built["spec"]["replicas"] == 2
    assert built["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":7")
    template = chart["apps/web/templates/deployment.yaml"].replace("replicas: ", 'replicas: {{ date "5" .Values.image }}')
    fleet.commit({"apps/web/templates/deployment.yaml": template}, hour=1)
    (code,) = {(finding.code, str(finding.location)) for finding in fleet.reconcile(1).plan.findings if finding.severity == "error"}
    line = template[: template.index("date")].count("\n") + 1
    assert code == ("helm-random", f"apps/web/templates/deployment.yaml:{line}:1")
    assert fleet.load("clusters/one/shop/deployment-shop-web.yaml") == built


@pytest.mark.parametrize("path", ["apps/web", "apps/{{ns}}"])
def test_nothing_is_placed_of_an_application_set_that_makes_no_application(fleet: Fleet, path: str) -> None:
    generator = "{matrix: {generators: [{list: {elements: [{ns: web}]}}, {list: {elements: [{ns: other}]}}]}}"
    fleet.commit({**LAYOUT, "argo/web.yaml": GENERATED % ("false", generator, "web", path, "{{ns}}")})
    found = {finding.code: finding.message for finding in findings(fleet.reconcile())}
    assert "different values of ns" in found["reconciled-path" if path == "apps/web" else "unknown-path"]
    assert [place for place in placed(fleet) if "/default/" not in place] == []
    assert bool(placed(fleet)) is (path != "apps/web")


def test_what_a_hydrator_renders_is_placed(fleet: Fleet) -> None:
    text = application("").replace(
        "  source: {", "  sourceHydrator:\n    syncSource: {targetBranch: env, path: web}\n    drySource: {"
    )
    fleet.commit({**LAYOUT, "argo/web.yaml": text, "apps/web/.yamllint.yaml": "extends: default\n"})
    assert findings(fleet.reconcile()) == []
    assert placed(fleet) == ["clusters/one/shop/deployment-web.yaml"]


@pytest.mark.needs("helm")
def test_parameters_of_a_chart_are_those_of_helm(fleet: Fleet) -> None:
    chart = {
        "apps/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        "apps/web/values.yaml": "a: base\nnum: 1\n",
        "apps/web/values.schema.json": '{"properties": {"num": {"type": "integer"}}}',
        "apps/web/templates/map.yaml": (
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata: {a: '{{ .Values.a | toJson }}', f: '{{ .Values.f }}'}\n"
        ),
        "apps/web/text.txt": "from a file",
        "fleet/maps.yaml": POLICY.replace("name: all", "name: maps").replace("apps/v1", "v1").replace("Deployment", "ConfigMap"),
    }
    values = {"{x,y}": ["x", "y"], "{}": [""], "a,b": "a,b", "null": None, "true": True, "007": "007", "C:\\\\x": "C:\\x"}
    for hour, (text, expected) in enumerate(values.items()):
        options = (
            f"helm: {{skipSchemaValidation: true, fileParameters: [{{name: f, path: text.txt}}], "
            f"parameters: [{{name: a, value: '{text}'}}, {{name: num, value: many}}]}}"
        )
        fleet.commit(
            {**LAYOUT, **chart, "argo/web.yaml": application(options), "apps/web/deployment.yaml": "# nothing\n"}, hour=hour
        )
        assert findings(fleet.reconcile(hour=hour)) == []
        data = fleet.load("clusters/one/shop/configmap-web.yaml")["data"]
        assert (json.loads(data["a"]), data["f"]) == (expected, "from a file")


@pytest.mark.needs("helm")
def test_templates_of_a_chart_that_an_application_renders_are_no_errors(fleet: Fleet) -> None:
    chart = {
        "apps/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        "apps/web/templates/web.yaml": DEPLOYMENT,
        "apps/web/charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n",
        "apps/web/charts/db/templates/db.yaml": DEPLOYMENT.replace("name: web", "name: db", 1),
        "apps/web/deployment.yaml": "# nothing\n",
    }
    fleet.commit({**LAYOUT, **chart})
    assert findings(fleet.reconcile()) == []
    assert placed(fleet) == ["clusters/one/shop/deployment-db.yaml", "clusters/one/shop/deployment-web.yaml"]
    fleet.commit({"argo/web.yaml": "# nothing\n"}, hour=1)
    assert [finding.code for finding in findings(fleet.reconcile(hour=1)) if finding.severity == "error"] == ["chart-template"] * 2
