"""Schedule requests group by group."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitsched.model.labels import Requirement, Selector
from gitsched.model.scheduling import Affinity, AffinityGroup, Assignment, Request, SpreadConstraint, StaticWeight
from gitsched.model.taints import Taint, Toleration
from gitsched.schedule.estimator import Capacity
from gitsched.schedule.fleet import Candidate, Fleet, find_feasible
from gitsched.schedule.pipeline import explain_group, schedule, schedule_among, schedule_in_group
from tests.search_depth import count_examples
from tests.tables import each_row

ANY = AffinityGroup("", None)
COLD = Taint("cold", "", "NoSchedule")
HOT = Taint("hot", "1", "NoExecute")
SOFT = Taint("soft", "", "PreferNoSchedule")
SERVES = frozenset({("apps/v1", "Deployment")})
FLEET = Fleet(
    [
        Candidate("a", {}, {"region": ("eu",)}, enabled_apis=SERVES),
        Candidate("b", {}, {"region": ("eu",)}, (COLD,), SERVES),
        Candidate("c", {}, {"region": ("us",)}, (SOFT,), frozenset()),
        Candidate("d", {}, {}, (HOT,), SERVES),
        Candidate("e", {}, {"region": ("us",)}, enabled_apis=SERVES, deleting=True),
        Candidate("f", {}, {}, frozen=True),
    ]
)


def request(**members: Any) -> Request:
    return Request(**{"identity": "", "replicas": 2, "division": "duplicated", "groups": (ANY,), **members})


def names(decided: Any) -> list[str]:
    return [target.name for target in decided.assignments]


@each_row(
    ("members", "fitting"),
    [
        pytest.param({}, ["a", "c"], id="taints refuse"),
        pytest.param({"tolerations": (Toleration("cold", "Exists", "", ""),)}, ["a", "b", "c"], id="a toleration lets in"),
        pytest.param({"tolerations": (Toleration("hot", "", "1", ""),)}, ["a", "c", "d"], id="also past NoExecute"),
        pytest.param({"tolerations": (Toleration("", "Exists", "", ""),)}, ["a", "b", "c", "d"], id="everything tolerated"),
        pytest.param(
            {"previous": (Assignment("b", 2),)}, ["b", "a", "c"], id="taints do not affect previous clusters, which come first"
        ),
        pytest.param({"required_api": ("apps/v1", "Deployment")}, ["a"], id="the API must be served"),
        pytest.param(
            {"required_api": ("apps/v1", "Deployment"), "previous": (Assignment("c", 2),)}, ["c", "a"], id="unless it is there"
        ),
        pytest.param({"required_fields": ("region",)}, ["a", "c"], id="a field must have a value"),
        pytest.param(
            {"required_fields": ("region",), "previous": (Assignment("d", 1),)}, ["a", "c"], id="also for a previous cluster"
        ),
        pytest.param({"evicted": ("a",)}, ["c"], id="evicted ones are out"),
        pytest.param({"evicted": ("a",), "previous": (Assignment("a", 2),)}, ["c"], id="also for a previous cluster "),
        pytest.param(
            {"previous": (Assignment("e", 2),)}, ["a", "c"], id="a deleting cluster is excluded even if it is a previous one"
        ),
        pytest.param({"previous": (Assignment("f", 2),)}, ["f", "a", "c"], id="what is frozen keeps what it holds"),
        pytest.param({"previous": (Assignment("f", 2),), "evicted": ("f",)}, ["a", "c"], id="unless it was evicted"),
        pytest.param({"previous": (Assignment("gone", 2),)}, ["a", "c"], id="an unknown previous cluster is ignored"),
    ],
)
def test_feasible_candidates(members: dict[str, Any], fitting: list[str]) -> None:
    assert names(schedule(request(**members), FLEET)) == fitting


@pytest.mark.parametrize(
    ("division", "fitting"), [("duplicated", ["a", "c"]), ("everywhere", ["a"])], ids=["with replicas", "without replicas"]
)
def test_overflow_applies_to_workloads_with_replicas(division: Any, fitting: list[str]) -> None:
    group = AffinityGroup("g", Affinity(("a",)), (Affinity(("c",)),))
    assert names(schedule(request(groups=(group,), division=division), FLEET)) == fitting


def test_a_spread_by_label_alone_is_an_error() -> None:
    decision = schedule(request(spread_constraints=(SpreadConstraint("", 1, 1),)), FLEET)
    assert (decision.status, decision.assignments) == ("error", ())
    assert decision.message == "failed to select clusters: just support cluster and region spread constraint"


# Groups


def group(name: str, *members: str) -> AffinityGroup:
    return AffinityGroup(name, Affinity(members))


@pytest.mark.parametrize(
    ("start", "groups", "outcome", "taken"),
    [
        (0, [("x", "a"), ("y", "c")], "scheduled", "x"),
        (0, [("x", "b"), ("y", "c")], "scheduled", "y"),
        (0, [("x", "b"), ("y", "d"), ("z", "a")], "scheduled", "z"),
        (1, [("x", "a"), ("y", "c")], "scheduled", "y"),
        (1, [("x", "a"), ("y", "b")], "no-fit", "y"),
        (0, [("x", "b"), ("y", "d")], "no-fit", "x"),
    ],
)
def test_the_first_feasible_group_is_used(start: int, groups: list[Any], outcome: str, taken: str) -> None:
    decision = schedule(request(groups=tuple(group(*entry) for entry in groups), first_group=start), FLEET)
    assert (decision.status, decision.group) == (outcome, taken)


def test_when_all_groups_fail_the_first_decision_is_returned() -> None:
    decision = schedule(request(groups=(group("x", "b"), group("y", "nobody"))), FLEET)
    assert decision.message == (
        "0/6 clusters are available: 1 cluster(s) had untolerated taint {cold:NoSchedule}, "
        "3 cluster(s) did not match the placement cluster affinity constraint."
    )


def test_without_a_group_scheduling_fails() -> None:
    assert schedule(request(groups=()), FLEET).status == "error"


def test_a_group_without_capacity_is_followed_by_the_next() -> None:
    fleet = Fleet([Candidate("a", {}, {}, capacity=Capacity({"pods": 1})), Candidate("b", {}, {}, capacity=Capacity({"pods": 2}))])
    asked = request(division="dynamic", divides=True, groups=(group("x", "a"), group("y", "b")))
    assert [(d.status, d.group, names(d)) for d in (schedule(asked, fleet), schedule(asked._replace(replicas=3), fleet))] == [
        ("scheduled", "y", ["b"]),
        ("unschedulable", "x", []),
    ]


# Order and verdicts


def test_results_are_in_name_order_with_the_first_reason() -> None:
    verdicts = explain_group(request(previous=(Assignment("a", 2),), required_api=("apps/v1", "Deployment")), ANY, FLEET)
    assert [(v.name, v.eligible, v.total) for v in verdicts] == [
        ("a", True, 100.0),
        ("b", False, None),
        ("c", False, None),
        ("d", False, None),
        ("e", False, None),
        ("f", False, None),
    ]
    assert [v.reason for v in verdicts] == [
        "",
        "cluster(s) had untolerated taint {cold:NoSchedule}",
        "cluster(s) did not have the API resource",
        "cluster(s) had untolerated taint {hot=1:NoExecute}",
        "cluster(s) is being deleted",
        "cluster(s) document is broken",
    ]


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"groups": (group("g", "b"),)}, "cluster(s) did not match the placement cluster affinity constraint"),
        ({"required_fields": ("zone",)}, "cluster(s) did not have zone property"),
        ({"evicted": ("a",)}, "cluster(s) is in the process of eviction"),
    ],
)
def test_a_reason_names_its_filter(members: dict[str, Any], reason: str) -> None:
    asked = request(**members)
    assert explain_group(asked, asked.groups[0], FLEET)[0].reason == reason


# Static weights


def static(*weights: tuple[int, str], **members: Any) -> dict[str, int]:
    fleet = Fleet([Candidate(name, {}, {"region": ("eu",) if name < "c" else ("us",)}) for name in "abcd"])
    rules = tuple(
        StaticWeight(Affinity(fields=(Requirement("region", "In", (who,)),)) if len(who) == 2 else Affinity((who,)), weight)
        for weight, who in weights
    )
    decision = schedule_in_group(request(division="static", weights=rules, **{"replicas": 8, **members}), ANY, fleet)
    return {target.name: target.replicas for target in decision.assignments}


@pytest.mark.parametrize(
    ("weights", "shares"),
    [
        pytest.param([], {"a": 2, "b": 2, "c": 2, "d": 2}, id="no weights are equal weights"),
        pytest.param([(1, "a"), (3, "b")], {"a": 2, "b": 6}, id="no weight, no replicas"),
        pytest.param([(1, "eu"), (3, "b")], {"a": 2, "b": 6}, id="the largest of the rules that match"),
        pytest.param([(3, "b"), (1, "eu")], {"a": 2, "b": 6}, id="whatever their order"),
        pytest.param([(5, "x")], {"a": 2, "b": 2, "c": 2, "d": 2}, id="weights that match no cluster are ignored"),
        pytest.param([(1000, "a"), (1, "b")], {"a": 8}, id="too light for a replica"),
    ],
)
def test_static_weights_divide_replicas(weights: list[tuple[int, str]], shares: dict[str, int]) -> None:
    assert static(*weights) == shares


def test_static_weights_ignore_the_previous_result() -> None:
    assert static((1, "a"), (1, "b"), previous=(Assignment("d", 8),)) == {"a": 4, "b": 4}


def test_empty_assignments_come_last_if_they_are_kept() -> None:
    shares = static((1, "b"), (1, "d"), keep_empty=True)
    assert list(shares.items()) == [("b", 4), ("d", 4), ("a", 0), ("c", 0)]


@given(st.integers(0, 50), st.lists(st.integers(0, 9), min_size=4, max_size=4))
def test_static_shares_sum_to_the_replicas(replicas: int, weights: list[int]) -> None:
    assert sum(static(*zip(weights, "abcd", strict=True), replicas=replicas).values()) == replicas


_NAMES = tuple("abcdefgh")
_CANDIDATES = st.lists(
    st.builds(
        Candidate,
        st.sampled_from(_NAMES),
        st.sampled_from([{}, {"tier": "gold"}]),
        st.sampled_from([{}, {"region": ("eu",)}, {"region": ("us",)}]),
        st.sampled_from([(), (COLD,)]),
        capacity=st.none() | st.integers(0, 9).map(lambda free: Capacity({"cpu": free * 1000, "pods": 100})),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda candidate: candidate.name,
)
_GOLD = Affinity(labels=Selector((Requirement("tier", "In", ("gold",)),)))
_REQUESTS = st.builds(
    Request,
    st.sampled_from(["", "x", "y"]),
    st.integers(0, 12),
    st.sampled_from(["everywhere", "duplicated", "static", "dynamic", "aggregated"]),
    st.sampled_from([(ANY,), (AffinityGroup("gold", _GOLD, (Affinity(),)),)]),
    resource_request=st.sampled_from([None, (("cpu", 1000),)]),
    previous=st.dictionaries(st.sampled_from(_NAMES), st.integers(1, 4), max_size=3).map(
        lambda counts: tuple(Assignment(*entry) for entry in counts.items())
    ),
    weights=st.sampled_from([(), (StaticWeight(_GOLD, 3), StaticWeight(Affinity(), 1))]),
    spread_constraints=st.sampled_from(
        [(), (SpreadConstraint("cluster", 1, 2),), (SpreadConstraint("region", 1, 2), SpreadConstraint("cluster", 2, 3))]
    ),
    fresh=st.booleans(),
    preferred=st.none() | st.lists(st.sampled_from(_NAMES), max_size=3, unique=True).map(tuple),
)


@settings(max_examples=count_examples(300))
@given(_CANDIDATES, _REQUESTS, st.sets(st.sampled_from(_NAMES)))
def test_candidates_that_do_not_pass_the_filters_have_no_effect(
    candidates: list[Candidate], asked: Request, others: set[str]
) -> None:
    fleet, (group,) = Fleet(candidates), asked.groups
    mask = find_feasible(asked, group, fleet)
    feasible = {fleet.names[index] for index in fleet.members(mask)}
    smaller = Fleet(one for one in candidates if one.name in feasible or one.name in others)
    assert schedule_among(asked, group, smaller, smaller.mask(feasible)) == schedule_in_group(asked, group, fleet)
