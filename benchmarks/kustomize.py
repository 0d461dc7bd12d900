"""Measure building and placing the overlays of a repository, compared with `kubectl kustomize` of the same overlays in the same run.

`python -m benchmarks.kustomize CLONE [--roots N]`: CLONE is a Git repository with kustomizations, of which nothing is changed.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import gitsched.decide.registry  # noqa: F401 - registers the policy APIs
from gitsched.build.builder import find_builder
from gitsched.build.closure import Closure
from gitsched.git import Repository
from gitsched.reconcile import RunSettings, reconcile
from gitsched.reconcile.cache.caches import ParseCache
from gitsched.reconcile.source.commit_tree import CommitTree, resolve_closures
from gitsched.reconcile.source.source_reader import SourceReader

CLUSTERS = 3
REPEATS = 3
"""How often a base is changed; the median counts, because other programs take processor time as well."""
CONFIG = (
    "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n  source:\n    kustomize: {build: [%s]}\n"
)
CLUSTER = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: member%d}\n"
POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: deployments}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: Service}]
  placement: {clusterAffinity: {clusterNames: [member0, member1]}}
"""


class Measurement(NamedTuple):
    """Seconds on the clock, and of processor time of this process and its child processes."""

    clock: float
    processor: float


def measure(work: Callable[[], object]) -> Measurement:
    """Call a function and measure it."""

    def processor() -> float:
        usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    clock, before = time.perf_counter(), processor()
    work()
    return Measurement(time.perf_counter() - clock, processor() - before)


def run_git(directory: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Benchmark", "-c", "user.email=benchmark@example.com"]
    return subprocess.run(["git", *identity, *arguments], cwd=directory, check=True, capture_output=True, text=True).stdout


def list_closures(clone: Path, scratch: Path) -> list[Closure]:
    """Return the roots that gitsched can build without other repositories."""
    repository = Repository(clone)
    head = repository.resolve("HEAD")
    assert head is not None
    entries = repository.entries(repository.commit(head).tree)
    commit = CommitTree(repository, entries, SourceReader(repository, ParseCache(scratch / "listing")))
    return [closure for closure in resolve_closures(commit.list_roots("**"), commit) if not closure.problems]


def build(executable: Path, clone: Path, roots: list[str]) -> list[str]:
    """Build roots one after the other with kubectl; return those that it can build."""
    command: list[str | Path] = [executable, "kustomize", "--load-restrictor=LoadRestrictionsNone"]
    return [root for root in roots if subprocess.run([*command, root], cwd=clone, capture_output=True, check=False).returncode == 0]


def choose_base(closures: list[Closure], most: int) -> tuple[str, list[str]]:
    """Return the resource that most roots read, but not more than `most`, and these roots."""
    readers: dict[str, list[str]] = {}
    for closure in closures:
        for path in closure.resources:
            readers.setdefault(path, []).append(closure.root)
    return max(((path, roots) for path, roots in readers.items() if len(roots) <= most), key=lambda row: (len(row[1]), row[0]))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kustomize", description=__doc__)
    parser.add_argument("clone", type=Path)
    parser.add_argument(
        "--roots", type=int, default=10_000, metavar="N", help="build only every so many roots that at most N remain"
    )
    parser.add_argument("--readers", type=int, default=20, metavar="N", help="the most roots that read the changed base")
    arguments = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="gitsched-benchmark-"))
    try:
        compare(arguments.clone, scratch, arguments.roots, arguments.readers)
    finally:
        shutil.rmtree(scratch)


def compare(source: Path, scratch: Path, most_roots: int, most_readers: int) -> None:
    """Build all roots and place their objects, then change one base; print both compared with kubectl."""
    clone, cores = scratch / "clone", os.cpu_count() or 1
    run_git(scratch, "clone", "--quiet", str(source.resolve()), str(clone))
    executable = find_builder({}).executable
    closures = list_closures(clone, scratch)
    step = -(-len(closures) // most_roots)
    closures = closures[::step]
    roots = [closure.root for closure in closures]
    buildable: list[str] = []
    alone = measure(lambda: buildable.extend(build(executable, clone, roots)))
    (clone / "gitsched.yaml").write_text(CONFIG % ", ".join(f'"{root}"' for root in buildable))
    (clone / "gitsched-benchmark.yaml").write_text("---\n".join([*(CLUSTER % number for number in range(CLUSTERS)), POLICY]))
    run_git(clone, "add", "--all")
    run_git(clone, "commit", "--quiet", "--message=Benchmark")
    settings = RunSettings(now=datetime.now(UTC), cache=scratch / "cache", location=str(clone))
    show(f"{len(buildable)} of {len(roots)} roots, cold", measure(lambda: reconcile(settings)), alone, cores, 1.3)

    path, readers = choose_base([closure for closure in closures if closure.root in set(buildable)], most_readers)
    file = clone / path
    text = file.read_text()
    runs: dict[str, list[Measurement]] = {"changed": [], "kubectl": [], "unchanged": []}
    for number in range(REPEATS):
        file.write_text(f"# changed {number}\n{text}")
        run_git(clone, "commit", "--quiet", "--all", "--message=Change")
        runs["kubectl"].append(measure(lambda: build(executable, clone, readers)))
        runs["changed"].append(measure(lambda: reconcile(settings)))
        runs["unchanged"].append(measure(lambda: reconcile(settings)))
    alone = take_median(runs["kubectl"])
    show(f"{path} changed, which {len(readers)} roots read", take_median(runs["changed"]), alone, cores, 2.0)
    show("nothing changed", take_median(runs["unchanged"]), alone, cores, 2.0)


def take_median(runs: list[Measurement]) -> Measurement:
    return Measurement(*(statistics.median(times) for times in zip(*runs, strict=True)))


def show(title: str, ours: Measurement, alone: Measurement, cores: int, target: float) -> None:
    print(f"{title}:")
    for name, mine, other in (("clock", ours.clock, alone.clock / cores), ("processor", ours.processor, alone.processor)):
        unit = f"divided by {cores} cores" if name == "clock" else "in total"
        print(f"  {name}: {mine:.1f} s, kubectl {other:.1f} s {unit}: {mine / other:.2f} (target {target})", flush=True)


if __name__ == "__main__":
    main()
