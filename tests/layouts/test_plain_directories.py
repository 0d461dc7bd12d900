"""Directories of plain YAML that define the same objects differently are recognized as those of clusters."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from gitsched.layouts.layout import Layout
from gitsched.layouts.proposal import describe_layout
from gitsched.layouts.recognition import recognize_layout

DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s, namespace: shop}\nspec: {replicas: %d}\n"
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\n"


def recognize(files: Iterable[tuple[str, str]]) -> Layout:
    return recognize_layout({path: text.encode() for path, text in files})


def list_variants(layout: Layout) -> dict[str, dict[str, tuple[str, ...]]]:
    return {bundle.name: {one.path: one.target.names for one in bundle.variants} for bundle in layout.bundles}


@pytest.mark.parametrize(
    "directories",
    [
        ("clusters/fra-1", "clusters/ash-1"),
        ("clusters/blue", "clusters/green"),
        ("deploy/eu-west-1", "deploy/us-east-1"),
        ("env/staging", "env/production"),
    ],
)
def test_each_directory_is_that_of_a_cluster(directories: tuple[str, str]) -> None:
    files = [(f"{one}/web.yaml", DEPLOYMENT % ("web", number)) for number, one in enumerate(directories, 1)]
    layout = recognize([*files, *((f"{one}/service.yaml", SERVICE) for one in directories)])
    (variants,) = list_variants(layout).values()
    assert variants == {one: (one.rpartition("/")[2],) for one in directories}
    assert {*layout.clusters} == {one.rpartition("/")[2] for one in directories}
    assert not layout.invented
    assert "Recognized plain YAML: 2 directories beside each other, such as " in describe_layout(layout)


def test_a_directory_beside_them_without_these_objects_is_that_of_a_cluster_too() -> None:
    files = [("clusters/a/web.yaml", DEPLOYMENT % ("web", 1)), ("clusters/b/web.yaml", DEPLOYMENT % ("web", 2))]
    layout = recognize([*files, ("clusters/c/db.yaml", DEPLOYMENT % ("db", 1)), ("clusters/base/x.yaml", DEPLOYMENT % ("x", 1))])
    assert list_variants(layout) == {"clusters": {f"clusters/{name}": (name,) for name in "abc"}}
    assert [entry.place for entry in layout.left_out] == ["clusters/base"]


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(
            [("apps/a/web.yaml", DEPLOYMENT % ("web", 1)), ("apps/b/web.yaml", DEPLOYMENT % ("web", 2))], id="applications"
        ),
        pytest.param([("clusters/a/web.yaml", SERVICE), ("clusters/b/web.yaml", SERVICE)], id="nothing differs"),
        pytest.param(
            [("clusters/a/x.yaml", DEPLOYMENT % ("x", 1)), ("clusters/a/y.yaml", DEPLOYMENT % ("x", 2))], id="one directory"
        ),
        pytest.param(
            [(f"{top}/eu/web.yaml", DEPLOYMENT % ("web", number)) for number, top in enumerate(("a", "b"))], id="same names"
        ),
    ],
)
def test_other_directories_are_those_of_no_cluster(files: list[tuple[str, str]]) -> None:
    layout = recognize(files)
    assert (layout.bundles, layout.recognitions) == ((), ())
