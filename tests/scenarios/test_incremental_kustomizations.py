"""Changes below kustomizations are planned from the state of the last run, with the result of a complete plan."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gitsched.reconcile.builds import kustomize_roots as builds
from gitsched.reconcile.output import output_commit
from gitsched.reconcile.review.comparison import compare_plans
from tests.scenarios.conftest import Fleet, cluster, deployment, policy
from tests.scenarios.plain_histories import DEPLOYMENT, SERVICE, Files, PlainHistory, write_policy
from tests.scenarios.test_incremental_comparison import write_reports
from tests.scenarios.test_incremental_plan import ThreeVariants

pytestmark = pytest.mark.usefixtures("bugs_are_raised")

BUILD = "  source: {kustomize: {build: [apps/*]}}\n"
FLUX = """\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %(name)s, namespace: flux-system}
spec: {interval: 10m, path: ./apps/%(name)s, targetNamespace: %(name)s, sourceRef: {kind: GitRepository, name: flux-system}}
"""
UNNAMED = "apiVersion: v1\nkind: Namespace\nmetadata: {name: _}\n"
"""A Namespace that kustomize gives its name."""
FEATURES = ("reconciled", pytest.param("built", marks=pytest.mark.long), pytest.param("not placed", marks=pytest.mark.long))


def write_app(name: str, number: int = 1, lane: str = "one") -> Files:
    """Return a Deployment and its Service."""
    values = {"name": name, "team": "apps", "lane": lane, "number": number, "more": ""}
    return {f"apps/web/{name}.yaml": DEPLOYMENT % values, f"apps/web/{name}-service.yaml": SERVICE % values}


def write_kustomization(*names: str, more: str = "namespace: web\n") -> Files:
    """Return a kustomization that lists applications."""
    listed = "".join(f"- {name}.yaml\n- {name}-service.yaml\n" for name in names)
    return {"apps/web/kustomization.yaml": f"{more}resources:\n- namespace.yaml\n{listed}"}


def list_changes(feature: str) -> dict[str, Files]:
    """Return the changes of each commit, each of which is planned from the state of the last run."""
    gone: Files = dict.fromkeys(write_app("new"))
    changes = {
        "a manifest": write_app("app", 5),
        "a manifest with its entry": {**write_app("new"), **write_kustomization("app", "new")},
        "the policies": {"policies/one.yaml": write_policy("one", "west", "Duplicated")},
        "no manifest and no entry": {**gone, **write_kustomization("app")},
        "the kustomization": write_kustomization("app", more="namespace: web\nimages: [{name: app, newTag: v2}]\n"),
        "a file beside": _write_other(1),
        "a broken manifest": {"apps/web/app.yaml": "a: [\n"},
        "a file beside what is broken": _write_other(2),
        "another file mended": {
            "red/broken.yaml": DEPLOYMENT % {"name": "broken", "team": "red", "lane": "one", "number": 2, "more": ""}
        },
        "a mended manifest": write_app("app", 6),
    }
    return {**changes, "the tool": {"flux/web.yaml": f"# Apps\n{FLUX % {'name': 'web'}}"}} if feature == "reconciled" else changes


def _write_other(number: int) -> Files:
    return {"red/other.yaml": DEPLOYMENT % {"name": "o", "team": "red", "lane": "two", "number": number, "more": ""}}


@pytest.fixture(autouse=True)
def shared_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build the same files once for all caches."""
    known: dict[str, Any] = {}
    run_builds = builds.run_builds

    def run(wanted: Mapping[str, Any], *rest: Any) -> dict[str, Any]:
        known.update(run_builds({key: one for key, one in wanted.items() if key not in known}, *rest))
        return {key: known[key] for key in wanted}

    monkeypatch.setattr(builds, "run_builds", run)


