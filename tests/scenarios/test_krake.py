"""Applications of Krake from the repository to the directories of clusters, with a metrics server that changes and fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from gitsched.model.allow_list import TokenRule
from gitsched.model.time import format_time
from gitsched.reconcile import Reconciler, RunResult, reconcile
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.render.run_metadata import parse_run_metadata
from gitsched.report.explanation import write_explanation
from gitsched.report.fleet_status import write_fleet_status
from tests.builders.krake import CANARY, application_yaml, cluster_yaml, global_metric_yaml, global_provider_yaml
from tests.metrics.conftest import Response, Server, vector
from tests.scenarios.conftest import Fleet, at_hour, execute

STATUS = "status/kubernetes/application/tenant-a/echo.yaml"
ZONE = "  constraints: {cluster: {labels: [zone is x]}}\n"


def config(spec: str) -> str:
    return f"apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {{name: gitsched}}\nspec: {{{spec}}}\n"


class Prometheus:
    """A metrics server. `values` are the metrics by name; None makes every query fail."""

    def __init__(self, server: Server) -> None:
        self.values: dict[str, float] | None = {"a": 0.5, "b": 0.5}
        self.url = server.url
        server.handle = self._answer
        self.server = server

    def _answer(self, received: object) -> Response:
        name = getattr(received, "path", "").partition("query=")[2]
        if self.values is None:
            return Response(status=503)
        return vector(name, str(self.values[name]))


@pytest.fixture
def prometheus(server: Server) -> Prometheus:
    return Prometheus(server)


@pytest.fixture
def tenant(fleet: Fleet, prometheus: Prometheus) -> Fleet:
    """Application `echo` and clusters `one` and `two` with one live metric each. Committed, not reconciled."""
    fleet.commit(
        {
            "clusters/one.yaml": cluster_yaml("one", "a"),
            "clusters/two.yaml": cluster_yaml("two", "b"),
            "metrics/all.yaml": f"{global_metric_yaml('a')}---\n{global_metric_yaml('b')}",
            "metrics/provider.yaml": global_provider_yaml("prometheus", f"{{url: '{prometheus.url}'}}"),
            "apps/echo.yaml": application_yaml(),
        }
    )
    return fleet


def target_cluster(fleet: Fleet) -> str:
    return str(fleet.load(STATUS)["status"]["scheduled_to"]["name"])


def codes(run: RunResult) -> set[str]:
    return {finding.code for finding in run.plan.findings}


def test_the_objects_of_an_application_are_in_the_directory_of_its_cluster(fleet: Fleet) -> None:
    fleet.commit({"one.yaml": cluster_yaml("one"), "echo.yaml": application_yaml()})
    run = fleet.reconcile()
    assert run.plan.findings == ()
    files = [path.removeprefix("clusters/tenant-a.one/") for path in fleet.files() if path.startswith("clusters/")]
    assert {"shop/deployment-echo.yaml", "default/configmap-echo-settings.yaml", "_/namespace-shop.yaml"} <= set(files)
    assert fleet.load("clusters/tenant-a.one/cluster.json")["labels"] == {"location": "DE"}
    status = fleet.load(STATUS)
    assert status["api"] == "kubernetes"
    assert "spec" not in status
    assert status["status"]["scheduled"] == status["status"]["kube_controller_triggered"] == "2026-03-02T08:00:00Z"


def test_a_second_run_commits_nothing(tenant: Fleet) -> None:
    tenant.reconcile()
    assert not tenant.reconcile(1).changed
    tenant.commit({"README.md": "hello"}, hour=2)
    assert not tenant.reconcile(3).changed


def test_a_better_cluster_wins_only_if_it_exceeds_the_stickiness(tenant: Fleet, prometheus: Prometheus) -> None:
    prometheus.values = {"a": 0.9, "b": 0.1}
    tenant.reconcile()
    assert target_cluster(tenant) == "one"
    # (0.5 + 0.1) / 1.1 is what staying is worth: more than b / 1.1 up to b = 0.6.
    prometheus.values = {"a": 0.5, "b": 0.59}
    assert not tenant.reconcile(1).changed
    prometheus.values = {"a": 0.5, "b": 0.61}
    run = tenant.reconcile(2)
    assert target_cluster(tenant) == "two"
    assert [move.after for move in run.plan.moves] == [{"tenant-a.two": 2}]
    (move,) = run.plan.moves
    assert "two scores 0.5545, one scores 0.5455 with its stickiness" in move.reason
    assert tenant.trailers()["Gitsched-Cause"] == "observation"
    assert tenant.load(STATUS)["status"]["scheduled"] == "2026-03-02T10:00:00Z", "when the metric was observed"


def test_an_application_leaves_a_cluster_without_metrics_for_one_with_metrics(tenant: Fleet, prometheus: Prometheus) -> None:
    tenant.commit({"clusters/one.yaml": cluster_yaml("one"), "clusters/two.yaml": None})
    tenant.reconcile()
    tenant.commit({"clusters/two.yaml": cluster_yaml("two", "b")}, hour=1)
    (move,) = tenant.reconcile(1).plan.moves
    assert (list(move.after), move.reason.endswith("two has metrics, one has none")) == (["tenant-a.two"], True)


def test_an_application_that_moved_recently_stays(tenant: Fleet, prometheus: Prometheus) -> None:
    tenant.commit({"gitsched.yaml": config("krake: {rescheduleAfter: 7200}")})
    prometheus.values = {"a": 0.9, "b": 0.1}
    tenant.reconcile()
    prometheus.values = {"a": 0.1, "b": 0.9}
    run = tenant.reconcile(1)
    assert target_cluster(tenant) == "one"
    assert run.plan.next_wakeup is not None
    assert run.plan.next_wakeup.isoformat() == "2026-03-02T10:00:00+00:00"
    text = write_explanation(explain_resource(tenant.settings(1), "Application", "tenant-a", "echo"), 160)
    assert "From 2026-03-02T10:00:00Z on a better cluster can replace it." in text
    tenant.reconcile(2)
    assert target_cluster(tenant) == "two"


def test_a_long_running_reconciler_observes_metrics_in_every_run(tenant: Fleet, prometheus: Prometheus) -> None:
    session = Reconciler(tenant.settings())
    prometheus.values = {"a": 0.9, "b": 0.1}
    session.run(at_hour(0))
    assert target_cluster(tenant) == "one"
    prometheus.values = {"a": 0.1, "b": 0.9}
    assert session.run(at_hour(1)).changed
    assert target_cluster(tenant) == "two"
    assert session.run(at_hour(2)).changed, "the copy in the first cluster is over"
    assert not session.run(at_hour(3)).changed


def test_a_failed_provider_keeps_the_placement(tenant: Fleet, prometheus: Prometheus) -> None:
    prometheus.values = {"a": 0.9, "b": 0.1}
    tenant.reconcile()
    prometheus.values = None
    run = tenant.reconcile(1)
    assert not run.changed
    assert [outcome.state for outcome in run.plan.outcomes.values()] == ["stale"]
    assert {"stale-decision", "krake-failing-metric"} <= codes(run)
    prometheus.values = {"a": 0.1, "b": 0.9}
    tenant.reconcile(2)
    assert target_cluster(tenant) == "two"


def test_a_failed_provider_is_reported_once(tenant: Fleet, prometheus: Prometheus) -> None:
    tenant.commit({f"clusters/{number}.yaml": cluster_yaml(f"c{number}", "a") for number in range(9)})
    prometheus.values = None
    (message,) = (finding.message for finding in tenant.reconcile().plan.findings if finding.code == "krake-failing-metric")
    assert "the metrics a, b of Cluster.kubernetes/tenant-a/c0, " in message
    assert "and 8 more cannot be used: Failed to query Prometheus with provider 'p': it answered with status 503" in message


def test_an_unscheduled_application_waits_for_a_failed_provider(tenant: Fleet, prometheus: Prometheus) -> None:
    prometheus.values = None
    run = tenant.reconcile()
    assert "scheduled_to" not in tenant.load(STATUS)["status"]
    assert [outcome.state for outcome in run.plan.outcomes.values()] == ["pending"]
    assert "unschedulable" in codes(run)
    prometheus.values = {"a": 0.1, "b": 0.9}
    tenant.reconcile(1)
    assert target_cluster(tenant) == "two"


def test_with_on_failure_exclude_an_application_leaves_a_cluster_with_failed_metrics(tenant: Fleet, prometheus: Prometheus) -> None:
    tenant.commit({"gitsched.yaml": config("observations: {onFailure: exclude}"), "clusters/three.yaml": cluster_yaml("three")})
    prometheus.values = {"a": 0.9, "b": 0.1}
    tenant.reconcile()
    assert target_cluster(tenant) == "one"
    prometheus.values = None
    tenant.reconcile(1)
    assert target_cluster(tenant) == "three"
    assert tenant.load("status/kubernetes/cluster/tenant-a/one.yaml")["status"]["state"] == "FAILING_METRICS"


def test_a_duplicate_cluster_keeps_its_applications(tenant: Fleet) -> None:
    tenant.reconcile()
    current = target_cluster(tenant)
    tenant.commit({f"clusters/{current}-again.yaml": cluster_yaml(current, "a")}, hour=1)
    tenant.reconcile(1)
    assert target_cluster(tenant) == current
    assert any(path.startswith(f"clusters/tenant-a.{current}/shop/") for path in tenant.files())


def test_a_duplicate_application_keeps_its_files(tenant: Fleet) -> None:
    tenant.reconcile()
    before = {path: blob for path, blob in tenant.files().items() if path.startswith("clusters/")}
    tenant.commit({"apps/copy.yaml": application_yaml(more="  backoff: 2\n")}, hour=1)
    run = tenant.reconcile(1)
    assert {path: blob for path, blob in tenant.files().items() if path.startswith("clusters/")} == before
    assert "duplicate-identity" in codes(run)


def test_recorded_values_can_be_reused_without_queries(tenant: Fleet, prometheus: Prometheus) -> None:
    prometheus.values = {"a": 0.9, "b": 0.1}
    tenant.reconcile()
    record = tenant.load("gitsched.json")
    assert record["observations"] == {"GlobalMetricsProvider//p/a": 0.9, "GlobalMetricsProvider//p/b": 0.1}
    assert record["observedAt"] == "2026-03-02T08:00:00Z"
    queries_before = len(prometheus.server.seen)
    prometheus.values = {"a": 0.0, "b": 1.0}
    assert not tenant.reconcile(1, observations="recorded").changed
    assert not tenant.preview(1, observations="recorded", trusted=False).changed
    assert len(prometheus.server.seen) == queries_before


def test_a_changed_provider_url_is_planned_with_recorded_values_and_reported(
    tenant: Fleet, prometheus: Prometheus, make_server: Callable[[], Server]
) -> None:
    prometheus.values = {"a": 0.9, "b": 0.1}
    tenant.reconcile()
    other_server = make_server()
    tenant.git("checkout", "-q", "-b", "proposal")
    tenant.commit({"metrics/provider.yaml": global_provider_yaml("prometheus", f"{{url: '{other_server.url}'}}")}, hour=1)
    for observations in ("live", "recorded"):
        run = tenant.preview(1, revision="proposal", observations=observations, trusted=False)
        assert other_server.seen == []
        assert codes(run) == {"krake-provider-changed", "sensitive-contact"}
        assert run.plan.moves == ()
    assert codes(tenant.preview(1, revision="main", observations="recorded", trusted=False)) == set(), (
        "nothing else is other than before"
    )


def test_a_proposal_with_unchanged_providers_can_be_planned_with_live_values(tenant: Fleet, prometheus: Prometheus) -> None:
    prometheus.values = {"a": 0.9, "b": 0.1}
    tenant.reconcile()
    prometheus.values = {"a": 0.1, "b": 0.9}
    tenant.git("checkout", "-q", "-b", "proposal")
    tenant.commit({"README.md": "hello"}, hour=1)
    run = tenant.preview(1, revision="proposal", observations="live", trusted=False)
    assert [move.after for move in run.plan.moves] == [{"tenant-a.two": 2}]


def test_a_proposal_cannot_make_itself_trusted_by_changing_the_output_branch(
    tenant: Fleet, prometheus: Prometheus, make_server: Callable[[], Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An untrusted output branch can name an untrusted commit as its source."""
    tenant.reconcile()
    other_server = make_server()
    monkeypatch.setenv("OPERATORS", CANARY)
    tenant.git("checkout", "-q", "-b", "proposal")
    source = global_provider_yaml("influx", f"{{url: '{other_server.url}', org: o, bucket: b, tokenFrom: {{env: OPERATORS}}}}")
    tenant.commit({"metrics/provider.yaml": source, "gitsched.yaml": config("output: {branch: theirs}")}, hour=1)
    reconcile(tenant.settings(1, branch="proposal", observations="recorded", output_branch="theirs"))
    assert (
        parse_run_metadata(tenant.git("show", "theirs:gitsched.json").encode()).source
        == tenant.git("rev-parse", "proposal").strip()
    )
    live = tenant.settings(2, revision="proposal", observations="live", trusted=False)
    assert "krake-not-asked" in codes(compare_plans(live).run)
    assert "krake-provider-changed" in codes(compare_plans(live, "main").run)
    assert other_server.seen == []
    compare_plans(live._replace(output_branch="theirs"))
    assert other_server.seen == [], "the operator does not allow the token"
    compare_plans(live._replace(output_branch="theirs", tokens=((TokenRule("env", "OPERATORS"),),)))
    assert other_server.seen != [], "naming the branch on the command line makes it trusted"


