"""A run that reuses the documents of unchanged roots publishes the commit that a run without a cache publishes."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitsched.reconcile import pipeline
from gitsched.reconcile.builds.origins import OriginLocator
from gitsched.reconcile.cache import root_documents
from gitsched.reconcile.run import open_context
from tests.search_depth import count_examples

from .conftest import Fleet, at_hour, cluster, deployment, policy

ROOTS = [f"overlays/{letter}" for letter in "abc"]
LAYOUT: dict[str, str | None] = {
    "gitsched.yaml": (
        "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n"
        "  guard: {fleet: {removed: 100, moved: 100, replicasLost: 100}}\n  source: {kustomize: {build: ['overlays/*']}}\n"
    ),
    "clusters.yaml": cluster("one") + "---\n" + cluster("two"),
    "policy.yaml": policy("one"),
    "base/kustomization.yaml": "resources: [web.yaml]\n",
    "base/web.yaml": deployment("web"),
    "other/kustomization.yaml": "resources: [web.yaml]\n",
    "other/web.yaml": deployment("web", 7),
    **{f"{root}/kustomization.yaml": f"resources: [../../base]\nnameSuffix: -{root[-1]}\n" for root in ROOTS},
}
CHANGES: dict[str, dict[str, str | None]] = {
    "a file of all roots": {"base/web.yaml": deployment("web", 3)},
    "a file of all roots again": {"base/web.yaml": "# comment\n" + deployment("web", 3)},
    "one root": {"overlays/a/kustomization.yaml": "resources: [../../base]\nnameSuffix: -a\nreplicas: [{name: web, count: 5}]\n"},
    "one root reads another base": {"overlays/b/kustomization.yaml": "resources: [../../other]\nnameSuffix: -b\n"},
    "one root cannot be built": {"overlays/b/kustomization.yaml": "resources: [../../absent]\n"},
    "a new file that no root reads": {"notes/new.yaml": deployment("new")},
    "a second kustomization of the base": {"base/kustomization.yml": "resources: []\n"},
    "no second kustomization": {"base/kustomization.yml": None},
    "a policy": {"policy.yaml": policy("two")},
    "a document with an error": {"base/web.yaml": deployment("web", "many")},
    "a new root": {"overlays/d/kustomization.yaml": "resources: [../../other]\nnameSuffix: -d\n"},
    "a removed root": {"overlays/c/kustomization.yaml": None},
    "everything as at first": LAYOUT,
}


def apply(fleet: Fleet, files: dict[str, str | None], hour: int) -> None:
    existing = {path: text for path, text in files.items() if text is not None or (fleet.path / path).exists()}
    fleet.commit(existing, hour=hour)


@settings(max_examples=count_examples(2), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=5))
def test_a_run_with_a_cache_publishes_what_a_run_without_one_does(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    directory = tmp_path_factory.mktemp("roots")
    cached, uncached, resident = (
        Fleet(directory / name, directory / f"cache-{name}") for name in ("cached", "uncached", "resident")
    )
    context = None
    for hour, files in enumerate([LAYOUT, *(CHANGES[name] for name in names)]):
        for fleet in (cached, uncached, resident):
            apply(fleet, files, hour)
        one = cached.reconcile(hour)
        shutil.rmtree(uncached.cache, ignore_errors=True)
        other = uncached.reconcile(hour)
        context = context or open_context(resident.settings())
        third = pipeline.run(context, at_hour(hour))
        assert cached.head == uncached.head == resident.head
        assert one.plan.findings == other.plan.findings == third.plan.findings
    shutil.rmtree(directory)


def test_only_roots_with_changed_files_are_read(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.commit(LAYOUT)
    fleet.reconcile()
    read: list[str] = []
    original = OriginLocator.read

    def record(self: OriginLocator, *arguments: Any) -> Any:
        read.append(self._closure.root)
        return original(self, *arguments)

    monkeypatch.setattr(OriginLocator, "read", record)
    fleet.commit(CHANGES["one root"], hour=1)
    assert fleet.reconcile(1).changed
    assert set(read) == {"overlays/a"}
    read.clear()
    fleet.commit(CHANGES["a new file that no root reads"], hour=2)
    fleet.reconcile(2)
    assert read == []


@pytest.mark.parametrize("damage", ["other bytes", "another type", "others may write"])
def test_a_cache_that_cannot_be_trusted_is_not_read(fleet: Fleet, damage: str) -> None:
    fleet.commit(LAYOUT)
    fleet.reconcile()
    (path,) = fleet.cache.glob("roots-*.pickle")
    if damage == "other bytes":
        path.write_bytes(path.read_bytes()[:-1] + b"x")
    elif damage == "another type":
        path.write_bytes(root_documents.serialize(("structure",)))
    else:
        path.write_bytes(root_documents.serialize(("structure", dict.fromkeys(ROOTS))))
        path.chmod(0o666)
    fleet.commit(CHANGES["a policy"], hour=1)
    run = fleet.reconcile(1)
    assert run.changed
    assert [fleet.where(f"default/deployment-web-{letter}") for letter in "abc"] == [["two"]] * 3


def test_a_read_only_cache_directory_is_no_error(fleet: Fleet) -> None:
    fleet.commit(LAYOUT)
    fleet.cache.mkdir(mode=0o500)
    try:
        assert fleet.reconcile().changed
    finally:
        fleet.cache.chmod(0o700)
