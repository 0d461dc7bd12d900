"""The files of gitsched: which build runs, and a digest of its code that is equal for equal files, whether a wheel or a checkout has them.
Both include the filters and policy APIs that a program has added.

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
from typing import Any

from gitsched import __version__
from gitsched.reconcile.cache.checked_file import read_checked, write_checked

_SUFFIXES = (".py", ".json")
_MIN_AGE = 10.0
"""Seconds since the last change of a file from which on an edit of it has another time, also in file systems with coarse times."""


_ADDED_FILTERS = (
    ("gitsched.schedule.fleet", "FILTERS", "BUILT_IN_FILTERS"),
    ("gitsched.schedule.selection", "SELECTION_FILTERS", "BUILT_IN_SELECTION_FILTERS"),
)
"""The modules that have filters, with the names of all of them and of those of gitsched."""


@cache
def compute_package_digest(directory: Path) -> str:
    """Return the digest of the running gitsched, which depends neither on times of files nor on Python's version. The cache directory may
    have that of a checkout."""
    return _add_plugins(digest_package(Path(__file__).parents[1], directory))


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
    return _add_plugins(identify_files())


@cache
def identify_files() -> str:
    """Return the identity of the running gitsched without what the program has added."""
    return identify_package(Path(__file__).parents[1])


def _add_plugins(code: str) -> str:
    added = list_plugins()
    return _digest([code, *added]) if added else code


def list_plugins() -> list[str]:
    """Return what identifies the filters and the policy APIs, if the program has added some: names, versions and digests of their modules.

    What a module has not imported yet, the program cannot have changed.
    """
    found: list[str] = []
    for module, listed, built_in in _ADDED_FILTERS:
        loaded = sys.modules.get(module)
        if loaded is not None and getattr(loaded, listed) is not getattr(loaded, built_in):
            found += (f"{listed} {position} {_describe(one)}" for position, one in enumerate(getattr(loaded, listed)))
    registry = sys.modules.get("gitsched.decide.registry")
    if registry is not None and len(registry.policy_apis) != len(registry.BUILT_IN):
        found += (f"{api.name} {_digest_module(api.create_engine.__module__)}" for api in registry.policy_apis.values())
    return found


def _describe(plugin: Any) -> str:
    kind = type(plugin)
    version = getattr(plugin, "version", "")
    return f"{plugin.name} {kind.__module__}.{kind.__qualname__} {version} {_digest_module(kind.__module__)}"


def _digest_module(name: str) -> str:
    """Return the digest of the file of a module outside of gitsched; "" without a file."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None or name.partition(".")[0] == __name__.partition(".")[0]:
        return ""
    try:
        return sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return ""


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
