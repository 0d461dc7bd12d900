"""Objects that policies placed by themselves become parts of a Bundle or of a kustomization: what a plan says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gitsched.model.explanation import Explanation
from gitsched.reconcile import RunResult, preview
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.report.blocks import blocks_to_markdown
from gitsched.report.explanation import list_explanation_blocks, write_explanation
from gitsched.report.summary import count_moves

from .conftest import Fleet

LAYOUT = {
    "app/kustomization.yaml": "resources: [web.yaml, settings.yaml]\n",
    "app/web.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web:1}]}
""",
    "app/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\ndata: {a: b}\n",
    "clusters.yaml": """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: dub, labels: {env: production}}
spec: {syncMode: Push}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: ham, labels: {env: staging}}
spec: {syncMode: Push}
""",
    "policy.yaml": """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: shop}
spec:
  resourceSelectors:
    - {apiVersion: gitsched.io/v1alpha1, kind: Bundle}
    - {apiVersion: apps/v1, kind: Deployment}
    - {apiVersion: v1, kind: ConfigMap}
  placement: {}
""",
}
HEADS: dict[str, dict[str, Any]] = {
    "bundle.yaml": {"apiVersion": "gitsched.io/v1alpha1", "kind": "Bundle", "metadata": {"name": "shop", "namespace": "shop"}},
    "gitsched.yaml": {"apiVersion": "gitsched.io/v1alpha1", "kind": "Config", "metadata": {"name": "gitsched"}},
    "policy.yaml": yaml.safe_load(LAYOUT["policy.yaml"]),
}
STORIES = yaml.safe_load(
    """
- name: a Bundle that goes to all clusters takes nothing away
  commit: {bundle.yaml: {path: app}}
  moves: ["Bundle shop/shop: nowhere -> dub 4, ham 4: PropagationPolicy/shop/all"]
  findings: []
  lost: 0
  added: 0
- name: a Bundle with a variant for one cluster only
  commit: {bundle.yaml: {variants: [{path: app, clusters: {names: [dub]}}]}}
  moves:
    - "Bundle shop/shop: nowhere -> dub 4: PropagationPolicy/shop/all"
    - "ConfigMap shop/settings: dub None, ham None -> dub None: now part of Bundle shop/shop (bundle.yaml:1)"
    - "Deployment shop/web: dub 4, ham 4 -> dub 4: now part of Bundle shop/shop (bundle.yaml:1)"
  findings:
    - "became-part bundle.yaml:1:1: ConfigMap shop/settings, Deployment shop/web leave ham: they are now part of Bundle shop/shop, which
       does not bring it there."
  lost: 4
  added: 0
  explained: "it is part of Bundle shop/shop, which brings it to dub: see gitsched explain bundle/shop/shop"
- name: a Bundle that no policy selects
  commit:
    bundle.yaml: {path: app}
    policy.yaml: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {}}
  moves:
    - "ConfigMap shop/settings: dub None, ham None -> nowhere: now part of Bundle shop/shop (bundle.yaml:1)"
    - "Deployment shop/web: dub 4, ham 4 -> nowhere: now part of Bundle shop/shop (bundle.yaml:1)"
  findings:
    - "became-part bundle.yaml:1:1: ConfigMap shop/settings, Deployment shop/web leave dub, ham: they are now part of Bundle
       shop/shop, which no cluster gets. To keep it, place the Bundle"
  lost: 8
  added: 0
  explained: "it is part of Bundle shop/shop, which no cluster gets: see gitsched explain bundle/shop/shop"
- name: a Bundle that Flux builds
  commit:
    bundle.yaml: {path: app, delivery: flux}
    gitsched.yaml: {delivery: {source: {url: "https://git.example.com/fleet.git"}}}
  moves:
    - "Bundle shop/shop: nowhere -> dub ?, ham ?: PropagationPolicy/shop/all"
    - "ConfigMap shop/settings: dub None, ham None -> nowhere: now part of Bundle shop/shop (bundle.yaml:1)"
    - "Deployment shop/web: dub 4, ham 4 -> nowhere: now part of Bundle shop/shop (bundle.yaml:1)"
  findings:
    - "became-part bundle.yaml:1:1: ConfigMap shop/settings, Deployment shop/web leave dub, ham: they are now part of Bundle shop/shop,
       which flux builds: what delivered the object before deletes it, and flux creates it again"
  lost: 8
  added: 0  # what Flux builds is not known here
- name: an overlay that settings build in another namespace, where no policy is
  commit:
    gitsched.yaml: {source: {kustomize: {build: [overlay]}}}
    overlay/kustomization.yaml: "{resources: [../app], namespace: store}"
  moves:
    - "ConfigMap shop/settings: dub None, ham None -> nowhere: now built by kustomization overlay (app/settings.yaml:1)"
    - "Deployment shop/web: dub 4, ham 4 -> nowhere: now built by kustomization overlay (app/web.yaml:1)"
  findings:
    - "became-part app/settings.yaml:1:1: ConfigMap shop/settings leaves dub, ham: it is now built by kustomization overlay, as ConfigMap
       store/settings, which no policy places."
    - "became-part app/web.yaml:1:1: Deployment shop/web leaves dub, ham: it is now built by kustomization overlay, as Deployment
       store/web, which no policy places."
  lost: 8
  added: 0
- name: a Flux Kustomization with another target namespace
  commit:
    flux.yaml: |
      {apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: apps, namespace: flux-system},
       spec: {path: ./app, targetNamespace: store, interval: 1h, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}}
  moves:
    - "ConfigMap shop/settings: dub None, ham None -> nowhere: now built by kustomization app as flux.yaml says (app/settings.yaml:1)"
    - "Deployment shop/web: dub 4, ham 4 -> nowhere: now built by kustomization app as flux.yaml says (app/web.yaml:1)"
  findings:
    - "became-part app/settings.yaml:1:1: ConfigMap shop/settings leaves dub, ham: it is now built by kustomization app as flux.yaml says"
    - "became-part app/web.yaml:1:1: Deployment shop/web leaves dub, ham: it is now built by kustomization app as flux.yaml says"
  lost: 8
  added: 0
- name: a file becomes a patch of another directory
  commit:
    overlay/kustomization.yaml: "{resources: [../other], patches: [{path: ../app/web.yaml}]}"
    other/kustomization.yaml: "resources: []"
    app/kustomization.yaml: "resources: [settings.yaml]"
  moves:
    - "Deployment shop/web: dub 4, ham 4 -> nowhere: now read by overlay/kustomization.yaml as an entry of patches (app/web.yaml:1)"
  findings:
    - "became-part app/web.yaml:1:1: Deployment shop/web leaves dub, ham: it is now read by overlay/kustomization.yaml as an entry of
       patches, so it is no object of its own. To keep it"
  lost: 8
  added: 0
- name: a removed file is removed
  commit: {app/settings.yaml: null, app/kustomization.yaml: "resources: [web.yaml]"}
  moves: ["ConfigMap shop/settings: dub None, ham None -> nowhere: removed from the source"]
  findings: []
  lost: 0
  added: 0
"""
)
FLUX = """\
{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: NAME, namespace: flux-system},
 spec: {path: PATH, TARGETinterval: 1h, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}}
"""
ARGO_CD = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: shop, namespace: argocd}
spec:
  project: default
  source: {repoURL: "https://git.example.com/fleet.git", path: app, targetRevision: HEAD}
  destination: {server: https://kubernetes.default.svc, namespace: shop}
"""
SUBSTITUTED = LAYOUT["app/settings.yaml"].replace("{a: b}", '{a: "${HOST}"}')
BROKEN = "resources: [web.yaml, settings.yaml, ../missing]"
PARTS = ("settings", "web")
UNBUILT = yaml.safe_load(
    """
- name: a Bundle whose kustomization names a missing file
  commit: {bundle.yaml: {path: app}, app/kustomization.yaml: BROKEN}
  error: kustomize-missing
  kept: it is part of Bundle shop/shop, which cannot be built
- name: a Bundle of an overlay that renames
  commit: {bundle.yaml: {path: over}, over/kustomization.yaml: "{resources: [../app, ../missing], nameSuffix: -v2}"}
  error: kustomize-missing
  kept: it is part of Bundle shop/shop, which cannot be built
- name: a Bundle with an invalid object
  commit: {bundle.yaml: {path: app}, app/kustomization.yaml: null, app/other.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: 1}}"}
  error: invalid-name
  kept: it is part of Bundle shop/shop, which cannot be built
