"""The output branch of the example: layout, manifests, records and metadata."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitsched.render.format_versions import FORMAT_VERSION

from .conftest import START, Fleet, at_hour, cluster, deployment, policy

EXAMPLE = Path(__file__).parents[2] / "examples" / "repo"
CLUSTERS = sorted(path.stem for path in (EXAMPLE / "clusters").glob("*.yaml"))


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    base = tmp_path_factory.mktemp("example")
    fleet = Fleet(base / "fleet", base / "cache")
    shutil.copytree(EXAMPLE, fleet.path, dirs_exist_ok=True)
    fleet.commit(message="The fleet\n\nWith a body.")
    fleet.git("remote", "add", "origin", "https://oauth2:canary-in-a-url@git.example.com/fleet.git")
    fleet.reconcile(0.25)
    return fleet


@pytest.fixture(scope="module")
def tree(example: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return example.checkout(tmp_path_factory.mktemp("output") / "tree")


def documents(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text()))


def bindings(tree: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((tree / "status/work.karmada.io").rglob("*.yaml")):
        yield from documents(path)


def test_the_output_branch_shares_no_history_with_the_source(example: Fleet) -> None:
    assert example.git("rev-list", "--count", "placements") == "1"
    assert example.git("merge-base", "--all", "placements", "placements") == example.head
    assert (
        example.git("log", "-1", "--format=%an <%ae>|%cn <%ce>", "placements")
        == "gitsched <gitsched@localhost>|gitsched <gitsched@localhost>"
    )


def test_the_root_has_only_the_documented_entries(tree: Path) -> None:
    names = {path.name for path in tree.iterdir()} - {".git"}
    assert names == {"README.md", "clusters", "status", "placements", "gitsched.json", "hydrator.metadata", ".gitattributes"}


def test_every_registered_cluster_has_a_directory(tree: Path) -> None:
    assert sorted(path.name for path in (tree / "clusters").iterdir()) == CLUSTERS


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_kustomization_lists_exactly_the_files_of_its_directory(tree: Path, name: str) -> None:
    """Check what kustomize would reject, without kubectl."""
    directory = tree / "clusters" / name
    (kustomization,) = documents(directory / "kustomization.yaml")
    assert (kustomization["apiVersion"], kustomization["kind"]) == ("kustomize.config.k8s.io/v1beta1", "Kustomization")
    manifests = [str(path.relative_to(directory)) for path in directory.rglob("*.yaml") if path.name != "kustomization.yaml"]
    assert kustomization["resources"] == sorted(manifests)
    assert "gitsched-placement.yaml" in manifests
    identities = []
    for path in manifests:
        (body,) = documents(directory / path)
        metadata = body["metadata"]
        identities.append((body["apiVersion"].rpartition("/")[0], body["kind"], metadata.get("namespace"), metadata["name"]))
        assert not {"uid", "resourceVersion", "generation", "managedFields", "creationTimestamp"} & metadata.keys()
    assert len(set(identities)) == len(identities)
    namespaces = {namespace for *_, namespace, _ in identities if namespace} - {"default"}
    assert namespaces <= {name for _, kind, _, name in identities if kind == "Namespace"}, "what a target needs goes along"


@pytest.mark.needs("kubectl")
@pytest.mark.parametrize("name", CLUSTERS)
def test_kustomize_builds_every_directory(tree: Path, name: str) -> None:
    done = subprocess.run(["kubectl", "kustomize", str(tree / "clusters" / name)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    bodies = list(yaml.safe_load_all(done.stdout))
    (kustomization,) = documents(tree / "clusters" / name / "kustomization.yaml")
    assert len(bodies) == len(kustomization["resources"]) >= 1


def targets(binding: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the clusters of a binding, by policy or by attachment."""
    spec = binding["spec"]
    attached = {
        entry["name"]: {"name": entry["name"]} for owner in spec.get("requiredBy", []) for entry in owner.get("clusters", [])
    }
    return list({**attached, **{entry["name"]: entry for entry in spec.get("clusters", [])}}.values())


@pytest.mark.parametrize("name", CLUSTERS)
def test_cluster_json_has_the_facts_for_generators(tree: Path, name: str) -> None:
    facts = json.loads((tree / "clusters" / name / "cluster.json").read_text())
    (source,) = documents(EXAMPLE / "clusters" / f"{name}.yaml")
    placed = [entry for binding in bindings(tree) for entry in targets(binding) if entry["name"] == name]
    assert facts == {
        "name": name,
        "labels": source["metadata"]["labels"],
        "region": source["spec"]["region"],
        "provider": source["spec"]["provider"],
        "workloads": len(placed),
        "replicas": sum(entry.get("replicas", 0) for entry in placed),
    }