@pytest.mark.needs("kubectl")
@pytest.mark.parametrize("feature", FEATURES)
def test_changes_below_kustomizations_are_planned_from_the_last_state(
    fleet: Fleet, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, feature: str
) -> None:
    monkeypatch.setattr(output_commit, "MIN_KEYED_ROWS", 0)  # as in a large source
    history = PlainHistory(Random(4), lenient=True, more=BUILD if feature == "built" else "")
    files = {**history.files, "apps/web/namespace.yaml": UNNAMED, **write_app("app"), **write_kustomization("app")}
    files["red/broken.yaml"] = DEPLOYMENT % {"name": "broken", "team": "red", "lane": "one", "number": 1, "more": ""}
    fleet.commit(files | ({"flux/web.yaml": FLUX % {"name": "web"}} if feature == "reconciled" else {}))
    variants, complete = ThreeVariants(fleet, tmp_path_factory.mktemp("caches")), set()
    variants.run(0, "first")
    fleet.commit({"red/broken.yaml": "a: [\n"})
    variants.run(0, "second")
    for hour, (kind, changes) in enumerate(list_changes(feature).items(), 1):
        fleet.commit(changes, hour=hour)
        runs = variants.run(hour, kind)
        complete |= {kind} if any(run.plan.complete for run in runs) else set()
    assert not complete
    placed = [(key.namespace, key.kind) for key in runs[0].plan.outcomes if key.name == "app"]
    reported = [found.resource for found in runs[0].plan.findings if found.code == "kustomized"]
    objects = ("Service", "Deployment")
    assert placed == ([] if feature == "not placed" else [("web", kind) for kind in objects])
    assert reported == ([(kind, "apps", "app") for kind in objects] if feature == "not placed" else [])


@pytest.mark.needs("kubectl")
def test_a_pull_request_below_a_kustomization_is_planned_from_the_last_state(fleet: Fleet, tmp_path: Path) -> None:
    history = PlainHistory(Random(4), lenient=True)
    files = {**history.files, "apps/web/namespace.yaml": UNNAMED, **write_app("app"), **write_kustomization("app")}
    base = fleet.commit({**files, "flux/web.yaml": FLUX % {"name": "web"}})
    fleet.reconcile()
    fleet.reconcile(0.1)
    changes = {**write_app("app", 5), **write_app("new"), "policies/one.yaml": write_policy("one", "west", "Divided")}
    head = fleet.commit({**changes, **write_kustomization("app", "new")}, hour=0.1)
    settings = fleet.settings(0.1, revision=head, trusted=False)
    found, whole = compare_plans(settings, base), compare_plans(settings._replace(cache=tmp_path / "none"), base, complete=True)
    assert not found.run.plan.complete
    assert {move.key.name for move in found.review.moves} >= {"app", "new"}
    assert write_reports(found) == write_reports(whole)


@pytest.mark.needs("kubectl")
@pytest.mark.parametrize("feature", ["built", "reconciled"])
def test_what_fails_keeps_the_newest_objects_that_were_built(
    fleet: Fleet, tmp_path_factory: pytest.TempPathFactory, feature: str
) -> None:
    history = PlainHistory(Random(4), lenient=True, more=BUILD if feature == "built" else "")
    files = {**history.files, "apps/web/namespace.yaml": UNNAMED, **write_app("app"), **write_kustomization("app")}
    fleet.commit(files | ({"flux/web.yaml": FLUX % {"name": "web"}} if feature == "reconciled" else {}))
    variants = ThreeVariants(fleet, tmp_path_factory.mktemp("caches"))
    variants.run(0, "first")
    broken: Files = {"apps/web/app.yaml": "a: [\n"}
    for hour, (number, replicas) in enumerate(((0, 1), (7, 7), (0, 7)), 1):
        if number:  # valid in a commit that no run sees
            fleet.commit(write_app("app", number), hour=hour)
        fleet.commit({**broken, "red/note.yaml": f"# {hour}\n"}, hour=hour)
        runs = variants.run(hour, f"run {hour}")
        assert hour == 1 or not any(run.plan.complete for run in runs)
        deployment = next(
            key for key in runs[0].plan.outcomes if (key.namespace, key.name, key.kind) == ("web", "app", "Deployment")
        )
        assert runs[0].plan.outcomes[deployment].replicas == replicas


