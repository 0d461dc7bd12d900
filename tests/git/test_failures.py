"""Which errors of git, of ssh, curl and servers a retry cannot help. The words of each version are tested with its processes."""

from __future__ import annotations

import pytest

from gitsched.git.failures import make_failure
from gitsched.model.errors import GitschedError, Permanent, Temporary

TABLE: list[tuple[type[GitschedError], str]] = [
    (Temporary, "fatal: unable to access 'https://x/': Could not resolve host: x"),
    (Temporary, "fatal: unable to access 'https://x/': Failed to connect to x port 443 after 3 ms: Couldn't connect to server"),
    (Temporary, "fatal: unable to access 'https://x/': The requested URL returned error: 502"),
    (Temporary, "fatal: unable to access 'https://x/': The requested URL returned error: 429"),
    (Temporary, "ssh: connect to host x port 22: Connection timed out\nfatal: Could not read from remote repository."),
    (Temporary, "kex_exchange_identification: Connection closed by remote host"),
    (Temporary, "error: RPC failed; curl 56 GnuTLS recv error\nfatal: early EOF"),
    (Temporary, "fatal: the remote end hung up unexpectedly"),
    (Temporary, "remote: fatal: write error: No space left on device\nerror: remote unpack failed: index-pack abnormal exit"),
    (Temporary, "an unknown error"),
    (Temporary, ""),
    (Permanent, "remote: Repository not found.\nfatal: repository 'https://x/y/' not found"),
    (Permanent, "fatal: Authentication failed for 'https://x/'"),
    (Permanent, "fatal: could not read Username for 'https://x': terminal prompts disabled"),
    (Permanent, "git@x: Permission denied (publickey).\nfatal: Could not read from remote repository."),
    (Permanent, "Host key verification failed.\nfatal: Could not read from remote repository."),
    (Permanent, "fatal: unable to access 'https://x/': The requested URL returned error: 403"),
    (Permanent, "fatal: unable to access 'https://x/': SSL certificate problem: self-signed certificate"),
    (Permanent, "remote: error: GH006: Protected branch update failed\n!\tx\t[remote rejected] (protected branch hook declined)"),
    (Permanent, "!\tx:refs/heads/p\t[remote rejected] (pre-receive hook declined)"),
    (Permanent, "fatal: transport 'git' not allowed"),
    (Permanent, "error: object 1111: hasDotdot: contains '..'\nfatal: fsck error in packed object"),
    (Temporary, "remote: fatal: bad object refs/heads/main"),
]


@pytest.mark.parametrize(("error", "words"), TABLE)
def test_git_errors_are_classified(error: type[GitschedError], words: str):
    assert type(make_failure("cannot push", words)) is error


def test_messages_are_one_line_without_secrets_controls_and_advice():
    words = (
        "remote: \x1b[31mno\x1b[0m \nfatal: https://u:s3cret@x/ failed\nhint: try harder\nPlease make sure you have access\nfatal: "
        + "x" * 900
    )
    text = str(make_failure("cannot push", words))
    assert text.startswith("cannot push: remote: no; fatal: https://***@x/ failed; fatal: xxx")
    assert text.isprintable()
    assert len(text) < 700
