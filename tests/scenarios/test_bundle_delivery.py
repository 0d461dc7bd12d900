"""Bundles that Flux or Argo CD builds: what they build at the commit is what gitsched writes with delivery manifests."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitsched.build.helm import find_helm
from gitsched.reconcile import Reconciler
from gitsched.reconcile.review.comparison import compare_plans
from tests.upstream_schemas import validate

from .conftest import Fleet, cluster, deployment, execute
from .conftest import policy as policy_of

URL = "https://git.example.com/platform/fleet.git"
SETTINGS = f"""\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {{name: gitsched}}
spec: {{delivery: {{source: {{url: {URL}}}}}}}
"""
NO_SETTINGS = SETTINGS.replace(URL, "''").replace("{url: ''}", "{}")
BUNDLE = """\
apiVersion: gitsched.io/v1alpha1
kind: Bundle
metadata: {{name: web, namespace: shop}}
spec:
  delivery: {delivery}
  values: {values}
  variants:
  - {{path: apps/web/first, clusters: {{names: [first]}}}}
  - {{path: apps/web/second, clusters: {{names: [second]}}}}
"""
CHART_BUNDLE = """\
apiVersion: gitsched.io/v1alpha1
kind: Bundle
metadata: {{name: web, namespace: shop}}
spec:
  delivery: {delivery}
  path: charts/web
  helm: {{namespace: shop, valuesFiles: [values/common.yaml], values: {{tag: "3"}}}}
  values: {{region: cluster.name}}
