"""Archives with Helm charts: read their files, and write an archive with other contents for some of them."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Callable

SUFFIXES = (".tgz", ".tar.gz")
MAX_ARCHIVE = 100 << 20
"""Bytes that an archive with a chart may unpack to, as helm itself limits them."""
MAX_NESTED = 5
"""Archives inside of each other that are read."""

Edit = Callable[[str, bytes], bytes]
"""Returns the new content of a file, given its path in the archive and its content."""


def decompress(data: bytes) -> bytes:
    """Return what the members of a gzip file unpack to, at most one byte more than the limit; what follows an error is not unpacked."""
    found = bytearray()
    while data and len(found) <= MAX_ARCHIVE:
        unpacker = zlib.decompressobj(wbits=31)
        try:
            found += unpacker.decompress(data, MAX_ARCHIVE + 1 - len(found))
        except zlib.error:
            break
        if not unpacker.eof:
            break
        data = unpacker.unused_data
    return bytes(found)


def edit_archive(data: bytes, edit: Edit, depth: int = MAX_NESTED) -> bytes:
    """Return an archive whose files have the contents that `edit` returns, those in archives that it has as well. `data` itself is returned
    if nothing changes.

    Raises ValueError if it cannot be read or is too large.
    """
    content = decompress(data)
    if len(content) > MAX_ARCHIVE:
        raise ValueError(f"the archive unpacks to more than {MAX_ARCHIVE} bytes")
    if depth == 0:
        raise ValueError(f"it has more than {MAX_NESTED} archives inside of each other")
    changed, written = False, io.BytesIO()
    try:
        with (
            tarfile.open(fileobj=io.BytesIO(content), mode="r:") as source,
            tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as target,
        ):
            for member in source:
                file = source.extractfile(member) if member.isreg() else None
                if file is None:
                    continue  # helm reads no directories and links
                before = file.read()
                nested = member.name.endswith(SUFFIXES)
                after = edit_archive(before, edit, depth - 1) if nested else edit(member.name, before)
                changed |= after is not before
                entry = tarfile.TarInfo(member.name)
                entry.size = len(after)
                target.addfile(entry, io.BytesIO(after))
    except tarfile.TarError as error:
        raise ValueError(f"the archive cannot be read: {error}") from error
    return gzip.compress(written.getvalue(), 1, mtime=0) if changed else data
