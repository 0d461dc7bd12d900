"""Fixtures for tests with Git repositories."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

Git = Callable[..., str]
IDENTITY = {"NAME": "Ada", "EMAIL": "ada@example.org", "DATE": "2024-05-01T12:00:00 +0200"}
"""Who commits, and when."""


@pytest.fixture(autouse=True)
def clean_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_") and name != "GIT_CONFIG_GLOBAL"]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        for name, value in IDENTITY.items():
            monkeypatch.setenv(f"GIT_{role}_{name}", value)


@pytest.fixture
def git(tmp_path: Path) -> Git:
    def run(*arguments: str, at: Path | str = tmp_path, data: bytes | str | None = None, check: bool = True) -> str:
        text = data.encode() if isinstance(data, str) else data
        done = subprocess.run(["git", *arguments], cwd=at, input=text, capture_output=True, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"git {' '.join(arguments)}: {done.stderr.decode()}")
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    return run


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Repositories that tests get a copy of: a process of git takes several times as long."""
    path = tmp_path_factory.mktemp("templates")
    who = {f"GIT_{role}_{name}": value for role in ("AUTHOR", "COMMITTER") for name, value in IDENTITY.items()}

    def run(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=path, check=True, capture_output=True, env={**os.environ, **who})

    run("init", "-q", "--bare", "-b", "main", "bare")
    run("init", "-q", "-b", "main", "work")
    (path / "work/apps").mkdir()
    (path / "work/apps/web.yaml").write_text("kind: Deployment\n")
    (path / "work/readme").write_text("hello\n")
    run("-C", "work", "add", ".")
    run("-C", "work", "commit", "-qm", "Start\n\nBecause.\n\nReviewed-by: Bob")
    return path


@pytest.fixture
def work(tmp_path: Path, templates: Path) -> Path:
    """A worktree on `main` with one commit."""
    return shutil.copytree(templates / "work", tmp_path / "work", symlinks=True)


@pytest.fixture
def bare(tmp_path: Path, templates: Path) -> Path:
    return shutil.copytree(templates / "bare", tmp_path / "bare.git", symlinks=True)


class Server:
    """Git's smart HTTP on the loopback interface, with basic authentication and failures on demand.

    `/open/...` and `/auth/...` (ada:secret) serve repositories below `root`; `/forbidden/...` returns 403 and `/down/...` 503.
    `lose_ack` performs the next push and drops its response, while `down` is set every response is 503; `requests` has the path
    and Authorization header of each request.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lose_ack = self.down = False
        self.requests: list[tuple[str, str | None]] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.port = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def url(self, zone: str, name: str = "bare.git", user: str = "") -> str:
        return f"http://{user and user + '@'}127.0.0.1:{self.port}/{zone}/{name}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _handler(server) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._serve(b"")

            def do_POST(self) -> None:
                self._serve(self._body())

            def _body(self) -> bytes:
                if self.headers.get("Transfer-Encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                chunks = []
                while size := int(self.rfile.readline(), 16):
                    chunks.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(chunks)

            def _serve(self, body: bytes) -> None:
                path, _, query = self.path.partition("?")
                _, zone, rest = path.split("/", 2)
                authorization = self.headers.get("Authorization")
                server.requests.append((self.path, authorization))
                expected = "Basic " + base64.b64encode(b"ada:secret").decode()
                if zone in ("forbidden", "down") or server.down:
                    return self._answer(403 if zone == "forbidden" else 503, {}, b"no")
                if zone == "auth" and (authorization or "").replace("basic", "Basic") != expected:
                    return self._answer(401, {"WWW-Authenticate": 'Basic realm="git"'}, b"who?")
                env = {
                    "PATH": os.environ["PATH"],
                    "GIT_PROJECT_ROOT": str(server.root),
                    "GIT_HTTP_EXPORT_ALL": "1",
                    "GIT_CONFIG_GLOBAL": "/dev/null",
                    "PATH_INFO": "/" + rest,
                    "QUERY_STRING": query,
                    "REQUEST_METHOD": self.command,
                    "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                    "CONTENT_LENGTH": str(len(body)),
                    "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                    "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                    "REMOTE_USER": "ada",
                    "REMOTE_ADDR": "127.0.0.1",
                }
                done = subprocess.run(["git", "http-backend"], input=body, capture_output=True, env=env, check=False)
                if server.lose_ack and path.endswith("/git-receive-pack") and body != b"0000":
                    server.lose_ack = False
                    self.close_connection = True
                    return None
                head, _, content = done.stdout.partition(b"\r\n\r\n")
                headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
                return self._answer(int(headers.pop("Status", "200 OK").split()[0]), headers, content)

            def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *arguments: object) -> None:
                pass

        return Handler


@pytest.fixture
def server(bare: Path, git: Git) -> Iterator[Server]:
    """Serve `bare` without authentication at /open/bare.git, and with it at /auth/bare.git."""
    git("config", "http.receivepack", "true", at=bare)
    running = Server(bare.parent)
    yield running
    running.close()
