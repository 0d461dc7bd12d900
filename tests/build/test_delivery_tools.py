"""Documents of delivery tools: whatever they contain, a directory is built by a recipe, or has a reason why not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.build.application_sets import GeneratorInput, list_applications
from gitsched.build.argo_cd import list_sources, make_argo_recipe
from gitsched.build.flux import make_flux_recipe
from gitsched.build.path_recipe import list_manifests, merge_images
from gitsched.manifests.kustomize import Kustomization


class Files:
    """The files of a commit, by path."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        self.entries = {path: (path, 0o100644) for path in files}
        self.directories = {".", *(path[:index] for path in files for index, char in enumerate(path) if char == "/")}

    def read_blob(self, blob: str) -> bytes:
        return self._files[blob]

    def is_hidden(self, _path: str) -> bool:
        return False

    def read_kustomization(self, _blob: str, _path: str) -> Kustomization | None:
        return Kustomization()

    def find_remote(self, *_: Any) -> None:
        return None


COMMIT = Files(
    {
        "apps/kustomization.yaml": b"resources: [a.yaml]\n",
        "apps/a.yaml": b"kind: A\n",
        "plain/b.yaml": b"kind: B\n",
        "plain/notes.txt": b"",
        "plain/.github/x.yaml": b"kind: C\n",
        "plain/inner/kustomization.yaml": b"resources: []\n",
        "plain/inner/c.yaml": b"kind: C\n",
        "plain/sub/d.yml": b"kind: D\n",
        "chart/Chart.yaml": b"name: chart\n",
    }
)
FIELDS = (
    *("path", "targetNamespace", "patches", "patchesStrategicMerge", "patchesJson6902", "components", "images", "commonMetadata"),
    *("labels", "annotations", "postBuild", "substitute", "substituteFrom", "kustomize", "directory", "helm", "valueFiles", "values"),
    *("parameters", "apiVersions", "replicas", "count", "name", "namespace", "namePrefix", "commonLabels", "recurse", "include", "exclude"),
    *("source", "sources", "destination", "generators", "list", "git", "clusters", "matrix", "merge", "elements", "directories", "files"),
    *("template", "metadata", "spec", "mergeKeys", "selector", "matchLabels", "repoURL", "target", "patch", "kind"),
)  # fmt: skip
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["apps", "plain", "chart", "{{a.b}}", "{{path}}", "$x/y", "*", "{a,b}", "a=b:c"])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4), max_leaves=12
)


OPTIONS = st.dictionaries(st.sampled_from(FIELDS), VALUES | st.lists(st.dictionaries(st.sampled_from(FIELDS), VALUES)), max_size=6)
SPECS = st.fixed_dictionaries({}, optional=dict.fromkeys(("kustomize", "helm", "directory", "postBuild", "destination"), OPTIONS))


@given(OPTIONS | SPECS, st.sampled_from(["apps", "plain", "chart", "missing"]))
def test_any_document_gives_a_recipe(spec: dict[str, Any], path: str) -> None:
    flux = make_flux_recipe({"spec": {**spec, "path": path}}, COMMIT, lambda _: False)
    assert flux.directory == path
    application = {"metadata": {"name": "a"}, "spec": {"destination": spec.get("destination"), "source": {**spec, "path": path}}}
    for source in list_sources(application):
        assert make_argo_recipe(application, source, COMMIT, lambda _: None).directory == path
    generated = {"metadata": {"name": "a"}, "spec": spec}
    assert isinstance(list_applications(generated, GeneratorInput(COMMIT, (), lambda _: True)).applications, list)


def test_flux_lists_yaml_files_and_directories_with_a_kustomization() -> None:
    assert list_manifests("plain", COMMIT, lambda path: "/.github/" in path) == ["b.yaml", "inner", "sub/d.yml"]


@pytest.mark.parametrize(
    ("before", "override", "after"),
    [
        ([], {"name": "a", "newTag": "2"}, [{"name": "a", "newTag": "2"}]),
        (
            [{"name": "a", "newName": "b", "digest": "x"}],
            {"name": "a", "newTag": "2"},
            [{"name": "a", "newName": "b", "newTag": "2"}],
        ),
        ([{"name": "a", "newTag": "1"}], {"name": "a", "newName": "c"}, [{"name": "a", "newTag": "1", "newName": "c"}]),
        ([{"name": "a", "newTag": "1"}], {"name": "a", "digest": "x"}, [{"name": "a", "digest": "x"}]),
        (None, {"name": "a"}, [{"name": "a"}]),
    ],
)
def test_images_of_a_tool_overrule_those_of_the_kustomization(before: Any, override: dict[str, str], after: Any) -> None:
    assert merge_images(before, [override]) == after
