"""gitsched history: which workload moved when, from where to where and why, from the commits of the output branch."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from gitsched.cli import exit_codes, formats, output
from gitsched.cli.workload_names import parse_clusters, parse_pattern
from gitsched.model.history import HistoryFilter
from gitsched.reconcile import RunSettings
from gitsched.reconcile.output.output_history import OutputHistory, open_history
from gitsched.report.history import describe_choice, describe_left_out, serialize_history, write_entry, write_overview
from gitsched.report.lines import abbreviate_oid, escape_unprintable

if TYPE_CHECKING:
    from gitsched.report.paint import Paint


def run(
    words: tuple[str, ...],
    namespace: str,
    cluster: str,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    start: str,
    form: str,
    color: str,
    log_format: str,
    location: str,
    output_repository: str | None,
    **chosen: Any,
) -> int:
    """Carry out the command, and return its exit code."""
    output.configure_logging(log_format)
    (name,) = parse_clusters((cluster,))
    wanted = HistoryFilter(parse_pattern(words), namespace, name, since, until, start)
    history = open_history(RunSettings(location=location, output=output_repository, **chosen), wanted)
    if form == "text":
        _show_text(history, limit, chosen["now"], output.choose_paint(color))
        return exit_codes.DONE
    entries = list(history.read_entries(limit))
    notes, left_out = history.list_notes(), _list_left_out(history)
    if form == "html":
        from gitsched.cli.html_reports import write_history  # needs jinja2

        output.show(write_history(history, entries, [*notes, *left_out], describe_choice(wanted)))
        return exit_codes.DONE
    formats.show_document(
        form, "", lambda: serialize_history(history.branch, history.head, entries, notes, history.next, history.end, left_out)
    )
    return exit_codes.DONE


def _list_left_out(history: OutputHistory) -> list[str]:
    return describe_left_out(history.chosen, newer=history.newer, has_older=history.has_older)


def _show_text(history: OutputHistory, limit: int, now: datetime, paint: Paint | None) -> None:
    """Write each entry as soon as it is read: several that no name chooses as one line each."""
    shown, is_overview, width = False, limit > 1 and not history.chosen.selects_moves, output.find_width()
    for note in history.list_notes():
        formats.show_text(f"note: {escape_unprintable(note)}\n")
    for entry in history.read_entries(limit):
        shown = True
        write = write_overview if is_overview else write_entry
        formats.show_text(write(entry, now=now, paint=paint, width=width))
    if shown and is_overview:
        formats.show_text(
            "\nOne commit with its workloads: gitsched history --from COMMIT -m 1; one workload: gitsched history NAME\n"
        )
    if not shown:
        unknown = escape_unprintable(history.describe_unknown())
        formats.show_text(f"No commit matches{unknown}{'' if unknown.endswith('?') else '.'}\n")
    for text in _list_left_out(history):
        formats.show_text(f"note: {text}\n")
    if history.end:
        formats.show_text(f"The history ends here: {escape_unprintable(history.end)}.\n")
    if history.next:
        formats.show_text(f"Older commits: --from {abbreviate_oid(history.next)}\n")
