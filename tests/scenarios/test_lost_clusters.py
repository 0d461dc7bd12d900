"""Rollouts whose clusters are lost, removed or no longer chosen before they have reported that the change is healthy.

A lost cluster fails its wave. What takes over from it gets the content that was approved last.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.report.fleet_status import write_fleet_status
from tests.scenarios.conftest import Fleet
from tests.scenarios.test_undelivered_replacements import FAILING
from tests.scenarios.test_waves import codes, report, rollout
from tests.search_depth import list_variants

SETTINGS = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: fleet}
spec:
  source: {facts: {clusterBranches: "facts/{cluster}"}}
  karmada: {failover: cluster}
  guard:
    fleet: {removed: 100, moved: 100, replicasLost: 100, replicasAdded: 100000, clustersUnready: 100}
    namespace: {removed: 100}
    cluster: {removed: 100}
"""
NAMES = ("ash", "bru", "cph", "dub")
MANDATORY = "mandatoryDecisionGroups: [{groupName: canary}]"
STRATEGIES = {
    "mandatory": f"{{type: Progressive, progressive: {{{MANDATORY}}}}}",
    "one by one": f"{{type: Progressive, progressive: {{{MANDATORY}, maxConcurrency: 1, progressDeadline: 6h}}}}",
    "per group": "{type: ProgressivePerGroup}",
    "per mandatory group": f"{{type: ProgressivePerGroup, progressivePerGroup: {{{MANDATORY}, maxFailures: 2}}}}",
}
TAINT = "taints: [{key: gone, effect: NoExecute}]"
NOT_READY = "status: {conditions: [{type: Ready, status: 'False', lastTransitionTime: '2026-03-01T00:00:00Z'}]}\n"


def cluster(name: str, spec: str = "", more: str = "", stage: str = "") -> str:
    stage = stage or ("canary" if name == NAMES[0] else "live")
    ready = "" if more else "status: {conditions: [{type: Ready, status: 'True'}]}\n"
    head = f"apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}, labels: {{stage: {stage}}}}}\n"
    return f"{head}spec: {{syncMode: Push{f', {spec}' if spec else ''}}}\n{more}{ready}"


def web(image: str, replicas: int = 4) -> str:
    return (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: default}\n"
        f"spec:\n  replicas: {replicas}\n  selector: {{matchLabels: {{app: web}}}}\n"
        f"  template:\n    metadata: {{labels: {{app: web}}}}\n    spec: {{containers: [{{name: web, image: 'shop/web:{image}'}}]}}\n"
    )


def policy(*clusters: str, placement: str = "") -> str:
    chosen = f"clusterAffinity: {{clusterNames: [{', '.join(clusters)}]}}" if clusters else ""
    parts = ", ".join(filter(None, (chosen, placement)))
    return (
        "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: all, namespace: default}\n"
        f"spec:\n  resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment}}]\n  placement: {{{parts}}}\n"
    )


def weights(**amounts: int) -> str:
    """Return a placement with static weights."""
    entries = ", ".join(f"{{targetCluster: {{clusterNames: [{name}]}}, weight: {weight}}}" for name, weight in amounts.items())
    return (
        "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, "
        f"weightPreference: {{staticWeightList: [{entries}]}}}}"
    )


