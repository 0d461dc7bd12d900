"""What a tenant can do to others: nothing. Attacks of a hostile tenant, the Tenants that count, and what keeps running."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from gitsched.git.repository import Repository
from gitsched.model.errors import Permanent
from gitsched.model.explanation import Explanation
from gitsched.reconcile import RunResult
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.reconcile.review.fleet_tree import read_fleet_tree
from gitsched.report.fleet_status import write_fleet_status

from .conftest import Fleet, cluster, deployment, policy

TABLE: Any = yaml.safe_load(Path(__file__).with_name("tenants.yaml").read_text())
BASE: Mapping[str, str] = TABLE["base"]
METADATA = ("README.md", "gitsched.json", "hydrator.metadata")
CLUSTER_ROLE = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: mine}\nrules: []\n"
PLACE_ROLES = """\
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: roles}
spec:
  resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}]
  placement: {clusterAffinity: {clusterNames: [dub-1]}}
"""
RULES = {
    "tenant-namespace": "namespaces:",
    "tenant-cluster": "clusters:",
    "tenant-kind": ("spec:", "clusterKinds:", "paths:"),
    "tenant-limit": ("20,", '"4"'),
    "tenant-priority": "spec:",
    "tenant-read": "spec:",
    "tenant-identity": ("spec:", "paths:"),
}
"""What the Tenant of team-a has where the findings say that the rule is: the field, or what is around it if it has none."""
ROLES = {"teams/a/role.yaml": f"{CLUSTER_ROLE}---\n{PLACE_ROLES}"}
ROLE_FILE = "clusters/dub-1/_/clusterrole.rbac.authorization.k8s.io-mine.yaml"
FROZEN = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: config}\nspec: {guard: {freeze: audit}}\n"
WITH_ROLES = BASE["tenants/a.yaml"].replace("clusterKinds: [", "clusterKinds: [{kind: ClusterRole}, ")


class Shared(NamedTuple):
    """A repository whose base is reconciled, the commit of the base, and the output of a preview of it."""

    fleet: Fleet
    commit: str
    files: Mapping[str, str]


def list_files(fleet: Fleet, run: RunResult) -> dict[str, str]:
    return fleet.files(run.tree)


OWN_RECORDS = (
    "status/apps.karmada.io/workloadrebalancer/_/r.yaml",
    "status/policy.karmada.io/clustertaintpolicy/_/t.yaml",
    "placements/knative-eventing/statefulset-kafkasource-mt-adapter.yaml",
)
"""Records about documents of team-a, and of the adapter that runs its event sources with those of others."""


def belongs_to_others(path: str) -> bool:
    """Whether a file of the output is none of team-a's: the NetworkPolicy and the ResourceQuota in its namespace are the platform's."""
    if path in METADATA or path in OWN_RECORDS or path.endswith(("/cluster.json", "/kustomization.yaml")):
        return False
    if any(name in path for name in ("networkpolicy", "resourcequota")):
        return True
    return not ("/team-a/" in path or "namespace-team-a" in path)


def list_codes(run: RunResult) -> list[str]:
    return sorted({finding.code for finding in run.plan.findings if finding.code.startswith("tenant-")})


@pytest.fixture(scope="module", autouse=True)
def _trees_of_previews() -> Iterator[None]:
    """Write the trees of previews to the repository, where the tests read them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Repository, "make_tree", Repository.write_tree)
        yield


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    fleet = Fleet(tmp_path_factory.mktemp("tenants") / "fleet", tmp_path_factory.mktemp("cache"))
    commit = fleet.commit(BASE)
    fleet.reconcile()
    return Shared(fleet, commit, list_files(fleet, fleet.preview()))


