"""Comments on pull and merge requests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitsched.forge import comments
from gitsched.forge.comments import CommentAPI, MergeRequestComments, PullRequestComments, write_comment
from gitsched.model.errors import Permanent, Temporary
from tests import fork_server

from .fake_forge import LIMIT, OTHERS, OURS, FakeForge

TOKEN = "ghs_0123456789abcdef"
MARK = "<!-- gitsched:plan id=default -->"
FIRST, SECOND = f"{MARK}\n\n### No changes\n", f"{MARK}\n\n### 3 of 42 workloads move\n"
FORGES: dict[str, Callable[[str, str, int], CommentAPI]] = {"github": PullRequestComments, "gitlab": MergeRequestComments}


@pytest.fixture
def forge(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeForge]:
    monkeypatch.setattr(comments, "_MIN_DELAY", 0.01)
    monkeypatch.setattr(comments, "_MAX_DELAY", 0.02)
    server = FakeForge(TOKEN)
    yield server
    server.close()


@pytest.fixture(params=["a job's token of GitHub", "a person's token of GitHub", "a token of GitLab"])
def api(request: pytest.FixtureRequest, forge: FakeForge) -> CommentAPI:
    forge.account = None if request.param.startswith("a job") else OURS
    return FORGES["gitlab" if request.param.endswith("GitLab") else "github"](forge.url, "acme/fleet", 5)


def test_the_first_plan_creates_a_comment_and_the_next_one_updates_it(forge: FakeForge, api: CommentAPI) -> None:
    assert write_comment(api, TOKEN, FIRST) == "written"
    assert write_comment(api, TOKEN, SECOND) == "renewed"
    assert forge.texts == [SECOND]


def test_an_unchanged_plan_is_not_sent_again(forge: FakeForge, api: CommentAPI) -> None:
    write_comment(api, TOKEN, FIRST)
    before = len(forge.asked)
    assert write_comment(api, TOKEN, FIRST) == "unchanged"
    assert {method for method, path in forge.asked[before:] if path != "/graphql"} == {"GET"}


def test_a_plan_without_news_only_updates_an_earlier_comment(forge: FakeForge, api: CommentAPI) -> None:
    assert write_comment(api, TOKEN, FIRST, only_update=True) == "not written"
    assert forge.texts == []
    write_comment(api, TOKEN, SECOND)
    assert write_comment(api, TOKEN, FIRST, only_update=True) == "renewed"
    assert forge.texts == [FIRST]


def test_the_comment_is_found_after_many_others(forge: FakeForge, api: CommentAPI) -> None:
    forge.comments = [(number, OTHERS, False, "looks good") for number in range(1, 251)]
    write_comment(api, TOKEN, FIRST)
    write_comment(api, TOKEN, SECOND)
    assert (len(forge.texts), forge.texts[-1]) == (251, SECOND)


def test_a_comment_of_another_account_with_our_marker_is_not_changed(forge: FakeForge, api: CommentAPI) -> None:
    """Its author could edit gitsched's text."""
    forged = f"{MARK}\n\n### No changes, merge it\n"
    forge.comments = [(1, OTHERS, False, forged)]
    assert write_comment(api, TOKEN, SECOND) == "written"
    assert forge.texts == [forged, SECOND]


def test_a_comment_of_another_app_with_our_marker_is_not_changed(forge: FakeForge) -> None:
    forged = f"{MARK}\n\n### No changes, merge it\n"
    forge.account, forge.comments = None, [(1, OTHERS, True, forged)]
    api = PullRequestComments(forge.url, "acme/fleet", 5)
    assert write_comment(api, TOKEN, FIRST) == "written"
    assert write_comment(api, TOKEN, SECOND) == "renewed"
    assert forge.texts == [forged, SECOND]


def test_an_unknown_account_changes_no_comment_that_it_may_not_have_written(forge: FakeForge) -> None:
    forged = f"{MARK}\n\n### No changes, merge it\n"
    forge.account, forge.comments = None, [(1, OTHERS, True, forged)]
    api = PullRequestComments(forge.url, "acme/fleet", 5)
    api.graphql_url = ""
    with pytest.raises(Permanent, match=r"which account the token belongs to.*--comment-id"):
        write_comment(api, TOKEN, SECOND)
    assert forge.texts == [forged]


def test_a_quoted_marker_is_ignored(forge: FakeForge, api: CommentAPI) -> None:
    quoted = f"> {MARK}\n\nWhat does this mean?"
    forge.comments = [(1, OURS, True, quoted)]
    write_comment(api, TOKEN, FIRST)
    assert forge.texts == [quoted, FIRST]


