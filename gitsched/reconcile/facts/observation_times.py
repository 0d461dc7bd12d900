"""When the clusters were observed: the times of the facts that the facts branches have."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.facts_document import read_facts
from gitsched.decide.plan_input import SourceTree
from gitsched.model.cluster_facts import FACTS_KIND
from gitsched.reconcile.facts.facts_branches import read_facts_documents

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.reconcile.run import Fetched, RunContext


def read_observation_times(context: RunContext, fetched: Fetched, config: Config) -> Mapping[str, datetime]:
    """Return when the facts about each cluster were observed, but not later than they were committed."""
    if not fetched.facts.branches:
        return {}
    found = read_facts_documents(context, fetched.facts, SourceTree((), {}, (), config, {}))
    facts = ((read_facts(document.body), branch) for document, branch in found.list_kinds(FACTS_KIND))
    return {one.cluster: min(one.observed, branch.commit.time) for one, branch in facts}
