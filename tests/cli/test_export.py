"""`gitsched export`: objects for Flux and Argo CD, checked against their schemas."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitsched.build.helm import find_helm
from tests.cli.conftest import Run
from tests.upstream_schemas import validate

ADDRESS = "https://git.example.com/platform/fleet.git"


def check(text: str) -> list[dict[str, Any]]:
    """Parse the documents of a stream and validate them against the schemas of their CRDs."""
    documents = list(yaml.safe_load_all(text))
    for document in documents:
        validate(document)
    return documents


@pytest.fixture
def pushed(fleet: Path, git: Callable[..., str]) -> Path:
    git("remote", "add", "origin", ADDRESS, at=fleet)
    return fleet


def test_what_would_delete_is_named_before_it_is_replaced(pushed: Path, gitsched: Run, commit: Callable[..., None]) -> None:
    armed = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps}\nspec: {path: x, prune: %s}\n"
    (pushed / "x").mkdir()
    commit(pushed, flux=armed % "true", **{"x/config": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: shop}\n"})
    done = gitsched("export", "flux", "--cluster", "one")
    assert done.stderr.startswith(
        "warning: 1 object of the source would delete what these objects take over: Kustomization apps (flux.yaml). "
    )
    assert len(check(done.stdout)) == 2
    commit(pushed, flux=armed % "false")
    assert "warning" not in gitsched("export", "flux", "--cluster", "one").stderr


def test_what_has_to_be_pushed_is_reported(pushed: Path, git: Callable[..., str], gitsched: Run) -> None:
    def read_note() -> str:
        return gitsched("export", "argocd").stderr

    assert read_note() == "note: there is no branch placements yet: gitsched reconcile --push origin makes and pushes it\n"
    gitsched("reconcile")
    push = "note: delivery tools read branch placements from its remote: git push origin placements, and from then on gitsched reconcile"
    assert read_note() == f"{push} --push origin\n"
    git("update-ref", "refs/remotes/origin/placements", "placements", at=pushed)
    assert read_note() == ""


@pytest.mark.parametrize("url", [ADDRESS, "git@git.example.com:platform/fleet.git"])
def test_credentials_that_flux_needs_are_reported(url: str, pushed: Path, gitsched: Run) -> None:
    need = "needs for a private repository" if url == ADDRESS else "needs"
    note = f"note: Flux {need} a Secret with credentials for {url}: name it with --secret\n"
    done = gitsched("export", "flux", "--cluster", "one", "--url", url)
    assert note in done.stderr
    done = gitsched("export", "flux", "--cluster", "one", "--url", url, "--secret", "key")
    assert "credentials" not in done.stderr
    assert check(done.stdout)[0]["spec"]["secretRef"] == {"name": "key"}


def take(tree: Path, path: str) -> str:
    """Return the objects that a delivery tool applies from a directory of the branch."""
    done = subprocess.run(["kubectl", "kustomize", str(tree / path)], capture_output=True, text=True, check=True)
    return done.stdout


def test_flux_export_has_a_repository_and_a_kustomization_of_the_cluster(gitsched: Run, pushed: Path) -> None:
    repository, kustomization = check(gitsched("export", "flux", "--cluster", "one").stdout)
    assert repository["spec"] == {
        "interval": "1m",
        "url": ADDRESS,
        "ref": {"branch": "placements"},
        "sparseCheckout": ["clusters/one"],
    }
    assert kustomization["spec"]["path"] == "./clusters/one"
    assert kustomization["spec"]["sourceRef"] == {"kind": "GitRepository", "name": repository["metadata"]["name"]}
    assert (kustomization["spec"]["prune"], kustomization["spec"]["wait"]) == (True, True)


@pytest.mark.needs("kubectl")
def test_a_copy_of_the_directories_takes_over_as_docs_say(
    gitsched: Run, pushed: Path, git: Callable[..., str], tmp_path: Path
) -> None:
    """docs/cut-over.md, "Leaving gitsched": the changed objects have the names of before, and deliver the same objects of a branch."""
    gitsched("reconcile")
    tree, copy = tmp_path / "out", pushed / "delivered"
    git("worktree", "add", "-q", "--detach", str(tree), "placements", at=pushed)
    shutil.copytree(tree / "clusters", copy)
    git("add", "-A", at=pushed)
    git("commit", "-qm", "Deliver plain directories", at=pushed)
    git("branch", "-q", "-D", "placements", at=pushed)
    (applications,) = check(gitsched("export", "argocd").stdout)
    (generator,), template = applications["spec"]["generators"], applications["spec"]["template"]["spec"]["source"]
    (files,) = generator["git"]["files"]
    assert (generator["git"]["revision"], template["targetRevision"], files["path"]) == (
        "placements",
        "placements",
        "clusters/*/cluster.json",
    )
    for cluster in ("one", "two"):
        repository, kustomization = check(gitsched("export", "flux", "--cluster", cluster).stdout)
        named = repository["metadata"]["name"], kustomization["metadata"]["name"], applications["metadata"]["name"]
        assert named == ("placements", "placed", "placed")
        assert repository["spec"]["sparseCheckout"] == [f"clusters/{cluster}"]
        assert kustomization["spec"]["path"] == f"./clusters/{cluster}"
        assert (pushed / f"delivered/{cluster}/cluster.json").is_file()
        assert take(pushed, f"delivered/{cluster}") == take(tree, f"clusters/{cluster}")


@pytest.mark.needs("kubectl")
def test_kustomize_builds_the_path_in_the_flux_kustomization(
    gitsched: Run, pushed: Path, git: Callable[..., str], tmp_path: Path
) -> None:
    gitsched("reconcile")
    for cluster in ("one", "two"):
        repository, kustomization = check(gitsched("export", "flux", "--cluster", cluster).stdout)
        tree = tmp_path / cluster
        git("clone", "-q", "--no-checkout", "-b", repository["spec"]["ref"]["branch"], str(pushed), str(tree), at=tmp_path)
        git("sparse-checkout", "set", *repository["spec"]["sparseCheckout"], at=tree)
        git("checkout", "-q", at=tree)
        built = [document["kind"] for document in yaml.safe_load_all(take(tree, kustomization["spec"]["path"]))]
        assert "ConfigMap" in built
        assert ("Deployment" in built) is (cluster == "one")


def test_a_file_for_each_cluster_can_be_written(gitsched: Run, pushed: Path, tmp_path: Path) -> None:
    done = gitsched("export", "flux", "--directory", str(tmp_path / "flux"))
    assert (done.returncode, "wrote 2 files" in done.stdout) == (0, True)
    for cluster in ("one", "two"):
        _, kustomization = check((tmp_path / "flux" / cluster / "placements.yaml").read_text())
        assert kustomization["spec"]["path"] == f"./clusters/{cluster}"


def test_objects_of_several_clusters_are_not_printed_in_one_stream(gitsched: Run, pushed: Path) -> None:
    """The objects have the same names, so the last cluster would replace the others."""
    done = gitsched("export", "flux")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--cluster" in done.stderr
    assert "--directory" in done.stderr


def test_flux_verifies_signatures_if_gitsched_signs_commits(gitsched: Run, pushed: Path, tmp_path: Path) -> None:
    settings = tmp_path / "operator.yaml"
    spec = "spec: {output: {signing: {format: ssh, key: /keys/fleet}}}\n"
    settings.write_text(f"apiVersion: gitsched.io/v1alpha1\nkind: OperatorConfig\n{spec}")
    repository, _ = check(gitsched("export", "flux", "--cluster", "one", "--operator-settings", str(settings)).stdout)
    assert repository["spec"]["verify"] == {"mode": "HEAD", "secretRef": {"name": "gitsched-keys"}}
    repository, _ = check(gitsched("export", "flux", "--cluster", "one", "--verify", "ours", "--secret", "deploy").stdout)
    assert repository["spec"]["verify"]["secretRef"]["name"] == "ours"
    assert repository["spec"]["secretRef"]["name"] == "deploy"


def test_flux_decrypts_with_the_keys_in_a_secret(gitsched: Run, pushed: Path) -> None:
    _, kustomization = check(gitsched("export", "flux", "--cluster", "one", "--decryption", "sops-age").stdout)
    assert kustomization["spec"]["decryption"] == {"provider": "sops", "secretRef": {"name": "sops-age"}}
    assert "decryption" not in check(gitsched("export", "flux", "--cluster", "one").stdout)[1]["spec"]


@pytest.mark.parametrize(
    ("remote", "flux", "argocd"),
    [
        pytest.param(
            "git@git.example.com:platform/fleet.git", "ssh://git@git.example.com/platform/fleet.git", None, id="host and path"
        ),
        pytest.param(
            "ssh://git@git.example.com:2222/fleet.git", "ssh://git@git.example.com:2222/fleet.git", None, id="ssh with a port"
        ),
        pytest.param(
            "https://ada:hunter2@git.example.com/fleet.git", "https://git.example.com/fleet.git", "", id="a token in the URL"
        ),
    ],
)
def test_the_exported_url_is_supported_and_has_no_credentials(
    gitsched: Run, fleet: Path, git: Callable[..., str], remote: str, flux: str, argocd: str | None
) -> None:
    git("remote", "add", "origin", remote, at=fleet)
    repository, _ = check(gitsched("export", "flux", "--cluster", "one").stdout)
    (applications,) = check(gitsched("export", "argocd").stdout)
    assert repository["spec"]["url"] == flux
    assert applications["spec"]["generators"][0]["git"]["repoURL"] == (remote if argocd is None else flux)


def test_a_local_url_is_refused(gitsched: Run, fleet: Path) -> None:
    done = gitsched("export", "argocd")
    assert (done.returncode, done.stdout) == (1, "")
    assert "--url" in done.stderr
    (applications,) = check(gitsched("export", "argocd", "--url", ADDRESS).stdout)
    assert applications["spec"]["template"]["spec"]["source"]["repoURL"] == ADDRESS


def test_the_directory_of_a_configured_path_is_used(gitsched: Run, pushed: Path, commit: Callable[..., None]) -> None:
    spec = "spec: {output: {path: fleet/a, branch: decided}}\n"
    commit(pushed, gitsched=f"apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {{name: gitsched}}\n{spec}")
    repository, kustomization = check(gitsched("export", "flux", "--cluster", "one").stdout)
    assert (repository["spec"]["ref"]["branch"], kustomization["spec"]["path"]) == ("decided", "./fleet/a/clusters/one")
    (applications,) = check(gitsched("export", "argocd").stdout)
    assert applications["spec"]["generators"][0]["git"]["files"] == [{"path": "fleet/a/clusters/*/cluster.json"}]


def expand(template: str, values: dict[str, Any]) -> str:
    """Fill in a Go template as Argo CD does with missingkey=error: a missing member is an error."""

    def find(match: re.Match[str]) -> str:
        value: Any = values
        for name in match[1].strip().removeprefix(".").split("."):
            value = value[name]
        return str(value)

    return re.sub(r"\{\{(.+?)\}\}", find, template)


@pytest.mark.needs("kubectl")
@pytest.mark.parametrize("generator", ["files", "directories"])
def test_argo_cd_makes_an_application_for_each_cluster_directory(
    gitsched: Run, pushed: Path, git: Callable[..., str], tmp_path: Path, generator: str
) -> None:
    gitsched("reconcile")
    (applications,) = check(gitsched("export", "argocd", "--generator", generator).stdout)
    git("worktree", "add", "-q", "--detach", str(tmp_path / "tree"), "placements", at=pushed)
    (pattern,) = applications["spec"]["generators"][0]["git"][generator]
    template = applications["spec"]["template"]
    targets = {}
    for found in sorted((tmp_path / "tree").glob(pattern["path"])):
        directory = found.parent if generator == "files" else found
        path = {
            "path": str(directory.relative_to(tmp_path / "tree")),
            "basename": directory.name,
            "basenameNormalized": directory.name,
        }
        values = {**(json.loads(found.read_text()) if generator == "files" else {}), "path": path}
        assert expand(template["metadata"]["name"], values) == f"placed-{directory.name}"
        assert "ConfigMap" in take(tmp_path / "tree", expand(template["spec"]["source"]["path"], values))
        targets[directory.name] = expand(template["spec"]["destination"]["name"], values)
    assert targets == {"one": "one", "two": "two"}


def test_an_argo_cd_export_can_be_limited_to_some_clusters(gitsched: Run, pushed: Path) -> None:
    (applications,) = check(gitsched("export", "argocd", "--cluster", "two", "--project", "fleet").stdout)
    assert applications["spec"]["generators"][0]["git"]["files"] == [{"path": "clusters/two/cluster.json"}]
    assert applications["spec"]["template"]["spec"]["project"] == "fleet"
    assert gitsched("export", "argocd", "--cluster", "three").returncode == 2


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_json_output_is_a_list(gitsched: Run, pushed: Path, form: str) -> None:
    listed = yaml.safe_load(gitsched("export", "flux", "--cluster", "one", "-o", form).stdout)
    assert (listed["kind"], [item["kind"] for item in listed["items"]]) == ("List", ["GitRepository", "Kustomization"])


def test_the_documentation_shows_the_output(gitsched: Run, pushed: Path, commit: Callable[..., None]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "consume.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    shown = [list(yaml.safe_load_all(block)) for block in blocks]
    (pushed / "one.yaml").rename(pushed / "fra-prod-1.yaml")
    commit(pushed, **{"fra-prod-1": (pushed / "fra-prod-1.yaml").read_text().replace("name: one", "name: fra-prod-1")})
    assert check(gitsched("export", "flux", "--cluster", "fra-prod-1").stdout) in shown
    assert check(gitsched("export", "argocd", "--project", "fleet").stdout) in shown


BUNDLE = """\
apiVersion: gitsched.io/v1alpha1
kind: Bundle
metadata: {name: web, namespace: shop}
spec: {delivery: argocd, path: apps/web}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: bundles, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: gitsched.io/v1alpha1, kind: Bundle}]
  placement: {clusterAffinity: {clusterNames: [one]}}