class Release:
    """A fleet with `web:1` in its clusters, of which the first is the canary, and with a Rollout. What clusters have is read from the
    output branch alone."""

    def __init__(self, fleet: Fleet, strategy: str, placement: str = "", names: tuple[str, ...] = NAMES) -> None:
        self.fleet, self.hour = fleet, 0.0
        clusters = {f"clusters/{name}.yaml": cluster(name) for name in names}
        fleet.commit({"gitsched.yaml": SETTINGS, "policy.yaml": policy(placement=placement), "web.yaml": web("1"), **clusters})
        fleet.reconcile()
        self.commit(rollout=rollout(strategy))

    def commit(self, hours: float = 1, **files: str | None) -> Any:
        self.hour += hours
        self.fleet.commit({f"{name.replace('__', '/')}.yaml": text for name, text in files.items()}, hour=self.hour)
        return self.reconcile()

    def change(self, name: str, spec: str = "", more: str = "", stage: str = "") -> Any:
        return self.commit(**{f"clusters__{name}": cluster(name, spec, more, stage)})

    def report(self, name: str, health: str = "Healthy") -> Any:
        return self.commit(0.1, **{f"reports__{name}": report(name, self.fleet.head, health, self.hour)})

    def reconcile(self, wait: float = 0) -> Any:
        self.hour += wait
        return self.fleet.reconcile(self.hour)

    @property
    def images(self) -> dict[str, str]:
        """The version and the replicas in each cluster, such as 1x2."""
        found = {}
        for name in NAMES:
            path = f"clusters/{name}/default/deployment-web.yaml"
            if path in self.fleet.files():
                spec = yaml.safe_load(self.fleet.read(path))["spec"]
                image = spec["template"]["spec"]["containers"][0]["image"].rpartition(":")[2]
                found[name] = f"{image}x{spec['replicas']}"
        return found


LOSSES: tuple[dict[str, str], ...] = ({"spec": TAINT}, {"more": NOT_READY})
HALF = {"ash": "2x4", "bru": "1x4", "cph": "1x4", "dub": "1x4"}
APPROVED = dict.fromkeys(NAMES[1:], "1x4")
RELEASED = dict.fromkeys(NAMES[1:], "2x4")


@pytest.mark.parametrize(
    ("strategy", "loss"),
    [
        pytest.param(text, LOSSES[at % 2], id=name, marks=pytest.mark.long if name in ("one by one", "per group") else ())
        for at, (name, text) in enumerate(STRATEGIES.items())
    ],
)
def test_a_lost_canary_stops_the_rollout_until_it_is_back_and_healthy(fleet: Fleet, strategy: str, loss: dict[str, str]) -> None:
    release = Release(fleet, strategy)
    release.commit(web=web("2"))
    assert release.images == HALF
    run = release.change("ash", **loss)
    assert release.images == HALF, "what is evicted stays for a while"
    assert codes(run) == ["rollout-stopped"]
    run = release.reconcile(wait=30)
    assert release.images == APPROVED
    (status,) = run.plan.rollouts
    assert (status.state, status.waits_for) == ("stopped", "ash failed")
    text = write_fleet_status(read_fleet_status(fleet.settings(release.hour)))
    assert "ash failed (lost before it reported that it is healthy: it has the taint" in text
    assert "to go on, make ash available again" in text
    assert "to go back, git revert " in text
    run = release.change("ash")
    assert (release.images, codes(run)) == (HALF, []), "it gets the change again, before the others"
    release.report("ash")
    assert release.images["bru"] == "2x4"


def test_a_canary_that_was_healthy_for_long_enough_may_go(fleet: Fleet) -> None:
    release = Release(fleet, f"{{type: Progressive, progressive: {{{MANDATORY}, maxConcurrency: 1, minSuccessTime: 30m}}}}")
    release.commit(web=web("2"))
    fleet.commit({"reports/ash.yaml": report("ash", fleet.head, "Healthy", release.hour)}, hour=release.hour + 0.1)
    release.change("ash", TAINT)
    assert release.images == HALF | {"bru": "2x4"}, "healthy for an hour, although no run has seen it"
    release.report("bru")
    release.reconcile(wait=1)
    assert release.images == APPROVED | {"bru": "2x4", "cph": "2x4"}
    release.commit(0.1, web=web("3"))
    assert release.images == APPROVED | {"bru": "2x4", "cph": "2x4"}, "another change does not begin without a canary"


@pytest.mark.parametrize(("health", "strategy"), [("Healthy", "minSuccessTime: 2h"), ("Degraded", "minSuccessTime: 0s")])
def test_a_canary_that_was_not_healthy_for_long_enough_fails(fleet: Fleet, health: str, strategy: str) -> None:
    release = Release(fleet, f"{{type: Progressive, progressive: {{{MANDATORY}, {strategy}}}}}")
    release.commit(web=web("2"))
    release.report("ash", health)
    release.change("ash", TAINT)
    assert codes(release.reconcile(wait=9)) == ["rollout-stopped"]
    assert release.images == APPROVED


