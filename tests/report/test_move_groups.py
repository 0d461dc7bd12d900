"""Many moves as groups with a common cause: the text, its signs and colours, and what is never left out."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.model.changes import Cause, Move
from gitsched.model.document import Key
from gitsched.model.finding import Finding, Location, count_shown, format_names
from gitsched.report.move_groups import describe_group, group_moves
from gitsched.report.name_ranges import format_ranges
from gitsched.report.review import Review
from gitsched.report.text import write_plan, write_run

Clusters = Mapping[str, int | None]


def move(number: int, before: Clusters, after: Clusters, *causes: Cause, reason: str = "") -> Move:
    return Move(Key("apps", "Deployment", "shop", f"w{number:02}"), before, after, reason, causes)


def tainted(number: int) -> Cause:
    return Cause(f"Cluster/c{number:03}: spec.taints added: down", Location(f"c{number:03}.yaml", 7, 1))


def scaled(number: int) -> Cause:
    return Cause(f"Deployment/shop/w{number:02}: spec.replicas 8 -> 4", Location(f"w{number:02}.yaml", 8, 1))


LEAVING = [move(n, {f"c{n % 3:03}": 2}, {"c010": 2}, tainted(n % 3)) for n in range(6)]
SPREAD = [move(n, {"c000": 2, "c005": 1}, {f"d{n}": 2, "c005": 1}, tainted(0)) for n in range(10, 14)]
SHRINKING = [move(n, {"west": 8}, {"west": 4}, scaled(n)) for n in range(20, 24)]
LOST = [move(30, {"c001": 1}, {}, tainted(1), reason="no cluster fits")]
NEW = [move(n, {}, {"west": None}, reason="PropagationPolicy/shop/all") for n in range(40, 44)]
REVIEW = Review("c" * 40, "placements", "/fleet", "b" * 40, None, True, moves=[*NEW, *LEAVING, *SHRINKING, *LOST, *SPREAD])
TEXT = """\
10 of 19 workloads move, 4 scale to fewer replicas, 4 are newly placed, 1 becomes unplaced: commit cccccccccc against branch
placements at bbbbbbbbbb of /fleet.

Deployment shop/w30 becomes unplaced and stops: it leaves all of its clusters (1 cluster, 1 replica): Cluster/c001: spec.taints
added: down (c001.yaml:7)
Deployment shop/w20, Deployment shop/w21, Deployment shop/w22, Deployment shop/w23 run on with 16 of 32 replicas:
Deployment/shop/w20 and 3 more: spec.replicas 8 -> 4 (w20.yaml:8)

  WORKLOAD             CLUSTERS  REPLICAS  REASON
- Deployment shop/w30  - c001 1  1 -> 0    Cluster/c001: spec.taints added: down (c001.yaml:7); no cluster fits

~ 10 workloads move: c000–c002 -> c010, d10–d13
    Cluster/c000, Cluster/c001, Cluster/c002: spec.taints added: down (c000.yaml:7)
    Deployment shop/w00: - c000 2, + c010 2
    Deployment shop/w01: - c001 2, + c010 2
    Deployment shop/w02: - c002 2, + c010 2
    Deployment shop/w03: - c000 2, + c010 2
    Deployment shop/w04: - c001 2, + c010 2
    Deployment shop/w05: - c002 2, + c010 2
    Deployment shop/w10: - c000 2, + d10 2, 1 cluster unchanged
    Deployment shop/w11: - c000 2, + d11 2, 1 cluster unchanged
    Deployment shop/w12: - c000 2, + d12 2, 1 cluster unchanged
    Deployment shop/w13: - c000 2, + d13 2, 1 cluster unchanged

~ 4 workloads scale: in west, 32 -> 16 replicas (fewer)
    Deployment/shop/w20 and 3 more: spec.replicas 8 -> 4 (w20.yaml:8)
    Deployment shop/w20: west 8 -> 4
    Deployment shop/w21: west 8 -> 4
    Deployment shop/w22: west 8 -> 4
    Deployment shop/w23: west 8 -> 4

+ 4 workloads are newly placed: to west
    PropagationPolicy/shop/all
    Deployment shop/w40: + west
    Deployment shop/w41: + west
    Deployment shop/w42: + west
    Deployment shop/w43: + west

0 workloads: 0 placed.
No findings.

Deployment shop/w30 becomes unplaced and stops: it leaves all of its clusters (1 cluster, 1 replica): Cluster/c001: spec.taints
added: down (c001.yaml:7)
Deployment shop/w20, Deployment shop/w21, Deployment shop/w22, Deployment shop/w23 run on with 16 of 32 replicas:
Deployment/shop/w20 and 3 more: spec.replicas 8 -> 4 (w20.yaml:8)

