"""Check what the workloads of tenants bring to clusters: which objects, where, and how much of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from gitsched.apis.gitsched.tenancy import PLATFORM, Tenancy
from gitsched.apis.gitsched.tenant import Tenant
from gitsched.apis.policy_api import GroupKind
from gitsched.apis.snapshot import Snapshot
from gitsched.decide.tenants.tenant_admission import Violation, check_object
from gitsched.decide.tenants.tenant_amounts import TenantUse, find_exceeded_limit, list_limited_owners, measure_outcome
from gitsched.decide.tenants.tenant_views import TenantClusters
from gitsched.decide.variants.bundle_delivery import find_bundle
from gitsched.model.document import Body, Document, Key, get_field, parse_api_group
from gitsched.model.finding import Finding, format_names, locate_document
from gitsched.model.scheduling import Outcome, TargetCluster
from gitsched.model.variants import BUNDLE_KIND, TemplateVariants
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import relative_path, status_path

FindTurn = Callable[[Key], tuple[object, ...]]
"""Returns when a workload is decided, as values that sort."""


class EnforcedRules(NamedTuple):
    """The outcomes after the rules of all Tenants; `kept` are those of workloads that keep what clusters have of them, `refused` those of
    workloads of which no cluster has anything."""

    outcomes: Mapping[Key, Outcome]
    kept: Mapping[Key, Outcome]
    findings: tuple[Finding, ...]
    refused: Mapping[Key, Outcome]


def enforce_rules(
    outcomes: Mapping[Key, Outcome],
    templates: Mapping[Key, Document],
    snapshot: Snapshot,
    documents: Mapping[GroupKind, tuple[Document, ...]],
    engine_records: Iterable[tuple[Key, Body]] = (),
    find_turn: FindTurn = lambda _: (),
    excess: Mapping[Key, Violation] = {},
) -> EnforcedRules:
    """Return the outcomes without what Tenants do not allow. A workload that breaks a rule keeps what clusters have of it already.

    `documents` are those of policy APIs, `engine_records` the records that belong to no workload: no workload of a tenant may replace one.
    Limits allow what does not grow first, then workloads in the order of their turns. `excess` are those which are known to exceed one.
    """
    tenancy = snapshot.tenancy
    assert tenancy is not None, "the source has tenants"
    checker = _RuleChecker(tenancy, TenantClusters(documents, tenancy), templates, snapshot)
    ranks = {owner: rank for rank, owner in enumerate((PLATFORM, *tenancy.paths.list_owners()))}
    held = {status_path(key): PLATFORM for key, _ in engine_records}
    checked = dict(outcomes)
    kept: dict[Key, Outcome] = {}
    refused: dict[Key, Outcome] = {}
    findings: list[Finding] = []
    uses: dict[str, TenantUse] = {}
    for key in sorted(outcomes, key=lambda key: (ranks.get(tenancy.find_owner(key), len(ranks)), *_rank(outcomes[key], find_turn))):
        owner, outcome = tenancy.find_owner(key), outcomes[key]
        objects = dict(_list_objects(outcome, templates[key], snapshot.variants))
        if owner != PLATFORM:
            violation = checker.check(owner, outcome, objects) or _find_shared_object(owner, outcome, objects, held, tenancy)
            outcome = checker.remove_forbidden(owner, outcome, findings)
            used = uses.setdefault(owner, TenantUse())
            measured = measure_outcome(outcome, templates[key], snapshot.variants, snapshot.config)
            violation = violation or excess.get(key) or find_exceeded_limit(key, used, measured, tenancy.list_rules(owner))
            if violation is not None:
                findings.append(_make_finding(templates[key], violation))
                outcome = _keep_previous(outcome, objects, owner, checker, violation, held)
                measured = measure_outcome(outcome, templates[key], snapshot.variants, snapshot.config)
                objects = {}
            used.add(measured)
            if not outcome.targets and violation is not None:
                del checked[key]
                refused[key] = outcome._replace(records=())
                continue
            if violation is not None:
                kept[key] = outcome
            checked[key] = outcome
        for path in (*objects, *_list_record_paths(outcome)):
            held.setdefault(path, owner)
    findings += checker.find_named_clusters(documents)
    return EnforcedRules(checked, kept, tuple(findings), refused)


def obeys_rules(outcomes: Mapping[Key, Outcome], templates: Mapping[Key, Document], snapshot: Snapshot, *, named: bool) -> bool:
    """Return whether Tenants allow all of some outcomes, whatever the amounts, and with `named` all clusters that policies name.

    No object may be one that another workload brings along.
    """
    tenancy = snapshot.tenancy
    assert tenancy is not None, "the source has tenants"
    checker = _RuleChecker(tenancy, TenantClusters(snapshot.documents, tenancy), templates, snapshot)
    if named and any(checker.find_named_clusters(snapshot.documents)):
        return False
    for key, outcome in outcomes.items():
        owner, objects = tenancy.find_owner(key), dict(_list_objects(outcome, templates[key], snapshot.variants))
        if owner == PLATFORM:
            continue
        if not all(checker.keep_target(owner, target) for target in outcome.targets):
            return False
        if checker.check(owner, outcome, objects) or _find_shared_object(owner, outcome, objects, {}, tenancy):
            return False
    return True


def find_excess(
    outcomes: Mapping[Key, Outcome],
    templates: Mapping[Key, Document],
    snapshot: Snapshot,
    find_turn: FindTurn,
    stopped: Collection[Key],
) -> dict[Key, Violation]:
    """Return the workloads that exceed a limit of their Tenant with those before them, and that are not `stopped` already."""
    tenancy, uses, found = snapshot.tenancy, dict[str, TenantUse](), dict[Key, Violation]()
    assert tenancy is not None, "the source has tenants"
    limited = list_limited_owners(tenancy)
    own = [key for key in outcomes if tenancy.find_owner(key) in limited] if limited else []
    for key in sorted(own, key=lambda key: _rank(outcomes[key], find_turn)):
        used = uses.setdefault(tenancy.find_owner(key), TenantUse())
        measured = measure_outcome(outcomes[key], templates[key], snapshot.variants, snapshot.config)
        violation = find_exceeded_limit(key, used, measured, tenancy.list_rules(tenancy.find_owner(key)))
        if violation is not None and key not in stopped and _is_growing(outcomes[key]):
            found[key] = violation
        else:
            used.add(measured)
    return found


def _rank(outcome: Outcome, find_turn: FindTurn) -> tuple[object, ...]:
    """Order workloads for limits: those that do not grow, then by their turns, those that were placed before and new ones."""
    if not _is_growing(outcome):
        return (0, (), 0, outcome.key)
    return (1, find_turn(outcome.key), 0 if outcome.previous_targets else 1, outcome.key)


def _is_growing(outcome: Outcome) -> bool:
    before = sum(target.replicas or 0 for target in outcome.previous_targets)
    now = sum(target.replicas or 0 for target in outcome.targets)
    return now > before or len(outcome.targets) > len(outcome.previous_targets)


def _list_objects(outcome: Outcome, template: Document, variants: TemplateVariants) -> Iterator[tuple[str, tuple[Key, Document]]]:
    """Yield the objects that a workload brings to clusters, by their path: itself, its parts, and the objects of its Bundles."""
    if outcome.manifests is None and template.key[:2] != BUNDLE_KIND:
        yield relative_path(template.key), (template.key, template)
    for key, body in outcome.manifests or ():
        if key[:2] != BUNDLE_KIND:
            yield relative_path(key), (key, Document(key, str(body.get("apiVersion") or ""), body, template.origin))
    for bundle in outcome.bundles:
        found = variants.get(bundle)
        for variant in found.variants if found is not None else ():
            for document in variant.objects:
                yield relative_path(document.key), (document.key, document)


def _list_record_paths(outcome: Outcome) -> list[str]:
    return [status_path(key) for key, _ in outcome.records]


def _find_shared_object(
    owner: str, outcome: Outcome, objects: Mapping[str, tuple[Key, Document]], held: Mapping[str, str], tenancy: Tenancy
) -> Violation | None:
    for tenant in tenancy.list_rules(owner):
        foreign = next((key for key, _ in outcome.records if key.namespace and not tenant.allows_namespace(key.namespace)), None)
        if foreign is not None:
            message = f"{outcome.key} to follow a decision in the namespace {foreign.namespace}"
            return Violation("tenant-namespace", tenant, message, "use a policy in one of its namespaces", "spec.namespaces")
    for path in _list_record_paths(outcome):
        if held.get(path, owner) != owner:
            message = f"{outcome.key}: its record {path} is that of another workload"
            return Violation("tenant-identity", tenancy.list_rules(owner)[0], message, "use another name")
    for path, (key, _) in objects.items():
        holder = held.get(path, owner)
        if holder != owner:
            whose = f"Tenant {holder}" if holder else "the platform"
            message = f"{key}, which a workload of {whose} brings along and which stays in force"
            return Violation("tenant-identity", tenancy.list_rules(owner)[0], message, "use another name")
    return None


class _RuleChecker:
    """Checks outcomes of tenants."""

    def __init__(self, tenancy: Tenancy, clusters: TenantClusters, templates: Mapping[Key, Document], snapshot: Snapshot) -> None:
        self._tenancy, self._clusters, self._templates, self._snapshot = tenancy, clusters, templates, snapshot

    def check(self, owner: str, outcome: Outcome, objects: Mapping[str, tuple[Key, Document]]) -> Violation | None:
        """Return the first rule that the objects of a workload break, as they are in the source and as clusters get them."""
        rules = self._tenancy.list_rules(owner)
        for bundle in outcome.bundles:
            template = self._templates[outcome.key]
            body = find_bundle(template, outcome, bundle)
            found = check_object(bundle, template._replace(body=body), rules)
            if found is not None:
                return found
        for key, document in objects.values():
            found = check_object(key, document, rules)
            if found is not None:
                return found
            problem = _find_changed_identity(key, document.body)
            if problem:
                return _refuse_identity(rules[0], key, problem)
        for target in outcome.targets:
            for key, body in _list_bodies(outcome.key, target):
                problem = _find_changed_identity(key, body)
                if problem:
                    return _refuse_identity(rules[0], key, f"{problem} in {target.cluster}")
        return None

    def remove_forbidden(self, owner: str, outcome: Outcome, findings: list[Finding]) -> Outcome:
        """Return an outcome without clusters that the owner may not use, with a finding about these."""
        forbidding = {
            target.cluster: tenant
            for target in outcome.targets
            if (tenant := self._clusters.find_forbidding(owner, target.cluster)) is not None
        }
        if not forbidding:
            return outcome
        template, (first, tenant) = self._templates[outcome.key], next(iter(forbidding.items()))
        message = f"{outcome.key} in {format_names(list(forbidding))}"
        cure = f"add {first} to spec.clusters, or choose other clusters"
        findings.append(_make_finding(template, Violation("tenant-cluster", tenant, message, cure, "spec.clusters")))
        return outcome._replace(targets=tuple(target for target in outcome.targets if target.cluster not in forbidding))

    def keep_target(self, owner: str, target: TargetCluster) -> bool:
        """Return whether what a cluster has may stay there."""
        return self._clusters.find_forbidding(owner, target.cluster) is None

    def list_rules(self, owner: str) -> tuple[Tenant, ...]:
        """Return the Tenants of an owner."""
        return self._tenancy.list_rules(owner)

    def find_previous(self, key: Key) -> Body | None:
        """Return a record of the previous output."""
        return self._snapshot.previous.get(key)

    def find_named_clusters(self, by_kind: Mapping[GroupKind, tuple[Document, ...]]) -> Iterator[Finding]:
        """Yield a finding for each policy of a tenant that names a cluster which its Tenant does not allow."""
        for documents in by_kind.values():
            for document in documents:
                owner = self._tenancy.find_owner(document.key)
                if owner == PLATFORM:
                    continue
                texts = set(_list_texts(document.body.get("spec")))
                named = [
                    (name, tenant)
                    for name in sorted(texts & self._clusters.platform.keys())
                    if (tenant := self._clusters.find_forbidding(owner, name)) is not None
                ]
                if named:
                    message = f"the clusters that {document.key} names: {format_names([name for name, _ in named])}"
                    cure = "they count as if they did not exist; remove them, or add them to spec.clusters"
                    yield _make_finding(document, Violation("tenant-cluster", named[0][1], message, cure, "spec.clusters"))


def _list_texts(value: object) -> Iterator[str]:
    rest = [value]
    while rest:
        entry = rest.pop()
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, dict):
            rest += entry.values()
        elif isinstance(entry, list):
            rest += entry


def _list_bodies(key: Key, target: TargetCluster) -> Iterator[tuple[Key, Body]]:
    """Yield the objects that a cluster gets in another form than the source has them."""
    if target.body is not None:
        yield target.workload or key, target.body
    yield from target.bodies


def _find_changed_identity(key: Key, body: Body) -> str:
    """Return which part of the identity of an object differs in its body; "" if it is that of the key."""
    group, kind = parse_api_group(str(body.get("apiVersion") or body.get("api") or "")), str(body.get("kind") or "")
    name, namespace = str(get_field(body, "metadata", "name") or ""), str(get_field(body, "metadata", "namespace") or "")
    if (group, kind) != key[:2]:
        return f"its kind becomes {kind}.{group}" if group else f"its kind becomes {kind}"
    if name != key.name:
        return f"its name becomes {name}"
    if key.namespace and namespace and namespace != key.namespace:
        return f"its namespace becomes {namespace}"
    return ""


def _refuse_identity(tenant: Tenant, key: Key, problem: str) -> Violation:
    cure = "change the policy that overrides it: an override must not change kind, name or namespace"
    return Violation("tenant-identity", tenant, f"the overrides of {key}: {problem}", cure)


def _keep_previous(
    outcome: Outcome,
    objects: Mapping[str, tuple[Key, Document]],
    owner: str,
    checker: _RuleChecker,
    violation: Violation,
    held: Mapping[str, str],
) -> Outcome:
    """Return the outcome of a workload that breaks a rule: what clusters have of it stays as it is, and nothing else is placed.

    Paths that another owner has (`held`) do not stay.
    """
    rules = checker.list_rules(owner)
    targets = tuple(
        target._replace(keeps_manifest=True, body=None, bodies=(), edits=())
        for target in outcome.previous_targets
        if checker.keep_target(owner, target)
    )
    allowed = [key for key, document in objects.values() if check_object(key, document, rules) is None]
    previous = [key for key in outcome.previous_objects if all(tenant.allows_namespace(key.namespace) for tenant in rules)]
    kept = [key for key in dict.fromkeys((*previous, *allowed)) if held.get(relative_path(key), owner) == owner]
    kept_paths = {
        cluster: tuple(path for path in paths if held.get(path, owner) == owner) for cluster, paths in outcome.kept_paths.items()
    }
    records = tuple((key, body) for key, _ in outcome.records if (body := checker.find_previous(key)) is not None)
    return outcome._replace(
        state="stale",
        targets=targets,
        records=records,
        reason=f"{'kept: ' if targets else ''}{violation.tenant.title} does not allow it as it is now",
        manifests=None if outcome.manifests is None else (),
        previous_objects=() if outcome.manifests is None else tuple(kept),
        kept_paths=kept_paths,
        wakeup=None,
    )


def _make_finding(document: Document, violation: Violation) -> Finding:
    return Finding("error", violation.code, violation.text, locate_document(document), document.key.resource)
