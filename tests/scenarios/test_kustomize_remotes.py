"""Kustomizations with bases in other Git repositories: which are fetched, and that the objects are those of kustomize."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gitsched.model.finding import Finding
from gitsched.reconcile import validate_source
from gitsched.reconcile.review.comparison import compare_plans
from tests.git.conftest import Server

from .conftest import Fleet, cluster, deployment, policy

SETTINGS = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec:
  source:
    kustomize:
      build: [prod]
      remotes: [%s]
"""
BASE = {
    "config/base/kustomization.yaml": "resources: [web.yaml, ../rules]\n",
    "config/base/web.yaml": deployment("web"),
    "config/rules/kustomization.yaml": "resources: [rules.yaml]\n",
    "config/rules/rules.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rules, namespace: default}\n",
    "config/raw.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: raw, namespace: default}\n",
}


class World:
    """A fleet whose root has a base in another repository, which a smart HTTP server serves."""

    def __init__(self, fleet: Fleet, base: Fleet, server: Server) -> None:
        self.fleet, self.base, self.server = fleet, base, server
        self.oid = base.commit(BASE)
        self.host = f"127.0.0.1:{server.port}"
        self.url = f"http://{self.host}/open/base/.git"

    @classmethod
    @contextmanager
    def open(cls, make_fleet: Callable[[str], Fleet]) -> Iterator[World]:
        """Serve a repository with a base while the block runs."""
        base = make_fleet("base")
        server = Server(base.path.parent)
        yield cls(make_fleet("source"), base, server)
        server.close()

    def layout(self, *resources: str, remotes: str | None = None) -> dict[str, str | bytes | None]:
        lines = "".join(f"- {text}\n" for text in resources or (f"{self.url}//config/base?ref={self.oid}",))
        return {
            "gitsched.yaml": SETTINGS % (self.host if remotes is None else remotes),
            "clusters/one.yaml": cluster("one"),
            "policies/all.yaml": policy("one"),
            "prod/kustomization.yaml": f"resources:\n{lines}images: [{{name: web, newTag: '2'}}]\n",
        }

    def errors(self, hour: float = 0, **settings: object) -> list[Finding]:
        return [finding for finding in self.fleet.reconcile(hour, **settings).plan.findings if finding.severity == "error"]


@pytest.fixture
def world(make_fleet: Callable[[str], Fleet], tmp_path: Path) -> Iterator[World]:
    with World.open(make_fleet) as world:
        yield world


def test_a_pinned_base_is_fetched_and_kept_in_the_cache(world: World) -> None:
    world.fleet.commit(world.layout())
    assert world.errors() == []
    assert world.fleet.where("default/deployment-web") == ["one"]
    world.server.close()
    world.fleet.commit({"prod/kustomization.yaml": str(world.layout()["prod/kustomization.yaml"]) + "namePrefix: a-\n"}, hour=1)
    assert world.errors(1) == [], "the server is gone, and the commit is in the cache"


@pytest.mark.parametrize(
    "form",
    [
        "{url}//config/base?ref={oid}",
        "{url}/config/base/?version={oid}&timeout=60s",
        "'{url}//config/base?ref={oid}'",
        '"file://{path}/.git//config/base?ref={oid}"',
    ],
)
def test_forms_of_urls(world: World, form: str) -> None:
    text = form.format(url=world.url, oid=world.oid, path=world.base.path)
    world.fleet.commit(world.layout(text, remotes=f"'{world.host}', '{world.base.path}'"))
    assert world.errors() == []
    assert world.fleet.where("default/deployment-web") == ["one"]


def test_the_objects_are_those_of_a_copy_in_the_repository(world: World, make_fleet: Callable[[str], Fleet]) -> None:
    copied = make_fleet("copied")
    copied.commit({**world.layout("../vendor/config/base"), **{f"vendor/{path}": text for path, text in BASE.items()}})
    copied.reconcile()
    world.fleet.commit(world.layout())
    world.fleet.reconcile()
    path = "clusters/one/default/deployment-web.yaml"
    assert world.fleet.read(path) == copied.read(path)


def test_findings_about_objects_of_a_remote_base_point_to_the_reference(world: World) -> None:
    world.fleet.commit({**world.layout(), "policies/all.yaml": policy("none")})
    (finding,) = [found for found in world.fleet.reconcile().plan.findings if found.code == "unschedulable"]
    assert str(finding.location) == "prod/kustomization.yaml:2:3"


