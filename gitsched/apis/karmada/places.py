"""Where a manifest is rendered, and what it says there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.apis.karmada.attachment import Attachment, join_places
from gitsched.apis.karmada.workload import Demand, share_out
from gitsched.model.document import Body, Document, member
from gitsched.model.finding import Finding
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
    gone = tuple(
        Finding(
            "warning", "cluster-gone", f"cluster {name} has no document, but workloads are bound to it", None, ("Cluster", "", name)
        )
        for name in sorted(taken - known.keys())
    )
    return manifests, (*gone, *misfits)


def identify(template: Document) -> str:
    """What breaks the dispenser's ties: the uid, where a dump carries one."""
    return str(member(template.body, "metadata", "uid") or "")