@pytest.mark.needs("kubectl")
def test_a_pull_request_beside_a_failed_build_is_planned_from_the_last_state(fleet: Fleet, tmp_path: Path) -> None:
    history = PlainHistory(Random(4), lenient=True)
    files = {**history.files, "apps/web/namespace.yaml": UNNAMED, **write_app("app"), **write_kustomization("app")}
    fleet.commit({**files, "flux/web.yaml": FLUX % {"name": "web"}})
    fleet.reconcile()
    base = fleet.commit({"apps/web/app.yaml": "a: [\n"}, hour=0.1)
    fleet.reconcile(0.1)
    fleet.reconcile(0.1)
    head = fleet.commit({**_write_other(3), "policies/one.yaml": write_policy("one", "west", "Divided")}, hour=0.2)
    settings = fleet.settings(0.2, revision=head, trusted=False)
    found, whole = compare_plans(settings, base), compare_plans(settings._replace(cache=tmp_path / "none"), base, complete=True)
    assert not found.run.plan.complete
    assert write_reports(found) == write_reports(whole)


BUNDLE = "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: web, namespace: default}\nspec: {path: apps/web}\n"


@pytest.mark.needs("kubectl")
def test_files_that_no_plan_reads_change_beside_bundles(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> None:
    files = {"apps/web/namespace.yaml": UNNAMED, **write_app("app"), **write_kustomization("app")}
    selecting = policy("one", kind="Bundle").replace("apps/v1", "gitsched.io/v1alpha1")
    fleet.commit({**files, "web.yaml": BUNDLE, "all.yaml": selecting, "one.yaml": cluster("one"), "notes.txt": "notes"})
    variants = ThreeVariants(fleet, tmp_path_factory.mktemp("caches"))
    variants.run(0, "first")
    assert [key.kind for key in variants.run(0, "second")[0].plan.outcomes] == ["Bundle"]
    fleet.commit({"notes.txt": "other notes", "docs/more.txt": "more"}, hour=1)
    assert not any(run.plan.complete for run in variants.run(1, "notes"))
    fleet.commit(write_app("app", 5), hour=2)
    assert all(run.plan.complete and run.changed for run in variants.run(2, "a part"))


@pytest.mark.needs("kubectl")
def test_policies_of_other_workloads_change_beside_bundles(fleet: Fleet, tmp_path: Path) -> None:
    files = {"apps/web/namespace.yaml": UNNAMED, **write_app("app"), **write_kustomization("app"), "web.yaml": BUNDLE}
    files["bundles.yaml"] = policy("one", name="bundles", kind="Bundle").replace("apps/v1", "gitsched.io/v1alpha1")
    others = {
        "others.yaml": policy("one"),
        "other.yaml": deployment("other"),
        "one.yaml": cluster("one"),
        "two.yaml": cluster("two"),
    }
    base = fleet.commit({**files, **others})
    fleet.reconcile()
    fleet.reconcile(0.1)
    head = fleet.commit({"others.yaml": policy("two"), "two.yaml": cluster("two", "drain:NoSchedule")}, hour=0.1)
    settings = fleet.settings(0.1, revision=head, trusted=False)
    found, whole = compare_plans(settings, base), compare_plans(settings._replace(cache=tmp_path / "none"), base, complete=True)
    assert not found.run.plan.complete
    assert write_reports(found) == write_reports(whole)
    run = fleet.reconcile(0.1)
    assert (run.plan.complete, run.tree) == (False, whole.run.tree)
    named = cluster("one").replace("metadata:\n", "metadata:\n  annotations: {gitsched.io/argocd-destination: x}\n")
    fleet.commit({"one.yaml": named}, hour=0.2)
    assert fleet.reconcile(0.2).plan.complete, "it may be the name of the cluster in what is built"
