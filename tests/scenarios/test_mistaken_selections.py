"""A policy that by mistake no longer selects what it placed stops nothing, however few workloads these are."""

from __future__ import annotations

import pytest

from gitsched.reconcile import validate_source
from gitsched.reconcile.incremental import new_state
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.reconcile.run import make_review
from gitsched.report.fleet_status import write_fleet_status
from gitsched.report.text import write_plan
from tests.scenarios.conftest import UNGUARDED, Fleet, allow_withheld, cluster, deployment, policy

pytestmark = pytest.mark.usefixtures("bugs_are_raised")

WEB = deployment("web").replace("  name: web\n", "  name: web\n  labels: {tier: front}\n", 1)
BY_LABEL = policy("one").replace("Deployment}", "Deployment, labelSelector: {matchLabels: {tier: front}}}")
BY_NAME = policy("one").replace("Deployment}", "Deployment, name: web}")
TWO_KINDS = policy("one").replace("Deployment}", "Deployment}\n  - {apiVersion: v1, kind: ConfigMap}")
SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\n"
LABEL_AND_KIND = BY_LABEL.replace("front}}}", "front}}}\n  - {apiVersion: v1, kind: ConfigMap}")
BASE = {"one.yaml": cluster("one"), "web.yaml": WEB}
SELECTS_NOTHING = "PropagationPolicy/default/all selects nothing any more (policy.yaml:8)"
SPACE = "metadata: {name: %s, namespace: office}\n"
OTHERS = "apiVersion: v1\nkind: Secret\n" + SPACE % "login"


def misspell(text: str, namespace: str = "defualt") -> dict[str, str | None]:
    """The policy in another namespace."""
    return {"policy.yaml": text.replace("namespace: default", f"namespace: {namespace}")}


MISTAKES: dict[str, tuple[str, dict[str, str | None], str]] = {
    "a kind": (
        policy("one"),
        {"policy.yaml": policy("one").replace("Deployment", "Deploymnt")},
        "PropagationPolicy/default/all selects Deploymnt of apps/v1, which the repository does not have; did you mean Deployment?",
    ),
    "one of several kinds": (
        TWO_KINDS,
        {"policy.yaml": TWO_KINDS.replace("Deployment", "Deploymnt")},
        "PropagationPolicy/default/all selects Deploymnt of apps/v1, which the repository does not have; did you mean Deployment?",
    ),
    "a name": (
        BY_NAME,
        {"policy.yaml": BY_NAME.replace("name: web", "name: wbe")},
        "PropagationPolicy/default/all selects nothing: namespace default has no Deployment wbe; did you mean web?",
    ),
    "a label of the policy": (
        BY_LABEL,
        {"policy.yaml": BY_LABEL.replace("front", "frnt")},
        "PropagationPolicy/default/all selects nothing: namespace default has no Deployment with tier=frnt; did you mean "
        "tier=front of Deployment/default/web?",
    ),
    "a label of the workload": (
        BY_LABEL,
        {"web.yaml": WEB.replace("front", "frnt")},
        "PropagationPolicy/default/all selects nothing: namespace default has no Deployment with tier=front; did you mean "
        "tier=frnt of Deployment/default/web?",
    ),
    "a label beside another selector": (
        LABEL_AND_KIND,
        {"policy.yaml": LABEL_AND_KIND.replace("front", "frnt")},
        "PropagationPolicy/default/all selects Deployment with tier=frnt, which namespace default does not have; did you mean "
        "tier=front of Deployment/default/web?",
    ),
    "the namespace of the policy": (
        policy("one"),
        misspell(policy("one")),
        "PropagationPolicy/defualt/all selects nothing; did you mean the namespace default? (policy.yaml:5)",
    ),
    "the namespace of a policy with labels": (
        BY_LABEL,
        misspell(BY_LABEL),
        "PropagationPolicy/defualt/all selects nothing; did you mean the namespace default? (policy.yaml:5)",
    ),
    "another namespace, with other objects": (
        BY_LABEL,
        {**misspell(BY_LABEL, "office"), "login.yaml": OTHERS},
        "PropagationPolicy/office/all selects nothing; did you mean the namespace default? (policy.yaml:5)",
    ),
    "another label of the policy": (BY_LABEL, {"policy.yaml": BY_LABEL.replace("front", "main")}, SELECTS_NOTHING),
}
INTENTIONS: dict[str, tuple[str, dict[str, str | None]]] = {
    "the policy is deleted": (BY_LABEL, {"policy.yaml": None}),
    "the policy is deleted, and one of its name in another namespace selects something else": (
        BY_LABEL,
        misspell(BY_NAME.replace("name: web", "name: api"), "office"),
    ),
    "the policy moves to a namespace where it selects something": (
        policy("one"),
        {**misspell(policy("one"), "office"), "other.yaml": deployment("other", namespace="office")},
    ),
    "the manifest is deleted": (BY_LABEL, {"web.yaml": None}),
    "the policy selects others": (TWO_KINDS, {"policy.yaml": policy("one", kind="ConfigMap")}),
    "the guard is off": (BY_LABEL, {"policy.yaml": BY_LABEL.replace("front", "frnt"), "gitsched.yaml": UNGUARDED}),
}


