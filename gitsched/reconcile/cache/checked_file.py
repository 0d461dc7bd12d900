"""Small cache files: one JSON value that belongs to a key, with a checksum. A file that other users can write to is neither read nor
written."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from hashlib import blake2b
from pathlib import Path
from typing import Any

from gitsched.reconcile.cache.ownership import is_private

MAX_SIZE = 1 << 20
"""Bytes of a file. Larger values are not cached."""
_CHECKSUM_LENGTH = 32
_log = logging.getLogger("gitsched.reconcile")


def read_checked(path: Path, key: str) -> Any:
    """Return the value that was written for this key; None if the file has none, is damaged, or others can write to it."""
    try:
        if not is_private(path) or path.stat().st_size > MAX_SIZE:
            return None
        data = path.read_bytes()
    except OSError:
        return None  # not there, or replaced meanwhile
    checksum, text = data[:_CHECKSUM_LENGTH], data[_CHECKSUM_LENGTH:]
    if _checksum(text) != checksum:
        return None
    found = json.loads(text)
    return found["value"] if found["key"] == key else None


def write_checked(path: Path, key: str, value: Any) -> None:
    """Replace the value, unless others can write to the directory. A failure is logged: a run does not need the file."""
    text = json.dumps({"key": key, "value": value}).encode()
    if len(text) + _CHECKSUM_LENGTH > MAX_SIZE or not is_private(path.parent):
        return
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        temporary.touch(mode=0o600)
        temporary.write_bytes(_checksum(text) + text)
        temporary.replace(path)
    except OSError as error:
        _log.warning("the cache %s was not written: %s", path, error)
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _checksum(text: bytes) -> bytes:
    return blake2b(text, digest_size=_CHECKSUM_LENGTH // 2).hexdigest().encode()
