"""Objects that no cluster gets because of the compared change: a workload for which no cluster fits, and what no policy selects."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import NearSelecting
from gitsched.apis.gitsched.output_config import BUILT_IN_NAMESPACES
from gitsched.apis.policy_api import PolicyEngine
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.pod_amounts import runs_pods
from gitsched.decide.unread_annotations import list_selecting_annotations
from gitsched.decide.workload_explanation import describe_near_selections
from gitsched.model.changes import Cause, UnplacedObject
from gitsched.model.document import Document, Key, workload_sort_key
from gitsched.model.finding import UNSCHEDULABLE, format_names, locate_document, locate_field
from gitsched.model.scheduling import Outcome
from gitsched.model.variants import TemplateVariants
from gitsched.reconcile.source.source_locations import RuleLocations, locate_causes

if TYPE_CHECKING:
    from gitsched.diff.document_changes import DocumentChanges

MAX_DESCRIBED = 200
"""The number of objects that are compared with the selectors of policies."""
_NAMESPACE = ("", "Namespace")
"""A kind that clusters get without a policy: with what they need it for."""


def list_unplaced(keys: Iterable[Key], before: Mapping[Key, Outcome], after: Mapping[Key, Outcome]) -> Iterator[UnplacedObject]:
    """Yield the workloads for which no cluster fits, besides those that had one, and those for which none fitted."""
    for key in sorted(keys, key=workload_sort_key):
        outcome, earlier = after.get(key), before.get(key)
        if outcome is None or outcome.state != "pending" or outcome.replicas == 0:
            continue
        if earlier is None or not (earlier.state == "pending" or earlier.replicas_by_cluster):
            problems = [finding for finding in outcome.findings if finding.severity != "info"]
            problem = next((one for one in problems if one.code == UNSCHEDULABLE), problems[0] if problems else None)
            message = problem.message if problem is not None else outcome.reason
            reason = message.partition(": ")[2] or message or "no cluster fits"  # without the name of the workload
            text = f"{outcome.policy}: {reason}" if outcome.policy and outcome.policy not in reason else reason
            yield UnplacedObject(key, True, Cause(text, problem.location if problem is not None else None))


def may_be_unselected(key: Key, before: Mapping[Key, Outcome], known: Container[Key]) -> bool:
    """Return whether an object is new, or was selected and unplaced; `known` are those of the base. What was placed moves, and others were
    read by an API, like the pods of event sources."""
    earlier = before.get(key)
    return key not in known if earlier is None else not earlier.replicas_by_cluster


def list_unselected_workloads(decisions: DecisionSet, locations: RuleLocations) -> tuple[UnplacedObject, ...]:
    """Return the objects with pods that no policy selects, those first of which a policy selects all but one property, each with the line
    of that property. Flux and Argo CD themselves are left out: each cluster has them before it applies what is placed."""
    if decisions.input is None:
        return ()
    templates, config = decisions.catalog.templates, decisions.input.config
    documents = (templates[key] for key in decisions.list_unclaimed())
    found = [one for one in documents if runs_pods(one, config)]
    annotations = list_selecting_annotations(decisions.engines)
    unnamed = f"it has no annotation {format_names(annotations)}, which names its policy" if annotations else ""
    others = any(isinstance(engine, NearSelecting) for engine in decisions.engines)
    why = ", and ".join(filter(None, ["no policy has a similar selector" if others or not unnamed else "", unnamed]))
    tools = config.output.protected_namespaces - BUILT_IN_NAMESPACES
    keys = (one.key for one in found if one.key.namespace not in tools)
    unselected = _list_unselected(found, dict.fromkeys(keys, why), decisions.engines)
    return locate_unplaced(unselected, locations)


def locate_unplaced(objects: Iterable[UnplacedObject], locations: RuleLocations) -> tuple[UnplacedObject, ...]:
    """Return objects that no cluster gets, each with the line of the field that is to blame."""
    return tuple(one._replace(cause=locate_causes([one.cause], locations)[0]) for one in objects)


def list_unselected(
    documents: Iterable[Document], added: Collection[Key], engines: Iterable[PolicyEngine]
) -> Iterator[UnplacedObject]:
    """Yield objects that no policy selects, those first of which a policy selects all but one property. `added` are new in the source, the
    others were selected."""
    found = [one for one in documents if one.key[:2] != _NAMESPACE]
    why = {one.key: "added to the source" if one.key in added else "no longer selected by a policy" for one in found}
    return _list_unselected(found, why, engines)


def list_added(changes: DocumentChanges, unclaimed: Container[Key], engines: Iterable[PolicyEngine]) -> Iterator[UnplacedObject]:
    """Yield the new objects that no policy selects. `unclaimed` are those that no API claims."""
    changed = ((key, change.after) for key, change in changes.by_key.items() if change.before is None)
    added = {key: document for key, document in changed if document is not None and key in unclaimed}
    yield from list_unselected(omit_built(added.values(), changes.before.variants), added, engines)


def omit_built(documents: Iterable[Document], variants: TemplateVariants) -> list[Document]:
    """Return the documents without those of files that Bundles were built of: these files are not new, and what was built of them stays
    while a Bundle cannot be built."""
    found = list(documents)
    sources = (one.source for variant in variants.values() for one in variant.variants) if found else ()
    files = frozenset(path for source in sources if source is not None for path in source.files)
    return [one for one in found if one.origin is None or one.origin.path not in files]


def _list_unselected(
    documents: Iterable[Document], reasons: Mapping[Key, str], engines: Iterable[PolicyEngine]
) -> Iterator[UnplacedObject]:
    """Yield objects that no policy selects, those first of which a policy selects all but one property; `reasons` are for the others, of
    which one without a reason is left out."""
    found = sorted(documents, key=lambda document: workload_sort_key(document.key))
    nearest = describe_near_selections(engines, found[:MAX_DESCRIBED]) if found else {}
    for document in sorted(found, key=lambda document: document.key not in nearest):
        near, location = nearest.get(document.key), locate_document(document)
        if near is not None:
            field = locate_field(document.origin, near.field)
            yield UnplacedObject(document.key, False, Cause(near.text, location, field))
        elif document.key in reasons:
            yield UnplacedObject(document.key, False, Cause(reasons[document.key], location))
