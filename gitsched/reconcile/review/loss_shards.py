"""Files with the results of one shard of a list of losses, and the table of all shards together.

The first line says what was simulated, and each other line is the result of one loss. All are JSON: a file comes from another machine.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

import gitsched
from gitsched.model.errors import Permanent
from gitsched.model.finding import format_names
from gitsched.model.history import SourceChange
from gitsched.model.losses import LossRequest, LossResult
from gitsched.model.record_json import InvalidRecordError, read_record, write_record
from gitsched.model.simulation import Resilience, SimulatedSource
from gitsched.model.time import format_time, parse_time
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.review.loss_runs import LossRun, Shard, tabulate
from gitsched.reconcile.run import Fetched
from gitsched.reconcile.source.source_commits import describe_source_commit
from gitsched.simulate.loss_table import FleetSize

FORMAT = "gitsched-losses-1"
MAX_LINE = 64_000_000
"""The number of bytes of the result of one loss."""
MAX_SHARDS = 10_000


class ShardedPlan(NamedTuple):
    """The plan that losses are simulated on: its digest, its source commit, and as text the times of that and of the losses."""

    digest: str
    commit: str = ""
    subject: str = ""
    author: str = ""
    time: str = ""
    at: str = ""

    @property
    def source(self) -> SimulatedSource:
        commit = SourceChange(self.commit, self.subject, self.author, parse_time(self.time))
        return SimulatedSource(commit, time=parse_time(self.at or None))


class ShardHeader(NamedTuple):
    """What the results of a shard were made from. `losses` is the number of results of the shard, of `total` ones of all
    shards."""

    format: str
    version: str
    plan: ShardedPlan
    request: LossRequest
    shard: Shard
    losses: int
    total: int
    fleet: FleetSize


def make_shard(run: LossRun, shard: Shard, plan: ShardedPlan) -> tuple[ShardHeader, LossRun]:
    """Return the part of all losses that is one shard, and what its file says about itself."""
    part = run.select(shard)
    return ShardHeader(FORMAT, gitsched.__version__, plan, run.request, shard, part.size, len(run.losses), run.fleet), part


def describe_plan(fetched: Fetched, run: LossRun) -> ShardedPlan:
    """Return the plan that the losses are simulated on. The digest is that of its commits, its time and its decisions."""
    baseline, digest = run.simulator.baseline, hashlib.sha256()
    facts = sorted([branch.name, branch.commit.tree] for branch in fetched.facts.branches)
    digest.update(json.dumps([fetched.source.tree, fetched.output_tree, facts, baseline.time.isoformat()]).encode())
    for key, outcome in sorted(baseline.decisions.outcomes.items(), key=lambda entry: entry[0]):
        digest.update(json.dumps([key, outcome.api, outcome.policy, sorted(outcome.replicas_by_cluster.items())]).encode())
    source = describe_source_commit(fetched.source)
    times = map(format_time, (fetched.source.time, baseline.time.replace(microsecond=0)))
    return ShardedPlan(digest.hexdigest()[:32], source.commit, source.subject, source.author, *times)


def format_shard(header: ShardHeader, lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of the file of a shard."""
    yield write_record(header) + b"\n"
    for line in lines:
        yield line + b"\n"


def write_shard(path: Path, header: ShardHeader, lines: Iterable[bytes]) -> None:
    """Write the results of a shard as they come; the file has its name once all are there. Raise Permanent if it cannot be written."""
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            for line in format_shard(header, lines):
                file.write(line)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise Permanent(f"the shard is not written: {path}: {error.strerror}") from error


def merge_shards(paths: Sequence[Path]) -> tuple[Resilience, SimulatedSource]:
    """Return the table of all losses of shards, and their source.

    Raise Permanent unless the files are all shards of one list of losses on one plan."""
    headers = {path: _read_header(path) for path in paths}
    first = headers[paths[0]]
    for path, header in headers.items():
        if other := _find_difference(first, header):
            raise Permanent(f"{path} is no shard of the same losses as {paths[0]}: {other}")
    _check_complete(headers, first.shard.shards)
    check = ResultCheck(first)
    try:
        results = (check(line) for path, header in headers.items() for line in _read_results(path, header))
        return tabulate(results, first.request, first.fleet), first.plan.source
    except InvalidRecordError as error:
        raise Permanent(f"a result is not readable: {error}; simulate that shard again") from error


