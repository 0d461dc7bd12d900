"""Images of containers that change in delivered manifests."""

from __future__ import annotations

import pytest

from gitsched.diff import image_changes
from gitsched.diff.image_changes import find_image_changes
from gitsched.model.changes import ImageChange
from gitsched.report.images import describe_image_changes


def find(before: str, after: str, path: str = "shop/deployment-web.yaml") -> list[tuple[str, str]]:
    blobs = {"1": before.encode(), "2": after.encode()}
    found = find_image_changes({(path, "1", "2"): ["eu-1", "us-1"]}, blobs.__getitem__)
    assert all((one.paths, one.clusters) == ((path,), ("eu-1", "us-1")) for one in found)
    return [(one.before, one.after) for one in found]


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ("image: nginx:1.25\n", "image: nginx:1.26\n", [("nginx:1.25", "nginx:1.26")]),
        ('- {"image": "reg:5000/a@sha256:12"}', '- {name: a, image: "reg:5000/a:2"}', [("reg:5000/a@sha256:12", "reg:5000/a:2")]),
        ("- image: a:1\n- image: b:1\n", "- image: a:1\n- image: b:2\n", [("b:1", "b:2")]),
        ("- image: a:1\n", "- image: sidecar:1\n- image: a:2\n", [("", "sidecar:1"), ("a:1", "a:2")]),
        ("- image: a:1\n- image: b:1\n", "- image: b:1\n", [("a:1", "")]),
        ("# image: a:1\nimage: a:2\n", "# image: a:3\nimage: a:2\n", []),
        ("imagePullPolicy: Always\n", "imagePullPolicy: Never\n", []),
        ("replicas: 1\n", "replicas: 2\n", []),
    ],
)
def test_an_image_is_paired_with_what_replaces_it(before: str, after: str, changes: list[tuple[str, str]]) -> None:
    assert find(before, after) == changes


def test_an_image_in_the_text_of_a_config_map_is_none() -> None:
    assert find("  x: |\n    image: a:1\n", "  x: |\n    image: a:2\n", "shop/configmap-web.yaml") == []


def test_the_same_change_of_several_manifests_is_one_line() -> None:
    found = [ImageChange("a:1", "a:2", tuple(f"shop/deployment-{n}.yaml" for n in range(9)), ("eu-1",))]
    names = "shop/deployment-0.yaml, shop/deployment-1.yaml, shop/deployment-2.yaml and 6 more"
    assert describe_image_changes(found) == [f"image a:1 -> a:2 in eu-1: {names}"]


def test_manifests_beyond_the_limit_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_changes, "MAX_COMPARED", 1)
    blobs = {"1": b"image: a:1", "2": b"image: a:2"}
    changed = {(f"shop/deployment-{name}.yaml", "1", "2"): ["eu-1"] for name in "ab"}
    (found,) = find_image_changes(changed, blobs.__getitem__)
    assert found.paths == ("shop/deployment-a.yaml",)