- name: a Bundle with a variable without a value
  commit: {bundle.yaml: {path: app, values: {A: b}}, app/settings.yaml: SUBSTITUTED}
  error: bundle-value
  kept: it is part of Bundle shop/shop, which cannot be built
- name: a Bundle with a value that clusters lack
  commit: {bundle.yaml: {path: app, values: {A: cluster.labels.none}}}
  error: null
  kept: it is part of Bundle shop/shop, which cannot be built
- name: a Bundle that Flux cannot fetch
  commit: {bundle.yaml: {path: app, delivery: flux}}
  error: bundle-delivery
  kept: it is part of Bundle shop/shop, which cannot be built
- name: a Bundle that was built before, with another part
  before: {bundle.yaml: {path: app}, app/kustomization.yaml: "resources: [web.yaml]"}
  commit: {app/kustomization.yaml: BROKEN}
  error: kustomize-missing
  kept: it is part of Bundle shop/shop, which cannot be built
  of: [settings]
- name: a Bundle of which one variant cannot be built
  commit:
    bundle.yaml: {variants: [{path: app, clusters: {names: [dub]}}, {path: ok, clusters: {names: [ham]}}]}
    app/kustomization.yaml: BROKEN
    ok/kustomization.yaml: "resources: [../app/web.yaml]"
  moves: ["Bundle shop/shop: nowhere -> ham 4: PropagationPolicy/shop/all"]
  error: kustomize-missing
  kept: it is part of Bundle shop/shop, which cannot be built
