"""gitsched rebalance writes a request for what a person names; gitsched tidy removes it when it has expired."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from gitsched.cli import main
from gitsched.reconcile import RunSettings, expired_documents
from tests.cli.conftest import CLUSTER, POLICY, TAINT, WORKLOAD, Run

POLICY_OF_ALL = POLICY.replace(
    "    - {apiVersion: apps/v1, kind: Deployment, name: web}\n",
    "    - {apiVersion: apps/v1, kind: Deployment}\n    - {apiVersion: v1, kind: Service}\n"
    "    - {apiVersion: v1, kind: ConfigMap, name: both}\n",
).replace("spec:\n", "spec:\n  propagateDeps: true\n", 1)
APP = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: NAME
  namespace: shop
  labels: {app: NAME, tier: front}
spec:
  replicas: 2
  selector: {matchLabels: {app: NAME}}
  template:
    metadata:
      labels: {app: NAME}
    spec:
      containers:
        - name: main
          image: example.com/main:1
          envFrom: [{configMapRef: {name: both}}, {configMapRef: {name: NAME}}]
---
apiVersion: v1
kind: Service
metadata: {name: NAME, namespace: shop}
spec: {selector: {app: NAME}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: shop}
"""
BOTH = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: both, namespace: shop}\n"
ONE = CLUSTER.format(name="one", owner="private")


def at(hour: int) -> tuple[str, str]:
    return "--now", f"2026-03-02T{hour:02}:00:00Z"


@pytest.fixture
def record(fleet: Path, git: Callable[..., str], environment: dict[str, str]) -> Callable[[int], None]:
    """Commit the worktree at an hour."""

    def make(hour: int) -> None:
        environment["GIT_COMMITTER_DATE"] = f"2026-03-02T{hour:02}:00:00Z"
        git("add", "--all", ".", at=fleet)
        git("commit", "-qm", "Change", at=fleet)

    return make


