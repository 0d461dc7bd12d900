"""`gitsched export ocm`: objects for a hub and for Argo CD, applied with kubectl to an API server."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.builders.ocm import PLACEMENT_ANNOTATION, bound_global_set, managed_cluster, placement, to_yaml
from tests.cli.api_server import ApiServer
from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]
DISABLED = "cluster.open-cluster-management.io/experimental-scheduling-disable"
PLACEMENT_LABEL = "cluster.open-cluster-management.io/placement"
TEXT, NUMBER, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
TEXTS = {"type": "object", "additionalProperties": TEXT}


def strict(*required: str, **members: Any) -> dict[str, Any]:
    """Return the schema of an object with these members only: kubectl refuses unknown ones."""
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": members}


def items(schema: dict[str, Any], **limits: int) -> dict[str, Any]:
    return {"type": "array", "items": schema, **limits}


def kind(version: str, **parts: Any) -> dict[str, Any]:
    metadata = strict("name", "namespace", name=TEXT, namespace=TEXT, labels=TEXTS, annotations=TEXTS)
    return strict("apiVersion", "kind", "metadata", apiVersion={"const": version}, kind=TEXT, metadata=metadata, **parts)


CONDITION = strict(
    "type",
    "status",
    "reason",
    "message",
    "lastTransitionTime",
    type=TEXT,
    status=TEXT,
    reason=TEXT,
    message=TEXT,
    lastTransitionTime=TEXT,
)
WORK = strict(
    "workload", deleteOption={"type": "object"}, workload=strict("manifests", manifests=items({"type": "object"}, minItems=1))
)
# The schemas of the used fields in the CRDs of Open Cluster Management and Argo CD.
SCHEMAS = {
    "Placement": kind(
        "cluster.open-cluster-management.io/v1beta1",
        spec=strict(numberOfClusters=NUMBER, clusterSets=items(TEXT), predicates=items({"type": "object"}), decisionStrategy={}),
        status=strict(
            numberOfSelectedClusters=NUMBER,
            conditions=items(CONDITION),
            decisionGroups=items(
                strict(
                    "decisionGroupIndex",
                    "decisions",
                    "clusterCount",
                    decisionGroupIndex=NUMBER,
                    decisionGroupName=TEXT,
                    decisions=items(TEXT),
                    clusterCount=NUMBER,
                )
            ),
        ),
    ),
    "PlacementDecision": kind(
        "cluster.open-cluster-management.io/v1beta1",
        status=strict("decisions", decisions=items(strict("clusterName", "reason", clusterName=TEXT, reason=TEXT), maxItems=100)),
    ),
    "ManifestWorkReplicaSet": kind(
        "work.open-cluster-management.io/v1alpha1",
        spec=strict(
            "manifestWorkTemplate",
            "placementRefs",
            manifestWorkTemplate=WORK,
            placementRefs=items(strict("name", name=TEXT, rolloutStrategy={"type": "object"}), minItems=1),
        ),
    ),
    "ManifestWork": kind("work.open-cluster-management.io/v1", spec=WORK),
    "ConfigMap": kind(
        "v1", data=strict("apiVersion", "kind", "matchKey", apiVersion=TEXT, kind=TEXT, statusListKey=TEXT, matchKey=TEXT)
    ),
    "Role": kind("rbac.authorization.k8s.io/v1", rules={}),
    "RoleBinding": kind("rbac.authorization.k8s.io/v1", roleRef={}, subjects={}),
    "ApplicationSet": kind(
        "argoproj.io/v1alpha1",
        spec=strict(
            "generators",
            "template",
            goTemplate=FLAG,
            goTemplateOptions=items(TEXT),
            generators=items(
                strict(
                    "clusterDecisionResource",
                    clusterDecisionResource=strict(
                        "configMapRef",
                        configMapRef=TEXT,
                        labelSelector=strict("matchLabels", matchLabels=TEXTS),
                        requeueAfterSeconds=NUMBER,
                    ),
                )
            ),
            template={"type": "object"},
        ),
    ),
}


def annotated(body: dict[str, Any], placement_name: str = "front") -> dict[str, Any]:
    return {**body, "metadata": {**body["metadata"], "annotations": {PLACEMENT_ANNOTATION: placement_name}}}


def replica_set(name: str = "job", **work: Any) -> dict[str, Any]:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}}
    spec = {"placementRefs": [{"name": "front"}], "manifestWorkTemplate": {"workload": {"manifests": [manifest]}, **work}}
    metadata = {"name": name, "namespace": "shop"}
    return {
        "apiVersion": "work.open-cluster-management.io/v1alpha1",
        "kind": "ManifestWorkReplicaSet",
        "metadata": metadata,
        "spec": spec,
    }


SETTINGS = annotated(
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"}, "data": {"a": "b"}}
)
SECRET = annotated(
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "shop"}, "data": {"k": "c2VjcmV0"}}
)


@pytest.fixture
def hub_fleet(fleet: Path, commit: Callable[..., None]) -> Path:
    """Two clusters, a Placement that selects `dub`, and one without workloads that selects both."""
    front = placement("front", "shop", numberOfClusters=1)
    front["metadata"] |= {"uid": "2f0c", "resourceVersion": "9", "creationTimestamp": "2026-01-01T00:00:00Z"}
    commit(
        fleet,
        web=None,
        policy=None,
        clusters=to_yaml(managed_cluster("dub"), managed_cluster("par"), *bound_global_set("shop")),
        front=to_yaml(front | {"status": {"numberOfSelectedClusters": 7}}),
        bare=to_yaml(placement("bare", "shop")),
        apps=to_yaml(SETTINGS, SECRET, replica_set(deleteOption={"propagationPolicy": "Orphan"})),
    )
    return fleet


def check(text: str) -> list[dict[str, Any]]:
    """Parse a stream and validate its objects with the schemas of their CRDs."""
    documents = list(yaml.safe_load_all(text))
    for document in documents:
        jsonschema.validate(document, SCHEMAS[document["kind"]])
    return documents


def names(documents: list[dict[str, Any]], kind: str) -> list[str]:
    return [f"{body['metadata']['namespace']}/{body['metadata']['name']}" for body in documents if body["kind"] == kind]


@pytest.fixture
def export(gitsched: Run, hub_fleet: Path) -> Callable[..., list[dict[str, Any]]]:
    def run(*words: str) -> list[dict[str, Any]]:
        done = gitsched("export", "ocm", *words)
        assert done.returncode == 0, done.stderr
        return check(done.stdout)

    return run


def test_a_hub_gets_placements_decisions_and_replica_sets(export: Callable[..., list[dict[str, Any]]]) -> None:
    documents = export()
    assert names(documents, "Placement") == ["shop/bare", "shop/front"]
    assert names(documents, "PlacementDecision") == ["shop/bare-decision-1", "shop/front-decision-1"]
    assert names(documents, "ManifestWorkReplicaSet") == ["shop/job", "shop/settings.configmap"]
    job, settings = (body["spec"]["manifestWorkTemplate"] for body in documents if body["kind"] == "ManifestWorkReplicaSet")
    assert job["deleteOption"] == {"propagationPolicy": "Orphan"}
    assert settings["workload"]["manifests"] == [SETTINGS]


def test_the_scheduler_of_the_hub_is_off_and_no_object_has_an_owner(export: Callable[..., list[dict[str, Any]]]) -> None:
    for body in export():
        assert "status" not in body
        assert not {"ownerReferences", "uid", "resourceVersion"} & body["metadata"].keys()
        if body["kind"] == "Placement":
            assert body["metadata"]["annotations"] == {DISABLED: "true"}
        if body["kind"] == "PlacementDecision":
            name = body["metadata"]["name"].partition("-decision")[0]
            assert (
                body["metadata"]["labels"].items()
                >= {PLACEMENT_LABEL: name, f"{DISABLED.partition('/')[0]}/decision-group-index": "0"}.items()
            )


def test_more_than_a_hundred_clusters_are_several_decisions(gitsched: Run, hub_fleet: Path, commit: Callable[..., None]) -> None:
    commit(hub_fleet, more=to_yaml(*(managed_cluster(f"c{number:03}") for number in range(110))))
    documents = check(gitsched("export", "ocm", "--status", "--placement", "shop/bare").stdout)
    decisions = [body for body in documents if body["kind"] == "PlacementDecision"]
    assert [len(body["status"]["decisions"]) for body in decisions] == [100, 12]


def test_secrets_are_printed_only_on_request(gitsched: Run, hub_fleet: Path) -> None:
    done = gitsched("export", "ocm")
    assert "c2VjcmV0" not in done.stdout
    assert "Secret/shop/key is not exported" in done.stderr
    assert "[ocm-not-exported]" in done.stderr
    done = gitsched("export", "ocm", "--secrets")
    assert "shop/key.secret" in names(check(done.stdout), "ManifestWorkReplicaSet")
    assert not done.stderr


def test_texts_that_a_ci_runner_would_execute_are_exported_unchanged(
    gitsched: Run, hub_fleet: Path, commit: Callable[..., None]
) -> None:
    data = {"types.hs": "main\n  :: IO ()\n", "log": "##[group]x ##vso[task.complete]\n"}
    commit(hub_fleet, apps=to_yaml(SETTINGS | {"data": data}))
    for form in ("text", "yaml", "json"):
        shown = gitsched("export", "ocm", "-o", form).stdout
        assert not re.search(r"^\s*::|##(vso)?\[", shown, re.MULTILINE)
        documents = list(yaml.safe_load_all(shown))
        items = documents[0]["items"] if documents[0]["kind"] == "List" else documents
        (work,) = (body for body in items if body["kind"] == "ManifestWorkReplicaSet")
        assert work["spec"]["manifestWorkTemplate"]["workload"]["manifests"][0]["data"] == data


def test_what_the_hub_would_refuse_is_a_finding(gitsched: Run, hub_fleet: Path, commit: Callable[..., None]) -> None:
    long = annotated({**SETTINGS, "metadata": {"name": "n" * 60, "namespace": "shop"}})
    empty = replica_set() | {"spec": {"placementRefs": [{"name": "front"}], "manifestWorkTemplate": {}}}
    commit(hub_fleet, apps=to_yaml(SETTINGS | {"data": {"a": "x" * 600_000}}, long, empty))
    done = gitsched("export", "ocm")
    assert names(check(done.stdout), "ManifestWorkReplicaSet") == []
    for reason in ("the hub refuses more than 512000", "shorten the name", "has no manifests"):
        assert reason in done.stderr


def test_the_last_valid_version_of_a_broken_file_is_exported(gitsched: Run, hub_fleet: Path, commit: Callable[..., None]) -> None:
    gitsched("reconcile")
    before = gitsched("export", "ocm").stdout
    commit(hub_fleet, apps="kind: [", front="kind: [")
    assert gitsched("export", "ocm").stdout == before


def test_a_workload_that_is_defined_twice_is_a_finding(gitsched: Run, hub_fleet: Path, commit: Callable[..., None]) -> None:
    gitsched("reconcile")
    commit(hub_fleet, again=to_yaml({**SETTINGS, "data": {"another": "value"}}))
    done = gitsched("export", "ocm")
    assert names(check(done.stdout), "ManifestWorkReplicaSet") == ["shop/job"]
    assert "ConfigMap/shop/settings is not exported: it is defined more than once; leave its objects" in done.stderr


def test_manifest_works_are_in_the_namespaces_of_the_chosen_clusters(export: Callable[..., list[dict[str, Any]]]) -> None:
    documents = export("--for", "works")
    assert names(documents, "ManifestWork") == ["dub/shop.job", "dub/shop.settings.configmap"]
    assert export("--for", "works", "--status") == []


def test_a_cluster_that_waits_in_a_rollout_keeps_its_manifest_work(
    gitsched: Run, hub_fleet: Path, commit: Callable[..., None]
) -> None:
    strategy = {"type": "Progressive", "progressive": {"maxConcurrency": 1}}
    job = replica_set()
    job["spec"]["placementRefs"] = [{"name": "bare", "rolloutStrategy": strategy}]
    commit(hub_fleet, apps=to_yaml(job))
    gitsched("reconcile", "--now", "2026-03-01T12:00:00Z")
    done = gitsched("export", "ocm", "--for", "works")
    assert names(check(done.stdout), "ManifestWork") == ["dub/shop.job"]
    job["spec"]["manifestWorkTemplate"]["workload"]["manifests"][0]["data"] = {"a": "b"}
    reports = {"clusters": [{"name": "dub", "state": "Success", "time": "2030-03-01T12:30:00Z"}]}
    report = {"apiVersion": "gitsched.io/v1alpha1", "kind": "RolloutReport", "metadata": {"name": "r"}, "spec": reports}
    commit(hub_fleet, report=to_yaml(report))
    gitsched("reconcile", "--now", "2030-03-01T13:00:00Z")
    commit(hub_fleet, apps=to_yaml(job), report=None)
    done = gitsched("export", "ocm", "--for", "works")
    assert names(check(done.stdout), "ManifestWork") == ["dub/shop.job"]
    assert "its rollout has not reached par" in done.stderr


def test_argocd_gets_the_generator_and_the_decisions_in_its_namespace(export: Callable[..., list[dict[str, Any]]]) -> None:
    documents = export("--for", "argocd", "--placement", "shop/front", "--app-url", "https://git.example.com/app.git")
    by_kind = {body["kind"]: body for body in documents}
    assert by_kind["ConfigMap"]["data"] == {
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "placementdecisions",
        "statusListKey": "decisions",
        "matchKey": "clusterName",
    }
    assert {body["metadata"]["namespace"] for body in documents} == {"argocd"}
    generator = by_kind["ApplicationSet"]["spec"]["generators"][0]["clusterDecisionResource"]
    assert generator["configMapRef"] == by_kind["ConfigMap"]["metadata"]["name"]
    assert by_kind["PlacementDecision"]["metadata"]["labels"].items() >= generator["labelSelector"]["matchLabels"].items()
    (status,) = export("--for", "argocd", "--placement", "shop/front", "--status")
    assert status["metadata"] == {"name": by_kind["PlacementDecision"]["metadata"]["name"], "namespace": "argocd"}
    assert status["status"] == {"decisions": [{"clusterName": "dub", "reason": ""}]}
    assert "ApplicationSet" not in {body["kind"] for body in export("--for", "argocd")}


def test_only_one_placement_is_exported(gitsched: Run, export: Callable[..., list[dict[str, Any]]]) -> None:
    assert names(export("--placement", "shop/bare"), "PlacementDecision") == ["shop/bare-decision-1"]
    assert "no Placement shop/other found" in gitsched("export", "ocm", "--placement", "shop/other").stderr


def test_json_has_the_same_objects(gitsched: Run, export: Callable[..., list[dict[str, Any]]]) -> None:
    found = json.loads(gitsched("export", "ocm", "-o", "json").stdout)
    assert (found["kind"], found["items"]) == ("List", export())


@pytest.fixture
def api_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # kubectl caches the discovery there
    server = ApiServer()
    yield server
    server.close()


@pytest.mark.needs("kubectl")
def test_kubectl_creates_the_objects(gitsched: Run, hub_fleet: Path, api_server: ApiServer) -> None:
    for consumer in ("hub", "works", "argocd"):
        text = gitsched("export", "ocm", "--for", consumer, "--app-url", "https://git.example.com/app.git").stdout
        printed = api_server.kubectl("create", "--dry-run=client", "--validate=false", "-f", "-", text=text)
        assert len(printed.splitlines()) == len(list(yaml.safe_load_all(text)))


def read_commands() -> list[list[str]]:
    """Return the kubectl commands in the documentation, without their input from a pipe."""
    page = (ROOT / "docs" / "from-ocm.md").read_text()
    block = page[page.index("## Back to a hub") :].split("```sh\n")[1].split("```")[0]
    return [shlex.split(line.split("| kubectl")[1]) for line in block.replace("\\\n", " ").splitlines()]


@pytest.mark.needs("kubectl")
def test_decisions_survive_on_a_hub(gitsched: Run, hub_fleet: Path, commit: Callable[..., None], api_server: ApiServer) -> None:
    apply, apply_status = read_commands()

    def deliver() -> None:
        api_server.kubectl(*apply, "--validate=false", text=gitsched("export", "ocm").stdout)
        api_server.kubectl(*apply_status, "--validate=false", text=gitsched("export", "ocm", "--status").stdout)

    own = {"kind": "PlacementDecision", "apiVersion": "v", "metadata": {"name": "own", "namespace": "shop"}}
    api_server.objects["PlacementDecision", "shop", "own"] = own
    commit(hub_fleet, more=to_yaml(*(managed_cluster(f"c{number:03}") for number in range(110))))
    deliver()
    assert ("PlacementDecision", "shop", "bare-decision-2") in api_server.objects
    commit(hub_fleet, more=None)
    deliver()
    api_server.kubectl(*apply, "--validate=false", text=gitsched("export", "ocm").stdout)
    decisions = {name: body.get("status") for (kind, _, name), body in api_server.objects.items() if kind == "PlacementDecision"}
    clusters = [{"clusterName": name, "reason": ""} for name in ("dub", "par")]
    assert decisions == {
        "bare-decision-1": {"decisions": clusters},
        "front-decision-1": {"decisions": clusters[:1]},
        "own": None,  # an object that was not exported is never deleted
    }
    front = api_server.objects["Placement", "shop", "front"]
    assert front["status"]["numberOfSelectedClusters"] == 1
    assert front["status"]["decisionGroups"][0]["decisions"] == ["front-decision-1"]
    assert (front["spec"]["numberOfClusters"], front["metadata"]["annotations"][DISABLED]) == (1, "true")


def test_a_placement_with_the_annotation_in_git_is_a_finding(gitsched: Run, hub_fleet: Path, commit: Callable[..., None]) -> None:
    commit(hub_fleet, bare=to_yaml(placement("bare", "shop", annotations={DISABLED: "true"})))
    assert "[ocm-scheduling-disabled]" in gitsched("plan").stdout
