"""Archives as `helm package` and others make them."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return an archive with files."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(written.getvalue(), 1, mtime=0)


def split(archive: bytes) -> bytes:
    """Return an archive whose halves are compressed one after the other."""
    data = gzip.decompress(archive)
    middle = len(data) // 2
    return gzip.compress(data[:middle], 1, mtime=0) + gzip.compress(data[middle:], 1, mtime=0)


def nest(archive: bytes, depth: int) -> bytes:
    """Return an archive with an archive with ... an archive."""
    for _ in range(depth):
        archive = pack({"db/charts/db.tgz": archive})
    return archive
