"""A workload that moves stays in the cluster that it leaves until its replacement had its time, whatever moves it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from gitsched.cli import main
from gitsched.model.changes import RetainedCopy
from gitsched.model.document import Key
from gitsched.model.errors import Permanent
from gitsched.reconcile import RunResult
from gitsched.report.retained_copies import describe_retained_copies

from .conftest import Fleet, at_hour, cluster, deployment, policy
from .test_dependencies import workload

WEB, CONF = "default/deployment-web", "default/configmap-conf"
MINUTE = 1 / 60
OVERLAP = 10 * MINUTE
ACCOUNTS = {"README.md", "gitsched.json"}
SETTINGS = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {output: {%s}}\n"
SERVICE = (
    "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"
)
JOB = (
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: web, namespace: default}\n"
    "spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}\n"
)


def fill(fleet: Fleet, *names: str, **files: str) -> None:
    """Commit three clusters and `web` with a policy for clusters of these names, and reconcile."""
    clusters = {f"clusters/{name}.yaml": cluster(name) for name in ("ash", "bru", "cph")}
    fleet.commit({**clusters, "web.yaml": deployment("web"), "policy.yaml": policy(",".join(names)), **files})
    fleet.reconcile()


def move(fleet: Fleet, names: str, hour: float, *, late: float = 0) -> None:
    fleet.commit({"policy.yaml": policy(names)}, hour=hour)
    fleet.reconcile(hour + late)


def codes(fleet: Fleet, hour: float) -> set[str]:
    return {finding.code for finding in fleet.reconcile(hour).plan.findings if finding.severity != "info"}


def test_an_edit_of_the_policy_keeps_the_old_copy_for_the_overlap(fleet: Fleet) -> None:
    fill(fleet, "ash")
    fleet.commit({"policy.yaml": policy("bru")}, hour=1)
    run = fleet.reconcile(1)
    assert (fleet.where(WEB), fleet.delivered(WEB)) == (["bru"], ["ash", "bru"])
    assert run.plan.next_wakeup == at_hour(1 + OVERLAP)
    assert fleet.reconcile(1 + 9 * MINUTE).after is None
    assert fleet.reconcile(2).after is not None
    assert fleet.delivered(WEB) == ["bru"]
    assert fleet.trailers()["Gitsched-Cause"] == "deadline"
    assert (
        fleet.git("log", "-1", "--format=%ct %s", "placements")
        == f"{int(at_hour(1 + OVERLAP).timestamp())} place: 1 overlap ended (Change)"
    )
    assert "retainedCopies" not in fleet.load("gitsched.json")


def test_a_shift_keeps_the_previous_replicas_and_an_image_where_there_are_fewer(fleet: Fleet) -> None:
    def weighted(first: int) -> str:
        weights = "".join(
            f"\n      - {{targetCluster: {{clusterNames: [{name}]}}, weight: {n}}}" for name, n in (("ash", first), ("bru", 1))
        )
        text = policy("ash,bru", scheduling="Divided")
        return text.replace(
            "Weighted}",
            f"Weighted, weightPreference: {{staticWeightList: [{weights}\n    ]}}}}".replace("\n      -", ",")
            .replace("[,", "[")
            .replace("\n    ]", "]"),
        )

    fleet.commit({"a.yaml": cluster("ash"), "b.yaml": cluster("bru"), "web.yaml": deployment("web", 4), "policy.yaml": weighted(3)})
    fleet.reconcile()
    before = fleet.read(f"clusters/ash/{WEB}.yaml")
    named = "{apiVersion: apps/v1, kind: Deployment, name: web, namespace: default}"
    rebalancer = "apiVersion: apps.karmada.io/v1alpha1\nkind: WorkloadRebalancer\nmetadata: {name: again}\n"
    rebalancer += f"spec: {{workloads: [{named}]}}\n"
    fleet.commit({"policy.yaml": weighted(1), "again.yaml": rebalancer}, hour=1)
    fleet.reconcile(1)
    shares = {entry["name"]: entry["replicas"] for entry in fleet.binding("web-deployment")["spec"]["clusters"]}
    assert shares == {"ash": 2, "bru": 2}, "the record is that of Karmada"
    assert (fleet.read(f"clusters/ash/{WEB}.yaml"), fleet.load(f"clusters/bru/{WEB}.yaml")["spec"]["replicas"]) == (before, 2)
    fleet.reconcile(1 + OVERLAP)
    assert fleet.load(f"clusters/ash/{WEB}.yaml")["spec"]["replicas"] == 2


@pytest.mark.parametrize(
    ("names", "files"),
    [
        pytest.param("ash", {}, id="fewer clusters"),
        pytest.param("ash,bru", {"web.yaml": deployment("web", 1)}, id="fewer replicas"),
        pytest.param("ash,bru", {"web.yaml": None}, id="the workload is deleted"),
        pytest.param("ash,bru", {"policy.yaml": None}, id="no policy selects it"),
    ],
)
def test_what_is_not_replaced_goes_at_once(fleet: Fleet, names: str, files: dict[str, str | None]) -> None:
    fill(fleet, "ash", "bru")
    fleet.commit({"policy.yaml": policy(names), **files}, hour=1)
    fleet.reconcile(1)
    assert "retainedCopies" not in fleet.load("gitsched.json")
    assert fleet.delivered(WEB) == fleet.where(WEB) == ([] if None in files.values() else names.split(","))


def test_a_workload_that_is_deleted_during_the_overlap_goes_at_once(fleet: Fleet) -> None:
    fill(fleet, "ash")
    move(fleet, "bru", 1)
    fleet.commit({"web.yaml": None}, hour=1 + MINUTE)
    fleet.reconcile(1 + MINUTE)
    assert fleet.delivered(WEB) == []


def test_jobs_are_never_in_two_clusters(fleet: Fleet) -> None:
    select = policy("ash", kind="Job").replace("apps/v1", "batch/v1")
    fill(fleet, "cph", **{"job.yaml": JOB, "jobs.yaml": select.replace("name: all", "name: jobs")})
    assert fleet.delivered("default/job.batch-web") == ["ash"]
    fleet.commit({"jobs.yaml": select.replace("name: all", "name: jobs").replace("[ash]", "[bru]")}, hour=1)
    fleet.reconcile(1)
    assert fleet.delivered("default/job.batch-web") == ["bru"]


@pytest.mark.parametrize(
    "behavior", ["cluster: {purgeMode: Directly}", "application: {purgeMode: Directly, decisionConditions: {}}"]
)
def test_purge_mode_directly_never_overlaps(fleet: Fleet, behavior: str) -> None:
    more = f"  propagateDeps: true\n  failover: {{{behavior}}}\n"
    fill(fleet, "ash", **{"policy.yaml": policy("ash", more=more)})
    fleet.commit({"policy.yaml": policy("bru", more=more)}, hour=1)
    fleet.reconcile(1)
    assert fleet.delivered(WEB) == ["bru"]


def test_moves_during_an_overlap_keep_all_copies_until_the_last_one_had_its_time(fleet: Fleet) -> None:
    fill(fleet, "ash")
    move(fleet, "bru", 1)
    move(fleet, "cph", 1 + 6 * MINUTE)
    assert fleet.delivered(WEB) == ["ash", "bru", "cph"]
    fleet.reconcile(1 + 12 * MINUTE)
    assert fleet.delivered(WEB) == ["ash", "bru", "cph"], "bru had only six minutes"
    fleet.reconcile(1 + 16 * MINUTE)
    assert fleet.delivered(WEB) == ["cph"]


def test_a_workload_that_returns_has_only_its_first_copy(fleet: Fleet) -> None:
    fill(fleet, "ash")
    before = fleet.files()
    move(fleet, "bru", 1)
    move(fleet, "ash", 1 + 5 * MINUTE)
    assert fleet.delivered(WEB) == ["ash"], "it never left, so nothing replaces the copy in bru"
    assert fleet.files()[f"clusters/ash/{WEB}.yaml"] == before[f"clusters/ash/{WEB}.yaml"]


def test_a_workload_that_keeps_moving_loses_its_first_copy_after_the_maximum(fleet: Fleet) -> None:
    fill(fleet, "ash")
    for step in range(9):
        move(fleet, ("bru", "cph")[step % 2], 1 + 8 * step * MINUTE)
        fleet.reconcile(1 + (8 * step + 1) * MINUTE)
        if 8 * step < 60:
            assert "ash" in fleet.delivered(WEB), step
    assert "ash" not in fleet.delivered(WEB), "an hour has passed"


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("hour", [1 + 3 * MINUTE, 5])
@pytest.mark.parametrize(
    ("changes", "delivered"),
    [
        pytest.param({"web.yaml": deployment("web", 4)}, ["bru"], id="more replicas"),
        pytest.param({"policy.yaml": policy("cph")}, ["bru", "cph"], id="another cluster"),
        pytest.param({"policy.yaml": policy("ash")}, ["ash"], id="back"),
    ],
)
def test_an_overlap_that_is_over_ends_in_the_next_run_whatever_it_changes(
    fleet: Fleet, changes: dict[str, str], delivered: list[str], hour: float, complete: bool
) -> None:
    fill(fleet, "ash", **{"web.yaml": deployment("web", 3), "other.yaml": deployment("other")})
    move(fleet, "bru", 1)
    assert fleet.delivered(WEB) == ["ash", "bru"]
    fleet.commit(changes, hour=hour)
    if complete:
        fleet.cache = fleet.cache / "unknown"
    plan = fleet.reconcile(21).plan
    assert plan.complete is complete
    assert fleet.delivered(WEB) == delivered
    assert plan.next_wakeup == (at_hour(21 + OVERLAP) if len(delivered) > 1 else None)


@pytest.mark.parametrize(
    ("changes", "delivered", "end"),
    [
        pytest.param({"web.yaml": deployment("web", 4)}, ["bru"], None, id="more replicas: it is over"),
        pytest.param({"policy.yaml": policy("cph")}, ["ash", "bru", "cph"], 1.25 + OVERLAP, id="the replacement moves"),
        pytest.param(
            {"policy.yaml": policy("cph"), "clusters/bru.yaml": None},
            ["ash", "bru", "cph"],
            1.25 + OVERLAP,
            id="its cluster is removed",
        ),
    ],
)
def test_an_overlap_that_is_over_goes_on_while_its_replacement_moves(
    fleet: Fleet, changes: dict[str, str | None], delivered: list[str], end: float | None
) -> None:
    fill(fleet, "ash", **{"web.yaml": deployment("web", 3)})
    move(fleet, "bru", 1)
    fleet.commit(changes, hour=1.25)
    plan = fleet.reconcile(1.25).plan
    assert fleet.delivered(WEB) == delivered
    assert {copy.until for copy in plan.retained} == ({at_hour(end)} if end is not None else set())


@pytest.mark.parametrize(("lost", "delivered"), [(False, ["bru", "cph"]), (True, ["ash", "bru", "cph"])])
def test_after_the_maximum_a_copy_stays_only_where_the_cluster_of_its_replacement_is_lost(
    fleet: Fleet, lost: bool, delivered: list[str]
) -> None:
    fill(fleet, "ash")
    move(fleet, "bru", 1)
    fleet.commit({"policy.yaml": policy("cph"), **({"clusters/bru.yaml": None} if lost else {})}, hour=5)
    plan = fleet.reconcile(5).plan
    assert fleet.delivered(WEB) == delivered
    assert {copy.until for copy in plan.retained} == {at_hour(5 + OVERLAP)}


def test_an_overlap_that_is_over_counts_again_where_no_replacement_was_delivered(fleet: Fleet) -> None:
    fill(fleet, "ash")
    move(fleet, "bru", 1)
    environment = {"GIT_INDEX_FILE": str(fleet.path.parent / "index")}
    fleet.git("read-tree", "placements", environment=environment)
    fleet.git("update-index", "--force-remove", f"clusters/bru/{WEB}.yaml", environment=environment)
    tree = fleet.git("write-tree", environment=environment)
    fleet.git("update-ref", "refs/heads/placements", fleet.git("commit-tree", tree, "-p", "placements", "-m", "Change by hand"))
    fleet.commit({"policy.yaml": policy("cph")}, hour=5)
    assert fleet.reconcile(5).plan.next_wakeup == at_hour(5 + OVERLAP)
    assert fleet.delivered(WEB) == ["ash", "cph"]


FROZEN = SETTINGS.replace("output:", "guard:") % "freeze: audit"


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize(
    ("changes", "delivered"),
    [
        pytest.param({"gitsched.yaml": SETTINGS % ""}, ["ash"], id="the move is made"),
        pytest.param({"policy.yaml": policy("bru")}, ["bru"], id="it is no longer wanted"),
        pytest.param({"policy.yaml": policy("cph")}, ["bru"], id="another one is wanted"),
        pytest.param({"policy.yaml": policy("cph"), "gitsched.yaml": SETTINGS % ""}, ["bru", "cph"], id="another one is made"),
        pytest.param({"service.yaml": None}, ["ash", "bru"], id="something else changes"),
    ],
)
def test_a_copy_stays_while_the_guard_withholds_that_its_workload_returns(
    fleet: Fleet, changes: dict[str, str | None], delivered: list[str], complete: bool
) -> None:
    def run(hour: float) -> RunResult:
        fleet.cache = fleet.path.parent / (f"cache-{hour}" if complete else "cache")
        return fleet.reconcile(hour)

    fill(fleet, "ash", **{"service.yaml": SERVICE, "services.yaml": policy("ash,bru,cph", name="services", kind="Service")})
    move(fleet, "bru", 1)
    fleet.commit({"policy.yaml": policy("ash"), "gitsched.yaml": FROZEN}, hour=1 + 3 * MINUTE)
    run(1 + 3 * MINUTE)
    assert [*map(str, run(1 + 9 * MINUTE).plan.withheld.moves)]
    for hour in (1 + OVERLAP, 2, 30):
        plan = run(hour).plan
        assert (fleet.where(WEB), fleet.delivered(WEB)) == (["bru"], ["ash", "bru"]), "the source wants it in ash"
        assert (plan.complete, plan.next_wakeup) == (complete, None)
    described = describe_retained_copies(plan.retained)
    assert described == [
        "Deployment default/web stays in ash with 2 replicas until the withheld change that needs it is allowed or withdrawn"
    ]
    fleet.commit(changes, hour=31)
    run(31)
    assert fleet.delivered(WEB) == delivered


@pytest.mark.parametrize("complete", [False, True])
def test_a_plan_with_a_change_that_a_run_withholds_keeps_no_copy_for_it(fleet: Fleet, complete: bool) -> None:
    fill(fleet, "ash,bru", **{"web.yaml": deployment("web", 40)})
    fleet.commit({"web.yaml": deployment("web", 3)}, hour=1)
    if complete:
        fleet.cache = fleet.cache / "unknown"
    plan = fleet.preview(1).plan
    assert [str(limit) for limit in plan.withheld.limits if limit.scope == "workload"]
    assert (plan.retained, len(plan.moves), plan.complete) == ((), 1, complete)
    assert fleet.reconcile(1).plan.retained == ()


def test_a_workload_without_a_cluster_keeps_its_copy_until_it_has_one(fleet: Fleet) -> None:
    fill(fleet, "ash")
    fleet.commit({"policy.yaml": policy("nowhere")}, hour=1)
    assert codes(fleet, 1) >= {"copy-retained", "unschedulable"}
    fleet.reconcile(100)
    assert (fleet.where(WEB), fleet.delivered(WEB)) == ([], ["ash"])
    move(fleet, "bru", 101)
    assert fleet.delivered(WEB) == ["ash", "bru"]
    fleet.reconcile(102)
    assert fleet.delivered(WEB) == ["bru"]


def test_a_drain_that_is_merged_two_days_later_keeps_the_copies_for_the_overlap(fleet: Fleet) -> None:
    fill(fleet, "ash,bru", **{"policy.yaml": policy("ash", "bru")})
    fleet.git("checkout", "-q", "-b", "drain")
    fleet.commit({"clusters/ash.yaml": cluster("ash", "power:NoExecute")}, hour=1)
    fleet.git("checkout", "-q", "main")
    fleet.git("merge", "-q", "--ff-only", "drain")
    assert fleet.reconcile(49).plan.next_wakeup == at_hour(49 + OVERLAP)
    assert (fleet.where(WEB), fleet.delivered(WEB)) == (["bru"], ["ash", "bru"])
    fleet.reconcile(49 + 9 * MINUTE)
    assert fleet.delivered(WEB) == ["ash", "bru"]
    fleet.reconcile(49 + OVERLAP)
    assert fleet.delivered(WEB) == ["bru"]


def test_a_late_run_writes_whole_seconds(fleet: Fleet) -> None:
    fill(fleet, "ash")
    move(fleet, "bru", 1, late=0.5001)
    (copy,) = fleet.load("gitsched.json")["retainedCopies"]
    assert (copy["start"], copy["until"]) == ("2026-03-02T09:30:00Z", "2026-03-02T09:40:00Z")


@pytest.mark.parametrize("late", [0, 0.5, 1])
def test_punctual_runs_write_the_same_bytes(make_fleet: Callable[[str], Fleet], late: float) -> None:
    heads = []
    for fleet, delay in ((make_fleet("punctual"), 0.0), (make_fleet("late"), late * MINUTE)):
        fill(fleet, "ash")
        move(fleet, "bru", 1, late=delay)
        fleet.reconcile(1 + OVERLAP + delay)
        fleet.commit({"clusters/bru.yaml": None, "policy.yaml": policy("ash,bru")}, hour=1.5)
        for hour in (1.5, 1.5 + OVERLAP, 26):
            fleet.reconcile(hour + delay)
        heads.append(fleet.git("rev-list", "placements").splitlines())
    assert heads[0] == heads[1]


def test_a_late_run_differs_only_in_the_clocks(make_fleet: Callable[[str], Fleet]) -> None:
    punctual, late = make_fleet("punctual"), make_fleet("late")
    for fleet, delay in ((punctual, 0.0), (late, 5 * MINUTE)):
        fill(fleet, "ash")
        move(fleet, "bru", 1, late=delay)
    differing = {path for path, blob in punctual.files().items() if late.files()[path] != blob}
    assert (differing, punctual.files().keys()) == (ACCOUNTS, late.files().keys())
    one, other = (fleet.load("gitsched.json") for fleet in (punctual, late))
    assert {name for name in one if one[name] != other[name]} == {"retainedCopies", "nextWakeup"}
    for times in ("start", "countedFrom", "until"):
        one["retainedCopies"][0].pop(times)
        other["retainedCopies"][0].pop(times)
    assert one["retainedCopies"] == other["retainedCopies"]
    dates = [fleet.git("log", "-1", "--format=%ct", "placements") for fleet in (punctual, late)]
    assert dates[0] == dates[1], "the date is that of the source commit"
    for fleet in (punctual, late):
        fleet.reconcile(3)
    assert {path for path, blob in punctual.files().items() if late.files().get(path) != blob} <= ACCOUNTS


def test_without_an_overlap_copies_go_in_the_commit_that_replaces_them(fleet: Fleet) -> None:
    fill(fleet, "ash", **{"gitsched.yaml": SETTINGS % "overlap: 0s"})
    move(fleet, "bru", 1)
    assert fleet.delivered(WEB) == ["bru"]
    fleet.commit({"clusters/bru.yaml": None, "policy.yaml": policy("bru", "cph")}, hour=2)
    fleet.reconcile(2)
    assert fleet.delivered(WEB) == ["cph"]


def test_an_overlap_that_is_turned_off_ends(fleet: Fleet) -> None:
    fill(fleet, "ash")
    move(fleet, "bru", 1)
    fleet.commit({"gitsched.yaml": SETTINGS % "overlap: 0s"}, hour=1 + MINUTE)
    fleet.reconcile(1 + MINUTE)
    assert fleet.delivered(WEB) == ["bru"]


def test_a_maximum_below_the_overlap_is_an_error(fleet: Fleet) -> None:
    with pytest.raises(Permanent, match="overlapMax must be a duration that is not shorter"):
        fill(fleet, "ash", **{"gitsched.yaml": SETTINGS % "overlap: 2h, overlapMax: 1h"})


def test_a_dependency_stays_as_long_as_the_copy_that_brought_it(fleet: Fleet) -> None:
    conf = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf, namespace: default}\n"
    select = policy("ash", more="  propagateDeps: true\n")
    fill(fleet, "ash", **{"web.yaml": workload("web", "configmap/conf"), "conf.yaml": conf, "policy.yaml": select})
    fleet.commit({"policy.yaml": select.replace("[ash]", "[bru]"), "web.yaml": deployment("web"), "conf.yaml": None}, hour=1)
    fleet.reconcile(1)
    assert (fleet.delivered(WEB), fleet.delivered(CONF)) == (["ash", "bru"], ["ash"]), "the new version needs no ConfigMap"
    fleet.reconcile(2)
    assert (fleet.delivered(WEB), fleet.delivered(CONF)) == (["bru"], [])


@pytest.mark.parametrize(
    ("name", "namespace", "annotation"),
    [
        pytest.param("shop", "default", "default/web", id="another name"),
        pytest.param("web", "shop", "default/web", id="another namespace"),
        pytest.param("shop", "default", "Deployment/default/web", id="with the kind"),
    ],
)
def test_a_renamed_workload_overlaps_with_the_former_one(fleet: Fleet, name: str, namespace: str, annotation: str) -> None:
    fill(fleet, "ash")
    annotated = f"  namespace: {namespace}\n  annotations: {{gitsched.io/renamed-from: {annotation}}}\n"
    new = deployment(name, namespace=namespace).replace(f"  namespace: {namespace}\n", annotated)
    select = policy("ash").replace("namespace: default", f"namespace: {namespace}")
    fleet.commit({"web.yaml": new, "policy.yaml": select}, hour=1)
    assert codes(fleet, 1) == set()
    assert (fleet.delivered(WEB), fleet.delivered(f"{namespace}/deployment-{name}")) == (["ash"], ["ash"])
    fleet.commit({"policy.yaml": select.replace("[ash]", "[bru]")}, hour=1 + 5 * MINUTE)
    fleet.reconcile(1 + 5 * MINUTE)
    assert fleet.delivered(WEB) == ["ash"], "the new one moves once more"
    fleet.reconcile(1 + 15 * MINUTE)
    assert (fleet.delivered(WEB), fleet.delivered(f"{namespace}/deployment-{name}")) == ([], ["bru"])


@pytest.mark.parametrize("annotation", ["default/other", "web", "a/b/c/d"])
def test_an_annotation_that_names_no_former_workload_is_a_finding(fleet: Fleet, annotation: str) -> None:
    fill(fleet, "ash")
    annotated = f"  namespace: default\n  annotations: {{gitsched.io/renamed-from: {annotation}}}\n"
    fleet.commit({"web.yaml": deployment("shop").replace("  namespace: default\n", annotated)}, hour=1)
    assert "renamed-from-unknown" in codes(fleet, 1)
    assert fleet.delivered(WEB) == []


def renamed(name: str, former: str) -> str:
    annotated = f"  namespace: default\n  annotations: {{gitsched.io/renamed-from: {former}}}\n"
    return deployment(name).replace("  namespace: default\n", annotated)


def test_a_workload_that_is_renamed_twice_keeps_the_copies_of_both_former_ones(fleet: Fleet) -> None:
    fill(fleet, "ash")
    fleet.commit({"web.yaml": renamed("shop", "default/web")}, hour=1)
    fleet.reconcile(1)
    fleet.commit({"web.yaml": renamed("store", "default/shop")}, hour=1 + 5 * MINUTE)
    assert codes(fleet, 1 + 5 * MINUTE) == set()
    assert all(fleet.delivered(f"default/deployment-{name}") == ["ash"] for name in ("web", "shop", "store"))
    fleet.reconcile(1 + 15 * MINUTE)
    assert [fleet.delivered(f"default/deployment-{name}") for name in ("web", "shop", "store")] == [[], [], ["ash"]]


def test_a_second_workload_that_continues_the_same_one_is_a_finding(fleet: Fleet) -> None:
    fill(fleet, "ash")
    fleet.commit({"web.yaml": renamed("shop", "default/web"), "other.yaml": renamed("other", "default/web")}, hour=1)
    plan = fleet.reconcile(1).plan
    (finding,) = (found for found in plan.findings if found.code == "renamed-from-claimed")
    assert finding.message.startswith("Deployment.apps/default/shop has")
    assert "Deployment.apps/default/other continues" in finding.message
    assert [copy.follows.name for copy in plan.retained if copy.follows] == ["other"]


def test_the_former_copy_stays_while_the_renamed_workload_has_no_cluster_and_each_run_says_so(fleet: Fleet) -> None:
    fill(fleet, "ash")
    fleet.commit({"web.yaml": renamed("shop", "default/web"), "policy.yaml": policy("nowhere")}, hour=1)
    for hour in (1, 30):
        found = codes(fleet, hour)
        assert found >= {"copy-retained", "unschedulable"}
        assert "renamed-from-unknown" not in found
        assert fleet.delivered(WEB) == ["ash"]
        fleet.commit({"notes.yaml": "a: 1\n"}, hour=29)


def report(**health: str) -> str:
    entries = "".join(f"\n  - {{clusterName: {name}, health: {state}}}" for name, state in health.items())
    return (
        "apiVersion: work.karmada.io/v1alpha2\nkind: ResourceBinding\nmetadata: {name: web-deployment, namespace: default}\n"
        "spec: {resource: {apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}}\n"
        f"status:\n  aggregatedStatus:{entries}\n"
    )


def test_the_overlap_counts_from_the_report_that_the_replacement_is_healthy(fleet: Fleet) -> None:
    fill(fleet, "ash", **{"health.yaml": report(ash="Healthy")})
    move(fleet, "bru", 1)
    fleet.reconcile(1.4)
    assert fleet.delivered(WEB) == ["ash", "bru"], "nothing is reported of bru"
    fleet.commit({"health.yaml": report(ash="Healthy", bru="Unhealthy")}, hour=1.5)
    fleet.reconcile(1.5)
    fleet.commit({"health.yaml": report(ash="Healthy", bru="Healthy")}, hour=1.6)
    assert fleet.reconcile(1.6).plan.next_wakeup == at_hour(1.6 + OVERLAP)
    assert fleet.delivered(WEB) == ["ash", "bru"]
    fleet.reconcile(1.6 + OVERLAP)
    assert fleet.delivered(WEB) == ["bru"]


def test_bad_health_prolongs_the_overlap_to_its_maximum(fleet: Fleet) -> None:
    fill(fleet, "ash", **{"health.yaml": report(ash="Healthy", bru="Unhealthy")})
    move(fleet, "bru", 1)
    assert fleet.reconcile(1.5).plan.next_wakeup == at_hour(2)
    assert fleet.delivered(WEB) == ["ash", "bru"]
    fleet.reconcile(2)
    assert fleet.delivered(WEB) == ["bru"]


def test_a_start_in_the_future_that_a_wrong_clock_wrote_ends(fleet: Fleet) -> None:
    fill(fleet, "ash")
    move(fleet, "bru", 1, late=100_000)
    assert fleet.delivered(WEB) == ["ash", "bru"]
    fleet.reconcile(1.1)
    fleet.commit({"web.yaml": deployment("web", 3)}, hour=2)
    fleet.reconcile(2)
    fleet.reconcile(2 + OVERLAP)
    assert fleet.delivered(WEB) == ["bru"]


def test_a_workload_of_the_same_path_takes_the_place_of_a_copy(fleet: Fleet) -> None:
    fill(fleet, "ash")
    move(fleet, "bru", 1)
    fleet.commit({"policy.yaml": policy("ash,bru"), "web.yaml": deployment("web", 7)}, hour=1 + MINUTE)
    fleet.reconcile(1 + MINUTE)
    assert fleet.load(f"clusters/ash/{WEB}.yaml")["spec"]["replicas"] == 7
    assert "retainedCopies" not in fleet.load("gitsched.json")


@pytest.mark.parametrize("arguments", [["main~1"], ["--worktree"]], ids=["comparison", "worktree"])
def test_an_overlap_that_no_run_has_begun_is_a_duration_in_every_format(
    fleet: Fleet, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A review is merged later: the time of the plan says nothing about when the overlap ends."""
    fill(fleet, "ash")
    fleet.git("branch", "-M", "main")
    fleet.commit({"policy.yaml": policy("bru")}, hour=1)
    found = {}
    for form in ("text", "markdown", "html", "json"):
        assert main(["-C", str(fleet.path), "plan", *arguments, "-o", form, "--now", "2026-03-02T10:00:00Z"]) in (0, 1)
        found[form] = " ".join(capsys.readouterr().out.split())
    line = "Deployment default/web stays in ash with 2 replicas for 10m after the run that moves it"
    assert [form for form in ("text", "markdown", "html") if line not in found[form].replace("`", "")] == []
    assert [form for form in ("text", "markdown", "html") if "10:10:00" in found[form]] == []
    assert "Next change without a commit: 10m after the run that carries this out." in found["text"]
    assert "<dd>10m after the run that carries this out</dd>" in found["html"]
    assert [copy["afterRun"] for copy in json.loads(found["json"])["retainedCopies"]] == ["10m"]


