"""Many losses on one plan: each result is that of a single simulation."""

from __future__ import annotations

import os
import signal
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import gitsched
from gitsched import schedule
from gitsched.apis.gitsched.config import Config
from gitsched.model.document import Key
from gitsched.model.errors import Permanent
from gitsched.model.losses import PAIRS, RANDOM, CommonCause, JointLoss, LossRequest, LossResult
from gitsched.model.record_json import read_record, write_record
from gitsched.model.simulation import FailureDomain, Simulation, WorkloadEffect
from gitsched.reconcile.result_stream import stream_results
from gitsched.reconcile.review.loss_runs import Shard, prepare_losses, run_losses, simulate_losses
from gitsched.reconcile.review.loss_shards import ShardedPlan, make_shard, merge_shards, write_shard
from gitsched.report.many_losses import list_overview
from gitsched.simulate import loss_simulation
from gitsched.simulate.baseline import Baseline, make_baseline
from gitsched.simulate.failure_domains import DomainIndex, index_clusters
from gitsched.simulate.loss_list import list_losses
from gitsched.simulate.loss_simulation import ResilienceSimulator
from gitsched.simulate.loss_table import FleetSize, LossTable
from gitsched.simulate.scenario import Scenario
from gitsched.simulate.simulation import DecidedEvent, decide_event, simulate
from tests.scenarios.conftest import deployment
from tests.search_depth import count_examples
from tests.simulate.conftest import SHOP, WEIGHTED, cluster, divide
from tests.simulate.test_simulation_properties import NAMES, NOW, baselines

AGGREGATED = "{replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}"
KEY = Key("apps", "Deployment", "default", "web")


@settings(max_examples=count_examples(15))
@given(baselines(), st.booleans())
def test_losses_of_several_clusters_are_those_of_single_simulations(baseline: Baseline, unreachable: bool) -> None:
    simulator = ResilienceSimulator(baseline, LossRequest(PAIRS, unreachable))
    for size in (1, 2, 3):
        for lost in combinations(NAMES, size):
            domains = tuple(FailureDomain("cluster", name) for name in lost)
            [found] = simulator.simulate_group([(0, JointLoss(domains, lost))])
            expected = simulate(baseline, Scenario(lose=domains, unreachable=unreachable)).keep_degraded()
            assert found.simulation == expected
            assert read_record(LossResult, write_record(found)) == found


POOLS = {"a": "clusterNames: [c1, c2]", "b": "clusterNames: [c3, c4]", "c": "clusterNames: [c2, c3]"}


@st.composite
def pooled_baselines(draw: st.DrawFn) -> Baseline:
    """Workloads of pools of two clusters, which share clusters and their capacity with others."""
    documents: list[Any] = []
    for name in NAMES:
        documents.append(yaml.safe_load(cluster(name, region="east" if name < "c3" else "west", pods=draw(st.integers(1, 8)))))
    for number in range(6):
        pool = draw(st.sampled_from(sorted(POOLS)))
        documents.append(yaml.safe_load(deployment(f"{pool}{number}", draw(st.integers(1, 4)))))
        documents.append(yaml.safe_load(divide(f"{pool}{number}", POOLS[pool], draw(st.sampled_from([WEIGHTED, AGGREGATED])))))
    first = schedule(documents, now=NOW)
    again = schedule(documents, previous=first.documents, now=NOW)
    return make_baseline(again.decisions, Config(), NOW, {})


@settings(max_examples=count_examples(15))
@given(pooled_baselines())
def test_losses_that_concern_other_workloads_are_put_together(baseline: Baseline) -> None:
    simulator = ResilienceSimulator(baseline, LossRequest(PAIRS))
    for lost in (("c1", "c4"), ("c1", "c3"), ("c1", "c2", "c4"), NAMES):
        domains = tuple(FailureDomain("cluster", name) for name in lost)
        [found] = simulator.simulate_group([(0, JointLoss(domains, lost))])
        assert found.simulation == simulate(baseline, Scenario(lose=domains)).keep_degraded()


@pytest.fixture(scope="module")
def baseline() -> Baseline:
    documents = [yaml.safe_load(text) for text in SHOP.values()]
    first = schedule(documents, now=NOW)
    again = schedule(documents, previous=first.documents, now=NOW)
    return make_baseline(again.decisions, Config(), NOW, {})


REQUESTS = [
    LossRequest("cluster"),
    LossRequest("zone", unreachable=True),
    LossRequest(PAIRS),
    LossRequest(RANDOM, samples=40, size=3),
    LossRequest(RANDOM, samples=200, causes=(CommonCause("cluster", "", "900", "2"), CommonCause("zone", "", "99", "8"))),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: f"{request.kind}-{len(request.causes)}")
