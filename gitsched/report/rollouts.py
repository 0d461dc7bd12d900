"""Rollouts in waves as text, and as data for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from gitsched.model.finding import count_shown, format_names
from gitsched.model.rollouts import ACCEPT_ANNOTATION, REVERT_CHANGE, RolloutCluster, RolloutStatus
from gitsched.model.time import EPOCH, format_time
from gitsched.report.lines import format_key

CLUSTERS_SHOWN = 5
"""The number of clusters of a wave and state that text names; JSON contains all."""
_STATES = {
    "updated": "get the change now",
    "progressing": "have the change, and have not reported that they are healthy",
    "succeeded": "are healthy",
    "failed": "failed",
    "accepted": "failed, which is accepted",
    "waiting": "wait",
    "unchanged": "do not change",
    "skipped": "are skipped",
}


def describe_rollouts(rollouts: Iterable[RolloutStatus]) -> list[str]:
    """Return a line for each rollout and one for each wave and state of its clusters."""
    return [line for rollout in rollouts for line in describe_rollout(rollout)]


def describe_rollout(rollout: RolloutStatus) -> list[str]:
    """Return the state of a rollout and of the clusters of its waves."""
    waits = {"stopped": f": {rollout.waits_for}", "progressing": f", waits for {rollout.waits_for}"}.get(rollout.state, "")
    waits += f", and stops then, because {format_names(rollout.failed)} failed" if rollout.will_stop else ""
    lines = [f"Rollout {rollout.name} ({rollout.type}) is {rollout.state}{waits if rollout.waits_for else ''}"]
    for (group, state), found in _group_clusters(rollout.clusters).items():
        details = dict.fromkeys(one.detail for one in found)
        wave, rest = f"wave {group}: " if group else "", found
        for detail in [*details][: count_shown(len(details), CLUSTERS_SHOWN)]:
            same = [one for one in found if one.detail == detail]
            rest = [one for one in rest if one.detail != detail]
            why = f" ({detail})" if detail else ""
            lines.append(f"  {wave}{_format_clusters([one.cluster for one in same])} {_conjugate(state, same)}{why}")
        if rest:
            lines.append(f"  {wave}{_format_clusters([one.cluster for one in rest])} {_conjugate(state, rest)}, for other reasons")
    return lines


def describe_remedies(rollouts: Iterable[RolloutStatus], now: datetime = EPOCH) -> list[str]:
    """Return a line for each rollout that has stopped, has failures, or has waited for too long: how to go on, and how to go back."""
    remedies = ((rollout.name, rollout.remedy or describe_wait(rollout, now)) for rollout in rollouts)
    return [f"Rollout {name}: {remedy}" for name, remedy in remedies if remedy]


def describe_wait(rollout: RolloutStatus, now: datetime) -> str:
    """Return how to go on with a rollout that has waited for too long, and how to go back; "" for another one."""
    if rollout.find_overdue(now) is None:
        return ""
    pending = {one.cluster: one.since for one in rollout.clusters if one.state == "progressing" and one.since is not None}
    accepted = ", ".join(f"{name}@{format_time(since)}" for name, since in pending.items())
    if not pending:
        return f"to go on, mend what gitsched plan reports about it; to go back, {REVERT_CHANGE}"
    names = _format_clusters([*pending])
    return (
        f"to go on, find out why {names} {'does' if len(pending) == 1 else 'do'} not report to be healthy (gitsched collect --self, Flux "
        f'or Argo CD), or accept that with the annotation {ACCEPT_ANNOTATION}: "{accepted}" on the Rollout; to go back, {REVERT_CHANGE}'
    )


def _group_clusters(clusters: Iterable[RolloutCluster]) -> dict[tuple[str, str], list[RolloutCluster]]:
    found: dict[tuple[str, str], list[RolloutCluster]] = {}
    for one in clusters:
        found.setdefault((one.group, one.state), []).append(one)
    return found


_SINGULAR = (("get ", "gets "), ("have the", "has the"), ("have not", "has not"), ("they are", "it is"), ("are ", "is "))


def _conjugate(state: str, found: Sequence[RolloutCluster]) -> str:
    text = _STATES[state]
    if len(found) > 1:
        return text
    text = {"wait": "waits", "do not change": "does not change"}.get(text, text)
    for plural, singular in _SINGULAR:
        text = text.replace(plural, singular)
    return text


def _format_clusters(names: Sequence[str]) -> str:
    return format_names(names, CLUSTERS_SHOWN)


def serialize_rollouts(rollouts: Iterable[RolloutStatus]) -> list[dict[str, Any]]:
    """Return rollouts with all their clusters."""
    return [
        {
            "name": rollout.name,
            "type": rollout.type,
            "state": rollout.state,
            "waitsFor": rollout.waits_for,
            "clusters": [
                {
                    "name": one.cluster,
                    "wave": one.group,
                    "state": one.state,
                    "since": format_time(one.since) if one.since is not None else None,
                    "detail": one.detail,
                }
                for one in rollout.clusters
            ],
            "workloads": [format_key(key) for key in rollout.workloads],
            "remedy": rollout.remedy,
        }
        for rollout in rollouts
    ]
