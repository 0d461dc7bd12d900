"""Rollouts of ManifestWorkReplicaSets: each step is a commit, and the next step waits for the reports of clusters."""

from __future__ import annotations

from typing import Any

import pytest

from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.report.fleet_status import write_fleet_status
from tests.builders.ocm import Body, bound_global_set, managed_cluster, placement, taint, to_yaml

STAGES = {"ash": "canary", "bru": "canary", "cph": "live", "dub": "live"}
CANARY_GROUP = {"groupName": "canary", "groupClusterSelector": {"labelSelector": {"matchLabels": {"stage": "canary"}}}}
PLACEMENT = to_yaml(placement("everywhere", "shop", decisionStrategy={"groupStrategy": {"decisionGroups": [CANARY_GROUP]}}))
SETS = to_yaml(*bound_global_set("shop"))


def managed(name: str, stage: str, *taints: Body) -> str:
    return to_yaml(managed_cluster(name, {"stage": stage}, taints))


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


def report(**states: str) -> str:
    entries = "".join(
        f"  - {{name: {name}, state: {text.split()[0]}, time: '{text.split()[1]}'}}\n" for name, text in states.items()
    )
    return f"apiVersion: gitsched.io/v1alpha1\nkind: RolloutReport\nmetadata: {{name: clusters}}\nspec:\n  clusters:\n{entries}"


def colours(fleet: Any, name: str = "settings") -> dict[str, str]:
    """Return the colour in each cluster that has the ConfigMap."""
    path = f"web/configmap-{name}.yaml"
    return {c: fleet.load(f"clusters/{c}/{path}")["data"]["colour"] for c in STAGES if f"clusters/{c}/{path}" in fleet.files()}


@pytest.fixture
def shop(fleet: Any) -> Any:
    """Two canary and two live clusters, without a workload."""
    clusters = {f"clusters/{name}.yaml": managed(name, stage) for name, stage in STAGES.items()}
    fleet.commit({"sets.yaml": SETS, "placement.yaml": PLACEMENT, **clusters})
    return fleet


def everywhere(colour: str) -> dict[str, str]:
    return dict.fromkeys(STAGES, colour)


def test_type_all_applies_to_all_clusters_at_once(shop: Any) -> None:
    shop.commit({"web.yaml": replica_set("green", "{type: All}")})
    shop.reconcile()
    assert colours(shop) == everywhere("green")
    shop.commit({"web.yaml": replica_set("blue", "{type: All}")}, hour=1)
    shop.reconcile(hour=1)
    assert colours(shop) == everywhere("blue")


def test_the_next_group_starts_when_all_clusters_of_the_last_group_succeed(shop: Any) -> None:
    strategy = "{type: ProgressivePerGroup}"
    shop.commit({"web.yaml": replica_set("green", "{type: All}")})
    shop.reconcile()
    shop.commit({"web.yaml": replica_set("blue", strategy)}, hour=1)
    shop.reconcile(hour=1)
    half = {"ash": "blue", "bru": "blue", "cph": "green", "dub": "green"}
    assert colours(shop) == half, "live clusters keep the old revision"
    head = shop.head
    shop.reconcile(hour=5)
    assert shop.head == head, "waits without a report"
    shop.commit({"report.yaml": report(ash="Success 2026-03-02T10:00:00Z", bru="Success 2026-03-02T08:30:00Z")}, hour=6)
    shop.reconcile(hour=6)
    assert colours(shop) == half, "the report of bru is older than the revision"
    shop.commit({"report.yaml": report(ash="Success 2026-03-02T10:00:00Z", bru="Success 2026-03-02T13:00:00Z")}, hour=7)
    run = shop.reconcile(hour=7)
    assert colours(shop) == everywhere("blue")
    assert [finding.code for finding in run.plan.findings if finding.severity != "info"] == []


def test_a_failed_canary_stops_the_rollout(shop: Any) -> None:
    shop.commit({"web.yaml": replica_set("green", "{type: All}")})
    shop.reconcile()
    reports = report(ash="Success 2026-03-02T09:30:00Z", bru="Failure 2026-03-02T09:30:00Z")
    shop.commit({"web.yaml": replica_set("blue", "{type: ProgressivePerGroup}"), "report.yaml": reports}, hour=1)
    run = shop.reconcile(hour=2)
    assert colours(shop) == {"ash": "blue", "bru": "blue", "cph": "green", "dub": "green"}
    assert "ocm-rollout-failed" in [finding.code for finding in run.plan.findings]
    first, failed, *_ = write_fleet_status(read_fleet_status(shop.settings(2))).splitlines()
    assert first == "Needs attention: 1 workload failed in clusters while it was rolled out."
    assert failed.endswith(
        "ManifestWorkReplicaSet.work.open-cluster-management.io/shop/web failed in 1 of its clusters: bru [ocm-rollout-failed]"
    )