"""


@pytest.mark.needs("helm")
def test_argocd_export_has_an_application_set_of_bundles(
    gitsched: Run, pushed: Path, git: Callable[..., str], tmp_path: Path
) -> None:
    assert len(check(gitsched("export", "argocd").stdout)) == 1
    (pushed / "apps/web").mkdir(parents=True)
    (pushed / "apps/web/kustomization.yaml").write_text("namespace: shop\nconfigMapGenerator: [{name: web, literals: [a=1]}]\n")
    (pushed / "bundle.yaml").write_text(BUNDLE)
    git("add", "-A", at=pushed)
    git("commit", "-q", "-m", "Bundle", at=pushed)
    gitsched("reconcile")
    _, made = check(gitsched("export", "argocd", "--name", "fleet", "--namespace", "gitops").stdout)
    assert made["metadata"] == {"name": "fleet-bundles", "namespace": "gitops"}
    (generator,) = made["spec"]["generators"]
    assert generator["git"]["files"] == [{"path": "hub/argocd/*/*.yaml"}]
    files = [path for path in git("ls-tree", "-r", "--name-only", "placements", at=pushed).split() if path.startswith("hub/")]
    matching = [path for path in files if path.count("/") == 3]
    assert matching == ["hub/argocd/one/application.argoproj.io-shop.web.one.yaml"]
    application = yaml.safe_load(git("show", f"placements:{matching[0]}", at=pushed))
    assert expand_set(made["spec"], application, tmp_path) == {
        "metadata": {name: value for name, value in application["metadata"].items() if name not in ("name", "namespace")},
        "spec": application["spec"],
        "name": application["metadata"]["name"],
        "project": "default",
    }
    (only, _) = check(gitsched("export", "argocd", "--cluster", "one").stdout)
    assert "syncPolicy" in only["spec"]
    assert "syncPolicy" not in made["spec"]
    _, hub = check(gitsched("export", "argocd", "--name", "fleet", "--namespace", "gitops", "--bundles", "hub").stdout)
    assert (hub["kind"], hub["metadata"]) == ("Application", {"name": "fleet-bundles", "namespace": "gitops"})
    assert (hub["spec"]["source"]["path"], hub["spec"]["source"]["targetRevision"]) == ("hub/argocd", "placements")
    assert f"{hub['spec']['source']['path']}/kustomization.yaml" in files
    assert hub["spec"]["destination"] == {"name": "in-cluster", "namespace": "gitops"}
    refused = gitsched("export", "argocd", "--cluster", "one", "--bundles", "hub")
    assert (refused.returncode, "omit --cluster" in refused.stderr) == (2, True)


def expand_set(spec: dict[str, Any], parameters: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Expand the templates of an ApplicationSet with helm, which has the template functions of Argo CD."""
    template = spec["template"]
    texts = f"{spec['templatePatch']}name: {template['metadata']['name']}\nproject: {template['spec']['project']}\n"
    (directory / "set/templates").mkdir(parents=True)
    (directory / "set/Chart.yaml").write_text("apiVersion: v2\nname: set\nversion: 1.0.0\n")
    (directory / "set/templates/set.yaml").write_text(f"{{{{with .Values}}}}\n{texts}{{{{end}}}}\n")
    command = [str(find_helm({}).executable), "template", str(directory / "set"), "-f", "-"]
    done = subprocess.run(command, input=yaml.safe_dump(parameters), capture_output=True, text=True, check=True)
    expanded: dict[str, Any] = yaml.safe_load(done.stdout)
    return expanded
