"""Read the documents of the facts branches, which machines write: scores, facts and reports of clusters, and from the branch of a cluster
only its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.source_config import CLUSTER_PLACEHOLDER
from gitsched.decide.catalog import RawDocument, make_origin, make_raw_document
from gitsched.decide.registry import policy_apis
from gitsched.git import FactsBranch, FactsNames, FactsRepository, Repository, TreeEntry, open_source
from gitsched.git.facts import MAX_BRANCHES
from gitsched.git.remote_refs import find_remote_url
from gitsched.model.cluster_facts import FACTS_KIND
from gitsched.model.cluster_report import CLUSTER_REPORT
from gitsched.model.errors import Permanent
from gitsched.model.finding import Finding, Location, locate_origin
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.run import Facts, RunContext
from gitsched.reconcile.source.source_reader import SourceReader, is_manifest_path, make_problem_finding
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.decide.plan_input import SourceTree
    from gitsched.model.commit import Commit

MAX_FILES, MAX_CLUSTER_FILES = 5_000, 10
MAX_CLUSTER_FILE_SIZE = 256 * 1024
"""Limits of the branch of all clusters and of the branch of one cluster; the size in bytes."""
MAX_ENTRIES = 10_000
"""Files and directories of one branch; small trees can refer to each other so often that their listing never ends."""
FACTS_MISSING = "facts-missing"
"""Code of the finding that there is no facts branch of the name in the settings."""
MAX_FINDINGS = 20
"""Findings about one branch; the others are counted, so that a cluster cannot fill the report."""
CLUSTER_KINDS = frozenset((FACTS_KIND, CLUSTER_REPORT))
"""Kinds whose documents have the name of their cluster."""

_Identity = tuple[str, str, str, str]


class FactsDocuments(NamedTuple):
    """The valid documents of the facts branches, each identity once, with the time of their commit; the branches with files that cannot
    be used, by path; and findings."""

    documents: tuple[tuple[RawDocument, FactsBranch], ...] = ()
    broken: tuple[tuple[str, FactsBranch], ...] = ()
    findings: tuple[Finding, ...] = ()

    def list_kinds(self, *kinds: tuple[str, str]) -> list[tuple[RawDocument, FactsBranch]]:
        """Return the documents of some kinds."""
        return [(document, branch) for document, branch in self.documents if (document.group, document.kind) in kinds]


def open_facts(context: RunContext, config: Config, push: str | None) -> FactsRepository | None:
    """Open the facts branches that settings name; None if they name none. `push` is the remote of the output branch, or None."""
    facts, source, other = config.source.facts, context.source, context.settings.facts_repository
    if not facts.has_branches:
        return None
    prefix, _, suffix = facts.cluster_branches.partition(CLUSTER_PLACEHOLDER)
    output = (context.settings.output_branch or config.output.branch).removeprefix("refs/heads/")
    if other is not None:
        other_source = open_source(other, cache=context.settings.cache)
        return FactsRepository(other_source, FactsNames(facts.branch, prefix, suffix, frozenset((output,))), None)
    if source.url is None and context.settings.output:
        # The remote belongs to the other repository, where the output is.
        push = "origin" if find_remote_url(source.repository, "origin") else None
    reserved = frozenset(filter(None, (output, source.branch_name(context.settings.branch or config.source.branch or None))))
    return FactsRepository(source, FactsNames(facts.branch, prefix, suffix, reserved), None if source.url is not None else push)


def fetch_facts(context: RunContext, config: Config, push: str | None) -> Facts:
    """Fetch the facts branches; see `open_facts`. Branches without a required signature are left out."""
    named, allowed = config.source.facts.repository, context.settings.facts_repository
    if named and named != allowed:
        return Facts(findings=(_report_repository(named, allowed),))
    repository = open_facts(context, config, push)
    if repository is None:
        return Facts()
    branches = repository.fetch()
    pinned = context.settings.choices.pinned
    if pinned is not None:
        branches = tuple(repository.pin(*branch) for branch in pinned.facts)
    shared = config.source.facts.branch
    missing = shared if shared and all(branch.name != shared for branch in branches) else ""
    found = Facts(branches, missing, repository.ignored, repository.repository if allowed else None)
    if not context.settings.facts_keys:
        return found
    from gitsched.reconcile.facts.facts_signatures import verify_branches  # few fleets require signatures of clusters

    return verify_branches(found, repository.repository, context.settings.facts_keys)


def read_facts_documents(context: RunContext, facts: Facts, source: SourceTree) -> FactsDocuments:
    """Read all documents of the facts branches."""
    findings = list(facts.findings)
    findings += [_report_missing_branch(facts.missing)] if facts.missing else []
    findings += [_report_ignored_branches(facts.ignored)] if facts.ignored else []
    reader = SourceReader(facts.repository or context.source.repository, context.caches.files, source.config)
    owners = {document.identity: _locate(document) for document in source.documents if _is_read(document)}
    documents: list[tuple[RawDocument, FactsBranch]] = []
    broken: list[tuple[str, FactsBranch]] = []
    listed = [_list_entries(reader.repository, branch) for branch in facts.branches]
    reader.load(entry for entries in listed if not isinstance(entries, Permanent) for entry in entries)
    for branch, entries in zip(facts.branches, listed, strict=True):
        findings += _limit_findings(branch, _read_branch(reader, branch, entries, owners, documents, broken))
    context.caches.plan_size = max(context.caches.plan_size, len(context.caches.files.parsed))  # the next run reads the same files
    return FactsDocuments(tuple(documents), tuple(broken), tuple(findings))


def list_score_kinds() -> frozenset[tuple[str, str]]:
    """Return the kinds of scores that are read from facts branches."""
    return frozenset(api.scoring.score for api in policy_apis.values() if api.scoring is not None)


def _is_read(document: RawDocument) -> bool:
    return (document.group, document.kind) in list_score_kinds() | CLUSTER_KINDS


def _find_owner(document: RawDocument) -> str:
    """Return the cluster that a document is about."""
    return document.name if (document.group, document.kind) in CLUSTER_KINDS else document.namespace


def _locate(document: RawDocument) -> str:
    return str(locate_origin(document.origin)) if document.origin else "the source"


def _read_branch(
    reader: SourceReader,
    branch: FactsBranch,
    entries: list[TreeEntry] | Permanent,
    owners: dict[_Identity, str],
    documents: list[tuple[RawDocument, FactsBranch]],
    broken: list[tuple[str, FactsBranch]],
) -> Iterator[Finding]:
    """Append the documents of a branch and the paths of its broken files, and yield its findings. They are warnings: a machine must not
    fail the runs of the fleet."""
    limit = MAX_CLUSTER_FILES if branch.cluster else MAX_FILES
    if isinstance(entries, Permanent):
        yield Finding("warning", "facts-ignored", f"the facts branch {branch.name} is not read: {entries}")
        return
    if len(entries) > limit:
        message = (
            f"the facts branch {branch.name} has more than {limit} files: the others are not read, first {entries[limit].path}"
        )
        yield Finding("warning", "facts-ignored", message, Location(f"{branch.name}:{entries[limit].path}", 1, 1))
    for entry in entries[:limit]:
        path = f"{branch.name}:{entry.path}"
        where = Location(path, 1, 1)
        if entry.mode not in REGULAR_FILE_MODES:
            broken.append((entry.path, branch))
            message = "it is no regular file, such as a symbolic link: it is not read; replace it with a file"
            yield Finding("warning", "facts-ignored", message, where)
            continue
        if branch.cluster and reader.repository.blob_size(entry.blob) > MAX_CLUSTER_FILE_SIZE:
            broken.append((entry.path, branch))
            message = (
                f"the file has more than {MAX_CLUSTER_FILE_SIZE} bytes: it is not read; remove what a facts branch does not hold"
            )
            yield Finding("warning", "facts-ignored", message, where)
            continue
        file = reader.read(entry.blob, path)
        if file.reason or any(parsed.broken for parsed in file.documents):
            broken.append((entry.path, branch))
        if file.reason:
            message = f"the file is not read: {file.reason}; a facts branch holds only {_name_kinds()}"
            yield Finding("warning", "facts-ignored", message, where)
        for problem in file.issues:
            yield make_problem_finding(problem, path)._replace(severity="info" if problem.severity == "info" else "warning")
        for parsed in file.documents:
            document = make_raw_document(parsed.body, make_origin(parsed, path, entry.blob))
            resource = (document.kind, document.namespace, document.name)
            location = Location(path, parsed.line, parsed.column)
            if not _is_read(document):
                held = f"a facts branch holds only {_name_kinds()}, not {document.kind}"
                message = f"{held}: the document is not read; commit it to the source"
                yield Finding("warning", "facts-ignored", message, location, resource)
            elif branch.cluster and _find_owner(document) != branch.cluster:
                yield Finding("warning", "facts-foreign", _describe_foreign(document, branch), location, resource)
            elif not parsed.broken:
                owner = owners.setdefault(document.identity, str(location))
                if owner != str(location):
                    message = f"{_name(document)} is also in {owner}, which counts: this one is not read; keep one of them"
                    yield Finding("warning", "facts-duplicate", message, location, resource)
                else:
                    documents.append((document, branch))


def _name_kinds() -> str:
    return " or ".join(sorted(kind for _, kind in list_score_kinds() | CLUSTER_KINDS))


def _name(document: RawDocument) -> str:
    return f"{document.kind} {f'{document.namespace}/' if document.namespace else ''}{document.name}"


def _describe_foreign(document: RawDocument, branch: FactsBranch) -> str:
    member = "name" if (document.group, document.kind) in CLUSTER_KINDS else "namespace"
    return (
        f"{_name(document)} is not of the cluster {branch.cluster}, to which the branch {branch.name} belongs: the document is not read; "
        f"set metadata.{member}: {branch.cluster}"
    )


def _list_entries(repository: Repository, branch: FactsBranch) -> list[TreeEntry] | Permanent:
    """Return the files of a branch; the reason where it cannot be read, because a cluster must not stop the runs of the fleet."""
    try:
        entries = repository.entries(branch.commit.tree, limit=MAX_ENTRIES)
    except Permanent as error:
        return error
    return [entry for entry in entries if not entry.unsafe and is_manifest_path(entry.path)]


def _limit_findings(branch: FactsBranch, findings: Iterator[Finding]) -> Iterator[Finding]:
    count = 0
    for finding in findings:
        count += 1
        if count <= MAX_FINDINGS:
            yield finding
    if count > MAX_FINDINGS:
        message = f"the facts branch {branch.name} has {count - MAX_FINDINGS} more findings"
        yield Finding("warning", "facts-ignored", message)


def _report_missing_branch(name: str) -> Finding:
    message = (
        f"source.facts.branch is {name}, and there is no such branch: nothing is read from it; run `gitsched scores` or `gitsched "
        "collect`, or fetch the branch (git fetch origin, or --fetch)"
    )
    return Finding("warning", FACTS_MISSING, message)


def _report_ignored_branches(count: int) -> Finding:
    message = (
        f"there are more than {MAX_BRANCHES} facts branches: the last {count} by name are not read; remove those of old clusters"
    )
    return Finding("warning", "facts-ignored", message)


def _report_repository(named: str, allowed: str | None) -> Finding:
    found = f"the operator names {allowed}" if allowed else "the operator names no repository of facts"
    message = (
        f"source.facts.repository is {named}, and {found}: no facts are read; pass --facts-repository {named}, or set "
        "GITSCHED_FACTS_REPOSITORY"
    )
    return Finding("warning", "facts-repository", message)


def find_recorded_facts(repository: Repository, commits: Mapping[str, str], facts: Facts) -> Facts:
    """Return the facts branches at the commits that an earlier run recorded; a branch whose commit is not available is as it is now."""

    def find_commit(branch: FactsBranch) -> Commit:
        oid = commits.get(branch.name, "")
        return repository.commit(oid) if repository.has(oid) else branch.commit

    branches = tuple(branch._replace(commit=find_commit(branch)) for branch in facts.branches if branch.name in commits)
    return Facts(branches, repository=facts.repository)
