"""What counts for each other is decided alike by empty, cached and resident runs, and never beyond quotas, capacity and groups."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from gitsched.apis.karmada.engine import KarmadaEngine
from gitsched.apis.karmada.queue.coupled_bindings import CoupledBindings
from gitsched.decide.incremental.repeated_decisions import find_unstable
from gitsched.model.document import Document, Key
from gitsched.model.scheduling import Outcome
from gitsched.reconcile import Reconciler
from gitsched.reconcile.output import output_commit
from tests.search_depth import DEEP, list_variants

from .conftest import Fleet
from .coupled_histories import SETTINGS, WAYS, CoupledHistory, list_broken_promises, read_bindings
from .test_shared_capacity import cluster, deployment, policy


@pytest.mark.search
@pytest.mark.parametrize("seed", range(300 if DEEP else 3))
def test_random_histories_with_everything_on(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    history = CoupledHistory(fleet, seed)
    if seed % 3:  # as after a run that changes many records, or in a large source
        monkeypatch.setattr(output_commit, "MAX_UNSTABLE" if seed % 3 == 1 else "MIN_KEYED_ROWS", 0)
    fleet.reconcile()
    before = read_bindings(fleet)
    assert list(list_broken_promises(fleet, {}, before, copies=history.copies)) == []
    resident = Reconciler(fleet.settings(cache=tmp_path / "resident"))
    for number in range(6):
        hour = history.step()
        empty = fleet.preview(hour, cache=tmp_path / str(number))
        resident.settings = fleet.settings(hour, cache=tmp_path / "resident")
        kept, run = resident.run(resident.settings.now, preview=True), fleet.reconcile(hour)
        assert run.tree == kept.tree == empty.tree
        assert run.plan.findings == kept.plan.findings == empty.plan.findings
        after = read_bindings(fleet)
        assert list(list_broken_promises(fleet, before, after, copies=history.copies)) == []
        before = after


@pytest.mark.search
@pytest.mark.parametrize("seed", range(102, 402) if DEEP else list_variants((102, 103), (102,)))
def test_a_decision_that_need_not_be_repeated_is_the_same(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    history, known = CoupledHistory(fleet, seed), 0

    def count_repeated(engine: KarmadaEngine, template: Document, outcome: Outcome) -> bool:
        nonlocal known
        known += is_repeated(engine, template, outcome)
        return False

    is_repeated = KarmadaEngine.repeats
    for number in range(3):
        hour = history.step() if number else 0
        found = []
        for name, repeats in (("told", is_repeated), ("decided", count_repeated)):
            plan = fleet.preview(hour, cache=tmp_path / f"{number}-{name}").plan
            assert plan.details is not None
            monkeypatch.setattr(KarmadaEngine, "repeats", repeats)
            found.append(find_unstable(plan.details.decisions))
        assert found[0] == found[1]
        fleet.reconcile(hour)
    assert known or DEEP


@pytest.mark.search
@pytest.mark.parametrize("seed", range(200, 500) if DEEP else list_variants((102, 104, 202), (102,)))
def test_what_is_not_decided_alone_is_decided_as_if_it_had_been(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    history, postponed = CoupledHistory(fleet, seed), 0
    tell = CoupledBindings.list_certain_turns

    def count_postponed(coupled: CoupledBindings) -> Iterable[Key]:
        nonlocal postponed
        found = list(tell(coupled))
        postponed += len(found)
        return found

    for number in range(2):
        hour = history.step() if number else 0
        runs = []
        for name, told in (("alone", lambda _: ()), ("turns", count_postponed)):
            monkeypatch.setattr(CoupledBindings, "list_certain_turns", told)
            runs.append(fleet.preview(hour, cache=tmp_path / f"{number}-{name}"))
        assert runs[0].tree == runs[1].tree
        assert runs[0].plan.findings == runs[1].plan.findings
        fleet.reconcile(hour)
    assert postponed or DEEP


def test_a_bug_in_a_turn_concerns_one_member_of_a_group(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.commit(
        {
            "gitsched.yaml": SETTINGS % "0s",
            "clusters.yaml": "".join(cluster(name, cpu=50) for name in ("one", "two", "three")),
            "policy.yaml": policy(WAYS["apart"]),
            **{f"{name}.yaml": deployment(name, 1, labels="{team: web}") for name in ("bad", "fine", "good")},
        }
    )
    decide = KarmadaEngine.decide

    def fail(engine: KarmadaEngine, template: Document) -> Outcome | None:
        return decide(engine, template) if template.key.name != "bad" else 1 / 0  # type: ignore[return-value]

    monkeypatch.setattr(KarmadaEngine, "decide", fail)
    plan = fleet.reconcile().plan
    assert [(one.code, one.resource and one.resource[2]) for one in plan.findings if one.severity == "error"] == [
        ("internal-error", "bad")
    ]
    assert sorted(read_bindings(fleet)) == ["shop/fine-deployment.yaml", "shop/good-deployment.yaml"]