def test_compared_plans_use_the_same_values(tenant: Fleet, prometheus: Prometheus) -> None:
    prometheus.values = {"a": 0.9, "b": 0.1}
    tenant.reconcile()
    tenant.git("checkout", "-q", "-b", "proposal")
    tenant.commit({"README.md": "hello"}, hour=1)
    queries_before = len(prometheus.server.seen)
    compare_plans(tenant.settings(2, revision="proposal", observations="live", trusted=False), "main")
    assert len(prometheus.server.seen) - queries_before == 2, "two metrics, once each"


def test_a_new_provider_is_reported_with_its_location(tenant: Fleet, prometheus: Prometheus) -> None:
    tenant.reconcile()
    tenant.git("checkout", "-q", "-b", "proposal")
    other = global_provider_yaml("prometheus", f"{{url: '{prometheus.url}'}}").replace("name: p}", "name: other}")
    tenant.commit({"metrics/other.yaml": f"{global_metric_yaml('c', 'other')}---\n{other}"}, hour=1)
    found = tenant.preview(1, revision="proposal", observations="live", trusted=False).plan.findings
    (finding,) = (one for one in found if one.code == "krake-provider-changed")
    assert {one.code for one in found} == {"krake-provider-changed", "sensitive-contact"}
    assert str(finding).startswith("metrics/other.yaml:6:1: warning: GlobalMetricsProvider other")
    assert (
        "is newer than the source commit of the output branch: it is not queried, and its values are unknown until the next reconcile"
        in finding.message
    )


