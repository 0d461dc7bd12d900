"""Apply the records of an output commit to a cluster: read the branch, compare with the cluster, patch what differs."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol, TypeVar

from gitsched.apis.live_apply import LiveApply
from gitsched.git import Repository, SourceRepository
from gitsched.kubectl.client import MissingObject
from gitsched.manifests.parser import parse_file
from gitsched.model.document import Body, Key, get_field, is_namespaced, parse_api_group
from gitsched.model.errors import GitschedError, Permanent, Temporary
from gitsched.model.merge_patch import ApplicablePatches, ApplyReport, ApplyResult, ApplyState, MergePatch, RefusedRecord
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.fetch import read_run_record
from gitsched.reconcile.source.unread_entries import read_regular_file
from gitsched.render.format_versions import upgrade_record
from gitsched.render.output_files import RUN_METADATA, STATUS, status_path, strip_record

MAX_RECORDS = 20_000
"""Maximum number of records that one run reads."""
MAX_RECORD_SIZE = 8 * 1024 * 1024
"""Maximum size of one record in bytes."""
MAX_ATTEMPTS = 3
"""Attempts for each request after temporary errors."""
MAX_CONSECUTIVE_FAILURES = 3
"""Requests in a row that fail temporarily, each after all attempts, before the API server counts as unreachable."""
_log = logging.getLogger("gitsched.apply")
T = TypeVar("T")
_UNKNOWN = Key("", "", "", "")
"""The object of a file that is not read."""


class ObjectStore(Protocol):
    """The objects of a cluster: `gitsched.kubectl.client.KubectlClient`."""

    def read(self, targets: Iterable[tuple[str, Key]]) -> Iterator[tuple[list[Key], dict[Key, Body] | GitschedError]]: ...

    def patch(self, patch: MergePatch, *, dry_run: bool = False) -> None: ...


class LiveRecords(NamedTuple):
    """The records of one output commit, and those whose file is broken or at the wrong path."""

    commit: str
    records: tuple[tuple[Key, Body], ...]
    refused: tuple[RefusedRecord, ...]


def read_live_records(source: SourceRepository, branch: str, prefix: str, groups: frozenset[str]) -> LiveRecords:
    """Return the records of the head of an output branch, in these API groups ("*." stands for all subdomains).

    Raise Permanent if the branch does not exist or is no output branch, or if it has too many records.
    """
    source.fetch(branch)
    repository, commit = source.repository, source.resolve_branch(branch)
    tree = repository.commit(commit).tree
    metadata = read_run_record(repository, tree, prefix)
    if metadata is None:
        raise Permanent(f"the branch {branch!r} has no {prefix}{RUN_METADATA}: it is not an output branch of gitsched")
    records: list[tuple[Key, Body]] = []
    refused: list[RefusedRecord] = []
    for directory in _list_group_directories(repository, tree, prefix, groups):
        for entry in repository.entries(tree, directory):
            if len(records) + len(refused) >= MAX_RECORDS:
                raise Permanent(
                    f"the branch {branch!r} has more than {MAX_RECORDS} records: use one output branch for each cluster"
                )
            path = entry.path.removeprefix(prefix)
            data = read_regular_file(repository, (entry.blob, entry.mode), MAX_RECORD_SIZE)
            if data is None:
                refused.append(RefusedRecord(_UNKNOWN, f"{path} is no file of at most {MAX_RECORD_SIZE} bytes"))
                continue
            key, body = _read_record(data)
            if status_path(key) != path:
                refused.append(RefusedRecord(key, f"{path} does not contain the record that its path names"))
            else:
                records.append((key, upgrade_record(key.group, key.kind, body, metadata.format_version)))
    return LiveRecords(commit, tuple(records), tuple(refused))


def _list_group_directories(repository: Repository, tree: str, prefix: str, groups: frozenset[str]) -> list[str]:
    root = f"{prefix}{STATUS}"
    suffixes = tuple(group[1:] for group in groups if group.startswith("*."))
    names = (name for name in repository.list_directory(tree, root) if name in groups or (suffixes and name.endswith(suffixes)))
    return [f"{root}/{name}" for name in sorted(names)]


def _read_record(data: bytes) -> tuple[Key, Body]:
    documents = parse_file(data, path="status.yaml", validate=None).documents
    body = strip_record(documents[0].body) if len(documents) == 1 else {}
    group, kind = parse_api_group(str(body.get("apiVersion") or "")), str(body.get("kind") or "")
    namespace, name = str(get_field(body, "metadata", "namespace") or ""), str(get_field(body, "metadata", "name") or "")
    return Key(group, kind, namespace if is_namespaced(group, kind) is not False else "", name), body


class LiveApplier:
    """Applies the records of an output branch to one cluster, any number of times.

    `pause` waits before a request is repeated. It remembers what it applied, to notice another writer of the same values.
    """

    def __init__(self, store: ObjectStore, *, scale: bool = False, pause: Callable[[float], None] = time.sleep) -> None:
        self._store, self._scale, self._pause = store, scale, pause
        self._applied: dict[Key, object] = {}

    def apply(self, records: LiveRecords, patches: ApplicablePatches, *, dry_run: bool = False) -> ApplyReport:
        """Patch what differs: more replicas first, then the placements, then fewer replicas.

        Fewer replicas wait if anything could not be applied, because the sources must leave a pod before it goes. Raise Temporary or
        Permanent if nothing can be read.
        """
        replicas = patches.replicas if self._scale else ()
        live, errors = self._read_all([*patches.updates, *replicas])
        growing = [p for p in replicas if p.target not in live or _read_number(p, live) <= p.value]
        results = self._apply_all(growing, live, errors, dry_run)
        results += self._apply_all(patches.updates, live, errors, dry_run)
        shrinking = [patch for patch in replicas if patch not in growing]
        refused = (*records.refused, *patches.refused)
        if refused or any(result.state in ("failed", "temporary") for result in results):
            results += [ApplyResult(p, "waiting", "not all placements are applied") for p in shrinking]
        else:
            results += self._apply_all(shrinking, live, errors, dry_run)
        return ApplyReport(records.commit, dry_run, tuple(results), refused)

    def _read_all(self, patches: Iterable[MergePatch]) -> tuple[dict[Key, Body], dict[Key, GitschedError]]:
        live: dict[Key, Body] = {}
        errors: dict[Key, GitschedError] = {}
        targets = [(patch.api_version, patch.target) for patch in patches]
        for attempt in range(1, MAX_ATTEMPTS + 1):
            answered: set[Key] = set()
            failures = 0
            for keys, found in self._store.read(targets):
                if isinstance(found, GitschedError):
                    errors |= dict.fromkeys(keys, found)
                    answered |= set() if isinstance(found, Temporary) else set(keys)
                    failures = failures + 1 if isinstance(found, Temporary) else 0
                    if failures == MAX_CONSECUTIVE_FAILURES:
                        if attempt == MAX_ATTEMPTS:
                            raise found
                        break
                else:
                    failures = 0
                    live |= found
                    answered |= set(keys)
                    for key in keys:
                        errors.pop(key, None)
            targets = [target for target in targets if target[1] not in answered]
            if not targets:
                break
            if attempt < MAX_ATTEMPTS:
                self._wait(attempt)
        if errors and not live and len(errors) == len({patch.target for patch in patches}):
            raise next(iter(errors.values()))
        return live, errors

    def _apply_all(
        self, patches: Iterable[MergePatch], live: Mapping[Key, Body], errors: Mapping[Key, GitschedError], dry_run: bool
    ) -> list[ApplyResult]:
        results: list[ApplyResult] = []
        for patch in patches:
            last = results[-MAX_CONSECUTIVE_FAILURES:]
            if len(last) == MAX_CONSECUTIVE_FAILURES and all(result.state == "temporary" for result in last):
                results.append(ApplyResult(patch, "temporary", "not tried: the API server does not answer"))
            else:
                results.append(self._apply_one(patch, live.get(patch.target), errors.get(patch.target), dry_run))
        return results

    def _apply_one(self, patch: MergePatch, live: Body | None, error: GitschedError | None, dry_run: bool) -> ApplyResult:
        if error is not None:
            return ApplyResult(patch, _classify(error), str(error))
        if live is None:
            return ApplyResult(patch, "missing")
        if not patch.is_needed(live):
            self._applied[patch.target] = patch.value
            return ApplyResult(patch, "unchanged")
        contended = self._applied.get(patch.target) == patch.value
        try:
            self._retry(lambda: self._store.patch(patch, dry_run=dry_run))
        except MissingObject:
            return ApplyResult(patch, "missing")
        except GitschedError as failure:
            return ApplyResult(patch, _classify(failure), str(failure))
        if not dry_run:
            self._applied[patch.target] = patch.value
        return ApplyResult(patch, "patched", contended=contended)

    def _retry(self, request: Callable[[], T]) -> T:
        for attempt in range(1, MAX_ATTEMPTS):
            try:
                return request()
            except Temporary as error:
                _log.info("%s; trying again", error)
                self._wait(attempt)
        return request()

    def _wait(self, attempt: int) -> None:
        self._pause(attempt * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret


class ApplyOptions(NamedTuple):
    """The output branch, the directory of the output in it ("" or "path/"), the cluster, and additional API groups of sources."""

    branch: str
    prefix: str = ""
    cluster: str = ""
    groups: frozenset[str] = frozenset()


def apply_branch(
    source: SourceRepository, applier: LiveApplier, api: LiveApply, options: ApplyOptions, *, dry_run: bool = False
) -> ApplyReport:
    """Read the head of the output branch and apply it."""
    records = read_live_records(source, options.branch, options.prefix, api.record_groups | options.groups)
    return applier.apply(records, api.list_patches(records.records, options.cluster, options.groups), dry_run=dry_run)


def _classify(error: GitschedError) -> ApplyState:
    return "temporary" if isinstance(error, Temporary) else "failed"


def _read_number(patch: MergePatch, live: Mapping[Key, Body]) -> int:
    current = get_field(live[patch.target], *patch.path)
    return current if type(current) is int else 1
