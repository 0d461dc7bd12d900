"""A build beyond a limit is an error that names the limit, and nothing is built in part."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from gitsched.build import launcher, process
from gitsched.build.chart_archives import MAX_NESTED
from gitsched.build.chart_files import ChartRequest, resolve_chart
from gitsched.build.chart_stability import ChartSources, check_stable
from gitsched.build.commit_files import find_blob, follow_links
from gitsched.build.process import BuildLimits, run_isolated
from gitsched.build.scratch import run_on_files, select_contents
from tests.build.chart_archives import nest, pack, split
from tests.build.test_closure import Commit
from tests.local import PATIENCE

LIMITS = BuildLimits(seconds=PATIENCE)


def test_files_that_are_too_large_are_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    files, blobs = {"a": "1", "b": "2"}, {"1": b"xx", "2": b"xx"}
    assert select_contents(files, blobs) == {"a": b"xx", "b": b"xx"}
    monkeypatch.setattr("gitsched.build.scratch.MAX_SIZE", 3)
    assert select_contents(files, blobs) == "the files have more than 3 bytes"


def test_a_program_with_too_many_arguments_is_not_started() -> None:
    assert launcher._MAX_REQUEST == process._MAX_REQUEST
    for size, started in ((process._MAX_REQUEST - 2000, True), (process._MAX_REQUEST, False), (20 * process._MAX_REQUEST, False)):
        done = run_on_files(Path("/bin/echo"), "echo", ["-n", "x" * size], {}, LIMITS)
        assert (done == "echo is not started: its arguments have more than 65536 bytes") is not started


def test_errors_of_a_program_are_kept_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_MAX_ERROR", 10)
    monkeypatch.setattr(process, "_CHUNK", 10)
    (tmp_path / "x").write_text("y" * 500)
    done = run_isolated(Path("/bin/ls"), ["none/" + "z" * 200], tmp_path, LIMITS)
    assert (done.exit_code != 0, len(done.stderr)) == (True, 10)


CHART = "apiVersion: v2\nname: {}\nversion: 1.0.0\n"


def test_a_chart_with_too_many_charts_is_not_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"web/Chart.yaml": CHART.format("web")} | {f"web/charts/{name}/Chart.yaml": CHART.format(name) for name in "abc"}
    assert resolve_chart(ChartRequest("web", "web"), Commit(files)).problems == ()
    monkeypatch.setattr("gitsched.build.chart_files.MAX_SUBCHARTS", 2)
    problems = resolve_chart(ChartRequest("web", "web"), Commit(files)).problems
    assert [(found.code, found.message) for found in problems][:1] == [
        ("helm-build", "web has more than 2 charts: it is not rendered")
    ]


ARCHIVE = "web/charts/db.tgz"
RANDOM = {"db/templates/a.yaml": b"{{ randAlphaNum 8 }}"}


@pytest.mark.parametrize(
    ("packed", "code"),
    [
        (pack(RANDOM), "helm-random"),
        (split(pack(RANDOM)), "helm-random"),
        (pack(RANDOM) + b"no gzip", "helm-random"),
        (pack({"large": b"a" * 40_000, **RANDOM}), "helm-build"),
        (split(pack({"large": b"a" * 40_000, **RANDOM})), "helm-build"),
        (nest(pack(RANDOM), MAX_NESTED - 1), "helm-random"),
        (nest(pack(RANDOM), MAX_NESTED), "helm-build"),
    ],
    ids=["one part", "two parts", "more after it", "too long", "too long together", "nested", "nested too deep"],
)
def test_an_archive_is_searched_in_full_or_not_rendered(packed: bytes, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.build.chart_archives.MAX_ARCHIVE", 30_000)
    outputs = (b"%d" % number for number in range(100))
    found = check_stable(ChartSources("web", ["web"], {ARCHIVE: packed}), b"", lambda _: next(outputs))
    assert [(problem.code, problem.path) for problem in found] == [(code, ARCHIVE)]


def link(count: int) -> Mapping[str, str]:
    return {"file": "text", "l0": "->file", **{f"l{number}": f"->l{number - 1}" for number in range(1, count)}}


@pytest.mark.parametrize(
    ("files", "path", "reached"),
    [
        (link(20), "l19", True),
        (link(21), "l20", False),
        ({"file": "text", "a": "->" + "./" * 2046 + "file"}, "a", True),
        ({"d/file": "text", "e": "->d", "a": "->" + "./" * 2047 + "e/file"}, "a", False),
        ({"a": "->b", "b": "->a"}, "a", False),
    ],
)
def test_links_and_their_targets_are_followed_to_a_limit(files: Mapping[str, str], path: str, reached: bool) -> None:
    blob, found = find_blob(Commit(files), path)
    assert (blob == "text") is reached
    assert reached or found in follow_links(Commit(files), path).path
