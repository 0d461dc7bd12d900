"""Facts from clusters to the plan: commits on facts branches, reports, signatures, other repositories, and what facts cannot change."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitsched.collect.collector import list_all_contexts
from gitsched.collect.sources import find_contexts
from gitsched.kubectl.client import KubectlOptions
from gitsched.model.errors import Permanent
from gitsched.reconcile import RunSettings, reconcile
from gitsched.reconcile.facts.collection import CollectOptions, CollectRun, collect_facts, propose_clusters
from gitsched.reconcile.pipeline import run
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.reconcile.run import RunResult, open_context
from gitsched.report.fleet_status import write_fleet_status
from tests.builders.recorded_cluster import RecordedCluster, make_node, make_pod

pytestmark = pytest.mark.needs("kubectl")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ROOT = Path(__file__).parents[2]
COMMIT = "8a50d640f1c2b3a4958677685940312213040516"
CONFIG = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: fleet}
spec:
  source: {facts: %s}
  output: {overlap: 0s}
  guard: {fleet: {clustersUnready: 100}}
"""
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default, annotations: {cluster.open-cluster-management.io/placement: p}}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}
"""
KARMADA = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: dub, labels: {env: prod}}
spec: {syncMode: Pull}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: ash, labels: {env: prod}}
spec: {syncMode: Pull}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: p, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    clusterAffinity: {labelSelector: {matchLabels: {env: prod}}}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference: {dynamicWeight: AvailableReplicas}
"""

Collect = Callable[..., CollectRun]


def git(directory: Path, *words: str, environment: Mapping[str, str] | None = None) -> str:
    command = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", *words]
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, check=False, env={**os.environ, **(environment or {})}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def make_repository(path: Path, files: dict[str, str]) -> Path:
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    for name, text in files.items():
        (path / name).write_text(text)
    git(path, "add", "-A")
    git(path, "commit", "-q", "--allow-empty", "-m", "Fleet", "--date=2026-03-01T08:00:00Z")
    return path


@pytest.fixture(autouse=True)
def dates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-03-01T08:00:00Z")


@pytest.fixture(scope="module")
def shared() -> Iterator[RecordedCluster]:
    server = RecordedCluster()
    yield server
    server.close()


@pytest.fixture
def cluster(shared: RecordedCluster) -> RecordedCluster:
    """The server with the objects of a healthy cluster."""
    shared.lists = {"/api/v1/nodes": [make_node("n1"), make_node("n2")], "/api/v1/pods": [make_pod("web")]}
    shared.asked.clear()
    return shared


@pytest.fixture
def collect(cluster: RecordedCluster, tmp_path: Path) -> Collect:
    def run(location: Path | str, *, after: float = 0, signing: Any = None, facts: str | None = None, **chosen: Any) -> CollectRun:
        options = KubectlOptions("", str(cluster.write_kubeconfig(tmp_path / "kubeconfig")))
        settings = RunSettings(
            NOW + timedelta(minutes=after), tmp_path / "cache", str(location), signing=signing, facts_repository=facts
        )
        return collect_facts(settings, CollectOptions(options, **chosen))

    return run


def plan(location: Path, tmp_path: Path, *, after: float = 0, **chosen: Any) -> RunResult:
    return reconcile(RunSettings(NOW + timedelta(minutes=after), tmp_path / "cache", str(location), **chosen))


def place(result: RunResult, name: str = "web") -> dict[str, int | None]:
    """Return the replicas of a workload by cluster."""
    (outcome,) = (outcome for key, outcome in result.plan.outcomes.items() if key.name == name)
    return {target.cluster: target.replicas for target in outcome.targets if not target.evicting}


def list_codes(result: RunResult) -> set[str]:
    return {
        finding.code for finding in result.plan.findings if finding.code.startswith(("facts", "invalid-facts", "unknown-field"))
    }


