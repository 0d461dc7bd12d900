"""The watch service with a real remote and real HTTP requests: webhooks, metrics, probes, statuses and shutdown."""

from __future__ import annotations

import hashlib
import hmac
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import click
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gitsched.cli.service_options import FORGE_TOKEN_VARIABLE, SCORE_TOKENS_VARIABLE, WEBHOOK_SECRET_VARIABLE
from gitsched.cli.watch import command
from tests.cli.conftest import CLUSTER, PATIENCE, TAINT, Process, Run
from tests.forge.conftest import Api
from tests.git.conftest import Server

Git, Commit, Watch = Callable[..., str], Callable[..., None], Callable[..., Process]
SECRET, TOKEN = "a secret of sixteen", "ghp_0123456789abcdefABCDEF"
NEVER = ("--interval", "3600", "--debounce", "0.2")
PAGE = (Path(__file__).parents[2] / "docs" / "watch.md").read_text()


class Site:
    """A watch process and its HTTP server."""

    def __init__(self, process: Process) -> None:
        self.process = process
        process.wait_for(lambda: process.events("listen") != [])
        (self.address,) = process.events("listen")[0]["addresses"]

    def send_request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, str]:
        connection = HTTPConnection(self.address, timeout=PATIENCE)
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        answer = response.status, response.read().decode()
        connection.close()
        return answer

    def push(self, body: bytes = b"{}", secret: str = SECRET) -> int:
        """Send a push webhook as a forge does; return the status code."""
        digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        return self.send_request("POST", "/hook", body, {"X-Hub-Signature-256": f"sha256={digest}", "X-GitHub-Event": "push"})[0]

    def scrape(self) -> dict[str, float]:
        """Return samples by name and labels: `name{a=b,c=d}`."""
        code, text = self.send_request("GET", "/metrics")
        assert code == 200
        found = {}
        for family in text_string_to_metric_families(text):
            assert family.documentation, family.name
            for sample in family.samples:
                labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
                found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
        return found

    def count_runs(self) -> float:
        return sum(value for name, value in self.scrape().items() if name.startswith("gitsched_reconcile_duration_seconds_count"))


@pytest.fixture
def bare(fleet: Path, tmp_path: Path, git: Git) -> Path:
    """The remote of the fleet."""
    path = tmp_path / "fleet.git"
    git("clone", "-q", "--bare", str(fleet), str(path), at=tmp_path)
    return path


@pytest.fixture
def push(fleet: Path, bare: Path, git: Git, commit: Commit) -> Callable[..., str]:
    """Commit files and push them; return the commit."""

    def move(**files: str | None) -> str:
        commit(fleet, **files)
        git("push", "-q", str(bare), "main", at=fleet)
        return git("rev-parse", "HEAD", at=fleet)

    return move


@pytest.fixture
def api() -> Iterator[Api]:
    server = Api()
    yield server
    server.close()


@pytest.fixture
def listening(watcher: Watch, bare: Path, tmp_path: Path) -> Callable[..., Site]:
    """Start a watcher of the remote with a webhook, configured by environment variables as in a container."""

    def start(*arguments: str, **variables: str) -> Site:
        given = {"GITSCHED_REPO": bare.as_uri(), "GITSCHED_LISTEN": "127.0.0.1:0", "GITSCHED_WEBHOOK_SECRET": SECRET}
        return Site(watcher(tmp_path, *arguments, **given | variables))

    return start


def committed(site: Site) -> list[str]:
    return [line["commit"] for line in site.process.events("run") if line["commit"]]


def outputs(git: Git, at: Path) -> int:
    return int(git("rev-list", "--count", "placements", at=at))


