"""OverridePolicy and ClusterOverridePolicy: what a workload's manifest is in one cluster.

ClusterOverridePolicies come first, then the OverridePolicies of the workload's namespace; of each kind the less specific selector first
(kind, labels, name), then the smaller name. Rules of a policy apply in their order, so the last one has the last word. Replicas are
divided before, as upstream does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gitsched.apis.karmada.defaults import default
from gitsched.apis.karmada.fleet import locate
from gitsched.apis.karmada.names import policy_text, shorten
from gitsched.apis.karmada.overriders import apply_overriders, list_overriders
from gitsched.apis.karmada.patching import Draft, Inapplicable, alike
from gitsched.apis.karmada.placement import parse_affinity
from gitsched.apis.karmada.selectors import BY_KIND, ResourceSelector, parse_resource_selector
from gitsched.model.document import Body, Document, Key, member, text_map
from gitsched.model.explanation import Override
from gitsched.model.finding import Finding
from gitsched.model.outcome import Placed
from gitsched.model.request import Affinity
from gitsched.render.manifest import put_counts
from gitsched.schedule.fleet import Fleet


class Rule(NamedTuple):
    """Overriders for some clusters; `affinity` None is for all of them. `place` is where they stand in the policy."""

    policy: Document
    affinity: Affinity | None
    overriders: Body
    place: str

    @property
    def certain(self) -> bool:
        """Whether the cluster's name alone tells if the rule is for it."""
        return self.affinity is None or (self.affinity.labels is None and not self.affinity.fields and not self.affinity.invalid)


class OverridePolicy(NamedTuple):
    """A policy of either kind; without any selector it is for every object in reach."""

    document: Document
    selectors: tuple[ResourceSelector, ...]
    rules: tuple[Rule, ...]


Rules = tuple[Rule, ...]
_By = tuple[str, str, str, str]


def parse_override(document: Document) -> OverridePolicy:
    """Read a policy whose document passed its schema and rules. The older form counts where there are no overrideRules."""
    spec = default(document.body)["spec"]
    entries = [(entry, f"spec.overrideRules[{index}]") for index, entry in enumerate(spec.get("overrideRules") or ())]
    rules = []
    for entry, place in entries or [(spec, "spec")]:
        target, overriders = entry.get("targetCluster"), entry.get("overriders") or {}
        if list_overriders(overriders):
            rules.append(Rule(document, None if target is None else parse_affinity(target), overriders, f"{place}.overriders"))
    return OverridePolicy(document, tuple(map(parse_resource_selector, spec.get("resourceSelectors") or ())), tuple(rules))


class Misfit(NamedTuple):
    """Why a rule, at `place` in a policy, cannot be applied to a workload."""

    policy: Key
    place: str
    why: str