def test_facts_of_contexts_become_the_status_and_a_jitter_makes_no_commit(
    collect: Collect, cluster: RecordedCluster, tmp_path: Path
) -> None:
    fleet = make_repository(tmp_path / "fleet", {"gitsched.yaml": CONFIG % "{branch: facts}", "web.yaml": WEB, "c.yaml": KARMADA})
    first = collect(fleet, contexts=("dub=fake",))
    assert first.commit is not None
    cluster.lists["/api/v1/pods"][0] = make_pod("web", cpu="520m")
    assert collect(fleet, after=29, contexts=("dub=fake",)).commit is None
    assert collect(fleet, after=30, contexts=("dub=fake",)).commit is not None, "half of staleAfter"
    cluster.lists["/api/v1/nodes"] = [make_node("n1", cpu="2")]
    assert collect(fleet, after=31, contexts=("ash=fake",)).commit is not None
    assert git(fleet, "ls-tree", "-r", "--name-only", "facts").split() == ["clusters/ash.yaml", "clusters/dub.yaml"]
    assert git(fleet, "log", "-1", "--format=%s %ct", "facts") == f"facts: ash {int(NOW.timestamp()) + 31 * 60}"
    result = plan(fleet, tmp_path, after=40)
    assert place(result) == {"ash": 1, "dub": 5}, "7 free cores and 1"
    assert git(fleet, "log", "-1", "--format=%(trailers:key=Gitsched-Facts)", "placements").startswith("Gitsched-Facts: facts@")
    assert list_codes(result) == set()


def test_stale_facts_stop_new_placements_and_evict(tmp_path: Path) -> None:
    config = CONFIG % "{branch: facts, stale: RULE}"
    fleet = make_repository(
        tmp_path / "fleet", {"gitsched.yaml": config.replace("RULE", "noNewPlacements"), "web.yaml": WEB, "c.yaml": KARMADA}
    )
    observe(fleet, dub=0, ash=30)
    first = plan(fleet, tmp_path, after=31)
    assert (place(first), first.plan.next_wakeup) == ({"ash": 3, "dub": 3}, NOW + timedelta(minutes=60))
    (fleet / "web.yaml").write_text(f"{WEB}---\n{WEB.replace('web', 'shop')}")
    git(fleet, "commit", "-qam", "More")
    later = plan(fleet, tmp_path, after=61)
    assert (place(later), place(later, "shop"), list_codes(later)) == ({"ash": 3, "dub": 3}, {"ash": 6}, {"facts-stale"})
    (message,) = (finding.message for finding in later.plan.findings if finding.code == "facts-stale")
    assert "dub (observed at 2026-03-01T12:00:00Z); source.facts.stale is noNewPlacements" in message
    (fleet / "gitsched.yaml").write_text(config.replace("RULE", "evict"))
    git(fleet, "commit", "-qam", "Evict")
    plan(fleet, tmp_path, after=62)
    assert set(place(plan(fleet, tmp_path, after=66))) == {"ash"}, (
        "after the 300 s for which Karmada tolerates the taint by default"
    )
    observe(fleet, dub=67, ash=30)
    assert list_codes(plan(fleet, tmp_path, after=68)) == set()


def test_the_guard_withholds_evictions_when_the_collector_stops(tmp_path: Path) -> None:
    config = CONFIG.replace("  guard: {fleet: {clustersUnready: 100}}\n", "") % "{branch: facts, stale: evict}"
    spare = "---\n" + KARMADA.split("---\n")[0].replace("dub", "spare")
    fleet = make_repository(tmp_path / "fleet", {"gitsched.yaml": config, "web.yaml": WEB, "c.yaml": KARMADA + spare})
    observe(fleet, dub=0, ash=0)
    first = plan(fleet, tmp_path, after=1)
    plan(fleet, tmp_path, after=61)
    later = plan(fleet, tmp_path, after=66)
    assert place(later) == place(first)
    assert later.plan.withheld.moves, "two of three clusters are not ready by stale facts alone"
    status = read_fleet_status(RunSettings(NOW + timedelta(minutes=66), tmp_path / "cache", str(fleet)))
    lines = write_fleet_status(status).splitlines()
    assert lines[0] == "Needs attention: 1 change is withheld, 2 of 3 clusters are no longer observed."
    assert lines[1].startswith("No longer observed: ash (1h ago), dub (1h ago): repair gitsched collect first; ")
    assert any(line.startswith("To allow exactly these, first check that gitsched collect runs, ") for line in lines)
    assert [one.ready for one in status.clusters] == ["Unknown"] * 3
    assert not any("drain" in line for line in lines), "nobody knows whether the clusters are there"


def observe(fleet: Path, *, replaced: tuple[str, str] = ("", ""), **minutes: int) -> None:
    """Write facts about clusters that were observed at these minutes after NOW, with another text in those of ash."""
    times = {name: NOW + timedelta(minutes=after) for name, after in minutes.items()}
    texts = [make_facts(name).replace("2026-03-01T08:00:00Z", f"{time:%Y-%m-%dT%H:%M:%SZ}") for name, time in times.items()]
    texts = [text.replace(*replaced) if "name: ash" in text else text for text in texts]
    write_branch(fleet, "facts", "---\n".join(texts), time=max(times.values()))


