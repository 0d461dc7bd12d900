"""The filter and the score that docs/development/architecture.md shows work as it says: with the caches of earlier runs, and without."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.builders.ocm import Body, bound_global_set, managed_cluster, placed_config_map, placement, to_yaml
from tests.scenarios.conftest import Fleet

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "development" / "architecture.md").read_text(encoding="utf-8")
LIST, SCORES = "FILTERS: tuple[FilterPlugin, ...] = (\n", "    return tuple(weighted_scores), add_ons\n"
PROGRAM = """\
import json, os, subprocess, sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from gitsched.reconcile import RunSettings, reconcile
root, scratch, *commits = sys.argv[1:]

def git(*words):
    return subprocess.run(["git", "-C", root, *words], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

for number, commit in enumerate(commits):
    git("update-ref", "refs/heads/main", commit)
    now, plans = datetime(2026, 3, 2, 9 + number, tzinfo=UTC), []
    for cache, branch in (("kept", "kept"), (f"fresh-{os.getpid()}-{number}", "fresh")):
        run = reconcile(RunSettings(now=now, cache=Path(scratch, cache), location=root, output_branch=branch))
        plans.append(run.plan)
    placed = {key.name: sorted(outcome.clusters) for key, outcome in plans[1].outcomes.items()}
    print(json.dumps([git("rev-parse", "kept"), git("rev-parse", "fresh"), plans[0].complete, placed]))
"""
"""Reconciles commits one after another, with one cache for all and with a new one for each."""


def read_section(section: str) -> str:
    """Return the text of a section of the page."""
    return PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]


def read_blocks(section: str) -> list[str]:
    """Return the blocks of Python in a section of the page."""
    return re.findall(r"```python\n(.*?)```", read_section(section), re.DOTALL)


FILTER, REGISTRATION = read_blocks("Adding a filter")
SCORE, REQUEST = read_blocks("Adding a score")


def insert(path: Path, before: str, text: str) -> None:
    """Insert a text before a line that a file has once."""
    found = path.read_text(encoding="utf-8")
    assert found.count(before) == 1
    path.write_text(found.replace(before, f"{text}{before}"), encoding="utf-8")


def cluster(name: str, *, maintained: bool = False) -> Body:
    labels = {"tier": "prod", **({"maintenance": "yes"} if maintained else {})}
    spec = {"syncMode": "Push", "apiEndpoint": f"https://{name}.example.com"}
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }


def policy(kind: str, **placed: Any) -> Body:
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": kind.lower(), "namespace": "shop"},
        "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": kind}], "placement": placed},
    }


def secret(name: str) -> Body:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "shop"}}


POLICIES = to_yaml(policy("Secret", clusterAffinity={"clusterNames": ["a"]}), policy("ServiceAccount"))
ACCOUNT = to_yaml({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "all", "namespace": "shop"}})
PLACED = to_yaml(*bound_global_set("default"), placement("one", "default", 1, ()), placed_config_map("data", "default", "one"))


def write_hub(preferred: str) -> str:
    """Return three clusters of a hub, one of which is preferred."""
    return to_yaml(*(managed_cluster(name, {"preferred": "yes"} if name == preferred else {}) for name in ("m1", "m2", "m3")))


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path / "fleet", tmp_path / "cache")


@pytest.fixture
def history(fleet: Fleet) -> list[str]:
    """Commits of clusters that come into maintenance and are preferred."""
    maintained, ready = (to_yaml(cluster("a", maintained=state), cluster("b")) for state in (True, False))
    files: dict[str, str | bytes | None] = {"policies.yaml": POLICIES, "hub.yaml": write_hub("m2"), "placed.yaml": PLACED}
    files |= {f"secrets/{name}.yaml": to_yaml(secret(name)) for name in ("one", "two")}
    return [
        fleet.commit({**files, "clusters.yaml": maintained, "account.yaml": ACCOUNT}),
        fleet.commit({"clusters.yaml": ready}, hour=1),
        fleet.commit({"clusters.yaml": maintained, "secrets/three.yaml": to_yaml(secret("three"))}, hour=2),
        fleet.commit({"hub.yaml": write_hub("m3")}, hour=3),
    ]


EXPECTED = [
    {"one": [], "two": [], "all": ["b"], "data": ["m2"]},
    {"one": ["a"], "two": ["a"], "all": ["a", "b"], "data": ["m2"]},
    {"one": ["a"], "two": ["a"], "three": [], "all": ["a", "b"], "data": ["m2"]},
    {"one": ["a"], "two": ["a"], "three": [], "all": ["a", "b"], "data": ["m3"]},
]
"""The clusters of each object after each commit. A cluster in maintenance keeps what it has."""


def run(fleet: Fleet, where: Path, program: str, modules: Path, history: list[str]) -> list[Any]:
    """Run a program that reconciles the history with modules of its own."""
    command = [sys.executable, "-c", program, str(fleet.path), str(where / "caches"), *history]
    done = subprocess.run(command, cwd=where, env=os.environ | {"PYTHONPATH": str(modules)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(steps: list[Any], names: tuple[str, ...]) -> None:
    for number, (kept, fresh, is_complete, placed) in enumerate(steps):
        assert kept == fresh, f"step {number}"
        assert is_complete == (not number), f"step {number}"
        expected = {name: clusters for name, clusters in EXPECTED[number].items() if name in names}
        assert {name: placed[name] for name in expected} == expected, f"step {number}"


def test_the_filter_and_the_score_work_in_a_copy_of_the_code(fleet: Fleet, history: list[str], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    for name in ("gitsched", "schemas"):
        shutil.copytree(ROOT / name, copy / name)
    package = copy / "gitsched"
    insert(package / "schedule" / "fleet.py", LIST, f"{FILTER}\n\n")
    fleet_module = package / "schedule" / "fleet.py"
    fleet_module.write_text(
        fleet_module.read_text(encoding="utf-8").replace(LIST, f"{LIST}    MaintenanceFilter(),\n"), encoding="utf-8"
    )
    insert(package / "schedule" / "scores.py", "class WeightedSum(NamedTuple):\n", f"{SCORE}\n\n")
    insert(package / "apis" / "ocm" / "scheduling.py", SCORES, REQUEST)
    insert(package / "apis" / "ocm" / "scheduling.py", "TAINT_EFFECTS = ", "from gitsched.schedule.scores import PreferredScore\n")
    check(run(fleet, tmp_path, PROGRAM, copy, history), ("one", "two", "three", "all", "data"))


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """Return a directory with a module that registers the filter."""
    text = REGISTRATION.replace("# MaintenanceFilter as above\n", f"\n{FILTER}\n")
    assert text != REGISTRATION
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "maintenance.py").write_text(text, encoding="utf-8")
    return tmp_path / "modules"


def test_a_program_registers_the_filter(fleet: Fleet, history: list[str], tmp_path: Path, modules: Path) -> None:
    check(run(fleet, tmp_path, f"import maintenance\n{PROGRAM}", modules, history), ("one", "two", "three", "all"))


@pytest.mark.long
def test_what_a_run_leaves_counts_only_for_the_same_filters(
    fleet: Fleet, history: list[str], tmp_path: Path, modules: Path
) -> None:
    """Nothing is committed between the runs: with the filter, without it, and with another one from a module of the same name."""
    first, with_filter = history[:1], f"import maintenance\n{PROGRAM}"
    assert [step[2] for step in run(fleet, tmp_path, with_filter, modules, first * 3)] == [True, False, False]
    kept, fresh, is_complete, placed = run(fleet, tmp_path, PROGRAM, modules, first)[0]
    assert kept == fresh
    assert is_complete
    assert placed["one"] == ["a"]
    module = modules / "maintenance.py"
    changed = module.read_text(encoding="utf-8").replace('"maintenance"', '"tier"').replace("previous | ", "")
    for text, clusters in (
        (changed, []),
        (module.read_text(encoding="utf-8"), []),
        (changed.replace('"tier"', '"retired"'), ["a"]),
    ):
        module.write_text(text, encoding="utf-8")
        kept, fresh, _, placed = run(fleet, tmp_path, with_filter, modules, first)[0]
        assert kept == fresh
        assert placed["one"] == clusters
