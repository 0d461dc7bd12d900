"""The pods of the manifests work as their nodes run them: user 10001, a read-only root, the volumes of the manifest. Two replicas commit to
one remote at the same time, and stop in the middle of runs; no decision is lost or made twice."""

from __future__ import annotations

import hashlib
import hmac
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CLUSTER, POLICY, WORKLOAD
from tests.deploy.pods import USER, Pod, can_isolate, read_image
from tests.deploy.rendering import Manifest, find, get_pod_template, render
from tests.git.conftest import Server
from tests.local import PATIENCE

pytestmark = [
    pytest.mark.needs("helm"),
    pytest.mark.skipif(not can_isolate(), reason="only root can create namespaces for mounts and processes here"),
]
SECRET = {"git-credentials": "username=ada\npassword=secret\n", "webhook-secret": "a secret of sixteen\n"}


class PausedPush:
    """A push that the server has received and not carried out."""

    def __init__(self) -> None:
        self.is_dropped = False
        self._released = threading.Event()

    def release(self) -> None:
        """Let the server carry out the push."""
        self._released.set()

    def drop(self) -> None:
        """End the connection without carrying out the push."""
        self.is_dropped = True
        self._released.set()

    def wait(self) -> None:
        """Wait for the decision."""
        self._released.wait(PATIENCE)


class PausingServer(Server):
    """Git over HTTP that pauses the next `expected` pushes."""

    def __init__(self, root: Path) -> None:
        self.expected = 0
        self.paused: list[PausedPush] = []
        super().__init__(root)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server, base = self, super()._handler()

        class Handler(base):  # type: ignore[misc, valid-type]
            def _serve(self, body: bytes) -> None:
                if self.path.endswith("/git-receive-pack") and body not in (b"", b"0000") and server.expected > 0:
                    server.expected -= 1
                    push = PausedPush()
                    server.paused.append(push)
                    push.wait()
                    if push.is_dropped:
                        self.close_connection = True
                        return
                super()._serve(body)

        return Handler


