"""Check that two dumps are of the same hub, in the order of time, and complete."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gitsched.decide.registry import policy_apis
from gitsched.model.document import Key
from gitsched.model.finding import Finding, Location, format_names
from gitsched.model.hub_comparison import HubComparisonResult
from gitsched.model.time import format_time
from gitsched.reconcile.shadow.hub_dumps import ReadDump

INCOMPARABLE: Final = frozenset(("shadow-other-hub", "shadow-order"))
"""Codes of findings about two dumps of which no difference says anything."""
_AGAIN = "pass the older dump first"


def check_dumps(first: ReadDump, second: ReadDump) -> Iterator[Finding]:
    """Yield findings about dumps that cannot be compared, or not completely."""
    other = _check_hub(first, second)
    if other is not None:
        yield other
    else:
        yield from filter(None, (_check_order(first, second), _check_namespaces(first, second)))
    if not first.dump.state.records and second.dump.state.records:
        message = (
            "the first dump has no records of the hub, so that everything is decided as for the first time; add bindings, or Placements "
            "and PlacementDecisions"
        )
        yield Finding("warning", "shadow-no-records", message, Location(str(first.path), 1, 1))


def check_result(second: ReadDump, result: HubComparisonResult) -> Iterator[Finding]:
    """Yield findings about what the second dump has nothing of."""
    state, place = second.dump.state, Location(str(second.path), 1, 1)
    if not state.records and result.decisions:
        message = "the second dump has no records of the hub to compare with; add bindings, or Placements and PlacementDecisions"
        yield Finding("error", "shadow-no-records", message, place)
    kinds = {(api.topology.group, api.topology.kind) for api in policy_apis.values() if api.topology is not None}
    if not any(key[:2] in kinds for key in state.documents):
        chosen = any(one.hub is not None and one.hub.clusters for one in result.decisions)
        message = "the second dump has no clusters, so that nothing can be placed; add clusters or managedclusters"
        yield Finding("error" if chosen else "warning", "shadow-no-clusters", message, place)


def _check_hub(first: ReadDump, second: ReadDump) -> Finding | None:
    """Return a finding if the dumps have nothing in common, or nothing but names."""
    common = [key for key in first.versions if key in second.versions]
    if first.versions and second.versions and not common:
        message = (
            "the dumps have no object in common: they are of different hubs or of different namespaces; dump the same hub twice"
        )
        return Finding("error", "shadow-other-hub", message, Location(str(second.path), 1, 1))
    known = [key for key in common if first.versions[key].uid and second.versions[key].uid]
    if known and all(first.versions[key].uid != second.versions[key].uid for key in known):
        message = (
            f"the dumps are of different hubs: {_name(known)} have other uids in the first dump, and no object has the same; dump the same "
            "hub twice"
        )
        return Finding("error", "shadow-other-hub", message, second.dump.locations.get(known[0].resource))
    return None


def _check_order(first: ReadDump, second: ReadDump) -> Finding | None:
    """Return a finding if objects of the second dump are older than in the first."""
    older: list[Key] = []
    newer, same = 0, 0
    for key, before in first.versions.items():
        after = second.versions.get(key)
        if after is None or min(before.version, after.version) < 0 or before.uid != after.uid:
            continue
        older += [key] if after.version < before.version else []
        newer += after.version > before.version
        same += after.version == before.version
    if older:
        place = second.dump.locations.get(older[0].resource)
        found = f"{_name(older)} have an older resourceVersion in the second dump"
        cure = (
            f"the dumps are in the wrong order: {_AGAIN}" if not newer else "a dump is of several times: make each with one command"
        )
        return Finding("error", "shadow-order", f"{found}; {cure}", place)
    earlier, later = first.dump.time, second.dump.time
    if not newer and earlier is not None and later is not None and later < earlier:
        message = (
            f"the latest time in the second dump, {format_time(later)}, is before that in the first, {format_time(earlier)}: the dumps are "
            f"in the wrong order; {_AGAIN}"
        )
        return Finding("error", "shadow-order", message, Location(str(second.path), 1, 1))
    if same and not newer and first.versions.keys() == second.versions.keys():
        message = (
            "the dumps have the same objects and versions, so that the hub has decided nothing in between; dump it again later"
        )
        return Finding("warning", "shadow-same", message, Location(str(second.path), 1, 1))
    return None


def _check_namespaces(first: ReadDump, second: ReadDump) -> Finding | None:
    """Return a finding if a dump seems to have the records of one namespace only."""
    found = [{key.namespace for key in each.dump.state.records if key.namespace} for each in (first, second)]
    for index, (each, name) in enumerate(((first, "first"), (second, "second"))):
        own, other = found[index], found[1 - index]
        if len(own) == 1 and len(other) > 1:
            message = (
                f"the {name} dump has records of namespace {min(own)} only, the other one of {len(other)} namespaces; dump with -A, or the "
                "others are not compared"
            )
            return Finding("warning", "shadow-namespace", message, Location(str(each.path), 1, 1))
    if found[0] == found[1] and len(found[0]) == 1:
        message = f"both dumps have records of namespace {min(found[0])} only; if the hub has others, dump with -A"
        return Finding("info", "shadow-namespace", message, Location(str(second.path), 1, 1))
    return None


def _name(keys: list[Key]) -> str:
    return format_names([key.title for key in keys])
