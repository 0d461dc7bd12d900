"""Deliver changes in waves: clusters of later waves keep the files of the previous output until those before are healthy.

Decisions and records are those of the policy APIs; this concerns only what the directories of clusters have. What a policy takes away, and
what replaces it elsewhere, is delivered at once: overlaps, holds and the guard are for that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from gitsched.apis.gitsched.rollout import RolloutSpec, parse_rollout
from gitsched.apis.gitsched.tenancy import PLATFORM
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.plan_input import PlanInput
from gitsched.decide.registry import policy_apis
from gitsched.decide.rollouts.broken_rollouts import list_broken_rollouts, make_broken_finding
from gitsched.decide.rollouts.lost_clusters import read_cluster_states
from gitsched.decide.rollouts.rollout_findings import make_overlap_finding
from gitsched.decide.rollouts.rollout_source import RolloutSource
from gitsched.decide.rollouts.rollout_steps import RolloutMembers, RolloutSteps
from gitsched.decide.rollouts.workload_policies import WorkloadPolicies
from gitsched.decide.workload_files import WorkloadFiles
from gitsched.model.changes import CopyRetention, Move
from gitsched.model.cluster_report import CLUSTER_REPORT
from gitsched.model.document import Document, Key
from gitsched.model.finding import Finding
from gitsched.model.rollouts import ROLLOUT_KIND, RolloutInput, RolloutResult, RolloutTargets


class RolloutGate:
    """Holds files back while a plan is rendered; `result` has what came of it."""

    def __init__(
        self,
        source: PlanInput,
        given: RolloutInput,
        decisions: DecisionSet,
        moves: Iterable[Move],
        retention: CopyRetention,
    ) -> None:
        self.result = RolloutResult()
        self._decisions = decisions
        documents = decisions.catalog.api_documents
        self._specs = [parse_rollout(document) for document in documents.get(ROLLOUT_KIND, ())]
        if any(key[:2] == ROLLOUT_KIND for key in decisions.catalog.broken):
            self._specs += list_broken_rollouts(decisions.catalog)
        self._findings: list[Finding] = []
        self._steps = RolloutSteps(
            RolloutSource(
                given,
                source.previous,
                documents.get(CLUSTER_REPORT, ()),
                source.observations,
                source.source.config,
                source.times,
                read_cluster_states(decisions.engines),
                WorkloadPolicies(
                    decisions.engines,
                    decisions.templates,
                    decisions.variants,
                    source.source.config.delivery,
                    source.previous.find_blob,
                ),
                moves,
                retention,
                decisions.quarantined,
            )
        )

    def __call__(self, rendered: Mapping[Key, WorkloadFiles]) -> dict[Key, WorkloadFiles]:
        """Return the files with those of the previous output where a cluster waits."""
        files = dict(rendered)
        members = {name: _make_members([rendered[key] for key in keys]) for name, keys in self._select(rendered).items()}
        steps = self._steps.take(self._specs, members, files)
        for spec, step in steps:
            if spec.broken:
                tenancy = self._decisions.tenancy
                owner = tenancy.find_owner(spec.document.key) if tenancy is not None else PLATFORM
                self._findings.append(make_broken_finding(spec, step, owner))
        self.result = self._steps.summarize(steps, members, self._findings)
        return files

    def _select(self, rendered: Mapping[Key, WorkloadFiles]) -> dict[str, list[Key]]:
        """Return the workloads of each rollout: of several that select a workload, the first by name has it."""
        members: dict[str, list[Key]] = {spec.name: [] for spec in self._specs}
        policies = [self._list_policies(spec) for spec in self._specs]
        shared: dict[tuple[str, str], list[Key]] = {}
        tenancy = self._decisions.tenancy
        for key, files in rendered.items():
            template = self._decisions.templates[key]
            found = [
                spec
                for spec, names in zip(self._specs, policies, strict=True)
                if spec.selectors is None or spec.selects(template) or names.intersection(files.outcome.policy.split(", "))
            ]
            if tenancy is not None and found:
                found = [spec for spec in found if tenancy.may_act(spec.document.key, key)]
                found.sort(key=lambda spec: (spec.broken, tenancy.find_owner(spec.document.key) != PLATFORM))
            if found:
                members[found[0].name].append(key)
            for other in (spec for spec in found[1:] if not spec.broken):
                shared.setdefault((found[0].name, other.name), []).append(key)
        self._add_dependents(members, rendered)
        by_name = {spec.name: spec for spec in self._specs}
        self._findings += [make_overlap_finding(by_name[other], first, keys) for (first, other), keys in sorted(shared.items())]
        return members

    def _add_dependents(self, members: dict[str, list[Key]], rendered: Mapping[Key, WorkloadFiles]) -> None:
        """Add the objects that workloads bring along, such as their ConfigMaps, unless a rollout selects them themselves."""
        selected = {key for keys in members.values() for key in keys}
        owners = {
            (record.namespace, record.name): name
            for name, keys in members.items()
            for key in keys
            for record, _ in rendered[key].outcome.records
        }
        for key, files in rendered.items():
            outcome = files.outcome
            read = policy_apis[outcome.api].read_removed_workload
            if key in selected or read is None:
                continue
            found = [workload for _, body in outcome.records if (workload := read(body)) is not None]
            names = sorted(owners[owner] for workload in found for owner in workload.required_by & owners.keys())
            if names:
                members[names[0]].append(key)

    def _list_policies(self, spec: RolloutSpec) -> frozenset[str]:
        """Return the names, as outcomes have them, of the policies that a rollout selects."""
        wanted = {selector.kind for selector in spec.selectors or ()}
        documents: Iterator[Document] = (
            document
            for kind, found in self._decisions.catalog.api_documents.items()
            if kind[1] in wanted
            for document in found
            if spec.selects(document)
        )
        return frozenset(name for document in documents for name in (document.key.title, str(document.key)))


def _make_members(files: list[WorkloadFiles]) -> RolloutMembers:
    clusters = Counter(name for one in files for name in one.outcome.replicas_by_cluster)
    return RolloutMembers(files, RolloutTargets(len(files), clusters))
