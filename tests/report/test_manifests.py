"""Titles of changed manifests: a move is one change, and clusters in which the same lines change have one diff."""

from __future__ import annotations

from gitsched.model.changes import ManifestChange
from gitsched.report.manifests import group_manifests

WEB = "shop/deployment-web.yaml"


def test_a_manifest_that_leaves_a_cluster_for_another_one_moves() -> None:
    entries = [
        ManifestChange(WEB, ("c",), None, "1", copied="a"),
        ManifestChange("shop/service-web.yaml", ("c",), None, "3", diff="@@ -1 +1 @@\n-a\n+b", copied="a"),
        ManifestChange(WEB, ("a",), "1", None),
        ManifestChange("shop/service-web.yaml", ("a",), "2", None),
        ManifestChange("shop/job-once.yaml", ("a",), "4", None),
    ]
    assert [(group.title, group.diff) for group in group_manifests(entries)] == [
        (f"{WEB} moves from a to c", ""),
        ("shop/service-web.yaml moves from a to c", "@@ -1 +1 @@\n-a\n+b"),
        ("shop/job-once.yaml removed in a", ""),
    ]


def test_many_manifests_that_move_have_one_title() -> None:
    paths = [f"shop/deployment-{name}.yaml" for name in "vwxyz"]
    entries = [ManifestChange(path, ("c", "d"), None, "1", copied="b") for path in paths]
    entries += [ManifestChange(path, ("a", "b"), "1", None) for path in paths]
    (group,) = group_manifests(entries)
    assert group.title.startswith("5 manifests move from a, b to c, d: shop/deployment-v.yaml, ")


def test_a_copy_of_a_manifest_that_stays_elsewhere_is_no_move() -> None:
    entries = [ManifestChange(WEB, ("c",), None, "1", copied="b"), ManifestChange(WEB, ("a",), "1", None)]
    assert [group.title for group in group_manifests(entries)] == [f"{WEB} added in c, same as in b", f"{WEB} removed in a"]


def test_the_same_lines_of_a_manifest_have_one_diff() -> None:
    entries = [
        ManifestChange(WEB, ("b",), "1", "2", diff="@@ -1,2 +1,2 @@\n-replicas: 8\n+replicas: 4\n image: web"),
        ManifestChange(WEB, ("a", "c"), "3", "4", diff="@@ -1,2 +1,2 @@\n-replicas: 8\n+replicas: 4\n image: mirror/web"),
        ManifestChange(WEB, ("d",), "5", "6", diff="@@ -1,2 +1,2 @@\n-replicas: 8\n+replicas: 5\n image: web"),
    ]
    assert [(group.title, group.diff) for group in group_manifests(entries)] == [
        (f"{WEB} changed in a, b, c, shown as in b", entries[0].diff),
        (f"{WEB} changed in d", entries[2].diff),
    ]
