"""Commit statuses are sent in the background, with retries."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitsched.forge import status_reporter as reporting
from gitsched.forge.commit_status import CommitStatus
from gitsched.forge.credentials import Credential
from gitsched.forge.project import link_commit, open_status_api
from gitsched.forge.status_reporter import StatusOutcome, StatusReporter
from gitsched.model.errors import Permanent
from tests.local import PATIENCE

from .conftest import Api, CannedResponse, Until

TOKEN = "glpat-0123456789abcdef"
COMMIT = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
DONE = CommitStatus(COMMIT, "success", "42 of 42 workloads placed", "gitsched/placements", "https://example.com/commit/1")
Start = Callable[..., StatusReporter]


@pytest.fixture
def outcomes() -> list[StatusOutcome]:
    return []


@pytest.fixture
def start(api: Api, outcomes: list[StatusOutcome], monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.setattr(reporting, "_MIN_DELAY", 0.01)
    monkeypatch.setattr(reporting, "_MAX_DELAY", 0.02)
    started: list[StatusReporter] = []

    def make(kind: str = "github", at: str | None = None, token: Credential | None = None) -> StatusReporter:
        forge = open_status_api(kind, "https://example.com/acme/fleet.git", api=at or api.url, project=None)
        started.append(StatusReporter(forge, token or Credential("token", value=TOKEN), outcomes.append))
        return started[-1]

    yield make
    for reporter in started:
        reporter.close(1)


def test_a_github_status_follows_the_api_reference(api: Api, start: Start, outcomes: list[StatusOutcome], until: Until) -> None:
    start().report(DONE)
    until(lambda: outcomes == ["sent"])
    (asked,) = api.seen
    assert asked.path == f"/repos/acme/fleet/statuses/{COMMIT}"
    assert asked.headers["Authorization"] == f"Bearer {TOKEN}"
    assert asked.headers["Accept"] == "application/vnd.github+json"
    assert asked.headers["X-GitHub-Api-Version"] == "2022-11-28"
    assert asked.headers["Content-Type"] == "application/json"
    assert asked.body == {
        "state": "success",
        "context": "gitsched/placements",
        "description": "42 of 42 workloads placed",
        "target_url": "https://example.com/commit/1",
    }


def test_a_gitlab_status_follows_the_api_reference(api: Api, start: Start, outcomes: list[StatusOutcome], until: Until) -> None:
    start("gitlab").report(DONE._replace(state="failure", link=""))
    until(lambda: outcomes == ["sent"])
    (asked,) = api.seen
    assert asked.path == f"/projects/acme%2Ffleet/statuses/{COMMIT}"
    assert asked.headers["PRIVATE-TOKEN"] == TOKEN
    assert "Authorization" not in asked.headers
    assert asked.body == {"state": "failed", "name": "gitsched/placements", "description": "42 of 42 workloads placed"}


def test_gitlab_rejects_a_repeated_state_and_that_counts_as_sent(
    api: Api, start: Start, outcomes: list[StatusOutcome], until: Until
) -> None:
    reason = 'Cannot transition status via :succeed from :success (Reason(s): Status cannot transition via "succeed")'
    api.answers = [CannedResponse(400, json.dumps({"message": reason}))]
    start("gitlab").report(DONE)
    until(lambda: outcomes == ["sent"])


@pytest.mark.parametrize(("kind", "length"), [("github", 140), ("gitlab", 255)])
def test_a_long_description_is_truncated_to_the_limit_of_the_forge(
    api: Api, start: Start, until: Until, kind: str, length: int
) -> None:
    start(kind).report(DONE._replace(description="ä" * 999))
    until(lambda: len(api.seen) == 1)
    assert len(api.seen[0].body["description"]) == length


@pytest.mark.parametrize(
    "bad",
    [
        CannedResponse(502, "<html>Bad Gateway</html>"),
        CannedResponse(429, '{"message": "slow down"}', (("Retry-After", "0"),)),
        CannedResponse(403, '{"message": "API rate limit exceeded"}', (("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "1"))),
        CannedResponse(403, '{"message": "You have exceeded a secondary rate limit."}', (("Retry-After", "0"),)),
    ],
    ids=["502", "429", "rate limit", "secondary rate limit"],
)
def test_a_temporary_failure_is_retried(
    api: Api, start: Start, outcomes: list[StatusOutcome], until: Until, bad: CannedResponse
) -> None:
    api.answers = [bad, bad, CannedResponse()]
    start().report(DONE)
    until(lambda: outcomes == ["sent"])
    assert len(api.seen) == 3


@pytest.mark.parametrize(
    ("code", "body", "message"),
    [
        (401, '{"message": "Bad credentials"}', "status 401: Bad credentials"),
        (404, '{"message": "404 Project\\nNot\\u001b[31m Found"}', "status 404: 404 Project Not [31m Found"),
        (422, '{"message": "No commit found for SHA"}', "status 422: No commit found for SHA"),
        (403, '{"message": {"base": ["no"]}}', 'status 403: {"base": ["no"]}'),
        (301, "", "status 301"),
        (400, "[" * 60_000, "status 400"),
        (400, "\x00\xff", "status 400"),
    ],
)
def test_a_permanent_failure_is_logged_once_and_not_retried(
    api: Api,
    start: Start,
    outcomes: list[StatusOutcome],
    until: Until,
    caplog: pytest.LogCaptureFixture,
    code: int,
    body: str,
    message: str,
) -> None:
    api.answers = [CannedResponse(code, body, (("Location", "http://127.0.0.1:1/"),) if code == 301 else ())]
    with caplog.at_level(logging.WARNING, "gitsched"):
        reporter = start()
        reporter.report(DONE)
        reporter.report(DONE)
        until(lambda: outcomes == ["failed"])
    (record,) = caplog.records
    assert record.getMessage() == f"GitHub did not accept the status of {COMMIT[:12]}: {message}"
    assert len(api.seen) == 1


def test_no_token_is_logged(
    api: Api, start: Start, outcomes: list[StatusOutcome], until: Until, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """A token with a newline, a refused one, one for a server that is not there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{taken.getsockname()[1]}"
    file = tmp_path / "token"
    with caplog.at_level(logging.DEBUG):
        file.write_text(f"{TOKEN}\u00e9\x00")
        start(token=Credential("token", path=file)).report(DONE)
        start(at=dead).report(DONE)
        api.answers = [CannedResponse(401, json.dumps({"message": "Bad credentials"}))]
        start().report(DONE)
        until(lambda: len(outcomes) == 3)
    assert set(outcomes) == {"failed"}
    assert "characters that are not allowed in an HTTP header" in caplog.text
    assert "no connection (ConnectError)" in caplog.text
    assert TOKEN not in caplog.text