@pytest.mark.parametrize(
    ("files", "reason", "is_lost"),
    [
        ({"clusters__ash": None}, "its document is removed", True),
        ({"policy": policy(*NAMES[1:])}, "no policy places its workloads there any more", False),
        ({"policy": policy(*NAMES[1:])}, "no policy places its workloads there any more", True),
    ],
    ids=["removed", "not selected", "lost and not selected"],
)
def test_a_canary_that_a_commit_removes_is_skipped(fleet: Fleet, files: dict[str, str | None], reason: str, is_lost: bool) -> None:
    release = Release(fleet, STRATEGIES["mandatory"])
    release.commit(web=web("2"))
    if is_lost:
        release.change("ash", TAINT)
    run = release.commit(**files)
    assert {name: version for name, version in release.images.items() if name != "ash"} == RELEASED
    assert codes(run) == ["rollout-cluster-skipped", "rollout-group-empty"]
    assert [(one.cluster, one.group, one.state, one.detail) for one in run.plan.rollouts[0].clusters][-1] == (
        "ash",
        "",
        "skipped",
        reason,
    )
    for name in NAMES[1:]:
        run = release.report(name)
    assert codes(run) == []
    assert "rollouts" not in fleet.load("gitsched.json")


def find_acceptance(run: Any) -> str:
    (finding,) = (finding for finding in run.plan.findings if finding.code == "rollout-stopped")
    return str(finding.message.split('accept-failures: "')[1].split('"')[0])


def test_an_accepted_loss_is_about_one_change(fleet: Fleet) -> None:
    strategy = STRATEGIES["mandatory"]
    release = Release(fleet, strategy)
    release.commit(web=web("2"))
    old = find_acceptance(release.change("ash", TAINT))
    new = find_acceptance(release.commit(0.1, web=web("3")))
    assert release.images == APPROVED | {"ash": "2x4"}, "what is evicted gets no change any more, and another change starts anew"

    def accept(text: str) -> Any:
        return release.commit(rollout=rollout(strategy, annotations=f"{{gitsched.io/accept-failures: '{text}'}}"))

    assert codes(accept(old)) == ["rollout-stopped", "rollout-acceptance-unused"]
    assert release.images == APPROVED
    assert codes(accept(new)) == []
    assert release.images == dict.fromkeys(NAMES[1:], "3x4")
    for name in NAMES[1:]:
        release.report(name)
    release.commit(web=web("4"))
    assert release.images == dict.fromkeys(NAMES[1:], "3x4"), "the next change stops again"
    release.change("ash")
    assert release.images == dict.fromkeys(NAMES[1:], "3x4") | {"ash": "4x4"}


def test_a_reverted_change_is_over(fleet: Fleet) -> None:
    release = Release(fleet, STRATEGIES["per group"])
    release.commit(web=web("2"))
    release.change("ash", TAINT)
    assert codes(release.commit(web=web("1"))) == []
    assert (release.images, fleet.load("gitsched.json").get("rollouts")) == (APPROVED, None)


def test_replicas_of_a_lost_canary_move_with_the_approved_content(fleet: Fleet) -> None:
    release = Release(fleet, STRATEGIES["mandatory"], weights(ash=2, bru=1, cph=1))
    release.commit(web=web("2"))
    assert release.images == {"ash": "2x2", "bru": "1x1", "cph": "1x1"}
    release.change("ash", TAINT)
    assert release.images == {"ash": "2x2", "bru": "1x2", "cph": "1x2"}
    run = release.change("ash")
    assert release.images == {"bru": "1x2", "cph": "1x2"}, "Karmada divides the replicas as before"
    assert "place the workloads in ash again (gitsched rebalance)" in run.plan.rollouts[0].remedy
    assert codes(release.commit(web=web("2", 8))) == []
    assert release.images == {"ash": "2x4", "bru": "1x2", "cph": "1x2"}, "ash gets the change again, before the others"