def test_plans_with_different_markers_have_separate_comments(forge: FakeForge, api: CommentAPI) -> None:
    other = FIRST.replace("default", "edge")
    for text in (FIRST, other, SECOND):
        write_comment(api, TOKEN, text)
    assert forge.texts == [SECOND, other]


def test_a_busy_forge_is_retried(forge: FakeForge, api: CommentAPI) -> None:
    forge.refusals = [(502, {}), (429, {"Retry-After": "0"}), (403, {"Retry-After": "0"})]
    assert write_comment(api, TOKEN, FIRST) == "written"


def test_a_forge_that_stays_busy_is_a_temporary_error(forge: FakeForge, api: CommentAPI) -> None:
    forge.refusals = [(503, {})] * 20
    with pytest.raises(Temporary):
        write_comment(api, TOKEN, FIRST)


def test_an_unreachable_forge_is_a_temporary_error(forge: FakeForge, monkeypatch: pytest.MonkeyPatch) -> None:
    forge.close()
    with pytest.raises(Temporary) as caught:
        write_comment(PullRequestComments(forge.url, "acme/fleet", 5), TOKEN, FIRST)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "says"), [(403, "from a fork it is read-only"), (404, "no such pull request"), (401, "token"), (422, "too long")]
)
def test_a_rejection_is_explained_without_the_token(forge: FakeForge, api: CommentAPI, code: int, says: str) -> None:
    forge.refusals = [(code, {})]
    with pytest.raises(Permanent) as caught:
        write_comment(api, TOKEN, FIRST)
    assert says in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_a_text_beyond_the_limit_is_rejected_and_keeps_the_old_comment(forge: FakeForge, api: CommentAPI) -> None:
    write_comment(api, TOKEN, FIRST)
    with pytest.raises(Permanent):
        write_comment(api, TOKEN, f"{MARK}\n{'x' * LIMIT}")
    assert forge.texts == [FIRST]


@pytest.mark.parametrize("text", ["", "### no mark", "<!-- gitsched:plan id= -->", "<!-- gitsched:plan id=a b -->\n", f" x{MARK}"])
def test_a_text_without_a_marker_is_not_sent(forge: FakeForge, api: CommentAPI, text: str) -> None:
    with pytest.raises(Permanent):
        write_comment(api, TOKEN, text)
    assert forge.asked == []


def run(*arguments: str, data: str = FIRST, at: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return fork_server.run(["comment", *arguments], at, os.environ | more, data)


def test_the_command_takes_the_project_from_origin_and_the_token_from_the_environment(forge: FakeForge, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", "remote", "add", "origin", "https://github.com/acme/fleet.git"], cwd=tmp_path, check=True)
    asked = ("-", "--forge", "github", "--request", "5", "--forge-api", forge.url)
    done = run(*asked, at=tmp_path, GITSCHED_FORGE_TOKEN=TOKEN)
    assert (done.returncode, done.stdout) == (0, "Written: the comment in #5 of acme/fleet\n"), done.stderr
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    done = run(*asked, "--forge-token-file", "token", data=SECOND, at=tmp_path)
    assert done.stdout == "Renewed: the comment in #5 of acme/fleet\n", done.stderr
    assert forge.texts == [SECOND]


def test_without_a_token_no_request_is_sent(forge: FakeForge, tmp_path: Path) -> None:
    places = ("--forge-api", forge.url, "--forge-project", "acme/fleet")
    done = run("-", "--forge", "gitlab", "--request", "5", *places, at=tmp_path)
    assert (done.returncode, forge.asked) == (2, [])
    assert "GITSCHED_FORGE_TOKEN" in done.stderr


def test_a_token_is_never_sent_unencrypted(tmp_path: Path) -> None:
    places = ("--forge-api", "http://api.example.com", "--forge-project", "acme/fleet")
    done = run("-", "--forge", "github", "--request", "5", *places, at=tmp_path, GITSCHED_FORGE_TOKEN=TOKEN)
    assert done.returncode == 1
    assert TOKEN not in done.stderr


def test_exit_codes_distinguish_temporary_errors(forge: FakeForge, tmp_path: Path) -> None:
    places = ("--forge-api", forge.url, "--forge-project", "acme/fleet")
    forge.refusals = [(404, {})]
    done = run("-", "--forge", "github", "--request", "5", *places, at=tmp_path, GITSCHED_FORGE_TOKEN=TOKEN)
    assert (done.returncode, "no such pull request" in done.stderr) == (1, True)
