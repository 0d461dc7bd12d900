"""Decide which documents of tenants count: those that the Tenants of their paths allow, and that define no object of another owner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from gitsched.apis.gitsched.config import GROUP as CONFIG_GROUP
from gitsched.apis.gitsched.config import KindScope
from gitsched.apis.gitsched.tenancy import PLATFORM, Tenancy, TenantPaths
from gitsched.apis.gitsched.tenant import Tenant
from gitsched.apis.topology import list_cluster_kinds
from gitsched.decide.catalog import DEFINITION_KINDS, KindScopes, KustomizedDocument, RawDocument, read_declared_scopes
from gitsched.decide.registry import reserved_groups
from gitsched.kinds.table import is_namespaced as is_namespaced_by_table
from gitsched.model.delivery import DELIVERING_KINDS
from gitsched.model.document import Document, Key, find_priority_class, get_field, is_namespaced, is_unread_kind, parse_api_group
from gitsched.model.finding import FieldOrigin, Finding, Pointer, locate_origin
from gitsched.model.tenants import TENANT, TENANT_KIND
from gitsched.model.tool_groups import ARGO_GROUP, KUSTOMIZE_GROUP, OTHER_DELIVERY_GROUPS, TOOL_GROUPS
from gitsched.model.variants import BUNDLE_KIND, MANIFESTS
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import relative_path

_OWN_KINDS: Final = frozenset(("Bundle", "Rollout"))
"""Kinds of gitsched's own API group that a tenant may define; all others count for clusters or for all tenants."""
_FLUX_SUFFIX: Final = ".toolkit.fluxcd.io"
_DELIVERY_KINDS: Final = {
    "flux": ((KUSTOMIZE_GROUP, "Kustomization"), ("helm.toolkit.fluxcd.io", "HelmRelease")),
    "argocd": ((ARGO_GROUP, "Application"),),
}
"""The kinds that deliver Bundles, by spec.delivery."""
_DOCUMENT_CODES: Final = ("tenant-kind", "tenant-namespace")
_PRIORITY: Final = "tenant-priority"
_ARGO_KINDS: Final = frozenset(("Application", "ApplicationSet", "AppProject"))


class OwnedDocument(NamedTuple):
    """A document of a source with the Tenants whose rules count for it, the owner first; () for the platform."""

    document: RawDocument
    rules: tuple[Tenant, ...] = ()

    @property
    def owner(self) -> str:
        """The name of the Tenant that owns it; "" for the platform."""
        return self.rules[0].name if self.rules else PLATFORM


class Violation(NamedTuple):
    """A rule that an object breaks: the code of the finding, what the Tenant does not allow, what to do, and the field of the Tenant that
    has the rule, as a dotted path: without a rule of its own, that which makes the object one of the tenant. `pointer` is the field of the
    object that breaks it; () if it is the whole object."""

    code: str
    tenant: Tenant
    message: str
    cure: str
    field: str = "spec.paths"
    pointer: Pointer = ()

    @property
    def text(self) -> str:
        """The message of a finding."""
        return f"{self.tenant.describe_rule(self.field)} does not allow {self.message}; {self.cure}"


class Admission(NamedTuple):
    """The documents that count, in the order of the source, the owner of each object of a tenant, and findings about the others."""

    documents: tuple[RawDocument, ...]
    tenancy: Tenancy
    findings: tuple[Finding, ...]
    parts: tuple[KustomizedDocument, ...] = ()


