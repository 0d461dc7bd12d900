"""Rollouts of any workload in waves: a cluster keeps its files until those of the waves before have reported that they are healthy."""

from __future__ import annotations

from typing import Any

import pytest

from gitsched.model.time import format_time
from tests.scenarios.conftest import Fleet, at_hour, deployment, policy

STAGES = {"ash": "canary", "bru": "live", "cph": "live", "dub": "live"}
GROUPS = "{decisionGroups: [{groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {stage: canary}}}}]}"
SETTINGS = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: fleet}
spec:
  source: {facts: {clusterBranches: "facts/{cluster}"}}
  guard:
    fleet: {removed: 100, moved: 100, replicasLost: 100, replicasAdded: 100000}
    namespace: {removed: 100}
    cluster: {removed: 100}
"""


def cluster(name: str, stage: str) -> str:
    return f"""\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {{name: {name}, labels: {{stage: {stage}}}}}
spec: {{syncMode: Push}}
status: {{apiEnablements: [{{groupVersion: apps/v1, resources: [{{kind: Deployment, name: deployments}}]}}]}}
"""


def rollout(strategy: str, selectors: str = "", annotations: str = "{}") -> str:
    chosen = f"  resourceSelectors: {selectors}\n" if selectors else ""
    return f"""\
apiVersion: gitsched.io/v1alpha1
kind: Rollout
metadata: {{name: waves, annotations: {annotations}}}
spec:
{chosen}  groupStrategy: {GROUPS}
  rolloutStrategy: {strategy}
"""


def report(name: str, commit: str | None, health: str = "Healthy", hour: float = 0) -> str:
    return f"""\
apiVersion: gitsched.io/v1alpha1
kind: ClusterReport
metadata: {{name: {name}}}
spec: {{appliedCommit: "{commit}", health: {health}, since: "{format_time(at_hour(hour))}"}}
"""


def web(version: str) -> str:
    return f"{deployment('web')}  # {version}\n"


PER_GROUP = "{type: ProgressivePerGroup, progressivePerGroup: {progressDeadline: 2h}}"
ONE_BY_ONE = "{type: Progressive, progressive: {maxConcurrency: 1}}"


class Waves:
    """A fleet where `web` is everywhere; a version is what its file says."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet, self.hour = fleet, 0.0
        clusters = {f"clusters/{name}.yaml": cluster(name, stage) for name, stage in STAGES.items()}
        fleet.commit({"gitsched.yaml": SETTINGS, "policy.yaml": policy(",".join(STAGES)), "web.yaml": web("one"), **clusters})
        fleet.reconcile()

    def commit(self, **files: str) -> Any:
        """Commit files by their name without ending, an hour later, and reconcile."""
        self.hour += 1
        self.fleet.commit({f"{name}.yaml": text for name, text in files.items()}, hour=self.hour)
        return self.reconcile()

    def report(self, health: str = "Healthy", *names: str, commit: str | None = None) -> Any:
        texts = {f"reports/{name}.yaml": report(name, commit or self.fleet.head, health, self.hour) for name in names or STAGES}
        self.hour += 0.25
        self.fleet.commit(texts, hour=self.hour)
        return self.reconcile()

    def reconcile(self, wait: float = 0) -> Any:
        self.hour += wait
        return self.fleet.reconcile(self.hour)

    @property
    def versions(self) -> dict[str, str]:
        path = "default/deployment-web.yaml"
        names = [name for name in STAGES if f"clusters/{name}/{path}" in self.fleet.files()]
        return {name: self.fleet.read(f"clusters/{name}/{path}").strip().rpartition(" ")[2] for name in names}

    def updated(self, version: str) -> list[str]:
        return [name for name, found in self.versions.items() if found == version]


@pytest.fixture
def waves(fleet: Fleet) -> Waves:
    return Waves(fleet)


def codes(run: Any) -> list[str]:
    return [finding.code for finding in run.plan.findings if finding.code.startswith("rollout")]


def test_a_change_reaches_the_next_group_when_the_last_one_is_healthy(waves: Waves) -> None:
    waves.commit(rollout=rollout(PER_GROUP))
    old = waves.fleet.head
    run = waves.commit(web=web("two"))
    assert waves.updated("two") == ["ash"], "the canary is first"
    assert run.plan.next_wakeup == at_hour(waves.hour + 2), "the deadline"
    head = waves.fleet.head
    waves.report("Healthy", "ash", commit=old)
    assert (waves.updated("two"), waves.fleet.head) == (["ash"], head), "a report about an earlier commit does not count"
    waves.report("Progressing", "ash", commit=head)
    assert (waves.updated("two"), waves.fleet.head) == (["ash"], head), "waits, and writes nothing"
    run = waves.report("Healthy", "ash")
    assert waves.updated("two") == list(STAGES)
    assert codes(run) == []
    waves.report()
    assert "rollouts" not in waves.fleet.load("gitsched.json"), "nothing is recorded of a complete rollout"


def test_the_records_are_those_of_the_policy_at_once(waves: Waves) -> None:
    waves.commit(rollout=rollout(PER_GROUP))
    record = waves.fleet.binding("web-deployment")
    waves.commit(web=web("two"))
    assert [one["name"] for one in waves.fleet.binding("web-deployment")["spec"]["clusters"]] == [
        one["name"] for one in record["spec"]["clusters"]
    ]


