"""A run that finds nothing to do leaves its answer for the next process, which gives it only where a run would do the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from gitsched.reconcile import RunResult
from gitsched.reconcile.cache import checked_file, idle_answers
from gitsched.reconcile.cache.idle_answers import IdleAnswers, open_idle_answers
from tests.scenarios.conftest import Fleet, at_hour, cluster, deployment, policy

HEAD = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n"
FILES = {
    "clusters/first.yaml": cluster("first"),
    "apps/web.yaml": deployment("web"),
    "policies/all.yaml": policy("first"),
}


def open_answers(
    fleet: Fleet,
    hour: float = 2,
    terminal: tuple[object, ...] = ("text", 80),
    environment: dict[str, str] | None = None,
    **options: Any,
) -> IdleAnswers | None:
    given = {"paths": (), "strict": False, **options}
    return open_idle_answers(fleet.cache, str(fleet.path), at_hour(hour), given, environment or {}, terminal)


def read(fleet: Fleet, hour: float = 2, **more: Any) -> str | None:
    answers = open_answers(fleet, hour, **more)
    return None if answers is None else answers.read()


def answer(fleet: Fleet, hour: float = 2) -> RunResult:
    """Reconcile, and keep an answer."""
    answers = open_answers(fleet, hour)
    run = fleet.reconcile(hour)
    assert answers is not None
    answers.keep(run, "nothing to do")
    return run


@pytest.fixture
def idle(fleet: Fleet) -> Fleet:
    """A fleet whose last run found nothing to do."""
    fleet.commit(FILES)
    assert answer(fleet, 0).changed
    assert read(fleet, 0) is None, "a run with changes is not repeated"
    assert answer(fleet, 1).state_file is not None
    return fleet


def test_the_same_start_gives_the_same_answer_until_something_changes(idle: Fleet) -> None:
    assert read(idle, 1) == read(idle, 1000) == "nothing to do"
    assert read(idle, 0) is None, "the clock was set back"
    assert read(idle, strict=True) is None
    assert read(idle, terminal=("text", 81)) is None
    assert read(idle, reviewed=object()) is None
    assert read(idle, push="origin") is None


def replace_state(fleet: Fleet) -> None:
    (state,) = fleet.cache.glob("plan-*")
    os.utime(state, ns=(0, 0))


def damage(fleet: Fleet) -> None:
    (file,) = fleet.cache.glob("idle-*")
    file.write_bytes(file.read_bytes().replace(b"nothing", b"another"))


def lose_output(fleet: Fleet) -> None:
    oid = fleet.git("rev-parse", "placements^{tree}")
    (fleet.path / ".git/objects" / oid[:2] / oid[2:]).unlink()


CHANGES: dict[str, Callable[[Fleet], object]] = {
    "a commit": lambda fleet: fleet.commit({"README.md": "new"}, hour=1),
    "another branch": lambda fleet: fleet.git("branch", "other"),
    "HEAD on another branch": lambda fleet: fleet.git("checkout", "-q", "-b", "other"),
    "an output branch that moved": lambda fleet: fleet.git("update-ref", "refs/heads/placements", "main"),
    "a setting of the repository": lambda fleet: fleet.git("config", "remote.origin.url", "https://example.com"),
    "a lost object of the output": lose_output,
    "another state of the plan": replace_state,
    "a damaged answer": damage,
    "a cache that others can write to": lambda fleet: fleet.cache.chmod(0o777),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_makes_the_next_run_look(idle: Fleet, change: str) -> None:
    CHANGES[change](idle)
    assert read(idle) is None


def test_the_environment_and_the_code_are_part_of_the_start(idle: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(idle, environment={"OLDPWD": "/elsewhere"}) is not None
    assert read(idle, environment={"GIT_SSH": "ssh"}) is None
    monkeypatch.setattr(idle_answers, "identify_code", lambda: "another")
    assert read(idle) is None


def test_an_answer_ends_when_something_is_due(fleet: Fleet) -> None:
    """The taint is tolerated for an hour."""
    toleration = "    clusterTolerations: [{key: drain, operator: Exists, effect: NoExecute, tolerationSeconds: 3600}]\n"
    fleet.commit(
        FILES | {"clusters/second.yaml": cluster("second"), "policies/all.yaml": policy("first", "second", more=toleration)}
    )
    fleet.reconcile(0)
    fleet.commit({"clusters/first.yaml": cluster("first", "drain:NoExecute")}, hour=0.1)
    fleet.reconcile(0.1)
    assert answer(fleet, 0.2).plan.next_wakeup is not None
    assert read(fleet, 0.3) is not None
    assert read(fleet, 1.5) is None


def test_a_long_answer_is_not_kept(idle: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked_file, "MAX_SIZE", 100)
    assert read(idle) is None


def test_a_repository_with_many_refs_has_no_answer(idle: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.git.ref_state.MAX_REFS", 1)
    assert open_answers(idle) is None


def test_refs_that_move_during_a_run_leave_no_answer(fleet: Fleet) -> None:
    fleet.commit(FILES)
    fleet.reconcile(0)
    answers = open_answers(fleet, 1)
    run = fleet.reconcile(1)
    fleet.git("branch", "other")
    assert answers is not None
    answers.keep(run, "nothing to do")
    assert read(fleet) is None


def test_nothing_is_kept_where_more_than_commits_has_an_effect(fleet: Fleet) -> None:
    fleet.commit(FILES | {"gitsched.yaml": f"{HEAD}  source: {{facts: {{branch: facts}}}}\n"})
    fleet.git("branch", "facts")
    fleet.reconcile(0)
    assert answer(fleet, 1).state_file is None
    assert read(fleet) is None