class Fleet:
    """A fleet in a remote repository, and the pods of the manifests."""

    def __init__(self, at: Path) -> None:
        self.at, self.remote = at, at / "fleet.git"
        self.git("init", "-q", "--bare", "-b", "main", str(self.remote), at=at)
        self.git("config", "http.receivepack", "true")
        self.git("clone", "-q", str(self.remote), "work", at=at)
        self.server = PausingServer(at)
        self.pods: list[Pod] = []
        self.number = 0

    def git(self, *arguments: str, at: Path | None = None) -> str:
        done = subprocess.run(["git", *arguments], cwd=at or self.remote, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, **files: str) -> str:
        """Commit files and push them; return the commit."""
        work = self.at / "work"
        for name, text in files.items():
            (work / f"{name}.yaml").write_text(text)
        self.git("add", "--all", at=work)
        self.git("commit", "-qm", "Change", at=work)
        self.git("push", "-q", "origin", "HEAD:main", at=work)
        return self.git("rev-parse", "main")

    def add_application(self) -> str:
        """Commit one more Deployment, which the policy places."""
        self.number += 1
        name = f"app-{self.number}"
        return self.commit(**{name: WORKLOAD.replace("name: web", f"name: {name}")})

    def render(self, **values: Any) -> tuple[Manifest, ...]:
        """Return the objects of the chart for this remote."""
        given: dict[str, Any] = {
            "image": {"repository": "registry.example.com/platform/gitsched"},
            "source": {"repository": self.server.url("auth", "fleet.git")},
            **values,
        }
        return render(given)

    def add_pod(self, kind: str, secret: Mapping[str, str] = SECRET, **values: Any) -> Pod:
        """Return a pod of the manifests; not started."""
        objects = self.render(**values)
        template = get_pod_template(find(objects, kind))
        assert template is not None
        self.pods.append(Pod(template["spec"], objects, secret, self.at / f"pod-{len(self.pods)}"))
        return self.pods[-1]

    def watch(self, secret: Mapping[str, str] = SECRET, **values: Any) -> Pod:
        """Return a pod of the Deployment with a free port, which looks at the remote when it starts and when it gets a webhook."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        watch = {"port": port, "interval": 3600, **values}
        return self.add_pod("Deployment", secret, watch=watch, environment={"GITSCHED_DEBOUNCE": "0"})

    def pause_push(self, pod: Pod) -> PausedPush:
        """Let a pod run until it pushes; the server pauses it."""
        self.server.expected, before = 1, len(self.server.paused)
        send_webhook(pod)
        pod.wait_for(lambda: len(self.server.paused) > before)
        return self.server.paused[-1]

    def read_output(self) -> str:
        """Return the newest output commit."""
        return (self.remote / "refs" / "heads" / "placements").read_text()

    def list_sources(self) -> list[str]:
        """Return the source commit of each output commit."""
        form = "--format=%(trailers:key=Gitsched-Source,valueonly,separator=)"
        return [line for line in self.git("log", "--reverse", form, "placements").splitlines() if line]

    def close(self) -> None:
        for push in self.server.paused:
            push.drop()
        for pod in self.pods:
            pod.kill()
        self.server.close()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(tmp_path)
    made.commit(
        one=CLUSTER.format(name="one", owner="private"),
        policy=POLICY.replace(", name: web}", "}"),
        web=WORKLOAD,
    )
    yield made
    made.close()


def send_webhook(pod: Pod) -> None:
    """Ask for a run as the forge does."""
    digest = hmac.new(SECRET["webhook-secret"].strip().encode(), b"{}", hashlib.sha256).hexdigest()
    (port,) = (entry["containerPort"] for entry in pod.container["ports"])
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("POST", "/hook", b"{}", {"X-Hub-Signature-256": f"sha256={digest}"})
    assert connection.getresponse().status == 202
    connection.close()


def knows(pod: Pod, source: str) -> Callable[[], bool]:
    return lambda: source in [run["source"] for run in pod.list_events("run")]


@pytest.mark.needs("ssh-keygen")
def test_the_container_has_the_user_root_and_volumes_of_the_manifest(fleet: Fleet) -> None:
    key = fleet.at / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    pod = fleet.watch(webhook=True, secret={**SECRET, "ssh-identity": key.read_text()})
    context = pod.spec["securityContext"]
    assert read_image()[3] == f"{context['runAsUser']}:{context['runAsGroup']}" == f"{USER}:{USER}"
    script = """
        id -u; id -G; pwd; echo $$; grep CapEff /proc/self/status
        for directory in / /etc/gitsched/settings /etc/gitsched/secrets /home/gitsched /tmp /var/cache/gitsched; do
            touch $directory/file 2>/dev/null && echo writable $directory
        done
        cat /etc/gitsched/secrets/webhook-secret
        ssh-keygen -y -f /etc/gitsched/secrets/ssh-identity | cut -d ' ' -f 1
        $GIT_SSH_COMMAND -G git.example.com 2>/dev/null | grep -E '^(identityfile|userknownhostsfile|stricthostkeychecking) '
    """
    assert pod.execute("sh", "-c", script).split("\n") == [
        *("10001", "10001", "/repo", "1", "CapEff:\t0000000000000000"),
        *("writable /tmp", "writable /var/cache/gitsched", "a secret of sixteen"),
        # ssh rejects keys that others can read, unless another user owns them.
        *("ssh-ed25519", "stricthostkeychecking true", "identityfile /etc/gitsched/secrets/ssh-identity"),
        *("userknownhostsfile /etc/gitsched/settings/known_hosts", ""),
    ]


def test_reconcile_commits_beside_watch_with_the_same_secret(fleet: Fleet) -> None:
    pod = fleet.add_pod("CronJob", reconcile={"enabled": True}, watch={"enabled": False})
    pod.start()
    assert pod.wait() == 0, pod.log.read_text()
    assert fleet.list_sources() == [fleet.git("rev-parse", "main")]
    assert all("ada:secret" not in path for path, _ in fleet.server.requests)


@pytest.mark.long
def test_two_replicas_lose_no_decision_and_make_none_twice(fleet: Fleet) -> None:
    one, two = fleet.watch(webhook=True), fleet.watch(webhook=True, grace=0)
    for pod in (one, two):
        pod.start()
    for pod in (one, two):
        pod.wait_for(lambda pod=pod: pod.probe("startupProbe")[0] == 200)
        pod.wait_for(lambda pod=pod: pod.probe("readinessProbe") == (200, "ok\n"))
        assert pod.probe("livenessProbe") == (200, "ok\n")
    assert fleet.list_sources() == [fleet.git("rev-parse", "main")]

    # Two pushes of different decisions wait for the same ref: that of the older commit wins.
    fleet.add_application()
    older = fleet.pause_push(one)
    source = fleet.add_application()
    newer = fleet.pause_push(two)
    before = fleet.read_output()
    older.release()
    one.wait_for(lambda: fleet.read_output() != before)
    newer.release()
    two.wait_for(knows(two, source))

    # That of the newer commit wins, and its process ends then: SIGTERM lets a run finish.
    fleet.add_application()
    older = fleet.pause_push(two)
    source = fleet.add_application()
    newer = fleet.pause_push(one)
    one.signal(signal.SIGTERM)
    one.wait_for(lambda: one.probe("readinessProbe") == (503, "shutting down\n"))
    newer.release()
    assert one.wait() == 0
    assert fleet.list_sources()[-1] == source
    older.release()
    two.wait_for(knows(two, source))
    monitor = find(fleet.render(serviceMonitor={"enabled": True}), "ServiceMonitor")["spec"]["endpoints"][0]
    assert "\ngitsched_conflicts_total 2.0\n" in two.get(monitor["path"], monitor["port"])[1], "it has lost twice"

    # After the grace period a run is cut off, and leaves nothing half done: the container starts again with the same cache.
    before = fleet.read_output()
    fleet.add_application()
    push = fleet.pause_push(two)
    assert two.stop() == 0
    push.drop()
    assert two.list_events("abandoned")
    assert fleet.read_output() == before
    source = fleet.add_application()
    two.start()
    two.wait_for(knows(two, source))
    assert two.stop() == 0
    check_history(fleet)


def check_history(fleet: Fleet) -> None:
    """Check that the output is a line of commits of ever newer sources, in which each application is placed by exactly one commit."""
    assert fleet.git("rev-list", "--min-parents=2", "placements") == ""
    main = fleet.git("rev-list", "--reverse", "main").split()
    positions = [main.index(source) for source in fleet.list_sources()]
    assert positions == sorted(set(positions)), "a commit of an older source came later, or one came twice"
    for number in range(1, fleet.number + 1):
        path = f"clusters/one/shop/deployment-app-{number}.yaml"
        assert len(fleet.git("log", "--format=%H", "placements", "--", path).split()) == 1, path
    assert positions[-1] == len(main) - 1
    fleet.git("fsck", "--strict", "--no-dangling")
