"""gitsched simulate: show the effect of losing, draining or adding clusters, zones, regions or providers, or of scaling workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import exit_codes, formats, output, scenario_values
from gitsched.cli.commands import losses
from gitsched.cli.result_writer import ResultWriter
from gitsched.cli.worktree import NOT_PLANNED, note_uncommitted
from gitsched.reconcile.review.source_simulation import compare_source_resilience, simulate_source
from gitsched.reconcile.run_settings import RunSettings
from gitsched.report import serialized_simulation, simulation, simulation_blocks
from gitsched.simulate.scenario import Scenario

if TYPE_CHECKING:
    from gitsched.model.finding import Finding
    from gitsched.model.simulation import Resilience


def run(
    merged: tuple[str, ...],
    lose: tuple[str, ...],
    drain: tuple[str, ...],
    add: tuple[str, ...],
    add_like: tuple[str, ...],
    scale: tuple[str, ...],
    fresh: bool,
    lost: str,
    against: str | None,
    worktree: bool,
    fail_on: str,
    form: str,
    log_format: str,
    location: str,
    output_repository: str | None,
    **chosen: Any,
) -> int:
    """Carry out the command, and return its exit code."""
    sweep = losses.LossOptions(**{name: chosen.pop(name) for name in losses.LossOptions._fields})
    if worktree and chosen["revision"] is not None:
        raise click.UsageError("--worktree and --revision exclude each other")
    has_event = any((lose, drain, add, add_like, scale, fresh))
    output.configure_logging(log_format)
    if merged:
        return losses.merge(merged, _make_table_writer(form), has_event or bool(sweep.sweep), fail_on)
    if has_event == bool(sweep.sweep):
        raise click.UsageError("use either an event (--lose, --drain, --add, --add-like, --scale, --fresh) or --sweep")
    if against is not None and not sweep.sweep:
        raise click.UsageError("--against requires --sweep")
    request = losses.read_request(sweep, lost == "silent", against)
    if not worktree and chosen["revision"] is None and chosen["branch"] is None:
        note_uncommitted(location, log_format, NOT_PLANNED)

    settings = RunSettings(location=location, worktree=worktree, output=output_repository, **chosen)
    faults: list[Finding] = []
    if request is not None and against is not None:
        failed = _compare_failures(against, settings, request.kind, request.unreachable, form, faults)
    elif request is not None:
        failed = losses.simulate(settings, request, sweep, _make_table_writer(form), faults)
    else:
        scenario = Scenario(
            lose=tuple(map(scenario_values.parse_scope, lose)),
            drain=tuple(map(scenario_values.parse_scope, drain)),
            add=tuple(body for name in add for body in scenario_values.read_clusters(name)),
            copies=tuple(map(scenario_values.parse_copy, add_like)),
            scale=tuple(map(scenario_values.parse_scaling, scale)),
            fresh=fresh,
            unreachable=lost == "silent",
        )
        failed = _simulate(settings, scenario, form, faults)
    formats.show_faults(faults)
    return exit_codes.FINDINGS if faults or (failed and fail_on == "short") else exit_codes.DONE


def _make_table_writer(form: str) -> ResultWriter[Resilience]:
    return ResultWriter(
        form,
        "Resilience",
        simulation.write_resilience,
        simulation_blocks.list_resilience_blocks,
        serialized_simulation.serialize_resilience,
        file_name="resilience",
    )


def _simulate(settings: RunSettings, scenario: Scenario, form: str, faults: list[Finding]) -> bool:
    writer = ResultWriter(
        form,
        "Simulation",
        simulation.write_simulation,
        simulation_blocks.list_simulation_blocks,
        serialized_simulation.serialize_simulation,
        file_name="simulation",
    )
    with output.show_progress("Simulating") as progress:
        settings = settings._replace(progress=progress)
        found = simulate_source(settings, scenario, faults, writer.write, maps_fleet=form == "html")
    writer.show()
    return bool(found.degraded)


def _compare_failures(against: str, settings: RunSettings, by: str, unreachable: bool, form: str, faults: list[Finding]) -> bool:
    writer = ResultWriter(
        form,
        "Resilience before and after",
        simulation.write_resilience_change,
        simulation_blocks.list_resilience_change_blocks,
        serialized_simulation.serialize_resilience_change,
        file_name="resilience-change",
    )
    with output.show_progress("Simulating") as progress:
        settings = settings._replace(progress=progress)
        base = settings._replace(revision=against, worktree=False)
        found = compare_source_resilience(base, settings, by, faults, writer.write, unreachable=unreachable)
    writer.show()
    return any(change.is_worse for change in found.impact_changes)
