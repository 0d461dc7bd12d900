"""Query the candidates of a fleet."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.model.labels import Requirement, Selector
from gitsched.model.scheduling import Affinity
from gitsched.model.taints import Taint, Toleration
from gitsched.model.time import EPOCH
from gitsched.schedule.estimator import Capacity
from gitsched.schedule.fleet import Candidate, Fleet

NAMES = [f"m{i}" for i in range(6)]
texts = st.sampled_from(["x", "y", "z"])
some = st.lists(texts, max_size=3, unique=True).map(lambda found: tuple(sorted(found)))
fields = st.fixed_dictionaries({"region": some.map(lambda values: values[:1]), "zone": some})
taints = st.builds(Taint, texts, st.sampled_from(["", "1"]), st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"]))
features = st.none() | st.frozensets(st.tuples(texts, texts), max_size=3)
candidates = st.lists(
    st.builds(
        Candidate,
        st.sampled_from(NAMES),
        st.dictionaries(texts, texts, max_size=3),
        fields,
        st.lists(taints, max_size=2).map(tuple),
        features,
        st.booleans(),
        st.booleans(),
    ),
    max_size=6,
    unique_by=lambda candidate: candidate.name,
)
operators = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt"])
requirements = st.builds(Requirement, texts, operators, some)
about_fields = st.builds(Requirement, st.sampled_from(["region", "zone", "unheard-of"]), operators, some)
names = st.lists(st.sampled_from([*NAMES, "nobody"]), max_size=3).map(tuple)
affinities = st.builds(
    Affinity,
    names,
    names,
    st.none() | st.builds(Selector, st.lists(requirements, max_size=2).map(tuple)),
    st.lists(about_fields, max_size=2).map(tuple),
    st.booleans(),
)
tolerations = st.builds(
    Toleration, st.just("") | texts, st.sampled_from(["", "Equal", "Exists"]), st.sampled_from(["", "1"]), st.just("")
)


def chosen(fleet: Fleet, mask: int) -> list[str]:
    return [fleet.names[i] for i in fleet.members(mask)]


def is_member(candidate: Candidate, affinity: Affinity) -> bool:
    if affinity.invalid or candidate.name in affinity.exclude:
        return False
    if affinity.names and candidate.name not in affinity.names:
        return False
    if affinity.labels is not None and not affinity.labels.matches(candidate.labels):
        return False
    return all(holds(requirement, candidate.fields) for requirement in affinity.fields)


def holds(requirement: Requirement, fields: Mapping[str, tuple[str, ...]]) -> bool:
    values = set(fields.get(requirement.key, ()))
    match requirement.operator:
        case "In":
            return bool(values & set(requirement.values))
        case "NotIn":
            return not values & set(requirement.values)
        case "Exists":
            return bool(values)
        case "DoesNotExist":
            return not values
    return False


@given(candidates, affinities, st.lists(tolerations, max_size=2).map(tuple), st.tuples(texts, texts))
def test_the_members_of_a_set_are_the_candidates_that_meet_its_condition(
    found: list[Candidate], affinity: Affinity, tolerated: tuple[Toleration, ...], feature: tuple[str, str]
) -> None:
    """One fleet answers all questions, because most of the time goes into making it."""

    def names(condition: Callable[[Candidate], bool]) -> list[str]:
        return sorted(candidate.name for candidate in found if condition(candidate))

    fleet = Fleet(found)
    for _ in ("computed", "remembered"):
        assert chosen(fleet, fleet.matching(affinity)) == names(lambda c: is_member(c, affinity))
    assert chosen(fleet, fleet.untolerated(tolerated)) == names(
        lambda c: any(t.effect != "PreferNoSchedule" and not any(x.tolerates(t) for x in tolerated) for t in c.taints)
    )
    assert chosen(fleet, fleet.serving(feature)) == names(lambda c: c.enabled_apis is None or feature in c.enabled_apis)
    for field in ("region", "zone", "unheard-of"):
        assert chosen(fleet, fleet.with_field(field)) == names(lambda c, field=field: bool(c.fields.get(field)))
    other = Fleet(found[::-1])
    assert fleet.names == other.names == tuple(names(lambda _: True))
    assert (fleet.deleting, fleet.frozen, fleet.all) == (other.deleting, other.frozen, other.all)
    assert fleet.matching(affinity) == other.matching(affinity)


@given(
    candidates,
    st.builds(
        Candidate,
        st.just(""),
        st.just({}),
        st.just({}),
        st.lists(taints, max_size=2).map(tuple),
        features,
        st.booleans(),
        st.booleans(),
        st.none() | st.builds(Capacity, st.fixed_dictionaries({"pods": st.integers(0, 3)})),
    ),
    affinities,
    st.lists(tolerations, max_size=2).map(tuple),
    st.data(),
)
def test_a_fleet_that_takes_over_from_an_earlier_one_is_a_new_one(
    found: list[Candidate], other: Candidate, affinity: Affinity, tolerated: tuple[Toleration, ...], data: st.DataObject
) -> None:
    earlier = Fleet(found)
    earlier.matching(affinity)
    earlier.estimate_replicas(None)
    later = [
        other._replace(name=one.name, labels=one.labels, fields=one.fields) if data.draw(st.booleans()) else one for one in found
    ]
    continued, new = Fleet(later, earlier), Fleet(later)
    assert (continued.names, continued.index, continued.all, continued.candidates) == (
        new.names,
        new.index,
        new.all,
        new.candidates,
    )
    assert (continued.deleting, continued.frozen, continued.has_capacity) == (new.deleting, new.frozen, new.has_capacity)
    assert continued.matching(affinity) == new.matching(affinity)
    assert continued.untolerated(tolerated) == new.untolerated(tolerated)
    for group in "xyz":
        assert continued.serving((group, "x")) == new.serving((group, "x"))
    for field in ("region", "zone"):
        assert continued.field_values(field) == new.field_values(field)
    assert list(continued.estimate_replicas(None)) == list(new.estimate_replicas(None))
    has_same = [one.capacity for one in later] == [one.capacity for one in found]
    assert (continued.capacities is earlier.capacities) == has_same


@given(st.integers(0, 2**70))
def test_members_are_ascending_and_complete(mask: int) -> None:
    fleet = Fleet([])
    members = fleet.members(mask)
    assert members == sorted(set(members))
    assert sum(1 << i for i in members) == mask


def test_a_candidate_can_have_several_zones() -> None:
    fleet = Fleet(
        [Candidate("a", {}, {"zone": ("x", "y")}), Candidate("b", {}, {"zone": ()}), Candidate("c", {}, {"zone": ("z",)})]
    )
    assert chosen(fleet, fleet.matching(Affinity(fields=(Requirement("zone", "In", ("y", "z")),)))) == ["a", "c"]
    assert chosen(fleet, fleet.matching(Affinity(fields=(Requirement("zone", "NotIn", ("y",)),)))) == ["b", "c"]
    assert fleet.field_values("zone") == {"x": 1, "y": 1, "z": 4}


@pytest.mark.parametrize("taint", [Taint("k", "", "NoExecute"), Taint("k", "", "NoSchedule")])
def test_taints_that_differ_in_time_are_equal(taint: Taint) -> None:
    dated = taint._replace(since=EPOCH)
    fleet = Fleet([Candidate("a", {}, {}, (taint,)), Candidate("b", {}, {}, (dated,))])
    assert fleet.untolerated(()) == 0b11
    assert fleet.untolerated((Toleration("k", "Exists", "", ""),)) == 0
