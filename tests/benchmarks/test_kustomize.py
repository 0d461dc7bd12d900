"""`python -m benchmarks.kustomize CLONE` compares a repository with kubectl."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.kustomize import choose_base, compare, list_closures
from tests.scenarios.conftest import Fleet, deployment

pytestmark = pytest.mark.long


def test_every_root_is_built_and_one_base_is_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = Fleet(tmp_path / "repository", tmp_path / "cache")
    overlays = {f"overlays/{name}/kustomization.yaml": "resources: [../../base]\nnameSuffix: -x\n" for name in "ab"}
    base = {"base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.yaml": deployment("web")}
    head = fleet.commit({**overlays, **base, "broken/kustomization.yaml": "resources: [none.yaml]\n"})
    closures = list_closures(fleet.path, tmp_path)
    assert [closure.root for closure in closures] == ["base", "overlays/a", "overlays/b"]
    assert choose_base(closures, 5) == ("base/web.yaml", ["base", "overlays/a", "overlays/b"])
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    compare(fleet.path, scratch, 100, 5)
    printed = capsys.readouterr().out
    assert "3 of 3 roots, cold:" in printed
    assert "base/web.yaml changed, which 3 roots read:" in printed
    assert printed.count("(target 2.0)") == 4
    assert fleet.git("rev-parse", "HEAD") == head, "the repository itself is not changed"
