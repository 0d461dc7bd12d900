"""What clients, and commands, send to gitsched has limits; beyond them there is an answer or an error that names the limit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from gitsched.cli.scenario_values import _parse_factor
from gitsched.forge.credentials import Credential
from gitsched.model.errors import Permanent
from gitsched.model.finding import Finding
from gitsched.reconcile.facts.score_reception import RejectedInput, _parse_scores
from gitsched.report.isolated_review import MAX_FAULTS, isolate_review
from gitsched.report.review import Review
from gitsched.report.saved_plan import parse_saved_plan
from gitsched.watch import http_server, score_endpoint
from gitsched.watch.http_server import HttpResponse
from gitsched.watch.ref_watcher import MAX_POLLED, _compute_poll_interval
from gitsched.watch.score_endpoint import ClusterTokens, ScoreEndpoint
from tests.watch.test_live_pages import Site, read_until
from tests.watch.test_live_pages import open_site as open_site

TOKEN = "0123456789abcdef"


class SlowCommitter:
    """Commits scores when `open` is set."""

    def __init__(self) -> None:
        self.open, self.started = threading.Event(), threading.Event()

    def receive(self, cluster: str, data: bytes, /) -> str | None:
        self.started.set()
        self.open.wait(60)
        return "a" * 40


def test_pushes_beyond_the_queue_are_refused_and_those_in_it_are_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_endpoint, "MAX_QUEUE", 2)
    committer, outcomes = SlowCommitter(), list[str]()
    tokens = ClusterTokens(Credential("tokens", value=f"ash {TOKEN}"))
    endpoint = ScoreEndpoint(tokens, committer, outcomes.append, lambda: None)
    first = endpoint._submit("ash", b"")
    assert committer.started.wait(60)
    waiting = [endpoint._submit("ash", b"") for _ in range(3)]
    assert isinstance(refused := waiting.pop(), HttpResponse)
    assert (refused.status, refused.body, refused.headers) == (503, b"too many pushes are waiting\n", (("Retry-After", "30"),))
    committer.open.set()
    found = [each.result(60).status for each in (first, *waiting) if not isinstance(each, HttpResponse)]
    assert (found, outcomes.count("failed")) == ([200] * 3, 1)


def test_a_body_with_too_many_scores_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.reconcile.facts.score_reception.MAX_DOCUMENTS", 1)
    score = "apiVersion: cluster.open-cluster-management.io/v1alpha1\nkind: AddOnPlacementScore\nmetadata: {name: NAME, namespace: ash}\n"
    scores = [score.replace("NAME", name) + "status: {scores: [{name: cpu, value: 1}]}\n" for name in "ab"]
    assert len(_parse_scores("ash", scores[0].encode())) == 1
    with pytest.raises(RejectedInput, match="the body has 2 documents: send between 1 and 1"):
        _parse_scores("ash", "---\n".join(scores).encode())


def test_a_stream_of_events_ends_and_continues_where_it_was(
    open_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "MAX_STREAM_SECONDS", 0.2)
    site = open_site()
    with site.open_events() as stream:
        assert b"retry: " in read_until(stream, b"\n\n")
        while stream.recv(65536):
            pass
    with site.open_events() as stream:
        assert b"retry: " in read_until(stream, b"\n\n")


@pytest.mark.parametrize(("files", "seconds"), [(0, 1.0), (MAX_POLLED, 1.0), (10 * MAX_POLLED, 10.0)])
def test_many_files_are_looked_at_less_often(files: int, seconds: float) -> None:
    assert _compute_poll_interval({str(number): (0, 0, 0) for number in range(files)}) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "factor"), [("1000", 1000), ("0.5", Fraction(1, 2)), ("1000.1", None), ("9" * 400, None), ("1e3", None)]
)
def test_a_factor_has_a_limit(text: str, factor: Fraction | None) -> None:
    assert _parse_factor(text) == factor


def test_a_saved_plan_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.report.saved_plan.MAX_SIZE", 10)
    with pytest.raises(Permanent, match="a saved plan has at most 10 characters, this file has 12"):
        parse_saved_plan('{"kind": ""}')


@pytest.mark.parametrize("count", [MAX_FAULTS, MAX_FAULTS + 1])
def test_a_report_leaves_out_entries_with_bugs_up_to_a_limit(count: int) -> None:
    findings = tuple(Finding("warning", "broken", f"number {number}") for number in range(count))

    def render(review: object) -> None:
        if any(finding.code == "broken" for finding in review.findings):  # type: ignore[attr-defined]
            raise ZeroDivisionError

    found = isolate_review(Review("c0ffee", "placements", findings=findings), render).findings
    assert [finding.code for finding in found] == ["internal-error"] * (1 + (count > MAX_FAULTS))
    assert ("all like it" in str(found)) == (count > MAX_FAULTS)


def test_tokens_of_clusters_have_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("".join(f"c{number} {TOKEN}\n" for number in range(4)))
    assert len(ClusterTokens(Credential("tokens for scores", path=file, max_lines=4, max_bytes=1 << 20)).read()) == 4
    with pytest.raises(Permanent, match="tokens for scores is empty or too long"):
        ClusterTokens(Credential("tokens for scores", path=file, max_lines=3, max_bytes=1 << 20)).read()
