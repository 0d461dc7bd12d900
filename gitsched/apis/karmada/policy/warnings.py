"""Warnings about valid policies: suspension, ineffective preemption, unknown clusters, selectors that match nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from gitsched.apis.karmada.binding.target_clusters import read_suspension
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy, ResourceSelector, parse_resource_selector
from gitsched.model.document import Document, Key, get_field, is_known_group, parse_api_group
from gitsched.model.finding import Finding, locate_document

_MAX_NAMED = 3


_KIND_SIMILARITY = 0.85


_MAX_LOOKUPS = 100
"""Names that a nearest one is looked for at most: each is compared with all that there are."""


def find_policy_warnings(
    policies: Collection[PropagationPolicy], preemption: bool, fleet: Collection[str], stock: SelectableResources
) -> tuple[Finding, ...]:
    """Every finding about the policies themselves. `preemption` says whether settings allow it, `fleet` has the names of all clusters."""
    return (
        *find_suspended_policies(policies),
        *find_disabled_preemption(policies, preemption),
        *find_unknown_clusters(policies, fleet),
        *find_unmatched_selectors(policies, stock),
    )


class NameSuggestions:
    """Names that there are, to tell what was meant by one that there is not. `alike` is how near it has to be, from 0 to 1."""

    def __init__(self, names: Iterable[str], alike: float) -> None:
        self._names, self._similarity = sorted(names), alike
        self._suggestions: dict[str, str] = {}

    def suggest(self, name: str) -> str:
        """The nearest one; "" where none is near, or too many were asked for already."""
        if name not in self._suggestions:
            if len(self._suggestions) >= _MAX_LOOKUPS:
                return ""
            from difflib import get_close_matches  # rarely needed

            self._suggestions[name] = next(iter(get_close_matches(name[:100], self._names, n=1, cutoff=self._similarity)), "")
        return self._suggestions[name]


class SelectableResources:
    """What there is to select: kinds with their versions, and who is where. Labels do not count, so that it is the same as long as no
    object comes or goes."""

    def __init__(self, templates: Mapping[Key, Document], hidden: Iterable[tuple[str, str]]) -> None:
        """`hidden` are the groups and kinds of which there is something that is no template."""
        self.versions: dict[str, set[str]] = {}
        self._namespaces: set[tuple[str, str, str]] = set()
        self._templates = templates
        for key, document in templates.items():
            self.versions.setdefault(key.kind, set()).add(document.api_version)
            self._namespaces.add((document.api_version, key.kind, key.namespace))
        self._other_kinds = frozenset(hidden)
        self.kinds = NameSuggestions(self.versions, _KIND_SIMILARITY)

    def has_match(self, selector: ResourceSelector) -> bool:
        """Whether a selector means anything, as far as kind, namespace and name go; what is hidden may be anything of its kind."""
        api_version, kind, namespace, name = selector[:4]
        if (parse_api_group(api_version), kind) in self._other_kinds:
            return True
        if api_version not in self.versions.get(kind, ()) or (namespace and (api_version, kind, namespace) not in self._namespaces):
            return False
        return not name or name in self._names[api_version, kind, namespace]

    @cached_property
    def _names(self) -> Mapping[tuple[str, str, str], set[str]]:
        """The names of each kind, by namespace and, under "", of all; few policies ask for any."""
        names: dict[tuple[str, str, str], set[str]] = {}
        for key, document in self._templates.items():
            for namespace in {key.namespace, ""}:
                names.setdefault((document.api_version, key.kind, namespace), set()).add(key.name)
        return names


def find_unmatched_selectors(policies: Collection[PropagationPolicy], stock: SelectableResources) -> Iterator[Finding]:
    """One finding at most for each policy: of a selector that looks like a slip of the pen, else that all of them select nothing."""
    for policy in policies:
        selectors = [parse_resource_selector(body) for body in policy.spec.get("resourceSelectors") or ()]
        idle = [selector for selector in selectors if not stock.has_match(selector)]
        used = {selector.kind for selector in selectors if selector not in idle}
        slip = next(
            filter(None, (_describe_misspelling(selector, stock, used) for selector in idle if selector.kind not in used)), None
        )
        if slip is not None:
            message = f"{policy.key.title} selects {slip}"
            yield Finding("warning", "karmada-selects-nothing", message, locate_document(policy.document), policy.key.resource)
        elif idle and len(idle) == len(selectors):
            where = f"namespace {policy.key.namespace}" if policy.is_namespaced else "this repository"
            message = f"{policy.key.title} selects nothing: {where} has no {_list_selected(idle, policy.is_namespaced)}"
            yield Finding("info", "karmada-selects-nothing", message, locate_document(policy.document), policy.key.resource)


def _describe_misspelling(selector: ResourceSelector, stock: SelectableResources, used: Collection[str]) -> str | None:
    """What is wrong with a selector whose kind is there by another name or version; None where there is nothing like it, or only what
    is `used` by the same policy."""
    written, group = f"{selector.kind} of {selector.api_version}", parse_api_group(selector.api_version)
    versions = stock.versions.get(selector.kind)
    if versions is not None:
        # Many a project has named a kind of its own Service or Ingress: that says nothing of those of Kubernetes.
        strange = is_known_group(group) and not any(map(is_known_group, map(parse_api_group, versions)))
        here = " and ".join(sorted(versions))
        return None if strange or selector.api_version in versions else f"{written}, and what is here is of {here}"
    near = stock.kinds.suggest(selector.kind)
    return f"{written}, and there is none; did you mean {near}?" if near and near not in used else None


def _list_selected(selectors: list[ResourceSelector], namespaced: bool) -> str:
    told = []
    for selector in selectors[:_MAX_NAMED]:
        where = f"in namespace {selector.namespace}" if selector.namespace and not namespaced else ""
        told.append(" ".join(filter(None, (selector.kind, selector.name, where))))
    more = f" and {len(selectors) - _MAX_NAMED} more" if len(selectors) > _MAX_NAMED else ""
    return f"{', '.join(told)}{more}"


def find_unknown_clusters(policies: Collection[PropagationPolicy], fleet: Collection[str]) -> Iterator[Finding]:
    """One finding for each policy that names clusters which nobody describes; none where no cluster is described at all."""
    known, words = frozenset(fleet), NameSuggestions(fleet, 0.6)
    for policy in policies if known else ():
        strangers = sorted(
            {name for group in _list_affinity_terms(policy) for name in map(str, group.get("clusterNames") or ())} - known
        )
        if not strangers:
            continue
        more = f" and {len(strangers) - _MAX_NAMED} more" if len(strangers) > _MAX_NAMED else ""
        near = words.suggest(strangers[0]) if len(strangers) == 1 else ""
        hint = f"; did you mean {near}?" if near else ""
        message = f"{policy.key.title} names clusters that nobody describes: {', '.join(strangers[:_MAX_NAMED])}{more}{hint}"
        yield Finding("warning", "karmada-cluster-unknown", message, locate_document(policy.document), policy.key.resource)


def _list_affinity_terms(policy: PropagationPolicy) -> Iterator[Mapping[str, Any]]:
    placement = policy.spec.get("placement") or {}
    yield get_field(placement, "clusterAffinity") or {}
    yield from placement.get("clusterAffinities") or ()


def find_disabled_preemption(policies: Iterable[PropagationPolicy], enabled: bool) -> list[Finding]:
    """Policies that ask for preemption while nothing allows it."""
    return [
        Finding(
            "info",
            "karmada-preemption-off",
            f"{policy.key.title} asks for preemption, which has no effect: karmada.preemption is not true in gitsched.yaml",
            locate_document(policy.document),
            policy.key.resource,
        )
        for policy in policies
        if not enabled and policy.spec.get("preemption") == "Always"
    ]


def find_suspended_policies(policies: Iterable[PropagationPolicy]) -> list[Finding]:
    """One finding for each policy that holds back deliveries: a suspension is easily forgotten."""
    findings = []
    for policy in policies:
        everywhere, clusters = read_suspension(policy.spec)
        if everywhere or clusters:
            where = "every cluster" if everywhere else ", ".join(sorted(clusters))
            message = f"{policy.key.title} suspends dispatching to {where}: what is there stays as it is, nothing new is delivered"
            findings.append(
                Finding("info", "dispatching-suspended", message, locate_document(policy.document), policy.key.resource)
            )
    return findings
