"""Mistakes that nothing fails at, one note each: equal policies, a Service without pods, a missing namespace, a Secret in plain text."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.model.finding import Finding
from gitsched.reconcile import RunResult

from .conftest import Fleet

CODES = {"karmada-policies-equal", "secret-in-plain-text", "service-selects-nothing"}
FLEET = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: one}
spec: {syncMode: Pull}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: v1, kind: Service}, {apiVersion: v1, kind: Secret}]
  placement: {clusterAffinity: {clusterNames: [one]}}
"""
OTHER = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: NAME, namespace: shop}
spec:
  priority: PRIORITY
  resourceSelectors:
    - {apiVersion: v1, kind: ConfigMap}
    - {apiVersion: apps/v1, kind: Deployment}
  placement: {clusterAffinity: {clusterNames: [one]}}
"""
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}
"""
SERVICE = (
    "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"
)
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: shop}\n"


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    fleet = Fleet(tmp_path / "source", tmp_path / "cache")
    fleet.commit({"fleet.yaml": FLEET, "web.yaml": WEB, "service.yaml": SERVICE})
    assert list_found(fleet.reconcile()) == []
    return fleet


def list_found(run: RunResult) -> list[Finding]:
    return [finding for finding in run.plan.findings if finding.code in CODES]


def find(fleet: Fleet, tmp_path: Path, **files: str) -> list[tuple[str, str, str]]:
    """Commit files, and return location, severity and message of the notes, which a complete plan has as well."""
    fleet.commit({f"{name}.yaml": text for name, text in files.items()}, hour=1)
    found = list_found(fleet.preview(1))
    assert found == list_found(fleet.preview(1, cache=tmp_path / "empty"))
    return [(str(finding.location), finding.severity, finding.message) for finding in found]


def test_two_policies_with_the_same_selector_and_priority_say_which_applies(fleet: Fleet, tmp_path: Path) -> None:
    assert find(fleet, tmp_path, other=OTHER.replace("NAME", "more").replace("PRIORITY", "0")) == [
        (
            "other.yaml:8:7",
            "info",
            "PropagationPolicy/shop/more and PropagationPolicy/shop/all both select Deployment objects with priority 0: "
            "PropagationPolicy/shop/all applies, because its name comes first, and PropagationPolicy/shop/more only keeps what it had "
            "before; remove one of the selectors, or set spec.priority",
        )
    ]
    assert find(fleet, tmp_path, other=OTHER.replace("NAME", "more").replace("PRIORITY", "1")) == []


SELECTING = """\
apiVersion: policy.karmada.io/v1alpha1
kind: KIND
metadata: {name: NAME, SPACE}
spec:
  PRIORITY
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, SELECTOR}]
  placement: {clusterAffinity: {clusterNames: [one]}}
---
"""
LABELLED = WEB.replace("namespace: shop}", "namespace: shop, labels: {app: web, tier: front}}")
APP, TIER = "labelSelector: {matchLabels: {app: web}}", "labelSelector: {matchLabels: {tier: front}}"
OVERLAPS = [
    ("two labels of one object", "PropagationPolicy", APP, TIER, "by labels"),
    ("two labels of one object", "ClusterPropagationPolicy", APP, TIER, "by labels"),
    ("other values of a label", "PropagationPolicy", APP, APP.replace("web", "api"), ""),
    ("labels that no object has", "PropagationPolicy", APP, TIER.replace("front", "back"), ""),
    ("a name and labels", "PropagationPolicy", "name: web", TIER, ""),
    ("labels and a kind", "ClusterPropagationPolicy", APP, "namespace: shop", ""),
    ("all namespaces and one", "ClusterPropagationPolicy", "name: web", "name: web, namespace: shop", "by name"),
    ("two namespaces", "ClusterPropagationPolicy", "name: web, namespace: office", "name: web, namespace: shop", ""),
]


@pytest.mark.parametrize(
    ("kind", "one", "two", "how"), [case[1:] for case in OVERLAPS], ids=[f"{case[1]}: {case[0]}" for case in OVERLAPS]
)
def test_two_policies_that_select_an_object_say_which_applies_where_only_their_names_decide(
    tmp_path: Path, kind: str, one: str, two: str, how: str
) -> None:
    fleet = Fleet(tmp_path / "source", tmp_path / "cache")
    is_cluster_scoped = kind.startswith("Cluster")
    text = SELECTING.replace("KIND", kind).replace("SPACE", "labels: {}" if is_cluster_scoped else "namespace: shop")
    first, second = (text.replace("NAME", name).replace("SELECTOR", each) for name, each in (("a", one), ("b", two)))
    fleet.commit({"fleet.yaml": FLEET.split("---")[0], "web.yaml": LABELLED, "a.yaml": first.replace("PRIORITY", "priority: 0")})
    fleet.reconcile()
    found = find(fleet, tmp_path, b=second.replace("PRIORITY", "priority: 0"))
    prefix = kind if is_cluster_scoped else f"{kind}/shop"
    expected = (
        f"{prefix}/b and {prefix}/a both select Deployment/shop/web {how} with priority 0: {prefix}/a applies, because its name"
    )
    assert [message.startswith(expected) for _, _, message in found] == ([True] if how else [])
    assert find(fleet, tmp_path, b=second.replace("PRIORITY", "priority: 1")) == [], "the priority is set"


