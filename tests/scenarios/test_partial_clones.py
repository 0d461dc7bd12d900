"""Shallow and partial clones, bare or not: the run is that of a complete clone, and a clone that is only looked at stays as it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gitsched.git import promised_objects
from gitsched.git.object_transfer import fetch_objects
from gitsched.git.transport import read_transport_config
from gitsched.reconcile import Reconciler, RunSettings
from gitsched.reconcile.run import open_context
from tests.scenarios.conftest import LOCAL_SERVERS, Fleet, at_hour, cluster, deployment, policy

APPS = [f"app{number}" for number in range(6)]
PARTIAL = "--filter=blob:none"


def files(replicas: int) -> dict[str, str]:
    apps = {f"apps/{name}.yaml": deployment(name, replicas) for name in APPS}
    return {**apps, "policies/all.yaml": policy("first"), "clusters/first.yaml": cluster("first")}


def git(at: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=at, capture_output=True, check=True, text=True).stdout.strip()


class Server:
    """A server with two source commits, of which the first one has been reconciled."""

    def __init__(self, fleet: Fleet, where: Path) -> None:
        self.where, self.path = where, where / "server.git"
        fleet.commit(files(1))
        git(where, "clone", "-q", "--bare", str(fleet.path), str(self.path))
        git(self.path, "config", "uploadpack.allowFilter", "true")
        self.run(self.clone("first"))
        fleet.commit(files(2), hour=1)
        git(fleet.path, "push", "-q", str(self.path), "HEAD:main")

    def clone(self, name: str, *options: str) -> RunSettings:
        git(self.where, "clone", "-q", *options, f"file://{self.path}", name)
        cache, location = self.where / f"cache-{name}", str(self.where / name)
        return RunSettings(now=at_hour(1), cache=cache, location=location, push="origin", **LOCAL_SERVERS)

    def run(self, settings: RunSettings, *, preview: bool = False) -> str:
        run = Reconciler(settings).run(settings.now, preview=preview)
        return run.tree if preview else str(run.after)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Server:
    where = tmp_path_factory.mktemp("partial")
    return Server(Fleet(where / "fleet", where / "cache"), where)


@pytest.fixture(scope="module")
def expected(server: Server) -> tuple[str, str]:
    """Return the tree that a complete clone plans, and the commit that it makes."""
    head = git(server.path, "rev-parse", "placements")
    settings = server.clone("complete")
    found = server.run(settings, preview=True), server.run(settings)
    git(server.path, "update-ref", "refs/heads/placements", head)
    return found


def list_files(clone: Path) -> set[str]:
    return {str(path.relative_to(clone)) for path in clone.rglob("*") if path.is_file() and path.name != "index"}


@pytest.mark.parametrize(
    "options",
    [
        ("--bare", PARTIAL),
        (PARTIAL, "--depth=1"),
        ("--bare", "--depth=1"),
    ],
    ids=" ".join,
)
def test_a_clone_that_lacks_objects_runs_as_a_complete_one(
    server: Server, expected: tuple[str, str], options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    head, requests = git(server.path, "rev-parse", "placements"), list[int]()
    settings = server.clone("-".join(options).replace("-", "").replace(":", ""), *options)
    before = list_files(Path(settings.location))
    monkeypatch.setattr(
        promised_objects,
        "fetch_objects",
        lambda into, own, url, oids, **more: (requests.append(len(oids)), fetch_objects(into, own, url, oids, **more)),
    )
    assert server.run(settings, preview=True) == expected[0]
    assert list_files(Path(settings.location)) == before
    assert server.run(settings) == expected[1]
    if PARTIAL in options:
        assert list_files(Path(settings.location)) == before
    assert len(requests) < 8, "many blobs in one request"
    git(server.path, "update-ref", "refs/heads/placements", head)


def test_blobs_that_a_merge_needs_are_fetched(server: Server) -> None:
    settings = server.clone("merging", "--bare", PARTIAL)
    source = open_context(settings).source.repository
    head = str(source.resolve("HEAD"))
    parent = source.commit(head).parents[0]
    assert source.merge_commits(parent, head) == source.commit(head).tree


def test_git_contacts_a_remote_with_the_settings_of_the_clone(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "clone")
    clone, more = tmp_path / "clone", tmp_path / "credentials"
    more.write_text("[http]\n\textraHeader = AUTHORIZATION: basic eA==\n")
    git(clone, "config", f"includeIf.gitdir:{clone}/.git.path", str(more))
    git(clone, "config", "credential.helper", "")
    git(clone, "config", "core.sshCommand", "ssh -i key")
    git(clone, "config", "user.name", "somebody")
    assert dict(read_transport_config(str(clone / ".git"))) == {
        "http.extraheader": "AUTHORIZATION: basic eA==",
        "credential.helper": "",
        "core.sshcommand": "ssh -i key",
    }