def test_a_token_is_read_again_for_every_status(
    api: Api, start: Start, outcomes: list[StatusOutcome], until: Until, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    reporter = start(token=Credential("token", path=file))
    reporter.report(DONE)
    until(lambda: len(outcomes) == 1)
    file.write_text("second\n")
    reporter.report(DONE._replace(commit="f" * 40))
    until(lambda: len(outcomes) == 2)
    assert [asked.headers["Authorization"] for asked in api.seen] == ["Bearer first", "Bearer second"]


def test_a_newer_status_replaces_a_queued_one(api: Api, start: Start, outcomes: list[StatusOutcome], until: Until) -> None:
    api.answers = [CannedResponse(503), CannedResponse()]
    api.open.clear()
    reporter = start()
    reporter.report(DONE)
    until(lambda: len(api.seen) == 1)
    reporter.report(DONE._replace(state="failure"))
    api.open.set()
    until(lambda: "sent" in outcomes)
    assert [asked.body["state"] for asked in api.seen] == ["success", "failure"]
    assert sorted(outcomes) == ["dropped", "sent"]


def test_close_sends_queued_statuses_and_does_not_wait_for_an_unreachable_forge(
    api: Api, start: Start, outcomes: list[StatusOutcome], until: Until
) -> None:
    reporter = start()
    reporter.report(DONE)
    reporter.close(PATIENCE)
    assert outcomes == ["sent"]
    api.answers = [CannedResponse(503, "", (("Retry-After", "600"),))]
    reporter = start()
    reporter.report(DONE)
    reporter.close(0.5)
    until(lambda: outcomes == ["sent", "failed"])
    assert len(api.seen) == 2, "nothing is sent again after ten minutes"


@pytest.mark.parametrize(
    ("kind", "repository", "url"),
    [
        ("github", "https://github.com/acme/fleet.git", "https://api.github.com/repos/acme/fleet/statuses/"),
        ("github", "git@github.com:acme/fleet.git", "https://api.github.com/repos/acme/fleet/statuses/"),
        ("github", "ssh://git@ghe.example.com:2222/acme/fleet", "https://ghe.example.com/api/v3/repos/acme/fleet/statuses/"),
        ("gitlab", "https://u:p@git.example.com:8443/a/b/fleet.git", "https://git.example.com:8443/api/v4/projects/a%2Fb%2Ffleet/statuses/"),
        ("gitlab", "git@gitlab.com:a/b.git", "https://gitlab.com/api/v4/projects/a%2Fb/statuses/"),
    ],
)  # fmt: skip
def test_the_api_is_found_from_the_url_of_the_repository(kind: str, repository: str, url: str) -> None:
    forge = open_status_api(kind, repository, api=None, project=None)
    assert forge.build_request(DONE, TOKEN).url == url + COMMIT


def test_an_output_commit_has_a_link() -> None:
    assert link_commit("github", "git@github.com:acme/fleet.git", "1a") == "https://github.com/acme/fleet/commit/1a"
    assert link_commit("gitlab", "https://oauth2:t@gitlab.com/a/b/c.git", "1a") == "https://gitlab.com/a/b/c/-/commit/1a"
    assert link_commit("github", "/srv/fleet", "1a") == link_commit("github", "file:///srv/fleet.git", "1a") == ""


@pytest.mark.parametrize(
    ("repository", "api", "project", "reason"),
    [
        (None, None, None, "--forge-api"),
        ("file:///srv/fleet.git", "https://git.example.com", None, "--forge-project"),
        ("https://github.com/a/b", "http://git.example.com/api", None, "must begin with https://"),
        ("https://github.com/a/b", "ftp://git.example.com/api", None, "must begin with https://"),
        ("https://github.com/a/b", "https://u:secret@git.example.com/api", None, "must not contain a user"),
    ],
)
def test_an_invalid_address_is_rejected(repository: str | None, api: str | None, project: str | None, reason: str) -> None:
    with pytest.raises(Permanent, match=reason) as caught:
        open_status_api("github", repository, api=api, project=project)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "\n \n", "x" * 20_000, "a\n" * 9, "ä", "a\tb", "\x00"])
def test_an_invalid_secret_is_rejected_and_not_shown(tmp_path: Path, text: str) -> None:
    file = tmp_path / "secret"
    file.write_text(text)
    with pytest.raises(Permanent, match="webhook secret") as caught:
        Credential("webhook secret", path=file).read()
    assert not text.strip() or text not in str(caught.value)


def test_a_secret_inside_the_repository_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "fleet").mkdir()
    inside, outside = tmp_path / "fleet" / "token", tmp_path / "link"
    inside.write_text("x")
    outside.symlink_to(inside)
    for path in (inside, outside, tmp_path / "fleet" / ".." / "fleet" / "token"):
        with pytest.raises(Permanent, match="inside the repository"):
            Credential("token", path=path).check_outside(tmp_path / "fleet")
    Credential("token", path=tmp_path / "elsewhere").check_outside(tmp_path / "fleet")
