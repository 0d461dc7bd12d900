"""A workload of two policies that stays is named with the changes of both."""

from __future__ import annotations

from typing import Any

from gitsched.apis.gitsched.config import Config
from gitsched.decide.catalog import make_raw_document
from gitsched.decide.decisions import DecisionSet, decide
from gitsched.diff.causes import name_near_changes
from gitsched.diff.document_changes import DocumentChanges
from gitsched.diff.policy_names import PolicyNames
from gitsched.model.changes import RetainedWorkload
from gitsched.model.document import Key
from gitsched.model.scheduling import Outcome
from gitsched.model.time import EPOCH

PLACEMENT = ("cluster.open-cluster-management.io", "Placement")
WORKLOAD = Key("work.open-cluster-management.io", "ManifestWorkReplicaSet", "shop", "web")


def place(name: str, number: int) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop"}
    return {
        "apiVersion": f"{PLACEMENT[0]}/v1beta1",
        "kind": "Placement",
        "metadata": metadata,
        "spec": {"numberOfClusters": number},
    }


def plan(number: int) -> DecisionSet:
    return decide([make_raw_document(place(name, number)) for name in ("east", "west")], {}, Config(), EPOCH, EPOCH)


def test_a_workload_of_two_placements_has_the_changes_of_both() -> None:
    before, after = plan(1).input, plan(2).input
    assert before is not None
    assert after is not None
    policies = ", ".join(str(Key(*PLACEMENT, "shop", name)) for name in ("east", "west"))
    names = PolicyNames({WORKLOAD: Outcome(WORKLOAD, "ocm", "placed", policies, "", (), None, (), "", EPOCH)})
    staying = RetainedWorkload(WORKLOAD, {"ash": 1}, {"bru": 1}, "")
    [found] = name_near_changes([staying], DocumentChanges(before, after), names, lambda causes: causes)
    assert [cause.text.partition(":")[0] for cause in found.causes] == ["Placement/shop/east", "Placement/shop/west"]
