"""What would bring a workload to a cluster that its Placement does not choose: the next obstacle, and the smallest change against it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gitsched.apis.ocm import names
from gitsched.apis.ocm.evaluation import Evaluation
from gitsched.apis.ocm.placement import ADD_ON, Mistake
from gitsched.apis.world import Edit
from gitsched.model.document import Body, Document, Key, member
from gitsched.model.explanation import Change
from gitsched.model.finding import Pointer, Rule
from gitsched.model.request import Affinity
from gitsched.schedule.choose import Choice, Choosing, tolerated_until
from gitsched.schedule.fleet import Candidate

_BEST = 100
"""The most that an AddOnPlacementScore may say."""

if TYPE_CHECKING:  # the session calls this module
    from gitsched.apis.ocm.session import OcmSession


def propose(session: OcmSession, found: Evaluation, cluster: str) -> Edit | None:
    """The next change that would bring a Placement nearer to a cluster; None where nobody knows one."""
    index = session.fleet.index.get(cluster)
    document = next((d for d in session.world.documents.get((names.GROUP, names.CLUSTER), ()) if d.key.name == cluster), None)
    if index is None or document is None:
        return None
    if session.fleet.candidates[index].leaving:
        return _say("it were not being deleted", document, ("metadata", "deletionTimestamp"))
    if not found.offer.available >> index & 1:
        return _enter(session, found, index)
    if found.request is None or found.choice is None:
        return _say("the Placement were mended", found.placement.document, ("spec",))
    if not found.choice.left[0] >> index & 1:
        return _match(session, found, document)
    if not found.choice.left[1] >> index & 1:
        return _tolerate(session, found, found.request, index)
    if index in found.choice.chosen:
        return _say("the clusters before it had reported success", found.placement.document, ())
    return _outdo(session, found.request, found.choice, index) or _enlarge(found, found.request, found.choice, index)


def _enter(session: OcmSession, found: Evaluation, index: int) -> Edit | None:
    """Into what the Placement may choose from: by its list of sets, a binding, or a set that has the cluster."""
    holding = session.sets.holding(index)
    placement = found.placement
    bound = [name for name in holding if name in found.offer.bound]
    if bound:
        sets = [*placement.sets, bound[0]]
        return _on(placement.document, f"clusterSets named {bound[0]}", ("spec", "clusterSets"), sets)
    if not holding and found.offer.eligible:
        candidate = session.fleet.candidates[index]
        document = next(d for d in session.world.documents[names.GROUP, names.CLUSTER] if d.key.name == candidate.name)
        group = found.offer.eligible[0]
        return _on(
            document, f"it were in the cluster set {group}", ("metadata", "labels"), {**candidate.labels, names.SET_LABEL: group}
        )
    if not holding:
        return None
    name, namespace = holding[0], placement.key.namespace
    body: Body = {
        "apiVersion": f"{names.GROUP}/{names.VERSIONS[names.GROUP, names.BINDING]}",
        "kind": names.BINDING,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterSet": name},
    }
    key = placement.key._replace(kind=names.BINDING, name=name)
    text = f"a ManagedClusterSetBinding bound the namespace {namespace} to {name}"
    return Edit(Change(text), Document(key, str(body["apiVersion"]), body))


def _match(session: OcmSession, found: Evaluation, document: Document) -> Edit | None:
    """A label or a claim that the first predicate wants; expressions are beyond what can be changed for it."""
    predicates = found.placement.predicates
    affinity = None if isinstance(predicates, Mistake) or not predicates else predicates[0].affinity
    labels = dict(session.fleet.candidates[session.fleet.index[document.key.name]].labels)
    for requirement in affinity.labels.requirements if affinity is not None and affinity.labels else ():
        if not requirement.matches(labels):
            pointer = ("metadata", "labels")
            if requirement.operator in ("NotIn", "DoesNotExist"):
                rest = {key: value for key, value in labels.items() if key != requirement.key}
                return _on(document, f"it had no label {requirement.key}={labels[requirement.key]}", pointer, rest)
            value = requirement.values[0] if requirement.values else "true"
            return _on(document, f"its label {requirement.key} were {value}", pointer, {**labels, requirement.key: value})
    claimed = _claim(document, session.fleet.candidates[session.fleet.index[document.key.name]], affinity) if affinity else None
    return claimed or _say("it met the expressions of the predicate", found.placement.document, ("spec", "predicates"))


def _claim(document: Document, candidate: Candidate, affinity: Affinity) -> Edit | None:
    """A claim that the predicate wants."""
    claims = {name: values[0] for name, values in candidate.fields.items() if values}
    wanted = next((asked for asked in affinity.fields if not asked.matches(claims)), None)
    if wanted is None:
        return None
    rest = {name: value for name, value in claims.items() if name != wanted.key}
    if wanted.operator in ("NotIn", "DoesNotExist"):
        text = f"it did not claim {wanted.key}={claims[wanted.key]}"
    else:
        rest[wanted.key] = wanted.values[0] if wanted.values else "true"
        text = f"it claimed {wanted.key}={rest[wanted.key]}"
    return _on(document, text, ("status", "clusterClaims"), [{"name": name, "value": value} for name, value in rest.items()])


def _outdo(session: OcmSession, request: Choosing, choice: Choice, index: int) -> Edit | None:
    """The least value of an add-on's score with which it is among the best."""
    if request.spreads or not request.number:
        return None
    ranking = sorted(zip(choice.totals, choice.members, strict=True), key=lambda entry: (-entry[0], entry[1]))
    edge, rival = ranking[min(request.number, len(ranking)) - 1]
    at = choice.members.index(index)
    need = edge - choice.totals[at] + (index > rival)
    for term, column in zip(request.terms, choice.columns, strict=True):
        api, _, rest = term.score.name.partition("/")
        if api != ADD_ON or term.weight <= 0:
            continue
        resource, _, score = rest.partition("/")
        value = column[at] - (-need // term.weight)
        key = Key(names.GROUP, names.SCORE, session.fleet.names[index], resource)
        entry = next((d for d in session.world.documents.get((names.GROUP, names.SCORE), ()) if d.key == key), None)
        if value <= _BEST and entry is not None:
            written = member(entry.body, "status", "scores") or ()
            scores = [{**s, "value": value} if s.get("name") == score else s for s in written]
            return _on(entry, f"its score {resource}/{score} were {value} instead of {column[at]}", ("status", "scores"), scores)
    return None


def _tolerate(session: OcmSession, found: Evaluation, request: Choosing, index: int) -> Edit | None:
    for taint in session.fleet.candidates[index].taints:
        end = tolerated_until(taint, request.tolerations, request.moment)
        if taint.effect not in request.effects.ignored and (end is None or end <= request.moment):
            entry = {"key": taint.key, "effect": taint.effect}
            entry |= {"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}
            pointer = ("spec", "tolerations")
            written = found.placement.spec.get("tolerations") or ()
            return _on(found.placement.document, f"its Placement tolerated {taint}", pointer, [*written, entry])
    return None


def _enlarge(found: Evaluation, request: Choosing, choice: Choice, index: int) -> Edit | None:
    """So many clusters that this one is among the best."""
    if request.spreads or request.number is None:
        return None
    ranking = sorted(zip(choice.totals, choice.members, strict=True), key=lambda entry: (-entry[0], entry[1]))
    place = next(at for at, (_, member) in enumerate(ranking, 1) if member == index)
    text = f"numberOfClusters were {place} instead of {request.number}"
    return _on(found.placement.document, text, ("spec", "numberOfClusters"), place)


def _say(text: str, document: Document, pointer: Pointer) -> Edit:
    rule = Rule(document.origin, pointer) if document.origin else None
    return Edit(Change(text, f"{rule.origin.path}:{rule.origin.line}" if rule is not None else "", rule))


def _on(document: Document, text: str, pointer: tuple[str, str], value: Any) -> Edit:
    """The change, and the document with it."""
    section, name = pointer
    body = {**document.body, section: {**(document.body.get(section) or {}), name: value}}
    return _say(text, document, pointer)._replace(document=document._replace(body=body))
