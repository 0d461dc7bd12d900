"""A mistake in a file affects only that file: its workloads keep their placement, and all others are scheduled."""

from __future__ import annotations

import pytest

from gitsched.reconcile import RunResult

from .conftest import Fleet, cluster, deployment, policy

WEB = "default/deployment-web"
BRANCH = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {output: {branch: elsewhere}}\n"
SYNTAX = "  oops: [\n"
UNKNOWN_EFFECT = "  taints:\n  - {key: power, effect: NoExecut}\n"


def codes(run: RunResult) -> set[tuple[str, str]]:
    return {(finding.severity, finding.code) for finding in run.plan.findings if finding.severity != "info"}


def kept(fleet: Fleet) -> list[str]:
    return [path for path in fleet.files() if path.startswith("kept/")]


def directories(fleet: Fleet) -> dict[str, str]:
    """Return the files that delivery tools apply."""
    return {path: blob for path, blob in fleet.files().items() if path.startswith("clusters/")}


BREAKAGE = [
    pytest.param("apps/web.yaml", deployment("web") + SYNTAX, id="workload, no YAML"),
    pytest.param(
        "apps/web.yaml", deployment("web").replace("name: web\n", "name: web\n  labels: [a]\n", 1), id="workload, wrong labels"
    ),
    pytest.param("policies/all.yaml", policy("first", "second") + SYNTAX, id="policy, no YAML"),
    pytest.param("policies/all.yaml", policy("first", "second", scheduling="Twice"), id="policy, against its schema"),
    pytest.param("policies/all.yaml", policy("first", "first").replace("group-1", "group-0"), id="policy, against a rule"),
    pytest.param("clusters/first.yaml", cluster("first") + SYNTAX, id="cluster, no YAML"),
    pytest.param("clusters/first.yaml", cluster("first") + UNKNOWN_EFFECT, id="cluster, against its schema"),
    pytest.param("clusters/first.yaml", cluster("first") + "  region: south\n", id="cluster, a key twice"),
]


@pytest.mark.parametrize(("path", "text"), BREAKAGE)
def test_workloads_of_a_broken_file_stay_and_others_are_scheduled(pair: Fleet, path: str, text: str) -> None:
    pair.reconcile()
    before, valid = directories(pair), pair.git("rev-parse", f"main:{path}")
    pair.commit({path: text, "apps/other.yaml": deployment("other")}, hour=1)
    run = pair.reconcile(1)
    broken = [finding for finding in run.plan.findings if finding.severity == "error"]
    assert {finding.location.path for finding in broken if finding.location} == {path}
    assert all(finding.location and finding.location.line >= 1 for finding in broken)
    after = directories(pair)
    assert {path: after.get(path) for path in before if path.endswith("deployment-web.yaml")} == {
        path: blob for path, blob in before.items() if path.endswith("deployment-web.yaml")
    }
    assert pair.where("default/deployment-other") == ["first"], "new work is placed by what was last valid"
    assert pair.files()[f"kept/{path}"] == valid


@pytest.mark.parametrize(("path", "text"), BREAKAGE)
def test_last_valid_bytes_are_kept_until_the_file_is_fixed(pair: Fleet, path: str, text: str) -> None:
    pair.reconcile()
    good = (pair.path / path).read_text()
    pair.commit({path: text}, hour=1)
    pair.reconcile(1)
    for hour in (2, 3):
        pair.commit({f"apps/new-{hour}.yaml": deployment(f"new-{hour}")}, hour=hour)
        pair.reconcile(hour)
        assert kept(pair) == [f"kept/{path}"]
        assert pair.where(WEB) == ["first"]
    pair.commit({path: good}, hour=4)
    run = pair.reconcile(4)
    assert kept(pair) == []
    assert codes(run) == set()
    assert pair.where(WEB) == ["first"]


def test_valid_files_are_placed_in_a_repository_that_was_never_valid(pair: Fleet) -> None:
    pair.commit({"apps/bad.yaml": deployment("bad") + SYNTAX, "clusters/second.yaml": cluster("second") + UNKNOWN_EFFECT})
    run = pair.reconcile()
    assert pair.where(WEB) == ["first"]
    assert pair.where("default/deployment-bad") == []
    assert {severity for severity, _ in codes(run)} >= {"error"}
    assert kept(pair) == []


