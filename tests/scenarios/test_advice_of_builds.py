"""Advice about directories that Flux, Argo CD and kustomize build is carried out as it is printed, all of it in one repository.

Each case has a directory and a ConfigMap of its name. Its files lead to a finding with an advice; then the advice is followed literally:
the finding is gone, nothing else is found, and the ConfigMap is delivered.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from gitsched.reconcile import RunResult

from .advice_texts import list_advice
from .conftest import Fleet, cluster, policy

ROOT = Path(__file__).parents[2]
URL = "https://github.com/acme/fleet"
Files = Mapping[str, str | None]


class Case(NamedTuple):
    """`files` lead to a finding with `phrase`. When `follow` is committed, the finding is gone and the ConfigMap `name` is delivered. Paths
    are below the directory of the case; `settings` are lines of `source` in gitsched.yaml, before and after."""

    phrase: str
    files: Files
    follow: Files
    name: str = ""
    settings: tuple[str, str] = ("", "")


def config_map(name: str, namespace: str = "", data: str = "{a: b}") -> str:
    place = f", namespace: {namespace}" if namespace else ""
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}{place}}}\ndata: {data}\n"


def application(name: str, source: str = "", namespace: str = "shop", path: str = "") -> str:
    return (
        f"apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  project: default\n"
        f"  source: {{repoURL: '{URL}', path: {path or name}/app, {source}}}\n"
        f"  destination: {{server: 'https://kubernetes.default.svc', namespace: {namespace}}}\n"
    )


def application_set(name: str, spec: str, namespace: str, path: str = "", more: str = "") -> str:
    return (
        f"apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n{spec}"
        f"  template:\n    metadata: {{name: {name}}}\n    spec:\n      project: default\n"
        f"      source: {{repoURL: '{URL}', path: '{path or name}/app'}}\n"
        f"      destination: {{server: 'https://kubernetes.default.svc', namespace: '{namespace}'}}\n{more}"
    )


def flux(name: str, more: str = "", source: str = "GitRepository", path: str = "", called: str = "flux-system") -> str:
    return (
        f"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}, namespace: flux-system}}\nspec:\n"
        f"  path: {path or f'./{name}/app'}\n  prune: true\n  interval: 1m\n  targetNamespace: shop\n"
        f"  sourceRef: {{kind: {source}, name: {called}}}\n{more}"
    )


def argo(name: str, phrase: str, source: str, cure: str, files: Files | None = None, follow: Files | None = None) -> Case:
    """Return the case of an Application with options of its source, and the options that the advice leads to."""
    before = {"tool.yaml": application(name, source), "app/a.yaml": config_map(name), **(files or {})}
    return Case(phrase, before, {"tool.yaml": application(name, cure), **(follow or {})})


def helm(name: str, phrase: str, options: str, cure: str, files: Files | None = None, follow: Files | None = None) -> Case:
    """Return the case of an Application with a chart."""
    chart = {
        "app/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n",
        "app/a.yaml": None,
        "app/templates/a.yaml": config_map(name),
    }
    chart |= {"app/values.yaml": "{}\n"}
    return argo(name, phrase, f"helm: {{{options}}}", f"helm: {{{cure}}}" if cure else "", {**chart, **(files or {})}, follow)


def kustomize(name: str, phrase: str, kustomization: str, cure: Files, files: Files | None = None) -> Case:
    """Return the case of a Flux Kustomization of a kustomization."""
    before = {"tool.yaml": flux(name), "app/kustomization.yaml": kustomization, "app/a.yaml": config_map(name), **(files or {})}
    return Case(phrase, before, cure)


def substitute(
    name: str, phrase: str, text: str, cure: str, post_build: str = "", more: str = "", after: str | None = None
) -> Case:
    """Return the case of a variable in a ConfigMap; `after` are the lines of the Kustomization that the advice leads to."""
    resources = "resources: [a.yaml]\n"
    files = {"tool.yaml": flux(name, post_build), "app/kustomization.yaml": resources, "app/a.yaml": config_map(name, data=text)}
    tool = {"tool.yaml": flux(name, after)} if after is not None else {}
    return Case(phrase, {**files, **({"app/more.yaml": more} if more else {})}, {**tool, "app/a.yaml": config_map(name, data=cure)})


def source_field(name: str, phrase: str, field: str, kind: str = "GitRepository") -> Case:
    """Return the case of a field of a source of Flux, which the advice removes."""
    head = f"apiVersion: source.toolkit.fluxcd.io/v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: flux-system}}\nspec:\n"
    required = f"  url: {URL}\n" if kind == "GitRepository" else "  bucketName: fleet\n  endpoint: example.com\n"
    files = {"tool.yaml": flux(name, source=kind, called=name), "app/a.yaml": config_map(name)}
    text = f"{head}{required}  interval: 1m\n"
    return Case(phrase, {**files, "source.yaml": f"{text}  {field}\n"}, {"source.yaml": text})


LIST = "  generators: [{list: {elements: [{ns: shop, app: x, nr: '1'}]}}]\n"
GO = "  goTemplate: true\n"
SUB = "apiVersion: v2\nname: sub\nversion: 1.0.0\n"
UMBRELLA = "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies: [{name: sub, version: 1.0.0, repository: 'https://charts.example.com'}]\n"
OTHER_URL = "https://github.com/acme/other"
CONFIG = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n  source:\n    strict: false\n"

CASES: dict[str, Case] = {
    "namespace": Case(
        "is not a valid namespace: correct spec.destination.namespace",
        {"tool.yaml": application("namespace", namespace="Shop_1"), "app/a.yaml": config_map("namespace")},
        {"tool.yaml": application("namespace")},
    ),
    "plugin": argo("plugin", "built by a plugin, which gitsched does not run: commit what it prints", "plugin: {name: tanka}", ""),
    "kinds": argo(
        "kinds",
        "it is of several kinds (kustomize, directory), and Argo CD applies nothing of it: leave one",
        "kustomize: {namePrefix: x-}, directory: {recurse: true}",
        "directory: {recurse: true}",
    ),
    "excluded": argo(
        "excluded",
        "leave it out with directory.exclude",
        "directory: {recurse: true}",
        "directory: {recurse: true, exclude: kustomization.yaml}",
        {"app/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n"},
    ),
    "environment": argo(
        "environment",
        "it uses ARGOCD_APP_REVISION, which changes with each commit: write the value",
        "kustomize: {images: ['a:$ARGOCD_APP_REVISION'], namePrefix: own-}",
        "kustomize: {images: ['a:1'], namePrefix: own-}",
        {"app/kustomization.yaml": "resources: [a.yaml]\n"},
    )._replace(name="own-environment"),
    "override": argo(
        "override",
        ".argocd-source-override.yaml is not a mapping in YAML: correct it",
        "",
        "",
        {"app/.argocd-source-override.yaml": "- directory\n"},
        {"app/.argocd-source-override.yaml": "directory: {recurse: false}\n"},
    ),
    "invalid-pattern": helm(
        "invalid-pattern",
        "the pattern envs/[a of its values files is not valid: correct it",
        "valueFiles: ['envs/[a']",
        "valueFiles: [values.yaml]",
    ),
    "values-directory": helm(
        "values-directory",
        "at which helm fails: name files only, such as *.yaml",
        "valueFiles: ['t*']",
        "valueFiles: ['v*.yaml']",
    ),
    "kubernetes": helm(
        "kubernetes",
        "is not a version of Kubernetes: correct it, such as to 1.35.0",
        "kubeVersion: latest",
        "kubeVersion: 1.35.0",
    ),
    "jsonnet": argo(
        "jsonnet",
        "a.jsonnet is Jsonnet, which gitsched does not run: commit what it prints",
        "",
        "",
        {"app/a.yaml": config_map("none"), "app/a.jsonnet": "{}\n"},
        {"app/a.jsonnet": None, "app/a.yaml": None, "app/printed.yaml": config_map("jsonnet")},
    ),
    "no-options": argo(
        "no-options",
        "the image '' has neither a tag, nor a digest, nor another name",
        "kustomize: {images: ['']}",
        "kustomize: {images: ['a:1']}",
        {"app/kustomization.yaml": "resources: [a.yaml]\n"},
    ),
    "revision": helm(
        "revision",
        "it uses ARGOCD_APP_REVISION, which changes with each commit: write the value",
        "parameters: [{name: a, value: $ARGOCD_APP_REVISION}]",
        "parameters: [{name: a, value: b}]",
    ),
    "root": helm(
        "root",
        "a parameter has {root}, which gitsched cannot pass to helm: write it in values",
        "parameters: [{name: a, value: '{root}'}]",
        "values: 'a: \"{root}\"'",
    ),
    "values": helm("values", "its values are not a mapping in YAML: correct them", "values: '[1]'", "values: 'a: 1'"),
    "server": helm(
        "server",
        "its values file https://example.com/v.yaml is on another server: commit it",
        "valueFiles: ['https://example.com/v.yaml']",
        "valueFiles: [v.yaml]",
        follow={"app/v.yaml": "a: 1\n"},
    ),
    "reference": helm(
        "reference",
        "its values file $other/v.yaml is in another repository: commit it here",
        "valueFiles: [$other/v.yaml]",
        "valueFiles: [v.yaml]",
        follow={"app/v.yaml": "a: 1\n"},
    ),
    "outside": helm(
        "outside",
        "is outside of the repository: it is not read",
        "valueFiles: ['../../../v.yaml']",
        "valueFiles: [v.yaml]",
        follow={"app/v.yaml": "a: 1\n"},
    ),
    "pattern": helm(
        "pattern",
        "no file matches its values files x-*.yaml: correct the pattern, or set ignoreMissingValueFiles",
        "valueFiles: ['x-*.yaml']",
        "valueFiles: ['v*.yaml']",
    ),
    "ignored-pattern": helm(
        "ignored-pattern",
        "no file matches its values files x-*.yaml: correct the pattern, or set ignoreMissingValueFiles",
        "valueFiles: ['x-*.yaml']",
        "valueFiles: ['x-*.yaml'], ignoreMissingValueFiles: true",
    ),
    "dependency": helm(
        "dependency",
        "run `helm dependency build dependency/app` and commit dependency/app/charts",
        "",
        "",
        {"app/Chart.yaml": UMBRELLA},
        {"app/charts/sub/Chart.yaml": SUB},
    ),
    "random": helm(
        "random",
        "it makes up a value: set that value",
        "",
        "values: 'a: own'",
        {"app/templates/a.yaml": config_map("random", data="{a: {{ .Values.a | default (randAlpha 5) | quote }}}")},
    ),
    "patched": Case(
        "the templatePatch of its ApplicationSet has expressions that gitsched does not evaluate: write it without them",
        {
            "tool.yaml": application_set(
                "patched", GO + LIST, "shop", more="  templatePatch: 'metadata: {labels: {a: {{ randAlpha 3 }}}}'\n"
            ),
            "app/a.yaml": config_map("patched"),
        },
        {"tool.yaml": application_set("patched", GO + LIST, "shop", more="  templatePatch: 'metadata: {labels: {a: abc}}'\n")},
    ),
    "expression": Case(
        "its ApplicationSet has {{ randAlpha 3 }}, and gitsched does not evaluate `randAlpha`: write the value",
        {"tool.yaml": application_set("expression", GO + LIST, "{{ randAlpha 3 }}"), "app/a.yaml": config_map("expression")},
        {"tool.yaml": application_set("expression", GO + LIST, "shop")},
    ),
    "hub": Case(
        "takes {{ .name }} from clusters or servers that this repository does not describe: write the value",
        {
            "tool.yaml": application_set("hub", GO + "  generators: [{clusters: {}}]\n", "{{ .name }}"),
            "app/a.yaml": config_map("hub"),
        },
        {"tool.yaml": application_set("hub", GO + "  generators: [{clusters: {}}]\n", "shop")},
    ),
    "element": Case(
        "the value of nr in its list generator is not a text: quote it, or set goTemplate",
        {"tool.yaml": application_set("element", LIST.replace("'1'", "1"), "{{ns}}"), "app/a.yaml": config_map("element")},
        {"tool.yaml": application_set("element", LIST, "{{ns}}")},
    ),
    "go-element": Case(
        "the value of nr in its list generator is not a text: quote it, or set goTemplate",
        {"tool.yaml": application_set("go-element", LIST.replace("'1'", "1"), "shop"), "app/a.yaml": config_map("go-element")},
        {"tool.yaml": application_set("go-element", GO + LIST.replace("'1'", "1"), "shop")},
    ),
    "directories": Case(
        "Write Applications, or list generators, for these directories; or name this file in source.deliveryTools.ignore",
        {
            "tool.yaml": application_set(
                "directories",
                "  generators: [{scmProvider: {github: {organization: a}}}]\n",
                "shop",
                "directories/{{repository}}",
            ),
            "x/app/a.yaml": config_map("directories", "shop"),
        },
        {"tool.yaml": application_set("directories", LIST, "shop", "directories/{{app}}")},
    ),
    "managed": Case(
        "commit the Namespace with them, and remove this field",
        {
            "tool.yaml": application("managed") + "  syncPolicy: {managedNamespaceMetadata: {labels: {a: b}}}\n",
            "app/a.yaml": config_map("managed"),
        },
        {
            "tool.yaml": application("managed"),
            "space.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {a: b}}\n",
        },
    ),
    "version": argo(
        "version",
        "Argo CD builds with another kustomize, which may print something else: remove this field",
        "kustomize: {version: v4.5.7}",
        "kustomize: {namePrefix: ''}",
        {"app/kustomization.yaml": "resources: [a.yaml]\n"},
    ),
    "ksonnet": argo(
        "ksonnet",
        "the versions of Argo CD that are supported do not render ksonnet: remove this field",
        "ksonnet: {environment: x}",
        "",
    ),
    "template": Case(
        "it is a template of the chart template/chart, whose values say what it is: name the file in source.deliveryTools.ignore, and, if "
        "Argo CD applies what the chart makes of it, commit what `helm template` prints",
        {
            "chart/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n",
            "chart/templates/a.yaml": application("template", namespace='"{{ .Values.namespace }}"'),
            "app/a.yaml": config_map("template"),
        },
        {"tool.yaml": application("template")},
    ),
    "unmade": Case(
        "no ArtifactGenerator of this repository makes the artifact unmade by this name; commit the one that does, or name the directories "
        "of this repository in source.deliveryTools.ignore",
        {"tool.yaml": flux("unmade", source="ExternalArtifact", called="unmade"), "app/a.yaml": config_map("unmade")},
        {
            "generator.yaml": "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: unmade, "
            "namespace: flux-system}\nspec:\n  sources: [{alias: repo, kind: GitRepository, name: flux-system}]\n"
            "  artifacts: [{name: unmade, copy: [{from: '@repo/**', to: '@artifact/'}]}]\n"
        },
    ),
    "versions": argo(
        "versions",
        "charts in the kustomization are rendered for the version of gitsched: remove this field",
        "kustomize: {kubeVersion: v1.30.0}",
        "kustomize: {namePrefix: ''}",
        {"app/kustomization.yaml": "resources: [a.yaml]\n"},
    ),
    "ignore": Case(
        "Flux leaves these paths out of what it applies: remove them from the directory, and this field",
        {"tool.yaml": flux("ignore", "  ignore: ['b.yaml']\n"), "app/a.yaml": config_map("ignore"), "app/b.yaml": config_map("b")},
        {"tool.yaml": flux("ignore"), "app/b.yaml": None},
    ),
    "include": source_field(
        "include",
        "adds files of other sources to its copy of the repository: commit them, and remove this field",
        "include: [{repository: {name: other}}]",
    ),
    "sparse": source_field("sparse", "has only some directories of the repository: remove this field", "sparseCheckout: [sparse]"),
    "submodules": source_field(
        "submodules", "has the files of submodules: commit them, and remove this field", "recurseSubmodules: true"
    ),
    "prefix": source_field(
        "prefix",
        "Flux has only the files with this prefix: remove it, and name the directory in `path` of the Kustomizations",
        "prefix: x/",
        "Bucket",
    ),
    "generated-chart": kustomize(
        "generated-chart",
        "is retired, and gitsched does not render its charts: name them in helmCharts",
        "resources: [a.yaml]\nhelmChartInflationGenerator: [{chartName: sub, releaseName: r, chartHome: ./charts}]\n",
        {
            "app/kustomization.yaml": "resources: [a.yaml]\nhelmGlobals: {chartHome: charts}\nhelmCharts: [{name: sub, releaseName: r}]\n",
            "app/charts/sub/Chart.yaml": SUB,
            "app/charts/sub/values.yaml": "{}\n",
        },
    ),
    "pulled-chart": kustomize(
        "pulled-chart",
        "--version 1.0.0 --untar --untardir pulled-chart/app/charts/sub-1.0.0`, and commit it",
        "resources: [a.yaml]\nhelmCharts: [{name: sub, releaseName: r, repo: 'https://charts.example.com', version: 1.0.0}]\n",
        {
            "app/charts/sub-1.0.0/sub/Chart.yaml": SUB,
            "app/charts/sub-1.0.0/sub/values.yaml": "{}\n",
        },
    ),
    "foreign-plugin": kustomize(
        "foreign-plugin",
        "gitsched runs no programs of others; commit what it generates, or move it to a root of its own",
        "generators: [plugin.yaml]\n",
        {"app/kustomization.yaml": "resources: [a.yaml]\n", "app/plugin.yaml": None},
        {"app/plugin.yaml": "apiVersion: someteam.example.com/v1\nkind: Generator\nmetadata: {name: x}\n"},
    ),
    "base": kustomize(
        "base",
        "append `?ref=` and the 40 digits of a commit id to the URL of the repository, as `git ls-remote",
        "resources: ['https://github.com/acme/base//deploy?ref=main']\n",
        {"app/kustomization.yaml": "resources: [a.yaml]\n"},
    ),
    "name": substitute(
        "name",
        "is not a name of a variable: use letters, digits and _",
        "{a: $SIZE}",
        "{a: '${SIZE_1}'}",
        "  postBuild: {substitute: {SIZE-1: big}}\n",
        after="  postBuild: {substitute: {SIZE_1: big}}\n",
    ),
    "unset": substitute(
        "unset",
        "nothing sets it. Set it in spec.postBuild.substitute",
        "{a: '${SIZE}'}",
        "{a: '${SIZE}'}",
        "  postBuild: {substitute: {OTHER: big}}\n",
        after="  postBuild: {substitute: {SIZE: big}}\n",
    ),
    "default": substitute(
        "default", "write ${SIZE:=default}", "{a: '${SIZE}'}", "{a: '${SIZE:=big}'}", "  postBuild: {substitute: {OTHER: big}}\n"
    ),
    "literal": substitute(
        "literal",
        "or write $${SIZE} for the literal text",
        "{a: '${SIZE}'}",
        "{a: '$${SIZE}'}",
        "  postBuild: {substitute: {OTHER: big}}\n",
    ),
    "missing": substitute(
        "missing",
        "or in a ConfigMap of this repository that substituteFrom names",
        "{a: '${SIZE}'}",
        "{a: '${SIZE}'}",
        "  postBuild: {substituteFrom: [{kind: Secret, name: vars}]}\n",
        after="  postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}\n",
    ),
    "quotes": substitute(
        "quotes",
        "write ${quote}${SIZE}${quote}, and set quote: '\"' in spec.postBuild.substitute",
        "{a: '${SIZE}'}",
        "{a: '${quote}${SIZE}${quote}'}",
        "  postBuild: {substitute: {SIZE: '0123'}}\n",
        after="  postBuild: {substitute: {SIZE: '0123', quote: '\"'}}\n",
    ),
    "artifact": Case(
        "it is not known of which directory of this repository that is: name the directory in source.deliveryTools.roots of gitsched.yaml",
        {
            "tool.yaml": flux("artifact", source="OCIRepository", path="./only"),
            "one/only/a.yaml": config_map("artifact"),
            "two/only/a.yaml": config_map("artifact"),
        },
        {"two/only/a.yaml": "# nothing\n"},
        settings=("", "    deliveryTools: {roots: [artifact/one], ignore: [template/chart/]}\n"),
    ),
}
MORE = {"vars.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vars, namespace: flux-system}\ndata: {SIZE: big}\n"}
CASES["missing"] = CASES["missing"]._replace(follow={**CASES["missing"].follow, **MORE})


def commit(fleet: Fleet, *, follow: bool) -> None:
    maps = policy("one", kind="ConfigMap", name="maps").replace("apps/v1", "v1")
    settings = CONFIG + "".join(case.settings[follow] for case in CASES.values())
    files: dict[str, str | None] = {
        "gitsched.yaml": settings,
        "one.yaml": cluster("one"),
        "maps.yaml": maps.replace("kind: PropagationPolicy", "kind: ClusterPropagationPolicy").replace(
            ", namespace: default}", "}"
        ),
    }
    for name, case in CASES.items():
        for path, text in (case.follow if follow else case.files).items():
            if text is not None or follow:
                files[f"{name}/{path}"] = text
    fleet.commit(files, hour=follow)


def list_messages(run: RunResult) -> dict[str, str]:
    """Return the messages of a run, by the directory of their location."""
    found: dict[str, str] = {}
    for finding in run.plan.findings:
        if finding.severity != "info" and finding.location is not None:
            place = finding.location.path.partition("/")[0]
            found[place] = found.get(place, "") + f"{finding.code}: {' '.join(finding.message.split())}\n"
    return found


@pytest.mark.needs("helm", "kubectl")
def test_advice_about_builds_does_what_it_promises(fleet: Fleet) -> None:
    commit(fleet, follow=False)
    found = list_messages(fleet.preview())
    assert {name: found.get(name) for name, case in CASES.items() if case.phrase not in found.get(name, "")} == {}
    commit(fleet, follow=True)
    found = list_messages(fleet.reconcile(1))
    assert found == {}
    lost = [name for name, case in CASES.items() if not fleet.delivered(f"shop/configmap-{case.name or name}")]
    assert lost == []


# Every advice has a case, or a reason

CARRIED_OUT_ELSEWHERE = {
    "correct the path, or commit what is missing": "tests/scenarios/test_kustomizations.py",
    "and does not build now, stay; correct the error": "tests/scenarios/test_lost_files_of_builds.py",
    "write this URL in one line": "tests/scenarios/test_kustomize_remotes.py",
    "correct the URL, or copy the files": "tests/build/test_remote_base.py",
    "set the text that it returns in a value": "tests/build/test_chart_stability.py",
    "which takes them in the order of their keys": "tests/build/test_chart_stability.py",
    "give it a time, as with": "tests/build/test_chart_stability.py",
    "set a time in a value": "tests/build/test_chart_stability.py",
    "it evaluates a text that makes up a value": "tests/build/test_chart_stability.py",
    "Add an object, or remove the document": "tests/scenarios/test_empty_builds.py",
    "is empty, which kustomize refuses": "tests/scenarios/test_empty_builds.py",
    "leads out of the repository: commit a file": "tests/build/test_argo_cd.py",
    "which is not installed": "a program has to be installed",
    "divide it into several": "tests/build/test_limits_of_builds.py",
    "does not count as this repository": "tests/scenarios/test_bundle_tools.py",
    "source.variants names": "tests/scenarios/bundles.yaml",
    "of source.variants: correct the selector": "tests/scenarios/bundles.yaml",
    "source.kustomize.build names": "tests/scenarios/test_kustomize_builds.py",
    "to an https or ssh URL": "tests/scenarios/test_remote_destinations.py",
    "makes Flux Kustomizations, and gitsched does not read its templates": "tests/scenarios/test_flux_paths.py",
    "because nothing builds this overlay": "tests/scenarios/test_unused_overlays.py",
    "commit the Kustomization itself in place of spec.sync": "tests/scenarios/test_flux_paths.py",
    "include each other more than": "tests/scenarios/test_kustomize_limits.py",
    "write the result into the source": "tests/scenarios/test_kustomizations.py",
    "Commit the object itself, encrypted": "tests/scenarios/test_flux_paths.py",
    "source.kustomize.remotes": "tests/scenarios/test_kustomize_remotes.py",
    "commits of other repositories": "tests/scenarios/test_kustomize_remotes.py",
    "; quote it": "a part of the messages of schemas, which is compared",
    "is not in the cache": "tests/scenarios/test_kustomize_remotes.py",
    "name the directory of that kustomization in source.kustomize.build": "tests/scenarios/test_flux_paths.py",
    "so that no API server accepts it": "tests/scenarios/test_flux_paths.py",
    "copy this base into the repository, with the chart": "tests/scenarios/test_kustomize_remotes.py",
    "in the copy of the repository": "tests/scenarios/test_flux_paths.py",
}
"""Parts of texts that no case prints, with the file of their test or a reason."""
DIRECTORIES = ("gitsched/build", "gitsched/reconcile/builds")


def test_every_advice_about_builds_has_a_case_or_a_reason() -> None:
    phrases = [case.phrase for case in CASES.values()]

    def is_covered(text: str) -> bool:
        if any(part in text for part in CARRIED_OUT_ELSEWHERE):
            return True
        parts = [part.strip(" ;,.:") for part in text.split("{}")]
        return any(part in phrase or phrase in part for phrase in phrases for part in parts if len(part) > 8)

    assert [path for path in CARRIED_OUT_ELSEWHERE.values() if path.startswith("tests/") and not (ROOT / path).exists()] == []
    found = [entry for directory in DIRECTORIES for entry in list_advice(ROOT / directory)]
    assert len(found) > 40
    assert [f"{place}: {text}" for text, place in found if not is_covered(text)] == []