def test_copies_of_many_workloads_with_the_same_end_are_one_line() -> None:
    start, end = at_hour(0), at_hour(1)

    def describe(workloads: int) -> list[str]:
        keys = [Key("apps", "Deployment", "shop", f"w{number}") for number in range(workloads)]
        copies = [RetainedCopy(key, name, 2, (), start, None, end) for key in keys for name in ("ash", "bru")]
        return describe_retained_copies(copies, unmerged=start)

    assert describe(1) == ["Deployment shop/w0 stays in ash 2, bru 2 for 1h after the run that moves it"]
    assert len(describe(3)) == 3
    [line] = describe(4)
    assert line.startswith("8 copies stay in ash, bru (Deployment shop/w0, ")
    assert line.endswith(") for 1h after the run that moves it")


def test_the_output_says_which_copies_stay_and_until_when(fleet: Fleet) -> None:
    fill(fleet, "ash")
    move(fleet, "bru", 1)
    line = "Deployment default/web stays in ash with 2 replicas until 2026-03-02T09:10:00Z"
    assert f"- `{line}`\n" in fleet.read("README.md")
    assert f"- {line}" in fleet.git("log", "-1", "--format=%B", "placements").splitlines()
    assert fleet.load("gitsched.json")["retainedCopies"] == [
        {
            "cluster": "ash",
            "workload": {"group": "apps", "kind": "Deployment", "namespace": "default", "name": "web"},
            "replicas": 2,
            "start": "2026-03-02T09:00:00Z",
            "countedFrom": "2026-03-02T09:00:00Z",
            "until": "2026-03-02T09:10:00Z",
        }
    ]


