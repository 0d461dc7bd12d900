"""gitsched rebalance: write a request to schedule workloads again, or to bring them back, and show what it would move."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import exit_codes, formats, output
from gitsched.cli.restoration import format_replicas, serialize_left
from gitsched.cli.workload_names import parse_workloads
from gitsched.cli.worktree import find_worktree_root
from gitsched.model.errors import Permanent
from gitsched.model.finding import choose_form, format_count, format_names
from gitsched.model.time import format_time
from gitsched.reconcile import RunSettings
from gitsched.reconcile.reschedule import WorkloadSelection, is_read, make_reschedule_file, write_reschedule_file
from gitsched.report.lines import escape_unprintable, format_words, list_limited
from gitsched.report.serialization import API_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gitsched.model.document import Key
    from gitsched.model.labels import Selector
    from gitsched.reconcile.reschedule import RescheduleFile
    from gitsched.simulate.left_data import LeftData
    from gitsched.simulate.reschedule_request import RescheduledWorkload, WaitingWorkload


MAX_SHOWN_WORKLOADS = 50
"""Workloads that the text lists; JSON contains all."""


def run(
    workloads: tuple[str, ...],
    namespace: str | None,
    labels: Selector | None,
    everywhere: bool,
    displaced: bool,
    revision: str | None,
    only_unavailable: bool,
    no_companions: bool,
    ttl: timedelta | None,
    write: bool,
    path: str | None,
    form: str,
    log_format: str,
    location: str,
    output_repository: str | None,
    **chosen: Any,
) -> int:
    """Carry out the command, and return its exit code."""
    _check_selection(workloads, namespace, labels, everywhere, displaced, revision)
    _check_options(only_unavailable, path, write, takes_others=displaced or revision is not None)
    named = parse_workloads(workloads, namespace) if workloads else []
    output.configure_logging(log_format)
    root = find_worktree_root(location)
    if write and root is None:
        raise Permanent(f"{location} is not a worktree, so the request cannot be written to a file")
    takes_all = displaced or (revision is not None and labels is None)
    scope = "" if everywhere else namespace or ("" if takes_all else "default")
    settings = RunSettings(
        location=location, worktree=root is not None, output=output_repository, observations="recorded", trusted=False, **chosen
    )
    selection = WorkloadSelection(tuple(named), labels, displaced, scope, only_unavailable)
    if revision is not None:
        from gitsched.cli.restored_placements import bring_back  # few requests bring workloads back

        worktree = root if write else None
        return bring_back(settings, revision, selection, ttl, form, worktree, path, companions=not no_companions)
    with output.show_progress("Planning") as progress:
        settings = settings._replace(progress=progress)
        found, held, waiting, unplaced = make_reschedule_file(settings, selection, ttl, not no_companions)
    others = f"{describe_held(held)}{describe_waiting(waiting)}{_describe_unplaced(unplaced)}"
    if found is None:
        none = (
            "No workload is displaced: each one would run on the same clusters if it were scheduled now. What left a cluster and fits "
            "where it is goes back with gitsched rebalance --to COMMIT: gitsched status names the commit for three days"
        )
        click.echo(f"There is nothing to request.\n{others}".rstrip() if others else none, err=True)
        return exit_codes.DONE
    target = path or found.path
    if not write or root is None:
        formats.show_document(form, found.text, lambda: dict(found.request.document.body))
        click.echo(f"{describe_request(found)}{others}", err=True, nl=False)
        return exit_codes.DONE
    verb = "wrote" if write_reschedule_file(root, target, found.text) else "unchanged:"
    formats.show_as(
        form,
        lambda _: f"{verb} {escape_unprintable(target)}\n{describe_request(found)}{others}",
        lambda: {"path": target, **serialize_request(found, held, waiting)},
    )
    if not is_read(settings, found.request.document.key):
        raise Permanent(f"{target} is not read: .sourceignore or source.paths hides it; choose another file with --file")
    return exit_codes.DONE


def _check_options(only_unavailable: bool, path: str | None, write: bool, *, takes_others: bool) -> None:
    """Raise a usage error unless only chosen workloads keep what is available, and a file is written if it is named."""
    if only_unavailable and takes_others:
        raise click.UsageError("--only-unavailable is for named workloads, or for -l SELECTOR")
    if path is not None and not write:
        raise click.UsageError("--file needs --write")


def _check_selection(
    workloads: tuple[str, ...],
    namespace: str | None,
    labels: Selector | None,
    everywhere: bool,
    displaced: bool,
    revision: str | None,
) -> None:
    """Raise a usage error unless the workloads are chosen in exactly one way."""
    chosen_ways = sum((bool(workloads), labels is not None, displaced))
    if revision is not None and (displaced or chosen_ways > 1):
        raise click.UsageError("--to is for all workloads that are elsewhere now, for named ones, or for -l SELECTOR")
    if revision is None and chosen_ways != 1:
        raise click.UsageError("name workloads, such as deploy/web or shop/web, or use either -l SELECTOR or --all-displaced")
    if everywhere and (namespace is not None or labels is None):
        raise click.UsageError("--all-namespaces is for -l, without -n")


def describe_request(found: RescheduleFile) -> str:
    """Return what a request moves, which workloads stay and why, and which objects it leaves out."""
    request = found.request
    moved = [row for row in request.workloads if row.moves]
    stay = [row for row in request.workloads if not row.moves]
    lines = [f"{request.document.key.title} {'moves' if moved else 'moves nothing'}{':' if moved else '.'}"]
    lines += list_limited(["\n".join(_describe_move(row)) for row in moved], MAX_SHOWN_WORKLOADS, "  and {} more")
    if stay:
        lines.append(f"Stays: {_list_keys(row.key for row in stay)}")
    lines += [f"  {remark}" for remark in request.remarks]
    if request.shared:
        lines.append(f"Not included, because other workloads use it, too: {_list_keys(request.shared)}")
    if found.exists:
        when = f"when its moves are allowed: {found.withheld}" if found.withheld else "by the next reconcile of its commit"
        lines.append(f"The source has this request already; it is carried out {when}.")
    return "\n".join(lines) + "\n"


def describe_held(held: Sequence[LeftData]) -> str:
    """Return which workloads with data a request leaves out, and how to name them; "" without any."""
    lines = list_limited([f"  {_describe_left(left)}" for left in held], MAX_SHOWN_WORKLOADS, "  and {} more")
    return "\n".join(["Held, and not included:", *lines, ""]) if held else ""


def describe_waiting(waiting: Sequence[WaitingWorkload]) -> str:
    """Return which workloads can go to other clusters only when their evictions are over, and how; "" without any."""
    if not waiting:
        return ""
    clusters = format_names(sorted({name for one in waiting for name in one.clusters}))
    until = format_time(max(one.until for one in waiting))
    lines = [f"Evictions from {clusters} still run, until {until}. Then:"]
    groups = {
        "by itself": ("returns", "return", [one.key for one in waiting if one.returns]),
        "with gitsched rebalance --all-displaced": ("can return", "can return", [one.key for one in waiting if not one.returns]),
    }
    for how, (verb, plural, keys) in groups.items():
        if keys:
            themselves = how if len(keys) == 1 else how.replace("itself", "themselves")
            lines.append(
                f"  {format_count(len(keys), 'workload')} {choose_form(len(keys), verb, plural)} {themselves}: {_list_keys(keys)}"
            )
    return "\n".join([*lines, ""])


def _describe_unplaced(keys: Sequence[Key]) -> str:
    """Return which workloads a request does not help, because they fit in no cluster; "" without any."""
    if not keys:
        return ""
    count = format_count(len(keys), "workload is unplaced and fits", "workloads are unplaced and fit")
    return f"{count} in no cluster now: {_list_keys(keys)}. What each cluster lacks: gitsched explain {format_words(keys[0])}\n"


def _describe_left(left: LeftData) -> str:
    namespace = f"-n {left.key.namespace} " if left.key.namespace else ""
    return f"{left.key.title} {left}. To move it all the same: gitsched rebalance {namespace}{left.key.kind}/{left.key.name}"


def _describe_move(row: RescheduledWorkload) -> list[str]:
    role = {"companion": " (belongs to it)", "dependency": " (follows)"}.get(row.role, "")
    line = f"  {row.key.title}{role}: {format_replicas(row.before)} -> {format_replicas(row.after)}"
    return [line, f"    it {row.left}"] if row.left is not None else [line]


def _list_keys(keys: Iterable[Key]) -> str:
    return format_names([key.title for key in keys], MAX_SHOWN_WORKLOADS)


def serialize_request(found: RescheduleFile, held: Sequence[LeftData], waiting: Sequence[WaitingWorkload]) -> dict[str, Any]:
    """Return a request and its effect as data, with the workloads that it leaves out because they are `held`, or wait for evictions."""
    request = found.request
    return {
        "apiVersion": API_VERSION,
        "kind": "RescheduleRequest",
        "document": request.document.body,
        "workloads": [
            {"workload": row.key.title, "role": row.role, "before": dict(row.before), "after": dict(row.after)}
            | ({"leaves": serialize_left(row.left)} if row.left is not None else {})
            for row in request.workloads
        ],
        "held": [{"workload": left.key.title, **serialize_left(left)} for left in held],
        "waiting": [
            {"workload": one.key.title, "clusters": list(one.clusters), "until": format_time(one.until), "returns": one.returns}
            for one in waiting
        ],
        "notIncluded": [key.title for key in request.shared],
        "remarks": list(request.remarks),
    }
