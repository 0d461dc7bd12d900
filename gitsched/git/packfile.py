"""Write many new objects as one packfile with its index (gitformat-pack, version 2)."""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

COMMIT, TREE, BLOB = 1, 2, 3
_TYPE_NAMES = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob"}
_LARGE_OFFSET = 1 << 31
_SMALL_SIZE = 4096

RawObject = tuple[bytes, int, bytes]
"""Raw id, kind and content."""


def hash_object(kind: int, data: bytes) -> bytes:
    """The raw id that Git gives to an object."""
    return hashlib.sha1(b"%b %d\0%b" % (_TYPE_NAMES[kind], len(data), data), usedforsecurity=False).digest()


def write_pack(directory: Path, objects: Sequence[RawObject]) -> Path:
    """Write objects, each id once, as one pack with its index; OSError when the disk refuses.

    The pack appears complete or not at all: both files are synced before the index, which makes the pack visible, gets its name.
    What a crash leaves behind is a `tmp_` file, which `git gc` removes.
    """
    directory.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix="tmp_pack_", dir=directory)
    pack, index = Path(name), Path(f"{name}.idx")
    try:
        with os.fdopen(handle, "wb", buffering=1 << 20) as file:
            digest = hashlib.sha1(struct.pack(">4sII", b"PACK", 2, len(objects)), usedforsecurity=False)
            file.write(struct.pack(">4sII", b"PACK", 2, len(objects)))
            places: list[tuple[bytes, int, int]] = []
            offset = 12
            for oid, kind, data in objects:
                record = _encode_header(kind, len(data)) + _compress(data)
                places.append((oid, zlib.crc32(record), offset))
                digest.update(record)
                offset += file.write(record)
            file.write(digest.digest())
            file.flush()
            os.fsync(handle)
        with index.open("wb") as file:
            file.write(_encode_index(sorted(places), digest.digest()))
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
    """Kind and size: four bits of size in the first byte, seven in each further one, least significant first."""
    byte, size = (kind << 4) | (size & 15), size >> 4
    head = bytearray()
    while size:
        head.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    head.append(byte)
    return bytes(head)


def _compress(data: bytes) -> bytes:
    """A zlib stream; small content gets a small window, whose tables are set up three times faster."""
    if len(data) > _SMALL_SIZE:
        return zlib.compress(data, 1)
    stream = zlib.compressobj(1, zlib.DEFLATED, 12, 4)
    return stream.compress(data) + stream.flush()


def _encode_index(places: Sequence[tuple[bytes, int, int]], pack: bytes) -> bytes:
    """Index version 2 of (id, checksum, offset) triples sorted by id."""
    fanout = [0] * 256
    for oid, _, _ in places:
        fanout[oid[0]] += 1
    for byte in range(1, 256):
        fanout[byte] += fanout[byte - 1]
    far = [offset for _, _, offset in places if offset >= _LARGE_OFFSET]
    far_at = {offset: position for position, offset in enumerate(far)}
    near = [_LARGE_OFFSET | far_at[offset] if offset >= _LARGE_OFFSET else offset for _, _, offset in places]
    body = b"".join(
        (
            b"\xfftOc\0\0\0\2",
            struct.pack(">256I", *fanout),
            b"".join(oid for oid, _, _ in places),
            struct.pack(f">{len(places)}I", *(checksum for _, checksum, _ in places)),
            struct.pack(f">{len(places)}I", *near),
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
