"""Place all kustomize roots of real repositories: `GITSCHED_REPOSITORIES=PATH:PATH pytest tests/repositories`, with clones of them.

Every root becomes a Bundle for a cluster of its own, so this takes three times as long as `kubectl kustomize` for all roots: once to build
what is expected, once in gitsched, and once after a base has changed. Without the variable, the repository is a small one.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.repositories.comparison import (
    Root,
    build_with_kubectl,
    change_base,
    compare,
    list_roots,
    run_gitsched,
    write_fleet,
)

SMALL = {
    "base/kustomization.yaml": "resources: [web.yaml, settings.yaml]\n",
    "base/web.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  ports:\n  - port: 80\n",
    "base/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  a: '1' # quoted\n",
    "overlays/eu/kustomization.yaml": "namespace: shop\nresources: [../../base]\n",
    "overlays/us/kustomization.yaml": "namePrefix: us-\nresources: [../../base/web.yaml]\n",
    "other/kustomization.yaml": "resources: [a.yaml]\n",
    "other/a.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: other\n",
    "broken/kustomization.yaml": "resources: [absent.yaml]\n",
}
PATHS = [Path(path) for path in os.environ.get("GITSCHED_REPOSITORIES", "").split(os.pathsep) if path]


@pytest.fixture(params=PATHS or [None], ids=lambda path: path.name if path else "small")
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A clone of a repository, which is not changed itself."""
    if request.param is not None:
        subprocess.run(["git", "clone", "-q", str(request.param), str(tmp_path / "repository")], check=True)
        return tmp_path / "repository"
    for path, text in SMALL.items():
        (tmp_path / "repository" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "repository" / path).write_text(text)
    commit = "git init -q -b main && git add . && git -c user.name=a -c user.email=a@example.com commit -q -m all"
    subprocess.run(commit, shell=True, check=True, cwd=tmp_path / "repository")
    return tmp_path / "repository"


def place(repository: Path) -> dict[Root, bytes]:
    """Place every root that kubectl builds; return what kubectl prints."""
    expected = build_with_kubectl(repository, list_roots(repository))
    assert expected, "no kustomization of the repository can be built"
    write_fleet(repository, list(expected))
    done = run_gitsched(repository, "reconcile")
    assert done.returncode in (0, 1), done.stderr
    return expected


def test_each_cluster_gets_what_kubectl_kustomize_prints_and_a_changed_base_reaches_its_users(repository: Path) -> None:
    expected = place(repository)
    compared = compare(repository, expected)
    assert compared.missing == {}
    assert compared.surplus == {}
    changed, planned = change_base(repository, expected)
    assert changed
    assert planned == changed