def admit(
    documents: Sequence[OwnedDocument],
    parts: Iterable[tuple[KustomizedDocument, tuple[Tenant, ...]]],
    kinds: Iterable[KindScope],
    paths: TenantPaths,
) -> Admission:
    """Return the documents that count. `parts` are documents that kustomizations change, `kinds` the scopes that settings declare.

    An object that several owners define belongs to the platform, else to the Tenant of the highest precedence, else to the first by name.
    A policy whose priority its Tenant does not allow counts as broken, so that its workloads stay where they are.
    """
    scopes = _TenantScopes([owned.document for owned in documents if not owned.rules], kinds)
    findings: list[Finding] = []
    admitted: dict[int, RawDocument] = {}
    for owned in documents:
        if not owned.rules or owned.document.kind not in DEFINITION_KINDS:
            continue
        problem = scopes.declare(owned)
        if problem is not None:
            findings.append(_make_finding(owned.document, problem))
    order = {owner: rank for rank, owner in enumerate((PLATFORM, *paths.list_owners()))}
    holders: dict[str, tuple[str, RawDocument]] = {}
    owners: dict[Key, str] = {}
    refused = {id(finding_document) for finding_document in scopes.refused}
    by_owner = sorted(range(len(documents)), key=lambda index: order.get(documents[index].owner, len(order)))
    for index in by_owner:
        owned = documents[index]
        if id(owned.document) in refused:
            continue
        key = scopes.resolve(owned)
        violation = find_violation(owned.document, key, owned.rules)
        if violation is None or violation.code == _PRIORITY:
            holder, first = holders.setdefault(relative_path(key), (owned.owner, owned.document))
            if holder != owned.owner:
                violation = _make_conflict(owned, key, holder, first)
            else:
                admitted[index] = owned.document if violation is None else owned.document._replace(broken=True)
                if owned.rules:
                    owners[key] = owned.owner
        if violation is not None:
            findings.append(_make_finding(owned.document, violation))
    kept = tuple(admitted[index] for index in sorted(admitted))
    found = tuple(_admit_parts(parts, scopes, holders, owners))
    return Admission(kept, Tenancy(paths, owners), tuple(findings), found)


def _admit_parts(
    parts: Iterable[tuple[KustomizedDocument, tuple[Tenant, ...]]],
    scopes: _TenantScopes,
    holders: Mapping[str, tuple[str, RawDocument]],
    owners: dict[Key, str],
) -> Iterator[KustomizedDocument]:
    """Yield the parts of kustomizations that their owners may define, and record their owners."""
    for part, rules in parts:
        if rules:
            owned = OwnedDocument(part.document, rules)
            key = scopes.resolve(owned)
            if find_violation(part.document, key, rules) is not None:
                continue
            holder = holders.get(relative_path(key))
            if holder is not None and holder[0] != owned.owner:
                continue
            owners.setdefault(key, owned.owner)
        yield part


def is_about_one_document(finding: Finding) -> bool:
    """Return whether a finding says that a Tenant refuses a document, whatever else the source has: what the document is does not depend
    on others, and nothing else does on a document that does not count."""
    kind = finding.resource[0] if finding.resource is not None else TENANT
    return finding.code in _DOCUMENT_CODES and finding.location is not None and kind not in (*DEFINITION_KINDS, TENANT)


class _TenantScopes:
    """The scope of each kind. Documents of tenants use what Kubernetes, definitions, settings and the table of kinds declare: they decide
    nothing about a kind by using a namespace."""

    def __init__(self, platform: list[RawDocument], kinds: Iterable[KindScope]) -> None:
        declared = list(kinds)
        self._known = {(parse_api_group(kind.api_version), kind.kind): kind.namespaced for kind in declared}
        for document in platform:
            if document.kind in DEFINITION_KINDS and not document.broken:
                self._add(document)
        self._platform = KindScopes(platform, declared)
        self._used = {(document.group, document.kind) for document in platform}
        self.refused: list[RawDocument] = []

    def _add(self, document: RawDocument) -> None:
        for scope in read_declared_scopes(document):
            self._known[parse_api_group(scope.api_version), scope.kind] = scope.namespaced

    def declare(self, owned: OwnedDocument) -> Violation | None:
        """Add the kinds that a definition of a tenant declares; return why it may not declare them."""
        document = owned.document
        key = self.resolve(owned)
        if find_violation(document, key, owned.rules) is not None:
            return None  # refused as any other object
        group, plural = get_field(document.body, "spec", "group"), get_field(document.body, "spec", "names", "plural")
        declared = list(read_declared_scopes(document))
        kinds = {(parse_api_group(scope.api_version), scope.kind) for scope in declared}
        if document.name == f"{plural}.{group}" and not any(self._is_used(kind) for kind in kinds):
            self._add(document)
            return None
        self.refused.append(document)
        message = f"{key} to declare the kind {', '.join(sorted(kind for _, kind in kinds)) or 'it names'}"
        cure = "its name must be PLURAL.GROUP, and neither the platform nor another definition may use or declare the kind"
        return Violation("tenant-kind", owned.rules[0], message, cure)

    def _is_used(self, kind: tuple[str, str]) -> bool:
        return kind in self._known or kind in self._used or is_namespaced(*kind) is not None

    def resolve(self, owned: OwnedDocument) -> Key:
        """Return the identity of a document; one of a tenant whose scope nothing declares counts as cluster-scoped."""
        document = owned.document
        if not owned.rules:
            return self._platform.resolve(document).key
        namespaced = self.find_scope(document.group, document.kind)
        namespace = (document.namespace or "default") if namespaced else ""
        return Key(document.group, document.kind, namespace, document.name)

    def find_scope(self, group: str, kind: str) -> bool | None:
        """Return whether a kind is namespaced; None if nothing declares it."""
        namespaced = is_namespaced(group, kind)
        if namespaced is None:
            namespaced = self._known.get((group, kind))
        return is_namespaced_by_table(group, kind) if namespaced is None else namespaced


