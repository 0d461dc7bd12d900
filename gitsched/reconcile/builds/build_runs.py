"""Find the programs that build directories, and run several builds at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from gitsched.build.builder import Builder, find_builder
from gitsched.build.helm import find_helm
from gitsched.build.process import BuildLimits, choose_limits
from gitsched.model.errors import Permanent
from gitsched.reconcile.cache.build_cache import BuildCache
from gitsched.render.run_metadata import BuildRecord

T = TypeVar("T")
R = TypeVar("R")

_VERSIONS = "versions"
"""The key of the versions of executables in the build cache; the other keys are digests."""


def find_program(cache: BuildCache, find: Callable[[MutableMapping[str, str]], Builder]) -> Builder:
    """Return the program that `find` finds, given the versions of executables that earlier runs have read. Raises Permanent if there is
    none."""
    cache.load([_VERSIONS])
    known = cache.get(_VERSIONS)
    versions: dict[str, str] = dict(known) if isinstance(known, dict) else {}
    program = find(versions)
    if versions != known:
        cache.put(_VERSIONS, versions)
    return program


def has_programs(record: BuildRecord, cache: BuildCache) -> bool:
    """Return whether this machine has the programs that built the objects of the last run."""
    try:
        if record.builder and find_program(cache, find_builder).version != record.builder:
            return False
        return not record.helm or find_program(cache, find_helm).version == record.helm
    except Permanent:
        return False


def run_builds(
    missing: Mapping[str, T], build: Callable[[T, BuildLimits], R], is_expired: Callable[[R], bool], cache: BuildCache
) -> dict[str, R]:
    """Build what the cache does not have, several at a time, and return the results by key.

    A build that is expired shortens the limits of those that start after it.
    """
    if not missing:
        return {}

    def run(key: str) -> R:
        result = build(missing[key], choose_limits(len(cache.expired)))
        if is_expired(result):
            cache.expired.append(key)
        return result

    with ThreadPoolExecutor(min(len(missing), max(2, os.cpu_count() or 2))) as pool:
        return dict(zip(missing, pool.map(run, missing), strict=True))
