"""The examples of Krake's design document: metrics, providers, and every spelling of constraints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import gitsched
from gitsched.apis.krake import parse_label_constraint, parse_metric_constraint
from gitsched.apis.krake.constraints import ConstraintError
from gitsched.metrics.queries import list_metric_queries
from tests.builders.krake import Body, ScheduleRuns, application, cluster, codes, weigh
from tests.tables import each_row

TEXT = Path(__file__).with_name("design-document.yaml").read_text()
PLACEHOLDER = "<metrics provider name>"
NOTE = "krake-secret-in-git"
"""The finding about the plain-text token in the design document."""


def read(provider: str = PLACEHOLDER) -> list[Body]:
    return list(yaml.safe_load_all(TEXT.replace(PLACEHOLDER, provider)))


def test_every_document_of_the_design_document_is_valid() -> None:
    assert [(finding.severity, finding.code) for finding in gitsched.validate(read())] == [("warning", NOTE)]


def test_the_placeholder_refers_to_a_missing_provider() -> None:
    schedule = ScheduleRuns(*read(), cluster("one", metrics=weigh(heat_demand_zone_1=0.45))).run()
    (finding,) = (finding for finding in schedule.findings if finding.code != NOTE)
    assert finding.code == "krake-failing-metric"
    assert f"there is no GlobalMetricsProvider '{PLACEHOLDER}'" in finding.message


def test_the_static_provider_provides_its_value() -> None:
    runs = ScheduleRuns(
        *read("static_provider"), cluster("one", metrics=weigh(heat_demand_zone_1=0.45)), application(), stickiness=0
    )
    schedule = runs.run()
    (result,) = schedule.explain("Application", "echo", "tenant-a")
    assert codes(schedule) == {NOTE}
    assert result.total == pytest.approx(0.9 / 5)


@pytest.mark.parametrize(
    ("provider", "members"),
    [
        ("prometheus_provider", {"url"}),
        ("kafka_provider", {"comparison_column", "table", "url", "value_column"}),
        ("influx_provider", {"bucket", "org", "url", "token"}),
    ],
)
def test_queries_are_found_for_each_provider_type(provider: str, members: set[str]) -> None:
    (query,) = list_metric_queries(read(provider))
    assert (query.provider, query.metric, set(query.spec)) == (provider, "heat_demand_zone_1", members)


LABELS = {
    "location is DE": [True, False, False],
    "location = DE": [True, False, False],
    "location == DE": [True, False, False],
    "location is not DE": [False, True, False],
    "location != DE": [False, True, False],
    "location in (DE, FR)": [True, False, False],
    "location not in (DE, FR)": [False, True, False],
}
"""The expected matches of DE, of SK, and of a cluster without the label."""
METRICS = {
    **dict.fromkeys(("load is 5", "load = 5", "load == 5"), "no yes no"),
    **dict.fromkeys(("load is not 5", "load != 5"), "yes no yes"),
    **dict.fromkeys(("load greater than 5", "load gt 5", "load > 5"), "no no yes"),
    **dict.fromkeys(("load greater than or equal 5", "load gte 5", "load >= 5", "load => 5"), "no yes yes"),
    **dict.fromkeys(("load less than 5", "load lt 5", "load < 5"), "yes no no"),
    **dict.fromkeys(("load less than or equal 5", "load lte 5", "load <= 5", "load =< 5"), "yes yes no"),
}
"""The expected matches of 4, 5 and 6."""


@pytest.mark.parametrize(("text", "results"), LABELS.items())
def test_label_constraints_match_as_documented(text: str, results: list[bool]) -> None:
    constraint = parse_label_constraint(text)
    assert [constraint.match(labels) for labels in ({"location": "DE"}, {"location": "SK"}, {})] == results


@each_row(("text", "results"), METRICS.items())
def test_metric_constraints_match_as_documented(text: str, results: str) -> None:
    constraint = parse_metric_constraint(text)
    assert [constraint.match({"load": value}) for value in (4.0, 5.0, 6.0)] == [word == "yes" for word in results.split()]
    assert not constraint.match({})


@each_row(
    ("parse", "text", "position"),
    [
        pytest.param(parse_label_constraint, "", 0, id="nothing"),
        pytest.param(parse_label_constraint, "location", 8, id="a name alone"),
        pytest.param(parse_label_constraint, "location is", 11, id="no value"),
        pytest.param(parse_label_constraint, "location in DE", 12, id="no list"),
        pytest.param(parse_label_constraint, "location in (DE SK)", 16, id="no comma"),
        pytest.param(parse_label_constraint, "location in (DE,\t)", 16, id="a tab for a value"),
        pytest.param(parse_label_constraint, "location is DE SK", 15, id="too much"),
        pytest.param(parse_label_constraint, "location is -DE", 12, id="no value for a label"),
        pytest.param(parse_metric_constraint, "load in (5)", 5, id="a set of numbers"),
        pytest.param(parse_metric_constraint, "load > -5", 7, id="a negative number"),
    ],
)
def test_a_syntax_error_has_its_position(parse: Any, text: str, position: int) -> None:
    with pytest.raises(ConstraintError, match="at character") as error:
        parse(text)
    assert error.value.position == position
