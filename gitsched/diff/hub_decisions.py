"""Decide what a hub decides: schedule the documents of a dump from records, and read the decisions of both by subject."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from gitsched.apis.hub_comparison import HubComparison
from gitsched.decide.python_api import Schedule, schedule
from gitsched.decide.registry import policy_apis
from gitsched.model.document import Body, Key
from gitsched.model.hub_comparison import HubDecision
from gitsched.named_tuples import NamedTuple


class ApiDecision(NamedTuple):
    """A decision with the policy API that made it."""

    api: str
    decision: HubDecision


DecisionsBySubject = Mapping[Key, ApiDecision]


def load_comparisons() -> dict[str, HubComparison]:
    """Return how the hubs of the policy APIs that have one are compared, by API."""
    hubs = {name: api.commands.load_hub_objects() for name, api in policy_apis.items() if api.commands.load_hub_objects is not None}
    return {name: hub.load_comparison() for name, hub in hubs.items() if hub.load_comparison is not None}


class HubDecider(NamedTuple):
    """Decides the documents of a hub. `settings` is the spec of a Config with the sections of all APIs; `now` the time."""

    comparisons: Mapping[str, HubComparison]
    settings: Mapping[str, Any]
    now: datetime

    def decide(self, documents: Iterable[Body], records: Mapping[Key, Body], settings: Mapping[str, Any] | None = None) -> Schedule:
        """Return the decisions about documents, which continue from records of the hub."""
        previous = [
            comparison.reduce_record(body)
            for api, comparison in self.comparisons.items()
            for body in _select_records(records, api).values()
        ]
        return schedule(documents, previous=previous, now=self.now, config=self.settings if settings is None else settings)

    def read(self, records: Mapping[Key, Body]) -> DecisionsBySubject:
        """Return the decisions of records."""
        return {
            decision.subject: ApiDecision(api, decision)
            for api, comparison in self.comparisons.items()
            for decision in comparison.read_decisions(_select_records(records, api))
        }

    def read_own(self, decided: Schedule) -> DecisionsBySubject:
        """Return the decisions that were made."""
        outcomes = decided.decisions.outcomes.values()
        records = [*(record for outcome in outcomes for record in outcome.records), *decided.decisions.engine_records]
        return self.read(dict(records))


def make_decider(settings: Mapping[str, Any], now: datetime) -> HubDecider:
    """Return what decides with the spec of a Config; what that leaves out is as on a hub without flags."""
    comparisons = load_comparisons()
    sections = {api: {**comparison.defaults, **_read_section(settings, api)} for api, comparison in comparisons.items()}
    given = {name: value for name, value in settings.items() if name not in sections}
    return HubDecider(comparisons, {**given, **{api: section for api, section in sections.items() if section}}, now)


def _read_section(settings: Mapping[str, Any], api: str) -> Mapping[str, Any]:
    section = settings.get(api)
    return section if isinstance(section, Mapping) else {}


def _select_records(records: Mapping[Key, Body], api: str) -> Mapping[Key, Body]:
    """Return the records in the groups of an API."""
    groups = policy_apis[api].groups
    return {key: body for key, body in records.items() if key.group in groups}


def list_aspects(hub: HubDecision, own: HubDecision) -> tuple[str, ...]:
    """Return what differs between two decisions; of details, only those that the hub has count."""
    found = []
    if hub.clusters.keys() != own.clusters.keys():
        found.append("clusters")
    elif dict(hub.clusters) != dict(own.clusters):
        found.append("replicas")
    if hub.leaving != own.leaving:
        found.append("evictions")
    return (*found, *(name for name, text in hub.details.items() if text != own.details.get(name, "")))
