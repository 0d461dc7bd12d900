"""Explain why decisions of gitsched differ from those of a hub.

Causes are proved where that is possible: with a setting of the hub, with facts or documents of the first dump, or with the hub's last
records, gitsched decides as the hub. Else what the dumps show is named, and the rule that each cluster meets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gitsched.apis.hub_comparison import TriedSetting
from gitsched.apis.schemas import list_differing_fields
from gitsched.decide.python_api import Candidates, Schedule
from gitsched.decide.registry import policy_apis
from gitsched.diff.hub_decisions import HubDecider, list_aspects
from gitsched.model.document import Body, Key
from gitsched.model.finding import Location, format_names
from gitsched.model.hub_comparison import (
    UNEXPLAINED,
    CauseKind,
    ComparedDecision,
    DifferenceCause,
    HubChange,
    HubDecision,
    Resource,
)

CLUSTERS_NAMED = 3
"""Clusters of one decision that are explained each."""
_FIELD_CODES = ("field-", "kind-")
"""What codes of findings about fields that gitsched does not support begin with."""
_SERVER_OWNED = frozenset(("resourceVersion", "generation", "managedFields", "uid", "creationTimestamp"))


class CauseSearch:
    """Searches causes for all differences of two dumps at once. `apis` are the policy APIs by subject, `locations` those of objects of the
    second dump."""

    def __init__(
        self,
        decider: HubDecider,
        change: HubChange,
        decided: Schedule,
        locations: Mapping[Resource, Location],
        apis: Mapping[Key, str],
    ) -> None:
        self._decider, self._change, self._decided, self._locations, self._apis = decider, change, decided, locations, apis
        self._reported: dict[Resource, list[DifferenceCause]] = {}
        for finding in decided.findings:
            if finding.severity != "info" and finding.resource is not None:
                location = finding.location or locations.get(finding.resource)
                kind: CauseKind = "field" if finding.code.startswith(_FIELD_CODES) else "rule"
                self._reported.setdefault(finding.resource, []).append(
                    DifferenceCause(kind, finding.message, finding.code, location)
                )

    def explain(self, differences: Iterable[ComparedDecision]) -> Iterator[ComparedDecision]:
        """Yield the differences with their causes."""
        unexplained = {one.subject: one for one in differences}
        proved = self._prove(unexplained)
        for subject, one in unexplained.items():
            causes = [*proved.get(subject, ()), *self._list_shown(one)]
            if not any(cause.proved for cause in causes):
                causes += [*self._list_fields(one), *self._list_rules(one)]
            yield one._replace(causes=tuple(causes) or (DifferenceCause("rule", "no cause was found", UNEXPLAINED),))

    def _prove(self, differences: Mapping[Key, ComparedDecision]) -> dict[Key, list[DifferenceCause]]:
        """Return the proved cause of each difference that has one."""
        proved: dict[Key, list[DifferenceCause]] = {}
        for cause, equal in self._try_all(differences, proved):
            for subject in equal:
                proved.setdefault(subject, []).append(self._complete(cause, differences[subject]))
        return proved

    def _try_all(
        self, differences: Mapping[Key, ComparedDecision], proved: Mapping[Key, list[DifferenceCause]]
    ) -> Iterator[tuple[DifferenceCause, list[Key]]]:
        """Yield each cause with the differences that it explains; those that are proved already are not tried again."""

        def list_open() -> dict[Key, ComparedDecision]:
            return {subject: one for subject, one in differences.items() if subject not in proved}

        first, second = self._change
        for api, setting in self._list_settings():
            tried = {subject: one for subject, one in list_open().items() if self._apis[subject] == api}
            if tried:
                section = _change_setting(self._decider.settings[api], setting.name, setting.value)
                settings = {**self._decider.settings, api: section}
                yield _describe_setting(api, setting), self._decide(tried, second.documents, first.records, settings)
        facts = frozenset[tuple[str, str]]().union(*(one.facts for one in self._decider.comparisons.values()))
        mixed = {key: first.documents.get(key, body) if key[:2] in facts else body for key, body in second.documents.items()}
        changed = _list_changed(mixed, second.documents)
        if changed and (tried := list_open()):
            yield DifferenceCause("fact", _describe_changes(changed), proved=True), self._decide(tried, mixed, first.records)
        tried = {subject: one for subject, one in list_open().items() if self._has_changed(one)}
        if tried:
            yield DifferenceCause("history", "", proved=True), self._decide(tried, first.documents, first.records)
        tried = {subject: one for subject, one in list_open().items() if self._describe_history(one)}
        if tried:
            yield DifferenceCause("history", "", proved=True), self._decide(tried, second.documents, second.records)

    def _list_settings(self) -> Iterator[tuple[str, TriedSetting]]:
        """Yield the settings to try, without the values that are in force."""
        for api, comparison in self._decider.comparisons.items():
            for setting in comparison.settings:
                if (_get_setting(self._decider.settings[api], setting.name) or False) != setting.value:
                    yield api, setting

    def _decide(
        self,
        tried: Mapping[Key, ComparedDecision],
        documents: Mapping[Key, Body],
        records: Mapping[Key, Body],
        settings: Mapping[str, Any] | None = None,
    ) -> list[Key]:
        """Return the differences that are none any more with these inputs."""
        own = self._decider.read_own(self._decider.decide(documents.values(), records, settings))
        return [subject for subject, one in tried.items() if _is_equal(one.hub, own[subject].decision if subject in own else None)]

    def _complete(self, cause: DifferenceCause, one: ComparedDecision) -> DifferenceCause:
        """Return a proved cause with what it means for one decision."""
        if cause.kind != "history" or cause.text:
            return cause
        changed = self._describe_changed(one)
        return cause._replace(
            text=changed if changed and not self._describe_history(one) else self._describe_history(one) or changed
        )

    def _has_changed(self, one: ComparedDecision) -> bool:
        return bool(self._describe_changed(one))

    def _describe_changed(self, one: ComparedDecision) -> str:
        """Say that the hub decides as before a change of the policy or of the workload."""
        first, second = self._change
        keys = (*(decision.policy for decision in (one.own, one.hub) if decision is not None), one.subject)
        for key in keys:
            if key is not None and key in first.documents and key in second.documents:
                paths = _list_paths(first.documents[key], second.documents[key])
                if paths:
                    return f"the hub decides as before {key.title} changed between the dumps ({format_names(paths)})"
        return ""

    def _describe_history(self, one: ComparedDecision) -> str:
        if one.hub is None:
            return ""
        return self._decider.comparisons[self._apis[one.subject]].describe_history(self._change, one.hub, one.own)

    def _list_shown(self, one: ComparedDecision) -> Iterator[DifferenceCause]:
        """Yield the causes that the dumps show."""
        for key in self._list_keys(one):
            yield from self._reported.get(key.resource, ())
        comparison = self._decider.comparisons[self._apis[one.subject]]
        for cause in comparison.list_causes(self._change, one.hub, one.own):
            yield cause if cause.location is not None else cause._replace(location=self._locate_policy(one))
        yield from self._list_removed(one)

    def _list_fields(self, one: ComparedDecision) -> Iterator[DifferenceCause]:
        """Yield the fields of the policy and of the workload by which gitsched decides otherwise, or decides nothing."""
        for key in self._list_keys(one):
            body = self._change.second.documents.get(key)
            for path, row in list_differing_fields(self._apis[one.subject], key.group, body) if body is not None else ():
                effect = "gitsched handles it otherwise" if row.verdict == "differs" else "gitsched decides nothing by it"
                yield DifferenceCause("field", f"{effect}: {row.reason}", path, self._locations.get(key.resource))

    @staticmethod
    def _list_keys(one: ComparedDecision) -> Iterable[Key]:
        """Return the workload and the policies that it follows on both sides."""
        policies = [decision.policy for decision in (one.own, one.hub) if decision is not None and decision.policy is not None]
        return dict.fromkeys([one.subject, *policies])

    def _list_removed(self, one: ComparedDecision) -> Iterator[DifferenceCause]:
        """Yield the clusters of the hub that the second dump does not have any more."""
        topology = policy_apis[self._apis[one.subject]].topology
        if one.hub is None or topology is None:
            return
        keys = (Key(topology.group, topology.kind, "", name) for name in sorted(one.hub.clusters))
        gone = [key.name for key in keys if key not in self._change.second.documents and key in self._change.first.documents]
        if gone:
            yield DifferenceCause(
                "fact", f"{format_names(gone)}: removed from the hub between the dumps, and it still decides for it"
            )

    def _locate_policy(self, one: ComparedDecision) -> Location | None:
        policy = next((each.policy for each in (one.hub, one.own) if each is not None and each.policy is not None), None)
        return self._locations.get(policy.resource) if policy is not None else None

    def _list_rules(self, one: ComparedDecision) -> Iterator[DifferenceCause]:
        """Yield the rule that each differing cluster meets, and why gitsched has decided at all."""
        subject = one.subject
        try:
            candidates = self._decided.explain(subject.kind, subject.name, subject.namespace)
        except KeyError:
            candidates = None
        if candidates is None or one.own is None:
            yield DifferenceCause("rule", "no policy of the second dump selects it", "policy selection", self._locate_policy(one))
            return
        yield from self._list_cluster_rules(one, candidates)
        explanation = candidates.explanation
        if explanation is not None and explanation.trigger:
            yield DifferenceCause("rule", explanation.trigger, "scheduling trigger", self._locate_policy(one))
        for text in (*explanation.selection, *explanation.division_rule) if explanation is not None else ():
            yield DifferenceCause("rule", text, "selection", self._locate_policy(one))

    def _list_cluster_rules(self, one: ComparedDecision, candidates: Candidates) -> Iterator[DifferenceCause]:
        hub, own = _read_clusters(one.hub), _read_clusters(one.own)
        results = {result.name: result for result in candidates}
        differing = [name for name in sorted(hub.keys() | own.keys()) if hub.get(name, -1) != own.get(name, -1)]
        for name in differing[:CLUSTERS_NAMED]:
            result = results.get(name)
            if result is None:
                text = f"{name}: it is no cluster of the second dump"
            elif not result.eligible:
                text = f"{name}: {result.reason}"
            else:
                score = f", with score {result.total:g}" if result.total is not None else ""
                text = f"{name}: it fits{score}" + ("" if name in own else ", and others are chosen")
            yield DifferenceCause(
                "rule",
                text,
                "cluster filters" if result is not None and not result.eligible else "cluster choice",
                self._locate_policy(one),
            )


def _get_setting(section: Mapping[str, Any], name: str) -> Any:
    """Return the value of a setting, whose name may lead into a section; None if it is not set."""
    first, _, rest = name.partition(".")
    value = section.get(first)
    return (_get_setting(value, rest) if isinstance(value, Mapping) else None) if rest else value


def _change_setting(section: Mapping[str, Any], name: str, value: Any) -> Mapping[str, Any]:
    """Return a section with another value of a setting."""
    first, _, rest = name.partition(".")
    inner = section.get(first)
    return {**section, first: _change_setting(inner if isinstance(inner, Mapping) else {}, rest, value) if rest else value}


def _describe_setting(api: str, setting: TriedSetting) -> DifferenceCause:
    value = str(setting.value).lower() if isinstance(setting.value, bool) else str(setting.value)
    name = f"{api}.{setting.name}: {value}"
    return DifferenceCause("setting", f"{setting.text}; if it has that, compare with --settings", name, proved=True)


def _read_clusters(decision: HubDecision | None) -> Mapping[str, int | None]:
    return decision.clusters if decision is not None else {}


def _is_equal(hub: HubDecision | None, own: HubDecision | None) -> bool:
    if hub is None or own is None:
        return hub is own
    return not list_aspects(hub, own)


def _list_changed(before: Mapping[Key, Body], after: Mapping[Key, Body]) -> dict[Key, list[str]]:
    """Return the paths that differ, by document."""
    found = {key: _list_paths(body, after[key]) for key, body in before.items() if body is not after[key]}
    return {key: paths for key, paths in found.items() if paths}


def _list_paths(before: Body, after: Body) -> list[str]:
    """Return the members of members that differ, such as spec.taints, without those that the API server sets."""
    found = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            members = (each for each in sorted(old.keys() | new.keys()) if old.get(each) != new.get(each))
            found += [f"{name}.{each}" for each in members if name != "metadata" or each not in _SERVER_OWNED]
        else:
            found.append(name)
    return found


def _describe_changes(changed: Mapping[Key, list[str]]) -> str:
    names = [f"{key.name} ({format_names(paths)})" for key, paths in changed.items()]
    return f"the hub decides with facts of the first dump; changed since then: {format_names(names)}"
