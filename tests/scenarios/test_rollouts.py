"""A ManifestWorkReplicaSet reaches its clusters as its rollout strategy says, one commit after another, when clusters report success."""

from __future__ import annotations

from typing import Any

import pytest

STAGES = {"ash": "canary", "bru": "canary", "cph": "live", "dub": "live"}
PLACEMENT = """\
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: everywhere, namespace: shop}
spec:
  decisionStrategy:
    groupStrategy:
      decisionGroups:
      - groupName: canary
        groupClusterSelector: {labelSelector: {matchLabels: {stage: canary}}}
"""
SETS = """\
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: global}
spec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {}}}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: global, namespace: shop}
spec: {clusterSet: global}
"""


def managed(name: str, stage: str) -> str:
    head = "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\n"
    return f"{head}metadata: {{name: {name}, labels: {{stage: {stage}}}}}\nspec: {{hubAcceptsClient: true}}\n"


def replica_set(colour: str, strategy: str, name: str = "settings") -> str:
    return f"""\
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata: {{name: web, namespace: shop}}
spec:
  placementRefs:
  - name: everywhere
    rolloutStrategy: {strategy}
  manifestWorkTemplate:
    workload:
      manifests:
      - apiVersion: v1
        kind: ConfigMap
        metadata: {{name: {name}, namespace: web}}
        data: {{colour: {colour}}}
"""


def report(**said: str) -> str:
    entries = "".join(f"  - {{name: {name}, state: {text.split()[0]}, time: '{text.split()[1]}'}}\n" for name, text in said.items())
    return f"apiVersion: gitsched.io/v1alpha1\nkind: RolloutReport\nmetadata: {{name: clusters}}\nspec:\n  clusters:\n{entries}"


def colours(fleet: Any, name: str = "settings") -> dict[str, str]:
    """What each cluster has."""
    path = f"web/configmap-{name}.yaml"
    return {c: fleet.load(f"clusters/{c}/{path}")["data"]["colour"] for c in STAGES if f"clusters/{c}/{path}" in fleet.files()}


@pytest.fixture
def shop(fleet: Any) -> Any:
    """Two canaries and two others; nothing is rolled out yet."""
    clusters = {f"clusters/{name}.yaml": managed(name, stage) for name, stage in STAGES.items()}
    fleet.commit({"sets.yaml": SETS, "placement.yaml": PLACEMENT, **clusters})
    return fleet


def everywhere(colour: str) -> dict[str, str]:
    return dict.fromkeys(STAGES, colour)


def test_all_at_once(shop: Any) -> None:
    shop.commit({"web.yaml": replica_set("green", "{type: All}")})
    shop.reconcile()
    assert colours(shop) == everywhere("green")
    shop.commit({"web.yaml": replica_set("blue", "{type: All}")}, hour=1)
    shop.reconcile(hour=1)
    assert colours(shop) == everywhere("blue")


def test_one_group_after_another_each_when_the_last_one_has_succeeded(shop: Any) -> None:
    strategy = "{type: ProgressivePerGroup}"
    shop.commit({"web.yaml": replica_set("green", "{type: All}")})
    shop.reconcile()
    shop.commit({"web.yaml": replica_set("blue", strategy)}, hour=1)
    shop.reconcile(hour=1)
    half = {"ash": "blue", "bru": "blue", "cph": "green", "dub": "green"}
    assert colours(shop) == half, "the others keep what they have"
    head = shop.head
    shop.reconcile(hour=5)
    assert shop.head == head, "no report means wait"
    shop.commit({"report.yaml": report(ash="Success 2026-03-02T10:00:00Z", bru="Success 2026-03-02T08:30:00Z")}, hour=6)
    shop.reconcile(hour=6)
    assert colours(shop) == half, "one of the canaries spoke of what was there before"
    shop.commit({"report.yaml": report(ash="Success 2026-03-02T10:00:00Z", bru="Success 2026-03-02T13:00:00Z")}, hour=7)
    run = shop.reconcile(hour=7)
    assert colours(shop) == everywhere("blue")
    assert [finding.code for finding in run.plan.findings if finding.severity != "info"] == []


