"""A cause of a move is named only if the move does not happen without it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gitsched.model.changes import Cause, Move
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.report.review import Review
from gitsched.report.serialization import serialize_review

from .conftest import UNGUARDED, Fleet, cluster, deployment
from .test_dependencies import workload

Files = Mapping[str, str | bytes | None]


def team_policy(name: str, clusters: str, *, namespace: str = "default", label: str = "", spread: int = 0, more: str = "") -> str:
    """Return a policy for the Deployments of a team, which divides their replicas if it spreads them over a number of clusters."""
    team = label or name
    constraints = (
        f"    spreadConstraints: [{{spreadByField: cluster, minGroups: {spread}, maxGroups: {spread}}}]\n" if spread else ""
    )
    return (
        f"apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata:\n  name: {name}\n  namespace: {namespace}\nspec:\n"
        f"  resourceSelectors:\n  - apiVersion: apps/v1\n    kind: Deployment\n    labelSelector: {{matchLabels: {{team: {team}}}}}\n"
        f"  placement:\n    clusterAffinity: {{clusterNames: [{clusters}]}}\n{constraints}"
        f"    replicaScheduling: {{replicaSchedulingType: Duplicated}}\n{more}"
    )


def of_team(name: str, team: str, namespace: str = "default") -> str:
    return deployment(name, namespace=namespace).replace("metadata:\n", f"metadata:\n  labels: {{team: {team}}}\n", 1)


def compare(fleet: Fleet, base: str | None = "main", hour: float = 1) -> Review:
    return compare_plans(fleet.settings(hour, revision="HEAD" if base else None), base).review


def causes(review: Review) -> dict[str, list[str]]:
    assert all(cause.proved for move in review.moves for cause in move.causes)
    return {move.key.name: [cause.text for cause in move.causes] for move in review.moves}


def start(fleet: Fleet, files: Files) -> Fleet:
    """Commit and reconcile files; a branch `change` is checked out."""
    fleet.commit({"gitsched.yaml": UNGUARDED, **files})
    fleet.reconcile()
    fleet.git("checkout", "-q", "-b", "change")
    return fleet


CLUSTERS = {f"clusters/c{number}.yaml": cluster(f"c{number}") for number in range(12)}


@pytest.mark.parametrize("against", ["main", None])
def test_each_move_names_the_policy_that_moves_it(fleet: Fleet, against: str | None) -> None:
    """One commit edits the affinity of a policy and mistypes the selector of another."""
    teams = {"blue": "c0", "red": "c1"}
    files = {f"policies/{team}.yaml": team_policy(team, name) for team, name in teams.items()}
    start(fleet, {**CLUSTERS, **files, "apps/b.yaml": of_team("b", "blue"), "apps/r.yaml": of_team("r", "red")})
    fleet.commit(
        {"policies/blue.yaml": team_policy("blue", "c2"), "policies/red.yaml": team_policy("red", "c1", label="rde")}, hour=1
    )
    assert causes(compare(fleet, against)) == {
        "b": ["PropagationPolicy/default/blue: spec.placement.clusterAffinity.clusterNames[0] c0 -> c2"],
        "r": ["PropagationPolicy/default/red: spec.resourceSelectors[0].labelSelector.matchLabels.team red -> rde"],
    }


@pytest.mark.parametrize("against", ["main", None])
def test_workloads_that_no_policy_selects_any_more_name_their_own_policy(fleet: Fleet, against: str | None) -> None:
    teams = [f"t{number:02}" for number in range(12)]
    files = {f"policies/{team}.yaml": team_policy(team, "c0", namespace=team) for team in teams}
    apps = {f"apps/{team}-{n}.yaml": of_team(f"{team}-{n}", team, team) for team in teams for n in range(3)}
    start(fleet, {**CLUSTERS, **files, **apps})
    fleet.commit({f"policies/{team}.yaml": team_policy(team, "c0", namespace=team, label=f"x{team}") for team in teams}, hour=1)
    review = compare(fleet, against)
    assert len(review.moves) == 36
    for move in review.moves:
        assert [cause.text.partition(":")[0] for cause in move.causes] == [
            f"PropagationPolicy/{move.key.namespace}/{move.key.namespace}"
        ]


@pytest.mark.parametrize("against", ["main", None])
def test_a_search_that_ends_early_names_the_own_policy_of_attached_objects_too(
    fleet: Fleet, against: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The label of all selectors of ten policies is mistyped; the Deployments bring ConfigMaps along."""
    monkeypatch.setattr("gitsched.diff.causes.MIN_DECISIONS", 1_000)
    teams = [f"t{number}" for number in range(10)]
    kinds = "".join(
        f"  - {{apiVersion: v1, kind: {kind}, labelSelector: {{matchLabels: {{team: own}}}}}}\n" for kind in ("Service", "Pod")
    )

    def rules(team: str, label: str) -> str:
        text = team_policy(team, f"c0, {team.replace('t', 'c')}", namespace=team, label="own", more="  propagateDeps: true\n")
        return text.replace("  placement:\n", f"{kinds}  placement:\n").replace("{team: own}", f"{{{label}: own}}")

    apps = {f"apps/{team}.yaml": workload("web", "configmap/conf").replace("app: web", "team: own") for team in teams}
    conf = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf, namespace: default}\n"
    files = {path: f"{text}---\n{conf}".replace("default", path[5:7]) for path, text in apps.items()}
    start(fleet, {**CLUSTERS, **files, **{f"policies/{team}.yaml": rules(team, "team") for team in teams}})
    fleet.commit({f"policies/{team}.yaml": rules(team, "taem") for team in teams}, hour=1)
    moves = compare(fleet, against).moves
    assert len(moves) == 2 * len(teams)
    for move in moves:
        named = {cause.text.partition(":")[0] for cause in move.causes}
        assert named == {f"PropagationPolicy/{move.key.namespace}/{move.key.namespace}"}, str(move.key)


