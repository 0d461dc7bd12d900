"""Objects that delivered manifests refer to: one finding for each that does not go to the same clusters."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitsched.decide.relations.located_findings import MAX_FINDINGS
from gitsched.model.finding import Finding, Location
from gitsched.reconcile import RunResult
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.report.explanation import write_explanation

from .conftest import Fleet, cluster

CASES = yaml.safe_load((Path(__file__).parent / "references.yaml").read_text())
CODES = {"reference-not-delivered", "reference-not-in-source"}
FLEET = {f"clusters/{name}.yaml": cluster(name) for name in ("ash", "oak")}


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path / "source", tmp_path / "cache")


def place(obj: dict[str, Any], clusters: list[str] | str, propagate: bool = False) -> str:
    """Return an object and its policy."""
    text = json.dumps(obj)
    if clusters == "none":
        return text
    metadata = obj["metadata"]
    selector = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], **metadata}
    for field in ("annotations", "labels"):
        selector.pop(field, None)
    spec = {"resourceSelectors": [selector], "placement": {"clusterAffinity": {"clusterNames": clusters}}}
    if propagate:
        spec["propagateDeps"] = True
    name = {"name": f"{obj['kind'].lower()}-{metadata['name'].replace(':', '-')}"}
    policy = {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy", "metadata": name, "spec": spec}
    return f"{text}\n---\n{json.dumps(policy)}"


def settings(assumed: list[dict[str, Any]]) -> str:
    config = {"apiVersion": "gitsched.io/v1alpha1", "kind": "Config", "metadata": {"name": "gitsched"}}
    return json.dumps({**config, "spec": {"assumed": assumed}})


def missing(run: RunResult) -> list[Finding]:
    return [finding for finding in run.plan.findings if finding.code in CODES]


def summarize(finding: Finding) -> str:
    """Return "SEVERITY OBJECT in CLUSTERS", or "SEVERITY COUNT KIND"."""
    if several := re.match(r"(\d+) objects of kind (\S+)", finding.message):
        return f"{finding.severity} {several[1]} {several[2]}"
    found = re.search(r"does not go to (.*?), where|refers? to it in (.*?); commit", finding.message)
    assert found is not None, finding.message
    made = re.search(r", which writes (\S+),", finding.message)
    name = made[1] if made else finding.message.split(" ")[0]
    return f"{finding.severity} {name} in {found[1] or found[2]}"


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_reference_that_is_missing_in_a_cluster_is_one_finding(fleet: Fleet, case: dict[str, Any]) -> None:
    objects = {f"apps/{number}.yaml": place(entry["object"], entry["to"]) for number, entry in enumerate(case["objects"])}
    fleet.commit({**FLEET, **objects, "gitsched.yaml": settings(case.get("assumed", []))})
    run = fleet.preview()
    assert sorted(map(summarize, missing(run))) == sorted(case["missing"])
    messages = "\n".join(finding.message for finding in missing(run))
    assert [part for part in case.get("says", ()) if part not in messages] == []
    assert all(finding.location is not None and finding.resource is not None for finding in missing(run))
    errors = {finding.code for finding in run.plan.findings if finding.severity == "error"}
    assert errors == set(case.get("errors", ()))


def pod(name: str, *config_maps: str, kind: str = "DaemonSet") -> dict[str, Any]:
    volumes = [{"name": one, "configMap": {"name": one}} for one in config_maps]
    spec = {"template": {"spec": {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": spec}


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}}


def find_column(text: str) -> int:
    """Return the column of the first reference to a ConfigMap."""
    return text.index('"conf"', text.index('"configMap"')) + 1


def test_many_workloads_with_the_same_missing_reference_are_one_finding(fleet: Fleet) -> None:
    fleet.commit({**FLEET, **{f"apps/{n}.yaml": place(pod(f"w{n:03}", "conf"), ["ash"]) for n in range(40)}})
    (finding,) = missing(fleet.preview())
    assert "DaemonSet.apps/shop/w000, DaemonSet.apps/shop/w001" in finding.message
    assert "and 35 more refer to it in ash" in finding.message
    assert str(finding.location) == f"apps/0.yaml:1:{find_column(place(pod('w000', 'conf'), ['ash']))}"


REFERRERS = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web-conf}}
spec:
  selector: {matchLabels: {app: web-conf}}
  template:
    metadata: {labels: {app: web-conf}}
    spec:
      serviceAccountName: web
      imagePullSecrets:
        - name: login
      containers:
        - name: web
          image: web:1
          envFrom:
            - configMapRef:
                name: web-conf
            - secretRef:
                name: web-conf
          env:
            - name: TOKEN
              valueFrom:
                secretKeyRef:
                  key: token
                  name: token
      volumes:
        - name: data
          persistentVolumeClaim: {claimName: data}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec:
  defaultBackend:
    service:
      name: web
      port: {number: 80}
---
apiVersion: tools.example.com/v1
kind: Job
metadata: {name: tool, namespace: shop}
spec:
  template:
    spec:
      containers:
        - name: tool
          envFrom: [{configMapRef: {name: tool}}]
---
"""
LINES = {
    "ServiceAccount/shop/web": 9,
    "Secret/shop/login": 11,
    "ConfigMap/shop/web-conf": 17,
    "Secret/shop/web-conf": 19,
    "Secret/shop/token": 25,
    "PersistentVolumeClaim/shop/data": 28,
    "Service/shop/web": 36,
    "ConfigMap/shop/tool": 47,
}
DECLARED = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec: {workloads: [{apiVersion: tools.example.com/v1, kind: Job, podTemplatePath: spec.template}]}
"""
SELECTED = [("apps/v1", "Deployment"), ("networking.k8s.io/v1", "Ingress"), ("tools.example.com/v1", "Job")]
SELECT = json.dumps(
    {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "ClusterPropagationPolicy",
        "metadata": {"name": "all"},
        "spec": {
            "resourceSelectors": [{"apiVersion": version, "kind": kind} for version, kind in SELECTED],
            "placement": {"clusterAffinity": {"clusterNames": ["ash"]}},
        },
    }
)


def test_a_finding_is_located_at_the_field_that_refers_to_the_missing_object(tmp_path: Path, fleet: Fleet) -> None:
    fleet.commit(
        {**FLEET, "gitsched.yaml": DECLARED, "policy.yaml": SELECT, "app.yaml": REFERRERS, "x.yaml": json.dumps(config_map("x"))}
    )

    def list_lines(run: RunResult) -> dict[str, int]:
        found = {}
        for finding in missing(run):
            name = next(one for one in finding.message.split() if "/shop/" in one)
            assert finding.location is not None
            found[name] = finding.location.line
        return found

    others = {"Secret/shop/token", "Secret/shop/web-conf"}  # the finding for all Secrets is located at the first
    assert list_lines(fleet.reconcile()) == {name: line for name, line in LINES.items() if name not in others}
    # Another object of the file is longer, so that the lines of the others move; they are not decided in another way.
    fleet.commit({"app.yaml": REFERRERS.replace("  defaultBackend:", "  # Port 80.\n  defaultBackend:")}, hour=1)
    complete, continued = fleet.preview(1, cache=tmp_path / "empty"), fleet.preview(1)
    assert list_lines(complete)["ConfigMap/shop/tool"] == LINES["ConfigMap/shop/tool"] + 1
    assert missing(continued) == missing(complete)
    assert not continued.plan.complete


def test_a_missing_object_with_the_name_of_many_fields_is_reported_at_the_document(fleet: Fleet) -> None:
    workload = pod("web", "conf")
    workload["metadata"]["labels"] = {f"label-{number}": "conf" for number in range(20)}
    fleet.commit({**FLEET, "app.yaml": place(workload, ["ash"])})
    (finding,) = missing(fleet.preview())
    assert str(finding.location) == "app.yaml:1:1"


def test_the_number_of_findings_is_limited(fleet: Fleet) -> None:
    fleet.commit({**FLEET, "app.yaml": place(pod("web", *(f"c{n}" for n in range(MAX_FINDINGS + 30))), ["ash"])})
    found = missing(fleet.preview())
    assert len(found) == MAX_FINDINGS + 1
    assert any(finding.message.startswith("30 more objects") for finding in found)


def test_dependencies_that_propagate_deps_delivers_are_not_missing(fleet: Fleet) -> None:
    fleet.commit(
        {**FLEET, "app.yaml": place(pod("web", "conf"), ["ash", "oak"], propagate=True), "c.yaml": json.dumps(config_map("conf"))}
    )
    assert missing(fleet.preview()) == []


WORK = """\
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata: {name: app, namespace: default}
spec:
  placementRefs: [{name: all}]
  manifestWorkTemplate: {workload: {manifests: [%s]}}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: all, namespace: default}