@pytest.mark.parametrize(("limit", "released"), [("0", ["bru"]), ("1", ["bru", "cph"]), ("25%", ["bru", "cph"])])
def test_a_lost_cluster_counts_as_a_failure(fleet: Fleet, limit: str, released: list[str]) -> None:
    release = Release(fleet, f"{{type: Progressive, progressive: {{maxConcurrency: 2, maxFailures: {limit}}}}}")
    release.commit(web=web("2"))
    run = release.change("ash", TAINT)
    assert codes(run) == ["rollout-cluster-failed"], "bru is still progressing"
    assert release.images == HALF | dict.fromkeys(released, "2x4")
    for name in ("bru", "cph", "dub"):
        run = release.report(name)
    ended = {"0": ["rollout-stopped"]}.get(limit, ["rollout-cluster-failed"])
    assert codes(run) == ended
    assert list(release.images.values()).count("2x4") == (1 if limit == "0" else 3)


ORDERED = "clusterAffinities: [{affinityName: one, clusterNames: [ash]}, {affinityName: two, clusterNames: [bru]}]"
OVERRIDE = """\
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: mirror, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  overrideRules:
  - targetCluster: {clusterNames: [%s]}
    overriders: {imageOverrider: [{component: Registry, operator: add, value: %s.example.net}]}
"""


def test_the_only_copy_is_replaced_by_what_was_approved(fleet: Fleet) -> None:
    release = Release(fleet, STRATEGIES["mandatory"], ORDERED)
    release.commit(mirror=OVERRIDE % ("ash", "a") + "---\n" + (OVERRIDE % ("bru", "b")).replace("mirror", "other"))
    release.report("ash")
    path = "approved/clusters/ash/default/deployment-web.yaml"
    assert path not in fleet.files()
    release.commit(web=web("2"))
    assert path in fleet.files(), "no cluster has it any more"
    release.change("ash", TAINT)
    assert release.images == {"ash": "2x4", "bru": "1x4"}
    assert "image: 'b.example.net/shop/web:1'" in fleet.read("clusters/bru/default/deployment-web.yaml"), "with what is its own"
    release.commit(web=web("1"))
    assert release.images == {"bru": "1x4"}
    assert path not in fleet.files()


def test_a_field_that_both_the_change_and_an_override_concern_is_a_finding(fleet: Fleet) -> None:
    release = Release(fleet, STRATEGIES["mandatory"], ORDERED)
    tag = (OVERRIDE % ("bru", "tag")).replace("Registry, operator: add", "Tag, operator: replace")
    release.commit(mirror=tag, web=web("2"))
    run = release.change("ash", TAINT)
    (message,) = (one.message for one in run.plan.findings if one.code == "rollout-content-mixed")
    assert "deployment-web.yaml: spec.template.spec.containers[0].image" in message
    assert release.images == {"ash": "2x4", "bru": "1x4"}, "that of ash"


def test_a_workload_that_was_nowhere_waits_with_nothing(fleet: Fleet) -> None:
    release = Release(fleet, STRATEGIES["mandatory"], weights(ash=1, bru=1))
    release.commit(api=web("1").replace("{name: web, namespace", "{name: api, namespace"))
    release.change("ash", TAINT)
    for _ in range(3):
        run = release.reconcile(wait=1)
        assert fleet.delivered("default/deployment-api") == ["ash"], "nothing was approved for bru, and it runs nowhere else"
        assert codes(run) == ["rollout-stopped"]
    release.commit(clusters__ash=None)
    assert "bru" in fleet.delivered("default/deployment-api"), "nothing waits for ash"


def test_a_copy_stays_while_what_replaces_it_waits_for_a_wave(fleet: Fleet) -> None:
    release = Release(fleet, STRATEGIES["mandatory"], weights(ash=1, bru=1, cph=1, dub=1))
    release.change("ash", TAINT)
    release.reconcile(wait=1)
    assert release.images == {"bru": "1x2", "cph": "1x1", "dub": "1x1"}
    for wait in (0, 9):
        run = release.reconcile(wait) if wait else release.commit(policy=policy(*NAMES[:3]))
        assert release.images == {"bru": "1x2", "cph": "1x1", "dub": "1x1"}, "complete copies wait for the canary"
        (message,) = (one.message for one in run.plan.findings if one.code == "copy-retained")
        assert "does not change in bru (2 of 4 replicas), cph (1 of 4 replicas): have the Rollout go on" in message
    release.change("ash")
    assert release.images == {"ash": "1x4", "bru": "1x2", "cph": "1x1", "dub": "1x1"}
    release.report("ash")
    assert release.images == dict.fromkeys(NAMES[:3], "1x4") | {"dub": "1x1"}, "an overlap begins"
    release.reconcile(wait=1)
    assert release.images == dict.fromkeys(NAMES[:3], "1x4")


