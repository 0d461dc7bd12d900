"""Add to a source tree the findings about custom resources whose definitions are in the same source."""

from __future__ import annotations

from gitsched.decide.custom_resources import check_custom_resources
from gitsched.decide.registry import reserved_groups
from gitsched.git import Repository
from gitsched.model.finding import Severity
from gitsched.reconcile.cache.caches import TreeCache
from gitsched.reconcile.source_locations import locate_finding_rules


def add_custom_resource_findings(cache: TreeCache, repository: Repository) -> TreeCache:
    """Return the tree with a finding, at the line of its field, for each mistake in a custom resource.

    A change of a custom resource or of its definition requires a complete plan, since the findings depend on both.
    """
    tree = cache.source_tree
    severity: Severity = "error" if tree.config.source.strict else "warning"
    result = check_custom_resources(tree.documents, frozenset(reserved_groups), severity)
    if not result.paths:
        return cache
    findings = locate_finding_rules(result.findings, repository)
    return cache._replace(
        source_tree=tree._replace(other_findings=(*tree.other_findings, *findings)),
        source_paths=[path for path in cache.source_paths if path not in result.paths],
    )
