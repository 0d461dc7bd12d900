"""`gitsched apply knative` with a real kubectl against an API server."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders.api_server import ApiServer
from tests.builders.knative import adapter, node, pods, settings, source
from tests.cli.conftest import Process, Run

RBAC = Path(__file__).parents[2] / "deploy/knative/rbac.yaml"
ADAPTER = "statefulsets/knative-eventing/kafkasource-mt-adapter"


@pytest.fixture
def server() -> Iterator[ApiServer]:
    server = ApiServer()
    yield server
    server.close()


@pytest.fixture
def events(fleet: Path, commit: Callable[..., None], gitsched: Run) -> Path:
    """Two pods of capacity 4; the sources `orders` and `invoices` have 4 and 2 vreplicas."""
    commit(
        fleet,
        gitsched=settings(cluster="events"),
        nodes=node("n0", "east"),
        adapter=adapter(2),
        pods=pods({0: "n0", 1: "n0"}),
        orders=source("orders", 4),
        invoices=source("invoices", 2),
    )
    assert gitsched("reconcile").returncode == 0
    return fleet


def load(*texts: str) -> list[dict[str, Any]]:
    return [yaml.safe_load(text) for text in texts]


@pytest.fixture
def apply(server: ApiServer, gitsched: Run, events: Path, tmp_path: Path) -> Run:
    """The cluster has both sources and a StatefulSet with one replica."""
    server.add(*load(adapter(1), source("orders", 4), source("invoices", 2)))
    kubeconfig = server.write_kubeconfig(tmp_path / "kubeconfig")

    def run(*arguments: str, **variables: str) -> Any:
        return gitsched("apply", "knative", "--kubeconfig", str(kubeconfig), *arguments, HOME=str(tmp_path), **variables)

    return run


def test_placements_are_set_in_the_status_and_nothing_else(apply: Run, server: ApiServer) -> None:
    server.objects["kafkasources/shop/orders"]["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}
    done = apply()
    assert done.returncode == 0, done.stderr
    assert server.patched() == ["kafkasources/shop/invoices/status", "kafkasources/shop/orders/status"]
    assert sum(entry["vreplicas"] for entry in server.placements("orders") or ()) == 4
    orders = server.objects["kafkasources/shop/orders"]
    assert orders["status"]["conditions"] == [{"type": "Ready", "status": "True"}]
    assert orders["spec"] == load(source("orders", 4))[0]["spec"]
    assert server.managers == {"gitsched"}
    assert done.stdout.splitlines()[-1].endswith(": 2 objects set, 0 unchanged")
    assert server.objects[ADAPTER]["spec"]["replicas"] == 1, "replicas are set only with --scale"


def test_a_source_on_thousands_of_pods_is_patched(apply: Run, server: ApiServer, git: Callable[..., str], events: Path) -> None:
    """The patch is longer than an argument of a process may be."""
    path = "status/sources.knative.dev/kafkasource/shop/orders.yaml"
    git("worktree", "add", "-q", "-f", "placed", "placements", at=events)
    record = yaml.safe_load((events / "placed" / path).read_text())
    record["status"]["placements"] = [{"podName": f"kafkasource-mt-adapter-{number}", "vreplicas": 1} for number in range(5000)]
    (events / "placed" / path).write_text(yaml.safe_dump(record))
    git("commit", "-qam", "Place", at=events / "placed")
    done = apply()
    assert done.returncode == 0, done.stdout
    assert len(server.placements("orders") or ()) == 5000


def test_a_second_run_changes_nothing(apply: Run, server: ApiServer) -> None:
    apply()
    server.requests.clear()
    assert apply().stdout.splitlines()[-1].endswith(": 0 objects set, 2 unchanged")
    assert server.patched() == []


def test_a_dry_run_stores_nothing(apply: Run, server: ApiServer) -> None:
    done = apply("--dry-run")
    assert done.stdout.startswith("would set KafkaSource.sources.knative.dev/shop/invoices: placements kafkasource-mt-adapter-")
    assert server.placements("orders") is None


def test_a_source_that_the_cluster_does_not_have_yet_is_reported(apply: Run, server: ApiServer) -> None:
    del server.objects["kafkasources/shop/orders"]
    done = apply()
    assert done.returncode == 0
    assert "missing KafkaSource.sources.knative.dev/shop/orders" in done.stdout
    assert server.placements("invoices")


def test_a_temporary_error_is_retried(apply: Run, server: ApiServer) -> None:
    server.failures = [503, 503]
    assert apply().returncode == 0
    assert server.placements("orders")
    assert server.placements("invoices")


def test_an_unreachable_server_is_a_temporary_failure(apply: Run, server: ApiServer) -> None:
    server.close()
    done = apply("--timeout", "2")
    assert (done.returncode, "Traceback" in done.stderr) == (4, False)


def test_a_forbidden_patch_fails_with_the_reason_and_others_go_on(apply: Run, server: ApiServer) -> None:
    server.denied = {"patch kafkasources/status"}
    done = apply("--scale")
    assert done.returncode == 1
    assert "failed KafkaSource.sources.knative.dev/shop/orders: kubectl patch: " in done.stdout
    assert "is forbidden" in done.stdout
    assert server.objects[ADAPTER]["spec"]["replicas"] == 2, "more pods do no harm"


def test_fewer_replicas_are_set_after_all_placements(apply: Run, server: ApiServer) -> None:
    server.objects[ADAPTER]["spec"]["replicas"] = 6
    server.denied = {"patch kafkasources/status"}
    done = apply("--scale")
    assert "waiting StatefulSet.apps/knative-eventing/kafkasource-mt-adapter: replicas 2" in done.stdout
    assert server.objects[ADAPTER]["spec"]["replicas"] == 6
    server.denied, server.requests = set(), []
    assert apply("--scale").returncode == 0
    assert server.patched()[-1] == f"{ADAPTER}/scale"
    assert server.objects[ADAPTER]["spec"]["replicas"] == 2


def test_more_replicas_are_set_before_the_placements(apply: Run, server: ApiServer) -> None:
    apply("--scale")
    assert server.patched()[0] == f"{ADAPTER}/scale"


def test_only_rights_of_the_deployed_roles_are_used(apply: Run, server: ApiServer) -> None:
    apply("--scale")
    used = {(verb.lower(), "/".join((parts[0], *parts[3:]))) for verb, parts in map(split_request, server.requests)}
    roles = [document for document in yaml.safe_load_all(RBAC.read_text()) if document["kind"] in ("ClusterRole", "Role")]
    rules = [rule for role in roles for rule in role["rules"]]
    granted = {(verb, resource) for rule in rules for verb in rule["verbs"] for resource in rule["resources"]}
    assert used == granted, "no right is missing, and none is granted that is not used"


def split_request(request: str) -> tuple[str, list[str]]:
    verb, path = request.split()
    return verb, path.split("/")


def test_watch_applies_a_new_commit_and_undoes_changes_by_others(
    apply: Run,
    server: ApiServer,
    events: Path,
    commit: Callable[..., None],
    gitsched: Run,
    environment: dict[str, str],
    tmp_path: Path,
) -> None:
    arguments = [
        "apply",
        "knative",
        "--watch",
        "--interval",
        "1",
        "--log-format",
        "json",
        "--kubeconfig",
        str(tmp_path / "kubeconfig"),
    ]
    process = Process(arguments, events, environment | {"HOME": str(tmp_path)}, tmp_path / "log")
    try:
        process.wait_for(lambda: bool(process.events("applied")))
        server.objects["kafkasources/shop/orders"]["status"]["placements"] = []
        process.wait_for(lambda: any("another writer" in line["message"] for line in process.events("apply")))
        assert sum(entry["vreplicas"] for entry in server.placements("orders") or ()) == 4
        commit(events, orders=source("orders", 1))
        assert gitsched("reconcile").returncode == 0
        process.wait_for(lambda: len(process.events("applied")) > 1)
        assert sum(entry["vreplicas"] for entry in server.placements("orders") or ()) == 1
        assert process.end(signal.SIGTERM) == 0
    finally:
        process.process.kill()


@pytest.mark.parametrize(
    ("replaced", "reason"),
    [
        (("vreplicas: 2", "vreplicas: many"), "a placement must have an integer in vreplicas"),
        (("kafkasource-mt-adapter", "other-adapter"), "belongs to no StatefulSet that the output has"),
        (("namespace: shop", "namespace: kube-system"), "does not contain the record that its path names"),
    ],
)
def test_a_record_that_was_tampered_with_is_refused(
    apply: Run, server: ApiServer, events: Path, git: Callable[..., str], tmp_path: Path, replaced: tuple[str, str], reason: str
) -> None:
    copy = tmp_path / "copy"
    git("worktree", "add", str(copy), "placements", at=events)
    record = copy / "status/sources.knative.dev/kafkasource/shop/orders.yaml"
    record.write_text(record.read_text().replace(*replaced))
    git("commit", "-qam", "edit", at=copy)
    done = apply()
    assert done.returncode == 1
    assert reason in done.stdout
    assert server.patched() == ["kafkasources/shop/invoices/status"]


def test_what_is_no_file_among_the_records_is_refused(
    apply: Run, server: ApiServer, events: Path, git: Callable[..., str], tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    git("worktree", "add", str(copy), "placements", at=events)
    directory = "status/sources.knative.dev/kafkasource/shop"
    (copy / directory / "link.yaml").symlink_to("/etc/passwd")
    (copy / directory / "list.yaml").write_text("- a\n")
    git("add", ".", at=copy)
    head = git("rev-parse", "HEAD", at=copy)
    git("update-index", "--add", "--cacheinfo", f"160000,{head},{directory}/module.yaml", at=copy)
    git("commit", "-qm", "edit", at=copy)
    done = apply()
    assert done.returncode == 1
    for name in ("link", "list", "module"):
        assert f"refused a file: {directory}/{name}.yaml " in done.stdout
    assert len(server.patched()) == 2, "the others are applied"


def test_a_branch_that_is_no_output_is_refused(apply: Run, server: ApiServer) -> None:
    done = apply("--output-branch", "main")
    assert (done.returncode, server.requests) == (1, [])
    assert "gitsched" in done.stderr


def test_an_unknown_cluster_is_refused(apply: Run, server: ApiServer) -> None:
    done = apply("--cluster", "staging")
    assert (done.returncode, server.requests) == (1, [])
    assert "no event sources for cluster 'staging': it has events" in done.stderr


def test_the_report_as_json_has_every_object(apply: Run, server: ApiServer) -> None:
    report = json.loads(apply("--cluster", "events", "-o", "json").stdout)
    assert report["kind"] == "ApplyReport"
    assert [(result["target"]["name"], result["state"]) for result in report["results"]] == [
        ("invoices", "patched"),
        ("orders", "patched"),
    ]


def test_without_kubectl_the_message_says_so(apply: Run) -> None:
    done = apply("--kubectl", "kubectl-that-is-not-there")
    assert done.returncode == 1
    assert "is not on the PATH: install kubectl" in done.stderr
