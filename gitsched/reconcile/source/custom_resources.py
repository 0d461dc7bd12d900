"""Add to a source tree the findings about custom resources whose definitions are in the same source."""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.decide.catalog import RawDocument, read_declared_scopes
from gitsched.decide.custom_resources import check_custom_resources, list_definitions
from gitsched.decide.registry import reserved_groups
from gitsched.git import Repository
from gitsched.model.document import parse_api_group
from gitsched.model.finding import Severity
from gitsched.reconcile.cache.caches import SourceFile, TreeCache
from gitsched.reconcile.cache.reading_rules import ReadingRules
from gitsched.reconcile.source.source_locations import RuleLocations, locate_finding_rules


def add_custom_resource_findings(cache: TreeCache, repository: Repository) -> TreeCache:
    """Return the tree with a finding, at the line of its field, for each mistake in a custom resource.

    A change of a definition requires a complete plan, and one of a custom resource, too, unless files may come and go: then changed
    resources are compared by what is found about them.
    """
    tree = cache.source_tree
    severity: Severity = "error" if tree.config.source.strict else "warning"
    result = check_custom_resources(tree.documents, frozenset(reserved_groups), severity)
    if not result.paths:
        return cache
    findings = locate_finding_rules(result.findings, RuleLocations(repository))
    paths = cache.source_paths
    if cache.reading_rules is None:
        paths = [path for path in paths if path not in result.paths]
    return cache._replace(source_tree=tree._replace(other_findings=(*tree.other_findings, *findings)), source_paths=paths)


def add_defined_kinds(rules: ReadingRules, documents: Iterable[RawDocument]) -> ReadingRules | None:
    """Return the rules with the kinds that documents define; None where a definition has no file of its own that says so."""
    defined = list_definitions(documents, frozenset(reserved_groups))
    paths = {kind: document.origin.path for kind, document in defined.items() if document.origin is not None}
    declared = (found for document in documents for found in read_declared_scopes(document))
    kinds = {(parse_api_group(found.api_version), found.kind) for found in declared}
    return rules._replace(definitions=paths, declared=rules.declared | kinds)


def has_findings(files: Iterable[SourceFile | None], definitions: Iterable[SourceFile | None]) -> bool:
    """Return whether something is found about the custom resources of files by the definitions of others, or one of these is missing."""
    definitions = list(definitions)
    documents = [document for file in (*definitions, *files) if file is not None for document in file.documents]
    return None in definitions or bool(check_custom_resources(documents, frozenset(reserved_groups), "error").findings)
