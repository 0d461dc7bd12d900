"""How Argo CD builds a source of an Application, option by option."""

from __future__ import annotations

from typing import Any

import pytest

from gitsched.build.argo_cd import list_sources, make_argo_recipe
from gitsched.build.argo_kustomize import EditError, edit_kustomization, set_images
from gitsched.build.commit_files import SYMLINK_MODE
from gitsched.build.path_recipe import PathRecipe

from .test_delivery_tools import COMMIT, Files


def make(source: dict[str, Any], files: dict[str, bytes], namespace: str = "shop") -> PathRecipe:
    application = {"metadata": {"name": "web"}, "spec": {"project": "p", "destination": {"namespace": namespace}}}
    return make_argo_recipe(application, {"repoURL": "own", "path": "web", **source}, Files(files), lambda _: None)  # type: ignore[arg-type]


NGINX = [{"name": "nginx", "newName": "mirror/nginx", "newTag": "1.27"}]


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("nginx:1.29", {"newTag": "1.29"}),
        ("nginx=*:1.29", {"newName": "mirror/nginx", "newTag": "1.29"}),
        ("nginx=other:*", {"newName": "other", "newTag": "1.27"}),
        ("nginx=:1.29", {"newTag": "1.29"}),
        ("nginx=other", {"newName": "other"}),
        ("nginx@sha256:ab", {"digest": "sha256:ab"}),
        ("nginx:1.29@sha256:ab", {"newTag": "1.29", "digest": "sha256:ab"}),
        ("nginx=host:5000/n:2", {"newName": "host:5000/n", "newTag": "2"}),
        ("nginx=host:5000/n", {"newName": "host:5000/n"}),
    ],
)
def test_images_are_set_as_kustomize_edit_sets_them(argument: str, expected: dict[str, str]) -> None:
    assert set_images(NGINX, [argument]) == [{"name": "nginx", **expected}]


def test_other_images_stay_and_all_are_sorted() -> None:
    last = {"name": "z", "newTag": "1"}
    assert set_images([last, *NGINX], ["a=*:2"]) == [{"name": "a", "newTag": "2"}, *NGINX, last]


LABELS = {"commonLabels": {"app": "old"}, "labels": [{"pairs": {"tier": "a"}}]}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"commonLabels": {"app": "new"}}, "app is in commonLabels"),
        ({"commonLabels": {"app": "new"}, "forceCommonLabels": True}, {"commonLabels": {"app": "new"}}),
        ({"commonLabels": {"team": "x"}}, {"commonLabels": {"app": "old", "team": "x"}}),
        ({"commonLabels": {"tier": "b"}, "labelWithoutSelector": True}, "tier is in labels"),
        (
            {"commonLabels": {"tier": "b"}, "labelWithoutSelector": True, "forceCommonLabels": True},
            {"labels": [{"pairs": {"tier": "b"}}]},
        ),
        (
            {"commonLabels": {"tier": "b"}, "labelWithoutSelector": True, "labelIncludeTemplates": True},
            {"labels": [{"pairs": {"tier": "a"}}, {"pairs": {"tier": "b"}, "includeTemplates": True}]},
        ),
        ({"commonLabels": {"x": "b"}, "labelIncludeTemplates": True}, "needs labelWithoutSelector"),
        ({"commonLabels": {"of": "$ARGOCD_APP_NAME"}, "commonAnnotations": {"of": "$x"}}, {"commonAnnotations": {"of": "$x"}}),
        (
            {"commonAnnotations": {"of": "${ARGOCD_APP_NAME}$$"}, "commonAnnotationsEnvsubst": True},
            {"commonAnnotations": {"of": "web$"}},
        ),
        ({"images": ["nginx"]}, "neither a tag"),
        ({"replicas": [{"name": "web", "count": "many"}]}, "is not a number"),
        ({"replicas": [{"name": "web", "count": "3"}]}, {"replicas": [{"name": "web", "count": 3}]}),
        ({"components": ["../pl*", "../apps"]}, {"components": ["../plain", "../apps"]}),
    ],
)
def test_a_kustomization_is_edited_as_argo_cd_edits_it(options: dict[str, Any], expected: dict[str, Any] | str) -> None:
    body: dict[str, Any] = {"commonLabels": {"app": "old"}, "labels": [{"pairs": {"tier": "a"}}]}
    if isinstance(expected, str):
        with pytest.raises(EditError, match=expected):
            edit_kustomization(options, body, "chart", COMMIT, {"ARGOCD_APP_NAME": "web"})  # type: ignore[arg-type]
        return
    edit_kustomization(options, body, "chart", COMMIT, {"ARGOCD_APP_NAME": "web"})  # type: ignore[arg-type]
    assert {name: body[name] for name in expected} == expected


