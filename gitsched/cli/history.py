"""gitsched history: which workload moved when, from where to where and why, from the commits of the output branch."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from gitsched.cli import exit_codes, options, output
from gitsched.model.history import HistoryFilter


def _read_time(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> datetime | None:
    from gitsched.model.time import parse_time

    time = parse_time(value) or parse_time(f"{value}T00:00:00Z")
    if value is not None and time is None:
        raise click.BadParameter(f"{value!r} is neither a day such as 2026-01-12 nor an RFC 3339 time such as 2026-01-12T09:00:00Z")
    return time


@click.command(
    "history",
    epilog=options.show_examples(
        ("The last commits of the output branch", "history"),
        ("One workload since a day", "history shop/web --since 2026-01-12"),
        ("What arrived in a cluster or left it, as a page", "history --cluster cloud-1 -o html"),
    ),
)
@click.argument("workload", default="", metavar="[[KIND/][NAMESPACE/]NAME]", shell_complete=options.complete_with("names"))
@click.option(
    "--namespace",
    default="",
    metavar="NAME",
    shell_complete=options.complete_with("namespaces"),
    help="Only workloads of this namespace.",
)
@click.option(
    "--cluster",
    default="",
    metavar="NAME",
    shell_complete=options.complete_with("clusters"),
    help="Only workloads that arrive in this cluster, leave it, or are scaled there.",
)
@click.option("--since", metavar="TIME", callback=_read_time, help="Only commits since this day (UTC) or time (RFC 3339).")
@click.option("--until", metavar="TIME", callback=_read_time, help="Only commits until then.")
@click.option(
    "-n",
    "--max-count",
    "limit",
    type=click.IntRange(min=1, max=10_000),
    default=20,
    show_default=True,
    metavar="NUMBER",
    help="The number of commits.",
)
@click.option(
    "--from", "start", default="", metavar="COMMIT", help="Start at this commit of the output branch; its head by default."
)
@options.SOURCE
@options.TARGET
@options.FETCH
@options.NOW
@options.choose_format("text", "json", "yaml", "html")
@options.LOG
def command(
    workload: str,
    namespace: str,
    cluster: str,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    start: str,
    form: str,
    log_format: str,
    location: str,
    output_repository: str | None,
    **chosen: Any,
) -> int:
    """Show which workload moved when, from where to where, and why: the commits of the output branch, the newest first.

    Everything comes from the records of the branch and from the commits of the source; no plan is made. WORKLOAD and names may contain *
    and ?.
    """
    from gitsched.reconcile import RunSettings
    from gitsched.reconcile.output.output_history import open_history

    output.configure_logging(log_format)
    wanted = HistoryFilter(workload, namespace, cluster, since, until, start)
    history = open_history(RunSettings(location=location, output=output_repository, **chosen), wanted)
    if form == "text":
        _show_text(history, limit)
        return exit_codes.DONE
    entries = list(history.read_entries(limit))
    notes = history.list_notes()
    if form == "html":
        from gitsched.report.page.history import HistoryPage, write_history_page

        output.show(write_history_page(HistoryPage(history.branch, history.head, entries, notes, history.next, history.end)))
        return exit_codes.DONE
    from gitsched.report.history import serialize_history

    output.show_document(
        form, "", lambda: serialize_history(history.branch, history.head, entries, notes, history.next, history.end)
    )
    return exit_codes.DONE


def _show_text(history: Any, limit: int) -> None:
    """Write each entry as soon as it is read."""
    from gitsched.report.history import write_entry
    from gitsched.report.lines import abbreviate_oid, escape_unprintable

    shown = False
    for note in history.list_notes():
        output.show_text(f"note: {escape_unprintable(note)}\n")
    for entry in history.read_entries(limit):
        shown = True
        output.show_text(write_entry(entry))
    if not shown:
        output.show_text("No commit matches.\n")
    if history.end:
        output.show_text(f"The history ends here: {escape_unprintable(history.end)}.\n")
    if history.next:
        output.show_text(f"Older commits: --from {abbreviate_oid(history.next)}\n")