def test_the_stub_names_its_cluster(tree: Path) -> None:
    for name in CLUSTERS:
        (stub,) = documents(tree / "clusters" / name / "gitsched-placement.yaml")
        assert (stub["kind"], stub["metadata"]["name"], stub["data"]) == ("ConfigMap", "gitsched-placement", {"cluster": name})


def test_the_namespace_of_the_source_is_delivered_or_an_empty_one(tree: Path) -> None:
    (own,) = documents(next((tree / "clusters").glob("*/_/namespace-shop.yaml")))
    assert own["metadata"]["labels"]["team"] == "commerce"
    (bare,) = documents(next((tree / "clusters").glob("*/_/namespace-ml.yaml")))
    assert {**bare["metadata"], "annotations": None} == {"name": "ml", "annotations": None}
    for namespace in (own, bare):
        assert namespace["metadata"]["annotations"] == {
            "argocd.argoproj.io/compare-options": "IgnoreExtraneous",
            "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
            "kustomize.toolkit.fluxcd.io/prune": "disabled",
        }


def test_manifests_are_only_in_the_clusters_of_their_binding(tree: Path, example: Fleet) -> None:
    placed = set()
    for binding in bindings(tree):
        resource = binding["spec"]["resource"]
        group = resource["apiVersion"].rpartition("/")[0]
        kind = resource["kind"].lower() + ("" if group in ("", "apps") else f".{group}")
        for entry in targets(binding):
            placed.add(f"clusters/{entry['name']}/{resource.get('namespace') or '_'}/{kind}-{resource['name']}.yaml")
    there = {path for path in example.files() if path.count("/") == 3 and path.startswith("clusters/")}
    assert {path for path in there if "/_/namespace-" not in path} == placed


def test_every_binding_has_a_record_and_a_placement_decision(tree: Path) -> None:
    found = 0
    for binding in bindings(tree):
        assert binding.keys() <= {"apiVersion", "kind", "metadata", "spec", "status"}
        assert binding["metadata"]["annotations"]["config.kubernetes.io/local-config"] == "true"
        found += 1
    decisions = sorted((tree / "placements").rglob("*.yaml"))
    assert len(decisions) == found >= 15


def test_a_placement_decision_has_clusters_and_replicas(tree: Path) -> None:
    (decision,) = documents(tree / "placements/shop/deployment-storefront.yaml")
    (binding,) = documents(tree / "status/work.karmada.io/resourcebinding/shop/storefront-deployment.yaml")
    shares = {entry["name"]: entry["replicas"] for entry in binding["spec"]["clusters"]}
    assert (decision["apiVersion"], decision["kind"]) == ("multicluster.x-k8s.io/v1alpha1", "PlacementDecision")
    assert [entry["clusterProfileRef"]["name"] for entry in decision["decisions"]] == list(shares)
    assert json.loads(decision["metadata"]["annotations"]["gitsched.io/replicas"]) == shares
    assert sum(shares.values()) == 13
    assert "status" not in decision
    assert decision["metadata"]["annotations"]["config.kubernetes.io/local-config"] == "true"


def test_hydrator_metadata_of_argo_cd_is_written(tree: Path, example: Fleet) -> None:
    metadata = json.loads((tree / "hydrator.metadata").read_text())
    assert metadata["drySha"] == example.git("rev-parse", "main")
    assert (metadata["author"], metadata["subject"]) == ("Ada Author <ada@example.com>", "The fleet")
    assert metadata["date"] == "2026-03-02T08:00:00Z"


def test_gitattributes_mark_all_files_as_generated(tree: Path) -> None:
    assert "linguist-generated" in (tree / ".gitattributes").read_text()


def test_the_record_of_the_run_names_its_source_and_its_findings(tree: Path, example: Fleet) -> None:
    record = json.loads((tree / "gitsched.json").read_text())
    assert (record["formatVersion"], record["source"]) == (FORMAT_VERSION, example.git("rev-parse", "main"))
    assert record["sourceTree"] == example.git("rev-parse", "main^{tree}")
    assert record["time"] == START.isoformat().replace("+00:00", "Z")
    assert {finding["severity"] for finding in record["findings"]} <= {"info", "warning"}


