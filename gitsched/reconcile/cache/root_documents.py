"""The documents of kustomize roots that the last run read, so that a run reads only roots whose files changed."""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from gitsched.decide.catalog import RawDocument
from gitsched.model.finding import Finding
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.cache.ownership import is_private
from gitsched.reconcile.cache.row_format import CorruptCacheError, deserialize, serialize
from gitsched.reconcile.cache.storage import discard_file, identify_build, remove_temporary_files

_log = logging.getLogger("gitsched.reconcile")
_UNSAVED_PART = 20
"""The file is written again once more than one of so many roots changed: until then, later runs read the changed ones again."""


class RootDocuments(NamedTuple):
    """What a root builds: its documents, and findings about them. `files` are the blobs of all files that it reads, by path, `resources`
    those with its objects, `texts` what was built, by blob id."""

    files: Mapping[str, str]
    resources: frozenset[str]
    documents: tuple[RawDocument, ...]
    findings: tuple[Finding, ...]
    texts: Mapping[str, bytes]


class RootDocumentCache:
    """Documents by root. `structure` is a digest of the paths of the commit that they were read from.

    The `purpose` is everything that documents depend on besides the files of their root. Another purpose has another file.
    """

    def __init__(self, directory: Path, purpose: tuple[str, ...]) -> None:
        self.purpose = purpose
        digest = sha256("\0".join((identify_build(), *purpose)).encode("utf-8", "surrogateescape")).hexdigest()
        self._path = directory / f"roots-{digest[:32]}.pickle"
        self.structure = ""
        self.roots: Mapping[str, RootDocuments] = {}
        self._saved: Mapping[str, RootDocuments] = {}
        if is_private(self._path):
            try:
                self.structure, self.roots = deserialize(self._path.read_bytes())
            except (OSError, CorruptCacheError, TypeError, ValueError) as error:
                _log.warning("the cache %s is not readable and will be rebuilt: %s", self._path, error)
                discard_file(self._path)
            self._saved = self.roots

    def put(self, structure: str, roots: Mapping[str, RootDocuments]) -> None:
        """Replace all documents by those of the current commit."""
        self.structure, self.roots = structure, roots

    def save(self) -> None:
        """Write the file if many roots changed. Log a failure instead of raising it: a run works without the file."""
        changed = sum(self._saved.get(root) is not documents for root, documents in self.roots.items())
        directory = self._path.parent
        if changed * _UNSAVED_PART <= len(self.roots) or (directory.exists() and not is_private(directory)):
            return
        remove_temporary_files(self._path, replaced=True)
        temporary = self._path.with_suffix(f".{os.getpid()}")
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary.unlink(missing_ok=True)
            temporary.touch(mode=0o600, exist_ok=False)
            temporary.write_bytes(serialize((self.structure, self.roots)))
            temporary.replace(self._path)
        except (OSError, pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
            _log.warning("the cache %s was not written: %s", self._path, error)
            temporary.unlink(missing_ok=True)
        self._saved = self.roots
