"""Which changes fit together, as text and as the documented JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gitsched.model.finding import count_shown, format_count, format_names
from gitsched.model.fits import ChangeSet, FitReport, SetVerdict
from gitsched.report.lines import abbreviate_oid, count_omitted, wrap, wrap_all
from gitsched.report.serialization import API_VERSION

REASONS_SHOWN = 3
"""Reasons of one set that are printed; JSON contains all."""
FILES_SHOWN = 5
"""Files with conflicts that are printed."""
_NOT_ALL = "Not every set was tried, so others may not fit either. Of at most 8 changes every set is tried, if there is time."


def write_fits(report: FitReport, width: int) -> str:
    """Return the sequence that fits, then what keeps each other change out, and the other sets that do not fit."""
    found, names = report.found, [name for name, _ in report.changes]
    sequence, number = [names[change] for change in found.sequence], format_count(len(names), "change")
    subject = number if len(sequence) == len(names) else f"{len(sequence)} of {number}"
    verb = "fit together" if len(sequence) > 1 else "fits" if 1 in (len(sequence), len(names)) else "fit"
    order = f", merged in this order: {', '.join(sequence)}" if sequence else ""
    lines = wrap(f"{subject} {verb} on {report.base[0]} ({abbreviate_oid(report.base[1])}){order}.", width)
    for change in range(len(names)):
        for text, verdict in _describe_change(report, change):
            lines += ["", *wrap(text, width), *_list_reasons(verdict, width)]
    if report.with_settings:
        subject = format_names([names[change] for change in sorted(report.with_settings)])
        verb = "change" if len(report.with_settings) > 1 else "changes"
        text = f"{subject} {verb} gitsched.yaml. These settings were not applied: those of {report.base[0]} count for each set."
        lines += ["", *wrap(text, width)]
    lines += [] if found.is_complete else ["", *wrap(_NOT_ALL, width)]
    return "\n".join(lines) + "\n"


def _describe_change(report: FitReport, change: int) -> Iterator[tuple[str, SetVerdict]]:
    """Yield sentences about what a change needs, and what keeps it out, with the reasons."""
    found, name, own = report.found, report.changes[change][0], frozenset((change,))
    alone, left = report.verdicts.get(own), frozenset(range(len(report.changes))).difference(found.sequence)
    if alone is None:
        yield f"{name} was not tried.", SetVerdict()
        return
    if not alone.fits:
        after = " or ".join(_name_set(report, needed) for needed in found.list_requirements_of(change))
        yield (f"{name} fits only after {after}. Alone it does not fit:" if after else f"{name} does not fit:"), alone
        return
    told = [others for others in found.list_conflicts_of(change) if change in left or (not others & left and change > max(others))]
    for others in told:
        negated = "is not" if len(others) == 1 else f"are not {'both' if len(others) == 2 else 'all'}"
        yield f"{name} fits only if {_name_set(report, others)} {negated} merged first:", report.verdicts[others | own]
    if change in left and not told:
        yield f"{name} does not fit after the others:", report.verdicts.get(own.union(found.sequence), SetVerdict())


def _name_set(report: FitReport, changes: Iterable[int]) -> str:
    return " and ".join(report.changes[change][0] for change in sorted(changes))


def _list_reasons(verdict: SetVerdict, width: int) -> list[str]:
    files = [f"conflicts in {format_names(verdict.files, FILES_SHOWN)}"] if verdict.files else []
    shown = count_shown(len(verdict.reasons), REASONS_SHOWN)
    return [*wrap_all((*files, *verdict.reasons[:shown]), width, "  "), *count_omitted(len(verdict.reasons) - shown)]


def serialize_fits(report: FitReport) -> dict[str, Any]:
    """Return `kind: Fits` of docs/development/json.md."""
    found, sequence = report.found, frozenset(report.found.sequence)
    return {
        "apiVersion": API_VERSION,
        "kind": "Fits",
        "base": {"name": report.base[0], "commit": report.base[1]},
        "sequence": [report.changes[change][0] for change in found.sequence],
        "changes": [
            {
                "name": name,
                "commit": oid,
                "inSequence": change in sequence,
                "changesSettings": change in report.with_settings,
                "alone": _serialize_verdict(report.verdicts.get(frozenset((change,)))),
                "onlyWithout": [_list_names(report, others) for others in found.list_conflicts_of(change)],
                "onlyAfter": [_list_names(report, others) for others in found.list_requirements_of(change)],
            }
            for change, (name, oid) in enumerate(report.changes)
        ],
        "conflicts": [
            {"changes": _list_names(report, changes), **_serialize_reasons(report.verdicts[changes])} for changes in found.conflicts
        ],
        "plans": report.plans,
        "complete": found.is_complete,
    }


def _list_names(report: FitReport, changes: ChangeSet) -> list[str]:
    return [report.changes[change][0] for change in sorted(changes)]


def _serialize_verdict(verdict: SetVerdict | None) -> dict[str, Any] | None:
    return None if verdict is None else {"fits": verdict.fits, **_serialize_reasons(verdict)}


def _serialize_reasons(verdict: SetVerdict) -> dict[str, Any]:
    return {"files": list(verdict.files), "reasons": list(verdict.reasons)}
