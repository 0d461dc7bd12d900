"""What the recorded branches are about: sources that use what an output branch records, each with runs in the middle of something.

A story commits, reconciles, and stops while copies stay for an overlap, evictions and rollouts are in progress, or changes are withheld.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

from gitsched.reconcile.adoption.running_fleet import AdoptionInputs, adopt
from gitsched.reconcile.output.freeze import set_freeze
from tests.builders import krake, ocm
from tests.builders.knative import adapter, node, pods, source
from tests.builders.knative import settings as vreplica_settings
from tests.metrics.conftest import Response, Server, vector
from tests.scenarios import histories, test_adoption, test_application_failover, test_guard, test_rollouts, test_waves
from tests.scenarios.conftest import Fleet, cluster, deployment, policy
from tests.scenarios.facts_histories import BROKEN, DYNAMIC, FACTS, REPORT, SHARED, commit_branch, format_hour
from tests.scenarios.facts_histories import SETTINGS as FACTS_SETTINGS
from tests.scenarios.test_bundle_delivery import BASE, BUNDLE, URL
from tests.scenarios.test_bundle_delivery import POLICY as BUNDLE_POLICY

Files = dict[str, str | bytes | None]
MINUTE = 1 / 60
TENANTS = Path(__file__).parents[1] / "scenarios" / "tenants.yaml"
TOLERANT = "    clusterTolerations: [{key: power, operator: Exists, effect: NoExecute, tolerationSeconds: 3600}]\n"


class Step(NamedTuple):
    """A commit of files, if there are any, and a run at an hour."""

    hour: float
    files: Files = {}
    message: str = "Change"


class Story(NamedTuple):
    """A history that `write` makes in a fleet without files, until `hour`, that of its last run; and what happens later. `options`
    are those of all runs."""

    write: Callable[[Fleet, Path], None]
    hour: float
    later: tuple[Step, ...]
    options: dict[str, Any] = {}


def within(namespace: str, text: str) -> str:
    return text.replace("namespace: default", f"namespace: {namespace}")


def one(name: str, *groups: str, more: str = "", scheduling: str = "Duplicated") -> str:
    """Return a policy in the namespace `shop` for the Deployment of the same name."""
    text = policy(*groups, name=name, more=more, scheduling=scheduling)
    return within("shop", text.replace("kind: Deployment}", f"kind: Deployment, name: {name}}}"))


def settings(spec: str) -> str:
    return f"apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {{name: gitsched}}\nspec:\n{spec}"


def write_moves(fleet: Fleet, _: Path) -> None:
    """Moves, an eviction, a toleration, an unhealthy workload, a cluster that retires, a held workload and a file that is broken, at once.

    Beside these are dependencies, overrides, an autoscaler, a rebalancer, companions and claims."""
    files = histories.start_karmada(Random(3)) | {
        "policies/all.yaml": policy(
            "first,third", "second", scheduling="Divided", more=histories.TOLERANT + "  propagateDeps: true\n"
        ),
        "gitsched.yaml": (histories.SETTINGS % ("{AfterStabilization: 30m}", 100, 1440, "true")).replace("moved: 40", "moved: 100"),
        "policies/claims.yaml": policy("first,third", name="claims", kind="PersistentVolumeClaim").replace("apps/v1", "v1"),
        "policies/maps.yaml": policy("first,third,fourth", name="maps", kind="ConfigMap"),
        "policies/scalers.yaml": policy("first,third", name="scalers", kind="HorizontalPodAutoscaler").replace(
            "apps/v1", "autoscaling/v2"
        ),
        "rebalancer.yaml": histories.REBALANCER % (1, "web"),
        "clusters/fourth.yaml": cluster("fourth", region="south"),
        "clusters/fifth.yaml": cluster("fifth", region="south"),
        "clusters/leaving.yaml": cluster("leaving", region="south"),
        "shop/namespace.yaml": histories.NAMESPACE % "shop",
        **{f"shop/{name}.yaml": deployment(name, 4, "shop") for name in ("shift", "drain", "wait", "typo", "job")},
        "policies/shift.yaml": one("shift", "fourth,fifth", scheduling="Divided"),
        "policies/drain.yaml": one("drain", "fourth", "fifth"),
        "policies/wait.yaml": one("wait", "fourth", "first", more=TOLERANT),
        "policies/typo.yaml": one("typo", "leaving,second"),
        "policies/health.yaml": one("web", "first", "second", more=test_application_failover.RULES % "Gracefully"),
        "shop/web.yaml": deployment("web", 2, "shop"),
        "health.yaml": within("shop", test_application_failover.health("first:Healthy")),
    }
    fleet.commit(files)
    fleet.reconcile()
    claims = policy("second,third", name="claims", kind="PersistentVolumeClaim").replace("apps/v1", "v1")
    changes: Files = {
        "policies/all.yaml": policy("second,third", scheduling="Divided", more=histories.TOLERANT + "  propagateDeps: true\n"),
        "policies/claims.yaml": claims,
        "policies/shift.yaml": one("shift", "first,fifth", scheduling="Divided"),
        "policies/typo.yaml": one("typo", "second") + "  [\n",
        "clusters/fourth.yaml": cluster("fourth", "power:NoExecute", region="south"),
        "clusters/leaving.yaml": None,
        "health.yaml": within("shop", test_application_failover.health("first:Unhealthy")),
    }
    fleet.commit(changes, hour=1)
    fleet.reconcile(1)


MOVES = Story(
    write_moves,
    1,
    (
        Step(1 + 5 * MINUTE, {"shop/shift.yaml": deployment("shift", 5, "shop")}),
        Step(1.5),
        Step(2.25),
        Step(3, {"rebalancer.yaml": histories.REBALANCER % (2, "api"), "policies/typo.yaml": one("typo", "second")}),
        Step(30),
    ),
)


def write_waves(fleet: Fleet, _: Path) -> None:
    """Two rollouts in progress: one of workloads, which waits for its canary, and one of a ManifestWorkReplicaSet with a failure."""
    strategy = "{type: ProgressivePerGroup, progressivePerGroup: {minSuccessTime: 10m, progressDeadline: 2h}}"
    stages = test_waves.STAGES
    files: Files = {f"clusters/{name}.yaml": test_waves.cluster(name, stage) for name, stage in stages.items()}
    files |= {f"managed/{name}.yaml": test_rollouts.managed(name, stage) for name, stage in test_rollouts.STAGES.items()}
    files |= {"managed/sets.yaml": test_rollouts.SETS, "managed/placement.yaml": test_rollouts.PLACEMENT}
    files |= {
        "gitsched.yaml": test_waves.SETTINGS,
        "policy.yaml": policy(",".join(stages)),
        "web.yaml": test_waves.web("one"),
        "api.yaml": deployment("api"),
        "rollout.yaml": test_waves.rollout(strategy),
        "works.yaml": test_rollouts.replica_set("green", "{type: All}"),
    }
    fleet.commit(files)
    fleet.reconcile()
    works = test_rollouts.replica_set("blue", "{type: ProgressivePerGroup, progressivePerGroup: {maxFailures: 1}}")
    fleet.commit({"web.yaml": test_waves.web("two"), "works.yaml": works}, hour=1)
    fleet.reconcile(1)
    success = test_rollouts.report(ash="Success 2026-03-02T09:30:00Z", bru="Failure 2026-03-02T09:30:00Z")
    reports = {"reports/ash.yaml": test_waves.report("ash", fleet.head, hour=1.5), "report.yaml": success}
    fleet.commit(reports, hour=1.5)
    fleet.reconcile(1.5)


WAVES = Story(
    write_waves,
    1.5,
    (
        Step(1.5 + 5 * MINUTE, {"api.yaml": deployment("api", 3)}),
        Step(1.75),
        Step(2, {"web.yaml": test_waves.web("three")}),
        Step(5),
    ),
)


def write_placements(fleet: Fleet, _: Path) -> None:
    """Placements with scores that expire, decision groups, balance and steadiness, a toleration, and objects that follow them."""
    files: Files = dict(histories.start_placements(Random(5)))
    groups = {"groupStrategy": {"decisionGroups": [test_rollouts.CANARY_GROUP], "clustersPerDecisionGroup": 1}}
    toleration = {"key": "power", "operator": "Exists", "tolerationSeconds": 3600}
    files |= {
        "managed/ash.yaml": test_rollouts.managed("ash", "canary"),
        "managed/groups.yaml": ocm.to_yaml(ocm.placement("groups", "shop", decisionStrategy=groups)),
        "managed/patient.yaml": ocm.to_yaml(ocm.placement("patient", "shop", 1, tolerations=[toleration])),
        "shop/patient.yaml": histories.FOLLOWER % ("patient", "patient", 1),
        "shop/grouped.yaml": histories.FOLLOWER % ("grouped", "groups", 1),
        "shop/web.yaml": deployment("web", 3, "shop").replace(
            "  namespace: shop", f"  namespace: shop\n  annotations: {{{ocm.PLACEMENT_ANNOTATION}: everywhere}}"
        ),
    }
    fleet.commit(files)
    fleet.reconcile()
    chosen = fleet.where("shop/configmap-patient")[0]
    tainted = test_rollouts.managed(chosen, "live", ocm.taint("power", "NoSelect") | {"timeAdded": format_hour(1)})
    fleet.commit({f"managed/{chosen}.yaml": tainted, "managed/placement.yaml": histories.PLACEMENT % (3, 0)}, hour=1)
    fleet.reconcile(1)


PLACEMENTS = Story(
    write_placements,
    1,
    (
        Step(1 + 5 * MINUTE, {"shop/left.yaml": histories.FOLLOWER % ("left", "everywhere", 2)}),
        Step(1.25, {"managed/placement.yaml": histories.PLACEMENT % (1, 1)}),
        Step(2.5),
        Step(12),
    ),
)


def write_applications(fleet: Fleet, _: Path) -> None:
    """Applications by labels and live metrics, one of which fails, a cluster in a cloud and a MagnumCluster in a project."""
    server = Server()
    values: dict[str, float | None] = {"load": 0.3, "heat": 0.6, "cost": None}

    def answer(request: Any) -> Response:
        name = request.path.partition("query=")[2]
        return Response(status=503) if values[name] is None else vector(name, str(values[name]))

    server.handle = answer
    zone = "  constraints: {cluster: {labels: [location is DE]}}\n"
    files: Files = {
        "metrics.yaml": "---\n".join(krake.global_metric_yaml(name) for name in values),
        "provider.yaml": krake.global_provider_yaml("prometheus", f"{{url: '{server.url}'}}"),
        "gitsched.yaml": settings("  krake: {rescheduleAfter: 600}\n"),
        **{
            f"sites/{name}.yaml": krake.cluster_yaml(name, metric)
            for name, metric in zip(("ash", "bru", "cph"), values, strict=True)
        },
        "apps/echo.yaml": krake.application_yaml("echo", zone),
        "apps/free.yaml": krake.application_yaml("free"),
        "apps/still.yaml": krake.application_yaml("still", "  constraints: {migration: false}\n"),
        "sites/cloudy.yaml": yaml.safe_dump(krake.cluster("cloudy", None, tosca=krake.TOSCA)),
        "clouds.yaml": ocm.to_yaml(krake.cloud("east", labels={"cheap": "yes"}), krake.cloud("west")),
        "magnum.yaml": ocm.to_yaml(krake.project("small"), krake.project("large"), krake.magnum_cluster()),
    }
    try:
        fleet.commit(files)
        fleet.reconcile()
        values |= {"load": 0.9, "heat": 0.1}
        fleet.commit({"apps/new.yaml": krake.application_yaml("new")}, hour=1)
        fleet.reconcile(1)
    finally:
        server.close()


APPLICATIONS = Story(
    write_applications,
    1,
    (
        Step(1 + 5 * MINUTE, {"apps/free.yaml": krake.application_yaml("free").replace("replicas: 2", "replicas: 3")}),
        Step(1.5, {"sites/bru.yaml": None}),
        Step(3),
    ),
)


def write_vreplicas(fleet: Fleet, _: Path) -> None:
    """Sources on the pods of an adapter, one of which has a cordoned node, while the autoscaler scales down."""
    nodes: dict[int, str | None] = {ordinal: f"n{ordinal % 3}" for ordinal in range(6)}
    zones = {"n0": "east", "n1": "east", "n2": "west"}
    more = {"cluster": "events", "autoscaler": "{attemptScaleDown: true}"}
    files: Files = {
        "gitsched.yaml": vreplica_settings(**more),
        "adapter.yaml": adapter(6),
        "pods.yaml": pods(nodes),
        "sources/orders.yaml": source("orders", 6),
        "sources/bills.yaml": source("bills", 5),
        **{f"nodes/{name}.yaml": node(name, zone) for name, zone in zones.items()},
    }
    fleet.commit(files)
    fleet.reconcile()
    fleet.commit({"nodes/n2.yaml": node("n2", "west", cordoned=True), "sources/bills.yaml": source("bills", 3)}, hour=1)
    fleet.reconcile(1)


VREPLICAS = Story(
    write_vreplicas,
    1,
    (
        Step(1 + 5 * MINUTE, {"sources/orders.yaml": source("orders", 8)}),
        Step(1.5, {"nodes/n2.yaml": node("n2", "west")}),
        Step(3),
    ),
)


def write_bundles(fleet: Fleet, _: Path) -> None:
    """A Bundle that Flux builds, one that Argo CD builds in the directory of the hub, and one whose cluster changes."""
    tools: Files = {}
    for name, delivery in (("web", "flux"), ("api", "argocd")):
        values = "{region: cluster.name}" if delivery == "flux" else "{}"
        text = BUNDLE.format(delivery=delivery, values=values).replace("name: web,", f"name: {name},")
        text = text.replace("apps/web/", f"apps/{name}/")
        chosen = BUNDLE_POLICY.format(type="Duplicated").replace("name: web", f"name: {name}")
        tools |= {f"{name}.yaml": text, f"{name}-policy.yaml": chosen}
    plain = settings("").replace("kind: Config", "kind: Bundle").replace("name: gitsched}", "name: plain, namespace: shop}")
    tools |= {
        "plain.yaml": f"{plain}  path: apps/plain\n",
        "apps/plain/job.yaml": histories.settings_of("plain", 1, "shop"),
        "plain-policy.yaml": BUNDLE_POLICY.format(type="Duplicated")
        .replace("name: web", "name: plain")
        .replace("first, second", "first"),
    }
    api = {path.replace("apps/web/", "apps/api/"): text for path, text in BASE.items() if path.startswith("apps/web/")}
    api["apps/api/base/web.yaml"] = str(api["apps/api/base/web.yaml"]).replace("${region}", "north")
    site = {"site/kustomization.yaml": "namePrefix: our-\nresources: [web.yaml]\n", "site/web.yaml": deployment("site", 2)}
    built = settings(f"  delivery: {{source: {{url: {URL}}}}}\n  source: {{kustomize: {{build: [site]}}}}\n")
    fleet.commit({**BASE, **api, **tools, **site, "site.yaml": policy("first", name="site"), "gitsched.yaml": built})
    fleet.reconcile()
    moved = BUNDLE_POLICY.format(type="Duplicated").replace("name: web", "name: plain").replace("first, second", "second")
    broken = "namePrefix: our-\nresources: [web.yaml, lost.yaml]\n"
    fleet.commit({"plain-policy.yaml": moved, "apps/web/base/logo.png": "another one", "site/kustomization.yaml": broken}, hour=1)
    fleet.reconcile(1)


BUNDLES = Story(
    write_bundles,
    1,
    (
        Step(
            1 + 5 * MINUTE,
            {"apps/plain/job.yaml": histories.settings_of("plain", 2, "shop"), "site/web.yaml": deployment("site", 3)},
        ),
        Step(
            1.5,
            {
                "api-policy.yaml": BUNDLE_POLICY.format(type="Duplicated")
                .replace("name: web", "name: api")
                .replace("first, second", "first")
            },
        ),
        Step(3),
    ),
)


def write_guarded(fleet: Fleet, _: Path) -> None:
    """Removals that the guard withholds, while the commit also loosens the guard and stops to hold workloads, and a freeze."""
    files: Files = {f"apps/safe-{n}.yaml": test_guard.labelled(f"safe-{n}", "safe") for n in range(4)}
    files |= {f"apps/doomed-{n}.yaml": test_guard.labelled(f"doomed-{n}", "doomed") for n in range(11)}
    files |= {"doomed.yaml": test_guard.select("doomed", "first"), "safe.yaml": test_guard.select("safe", "second")}
    files |= {f"clusters/{name}.yaml": cluster(name) for name in ("first", "second")}
    store = (histories.STORE % ("store", "true", "", 2)).replace("labels: {", "labels: {app: store, ")
    files |= {"apps/store.yaml": store, "store.yaml": test_guard.select("store", "first")}
    files |= {"gitsched.yaml": settings("  guard: {fleet: {removed: 30}}\n")}
    fleet.commit(files)
    fleet.reconcile()
    loose = settings("  guard: {fleet: {removed: 90}, holdStateful: false}\n")
    moved = {"doomed.yaml": test_guard.select("doomed", "nowhere"), "store.yaml": test_guard.select("store", "second")}
    fleet.commit({**moved, "gitsched.yaml": loose}, hour=1)
    fleet.reconcile(1)
    set_freeze(fleet.settings(1.25), "the audit")
    fleet.commit(
        {"safe.yaml": test_guard.select("safe", "first,second"), "apps/new.yaml": test_guard.labelled("new", "safe")}, hour=1.5
    )
    fleet.reconcile(1.5)


GUARDED = Story(
    write_guarded,
    1.5,
    (
        Step(1.5 + 5 * MINUTE, {"apps/newer.yaml": test_guard.labelled("newer", "safe")}),
        Step(2, {"doomed.yaml": test_guard.select("doomed", "first,second")}),
        Step(3),
    ),
)


def write_tenants(fleet: Fleet, _: Path) -> None:
    """Tenants, one of which breaks a rule, together with every other API, and a Tenant that allows more in the next run."""
    table: Any = yaml.safe_load(TENANTS.read_text())
    fleet.commit(table["base"])
    fleet.reconcile()
    allowed = table["base"]["tenants/a.yaml"].replace("replicas: 20", "replicas: 40")
    app = table["base"]["teams/a/app.yaml"].replace("replicas: 2", "replicas: 30")
    fleet.commit({"tenants/a.yaml": allowed, "teams/a/app.yaml": app}, hour=1)
    fleet.reconcile(1)


TENANT_STORY = Story(
    write_tenants,
    1,
    (
        Step(1 + 5 * MINUTE),
        Step(2, {"teams/b/more.yaml": deployment("more", 2, "team-b")}),
        Step(3, {"tenants/b.yaml": None}),
        Step(4),
    ),
)


def write_adopted(fleet: Fleet, directory: Path) -> None:
    """Objects that were taken over with incomplete information, and one that has moved since."""
    clusters = {f"clusters/{name}.yaml": cluster(name) for name in "abc"}
    files = {**clusters, "policy.yaml": test_adoption.PLACED % "c", "gitsched.yaml": test_adoption.UNGUARDED}
    fleet.commit({**files, "web.yaml": deployment("web", 4), "api.yaml": deployment("api", 4)})
    bindings = [
        test_adoption.binding(("a", 1), ("b", 3), status=False),
        test_adoption.binding(("a", 2), ("b", 2), name="api"),
    ]
    dump = test_adoption.write_json(directory / "hub.json", bindings)
    adopt(fleet.settings(observations="recorded"), AdoptionInputs((dump,)), dry_run=False)
    fleet.commit({"api.yaml": deployment("api", 5)}, hour=1)
    fleet.reconcile(1)


ADOPTED = Story(
    write_adopted,
    1,
    (
        Step(1 + 5 * MINUTE, {"web.yaml": deployment("web", 5)}),
        Step(2),
        Step(3, {}, "Release\n\nGitsched-Release: default/web"),
        Step(4),
    ),
)


def write_facts(fleet: Fleet, _: Path) -> None:
    """Clusters with facts on branches of their own, one of which is broken and one old, and scores on the branch of all clusters."""
    facts = {"name": "", "ready": "True", "version": 1, "used": 2, "kind": "Deployment", "time": format_hour(0)}
    names = ("ash", "bru", "cph")
    scores = "---\n".join(ocm.to_yaml(ocm.addon_scores(name, {"cpu": 10 * n}, name="load")) for n, name in enumerate(names, 1))
    branches: dict[str, Files] = {f"facts-{name}": {"facts.yaml": FACTS % (facts | {"name": name})} for name in names}
    fleet.commit(
        {
            **{f"clusters/{name}.yaml": cluster(name) for name in names},
            **{f"managed/{name}.yaml": test_rollouts.managed(name, "live") for name in names},
            "managed/sets.yaml": test_rollouts.SETS,
            "managed/placement.yaml": histories.PLACEMENT % (2, 0),
            "shop/left.yaml": histories.FOLLOWER % ("left", "everywhere", 1),
            "web.yaml": deployment("web", 6),
            "policy.yaml": policy("", scheduling="Divided").partition("    replicaScheduling")[0] + DYNAMIC,
            "gitsched.yaml": settings(FACTS_SETTINGS % "noNewPlacements"),
        }
    )
    for branch, files in {**branches, SHARED: {"scores/load.yaml": scores}}.items():
        commit_branch(fleet, branch, files, 0)
    fleet.reconcile()
    fuller = FACTS % (facts | {"name": "ash", "used": 14, "time": format_hour(1)})
    commit_branch(
        fleet, "facts-ash", {"facts.yaml": fuller, "report.yaml": REPORT % ("ash", fleet.head, "Healthy", format_hour(1))}, 1
    )
    commit_branch(fleet, "facts-cph", {"facts.yaml": BROKEN[0]}, 1)
    fleet.commit({"web.yaml": deployment("web", 9), "api.yaml": deployment("api", 4)}, hour=1)
    fleet.reconcile(1)


FACTS_STORY = Story(
    write_facts,
    1,
    (
        Step(1 + 5 * MINUTE, {"web.yaml": deployment("web", 7)}),
        Step(1.5, {"managed/placement.yaml": histories.PLACEMENT % (1, 0)}),
        Step(9, {"more.yaml": deployment("more", 3)}),
    ),
)


def write_state(fleet: Fleet, _: Path) -> None:
    """The state of the last plan beside the output branch, which only the gitsched that wrote it reads."""
    files: Files = {f"clusters/{name}.yaml": cluster(name) for name in ("first", "second")}
    files |= {f"apps/{name}.yaml": deployment(name) for name in histories.WORKLOADS}
    fleet.commit({**files, "policies/all.yaml": policy("first", scheduling="Divided")})
    fleet.reconcile(state="on")
    fleet.commit({"policies/all.yaml": policy("first,second", scheduling="Divided")}, hour=1)
    fleet.reconcile(1, state="on")


STATE = Story(
    write_state,
    1,
    (
        Step(1 + 5 * MINUTE, {"apps/web.yaml": deployment("web", 5)}),
        Step(2, {"policies/all.yaml": policy("second", scheduling="Divided")}),
        Step(3),
    ),
    {"state": "on"},
)


def write_history(seed: int, apis: tuple[str, ...]) -> Callable[[Fleet, Path], None]:
    """Return a story of random commits, each of them reconciled."""

    def write(fleet: Fleet, _: Path) -> None:
        dice = Random(seed)
        history = histories.History(dice, apis)
        fleet.commit(history.files)
        fleet.reconcile()
        for step in range(1, 37):
            fleet.commit(history.go_on(0.4), hour=step / 9)
            fleet.reconcile(step / 9)

    return write


def later_history(seed: int) -> tuple[Step, ...]:
    name = histories.WORKLOADS[seed % 4]
    policies = ({"policies/all.yaml": histories.POLICIES[(seed + more) % 5]} for more in (0, 2))
    return (Step(4 + 1 / 12, {f"apps/{name}.yaml": deployment(name, 7)}), *map(Step, (5, 6), policies), Step(7), Step(30))


STORIES = {
    "adopted": ADOPTED,
    "applications": APPLICATIONS,
    "bundles": BUNDLES,
    "facts": FACTS_STORY,
    "guarded": GUARDED,
    "moves": MOVES,
    "placements": PLACEMENTS,
    "tenants": TENANT_STORY,
    "vreplicas": VREPLICAS,
    "waves": WAVES,
    "state": STATE,
    "random-1": Story(write_history(1, ("ocm", "krake")), 4, later_history(1)),
    "random-2": Story(write_history(2, ("knative", "tenants")), 4, later_history(2)),
    "random-3": Story(write_history(3, ("ocm", "krake", "knative", "tenants")), 4, later_history(3)),
}
