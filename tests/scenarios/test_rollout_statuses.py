"""Rollouts that wait for commit statuses of a forge: one context for each cluster, on the output commits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from gitsched.apis.gitsched.config import parse_config
from gitsched.apis.gitsched.config_section import SettingError
from tests.metrics.conftest import Received, Response, Server
from tests.scenarios.conftest import at_hour, cluster, deployment, policy
from tests.scenarios.test_rollouts import PLACEMENT, SETS, STAGES, colours, everywhere, managed, replica_set

PATHS = {
    "github": "/repos/acme/fleet/commits/{}/status",
    "gitea": "/api/v1/repos/acme/fleet/commits/{}/status",
    "gitlab": "/api/v4/projects/acme%2Ffleet/repository/commits/{}/statuses",
}
HALF = {"ash": "blue", "bru": "blue", "cph": "green", "dub": "green"}
GROUPS = "{type: ProgressivePerGroup}"


class Forge:
    """A forge with commit statuses by commit and context."""

    def __init__(self, server: Server, kind: str) -> None:
        self.server, self.kind = server, kind
        self.statuses: dict[str, dict[str, str]] = {}
        self.times: dict[str, str] = {}
        server.handle = self.answer

    def answer(self, received: Received) -> Response:
        path = received.path.partition("?")[0]
        before, after = PATHS[self.kind].split("{}")
        assert path.startswith(before)
        assert path.endswith(after)
        statuses = self.statuses.get(path.removeprefix(before).removesuffix(after), {})
        if self.kind == "gitlab":
            words = {"success": "success", "failure": "failed", "pending": "running"}
            return Response(json.dumps([{"name": context, "status": words[state]} for context, state in statuses.items()]))
        member = "state" if self.kind == "github" else "status"
        entries = [
            {"context": context, member: state, "updated_at": self.times.get(context.removeprefix("flux/"))}
            for context, state in statuses.items()
        ]
        return Response(json.dumps({"statuses": entries}))

    def set_status(self, commit: str, state: str, *clusters: str) -> None:
        self.statuses.setdefault(commit, {}).update({f"flux/{cluster}": state for cluster in clusters})

    @property
    def config(self) -> str:
        return (
            "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: fleet}\nspec:\n  observations:\n    statuses:\n"
            f"      {{forge: {self.kind}, url: '{self.server.url}', repository: acme/fleet, context: 'flux/{{cluster}}',"
            " tokenFrom: {env: FORGE_TOKEN}}\n"
        )


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("FORGE_TOKEN", "forge-token")
    server = Server()
    yield server
    server.close()


def start(fleet: Any, forge: Forge, strategy: str = GROUPS) -> None:
    """Roll out green to all clusters, then blue as far as possible without reports."""
    clusters = {f"clusters/{name}.yaml": managed(name, stage) for name, stage in STAGES.items()}
    fleet.commit({"sets.yaml": SETS, "placement.yaml": PLACEMENT, "gitsched.yaml": forge.config, **clusters})
    fleet.commit({"web.yaml": replica_set("green", "{type: All}")})
    fleet.reconcile()
    assert forge.server.seen == [], "type All needs no reports"
    fleet.commit({"web.yaml": replica_set("blue", strategy)}, hour=1)
    fleet.reconcile(hour=1)


@pytest.mark.parametrize("kind", PATHS)
def test_the_next_group_starts_when_all_clusters_of_the_last_group_succeed(fleet: Any, server: Server, kind: str) -> None:
    forge = Forge(server, kind)
    start(fleet, forge)
    first = fleet.head
    assert colours(fleet) == HALF
    forge.set_status(first, "success", "ash", "cph", "dub", "stranger")
    forge.set_status(first, "pending", "bru")
    fleet.reconcile(hour=2)
    assert fleet.head == first, "waits without a report"
    forge.set_status(first, "success", "bru")
    fleet.reconcile(hour=3)
    assert colours(fleet) == everywhere("blue")
    token = {"gitlab": "forge-token", "github": "Bearer forge-token", "gitea": "token forge-token"}[kind]
    assert {seen.headers["PRIVATE-TOKEN" if kind == "gitlab" else "Authorization"] for seen in server.seen} == {token}
    assert "forge-token" not in "".join(fleet.read(path) for path in fleet.files() if path.endswith((".json", ".md", ".yaml")))
    record = fleet.load("gitsched.json")["observations"]
    assert record[f"CommitStatus//bru/{first}"] == {"state": "Success", "time": "2026-03-02T09:00:00Z"}


def test_a_success_of_an_earlier_commit_does_not_count_for_the_next_one(fleet: Any, server: Server) -> None:
    forge = Forge(server, "github")
    start(fleet, forge, "{type: Progressive, progressive: {maxConcurrency: 2}}")
    first = fleet.head
    assert colours(fleet) == HALF
    forge.set_status(first, "success", *STAGES)
    fleet.reconcile(hour=2)
    assert colours(fleet) == everywhere("blue")
    status = fleet.load("status/work.open-cluster-management.io/manifestworkreplicaset/shop/web.yaml")["status"]
    assert status["summary"]["available"] == 2, "the statuses of cph and dub are about green"
    forge.set_status(fleet.head, "success", "cph", "dub")
    fleet.reconcile(hour=3)
    assert (
        fleet.load("status/work.open-cluster-management.io/manifestworkreplicaset/shop/web.yaml")["status"]["summary"]["available"]
        == 4
    )


def test_a_status_of_an_earlier_commit_with_the_same_change_counts(fleet: Any, server: Server) -> None:
    forge = Forge(server, "github")
    start(fleet, forge)
    first = fleet.head
    fleet.commit({"clusters/eve.yaml": managed("eve", "other")}, hour=2)
    fleet.reconcile(hour=2)
    assert fleet.head != first
    forge.set_status(first, "success", "ash")
    forge.set_status(fleet.head, "success", "bru")
    fleet.reconcile(hour=3)
    assert colours(fleet) == everywhere("blue")


def test_a_failure_stops_the_rollout(fleet: Any, server: Server) -> None:
    forge = Forge(server, "github")
    start(fleet, forge)
    forge.set_status(fleet.head, "success", "ash")
    forge.set_status(fleet.head, "failure", "bru")
    run = fleet.reconcile(hour=2)
    assert colours(fleet) == HALF
    assert "ocm-rollout-failed" in [finding.code for finding in run.plan.findings]


def test_the_rollout_waits_for_an_unreachable_forge_and_reports_it(fleet: Any, server: Server) -> None:
    forge = Forge(server, "github")
    start(fleet, forge)
    head = fleet.head
    server.handle = lambda received: Response("", 503)
    run = fleet.reconcile(hour=2)
    assert [finding.code for finding in run.plan.findings if finding.severity == "warning"] == ["ocm-statuses-unknown"]
    assert fleet.head == head
    assert "forge-token" not in str(run.plan.findings)


def test_recorded_statuses_are_replayed_and_an_untrusted_branch_sends_no_query(fleet: Any, server: Server) -> None:
    forge = Forge(server, "github")
    start(fleet, forge)
    forge.set_status(fleet.head, "success", "ash", "bru")
    fleet.reconcile(hour=2)
    head, queries = fleet.head, len(server.seen)
    assert colours(fleet) == everywhere("blue")
    fleet.reconcile(hour=3, observations="recorded")
    fleet.preview(hour=3, trusted=False)
    assert (fleet.head, len(server.seen)) == (head, queries)


@pytest.mark.parametrize(
    "chosen", [{"forge": "gitea"}, {"context": "fixed"}, {"context": "{cluster}{cluster}"}, {"repository": ""}, {"forge": "other"}]
)
def test_impossible_settings_are_refused_with_their_location(chosen: dict[str, str]) -> None:
    (name,) = chosen
    spec = {"observations": {"statuses": {"repository": "acme/fleet", **chosen}}}
    with pytest.raises(SettingError) as refused:
        parse_config(spec)
    assert refused.value.pointer == ("spec", "observations", "statuses", "url" if chosen == {"forge": "gitea"} else name)


def test_a_rollout_of_any_policy_reads_them_and_counts_from_their_time(fleet: Any, server: Server) -> None:
    forge = Forge(server, "github")
    strategy = "{type: Progressive, progressive: {maxConcurrency: 2, minSuccessTime: 1h}}"
    wave = f"apiVersion: gitsched.io/v1alpha1\nkind: Rollout\nmetadata: {{name: all}}\nspec: {{rolloutStrategy: {strategy}}}\n"
    clusters = {f"clusters/{name}.yaml": cluster(name) for name in STAGES}
    chosen = policy(",".join(STAGES))
    fleet.commit({"gitsched.yaml": forge.config, "policy.yaml": chosen, "web.yaml": deployment("web", 1), **clusters})
    fleet.reconcile()
    fleet.commit({"rollout.yaml": wave, "web.yaml": deployment("web", 2)}, hour=1)
    fleet.reconcile(hour=1)

    def updated() -> list[str]:
        path = "default/deployment-web.yaml"
        return [name for name in STAGES if "replicas: 2" in fleet.read(f"clusters/{name}/{path}")]

    assert updated() == ["ash", "bru"]
    forge.set_status(fleet.head, "success", "ash", "bru")
    forge.times = {"ash": "2026-03-02T09:10:00Z", "bru": "2026-03-02T09:50:00Z"}
    run = fleet.reconcile(hour=2.5)
    assert updated() == ["ash", "bru", "cph"], "bru is healthy for less than an hour"
    assert run.plan.next_wakeup == at_hour(2 + 50 / 60)