@pytest.mark.parametrize("damage", ["metadata: x", "status: [1]", "spec: [1]", "metadata: {annotations: x}", "x: y"])
def test_a_damaged_record_is_repaired(tenant: Fleet, tmp_path: Path, damage: str) -> None:
    tenant.reconcile()
    clone = tenant.checkout(tmp_path / "clone")
    head = "api: kubernetes\nkind: Application\n" + (
        "metadata: {name: echo, namespace: tenant-a}\n" if "metadata" not in damage else ""
    )
    (clone / STATUS).write_text(f"{head}{damage}\n")
    execute("-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qam", "By hand", at=clone)
    tenant.git("update-ref", "refs/heads/placements", execute("rev-parse", "HEAD", at=clone))
    tenant.reconcile(1)
    assert target_cluster(tenant) in ("one", "two")


@pytest.fixture
def make_server() -> Iterator[Callable[[], Server]]:
    servers: list[Server] = []

    def make() -> Server:
        servers.append(Server())
        return servers[-1]

    yield make
    for server in servers:
        server.close()


def test_a_removed_application_is_removed_from_its_cluster(tenant: Fleet) -> None:
    tenant.commit({"apps/other.yaml": application_yaml("other")})
    tenant.reconcile()
    tenant.commit({"apps/echo.yaml": None}, hour=1)
    run = tenant.reconcile(1)
    assert [(move.key.name, move.after) for move in run.plan.moves] == [("echo", {})]
    assert [path for path in tenant.files() if "echo" in path] == []
    assert [path for path in tenant.files() if "deployment-other" in path] != []


