"""Jobs that move: their work is not done twice, and what an API server refuses to change is reported."""

from __future__ import annotations

import pytest

from gitsched.reconcile.output import immutable_changes

from .conftest import UNGUARDED, Fleet, cluster, policy

JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: crunch, namespace: default%s}
spec:
  parallelism: 4
  completions: 8
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: "example.com/crunch:%d"}]}
"""
PATH = "default/job.batch-crunch"
DIVIDED = ", replicaDivisionPreference: Weighted, weightPreference: "
DYNAMIC = DIVIDED + "{dynamicWeight: AvailableReplicas}"
AGGREGATED = ", replicaDivisionPreference: Aggregated"
SUSPENDED = "  suspension: {dispatchingOnClusters: {clusterNames: [bru]}}\n"


def static(ash: int, bru: int) -> str:
    weights = ", ".join(f"{{targetCluster: {{clusterNames: [{n}]}}, weight: {w}}}" for n, w in (("ash", ash), ("bru", bru)))
    return DIVIDED + f"{{staticWeightList: [{weights}]}}"


def jobs(division: str, names: str = "ash,bru", more: str = "") -> str:
    text = policy(names, name="jobs", kind="Job", scheduling="Divided", more=more).replace(
        "apps/v1, kind: Job", "batch/v1, kind: Job"
    )
    return text.replace(", replicaDivisionPreference: Weighted", division)


def start(fleet: Fleet, division: str, names: str = "ash,bru") -> None:
    clusters = {f"{name}.yaml": cluster(name) for name in ("ash", "bru")}
    fleet.commit({"gitsched.yaml": UNGUARDED, **clusters, "job.yaml": JOB % ("", 1), "policy.yaml": jobs(division, names)})
    fleet.reconcile()


def read_completions(fleet: Fleet) -> dict[str, int]:
    return {name: fleet.load(f"clusters/{name}/{PATH}.yaml")["spec"]["completions"] for name in fleet.delivered(PATH)}


@pytest.mark.parametrize(("division", "before"), [(static(1, 3), {"ash": 2, "bru": 6}), (DYNAMIC, {"ash": 4, "bru": 4})])
def test_an_evicted_part_keeps_its_completions_until_the_eviction_ends(fleet: Fleet, division: str, before: dict[str, int]) -> None:
    start(fleet, division)
    assert read_completions(fleet) == before
    kept = fleet.read(f"clusters/ash/{PATH}.yaml")
    fleet.commit({"ash.yaml": cluster("ash", "down:NoExecute"), "job.yaml": JOB % ("", 1) + "# edited\n"}, hour=1)
    fleet.reconcile(1)
    assert read_completions(fleet) == {"ash": before["ash"], "bru": 8}
    assert fleet.read(f"clusters/ash/{PATH}.yaml") == kept
    fleet.reconcile(1.2)
    assert read_completions(fleet) == {"bru": 8}


def test_a_whole_job_leaves_an_evicted_cluster_as_soon_as_another_one_has_it(fleet: Fleet) -> None:
    start(fleet, AGGREGATED)
    assert read_completions(fleet) == {"ash": 8}
    fleet.commit({"ash.yaml": cluster("ash", "down:NoExecute")}, hour=1)
    fleet.reconcile(1)
    assert read_completions(fleet) == {"bru": 8}


@pytest.mark.parametrize("taint", [(), ("down:NoExecute",)])
def test_a_job_stays_where_it_is_until_its_replacement_is_delivered(fleet: Fleet, taint: tuple[str, ...]) -> None:
    start(fleet, AGGREGATED, "ash")
    fleet.commit({"ash.yaml": cluster("ash", *taint), "policy.yaml": jobs(AGGREGATED, "bru", SUSPENDED)}, hour=1)
    fleet.reconcile(1)
    fleet.reconcile(3)
    assert read_completions(fleet) == {"ash": 8}
    fleet.commit({"policy.yaml": jobs(AGGREGATED, "bru")}, hour=4)
    fleet.reconcile(4)
    assert read_completions(fleet) == {"bru": 8}


def test_other_completions_of_a_job_that_exists_are_reported(fleet: Fleet) -> None:
    start(fleet, static(1, 3))
    fleet.commit({"policy.yaml": jobs(static(1, 1))}, hour=1)
    messages = {}
    for run in (fleet.preview(1), fleet.reconcile(1)):
        found = [finding for finding in run.plan.findings if finding.code == "immutable-field-changed"]
        assert {str(finding.location) for finding in found} == {"job.yaml:6:16"}
        messages[run.after] = [finding.message.partition(", which")[0] for finding in found]
    (shown,) = {tuple(sorted(texts)) for texts in messages.values()}
    assert shown == (
        "Job.batch/default/crunch changes spec.completions from 2 to 4 in ash",
        "Job.batch/default/crunch changes spec.completions from 6 to 4 in bru",
    )
    assert not [finding for finding in fleet.reconcile(2).plan.findings if finding.code == "immutable-field-changed"]


def test_an_annotation_of_the_delivery_tool_allows_the_change(fleet: Fleet) -> None:
    start(fleet, static(1, 1))
    forced = ', annotations: {kustomize.toolkit.fluxcd.io/force: "enabled"}'
    fleet.commit({"job.yaml": JOB % (forced, 2)}, hour=1)
    assert "immutable-field-changed" not in {finding.code for finding in fleet.reconcile(1).plan.findings}


def test_more_changed_manifests_than_the_limit_are_counted(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(immutable_changes, "MAX_COMPARED", 1)
    start(fleet, static(1, 3))
    fleet.commit({"policy.yaml": jobs(static(1, 1))}, hour=1)
    found = [finding for finding in fleet.preview(1).plan.findings if finding.code == "immutable-field-changed"]
    assert len(found) == 2
    assert "only 1 of 2 changed manifests" in found[-1].message


def test_a_divided_job_that_its_clusters_delete_is_reported(fleet: Fleet) -> None:
    start(fleet, static(1, 1))
    text = JOB % ("", 1)
    expiring = text.replace("  completions", "  ttlSecondsAfterFinished: 60\n  completions")
    fleet.commit({"job.yaml": expiring}, hour=1)
    for run in (fleet.preview(1), fleet.reconcile(1), fleet.reconcile(1)):
        found = [finding for finding in run.plan.findings if finding.code == "job-repeated"]
        assert [(str(finding.location), finding.severity) for finding in found] == [("job.yaml:6:28", "info")]
    assert "ttlSecondsAfterFinished: 60" in fleet.read(f"clusters/ash/{PATH}.yaml")
    dumped = expiring.replace("namespace: default", "namespace: default, uid: 1-2-3")
    for hour, (after, delivered) in enumerate(((text, False), (expiring, True), (dumped, False)), 2):
        fleet.commit({"job.yaml": after}, hour=hour)
        codes = {finding.code for finding in fleet.reconcile(hour).plan.findings}
        assert ("job-repeated" in codes) == delivered
        assert ("ttlSeconds" in fleet.read(f"clusters/ash/{PATH}.yaml")) == delivered
