"""Describe for `explain` what each workload refers to: what goes to its clusters as well, and what is missing there."""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.decide.decisions import DecisionSet
from gitsched.decide.relations.delivered_objects import NO_CLUSTERS, Clusters, DeliveredObjects
from gitsched.decide.relations.missing_references import MissingReference
from gitsched.decide.relations.reference_findings import join_names
from gitsched.model.document import Key
from gitsched.model.explanation import ExplainedReference
from gitsched.model.references import RequiredObject


def explain_references(
    decisions: DecisionSet, delivered: DeliveredObjects, missing: Iterable[MissingReference], only: Key | None = None
) -> dict[Key, tuple[ExplainedReference, ...]]:
    """Return the references of every workload, or of `only` one, without those to objects that the source need not have."""
    lacking = {one.key: one for one in missing}
    found: dict[Key, dict[RequiredObject, Clusters]] = {}
    for required, referrer, clusters, *_ in delivered.requirements:
        if only in (None, referrer):
            known = found.setdefault(referrer, {})
            known[required] = known.get(required, NO_CLUSTERS) | clusters
    return {
        key: tuple(
            _explain(required.key, clusters, decisions, delivered, lacking.get(required.key))
            for required, clusters in required_objects.items()
            if required.expected or required.key in decisions.templates
        )
        for key, required_objects in found.items()
    }


def _explain(
    key: Key, clusters: Clusters, decisions: DecisionSet, delivered: DeliveredObjects, missing: MissingReference | None
) -> ExplainedReference:
    there = clusters & delivered.find_clusters(key)
    absent = clusters & missing.clusters - there if missing is not None else NO_CLUSTERS
    outcome = decisions.outcomes.get(key)
    reason = (outcome.policy or outcome.reason) if outcome is not None and there else ""
    if there and outcome is None:
        owners = delivered.owners.get(key, ())
        reason = f"part of {join_names(list(map(str, owners)))}" if owners else "a controller writes it"
    if missing is not None and absent and not missing.in_source:
        reason = "not in the source"
        if missing.creators:
            reason += f"; {join_names(list(map(str, missing.creators)))} may create it"
    if not there and not absent:
        reason = "assumed to be in its clusters"
    return ExplainedReference(str(key), tuple(sorted(there)), tuple(sorted(absent)), reason)