@pytest.fixture
def tenants(fleet: Fleet) -> Fleet:
    """Return the base, reconciled."""
    fleet.commit(BASE)
    fleet.reconcile()
    return fleet


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row["attack"], marks=[pytest.mark.needs("helm")] if row["attack"].startswith("chart") else [])
        for row in TABLE["attacks"]
    ],
)
def test_a_tenant_changes_nothing_of_others(shared: Shared, row: Mapping[str, Any]) -> None:
    fleet = shared.fleet
    fleet.git("reset", "-q", "--hard", shared.commit)
    fleet.commit(row["files"])
    run = fleet.preview()
    files = list_files(fleet, run)
    changed = [path for path in sorted(files.keys() | shared.files.keys()) if files.get(path) != shared.files.get(path)]
    assert [path for path in changed if belongs_to_others(path)] == []
    assert list_codes(run) == row["codes"]
    located = [finding for finding in run.plan.findings if finding.code.startswith("tenant-")]
    assert all(finding.location is not None and finding.location.path.startswith("teams/a/") for finding in located)
    unselected = [finding.resource for finding in run.plan.findings if finding.code == "companion-not-selected"]
    assert not {finding.resource for finding in located}.intersection(unselected), "one finding says why"
    lines = BASE["tenants/a.yaml"].splitlines()
    for finding in located:
        rule = re.search(r"team-a \(tenants/a.yaml:(\d+):(\d+)\)", finding.message)
        assert rule is not None or "has no effect" in finding.message, finding.message
        if rule is not None and finding.code in RULES:
            assert lines[int(rule[1]) - 1][int(rule[2]) - 1 :].startswith(RULES[finding.code]), finding.message


OTHERS: dict[str, tuple[dict[str, str], str, str]] = {
    "a file": ({"k/kustomization.yaml": "resources: [own.yaml, FILE]"}, "k/kustomization.yaml:1:23", "k"),
    "a directory": ({"k/kustomization.yaml": "resources: [own.yaml, ../../../platform]"}, "k/kustomization.yaml:1:23", "k"),
    "a patch": ({"k/kustomization.yaml": "{resources: [own.yaml], patches: [{path: FILE}]}"}, "k/kustomization.yaml:1:42", "k"),
    "a Bundle of it": (
        {"b.yaml": "{path: teams/a/k}", "k/kustomization.yaml": "resources: [FILE]"},
        "k/kustomization.yaml:1:13",
        "k",
    ),
    "a directory of a Bundle": ({"b.yaml": "{path: platform}"}, "b.yaml:4:14", "Bundle team-a/b"),
    "values of a chart": (
        {
            "b.yaml": "{path: teams/a/chart, helm: {namespace: team-a, valuesFiles: [platform/secret.yaml]}}",
            "chart/Chart.yaml": "{apiVersion: v2, name: c, version: 1.0.0}",
        },
        "b.yaml:1:1",
        "Bundle team-a/b",
    ),
    "a built directory": (
        {"../../gitsched.yaml": "BUILD", "k/kustomization.yaml": "resources: [FILE]"},
        "k/kustomization.yaml:1:13",
        "k",
    ),
}
BUNDLE = "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: b, namespace: team-a}\nspec: "
BUILD = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: c}\nspec: {source: {kustomize: {build: [teams/a/k]}}}\n"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.needs("helm")] if "chart" in name else []) for name in OTHERS]
)
def test_a_file_that_a_tenant_may_not_read_is_one_finding_and_not_missing(shared: Shared, name: str) -> None:
    fleet, (files, place, built) = shared.fleet, OTHERS[name]
    fleet.git("reset", "-q", "--hard", shared.commit)
    texts = {
        path: (BUNDLE + text if path == "b.yaml" else text).replace("FILE", "../../../platform/secret.yaml")
        for path, text in files.items()
    }
    own = {"k/own.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: own, namespace: team-a}}"}
    fleet.commit({f"teams/a/{path}": text.replace("BUILD", BUILD) for path, text in {**own, **texts}.items()})
    found = fleet.preview().plan.findings
    about = [finding for finding in found if finding.location is not None and str(finding.location) == f"teams/a/{place}"]
    assert [finding.code for finding in about if finding.code.startswith("tenant-")] == ["tenant-read"]
    target = built if built.startswith("Bundle") else f"teams/a/{built}"
    assert f", so that {target} is not built; name the directory in spec.reads, or copy what is needed" in about[0].message
    assert not [str(finding) for finding in found if finding.code.endswith("-missing") and finding.code != "facts-missing"]


