"""`gitsched export krake`: bindings as requests that a shell sends to Krake's API, and as commands for Magnum."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders.krake import NAMESPACE, TOSCA, Body, cloud, cluster, magnum_cluster, project
from tests.cli.conftest import Run
from tests.local import LocalServer

CLUSTERS = f"/kubernetes/namespaces/{NAMESPACE}/clusters"
MAGNUM = f"/openstack/namespaces/{NAMESPACE}/magnumclusters"
OPENSTACK = """\
#!/bin/sh
case $* in
*show*) grep -qx "${*##* }" "$CREATED" 2>/dev/null ;;
*) echo "$*" >>"$LOG"; echo "${*##* }" >>"$CREATED" ;;
esac
"""
"""An openstack client that logs what it creates, and finds only that."""


class KrakeServer(LocalServer):
    """Krake's API: it creates objects once, and binds those that exist. `objects` and `bindings` are by path."""

    def __init__(self) -> None:
        self.objects: dict[str, Body] = {}
        self.bindings: dict[str, Body] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def respond(self) -> None:
                text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                self.send_response(outer.respond(self.command, self.path, json.loads(text or "{}")))
                self.end_headers()

            do_GET = do_POST = do_PUT = respond

            def log_message(self, *_: Any) -> None: ...

        super().__init__(Handler)

    def respond(self, method: str, path: str, body: Body) -> int:
        if method == "POST":
            own = f"{path}/{body['metadata']['name']}"
            if own in self.objects:
                return 409
            self.objects[own] = body
        elif method == "PUT":
            if path.removesuffix("/binding") not in self.objects:
                return 404
            self.bindings[path.removesuffix("/binding")] = body
        return 200 if method != "GET" or path in self.objects else 404


@pytest.fixture
def krake() -> Iterator[KrakeServer]:
    server = KrakeServer()
    yield server
    server.close()


@pytest.fixture
def write(fleet: Path, commit: Callable[..., None]) -> Callable[..., None]:
    """Commit documents as the only ones of the repository."""
    commit(fleet, web=None, policy=None, one=None, two=None)
    return lambda *documents: commit(fleet, krake=yaml.safe_dump_all(documents, sort_keys=False))


