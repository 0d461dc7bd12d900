"""Leave out facts branches whose newest commit is not signed with a key that the operator lists for the cluster."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.git import FactsBranch, Repository
from gitsched.git.signatures import verify_commit
from gitsched.model.errors import Permanent
from gitsched.model.finding import Finding
from gitsched.reconcile.run import Facts

SHARED = "*"
"""The name in the list of keys for the branch of all clusters."""


def verify_branches(facts: Facts, repository: Repository, keys: Mapping[str, tuple[str, ...]]) -> Facts:
    """Return the facts without the branches that no listed key has signed, and findings about these."""
    accepted: list[FactsBranch] = []
    findings: list[Finding] = []
    for branch in facts.branches:
        owner = branch.cluster or SHARED
        reason = _find_problem(repository, branch, keys.get(owner, ()))
        if not reason:
            accepted.append(branch)
            continue
        message = (
            f"the facts branch {branch.name} is not read: its commit {branch.commit.oid[:12]} must be signed with a key that the operator "
            f"lists for {'the branch of all clusters' if owner == SHARED else f'the cluster {owner}'}, and {reason}"
        )
        findings.append(Finding("warning", "facts-unsigned", message))
    return facts._replace(branches=tuple(accepted), findings=(*facts.findings, *findings))


def _find_problem(repository: Repository, branch: FactsBranch, keys: tuple[str, ...]) -> str:
    """Return why a branch does not count; "" if it does."""
    if not keys:
        return "none is listed"
    try:
        return verify_commit(repository, branch.commit.oid, keys).reason
    except Permanent as error:  # a key that cannot be read must not stop the runs of the fleet
        return str(error)
