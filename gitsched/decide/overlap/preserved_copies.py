"""Keep workloads in clusters that lose them, where their policy says so: because their template or policy is deleted, or, if the settings
choose it, because they move.

The file of such a workload stays on the output branch for `output.retireAfter`, with the annotations that keep Flux and Argo CD from
deleting the object, so that every delivery tool has applied them before the file leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from gitsched.decide.overlap.copy_findings import make_encrypted_finding, make_left_finding
from gitsched.model.changes import CopyRetention, RetainedCopy
from gitsched.model.document import is_encrypted
from gitsched.model.time import add_duration, choose_start
from gitsched.named_tuples import NamedTuple
from gitsched.render.cluster_directory import add_prune_options
from gitsched.render.output_files import write_manifest

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.apis.policy_api import Preservation
    from gitsched.decide.overlap.delivered_copies import DeliveredCopies
    from gitsched.decide.overlap.retention_input import RetentionInput
    from gitsched.decide.removals import RemovedPlacement
    from gitsched.model.document import Body, Key
    from gitsched.model.finding import Finding
    from gitsched.model.planned_files import PlannedFile
    from gitsched.model.scheduling import Outcome


class LeftCopies(NamedTuple):
    """The copies of a workload in clusters that it leaves, which its policy preserves. They are `preserved` if the setting of its API says
    so; None if it is not set."""

    key: Key
    copies: tuple[RetainedCopy, ...]
    preservation: Preservation
    preserved: bool | None


def preserve_copies(given: RetentionInput) -> CopyRetention:
    """Return the preserved copies of a plan: those known from earlier runs whose time is not over, those of removed workloads, and those
    in clusters that workloads leave.

    A workload that is placed in a cluster again is no copy there any more.
    """
    known = {(copy.workload, copy.cluster): copy for copy in given.retained if copy.preserved}
    left = list(_list_left(given.leaving, given.delivered, given.config))
    found = {**_begin(left, given), **{key: _update_end(copy, given) for key, copy in known.items()}}
    placed = {key for key in found if _is_placed(key, given)}
    over = {key for key, copy in found.items() if key not in placed and copy.until is not None and copy.until <= given.times.now}
    copies = tuple(found[key] for key in sorted(found.keys() - placed - over))
    ended = tuple(found[key] for key in sorted(over))
    return CopyRetention(copies, ended, tuple(_find_news(given, left, copies)), found == known and not (placed or over))


def _begin(left: Iterable[LeftCopies], given: RetentionInput) -> dict[tuple[Key, str], RetainedCopy]:
    """Return the copies that are preserved from this run on."""
    kept = (copy for one in left if one.preserved for copy in one.copies)
    duration = given.config.output.retire_after
    start = choose_start(given.times.source_time, given.times.now, duration)
    found = {}
    for copy in (*_list_removed(given.removed.values(), given.delivered), *kept):
        end = None if _has_fixed_content(copy, given.delivered.read_manifest) else add_duration(start, duration)
        found[copy.workload, copy.cluster] = copy._replace(start=start, until=end, follows=None, preserved=True)
    return found


def _is_placed(key: tuple[Key, str], given: RetentionInput) -> bool:
    outcome = given.find_outcome(key[0])
    return outcome is not None and key[1] in outcome.replicas_by_cluster


def _update_end(copy: RetainedCopy, given: RetentionInput) -> RetainedCopy:
    """Return a known copy with the end that the report of its cluster makes: at once if it has applied the files, later if not."""
    applied = given.find_application(copy) if copy.until is not None else None
    if applied is None or copy.until is None or copy.start is None:
        return copy
    now, duration = given.times.now, given.config.output.retire_after
    if applied.applied:
        return copy._replace(until=min(copy.until, max(copy.start, min(applied.since, now))))
    if copy.until > now or not duration:
        return copy
    return copy._replace(until=add_duration(copy.until, duration * ((now - copy.until) // duration + 1)))


def _list_left(leaving: Iterable[Outcome], delivered: DeliveredCopies, config: Config) -> Iterator[LeftCopies]:
    """Yield what workloads that leave clusters have there, where their last record says that it is kept."""
    for outcome in leaving:
        workload = delivered.read_previous(outcome)
        if workload is None or workload.preservation is None:
            continue
        left = {one.cluster: one.replicas for one in outcome.previous_targets if not one.waits}
        left = {cluster: left[cluster] for cluster in sorted(left.keys() - outcome.clusters)}
        copies = tuple(delivered.list_removed(workload._replace(replicas=left), {}, outcome.key, runs_once=True))
        if copies:
            yield LeftCopies(outcome.key, copies, workload.preservation, workload.preservation.choose(config))


def _list_removed(removed: Iterable[RemovedPlacement], delivered: DeliveredCopies) -> Iterator[RetainedCopy]:
    for workload, _, _, owner in removed:
        if workload.preservation is not None and owner is None:
            yield from delivered.list_removed(workload, {}, workload.key, runs_once=True)


def _find_news(given: RetentionInput, left: Iterable[LeftCopies], copies: Iterable[RetainedCopy]) -> Iterator[Finding]:
    """Report what leaves clusters although its policy says that it is kept, without a setting that says whether moves count; and what
    stays on the output branch because it cannot be annotated."""
    for key, lost, preservation, preserved in left:
        if preserved is None:
            yield make_left_finding(key, given.templates[key], lost, preservation)
    sealed: dict[Key, list[RetainedCopy]] = {}
    for copy in copies:
        if copy.until is None:
            sealed.setdefault(copy.workload, []).append(copy)
    yield from (make_encrypted_finding(key, found) for key, found in sealed.items())


def _has_fixed_content(copy: RetainedCopy, read_manifest: Callable[[str], Body | None]) -> bool:
    """Return whether a manifest of a copy lacks the annotations and cannot get them: SOPS authenticates all of its values."""
    bodies = (body for path in copy.paths if (body := read_manifest(path)) is not None)
    return any(is_encrypted(body) and add_prune_options(body) is not body for body in bodies)


def annotate_preserved(copy: RetainedCopy, read_manifest: Callable[[str], Body | None]) -> dict[str, PlannedFile]:
    """Return the manifests of a preserved copy by path that do not have the annotations yet, and can get them."""
    bodies = ((path, body) for path in copy.paths if (body := read_manifest(path)) is not None and not is_encrypted(body))
    changed = ((path, body, add_prune_options(body)) for path, body in bodies)
    return {path: write_manifest(new) for path, body, new in changed if new is not body}