def run_shell(text: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh"], input=text, env={"PATH": "/usr/bin:/bin", **variables}, capture_output=True, text=True)


@pytest.mark.needs("curl")
def test_a_shell_creates_the_objects_and_binds_them(gitsched: Run, write: Callable[..., None], krake: KrakeServer) -> None:
    tosca = {**TOSCA, "description": "a 'quoted' $HOME"}
    write(cluster("made", None, tosca=tosca, inherit_labels=True), cloud("sky"), magnum_cluster(), project("p", labels={"a": "b"}))
    text = gitsched("export", "krake").stdout
    for _ in range(2):
        done = run_shell(text, KRAKE_API=krake.url)
        assert (done.returncode, done.stderr) == (0, "")
    made, magnum = krake.objects[f"{CLUSTERS}/made"], krake.objects[f"{MAGNUM}/m"]
    assert made["metadata"] == {"name": "made", "namespace": NAMESPACE, "labels": {}, "inherit_labels": True}
    assert (made["spec"]["tosca"], "kubeconfig" in made["spec"], "status" in made) == (tosca, False, False)
    assert magnum["metadata"]["labels"] == {"a": "b"}
    assert krake.bindings == {
        f"{CLUSTERS}/made": {
            "api": "infrastructure",
            "kind": "CloudBinding",
            "cloud": {"api": "infrastructure", "kind": "Cloud", "namespace": NAMESPACE, "name": "sky"},
        },
        f"{MAGNUM}/m": {
            "api": "openstack",
            "kind": "MagnumClusterBinding",
            "project": {"api": "openstack", "kind": "Project", "namespace": NAMESPACE, "name": "p"},
            "template": "template-p",
        },
    }


def test_the_shell_stops_when_the_api_refuses_a_request(gitsched: Run, write: Callable[..., None], krake: KrakeServer) -> None:
    write({**magnum_cluster(), "metadata": {**magnum_cluster()["metadata"], "uid": "known"}}, project("p"))
    text = gitsched("export", "krake").stdout
    assert "--request POST" not in text, "an object with a uid was read from Krake's API, so it exists"
    assert run_shell(text, KRAKE_API=krake.url).returncode != 0
    assert run_shell(text).returncode != 0, "KRAKE_API is not set"


def test_nothing_is_printed_for_clusters_that_exist_or_have_no_cloud(gitsched: Run, write: Callable[..., None]) -> None:
    write(
        cluster("with-kubeconfig"),
        cluster("online", "ONLINE", tosca=TOSCA),
        cluster("without-cloud", None, tosca=TOSCA, constraints={"labels": ["zone is x"]}),
        cloud("sky"),
        {**magnum_cluster(), "status": {"state": "RUNNING"}},
        project("p"),
    )
    assert gitsched("export", "krake").stdout == ""
    assert json.loads(gitsched("export", "krake", "-o", "json").stdout)["items"] == []
    assert "[krake-cluster-pending]" not in gitsched("plan").stdout


def test_magnum_creates_the_clusters_in_their_projects(gitsched: Run, write: Callable[..., None], tmp_path: Path) -> None:
    write(cluster("made", None, tosca=TOSCA), cloud("sky"), magnum_cluster(), project("p"))
    done = gitsched("export", "krake", "--for", "magnum")
    assert "Cluster.kubernetes/tenant-a/made is not exported" in done.stderr
    client, log = tmp_path / "openstack", tmp_path / "log"
    client.write_text(OPENSTACK)
    client.chmod(0o755)
    for _ in range(2):
        run_shell(done.stdout, PATH=f"{tmp_path}:/usr/bin:/bin", LOG=str(log), CREATED=str(tmp_path / "created"))
    assert log.read_text().splitlines() == [
        "--os-auth-url=u --os-project-id=p coe cluster create --cluster-template=template-p"
        " --master-count=1 --node-count=1 tenant-a-m"
    ]
    assert "password" not in done.stdout


@pytest.mark.needs("curl")
def test_hostile_texts_reach_the_api_unchanged(
    gitsched: Run, write: Callable[..., None], krake: KrakeServer, tmp_path: Path
) -> None:
    text = f"'; touch {tmp_path}/made; ' $(id) `id` \" \\ ##vso[task.complete] ###[group]\n::error::x\n  :: y \u2028 \x1b[31m"
    tosca = {**TOSCA, "description": text}
    write(cluster("made", None, tosca=tosca), cloud("sky"))
    done = run_shell(gitsched("export", "krake").stdout, KRAKE_API=krake.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert krake.objects[f"{CLUSTERS}/made"]["spec"]["tosca"] == tosca
    assert not (tmp_path / "made").exists()
    for form in ("json", "yaml"):
        shown = gitsched("export", "krake", "-o", form).stdout
        assert yaml.safe_load(shown)["items"][0]["body"]["spec"]["tosca"] == tosca
        assert "##vso[" not in shown


def test_commands_for_magnum_contain_no_credentials_and_no_options_of_the_project(
    gitsched: Run, write: Callable[..., None]
) -> None:
    url = "https://name:hidden@cloud.example.com:5000/v3"
    write(magnum_cluster(), {**project("p"), "spec": {**project("p")["spec"], "url": url, "template": "--debug"}})
    text = gitsched("export", "krake", "--for", "magnum").stdout
    assert "--os-auth-url=https://cloud.example.com:5000/v3 " in text
    assert "hidden" not in text
    assert " --cluster-template=--debug " in text
    write(magnum_cluster(), {**project("p"), "spec": {**project("p")["spec"], "template": "x\n::error::y"}})
    done = gitsched("export", "krake", "--for", "magnum")
    assert (done.stdout, "its Project p has no template, or a value with a line break" in done.stderr) == ("", True)


def test_a_project_without_a_template_is_a_finding(gitsched: Run, write: Callable[..., None]) -> None:
    bare = project("p")
    del bare["spec"]["template"]
    write(magnum_cluster(), bare)
    done = gitsched("export", "krake")
    assert done.stdout == ""
    assert "its Project p has no template" in done.stderr


def test_a_cluster_that_an_application_requested_needs_a_template(
    gitsched: Run, fleet: Path, write: Callable[..., None], git: Callable[..., str]
) -> None:
    web = {
        "api": "kubernetes",
        "kind": "Application",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {
            "manifest": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}],
            "constraints": {"cluster": {}},
            "auto_cluster_create": True,
        },
    }
    write(web, cloud("sky"))
    gitsched("reconcile")
    done = gitsched("export", "krake")
    assert done.stdout == ""
    assert "commit its record with spec.tosca" in done.stderr
    (path,) = git("ls-tree", "-r", "--name-only", "placements", "status/kubernetes/cluster/", at=fleet).split()
    record = yaml.safe_load(git("show", f"placements:{path}", at=fleet))
    record["spec"]["tosca"] = TOSCA
    write(web, cloud("sky"), record)
    done = gitsched("export", "krake", "-o", "json")
    assert done.stderr == ""
    create, bind = json.loads(done.stdout)["items"]
    assert create["body"]["metadata"]["name"] == record["metadata"]["name"]
    assert bind["body"]["cloud"]["name"] == "sky"


@pytest.mark.parametrize(("setting", "number"), [("none", 1), ("krake", 0), ("external", 0)])
def test_a_binding_without_a_provisioner_is_a_finding(
    gitsched: Run, fleet: Path, write: Callable[..., None], commit: Callable[..., None], setting: str, number: int
) -> None:
    config = {
        "apiVersion": "gitsched.io/v1alpha1",
        "kind": "Config",
        "metadata": {"name": "c"},
        "spec": {"krake": {"provisioner": setting}},
    }
    write(cluster("made", None, tosca=TOSCA), cloud("sky"))
    commit(fleet, gitsched=yaml.safe_dump(config))
    findings = json.loads(gitsched("plan", "-o", "json").stdout)["findings"]
    assert [finding["code"] for finding in findings].count("krake-cluster-pending") == number


def test_many_bindings_have_one_finding(gitsched: Run, write: Callable[..., None]) -> None:
    write(*(cluster(f"c{number}", None, tosca=TOSCA) for number in range(5)), cloud("sky"))
    findings = json.loads(gitsched("plan", "-o", "json").stdout)["findings"]
    (message,) = [finding["message"] for finding in findings if finding["code"] == "krake-cluster-pending"]
    assert message.startswith("5 clusters are bound, but do not exist")
