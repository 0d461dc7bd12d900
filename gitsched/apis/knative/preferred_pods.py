"""Report where the preferred pods of an event source have no effect. The candidates of vreplicas are pods, so the annotation names pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gitsched.apis.knative.names import read_ordinal
from gitsched.apis.preferences import describe_unused, make_unknown_finding, make_unused_finding, read_names
from gitsched.model.finding import Finding

if TYPE_CHECKING:
    from gitsched.apis.knative.documents import KnativeInputs
    from gitsched.apis.knative.scheduler import VpodSchedulingResult


def find_preference_findings(inputs: KnativeInputs, result: VpodSchedulingResult, cluster: str) -> Iterator[Finding]:
    """Yield the findings about the annotation of each source of a StatefulSet that runs in a cluster, "" if it is not rendered."""
    adapter = inputs.adapter.key.name
    for name, document in inputs.sources.items():
        names = yield from read_names(document)
        if not names:
            continue
        if cluster in names:
            reason = f"{cluster} has no effect, because the StatefulSet {adapter} runs there (knative.cluster): name its pods"
            yield make_unused_finding(document, reason)
        ordinals = {pod: read_ordinal(pod, adapter) for pod in names if pod != cluster}
        pods = inputs.adapter_pods.pods
        unknown = [pod for pod, ordinal in ordinals.items() if ordinal is None or ordinal not in pods]
        if unknown:
            yield make_unknown_finding(
                document, unknown, (f"{adapter}-{ordinal}" for ordinal in pods), f"Pod of {inputs.adapter.key}"
            )
        placements = result.placements[name]
        preferred = {pod: ordinal for pod, ordinal in ordinals.items() if ordinal in pods and ordinal is not None}
        if not preferred or all(ordinal in preferred.values() for ordinal in placements):
            continue
        excluded = {pod: _explain_exclusion(result, ordinal) for pod, ordinal in preferred.items()}
        yield make_unused_finding(document, describe_unused(document, excluded, (), ()))


def _explain_exclusion(result: VpodSchedulingResult, ordinal: int) -> str:
    """Return why a pod that exists gets no further vreplicas."""
    if ordinal not in result.adapter.pods:
        return "not allowed: it takes no new vreplicas"
    free = result.state.free
    return "full" if ordinal < len(free) and free[ordinal] <= 0 else "rejected for further vreplicas by the predicates"