"""
POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {{name: web, namespace: shop}}
spec:
  resourceSelectors: [{{apiVersion: gitsched.io/v1alpha1, kind: Bundle, name: web}}]
  placement:
    clusterAffinity: {{clusterNames: [first, second]}}
    replicaScheduling: {{replicaSchedulingType: {type}, replicaDivisionPreference: Weighted}}
"""
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1"}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {region: "${region}", logo: kept}
"""
BASE = {
    "gitsched.yaml": SETTINGS,
    **{f"clusters/{name}.yaml": cluster(name) for name in ("first", "second")},
    "apps/web/base/web.yaml": WEB,
    "apps/web/base/kustomization.yaml": "resources: [web.yaml]\nconfigMapGenerator: [{name: logo, files: [logo.png]}]\n",
    "apps/web/base/logo.png": "not really",
    # Flux reads this file, too: the rules of a GitRepository take precedence.
    "apps/web/.sourceignore": "base/\n",
    **{
        f"apps/web/{name}/kustomization.yaml": f"namespace: shop\nnamePrefix: {name}-\nresources: [../base]\n"
        for name in ("first", "second")
    },
}
CHART = {
    "gitsched.yaml": SETTINGS,
    **{f"clusters/{name}.yaml": cluster(name) for name in ("first", "second")},
    "charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "charts/web/values.yaml": "tag: '1'\ncolor: blue\nsize: small\n",
    "values/common.yaml": "tag: '2'\nsize: large\n",
    "charts/web/templates/web.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}', namespace: '{{ .Release.Namespace }}'}\n"
        "data: {tag: '{{ .Values.tag }}', color: '{{ .Values.color }}', size: '{{ .Values.size }}', region: '{{ .Values.region }}'}\n"
    ),
}
FLUX = "clusters/{0}/flux-system/{1}-shop.web.yaml"
REPOSITORY, KUSTOMIZATION, RELEASE = (
    "gitrepository.source.toolkit.fluxcd.io",
    "kustomization.kustomize.toolkit.fluxcd.io",
    "helmrelease.helm.toolkit.fluxcd.io",
)
APPLICATION = "hub/argocd/{0}/application.argoproj.io-shop.web.{0}.yaml"


def bundle(delivery: str, values: str = "{region: cluster.name}", text: str = BUNDLE) -> dict[str, str]:
    return {"bundle.yaml": text.format(delivery=delivery, values=values)}


def policy(kind: str = "Duplicated") -> dict[str, str]:
    return {"policy.yaml": POLICY.format(type=kind)}


def codes(run: Any) -> set[str]:
    return {finding.code for finding in run.plan.findings if finding.severity != "info"}


def delivered(fleet: Fleet, name: str) -> dict[tuple[str, str], Any]:
    """Return the objects that the directory of a cluster has of the bundle, by kind and name."""
    paths = [path for path in fleet.files() if path.startswith(f"clusters/{name}/shop/")]
    return index(fleet.load(path) for path in paths)


def index(objects: Any) -> dict[tuple[str, str], Any]:
    return {(body["kind"], body["metadata"]["name"]): body for body in objects if body}


def fetch_artifact(fleet: Fleet, repository: Any, into: Path) -> Path:
    """Check out what Flux keeps of a GitRepository at its commit: `/*` excludes everything, and `!/path` includes a directory or file."""
    validate(repository)
    first, *rules = repository["spec"]["ignore"].splitlines()
    assert first == "/*"
    assert all(rule.startswith("!/") for rule in rules)
    into.mkdir(parents=True)
    archive = into.with_suffix(".tar")
    fleet.git("archive", "-o", str(archive), repository["spec"]["ref"]["commit"], *(rule.removeprefix("!/") for rule in rules))
    subprocess.run(["tar", "-xf", str(archive), "-C", str(into)], check=True)
    return into


def build_as_flux(fleet: Fleet, name: str, into: Path) -> dict[tuple[str, str], Any]:
    """Build the Kustomization of a cluster: patches are added to those of the root, and values are substituted in what it prints."""
    artifact = fetch_artifact(fleet, fleet.load(FLUX.format(name, REPOSITORY)), into)
    kustomization = fleet.load(FLUX.format(name, KUSTOMIZATION))
    validate(kustomization)
    spec = kustomization["spec"]
    root = artifact / spec["path"]
    file = root / "kustomization.yaml"
    content = yaml.safe_load(file.read_text())
    content["patches"] = [*content.get("patches", []), *spec.get("patches", [])]
    file.write_text(yaml.safe_dump(content))
    return index(yaml.safe_load_all(substitute(kustomize(root), spec.get("postBuild", {}).get("substitute", {}))))


def kustomize(root: Path) -> str:
    command = ["kubectl", "kustomize", "--load-restrictor", "LoadRestrictionsNone", str(root)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def substitute(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"${{{name}}}", value)
    return text


@pytest.mark.parametrize("division", ["Duplicated", "Divided"])
def test_flux_builds_what_gitsched_would_write(fleet: Fleet, tmp_path: Path, division: str) -> None:
    fleet.commit({**BASE, **policy(division), **bundle("manifests")})
    assert codes(fleet.reconcile()) == set()
    written = {name: delivered(fleet, name) for name in ("first", "second")}
    assert len(written["first"]) == 3
    assert {
        body["spec"]["replicas"] for objects in written.values() for body in objects.values() if body["kind"] == "Deployment"
    } == ({3} if division == "Duplicated" else {1, 2})
    fleet.commit(bundle("flux"), hour=1)
    run = fleet.reconcile(1)
    assert codes(run) == {"bundle-delivery-changed"}
    (message,) = [finding.message for finding in run.plan.findings if finding.code == "bundle-delivery-changed"]
    assert "deletes them, and flux creates them again" in message
    assert "kustomize.toolkit.fluxcd.io/prune: disabled" in message
    assert message.endswith("wait until the clusters have that, and change spec.delivery then")
    for name, objects in written.items():
        assert build_as_flux(fleet, name, tmp_path / name) == objects
        assert delivered(fleet, name) == {}
        assert f"clusters/{name}/_/namespace-shop.yaml" in fleet.files()
    output = fleet.checkout(tmp_path / "output")
    assert "GitRepository" in kustomize(output / "clusters/first")


def test_the_commit_changes_only_with_what_the_build_reads(fleet: Fleet) -> None:
    def read_commits() -> list[str]:
        return [fleet.load(FLUX.format(name, REPOSITORY))["spec"]["ref"]["commit"] for name in ("first", "second")]

    first = fleet.commit({**BASE, **policy(), **bundle("flux")})
    assert codes(fleet.reconcile()) == set()
    assert read_commits() == [first, first]
    fleet.commit({"README.md": "Unrelated."}, hour=1)
    assert fleet.reconcile(1).after is None
    fleet.git("branch", "-m", "main", "trunk")
    assert fleet.reconcile(1).after is None
    overlay = fleet.commit({"apps/web/second/kustomization.yaml": "namespace: shop\nresources: [../base]\n"}, hour=2)
    assert fleet.reconcile(2).after is not None
    assert read_commits() == [first, overlay]
    base = fleet.commit({"apps/web/base/web.yaml": WEB.replace("web:1", "web:2")}, hour=3)
    fleet.reconcile(3)
    assert read_commits() == [base, base]
    # What one earlier commit had is at a new commit again.
    again = fleet.commit({"apps/web/base/web.yaml": WEB}, hour=4)
    fleet.reconcile(4, cache=fleet.cache / "other")
    assert read_commits() == [again, again]
    assert fleet.load("status/gitsched.io/bundle/shop/web.yaml")["status"]["variants"][0]["commit"] == again


def test_a_commit_that_left_the_history_is_replaced(fleet: Fleet) -> None:
    fleet.commit({**BASE, **policy(), **bundle("flux")})
    fleet.reconcile()
    fleet.git("checkout", "-q", "--orphan", "rewritten")
    commit = fleet.commit(hour=1)
    fleet.git("branch", "-M", "rewritten", "main")
    fleet.reconcile(1)
    assert fleet.load(FLUX.format("first", REPOSITORY))["spec"]["ref"]["commit"] == commit


@pytest.mark.needs("helm")
def test_flux_and_argocd_render_the_chart_that_gitsched_would_write(fleet: Fleet, tmp_path: Path) -> None:
    fleet.commit({**CHART, **policy(), **bundle("manifests", text=CHART_BUNDLE)})
    assert codes(fleet.reconcile()) == set()
    written = {name: delivered(fleet, name) for name in ("first", "second")}
    assert written["second"]["ConfigMap", "web"]["data"] == {"tag": "3", "color": "blue", "size": "large", "region": "second"}
    fleet.commit(bundle("flux", text=CHART_BUNDLE), hour=1)
    fleet.reconcile(1)
    fleet.commit(bundle("argocd", text=CHART_BUNDLE), hour=2)
    flux, argocd = fleet.git("rev-parse", "placements"), fleet.reconcile(2).after
    for name, objects in written.items():
        repository, release = (fleet.load(FLUX.format(name, kind), flux) for kind in (REPOSITORY, RELEASE))
        validate(release)
        artifact = fetch_artifact(fleet, repository, tmp_path / name)
        spec = release["spec"]
        files = [artifact / file for file in spec["chart"]["spec"]["valuesFiles"]]
        # source-controller writes the merged files in place of the values.yaml of the chart.
        (artifact / "charts/web/values.yaml").write_text(yaml.safe_dump(merge(files)))
        assert (
            render(artifact / spec["chart"]["spec"]["chart"], spec["releaseName"], spec["targetNamespace"], [], spec["values"])
            == objects
        )
        application = fleet.load(APPLICATION.format(name), str(argocd))
        validate(application)
        source, destination = application["spec"]["source"], application["spec"]["destination"]
        helm = source["helm"]
        tree = tmp_path / f"{name}-argocd"
        execute("worktree", "add", "-q", "--detach", str(tree), source["targetRevision"], at=fleet.path)
        paths = [tree / file.removeprefix("/") for file in helm["valueFiles"]]
        assert destination == {"name": name, "namespace": "shop"}
        rendered = render(tree / source["path"], helm["releaseName"], destination["namespace"], paths, helm["valuesObject"])
        assert rendered == objects


def merge(files: list[Path]) -> dict[str, Any]:
    return {name: value for file in files for name, value in yaml.safe_load(file.read_text()).items()}


def render(chart: Path, release: str, namespace: str, files: list[Path], values: dict[str, Any]) -> dict[tuple[str, str], Any]:
    options = [option for file in files for option in ("-f", str(file))]
    command = [str(find_helm({}).executable), "template", release, str(chart), "--namespace", namespace, *options, "-f", "-"]
    done = subprocess.run(command, input=yaml.safe_dump(values), capture_output=True, text=True, check=True)
    return index(yaml.safe_load_all(done.stdout))


def test_argocd_builds_what_gitsched_would_write(fleet: Fleet, tmp_path: Path) -> None:
    files = {**BASE, "apps/web/base/web.yaml": WEB.replace("${region}", "north")}
    fleet.commit({**files, **policy("Divided"), **bundle("manifests", "{}")})
    fleet.reconcile()
    written = {name: delivered(fleet, name) for name in ("first", "second")}
    fleet.commit(bundle("argocd", "{}"), hour=1)
    fleet.reconcile(1)
    for name, objects in written.items():
        application = fleet.load(APPLICATION.format(name))
        validate(application)
        source = application["spec"]["source"]
        assert application["spec"]["destination"] == {"name": name, "namespace": "shop"}
        tree = tmp_path / name
        execute("worktree", "add", "-q", "--detach", str(tree), source["targetRevision"], at=fleet.path)
        file = tree / source["path"] / "kustomization.yaml"
        content = yaml.safe_load(file.read_text())
        file.write_text(yaml.safe_dump({**content, **source["kustomize"]}))
        assert index(yaml.safe_load_all(kustomize(file.parent))) == objects
    output = fleet.checkout(tmp_path / "output")
    applied = list(yaml.safe_load_all(kustomize(output / "hub/argocd")))
    assert [body["metadata"]["name"] for body in applied] == ["gitsched-applications", "shop.web.first", "shop.web.second"]


def test_the_directory_of_the_hub_stays_without_applications(fleet: Fleet) -> None:
    files = {**BASE, "apps/web/base/web.yaml": WEB.replace("${region}", "north")}
    fleet.commit({**files, **policy(), **bundle("argocd", "{}")})
    fleet.reconcile()
    fleet.commit({"policy.yaml": None}, hour=1)
    fleet.reconcile(1)
    hub = sorted(path for path in fleet.files() if path.startswith("hub/"))
    assert hub == ["hub/argocd/gitsched-applications.yaml", "hub/argocd/kustomization.yaml"]
    assert fleet.load("hub/argocd/kustomization.yaml")["resources"] == ["gitsched-applications.yaml"]


def test_clusters_have_other_names_in_argocd(fleet: Fleet) -> None:
    annotated = cluster("second").replace(
        "name: second\n", "name: second\n  annotations: {gitsched.io/argocd-destination: 'https://s:6443'}\n"
    )
    files = {**BASE, "apps/web/base/web.yaml": WEB.replace("${region}", "north"), "clusters/second.yaml": annotated}
    settings = SETTINGS.replace("delivery: {", 'delivery: {argocd: {destination: "eu-{cluster}"}, ')
    fleet.commit({**files, **policy(), **bundle("argocd", "{}"), "gitsched.yaml": settings})
    assert codes(fleet.reconcile()) == set()
    destinations = [fleet.load(APPLICATION.format(name))["spec"]["destination"] for name in ("first", "second")]
    assert [destination | {"namespace": ""} for destination in destinations] == [
        {"name": "eu-first", "namespace": ""},
        {"server": "https://s:6443", "namespace": ""},
    ]


def test_what_a_tool_cannot_build_is_an_error_and_clusters_keep_what_they_have(fleet: Fleet) -> None:
    fleet.commit({**BASE, **policy(), **bundle("flux")})
    fleet.reconcile()
    before = {path: blob for path, blob in fleet.files().items() if "shop.web" in path}
    fleet.commit(bundle("argocd"), hour=1)
    run = fleet.reconcile(1)
    (finding,) = [finding for finding in run.plan.findings if finding.code == "bundle-delivery"]
    assert (finding.severity, str(finding.location)) == ("error", "bundle.yaml:5:13")
    assert "${region}" in finding.message
    assert "first, second" in finding.message
    assert {path: blob for path, blob in fleet.files().items() if "shop.web" in path} == before


def test_without_a_url_nothing_is_delivered(fleet: Fleet) -> None:
    fleet.git("remote", "add", "origin", "/srv/git/fleet.git")
    fleet.commit({**BASE, **policy(), **bundle("flux"), "gitsched.yaml": NO_SETTINGS})
    run = fleet.reconcile()
    (finding,) = [finding for finding in run.plan.findings if finding.code == "bundle-delivery"]
    assert "set spec.delivery.source.url" in finding.message
    assert not [path for path in fleet.files() if "shop.web" in path]


def test_the_url_of_the_remote_is_used_without_credentials(fleet: Fleet) -> None:
    fleet.git("remote", "add", "origin", "https://bot:hunter2@git.example.com/platform/fleet.git")
    fleet.commit({**BASE, **policy(), **bundle("flux"), "gitsched.yaml": NO_SETTINGS})
    run = fleet.reconcile()
    assert "delivery-source-url" in {finding.code for finding in run.plan.findings}
    assert fleet.load(FLUX.format("first", REPOSITORY))["spec"]["url"] == URL
    assert "hunter2" not in "".join(fleet.git("show", f"placements:{path}") for path in fleet.files())


def test_a_review_has_the_digest_of_its_merge(fleet: Fleet) -> None:
    """The commit to build is another one after the merge; it is not a part of what is reviewed."""
    fleet.commit({**BASE, **policy(), **bundle("flux")})
    fleet.reconcile()
    fleet.git("checkout", "-q", "-b", "change")
    fleet.commit({"apps/web/base/web.yaml": WEB.replace("web:1", "web:2")}, hour=1)
    reviewed = compare_plans(fleet.settings(1)).review.comparison.digest
    fleet.git("checkout", "-q", "main")
    fleet.git("merge", "-q", "--squash", "change")
    fleet.record(2)
    assert compare_plans(fleet.settings(2)).review.comparison.digest == reviewed


@pytest.mark.parametrize("delivery", ["flux", "argocd"])
def test_a_resident_process_writes_the_same_output(fleet: Fleet, delivery: str) -> None:
    """With caches, and with plans of only the workloads that changed, the output is that of a new process."""
    own = {"apps/own.yaml": deployment("own"), "own-policy.yaml": policy_of("first")}
    changes: list[dict[str, str | bytes | None]] = [
        {**BASE, **policy("Divided"), **bundle(delivery, "{}"), **own, "apps/web/base/web.yaml": WEB.replace("${region}", "north")},
        {"apps/own.yaml": deployment("own", 5)},
        {"apps/web/first/kustomization.yaml": "namespace: shop\nresources: [../base]\nreplicas: [{name: web, count: 7}]\n"},
        {"apps/own.yaml": deployment("own", 6)},
        {"gitsched.yaml": SETTINGS.replace("delivery: {", "delivery: {flux: {interval: 1h}, argocd: {project: fleet}, ")},
        {"clusters/second.yaml": cluster("second", "broken:NoExecute")},
        {"clusters/second.yaml": None},
        {"bundle.yaml": None},
    ]
    resident = Reconciler(fleet.settings(output_branch="resident"))
    for hour, change in enumerate(changes):
        fleet.commit(change, hour=hour)
        resident.run(fleet.settings(hour).now)
        fleet.reconcile(hour, cache=fleet.cache / str(hour), output_branch="fresh")
        assert fleet.git("rev-parse", "resident^{tree}") == fleet.git("rev-parse", "fresh^{tree}"), change
        assert fleet.preview(hour, output_branch="fresh").changed is False


def test_a_prefix_of_the_output_holds_the_hub(fleet: Fleet) -> None:
    settings = SETTINGS.replace("spec: {", "spec: {output: {path: fleet}, ")
    files = {**BASE, "apps/web/base/web.yaml": WEB.replace("${region}", "north"), "gitsched.yaml": settings}
    fleet.commit({**files, **policy(), **bundle("argocd", "{}")})
    fleet.reconcile()
    assert f"fleet/{APPLICATION.format('first')}" in fleet.files()
    broken = {"apps/web/first/kustomization.yaml": "resources: [missing.yaml]\n"}
    before = fleet.files()[f"fleet/{APPLICATION.format('first')}"]
    fleet.commit(broken, hour=1)
    fleet.reconcile(1)
    assert fleet.files()[f"fleet/{APPLICATION.format('first')}"] == before


def test_the_plan_of_a_branch_shows_only_its_own_changes(fleet: Fleet) -> None:
    """The commit of a variant may be one that only the base branch has; the planned merge contains it."""
    fleet.commit({**BASE, **policy(), **bundle("flux")})
    fleet.git("branch", "change")
    fleet.commit({"apps/web/first/kustomization.yaml": "namespace: shop\nresources: [../base]\n"}, hour=1)
    fleet.reconcile(1)
    fleet.git("checkout", "-q", "change")
    fleet.commit({"apps/web/second/kustomization.yaml": "namespace: shop\nresources: [../base]\n"}, hour=2)
    fleet.git("checkout", "-q", "main")
    review = compare_plans(fleet.settings(3, revision="change"), "main").review
    assert review.comparison.delivery is not None
    assert {(change.path, change.clusters) for change in review.comparison.delivery.rendered} == {
        ("flux-system/gitrepository.source.toolkit.fluxcd.io-shop.web.yaml", ("second",))
    }
    fleet.git("update-ref", "-d", "refs/heads/placements")
    review = compare_plans(fleet.settings(3, revision="change"), "main").review
    assert review.comparison.delivery is not None
    assert {change.clusters for change in review.comparison.delivery.rendered} == {("second",)}


SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: token, namespace: shop}
stringData: {token: "ENC[AES256_GCM,data:dA==,iv:x,tag:y,type:str]"}
sops:
  mac: ENC[AES256_GCM,data:bWFj,iv:x,tag:y,type:str]
  lastmodified: "2026-01-01T00:00:00Z"
  encrypted_regex: ^stringData$
  version: 3.9.4
"""
OTHER = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: other}\n"


