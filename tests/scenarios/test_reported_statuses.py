"""The status of a fleet whose clusters report commit statuses to a forge, where no Rollout waits for these."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gitsched.reconcile import source_plan
from gitsched.reconcile.review.fleet_status import read_fleet_status
from tests.metrics.conftest import Server
from tests.scenarios.conftest import Fleet, cluster, deployment, policy
from tests.scenarios.test_rollout_statuses import Forge


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("FORGE_TOKEN", "forge-token")
    server = Server()
    yield server
    server.close()


def test_reported_statuses_are_read_from_the_forge_without_a_complete_plan(
    fleet: Fleet, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forge = Forge(server, "github")
    clusters = {f"{name}.yaml": cluster(name) for name in ("one", "two")}
    fleet.commit({"gitsched.yaml": forge.config, "policy.yaml": policy(""), "web.yaml": deployment("web"), **clusters})
    fleet.reconcile()
    forge.set_status(fleet.head or "", "failure", "one")
    fleet.commit({"README.md": "more\n"}, hour=1)
    settings = fleet.settings(1)
    whole = read_fleet_status(settings._replace(cache=tmp_path / "none"))
    monkeypatch.setattr(source_plan, "_plan_source", None)
    found = read_fleet_status(settings)
    assert found == whole
    assert not found.pending
    reports = {one.name: one.report for one in found.clusters}
    assert reports["two"] is None
    assert reports["one"] is not None
    assert reports["one"].health != "Healthy"