def find_violation(document: RawDocument, key: Key, rules: Iterable[Tenant]) -> Violation | None:
    """Return the first rule that an object breaks; None if all Tenants allow it."""
    for tenant in rules:
        found = _check_object(document, key, tenant) or _check_priority(document, key, tenant)
        if found is not None:
            return Violation(found.code, tenant, found.subject, found.cure, found.field, found.pointer)
    return None


class _Refusal(NamedTuple):
    """What a Tenant does not allow, the cure, the field that says so, and the field of the object that is about."""

    code: str
    subject: str
    cure: str
    field: str = "spec.paths"
    pointer: Pointer = ()


def _check_object(document: RawDocument, key: Key, tenant: Tenant) -> _Refusal | None:
    """Return what a Tenant does not allow; None if it allows an object."""
    group, kind = key.group, key.kind
    if tenant.closed:
        return _Refusal("tenant-closed", f"anything: {tenant.closed}", "correct the Tenant", "")
    if kind.endswith("List") and isinstance(document.body.get("items"), list):
        return _Refusal("tenant-kind", f"{key}, which stands for other objects", "write its items as objects of their own")
    if (group, kind) == TENANT_KIND:
        return _Refusal("tenant-kind", f"{key} in {_name_path(document)}", "define Tenants outside of the paths of all tenants")
    if group == CONFIG_GROUP and kind not in _OWN_KINDS:
        return _Refusal("tenant-kind", f"{key}: documents of this kind count for all tenants", "let the platform define it")
    policy = group in reserved_groups and not is_unread_kind(group, kind) and (group, kind) != BUNDLE_KIND
    if not key.namespace:
        if tenant.allows_cluster_object(group, kind, key.name):
            return None
        if policy and tenant.policies == "Cluster" and (group, kind) not in list_cluster_kinds():
            return None
        declared = is_namespaced(group, kind) is False
        cure = (
            "name the kind and the object in spec.clusterKinds"
            if declared or not document.namespace
            else "nothing declares that its kind is namespaced: add the kind to `spec.kinds` in gitsched.yaml, or its definition"
        )
        return _Refusal("tenant-kind", f"the cluster-scoped {key}", f"{cure}, or remove the document", "spec.clusterKinds")
    if not tenant.allows_namespace(key.namespace):
        names = ", ".join(tenant.namespaces) or "none"
        cure = "use one of these, or add it to spec.namespaces"
        return _Refusal("tenant-namespace", f"{key}: its namespaces are {names}", cure, "spec.namespaces")
    if policy and tenant.policies == "None":
        return _Refusal(
            "tenant-kind", f"policies, such as {key}", "set spec.policies, or let the platform define it", "spec.policies"
        )
    if policy and (group, kind) not in list_cluster_kinds():
        denied = tenant.find_denied(group, kind)
        if denied is None:
            return None
        cure = "remove it from spec.kinds.deny, or remove the document"
        return _Refusal("tenant-kind", f"the kind of {key}", cure, f"spec.kinds.deny.{denied}")
    delivery = get_field(document.body, "spec", "delivery") if (group, kind) == BUNDLE_KIND else None
    if delivery not in (None, MANIFESTS) and not _may_deliver(tenant, str(delivery)):
        names = ", ".join(f"{kind}.{group}" for group, kind in _DELIVERY_KINDS.get(str(delivery), ()))
        return _Refusal(
            "tenant-kind",
            f"the delivery of {key} by {delivery}",
            f"name {names} in spec.kinds.allow, or use delivery: manifests",
            "spec.kinds.allow",
        )
    special = is_delivering(group, kind) or (group, kind) in list_cluster_kinds()
    if tenant.allows_kind(group, kind, special):
        return None
    denied = tenant.find_denied(group, kind)
    if denied is None:
        cure, field = "name it in spec.kinds.allow, or remove the document", "spec.kinds.allow"
    else:
        cure, field = "remove it from spec.kinds.deny, or remove the document", f"spec.kinds.deny.{denied}"
    return _Refusal("tenant-kind", f"the kind of {key}", cure, field)


