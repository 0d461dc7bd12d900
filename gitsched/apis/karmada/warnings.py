"""Warnings about policies (what they select, name and suspend) and about bindings (an earlier affinity group fits, a cluster is not ready
or full)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import islice
from typing import Any

from gitsched.apis.karmada import names
from gitsched.apis.karmada.binding.exceeded_capacity import find_full_clusters, read_exceeded_capacity
from gitsched.apis.karmada.binding.resource_binding import SchedulingPass
from gitsched.apis.karmada.binding.scheduling_pass import read_suspension
from gitsched.apis.karmada.components import has_uncounted_components
from gitsched.apis.karmada.failover.failback import EARLIER_GROUP, SchedulingAttempt, find_earlier_group
from gitsched.apis.karmada.interpreter import WorkloadComponent
from gitsched.apis.karmada.overrides.override_policy import OverridePolicy
from gitsched.apis.karmada.policy.equal_policies import find_equal_policies
from gitsched.apis.karmada.policy.propagation_policy import (
    PropagationPolicy,
    ResourceSelector,
    SelectorIndex,
)
from gitsched.apis.karmada.settings import FeatureGates
from gitsched.apis.karmada.state import KarmadaState
from gitsched.apis.registered import Registered
from gitsched.apis.variant_values import make_lacking_finding
from gitsched.kinds.replicas import MAX_REPLICAS
from gitsched.model.document import Document, Key, get_field, list_server_owned, parse_api_group, read_annotations, read_labels
from gitsched.model.finding import Finding, Pointer, format_names, locate_document, locate_field
from gitsched.model.known_values import find_near, list_values
from gitsched.model.variants import TemplateVariants, WorkloadVariants
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.fleet import VariantFilter
from gitsched.schedule.rejections import list_rejections

_JOB = ("batch", "Job")
_FIRST_BATCH = 64
"""How many objects all selectors with labels are compared with; later ones are compared with those that have matched nothing."""
SelectingPolicies = Sequence[tuple[PropagationPolicy | OverridePolicy, Sequence[ResourceSelector]]]
"""Policies and override policies with their selectors."""
_COMPARE_UNMATCHED = Registered("gitsched.apis.karmada.policy.unmatched_selectors", "compare_unmatched")
_DESCRIBE_UNMATCHED = Registered("gitsched.apis.karmada.policy.unmatched_selectors", "describe_unmatched")


class SimilarObjects(NamedTuple):
    """What a selector that matches nothing is similar to: a kind or version, or the hint at an object, "" for none; and whether the same
    objects are in another namespace."""

    misspelling: str = ""
    hint: str = ""
    is_elsewhere: bool = False

    @property
    def is_near(self) -> bool:
        return bool(self.misspelling or self.hint)


class UnmatchedPolicySelectors(NamedTuple):
    """The selectors that match nothing, with the scopes of their policies, and what those are similar to by policy and position; and the
    namespaces without objects that policies without selectors are for."""

    selectors: frozenset[tuple[str, ResourceSelector]] = frozenset()
    similar: Mapping[tuple[Key, int], SimilarObjects] = {}
    empty: frozenset[str] = frozenset()


class PolicyWarnings(NamedTuple):
    """The findings about policies, override policies and quotas, and the selectors that match nothing: those of policies, then those of
    override policies. They stay the same while no policy selects otherwise and selectors can match the same objects."""

    findings: tuple[Finding, ...] = ()
    unmatched: tuple[UnmatchedPolicySelectors, UnmatchedPolicySelectors] = (UnmatchedPolicySelectors(), UnmatchedPolicySelectors())


def find_policy_warnings(
    state: KarmadaState,
    other_kinds: Collection[tuple[str, str]],
    list_templates: Callable[[], Iterable[Document]],
    known: PolicyWarnings | None = None,
) -> PolicyWarnings:
    """Return the findings about policies, override policies and FederatedResourceQuotas.

    `other_kinds` are groups and kinds of objects that are not templates or are quarantined. `list_templates` returns the templates, with
    no more than selectors read. `known` has the selectors that match nothing; None to search for them.
    """
    index, settings = state.policies, state.settings
    policies, quotas = index.policies.values(), state.snapshot.documents.get((names.POLICY_GROUP, names.QUOTA), ())
    selectors = [(policy, index.selectors[policy.key]) for policy in policies]
    overrides = [(policy, policy.selectors) for policy in state.overrides.policies]
    templates = cache(lambda: tuple(list_templates()))
    if known is None:
        resources = SelectableResources({one.key: one.api_version for one in templates()}, other_kinds)
        unmatched = (
            _find_unmatched(selectors, resources, templates),
            _find_unmatched_overrides(overrides, resources, templates, other_kinds, state.snapshot.variants),
        )
    else:
        unmatched = known.unmatched
    findings = (
        *find_suspended_policies(policies),
        *find_disabled_preemption(policies, settings.preemption),
        *find_disabled_gates(policies, quotas, settings.gates),
        *find_unknown_clusters(policies, state.fleet.names),
        *(find_equal_policies(selectors, index, templates) if len(selectors) > 1 else ()),
        *(_DESCRIBE_UNMATCHED(selectors, unmatched[0]) if unmatched[0].selectors else ()),
        *(_DESCRIBE_UNMATCHED(overrides, unmatched[1]) if unmatched[1].selectors or unmatched[1].empty else ()),
    )
    return PolicyWarnings(findings, unmatched)


class SelectableResources:
    """The objects that selectors can match, by kind, version, namespace and name."""

    def __init__(self, templates: Mapping[Key, str], other_kinds: Iterable[tuple[str, str]]) -> None:
        """`templates` has the apiVersion of each template; `other_kinds` are groups and kinds of objects that are not templates or are
        quarantined."""
        self.versions: dict[str, set[str]] = {}
        self._namespaces: set[tuple[str, str, str]] = set()
        self._templates = templates
        for key, api_version in templates.items():
            self.versions.setdefault(key.kind, set()).add(api_version)
            self._namespaces.add((api_version, key.kind, key.namespace))
        self._other_kinds = frozenset(other_kinds)

    def is_other(self, selector: ResourceSelector) -> bool:
        """Return whether objects of the kind of a selector are not templates."""
        return (parse_api_group(selector.api_version), selector.kind) in self._other_kinds

    def has_match(self, selector: ResourceSelector) -> bool:
        """Return whether an object has the kind, namespace and name of a selector; always true for the other kinds."""
        api_version, kind, namespace, name = selector[:4]
        if self.is_other(selector):
            return True
        if api_version not in self.versions.get(kind, ()) or (namespace and (api_version, kind, namespace) not in self._namespaces):
            return False
        return not name or name in self.names[api_version, kind, namespace]

    def list_namespaces(self, api_version: str, kind: str, name: str) -> list[str]:
        """Return the namespaces that have an object of a kind and name; without a name, any object of the kind."""
        if name:
            found = (
                space
                for (version, of, space), names in self.names.items()
                if (version, of) == (api_version, kind) and name in names
            )
        else:
            found = (space for version, of, space in self._namespaces if (version, of) == (api_version, kind))
        return sorted(filter(None, found))

    def has_objects(self, namespace: str) -> bool:
        """Return whether any object is in a namespace."""
        return any(space == namespace for _, _, space in self._namespaces)

    @cached_property
    def names(self) -> Mapping[tuple[str, str, str], set[str]]:
        """The names of each kind by namespace, and under "" in all namespaces; computed on first use."""
        names: dict[tuple[str, str, str], set[str]] = {}
        for key, api_version in self._templates.items():
            for namespace in {key.namespace, ""}:
                names.setdefault((api_version, key.kind, namespace), set()).add(key.name)
        return names


def _find_unmatched(
    policies: SelectingPolicies, resources: SelectableResources, list_templates: Callable[[], Iterable[Document]]
) -> UnmatchedPolicySelectors:
    """Return the selectors of policies that match nothing. Those with invalid labels have a finding of their own."""
    unmatched = {
        (policy.key.namespace, selector)
        for policy, selectors in policies
        for selector in selectors
        if not resources.has_match(selector)
    }
    unmatched |= _find_unmatched_labels(
        {
            (policy.key.namespace, selector): None
            for policy, selectors in policies
            for selector in selectors
            if selector.labels is not None
            and (policy.key.namespace, selector) not in unmatched
            and not resources.is_other(selector)
        },
        list_templates,
    )
    similar = _COMPARE_UNMATCHED(policies, unmatched, resources, list_templates) if unmatched else {}
    return UnmatchedPolicySelectors(frozenset(unmatched), similar)


def _find_unmatched_overrides(
    policies: SelectingPolicies,
    resources: SelectableResources,
    list_templates: Callable[[], tuple[Document, ...]],
    other_kinds: Collection[tuple[str, str]],
    variants: TemplateVariants,
) -> UnmatchedPolicySelectors:
    """Return the same for override policies, which also change the objects of variants: those are read if templates do not suffice."""
    if not policies:
        return UnmatchedPolicySelectors()
    found = _find_unmatched(policies, resources, list_templates)
    spaces = {policy.key.namespace for policy, selectors in policies if policy.key.namespace and not selectors}
    empty = frozenset(space for space in spaces if not resources.has_objects(space))
    if not variants or not (found.selectors or empty):
        return found._replace(empty=empty)
    parts = [one for varied in variants.values() for variant in varied.variants for one in variant.objects]
    every = (*list_templates(), *parts)
    resources = SelectableResources({one.key: one.api_version for one in every}, other_kinds)
    found = _find_unmatched(policies, resources, lambda: every)
    return found._replace(empty=frozenset(space for space in empty if not resources.has_objects(space)))


def _find_unmatched_labels(
    wanted: Iterable[tuple[str, ResourceSelector]], list_templates: Callable[[], Iterable[Document]]
) -> set[tuple[str, ResourceSelector]]:
    """Return those selectors, each with the scope of its policy, whose labels no object has."""
    missing, templates, size = list(wanted), iter(list_templates()), _FIRST_BATCH
    while missing and (batch := list(islice(templates, size))):  # the first objects match most selectors
        missing, size = _list_unmatched(missing, batch), 4 * size
    return set(missing)


def _list_unmatched(
    selectors: list[tuple[str, ResourceSelector]], templates: Iterable[Document]
) -> list[tuple[str, ResourceSelector]]:
    """Return those selectors whose labels none of some objects has."""
    missing = set(range(len(selectors)))
    index, kinds = SelectorIndex(selectors), {(selector.api_version, selector.kind) for _, selector in selectors}
    for template in templates:
        if (template.api_version, template.key.kind) in kinds:
            labels = read_labels(template.body)
            for scope in {template.key.namespace, ""}:
                missing.difference_update(*index.match(scope, template, labels))
    return [selectors[position] for position in sorted(missing)]


def find_unknown_clusters(policies: Collection[PropagationPolicy], cluster_names: Collection[str]) -> Iterator[Finding]:
    """Report policies that name clusters without a Cluster document; nothing when there is no Cluster at all."""
    known = frozenset(cluster_names)
    for policy in policies if known else ():
        places = {
            name: (*pointer, "clusterNames", index)
            for pointer, group in _list_affinity_terms(policy)
            for index, name in enumerate(map(str, group.get("clusterNames") or ()))
        }
        unknown = sorted(places.keys() - known)
        if not unknown:
            continue
        field = locate_field(policy.document.origin, places[unknown[0]])
        near = (
            find_near(unknown[0], known - places.keys()) if len(unknown) == 1 else ""
        )  # fra-1 is not meant by fra-2, which may have been removed
        hint = f"; did you mean {near}?" if near else f"; the fleet has {list_values(known)}"
        message = f"{policy.key.title} names clusters without a Cluster document: {format_names(unknown)}{hint}"
        yield Finding("warning", "karmada-cluster-unknown", message, locate_document(policy.document), policy.key.resource, field)


def _list_affinity_terms(policy: PropagationPolicy) -> Iterator[tuple[Pointer, Mapping[str, Any]]]:
    """Yield the affinities of a policy with their places."""
    placement = policy.spec.get("placement") or {}
    yield ("spec", "placement", "clusterAffinity"), placement.get("clusterAffinity") or {}
    for index, group in enumerate(placement.get("clusterAffinities") or ()):
        yield ("spec", "placement", "clusterAffinities", index), group


def find_disabled_preemption(policies: Iterable[PropagationPolicy], enabled: bool) -> list[Finding]:
    """Report policies with preemption while the settings do not enable it."""
    return [
        Finding(
            "info",
            "karmada-preemption-off",
            f"{policy.key.title} sets preemption, which has no effect: set spec.karmada.preemption to true in gitsched.yaml to enable it",
            locate_document(policy.document),
            policy.key.resource,
        )
        for policy in policies
        if not enabled and policy.spec.get("preemption") == "Always"
    ]


def find_disabled_gates(
    policies: Iterable[PropagationPolicy], quotas: Iterable[Document], gates: FeatureGates
) -> Iterator[Finding]:
    """Report policies and quotas that have an effect only with a feature gate that the settings do not switch on."""
    for policy in policies:
        if not gates.workload_affinity and get_field(policy.spec, "placement", "workloadAffinity"):
            place = ("spec", "placement", "workloadAffinity")
            effect = "workloads of a group may share a cluster or be apart"
            yield _make_gate_finding(policy.document, place, "workloadAffinity", effect, "WorkloadAffinity")
    for document in quotas:
        if not gates.quota and get_field(document.body, "spec", "overall"):
            yield _make_gate_finding(document, ("spec", "overall"), "overall", "it limits nothing", "FederatedQuotaEnforcement")


def _make_gate_finding(document: Document, place: Pointer, field: str, effect: str, gate: str) -> Finding:
    message = (
        f"{document.key.title} sets {field}, which has no effect: {effect}, as in Karmada without the feature gate. Set "
        f"spec.karmada.featureGates.{gate} to true in gitsched.yaml to enable it"
    )
    origin = locate_field(document.origin, place)
    return Finding("warning", "karmada-gate-off", message, locate_document(document), document.key.resource, origin)


def find_suspended_policies(policies: Iterable[PropagationPolicy]) -> list[Finding]:
    """Report policies that suspend dispatching."""
    findings = []
    for policy in policies:
        if not policy.spec.get("suspension"):
            continue
        everywhere, clusters = read_suspension(policy.spec)
        if everywhere or clusters:
            where = "every cluster" if everywhere else ", ".join(sorted(clusters))
            message = f"{policy.key.title} suspends dispatching to {where}: manifests there do not change"
            findings.append(
                Finding("info", "dispatching-suspended", message, locate_document(policy.document), policy.key.resource)
            )
    return findings


def find_binding_warnings(
    state: KarmadaState, template: Document, passes: Sequence[SchedulingPass], *, attached: bool
) -> Iterator[Finding]:
    """Yield the warnings about a binding after the passes of a run. The one about a cluster that is not ready is the same for all its
    workloads. A workload is `attached` if others depend on it, which take it to further clusters."""
    last = passes[-1]
    if state.unready_clusters:
        clusters = last.outcome.replicas_by_cluster
        unready = (state.unready_clusters[name] for name in clusters if name in state.unready_clusters)
        yield from (cluster.finding for cluster in unready if cluster.evicts(last.request.tolerations))
    attempt = SchedulingAttempt(last.request, last.trigger, last.decision)
    if last.request.first_group and (group := find_earlier_group(attempt, state.fleet)):
        used = last.request.groups[last.request.first_group].name
        message = (
            f"{template.key} is unplaced although affinity group {group} can run it: as in Karmada, scheduling resumes at group {used}, "
            "which was used last, and does not try earlier groups; set spec.karmada.failback: WhenUnschedulable, or commit a "
            "WorkloadRebalancer that names it"
        )
        yield Finding("warning", EARLIER_GROUP, message, locate_document(template), template.key.resource)
    if last.request.divides and template.key[:2] == _JOB and last.outcome.targets:
        yield from _find_ttl(template)
    if state.settings.gates.components:
        components = state.read_wanted_requirements(template).components
        yield from _find_equal_components(template, components) if components else _find_uncounted_components(template)
    variants = state.read_variant_requirements(template) if last.request.variants is not None else None
    if variants is not None and variants.variants.lacking:
        yield from _find_lacking_clusters(state, template, last, variants.variants)
    if not (state.fleet.has_capacity and (last.may_exceed or attached)):
        return
    exceeded = read_exceeded_capacity(read_annotations(last.outcome.records[0][1]))
    targets, group = last.outcome.targets, last.outcome.group
    is_shared, total = state.settings.overcommit_protection, state.inventory.allocatable
    yield from find_full_clusters(state.fleet, template, last.request, group, targets, exceeded, total, is_shared=is_shared)


def _find_uncounted_components(template: Document) -> Iterator[Finding]:
    """Yield a warning about components whose numbers of pods cannot be read."""
    if has_uncounted_components(template):
        message = (
            f"{template.key}: the number of pods of a component is not a whole number from 0 to {MAX_REPLICAS}, so that none of its pods "
            "counts against capacity and quotas"
        )
        yield Finding("warning", "opaque-replicas", message, locate_document(template), template.key.resource)


def _find_equal_components(template: Document, components: Iterable[WorkloadComponent]) -> Iterator[Finding]:
    """Yield a warning about components with the same name, or without one: Karmada's webhook refuses such a binding."""
    names = [one.name for one in components]
    wrong = sorted({name for name in names if not name or names.count(name) > 1})
    if wrong:
        message = (
            f"{template.key} has several components named {format_names(wrong)}: Karmada refuses its binding; give each part of the "
            "workload a name of its own"
        )
        yield Finding("warning", "karmada-component-names", message, locate_document(template), template.key.resource)


