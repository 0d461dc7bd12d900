"""Decisions of Karmada as queries: an experiment that measures what recorded reads cost, with the code of the engine.

`RecordedState` takes the place of the engine's state. What it reads of policies, clusters and records goes through the database. What it
does not have cannot be read, so that no read is missed. It has no overrides, evictions, dependencies, autoscalers, rebalancers, holds and
variants.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from gitsched.apis.karmada import names
from gitsched.apis.karmada.autoscalers import NO_AUTOSCALERS
from gitsched.apis.karmada.binding.binding_decision import decide_binding
from gitsched.apis.karmada.binding.resource_binding import SharedParts, binding_key, read_claim, read_previous
from gitsched.apis.karmada.cluster.candidates import ClusterReadings, read_clusters
from gitsched.apis.karmada.cluster.taints import NO_TAINT_POLICIES
from gitsched.apis.karmada.overrides.override_policy import NO_OVERRIDES
from gitsched.apis.karmada.policy.propagation_policy import (
    KnownPlacements,
    PolicyIndex,
    PropagationPolicy,
    is_skipped,
    parse_policy,
)
from gitsched.apis.karmada.reschedule_triggers import NO_TRIGGERS
from gitsched.apis.karmada.settings import SETTINGS, KarmadaConfig
from gitsched.apis.karmada.state import KarmadaState
from gitsched.apis.snapshot import EMPTY_SNAPSHOT, Snapshot
from gitsched.model.document import Body, Document, Key, read_annotations
from gitsched.model.finding import FieldOrigin, Finding, Location
from gitsched.model.labels import Requirement, Selector
from gitsched.model.scheduling import (
    Affinity,
    AffinityGroup,
    Assignment,
    Decision,
    Outcome,
    Request,
    SpreadConstraint,
    StaticWeight,
    TargetCluster,
)
from gitsched.model.taints import NO_EXECUTE, Taint, Toleration
from gitsched.query import Codec, Query, Relation, Schema, Step, digest_value
from gitsched.query import Key as QueryKey
from gitsched.query.reader import Reader
from gitsched.schedule import pipeline
from gitsched.schedule.estimator import Capacity, ModelGrade
from gitsched.schedule.fleet import Candidate, Fleet, find_feasible

MOMENT = datetime(2026, 1, 12, 9, tzinfo=UTC)
"""The time of all runs: a decision that is made again keeps the times of its record."""
_UNUSUAL_FIELDS = frozenset(("gracefulEvictionTasks", "requiredBy", "rescheduleTriggeredAt", "suspension"))
_PARTS, _PLACEMENTS = SharedParts(), KnownPlacements()


class BoundCluster(NamedTuple):
    """What decisions read of one cluster, without what only filters read; whether it passes those of a question."""

    candidate: Candidate
    allocatable: Capacity | None
    passes: bool = False


class Question(NamedTuple):
    """What filters and the order of candidates depend on: workloads that are alike in this share an answer."""

    group: AffinityGroup
    division: Any
    tolerations: tuple[Toleration, ...]
    required_api: tuple[str, str] | None
    required_fields: tuple[str, ...]
    evicted: tuple[str, ...]
    previous: tuple[str, ...]
    weights: tuple[StaticWeight, ...]

    def make_request(self) -> Request:
        return Request(
            "",
            0,
            self.division,
            (self.group,),
            tolerations=self.tolerations,
            required_api=self.required_api,
            required_fields=self.required_fields,
            evicted=self.evicted,
            previous=tuple(map(Assignment, self.previous)),
            weights=self.weights,
        )

    def list_label_keys(self) -> frozenset[str]:
        """Return the labels that the order of candidates depends on, after the filters."""
        affinities = [weight.affinity for weight in self.weights]
        affinities += (self.group.affinity, *self.group.overflow) if self.group.overflow and self.group.affinity else ()
        return frozenset(one.key for affinity in affinities if affinity.labels for one in affinity.labels.requirements)


class _AnsweredFleet(NamedTuple):
    """The fleet that an answer has, as far as a decision reads it."""

    fleet: Fleet
    passing: int
    allocatable: Mapping[str, Capacity]


CODEC = Codec(
    (
        *(Affinity, AffinityGroup, Assignment, BoundCluster, Candidate, Capacity, FieldOrigin, Finding, Key, Location, ModelGrade),
        *(Outcome, Question, Requirement, Selector, SpreadConstraint, StaticWeight, Taint, TargetCluster, Toleration),
    )
)


def read_cluster(db: Reader, key: QueryKey) -> object:
    document = db.input("cluster", key)
    read = read_clusters((document,), (), {}, True, MOMENT, NO_TAINT_POLICIES, False, ClusterReadings())
    (candidate,) = read.fleet.candidates
    if read.unready or any(taint.effect == NO_EXECUTE for taint in candidate.taints):
        raise NotImplementedError("evictions")
    db.emit("clusters", ("", *key))
    return BoundCluster(candidate, read.allocatable.get(candidate.name))


def find_fleet(db: Reader, _: QueryKey) -> _AnsweredFleet:
    return _make_fleet(tuple(db.read("cluster-facts", one) for one in db.rows_of("clusters", ("",))))


def summarize_fleet(db: Reader, _: QueryKey) -> object:
    fleet = db.read("fleet", ()).fleet
    return bool(fleet.names), fleet.has_capacity


def find_bound(db: Reader, key: QueryKey) -> BoundCluster | None:
    found = db.read("cluster-facts", key)
    return None if found is None else found._replace(candidate=_forget(found.candidate, frozenset()))


def find_answer(db: Reader, key: QueryKey) -> object:
    """Return the clusters that pass the filters, and those where the workload is."""
    question, (fleet, _, allocatable) = read_question(key), db.read("fleet", ())
    request, labels = question.make_request(), question.list_label_keys()
    mask = find_feasible(request, question.group, fleet)
    return tuple(
        BoundCluster(_forget(fleet.candidates[index], labels), allocatable.get(fleet.names[index]), bool(mask >> index & 1))
        for index in fleet.members(mask | fleet.mask(question.previous))
    )


def describe_no_fit(db: Reader, key: QueryKey) -> str:
    question = read_question(key)
    return pipeline.describe_no_fit(question.make_request(), question.group, db.read("fleet", ()).fleet)


def make_question(request: Request, group: AffinityGroup) -> Question:
    return Question(
        group,
        request.division,
        request.tolerations,
        request.required_api,
        request.required_fields,
        request.evicted,
        tuple(sorted(one.name for one in request.previous)),
        request.weights,
    )


@lru_cache(maxsize=1 << 12)
def write_question(question: Question) -> QueryKey:
    return (CODEC.encode(question).decode("latin-1"),)


def read_question(key: QueryKey) -> Question:
    return cast("Question", CODEC.decode(key[0].encode("latin-1")))


def _forget(candidate: Candidate, labels: frozenset[str]) -> Candidate:
    kept = {name: value for name, value in candidate.labels.items() if name in labels}
    return candidate._replace(labels=kept, taints=(), enabled_apis=None)


def _make_fleet(clusters: tuple[BoundCluster, ...]) -> _AnsweredFleet:
    fleet = Fleet(one.candidate for one in clusters)
    allocatable = {one.candidate.name: one.allocatable for one in clusters if one.allocatable is not None}
    return _AnsweredFleet(fleet, fleet.mask(one.candidate.name for one in clusters if one.passes), allocatable)


class _KnownFleets:
    """The fleets of the last answers: a bounded cache of a pure function."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[tuple[BoundCluster, ...], _AnsweredFleet]] = {}

    def find(self, clusters: tuple[BoundCluster, ...]) -> _AnsweredFleet:
        found = self._known.get(id(clusters))
        if found is None or found[0] is not clusters:
            if len(self._known) >= 2_000:
                self._known.clear()
            found = self._known[id(clusters)] = clusters, _make_fleet(clusters)
        return found[1]