def test_what_an_evicted_copy_has_is_not_approved(fleet: Fleet) -> None:
    release = Release(
        fleet,
        STRATEGIES["mandatory"],
        "clusterAffinities: [{affinityName: one, clusterNames: [ash]}, "
        "{affinityName: two, clusterNames: [bru]}, {affinityName: three, clusterNames: [cph]}]",
    )
    release.change("bru", stage="canary")
    release.commit(web=web("2"))
    release.commit(web=web("1"), clusters__ash=cluster("ash", TAINT))
    assert release.images == {"ash": "2x4", "bru": "1x4"}
    release.commit(0.1, web=web("3"))
    assert release.images == {"ash": "2x4", "bru": "3x4"}
    release.reconcile(wait=1)
    release.change("bru", TAINT, stage="canary")
    assert release.images == {"bru": "3x4", "cph": "1x4"}


@pytest.mark.parametrize("strategy", ["mandatory", "per group"])
def test_a_change_does_not_begin_while_its_first_group_is_lost(fleet: Fleet, strategy: str) -> None:
    release = Release(fleet, STRATEGIES[strategy])
    release.change("bru", stage="canary")
    release.change("ash", TAINT)
    release.reconcile(wait=1)
    release.commit(web=web("2"))
    assert release.images == APPROVED | {"bru": "2x4"}, "one canary is there"
    run = release.commit(policy=policy("ash", "cph", "dub"))
    assert release.images == {"cph": "1x4", "dub": "1x4"}, "the other one is lost"
    assert "rollout-stopped" in codes(run)
    release.commit(web=web("3"))
    assert release.images == {"cph": "1x4", "dub": "1x4"}
    release.change("ash")
    assert release.images == {"ash": "3x4", "cph": "1x4", "dub": "1x4"}


def test_a_cluster_that_is_not_ready_fails_until_it_is_again(fleet: Fleet) -> None:
    release = Release(fleet, STRATEGIES["mandatory"])
    release.commit(gitsched=SETTINGS.replace("  karmada: {failover: cluster}\n", ""), web=web("2"))
    run = release.change("ash", more=NOT_READY)
    assert (release.images, codes(run)) == (HALF, ["rollout-stopped"])
    assert "it is not ready" in run.plan.rollouts[0].clusters[0].detail
    run = release.change("ash")
    assert (release.images, codes(run), run.plan.rollouts[0].waits_for) == (HALF, [], "reports of ash")
    release.report("ash")
    assert release.images == RELEASED | {"ash": "2x4"}


SHIFT = policy(placement=weights(ash=1, bru=3))


def test_a_shift_of_replicas_away_from_the_canary_does_not_skip_it(fleet: Fleet) -> None:
    release = Release(fleet, STRATEGIES["one by one"], weights(ash=3, bru=1))
    run = release.commit(web=web("2"), policy=SHIFT)
    assert release.images == {"ash": "1x3", "bru": "1x3"}, "replicas move at once, and stay in ash for the overlap"
    assert run.plan.rollouts[0].waits_for == "the overlap in ash"
    run = release.reconcile(wait=7)
    assert release.images == {"ash": "2x1", "bru": "1x3"}
    assert codes(run) == [], "the deadline counts from now"
    release.report("ash")
    assert release.images == {"ash": "2x1", "bru": "2x3"}


def test_replicas_alone_do_not_wait(fleet: Fleet) -> None:
    release = Release(fleet, STRATEGIES["one by one"], weights(ash=3, bru=1))
    run = release.commit(policy=SHIFT)
    assert (release.images, run.plan.rollouts) == ({"ash": "1x3", "bru": "1x3"}, ())
    release.commit(web=web("2"))
    release.commit(web=web("2", 8))
    assert release.images == {"ash": "2x2", "bru": "1x6"}, "they change while the content waits"


