"""Play random histories of everything, and look for differences between plans with and without what earlier runs have left.

    python -m tests.scenarios.combined_search --first 0 --seconds 600

Each commit is reconciled by a resident process, from a cache on disk, from the state beside the output branch, and by a complete plan of an
empty cache; all write the same commits and report the same. What commands print that only look is the same with a cache and without one.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

from gitsched.apis.topology import CLUSTER
from gitsched.build import helm, kustomize, scratch
from gitsched.manifests import parser as file_parser
from gitsched.model.errors import GitschedError, NeedsCompletePlan
from gitsched.model.labels import parse_selector_text
from gitsched.model.losses import PAIRS, LossRequest
from gitsched.model.simulation import FailureDomain
from gitsched.reconcile import RunSettings, package_digest
from gitsched.reconcile.cache import document_rows
from gitsched.reconcile.expired_documents import list_expired_documents
from gitsched.reconcile.incremental import fallback, new_state
from gitsched.reconcile.maintenance import plan_maintenance
from gitsched.reconcile.output import output_commit
from gitsched.reconcile.reschedule import WorkloadSelection
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.review.source_simulation import simulate_source_losses
from gitsched.simulate.scenario import Scaling, Scenario
from tests.builders.remembered_results import RememberedFiles, remember_builds, remember_digest
from tests.conftest import _COMMITS, _GIT_CONFIG
from tests.scenarios.combined_histories import HEAD, Step, draw_history
from tests.scenarios.conftest import Fleet, allow_withheld
from tests.scenarios.facts_histories import commit_branch
from tests.scenarios.histories import Files, differs
from tests.scenarios.test_incremental_comparison import LIMITS, write_html, write_reports
from tests.scenarios.test_incremental_plan import ReconcilerVariant, adopt_some, interfere, spoil, spoil_state, summarize
from tests.scenarios.test_planned_workloads import explain, list_objects, request_rescheduling, show, simulate

BRANCHES = ("resident", "either", "shared", "forgetful")
NAMES = re.compile(r"\S*[/.]\S+")
NO_REASON = "no reason"


class Difference(Exception):
    """Two ways of one plan have come to different results."""


class Counts(NamedTuple):
    """How many runs and looks were incremental, and why the others were not."""

    runs: Counter[str]
    looks: Counter[str]
    kinds: Counter[str]


class Look(NamedTuple):
    """Something that a command shows, by settings and whether everything is planned."""

    name: str
    show: Callable[[RunSettings, bool], object]


class Player:
    """A repository that the steps of a history go through."""

    def __init__(self, where: Path, counts: Counts, looks: int) -> None:
        self.where, self.counts, self.looks = where, counts, looks
        self.fleet = Fleet(where / "fleet", where / "cache")
        self.resident = ReconcilerVariant(self.fleet, "resident", where / "a")
        self.either = ReconcilerVariant(self.fleet, "either", where / "b")
        self.files: Files = {}
        self.commits: list[str] = []
        self.reasons: list[str] = []
        self.number = 0

    def play(self, steps: list[Step], *, only_last: bool = False) -> None:
        """Play all steps; with `only_last`, look only after the last one."""
        looks = self.looks
        for number, step in enumerate(steps):
            self.number, self.looks = number, 0 if only_last and number + 1 < len(steps) else looks
            try:
                self._play(step)
            except Exception as error:
                error.add_note(f"step {number}")
                raise

    def _play(self, step: Step) -> None:
        fleet, dice = self.fleet, Random(step.seed)
        head = fleet.repository.references.get("refs/heads/resident")
        oid = "" if head is None else str(head.target)
        changes = {path: text.replace(HEAD, oid) if isinstance(text, str) else text for path, text in step.files.items()}
        changes = {path: text for path, text in changes.items() if text is not None or self.files.get(path) is not None}
        self.files |= changes
        for branch, files in step.branches.items():
            if files is not None or f"refs/heads/{branch}" in fleet.repository.references:
                commit_branch(fleet, branch, files, step.hour)
        if changes or not self.number:
            self.commits.append(fleet.commit(changes, hour=step.hour, message=step.message))
        if not self.number and dice.random() < 0.15 and {"apps/web.yaml", "clusters/third.yaml"} <= self.files.keys():
            adopt_some(fleet, self.where, list(BRANCHES))
        spoil(dice, self.either.cache, self.where / "attic")
        if dice.random() < 0.3:
            spoil_state(dice, fleet)
        if self.number > 2 and dice.random() < 0.05:
            interfere(dice, fleet, list(BRANCHES))
        self._run(step, dice)
        for _ in range(self.looks):
            self._look(step, Random(dice.random()))

    def _run(self, step: Step, dice: Random) -> None:
        fleet, where, number, now = self.fleet, self.where, self.number, step.now
        forgetful = ReconcilerVariant(fleet, "forgetful", where / f"none-{number}")
        allowed: tuple[str, ...] = ()
        if step.allowed:
            allowed = allow_withheld(forgetful.settings(now, cache=where / f"allow-{number}")).choices.allowed
        if dice.random() < 0.2:
            self.either.run(now, fresh=dice.random() < 0.5, allowed=allowed, preview=True)
        shared = ReconcilerVariant(fleet, "shared", where / f"shared-{number}")
        runs: list[Any] = []
        for variant, fresh in ((self.resident, False), (self.either, dice.random() < 0.5), (shared, True), (forgetful, True)):
            self.reasons.clear()
            try:
                run = variant.run(now, fresh=fresh, allowed=allowed)
            except GitschedError as error:
                runs.append(f"{type(error).__name__}: {error}".replace(variant.name, "BRANCH"))
                continue
            if variant is not forgetful and number:
                self.counts.runs[(self.reasons or [NO_REASON])[0] if run.plan.complete else "incremental"] += 1
            runs.append(run)
        if any(isinstance(run, str) for run in runs):
            if len(set(map(str, runs))) > 1:
                raise Difference(f"runs fail in different ways: {runs}")
            return
        if not runs[-1].plan.complete:
            raise Difference("the plan of an empty cache is incremental")
        reports = [summarize(run) for run in runs]
        for name, other, run in zip(BRANCHES, reports, runs, strict=True):
            if found := differs(other, reports[-1]):
                texts = [f"{key}:\n  {other[key]}\n  {reports[-1][key]}" for key in found]
                raise Difference(f"{name} (complete: {run.plan.complete}) reports other {found}\n" + "\n".join(texts))
        heads = {name: find_head(fleet, name) for name in BRANCHES}
        if len(set(heads.values())) > 1:
            lines = [f"{name} {head} complete: {run.plan.complete}" for (name, head), run in zip(heads.items(), runs, strict=True)]
            other = next(name for name in BRANCHES if heads[name] != heads["forgetful"])
            text = fleet.git("diff", other, "forgetful") if all(heads.values()) else ""
            raise Difference("the commits differ: " + "; ".join(lines) + "\n" + text[:6000])

    def _look(self, step: Step, dice: Random) -> None:
        look = draw_look(dice, self.files, self.commits)
        revision = dice.choice(self.commits[-3:]) if dice.random() < 0.7 else None
        limits = dice.choice(((), (), (), LIMITS))
        more = {"revision": revision} if revision else {}
        later = step.now + dice.choice((0, 0, 0.4))
        settings = self.either.settings(later, trusted=False, guard_limits=limits, **more)
        if dice.random() < 0.2:
            settings = settings._replace(
                output_branch="shared", state="on", cache=self.where / f"beside-{self.number}-{dice.random()}"
            )
        self.reasons.clear()
        found = attempt(look, settings, complete=False)
        reason = (self.reasons or ["incremental"])[0]
        empty = Path(tempfile.mkdtemp(dir=self.where))
        whole = attempt(look, settings._replace(cache=empty, state="off"), complete=True)
        shutil.rmtree(empty)
        self.counts.kinds[look.name] += 1
        self.counts.looks[reason] += 1
        if found != whole:
            raise Difference(f"{look.name} (revision {revision}, {later}):\n{describe_difference(found, whole)}")


def find_head(fleet: Fleet, branch: str) -> str:
    found = fleet.repository.references.get(f"refs/heads/{branch}")
    return "" if found is None else str(found.target)


def describe_difference(one: object, other: object) -> str:
    """Return the innermost values that differ."""
    if isinstance(one, Mapping) and isinstance(other, Mapping) and one.keys() == other.keys():
        return "\n".join(f"{name}: {describe_difference(one[name], other[name])}" for name in one if one[name] != other[name])
    if isinstance(one, tuple | list) and isinstance(other, tuple | list) and len(one) == len(other):
        return "\n".join(describe_difference(*pair) for pair in zip(one, other, strict=True) if pair[0] != pair[1])
    if isinstance(one, str) and isinstance(other, str) and "\n" in one:
        import difflib

        return "\n".join(difflib.unified_diff(one.splitlines(), other.splitlines(), lineterm="", n=1))[:3000]
    return f"\n  with state: {one!r:.1500}\n  without:    {other!r:.1500}"


def attempt(look: Look, settings: RunSettings, *, complete: bool) -> object:
    """Return what is shown, or the error of the command."""
    try:
        return look.show(settings, complete)
    except GitschedError as error:
        return f"{type(error).__name__}: {error}"


def draw_look(dice: Random, files: Files, commits: list[str]) -> Look:
    """Return a look with random arguments."""
    objects = list_objects(files) or [("Deployment", "default", "none")]
    clusters = [name for kind, _, name in objects if kind in ("Cluster", "ManagedCluster")] or ["none"]
    kind, namespace, name = dice.choice(objects)
    drawn = dice.choice(
        ("compare", "compare", "explain", "explain", "cluster", "simulate", "simulate", "status", "rebalance", "tidy")
    )
    if drawn == "compare":
        base, shows = dice.choice((None, *commits[-3:])), dice.random() < 0.4

        def compare(settings: RunSettings, complete: bool) -> object:
            compared = compare_plans(settings, base, complete=complete, shows_fleet=shows)
            return {**write_reports(compared), **({"html": write_html(compared)} if shows else {})}

        return Look("plan" if base is None else "plan BASE HEAD", compare)
    if drawn == "explain":
        why_not = dice.choice(((), (), (dice.choice(clusters),)))
        word, other = dice.choice((kind, kind, kind.lower(), "")), dice.choice((namespace, namespace, "shop"))
        wanted = dice.choice((name, name, name, name[:-1] or "x"))
        return Look("explain", lambda settings, _: explain(settings, word, wanted, other, why_not=why_not))
    if drawn == "cluster":
        chosen = dice.choice((*clusters, "fourth"))
        return Look("explain cluster", lambda settings, _: explain(settings, "cluster", chosen, why_not=()))
    if drawn == "simulate":
        domains = tuple(FailureDomain(CLUSTER, one) for one in dice.choices((*clusters, "fourth"), k=dice.choice((1, 1, 2))))
        scaled = Scaling("a pattern", "2", Fraction(2), name=dice.choice(("api", "a*", "[cb]*", "w*", "none")))
        copies = ((dice.choice(clusters), "copied"),)
        scenario = dice.choice(
            (
                Scenario(lose=domains, unreachable=dice.random() < 0.3),
                Scenario(lose=domains),
                Scenario(drain=domains),
                Scenario(scale=(scaled,)),
                Scenario(copies=copies),
                Scenario(lose=domains, copies=copies, fresh=dice.random() < 0.3),
            )
        )
        return Look("simulate", lambda settings, _: simulate(settings, scenario))
    if drawn == "losses":
        request = dice.choice(
            (LossRequest("cluster"), LossRequest("region"), LossRequest(PAIRS), LossRequest("cluster", unreachable=True))
        )
        return Look("simulate --sweep", lambda settings, _: simulate_source_losses(settings, request, [], lambda *_: None, 1))
    if drawn == "maintenance":
        drained = (dice.choice((*clusters, "fourth")),)
        return Look("drain", lambda settings, _: plan_maintenance(settings._replace(revision=None), "drain", drained, None))
    if drawn == "status":
        chosen = dice.choice((name, name[1:], *clusters))
        return Look("status, tree", lambda settings, _: show(settings, chosen))
    if drawn == "rebalance":
        selection = dice.choice(
            (
                WorkloadSelection(((kind, namespace, name),)),
                WorkloadSelection(displaced=True, namespace=dice.choice(("", namespace))),
                WorkloadSelection(labels=parse_selector_text(dice.choice(("app", "!app"))), namespace=namespace),
            )
        )
        with_companions = dice.random() < 0.8
        return Look("rebalance", lambda settings, _: request_rescheduling(settings, selection, with_companions=with_companions))
    return Look("tidy", lambda settings, _: list_expired_documents(settings))


@contextmanager
def prepared(player: Player, seed: int) -> Iterator[None]:
    """Let bugs of incremental plans be raised, note why plans are complete, and have small fleets stored as large ones are."""
    dice = Random(seed)
    init = NeedsCompletePlan.__init__

    def note(self: NeedsCompletePlan, *arguments: Any) -> None:
        player.reasons.append(NAMES.sub("...", str(arguments[0]) if arguments else ""))
        init(self, *arguments)

    def fail(error: Exception) -> None:
        raise Difference("a bug showed when the last plan was continued") from error

    run = remember_builds(scratch.run_on_files)
    patches = [
        patch.object(file_parser, "parse_file", RememberedFiles(file_parser.parse_file)),
        patch.object(package_digest, "digest_package", remember_digest(package_digest.digest_package)),
        patch.object(kustomize, "run_on_files", run),
        patch.object(helm, "run_on_files", run),
        patch.object(fallback, "report_fallback", fail),
        patch.object(NeedsCompletePlan, "__init__", note),
        patch.object(document_rows, "MIN_DIVIDED", dice.choice((4, document_rows.MIN_DIVIDED))),
        patch.object(output_commit, "MAX_UNSTABLE", dice.choice((0, output_commit.MAX_UNSTABLE))),
        patch.object(output_commit, "MIN_KEYED_ROWS", dice.choice((0, output_commit.MIN_KEYED_ROWS))),
        patch.object(new_state, "MIN_WORKLOADS", dice.choice((0, new_state.MIN_WORKLOADS))),
    ]
    with ExitStack() as stack:
        for one in patches:
            stack.enter_context(one)
        yield


def find_difference(steps: list[Step], seed: int, looks: int, counts: Counts, *, only_last: bool = False) -> str | None:
    """Play a history; return where its plans differ, or None."""
    where = Path(tempfile.mkdtemp(prefix="combined-"))
    try:
        player = Player(where, counts, looks)
        with prepared(player, seed):
            player.play(steps, only_last=only_last)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is what is looked for
        return "".join(traceback.format_exception(error, limit=-12))
    finally:
        shutil.rmtree(where, ignore_errors=True)
    return None


def reduce_steps(steps: list[Step], fails: Callable[[list[Step]], bool]) -> list[Step]:
    """Return fewer steps with fewer files that still fail."""
    for attempt_number in range(3):
        before = steps
        for number in reversed(range(1, len(steps) - 1)):
            merged = steps[number]._replace(files={**steps[number].files, **steps[number + 1].files})
            later = steps[number + 1]._replace(files=merged.files, branches={**merged.branches, **steps[number + 1].branches})
            for shorter in ([*steps[:number], *steps[number + 1 :]], [*steps[:number], later, *steps[number + 2 :]]):
                if fails(shorter):
                    steps = shorter
                    break
        for number, step in enumerate(steps):
            for names in (sorted(step.files), *([name] for name in sorted(step.files))):
                kept = {path: text for path, text in steps[number].files.items() if path not in names}
                shorter = [*steps[:number], steps[number]._replace(files=kept), *steps[number + 1 :]]
                if kept != steps[number].files and fails(shorter):
                    steps = shorter
        if steps == before or attempt_number == 2:
            break
    return steps


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--step", type=int, default=1, help="the difference of seeds")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--length", type=int, default=10, help="commits of a history")
    parser.add_argument("--looks", type=int, default=3, help="looks after each commit")
    parser.add_argument("--reduce", action="store_true", help="reduce the history of the first seed to few files")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    gc.enable()  # importing the fixtures of the tests has disabled it
    with tempfile.TemporaryDirectory() as home:
        Path(home, "gitconfig").write_text(_GIT_CONFIG.format(template=home))
        os.environ.update(_COMMITS | {"HOME": home, "GIT_CONFIG_GLOBAL": f"{home}/gitconfig", "GIT_CONFIG_NOSYSTEM": "1"})
        return search(options)


def search(options: argparse.Namespace) -> int:
    """Play histories until the time is over, and print counts, to standard error after each history; or reduce one."""
    counts = Counts(Counter(), Counter(), Counter())
    seed, end, failed, commits, total = options.first, time.monotonic() + options.seconds, 0, 0, ""
    if options.reduce:
        return reduce_seed(options, counts)
    while time.monotonic() < end:
        steps = draw_history(seed, options.length)
        if found := find_difference(steps, seed, options.looks, counts):
            failed += 1
            print(f"=== seed {seed}\n{found}", flush=True)
        commits += len(steps)
        seed += options.step
        looks = sum(counts.kinds.values())
        played = f"seeds {options.first} to {seed - options.step}: {commits} commits, {looks} looks"
        total = f"=== {played}, {failed} histories with a difference"
        print(total, file=sys.stderr, flush=True)
    print(total)
    for title, counted in (("runs", counts.runs), ("looks", counts.looks), ("kinds of looks", counts.kinds)):
        print(f"{title}:")
        for name, count in counted.most_common():
            print(f"{count:7} {name}")
    return failed


def reduce_seed(options: argparse.Namespace, counts: Counts) -> int:
    """Print the steps to which a history can be reduced."""
    seed = options.first
    steps = draw_history(seed, options.length)
    found = find_difference(steps, seed, options.looks, counts)
    if found is None:
        print("no difference")
        return 0
    number = int(found.rsplit("step ", 1)[1].split()[0])
    steps, marker = steps[: number + 1], found.split("Difference: ")[-1].split("\n")[0][:40]
    end = time.monotonic() + options.seconds

    def fails(shorter: list[Step]) -> bool:
        if time.monotonic() > end:
            return False
        text = find_difference(shorter, seed, options.looks, counts, only_last=only_last)
        return text is not None and marker[:25] in text

    only_last = True
    only_last = fails(steps)
    steps = reduce_steps(steps, fails)
    print(find_difference(steps, seed, options.looks, counts, only_last=only_last))
    for step in steps:
        print(f"##### {step._replace(files={}, branches={})}")
        for path, text in step.files.items():
            print(f"--- {path}\n{text}")
        for branch, files in step.branches.items():
            print(f"--- branch {branch}\n{files}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
