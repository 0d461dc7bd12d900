"""A file whose documents give way to other content keeps them with an error; an empty or deleted file removes them."""

from __future__ import annotations

import pytest

from gitsched.reconcile import RunResult

from .conftest import Fleet, cluster, deployment
from .test_quarantine import codes

WEB = "default/deployment-web"
OTHER = {
    "a mapping": "a: b\nc: {d: e}\n",
    "without kind and apiVersion": deployment("web").replace("kind: Deployment\n", "").replace("apiVersion: apps/v1\n", ""),
    "no YAML": "a: b: c\n",
    "a list": "- one\n- two\n",
    "a List within a List": "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: []}]\n",
    "a text": "hello\n",
    "an object of another tool": "apiVersion: tool.example.com/v1\nkind: Settings\nspec: {a: 1}\n",
    "a template": "{{ if .Values.on }}\nreplicas: 1\n{{ end }}\n",
}
EMPTY = {"nothing": "", "comments": "# moved\n", "a marker": "---\n# moved\n"}


def errors(run: RunResult) -> list[tuple[str, str]]:
    return [(finding.code, str(finding.location)) for finding in run.plan.findings if finding.severity == "error"]


@pytest.mark.parametrize("text", OTHER.values(), ids=OTHER)
def test_a_file_with_other_content_keeps_its_documents_until_it_is_restored(pair: Fleet, text: str) -> None:
    pair.reconcile()
    pair.commit({"apps/web.yaml": text}, hour=1)
    for hour in (1, 2):
        run = pair.reconcile(hour)
        (error,) = [finding for finding in run.plan.findings if finding.severity == "error"]
        assert (error.code, str(error.location)) == ("no-longer-manifest", "apps/web.yaml:1:1")
        assert "restore the file, or delete it" in error.message
        assert "()" not in error.message, "the reason is given"
        assert pair.where(WEB) == ["first"]
        pair.commit({"apps/other.yaml": deployment("other", hour)}, hour=hour + 1)
    pair.commit({"apps/web.yaml": deployment("web", 7)}, hour=3)
    assert codes(pair.reconcile(3)) == set()
    assert pair.load(f"clusters/first/{WEB}.yaml")["spec"]["replicas"] == 7


def test_a_cluster_whose_file_has_other_content_keeps_its_workloads(pair: Fleet) -> None:
    pair.reconcile()
    pair.commit({"clusters/first.yaml": "region: south\n"}, hour=1)
    assert errors(pair.reconcile(1)) == [("no-longer-manifest", "clusters/first.yaml:1:1")]
    assert pair.where(WEB) == ["first"]


def test_text_that_is_not_yaml_keeps_the_documents(pair: Fleet) -> None:
    pair.reconcile()
    pair.commit({"apps/web.yaml": "a: b: kind\n"}, hour=1)
    assert errors(pair.reconcile(1)) == [("no-longer-yaml", "apps/web.yaml:1:1")]
    assert pair.where(WEB) == ["first"]


def test_the_newest_documents_count_if_no_run_has_seen_them(pair: Fleet) -> None:
    pair.reconcile()
    pair.commit({"apps/web.yaml": deployment("web", 5)}, hour=1)
    pair.commit({"apps/web.yaml": "a: b\n"}, hour=1)
    pair.reconcile(1)
    assert pair.load(f"clusters/first/{WEB}.yaml")["spec"]["replicas"] == 5


@pytest.mark.parametrize("text", [*EMPTY.values(), None], ids=[*EMPTY, "deleted"])
@pytest.mark.parametrize("broken_before", [False, True])
def test_an_empty_or_deleted_file_removes_its_documents(pair: Fleet, text: str | None, broken_before: bool) -> None:
    pair.commit({"apps/other.yaml": deployment("other"), "clusters/third.yaml": cluster("third")})
    pair.reconcile()
    if broken_before:
        pair.commit({"apps/web.yaml": "a: b\n"}, hour=1)
        pair.reconcile(1)
    pair.commit({"apps/web.yaml": text}, hour=2)
    assert errors(pair.reconcile(2)) == []
    assert pair.where(WEB) == []


def test_a_file_that_a_kustomization_reads_as_a_patch_has_another_purpose(pair: Fleet) -> None:
    pair.reconcile()
    kustomization = "resources: [base.yaml]\npatches: [{path: web.yaml, target: {kind: Deployment}}]\n"
    patch = "- {op: replace, path: /spec/replicas, value: 3}\n"
    base = deployment("base")
    pair.commit({"apps/kustomization.yaml": kustomization, "apps/web.yaml": patch, "apps/base.yaml": base}, hour=1)
    assert "no-longer-manifest" not in dict(errors(pair.reconcile(1)))


def test_other_yaml_that_never_was_a_manifest_is_no_finding(pair: Fleet) -> None:
    pair.commit({"values.yaml": "a: 1\n"})
    pair.reconcile()
    pair.commit({"values.yaml": "a: 2\n", "apps/web.yaml": deployment("web", 3)}, hour=1)
    assert codes(pair.reconcile(1)) == set()


BARE = deployment("web", 5).replace("kind: Deployment\n", "").replace("apiVersion: apps/v1\n", "")
OTHER_DOCUMENT = {"without kind and apiVersion": BARE, "a mapping": "a: b\n", "a list": "- one\n"}


def join(*texts: str) -> dict[str, str]:
    return {"apps/all.yaml": "---\n".join(texts)}


@pytest.mark.parametrize("text", OTHER_DOCUMENT.values(), ids=OTHER_DOCUMENT)
def test_one_document_of_several_with_other_content_stays_until_it_is_restored(pair: Fleet, text: str) -> None:
    other = deployment("other")
    pair.commit({**join(deployment("web"), other), "apps/web.yaml": None})
    pair.reconcile()
    pair.commit(join(text, deployment("other", 7)), hour=1)
    pair.commit({"note.txt": "x"}, hour=1)
    for hour in (1, 2):
        run = pair.reconcile(hour)
        assert errors(run) == [("no-longer-manifest", "apps/all.yaml:1:1")]
        assert pair.where(WEB) == ["first"]
        assert pair.load("clusters/first/default/deployment-other.yaml")["spec"]["replicas"] == 7
        pair.commit({"note.txt": str(hour)}, hour=hour + 1)
    pair.commit(join(deployment("web", 3), other), hour=4)
    assert errors(pair.reconcile(4)) == []
    assert pair.load(f"clusters/first/{WEB}.yaml")["spec"]["replicas"] == 3
    pair.commit(join(other, text), hour=5)
    (error,) = errors(pair.reconcile(5))
    assert error[1] == f"apps/all.yaml:{len(other.splitlines()) + 2}:1"
    pair.commit(join(other), hour=6)
    assert (errors(pair.reconcile(6)), pair.where(WEB)) == ([], [])


def test_a_document_that_is_removed_beside_other_content_is_removed(pair: Fleet) -> None:
    pair.commit({**join(deployment("web"), deployment("other"), "a: b\n"), "apps/web.yaml": None})
    pair.reconcile()
    pair.commit(join(deployment("other"), "a: c\n"), hour=1)
    assert (errors(pair.reconcile(1)), pair.where(WEB)) == ([], [])
