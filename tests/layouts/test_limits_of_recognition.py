"""`gitsched init` in a repository beyond a limit says what it has not considered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from gitsched.layouts.proposal import MAX_LISTED, describe_layout
from gitsched.layouts.recognition import recognize_layout
from tests.layouts.test_recognition import BASE, DEEP, WEB, flux


def overlays(*names: str) -> dict[str, bytes]:
    texts: dict[str, str] = {}
    for name in names:
        texts |= {
            f"{name}/base/kustomization.yaml": BASE,
            f"{name}/base/web.yaml": WEB,
            f"{name}/overlays/staging/kustomization.yaml": DEEP,
        }
    return {path: text.encode() for path, text in texts.items()}


def application_set(*generators: Any) -> dict[str, bytes]:
    template = {
        "metadata": {"name": "{{name}}"},
        "spec": {
            "source": {"repoURL": "https://example.com/x.git", "path": "web/overlays/staging"},
            "destination": {"name": "{{name}}"},
        },
    }
    body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "all"}}
    return {
        **overlays("web"),
        "set.yaml": yaml.safe_dump({**body, "spec": {"generators": [*generators], "template": template}}).encode(),
    }


def elements(count: int, key: str = "name") -> dict[str, Any]:
    return {"list": {"elements": [{key: f"{key}-{number}"} for number in range(count)]}}


CASES: list[tuple[str, int, Mapping[str, bytes], str]] = [
    ("layouts.recognition.MAX_BUNDLES", 1, overlays("web", "dns"), "2 bundles were found: only the first 1 are proposed"),
    (
        "layouts.repository_files.MAX_FILES",
        5,
        overlays("web", "dns"),
        "the repository has 6 manifests: only the first 5 by path are considered",
    ),
    ("layouts.repository_files.MAX_VISITS", 1, overlays("web"), "kustomizations have more than 1 references"),
    (
        "build.application_sets.MAX_APPLICATIONS",
        2,
        application_set(elements(3)),
        "ApplicationSet all (set.yaml:1) makes more than 2 Applications",
    ),
]


@pytest.mark.parametrize(("constant", "limit", "files", "note"), CASES)
def test_what_is_not_considered_is_named(
    constant: str, limit: int, files: Mapping[str, bytes], note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"gitsched.{constant}", limit)
    assert [found[: len(note)] for found in recognize_layout(files, ["staging"]).notes] == [note]
    monkeypatch.setattr(f"gitsched.{constant}", limit + 9)
    assert recognize_layout(files, ["staging"]).notes == ()


def test_hidden_directories_that_are_not_shown_are_counted() -> None:
    hidden = {f".{number:03}/a.yaml": flux("./web").encode() for number in range(MAX_LISTED + 2)}
    layout = recognize_layout({**overlays("web"), "web/flux.yaml": flux("./web/overlays/staging").encode(), **hidden})
    assert len(layout.hidden_documents) == MAX_LISTED + 2
    assert "  and 2 more, see gitsched.yaml" in describe_layout(layout)
