"""`gitsched explain` of quarantined workloads, of clusters, and of kinds with a group."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import POLICY, TAINT, WORKLOAD, Run


@pytest.mark.parametrize("words", ["deployment.apps/shop/web", "deployments.apps/shop/web", "Deployment.v1.apps/shop/web"])
def test_a_kind_can_be_qualified_by_its_group(gitsched: Run, words: str) -> None:
    found = gitsched("explain", words)
    assert (found.returncode, found.stdout.partition(" ")[0]) == (0, "Deployment.apps/shop/web"), found.stderr


def test_a_kind_of_another_group_is_not_found(gitsched: Run) -> None:
    found = gitsched("explain", "deployment.example.org/shop/web")
    assert found.returncode == 1
    assert "there is no Deployment.example.org shop/web" in found.stderr


def test_a_namespace_can_be_left_out_where_the_name_is_unique(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    assert gitsched("explain", "deploy/web").stdout.startswith("Deployment.apps/shop/web ")
    commit(fleet, other=WORKLOAD.replace("namespace: shop", "namespace: office"))
    found = gitsched("explain", "deploy/web")
    assert (found.returncode, "stands for deployment/office/web, deployment/shop/web" in found.stderr) == (1, True)
    assert gitsched("explain", "deploy/web", "-n", "home").stderr.endswith("; there is one of that name in: office, shop\n")


def test_explain_of_a_duplicate_object_lists_its_locations(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    commit(fleet, copy=WORKLOAD.replace("replicas: 2", "replicas: 3"))
    assert gitsched("reconcile").returncode == 1
    found = gitsched("explain", "web")  # the name of its policy, too
    assert found.returncode == 0, found.stderr
    assert "is defined more than once" in found.stdout
    assert "copy.yaml:1, web.yaml:1" in found.stdout


def test_explain_of_a_broken_object_shows_its_finding(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    commit(fleet, sick=WORKLOAD.replace("name: web", "name: sick\n  labels: {a: 1}"))
    found = gitsched("explain", "deploy/shop/sick")
    assert found.returncode == 0, found.stderr
    assert "its document is broken" in found.stdout
    assert "[invalid-labels]" in found.stdout


@pytest.mark.parametrize(
    ("files", "findings", "policy"),
    [
        (
            {"policy": POLICY.replace("resourceSelectors", "resourceSelector")},
            ["missing-field", "unknown-field", "last-valid-used"],
            "it selects the workload by name",
        ),
        (
            {"policy": None, "other": POLICY.replace("name: web}", "name: [web]}")},
            ["wrong-type", "stale-decision"],
            "it claimed the workload in an earlier run, but its document is invalid now",
        ),
    ],
    ids=["an earlier version is used", "there is no earlier version of the file"],
)
def test_explain_of_a_workload_begins_with_the_errors_of_its_policy(
    gitsched: Run, fleet: Path, commit: Callable[..., None], files: dict[str, str | None], findings: list[str], policy: str
) -> None:
    assert gitsched("reconcile").returncode == 0
    commit(fleet, **files)
    assert gitsched("reconcile").returncode == 1, "it has errors"
    output = gitsched("explain", "web", "-n", "shop", COLUMNS="1000").stdout
    head, found, policies, *_ = output.split("\n\n")
    assert head.splitlines()[1] == "  Placed on 1 cluster with 2 replicas."
    assert [line.rsplit("[")[-1].rstrip("]") for line in found.splitlines()[1:]] == findings
    assert policies.splitlines()[1] == f"  PropagationPolicy/shop/web: {policy}" + (
        " with priority 0" if "selects" in policy else ""
    )


def test_an_explanation_after_an_eviction_shows_the_abandoned_group_and_the_line_of_each_rule(
    gitsched: Run, fleet: Path, commit: Callable[..., None]
) -> None:
    assert gitsched("reconcile").returncode == 0
    commit(fleet, one=(fleet / "one.yaml").read_text() + TAINT)
    assert gitsched("reconcile").returncode == 0
    output = gitsched("explain", "deploy/shop/web", COLUMNS="400").stdout
    lines = {tuple(line.split()[:2]): line for line in output.splitlines()}
    assert "one.yaml:9" in lines["one", "private"], "the taint's own line"
    assert "policy.yaml:14" in lines["one", "cloud"], "the label selector of the group"
    assert "untolerated taint" in lines["private:", "not"], "why the group that comes first is not used"
    assert lines["two", "cloud"].split()[2] == "yes"


def test_explain_shows_the_line_of_an_expired_toleration(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    seconds = "    clusterTolerations:\n      - {key: power, effect: NoExecute, operator: Exists, tolerationSeconds: 60}\n"
    taint = TAINT.replace("NoExecute", "NoExecute, timeAdded: '2026-01-01T00:00:00Z'")
    commit(fleet, policy=POLICY + seconds, one=(fleet / "one.yaml").read_text() + taint)
    output = gitsched("explain", "deploy/shop/web", COLUMNS="400").stdout
    assert "policy.yaml:16" in next(line for line in output.splitlines() if line.split()[:2] == ["one", "private"])


OVERRIDE = """\
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterOverridePolicy
metadata: {name: team}
spec:
  overrideRules:
  - overriders:
      labelsOverrider:
      - {operator: add, value: {team: web}}
