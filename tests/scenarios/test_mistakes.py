"""The mistakes of beginners in mistakes.yaml: each has a finding at its line, and none that is an error moves a workload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import gitsched
from gitsched.manifests.schema import Strictness
from gitsched.reconcile import Reconciler, RunSettings

from .conftest import START, Fleet

TABLE: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "mistakes.yaml").read_text("utf-8"))
FILES: dict[str, str] = TABLE["fleet"]
STRICTNESS: tuple[Strictness, ...] = ("upstream", "protective", "strict")


class Worktree:
    """A clone whose fleet is placed; `plan` is that of its files, not of its commit."""

    def __init__(self, root: Path) -> None:
        fleet = Fleet(root / "fleet", root / "cache")
        fleet.commit(FILES)
        fleet.reconcile(0)
        self.root = fleet.path
        for name, text in FILES.items():
            (self.root / name).write_text(text, "utf-8")
        settings = RunSettings(now=START, cache=root / "cache", location=str(self.root), observations="recorded", worktree=True)
        self.reconciler = Reconciler(settings)

    def plan(self) -> Any:
        """Return the plan of the files."""
        return self.reconciler.run(START, preview=True).plan


@pytest.fixture(scope="module")
def worktree(tmp_path_factory: pytest.TempPathFactory) -> Worktree:
    made = Worktree(tmp_path_factory.mktemp("mistakes"))
    assert not made.plan().moves
    return made


@pytest.mark.parametrize("mistake", TABLE["mistakes"], ids=lambda mistake: str(mistake["found"]))
def test_a_mistake_is_found_at_its_line(worktree: Worktree, mistake: dict[str, str]) -> None:
    location, severity, code = mistake["found"].split()
    name = location.partition(":")[0]
    assert FILES[name].count(mistake["instead"])
    (worktree.root / name).write_text(FILES[name].replace(mistake["instead"], mistake["write"], 1), "utf-8")
    try:
        plan = worktree.plan()
    finally:
        (worktree.root / name).write_text(FILES[name], "utf-8")
    found = [finding for finding in plan.findings if (str(finding.location), finding.code) == (location, code)]
    assert [finding.severity for finding in found] == [severity], [str(finding) for finding in plan.findings]
    assert mistake["says"] in found[0].message
    assert severity == "warning" or not plan.moves


CHOICES = [row for row in TABLE["mistakes"] if row["found"].startswith("policy.yaml") and "error unknown-field" in row["found"]]


@pytest.mark.parametrize("mistake", CHOICES, ids=lambda mistake: str(mistake["write"]))
def test_a_policy_that_was_never_valid_places_nothing(mistake: dict[str, str]) -> None:
    """An affinity that an API server ignores places the workload in every cluster that has no other reason against it."""
    policy = FILES["policy.yaml"].replace(mistake["instead"], mistake["write"], 1)
    bodies = [body for text in (FILES["clusters.yaml"], policy, FILES["web.yaml"]) for body in yaml.safe_load_all(text)]
    placed: dict[str, list[str]] = {}
    for strictness in STRICTNESS:
        outcomes = gitsched.schedule(bodies, strictness=strictness).decisions.outcomes.values()
        placed[strictness] = [name for outcome in outcomes for name in outcome.replicas_by_cluster]
    assert (placed["protective"], placed["strict"]) == ([], [])
    assert placed["upstream"]


def test_strictness_makes_every_warning_of_schemas_an_error(worktree: Worktree) -> None:
    name = "clusters.yaml"
    (worktree.root / name).write_text(
        FILES[name].replace("region: eu-west", "regoin: eu-west").replace("labels:", "lables:", 1), "utf-8"
    )
    try:
        strict = Reconciler(worktree.reconciler.settings._replace(strict=True))
        found = {finding.severity for finding in strict.run(START, preview=True).plan.findings if finding.code == "unknown-field"}
        lenient = {finding.severity for finding in worktree.plan().findings if finding.code == "unknown-field"}
    finally:
        (worktree.root / name).write_text(FILES[name], "utf-8")
    assert (found, lenient) == ({"error"}, {"warning"})


def test_a_general_policy_does_not_place_what_a_broken_one_selects(tmp_path: Path) -> None:
    """A new workload waits for its own policy, which has errors, and does not go to every cluster; others do."""
    general = FILES["policy.yaml"].replace("PropagationPolicy", "ClusterPropagationPolicy").replace("  namespace: shop\n", "")
    general = general.partition("  placement:")[0].replace("      name: web\n", "") + "  placement: {}\n"
    broken = FILES["policy.yaml"].replace("clusterAffinities", "clusterAffinites")
    other = FILES["web.yaml"].replace("name: web\n  namespace", "name: api\n  namespace")
    fleet = Fleet(tmp_path / "fleet", tmp_path / "cache")
    fleet.commit(
        {
            "clusters.yaml": FILES["clusters.yaml"],
            "all.yaml": general,
            "own.yaml": broken,
            "web.yaml": FILES["web.yaml"],
            "api.yaml": other,
        }
    )
    plan = fleet.reconcile().plan
    assert {key.name: one.state for key, one in plan.outcomes.items()} == {"api": "placed", "web": "pending"}
    fleet.commit({"own.yaml": FILES["policy.yaml"]}, hour=1)
    assert [key.name for key in fleet.reconcile(1).plan.outcomes] == ["api", "web"]
    fleet.commit({"own.yaml": broken}, hour=2)
    assert not fleet.reconcile(2).plan.moves