def test_only_the_first_of_many_policies_of_an_object_are_named(fleet: Fleet, tmp_path: Path) -> None:
    text = SELECTING.replace("KIND", "PropagationPolicy").replace("SPACE", "namespace: shop").replace("PRIORITY", "priority: 1")
    texts = [
        text.replace("NAME", f"p{number:02}").replace("SELECTOR", f"labelSelector: {{matchLabels: {{l{number}: x}}}}")
        for number in range(12)
    ]
    labels = ", ".join(f"l{number}: x" for number in range(12))
    web = WEB.replace("namespace: shop}", f"namespace: shop, labels: {{{labels}}}}}")
    found = find(fleet, tmp_path, web=web, many="".join(texts))
    assert [message.split()[0].rpartition("/")[2] for _, _, message in found] == [f"p{number:02}" for number in range(1, 8)]


def test_a_service_that_selects_no_pods_is_noted_with_the_workload_that_lacks_its_namespace(fleet: Fleet, tmp_path: Path) -> None:
    start = "Service/shop/web selects pods with app=web, and no workload of namespace shop has such pods; "
    assert find(fleet, tmp_path, web=WEB.replace("app: web", "app: wbe")) == [
        (
            "service.yaml:1:1",
            "info",
            f"{start}correct its selector, or the labels of the pods, or, if its pods come from elsewhere, annotate it with "
            'gitsched.io/follow-targets: "false"',
        )
    ]
    hint = "Deployment.apps/default/web has them (web.yaml:1): is metadata.namespace: shop missing there?"
    assert find(fleet, tmp_path, web=WEB.replace(", namespace: shop", "")) == [("service.yaml:1:1", "info", f"{start}{hint}")]
    accepted = SERVICE.replace("namespace: shop}", 'namespace: shop, annotations: {gitsched.io/follow-targets: "false"}}')
    assert find(fleet, tmp_path, service=accepted) == []
    assert find(fleet, tmp_path, service=SERVICE.replace("selector: {app: web}, ", "")) == []


def test_a_secret_in_plain_text_is_noted_without_its_value(fleet: Fleet, tmp_path: Path) -> None:
    ((location, severity, message),) = find(fleet, tmp_path, login=f"{SECRET}data: {{password: aHVudGVyMjI=}}\n")
    assert (location, severity) == ("login.yaml:1:1", "info")
    assert message.startswith("Secret/shop/login is delivered in plain text")
    assert "aHVudGVyMjI" not in message


@pytest.mark.parametrize(
    "values",
    [
        "data: {}\n",
        "type: Opaque\n",
        "stringData: {password: '<path:secret/login#password>', user: '${USER}'}\n",
        "data: {password: 'ENC[AES256_GCM,data:x]'}\nsops: {mac: x}\n",
    ],
)
def test_a_secret_without_readable_values_is_not_noted(fleet: Fleet, tmp_path: Path, values: str) -> None:
    assert find(fleet, tmp_path, login=f"{SECRET}{values}") == []


def test_a_changed_label_changes_what_policies_select(fleet: Fleet, tmp_path: Path) -> None:
    """The findings about selectors are those of a complete plan when nothing but a label of a workload changes."""
    codes = {"karmada-policies-equal", "karmada-selects-nothing"}
    selected = "{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {%s}}}"
    policies = [
        OTHER.replace("NAME", name).replace("{apiVersion: apps/v1, kind: Deployment}", selected % label)
        for name, label in (("front", "tier: front"), ("shop", "app: web"))
    ]
    labelled = WEB.replace("namespace: shop}", "namespace: shop, labels: {tier: front, app: web}}")
    other = "---\n".join(policies).replace("PRIORITY", "7").replace("    - {apiVersion: v1, kind: ConfigMap}\n", "")
    fleet.commit({"other.yaml": other, "web.yaml": labelled})
    fleet.reconcile()
    for label, expected in (("tier: frnt", {"karmada-selects-nothing"}), ("tier: front", {"karmada-policies-equal"})):
        fleet.commit({"web.yaml": labelled.replace("tier: front", label)}, hour=1)
        complete = fleet.preview(1, cache=tmp_path / "empty").plan.findings
        assert fleet.preview(1).plan.findings == complete
        assert fleet.reconcile(1).plan.findings == complete
        assert codes.intersection(finding.code for finding in complete) == expected