"""
UNFIT = "      plaintext:\n      - {path: /spec/replicas, operator: replace, value: 1}\n      - {path: /spec/nothing, operator: remove}\n"


def test_explain_lists_overrides_and_the_line_of_an_inapplicable_one(
    gitsched: Run, fleet: Path, commit: Callable[..., None]
) -> None:
    commit(fleet, team=OVERRIDE)
    output = gitsched("explain", "deploy/shop/web").stdout
    assert "Overrides, in order\n  ClusterOverridePolicy/team (team.yaml:1): labelsOverrider in one\n" in output
    commit(fleet, team=OVERRIDE + UNFIT)
    output = gitsched("explain", "deploy/shop/web", COLUMNS="400").stdout
    assert "team.yaml:11:9: error: ClusterOverridePolicy/team cannot be applied to Deployment.apps/shop/web" in output


MANAGED = """\
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: spoke, labels: {ring: first}}
spec: {hubAcceptsClient: true}
"""
KRAKE = """\
api: kubernetes
kind: Cluster
metadata: {name: far, namespace: team}
spec: {kubeconfig: {contexts: [{name: far}], clusters: [{name: far}], users: [{name: far}]}}
status: {state: ONLINE}
---
api: kubernetes
kind: Application
metadata: {name: echo, namespace: team}
spec:
  manifest: [{apiVersion: v1, kind: ConfigMap, metadata: {name: e}}]