@pytest.mark.parametrize("against", ["main", None])
def test_tainted_clusters_and_not_an_edit_without_effect_are_the_cause(fleet: Fleet, against: str | None) -> None:
    """One commit taints ten clusters and edits spread constraints that alone move nothing."""
    every = ", ".join(f"c{number}" for number in range(12))
    apps = {f"apps/w{n}.yaml": of_team(f"w{n}", f"p{n % 3}") for n in range(9)}
    start(fleet, {**CLUSTERS, **apps, **{f"policies/p{n}.yaml": team_policy(f"p{n}", every, spread=2) for n in range(3)}})
    tainted = {f"clusters/c{n}.yaml": cluster(f"c{n}", "power:NoExecute") for n in range(10)}
    relaxed = {
        f"policies/p{n}.yaml": team_policy(f"p{n}", every, spread=2).replace("minGroups: 2", "minGroups: 1") for n in range(3)
    }
    fleet.commit({**tainted, **relaxed}, hour=1)
    review = compare(fleet, against)
    assert len(review.moves) == 9
    for move in review.moves:
        assert {cause.text.partition(":")[0] for cause in move.causes} == {f"Cluster/{name}" for name in move.before}
        assert all(cause.together for cause in move.causes)


def test_changes_that_only_move_together_are_each_a_cause(fleet: Fleet) -> None:
    """A policy admits another cluster, and its old one is tainted: without either change the workload stays."""
    start(fleet, {**CLUSTERS, "policies/p.yaml": team_policy("p", "c0, c1"), "apps/w.yaml": of_team("w", "p")})
    fleet.commit(
        {"clusters/c0.yaml": cluster("c0", "power:NoExecute"), "apps/w.yaml": of_team("w", "p").replace("2 #", "5 #")}, hour=1
    )
    (move,) = compare(fleet).moves
    assert {(cause.text.partition(":")[0], cause.together) for cause in move.causes} == {
        ("Cluster/c0", 1),
        ("Deployment/default/w", 1),
    }


def test_each_of_several_sufficient_changes_is_a_cause_alone(fleet: Fleet) -> None:
    """The label that a cluster loses and the label that the policy asks for in addition both exclude the cluster."""
    labelled = cluster("c0").replace("metadata:\n", "metadata:\n  labels: {tier: gold, zone: a}\n", 1)
    selected = team_policy("p", "c0").replace("{clusterNames: [c0]}", "{labelSelector: {matchLabels: {tier: gold}}}")
    start(fleet, {"clusters/c0.yaml": labelled, "policies/p.yaml": selected, "apps/w.yaml": of_team("w", "p")})
    changed = selected.replace("{tier: gold}}}", "{zone: b}}}")
    fleet.commit({"policies/p.yaml": changed, "clusters/c0.yaml": labelled.replace("zone: a", "zone: c")}, hour=1)
    (move,) = compare(fleet).moves
    assert {cause.text.partition(":")[0] for cause in move.causes} == {"PropagationPolicy/default/p"}
    assert all(cause.proved for cause in move.causes)


def test_a_deadline_is_the_cause_if_no_change_of_a_document_is(fleet: Fleet) -> None:
    tolerant = team_policy("p", "c0, c1", spread=1).replace(
        "    replicaScheduling",
        "    clusterTolerations: [{key: power, operator: Exists, effect: NoExecute, tolerationSeconds: 3600}]\n    replicaScheduling",
    )
    start(fleet, {**CLUSTERS, "policies/p.yaml": tolerant, "apps/w.yaml": of_team("w", "p")})
    since = cluster("c0", "power:NoExecute").replace("effect: NoExecute", "effect: NoExecute, timeAdded: '2026-03-02T09:00:00Z'")
    fleet.commit({"clusters/c0.yaml": since, "apps/other.yaml": of_team("other", "p")}, hour=1)
    fleet.reconcile(1, branch="change")
    assert not compare(fleet, None, hour=1.5).moves
    passed = ["time passed: 2026-03-02T09:00:00Z -> 2026-03-02T11:00:00Z"]
    assert causes(compare(fleet, None, hour=3)) == {"w": passed, "other": passed}