SUSPENDED = policy() + "  suspension: {dispatchingOnClusters: {clusterNames: [ash]}}\n"


@pytest.mark.parametrize("strategy", list_variants(["mandatory", "per group"], {"mandatory"}))
@pytest.mark.parametrize(
    ("blocks", "frees"),
    [({"policy": SUSPENDED}, {"policy": policy()}), ({"fails": FAILING.replace("bru", "ash")}, {"fails": None})],
    ids=["suspended", "failing override"],
)
def test_a_canary_whose_manifest_does_not_change_is_not_skipped(
    fleet: Fleet, strategy: str, blocks: dict[str, str | None], frees: dict[str, str | None]
) -> None:
    release = Release(fleet, STRATEGIES[strategy])
    run = release.commit(**blocks)
    assert (codes(run), run.plan.rollouts) == ([], ()), "nothing changes"
    for number in ("2", "3"):
        run = release.commit(web=web(number))
        assert release.images == dict.fromkeys(NAMES, "1x4")
        assert codes(run) == ["rollout-blocked"]
        assert run.plan.rollouts[0].waits_for == "ash, where the manifest does not change"
    release.reconcile(wait=9)
    assert release.images == dict.fromkeys(NAMES, "1x4")
    run = release.commit(**frees)
    assert (release.images, codes(run)) == (APPROVED | {"ash": "3x4"}, [])
    release.commit(**blocks)
    release.commit(0.1, web=web("4"))
    release.report("ash")
    assert release.images == APPROVED | {"ash": "3x4"}, "its report is about an earlier change"
    release.commit(0.1, web=web("3"), **frees)
    release.report("ash")
    assert release.images == dict.fromkeys(NAMES, "3x4")


@pytest.mark.parametrize(
    "blocks", [{"policy": SUSPENDED}, {"fails": FAILING.replace("bru", "ash")}], ids=["suspended", "failing override"]
)
def test_what_a_lost_canary_reported_of_an_earlier_change_releases_no_later_one(
    fleet: Fleet, blocks: dict[str, str | None]
) -> None:
    release = Release(fleet, STRATEGIES["mandatory"])
    release.commit(web=web("2"))
    release.commit(web=web("3"), **blocks)
    release.report("ash")
    assert release.images == APPROVED | {"ash": "2x4"}
    for run in (release.change("ash", TAINT), release.reconcile(wait=3)):
        others = {name: version for name, version in release.images.items() if name != "ash"}
        assert others == {name: version for name, version in APPROVED.items() if name != "ash"}
        assert run.plan.rollouts[0].state == "stopped"


def test_nothing_waits_for_another_cluster_whose_manifest_does_not_change(fleet: Fleet) -> None:
    release = Release(fleet, STRATEGIES["one by one"])
    release.commit(policy=SUSPENDED.replace("[ash]", "[bru]"), web=web("2"))
    release.report("ash")
    release.report("cph")
    assert release.images == {"ash": "2x4", "bru": "1x4", "cph": "2x4", "dub": "2x4"}


@pytest.mark.parametrize(
    ("keeps", "frees"),
    [
        ({"policy": policy(placement=ORDERED) + "  suspension: {dispatching: true}\n"}, {"policy": policy(placement=ORDERED)}),
        ({"fails": FAILING}, {"fails": None}),
        ({"gitsched": SETTINGS + "    freeze: audit\n", "web": web("2", 0)}, {"gitsched": SETTINGS, "web": web("2")}),
    ],
    ids=["suspended", "failing override", "frozen"],
)
def test_a_lost_canary_is_not_forgotten_while_the_manifest_of_another_cluster_does_not_change(
    fleet: Fleet, keeps: dict[str, str | None], frees: dict[str, str | None]
) -> None:
    release = Release(fleet, STRATEGIES["mandatory"], ORDERED)
    release.commit(web=web("2"))
    release.change("ash", TAINT)
    release.reconcile(wait=1)
    assert release.images == {"bru": "1x4"}
    for files in (keeps, frees, {"note": "# nothing\n"}):
        run = release.commit(**files)
        assert release.images == {"bru": "1x4"}
        assert "rollout-stopped" in codes(run)
