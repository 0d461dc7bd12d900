"""References to other repositories by an author who may not change the settings: nothing is fetched that the settings do not allow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .conftest import Fleet, cluster, deployment, policy
from .test_kustomize_remotes import World


@pytest.fixture
def world(make_fleet: Callable[[str], Fleet], tmp_path: Path) -> Iterator[World]:
    with World.open(make_fleet) as world:
        yield world


def test_a_root_that_was_never_allowed_is_not_fetched_to_keep_its_objects(world: World) -> None:
    world.fleet.commit(world.layout(remotes="github.com"))
    world.errors()
    world.fleet.commit({"other.txt": "a"}, hour=1)
    world.server.requests.clear()
    (finding,) = world.errors(1)
    assert "source.kustomize.remotes does not allow" in finding.message
    assert world.server.requests == []


def test_a_root_that_settings_allowed_keeps_its_objects(world: World) -> None:
    world.fleet.commit(world.layout())
    assert world.errors() == []
    world.fleet.commit({"gitsched.yaml": world.layout(remotes="github.com")["gitsched.yaml"]}, hour=1)
    (finding,) = world.errors(1)
    assert "source.kustomize.remotes does not allow" in finding.message
    assert world.fleet.where("default/deployment-web") == ["one"]


@pytest.mark.parametrize(
    "text", ["http://{host}/open/allowed/../base/.git//config/base", "http://{host}/open/allowed/%2e%2e/base/.git"]
)
def test_a_path_that_leads_to_another_repository_of_the_host_is_not_fetched(world: World, text: str) -> None:
    url = f"{text.format(host=world.host)}?ref={world.oid}"
    world.fleet.commit(world.layout(url, remotes=f"{world.host}/open/allowed"))
    world.server.requests.clear()
    (finding,) = world.errors()
    assert (finding.code, str(finding.location)) == ("kustomize-remote", "prod/kustomization.yaml:2:3")
    assert "correct the URL" in finding.message
    assert world.server.requests == []


def test_a_failing_url_of_a_repository_does_not_stop_another_root_that_names_it(world: World) -> None:
    files = world.layout()
    settings = str(files["gitsched.yaml"]).replace("[prod]", "[attack, prod]")
    failing = (
        world.url.replace("http://", "http://x:y@").replace("/open/", "/forbidden/"),
        world.url.replace("http://", "ssh://x@"),
    )
    references = "".join(f"- {url}//config/base?ref={world.oid}\n" for url in failing)
    world.fleet.commit({**files, "gitsched.yaml": settings, "attack/kustomization.yaml": f"resources:\n{references}"})
    errors = world.errors()
    assert {finding.location.path for finding in errors if finding.location} == {"attack/kustomization.yaml"}
    assert world.fleet.where("default/deployment-web") == ["one"]


@pytest.mark.needs("helm")
def test_a_values_file_that_is_an_object_of_others_stays_an_object(fleet: Fleet) -> None:
    fleet.commit(
        {
            "clusters/one.yaml": cluster("one"),
            "policies/all.yaml": policy("one"),
            "victim/web.yaml": deployment("web"),
            "chart/Chart.yaml": "apiVersion: v2\nname: chart\nversion: 0.1.0\n",
            "chart/templates/a.yaml": deployment("a"),
            "bundle.yaml": "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: b, namespace: default}\n"
            "spec: {path: chart, helm: {valuesFiles: [victim/web.yaml]}}\n",
        }
    )
    fleet.reconcile()
    assert fleet.where("default/deployment-web") == ["one"]
