"""OverridePolicy and ClusterOverridePolicy: what a workload's manifest is in one cluster.

ClusterOverridePolicies come first, then the OverridePolicies of the workload's namespace; of each kind the less specific selector first
(kind, labels, name), then the smaller name. Rules of a policy apply in their order, so the last one has the last word. Replicas are
divided before, as upstream does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gitsched.apis.karmada.defaults import default
from gitsched.apis.karmada.names import CLUSTER_OVERRIDE, OVERRIDE, POLICY_GROUP, shorten
from gitsched.apis.karmada.overriders import apply_overriders, list_overriders
from gitsched.apis.karmada.patching import Draft, Inapplicable, alike
from gitsched.apis.karmada.placement import parse_affinity
from gitsched.apis.karmada.selectors import BY_KIND, ResourceSelector, parse_resource_selector
from gitsched.apis.world import World
from gitsched.model.document import Body, Document, Key, member, text_map
from gitsched.model.explanation import Override
from gitsched.model.finding import Finding, Pointer, Rule, locate
from gitsched.model.outcome import Placed
from gitsched.model.request import Affinity
from gitsched.render.manifest import put_counts
from gitsched.schedule.fleet import Fleet

_REMEMBERED = 1_000_000
"""Entries of all the plans that are remembered, about."""


class OverrideRule(NamedTuple):
    """Overriders for some clusters; `affinity` None is for all of them. `pointer` is where they stand in the policy, which is `contested`
    when it stands in several places: nobody knows which of them counts."""

    policy: Document
    affinity: Affinity | None
    overriders: Body
    pointer: Pointer
    contested: bool

    @property
    def certain(self) -> bool:
        """Whether the cluster's name alone tells if the rule is for it."""
        return self.affinity is None or (self.affinity.labels is None and not self.affinity.fields and not self.affinity.invalid)


class OverridePolicy(NamedTuple):
    """A policy of either kind; without any selector it is for every object in reach."""

    document: Document
    selectors: tuple[ResourceSelector, ...]
    rules: tuple[OverrideRule, ...]


Rules = tuple[OverrideRule, ...]


def parse_override(document: Document, contested: bool = False) -> OverridePolicy:
    """Read a policy whose document passed its schema and rules. The older form counts where there are no overrideRules."""
    spec = default(document.body)["spec"]
    listed = enumerate(spec.get("overrideRules") or ())
    entries: list[tuple[Body, Pointer]] = [(entry, ("spec", "overrideRules", index)) for index, entry in listed]
    rules = []
    for entry, place in entries or [(spec, ("spec",))]:
        target, overriders = entry.get("targetCluster"), entry.get("overriders") or {}
        if list_overriders(overriders):
            affinity = None if target is None else parse_affinity(target)
            rules.append(OverrideRule(document, affinity, overriders, (*place, "overriders"), contested))
    return OverridePolicy(document, tuple(map(parse_resource_selector, spec.get("resourceSelectors") or ())), tuple(rules))


class Misfit(NamedTuple):
    """A rule that cannot be applied to a workload, and why."""

    rule: OverrideRule
    why: str
    pointer: Pointer


def read_overrides(world: World, fleet: Fleet) -> Overrides:
    """Every override policy of a commit."""
    kinds = [(POLICY_GROUP, CLUSTER_OVERRIDE), (POLICY_GROUP, OVERRIDE)]
    documents = (document for kind in kinds for document in world.documents.get(kind, ()))
    contested = (copy for key, copies in sorted(world.contested.items()) if (key.group, key.kind) in kinds for copy in copies)
    return Overrides(documents, contested, fleet)


