"""gitsched simulate: what if a cluster, a zone, a region or a provider is lost, drained or added, or workloads grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import click

from gitsched.cli import events, exit_codes, options, output

if TYPE_CHECKING:
    from gitsched.plan.scenario import Scenario
    from gitsched.reconcile.settings import Settings
    from gitsched.report.blocks import Block

T = TypeVar("T")


@click.command("simulate")
@click.option(
    "--lose", metavar="WHAT", multiple=True, help="CLUSTER, or node/NAME, zone/NAME, region/NAME or provider/NAME is lost."
)
@click.option("--drain", metavar="WHAT", multiple=True, help="As --lose, but what tolerates every taint stays.")
@click.option("--add", metavar="FILE", multiple=True, help="Clusters are added whose documents are in FILE; `-` is stdin.")
@click.option("--add-like", metavar="CLUSTER=NEW", multiple=True, help="A cluster NEW is added that is like CLUSTER, and empty.")
@click.option(
    "--scale",
    metavar="WORKLOADS=FACTOR",
    multiple=True,
    help="Replicas are multiplied, and rounded up. WORKLOADS is [[KIND/]NAMESPACE/]NAME with * and ?, or labels as KEY=VALUE,...",
)
@click.option("--fresh", is_flag=True, help="Forget what was decided before: everything is placed as if for the first time.")
@click.option(
    "--sweep", type=click.Choice(list(events.SWEEPS)), help="Lose each of them, one at a time: the resilience of the whole fleet."
)
@click.option(
    "--lost",
    type=click.Choice(["gone", "silent"]),
    default="gone",
    show_default=True,
    help="What --lose and --sweep mean: gone for good, or it does not answer, and only what policies do about that happens.",
)
@click.option("--against", metavar="REVISION", help="With --sweep: who fares worse, or better, than at this revision.")
@click.option("--revision", metavar="REVISION", help="Simulate at this branch, tag or commit.")
@click.option("--worktree", is_flag=True, help="Simulate the files as they lie in the worktree.")
@click.option(
    "--fail-on",
    type=click.Choice(["short", "none"]),
    default="none",
    show_default=True,
    help="What makes the exit code 1: replicas or workloads without a place, with --against more of them; nothing.",
)
@options.SOURCE
@options.TARGET
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
    """Say what would move, what would no longer fit and how many replicas would be missing. Nothing is written, no cluster is asked.

    What is lost, drained, added and scaled happens all at once. --sweep loses one after the other instead.
    """
    if worktree and chosen["revision"] is not None:
        raise click.UsageError("--worktree and --revision exclude each other")
    asked = any((lose, drain, add, add_like, scale, fresh))
    if asked == bool(sweep):
        raise click.UsageError("say either what happens (--lose, --drain, --add, --add-like, --scale, --fresh) or --sweep")
    if against is not None and not sweep:
        raise click.UsageError("--against needs --sweep")
    output.start_log(log_format)
    from gitsched.plan.scenario import Scenario
    from gitsched.reconcile.settings import Settings

    settings = Settings(location=location, worktree=worktree, output=output_repository, **chosen)
    if sweep:
        what = (settings, events.SWEEPS[sweep], lost == "silent", form)
        failed = _sweep(*what) if against is None else _compare(against, *what)
    else:
        scenario = Scenario(
            lose=tuple(map(events.read_scope, lose)),
            drain=tuple(map(events.read_scope, drain)),
            add=tuple(body for name in add for body in events.read_clusters(name)),
            copies=tuple(map(events.read_copy, add_like)),
            scale=tuple(map(events.read_scaling, scale)),
            fresh=fresh,
            silent=lost == "silent",
        )
        failed = _simulate(settings, scenario, form)
    return exit_codes.FINDINGS if failed and fail_on == "short" else exit_codes.DONE


def _simulate(settings: Settings, scenario: Scenario, form: str) -> bool:
    from gitsched.reconcile.simulation import simulate_source
    from gitsched.report import simulation, simulation_blocks, simulation_data

    with output.progress("Simulating"):
        found = simulate_source(settings, scenario)
    writer = Writer(
        "Simulation", simulation.write_simulation, simulation_blocks.list_event_blocks, simulation_data.describe_simulation
    )
    writer.show(form, found)
    return bool(found.harmed)


def _sweep(settings: Settings, by: str, silent: bool, form: str) -> bool:
    from gitsched.reconcile.simulation import sweep_source
    from gitsched.report import simulation, simulation_blocks, simulation_data

    with output.progress("Simulating"):
        found = sweep_source(settings, by, silent)
    writer = Writer(
        "Resilience", simulation.write_resilience, simulation_blocks.list_table_blocks, simulation_data.describe_resilience
    )
    writer.show(form, found)
    return any(row.harmed for row in found.rows)


def _compare(against: str, settings: Settings, by: str, silent: bool, form: str) -> bool:
    from gitsched.reconcile.simulation import compare_sources
    from gitsched.report import simulation, simulation_blocks, simulation_data

    with output.progress("Simulating"):
        found = compare_sources(settings._replace(revision=against, worktree=False), settings, by, silent)
    writer = Writer(
        "Resilience before and after",
        simulation.write_resilience_change,
        simulation_blocks.list_change_blocks,
        simulation_data.describe_resilience_change,
    )
    writer.show(form, found)
    return any(shift.worse for shift in found.shifts)


class Writer(NamedTuple, Generic[T]):
    """One result in every form."""

    title: str
    text: Callable[[T, int], str]
    blocks: Callable[[T], list[Block]]
    data: Callable[[T], dict[str, Any]]

    def show(self, form: str, value: T) -> None:
        from gitsched.report.blocks import write_html, write_markdown

        if form == "markdown":
            output.tell(write_markdown(self.blocks(value)))
        elif form == "html":
            output.show(write_html(self.title, self.blocks(value)))
        else:
            output.show_as(form, lambda width: self.text(value, width), lambda: self.data(value))