@pytest.fixture
def gitsched(fleet: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run commands in this process."""
    for name, text in environment.items():
        monkeypatch.setenv(name, text)
    monkeypatch.chdir(fleet)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        code = main(arguments)
        return subprocess.CompletedProcess(arguments, code, *capsys.readouterr())

    return run


@pytest.fixture
def displaced(fleet: Path, gitsched: Run, record: Callable[[int], None]) -> Path:
    """Two apps run in the cloud because cluster one had a power cut; the taint is removed in the worktree and not committed."""
    for name in ("web", "api"):
        (fleet / f"{name}.yaml").write_text(APP.replace("NAME", name))
    (fleet / "both.yaml").write_text(BOTH)
    (fleet / "policy.yaml").write_text(POLICY_OF_ALL)
    record(8)
    assert gitsched("reconcile", *at(8)).returncode == 0
    (fleet / "one.yaml").write_text(ONE + TAINT)
    record(9)
    for hour in (9, 10):
        assert gitsched("reconcile", *at(hour)).returncode == 0
    (fleet / "one.yaml").write_text(ONE)
    return fleet


def names(text: str) -> list[str]:
    return [f"{entry['kind']} {entry['name']}" for entry in yaml.safe_load(text)["spec"]["workloads"]]


def where(fleet: Path, git: Callable[..., str]) -> set[str]:
    paths = git("ls-tree", "-r", "--name-only", "placements", "clusters/one", at=fleet).splitlines()
    return {path.removeprefix("clusters/one/shop/") for path in paths if "/shop/" in path}


def test_a_workload_is_requested_with_its_service_and_without_what_others_use(displaced: Path, gitsched: Run) -> None:
    done = gitsched("rebalance", "web", *at(11))
    assert done.returncode == 0, done.stderr
    assert names(done.stdout) == ["Deployment web", "Service web"]
    assert yaml.safe_load(done.stdout)["spec"]["ttlSecondsAfterFinished"] == 86400
    assert "  Deployment/shop/web: two 2 -> one 2\n" in done.stderr
    assert "  Service/shop/web (belongs to it): two -> one\n" in done.stderr
    assert "  ConfigMap/shop/web (follows): two -> one\n" in done.stderr
    assert "Not included, because other workloads use it, too: ConfigMap/shop/both\n" in done.stderr
    assert not (displaced / "rebalance").exists()
    alone = gitsched("rebalance", "Deployment/shop/web", "--no-companions", "--ttl", "none", *at(11))
    assert names(alone.stdout) == ["Deployment web"]
    assert "ttlSecondsAfterFinished" not in alone.stdout


def test_the_written_request_moves_what_it_announces(
    displaced: Path, gitsched: Run, git: Callable[..., str], record: Callable[[int], None]
) -> None:
    first = gitsched("rebalance", "--all-displaced", "--write", *at(11))
    (file,) = (displaced / "rebalance").iterdir()
    text = file.read_text()
    assert first.stdout.startswith(f"wrote rebalance/{file.name}\n"), first.stderr
    assert names(text) == ["ConfigMap both", "Deployment api", "Deployment web", "Service api", "Service web"]
    second = gitsched("rebalance", "--all-displaced", "--write", *at(11))
    assert second.stdout.startswith(f"unchanged: rebalance/{file.name}\n")
    assert "The source has this request already" in second.stdout
    record(12)
    assert gitsched("reconcile", *at(12)).returncode == 0
    assert where(displaced, git) == {f"{kind}-{name}.yaml" for kind, name in (
        ("configmap", "both"), ("configmap", "web"), ("configmap", "api"), ("deployment", "web"), ("deployment", "api"),
        ("service", "web"), ("service", "api"),
    )}  # fmt: skip
    assert file.read_text() == text


def test_the_same_request_has_the_same_name_until_it_has_been_handled(
    displaced: Path, gitsched: Run, record: Callable[[int], None]
) -> None:
    asked = ("rebalance", "-n", "shop", "-l", "app in (web), tier=front", "--write", "-o", "json")
    first, again = (json.loads(gitsched(*asked, *at(hour)).stdout) for hour in (11, 12))
    assert first == again
    assert (displaced / first["path"]).read_text().startswith("# Written by `gitsched rebalance`.")
    assert {row["workload"]: row["after"] for row in first["workloads"]}["Deployment/shop/web"] == {"one": 2}
    record(13)
    assert gitsched("reconcile", *at(13)).returncode == 0
    later = json.loads(gitsched(*asked, *at(14)).stdout)
    assert later["path"] != first["path"]
    assert "scheduling from scratch gives the same clusters" in later["remarks"][0]


def test_a_request_that_moves_nothing_says_why(displaced: Path, gitsched: Run, git: Callable[..., str]) -> None:
    git("checkout", "-q", "one.yaml", at=displaced)
    done = gitsched("rebalance", "web", *at(11))
    assert "moves nothing.\nStays: Deployment/shop/web\n" in done.stderr
    assert "cluster one: cluster(s) had untolerated taint {power" in done.stderr
    nothing = gitsched("rebalance", "--all-displaced", *at(11)).stderr
    assert nothing.startswith("No workload is displaced")
    assert "goes back with gitsched rebalance --to COMMIT: gitsched status names the commit" in " ".join(nothing.split())


WRONG = [
    ((), 2, "name workloads, such as deploy/web"),
    (("deploy/web", "--all-displaced"), 2, "name workloads, such as deploy/web"),
    (("-l", "app in"), 2, "is not a label selector"),
    (("-A", "--all-displaced"), 2, "--all-namespaces is for -l"),
    (("deploy/web", "--ttl", "soon"), 2, "is neither a duration"),
    (("deploy/web", "--file", "a.yaml"), 2, "--file needs --write"),
    (("deploy/wbe", "-n", "shop"), 1, "did you mean web"),
    (("configmap/web", "-n", "shop"), 1, "attached to Deployment shop/web"),
    (("-l", "app=none", "-n", "shop"), 1, "no workload in namespace shop"),
    (("deploy/web", "-n", "shop", "--write", "--file", "../a.yaml"), 1, "not a path inside the worktree"),
    (("deploy/web", "-n", "shop", "--write", "--file", "web.yaml"), 1, "exists and has other content"),
]


def test_a_wrong_request_is_refused(displaced: Path, gitsched: Run) -> None:
    for arguments, code, message in WRONG:
        done = gitsched("rebalance", *arguments, *at(11))
        assert (done.returncode, message in done.stderr) == (code, True), (arguments, done.stderr)


def test_a_request_in_a_hidden_directory_is_reported(displaced: Path, gitsched: Run) -> None:
    (displaced / ".sourceignore").write_text("rebalance/\n")
    done = gitsched("rebalance", "-n", "shop", "deploy/web", "--write", *at(11))
    assert (done.returncode, "is not read: .sourceignore" in done.stderr) == (1, True)


def test_tidy_removes_only_requests_that_have_been_handled_and_expired(
    displaced: Path, gitsched: Run, git: Callable[..., str], record: Callable[[int], None]
) -> None:
    asked = gitsched("rebalance", "-n", "shop", "deploy/web", "--ttl", "0", *at(11)).stdout
    other = gitsched("rebalance", "-n", "shop", "deploy/api", "--ttl", "1h", "--write", *at(11)).stdout.split()[1]
    (displaced / "requests.yaml").write_text(f"# Ours.\n---\n{asked}# Kept.\n---\n# Settings.\n{BOTH.replace('both', 'more')}")
    assert gitsched("tidy", *at(11)).stdout == "No document has expired.\n", "no reconcile has handled them"
    record(12)
    assert gitsched("tidy", *at(12)).stdout == "No document has expired.\n"
    assert gitsched("reconcile", *at(12)).returncode == 0
    listed = gitsched("tidy", "--detailed-exitcode", *at(12))
    assert (listed.returncode, "requests.yaml:4: " in listed.stdout, other in listed.stdout) == (2, True, False), listed.stdout
    assert "Use --write to remove them." in listed.stdout
    findings = json.loads(gitsched("plan", "-o", "json", *at(12)).stdout)["findings"]
    (expired,) = (finding for finding in findings if finding["code"] == "rebalancer-expired")
    assert "`gitsched tidy --write`" in expired["message"]
    done = gitsched("tidy", "--write", *at(14))
    assert done.returncode == 0
    assert (displaced / "requests.yaml").read_text() == f"# Ours.\n# Kept.\n---\n# Settings.\n{BOTH.replace('both', 'more')}"
    assert not (displaced / other).exists()
    record(15)
    assert gitsched("tidy", *at(15)).stdout == "No document has expired.\n"
    assert gitsched("reconcile", *at(15)).returncode == 0
    assert "deployment-web.yaml" in where(displaced, git), "its removal moves nothing"
    assert "workloadrebalancer" not in git("ls-tree", "-r", "--name-only", "placements", at=displaced)


def test_tidy_does_not_break_a_kustomization(displaced: Path, gitsched: Run, record: Callable[[int], None]) -> None:
    file = gitsched("rebalance", "-n", "shop", "deploy/web", "--ttl", "0", "--write", *at(11)).stdout.split()[1]
    (displaced / "kustomization.yaml").write_text(f"resources: [web.yaml, ./{file}]\n")
    record(12)
    assert gitsched("reconcile", *at(12)).returncode == 0
    done = gitsched("tidy", "--write", "-o", "json", *at(13))
    (entry,) = json.loads(done.stdout)["documents"]
    assert (entry["removed"], entry["problem"]) == (False, "kustomization.yaml refers to the file: remove both")
    assert (displaced / file).exists()


UNUSABLE = [
    (".git/hooks/a.yaml", "is not a path inside the worktree"),
    ("sub/.GIT/a.yaml", "is not a path inside the worktree"),
    ("hooks/a.yaml", "is not a path inside the worktree"),
    ("elsewhere/a.yaml", "is not a path inside the worktree"),
    ("loop/a.yaml", "loop"),
    (f"{'a' * 300}.yaml", "ile name too long"),
    ("gitsched.yaml", "choose a name that ends in .yaml"),
    ("sub/kustomization.yaml", "choose a name that ends in .yaml"),
    ("notes.txt", "choose a name that ends in .yaml"),
    ("queue.yaml", "exists and has other content"),
]


def test_a_request_is_written_only_to_a_file_that_is_read_and_inside_of_the_worktree(
    displaced: Path, gitsched: Run, tmp_path: Path
) -> None:
    (displaced / "hooks").symlink_to(".git/hooks")
    (displaced / "elsewhere").symlink_to(tmp_path)
    (displaced / "loop").symlink_to("loop")
    os.mkfifo(displaced / "queue.yaml")
    for path, message in UNUSABLE:
        done = gitsched("rebalance", "-n", "shop", "deploy/web", "--write", "--file", path, *at(11))
        assert (done.returncode, message in done.stderr) == (1, True), (path, done.stderr)
    assert not list(displaced.rglob("a.yaml"))
    done = gitsched("rebalance", "-n", "shop", "deploy/web", "--write", "--file", "red\x1b[31m.yaml", *at(11))
    assert done.stdout.startswith("wrote red\\x1b[31m.yaml\n")


def test_tidy_leaves_a_file_alone_that_changes_in_the_meantime(
    displaced: Path, gitsched: Run, record: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("api", "web"):
        gitsched("rebalance", "-n", "shop", f"deploy/{name}", "--ttl", "0", "--write", "--file", f"{name}-request.yaml", *at(11))
    (displaced / "sub").mkdir()
    (displaced / "kustomization.yaml").symlink_to("sub/none.yaml")
    record(12)
    assert gitsched("reconcile", *at(12)).returncode == 0
    original = expired_documents.find_expired_documents

    def find(settings: RunSettings, root: Path) -> list[expired_documents.TidiedFile]:
        found = original(settings, root)
        with (root / "api-request.yaml").open("a") as file:
            file.write("# Not yet.\n")
        return found

    monkeypatch.setattr("gitsched.cli.commands.tidy.find_expired_documents", find)
    done = gitsched("tidy", "--write", *at(13))
    assert done.returncode == 1
    assert "not removed: api-request.yaml has changed in the meantime" in done.stdout
    assert (displaced / "api-request.yaml").read_text().endswith("# Not yet.\n")
    assert not (displaced / "web-request.yaml").exists()


def test_tidy_keeps_a_request_that_was_edited_after_it_expired(
    displaced: Path, gitsched: Run, record: Callable[[int], None]
) -> None:
    name = gitsched("rebalance", "-n", "shop", "deploy/web", "--ttl", "0", "--write", *at(11)).stdout.split()[1]
    record(12)
    assert gitsched("reconcile", *at(12)).returncode == 0
    file = displaced / name
    expired = file.read_text()
    file.write_text(expired.replace("ttlSecondsAfterFinished: 0", "ttlSecondsAfterFinished: 60"))
    assert gitsched("tidy", "--write", *at(13)).stdout == "No document has expired.\n"
    file.write_text(expired)
    assert gitsched("tidy", "--write", *at(13)).stdout.endswith("deleted the file\nCommit the changes.\n")
    assert not file.exists()


DATABASE = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop, labels: {tier: front}}
spec:
  replicas: 1
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: main, image: example.com/db:1}]}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 50Gi}}}
"""
LEFT = "leaves in two: claim template data (50Gi, storage class fast)"


@pytest.fixture
def stateful(fleet: Path, gitsched: Run, record: Callable[[int], None]) -> Path:
    """An app and a database run in the cloud, because cluster one was tainted when they were placed; the taint is removed."""
    (fleet / "web.yaml").write_text(APP.replace("NAME", "web"))
    (fleet / "both.yaml").write_text(BOTH)
    (fleet / "db.yaml").write_text(DATABASE)
    selectors = POLICY_OF_ALL.replace("kind: Deployment}\n", "kind: Deployment}\n    - {apiVersion: apps/v1, kind: StatefulSet}\n")
    (fleet / "policy.yaml").write_text(selectors)
    (fleet / "one.yaml").write_text(ONE + TAINT)
    record(8)
    assert gitsched("reconcile", *at(8)).returncode == 0
    (fleet / "one.yaml").write_text(ONE)
    return fleet


@pytest.mark.parametrize("chosen", [("--all-displaced",), ("-n", "shop", "-l", "tier=front")], ids=["displaced", "labels"])
def test_a_workload_that_is_held_for_its_data_is_not_requested_unless_it_is_named(
    stateful: Path, gitsched: Run, chosen: tuple[str, ...]
) -> None:
    done = gitsched("rebalance", *chosen, *at(11))
    assert done.returncode == 0, done.stderr
    assert "StatefulSet db" not in names(done.stdout)
    assert "Deployment web" in names(done.stdout)
    command = "gitsched rebalance -n shop StatefulSet/db"
    assert f"Held, and not included:\n  StatefulSet/shop/db {LEFT}. To move it all the same: {command}\n" in done.stderr
    named = gitsched(*command.split()[1:], *at(11))
    assert names(named.stdout) == ["StatefulSet db"]
    assert f"  StatefulSet/shop/db: two 1 -> one 1\n    it {LEFT}\n" in named.stderr


def test_what_a_request_leaves_behind_is_data_in_json(stateful: Path, gitsched: Run) -> None:
    done = gitsched("rebalance", "--all-displaced", "--write", "-o", "json", *at(11))
    left = {"clusters": ["two"], "data": ["claim template data (50Gi, storage class fast)"], "adopted": ""}
    assert json.loads(done.stdout)["held"] == [{"workload": "StatefulSet/shop/db", **left}]
    named = gitsched("rebalance", "-n", "shop", "sts/db", "--write", "-o", "json", *at(11))
    (row,) = json.loads(named.stdout)["workloads"]
    assert (row["workload"], row["leaves"]) == ("StatefulSet/shop/db", left)


def test_only_held_workloads_are_displaced(stateful: Path, gitsched: Run) -> None:
    for name in ("web.yaml", "both.yaml"):
        (stateful / name).unlink()
    done = gitsched("rebalance", "--all-displaced", *at(11))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith(f"There is nothing to request.\nHeld, and not included:\n  StatefulSet/shop/db {LEFT}.")


def test_where_workloads_with_data_are_not_held_the_request_says_what_they_leave(
    stateful: Path, gitsched: Run, record: Callable[[int], None]
) -> None:
    settings = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: g}\nspec: {guard: {holdStateful: false}}\n"
    (stateful / "gitsched.yaml").write_text(settings)
    record(9)
    assert gitsched("reconcile", *at(9)).returncode == 0
    done = gitsched("rebalance", "--all-displaced", *at(11))
    assert "StatefulSet db" in names(done.stdout)
    assert f"    it {LEFT}\n" in done.stderr


