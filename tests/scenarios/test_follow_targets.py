"""Companions that follow their targets: they go to the clusters of the workloads behind them."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from tests.builders.ocm import bound_global_set, managed_cluster, placement, to_yaml

from .conftest import Fleet, cluster, policy
from .test_companions import list_found
from .test_overrides import mirror

WEB, SERVICE, INGRESS, SCALER = (
    "deployment-web",
    "service-web",
    "ingress.networking.k8s.io-web",
    "horizontalpodautoscaler.autoscaling-web",
)
COMPANIONS = (SERVICE, INGRESS, SCALER)
METADATA = "metadata: {name: web, namespace: default%s}\n"
OBJECTS = {
    WEB: "apiVersion: apps/v1\nkind: Deployment\nMETADATA"
    "spec:\n  replicas: 2\n  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: nginx}]}}\n",
    SERVICE: "apiVersion: v1\nkind: Service\nMETADATAspec: {selector: {app: web}}\n",
    INGRESS: "apiVersion: networking.k8s.io/v1\nkind: Ingress\nMETADATA"
    "spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}\n",
    SCALER: "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nMETADATA"
    "spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 3}\n",
}
FOLLOW = ", annotations: {gitsched.io/follow-targets: '%s'}"
SETTINGS = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {followTargets: true}\n"
FLEET = {f"clusters/{name}.yaml": cluster(name) for name in ("first", "second", "third")}


def write(**annotations: str) -> dict[str, str]:
    """Return the files of a Deployment and its companions; values are further members of the metadata by kind."""
    return {
        f"apps/{name}.yaml": text.replace("METADATA", METADATA % annotations.get(name.partition("-")[0].partition(".")[0], ""))
        for name, text in OBJECTS.items()
    }


def choose(*groups: str, metadata: str = "") -> dict[str, str]:
    text = policy(*groups).replace("  namespace: default\n", f"  namespace: default\n{metadata}", 1)
    return {"policies/all.yaml": text}


def where(fleet: Fleet) -> dict[str, list[str]]:
    return {name: found for name in OBJECTS if (found := fleet.where(f"default/{name}"))}


def everywhere(*clusters: str) -> dict[str, list[str]]:
    return {name: list(clusters) for name in OBJECTS}


ON_POLICY = "  annotations: {gitsched.io/follow-targets: 'true'}\n"


@pytest.mark.parametrize(
    ("files", "following"),
    [
        pytest.param(choose("first") | write(), (), id="nothing follows by default"),
        pytest.param(choose("first") | write() | {"gitsched.yaml": SETTINGS}, COMPANIONS, id="the setting"),
        pytest.param(choose("first", metadata=ON_POLICY) | write(), COMPANIONS, id="the annotation of the policy"),
        pytest.param(choose("first") | write(service=FOLLOW % "true"), (SERVICE,), id="the annotation of a companion"),
        pytest.param(
            choose("first") | write(service=FOLLOW % "false") | {"gitsched.yaml": SETTINGS},
            (INGRESS, SCALER),
            id="a companion that does not follow",
        ),
        pytest.param(
            choose("first", metadata=ON_POLICY.replace("true", "false")) | write() | {"gitsched.yaml": SETTINGS},
            (),
            id="a policy without followers",
        ),
    ],
)
def test_what_lets_companions_follow(fleet: Fleet, files: Mapping[str, str], following: tuple[str, ...]) -> None:
    fleet.commit({**FLEET, **files})
    fleet.reconcile()
    assert where(fleet) == {name: ["first"] for name in (WEB, *following)}


def test_another_value_of_the_annotation_is_a_finding_and_has_no_effect(fleet: Fleet) -> None:
    fleet.commit({**FLEET, **choose("first", metadata=ON_POLICY.replace("true", "yes")), **write(service=FOLLOW % "no")})
    run = fleet.reconcile()
    assert where(fleet) == {WEB: ["first"]}
    found = [finding for finding in run.plan.findings if finding.code == "companion-annotation"]
    assert [(finding.location.path, finding.location.line) for finding in found if finding.location] == [
        (f"apps/{SERVICE}.yaml", 1),
        ("policies/all.yaml", 1),
    ]


def test_followers_move_with_their_target_and_its_record_stays_the_same(fleet: Fleet) -> None:
    fleet.commit({**FLEET, **choose("first"), **write()})
    fleet.reconcile()
    alone = fleet.binding("web-deployment")
    fleet.commit({"gitsched.yaml": SETTINGS}, hour=1)
    fleet.reconcile(1)
    assert fleet.binding("web-deployment")["spec"] == alone["spec"]
    binding = fleet.binding("web-service")
    assert binding["spec"]["requiredBy"] == [
        {"namespace": "default", "name": "web-deployment", "clusters": alone["spec"]["clusters"]}
    ]
    assert "placement" not in binding["spec"]
    fleet.commit(choose("second,third"), hour=2)
    run = fleet.reconcile(2)
    assert where(fleet) == everywhere("second", "third")
    assert list_found(run) == []
    fleet.commit({"gitsched.yaml": None}, hour=3)
    run = fleet.reconcile(3)
    assert where(fleet) == {WEB: ["second", "third"]}
    (finding,) = list_found(run)
    assert finding.code == "companion-not-selected"


def test_a_follower_that_a_policy_selects_goes_to_the_clusters_of_both(fleet: Fleet) -> None:
    services = {"policies/services.yaml": policy("third", name="services", kind="Service")}
    fleet.commit({**FLEET, **choose("first"), **write(), **services, "gitsched.yaml": SETTINGS})
    run = fleet.reconcile()
    assert where(fleet) == everywhere("first") | {SERVICE: ["first", "third"]}
    assert [found.severity for found in list_found(run)] == ["info"] * len(list_found(run))


def test_overrides_apply_to_followers(fleet: Fleet) -> None:
    override = re.sub(
        "kind: Deployment|apps/v1", lambda found: {"apps/v1": "v1"}.get(found[0], "kind: Service"), mirror("m", "second")
    )
    override = re.sub(
        r"overriders:.*", "overriders: {labelsOverrider: [{operator: add, value: {zone: two}}]}", override, flags=re.DOTALL
    )
    fleet.commit({**FLEET, **choose("first,second"), **write(), "gitsched.yaml": SETTINGS, "override.yaml": override})
    fleet.reconcile()
    labelled = ["zone: two" in fleet.read(f"clusters/{name}/default/{SERVICE}.yaml") for name in ("first", "second")]
    assert labelled == [False, True]


@pytest.mark.parametrize("broken", [SERVICE, WEB])
def test_a_broken_document_removes_neither_a_follower_nor_its_target(fleet: Fleet, broken: str) -> None:
    fleet.commit({**FLEET, **choose("first"), **write(), "gitsched.yaml": SETTINGS})
    fleet.reconcile()
    fleet.commit({f"apps/{broken}.yaml": OBJECTS[broken].replace("METADATA", METADATA % "") + "  [\n"}, hour=1)
    fleet.reconcile(1)
    assert where(fleet) == everywhere("first")
    fleet.commit(write(), hour=2)
    fleet.reconcile(2)
    assert where(fleet) == everywhere("first")


REBALANCER = """\
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: again}
spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, name: web, namespace: default}]}
"""


@pytest.mark.parametrize("follows", [True, False])
def test_a_rebalancer_of_a_workload_takes_along_its_followers(fleet: Fleet, follows: bool) -> None:
    """Also those that a policy places: without followTargets these stay, as in Karmada, and a finding says so."""
    services = {"policies/services.yaml": policy("first", "second", name="services", kind="Service")}
    settings = {"gitsched.yaml": SETTINGS} if follows else {}
    fleet.commit({**FLEET, **choose("first", "second"), **write(), **services, **settings})
    fleet.reconcile()
    fleet.commit({"clusters/first.yaml": cluster("first", "power:NoExecute")}, hour=1)
    fleet.reconcile(2)
    fleet.commit({"clusters/first.yaml": cluster("first")}, hour=3)
    fleet.reconcile(3)
    assert where(fleet)[SERVICE] == ["second"]
    fleet.commit({"again.yaml": REBALANCER}, hour=4)
    run = fleet.reconcile(4)
    assert (where(fleet)[WEB], where(fleet)[SERVICE]) == (["first"], ["first"] if follows else ["second"])
    assert [found.resource for found in list_found(run) if found.code == "companion-separated"] == (
        [] if follows else [("Service", "default", "web")]
    )


@pytest.mark.parametrize("follows", [True, False])
def test_companions_stay_as_long_as_the_copy_of_their_target(fleet: Fleet, follows: bool) -> None:
    """Also a Service that goes to fewer clusters, and is new in none."""
    services = {} if follows else {"policies/services.yaml": policy("first,second", name="services", kind="Service")}
    settings = {"gitsched.yaml": SETTINGS} if follows else {}
    fleet.commit({**FLEET, **choose("first"), **write(), **services, **settings})
    fleet.reconcile()
    services = {name: policy("second", name="services", kind="Service") for name in services}
    fleet.commit({**choose("second"), **services}, hour=1)
    fleet.reconcile(1)
    expected = (WEB, *COMPANIONS) if follows else (WEB, SERVICE)
    assert list_delivered(fleet) == {name: ["first", "second"] for name in expected}
    fleet.reconcile(1.1)
    assert list_delivered(fleet) == {name: ["first", "second"] for name in expected}
    fleet.reconcile(2)
    assert list_delivered(fleet) == {name: ["second"] for name in expected}


def list_delivered(fleet: Fleet) -> dict[str, list[str]]:
    """Return the directories that have each object, with retained copies."""
    return {name: found for name in OBJECTS if (found := fleet.delivered(f"default/{name}"))}


PLACED = ", annotations: {cluster.open-cluster-management.io/placement: %s}"
HUB = {
    "sets.yaml": to_yaml(*bound_global_set("default")),
    "fleet.yaml": to_yaml(*(managed_cluster(name, {"is": name}) for name in ("ash", "bru"))),
    **{
        f"placements/{name}.yaml": to_yaml(
            placement(name, "default", predicates=[{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"is": name}}}}])
        )
        for name in ("ash", "bru")
    },
}


def test_followers_refer_to_the_placements_of_their_targets(fleet: Fleet) -> None:
    other = write(deployment=PLACED % "bru")[f"apps/{WEB}.yaml"].replace("name: web, namespace", "name: other, namespace")
    fleet.commit({**HUB, **write(deployment=PLACED % "ash"), "gitsched.yaml": SETTINGS, "apps/other.yaml": other})
    run = fleet.reconcile()
    assert where(fleet) == {WEB: ["ash"], SERVICE: ["ash", "bru"], INGRESS: ["ash", "bru"], SCALER: ["ash"]}
    assert list_found(run) == []
    fleet.commit({"apps/other.yaml": other.replace("bru", "ash")}, hour=1)
    fleet.reconcile(1)
    assert where(fleet) == everywhere("ash")
    fleet.commit({f"apps/{SERVICE}.yaml": write()[f"apps/{SERVICE}.yaml"] + "  [\n"}, hour=2)
    fleet.reconcile(2)
    assert where(fleet)[SERVICE] == ["ash"]


OTHERS = {
    f"apps/{name}-{number}.yaml": OBJECTS[name]
    .replace("METADATA", METADATA % ", labels: {rest: 'yes'}")
    .replace("name: web", f"name: other-{number}")
    .replace("app: web", f"app: other-{number}")
    for name in (WEB, SERVICE)
    for number in range(9)
}
"""Workloads beside which a single one is too few for the limits of the guard."""
REST = policy("first", name="rest").replace("Deployment}", "Deployment, labelSelector: {matchLabels: {rest: 'yes'}}}")
ONLY_WEB = policy("first").replace("Deployment}", "Deployment, name: web}")
BOTH = OBJECTS[WEB].replace("METADATA", METADATA % "").replace("name: web, ", "name: twin, ")
"""Another Deployment whose pods have the same labels."""
TWIN = policy("second", name="twin").replace("Deployment}", "Deployment, name: twin}")
FREEZE = SETTINGS.replace("spec: {", "spec: {guard: {freeze: audit}, ")
WITHHELD: dict[str, tuple[dict[str, str], list[str]]] = {
    "a mistyped name": ({"policies/all.yaml": ONLY_WEB.replace("name: web", "name: wbe")}, ["first"]),
    "a mistyped name, and others move": (
        {"policies/all.yaml": ONLY_WEB.replace("name: web", "name: wbe"), "policies/rest.yaml": REST.replace("first", "third")},
        ["first"],
    ),
    "a freeze": ({"gitsched.yaml": FREEZE, "policies/all.yaml": ONLY_WEB.replace("first", "second")}, ["first"]),
}


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("name", WITHHELD)
def test_what_follows_a_withheld_workload_is_withheld_as_well(fleet: Fleet, name: str, complete: bool) -> None:
    changes, clusters = WITHHELD[name]
    files = {"gitsched.yaml": SETTINGS, "policies/all.yaml": ONLY_WEB, "policies/rest.yaml": REST}
    fleet.commit({**FLEET, **write(), **OTHERS, **files})
    fleet.reconcile()
    fleet.commit(changes)
    if complete:
        fleet.cache = fleet.cache / "unknown"
    for _ in range(2):  # what is withheld once is withheld again
        planned = fleet.preview().plan
        run = fleet.reconcile().plan
        assert planned.withheld == run.withheld
        assert {move.key.kind for move in planned.withheld.moves} == {"Deployment", "Service", "Ingress", "HorizontalPodAutoscaler"}
        left_out = {move.key for move in planned.withheld.moves}
        assert [move for move in planned.moves if move.key not in left_out] == list(run.moves)
        assert where(fleet) == everywhere(*clusters)
        fleet.commit({"unrelated.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: unrelated, namespace: default}\n"})


def test_what_also_follows_a_workload_that_moves_is_not_withheld(fleet: Fleet) -> None:
    files = {"gitsched.yaml": SETTINGS, "policies/all.yaml": ONLY_WEB, "policies/rest.yaml": REST}
    twins = {"apps/twin.yaml": BOTH, "policies/twin.yaml": TWIN}
    fleet.commit({**FLEET, **write(), **OTHERS, **files, **twins})
    fleet.reconcile()
    assert fleet.where(f"default/{SERVICE}") == ["first", "second"]
    fleet.commit(
        {"policies/all.yaml": ONLY_WEB.replace("name: web", "name: wbe"), "policies/twin.yaml": TWIN.replace("second", "third")}
    )
    planned, run = fleet.preview().plan, fleet.reconcile().plan
    assert planned.withheld == run.withheld
    assert {move.key.kind for move in planned.withheld.moves} == {"Deployment", "HorizontalPodAutoscaler"}
    assert fleet.where(f"default/{SERVICE}") == ["first", "third"]