def test_what_is_missing_beside_an_unreadable_file_is_still_reported(shared: Shared) -> None:
    fleet = shared.fleet
    fleet.git("reset", "-q", "--hard", shared.commit)
    kustomization = "resources:\n- ../../../platform/secret.yaml\n- nowhere.yaml\n"
    for bundle in ({}, {"teams/a/b.yaml": f"{BUNDLE}{{path: teams/a/k}}"}):
        fleet.commit({"teams/a/k/kustomization.yaml": kustomization, **bundle})
        missing = [finding for finding in fleet.preview().plan.findings if finding.code == "kustomize-missing"]
        assert [str(finding.location) for finding in missing] == ["teams/a/k/kustomization.yaml:3:3"]
        assert "names nowhere.yaml" in missing[0].message
        assert "others" not in missing[0].message


def test_positions_of_the_rules_are_recorded_for_the_next_run(shared: Shared) -> None:
    fields = {tenant["name"]: tenant["fields"] for tenant in shared.fleet.load("gitsched.json")["tenants"]}
    assert fields["team-a"]["spec.namespaces"] == [6, 3]
    assert fields["team-a"]["spec.limits.requests.cpu"][0] == 10


def test_the_base_has_what_the_attacks_are_after(shared: Shared) -> None:
    placed = {path for path in shared.files if path.startswith("clusters/")}
    assert {
        "clusters/dub-1/team-b/deployment-web.yaml",
        "clusters/dub-1/team-b/secret-s.yaml",
        "clusters/dub-1/platform/secret-root.yaml",
        "clusters/fra-1/team-a/networkpolicy.networking.k8s.io-deny.yaml",
        "clusters/nyc-1/team-a/resourcequota-q.yaml",
        "clusters/team-b.kc/team-b/configmap-kapp.yaml",
        "clusters/dub-1/nest/deployment-inner.yaml",
        "clusters/dub-1/team-a/deployment-app.yaml",
    } <= placed
    assert shared.fleet.load("status/sources.knative.dev/kafkasource/team-b/kb0.yaml", "placements")["status"]["placements"]


def test_a_policy_of_the_platform_places_objects_of_tenants_where_they_may_be(tenants: Fleet) -> None:
    everywhere = PLACE_ROLES.replace("rbac.authorization.k8s.io/v1, kind: ClusterRole", "v1, kind: ConfigMap").replace(
        "[dub-1]", "[]"
    )
    settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: %s}\n"
    tenants.commit({"platform/all.yaml": everywhere, "teams/a/c.yaml": settings % "team-a", "teams/b/c.yaml": settings % "team-b"})
    tenants.reconcile()
    assert tenants.where("team-a/configmap-settings") == ["dub-1", "fra-1"]
    assert tenants.where("team-b/configmap-settings") == ["dub-1", "fra-1", "nyc-1"]


def test_the_owner_keeps_the_last_valid_version_while_another_tenant_defines_the_object(tenants: Fleet) -> None:
    before = tenants.files()["clusters/dub-1/team-b/deployment-web.yaml"]
    broken = BASE["teams/b/web.yaml"].replace("name: web,", "name: [web],")
    tenants.commit({"teams/b/web.yaml": broken, "teams/a/web.yaml": BASE["teams/b/web.yaml"].replace("nginx", "evil")}, hour=1)
    run = tenants.reconcile(1)
    assert list_codes(run) == ["tenant-namespace"]
    assert tenants.files()["clusters/dub-1/team-b/deployment-web.yaml"] == before


def test_a_commit_does_not_widen_its_own_rules(tenants: Fleet) -> None:
    tenants.git("checkout", "-q", "-b", "change")
    tenants.commit({"tenants/a.yaml": WITH_ROLES, **ROLES}, hour=1)
    review = compare_plans(tenants.settings(1), "main").review
    assert {"tenant-kind", "tenant-changed"} <= {finding.code for finding in review.findings}
    assert not any("clusterrole" in move.key.kind.lower() for move in review.moves)
    tenants.git("checkout", "-q", "main")
    tenants.git("merge", "-q", "change")
    assert list_codes(tenants.reconcile(1)) == ["tenant-changed", "tenant-kind"]
    assert ROLE_FILE not in tenants.files()
    assert list_codes(tenants.reconcile(2)) == []
    assert ROLE_FILE in tenants.files()