OTHER_APIS = {
    "ocm": (
        """\
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: NAME, labels: {cluster.open-cluster-management.io/clusterset: s}}
spec: {hubAcceptsClient: true}
---
""",
        """\
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: s}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: s, namespace: default}
spec: {clusterSet: s}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: p, namespace: default}
spec:
  numberOfClusters: 1
  prioritizerPolicy: {mode: Exact, configurations: [{scoreCoordinate: {builtIn: ResourceAllocatableCPU}, weight: 1}]}
""",
        WEB,
    ),
    "krake": (
        """\
api: kubernetes
kind: Cluster
metadata: {name: NAME, namespace: default}
spec: {kubeconfig: {clusters: [{name: c}], contexts: [{name: c}], users: [{name: c}]}}
---
""",
        "",
        """\
api: kubernetes
kind: Application
metadata: {name: web, namespace: default}
spec: {manifest: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}]}
""",
    ),
}


@pytest.mark.parametrize("rule", ["evict", "noNewPlacements"])
@pytest.mark.parametrize("api", OTHER_APIS)
def test_the_other_apis_read_the_facts(tmp_path: Path, api: str, rule: str) -> None:
    worse = ('cpu: "9"', 'cpu: "1"') if api == "ocm" else ('"True"', '"False"')
    clusters, policy, workload = OTHER_APIS[api]
    text = "".join(clusters.replace("NAME", name) for name in ("ash", "dub")) + policy
    config = CONFIG % f"{{branch: facts, stale: {rule}, staleAfter: 1h}}"
    fleet = make_repository(tmp_path / "fleet", {"gitsched.yaml": config, "web.yaml": workload, "c.yaml": text})
    write_branch(fleet, "facts", make_facts("dub") + "---\n" + make_facts("ash").replace(*worse))
    first = plan(fleet, tmp_path, after=-210)
    assert list_places(first, "web") == ["dub"]
    observe(fleet, dub=0, ash=30, replaced=('cpu: "9"', 'cpu: "1"'))
    late = workload.replace("name: web", "name: late").replace("placement: p}", "placement: q}")
    another = policy.rpartition("---")[2].replace("{name: p,", "{name: q,")
    (fleet / "late.yaml").write_text(f"{late}---{another}" if another else late)
    git(fleet, "add", "late.yaml")
    git(fleet, "commit", "-qm", "Late")
    later = plan(fleet, tmp_path, after=70)
    assert list_places(later, "web") == (["ash"] if rule == "evict" else ["dub"]), "facts about dub are stale"
    assert list_places(later, "late") == ["ash"]


def list_places(result: RunResult, name: str) -> list[str]:
    """Return the clusters of a workload without the namespace that directories of Krake begin with."""
    return [cluster.rpartition("default")[2].strip("._-/") for cluster in place(result, name)]


def write_branch(fleet: Path, branch: str, text: str, *, sign: Path | None = None, time: datetime | None = None) -> None:
    """Commit a file to a branch as a cluster does."""

    def run(*words: str, data: str) -> str:
        return subprocess.run(["git", *words], cwd=fleet, input=data, capture_output=True, text=True, check=True).stdout.strip()

    blob = run("hash-object", "-w", "--stdin", data=text)
    tree = run("mktree", data=f"100644 blob {blob}\tcluster.yaml\n")
    signing = ["-c", "gpg.format=ssh", "-c", f"user.signingKey={sign}"] if sign else []
    date = {"GIT_COMMITTER_DATE": f"{time or NOW - timedelta(hours=4):%Y-%m-%dT%H:%M:%SZ}"}
    oid = git(fleet, *signing, "commit-tree", *(["-S"] if sign else []), "-m", "Facts", tree, environment=date)
    git(fleet, "update-ref", f"refs/heads/{branch}", oid)


def make_facts(name: str, changes: str = "", extra: str = "") -> str:
    return f"""\
apiVersion: gitsched.io/v1alpha1
kind: ClusterFacts
metadata: {{name: {name}{extra}}}
status:
  observedAt: "2026-03-01T08:00:00Z"
  ready: {{status: "True"}}
  allocatable: {{cpu: "9", memory: 9Gi, pods: "90"}}
{changes}"""


OWN = "{clusterBranches: 'cluster-facts/{cluster}', staleAfter: 24h}"


