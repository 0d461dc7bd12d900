"""Repositories that use every policy API, with random commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from tests.builders.knative import ADAPTER, adapter, node, pods, source

from .conftest import cluster, deployment, policy
from .test_dependencies import workload
from .test_overrides import mirror
from .test_rollouts import SETS, managed, replica_set

Files = dict[str, str | bytes | None]
Draw = Callable[[Random], Files]

PREFERRED = "gitsched.io/preferred-clusters"
WORKLOADS = ("api", "batch", "cache", "web")
TIERS = ("front", "back")
NAMES = ("ash", "bru", "cph", "dub")
FAILBACK = ("Never", "OnRebalance", "{AfterStabilization: 30m}")
TOLERANT = "    clusterTolerations: [{key: power, effect: NoExecute, operator: Exists, tolerationSeconds: 1800}]\n"
PRIORITY = "  schedulePriority: {priorityClassSource: KubePriorityClass, priorityClassName: gold}\n"
SPREAD = "    spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]\n"
POLICIES = (
    policy("first,third", "second", scheduling="Divided", more=TOLERANT + "  propagateDeps: true\n"),
    policy("second", "first,third", more="  propagateDeps: true\n  activationPreference: Lazy\n"),
    policy("first", "second", "third", more=TOLERANT + PRIORITY),
    policy("", scheduling="Divided", more="  suspension: {dispatchingOnClusters: {clusterNames: [second]}}\n"),
    policy("first", more="  dependentOverrides: [elsewhere]\n  propagateDeps: true\n"),
    policy("", scheduling="Divided").replace("Weighted", "Aggregated"),
    policy("").replace("  placement:\n", f"  placement:\n{SPREAD}"),
    policy("first,second", "").replace("  placement:\n", f"  placement:\n{SPREAD}"),
)
TAINTS = """\
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterTaintPolicy
metadata: {name: dead}
spec:
  targetClusters: {}
  addOnConditions: [{conditionType: Ready, operator: NotIn, statusValues: ["True"]}]
  removeOnConditions: [{conditionType: Ready, operator: In, statusValues: ["True"]}]
  taints: [{key: dead, effect: NoSchedule}]
"""
REBALANCER = """\
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: again-%d}
spec:
  ttlSecondsAfterFinished: 3000
  workloads:
  - {apiVersion: apps/v1, kind: Deployment, name: %s, namespace: default}
"""
TARGET = "  - {apiVersion: apps/v1, kind: Deployment, name: %s, namespace: default}\n"
FREEZES = ("", "", ", freeze: audit")
SETTINGS = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec:
  karmada: {failback: %s, autoscalerLimits: divide}
  guard: {fleet: {removed: %d, moved: 40}, namespace: {removed: 100}%s}
  output: {retireAfter: %dm}
  followTargets: %s
"""
LABELLED = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: default}
spec:
  replicas: %d
  template: {metadata: {labels: {tier: %s}}, spec: {containers: [{name: c, image: i}]}}
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: %s, namespace: default, labels: {scrape: '%d'}}
spec: {selector: {tier: %s}}
"""
INGRESS = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: entry, namespace: default}
spec: {defaultBackend: {service: {name: %s, port: {number: %d}}}}
"""
SCALER = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: scaler, namespace: default}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %s}
  maxReplicas: %d
