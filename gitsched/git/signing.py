"""Signatures on commits, made by the programs that people's keys are set up for."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from gitsched.model.errors import Permanent, Temporary

if TYPE_CHECKING:
    from gitsched.git.objects import Repository

_TIMEOUT = 60.0

Format = Literal["ssh", "gpg"]


class Signer(NamedTuple):
    """A key and the program that signs with it.

    `key` is for ssh the path of a key file or a public key as text whose private half an agent holds ("key::" in front is allowed),
    for gpg whatever `gpg -u` takes ("" is the default key).
    """

    format: Format
    key: str
    program: str

    def sign(self, data: bytes) -> str:
        """The armoured signature of the data; Permanent with the program's own words when it refuses."""
        if self.format == "gpg":
            return self._run(["--status-fd=2", "--detach-sign", "--armor", *(("--local-user", self.key) if self.key else ())], data)
        literal = self.key.removeprefix("key::")
        if not self.key.startswith("key::") and not self.key.startswith(("ssh-", "ecdsa-", "sk-")):
            return self._run(["-Y", "sign", "-n", "git", "-f", str(Path(self.key).expanduser())], data)
        with tempfile.NamedTemporaryFile("w", suffix=".pub") as public:
            public.write(literal + "\n")
            public.flush()
            return self._run(["-Y", "sign", "-n", "git", "-f", public.name, "-U"], data)

    def _run(self, arguments: list[str], data: bytes) -> str:
        try:
            done = subprocess.run(
                [self.program, *arguments], input=data, capture_output=True, timeout=_TIMEOUT, env={**os.environ, "LC_ALL": "C"}
            )
        except FileNotFoundError as error:
            raise Permanent(f"commits are to be signed, but there is no program {self.program}") from error
        except subprocess.TimeoutExpired as error:
            raise Temporary(f"{self.program} did not sign within {_TIMEOUT:g} seconds; is it waiting for a passphrase?") from error
        signature = done.stdout.decode("ascii", "replace")
        if done.returncode != 0 or "-----BEGIN" not in signature:
            raise Permanent(f"{self.program} could not sign: {done.stderr.decode('utf-8', 'replace').strip()[-500:]}")
        return signature


def make_signer(repository: Repository, *, format: str | None = None, key: str | None = None) -> Signer:  # noqa: A002 - gpg.format
    """The signer that gitsched's configuration names; what it leaves out comes from Git's (gpg.format, user.signingKey ...)."""
    kind = format or repository.setting("gpg.format") or "gpg"
    name = key or repository.setting("user.signingkey") or ""
    if kind == "ssh":
        if not name:
            raise Permanent("commits are to be signed with ssh, but neither gitsched.yaml nor user.signingKey names a key")
        return Signer("ssh", name, repository.setting("gpg.ssh.program") or "ssh-keygen")
    if kind in ("gpg", "openpgp"):
        return Signer("gpg", name, repository.setting("gpg.openpgp.program") or repository.setting("gpg.program") or "gpg")
    raise Permanent(f"commits can be signed with ssh or gpg, not with {kind!r}")
