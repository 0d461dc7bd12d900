"""The run for one StatefulSet: from its sources, pods and nodes to placements, replicas and pods marked unschedulable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from gitsched.apis.capabilities import InnerPlacement
from gitsched.apis.knative.documents import (
    AdapterRendering,
    EventSources,
    KnativeInputs,
    VpodSchedulingError,
    find_previous_adapter,
    list_previous_pods,
    make_adapter_record,
    make_pod_record,
    make_source_record,
    read_inputs,
    read_previous_rendering,
)
from gitsched.apis.knative.explanation import evaluate_pods, explain_placements, explain_previous
from gitsched.apis.knative.findings import describe_replicas, report_run
from gitsched.apis.knative.names import make_pod_key
from gitsched.apis.knative.scheduler import VpodSchedulingResult, schedule_vpods
from gitsched.apis.knative.settings import KnativeConfig
from gitsched.apis.knative.vpods import read_node_name
from gitsched.apis.snapshot import Snapshot
from gitsched.apis.topology import NODE
from gitsched.model.document import Body, Document, Key
from gitsched.model.explanation import Explanation
from gitsched.model.finding import Finding
from gitsched.model.planned_files import ClusterInfo
from gitsched.model.scheduling import CandidateResult, Outcome, TargetCluster


class AdapterRun:
    """The decisions for one StatefulSet and its sources; the constructor makes them. `taken` are the StatefulSets of other runs.

    `findings` are about the run, not about single sources. `adapter` is the StatefulSet of this or the previous run; None if there is none.
    """

    def __init__(self, snapshot: Snapshot, settings: KnativeConfig, sources: EventSources, taken: frozenset[Key]) -> None:
        self.snapshot = snapshot
        self.settings = settings
        self.event_sources = sources
        self.inputs: KnativeInputs | None = None
        self.result: VpodSchedulingResult | None = None
        self.findings: tuple[Finding, ...] = ()
        self.blocking_finding: Finding | None = None
        self.wakeup: datetime | None = None
        self.time: datetime | None = None
        self._records: tuple[tuple[Key, Body], ...] = ()
        self._previous_adapter: tuple[Key, Body] | None = None
        try:
            self._schedule(read_inputs(snapshot, settings, sources, taken))
        except VpodSchedulingError as error:
            self._keep_all_previous(error.finding, taken)

    @property
    def adapter(self) -> Key | None:
        if self.inputs is not None:
            return self.inputs.adapter.key
        return self._previous_adapter[0] if self._previous_adapter else None

    def _keep_all_previous(self, finding: Finding, taken: frozenset[Key]) -> None:
        """Keep all previous records, because no decision is possible."""
        self.findings = (*self.findings, finding)
        self.blocking_finding = finding
        self._previous_adapter = find_previous_adapter(self.snapshot, self.settings, taken)
        self.keep_records()

    def keep_records(self) -> None:
        """Keep the previous records of the StatefulSet, its pods and its sources, whatever was decided."""
        adapter, sources = self.adapter, (document.key for document, _ in self.event_sources.valid.values())
        pods = [key for key, _ in list_previous_pods(adapter, self.snapshot)] if adapter is not None else []
        keys = (*([adapter] if adapter is not None else []), *pods, *sources, *self.event_sources.quarantined)
        self._records, self.time = tuple(_copy_previous_records(keys, self.snapshot)), None

    def _schedule(self, inputs: KnativeInputs) -> None:
        snapshot = self.snapshot
        result = schedule_vpods(inputs.scheduling_input, inputs.adapter_state, dict(inputs.placements), snapshot.at, snapshot.now)
        adapter = inputs.adapter
        cluster = self.settings.cluster
        records = [(adapter.key, make_adapter_record(adapter, result.adapter_state, cluster))]
        records += [
            (d.key, make_source_record(d, adapter.key, result.placements[name], cluster)) for name, d in inputs.sources.items()
        ]
        marked, unmarked = result.adapter_state.marked, result.adapter_state.unmarked
        pods = [(make_pod_key(adapter.key, ordinal), ordinal in marked) for ordinal in sorted(marked | unmarked)]
        records += [(key, make_pod_record(key, marked)) for key, marked in pods]
        self.inputs, self.result = inputs, result
        self.wakeup, self.time = result.wakeup, result.time
        self._records = (*records, *_copy_previous_records(self.event_sources.quarantined, snapshot))
        self.findings = (
            *self.findings,
            *report_run(inputs, result, self.event_sources, cluster),
        )

    def own_workloads(self) -> Iterable[tuple[Document, Outcome]]:
        if self.inputs is not None and self.result is not None:
            adapter, replicas = self.inputs.adapter, self.result.adapter_state.replicas
            cluster = self.settings.cluster
            if cluster:
                reason, time = describe_replicas(self.result), self.result.time or self.snapshot.at
                yield adapter, self._make_outcome(adapter, AdapterRendering(cluster, replicas), "placed", reason, time)
        elif (
            self._previous_adapter is not None
            and self._previous_adapter[0] in self.snapshot.templates
            and self.blocking_finding is not None
        ):
            adapter, rendering = (
                self.snapshot.templates[self._previous_adapter[0]],
                read_previous_rendering(self._previous_adapter[1]),
            )
            if rendering is not None:
                yield adapter, self._make_outcome(adapter, rendering, "stale", self.blocking_finding.message, self.snapshot.at)

    def _make_outcome(self, adapter: Document, rendering: AdapterRendering, state: str, reason: str, time: datetime) -> Outcome:
        previous = read_previous_rendering(self.snapshot.previous.get(adapter.key))
        cluster, replicas = rendering
        return Outcome(
            key=adapter.key,
            api="knative",
            state=state,
            policy="knative.cluster",
            group="",
            targets=(TargetCluster(cluster, replicas, edits=(("spec.replicas", replicas),)),),
            replicas=replicas,
            records=(),
            reason=reason,
            time=time,
            previous_targets=(TargetCluster(previous.cluster, previous.replicas),) if previous else (),
        )

    def inner_placements(self) -> Mapping[Key, InnerPlacement]:
        """Return the placements of the sources on pods."""
        if self.inputs is None or self.result is None:
            return {}
        inputs, adapter = self.inputs, self.inputs.adapter.key
        nodes = {make_pod_key(adapter, o).name: f"{NODE}/{read_node_name(pod)}" for o, pod in inputs.adapter_pods.pods.items()}
        return {
            document.key: InnerPlacement(
                inputs.scheduling_input.desired[name],
                {make_pod_key(adapter, ordinal).name: count for ordinal, count in sorted(self.result.placements[name].items())},
                nodes,
            )
            for name, document in inputs.sources.items()
        }

    def clusters(self) -> Mapping[str, ClusterInfo]:
        rendering = read_previous_rendering(self._previous_adapter[1]) if self._previous_adapter else None
        name = self.settings.cluster if self.result else rendering.cluster if rendering else ""
        return {name: ClusterInfo(name, {})} if name else {}

    def records(self) -> Iterable[tuple[Key, Body]]:
        return self._records

    def selects(self, template: Document) -> bool:
        return template.key in self.event_sources.quarantined or (
            self._previous_adapter is not None and template.key == self._previous_adapter[0]
        )

    def keep_previous(self, template: Document, why: str) -> Outcome | None:
        rendering = (
            read_previous_rendering(self._previous_adapter[1])
            if self._previous_adapter and template.key == self._previous_adapter[0]
            else None
        )
        return self._make_outcome(template, rendering, "stale", why, self.snapshot.at) if rendering else None

    def evaluate_own(self, kind: str, name: str, namespace: str, /) -> list[CandidateResult] | None:
        return evaluate_pods(self.inputs, self.result, kind, name, namespace) if self.inputs and self.result else None

    def explain(self, template: Document) -> Explanation | None:
        if self.inputs is None or self.result is None:
            return explain_previous(template, self._records, self.blocking_finding) if self.blocking_finding else None
        return explain_placements(self.inputs, self.result, template, self.findings)


def _copy_previous_records(keys: Iterable[Key], snapshot: Snapshot) -> Iterable[tuple[Key, Body]]:
    """Return the previous records of these keys, unchanged."""
    return ((key, record) for key in keys if (record := snapshot.previous.get(key)) is not None)
