"""Whether anything is wrong with a fleet, as the first lines of its status: one sentence, and then what is wrong with what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from gitsched.model.finding import UNSCHEDULABLE, format_count, format_names, format_part, join_all
from gitsched.model.fleet_status import Freeze
from gitsched.model.mistakes import RESCHEDULE_DISPLACED
from gitsched.model.scheduling import total_replicas
from gitsched.model.time import format_age, format_time
from gitsched.report.alike_findings import mask_numbers
from gitsched.report.explained_rollouts import describe_rollouts_with_history
from gitsched.report.held import describe_held, describe_target
from gitsched.report.history import describe_source
from gitsched.report.lines import (
    abbreviate_oid,
    format_clusters,
    format_key,
    format_words,
    list_limited,
    sort_moves,
    wrap_indented,
    wrap_lines,
)
from gitsched.report.recent_runs import describe_recent_runs, describe_requests
from gitsched.report.retained_copies import AWAITED, describe_retained_copies
from gitsched.report.summary import describe_newer_source, describe_withheld

if TYPE_CHECKING:
    from datetime import datetime

    from gitsched.model.changes import Move, RetainedCopy
    from gitsched.model.document import Key
    from gitsched.model.fleet_status import ClusterStatus, DueRun, FleetStatus, HandEdit, WorkloadStatus
    from gitsched.report.paint import Paint, Role

_LACKS_CAPACITY: Final = "are not enough to schedule."
ERRORS_SHOWN = 3
HELD_SHOWN = 5
WITHHELD_SHOWN = 5
WORKLOADS_SHOWN = 3
EDITS_SHOWN, FILES_SHOWN = 3, 3
ROLLOUTS_SHOWN = 3
STAYING_SHOWN, WARNINGS_SHOWN = 10, 4
"""The numbers of errors, of held workloads, of withheld and of other ones, of commits by hand and of files of each, of rollouts that
are listed, of workloads that stay in a cluster, and of codes of warnings; the others are counted, or listed further down."""

UNPUSHED: Final = "runs elsewhere, as in CI, see this only when it is on origin: {}"
"""What a freeze, or its end, that only a clone has does not reach, with the command that pushes it."""


def describe_problems(status: FleetStatus, width: int, paint: Paint | None = None) -> list[str]:
    """Return a line that says whether anything is wrong, and then what is wrong."""
    if status.source.newer:
        commit = status.source.newer
        newer = (
            f"{describe_newer_source(commit, status.source.newer_branch)}. This is the status with commit {abbreviate_oid(commit)}."
        )
        others = describe_problems(status._replace(source=status.source._replace(newer="")), width, paint)
        return [*_paint_first(newer, width, "changed", paint), *others]
    problems = [*status.list_problems()]
    recent = [
        *_list_warnings(status),
        *_list_full(status),
        *_list_allowed(status),
        *describe_recent_runs(status.recent, status.now),
        *_list_followed_edits(status),
    ]
    if status.lacks_history:
        recent.append(
            f"What the runs of the last three days took is not known, because this clone lacks the history of {status.branch}: "
            f"{status.lacks_history}"
        )
    if not problems:
        return [*_paint_first(_describe_sound(status), width, "added", paint), *wrap_lines(recent, width)]
    first = f"Needs attention: {', '.join(problems)}."
    lines = [status.unfetched] if status.time is None and status.unfetched else []
    if status.diverges:
        both = f"{status.branch}...origin/{status.branch}"
        lines.append(
            f"git log --left-right {both} shows the commits that only one has; git branch -f {status.branch} origin/{status.branch} "
            "keeps those of origin."
        )
    lines += [*_list_freezes(status), *_list_waiting(status), *map(str, status.source.missing_facts)]
    more = "and {} more of this kind; gitsched validate lists them"
    lines += list_limited([str(finding) for finding in status.source.mistakes], ERRORS_SHOWN, more)
    lines += list_limited([f"Not committed: {one}." for one in status.source.uncommitted], ERRORS_SHOWN, "and {} more of this kind")
    lines += [*_list_edits(status), *_list_stale(status)]
    lines += [f"{text[0].upper()}{text[1:]}" for text in status.source.removed_clusters if text]
    lines += _list_withheld(status) if status.withheld.moves else []
    lines += _list_renamed(status)
    lines += _list_unplaced(status) if status.time is not None else []
    lines += [*_list_short(status), *_list_unscheduled(status), *describe_retained_copies(status.evicted_copies, WORKLOADS_SHOWN)]
    lines += _list_unready(status)
    wrong = status.wrong_rollouts[:ROLLOUTS_SHOWN]
    lines += describe_rollouts_with_history(wrong, status.rollout_histories, status.now, status.workloads)
    lines += describe_held(status.held, HELD_SHOWN)
    lines += list_limited(
        [str(finding) for finding in status.errors], ERRORS_SHOWN, "and {} more errors; gitsched validate lists them"
    )
    lines += list_limited(
        [str(finding) for finding in status.other_impaired if finding.code != UNSCHEDULABLE],
        ERRORS_SHOWN,
        "and {} more; gitsched validate lists them",
    )
    lines += list_limited([str(finding) for finding in status.shortages], ERRORS_SHOWN, "and {} more clusters that lack capacity")
    return [*_paint_first(first, width, "error", paint), *wrap_lines((*lines, *recent), width)]


def _list_full(status: FleetStatus) -> Iterator[str]:
    """Yield which clusters have nothing free of which resources, so that no new workload that requests these fits."""
    known = [one for one in status.clusters if one.ready != "Gone"]
    groups: dict[tuple[str, ...], list[str]] = {}
    for one in known:
        if full := tuple(use.resource for use in one.resources if use.is_full):
            groups.setdefault(full, []).append(one.name)
    for resources, names in sorted(groups.items()):
        part = format_part(len(names), len(known), "cluster", "is full", "are full")
        what = " or ".join(f"requests {name}" if name != "pods" else "has pods" for name in resources)
        yield f"Full: {part} ({format_names(names)}): no new workload that {what} fits there"


def _list_allowed(status: FleetStatus) -> Iterator[str]:
    """Yield how many changes the next run makes after an earlier one withheld them."""
    if status.source.allowed_changes:
        count = format_count(status.source.allowed_changes, "change is", "changes are")
        yield f"{count} not withheld any more: gitsched reconcile carries out what waits."


def _paint_first(text: str, width: int, role: Role, paint: Paint | None) -> list[str]:
    lines = wrap_indented(text, width)
    return lines if paint is None else [paint(line, role) for line in lines]


def _describe_sound(status: FleetStatus) -> str:
    if status.time is None:
        return "Nothing is placed yet."
    known = sum(one.ready != "Gone" for one in status.clusters)
    unknown = sum(one.ready == "Unknown" for one in status.clusters)
    others = [format_count(len(status.source.warnings), "warning")] if status.source.warnings else []
    others += [f"{format_count(len(status.unselected), 'workload')} that no policy selects"] if status.unselected else []
    text = f"No errors, but {' and '.join(others)}" if others else "Nothing is wrong"
    text += f": {format_count(known, 'cluster')}, {format_count(len(status.workloads), 'workload')}"
    if unknown == known and unknown:
        return f"{text}; nobody has observed the clusters."
    return f"{text}; {format_count(unknown, 'cluster has', 'clusters have')} not been observed." if unknown else f"{text}."


def _list_warnings(status: FleetStatus) -> Iterator[str]:
    """Yield where the documents are that have warnings, by code, and which workloads no policy selects."""
    codes: dict[str, list[str]] = {}
    for one in status.source.warnings:
        codes.setdefault(one.code, []).append(f"{one.location.path}:{one.location.line}" if one.location is not None else "")
    found = [f"{code} ({format_names(places)})" if any(places) else code for code, places in sorted(codes.items())]
    if found:
        count = format_count(len(status.source.warnings), "warning")
        yield f"{count}: {format_names(found, WARNINGS_SHOWN)}; gitsched validate shows {'it' if count == '1 warning' else 'them'}"
    names = [format_key(one.key) for one in status.unselected]
    if names:
        count = format_count(len(names), "workload")
        yield f"Selected by no policy, so in no cluster: {count} ({format_names(names)}); gitsched status --unclaimed says why"


def _list_freezes(status: FleetStatus) -> Iterator[str]:
    for freeze in status.freezes:
        yield f"Frozen: {describe_freeze(freeze, status.now)}"
    if status.unpushed_freeze:
        yield f"Not pushed: {UNPUSHED.format(status.unpushed_freeze)}"


def _list_waiting(status: FleetStatus) -> Iterator[str]:
    if status.source.waiting is not None:
        others = status.source.waiting_count - 1
        more = f" and {format_count(others, 'later commit')} (gitsched plan shows what they change)" if others > 0 else ""
        yield (
            f"Not reconciled: {describe_source(status.source.waiting)}{more}: check that gitsched watch or the job runs that reconciles, "
            "or run gitsched reconcile"
        )
    elif status.source.due is not None:
        older = "fetch later runs first, if there are any (git fetch, or --fetch origin); then " if status.from_origin else ""
        yield (
            f"Due since {format_time(status.source.due.since)}: {_describe_due(status.source.due)}: {older}run gitsched reconcile, or "
            "check that gitsched watch or the job runs that reconciles"
        )


def _describe_due(due: DueRun) -> str:
    """Return what a run would do that time or new facts have changed."""
    names = format_names([format_key(key) for key in due.moved], WORKLOADS_SHOWN)
    parts = [f"{format_count(len(due.moved), 'workload')} to move ({names})"] if due.moved else []
    parts += [f"Rollout {name} to continue in {format_names(clusters)}" for name, clusters in due.continues]
    parts += ["copies to remove, because an overlap ended"] if due.has_ended else []
    return join_all(parts) or "the output branch to change, because time has passed or facts are new"


def _list_renamed(status: FleetStatus) -> list[str]:
    """Return what workloads are now whose namespace was changed to one where no policy selects them."""
    lines = []
    for key, new in status.source.renamed.items():
        place = f" ({new.location.path}:{new.location.line})" if new.location is not None else ""
        name = f"{new.key.namespace}/{new.key.name}"
        lines.append(f"{format_key(key)} is {name} now{place}, which no policy selects: gitsched explain {format_words(new.key)}")
    return list_limited(lines, WORKLOADS_SHOWN, "and {} more in other namespaces; gitsched status --unclaimed lists them")


def _list_withheld(status: FleetStatus) -> list[str]:
    """Return what is withheld, with the first workloads, those with data before others, and the commits that ask for it."""
    is_named = any(limit.cause is not None for limit in status.withheld.limits)
    causes = (one.reason for one in status.workloads if one.state == "withheld" and not is_named)
    first, *lines = describe_withheld(status.withheld, cause=next(filter(None, causes), ""), commit="the commit", is_status=True)
    since, sources, data, more = status.withheld_history
    if since is not None:
        first = f"{first.removesuffix('.')}, since {format_time(since)} ({format_age(since, status.now)} ago)."
    moves = sorted(sort_moves(status.withheld.moves), key=lambda move: move.key not in data)
    groups: dict[object, list[tuple[Move, str]]] = {}
    for move in moves:
        text = f"{_format_place(move)} {_describe_target(move)}{_format_stay(status, move)}{_format_data(data, move.key)}"
        groups.setdefault(move.key if len(moves) <= WITHHELD_SHOWN else text, []).append((move, text))
    named = []
    for found in list(groups.values())[:WITHHELD_SHOWN]:
        names = format_names([format_key(move.key) for move, _ in found])
        text = found[0][1]
        named.append(f"  each of {format_count(len(found), 'workload')} ({names}){text}" if len(found) > 1 else f"  {names}{text}")
    left = sum(map(len, list(groups.values())[WITHHELD_SHOWN:]))
    named += [f"  and {left:,} more; gitsched plan shows all"] if left else []
    asked = describe_requests(sources, more)
    return [first, *named, *([f"  {asked}"] if asked else []), *lines]


def _describe_target(move: Move) -> str:
    """Return where a workload goes, or that it would become unplaced."""
    return describe_target(move) if move.after or move.intended else "would become unplaced"


def _format_place(move: Move) -> str:
    """Return where a workload is, if its target does not say that."""
    return f" on {format_clusters(move.before)}" if move.before and not move.after else ""


def _format_stay(status: FleetStatus, move: Move) -> str:
    """Return from which clusters a workload would have to go, and does not because its change is withheld."""
    left = [one for one in status.clusters if one.name in move.before and one.name not in move.after]
    found = [f"{one.name}, {_describe_fault(one)}" for one in left if one.is_drained or one.unready]
    return f"; it stays on {join_all(found)}" if found else ""


def _describe_fault(cluster: ClusterStatus) -> str:
    """Return why a workload should leave a cluster."""
    if cluster.ready == "Gone":
        return "whose document is gone"
    return f"which is {'drained' if cluster.is_drained else 'not ready'}"


def _format_data(data: Mapping[Key, Sequence[str]], key: Key) -> str:
    return f"; its data: {format_names(data[key], FILES_SHOWN)}" if key in data else ""


def _list_unplaced(status: FleetStatus) -> list[str]:
    """Return the first workloads that are nowhere, with the reason, and where copies still run until what."""
    copies: dict[Key, list[RetainedCopy]] = {}
    for copy in status.retained:
        copies.setdefault(copy.workload, []).append(copy)

    def describe(one: WorkloadStatus, subject: str) -> str:
        reason, own = _explain_reason(one, subject), copies.get(one.key)
        until = AWAITED[own[0].awaits] if own else ""
        still = f"; {subject} still runs in {format_names([copy.cluster for copy in own])}, {until}" if own else ""
        lacks = "; what each cluster lacks: gitsched explain {}" if _LACKS_CAPACITY in reason and not own else ""
        return f": {reason}{lacks}{still if RESCHEDULE_DISPLACED not in reason else ''}"

    unplaced = [one for one in status.workloads if one.is_unplaced]
    more = "and {} more unplaced workloads; gitsched status --workloads lists them"
    return _fold_workloads("Unplaced", unplaced, describe, more)


def _list_short(status: FleetStatus) -> list[str]:
    """Return the first workloads that lack replicas, with the reason and the next command."""

    def describe(one: WorkloadStatus, subject: str) -> str:
        has = f"has {format_part(total_replicas(one.clusters.values()), one.replicas, 'replica')}"
        reason = f"{_explain_reason(one, subject)}; what each cluster has left: gitsched explain {{}}"
        return f" {has}: {reason}" if subject == "it" else f": {subject} {has}: {reason}"

    more = "and {} more workloads that lack replicas; gitsched status --workloads lists them"
    return _fold_workloads("Missing", status.short, describe, more)


def _fold_workloads(
    title: str, workloads: Sequence[WorkloadStatus], describe: Callable[[WorkloadStatus, str], str], more: str
) -> list[str]:
    """Return a line for each of a few workloads, or for each text that many have, besides numbers. `describe` gets a workload and what
    the sentence calls it; a place in the text is for its name in a command."""
    groups: dict[object, list[WorkloadStatus]] = {}
    for one in workloads:
        same = one.key if len(workloads) <= WORKLOADS_SHOWN else mask_numbers(describe(one, "each"))
        groups.setdefault(same, []).append(one)
    lines = []
    for found in list(groups.values())[:WORKLOADS_SHOWN]:
        first, name = found[0], format_key(found[0].key)
        text = describe(first, "it" if len(found) == 1 else "each")
        if len(found) > 1:
            differ = any(describe(one, "each") != text for one in found)
            names = format_names([format_key(one.key) for one in found])
            name = f"{format_count(len(found), 'workload')} ({names}{'; the numbers are those of the first' if differ else ''})"
        lines.append(f"{title}: {name}{text.replace('{}', format_words(first.key))}")
    left = sum(map(len, list(groups.values())[WORKLOADS_SHOWN:]))
    return [*lines, more.format(f"{left:,}")] if left else lines


def _list_unscheduled(status: FleetStatus) -> list[str]:
    """Return the first workloads that keep what they have because they could not be scheduled, with the reason and the next command."""
    keys = {one.key.resource: one.key for one in status.workloads}
    lines = [
        f"Not scheduled: {format_key(keys[finding.resource])}: {finding.reason}; why, and "
        f"what is missing: gitsched explain {format_words(keys[finding.resource])}"
        for finding in status.other_impaired
        if finding.code == UNSCHEDULABLE and finding.resource in keys
    ]
    more = "and {} more workloads that could not be scheduled; gitsched validate lists them"
    return list_limited(lines, WORKLOADS_SHOWN, more)


def _explain_reason(one: WorkloadStatus, subject: str) -> str:
    """Return why a workload, or some of its replicas, are nowhere. A sentence about many calls `each` so."""
    reason = one.reason.removeprefix(f"{one.key}: ").removeprefix(f"{one.key.title}: ")
    start = f"{one.key} "
    is_named = subject == "each" and reason.startswith(start)
    return f"{subject} {reason.removeprefix(start)}" if is_named else reason


def _list_stale(status: FleetStatus) -> Iterator[str]:
    """Yield how to go on with clusters that are no longer observed."""
    names = [
        f"{one.name} ({format_age(one.observed, status.now)} ago)"
        for one in status.clusters
        if one.is_stale and one.observed is not None
    ]
    if names:
        yield (
            f"No longer observed: {format_names(names, WORKLOADS_SHOWN)}: repair gitsched collect first; with --dry-run it says what it "
            "cannot read"
        )


def _list_unready(status: FleetStatus) -> list[str]:
    """Return how to go on with the first clusters that are not ready, and whose workloads stay there."""
    if status.lost_all:
        return [
            "Not ready: all clusters, so that no cluster can take workloads of others, and a drain moves nothing: restore one first; "
            "gitsched collect --dry-run says what it cannot read"
        ]
    if status.withheld.is_doubted:
        return []  # these facts are withheld: whether they are true comes first
    lines = [
        _describe_staying(status, one)
        for one in status.clusters
        if one.is_unready and one.workloads and (one.lacks_failover or not one.is_drained)
    ]
    return list_limited(lines, WORKLOADS_SHOWN, "and {} more clusters that are not ready")


def _describe_staying(status: FleetStatus, one: ClusterStatus) -> str:
    """Return what to do about the workloads of a cluster that is not ready: where failover has moved what it can, a drain moves nothing."""
    staying = [each for each in status.workloads if one.name in each.clusters]
    count, fixed = format_count(one.workloads, "workload"), all(each.state in ("held", "withheld") for each in staying)
    verb = "stays" if one.workloads == 1 else "stay"
    if one.lacks_failover and not fixed:
        reason, _, cure = one.lacks_failover.partition("; ")
        names = format_names([format_key(each.key) for each in staying])
        return (
            f"Not ready: {one.name}: {count} {verb} ({names}): {reason}; to move what does not tolerate that, "
            f"{cure.partition(', or ')[0]}, or drain it (gitsched drain {one.name} --dry-run); gitsched simulate --lose {one.name} "
            "shows what fits elsewhere"
        )
    why = f"gitsched explain {format_words(staying[0].key)} says why" if staying else f"gitsched tree {one.name} lists them"
    listed = f" ({format_names([format_key(each.key) for each in staying], STAYING_SHOWN)})" if staying else ""
    return f"Not ready: {one.name}: {count} {verb}{listed}, which a drain does not move either; {why}"


def _list_edits(status: FleetStatus) -> list[str]:
    """Return a line for each commit of people on the output branch, with what the next run makes of it."""
    lines = [
        f"Edited by hand: {abbreviate_oid(edit.commit)} {edit.subject} ({edit.author}, {format_age(edit.time, status.now)} ago) changed "
        f"{format_names(edit.files, FILES_SHOWN)}; {_describe_effect(edit)}"
        for edit in status.edits
    ]
    return list_limited(lines, EDITS_SHOWN, "and {} more commits by hand; gitsched history lists them")


def _list_followed_edits(status: FleetStatus) -> list[str]:
    """Return a line for each commit of people whose records runs still have, if what a run moved does not name it."""
    named = {edit.commit for run in status.recent for edit in run.edits}
    lines = [
        f"Followed: {abbreviate_oid(edit.commit)} {edit.subject} ({edit.author}, {format_age(edit.time, status.now)} ago) edited "
        f"{format_names(edit.files, FILES_SHOWN)} by hand, and runs still decide from that; to undo it: git revert "
        f"{abbreviate_oid(edit.commit)} on {status.branch}, and gitsched reconcile"
        for edit in status.source.followed_edits
        if edit.commit not in named
    ]
    return list_limited(lines, EDITS_SHOWN, "and {} more commits by hand that runs follow; gitsched history lists them")


def _describe_effect(edit: HandEdit) -> str:
    """Return what the next run does with an edit: records are what it decides from, other files are written anew."""
    if edit.changes_records:
        return f"the next run decides from these records: unless that is meant, git revert {abbreviate_oid(edit.commit)} on that branch"
    return "the next run takes this back"


def describe_freeze(freeze: Freeze, now: datetime | None = None) -> str:
    """Return why placements are frozen, who froze them, since when, and how to lift that: with the age if it is known what time it is."""
    since = (
        ""
        if freeze.since is None
        else f"since {format_time(freeze.since)}"
        if now is None
        else f"{format_age(freeze.since, now)} ago"
    )
    by = [freeze.author, since, f"by {freeze.place}"]
    return f"{freeze.reason} ({', '.join(filter(None, by))}); {freeze.cure}"
