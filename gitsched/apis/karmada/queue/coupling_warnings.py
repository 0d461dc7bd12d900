"""Warnings about quotas and groups of workloads that limit nothing, or otherwise than they say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from gitsched.apis.karmada.interpreter import is_counted_resource, parse_quantities
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.apis.karmada.queue.affinity_groups import list_terms
from gitsched.model.document import Document, get_field
from gitsched.model.finding import Finding, Pointer, locate_document, locate_field
from gitsched.model.similar_names import find_similar

_COUNTED = ("cpu", "memory", "pods", "ephemeral-storage")


def find_quota_warnings(quotas: Sequence[Document]) -> Iterator[Finding]:
    """Yield a warning for each amount of a quota that limits nothing: a lower one counts, or no pod requests such a resource."""
    least: dict[tuple[str, str], tuple[int, Document]] = {}
    amounts = [(quota, parse_quantities(get_field(quota.body, "spec", "overall"))) for quota in quotas]
    for quota, overall in amounts:
        for resource, amount in overall.items():
            place = quota.key.namespace, resource
            least[place] = min(
                least.get(place, (amount.nano, quota)), (amount.nano, quota), key=lambda entry: (entry[0], entry[1].key)
            )
    for quota, overall in amounts:
        for resource, amount in overall.items():
            limit, other = least[quota.key.namespace, resource]
            if not is_counted_resource(resource):
                near = find_similar(resource, _COUNTED, 0.5)
                hint = f"; did you mean {near}?" if near else f": use {', '.join(_COUNTED)} or an extended resource"
                message = f"{quota.key.title} limits {resource}, which no pod requests{hint}"
                yield _make_finding("karmada-quota-resource", message, quota, ("spec", "overall", resource))
            elif limit < amount.nano:
                at = locate_document(other)
                where = f" ({at.path}:{at.line})" if at is not None else ""
                message = (
                    f"{quota.key.title} allows {amount} {resource}, and {other.key.title}{where} less: the lower amount counts"
                )
                yield _make_finding("karmada-quota-unused", message, quota, ("spec", "overall", resource))


def find_unused_terms(policies: Iterable[PropagationPolicy], used: Collection[tuple[str, str]]) -> Iterator[Finding]:
    """Yield a warning for each term of a policy that makes no group. `used` are the namespaces and label keys of all groups."""
    everywhere = {key for _, key in used}
    for policy in policies:
        for side, label in list_terms(policy):
            is_used = (policy.key.namespace, label) in used if policy.is_namespaced else label in everywhere
            if not is_used:
                place = ("spec", "placement", "workloadAffinity", side, "groupByLabelKey")
                message = f"{policy.key.title}: no workload that it selects has the label {label}, so that nothing is grouped by it"
                yield _make_finding("karmada-workload-affinity-unused", message, policy.document, place)


def _make_finding(code: str, message: str, document: Document, place: Pointer) -> Finding:
    origin = locate_field(document.origin, place)
    return Finding("warning", code, message, locate_document(document), document.key.resource, origin)