def test_the_sources_are_what_the_hydrator_renders_before_all_others() -> None:
    dry = {"repoURL": "own", "path": "dry"}
    assert list_sources({"spec": {"sourceHydrator": {"drySource": dry}, "sources": [{"path": "lost"}]}}) == [dry]
    assert list_sources({"spec": {"sources": [{"path": "a"}], "source": {"path": "lost"}}}) == [{"path": "a"}]


CHART = {"web/Chart.yaml": b"name: web\n"}
KUSTOMIZED = {"web/kustomization.yaml": b"resources: []\n"}


@pytest.mark.parametrize(
    ("source", "files", "expected"),
    [
        ({}, CHART, "chart"),
        ({}, KUSTOMIZED, "kustomization"),
        ({}, {**CHART, **KUSTOMIZED}, "kustomization"),
        ({"helm": {"skipCrds": True}}, {**CHART, **KUSTOMIZED}, "chart"),
        ({"helm": {}}, {**CHART, **KUSTOMIZED}, "kustomization"),
        ({"directory": {"recurse": True}}, CHART, "directory"),
        ({"directory": {"recurse": False}}, CHART, "chart"),
        ({"kustomize": {"labelWithoutSelector": True}}, CHART, "chart"),
    ],
)
def test_a_source_is_of_the_kind_that_argo_cd_finds(source: dict[str, Any], files: dict[str, bytes], expected: str) -> None:
    recipe = make(source, files)
    assert recipe.problem == ""
    found = "chart" if recipe.chart else "kustomization" if recipe.path in files else "directory"
    assert found == expected


@pytest.mark.parametrize(
    ("source", "namespace", "reason"),
    [
        ({"helm": {"releaseName": "a"}, "kustomize": {"namePrefix": "b"}}, "shop", "of several kinds"),
        ({"plugin": {}}, "shop", "plugin"),
        ({}, "<no value>", "not a valid namespace"),
        ({"helm": {"values": "- a"}}, "shop", "not a mapping"),
        ({"helm": {"valueFiles": ["envs/*.yaml"]}}, "shop", "no file matches"),
        ({"helm": {"valueFiles": ["https://example.com/a.yaml"]}}, "shop", "on another server"),
        ({"helm": {"valueFiles": ["/*b"]}}, "shop", "its values files /*b match the directory web, at which helm fails"),
        ({"helm": {"valueFiles": ["{a,b/*.yaml"]}}, "shop", "the pattern {a,b/*.yaml of its values files is not valid: correct it"),
        (
            {"helm": {"valueFiles": ["envs/[a.yaml"]}},
            "shop",
            "the pattern envs/[a.yaml of its values files is not valid: correct it",
        ),
        ({"helm": {"valueFiles": ["*{a,b}" * 20]}}, "shop", "needs more than 10,000 steps: correct it"),
        ({"helm": {"valueFiles": ["*/" * 201]}}, "shop", "has more than 200 parts: correct it"),
        ({"helm": {"kubeVersion": "1"}}, "shop", "its kubeVersion '1' is not a version of Kubernetes: correct it"),
        ({"helm": {"parameters": [{"name": "a", "value": "$ARGOCD_APP_REVISION"}]}}, "shop", "changes with each commit"),
    ],
)
def test_what_cannot_be_built_has_its_reason(source: dict[str, Any], namespace: str, reason: str) -> None:
    assert reason in make(source, CHART, namespace).problem


