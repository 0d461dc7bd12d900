"""Simulate many losses on all cores, or the part of them that is one shard."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterable, Iterator, Sequence

from gitsched.model.losses import JointLoss, LossRequest, LossResult
from gitsched.model.progress import Progress
from gitsched.model.record_json import read_record, write_record
from gitsched.model.simulation import Resilience
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.result_stream import stream_results
from gitsched.reconcile.worker_processes import count_processes
from gitsched.simulate.baseline import Baseline
from gitsched.simulate.loss_list import list_losses
from gitsched.simulate.loss_simulation import ResilienceSimulator
from gitsched.simulate.loss_table import FleetSize, LossTable

_SHORT_CHUNK = 250
"""The number of losses that a process computes at once, if results are short: one takes less time than a message."""


class Shard(NamedTuple):
    """A part of a list of losses: of `shards` parts the one with `number`, from 1, which has every `shards`-th group of equal losses."""

    number: int = 1
    shards: int = 1


class LossRun(NamedTuple):
    """Losses on a plan: all, or those of one shard. `groups` are the numbers of equal ones, which are decided once, in `losses`, which are
    all."""

    simulator: ResilienceSimulator
    request: LossRequest
    losses: Sequence[JointLoss]
    groups: Sequence[Sequence[int]]
    fleet: FleetSize

    @property
    def size(self) -> int:
        """The number of losses."""
        return sum(map(len, self.groups))

    def select(self, shard: Shard) -> LossRun:
        """Return the losses of one shard."""
        return self._replace(groups=self.groups[shard.number - 1 :: shard.shards])

    def list_chunks(self) -> list[Sequence[Sequence[int]]]:
        """Return the groups in parts that are worth a message."""
        size = _SHORT_CHUNK if self.request.is_short else 1
        return [self.groups[start : start + size] for start in range(0, len(self.groups), size)]

    def simulate(self, groups: Sequence[Sequence[int]]) -> bytes:
        """Return the results of some groups, as a line of JSON for each loss."""
        found = (
            result
            for group in groups
            for result in self.simulator.simulate_group([(number, self.losses[number]) for number in group])
        )
        return b"".join(write_record(result) + b"\n" for result in found)


def prepare_losses(baseline: Baseline, request: LossRequest) -> LossRun:
    """Return the losses of a request. Raise Permanent if there are too many."""
    simulator = ResilienceSimulator(baseline, request)
    return LossRun(simulator, request, *list_losses(simulator.index, request), simulator.measure_fleet())


def run_losses(run: LossRun, processes: int | None, progress: Progress | None) -> Iterator[bytes]:
    """Yield the results of all losses of a shard as lines of JSON, in any order, as they come.

    The number of `processes` is that of the cores by default.
    """
    count = count_processes(sys.maxsize if processes is None else processes)
    _prepare_parts(run, count, progress)
    chunks, size = run.list_chunks(), run.size
    done = 0
    for _, lines in stream_results(lambda number: run.simulate(chunks[number]), len(chunks), count):
        for line in lines.splitlines():
            if progress is not None:
                progress("simulating losses", done, size)
            done += 1
            yield line


def _prepare_parts(run: LossRun, processes: int, progress: Progress | None) -> None:
    """Let all processes decide the losses of single clusters of which losses of several clusters consist."""
    names = sorted({name for group in run.groups for name in run.losses[group[0]].lost}) if run.request.is_short else []
    if processes <= 1 or not names or not run.simulator.is_divisible:
        return

    def find_part(number: int) -> bytes:
        return pickle.dumps(run.simulator.find_part((names[number],)))

    for done, (number, data) in enumerate(stream_results(find_part, len(names), processes)):
        if progress is not None:
            progress("simulating the loss of each cluster", done, len(names))
        run.simulator.parts[names[number],] = pickle.loads(data)  # noqa: S301 - only a copy of this process can have written it


def tabulate(results: Iterable[LossResult], request: LossRequest, fleet: FleetSize) -> Resilience:
    """Return the table of losses from their results."""
    table = LossTable(request)
    for result in results:
        table.add(result)
    return table.finish(fleet)


def simulate_losses(baseline: Baseline, request: LossRequest, processes: int | None, progress: Progress | None) -> Resilience:
    """Simulate all losses of a request on a plan."""
    run = prepare_losses(baseline, request)
    results = (read_record(LossResult, line) for line in run_losses(run, processes, progress))
    return tabulate(results, request, run.fleet)