- name: an overlay that settings build in another namespace
  commit:
    gitsched.yaml: {source: {kustomize: {build: [over]}}}
    over/kustomization.yaml: "{resources: [../app, ../missing], namespace: store}"
  error: kustomize-missing
  kept: it is part of kustomization over, which cannot be built
- name: an overlay that settings build, with another part than before
  before:
    gitsched.yaml: {source: {kustomize: {build: [over]}}}
    over/kustomization.yaml: "{resources: [../app/web.yaml]}"
    app/kustomization.yaml: "resources: []"
  commit: {over/kustomization.yaml: "{resources: [../app/web.yaml, ../app/settings.yaml, ../missing]}"}
  error: kustomize-missing
  kept: it is part of kustomization over, which cannot be built
  of: [settings]
- name: a Flux Kustomization
  commit: {flux.yaml: FLUX app, app/kustomization.yaml: BROKEN}
  error: kustomize-missing reconciled-path
  kept: it cannot be built as its delivery tool does it
- name: a Flux Kustomization with another target namespace
  commit: {flux.yaml: FLUX app store, app/kustomization.yaml: BROKEN}
  error: kustomize-missing
  kept: it cannot be built as its delivery tool does it
- name: a Flux Kustomization with a variable without a value, and with another target namespace
  commit: {flux.yaml: FLUX app store substituted, app/settings.yaml: SUBSTITUTED}
  moves: ["Deployment shop/web: dub 4, ham 4 -> nowhere: now built by kustomization app as flux.yaml says (app/web.yaml:1)"]
  error: null
  kept: it cannot be built as its delivery tool does it
  of: [settings]
- name: an Argo CD Application
  commit:
    argo.yaml: ARGO_CD
    app/kustomization.yaml: BROKEN
    gitsched.yaml: {source: {deliveryTools: {repositories: ["https://git.example.com/fleet"]}}}
  error: kustomize-missing reconciled-path
  kept: it cannot be built as its delivery tool does it
- name: overlays of clusters, of which one cannot be built
  commit:
    app/kustomization.yaml: "resources: []"
    over/kustomization.yaml: "{resources: [../app/web.yaml, ../app/settings.yaml, ../missing]}"
    ok/kustomization.yaml: "resources: [../app/web.yaml, ../app/settings.yaml]"
    gitsched.yaml: {source: {variants: [{path: over, clusters: {names: [dub]}}, {path: ok, clusters: {}}]}}
  error: kustomize-missing
  kept: "over cannot be built: dub keeps what it has"
