"""Names for the completion of a shell: branches, clusters and workloads, as a local repository has them. No plan is made, and no remote
is contacted."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from gitsched.apis.gitsched.config import Config
from gitsched.git.repository import Repository
from gitsched.git.urls import is_url
from gitsched.model.document import Key
from gitsched.reconcile.cache.caches import ParseCache
from gitsched.reconcile.source.config_file import read_config
from gitsched.render.output_files import CLUSTERS, PLACEMENTS, RUN_METADATA, is_shortened
from gitsched.render.placement_records import read_placement_key, unescape_segment

MAX_BRANCHES = 2_000
"""Branches of a repository that are looked at."""
MAX_NAMESPACES = 5_000
"""Namespaces of an output branch that are looked at."""
_HEADS, _REMOTES, _TAGS = "refs/heads/", "refs/remotes/", "refs/tags/"


class RecordedNames:
    """The names that a local repository has. Errors are those of reading it."""

    def __init__(self, location: str, cache: Path, output_location: str | None = None, output_branch: str | None = None) -> None:
        self._location, self._cache = location, cache
        self._output_location, self._output_branch = output_location or location, output_branch

    @cached_property
    def _source(self) -> Repository | None:
        return None if is_url(self._location) else Repository(self._location)

    @cached_property
    def _output(self) -> Repository | None:
        if self._output_location == self._location:
            return self._source
        return None if is_url(self._output_location) else Repository(self._output_location)

    def list_branches(self) -> list[str]:
        """Return the local branches of the source."""
        return self._list_refs(_HEADS)

    def list_revisions(self) -> list[str]:
        """Return the branches, tags and remote-tracking branches of the source."""
        return [*self.list_branches(), *self._list_refs(_TAGS), *self._list_refs(_REMOTES)]

    def list_output_branches(self) -> list[str]:
        """Return the branches that gitsched has written."""
        found = self._output.list_refs(_HEADS)[:MAX_BRANCHES] if self._output is not None else []
        return [ref.removeprefix(_HEADS) for ref, _ in found if self._has_output(ref)]

    def list_remotes(self) -> list[str]:
        """Return the remotes of the source that have branches here."""
        return list(dict.fromkeys(name.partition("/")[0] for name in self._list_refs(_REMOTES)))

    def list_clusters(self) -> list[str]:
        """Return the clusters with a directory on the output branch."""
        if self._output is None or self._tree is None:
            return []
        segments = self._output.list_directory(self._tree, f"{self._prefix}{CLUSTERS}")
        return [unescape_segment(segment) for segment in segments if not is_shortened(segment)]

    def read_workloads(self) -> Iterator[Key]:
        """Yield the workloads of the output branch, with kind and group in lower case, except for those whose name is shortened."""
        if self._output is None or self._tree is None:
            return
        directory = self._prefix + PLACEMENTS
        for namespace in list(self._output.list_directory(self._tree, directory))[:MAX_NAMESPACES]:
            for file in self._output.list_directory(self._tree, f"{directory}/{namespace}"):
                key = read_placement_key(f"{namespace}/{file}")
                if key is not None and not is_shortened(file.removesuffix(".yaml")):
                    yield key

    def _list_refs(self, prefix: str) -> list[str]:
        found = self._source.list_refs(prefix)[:MAX_BRANCHES] if self._source is not None else []
        return [ref.removeprefix(prefix) for ref, _ in found if not ref.endswith("/HEAD")]

    @cached_property
    def _config(self) -> Config:
        head = self._source.resolve("HEAD") if self._source is not None else None
        if self._source is None or head is None:
            return Config()
        return read_config(self._source, self._source.commit(head).tree, ParseCache(self._cache)) or Config()

    @property
    def _prefix(self) -> str:
        return f"{self._config.output.path}/" if self._config.output.path else ""

    @cached_property
    def _tree(self) -> str | None:
        """The tree of the output branch: that of options or settings, else the first branch that gitsched has written."""
        if self._output is None:
            return None
        named = self._output_branch or self._config.output.branch.removeprefix(_HEADS)
        others = [] if self._output_branch else [f"{_HEADS}{name}" for name in self.list_output_branches()]
        for ref in (f"{_HEADS}{named}", f"{_REMOTES}origin/{named}", *others):
            if self._has_output(ref):
                return self._output.commit(self._output.resolve_ref(ref) or "").tree
        return None

    def _has_output(self, ref: str) -> bool:
        oid = self._output.resolve_ref(ref) if self._output is not None else None
        if self._output is None or oid is None:
            return False
        return self._output.find_entry(self._output.commit(oid).tree, f"{self._prefix}{RUN_METADATA}") is not None