@pytest.mark.parametrize(
    ("text", "codes", "expected"),
    [
        (make_facts("dub", extra=", labels: {env: test}"), {"facts-beyond-status"}, {"ash": 1, "dub": 5}),
        (make_facts("dub") + "spec: {taints: [{key: a, effect: NoExecute}]}\n", {"unknown-field"}, {"ash": 1, "dub": 5}),
        (
            make_facts("dub") + "---\n" + make_facts("ash", "  nodes: {total: 9, ready: 9}\n"),
            {"facts-foreign"},
            {"ash": 1, "dub": 5},
        ),
        (make_facts("dub", '  allocated: {cpu: "-5"}\n'), {"invalid-facts", "facts-incomplete"}, None),
        (make_facts("dub", '  allocated: {cpu: "99E"}\n'), {"invalid-facts", "facts-incomplete"}, None),
        (make_facts("dub", "  allocated: {cpu: .nan}\n"), {"facts-incomplete"}, None),
        (make_facts("dub", "  nodes: {total: 1, ready: 2}\n"), {"invalid-facts", "facts-incomplete"}, None),
        (make_facts("dub").replace("2026-03-01T08", "2027-01-01T08"), {"facts-future"}, {"ash": 1, "dub": 5}),
        (make_facts("dub").replace("2026-03-01T08:00:00Z", "yesterday"), {"invalid-facts", "facts-incomplete"}, None),
        (KARMADA, {"facts-ignored", "facts-incomplete"}, None),
        pytest.param("x" * 300_000, {"facts-ignored", "facts-incomplete"}, None, id="too large"),
    ],
)
def test_a_cluster_gives_its_own_status_and_nothing_else(
    tmp_path: Path, text: str, codes: set[str], expected: dict[str, int] | None
) -> None:
    fleet = make_repository(tmp_path / "fleet", {"gitsched.yaml": CONFIG % OWN, "web.yaml": WEB, "c.yaml": KARMADA})
    write_branch(fleet, "cluster-facts/ash", make_facts("ash").replace('cpu: "9"', 'cpu: "2"'))
    write_branch(fleet, "cluster-facts/dub", text)
    result = plan(fleet, tmp_path)
    assert list_codes(result) == codes
    assert expected is None or place(result) == expected
    assert all(finding.severity != "error" for finding in result.plan.findings), "a cluster must not fail the runs of the fleet"


def test_a_link_on_a_facts_branch_is_not_read(tmp_path: Path) -> None:
    fleet = make_repository(tmp_path / "fleet", {"gitsched.yaml": CONFIG % OWN, "web.yaml": WEB, "c.yaml": KARMADA})
    git(fleet, "switch", "-q", "--orphan", "cluster-facts/dub")
    (fleet / "cluster.yaml").symlink_to("/etc/passwd")
    git(fleet, "add", "-A")
    git(fleet, "commit", "-qm", "Facts")
    git(fleet, "switch", "-q", "main")
    assert list_codes(plan(fleet, tmp_path)) == {"facts-ignored"}


def test_facts_of_the_last_run_count_while_a_file_is_broken(tmp_path: Path) -> None:
    fleet = make_repository(tmp_path / "fleet", {"gitsched.yaml": CONFIG % OWN, "web.yaml": WEB, "c.yaml": KARMADA})
    write_branch(fleet, "cluster-facts/ash", make_facts("ash").replace('cpu: "9"', 'cpu: "1"'))
    write_branch(fleet, "cluster-facts/dub", make_facts("dub"))
    before = place(plan(fleet, tmp_path))
    write_branch(fleet, "cluster-facts/ash", "status: [")
    (fleet / "web.yaml").write_text(WEB.replace("replicas: 6", "replicas: 8"))
    git(fleet, "commit", "-qam", "More")
    result = plan(fleet, tmp_path, after=1)
    assert "facts-restored" in list_codes(result)
    assert place(result)["ash"] == before["ash"], "a broken file does not give a cluster unlimited room"


def test_facts_about_a_cluster_that_the_source_does_not_have(tmp_path: Path) -> None:
    fleet = make_repository(tmp_path / "fleet", {"gitsched.yaml": CONFIG % OWN, "web.yaml": WEB, "c.yaml": KARMADA})
    write_branch(fleet, "cluster-facts/evil", make_facts("evil"))
    result = plan(fleet, tmp_path)
    assert list_codes(result) == {"facts-unknown-cluster", "facts-incomplete"}
    assert "evil" not in result.plan.cluster_facts