def test_values_files_are_those_that_patterns_match_in_order() -> None:
    files = {**CHART, **{f"web/envs/{name}.yaml": b"" for name in ("b", "a", "x/c")}, "shared.yaml": b""}
    helm = {
        "valueFiles": ["envs/**/*.yaml", "envs/a.yaml", "/shared.yaml", "missing.yaml", "no/*"],
        "ignoreMissingValueFiles": True,
    }
    chart = make({"helm": helm}, files).chart
    assert chart is not None
    assert chart.values_files == ("web/envs/b.yaml", "web/envs/x/c.yaml", "web/envs/a.yaml", "shared.yaml")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("envs/**/*.yaml", "m z a/x a/n/y a-b/x"),  # a directory before what is in it
        ("envs/**/a*/*.yaml", "a/x a-b/x"),
        ("envs/**/[!y].yaml", "m z a/x a-b/x"),
        ("envs/{z,m,a/*}.yaml*", "a/x m z"),
        ("envs/{a,{z,m}*}{.yaml,/x.yaml}", "a/x m z"),
        ("envs/a**.yaml", ""),
        ("envs/?/*.yaml", "a/x"),
        ("env\\s/[m-z].yaml", "m z"),
        ("/web/*/../envs/[^m].yaml", "z"),
    ],
)
def test_values_files_that_a_pattern_matches_have_the_order_of_argo_cd(pattern: str, expected: str) -> None:
    files = {**CHART, **{f"web/envs/{name}.yaml": b"" for name in ("z", "m", "a/x", "a/n/y", "a-b/x")}}
    chart = make({"helm": {"valueFiles": [pattern], "ignoreMissingValueFiles": True}}, files).chart
    assert chart is not None
    assert chart.values_files == tuple(f"web/envs/{name}.yaml" for name in expected.split())


@pytest.mark.parametrize(
    ("written", "passed"),
    [
        ("", ""),
        ("1.30", "1.30"),
        ("v1.30.4", "1.30.4"),
        ("v1.30.4-eks-ab", "1.30.4"),
        ("1.30.4+gke.1", "1.30.4"),
        ("1.030.4.5", "1.30.4.5"),
    ],
)
def test_the_version_of_kubernetes_is_passed_without_what_a_provider_adds(written: str, passed: str) -> None:
    chart = make({"helm": {"kubeVersion": written}}, CHART).chart
    assert chart is not None
    assert chart.kube_version == passed


def test_parameters_are_passed_as_argo_cd_passes_them() -> None:
    parameters = [
        {"name": "hosts", "value": "{a,b}"},
        {"name": "text", "value": "a,b\\,c"},
        {"name": "id", "value": "1", "forceString": True},
        {"name": "of", "value": "$ARGOCD_APP_NAMESPACE"},
        {"name": "text", "value": "c,d"},
    ]
    helm = {"parameters": parameters, "fileParameters": [{"name": "file", "path": "a.txt"}], "skipSchemaValidation": True}
    chart = make({"helm": helm}, {**CHART, "web/a.txt": b""}).chart
    assert chart is not None
    assert (chart.sets, chart.text_sets) == (("hosts={a,b}", "of=shop", "text=c\\,d"), ("id=1",))
    assert (chart.file_sets, chart.checks_schema) == ((("file", "web/a.txt"),), False)


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        (b"kind: A\n", True),
        (b"a: b\n---\nkind: A\n", False),
        (b"- a\n", False),
        (b"text\n", False),
        (b"# nothing\n", False),
        (b"---\n---\nkind: A\n", True),
        (b"extends: default\nrules: {}\n", False),
        (b"apiVersion: v1\nkind:\nmetadata: {name: a}\n", True),
        (b"kind: [\n", False),
    ],
)
def test_files_about_something_else_are_no_manifests(text: bytes, is_read: bool) -> None:
    recipe = make({}, {"web/a.yaml": b"kind: B\n", "web/other.yaml": text})
    assert (b"other.yaml" in recipe.kustomization) is is_read


@pytest.mark.parametrize(
    ("pattern", "matching"),
    [
        ("*", "ab.yaml b.yaml c.yaml s/ab.yaml"),
        ("*b.yaml", "ab.yaml b.yaml s/ab.yaml"),
        ("?.yaml", "b.yaml c.yaml"),
        ("s?ab.yaml", "s/ab.yaml"),
        ("{b,c}.yaml", "b.yaml c.yaml"),
        ("{a,}b.yaml", "ab.yaml b.yaml"),
        ("{s/*,{a,}b}*", "ab.yaml b.yaml s/ab.yaml"),
        ("{b.yaml,c", "b.yaml"),
        ("b.yaml}", ""),
        ("[!b]*", "ab.yaml c.yaml s/ab.yaml"),
        ("[^b].yaml", "b.yaml"),
        ("[b-c].yaml", "b.yaml c.yaml"),
        ("[bc].yaml", "b.yaml c.yaml"),
        ("[a-bc].yaml", ""),
        ("[c-b].yaml", ""),
        ("[].yaml", ""),
        ("[b", ""),
        ("\\b.yaml", "b.yaml"),
        ("b.yaml\\", "b.yaml"),
        ("\\*", ""),
        ("true", ""),
        ("{" * 500 + "b.yaml", "b.yaml"),
        ("{a,b}" * 50, ""),
    ],
)
def test_manifests_are_included_and_excluded_by_patterns_of_gobwas(pattern: str, matching: str) -> None:
    names = {"ab.yaml", "b.yaml", "c.yaml", "s/ab.yaml"}
    files = {f"web/{name}": b"kind: A\n" for name in names}
    for option, expected in (("include", {*matching.split()}), ("exclude", names - {*matching.split()})):
        recipe = make({"directory": {"recurse": True, option: pattern}}, files)
        assert {name for name in names if f'"{name}"'.encode() in recipe.kustomization} == expected