def test_a_webhook_triggers_a_run_and_metrics_count_it(listening: Callable[..., Site], push: Callable[..., str]) -> None:
    site = listening(*NEVER)
    site.process.wait_for(lambda: site.send_request("GET", "/readyz") == (200, "ok\n"))
    before = site.scrape()
    assert before["gitsched_decisions{state=placed}"] == before["gitsched_decisions_changed_total"] == 1
    assert before["gitsched_push_to_commit_seconds_count"] == 0, "the time of the first push is unknown"
    source = push(one=CLUSTER.format(name="one", owner="private") + TAINT, web="kind: Deployment\nmetadata: [")
    assert site.push(secret="a wrong secret") == 401
    assert site.count_runs() == 1
    assert site.push() == 202
    site.process.wait_for(lambda: site.process.events("run")[-1]["source"] == source)
    site.process.wait_for(lambda: site.scrape()["gitsched_push_to_commit_seconds_count"] == 1)
    after = site.scrape()
    assert after["gitsched_reconcile_duration_seconds_count{result=committed}"] == 2
    assert after["gitsched_webhooks_total{outcome=accepted}"] == after["gitsched_webhooks_total{outcome=refused}"] == 1
    assert after["gitsched_findings{code=yaml-syntax,severity=error}"] == 1
    assert after["gitsched_decisions{state=stale}"] + after["gitsched_decisions{state=placed}"] == 1
    assert after["gitsched_conflicts_total"] == after["gitsched_guard_withheld_changes"] == 0
    assert after["gitsched_ready"] == 1
    assert site.process.end() == 0


def test_a_burst_of_webhooks_is_debounced(listening: Callable[..., Site]) -> None:
    site = listening(*NEVER, "--debounce", "2")
    site.process.wait_for(lambda: site.count_runs() == 1)
    for number in range(40):
        assert site.push(str(number).encode()) == 202
    assert site.push(b"39") == 202, "a replayed webhook is accepted"
    site.process.wait_for(lambda: site.count_runs() >= 2)
    # At most one run for every two seconds, not one for each webhook.
    assert site.count_runs() < 20