@pytest.mark.parametrize(
    ("resource", "remotes", "text"),
    [
        ("{url}//config/base?ref=main", None, "not pinned to a commit, but to main: append `?ref=`"),
        ("{url}//config/base", None, "not pinned to a commit: append `?ref=`"),
        ("{url}//config/base?ref={oid}", "", "source.kustomize.remotes does not allow {host}/open/base"),
        ("{url}//config/base?ref={oid}", "github.com", "source.kustomize.remotes does not allow {host}/open/base"),
        ("{url}//config/base?ref=" + "0" * 40, None, "cannot fetch from"),
        ("http://{host}/forbidden/base/.git//config?ref={oid}", None, "cannot fetch from"),
        ("{url}//absent?ref={oid}", None, "which the commit does not have"),
        ("{url}//config/base/../../../../..?ref={oid}", None, "outside of the repository"),
        ("https://example.com/a.yaml", None, "the URL of a file names no commit"),
        ("ftp://example.com/a", None, "not a URL that gitsched fetches from"),
    ],
)
def test_what_cannot_be_read_is_located_with_a_cure(world: World, resource: str, remotes: str | None, text: str) -> None:
    values = {"url": world.url, "oid": world.oid, "host": world.host}
    world.fleet.commit(world.layout(resource.format(**values), remotes=remotes))
    (finding,) = world.errors()
    assert (finding.code in ("kustomize-remote", "kustomize-missing", "kustomize-escape"), str(finding.location)) == (
        True,
        "prod/kustomization.yaml:2:3",
    )
    assert text.format(**values) in finding.message


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"config/base/kustomization.yaml": "resources: [web.yaml, ../../../secret.yaml]\n"}, "outside of the repository"),
        ({"config/base/kustomization.yaml": "resources: [../../../../../../prod]\n"}, "outside of the repository"),
        ({"config/base/kustomization.yaml": "resources: [absent.yaml]\n"}, "does not have"),
        ({"config/base/kustomization.yaml": "resources: [https://example.com/other/name//base]\n"}, "not pinned"),
        (
            {"config/base/kustomization.yaml": "helmCharts: [{name: db, repo: 'https://x.test'}]\n"},
            "copy this base into the repository",
        ),
    ],
)
def test_problems_inside_of_a_remote_base_point_to_the_reference(
    world: World, files: dict[str, str | bytes | None], text: str
) -> None:
    world.oid = world.base.commit(files, hour=1)
    world.fleet.commit({**world.layout(), "secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: secret}\n"})
    (finding,) = world.errors()
    assert str(finding.location) == "prod/kustomization.yaml:2:3"
    assert text in finding.message
    assert "/config/base/kustomization.yaml:1:" in finding.message
    assert ".gitsched-remote" not in finding.message


def test_a_base_may_name_a_base_in_a_third_repository(world: World, make_fleet: Callable[[str], Fleet]) -> None:
    third = make_fleet("third")
    oid = third.commit({"kustomization.yaml": "resources: [b.yaml]\n", "b.yaml": deployment("third")})
    url = f"http://{world.host}/open/third/.git?ref={oid}"
    world.oid = world.base.commit({"config/base/kustomization.yaml": f"resources: [web.yaml, '{url}']\n"}, hour=1)
    world.fleet.commit(world.layout())
    assert world.errors() == []
    assert world.fleet.where("default/deployment-third") == ["one"]


def test_validate_and_plan_do_not_connect(world: World) -> None:
    world.fleet.commit(world.layout())
    world.server.requests.clear()
    found = [finding for finding in validate_source(world.fleet.settings()).findings if finding.severity == "error"]
    assert [finding.code for finding in found] == ["kustomize-remote"]
    assert "`gitsched reconcile`" in found[0].message
    compare_plans(world.fleet.settings(trusted=False, observations="recorded"))
    assert world.server.requests == []
    world.fleet.reconcile()
    assert [finding for finding in validate_source(world.fleet.settings()).findings if finding.severity == "error"] == []


def review(world: World, base: str | None, hour: float) -> list[str]:
    settings = world.fleet.settings(hour, trusted=False, revision="HEAD" if base else None)
    comparison = compare_plans(settings, base)
    return [finding.message for finding in comparison.run.plan.findings if finding.code == "kustomize-remote"]


@pytest.mark.parametrize("base", [None, "main~1"])
def test_a_commit_under_review_cannot_widen_what_is_read(world: World, base: str | None) -> None:
    world.fleet.commit(
        {**world.layout("../base"), "gitsched.yaml": SETTINGS % "github.com", "base/kustomization.yaml": "resources: []\n"}
    )
    world.fleet.reconcile()
    world.fleet.commit(world.layout(), hour=1)
    world.server.requests.clear()
    (message,) = review(world, base, 1)
    assert "once a maintainer has merged that setting" in message
    assert world.server.requests == []


@pytest.mark.parametrize("base", [None, "main~1"])
def test_a_commit_under_review_reads_what_merged_settings_allow(world: World, base: str | None) -> None:
    world.fleet.commit({**world.layout("../base"), "base/kustomization.yaml": "resources: []\n"})
    world.fleet.reconcile()
    world.fleet.commit(world.layout(), hour=1)
    assert review(world, base, 1) == []
    assert world.server.requests != []
    world.fleet.commit({"gitsched.yaml": SETTINGS % "github.com"}, hour=2)
    (message,) = review(world, base, 2)
    assert "source.kustomize.remotes does not allow" in message
