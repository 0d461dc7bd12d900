"""What the page's script draws the matrix from: plain lists with every text only once, since the same reason stands a thousand times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gitsched.model.change import Move
from gitsched.model.cluster import ClusterFacts
from gitsched.model.document import Key
from gitsched.model.explanation import Candidate, Explanation
from gitsched.model.outcome import Outcome
from gitsched.report.explain import describe_candidate, describe_override

Places = list[list[int | None]]


class Texts:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    @property
    def all(self) -> list[str]:
        return list(self._numbers)


def lay_out(
    outcomes: Iterable[Outcome],
    moves: Iterable[Move],
    facts: Mapping[str, ClusterFacts],
    explanations: Mapping[Key, Explanation],
) -> dict[str, Any]:
    """Clusters as columns, workloads as rows: `{"clusters": [...], "workloads": [...], "texts": [...]}`.

    Whatever an entry says in words is a number, an index into `texts`. A place is `[cluster, replicas or None]`, with the index of a
    column. A workload that is gone is a row, too.
    """
    decided = list(outcomes)
    changed = {move.key: move for move in moves}
    texts = Texts()
    named = {place.cluster for outcome in decided for place in outcome.placed}
    named |= {cluster for move in changed.values() for cluster in move.before}
    names = sorted(facts.keys() | named)
    columns = {name: index for index, name in enumerate(names)}
    rows = [
        _row(outcome, changed.get(outcome.key), explanations.get(outcome.key), columns, texts)
        for outcome in sorted(decided, key=_order)
    ]
    rows += [_gone(move, columns, texts) for key, move in sorted(changed.items()) if key not in {each.key for each in decided}]
    return {"clusters": [_column(name, facts.get(name)) for name in names], "workloads": rows, "texts": texts.all}


def _order(outcome: Outcome) -> tuple[str, str, Key]:
    return outcome.key.namespace, outcome.key.name, outcome.key


def _column(name: str, facts: ClusterFacts | None) -> dict[str, Any]:
    if facts is None:
        return {"name": name, "region": "", "provider": "", "labels": []}
    labels = [f"{key}={value}" if value else key for key, value in sorted(facts.labels.items())]
    return {"name": name, "region": facts.region, "provider": facts.provider, "labels": labels}


def _row(
    outcome: Outcome, move: Move | None, explanation: Explanation | None, columns: Mapping[str, int], texts: Texts
) -> dict[str, Any]:
    row: dict[str, Any] = {
        **_name(outcome.key),
        "state": outcome.state,
        "after": _places(outcome.shares, columns),
        "policy": texts.number(outcome.policy),
        "group": texts.number(outcome.group),
        "reason": texts.number(outcome.reason),
    }
    leaving = [columns[place.cluster] for place in outcome.placed if place.leaving]
    if leaving:
        row["leaving"] = leaving
    if move is not None:
        row |= {"before": _places(move.before, columns), "cause": texts.number(move.reason)}
    if explanation is not None:
        row["why"] = _why(explanation, texts)
    return row


def _gone(move: Move, columns: Mapping[str, int], texts: Texts) -> dict[str, Any]:
    return {
        **_name(move.key),
        "state": "gone",
        "after": [],
        "before": _places(move.before, columns),
        "cause": texts.number(move.reason),
    }


def _name(key: Key) -> dict[str, str]:
    return {"kind": key.kind, "namespace": key.namespace, "name": key.name}


def _places(shares: Mapping[str, int | None], columns: Mapping[str, int]) -> Places:
    return [[columns[cluster], shares[cluster]] for cluster in sorted(shares)]


def _why(told: Explanation, texts: Texts) -> dict[str, Any]:
    number = texts.number
    sections: list[tuple[str, list[str]]] = [
        ("Policy", [told.policy and f"{told.policy}: {told.policy_reason}", told.claim]),
        ("Not chosen", [f"{loser.policy}: {loser.why}" for loser in told.losers]),
        ("Attached to", list(told.attached)),
        ("Why now", [told.trigger]),
        (
            "Groups, in order",
            [": ".join(filter(None, (each.name, each.verdict, each.message))) for each in told.attempts if each.name],
        ),
        ("Selection", list(told.selection)),
        ("Division", list(told.division_rule)),
        ("Overrides, in order", list(map(describe_override, told.overrides))),
        ("Findings", [str(finding) for finding in told.findings]),
    ]
    return {
        "location": number(told.location),
        "among": number(told.among),
        "sections": [
            [number(title), [number(line) for line in lines if line]] for title, lines in sections if any(line for line in lines)
        ],
        "candidates": _candidates(told.candidates, texts),
    }


def _candidates(candidates: Iterable[Candidate], texts: Texts) -> list[list[Any]]:
    """Candidates with the same fate together: `[fits, group, reason, [candidate, ...]]`, those that fit first."""
    alike: dict[tuple[bool, str, str], list[int]] = {}
    for entry in candidates:
        fate = (not entry.verdict.eligible, entry.group, describe_candidate(entry))
        alike.setdefault(fate, []).append(texts.number(entry.verdict.name))
    ordered = sorted(alike.items(), key=lambda item: item[0][0])
    return [[int(not unfit), texts.number(group), texts.number(reason), names] for (unfit, group, reason), names in ordered]
