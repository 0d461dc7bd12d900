"""A drain, a cordon or the end of one as text and as data: what is edited, what moves, is held and is short, and how to go on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gitsched.model.finding import choose_form, format_count, format_names, join_all
from gitsched.model.history import SourceChange
from gitsched.model.maintenance import Action, ClusterEdit, Maintenance
from gitsched.report.fleet_problems import describe_freeze
from gitsched.report.held import serialize_held
from gitsched.report.lines import abbreviate_oid, format_key, wrap, wrap_all
from gitsched.report.serialization import API_VERSION, serialize_key
from gitsched.report.serialized_simulation import serialize_simulation
from gitsched.report.simulation import write_simulation

MAX_SHORT = 5
"""Workloads without enough capacity that a step names."""


def describe_return(drained_by: SourceChange | None = None) -> str:
    """Return what brings back the workloads that left a cluster which a commit of the source drained."""
    before = f"{abbreviate_oid(drained_by.commit)}^ --write" if drained_by is not None else "COMMIT"
    return (
        "gitsched rebalance --all-displaced says what returns by itself, and when; with --write it requests the rest; "
        f"what does not count as displaced: gitsched rebalance --to {before}"
    )


def write_maintenance(value: Maintenance, width: int, *, written: bool) -> str:
    """Return the edits, what they lead to, and the steps in their order. `written`: the files of the worktree are edited."""
    lines = wrap_all((_describe_edit(edit, value.action, written) for edit in value.edits), width)
    for name, taints in value.left.items():
        lines += wrap(f"{name} stays as it is: {'; '.join(map(str, taints))}. Remove what is no longer needed by hand.", width)
    parts = ["\n".join(lines)]
    if value.simulation is not None:
        parts.append(write_simulation(value.simulation, width).rstrip("\n"))
    if value.freezes:
        parts.append("\n".join(wrap_all(_describe_freezes(value), width)))
    steps = [f"{number}. {step}" for number, step in enumerate(list_steps(value, written=written), 1)]
    if steps:
        parts.append("\n".join(["Next:", *(line for step in steps for line in wrap(step, width, "  "))]))
    return "\n\n".join(filter(None, parts)) + "\n"


def _describe_edit(edit: ClusterEdit, action: Action, written: bool) -> str:
    where = f"{edit.path}:{edit.line}"
    if edit.problem:
        return f"{where}: {edit.cluster} is not edited: {edit.problem}; change spec.taints by hand"
    if not edit.taints:
        state = "has no taint of a drain or a cordon" if action == "uncordon" else f"is {action}ed already"
        return f"{where}: {edit.cluster} {state}"
    verb = ("removed", "would be removed") if action == "uncordon" else ("added", "would be added")
    taints = f"the taint {', '.join(edit.taints)}" if len(edit.taints) == 1 else f"the taints {', '.join(edit.taints)}"
    return f"{where}: {edit.cluster}: {taints} {'is ' if written and len(edit.taints) == 1 else ''}{verb[not written]}"


def _describe_freezes(value: Maintenance) -> Iterator[str]:
    """Yield why placements are frozen and what ends that, and what this withholds of a drain."""
    yield from (f"Frozen: {describe_freeze(freeze)}" for freeze in value.freezes)
    places: dict[tuple[str, ...], list[str]] = {}
    for key, clusters in value.frozen.items():
        places.setdefault(clusters, []).append(format_key(key))
    for clusters, names in places.items():
        stay = choose_form(len(names), "stays", "stay")
        yield (
            f"{format_names(names, MAX_SHORT)} {stay} on {format_names(clusters)} until then: a freeze lets workloads leave drained "
            "clusters for others, and withholds what is more than that"
        )


def list_steps(value: Maintenance, *, written: bool) -> Iterator[str]:
    """Yield what to do next, in this order."""
    if not value.files:
        return
    simulation, names = value.simulation, ", ".join(value.clusters)
    has = choose_form(len(value.clusters), "has", "have")
    if not written:
        yield f"gitsched {value.action} {' '.join(value.clusters)} edits the files, without --dry-run"
    if simulation is not None and not (simulation.moved or simulation.held) and any(value.workloads.values()):
        yield "Look first why nothing leaves: workloads tolerate the taint, or a setting such as karmada.taintEviction keeps them"
    if simulation is not None and simulation.degraded and len(value.clusters) > 1:
        yield "Drain one cluster after the other, because together they leave replicas without a place"
    if simulation is not None and simulation.degraded:
        short = [f"{format_key(effect.key)} {effect.lost_replicas or 'unplaced'}" for effect in simulation.degraded]
        yield f"Make room first, or accept that this lacks replicas: {format_names(short, MAX_SHORT)}"
    if simulation is not None and simulation.held:
        held = format_names([format_key(key) for key in simulation.held], MAX_SHORT)
        yield f"Save or copy the data of {held}, and release {'it' if len(simulation.held) == 1 else 'them'} as above; until then it stays"
    if value.frozen:
        stay = choose_form(len(value.frozen), "workload stays", "workloads stay")
        yield f"Lift the freeze as above, or accept that {len(value.frozen):,} {stay}"
    paths = " ".join(file.path for file in value.files)
    yield f'git commit -m "{value.action.capitalize()} {names}" -- {paths}'
    yield "gitsched plan shows the moves of the commit, and how to allow them if the guard withholds them; then push, or gitsched reconcile"
    if value.action == "drain":
        workloads = format_count(value.total, "workload")
        yield f"gitsched status: {names} {has} {workloads} now; wait until it shows {_describe_remaining(value)} (gitsched tree CLUSTER)"
        yield f"After the work: gitsched uncordon {' '.join(value.clusters)}; commit; then bring back what left: {describe_return()}"
    elif value.action == "cordon":
        until = f"until gitsched uncordon {' '.join(value.clusters)}"
        yield f"Nothing moves: what {names} {has} stays there, and new workloads go elsewhere, {until}"
    else:
        yield f"Bring back what left: {describe_return(value.drained_by)}"


def _describe_remaining(value: Maintenance) -> str:
    """Return what `status` shows of drained clusters when all that leaves them has left: workloads, and copies of others."""
    drained, simulation = set(value.clusters), value.simulation
    effects = simulation.effects if simulation is not None else ()
    held = simulation.held.values() if simulation is not None else ()
    unplaced = [one for one in effects if one.becomes_unplaced and one.key not in value.frozen and one.before.keys() & drained]
    reasons = (
        (value.staying, "that a drain does not move"),
        (sum(bool(one.clusters.keys() & drained) for one in held), "held until released"),
    )
    found = [f"{number:,} {why}" for number, why in reasons if number]
    only = f"only {format_count(sum(number for number, _ in reasons), 'workload')} ({join_all(found)})" if found else "no workloads"
    copies = f"only {format_count(len(unplaced), 'copy', 'copies')} (without room elsewhere)" if unplaced else "no copies"
    return f"{only} and {copies}"


def serialize_maintenance(value: Maintenance, *, written: bool) -> dict[str, Any]:
    """Return a drain, a cordon or the end of one as `kind: Maintenance` of docs/development/json.md."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Maintenance",
        "action": value.action,
        "written": written,
        "clusters": [{"name": name, "workloads": value.workloads[name]} for name in value.clusters],
        "edits": [{**edit._asdict(), "taints": list(edit.taints)} for edit in value.edits],
        "drainedBy": value.drained_by.commit if value.drained_by is not None else None,
        "left": {name: list(map(str, taints)) for name, taints in value.left.items()},
        "simulation": serialize_simulation(value.simulation) if value.simulation is not None else None,
        "held": serialize_held(value.simulation.held) if value.simulation is not None else [],
        "freezes": [each.reason for each in value.freezes],
        "frozen": [{**serialize_key(key), "clusters": list(clusters)} for key, clusters in value.frozen.items()],
        "next": list(list_steps(value, written=written)),
    }
