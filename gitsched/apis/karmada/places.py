"""Where a manifest is rendered, and what it says there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.apis.karmada.attachment import Attachment, join_places
from gitsched.apis.karmada.names import shorten
from gitsched.apis.karmada.workload import Demand, share_out
from gitsched.model.document import Body, Document, member
from gitsched.model.finding import Finding, locate
from gitsched.model.outcome import Placed
from gitsched.model.request import Target
from gitsched.schedule.dispenser import prefers_descending

if TYPE_CHECKING:  # the session calls this module
    from gitsched.apis.karmada.session import KarmadaSession

Places = tuple[tuple[Placed, ...], tuple[Finding, ...]]


def find_places(
    session: KarmadaSession,
    template: Document,
    targets: tuple[Target, ...],
    tasks: tuple[Body, ...],
    demand: Demand,
    divided: bool,
    attachment: Attachment | None,
) -> Places:
    """The clusters that exist of those it is bound to, those that a graceful eviction still keeps it on, and those that its owners ask for;
    and what is wrong with them."""
    known = session.fleet.index
    edits = share_out(template, demand, targets, prefers_descending(identify(template))) if divided else {}
    placed = [Placed(t.name, t.replicas or None, False, edits.get(t.name, ())) for t in targets if t.name in known]
    taken = {target.name for target in targets}
    for task in tasks:
        source = str(task.get("fromCluster"))
        if source in known and source not in taken and task.get("purgeMode") != "Directly":
            left = task.get("replicas")
            kept = ((demand.path, left),) if divided and demand.path and isinstance(left, int) else ()
            placed.append(Placed(source, left, True, kept))
    manifests, misfits = session.overrides.apply(template, join_places(tuple(placed), attachment, known))
    return manifests, (*_tell_gone(template, [t for t in targets if t.name not in known], demand if divided else None), *misfits)


def _tell_gone(template: Document, gone: list[Target], demand: Demand | None) -> tuple[Finding, ...]:
    """What is bound to clusters without a document. Replicas that are divided are missed one by one, so each workload has a finding."""
    missing = sum(target.replicas for target in gone)
    if demand is not None and missing:
        where = shorten(sorted(target.name for target in gone))
        message = (
            f"{template.key} has {missing} of its {demand.replicas} replicas on {where}, without a document: "
            "nothing is delivered there, and a WorkloadRebalancer that names it places them anew"
        )
        return (Finding("warning", "cluster-gone", message, locate(template), template.key.resource),)
    names = sorted(target.name for target in gone)
    text = "has no document, but workloads are bound to it"
    return tuple(Finding("warning", "cluster-gone", f"cluster {name} {text}", None, ("Cluster", "", name)) for name in names)


def identify(template: Document) -> str:
    """What breaks the dispenser's ties: the uid, where a dump carries one."""
    return str(member(template.body, "metadata", "uid") or "")
