"""The result of the filters for a class of requests holds for each of them, and there is none if a filter reads anything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.model.errors import Temporary
from gitsched.model.labels import Requirement, Selector
from gitsched.model.scheduling import Affinity, AffinityGroup, Assignment, Request
from gitsched.model.taints import Taint, Toleration
from gitsched.reconcile.cache.row_format import deserialize, serialize
from gitsched.schedule import fleet as filters
from gitsched.schedule.fleet import Candidate, Fleet, find_feasible
from gitsched.schedule.fleet_changes import DifferingCandidates, FleetChanges
from gitsched.schedule.plugins import compare_candidates, register_filter
from gitsched.schedule.request_classes import (
    UNKNOWN_FIELDS,
    RequestClass,
    UnknownInputError,
    find_feasible_of_class,
    is_verdict_shared,
)
from tests.apis.karmada.added_filters import AddedFilter
from tests.tables import each_row

NAMES = ("a", "b", "c", "d")
GROUP = AffinityGroup("", Affinity(labels=Selector((Requirement("env", "In", ("prod",)),))), (Affinity(names=("d",)),))
FULL = Taint("full", "", "NoSchedule")
FLEETS = st.tuples(
    *(
        st.builds(
            Candidate,
            st.just(name),
            st.sampled_from([{}, {"env": "prod"}]),
            st.sampled_from([{}, {"region": ("eu",)}]),
            st.sampled_from([(), (FULL,)]),
            st.sampled_from([None, frozenset({("v1", "ConfigMap")})]),
            st.booleans(),
            st.just(False),
        )
        for name in NAMES
    )
).map(Fleet)
FIELDS = st.fixed_dictionaries(
    {
        "division": st.sampled_from(["everywhere", "static"]),
        "tolerations": st.sampled_from([(), (Toleration("full", "Exists", "", ""),)]),
        "required_api": st.sampled_from([("v1", "ConfigMap"), ("apps/v1", "Deployment")]),
        "required_fields": st.sampled_from([(), ("region",)]),
    }
)


@pytest.fixture(autouse=True)
def only_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "FILTERS", filters.FILTERS)


def make_class(**fields: Any) -> RequestClass:
    return RequestClass("", 0, **{"division": "static", "groups": (GROUP,), **fields})


@given(FLEETS, FIELDS, st.lists(st.sampled_from(NAMES), unique=True), st.integers(0, 9))
def test_the_result_for_a_class_is_that_for_each_request(fleet: Fleet, fields: Any, names: list[str], replicas: int) -> None:
    request = Request("uid", replicas, groups=(GROUP,), previous=tuple(map(Assignment, names)), **fields)
    found = find_feasible_of_class(make_class(**fields), GROUP, fleet)
    assert found is not None
    assert found.select(fleet.mask(names)) == find_feasible(request, GROUP, fleet)


FLEET = Fleet([Candidate("a", {"env": "prod"}, {}), Candidate("b", {}, {}, (FULL,)), Candidate("c", {}, {})])
READS: list[tuple[str, Callable[[Any, Any], object]]] = [
    *((f"the field {name}", lambda request, _, name=name: getattr(request, name)) for name in UNKNOWN_FIELDS),
    ("a field with a default", lambda request, _: getattr(request, "replicas", 3)),
    ("the request of a candidate", lambda request, _: request.find_resource_request("a")),
    ("a field by its place", lambda request, _: request[1]),
    ("the last fields", lambda request, _: request[-2:]),
    ("all fields", lambda request, _: list(request)),
    ("all fields as a tuple", lambda request, _: tuple(request)),
    ("fields that are unpacked", lambda request, _: [first for first, *_ in [request]]),
    ("fields that are replaced", lambda request, _: request._replace(division="static")),
    ("fields by name", lambda request, _: request._asdict()),
    ("the hash", lambda request, _: {request: 1}),
    ("another request", lambda request, _: request == Request("", 0, "static", ())),
    ("more fields", lambda request, _: (1, *request)),
    ("a longer tuple", lambda request, _: (1,) + request),  # noqa: RUF005 - as a filter may write it
    ("the text", lambda request, _: str(request)),
    ("whether there is a previous result", lambda _, previous: 1 if previous else 0),
    ("an empty previous result", lambda _, previous: previous == 0),
    ("another previous result", lambda _, previous: previous != 1),
    ("the number of previous candidates", lambda _, previous: previous.bit_count()),
    ("one previous candidate", lambda _, previous: previous >> 1 & 1),
    ("the members", lambda _, previous: FLEET.members(previous)),
    ("the hash of the previous result", lambda _, previous: FLEET.get_or_compute(("by", previous), lambda: 1)),
    ("the previous result as a number", lambda _, previous: int(previous)),
    ("the previous result as a text", lambda _, previous: f"{previous}"),
    ("no set", lambda _, previous: previous | {"a"}),
]


@each_row(("what", "read"), READS)
def test_a_filter_that_reads_what_is_not_known_has_no_result(what: str, read: Callable[[Any, Any], object]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filters, "FILTERS", filters.FILTERS)
        register_filter(AddedFilter("Reading", lambda request, _, fleet, previous: fleet.all if read(request, previous) else 0))
        assert find_feasible_of_class(make_class(), GROUP, FLEET) is None, what
        assert not is_verdict_shared(make_class(), GROUP, FLEET, 0), what


def test_what_is_known_can_be_read() -> None:
    request = make_class(tolerations=(), required_fields=("region",))
    assert (request.division, request.groups, request.required_fields) == ("static", (GROUP,), ("region",))
    assert isinstance(request, Request)
    match request:
        case Request(division="static", groups=(group,)):
            assert group is GROUP
        case _:
            raise AssertionError("it is a request")
    with pytest.raises(UnknownInputError):
        assert request.replicas


def test_a_filter_may_compare_candidates_and_combine_sets() -> None:
    register_filter(AddedFilter("Last", lambda _, __, fleet, previous: ~(~previous & 1) ^ (0 & previous) | previous & fleet.all))
    found = find_feasible_of_class(make_class(groups=(AffinityGroup("", None),)), AffinityGroup("", None), FLEET)
    assert found is not None
    assert [found.select(previous) for previous in (0, 1, 2)] == [0b100, 0b101, 0b110]


def test_the_reason_may_need_more_than_the_verdict() -> None:
    class Explaining(AddedFilter):
        def reason(self, request: Request, fleet: Fleet, index: int) -> str:
            return f"cluster(s) have no room for {request.replicas} replicas"

    register_filter(Explaining("Explaining", lambda _, __, fleet, ___: fleet.mask(("a",))))
    anywhere = AffinityGroup("", None)
    request = make_class(groups=(anywhere,))
    verdicts = [is_verdict_shared(request, anywhere, FLEET, index) for index in range(3)]
    assert verdicts == [True, True, False], "a passes, b is tainted, and the reason for c is that of one workload"


def test_there_is_no_result_where_a_filter_fails_or_a_candidate_is_frozen() -> None:
    frozen = Fleet([Candidate("a", {}, {}), Candidate("b", {}, {}, frozen=True)])
    assert find_feasible_of_class(make_class(), GROUP, frozen) is None
    register_filter(AddedFilter("Failing", lambda *_: 1 // 0))
    assert find_feasible_of_class(make_class(), GROUP, FLEET) is None


def test_an_error_that_is_no_bug_is_raised() -> None:
    def fail(*_: object) -> int:
        raise Temporary("the disk is full")

    register_filter(AddedFilter("Failing", fail))
    for find in (
        lambda: find_feasible_of_class(make_class(), GROUP, FLEET),
        lambda: is_verdict_shared(make_class(), GROUP, FLEET, 0),
    ):
        with pytest.raises(Temporary):
            find()


def test_a_result_can_be_stored_with_the_fleet() -> None:
    found = find_feasible_of_class(make_class(), GROUP, FLEET)
    assert found is not None
    stored = deserialize(serialize(found))
    assert (stored.new, stored.held) == (found.new, found.held)


def test_a_filter_is_registered_once_and_may_compare_candidates_unless_it_says_otherwise() -> None:
    assert not compare_candidates()
    alone = AddedFilter("Alone", lambda _, __, fleet, ___: fleet.all)
    alone.per_candidate = True  # type: ignore[attr-defined]
    register_filter(alone)
    assert not compare_candidates()
    with pytest.raises(ValueError, match="the filter 'Alone' is registered already"):
        register_filter(alone)
    register_filter(AddedFilter("Comparing", lambda _, __, fleet, ___: fleet.all))
    assert compare_candidates()


@given(FLEETS, FLEETS, FIELDS)
def test_candidates_that_pass_otherwise_after_a_change_are_found(before: Fleet, other: Fleet, fields: dict[str, Any]) -> None:
    after = Fleet((other.candidates[0], *before.candidates[1:]))
    request = make_class(**fields)
    found = FleetChanges(before, after, NAMES[:1]).compare(request, GROUP)
    former, present = (find_feasible_of_class(request, GROUP, fleet) for fleet in (before, after))
    assert found is not None
    assert former is not None
    assert present is not None
    for previous in (0, before.all):
        passing = former.select(previous) ^ present.select(previous)
        assert {NAMES[index] for index in before.members(passing)} <= (found.held if previous else found.new)


def test_the_filters_are_not_applied_where_no_affinity_matches_a_changed_candidate() -> None:
    failing = AddedFilter("Failing", lambda *_: 1 // 0)
    failing.per_candidate = True
    register_filter(failing)
    before = Fleet([Candidate("a", {"env": "prod"}, {}), Candidate("b", {"rack": "1"}, {})])
    labels = {"another label": {"rack": "2"}, "a label that matches now": {"env": "prod"}}
    found = {
        what: FleetChanges(before, Fleet([before.candidates[0], Candidate("b", changed, {})]), ("b",)).compare(make_class(), GROUP)
        for what, changed in labels.items()
    }
    assert found == {"another label": DifferingCandidates(), "a label that matches now": None}
