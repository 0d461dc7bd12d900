"""Commands beyond a limit say what they have not considered, or fail with the limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from gitsched.cli import cli
from gitsched.model.errors import Permanent

from .conftest import Fleet, cluster, deployment, policy

WEB = deployment("web")


@pytest.fixture
def init(fleet: Fleet) -> Callable[[Mapping[str, str]], str]:
    def run(files: Mapping[str, str]) -> str:
        fleet.commit(files)
        result = CliRunner().invoke(cli, ["init", str(fleet.path)], standalone_mode=False)
        assert result.exception is None
        return result.output

    return run


def test_kinds_files_and_clusters_beyond_a_limit_are_named(
    init: Callable[[Mapping[str, str]], str], monkeypatch: pytest.MonkeyPatch, fleet: Fleet
) -> None:
    for name in ("reconcile.adoption.repository_layout.MAX_KINDS", "cli.commands.init.MAX_CLUSTERS"):
        monkeypatch.setattr(f"gitsched.{name}", 1)
    printed = init(
        {
            "web.yaml": deployment("web"),
            "map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n",
            "p.yaml": policy("a,b"),
        }
    )
    assert "there are 2 kinds of workloads: a proposed policy selects the first 1" in printed
    assert "The policies name 2 clusters: only the first 1 are written." in printed
    assert (fleet.path / "fleet/clusters.yaml").read_text().count("kind: Cluster") == 1
    monkeypatch.setattr("gitsched.reconcile.adoption.repository_layout.MAX_FILES", 2)
    assert "files: only the first 2 by path are considered" in init({"one.yaml": cluster("one")})


def test_a_manifest_without_a_repository_is_found_among_files_that_init_wrote(tmp_path: Path) -> None:
    for name in ("gitsched.yaml", "fleet/clusters.yaml", "zoo/web.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(WEB)
    result = CliRunner().invoke(cli, ["init", str(tmp_path)], standalone_mode=False)
    assert "has manifests (zoo/web.yaml), but is not a repository" in str(result.exception)


@pytest.mark.needs("kubectl")
def test_a_source_that_builds_too_much_fails_with_the_limit(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.git.kept_blobs.MAX_KEPT_SIZE", 250)
    config = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: g}\nspec: {source: {kustomize: {build: [a, b]}}}\n"
    files = {
        f"{name}/{file}": text
        for name in "ab"
        for file, text in (("kustomization.yaml", "resources: [web.yaml]\n"), ("web.yaml", deployment(name)))
    }
    fleet.commit({**files, "gitsched.yaml": config, "one.yaml": cluster("one"), "all.yaml": policy()})
    with pytest.raises(Permanent, match="build has more than 250 bytes in all: remove the roots that build the most"):
        fleet.preview()
