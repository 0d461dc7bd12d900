"""`gitsched export` warns about objects of Flux and Argo CD that would delete what the output branch takes over."""

from __future__ import annotations

import pytest

from gitsched.git import Repository
from gitsched.reconcile.builds import armed_tools
from gitsched.reconcile.builds.armed_tools import list_armed_tools
from tests.scenarios.conftest import Fleet

KUSTOMIZATION = """\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps}
spec: {path: ./apps, SPEC}
"""
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: apps, META}
spec: {source: {path: apps}, SPEC}
"""
SET = """\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: apps}
spec: {template: {spec: {source: {path: apps}}}, SPEC}
"""
OBJECTS: dict[str, tuple[str, bool]] = {
    "a Kustomization that prunes": (KUSTOMIZATION.replace("SPEC", "prune: true"), True),
    "one that does not": (KUSTOMIZATION.replace("SPEC", "prune: false"), False),
    "one that is suspended": (KUSTOMIZATION.replace("SPEC", "prune: true, suspend: true"), False),
    "an Application that prunes": (
        APPLICATION.replace("META", "").replace("SPEC", "syncPolicy: {automated: {prune: true}}"),
        True,
    ),
    "one with the finalizer": (
        APPLICATION.replace("META", "finalizers: [resources-finalizer.argocd.argoproj.io]").replace(", SPEC", ""),
        True,
    ),
    "one that only syncs": (APPLICATION.replace("META", "").replace("SPEC", "syncPolicy: {automated: {}}"), False),
    "an ApplicationSet": (SET.replace(", SPEC", ""), True),
    "one that preserves": (SET.replace("SPEC", "syncPolicy: {preserveResourcesOnDeletion: true}"), False),
    "the delivery of the output branch": (
        KUSTOMIZATION.replace("SPEC", "prune: true").replace("name: apps", "name: placed"),
        False,
    ),
    "what delivers such objects": (KUSTOMIZATION.replace("SPEC", "prune: true").replace("./apps", "./tools"), False),
    "a Kustomization of another repository": (KUSTOMIZATION.replace("SPEC", "prune: true").replace("./apps", "./other"), False),
    "an artifact that is copied": (
        KUSTOMIZATION.replace("SPEC", "prune: true, sourceRef: {kind: ExternalArtifact}").replace("./apps", "./other"),
        True,
    ),
    "an Application of a chart of another server": (
        APPLICATION.replace("META", "").replace("{path: apps}, SPEC", "{chart: redis}, syncPolicy: {automated: {prune: true}}"),
        False,
    ),
    "one with values of the repository": (
        APPLICATION.replace("META", "").replace(
            "source: {path: apps}, SPEC", "sources: [{chart: a}, {ref: values}], syncPolicy: {automated: {prune: true}}"
        ),
        False,
    ),
    "one with objects of the repository": (
        APPLICATION.replace("META", "").replace(
            "source: {path: apps}, SPEC", "sources: [{chart: a}, {path: apps}], syncPolicy: {automated: {prune: true}}"
        ),
        True,
    ),
    "an ApplicationSet of charts": (SET.replace("{path: apps}", "{chart: '{{chart}}'}").replace(", SPEC", ""), False),
    "an ApplicationSet of directories": (SET.replace("path: apps", "path: '{{path}}'").replace(", SPEC", ""), True),
    "a file that cannot be read": ("kustomize.toolkit.fluxcd.io: [", False),
}


def find(fleet: Fleet, text: str) -> list[str]:
    commit = fleet.commit({"tools/apps.yaml": text, "deploy/apps/web.yaml": ""})
    tree = fleet.git("rev-parse", f"{commit}^{{tree}}")
    return [str(one) for one in list_armed_tools(Repository(fleet.path), tree, ("placed",))]


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_that_would_delete_are_found(name: str, fleet: Fleet) -> None:
    text, is_armed = OBJECTS[name]
    kind = text.partition("kind: ")[2].partition("\n")[0]
    assert find(fleet, text) == [f"{kind} apps (tools/apps.yaml)"] * is_armed


@pytest.mark.parametrize("limit", ["MAX_FILES", "_MAX_SIZE"])
def test_what_is_searched_is_limited(limit: str, fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(armed_tools, limit, 0)
    assert find(fleet, OBJECTS["an ApplicationSet"][0]) == []
