"""Many builds that never end: a run with all of them ends, and the roots of others are built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitsched.build import scratch
from gitsched.build.builder import Builder
from gitsched.build.closure import Closure
from gitsched.build.kustomize import compute_build_key
from gitsched.build.process import EXPIRED, BuildLimits, ProcessResult

from .conftest import Fleet
from .test_kustomize_limits import GOOD

ROOTS = 300


def test_the_time_of_builds_shrinks_with_those_that_exceed_it(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds: list[float] = []
    run: Callable[..., ProcessResult] = scratch.run_isolated

    def run_or_expire(executable: Path, arguments: list[str], place: Path, limits: BuildLimits) -> ProcessResult:
        if "bad" not in arguments[-1]:
            return run(executable, arguments, place, limits)
        seconds.append(limits.seconds)
        return ProcessResult(-1, b"", "", f"{EXPIRED} {limits.seconds:g} seconds")

    monkeypatch.setattr(scratch, "run_isolated", run_or_expire)
    settings = str(GOOD["gitsched.yaml"]).replace("[good, bad]", "['bad*', good]")
    bad = {f"bad{number}/kustomization.yaml": f"resources: [../good]\nnamePrefix: a{number}-\n" for number in range(ROOTS)}
    fleet.commit({**GOOD, **bad, "gitsched.yaml": settings})
    fleet.reconcile()
    assert len(seconds) == ROOTS
    assert seconds[0] == 60
    assert sum(seconds) < 1_500
    assert fleet.where("default/deployment-web") == ["one"], "the root of others is built"
    seconds.clear()
    fleet.reconcile()
    assert seconds[:1] in ([], [60]), "the next run gives builds all the time"


def test_a_name_with_a_line_break_has_another_key_than_two_files() -> None:
    builder = Builder(Path("/kubectl"), "kubectl v1")
    one, two = "1" * 40, "2" * 40
    first = Closure("a", "a/kustomization.yaml", {"a": one, "b": two}, frozenset(), ())
    second = first._replace(files={f"a\n{two} b": one})
    assert compute_build_key(first, builder) != compute_build_key(second, builder)