@pytest.mark.parametrize(
    "path", ["teams/A/x.yaml", "Teams/a/x.yaml", "TEAMS/A/deep/x.yaml", "teams/caf\N{LATIN SMALL LETTER E WITH ACUTE}/x.yaml"]
)
def test_a_directory_that_differs_in_letters_only_belongs_to_the_tenant(tenants: Fleet, path: str) -> None:
    cafe = BASE["tenants/b.yaml"].replace("team-b", "cafe").replace("teams/b", "teams/cafe\N{COMBINING ACUTE ACCENT}")
    settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared, namespace: platform}\ndata: {a: evil}\n"
    before = tenants.files(tenants.preview().tree)["clusters/dub-1/platform/configmap-shared.yaml"]
    tenants.commit({"tenants/cafe.yaml": cafe, path: settings})
    run = tenants.preview()
    assert list_codes(run) == ["tenant-changed", "tenant-namespace"]
    assert list_files(tenants, run)["clusters/dub-1/platform/configmap-shared.yaml"] == before


def test_a_namespace_of_a_tenant_stays_out_of_clusters_that_its_tenant_does_not_allow(tenants: Fleet) -> None:
    """The platform has a ResourceQuota in the namespace there, so the cluster gets a Namespace, but not the tenant's."""
    path = "_/namespace-team-a.yaml"
    before = tenants.files()
    labels = "{name: team-a, labels: {pod-security.kubernetes.io/enforce: privileged}}"
    tenants.commit({"teams/a/ns.yaml": f"apiVersion: v1\nkind: Namespace\nmetadata: {labels}\n"})
    files = list_files(tenants, tenants.preview())
    changed = {
        cluster for cluster in ("dub-1", "nyc-1") if files[f"clusters/{cluster}/{path}"] != before[f"clusters/{cluster}/{path}"]
    }
    assert changed == {"dub-1"}


def test_a_removed_or_broken_tenant_still_counts(tenants: Fleet) -> None:
    tenants.commit({"tenants/a.yaml": BASE["tenants/a.yaml"].replace("paths: [teams/a]", "paths: 7"), **ROLES}, hour=1)
    assert "tenant-kind" in list_codes(tenants.reconcile(1))
    assert "tenant-kind" in list_codes(tenants.reconcile(2))
    tenants.commit({"tenants/a.yaml": None}, hour=3)
    assert "tenant-kind" in list_codes(tenants.reconcile(3))
    assert ROLE_FILE not in tenants.files()


def test_a_broken_tenant_without_an_earlier_version_allows_nothing(fleet: Fleet) -> None:
    fleet.commit({**BASE, "tenants/a.yaml": BASE["tenants/a.yaml"].replace("policies: Cluster", "policies: 3")})
    assert "tenant-closed" in list_codes(fleet.reconcile())
    assert "clusters/dub-1/team-a/deployment-app.yaml" not in fleet.files()
    assert "clusters/dub-1/team-b/deployment-web.yaml" in fleet.files()


def test_a_broken_tenant_allows_nothing_while_it_is_removed(fleet: Fleet) -> None:
    """Its removal takes effect in the run after, as that of a valid one."""
    fleet.commit({**BASE, "tenants/a.yaml": BASE["tenants/a.yaml"].replace("policies: Cluster", "policies: 3"), **ROLES})
    fleet.reconcile()
    fleet.commit({"tenants/a.yaml": None}, hour=1)
    assert {"tenant-closed", "tenant-changed"} <= set(list_codes(fleet.reconcile(1)))
    assert ROLE_FILE not in fleet.files()


def test_nothing_is_written_while_the_paths_of_a_tenant_are_unknown(fleet: Fleet) -> None:
    fleet.commit({**BASE, "tenants/a.yaml": BASE["tenants/a.yaml"].replace("paths: [teams/a]", "paths: 7"), **ROLES})
    assert "tenant-unreadable" in list_codes(fleet.preview())
    with pytest.raises(Permanent, match=r"nothing is written: .*tenants/a.yaml:.* correct the Tenant"):
        fleet.reconcile()
    assert fleet.head is None


