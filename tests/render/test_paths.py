"""Paths of the output branch: readable for ordinary names, safe and unique for any name."""

from __future__ import annotations

import string
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.model.document import Key
from gitsched.render.output_files import cluster_path, escape_segment, kept_path, object_path, placement_path, status_path
from tests.tables import each_row

NAMES = st.from_regex(r"\A[a-z0-9]([a-z0-9.-]{0,12}[a-z0-9])?\Z") | st.text(max_size=8) | st.text("aA-._:/", max_size=6)
GROUPS = st.sampled_from(["", "apps", "core", "batch", "a.io", "a.io-b", "a-b.io", "a.b", "a.b-c.io", "cert-manager.io", "a.b-c"])
KINDS = st.sampled_from(["Deployment", "ConfigMap", "Foo", "Foo-a", "Foo.a"])
TAILS = st.sampled_from(["x", "c.io-x", "b-x", "b.io-x", "io-x", "manager.io-x", "c-x", "c.io-x-y"])
KEYS = st.builds(Key, GROUPS, KINDS, NAMES, NAMES | TAILS)


@pytest.mark.parametrize(
    ("key", "path"),
    [
        (Key("apps", "Deployment", "shop", "web"), "clusters/eu-1/shop/deployment-web.yaml"),
        (Key("", "ConfigMap", "shop", "web.v1"), "clusters/eu-1/shop/configmap-web.v1.yaml"),
        (Key("batch", "CronJob", "shop", "a-b"), "clusters/eu-1/shop/cronjob.batch-a-b.yaml"),
        (Key("", "Namespace", "", "shop"), "clusters/eu-1/_/namespace-shop.yaml"),
        (Key("cert-manager.io", "Issuer", "shop", "a-b"), "clusters/eu-1/shop/issuer.cert-manager.io-a-b.yaml"),
        (
            Key("cluster.open-cluster-management.io", "Placement", "shop", "a"),
            "clusters/eu-1/shop/placement.cluster.open-cluster-management.io-a.yaml",
        ),
        (
            Key("apiextensions.k8s.io", "CustomResourceDefinition", "", "certificates.cert-manager.io"),
            "clusters/eu-1/_/customresourcedefinition.apiextensions.k8s.io-certificates.cert-manager.io.yaml",
        ),
        (
            Key("rbac.authorization.k8s.io", "ClusterRole", "", "system:foo"),
            "clusters/eu-1/_/clusterrole.rbac.authorization.k8s.io-system_3afoo.yaml",
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, Key) else None,
)
def test_ordinary_objects_have_the_documented_path(key: Key, path: str) -> None:
    assert object_path("eu-1", key) == path
    assert placement_path(key) == path.replace("clusters/eu-1", "placements")


@pytest.mark.parametrize(
    ("key", "path"),
    [
        (
            Key("work.karmada.io", "ResourceBinding", "shop", "web-deployment"),
            "status/work.karmada.io/resourcebinding/shop/web-deployment.yaml",
        ),
        (Key("", "Node", "", "n1"), "status/core/node/_/n1.yaml"),
        (Key("core", "Node", "", "n1"), "status/_63ore/node/_/n1.yaml"),
    ],
)
def test_records_are_stored_by_group_and_kind(key: Key, path: str) -> None:
    assert status_path(key) == path


def test_a_kept_file_has_its_source_path_below_kept() -> None:
    assert kept_path("apps/web.yaml") == "kept/apps/web.yaml"
    assert kept_path("../.git/Config") == "kept/_2e./_2egit/_43onfig"


@each_row(
    ("text", "escaped"),
    [
        ("", "_"),
        (".", "_2e"),
        ("..", "_2e."),
        (".git", "_2egit"),
        ("_", "_5f"),
        ("A", "_41"),
        ("a/b", "a_2fb"),
        ("ü", "_c3_bc"),
        ("a\n", "a_0a"),
        ("\0", "_00"),
    ],
)
def test_special_characters_in_names_are_escaped(text: str, escaped: str) -> None:
    assert escape_segment(text) == escaped


def test_long_names_are_shortened_and_stay_unique() -> None:
    one, two = escape_segment("a" * 201), escape_segment("a" * 202)
    assert one != two
    assert one.startswith("a" * 180 + "-")
    assert len(one) == 197
    assert escape_segment("a" * 200) == "a" * 200


def test_a_shortened_name_does_not_collide_with_the_same_literal_name() -> None:
    assert escape_segment(escape_segment("a" * 201)) != escape_segment("a" * 201)


def test_a_path_segment_never_exceeds_the_limit_of_file_systems() -> None:
    key = Key("g" * 63 + "." + "h" * 180, "K" * 63, "n" * 300, "m" * 253)
    for path in (object_path("c" * 300, key), status_path(key), placement_path(key), kept_path("d" * 300 + "/x")):
        assert max(map(len, path.split("/"))) <= 205


@given(st.text(max_size=300))
def test_a_segment_is_always_safe(text: str) -> None:
    result = escape_segment(text)
    assert set(result) <= set(string.ascii_lowercase + string.digits + ".-_")
    assert 0 < len(result) <= 200
    assert not result.startswith(".")


@given(NAMES, NAMES)
def test_different_names_have_different_segments(one: str, two: str) -> None:
    assert (escape_segment(one) == escape_segment(two)) == (one == two)


@given(KEYS, KEYS, st.sampled_from([placement_path, status_path]))
def test_different_objects_have_different_paths(one: Key, two: Key, path: object) -> None:
    assert callable(path)
    assert (path(one) == path(two)) == (one == two)


def test_objects_with_similar_names_have_different_paths() -> None:
    groups = ["", "apps", "core", "batch", "batch-a", "a.io", "a.io-b", "a-b.io", "a.b", "a.b-c.io", "a.b-c", "io", "a.io-b.io"]
    names = ["x", "c.io-x", "b-x", "b.io-x", "io-x", "c-x", "b-c.io-x", "a.io-x", "b.io-b.io-x"]
    keys = [
        Key(group, kind, "", name)
        for group, kind, name in product(groups, ["Deployment", "Foo", "Foo-a", "Foo.a", "Foo-a.io"], names)
    ]
    assert len({placement_path(key) for key in keys}) == len(keys)
    assert len({status_path(key) for key in keys}) == len(keys)


def test_a_cluster_name_cannot_leave_its_directory() -> None:
    assert cluster_path("../../x", "a.yaml") == "clusters/_2e._2f.._2fx/a.yaml"