"""


@pytest.mark.parametrize(
    "words", ["cluster/spoke", "managedcluster/spoke", "ManagedCluster.cluster.open-cluster-management.io/spoke"]
)
def test_explain_cluster_accepts_a_managed_cluster(gitsched: Run, fleet: Path, commit: Callable[..., None], words: str) -> None:
    commit(fleet, spoke=MANAGED)
    found = gitsched("explain", words)
    assert (found.returncode, found.stdout.splitlines()[:2]) == (0, ["Cluster spoke  (spoke.yaml:1)", "  labels ring=first"])
    assert "1 workload: decided by karmada, which has no such cluster (Deployment shop/web)" in found.stdout


def test_a_cluster_that_is_gone_leads_to_what_removed_it_and_what_it_still_has(
    gitsched: Run, fleet: Path, commit: Callable[..., None], git: Callable[..., str]
) -> None:
    assert gitsched("reconcile").returncode == 0
    commit(fleet, two=None)
    removal = git("rev-parse", "HEAD", at=fleet)[:10]
    commit(fleet, policy=POLICY.replace("apps/v1, kind: Deployment, name: web", "apps/v1, kind: StatefulSet"))
    message = (
        f"gitsched: cluster two has no document any more: {removal} Change (Ada) removed it; to get it back: git revert {removal}; "
        "`gitsched tree two` shows what it still has\n"
    )
    for words in (("drain", "two"), ("uncordon", "two"), ("explain", "cluster", "two")):
        found = gitsched(*words)
        assert (found.returncode, found.stderr) == (1, message)
    assert "there is no cluster 'too'; there are: one\n" in gitsched("drain", "too").stderr
    assert gitsched("tree", "two").stdout.startswith("cluster two: gone")


def test_a_workload_whose_policy_was_removed_names_the_commit_and_what_allows_the_rest(
    gitsched: Run, fleet: Path, commit: Callable[..., None], git: Callable[..., str]
) -> None:
    gitsched("reconcile")
    gitsched("freeze", "network")
    commit(fleet, policy=None)
    removal = git("rev-parse", "HEAD", at=fleet)[:10]
    assert gitsched("reconcile").returncode == 1
    text = gitsched("explain", "shop/web", COLUMNS="400").stdout
    assert (
        "Policy\n"
        "  no policy selects it\n"
        "  the claim of PropagationPolicy/shop/web has ended: that policy was deleted by "
        f"{removal} Change (Ada); to get it back: git revert {removal}\n"
    ) in text
    trigger = "Not scheduled: no policy selects it. The freeze withholds that it becomes unplaced: "
    assert f"Trigger\n  {trigger}to allow it, add the trailer Gitsched-Allow: " in text
    commit(fleet, policy=POLICY.replace("kind: Deployment, name: web", "kind: Deployment, name: api"))
    text = gitsched("explain", "shop/web", COLUMNS="400").stdout
    assert "the claim of PropagationPolicy/shop/web has ended: it no longer selects the workload\n" in text
    assert f"Trigger\n  {trigger}" in text


def test_explain_finds_a_krake_cluster_by_its_directory_name(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    commit(fleet, krake=KRAKE)
    assert "Would run here: 1 workload" in gitsched("explain", "cluster/team.far").stdout
    assert gitsched("tree", "team.far").stderr == (
        "gitsched: there is no output branch placements yet: run gitsched reconcile first; to look at what clusters would get, gitsched "
        "reconcile --output-branch preview commits it to another branch, pushing nothing\n"
    )
    gitsched("reconcile", "--output-branch", "preview")
    assert "cluster team.far: ready; 1 workload" in gitsched("tree", "team.far", "--output-branch", "preview").stdout
    assert "Would run here: 1 workload" in gitsched("explain", "cluster/team.far").stdout
    gitsched("reconcile")
    assert "Running here: 1 workload" in gitsched("explain", "cluster/team.far").stdout
    assert "which has no such cluster (Application team/echo)" in gitsched("explain", "cluster/two", COLUMNS="200").stdout


def test_why_not_takes_the_name_of_a_krake_cluster_without_its_namespace(
    gitsched: Run, fleet: Path, commit: Callable[..., None]
) -> None:
    """A cluster of the workload's namespace is meant before others; of several others, none is."""
    clusters, application = KRAKE.split("---\n")
    others = [clusters.replace("team", place).replace("far", name) for place, name in (("a", "far"), ("a", "so"), ("b", "so"))]
    commit(fleet, krake="---\n".join((clusters, *others, application)))
    assert gitsched("reconcile").returncode == 0
    assert "runs on team.far" in gitsched("explain", "application/echo", "--why-not", "far").stdout
    assert "a.far: at least it were in the namespace team" in gitsched("explain", "application/echo", "--why-not", "a.far").stdout
    found = gitsched("explain", "application/echo", "--why-not", "so")
    assert (found.returncode, "there is no cluster 'so'; did you mean one of a.so, b.so?" in found.stderr) == (1, True), (
        found.stderr
    )


