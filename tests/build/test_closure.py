"""The files of a commit that a kustomize root reads, and what stops a build before kustomize runs."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

import pytest

from gitsched.build.closure import Closure, resolve_closure
from gitsched.build.commit_files import SUBMODULE_MODE, SYMLINK_MODE
from gitsched.build.remote_base import RemoteBase, RemoteTree
from gitsched.manifests.kustomize import Kustomization
from gitsched.manifests.parser import parse_file


class Commit:
    """Files by path. A text that begins with `->` is a symbolic link, `submodule` a submodule."""

    def __init__(self, files: Mapping[str, str]) -> None:
        modes = {text: SYMLINK_MODE if text.startswith("->") else 0o100644 for text in files.values()} | {
            "submodule": SUBMODULE_MODE
        }
        self.entries = {path: (text, modes[text]) for path, text in files.items()}
        parents = (path.split("/")[:count] for path in files for count in range(1, path.count("/") + 1))
        self.directories = {".", *("/".join(parts) for parts in parents)}

    def read_blob(self, blob: str) -> bytes:
        return blob.removeprefix("->").encode()

    def open_remote(self, base: RemoteBase) -> RemoteTree | str:
        return "nothing is fetched"

    def is_hidden(self, _path: str) -> bool:
        return False

    def read_kustomization(self, blob: str, path: str) -> Kustomization | None:
        return parse_file(self.read_blob(blob), path=posixpath.basename(path), validate=None).kustomization


def resolve(files: Mapping[str, str], root: str = "over") -> Closure:
    return resolve_closure(root, Commit(files))


BASE = {"base/kustomization.yaml": "resources: [a.yaml]", "base/a.yaml": "a"}


def test_a_closure_has_the_files_of_bases_components_and_inputs() -> None:
    files = {
        **BASE,
        "base/unused.yaml": "u",
        "part/kustomization.yml": "kind: Component\npatches: [{path: p.yaml}]",
        "part/p.yaml": "p",
        "plugins/kustomization.yaml": "resources: [g.yaml]",
        "plugins/g.yaml": "apiVersion: builtin\nkind: ConfigMapGenerator\nfiles: [k=text]\n",
        "plugins/text": "t",
        "over/kustomization.yaml": (
            "resources: [../base, b.yaml]\ncomponents: [../part]\ngenerators: [../plugins]\n"
            "configMapGenerator: [{name: a, files: [x=c.txt], envs: [e.env]}]\nopenapi: {path: s.json}\n"
        ),
        **{f"over/{name}": name for name in ("b.yaml", "c.txt", "e.env", "s.json", "unused")},
    }
    closure = resolve(files)
    assert closure.problems == ()
    assert closure.files.keys() == files.keys() - {"base/unused.yaml", "over/unused"}
    assert closure.kustomization == "over/kustomization.yaml"
    assert {"base/a.yaml", "over/b.yaml"} <= closure.resources


@pytest.mark.parametrize(
    ("text", "more", "code"),
    [
        ("resources: [x.yaml]", {}, "kustomize-missing"),
        ("resources: [../none]", {"none/a.yaml": "a"}, "kustomize-missing"),
        ("resources: [../../x]", {}, "kustomize-escape"),
        ("resources: [/etc/passwd]", {}, "kustomize-escape"),
        ("resources: [github.com/example/app//base?ref=v1]", {}, "kustomize-remote"),
        ("resources: ['https://example.com/a.yaml']", {}, "kustomize-remote"),
        ("resources: ['git@example.com:a/b.git?ref=main']", {}, "kustomize-remote"),
        ("patches: [{path: p.yaml}]", {"over/p.yaml": "->../../../etc/passwd"}, "kustomize-escape"),
        ("patches: [{path: p.yaml}]", {"over/p.yaml": "->/etc/passwd"}, "kustomize-escape"),
        ("patches: [{path: p.yaml}]", {"over/p.yaml": "->p.yaml"}, "kustomize-escape"),
        ("resources: [module]", {"over/module": "submodule"}, "kustomize-missing"),
        ("transformers: [t.yaml]", {"over/t.yaml": "kind: PatchTransformer\npath: /etc/passwd\n"}, "kustomize-escape"),
        ("transformers:\n- |-\n  kind: PatchTransformer\n  path: /etc/passwd\n", {}, "kustomize-escape"),
        ("generators: [g.yaml]", {"over/g.yaml": "kind: HelmChartInflationGenerator\nname: a\n"}, "kustomize-helm"),
        ("helmCharts: [{name: a}]", {}, "kustomize-helm"),
        (
            "generators: [g.yaml]",
            {"over/g.yaml": "apiVersion: viaduct.ai/v1\nkind: ksops\nfiles: [/etc/passwd]\n"},
            "kustomize-plugin",
        ),
        (
            "generators: [../p]",
            {"p/kustomization.yaml": "resources: [k.yaml]", "p/k.yaml": "apiVersion: a/v1\nkind: X\n"},
            "kustomize-plugin",
        ),
        ("configMapGenerator: [{name: a, Files: [/etc/passwd]}]", {}, "kustomize-build"),
        ("RESOURCES: [/etc/passwd]", {}, "kustomize-build"),
    ],
)
def test_what_is_not_a_file_of_the_commit_stops_the_build(text: str, more: Mapping[str, str], code: str) -> None:
    closure = resolve({**BASE, "over/kustomization.yaml": text, **more})
    assert [problem.code for problem in closure.problems] == [code]
    assert closure.problems[0].path in ("over/kustomization.yaml", "p/kustomization.yaml")


def test_a_symbolic_link_to_a_file_of_the_commit_is_read_where_the_link_is() -> None:
    links = {"over/l.yaml": "->m.yaml", "over/m.yaml": "->../base/a.yaml"}
    closure = resolve({**BASE, "over/kustomization.yaml": "resources: [l.yaml]", **links})
    assert (closure.problems, closure.files["over/l.yaml"]) == ((), "a")


@pytest.mark.parametrize("names", [["Kustomization", "kustomization.yaml"], []])
def test_a_root_has_one_kustomization(names: list[str]) -> None:
    closure = resolve({"over/a.yaml": "a", **{f"over/{name}": "resources: []" for name in names}})
    assert [problem.code for problem in closure.problems] == ["kustomize-missing"]


def test_a_chain_of_kustomizations_is_bounded() -> None:
    files = {f"d{n}/kustomization.yaml": f"resources: [../d{n + 1}]" for n in range(3_000)}
    closure = resolve(files, "d0")
    assert [problem.code for problem in closure.problems] == ["kustomize-build"]
    assert len(closure.files) <= 2_001


def test_a_root_with_too_many_files_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.build.closure.MAX_FILES", 2)
    names = [f"{number}.yaml" for number in range(5)]
    closure = resolve({"over/kustomization.yaml": f"resources: {names}", **{f"over/{name}": "a" for name in names}})
    assert [problem.code for problem in closure.problems] == ["kustomize-build"]


def test_a_cycle_is_followed_once() -> None:
    closure = resolve({"over/kustomization.yaml": "resources: [../base]", "base/kustomization.yaml": "resources: [../over]"})
    assert (closure.problems, len(closure.files)) == ((), 2)


def test_the_files_of_a_directory_behind_links_have_its_own_path() -> None:
    links = {"over/near": "->../far", "far": "->deep/../base", "deep": "->lib/deep", "lib/deep/x": "x", "lib/base": "->../base"}
    closure = resolve({**BASE, **links, "over/kustomization.yaml": "resources: [near, near/a.yaml]"})
    assert closure.problems == ()
    assert (closure.resources, closure.outside) == ({"base/a.yaml"}, {"base/a.yaml"})
    assert closure.links == {"over/near": "base", "far": "base", "deep": "lib/deep", "lib/base": "base"}
    assert (closure.follow_links("over/near/a.yaml"), closure.follow_links("over/b.yaml")) == ("base/a.yaml", "over/b.yaml")


@pytest.mark.parametrize(("count", "codes"), [(20, []), (21, ["kustomize-missing"])])
def test_links_to_directories_are_bounded(count: int, codes: list[str]) -> None:
    chain = {f"l{number}": f"->l{number + 1}" for number in range(1, count)} | {f"l{count}": "->base"}
    closure = resolve({**BASE, **chain, "over/kustomization.yaml": "resources: [../l1/a.yaml]"})
    assert [problem.code for problem in closure.problems] == codes


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "git-lfs-pointer"),
        ("\0GITCRYPT\0abc", "git-crypt"),
        ("a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> main\n", "conflict-markers"),
    ],
)
def test_data_that_git_does_not_have_stops_the_build(content: str, code: str) -> None:
    kustomization = "configMapGenerator:\n- name: a\n  files: [data.json]\n"
    (problem,) = resolve({"over/kustomization.yaml": kustomization, "over/data.json": content}).problems
    assert (problem.code, problem.path, problem.line) == (code, "over/kustomization.yaml", 3)
    assert problem.message.startswith("configMapGenerator names data.json: ")


@pytest.mark.parametrize("name", ["charts/db-1.0.0.tgz", "values.yaml", "templates/a.yaml"])
def test_a_pointer_in_an_inflated_chart_stops_the_build(name: str) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
    chart = {"over/charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", f"over/charts/web/{name}": pointer}
    kustomization = "helmCharts: [{name: web, releaseName: web}]\n"
    (problem,) = resolve({"over/kustomization.yaml": kustomization, **chart}).problems
    assert (problem.code, problem.path) == ("git-lfs-pointer", f"over/charts/web/{name}")
