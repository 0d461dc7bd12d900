"""The options of a run, completed by the operator's settings."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gitsched.apis.gitsched.operator_config import NO_OPERATOR_CONFIG, OperatorConfig
from gitsched.model.allow_list import AllowList, HostRule, TokenRule
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.gitsched.guard_config import GuardLimit
    from gitsched.diff.plans import ReviewedPlan
    from gitsched.model.progress import Progress


class PinnedCommits(NamedTuple):
    """Commits that count in place of the heads of branches, so that several machines plan the same: that of the output branch, "" for none,
    and those of the facts branches, each with its name and its cluster."""

    output: str
    facts: tuple[tuple[str, str, str], ...] = ()


class RunChoices(NamedTuple):
    """What the options of one command allow, release or compare with.

    `allowed` are the digests of withheld changes that are allowed, `released_clusters` the clusters that held workloads may leave,
    `guard_limits` limits that take precedence over those of gitsched.yaml. With `allow_older`, the source commit may be an older one than
    that of the last run. `reviewed` is the reviewed plan, where the source commit has no trailer with it; with `require_reviewed` no other
    plan is written. With `verify`, a plan that starts from the state of the last run is compared with a complete one.
    `pinned` are commits that count in place of the heads of the output branch and the facts branches. With `within_limits`, there need not
    be a plan of changes that exceed the limits of the guard.
    """

    allowed: tuple[str, ...] = ()
    released_clusters: tuple[str, ...] = ()
    guard_limits: tuple[GuardLimit, ...] = ()
    allow_older: bool = False
    reviewed: ReviewedPlan | None = None
    require_reviewed: bool = False
    verify: bool = False
    pinned: PinnedCommits | None = None
    within_limits: bool = False


class RunSettings(NamedTuple):
    """Options of a run. None means the value of gitsched.yaml, else the default.

    `location` is the path or URL of the source. `revision` and `worktree` (uncommitted files count) are for runs that write nothing.
    `output` is another repository for the output, `push` the name or URL of a remote. `signing` is (ssh or gpg, key).

    `choices` are what the options of one command allow, release or compare with.

    `observations` is live or recorded. `hosts`, `status_hosts`, `remotes` and `tokens` are the allow-list, with an entry for each option:
    the only hosts of metrics providers and of forges that live observations may query, the only other repositories that may be fetched,
    and the only tokens that may be read. `trusted` says that documents of the source may choose which providers are queried.

    `operator` is the content of `operator_file`; `open_context` fills in what the other fields leave open. `output_path` is the directory
    in the output branch. `source_keys` are the public keys that must sign source commits, None for those of the trusted branch.

    `findings_only` says that the caller needs findings only, so that the location of the output does not matter.
    With `strict`, every issue of a schema is an error.

    `facts_repository` is the other repository that may have the facts branches. `facts_keys` are the public keys, by cluster, of which one
    must have signed the branch of the cluster; the name "*" is for the branch of all clusters. Empty: signatures are not required.

    `state` says whether the state of the last plan beside the output branch is used: auto (signed with one of
    the public keys `state_keys`, for large fleets), on (whoever can push there is trusted, unless there are keys) or off.

    `progress` is called during long work; it has no effect on the result.
    """

    now: datetime
    cache: Path
    location: str = "."
    branch: str | None = None
    revision: str | None = None
    worktree: bool = False
    output: str | None = None
    output_branch: str | None = None
    output_path: str | None = None
    push: str | None = None
    paths: tuple[str, ...] = ()
    choices: RunChoices = RunChoices()
    author: tuple[str, str] | None = None
    signing: tuple[str, str] | None = None
    observations: str = "live"
    hosts: tuple[tuple[HostRule, ...], ...] = ()
    status_hosts: tuple[tuple[HostRule, ...], ...] = ()
    remotes: tuple[tuple[str, ...], ...] = ()
    tokens: tuple[tuple[TokenRule, ...], ...] = ()
    operator: OperatorConfig = NO_OPERATOR_CONFIG
    operator_file: Path | None = None
    source_keys: tuple[str, ...] | None = None
    trusted: bool = True
    findings_only: bool = False
    strict: bool = False
    facts_repository: str | None = None
    facts_keys: Mapping[str, tuple[str, ...]] = {}
    progress: Progress | None = None
    state: str = "auto"
    state_keys: tuple[str, ...] = ()

    @property
    def allow(self) -> AllowList:
        """What the operator allows to contact and to read."""
        return AllowList(*(tuple(chain(*lists)) for lists in (self.hosts, self.status_hosts, self.remotes, self.tokens)))

    @property
    def without_choices(self) -> RunSettings:
        """These settings without what the options of one command allow, release or compare with."""
        return self._replace(choices=RunChoices())

    def complete(self, operator: OperatorConfig) -> RunSettings:
        """Return the settings with those of the operator's file where options leave them open."""
        output, allow, limits = operator.output, operator.allow, self.choices.guard_limits
        given = {(limit.scope, limit.effect) for limit in limits}
        own: dict[str, Any] = {
            "output": output.repository or None,
            "output_branch": output.branch or None,
            "push": output.push or None,
            "author": output.author,
            "signing": output.signing,
            "hosts": (allow.metrics,),
            "status_hosts": (allow.statuses,),
            "remotes": (allow.remotes,),
            "tokens": (allow.tokens,),
            "facts_repository": operator.facts_repository or None,
            "facts_keys": {cluster: (key,) for cluster, key in operator.facts_keys.items()},
            "state_keys": operator.state_keys,
        }
        return self._replace(
            operator=operator,
            output_path=output.path if self.output_path is None else self.output_path,
            source_keys=operator.source_keys if self.source_keys is None else self.source_keys,
            choices=self.choices._replace(
                guard_limits=(*limits, *(limit for limit in operator.guard_limits if (limit.scope, limit.effect) not in given))
            ),
            **{name: value for name, value in own.items() if not getattr(self, name)},
        )