def test_a_canary_that_fails_stops_the_rollout(shop: Any) -> None:
    shop.commit({"web.yaml": replica_set("green", "{type: All}")})
    shop.reconcile()
    said = report(ash="Success 2026-03-02T09:30:00Z", bru="Failure 2026-03-02T09:30:00Z")
    shop.commit({"web.yaml": replica_set("blue", "{type: ProgressivePerGroup}"), "report.yaml": said}, hour=1)
    run = shop.reconcile(hour=2)
    assert colours(shop) == {"ash": "blue", "bru": "blue", "cph": "green", "dub": "green"}
    assert "ocm-rollout-failed" in [finding.code for finding in run.plan.findings]


def test_silence_beyond_the_deadline_is_a_failure_that_may_be_allowed(shop: Any) -> None:
    strategy = "{type: ProgressivePerGroup, progressivePerGroup: {progressDeadline: 30m, maxFailures: 2}}"
    shop.commit({"web.yaml": replica_set("green", strategy)})
    run = shop.reconcile()
    assert set(colours(shop)) == {"ash", "bru"}
    assert run.plan.next_wakeup is not None
    assert f"{run.plan.next_wakeup:%H:%M}" == "08:30"
    shop.reconcile(hour=0.5)
    assert colours(shop) == everywhere("green")


def test_progressive_keeps_no_more_clusters_under_way_than_allowed(shop: Any) -> None:
    strategy = "{type: Progressive, progressive: {maxConcurrency: 25%}}"
    shop.commit({"web.yaml": replica_set("green", strategy)})
    shop.reconcile()
    assert set(colours(shop)) == {"ash"}
    said = {}
    for hour, name in enumerate(("ash", "bru", "cph"), 1):
        said[name] = f"Success 2026-03-02T{8 + hour:02}:00:00Z"
        shop.commit({"report.yaml": report(**said)}, hour=hour)
        shop.reconcile(hour=hour)
        assert len(colours(shop)) == hour + 1


def test_an_object_that_a_new_revision_drops_stays_where_the_rollout_has_not_come(shop: Any) -> None:
    shop.commit({"web.yaml": replica_set("green", "{type: All}", name="old")})
    shop.reconcile()
    shop.commit({"web.yaml": replica_set("blue", "{type: ProgressivePerGroup}", name="new")}, hour=1)
    shop.reconcile(hour=1)
    assert colours(shop, "new") == {"ash": "blue", "bru": "blue"}
    assert colours(shop, "old") == {"cph": "green", "dub": "green"}
    shop.commit({"report.yaml": report(ash="Success 2026-03-02T10:00:00Z", bru="Success 2026-03-02T10:00:00Z")}, hour=2)
    shop.reconcile(hour=2)
    assert colours(shop, "new") == everywhere("blue")
    assert colours(shop, "old") == {}


def test_a_cluster_that_is_no_longer_chosen_loses_the_objects_at_once(shop: Any) -> None:
    shop.commit({"web.yaml": replica_set("green", "{type: ProgressivePerGroup}")})
    shop.reconcile()
    shop.commit({"clusters/ash.yaml": managed("ash", "canary") + "  taints: []\n"}, hour=1)
    gone = managed("ash", "canary").replace("hubAcceptsClient: true", "taints: [{key: broken, effect: NoSelect}]")
    shop.commit({"clusters/ash.yaml": gone}, hour=1)
    shop.reconcile(hour=1)
    assert set(colours(shop)) == {"bru"}


def test_a_broken_set_of_objects_changes_nothing(shop: Any) -> None:
    shop.commit({"web.yaml": replica_set("green", "{type: All}")})
    shop.reconcile()
    broken = replica_set("blue", "{type: Sometimes}")
    shop.commit({"web.yaml": broken}, hour=1)
    run = shop.reconcile(hour=1)
    assert colours(shop) == everywhere("green")
    assert "value-not-allowed" in [finding.code for finding in run.plan.findings]
