"""Input beyond a limit is an error that names the limit, and the rest is read."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from gitsched.build.application_sets import (
    MAX_APPLICATIONS,
    MAX_STEPS,
    MAX_STEPS_OF_ALL,
    GeneratorInput,
    list_applications,
)
from gitsched.build.remote_base import RemoteBase, RemotePolicy
from gitsched.git import Repository
from gitsched.git.signatures import verify_commit
from gitsched.model.errors import Permanent
from gitsched.reconcile.builds.remote_bases import RemoteBases
from gitsched.reconcile.operator_settings import read_operator_config

from .conftest import Fleet, cluster, deployment, policy

NO_FILES: Any = SimpleNamespace(entries={}, directories=())
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJcGBuAgwYEGcUMQ6TYTFyr4SIFRdMaGv1WZQ8nyVvnW release@example.com"
TENANT = "apiVersion: gitsched.io/v1alpha1\nkind: Tenant\nmetadata: {name: NAME}\nspec: {paths: [teams/NAME], namespaces: [NAME]}\n"


def test_more_tenants_than_the_limit_are_an_error(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.reconcile.tenants.source_tenants.MAX_TENANTS", 2)
    tenants = "---\n".join(TENANT.replace("NAME", name) for name in ("red", "blue", "green"))
    fleet.commit({"tenants.yaml": tenants, "web.yaml": deployment("web"), "one.yaml": cluster("one"), "all.yaml": policy()})
    found = [finding.message for finding in fleet.reconcile().plan.findings if finding.code == "tenant-invalid"]
    assert found == ["the source has 3 Tenants: only the first 2 count; remove the others"]


def test_settings_of_the_operator_that_are_too_large_are_not_read_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "apiVersion: gitsched.io/v1alpha1\nkind: OperatorConfig\nspec:\n  verify:\n    keys:\n"
    file = tmp_path / "operator.yaml"
    file.write_text(text + f"      - {KEY}\n")
    monkeypatch.setattr("gitsched.reconcile.operator_settings.MAX_SIZE", len(file.read_bytes()))
    read_operator_config(file)
    file.write_text(file.read_text() + f"      - {KEY}\n")
    with pytest.raises(Permanent, match=r"more than \d+ bytes"):
        read_operator_config(file)


def test_more_keys_than_the_limit_are_an_error(pair: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.git.signatures.MAX_KEYS", 2)
    repository, head = Repository(pair.path), pair.git("rev-parse", "HEAD")
    assert verify_commit(repository, head, [KEY] * 2).reason
    with pytest.raises(Permanent, match="more than 2 keys"):
        verify_commit(repository, head, [KEY] * 3)


def test_an_application_set_has_a_limited_number_of_applications(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("build.application_sets", "reconcile.builds.tool_paths"):
        monkeypatch.setattr(f"gitsched.{module}.MAX_APPLICATIONS", 3)
    elements = [{"name": f"app-{number}"} for number in range(9)]
    spec: dict[str, Any] = {"generators": [{"list": {"elements": elements}}], "template": {"metadata": {"name": "{{name}}"}}}
    body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "all"}, "spec": spec}
    made = list_applications(body, GeneratorInput(NO_FILES, (), lambda url: True))
    assert (len(made.applications), made.is_complete) == (3, False)
    origin = {"repoURL": "https://git.example.com/r.git", "path": "{{name}}"}
    body["spec"]["template"]["spec"] = {"source": origin, "project": "p", "destination": {}}
    fleet.commit({"set.yaml": yaml.safe_dump(body), "app-0/kustomization.yaml": "resources: []\n", "all.yaml": policy()})
    found = [finding for finding in fleet.preview().plan.findings if finding.code == "applications-limit"]
    assert [finding.location and finding.location.path for finding in found] == ["set.yaml"]


def make_list(name: str, count: int) -> dict[str, Any]:
    return {"list": {"elements": [{name: str(number)} for number in range(count)]}}


HOSTILE_GENERATORS: dict[str, list[dict[str, Any]]] = {
    "a matrix": [{"matrix": {"generators": [make_list("a", 2_000), make_list("b", 2_000)]}}],
    "a matrix of which nothing is selected": [
        {
            "matrix": {"generators": [make_list("a", 2_000), make_list("b", 2_000)]},
            "selector": {"matchLabels": {"a": "none"}},
        }
    ],
    "the same Application again and again": [{"matrix": {"generators": [make_list("x", 2_000), make_list("y", 2_000)]}}],
    "many in a matrix": [{"matrix": {"generators": [make_list("a", 1)] * 500}}],
    "nested": [{"matrix": {"generators": [{"matrix": {"generators": [make_list("a", 500)] * 3}}, make_list("b", 500)]}}],
    "one key for all": [{"merge": {"mergeKeys": ["c"], "generators": [make_list("a", 2_000), make_list("b", 2_000)]}}],
    "directories again and again": [
        {
            "matrix": {
                "generators": [
                    make_list("a", 2_000),
                    {"git": {"repoURL": "x", "directories": [{"path": f"**/{number}/**/*x*{{{{a}}}}"} for number in range(50)]}},
                ]
            }
        }
    ],
    "a text that grows": [{"list": {"elements": [{"a": "x" * 50_000}]}, "selector": {}}] * 1_000,
}


@pytest.mark.parametrize("name", HOSTILE_GENERATORS)
def test_an_application_set_takes_a_limited_number_of_steps(name: str) -> None:
    template = {"metadata": {"name": "{{a}}" * (1_000 if "grows" in name else 1)}}
    body = {
        "kind": "ApplicationSet",
        "metadata": {"name": "all"},
        "spec": {"generators": HOSTILE_GENERATORS[name], "template": template},
    }
    files = SimpleNamespace(entries={f"{number}/{number}x/file": ("0" * 40, 0o100644) for number in range(500)})
    source = GeneratorInput(files, (), lambda url: True)  # type: ignore[arg-type]
    made = list_applications(body, source)
    assert made.problem or not made.is_complete  # Argo CD refuses some of them anyway
    assert len(made.applications) <= MAX_APPLICATIONS
    assert source.steps <= MAX_STEPS * 1.1


def test_a_merge_takes_steps_in_proportion_to_its_generators() -> None:
    generators = [make_list("a", 900), {"list": {"elements": [{"a": str(number), "b": "x"} for number in range(2_000)]}}]
    spec = {
        "generators": [{"merge": {"mergeKeys": ["a"], "generators": generators}}],
        "template": {"metadata": {"name": "{{a}}{{b}}"}},
    }
    source = GeneratorInput(NO_FILES, (), lambda url: True)
    made = list_applications({"kind": "ApplicationSet", "metadata": {"name": "all"}, "spec": spec}, source)
    assert [made.applications[number]["metadata"]["name"] for number in (0, 899)] == ["0x", "899x"]
    assert (len(made.applications), made.is_complete) == (900, True)
    assert source.steps < 100_000


def test_application_sets_that_take_all_steps_leave_some_to_each_of_the_others() -> None:
    source = GeneratorInput(NO_FILES, (), lambda url: True)
    source.steps = MAX_STEPS_OF_ALL
    spec = {"generators": [make_list("a", 500)], "template": {"metadata": {"name": "{{a}}"}}}
    made = list_applications({"kind": "ApplicationSet", "metadata": {"name": "all"}, "spec": spec}, source)
    assert (len(made.applications), made.is_complete) == (500, True)


@pytest.mark.parametrize(("limit", "found"), [(1_000, ["set.yaml"]), (1, [])])
def test_unknown_paths_of_an_application_set_are_compared_to_a_limit(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, limit: int, found: list[str]
) -> None:
    monkeypatch.setattr("gitsched.reconcile.builds.path_selection.MAX_COMPARISONS", limit)
    url = "https://git.example.com/r.git"
    sources = [{"repoURL": url, "path": path} for path in ("none/{{name}}", "apps/{{name}}-[x]")]
    spec = {"generators": [{"clusters": {}}], "template": {"metadata": {"name": "a"}, "spec": {"sources": sources}}}
    body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "all"}, "spec": spec}
    spec = {"source": {"deliveryTools": {"repositories": [url]}}}
    settings = {"apiVersion": "gitsched.io/v1alpha1", "kind": "Config", "metadata": {"name": "gitsched"}, "spec": spec}
    files = {"set.yaml": yaml.safe_dump(body), "apps/web-[x]/web.yaml": deployment("web"), "all.yaml": policy()}
    fleet.commit({**files, "gitsched.yaml": yaml.safe_dump(settings)})
    unknown = [finding for finding in fleet.preview().plan.findings if finding.code == "unknown-path"]
    assert [finding.location and finding.location.path for finding in unknown] == found


def test_a_workload_with_too_many_dependencies_is_reported(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("dependency_index", "dependencies_distributor"):
        monkeypatch.setattr(f"gitsched.apis.karmada.dependencies.{module}.MAX_REACHED", 2)
    maps = {f"{n}.yaml": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{n}, namespace: default}}\n" for n in range(4)}
    volumes = ", ".join(f"{{name: v{number}, configMap: {{name: m{number}}}}}" for number in range(4))
    web = deployment("web") + f"  template: {{spec: {{containers: [{{name: c, image: i}}], volumes: [{volumes}]}}}}\n"
    fleet.commit({**maps, "web.yaml": web, "one.yaml": cluster("one"), "all.yaml": policy("one", more="  propagateDeps: true\n")})
    (found,) = [finding for finding in fleet.reconcile().plan.findings if finding.code == "dependencies-limit"]
    assert found.location is not None
    assert (found.severity, found.location.path) == ("warning", "web.yaml")


def test_commits_of_other_repositories_beyond_the_limit_wait_for_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gitsched.reconcile.builds.remote_bases.MAX_FETCHED", 1)
    bases = RemoteBases(tmp_path, RemotePolicy(connect=True, trusted=None, own=None, fetchable=("git.example.com",)))
    first, second = (
        bases.open(RemoteBase(f"https://git.example.com/{name}.git", f"git.example.com/{name}", "a" * 40, "")) for name in "ab"
    )
    assert "is not in the cache" in str(first)
    assert "more than 1 commits of other repositories" in str(second)