def test_a_cluster_without_report_fails_at_the_progress_deadline(shop: Any) -> None:
    strategy = "{type: ProgressivePerGroup, progressivePerGroup: {progressDeadline: 30m, maxFailures: 2}}"
    shop.commit({"web.yaml": replica_set("green", strategy)})
    run = shop.reconcile()
    assert set(colours(shop)) == {"ash", "bru"}
    assert run.plan.next_wakeup is not None
    assert f"{run.plan.next_wakeup:%H:%M}" == "08:30"
    shop.reconcile(hour=0.5)
    assert colours(shop) == everywhere("green")


def test_progressive_applies_to_max_concurrency_clusters_at_a_time(shop: Any) -> None:
    strategy = "{type: Progressive, progressive: {maxConcurrency: 25%}}"
    shop.commit({"web.yaml": replica_set("green", strategy)})
    shop.reconcile()
    assert set(colours(shop)) == {"ash"}
    states = {}
    for hour, name in enumerate(("ash", "bru", "cph"), 1):
        states[name] = f"Success 2026-03-02T{8 + hour:02}:00:00Z"
        shop.commit({"report.yaml": report(**states)}, hour=hour)
        shop.reconcile(hour=hour)
        assert len(colours(shop)) == hour + 1


def test_an_object_removed_from_the_manifests_stays_in_clusters_with_the_old_revision(shop: Any) -> None:
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


def test_a_cluster_that_is_no_longer_chosen_loses_the_objects(shop: Any) -> None:
    shop.commit({"web.yaml": replica_set("green", "{type: All}")})
    shop.reconcile()
    shop.commit({"clusters/ash.yaml": managed("ash", "canary", taint("broken"))}, hour=1)
    shop.reconcile(hour=1)
    assert set(colours(shop)) == {"bru", "cph", "dub"}


def test_an_invalid_manifestworkreplicaset_keeps_its_clusters(shop: Any) -> None:
    shop.commit({"web.yaml": replica_set("green", "{type: All}")})
    shop.reconcile()
    broken = replica_set("blue", "{type: Sometimes}")
    shop.commit({"web.yaml": broken}, hour=1)
    run = shop.reconcile(hour=1)
    assert colours(shop) == everywhere("green")
    assert "value-not-allowed" in [finding.code for finding in run.plan.findings]


def test_a_report_of_a_cluster_counts_like_a_commit_status(shop: Any) -> None:
    shop.commit({"web.yaml": replica_set("green", "{type: All}")})
    shop.reconcile()
    old = shop.head
    shop.commit({"web.yaml": replica_set("blue", "{type: ProgressivePerGroup}")}, hour=1)
    shop.reconcile(hour=1)

    def cluster_report(name: str, commit: str) -> str:
        spec = f"spec: {{appliedCommit: '{commit}', health: Healthy, since: '2026-03-02T10:00:00Z'}}"
        return f"apiVersion: gitsched.io/v1alpha1\nkind: ClusterReport\nmetadata: {{name: {name}}}\n{spec}\n"

    for hour, commit in ((2, old), (3, shop.head)):
        shop.commit({f"{name}.yaml": cluster_report(name, commit) for name in ("ash", "bru")}, hour=hour)
        shop.reconcile(hour=hour)
        assert (colours(shop) == everywhere("blue")) == (commit != old)


def lose(fleet: Any, *names: str, hour: float) -> Any:
    """Taint clusters, and reconcile."""
    fleet.commit({f"clusters/{name}.yaml": managed(name, STAGES[name], taint("broken")) for name in names}, hour=hour)
    return fleet.reconcile(hour=hour)


def rollout_codes(run: Any) -> list[str]:
    return [finding.code for finding in run.plan.findings if finding.code.startswith("ocm-rollout")]


LIVE = {"cph": "green", "dub": "green"}
PER_GROUP = "{type: ProgressivePerGroup}"
MANDATORY = "{type: Progressive, progressive: {mandatoryDecisionGroups: [{groupName: canary}]}}"


