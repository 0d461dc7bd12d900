"""The files of gitsched: which build runs, and a digest of its code that is equal for equal files, whether a wheel or a checkout has them.

An installer has listed the files of a wheel with their digests in RECORD. A checkout has no such list: its build is identified by the sizes
and times of its files, and its digest is computed once for each build.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

from gitsched import __version__
from gitsched.reconcile.cache.checked_file import read_checked, write_checked

_SUFFIXES = (".py", ".json")
_MIN_AGE = 10.0
"""Seconds since the last change of a file from which on an edit of it has another time, also in file systems with coarse times."""


@cache
def compute_package_digest(directory: Path) -> str:
    """Return the digest of the running gitsched, which depends neither on times of files nor on Python's version. The cache directory may
    have that of a checkout."""
    return digest_package(Path(__file__).parents[1], directory)


def digest_package(package: Path, directory: Path | None = None) -> str:
    """Return the digest of a package in any directory. The digest of a checkout is kept in the cache directory, if there is one.

    It is kept only if all files are older than some seconds: an edit at the same time and of the same size could not be seen later.
    """
    listed = _read_installed(package)
    if listed or directory is None:
        return _digest(listed or list_files(package))
    statuses = list(_list_statuses(package))
    key = _digest([str(package), *map(str, statuses)])
    file = directory / "code.json"
    known = read_checked(file, key)
    if isinstance(known, str):
        return known
    digest, newest = _digest(list_files(package)), max((max(times) for _, _, *times in statuses), default=0)
    if newest / 1e9 + _MIN_AGE < time.time() and statuses == list(_list_statuses(package)):
        write_checked(file, key, digest)
    return digest


def identify_package(package: Path) -> str:
    """Return what differs between two builds of a package in any directory, and between two versions of Python.

    The same wheel has the same identity on every machine; an edit of a checkout makes another one.
    """
    return _digest([sys.version, *(_read_installed(package) or map(str, _list_statuses(package)))])


@cache
def identify_code() -> str:
    """Return the identity of the running gitsched: of the files that this process found, not of later edits of a checkout."""
    return identify_package(Path(__file__).parents[1])


def list_files(package: Path) -> Iterator[str]:
    """Yield the files of a checkout as an installer lists those of a wheel, where the schemas are inside the package."""
    from base64 import urlsafe_b64encode  # few processes run a checkout

    for name, path in _walk(package):
        digest = urlsafe_b64encode(sha256(Path(path).read_bytes()).digest()).rstrip(b"=").decode()
        yield f"{name},sha256={digest}"


def _read_installed(package: Path) -> list[str]:
    """Return the code of an installed wheel, each file with its digest; nothing for a checkout."""
    record = package.parent / f"{package.name}-{__version__}.dist-info" / "RECORD"
    if not record.is_file():
        return []
    rows = (line.split(",")[:2] for line in record.read_text(encoding="utf-8").splitlines())
    return [f"{path},{digest}" for path, digest in rows if path.startswith(f"{package.name}/") and path.endswith(_SUFFIXES)]


def _list_statuses(package: Path) -> Iterator[tuple[str, int, int, int]]:
    """Yield path, size, and the times of the last changes of content and of metadata, in nanoseconds."""
    for name, path in _walk(package):
        status = os.stat(path)  # noqa: PTH116 - hundreds of files
        yield name, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _walk(package: Path) -> Iterator[tuple[str, str]]:
    """Yield name and path of each file of a checkout."""
    roots = [(str(package), package.name)]
    schemas = package.parent / "schemas"
    if schemas.is_dir():
        roots += [(str(path), f"{package.name}/schemas/{path.name}") for path in schemas.iterdir() if path.is_dir()]
    for root, name in roots:
        for directory, _, files in os.walk(root):
            for file in files:
                if file.endswith(_SUFFIXES):
                    yield f"{name}{directory[len(root) :]}/{file}", f"{directory}/{file}"


def _digest(rows: Iterable[str]) -> str:
    return sha256("\n".join(sorted(rows)).encode("utf-8", "surrogateescape")).hexdigest()[:32]