_FLEETS, _NO_FLEET = _KnownFleets(), _make_fleet(())


def read_rules(db: Reader, key: QueryKey) -> object:
    """Return what of a policy selects workloads."""
    document = db.input("policy", key)
    spec = document.body["spec"]
    for selector in spec.get("resourceSelectors") or ():
        db.emit("rules", (document.key.namespace, str(selector.get("apiVersion")), str(selector.get("kind")), *key))
    return {name: spec[name] for name in ("resourceSelectors", "priority", "preemption") if name in spec}


def index_rules(db: Reader, key: QueryKey) -> PolicyIndex:
    policies = []
    for row in db.rows_of("rules", key):
        body = {"metadata": {"name": row[3]}, "spec": db.read("policy-rules", row)}
        policies.append(parse_policy(Document(Key(*row), names.POLICY_GROUP, body), _PLACEMENTS))
    return PolicyIndex(policies)


def read_placement(db: Reader, key: QueryKey) -> object:
    """Return a policy without what only selects."""
    document = db.input("policy", key)
    selecting = ("resourceSelectors", "priority", "preemption")
    spec = {name: value for name, value in document.body["spec"].items() if name not in selecting}
    metadata = {name: value for name, value in document.body.get("metadata", {}).items() if name in ("labels", "name", "namespace")}
    return [document.api_version, {**document.body, "metadata": metadata, "spec": {"resourceSelectors": [], **spec}}]