@pytest.mark.parametrize("replicas", [0, None], ids=["scaled to 0", "deleted"])
def test_a_divided_workload_that_should_be_nowhere_goes_at_once_with_its_dependencies(fleet: Fleet, replicas: int | None) -> None:
    """With requests of resources, Karmada binds 0 replicas to no cluster."""
    conf = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf, namespace: default}\n"
    rules = policy("ash,bru", scheduling="Divided", more="  propagateDeps: true\n")
    pods = workload("web", "configmap/conf").replace("name: main", "name: main, resources: {requests: {cpu: 100m}}")
    fill(fleet, **{"web.yaml": pods, "conf.yaml": conf, "policy.yaml": rules})
    assert fleet.delivered(WEB) == fleet.delivered(CONF) == ["ash", "bru"]
    fleet.commit({"web.yaml": None if replicas is None else pods.replace("replicas: 2", "replicas: 0")}, hour=1)
    assert "copy-retained" not in codes(fleet, 1)
    assert (fleet.delivered(WEB), fleet.delivered(CONF)) == ([], [])
    assert "retainedCopies" not in fleet.load("gitsched.json")


def test_replicas_in_a_removed_cluster_stay_with_their_service_until_others_replace_them(fleet: Fleet) -> None:
    """Two clusters are needed, so Karmada leaves the replicas in the record of the removed one."""
    spread = "    spreadConstraints:\n    - {spreadByField: cluster, minGroups: 2}\n"
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\nspec: {selector: {app: web}}\n"
    pods = workload("web").replace("  template:\n", "  template:\n    metadata: {labels: {app: web}}\n")
    fill(
        fleet,
        **{
            "web.yaml": pods,
            "service.yaml": service,
            "policy.yaml": policy("ash,bru", scheduling="Divided", more=spread),
            "services.yaml": policy("ash,bru", name="services", kind="Service"),
        },
    )
    fleet.commit({"clusters/bru.yaml": None}, hour=1)
    assert codes(fleet, 1) >= {"cluster-gone"}
    assert "cluster-gone" in codes(fleet, 2), "the record still has the replicas in bru"
    fleet.reconcile(100)
    assert fleet.delivered(WEB) == fleet.delivered("default/service-web") == ["ash", "bru"]
    fleet.commit({"policy.yaml": policy("ash,cph", scheduling="Divided", more=spread)}, hour=101)
    fleet.reconcile(101)
    assert fleet.delivered(WEB) == ["ash", "bru", "cph"]
    fleet.reconcile(102)
    assert fleet.delivered(WEB) == ["ash", "cph"]
    assert fleet.delivered("default/service-web") == ["ash"]
