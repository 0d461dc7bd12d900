"""Count the modules that one Deployment passes through, from its file to the output commit.

    python -m benchmarks.call_path [--modules]

A repository with one Deployment, one Cluster and one PropagationPolicy is reconciled twice, each time from nothing: the first run imports
and warms up, the second is observed with sys.setprofile. Counted are the modules of gitsched in which at least one function ran, and the
calls from one of them into another (a call through a library counts for the module that called the library, as one through gitsched.query
and gitsched.named_tuples, which know nothing of what gitsched does).
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from gitsched.cli import main as gitsched

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: default
spec:
  replicas: 2
  selector:
    matchLabels:
      app: web
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
        - name: web
          image: nginx
"""
FLEET = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata:
  name: member1
spec:
  syncMode: Push
  apiEndpoint: https://member1.example.com
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: web
  namespace: default
spec:
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: web
  placement:
    clusterAffinity:
      clusterNames:
        - member1
"""


_GENERAL = ("gitsched.query", "gitsched.named_tuples")


class CallPath(NamedTuple):
    """`modules` counts the calls of functions by module; `crossings` counts the calls by (calling module, called module)."""

    modules: Counter[str]
    crossings: Counter[tuple[str, str]]


def measure() -> CallPath:
    """Observe one reconcile of a repository with a single Deployment."""
    with tempfile.TemporaryDirectory(prefix="gitsched-call-path-") as scratch:
        _reconcile(Path(scratch, "warm-up"))
        return _observe(Path(scratch, "observed"))


def _observe(directory: Path) -> CallPath:
    modules: Counter[str] = Counter()
    crossings: Counter[tuple[str, str]] = Counter()

    def record(frame: FrameType, event: str, _argument: Any) -> None:
        called = _find_module(frame)
        if event != "call" or called is None:
            return
        modules[called] += 1
        caller = frame.f_back
        while caller is not None and _find_module(caller) is None:
            caller = caller.f_back
        if caller is not None and (calling := _find_module(caller)) is not None and calling != called:
            crossings[calling, called] += 1

    _make_repository(directory)
    gc.collect()  # else finalizers of what ran earlier in the process may be counted
    sys.setprofile(record)
    try:
        _run(directory)
    finally:
        sys.setprofile(None)
    return CallPath(modules, crossings)


def _find_module(frame: FrameType) -> str | None:
    name = str(frame.f_globals.get("__name__"))
    return name if name.partition(".")[0] == "gitsched" and not name.startswith(_GENERAL) else None


def _reconcile(directory: Path) -> None:
    _make_repository(directory)
    _run(directory)


def _make_repository(directory: Path) -> None:
    directory.mkdir()
    (directory / "deployment.yaml").write_text(DEPLOYMENT, encoding="utf-8")
    (directory / "fleet.yaml").write_text(FLEET, encoding="utf-8")
    author = ("-c", "user.name=Benchmark", "-c", "user.email=benchmark@example.com", "-c", "commit.gpgSign=false")
    for arguments in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "."),
        (*author, "commit", "--quiet", "--message=fleet"),
    ):
        subprocess.run(["git", *arguments], cwd=directory, check=True)


def _run(directory: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        code = gitsched(["reconcile", "--repo", str(directory), "--cache-dir", str(directory.with_suffix(".cache"))])
    if code:
        raise SystemExit(f"the reconcile failed with exit code {code}")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.call_path", description=__doc__.partition("\n")[0] if __doc__ else None
    )
    parser.add_argument("--modules", action="store_true", help="also list the modules, the most called first")
    arguments = parser.parse_args()
    path = measure()
    print(f"{len(path.modules)} modules, {path.crossings.total()} calls from one module into another")
    if arguments.modules:
        for name, calls in path.modules.most_common():
            print(f"{calls:6} {name}")


if __name__ == "__main__":
    main()
