"""What a review says first: new objects that no cluster gets, held workloads, the lines of images and of what Bundles build."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from gitsched.cli.exit_codes import get_review_code
from gitsched.reconcile.incremental import new_state
from gitsched.reconcile.review import changed_lines, stopped_objects, unplaced_objects
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.run import make_review
from gitsched.report.consequences import list_consequence_lines, list_consequences, loses_placements
from gitsched.report.images import describe_image_changes
from gitsched.report.review import Review
from gitsched.report.saved_plan import parse_saved_plan, serialize_saved_plan
from gitsched.report.summary import format_headline
from gitsched.report.text import write_run
from tests.scenarios.conftest import Fleet, cluster, deployment, policy

pytestmark = pytest.mark.usefixtures("bugs_are_raised")
SELECTING = policy("ash").replace("kind: Deployment}", "kind: Deployment, labelSelector: {matchLabels: {tier: %s}}}")
FRONT, BACK = SELECTING % "front", (SELECTING % "back").replace("name: all", "name: back")
BUNDLE = "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: pair, namespace: default}\nspec: {path: pair}\n"
BUNDLES = policy("ash", kind="Bundle").replace("apps/v1", "gitsched.io/v1alpha1")
OVERLAY = "resources: [web.yaml]\nimages:\n- {name: web, newTag: '%s'}\nreplicas:\n- {name: web, count: %d}\n"
CLAIM = (
    "  volumeClaimTemplates:\n  - metadata: {name: data}\n"
    "    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
)


def labelled(name: str, tier: str, image: str = "web:1", namespace: str = "default") -> str:
    text = deployment(name, namespace=namespace).replace("\nspec:", f"\n  labels:\n    tier: {tier}\nspec:", 1)
    pod = f"    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      containers:\n      - {{name: {name}, image: {image}}}\n"
    return f"{text}  template:\n{pod}"


@pytest.fixture(params=["complete", "incremental"])
def compared(fleet: Fleet, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """A reconciled fleet, whose comparisons are made completely, or from the state of the last run."""
    monkeypatch.setattr(new_state, "MIN_WORKLOADS", 0)
    files = {"front.yaml": FRONT, "back.yaml": BACK, "web.yaml": labelled("web", "front"), "old.yaml": labelled("old", "nothing")}
    fleet.commit({**files, "clusters/ash.yaml": cluster("ash")})
    fleet.reconcile()
    fleet.complete = request.param == "complete"  # type: ignore[attr-defined]
    return fleet


def review(fleet: Fleet, files: Mapping[str, str | None]) -> Review:
    fleet.git("checkout", "-q", "-B", "change")
    fleet.commit(dict(files), hour=1)
    found = compare_plans(fleet.settings(1, revision="HEAD"), "main", complete=getattr(fleet, "complete", True))
    assert not found.has_faults
    return found.review


def say(found: Review) -> list[str]:
    return list_consequence_lines(list_consequences(found))


def test_a_new_workload_with_a_misspelt_label_is_named_among_thirty_with_the_policy_and_the_line(compared: Fleet) -> None:
    files = {f"new/{number:02}.yaml": labelled(f"new-{number:02}", "back" if number != 17 else "fornt") for number in range(30)}
    found = review(compared, files)
    assert format_headline(found).startswith("29 of 30 workloads are newly placed, 0 become unplaced, 1 new object is sel")
    assert say(found) == [
        "Deployment default/new-17 is selected by no policy, so that it runs in no cluster: PropagationPolicy/default/all selects "
        "Deployment with tier=front (front.yaml:1); this one has tier=fornt (new/17.yaml:7)"
    ]
    assert not loses_placements(found)


def test_a_renamed_namespace_is_one_line_with_the_policy_that_selected_there(compared: Fleet) -> None:
    others = {f"{name}.yaml": policy("ash", name=name).replace("namespace: default", f"namespace: {name}") for name in ("a", "z")}
    files = {name: labelled(name.removesuffix(".yaml"), "front", namespace="shop") for name in ("one.yaml", "two.yaml")}
    own = policy("ash", name="own").replace("namespace: default", "namespace: shop")
    compared.commit({**others, **files, "own.yaml": own, "other.yaml": labelled("other", "front", namespace="a")})
    compared.reconcile()
    found = review(compared, {name: text.replace("namespace: shop", "namespace: store") for name, text in files.items()})
    assert say(found) == [
        "Deployment store/one, Deployment store/two are selected by no policy since their namespace changed from shop to store: they leave "
        "all of their clusters (1 cluster, 4 replicas): PropagationPolicy/shop/own selects Deployment in "
        "namespace shop (own.yaml:1); this one is in store: change the namespace in the policy as well (one.yaml:5)"
    ]
    assert loses_placements(found)
    compared.git("checkout", "-q", "main")
    compared.git("merge", "-q", "change")
    text = write_run(make_review(compared.reconcile()), 10_000)
    assert say(found)[0] in text
    assert "did you mean the namespace store?" in text


def test_a_namespace_is_no_object_that_a_policy_has_to_select_and_others_are_counted(compared: Fleet) -> None:
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d, namespace: default}\n"
    files = {f"c{number}.yaml": config % number for number in range(4)}
    found = review(compared, {**files, "n.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: store}\n"})
    assert say(found) == [
        "ConfigMap default/c0, ConfigMap default/c1, ConfigMap default/c2, ConfigMap default/c3 are selected by no policy, so that they "
        "run in no cluster: added to the source (c0.yaml:1)"
    ]


def test_what_was_selected_by_no_policy_before_is_no_news(compared: Fleet) -> None:
    assert say(review(compared, {"old.yaml": labelled("old", "none")})) == []


def test_a_workload_that_a_changed_policy_stops_selecting_is_named_once(compared: Fleet) -> None:
    (line,) = say(review(compared, {"front.yaml": SELECTING % "frnt"}))
    assert line.startswith(
        "Deployment default/web becomes unplaced and stops: it leaves all of its clusters (1 cluster, 2 replicas); the guard withholds "
        "this: PropagationPolicy/default/all"
    )


def test_a_new_workload_for_which_no_cluster_fits_is_named_and_an_earlier_one_is_not(compared: Fleet) -> None:
    nowhere = policy("nowhere", name="gpu").replace("kind: Deployment}", "kind: Deployment, name: %s}")
    found = review(compared, {"gpu.yaml": nowhere % "train", "train.yaml": labelled("train", "x")})
    (line,) = say(found)
    assert line.startswith(
        "Deployment default/train is placed in no cluster: PropagationPolicy/default/gpu: 0/1 clusters are available"
    )
    assert line.endswith("(train.yaml:1)")
    compared.git("checkout", "-q", "main")
    compared.git("merge", "-q", "change")
    compared.reconcile(1)
    assert say(review(compared, {"train.yaml": labelled("train", "y")})) == []


def test_an_image_has_the_line_that_changes_it(compared: Fleet) -> None:
    found = review(compared, {"web.yaml": labelled("web", "front", "web:2")})
    assert describe_image_changes(found.comparison.delivery.images) == [
        "image web:1 -> web:2 in ash: default/deployment-web.yaml (web.yaml:15)"
    ]


def test_an_override_that_changes_an_image_is_its_line(compared: Fleet) -> None:
    override = (
        "apiVersion: policy.karmada.io/v1alpha1\nkind: OverridePolicy\nmetadata: {name: mirror, namespace: default}\nspec:\n"
        "  overrideRules:\n  - overriders:\n      imageOverrider:\n      - {component: Registry, operator: add, value: mirror.example}\n"
    )
    (image,) = review(compared, {"mirror.yaml": override}).comparison.delivery.images
    assert (image.after, image.location and image.location.text) == ("mirror.example/web:1", "mirror.yaml:8")


def test_a_bundle_that_is_built_differently_names_what_and_the_line(fleet: Fleet) -> None:
    base = {"web.yaml": labelled("web", "x"), "kustomization.yaml": OVERLAY % ("1", 4)}
    files = {f"pair/{path}": text for path, text in base.items()}
    fleet.commit({**files, "bundle.yaml": BUNDLE, "policy.yaml": BUNDLES, "clusters/ash.yaml": cluster("ash")})
    fleet.reconcile()
    found = review(fleet, {"pair/kustomization.yaml": OVERLAY % ("2", 0)})
    assert say(found) == [
        "Bundle default/pair stops: it has 0 replicas instead of 4: Bundle/default/pair built differently: Deployment/default/web: "
        "spec.replicas 4 -> 0 and 1 more change (pair/kustomization.yaml:5)"
    ]
    (image,) = found.comparison.delivery.images
    assert (image.after, image.location and image.location.text) == ("web:2", "pair/kustomization.yaml:3")


CHART = {
    "web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "web/values.yaml": "replicas: 1\n",
    "web/values-eu.yaml": "# Europe\nreplicas: 5\n",
    "web/values-us.yaml": "replicas: 4\n",
    "web/templates/web.yaml": deployment("web", "{{ .Values.replicas }}"),
    "bundle.yaml": BUNDLE.replace(
        "{path: pair}",
        "{path: web, helm: {releaseName: web}, variants: ["
        "{path: web, helm: {valuesFiles: [web/values-eu.yaml]}, clusters: {names: [ash]}}, "
        "{path: web, helm: {valuesFiles: [web/values-us.yaml]}, clusters: {names: [oak]}}]}",
    ),
}


@pytest.mark.needs("helm")
@pytest.mark.parametrize(
    ("files", "what", "place"),
    [
        ({"web/values-eu.yaml": "# Europe\nreplicas: 2\n"}, "5 -> 2", "web/values-eu.yaml:2"),
        ({"web/values-eu.yaml": "# Europe\nreplica: 2\n"}, "5 -> 1", "web/values-eu.yaml:2"),
        ({"web/values-eu.yaml": "# Europe\n"}, "5 -> 1", "web/values-eu.yaml:2"),
        ({"web/templates/web.yaml": deployment("web", 1)}, "5 -> 1 and 1 more change", "web/templates/web.yaml:7"),
    ],
)
def test_one_of_several_variants_of_a_chart_names_the_file_that_changes_it(
    fleet: Fleet, files: dict[str, str], what: str, place: str
) -> None:
    fleet.commit({**CHART, "policy.yaml": BUNDLES.replace("ash", "ash, oak"), "a.yaml": cluster("ash"), "b.yaml": cluster("oak")})
    fleet.reconcile()
    (cause,) = review(fleet, files).moves[0].causes
    text = f"Bundle/default/pair built differently: Deployment/default/web: spec.replicas {what}"
    assert (cause.text, cause.location and cause.location.text) == (text, place)


def test_an_object_of_a_bundle_that_stops_is_named_and_fails_unless_it_is_removed(fleet: Fleet) -> None:
    overlay = "resources: [web.yaml, job.yaml]\n"
    base = {"web.yaml": labelled("web", "x"), "job.yaml": deployment("job", 9), "kustomization.yaml": overlay}
    files = {f"pair/{path}": text for path, text in base.items()}
    fleet.commit({**files, "bundle.yaml": BUNDLE, "policy.yaml": BUNDLES, "clusters/ash.yaml": cluster("ash")})
    fleet.reconcile()
    scaled = review(fleet, {"pair/kustomization.yaml": f"{overlay}replicas:\n- {{name: web, count: 0}}\n"})
    cause = "Bundle/default/pair built differently: Deployment/default/web"
    assert say(scaled) == [
        f"Deployment default/web stops: it has 0 replicas instead of 2: {cause}: spec.replicas 2 -> 0 (pair/kustomization.yaml:3)"
    ]
    assert loses_placements(scaled)
    again = compare_plans(fleet.settings(1, revision="HEAD"), "main")
    saved = parse_saved_plan(json.dumps(serialize_saved_plan(again.review, again.delivered)))
    assert say(saved.review) == say(scaled)
    fleet.git("checkout", "-q", "main")
    removed = review(fleet, {"pair/kustomization.yaml": "resources: [job.yaml]\n", "pair/web.yaml": None})
    assert say(removed) == [
        f"Deployment default/web is removed: it leaves all of its clusters (1 cluster, 2 replicas): {cause} removed "
        "(pair/kustomization.yaml:1)"
    ]
    assert not loses_placements(removed)


def test_a_held_workload_is_in_the_headline_of_the_review_that_holds_it(compared: Fleet) -> None:
    database = labelled("db", "front").replace("kind: Deployment", "kind: StatefulSet") + CLAIM
    stateful = policy("ash", name="data").replace("kind: Deployment", "kind: StatefulSet")
    compared.git("checkout", "-q", "main")
    compared.commit({"db.yaml": database, "data.yaml": stateful, "clusters/bay.yaml": cluster("bay")})
    compared.reconcile()
    moving = {"data.yaml": stateful.replace("clusterNames: [ash]", "clusterNames: [bay]")}
    found = review(compared, moving)
    assert format_headline(found) == "No workload moves, 1 held"
    compared.git("checkout", "-q", "main")
    compared.git("merge", "-q", "change")
    compared.reconcile(1)
    assert format_headline(review(compared, {"note.txt": "x"})) == "No changes"


def test_errors_of_the_base_do_not_fail_a_review(compared: Fleet) -> None:
    compared.git("checkout", "-q", "main")
    compared.commit({"bad.yaml": "kind: [\n"})
    compared.reconcile()
    found = review(compared, {"web.yaml": labelled("web", "front", "web:2")})
    assert any(finding.severity == "error" for finding in found.findings)
    assert get_review_code(found, "error") == 0
    assert get_review_code(review(compared, {"worse.yaml": "kind: [\n"}), "error") == 1


def test_new_objects_beyond_a_limit_are_named_without_a_hint(compared: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unplaced_objects, "MAX_DESCRIBED", 1)
    found = review(compared, {f"{name}.yaml": labelled(name, "fornt") for name in ("one", "two")})
    assert [one.cause.text.partition(" ")[0] for one in found.comparison.unplaced] == ["PropagationPolicy/default/all", "added"]


def test_images_beyond_a_limit_of_files_have_no_line(compared: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed_lines, "MAX_FILES", 0)
    (image,) = review(compared, {"web.yaml": labelled("web", "front", "web:2")}).comparison.delivery.images
    assert image.location is None


def test_objects_beyond_a_limit_are_not_looked_for(compared: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopped_objects, "MAX_STOPPED", 0)
    compared.git("checkout", "-q", "main")
    compared.commit(
        {"pair/web.yaml": labelled("one", "x"), "pair/job.yaml": deployment("job", 9), "bundle.yaml": BUNDLE, "b.yaml": BUNDLES}
    )
    compared.reconcile()
    assert review(compared, {"pair/web.yaml": None}).comparison.stopped == ()
