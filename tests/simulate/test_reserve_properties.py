"""Reserves of small random fleets, compared with the simulation of each loss and with every move."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import combinations
from typing import Any, NamedTuple

import yaml
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from gitsched import schedule
from gitsched.apis.gitsched.config import Config
from gitsched.apis.gitsched.reserve_config import ReserveConfig
from gitsched.diff.reserve import check_reserves
from gitsched.model.document import Key
from gitsched.model.preferred_clusters import PREFERRED_CLUSTERS
from gitsched.model.quantity import format_resource_amount, parse_quantity
from gitsched.model.reserve import ReserveCheck, ReserveRemedy
from gitsched.model.simulation import FailureDomain
from gitsched.simulate.baseline import Baseline, make_baseline
from gitsched.simulate.reserve import ReserveRules
from gitsched.simulate.scenario import Scenario
from gitsched.simulate.simulation import simulate
from tests.scenarios.conftest import deployment
from tests.search_depth import DEEP
from tests.simulate.conftest import WEIGHTED, cluster, divide

EXAMPLES = 5000 if DEEP else 4
PHASES = tuple(phase for phase in Phase if phase != Phase.shrink)
"""The documents of a case are printed; to find smaller ones takes minutes."""
NOW = datetime(2026, 3, 2, tzinfo=UTC)
CLUSTERS = ("c1", "c2", "c3")
WORKLOADS = ("a", "b", "c")
AGGREGATED = "{replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}"
DYNAMIC = (
    "{replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}"
)
WHERE = st.sampled_from(["labelSelector: {}", "clusterNames: [c1, c2]", "clusterNames: [c2, c3]", "exclude: [c1]"])
HOW = st.sampled_from([AGGREGATED, AGGREGATED, DYNAMIC, WEIGHTED])
LOSSES = st.sampled_from(["cluster", "zone", "region", "any 2 clusters"])
Documents = list[dict[str, Any]]


class Case(NamedTuple):
    """The documents before and after a change, what is recorded of the former, and the loss of the reserve."""

    before: Documents
    after: Documents
    previous: Any
    lose: str


class DrawnCluster(NamedTuple):
    """The region of a cluster and its pods, before and after the change."""

    region: str
    pods: tuple[int, int]


class DrawnWorkload(NamedTuple):
    """How replicas are divided, and the replicas and the clusters before and after the change."""

    how: str
    replicas: tuple[int, int]
    where: tuple[str, str]


def make_case(drawn: Iterable[DrawnCluster], workloads: Iterable[DrawnWorkload], lose: str) -> Case:
    sides: list[list[str]] = [[], []]
    for name, one in zip(CLUSTERS, drawn, strict=True):
        zone = f"{one.region}-{name[1]}" if name != "c3" else f"{one.region}-1"
        for side, pods in zip(sides, one.pods, strict=True):
            side.append(cluster(name, region=one.region, zone=zone, pods=pods))
    for name, workload in zip(WORKLOADS, workloads, strict=True):
        for side, replicas, where in zip(sides, workload.replicas, workload.where, strict=True):
            side += [deployment(name, replicas), divide(name, where, workload.how)]
    before, after = ([yaml.safe_load(text) for text in side] for side in sides)
    return Case(before, after, schedule(before, now=NOW).documents, lose)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    clusters, workloads = [], []
    for _ in CLUSTERS:
        pods, region = draw(st.integers(0, 6)), draw(st.sampled_from(["east", "west"]))
        clusters.append(DrawnCluster(region, (pods, draw(st.sampled_from([pods, pods, 2])))))
    for _ in WORKLOADS:
        replicas, where, how = draw(st.integers(0, 4)), draw(WHERE), draw(HOW)
        changed = draw(st.sampled_from([replicas, replicas, replicas + 2]))
        workloads.append(
            DrawnWorkload(how, (replicas, changed), (where, draw(st.sampled_from([where, where, "clusterNames: [c2]"]))))
        )
    return make_case(clusters, workloads, draw(LOSSES))


TAKES_ROOM_AFTER_A_LOSS = make_case(
    [DrawnCluster("east", (3, 3)), DrawnCluster("east", (4, 2)), DrawnCluster("east", (3, 3))],
    [
        DrawnWorkload(AGGREGATED, (0, 2), ("labelSelector: {}", "labelSelector: {}")),
        DrawnWorkload(AGGREGATED, (3, 3), ("clusterNames: [c2, c3]", "clusterNames: [c2, c3]")),
        DrawnWorkload(AGGREGATED, (1, 1), ("clusterNames: [c2, c3]", "clusterNames: [c2]")),
    ],
    "any 2 clusters",
)
"""The workload whose move helps is in another cluster than those that lack something."""
BEGAN_WITH_A_SHORTAGE = make_case(
    [DrawnCluster("west", (3, 3)), DrawnCluster("west", (2, 2)), DrawnCluster("west", (0, 2))],
    [
        DrawnWorkload(DYNAMIC, (3, 5), ("labelSelector: {}", "labelSelector: {}")),
        DrawnWorkload(WEIGHTED, (1, 1), ("clusterNames: [c1, c2]", "clusterNames: [c1, c2]")),
        DrawnWorkload(WEIGHTED, (2, 2), ("clusterNames: [c1, c2]", "clusterNames: [c1, c2]")),
    ],
    "any 2 clusters",
)
"""What workloads lack after the loss of an added cluster and of c1 is what they lacked after that of c1."""


def decide(documents: Documents, previous: Any) -> Baseline:
    return make_baseline(schedule(documents, previous=previous, now=NOW).decisions, Config(), NOW, {})


def check(case: Case) -> ReserveCheck:
    sides = (decide(documents, case.previous) for documents in (case.before, case.after))
    return check_reserves(*sides, ReserveRules([ReserveConfig(case.lose)]))


def lose_each(documents: Documents, lose: str) -> Iterator[tuple[tuple[str, ...], Scenario]]:
    """Yield the names and the scenario of each loss, read from the documents."""
    specs = {one["metadata"]["name"]: one["spec"] for one in documents if one["kind"] == "Cluster"}
    if lose == "any 2 clusters":
        for pair in combinations(specs, 2):
            yield pair, Scenario(lose=tuple(FailureDomain("cluster", name) for name in pair))
        return
    of = {"cluster": lambda name: name, "zone": lambda name: specs[name]["zones"][0], "region": lambda name: specs[name]["region"]}
    for name in sorted({of[lose](name) for name in specs}):
        yield (name,), Scenario(lose=(FailureDomain(lose, name),))


def measure(documents: Documents, previous: Any, lose: str) -> dict[tuple[tuple[str, ...], Key], tuple[int, bool]]:
    """Return what is missing after each loss, and whether the workload becomes unplaced, by a complete simulation of each."""
    baseline = decide(documents, previous)
    complete = baseline._replace(relevant_clusters=dict.fromkeys(baseline.relevant_clusters), continued=None)
    return {
        (names, effect.key): (effect.lost_replicas, effect.becomes_unplaced)
        for names, scenario in lose_each(documents, lose)
        for effect in simulate(complete, scenario).degraded
    }


def ends_shortages(case: Case, documents: Documents, limits: Mapping[Any, tuple[int, bool]]) -> bool:
    """Return whether a plan of documents leaves no shortage larger than before the change, and takes no replicas from workloads. Losses of
    added clusters are compared with those of the others."""
    known = {one["metadata"]["name"] for one in case.before if one["kind"] == "Cluster"}
    found = measure(documents, case.previous, case.lose)
    outcomes = [decide(one, case.previous).decisions.outcomes for one in (case.after, documents)]
    kept = all(
        (outcomes[1][key].unassigned or 0) <= (one.unassigned or 0)
        and bool(outcomes[1][key].replicas_by_cluster) >= bool(one.replicas_by_cluster)
        for key, one in outcomes[0].items()
    )
    for (names, key), (missing, unplaced) in found.items():
        lost = tuple(name for name in names if name in known) if case.lose == "any 2 clusters" else names
        most, may_be_unplaced = limits.get((lost, key), (0, False))
        kept = kept and missing <= most and unplaced <= may_be_unplaced
    return kept


def annotate(documents: Documents, preferred: Mapping[str, str]) -> Documents:
    """Return the documents with preferred clusters, and a request for the workloads with any or with ""."""
    changed = [
        {**one, "metadata": {**one["metadata"], "annotations": {PREFERRED_CLUSTERS: preferred[one["metadata"]["name"]]}}}
        if one["kind"] == "Deployment" and preferred.get(one["metadata"]["name"])
        else one
        for one in documents
    ]
    named = [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name} for name in preferred]
    request = {
        "apiVersion": "apps.karmada.io/v1alpha1",
        "kind": "WorkloadRebalancer",
        "metadata": {"name": "r"},
        "spec": {"workloads": named},
    }
    return [*changed, request]


def grow(documents: Documents, remedy: ReserveRemedy, less: str = "") -> Documents | None:
    """Return the documents with the capacity of a remedy, of one resource one less; None if it has none of that."""
    grown = []
    for one in documents:
        added = next(
            (entry for entry in remedy.capacity if one["kind"] == "Cluster" and entry.cluster == one["metadata"]["name"]), None
        )
        if added is not None and added.added:
            grown.append({**one, "metadata": {"name": added.added}})
        elif added is not None:
            if less and not added.amounts.get(less):
                return None
            summary = one["status"]["resourceSummary"]["allocatable"]
            more = {name: amount - (name == less) for name, amount in added.amounts.items()}
            totals = {
                name: format_resource_amount(name, count(name, summary[name]) + amount, binary=False)
                for name, amount in more.items()
            }
            one = {**one, "status": {"resourceSummary": {"allocatable": {**summary, **totals}}}}
        grown.append(one)
    return grown


def count(name: str, text: str) -> int:
    quantity = parse_quantity(text)
    assert quantity is not None
    return quantity.nano // (10**6 if name == "cpu" else 10**9)


@settings(max_examples=EXAMPLES, phases=PHASES)
@given(cases())
def test_shortages_are_those_of_simulated_losses_before_and_after(case: Case) -> None:
    before, after = (measure(documents, case.previous, case.lose) for documents in (case.before, case.after))
    found = {(one.loss.names, one.key): one for one in check(case).shortages}
    assert {at: (one.after.missing, one.after.unplaced) for at, one in found.items()} == after
    for at, one in found.items():
        assert (one.before.missing, one.before.unplaced) == before.get(at, (0, False))
        assert one.is_larger == (one.after.missing > one.before.missing or one.after.unplaced > one.before.unplaced)


@settings(max_examples=EXAMPLES, phases=PHASES)
@example(TAKES_ROOM_AFTER_A_LOSS)
@example(BEGAN_WITH_A_SHORTAGE)
@given(cases())
def test_the_remedy_ends_larger_shortages_with_the_fewest_moves(case: Case) -> None:
    found = check(case)
    if not found.larger:
        assert found.remedy is None
        return
    limits = measure(case.before, case.previous, case.lose)
    moves = [{name: target} for name in WORKLOADS for target in ("", *CLUSTERS)]
    pairs = [one | other for one, other in combinations(moves, 2) if one.keys() != other.keys()]
    remedy = found.remedy
    if remedy is not None and remedy.moves:
        chosen = {move.key.name: move.preferred for move in remedy.moves if move.preferred is not None}
        assert ends_shortages(case, annotate(case.after, chosen), limits)
        assert len(chosen) == 1 or not any(ends_shortages(case, annotate(case.after, move), limits) for move in moves)
        return
    assert not any(ends_shortages(case, annotate(case.after, move), limits) for move in (*moves, *(pairs if DEEP else ())))
    if remedy is not None:
        grown = grow(case.after, remedy)
        assert grown is not None
        if case.lose == "any 2 clusters" and remedy.capacity[0].added:
            limits |= measure(case.before, case.previous, "cluster")
        assert ends_shortages(case, grown, limits)
        for resource in ("cpu", "pods") if len(remedy.capacity) == 1 and not remedy.capacity[0].added else ():
            fewer = grow(case.after, remedy, resource)
            assert fewer is None or not ends_shortages(case, fewer, limits)