def test_links_are_read_as_the_manifests_to_which_they_lead() -> None:
    links = {"web/a.yaml": b"../shared/a.yaml", "web/b.yaml": b"../missing.yaml", "web/c.yaml": b"../shared"}
    commit = Files({"shared/a.yaml": b"kind: A\n", **links})
    commit.entries |= {path: (path, SYMLINK_MODE) for path in links}
    application = {"metadata": {"name": "web"}, "spec": {"destination": {"namespace": "shop"}}}
    recipe = make_argo_recipe(application, {"path": "web"}, commit, lambda _: None)  # type: ignore[arg-type]
    assert (recipe.kustomization, recipe.problem) == (b'resources: ["a.yaml"]\n', "")
    commit._files = {**commit._files, "web/b.yaml": b"../../other/b.yaml"}
    recipe = make_argo_recipe(application, {"path": "web"}, commit, lambda _: None)  # type: ignore[arg-type]
    assert recipe.problem == "web/b.yaml is a link that leads out of the repository: commit a file"


@pytest.mark.parametrize(
    ("text", "problem", "excluded"),
    [
        (b"directory: {exclude: b.yaml}\n", "", True),
        (b"# nothing\n", "", False),
        (b"{}\n", "", False),
        (b"path: other\ndirectory: null\n", "", False),
        (
            b"directory: {exclude: true}\n",
            "changes it to what Argo CD cannot read: 'exclude' must be a string, not true; quote it",
            False,
        ),
        (b"directory: {recurse: yes please}\n", "changes it to what Argo CD cannot read: 'recurse' must be true or false", False),
        (b"helm: {skipSchemaValidation: 'true'}\n", "'skipSchemaValidation' must be true or false, not \"true\"", False),
        (b"- directory\n", "web/.argocd-source-web.yaml is not a mapping in YAML: correct it", False),
        (b"directory: {exclude: [\n", "web/.argocd-source-web.yaml is not a mapping in YAML: correct it", False),
    ],
)
def test_a_file_that_overrules_a_source_has_what_argo_cd_can_read(text: bytes, problem: str, excluded: bool) -> None:
    files = {"web/a.yaml": b"kind: A\n", "web/b.yaml": b"kind: A\n", "web/.argocd-source-web.yaml": text}
    recipe = make({}, files)
    assert problem in recipe.problem
    assert bool(recipe.problem) is bool(problem)
    assert (b"b.yaml" not in recipe.kustomization) is excluded


@pytest.mark.parametrize(
    ("options", "variable"),
    [
        ({"images": ["a:$ARGOCD_APP_REVISION"]}, "ARGOCD_APP_REVISION"),
        ({"images": ["a:${ARGOCD_APP_REVISION_SHORT_8}"]}, "ARGOCD_APP_REVISION_SHORT_8"),
        ({"commonLabels": {"rev": "$ARGOCD_APP_REVISION_SHORT"}}, "ARGOCD_APP_REVISION_SHORT"),
        ({"commonAnnotations": {"rev": "$ARGOCD_APP_REVISION"}, "commonAnnotationsEnvsubst": True}, "ARGOCD_APP_REVISION"),
        ({"commonAnnotations": {"rev": "$ARGOCD_APP_REVISION", "app": "$ARGOCD_APP_NAME"}}, ""),
        ({"patches": [{"patch": "[{op: add, path: /a, value: $ARGOCD_APP_NAME}]"}]}, ""),
    ],
)
def test_a_variable_of_the_commit_is_a_problem_where_argo_cd_replaces_it(options: dict[str, Any], variable: str) -> None:
    recipe = make({"kustomize": options}, {"web/kustomization.yaml": b"resources: [a.yaml]\n"})
    assert recipe.problem == (f"it uses {variable}, which changes with each commit: write the value" if variable else "")
    assert variable or b"$ARGOCD_APP_NAME" in recipe.kustomization  # Argo CD leaves it as it is