def make_flux(revision: str = f"placements@sha1:{COMMIT}", ready: str = "True", reason: str = "ReconciliationSucceeded") -> Any:
    return {
        "metadata": {"namespace": "flux-system", "name": "fleet"},
        "status": {
            "lastAppliedRevision": revision,
            "conditions": [{"type": "Ready", "status": ready, "reason": reason}],
            "inventory": {
                "entries": [{"id": "shop_web_apps_Deployment", "v": "v1"}, {"id": "shop_db_apps_StatefulSet", "v": "v1"}]
            },
        },
    }


def make_workload(name: str, replicas: int, ready: int, **condition: str) -> Any:
    counts = {"updatedReplicas": ready, "readyReplicas": ready, "availableReplicas": ready, "observedGeneration": 2}
    conditions = [{"type": "Progressing", **condition}] if condition else []
    return {
        "metadata": {"namespace": "shop", "name": name, "generation": 2},
        "spec": {"replicas": replicas},
        "status": {**counts, "conditions": conditions},
    }


@pytest.mark.needs("ssh-keygen")
def test_a_cluster_pushes_signed_facts_and_its_report_with_the_rights_of_its_manifests(
    collect: Collect, cluster: RecordedCluster, tmp_path: Path
) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    for key in (own, other):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    facts = tmp_path / "facts.git"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(facts))
    cluster.lists |= {
        "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations": [make_flux(), make_flux("other@sha1:" + "0" * 40, "False")],
        "/apis/argoproj.io/v1alpha1/applications": [],
        "/apis/apps/v1/deployments": [make_workload("web", 3, 1), make_workload("foreign", 3, 0)],
        "/apis/apps/v1/statefulsets": [make_workload("db", 1, 1)],
        "/apis/apps/v1/daemonsets": [],
    }
    branch = "cluster-facts/dub"
    run = collect(facts.as_uri(), signing=("ssh", str(own)), own="dub", branch=branch)
    assert (run.commit is not None, run.collection.notes) == (True, ())
    assert git(facts, "ls-tree", "--name-only", branch).split() == ["cluster.yaml", "report.yaml"]
    report = yaml.safe_load(git(facts, "show", f"{branch}:report.yaml"))
    assert report["spec"] == {
        "appliedCommit": COMMIT,
        "health": "Progressing",
        "since": "2026-03-01T12:00:00Z",
        "unhealthy": [
            {
                "group": "apps",
                "kind": "Deployment",
                "namespace": "shop",
                "name": "web",
                "health": "Progressing",
                "message": "1 of 3 replicas is ready",
            }
        ],
    }
    assert collect(facts.as_uri(), after=5, signing=("ssh", str(own)), own="dub", branch=branch).commit is None
    assert list_used(cluster) <= list_granted(), "the manifests grant what is used"
    assert list_granted() <= list_used(cluster) | {("apps", "daemonsets", "list")}, "and nothing else"

    settings = CONFIG % f"{{clusterBranches: 'cluster-facts/{{cluster}}', repository: '{facts.as_uri()}', staleAfter: 24h}}"
    fleet = make_repository(tmp_path / "fleet", {"gitsched.yaml": settings, "web.yaml": WEB, "c.yaml": KARMADA})
    write_branch(facts, "cluster-facts/ash", make_facts("ash"), sign=other)
    keys = {"dub": (own.with_suffix(".pub").read_text(),), "ash": (own.with_suffix(".pub").read_text(),)}
    result = plan(fleet, tmp_path, after=7, facts_repository=facts.as_uri(), facts_keys=keys)
    assert list_codes(result) == {"facts-unsigned", "facts-incomplete"}
    (message,) = (finding.message for finding in result.plan.findings if finding.code == "facts-unsigned")
    assert "the facts branch cluster-facts/ash is not read" in message
    assert json.loads(git(fleet, "show", "placements:gitsched.json"))["facts"] == {branch: run.commit}
    head = git(fleet, "rev-parse", "placements")
    cluster.lists["/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations"] = [make_flux(f"placements@sha1:{head}")]
    collect(facts.as_uri(), after=8, signing=("ssh", str(own)), own="dub", branch=branch)
    chosen = RunSettings(
        NOW + timedelta(minutes=9), tmp_path / "cache", str(fleet), facts_repository=facts.as_uri(), facts_keys=keys
    )
    reports = {status.name: status.report for status in read_fleet_status(chosen).clusters}
    assert (reports["ash"], reports["dub"] and reports["dub"].commit) == (None, head)
    assert list_codes(plan(fleet, tmp_path, after=10)) == {"facts-repository"}, "the source alone cannot name a repository"