def test_the_readme_names_every_cluster_and_how_to_reproduce_the_commit(tree: Path, example: Fleet) -> None:
    text = (tree / "README.md").read_text()
    assert all(name in text for name in CLUSTERS)
    assert example.git("rev-parse", "main")[:12] in text
    assert len(text.splitlines()) < 400


def test_clusters_with_the_same_manifests_share_blobs(example: Fleet) -> None:
    files = example.files()
    agents = {blob for path, blob in files.items() if path.endswith("daemonset-log-agent.yaml") and path.startswith("clusters/")}
    assert len(agents) == 1


SECRET = "canary-"
CANARIES = {
    "cluster.yaml": cluster("first")
    + f"  apiEndpoint: https://first.example.com\n  kubeconfig: {SECRET}kubeconfig\n  token: {SECRET}token\n",
    "auth.yaml": (
        f"apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata:\n  name: second\n"
        f"spec:\n  syncMode: Push\n  auth: {{username: ada, password: {SECRET}password}}\n  taints: [{{key: power, effect: NoExecute}}]\n"
    ),
    "secret.yaml": (
        f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: not-placed\n  namespace: default\nstringData:\n  password: {SECRET}not-placed\n"
    ),
    "broken-secret.yaml": f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: broken\nstringData:\n  password: {SECRET}broken\n  x: [\n",
    "twice.yaml": f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: twice\nstringData:\n  a: {SECRET}once\n  a: {SECRET}again\n",
    "values.yaml": f"auth:\n  token: {SECRET}values\n",
    "kubeconfig.yaml": (f"apiVersion: v1\nkind: Config\nclusters: []\nusers:\n- name: ada\n  user: {{token: {SECRET}user}}\n"),
}


def test_no_secret_of_the_source_appears_anywhere_in_the_output(fleet: Fleet) -> None:
    fleet.commit(CANARIES | {"web.yaml": deployment("web"), "policy.yaml": policy("first,second")})
    fleet.reconcile()
    fleet.commit({"web.yaml": deployment("web", "[1")}, hour=1)
    fleet.reconcile(1)
    assert fleet.where("default/deployment-web") == ["first"]
    for commit in fleet.git("rev-list", "placements").split():
        for path in fleet.files(commit):
            assert SECRET not in fleet.read(path, commit), path
        assert SECRET not in fleet.git("show", "-s", commit)


WHOLE = CANARIES["secret.yaml"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(WHOLE, id="alone"),
        pytest.param(f"{WHOLE}---\n{deployment('near')}", id="before a workload"),
        pytest.param(f"{deployment('near')}---\n{WHOLE}", id="after a workload"),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems:\n"
            "- {apiVersion: apps/v1, kind: Deployment, metadata: {name: near, namespace: default}, spec: {replicas: 2}}\n"
            f"- {{apiVersion: v1, kind: Secret, metadata: {{name: not-placed}}, stringData: {{password: {SECRET}listed}}}}\n",
            id="in a List",
        ),
    ],
)
def test_last_valid_copies_leave_out_secrets_that_no_policy_selects(fleet: Fleet, text: str) -> None:
    fleet.commit(
        {"both.yaml": text, "policy.yaml": policy("first"), "cluster.yaml": cluster("first"), "web.yaml": deployment("web")}
    )
    fleet.reconcile()
    near = "clusters/first/default/deployment-near.yaml"
    before = fleet.load(near) if "near" in text else None
    for hour in (1, 2, 3):
        fleet.commit({"both.yaml": text + "  x: [\n", "web.yaml": deployment("web", 2 + hour)}, hour=hour)
        fleet.reconcile(hour)
        assert (fleet.load(near) if before else None) == before
        assert ("kept/both.yaml" in fleet.files()) is ("near" in text)
        assert [path for path in fleet.files() if SECRET in fleet.read(path)] == []


def test_last_valid_copies_keep_secrets_that_a_policy_selects(fleet: Fleet) -> None:
    fleet.commit({"secret.yaml": WHOLE, "policy.yaml": policy("first", kind="Secret"), "first.yaml": cluster("first")})
    fleet.reconcile()
    for hour in (1, 2):
        fleet.commit({"secret.yaml": WHOLE + "  x: [\n", "more.yaml": cluster(f"more-{hour}")}, hour=hour)
        fleet.reconcile(hour)
        there = [path for path in fleet.files() if SECRET in fleet.read(path)]
        assert there == ["clusters/first/default/secret-not-placed.yaml", "kept/secret.yaml"]


