"""A digest of the code of gitsched: equal for equal files, whether a wheel or a checkout has them."""

from __future__ import annotations

import os
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

from gitsched import __version__

_SUFFIXES = (".py", ".json")


@cache
def compute_package_digest() -> str:
    """Return the digest of the running gitsched. Unlike `identify_build`, it does not depend on times of files or on Python's version."""
    return digest_package(Path(__file__).parents[1])


def digest_package(package: Path) -> str:
    """Return the digest of a package in any directory.

    An installer has listed the files of a wheel with their digests. Those of a checkout are read.
    """
    record = package.parent / f"{package.name}-{__version__}.dist-info" / "RECORD"
    installed = record.read_text(encoding="utf-8").splitlines() if record.is_file() else []
    listed = [f"{path},{digest}" for line in installed for path, digest in [line.split(",")[:2]] if _is_code(package.name, path)]
    return sha256("\n".join(sorted(listed or list_files(package))).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _is_code(name: str, path: str) -> bool:
    return path.startswith(f"{name}/") and path.endswith(_SUFFIXES)


def list_files(package: Path) -> Iterator[str]:
    """Yield the files of a checkout as an installer lists those of a wheel, where the schemas are inside the package."""
    roots = [(package, package.name)]
    schemas = package.parent / "schemas"
    if schemas.is_dir():
        roots += [(path, f"{package.name}/schemas/{path.name}") for path in schemas.iterdir() if path.is_dir()]
    for root, name in roots:
        for directory, _, files in os.walk(root):
            for file in files:
                if file.endswith(_SUFFIXES):
                    content = Path(directory, file).read_bytes()
                    digest = urlsafe_b64encode(sha256(content).digest()).rstrip(b"=").decode()
                    yield f"{name}{directory[len(str(root)) :]}/{file},sha256={digest}"