@pytest.mark.parametrize("typo", [SYNTAX, UNKNOWN_EFFECT, "  zone: a\n  zones: [b]\n"], ids=["no YAML", "schema", "rule"])
def test_a_typo_in_a_cluster_does_not_evict_its_workloads(pair: Fleet, typo: str) -> None:
    pair.reconcile()
    pair.commit({"clusters/first.yaml": cluster("first") + typo}, hour=1)
    for hour in (1, 30, 300):
        pair.reconcile(hour)
        assert pair.where(WEB) == ["first"]
    pair.commit({"clusters/first.yaml": cluster("first", "power:NoExecute")}, hour=301)
    pair.reconcile(301)
    assert pair.delivered(WEB) == ["first", "second"], "once mended, it says what it says"


def test_a_broken_document_does_not_affect_others_in_its_file(pair: Fleet) -> None:
    both = f"{deployment('one')}---\n{deployment('two')}"
    pair.commit({"apps/both.yaml": both})
    pair.reconcile()
    broken = both.replace("name: one\n", "name: one\n  labels: [a]\n", 1).replace("replicas: 2 #", "replicas: 3 #")
    pair.commit({"apps/both.yaml": broken}, hour=1)
    pair.reconcile(1)
    shown = [pair.load(f"clusters/first/default/deployment-{name}.yaml")["spec"]["replicas"] for name in ("one", "two")]
    assert shown == [2, 3]


ONE, TWO = deployment("one"), deployment("two")


def as_items(*texts: str) -> str:
    lines = [("  " if index else "- ") + line for text in texts for index, line in enumerate(text.splitlines())]
    return "\n".join(("apiVersion: v1", "kind: List", "items:", *lines, ""))


@pytest.mark.parametrize(
    ("right", "joined"),
    [
        pytest.param(f"{ONE}---\n{TWO}", ONE + TWO, id="no line ---"),
        pytest.param(as_items(ONE, TWO), as_items(ONE + TWO), id="no dash in a List"),
    ],
)
def test_two_objects_that_become_one_keep_their_placement(pair: Fleet, right: str, joined: str) -> None:
    pair.commit({"apps/both.yaml": right})
    pair.reconcile()
    pair.commit({"apps/both.yaml": joined}, hour=1)
    assert ("error", "duplicate-key") in codes(pair.reconcile(1))
    assert [pair.where(f"default/deployment-{name}") for name in ("one", "two")] == [["first"]] * 2


def test_a_duplicate_identity_keeps_its_decision_and_both_locations_are_named(pair: Fleet) -> None:
    pair.reconcile()
    pair.commit({"apps/copy.yaml": deployment("web", 9), "apps/web.yaml": deployment("web", 8)}, hour=1)
    run = pair.reconcile(1)
    (finding,) = [finding for finding in run.plan.findings if finding.code == "duplicate-identity"]
    assert finding.severity == "error"
    assert str(finding.location) == "apps/copy.yaml:1:1"
    assert "apps/web.yaml:1" in finding.message
    assert pair.load("clusters/first/default/deployment-web.yaml")["spec"]["replicas"] == 2
    assert ("warning", "stale-decision") in codes(run)
    pair.commit({"apps/copy.yaml": None}, hour=2)
    pair.reconcile(2)
    assert pair.load("clusters/first/default/deployment-web.yaml")["spec"]["replicas"] == 8


def test_a_duplicate_identity_is_reported_only_if_a_policy_selects_it(pair: Fleet) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes, namespace: default}\n"
    pair.commit({"a.yaml": text, "b.yaml": text})
    assert codes(pair.reconcile()) == set()


def test_documents_with_the_same_content_count_as_one_until_they_differ(pair: Fleet) -> None:
    text = deployment("twin")
    pair.commit({"apps/twin.yaml": text, "copy/twin.yaml": f"# a copy\n{text}"})
    assert codes(pair.reconcile()) == set()
    assert pair.where("default/deployment-twin")
    pair.commit({"copy/twin.yaml": deployment("twin", 9)}, hour=1)
    assert codes(pair.reconcile(1)) == {("error", "duplicate-identity"), ("warning", "stale-decision")}
    assert pair.load("clusters/first/default/deployment-twin.yaml")["spec"]["replicas"] == 2


def test_policies_and_clusters_with_the_same_content_count_as_one(pair: Fleet) -> None:
    originals = [*pair.path.glob("clusters/*.yaml"), *pair.path.glob("policies/*.yaml")]
    assert originals
    pair.commit({f"copy/{number}.yaml": original.read_text() for number, original in enumerate(originals)})
    assert codes(pair.reconcile()) == set()
    assert pair.where(WEB) == ["first"]


