"""Simulate losses in shards on the workers of a Dask cluster. A task has names of commits and numbers, and no content of the repository."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

import gitsched
from gitsched.apis.registered import Registered
from gitsched.git.urls import is_loopback, is_url, redact
from gitsched.model.errors import GitschedError, Permanent
from gitsched.model.losses import LossRequest
from gitsched.model.record_json import InvalidRecordError, read_record, write_record
from gitsched.model.simulation import Resilience
from gitsched.model.system_errors import convert_system_error
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.review.loss_runs import LossRun, Shard, prepare_losses, run_losses
from gitsched.reconcile.review.loss_shards import (
    MAX_SHARDS,
    ResultCheck,
    ShardedPlan,
    describe_plan,
    format_shard,
    make_shard,
    read_shard,
)
from gitsched.reconcile.review.source_simulation import use_source_fleet
from gitsched.reconcile.run import Fetched
from gitsched.reconcile.run_settings import PinnedCommits, RunChoices, RunSettings
from gitsched.report.lines import escape_unprintable
from gitsched.simulate.baseline import Baseline
from gitsched.simulate.loss_table import LossTable

SAMPLE_SECONDS = 0.3
"""How long losses are simulated here to find out how long a shard takes."""
_SHORTEST, _LONGEST = 0.5, 10.0
"""How many seconds of simulations a shard has, at least and at most."""
_SHARDS_PER_THREAD = 4
_TEXT_SHOWN = 1000
"""Characters of a worker's message that are shown."""
_RUN_TASKS = Registered("gitsched.reconcile.review.dask_tasks", "run_tasks")


class SourceOptions(NamedTuple):
    """The options of a run with which another machine plans the same commits: where the source and the output are, and the commits."""

    location: str
    commit: str
    pinned: PinnedCommits
    now: str
    branch: str | None = None
    output: str | None = None
    output_branch: str | None = None
    output_path: str | None = None
    push: str | None = None
    paths: tuple[str, ...] = ()
    strict: bool = False
    facts_repository: str | None = None
    state: str = "auto"


class ShardTask(NamedTuple):
    """What a worker gets: the version of gitsched, what to plan, the digest of the plan, the list of losses and the shard of it."""

    version: str
    source: SourceOptions
    plan: str
    request: LossRequest
    shard: Shard


def check_address(address: str) -> None:
    """Raise Permanent unless an address is that of a scheduler with TLS, or of one on this machine."""
    url = address if "://" in address else f"tcp://{address}"
    scheme, _, rest = url.partition("://")
    host, colon, port = rest.rpartition(":")
    if scheme not in ("tls", "tcp") or not host or not colon or not port.isdecimal() or not 0 < int(port) < 65536:
        raise Permanent(f"{address[:100]!r} is no address of a Dask scheduler: expected tls://HOST:PORT")
    if scheme == "tcp" and not is_loopback(url):
        raise Permanent(f"refusing {address[:100]}: without TLS everybody on the way can change tasks and results; use tls://")


def simulate_on_dask(
    address: str,
    compute: Callable[[bytes], bytes],
    settings: RunSettings,
    request: LossRequest,
    baseline: Baseline,
    fetched: Fetched,
) -> Resilience:
    """Simulate the losses of a request on a plan in shards, which the workers of a Dask cluster compute with the function `compute`."""
    source = _list_options(settings, fetched)
    run = prepare_losses(baseline, request)
    plan, cost, total = describe_plan(fetched, run), _measure_cost(run), len(run.groups)
    table, progress = LossTable(request), settings.progress
    shards: list[Shard] = []
    check = ResultCheck(make_shard(run, Shard(), plan)[0])
    done = 0

    def make_tasks(threads: int) -> Sequence[bytes]:
        count = _choose_count(total, cost, threads)
        shards.extend(Shard(number, count) for number in range(1, count + 1))
        return [write_record(ShardTask(gitsched.__version__, source, plan.digest, request, shard)) for shard in shards]

    def receive(number: int, data: bytes) -> None:
        nonlocal done
        expected = make_shard(run, shards[number], plan)[0]
        if data.startswith(b"{"):
            raise Permanent(f"shard {shards[number].number} of {len(shards)} failed on a worker: {_read_problem(data)}")
        try:
            results = read_shard(data, expected, check)
        except InvalidRecordError as error:
            raise Permanent(f"what a worker returned is not shard {shards[number].number} of {len(shards)}: {error}") from error
        for result in results:
            table.add(result)
        done += len(results)
        if progress is not None:
            progress("simulating losses on Dask", done, run.size)

    _RUN_TASKS(address, compute, make_tasks, receive)
    return table.finish(run.fleet)


