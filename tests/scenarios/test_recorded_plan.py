"""A run that has nothing to do says so from the output branch alone, as a complete run would, unless anything might be different."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gitsched import __version__
from gitsched.apis.gitsched.operator_config import OperatorConfig
from gitsched.build.builder import Builder
from gitsched.cli.exit_codes import get_review_code
from gitsched.cli.reports import format_outputs
from gitsched.decide.incremental import repeated_decisions
from gitsched.git.notes import NOTES_REF
from gitsched.reconcile import Reconciler, RunResult, package_digest, source_plan
from gitsched.reconcile.builds import build_runs
from gitsched.reconcile.output import output_commit, recorded_plan
from gitsched.reconcile.output.freeze import set_freeze
from gitsched.reconcile.output.recorded_plan import PLAN_KEY, PlannedOutcomes
from gitsched.reconcile.run import make_review
from gitsched.report.serialization import serialize_review
from gitsched.report.text import write_run
from tests.scenarios.conftest import Fleet, cluster, deployment, policy
from tests.scenarios.histories import Files
from tests.scenarios.plain_histories import PlainHistory
from tests.scenarios.tenant_histories import TenantHistory
from tests.scenarios.test_incremental_comparison import DependentHistory, OtherApisHistory

FILES = {
    "clusters/first.yaml": cluster("first"),
    "clusters/second.yaml": cluster("second"),
    "apps/web.yaml": deployment("web"),
    "apps/unselected.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: unselected, namespace: default}\n",
    "policies/all.yaml": policy("first"),
    "policies/none.yaml": policy("third", name="none", kind="StatefulSet"),
}

BUILD = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec: {source: {kustomize: {build: [apps]}}}
"""


class Runner:
    """Reconciles one repository, each time as a new machine without a cache."""

    def __init__(self, fleet: Fleet, where: Path) -> None:
        self.fleet, self.where, self.count = fleet, where, 0

    def run(
        self, hour: float, *, reads_record: bool = False, preview: bool = False, cache: Path | None = None, **more: Any
    ) -> RunResult:
        self.count += 1
        settings = self.fleet.settings(hour, cache=cache or self.where / f"cache-{self.count}", **more)
        return Reconciler(settings).run(settings.now, reads_record=reads_record, preview=preview)


