"""Change the fields of documents one by one beside a small fleet, and compare what is decided."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

import gitsched
from gitsched.apis.schemas import KindFields
from gitsched.model.document import parse_api_group
from gitsched.model.time import parse_time

Body = dict[str, Any]
FIELDS = Path(__file__).parent / "fields"
BEFORE = "2026-03-01T07:00:00Z"
"""When the documents were decided that a scenario had before."""
_REMOVED = object()
_AMOUNTS = ("0", "1", "100m", "64", "1Gi", "50%")
_TIMES = ("2026-01-01T00:00:00Z", "2026-03-01T07:59:00Z", "2027-01-01T00:00:00Z")


@dataclass(frozen=True, eq=False)
class Scenario:
    """Documents of a small fleet, with the settings, the time of the decision, what was decided before, and texts to try as values."""

    name: str
    documents: list[Body]
    config: Body
    now: str
    previous: list[Body]
    words: list[str]


class Mutation(NamedTuple):
    """A scenario in which the field of a document has another value."""

    scenario: Scenario
    index: int
    path: str
    value: Any


class Result(NamedTuple):
    """What is decided about workloads, and the findings, each as text. `refused` are the codes of errors about the mutated document."""

    decided: str
    findings: frozenset[tuple[str, str, str]]
    refused: frozenset[str]


@cache
def load_scenarios(api: str) -> tuple[Scenario, ...]:
    described = yaml.load((FIELDS / f"{api}.yaml").read_text(encoding="utf-8"), Loader=yaml.CBaseLoader)
    found = []
    for name, scenario in described["scenarios"].items():
        entry = scenario if isinstance(scenario, dict) else {"documents": scenario}
        config = yaml.safe_load(entry.get("config", "{}"))
        texts = [described.get("shared", ""), entry["documents"]]
        documents = _merge(texts)
        before = _merge([texts[0], entry["before"]]) if "before" in entry else []
        previous = gitsched.schedule(before, now=parse_time(BEFORE), config=config).documents
        found.append(Scenario(name, documents, config, described["now"], previous, described["words"]))
    return tuple(found)


def _merge(texts: Iterable[str]) -> list[Body]:
    """Return the documents of some texts; a later one replaces an earlier one of the same identity."""
    bodies = {
        (body["kind"], body["metadata"].get("namespace"), body["metadata"]["name"]): body
        for text in texts
        for body in read_documents(text)
    }
    return list(bodies.values())


def read_documents(text: str) -> list[Body]:
    """Read YAML documents; times stay text."""
    bodies = json.loads(json.dumps(list(yaml.safe_load_all(text)), default=lambda value: value.isoformat().replace("+00:00", "Z")))
    return [body for body in bodies if body]


def list_mutations(api: str, kind: KindFields, path: str) -> Iterator[Mutation]:
    """Yield the mutations of a field in all scenarios with a document of the kind."""
    for scenario in load_scenarios(api):
        for index, body in enumerate(scenario.documents):
            version = str(body.get("apiVersion") or body.get("api"))
            if body["kind"] in kind.kinds and (parse_api_group(version), version.rpartition("/")[2]) in list_versions(kind):
                for value in list_values(kind.fields[path], scenario.words):
                    yield Mutation(scenario, index, path, value)


def list_versions(kind: KindFields) -> set[tuple[str, str]]:
    return {(kind.group, version or kind.group) for version in kind.versions}


def list_values(type_: str, texts: Iterable[str]) -> list[Any]:
    """Return values of a type: all of an enumeration, else some; and the removal of the field."""
    values: list[Any] = {
        "string": [*texts, "nope", "1"],
        "integer": [0, 1, 2, 7, 100, 100_000],
        "number": [0, 0.5, 2, 100],
        "boolean": [True, False],
        "time": list(_TIMES),
        "amount": [1, *_AMOUNTS],
        "object": [{}, {"a": "b"}],
        "any": ["x", 1, {"a": "b"}],
    }.get(type_) or type_.removeprefix("=").split("|")
    return [*values, _REMOVED]


def apply(mutation: Mutation) -> Iterator[list[Body]]:
    """Yield the documents after a mutation: with a value in each entry of the lists on the way to the field."""
    body = mutation.scenario.documents[mutation.index]
    for changed in _set(body, mutation.path.split("."), mutation.value):
        if changed != body:
            documents = list(mutation.scenario.documents)
            documents[mutation.index] = changed
            yield documents


def _set(body: Any, parts: list[str], value: Any) -> Iterator[Any]:
    if not parts:
        yield value
        return
    name, is_list = parts[0].removesuffix("[]"), parts[0].endswith("[]")
    known = body if isinstance(body, dict) else {}
    if name == "*":
        for key in (*known, "new"):
            yield from (
                {**known, key: inner} if inner is not _REMOVED else _without(known, key)
                for inner in _set(known.get(key), parts[1:], value)
            )
        return
    if not is_list:
        for inner in _set(known.get(name), parts[1:], value):
            yield {**known, name: inner} if inner is not _REMOVED else _without(known, name)
        return
    entries = known.get(name) if isinstance(known.get(name), list) else []
    for index in range(min(len(entries), 3)):
        for inner in _set(entries[index], parts[1:], value):
            yield {**known, name: [*entries[:index], *([inner] if inner is not _REMOVED else []), *entries[index + 1 :]]}
    for inner in _set(None, parts[1:], value):
        if inner is not _REMOVED and inner != {}:
            yield {**known, name: [*entries, inner]}


def _without(body: Body, name: str) -> Body:
    return {key: value for key, value in body.items() if key != name}


def run(scenario: Scenario, documents: list[Body], index: int) -> Result:
    """Decide a scenario."""
    mutated = documents[index]
    refused = frozenset(finding.code for finding in gitsched.validate([mutated]) if finding.severity == "error")
    time, previous = parse_time(scenario.now), scenario.previous
    made = gitsched.schedule(copy.deepcopy(documents), previous=copy.deepcopy(previous), now=time, config=scenario.config)
    decisions = made.decisions
    decided = [
        (
            outcome.key,
            outcome.state,
            outcome.policy,
            outcome.group,
            outcome.targets,
            outcome.unassigned,
            outcome.wakeup,
            outcome.reason,
        )
        for _, outcome in sorted(decisions.outcomes.items())
    ]
    tasks = [body.get("spec", {}).get("gracefulEvictionTasks") for o in decisions.outcomes.values() for _, body in o.records]
    findings = frozenset((finding.severity, finding.code, finding.message) for finding in made.findings)
    # Records of Krake have the whole document, of which the status is decided; a DecisionBasis is a digest of the input.
    records = [
        (key, body.get("status") if "api" in body else body)
        for key, body in decisions.engine_records
        if key.kind != "DecisionBasis"
    ]
    return Result(repr((decided, tasks, records)), findings, refused)
