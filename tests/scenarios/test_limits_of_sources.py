"""Beyond the limits on what is built and searched in the source, a finding says so, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from gitsched.decide.catalog import make_raw_document
from gitsched.git import Repository
from gitsched.model.finding import Finding
from gitsched.reconcile import Reconciler, RunResult
from gitsched.reconcile.builds.object_sources import _list_namespaces
from gitsched.reconcile.builds.source_identity import Artifact, read_artifact
from gitsched.reconcile.builds.tool_documents import DocumentIndex
from gitsched.reconcile.review.contact_changes import list_contacts
from gitsched.reconcile.source import source_history
from gitsched.reconcile.source.commit_tree import CommitTree, resolve_closures
from gitsched.reconcile.source.hidden_sources import _find_policy_file
from gitsched.reconcile.source.source_reader import SourceReader
from gitsched.reconcile.tenants.tenant_rules import _list_pointers

from .conftest import UNGUARDED, Fleet, cluster, deployment, policy
from .test_flux_paths import DEPLOYMENT, LAYOUT, kustomization

Patch = Callable[[str, int], None]


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Patch:
    return lambda name, value: monkeypatch.setattr(f"gitsched.reconcile.{name}", value)


def find(run: RunResult, code: str) -> list[Finding]:
    return [finding for finding in run.plan.findings if finding.code == code]


# Earlier versions of what is broken

DRAINED, TYPO = cluster("first", "power:NoExecute"), "x: [\n"


def test_a_search_for_a_valid_version_that_ends_early_is_reported(pair: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.reconcile()
    pair.commit({"clusters/first.yaml": DRAINED}, hour=1)
    for number in range(3):
        pair.commit({"clusters/first.yaml": DRAINED + TYPO * (number + 1), "note.txt": str(number)}, hour=1)
    assert find(pair.preview(1), "history-incomplete") == []
    for name, value in (("MAX_CHANGES", 1), ("MAX_VERSIONS", 1), ("MAX_SIZE", 300)):
        with monkeypatch.context() as patch:
            patch.setattr(source_history, name, value)
            (found,) = find(pair.preview(1), "history-incomplete")
        assert "it is longer than what is searched" in found.message, name


def test_only_some_commits_of_a_shallow_clone_are_fetched_one_by_one(limit: Patch) -> None:
    asked: list[str] = []
    repository = SimpleNamespace(is_shallow=True)
    source: Any = SimpleNamespace(
        has=lambda oid: False,
        repository=repository,
        fetch_history=lambda *_: None,
        fetch_commit=lambda oid: bool(asked.append(oid)),
    )
    fetched: Any = SimpleNamespace(record=None, source=SimpleNamespace(oid="a"))
    limit("source.source_history.MAX_FETCHES", 0)
    history = source_history.SourceHistory(SimpleNamespace(source=source), fetched)  # type: ignore[arg-type]
    assert (history._read_commit("b"), asked) == (None, [])


# Builds

CONFIG = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: g}\nspec: {source: {kustomize: {build: [app]}}}\n"
ROOT = "resources: [web.yaml]\n"
BROKEN = "resources: [web.yaml, missing.yaml]\n"
BUILT = {
    "gitsched.yaml": CONFIG,
    "one.yaml": cluster("one"),
    "all.yaml": policy(),
    "app/kustomization.yaml": ROOT,
    "app/web.yaml": deployment("web", 1),
}


@pytest.mark.needs("kubectl")
def test_the_version_of_the_last_run_counts_where_the_search_ends(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.commit(BUILT)
    fleet.reconcile()
    fleet.commit({"app/web.yaml": deployment("web", 2)}, hour=1)
    fleet.commit({"app/kustomization.yaml": BROKEN}, hour=1)
    for name, replicas in (("", [2]), ("MAX_EARLIER_COMMITS", []), ("MAX_EARLIER_BUILDS", [])):
        with monkeypatch.context() as patch:
            if name:
                patch.setattr(f"gitsched.reconcile.builds.kustomize_roots.{name}", 0)
            run = fleet.preview(1)
        (found,) = find(run, "kustomize-missing")
        assert "with the objects of commit" in found.message
        assert [move.after["one"] for move in run.plan.moves] == replicas
        assert len(find(run, "history-incomplete")) == (name == "MAX_EARLIER_COMMITS")


TWO_PATHS: Mapping[str, str] = {
    **LAYOUT,
    "clusters/prod/apps.yaml": kustomization("targetNamespace: shop")
    + "---\n"
    + kustomization("targetNamespace: shop", "more", "./more"),
    "apps/web/deployment.yaml": DEPLOYMENT.replace("${HOST}", "h"),
    "more/web/deployment.yaml": DEPLOYMENT.replace("${HOST}", "h").replace("name: web", "name: api"),
}


@pytest.mark.needs("kubectl")
@pytest.mark.parametrize(
    ("name", "value", "severity", "text"),
    [
        ("MAX_PATHS", 1, "error", "tools reconcile more than 1 directories: the other ones, such as Flux Kustomization"),
        (
            "MAX_DEPTH",
            0,
            "warning",
            "Kustomizations and Applications build each other over more than 0 levels: the next ones, such as",
        ),
    ],
)
def test_directories_of_tools_beyond_a_limit_are_named(
    fleet: Fleet, name: str, value: int, severity: str, text: str, limit: Patch
) -> None:
    fleet.commit(TWO_PATHS)
    limit(f"builds.reconciled_paths.{name}", value)
    found = [finding for finding in find(fleet.preview(), "reconciled-path") if finding.message.startswith(text)]
    assert [finding.severity for finding in found] == [severity]


@pytest.mark.needs("kubectl")
def test_the_directory_of_a_tool_is_that_of_the_last_run_where_the_search_ends(fleet: Fleet, limit: Patch) -> None:
    fleet.commit(TWO_PATHS)
    fleet.reconcile()
    assert fleet.where("shop/deployment-api") == ["one"]
    fleet.commit({"more/kustomization.yaml": "resources: [missing.yaml]\n"}, hour=1)
    fleet.commit({"note.txt": "x"}, hour=1)
    limit("builds.reconciled_paths.MAX_EARLIER_COMMITS", 0)
    run = fleet.reconcile(1)
    assert len(find(run, "history-incomplete")) == 1
    assert fleet.where("shop/deployment-api") == ["one"]


BUNDLE = """\
apiVersion: gitsched.io/v1alpha1
kind: Bundle
metadata: {name: b, namespace: default}
spec: {variants: [{path: plain}]}
"""


def test_a_directory_of_plain_files_has_a_limit(fleet: Fleet, limit: Patch) -> None:
    files = {f"plain/{number}.yaml": deployment(f"w{number}") for number in range(2)}
    fleet.commit(
        {
            **files,
            "bundle.yaml": BUNDLE,
            "one.yaml": cluster("one"),
            "all.yaml": policy(kind="Bundle").replace("apps/v1", "gitsched.io/v1alpha1"),
        }
    )
    limit("bundles.bundle_files.MAX_FILES", 1)
    assert [
        "plain has more than 1 YAML files" in finding.message
        for finding in fleet.preview().plan.findings
        if finding.severity == "error"
    ] == [True]


def test_other_repositories_are_fetched_a_limited_number_of_times(limit: Patch) -> None:
    rounds: list[int] = []
    remotes = SimpleNamespace(fetch_wanted=lambda: bool(rounds.append(1)) or True)
    limit("source.commit_tree.MAX_ROUNDS", 3)
    commit: Any = SimpleNamespace(remotes=remotes)
    assert (resolve_closures([], commit), len(rounds)) == ([], 3)


# Searches


@pytest.fixture
def commit_tree(fleet: Fleet) -> Callable[[Mapping[str, str]], CommitTree]:
    def make(files: Mapping[str, str]) -> CommitTree:
        oid = fleet.commit(files)
        repository = Repository(str(fleet.path))
        context = Reconciler(fleet.settings())._context
        return CommitTree(
            repository, repository.entries(repository.commit(oid).tree), SourceReader(repository, context.caches.files)
        )

    return make


def test_namespaces_of_a_root_with_too_many_references_are_not_known(
    commit_tree: Callable[[Mapping[str, str]], CommitTree], limit: Patch
) -> None:
    commit = commit_tree({"kustomization.yaml": "namespace: shop\nresources: [a.yaml, b.yaml]\n", "a.yaml": "", "b.yaml": ""})
    (closure,) = resolve_closures(["."], commit)
    assert _list_namespaces(closure, commit) == {"a.yaml": {"shop"}, "b.yaml": {"shop"}}
    limit("builds.object_sources.MAX_REFERENCES", 1)
    assert _list_namespaces(closure, commit) == {}


def test_an_artifact_with_too_many_files_is_not_known(commit_tree: Callable[[Mapping[str, str]], CommitTree], limit: Patch) -> None:
    copy = {"from": "@repo/apps/**", "to": "@artifact/"}
    sources = [{"alias": "repo", "kind": "GitRepository", "name": "flux-system"}]
    body = {
        "apiVersion": "source.extensions.fluxcd.io/v1beta1",
        "kind": "ArtifactGenerator",
        "metadata": {"name": "g", "namespace": "flux-system"},
        "spec": {"sources": sources, "artifacts": [{"name": "apps", "copy": [copy]}]},
    }
    identity: Any = SimpleNamespace(is_flux_source=lambda *_: True)
    commit = commit_tree({"apps/a.yaml": "", "apps/b.yaml": "", "c.yaml": ""})
    assert read_artifact(make_raw_document(body), "apps", identity, commit, lambda *_: [""]) == Artifact(
        {"a.yaml": "apps/a.yaml", "b.yaml": "apps/b.yaml"}
    )
    limit("builds.source_identity.MAX_ARTIFACT_FILES", 1)
    found = read_artifact(make_raw_document(body), "apps", identity, commit, lambda *_: [""])
    assert found == Artifact({}, "the artifact apps has more than 1 files")


@pytest.mark.parametrize(("name", "value"), [("MAX_FILES", 1), ("MAX_SIZE", 50)])
def test_a_hidden_policy_is_searched_in_some_files(
    commit_tree: Callable[[Mapping[str, str]], CommitTree], fleet: Fleet, name: str, value: int, limit: Patch
) -> None:
    commit = commit_tree({"a.yaml": "a: b\n", "b.yaml": policy("one")})
    entries = commit.repository.entries(commit.repository.commit(fleet.git("rev-parse", "HEAD")).tree)
    assert _find_policy_file(commit.repository, entries) == "b.yaml"
    limit(f"source.hidden_sources.{name}", value)
    assert _find_policy_file(commit.repository, entries) == ""


def test_documents_of_tools_are_searched_in_files_that_are_not_too_large(
    commit_tree: Callable[[Mapping[str, str]], CommitTree], limit: Patch
) -> None:
    commit = commit_tree({"flux/apps.yaml": kustomization("targetNamespace: shop")})

    def count() -> int:
        return len(DocumentIndex(commit, {}, commit._reader).list_groups(["kustomize.toolkit.fluxcd.io"]))

    assert count() == 1
    limit("builds.tool_documents._MAX_SIZE", 50)
    assert count() == 0


def test_addresses_of_providers_are_compared_where_a_provider_can_have_one() -> None:
    def nest(depth: int) -> dict[str, Any]:
        value: dict[str, Any] = {"url": "http://x"}
        for _ in range(depth):
            value = {"a": value}
        return value

    assert [len(list(list_contacts({"spec": nest(depth)}))) for depth in (0, 7, 8, 150)] == [1, 1, 0, 0]


def test_entries_of_a_tenant_are_located_to_a_limit(limit: Patch) -> None:
    body = {"limits": {"requests": {f"r{number}": 1 for number in range(5)}}, "kinds": {"deny": [{}] * 5}}
    before = list(_list_pointers(body))
    limit("tenants.tenant_rules._MAX_ENTRIES", 2)
    after = list(_list_pointers(body))
    assert (len(before) - len(after), ("spec", "limits") in after, ("spec", "kinds", "deny", 2) in after) == (6, True, False)


def test_a_link_with_a_long_target_leads_nowhere(fleet: Fleet, limit: Patch) -> None:
    (fleet.path / "b").symlink_to("./one.yaml")
    fleet.commit({"one.yaml": cluster("one")})
    assert find(fleet.preview(), "symlink") == []
    limit("source.unread_entries._MAX_TARGET", 5)
    assert ["it leads to no file" in finding.message for finding in find(fleet.preview(), "symlink")] == [True]


# Caches


def test_caches_that_are_full_change_no_result(make_fleet: Callable[[str], Fleet], limit: Patch) -> None:
    for name in (
        "incremental.changed_files.MAX_CHANGED_FILES",
        "cache.caches.MAX_OLD_VERSIONS",
        "output.patched_manifests.MAX_CACHED",
    ):
        limit(name, -5)
    trees = []
    for kept in (True, False):
        fleet = make_fleet("kept" if kept else "fresh")
        files = {f"{name}.yaml": deployment(name, 4) for name in "ab"}
        fleet.commit(
            {**files, "gitsched.yaml": UNGUARDED, "one.yaml": cluster("one"), "two.yaml": cluster("two"), "all.yaml": policy()}
        )
        process = Reconciler(fleet.settings())
        found = [process.run(fleet.settings().now).tree]
        for hour in (1,):
            fleet.commit({"a.yaml": deployment("a", 4 + hour)}, hour=hour)
            process = process if kept else Reconciler(fleet.settings(cache=fleet.path.parent / f"cache-{hour}"))
            found.append(process.run(fleet.settings(hour).now).tree)
        trees.append(found)
    assert trees[0] == trees[1]


def test_equal_parts_of_more_records_than_are_kept_change_no_result(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"{name}.yaml": deployment(name, 4) for name in "abc"}
    fleet.commit({**files, "one.yaml": cluster("one"), "two.yaml": cluster("two"), "all.yaml": policy()})
    before = fleet.preview(cache=fleet.path.parent / "first").tree
    for module in ("apis.karmada.binding.resource_binding", "decide.rendered_tree"):
        monkeypatch.setattr(f"gitsched.{module}._MAX_PARTS", 0)
    assert fleet.preview(cache=fleet.path.parent / "second").tree == before


def test_a_file_of_rules_that_is_too_large_is_an_error(fleet: Fleet, limit: Patch) -> None:
    fleet.commit(
        {".sourceignore": "/hidden\n", "hidden/web.yaml": deployment("web"), "all.yaml": policy(), "one.yaml": cluster("one")}
    )
    assert find(fleet.preview(), "ignore-rules") == []
    limit("source.ignore_files.MAX_IGNORE_SIZE", 5)
    (found,) = find(fleet.preview(), "ignore-rules")
    assert (str(found.location), found.message[:34]) == (".sourceignore:1:1", "the file has more than 5 bytes: it")