def parse_placement(db: Reader, key: QueryKey) -> PropagationPolicy:
    api_version, body = db.read("policy-placement", key)
    return parse_policy(Document(Key(*key), api_version, body), _PLACEMENTS)


def describe_template(db: Reader, key: QueryKey) -> object:
    """Return what selectors read of a template."""
    template = db.input("template", key)
    return [template.api_version, (template.body.get("metadata") or {}).get("labels") or {}]


def match(db: Reader, key: QueryKey) -> tuple[QueryKey | None, tuple[QueryKey, ...]]:
    """Return the policy of a workload without a claim, and all that select it."""
    api_version, labels = db.read("selectable", key)
    template = Document(Key(*key), api_version, {"metadata": {"labels": labels}})
    selecting: dict[QueryKey, None] = {}
    if not is_skipped(template.key):
        for scope in (template.key.namespace, "") if template.key.namespace else ("",):
            index = db.read("rules-of-kind", (scope, api_version, template.key.kind))
            if index.policies:
                selecting |= dict.fromkeys(tuple(rule.policy.key) for rule in index.list_matching_rules(template))
    return next(iter(selecting), None), tuple(selecting)


class RecordedState(KarmadaState):
    """The state of a commit as the decision about one workload reads it."""

    __slots__ = ("_db", "_key", "policy", "question")

    def __init__(self, db: Reader, key: QueryKey, record: Body | None) -> None:
        self._db, self._key = db, key
        self.policy: PropagationPolicy | None = None
        self.question: Question | None = None
        self.settings, self.snapshot = db.read("settings", ())
        self.parts, self.declared_paths = _PARTS, {}
        self.reschedule_triggers, self.autoscalers, self.overrides = NO_TRIGGERS, NO_AUTOSCALERS, NO_OVERRIDES
        self.other_clusters, self.unready_clusters = {}, {}
        self._may_evict, self._failover, self._reported_bindings = False, None, []
        self.has_dependencies = self.has_followers = False
        db.read("fleet-summary", ())
        names_before = read_previous(record).clusters if record is not None else ()
        bound = (db.read("bound-cluster", (one.name,)) for one in names_before)
        self._use(_make_fleet(tuple(one for one in bound if one is not None)) if names_before else _NO_FLEET)
        self.leaving_clusters = frozenset(one.name for one in self.fleet.candidates if one.deleting)

    def find_policy(self, template: Document, record: Body | None = None) -> tuple[PropagationPolicy | None, Key | None]:
        found, selecting = self._db.read("match", self._key)
        annotations = read_annotations(record or template.body)
        claim = read_claim(annotations) if annotations else None
        if claim is not None:
            claim = claim._replace(namespace=template.key.namespace) if claim.kind == names.POLICY else claim
            found = tuple(claim) if tuple(claim) in selecting else found
        self.policy = self._db.read("placement", found) if found is not None else None
        return self.policy, claim

    def schedule(self, request: Request) -> Decision:
        first: tuple[Decision, AffinityGroup] | None = None
        for group in request.groups[request.first_group :]:
            self.question = make_question(request, group)
            answered = _FLEETS.find(self._db.read("answer", write_question(self.question)))
            self._use(answered)
            decision = pipeline.schedule_among(request, group, answered.fleet, answered.passing)
            if decision.status == "scheduled":
                return decision
            first = first or (decision, group)
        if first is None:
            return Decision("error", (), "", "no cluster group to try")
        decision, group = first
        if decision.status != "no-fit":
            return decision
        return decision._replace(message=self._db.read("no-fit", write_question(make_question(request, group))))

    def _use(self, answered: _AnsweredFleet) -> None:
        self.fleet = answered.fleet
        self.inventory = SimpleNamespace(allocatable=answered.allocatable)  # type: ignore[assignment]


