"""Rollouts as text."""

from __future__ import annotations

from gitsched.model.rollouts import RolloutCluster, RolloutStatus
from gitsched.report.rollouts import describe_rollout

SILENT = "no report about the change"


def test_each_cluster_has_the_reason_that_is_its_own() -> None:
    reasons = {"one": "reported a failure", "two": SILENT, "three": SILENT, "four": ""}
    clusters = [RolloutCluster(name, "2", "failed", None, detail) for name, detail in reasons.items()]
    many = [RolloutCluster(f"c{number:02}", "3", "failed", None, f"reason {number}") for number in range(20)]
    assert describe_rollout(RolloutStatus("web", "Progressive", "stopped", "", (*clusters, *many)))[1:] == [
        "  wave 2: one failed (reported a failure)",
        f"  wave 2: two, three failed ({SILENT})",
        "  wave 2: four failed",
        *(f"  wave 3: c{number:02} failed (reason {number})" for number in range(5)),
        "  wave 3: c05, c06, c07, c08, c09 and 10 more failed, for other reasons",
    ]