def test_settings_are_a_cause(fleet: Fleet) -> None:
    off = UNGUARDED + "  karmada: {taintEviction: false}\n"
    fleet.commit({**CLUSTERS, "policies/p.yaml": team_policy("p", "c0, c1", spread=1), "apps/w.yaml": of_team("w", "p")})
    fleet.commit({"gitsched.yaml": off})
    fleet.reconcile()
    fleet.commit({"clusters/c0.yaml": cluster("c0", "power:NoExecute")})
    fleet.reconcile(0.5)
    fleet.git("checkout", "-q", "-b", "change")
    fleet.commit({"gitsched.yaml": UNGUARDED}, hour=1)
    (move,) = compare(fleet).moves
    assert [cause.text for cause in move.causes] == ["Config/gitsched: spec.karmada removed: {taintEviction: false}"]


def test_json_says_which_causes_are_proved_and_which_belong_together(fleet: Fleet) -> None:
    start(fleet, {**CLUSTERS, "policies/p.yaml": team_policy("p", "c0, c1", spread=1), "apps/w.yaml": of_team("w", "p")})
    fleet.commit({"policies/p.yaml": team_policy("p", "c2")}, hour=1)
    (move,) = serialize_review(compare(fleet))["moves"]
    assert {(cause["proved"], cause["together"]) for cause in move["causes"]} == {(True, None)}


def test_an_unproved_change_is_not_the_main_reason() -> None:
    move = Move(("apps", "Deployment", "s", "w"), {"a": 1}, {}, "no cluster fits", (Cause("Cluster/a removed", proved=False),))
    assert move.main_reason == "no cluster fits"


ENVIRONMENTS = ("staging", "production")
OVERLAYS = {
    "base/kustomization.yaml": "resources: [web.yaml]\n",
    "base/web.yaml": deployment("web"),
    **{f"overlays/{name}/kustomization.yaml": f"namePrefix: {name}-\nresources: [../../base]\n" for name in ENVIRONMENTS},
    "bundle.yaml": "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: web, namespace: default}\nspec:\n  variants:\n"
    + "".join(f"  - {{path: overlays/{name}, clusters: {{matchLabels: {{environment: {name}}}}}}}\n" for name in ENVIRONMENTS),
    "policy.yaml": "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: web, namespace: default}\nspec:\n"
    "  resourceSelectors: [{apiVersion: gitsched.io/v1alpha1, kind: Bundle}]\n  placement: {clusterAffinity: {}}\n",
}


def label(name: str, **labels: str) -> str:
    found = ", ".join(f"{key}: {value}" for key, value in labels.items())
    return cluster(name).replace(f"  name: {name}\n", f"  name: {name}\n  labels: {{{found}}}\n")


LABELLED = {f"clusters/{name}.yaml": label(name, environment=name.partition("-")[0]) for name in (*ENVIRONMENTS, "staging-2")}
RENAMED = "Cluster/production: metadata.labels.environment production -> prod"


@pytest.mark.parametrize("against", ["main", None])
@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"clusters/production.yaml": label("production", environment="prod")}, RENAMED),
        ({"clusters/production.yaml": label("production", environment="prod", zone="b")}, RENAMED),
        (
            {f"clusters/{name}.yaml": label(name, environment="stage") for name in ("staging", "staging-2")},
            "Cluster/staging and 1 more: metadata.labels.environment staging -> stage",
        ),
        ({"bundle.yaml": OVERLAYS["bundle.yaml"].replace("environment: production", "environment: prod")}, ""),
    ],
    ids=["a label", "a label that variants read and another one", "labels of two clusters", "the Bundle"],
)
def test_bundles_that_leave_a_relabelled_cluster_name_its_label(
    fleet: Fleet, changes: dict[str, str], cause: str, against: str | None
) -> None:
    start(fleet, {**LABELLED, **OVERLAYS})
    fleet.commit(changes, hour=1)
    review = compare(fleet, against)
    (move,) = review.moves
    assert all(one.proved for one in move.causes)
    if cause:
        assert [one.text for one in move.causes] == [cause]
        (location,) = {one.location for one in move.causes}
        assert location is not None
        assert (location.path, location.line) == (next(iter(changes)), 5)
    else:
        assert [one.text.partition(" ")[0].rstrip(":") for one in move.causes] == ["Bundle/default/web"]
