"""Causes as text: reasons of one move, and causes that moves share."""

from __future__ import annotations

from gitsched.model.changes import Cause, Move
from gitsched.model.document import Key
from gitsched.model.finding import Location
from gitsched.report.causes import describe_unproved, identify_change, list_reasons, merge_causes

KEY = Key("apps", "Deployment", "shop", "web")


def move(*causes: Cause, reason: str = "") -> Move:
    return Move(KEY, {}, {"a": 1}, reason, causes)


def tainted(cluster: str, **more: int) -> Cause:
    return Cause(f"Cluster/{cluster}: spec.taints added: []", Location(f"{cluster}.yaml", 3, 1), **more)


def test_changes_that_only_explain_a_move_together_are_one_reason() -> None:
    both = move(
        *(tainted(name, together=1) for name in ("fra", "dub")),
        Cause("Pod/shop/x removed", together=1),
        Cause("Cluster/osl removed"),
        reason="policy",
    )
    assert list_reasons(both) == [
        "Cluster/fra, together with Cluster/dub: spec.taints added: [] (fra.yaml:3), together with Pod/shop/x removed",
        "Cluster/osl removed",
        "policy",
    ]


def test_the_first_documents_of_a_set_are_named() -> None:
    drained = move(*(tainted(name, together=1) for name in ("ams", "dub", "fra", "muc", "osl", "rom")))
    assert list_reasons(drained) == [
        "Cluster/ams, together with Cluster/dub, Cluster/fra and 3 more: spec.taints added: [] (ams.yaml:3)"
    ]


def test_an_unproved_change_is_never_reported_as_a_cause() -> None:
    guess = move(Cause("Cluster/osl removed", proved=False), Cause("2 more documents", proved=False))
    assert list_reasons(guess) == ["changed with it: Cluster/osl removed, 2 more documents"]
    assert guess.main_reason == ""
    assert describe_unproved([guess, move(tainted("fra"))]) == "1 workload: no cause is proved, only what changed with it"


def test_the_same_change_of_many_documents_is_counted_once() -> None:
    """Each move names the nearest document and counts the others, of which there may be more for one move than for another."""
    causes = [
        Cause(f"Cluster/c{number:03} and {more} more: spec.taints added", Location("c.yaml", 1, 1))
        for number, more in ((12, 68), (24, 83))
    ]
    assert len({identify_change(cause) for cause in causes}) == 1
    assert merge_causes(causes).text == "Cluster/c012 and 83 more: spec.taints added"
    assert merge_causes([tainted("c1"), tainted("c2")]).text.startswith("Cluster/c1, Cluster/c2: ")
