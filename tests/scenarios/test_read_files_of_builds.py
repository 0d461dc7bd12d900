"""A change of any file that a build reads takes effect in a run that continues the last one, as it does in one without caches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from .conftest import Fleet, cluster
from .test_argo_paths import application
from .test_flux_paths import kustomization
from .test_lost_files_of_builds import BUNDLES, POLICY

FLEET = {"fleet/one.yaml": cluster("one"), "fleet/policy.yaml": POLICY, "more/a.yaml": "", "more/b.yaml": "", "more/c.yaml": ""}
"""Where few of the files change, only these are read again."""
DATA = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: shop}\ndata: {%s}\n"
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\ndescription: was\n",
    "values.yaml": "own: was\n",
    "values.schema.json": '{"properties": {"own": {"enum": ["was", "is"], "title": "was"}}}',
    "files/text.txt": "was\n",
    "templates/_names.tpl": '{{- define "named" }}was{{ end }}\n',
    "templates/map.yaml": DATA
    % (
        "web",
        'a: was, b: "{{ .Values.own }}", c: "{{ .Values.other }}", d: {{ .Files.Get "files/text.txt" | quote }}, '
        'e: {{ include "named" . }}, f: {{ .Chart.Description }}',
    ),
    "charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
    "charts/sub/values.yaml": "sub: was\nmore: was\n",
    "charts/sub/templates/map.yaml": DATA % ("sub", 'a: "{{ .Values.sub }}", b: "{{ .Values.more }}"'),
}
DIRECTORY = {
    "kustomization.yaml": (
        "resources: [map.yaml, ../base]\ncomponents: [../component]\npatches: [{path: patch.yaml}]\nnamespace: shop\n"
        "configMapGenerator: [{name: made, files: [text.yaml, plain.txt], envs: [values.env], options: {disableNameSuffixHash: true}}]\n"
        "replacements: [{path: replacement.yaml}]\ncommonAnnotations: {a: was}\n"
    ),
    "map.yaml": DATA % ("web", "a: was, b: x, c: x, d: x"),
    "patch.yaml": DATA % ("web", "b: was"),
    "text.yaml": "a: was\n",
    "plain.txt": "was\n",
    "values.env": "a=was\n",
    "replacement.yaml": (
        "# was\nsource: {kind: ConfigMap, name: base, fieldPath: data.src}\n"
        "targets: [{select: {kind: ConfigMap, name: web}, fieldPaths: [data.d]}]\n"
    ),
    "../base/kustomization.yaml": "resources: [map.yaml]\ncommonAnnotations: {b: was}\n",
    "../base/map.yaml": DATA % ("base", "src: was, other: x"),
    "../component/kustomization.yaml": (
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: [{path: patch.json, target: {name: web}}]\n"
    ),
    "../component/patch.json": '[{"op": "replace", "path": "/data/c", "value": "was"}]',
}
OTHER_VALUES = {"values/other.yaml": "other: was\n"}
SUBSTITUTED = {
    "fleet/values.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vars, namespace: flux-system}\ndata: {V: was}\n"
}
VARIABLES = "postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}"


def below(directory: str, files: Mapping[str, str]) -> dict[str, str]:
    """Return files at their paths below a directory, of which `../` leads to its neighbours."""
    parent = directory.rpartition("/")[0]
    return {(f"{parent}/{path[3:]}" if path.startswith("../") else f"{directory}/{path}"): text for path, text in files.items()}


def bundle(spec: str) -> dict[str, str]:
    document = "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: web, namespace: shop}\n"
    return {"fleet/bundle.yaml": f"{document}spec: {spec}\n", "fleet/policy.yaml": BUNDLES.replace("default", "shop")}


INFLATED = {
    **DIRECTORY,
    "kustomization.yaml": (
        f"{DIRECTORY['kustomization.yaml']}generators: [made.yaml]\nconfigurations: [fields.yaml]\n"
        "helmCharts: [{name: sub, releaseName: r, valuesFile: values.yaml}]\n"
    ),
    "made.yaml": (
        "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: other}\nliterals: [a=was]\n"
        "options: {disableNameSuffixHash: true}\n"
    ),
    "fields.yaml": "# was\ncommonAnnotations: [{path: metadata/annotations, create: true}]\n",
    "values.yaml": "sub: was\n",
    **{path: text for path, text in CHART.items() if path.startswith("charts/sub/")},
}
URL = "https://github.com/acme/fleet"
REFERENCES = (
    "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web, namespace: argocd}\nspec:\n  project: default\n  sources:\n"
    f"  - {{repoURL: '{URL}', path: charts/web, targetRevision: HEAD, helm: {{valueFiles: [$values/values/other.yaml]}}}}\n"
    f"  - {{repoURL: '{URL}', ref: values, targetRevision: HEAD}}\n"
    "  destination: {server: 'https://kubernetes.default.svc', namespace: shop}\n"
)
GENERATED = f"""
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: web, namespace: argocd}}
spec:
  goTemplate: true
  generators: [{{git: {{repoURL: '{URL}', revision: HEAD, files: [{{path: 'config/*.yaml'}}, {{path: 'config/*.json'}}]}}}}]
  template:
    metadata: {{name: '{{{{.name}}}}'}}
    spec:
      project: default
      source:
        repoURL: '{URL}'
        path: '{{{{.directory}}}}'
        targetRevision: HEAD
        kustomize: {{namePrefix: '{{{{.name}}}}-', commonAnnotations: {{c: '{{{{.text}}}}'}}}}
      destination: {{server: 'https://kubernetes.default.svc', namespace: shop}}