"""
STORES = ("store", "files")
STORE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: default, labels: {gitsched.io/stateful: '%s'}, annotations: {gitsched.io/release: '%s'}}
spec:
  replicas: %d
  template: {spec: {containers: [{name: c, image: i}], volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}}
"""
CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: %dGi}}}
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {team: '%s'}}\n"
TENANT = "apiVersion: example.com/v1\nkind: Tenant\nmetadata: {name: acme}\nspec: {size: %s}\n"
CLASS = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: gold}\nvalue: %d\n"
PLACEMENT = """\
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: everywhere, namespace: shop}
spec:
  numberOfClusters: %d
  prioritizerPolicy:
    mode: Exact
    configurations:
    - {scoreCoordinate: {type: BuiltIn, builtIn: Balance}, weight: %d}
    - {scoreCoordinate: {type: BuiltIn, builtIn: Steady}, weight: 1}
    - {scoreCoordinate: {type: AddOn, addOn: {resourceName: load, scoreName: cpu}}, weight: 2}
"""
SCORE = """\
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: AddOnPlacementScore
metadata: {name: load, namespace: %s}
status: {validUntil: "2026-03-02T%02d:30:00Z", scores: [{name: cpu, value: %d}]}
"""
FOLLOWER = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: shop, annotations: {cluster.open-cluster-management.io/placement: %s}}
data: {a: '%d'}
"""
APPLICATION = """\
api: kubernetes
kind: Application
metadata: {name: echo, namespace: tenant}
spec:
  manifest: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: echo, namespace: shop}, spec: {replicas: %d}}]
