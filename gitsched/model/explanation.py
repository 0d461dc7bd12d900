"""Why one workload is where it is, as plain data: what `gitsched explain` shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from gitsched.model.decision import Verdict
from gitsched.model.finding import Finding, Rule


class Loser(NamedTuple):
    """A policy that also selects the workload, and why it did not get it."""

    policy: str
    why: str


class Attempt(NamedTuple):
    """One ordered cluster group. `name` is "" for a policy without groups; `verdict` is "scheduled", "no-fit", "unschedulable",
    "error" or "not tried"; `message` says why it was not taken."""

    name: str
    verdict: str
    message: str = ""


class Candidate(NamedTuple):
    """How one cluster fared in one group.

    `location` is the file:line of the rule that failed, "" when nobody knows or nothing failed. `group` is "" for a policy without
    groups. `rule` is what `location` can be told more exactly from. `room` is the arithmetic of how many replicas fit, "" where it does
    not matter, `arithmetic` how its score came about, "" where the scores themselves say it.
    """

    verdict: Verdict
    location: str = ""
    group: str = ""
    rule: Rule | None = None
    room: str = ""
    arithmetic: str = ""


class Share(NamedTuple):
    """What one cluster gets. `weight` is None where nothing is weighed, `replicas` where nothing is counted."""

    cluster: str
    weight: int | None = None
    replicas: int | None = None


class Override(NamedTuple):
    """A policy that changes the manifest in some of the clusters where the workload runs; `changes` names its overriders."""

    policy: str
    location: str
    clusters: tuple[str, ...]
    changes: tuple[str, ...]


class Table(NamedTuple):
    """What else was known when it was decided; every row has as many cells as there are columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Change(NamedTuple):
    """One change of what somebody wrote: `text` completes "it would be chosen if". `rule` is what `location` can be told more exactly
    from."""

    text: str
    location: str = ""
    rule: Rule | None = None


class Counterfactual(NamedTuple):
    """What would bring a workload to a cluster: all of `changes` together, in the order in which they were found.

    `enough` says that it was decided once more with them, and chosen; then `gets` is how many replicas it had there, None where nothing
    is counted. Without it they are what is in the way as far as is known.
    """

    cluster: str
    changes: tuple[Change, ...] = ()
    enough: bool = False
    gets: int | None = None


class Explanation(NamedTuple):
    """The whole way of one workload through the scheduler.

    `workload` is the text of its key and `location` its file:line. `policy` is "" where no policy selects it; `policy_reason` says
    why this policy and `claim` what an earlier decision has to do with it. `attempts` are the groups in the order they were tried,
    `candidates` the clusters by name: all of them in the group that was used, and those that a group is for in the others that were
    tried. `selection` are the lines that say what spread constraints made of them. `division` is how the replicas are shared and
    `division_rule` the lines that say by which rule. `trigger` says why the workload was, or was not, scheduled anew; `result` is where
    it runs, and `overrides` what changes its manifest there, in the order in which they are applied. `attached` are the workloads that
    bring it along, with their places. `advice` says what would have to be otherwise for clusters that were not chosen, `unasked` for how
    many more of them nobody looked; `narrowed` says that it is only about some clusters. `among` is what the candidates are; `tables` come
    after the result. `native` is the same as the API's own debugging tools say it, where it has any.
    """

    workload: str
    location: str = ""
    policy: str = ""
    policy_reason: str = ""
    losers: tuple[Loser, ...] = ()
    claim: str = ""
    attempts: tuple[Attempt, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    selection: tuple[str, ...] = ()
    division: tuple[Share, ...] = ()
    division_rule: tuple[str, ...] = ()
    trigger: str = ""
    result: tuple[Share, ...] = ()
    overrides: tuple[Override, ...] = ()
    findings: tuple[Finding, ...] = ()
    attached: tuple[str, ...] = ()
    among: str = "cluster"
    advice: tuple[Counterfactual, ...] = ()
    unasked: int = 0
    narrowed: bool = False
    tables: tuple[Table, ...] = ()
    native: Mapping[str, Any] | None = None
