"""Knative's PolicyEngine: one run for each StatefulSet that runs vreplicas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gitsched.apis.capabilities import Continuation, InnerPlacement, SnapshotChanges
from gitsched.apis.continuation import is_plain
from gitsched.apis.knative.adapter_run import AdapterRun
from gitsched.apis.knative.adapters import assign_sources, find_undeclared_kinds, find_vreplica_paths
from gitsched.apis.knative.consumer_wishes import HPA_KIND, SCALED_OBJECT_KIND, find_scaled_source
from gitsched.apis.knative.continuation import can_select_inputs, select_inputs, update_inputs
from gitsched.apis.knative.documents import read_event_sources
from gitsched.apis.knative.findings import report_missing_settings
from gitsched.apis.knative.names import DESCHEDULER, SCHEDULER, SOURCE_REPLICAS, read_ordinal
from gitsched.apis.knative.settings import SETTINGS
from gitsched.apis.policy_api import PolicyEngine
from gitsched.apis.snapshot import EMPTY_SNAPSHOT, Snapshot, list_previous_records
from gitsched.model.document import Body, Document, Key, read_annotations
from gitsched.model.explanation import Explanation
from gitsched.model.finding import Finding
from gitsched.model.planned_files import ClusterInfo
from gitsched.model.scheduling import CandidateResult, Outcome

_INPUT_KINDS = frozenset((("", "Pod"), ("", "Node"), ("", "ConfigMap"), ("apps", "StatefulSet"), HPA_KIND, SCALED_OBJECT_KIND))


class KnativeEngine(PolicyEngine):
    """Implementation of `gitsched.apis.policy_api.PolicyEngine` for Knative; the constructor makes all decisions."""

    name = "knative"
    decides_templates = False
    _clusters: Mapping[str, ClusterInfo] = {}
    _referenced: tuple[Key, ...] = ()

    def __init__(self, snapshot: Snapshot, inputs: Mapping[Key, Document] | None = None) -> None:
        """Make all decisions. `inputs` are the templates on which they depend, if these are known: no other template is read then."""
        self._inputs = inputs
        self._schedule(snapshot)

    def _schedule(self, snapshot: Snapshot) -> None:
        """Make all decisions, whatever was decided before."""
        inputs, self._is_stored, self._templates = self._inputs, False, snapshot.templates
        if inputs is not None:
            snapshot = snapshot._replace(templates=inputs, input_order=tuple(inputs))
        self.snapshot = snapshot
        self._paths = find_vreplica_paths(snapshot)
        sources = read_event_sources(snapshot, self._paths)
        findings: list[Finding] = [*sources.findings, *find_undeclared_kinds(snapshot, self._paths)]
        runs: list[AdapterRun] = []
        if _is_configured(snapshot):
            taken: frozenset[Key] = frozenset()
            for assigned in assign_sources(snapshot, sources):
                run = AdapterRun(assigned.snapshot, assigned.settings, assigned.sources, taken)
                runs.append(run)
                taken |= {run.adapter} if run.adapter is not None else set()
        else:
            findings = list(report_missing_settings(snapshot, [document for document, _ in sources.valid.values()]))
        self._runs = tuple(runs)
        self.findings = (*findings, *(finding for run in runs for finding in run.findings))
        self.wakeup = min((run.wakeup for run in runs if run.wakeup is not None), default=None)
        self.time = max((run.time for run in runs if run.time is not None), default=None)

    def keep_outcomes(self, kept: Mapping[Key, Outcome], /) -> frozenset[Key]:
        """Keep the placements of all sources whose StatefulSet keeps its cluster and its replicas: their pods are those of its record."""
        for run in self._runs:
            if run.adapter in kept:
                run.keep_records()
        self.time = max((run.time for run in self._runs if run.time is not None), default=None)
        return frozenset()

    def update(self, snapshot: Snapshot) -> bool:
        """Continue with a new snapshot if none of the inputs changed, because one changed source may move the others."""
        previous = self.snapshot
        if self.wakeup is not None and self.wakeup <= snapshot.now:
            return False
        if self._inputs is not None:
            return self._decide_again(snapshot)
        kinds = self._paths.keys() | _INPUT_KINDS
        read = [key for key in snapshot.templates if key[:2] in kinds or key.group.endswith("knative.dev")]
        unchanged = all(snapshot.templates[key] is previous.templates.get(key) for key in read) and not any(
            key[:2] in kinds for key in snapshot.duplicate_templates
        )
        records = dict(self.records())
        if not unchanged or any(snapshot.previous.get(key) is not previous.previous.get(key) for key in (*read, *records)):
            return False
        self.snapshot = snapshot
        for run in self._runs:
            run.snapshot = snapshot
        return True

    def __getstate__(self) -> dict[str, object]:
        """Return what is stored: the templates to decide from again, and what is compared with the next engine."""
        stored = ("findings", "wakeup", "time")
        known = {"_inputs": self._read_inputs(), "_clusters": self.clusters(), "_referenced": tuple(self.referenced_keys())}
        return {name: getattr(self, name) for name in stored} | known | {"_is_stored": True}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        self.__dict__.update(state, snapshot=EMPTY_SNAPSHOT)

    def continue_with(self, snapshot: Snapshot, changes: SnapshotChanges, /) -> Continuation | None:
        """Place the vreplicas of all sources again, which reads only changed templates. No other workload depends on it."""
        if not is_plain(snapshot) or snapshot.part_kinds or not can_select_inputs(snapshot.config):
            return None
        inputs = update_inputs(self._read_inputs(), changes.templates, snapshot.config)
        return Continuation(KnativeEngine(snapshot, inputs), frozenset())

    def _decide_again(self, snapshot: Snapshot) -> bool:
        """Continue with other times and records; return False if templates may differ, or if records could be different ones."""
        if self._is_stored or snapshot.templates is not self._templates or any(True for _ in self.records()):
            return False
        self._schedule(snapshot)
        return True

    def _read_inputs(self) -> Mapping[Key, Document]:
        return select_inputs(self.snapshot.templates, self.snapshot.config) if self._inputs is None else self._inputs

    def own_workloads(self) -> Iterator[tuple[Document, Outcome]]:
        return (entry for run in self._runs for entry in run.own_workloads())

    def inner_placements(self) -> Mapping[Key, InnerPlacement]:
        """Return the placements of the sources on pods."""
        return {key: placement for run in self._runs for key, placement in run.inner_placements().items()}

    def clusters(self) -> Mapping[str, ClusterInfo]:
        if self._is_stored:
            return self._clusters
        return {name: cluster for run in self._runs for name, cluster in run.clusters().items()}

    def records(self) -> Iterable[tuple[Key, Body]]:
        return (record for run in self._runs for record in run.records())

    def referenced_keys(self) -> Iterator[Key]:
        """Yield the Nodes, the Pods of the StatefulSets, the ConfigMaps of both schedulers, and the autoscalers of the sources."""
        if self._is_stored:
            yield from self._referenced
            return
        adapters = [run.adapter for run in self._runs if run.adapter is not None]
        for key, document in self.snapshot.templates.items():
            match key:
                case Key("", "Node"):
                    yield key
                case Key("", "Pod", namespace, name):
                    if any(namespace == adapter.namespace and read_ordinal(name, adapter.name) is not None for adapter in adapters):
                        yield key
                case Key("", "ConfigMap", _, name) if name in (SCHEDULER, DESCHEDULER):
                    yield key
                case Key(group, kind) if (group, kind) in (HPA_KIND, SCALED_OBJECT_KIND):
                    source = find_scaled_source(document)
                    if source is not None and source[:2] in self._paths:
                        yield key

    def list_inputs(self) -> Iterable[Key]:
        return self._read_inputs()

    def decide(self, _template: Document) -> Outcome | None:
        return None

    def selects(self, template: Document) -> bool:
        return any(run.selects(template) for run in self._runs)

    def keep_previous(self, template: Document, why: str) -> Outcome | None:
        return next((kept for run in self._runs if (kept := run.keep_previous(template, why)) is not None), None)

    def evaluate_candidates(self, _template: Document) -> list[CandidateResult]:
        return []

    def evaluate_own(self, kind: str, name: str, namespace: str, /) -> list[CandidateResult] | None:
        return next((found for run in self._runs if (found := run.evaluate_own(kind, name, namespace)) is not None), None)

    def explain(self, template: Document) -> Explanation | None:
        return next((found for run in self._runs if (found := run.explain(template)) is not None), None)


def _is_configured(snapshot: Snapshot) -> bool:
    """Return whether vreplicas are to be scheduled: there are settings, a policy, or records of an earlier run."""
    if SETTINGS.name in snapshot.config.api_settings:
        return True
    if any(key[:2] == ("", "ConfigMap") and key.name == SCHEDULER for key in (*snapshot.templates, *snapshot.quarantined)):
        return True
    records = list_previous_records(snapshot.previous, "apps", "StatefulSet")
    return any(SOURCE_REPLICAS in read_annotations(body) for _, body in records)