@pytest.fixture
def runner(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    monkeypatch.setattr(output_commit, "MIN_KEYED_ROWS", 0)  # as in a large fleet
    return Runner(fleet, tmp_path)


def is_recorded(found: RunResult) -> bool:
    return isinstance(found.plan.outcomes, PlannedOutcomes)


def report(found: RunResult) -> tuple[object, ...]:
    """Return everything that a command shows of a run."""
    review = make_review(found)
    codes = [get_review_code(review, fail_on) for fail_on in ("error", "warning", "unschedulable", "none")]
    return write_run(review, 160), serialize_review(review), format_outputs(review), codes, review.next_wakeup, found.plan.findings


HISTORIES: dict[str, tuple[Callable[[Random], Any], tuple[float, ...], int, int, int]] = {
    "independent workloads": (partial(PlainHistory, lenient=True), (), 1, 4, 2),
    "workloads that bring others along": (DependentHistory, (0.9,), 4, 4, 2),
    "tenants": (partial(TenantHistory, lenient=True), (), 3, 3, 2),
    "an autoscaler that waits": (OtherApisHistory, (), 4, 5, 0),
}
"""With the arguments of a step, a seed, the number of steps, and how often at least the output branch says that there is nothing to do."""


@pytest.mark.parametrize("name", HISTORIES)
def test_what_the_branch_records_is_what_a_complete_run_says(
    runner: Runner, name: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.CRITICAL)
    make, arguments, seed, steps, wanted = HISTORIES[name]
    history = make(Random(seed))
    assert play(runner, seed, history.files, partial(history.go_on, *arguments), tmp_path / "kept", steps) >= wanted


def play(runner: Runner, seed: int, files: Files, go_on: Callable[[], Files], kept: Path, steps: int) -> int:
    """Run a history; return how often the output branch said that there is nothing to do."""
    dice, hour, found, fleet = Random(seed), 0.0, 0, runner.fleet
    fleet.commit(files)
    for step in range(steps):
        if step:
            hour += dice.choice((0, 0.1, 2))
            fleet.commit(go_on(), hour=hour)
        runs = [runner.run(hour, cache=kept, output_branch="kept"), runner.run(hour, output_branch="placements")]
        assert runs[0].after == runs[1].after, f"step {step}: the trailers of an incremental and of a complete plan differ"
        if dice.random() < 0.5:
            fleet.commit({"README.md": f"step {step}"}, hour=hour + 0.05)
        later = partial(runner.run, hour + dice.choice((0.05, 0.3)), preview=True)
        recorded = later(reads_record=True)
        if is_recorded(recorded):
            found += 1
            assert report(recorded) == report(later()), f"step {step}"
    return found


def test_a_run_with_nothing_to_do_reads_no_manifest(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    runner.fleet.commit(FILES)
    first = runner.run(0)
    monkeypatch.setattr(source_plan, "plan_source", lambda *_, **__: pytest.fail("a complete plan"))
    second = runner.run(1, reads_record=True)
    assert (second.before, second.after, second.changed) == (first.after, None, False)
    text = write_run(make_review(second), 160)
    assert "No changes" in text
    assert "1 workload: 1 placed; 1 object not selected by any policy" in text
    assert second.plan.findings == first.plan.findings != ()


@pytest.mark.parametrize(
    ("path", "is_read"),
    [
        ("README.md", False),
        ("apps/README", False),
        (".github/workflows/test.yaml", False),
        ("clusters/new.yaml", True),
        ("apps/values.json", True),
        ("apps/.sourceignore", True),
        ("apps/Kustomization", True),
        ("chart/Chart.yaml", True),
        ("gitsched.yaml", True),
    ],
)
def test_a_commit_of_files_that_are_not_read_changes_nothing(runner: Runner, tmp_path: Path, path: str, is_read: bool) -> None:
    fleet, kept = runner.fleet, tmp_path / "kept"
    fleet.commit(FILES)
    runner.run(0)
    runner.run(0, cache=kept, output_branch="kept")
    assert runner.run(0.5, reads_record=True).after is None
    commit = fleet.commit({path: f"# {path}\n"}, hour=1)
    found = runner.run(2, reads_record=True, preview=True)
    assert is_recorded(found) != is_read
    if not is_read:
        assert report(found) == report(runner.run(2, preview=True))
        published = runner.run(2, reads_record=True)
        with_cache = runner.run(2, cache=kept, output_branch="kept")
        assert (published.before, published.after) == (with_cache.before, with_cache.after) == (found.before, None)
        assert commit in fleet.git("notes", "--ref", NOTES_REF, "show", "placements")
        fleet.commit({"README.md": "again"}, hour=3)
        assert is_recorded(runner.run(4, reads_record=True))


def test_a_symbolic_link_that_is_new_is_reported(runner: Runner) -> None:
    runner.fleet.commit(FILES)
    runner.run(0)
    (runner.fleet.path / "linked").symlink_to("apps")
    runner.fleet.commit(hour=1)
    assert not is_recorded(runner.run(2, reads_record=True, preview=True))


def test_a_machine_that_keeps_a_state_brings_it_up_to_date(runner: Runner, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    runner.fleet.commit(FILES)
    runner.run(0, cache=kept)
    runner.fleet.commit({"apps/web.yaml": deployment("web", 5)}, hour=1)
    runner.run(1)  # on another machine
    assert is_recorded(runner.run(2, reads_record=True))
    continued = runner.run(2, reads_record=True, cache=kept)
    assert not is_recorded(continued)
    assert not continued.plan.complete
    assert not runner.run(2, preview=True, cache=kept).plan.complete


def edit_output(fleet: Fleet) -> None:
    """Commit an edit of a person to the output branch."""
    fleet.git("worktree", "add", "-q", "../output", "placements")
    output = fleet.path.parent / "output"
    (output / "README.md").write_text("mine")
    fleet.git("-C", str(output), "commit", "-q", "-a", "-m", "By hand")


def replace_file(fleet: Fleet, path: str, text: str) -> None:
    fleet.commit({path: text}, hour=0.1)


SITUATIONS: dict[str, Callable[[Fleet], object]] = {
    "another source commit": lambda fleet: replace_file(fleet, "apps/web.yaml", deployment("web", 3)),
    "a person edited the output": edit_output,
    "a person amended the output commit": lambda fleet: fleet.git("update-ref", "refs/heads/placements", amend(fleet)),
    "placements are frozen": lambda fleet: set_freeze(fleet.settings(1, push=None), "for now"),
}
OPTIONS: tuple[dict[str, Any], ...] = (
    {"paths": ("apps", "clusters", "policies")},
    {"strict": True},
    {"allowed": ("0" * 64,)},
    {"released_clusters": ("first",)},
    {"require_reviewed": True},
    {"state": "on"},
    {"operator": OperatorConfig(required_tenants=("*",))},
)


def amend(fleet: Fleet) -> str:
    text = fleet.git("cat-file", "commit", "placements").replace("place:", "placed:")
    committer = next(line for line in text.splitlines() if line.startswith("committer"))
    changed = text.replace(committer, committer.replace("committer ", "committer someone-"))
    return fleet.git("hash-object", "-t", "commit", "-w", "--stdin", data=f"{changed}\n".encode())


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_run_plans_when_anything_might_be_different(runner: Runner, situation: str) -> None:
    runner.fleet.commit(FILES)
    runner.run(0)
    SITUATIONS[situation](runner.fleet)
    assert not is_recorded(runner.run(1, reads_record=True, preview=True))


def test_a_run_with_other_options_or_another_build_of_the_same_version_plans(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner.fleet.commit(FILES)
    runner.run(0)
    again = partial(runner.run, 1, reads_record=True, preview=True)
    assert is_recorded(again())
    for options in OPTIONS:
        assert not is_recorded(again(**options)), options
    monkeypatch.setattr(recorded_plan, "compute_package_digest", lambda _: "changed")
    assert not is_recorded(again())


def test_required_tenants_that_the_last_plan_had_need_no_plan(runner: Runner) -> None:
    tenant = "apiVersion: gitsched.io/v1alpha1\nkind: Tenant\nmetadata: {name: shop}\nspec: {paths: [shop], namespaces: [shop]}\n"
    runner.fleet.commit(FILES | {"tenants/shop.yaml": tenant})
    operator = OperatorConfig(required_tenants=("sh*",))
    runner.run(0, operator=operator)
    found = runner.run(1, reads_record=True, preview=True, operator=operator)
    assert is_recorded(found)
    assert report(found) == report(runner.run(1, preview=True, operator=operator))


def test_commits_of_a_small_fleet_have_no_key(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_commit, "MIN_KEYED_ROWS", 4)
    runner.fleet.commit(FILES)
    runner.run(0)
    assert PLAN_KEY not in runner.fleet.trailers()


def test_a_run_plans_once_something_is_due(runner: Runner) -> None:
    """The taint is tolerated for an hour."""
    toleration = "    clusterTolerations: [{key: drain, operator: Exists, effect: NoExecute, tolerationSeconds: 3600}]\n"
    runner.fleet.commit(FILES | {"policies/all.yaml": policy("first", "second", more=toleration)})
    runner.run(0)
    runner.fleet.commit({"clusters/first.yaml": cluster("first", "drain:NoExecute")}, hour=0.1)
    found = runner.run(0.1)
    assert found.plan.next_wakeup is not None
    assert not is_recorded(runner.run(2, reads_record=True, preview=True))


def test_where_kustomizations_list_files_only_the_same_tree_has_the_same_plan(runner: Runner) -> None:
    runner.fleet.commit(FILES | {"apps/kustomization.yaml": "resources: [web.yaml]\n"})
    runner.run(0)
    found = runner.run(1, reads_record=True, preview=True)
    assert is_recorded(found)
    assert report(found) == report(runner.run(1, preview=True))
    runner.fleet.commit({"README.md": "not read"}, hour=2)
    assert not is_recorded(runner.run(2, reads_record=True, preview=True))


@pytest.mark.needs("kubectl")
def test_built_objects_need_the_same_programs_and_the_same_source(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    built = {"gitsched.yaml": BUILD, "apps/kustomization.yaml": "namePrefix: a-\nresources: [web.yaml]\n"}
    runner.fleet.commit(FILES | built)
    first = runner.run(0)
    assert ("a-web", "placed") in [(key.name, outcome.state) for key, outcome in first.plan.outcomes.items()]
    again = partial(runner.run, 1, preview=True)
    found = again(reads_record=True)
    assert is_recorded(found)
    assert report(found) == report(again())
    with monkeypatch.context() as patched:
        patched.setattr(build_runs, "find_builder", lambda _: Builder(Path("kubectl"), "kubectl v1.0.0"))
        assert not is_recorded(again(reads_record=True))
    runner.fleet.git("config", "remote.origin.url", "https://git.example.com/fleet")
    assert not is_recorded(again(reads_record=True))


def test_a_commit_has_no_key_where_a_file_is_broken(runner: Runner) -> None:
    runner.fleet.commit(FILES | {"apps/broken.yaml": "kind: ["})
    runner.run(0)
    assert PLAN_KEY not in runner.fleet.trailers()


def test_a_bug_in_deciding_once_more_leaves_the_commit_without_a_key(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    runner.fleet.commit(FILES)
    monkeypatch.setattr(repeated_decisions, "_is_stable", lambda *_: 1 / 0)
    assert runner.run(0).after is not None
    assert PLAN_KEY not in runner.fleet.trailers()


def test_a_checkout_and_a_wheel_with_the_same_files_have_the_same_digest(tmp_path: Path) -> None:
    for root, schemas in (("checkout", "schemas"), ("wheel", "gitsched/schemas")):
        for path, text in {"gitsched/a.py": "a = 1", f"{schemas}/core/a.json": "{}"}.items():
            file = tmp_path / root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    wheel = tmp_path / "wheel"
    listed = sorted(package_digest.list_files(wheel / "gitsched"))
    record = wheel / f"gitsched-{__version__}.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("".join(f"{line},5\n" for line in listed) + "gitsched/a.pyc,,\n")
    digests = [package_digest.digest_package(tmp_path / root / "gitsched") for root in ("checkout", "wheel")]
    assert digests[0] == digests[1]
    (tmp_path / "checkout/gitsched/a.py").write_text("a = 2")
    assert package_digest.digest_package(tmp_path / "checkout/gitsched") != digests[0]