- name: Flux Kustomizations of clusters, of which one cannot be built
  commit:
    app/kustomization.yaml: "resources: []"
    over/kustomization.yaml: "{resources: [../app/web.yaml, ../app/settings.yaml, ../missing], namePrefix: ''}"
    ok/kustomization.yaml: "{resources: [../app/web.yaml, ../app/settings.yaml], commonAnnotations: {a: b}}"
    fleet/dub/flux.yaml: FLUX over
    fleet/ham/flux.yaml: FLUX ok
    gitsched.yaml: {source: {variants: [{path: fleet/dub, clusters: {names: [dub]}}, {path: fleet/ham, clusters: {}}]}}
  error: kustomize-missing
  kept: "fleet/dub cannot be built: dub keeps what it has"
"""
)


def write_files(files: dict[str, Any]) -> dict[str, str | bytes | None]:
    """Return the text of files; a mapping is the spec of a document of gitsched."""
    return {
        name: yaml.safe_dump({**HEADS[name], "spec": content}, sort_keys=False)
        if isinstance(content, dict)
        else write_text(content)
        for name, content in files.items()
    }


def write_text(content: str | None) -> str | None:
    """Return the text of a file; FLUX is followed by the directory, the target namespace and whether variables are substituted."""
    if content is None or not content.startswith("FLUX "):
        return {"BROKEN": BROKEN, "ARGO_CD": ARGO_CD, "SUBSTITUTED": SUBSTITUTED}.get(content or "", content)
    directory, namespace, *substituted = [*content.split()[1:], ""]
    target = f"targetNamespace: {namespace}, " if namespace else ""
    target += "postBuild: {substitute: {A: b}}, " if any(substituted) else ""
    return FLUX.replace("NAME", directory).replace("PATH", directory).replace("TARGET", target)


def describe_moves(run: RunResult) -> list[str]:
    def show(clusters: Any) -> str:
        return ", ".join(f"{name} {count}" for name, count in sorted(clusters.items())) or "nowhere"

    moves = [
        f"{move.key.kind} {move.key.namespace}/{move.key.name}: {show(move.before)} -> {show(move.after)}: {move.main_reason}"
        for move in run.plan.moves
    ]
    return sorted(moves)


@pytest.mark.parametrize("story", [pytest.param(story, id=story["name"]) for story in STORIES])
def test_a_plan_says_why_an_object_is_no_longer_placed_by_itself(tmp_path: Path, story: dict[str, Any]) -> None:
    fleet = Fleet(tmp_path / "source", tmp_path / "cache")
    fleet.commit({**LAYOUT, **write_files({"gitsched.yaml": {}})})
    fleet.reconcile()
    fleet.commit(write_files(story["commit"]), hour=1)
    run = fleet.preview(1)
    assert describe_moves(run) == story["moves"]
    changes = [finding for finding in run.plan.findings if finding.is_change and finding.code != "sensitive-setting"]
    found = sorted(f"{finding.code} {finding.location}: {finding.message}" for finding in changes)
    assert len(found) == len(story["findings"]), found
    for text, start in zip(found, story["findings"], strict=True):
        assert text.startswith(start)
    counts = count_moves(run.plan.moves)
    assert (counts.replicas_removed, counts.replicas_added) == (story["lost"], story["added"])
    assert sum(delta.replicas_lost for delta in counts.clusters.values()) == story["lost"]
    between = compare_plans(fleet.settings(1), "HEAD~1").review
    assert {move.key for move in between.moves} == {move.key for move in run.plan.moves}
    assert not any("removed from the source" in move.main_reason for move in between.moves if "remove" not in story["name"])
    if "explained" in story:
        explanation = explain_resource(fleet.settings(1), "deployment", "shop", "web")
        assert isinstance(explanation, Explanation)
        assert explanation.policy_reason == story["explained"]
    fleet.reconcile(1)
    assert [finding for finding in fleet.preview(1).plan.findings if finding.is_change] == [], "the next run has nothing to say"


@pytest.mark.parametrize("story", [pytest.param(story, id=story["name"]) for story in UNBUILT])
def test_what_was_placed_stays_while_what_it_is_a_part_of_cannot_be_built(tmp_path: Path, story: dict[str, Any]) -> None:
    fleet = Fleet(tmp_path / "source", tmp_path / "cache")
    fleet.commit({**LAYOUT, **write_files({"gitsched.yaml": {}, **story.get("before", {})})})
    fleet.reconcile()
    fleet.commit(write_files(story["commit"]), hour=1)
    run = fleet.preview(1)
    kept = [f"ConfigMap/shop/{name}" if name == "settings" else f"Deployment.apps/shop/{name}" for name in story.get("of", PARTS)]
    assert describe_moves(run) == story.get("moves", [])
    errors = {finding.code for finding in run.plan.findings if finding.severity == "error"}
    assert errors == set((story["error"] or "").split())
    warnings = [finding.message for finding in run.plan.findings if finding.code in ("stale-decision", "bundle-no-variant")]
    for key in kept:
        assert [text for text in warnings if text.startswith(key) and text.endswith(story["kept"])], warnings
    assert [move.key for move in compare_plans(fleet.settings(1), "HEAD~1").review.moves] == [move.key for move in run.plan.moves]
    fleet.reconcile(1)
    fleet.commit({"other.yaml": LAYOUT["app/settings.yaml"].replace("settings", "other")}, hour=2)
    complete = preview(fleet.settings(2)._replace(cache=tmp_path / "empty"))
    assert fleet.preview(2).plan.findings == complete.plan.findings, "a run with the state of the last one"
    fleet.reconcile(2)
    for name in kept:
        path = f"shop/{'configmap' if name.startswith('C') else 'deployment'}-{name.rpartition('/')[2]}"
        assert fleet.delivered(path) == ["dub", "ham"]


def test_explain_says_why_an_object_stays(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "source", tmp_path / "cache")
    fleet.commit({**LAYOUT, **write_files({"gitsched.yaml": {}})})
    fleet.reconcile()
    fleet.commit(write_files({"bundle.yaml": {"path": "app"}, "app/kustomization.yaml": "BROKEN"}), hour=1)
    fleet.reconcile(1)
    explanation = explain_resource(fleet.settings(1), "deployment", "shop", "web")
    assert isinstance(explanation, Explanation)
    text = write_explanation(explanation, 200)
    assert "Not scheduled: the previous placement is kept, because it is part of Bundle shop/shop, which cannot be built." in text
    assert "[stale-decision]" in text
    assert "Result\n  dub: 4\n  ham: 4" in text
    fleet.commit({"app/kustomization.yaml": LAYOUT["app/kustomization.yaml"]}, hour=2)
    fleet.reconcile(2)
    assert fleet.delivered("shop/deployment-web") == ["dub", "ham"], "the Bundle brings it"
    assert "status/work.karmada.io/resourcebinding/shop/web-deployment.yaml" not in fleet.files()


def test_explain_of_an_object_that_an_overlay_renames_names_the_bundle_of_the_overlay(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "source", tmp_path / "cache")
    overlay = {"overlay/kustomization.yaml": "{resources: [../app], nameSuffix: -v2}"}
    fleet.commit({**LAYOUT, **overlay, **write_files({"bundle.yaml": {"path": "overlay"}})})
    reason = "it is part of Bundle shop/shop, which %s dub, ham: see gitsched explain bundle/shop/shop"
    for name, verb in (("web", "goes to"), ("web-v2", "brings it to")):
        explanation = explain_resource(fleet.settings(), "deployment", "shop", name)
        assert isinstance(explanation, Explanation)
        texts = write_explanation(explanation, 200), blocks_to_markdown(list_explanation_blocks(explanation))
        for text in texts:
            assert reason % verb in text
            assert "no policy selects it" not in text
            assert "nowhere" not in text


def test_objects_that_a_bundle_keeps_are_no_removals_for_the_guard(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "source", tmp_path / "cache")
    maps = {
        f"app/{n}.yaml": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{n}, namespace: shop}}\ndata: {{a: b}}\n"
        for n in range(20)
    }
    names = ", ".join(name.removeprefix("app/") for name in maps)
    fleet.commit({**LAYOUT, **maps, "app/kustomization.yaml": f"resources: [web.yaml, settings.yaml, {names}]\n"})
    fleet.reconcile()
    fleet.commit(write_files({"bundle.yaml": {"path": "app"}}), hour=1)
    run = fleet.reconcile(1)
    assert not run.plan.withheld.moves
    assert fleet.where("shop/configmap-c7") == ["dub", "ham"]
    fleet.commit(write_files({"bundle.yaml": {"variants": [{"path": "app", "clusters": {"names": ["dub"]}}]}}), hour=2)
    assert fleet.reconcile(2).plan.moves