def test_the_token_in_a_url_is_not_written(example: Fleet) -> None:
    assert [path for path in example.files() if "canary-in-a-url" in example.read(path)] == []


def test_a_secret_that_a_policy_places_goes_to_its_clusters_only(fleet: Fleet) -> None:
    fleet.commit({"secret.yaml": CANARIES["secret.yaml"], "policy.yaml": policy("first", kind="Secret")})
    fleet.commit({"first.yaml": cluster("first"), "second.yaml": cluster("second")})
    fleet.reconcile()
    assert [path for path in fleet.files() if SECRET in fleet.read(path)] == ["clusters/first/default/secret-not-placed.yaml"]


DUMP = """\
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: web
    namespace: default
    uid: 5b9e
    resourceVersion: "12"
    generation: 3
    creationTimestamp: "2026-01-01T00:00:00Z"
    managedFields: [{manager: kubectl}]
  spec: {replicas: 2}
  status: {replicas: 2}
"""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(DUMP, id="in a List"),
        pytest.param(
            "\n".join(line[2:] for line in DUMP.splitlines()[3:]).replace("piVersion", "apiVersion", 1) + "\n", id="alone"
        ),
    ],
)
def test_server_owned_fields_are_removed_from_a_dump(fleet: Fleet, text: str) -> None:
    text = text.replace("aapiVersion", "apiVersion")
    fleet.commit({"web.yaml": text, "policy.yaml": policy("first"), "cluster.yaml": cluster("first")})
    fleet.reconcile()
    body = fleet.load("clusters/first/default/deployment-web.yaml")
    assert body.keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert body["metadata"] == {"name": "web", "namespace": "default"}


@pytest.mark.parametrize(("is_controller", "codes"), [(True, ["made-by-controller"]), (False, [])])
def test_an_object_that_a_controller_made_is_reported(fleet: Fleet, is_controller: bool, codes: list[str]) -> None:
    owner = f"[{{apiVersion: apps/v1, kind: ReplicaSet, name: web-5d, uid: a, controller: {str(is_controller).lower()}}}]"
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web-5d-1, namespace: default, uid: b, ownerReferences: %s}\n"
        "spec: {containers: [{name: a, image: registry.example.com/a:1}]}\n"
    )
    selecting = policy("first").replace("apiVersion: apps/v1", "apiVersion: v1").replace("kind: Deployment", "kind: Pod")
    fleet.commit({"pod.yaml": pod % owner, "policy.yaml": selecting, "cluster.yaml": cluster("first")})
    for hour in (0, 1):
        plan = fleet.reconcile(hour).plan
        found = [finding for finding in plan.findings if finding.code == "made-by-controller"]
        assert [finding.code for finding in found] == codes
        fleet.commit({"other.yaml": deployment("other")}, hour=1)
    if codes:
        assert str(found[0].location) == "pod.yaml:1:1"
        assert "made by the controller of ReplicaSet/web-5d" in found[0].message


def test_the_time_of_the_next_wakeup_is_in_the_record(fleet: Fleet) -> None:
    fleet.commit({"web.yaml": deployment("web"), "policy.yaml": policy("first", "second"), "second.yaml": cluster("second")})
    fleet.commit({"first.yaml": cluster("first")})
    fleet.reconcile()
    fleet.commit({"first.yaml": cluster("first", "power:NoExecute")}, hour=1)
    assert fleet.reconcile(1).plan.next_wakeup == at_hour(1 + 1 / 6)
    assert fleet.load("gitsched.json")["nextWakeup"] == "2026-03-02T09:10:00Z"


def test_last_valid_copies_have_no_cluster_credentials(fleet: Fleet) -> None:
    reached = yaml.safe_load(cluster("first"))
    reached["spec"] |= {"proxyURL": f"http://u:{SECRET}proxy@example.com", "token": f"{SECRET}token"}
    text = yaml.safe_dump(reached)
    fleet.commit({"first.yaml": text, "policy.yaml": policy("first"), "web.yaml": deployment("web")})
    fleet.reconcile()
    for hour in (1, 2):
        fleet.commit({"first.yaml": text + "\n  x: [\n", "web.yaml": deployment("web", 2 + hour)}, hour=hour)
        fleet.reconcile(hour)
        assert fleet.where("default/deployment-web") == ["first"]
        assert "kept/first.yaml" in fleet.files()
        assert [path for path in fleet.files() if SECRET in fleet.read(path)] == []
