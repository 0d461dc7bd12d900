"""Rollouts whose document has errors and was never valid: what they name waits in all clusters until they are valid or removed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gitsched.apis.gitsched.rollout import RolloutSpec, parse_broken_rollout
from gitsched.decide.catalog import Catalog
from gitsched.decide.rollouts.pending_files import PendingFiles
from gitsched.decide.rollouts.rollout_progress import RolloutStep
from gitsched.model.finding import Finding, format_names, locate_document
from gitsched.model.rollouts import ROLLOUT_KIND, RolloutCluster, RolloutRecord, RolloutStatus

CORRECTION = "its document is corrected or removed"
"""What such a rollout waits for."""


def list_broken_rollouts(catalog: Catalog) -> Iterator[RolloutSpec]:
    """Yield the Rollouts without a usable document, as far as they can be read. One that is defined more than once selects what any of its
    documents does."""
    for key, document in sorted(catalog.broken.items()):
        if key[:2] == ROLLOUT_KIND:
            found = [parse_broken_rollout(copy) for copy in catalog.duplicate_api_documents.get(key, (document,))]
            every = [selector for spec in found for selector in spec.selectors or ()]
            yield found[0]._replace(selectors=None if any(spec.selectors is None for spec in found) else tuple(every))


def hold_changes(spec: RolloutSpec, record: RolloutRecord, changes: Mapping[str, Sequence[PendingFiles]]) -> RolloutStep:
    """Return the step of a rollout that cannot go on: no cluster gets a change."""
    held = tuple(one.held for name in sorted(changes) for one in changes[name])
    clusters = tuple(RolloutCluster(name, "1", "waiting") for name in sorted(changes))
    workloads = tuple(sorted({files.workload for files in held}))
    status = RolloutStatus(spec.name, spec.strategy.type, "stopped", f"waits until {CORRECTION}", clusters, workloads)
    return RolloutStep(record._replace(held=held), status, (), ())


def make_broken_finding(spec: RolloutSpec, step: RolloutStep, tenant: str) -> Finding:
    """Return the warning about what a broken Rollout of a `tenant` ("" for the platform) holds."""
    if spec.selectors is None:
        whose = f"everything of the tenant {tenant}" if tenant else "everything"
        named = f"{whose} that policies place, because what it selects cannot be read or is not restricted"
    else:
        named = format_names(sorted({str(selector) for selector in spec.selectors}))
    waiting = [str(key) for key in step.status.workloads]
    effect = (
        f"now {format_names(waiting)} {'keep' if len(waiting) > 1 else 'keeps'} the previous manifests"
        if waiting
        else "now nothing waits"
    )
    message = (
        f"the Rollout {spec.name} has errors and was never valid, so changes of what it names reach no cluster: {named}; {effect}. Correct "
        "the Rollout, or remove it to deliver the changes everywhere"
    )
    return Finding("warning", "rollout-broken", message, locate_document(spec.document), spec.document.key.resource)
