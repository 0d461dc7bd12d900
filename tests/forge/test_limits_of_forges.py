"""Beyond a limit of talking to a forge there is an error, or a message without its details; nothing grows with what a forge sends."""

from __future__ import annotations

from pathlib import Path

import click
import httpx
import pytest

from gitsched.cli.commands.comment import _read_text
from gitsched.forge import comments, status_reporter
from gitsched.forge.comments import PullRequestComments, write_comment
from gitsched.forge.credentials import Credential
from gitsched.model.errors import Permanent

from .fake_forge import OTHERS, FakeForge
from .test_comments import FIRST, SECOND, TOKEN
from .test_comments import forge as forge
from .test_webhook import SECRET, passes, sign_standard, standard


def test_a_comment_that_is_not_among_the_searched_ones_is_written_a_second_time(
    forge: FakeForge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comments, "MAX_PAGES", 2)
    monkeypatch.setattr(comments, "PAGE_SIZE", 2)
    api = PullRequestComments(forge.url, "acme/fleet", 5)
    forge.comments = [(number, OTHERS, False, "looks good") for number in range(1, 4)]
    write_comment(api, TOKEN, FIRST)
    assert (write_comment(api, TOKEN, SECOND), len(forge.texts)) == ("renewed", 4), "the fourth is on the second page"
    forge.comments.insert(0, (99, OTHERS, False, "one more"))
    assert (write_comment(api, TOKEN, FIRST), len(forge.texts)) == ("written", 6)


def test_an_answer_of_a_forge_has_a_limit(forge: FakeForge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comments, "_MAX_RESPONSE_BYTES", 100)
    forge.comments = [(1, OTHERS, False, "x" * 200)]
    with pytest.raises(Permanent, match="GitHub returned a response that is too large"):
        write_comment(PullRequestComments(forge.url, "acme/fleet", 5), TOKEN, FIRST)


@pytest.mark.parametrize(("count", "bytes_of_line"), [(8, 10), (9, 10), (1, 300)])
def test_a_file_with_tokens_has_a_limit(count: int, bytes_of_line: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text(f"{'s3cret' + 'x' * bytes_of_line}\n" * count)
    credential = Credential("token", path=file, max_bytes=200)
    if (count, bytes_of_line) == (8, 10):
        assert len(credential.read()) == 8
        return
    with pytest.raises(Permanent, match="the token is empty or too long") as error:
        credential.read()
    assert "s3cret" not in str(error.value)


def test_a_comment_that_is_too_long_is_an_error_instead_of_a_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.cli.commands.comment._MAX_BYTES", len(FIRST))
    file = tmp_path / "comment.md"
    file.write_text(FIRST)
    assert _read_text(file) == FIRST
    file.write_text(FIRST + "x")
    with pytest.raises(click.ClickException, match=f"has more than {len(FIRST)} bytes, which no forge accepts"):
        _read_text(file)


def test_only_the_first_signatures_of_a_webhook_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = b"v1,AAAA "
    secrets = ("whsec_" + "AAECAwQFBgcICQoLDA0ODxAREhMUFRYX",)
    assert passes(standard(wrong * 7 + sign_standard()), secrets=secrets)
    assert not passes(standard(wrong * 8 + sign_standard()), secrets=secrets)
    assert not passes(standard(wrong), secrets=(SECRET,))


@pytest.mark.parametrize(("limit", "told"), [(1 << 16, "no such repository"), (20, "")])
def test_the_message_of_a_forge_is_read_to_a_limit(limit: int, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A longer answer is not read to its end, and the failure is told without the forge's words."""
    monkeypatch.setattr(status_reporter, "_MAX_RESPONSE_BYTES", limit)
    chunks = iter([b'{"message": "no such rep', b'ository"}', b" " * 10])
    assert status_reporter._read_message(httpx.Response(404, content=chunks)) == told
    assert (next(chunks, None) is None) is bool(told)