def _list_options(settings: RunSettings, fetched: Fetched) -> SourceOptions:
    """Return what another machine plans from. Raise Permanent for URLs with credentials: a task must not have any."""
    locations = {settings.location, settings.output or "", settings.facts_repository or "", settings.push or ""}
    if any(redact(location) != location for location in locations):
        raise Permanent(
            "a URL of the source, the output or the facts has credentials, which are not sent to workers: configure git there"
        )
    facts = tuple((branch.name, branch.cluster, branch.commit.oid) for branch in fetched.facts.branches)
    return SourceOptions(
        _resolve(settings.location),
        fetched.source.oid,
        PinnedCommits(fetched.output_head or "", facts),
        settings.now.isoformat(),
        settings.branch,
        settings.output and _resolve(settings.output),
        settings.output_branch,
        settings.output_path,
        settings.push,
        settings.paths,
        settings.strict,
        settings.facts_repository and _resolve(settings.facts_repository),
        settings.state,
    )


def _resolve(location: str) -> str:
    return location if is_url(location) else str(Path(location).resolve())


def _measure_cost(run: LossRun) -> float:
    """Return how many seconds a group of equal losses takes, in the mean of some."""
    step = max(len(run.groups) // 64, 1)
    sample = run.groups[::step]
    for _ in range(2 if run.request.is_short else 1):  # losses of several clusters share parts, which later ones find
        start, end, count = time.perf_counter(), 0.0, 0
        for group in sample:
            run.simulate([group])
            end, count = time.perf_counter(), count + 1
            if end - start > SAMPLE_SECONDS:
                break
    return (end - start) / count if sample else 0.0


def _choose_count(groups: int, cost: float, threads: int) -> int:
    """Return the number of shards: several for each thread, none so short that handing it out costs more."""
    seconds = groups * cost
    wanted = max(threads * _SHARDS_PER_THREAD, int(seconds / _LONGEST))
    return max(1, min(wanted, int(seconds / _SHORTEST), groups, MAX_SHARDS))


def _read_problem(data: bytes) -> str:
    try:
        text = str(json.loads(data)["problem"])
    except (ValueError, KeyError, RecursionError, TypeError):
        text = "it does not say why"
    return escape_unprintable(text[:_TEXT_SHOWN])


class PreparedLosses(NamedTuple):
    """A plan on a worker, and all losses of the list."""

    task: ShardTask
    run: LossRun
    plan: ShardedPlan


class LossWorker:
    """Computes shards on a worker. It keeps the last plan, which is that of the next shard in most cases."""

    def __init__(self) -> None:
        self._prepared: PreparedLosses | None = None

    def compute(self, data: bytes, cache: Path, operator_file: Path | None) -> bytes:
        """Return the file of a shard; an object of JSON with the `problem` if there is none."""
        try:
            task = read_record(ShardTask, data)
            if task.version != gitsched.__version__:
                raise Permanent(f"it has gitsched {gitsched.__version__}, and not {task.version}")
            known = self._prepared
            if known is None or known.task._replace(shard=task.shard) != task:
                known = self._prepared = _prepare(task, cache, operator_file)
            header, run = make_shard(known.run, task.shard, known.plan)
            return b"".join(format_shard(header, run_losses(run, 1, None)))
        except Exception as error:  # noqa: BLE001  # an exception would be a pickle
            text = str(error) if isinstance(error, GitschedError) else str(convert_system_error(error) or repr(error))
            return json.dumps({"problem": f"{platform.node()}: {redact(text)}"}).encode()


def _prepare(task: ShardTask, cache: Path, operator_file: Path | None) -> PreparedLosses:
    """Plan the commits of a task. Raise Permanent if that is another plan."""
    source = task.source
    if not is_url(source.location) and not Path(source.location).exists():
        raise Permanent(
            f"there is no {source.location}: where workers have not the same files, use a URL that they reach: gitsched -C URL simulate ..."
        )
    options = source._asdict()
    options |= {
        "revision": options.pop("commit"),
        "now": datetime.fromisoformat(source.now),
        "choices": RunChoices(pinned=options.pop("pinned")),
    }
    settings = RunSettings(cache=cache, operator_file=operator_file, **options)

    def answer(baseline: Baseline, fetched: Fetched) -> PreparedLosses:
        run = prepare_losses(baseline, task.request)
        return PreparedLosses(task, run, describe_plan(fetched, run))

    prepared = use_source_fleet(settings, answer, [], lambda *_: None)
    if prepared.plan.digest != task.plan:
        raise Permanent(
            "its plan of these commits is another one: settings of the operator, options or packages of gitsched may differ from those here"
        )
    return prepared