def _check_priority(document: RawDocument, key: Key, tenant: Tenant) -> _Refusal | None:
    """Return the PriorityClass of a policy if a Tenant does not allow it."""
    pointer = find_priority_class(key.group, key.kind)
    name = get_field(document.body, *pointer) if pointer else None
    if not isinstance(name, str) or not name or tenant.allows_priority_class(name):
        return None
    names = ", ".join(tenant.priority_classes) or "none"
    subject = f"PriorityClass {name} in {'.'.join(pointer[:-1])} of {key}: its PriorityClasses are {names}"
    cure = "workloads of this policy stay where they are, and new ones wait; name another class or none, or add it to spec.priorityClasses"
    return _Refusal(_PRIORITY, subject, cure, "spec.priorityClasses", pointer)


def _may_deliver(tenant: Tenant, delivery: str) -> bool:
    """Return whether a delivery tool may build Bundles of a tenant: with the rights of the tool, and in ways that depend on the cluster."""
    kinds = _DELIVERY_KINDS.get(delivery, ())
    return bool(kinds) and all(tenant.allows_kind(*kind, delivers=True) for kind in kinds)


def is_delivering(group: str, kind: str) -> bool:
    """Return whether objects of a kind make a delivery tool apply others."""
    if group == ARGO_GROUP:
        return kind in _ARGO_KINDS
    return group.endswith(_FLUX_SUFFIX) or group in TOOL_GROUPS or group in OTHER_DELIVERY_GROUPS or kind in DELIVERING_KINDS


def _make_conflict(owned: OwnedDocument, key: Key, holder: str, first: RawDocument) -> Violation:
    where = f" ({locate_origin(first.origin).path}:{first.origin.line})" if first.origin is not None else ""
    whose = f"Tenant {holder}" if holder else "the platform"
    message = f"{key}, which {whose} defines{where} and which stays in force"
    return Violation(
        "tenant-identity", owned.rules[0], message, "use another name, or remove one of the documents", "spec.precedence"
    )


def _make_finding(document: RawDocument, violation: Violation) -> Finding:
    origin, resource = document.origin, (document.kind, document.namespace, document.name)
    location, field = (locate_origin(origin), FieldOrigin(origin, violation.pointer)) if origin is not None else (None, None)
    return Finding("error", violation.code, violation.text, location, resource, field if violation.pointer else None)


def _name_path(document: RawDocument) -> str:
    return document.origin.path if document.origin is not None else "its path"


def check_object(body_key: Key, document: Document, rules: Iterable[Tenant]) -> Violation | None:
    """Return the first rule that an object breaks which a workload brings to a cluster; it has no document of its own."""
    raw = RawDocument(document.body, document.origin, False, document.api_version, *body_key)
    return find_violation(raw, body_key, rules)
