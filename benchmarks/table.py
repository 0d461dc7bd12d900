"""Format a measurement as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from benchmarks.commands import GIT_COMMIT, Process, Row
from benchmarks.measurement import Measurement, Stages
from benchmarks.meter import STAGES, Stage

_MEBI = 1 << 20


def format_measurement(measurement: Measurement) -> str:
    """Return the stages of every kind of run, the reference values, and their ratios."""
    m = measurement
    columns: list[tuple[str, Stages]] = [("cold", m.cold)]
    if m.warm:
        columns.append(("resident, 1st change", m.warm[0]))
    if m.warm[1:]:
        columns.append(("resident, later", _median(m.warm[1:])))
    columns.append(("fresh process", m.fresh))
    paragraphs = [
        f"{m.machine}\nsource {m.source[:12]}, {m.files:,} files",
        _stage_table(columns),
        _references(m),
        _command_table(m),
        _ratios(m),
    ]
    return "\n\n".join(paragraphs)


def _stage_table(columns: Sequence[tuple[str, Stages]]) -> str:
    lines = [f"{'stage':10}" + "".join(f"{name:>24}" for name, _ in columns)]
    lines.append(" " * 10 + f"{'time':>13}{'peak RSS':>11}" * len(columns))
    for stage in STAGES:
        lines.append(f"{stage:10}" + "".join(_cell(stages[stage]) for _, stages in columns))
    lines.append(f"{'total':10}" + "".join(_cell(_sum(stages)) for _, stages in columns))
    return "\n".join(lines)


def _references(m: Measurement) -> str:
    first, *later = m.processes
    rows = [
        ("PyYAML CSafeLoader, the same files", m.load),
        ("gitsched --help, whole process", m.start),
        ("gitsched reconcile, whole process, cold", first),
        ("gitsched reconcile, whole process, 1st change", later[0] if later else None),
        ("gitsched reconcile, whole process, later", _middle(later[1:]) if later[1:] else None),
        ("git add && git commit of the same changes", Process(median(m.warm_git + m.processes_git), 0.0, 0) if later else None),
    ]
    return "\n".join(f"{name:48}{_cell(Stage(row.seconds, row.peak))}" for name, row in rows if row is not None)


def _command_table(m: Measurement) -> str:
    """Return the processor time of each command, and its ratio to those of git and PyYAML."""
    git = next(row.process.processor for row in m.commands if row.name == GIT_COMMIT)
    rows = [
        Row("gitsched reconcile, first run", m.processes[0]),
        *(Row("gitsched reconcile, second run", one) for one in m.processes[1:2]),
        *m.commands,
    ]
    lines = [f"{'whole process':64}{'processor':>13}{'peak RSS':>11}{'/ git':>9}{'/ PyYAML':>11}"]
    for row in rows:
        used = row.process.processor
        ratios = f"{used / git:>9.1f}{used / m.load.processor:>11.2f}"
        lines.append(f"{row.name:64}{_cell(Stage(used, row.process.peak))}{ratios}")
    return "\n".join(lines)


def _ratios(m: Measurement) -> str:
    rest = _sum(m.cold).seconds - m.cold["parse"].seconds
    rows = [("cold, everything but parse / PyYAML CSafeLoader", rest / m.load.seconds, "below 1")]
    if m.warm[1:]:
        rows += [
            ("resident, later / git add && git commit", _total(m.warm[1:]) / median(m.warm_git[1:]), "at most 1"),
            (
                "fresh process, later / git add && git commit",
                _middle(m.processes[2:]).seconds / median(m.processes_git[1:]),
                "at most 5",
            ),
        ]
    return "\n".join(f"{name:48}{value:10.2f}   aim: {aim}" for name, value, aim in rows)


def _median(runs: Sequence[Stages]) -> Stages:
    """Return the median of each stage; the memory is the maximum of all runs."""
    return {
        stage: Stage(median(run[stage].seconds for run in runs), max(run[stage].peak for run in runs), runs[-1][stage].calls)
        for stage in STAGES
    }


def _total(runs: Iterable[Stages]) -> float:
    return median(_sum(run).seconds for run in runs)


def _sum(stages: Stages) -> Stage:
    return Stage(sum(stage.seconds for stage in stages.values()), max(stage.peak for stage in stages.values()))


def _middle(processes: Sequence[Process]) -> Process:
    return Process(
        median(p.seconds for p in processes), median(p.processor for p in processes), max(process.peak for process in processes)
    )


def _cell(stage: Stage) -> str:
    seconds, peak = stage.seconds, stage.peak
    time = f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"
    return f"{time:>13}" + (f"{peak / _MEBI:>7.0f} MiB" if peak else " " * 11)
