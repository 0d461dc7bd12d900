"""Objects that are parts of Bundles which cannot be built: what was placed of them by themselves stays until they can."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gitsched.decide.variants.built_parts import PartOwners
from gitsched.decide.variants.bundle_delivery import BundleDeliveries, find_bundle, read_delivery
from gitsched.model.document import Key
from gitsched.model.scheduling import TargetCluster
from gitsched.model.variants import MANIFESTS

if TYPE_CHECKING:
    from gitsched.decide.decisions import DecisionSet
    from gitsched.model.scheduling import Outcome


def leave_to_bundles(decisions: DecisionSet) -> DecisionSet:
    """Return the decisions with the parts of Bundles that cannot be built where no Bundle brings them.

    A part keeps its previous clusters if a Bundle cannot be built for one of them. Else it is a part as those of any other Bundle.
    """
    source = decisions.input
    assert source is not None, "what was decided has an input"
    kept = decisions.quarantined & decisions.outcomes.keys()
    changed: dict[Key, Outcome | None] = {}
    owners = PartOwners(decisions, source.config)
    for document, part in source.parts:
        key = document.key
        if part.is_reported or not part.bundles or key not in kept:
            continue
        outcome = decisions.outcomes[key]
        staying = {target.cluster for target in outcome.targets} - owners.list_clusters(key)
        if staying.isdisjoint(_list_failing(decisions, owners, part.bundles, staying)):
            changed[key] = None
        else:
            targets = [
                tuple(one for one in found if one.cluster in staying) for found in (outcome.targets, outcome.previous_targets)
            ]
            changed[key] = outcome._replace(targets=targets[0], previous_targets=targets[1])
    if not changed:
        return decisions
    dropped = {key for key, outcome in changed.items() if outcome is None}
    outcomes = {key: changed.get(key, outcome) for key, outcome in decisions.outcomes.items()}
    return decisions._replace(
        outcomes={key: outcome for key, outcome in outcomes.items() if outcome is not None},
        templates={key: document for key, document in decisions.templates.items() if key not in dropped},
        quarantined=decisions.quarantined - dropped,
        unstable=decisions.unstable - dropped,
    )


def _list_failing(decisions: DecisionSet, owners: PartOwners, bundles: Iterable[Key], clusters: Iterable[str]) -> Iterator[str]:
    """Yield those of some clusters for which one of the Bundles cannot be built, by gitsched or by its delivery tool."""
    source = decisions.input
    assert source is not None, "what was decided has an input"
    for bundle in bundles:
        variants = decisions.variants.get(bundle)
        if variants is None:
            continue
        yield from variants.failed.keys() & clusters
        for outcome in owners.list_outcomes(bundle):
            tool = read_delivery(find_bundle(decisions.templates[outcome.key], outcome, bundle))
            if tool != MANIFESTS:
                deliveries = BundleDeliveries(bundle, tool, variants, source.config.delivery)
                yield from (name for name in sorted(clusters) if deliveries.find_problem(TargetCluster(name)))