def test_results_do_not_depend_on_processes_and_shards(baseline: Baseline, tmp_path: Path, request_: LossRequest) -> None:
    """The expected table is that of single simulations, one by one."""
    simulator, table = ResilienceSimulator(baseline, request_), LossTable(request_)
    for number, loss in enumerate(list_losses(simulator.index, request_).losses):
        alone = simulate(baseline, Scenario(lose=loss.domains, unreachable=request_.unreachable))._replace(held={})
        table.add(LossResult(number, loss.samples, alone.keep_degraded() if request_.is_short else alone))
    expected = table.finish(simulator.measure_fleet())
    assert expected.rows
    for processes in (1, 2, 7):
        assert simulate_losses(baseline, request_, processes, None) == expected
    for shards in (1, 2, 7):
        paths = [write(baseline, request_, tmp_path, number, shards) for number in range(shards, 0, -1)]
        assert merge_shards(paths)[0] == expected


def write(baseline: Baseline, request: LossRequest, directory: Path, number: int, shards: int, plan: str = "plan") -> Path:
    shard, path = Shard(number, shards), directory / f"{plan}-{number}-of-{shards}.jsonl"
    header, run = make_shard(prepare_losses(baseline, request), shard, ShardedPlan(plan))
    write_shard(path, header, run_losses(run, 1, None))
    return path


