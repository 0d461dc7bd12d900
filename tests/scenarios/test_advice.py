"""Advice that gitsched prints is carried out here, and what it promises happens. A row for each advice about placement."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import gitsched
from gitsched.model.explanation import Explanation
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.report.explanation import list_counterfactuals

from .conftest import UNGUARDED, Fleet, cluster, deployment, policy

CONFIG = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {{name: gitsched}}\nspec:\n  karmada: {{{}}}\n" + "".join(
    line for line in UNGUARDED.splitlines(keepends=True)[4:]
).replace("{", "{{").replace("}", "}}")
WEB = "default/deployment-web"
OBJECTS = {"gitsched.yaml": CONFIG.format(""), "web.yaml": deployment("web"), "policy.yaml": policy("first", "second")}
OBJECTS |= {f"{name}.yaml": cluster(name) for name in ("first", "second")}
TAINT = {"first.yaml": cluster("first", "power:NoExecute")}
UNTAINT = {"first.yaml": cluster("first")}


def unready(status: str = "False", *taints: str) -> dict[str, str]:
    return {"first.yaml": cluster("first", *taints) + f'status:\n  conditions:\n  - {{type: Ready, status: "{status}"}}\n'}


def settings(text: str) -> dict[str, str]:
    return {"gitsched.yaml": CONFIG.format(text)}


def rebalance(name: str = "again", more: str = "") -> dict[str, str]:
    workloads = "  workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}]\n"
    head = f"apiVersion: apps.karmada.io/v1alpha1\nkind: WorkloadRebalancer\nmetadata: {{name: {name}}}\nspec:\n"
    return {f"rebalance-{name}.yaml": head + workloads + more}


def taint_policy(add: str = "", remove: str = "") -> dict[str, str]:
    matches = "  {}: [{{conditionType: Ready, operator: In, statusValues: [{}]}}]\n"
    head = "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterTaintPolicy\nmetadata: {name: dead}\nspec:\n"
    lines = (matches.format("addOnConditions", add) if add else "") + (
        matches.format("removeOnConditions", remove) if remove else ""
    )
    return {"taints.yaml": f"{head}{lines}  taints: [{{key: example.com/dead, effect: NoExecute}}]\n"}


# Where advice is printed


def say_findings(fleet: Fleet, hour: float) -> str:
    return "\n".join(str(finding) for finding in fleet.preview(hour).plan.findings)


def say_retained(fleet: Fleet, hour: float) -> str:
    review = compare_plans(fleet.settings(hour, revision="HEAD"), "HEAD~1").review
    return "\n".join(entry.remedy for entry in review.retained)


def say_explanation(fleet: Fleet, hour: float) -> str:
    found = explain_resource(fleet.settings(hour), "deployment", "default", "web")
    assert isinstance(found, Explanation)
    return "\n".join([found.trigger, found.rescheduled, *(attempt.message for attempt in found.attempts)])


def say_counterfactuals(fleet: Fleet, hour: float) -> str:
    found = explain_resource(fleet.settings(hour), "deployment", "default", "web", ("first", "second"))
    assert isinstance(found, Explanation)
    return "\n".join(list_counterfactuals(found))


class Advice(NamedTuple):
    """Advice, and what carries it out.

    `commits` are made and reconciled one hour after the other. `phrase` is what `said_by` then prints, and `before` are the clusters of
    `web`. `follow` are the files that carry out the advice, `leads_to` the clusters an hour later.
    """

    phrase: str
    commits: list[dict[str, str | None]]
    follow: dict[str, str | None]
    before: list[str]
    leads_to: list[str]
    said_by: Callable[[Fleet, float], str] = say_findings


TEMPLATE = (
    "  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web, resources: {requests: {cpu: 1}}}]}}\n"
)
LAZY = policy("first", more="  activationPreference: Lazy\n")
OLD = {
    name: text.replace("{name: again}", '{name: again, creationTimestamp: "2026-03-01T00:00:00Z"}')
    for name, text in rebalance().items()
}
ONE_ZONE = "{spreadByField: zone, minGroups: 1, maxGroups: 1}"
BY_ZONE = f"    spreadConstraints: [{ONE_ZONE}, {{spreadByField: cluster, minGroups: 1, maxGroups: 2}}]\n"
ZONES = {"first.yaml": cluster("first") + "  zone: a\n", "second.yaml": cluster("second") + "  zone: b\n"}
SUMMARY = "status:\n  resourceSummary: {allocatable: {cpu: %d, pods: 110}}\n"
ONE_CPU = "  template: {spec: {containers: [{name: web, image: web, resources: {requests: {cpu: 1}}}]}}\n"
ADVICE = {
    "spread by zone": Advice(
        "unless karmada.spread is strict in gitsched.yaml; workloads are spread by region and cluster",
        [ZONES | {"policy.yaml": policy("first,second", more=BY_ZONE)}],
        settings("spread: strict"),
        ["first", "second"],
        ["first"],
    ),
    "capacity that is not shared": Advice(
        "karmada.overcommitProtection is false, so several such workloads together may still exceed it",
        [
            settings("overcommitProtection: false"),
            {"first.yaml": cluster("first") + SUMMARY % 1, "web.yaml": deployment("web") + ONE_CPU},
        ],
        settings("") | {"first.yaml": cluster("first") + SUMMARY % 2},
        ["first"],
        ["first"],
    ),
    "set failover": Advice("set spec.karmada.failover: cluster", [unready()], settings("failover: cluster"), ["first"], ["second"]),
    "set failover, the cluster is unknown": Advice(
        "set spec.karmada.failover: cluster", [unready("Unknown")], settings("failover: cluster"), ["first"], ["second"]
    ),
    "failover without another cluster": Advice(
        "one that fits no other cluster becomes unplaced",
        [{"policy.yaml": policy("first")}, unready()],
        settings("failover: cluster"),
        ["first"],
        [],
    ),
    "a taint policy": Advice(
        "set spec.karmada.allowNoExecuteTaintPolicy: true and commit a ClusterTaintPolicy that adds a NoExecute taint",
        [unready()],
        settings("allowNoExecuteTaintPolicy: true") | taint_policy('"False"'),
        ["first"],
        ["second"],
    ),
    "allow eviction": Advice(
        "no NoExecute taint evicts them; remove spec.karmada.taintEviction: false, and set spec.karmada.failover: cluster",
        [settings("taintEviction: false"), unready()],
        settings("failover: cluster"),
        ["first"],
        ["second"],
    ),
    "allow eviction by a taint": Advice(
        "so NoExecute taints evict nothing; remove spec.karmada.taintEviction: false",
        [settings("taintEviction: false"), unready("False", "power:NoExecute")],
        settings(""),
        ["first"],
        ["second"],
    ),
    "an orphaned taint": Advice(
        "a policy with removeOnConditions removes it",
        [
            settings("allowNoExecuteTaintPolicy: true"),
            taint_policy('"False"'),
            unready(),
            {"taints.yaml": None} | unready("True") | {"policy.yaml": policy("first")},
        ],
        taint_policy('"False"', '"True"'),
        [],
        ["first"],
    ),
    "failback when unschedulable": Advice(
        "set spec.karmada.failback: WhenUnschedulable",
        [TAINT, UNTAINT | {"second.yaml": cluster("second", "power:NoExecute")}],
        settings("failback: WhenUnschedulable"),
        [],
        ["first"],
    ),
    "rebalance when unschedulable": Advice(
        "commit a WorkloadRebalancer that names it",
        [TAINT, UNTAINT | {"second.yaml": cluster("second", "power:NoExecute")}],
        rebalance(),
        [],
        ["first"],
    ),
    "a cluster that is gone": Advice(
        "gitsched rebalance --all-displaced --write requests it",
        [{"policy.yaml": policy("first,second", scheduling="Divided")}, {"first.yaml": None}],
        rebalance(),
        ["second"],
        ["second"],
    ),
    "preemption": Advice(
        "set spec.karmada.preemption to true in gitsched.yaml to enable it",
        [
            {
                "other.yaml": policy("second", name="other", more="  priority: 9\n  preemption: Always\n").replace(
                    "kind: Deployment}", "kind: Deployment, name: web}"
                )
            }
        ],
        settings("preemption: true"),
        ["first"],
        ["second"],
    ),
    "no replicas": Advice(
        "to place it with 0 replicas, set spec.karmada.enableEmptyWorkloadPropagation in gitsched.yaml",
        [{"web.yaml": None}, {"web.yaml": deployment("web", 0) + TEMPLATE}],
        settings("enableEmptyWorkloadPropagation: true"),
        [],
        ["first"],
    ),
    "retained: a rebalancer": Advice(
        "a WorkloadRebalancer that names it brings it there",
        [TAINT, UNTAINT],
        rebalance(),
        ["second"],
        ["first"],
        say_retained,
    ),
    "retained: failback": Advice(
        "so does spec.karmada.failback: {AfterStabilization: 10m} in gitsched.yaml",
        [TAINT, UNTAINT],
        settings("failback: {AfterStabilization: 10m}"),
        ["second"],
        ["first"],
        say_retained,
    ),
    "retained: another rebalancer": Advice(
        "a new WorkloadRebalancer, under another name",
        [rebalance(), TAINT, UNTAINT],
        rebalance("other"),
        ["second"],
        ["first"],
        say_retained,
    ),
    "retained: a lazy policy": Advice(
        "its policy is Lazy: an edit of the workload itself lets the policy act on it",
        [{"policy.yaml": LAZY}, {"policy.yaml": LAZY.replace("[first]", "[second]")}],
        {"web.yaml": deployment("web", 3)},
        ["first"],
        ["second"],
        say_retained,
    ),
    "explained: a rebalancer": Advice(
        "a WorkloadRebalancer that names the workload returns it to this group",
        [TAINT, UNTAINT],
        rebalance(),
        ["second"],
        ["first"],
        say_explanation,
    ),
    "explained: failback when unschedulable": Advice(
        "so does spec.karmada.failback: WhenUnschedulable when neither group-1 nor a later group can run it",
        [TAINT, UNTAINT],
        settings("failback: WhenUnschedulable") | {"second.yaml": cluster("second", "power:NoExecute")},
        ["second"],
        ["first"],
        say_explanation,
    ),
    "explained: failback after a time": Advice(
        "karmada.failback: {AfterStabilization: 10m} when this group could run it for that time",
        [TAINT, UNTAINT],
        settings("failback: {AfterStabilization: 10m}"),
        ["second"],
        ["first"],
        say_explanation,
    ),
    "explained: it returns by itself when unschedulable": Advice(
        "it returns when neither group-1 nor a later group can run it; before that, a WorkloadRebalancer",
        [settings("failback: WhenUnschedulable"), TAINT, UNTAINT],
        {"second.yaml": cluster("second", "power:NoExecute")},
        ["second"],
        ["first"],
        say_explanation,
    ),
    "explained: it returns by itself after a time": Advice(
        "it returns when the time of karmada.failback is over",
        [settings("failback: {AfterStabilization: 90m}"), TAINT, UNTAINT],
        {"note.txt": "wait"},
        ["second"],
        ["first"],
        say_explanation,
    ),
    "explained: it is evicted unless the taint is removed": Advice(
        "unless the NoExecute taint is removed",
        [
            {
                "policy.yaml": policy("first", "second").replace(
                    "  placement:\n",
                    "  placement:\n    clusterTolerations: [{key: power, operator: Exists, tolerationSeconds: 5400}]\n",
                )
            },
            TAINT,
        ],
        UNTAINT,
        ["first"],
        ["first"],
        say_explanation,
    ),
    "a rebalancer that is older than the last scheduling": Advice(
        "it is not rescheduled and stays where it is; create a rebalancer with another name",
        [TAINT, UNTAINT, OLD],
        rebalance("other"),
        ["second"],
        ["first"],
    ),
    "an expired rebalancer": Advice(
        "has finished and expired at",
        [TAINT, UNTAINT, rebalance(more="  ttlSecondsAfterFinished: 60\n"), {"note.txt": "wait"}],
        {"rebalance-again.yaml": None},
        ["first"],
        ["first"],
    ),
    "allow taint policies": Advice(
        "a taint with effect NoExecute is not allowed here, unless spec.karmada.allowNoExecuteTaintPolicy in gitsched.yaml is true",
        [taint_policy('"False"'), unready()],
        settings("allowNoExecuteTaintPolicy: true"),
        ["first"],
        ["second"],
    ),
    "a lazy policy stops a rebalancer": Advice(
        "its policy is Lazy, so the placement of its binding is used until the workload is edited",
        [{"policy.yaml": LAZY}, {"policy.yaml": LAZY.replace("[first]", "[second]")}, rebalance()],
        {"web.yaml": deployment("web", 3)},
        ["first"],
        ["second"],
    ),
    "counterfactual: a lazy policy": Advice(
        "it were edited, because its policy is Lazy",
        [{"policy.yaml": LAZY}, {"policy.yaml": LAZY.replace("[first]", "[second]")}],
        {"web.yaml": deployment("web", 3)},
        ["first"],
        ["second"],
        say_counterfactuals,
    ),
    "counterfactual: a rebalancer": Advice(
        "first: a WorkloadRebalancer rescheduled it", [TAINT, UNTAINT], rebalance(), ["second"], ["first"], say_counterfactuals
    ),
    "counterfactual: another rebalancer": Advice(
        "first: another WorkloadRebalancer rescheduled it (WorkloadRebalancer again will not act again)",
        [rebalance(), TAINT, UNTAINT],
        rebalance("other"),
        ["second"],
        ["first"],
        say_counterfactuals,
    ),
    "two policy APIs": Advice(
        "remove it from one of them",
        [
            {
                "web.yaml": deployment("web").replace(
                    "  namespace: default\n",
                    "  namespace: default\n  annotations: {cluster.open-cluster-management.io/placement: pick}\n",
                ),
                "pick.yaml": "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n"
                "metadata: {name: pick, namespace: default}\nspec: {}\n",
            }
        ],
        {"web.yaml": deployment("web"), "policy.yaml": policy("second")},
        ["first"],
        ["second"],
    ),
    "a file that is not YAML any more": Advice(
        "or delete it to remove them", [{"web.yaml": '<a kind: "x"> [\n'}], {"web.yaml": None}, ["first"], []
    ),
    "a file with errors": Advice(
        "correct the errors to use its present content",
        [{"policy.yaml": policy("second") + "  oops: [\n"}],
        {"policy.yaml": policy("second")},
        ["first"],
        ["second"],
    ),
}


@pytest.mark.parametrize("case", ADVICE.values(), ids=ADVICE)
def test_advice_does_what_it_promises(fleet: Fleet, case: Advice) -> None:
    fleet.commit(OBJECTS)
    fleet.reconcile()
    hour = 0
    for files in case.commits[:-1] if case.said_by is say_retained else case.commits:
        hour += 1
        fleet.commit(files, hour=hour)
        fleet.reconcile(hour)
        fleet.reconcile(hour + 0.5)
    if case.said_by is say_retained:
        hour += 1
        fleet.commit(case.commits[-1], hour=hour)
    said = " ".join(case.said_by(fleet, hour + 0.6).split())
    assert case.phrase in said, said
    fleet.reconcile(hour + 0.7)
    assert fleet.where(WEB) == case.before
    fleet.commit(case.follow, hour=hour + 1)
    for later in (1, 1.5, 2):
        fleet.reconcile(hour + later)
    assert fleet.where(WEB) == case.leads_to


ADVISES = re.compile(r"\bkarmada\.[a-z]\w+|WorkloadRebalancer|\bit returns\b|removeOnConditions|is removed|\bLazy\b")
"""Texts of the Karmada API that say what changes a placement."""
NOT_ADVICE = re.compile(
    r"\{\}\.karmada|is not in the source now|apiVersion|^karmada\.|autoscalerLimits|rescheduled it|would leave it where it is|it is Lazy"
    r"|taintEviction is false|^[A-Z]\w+$|^; by itself|has been handled|have been handled|^admission webhook"
)


def list_texts() -> Iterator[tuple[str, str]]:
    """Yield the string literals of the Karmada API with their location; placeholders are `{}`."""
    root = Path(gitsched.__file__).parent / "apis" / "karmada"
    for path in sorted(root.rglob("*.py")):
        tree = ast.parse(path.read_text())
        ignored = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                ignored |= {id(value) for value in node.values}
                yield (
                    "".join(str(value.value) if isinstance(value, ast.Constant) else "{}" for value in node.values),
                    f"{path.relative_to(root)}:{node.lineno}",
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in ignored and " " in node.value:
                yield node.value, f"{path.relative_to(root)}:{node.lineno}"


def test_every_advice_of_karmada_is_carried_out_by_a_case() -> None:
    phrases = [case.phrase for case in ADVICE.values()]

    def is_covered(text: str) -> bool:
        parts = [part.strip(" ;,.") for part in text.split("{}")]
        return any(part in phrase or phrase in part for phrase in phrases for part in parts if len(part) > 8)

    advice = [(text, place) for text, place in list_texts() if ADVISES.search(text) and not NOT_ADVICE.search(text)]
    assert len(advice) >= 10
    assert [f"{place}: {text}" for text, place in advice if not is_covered(text)] == []