def test_a_cluster_must_stay_healthy_for_the_minimal_success_time(waves: Waves) -> None:
    waves.commit(rollout=rollout("{type: Progressive, progressive: {maxConcurrency: 1, minSuccessTime: 30m}}"))
    waves.commit(web=web("two"))
    reported = waves.hour
    run = waves.report("Healthy", "ash")
    assert waves.updated("two") == ["ash"]
    assert run.plan.next_wakeup == at_hour(reported + 0.5)
    waves.reconcile(wait=0.25)
    assert waves.updated("two") == ["ash", "bru"], "without a commit or report"


@pytest.mark.parametrize("how", ["fix", "accept", "revert", "recover"])
def test_a_failure_stops_the_rollout_and_there_are_ways_on(waves: Waves, how: str) -> None:
    waves.commit(rollout=rollout(PER_GROUP))
    waves.commit(web=web("two"))
    run = waves.report("Degraded", "ash")
    assert codes(run) == ["rollout-stopped"]
    (finding,) = [finding for finding in run.plan.findings if finding.code == "rollout-stopped"]
    assert waves.updated("two") == ["ash"]
    if how == "fix":
        waves.commit(web=web("three"))
        assert waves.versions == {"ash": "three", "bru": "one", "cph": "one", "dub": "one"}
        waves.report("Healthy", "ash")
        assert waves.updated("three") == list(STAGES)
    elif how == "accept":
        text = finding.message.split('gitsched.io/accept-failures: "')[1].split('"')[0]
        waves.commit(rollout=rollout(PER_GROUP, annotations=f"{{gitsched.io/accept-failures: '{text}'}}"))
        assert waves.updated("two") == list(STAGES)
    elif how == "revert":
        run = waves.commit(web=web("one"))
        assert (waves.updated("one"), codes(run)) == (list(STAGES), [])
    else:
        run = waves.report("Healthy", "ash")
        assert (waves.updated("two"), codes(run)) == (list(STAGES), [])


def test_a_missed_deadline_is_a_failure(waves: Waves) -> None:
    waves.commit(rollout=rollout(PER_GROUP))
    waves.commit(web=web("two"))
    waves.report("Healthy", "bru")  # says nothing about the canary
    run = waves.reconcile(wait=2)
    assert (waves.updated("two"), codes(run)) == (["ash"], ["rollout-stopped"])


def test_failures_up_to_the_limit_do_not_stop_it(waves: Waves) -> None:
    waves.commit(rollout=rollout("{type: Progressive, progressive: {maxConcurrency: 1, maxFailures: 1}}"))
    waves.commit(web=web("two"))
    run = waves.report("Degraded", "ash")
    assert (waves.updated("two"), codes(run)) == (["ash", "bru"], ["rollout-cluster-failed"])
    run = waves.report("Degraded", "bru")
    assert (waves.updated("two"), codes(run)) == (["ash", "bru"], ["rollout-stopped"])


def test_without_reports_a_finding_says_that_it_never_goes_on(waves: Waves) -> None:
    waves.commit(gitsched=SETTINGS.replace("  source", "  # source"))
    run = waves.commit(rollout=rollout(PER_GROUP), web=web("two"))
    assert (waves.updated("two"), codes(run)) == (["ash"], ["rollout-without-reports"])


@pytest.mark.parametrize(
    ("selectors", "expected"),
    [
        ("[{apiVersion: apps/v1, kind: Deployment, name: web}]", ["ash"]),
        ("[{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy}]", ["ash"]),
        ("[{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {app: other}}}]", list(STAGES)),
    ],
    ids=["workload", "policy", "nothing"],
)
def test_a_rollout_selects_workloads_or_policies(waves: Waves, selectors: str, expected: list[str]) -> None:
    waves.commit(rollout=rollout(PER_GROUP, selectors))
    run = waves.commit(web=web("two"))
    assert waves.updated("two") == expected
    assert ("rollout-selects-nothing" in codes(run)) == (expected != ["ash"])


def test_a_new_workload_starts_in_the_first_wave(waves: Waves) -> None:
    waves.commit(rollout=rollout(PER_GROUP))
    waves.commit(api=deployment("api"))
    assert waves.fleet.delivered("default/deployment-api") == ["ash"]


def test_what_replaces_a_lost_copy_does_not_wait(waves: Waves) -> None:
    waves.commit(rollout=rollout(PER_GROUP), policy=policy("ash"))
    waves.reconcile(wait=5)
    assert set(waves.versions) == {"ash"}
    waves.commit(policy=policy("bru"))
    assert "bru" in waves.versions, "bru replaces ash"


def test_a_removed_rollout_delivers_what_waited(waves: Waves) -> None:
    waves.commit(rollout=rollout(PER_GROUP))
    waves.commit(web=web("two"))
    waves.hour += 1
    waves.fleet.commit({"rollout.yaml": None}, hour=waves.hour)
    waves.reconcile()
    assert waves.updated("two") == list(STAGES)