def read_settings(db: Reader, key: QueryKey) -> tuple[KarmadaConfig, Snapshot]:
    config = db.input("config", key)
    return config.settings_of(SETTINGS), EMPTY_SNAPSHOT._replace(config=config, at=MOMENT, now=MOMENT)


def decide(db: Reader, key: QueryKey) -> object:
    """Return what a plan stores of an outcome, with a digest of the binding."""
    template = db.input("template", key)
    record = db.input("record", tuple(binding_key(template.key)))
    state = RecordedState(db, key, record)
    outcome = decide_binding(state, None, template, record, None)
    if outcome is None:
        return None
    binding = digest_value(outcome.records[0][1]) if outcome.records else b""
    if binding and _is_repeated(db, state, outcome):
        db.expect("record", tuple(outcome.records[0][0]), binding)
    return summarize(outcome, binding)


def summarize(outcome: Outcome, binding: bytes) -> object:
    return (
        *(outcome.state, outcome.policy, outcome.group, outcome.replicas, outcome.reason, binding),
        [(one.cluster, one.replicas) for one in outcome.targets],
        [CODEC.encode(finding) for finding in outcome.findings],
    )


def _is_repeated(db: Reader, state: RecordedState, outcome: Outcome) -> bool:
    """Return whether deciding a workload again with its new binding certainly changes nothing, after reading all that this would read."""
    body = outcome.records[0][1]
    spec, conditions = body["spec"], body["status"].get("conditions", ())
    policy, question = state.policy, state.question
    if policy is None or outcome.findings or outcome.trigger or outcome.released or outcome.absent or outcome.wakeup:
        return False
    if not _UNUSUAL_FIELDS.isdisjoint(spec) or [one.get("reason") for one in conditions] != ["Success"]:
        return False
    applied = body["metadata"]["annotations"].get(names.APPLIED_PLACEMENT_ANNOTATION)
    if policy.is_lazy or policy.has_prerequisites or policy.key.title != outcome.policy or applied != policy.applied_placement:
        return False
    placement, clusters = policy.placement, [one["name"] for one in spec.get("clusters", [])]
    group = placement.groups[placement.find_group_index(outcome.group)]
    bound = [db.read("bound-cluster", (name,)) for name in clusters]
    if group.name != outcome.group or any(one is None or one.candidate.deleting for one in bound):
        return False
    if (spec.get("replicas") or "replicaRequirements" in spec) and placement.is_divided:
        return sum(one.get("replicas", 0) for one in spec.get("clusters", [])) == (spec.get("replicas") or 0)
    if question is None or question.group != group or placement.spreads or group.overflow:
        return False
    answer = db.read("answer", write_question(question._replace(previous=tuple(sorted(clusters)))))
    return {one.candidate.name for one in answer if one.passes} == set(clusters)


SCHEMA = Schema(
    ["cluster", "config", "policy", "record", "template"],
    [
        Step(
            "documents",
            (
                Query("cluster-facts", read_cluster, each="cluster"),
                Query("policy-rules", read_rules, each="policy"),
                Query("policy-placement", read_placement),
                Query("settings", read_settings, stored=False),
                Query("selectable", describe_template, each="template"),
            ),
            (Relation("clusters"), Relation("rules", 3)),
        ),
        Step(
            "indexes",
            (
                Query("fleet", find_fleet, stored=False),
                Query("rules-of-kind", index_rules, stored=False),
                Query("placement", parse_placement, stored=False),
            ),
        ),
        Step(
            "questions",
            (
                Query("fleet-summary", summarize_fleet),
                Query("bound-cluster", find_bound),
                Query("answer", find_answer),
                Query("no-fit", describe_no_fit),
                Query("match", match, each="template"),
            ),
        ),
        Step("decisions", (Query("decision", decide, each="template"),)),
    ],
    CODEC,
)
