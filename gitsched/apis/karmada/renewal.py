"""How a workload that is remembered where it is could be placed anew: the request for it, and what to tell about one that nothing moves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gitsched.apis.karmada import names
from gitsched.apis.karmada.activation import is_waiting
from gitsched.model.document import Body, Document, Key
from gitsched.model.outcome import Outcome

if TYPE_CHECKING:  # the session calls this module
    from gitsched.apis.karmada.session import KarmadaSession

_REBALANCER = "gitsched-what-if"


def ask_anew(templates: Iterable[Document]) -> Document:
    """A WorkloadRebalancer that names these workloads."""
    workloads: list[Body] = []
    for template in templates:
        key = template.key
        workload = {"apiVersion": template.api_version, "kind": key.kind, "name": key.name, "namespace": key.namespace}
        workloads.append({name: value for name, value in workload.items() if value})
    body: Body = {
        "apiVersion": names.APPS_VERSION,
        "kind": names.REBALANCER,
        "metadata": {"name": _REBALANCER},
        "spec": {"workloads": workloads},
    }
    return Document(Key(names.APPS_GROUP, names.REBALANCER, "", _REBALANCER), names.APPS_VERSION, body)


def tell_remedy(session: KarmadaSession, template: Document, stays: Outcome, anew: Outcome | None, wanted: Outcome) -> str:
    """What would bring a workload where it would be `wanted` by the rules alone; `anew` is what a rebalance of it comes to."""
    places, goal = stays.shares.keys(), wanted.shares.keys()
    if anew is not None and anew.shares.keys() == goal:
        return f"a WorkloadRebalancer that names it brings it there{_tell_failback(session, stays, wanted)}"
    previous = session.world.previous.get(names.binding_key(template.key))
    policy, _ = session.governing(template, previous)
    if policy is not None and is_waiting(policy, template, previous):
        return "its policy is Lazy: an edit of the workload itself lets the policy act on it"
    leaving = sorted(place.cluster for place in stays.placed if place.leaving and place.cluster in goal)
    if leaving:
        return f"a WorkloadRebalancer that names it can bring it there when its eviction from {names.shorten(leaving)} is over"
    if anew is not None and anew.shares.keys() != places:
        return f"a WorkloadRebalancer that names it brings it to {names.shorten(sorted(anew.shares))}"
    return "a WorkloadRebalancer that names it would leave it where it is"


def _tell_failback(session: KarmadaSession, stays: Outcome, wanted: Outcome) -> str:
    if stays.group == wanted.group:
        return ""
    if session.settings.failback.mode == "AfterStabilization":
        return "; by itself it returns when the time of karmada.failback is over"
    return ", or karmada.failback in gitsched.yaml"
