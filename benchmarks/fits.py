"""Measure which of 50 changes of a generated fleet fit together, by what they change.

python -m benchmarks.fits [--manifests N] [--clusters N] [--policies N] [--changes N] [--wide] [--kinds KIND...]
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.__main__ import WIDE_POLICIES
from benchmarks.generator import Size, generate
from benchmarks.repository import ADDRESS, NAME, START, create, git
from gitsched.reconcile import RunSettings, reconcile
from gitsched.reconcile.review.merged_changes import find_fits

Files = Mapping[str, bytes]
Change = Callable[[Files, int], dict[str, bytes]]
"""Return the new content of files by path, b"" for those that go, of the change with a number."""


def _pick(files: Files, part: str, number: int) -> str:
    paths = sorted(path for path in files if part in path)
    return paths[(number + 1) * 7919 % len(paths)]  # a prime, so that the changes are in different directories


def _edit(part: str, edit: Callable[[str, int], str]) -> Change:
    """Return a change of one file whose path has a part."""

    def change(files: Files, number: int) -> dict[str, bytes]:
        path = _pick(files, part, number)
        return {path: edit(files[path].decode(), number).encode()}

    return change


def _set_replicas(count: Callable[[int], int]) -> Change:
    def edit(text: str, _number: int) -> str:
        before, mark, after = text.partition("\n  replicas: ")
        replicas, _, rest = after.partition("\n")
        return f"{before}{mark}{count(int(replicas))}\n{rest}"

    return _edit("/deployment-", edit)


def _copy(part: str) -> Change:
    """Return a change that adds an object like that of a file, with another name."""

    def change(files: Files, number: int) -> dict[str, bytes]:
        path = _pick(files, part, number)
        name = path.rpartition("/")[2].removesuffix(".yaml").removeprefix("deployment-")
        return {f"{path.removesuffix('.yaml')}-new.yaml": files[path].replace(name.encode(), f"new-{number}".encode())}

    return change


_TOLERATIONS = "    clusterTolerations:\n"
_SPREAD = "    spreadConstraints:\n      - {spreadByField: cluster, minGroups: 1, maxGroups: 2}\n"
_TAINT = "  taints:\n    - {key: example.com/a, effect: NoSchedule}\n"
KINDS: dict[str, Change] = {
    "image": _edit("/deployment-", lambda text, number: text.replace("/app:1.", f"/app:2.{number}.")),
    "replicas-more": _set_replicas(lambda count: count + 1),
    "replicas-fewer": _set_replicas(lambda count: max(1, count - 1)),
    "replicas-tenfold": _set_replicas(lambda count: 10 * count),
    "scale-to-zero": _set_replicas(lambda _: 0),
    "removed-workload": lambda files, number: {_pick(files, "/deployment-", number): b""},
    "new-workload": _copy("/deployment-"),
    "other-policy": _edit("/deployment-", lambda text, number: text.replace("lane: lane-", f"lane: lane-0{number % 2}")),
    "policy": _edit(
        "policies/", lambda text, _: text.replace(_TOLERATIONS, f"{_TOLERATIONS}      - {{key: a, operator: Exists}}\n")
    ),
    "policy-placement": _edit("policies/", lambda text, _: text.replace(_TOLERATIONS, f"{_SPREAD}{_TOLERATIONS}")),
    "new-policy": _copy("policies/"),
    "removed-policy": lambda files, number: {_pick(files, "policies/", number): b""},
    "cluster-label": _edit("clusters/", lambda text, number: text.replace("  labels:\n", f"  labels:\n    size: n{number}\n", 1)),
    "cluster-pool": _edit("clusters/", lambda text, _: text.replace("pool: pool-", "pool: other-", 1)),
    "cluster-taint": _edit("clusters/", lambda text, _: text.replace("spec:\n", f"spec:\n{_TAINT}", 1)),
    "removed-cluster": lambda files, number: {_pick(files, "clusters/", number): b""},
    "new-cluster": _copy("clusters/"),
}
MIXED = "mixed"


def _change(files: Files, kind: str, number: int) -> dict[str, bytes]:
    """Return the change of a kind; mixed ones are of all kinds in turn."""
    change = KINDS[kind] if kind != MIXED else list(KINDS.values())[number % len(KINDS)]
    return change(files, number)


def make_branches(directory: Path, files: Files, kind: str, count: int) -> list[str]:
    """Commit so many changes to branches of their own, and return their names."""
    names, stream = [], list[bytes]()
    for number in range(count):
        names.append(f"{kind}-{number:02}")
        when, message = f"{NAME} <{ADDRESS}> {START + 3600 + number} +0000", b"Change\n"
        stream.append(
            f"commit refs/heads/{names[-1]}\nauthor {when}\ncommitter {when}\ndata {len(message)}\n".encode()
            + message
            + b"from refs/heads/main^0\n"
        )
        for path, data in _change(files, kind, number).items():
            stream.append(f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n" if data else f"D {path}\n".encode())
    git(directory, "fast-import", "--quiet", "--force", data=b"".join(stream))
    return names


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fits", description=__doc__)
    sizes = Size()
    parser.add_argument("--manifests", type=int, default=sizes.manifests, metavar="N")
    parser.add_argument("--clusters", type=int, default=sizes.clusters, metavar="N")
    parser.add_argument("--policies", type=int, metavar="N")
    parser.add_argument("--changes", type=int, default=50, metavar="N")
    parser.add_argument("--wide", action="store_true", help="a fleet in which every cluster is used")
    parser.add_argument("--kinds", nargs="+", default=[*KINDS, MIXED], choices=[*KINDS, MIXED], metavar="KIND")
    parser.add_argument("--limit", type=int, default=300, metavar="SECONDS", help="try no further sets after this time")
    arguments = parser.parse_args()
    policies = arguments.policies or (WIDE_POLICIES if arguments.wide else sizes.policies)
    files = generate(Size(arguments.manifests, arguments.clusters, policies, wide=arguments.wide), 1)
    scratch = Path(tempfile.mkdtemp(prefix="gitsched-benchmark-"))
    try:
        directory = scratch / "fleet"
        settings = RunSettings(datetime.fromtimestamp(START + 86400, UTC), scratch / "cache", str(directory))
        create(directory, files)
        reconcile(settings)
        for kind in arguments.kinds:
            names = make_branches(directory, files, kind, arguments.changes)
            before, start = sum(os.times()[:4]), time.monotonic()
            end = start + arguments.limit
            found = find_fits(settings, "main", names, lambda end=end: time.monotonic() > end)
            seconds, processor = time.monotonic() - start, sum(os.times()[:4]) - before
            fitting = len(found.found.sequence)
            print(
                f"{kind:18} {found.plans:4} plans {seconds:8.2f} s, {processor:8.2f} s of processor time; {fitting} of {len(names)} fit"
                f"{'' if time.monotonic() < end else ', stopped'}",
                flush=True,
            )
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
