"""Blobs that a partial clone lacks: fetched by id, many in one request, into the private clone of its remote.

The partial clone itself stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from gitsched.git.object_transfer import fetch_objects
from gitsched.git.private_clone import PrivateClone
from gitsched.git.remote_refs import find_remote_url

if TYPE_CHECKING:
    from gitsched.git.repository import Repository


class PromisedObjects:
    """The objects that the remote of a partial clone has promised to send on request."""

    def __init__(self, repository: Repository, url: str, cache: Path) -> None:
        self._repository, self._url = repository, url
        self._clone = PrivateClone(url, cache)
        self._read_from: Repository | None = None

    def fetch(self, oids: Collection[str]) -> None:
        """Make objects available to the repository, as far as the remote has them. Raise a GitschedError if it cannot be reached."""
        store = self._clone.repository
        if self._read_from is not store:  # earlier runs may have fetched them
            self._repository.read_also(store)
            self._read_from = store
        missing = sorted({oid for oid in oids if not self._repository.has(oid)})
        if missing:
            # A partial clone has commits whose blobs it lacks.
            fetch_objects(store, self._repository, self._url, missing, known=False)


def promise_objects(repository: Repository, cache: Path) -> None:
    """Let a partial clone read what it lacks from its remote. No effect for any other repository."""
    names = [repository.read_config("extensions.partialclone") or "", "origin"]
    name = next((name for name in names if name and repository.read_config(f"remote.{name}.promisor") == "true"), None)
    url = find_remote_url(repository, name) if name is not None else None
    if url is not None:
        repository.promised = PromisedObjects(repository, url, cache).fetch