def test_equal_losses_are_decided_once(baseline: Baseline, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zones wa and wb are one cluster each, as is zone ea with the cluster that is nowhere else."""
    decided: list[tuple[FailureDomain, ...]] = []

    def count(baseline: Baseline, scenario: Scenario, *known: Any) -> DecidedEvent:
        decided.append(scenario.lose)
        return decide_event(baseline, scenario, *known)

    monkeypatch.setattr(loss_simulation, "decide_event", count)
    request = LossRequest("zone")
    zones = simulate_losses(baseline, request, 1, None)
    assert {row.domain.name: row.lost for row in zones.rows if row.domain} == {
        "wa": ("w1",),
        "wb": ("w2",),
        "ea": ("e1",),
        "eb": (),
    }
    equal = ResilienceSimulator(baseline, request)
    domains = [(FailureDomain("zone", "wa"),), (FailureDomain("cluster", "w1"),)]
    decided.clear()
    first, second = equal.simulate_group([(number, JointLoss(domain, ("w1",))) for number, domain in enumerate(domains)])
    assert decided == [domains[0]]
    assert second.simulation == simulate(baseline, Scenario(lose=domains[1]))._replace(held={})
    assert first.simulation.event == "zone wa is lost"


def test_samples_follow_the_rates(baseline: Baseline) -> None:
    """A zone that is down half of the time takes its clusters with it, and a cluster of two zones goes with both."""
    index = DomainIndex(index_clusters(baseline.decisions.catalog))
    half = CommonCause("zone", "", "8760", "1")
    request = LossRequest(RANDOM, samples=4000, causes=(half._replace(names=("w1", "w2")), half._replace(names=("e1", "e2"))))
    losses = list_losses(index, request).losses
    shares = {name: sum(loss.samples for loss in losses if name in loss.lost) / 4000 for name in ("w1", "w2", "e1", "e2")}
    assert [round(share, 1) for share in shares.values()] == [0.5, 0.5, 0.5, 0.2]
    other = list_losses(index, request._replace(seed=1)).losses
    assert {loss.lost: loss.samples for loss in losses} != {loss.lost: loss.samples for loss in other}


def test_clusters_with_the_same_label_fail_together() -> None:
    documents = [yaml.safe_load(cluster(name)) for name in ("one", "two", "three")]
    for body in documents[:2]:
        body["metadata"]["labels"] = {"feed": "a"}
    catalog = schedule(documents, now=NOW).decisions.catalog
    index = DomainIndex(index_clusters(catalog))
    request = LossRequest(RANDOM, samples=50, causes=(CommonCause("", "feed", "8760", "1"),))
    assert {loss.lost for loss in list_losses(index, request).losses} == {("one", "two")}
    for cause, message in (
        (CommonCause("cluster", "", "1", "1", names=("four",)), "there is no cluster 'four'"),
        (CommonCause("", "rack", "1", "1"), "concerns no cluster"),
        (CommonCause("zone", "", "1", "1"), "none has such a zone"),
    ):
        with pytest.raises(Permanent, match=message):
            list_losses(index, request._replace(causes=(cause,)))


def test_availability_has_the_interval_of_its_samples() -> None:
    """One in a hundred samples misses two replicas of one workload."""
    request = LossRequest(RANDOM, samples=100, causes=(CommonCause("cluster", "", "1", "1"),))
    table = LossTable(request)
    effect = WorkloadEffect(KEY, {"c1": 2}, {}, 2, shortfall=2)
    table.add(LossResult(0, 1, Simulation("", None, ("c1",), (), (), (), 1, (effect,), (), ())))
    found = table.finish(FleetSize(1, 1, ())).availability
    assert found is not None
    [row] = found.workloads
    assert (row.key, row.available, row.lost_hours) == (KEY, 0.99, 2 / 100 * 8760)
    assert [round(value, 4) for value in (row.low, row.high, found.low)] == [0.9455, 0.9982, 0.963]
    assert round(row.margin) == round(1.959963984540054 * 0.2 / 10 * 8760)


def test_merge_refuses_files_of_other_losses_and_names_missing_ones(baseline: Baseline, tmp_path: Path) -> None:
    one, two = (write(baseline, LossRequest("cluster"), tmp_path, number, 2) for number in (1, 2))
    other_plan = write(baseline, LossRequest("cluster"), tmp_path, 2, 2, plan="other")
    lines = two.read_bytes().splitlines(keepends=True)
    files = {
        "again": one.read_bytes(),
        "short": b"".join(lines[:-1]),
        "version": lines[0].replace(f'"{gitsched.__version__}"'.encode(), b'"0.0.1"') + lines[1],
        "request": lines[0].replace(b'["cluster",', b'["zone",') + lines[1],
        "format": lines[0].replace(b"gitsched-losses-1", b"gitsched-losses-9"),
        "result": lines[0] + b'["no result"]\n' + b"".join(lines[2:]),
        "twice": lines[0] + lines[1] + lines[1] + b"".join(lines[3:]),
        "escape": two.read_bytes().replace(b" is lost", b" \\u001b[31mis lost"),
        "none": b"{}\n",
        "yaml": b"a: b\n",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    for paths, message in (
        ([one], r"shards are missing: 2 of 2"),
        ([one, tmp_path / "again", two], "are both shard 1"),
        ([one, tmp_path / "nowhere"], "is not readable: .*No such file"),
        ([one, tmp_path / "short"], r"has \d of \d results; simulate shard 2 again"),
        ([one, other_plan], "its plan is another one"),
        ([one, tmp_path / "version"], "gitsched 0.0.1 wrote it"),
        ([one, tmp_path / "request"], "its losses are other ones"),
        ([tmp_path / "format"], "has the format 'gitsched-losses-9'"),
        ([one, tmp_path / "result"], "a result is not readable"),
        ([one, tmp_path / "twice"], r"loss \d of 4 with 1 samples"),
        ([one, tmp_path / "escape"], "is no name"),
        ([tmp_path / "none"], "is no file of"),
        ([tmp_path / "yaml"], "is no file of"),
    ):
        with pytest.raises(Permanent, match=message):
            merge_shards(paths)


def test_results_of_a_process_that_is_killed_are_computed_again(caplog: pytest.LogCaptureFixture) -> None:
    parent = os.getpid()

    def compute(number: int) -> bytes:
        if number == 3 and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return bytes([number]) * number

    found = dict(stream_results(compute, 20, 3))
    assert found == {number: bytes([number]) * number for number in range(20)}
    assert "they are computed again" in caplog.text


def test_an_exception_of_a_process_is_raised() -> None:
    def fail(number: int) -> bytes:
        raise Permanent(f"no result for {number}")

    with pytest.raises(Permanent, match="no result for"):
        list(stream_results(fail, 5, 2))


@pytest.mark.parametrize(
    ("clusters", "rows", "columns", "each"), [(2, 1, 2, 1), (30, 2, 20, 1), (400, 20, 20, 1), (1000, 17, 20, 3)]
)
def test_a_map_has_every_loss_in_a_bounded_number_of_cells(clusters: int, rows: int, columns: int, each: int) -> None:
    """Only the loss of c0001 leaves replicas missing; its cell is the first one."""
    table = LossTable(LossRequest("cluster"))
    for number in range(clusters):
        name = f"c{number + 1:04}"
        effects = (WorkloadEffect(KEY, {name: 2}, {}, 2, shortfall=2),) if number == 0 else ()
        table.add(LossResult(number, 1, Simulation("", FailureDomain("cluster", name), (name,), (), (), (), 1, effects, (), ())))
    found = table.finish(FleetSize(clusters, 1, ()))
    [overview] = list_overview(found)
    assert (len(overview.rows), len(overview.columns)) == (rows, columns)
    assert overview.caption.startswith(f"Missing replicas after the loss of each of {clusters:,} clusters")
    assert overview.caption.endswith(f"the worst of {each}") == (each > 1)
    assert overview.rows[0][1][0] == sum(number for _, numbers in overview.rows for number in numbers) == 2
    named = overview.columns if rows == 1 and each == 1 else [overview.rows[0][0].partition(" to ")[0], overview.rows[-1][0][-5:]]
    assert (named[0], named[-1]) == ("c0001", f"c{clusters:04}")
