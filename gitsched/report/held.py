"""Held workloads, and workloads with withheld changes, in reports: which clusters they keep, where they would go, and what releases
them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from gitsched.model.changes import Move, RetainedWorkload, WithheldChanges
from gitsched.model.document import Key
from gitsched.model.explanation import Counterfactual, Explanation, ProposedChange
from gitsched.model.finding import count_shown, format_count, format_names, format_part
from gitsched.model.holds import HeldPlacement, describe_release
from gitsched.model.scheduling import total_replicas
from gitsched.model.time import format_time
from gitsched.report.lines import count_omitted, format_clusters, format_key, list_limited, serialize_clusters

HELD_SHOWN = 20
"""The number of held workloads that are printed; JSON contains all."""
RETAINED_SHOWN, CHANGES_SHOWN = 20, 3
"""The numbers of workloads that only history keeps in place, and of changes beside which they stay, that are printed."""


UNFIT_SHOWN = 3
"""The number of reasons why clusters with a workload do not fit; the table of clusters has all."""


def describe_held(held: Mapping[Key, HeldPlacement], shown: int = HELD_SHOWN) -> list[str]:
    """Return a title and two lines for each held workload; [] without any."""
    if not held:
        return []
    what = "" if any(placement.adopted for placement in held.values()) else " with data"
    lines = [f"Held: {format_count(len(held), 'workload')}{what} {'stays' if len(held) == 1 else 'stay'} until released."]
    shown = count_shown(len(held), shown)
    for key, placement in [*held.items()][:shown]:
        lines += describe_held_workload(key, placement)
    return [*lines, *count_omitted(len(held) - shown)]


def describe_held_workload(key: Key, held: HeldPlacement) -> tuple[str, str]:
    """Return where a workload is held and why, and where it would go with what releases it."""
    where, release = describe_hold_place(key, held)
    return f"{format_key(key)} is held {where}", release


def describe_hold_place(key: Key, held: HeldPlacement) -> tuple[str, str]:
    """Return `describe_held_workload` without the name of the workload."""
    causes = (f"adopted, and {held.adopted}" if held.adopted else "", f"data: {', '.join(held.data)}" if held.data else "")
    why = "; ".join(filter(None, causes))
    place = _describe_wanted(held)
    without = " without its data" if held.data and place else ""
    save = "save or copy the data, then " if held.data else ""
    return (
        f"on {format_clusters(held.clusters)}: {held.reason}; {why}",
        f"  when released: {place or 'it becomes unplaced'}{without}; {save}{describe_release(key, held)}",
    )


def _describe_wanted(held: HeldPlacement) -> str:
    """Return where a held workload goes when it is released, "" if no cluster fits. Without a cluster that has a document, only the run
    that releases it decides that."""
    if held.wanted:
        return format_clusters(held.wanted)
    return "where that run places it" if held.lost else ""


def describe_hold(held: HeldPlacement) -> str:
    """Return in one line that a workload stays where its data is, and where it goes when it is released."""
    why = f"where it was adopted ({held.adopted})" if not held.data else f"where its data is ({', '.join(held.data)})"
    place = _describe_wanted(held)
    then = f"goes to {place}" if place else "becomes unplaced: no other cluster fits"
    return f"it is held in {format_clusters(held.clusters)}, {why}; when released, it {then}"


def add_hold(explanation: Explanation, key: Key, held: HeldPlacement) -> Explanation:
    """Return the explanation of a held workload: why it stays, and what brings it to each cluster where it would go."""
    release = f"it is released: {describe_release(key, held)}"
    return _add_wanted(explanation, f"Not carried out: {describe_hold(held)}.", held.wanted, release)


def add_withheld(explanation: Explanation, move: Move, withheld: WithheldChanges) -> Explanation:
    """Return the explanation of a workload whose change the guard withholds: where it would go, and what allows it."""
    text = f"{withheld.withheld_by.capitalize()} withholds that it {describe_target(move)}: to allow it, {withheld.allowance}."
    return _add_wanted(explanation, text, move.after, f"its change is allowed: {withheld.allowance}")


def describe_target(move: Move) -> str:
    """Return where a workload goes, or which clusters it only leaves, and how many replicas remain if these are fewer: a verb with its
    object."""
    if not move.after:
        return "is removed" if move.intended else "becomes unplaced"
    left = {name: count for name, count in move.before.items() if name not in move.after}
    only_leaves = bool(left) and move.after.items() <= move.before.items()
    text = f"leaves {format_clusters(left)}" if only_leaves else f"goes to {format_clusters(move.after)}"
    before, after = (total_replicas(counts.values()) for counts in (move.before, move.after))
    if after >= before:
        grows = after > before and move.before.keys() == move.after.keys()
        return f"goes from {format_clusters(move.before)} to {format_clusters(move.after)}" if grows else text
    return f"{text}, so that {format_part(after, before, 'replica', 'remains', 'remain')}"


def add_waiting(explanation: Explanation, move: Move, until: datetime | None) -> Explanation:
    """Return the explanation of a workload that waits to move until a later period."""
    change = f"a period starts in which its decision may move workloads, from {format_time(until)} on" if until else "a later run"
    text = f"It waits to go to {format_clusters(move.after)}: observations alone cause this, and such moves are limited by period."
    return _add_wanted(explanation, text, move.after, change)


def _add_wanted(explanation: Explanation, text: str, wanted: Mapping[str, int | None], change: str) -> Explanation:
    """Return the explanation of a workload that does not go where it is wanted, with the change that brings it there."""
    found = {name: Counterfactual(name, (ProposedChange(change),), True, count) for name, count in wanted.items()}
    return explanation._replace(
        trigger=" ".join(filter(None, (explanation.trigger, text))),
        counterfactuals=tuple(found.get(entry.cluster, entry) for entry in explanation.counterfactuals),
    )


def describe_state(
    explanation: Explanation,
    held: HeldPlacement | None,
    withheld: Move | None,
    waits: bool,
    freeze: str,
    wanted: int | None = None,
) -> str:
    """Return whether anything keeps a workload from being where its policies want it. `wanted` are its replicas where some are missing."""
    placed = _describe_placed(explanation, wanted or 0)
    if held is not None:
        state = f"Held on {format_clusters(held.clusters)}: {held.reason}"
    elif withheld is not None:
        state = f"{placed}; the {'freeze' if freeze else 'guard'} withholds that it {describe_target(withheld)}"
    elif waits:
        state = f"{placed}; it waits to move"
    else:
        unplaced = _describe_unplaced(explanation.delivery.copied) if explanation.policy else ""
        state = placed if explanation.result else unplaced
    return f"{state}. Placements are frozen: {freeze}" if freeze and state else f"{state}." if state else ""


def describe_unfit(explanation: Explanation) -> str:
    """Return in which clusters a workload stays although its policy does not allow them, and why; "" if there are none, and for one that
    others bring along."""
    if explanation.attached_to or explanation.candidate_kind != "cluster":
        return ""
    running = {share.cluster for share in explanation.result}
    fitting = {entry.result.name for entry in explanation.candidates if entry.result.eligible}
    unfit: dict[str, dict[str, None]] = {}
    for entry in explanation.candidates:
        if entry.result.name in running - fitting:
            location = f" ({entry.location})" if entry.location else ""
            unfit.setdefault(f"{entry.result.reason}{location}", {})[entry.result.name] = None
    lines = [
        f"It stays in {format_names([*names])}, which {'does' if len(names) == 1 else 'do'} not fit: {reason}."
        for reason, names in unfit.items()
    ]
    return " ".join(list_limited(lines, UNFIT_SHOWN, "There are {} more reasons."))


def _describe_unplaced(copied: Mapping[str, int | None]) -> str:
    """Return that a workload has no cluster, and where its copies still run."""
    runs = total_replicas(copied.values())
    replicas = f" with {format_count(runs, 'replica')}" if runs else ""
    return f"Unplaced, but still runs in {format_names(sorted(copied))}{replicas}" if copied else "Unplaced"


def _describe_placed(explanation: Explanation, wanted: int) -> str:
    """Return on how many clusters a workload runs, and with how many replicas. Those that have nothing of it until their turn in a rollout
    do not count."""
    result = explanation.result
    lacking = {name for one in explanation.delivery.rollouts for name in one.lacking}
    clusters, running = len(result), sum(share.cluster not in lacking for share in result)
    replicas = total_replicas(share.replicas for share in result)
    wanted = max(wanted, sum(share.replicas or 0 if share.assigned is None else share.assigned for share in result))
    count = format_part(replicas, wanted, "replica") if wanted > replicas else format_count(replicas, "replica")
    where = format_part(running, clusters, "cluster") if running < clusters else format_count(clusters, "cluster")
    placed = f"Placed on {where}" + (f" with {count}" if replicas else "")
    runs = total_replicas(({share.cluster: share.replicas for share in result} | dict(explanation.delivery.copied)).values())
    return placed + (f", and {format_count(runs, 'replica')} in all until its copies go" if runs > replicas else "")


def describe_retained_number(retained: Sequence[RetainedWorkload]) -> list[str]:
    """Return how many workloads stay where they are, and in further lines beside which changes."""
    number, groups = len(retained), Counter("; ".join(map(str, workload.causes)) for workload in retained)
    title = "1 affected workload keeps its placement" if number == 1 else f"{number:,} affected workloads keep their placement"
    entries = [f"{causes}: {format_count(count, 'workload')}" for causes, count in groups.most_common() if causes]
    shown = list_limited([f"  although {entry}" for entry in entries], CHANGES_SHOWN, "  and {} more groups of changes")
    return [f"{title} because of scheduling history{':' if entries else ''}", *shown]


def describe_retained(retained: Sequence[RetainedWorkload], moved: Collection[Key]) -> list[str]:
    """Return two lines for each workload that only scheduling history keeps where it is: where it stays, and where it would go."""
    lines = []
    shown = count_shown(len(retained), RETAINED_SHOWN)
    for workload in retained[:shown]:
        verb = "moves only to" if workload.key in moved else "stays on"
        lines.append(f"{format_key(workload.key)} {verb} {format_clusters(workload.current)}")
        lines.append(f"  if it were new: {format_clusters(workload.if_rescheduled)}; {workload.remedy}")
    more = len(retained) - shown
    return [*lines, f"and {more:,} more keep their placement; use -o json for all"] if more > 0 else lines


def serialize_held(held: Mapping[Key, HeldPlacement]) -> list[dict[str, Any]]:
    """Return the member `held` of a Plan."""
    return [
        {
            "workload": key._asdict(),
            "clusters": serialize_clusters(each.clusters),
            "wanted": serialize_clusters(each.wanted),
            "leaving": list(each.leaving),
            "lost": list(each.lost),
            "evicted": each.evicted,
            "reason": each.reason,
            "data": list(each.data),
            "adopted": each.adopted,
            "release": describe_release(key, each),
        }
        for key, each in held.items()
    ]
