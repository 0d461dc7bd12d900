"""Which build of the program this is, for what it leaves on disk: a cache must not outlive the code and the schemas that made it."""

from __future__ import annotations

import os
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path

from gitsched import __version__

_KINDS = (".py", ".json")


@cache
def identify_build() -> str:
    """The version, and a digest of the program's own files as they are now: whoever works on it must not meet an earlier state."""
    found = [sys.version]
    package = Path(__file__).parents[1]
    for root in (package, package.parent / "schemas"):
        for directory, _, files in os.walk(root):
            for name in sorted(files):
                if name.endswith(_KINDS):
                    status = os.stat(os.path.join(directory, name))  # noqa: PTH116, PTH118 - hundreds of files, in each process
                    found.append(f"{directory}/{name}:{status.st_size}:{status.st_mtime_ns}")
    return f"{__version__}-{sha256(chr(0).join(sorted(found)).encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"
