"""What every API reads: the documents of a commit by kind, the last run's documents, the settings and the moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple, Protocol

from gitsched.apis.gitsched.config import Config
from gitsched.model.decision import Verdict
from gitsched.model.document import Body, Document, Key
from gitsched.model.explanation import Explanation
from gitsched.model.finding import Finding
from gitsched.model.outcome import Outcome
from gitsched.render.cluster import ClusterFacts


class World(NamedTuple):
    """`documents` are those an API asked for, by (group, kind), in the order of their keys.

    `broken` are identities whose document is quarantined and has no valid version left. `at` is the moment of the source, `now` what
    deadlines are compared with.
    """

    documents: Mapping[tuple[str, str], tuple[Document, ...]]
    broken: frozenset[Key]
    previous: Mapping[Key, Body]
    config: Config
    at: datetime
    now: datetime


class Session(Protocol):
    """One API over one world. `findings` are about the API's own documents, not about a workload."""

    name: str
    findings: tuple[Finding, ...]

    def renew(self, world: World) -> None:
        """Go on in another world that has the same settings: only what was decided before, and the moments, differ."""
        ...

    def clusters(self) -> Mapping[str, ClusterFacts]:
        """The clusters that have a directory on the output branch."""
        ...

    def documents(self) -> Iterable[tuple[Key, Body]]:
        """Records that belong to no workload."""
        ...

    def place(self, template: Document) -> Outcome | None:
        """Decide one workload; None when no policy of this API selects it."""
        ...

    def selects(self, template: Document) -> bool:
        """Whether a policy of this API selects a workload."""
        ...

    def keep(self, template: Document, why: str) -> Outcome | None:
        """The previous decision of a workload, unchanged and marked stale; None when there is none."""
        ...

    def candidates(self, template: Document) -> list[Verdict]:
        """How every cluster fares for a workload, in name order; empty when no policy selects it."""
        ...

    def explain(self, template: Document) -> Explanation | None:
        """Everything about the decision of a workload."""
        ...
