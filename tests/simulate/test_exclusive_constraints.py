"""Constraints of which candidates satisfy each and none satisfies all: the finding at their line, and what is proposed instead."""

from __future__ import annotations

import pytest

import gitsched
from gitsched.apis.krake import exclusive_constraints
from tests.builders.krake import Body, application, cluster, later, measure, metric, weigh
from tests.simulate.conftest import Explain, Fleet
from tests.tables import each_row

FLEET: list[Body] = [
    cluster("dresden", labels={"location": "DE", "zone": "1"}, custom_resources=["a.io"], metrics=weigh(load=1)),
    cluster("dublin", labels={"location": "IE", "zone": "2"}, metrics=weigh(load=1)),
    *measure(load=5)[:1],
    metric("load", 0, 10),
]
NO_VALUE = "no candidate has such a value of"
NOT_ALL = "each is satisfied by a candidate, and none satisfies all"


@each_row(
    ("constraints", "expected"),
    [
        (
            {"labels": ["location is DE", "location is IE"]},
            f"location == DE and location == IE|{NO_VALUE} location; the fleet has DE, IE",
        ),
        (
            {"labels": ["location is DE", "zone is 1", "location is not DE"]},
            f"location == DE and location != DE|{NO_VALUE} location",
        ),
        ({"labels": ["location in (DE, FR)", "location in (IE, FR)"]}, f"location in (DE, FR) and location in (IE, FR)|{NO_VALUE}"),
        ({"labels": ["location is DE", "zone is 2"]}, f"location == DE and zone == 2|{NOT_ALL}"),
        ({"labels": ["location is IE"], "custom_resources": ["a.io"]}, f"location == IE and custom resource a.io|{NOT_ALL}"),
        ({"metrics": ["load > 6", "load < 6"]}, f"load > 6 and load < 6|{NO_VALUE} load; change or remove one"),
        ({"metrics": ["load > 4", "load < 6"]}, ""),
        ({"metrics": ["load > 6", "load < 8"]}, ""),
        ({"labels": ["location is DE", "zone is 1"]}, ""),
        ({"labels": ["location is DE", "location is FR"]}, ""),
    ],
)
def test_constraints_that_exclude_each_other_are_reported(constraints: Body, expected: str) -> None:
    """The smallest set of them. A constraint that no candidate satisfies has a finding of its own."""
    schedule = gitsched.schedule(
        [*FLEET, application(constraints=constraints)], now=later(0), config={"krake": {"metricConstraints": "raw"}}
    )
    texts = [finding.message for finding in schedule.findings if finding.code == "krake-constraint-impossible"]
    found = [text for text in texts if "together" in text]
    names, _, reason = expected.partition("|")
    assert len(found) == bool(expected), texts
    assert all(f": the constraints {names} cannot be satisfied together: {reason}" in text for text in found), found


def test_constraints_beyond_a_limit_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [*FLEET, application(constraints={"labels": ["location is DE", "location is IE"]})]

    def count() -> int:
        findings = gitsched.schedule(documents, now=later(0)).findings
        return sum("cannot be satisfied together" in finding.message for finding in findings)

    assert count() == 1
    monkeypatch.setattr(exclusive_constraints, "_MAX_CONSTRAINTS", 1)
    assert count() == 0


CLUSTER = """\
api: kubernetes
kind: Cluster
metadata: {{name: {0}, namespace: shop, labels: {{location: {1}}}}}
spec: {{kubeconfig: {{contexts: [{{name: c}}], clusters: [{{name: c}}], users: [{{name: c}}]}}}}
status: {{state: ONLINE}}
"""
APPLICATION = """\
api: kubernetes
kind: Application
metadata: {name: web, namespace: shop}
spec:
  manifest: [{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}]
  constraints:
    migration: true
    cluster:
      labels:
      - location is DE
      - location is IE
"""


@pytest.mark.parametrize(("cluster_name", "removed", "line"), [("dublin", "location is DE", 10), ("dresden", "location is IE", 11)])
def test_a_constraint_is_changed_and_not_a_label(
    fleet: Fleet, explain: Explain, cluster_name: str, removed: str, line: int
) -> None:
    fleet.commit({"a.yaml": CLUSTER.format("dresden", "DE"), "b.yaml": CLUSTER.format("dublin", "IE"), "web.yaml": APPLICATION})
    answer = explain("application/web", "--why-not", cluster_name, "-o", "json")["advice"][0]
    changes = [(one["text"], one["location"]) for one in answer["changes"]]
    assert (changes, answer["enough"]) == ([(f"its constraint {removed} were removed", f"web.yaml:{line}")], True)
    (found,) = (each for each in explain("application/web", "-o", "json")["findings"] if "together" in each["message"])
    assert found["location"] == {"path": "web.yaml", "line": 11, "column": 9}


@each_row(
    ("constraint", "change"),
    [
        ("location is not DE", "it had the label location=true"),
        ("location in (IE, FR)", "it had the label location=IE"),
    ],
)
def test_one_label_is_proposed_for_all_constraints_on_it(fleet: Fleet, explain: Explain, constraint: str, change: str) -> None:
    """A constraint that excludes a value requires another one."""
    app = APPLICATION.replace("location is DE", constraint).replace("      - location is IE\n", "")
    fleet.commit({"a.yaml": CLUSTER.format("dresden", "DE"), "b.yaml": CLUSTER.format("dublin", "IE"), "web.yaml": app})
    answer = explain("application/web", "--why-not", "dresden", "-o", "json")["advice"][0]
    assert answer["changes"][0]["text"] == change