spec: {clusterSets: [global]}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: global}
spec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {}}}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: global, namespace: default}
spec: {clusterSet: global}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: ash}
spec: {hubAcceptsClient: true}
status: {conditions: [{type: ManagedClusterConditionAvailable, status: "True"}]}
"""


def test_it_holds_for_the_deliveries_of_other_apis(fleet: Fleet) -> None:
    fleet.commit({"work.yaml": WORK % json.dumps(pod("web", "conf"))})
    (finding,) = missing(fleet.preview())
    assert "ManifestWorkReplicaSet.work.open-cluster-management.io/default/app refers to it in ash" in finding.message
    fleet.commit({"work.yaml": WORK % ", ".join((json.dumps(pod("web", "conf")), json.dumps(config_map("conf"))))})
    assert missing(fleet.preview()) == []


def bundle_files(*, oak: str) -> dict[str, str]:
    """Return a Bundle with a variant for each cluster: both have a DaemonSet, that of ash also the ConfigMap."""
    spec = {"variants": [{"path": f"apps/{name}", "clusters": {"names": [name]}} for name in ("ash", "oak")]}
    bundle = {
        "apiVersion": "gitsched.io/v1alpha1",
        "kind": "Bundle",
        "metadata": {"name": "app", "namespace": "shop"},
        "spec": spec,
    }
    return {
        "bundle.yaml": place(bundle, ["ash", "oak"]),
        "apps/ash/kustomization.yaml": "resources: [web.yaml, conf.yaml]",
        "apps/ash/web.yaml": json.dumps(pod("web", "conf")),
        "apps/ash/conf.yaml": json.dumps(config_map("conf")),
        "apps/oak/kustomization.yaml": f"resources: [{oak}]",
        "apps/oak/web.yaml": json.dumps(pod("web", "conf")),
        "apps/oak/conf.yaml": json.dumps(config_map("conf")),
        "other.yaml": place(pod("other", "conf"), ["ash"]),
    }


def test_the_objects_of_a_bundle_are_delivered_where_their_variant_goes(fleet: Fleet) -> None:
    fleet.commit({**FLEET, **bundle_files(oak="web.yaml, conf.yaml")})
    assert missing(fleet.preview()) == []
    fleet.commit(bundle_files(oak="web.yaml"))
    (finding,) = missing(fleet.preview())
    assert finding.message.startswith(
        "ConfigMap/shop/conf does not go to oak, where DaemonSet.apps/shop/web of Bundle.gitsched.io/shop/app refers to it: it is part of "
        "Bundle.gitsched.io/shop/app, which goes to ash; "
    )
    assert str(finding.location) == "apps/oak/web.yaml:1:1"


def test_a_reference_of_a_built_object_is_located_in_the_base_with_the_patch(fleet: Fleet) -> None:
    files = bundle_files(oak="../base") | {
        "apps/oak/kustomization.yaml": "resources: [../base]\npatches: [{path: patch.yaml}]",
        "apps/base/kustomization.yaml": "resources: [web.yaml]",
        "apps/base/web.yaml": "# The web server.\n" + json.dumps(pod("web", "other")),
        "apps/oak/patch.yaml": json.dumps(pod("web", "conf")),
    }
    fleet.commit({**FLEET, **files})
    (finding,) = (finding for finding in missing(fleet.preview()) if "ConfigMap/shop/conf" in finding.message)
    assert finding.location == Location("apps/base/web.yaml", 2, 1, "apps/oak/patch.yaml:1")


ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "bots", "namespace": "shop"}}
ROLE |= {"roleRef": {"kind": "ClusterRole", "name": "view"}}
SUBJECT = {"kind": "ServiceAccount", "name": "bot"}
BOT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bot", "namespace": "shop"}}
EXTERNAL = {"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "metadata": {"name": "es", "namespace": "shop"}}
LOGIN = pod("login")
LOGIN["spec"]["template"]["spec"]["imagePullSecrets"] = [{"name": "login"}]
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "shop"}, "spec": {"ports": [{"port": 80}]}}
SERVING = {**SERVICE["metadata"], "annotations": {"service.beta.openshift.io/serving-cert-secret-name": "login"}}  # type: ignore[dict-item]
CONTROLLER = pod("controller")
CONTROLLER["spec"]["template"]["spec"]["containers"] = [{"name": "c", "args": ["--write=conf"]}]


def test_what_an_object_of_a_bundle_needs_is_reported_at_the_object(fleet: Fleet) -> None:
    binding = json.dumps({**ROLE, "subjects": [SUBJECT]})
    account = {"apps/oak/kustomization.yaml": "resources: [web.yaml, conf.yaml, bot.yaml]", "apps/oak/bot.yaml": json.dumps(BOT)}
    fleet.commit({**FLEET, **bundle_files(oak="web.yaml"), **account, "binding.yaml": binding})
    (finding,) = missing(fleet.preview())
    assert finding.message.startswith(
        "RoleBinding.rbac.authorization.k8s.io/shop/bots does not go to oak, where ServiceAccount/shop/bot needs it"
    )
    assert str(finding.location) == "apps/oak/bot.yaml:1:1"


def test_a_binding_without_a_namespace_that_no_policy_selects_may_be_a_base(fleet: Fleet) -> None:
    account = {"apps/oak/kustomization.yaml": "resources: [web.yaml, conf.yaml, bot.yaml]", "apps/oak/bot.yaml": json.dumps(BOT)}
    unnamed = {**ROLE, "metadata": {"name": "bots"}, "subjects": [{**SUBJECT, "namespace": "shop"}]}
    fleet.commit({**FLEET, **bundle_files(oak="web.yaml"), **account, "base/binding.yaml": json.dumps(unnamed)})
    assert missing(fleet.preview()) == []


CHANGES = {
    "a Service for which OpenShift writes the Secret": (
        {"a": (LOGIN, ["ash"]), "b": (SERVICE, ["ash"])},
        {"b": ({**SERVICE, "metadata": SERVING}, ["ash"])},
        0,
    ),
    "a controller that may create the object": (
        {"a": (pod("a", "conf"), ["ash"]), "b": (pod("controller"), ["ash"])},
        {"b": (CONTROLLER, ["ash"])},
        0,
    ),
    "a controller that no longer creates the object": (
        {"a": (pod("a", "conf"), ["ash"]), "b": (CONTROLLER, ["ash"])},
        {"b": (pod("controller"), ["ash"])},
        1,
    ),
    "a new reference that is missing": ({"a": (pod("a", "conf"), ["ash"])}, {"a": (pod("a", "conf", "new"), ["ash"])}, 2),
    "a new reference that is there": (
        {"a": (pod("a", "c"), ["ash"]), "c": (config_map("c"), ["ash"])},
        {"a": (pod("a"), ["ash"])},
        0,
    ),
    "a reference that is gone": (
        {"a": (pod("a", "conf"), ["ash"]), "b": (pod("b", "conf"), ["ash"])},
        {"b": (pod("b"), ["ash"])},
        1,
    ),
    "a binding that names another account": (
        {"a": (BOT, ["ash"]), "b": (ROLE, "none")},
        {"b": ({**ROLE, "subjects": [SUBJECT]}, "none")},
        1,
    ),
    "an ExternalSecret that writes another Secret": (
        {"a": (LOGIN, ["ash"]), "b": ({**EXTERNAL, "spec": {"target": {"name": "login"}}}, ["ash"])},
        {"b": ({**EXTERNAL, "spec": {"target": {"name": "other"}}}, ["ash"])},
        1,
    ),
}


def split(objects: dict[str, Any]) -> dict[str, str]:
    """Return a file for each object and one for its policy: a change of the object alone allows an incremental plan."""
    texts = {name: place(*entry).partition("\n---\n") for name, entry in objects.items()}
    return {
        f"{name}{suffix}.yaml": text
        for name, (one, _, two) in texts.items()
        for suffix, text in (("", one), ("-policy", two))
        if text
    }


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_an_incremental_plan_has_the_findings_of_a_complete_one(
    tmp_path: Path, fleet: Fleet, change: tuple[dict[str, Any], dict[str, Any], int]
) -> None:
    before, after, count = change
    fleet.commit({**FLEET, **split(before)})
    fleet.reconcile()
    fleet.commit(split(after), hour=1)
    complete = missing(fleet.preview(1, cache=tmp_path / "empty"))
    assert len(complete) == count
    assert missing(fleet.preview(1)) == complete
    assert missing(fleet.reconcile(1)) == complete


def test_changed_references_to_an_object_that_is_not_in_the_source_need_no_complete_plan(fleet: Fleet) -> None:
    apps = {f"w{n}": (pod(f"w{n}", "conf", "there"), ["ash"]) for n in range(9)}
    fleet.commit(
        {
            **FLEET,
            **split(
                {
                    **apps,
                    "there": (config_map("there"), ["ash"]),
                    "free": (config_map("free"), ["ash"]),
                    "z": (pod("z", "there"), ["ash"]),
                }
            ),
        }
    )
    fleet.reconcile()
    edited = pod("w0", "conf", "there")
    edited["spec"]["minReadySeconds"] = 7
    # The finding is located at w0. The second change refers to an object that nothing referred to before.
    changes = (
        {"w0": edited, "z": pod("z")},
        {"z": pod("z", "there", "free")},
        {"w5": pod("w5", "there")},
        {"w6": pod("w6", "there")},
    )
    kinds = []
    for hour, change in enumerate(changes, 1):
        fleet.commit({f"{name}.yaml": f"# Edited\n{json.dumps(one)}" for name, one in change.items()}, hour=hour)
        run = fleet.reconcile(hour)
        kinds.append(run.plan.complete)
        (finding,) = missing(run)
        assert f"and {(4, 4, 3, 2)[hour - 1]} more" in finding.message
        assert str(finding.location) == f"w0.yaml:2:{find_column(json.dumps(edited))}"
    assert kinds == [False, False, False, False]


def test_explain_lists_what_goes_along_and_what_is_missing(fleet: Fleet) -> None:
    web = pod("web", "conf", "there", "gone")
    files = {"app.yaml": place(web, ["ash", "oak"]), "c.yaml": place(config_map("conf"), ["ash"])}
    fleet.commit({**FLEET, **files, "d.yaml": place(config_map("there"), ["ash", "oak"])})
    text = write_explanation(explain_resource(fleet.settings(), "DaemonSet", "shop", "web"), 200)  # type: ignore[arg-type]
    assert "Refers to\n" in text
    assert "  ConfigMap/shop/conf: goes along to ash; missing in oak (ClusterPropagationPolicy/configmap-conf)\n" in text
    assert "  ConfigMap/shop/there: goes along to ash, oak (ClusterPropagationPolicy/configmap-there)\n" in text
    assert "  ConfigMap/shop/gone: missing in ash, oak (not in the source)\n" in text


def test_the_cure_for_one_object_that_clusters_often_have(fleet: Fleet) -> None:
    workload = pod("web")
    workload["spec"]["template"]["spec"]["priorityClassName"] = "gold"
    fleet.commit({**FLEET, "web.yaml": place(workload, ["ash"])})
    (finding,) = missing(fleet.preview())
    assert finding.message.endswith(
        "commit what creates it, or list it under `spec.assumed` in gitsched.yaml if these clusters have it by themselves"
    )
