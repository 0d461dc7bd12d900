"""Measure a reconcile of a generated repository by stage, compared with git and PyYAML on the same input."""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

from benchmarks.generator import Size, generate
from benchmarks.measurement import measure, profile, read_measurement
from benchmarks.repository import create
from benchmarks.table import format_measurement

WIDE_POLICIES = 800
"""Each of the 333 pools of 1,000 clusters has two or three policies."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    sizes = Size()
    parser.add_argument("--manifests", type=int, default=sizes.manifests, metavar="N")
    parser.add_argument("--clusters", type=int, default=sizes.clusters, metavar="N")
    parser.add_argument("--policies", type=int, metavar="N", help=f"{sizes.policies}, or {WIDE_POLICIES} with --wide")
    parser.add_argument(
        "--places", type=int, default=sizes.places, metavar="N", help="approximate number of clusters of a workload"
    )
    parser.add_argument(
        "--wide", action="store_true", help="every cluster is used, and one namespace has three tenths of the manifests"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--rounds", type=int, default=6, metavar="N", help="number of single-manifest changes")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--show", type=Path, metavar="FILE", help="only show the figures of a file with JSON, without measuring")
    parser.add_argument("--profile", type=Path, metavar="FILE", help="also write the hottest functions, measured in separate runs")
    parser.add_argument(
        "--generate", type=Path, metavar="DIRECTORY", help="only write the repository to DIRECTORY, without measuring"
    )
    arguments = parser.parse_args()
    policies = arguments.policies if arguments.policies is not None else WIDE_POLICIES if arguments.wide else sizes.policies
    size = Size(arguments.manifests, arguments.clusters, policies, arguments.places, arguments.wide)
    if min(*size[:4], arguments.rounds) < 1:
        parser.error("every number must be at least 1")
    if arguments.generate:
        print(create(arguments.generate, generate(size, arguments.seed)))
        return
    if arguments.show:
        print(format_measurement(read_measurement(json.loads(arguments.show.read_text()))))
        return
    scratch = Path(tempfile.mkdtemp(prefix="gitsched-benchmark-"))
    try:
        measurement = measure(size, arguments.seed, arguments.rounds, scratch)
        print(json.dumps(measurement._asdict()) if arguments.json else format_measurement(measurement), flush=True)
        if arguments.profile:
            profile(size, arguments.seed, arguments.rounds, scratch, arguments.profile.resolve())
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
