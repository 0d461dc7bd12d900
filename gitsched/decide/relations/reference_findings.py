"""Describe what delivered manifests refer to and what does not go to their clusters, as findings with the cure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import DependencyDelivering
from gitsched.model.document import Document, Key
from gitsched.model.finding import Finding, Location, locate_document

if TYPE_CHECKING:
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.relations.delivered_objects import DeliveredObjects
    from gitsched.decide.relations.missing_references import MissingReference
    from gitsched.model.scheduling import Outcome

MAX_FINDINGS = 200
"""Missing objects that have a finding each; one more finding counts the others."""
MAX_NAMES = 5
"""Clusters or objects that one message names."""

NOT_IN_SOURCE = "reference-not-in-source"
NOT_DELIVERED = "reference-not-delivered"
NEEDED_KINDS = frozenset({"ConfigMap", "PersistentVolumeClaim", "Role", "Service", "ServiceAccount"})
"""Kinds that clusters do not have by themselves; others are often made by an operator or together with the cluster."""

_IMPLIED = frozenset({"ClusterRoleBinding", "CustomResourceDefinition", "RoleBinding"})
"""Kinds that objects require without a field that names them."""

LocatedFinding = tuple[Key | None, Finding]
"""A finding, and the workload at whose document it is located."""


def list_reference_findings(
    missing: Iterable[MissingReference], decisions: DecisionSet, delivered: DeliveredObjects
) -> Iterator[LocatedFinding]:
    """Yield a finding for each missing object, and one for all objects of a kind that clusters often have by themselves."""
    reported = [one for one in missing if one.reported]
    alone = [one for one in reported if one.in_source or one.key.kind in NEEDED_KINDS]
    by_kind: dict[tuple[str, str], list[MissingReference]] = {}
    for one in reported:
        if not one.in_source and one.key.kind not in NEEDED_KINDS:
            by_kind.setdefault(one.key[:2], []).append(one)
    for one in alone[:MAX_FINDINGS]:
        yield _find_located(one, decisions, delivered), _make_finding(one, decisions, delivered)
    if len(alone) > MAX_FINDINGS:
        message = (
            f"{len(alone) - MAX_FINDINGS} more objects are referred to in clusters that they do not go to; `gitsched explain` shows them "
            "by workload"
        )
        yield None, Finding("warning", NOT_DELIVERED, message)
    for group in by_kind.values():
        location = _find_location(group[0], decisions, delivered)
        yield _find_located(group[0], decisions, delivered), make_unknown_finding(group[:MAX_NAMES], len(group), location)


def make_unknown_finding(missing: list[MissingReference], count: int, location: Location | None) -> Finding:
    """Return the finding for a number of objects of one kind that are not in the source, given the first ones."""
    first = missing[0]
    them = "them" if count > 1 else "it"
    hint = (
        f"commit what creates {them}, or list {them} under `assumed` in gitsched.yaml if these clusters have {them} by themselves"
    )
    if count == 1:
        message = f"{first.key} is not in the source, and {_describe_users(first)} in {_describe_clusters(first)}; {hint}"
        return Finding("info", NOT_IN_SOURCE, message, location, first.key.resource)
    names = join_names(
        [f"{one.key} (in {_describe_clusters(one)}, for {join_names(list(map(str, one.referrers)), 1)})" for one in missing],
        count=count,
    )
    message = f"{count} objects of kind {first.key.kind} that delivered objects refer to are not in the source: {names}; {hint}"
    return Finding("info", NOT_IN_SOURCE, message, location, first.key.resource)


def make_absent_finding(missing: MissingReference, location: Location | None) -> Finding:
    """Return the finding for an object that is not in the source, of a kind that clusters do not have by themselves."""
    message = (
        f"{missing.key} is not in the source, and {_describe_users(missing)} in {_describe_clusters(missing)}; commit it, or list it under "
        "`assumed` in gitsched.yaml if these clusters have it by themselves"
    )
    return Finding("warning", NOT_IN_SOURCE, message, location, missing.key.resource)


def _describe_users(missing: MissingReference) -> str:
    parts, single = missing.parts, len(missing.referrers) == 1
    referrers = [f"{parts[key].key} of {key}" if key in parts else str(key) for key in missing.referrers]
    verb = "needs" if single else "need"
    if missing.key.kind not in _IMPLIED:
        verb = "refers to" if single else "refer to"
    return f"{join_names(referrers)} {verb} it"


def _describe_clusters(missing: MissingReference) -> str:
    return join_names(sorted(missing.reported))


def _make_finding(missing: MissingReference, decisions: DecisionSet, delivered: DeliveredObjects) -> Finding:
    key, users, where = missing.key, _describe_users(missing), _describe_clusters(missing)
    location = _find_location(missing, decisions, delivered)
    if not missing.in_source:
        return make_absent_finding(missing, location)
    source = missing.maker if missing.maker is not None and key not in decisions.catalog.templates else key
    made = f", which writes {key}," if source is not key else ""
    cures = ["list these clusters in its policy" if source in delivered.clusters else "select it with a policy"]
    if delivered.owners.get(source):
        cures = ["add it to what goes to these clusters"]
    cures += [*_list_delivery_options(missing, decisions), "list it under `assumed` in gitsched.yaml"]
    message = (
        f"{source}{made} does not go to {where}, where {users}: {describe_placement(source, decisions, delivered)}; "
        f"{', '.join(cures[:-1])}, or {cures[-1]} if these clusters have it by themselves"
    )
    return Finding("warning", NOT_DELIVERED, message, location, key.resource)


def _list_delivery_options(missing: MissingReference, decisions: DecisionSet) -> list[str]:
    """Return the settings of the referrers' policies that deliver the object together with them."""
    engines = [engine for engine in decisions.engines if isinstance(engine, DependencyDelivering)]
    for referrer in missing.referrers[:MAX_NAMES]:
        template = decisions.templates.get(referrer)
        options = [engine.describe_delivery(template, missing.key) for engine in engines] if template is not None else []
        if any(options):
            return [option for option in options if option]
    return []


