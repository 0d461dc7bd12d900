"""Data of the HTML page: the placement matrix that the script draws, and the rows that the template shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from gitsched.model.changes import ManifestChange, Move, RecordChange
from gitsched.model.document import Key, workload_sort_key
from gitsched.model.explanation import ExplainedCandidate, Explanation
from gitsched.model.finding import SEVERITIES, Finding, count_shown, format_count
from gitsched.model.fleet_topology import ClusterSite
from gitsched.model.planned_files import ClusterInfo
from gitsched.model.scheduling import Outcome, RecordedDecision, encode_replicas
from gitsched.model.simulation import ResilienceChange
from gitsched.named_tuples import NamedTuple
from gitsched.report.causes import list_cause_texts, list_reasons
from gitsched.report.explanation import describe_candidate, list_overrides, list_related_objects
from gitsched.report.lines import escape_unprintable, format_key, format_replica_change, list_before, shrinks
from gitsched.report.manifests import format_manifest_title
from gitsched.report.move_groups import MoveGroup, describe_flows, describe_group, group_moves, name_workloads
from gitsched.report.page.links import PageLinks
from gitsched.report.page.topology import build_site_fields, mark_withheld
from gitsched.report.review import Review
from gitsched.report.simulation import describe_losses, describe_worst_effect
from gitsched.report.summary import SummaryRow, format_record_change, format_subject, format_targets

ClusterCells = list[list[int | str | None]]
_OPEN_FINDINGS = 20
"""Findings of one severity that are shown at once; more of them are folded."""
OPEN_GROUP = 10
"""Moves of one group that are shown at once; more of them are folded."""
_TARGETS_SHOWN = 50
"""The number of targets that are listed for one recorded decision."""


CandidateGroup = tuple[int, int, int, tuple[int, ...]]


class StringTable:
    """Distinct strings, and distinct lists of candidates, that the page refers to by index."""

    def __init__(self, strings: Iterable[str] = ()) -> None:
        self._numbers: dict[str, int] = {text: number for number, text in enumerate(strings)}
        self._candidates: dict[tuple[CandidateGroup, ...], int] = {}

    def index_of(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def index_of_candidates(self, groups: tuple[CandidateGroup, ...]) -> int:
        return self._candidates.setdefault(groups, len(self._candidates))

    @property
    def strings(self) -> list[str]:
        return list(self._numbers)

    @property
    def candidates(self) -> list[tuple[CandidateGroup, ...]]:
        return list(self._candidates)


def build_matrix(
    outcomes: Iterable[Outcome],
    moves: Iterable[Move],
    facts: Mapping[str, ClusterInfo],
    explanations: Mapping[Key, Explanation],
    sites: Mapping[str, ClusterSite] = {},
    withheld: Collection[Key] = (),
    removed: Collection[str] = (),
) -> dict[str, Any]:
    """Return clusters as columns and workloads as rows: `{"clusters": [...], "workloads": [...], "texts": [...], "candidates": [...]}`.

    Texts are indices into `texts`, the candidates of a workload an index into `candidates`. A cell is `[column index, replicas]`, with
    replicas as a text if they have a mark, and None without any.
    Removed workloads have a row, too. A placed workload has no `state`, and one whose change the guard leaves out is `withheld` (1).
    """
    decided = list(outcomes)
    changed = {move.key: move for move in moves}
    texts = StringTable()
    used = {target.cluster for outcome in decided for target in outcome.targets}
    used |= {cluster for move in changed.values() for cluster in move.before}
    names = sorted(facts.keys() | used)
    gone = {*removed, *(used - facts.keys() if facts else ())}
    columns = {name: index for index, name in enumerate(names)}
    rows = [
        (outcome.key, _build_workload_row(outcome, changed.get(outcome.key), explanations.get(outcome.key), columns, texts))
        for outcome in sorted(decided, key=lambda outcome: workload_sort_key(outcome.key))
    ]
    known = {each.key for each in decided}
    rows += [(key, _build_removed_row(move, columns, texts)) for key, move in sorted(changed.items()) if key not in known]
    return {
        "clusters": [_build_cluster_column(name, facts.get(name), sites.get(name), is_removed=name in gone) for name in names],
        "workloads": [mark_withheld(row) if key in withheld else row for key, row in rows],
        "texts": texts.strings,
        "candidates": texts.candidates,
    }


def mark_earlier_states(
    clusters: Iterable[dict[str, Any]], was_available: Mapping[str, bool] | None, added: Collection[str]
) -> None:
    """Mark the clusters that the change adds, and those that are not available before or after it with whether they were not before."""
    for cluster in clusters:
        name, is_down = cluster["name"], "unavailable" in cluster
        if name in added:
            cluster["added"] = 1
        elif was_available is not None:
            was_down = not was_available[name] if name in was_available else is_down and "removed" not in cluster
            if is_down or was_down:
                cluster["wasDown"] = int(was_down)


def mark_later_changes(rows: Iterable[dict[str, Any]], withheld: Collection[Key]) -> None:
    """Mark the rows of workloads of which a later change than the shown one is withheld."""
    names = {(key.kind, key.namespace, key.name) for key in withheld}
    for row in rows:
        if (row["kind"], row["namespace"], row["name"]) in names:
            row["withheld"] = 2


def _build_cluster_column(name: str, facts: ClusterInfo | None, site: ClusterSite | None, *, is_removed: bool) -> dict[str, Any]:
    """Return a cluster; one without a document stands apart from those of which nobody says where they are."""
    facts, site = facts or ClusterInfo(name, {}), site or ClusterSite(name)
    labels = [f"{key}={value}" if value else key for key, value in sorted(facts.labels.items())]
    place = {"region": facts.region or site.region, "provider": facts.provider or site.provider}
    removed = {"removed": 1, "unavailable": "it has no document any more"} if is_removed else {}
    return {"name": name, **place, "labels": labels, **build_site_fields(site), **removed}


def _build_workload_row(
    outcome: Outcome, move: Move | None, explanation: Explanation | None, columns: Mapping[str, int], texts: StringTable
) -> dict[str, Any]:
    row: dict[str, Any] = {
        **_key_fields(outcome.key),
        "after": _build_cluster_cells(outcome.replicas_by_cluster, columns),
        "reason": texts.index_of(outcome.reason),
    }
    if outcome.state != "placed":
        row["state"] = outcome.state
    evicting = [columns[target.cluster] for target in outcome.targets if target.evicting]
    if evicting:
        row["leaving"] = evicting
    if move is not None:
        row |= {"before": _build_cluster_cells(list_before(move), columns), "causes": _index_reasons(move, texts)}
    if explanation is not None:
        row["why"] = _build_explanation(explanation, texts)
    return row


def _build_removed_row(move: Move, columns: Mapping[str, int], texts: StringTable) -> dict[str, Any]:
    return {
        **_key_fields(move.key),
        "state": "gone",
        "after": [],
        "before": _build_cluster_cells(move.before, columns),
        "causes": _index_reasons(move, texts),
    }


def _index_reasons(move: Move, texts: StringTable) -> list[int]:
    return [texts.index_of(escape_unprintable(text)) for text in list_reasons(move)]


def _key_fields(key: Key) -> dict[str, str]:
    return {"kind": key.kind, "namespace": key.namespace, "name": key.name}


def _build_cluster_cells(shares: Mapping[str, int | None], columns: Mapping[str, int]) -> ClusterCells:
    return [[columns[cluster], encode_replicas(shares[cluster]) or shares[cluster]] for cluster in sorted(shares)]


def _build_explanation(value: Explanation, texts: StringTable) -> dict[str, Any]:
    index_of = texts.index_of
    sections: list[tuple[str, list[str]]] = [
        ("Policy", [value.policy and f"{value.policy}: {value.policy_reason}", value.claim]),
        ("Policies not selected", [f"{rejected.policy}: {rejected.why}" for rejected in value.rejected_policies]),
        ("Attached to", list(value.attached_to)),
        ("Trigger", [value.trigger]),
        (
            "Groups, in order",
            [": ".join(filter(None, (each.name, each.verdict, each.message))) for each in value.attempts if each.name],
        ),
        ("Selection", list(value.selection)),
        ("Division", list(value.division_rule)),
        ("Overrides, in order", list_overrides(value)),
        *list_related_objects(value),
        ("Findings", [str(finding) for finding in value.findings]),
    ]
    return {
        "location": index_of(value.location),
        "among": index_of(value.candidate_kind),
        "sections": [
            [index_of(title), [index_of(line) for line in lines if line]]
            for title, lines in sections
            if any(line for line in lines)
        ],
        "candidates": texts.index_of_candidates(_group_candidates(value.candidates, texts)),
    }


def _group_candidates(candidates: Iterable[ExplainedCandidate], texts: StringTable) -> tuple[CandidateGroup, ...]:
    """Group candidates with the same result: `(fits, group, reason, (candidate, ...))`, eligible candidates first."""
    groups: dict[tuple[bool, str, str], list[int]] = {}
    for entry in candidates:
        result = (not entry.result.eligible, entry.group, describe_candidate(entry))
        groups.setdefault(result, []).append(texts.index_of(entry.result.name))
    ordered = sorted(groups.items(), key=lambda item: item[0][0])
    return tuple(
        (int(not unfit), texts.index_of(group), texts.index_of(reason), tuple(names)) for (unfit, group, reason), names in ordered
    )


def list_totals(review: Review, clusters: int) -> list[tuple[str, int]]:
    """Return the names and numbers at the top of the page."""
    counts = {level: sum(finding.severity == level for finding in review.findings) for level in SEVERITIES}
    levels = ((f"{level}s" if level != "info" else "notes", number) for level, number in counts.items() if number)
    names = {"pending": "unplaced"}
    states = {names.get(state, state): number for state, number in review.states_left.items() if number or state != "stale"}
    changes = ("changes", len(review.allowed_moves))
    withheld = [("withheld", len(review.withheld.moves))] if review.withheld.moves else []
    return [("workloads", sum(states.values())), *states.items(), changes, *withheld, ("clusters", clusters), *levels]


class FindingGroup(NamedTuple):
    """Findings of one severity. `more` are not listed, and an `open` group is shown at once."""

    id: str
    title: str
    rows: list[dict[str, Any]]
    more: int
    open: bool


def list_finding_groups(review: Review, most: int, links: PageLinks) -> list[FindingGroup]:
    """Return the findings by severity, at most so many, new ones first."""
    new = {id(finding) for finding in review.new_findings} if review.base.findings is not None else set[int]()
    groups, left = [], most
    for severity in SEVERITIES:
        found = [finding for finding in review.findings if finding.severity == severity]
        found.sort(key=lambda finding: id(finding) not in new)
        rows = [build_finding_row(finding, links, new=id(finding) in new) for finding in found[:left]]
        left -= len(rows)
        if found:
            title = format_count(len(found), "note" if severity == "info" else severity)
            is_open = severity == "error" or len(found) <= _OPEN_FINDINGS or any(row["new"] for row in rows)
            groups.append(FindingGroup(f"listed-{severity}s", title, rows, len(found) - len(rows), is_open))
    return groups


def build_summary_row(row: SummaryRow) -> SummaryRow:
    """Return a row of the summary with unprintable characters escaped."""
    return SummaryRow(row.name, escape_unprintable(row.before), escape_unprintable(row.after))


def build_record_change_row(change: RecordChange) -> dict[str, Any]:
    """Return a changed recorded decision with its targets before and after the change, and its reasons."""
    name, before, after = map(escape_unprintable, format_record_change(change, _TARGETS_SHOWN))
    return {"name": name, "before": before, "after": after, "reasons": [escape_unprintable(text) for text in list_reasons(change)]}


def build_recorded_row(decision: RecordedDecision) -> dict[str, str]:
    """Return a recorded decision with its targets."""
    name, targets = format_subject(decision), format_targets(decision.targets, _TARGETS_SHOWN)
    return {"name": escape_unprintable(name), "targets": escape_unprintable(targets)}


def build_manifest_entry(entry: ManifestChange) -> dict[str, Any]:
    """Return the title of a manifest and the lines of its diff with their kinds."""
    kinds = {"+": "new", "-": "old", "@": "soft"}
    lines = [(kinds.get(line[:1], ""), escape_unprintable(line)) for line in entry.diff.splitlines()]
    return {"title": escape_unprintable(format_manifest_title(entry)), "lines": lines}


def build_loss_table(review: Review) -> dict[str, Any] | None:
    """Return the summary and the table of losses; None without --resilience."""
    value = review.resilience
    if value is None:
        return None
    table = value.head if isinstance(value, ResilienceChange) else value
    summary, losses = describe_losses(value)
    rows = [
        {
            "name": escape_unprintable(row.domain.name if row.domain else row.event),
            "moved": row.moved,
            "started": row.started_replicas,
            "unplaced": len(row.unplaced),
            "reduced": row.reduced_workloads,
            "missing": row.missing,
            "waiting": row.waiting,
            "worst": escape_unprintable(describe_worst_effect(row)),
            "bad": bool(row.degraded),
        }
        for row in table.rows
    ]
    return {
        "by": table.domain_kind,
        "rows": rows,
        "summary": escape_unprintable(summary),
        "lines": [escape_unprintable(text) for text in losses],
    }


class ListedMoves(NamedTuple):
    """The moves that the page lists: parts that are `{"groups": [...]}` or, of moves that have no group, `{"moves": [...]}`. `more` are
    moves that no part has."""

    parts: list[dict[str, list[dict[str, Any]]]]
    more: int


def list_move_groups(moves: Sequence[Move], most: int, withheld: Collection[Key] = ()) -> ListedMoves:
    """Return the moves as the other reports group them, the gravest first, at most so many; each group has all that are left of these.
    Those of `withheld` workloads have a mark."""
    parts: list[dict[str, list[dict[str, Any]]]] = []
    left = count_shown(len(moves), most)
    for group in group_moves(moves):
        members = group.moves[:left]
        left -= len(members)
        if not members:
            break
        kind = "moves" if group.is_single else "groups"
        if not parts or kind not in parts[-1]:
            parts.append({kind: []})
        if group.is_single:
            parts[-1][kind] += (build_move_row(move, withheld=move.key in withheld) for move in members)
        else:
            common = _list_common_reasons(group)
            rows = [build_move_row(move, common, withheld=move.key in withheld) for move in members]
            left_out = sum(move.key in withheld for move in group.moves)
            mark = "" if not left_out else "withheld" if left_out == len(group.moves) else f"{left_out:,} withheld"
            parts[-1][kind].append(_build_group(group) | {"moves": rows, "number": len(group.moves), "withheld": mark})
    return ListedMoves(parts, len(moves) - count_shown(len(moves), most))


def _list_common_reasons(group: MoveGroup) -> frozenset[str]:
    """Return the reasons that the title of a group says for each of its moves."""
    causes = {tuple(list_cause_texts(move.causes)) for move in group.moves}
    return frozenset(list_reasons(group)).union(*(causes if len(causes) == 1 else ()))


def _build_group(group: MoveGroup) -> dict[str, Any]:
    """Return moves with the same cause in one line, and their parts, causes and first names."""
    title = f"{group.sign} {describe_group(group)}{' (fewer)' if group.shrinking else ''}"
    is_open = len(group.moves) <= OPEN_GROUP
    details = [*list_reasons(group), *describe_flows(group), *([] if is_open else [name_workloads(group)])]
    shown = list(map(write_text, (title, *details)))
    return {"title": shown[0], "details": shown[1:], "open": is_open}


def build_move_row(move: Move, common: Collection[str] = (), *, withheld: bool = False) -> dict[str, Any]:
    """Return the clusters of a move before and after with their replicas, and its reasons, without those that are common to a group."""
    clusters = []
    before = list_before(move)
    for cluster in sorted(before.keys() | move.after.keys()):
        earlier, later = before.get(cluster), move.after.get(cluster)
        if cluster not in before:
            clusters.append(("new", f"+ {cluster}" + _format_replicas(later)))
        elif cluster not in move.after:
            clusters.append(("old", f"− {cluster}" + _format_replicas(earlier)))  # a minus sign, not a hyphen
        elif earlier != later:
            clusters.append(("turn", f"{cluster}{_format_replicas(earlier)} →{_format_replicas(later)}"))
        else:
            clusters.append(("", cluster + _format_replicas(later)))
    if shrinks(move):
        clusters.append(("old", f"{format_replica_change(move).replace('->', '→')} replicas, fewer"))
    return {
        "name": format_key(move.key),
        "withheld": withheld,
        "clusters": clusters,
        "reasons": [write_text(text) for text in list_reasons(move) if text not in common],
    }


def write_text(text: str) -> str:
    """Return a text without unprintable characters, and with arrows."""
    return escape_unprintable(text).replace(" -> ", " → ")


def _format_replicas(replicas: int | None) -> str:
    return "" if replicas is None else f" {replicas}"


def build_finding_row(finding: Finding, links: PageLinks, *, new: bool) -> dict[str, Any]:
    """Return a finding; `new` is true if the change introduces it."""
    return {
        "severity": finding.severity,
        "new": new,
        "code": finding.code,
        "location": links.link_location(finding.location, escape_unprintable(str(finding.location or ""))),
        "message": links.link_places(escape_unprintable(finding.text)),
    }