@pytest.mark.parametrize("strategy", [PER_GROUP, MANDATORY])
def test_lost_canaries_stop_the_rollout_until_they_are_back(shop: Any, strategy: str) -> None:
    shop.commit({"web.yaml": replica_set("green", "{type: All}")})
    shop.reconcile()
    shop.commit({"web.yaml": replica_set("blue", strategy)}, hour=1)
    shop.reconcile(hour=1)
    run = lose(shop, "ash", "bru", hour=2)
    assert (colours(shop), rollout_codes(run)) == (LIVE, ["ocm-rollout-failed"])
    (message,) = (finding.message for finding in run.plan.findings if finding.code == "ocm-rollout-failed")
    assert "ash, bru were lost before reporting that it is healthy: to go on, make" in message
    head = shop.head
    shop.reconcile(hour=5)
    assert shop.head == head
    shop.commit({"web.yaml": replica_set("red", strategy)}, hour=6)
    assert rollout_codes(shop.reconcile(hour=6)) == ["ocm-rollout-failed"]
    assert colours(shop) == LIVE, "another change does not begin without them"
    shop.commit({f"clusters/{name}.yaml": managed(name, STAGES[name]) for name in ("ash", "bru")}, hour=7)
    assert rollout_codes(shop.reconcile(hour=7)) == []
    assert colours(shop) == {"ash": "red", "bru": "red", **LIVE}
    shop.commit({"report.yaml": report(ash="Success 2026-03-02T16:00:00Z", bru="Success 2026-03-02T16:00:00Z")}, hour=8)
    shop.reconcile(hour=8)
    assert colours(shop) == everywhere("red")


def test_canaries_that_are_gone_or_excluded_are_skipped_and_healthy_ones_may_go(shop: Any) -> None:
    shop.commit({"web.yaml": replica_set("green", "{type: All}")})
    shop.reconcile()
    shop.commit({"web.yaml": replica_set("blue", PER_GROUP)}, hour=1)
    shop.reconcile(hour=1)
    excluding = PLACEMENT.replace(
        "spec:\n", "spec:\n  predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {stage: live}}}}]\n", 1
    )
    shop.git("branch", "fork", "placements")
    changes: dict[str, tuple[list[str], dict[str, str | None]]] = {
        "reported": ([], {"report.yaml": report(ash="Success 2026-03-02T09:30:00Z", bru="Success 2026-03-02T09:30:00Z")}),
        "removed": (["ocm-rollout-skipped"], {"report.yaml": None, "clusters/ash.yaml": None, "clusters/bru.yaml": None}),
        "excluded": (["ocm-rollout-skipped"], {"placement.yaml": excluding}),
    }
    for change, (codes, files) in changes.items():
        shop.git("branch", "-f", "placements", "fork")
        tainted = {f"clusters/{name}.yaml": managed(name, "canary", taint("broken")) for name in ("ash", "bru")}
        shop.commit({**tainted, **files}, hour=2)
        run = shop.reconcile(hour=2)
        found = {name: colour for name, colour in colours(shop).items() if name in LIVE}
        assert (found, rollout_codes(run)) == (dict.fromkeys(LIVE, "blue"), codes), change


def test_what_replaces_a_lost_cluster_has_the_earlier_revision_until_its_turn(shop: Any) -> None:
    two = PLACEMENT.replace("spec:\n", "spec:\n  numberOfClusters: 3\n", 1)
    shop.commit({"placement.yaml": two, "web.yaml": replica_set("green", "{type: All}")})
    shop.reconcile()
    assert set(colours(shop)) == {"ash", "bru", "cph"}
    shop.commit({"web.yaml": replica_set("blue", PER_GROUP)}, hour=1)
    shop.reconcile(hour=1)
    lose(shop, "ash", hour=2)
    assert colours(shop) == {"ash": "blue", "bru": "blue", **LIVE}, "dub replaces ash, which stays for the overlap"
    shop.reconcile(hour=3)
    assert colours(shop) == {"bru": "blue", **LIVE}
    shop.commit({"web.yaml": replica_set("green", PER_GROUP)}, hour=4)
    assert rollout_codes(shop.reconcile(hour=4)) == []
    assert set(colours(shop).values()) == {"green"}, "it is reverted"


def test_a_copy_in_a_lost_canary_stays_while_what_replaces_it_has_nothing(shop: Any) -> None:
    three = PLACEMENT.replace("spec:\n", "spec:\n  numberOfClusters: 3\n", 1)
    shop.commit({"placement.yaml": three, "web.yaml": replica_set("green", PER_GROUP)})
    shop.reconcile()
    lose(shop, "ash", hour=1)
    run = shop.reconcile(hour=3)
    assert colours(shop) == {"ash": "green", "bru": "green"}, "cph and dub wait"
    assert "copy-retained" in [finding.code for finding in run.plan.findings]
    shop.commit({"clusters/ash.yaml": None}, hour=4)
    shop.commit({"report.yaml": report(bru="Success 2026-03-02T12:00:00Z")}, hour=4)
    shop.reconcile(hour=4)
    shop.reconcile(hour=5)
    assert colours(shop) == {"bru": "green", "cph": "green", "dub": "green"}
