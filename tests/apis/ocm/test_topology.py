"""ManagedClusters in simulations."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gitsched.apis.ocm.availability import derive_availability_taint
from gitsched.apis.ocm.names import GROUP, MANAGED_CLUSTER
from gitsched.apis.ocm.topology import TOPOLOGY, _make_unreachable, _read_topology
from gitsched.model.document import Document, Key
from tests.builders.ocm import Body, managed_cluster

NOW = datetime(2026, 3, 2, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("body", "location"),
    [
        (managed_cluster("dub"), ("dub", "", "", ())),
        (managed_cluster("dub", {"region": "eu", "zone": "a", "cloud": "aws"}), ("dub", "eu", "aws", ("a",))),
        (managed_cluster("dub", {"topology.kubernetes.io/region": "eu"}), ("dub", "eu", "", ())),
        (
            managed_cluster(
                "dub",
                {"region": "label"},
                claims={"region.open-cluster-management.io": "claim", "platform.open-cluster-management.io": "AWS"},
            ),
            ("dub", "claim", "AWS", ()),
        ),
    ],
)
def test_the_location_is_read_from_claims_before_labels(body: Body, location: tuple[object, ...]) -> None:
    document = Document(Key(GROUP, MANAGED_CLUSTER, "", "dub"), f"{GROUP}/v1", body)
    found = _read_topology(document)
    assert (found.name, found.region, found.provider, found.zones) == location


def test_an_unreachable_cluster_has_the_condition_of_the_hub_and_a_drained_one_a_taint() -> None:
    assert (TOPOLOGY.group, TOPOLOGY.kind) == (GROUP, MANAGED_CLUSTER)
    unreachable = _make_unreachable(managed_cluster("dub"), NOW)
    added = derive_availability_taint(unreachable, None, NOW)
    assert added is not None
    assert (str(added.taint), added.taint.since) == (f"{GROUP}/unreachable:NoSelect", NOW)
    assert TOPOLOGY.taints is not None
    drained = TOPOLOGY.taints.mark_drained(managed_cluster("dub"), NOW)
    assert [(taint["key"], taint["effect"]) for taint in drained["spec"]["taints"]] == [("gitsched.io/drain", "NoSelect")]
