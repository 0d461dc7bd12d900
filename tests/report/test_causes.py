"""Causes as text: reasons of one move, and causes that moves share."""

from __future__ import annotations

from gitsched.model.changes import Cause, Move
from gitsched.model.document import Key
from gitsched.model.finding import Location
from gitsched.report.causes import describe_unproved, list_reasons

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
