"""Measure what it costs to prove the causes of a pull request that moves 1,000 workloads, compared with the plan of the pull request.

python -m benchmarks.causes [--manifests N] [--clusters N] [--policies N]
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from typing import NamedTuple

from benchmarks.generator import Size, generate
from benchmarks.repository import START, create, git
from benchmarks.stopwatch import clock
from gitsched.reconcile import RunSettings, reconcile
from gitsched.reconcile.review import compared_plans, comparison

Files = Mapping[str, bytes]
MAX_CHANGES = 50


class Cost(NamedTuple):
    """CPU seconds of a comparison of two plans, and of the proofs of the causes in it. `proved` counts the moves with a proved cause."""

    name: str
    moves: int
    proved: int
    plan: float
    proofs: float

    @property
    def ratio(self) -> float:
        """The proofs in units of the rest of the comparison."""
        return self.proofs / (self.plan - self.proofs)


def _taint(files: Files) -> Files:
    """Taint clusters, and change policies without an effect."""
    paths = [path for path in files if path.startswith("clusters/")][: MAX_CHANGES - 5]
    spec = b"spec:\n  taints:\n    - {key: power, effect: NoExecute}\n"
    policies = [path for path in files if path.startswith("policies/")][:5]
    return {
        **{path: files[path].replace(b"spec:\n", spec, 1) for path in paths if b"taints:" not in files[path]},
        **{path: files[path].replace(b"spec:\n", b"spec:\n  priority: 1\n", 1) for path in policies},
    }


def _mistype(files: Files) -> Files:
    """Mistype the label that policies select by."""
    paths = [path for path in files if path.startswith("policies/") and b"lane: lane-" in files[path]][: MAX_CHANGES // 3]
    return {path: files[path].replace(b"lane: lane-", b"lane: lain-") for path in paths}


def _scale(files: Files) -> Files:
    """Change the replicas of many workloads, and taint a cluster."""
    found = {path: re.sub(rb"\n  replicas: (\d+)", rb"\n  replicas: 1\1", text) for path, text in files.items()}
    return {**{path: text for path, text in found.items() if text != files[path]}, **dict(list(_taint(files).items())[:1])}


CHANGES: Mapping[str, Callable[[Files], Files]] = {"taints": _taint, "selectors": _mistype, "replicas": _scale}


def measure(size: Size, scratch: Path) -> list[Cost]:
    """Plan each change on top of the same reconciled fleet."""
    directory, files = scratch / "fleet", generate(size, 1)
    create(directory, files)
    settings = RunSettings(datetime.fromtimestamp(START + 86400, UTC), scratch / "cache", str(directory))
    reconcile(settings)
    costs = []
    for name, change in CHANGES.items():
        git(directory, "checkout", "-q", "-B", name, "main")
        for path, text in change(files).items():
            (directory / path).write_bytes(text)
        git(directory, "commit", "-q", "-a", "-m", name, round_=1)
        costs.append(_compare(name, settings._replace(revision=name)))
    return costs


def _compare(name: str, settings: RunSettings) -> Cost:
    with clock(comparison, "find_causes") as search, clock(compared_plans, "DocumentChanges") as changes:
        start = process_time()
        moves = comparison.compare_plans(settings, "main").review.moves
        spent = process_time() - start
    proved = sum(bool(move.causes) and move.causes[0].proved for move in moves)
    return Cost(name, len(moves), proved, spent, sum(search) + sum(changes))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.causes", description=__doc__)
    parser.add_argument("--manifests", type=int, default=3000, metavar="N")
    parser.add_argument("--clusters", type=int, default=100, metavar="N")
    parser.add_argument("--policies", type=int, default=40, metavar="N")
    arguments = parser.parse_args()
    size = Size(arguments.manifests, arguments.clusters, arguments.policies)
    scratch = Path(tempfile.mkdtemp(prefix="gitsched-benchmark-"))
    try:
        print(f"{size.manifests} manifests, {size.clusters} clusters, {size.policies} policies")
        print(f"{'change':10} {'moves':>6} {'proved':>7} {'plan':>8} {'proofs':>8} {'ratio':>6}")
        for cost in measure(size, scratch):
            plan = cost.plan - cost.proofs
            print(f"{cost.name:10} {cost.moves:6} {cost.proved:7} {plan:6.2f} s {cost.proofs:6.2f} s {cost.ratio:6.2f}")
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