@pytest.mark.parametrize(
    ("delivery", "content", "cure"),
    [
        ("flux", {"secret.yaml": SECRET}, "set spec.delivery.flux.decryption.secretName"),
        ("argocd", {"secret.yaml": SECRET}, "use delivery flux"),
        ("argocd", {"other.yaml": OTHER}, "does not create the namespaces other, shop; add Namespaces to the bundle"),
    ],
)
def test_what_a_tool_lacks_is_a_warning(fleet: Fleet, delivery: str, content: dict[str, str], cure: str) -> None:
    """The bundle is delivered all the same."""
    web = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\n"
    files = {f"apps/web/{name}/{path}": text for name in ("first", "second") for path, text in {"web.yaml": web, **content}.items()}
    lists = {
        f"apps/web/{name}/kustomization.yaml": f"resources: [web.yaml, {next(iter(content))}]\n" for name in ("first", "second")
    }
    fleet.commit({**BASE, **files, **lists, **policy(), **bundle(delivery, "{}")})
    run = fleet.reconcile()
    (finding,) = [finding for finding in run.plan.findings if finding.code == "bundle-delivery"]
    assert finding.severity == "warning"
    assert cure in finding.message
    assert [path for path in fleet.files() if "shop.web" in path]


def test_files_outside_of_a_kustomization_need_an_option_of_argocd(fleet: Fleet) -> None:
    overlays = {
        f"apps/web/{name}/kustomization.yaml": "namespace: shop\nconfigMapGenerator: [{name: logo, files: [../base/logo.png]}]\n"
        for name in ("first", "second")
    }
    fleet.commit({**BASE, **overlays, **policy(), **bundle("argocd", "{}")})
    (finding,) = [finding for finding in fleet.reconcile().plan.findings if finding.code == "bundle-delivery"]
    assert "--load-restrictor LoadRestrictionsNone" in finding.message


