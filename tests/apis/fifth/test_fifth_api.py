"""A policy API that gitsched does not know works in every command after one call of register()."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import fork_server

PROGRAM = f"""\
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from site_api import API
from gitsched.decide.registry import register
register(API)
from gitsched.cli import main
sys.exit(main())
"""
NOW = ("--now", "2026-01-01T00:00:00Z")
Run = Callable[..., subprocess.CompletedProcess[str]]


def site(name: str, spec: str = "{region: eu}") -> str:
    return f"apiVersion: fleet.example.io/v1\nkind: Site\nmetadata: {{name: {name}}}\nspec: {spec}\n"


WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  annotations: {fleet.example.io/sites: "2"}
spec: {replicas: 2}
"""
CONFIG = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n"
SOURCE = {"sites/a.yaml": site("a"), "sites/b.yaml": site("b"), "sites/c.yaml": site("c"), "web.yaml": WEB}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "fleet"
    for name, text in SOURCE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    commit(root, "init", "-q", "-b", "main")
    return root


def commit(root: Path, *first: str) -> None:
    for command in (first, ("add", "-A"), ("commit", "-q", "-m", "Change the fleet")):
        if command:
            subprocess.run(["git", *command], cwd=root, check=True, env=os.environ | IDENTITY)


IDENTITY = {f"GIT_{role}_{what}": "ada@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@pytest.fixture
def gitsched(repository: Path, tmp_path: Path) -> Run:
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}

    def run(*arguments: str, fork: bool = True) -> subprocess.CompletedProcess[str]:
        return fork_server.run(arguments, repository, environment, program=PROGRAM, fork=fork)

    return run


def read_output(repository: Path, path: str) -> str:
    return subprocess.run(["git", "show", f"placements:{path}"], cwd=repository, capture_output=True, text=True, check=True).stdout


def test_validate_uses_the_schema_of_the_api(gitsched: Run, repository: Path) -> None:
    assert gitsched("validate").returncode == 0
    (repository / "sites/c.yaml").write_text(site("c", "{region: 1, offlien: true}"))
    result = gitsched("validate", fork=False)
    assert result.returncode != 0
    assert "sites/c.yaml:4" in result.stdout
    assert "region" in result.stdout
    assert "offlien" in result.stdout


def test_plan_shows_the_clusters_that_the_api_chooses(gitsched: Run) -> None:
    result = gitsched("plan", "-o", "json", *NOW)
    assert result.returncode in (0, 2), result.stderr
    plan = json.loads(result.stdout)
    (move,) = plan["moves"]
    assert (move["workload"]["name"], [target["cluster"] for target in move["after"]]) == ("web", ["a", "b"])


def test_reconcile_writes_the_manifest_to_each_cluster_and_the_record(gitsched: Run, repository: Path) -> None:
    result = gitsched("reconcile", *NOW)
    assert result.returncode == 0, result.stderr
    assert "name: web" in read_output(repository, "clusters/a/shop/deployment-web.yaml")
    assert "- a\n  - b" in read_output(repository, "status/fleet.example.io/siteplacement/shop/web.yaml")
    before = subprocess.run(["git", "rev-parse", "placements"], cwd=repository, capture_output=True, check=True).stdout
    assert gitsched("reconcile", *NOW).returncode == 0
    assert subprocess.run(["git", "rev-parse", "placements"], cwd=repository, capture_output=True, check=True).stdout == before


def test_reconcile_moves_a_workload_when_a_cluster_goes_offline(gitsched: Run, repository: Path) -> None:
    assert gitsched("reconcile", *NOW).returncode == 0
    (repository / "sites/a.yaml").write_text(site("a", "{offline: true}"))
    commit(repository)
    assert gitsched("reconcile", *NOW).returncode == 0
    assert "- b\n  - c" in read_output(repository, "status/fleet.example.io/siteplacement/shop/web.yaml")


def test_the_api_has_its_own_section_of_settings(gitsched: Run, repository: Path) -> None:
    (repository / "gitsched.yaml").write_text(CONFIG + "  sites: {limit: 1}\n")
    assert "warning" not in gitsched("validate").stdout
    commit(repository)
    assert gitsched("reconcile", *NOW).returncode == 0
    assert "sites:\n  - a\n" in read_output(repository, "status/fleet.example.io/siteplacement/shop/web.yaml")
    (repository / "gitsched.yaml").write_text(CONFIG + "  sites: {limit: many}\n")
    result = gitsched("validate")
    assert (result.returncode != 0, "gitsched.yaml:5" in result.stdout) == (True, True)


def test_init_writes_the_starter_files_of_the_api(gitsched: Run, repository: Path) -> None:
    result = gitsched("init", "--api", "sites", fork=False)  # the options of a command are defined when it is imported
    assert result.returncode == 0, result.stderr
    assert "limit: 3" in (repository / "gitsched.yaml").read_text()
    assert "kind: Site" in (repository / "sites/example.yaml").read_text()
    assert "warning" not in gitsched("validate").stdout


def test_explain_shows_the_policy_and_why_a_cluster_is_rejected(gitsched: Run, repository: Path) -> None:
    (repository / "sites/a.yaml").write_text(site("a", "{offline: true}"))
    commit(repository)
    result = gitsched("explain", "deploy/web", "-n", "shop", *NOW)
    assert result.returncode == 0, result.stderr
    assert "fleet.example.io/sites" in result.stdout
    assert "the site is offline" in result.stdout


