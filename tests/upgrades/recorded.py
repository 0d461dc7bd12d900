"""Recorded output branches: Git bundles of a source and its output, and what the gitsched that wrote them did next."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from gitsched.model.scheduling import RecordTarget
from gitsched.reconcile import RunResult
from gitsched.report.lines import format_key
from tests.scenarios.conftest import Fleet

DIRECTORY = Path(__file__).parent


class LaterRun(NamedTuple):
    """A commit of files at an hour, None for a run without one, and what the run after it did."""

    hour: float
    files: Mapping[str, str | None] | None
    message: str
    expected: Mapping[str, Any]


class RecordedBranch(NamedTuple):
    """A bundle with the branches of a repository. `hour` is that of the last run that it has, in hours since START, and `options` are those
    of all runs."""

    bundle: Path
    hour: float
    options: Mapping[str, Any]
    later: tuple[LaterRun, ...]

    def open(self, path: Path, cache: Path) -> Fleet:
        """Return a clone with all of its branches and notes."""
        fleet = Fleet(path, cache)
        fleet.git("fetch", "-q", "--update-head-ok", str(self.bundle), "refs/*:refs/*")
        fleet.git("reset", "-q", "--hard")
        return fleet


def list_recorded() -> Iterator[tuple[str, RecordedBranch]]:
    """Yield the recorded branches by version and name."""
    for path in sorted(DIRECTORY.glob("*/*.json")):
        value = json.loads(path.read_text())
        later = tuple(LaterRun(**step) for step in value["later"])
        yield f"{path.parent.name}/{path.stem}", RecordedBranch(path.with_suffix(".bundle"), value["hour"], value["options"], later)


def describe_run(fleet: Fleet, run: RunResult) -> dict[str, list[str]]:
    """Return what a run did: moves, recorded decisions and withheld changes, and the manifests that clusters get, lose, and get anew."""
    plan = run.plan
    before, after = (list_manifests(fleet, commit) for commit in (run.before, run.after or run.before))
    described = {
        "moves": [
            f"{format_key(move.key)}: {format_clusters(move.before)} -> {format_clusters(move.after)}" for move in plan.moves
        ],
        "recorded": [
            f"{format_key(change.subject)}: {format_targets(change.before)} -> {format_targets(change.after)}"
            for change in run.record_changes
        ],
        "withheld": [format_key(move.key) for move in plan.withheld.moves],
        "added": sorted(after.keys() - before.keys()),
        "removed": sorted(before.keys() - after.keys()),
        "changed": sorted(path for path, blob in after.items() if before.get(path, blob) != blob),
    }
    return {name: lines for name, lines in described.items() if lines}


def list_manifests(fleet: Fleet, commit: str | None) -> dict[str, str]:
    """Return the objects that clusters and hubs get, by path: blobs, or texts with the namespace `default` that earlier versions left
    out."""
    files = fleet.files(commit) if commit else {}
    chosen = {path: blob for path, blob in files.items() if path.startswith(("clusters/", "hub/")) and path.count("/") == 3}
    return {
        path: _add_namespace(fleet.git("cat-file", "-p", blob)) if "/default/" in path else blob for path, blob in chosen.items()
    }


def _add_namespace(text: str) -> str:
    """Return a manifest with the namespace `default` below its name, unless it has one."""
    if "namespace" in yaml.load(text, yaml.CSafeLoader)["metadata"]:
        return text
    return re.sub(r"^  name: .*$", r"\g<0>\n  namespace: default", text, count=1, flags=re.MULTILINE)


def format_clusters(replicas: Mapping[str, int | None]) -> str:
    return ", ".join(name if count is None else f"{name}:{count}" for name, count in sorted(replicas.items())) or "nowhere"


def format_targets(targets: Iterable[RecordTarget]) -> str:
    return ", ".join(each.name if each.amount is None else f"{each.name}:{each.amount}" for each in targets) or "none"
