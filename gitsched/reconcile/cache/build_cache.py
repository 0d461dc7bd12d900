"""Results of kustomize by everything that they depend on, in memory and in one file that all processes of a user share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gitsched.reconcile.cache.root_documents import RootDocumentCache
from gitsched.reconcile.cache.storage import RowFile

MAX_ROWS = 20_000
"""Results that are kept; beyond it, all are deleted."""


class BuildCache:
    """JSON values by key. `expired` are the keys of builds that did not end in time since the last `save`."""

    def __init__(self, directory: Path) -> None:
        self._rows = RowFile(directory / "built.sqlite3", MAX_ROWS)
        self._values: dict[str, Any] = {}
        self._unsaved: dict[str, Any] = {}
        self._used: set[str] = set()
        self.expired: list[str] = []
        self._directory = directory
        self._roots: RootDocumentCache | None = None

    def open_roots(self, purpose: tuple[str, ...]) -> RootDocumentCache:
        """Return the documents of roots that were read for the same purpose."""
        if self._roots is None or self._roots.purpose != purpose:
            self._roots = RootDocumentCache(self._directory, purpose)
        return self._roots

    def load(self, keys: Sequence[str]) -> None:
        """Load the rows of these keys into memory."""
        self._values.update(self._rows.read([key for key in keys if key not in self._values]))

    def get(self, key: str) -> Any:
        """Return the value of a key that was loaded or set; None if there is none."""
        self._used.add(key)
        return self._values.get(key)

    def put(self, key: str, value: Any) -> None:
        """Set a value, which must be JSON."""
        self._values[key] = self._unsaved[key] = value
        self._used.add(key)

    def save(self) -> None:
        """Write the new values, and remove from memory those that no call has used since the last time. Log a failure instead of raising
        it: a run works without the file."""
        self._rows.write(self._unsaved)
        self._unsaved.clear()
        self._values = {key: value for key, value in self._values.items() if key in self._used}
        self._used.clear()
        if self._roots is not None:
            self._roots.save()
        self.expired.clear()
