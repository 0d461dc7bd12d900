"""Sign commits."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gitsched.git import Repository, Signer, make_signer
from gitsched.model.errors import Permanent

ADA = {"name": "Ada", "email": "ada@example.org", "time": datetime(2024, 5, 1, tzinfo=UTC)}


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ada", "-f", str(path)], check=True)
    return path


def sign_one(work: Path, signer: Signer) -> str:
    repository = Repository(work)
    head = repository.resolve("HEAD")
    return repository.commit_tree(repository.commit(head).tree, [head], "Signed\n\nbody", **ADA, sign=signer)


@pytest.mark.needs("ssh-keygen")
def test_an_ssh_signature_verifies(work: Path, git, key: Path, tmp_path: Path):
    git("config", "gpg.format", "ssh", at=work)
    git("config", "user.signingKey", str(key), at=work)
    oid = sign_one(work, make_signer(Repository(work)))
    allowed = tmp_path / "allowed"
    allowed.write_text(f"ada@example.org {key.with_suffix('.pub').read_text()}")
    git("config", "gpg.ssh.allowedSignersFile", str(allowed), at=work)
    git("verify-commit", oid, at=work)
    assert git("log", "-1", "--format=%G? %GS", oid, at=work) == "G ada@example.org"
    git("fsck", "--strict", at=work)
    commit = Repository(work).commit(oid)
    assert (commit.subject, commit.message) == ("Signed", "Signed\n\nbody\n")
    allowed.write_text("bob@example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
    with pytest.raises(AssertionError):
        git("verify-commit", oid, at=work)


@pytest.mark.needs("ssh-keygen", "ssh-agent")
def test_a_key_in_an_agent_signs(work: Path, git, key: Path, tmp_path: Path, monkeypatch):
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(tmp_path / "agent")], stdout=subprocess.PIPE)
    try:
        assert agent.stdout is not None
        agent.stdout.readline()
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        subprocess.run(["ssh-add", "-q", str(key)], check=True, capture_output=True)
        key.unlink()
        oid = sign_one(work, make_signer(Repository(work), format="ssh", key=f"key::{key.with_suffix('.pub').read_text().strip()}"))
    finally:
        agent.kill()
        agent.communicate()
    assert "gpgsig -----BEGIN SSH SIGNATURE-----" in git("cat-file", "commit", oid, at=work)


@pytest.mark.needs("gpg")
def test_a_gpg_signature_verifies(work: Path, git, monkeypatch):
    home = Path("~/.gnupg").expanduser()
    home.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    quick = ["gpg", "--batch", "--passphrase", "", "--quick-gen-key", "Ada <ada@example.org>", "ed25519", "sign", "never"]
    subprocess.run(quick, check=True, capture_output=True)
    try:
        oid = sign_one(work, make_signer(Repository(work), key="ada@example.org"))
        git("verify-commit", oid, at=work)
    finally:
        subprocess.run(["gpgconf", "--kill", "all"], check=False)


@pytest.mark.needs("ssh-keygen")
def test_a_failed_signature_has_a_reason(work: Path, tmp_path: Path):
    repository = Repository(work)
    for signer, words in (
        (Signer("ssh", str(tmp_path / "absent"), "ssh-keygen"), "absent"),
        (Signer("gpg", "", "no-such-program"), "no program no-such-program"),
        (Signer("gpg", "", "true"), "true could not sign"),
    ):
        with pytest.raises(Permanent, match=words):
            sign_one(work, signer)
    with pytest.raises(Permanent, match="ssh or gpg"):
        make_signer(repository, format="x509")
    with pytest.raises(Permanent, match="names a key"):
        make_signer(repository, format="ssh")