def _find_ttl(template: Document) -> Iterator[Finding]:
    """Yield a note about a Job that its clusters delete when it has finished, unless the TTL is not delivered."""
    field = ("spec", "ttlSecondsAfterFinished")
    if get_field(template.body, *field) is None or field in list_server_owned(template.body):
        return
    message = (
        f"{template.key} has ttlSecondsAfterFinished: where it has finished, its cluster deletes it, and what delivers it makes it again, "
        "so that its part of the work is done twice; remove the field, and remove the Job from the source when it has finished"
    )
    origin = locate_field(template.origin, field)
    yield Finding("info", "job-repeated", message, locate_document(template), template.key.resource, origin)


def _find_lacking_clusters(
    state: KarmadaState, template: Document, last: SchedulingPass, variants: WorkloadVariants
) -> Iterator[Finding]:
    """Yield a warning about clusters that pass all other filters, and that lack a label or an annotation which values name."""
    lacking: dict[str, list[str]] = {}
    for group in last.request.groups[last.request.first_group :]:
        for rejection in list_rejections(last.request, group, state.fleet):
            names = (state.fleet.names[index] for index in state.fleet.members(rejection.mask))
            for name in names if isinstance(rejection.filter, VariantFilter) else ():
                if name in variants.lacking and name not in lacking.get(variants.failed[name], ()):
                    lacking.setdefault(variants.failed[name], []).append(name)
        if last.decision is not None and group.name == last.decision.group:
            break
    for clusters in lacking.values():
        yield make_lacking_finding(template, template.key, variants, clusters)
