"""A field of any kind that has a value of another type stops no other document, whatever reads it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from gitsched.model.errors import GitschedError
from gitsched.reconcile import RunResult
from tests.search_depth import DEEP, count_examples, list_variants

from .conftest import UNGUARDED, Fleet, cluster, deployment, policy

Body = dict[str, Any]
FieldPath = tuple[str | int, ...]

KINDS: list[Body] = list(yaml.safe_load_all((Path(__file__).parent / "mutated_kinds.yaml").read_text()))
"""A valid document of each kind that is read, with the fields that are read."""
DEPLOYMENT = next(index for index, body in enumerate(KINDS) if body["kind"] == "Deployment")
REMOVED = object()
VALUES: tuple[Any, ...] = (
    *("", "x", "x" * 3_000, 0, 5, -1.5, True, None, [], {}, ["x"], [5], [None], [[1]], [{"a": 1}], {"a": "b"}, {"a": {"b": [1]}}),
    REMOVED,
)
RUNS = count_examples(3)
BUNDLE = "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: bundle}\nspec: {path: directory}\n"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map, namespace: shop}\n"
TENANT = (
    "apiVersion: gitsched.io/v1alpha1\nkind: Tenant\nmetadata: {name: one}\nspec: {paths: [teams/one], namespaces: [default]}\n"
)
ROLLOUT = (
    "apiVersion: gitsched.io/v1alpha1\nkind: Rollout\nmetadata: {name: waves}\nspec:\n"
    "  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]\n"
    "  rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1}}\n"
)
REST: Mapping[str, Mapping[str, str]] = {
    "nothing else": {"directory/map.yaml": MAP},
    "a Bundle": {"bundle.yaml": BUNDLE, "directory/map.yaml": MAP},
    "a Bundle and a Tenant": {"bundle.yaml": BUNDLE, "directory/map.yaml": MAP, "tenants.yaml": TENANT},
    "a Rollout": {"rollout.yaml": ROLLOUT},
}
PLACED = "clusters/ash/default/deployment-other.yaml"


def list_fields(value: Any, path: FieldPath = ()) -> Iterator[FieldPath]:
    """Yield the path of each field; of a list, those of its first two items. A kind keeps its type."""
    for step in value if isinstance(value, dict) else range(min(len(value), 2)) if isinstance(value, list) else ():
        if path or step not in ("api", "apiVersion", "kind"):
            yield (*path, step)
        yield from list_fields(value[step], (*path, step))


def replace(body: Body, path: FieldPath, value: Any) -> Body:
    changed = copy.deepcopy(body)
    holder: Any = changed
    for step in path[:-1]:
        holder = holder[step]
    if value is REMOVED:
        del holder[path[-1]]
    else:
        holder[path[-1]] = copy.deepcopy(value)
    return changed


def list_mutations(body: Body) -> list[tuple[FieldPath, Any]]:
    """Return each field with each value that it may get."""
    return [(path, value) for path in list_fields(body) for value in VALUES]


def check(run: RunResult, replicas: int, what: object) -> None:
    """Check that the healthy workload is placed with these replicas, and that each bug is reported about a mutated document. A mutated
    Rollout may keep what its clusters have until their turn."""
    outcome = next(outcome for key, outcome in run.plan.outcomes.items() if (key.kind, key.name) == ("Deployment", "good"))
    assert outcome.state == "placed" or all(target.waits for target in outcome.targets), what
    _, binding = next(record for record in outcome.records if record[0].kind == "ResourceBinding")
    assert {one["replicas"] for one in binding["spec"]["clusters"]} == {replicas}, what
    for finding in run.plan.findings:
        if finding.code == "internal-error":
            assert finding.location is not None, what
            assert finding.location.path.startswith("teams/two/"), (finding, what)


@pytest.mark.parametrize("rest", list_variants(REST, REST.keys() - {"a Bundle"}))
def test_fields_of_other_types_stop_no_healthy_workload(fleet: Fleet, rest: str) -> None:
    """One field of each kind is mutated at a time, each in a file of its own. What was placed stays, unless it has another name."""
    fixed = {f"{name}.yaml": cluster(name) for name in ("ash", "bru")}
    valid = {f"teams/two/{index}.yaml": json.dumps(body) for index, body in enumerate(KINDS)}
    more = {"policy.yaml": policy(""), "good.yaml": deployment("good"), **REST[rest]}
    fleet.commit({"gitsched.yaml": UNGUARDED, **fixed, **valid, **more})
    fleet.reconcile()
    random = Random(rest)
    mutations = [list_mutations(body) for body in KINDS]
    for number in range(RUNS):
        chosen = [random.choice(fields) for fields in mutations]
        files = {
            f"teams/two/{index}.yaml": json.dumps(replace(body, *mutation))
            for index, (body, mutation) in enumerate(zip(KINDS, chosen, strict=True))
        }
        fleet.commit({**files, "good.yaml": deployment("good", 3 + number)}, hour=1 + number)
        run = fleet.preview(1 + number) if number % 3 else fleet.reconcile(1 + number)
        check(run, 3 + number, chosen)
        if chosen[DEPLOYMENT][0][0] != "metadata" and rest != "a Rollout":
            assert PLACED in fleet.files(), chosen


@pytest.mark.search
@pytest.mark.parametrize("rest", list_variants(REST, REST.keys() - {"a Bundle"}))
def test_every_field_of_every_kind_with_every_value(fleet: Fleet, rest: str) -> None:
    """One field of each kind is mutated at a time; in a search, until each has had each value."""
    fixed = {
        "gitsched.yaml": UNGUARDED,
        "policy.yaml": policy(""),
        **REST[rest],
        **{f"{name}.yaml": cluster(name) for name in ("ash", "bru")},
    }
    fleet.commit({**fixed, "good.yaml": deployment("good"), **{f"teams/two/{i}.yaml": json.dumps(b) for i, b in enumerate(KINDS)}})
    fleet.reconcile()
    mutations = [list_mutations(body) for body in KINDS]
    rounds = range(max(map(len, mutations)))
    for number in rounds if DEEP else Random(rest).sample(rounds, 2):
        chosen = [fields[number % len(fields)] for fields in mutations]
        files = {f"teams/two/{index}.yaml": json.dumps(replace(body, *chosen[index])) for index, body in enumerate(KINDS)}
        fleet.commit({**files, "good.yaml": deployment("good", 3 + number % 90)}, hour=1)
        try:
            run = fleet.preview(1)
        except GitschedError as error:
            pytest.fail(f"{chosen}: {error}")
        check(run, 3 + number % 90, chosen)


@pytest.mark.search
def test_each_field_of_each_kind_alone(fleet: Fleet) -> None:
    """What a mutated workload has placed stays as long as its document says who it is."""
    fixed = {"gitsched.yaml": UNGUARDED, "ash.yaml": cluster("ash"), "policy.yaml": policy(""), **REST["a Bundle and a Tenant"]}
    fleet.commit({**fixed, "good.yaml": deployment("good"), **{f"teams/two/{i}.yaml": json.dumps(b) for i, b in enumerate(KINDS)}})
    fleet.reconcile()
    every = [(index, path, value) for index, body in enumerate(KINDS) for path, value in list_mutations(body)]
    random = Random(0)
    for number, (index, path, value) in enumerate(random.sample(every, count_examples(8))):
        text = json.dumps(replace(KINDS[index], path, value))
        fleet.commit({f"teams/two/{index}.yaml": text, "good.yaml": deployment("good", 3 + number % 90)}, hour=1)
        try:
            run = fleet.preview(1)
        except GitschedError as error:
            pytest.fail(f"{KINDS[index]['kind']} {path} {value}: {error}")
        check(run, 3 + number % 90, (KINDS[index]["kind"], path, value))
        fleet.commit({f"teams/two/{index}.yaml": json.dumps(KINDS[index])}, hour=1)