def test_what_waits_for_its_eviction_says_how_it_returns_and_when(
    fleet: Path, gitsched: Run, record: Callable[[int], None], git: Callable[..., str]
) -> None:
    """The drain ends while its evictions still run."""
    every = POLICY.replace("Deployment, name: web", "Deployment, name: api").replace("name: web\n  n", "name: api\n  n")
    every = every.partition("  placement:\n")[0] + "  placement: {}\n"
    files = {"web": WORKLOAD, "policy": POLICY, "api": WORKLOAD.replace("name: web", "name: api"), "every": every}
    for name, text in {**files, "one": ONE}.items():
        (fleet / f"{name}.yaml").write_text(text)
    record(8)
    gitsched("reconcile", *at(8))
    (fleet / "one.yaml").write_text(ONE + TAINT)
    record(9)
    gitsched("reconcile", *at(9))
    (fleet / "one.yaml").write_text(ONE)
    record(9)
    gitsched("reconcile", "--now", "2026-03-02T09:01:00Z")
    early = gitsched("rebalance", "--all-displaced", "--now", "2026-03-02T09:02:00Z")
    assert (early.returncode, early.stdout) == (0, "")
    assert early.stderr == (
        "There is nothing to request.\n"
        "Evictions from one still run, until 2026-03-02T09:10:00Z. Then:\n"
        "  1 workload returns by itself: Deployment/shop/api\n"
        "  1 workload can return with gitsched rebalance --all-displaced: Deployment/shop/web\n"
    )
    gitsched("reconcile", "--now", "2026-03-02T09:11:00Z")
    assert where(fleet, git) == {"deployment-api.yaml"}
    later = gitsched("rebalance", "--all-displaced", "--now", "2026-03-02T09:12:00Z")
    assert names(later.stdout) == ["Deployment web"]
    assert "Evictions" not in later.stderr