def test_removing_the_only_cluster_is_withheld(fleet: Fleet) -> None:
    apps = {f"app-{number}.yaml": application_yaml(f"app-{number}") for number in range(12)}
    fleet.commit({"one.yaml": cluster_yaml("one"), **apps})
    fleet.reconcile()
    fleet.commit({"one.yaml": None}, hour=1)
    delivered = {path: blob for path, blob in fleet.files().items() if path.startswith("clusters/tenant.one/")}
    assert "12 of 12 workloads would be removed from the fleet (limit: 20 %)" in map(str, fleet.reconcile(1).plan.withheld.limits)
    assert delivered.items() <= fleet.files().items()
    fleet.commit({"one.yaml": cluster_yaml("one", state="OFFLINE")}, hour=2)
    run = fleet.reconcile(2)
    assert (run.refused, run.plan.moves) == ("", ()), "what is bound stays where it is"


def test_an_application_that_cannot_be_scheduled_and_stays_is_in_the_status_with_the_reason(tenant: Fleet) -> None:
    tenant.reconcile()
    tenant.commit(
        {"apps/echo.yaml": application_yaml("echo").rstrip() + "\n  constraints: {cluster: {labels: [zone is nowhere]}}\n"}, hour=1
    )
    tenant.reconcile(1)
    lines = write_fleet_status(read_fleet_status(tenant.settings(1)), 300).splitlines()
    shown = next(line for line in lines if line.startswith("Not scheduled: "))
    assert shown.startswith("Not scheduled: Application tenant-a/echo: "), shown
    assert "could not be scheduled" not in shown


