"""Files that builds read and that cannot be read any more: what was built of them stays where it is, and the finding names the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from .conftest import Fleet, cluster, policy
from .test_argo_paths import application
from .test_flux_paths import findings, kustomization

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: shop}\ndata: {a: b}\n"
POLICY = policy("one").replace("kind: PropagationPolicy", "kind: ClusterPropagationPolicy").replace(", namespace: default}", "}")
POLICY = POLICY.replace("apps/v1", "v1").replace("Deployment", "ConfigMap")
BUNDLE = "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: web, namespace: default}\nspec: {path: apps/web}\n"
BUNDLES = policy("one").replace("apps/v1", "gitsched.io/v1alpha1").replace("Deployment", "Bundle")
VALUES = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vars, namespace: flux-system}\ndata: {HOST: %s}\n"
SUBSTITUTED = "postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}"
COMMON = {"fleet/one.yaml": cluster("one"), "fleet/policy.yaml": POLICY, "apps/web/map.yaml": MAP % "web"}
FLUX = {**COMMON, "tool.yaml": kustomization("targetNamespace: shop", path="./apps/web")}
BUILT = {**COMMON, "apps/web/kustomization.yaml": "resources: [map.yaml]\nnamePrefix: my-\n"}
ARGO = {**BUILT, "tool.yaml": application("")}
PLAIN_BUNDLE = {**COMMON, "tool.yaml": f"{BUNDLE}---\n{BUNDLES}"}
VARIABLES = {
    **COMMON,
    "tool.yaml": kustomization(SUBSTITUTED, path="./apps/web"),
    "vars.yaml": VALUES % "v",
    "apps/web/map.yaml": MAP.replace("a: b", 'a: "${HOST}"') % "web",
}
CHART = {
    "fleet/one.yaml": cluster("one"),
    "fleet/policy.yaml": POLICY,
    "charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "charts/web/templates/map.yaml": MAP % "web",
    "tool.yaml": application("", path="charts/web"),
}
OTHER_SOURCE = {**FLUX, "tool.yaml": FLUX["tool.yaml"].replace("flux-system", "apps")}
MISSPELLED, NO_NAME = (MAP % "web").replace("ConfigMap", "ConfigMpa"), (MAP % "web").replace("name: web, ", "")
NO_YAML, NO_OBJECT, ENCRYPTED = "a: b: c\n", "- a\n", "\0GITCRYPT\0"


@pytest.mark.parametrize(
    ("layout", "changes"),
    [
        (FLUX, [{"apps/web/map.yaml": NO_YAML}]),
        (FLUX, [{"apps/web/map.yaml": NO_OBJECT}, {"other.yaml": MAP % "other"}]),
        (FLUX, [{"tool.yaml": NO_YAML}]),
        (FLUX, [{"fleet/policy.yaml": NO_YAML}]),
        (FLUX, [{"tool.yaml": kustomization("targetNamespace: shop", path="./apps/wbe")}]),
        (ARGO, [{"apps/web/map.yaml": NO_OBJECT}]),
        (ARGO, [{"tool.yaml": NO_YAML, "fleet/policy.yaml": POLICY.replace("[one]", "one"), "apps/web/map.yaml": NO_YAML}]),
        (ARGO, [{"apps/web/kustomization.yaml": "resources: [map.yaml\n"}]),
        (PLAIN_BUNDLE, [{"apps/web/map.yaml": NO_YAML}]),
        (PLAIN_BUNDLE, [{"apps/web/map.yaml": ENCRYPTED}]),
        (FLUX, [{"apps/web/map.yaml": MISSPELLED}, {"other.yaml": MAP % "other"}, {"apps/web/map.yaml": NO_NAME}]),
        (FLUX, [{"apps/web/map.yaml": f"{MAP % 'new'}---\n{NO_OBJECT}"}, {"other.yaml": MAP % "other"}]),
        (ARGO, [{"apps/web/map.yaml": MISSPELLED}, {"apps/web/map.yaml": NO_NAME}]),
        (ARGO, [{"tool.yaml": ARGO["tool.yaml"].replace("apps/web", "apps/wbe")}, {"other.yaml": MAP % "other"}]),
        (OTHER_SOURCE, [{"tool.yaml": OTHER_SOURCE["tool.yaml"].replace("apps/web", "apps/wbe")}, {"other.yaml": MAP % "other"}]),
        (CHART, [{"charts/web/templates/map.yaml": MISSPELLED}, {"other.yaml": MAP % "other"}]),
        (CHART, [{"charts/web/templates/map.yaml": NO_NAME}, {"charts/web/templates/map.yaml": NO_OBJECT}]),
        (PLAIN_BUNDLE, [{"apps/web/map.yaml": MISSPELLED}]),
        (VARIABLES, [{"vars.yaml": VALUES % "12"}, {"apps/web/map.yaml": NO_YAML}]),
    ],
)  # fmt: skip
def test_what_was_built_stays_when_a_file_cannot_be_read(
    fleet: Fleet, layout: Mapping[str, str], changes: list[Mapping[str, str]]
) -> None:
    fleet.commit(layout)
    fleet.reconcile()
    before = {path: fleet.read(path) for path in fleet.files() if path.startswith("clusters/one/shop/")}
    assert len(before) == 1
    for hour, files in enumerate(changes, 1):
        fleet.commit(files, hour=hour)
        run = fleet.reconcile(hour=hour)
        assert "error" in [finding.severity for finding in findings(run)]
        assert {path: fleet.read(path) for path in fleet.files() if path in before} == before
    assert not fleet.reconcile(hour=len(changes)).changed


@pytest.mark.parametrize(
    ("layout", "files", "location"),
    [
        (FLUX, {"apps/web/map.yaml": MISSPELLED}, "apps/web/map.yaml:2:7"),
        (CHART, {"charts/web/templates/map.yaml": NO_NAME}, "charts/web/templates/map.yaml:1:1"),
        (ARGO, {"tool.yaml": ARGO["tool.yaml"].replace("apps/web", "apps/wbe")}, "tool.yaml:6:60"),
    ],
)
def test_the_error_names_the_place(fleet: Fleet, layout: Mapping[str, str], files: Mapping[str, str], location: str) -> None:
    fleet.commit(layout)
    fleet.reconcile()
    fleet.commit(files, hour=1)
    assert location in [str(finding.location) for finding in findings(fleet.reconcile(hour=1)) if finding.severity == "error"]


def test_what_is_valid_in_a_file_with_a_misspelled_kind_counts(fleet: Fleet) -> None:
    several = f"# both\n{MAP % 'web'}---\n{MAP % 'other'}"
    fleet.commit({**FLUX, "apps/web/map.yaml": several})
    fleet.reconcile()
    changed = several.replace("ConfigMap", "ConfigMpa", 1).replace("a: b", "a: c")
    fleet.commit({"apps/web/map.yaml": f"{changed}---\n{MAP % 'new'}"}, hour=1)
    assert "unknown-kind" in [finding.code for finding in findings(fleet.reconcile(hour=1))]
    data = {path: fleet.read(path) for path in fleet.files() if path.startswith("clusters/one/shop/")}
    assert {path.rpartition("-")[2]: "a: c" in text for path, text in data.items()} == {
        "web.yaml": False,
        "other.yaml": True,
        "new.yaml": False,
    }
    fleet.commit({"apps/web/map.yaml": changed.replace("ConfigMpa", "ConfigMap")}, hour=2)
    assert not findings(fleet.reconcile(hour=2))
    data = {path: fleet.read(path) for path in fleet.files() if path.startswith("clusters/one/shop/")}
    assert len(data) == 2
    assert all("a: c" in text for text in data.values())


@pytest.mark.parametrize("text", [NO_YAML, MISSPELLED])
def test_another_output_repository_keeps_what_a_shallow_clone_lacks(fleet: Fleet, tmp_path: Path, text: str) -> None:
    output = tmp_path / "output.git"
    fleet.git("init", "-q", "--bare", str(output))
    fleet.commit(FLUX)
    fleet.reconcile(output=str(output))
    fleet.commit({"apps/web/map.yaml": text}, hour=1)
    fleet.reconcile(hour=1, output=str(output))
    fleet.git("clone", "-q", "--depth=1", f"file://{fleet.path}", str(tmp_path / "clone"))
    clone = Fleet(tmp_path / "clone", tmp_path / "cache")
    clone.git("remote", "remove", "origin")
    clone.commit({"other.yaml": MAP % "other"}, hour=2)
    moves = clone.reconcile(hour=2, output=str(output)).plan.moves
    assert [move.key.name for move in moves] == ["other"]
    files = fleet.git("--git-dir", str(output), "ls-tree", "-r", "--name-only", "placements")
    assert {"clusters/one/shop/configmap-web.yaml", "kept/apps/web/map.yaml"} <= set(files.split())


def test_a_changed_application_takes_effect_where_none_was_built_before(fleet: Fleet) -> None:
    fleet.commit({**ARGO, "tool.yaml": application("", path="gone")})
    fleet.reconcile()
    fleet.commit({"tool.yaml": ARGO["tool.yaml"]}, hour=1)
    fleet.reconcile(hour=1)
    assert "clusters/one/shop/configmap-my-web.yaml" in fleet.files()


def test_values_in_a_document_with_an_error_are_not_called_missing(fleet: Fleet) -> None:
    fleet.commit({**VARIABLES, "vars.yaml": VALUES % "12"})
    messages = [finding.message for finding in findings(fleet.reconcile())]
    assert any("ConfigMap flux-system/vars has an error" in message for message in messages)