@pytest.fixture(params=["complete", "incremental"])
def placed(fleet: Fleet, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """A fleet whose plans start from the state of the last run, or not."""
    monkeypatch.setattr(new_state, "MIN_WORKLOADS", 0 if request.param == "incremental" else 1_000)
    return fleet


def place(fleet: Fleet, first: str) -> None:
    fleet.commit({**BASE, "policy.yaml": first, "settings.yaml": SETTINGS, "gitsched.yaml": UNGUARDED.partition("spec:")[0]})
    fleet.reconcile()
    assert fleet.where("default/deployment-web") == ["one"]


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_selector_stops_no_workload(name: str, placed: Fleet) -> None:
    first, mistake, cause = MISTAKES[name]
    place(placed, first)
    placed.commit(mistake, hour=1)
    plan = write_plan(make_review(placed.preview(1)), 10_000)
    assert "unplaced (withheld)" in plan.partition(":")[0]
    assert f"  {cause}" in plan.partition("replicas removed")[0]
    assert ": 1 workload would become unplaced" in plan.partition("replicas removed")[0]
    run = placed.reconcile(1)
    assert placed.where("default/deployment-web") == ["one"]
    (error,) = (finding for finding in run.plan.findings if finding.severity == "error")
    assert error.code == "changes-withheld"
    assert cause in error.message
    placed.commit({"other.yaml": SETTINGS.replace("settings", "other")}, hour=2)
    assert placed.reconcile(2).plan.withheld == run.plan.withheld, "it stays until it is corrected or allowed"
    assert placed.where("default/deployment-web") == ["one"]
    placed.commit({"policy.yaml": first, "web.yaml": WEB}, hour=3)
    assert not placed.reconcile(3).plan.withheld.moves
    assert placed.where("default/deployment-web") == ["one"]


def test_validate_and_status_say_that_what_is_withheld_still_runs(fleet: Fleet) -> None:
    first, mistake, cause = MISTAKES["one of several kinds"]
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\nspec: {selector: {app: web}}\n"
    pods = "  template: {metadata: {labels: {app: web}}}\n"
    first, changed = (text.replace("ConfigMap", "Service") for text in (first, str(mistake["policy.yaml"])))
    fleet.commit({**BASE, "web.yaml": WEB + pods, "service.yaml": service, "policy.yaml": first})
    fleet.reconcile()
    fleet.commit({"policy.yaml": changed}, hour=1)
    for hour in (1, 2):
        validated = validate_source(fleet.settings(hour))
        assert not validated.unclaimed
        assert not validated.unselected
        codes = [one.code for one in validated.findings if one.severity != "info"]
        assert codes == ["changes-withheld", "karmada-selects-nothing"], "no Service without its target"
        assert cause in validated.findings[0].message
        assert write_fleet_status(read_fleet_status(fleet.settings(hour)), unclaimed=True).splitlines() == [
            "Deployment default/web  web.yaml:1  still placed: the guard withholds that it becomes unplaced; "
            "PropagationPolicy/default/all selects Deploymnt (policy.yaml:1); this one is a Deployment"
        ]
        fleet.reconcile(hour)
        assert fleet.where("default/deployment-web") == ["one"]


def test_exactly_this_is_allowed_by_its_digest(placed: Fleet) -> None:
    first, mistake, _ = MISTAKES["a label of the policy"]
    place(placed, first)
    placed.commit(mistake, hour=1)
    placed.reconcile(1)
    assert not placed.reconcile(2, allowed=allow_withheld(placed.settings(2)).choices.allowed).plan.withheld.moves
    assert placed.where("default/deployment-web") == []


@pytest.mark.parametrize("name", INTENTIONS)
def test_what_a_change_intends_happens(name: str, placed: Fleet) -> None:
    first, files = INTENTIONS[name]
    if name == "the guard is off":
        placed.commit({"gitsched.yaml": UNGUARDED})
        placed.reconcile()
    place(placed, first) if name != "the guard is off" else placed.commit({**BASE, "policy.yaml": first}, hour=0.5)
    placed.reconcile(0.5)
    placed.commit(files, hour=1)
    assert not placed.reconcile(1).plan.withheld.moves
    assert placed.where("default/deployment-web") == []


def test_many_policies_that_select_nothing_are_named_beside_the_limits_that_they_exceed(placed: Fleet) -> None:
    names = [f"team-{number}" for number in range(9)]
    files = {f"{name}.yaml": WEB.replace("namespace: default", f"namespace: {name}") for name in names}
    policies = {f"policy-{name}.yaml": BY_LABEL.replace("namespace: default", f"namespace: {name}") for name in names}
    others = {f"other-{number}.yaml": deployment(f"other-{number}") for number in range(6)}
    guarded = UNGUARDED.partition("spec:")[0]
    everything = policy("one", name="others")
    placed.commit({"one.yaml": cluster("one"), **files, **policies, **others, "others.yaml": everything, "gitsched.yaml": guarded})
    placed.reconcile()
    placed.commit({path: text.replace("front", "regional") for path, text in policies.items() if "team-0" not in path}, hour=1)
    lines = write_plan(make_review(placed.preview(1)), 10_000).splitlines()
    causes = [line for line in lines if line.startswith("  PropagationPolicy/") and "selects nothing any more" in line]
    assert causes[0] == (
        "  PropagationPolicy/team-1/all selects nothing any more (policy-team-1.yaml:8): 1 workload would become unplaced"
    )
    assert len(causes) == 5
    assert "  and 3 more that select nothing" in lines
    assert any("8 of 15 workloads would be removed from the fleet (limit: 20 %)" in line for line in lines)
    (error,) = (finding for finding in placed.reconcile(1).plan.findings if finding.severity == "error")
    assert "PropagationPolicy/team-1/all selects nothing any more" in error.message