def test_kinds_of_a_policy_api_that_it_does_not_read_are_objects_like_others(pair: Fleet) -> None:
    claim = "apiVersion: cluster.open-cluster-management.io/v1alpha1\nkind: ClusterClaim\nmetadata: {name: version}\nspec: {value: '%s'}\n"
    pair.commit({"aws/claim.yaml": claim % "4.18", "vsphere/claim.yaml": claim % "4.17"})
    assert codes(pair.reconcile()) == set()
    selector = "{apiVersion: cluster.open-cluster-management.io/v1alpha1, kind: ClusterClaim}"
    claims = (
        "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: claims}\n"
        f"spec: {{resourceSelectors: [{selector}], placement: {{clusterAffinity: {{clusterNames: [first]}}}}}}\n"
    )
    pair.commit({"vsphere/claim.yaml": None, "policies/claims.yaml": claims}, hour=1)
    assert codes(pair.reconcile(1)) == set()
    assert pair.load("clusters/first/_/clusterclaim.cluster.open-cluster-management.io-version.yaml")["spec"] == {"value": "4.18"}


def test_a_duplicate_cluster_keeps_its_workloads(pair: Fleet) -> None:
    pair.reconcile()
    pair.commit({"clusters/copy.yaml": cluster("first", "power:NoExecute")}, hour=1)
    run = pair.reconcile(1)
    assert ("error", "duplicate-identity") in codes(run)
    assert pair.where(WEB) == ["first"]


@pytest.mark.parametrize(
    ("path", "place"), [("fleet/gitsched.yaml", "fleet/gitsched.yaml:1:1"), ("gitsched.yml", "gitsched.yml:1:1")]
)
def test_settings_in_an_ignored_file_are_reported(pair: Fleet, path: str, place: str) -> None:
    settings = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\n"
    pair.commit({path: settings, "gitsched.yaml": settings})
    stray = [finding for finding in pair.reconcile().plan.findings if finding.location and finding.location.path == path]
    assert [(finding.severity, finding.code, str(finding.location)) for finding in stray] == [("warning", "stray-config", place)]
    assert "duplicate-identity" not in {finding.code for finding in pair.preview().plan.findings}, (
        "an ignored file is not a duplicate"
    )
    pair.commit({path: None, "gitsched.yaml": f"{settings}---\n{settings.replace('gitsched}', 'other}')}"}, hour=1)
    stray = [finding for finding in pair.reconcile(1).plan.findings if finding.code == "stray-config"]
    assert [str(finding.location) for finding in stray] == ["gitsched.yaml:5:1"]


def test_a_config_of_another_api_group_is_not_a_settings_file(pair: Fleet) -> None:
    kubeconfig = "apiVersion: v1\nkind: Config\nmetadata: {name: k}\n---\n"
    pair.commit({"gitsched.yaml": kubeconfig + BRANCH})
    assert pair.reconcile().branch == "elsewhere"


def test_a_broken_configuration_falls_back_to_the_last_valid_one(pair: Fleet) -> None:
    settings = (
        "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n  karmada: {taintEviction: false}\n"
    )
    pair.commit({"gitsched.yaml": settings})
    pair.reconcile()
    pair.commit({"gitsched.yaml": settings.replace("false", "[")}, hour=1)
    pair.reconcile(1)
    pair.commit({"clusters/first.yaml": cluster("first", "power:NoExecute")}, hour=2)
    for hour in (2, 3):
        run = pair.reconcile(hour)
        assert {severity for severity, _ in codes(run)} >= {"error"}
        assert pair.where(WEB) == ["first"], "eviction was switched off"


def test_settings_without_a_config_keep_the_last_valid_ones_in_every_run(fleet: Fleet) -> None:
    settings = (
        "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {karmada: {autoscalerLimits: divide}}\n"
    )
    fleet.commit(
        {"first.yaml": cluster("first"), "web.yaml": deployment("web"), "policy.yaml": policy(), "gitsched.yaml": settings}
    )
    fleet.reconcile()
    for hour, text in enumerate(("kind: Nothing\n", "# empty\n"), 1):
        fleet.commit({"gitsched.yaml": text, "web.yaml": deployment("web", 2 + hour)}, hour=hour)
        for part in (0, 0.1):
            run = fleet.reconcile(hour + part)
            assert run.plan.totals.config.api_settings["karmada"].autoscaler_limits == "divide"
            codes = {finding.code for finding in run.plan.findings if finding.location and finding.location.path == "gitsched.yaml"}
            assert codes == {"invalid-config", "last-valid-used"}
    fleet.commit({"gitsched.yaml": settings.replace("divide", "keep")}, hour=4)
    assert "karmada" not in fleet.reconcile(4).plan.totals.config.api_settings
