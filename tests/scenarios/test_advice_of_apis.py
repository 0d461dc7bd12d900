"""Advice about documents of Open Cluster Management, Krake, Knative and gitsched itself, and about fields of Karmada that are not
supported, is carried out as it is printed.

Each case commits files and expects a finding with an advice; then it follows the advice literally: the finding is gone, and what the
advice promises has happened. Codes and texts with an advice that no case carries out are listed with the reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from gitsched.cli import cli
from gitsched.model.finding import Finding
from gitsched.reconcile import RunResult
from tests.builders import knative, krake, ocm
from tests.cli.finding_codes import find_codes

from .conftest import UNGUARDED, Fleet, at_hour, cluster, deployment, policy

ROOT = Path(__file__).parents[2]
Files = Mapping[str, str | None]
Check = Callable[[Fleet], Any]


class Advice(NamedTuple):
    """`files` are committed, after each of `before`, and lead to a finding `code` with `phrase`. When `follow` is committed, the finding is
    gone, and `holds` is true."""

    code: str
    phrase: str
    files: Files
    follow: Files
    holds: Check = lambda fleet: True
    before: tuple[Files, ...] = ()


def delivered(workload: str, *clusters: str) -> Check:
    """A workload is delivered to these clusters, given by its file name."""
    return lambda fleet: fleet.delivered(workload) == list(clusters)


def find(run: RunResult, code: str, phrase: str) -> list[Finding]:
    return [finding for finding in run.plan.findings if finding.code == code and phrase in " ".join(finding.message.split())]


def carry_out(fleet: Fleet, base: Files, case: Advice) -> list[Finding]:
    """Carry out a case, and return the findings with the advice."""
    steps = [{**base, **files} if number == 0 else files for number, files in enumerate((*case.before, case.files))]
    for hour, files in enumerate(steps):
        fleet.commit({path: text for path, text in files.items() if text is not None or hour}, hour=hour)
        run = fleet.reconcile(hour) if hour < len(case.before) else fleet.preview(hour)
    found = find(run, case.code, case.phrase)
    assert found, [f"{finding.code}: {finding.message}" for finding in run.plan.findings]
    if case.before:
        fleet.reconcile(hour)
    fleet.commit(case.follow, hour=hour + 1)
    if case.before:  # copies stay for an overlap
        fleet.reconcile(hour + 1)
    run = fleet.reconcile(hour + 1.5)
    assert not find(run, case.code, case.phrase)
    assert case.holds(fleet), [f"{finding.code}: {finding.message}" for finding in run.plan.findings]
    return found


# Open Cluster Management

OPTIONS = "shop/configmap-options"
ON_ONE = delivered(OPTIONS, "one")
FLEET = ocm.to_yaml(ocm.managed_cluster("one", {"env": "prod"}), ocm.managed_cluster("two", {"env": "test"}))
PICK_ONE = [ocm.label_predicate(env="prod")]
OCM_BASE = {
    "gitsched.yaml": UNGUARDED,
    "fleet.yaml": FLEET,
    "sets.yaml": ocm.to_yaml(*ocm.bound_global_set("shop")),
    "options.yaml": ocm.to_yaml(ocm.placed_config_map("options", "shop", "pick")),
}


def pick(**spec: Any) -> dict[str, str]:
    """A Placement that chooses cluster `one`, with another spec."""
    return {"pick.yaml": ocm.to_yaml(ocm.placement("pick", "shop", **{"predicates": PICK_ONE, **spec}))}


def score(value: Mapping[str, int], cluster: str = "one", **options: Any) -> dict[str, Any]:
    return ocm.addon_scores(cluster, value, **options)


def by_score(*prioritizers: Any) -> dict[str, str]:
    return {"pick.yaml": ocm.to_yaml(ocm.placement("pick", "shop", 1, prioritizers))}


def by_cel(expression: str) -> dict[str, str]:
    return pick(predicates=[{"requiredClusterSelector": {"celSelector": {"celExpressions": [expression]}}}])


def tainted(**toleration: Any) -> dict[str, str]:
    fleet = ocm.to_yaml(ocm.managed_cluster("one", {"env": "prod"}, [ocm.taint("gpu")]))
    return {"fleet.yaml": fleet, **pick(**({"tolerations": [{"key": "gpu", **toleration}]} if toleration else {}))}


def unaccepted(*taints: ocm.Body) -> dict[str, str]:
    cluster_body = ocm.managed_cluster("one", {"env": "prod"}, taints)
    return {"fleet.yaml": ocm.to_yaml({**cluster_body, "spec": {**cluster_body["spec"], "hubAcceptsClient": False}})}


TYPO_SET = {
    **ocm.global_set(),
    "spec": {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"a b": "c"}}}},
}
SPREAD = {"spreadConstraints": [{"topologyKey": "env", "topologyKeyType": "Label", "maxSkew": 1}]}
VARIANTS = {
    "built/built.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: built, namespace: shop}\n",
    "bundle.yaml": "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\n"
    f"metadata: {{name: shop, namespace: shop, annotations: {{{ocm.PLACEMENT_ANNOTATION}: pick}}}}\n"
    "spec: {variants: [{path: built, clusters: {names: [one]}}]}\n",
}
EXPIRED = "2026-03-01T08:00:00Z"
OCM: dict[str, Advice] = {
    "no cluster set is bound": Advice(
        "ocm-nothing-chosen",
        "no ManagedClusterSet is bound to the namespace shop: add a ManagedClusterSetBinding",
        {**pick(), "sets.yaml": ocm.to_yaml(ocm.global_set())},
        {"sets.yaml": OCM_BASE["sets.yaml"]},
        ON_ONE,
    ),
    "the bound cluster set has no document": Advice(
        "ocm-nothing-chosen",
        "the ManagedClusterSet global, which is bound to the namespace shop, does not exist: add its document, with clusterSelector: "
        "{selectorType: LabelSelector, labelSelector: {}}, as on each hub",
        {**pick(), "sets.yaml": ocm.to_yaml(*ocm.bound_global_set("shop")[1:])},
        {"sets.yaml": OCM_BASE["sets.yaml"]},
        ON_ONE,
    ),
    "no ManagedCluster": Advice(
        "ocm-nothing-chosen",
        "the source has no ManagedCluster; commit those of the hub (kubectl get managedclusters -o yaml)",
        {**pick(), "fleet.yaml": None},
        {"fleet.yaml": FLEET},
        ON_ONE,
    ),
    "change the predicates": Advice(
        "ocm-nothing-chosen",
        "of 2 clusters, 2 excluded by its predicates",
        pick(predicates=[ocm.label_predicate(env="no")]),
        pick(),
        ON_ONE,
    ),
    "tolerate the taint": Advice("ocm-nothing-chosen", "1 excluded", tainted(), tainted(operator="Exists"), ON_ONE),
    "the annotation that turns scheduling off": Advice(
        "ocm-scheduling-disabled",
        "is not scheduled: remove its annotation",
        {
            "pick.yaml": ocm.to_yaml(
                ocm.placement(
                    "pick", "shop", annotations={f"{ocm.GROUP}/experimental-scheduling-disable": "true"}, predicates=PICK_ONE
                )
            )
        },
        pick(),
        ON_ONE,
    ),
    "an operator of a selector": Advice(
        "ocm-misconfigured",
        "use In, NotIn, Exists or DoesNotExist",
        pick(
            predicates=[
                {
                    "requiredClusterSelector": {
                        "labelSelector": {"matchExpressions": [{"key": "env", "operator": "in", "values": ["prod"]}]}
                    }
                }
            ]
        ),
        pick(
            predicates=[
                {
                    "requiredClusterSelector": {
                        "labelSelector": {"matchExpressions": [{"key": "env", "operator": "In", "values": ["prod"]}]}
                    }
                }
            ]
        ),
        ON_ONE,
    ),
    "the mode of prioritizers": Advice(
        "ocm-misconfigured",
        "use Additive or Exact",
        pick(prioritizerPolicy={"mode": "Add"}),
        pick(prioritizerPolicy={"mode": "Additive"}),
        ON_ONE,
    ),
    "an empty add-on score": Advice(
        "ocm-misconfigured",
        "set its resourceName and scoreName",
        {**by_score({"scoreCoordinate": {"type": "AddOn"}, "weight": 1}), "s.yaml": ocm.to_yaml(score({"free": 90}))},
        by_score(ocm.add_on("free")),
        ON_ONE,
    ),
    "an unknown built-in prioritizer": Advice(
        "ocm-misconfigured", "use one of ", by_score(ocm.built_in("Stable")), by_score(ocm.built_in("Steady")), ON_ONE
    ),
    "a percentage as a text": Advice(
        "ocm-misconfigured",
        "use a number without quotes, or a percentage such as 20%",
        pick(decisionStrategy={"groupStrategy": {"clustersPerDecisionGroup": "2"}}),
        pick(decisionStrategy={"groupStrategy": {"clustersPerDecisionGroup": "20%"}}),
        ON_ONE,
    ),
    "a cluster set with an invalid selector": Advice(
        "ocm-set-unusable",
        "has an invalid selector",
        {**pick(), "sets.yaml": ocm.to_yaml(TYPO_SET, ocm.binding("global", "shop"))},
        {"sets.yaml": OCM_BASE["sets.yaml"]},
        ON_ONE,
    ),
    "what an invalid cluster set keeps": Advice(
        "stale-decision",
        "keeps its previous decisions",
        {"sets.yaml": ocm.to_yaml(TYPO_SET, ocm.binding("global", "shop")), **pick(predicates=[ocm.label_predicate(env="test")])},
        {"sets.yaml": OCM_BASE["sets.yaml"]},
        delivered(OPTIONS, "two"),
        (pick(),),
    ),
    "expired scores": Advice(
        "ocm-scores-expired",
        "update the scores",
        {
            **by_score(ocm.add_on("free")),
            "s.yaml": ocm.to_yaml(score({"free": 10}), score({"free": 90}, "two", valid_until=EXPIRED)),
        },
        {"s.yaml": ocm.to_yaml(score({"free": 10}), score({"free": 90}, "two"))},
        delivered(OPTIONS, "two"),
    ),
    "a missing score": Advice(
        "ocm-score-missing",
        "of two: there is no such score",
        {**by_score(ocm.add_on("free")), "s.yaml": ocm.to_yaml(score({"free": 10}))},
        {"s.yaml": ocm.to_yaml(score({"free": 10}), score({"free": 90}, "two"))},
        delivered(OPTIONS, "two"),
    ),
    "a mistyped score": Advice(
        "ocm-score-unknown",
        "did you mean free?",
        {**by_score(ocm.add_on("fre")), "s.yaml": ocm.to_yaml(score({"free": 10}), score({"free": 90}, "two"))},
        by_score(ocm.add_on("free")),
        delivered(OPTIONS, "two"),
    ),
    "a score of an unknown cluster": Advice(
        "ocm-score-cluster-unknown",
        "did you mean two?",
        {**by_score(ocm.add_on("free")), "s.yaml": ocm.to_yaml(score({"free": 10}), score({"free": 90}, "twoo"))},
        {"s.yaml": ocm.to_yaml(score({"free": 10}), score({"free": 90}, "two"))},
        delivered(OPTIONS, "two"),
    ),
    "a binding with another name": Advice(
        "ocm-binding-name",
        "a binding must have the name of its cluster set",
        {**pick(), "sets.yaml": OCM_BASE["sets.yaml"].replace("name: global\n  namespace", "name: all\n  namespace")},
        {"sets.yaml": OCM_BASE["sets.yaml"]},
        ON_ONE,
    ),
    "a long name": Advice(
        "ocm-placement-name",
        "the name must be no more than 63 characters",
        {"pick.yaml": pick()["pick.yaml"].replace("name: pick", f"name: {'p' * 64}")},
        pick(),
        ON_ONE,
    ),
    "two scores with one name": Advice(
        "ocm-score-duplicate",
        "",
        {
            **by_score(ocm.add_on("free")),
            "s.yaml": ocm.to_yaml({**score({}), "status": {"scores": [{"name": "free", "value": 1}] * 2}}),
        },
        {"s.yaml": ocm.to_yaml(score({"free": 1}), score({"free": 9}, "two"))},
        delivered(OPTIONS, "two"),
    ),
    "a time that is none": Advice(
        "wrong-format",
        "is not an RFC 3339 time, for example 2026-03-01T08:00:00Z",
        {**by_score(ocm.add_on("free")), "s.yaml": ocm.to_yaml(score({"free": 90}, valid_until="tomorrow"))},
        {"s.yaml": ocm.to_yaml(score({"free": 90}, valid_until="2027-03-01T08:00:00Z"))},
        ON_ONE,
    ),
    "a toleration with an unknown operator": Advice(
        "ocm-toleration-inert", "use Exists or Equal", tainted(operator="exists"), tainted(operator="Exists"), ON_ONE
    ),
    "a toleration for no time": Advice(
        "ocm-toleration-inert",
        "to tolerate it without a time limit, remove tolerationSeconds",
        tainted(operator="Exists", tolerationSeconds=0),
        tainted(operator="Exists"),
        ON_ONE,
    ),
    "spread constraints": Advice(
        "ocm-field-inert",
        "to apply it here, set the annotation",
        {"pick.yaml": ocm.to_yaml(ocm.placement("pick", "shop", 1, spreadPolicy=SPREAD))},
        {
            "pick.yaml": ocm.to_yaml(
                ocm.placement("pick", "shop", 1, spreadPolicy=SPREAD, annotations={"gitsched.io/spread-policy": "true"})
            )
        },
    ),
    "a Bundle with a variant for every cluster": Advice(
        "bundle-no-variant",
        "add a variant, or have the policy leave these clusters out",
        {**pick(predicates=[]), **VARIANTS, "options.yaml": None},
        {"bundle.yaml": VARIANTS["bundle.yaml"].replace("[one]", "[one, two]")},
        delivered("shop/configmap-built", "one", "two"),
    ),
    "a Placement that leaves clusters out": Advice(
        "bundle-no-variant",
        "or have the policy leave these clusters out",
        {**pick(predicates=[]), **VARIANTS, "options.yaml": None},
        pick(),
        delivered("shop/configmap-built", "one"),
    ),
    "a cluster that the hub does not accept": Advice(
        "ocm-field-inert",
        "add the taint cluster.open-cluster-management.io/unreachable with the effect NoSelect",
        {**pick(), **unaccepted()},
        unaccepted(ocm.taint("cluster.open-cluster-management.io/unreachable")),
        delivered(OPTIONS),
    ),
    "a Placement that does not exist": Advice("ocm-placement-missing", "", {}, pick(), ON_ONE),
    "an unsupported function": Advice(
        "cel-unsupported",
        "",
        by_cel("managedCluster.metadata.labels.authorizer('x').allowed()"),
        by_cel("managedCluster.metadata.labels['env'] == 'prod'"),
        ON_ONE,
    ),
    "a CEL expression that fails for every cluster": Advice(
        "cel-failed",
        "fails for every cluster and matches none: no such key: label",
        by_cel("managedCluster.metadata.label.env == 'prod'"),
        by_cel("managedCluster.metadata.labels['env'] == 'prod'"),
        ON_ONE,
    ),
    "an expression that costs too much": Advice(
        "cel-cost",
        "the limit is 4096",
        by_cel(f"managedCluster.metadata.labels['env'] != '{'x' * 5000}'"),
        by_cel("managedCluster.metadata.labels['env'] == 'prod'"),
        ON_ONE,
    ),
}


@pytest.mark.parametrize("case", OCM.values(), ids=OCM)
def test_advice_about_placements_does_what_it_promises(fleet: Fleet, case: Advice) -> None:
    carry_out(fleet, OCM_BASE, case)


# Karmada: fields and kinds that are not supported

WIDGET_RULE = policy("first,second", scheduling="Divided").replace("apps/v1", "example.io/v1").replace("Deployment", "Widget")
WIDGET_KIND = "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {name: widgets}\nspec:\n"
WIDGETS = {
    "web.yaml": None,
    "policy.yaml": WIDGET_RULE,
    "widget.yaml": "apiVersion: example.io/v1\nkind: Widget\nmetadata: {name: tool, namespace: default}\nspec: {size: 7}\n",
    "kind.yaml": f"{WIDGET_KIND}  target: {{apiVersion: example.io/v1, kind: Widget}}\n"
    '  customizations: {replicaResource: {luaScript: "function GetReplicas(desiredObj) return desiredObj.spec.size, nil end"}}\n',
}
DECLARED = {
    "gitsched.yaml": f"{UNGUARDED}  workloads: [{{apiVersion: example.io/v1, kind: Widget, replicasPath: spec.size}}]\n",
    "kind.yaml": None,
}
SPREADING = "    spreadConstraints: [%s{spreadByField: cluster, minGroups: 1, maxGroups: 1}]\n"
QUOTA = (
    "apiVersion: policy.karmada.io/v1alpha1\nkind: FederatedResourceQuota\nmetadata: {name: q, namespace: default}\n"
    "spec: {overall: {cpu: 1}}\n"
)
HPA = (
    "apiVersion: autoscaling.karmada.io/v1alpha1\nkind: FederatedHPA\nmetadata: {name: web, namespace: default}\n"
    "spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}\n"
)
BY_ZONE = "{spreadByField: zone, minGroups: 1, maxGroups: 1}, "
SUMMARY = "status:\n  resourceSummary: {allocatable: {cpu: %d, pods: 110}}\n"
ONE_CPU = (
    "  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web, resources: {requests: {cpu: 1}}}]}}\n"
)
OBSERVED = 'annotations: {gitsched.io/observed-at: "2026-01-01T00:00:00Z"}'
AGGREGATED = policy("first,second", scheduling="Divided").replace("Preference: Weighted", "Preference: Aggregated")
QUOTAS = f"{UNGUARDED}  karmada: {{quotaEnforcement: true}}\n"
APART = "    workloadAffinity: {antiAffinity: {groupByLabelKey: app}}\n"
KARMADA_BASE = {
    "gitsched.yaml": UNGUARDED,
    "first.yaml": cluster("first"),
    "second.yaml": cluster("second"),
    "web.yaml": deployment("web"),
    "policy.yaml": policy("first,second"),
}


def assign(overall: int, *clusters: str) -> str:
    """Return a quota that assigns one cpu to each cluster."""
    assignments = ", ".join(f"{{clusterName: {name}, hard: {{cpu: 1}}}}" for name in clusters)
    return QUOTA.replace("cpu: 1}}", f"cpu: {overall}}}, staticAssignments: [{assignments}]}}")


def has_sizes(**wanted: int) -> Check:
    return lambda fleet: (
        {name: fleet.load(f"clusters/{name}/default/widget.example.io-tool.yaml")["spec"]["size"] for name in wanted} == wanted
    )


KARMADA: dict[str, Advice] = {
    "another scheduler": Advice(
        "field-unsupported",
        "Remove the field to let gitsched do it",
        {"policy.yaml": policy("first,second", more="  schedulerName: mine\n")},
        {"policy.yaml": policy("first,second")},
        delivered("default/deployment-web", "first", "second"),
    ),
    "at most no cluster": Advice(
        "karmada-spread-groups",
        "no cluster is selected. Set maxGroups",
        {"policy.yaml": policy("first,second", more=(SPREADING % "").replace(", maxGroups: 1", ""))},
        {"policy.yaml": policy("first,second", more=SPREADING % "")},
        delivered("default/deployment-web", "first"),
    ),
    "spread by zone": Advice(
        "karmada-spread-field",
        "workloads are spread by region and cluster",
        {"policy.yaml": policy("first,second", more=SPREADING % "{spreadByField: zone, minGroups: 1}, ")},
        {"policy.yaml": policy("first,second", more=SPREADING % "")},
        delivered("default/deployment-web", "first"),
    ),
    "spread by zone, as it is written": Advice(
        "karmada-spread-field",
        "unless karmada.spread is strict in gitsched.yaml",
        {
            "first.yaml": cluster("first") + "  zone: a\n",
            "second.yaml": cluster("second") + "  zone: b\n",
            "policy.yaml": policy("first,second", more=(SPREADING % BY_ZONE).replace("maxGroups: 1}]", "maxGroups: 2}]")),
        },
        {"gitsched.yaml": f"{UNGUARDED}  karmada: {{spread: strict}}\n"},
        delivered("default/deployment-web", "first"),
    ),
    "more than a cluster has": Advice(
        "cluster-overcommitted",
        "2 cpu requested, 1 allocatable; pods wait. Add nodes",
        {"first.yaml": cluster("first") + SUMMARY % 1, "web.yaml": deployment("web") + ONE_CPU},
        {"first.yaml": cluster("first") + SUMMARY % 2},
    ),
    "capacity that was observed at an unknown time": Advice(
        "capacity-time-unknown",
        "set the annotation gitsched.io/observed-at",
        {"first.yaml": cluster("first") + SUMMARY % 8, "policy.yaml": AGGREGATED},
        {"first.yaml": (cluster("first") + SUMMARY % 8).replace("  name: first\n", f"  name: first\n  {OBSERVED}\n")},
    ),
    "a summary with an amount that no cluster has": Advice(
        "karmada-summary-amount",
        "the amount of cpu exceeds 9223372036854775807, which is the largest one",
        {"first.yaml": cluster("first") + SUMMARY % 2**64},
        {"first.yaml": cluster("first") + SUMMARY % 2},
    ),
    "an amount that is no quantity": Advice(
        "karmada-quota-amount",
        "is not a quantity",
        {"gitsched.yaml": QUOTAS, "quota.yaml": QUOTA.replace("cpu: 1", "cpu: many")},
        {"quota.yaml": QUOTA},
    ),
    "a second assignment to a cluster": Advice(
        "karmada-quota-cluster",
        "has more than one assignment",
        {"gitsched.yaml": QUOTAS, "quota.yaml": assign(2, "first", "first")},
        {"quota.yaml": assign(2, "first")},
        lambda fleet: fleet.load("clusters/first/default/resourcequota-q.yaml")["spec"] == {"hard": {"cpu": 1}},
    ),
    "more assigned than there is": Advice(
        "karmada-quota-contradiction",
        "overall has 1 cpu, and 2 are assigned to clusters",
        {"gitsched.yaml": QUOTAS, "quota.yaml": assign(1, "first", "second")},
        {"quota.yaml": assign(2, "first", "second")},
        lambda fleet: fleet.load("clusters/second/default/resourcequota-q.yaml")["spec"] == {"hard": {"cpu": 1}},
    ),
    "a quota over all clusters": Advice(
        "karmada-gate-off",
        "Set spec.karmada.featureGates.FederatedQuotaEnforcement to true in gitsched.yaml to enable it",
        {"quota.yaml": QUOTA},
        {"gitsched.yaml": f"{UNGUARDED}  karmada: {{featureGates: {{FederatedQuotaEnforcement: true}}}}\n"},
    ),
    "groups of workloads": Advice(
        "karmada-gate-off",
        "Set spec.karmada.featureGates.WorkloadAffinity to true in gitsched.yaml to enable it",
        {"policy.yaml": policy("first,second", more=APART)},
        {"gitsched.yaml": f"{UNGUARDED}  karmada: {{featureGates: {{WorkloadAffinity: true}}}}\n"},
    ),
    "an autoscaler for all clusters": Advice("kind-unsupported", "and remove this document", {"hpa.yaml": HPA}, {"hpa.yaml": None}),
    "a script that knows the replicas": Advice(
        "karmada-interpreter",
        "Declare the replicas of example.io/v1 Widget under spec.workloads in gitsched.yaml",
        WIDGETS,
        DECLARED,
        has_sizes(first=4, second=3),
    ),
}


@pytest.mark.parametrize("case", KARMADA.values(), ids=KARMADA)
def test_advice_about_unsupported_fields_does_what_it_promises(fleet: Fleet, case: Advice) -> None:
    carry_out(fleet, KARMADA_BASE, case)


# Krake


def write_krake(*bodies: Mapping[str, Any]) -> str:
    return ocm.to_yaml(*map(dict, bodies))


def bound(name: str | None, kind: str = "application", of: str = "echo") -> Check:
    """The record of an Application or Cluster says that it is bound to a cluster or cloud."""
    path = f"status/kubernetes/{kind}/{krake.NAMESPACE}/{of}.yaml"
    return lambda fleet: ((fleet.load(path)["status"].get("scheduled_to") or {}).get("name")) == name


def echo(**options: Any) -> dict[str, str]:
    return {"echo.yaml": write_krake(krake.application(**options))}


def with_project_metrics(magnum: krake.Body) -> krake.Body:
    return {**magnum, "spec": {**magnum["spec"], "constraints": {"project": {"metrics": ["load = 5"]}}}}


def one(*args: Any, **options: Any) -> dict[str, str]:
    return {"one.yaml": write_krake(krake.cluster("one", *args, **options))}


WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
TO_ONE = {"kind": "Cluster", "api": "kubernetes", "name": "one", "namespace": krake.NAMESPACE}
TO_SKY = {"kind": "Cloud", "api": "infrastructure", "name": "sky", "namespace": krake.NAMESPACE}
NEW_CLUSTER = {"kubeconfig": {}, "tosca": krake.TOSCA}
RUN_ON_ONE = bound("one")
SETTINGS = UNGUARDED + "  krake: {%s}\n"
KRAKE: dict[str, Advice] = {
    "a cluster without a state": Advice(
        "krake-cluster-state", "set status.state, for example to ONLINE", one(None), one("ONLINE"), RUN_ON_ONE
    ),
    "a mistyped state": Advice("krake-cluster-state", "did you mean ONLINE?", one("online"), one("ONLINE"), RUN_ON_ONE),
    "a cluster that is offline": Advice(
        "krake-cluster-unavailable", "is OFFLINE, so nothing is scheduled there", one("OFFLINE"), one("ONLINE"), RUN_ON_ONE
    ),
    "a failed application": Advice(
        "unschedulable",
        "status.state of its document is FAILED; to schedule it again, remove the state",
        {**echo(status={"state": "FAILED"}), **one()},
        echo(),
        RUN_ON_ONE,
    ),
    "no cluster": Advice("unschedulable", "no Cluster found in namespace tenant-a", {}, one(), RUN_ON_ONE),
    "clusters in a similar namespace": Advice(
        "unschedulable",
        "did you mean the namespace tenant-a?",
        {**one(), "echo.yaml": krake.application_yaml().replace("tenant-a", "tenant-b")},
        echo(),
        RUN_ON_ONE,
    ),
    "a constraint that no cluster matches": Advice(
        "unschedulable",
        "has failed: No matching Kubernetes cluster found",
        {**echo(constraints={"labels": ["zone is x"]}, backoff_limit=0), **one()},
        echo(),
        RUN_ON_ONE,
    ),
    "an impossible constraint": Advice(
        "krake-constraint-impossible",
        "",
        {
            **echo(constraints={"metrics": ["load > 5"]}),
            **one(metrics=krake.weigh(load=1)),
            "m.yaml": write_krake(*krake.measure(load=0.5)),
        },
        echo(constraints={"metrics": ["load < 1"]}),
        RUN_ON_ONE,
    ),
    "a misspelt constraint": Advice(
        "krake-label-constraint",
        "",
        {**echo(constraints={"labels": ["zone iss x"]}), **one(labels={"zone": "x"})},
        echo(constraints={"labels": ["zone is x"]}),
        RUN_ON_ONE,
    ),
    "a number that is none": Advice(
        "krake-constraint-number",
        "",
        {
            **echo(constraints={"metrics": ["load > nan"]}),
            **one(metrics=krake.weigh(load=1)),
            "m.yaml": write_krake(*krake.measure(load=0.5)),
        },
        echo(constraints={"metrics": ["load > 0.2"]}),
        RUN_ON_ONE,
    ),
    "a constraint on metrics of a project": Advice(
        "krake-project-constraint",
        "metrics have no effect here: of a project, only constraints on labels count",
        {
            "magnum.yaml": write_krake(with_project_metrics(krake.magnum_cluster())),
            "project.yaml": write_krake(krake.project("one")),
        },
        {"magnum.yaml": write_krake(krake.magnum_cluster())},
    ),
    "a custom resource": Advice(
        "krake-custom-resource",
        "add its name, <plural>.example.com, to spec.constraints.cluster.custom_resources, and to spec.custom_resources of the clusters",
        {"echo.yaml": write_krake({**krake.application(), "spec": {"manifest": [WIDGET]}}), **one()},
        {
            "echo.yaml": write_krake(
                {
                    **krake.application(constraints={"custom_resources": ["widgets.example.com"]}),
                    "spec": {"manifest": [WIDGET], "constraints": {"cluster": {"custom_resources": ["widgets.example.com"]}}},
                }
            ),
            **one(custom_resources=["widgets.example.com"]),
        },
        RUN_ON_ONE,
    ),
    "no metric of a cluster": Advice(
        "krake-failing-metric",
        "",
        {**one(metrics=krake.weigh(load=1))},
        {"m.yaml": write_krake(*krake.measure(load=0.5))},
        RUN_ON_ONE,
    ),
    "a value out of range": Advice(
        "krake-failing-metric",
        "",
        {**one(metrics=krake.weigh(load=1)), "m.yaml": write_krake(*krake.measure(load=7))},
        {"m.yaml": write_krake(*krake.measure(load=0.7))},
        RUN_ON_ONE,
    ),
    "a range without width": Advice(
        "krake-metric-range",
        "",
        {**one(metrics=krake.weigh(load=1)), "m.yaml": write_krake(krake.measure(load=0.5)[0], krake.metric("load", 1, 1))},
        {"m.yaml": write_krake(*krake.measure(load=0.5))},
        RUN_ON_ONE,
    ),
    "weights that add up to 0": Advice(
        "krake-weights",
        "",
        {**one(metrics=krake.weigh(load=0)), "m.yaml": write_krake(*krake.measure(load=0.5))},
        one(metrics=krake.weigh(load=1)),
        RUN_ON_ONE,
    ),
    "a cloud that is missing": Advice(
        "krake-cloud-missing",
        "inherits nothing",
        {**one(inherit_labels=True, scheduled_to=TO_SKY), **echo(constraints={"labels": ["zone is x"]})},
        {"sky.yaml": write_krake(krake.cloud("sky", labels={"zone": "x"}))},
        RUN_ON_ONE,
    ),
    "no time of the binding": Advice(
        "krake-timestamps",
        "status.scheduled is missing",
        {**one(), **echo(status={"scheduled_to": TO_ONE})},
        echo(status={"scheduled_to": TO_ONE, "scheduled": krake.format_later(0)}),
        RUN_ON_ONE,
    ),
    "an application of TOSCA alone": Advice(
        "krake-nothing-to-render",
        "has no spec.manifest",
        {**one(), "echo.yaml": write_krake({**krake.application(), "spec": {"tosca": krake.TOSCA}})},
        echo(),
        lambda fleet: any(path.endswith("configmap-settings.yaml") for path in fleet.files()),
    ),
    "a cluster without a document": Advice(
        "cluster-gone",
        "which does not exist, so nothing is rendered for it",
        {**one(), "one.yaml": None},
        one(),
        RUN_ON_ONE,
        (one(),),
    ),
    "a failed cluster": Advice(
        "krake-cluster-pending",
        "hand the binding to Krake with `gitsched export krake`, or create the cluster, and set spec.krake.provisioner",
        {
            "new.yaml": write_krake(krake.cluster("new", None, **NEW_CLUSTER)),
            "sky.yaml": write_krake(krake.cloud("sky")),
            "echo.yaml": None,
        },
        {"gitsched.yaml": SETTINGS % "provisioner: krake"},
        bound("sky", "cluster", "new"),
    ),
    "a global cloud with the metric of a namespace": Advice(
        "krake-global-reference",
        "a GlobalCloud cannot refer to a metric in a namespace",
        {
            "new.yaml": write_krake(krake.cluster("new", None, **NEW_CLUSTER)),
            "sky.yaml": write_krake(krake.cloud("sky", {"name": "load", "weight": 1, "namespaced": True}, is_global=True)),
            "m.yaml": write_krake(*krake.measure(load=0.5)),
        },
        {"sky.yaml": write_krake(krake.cloud("sky", {"name": "load", "weight": 1}, is_global=True))},
        bound("sky", "cluster", "new"),
    ),
    "a kubeconfig of several clusters": Advice(
        "krake-kubeconfig",
        "",
        one(kubeconfig={**krake.KUBECONFIG, "contexts": [{"name": "a"}, {"name": "b"}]}),
        one(),
        RUN_ON_ONE,
    ),
    "a global object with a namespace": Advice(
        "invalid-namespace",
        "is not namespaced: remove metadata.namespace",
        {
            **one(metrics=krake.weigh(load=1)),
            "m.yaml": write_krake(
                {**krake.measure()[0], "metadata": {"name": "p", "namespace": "x"}, "spec": krake.measure(load=0.5)[0]["spec"]},
                krake.metric("load"),
            ),
        },
        {"m.yaml": write_krake(*krake.measure(load=0.5))},
        RUN_ON_ONE,
    ),
    "no content": Advice(
        "missing-field",
        "one of manifest, tosca and csar is required",
        {**one(), "echo.yaml": write_krake({**krake.application(), "spec": {"constraints": {}}})},
        echo(),
        RUN_ON_ONE,
    ),
    "a label that is none": Advice(
        "invalid-labels", "is not a valid label key", one(labels={"a b": "c"}), one(labels={"a": "c"}), RUN_ON_ONE
    ),
}


@pytest.mark.parametrize("case", KRAKE.values(), ids=KRAKE)
def test_advice_about_applications_does_what_it_promises(fleet: Fleet, case: Advice) -> None:
    carry_out(fleet, {"gitsched.yaml": UNGUARDED, **echo()}, case)


# Knative

NODES = {f"n{number}.yaml": knative.node(f"n{number}", "east") for number in range(2)}
VREPLICAS = {
    "gitsched.yaml": knative.settings(cluster="events", autoscaler="{attemptScaleDown: false}"),
    "adapter.yaml": knative.adapter(2),
    "pods.yaml": knative.pods({0: "n0", 1: "n1"}),
    "orders.yaml": knative.source("orders", 6),
    **NODES,
}


def count_placed(name: str, kind: str = "kafkasource") -> Callable[[Fleet], int]:
    def count(fleet: Fleet) -> int:
        path = f"status/sources.knative.dev/{kind}/shop/{name}.yaml"
        return sum(each["vreplicas"] for each in fleet.load(path)["status"].get("placements", ())) if path in fleet.files() else 0

    return count


def placed(number: int, name: str = "orders", kind: str = "kafkasource") -> Check:
    return lambda fleet: count_placed(name, kind)(fleet) == number


def profile(predicates: str, priorities: str = "[]") -> dict[str, str]:
    head = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: config-scheduler, namespace: {knative.NAMESPACE}}}\n"
    return {"profile.yaml": f"{head}data:\n  predicates: '{predicates}'\n  priorities: '{priorities}'\n"}


def without_capacity(**more: Any) -> dict[str, str]:
    return {"gitsched.yaml": knative.settings(**more).replace("    capacity: 4\n", "")}


FITS = '[{"Name": "PodFitsResources"}]'
PLAIN_SETTINGS = {"gitsched.yaml": knative.settings(autoscaler="{attemptScaleDown: false}")}
PINGS = knative.source("pings", 2).replace("KafkaSource", "PrimeSource")
SCALER = (
    "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: orders, namespace: shop}\nspec:\n"
    "  scaleTargetRef: {apiVersion: sources.knative.dev/v1beta1, kind: KafkaSource, name: orders}\n  triggers: []\n"
)
HPA = (
    "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: keda-hpa-orders, namespace: shop}\nspec:\n"
    "  scaleTargetRef: {apiVersion: sources.knative.dev/v1beta1, kind: KafkaSource, name: orders}\n  maxReplicas: 9\n"
    "status: {desiredReplicas: 3, currentReplicas: 3}\n"
)
KNATIVE: dict[str, Advice] = {
    "no capacity": Advice(
        "knative-capacity",
        "set the number of vreplicas per pod in gitsched.yaml",
        without_capacity(cluster="events"),
        {"gitsched.yaml": VREPLICAS["gitsched.yaml"]},
        placed(6),
    ),
    "no settings": Advice(
        "knative-settings",
        "set spec.knative.capacity (vreplicas per pod) and spec.knative.cluster in gitsched.yaml",
        {"gitsched.yaml": UNGUARDED},
        {"gitsched.yaml": VREPLICAS["gitsched.yaml"]},
        placed(6),
    ),
    "no settings and no adapter": Advice(
        "knative-settings",
        "and commit the StatefulSet of the adapter",
        {"gitsched.yaml": UNGUARDED, "adapter.yaml": None},
        {"gitsched.yaml": VREPLICAS["gitsched.yaml"], "adapter.yaml": VREPLICAS["adapter.yaml"]},
        placed(6),
    ),
    "no cluster": Advice(
        "knative-no-cluster",
        "set spec.knative.cluster",
        PLAIN_SETTINGS,
        {"gitsched.yaml": VREPLICAS["gitsched.yaml"]},
        lambda fleet: knative.RENDERED in fleet.files(),
    ),
    "a node that does not exist": Advice(
        "knative-node-missing",
        "commit the Node, or the pods take no new vreplicas",
        {"n1.yaml": None},
        {"n1.yaml": NODES["n1.yaml"]},
        placed(6),
    ),
    "no StatefulSet": Advice(
        "knative-adapter",
        "commit it, and name it as NAMESPACE/NAME in knative.statefulSet",
        {"adapter.yaml": None},
        {
            "adapter.yaml": VREPLICAS["adapter.yaml"],
            "gitsched.yaml": knative.settings(cluster="events", statefulSet=f"{knative.NAMESPACE}/{knative.ADAPTER}"),
        },
        placed(6),
    ),
    "a kind without an adapter": Advice(
        "knative-undeclared-kind",
        "Name its StatefulSet in knative.adapters, with kinds: [PrimeSource]",
        {"pings.yaml": PINGS},
        {
            "gitsched.yaml": knative.settings(
                cluster="events", adapters=f"[{{statefulSet: {knative.NAMESPACE}/primes, kinds: [PrimeSource], capacity: 4}}]"
            ),
            "primes.yaml": knative.adapter(1).replace(knative.ADAPTER, "primes"),
            "primes-pods.yaml": knative.pod(0, "n0").replace(knative.ADAPTER, "primes"),
        },
        placed(2, "pings", "primesource"),
    ),
    "a kind that is declared": Advice(
        "knative-undeclared-kind",
        "or declare the kind with its replicasPath in knative.sources",
        {"pings.yaml": PINGS},
        {
            "gitsched.yaml": knative.settings(
                cluster="events",
                sources="[{apiVersion: sources.knative.dev/v1beta1, kind: PrimeSource, replicasPath: spec.consumers}]",
            )
        },
        placed(2, "pings", "primesource"),
    ),
    "two entries of one StatefulSet": Advice(
        "knative-adapter",
        "list all kinds of its sources in one entry",
        {
            "pings.yaml": PINGS,
            "gitsched.yaml": knative.settings(
                cluster="events",
                adapters=f"[{{statefulSet: {knative.ADAPTER}, kinds: [KafkaSource]}}, "
                f"{{statefulSet: {knative.ADAPTER}, kinds: [PrimeSource]}}]",
            ),
        },
        {
            "gitsched.yaml": knative.settings(
                cluster="events", adapters=f"[{{statefulSet: {knative.ADAPTER}, kinds: [KafkaSource, PrimeSource]}}]"
            )
        },
        lambda fleet: placed(6)(fleet) and placed(2, "pings", "primesource")(fleet),
    ),
    "no list of plug-ins": Advice(
        "knative-policy",
        "for an empty list, write []",
        {"profile.yaml": profile(FITS)["profile.yaml"].replace("  priorities: '[]'\n", "")},
        profile(FITS),
        placed(6),
    ),
    "an argument that is missing": Advice(
        "knative-arguments",
        'must be a string such as "{\\"MaxSkew\\": 2}"',
        profile('[{"Name": "PodFitsResources"}, {"Name": "EvenPodSpread", "Args": 2}]'),
        profile('[{"Name": "PodFitsResources"}, {"Name": "EvenPodSpread", "Args": "{\\"MaxSkew\\": 2}"}]'),
        placed(6),
    ),
    "an unknown plug-in": Advice(
        "knative-unknown-plugin",
        "did you mean PodFitsResources?",
        profile('[{"Name": "PodFitsResource"}]'),
        profile(FITS),
        placed(6),
    ),
    "a priority twice": Advice(
        "knative-duplicate-plugin",
        "a priority is listed more than once",
        profile(FITS, '[{"Name": "LowestOrdinalPriority", "Weight": 1}, {"Name": "LowestOrdinalPriority", "Weight": 2}]'),
        profile(FITS, '[{"Name": "LowestOrdinalPriority", "Weight": 2}]'),
        placed(6),
    ),
    "a number of vreplicas that is none": Advice(
        "knative-vreplicas",
        "",
        {"orders.yaml": knative.source("orders", 6).replace("consumers: 6", "consumers: 99999999999")},
        {"orders.yaml": knative.source("orders", 6)},
        placed(6),
    ),
    "placements that are none": Advice(
        "knative-placements",
        "",
        {"orders.yaml": knative.source("orders", 6) + "status: {placements: [{podName: other, vreplicas: -2}]}\n"},
        {"orders.yaml": knative.source("orders", 6)},
        placed(6),
    ),
    "consumers that KEDA decides": Advice(
        "knative-consumers-unknown",
        "Collect the HorizontalPodAutoscaler with its status",
        {"scaler.yaml": SCALER},
        {"hpa.yaml": HPA},
        placed(3),
    ),
    "a pod that is marked": Advice(
        "knative-pending",
        f"remove the annotation {knative.MARK} to use it",
        {"pods.yaml": knative.pods({0: "n0", 1: "n1"}, marked=[1])},
        {"pods.yaml": VREPLICAS["pods.yaml"]},
        placed(6),
    ),
    "vreplicas that fit on no pod": Advice(
        "knative-pending",
        "are pending",
        {"orders.yaml": knative.source("orders", 12)},
        {"adapter.yaml": knative.adapter(3), "pods.yaml": knative.pods({0: "n0", 1: "n1", 2: "n0"})},
        placed(12),
    ),
    "pods that do not run": Advice(
        "knative-unavailable",
        "do not run, and keep their vreplicas until they return",
        {"pods.yaml": knative.pods({0: "n0", 1: None})},
        {"pods.yaml": knative.pods({0: "n0", 1: "n1"})},
        placed(6),
        ({},),
    ),
    "vreplicas on a marked pod": Advice(
        "knative-lingering",
        "no other pod can take them",
        {"pods.yaml": knative.pods({0: "n0", 1: "n1"}, marked=[1])},
        {"pods.yaml": knative.pods({0: "n0", 1: "n1"})},
        placed(6),
        ({},),
    ),
    "a cluster of unused pods": Advice(
        "knative-unused-pods",
        "delete the StatefulSet to remove them",
        {"orders.yaml": None},
        {"adapter.yaml": None, "pods.yaml": None},
        lambda fleet: knative.RENDERED not in fleet.files(),
        ({},),
    ),
    "a source that is there twice": Advice(
        "stale-decision",
        "keeps its placements: its document is invalid",
        {"again.yaml": knative.source("orders", 5)},
        {"orders.yaml": None},
        placed(5),
        ({},),
    ),
}


@pytest.mark.parametrize("case", KNATIVE.values(), ids=KNATIVE)
def test_advice_about_event_sources_does_what_it_promises(fleet: Fleet, case: Advice) -> None:
    carry_out(fleet, VREPLICAS, case)


# Bundles, variants and settings of gitsched

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: shop}\ndata: {text: '%s'}\n"
SHOP = "shop/configmap-options"
NAMED = "  variants:\n  - {path: first, clusters: {names: [first]}}\n"


def bundle(spec: str) -> dict[str, str]:
    return {
        "bundle.yaml": f"apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {{name: shop, namespace: shop}}\nspec:\n{spec}"
    }


def policy_of(*groups: str, kind: str = "Bundle") -> dict[str, str]:
    version = "gitsched.io/v1alpha1" if kind == "Bundle" else "v1"
    text = policy(*groups, kind=kind, name=kind.lower()).replace("namespace: default", "namespace: shop")
    return {f"{kind.lower()}-policy.yaml": text.replace("apiVersion: apps/v1", f"apiVersion: {version}")}


def with_spec(text: str) -> dict[str, str]:
    return {"gitsched.yaml": f"apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {{name: gitsched}}\nspec: {{{text}}}\n"}


BUNDLES = {
    "gitsched.yaml": UNGUARDED,
    "clusters.yaml": cluster("first") + "---\n" + cluster("second"),
    "first/options.yaml": MAP % ("options", "one"),
    **bundle("  path: first\n"),
    **policy_of("first,second"),
}
ON_BOTH = delivered(SHOP, "first", "second")
OVERRIDE = (
    "apiVersion: policy.karmada.io/v1alpha1\nkind: OverridePolicy\nmetadata: {name: edit, namespace: shop}\nspec:\n"
    "  resourceSelectors: [{apiVersion: %s}]\n  overrideRules:\n"
    "  - overriders: {plaintext: [{path: /data/text, operator: replace, value: edited}]}\n"
)
TIERED = {"first/options.yaml": MAP % ("options", "${tier}")}
OWN: dict[str, Advice] = {
    "a directory that does not exist": Advice("bundle-missing", "", bundle("  path: frist\n"), bundle("  path: first\n"), ON_BOTH),
    "a directory of another repository": Advice(
        "bundle-invalid",
        "copy it into the repository",
        bundle("  path: https://example.com/first\n"),
        bundle("  path: first\n"),
        ON_BOTH,
    ),
    "a selector with errors": Advice(
        "bundle-invalid",
        "correct keys, values and operators",
        bundle("  variants:\n  - {path: first, clusters: {matchLabels: {a b: c}}}\n"),
        bundle("  variants:\n  - {path: first}\n"),
        ON_BOTH,
    ),
    "a variant of no cluster": Advice(
        "bundle-unused",
        "",
        bundle("  variants:\n  - {path: first, clusters: {names: [third]}}\n  - {path: first}\n"),
        bundle("  variants:\n  - {path: first, clusters: {names: [second]}}\n  - {path: first}\n"),
        ON_BOTH,
    ),
    "a cluster of two variants": Advice(
        "bundle-overlap",
        "",
        bundle(NAMED + "  - {path: first, clusters: {names: [first, second]}}\n"),
        bundle(NAMED + "  - {path: first, clusters: {names: [second]}}\n"),
        ON_BOTH,
    ),
    "a value that clusters lack": Advice(
        "bundle-cluster-value",
        "",
        {**TIERED, **bundle("  path: first\n  values: {tier: cluster.labels.tier}\n")},
        {"clusters.yaml": BUNDLES["clusters.yaml"].replace("metadata:\n", "metadata:\n  labels: {tier: gold}\n")},
        lambda fleet: ON_BOTH(fleet) and "gold" in fleet.read(f"clusters/second/{SHOP}.yaml"),
    ),
    "a variable without a value": Advice(
        "bundle-value",
        "",
        {**TIERED, **bundle("  path: first\n  values: {name: cluster.name}\n")},
        bundle("  path: first\n  values: {tier: cluster.name}\n"),
        lambda fleet: "second" in fleet.read(f"clusters/second/{SHOP}.yaml"),
    ),
    "a default of a variable": Advice(
        "bundle-value",
        "",
        {**TIERED, **bundle("  path: first\n  values: {name: cluster.name}\n")},
        {"first/options.yaml": MAP % ("options", "${tier:-gold}")},
        lambda fleet: "gold" in fleet.read(f"clusters/second/{SHOP}.yaml"),
    ),
    "a policy in the directory": Advice(
        "bundle-content",
        "",
        {"first/policy.yaml": policy_of("first", kind="Secret")["secret-policy.yaml"]},
        {"policy.yaml": policy_of("first", kind="Secret")["secret-policy.yaml"], "first/policy.yaml": None},
        ON_BOTH,
    ),
    "two workloads with one object": Advice(
        "bundle-conflict",
        "",
        {
            "second/options.yaml": MAP % ("options", "two"),
            "other.yaml": bundle("  path: second\n")["bundle.yaml"].replace("name: shop,", "name: other,"),
        },
        {"other.yaml": None},
        lambda fleet: "text: 'one'" in fleet.read(f"clusters/first/{SHOP}.yaml"),
    ),
    "an override of a Bundle": Advice(
        "bundle-override",
        "",
        {"override.yaml": OVERRIDE % "gitsched.io/v1alpha1, kind: Bundle"},
        {"override.yaml": OVERRIDE % "v1, kind: ConfigMap"},
        lambda fleet: "edited" in fleet.read(f"clusters/first/{SHOP}.yaml"),
    ),
    "limits that contradict": Advice(
        "guard-limits",
        "lower the limit of the fleet, or raise the other one",
        with_spec("guard: {namespace: {removed: 5}}"),
        with_spec("guard: {namespace: {removed: 5}, fleet: {removed: 5}}"),
    ),
    "a guard that is off": Advice(
        "guard-limits",
        "set spec.guard.fleet.removed and spec.guard.fleet.moved",
        {},
        with_spec("guard: {fleet: {removed: 20, moved: 30}, namespace: {removed: 100}, cluster: {removed: 100}}"),
    ),
}


@pytest.mark.parametrize("case", OWN.values(), ids=OWN)
def test_advice_about_bundles_and_settings_does_what_it_promises(fleet: Fleet, case: Advice) -> None:
    carry_out(fleet, BUNDLES, case)


# Simulations and expired documents

GENERATED = krake.cluster("made", auto_generated=True)


def run_command(fleet: Fleet, hour: float, *arguments: str) -> tuple[int, str]:
    options = ("--repo", str(fleet.path), "--cache-dir", str(fleet.cache), "--now", at_hour(hour).isoformat())
    result = CliRunner().invoke(cli, [*arguments, *options])
    return result.exit_code, f"{result.output}{result.exception or ''}"


def test_expired_documents_are_removed_and_committed_as_tidy_says(fleet: Fleet) -> None:
    """Of the advice of `krake-cluster-unused` as well: the finding is gone when the documents are removed and committed."""
    app, home = echo(constraints={"labels": ["zone is x"]}), one(labels={"zone": "x"})
    fleet.commit({"gitsched.yaml": UNGUARDED, **app, **home, "made.yaml": write_krake(GENERATED)})
    run = fleet.reconcile()
    assert find(run, "krake-cluster-unused", "remove its document, for example with `gitsched tidy --write`")
    fleet.reconcile(1)
    assert "Use --write to remove them." in run_command(fleet, 2, "tidy")[1]
    assert "Commit the changes." in run_command(fleet, 2, "tidy", "--write")[1]
    assert not (fleet.path / "made.yaml").exists()
    fleet.commit(hour=2)
    before = fleet.files()
    run = fleet.reconcile(2)
    assert not find(run, "krake-cluster-unused", "")
    assert RUN_ON_ONE(fleet)
    assert not run.plan.moves, "they move no workload"
    assert {path for path in before if path.startswith("clusters/tenant-a.one")} <= fleet.files().keys()
    assert "No document has expired." in run_command(fleet, 3, "tidy")[1]


def test_a_cluster_that_cannot_be_drained_can_be_lost_as_simulate_says(fleet: Fleet) -> None:
    fleet.commit({"gitsched.yaml": UNGUARDED, **echo(), **one(), "two.yaml": write_krake(krake.cluster("two"))})
    fleet.reconcile()
    home, other = ("one", "two") if RUN_ON_ONE(fleet) else ("two", "one")
    code, text = run_command(fleet, 1, "simulate", "--drain", f"tenant-a.{home}")
    assert (code, f"tenant-a/{home} cannot be drained: its API does not support this; use --lose instead" in text) == (1, True)
    code, text = run_command(fleet, 1, "simulate", "--lose", f"tenant-a.{home}")
    assert (code, f"tenant-a.{other}" in text) == (0, True)
    fleet.commit({f"{home}.yaml": None}, hour=2)
    fleet.reconcile(2)
    assert bound(other)(fleet), "what the simulation says happens"


def test_the_options_of_simulate_exclude_each_other_as_it_says(fleet: Fleet) -> None:
    fleet.commit({"gitsched.yaml": UNGUARDED, **echo(), **one()})
    fleet.reconcile()
    code, text = run_command(fleet, 1, "simulate", "--lose", "tenant-a.one", "--sweep", "clusters")
    assert (code, "use either an event (--lose, --drain, --add, --add-like, --scale, --fresh) or --sweep" in text) == (2, True)
    assert run_command(fleet, 1, "simulate", "--sweep", "clusters", "--fail-on", "none")[0] == 0


def test_a_failed_cluster_is_bound_again_as_its_explanation_says(fleet: Fleet) -> None:
    new = krake.cluster("new", "FAILED", **NEW_CLUSTER)
    fleet.commit({"gitsched.yaml": UNGUARDED, "new.yaml": write_krake(new), "sky.yaml": write_krake(krake.cloud("sky"))})
    fleet.reconcile()
    code, text = run_command(fleet, 1, "explain", "cluster.kubernetes/new", "-n", krake.NAMESPACE)
    assert "remove status.state to bind it again" in " ".join(text.split()), (code, text)
    assert bound(None, "cluster", "new")(fleet)
    fleet.commit({"new.yaml": write_krake({**new, "status": {}})}, hour=2)
    fleet.reconcile(2)
    assert bound("sky", "cluster", "new")(fleet)


# Every finding and every advice has a case, or a reason

CASES = {**OCM, **KARMADA, **KRAKE, **KNATIVE, **OWN}
API_CODES = (
    "field-unsupported",
    "kind-unsupported",
    "karmada-interpreter",
    "ocm-",
    "cel-",
    "krake-",
    "knative-",
    "bundle-",
    "guard-limits",
    "variant-",
)
COMMANDS = {"krake-cluster-unused": "test_expired_documents_are_removed_and_committed_as_tidy_says"}
NO_ADVICE = ("it says what happens, without advice", "")
FORGE = ("a forge has to report statuses", "tests/scenarios/test_rollout_statuses.py")
HUB = ("`gitsched export` prints it, and the advice is for another system", "")
SERVER = ("a metrics server has to answer", "tests/scenarios/test_krake.py")
TOOLS = ("Flux or Argo CD delivers", "tests/scenarios/test_bundle_delivery.py")
NOT_CARRIED_OUT: dict[str, tuple[str, str]] = {
    "ocm-rollout-failed": FORGE,
    "ocm-rollout-skipped": ("it says what happens, without advice", "tests/scenarios/test_rollouts.py"),
    "ocm-statuses-unknown": FORGE,
    "ocm-not-exported": HUB,
    "krake-not-exported": HUB,
    "ocm-score-source": ("`gitsched scores` reads it", "tests/cli/test_scores.py"),
    "krake-secret-in-git": ("the advice is to revoke a secret", "tests/apis/krake/test_validation.py"),
    "krake-token-twice": ("it changes which token is sent", "tests/apis/krake/test_validation.py"),
    "krake-provider-url": ("a metrics server has to answer", "tests/apis/krake/test_validation.py"),
    "krake-provider-changed": SERVER,
    "krake-not-asked": SERVER,
    "krake-cluster-wanted": ("somebody has to create a cluster", "tests/apis/krake/test_cluster_creation.py"),
    "krake-*-constraint": ("the pattern of krake-label-constraint, which has a case", ""),
    "knative-evicted": NO_ADVICE,
    "knative-moved": NO_ADVICE,
    "knative-placed": NO_ADVICE,
    "knative-removed": NO_ADVICE,
    "bundle-delivery": TOOLS,
    "bundle-delivery-changed": TOOLS,
    "bundle-limit": ("it takes 100,000 objects", "tests/scenarios/test_bundle_contents.py"),
    "variant-unused": ("the stories of variants carry it out", "tests/scenarios/bundles.yaml"),
}
"""Codes without a case: the reason, and the file with the test of the finding."""


def test_every_code_of_an_api_has_a_case_or_a_reason() -> None:
    codes = {code for code in find_codes() if code.startswith(API_CODES)}
    covered = {case.code for case in CASES.values()} | COMMANDS.keys()
    assert sorted(codes - covered - NOT_CARRIED_OUT.keys()) == []
    assert sorted(NOT_CARRIED_OUT.keys() - codes) == [], "these codes do not exist"
    assert sorted(covered & NOT_CARRIED_OUT.keys()) == [], "a case carries these out"
    tests = {code: (ROOT / path).read_text() for code, (_, path) in NOT_CARRIED_OUT.items() if path}
    assert [code for code, text in tests.items() if code not in text] == []


ADVISES = re.compile(
    r"(?:[;:,.] (?:or |and |[Tt]o [^,;:]+, )?|\bor )(?:add|set|remove|use|write|commit|create|correct|name|declare|delete|annotate|collect"
    r"|list"
    r"|did you mean|copy|lower|update|hand|choose|split)\b",
    re.IGNORECASE,
)
"""Messages that say what to do."""
OTHER_TEXTS = {
    "change or remove one": "constraints of Krake that exclude each other: tests/simulate/test_exclusive_constraints.py",
    "use --sweep random": "an argument of `gitsched simulate`: tests/simulate/test_loss_options.py",
    "spec.tosca": "a running Krake creates the cluster",
    "add --group": "an argument of `gitsched apply knative`: tests/apis/knative/test_live_patches.py",
    "with --cluster": "an argument of `gitsched apply knative`: tests/apis/knative/test_live_patches.py",
    "use --secrets": "an argument of `gitsched export ocm`: tests/cli/test_export_ocm.py",
    "the hub refuses": "what a hub accepts: tests/apis/ocm/test_hub_objects.py",
    "use --for krake": "an argument of `gitsched export krake`: tests/cli/test_krake.py",
    "no Placement {} found": "an argument of `gitsched export ocm`: tests/cli/test_export_ocm.py",
    "revoke it": "a secret",
    "remove status.state to bind it again": "an explanation: test_a_failed_cluster_is_bound_again_as_its_explanation_says",
    "is not a quantity": "documents of tenants: tests/scenarios/test_tenants.py",
    "is not a directory of the repository": "documents of tenants: tests/scenarios/test_tenants.py",
    "cannot belong to a tenant": "documents of tenants: tests/scenarios/test_tenants.py",
    "is a reserved word": "an error of CEL: tests/apis/ocm/cel",
    "time zone": "an error of CEL: tests/apis/ocm/cel",
    "gitsched watch --status": "a setting of another command",
    "RFC 3339, such as": "facts of clusters: tests/collect",
    "facts give a status only": "facts of clusters: tests/collect",
    "write {}=50": "an argument: tests/cli",
    "lost before reporting that it is healthy": "rollouts whose clusters are lost: tests/scenarios/test_rollouts.py",
    "CLUSTER@TIME": "rollouts with health gates: tests/scenarios/test_rollout_statuses.py",
    "spec.groupStrategy": "rollouts with health gates: tests/scenarios/test_rollout_statuses.py",
    "in a YAML flow sequence": "a hint about syntax",
    "leave its objects on the hub": "what a hub has",
    "leave their ManifestWorks": "what a hub has",
    "has errors: correct them": "documents that were never valid: tests/apis/ocm/test_engine.py",
    "Magnum with the project": "a running Magnum",
    "has no effect, because": "preferred clusters: tests/apis/test_preferred_clusters.py",
}
"""Parts of texts that no case prints, with the reason."""


def list_texts() -> Iterator[tuple[str, str]]:
    """Yield the texts with an advice, and their locations; placeholders are `{}`."""
    paths = [path for name in ("ocm", "krake", "knative", "gitsched") for path in (ROOT / "gitsched/apis" / name).rglob("*.py")]
    for path in sorted((*paths, *(ROOT / "gitsched/simulate").glob("*.py"))):
        if "cel" in path.parts:
            continue
        tree = ast.parse(path.read_text())
        ignored = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                ignored |= {id(part) for value in node.values for part in ast.walk(value)}
                text = "".join(str(value.value) if isinstance(value, ast.Constant) else "{}" for value in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in ignored:
                text = node.value
            else:
                continue
            if ADVISES.search(text):
                yield text, f"{path.relative_to(ROOT)}:{node.lineno}"


def test_every_text_with_advice_has_a_case_or_a_reason() -> None:
    phrases = [case.phrase for case in CASES.values() if case.phrase]
    phrases += [
        "its API does not support this; use --lose instead",
        "remove its document, for example with `gitsched tidy --write`",
    ]

    def is_covered(text: str) -> bool:
        if any(part in text for part in OTHER_TEXTS):
            return True
        parts = [part.strip(" ;,.:") for part in text.split("{}")]
        return any(part in phrase or phrase in part for phrase in phrases for part in parts if len(part) > 8)

    named = [part.rstrip(",") for reason in OTHER_TEXTS.values() for part in reason.split() if part.startswith("tests/")]
    assert [path for path in named if not (ROOT / path).exists()] == []
    found = list(list_texts())
    assert len(found) > 40
    assert [f"{place}: {text}" for text, place in found if not is_covered(text)] == []