class Overrides:
    """Every override policy of a commit, by what it selects. The rules of each cluster are found once for each set of policies."""

    __slots__ = ("_everything", "_fleet", "_keys", "_plans", "_policies", "_selectors")

    def __init__(self, documents: Iterable[Document], contested: Iterable[Document], fleet: Fleet) -> None:
        self._fleet = fleet
        self._policies = [*map(parse_override, documents), *(parse_override(document, True) for document in contested)]
        self._keys = frozenset(policy.document.key for policy in self._policies)
        self._everything: dict[str, list[int]] = {}
        self._selectors: dict[tuple[str, str, str, str], list[tuple[int, ResourceSelector]]] = {}
        self._plans: dict[tuple[int, ...], Mapping[str, Rules | None]] = {}
        for number, policy in enumerate(self._policies):
            scope = policy.document.key.namespace
            if policy.rules and not policy.selectors:
                self._everything.setdefault(scope, []).append(number)
            for selector in policy.selectors if policy.rules else ():
                by = (scope, selector.api_version, selector.kind, selector.name)
                self._selectors.setdefault(by, []).append((number, selector))

    def __contains__(self, key: Key) -> bool:
        return key in self._keys

    def apply(self, template: Document, placed: tuple[Placed, ...]) -> tuple[tuple[Placed, ...], tuple[Finding, ...]]:
        """The places with the manifest of each cluster whose rules change it; the very same places when no policy is concerned.

        A cluster whose rules do not fit the workload keeps the manifest that it has (`Placed.kept`). So it does where nobody knows which
        rules are for it: its own document is broken, or a policy for it stands in several places.
        """
        plan = self._plan(self._match(template))
        if not plan:
            return placed, ()
        made: dict[tuple[int, tuple[tuple[str, int], ...]], Body | Misfit | None] = {}
        misfits: dict[tuple[int, str], tuple[Misfit, list[str]]] = {}
        results = []
        for place in placed:
            rules = plan.get(place.cluster, ())
            if not rules:
                results.append(place if rules is not None else place._replace(kept=True))
                continue
            question = (id(rules), place.edits)
            if question not in made:
                made[question] = _override(template, rules, place.edits)
            answer = made[question]
            if isinstance(answer, Misfit):
                misfits.setdefault((id(answer.rule), answer.why), (answer, []))[1].append(place.cluster)
                results.append(place._replace(kept=True))
            else:
                results.append(place if answer is None else place._replace(body=answer))
        return tuple(results), tuple(_find(template, *misfit) for misfit in misfits.values())

    def explain(self, template: Document, clusters: Iterable[str]) -> tuple[Override, ...]:
        """Which policies touch a workload in these clusters, in the order in which they are applied."""
        policies = self._match(template)
        plan = self._plan(policies)
        applied = [(cluster, rule) for cluster in clusters for rule in plan.get(cluster) or ()]
        told = []
        for number in policies:
            document = self._policies[number].document
            mine = [(cluster, rule) for cluster, rule in applied if rule.policy is document]
            changes = dict.fromkeys(name for _, rule in mine for name in list_overriders(rule.overriders))
            if mine:
                names = tuple(dict.fromkeys(cluster for cluster, _ in mine))
                told.append(Override(document.key.title, _line(document), names, tuple(changes)))
        return tuple(told)

    def _match(self, template: Document) -> tuple[int, ...]:
        """The policies that select a workload, in the order in which they are applied."""
        if not self._policies:
            return ()
        key = template.key
        found: list[int] = []
        labels: Mapping[str, str] | None = None
        for scope in ("", key.namespace) if key.namespace else ("",):
            specific = dict.fromkeys(self._everything.get(scope, ()), BY_KIND)
            for name in (key.name, ""):
                for number, selector in self._selectors.get((scope, template.api_version, key.kind, name), ()):
                    if labels is None:
                        labels = text_map(member(template.body, "metadata", "labels"))
                    if selector.selects(key.namespace, labels):
                        specific[number] = max(specific.get(number, 0), selector.implicit)
            found += sorted(specific, key=lambda number: (specific[number], self._policies[number].document.key.name, number))
        return tuple(found)

    def _plan(self, policies: tuple[int, ...]) -> Mapping[str, Rules | None]:
        """The rules of each cluster that has any, the same object for clusters that share them; None where nobody can tell."""
        if not policies:
            return {}
        known = self._plans.get(policies)
        if known is None:
            if len(self._plans) * len(self._fleet) > _REMEMBERED:
                self._plans.clear()  # every workload has policies of its own
            known = self._plans[policies] = self._spread([rule for number in policies for rule in self._policies[number].rules])
        return known

    def _spread(self, rules: list[OverrideRule]) -> dict[str, Rules | None]:
        fleet = self._fleet
        masks = [fleet.all if rule.affinity is None else fleet.matching(rule.affinity) for rule in rules]
        unknown = 0 if all(rule.certain for rule in rules) else fleet.frozen
        for rule, mask in zip(rules, masks, strict=True):
            unknown |= mask if rule.contested else 0
        parts: list[tuple[int, Rules]] = [(fleet.all & ~unknown, ())]
        for rule, mask in zip(rules, masks, strict=True):
            split = [(part & mask, (*before, rule)) for part, before in parts] + [(part & ~mask, before) for part, before in parts]
            parts = [(part, before) for part, before in split if part]
        spread: dict[str, Rules | None] = {fleet.names[i]: None for i in fleet.members(unknown)}
        spread |= {fleet.names[i]: before for part, before in parts if before for i in fleet.members(part)}
        return spread


def _override(template: Document, rules: Rules, counts: tuple[tuple[str, int], ...]) -> Body | Misfit | None:
    """The manifest after these rules, or None when it is the one that it was."""
    before = put_counts(template.body, counts)
    draft = Draft(before)
    for rule in rules:
        try:
            apply_overriders(draft, rule.overriders)
        except Inapplicable as error:
            return Misfit(rule, str(error), (*rule.pointer, *error.pointer))
    after: Body = draft.root
    return None if alike(before, after) else after


def _find(template: Document, misfit: Misfit, clusters: list[str]) -> Finding:
    rule, why, pointer = misfit
    policy, origin = rule.policy.key, rule.policy.origin
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in rule.pointer)[1:]
    message = (
        f"{policy.title} cannot be applied to {template.key}, whose manifest in {shorten(clusters)} stays as it was: {place}.{why}"
    )
    written = Rule(origin, pointer) if origin is not None else None
    return Finding("error", "override-failed", message, locate(rule.policy), policy.resource, written)


def _line(document: Document) -> str:
    location = locate(document)
    return f"{location.path}:{location.line}" if location else ""
