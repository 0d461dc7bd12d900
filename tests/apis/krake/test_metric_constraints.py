"""Metric constraints: the compared value by setting, its explanation, and constraints that nothing can satisfy."""

from __future__ import annotations

import pytest

import gitsched
from tests.builders.krake import Body, application, cluster, find, later, measure, metric, weigh
from tests.tables import each_row

METRICS = [*measure(load=5, steps=2)[:1], metric("load", 0, 10), metric("steps", 0, 5, 2, 4, 9)]
RAW, NORMALISED, WEIGHTED = "raw", "normalised", "weighted"


def run(constraint: str, mode: str | None, *documents: Body, **options: bool) -> gitsched.Schedule:
    wanted = application(constraints={"metrics": [constraint]})
    config = {"krake": {"metricConstraints": mode}} if mode else {}
    candidates = documents or (cluster("one", metrics=weigh(load=0.5)),)
    return gitsched.schedule([*METRICS, *candidates, wanted], now=later(0), config=config, **options)


def place(schedule: gitsched.Schedule) -> str | None:
    target = find(schedule.documents, "Application", "echo")["status"].get("scheduled_to")
    return target["name"] if target else None


@pytest.mark.parametrize(("mode", "value"), [(RAW, "5"), (NORMALISED, "0.5"), (WEIGHTED, "0.25"), (None, "0.25")], ids=str)
def test_a_constraint_compares_the_value_of_the_setting(mode: str | None, value: str) -> None:
    """The metric is 5 in a range from 0 to 10, with a weight of 0.5; gitsched.schedule compares as Krake's code does."""
    for other in ("5", "0.5", "0.25"):
        assert place(run(f"load = {other}", mode)) == ("one" if other == value else None)


def test_the_default_of_the_commands_is_the_value_of_the_provider() -> None:
    assert place(run("load = 5", None, upstream_defaults=False)) == "one"
    assert place(run("load = 0.25", WEIGHTED, upstream_defaults=False)) == "one"


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        (RAW, "metric constraint load > 9: it is 5"),
        (NORMALISED, "metric constraint load > 9: it is 0.5, normalised from 5"),
        (WEIGHTED, "metric constraint load > 9: it is 0.25, normalised from 5 to 0.5, times its weight 0.5"),
    ],
)
def test_a_rejection_shows_the_compared_value(mode: str, text: str) -> None:
    schedule = run("load > 9", mode)
    (result,) = schedule.explain("Application", "echo", "tenant-a")
    (message,) = (finding.message for finding in schedule.findings if finding.code == "unschedulable")
    assert (result.reason, text in message) == (text, True)


@each_row(
    ("mode", "constraint", "reason"),
    [
        (RAW, "load > 10", "the values of load are from 0 to 10"),
        (RAW, "load = 11", "the values of load are from 0 to 10"),
        (RAW, "steps = 3", "the values of steps are 2, 4"),
        (NORMALISED, "load = 5", "the normalised values of load are from 0 to 1"),
        (WEIGHTED, "load >= 0.6", "the normalised values times the weight of load are from 0 to 0.5"),
        (RAW, "lod > 1", "no candidate has the metric lod"),
        (RAW, "load >= 10", None),
        (RAW, "load = 0", None),
        (RAW, "load != 20", None),
        (RAW, "steps = 4", None),
        (WEIGHTED, "load >= 0.5", None),
        (RAW, "load > abc", None),
    ],
)
def test_a_constraint_that_no_value_satisfies_is_reported(mode: str, constraint: str, reason: str | None) -> None:
    schedule = run(constraint, mode, cluster("one", metrics=weigh(load=0.5, steps=1)), cluster("two"))
    found = [finding.message for finding in schedule.findings if finding.code == "krake-constraint-impossible"]
    assert [message.partition("satisfied: ")[2] for message in found] == ([reason] if reason else [])


def test_nothing_is_impossible_while_metrics_cannot_be_read() -> None:
    schedule = run("load > 50", RAW, cluster("one", metrics=weigh(load=1)), cluster("two", metrics=weigh(unknown=1)))
    assert "krake-constraint-impossible" not in {finding.code for finding in schedule.findings}
