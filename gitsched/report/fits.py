"""Which changes fit together: as text, as the blocks of Markdown and of a page, and as the documented JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gitsched.model.finding import count_shown, format_count, format_names
from gitsched.model.fits import ChangeSet, FitReport, SetVerdict
from gitsched.report.blocks import Block, Paragraph, TableBlock
from gitsched.report.lines import abbreviate_oid, count_omitted, wrap, wrap_all
from gitsched.report.serialization import API_VERSION

REASONS_SHOWN = 3
"""Reasons of one set that are printed; JSON contains all."""
FILES_SHOWN = 5
"""Files with conflicts of one set that are printed."""
MAX_ROWS = 200
"""Rows of one table of a page, the changes excepted: the others are counted."""
_NOT_ALL = "Not every set was tried, so others may not fit either. Of at most 8 changes every set is tried, if there is time."

_NO_PARTS = "Not every set was tried, so that a part of these changes may not fit without the others."


def write_fits(report: FitReport, width: int) -> str:
    """Return the sequence that fits, then what keeps each other change out, and the other sets that do not fit."""
    order = [report.changes[change][0] for change in report.found.sequence]
    merged = f", merged in this order: {', '.join(order)}" if order else ""
    lines = wrap(f"{_summarize(report)}{merged}.", width)
    for change in range(len(report.changes)):
        for text, verdict in _describe_change(report, change):
            lines += ["", *wrap(f"{text}{':' if verdict.files or verdict.reasons else '.'}", width), *_list_reasons(verdict, width)]
    for note in _list_notes(report):
        lines += ["", *wrap(note, width)]
    return "\n".join(lines) + "\n"


def list_fit_blocks(report: FitReport) -> list[Block]:
    """Return a table of changes with their verdicts, one of what does not fit together, and one of the files with conflicts."""
    rows, conflicts, files = list(_list_rows(report)), report.found.conflicts, dict[str, set[str]]()
    for verdict, changes in ((report.verdicts[conflict], conflict) for conflict in conflicts):
        for file in verdict.files:
            files.setdefault(file, set()).add(_name_set(report, changes))
    left = frozenset(number for number, (_, is_left) in enumerate(rows) if is_left)
    by_file = [(file, "; ".join(sorted(sets))) for file, sets in sorted(files.items())]
    shown = count_shown(len(by_file), MAX_ROWS)
    return [
        Paragraph(f"{_summarize(report)}."),
        TableBlock(("Change", "Commit", "Order", "Verdict", "Reasons"), [cells for cells, _ in rows], left),
        *([Paragraph("Changes that do not fit together", heading=True)] if conflicts else []),
        TableBlock(
            ("Changes", "Reasons"),
            [(_name_set(report, changes), "; ".join(_list_texts(report.verdicts[changes]))) for changes in conflicts[:MAX_ROWS]],
        ),
        *map(Paragraph, count_omitted(len(conflicts) - MAX_ROWS)),
        *([Paragraph("Files with conflicts", heading=True)] if by_file else []),
        TableBlock(("File", "Changes"), by_file[:shown]),
        *map(Paragraph, count_omitted(len(by_file) - shown)),
        *map(Paragraph, _list_notes(report)),
    ]


def _list_rows(report: FitReport) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield a row for each verdict about a change, and whether the change is left out."""
    order = {change: str(number) for number, change in enumerate(report.found.sequence, 1)}
    for change, (name, oid) in enumerate(report.changes):
        told = list(_describe_change(report, change)) or [(f"{name} fits", SetVerdict())]
        for text, verdict in told:
            says = text.removeprefix(f"{name} ")
            yield (name, abbreviate_oid(oid), order.get(change, "-"), says, "; ".join(_list_texts(verdict))), change not in order


def _summarize(report: FitReport) -> str:
    """Return how many changes fit together, without a full stop."""
    fitting, count = len(report.found.sequence), len(report.changes)
    subject = format_count(count, "change") if fitting == count else f"{fitting} of {format_count(count, 'change')}"
    verb = "fit together" if fitting > 1 else "fits" if 1 in (fitting, count) else "fit"
    return f"{subject} {verb} on {report.base[0]} ({abbreviate_oid(report.base[1])})"


def _list_notes(report: FitReport) -> Iterator[str]:
    if report.with_settings:
        subject = format_names([report.changes[change][0] for change in sorted(report.with_settings)])
        verb = "change" if len(report.with_settings) > 1 else "changes"
        yield f"{subject} {verb} gitsched.yaml. These settings were not applied: those of {report.base[0]} count for each set."
    if not report.found.is_complete:
        yield _NOT_ALL if len(report.found.sequence) < len(report.changes) else _NO_PARTS


def _describe_change(report: FitReport, change: int) -> Iterator[tuple[str, SetVerdict]]:
    """Yield sentences about what a change needs, and what keeps it out, with the reasons."""
    found, name, own = report.found, report.changes[change][0], frozenset((change,))
    alone, left = report.verdicts.get(own), frozenset(range(len(report.changes))).difference(found.sequence)
    if alone is None:
        yield f"{name} was not tried", SetVerdict()
        return
    if not alone.fits:
        after = " or ".join(_name_set(report, needed) for needed in found.list_requirements_of(change))
        yield (f"{name} fits only after {after}. Alone it does not fit" if after else f"{name} does not fit"), alone
        return
    told = [others for others in found.list_conflicts_of(change) if change in left or (not others & left and change > max(others))]
    for others in told:
        negated = "is not" if len(others) == 1 else f"are not {'both' if len(others) == 2 else 'all'}"
        yield f"{name} fits only if {_name_set(report, others)} {negated} merged first", report.verdicts[others | own]
    if change in left and not told:
        last = report.verdicts.get(own.union(found.sequence))
        yield f"{name} {'was not tried' if last is None else 'does not fit'} after the others", last or SetVerdict()


def _name_set(report: FitReport, changes: Iterable[int]) -> str:
    return " and ".join(report.changes[change][0] for change in sorted(changes))


def _list_reasons(verdict: SetVerdict, width: int) -> list[str]:
    return [*wrap_all(_list_texts(verdict), width, "  ")]


def _list_texts(verdict: SetVerdict) -> list[str]:
    files = [f"conflicts in {format_names(verdict.files, FILES_SHOWN)}"] if verdict.files else []
    shown = count_shown(len(verdict.reasons), REASONS_SHOWN)
    return [*files, *verdict.reasons[:shown], *count_omitted(len(verdict.reasons) - shown)]


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
