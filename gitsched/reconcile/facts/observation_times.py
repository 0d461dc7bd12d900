"""When the clusters were observed: the times of the facts that the facts branches have."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.facts_document import read_facts
from gitsched.decide.plan_input import SourceTree
from gitsched.git import FactsBranch
from gitsched.model.cluster_facts import FACTS_KIND
from gitsched.reconcile.facts.facts_branches import open_facts, read_facts_documents
from gitsched.reconcile.run import Facts

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.reconcile.run import RunContext, RunResult


def read_run_observation_times(context: RunContext, run: RunResult) -> Mapping[str, datetime]:
    """Return when the facts of a run were observed, by cluster."""
    facts = open_facts(context, run.plan.totals.config, None) if run.facts else None
    if facts is None:
        return {}
    repository, find_cluster = facts.repository, facts.names.find_cluster
    known = ((name, repository.commit(oid)) for name, oid in run.facts.items() if repository.has_commit(oid))
    branches = tuple(FactsBranch(name, commit, find_cluster(name)) for name, commit in known)
    return read_observation_times(context, Facts(branches, repository=repository), run.plan.totals.config)


def read_observation_times(context: RunContext, facts: Facts, config: Config) -> Mapping[str, datetime]:
    """Return when the facts about each cluster were observed, but not later than they were committed."""
    if not facts.branches:
        return {}
    found = read_facts_documents(context, facts, SourceTree((), {}, (), config, {}))
    read = ((read_facts(document.body), branch) for document, branch in found.list_kinds(FACTS_KIND))
    return {one.cluster: min(one.observed, branch.commit.time) for one, branch in read}