class Overrides:
    """Every override policy of a commit, by what it selects. The rules of each cluster are found once for each set of policies."""

    __slots__ = ("_everything", "_fleet", "_plans", "_policies", "_selectors")

    def __init__(self, documents: Iterable[Document], fleet: Fleet) -> None:
        self._fleet = fleet
        self._policies = {document.key: parse_override(document) for document in documents}
        self._everything: dict[str, list[Key]] = {}
        self._selectors: dict[_By, list[tuple[Key, ResourceSelector]]] = {}
        self._plans: dict[tuple[Key, ...], Mapping[str, Rules | None]] = {}
        for key, policy in self._policies.items():
            if not policy.rules:
                continue
            if not policy.selectors:
                self._everything.setdefault(key.namespace, []).append(key)
            for selector in policy.selectors:
                by = (key.namespace, selector.api_version, selector.kind, selector.name)
                self._selectors.setdefault(by, []).append((key, selector))

    def __contains__(self, key: Key) -> bool:
        return key in self._policies

    def apply(self, template: Document, placed: tuple[Placed, ...]) -> tuple[tuple[Placed, ...], tuple[Finding, ...]]:
        """The places with the manifest of each cluster whose rules change it; the very same places when no policy is concerned.

        A cluster whose rules do not fit the workload keeps the manifest that it has (`Placed.kept`), and so does one whose own document
        is broken, for nobody knows which rules are for it.
        """
        plan = self._plan(self._match(template))
        if not plan:
            return placed, ()
        made: dict[tuple[int, tuple[tuple[str, int], ...]], Body | Misfit | None] = {}
        misfits: dict[Misfit, list[str]] = {}
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
                misfits.setdefault(answer, []).append(place.cluster)
                results.append(place._replace(kept=True))
            else:
                results.append(place if answer is None else place._replace(body=answer))
        return tuple(results), tuple(self._find(template, misfit, clusters) for misfit, clusters in misfits.items())

    def explain(self, template: Document, clusters: Iterable[str]) -> tuple[Override, ...]:
        """Which policies touch a workload in these clusters, in the order in which they are applied."""
        plan = self._plan(self._match(template))
        touched: dict[Key, tuple[Document, list[str], dict[str, None]]] = {}
        for cluster in clusters:
            for rule in plan.get(cluster) or ():
                _, names, changes = touched.setdefault(rule.policy.key, (rule.policy, [], {}))
                changes.update(dict.fromkeys(list_overriders(rule.overriders)))
                if cluster not in names[-1:]:
                    names.append(cluster)
        order = [key for key in self._match(template) if key in touched]
        return tuple(
            Override(policy_text(key), _line(document), tuple(names), tuple(changes))
            for key in order
            for document, names, changes in (touched[key],)
        )

    def _match(self, template: Document) -> tuple[Key, ...]:
        """The policies that select a workload, in the order in which they are applied."""
        if not self._policies:
            return ()
        key = template.key
        found: list[Key] = []
        labels: Mapping[str, str] | None = None
        for scope in ("", key.namespace) if key.namespace else ("",):
            specific = dict.fromkeys(self._everything.get(scope, ()), BY_KIND)
            for name in (key.name, ""):
                for policy, selector in self._selectors.get((scope, template.api_version, key.kind, name), ()):
                    if labels is None:
                        labels = text_map(member(template.body, "metadata", "labels"))
                    if selector.selects(key.namespace, labels):
                        specific[policy] = max(specific.get(policy, 0), selector.implicit)
            found += sorted(specific, key=lambda policy: (specific[policy], policy.name))
        return tuple(found)

    def _plan(self, policies: tuple[Key, ...]) -> Mapping[str, Rules | None]:
        """The rules of each cluster that has any, the same object for clusters that share them; None where nobody can tell."""
        if not policies:
            return {}
        known = self._plans.get(policies)
        if known is None:
            known = self._plans[policies] = self._spread([rule for key in policies for rule in self._policies[key].rules])
        return known

    def _spread(self, rules: list[Rule]) -> dict[str, Rules | None]:
        fleet = self._fleet
        unknown = 0 if all(rule.certain for rule in rules) else fleet.frozen
        parts: list[tuple[int, Rules]] = [(fleet.all & ~unknown, ())]
        for rule in rules:
            mask = fleet.all if rule.affinity is None else fleet.matching(rule.affinity)
            split = [(part & mask, (*before, rule)) for part, before in parts] + [(part & ~mask, before) for part, before in parts]
            parts = [(part, before) for part, before in split if part]
        spread: dict[str, Rules | None] = {fleet.names[i]: None for i in fleet.members(unknown)}
        spread |= {fleet.names[i]: before for part, before in parts if before for i in fleet.members(part)}
        return spread

    def _find(self, template: Document, misfit: Misfit, clusters: list[str]) -> Finding:
        message = (
            f"{policy_text(misfit.policy)} cannot be applied to {template.key}, whose manifest in {shorten(clusters)} stays as it was: "
            f"{misfit.place}.{misfit.why}"
        )
        document = self._policies[misfit.policy].document
        return Finding("error", "override-failed", message, locate(document), misfit.policy.resource)


def _override(template: Document, rules: Rules, counts: tuple[tuple[str, int], ...]) -> Body | Misfit | None:
    """The manifest after these rules, or None when it is the one that it was."""
    before = put_counts(template.body, counts)
    draft = Draft(before)
    for rule in rules:
        try:
            apply_overriders(draft, rule.overriders)
        except Inapplicable as error:
            return Misfit(rule.policy.key, rule.place, str(error))
    after: Body = draft.root
    return None if alike(before, after) else after


def _line(document: Document) -> str:
    location = locate(document)
    return f"{location.path}:{location.line}" if location else ""