def describe_placement(key: Key, decisions: DecisionSet, delivered: DeliveredObjects) -> str:
    """Say where the policies place an object of the source."""
    catalog, outcome = decisions.catalog, decisions.outcomes.get(key)
    owners = delivered.owners.get(key, ())
    if owners:
        return f"it is part of {join_names(list(map(str, owners)))}, which goes to {join_names(sorted(delivered.clusters[key]))}"
    if key in catalog.duplicate_templates:
        return "it is defined more than once"
    if key not in catalog.templates:
        return decisions.kustomized.get(key) or ("its document is broken" if key in catalog.broken else "no cluster gets it")
    if outcome is None:
        return "a Tenant does not allow it" if key in decisions.refused else "no policy selects it"
    return describe_outcome(outcome)


def describe_outcome(outcome: Outcome) -> str:
    """Say where a policy places a workload."""
    clusters = sorted(target.cluster for target in outcome.targets)
    return f"{outcome.policy or 'its policy'} places it on {join_names(clusters) if clusters else 'no cluster'}"


def join_names(names: list[str], limit: int = MAX_NAMES, count: int = 0) -> str:
    """Return the first names as text, with the number of all others. `count` is that of all names where only the first are given."""
    if max(count, len(names)) > limit:
        return f"{', '.join(names[:limit])} and {max(count, len(names)) - limit} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _find_located(missing: MissingReference, decisions: DecisionSet, delivered: DeliveredObjects) -> Key | None:
    """Return the first object that refers to a missing one and that has a document, or else the first workload that contains such an
    object, as a Bundle does."""
    owners = (owner for key in missing.referrers for owner in delivered.owners.get(key, ()))
    return next((key for key in (*missing.referrers, *owners) if _locate(key, decisions) is not None), None)


def _find_location(missing: MissingReference, decisions: DecisionSet, delivered: DeliveredObjects) -> Location | None:
    """Return the location of the first object that refers to a missing one: in the base, for a part that is built."""
    located = _find_located(missing, decisions, delivered)
    if located is None:
        return None
    part = missing.parts.get(located)
    if part is None and located not in missing.referrers:
        part = _find_part(missing.referrers[0], located, decisions)
    return locate_document(part) if part is not None and part.origin is not None else _locate(located, decisions)


def _find_part(key: Key, owner: Key, decisions: DecisionSet) -> Document | None:
    """Return an object of the Bundles of a workload."""
    bundles = (decisions.variants[bundle] for bundle in decisions.outcomes[owner].bundles if bundle in decisions.variants)
    objects = (document for bundle in bundles for variant in bundle.variants for document in variant.objects)
    return next((document for document in objects if document.key == key), None)


def _locate(key: Key, decisions: DecisionSet) -> Location | None:
    template = decisions.templates.get(key)
    return locate_document(template) if template is not None else None
