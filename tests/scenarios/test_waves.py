"""Rollouts of any workload in waves: a cluster keeps its files until those of the waves before have reported that they are healthy."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitsched.apis.gitsched.rollout import parse_broken_rollout
from gitsched.model.document import Document, Key
from gitsched.model.explanation import Explanation
from gitsched.model.time import format_time
from gitsched.reconcile import Reconciler
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.reconcile.run import make_review
from gitsched.report.explanation import serialize_explanation, write_explanation
from gitsched.report.fleet_status import write_fleet_status
from gitsched.report.markdown import write_markdown
from gitsched.report.page import FleetView, write_page
from gitsched.report.rollouts import describe_rollouts
from gitsched.report.serialization import serialize_review
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


CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: docs, namespace: default}\n"
PER_GROUP = "{type: ProgressivePerGroup, progressivePerGroup: {progressDeadline: 2h}}"
ONE_BY_ONE = "{type: Progressive, progressive: {maxConcurrency: 1}}"


NUMBERS = count()


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


def test_a_rollout_begins_goes_on_and_ends_from_the_last_state(waves: Waves, tmp_path: Path) -> None:
    waves.commit(rollout=rollout(PER_GROUP, "[{apiVersion: apps/v1, kind: Deployment, name: web}]"), other=deployment("other"))
    waves.reconcile()
    fleet, complete, waiting = waves.fleet, [], []
    fleet.git("branch", "whole", "placements")

    def check(run: Any) -> None:
        name = f"none-{len(complete)}"
        whole = Reconciler(fleet.settings(waves.hour, cache=tmp_path / name, output_branch="whole")).run(at_hour(waves.hour))
        assert fleet.git("rev-parse", "whole") == fleet.git("rev-parse", "placements")
        for one in ("rollouts", "rollout_records", "next_wakeup", "findings"):
            assert getattr(run.plan, one) == getattr(whole.plan, one)
        complete.append(run.plan.complete)
        waiting.append([held.cluster for record in run.plan.rollout_records for held in record.held])

    check(waves.commit(web=web("two")))
    check(waves.commit(other=deployment("other", 6)))
    check(waves.report("Healthy", "ash"))
    check(waves.report())
    assert not any(complete)
    assert waiting == [["bru", "cph", "dub"]] * 2 + [[], []]


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
    assert waves.fleet.git("log", "-1", "--format=%s", "placements") == "place: rollout waves is stopped (Change)"
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


def test_a_report_from_the_future_does_not_suspend_the_deadline(waves: Waves) -> None:
    waves.commit(rollout=rollout(PER_GROUP))
    waves.commit(web=web("two"))
    future = report("ash", waves.fleet.head, hour=40_000)
    run = waves.commit(**{"reports/ash": future})
    assert run.plan.next_wakeup == at_hour(waves.hour + 1), "the deadline"
    run = waves.reconcile(wait=1)
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


def test_reports_come_from_the_facts_branch_of_a_cluster_too(waves: Waves) -> None:
    waves.commit(rollout=rollout(PER_GROUP))
    waves.commit(web=web("two"))
    fleet = waves.fleet
    for name, commit in (("bru", fleet.head), ("ash", fleet.head)):
        blob = fleet.git("hash-object", "-w", "--stdin", data=report("ash", commit, hour=waves.hour).encode())
        tree = fleet.git("mktree", data=f"100644 blob {blob}\treport.yaml\n".encode())
        fleet.git("update-ref", f"refs/heads/facts/{name}", fleet.git("commit-tree", tree, "-m", "Report"))
        waves.reconcile(wait=0.1)
        assert waves.updated("two") == (["ash"] if name == "bru" else list(STAGES)), "a cluster reports about itself alone"


def test_a_bundle_keeps_all_its_files_until_its_wave(waves: Waves) -> None:
    def settings_map(name: str, value: str) -> str:
        return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: default}}\ndata: {{value: '{value}'}}\n"

    def list_maps() -> dict[str, list[str]]:
        paths = [path.split("/") for path in waves.fleet.files() if path.startswith("clusters/") and "configmap" in path]
        return {cluster: sorted(path[3] for path in paths if path[1] == cluster) for cluster in STAGES}

    bundle = "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: base, namespace: default}\nspec: {path: base}\n"
    chosen = policy(",".join(STAGES), name="bundles", kind="Bundle").replace("apps/v1", "gitsched.io/v1alpha1")
    waves.commit(bundle=bundle, bundles=chosen, **{"base/one": settings_map("one", "1"), "base/old": settings_map("old", "1")})
    assert set(map(len, list_maps().values())) == {2}
    waves.commit(rollout=rollout(PER_GROUP, "[{apiVersion: gitsched.io/v1alpha1, kind: Bundle}]"))
    waves.hour += 1
    waves.fleet.commit({"base/old.yaml": None, "base/new.yaml": settings_map("new", "1")}, hour=waves.hour)
    for _ in range(2):
        waves.reconcile(wait=0.1)
        kept = ["configmap-old.yaml", "configmap-one.yaml"]
        assert list_maps() == {"ash": ["configmap-new.yaml", "configmap-one.yaml"], "bru": kept, "cph": kept, "dub": kept}
    waves.report("Healthy", "ash")
    assert set(map(tuple, list_maps().values())) == {("configmap-new.yaml", "configmap-one.yaml")}


def test_what_a_workload_brings_along_waits_with_it(waves: Waves) -> None:
    uses = "  template: {spec: {containers: [{name: web, image: i, envFrom: [{configMapRef: {name: web}}]}]}}\n"

    def settings_map(value: str) -> str:
        return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web, namespace: default}}\ndata: {{value: '{value}'}}\n"

    chosen = policy(",".join(STAGES), more="  propagateDeps: true\n")
    waves.commit(policy=chosen, web=deployment("web") + uses, settings=settings_map("one"))
    waves.commit(rollout=rollout(PER_GROUP, "[{apiVersion: apps/v1, kind: Deployment}]"))
    waves.commit(settings=settings_map("two"))
    values = {name: waves.fleet.load(f"clusters/{name}/default/configmap-web.yaml")["data"]["value"] for name in STAGES}
    assert values == {"ash": "two", "bru": "one", "cph": "one", "dub": "one"}


def test_a_first_delivery_that_waits_comes_at_once_when_the_other_copy_leaves(waves: Waves) -> None:
    waves.commit(policy=policy("ash"))
    waves.reconcile(wait=5)
    waves.commit(rollout=rollout(PER_GROUP))
    waves.commit(policy=policy("ash,bru"), web=web("two"))
    assert waves.versions == {"ash": "two"}, "bru waits"
    waves.commit(policy=policy("bru"))
    assert waves.versions == {"ash": "two", "bru": "two"}, "the copy in ash stays for the overlap"
    waves.reconcile(wait=5)
    assert waves.versions == {"bru": "two"}


def test_a_broken_document_keeps_what_waits(waves: Waves) -> None:
    waves.commit(rollout=rollout(PER_GROUP))
    waves.commit(web=web("two"))
    expected = waves.versions
    waves.commit(web=web("three") + "broken: [\n")
    assert waves.versions == expected
    waves.commit(web=web("three"))
    assert waves.updated("three") == ["ash"]


DEPLOYMENTS = "[{apiVersion: apps/v1, kind: Deployment, name: web}]"
BROKEN = "{type: Progressive, progressive: {minSuccessTime: soon}}"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (rollout(BROKEN, DEPLOYMENTS), "Deployment web"),
        (rollout(PER_GROUP).replace("{decisionGroups", "[decisionGroups"), "everything"),
        (rollout(PER_GROUP) + "---\n" + rollout(PER_GROUP, DEPLOYMENTS), "everything"),
    ],
    ids=["workload", "syntax", "twice"],
)
def test_a_rollout_that_was_never_valid_holds_what_it_names(waves: Waves, text: str, named: str) -> None:
    run = waves.commit(rollout=text, web=web("two"))
    assert waves.updated("one") == list(STAGES)
    finding = next(finding for finding in run.plan.findings if finding.code == "rollout-broken")
    assert finding.location.path == "rollout.yaml"
    assert named in finding.message
    assert "Deployment.apps/default/web keeps" in finding.message
    assert waves.commit(web=web("three")).plan.rollouts[0].state == "stopped"
    assert waves.updated("one") == list(STAGES)
    waves.commit(rollout=rollout(PER_GROUP))
    assert waves.updated("three") == ["ash"], "a corrected one goes on with the first wave"


@pytest.mark.parametrize(
    ("spec", "selected"),
    [
        ("{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: [web]}]}", ["web", "api"]),
        ("{resourceSelectors: [{kind: Deployment, name: web}], rolloutStrategy: 3}", ["web"]),
        ("{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: [app]}}]}", ["web", "api"]),
        ("{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {app: web}}}]}", ["web"]),
        ("{resourceSelectors: [{apiVersion: apps/v1, kind: Job}]}", []),
        ("{resourceSelectors: [{apiVersion: apps/v1}]}", None),
        ("{resourceSelectors: {kind: Deployment}}", None),
        ("[nonsense]", None),
    ],
)
def test_what_can_be_read_of_a_broken_rollout_selects_at_least_what_a_corrected_one_would(
    spec: str, selected: list[str] | None
) -> None:
    def make(body: Any) -> Document:
        return Document(Key("apps", body["kind"], "default", body["metadata"]["name"]), "apps/v1", body, None)

    found = parse_broken_rollout(make({"kind": "Rollout", "metadata": {"name": "x"}, "spec": yaml.safe_load(spec)}))
    assert (found.selectors is None) == (selected is None)
    templates = [make({"kind": "Deployment", "metadata": {"name": name, "labels": {"app": name}}}) for name in ("web", "api")]
    assert [one.key.name for one in templates if found.selects(one)] == (selected or [])


def test_what_a_broken_rollout_does_not_name_or_another_rolls_out_goes_on(waves: Waves) -> None:
    waves.commit(rollout=rollout(PER_GROUP))
    waves.commit(other=rollout(BROKEN).replace("waves", "other"), web=web("two"))
    assert waves.updated("two") == ["ash"], "a valid Rollout has it"
    waves.commit(rollout="# removed\n", other=rollout(BROKEN, "[{apiVersion: apps/v1, kind: Deployment, name: api}]"))
    assert waves.updated("two") == list(STAGES), "the other names another workload"


def test_a_report_about_an_unknown_cluster_is_a_finding(waves: Waves) -> None:
    run = waves.commit(reports=report("ash", "0" * 40) + "---\n" + report("nowhere", "0" * 40))
    (finding,) = (finding for finding in run.plan.findings if finding.code == "report-cluster-unknown")
    assert (finding.location.path, finding.location.line) == ("reports.yaml", 6)
    assert "has no cluster nowhere" in finding.message


def test_mistakes_in_a_rollout_have_a_line(waves: Waves) -> None:
    strategy = "{type: Progressive, all: {}, progressive: {minSuccessTime: soon, mandatoryDecisionGroups: [{groupName: none}]}}"
    run = waves.commit(rollout=rollout(strategy, annotations="{gitsched.io/accept-failures: ash}"), ash=report("ash", "0" * 40))
    found = {(f.code, f.location.line) for f in run.plan.findings if f.location and f.location.path == "rollout.yaml"}
    assert found == {("invalid-field", 6), ("invalid-field", 3), ("rollout-setting-unused", 6), ("rollout-broken", 1)}


def test_an_eviction_does_not_wait(waves: Waves) -> None:
    one_of_two = policy("bru", "cph")
    waves.commit(policy=one_of_two)
    waves.reconcile(wait=5)
    waves.commit(rollout=rollout(PER_GROUP))
    assert list(waves.versions) == ["bru"]
    taint = "taints: [{key: gone, effect: NoExecute}]"
    waves.commit(**{"clusters/bru": cluster("bru", "live").replace("syncMode: Push", f"syncMode: Push, {taint}")})
    assert "cph" in waves.versions


def test_plans_with_a_rollout_say_which_cluster_is_in_which_wave(waves: Waves) -> None:
    waves.commit(rollout=rollout(PER_GROUP))
    run = waves.commit(web=web("two"))
    review = make_review(run)
    assert [line.strip() for line in describe_rollouts(review.rollouts)] == [
        "Rollout waves (ProgressivePerGroup) is progressing, waits for reports of ash",
        "wave 1 (canary): ash gets the change now",
        "wave 2: bru, cph, dub wait",
    ]
    (found,) = serialize_review(review)["rollouts"]
    assert [(one["name"], one["wave"], one["state"]) for one in found["clusters"]] == [
        ("ash", "1 (canary)", "updated"),
        *((name, "2", "waiting") for name in ("bru", "cph", "dub")),
    ]
    for text in (write_page(review, FleetView({}, {})), write_markdown(review)):
        assert "bru, cph, dub wait" in text
    assert found["workloads"] == ["Deployment default/web"]


@pytest.mark.parametrize("empty", ["", "---\n", "---\n# the end\n---\n"])
def test_clusters_that_wait_keep_their_replicas_whatever_surrounds_the_document(empty: str, waves: Waves) -> None:
    waves.commit(web=f"{web('one')}{empty}")
    waves.commit(rollout=rollout(PER_GROUP))
    run = waves.commit(web=f"{web('two')}{empty}")
    assert run.plan.moves == ()
    assert {name: json.loads(waves.fleet.read(f"clusters/{name}/cluster.json"))["replicas"] for name in STAGES} == dict.fromkeys(
        STAGES, 2
    )


def test_status_shows_what_clusters_have_applied(waves: Waves) -> None:
    waves.commit(rollout=rollout(PER_GROUP))
    old = waves.fleet.head
    waves.commit(web=web("two"), unused=deployment("unused", namespace="other"))
    started = waves.fleet.git("rev-parse", "HEAD")
    waves.report("Healthy", "ash", commit=old)
    waves.report("Degraded", "bru")
    status = read_fleet_status(waves.fleet.settings(waves.hour))
    rows = {one.name: (one.report.health, one.behind) if one.report else None for one in status.clusters}
    assert rows == {"ash": ("Healthy", 1), "bru": ("Degraded", 0), "cph": None, "dub": None}
    assert status.needs_attention
    assert [one.commit for one in status.rollout_histories["waves"].sources] == [started]
    assert [(str(one.key), one.waiting) for one in status.workloads] == [("Deployment.apps/default/web", ("bru", "cph", "dub"))]
    lines = write_fleet_status(status).splitlines()
    assert lines[0] == "Needs attention: 1 of 4 clusters is not healthy, 1 of 4 clusters is behind."
    table = next(number for number, line in enumerate(lines) if line.startswith("CLUSTER"))
    assert lines[table].split() == ["CLUSTER", "READY", "WORKLOADS", "APPLIED", "HEALTHY", "BEHIND", "SINCE", "MESSAGE"]
    assert any(line.startswith("Rollout waves began ") and f") with {started[:10]} Change (" in line for line in lines)
    assert any(line.startswith("Rollout waves began ") for line in lines[:table])
    assert lines[table + 1].split()[:6] == ["ash", "Unknown", "1", str(old)[:10], "True", "1"]
    assert write_fleet_status(status, unclaimed=True).startswith("Deployment other/unused  ")


@pytest.mark.parametrize("reported", [True, False], ids=["a report without a workload", "no report before the deadline"])
def test_the_row_of_a_cluster_says_that_it_failed_in_a_rollout(reported: bool, waves: Waves) -> None:
    waves.commit(rollout=rollout(PER_GROUP))
    waves.commit(web=web("two"))
    if reported:
        waves.report("Degraded", "ash")
    else:
        waves.reconcile(3)
    lines = write_fleet_status(read_fleet_status(waves.fleet.settings(waves.hour))).splitlines()
    row = next(line for line in lines if line.startswith("ash "))
    detail = "reported a failure" if reported else "no report about the change before "
    assert f"failed in Rollout waves: {detail}" in row


def test_explain_says_why_a_workload_waits_for_its_wave_since_when_and_what_continues_it(waves: Waves) -> None:
    def explain() -> str:
        found = explain_resource(waves.fleet.settings(waves.hour + 1), "", None, "web")
        assert isinstance(found, Explanation)
        return write_explanation(found, 1000)

    waves.commit(rollout=rollout(PER_GROUP, "[{apiVersion: apps/v1, kind: Deployment, name: web}]"))
    assert "Rollout" not in explain()
    waves.commit(web=web("two"))
    source, begun = waves.fleet.git("rev-parse", "main").strip()[:10], format_time(at_hour(waves.hour))
    waiting = explain()
    assert (
        "waits for reports of ash: the change is in ash 2; the content from before in bru 2, cph 2, dub 2 (6 replicas)." in waiting
    )
    assert f"Rollout waves began {begun} (1h ago) with {source} Change" in waiting
    waves.report("Degraded", "ash")
    stop, failure = format_time(at_hour(waves.hour)), f'accept-failures: "ash@{begun}"'
    waves.commit(other=deployment("other"))
    for text in (explain(), write_fleet_status(read_fleet_status(waves.fleet.settings(waves.hour + 1)))):
        assert f"and stopped {stop} (2h ago)" in text, "not with a later run"
        assert "to go on, push a fix" in text
        assert failure in text
    assert (
        "The Rollout waves is stopped, because ash failed: the change is in ash 2; the content from before in bru 2, " in explain()
    )


def test_explain_says_that_a_cluster_has_nothing_of_a_workload_until_its_wave(waves: Waves) -> None:
    waves.commit(rollout=rollout(PER_GROUP, "[{apiVersion: apps/v1, kind: Deployment}]"), policy=policy("ash"))
    waves.commit(policy=policy("ash,bru"), web=web("two"))
    found = explain_resource(waves.fleet.settings(waves.hour), "Deployment", None, "web")
    assert isinstance(found, Explanation)
    assert found.state.endswith("waits for reports of ash: the change is in ash 2; nothing of it yet in bru (2 replicas wait).")
    (entry,) = serialize_explanation(found)["rollouts"]
    assert (entry["state"], entry["kept"], entry["lacking"], entry["stoppedAt"]) == ("progressing", [], ["bru"], None)


ACTIONS = st.lists(
    st.one_of(
        st.sampled_from(["two", "three", "one"]),
        st.tuples(st.sampled_from(["Healthy", "Degraded", "Progressing"]), st.sets(st.sampled_from(sorted(STAGES)), min_size=1)),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.integers(1, 3), actions=ACTIONS)
def test_never_more_clusters_change_than_allowed_and_all_are_equal_in_the_end(
    make_fleet: Callable[[str], Fleet], limit: int, actions: list[Any]
) -> None:
    waves = Waves(make_fleet(f"fleet-{next(NUMBERS)}"))
    waves.commit(rollout=rollout(f"{{type: Progressive, progressive: {{maxConcurrency: {limit}}}}}"))
    open_clusters: set[str] = set()
    last = "one"
    for action in [*actions, *([("Healthy", set(STAGES))] * (-(-len(STAGES) // limit) + 1))]:
        before = waves.versions
        if isinstance(action, str):
            last = action
            waves.commit(web=web(action))
        else:
            if action[0] != "Progressing":
                open_clusters -= action[1]
            waves.report(action[0], *sorted(action[1]))
        open_clusters |= {name for name, version in waves.versions.items() if version != before[name]}
        assert len(open_clusters) <= limit
    assert waves.updated(last) == list(STAGES)
    waves.fleet.commit({"rollout.yaml": None}, hour=waves.hour)
    head = waves.fleet.head
    waves.reconcile()
    assert waves.fleet.git("diff", "--stat", f"{head}", "placements", "--", "clusters", "status", "placements") == ""


def test_a_process_with_caches_writes_the_same_commits(make_fleet: Callable[[str], Fleet]) -> None:
    heads: list[list[str | None]] = []
    for name in ("cached", "fresh"):
        waves = Waves(make_fleet(name))
        found: list[str | None] = []
        reconciler = Reconciler(waves.fleet.settings())

        def run(waves: Waves = waves, keep: Reconciler | None = reconciler if name == "cached" else None) -> Any:
            return waves.fleet.reconcile(waves.hour) if keep is None else keep.run(at_hour(waves.hour))

        waves.reconcile = run  # type: ignore[method-assign]
        waves.commit(rollout=rollout(PER_GROUP))
        for step in ("two", "Degraded", "three", "Healthy", "Healthy", "four"):
            if step in ("Degraded", "Healthy"):
                waves.report(step, *waves.updated("three" if step == "Healthy" else "two"))
            else:
                waves.commit(web=web(step))
            found.append(waves.fleet.head)
        heads.append(found)
        assert waves.versions == {"ash": "four", "bru": "three", "cph": "three", "dub": "three"}
    assert heads[0] == heads[1]


WEB_TWO, WEB_THREE = {"web.yaml": web("two")}, {"web.yaml": web("three")}
OTHER = {"other.yaml": deployment("other")}
STOPPED: dict[str, tuple[list[list[tuple[str, dict[str, str]]]], list[str]]] = {
    "a commit of the same run that it does not roll out": ([[("Bad", WEB_TWO), ("Other", {"docs.yaml": CONFIG})]], ["Bad"]),
    "a later commit about another workload": ([[("Bad", WEB_TWO)], [("Other", OTHER)]], ["Other", "Bad"]),
    "a change in the middle of another one": ([[("First", WEB_TWO)], [("Bad", WEB_THREE)]], ["Bad", "First"]),
    "a change after the canaries had another one": ([[("First", WEB_TWO)], [], [("Bad", WEB_THREE)]], ["Bad"]),
}


@pytest.mark.parametrize("name", STOPPED)
def test_a_stopped_rollout_names_the_commits_that_made_its_changes(name: str, waves: Waves) -> None:
    runs, expected = STOPPED[name]
    waves.commit(rollout=rollout(PER_GROUP))
    for commits in runs:
        waves.hour += 1
        for message, files in commits:
            waves.fleet.commit(files, hour=waves.hour, message=message)
        if commits:
            waves.reconcile()
        else:
            waves.report("Healthy", "ash")
    for health in ("Progressing", "Degraded"):
        waves.report(health, "ash")
    status = read_fleet_status(waves.fleet.settings(waves.hour))
    assert [one.state for one in status.rollouts] == ["stopped"]
    assert [one.subject for one in status.rollout_histories["waves"].sources] == expected
    (line,) = (line for line in write_fleet_status(status, 1_000).splitlines() if line.startswith("Rollout waves began "))
    assert [f" {one} (" in line for one in expected] == [True] * len(expected)


def damage_last_run(fleet: Fleet, text: str) -> None:
    """Replace gitsched.json in the last commit of the output branch, and add a commit with the former files."""
    environment = {"GIT_INDEX_FILE": str(fleet.path.parent / "index")}
    fleet.git("read-tree", "placements", environment=environment)
    blob = fleet.git("hash-object", "-w", "--stdin", data=text.encode())
    fleet.git("update-index", "--cacheinfo", f"100644,{blob},gitsched.json", environment=environment)
    tree = fleet.git("write-tree", environment=environment)
    damaged = fleet.git("commit-tree", tree, "-p", "placements^", "-m", "Damage")
    commit = fleet.git(
        "commit-tree", "placements^{tree}", "-p", damaged, "-F", "-", data=fleet.git("log", "-1", "--format=%B").encode()
    )
    fleet.git("update-ref", "refs/heads/placements", commit)


@pytest.mark.parametrize("text", ["{", '{"formatVersion": 99}'], ids=["no JSON", "a later version"])
def test_where_the_record_of_the_first_run_of_a_rollout_is_damaged_only_its_commits_are_not_known(text: str, waves: Waves) -> None:
    waves.commit(rollout=rollout(PER_GROUP, "[{apiVersion: apps/v1, kind: Deployment, name: web}]"))
    waves.commit(web=web("two"))
    damage_last_run(waves.fleet, text)
    waves.report("Degraded", "ash")
    settings = waves.fleet.settings(waves.hour)
    explained = explain_resource(settings, "", None, "web")
    assert isinstance(explained, Explanation)
    for written in (write_fleet_status(read_fleet_status(settings), 1_000), write_explanation(explained, 1_000)):
        (line,) = (line for line in written.splitlines() if "Rollout waves began " in line)
        assert "; its commits cannot be read: " in line
        assert "gitsched.json" in line
