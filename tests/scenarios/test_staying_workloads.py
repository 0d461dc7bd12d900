"""A workload that stays whatever a commit says does not hide from the guard that everything else goes."""

from __future__ import annotations

import pytest

from .conftest import Fleet, cluster
from .test_guard import SETTINGS, labelled, select, withheld

Files = dict[str, str | None]
TENTH = "tenth.yaml"
LIMITS = SETTINGS.format("guard: {fleet: {removed: 100, moved: 100, replicasLost: 100}}")
STATEFUL = (
    labelled("tenth", "doomed").replace("kind: Deployment", "kind: StatefulSet")
    + "  serviceName: tenth\n  template: {metadata: {labels: {app: tenth}}, spec: {containers: [{name: c, image: x}]}}\n"
    "  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]\n"
)
BINDING = """\
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata: {name: tenth-deployment, namespace: default}
spec:
  suspension: {scheduling: true}
  clusters: [{name: first, replicas: 2}]
  resource: {apiVersion: apps/v1, kind: Deployment, namespace: default, name: tenth}
"""
DELETED: Files = {"doomed.yaml": None}
PLAIN, OWN = labelled("tenth", "doomed"), labelled("tenth", "own")
SELECTING = "  - {apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {app: doomed}}}\n"


def select_both(*groups: str) -> str:
    """Return the policy of all workloads, of which the last one may be a StatefulSet."""
    return select("doomed", *groups).replace(SELECTING, SELECTING + SELECTING.replace("Deployment", "StatefulSet"))


NOWHERE: Files = {"doomed.yaml": select_both("nowhere")}


def fill(fleet: Fleet, count: int, files: Files) -> None:
    start: Files = {f"doomed/{n}.yaml": labelled(f"doomed-{n}", "doomed") for n in range(count)}
    start |= {"doomed.yaml": select_both("first"), "first.yaml": cluster("first"), "second.yaml": cluster("second")}
    fleet.commit({**start, "gitsched.yaml": LIMITS, **files})
    fleet.reconcile()


@pytest.mark.parametrize(
    ("files", "edit", "staying"),
    [
        pytest.param({TENTH: STATEFUL}, DELETED, 1, id="data, and its policy is deleted"),
        pytest.param({TENTH: STATEFUL}, NOWHERE, 1, id="data, and its policy has no cluster"),
        pytest.param({TENTH: PLAIN, "binding.yaml": BINDING}, NOWHERE, 1, id="its scheduling is suspended"),
        pytest.param(
            {TENTH: OWN, "own.yaml": select("own", "first") + "  preserveResourcesOnDeletion: true\n"},
            {**DELETED, "own.yaml": None},
            1,
            id="it is preserved in its cluster",
        ),
        pytest.param({TENTH: OWN, "own.yaml": select("own", "nowhere")}, {**DELETED, "own.yaml": None}, 0, id="it has no cluster"),
        pytest.param(
            {TENTH: OWN, "own.yaml": select("own", "first") + "  suspension: {dispatching: true}\n"},
            {**DELETED, "own.yaml": None},
            0,
            id="it was never delivered",
        ),
    ],
)
def test_what_stays_does_not_hide_that_everything_else_goes(fleet: Fleet, files: Files, edit: Files, staying: int) -> None:
    fill(fleet, 9, files)
    fleet.commit(edit, hour=1)
    planned, run, again = fleet.preview(1), fleet.reconcile(1), fleet.reconcile(2)
    others = f", not counting {staying} workload that stays as before" if staying else ""
    assert withheld(run) == (f"9 of 9 workloads would be removed from namespace default{others} (limit: 50 %)",)
    assert withheld(planned) == withheld(run)
    assert (again.after, again.plan.withheld.digest) == (None, run.plan.withheld.digest)


@pytest.mark.parametrize(
    ("files", "edit", "count"),
    [
        pytest.param({TENTH: PLAIN}, DELETED, 10, id="all go"),
        pytest.param({TENTH: PLAIN.replace("replicas: 2", "replicas: 0")}, DELETED, 10, id="one without replicas goes, too"),
        pytest.param({TENTH: PLAIN}, {**DELETED, TENTH: f"{PLAIN}  [\n"}, 10, id="one is broken"),
        pytest.param({TENTH: PLAIN}, {**DELETED, "again.yaml": PLAIN}, 10, id="one is defined twice"),
        pytest.param({TENTH: OWN, "own.yaml": select("own", "first")}, DELETED, 0, id="one of another policy stays"),
        pytest.param({TENTH: STATEFUL}, {f"doomed/{n}.yaml": None for n in range(8)}, 0, id="another one stays, too"),
    ],
)
def test_what_goes_is_counted_and_what_a_policy_keeps_does_not_go(fleet: Fleet, files: Files, edit: Files, count: int) -> None:
    fill(fleet, 9, files)
    fleet.commit(edit, hour=1)
    expected = (f"{count} of {count} workloads would be removed from namespace default (limit: 50 %)",) if count else ()
    assert withheld(fleet.preview(1)) == withheld(fleet.reconcile(1)) == expected


def test_limits_in_percent_are_those_of_workloads_that_may_go(fleet: Fleet) -> None:
    """With the others 17 of 20 workloads would leave the cluster, which is less than 90 %."""
    stateful = {f"data/{n}.yaml": STATEFUL.replace("tenth", f"data-{n}") for n in range(3)}
    fill(fleet, 17, {**stateful, "gitsched.yaml": LIMITS.replace("}}}", "}, namespace: {removed: 100}}}")})
    fleet.commit({"doomed.yaml": select_both("second")}, hour=1)
    expected = ("17 of 17 workloads would leave cluster first, not counting 3 workloads that stay as before (limit: 90 %)",)
    assert withheld(fleet.preview(1)) == withheld(fleet.reconcile(1)) == expected


@pytest.mark.parametrize(("removed", "is_withheld"), [(3, False), (8, True)])
def test_few_that_may_go_count_with_all_others(fleet: Fleet, removed: int, is_withheld: bool) -> None:
    """Of 14 workloads, of which five are held, eight are more than half. Without these, the limit would only be for all nine."""
    stateful = {f"data/{n}.yaml": STATEFUL.replace("tenth", f"data-{n}") for n in range(5)}
    fill(fleet, 9, stateful)
    fleet.commit({"doomed.yaml": select_both("second")}, hour=1)  # the other five are held from now on
    fleet.reconcile(1)
    fleet.commit({f"doomed/{n}.yaml": None for n in range(removed)}, hour=3)
    found = withheld(fleet.reconcile(3))
    assert found == ((f"{removed} of 14 workloads would be removed from namespace default (limit: 50 %)",) if is_withheld else ())
