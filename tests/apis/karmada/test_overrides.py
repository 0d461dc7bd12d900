"""Override policies: which apply to a workload and a cluster, in which order, and what happens when one cannot be applied."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gitsched.decide.validation import validate_document
from gitsched.model.document import get_field
from gitsched.model.explanation import AppliedOverride
from gitsched.report.explanation import describe_override
from tests.tables import each_row

FLEET = """
kind: Cluster
metadata: {name: a, labels: {cloud: x}}
spec: {region: north}
---
kind: Cluster
metadata: {name: b, labels: {cloud: y}}
spec: {region: north}
---
kind: Cluster
metadata: {name: c, labels: {cloud: y}}
spec: {region: south}
"""
WEB = """
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web, by: nobody}}
spec: {replicas: 5, template: {spec: {containers: [{name: web, image: web:1}]}}}
"""
EVERYWHERE = """
kind: PropagationPolicy
metadata: {name: all, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement: {}
"""
DIVIDED = EVERYWHERE.replace("{}", "{replicaScheduling: {replicaSchedulingType: Divided}}")
BY = "labelsOverrider: [{operator: replace, value: {by: %s}}]"
BROKEN = "plaintext: [{path: /spec/nothing/at/all, operator: add, value: 1}]"


def label(name: str) -> str:
    return BY % name


def override(name: str, overriders: str = "", target: str = "", selector: str = "", kind: str = "OverridePolicy") -> str:
    """One rule that, if nothing else is said, signs the label `by` with the policy's name."""
    selectors = f"resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment{selector}}}]" if selector != "everything" else ""
    return f"""
kind: {kind}
metadata: {{name: {name}{", namespace: shop" if kind == "OverridePolicy" else ""}}}
spec:
  {selectors}
  overrideRules:
  - {f"targetCluster: {target}" if target else ""}
    overriders: {{{overriders or label(name)}}}
"""


def files(*policies: str, workload: str = WEB, propagation: str = EVERYWHERE, fleet: str = FLEET) -> dict[str, str]:
    return {
        "fleet.yaml": fleet,
        "web.yaml": workload,
        "all.yaml": propagation,
        **{f"o{i}.yaml": text for i, text in enumerate(policies)},
    }


def signed(run: Any, cluster: str = "a", name: str = "web") -> str:
    """Return which policy set the label last; "nobody" if the manifest is the template."""
    body = run.manifest(name, cluster)
    return str(get_field(body, "metadata", "labels", "by")) if body is not None else "nobody"


CLUSTERWIDE = "ClusterOverridePolicy"


@pytest.mark.parametrize(
    ("policies", "last"),
    [
        ([override("m"), override("z", kind=CLUSTERWIDE)], "m"),
        ([override("m", selector="everything"), override("z", selector=", name: web", kind=CLUSTERWIDE)], "m"),
        ([override("a"), override("b")], "b"),
        ([override("b"), override("a")], "b"),
        ([override("a", selector=", name: web"), override("b", selector=", labelSelector: {matchLabels: {app: web}}")], "a"),
        ([override("a", selector=", labelSelector: {}"), override("b")], "a"),
        ([override("a"), override("b", selector="everything")], "b"),
        ([override("a", kind=CLUSTERWIDE, selector=", namespace: shop"), override("z", kind=CLUSTERWIDE)], "z"),
    ],
    ids=[
        "the-namespace-after-the-cluster",
        "the-namespace-after-the-cluster-however-specific",
        "by-name",
        "by-name-not-by-place",
        "a-name-is-more-specific-than-labels",
        "labels-are-more-specific-than-a-kind",
        "everything-is-as-specific-as-a-kind",
        "a-namespace-makes-a-selector-no-more-specific",
    ],
)
def test_the_namespace_then_the_most_specific_selector_then_the_last_name_takes_precedence(
    run: Any, policies: list[str], last: str
) -> None:
    assert signed(run(files(*policies))) == last


@pytest.mark.parametrize(
    "selector",
    [
        ", name: other",
        ", name: web, labelSelector: {matchLabels: {app: web}}, apiVersion: apps/v2",
        ", labelSelector: {matchLabels: {app: db}}",
        ", labelSelector: {matchExpressions: [{key: app, operator: Odd}]}",
    ],
)
def test_a_policy_that_selects_something_else_changes_nothing(run: Any, selector: str) -> None:
    policy = override("o", selector=selector, kind=CLUSTERWIDE)
    if "apps/v2" in selector:
        policy = policy.replace("apiVersion: apps/v1, ", "")
    assert signed(run(files(policy))) == "nobody"


def test_a_policy_of_another_namespace_changes_nothing(run: Any) -> None:
    assert signed(run(files(override("o", selector="everything").replace("shop", "bank")))) == "nobody"


def test_the_rules_of_a_policy_apply_in_their_order(run: Any) -> None:
    first = override("first")
    both = f"{first}  - targetCluster: {{clusterNames: [b]}}\n    overriders: {{{BY % 'second'}}}\n"
    result = run(files(both))
    assert [signed(result, cluster) for cluster in "abc"] == ["first", "second", "first"]


@pytest.mark.parametrize(
    ("target", "clusters"),
    [
        ("", "abc"),
        ("{}", "abc"),
        ("{clusterNames: [b, ghost]}", "b"),
        ("{exclude: [b]}", "ac"),
        ("{labelSelector: {matchLabels: {cloud: y}}}", "bc"),
        (
            "{labelSelector: {matchLabels: {cloud: y}}, fieldSelector: {matchExpressions: [{key: region, operator: In, values: [north]}]}}",
            "b",
        ),
        ("{clusterNames: [ghost]}", ""),
    ],
)
def test_a_rule_applies_only_to_its_clusters(run: Any, target: str, clusters: str) -> None:
    result = run(files(override("o", target=target)))
    assert "".join(cluster for cluster in "abc" if signed(result, cluster) == "o") == clusters


@pytest.mark.parametrize(("target", "clusters"), [("targetCluster: {clusterNames: [b]}", "b"), ("", "abc")])
def test_the_deprecated_form_of_a_policy_is_read(run: Any, target: str, clusters: str) -> None:
    old = f"kind: OverridePolicy\nmetadata: {{name: old, namespace: shop}}\nspec:\n  {target}\n  overriders: {{{BY % 'old'}}}"
    result = run(files(old))
    assert "".join(cluster for cluster in "abc" if signed(result, cluster) == "old") == clusters


def test_clusters_with_the_same_rules_share_one_manifest(run: Any) -> None:
    result = run(files(override("o"), override("p", target="{labelSelector: {matchLabels: {cloud: y}}}")))
    a, b, c = (result.manifest("web", cluster) for cluster in "abc")
    assert b is c
    assert a is not b


def test_an_override_takes_precedence_over_divided_replicas(run: Any) -> None:
    more = "plaintext: [{path: /spec/replicas, operator: replace, value: 9}]"
    result = run(
        files(override("o", target="{clusterNames: [a, b]}"), override("p", more, "{clusterNames: [b]}"), propagation=DIVIDED)
    )
    shares = result.clusters("web")
    assert [get_field(result.manifest("web", cluster), "spec", "replicas") for cluster in "ab"] == [shares["a"], 9]
    assert result.manifest("web", "c") is None
    assert sum(shares.values()) == 5


def test_an_evicted_copy_keeps_its_overrides(run: Any) -> None:
    first = run(files(override("o")))
    hot = FLEET.replace("{region: south}", "{region: south, taints: [{key: fire, effect: NoExecute}]}")
    second = run(files(override("o"), fleet=hot), first)
    (place,) = (place for place in second.outcome("web").targets if place.cluster == "c")
    assert place.evicting
    assert signed(second, "c") == "o"


def test_a_policy_that_cannot_be_applied_is_reported_and_the_manifest_does_not_change(run: Any) -> None:
    fine = run(files(override("o")))
    result = run(files(override("o"), override("p", BROKEN, "{labelSelector: {matchLabels: {cloud: y}}}")), fine)
    (finding,) = result.outcome("web").findings
    assert (finding.code, finding.severity, str(finding.location)) == ("override-failed", "error", "o1.yaml:2:1")
    assert finding.resource == ("OverridePolicy", "shop", "p")
    assert finding.message == (
        "OverridePolicy/shop/p cannot be applied to Deployment.apps/shop/web, whose manifest in b, c does not change: "
        "spec.overrideRules[0].overriders.plaintext[0]: /spec/nothing does not exist"
    )
    assert {place.cluster: place.keeps_manifest for place in result.outcome("web").targets} == {"a": False, "b": True, "c": True}
    assert signed(result, "a") == "o"


def test_a_workload_does_not_move_to_a_cluster_where_its_overrides_fail(run: Any) -> None:
    in_a = EVERYWHERE.replace("{}", "{clusterAffinity: {clusterNames: [a]}}")
    broken = override("o", BROKEN, "{clusterNames: [b]}")
    first = run(files(broken, propagation=in_a))
    assert first.codes("web") == []
    moved = run(files(broken, propagation=in_a.replace("[a]", "[b]")), first)
    assert (moved.outcome("web").state, list(moved.clusters("web"))) == ("stale", ["a"])
    assert moved.codes("web") == ["override-failed", "stale-decision"]
    mended = run(files(override("o", target="{clusterNames: [b]}"), propagation=in_a.replace("[a]", "[b]")), moved)
    assert (mended.outcome("web").state, list(mended.clusters("web")), signed(mended, "b")) == ("placed", ["b"], "o")


def test_a_new_workload_is_placed_where_its_overrides_can_be_applied(run: Any) -> None:
    result = run(files(override("o", BROKEN, "{clusterNames: [b]}")))
    assert list(result.clusters("web")) == ["a", "b", "c"]
    assert {place.cluster: place.keeps_manifest for place in result.outcome("web").targets} == {"a": False, "b": True, "c": False}
    again = run(files(override("o", BROKEN, "{clusterNames: [b]}")), result)
    assert (again.outcome("web").state, again.codes("web")) == ("placed", ["override-failed"])


def test_an_invalid_cluster_keeps_a_manifest_that_depends_on_its_labels(run: Any) -> None:
    by_label, by_name = (
        override("o", target="{labelSelector: {matchLabels: {cloud: y}}}"),
        override("o", target="{clusterNames: [b]}"),
    )
    broken = FLEET.replace(
        "{region: north}\n---\nkind: Cluster\nmetadata: {name: c", "{region: 5}\n---\nkind: Cluster\nmetadata: {name: c"
    )
    first = run(files(by_label))
    second = run(files(by_label, fleet=broken), first)
    assert {place.cluster: place.keeps_manifest for place in second.outcome("web").targets} == {"a": False, "b": True, "c": False}
    third = run(files(by_name, fleet=broken), first)
    assert signed(third, "b") == "o"
    assert not any(place.keeps_manifest for place in third.outcome("web").targets)


# Dependent overrides


WAITING = EVERYWHERE + "  dependentOverrides: [mirror, proxy]\n"


def test_a_workload_waits_for_every_dependent_override(run: Any) -> None:
    first = run(files(override("mirror"), propagation=WAITING))
    outcome = first.outcome("web")
    assert (outcome.state, outcome.targets, outcome.records) == ("pending", (), ())
    assert outcome.reason == "its policy waits for OverridePolicy/shop/proxy"
    (finding,) = outcome.findings
    assert (finding.code, str(finding.location), finding.resource) == (
        "override-awaited",
        "all.yaml:2:1",
        ("PropagationPolicy", "shop", "all"),
    )
    second = run(files(override("mirror"), override("proxy"), propagation=WAITING), first)
    assert (second.outcome("web").state, second.codes("web"), list(second.clusters("web"))) == ("placed", [], ["a", "b", "c"])


def test_a_placed_workload_stays_while_a_dependent_override_is_missing(run: Any) -> None:
    first = run(files())
    second = run(files(propagation=WAITING.replace("{}", "{clusterAffinity: {clusterNames: [a]}}")), first)
    assert (second.outcome("web").state, list(second.clusters("web"))) == ("stale", ["a", "b", "c"])
    assert second.codes("web") == ["override-awaited", "stale-decision"]


def test_a_cluster_policy_depends_on_cluster_overrides(run: Any) -> None:
    wide = WAITING.replace("kind: Prop", "kind: ClusterProp").replace(", namespace: shop", "")
    near = [override("mirror"), override("proxy")]
    assert run(files(*near, propagation=wide)).outcome("web").state == "pending"
    far = [override("mirror", kind=CLUSTERWIDE), override("proxy", kind=CLUSTERWIDE)]
    assert run(files(*far, propagation=wide)).outcome("web").state == "placed"


# Explain


def test_explain_lists_the_override_policies_by_cluster(run: Any) -> None:
    some = override("some", f"{label('some')}, plaintext: [{{path: /spec/paused, operator: add, value: true}}]", "{exclude: [a]}")
    result = run(
        files(some, override("wide", kind=CLUSTERWIDE, selector=", name: web"), override("ghost", target="{clusterNames: [ghost]}"))
    )
    assert result.explain("web").overrides == (
        AppliedOverride("ClusterOverridePolicy/wide", "o1.yaml:2", ("a", "b", "c"), ("labelsOverrider",)),
        AppliedOverride("OverridePolicy/shop/ghost", "o2.yaml:2", (), ()),
        AppliedOverride("OverridePolicy/shop/some", "o0.yaml:2", ("b", "c"), ("labelsOverrider", "plaintext")),
    )


@each_row(
    ("policies", "texts"),
    [
        (
            [override("o", "labelsOverrider: [{operator: replace, value: {team: web}}]")],
            ["o (o0.yaml:2): labelsOverrider changes nothing in a, b, c"],
        ),
        ([override("o", label("nobody"))], ["o (o0.yaml:2): labelsOverrider changes nothing in a, b, c"]),
        (
            [
                override(
                    "o", f"{label('o')}, annotationsOverrider: [{{operator: remove, value: {{team: web}}}}]", "{clusterNames: [a]}"
                )
            ],
            ["o (o0.yaml:2): labelsOverrider in a; annotationsOverrider changes nothing"],
        ),
        # What an earlier policy adds, a later one may replace; what is set to the number of its cluster changes nothing there alone.
        (
            [
                override("a", "labelsOverrider: [{operator: add, value: {team: a}}]"),
                override("b", "labelsOverrider: [{operator: replace, value: {team: b}}]"),
            ],
            ["a (o0.yaml:2): labelsOverrider in a, b, c", "b (o1.yaml:2): labelsOverrider in a, b, c"],
        ),
        (
            [override("o", "plaintext: [{path: /spec/replicas, operator: replace, value: 5}]")],
            ["o (o0.yaml:2): plaintext changes nothing in a, b, c"],
        ),
        ([override("o", BROKEN)], ["o (o0.yaml:2): plaintext in a, b, c"]),  # a finding says that it fails
        (
            [override("o", target="{labelSelector: {matchLabels: {cloud: z}}}")],
            ["o (o0.yaml:2): matches none of the clusters above"],
        ),
    ],
)
def test_explain_says_which_overriders_change_nothing(run: Any, policies: list[str], texts: list[str]) -> None:
    found = run(files(*policies)).explain("web").overrides
    assert [describe_override(one).removeprefix("OverridePolicy/shop/") for one in found] == texts


def test_a_number_that_replaces_the_part_of_a_cluster_changes_it(run: Any) -> None:
    """The Deployment has 5 replicas, of which each cluster gets a part."""
    found = run(files(override("o", "plaintext: [{path: /spec/replicas, operator: replace, value: 5}]"), propagation=DIVIDED))
    (applied,) = found.explain("web").overrides
    assert applied.changes == ("plaintext",)


def test_explain_says_when_a_decision_is_not_applied(run: Any) -> None:
    told = run(files(propagation=WAITING), run(files())).explain("web")
    assert told.trigger == "Not applied: its policy waits for OverridePolicy/shop/mirror, OverridePolicy/shop/proxy."
    assert [share.cluster for share in told.result] == ["a", "b", "c"]


# Policies that change nothing


PLAIN = "plaintext: [{path: /spec/replicas, operator: replace, value: 4}]"
NOWHERE = "OverridePolicy/shop/o changes nothing: Deployment.apps/shop/web is in a, which its targetCluster does not match"


@each_row(
    ("selector", "target", "message"),
    [
        (", name: web", "{labelSelector: {matchLabels: {cloud: y}}}", NOWHERE),
        (", name: web", "{clusterNames: [b, c]}", NOWHERE),
        (", name: web", "{clusterNames: [a, b]}", ""),
        (", name: web", "", ""),
        # Which workloads are in its clusters may change every day.
        (", labelSelector: {matchLabels: {app: web}}", "{clusterNames: [b]}", ""),
        ("", "{clusterNames: [b]}", ""),
        ("everything", "{clusterNames: [b]}", ""),
    ],
)
def test_a_policy_that_names_a_workload_which_is_elsewhere_is_a_note(run: Any, selector: str, target: str, message: str) -> None:
    there = EVERYWHERE.replace("{}", "{clusterAffinity: {clusterNames: [a]}}")
    found = run(files(override("o", target=target, selector=selector), propagation=there)).outcome("web").findings
    assert [(one.severity, one.message) for one in found if one.code == "override-unused"] == (
        [("info", message)] if message else []
    )


@each_row(
    ("selector", "overriders", "message"),
    [
        (", name: web", "argsOverrider: [{containerName: wbe, operator: add, value: [x]}]", "has no container wbe; it has web"),
        (", name: web", "commandOverrider: [{containerName: web, operator: add, value: [x]}]", ""),
        ("", "argsOverrider: [{containerName: wbe, operator: add, value: [x]}]", ""),
        # It may name a container that another overrider adds.
        (", name: web", f"argsOverrider: [{{containerName: wbe, operator: add, value: [x]}}], {PLAIN}", ""),
    ],
)
def test_a_container_that_the_named_workload_does_not_have_is_a_note(
    run: Any, selector: str, overriders: str, message: str
) -> None:
    found = run(files(override("o", overriders, selector=selector))).outcome("web").findings
    expected = f"an overrider of OverridePolicy/shop/o changes nothing: Deployment.apps/shop/web {message}"
    assert [(one.severity, one.message) for one in found if one.code == "override-unused"] == (
        [("info", expected)] if message else []
    )


# What can be said before anything is placed


@pytest.mark.parametrize(
    ("overriders", "code"),
    [
        ('imageOverrider: [{component: Tag, operator: replace, value: "@sha256:1"}]', "karmada-override-tag"),
        ("imageOverrider: [{component: Tag, operator: replace, value: v1}]", None),
        ("plaintext: [{path: spec/replicas, operator: replace, value: 1}]", "karmada-override-path"),
        ("plaintext: [{path: /spec/replicas, operator: replace, value: 1}]", None),
        ('plaintext: [{path: "", operator: replace, value: {}}]', None),
    ],
)
def test_an_overrider_without_effect_is_a_warning(overriders: str, code: str | None) -> None:
    body = {"apiVersion": "policy.karmada.io/v1alpha1", **yaml.safe_load(override("o", overriders))}
    assert [(issue.severity, issue.code) for issue in validate_document(body).issues] == ([("warning", code)] if code else [])


# What goes along


CONFIG = "kind: ConfigMap\nmetadata: {name: conf, namespace: shop, labels: {by: nobody}}"
OWNER = WEB.replace("image: web:1", "image: web:1, envFrom: [{configMapRef: {name: conf}}]")
ALONG = EVERYWHERE + "  propagateDeps: true\n"


def config_override(overriders: str) -> str:
    return override("o", overriders, "{clusterNames: [b]}").replace("apps/v1, kind: Deployment", "v1, kind: ConfigMap")


def test_dependencies_are_overridden(run: Any) -> None:
    found = run({"conf.yaml": CONFIG, **files(config_override(label("o")), workload=OWNER, propagation=ALONG)})
    assert [signed(found, cluster, "conf") for cluster in "abc"] == ["nobody", "o", "nobody"]
    assert [(told.policy, told.clusters) for told in found.explain("conf").overrides] == [("OverridePolicy/shop/o", ("b",))]
    assert run(files()).clusters("web") == found.clusters("web")


def test_a_cluster_of_a_previous_dependent_is_not_new(run: Any) -> None:
    own = EVERYWHERE.replace("name: all", "name: own").replace("apps/v1, kind: Deployment", "v1, kind: ConfigMap")
    own = own.replace("{}", "{clusterAffinity: {clusterNames: [a]}}")
    repository = {"conf.yaml": CONFIG, "own.yaml": own, **files(workload=OWNER, propagation=ALONG)}
    first = run(repository)
    second = run({**repository, "o.yaml": config_override(BROKEN)}, first)
    assert (second.outcome("conf").state, second.codes("conf")) == ("placed", ["override-failed"])
    assert {place.cluster: place.keeps_manifest for place in second.outcome("conf").targets} == {"a": False, "b": True, "c": False}