def test_explain_describes_what_a_competitor_needs(tenant: Fleet, prometheus: Prometheus) -> None:
    prometheus.values = {"a": 0.5, "b": 0.4}
    tenant.reconcile()
    text = write_explanation(explain_resource(tenant.settings(1, observations="recorded"), "Application", "tenant-a", "echo"), 160)
    assert "one has 0.545455, including its stickiness of 0.1" in text
    assert "two has 0.363636: to win it needs a score above 0.545455, for example with b above 0.6 instead of 0.4" in text
    assert "score 0.545455 = (a 0.5 + stickiness 0.1) / 1.1" in text
    assert f"Metrics were observed at {format_time(at_hour(0))}" in text


def test_a_failed_provider_does_not_change_the_record_of_an_offline_cluster(tenant: Fleet, prometheus: Prometheus) -> None:
    tenant.commit({"clusters/three.yaml": cluster_yaml("three", "a", state="OFFLINE")})
    tenant.reconcile()
    prometheus.values = None
    assert not tenant.reconcile(1).changed


def test_no_credentials_are_written_to_the_output_branch(
    tenant: Fleet, prometheus: Prometheus, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Kubeconfigs, tokens and passwords in valid documents, in broken documents and in responses of servers."""
    monkeypatch.setenv("INFLUX_TOKEN", CANARY)
    auth = f"{{type: password, password: {{user: {{id: u, password: {CANARY}}}, project: {{id: p}}}}}}"
    influx = f"{{url: 'http://user:{CANARY}@127.0.0.1:1', org: o, bucket: b, token: {CANARY}, tokenFrom: {{env: INFLUX_TOKEN}}}}"
    secret = f"{{apiVersion: v1, kind: Secret, metadata: {{name: s}}, stringData: {{a: {CANARY}}}}}"
    user = f"{{token: {CANARY}, client-key-data: {CANARY}}}"
    files = {
        "clusters/secured.yaml": cluster_yaml("secured", user=user),
        "cloud.yaml": "api: infrastructure\nkind: Cloud\nmetadata: {name: c, namespace: tenant-a}\n"
        f"spec: {{type: openstack, openstack: {{url: u, auth: {auth}, metrics: [{{name: z, weight: 1}}]}}}}\n",
        "project.yaml": "api: openstack\nkind: Project\nmetadata: {name: p, namespace: tenant-a}\n"
        f"spec: {{template: t, auth: {auth}, metrics: [{{name: z, weight: 1}}]}}\n",
        "magnum.yaml": "api: openstack\nkind: MagnumCluster\nmetadata: {name: m, namespace: tenant-a}\nspec: {node_count: 1}\n",
        "im.yaml": "api: infrastructure\nkind: InfrastructureProvider\nmetadata: {name: im, namespace: tenant-a}\n"
        f"spec: {{type: im, im: {{url: u, username: u, password: {CANARY}, token: {CANARY}}}}}\n",
        "z.yaml": global_metric_yaml("z", "influx")
        + f"---\napi: core\nkind: GlobalMetricsProvider\nmetadata: {{name: influx}}\nspec: {{type: influx, influx: {influx}}}\n",
        "csar.yaml": "api: kubernetes\nkind: Application\nmetadata: {name: csar, namespace: tenant-a}\n"
        f"spec: {{csar: 'https://user:{CANARY}@example.org/a.csar'}}\n",
        "unplaced.yaml": "api: kubernetes\nkind: Application\nmetadata: {name: unplaced, namespace: tenant-a}\nspec:\n"
        f"  manifest: [{secret}]\n  constraints: {{cluster: {{labels: [location is nowhere]}}}}\n",
    }
    tenant.commit(files)
    runs = [tenant.reconcile()]
    tenant.commit({name: text.replace("metadata: {name", "metadata: [{name", 1) for name, text in files.items()}, hour=1)
    runs.append(tenant.reconcile(1))
    tenant.commit({"clusters/one.yaml": cluster_yaml("one", user=user).replace("ONLINE}", "ONLINE")}, hour=2)
    runs.append(tenant.reconcile(2))
    tenant.commit({"clusters/one.yaml": cluster_yaml("one", user=user).replace("kubeconfig:", "kubeconfg:")}, hour=3)
    runs.append(tenant.reconcile(3))
    history = tenant.git("log", "-p", "--format=%B", "placements")
    assert any(path.startswith("kept/") for path in tenant.files("placements~1")), "the test breaks files whose last bytes are kept"
    assert CANARY not in history
    assert not any(CANARY in str(run.plan.findings) for run in runs)
    assert CANARY not in "".join(capfd.readouterr())


def test_observations_are_recorded_as_json(tenant: Fleet, prometheus: Prometheus) -> None:
    prometheus.values = None
    tenant.reconcile()
    entry = json.loads(tenant.read("gitsched.json"))["observations"]["GlobalMetricsProvider//p/a"]
    assert entry["code"] == "UNREACHABLE_METRICS_PROVIDER"
    assert "status 503" in entry["error"]
    assert prometheus.url not in entry["error"]


@pytest.mark.parametrize(
    "copy",
    [
        pytest.param(global_metric_yaml("a"), id="metric"),
        pytest.param(global_provider_yaml("static", "{metrics: {a: 0.0, b: 1.0}}"), id="provider"),
        pytest.param(cluster_yaml("one", "a"), id="cluster"),
        pytest.param(cluster_yaml("two", "b"), id="another cluster"),
    ],
)
def test_a_duplicate_document_moves_nothing(tenant: Fleet, prometheus: Prometheus, copy: str) -> None:
    prometheus.values = {"a": 0.9, "b": 0.1}
    tenant.reconcile()
    body = yaml.safe_load(copy)
    body["metadata"]["labels"] = {"copy": "yes"}
    tenant.commit({"copy.yaml": yaml.safe_dump(body)}, hour=1)
    run = tenant.reconcile(1)
    assert "duplicate-identity" in codes(run)
    assert (target_cluster(tenant), run.plan.moves) == ("one", ())


def test_a_duplicate_cloud_moves_nothing(fleet: Fleet) -> None:
    auth = "{type: password, password: {user: {username: u, password: p}, project: {name: p}}}"
    cloud = (
        "api: infrastructure\nkind: Cloud\nmetadata: {name: c, namespace: tenant-a, labels: {zone: x}}\n"
        f"spec: {{type: openstack, openstack: {{url: u, auth: {auth}}}}}\n"
    )
    inheriting = cluster_yaml("inheriting").replace("name: inheriting,", "name: inheriting, inherit_labels: true,").rstrip("}\n")
    inheriting += ", scheduled_to: {api: infrastructure, kind: Cloud, namespace: tenant-a, name: c}}\n"
    other = cluster_yaml("other").replace("location: DE", "zone: x")
    fleet.commit({"cloud.yaml": cloud, "inheriting.yaml": inheriting, "echo.yaml": application_yaml(more=ZONE)})
    fleet.reconcile()
    assert target_cluster(fleet) == "inheriting"
    fleet.commit(
        {"again.yaml": cloud.replace("url: u", "url: v"), "other.yaml": other, "new.yaml": application_yaml("new", ZONE)}, hour=1
    )
    run = fleet.reconcile(1)
    assert target_cluster(fleet) == "inheriting"
    assert fleet.load(STATUS.replace("echo", "new"))["status"]["scheduled_to"]["name"] == "other"
    assert "stale-decision" in codes(run)


CLOUD = "api: infrastructure\nkind: Cloud\nmetadata: {{name: cloud-{0}, namespace: tenant-a}}\nspec: {{type: openstack, openstack: {1}}}\n"
PROJECT = (
    "api: openstack\nkind: Project\nmetadata: {{name: project-{0}, namespace: tenant-a}}\nspec: {{template: t, url: u, {1}}}\n"
)
AUTH = "auth: {type: password, password: {user: {id: u, username: u}, project: {id: p, name: p}}}"
UNBOUND = """\
api: kubernetes
kind: Cluster
metadata: {name: made, namespace: tenant-a}
spec: {tosca: {topology_template: {outputs: {kubeconfig: {value: x}}}}}
---
api: openstack
kind: MagnumCluster
metadata: {name: magnum, namespace: tenant-a}
spec: {node_count: 1}
"""


@pytest.mark.parametrize(("values", "best"), [({"a": 0.9, "b": 0.1}, "a"), ({"a": 0.1, "b": 0.9}, "b")])
def test_a_cluster_is_bound_by_the_metrics_of_a_server(
    tenant: Fleet, prometheus: Prometheus, values: dict[str, float], best: str
) -> None:
    """A Cluster to the cloud, and a MagnumCluster to the project, with the best value."""
    metrics = {name: f"metrics: [{{name: {name}, weight: 1}}]" for name in "ab"}
    clouds = [CLOUD.format(name, f"{{url: u, {AUTH}, {metrics[name]}}}") for name in "ab"]
    projects = [PROJECT.format(name, f"{AUTH}, {metrics[name]}") for name in "ab"]
    tenant.commit({"backends.yaml": "---\n".join([*clouds, *projects]), "unbound.yaml": UNBOUND})
    prometheus.values = values
    tenant.reconcile()
    assert tenant.load("status/kubernetes/cluster/tenant-a/made.yaml")["status"]["scheduled_to"]["name"] == f"cloud-{best}"
    assert tenant.load("status/openstack/magnumcluster/tenant-a/magnum.yaml")["status"]["project"]["name"] == f"project-{best}"


@pytest.mark.parametrize(
    "deleting",
    [
        application_yaml() + "status: {state: DELETING}\n",
        application_yaml().replace("namespace: tenant-a}", "namespace: tenant-a, deleted: '2026-03-02T09:00:00Z'}"),
    ],
    ids=["state", "metadata.deleted"],
)
def test_a_deleted_application_leaves_its_cluster_once(tenant: Fleet, deleting: str) -> None:
    tenant.reconcile()
    tenant.commit({"apps/echo.yaml": deleting}, hour=1)
    (move,) = tenant.reconcile(1).plan.moves
    assert move.after == {}
    assert not tenant.preview(2).plan.moves, "the next plan does not repeat the removal"
    tenant.commit({"apps/echo.yaml": application_yaml()}, hour=3)
    (move,) = tenant.reconcile(3).plan.moves
    assert (move.before, list(move.after)) == ({}, ["tenant-a.two"])
