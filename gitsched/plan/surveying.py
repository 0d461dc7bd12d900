"""What a cluster holds by a plan, what room that leaves, and what keeps everything else away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from gitsched.model.document import Body, Key, member, text_map
from gitsched.model.finding import Finding
from gitsched.model.outcome import Outcome
from gitsched.model.quantity import write_count
from gitsched.model.standing import Absence, Candidacy, Resident, Standing, Stock
from gitsched.model.taints import parse_taint
from gitsched.plan.crowding import fit
from gitsched.plan.ground import Ground, list_foreseeing
from gitsched.plan.registry import APIS
from gitsched.plan.scenario import list_sites
from gitsched.schedule.room import Room

EXAMPLES = 3
"""Workloads named for one reason."""
FITS = "could run there, and run elsewhere"
"""Why something is not there that nothing speaks against."""


def survey_cluster(ground: Ground, cluster: str, findings: Iterable[Finding] = ()) -> Standing:
    """A cluster that is among the sites of the plan. `findings` are all that are known; those about it are shown."""
    entries = list_sites(ground.decided.catalog)[cluster]
    bodies = [document.body for _, document, _ in entries]
    origin = entries[0][1].origin
    resources = {document.key.resource for _, document, _ in entries}
    sites = [site for _, _, site in entries]
    left, reasons = _measure(ground, cluster), _ask_why_absent(ground, cluster)
    return Standing(
        name=cluster,
        location=f"{origin.path}:{origin.line}" if origin else "",
        region=next((site.region for site in sites if site.region), ""),
        provider=next((site.provider for site in sites if site.provider), ""),
        zones=next((site.zones for site in sites if site.zones), ()),
        labels={name: text for body in bodies for name, text in text_map(member(body, "metadata", "labels")).items()},
        remarks=(*_remark(bodies), *(finding.message for finding in findings if finding.resource in resources)),
        residents=tuple(_list_residents(ground, cluster)),
        stocks=None if left is None else tuple(_list_stocks(*left)),
        candidacies=tuple(_list_candidacies(ground, reasons, left)),
        absences=_list_absences(reasons),
    )


def _remark(bodies: Iterable[Body]) -> Iterator[str]:
    for body in bodies:
        if member(body, "metadata", "deletionTimestamp"):
            yield "it is being deleted"
        for taint in member(body, "spec", "taints") or ():
            yield f"taint {parse_taint(taint)}"


def _list_residents(ground: Ground, cluster: str) -> Iterator[Resident]:
    for key, outcome in sorted(ground.decided.outcomes.items(), key=lambda entry: (entry[0].namespace, entry[0].name, entry[0])):
        for place in outcome.placed:
            if place.cluster == cluster:
                known = cluster in ground.running.get(key, {})
                yield Resident(key, place.replicas, outcome.policy, not known and not place.leaving, place.leaving)


class Left(NamedTuple):
    """What is free on a cluster as an API knows it, and what of it the plan is about to take."""

    api: str
    room: Room
    taken: Mapping[str, int]


def _measure(ground: Ground, cluster: str) -> Left | None:
    """What is free by the first API that knows it."""
    for api, session in list_foreseeing(ground.decided.sessions).items():
        room = session.room().get(cluster)
        if room is None:
            continue
        taken: dict[str, int] = {}
        for key, outcome in ground.decided.outcomes.items():
            more = _grown(outcome, ground.running.get(key, {}), cluster) if outcome.api == api else 0
            for name, amount in session.ask(ground.decided.templates[key]) if more else ():
                taken[name] = taken.get(name, 0) + amount * more
        return Left(api, room, taken)
    return None


def _list_stocks(_api: str, room: Room, taken: Mapping[str, int]) -> Iterator[Stock]:
    for name, amount in sorted(room.free.items()):
        yield Stock(name, _write(name, amount), _write(name, amount - taken.get(name, 0)))


def _list_candidacies(ground: Ground, reasons: Mapping[Key, str], left: Left | None) -> Iterator[Candidacy]:
    """The workloads that run there, and those that could."""
    for key, outcome in sorted(ground.decided.outcomes.items(), key=lambda entry: (entry[0].namespace, entry[0].name, entry[0])):
        here = key not in reasons
        if not here and reasons[key] != FITS:
            continue
        more = None
        if left is not None and outcome.api == left.api and outcome.replicas is not None:
            session = list_foreseeing(ground.decided.sessions)[left.api]
            more = fit(left.room, left.taken, session.ask(ground.decided.templates[key]))[0]
        yield Candidacy(key, here, more)


def _grown(outcome: Outcome, running: Mapping[str, int | None], cluster: str) -> int:
    return max((outcome.shares.get(cluster) or 0) - (running.get(cluster) or 0), 0)


def _write(resource: str, count: int) -> str:
    return write_count(resource, count, binary=resource in ("memory", "ephemeral-storage"))


def _ask_why_absent(ground: Ground, cluster: str) -> dict[Key, str]:
    """The reason of every workload that is not there."""
    outcomes = ground.decided.outcomes.items()
    absent = ((key, outcome) for key, outcome in outcomes if all(place.cluster != cluster for place in outcome.placed))
    return {key: _why_absent(ground, key, outcome, cluster) for key, outcome in absent}


def _list_absences(reasons: Mapping[Key, str]) -> tuple[Absence, ...]:
    by_reason: dict[str, list[Key]] = {}
    for key, reason in reasons.items():
        by_reason.setdefault(reason, []).append(key)
    found = [Absence(reason, len(keys), tuple(sorted(keys)[:EXAMPLES])) for reason, keys in by_reason.items()]
    return tuple(sorted(found, key=lambda absence: (-absence.workloads, absence.reason)))


def _why_absent(ground: Ground, key: Key, outcome: Outcome, cluster: str) -> str:
    session = next(session for session in ground.decided.sessions if session.name == outcome.api)
    verdicts = session.verdicts(*_named(key)) or session.candidates(ground.decided.templates[key])
    verdict = next((verdict for verdict in verdicts if verdict.name == cluster), None)
    if verdict is None:
        groups = next(api.groups for api in APIS if api.name == outcome.api)
        known = any(document.key.group in groups for _, document, _ in list_sites(ground.decided.catalog)[cluster])
        if not known:
            return f"decided by {outcome.api}, which has no such cluster"
        return outcome.reason if outcome.state != "placed" else "decided among other clusters"
    return verdict.reason or (FITS if verdict.eligible else "nothing is said about it")


def _named(key: Key) -> tuple[str, str, str]:
    return key.kind, key.name, key.namespace
