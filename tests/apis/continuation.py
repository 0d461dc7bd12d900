"""Checks of engines that continue with changed documents: the same decisions as those of a new engine, and no template read without need.

A world is the bodies of all documents by (kind, namespace, name). A step plans it completely, and continues the engine of the step before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from gitsched.apis.capabilities import Continuing, SnapshotChanges
from gitsched.apis.gitsched.config import Config
from gitsched.apis.policy_api import PolicyEngine
from gitsched.decide.catalog import make_raw_document
from gitsched.decide.decisions import DecisionSet, decide
from gitsched.decide.engines import list_dependency_trackers
from gitsched.decide.incremental.plan_contents import summarize_placement
from gitsched.decide.validation import validate_document
from gitsched.decide.workload_decision import adapt_outcome, is_unchanged
from gitsched.model.document import Body, Document, Key, Origin, read_annotations, read_labels
from gitsched.model.scheduling import Outcome, strip_outcome
from gitsched.model.template_index import TemplateEntry
from gitsched.model.time import parse_time
from gitsched.reconcile.cache.plan_cache import deserialize, serialize_engines

World = dict[tuple[str, str, str], Body]
_START = parse_time("2026-01-01T00:00:00Z")


class Step(NamedTuple):
    """One planned world: its decisions, and the records that it writes."""

    decisions: DecisionSet
    written: Mapping[Key, Body]
    time: datetime


class GuardedTemplates(Mapping[Key, Document]):
    """Templates of which only some may be read, or all of them one by one."""

    def __init__(self, templates: Mapping[Key, Document], readable: set[Key] | None) -> None:
        self._templates, self._readable, self.is_open = templates, readable, False

    def __getitem__(self, key: Key) -> Document:
        found = self._templates[key]
        assert self.is_open or self._readable is None or key in self._readable, f"{key} did not change"
        return found

    def __iter__(self) -> Iterator[Key]:
        assert self.is_open, "all templates are read"
        return iter(self._templates)

    def __len__(self) -> int:
        return len(self._templates)


def plan(world: World, config: Config, previous: Mapping[Key, Body], minutes: int) -> Step:
    """Plan a world that is committed so many minutes after the start."""
    assert _START is not None
    time = _START + timedelta(minutes=minutes)
    documents = []
    for line, (name, body) in enumerate(sorted(world.items()), 1):
        checked = validate_document(body)
        assert not [issue for issue in checked.issues if issue.severity == "error"], checked.issues
        documents.append(make_raw_document(checked.body, Origin(f"{name[0]}.yaml", "", line, -1, line, 1), False))
    decided = decide(documents, previous, config, time, time)
    written = {key: body for outcome in decided.outcomes.values() for key, body in outcome.records}
    return Step(decided, written | {key: body for engine in decided.engines for key, body in engine.records()}, time)


def settle(world: World, config: Config) -> Step:
    """Plan a world until its records are stable."""
    step = plan(world, config, {}, 0)
    for minutes in range(1, 6):
        last, step = step, plan(world, config, step.written, minutes)
        if last.written == step.written:
            break
    return step


def check_step(last: Step, world: World, config: Config, minutes: int, *, stored: bool = False) -> tuple[Step, set[Key] | None]:
    """Compare the continuation of the engine of one API with a complete plan. Returns the plan, and the workloads that were decided again;
    None if the engine refused. Not compared is what was decided otherwise because others take capacity: that follows the engines."""
    step = plan(world, config, last.written, minutes)
    if len(last.decisions.engines) != 1 or len(step.decisions.engines) != 1:
        return step, None
    expected = step.decisions.engines[0]
    engine = last.decisions.engines[0]
    if stored:
        (engine,) = deserialize(serialize_engines((engine,)))
    assert isinstance(engine, Continuing)
    assert step.decisions.input is not None
    former, present = last.decisions.catalog, step.decisions.catalog
    templates = _diff(former.templates, present.templates)
    changes = SnapshotChanges(
        _diff(_index(former.api_documents), _index(present.api_documents)),
        templates,
        {key: _make_entry(template, last.decisions.outcomes.get(key)) for key, template in former.templates.items()},
        last.decisions.outcomes.get,
    )
    whole = step.decisions.input.make_snapshot()
    is_handled_at_once = any(kind == "WorkloadRebalancer" for _, kind in present.api_documents)
    guarded = GuardedTemplates(present.templates, None if is_handled_at_once else set(templates))
    continuation = engine.continue_with(whole._replace(templates=guarded), changes)
    if continuation is None:
        return step, None
    made = continuation.engine
    unstable = {key for key, outcome in last.decisions.outcomes.items() if not is_unchanged(outcome, _records_before(last))}
    due = {key for key, outcome in last.decisions.outcomes.items() if outcome.wakeup and outcome.wakeup <= step.time}
    dirty = frozenset(key for key in {*templates, *continuation.affected, *unstable, *due} if key in present.templates)
    guarded.is_open = True
    for tracker in list_dependency_trackers((made,)):
        dirty |= tracker.affected_by(dirty | {key for key in templates if key not in present.templates})
    assert _describe_engine(made) == _describe_engine(expected)
    shared = [one.decisions.shared for one in (last, step) if one.decisions.shared is not None]
    limited = {key for one in shared for key in (*one.outcomes, *one.limited)}
    for key, template in present.templates.items():
        if key in limited:
            continue
        wanted = step.decisions.outcomes.get(key)
        if key in dirty:
            outcome = made.decide(template)
            found = adapt_outcome(template, outcome, whole) if outcome is not None else None
        else:
            found = last.decisions.outcomes.get(key)
        assert _describe(found) == _describe(wanted), (key, "again" if key in dirty else "not decided")
    return step, {key for key in dirty if key not in unstable and key not in due}


def _records_before(step: Step) -> Mapping[Key, Body]:
    assert step.decisions.input is not None
    return step.decisions.input.previous


def _index(documents: Mapping[tuple[str, str], tuple[Document, ...]]) -> dict[Key, Document]:
    return {document.key: document for found in documents.values() for document in found}


def _diff(before: Mapping[Key, Document], after: Mapping[Key, Document]) -> dict[Key, tuple[Document | None, Document | None]]:
    keys = before.keys() | after.keys()
    return {key: (before.get(key), after.get(key)) for key in sorted(keys) if before.get(key) != after.get(key)}


def _make_entry(template: Document, outcome: Outcome | None) -> TemplateEntry:
    placement = summarize_placement(outcome) if outcome is not None else None
    labels, annotations = read_labels(template.body), read_annotations(template.body)
    return TemplateEntry(template.api_version, labels, annotations, template.origin.path if template.origin else "", placement)


def _describe_engine(engine: PolicyEngine) -> dict[str, Any]:
    return {
        "findings": engine.findings,
        "records": sorted(engine.records(), key=lambda record: record[0]),
        "clusters": engine.clusters(),
        "wakeup": engine.wakeup,
        "time": engine.time,
    }


def _describe(outcome: Outcome | None) -> Any:
    """Return what an outcome says that does not depend on the run in which it was decided."""
    if outcome is None:
        return None
    records = dict(outcome.records)
    return records, strip_outcome(outcome)._replace(time=_START, trigger="", released=frozenset())


def run_history(world: World, config: Config, change: Callable[[World], None], steps: int) -> tuple[int, int]:
    """Change a world in several steps, each checked. Returns how many steps continued, and how many workloads they decided again."""
    last, continued, decided = settle(world, config), 0, 0
    for minutes in range(10, 10 + steps):
        change(world)
        last, affected = check_step(last, world, config, minutes, stored=minutes % 2 == 0)
        if affected is not None:
            continued, decided = continued + 1, decided + len(affected)
    return continued, decided


def check_changes(world: World, config: Config, change: Callable[[World], None], count: int) -> tuple[int, int]:
    """Change a settled world in several ways, each checked on its own. The engine is read back from its stored form each time."""
    base, continued, decided = settle(world, config), 0, 0
    for _ in range(count):
        other = dict(world)
        change(other)
        _, affected = check_step(base, other, config, 10, stored=True)
        if affected is not None:
            continued, decided = continued + 1, decided + len(affected)
    return continued, decided