def test_the_first_tenants_of_a_source_count_at_once_and_are_reported(fleet: Fleet) -> None:
    files = {name: text for name, text in BASE.items() if not name.startswith("tenants/")}
    fleet.commit({**files, **ROLES})
    fleet.reconcile()
    assert ROLE_FILE in fleet.files()
    fleet.commit({name: text for name, text in BASE.items() if name.startswith("tenants/")}, hour=1)
    changed = [
        finding.message
        for finding in compare_plans(fleet.settings(1), "HEAD~1").run.plan.findings
        if finding.code == "tenant-changed"
    ]
    assert "Tenant team-a is new: it counts at once" in changed
    assert "tenant-kind" in list_codes(fleet.reconcile(1))


def test_the_operator_requires_tenants(fleet: Fleet, tmp_path: Path) -> None:
    operator = tmp_path / "operator.yaml"
    operator.write_text("apiVersion: gitsched.io/v1alpha1\nkind: OperatorConfig\nspec: {tenants: {required: [team-a, team-*]}}\n")
    fleet.commit(BASE)
    fleet.reconcile(operator_file=operator)
    fleet.commit({"tenants/a.yaml": None}, hour=1)
    (message,) = (one.message for one in fleet.preview(1, operator_file=operator).plan.findings if one.code == "tenant-required")
    assert "does not define: team-a;" in message
    with pytest.raises(Permanent, match="the operator requires Tenants"):
        fleet.reconcile(1, operator_file=operator)


def test_the_operator_requires_tenants_after_a_run_that_did_not(fleet: Fleet, tmp_path: Path) -> None:
    operator = tmp_path / "operator.yaml"
    operator.write_text("apiVersion: gitsched.io/v1alpha1\nkind: OperatorConfig\nspec: {tenants: {required: [team-a]}}\n")
    fleet.commit({"clusters.yaml": cluster("first"), "apps.yaml": deployment("web") + "---\n" + policy("first")})
    fleet.reconcile()
    assert not fleet.reconcile(1).plan.complete
    with pytest.raises(Permanent, match="the operator requires Tenants"):
        fleet.reconcile(2, operator_file=operator)


def test_a_tenant_in_its_own_path_allows_nothing(fleet: Fleet) -> None:
    files = {**BASE, "teams/a/tenant.yaml": BASE["tenants/a.yaml"]}
    del files["tenants/a.yaml"]
    fleet.commit(files)
    assert {"tenant-closed", "tenant-invalid"} <= set(list_codes(fleet.reconcile()))
    assert "clusters/dub-1/team-a/deployment-app.yaml" not in fleet.files()


def test_less_counts_at_once(tenants: Fleet) -> None:
    assert tenants.where("team-a/deployment-app") == ["dub-1", "fra-1"]
    tenants.commit({"tenants/a.yaml": BASE["tenants/a.yaml"].replace("{matchLabels: {region: eu}}", "{names: [fra-1]}")}, hour=1)
    assert list_codes(tenants.reconcile(1)) == ["tenant-changed", "tenant-cluster"]
    assert tenants.where("team-a/deployment-app") == ["fra-1"]


def test_a_workload_that_comes_to_exceed_a_limit_keeps_what_it_has(tenants: Fleet) -> None:
    before = tenants.files()
    tenants.commit({"teams/a/app.yaml": BASE["teams/a/app.yaml"].replace("replicas: 2", "replicas: 50")}, hour=1)
    for hour in (1, 2):
        assert list_codes(tenants.reconcile(hour)) == ["tenant-limit"]
        files = tenants.files()
        assert all(files[path] == before[path] for path in before if path.startswith("clusters/"))
    tenants.commit({"teams/a/app.yaml": BASE["teams/a/app.yaml"].replace("replicas: 2", "replicas: 3")}, hour=3)
    assert list_codes(tenants.reconcile(3)) == []
    assert "replicas: 3" in tenants.read("clusters/dub-1/team-a/deployment-app.yaml")


