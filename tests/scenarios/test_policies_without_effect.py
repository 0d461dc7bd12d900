"""A policy that applies to none of the objects that it selects: a plan says which policy applies, by which rule, and the cure."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.model.errors import UnknownObject
from gitsched.model.explanation import Explanation
from gitsched.model.finding import Finding
from gitsched.reconcile import RunResult
from gitsched.reconcile.review.explanation import explain_resource

from .conftest import Fleet

CLUSTER = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: one}\nspec: {syncMode: Pull}\n"
POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: KIND
metadata: {METADATA}
spec:
  priority: PRIORITY
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, SELECTOR}]
  placement: {clusterAffinity: {clusterNames: [one]}}
"""
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME, namespace: shop, labels: {tier: front}}\n"
CODES = {"policy-without-effect", "karmada-policies-equal"}
KIND, LABELS, NAME = "namespace: shop", "labelSelector: {matchLabels: {tier: front}}", "name: a"
LOST = ("ConfigMap/shop/a", "PropagationPolicy/shop/m", "its priority is 5 and not 0")
RELEASE = "let PropagationPolicy/shop/m no longer select it"


def policy(name: str, priority: int = 0, selector: str = KIND, kind: str = "PropagationPolicy", more: str = "") -> str:
    metadata = f"name: {name}" if kind.startswith("Cluster") else f"name: {name}, namespace: shop"
    text = POLICY.replace("KIND", kind).replace("METADATA", metadata).replace("PRIORITY", f"{priority}{more}")
    return text.replace("SELECTOR", selector)


def list_found(run: RunResult) -> list[Finding]:
    return [finding for finding in run.plan.findings if finding.code in CODES]


def find(fleet: Fleet, tmp_path: Path, hour: int, **files: str | None) -> list[tuple[str, str, str]]:
    """Commit files, and return location, severity and message of the findings, which a complete plan has as well."""
    fleet.commit({f"{name}.yaml": text for name, text in files.items()}, hour=hour)
    found = list_found(fleet.preview(hour))
    assert found == list_found(fleet.preview(hour, cache=tmp_path / f"empty{hour}"))
    return [(str(finding.location), finding.severity, finding.message) for finding in found]


RULES = [
    (
        "scope",
        (policy("m"), policy("x", 9, kind="ClusterPropagationPolicy")),
        "warning",
        "ClusterPropagationPolicy/x applies to none of the 2 objects that it selects: PropagationPolicy/shop/m (m.yaml:1) applies "
        "instead, to ConfigMap/shop/a because a PropagationPolicy takes precedence over a ClusterPropagationPolicy, whatever their "
        f"priorities; {RELEASE}",
    ),
    (
        "priority",
        (policy("m", 5), policy("a", 2)),
        "info",
        "PropagationPolicy/shop/a applies to none of the 2 objects that it selects: PropagationPolicy/shop/m (m.yaml:1) applies "
        "instead, to ConfigMap/shop/a because its priority is 5 and not 2; give PropagationPolicy/shop/a preemption: Always, a priority "
        "above 5 and a selector with its name, and set spec.karmada.preemption to true in gitsched.yaml; or "
        f"{RELEASE}",
    ),
    (
        "labels",
        (policy("m", 0, LABELS), policy("a")),
        "info",
        "PropagationPolicy/shop/a applies to none of the 2 objects that it selects: PropagationPolicy/shop/m (m.yaml:1) applies "
        "instead, to ConfigMap/shop/a because it selects by labels and not by kind, with the same priority; give "
        "PropagationPolicy/shop/a preemption: Always, a priority above 0 and a selector with its name, and set "
        f"spec.karmada.preemption to true in gitsched.yaml; or {RELEASE}",
    ),
    (
        "claim",
        (policy("m"), policy("x", 9, NAME, more="\n  preemption: Always")),
        "warning",
        "PropagationPolicy/shop/x does not apply to the one object that it selects: PropagationPolicy/shop/m (m.yaml:1) applies "
        "instead, to ConfigMap/shop/a because it has claimed the object before, and a claim stays; set spec.karmada.preemption to true "
        f"in gitsched.yaml; or {RELEASE}",
    ),
]


@pytest.mark.parametrize(("policies", "severity", "message"), [case[1:] for case in RULES], ids=[case[0] for case in RULES])
def test_a_policy_that_applies_to_nothing_names_the_one_that_applies_and_why(
    tmp_path: Path, policies: tuple[str, str], severity: str, message: str
) -> None:
    fleet = Fleet(tmp_path / "source", tmp_path / "cache")
    first, second = policies
    fleet.commit({"fleet.yaml": CLUSTER, "a.yaml": MAP.replace("NAME", "a"), "b.yaml": MAP.replace("NAME", "b"), "m.yaml": first})
    fleet.reconcile()
    assert find(fleet, tmp_path, 1, second=second) == [("second.yaml:1:1", severity, message)]
    fleet.reconcile(1)
    other = CLUSTER.replace("one", "two")
    assert find(fleet, tmp_path, 2, other=other) == [("second.yaml:1:1", severity, message)], "a cluster changes nothing"
    moved = message.replace("m.yaml:1)", "m.yaml:2)")
    assert find(fleet, tmp_path, 3, m=f"# a comment\n{first}") == [("second.yaml:1:1", severity, moved)]
    fleet.reconcile(3)
    assert find(fleet, tmp_path, 4, m=None) == [], "it applies now"


def test_a_policy_that_applies_to_one_object_is_not_reported(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "source", tmp_path / "cache")
    fleet.commit({"fleet.yaml": CLUSTER, "a.yaml": MAP.replace("NAME", "a"), "m.yaml": policy("m", 5, NAME), "x.yaml": policy("x")})
    assert [code for _, code, _ in find(fleet, tmp_path, 0)] == ["info"]
    fleet.reconcile()
    assert find(fleet, tmp_path, 1, b=MAP.replace("NAME", "b")) == []
    fleet.reconcile(1)
    assert [message.partition(" that ")[0] for *_, message in find(fleet, tmp_path, 2, b=None)] == [
        "PropagationPolicy/shop/x does not apply to the one object"
    ]


def test_policies_of_which_the_names_decide_have_one_finding(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "source", tmp_path / "cache")
    fleet.commit({"fleet.yaml": CLUSTER, "a.yaml": MAP.replace("NAME", "a"), "m.yaml": policy("m"), "x.yaml": policy("x")})
    (finding,) = list_found(fleet.preview())
    assert finding.code == "karmada-policies-equal"


def test_explain_of_a_policy_says_what_it_applies_to_and_which_policies_apply_to_the_rest(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "source", tmp_path / "cache")
    maps = {f"{name}.yaml": MAP.replace("NAME", name) for name in ("a", "b")}
    fleet.commit({"fleet.yaml": CLUSTER, **maps, "m.yaml": policy("m", 5, NAME), "x.yaml": policy("x")})
    fleet.reconcile()
    expected = (
        "It applies to 1 of 2 objects that it selects, in one (1).",
        [("Applies to", (("ConfigMap/shop/b", "one"),)), ("Others apply to", (LOST,))],
    )
    for cache in ("cache", "empty"):
        settings = fleet.settings(cache=tmp_path / cache)
        found = explain_resource(settings, "policy", None, "x")
        assert isinstance(found, Explanation)
        assert (found.trigger, [(table.title, table.rows) for table in found.tables]) == expected
    with pytest.raises(UnknownObject, match="there is no policy shop/y in the source; there are: m, x"):
        explain_resource(fleet.settings(), "policy", "shop", "y")
