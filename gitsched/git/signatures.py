"""Verify the signatures of commits with SSH and GPG keys that the caller lists; other keys of this machine do not count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from gitsched.git.process import GitResult, run_git, run_program
from gitsched.git.repository import Repository
from gitsched.git.transport import read_config
from gitsched.model.errors import Permanent
from gitsched.named_tuples import NamedTuple
from gitsched.temporary_directory import TemporaryDirectory

MAX_KEYS = 1_000
MAX_KEY_LENGTH = 200_000
"""Characters of one key; an armoured GPG key can have many subkeys and signatures."""
_SSH_KEY = re.compile(r"((?:ssh|ecdsa|sk-ssh|sk-ecdsa)-[A-Za-z0-9@.-]+) ([A-Za-z0-9+/]+={0,3})(?: [^\r\n]*)?")
_GPG_BEGIN, _GPG_END = "-----BEGIN PGP PUBLIC KEY BLOCK-----", "-----END PGP PUBLIC KEY BLOCK-----"
_PRINCIPAL = "source@gitsched"
"""The signer in the list of allowed ones: its key counts, not its name."""
_SSH_FORMAT = "%G?%n%GF%n%GS%n%GG"
"""The verdict of git, a letter, the fingerprint of the key, its signer in the list of allowed ones, and what ssh-keygen printed."""
_GPG_STATUS = re.compile(r"^\[GNUPG:\] (VALIDSIG|ERRSIG|BADSIG|EXPKEYSIG|EXPSIG|REVKEYSIG) ([0-9A-Fa-f]+)", re.MULTILINE)
_GPG_PROBLEMS = {
    "BADSIG": "its signature does not match its content",
    "ERRSIG": "none of the listed keys made its signature",
    "EXPKEYSIG": "the key of its signature has expired",
    "EXPSIG": "its signature has expired",
    "REVKEYSIG": "the key of its signature was revoked",
}


class Verdict(NamedTuple):
    """Whether a listed key signed a commit. `key` is the fingerprint of that key, "" if there is none; `reason` says why the commit is
    not accepted, and is "" for one that is."""

    valid: bool
    key: str = ""
    reason: str = ""


class _Keys(NamedTuple):
    """The listed keys by format, without comments and options."""

    ssh: tuple[str, ...]
    gpg: tuple[str, ...]


def find_key_problem(key: str) -> str:
    """Return what is wrong with the text of a public key, or ""."""
    text = key.strip()
    if len(text) > MAX_KEY_LENGTH:
        return f"it has more than {MAX_KEY_LENGTH} characters"
    if text.startswith(_GPG_BEGIN):
        return "" if text.endswith(_GPG_END) else f"it does not end with {_GPG_END}"
    if "PRIVATE KEY" in text:
        return "it is a private key; write the public one, and replace this key, because others may have read it"
    return "" if _SSH_KEY.fullmatch(text) else "it is neither an SSH public key nor an armoured GPG public key"


def verify_commit(repository: Repository, commit: str, keys: Iterable[str]) -> Verdict:
    """Verify that one of the keys signed the commit with this id.

    `keys` are SSH public keys (`ssh-ed25519 AAAA...`, a comment may follow) and armoured GPG public keys. Raises Permanent for a text
    that is no public key, and Temporary if git or gpg do not answer in time. The clock of this machine decides whether a GPG key has
    expired.
    """
    listed = _split(keys)
    if not (listed.ssh or listed.gpg):
        return Verdict(False, reason="no key is listed")
    kind = _find_format(repository, commit)
    if kind == "":
        return Verdict(False, reason="it has no signature")
    if kind not in ("ssh", "gpg"):
        return Verdict(False, reason="its signature is neither of SSH nor of GPG")
    with TemporaryDirectory("keys") as directory:
        if kind == "ssh":
            return _verify_ssh(repository, commit, listed.ssh, directory)
        return _verify_gpg(repository, commit, listed.gpg, directory)


def _split(keys: Iterable[str]) -> _Keys:
    ssh: list[str] = []
    gpg: list[str] = []
    for index, key in enumerate(keys):
        problem = find_key_problem(key) if index < MAX_KEYS else f"there are more than {MAX_KEYS} keys"
        if problem:
            raise Permanent(f"the key {key.strip()[:40]!r} cannot verify signatures: {problem}")
        text = key.strip()
        if text.startswith(_GPG_BEGIN):
            gpg.append(text)
        elif (found := _SSH_KEY.fullmatch(text)) is not None:
            ssh.append(f"{found[1]} {found[2]}")
    return _Keys(tuple(dict.fromkeys(ssh)), tuple(dict.fromkeys(gpg)))


def _find_format(repository: Repository, commit: str) -> str:
    """Return ssh, gpg or other, and "" for a commit without a signature."""
    header, _, _ = repository.read_commit(commit).partition(b"\n\n")
    signature = next((line for line in header.split(b"\n") if line.startswith((b"gpgsig ", b"gpgsig-sha256 "))), b"")
    if not signature:
        return ""
    if b"-----BEGIN SSH SIGNATURE-----" in signature:
        return "ssh"
    return "gpg" if b"-----BEGIN PGP " in signature else "other"


def _verify_ssh(repository: Repository, commit: str, keys: Sequence[str], directory: Path) -> Verdict:
    if not keys:
        return Verdict(False, reason="it is signed with an SSH key, and no SSH key is listed")
    allowed = directory / "allowed_signers"
    allowed.write_text("".join(f'{_PRINCIPAL} namespaces="git" {key}\n' for key in keys), "utf-8")
    config = (
        ("gpg.ssh.allowedSignersFile", str(allowed)),
        ("gpg.ssh.revocationFile", ""),
        ("gpg.minTrustLevel", "undefined"),
    )
    done = _run(repository, ["log", "-1", "--no-show-signature", f"--format={_SSH_FORMAT}", commit, "--"], config)
    verdict, fingerprint, signer, *printed = done.stdout.split("\n") if done.stdout.count("\n") >= 3 else ("", "", "", done.stderr)
    if verdict == "G" and fingerprint and signer == _PRINCIPAL:
        return Verdict(True, fingerprint)
    if verdict == "U" and fingerprint:
        return Verdict(False, fingerprint, f"none of the listed keys made its signature, but {fingerprint}")
    return Verdict(False, reason=f"its SSH signature is not valid: {_shorten(' '.join((*printed, done.stderr)))}")


def _verify_gpg(repository: Repository, commit: str, keys: Sequence[str], directory: Path) -> Verdict:
    if not keys:
        return Verdict(False, reason="it is signed with a GPG key, and no GPG key is listed")
    directory.chmod(0o700)
    environment = {"GNUPGHOME": str(directory)}
    (directory / "gpg.conf").write_text("no-autostart\ntrust-model always\nno-auto-key-retrieve\n", "utf-8")
    (directory / "common.conf").write_text("", "utf-8")  # otherwise some versions keep keys in a daemon
    program = repository.read_config("gpg.openpgp.program") or repository.read_config("gpg.program") or "gpg"
    done = run_program(
        [program, "--batch", "--no-tty", "--quiet", "--import"], data="\n".join(keys) + "\n", extra_environment=environment
    )
    if done.exit_code != 0:
        raise Permanent(f"gpg cannot read the listed keys: {_shorten(done.stderr)}")
    config = (("gpg.minTrustLevel", "undefined"),)
    verified = _run(repository, ["verify-commit", "--raw", commit], config, environment)
    printed = f"{verified.stdout}\n{verified.stderr}"
    states = {found[1]: found[2].upper() for found in _GPG_STATUS.finditer(printed)}
    fingerprint = states.pop("VALIDSIG", "")
    for state, reason in _GPG_PROBLEMS.items():
        if state in states:
            return Verdict(False, states[state], f"{reason}: {states[state]}")
    if verified.exit_code == 0 and fingerprint:
        return Verdict(True, fingerprint)
    return Verdict(False, fingerprint, f"its GPG signature is not valid: {_shorten(printed)}")


def _run(
    repository: Repository,
    arguments: Sequence[str],
    config: Sequence[tuple[str, str]],
    environment: Mapping[str, str] | None = None,
) -> GitResult:
    """Run git with the programs that the configuration of the user names for signatures, in a private clone, too."""
    programs = read_config(repository.path, r"^gpg\.") if repository.private is not None else ()
    settings = (*programs, *config)
    return run_git(arguments, repository=repository, config=settings, cwd=repository.root, extra_environment=environment)


def _shorten(text: str) -> str:
    return " ".join(text.split())[:200] or "no reason was given"
