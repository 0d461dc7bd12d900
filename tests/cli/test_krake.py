"""Krake on the command line: explain of applications, clusters and Magnum clusters, and plans with changed providers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.metrics.conftest import Server, vector

pytestmark = pytest.mark.usefixtures("local_servers")

KUBECONFIG = "kubeconfig: {contexts: [{name: c}], clusters: [{name: c}], users: [{name: u}]}"
AUTH = "auth: {type: password, password: {user: {username: u, password: p}, project: {name: p}}}"
PROVIDER = "api: core\nkind: GlobalMetricsProvider\nmetadata: {name: p}\nspec:\n"
DOCUMENTS = {
    "one": "api: kubernetes\nkind: Cluster\nmetadata: {name: one, namespace: shop, labels: {zone: x}}\n"
    f"spec:\n  metrics: [{{name: heat, weight: 1}}]\n  {KUBECONFIG}\nstatus: {{state: ONLINE}}\n",
    "two": f"api: kubernetes\nkind: Cluster\nmetadata: {{name: two, namespace: shop}}\nspec:\n  {KUBECONFIG}\n"
    "status: {state: ONLINE}\n",
    "made": "api: kubernetes\nkind: Cluster\nmetadata: {name: made, namespace: shop}\n"
    "spec: {tosca: {topology_template: {outputs: {kubeconfig: {value: x}}}}, constraints: {cloud: {labels: [zone is x]}}}\n",
    "cloud": "api: infrastructure\nkind: GlobalCloud\nmetadata: {name: sky, labels: {zone: x}}\n"
    f"spec:\n  type: openstack\n  openstack:\n    url: u\n    {AUTH}\n",
    "magnum": "api: openstack\nkind: MagnumCluster\nmetadata: {name: m, namespace: shop}\nspec: {node_count: 1}\n",
    "project": "api: openstack\nkind: Project\nmetadata: {name: p, namespace: shop}\n"
    "spec: {url: u, template: t, auth: {type: password, password: {user: {id: u, password: p}, project: {id: p}}}}\n",
    "metric": "api: core\nkind: GlobalMetric\nmetadata: {name: heat}\n"
    "spec: {min: 0, max: 1, allowed_values: [], provider: {name: p, metric: heat}}\n",
    "provider": PROVIDER + "  type: static\n  static: {metrics: {heat: 0.5}}\n",
    "app": "api: kubernetes\nkind: Application\nmetadata: {name: web, namespace: shop}\nspec:\n"
    "  manifest: [{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}]\n"
    "  constraints: {cluster: {labels: [zone is x]}}\n",
}


@pytest.fixture
def tenant(tmp_path: Path, git: Callable[..., str], commit: Callable[..., None]) -> Path:
    path = tmp_path / "tenant"
    path.mkdir()
    git("init", "-q", "-b", "main", ".", at=path)
    commit(path, **DOCUMENTS)
    return path


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ("app/shop/web", ["zone == x", "one      yes   score", "two      no    label constraint zone == x", "shop.one"]),
        ("clusters/shop/made", ["zone == x", "Bound to GlobalCloud sky", "GlobalCloud/sky  yes"]),
        ("cluster/shop/one", ["Not bound: it has a kubeconfig"]),
        ("magnumcluster/shop/m", ["Bound to Project p", "p        yes"]),
    ],
)
def test_explain_shows_the_result_of_every_candidate(gitsched: Run, tenant: Path, words: str, lines: list[str]) -> None:
    found = gitsched("explain", words, at=tenant)
    assert found.returncode == 0, found.stderr
    assert [line for line in lines if line not in found.stdout] == []


def test_explain_shows_how_clouds_and_projects_are_scored(gitsched: Run, tenant: Path, commit: Callable[..., None]) -> None:
    metrics = "metrics: [{name: heat, weight: 10}]"
    project = DOCUMENTS["project"].replace("namespace: shop", "namespace: other").replace("{url: u", f"{{{metrics}, url: u")
    commit(tenant, cloud=DOCUMENTS["cloud"] + f"    {metrics}\n", project=project)
    assert "GlobalCloud/sky  yes   score 0.5 = (heat 0.5 * 10) / 10" in gitsched("explain", "cluster/shop/made", at=tenant).stdout
    output = gitsched("explain", "magnumcluster/shop/m", at=tenant).stdout
    assert "other/p  yes   score 0.5 = (heat 0.5 * 10) / 10" in output
    assert output.count("Project other/p") == 3, "in the trigger, the result and the finding"


def test_explain_shows_candidates_of_an_application_without_migration(
    gitsched: Run, tenant: Path, commit: Callable[..., None]
) -> None:
    assert gitsched("reconcile", at=tenant).returncode == 0
    commit(tenant, app=DOCUMENTS["app"].replace("[zone is x]}", "[zone is x]}, migration: false"))
    output = gitsched("explain", "app/shop/web", at=tenant).stdout
    assert "its migration is disabled." in output
    assert "one      yes   score" in output


def test_a_plan_reports_a_proposal_that_changes_a_provider(
    gitsched: Run, tenant: Path, git: Callable[..., str], commit: Callable[..., None]
) -> None:
    address = "  type: prometheus\n  prometheus: {url: 'http://127.0.0.1:%d'}\n"
    commit(tenant, provider=PROVIDER + address % 1)
    assert gitsched("reconcile", at=tenant).returncode == 0
    assert "krake-provider-changed" not in gitsched("plan", at=tenant).stdout
    git("checkout", "-q", "-b", "proposal", at=tenant)
    commit(tenant, provider=PROVIDER + address % 2)
    git("checkout", "-q", "main", at=tenant)
    for words in (["main", "proposal"], ["--revision", "proposal"], ["main", "proposal", "--observations", "live"]):
        found = gitsched("plan", *words, at=tenant)
        assert (found.returncode, "[krake-provider-changed]" in found.stdout) == (0, True), found.stdout + found.stderr


def test_a_constraint_split_by_yaml_is_reported_once(gitsched: Run, tenant: Path, commit: Callable[..., None]) -> None:
    commit(tenant, app=DOCUMENTS["app"].replace("[zone is x]", "[zone in (x, y)]"))
    found = gitsched("validate", at=tenant)
    assert found.returncode == 1
    assert "app.yaml:6:36: error: 'zone in (x' is not a label constraint" in found.stdout
    assert "quote the constraint" in found.stdout


@pytest.mark.parametrize("host", ["prom:0", "ftp://prom", "prom/x", "*", "*prom", "a b", "[::1]:x"])
def test_an_invalid_host_pattern_is_refused(gitsched: Run, tenant: Path, host: str) -> None:
    found = gitsched("reconcile", "--metrics-host", host, at=tenant)
    assert (found.returncode, "Invalid value for '--metrics-host'" in found.stderr) == (2, True), found.stderr


@pytest.mark.parametrize("host", ["", " ", ","])
def test_an_empty_host_list_allows_nothing(gitsched: Run, tenant: Path, commit: Callable[..., None], host: str) -> None:
    """A script with an unset variable passes an empty list."""
    commit(tenant, provider=PROVIDER + "  type: prometheus\n  prometheus: {url: 'http://127.0.0.1:1'}\n")
    output = gitsched("reconcile", at=tenant, GITSCHED_METRICS_HOSTS=host).stdout
    assert "does not allow its host 127.0.0.1" in " ".join(output.split())


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "other,127.0.0.1", "[::1]", "*.example.com", "127.0.0.1.", "127.0.0.1:1", "127.0.0.1:443"]
)
def test_hosts_can_be_separated_by_commas(gitsched: Run, tenant: Path, commit: Callable[..., None], host: str) -> None:
    commit(tenant, provider=PROVIDER + "  type: prometheus\n  prometheus: {url: 'http://127.0.0.1:1'}\n")
    output = gitsched("reconcile", "--metrics-host", host, at=tenant).stdout
    refused = "does not allow its host 127.0.0.1" in " ".join(output.split())
    assert refused == ("127" not in host or host.endswith(":443")), output


def test_explain_can_query_current_values(gitsched: Run, tenant: Path, commit: Callable[..., None], server: Server) -> None:
    commit(tenant, provider=PROVIDER + f"  type: prometheus\n  prometheus: {{url: '{server.url}'}}\n")
    server.handle = lambda _: vector("heat", "0.5")
    assert gitsched("reconcile", at=tenant).returncode == 0
    server.handle = lambda _: vector("heat", "0.75")
    assert "(heat 0.5 + stickiness 0.1) / 1.1" in gitsched("explain", "app/shop/web", at=tenant).stdout
    assert "(heat 0.75 + stickiness 0.1) / 1.1" in gitsched("explain", "app/shop/web", "--observations", "live", at=tenant).stdout


def test_tidy_removes_a_generated_cluster_that_no_application_uses(
    gitsched: Run, tenant: Path, commit: Callable[..., None]
) -> None:
    made = DOCUMENTS["two"].replace("name: two", "name: spare").replace("spec:\n", "spec:\n  auto_generated: true\n")
    commit(tenant, spare=f"{made}---\n# keep this comment\n{DOCUMENTS['two'].replace('name: two', 'name: other')}")
    assert gitsched("tidy", at=tenant).stdout == "No document has expired.\n", "no run has seen that it is unused"
    assert "[krake-cluster-unused]" in gitsched("reconcile", at=tenant).stdout
    assert gitsched("tidy", "--detailed-exitcode", at=tenant).returncode == 2
    found = gitsched("tidy", "--write", at=tenant)
    assert (found.returncode, "spare.yaml:1: Cluster" in found.stdout) == (0, True), found.stdout + found.stderr
    text = (tenant / "spare.yaml").read_text()
    assert ("name: spare" in text, "name: other" in text, "# keep this comment" in text) == (False, True, True)
    commit(tenant, spare=text)
    assert "krake-cluster-unused" not in gitsched("reconcile", at=tenant).stdout


def test_explain_of_a_deleted_application_shows_no_cluster(gitsched: Run, tenant: Path, commit: Callable[..., None]) -> None:
    assert gitsched("reconcile", at=tenant).returncode == 0
    commit(tenant, app=DOCUMENTS["app"] + "status: {state: DELETING}\n")
    output = gitsched("explain", "app/shop/web", at=tenant).stdout
    assert "Removed: it is being deleted." in output
    assert output.partition("Result\n")[2].split("\n")[0].strip() == "nowhere"


def test_a_plan_counts_the_workloads_that_were_unplaced_before(gitsched: Run, tenant: Path, commit: Callable[..., None]) -> None:
    """An application that stays on an unavailable cluster is placed, and a Cluster without a cloud is no workload."""
    lost = DOCUMENTS["made"].replace("name: made", "name: lost").replace("zone is x", "zone is nowhere")
    waiting = DOCUMENTS["app"].replace("name: web", "name: waiting").replace("zone is x", "zone is nowhere")
    settings = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {krake: {rescheduleAfter: 24h}}\n"
    commit(tenant, one=DOCUMENTS["one"].replace("ONLINE", "NOTREADY"), lost=lost, waiting=waiting, gitsched=settings)
    assert gitsched("reconcile", at=tenant).returncode == 0
    commit(tenant, one=DOCUMENTS["one"], app=DOCUMENTS["app"])
    assert gitsched("reconcile", at=tenant).returncode == 0
    commit(tenant, one=DOCUMENTS["one"].replace("ONLINE", "NOTREADY"))
    found = gitsched("reconcile", at=tenant)
    assert found.stdout.count("[unschedulable]") == 3, found.stdout
    base = json.loads(gitsched("plan", "-o", "json", at=tenant).stdout)["base"]
    assert base["workloads"] == {"placed": 1, "pending": 1, "stale": 0}
    commit(tenant, waiting=None)
    assert "unplaced workloads: 1 -> 0" in gitsched("plan", at=tenant).stdout
