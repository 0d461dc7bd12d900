"""How Argo CD builds a source of an Application, option by option."""

from __future__ import annotations

from typing import Any

import pytest

from gitsched.build.argo_cd import list_sources, make_argo_recipe
from gitsched.build.argo_kustomize import EditError, edit_kustomization, set_images
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