def test_an_ssh_url_needs_a_secret(fleet: Fleet) -> None:
    settings = SETTINGS.replace(URL, "git@git.example.com:platform/fleet.git")
    fleet.commit({**BASE, **policy(), **bundle("flux"), "gitsched.yaml": settings})
    (finding,) = [finding for finding in fleet.reconcile().plan.findings if finding.code == "bundle-delivery"]
    assert (finding.severity, "set spec.delivery.source.secretName" in finding.message) == ("warning", True)
    secret = settings.replace("fleet.git}", "fleet.git, secretName: fleet-read}")
    fleet.commit({"gitsched.yaml": secret}, hour=1)
    assert codes(fleet.reconcile(1)) == {"sensitive-setting"}
    assert fleet.load(FLUX.format("first", REPOSITORY))["spec"]["secretRef"] == {"name": "fleet-read"}


WORK = """\
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {{name: all}}
spec: {{clusterSelector: {{selectorType: LabelSelector, labelSelector: {{}}}}}}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {{name: all, namespace: shop}}
spec: {{clusterSet: all}}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {{name: all, namespace: shop}}
spec: {{}}
---
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata: {{name: work, namespace: shop}}
spec:
  placementRefs: [{{name: all}}]
  manifestWorkTemplate:
    workload:
      manifests:
      - {{apiVersion: v1, kind: ConfigMap, metadata: {{name: own, namespace: shop}}}}
      - apiVersion: gitsched.io/v1alpha1
        kind: Bundle
        metadata: {{name: web, namespace: shop}}
        spec: {{path: apps/web/first, delivery: {delivery}, values: {values}}}
"""
MANAGED = """\
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: first}
spec: {hubAcceptsClient: true}
"""


