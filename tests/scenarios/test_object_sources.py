"""The file of each built object is the same whether kustomize names it or it is found by the kind and name of the object."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gitsched.build import kustomize
from gitsched.build.builder import find_builder
from gitsched.build.closure import resolve_closure
from gitsched.build.kustomize import build_root
from gitsched.git import Repository
from gitsched.reconcile.builds.object_sources import list_object_sources
from gitsched.reconcile.cache.caches import ParseCache
from gitsched.reconcile.source.commit_tree import CommitTree
from gitsched.reconcile.source.source_reader import SourceReader

from .conftest import Fleet


def config_map(name: str, namespace: str = "") -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n" + (f"  namespace: {namespace}\n" if namespace else "")


BASES = {
    "a/kustomization.yaml": "namespace: one\nresources: [map.yaml]\n",
    "a/map.yaml": config_map("'7'"),
    "b/kustomization.yaml": "namespace: two\nresources: [map.yaml]\n",
    "b/map.yaml": config_map("'7'"),
}
PLAIN = {
    "two files": {"root/kustomization.yaml": "resources: [x.yaml, y.yaml]\n"},
    "a list": {
        "root/kustomization.yaml": "resources: [list.yaml]\n",
        "root/list.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: p}}\n",
    },
    "one kind and name in two namespaces": {
        "root/kustomization.yaml": "resources: [x.yaml, other.yaml]\n",
        "root/other.yaml": config_map("x", "elsewhere"),
    },
    "one kind and name in two bases with namespaces": {**BASES, "root/kustomization.yaml": "resources: [../a, ../b]\n"},
    "namespaces of bases below one with a namespace": {
        **BASES,
        "root/kustomization.yaml": "resources: [../a, x.yaml]\nnamespace: three\n",
    },
    "a patch that removes an object": {
        "root/kustomization.yaml": "resources: [x.yaml, y.yaml]\npatches: [{path: patch.yaml}]\n",
        "root/patch.yaml": "$patch: delete\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
    },
    "annotations of the objects": {
        "root/kustomization.yaml": "resources: [x.yaml, y.yaml]\ncommonAnnotations: {team: shop}\n",
    },
}
ANNOTATED = {
    "a prefix": {"root/kustomization.yaml": "resources: [x.yaml, y.yaml]\nnamePrefix: my-\n"},
    "generated objects": {
        "root/kustomization.yaml": "resources: [x.yaml]\nconfigMapGenerator: [{name: g, literals: [a=b]}]\n",
    },
    "objects that are renamed": {
        "root/kustomization.yaml": (
            "resources: [x.yaml]\npatches:\n- target: {kind: ConfigMap}\n"
            "  patch: '[{\"op\": \"replace\", \"path\": \"/metadata/name\", \"value\": \"z\"}]'\n"
        ),
    },
    "objects that a component moves into a namespace": {
        **BASES,
        "root/kustomization.yaml": "resources: [../a, ../b/map.yaml]\ncomponents: [../component]\n",
        "component/kustomization.yaml": (
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamespace: four\nresources: [more.yaml]\n"
        ),
        "component/more.yaml": config_map("more"),
        "b/map.yaml": config_map("x", "six"),
        "a/map.yaml": config_map("x", "five"),
        "a/kustomization.yaml": "resources: [map.yaml]\nnameSuffix: -a\n",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", [*PLAIN, *ANNOTATED])
def test_files_of_objects_are_those_that_kustomize_names(
    fleet: Fleet, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    common = {"root/x.yaml": config_map("x"), "root/y.yaml": config_map("yy")}
    fleet.commit({**common, **PLAIN.get(name, {}), **ANNOTATED.get(name, {})})
    repository = Repository(fleet.path)
    head = repository.resolve("HEAD")
    assert head is not None
    reader = SourceReader(repository, ParseCache(tmp_path / "cache"))
    commit = CommitTree(repository, repository.entries(repository.commit(head).tree), reader)
    closure = resolve_closure("root", commit)
    assert not closure.problems
    blobs = {blob: commit.read_blob(blob) for blob in closure.files.values()}
    named = build_root(closure, blobs, find_builder({}))
    assert named.objects
    options: list[bytes] = []
    run = kustomize.run_on_files

    def record(*arguments: Any, **more: Any) -> Any:
        options.append(arguments[3][closure.kustomization])
        return run(*arguments, **more)

    monkeypatch.setattr(kustomize, "run_on_files", record)
    found = build_root(closure, blobs, find_builder({}), sources=list_object_sources(closure, commit))
    assert [printed.text for printed in found.objects] == [printed.text for printed in named.objects]
    for one, other in zip(found.objects, named.objects, strict=True):
        assert one.path
        assert one == other or not other.path, "kustomize is not asked for files where a patch could see that"
    assert len(options) == 1, "one run is enough"
    assert (b"buildMetadata" in options[0]) == (name in ANNOTATED)