@pytest.mark.needs("prometheus")
def test_promtool_accepts_the_metrics(listening: Callable[..., Site]) -> None:
    site = listening(*NEVER)
    site.process.wait_for(lambda: site.count_runs() == 1)
    _, text = site.send_request("GET", "/metrics")
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.needs("prometheus")
def test_the_alerts_are_valid_for_prometheus() -> None:
    alerts = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yaml"
    done = subprocess.run(["promtool", "check", "rules", alerts], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_metrics_in_the_documentation_equal_those_of_the_service(listening: Callable[..., Site]) -> None:
    site = listening(*NEVER)
    site.process.wait_for(lambda: site.count_runs() == 1)
    _, text = site.send_request("GET", "/metrics")
    served = set(re.findall(r"^# TYPE (gitsched_\w+)", text, re.MULTILINE))
    cells = re.findall(r"^\| (`gitsched_[^|]+) \|", PAGE, re.MULTILINE)
    documented = {name for cell in cells for name in re.findall(r"gitsched_\w+", cell)}
    assert served == documented - {"gitsched_next_wakeup_timestamp_seconds"}, "present only if there is a deadline"


def test_variables_in_the_documentation_exist() -> None:
    known = {option.envvar for option in command.params if isinstance(option, click.Option)} | {
        SCORE_TOKENS_VARIABLE,
        WEBHOOK_SECRET_VARIABLE,
        FORGE_TOKEN_VARIABLE,
    }
    assert set(re.findall(r"GITSCHED_[A-Z_]+[A-Z]", PAGE)) <= known


def test_two_watchers_commit_a_change_once(listening: Callable[..., Site], push: Callable[..., str], bare: Path, git: Git) -> None:
    sites = [listening("--interval", "0.3", "--cache-dir", str(bare.parent / name)) for name in ("a", "b")]
    for changes in range(4):
        if changes:
            source = push(one=CLUSTER.format(name="one", owner="private") + (TAINT if changes % 2 else ""))
            for site in sites:
                site.push()
        else:
            source = git("rev-parse", "main", at=bare)
        for site in sites:
            site.process.wait_for(lambda site=site, source=source: source in [run["source"] for run in site.process.events("run")])
        assert outputs(git, bare) == changes + 1
    assert sorted(commit for site in sites for commit in committed(site)) == sorted(git("rev-list", "placements", at=bare).split())
    for site in sites:
        assert site.process.end() == 0
        # The signal may arrive while a run that finds nothing new is in progress.
        assert [line for line in site.process.lines() if line["level"] != "info" and line.get("event") != "abandoned"] == []


def test_an_unreachable_remote_is_retried_and_reported_by_probes(
    watcher: Watch, bare: Path, push: Callable[..., str], git: Git, tmp_path: Path
) -> None:
    git("config", "http.receivepack", "true", at=bare)
    remote = Server(bare.parent)
    try:
        remote.down = True
        arguments = ("-C", remote.url("open", bare.name), "--listen", "[::1]:0", *NEVER)
        site = Site(watcher(tmp_path, *arguments, GITSCHED_WEBHOOK_SECRET=SECRET))
        site.process.wait_for(lambda: site.process.events("temporary") != [])
        code, text = site.send_request("GET", "/readyz")
        assert (code, text.partition(",")[0]) == (503, "a repository cannot be reached")
        assert "127.0.0.1" not in text, "the address is only in the log"
        assert site.send_request("GET", "/healthz")[0] == 200, "an outage of the remote is no reason for a restart"
        assert site.scrape()["gitsched_ready"] == 0
        remote.down = False
        site.process.wait_for(lambda: site.send_request("GET", "/readyz")[0] == 200)
        assert outputs(git, bare) == 1
        assert site.scrape()["gitsched_reconcile_duration_seconds_count{result=temporary}"] >= 1
        assert site.process.end() == 0
    finally:
        remote.close()


HOOK = """\
#!/bin/sh
env > {place}/environment
touch {place}/begun
while [ ! -e {place}/go ]; do sleep 0.05; done
"""


@pytest.fixture
def gate(bare: Path, tmp_path: Path) -> Path:
    """Block every push at the remote: it creates the file `begun` and waits for the file `go`."""
    place = tmp_path / "gate"
    place.mkdir()
    hook = bare / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(HOOK.format(place=place))
    hook.chmod(0o755)
    return place


def test_a_started_push_is_completed_before_shutdown(listening: Callable[..., Site], bare: Path, gate: Path, git: Git) -> None:
    site = listening(*NEVER)
    site.process.wait_for((gate / "begun").exists)
    site.process.process.send_signal(signal.SIGTERM)
    site.process.wait_for(lambda: site.send_request("GET", "/readyz") == (503, "shutting down\n"))
    (gate / "go").touch()
    assert site.process.process.wait(PATIENCE) == 0
    assert committed(site) == [git("rev-parse", "placements", at=bare)]
    assert SECRET not in (gate / "environment").read_text(), "programs that git starts do not get the secret"


@pytest.mark.parametrize(("signals", "code"), [([signal.SIGTERM], 0), ([signal.SIGINT, signal.SIGINT], 130)], ids=["time", "twice"])
def test_a_hanging_push_is_aborted_and_the_next_watcher_continues(
    listening: Callable[..., Site], bare: Path, gate: Path, git: Git, signals: list[int], code: int
) -> None:
    site = listening(*NEVER, "--grace", "0.2" if len(signals) == 1 else "3600")
    site.process.wait_for((gate / "begun").exists)
    site.process.process.send_signal(signals[0])
    for number in signals[1:]:
        site.process.wait_for(lambda: site.send_request("GET", "/readyz")[1] == "shutting down\n")
        site.process.process.send_signal(number)
    assert site.process.process.wait(PATIENCE) == code
    assert site.process.events("abandoned") != []
    assert "Traceback" not in site.process.log.read_text()
    (gate / "go").touch()
    other = listening(*NEVER)
    other.process.wait_for(lambda: other.send_request("GET", "/readyz")[0] == 200)
    assert outputs(git, bare) == 1
    git("fsck", "--strict", at=bare)
    assert other.process.end() == 0


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_the_forge_receives_a_status_for_each_commit(
    listening: Callable[..., Site], push: Callable[..., str], bare: Path, git: Git, api: Api, kind: str
) -> None:
    site = listening(
        *NEVER, "--status", kind, "--forge-api", api.url, GITSCHED_FORGE_PROJECT="acme/fleet", GITSCHED_FORGE_TOKEN=TOKEN
    )
    site.process.wait_for(lambda: len(api.seen) == 1)
    first = git("rev-parse", "main", at=bare)
    second = push(web="kind: Deployment\nmetadata: [")
    site.push()
    site.process.wait_for(lambda: len(api.seen) == 2)
    site.push()
    site.process.wait_for(lambda: site.count_runs() >= 3)
    assert [request.path.rpartition("/")[2] for request in api.seen] == [first, second], "an unchanged status is not sent again"
    states = [request.body["state"] for request in api.seen]
    assert states == ["success", {"github": "failure", "gitlab": "failed"}[kind]]
    assert api.seen[0].body["description"] == "1 of 1 workload placed"
    assert "1 error in the source" in api.seen[1].body["description"]
    assert {request.body.get("context", request.body.get("name")) for request in api.seen} == {"gitsched/placements"}
    site.process.wait_for(lambda: site.scrape()["gitsched_statuses_total{outcome=sent}"] == 2)
    assert site.process.end() == 0
    assert TOKEN not in site.process.log.read_text()


def test_a_commit_that_cannot_be_planned_gets_a_failure_status(
    listening: Callable[..., Site], push: Callable[..., str], api: Api
) -> None:
    source = push(gitsched="apiVersion: gitsched.io/v1alpha1\nkind: Config\nspec: {output: {branch: main}}\n")
    variables = {"GITSCHED_FORGE_PROJECT": "acme/fleet", "GITSCHED_FORGE_TOKEN": TOKEN, "GITSCHED_FORGE_API": api.url}
    site = listening(*NEVER, "--status", "github", **variables)
    site.process.wait_for(lambda: len(api.seen) == 1)
    assert api.seen[0].path.endswith(source)
    assert api.seen[0].body["state"] == "failure"
    assert api.seen[0].body["description"].startswith("gitsched.yaml is broken (gitsched.yaml:1:1")
    assert site.send_request("GET", "/readyz")[1].startswith(
        "runs fail until the source, the settings or access to a repository is corrected, for "
    )
    fixed = push(gitsched=None)
    site.push()
    site.process.wait_for(lambda: len(api.seen) == 2)
    assert api.seen[1].path.endswith(fixed)
    assert (api.seen[1].body["state"], api.seen[1].body["context"]) == ("success", api.seen[0].body["context"])


def test_an_unreachable_forge_does_not_delay_runs(listening: Callable[..., Site], push: Callable[..., str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{taken.getsockname()[1]}"
    site = listening(
        *NEVER, "--status", "github", "--forge-api", dead, GITSCHED_FORGE_PROJECT="acme/fleet", GITSCHED_FORGE_TOKEN=TOKEN
    )
    site.process.wait_for(lambda: len(committed(site)) == 1)
    push(one=CLUSTER.format(name="one", owner="private") + TAINT)
    site.push()
    site.process.wait_for(lambda: len(committed(site)) == 2)
    assert site.process.end() == 0


@pytest.mark.parametrize(
    ("arguments", "variables", "code", "reason"),
    [
        (["--listen", "8080"], {}, 1, "an address is HOST:PORT"),
        (
            ["--webhook-secret-file", "../nowhere"],
            {"GITSCHED_LISTEN": "127.0.0.1:0"},
            1,
            "cannot be read from ../nowhere: No such file",
        ),
        ([], {"GITSCHED_WEBHOOK_SECRET": SECRET}, 2, "requires --listen"),
        (["--status", "github"], {}, 2, "--status requires a token"),
        (["--status", "github"], {"GITSCHED_FORGE_TOKEN": TOKEN}, 1, "--forge-api"),
        (["--forge-project", "a/b"], {}, 2, "require --status"),
        (["--listen", "127.0.0.1:0", "--webhook-secret-file", "web.yaml"], {}, 1, "inside the repository"),
        ([], {"GITSCHED_INTERVAL": "often"}, 2, "GITSCHED_INTERVAL"),
    ],
)
def test_impossible_options_are_reported_at_start(
    gitsched: Run, arguments: list[str], variables: dict[str, str], code: int, reason: str
) -> None:
    done = gitsched("watch", *arguments, **variables)
    assert done.returncode == code, done.stderr
    assert reason in done.stderr
    assert TOKEN not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_in_use_is_reported_at_start(gitsched: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = gitsched("watch", "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert done.returncode == 1
    assert re.search(r"^gitsched: cannot listen on 127.0.0.1:\d+: Address already in use$", done.stderr, re.MULTILINE)


def test_watch_without_listen_does_not_import_the_server(environment: dict[str, str], fleet: Path) -> None:
    script = (
        "import sys; from gitsched.cli import main; main(['watch', '--once'])\n"
        "print([name for name in ('asyncio', 'h11', 'httpx', 'prometheus_client', 'gitsched.watch', 'watchfiles') if name in sys.modules])"
    )
    done: Any = subprocess.run(
        [sys.executable, "-c", script], cwd=fleet, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