def test_a_bundle_in_a_work_of_open_cluster_management_is_delivered(fleet: Fleet) -> None:
    def list_own() -> list[str]:
        return [path for path in fleet.files() if path.startswith("clusters/first/shop/") or "shop.web" in path]

    own = "clusters/first/shop/configmap-own.yaml"
    source = {name: text for name, text in BASE.items() if not name.startswith("clusters/")}
    fleet.commit({**source, "first.yaml": MANAGED, "work.yaml": WORK.format(delivery="argocd", values="{}")})
    assert codes(fleet.reconcile()) == set()
    assert list_own() == [own, APPLICATION.format("first")]
    fleet.commit({"work.yaml": WORK.format(delivery="argocd", values="{region: cluster.name}")}, hour=1)
    assert codes(fleet.reconcile(1)) == {"bundle-delivery"}
    assert list_own() == [own, APPLICATION.format("first")]
    fleet.commit({"work.yaml": WORK.format(delivery="flux", values="{region: cluster.name}")}, hour=2)
    fleet.reconcile(2)
    assert list_own() == [FLUX.format("first", REPOSITORY), FLUX.format("first", KUSTOMIZATION), own]


def test_clusters_keep_the_objects_of_the_commit_that_the_finding_names(fleet: Fleet) -> None:
    built = fleet.commit(
        {**BASE, **policy(), **bundle("manifests", "{}"), "apps/web/base/web.yaml": WEB.replace("${region}", "north")}
    )
    fleet.reconcile()
    fleet.commit({"apps/web/first/kustomization.yaml": "resources: [../base, missing.yaml]\n"}, hour=1)
    for hour in (1, 2):
        run = fleet.reconcile(hour)
        (message,) = [finding.message for finding in run.plan.findings if finding.code == "bundle-no-variant"]
        assert message.endswith(f"first keeps what it has, from commit {built[:10]}")
        fleet.commit({"note.txt": str(hour)}, hour=hour + 1)
