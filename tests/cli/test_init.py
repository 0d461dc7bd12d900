"""`gitsched init` in a repository with a layout: it writes files that work, says what it recognized, and changes nothing that exists."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Run

WEB = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  replicas: 2\n"
OVERLAYS = {
    "web/base/kustomization.yaml": "resources: [web.yaml]\n",
    "web/base/web.yaml": WEB,
    "web/overlays/staging/kustomization.yaml": "resources: [../../base]\nreplicas: [{name: web, count: 1}]\n",
    "web/overlays/production/kustomization.yaml": "resources: [../../base]\nreplicas: [{name: web, count: 3}]\n",
}


def test_init_recognizes_overlays_and_writes_files_without_errors(
    gitsched: Run, make: Callable[[Mapping[str, str]], Path], git: Callable[..., str]
) -> None:
    place = make(OVERLAYS)
    done = gitsched("init", at=place)
    assert done.returncode == 0, done.stderr
    assert "Recognized kustomize overlays: 2 overlays of 1 directory, such as web/overlays/production" in done.stdout
    assert "web: web/overlays/production for environment=production; web/overlays/staging for environment=staging" in done.stdout
    assert git("status", "--porcelain", at=place).splitlines() == ["?? fleet/", "?? gitsched.yaml"]
    assert gitsched("validate", at=place).returncode == 0
    clusters = list(yaml.safe_load_all((place / "fleet/clusters.yaml").read_text()))
    assert [cluster["metadata"] for cluster in clusters] == [
        {"name": name, "labels": {"environment": name}} for name in ("production", "staging")
    ]


def test_init_says_what_it_guessed_and_what_nothing_places(gitsched: Run, make: Callable[[Mapping[str, str]], Path]) -> None:
    plain = WEB.replace("name: web", "name: mail")
    place = make({**OVERLAYS, "mail/mail.yaml": plain})
    for words in (["init", "--dry-run"], ["init"]):
        found = gitsched(*words, at=place).stdout
        guess = "No file names a cluster, so that fleet/clusters.yaml has one for each environment in the names of files: "
        assert f"{guess}production, staging\n" in found
        title = "Add a Bundle or a policy to fleet for what nothing places:\n  Deployment shop/mail is selected by no policy"
        assert title in found
        assert "(mail/mail.yaml:1)" in found


def test_flux_itself_needs_no_policy(gitsched: Run, make: Callable[[Mapping[str, str]], Path], git: Callable[..., str]) -> None:
    flux = WEB.replace("name: web, namespace: shop", "name: source-controller, namespace: flux-system")
    place = make({**OVERLAYS, "clusters/eu/flux-system/gotk-components.yaml": flux})
    assert "nothing places" not in gitsched("init", at=place).stdout
    assert "source-controller" not in gitsched("validate", at=place).stdout
    git("add", "-A", at=place)
    git("commit", "-qm", "Start", at=place)
    assert "selected by no policy" not in gitsched("plan", at=place).stdout
    assert "flux-system/source-controller" in gitsched("status", "--unclaimed", at=place).stdout


def test_init_says_nothing_of_guesses_where_all_is_known(gitsched: Run, make: Callable[[Mapping[str, str]], Path]) -> None:
    cluster = (
        "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: eu, labels: {environment: NAME}}\nspec: {}\n"
    )
    clusters = {f"{name}.yaml": cluster.replace("eu", name).replace("NAME", name) for name in ("staging", "production")}
    found = gitsched("init", at=make({**OVERLAYS, **clusters})).stdout
    assert "web/overlays/production for " in found
    assert "No file names a cluster" not in found
    assert "nothing places" not in found


def test_init_never_overwrites(gitsched: Run, make: Callable[[Mapping[str, str]], Path], git: Callable[..., str]) -> None:
    place = make({**OVERLAYS, "gitsched.yaml": "mine\n", "fleet/bundles.yaml": "# mine\n"})
    done = gitsched("init", at=place)
    assert (
        done.returncode,
        "kept  gitsched.yaml\nkept  fleet/bundles.yaml\nwrote fleet/policies.yaml\nwrote fleet/clusters.yaml" in done.stdout,
    ) == (0, True)
    assert git("diff", "--name-only", at=place) == ""


def test_a_second_init_prints_what_the_kept_files_lack_of_a_choice(
    gitsched: Run, make: Callable[[Mapping[str, str]], Path], git: Callable[..., str]
) -> None:
    place = make({**OVERLAYS, "db/overlays/paris/kustomization.yaml": "resources: [db.yaml]\n", "db/overlays/paris/db.yaml": WEB})
    assert "Left out" in gitsched("init", at=place).stdout
    git("add", ".", at=place)
    git("commit", "-qm", "fleet", at=place)
    assert "exists and lacks" not in gitsched("init", at=place).stdout
    done = gitsched("init", "--cluster", "db/overlays/paris=eu-1", at=place)
    assert done.returncode == 1
    found = done.stdout.partition("\nfleet/bundles.yaml exists and lacks this: add\n")[2]
    bundles, _, found = found.partition("\nfleet/clusters.yaml exists and lacks this: add\n")
    clusters, _, end = found.partition("\n\n")
    assert end == "Nothing was written: add these lines, and commit them.\n"
    (bundle,), (cluster,) = (list(yaml.safe_load_all(textwrap.dedent(text))) for text in (bundles, clusters))
    assert (bundle["metadata"], bundle["spec"]) == (
        {"name": "db"},
        {"variants": [{"path": "db/overlays/paris", "clusters": {"names": ["eu-1"]}}]},
    )
    assert (cluster["kind"], cluster["metadata"]["name"]) == ("Cluster", "eu-1")
    assert git("status", "--porcelain", at=place) == ""
    shown = gitsched("init", "--dry-run", "--cluster", "db/overlays/paris=eu-1", at=place)
    assert (shown.returncode, "would keep  fleet/bundles.yaml" in shown.stdout, "exists and lacks this: add" in shown.stdout) == (
        0,
        True,
        True,
    )


def test_an_init_after_edits_says_nothing_of_labels_policies_and_variants_that_users_changed(
    gitsched: Run, make: Callable[[Mapping[str, str]], Path]
) -> None:
    place = make(OVERLAYS)
    gitsched("init", at=place)
    bundles = place / "fleet/bundles.yaml"
    bundles.write_text(
        bundles.read_text().replace("# What", "# Which") + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n"
    )
    (place / "fleet/policies.yaml").write_text("# none\n")
    assert "exists and lacks" not in gitsched("init", at=place).stdout


def test_init_leaves_out_what_cannot_be_built(gitsched: Run, make: Callable[[Mapping[str, str]], Path]) -> None:
    remote = "resources: [https://example.com/base//deploy?ref=main]\n"
    place = make({**OVERLAYS, "dns/overlays/production/kustomization.yaml": remote})
    done = gitsched("init", at=place)
    assert "1 directory: gitsched cannot build it (kustomize-remote)\n    dns/overlays/production: dns/overlays" in done.stdout
    assert "name: dns" not in (place / "fleet/bundles.yaml").read_text()
    assert gitsched("validate", at=place).returncode == 0


@pytest.mark.needs("kubectl")
def test_init_leaves_out_bundles_that_have_errors(gitsched: Run, make: Callable[[Mapping[str, str]], Path]) -> None:
    broken = {"dns/overlays/production/kustomization.yaml": "resources: [a.yaml]\npatches: [{path: b.yaml}]\n"}
    broken |= {"dns/overlays/production/a.yaml": WEB, "dns/overlays/production/b.yaml": WEB.replace("name: web", "name: none")}
    copy = {path.replace("web/", "shop/", 1): text.replace("replicas: 2", "replicas: 4") for path, text in OVERLAYS.items()}
    copy = {
        path: text.replace("replicas: [", "nameSuffix: ''\nlabels: [{pairs: {a: b}}]\nreplicas: [") for path, text in copy.items()
    }
    place = make({**OVERLAYS, **broken, **copy})
    done = gitsched("init", at=place)
    assert "1 directory: gitsched cannot place it (kustomize-build)\n    dns/overlays/production: " in done.stdout
    assert "1 directory: gitsched cannot place it (bundle-conflict)\n    " in done.stdout
    bundles = list(yaml.safe_load_all((place / "fleet/bundles.yaml").read_text()))
    assert len(bundles) == 1
    found = gitsched("validate", at=place)
    assert found.returncode == 0, found.stdout


def test_init_writes_files_that_sourceignore_does_not_hide(gitsched: Run, make: Callable[[Mapping[str, str]], Path]) -> None:
    place = make({**OVERLAYS, ".sourceignore": "/*\n!/web/\n"})
    assert gitsched("init", at=place).returncode == 0
    found = gitsched("validate", at=place)
    assert (found.returncode, "source-hidden" in found.stdout) == (0, False), found.stdout


def test_init_builds_the_only_kustomization_of_a_repository(gitsched: Run, make: Callable[[Mapping[str, str]], Path]) -> None:
    place = make({"deploy/kustomization.yaml": "resources: [web.yaml]\nnamespace: shop\n", "deploy/web.yaml": WEB})
    done = gitsched("init", at=place)
    assert (done.returncode, "Built by kustomize (source.kustomize.build)" in done.stdout) == (0, True)
    config = yaml.safe_load((place / "gitsched.yaml").read_text())
    assert config["spec"]["source"] == {"kustomize": {"build": ["deploy"]}}
    assert gitsched("validate", at=place).returncode == 0


def test_init_below_the_top_of_a_repository_names_the_top(gitsched: Run, make: Callable[[Mapping[str, str]], Path]) -> None:
    place = make(OVERLAYS)
    done = gitsched("init", at=place / "web")
    assert done.returncode == 2
    assert f"gitsched init {place}" in " ".join(done.stderr.split())
    assert not (place / "web/gitsched.yaml").exists()


def test_init_writes_what_is_missing_for_workloads_and_policies(gitsched: Run, make: Callable[[Mapping[str, str]], Path]) -> None:
    place = make({"web.yaml": WEB})
    assert "wrote fleet/clusters.yaml\nwrote fleet/policies.yaml\n\n" in gitsched("init", at=place).stdout
    planned = json.loads(gitsched("plan", "--worktree", "-o", "json", at=place).stdout)
    assert [move["after"] for move in planned["moves"]] == [[{"cluster": "private-1", "replicas": 2}]], (
        "a policy selects the workload that was there"
    )
    policies = (place / "fleet/policies.yaml").read_text()
    for path in ("fleet/clusters.yaml", "fleet/policies.yaml"):
        (place / path).unlink()
    (place / "policy.yaml").write_text(
        policies.replace("labelSelector:\n          matchLabels:\n            ownership: private", "clusterNames: [fra]")
    )
    assert (
        "1 policy, 1 kind of workload; what is missing is written.\n\nkept  gitsched.yaml\nwrote fleet/clusters.yaml\n\n"
        in gitsched("init", at=place).stdout
    )
    clusters = yaml.safe_load_all((place / "fleet/clusters.yaml").read_text())
    assert [cluster["metadata"] for cluster in clusters] == [{"name": "cloud-1", "labels": {"ownership": "cloud"}}, {"name": "fra"}]


def test_init_requires_a_repository_where_there_are_manifests(gitsched: Run, tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(WEB)
    done = gitsched("init", at=tmp_path)
    assert (done.returncode, "has manifests (web.yaml), but is not a repository: run `git init`" in done.stderr) == (2, True)


@pytest.mark.parametrize("api", ["ocm", "krake"])
def test_init_for_other_apis_writes_files_without_errors(
    gitsched: Run, make: Callable[[Mapping[str, str]], Path], api: str
) -> None:
    place = make(OVERLAYS)
    assert gitsched("init", "--api", api, at=place).returncode == 0
    found = gitsched("validate", at=place)
    assert found.returncode == 0, found.stdout


@pytest.mark.needs("kubectl")
def test_a_variable_that_flux_substitutes_is_never_delivered_as_it_is(
    gitsched: Run, make: Callable[[Mapping[str, str]], Path]
) -> None:
    kustomization = (
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: web, namespace: flux-system}\n"
        "spec: {path: ./web, postBuild: {substitute: {SIZE: big}}, sourceRef: {kind: GitRepository, name: flux-system}}\n"
    )
    text = WEB.replace("namespace: shop", "namespace: shop, labels: {size: '${SIZE}'}")
    place = make(
        {"clusters/fra/web.yaml": kustomization, "web/kustomization.yaml": "resources: [web.yaml]\n", "web/web.yaml": text}
    )
    assert gitsched("init", at=place).returncode == 0
    assert gitsched("validate", at=place).returncode == 0
    bundle = place / "fleet/bundles.yaml"
    (values,) = [document["spec"].pop("values") for document in yaml.safe_load_all(bundle.read_text())]
    assert values == {"SIZE": "big"}
    bundle.write_text(bundle.read_text().replace("  values:\n    SIZE: big\n", ""))
    assert gitsched("validate", at=place).returncode == 0
    (place / "clusters/fra/web.yaml").write_text(kustomization.replace("SIZE: big", "OTHER: big"))
    found = gitsched("validate", at=place)
    assert found.returncode == 1
    assert "${SIZE} has no value" in found.stdout


@pytest.mark.needs("kubectl")
def test_bundles_that_flux_changes_are_proposed_if_gitsched_can_build_them(
    gitsched: Run, make: Callable[[Mapping[str, str]], Path]
) -> None:
    head = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: %s, namespace: flux-system}\n"
    spec = "spec: {path: ./%s, %s, sourceRef: {kind: GitRepository, name: flux-system}}\n"
    secret = "postBuild: {substituteFrom: [{kind: Secret, name: secrets}]}"
    files = {f"{name}/web.yaml": WEB.replace("namespace: shop", "labels: {size: '${SIZE}'}") for name in ("dns", "web")}
    files |= {
        "clusters/fra/web.yaml": head % "web" + spec % ("web", "targetNamespace: shop, postBuild: {substitute: {SIZE: big}}"),
        "clusters/fra/dns.yaml": head % "dns" + spec % ("dns", secret),
    }
    place = make(files)
    done = gitsched("init", at=place)
    assert "1 directory: gitsched cannot place it (flux-variable)" in done.stdout, done.stdout
    bundles = list(yaml.safe_load_all((place / "fleet/bundles.yaml").read_text()))
    assert [bundle["spec"]["path"] for bundle in bundles] == ["web"]
    found = gitsched("validate", at=place)
    assert found.returncode == 0, found.stdout


@pytest.mark.needs("kubectl")
@pytest.mark.parametrize(
    "spec",
    {
        "a variable without a value": "postBuild: {substituteFrom: [{kind: Secret, name: secrets}]}",
        "a patch that does not fit": "patches: [{patch: '[{op: replace, path: /spec/none/x, value: 1}]', target: {kind: Deployment}}]",
    }.items(),
    ids=lambda case: case[0],
)
def test_a_kustomization_with_an_error_leaves_out_nothing_of_its_file_but_itself(
    gitsched: Run, make: Callable[[Mapping[str, str]], Path], spec: tuple[str, str]
) -> None:
    kustomization = (
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: %s, namespace: flux-system}\n"
    )
    kustomization += "spec: {path: ./%s, %s, sourceRef: {kind: GitRepository, name: flux-system}}\n"
    wanted = (("api", "prune: true"), ("dns", spec[1]), ("web", "prune: true"))
    files = {f"{name}/web.yaml": WEB.replace("namespace: shop", f"namespace: {name}") for name, _ in wanted}
    files["dns/web.yaml"] = WEB.replace("namespace: shop", "namespace: dns, labels: {size: '${SIZE}'}")
    files["clusters/fra/apps.yaml"] = "---\n".join(kustomization % (name, name, text) for name, text in wanted)
    place = make(files)
    done = gitsched("init", at=place)
    bundles = list(yaml.safe_load_all((place / "fleet/bundles.yaml").read_text()))
    assert [bundle["spec"]["path"] for bundle in bundles] == ["api", "web"], done.stdout
    assert "1 directory: gitsched cannot place it" in done.stdout


@pytest.mark.needs("kubectl")
def test_each_cluster_gets_the_variables_that_flux_substitutes_for_it(
    gitsched: Run, make: Callable[[Mapping[str, str]], Path], git: Callable[..., str]
) -> None:
    text = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
    text += "metadata: {name: web, namespace: flux-system}\nspec: {path: ./web"
    substituted = {"oslo": "{REGION: north, TIER: gold}", "paris": "{TIER: silver}", "rome": "{REGION: south, TIER: silver}"}
    place = make(
        {f"clusters/{name}/web.yaml": f"{text}, postBuild: {{substitute: {values}}}}}\n" for name, values in substituted.items()}
        | {"web/web.yaml": WEB.replace("shop}", "shop, labels: {place: '${REGION:=none}-${TIER}'}}")}
    )
    assert gitsched("init", "--commit", at=place).returncode == 0
    assert gitsched("reconcile", at=place).returncode == 0
    found = {name: git("show", f"placements:clusters/{name}/shop/deployment-web.yaml", at=place) for name in substituted}
    labels = {name: yaml.safe_load(text)["metadata"]["labels"]["place"] for name, text in found.items()}
    assert labels == {"oslo": "north-gold", "paris": "none-silver", "rome": "south-silver"}


SITES = {
    "sites/paris/kustomization.yaml": "resources: [web.yaml]\n",
    "sites/paris/web.yaml": WEB,
    "sites/config/kustomization.yaml": "resources: [web.yaml]\n",
    "sites/config/web.yaml": WEB.replace("replicas: 2", "replicas: 3"),
}


def test_init_takes_the_clusters_of_directories_from_options(gitsched: Run, make: Callable[[Mapping[str, str]], Path]) -> None:
    place = make(SITES)
    done = gitsched("init", "--cluster", "sites/paris=eu-1", "--cluster", "./sites/config/=us-1", at=place)
    assert done.returncode == 0, done.stderr
    assert "sites: sites/config for us-1; sites/paris for eu-1" in done.stdout
    assert gitsched("validate", at=place).returncode == 0
    clusters = yaml.safe_load_all((place / "fleet/clusters.yaml").read_text())
    assert [cluster["metadata"]["name"] for cluster in clusters] == ["eu-1", "us-1"]


def test_init_takes_the_clusters_of_directories_without_kustomizations_from_options(
    gitsched: Run, make: Callable[[Mapping[str, str]], Path]
) -> None:
    place = make({f"sites/{site}/web.yaml": WEB for site in ("paris", "rome")} | {"notes/plan.txt": "x\n", "lab/web.yaml": WEB})
    shown = gitsched("init", "--dry-run", "--cluster", "sites/paris=eu-1", "--cluster", "notes=none", at=place).stdout
    assert "sites: sites/paris for eu-1" in shown
    assert "    sites/rome\n" in shown.partition("Left out:")[2], "nobody says which cluster gets it"
    assert "--cluster notes=none: notes has no kustomization, chart or YAML file" in shown

    choices = {"sites/paris": "eu-1", "sites/rome": "eu-2", "lab": "test"}
    done = gitsched("init", *(part for path, name in choices.items() for part in ("--cluster", f"{path}={name}")), at=place)
    assert done.returncode == 0, done.stderr
    assert "sites: sites/paris for eu-1; sites/rome for eu-2" in done.stdout
    assert "lab: lab for test" in done.stdout
    assert gitsched("validate", at=place).returncode == 0


def test_init_takes_the_clusters_of_flux_and_argo_cd_from_options(gitsched: Run, make: Callable[[Mapping[str, str]], Path]) -> None:
    flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: web, namespace: flux-system}}\n"
    flux += "spec: {{path: ./{}/web, sourceRef: {{kind: GitRepository, name: flux-system}}}}\n"
    argo = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: dns, namespace: argocd}\n"
    argo += "spec: {source: {repoURL: https://example.com/x.git, path: dns}, destination: {server: https://10.0.0.1}}\n"
    files = {f"{site}/tool/flux.yaml": flux.format(site) for site in ("old", "new")}
    files |= {f"{site}/web/kustomization.yaml": "resources: [web.yaml]\n" for site in ("old", "new")}
    files |= {f"{site}/web/web.yaml": WEB for site in ("old", "new")}
    files |= {"argo/dns.yaml": argo, "dns/kustomization.yaml": "resources: [a.yaml]\n", "dns/a.yaml": WEB.replace("web", "dns")}
    place = make(files)
    done = gitsched("init", "--cluster", "old=c-old", "--cluster", "new=c-new", "--cluster", "argo=c-argo", at=place)
    assert "new is cluster c-new, old is cluster c-old" in done.stdout
    assert "web: new/web for c-new; old/web for c-old" in done.stdout
    assert "dns: dns for c-argo" in done.stdout


def test_a_directory_that_says_what_it_has_is_no_cluster(gitsched: Run, make: Callable[[Mapping[str, str]], Path]) -> None:
    place = make({path.replace("sites/", "web/overlays/"): text for path, text in {**SITES, **OVERLAYS}.items()})
    done = gitsched("init", at=place)
    assert "    web/overlays/config" in done.stdout
    assert "say it with --cluster DIR=NAME" in done.stdout
    assert "name: config" not in (place / "fleet/clusters.yaml").read_text()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("web", "write DIR=NAME"),
        ("web=A_b", "write DIR=NAME"),
        ("../x=a", "write DIR=NAME"),
        ("no/where=a", "has no directory no/where"),
    ],
)
def test_init_refuses_a_cluster_of_no_directory(
    gitsched: Run, make: Callable[[Mapping[str, str]], Path], value: str, message: str
) -> None:
    done = gitsched("init", "--cluster", value, at=make(OVERLAYS))
    assert (done.returncode, message in " ".join(done.stderr.split())) == (2, True), done.stderr


def test_a_dry_run_of_init_prints_the_files_and_writes_nothing(
    gitsched: Run, make: Callable[[Mapping[str, str]], Path], git: Callable[..., str]
) -> None:
    place = make({**OVERLAYS, "fleet/policies.yaml": "# mine\n"})
    shown = gitsched("init", "--dry-run", at=place)
    assert (shown.returncode, git("status", "--porcelain", "--ignored", at=place)) == (0, "")
    assert "would write gitsched.yaml\nwould write fleet/bundles.yaml\nwould keep  fleet/policies.yaml\n" in shown.stdout
    assert gitsched("init", at=place).returncode == 0
    for name in ("gitsched.yaml", "fleet/bundles.yaml", "fleet/clusters.yaml"):
        assert f"# {name}\n{(place / name).read_text()}" in shown.stdout
    assert gitsched("init", "--dry-run", "--commit", at=place).returncode == 2


def test_init_says_what_it_does_not_read_of_other_tools(gitsched: Run, make: Callable[[Mapping[str, str]], Path]) -> None:
    kinds = {
        "Sveltos": "config.projectsveltos.io/v1beta1 ClusterProfile",
        "KubeFleet": "placement.kubernetes-fleet.io/v1 ClusterResourcePlacement",
        "Kargo": "kargo.akuity.io/v1alpha1 Stage",
        "kluctl": "gitops.kluctl.io/v1beta1 KluctlDeployment",
    }
    files = {"web.yaml": WEB, "apps/fleet.yaml": "namespace: shop\ntargetCustomizations: []\n"}
    for name, text in kinds.items():
        version, kind = text.split()
        files[f"tools/{name}.yaml"] = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n"
    place = make(files)
    shown = gitsched("init", at=place).stdout
    assert "Documents of other tools, which gitsched does not read:\n  Rancher Fleet, 1 file such as apps/fleet.yaml: " in shown
    for name, text in kinds.items():
        kind = text.split()[1]
        assert f"  {name}, 1 file such as tools/{name}.yaml ({kind}): " in shown
        assert kind not in (place / "fleet/policies.yaml").read_text()


def test_init_proposes_no_policy_for_a_kind_whose_objects_are_defined_more_than_once(
    gitsched: Run, make: Callable[[Mapping[str, str]], Path]
) -> None:
    shared = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared, namespace: shop}\ndata: {from: %s}\n"
    files = {f"{name}/map.yaml": shared % name for name in ("paris", "lyon")}
    place = make({**files, "paris/web.yaml": WEB})
    done = gitsched("init", at=place)
    assert "No policy is proposed for kinds whose objects would have errors then:\n  ConfigMap: lyon/map.yaml:1:1: " in done.stdout
    (policy,) = yaml.safe_load_all((place / "fleet/policies.yaml").read_text())
    assert [selector["kind"] for selector in policy["spec"]["resourceSelectors"]] == ["Deployment"]
    assert gitsched("validate", at=place).returncode == 0


def test_init_writes_no_policy_and_no_example_if_all_kinds_are_left_out(
    gitsched: Run, make: Callable[[Mapping[str, str]], Path]
) -> None:
    place = make({"paris/web.yaml": WEB, "lyon/web.yaml": WEB.replace("replicas: 2", "replicas: 3")})
    done = gitsched("init", at=place)
    assert "  Deployment: lyon/web.yaml:1:1: " in done.stdout, done.stdout
    assert sorted(path.name for path in (place / "fleet").iterdir()) == ["clusters.yaml"]
    assert gitsched("validate", at=place).returncode == 0


def test_init_leaves_errors_that_were_there_before_to_validate(gitsched: Run, make: Callable[[Mapping[str, str]], Path]) -> None:
    place = make({"web.yaml": WEB, "broken.yaml": WEB.replace("name: web", "name: WEB")})
    done = gitsched("init", at=place)
    assert done.returncode == 0
    assert "Errors that" not in done.stdout
    assert gitsched("validate", at=place).returncode == 1


def test_init_creates_the_directory_of_a_new_repository(gitsched: Run, tmp_path: Path) -> None:
    """As `git init DIRECTORY` does. What comes next begins with the way there."""
    listed = gitsched("init", "--dry-run", "new/my fleet", at=tmp_path)
    assert listed.returncode == 0
    assert not (tmp_path / "new").exists()
    done = gitsched("init", "--api", "ocm", "new/my fleet", at=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "new/my fleet/gitsched.yaml").exists()
    assert "\nNext:\n  cd 'new/my fleet' " in done.stdout
    (tmp_path / "file").write_text("")
    refused = gitsched("init", "file/fleet", at=tmp_path)
    assert refused.returncode == 1
    assert refused.stderr == "gitsched: cannot write file/fleet: Not a directory\n"


@pytest.mark.parametrize("default", ["main", "trunk"])
def test_init_on_another_branch_says_what_the_first_run_chooses(
    gitsched: Run, make: Callable[[Mapping[str, str]], Path], git: Callable[..., str], default: str
) -> None:
    place = make({"web.yaml": WEB})
    git("branch", "-M", default, at=place)
    if default == "trunk":
        git("update-ref", "refs/remotes/origin/trunk", "HEAD", at=place)
        git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk", at=place)
    assert "merge " not in gitsched("init", "--commit", at=place).stdout
    git("reset", "-q", "--hard", "HEAD~1", at=place)
    git("checkout", "-qb", "feature", at=place)
    assert f"  merge feature into {default} " in gitsched("init", "--commit", at=place).stdout
    assert gitsched("reconcile", at=place).returncode == 0
    git("checkout", "-q", default, at=place)
    assert gitsched("reconcile", at=place).returncode == 1, "as the text says"
    git("merge", "-q", "feature", at=place)
    assert gitsched("reconcile", at=place).returncode == 0
