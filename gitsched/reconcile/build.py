"""Which build of the program this is, for what it leaves on disk: a cache must not outlive the code and the schemas that made it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path

from gitsched import __version__

_KINDS = (".py", ".json")


@cache
def identify_build() -> str:
    """The version, and a digest of what was installed: the same on every machine with the same wheel and the same Python."""
    return identify(Path(__file__).parents[1])


def identify(package: Path) -> str:
    """As `identify_build`, of a package in any place.

    The installer has written down what is in a wheel. In a checkout there is no such list, and the files' sizes and times tell: whoever
    works on the program must not meet what an earlier state of it left.
    """
    record = package.parent / f"{package.name}-{__version__}.dist-info" / "RECORD"
    installed = record.read_text(encoding="utf-8").splitlines() if record.is_file() else []
    listed = [line for line in installed if line.startswith(f"{package.name}/") and ",sha256=" in line]
    text = "\n".join((sys.version, *sorted(listed or _list_files(package))))
    return f"{__version__}-{blake2b(text.encode('utf-8', 'surrogateescape'), digest_size=6).hexdigest()}"


def _list_files(package: Path) -> Iterator[str]:
    for root in (package, package.parent / "schemas"):
        for directory, _, files in os.walk(root):
            for name in files:
                if name.endswith(_KINDS):
                    status = os.stat(os.path.join(directory, name))  # noqa: PTH116, PTH118 - hundreds of files, in each process
                    yield f"{directory[len(str(root)) :]}/{name}:{status.st_size}:{status.st_mtime_ns}"
