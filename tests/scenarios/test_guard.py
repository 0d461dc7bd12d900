"""The guard withholds changes over its limits, commits all others, and lets exactly these changes pass when they are allowed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gitsched.cli.exit_codes import get_review_code
from gitsched.decide.guard.change_owners import choose_withheld_owners
from gitsched.decide.guard.scope_sizes import MeasuredAmount
from gitsched.reconcile import RunResult, reconcile
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.reconcile.run import make_review
from gitsched.report.fleet_status import write_fleet_status
from gitsched.report.text import write_plan, write_run
from tests.builders.ocm import managed_cluster, to_yaml

from .conftest import Fleet, allow_withheld, cluster, deployment, policy
from .histories import APPLICATION, FOLLOWER, PLACEMENT, SITE
from .test_rollouts import SETS, managed, replica_set

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: default}\n"
DOUBTED = ("2 of 3 clusters are not ready by reported facts alone, as if these were no longer collected (limit: 50 %)",)
SETTINGS = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {{name: gitsched}}\nspec: {{{}}}\n"


def fill(fleet: Fleet, doomed: int, safe: int, groups: tuple[str, ...] = ("first",)) -> None:
    """Place the given numbers of Deployments on `first` (by label, with other groups to fall back on) and on `second`."""
    files = {
        f"{kind}/{n}.yaml": labelled(f"{kind}-{n}", kind)
        for kind, count in (("doomed", doomed), ("safe", safe))
        for n in range(count)
    }
    files |= {"doomed.yaml": select("doomed", *groups), "safe.yaml": select("safe", "second")}
    fleet.commit({**files, "clusters/first.yaml": cluster("first"), "clusters/second.yaml": cluster("second")})
    fleet.reconcile()
    assert len(on(fleet, "first")) == doomed


def labelled(name: str, label: str) -> str:
    return deployment(name).replace("  namespace:", f"  labels: {{app: {label}}}\n  namespace:")


def select(label: str, *groups: str) -> str:
    plain = policy(*groups, name=label)
    return plain.replace("kind: Deployment}", f"kind: Deployment, labelSelector: {{matchLabels: {{app: {label}}}}}}}")


def on(fleet: Fleet, name: str) -> list[str]:
    return [path for path in fleet.files() if path.startswith(f"clusters/{name}/default/deployment-")]


NOWHERE = {"doomed.yaml": select("doomed", "nowhere")}


def withheld(run: RunResult) -> tuple[str, ...]:
    return tuple(map(str, run.plan.withheld.limits))


def test_removals_over_a_limit_are_withheld_and_everything_else_is_committed(fleet: Fleet) -> None:
    fill(fleet, doomed=11, safe=5)
    new = {
        **NOWHERE,
        "safe/0.yaml": labelled("safe-0", "safe").replace("replicas: 2", "replicas: 3"),
        "new.yaml": labelled("new", "safe"),
    }
    fleet.commit(new, hour=1)
    planned = fleet.preview(1)
    run = fleet.reconcile(1)
    assert (
        withheld(run)
        == withheld(planned)
        == (
            "11 of 16 workloads would be removed from the fleet (limit: 20 %)",
            "11 of 16 workloads would be removed from namespace default (limit: 50 %)",
            "11 of 11 workloads would leave cluster first (limit: 90 %)",
        )
    )
    assert (run.refused, run.after, len(on(fleet, "first"))) == ("", fleet.head, 11)
    assert "clusters/second/default/deployment-new.yaml" in fleet.files()
    assert len(planned.plan.moves) == 13, "a plan shows what would move, a run only what moved"
    assert [move.key.name for move in run.plan.moves] == ["new", "safe-0"]
    again = fleet.reconcile(2)
    assert (again.changed, again.plan.withheld.digest) == (False, run.plan.withheld.digest)


@pytest.mark.parametrize(
    ("edit", "limit"),
    [
        pytest.param(lambda: {"doomed.yaml": None}, "removed from the fleet", id="the policy is deleted"),
        pytest.param(lambda: {"doomed.yaml": select("domed", "first")}, "removed from the fleet", id="its selector is mistyped"),
        pytest.param(
            lambda: {f"doomed/{n}.yaml": None for n in range(12)}, "removed from the fleet", id="the documents are deleted"
        ),
        pytest.param(
            lambda: {"gitsched.yaml": SETTINGS.format("source: {paths: [safe, clusters, safe.yaml, doomed.yaml]}")},
            "removed from the fleet",
            id="the path is left out",
        ),
        pytest.param(lambda: {"doomed.yaml": select("doomed", "second")}, "move in the fleet", id="its group is another cluster"),
        pytest.param(lambda: {"clusters/first.yaml": None}, "move in the fleet", id="the cluster is deleted"),
        pytest.param(
            lambda: {
                f"doomed/{n}.yaml": labelled(f"doomed-{n}", "doomed").replace("replicas: 2", "replicas: 9") for n in range(12)
            },
            "the fleet would get 84 more replicas, it has 32",
            id="replicas are added",
        ),
    ],
)
def test_likely_mistakes_are_withheld(fleet: Fleet, edit: Callable[[], dict[str, str | None]], limit: str) -> None:
    fill(fleet, doomed=12, safe=4, groups=("first", "second"))
    before = fleet.files()
    fleet.commit(edit(), hour=1)
    run = fleet.reconcile(1)
    assert any(limit in text for text in withheld(run)), withheld(run)
    after = fleet.files()
    assert {path: after.get(path) for path in before if path.startswith("clusters/first/default/")} == {
        path: blob for path, blob in before.items() if path.startswith("clusters/first/default/")
    }
    assert withheld(fleet.reconcile(30)) == withheld(run), "a day later nothing has retired"
    assert len(on(fleet, "first")) == 12
    fleet.commit({}, hour=31, message=f"As meant\n\nGitsched-Allow: {run.plan.withheld.digest}")
    fleet.commit({}, hour=32)
    allowed = fleet.reconcile(32)
    assert (withheld(allowed), allowed.after) == ((), fleet.head)


@pytest.mark.parametrize(
    ("doomed", "safe", "removed"),
    [
        pytest.param(3, 0, 3, id="all of a namespace of three"),
        pytest.param(4, 3, 3, id="three of seven"),
        pytest.param(10, 0, 9, id="nine of ten"),
        pytest.param(30, 30, 12, id="a fifth of the fleet, of one cluster less than half"),
    ],
)
def test_changes_within_the_limits_pass(fleet: Fleet, doomed: int, safe: int, removed: int) -> None:
    fill(fleet, doomed, safe)
    fleet.commit({f"doomed/{n}.yaml": None for n in range(removed)}, hour=1)
    run = fleet.reconcile(1)
    assert (withheld(run), run.after, len(on(fleet, "first"))) == ((), fleet.head, doomed - removed)


@pytest.mark.parametrize("complete", [False, True])
def test_a_comparison_names_apart_what_is_withheld_in_its_base(fleet: Fleet, complete: bool) -> None:
    """Numbers and limits are those of the change, and what the digest allows besides is named."""
    fill(fleet, doomed=11, safe=9)
    base = fleet.commit(NOWHERE, hour=1)
    fleet.reconcile(1)
    fleet.commit({f"safe/{n}.yaml": None for n in range(4)}, hour=2)
    review = compare_plans(fleet.settings(2), base, complete=complete).review
    assert len(review.withheld.moves) == 4
    assert {move.key.name.partition("-")[0] for move in review.withheld.of_base} == {"doomed"}
    assert list(map(str, review.withheld.limits)) == [
        "15 of 20 workloads would be removed from the fleet (limit: 20 %)",
        "15 of 20 workloads would be removed from namespace default (limit: 50 %)",
    ], "not the limit of the cluster, which the base exceeds alone"
    text = " ".join(write_plan(review, 100).split())
    assert "replicas removed (withheld): 8 " in text
    assert "unplaced workloads" not in text
    assert f"withholds 11 changes of {base} as well: Deployment default/doomed-0, " in text
    assert "To allow exactly these and the 11 changes of the base, add the trailer" in text
    restored = {f"safe/{n}.yaml": labelled(f"safe-{n}", "safe") for n in range(4)}
    fleet.commit({**restored, "new.yaml": labelled("new", "safe")}, hour=3)
    other = compare_plans(fleet.settings(3), base, complete=complete).review
    assert (other.withheld.moves, len(other.withheld.of_base)) == ((), 11)
    assert get_review_code(other, "error") == 0


def test_exactly_these_changes_are_allowed_by_an_option(fleet: Fleet) -> None:
    fill(fleet, doomed=11, safe=5)
    fleet.commit(NOWHERE, hour=1)
    digest = fleet.reconcile(1).plan.withheld.digest
    assert fleet.preview(1, allowed=("0" * 16,)).plan.withheld.digest == digest
    run = fleet.reconcile(1, allowed=("0" * 16, digest))
    assert (withheld(run), run.after, len(run.plan.moves)) == ((), fleet.head, 11)
    fill(fleet, doomed=12, safe=5)
    fleet.commit(NOWHERE, hour=3)
    assert fleet.reconcile(3, allowed=(digest,)).plan.withheld.moves, "the allowance was for eleven workloads"


@pytest.mark.parametrize(
    ("message", "passes"),
    [
        pytest.param("Close the first site\n\nGitsched-Allow: {}", True, id="a trailer"),
        pytest.param("Gitsched-Allow: {} is how\n\nwe would allow it.", False, id="a sentence is no trailer"),
        pytest.param("Close the first site\n\nGitsched-Allow: true", False, id="not everything at once"),
    ],
)
def test_a_trailer_allows_changes(fleet: Fleet, message: str, passes: bool) -> None:
    fill(fleet, doomed=11, safe=5)
    fleet.commit(NOWHERE, hour=1)
    digest = fleet.preview(1).plan.withheld.digest
    fleet.commit({}, hour=1, message=message.format(digest))
    assert (not fleet.reconcile(1).plan.withheld.moves) is passes


def test_failover_passes_but_a_workload_is_not_removed_from_its_last_cluster(fleet: Fleet) -> None:
    fill(fleet, doomed=12, safe=0, groups=("first", "second"))
    fleet.commit({"clusters/first.yaml": cluster("first", "power:NoExecute")}, hour=1)
    assert withheld(fleet.reconcile(1)) == ()
    assert len(on(fleet, "second")) == 12
    fleet.commit({"clusters/second.yaml": cluster("second", "power:NoExecute")}, hour=2)
    for hour in (2, 4):
        assert withheld(fleet.reconcile(hour))
        assert len(on(fleet, "second")) == 12


def test_a_freeze_withholds_every_change_of_placed_workloads_but_failover(fleet: Fleet) -> None:
    fill(fleet, doomed=2, safe=2, groups=("first", "second"))
    frozen = {"gitsched.yaml": SETTINGS.format("guard: {freeze: migration of the network}")}
    fleet.commit({**frozen, "safe/0.yaml": None, "new.yaml": labelled("new", "safe")}, hour=1)
    run = fleet.reconcile(1)
    assert (run.plan.withheld.freeze, [move.key.name for move in run.plan.withheld.moves]) == (
        "migration of the network",
        ["safe-0"],
    )
    assert {f"clusters/second/default/deployment-{name}.yaml" for name in ("safe-0", "new")} <= fleet.files().keys()
    fleet.commit({"clusters/first.yaml": cluster("first", "power:NoExecute")}, hour=2)
    fleet.reconcile(2)
    assert "clusters/second/default/deployment-doomed-0.yaml" in fleet.files()
    fleet.commit({"gitsched.yaml": None}, hour=3)
    fleet.reconcile(3)
    assert "clusters/second/default/deployment-safe-0.yaml" not in fleet.files()


def test_the_namespace_of_withheld_workloads_stays_as_it_is(fleet: Fleet) -> None:
    """Its labels have a meaning for what stays, such as the security of its pods. It goes with the last workload."""
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n  labels: {pods: restricted}\n"
    workloads = {f"apps/{n}.yaml": deployment(f"web-{n}").replace("default", "shop") for n in range(12)}
    files = {**workloads, "policy.yaml": policy("first").replace("default", "shop"), "namespace.yaml": namespace}
    fleet.commit({**files, "clusters/first.yaml": cluster("first"), "clusters/second.yaml": cluster("second")})
    fleet.reconcile()
    path = next(name for name in fleet.files() if name.startswith("clusters/first/") and "namespace-shop" in name)
    delivered = fleet.files()[path]
    assert "pods: restricted" in fleet.read(path)
    fleet.commit({**dict.fromkeys(workloads), "namespace.yaml": None}, hour=1)
    run = fleet.reconcile(1)
    assert (len(run.plan.withheld.moves), fleet.files()[path]) == (12, delivered)
    fleet.commit({"clusters/second.yaml": cluster("second").replace("name: second", "name: other")}, hour=2)
    again = fleet.reconcile(2, verify=True)
    assert (again.changed, fleet.files()[path]) == (True, delivered)
    fleet.reconcile(3, allowed=(again.plan.withheld.digest,))
    assert path not in fleet.files()


def test_applications_of_krake_keep_their_objects(fleet: Fleet) -> None:
    """An application has other objects than itself: the record lists them, also after its document is deleted."""
    apps = {f"app-{n}.yaml": APPLICATION.replace("echo", f"echo-{n}") % 2 for n in range(5)}
    fleet.commit({**apps, "ash.yaml": SITE % "ash"})
    fleet.reconcile()
    objects = [path for path in fleet.files() if path.startswith("clusters/tenant.ash/shop/deployment-echo-")]
    fleet.commit(dict.fromkeys(apps), hour=1)
    run = fleet.reconcile(1)
    assert (len(objects), withheld(run)[0]) == (5, "5 of 5 workloads would be removed from the fleet (limit: 20 %)")
    assert set(objects) <= fleet.files().keys()
    fleet.reconcile(2, allowed=(run.plan.withheld.digest,))
    assert not set(objects) & fleet.files().keys()


def test_workloads_of_a_placement_keep_their_clusters(fleet: Fleet) -> None:
    followers = {f"map-{n}.yaml": FOLLOWER % (f"map-{n}", "everywhere", 1) for n in range(12)}
    files = {f"{name}.yaml": managed(name, "x") for name in ("ash", "bru")} | {"sets.yaml": SETS}
    fleet.commit({**files, **followers, "placement.yaml": PLACEMENT % (2, 1)})
    fleet.reconcile()
    assert {len(fleet.where(f"shop/configmap-map-{n}")) for n in range(12)} == {2}
    fleet.commit({"placement.yaml": None}, hour=1)
    run = fleet.reconcile(1)
    assert "12 of 12 workloads would be removed from the fleet (limit: 20 %)" in withheld(run)
    assert {len(fleet.where(f"shop/configmap-map-{n}")) for n in range(12)} == {2}
    fleet.commit({**dict.fromkeys(followers), "placement.yaml": PLACEMENT % (2, 1)}, hour=2)
    assert "12 of 12 workloads would be removed from the fleet (limit: 20 %)" in withheld(fleet.reconcile(2))
    assert {len(fleet.where(f"shop/configmap-map-{n}")) for n in range(12)} == {2}


def test_a_set_of_manifests_keeps_its_objects(fleet: Fleet) -> None:
    """A removed ManifestWorkReplicaSet has no document that says which Placements it follows."""
    files = {f"{name}.yaml": managed(name, "x") for name in ("ash", "bru")} | {"sets.yaml": SETS}
    followers = {f"map-{n}.yaml": FOLLOWER % (f"map-{n}", "everywhere", 1) for n in range(12)}
    fleet.commit({**files, **followers, "placement.yaml": PLACEMENT % (2, 1), "works.yaml": replica_set("red", "{type: All}")})
    fleet.reconcile()
    gone = {"works.yaml": None, **dict.fromkeys(list(followers)[:3])}
    fleet.commit(gone, hour=1)
    run = fleet.reconcile(1)
    assert withheld(run)[0] == "4 of 13 workloads would be removed from the fleet (limit: 20 %)"
    assert fleet.delivered("web/configmap-settings") == ["ash", "bru"]
    fleet.reconcile(2, allowed=(run.plan.withheld.digest,))
    assert fleet.delivered("web/configmap-settings") == []


def test_bundles_keep_their_objects(fleet: Fleet) -> None:
    """A Bundle has several objects in a cluster: all stay, also if the Bundle, its policy or its variant is removed."""
    bundle = "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: %s, namespace: default}\nspec: {path: %s}\n"
    files = {
        f"{name}/{kind}.yaml": content for name in "abcd" for kind, content in (("map", MAP % name), ("web", deployment(name)))
    }
    files |= {f"bundle-{name}.yaml": bundle % (name, name) for name in "abcd"}
    chosen = policy("first", kind="Bundle").replace("apps/v1", "gitsched.io/v1alpha1")
    fleet.commit({**files, "policy.yaml": chosen, "first.yaml": cluster("first"), "second.yaml": cluster("second")})
    fleet.reconcile()
    objects = {path: blob for path, blob in fleet.files().items() if path.startswith("clusters/first/default/")}
    assert len(objects) == 8
    edits = [{f"bundle-{name}.yaml": None for name in "abcd"}, {"policy.yaml": None}, {path: None for path in files if "/" in path}]
    for hour, edit in enumerate(edits, 1):
        fleet.commit(edit, hour=hour)
        run = fleet.reconcile(hour)
        assert objects.items() <= fleet.files().items(), edit
        assert "4 of 4 workloads would be removed from the fleet (limit: 20 %)" in withheld(run)
    fleet.reconcile(4, allowed=(run.plan.withheld.digest,))
    assert not objects.keys() & fleet.files().keys()


def ready(name: str, status: str, *taints: str) -> str:
    return f'{cluster(name, *taints)}status:\n  conditions:\n  - {{type: Ready, status: "{status}"}}\n'


def place_one_on_each(fleet: Fleet, clusters: int) -> None:
    """Place a workload on each of some clusters, with any other one to fall back on."""
    settings = SETTINGS.format("karmada: {failover: cluster}")
    files = {f"clusters/{n}.yaml": ready(f"c{n}", "True") for n in range(clusters)} | {"gitsched.yaml": settings}
    for n in range(clusters):
        files |= {f"{n}.yaml": labelled(f"w{n}", f"w{n}"), f"policy-{n}.yaml": select(f"w{n}", f"c{n}", "")}
    fleet.commit(files)
    fleet.reconcile()
    assert all(fleet.where(f"default/deployment-w{n}") == [f"c{n}"] for n in range(clusters))


def report(status: str, numbers: range, *taints: str) -> dict[str, str | None]:
    return {f"clusters/{n}.yaml": ready(f"c{n}", status, *taints) for n in numbers}


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_failover_is_withheld_if_facts_alone_make_most_clusters_unready(fleet: Fleet, status: str) -> None:
    place_one_on_each(fleet, 6)
    fleet.commit(report(status, range(4)), hour=1)
    for hour in (1, 3):
        run = fleet.reconcile(hour)
        assert withheld(run) == (
            "4 of 6 clusters are not ready by reported facts alone, as if these were no longer collected (limit: 50 %)",
        )
        assert all(f"c{n}" in fleet.where(f"default/deployment-w{n}") for n in range(6))
    assert [finding.severity for finding in run.plan.findings if finding.code == "changes-withheld"] == ["error"]
    fleet.reconcile(3, allowed=(run.plan.withheld.digest,))
    fleet.reconcile(5)
    assert not any(f"c{n}" in fleet.where(f"default/deployment-w{n}") for n in range(4))


def test_few_that_follow_suspected_facts_are_withheld_with_what_no_cluster_can_take(fleet: Fleet) -> None:
    """Most workloads tolerate that their cluster is not ready, one has no other cluster, and one goes to another one."""
    place_one_on_each(fleet, 6)
    tolerant = (
        select("w0", "c0", "").rstrip().replace("  placement:\n", "  placement:\n    clusterTolerations: [{operator: Exists}]\n")
    )
    bound = {f"policy-{n}.yaml": tolerant.replace("w0", f"w{n}").replace("[c0]", f"[c{n}]") for n in range(3)}
    fleet.commit({**bound, "policy-3.yaml": select("w3", "c3")}, hour=1)
    fleet.reconcile(1)
    fleet.commit(report("False", range(5)), hour=2)
    for hour in (2, 4):
        run = fleet.reconcile(hour)
        assert withheld(run) == (
            "5 of 6 clusters are not ready by reported facts alone, as if these were no longer collected (limit: 50 %)",
        )
        assert [move.key.name for move in run.plan.withheld.moves] == ["w3", "w4"]
        assert all(fleet.where(f"default/deployment-w{n}") == [f"c{n}"] for n in range(6))


WIDE = (
    "guard: {fleet: {removed: 100, moved: 100, replicasLost: 100, replicasAdded: 100000}, namespace: {removed: 100}, "
    "cluster: {removed: 100}}, karmada: {failover: cluster}"
)


@pytest.mark.parametrize("taint", [("drain:NoExecute",), ()], ids=["a drain", "a changed policy"])
def test_what_follows_suspected_facts_is_withheld_beside_what_people_change(fleet: Fleet, taint: tuple[str, ...]) -> None:
    files = {f"clusters/{n}.yaml": ready(f"c{n}", "True") for n in range(7)} | {"gitsched.yaml": SETTINGS.format(WIDE)}
    files |= {f"{n}.yaml": labelled(f"w{n}", "all") for n in range(3)}
    fleet.commit({**files, "policy.yaml": select("all", "c0, c1, c2, c3, c4, c5")})
    fleet.reconcile()
    fleet.commit(report("False", range(4)), hour=1)
    assert len(withheld(fleet.reconcile(1))) == 1
    assert "gitsched drain" not in write_fleet_status(read_fleet_status(fleet.settings(1)))
    drained = (
        {"clusters/5.yaml": ready("c5", "True", *taint)} if taint else {"policy.yaml": select("all", "c0, c1, c2, c3, c4, c6")}
    )
    fleet.commit(drained, hour=2)
    for hour in (2, 4):
        run = fleet.reconcile(hour)
        assert withheld(run) == (
            "4 of 7 clusters are not ready by reported facts alone, as if these were no longer collected (limit: 50 %)",
        )
        assert all({"c0", "c1", "c2", "c3"} <= set(fleet.where(f"default/deployment-w{n}")) for n in range(3))


def test_failover_resumes_when_the_collector_reports_again(fleet: Fleet) -> None:
    place_one_on_each(fleet, 6)
    fleet.commit(report("Unknown", range(6)), hour=1)
    fleet.reconcile(1)
    fleet.commit({**report("True", range(6)), **report("False", range(1))}, hour=2)
    assert withheld(fleet.reconcile(2)) == ()
    fleet.reconcile(4)
    assert "c0" not in fleet.where("default/deployment-w0")
    assert all(fleet.where(f"default/deployment-w{n}") == [f"c{n}"] for n in range(1, 6))


@pytest.mark.parametrize(
    ("edits", "setting"),
    [
        pytest.param(report("False", range(3)), "", id="half of the clusters"),
        pytest.param(report("True", range(4), "power:NoExecute"), "", id="taints that a person commits"),
        pytest.param(report("False", range(4)), "guard: {fleet: {clustersUnready: 70}}, ", id="within a wider limit"),
    ],
)
def test_other_failover_passes(fleet: Fleet, edits: dict[str, str | None], setting: str) -> None:
    place_one_on_each(fleet, 6)
    fleet.commit({"gitsched.yaml": SETTINGS.format(f"{setting}karmada: {{failover: cluster}}")}, hour=1)
    fleet.reconcile(1)
    fleet.commit(edits, hour=2)
    assert withheld(fleet.reconcile(2)) == ()
    fleet.reconcile(4)
    assert not any(f"c{n}" in fleet.where(f"default/deployment-w{n}") for n in range(len(edits)))


def choose_stage(stage: str) -> str:
    selector = f"requiredClusterSelector: {{labelSelector: {{matchLabels: {{stage: {stage}}}}}}}"
    head = PLACEMENT.partition("  numberOfClusters")[0]
    return f"{head}  predicates: [{{{selector}}}]\n"


def placement_records(fleet: Fleet) -> dict[str, str]:
    return {path: blob for path, blob in fleet.files().items() if path.startswith(("status/cluster.open", "status/gitsched.io"))}


def follow_placement(fleet: Fleet, followers: dict[str, str | None], settings: str = "") -> None:
    """Place ConfigMaps by a Placement on `ash`."""
    files = {"ash.yaml": managed("ash", "prod"), "bru.yaml": managed("bru", "test"), "sets.yaml": SETS} | followers
    files |= {"gitsched.yaml": SETTINGS.format(settings)} if settings else {}
    fleet.commit({**files, "placement.yaml": choose_stage("prod")})
    fleet.reconcile()
    assert fleet.where("shop/configmap-map-0") == ["ash"]


@pytest.mark.parametrize("edit", [choose_stage("test"), None], ids=["other clusters", "no Placement"])
def test_the_record_of_a_placement_stays_with_its_workloads(fleet: Fleet, edit: str | None) -> None:
    follow_placement(fleet, {f"map-{n}.yaml": FOLLOWER % (f"map-{n}", "everywhere", 1) for n in range(12)})
    before = placement_records(fleet)
    assert any("placementdecision" in path for path in before)
    fleet.commit({"placement.yaml": edit, "new.yaml": MAP % "other"}, hour=1)
    for hour in (1, 2):
        run = fleet.reconcile(hour)
        assert len(run.plan.withheld.moves) == 12
        assert (run.record_changes, placement_records(fleet)) == ((), before)
    fleet.reconcile(2, allowed=(run.plan.withheld.digest,))
    assert placement_records(fleet) != before
    assert fleet.reconcile(20).plan.withheld.moves == ()
    assert fleet.where("shop/configmap-map-0") == (["bru"] if edit else [])


def test_all_workloads_of_a_placement_are_withheld_together(fleet: Fleet) -> None:
    """The limit is that of one namespace, and workloads of another one follow the same Placement."""
    maps: dict[str, str | None] = {f"map-{n}.yaml": FOLLOWER % (f"map-{n}", "everywhere", 1) for n in range(12)}
    side = FOLLOWER.replace("namespace: shop", "namespace: side") % ("extra", "shop/everywhere", 1)
    limits = "guard: {fleet: {moved: 100}, cluster: {removed: 100}, namespace: {moved: 10, removed: 100}}"
    follow_placement(fleet, {**maps, "side.yaml": side}, limits)
    before = placement_records(fleet)
    fleet.commit({"placement.yaml": choose_stage("test")}, hour=1)
    run = fleet.reconcile(1)
    assert withheld(run) == ("12 of 12 workloads would move in namespace shop (limit: 10 %)",)
    assert (len(run.plan.withheld.moves), placement_records(fleet)) == (13, before)
    assert fleet.where("side/configmap-extra") == ["ash"]
    fleet.reconcile(1, allowed=(run.plan.withheld.digest,))
    assert placement_records(fleet) != before


@pytest.mark.parametrize(
    ("unavailable", "passes"),
    [
        pytest.param({"conditions": [{"type": "ManagedClusterConditionAvailable", "status": "Unknown"}]}, False, id="a condition"),
        pytest.param({}, True, id="a taint that a person commits"),
    ],
)
def test_facts_about_managed_clusters_are_doubted_in_the_same_way(
    fleet: Fleet, unavailable: dict[str, object], passes: bool
) -> None:
    def write_cluster(name: str, lost: bool) -> str:
        body = managed_cluster(name, {"stage": "prod"}, [] if unavailable or not lost else [{"key": "power", "effect": "NoSelect"}])
        return to_yaml({**body, "status": unavailable} if lost else body)

    names = ("ash", "bru", "cph")
    placement = PLACEMENT.partition("  numberOfClusters")[0] + "  numberOfClusters: 1\n"
    files = {f"{name}.yaml": write_cluster(name, False) for name in names} | {"sets.yaml": SETS, "placement.yaml": placement}
    fleet.commit({**files, "map.yaml": FOLLOWER % ("map", "everywhere", 1)})
    fleet.reconcile()
    assert fleet.where("shop/configmap-map") == ["ash"]
    fleet.commit({f"{name}.yaml": write_cluster(name, True) for name in names[:2]}, hour=1)
    assert withheld(fleet.reconcile(1)) == (() if passes else DOUBTED)
    fleet.reconcile(3)
    assert fleet.where("shop/configmap-map") == (["cph"] if passes else ["ash"])


def test_facts_about_clusters_of_krake_are_doubted_in_the_same_way(fleet: Fleet) -> None:
    sites = {f"{name}.yaml": SITE % name for name in ("ash", "bru", "cph")}
    fleet.commit({"app.yaml": APPLICATION % 2, **sites})
    fleet.reconcile()
    (chosen,) = fleet.where("shop/deployment-echo")
    others = [name for name in ("ash", "bru", "cph") if f"tenant.{name}" != chosen]
    lost = (chosen.removeprefix("tenant."), others[0])
    fleet.commit({f"{name}.yaml": sites[f"{name}.yaml"].replace("ONLINE", "OFFLINE") for name in lost}, hour=1)
    run = fleet.reconcile(1)
    assert withheld(run) == DOUBTED
    assert fleet.where("shop/deployment-echo") == [chosen]


def rename(count: int, label: str, replicas: int = 2) -> dict[str, str | None]:
    """Rename the doomed Deployments."""
    text = "  namespace: default\n  annotations: {{gitsched.io/renamed-from: default/doomed-{}}}\n"
    files: dict[str, str | None] = {f"doomed/{n}.yaml": None for n in range(count)}
    for n in range(count):
        named = labelled(f"renamed-{n}", label).replace("replicas: 2", f"replicas: {replicas}")
        files[f"renamed/{n}.yaml"] = named.replace("  namespace: default\n", text.format(n))
    return files


def test_renamed_workloads_do_not_count_as_removed(fleet: Fleet) -> None:
    fill(fleet, doomed=12, safe=4)
    fleet.commit(rename(12, "doomed"), hour=1)
    run = fleet.reconcile(1)
    assert withheld(run) == ()
    assert len(on(fleet, "first")) == 24, "both run until the overlap ends"
    fleet.reconcile(2)
    assert sorted(path.rpartition("-")[0] for path in on(fleet, "first")) == ["clusters/first/default/deployment-renamed"] * 12


@pytest.mark.parametrize(
    ("label", "replicas", "limits"),
    [
        ("domed", 2, ("12 of 16 workloads would be removed from the fleet (limit: 20 %)",)),
        ("safe", 2, ("12 of 16 workloads would move in the fleet (limit: 30 %)",)),
        ("doomed", 1, ("the fleet would lose 12 replicas, it has 32 (limit: 30 %)",)),
    ],
    ids=["selected by nothing", "in another cluster", "with fewer replicas"],
)
def test_renamed_workloads_count_for_what_they_lose(fleet: Fleet, label: str, replicas: int, limits: tuple[str, ...]) -> None:
    fill(fleet, doomed=12, safe=4)
    fleet.commit(rename(12, label, replicas), hour=1)
    run = fleet.reconcile(1)
    assert withheld(run)[:1] == limits
    assert len([path for path in on(fleet, "first") if "doomed" in path]) == 12
    again = fleet.reconcile(2)
    assert (again.plan.withheld.digest, again.changed) == (run.plan.withheld.digest, False)
    fleet.reconcile(3, allowed=(run.plan.withheld.digest,))
    fleet.reconcile(4)
    assert not [path for path in on(fleet, "first") if "doomed" in path]


def team(name: str, count: int) -> dict[str, str]:
    """Deployments of a namespace, and the policy that places them on `first`."""
    files = {f"{name}/{n}.yaml": deployment(f"{name}-{n}", namespace=name) for n in range(count)}
    return {**files, f"{name}.yaml": policy("first", name=name).replace("namespace: default", f"namespace: {name}")}


def owned(name: str) -> str:
    return f"""\