def test_a_new_workload_that_exceeds_a_limit_counts_as_one_that_is_in_no_cluster(tenants: Fleet) -> None:
    before = read_fleet_status(tenants.settings())
    more = BASE["teams/a/app.yaml"].replace("name: app", "name: more").replace("replicas: 2", "replicas: 50")
    tenants.commit({"teams/a/more.yaml": more}, hour=1)
    assert list_codes(tenants.reconcile(1)) == ["tenant-limit"]
    status = read_fleet_status(tenants.settings(1))
    assert "1 workload is in no cluster, because it exceeds a limit of a Tenant" in status.list_problems()
    assert "1 error" not in status.list_problems()
    lines = write_fleet_status(status, 1_000).splitlines()
    assert any(
        line.startswith(f"{len(before.workloads) + 1} workloads: ") and " 1 over a limit of a Tenant" in line for line in lines
    )
    for kind, namespace in (("deployment.apps", "team-a"), ("", None)):
        with pytest.raises(
            Permanent, match=r"^Deployment team-a/more is in no cluster: Tenant .*more than .*\(teams/a/more.yaml:1\)$"
        ):
            read_fleet_tree(tenants.settings(1), kind, namespace, "more")
    explained = explain_resource(tenants.settings(1), "deployment", "team-a", "more")
    assert isinstance(explained, Explanation)
    assert explained.trigger.startswith("Not applied: Tenant ")


def test_renamed_from_keeps_no_copy_of_another_tenant(tenants: Fleet) -> None:
    renamed = (
        BASE["teams/a/app.yaml"]
        .replace("name: app", "name: web2")
        .replace("annotations: {}", "annotations: {gitsched.io/renamed-from: team-b/web}")
    )
    tenants.commit({"teams/b/web.yaml": None, "teams/a/web2.yaml": renamed}, hour=1)
    tenants.reconcile(1)
    assert tenants.where("team-a/deployment-web2") == ["dub-1", "fra-1"]
    assert "retainedCopies" not in tenants.load("gitsched.json")


def test_the_first_by_precedence_has_an_object_that_two_tenants_define(fleet: Fleet) -> None:
    other = (
        "apiVersion: gitsched.io/v1alpha1\nkind: Tenant\nmetadata: {name: zz}\n"
        "spec: {paths: [teams/z], namespaces: [team-b], precedence: %d}\n"
    )
    image = BASE["teams/b/web.yaml"].replace("nginx", "other")
    fleet.commit({**BASE, "tenants/z.yaml": other % 0, "teams/z/web.yaml": image})
    run = fleet.reconcile()
    assert [f.location.path for f in run.plan.findings if f.code == "tenant-identity" and f.location] == ["teams/z/web.yaml"]
    assert "nginx" in fleet.read("clusters/dub-1/team-b/deployment-web.yaml")
    fleet.commit({"tenants/z.yaml": other % 1}, hour=1)
    fleet.reconcile(1)
    run = fleet.reconcile(2)
    assert [f.location.path for f in run.plan.findings if f.code == "tenant-identity" and f.location] == ["teams/b/web.yaml"]


def test_a_root_that_an_earlier_commit_could_build_is_not_built_with_files_of_others(tenants: Fleet) -> None:
    root = {"teams/a/k/kustomization.yaml": "resources: [../../../platform/secret.yaml]\nnamespace: team-a\n"}
    settings = BASE["gitsched.yaml"] + "  source: {kustomize: {build: [teams/*/k]}}\n"
    place = PLACE_ROLES.replace("rbac.authorization.k8s.io/v1, kind: ClusterRole", "v1, kind: Secret")
    tenants.commit({**root, "gitsched.yaml": settings}, hour=1)
    tenants.commit({"teams/a/p.yaml": place}, hour=2)
    assert "tenant-read" in list_codes(tenants.reconcile(2))
    assert tenants.where("team-a/secret-root") == []
    tenants.commit({"tenants/a.yaml": BASE["tenants/a.yaml"] + "  reads: [platform]\n"}, hour=3)
    tenants.reconcile(3)
    tenants.reconcile(4)
    assert tenants.where("team-a/secret-root") == ["dub-1"]