def test_why_not_says_that_a_workload_stays_where_a_constraint_excludes_it(
    gitsched: Run, fleet: Path, commit: Callable[..., None]
) -> None:
    here = KRAKE.replace("team}\nspec: {k", "team, labels: {location: DE}}\nspec: {k")
    commit(fleet, krake=here)
    assert gitsched("reconcile").returncode == 0
    assert "It stays" not in gitsched("explain", "application/echo", "--why-not", "far").stdout
    commit(fleet, krake=here + '  constraints: {cluster: {labels: ["location is IE"]}}\n')
    for _ in range(2):  # before the run, and after it
        output = gitsched("explain", "application/echo", "--why-not", "far", COLUMNS="1000").stdout
        assert "  It stays on team.far, although it does not fit there: label constraint location == IE: it is DE.\n" in output
        assert "runs on team.far" in output
        gitsched("reconcile")


def test_why_not_of_an_object_that_no_policy_selects_says_so(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    commit(fleet, lonely="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lonely}\n")
    for _ in range(2):
        output = gitsched("explain", "cm/lonely", "--why-not", "two").stdout
        assert output.splitlines()[1] == "  No policy selects it, so no cluster gets it."
        gitsched("reconcile")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("deplyoment/shop/web", "nothing else of that kind; did you mean Deployment?"),
        ("shpo/web", "there is no shpo web in the source, and nothing else of that kind; did you mean shop/web?"),
        ("deploy/shop/wbe", "there is no Deployment shop/wbe in the source; did you mean web?"),
        ("deploy/shop/checkout", "there is no Deployment shop/checkout in the source; there are: web\n"),
        ("cluster/on", "there is no Cluster on in the source; did you mean one?"),
        ("cronjob/shop/web", "there is no CronJob shop/web in the source, and nothing else of that kind\n"),
    ],
)
def test_similar_names_are_suggested(gitsched: Run, words: str, message: str) -> None:
    found = gitsched("explain", words)
    assert (found.returncode, message in found.stderr) == (1, True), found.stderr


def test_explain_finds_an_object_that_no_policy_selects(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    commit(fleet, lonely="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lonely}\n")
    found = gitsched("explain", "cm/lonely")
    assert (found.returncode, found.stdout) == (
        0,
        "ConfigMap/default/lonely  (lonely.yaml:1)\n\nPolicy\n  no policy selects it\n",
    ), found


def test_the_misspelt_selector_of_the_policy_that_nearly_selects_an_object_is_shown(
    gitsched: Run, fleet: Path, commit: Callable[..., None]
) -> None:
    commit(fleet, policy=POLICY.replace("name: web}", "name: wbe}"))
    found = gitsched("explain", "deploy/web").stdout
    assert "PropagationPolicy/shop/web selects nothing: namespace shop has no Deployment wbe; did you mean web?" in found
    assert "no policy selects it: PropagationPolicy/shop/web selects Deployment wbe (policy.yaml:1); this one is web" in found


def test_explain_names_the_policy_whose_namespace_is_misspelled(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    assert gitsched("reconcile").returncode == 0
    commit(fleet, policy=POLICY.replace("namespace: shop", "namespace: shpo"))
    near = "no policy selects it: PropagationPolicy/shpo/web selects Deployment web in namespace shpo (policy.yaml:1); this one is in shop"
    warning = (
        "policy.yaml:5:14: warning: PropagationPolicy/shpo/web selects nothing: namespace shpo has no Deployment web; did you mean"
    )
    for _ in range(2):  # before the run, and after the guard has withheld that the workload stops
        output = gitsched("explain", "web", "-n", "shop", COLUMNS="1000").stdout
        assert near in output
        assert warning in output
        assert "The guard withholds that it becomes unplaced" in output
        assert gitsched("reconcile").returncode == 1