apiVersion: gitsched.io/v1alpha1
kind: Tenant
metadata: {{name: {name}}}
spec: {{paths: [{name}], namespaces: [{name}]}}
"""


def remove(name: str, *numbers: int) -> dict[str, None]:
    return {f"{name}/{n}.yaml": None for n in numbers}


@pytest.mark.parametrize("tenants", [False, True], ids=["namespaces", "tenants"])
def test_the_removals_of_one_owner_do_not_withhold_those_of_others(fleet: Fleet, tenants: bool) -> None:
    fleet.commit({"first.yaml": cluster("first"), **team("a", 14), **team("b", 14), **team("c", 3)})
    if tenants:
        fleet.commit({f"tenants/{name}.yaml": owned(name) for name in "abc"})
    fleet.reconcile()
    fleet.commit({**remove("a", *range(13)), **remove("b", 0, 1), **remove("c", 0)}, hour=1)
    run = fleet.reconcile(1)
    owner = "tenant a" if tenants else "namespace a"
    limit = f"16 of 31 workloads would be removed from the fleet (limit: 20 %); only those of {owner} are withheld"
    assert limit in withheld(run)
    assert {move.key.namespace for move in run.plan.withheld.moves} == {"a"}
    left = [path for path in fleet.files() if path.startswith("clusters/first/") and "deployment" in path]
    assert [sum(f"/{name}/" in path for path in left) for name in "abc"] == [14, 12, 2]
    again = fleet.reconcile(2)
    assert (again.changed, again.plan.withheld.digest) == (False, run.plan.withheld.digest), "what is withheld stays so"
    assert fleet.reconcile(3, allowed=(run.plan.withheld.digest,)).plan.withheld.moves == ()


def test_a_mistake_in_many_small_namespaces_is_withheld_in_all_of_them(fleet: Fleet) -> None:
    names = [f"n{number}" for number in range(8)]
    files = {path: text for name in names for path, text in team(name, 4).items()}
    fleet.commit({"first.yaml": cluster("first"), **files})
    fleet.reconcile()
    fleet.commit({path: None for name in names for path in remove(name, 0, 1)}, hour=1)
    assert len(fleet.reconcile(1).plan.withheld.moves) == 16


def test_a_removed_workload_counts_for_the_tenant_whose_path_had_it(fleet: Fleet) -> None:
    """Also in later runs, when the last source commit does not have it any more."""
    both = {f"tenants/{name}.yaml": owned(name).replace(f"namespaces: [{name}]", "namespaces: [a, b]") for name in "ab"}
    fleet.commit({"first.yaml": cluster("first"), **both, **team("a", 14), **team("b", 14), **team("c", 3)})
    fleet.reconcile()
    for hour in (1, 2):
        fleet.commit({**(remove("b", *range(13)) if hour == 1 else {}), **remove("c", hour)}, hour=hour)
        run = fleet.reconcile(hour)
        assert "only those of tenant b are withheld" in withheld(run)[0]


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ({"large": (39, 195), "small": (2, 5)}, {"large", "small"}),
        ({"large": (39, 100), "small": (2, 95), "least": (1, 5)}, {"large", "small"}),
        ({"large": (45, 100), "small": (2, 95), "least": (1, 5)}, {"large"}),
    ],
    ids=["just under the limit", "with the next one", "alone"],
)
def test_what_is_withheld_exceeds_the_limit_without_what_passes(amounts: dict[str, tuple[int, int]], expected: set[str]) -> None:
    """Otherwise the next run would make it. The owners with the largest amounts are withheld first."""
    owned = {name: MeasuredAmount(amount, size, size) for name, (amount, size) in amounts.items()}
    chosen = choose_withheld_owners(owned, 200, 200, 20)
    assert chosen == expected
    assert 100 * sum(owned[name].amount for name in chosen) > 20 * 200


WRONG: dict[str, tuple[dict[str, str | None], str]] = {
    "a cluster of a policy": (
        NOWHERE,
        "PropagationPolicy/default/doomed names clusters without a Cluster document: nowhere; the fleet has first, second "
        "(doomed.yaml:12)",
    ),
    "a label of a cluster": (
        {"clusters/first.yaml": cluster("first").replace("  name: first", "  name: first\n  labels: {tier: glod}")},
        "PropagationPolicy/default/doomed: no cluster has tier=gold; the fleet has glod (doomed.yaml:12)",
    ),
    "removed documents": ({f"doomed/{n}.yaml": None for n in range(11)}, ""),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_and_how_to_undo_it_come_before_the_way_to_allow_it(name: str, fleet: Fleet) -> None:
    files, cause = WRONG[name]
    by_label = select("doomed", "first").replace("clusterNames: [first]", "labelSelector: {matchLabels: {tier: gold}}")
    if name == "a label of a cluster":
        gold = cluster("first").replace("  name: first", "  name: first\n  labels: {tier: gold}")
        fleet.commit({"clusters/first.yaml": gold, "doomed.yaml": by_label})
        fleet.commit({f"doomed/{n}.yaml": labelled(f"doomed-{n}", "doomed") for n in range(11)})
        fleet.reconcile()
    else:
        fill(fleet, doomed=11, safe=5)
    fleet.commit(files, hour=1)
    run = write_run(make_review(fleet.reconcile(1)), 10_000).splitlines()
    start = run.index("Withheld by the guard: 11 changes.")
    end = next(number for number, line in enumerate(run) if line.startswith("To allow exactly these, "))
    assert run[start + 1].strip() == cause if cause else " (limit: " in run[start + 1]
    assert run[end - 1] == "If this is a mistake, correct it, or revert the commit that gitsched status names."
    status = write_fleet_status(read_fleet_status(fleet.settings(2)), 10_000).splitlines()
    assert any(line.startswith(f"  {cause or 'removed'}") for line in status)
    assert any(line.endswith(f"to withdraw it: git revert {fleet.git('rev-parse', 'HEAD')[:10]}") for line in status)
    assert "If this is a mistake, correct it, or revert the commit." in status
    planned = write_plan(compare_plans(fleet.settings(2)).review, 10_000)
    assert cause in planned.splitlines()[0]
    assert planned.index("If this is a mistake, correct it, or revert what requests it.") < planned.index(
        "To allow exactly these, "
    )


ALL_MOVE = (
    "12 of 17 workloads would move in the fleet (limit: 30 %)",
    "12 of 12 workloads would leave cluster third (limit: 90 %)",
)


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize(
    ("minutes", "replicas", "limits"),
    [
        pytest.param(3, 2, (), id="the copies still run"),
        pytest.param(3, 1, ("the fleet would lose 12 replicas, it has 34 (limit: 30 %)",), id="with fewer replicas"),
        pytest.param(
            3,
            5,
            (ALL_MOVE[0], "the fleet would get 36 more replicas, it has 34 (limit: 50 %)", ALL_MOVE[1]),
            id="with more replicas",
        ),
        pytest.param(20, 2, ALL_MOVE, id="the copies are gone"),
    ],
)
def test_workloads_that_return_to_copies_count_only_for_lost_replicas(
    fleet: Fleet, minutes: int, replicas: int, limits: tuple[str, ...], complete: bool
) -> None:
    def run(hour: float, *, allow: bool = False) -> RunResult:
        if complete:
            fleet.cache = fleet.path.parent / f"cache-{hour}"
        settings = fleet.settings(hour)
        return reconcile(allow_withheld(settings) if allow else settings)

    fill(fleet, 12, 5)
    fleet.commit({"doomed.yaml": select("doomed", "third"), "clusters/third.yaml": cluster("third")}, hour=1)
    run(1, allow=True)
    assert (len(on(fleet, "first")), len(on(fleet, "third"))) == (12, 12)
    run(1 + minutes / 60)
    changes = {
        f"doomed/{n}.yaml": labelled(f"doomed-{n}", "doomed").replace("replicas: 2", f"replicas: {replicas}") for n in range(12)
    }
    fleet.commit({**changes, "doomed.yaml": select("doomed", "first")}, hour=1 + minutes / 60)
    result = run(1 + minutes / 60)
    assert withheld(result) == limits
    assert (len(on(fleet, "first")), len(on(fleet, "third"))) == ((0 if minutes > 10 else 12, 12) if limits else (12, 0))
    assert (withheld(run(3)), len(on(fleet, "first"))) == (limits, 0 if minutes > 10 else 12)