"""
SITE = """\
api: kubernetes
kind: Cluster
metadata: {name: %s, namespace: tenant}
spec: {kubeconfig: {contexts: [{name: c}], clusters: [{name: c}], users: [{name: u}]}, metrics: []}
status: {state: ONLINE}
"""


TEAM = """\
apiVersion: gitsched.io/v1alpha1
kind: Tenant
metadata: {name: team}
spec: {paths: [apps/team], namespaces: [team%s], clusters: {names: [%s]}, limits: {replicas: %d}}
"""


def start_karmada(dice: Random) -> Files:
    """Return workloads with dependencies in three clusters, with overrides and rebalancers."""
    files: Files = {f"clusters/{name}.yaml": cluster(name) for name in ("first", "second", "third")}
    files |= {f"apps/{name}.yaml": workload(name, "configmap/conf") for name in WORKLOADS[:2]}
    files |= {f"apps/{name}.yaml": deployment(name) for name in WORKLOADS[2:]}
    files |= {"apps/more.yaml": settings_of("one", 1) + "---\n" + settings_of("conf", 1), "apps/tenant.yaml": TENANT % 1}
    files |= {"apps/key.yaml": secret(1), "apps/gold.yaml": CLASS % 7, "apps/scaler.yaml": SCALER % ("web", 9)}
    files |= {
        "policies/scalers.yaml": policy("", name="scalers", kind="HorizontalPodAutoscaler").replace("apps/v1", "autoscaling/v2")
    }
    files |= {"policies/all.yaml": dice.choice(POLICIES), "policies/maps.yaml": policy("", name="maps", kind="ConfigMap")}
    files |= {
        "policies/mirror.yaml": mirror("mirror.example.net", "second"),
        "gitsched.yaml": SETTINGS % ("Never", 20, "", 60, "false"),
    }
    files |= {f"apps/{name}.yaml": STORE % (name, "true", "", 2) for name in STORES} | {"apps/claim.yaml": CLAIM % 1}
    files |= {"policies/claims.yaml": policy("", name="claims", kind="PersistentVolumeClaim").replace("apps/v1", "v1")}
    files |= {f"apps/{name}.yaml": LABELLED % (name, 2, name) for name in TIERS}
    files |= {f"apps/service-{name}.yaml": SERVICE % (name, 1, name) for name in TIERS}
    files |= {
        "apps/ingress.yaml": INGRESS % ("front", 80),
        "policies/services.yaml": policy("first", name="services", kind="Service"),
    }
    return files


def settings_of(name: str, number: int, namespace: str = "default") -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\ndata: {{a: '{number}'}}\n"


def secret(number: int) -> str:
    return f"apiVersion: v1\nkind: Secret\nmetadata: {{name: key, namespace: default}}\nstringData: {{a: '{number}'}}\n"


def rebalance(number: int, *names: str) -> str:
    """Return a rebalancer for some of the workloads."""
    return REBALANCER % (number, names[0]) + "".join(TARGET % name for name in names[1:])


def edit_workload(dice: Random) -> Files:
    """Change the replicas, a dependency, a comment, or write an invalid replica count."""
    name, number = dice.choice(WORKLOADS), dice.randrange(1, 9)
    needs = dice.sample(("configmap/conf", "configmap/one", "secret/key"), dice.randrange(3))
    texts = (workload(name, *needs, replicas=number), deployment(name, number), deployment(name, "${REPLICAS}"))
    return {f"apps/{name}.yaml": dice.choice(texts) + f"# {dice.randrange(4)}\n"}


def prefer(text: str, namespace: str, names: str) -> str:
    """Return the text of a document with an annotation that names its preferred clusters."""
    inner = f", annotations: {{{PREFERRED}: '{names}'}}"
    flow, block = f"namespace: {namespace}", f"  namespace: {namespace}\n"
    if block in text:
        return text.replace(block, f"{block}  annotations: {{{PREFERRED}: '{names}'}}\n", 1)
    return text.replace(flow, f"{flow}{inner}", 1)


def edit_preference(dice: Random) -> Files:
    """Name the preferred clusters of a workload, also ones that do not exist, or write a malformed list."""
    name, number = dice.choice(WORKLOADS), dice.randrange(1, 9)
    names = dice.choice(("first", "third,first", "second,third", "third", "absent", "first,,second"))
    return {f"apps/{name}.yaml": prefer(dice.choice((workload(name, replicas=number), deployment(name, number))), "default", names)}


def edit_companion(dice: Random) -> Files:
    """Change the replicas or labels of a workload, or the targets of a companion."""
    name, tier, number = dice.choice(TIERS), dice.choice(TIERS), dice.randrange(1, 9)
    changes: tuple[Files, ...] = (
        {f"apps/{name}.yaml": LABELLED % (name, number, name)},
        {f"apps/{name}.yaml": LABELLED % (name, number, tier)},
        {f"apps/service-{name}.yaml": SERVICE % (name, number, tier)},
        {f"apps/service-{name}.yaml": f"# {number}\n" + SERVICE % (name, number, name)},
        {"apps/ingress.yaml": INGRESS % (tier, number)},
    )
    return dice.choice(changes)


def edit_store(dice: Random) -> Files:
    """Change a workload with data, its release, or its claim."""
    name, number = dice.choice(STORES), dice.randrange(1, 9)
    label, release = dice.choice(("true", "true", "false")), dice.choice(("", "", "first", "second,third"))
    return dice.choice(({f"apps/{name}.yaml": STORE % (name, label, release, number)}, {"apps/claim.yaml": CLAIM % number}))


def edit_several(dice: Random) -> Files:
    return edit_workload(dice) | edit_needed(dice) | edit_workload(dice)


def edit_needed(dice: Random) -> Files:
    """Change dependencies of workloads, and objects without a policy."""
    number = dice.randrange(1, 9)
    return dice.choice(
        (
            {"apps/more.yaml": settings_of("one", number) + "---\n" + settings_of("conf", dice.randrange(9))},
            {"apps/key.yaml": secret(number)},
            {"apps/tenant.yaml": TENANT % number},
            {"apps/gold.yaml": CLASS % number},
            {"apps/scaler.yaml": SCALER % (dice.choice(WORKLOADS), number)},
            {"README.md": f"{number}\n"},
            {},
        )
    )


def turn_karmada(dice: Random) -> Files:
    """Change policies, clusters and settings; add, remove, break or duplicate documents."""
    name, number = dice.choice(WORKLOADS), dice.randrange(1, 9)
    path, place = f"apps/{name}.yaml", dice.choice(("first", "second", "third"))
    ready = dice.choice(("True", "False"))
    changes: tuple[Files, ...] = (
        {path: deployment(name, number, "shop"), "apps/shop.yaml": NAMESPACE % number},
        {path: deployment(name) + "  [\n"},
        {path: deployment(name), "apps/copy.yaml": deployment(name)},
        {"apps/copy.yaml": dice.choice((None, deployment("copy", number)))},
        {path: None},
        {path: deployment(name, number)},
        {"apps/more.yaml": settings_of("conf", number)},
        {f"clusters/{place}.yaml": dice.choice((cluster(place, "power:NoExecute"), cluster(place), None))},
        {f"clusters/{place}.yaml": cluster(place) + f"status: {{conditions: [{{type: Ready, status: '{ready}'}}]}}\n"},
        {"policies/all.yaml": dice.choice(POLICIES)},
        {"policies/all.yaml": dice.choice(POLICIES)},
        {"policies/mirror.yaml": dice.choice((None, mirror("other.example.net", "first", place)))},
        {"policies/dead.yaml": dice.choice((None, TAINTS, TAINTS))},
        {
            "gitsched.yaml": SETTINGS
            % (
                dice.choice(FAILBACK),
                (20, 50, 100)[number % 3],
                dice.choice(FREEZES),
                20 * number,
                dice.choice(("true", "false")),
            )
        },
        {"policies/services.yaml": dice.choice((None, policy("first,third", name="services", kind="Service")))},
        {"gitsched.yaml": dice.choice(("kind: Nothing\n", None))},
        {"rebalancer.yaml": dice.choice((None, rebalance(number, name), rebalance(number, *dice.sample(WORKLOADS, 3))))},
        {".sourceignore": dice.choice((None, f"apps/{name}.yaml\n"))},
        {"apps/gold.yaml": None},
    )
    return dice.choice(changes)


def start_placements(dice: Random) -> Files:
    """Change objects that follow a Placement with balance and scores."""
    files: Files = {f"managed/{name}.yaml": managed(name, "live") for name in NAMES}
    files |= {f"scores/{name}.yaml": SCORE % (name, 9 + dice.randrange(5), 10 * number) for number, name in enumerate(NAMES)}
    files |= {"managed/sets.yaml": SETS, "managed/placement.yaml": PLACEMENT % (2, 1)}
    return files | {f"shop/{name}.yaml": FOLLOWER % (name, "everywhere", 1) for name in ("left", "right")}


def edit_follower(dice: Random) -> Files:
    name, placement = dice.choice(("left", "right")), dice.choice(("everywhere", "everywhere", "nowhere"))
    return {f"shop/{name}.yaml": FOLLOWER % (name, placement, dice.randrange(9))}


def turn_placements(dice: Random) -> Files:
    name = dice.choice(NAMES)
    colour, strategy = dice.choice(("red", "blue")), dice.choice(("{type: All}", "{type: Progressive, progressive: {}}"))
    changes: tuple[Files, ...] = (
        {"managed/placement.yaml": PLACEMENT % (dice.randrange(1, 4), dice.randrange(3))},
        {"managed/placement.yaml": prefer(PLACEMENT % (dice.randrange(1, 4), 1), "shop", f"{name},{dice.choice(NAMES)}")},
        {f"scores/{name}.yaml": SCORE % (name, 9 + dice.randrange(9), dice.randrange(100))},
        {f"managed/{name}.yaml": dice.choice((None, managed(name, "live")))},
        {"managed/works.yaml": dice.choice((None, replica_set(colour, strategy)))},
    )
    return dice.choice(changes)


def start_sources(_dice: Random) -> Files:
    """Change an adapter with pods, and its sources."""
    files: Files = {"knative/adapter.yaml": adapter(3), "knative/pods.yaml": pods({0: "n0", 1: "n1", 2: "n0"})}
    files |= {f"knative/{name}.yaml": node(name, zone) for name, zone in (("n0", "east"), ("n1", "west"))}
    scheduler = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config-kafka-scheduler, namespace: knative-eventing}\n"
    return files | {"knative/orders.yaml": source("orders", 3), "knative/config.yaml": f"{scheduler}data: {{}}\n"}


def edit_source(dice: Random) -> Files:
    text = source(dice.choice(("orders", "bills")), dice.randrange(7))
    if dice.random() < 0.4:
        text = prefer(text, "shop", f"{ADAPTER}-{dice.randrange(4)}")
    return {f"knative/{dice.choice(('orders', 'bills'))}.yaml": text}


def start_applications(_dice: Random) -> Files:
    """Return an application of Krake and two clusters."""
    return {"krake/echo.yaml": APPLICATION % 1, **{f"krake/{name}.yaml": SITE % name for name in ("near", "far")}}


def edit_application(dice: Random) -> Files:
    app = APPLICATION % dice.randrange(1, 9)
    return dice.choice(
        (
            {"krake/echo.yaml": app},
            {"krake/echo.yaml": prefer(app, "tenant", dice.choice(("far", "near,far", "tenant.near")))},
            {"krake/near.yaml": dice.choice((None, SITE % "near"))},
        )
    )


def start_tenants(_dice: Random) -> Files:
    """Return a Tenant with a workload and a policy of its own, which the policies of the platform do not select."""
    own = policy("first,second", name="team").replace("namespace: default", "namespace: team")
    files: Files = {"tenants/team.yaml": TEAM % ("", "first, second", 20)}
    return files | {"apps/team/policy.yaml": own, "apps/team/web.yaml": deployment("web", 2, "team")}


def edit_tenant_workload(dice: Random) -> Files:
    """Change a workload of the tenant, also so that it breaks a rule."""
    number, namespace = dice.randrange(1, 14), dice.choice(("team", "team", "team", "default"))
    return {"apps/team/web.yaml": deployment(dice.choice(("web", "web", "api")), number, namespace)}


def turn_tenants(dice: Random) -> Files:
    """Change a Tenant or the policy of a tenant, and remove the Tenant."""
    more, clusters = dice.choice(("", ", team-*", ", default")), dice.choice(("first", "first, second", "third"))
    own = policy(dice.choice(("first,second", "third", "")), name="team").replace("namespace: default", "namespace: team")
    changes: tuple[Files, ...] = (
        {"tenants/team.yaml": TEAM % (more, clusters, dice.randrange(2, 30))},
        {"tenants/team.yaml": dice.choice((None, TEAM % ("", "first, second", 20) + "  [\n"))},
        {"apps/team/policy.yaml": dice.choice((own, None))},
    )
    return dice.choice(changes)


class History:
    """The current content of a repository; `apis` are the policy APIs in addition to Karmada."""

    def __init__(self, dice: Random, apis: tuple[str, ...]) -> None:
        self._dice = dice
        self._small: list[Draw] = [
            edit_workload,
            edit_workload,
            edit_needed,
            edit_several,
            edit_companion,
            edit_companion,
            edit_store,
            edit_store,
            edit_preference,
            edit_preference,
        ]
        self._large: list[Draw] = [turn_karmada, turn_karmada, turn_karmada]
        self.files = start_karmada(dice)
        if "ocm" in apis:
            self.files |= start_placements(dice)
            self._small += [edit_follower, edit_follower]
            self._large += [turn_placements, turn_placements]
        if "knative" in apis:
            self.files |= start_sources(dice)
            self._large += [edit_source]
        if "tenants" in apis:
            self.files |= start_tenants(dice)
            self._small += [edit_tenant_workload, edit_tenant_workload]
            self._large += [turn_tenants, turn_tenants]
        if "krake" in apis:
            self.files |= start_applications(dice)
            self._large += [edit_application]

    def go_on(self, small: float) -> Files:
        """Return the changes of the next commit; `small` is the probability that it only edits known files."""
        changes = self._dice.choice(self._small if self._dice.random() < small else self._large)(self._dice)
        changes = {path: text for path, text in changes.items() if text is not None or self.files.get(path) is not None}
        self.files |= changes
        return changes


def differs(one: Mapping[str, object], other: Mapping[str, object]) -> list[str]:
    """Return the names with different values in two results of a run."""
    return [name for name in one if one[name] != other[name]]
