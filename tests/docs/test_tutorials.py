"""A reader can follow every page: its files are laid down, its commands executed, and what those print is what the page says."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

import pytest

from tests.docs.cut_over import check_cut_over
from tests.docs.shell_blocks import BLOCK, ROOT, STAND_INS, START_OF_PAGE, make_example, play

WALKS = {f"examples/{path.parent.name}": path for path in sorted((ROOT / "examples").glob("*/README.md"))}
"""Walk-throughs beside the files that they start from."""
PAGES = {path.name: path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))} | WALKS
SHELL_PAGES = [name for name, path in PAGES.items() if "```sh" in path.read_text() or "```console" in path.read_text()]
PROGRAMS_OF_GUIDES = {
    "examples/kustomize": ("kubectl",),
    "examples/helm": ("kubectl", "helm"),
    "examples/flux": ("kubectl",),
    "examples/argocd": ("kubectl",),
    "examples/cut-over": ("kubectl",),
    "deploy.md": ("kubectl", "helm"),
    "facts.md": ("kubectl",),
}
"""Guides that run programs besides gitsched and git."""
CUT_OVERS = ("examples/cut-over", "examples/flux")
"""Guides in which the output branch takes over running clusters, and gives them back."""
CLUSTER, FORGE, REGISTRY, LONG = "needs a cluster", "writes to a forge", "pulls or pushes images or packages", "takes minutes"
NOT_RUN = {
    ("README.md", "make"): LONG,
    ("README.md", "pip"): REGISTRY,
    ("benchmarks.md", "make"): LONG,
    ("benchmarks.md", "python"): LONG,
    ("ci.md", "docker"): REGISTRY,
    ("ci.md", "forge"): FORGE,
    ("ci.md", "kubectl"): CLUSTER,
    ("consume.md", "kubectl"): CLUSTER,
    ("deploy.md", "curl"): CLUSTER,
    ("deploy.md", "docker"): REGISTRY,
    ("deploy.md", "helm"): CLUSTER,
    ("deploy.md", "kubectl"): CLUSTER,
    ("deploy.md", "kubeseal"): CLUSTER,
    ("examples/cut-over", "kubectl"): CLUSTER,
    ("examples/flux", "kubectl"): CLUSTER,
    ("from-karmada.md", "kubectl"): CLUSTER,
    ("from-ocm.md", "kubectl"): CLUSTER,
    ("index.md", "pip"): REGISTRY,
    ("knative.md", "kubectl"): CLUSTER,
    ("krake.md", "curl"): "needs the API of Krake",
    ("ocm.md", "curl"): "needs a service",
    ("ocm.md", "write-scores"): "is the reader's own program",
    ("watch.md", "curl"): "needs a service",
}
"""Why a program is a script of the test in blocks of a page."""


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_example(tmp_path_factory.mktemp("example") / "fleet")


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.needs(*PROGRAMS_OF_GUIDES.get(name, ()))) for name in SHELL_PAGES],
)
def test_the_commands_of_a_page_print_what_it_shows(name: str, tmp_path: Path, example: Path) -> None:
    page = PAGES[name].read_text()
    assert play(page, tmp_path / "fleet", example) == page, (
        "see what differs; `python -m tests.docs.test_tutorials` writes what is printed now"
    )
    if name in CUT_OVERS:
        check_cut_over(tmp_path / "fleet")


def test_every_stand_in_has_a_reason() -> None:
    marked = {
        (name, program)
        for name in SHELL_PAGES
        for block in BLOCK.finditer(PAGES[name].read_text())
        for program in re.findall(r"[\w-]+", block["programs"] or "")
    }
    assert marked == NOT_RUN.keys()
    assert {program for _, program in marked} == STAND_INS.keys()


def test_every_shell_block_is_run() -> None:
    for name, path in PAGES.items():
        text = path.read_text()
        fences = re.findall(r"^ *```(?:sh|console|shell|bash)\b", text, re.MULTILINE)
        assert len(fences) == sum(block["kind"] is not None for block in BLOCK.finditer(text)), name
        marks = [block for block in BLOCK.finditer(text) if block["programs"] or block["until"]]
        assert len(re.findall("^<!-- (?:starts|stand-in|until)", text, re.MULTILINE)) == len(marks) + len(
            START_OF_PAGE.findall(text)
        ), f"{name}: a comment belongs to a block"


def rewrite() -> None:
    """Let the named pages, or all, say what the program prints now, to be looked at as a diff."""
    os.environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory).resolve()
        example = make_example(scratch / "example" / "fleet")
        for name in sys.argv[1:] or SHELL_PAGES:
            PAGES[name].write_text(play(PAGES[name].read_text(), scratch / name / "fleet", example))


if __name__ == "__main__":
    rewrite()
