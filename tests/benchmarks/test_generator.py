"""The generated repository is the same for everyone, valid, and places every workload on about as many clusters as was asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
import yaml

import gitsched
from benchmarks.generator import Size, change, generate
from benchmarks.repository import create, git
from gitsched.decide.validation import validate_document
from gitsched.manifests.parser import parse_file

SMALL = Size(manifests=300, clusters=60, policies=8)


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return generate(SMALL, seed=1)


def documents(files: dict[str, bytes]) -> Iterator[dict[str, Any]]:
    for path, data in files.items():
        file = parse_file(data, path=path, validate=validate_document)
        assert (file.status, file.issues) == ("resources", ()), path
        yield from (document.body for document in file.documents)


def test_the_same_seed_gives_the_same_commit(files: dict[str, bytes], tmp_path: Path) -> None:
    one, two = (create(tmp_path / name, made) for name, made in (("one", files), ("two", generate(SMALL, seed=1))))
    assert one == two
    assert git(tmp_path / "one", "status", "--porcelain") == ""
    assert create(tmp_path / "three", generate(SMALL, seed=2)) != one


def test_the_repository_has_the_requested_size(files: dict[str, bytes]) -> None:
    assert [sum(path.startswith(room) for path in files) for room in ("apps/", "clusters/", "policies/")] == [300, 60, 8]


def test_nothing_is_found_in_it_and_every_workload_is_placed(files: dict[str, bytes]) -> None:
    result = gitsched.schedule(documents(files))
    assert result.findings == []
    bindings = [body for body in result.documents if body["kind"] == "ResourceBinding"]
    assert len(bindings) == SMALL.manifests
    assert 2.5 <= mean(len(body["spec"]["clusters"]) for body in bindings) <= 3.5
    assert {body["status"].get("schedulerObservingAffinityName") for body in bindings} >= {"backup"}


def test_a_round_changes_the_replicas_and_the_image_of_one_manifest(files: dict[str, bytes]) -> None:
    seen = set()
    for round_ in range(3):
        path, data = change(files, round_)
        seen.add(path)
        before, after = yaml.safe_load(files[path]), yaml.safe_load(data)
        assert after["spec"]["replicas"] == before["spec"]["replicas"] + 1
        container = after["spec"]["template"]["spec"]["containers"][0]
        assert container["image"] != before["spec"]["template"]["spec"]["containers"][0]["image"]
    assert len(seen) == 3


def test_a_wide_fleet_uses_every_cluster_and_has_a_large_namespace() -> None:
    size = SMALL._replace(manifests=1000, policies=60, wide=True)
    bindings = [
        body for body in gitsched.schedule(documents(generate(size, seed=1))).documents if body["kind"] == "ResourceBinding"
    ]
    placements = [tuple((one["name"], one.get("replicas")) for one in body["spec"]["clusters"]) for body in bindings]
    assert len({name for placement in placements for name, _ in placement}) == size.clusters
    assert len(set(placements)) > 150
    assert Counter(body["metadata"]["namespace"] for body in bindings)["team-000"] > 300
