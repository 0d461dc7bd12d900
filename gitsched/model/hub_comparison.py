"""The comparison of gitsched's decisions with those of a running hub: decisions, causes of differences, and the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Body, Key
    from gitsched.model.finding import Finding, Location

Resource = tuple[str, str, str]
"""Kind, namespace and name, as in `Finding.resource`."""


class HubDecision(NamedTuple):
    """A decision as a hub records it, and gitsched alike.

    `subject` is the workload or policy that it is about, `record` the key of the document that has it. `clusters` are the replicas by
    cluster, None without a number; `leaving` the clusters from which it is being evicted. `details` are further parts of the decision by
    name, such as the affinity group. `policy` is the policy that it follows, None if the record names none.
    """

    subject: Key
    record: Key
    clusters: Mapping[str, int | None]
    leaving: frozenset[str] = frozenset()
    details: Mapping[str, str] = {}
    policy: Key | None = None


class HubState(NamedTuple):
    """What a dump of a hub has, by key: `documents` are what decisions are made from, `records` what the hub has decided."""

    documents: Mapping[Key, Body] = {}
    records: Mapping[Key, Body] = {}


class HubDump(NamedTuple):
    """A dump of a hub. `locations` are where its objects begin, and `time` is the latest time that they mention, None without one."""

    state: HubState
    locations: Mapping[Resource, Location] = {}
    time: datetime | None = None


class HubChange(NamedTuple):
    """Two dumps of a hub: decisions are made from the records of the first and the documents of the second."""

    first: HubState
    second: HubState


CauseKind = Literal["hub", "input", "setting", "fact", "history", "field", "rule"]
"""Where the cause of a difference is: in what the hub has not finished, in what the dumps lack, in a setting of the hub, in a fact that
changed between the dumps, in what happened between them, in a field that gitsched handles otherwise, or in a rule of the scheduler."""
UNEXPLAINED = "unexplained"
"""The name of the rule of a cause that says that none was found."""


class DifferenceCause(NamedTuple):
    """Why a decision of gitsched differs from that of the hub.

    `name` is the setting, field or rule, "" for other kinds. `proved`: with this changed, gitsched decides as the hub.
    """

    kind: CauseKind
    text: str
    name: str = ""
    location: Location | None = None
    proved: bool = False


Verdict = Literal["equal", "different", "in-progress", "not-compared"]
VERDICTS: tuple[Verdict, ...] = ("different", "not-compared", "in-progress", "equal")


class HubProgress(NamedTuple):
    """Why a decision of a hub that differs is no difference: the hub has not finished it, or what it decides is not determined."""

    verdict: Verdict
    text: str


class ComparedDecision(NamedTuple):
    """A decision of the hub and of gitsched; None for one that has none. `aspects` are what differs, such as "clusters". `location` is
    where the second dump has the record of the hub, else what it is about."""

    subject: Key
    verdict: Verdict
    hub: HubDecision | None
    own: HubDecision | None
    aspects: tuple[str, ...] = ()
    causes: tuple[DifferenceCause, ...] = ()
    location: Location | None = None


class HubComparisonResult(NamedTuple):
    """All compared decisions, by verdict and subject, and the findings about the dumps and their documents. `first` and `second` are the
    times of the dumps."""

    decisions: tuple[ComparedDecision, ...]
    findings: tuple[Finding, ...]
    first: datetime | None
    second: datetime | None

    @property
    def unexplained(self) -> int:
        """The number of differences without a known cause."""
        return sum(any(cause.name == UNEXPLAINED for cause in one.causes) for one in self.decisions if one.verdict == "different")

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """The number of decisions by verdict."""
        found = Counter(decision.verdict for decision in self.decisions)
        return {verdict: found[verdict] for verdict in VERDICTS}