def test_simulate_shows_where_the_workload_goes_when_a_cluster_is_lost(gitsched: Run) -> None:
    assert gitsched("reconcile", *NOW).returncode == 0
    result = gitsched("simulate", "--lose", "a", "-o", "json", *NOW)
    assert result.returncode == 0, result.stderr
    assert '"c"' in result.stdout


def quota(amount: int) -> str:
    return (
        f"apiVersion: fleet.example.io/v1\nkind: SiteQuota\nmetadata: {{name: disks, namespace: shop}}\nspec:\n  amount: {amount}\n"
    )


def test_a_decision_that_is_only_a_record_is_reviewed_like_a_placement(gitsched: Run, repository: Path) -> None:
    assert gitsched("reconcile", *NOW).returncode == 0
    unchanged = json.loads(gitsched("plan", "-o", "json", *NOW).stdout)
    assert (unchanged["recordChanges"], unchanged["records"]) == ([], [])
    (repository / "quota.yaml").write_text(quota(7))
    commit(repository)
    plan = json.loads(gitsched("plan", "-o", "json", *NOW).stdout)
    (change,) = plan["recordChanges"]
    assert (change["subject"]["name"], change["target"], change["before"]) == ("disks", "site", [])
    assert [(target["name"], target["amount"]) for target in change["after"]] == [("a", 3), ("b", 2), ("c", 2)]
    assert plan["digest"] != unchanged["digest"]
    refused, accepted = (
        gitsched("reconcile", "--require-reviewed", "--reviewed", each["digest"], *NOW) for each in (unchanged, plan)
    )
    assert (refused.returncode, "Not as reviewed" in refused.stdout) == (1, True), refused.stdout
    assert (accepted.returncode, "As reviewed" in accepted.stdout) == (0, True), accepted.stdout
    assert "| `SiteQuota shop/disks` | `site` | `a 3`, `b 2`, `c 2` |" in read_output(repository, "README.md")


def test_a_changed_record_has_a_cause_in_every_report(gitsched: Run, repository: Path) -> None:
    (repository / "quota.yaml").write_text(quota(6))
    commit(repository)
    assert gitsched("reconcile", *NOW).returncode == 0
    (repository / "sites/c.yaml").write_text(site("c", "{offline: true}"))
    commit(repository)
    (change,) = json.loads(gitsched("plan", "-o", "json", *NOW).stdout)["recordChanges"]
    assert [entry["text"] for entry in change["causes"]] == ["Site/c: spec.offline added: true"]
    for report in ("text", "markdown", "html"):
        found = gitsched("plan", "-o", report, *NOW).stdout.replace("`", "")
        assert ("SiteQuota shop/disks, site" in found, "Site/c: spec.offline added" in found) == (True, True), found
    explained = gitsched("explain", "sitequota/disks", "-n", "shop", *NOW)
    assert ("a: 3" in explained.stdout, "the site is offline" in explained.stdout) == (True, True), explained.stdout
    lost = " ".join(gitsched("simulate", "--lose", "b", *NOW).stdout.split())
    assert "the decision about 1 SiteQuota changes" in lost, lost


KARMADA = {
    "cluster.yaml": "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m1}\nspec: {syncMode: Pull}\n",
    "policy.yaml": (
        "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: web, namespace: shop}\n"
        "spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {}}\n"
    ),
    "settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\ndata: {a: b}\n",
    "web.yaml": WEB,
}
TRACE = """\
import os, sys
called = set()
def record(frame, event, _):
    if event == "call" and frame.f_code.co_name != "<module>":
        called.add(frame.f_code.co_filename)
from gitsched.cli import main
import gitsched.decide.registry
sys.setprofile(record)
try:
    main()
finally:
    sys.setprofile(None)
    parts = {name.split(f"gitsched{os.sep}apis{os.sep}")[1].split(os.sep)[0] for name in called if f"gitsched{os.sep}apis{os.sep}" in name}
    print("entered:", *sorted(part for part in parts if not part.endswith(".py")))
"""


def test_a_karmada_repository_enters_no_code_of_the_other_apis(tmp_path: Path) -> None:
    for name, text in KARMADA.items():
        (tmp_path / "karmada").mkdir(exist_ok=True)
        (tmp_path / "karmada" / name).write_text(text)
    commit(tmp_path / "karmada", "init", "-q", "-b", "main")
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3]), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    result = subprocess.run(
        [sys.executable, "-c", TRACE, "reconcile", *NOW], cwd=tmp_path / "karmada", env=environment, capture_output=True, text=True
    )
    assert result.stdout.splitlines()[-1] == "entered: gitsched karmada", result.stderr


def test_register_rejects_a_name_and_a_group_that_are_registered() -> None:
    script = (
        "import dataclasses\nfrom site_api import API\nfrom gitsched.decide.registry import register\n"
        "for change in ({'name': 'karmada'}, {'groups': frozenset({'apps.karmada.io'})}):\n"
        "    try:\n        register(dataclasses.replace(API, **change))\n    except ValueError:\n        print('rejected')\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(Path(__file__).parent), str(Path(__file__).parents[3])))}
    result = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout == "rejected\n" * 2
