"""Git objects: parse, format and sign commits; write many objects as one packfile, and keep them while `git gc` may run. The same
inputs give the same commit id on every machine."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import struct
import subprocess
import tempfile
import time as clock
import zlib
from codecs import lookup
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from gitsched.git.loaded_pygit2 import pygit2
from gitsched.git.trees import BLOB, hash_object
from gitsched.model.commit import Commit
from gitsched.model.errors import Permanent, Temporary
from gitsched.model.time import EPOCH
from gitsched.named_tuples import NamedTuple
from gitsched.temporary_directory import TemporaryDirectory

if TYPE_CHECKING:
    from gitsched.git.mirrored_refs import CloneControl
    from gitsched.git.trees import RawObject

_LARGE_OFFSET = 1 << 31
_PERMANENT_ERRNOS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_pack_counter = count()
_MAX_COLLECTION_TIME = 12 * 3600.0


class LostObject(Permanent):
    """An object (without an `oid`, the file of a ref) is missing or damaged in the repository with the Git directory `path`."""

    def __init__(self, message: str, path: str, oid: str = "") -> None:
        super().__init__(message)
        self.path, self.oid = path, oid


class WrittenObjects:
    """The objects that this process has written to a repository since refs were moved to them. `directory` is the one that worktrees
    share; `path` is the Git directory that errors name."""

    def __init__(self, directory: Path, path: str) -> None:
        self._directory, self._path = directory, path
        self._objects: dict[bytes, RawObject] = {}

    def add(self, objects: Iterable[RawObject]) -> None:
        """Add objects that were written."""
        self._objects.update((entry[0], entry) for entry in objects)

    def clear(self) -> None:
        """Forget all objects, because refs lead to them or never will."""
        self._objects.clear()

    @contextlib.contextmanager
    def keep(self) -> Iterator[None]:
        """Move refs to the objects while `git gc` may run, which removes objects to which no ref led when it started.

        They are written again before, because git moves no ref to a missing commit, and after it, when no later `git gc` removes them.
        """
        self._write_removed()
        yield
        self._write_removed()
        self.clear()

    def _write_removed(self) -> None:
        """Write the objects again that `git gc` has removed, or may be about to remove."""
        is_collecting = self.is_collecting_garbage
        if self._objects and (is_collecting or not self._are_on_disk()):
            # `git gc` also removes the packs that it has found when it started. A pack is named by its content, which
            # is the same in a process with the same decision, so this one gets an object of its own.
            name = f"pack {next(_pack_counter)} of process {os.getpid()} at {clock.time_ns()}\n".encode()
            self.write_pack([*self._objects.values(), (hash_object(BLOB, name), BLOB, name)])

    @property
    def is_collecting_garbage(self) -> bool:
        """Whether `git gc` runs in the repository. Like git, ignore the file of one that was killed half a day ago."""
        try:
            return clock.time() - (self._directory / "gc.pid").stat().st_mtime < _MAX_COLLECTION_TIME
        except FileNotFoundError:
            return False

    def _are_on_disk(self) -> bool:
        # Open the objects anew: libgit2 counts those that it has read before as available.
        objects = pygit2.Odb(str(self._directory / "objects"))
        return all(oid.hex() in objects for oid in self._objects)

    def write_pack(self, objects: Sequence[RawObject]) -> None:
        """Write objects as one pack. Raise Permanent or Temporary if that fails."""
        try:
            write_pack(self._directory / "objects" / "pack", objects)
        except OSError as error:
            raise make_write_error(self._path, str(error), permanent=error.errno in _PERMANENT_ERRNOS) from error


def make_read_error(
    what: str, oid: str, path: str, error: Exception, private: CloneControl | None, written: WrittenObjects, *, is_partial: bool
) -> Permanent | Temporary:
    """Return the error that an object cannot be read from a repository; a private clone is fetched again then."""
    damage = f"its file is damaged: {error}" if isinstance(error, zlib.error) else str(error)
    reason = "it is missing" if isinstance(error, KeyError) else damage
    if is_partial:
        reason += " (the repository is a partial clone; `git fetch --refetch --no-filter` completes it)"
    message = f"{what} cannot be read from {path}: {reason}"
    if private is not None:
        private.report_damage()
        return Temporary(f"{message}; the private clone will be fetched again")
    # While git removes garbage, another process may be about to write what it removed by mistake.
    return Temporary(message) if written.is_collecting_garbage else LostObject(message, path, oid)


def make_write_error(path: str, reason: str, *, permanent: bool) -> Permanent | Temporary:
    """Return the error that objects cannot be written to a repository."""
    return (Permanent if permanent else Temporary)(f"cannot write objects to {path}: {reason}")


def write_pack(directory: Path, objects: Sequence[RawObject]) -> Path:
    """Write objects, each id once, as one packfile with its index (gitformat-pack, version 2); OSError when the disk fails.

    The pack appears complete or not at all: both files are synced before the index, which makes the pack visible, is renamed. A
    crash can leave a `tmp_` file, which `git gc` removes.
    """
    compress = _load_compressor()
    directory.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix="tmp_pack_", dir=directory)
    pack, index = Path(name), Path(f"{name}.idx")
    try:
        with os.fdopen(handle, "wb", buffering=1 << 20) as file:
            digest = hashlib.sha1(struct.pack(">4sII", b"PACK", 2, len(objects)), usedforsecurity=False)
            file.write(struct.pack(">4sII", b"PACK", 2, len(objects)))
            offsets: list[tuple[bytes, int, int]] = []
            offset = 12
            for oid, kind, data in objects:
                record = _encode_header(kind, len(data)) + compress(data, 1)
                offsets.append((oid, zlib.crc32(record), offset))
                digest.update(record)
                offset += file.write(record)
            file.write(digest.digest())
            file.flush()
            os.fsync(handle)
        with index.open("wb") as file:
            file.write(_encode_index(sorted(offsets), digest.digest()))
            file.flush()
            os.fsync(file.fileno())
        target = directory / f"pack-{digest.hexdigest()}.pack"
        for written, final in ((pack, target), (index, target.with_suffix(".idx"))):
            written.chmod(0o444)
            written.rename(final)
        _sync_directory(directory)
    except BaseException:
        for written in (pack, index):
            with contextlib.suppress(FileNotFoundError):
                written.unlink()
        raise
    return target


def _encode_header(kind: int, size: int) -> bytes:
    """Encode type and size: four bits of the size in the first byte, seven in each further byte, least significant first."""
    byte, size = (kind << 4) | (size & 15), size >> 4
    head = bytearray()
    while size:
        head.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    head.append(byte)
    return bytes(head)


def _load_compressor() -> Callable[[bytes, int], bytes]:
    """Return the zlib compression of ISA-L, which takes less than half of the time, or that of Python where ISA-L does not exist."""
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib.compress
    return isal_zlib.compress


def _encode_index(offsets: Sequence[tuple[bytes, int, int]], pack: bytes) -> bytes:
    """Encode index version 2 of (id, checksum, offset) triples sorted by id."""
    fanout = [0] * 256
    for oid, _, _ in offsets:
        fanout[oid[0]] += 1
    for byte in range(1, 256):
        fanout[byte] += fanout[byte - 1]
    far = [offset for _, _, offset in offsets if offset >= _LARGE_OFFSET]
    far_at = {offset: position for position, offset in enumerate(far)}
    near = [_LARGE_OFFSET | far_at[offset] if offset >= _LARGE_OFFSET else offset for _, _, offset in offsets]
    body = b"".join(
        (
            b"\xfftOc\0\0\0\2",
            struct.pack(">256I", *fanout),
            b"".join(oid for oid, _, _ in offsets),
            struct.pack(f">{len(offsets)}I", *(checksum for _, checksum, _ in offsets)),
            struct.pack(f">{len(offsets)}I", *near),
            struct.pack(f">{len(far)}Q", *far),
            pack,
        )
    )
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_TIMESTAMP = re.compile(rb"> (-?\d{1,18})(?: |$)")
_TRAILER = re.compile(r"([A-Za-z0-9-]+)[ \t]*:[ \t]*(.*)")
_UNSUPPORTED_ENCODINGS = frozenset(
    {"idna", "punycode", "undefined", "raw-unicode-escape", "raw_unicode_escape", "unicode-escape", "unicode_escape"}
)
_GIT_TRAILERS = ("Signed-off-by: ", "(cherry picked from commit ")


def parse_commit(oid: str, data: bytes) -> Commit:
    """Parse a raw commit object; ValueError when it names no tree."""
    head, _, body = data.partition(b"\n\n")
    fields: dict[bytes, list[bytes]] = {}
    for line in head.split(b"\n"):
        field, _, value = line.partition(b" ")
        fields.setdefault(field, []).append(value)
    if b"tree" not in fields:
        raise ValueError("malformed commit object")
    encoding = fields.get(b"encoding", [b"utf-8"])[0]
    message = _decode_text(body, encoding)
    committer = fields.get(b"committer", [b""])[0]
    name, _, rest = _decode_text(committer, encoding).partition(" <")
    author, _, _ = _decode_text(fields.get(b"author", [b""])[0], encoding).rpartition(">")
    return Commit(
        oid,
        fields[b"tree"][0].decode("ascii", "replace"),
        tuple(parent.decode("ascii", "replace") for parent in fields.get(b"parent", [])),
        _parse_timestamp(committer),
        " ".join(line.strip() for line in message.strip("\n").split("\n\n", 1)[0].splitlines()),
        message,
        parse_trailers(message),
        name.strip(),
        rest.partition(">")[0].strip(),
        f"{author}>" if author else "",
    )


def parse_trailers(message: str) -> tuple[tuple[str, str], ...]:
    """Return the trailers in the last paragraph of a message, by the rules of git-interpret-trailers. The subject is never a
    trailer."""
    paragraphs = re.split(r"\n[ \t]*\n", message.strip())
    if len(paragraphs) < 2:
        return ()
    found: list[tuple[str, list[str]]] = []
    lines, others, made = paragraphs[-1].splitlines(), 0, False
    for line in lines:
        match = _TRAILER.fullmatch(line)
        made = made or line.startswith(_GIT_TRAILERS)
        if match:
            found.append((match[1], [match[2].strip()]))
        elif line[:1] in (" ", "\t") and found:
            found[-1][1].append(line.strip())
        elif not line.startswith(_GIT_TRAILERS):
            others += 1
    if others and not (made and others <= 3 * len(found)):
        return ()
    return tuple((name, " ".join(texts)) for name, texts in found)


def format_commit(
    tree: str, parents: Sequence[str], message: str, *, name: str, email: str, time: datetime, signature: str | None = None
) -> bytes:
    """Return a raw commit object. Author and committer are the same; the date is `time` in UTC, to the second.

    `signature` is a signer's signature of the same object without a signature.
    """
    if "\0" in message:
        raise ValueError("a commit message cannot contain NUL")
    committer = f"{clean_name(name)} <{clean_name(email)}> {int(time.timestamp())} +0000"
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents), f"author {committer}", f"committer {committer}"]
    if signature is not None:
        lines.append("gpgsig " + "\n ".join(signature.strip("\n").split("\n")))
    text = "\n".join(lines) + "\n\n" + message.strip("\n") + "\n"
    return text.encode("utf-8", "backslashreplace")


def clean_name(text: str) -> str:
    """Return a name or an email address without line breaks, control characters and angle brackets, as a commit needs it."""
    cleaned = "".join(" " if ch < " " or ch == "\x7f" else ch for ch in text if ch not in "<>").strip(" .,:;\"'\\")
    if not cleaned:
        raise ValueError(f"not a name or address for a commit: {text!r}")
    return cleaned


def _parse_timestamp(committer: bytes) -> datetime:
    match = _TIMESTAMP.search(committer)
    seconds = int(match[1]) if match else 0
    if seconds <= 0:
        return EPOCH
    return datetime.fromtimestamp(min(seconds, 253402300799), UTC)


def _decode_text(body: bytes, encoding: bytes) -> str:
    """Decode text in the encoding that the commit names; an unknown or unsafe encoding counts as UTF-8."""
    try:
        name = lookup(encoding.decode("ascii", "replace")).name
        return body.decode("utf-8" if name in _UNSUPPORTED_ENCODINGS else name, "replace")
    except (LookupError, ValueError):
        return body.decode("utf-8", "replace")


_SIGN_TIMEOUT = 60.0

SignatureFormat = Literal["ssh", "gpg"]


class Signer(NamedTuple):
    """A signing key and the program that signs with it.

    `key` for ssh is the path of a key file, or a public key as text (optionally after "key::") whose private half is in an agent.
    For gpg it is a value of `gpg -u`; "" is the default key.
    """

    format: SignatureFormat
    key: str
    program: str

    def sign(self, data: bytes) -> str:
        """Return the armoured signature of the data; Permanent with the error output of the program when signing fails."""
        if self.format == "gpg":
            return self._run_program(
                ["--status-fd=2", "--detach-sign", "--armor", *(("--local-user", self.key) if self.key else ())], data
            )
        literal = self.key.removeprefix("key::")
        if not self.key.startswith("key::") and not self.key.startswith(("ssh-", "ecdsa-", "sk-")):
            return self._run_program(["-Y", "sign", "-n", "git", "-f", str(Path(self.key).expanduser())], data)
        with TemporaryDirectory("key") as directory:
            public = directory / "key.pub"
            public.write_text(f"{literal}\n")
            return self._run_program(["-Y", "sign", "-n", "git", "-f", str(public), "-U"], data)

    def _run_program(self, arguments: list[str], data: bytes) -> str:
        try:
            done = subprocess.run(
                [self.program, *arguments],
                input=data,
                capture_output=True,
                timeout=_SIGN_TIMEOUT,
                env={**os.environ, "LC_ALL": "C"},
            )
        except FileNotFoundError as error:
            raise Permanent(f"cannot sign commits: there is no program {self.program}") from error
        except subprocess.TimeoutExpired as error:
            raise Temporary(
                f"{self.program} did not sign within {_SIGN_TIMEOUT:g} seconds; is it waiting for a passphrase?"
            ) from error
        signature = done.stdout.decode("ascii", "replace")
        if done.returncode != 0 or "-----BEGIN" not in signature:
            raise Permanent(f"{self.program} could not sign: {done.stderr.decode('utf-8', 'replace').strip()[-500:]}")
        return signature


class ConfigReader(Protocol):
    """Reads settings of Git's configuration."""

    def read_config(self, name: str) -> str | None:
        """Return the value of a setting, or None when it is not set."""
        ...


def make_signer(repository: ConfigReader, *, format: str | None = None, key: str | None = None) -> Signer:  # noqa: A002 - gpg.format
    """Build the signer from gitsched's configuration; missing values come from Git's (gpg.format, user.signingKey and so on)."""
    kind = format or repository.read_config("gpg.format") or "gpg"
    name = key or repository.read_config("user.signingkey") or ""
    if kind == "ssh":
        if not name:
            raise Permanent("cannot sign commits with ssh: neither gitsched.yaml nor user.signingKey names a key")
        return Signer("ssh", name, repository.read_config("gpg.ssh.program") or "ssh-keygen")
    if kind in ("gpg", "openpgp"):
        return Signer("gpg", name, repository.read_config("gpg.openpgp.program") or repository.read_config("gpg.program") or "gpg")
    raise Permanent(f"commits can be signed with ssh or gpg, not with {kind!r}")