class ResultCheck:
    """Reads results of a list of losses. Raises InvalidRecordError for one that no loss of the list has: a file may have been edited."""

    def __init__(self, header: ShardHeader) -> None:
        self._header, self._numbers, self._samples = header, set[int](), 0

    def __call__(self, line: bytes) -> LossResult:
        """Return the result that a line has."""
        header, result = self._header, read_record(LossResult, line)
        if not 0 <= result.number < header.total or result.number in self._numbers or result.samples < 1:
            raise InvalidRecordError(f"loss {result.number} of {header.total} with {result.samples} samples")
        self._numbers.add(result.number)
        self._samples += result.samples
        if header.request.causes and self._samples > header.request.samples:
            raise InvalidRecordError(f"there are more than {header.request.samples} samples")
        unsafe = next((text for text in _list_names(result) if not text.isprintable()), None)
        if unsafe is not None:
            raise InvalidRecordError(f"{unsafe!r} is no name")
        return result


def _list_names(result: LossResult) -> Iterator[str]:
    simulation = result.simulation
    yield from (simulation.event, *simulation.lost, *simulation.partly_lost, *simulation.unknown_capacity)
    yield from (part for effect in simulation.effects for part in (*effect.key, *effect.before, *effect.after))


def read_shard(data: bytes, expected: ShardHeader, check: ResultCheck) -> list[LossResult]:
    """Return the results of a shard of the expected losses. Raise InvalidRecordError for anything else."""
    first, *lines = data.splitlines() or [b""]
    header = read_record(ShardHeader, first)
    if header != expected:
        raise InvalidRecordError(
            _find_difference(expected, header) or f"it is shard {header.shard.number} and not the expected one"
        )
    if len(lines) != expected.losses:
        raise InvalidRecordError(f"it has {len(lines)} of {expected.losses} results")
    return [check(line) for line in lines]


def _find_difference(first: ShardHeader, other: ShardHeader) -> str:
    """Return in what two headers differ that all shards have in common; "" if they do not."""
    if other.version != first.version:
        return f"gitsched {other.version} wrote it, and not {first.version}"
    if other.plan != first.plan:
        return "its plan is another one; simulate all shards with the same commits, settings and --now"
    if other.request != first.request:
        return "its losses are other ones; use the same options for all shards"
    if (other.shard.shards, other.total, other.fleet) != (first.shard.shards, first.total, first.fleet):
        return f"it is one of {other.shard.shards} shards of {other.total} losses, and not of {first.shard.shards} of {first.total}"
    return ""


def _check_complete(headers: dict[Path, ShardHeader], shards: int) -> None:
    found: dict[int, Path] = {}
    for path, header in headers.items():
        number = header.shard.number
        if number in found:
            raise Permanent(f"{found[number]} and {path} are both shard {number}; leave one of them out")
        found[number] = path
    missing = [str(number) for number in range(1, shards + 1) if number not in found]
    if missing:
        raise Permanent(f"shards are missing: {format_names(missing)} of {shards}")


def _read_header(path: Path) -> ShardHeader:
    try:
        with path.open("rb") as file:
            header = read_record(ShardHeader, _read_line(file))
    except OSError as error:
        raise Permanent(f"the shard is not readable: {path}: {error.strerror}") from error
    except InvalidRecordError as error:
        raise Permanent(f"{path} is no file of `gitsched simulate --shard`: {error}") from error
    if header.format != FORMAT:
        raise Permanent(f"{path} has the format {header.format[:40]!r}, and not {FORMAT!r}; use the same version of gitsched")
    if header.request.causes and header.request.samples < 1:
        raise Permanent(f"{path} is no file of `gitsched simulate --shard`: it has rates and no samples")
    if not 1 <= header.shard.number <= header.shard.shards <= MAX_SHARDS:
        raise Permanent(
            f"{path} is no file of `gitsched simulate --shard`: it is shard {header.shard.number} of {header.shard.shards}"
        )
    return header


def _read_results(path: Path, header: ShardHeader) -> Iterator[bytes]:
    """Yield the lines with results. Raise Permanent if there are more or fewer than the header says."""
    count = 0
    with path.open("rb") as file:
        _read_line(file)
        while line := _read_line(file):
            count += 1
            yield line
    if count != header.losses:
        raise Permanent(f"{path} has {count} of {header.losses} results; simulate shard {header.shard.number} again")


def _read_line(file: IO[bytes]) -> bytes:
    line = file.readline(MAX_LINE + 1)
    if len(line) > MAX_LINE:
        raise InvalidRecordError(f"a line has more than {MAX_LINE} bytes")
    return line.rstrip(b"\n")