10 of 19 workloads move, 4 scale to fewer replicas, 4 are newly placed, 1 becomes unplaced.
"""


def test_moves_with_the_same_cause_are_one_entry_and_the_gravest_come_first() -> None:
    assert write_plan(REVIEW, 130) == TEXT


def test_each_workload_is_listed_on_request_and_where_few_move() -> None:
    rows = [line for line in write_plan(REVIEW, 200, each=True).splitlines() if line[:2] in ("+ ", "- ", "~ ")]
    assert [re.split("  +", row)[0] for row in rows][:3] == [
        "- Deployment shop/w30",
        "~ Deployment shop/w00",
        "~ Deployment shop/w01",
    ]
    assert len(rows) == 19
    few = write_run(REVIEW._replace(moves=[*LOST, *SHRINKING[:1]]), 200)
    assert "\n~ Deployment shop/w20  west 8 -> 4  8 -> 4 (fewer)  Deployment/shop/w20: spec.replicas 8 -> 4 (w20.yaml:8)\n" in few


def test_a_group_of_many_says_how_many_go_where_and_names_the_first() -> None:
    many = [*LEAVING, *SPREAD, *(move(n, {"c001": 2}, {"c010": 2}, tainted(1)) for n in range(50, 60))]
    lines = write_plan(REVIEW._replace(moves=many), 130).splitlines()
    start = lines.index("~ 20 workloads move: c000–c002 -> c010, d10–d13")
    assert lines[start + 1 : start + 3] == ["    16: c000–c002 -> c010", "    1: c000 -> d10"]
    assert lines[start + 7] == "    Deployment shop/w00: - c000 2, + c010 2"
    assert lines[start + 17 : start + 20] == ["    and 10 more", "", "--each-workload lists each workload."]


def test_of_each_of_many_groups_few_workloads_are_named_and_groups_beyond_a_limit_are_counted() -> None:
    policies = [f"PropagationPolicy/shop/p{number:02}" for number in range(60)]
    new = [move(n, {}, {f"c{n % 60:03}": 1}, reason=policies[n % 60]) for n in range(60 * 8)]
    lines = write_plan(REVIEW._replace(moves=new), 130).splitlines()
    start = lines.index("+ 8 workloads are newly placed: to c000")
    assert lines[start + 1 : start + 6] == [
        "    PropagationPolicy/shop/p00",
        "    Deployment shop/w00: + c000 1",
        "    Deployment shop/w120: + c000 1",
        "    Deployment shop/w180: + c000 1",
        "    and 5 more",
    ]
    assert len([line for line in lines if line.startswith("+ 8 workloads")]) == 50
    assert "and 80 workloads with 10 other causes; use -o json for all" in lines


def test_colours_only_repeat_what_the_text_says() -> None:
    review = REVIEW._replace(findings=[Finding("error", "x", "broken", Location("a.yaml", 1, 2))], refused="not reviewed")
    painted: list[tuple[str, str]] = []

    def paint(text: str, role: str) -> str:
        painted.append((role, text))
        return f"\x1b[1m{text}\x1b[0m"

    assert re.sub(r"\x1b\[\dm", "", write_plan(review, 130, paint)) == write_plan(review, 130)
    assert {entry for entry in painted if entry[0] != "heading"} == {
        ("added", "+"),
        ("removed", "-"),
        ("changed", "~"),
        ("removed", "(fewer)"),
        ("error", "error"),
        ("error", "Refused:"),
    }


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abcd"), st.sampled_from("abcde"), st.booleans()), max_size=40),
    st.booleans(),
)
def test_every_move_is_in_exactly_one_entry(rows: list[tuple[int, str, str, bool]], each: bool) -> None:
    moves = [
        move(n, {before: 1}, {} if after == "e" else {after: 2}, *([tainted(number)] if proved else []), reason=after)
        for n, (number, before, after, proved) in enumerate(rows)
    ]
    groups = group_moves(moves, each=each)
    assert sorted(entry.key for group in groups for entry in group.moves) == [entry.key for entry in moves]
    assert all(sum(flow.number for flow in group.flows) == len(group.moves) for group in groups)
    assert all(len(group.moves) >= 3 for group in groups if not group.is_single)
    assert group_moves(moves[::-1], each=each) == groups, "the order of the moves has no effect"


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("", ""),
        ("west", "west"),
        ("c2 c1", "c1, c2"),
        ("c10 c8 c9 c11 west", "c8–c11, west"),
        ("c08 c09 c10", "c08–c10"),
        ("c8 c09 c10", "c8, c09, c10"),
        ("a1 b2 c3", "a1, b2, c3"),
        ("7 8 9", "7–9"),
        ("a1 a3 a5 a7 b c d e f", "a1, a3, a5, a7, b, c and 3 more"),
    ],
)
def test_consecutive_names_are_a_range(names: str, text: str) -> None:
    assert format_ranges(names.split()) == text


@given(st.integers(0, 60), st.integers(1, 20))
def test_a_list_leaves_out_nothing_or_at_least_three_entries(total: int, limit: int) -> None:
    hidden = total - count_shown(total, limit)
    assert hidden == 0 or hidden >= 3
    named = format_names([f"x{number}" for number in range(total)], limit)
    assert named.count("x") == total - hidden
    assert (f" and {hidden} more" in named) == bool(hidden)


def test_workloads_with_fewer_replicas_are_first_among_those_that_only_leave_clusters() -> None:
    causes = Cause("Cluster/c000 removed"), tainted(0)
    spread = [move(n, {"c000": 2, "c001": 2}, {"c001": 4}, causes[0]) for n in range(4)]
    fewer = [move(n, {"c000": 2, "c001": 2}, {"c001": 2}, causes[0]) for n in range(4, 7)]
    single = move(7, {"c000": 2, "c001": 2}, {"c001": 1}, causes[1])
    assert list(map(describe_group, group_moves([*spread, *fewer, single]))) == [
        "3 workloads leave some clusters: from c000, 12 -> 6 replicas",
        "1 workload leaves some clusters: from c000, 4 -> 1 replica",
        "4 workloads leave some clusters: from c000, 16 replicas as before",
    ]


def test_workloads_that_only_get_clusters_do_not_read_as_leaving() -> None:
    moves = [move(n, {"a": 1}, {"a": 1, "b": 1}, tainted(0)) for n in range(4)]
    text = write_plan(REVIEW._replace(moves=moves), 120)
    assert "4 workloads move: to b as well, 4 -> 8 replicas\n" in text
    assert "further clusters" not in text
