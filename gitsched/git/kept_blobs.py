"""Blobs that a process keeps in memory and does not write to the repository: what kustomizations, charts and Bundles build."""

from __future__ import annotations

from gitsched.model.errors import Permanent

MAX_KEPT_SIZE = 1 << 30
"""Bytes of the blobs of one run, and of those that stay in memory for the next run."""


class KeptBlobs:
    """Blobs by id. Those of a run stay until its end; then the oldest beyond the limit are removed."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}
        self._size = self._run_size = 0
        self._run: set[str] = set()

    def find(self, oid: str) -> bytes | None:
        """Return a blob; None if it is not kept."""
        return self._blobs.get(oid)

    def add(self, oid: str, data: bytes) -> None:
        """Keep a blob. Raise Permanent if those of the run exceed the limit."""
        if self._blobs.pop(oid, None) is None:
            self._size += len(data)
        self._blobs[oid] = data
        if oid not in self._run:
            self._run.add(oid)
            self._run_size += len(data)
            if self._run_size > MAX_KEPT_SIZE:
                raise Permanent(
                    f"what kustomizations, charts and Bundles build has more than {MAX_KEPT_SIZE:,} bytes in all: remove the roots that "
                    "build the most, or divide the repository"
                )

    def end_run(self) -> None:
        """Remove the oldest blobs beyond the limit."""
        self._run.clear()
        self._run_size = 0
        while self._size > MAX_KEPT_SIZE:
            self._size -= len(self._blobs.pop(next(iter(self._blobs))))
