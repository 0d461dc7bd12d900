"""Commits of other repositories with bases of kustomizations: read them from the cache, and fetch those that a run may fetch."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gitsched.build.commit_files import list_directories
from gitsched.build.remote_base import RemoteBase, RemotePolicy, RemoteTree, is_allowed
from gitsched.git import Repository
from gitsched.git.private_clone import PrivateClone
from gitsched.git.remote_refs import fetch
from gitsched.model.allow_list import OPERATOR_FILE, allows_remote
from gitsched.model.errors import GitschedError

MAX_FETCHED = 500
"""Commits of other repositories that one run fetches."""
_PARALLEL_FETCHES = 8


class RemoteBases:
    """The commits of other repositories that one run reads. `directory` is the cache; clones in it are shared by all sources."""

    def __init__(self, directory: Path, policy: RemotePolicy) -> None:
        self._directory, self._policy = directory, policy
        self._trees: dict[tuple[str, str], RemoteTree | str] = {}  # by URL and commit: another URL of a repository may fail
        self._clones: dict[str, PrivateClone] = {}
        self._owners: dict[str, Repository] = {}
        self._wanted: dict[tuple[str, str], RemoteBase] = {}
        self._fetched = 0

    def open(self, base: RemoteBase) -> RemoteTree | str:
        """Return the files of a commit, or why they cannot be read. One that may be fetched is fetched by the next `fetch_wanted`."""
        key = base.url, base.oid
        known = self._trees.get(key)
        if known is None:
            known = self._trees[key] = self._read(base)
        return known

    def _read(self, base: RemoteBase) -> RemoteTree | str:
        policy = self._policy
        if not is_allowed(base, policy.own):
            return f"source.kustomize.remotes does not allow {base.name}: add it there, or copy the base into this repository"
        if not is_allowed(base, policy.trusted):
            return (
                f"source.kustomize.remotes of the source commit of the output branch, or of the base of the comparison, does not allow "
                f"{base.name}: it is read once a maintainer has merged that setting"
            )
        try:
            clone = self._open_clone(base.url)
            if clone.path.exists() and clone.repository.has(base.oid):
                return self._list(base, clone.repository)
        except GitschedError as error:
            return str(error)
        if not policy.connect:
            return (
                f"commit {base.oid[:12]} of {base.name} is not in the cache, and this run fetches nothing: `gitsched reconcile` or "
                "`gitsched plan --observations live` fetches it"
            )
        if not allows_remote(policy.fetchable, base.name):
            return (
                f"commit {base.oid[:12]} of {base.name} is not in the cache, and the operator does not allow fetching it; to allow it: "
                f"--allow-remote {base.name}, or {base.name} in allow.hosts.remotes of {OPERATOR_FILE}"
            )
        if self._fetched + len(self._wanted) >= MAX_FETCHED:
            return f"more than {MAX_FETCHED} commits of other repositories are not in the cache: run the command once more"
        self._wanted[base.url, base.oid] = base
        return f"commit {base.oid[:12]} of {base.name} is not in the cache"

    def _open_clone(self, url: str) -> PrivateClone:
        if url not in self._clones:
            self._clones[url] = PrivateClone(url, self._directory)
        return self._clones[url]

    def _list(self, base: RemoteBase, repository: Repository) -> RemoteTree:
        listed = repository.entries(repository.commit(base.oid).tree)
        entries = {f"{base.prefix}/{entry.path}": (entry.blob, entry.mode) for entry in listed if not entry.unsafe}
        self._owners |= dict.fromkeys((blob for blob, _ in entries.values()), repository)
        return RemoteTree(entries, frozenset(list_directories(entries)))

    def fetch_wanted(self) -> bool:
        """Fetch the commits that were opened and are not in the cache, several at a time. Return whether there were any."""
        wanted, self._wanted = self._wanted, {}
        by_url: dict[str, list[RemoteBase]] = {}
        for base in wanted.values():
            by_url.setdefault(base.url, []).append(base)
        if not by_url:
            return False
        self._fetched += len(wanted)
        with ThreadPoolExecutor(min(len(by_url), _PARALLEL_FETCHES)) as pool:
            for found in pool.map(self._fetch, by_url, by_url.values()):
                self._trees.update(found)
        return True

    def _fetch(self, url: str, bases: list[RemoteBase]) -> Mapping[tuple[str, str], RemoteTree | str]:
        """Fetch commits of one repository, each without its history."""
        clone, found = self._clones[url], dict[tuple[str, str], RemoteTree | str]()
        for base in bases:
            try:
                clone.refresh(lambda repository, oid=base.oid: fetch(repository, url, [oid], depth=1))  # type: ignore[misc]
                clone.repository.set_ref(f"refs/gitsched/{base.oid}", base.oid)  # git deletes commits without a ref some day
                found[url, base.oid] = self._list(base, clone.repository)
            except GitschedError as error:
                found[url, base.oid] = str(error)
        return found

    def find_owner(self, blob: str) -> Repository | None:
        """Return the repository of a blob of an opened commit."""
        return self._owners.get(blob)
