"""What became of one workload: the decision in its API's own documents, and what has to be rendered for it."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from gitsched.model.document import Body, Key
from gitsched.model.finding import Finding


class Placed(NamedTuple):
    """One cluster that receives the workload; `replicas` is None for what has none. `body` is the manifest there, where it is another one
    than the workload's own.

    `leaving` marks a copy that only stays until a graceful eviction ends. `edits` are the counts that this cluster's manifest says
    otherwise than the source, by their path of members ("spec.replicas"). `kept` says that the cluster's manifest is the one of the last
    run, whatever the source says; where there was none, nothing is rendered. So it is while deliveries are suspended, for one.
    """

    cluster: str
    replicas: int | None = None
    leaving: bool = False
    edits: tuple[tuple[str, int], ...] = ()
    body: Body | None = None
    kept: bool = False


class Outcome(NamedTuple):
    """`state` is "placed", "pending" (selected, but without a place) or "stale" (the previous decision is kept, the input being broken).

    `documents` are the API's resources as its server would show them. `reason` is one line for people. `time` is the moment of the event
    that caused the present decision.
    `cause` says what made it be placed anew, where that is no change of its own or of its policy; it is told, never written. `before` is
    where the last run had placed it. `manifests` are rendered in place of the workload's own document, where not None.
    `former` are objects that earlier manifests had: a place that is kept has them still.
    """

    key: Key
    api: str
    state: str
    policy: str
    group: str
    placed: tuple[Placed, ...]
    replicas: int | None
    documents: tuple[tuple[Key, Body], ...]
    reason: str
    time: datetime
    wakeup: datetime | None = None
    findings: tuple[Finding, ...] = ()
    before: tuple[Placed, ...] = ()
    manifests: tuple[tuple[Key, Body], ...] | None = None
    cause: str = ""
    former: tuple[Key, ...] = ()

    @property
    def shares(self) -> dict[str, int | None]:
        """Where it runs, without copies that are on their way out."""
        return {place.cluster: place.replicas for place in self.placed if not place.leaving}
