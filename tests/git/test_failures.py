"""Classify the errors of git commands as permanent, temporary or conflicts."""

from __future__ import annotations

import pytest

from gitsched.git.process import CorruptRepository, RefLocked, classify_failure
from gitsched.model.errors import Conflict, GitschedError, Permanent, Temporary

TABLE: list[tuple[type[GitschedError], str]] = [
    (Conflict, "!\tx:refs/heads/p\t[rejected] (stale info)"),
    (Conflict, "!\tx:refs/heads/p\t[rejected] (fetch first)"),
    (Conflict, "!\tx:refs/heads/p\t[rejected] (non-fast-forward)"),
    (Conflict, f"remote: error: cannot lock ref 'refs/heads/p': is at {'a' * 40} but expected {'b' * 40}"),
    (Conflict, "remote: error: cannot lock ref 'refs/heads/p': reference already exists"),
    (RefLocked, "remote: error: cannot lock ref 'refs/heads/p': Unable to create '/srv/a b.git/refs/heads/p.lock': File exists."),
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
    (Permanent, "remote: error: cannot lock ref 'refs/heads/a/b': 'refs/heads/a' exists; cannot create 'refs/heads/a/b'"),
    (Permanent, "fatal: transport 'git' not allowed"),
    (Permanent, "fatal: couldn't find remote ref refs/heads/x"),
    (Permanent, "error: object 1111: hasDotdot: contains '..'\nfatal: fsck error in packed object"),
    (Permanent, "error: unknown option `no-write-fetch-head'"),
    (CorruptRepository, "error: object file objects/aa/bb is empty\nfatal: loose object aabb (stored in objects/aa/bb) is corrupt"),
    (CorruptRepository, "fatal: bad object refs/heads/main"),
    (Temporary, "remote: fatal: bad object refs/heads/main"),
]


@pytest.mark.parametrize(("error", "words"), TABLE)
def test_git_errors_are_classified(error: type[GitschedError], words: str):
    assert type(classify_failure("cannot push", words)) is error


def test_messages_are_one_line_without_secrets_controls_and_advice():
    words = (
        "remote: \x1b[31mno\x1b[0m \nfatal: https://u:s3cret@x/ failed\nhint: try harder\nPlease make sure you have access\nfatal: "
        + "x" * 900
    )
    text = str(classify_failure("cannot push", words))
    assert text.startswith("cannot push: remote: no; fatal: https://***@x/ failed; fatal: xxx")
    assert text.isprintable()
    assert len(text) < 700
    lock = "error: Unable to create '/srv/p.git/refs/heads/p.lock': File exists."
    assert "/srv/p.git/refs/heads/p.lock" in str(classify_failure("cannot push", lock))