def test_a_plan_with_tenants_is_complete(tenants: Fleet) -> None:
    tenants.reconcile(1)
    tenants.commit({"teams/a/app.yaml": BASE["teams/a/app.yaml"].replace("nginx:1", "nginx:2")}, hour=2)
    run = tenants.reconcile(2)
    assert run.plan.complete
    assert "nginx:2" in tenants.read("clusters/dub-1/team-a/deployment-app.yaml")


@pytest.mark.parametrize(("path", "allowed"), [("teams/a/note.txt", False), ("platform/note.txt", True)])
def test_only_a_commit_of_the_platform_allows_what_the_guard_withholds(fleet: Fleet, path: str, allowed: bool) -> None:
    fleet.commit({**BASE, "gitsched.yaml": FROZEN})
    fleet.reconcile()
    fleet.commit({"teams/b/web.yaml": None, "teams/b/secret.yaml": None}, hour=1)
    digest = fleet.preview(1).plan.withheld.digest
    assert digest
    fleet.commit({path: "see the message"}, hour=1, message=f"Change\n\nGitsched-Allow: {digest}")
    fleet.reconcile(1)
    assert ("clusters/dub-1/team-b/deployment-web.yaml" not in fleet.files()) == allowed


def test_a_branch_of_a_tenant_that_changes_the_platform_for_a_while_allows_nothing(fleet: Fleet) -> None:
    """Reviewers of the platform see what a merge changes: not what its commits change and take back, or have from the trusted branch."""
    fleet.commit({**BASE, "gitsched.yaml": FROZEN})
    fleet.reconcile()
    start = fleet.commit({"teams/b/web.yaml": None, "teams/b/secret.yaml": None}, hour=1)
    digest = fleet.preview(1).plan.withheld.digest
    message = f"Change\n\nGitsched-Allow: {digest}"
    # A commit that the next one takes back, on the trusted branch itself.
    fleet.commit({"platform/notes.md": "x"}, hour=1, message=message)
    fleet.commit({"platform/notes.md": None, "teams/a/notes.md": "x"}, hour=1)
    assert fleet.preview(1).plan.withheld.digest == digest
    # A branch with a merge of the trusted branch and with a copy of a change of it, merged as forges do.
    fleet.git("reset", "-q", "--hard", start)
    fleet.commit({"platform/more.md": "x"}, hour=1)
    fleet.git("switch", "-q", "-c", "tenant", start)
    fleet.commit({"platform/more.md": "x"}, hour=1, message=message)
    fleet.commit({"teams/a/notes.md": "x"}, hour=1)
    fleet.git("merge", "-q", "-m", message, "main")
    fleet.git("switch", "-q", "main")
    fleet.git("merge", "-q", "--no-ff", "-m", "Merge the branch", "tenant")
    assert fleet.preview(2).plan.withheld.digest == digest
    # The merge of a branch that changes the platform allows it.
    fleet.git("switch", "-q", "-c", "platform")
    fleet.commit({"platform/more.md": "y"}, hour=2, message=message)
    fleet.git("switch", "-q", "main")
    fleet.git("merge", "-q", "--no-ff", "-m", "Merge the branch", "platform")
    assert not fleet.preview(2).plan.withheld.digest


@pytest.mark.parametrize("ahead", [False, True], ids=["merged already", "with a commit of its own"])
def test_a_branch_that_is_behind_its_base_is_compared_with_tenants(tenants: Fleet, ahead: bool) -> None:
    """What is planned is the merge. Trailers of its commits are read, as of any commit since the last run."""
    message = "Describe the app\n\nSigned-off-by: Ann <ann@example.com>"
    branch = tenants.commit({"teams/a/notes.md": "x"}, hour=1, message=message)
    tenants.commit({"teams/b/web.yaml": BASE["teams/b/web.yaml"].replace("replicas: 2", "replicas: 3")}, hour=2)
    assert tenants.reconcile(2).after
    if ahead:
        tenants.git("switch", "-q", "-c", "team-a", branch)
        changed = BASE["teams/a/app.yaml"].replace("nginx:1", "nginx:2")
        branch = tenants.commit({"teams/a/app.yaml": changed}, hour=3, message=message)
    review = compare_plans(tenants.settings(4, revision=branch), "main").review
    assert bool(review.comparison.delivery.images) == ahead
