"""What one plan left behind, so that the next one can go on from it: a row for each workload and cluster, and the sums over all.

A ledger describes one output tree exactly. Whoever has lost it plans everything anew and gets the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import NamedTuple, Protocol

from gitsched.apis.gitsched.config import Config
from gitsched.apis.world import Session
from gitsched.model.cluster import ClusterFacts
from gitsched.model.document import Body, Key, group_of
from gitsched.model.files import PlannedFile
from gitsched.model.finding import Finding
from gitsched.model.outcome import Outcome
from gitsched.plan.deciding import Decided
from gitsched.plan.planning import Before, Input
from gitsched.plan.rendering import Picture, Share, list_own_namespaces
from gitsched.render.layout import status_path
from gitsched.render.summary import ROWS


class Trace(NamedTuple):
    """One workload: its outcome without documents and bodies, the source file it was read from, the paths of its records, and by
    cluster the paths of its manifests, relative to the cluster's directory."""

    outcome: Outcome
    source: str
    records: tuple[str, ...]
    manifests: Mapping[str, tuple[str, ...]]


class Place(NamedTuple):
    """One cluster: its facts, and the relative paths of what is placed there."""

    facts: ClusterFacts
    paths: frozenset[str]


class Sums(NamedTuple):
    """What is known of a plan without its rows.

    `at` and `now` are the moments of the plan. `states` counts workloads by state, `unclaimed` the objects that no policy selects.
    Findings are by source file, by workload, those of the sessions, and all `others`. `restless` are workloads that may be decided
    otherwise next time. `front` are the first outcomes and `fleet` the first clusters; `clusters` counts all. `records` are those of no
    workload. `scopes` says of kinds that are not built in whether they have namespaces.
    """

    config: Config
    at: datetime
    now: datetime
    states: Mapping[str, int]
    unclaimed: int
    by_file: Mapping[str, tuple[Finding, ...]]
    by_workload: Mapping[Key, tuple[Finding, ...]]
    by_session: tuple[Finding, ...]
    others: tuple[Finding, ...]
    wakeups: Mapping[Key, datetime]
    restless: frozenset[Key]
    front: Mapping[Key, Outcome]
    fleet: Mapping[str, ClusterFacts]
    clusters: int
    retiring: Mapping[str, datetime]
    namespaces: Mapping[str, tuple[str, PlannedFile]]
    records: tuple[tuple[Key, Body], ...]
    scopes: Mapping[tuple[str, str], bool]

    @property
    def workloads(self) -> int:
        return sum(self.states.values())


class Rows(Protocol):
    """Where the rows of a ledger lie."""

    def trace(self, key: Key) -> Trace | None:
        """What is known of a workload; None when no policy selects it."""
        ...

    def place(self, name: str) -> Place | None:
        """What is known of a cluster; None when it has no directory."""
        ...

    def traces(self) -> Iterator[Trace]:
        """Every workload, by (namespace, name)."""
        ...


class Outcomes(Mapping[Key, Outcome]):
    """The outcomes of a ledger, some of them changed since; read when they are asked for."""

    def __init__(self, rows: Rows, count: int, changed: Mapping[Key, Outcome]) -> None:
        self._rows, self._count, self._changed = rows, count, changed

    def __getitem__(self, key: Key) -> Outcome:
        if key in self._changed:
            return self._changed[key]
        trace = self._rows.trace(key)
        if trace is None:
            raise KeyError(key)
        return trace.outcome

    def __iter__(self) -> Iterator[Key]:
        return (trace.outcome.key for trace in self._rows.traces())

    def __len__(self) -> int:
        return self._count


def make_trace(share: Share, source: str) -> Trace:
    """The row of a workload."""
    return Trace(
        strip(share.outcome),
        source,
        tuple(share.records),
        {cluster: tuple(files) for cluster, files in share.manifests.items()},
    )


def strip(outcome: Outcome) -> Outcome:
    """An outcome without what only writing it needs."""
    placed = tuple(place._replace(edits=(), body=None) if place.edits or place.body else place for place in outcome.placed)
    return outcome._replace(documents=(), manifests=None, before=(), placed=placed)


def sum_up(
    decided: Decided, picture: Picture, source: Input, by_file: Mapping[str, tuple[Finding, ...]], retiring: Mapping[str, datetime]
) -> Sums | None:
    """The sums of a whole plan.

    None when nobody can go on from a plan like this: a document is broken or stands twice, two objects are in each other's way, an API
    decides about documents of its own, or its sessions would not say the same once more.
    """
    catalog, outcomes = decided.catalog, decided.outcomes
    if catalog.twins or catalog.broken or catalog.contested or decided.frozen or decided.own or picture.findings:
        return None
    records = list_records(decided.sessions)
    if _overlap(picture, records) or not _is_at_rest(outcomes, records, source.before):
        return None
    said = tuple(finding for session in decided.sessions for finding in session.findings)
    known = frozenset(said)
    return Sums(
        config=source.config,
        at=source.at,
        now=source.now,
        states=Counter(outcome.state for outcome in outcomes.values()),
        unclaimed=decided.unclaimed,
        by_file={path: findings for path, findings in by_file.items() if findings},
        by_workload={key: outcome.findings for key, outcome in outcomes.items() if outcome.findings},
        by_session=said,
        others=(*source.beside, *(finding for finding in decided.findings if finding not in known)),
        wakeups={key: outcome.wakeup for key, outcome in outcomes.items() if outcome.wakeup is not None},
        restless=decided.restless,
        front={key: strip(outcome) for key, outcome in islice(outcomes.items(), ROWS)},
        fleet=dict(sorted(picture.facts.items())[:ROWS]),
        clusters=len(picture.facts),
        retiring=retiring,
        namespaces=list_own_namespaces(decided.templates),
        records=records,
        scopes=catalog.scopes,
    )


def _overlap(picture: Picture, records: Iterable[tuple[Key, Body]]) -> bool:
    """Whether two workloads, or a workload and a session, write the same record: then the later one counts."""
    paths = [path for share in picture.shares.values() for path in share.records]
    paths += [status_path(key) for key, _ in records]
    return len(set(paths)) < len(paths)


def _is_at_rest(outcomes: Mapping[Key, Outcome], records: tuple[tuple[Key, Body], ...], before: Before) -> bool:
    """Whether the sessions read the very records that they write: a new session over this output would find what they found."""
    if any(before.documents.get(key) != body for key, body in records):
        return False
    held = [key for outcome in outcomes.values() for key, _ in outcome.documents]
    kinds = {(key.group, key.kind) for key in held}
    gone = before.others([*held, *(key for key, _ in records)])
    return all((group_of(str(body.get("apiVersion") or body.get("api") or "")), body.get("kind")) in kinds for body in gone)


def list_records(sessions: tuple[Session, ...]) -> tuple[tuple[Key, Body], ...]:
    """The records of all sessions that belong to no workload."""
    return tuple(record for session in sessions for record in session.documents())


def list_rows(decided: Decided, picture: Picture) -> tuple[dict[Key, Trace], dict[str, Place]]:
    """A row for every workload, in their order, and for every cluster."""
    traces = {}
    for key, share in picture.shares.items():
        origin = decided.templates[key].origin
        traces[key] = make_trace(share, origin.path if origin else "")
    return traces, {name: Place(facts, frozenset(picture.placed.get(name, ()))) for name, facts in picture.facts.items()}