"""
LAYOUTS = {
    "chart of an Application": {
        **below("charts/web", CHART),
        **OTHER_VALUES,
        "tool.yaml": application("helm: {valueFiles: [values.yaml, ../../values/other.yaml]}", path="charts/web"),
    },
    "chart of a Bundle": {
        **below("charts/web", CHART),
        **OTHER_VALUES,
        **bundle("{path: charts/web, helm: {valuesFiles: [values/other.yaml]}}"),
    },
    "kustomization of an Application": {**below("apps/web", DIRECTORY), "tool.yaml": application("", path="apps/web")},
    "kustomization of Flux": {
        **below("apps/web", {**DIRECTORY, "map.yaml": DIRECTORY["map.yaml"].replace("b: x", "b: x, e: '${V}'")}),
        **SUBSTITUTED,
        "tool.yaml": kustomization(VARIABLES, path="./apps/web"),
    },
    "kustomization of a Bundle": {**below("apps/web", DIRECTORY), **bundle("{path: apps/web}")},
    "references of an Application": {**below("charts/web", CHART), **OTHER_VALUES, "tool.yaml": REFERENCES},
    "files of an ApplicationSet": {
        **below("apps/web", DIRECTORY),
        "config/a.yaml": "name: a\ndirectory: apps/web\ntext: was\n",
        "config/b.json": '{"name": "b", "directory": "apps/web", "text": "was"}',
        "tool.yaml": GENERATED,
    },
    "chart that a Bundle inflates": {**below("apps/web", INFLATED), **bundle("{path: apps/web}")},
    "root of the settings": {
        **below("apps/web", INFLATED),
        "gitsched.yaml": (
            "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {source: {kustomize: {build: [apps/web]}}}\n"
        ),
    },
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_each_file_that_a_build_reads_takes_effect(fleet: Fleet, tmp_path: Path, name: str) -> None:
    files = {**FLEET, **LAYOUTS[name]}
    fleet.commit(files)
    assert not [finding for finding in fleet.reconcile().plan.findings if finding.severity == "error"]
    read = [path for path, text in files.items() if "was" in text]
    assert len(read) >= 8
    for hour, path in enumerate(read, 1):
        fleet.commit({path: files[path].replace("was", "is")}, hour=hour)
        complete = fleet.preview(hour, cache=tmp_path / str(hour))
        run = fleet.reconcile(hour)
        assert (run.tree, run.plan.findings) == (complete.tree, complete.plan.findings), path
        assert run.changed or path.endswith(("values.schema.json", "replacement.yaml", "fields.yaml")), path
