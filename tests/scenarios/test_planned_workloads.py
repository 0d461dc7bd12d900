"""Explanations and simulations that start from the state of the last run are those of complete plans."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from functools import partial
from pathlib import Path
from random import Random

import pytest
import yaml

from gitsched.apis.topology import CLUSTER, NODE
from gitsched.model.errors import Permanent
from gitsched.model.finding import Finding
from gitsched.model.labels import parse_selector_text
from gitsched.model.simulation import FailureDomain
from gitsched.reconcile import source_plan
from gitsched.reconcile.expired_documents import list_expired_documents
from gitsched.reconcile.reschedule import WorkloadSelection, make_reschedule_file
from gitsched.reconcile.review import explanation, source_simulation
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.reconcile.review.fleet_tree import read_fleet_tree
from gitsched.reconcile.run_settings import RunSettings
from gitsched.report.fleet_status import serialize_fleet_status
from gitsched.report.fleet_tree import serialize_fleet_tree
from gitsched.simulate.scenario import Scaling, Scenario
from tests.scenarios.conftest import Fleet
from tests.scenarios.facts_histories import FactsHistory, commit_branch
from tests.scenarios.histories import Files, History
from tests.scenarios.plain_histories import PlainHistory
from tests.scenarios.tenant_histories import TenantHistory
from tests.scenarios.test_incremental_comparison import PLACES, DependentHistory, PolicyHistory
from tests.scenarios.test_overrides import mirror
from tests.search_depth import count_examples

pytestmark = pytest.mark.usefixtures("bugs_are_raised")


def list_objects(files: Files) -> list[tuple[str, str, str]]:
    """Return kind, namespace and name of every object of a source."""
    texts = [
        text for path, text in sorted(files.items()) if path.endswith(".yaml") and isinstance(text, str) and "broken" not in path
    ]
    found = []
    for text in texts:
        try:
            documents = list(yaml.load_all(text, yaml.CSafeLoader))
        except yaml.YAMLError:
            continue
        for document in documents:
            metadata = document.get("metadata") if isinstance(document, dict) else None
            if isinstance(metadata, dict) and "kind" in document and "name" in metadata:
                found.append((str(document["kind"]), str(metadata.get("namespace") or "default"), str(metadata["name"])))
    return found


def explain(settings: RunSettings, kind: str, name: str, namespace: str = "default", *, why_not: tuple[str, ...]) -> object:
    """Return what explain finds, or its error."""
    try:
        return explanation.explain_resource(settings, kind, namespace, name, why_not)
    except Permanent as error:
        return str(error)


def simulate(settings: RunSettings, scenario: Scenario) -> object:
    """Return what simulate finds, or its error, with the faults."""
    faults: list[Finding] = []
    try:
        return source_simulation.simulate_source(settings, scenario, faults, lambda *_: None), faults
    except Permanent as error:
        return str(error)


def request_rescheduling(settings: RunSettings, chosen: WorkloadSelection, *, with_companions: bool) -> object:
    """Return a request to schedule workloads again, or its error."""
    try:
        return make_reschedule_file(settings, chosen, None, with_companions)
    except Permanent as error:
        return str(error)


def show(settings: RunSettings, name: str) -> object:
    """Return the status of the fleet and the tree of a cluster or workload, or its error."""
    found = serialize_fleet_status(read_fleet_status(settings))
    try:
        return found, serialize_fleet_tree(read_fleet_tree(settings, "", None, name))
    except Permanent as error:
        return found, str(error)


def query(settings: RunSettings, dice: Random, objects: list[tuple[str, str, str]]) -> list[object]:
    """Explain objects, simulate events, and show the fleet."""
    clusters = [name for kind, _, name in objects if kind in ("Cluster", "ManagedCluster")] or list(PLACES)
    nodes = [FailureDomain(NODE, name) for kind, _, name in objects if kind == "Node"]
    why_not = dice.choice(((), (), (dice.choice(clusters),)))
    domains = tuple(FailureDomain(CLUSTER, name) for name in dice.choices((*clusters, "fourth"), k=dice.choice((1, 1, 2))))
    silent = dice.random() < 0.3
    scaled = Scaling("a pattern", "2", Fraction(2), name=dice.choice(("api", "a*", "[cb]*", "none")))
    copies = ((dice.choice(clusters), "copied"),)
    scenario = dice.choice(
        (
            Scenario(lose=domains, unreachable=silent),
            Scenario(drain=domains),
            Scenario(scale=(scaled,)),
            Scenario(copies=copies),
            Scenario(lose=domains, copies=copies, scale=dice.choice(((), (scaled,))), fresh=silent),
            Scenario(lose=tuple(nodes[:1]) or domains),
        )
    )
    kind, namespace, name = dice.choice(objects)
    shown = show(settings, dice.choice((name, *clusters)))
    explained = explain(settings, dice.choice((kind, kind.lower())), name, namespace, why_not=why_not)
    chosen = WorkloadSelection(((kind, namespace, name),))
    if dice.random() < 0.2:
        chosen = WorkloadSelection(displaced=True, namespace=dice.choice(("", namespace)))
    elif dice.random() < 0.4:
        chosen = WorkloadSelection(labels=parse_selector_text(dice.choice(("app", "!app"))), namespace=namespace)
    requested = request_rescheduling(settings, chosen, with_companions=dice.random() < 0.8)
    described = explain(settings, "cluster", dice.choice((*clusters, "fourth")), why_not=())
    return [explained, described, requested, list_expired_documents(settings), simulate(settings, scenario), shown]


def play(fleet: Fleet, where: Path, history: PolicyHistory | History, dice: Random, steps: int) -> None:
    """Go through a history, and query the same with the cache of the runs and without one."""
    hour = 0.0
    fleet.commit(history.files)
    fleet.reconcile()
    for step in range(steps):
        hour += dice.choice((0, 0.1, 2))
        fleet.commit(history.go_on(dice.choice((1, 0.5))), hour=hour)
        if dice.random() < 0.8:
            fleet.reconcile(hour)
        settings, seed = fleet.settings(hour + dice.choice((0, 0, 0.4)), trusted=False), dice.random()
        whole = settings._replace(cache=where / f"none-{step}")
        objects = list_objects(history.files)
        assert query(settings, Random(seed), objects) == query(whole, Random(seed), objects), f"step {step}"


def test_explanations_and_simulations_are_the_same_from_the_state_of_the_last_run(
    fleet: Fleet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    dice = Random(2)
    play(fleet, tmp_path, PolicyHistory(dice), dice, 3)


def explain_all(settings: RunSettings, objects: list[tuple[str, str, str]]) -> dict[tuple[str, str, str], object]:
    """Return what explain finds of all objects, or its errors."""
    return {(kind, space, name): explain(settings, kind, name, space, why_not=()) for kind, space, name in objects}


@pytest.mark.search
@pytest.mark.parametrize(
    "start", [FactsHistory, TenantHistory, partial(PlainHistory, overlap="1h")], ids=["facts", "tenants", "overlap"]
)
@pytest.mark.parametrize("seed", range(101, 101 + count_examples(1)))
def test_everything_is_explained_alike_from_the_state_of_the_last_run(
    fleet: Fleet, tmp_path: Path, start: Callable[[Random], PlainHistory], seed: int
) -> None:
    dice = Random(seed)
    history, hour = start(dice), 0.0
    if isinstance(history, FactsHistory):
        history.observe(hour)
        for branch, files in history.branches.items():
            commit_branch(fleet, branch, files, hour)
    fleet.commit(history.files)
    for step in range(4):
        if dice.random() < 0.8:
            fleet.reconcile(hour)
        hour += dice.choice((0.02, 0.2, 1))
        if isinstance(history, FactsHistory):
            for branch, facts in history.move_facts(hour).items():
                commit_branch(fleet, branch, facts, hour)
        fleet.commit({path: text for path, text in history.go_on().items() if text or (fleet.path / path).exists()}, hour=hour)
        settings, objects = fleet.settings(hour, trusted=False), list_objects(history.files)
        objects = dice.sample(objects, min(len(objects), 12))
        assert explain_all(settings, objects) == explain_all(settings._replace(cache=tmp_path / f"none-{step}"), objects)


@pytest.mark.parametrize("start", [PolicyHistory, DependentHistory])
def test_what_the_last_run_has_placed_is_explained_without_a_complete_plan(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: Callable[[Random], PolicyHistory]
) -> None:
    fleet.commit({**start(Random(1)).files, "policies/mirror.yaml": mirror("other.example.net", "first", "second")})
    fleet.reconcile()
    fleet.commit({"README.md": "more\n"}, hour=0.1)
    settings, scenario = fleet.settings(0.1, trusted=False), Scenario(lose=(FailureDomain(CLUSTER, "first"),))

    def answer(settings: RunSettings) -> list[object]:
        shown = [show(settings, word) for word in ("api", "first")]
        explained = [explain(settings, kind, name, why_not=()) for kind, name in (("deployment", "api"), ("cluster", "first"))]
        requested = request_rescheduling(settings, WorkloadSelection((("deployment", "default", "api"),)), with_companions=True)
        return [*explained, requested, list_expired_documents(settings), simulate(settings, scenario), *shown]

    whole = answer(settings._replace(cache=tmp_path / "none"))
    assert not any(isinstance(one, str) for one in whole)
    monkeypatch.setattr(source_plan, "_plan_source", None)
    assert answer(settings) == whole


def test_a_request_for_what_an_api_decides_itself_names_that_api(fleet: Fleet, tmp_path: Path) -> None:
    history = History(Random(1), ("krake",))
    fleet.commit(history.files)
    fleet.reconcile()
    settings = fleet.settings(trusted=False)
    named = next(found for found in list_objects(history.files) if found[0] == "Application")
    chosen = WorkloadSelection((named,))
    errors = [
        request_rescheduling(one, chosen, with_companions=True) for one in (settings, settings._replace(cache=tmp_path / "none"))
    ]
    assert errors[0] == errors[1]
    assert "the policy API krake has no rescheduling requests" in str(errors[0])


def test_a_pattern_that_selects_nothing_is_refused_with_the_same_names(fleet: Fleet, tmp_path: Path) -> None:
    fleet.commit(PolicyHistory(Random(1)).files)
    fleet.reconcile()
    settings = fleet.settings(trusted=False)
    scenario = Scenario(scale=(Scaling("apy=2", "2", Fraction(2), name="apy"),))
    errors = [simulate(one, scenario) for one in (settings, settings._replace(cache=tmp_path / "none"))]
    assert errors[0] == errors[1]
    assert "did you mean api?" in str(errors[0])


def test_a_damaged_row_of_any_kind_is_read_as_no_state(fleet: Fleet, tmp_path: Path) -> None:
    fleet.commit(History(Random(3), ("ocm",)).files)
    for hour in (0, 0.1):  # the second run changes nothing: a plan that starts from it decides nothing
        fleet.reconcile(hour)
    settings, scaled = fleet.settings(0.1, trusted=False), Scaling("api=2", "2", Fraction(2), name="api")

    def answer(settings: RunSettings) -> list[object]:
        return [explain(settings, "deployment", "api", why_not=()), simulate(settings, Scenario(scale=(scaled,)))]

    whole = answer(settings._replace(cache=tmp_path / "none"))
    (path,) = fleet.cache.glob("plan-*.sqlite3")
    sound = path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        kinds = connection.execute("SELECT DISTINCT kind FROM rows").fetchall()
    for (kind,) in kinds:
        path.write_bytes(sound)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE rows SET data = CAST(data || x'00' AS BLOB) WHERE kind = ?", (kind,))
            connection.commit()
        assert answer(settings) == whole, kind
    assert len(kinds) > 5