def list_used(cluster: RecordedCluster) -> set[tuple[str, str, str]]:
    """Return group, resource and verb of the requests for objects; the other paths are open to every account."""
    used = set()
    for verb, path in cluster.asked:
        assert verb == "GET"
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "v1"] and len(parts) == 3:
            used.add(("", parts[2], "list"))
        elif parts[0] == "apis" and len(parts) == 4:
            used.add((parts[1], parts[3], "list"))
        else:
            assert path in ("/version", "/readyz", "/api", "/apis"), path
    return used


def list_granted() -> set[tuple[str, str, str]]:
    bodies = yaml.safe_load_all((ROOT / "deploy" / "collect" / "rbac.yaml").read_text())
    rules = [rule for body in bodies if body["kind"] == "ClusterRole" for rule in body["rules"]]
    return {
        (group, name, verb) for rule in rules for group in rule["apiGroups"] for name in rule["resources"] for verb in rule["verbs"]
    }


HUB_CLUSTER = {
    "metadata": {"name": "dub", "labels": {"env": "prod"}, "uid": "x"},
    "spec": {
        "region": "eu-west-1",
        "provider": "aws",
        "secretRef": {"name": "dub", "namespace": "karmada-cluster"},
        "taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "cluster.karmada.io/not-ready", "effect": "NoSchedule"}],
    },
    "status": {
        "kubernetesVersion": "v1.33.1",
        "conditions": [
            {"type": "Ready", "status": "False", "reason": "ClusterNotReachable", "lastTransitionTime": "2026-03-01T07:00:00Z"}
        ],
        "apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment", "name": "deployments"}]}],
        "nodeSummary": {"totalNum": 3, "readyNum": 0},
        "resourceSummary": {
            "allocatable": {"cpu": "7910m", "memory": "31Gi"},
            "allocated": {"cpu": "1"},
            "allocatableModelings": [{"grade": 0, "count": 1}, {"grade": 2, "count": 2}],
        },
    },
}
MANAGED_CLUSTER = {
    "metadata": {"name": "cork", "labels": {"cluster.open-cluster-management.io/clusterset": "s"}},
    "spec": {"taints": [{"key": "cluster.open-cluster-management.io/unreachable", "effect": "NoSelect"}]},
    "status": {
        "version": {"kubernetes": "v1.32.0"},
        "conditions": [{"type": "ManagedClusterConditionAvailable", "status": "True"}],
        "allocatable": {"cpu": "8", "memory": "16Gi"},
        "capacity": {"cpu": "8", "memory": "17Gi"},
        "clusterClaims": [{"name": "region.open-cluster-management.io", "value": "eu"}],
    },
}
PROFILE = {
    "metadata": {"name": "galway-xyz", "labels": {"env": "test", "x-k8s.io/cluster-manager": "fleet"}},
    "spec": {"displayName": "galway", "clusterManager": {"name": "fleet"}},
    "status": {
        "version": {"kubernetes": "v1.31.2"},
        "conditions": [{"type": "ControlPlaneHealthy", "status": "True"}],
        "properties": [{"name": "location", "value": "eu-north-1"}],
    },
}


