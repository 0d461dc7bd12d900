"""Hostile roots are findings in bounded time and memory, and do not stop other roots."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from gitsched.build import scratch
from gitsched.build.process import BuildLimits

from .conftest import Fleet, cluster, deployment, policy

SETTINGS = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec: {source: {kustomize: {build: [good, bad]}}}
"""
GOOD = {
    "gitsched.yaml": SETTINGS,
    "clusters/one.yaml": cluster("one"),
    "policies/all.yaml": policy("one"),
    "good/kustomization.yaml": "resources: [web.yaml]\nlabels: [{pairs: {a: b}}]\n",
    "good/web.yaml": deployment("web"),
}
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"


def double(levels: int) -> Iterator[tuple[str, str]]:
    """Yield bases of which each one has the objects of the one below it twice."""
    yield "l0/kustomization.yaml", "resources: [map.yaml]\n"
    yield "l0/map.yaml", MAP % "a" + f"data: {{a: {'x' * 10_000}}}\n"
    for level in range(1, levels):
        for side in "ab":
            yield f"l{level}{side}/kustomization.yaml", f"resources: [../l{level - 1}]\nnameSuffix: -{side}\n"
        yield f"l{level}/kustomization.yaml", f"resources: [../l{level}a, ../l{level}b]\n"
    yield "bad/kustomization.yaml", f"resources: [../l{levels - 1}]\n"


def bomb(levels: int) -> str:
    """Return YAML that has a billion members, written with aliases."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, levels)]
    return MAP % "bomb" + "data:\n" + "".join(f"  {line}\n" for line in lines)


def chain(length: int, last: str) -> dict[str, str | bytes | None]:
    """Return bases of which each one names the next one."""
    files: dict[str, str | bytes | None] = {f"d{n}/kustomization.yaml": f"resources: [../d{n + 1}]\n" for n in range(length)}
    return {**files, f"d{length}/kustomization.yaml": f"resources: [{last}]\n", "bad/kustomization.yaml": "resources: [../d0]\n"}


CASES: dict[str, tuple[dict[str, str | bytes | None], str]] = {
    "an output of a gigabyte": (dict(double(17)), ""),
    "an alias bomb in a resource": ({"bad/kustomization.yaml": "resources: [bomb.yaml]\n", "bad/bomb.yaml": bomb(9)}, ""),
    "an alias bomb in the kustomization": (
        {"bad/kustomization.yaml": "resources: []\n" + bomb(9).partition("data:\n")[2].replace("  a", "a")},
        "",
    ),
    "a cycle of 500 bases": (chain(500, "../d0"), ""),
    "more bases than the limit": (chain(2_100, "../d0"), "more than 10000 files or 2000 kustomizations"),
    "a base that includes itself": ({"bad/kustomization.yaml": "resources: [.]\n"}, ""),
}  # fmt: skip
LONG = ("an output of a gigabyte", "more bases than the limit")


@pytest.fixture
def limited(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    run: Callable[..., object] = scratch.run_isolated
    limits = BuildLimits(seconds=4, memory=1 << 30, output=4 << 20)
    monkeypatch.setattr(scratch, "run_isolated", lambda executable, arguments, place, _: run(executable, arguments, place, limits))
    return fleet


@pytest.mark.parametrize(
    ("files", "text"),
    [pytest.param(*case, id=name, marks=pytest.mark.long if name in LONG else ()) for name, case in CASES.items()],
)
def test_a_hostile_root_is_a_finding_in_bounded_time(limited: Fleet, files: dict[str, str | bytes | None], text: str) -> None:
    limited.commit({**GOOD, **files})
    start = time.monotonic()
    findings = [finding for finding in limited.reconcile().plan.findings if finding.severity == "error"]
    assert time.monotonic() - start < 45
    assert {finding.code for finding in findings} <= {"kustomize-build", "too-many-aliases", "kustomize-cycle"}
    assert any(finding.code == "kustomize-build" and text in finding.message for finding in findings)
    assert max(len(finding.message) for finding in findings) < 1_000
    assert limited.where("default/deployment-web") == ["one"], "the other root is built"


def test_hundreds_of_symbolic_links_are_a_few_findings(limited: Fleet) -> None:
    directory = limited.path / "bad"
    directory.mkdir()
    names = [f"l{number}.yaml" for number in range(800)]
    for name, target in zip(names, [*names[1:], "/etc/passwd"], strict=True):
        (directory / name).symlink_to(target)
    limited.commit({**GOOD, "bad/kustomization.yaml": f"resources: [{', '.join(names)}]\n"})
    findings = [finding for finding in limited.reconcile().plan.findings if finding.code == "kustomize-escape"]
    assert 0 < len(findings) <= 51
    assert "more problems" in findings[-1].message
    assert limited.where("default/deployment-web") == ["one"]
