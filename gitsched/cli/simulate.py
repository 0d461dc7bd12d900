"""gitsched simulate: show the effect of losing, draining or adding clusters, zones, regions or providers, or of scaling workloads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

from gitsched.cli import exit_codes, options, output, scenario_options
from gitsched.cli.worktree import NOT_PLANNED, note_uncommitted

if TYPE_CHECKING:
    from gitsched.model.finding import Finding
    from gitsched.reconcile.run_settings import RunSettings
    from gitsched.report.blocks import Block
    from gitsched.simulate.scenario import Scenario

T = TypeVar("T")


@click.command(
    "simulate",
    epilog=options.show_examples(
        ("The loss of a cluster", "simulate --lose cloud-1"),
        ("The loss of each region, one at a time", "simulate --sweep regions"),
        ("Twice the replicas in a namespace, with a new cluster", "simulate --scale 'shop/*=2' --add-like cloud-1=cloud-2"),
    ),
)
@click.option(
    "--lose",
    metavar="WHAT",
    multiple=True,
    shell_complete=options.complete_with("scopes"),
    help="Lose a CLUSTER, node/NAME, zone/NAME, region/NAME or provider/NAME.",
)
@click.option(
    "--drain",
    metavar="WHAT",
    multiple=True,
    shell_complete=options.complete_with("scopes"),
    help="As --lose, but workloads that tolerate all taints stay.",
)
@click.option("--add", metavar="FILE", multiple=True, help="Add the clusters of FILE; `-` is stdin.")
@click.option("--add-like", metavar="CLUSTER=NEW", multiple=True, help="Add an empty cluster NEW that is otherwise like CLUSTER.")
@click.option(
    "--scale",
    metavar="WORKLOADS=FACTOR",
    multiple=True,
    help="Multiply replicas, rounded up. WORKLOADS is [[KIND/]NAMESPACE/]NAME with * and ?, or labels as KEY=VALUE,...",
)
@click.option("--fresh", is_flag=True, help="Ignore previous placements: schedule all workloads as if for the first time.")
@click.option(
    "--sweep",
    type=click.Choice(list(scenario_options.FAILURE_DOMAINS)),
    help="Lose each of them, one at a time, to show the resilience of the fleet.",
)
@click.option(
    "--lost",
    type=click.Choice(["gone", "silent"]),
    default="gone",
    show_default=True,
    help="Meaning of --lose and --sweep: the cluster is removed (gone), or unreachable, so that only policies react (silent).",
)
@click.option(
    "--against",
    metavar="REVISION",
    shell_complete=options.complete_with("revisions"),
    help="With --sweep: compare with this revision.",
)
@click.option(
    "--revision", metavar="REVISION", shell_complete=options.complete_with("revisions"), help="Simulate this branch, tag or commit."
)
@click.option("--worktree", is_flag=True, help="Simulate the files of the worktree.")
@click.option(
    "--fail-on",
    type=click.Choice(["short", "none"]),
    default="none",
    show_default=True,
    help="Exit with 1 if replicas or workloads cannot be placed, with --against if more than before, or never.",
)
@options.SOURCE
@options.TARGET
@options.STATE
@options.FETCH
@options.NOW
@options.choose_format("text", "markdown", "json", "yaml", "html")
@options.LOG
def command(
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
    """Show which workloads would move, which would not fit, and how many replicas would be missing. Writes nothing, contacts no cluster.

    All events of the options happen at the same time. With --sweep, each loss is simulated on its own.
    """
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
    from gitsched.reconcile.run_settings import RunSettings
    from gitsched.simulate.scenario import Scenario

    settings = RunSettings(location=location, worktree=worktree, output=output_repository, **chosen)
    faults: list[Finding] = []
    if sweep:
        arguments = (settings, scenario_options.FAILURE_DOMAINS[sweep], lost == "silent", form, faults)
        failed = _simulate_failures(*arguments) if against is None else _compare_failures(against, *arguments)
    else:
        scenario = Scenario(
            lose=tuple(map(scenario_options.parse_scope, lose)),
            drain=tuple(map(scenario_options.parse_scope, drain)),
            add=tuple(body for name in add for body in scenario_options.read_clusters(name)),
            copies=tuple(map(scenario_options.parse_copy, add_like)),
            scale=tuple(map(scenario_options.parse_scaling, scale)),
            fresh=fresh,
            unreachable=lost == "silent",
        )
        failed = _simulate(settings, scenario, form, faults)
    output.show_faults(faults)
    return exit_codes.FINDINGS if faults or (failed and fail_on == "short") else exit_codes.DONE


def _simulate(settings: RunSettings, scenario: Scenario, form: str, faults: list[Finding]) -> bool:
    from gitsched.reconcile.review.source_simulation import simulate_source
    from gitsched.report import serialization, simulation, simulation_blocks

    writer = ResultWriter(
        form,
        "Simulation",
        simulation.write_simulation,
        simulation_blocks.list_simulation_blocks,
        serialization.serialize_simulation,
    )
    with output.show_progress("Simulating") as progress:
        settings = settings._replace(progress=progress)
        found = simulate_source(settings, scenario, faults, writer.write)
    writer.show()
    return bool(found.degraded)


def _simulate_failures(settings: RunSettings, by: str, unreachable: bool, form: str, faults: list[Finding]) -> bool:
    from gitsched.reconcile.review.source_simulation import simulate_source_losses
    from gitsched.report import serialization, simulation, simulation_blocks

    writer = ResultWriter(
        form,
        "Resilience",
        simulation.write_resilience,
        simulation_blocks.list_resilience_blocks,
        serialization.serialize_resilience,
    )
    with output.show_progress("Simulating") as progress:
        settings = settings._replace(progress=progress)
        found = simulate_source_losses(settings, by, faults, writer.write, unreachable=unreachable)
    writer.show()
    return any(row.degraded for row in found.rows)


def _compare_failures(against: str, settings: RunSettings, by: str, unreachable: bool, form: str, faults: list[Finding]) -> bool:
    from gitsched.reconcile.review.source_simulation import compare_source_resilience
    from gitsched.report import serialization, simulation, simulation_blocks

    writer = ResultWriter(
        form,
        "Resilience before and after",
        simulation.write_resilience_change,
        simulation_blocks.list_resilience_change_blocks,
        serialization.serialize_resilience_change,
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
        from gitsched.report.blocks import blocks_to_html, blocks_to_markdown

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
            output.show_text(self._written)
        else:
            output.show_as(self._form, lambda _: self._written, lambda: self._serialized)
