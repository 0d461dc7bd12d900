"""Apply override policies to what clusters get of a workload with variants: to its own document there, or to the objects of a Bundle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gitsched.model.document import Document, get_field
from gitsched.model.explanation import AppliedOverride
from gitsched.model.finding import Finding, locate_document
from gitsched.model.scheduling import TargetCluster
from gitsched.model.variants import BUNDLE_KIND, MANIFESTS, WorkloadVariants

if TYPE_CHECKING:
    from gitsched.apis.karmada.overrides.override_policy import FindDefinition, OverrideIndex

Overridden = tuple[tuple[TargetCluster, ...], tuple[Finding, ...]]


def apply_to_variants(
    overrides: OverrideIndex,
    template: Document,
    targets: tuple[TargetCluster, ...],
    variants: WorkloadVariants,
    find_definition: FindDefinition,
) -> Overridden:
    """Set what override policies change in each target cluster. A cluster for which one cannot be applied keeps what it has."""
    if template.key[:2] == BUNDLE_KIND:
        return _apply_to_objects(overrides, template, targets, variants, find_definition)
    by_document: dict[int, tuple[Document, list[TargetCluster]]] = {}
    for target in targets:
        variant = variants.find(target.cluster)
        objects = variant.objects if variant is not None else ()
        document = next((document for document in objects if document.key == template.key), template)
        by_document.setdefault(id(document), (document, []))[1].append(target)
    results: dict[str, TargetCluster] = {}
    findings: list[Finding] = []
    for document, group in by_document.values():
        overridden, found = overrides.apply(document, tuple(group), find_definition)
        results |= {target.cluster: target for target in overridden}
        findings += found
    return tuple(results[target.cluster] for target in targets), tuple(findings)


def _apply_to_objects(
    overrides: OverrideIndex,
    template: Document,
    targets: tuple[TargetCluster, ...],
    variants: WorkloadVariants,
    find_definition: FindDefinition,
) -> Overridden:
    """Set the objects of a Bundle that override policies change in each target cluster."""
    results = {target.cluster: target for target in targets}
    findings: list[Finding] = []
    by_variant: dict[int, list[TargetCluster]] = {}
    for target in targets:
        index = variants.by_cluster.get(target.cluster)
        if index is not None:
            by_variant.setdefault(index, []).append(target)
    for index, group in by_variant.items():
        for document in variants.variants[index].objects:
            own = tuple(target if document.key == target.workload else target._replace(edits=()) for target in group)
            overridden, found = overrides.apply(document, own, find_definition)
            findings += found
            for target in overridden if overridden is not own else ():
                known = results[target.cluster]
                if target.body is not None:
                    known = known._replace(bodies=(*known.bodies, (document.key, target.body)))
                results[target.cluster] = known._replace(keeps_manifest=known.keeps_manifest or target.keeps_manifest)
    tool = str(get_field(template.body, "spec", "delivery") or MANIFESTS)
    changed = sorted({str(key) for target in results.values() for key, _ in target.bodies})
    if changed and tool != MANIFESTS:
        message = (
            f"override policies do not change {', '.join(changed[:3])} of {template.key}, because {tool} builds them: use a variant or a "
            f"patch for these clusters, or delivery: {MANIFESTS}"
        )
        findings.append(Finding("warning", "bundle-override", message, locate_document(template), template.key.resource))
        results = {name: target._replace(bodies=()) for name, target in results.items()}
    if overrides.names_kind(template):
        message = (
            f"an override policy selects {template.key}, but what is changed are the objects of a Bundle: have it select these"
        )
        findings.append(Finding("warning", "bundle-override", message, locate_document(template), template.key.resource))
    return tuple(results[target.cluster] for target in targets), tuple(dict.fromkeys(findings))


def explain_variants(
    overrides: OverrideIndex, template: Document, targets: Iterable[TargetCluster], variants: WorkloadVariants
) -> tuple[AppliedOverride, ...]:
    """Return the policies that select what these clusters get, one entry for each policy."""
    found: dict[tuple[str, str], AppliedOverride] = {}
    by_variant: dict[int, list[TargetCluster]] = {}
    for target in targets:
        index = variants.by_cluster.get(target.cluster)
        if index is not None:
            by_variant.setdefault(index, []).append(target)
    for index, group in by_variant.items():
        for document in variants.variants[index].objects:
            if template.key[:2] == BUNDLE_KIND or document.key == template.key:
                own = (one if document.key in (one.workload, template.key) else one._replace(edits=()) for one in group)
                for entry in overrides.explain(document, own):
                    known = found.setdefault((entry.policy, entry.location), entry)
                    changes = tuple(dict.fromkeys((*known.changes, *entry.changes)))
                    found[entry.policy, entry.location] = known._replace(
                        clusters=tuple(sorted({*known.clusters, *entry.clusters})),
                        changes=changes,
                        unchanged=tuple(one for one in dict.fromkeys((*known.unchanged, *entry.unchanged)) if one not in changes),
                    )
    return tuple(found.values())
