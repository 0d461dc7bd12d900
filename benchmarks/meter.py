"""Measure the time and memory of each stage of a reconcile, by timing calls in the running program."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from time import perf_counter
from typing import Any, NamedTuple

STAGES = ("list", "cache", "parse", "validate", "schedule", "render", "commit", "other")
"""In the order of a run. `list` includes reading blobs, `cache` is the cache on disk, `schedule` includes the catalog of identities;
`other` is everything between the timed calls."""

POINTS = (
    ("list", "gitsched.git.repository", "Repository.entries"),
    ("list", "gitsched.git.repository", "Repository.blob"),
    ("list", "gitsched.git.repository", "Repository.blob_size"),
    ("cache", "gitsched.reconcile.cache.caches", "ParseCache.load"),
    ("cache", "gitsched.reconcile.cache.caches", "ParseCache.save"),
    ("cache", "gitsched.reconcile.cache.plan_cache", "PlanCache.open"),
    ("cache", "gitsched.reconcile.cache.plan_cache", "PlanCache._select_row"),
    ("cache", "gitsched.reconcile.cache.plan_cache", "PlanCache.save"),
    ("list", "gitsched.reconcile.incremental.source_diff", "read_source_diff"),
    ("parse", "gitsched.manifests.parser", "parse_file"),
    ("parse", "gitsched.manifests.record_parser", "RecordParser.parse"),
    ("validate", "gitsched.decide.validation", "validate_source_document"),
    ("schedule", "gitsched.decide.plan", "decide"),
    ("schedule", "gitsched.decide.incremental.affected_workloads", "decide_workload"),
    ("render", "gitsched.decide.incremental.affected_workloads", "render_workload"),
    ("render", "gitsched.decide.incremental.changed_output", "complete_directory"),
    ("render", "gitsched.decide.plan", "render"),
    ("render", "gitsched.reconcile.output.output_commit", "render_metadata_files"),
    ("commit", "gitsched.git.repository", "Repository.write_tree"),
    ("commit", "gitsched.git.repository", "Repository.commit_tree"),
    ("commit", "gitsched.git.output", "OutputRepository.publish"),
)
"""Stage, module and name of every timed call. A missing name is an error, so that no stage is empty by mistake."""

SPLIT = {
    ("parse", "validate"),
    ("list", "parse"),
    ("list", "cache"),
    ("schedule", "parse"),
    ("schedule", "list"),
    ("schedule", "cache"),
}
"""Outer and inner stages that are counted separately; any other call inside a stage counts for that stage."""

_INTERVAL = 0.01
_WORTH_A_LOOK = 0.002
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Stage(NamedTuple):
    """Wall time in seconds without inner stages, the highest resident memory in bytes, and the number of calls."""

    seconds: float = 0.0
    peak: int = 0
    calls: int = 0


class Meter:
    """Times the calls during a `run`. Memory is sampled a hundred times a second and after each longer call."""

    def __init__(self) -> None:
        self._reset()

    def install(self) -> None:
        """Wrap every timed function of this process, once."""
        for stage, module, name in POINTS:
            owner: Any = import_module(module)
            *path, last = name.split(".")
            for part in path:
                owner = getattr(owner, part)
            setattr(owner, last, self._wrap(stage, getattr(owner, last)))

    @contextmanager
    def run(self) -> Iterator[dict[str, Stage]]:
        """Measure the block; the yielded mapping is filled at its end."""
        self._reset()
        result: dict[str, Stage] = {}
        done = threading.Event()
        sampler = threading.Thread(target=self._sample, args=(done,), daemon=True)
        sampler.start()
        try:
            yield result
        finally:
            self._enter("other")
            done.set()
            sampler.join()
            self._look("other")
            result.update({stage: Stage(self._seconds[stage], self._peak[stage], self._calls[stage]) for stage in STAGES})

    def _reset(self) -> None:
        self._seconds: dict[str, float] = dict.fromkeys(STAGES, 0.0)
        self._peak: dict[str, int] = dict.fromkeys(STAGES, 0)
        self._calls: dict[str, int] = dict.fromkeys(STAGES, 0)
        self._stage, self._since = "other", perf_counter()

    def _wrap(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*positional: Any, **named: Any) -> Any:
            outer = self._stage
            if outer != "other" and (outer, stage) not in SPLIT:
                return function(*positional, **named)
            self._calls[stage] += 1
            self._enter(stage)
            try:
                return function(*positional, **named)
            finally:
                if perf_counter() - self._since > _WORTH_A_LOOK:
                    self._look(stage)
                self._enter(outer)

        return timed

    def _enter(self, stage: str) -> None:
        now = perf_counter()
        self._seconds[self._stage] += now - self._since
        self._stage, self._since = stage, now

    def _sample(self, done: threading.Event) -> None:
        while not done.wait(_INTERVAL):
            self._look(self._stage)

    def _look(self, stage: str) -> None:
        self._peak[stage] = max(self._peak[stage], resident())


def resident() -> int:
    """Return the resident memory of this process in bytes; 0 where the system has no /proc."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - a hundred times a second
            return int(file.read().split()[1]) * _PAGE
    except OSError:
        return 0
