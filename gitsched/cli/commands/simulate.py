"""gitsched simulate: show the effect of losing, draining or adding clusters, zones, regions or providers, or of scaling workloads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

from gitsched.cli import exit_codes, formats, output, scenario_options, scenario_values
from gitsched.cli.worktree import NOT_PLANNED, note_uncommitted
from gitsched.reconcile.review.source_simulation import compare_source_resilience, simulate_source, simulate_source_losses
from gitsched.reconcile.run_settings import RunSettings
from gitsched.report import serialized_simulation, simulation, simulation_blocks
from gitsched.report.blocks import blocks_to_html, blocks_to_markdown
from gitsched.simulate.scenario import Scenario

if TYPE_CHECKING:
    from gitsched.model.finding import Finding
    from gitsched.report.blocks import Block


T = TypeVar("T")


def run(
    lose: tuple[str, ...],
    drain: tuple[str, ...],
    add: tuple[str, ...],
    add_like: tuple[str, ...],
    scale: tuple[str, ...],
    fresh: bool,
    sweep: str | None,
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
    if worktree and chosen["revision"] is not None:
        raise click.UsageError("--worktree and --revision exclude each other")
    has_event = any((lose, drain, add, add_like, scale, fresh))
    if has_event == bool(sweep):
        raise click.UsageError("use either an event (--lose, --drain, --add, --add-like, --scale, --fresh) or --sweep")
    if against is not None and not sweep:
        raise click.UsageError("--against requires --sweep")
    output.configure_logging(log_format)
    if not worktree and chosen["revision"] is None and chosen["branch"] is None:
        note_uncommitted(location, log_format, NOT_PLANNED)

    settings = RunSettings(location=location, worktree=worktree, output=output_repository, **chosen)
    faults: list[Finding] = []
    if sweep:
        arguments = (settings, scenario_options.FAILURE_DOMAINS[sweep], lost == "silent", form, faults)
        failed = _simulate_failures(*arguments) if against is None else _compare_failures(against, *arguments)
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


def _simulate(settings: RunSettings, scenario: Scenario, form: str, faults: list[Finding]) -> bool:
    writer = ResultWriter(
        form,
        "Simulation",
        simulation.write_simulation,
        simulation_blocks.list_simulation_blocks,
        serialized_simulation.serialize_simulation,
    )
    with output.show_progress("Simulating") as progress:
        settings = settings._replace(progress=progress)
        found = simulate_source(settings, scenario, faults, writer.write)
    writer.show()
    return bool(found.degraded)


def _simulate_failures(settings: RunSettings, by: str, unreachable: bool, form: str, faults: list[Finding]) -> bool:
    writer = ResultWriter(
        form,
        "Resilience",
        simulation.write_resilience,
        simulation_blocks.list_resilience_blocks,
        serialized_simulation.serialize_resilience,
    )
    with output.show_progress("Simulating") as progress:
        settings = settings._replace(progress=progress)
        found = simulate_source_losses(settings, by, faults, writer.write, unreachable=unreachable)
    writer.show()
    return any(row.degraded for row in found.rows)


def _compare_failures(against: str, settings: RunSettings, by: str, unreachable: bool, form: str, faults: list[Finding]) -> bool:
    writer = ResultWriter(
        form,
        "Resilience before and after",
        simulation.write_resilience_change,
        simulation_blocks.list_resilience_change_blocks,
        serialized_simulation.serialize_resilience_change,
    )
    with output.show_progress("Simulating") as progress:
        settings = settings._replace(progress=progress)
        base = settings._replace(revision=against, worktree=False)
        found = compare_source_resilience(base, settings, by, faults, writer.write, unreachable=unreachable)
    writer.show()
    return any(change.is_worse for change in found.impact_changes)


class ResultWriter(Generic[T]):
    """Writes one kind of result in one format. `write` makes the text, in which a bug may show, and `show` prints it."""

    def __init__(
        self,
        form: str,
        title: str,
        text: Callable[[T, int], str],
        blocks: Callable[[T], list[Block]],
        data: Callable[[T], dict[str, Any]],
    ) -> None:
        self._form, self._title, self._text, self._blocks, self._data = form, title, text, blocks, data
        self._written = ""
        self._serialized: dict[str, Any] = {}

    def write(self, value: T) -> None:
        if self._form == "text":
            self._written = self._text(value, output.find_width())
        elif self._form == "markdown":
            self._written = blocks_to_markdown(self._blocks(value))
        elif self._form == "html":
            self._written = blocks_to_html(self._title, self._blocks(value))
        else:
            self._serialized = self._data(value)

    def show(self) -> None:
        if self._form == "html":
            output.show(self._written)
        elif self._form == "markdown":
            formats.show_text(self._written)
        else:
            formats.show_as(self._form, lambda _: self._written, lambda: self._serialized)