def test_hubs_and_profiles_are_read_and_proposed_as_documents(collect: Collect, cluster: RecordedCluster, tmp_path: Path) -> None:
    broken = {"metadata": {"name": "bad"}, "status": {"resourceSummary": {"allocatable": {"cpu": "-1"}}}}
    cluster.lists |= {
        "/apis/cluster.karmada.io/v1alpha1/clusters": [HUB_CLUSTER, broken, {"metadata": {"name": "../x"}}],
        "/apis/cluster.open-cluster-management.io/v1/managedclusters": [MANAGED_CLUSTER],
        "/apis/multicluster.x-k8s.io/v1alpha1/clusterprofiles": [PROFILE],
    }
    fleet = make_repository(tmp_path / "fleet", {"gitsched.yaml": CONFIG % "{branch: facts}"})
    run = collect(fleet, sources=(("karmada", ""), ("ocm", ""), ("clusterprofiles", "")))
    states = {result.cluster: result.failure for result in run.collection.results}
    assert {name: bool(failure) for name, failure in states.items()} == {"bad": True, "cork": False, "dub": False, "galway": False}
    assert "allocatable of cpu is '-1'" in states["bad"]
    assert run.collection.notes == ("a cluster of karmada is left out: '../x' is no name of a cluster",)
    dub = yaml.safe_load(git(fleet, "show", "facts:clusters/dub.yaml"))["status"]
    assert dub == {
        "observedAt": "2026-03-01T12:00:00Z",
        "ready": {"status": "False", "reason": "ClusterNotReachable", "since": "2026-03-01T07:00:00Z"},
        "kubernetesVersion": "v1.33.1",
        "nodes": {"total": 3, "ready": 0},
        "allocatable": {"cpu": "7910m", "memory": "31700Mi"},
        "allocated": {"cpu": "1"},
        "allocatableModelings": [{"grade": 0, "count": 1}, {"grade": 2, "count": 2}],
        "apis": {"apps/v1": ["Deployment"]},
    }
    for api, expected in (
        ("karmada", "cluster.karmada.io"),
        ("ocm", "cluster.open-cluster-management.io"),
        ("krake", "kubernetes"),
    ):
        files = propose_clusters(run.collection, api, tmp_path / api)
        assert [file.reason for file in files] == ["", "", ""], files
        bodies = {file.cluster: yaml.safe_load(file.text) for file in files}
        assert all(expected in str(body.get("apiVersion") or body.get("api")) for body in bodies.values())
        assert bodies["dub"]["metadata"]["labels"]["env"] == "prod"
    karmada = {file.cluster: yaml.safe_load(file.text) for file in propose_clusters(run.collection, "karmada", tmp_path)}
    assert karmada["dub"]["spec"]["taints"] == [{"key": "a", "effect": "NoSchedule"}], (
        "taints of controllers belong to nobody's document"
    )
    assert karmada["galway"]["spec"]["region"] == "eu-north-1"


def make_secret(name: str, server: str, config: Any, **labels: str) -> Any:
    values = {"name": name, "server": server, "config": config if isinstance(config, str) else json.dumps(config)}
    return {
        "metadata": {"name": f"cluster-{name}", "labels": {"argocd.argoproj.io/secret-type": "cluster", **labels}},
        "data": {key: base64.b64encode(text.encode()).decode() for key, text in values.items()},
    }


