"""Signatures of commits are verified with the listed keys alone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from gitsched.git import Repository
from gitsched.git.signatures import find_key_problem, verify_commit
from gitsched.model.errors import Permanent

pytestmark = [pytest.mark.usefixtures("no_user_keys"), pytest.mark.needs("ssh-keygen", "gpg")]


class Signed(NamedTuple):
    """A repository with commits by name, and public keys by name."""

    path: Path
    commits: dict[str, str]
    keys: dict[str, str]


def run(*command: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signed]:
    """Commits that are unsigned, signed with two SSH keys and with a GPG key, and one whose signature is of another commit."""
    work = tmp_path_factory.mktemp("signed")
    path, home = work / "repository", work / "gpg"
    path.mkdir()
    home.mkdir(mode=0o700)
    keys, commits = dict[str, str](), dict[str, str]()
    for name in ("ann", "eve"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"{name}@example.com", "-f", str(work / name), cwd=work)
        keys[name] = (work / f"{name}.pub").read_text()
    gpg = ("gpg", "--homedir", str(home), "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", "")
    run(*gpg, "--quick-gen-key", "Gil <gil@example.com>", "ed25519", "sign", "never", cwd=work)
    keys["gil"] = run(*gpg, "--armor", "--export", "gil@example.com", cwd=work)
    git = ("git", "-c", "user.name=Ann", "-c", "user.email=ann@example.com")
    run("git", "init", "--quiet", cwd=path)
    run(*git, "commit", "--quiet", "--allow-empty", "--no-gpg-sign", "-m", "plain", cwd=path)
    commits["unsigned"] = run("git", "rev-parse", "HEAD", cwd=path)
    for name in ("ann", "eve"):
        ssh = (*git, "-c", "gpg.format=ssh", "-c", f"user.signingkey={work / name}")
        run(*ssh, "commit", "--quiet", "--allow-empty", "-S", "-m", f"of {name}", cwd=path)
        commits[name] = run("git", "rev-parse", "HEAD", cwd=path)
    run(
        *git,
        "-c",
        "user.signingkey=gil@example.com",
        "commit",
        "-q",
        "--allow-empty",
        "-S",
        "-m",
        "of gil",
        cwd=path,
        GNUPGHOME=str(home),
    )
    commits["gil"] = run("git", "rev-parse", "HEAD", cwd=path)
    for name in ("ann", "gil"):
        text = run("git", "cat-file", "commit", commits[name], cwd=path).replace(f"of {name}", "of nobody") + "\n"
        made = subprocess.run(
            ["git", "hash-object", "-t", "commit", "-w", "--stdin"],
            cwd=path,
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        commits[f"forged {name}"] = made.stdout.strip()
    yield Signed(path, commits, keys)
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False, capture_output=True)


@pytest.fixture
def no_user_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keys of the user of this machine must not count."""
    monkeypatch.setenv("GNUPGHOME", str(tmp_path))


CASES = """
    commit      | keys        | verdict
    ann         | ann         | valid
    ann         | eve ann gil | valid
    ann         | eve         | none of the listed keys made its signature
    ann         | gil         | it is signed with an SSH key, and no SSH key is listed
    gil         | gil         | valid
    gil         | ann gil     | valid
    gil         | ann         | it is signed with a GPG key, and no GPG key is listed
    unsigned    | ann gil     | it has no signature
    forged ann  | ann         | its SSH signature is not valid
    forged gil  | gil         | its signature does not match its content
    ann         |             | no key is listed
"""


@pytest.mark.parametrize("case", [line.strip() for line in CASES.strip().splitlines()[1:]])
def test_a_commit_counts_as_signed_only_with_a_listed_key(signed: Signed, case: str) -> None:
    commit, keys, expected = (column.strip() for column in case.split("|"))
    verdict = verify_commit(Repository(signed.path), signed.commits[commit], [signed.keys[key] for key in keys.split()])
    assert (verdict.valid, verdict.reason.startswith(expected)) == ((True, False) if expected == "valid" else (False, True))
    assert not verdict.valid or verdict.key


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "neither an SSH public key"),
        ("ssh-ed25519", "neither an SSH public key"),
        ("cert-authority ssh-ed25519 AAAA", "neither an SSH public key"),
        ("ssh-ed25519 AAAA\n* ssh-ed25519 BBBB", "neither an SSH public key"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----", "it is a private key"),
        ("-----BEGIN PGP PUBLIC KEY BLOCK-----\nAAAA", "does not end with"),
        ("x" * 200_001, "more than 200000 characters"),
    ],
)
def test_what_is_no_public_key_is_refused(signed: Signed, text: str, problem: str) -> None:
    assert problem in find_key_problem(text)
    with pytest.raises(Permanent, match="cannot verify signatures"):
        verify_commit(Repository(signed.path), signed.commits["ann"], [text])


def test_a_key_that_gpg_cannot_read_stops_the_run(signed: Signed) -> None:
    broken = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----"
    with pytest.raises(Permanent, match="gpg cannot read the listed keys"):
        verify_commit(Repository(signed.path), signed.commits["gil"], [broken])
