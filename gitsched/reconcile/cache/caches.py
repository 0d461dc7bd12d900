"""All caches of one process, and the types of those that exist in memory only. The package docstring lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from gitsched.decide.catalog import RawDocument
from gitsched.decide.plan import InMemoryCaches, Plan, SourceTree
from gitsched.manifests.parsed_file import NOT_YAML, ParsedFile
from gitsched.model.document import Body
from gitsched.model.finding import Finding
from gitsched.model.observation import Observations
from gitsched.reconcile.cache.parse_cache import ParseCache
from gitsched.reconcile.cache.plan_cache import PlanCache

MAX_OLD_VERSIONS = 1_000
"""Parsed files that are kept in memory beyond twice those of the last complete plan."""


class SourceFile(NamedTuple):
    """One file of a source tree. `findings` are about its content."""

    blob: str
    file: ParsedFile
    documents: tuple[RawDocument, ...]
    findings: tuple[Finding, ...]

    @property
    def broken(self) -> bool:
        """Whether a document of the file cannot be used."""
        return self.file.unreadable or any(parsed.broken for parsed in self.file.documents)

    @property
    def independent(self) -> bool:
        """Whether the file is valid, and depends neither on other files nor on an earlier version of itself."""
        return not (self.broken or self.file.kustomize_inputs or self.file.reason == NOT_YAML)


class TreeCache(NamedTuple):
    """The last source tree: its files by path and its content. It is `valid` where neither a file nor gitsched.yaml is broken."""

    tree: str
    files: Mapping[str, SourceFile]
    source_tree: SourceTree
    valid: bool


class LastWritten(NamedTuple):
    """The last complete plan that this process committed, and its output tree."""

    output_tree: str
    plan: Plan


@dataclass(slots=True)
class Caches:
    """All caches of one process. `plan_size` is the number of parsed files that the last complete plan needed."""

    directory: Path
    files: ParseCache
    record_bodies: dict[str, Body] = field(default_factory=dict)
    tree: TreeCache | None = None
    decisions: InMemoryCaches = field(default_factory=InMemoryCaches)
    plan: PlanCache | None = None
    last_written: LastWritten | None = None
    metric_values: Observations = field(default_factory=Observations)
    plan_size: int = 0

    def take_plan(self, key: str) -> PlanCache | None:
        """Return the plan cache of this key, from memory or from disk; None if there is none.

        It is removed from here, because an incremental plan changes it. The run puts it back once the plan is published.
        """
        cache, self.plan = self.plan, None
        return cache if cache is not None and cache.header.cache_key == key else PlanCache.open(self.get_plan_path(key), key)

    def get_plan_path(self, key: str) -> Path:
        """Return the file of the plan cache."""
        return self.directory / f"plan-{key[:32]}.sqlite3"

    def save(self) -> None:
        """Write new entries to disk, and discard old versions of files from memory."""
        self.files.save()
        if self.plan is not None:
            self.plan.save()
        if len(self.files) > 2 * self.plan_size + MAX_OLD_VERSIONS:
            self.files.clear()
            self.record_bodies.clear()
