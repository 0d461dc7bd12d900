"""`gitsched simulate --sweep`: losses that are simulated one by one, on all cores or in shards."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitsched.apis.registered import Registered
from gitsched.cli import exit_codes, output, scenario_options
from gitsched.cli.failure_rates import read_failure_rates
from gitsched.model.errors import Permanent
from gitsched.model.losses import RANDOM, LossRequest
from gitsched.model.simulation import Resilience
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.review.loss_runs import Shard, prepare_losses, run_losses
from gitsched.reconcile.review.loss_shards import (
    MAX_SHARDS,
    ShardHeader,
    describe_plan,
    make_shard,
    merge_shards,
    write_shard,
)
from gitsched.reconcile.review.source_simulation import simulate_source_losses, use_source_fleet

if TYPE_CHECKING:
    from gitsched.cli.result_writer import ResultWriter
    from gitsched.model.finding import Finding
    from gitsched.reconcile.run import Fetched
    from gitsched.reconcile.run_settings import RunSettings
    from gitsched.simulate.baseline import Baseline


_COMPUTE_SHARD = Registered("gitsched.cli.dask_worker", "compute_shard")
_CHECK_ADDRESS = Registered("gitsched.reconcile.review.dask_losses", "check_address")
_SIMULATE_ON_DASK = Registered("gitsched.reconcile.review.dask_losses", "simulate_on_dask")
_SIZE = 3
"""The number of clusters of a random loss without --size."""


class LossOptions(NamedTuple):
    """The options of a list of losses."""

    sweep: str | None
    samples: int | None
    rates: str | None
    size: int | None
    seed: int | None
    jobs: int | None
    shard: str | None
    out: str | None
    dask: str | None


def read_request(options: LossOptions, unreachable: bool, against: str | None) -> LossRequest | None:
    """Return the losses that the options ask for; None without --sweep. A combination without meaning is a usage error."""
    random = {"--samples": options.samples, "--rates": options.rates, "--size": options.size, "--seed": options.seed}
    others = {"--jobs": options.jobs, "--shard": options.shard, "--out": options.out, "--dask": options.dask}
    if options.sweep is None:
        _refuse({**random, **others}, "requires --sweep")
        return None
    kind = {**scenario_options.FAILURE_DOMAINS, **scenario_options.MANY_LOSSES}[options.sweep]
    if (options.shard is None) != (options.out is None):
        raise click.UsageError("use --shard and --out together")
    if against is not None and (kind in scenario_options.MANY_LOSSES.values() or options.shard is not None):
        raise click.UsageError("--against is for single losses: clusters, nodes, zones, regions or providers, without --shard")
    if options.dask is not None:
        _refuse({"--jobs": options.jobs, "--shard": options.shard, "--against": against}, "and --dask exclude each other")
    if kind != RANDOM:
        _refuse(random, "requires --sweep random")
        return LossRequest(kind, unreachable)
    if options.samples is None:
        raise click.UsageError("--sweep random requires --samples N")
    if options.rates is not None:
        _refuse({"--size": options.size}, "and --rates exclude each other: rates say what is lost")
    causes = read_failure_rates(Path(options.rates)) if options.rates is not None else ()
    size = 0 if causes else options.size or _SIZE
    return LossRequest(kind, unreachable, options.samples, size, options.seed or 0, causes)


def _refuse(given: Mapping[str, object], why: str) -> None:
    """Raise a usage error for the first option that is given."""
    for name, value in given.items():
        if value is not None:
            raise click.UsageError(f"{name} {why}")


def simulate(
    settings: RunSettings,
    request: LossRequest,
    options: LossOptions,
    writer: ResultWriter[Resilience],
    faults: list[Finding],
) -> bool:
    """Simulate losses and show the table, or write the file of a shard. Return whether a loss leaves replicas missing."""
    if options.shard is not None and options.out is not None:
        _write_shard(settings, request, options.jobs, parse_shard(options.shard), Path(options.out), faults)
        return False
    with output.show_progress("Simulating", timed=True) as progress:
        settings = settings._replace(progress=progress)
        if options.dask is not None:
            found = _simulate_on_dask(settings, request, options.dask, writer, faults)
        else:
            found = simulate_source_losses(settings, request, faults, writer.write, options.jobs)
    writer.show()
    return found.degraded_losses > 0


def _simulate_on_dask(
    settings: RunSettings, request: LossRequest, address: str, writer: ResultWriter[Resilience], faults: list[Finding]
) -> Resilience:
    if settings.worktree:
        raise click.UsageError("--worktree and --dask exclude each other: workers read commits")
    if find_spec("distributed") is None:
        raise Permanent("--dask needs the package distributed: pip install 'gitsched[dask]'")
    _CHECK_ADDRESS(address)
    compute = _COMPUTE_SHARD.load()

    def answer(baseline: Baseline, fetched: Fetched) -> Resilience:
        found: Resilience = _SIMULATE_ON_DASK(address, compute, settings, request, baseline, fetched)
        return found

    return use_source_fleet(settings, answer, faults, writer.write)


def _write_shard(
    settings: RunSettings, request: LossRequest, jobs: int | None, shard: Shard, path: Path, faults: list[Finding]
) -> None:
    def answer(baseline: Baseline, fetched: Fetched) -> ShardHeader:
        run = prepare_losses(baseline, request)
        header, part = make_shard(run, shard, describe_plan(fetched, run))
        write_shard(path, header, run_losses(part, jobs, progress))
        return header

    with output.show_progress("Simulating", timed=True) as progress:
        found = use_source_fleet(settings._replace(progress=progress), answer, faults, lambda *_: None)
    click.echo(
        f"Shard {shard.number} of {shard.shards}: {found.losses:,} of {found.total:,} losses simulated, results in {path}.",
        err=True,
    )


def parse_shard(text: str) -> Shard:
    """Return the shard of I/N."""
    number, slash, shards = text.partition("/")
    if slash and number.isascii() and shards.isascii() and number.isdecimal() and shards.isdecimal():
        found = Shard(int(number[:9]), int(shards[:9]))
        if 1 <= found.number <= found.shards <= MAX_SHARDS:
            return found
    raise click.UsageError(f"--shard {text!r} is not I/N with numbers from 1 to N, such as 1/4; N is at most {MAX_SHARDS:,}")


def merge(words: tuple[str, ...], writer: ResultWriter[Resilience], has_event: bool, fail_on: str) -> int:
    """Show the table of all shards, given the words of the command, and return its exit code."""
    if words[0] != "merge":
        raise click.UsageError(f"unexpected argument {words[0][:100]!r}; name what is lost with --lose")
    if len(words) == 1 or has_event:
        raise click.UsageError(
            "use `gitsched simulate merge FILE...` with the files of all shards, and without an event or --sweep"
        )
    found, source = merge_shards([Path(word) for word in dict.fromkeys(words[1:])])
    writer.write(found, source)
    writer.show()
    return exit_codes.FINDINGS if found.degraded_losses and fail_on == "short" else exit_codes.DONE
