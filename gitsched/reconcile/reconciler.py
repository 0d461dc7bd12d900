"""Reconcile a source once, with retries, or any number of times."""

from __future__ import annotations

import logging
import random
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gitsched.apis.registered import Registered
from gitsched.git import SourceRepository, is_url
from gitsched.git.lost_objects import describe_loss
from gitsched.git.objects import LostObject
from gitsched.model.errors import Conflict
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.cache.caches import Caches, ParseCache
from gitsched.reconcile.pipeline import run
from gitsched.reconcile.run import OutputMoved, RunContext, RunResult, open_context
from gitsched.reconcile.run_settings import RunSettings
from gitsched.reconcile.source.source_locations import RuleLocations
from gitsched.reconcile.source_plan import MIN_SHARED_ROWS
from gitsched.render.output_files import METADATA_FILES

if TYPE_CHECKING:
    from gitsched.model.changes import UnplacedObject
    from gitsched.model.finding import Finding

_LIST_UNSELECTED = Registered("gitsched.reconcile.review.unplaced_objects", "list_unselected_workloads")
MAX_ATTEMPTS = 5
MAX_RESTORATIONS = 3
"""Damages of a local output branch that one run repairs, each of which it finds by an object or a ref that cannot be read."""
_log = logging.getLogger("gitsched.reconcile")


class Reconciler:
    """Reconcile one source any number of times, with caches between the runs. `settings` may change between two runs."""

    def __init__(self, settings: RunSettings) -> None:
        self._given, self._context = settings, open_context(settings)

    @property
    def settings(self) -> RunSettings:
        return self._context.settings

    @settings.setter
    def settings(self, settings: RunSettings) -> None:
        self._given, self._context = settings, self._context._replace(settings=settings)

    @property
    def context(self) -> RunContext:
        """The settings and caches of the next run."""
        return self._context

    @property
    def source(self) -> SourceRepository:
        return self._context.source

    def run(
        self,
        now: datetime,
        *,
        preview: bool = False,
        complete: bool = False,
        reads_record: bool = False,
        withholds: bool | None = None,
    ) -> RunResult:
        """See `gitsched.reconcile.pipeline.run`. The operator's settings are those that the file has now."""
        if self._given.operator_file is not None:
            from gitsched.reconcile.operator_settings import complete_settings  # many runs have no such file

            self._context = self._context._replace(settings=complete_settings(self._given, self.source))
        restored: list[Finding] = []
        while True:
            try:
                recorded = reads_record and not restored
                found = run(self._context, now, preview=preview, complete=complete, reads_record=recorded, withholds=withholds)
            except LostObject as error:
                from gitsched.reconcile.output.lost_output import restore_output

                if preview or len(restored) == MAX_RESTORATIONS:
                    raise describe_loss(error) from error
                restored.append(restore_output(self._context, error))
                self.drop_caches()
            else:
                if not restored:
                    return found
                return found._replace(plan=found.plan._replace(findings=(*restored, *found.plan.findings)), state_file=None)

    def close_files(self) -> None:
        """Close the packs of a local source, which git may have combined; libgit2 would keep them open. A fetch closes those of a clone."""
        if not is_url(self.settings.location):
            self.source.repository.close_files()

    def drop_caches(self) -> None:
        """Start the next run without what this process knows from earlier ones. Files of the cache stay: their content is verified."""
        cache = self.settings.cache
        self._context = self._context._replace(caches=Caches(cache, ParseCache(cache)))

    def watch_paths(self) -> list[Path]:
        """Return the files and directories that change when a ref moves, which a remote does not have, and the operator's settings."""
        paths = [self._given.operator_file] if self._given.operator_file is not None else []
        if not is_url(self.settings.location):
            common = Path(self.source.repository.common_dir)
            paths += [common / "refs" / "heads", common / "packed-refs", common / "HEAD"]
        return [path for path in paths if path.exists()]


def reconcile(settings: RunSettings) -> RunResult:
    """Run once. Raise Conflict when other processes moved the output branch during each of five attempts."""
    return run_with_retries(Reconciler(settings), settings)


def run_with_retries(reconciler: Reconciler, settings: RunSettings) -> RunResult:
    """Run; after a conflict, plan again on the moved output branch. A random pause lets competing processes drift apart."""
    first: OutputMoved | None = None
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            # A process that ends needs no plan to start the next one from.
            result = reconciler.run(settings.now, reads_record=True)
        except Conflict as conflict:
            if first is None and isinstance(conflict, OutputMoved):
                first = conflict
            if attempt == MAX_ATTEMPTS:
                raise
            _log.info("the output branch moved meanwhile (%s): planning again", conflict)
            time.sleep(random.uniform(0.05, 0.25) * attempt)  # noqa: S311 - jitter, not a secret
        else:
            return result if first is None else _describe_race(first, result)
    raise AssertionError("unreachable")


def _describe_race(first: OutputMoved, result: RunResult) -> RunResult:
    """Return the result of a run whose first attempt met another commit: where nothing was left to do, that commit is the result."""
    head = result.before
    if result.changed or head in (None, first.attempt.before):
        return result
    fetched = first.fetched
    differing = fetched.output.repository.changed_paths(first.attempt.tree, result.tree)
    if {path.removeprefix(fetched.prefix) for path in differing} <= METADATA_FILES:
        return first.attempt._replace(after=head, changed=True, race="same")
    return result._replace(before=first.attempt.before, after=head, changed=True, race="different")


def preview(settings: RunSettings, *, complete: bool = False) -> RunResult:
    """Return what `reconcile` would do. Nothing is written to the repository.

    With `complete`, the result has the decisions, too.
    """
    return Reconciler(settings).run(settings.now, preview=True, complete=complete)


class ValidatedSource(NamedTuple):
    """Every finding about a source: about its files, its documents, and their references to each other; and how many objects no policy
    selects. `unselected` are those of them with pods; none of a source with many objects that was reconciled before."""

    findings: tuple[Finding, ...]
    unclaimed: int
    unselected: tuple[UnplacedObject, ...] = ()


def validate_source(settings: RunSettings) -> ValidatedSource:
    """Check the source: find what a run would, which leaves out what the guard withholds."""
    reconciler = Reconciler(settings._replace(observations="recorded", findings_only=True))
    plan = reconciler.run(settings.now, preview=True, withholds=True).plan
    if not plan.unclaimed:
        return ValidatedSource(plan.findings, 0)
    if not plan.complete and plan.totals.overview.workload_count + plan.unclaimed < MIN_SHARED_ROWS:
        plan = reconciler.run(settings.now, preview=True, complete=True, withholds=True).plan
    unselected = _LIST_UNSELECTED(plan.decisions, RuleLocations(reconciler.source.repository)) if plan.complete else ()
    return ValidatedSource(plan.findings, plan.unclaimed, unselected)