def test_no_value_of_an_argo_cd_secret_reaches_an_output(
    collect: Collect, cluster: RecordedCluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    canary = "CANARY5f3a"
    url = json.loads(cluster.write_kubeconfig(tmp_path / "k").read_text())["clusters"][0]["cluster"]["server"]
    tls = {"insecure": True, "caData": canary, "keyData": canary, "certData": canary}
    cluster.lists["/api/v1/namespaces/argocd/secrets"] = [
        make_secret("dub", url, {"bearerToken": canary}, env="prod"),
        make_secret("own", "https://kubernetes.default.svc", {"bearerToken": canary}),
        make_secret("exec", "https://a.example.com", {"execProviderConfig": {"command": canary}}),
        make_secret("plain", f"http://{canary}.example.com", {"bearerToken": canary}),
        make_secret("broken", "https://a.example.com", f"{{{canary}"),
        make_secret("tls", "https://127.0.0.1:1", {"username": "u", "password": canary, "tlsClientConfig": tls}),
        make_secret("Not-A-Name", "https://a.example.com", {}),
    ]
    fleet = make_repository(tmp_path / "fleet", {"gitsched.yaml": CONFIG % "{branch: facts}"})
    run = collect(fleet, sources=(("argocd", ""),))
    states = {result.cluster: bool(result.failure) for result in run.collection.results}
    assert states == {"dub": False, "own": False, "tls": True}
    assert len(run.collection.notes) == 4
    assert "cluster-exec of argocd is left out: it has execProviderConfig" in run.collection.notes[0]
    (tmp_path / "new").mkdir()
    texts = [file.text for file in propose_clusters(run.collection, "karmada", tmp_path / "new")]
    printed = capfd.readouterr()
    committed = git(fleet, "log", "-p", "--all")
    for text in (*texts, *run.collection.notes, *(result.failure for result in run.collection.results), committed, *printed):
        assert canary not in text
        assert base64.b64encode(canary.encode()).decode()[:12] not in text
    assert "env: prod" in texts[0]


def test_a_bad_label_of_a_cluster_does_not_keep_its_document_from_being_proposed(
    collect: Collect, cluster: RecordedCluster, tmp_path: Path
) -> None:
    bad = {"kind": "Cluster", "metadata": {"name": "dub", "labels": {"env": "prod", "region": "eu north!"}}}
    bad["spec"] = {"syncMode": "Pull", "region": "eu north", "taints": [{"key": "a b", "effect": "NoSchedule"}]}
    cluster.lists["/apis/cluster.karmada.io/v1alpha1/clusters"] = [bad]
    fleet = make_repository(tmp_path / "fleet", {"gitsched.yaml": CONFIG % "{branch: facts}"})
    run = collect(fleet, sources=(("karmada", ""),))
    for api in ("karmada", "ocm", "krake"):
        (file,) = propose_clusters(run.collection, api, tmp_path)
        assert file.reason == ""
        labels = yaml.safe_load(file.text)["metadata"]["labels"]
        assert labels["env"] == "prod"
        assert "eu north!" not in labels.values()
        assert "the label region: 'eu north!' is left out: Kubernetes does not accept it" in file.notes
    (tmp_path / "dub.yaml").symlink_to(tmp_path / "nowhere")
    assert propose_clusters(run.collection, "karmada", tmp_path)[0].reason == "it exists", "a symlink of a commit is not followed"


@pytest.mark.parametrize(
    ("facts", "chosen", "message"),
    [
        ("{}", {"contexts": ("dub=fake",)}, "source.facts.branch is not set"),
        ("{branch: facts}", {"own": "dub"}, "source.facts.clusterBranches is not set"),
        ("{branch: facts, repository: 'https://example.com/x'}", {"contexts": ("dub=fake",)}, "the operator does not name it"),
    ],
)
def test_without_a_branch_nothing_is_requested(
    collect: Collect, cluster: RecordedCluster, tmp_path: Path, facts: str, chosen: Any, message: str
) -> None:
    fleet = make_repository(tmp_path / "fleet", {"gitsched.yaml": CONFIG % facts})
    with pytest.raises(Permanent, match=message):
        collect(fleet, **chosen)
    assert cluster.asked == []


def test_a_resident_process_writes_the_same_commit_as_a_new_one(tmp_path: Path) -> None:
    fleet = make_repository(
        tmp_path / "fleet", {"gitsched.yaml": CONFIG % "{branch: facts, stale: evict}", "web.yaml": WEB, "c.yaml": KARMADA}
    )
    observe(fleet, dub=0, ash=30)
    resident = open_context(RunSettings(NOW, tmp_path / "cache", str(fleet)))
    run(resident, NOW + timedelta(minutes=31))
    first = git(fleet, "rev-parse", "placements")
    (fleet / "web.yaml").write_text(WEB.replace("replicas: 6", "replicas: 7"))
    git(fleet, "commit", "-qam", "More", "--date=2026-03-01T12:40:00Z")
    found = []
    for context in (resident, open_context(RunSettings(NOW, tmp_path / "other", str(fleet)))):
        git(fleet, "update-ref", "refs/heads/placements", first)
        run(context, NOW + timedelta(minutes=70))
        found.append(git(fleet, "rev-parse", "placements"))
    assert found[0] == found[1] != first, "facts about a cluster became stale in between"


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("Dub_1", "'Dub_1' is no name of a cluster"),
        ("../x=fake", "'../x' is no name of a cluster"),
        ("--kubeconfig=x", "'--kubeconfig' is no name of a cluster"),
        ("dub=", "the name of the context is empty"),
    ],
)
def test_a_context_that_cannot_be_observed_as_written_is_a_failure(
    collect: Collect, tmp_path: Path, written: str, reason: str
) -> None:
    fleet = make_repository(tmp_path / "fleet", {"gitsched.yaml": CONFIG % "{branch: facts}"})
    run = collect(fleet, contexts=(written, "ash=fake"))
    assert [result.cluster for result in run.collection.results] == ["ash"], "the others are observed"
    ((failure, temporary),) = run.collection.failures
    assert (failure.startswith(f"--context {written}: {reason}"), temporary) == (True, False), failure


def test_a_name_of_the_kubeconfig_with_an_equals_sign_is_no_other_context() -> None:
    found = find_contexts((), KubectlOptions(), ("dub", "ash=dub"))
    assert [(target.cluster, target.options.context) for target in found.targets] == [("dub", "dub")]
    assert found.notes == (
        "the context ash=dub is left out: 'ash=dub' is no name of a cluster; name it with --context CLUSTER=ash=dub",
    )
    (target,) = find_contexts(("ash=ash=dub",), KubectlOptions()).targets
    assert target.options.context == "ash=dub"


def test_without_contexts_nothing_is_collected(tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="the kubeconfig has no contexts"):
        list_all_contexts(KubectlOptions("", str(tmp_path / "none")))
