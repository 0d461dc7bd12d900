"""Commit the facts that `gitsched collect` observes to the facts branches, and propose documents of clusters for the source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from gitsched.apis.gitsched.config import Config
from gitsched.apis.gitsched.facts_document import read_facts, write_facts
from gitsched.apis.gitsched.output_config import OutputConfig
from gitsched.collect.cluster_report import read_report
from gitsched.collect.collector import ClusterResult, Collection, Source, collect
from gitsched.collect.quantization import settle_facts
from gitsched.collect.source_list import list_sources
from gitsched.collect.sources import ClusterTarget, FoundClusters, find_contexts
from gitsched.decide.registry import load_cluster_formats
from gitsched.decide.validation import validate_document
from gitsched.git import FactsNames, FactsRepository
from gitsched.git.facts import CommitAuthor
from gitsched.kubectl.client import KubectlOptions
from gitsched.kubectl.proxy import ClusterReader
from gitsched.model.cluster_facts import FACTS_KIND, ClusterFacts
from gitsched.model.cluster_report import CLUSTER_REPORT, read_cluster_report, write_cluster_report
from gitsched.model.document import Body, parse_api_group
from gitsched.model.errors import Conflict, GitschedError, Permanent
from gitsched.model.planned_files import NewBlob, WritableFile
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.facts.facts_branches import open_facts
from gitsched.reconcile.facts.proposed_clusters import drop_invalid_metadata
from gitsched.reconcile.facts.scores import MAX_ATTEMPTS, find_file, make_author
from gitsched.reconcile.fetch import read_source_config
from gitsched.reconcile.run import RunContext, open_context
from gitsched.reconcile.run_settings import RunSettings
from gitsched.reconcile.source.source_reader import SourceReader
from gitsched.render.yaml import dump

OWN_FILE = "cluster.yaml"
"""The file with the facts on the branch of a cluster."""
REPORT_FILE = "report.yaml"
"""The file with the report on the branch of a cluster."""
DIRECTORY = "clusters"
"""The directory with the files of all clusters on the shared branch."""
_HEADER = "# Written by `gitsched collect`.\n"


class CollectOptions(NamedTuple):
    """What to collect: `contexts` as NAME or CLUSTER=NAME, `listed` contexts by their names in the kubeconfig, `sources` as
    (name, context), or the cluster `own`, in which gitsched runs.

    `seconds` limit each cluster. `refresh` is the age at which unchanged facts are written again, None for half of source.facts.staleAfter.
    `branch` is the branch to commit to, `output_branch` the output branch about which the cluster `own` reports; "" for those that the
    settings of the source name.
    """

    kubectl: KubectlOptions
    contexts: tuple[str, ...] = ()
    sources: tuple[tuple[str, str], ...] = ()
    own: str = ""
    seconds: float = 120.0
    refresh: timedelta | None = None
    branch: str = ""
    output_branch: str = ""
    listed: tuple[str, ...] = ()


class CollectedFile(NamedTuple):
    """The file of one cluster: its path on the branch, its text, and whether that differs."""

    cluster: str
    path: str
    text: str
    changed: bool


class CollectRun(NamedTuple):
    """The result: what was collected, the files, the branch that they are for, and the new commit on it, None if there is none."""

    collection: Collection
    files: tuple[CollectedFile, ...]
    branch: str
    commit: str | None = None


class _Destination(NamedTuple):
    """Where the facts go: the branch, and the settings."""

    repository: FactsRepository
    branch: str
    config: Config
    author: CommitAuthor

    def name_file(self, cluster: str, own: bool) -> str:
        return OWN_FILE if own else f"{DIRECTORY}/{cluster}.yaml"


def collect_facts(settings: RunSettings, options: CollectOptions, *, write: bool = True) -> CollectRun:
    """Observe the clusters, and with `write` commit their facts. A cluster that cannot be observed keeps the file that it has.

    Raises Permanent if the settings name no branch, and Conflict if other processes move the branch again and again.
    """
    context = open_context(settings)
    destination = _open_destination(context, options)
    facts = destination.repository
    facts.fetch()

    def find_facts(cluster: str) -> ClusterFacts | None:
        return _read_last(context, destination, destination.name_file(cluster, bool(options.own)))

    found, sources = _list_targets(options)
    collection = collect(found, sources, find_facts, settings.now.replace(microsecond=0), options.seconds)
    refresh = options.refresh if options.refresh is not None else destination.config.source.facts.stale_after / 2
    checked = tuple(check_result(result) for result in collection.results)
    collection = collection._replace(results=checked)
    is_observed = any(result.collected is not None for result in checked)
    report, notes = _read_report(context, destination, options) if options.own and is_observed else (None, ())
    collection = collection._replace(notes=(*collection.notes, *notes))
    for attempt in range(1, MAX_ATTEMPTS + 1):
        files = [
            _make_file(context, destination, result, refresh, own=bool(options.own))
            for result in checked
            if result.collected is not None
        ]
        files += [report] if report is not None else []
        if not write:
            return CollectRun(collection, tuple(files), destination.branch)
        try:
            commit = _commit(context, destination, files)
            return CollectRun(collection, tuple(files), destination.branch, commit)
        except Conflict:
            if attempt == MAX_ATTEMPTS:
                raise
            facts.fetch()
    raise AssertionError("unreachable")


def list_source_names() -> tuple[str, ...]:
    """Return the names of the sources that are read from one cluster."""
    return tuple(list_sources({name: one.hub for name, one in load_cluster_formats().items() if one.hub is not None}))


def list_document_apis() -> tuple[str, ...]:
    """Return the policy APIs that can propose documents of clusters."""
    return tuple(load_cluster_formats())


def _list_targets(options: CollectOptions) -> tuple[FoundClusters, list[Source]]:
    if options.own:
        return FoundClusters((), (ClusterTarget(options.own, "this cluster", options.kubectl),)), []
    readers = list_sources({name: one.hub for name, one in load_cluster_formats().items() if one.hub is not None})
    sources = [
        Source(name, readers[name], options.kubectl._replace(context=context or options.kubectl.context))
        for name, context in options.sources
    ]
    return find_contexts(options.contexts, options.kubectl, options.listed), sources


def _open_destination(context: RunContext, options: CollectOptions) -> _Destination:
    settings = context.settings
    if options.branch:
        remote = None if context.source.url is not None else settings.push
        output = options.output_branch or settings.output_branch or OutputConfig().branch
        names = FactsNames(options.branch, reserved=frozenset((output,)))
        repository = FactsRepository(context.source, names, remote)
        return _Destination(repository, options.branch, Config(), make_author(repository.repository, Config(), settings))
    config = read_source_config(context)
    named, allowed = config.source.facts.repository, settings.facts_repository
    if named and named != allowed:
        raise Permanent(f"source.facts.repository is {named}, and the operator does not name it: pass --facts-repository {named}")
    facts = open_facts(context, config, settings.push)
    branch = config.source.facts.branch
    if facts is not None and options.own:
        branch = facts.names.name_cluster_branch(options.own) if config.source.facts.cluster_branches else ""
    if facts is None or not branch:
        member, example = ("clusterBranches", "cluster-facts/{cluster}") if options.own else ("branch", "facts")
        raise Permanent(f"source.facts.{member} is not set: set it, for example to {example}, or pass --facts-branch")
    return _Destination(facts, branch, config, make_author(facts.repository, config, settings))


def _read_last(context: RunContext, destination: _Destination, path: str) -> ClusterFacts | None:
    """Return the facts of the last time; None if there are none that are valid."""
    body = _read_document(context, destination, path, FACTS_KIND)
    return read_facts(body) if body is not None else None


def _read_document(context: RunContext, destination: _Destination, path: str, kind: tuple[str, str]) -> Body | None:
    """Return the first valid document of a kind in a file of the branch."""
    facts = destination.repository
    head = facts.find(destination.branch)
    blob = find_file(facts.repository, head.tree if head else None, path)
    if blob is None:
        return None
    for parsed in SourceReader(facts.repository, context.caches.files).read(blob, path).documents:
        found = parse_api_group(str(parsed.body.get("apiVersion"))), parsed.body.get("kind")
        if not parsed.broken and found == kind:
            return parsed.body
    return None


def check_result(result: ClusterResult) -> ClusterResult:
    """Return the result, or a failure if its facts are not valid, as a hub may have anything."""
    if result.collected is None:
        return result
    problem = find_problem(write_facts(result.collected.facts))
    return result._replace(collected=None, failure=f"its facts cannot be: {problem}") if problem else result


def find_problem(body: Body) -> str:
    """Return the first error of a document; "" if it is valid."""
    errors = [issue for issue in validate_document(body).issues if issue.severity == "error"]
    return f"{'.'.join(map(str, errors[0].pointer))}: {errors[0].message}" if errors else ""


def _make_file(
    context: RunContext, destination: _Destination, result: ClusterResult, refresh: timedelta, *, own: bool
) -> CollectedFile:
    assert result.collected is not None
    path = destination.name_file(result.cluster, own)
    before = _read_last(context, destination, path)
    facts = settle_facts(result.collected.facts, before, refresh)
    return CollectedFile(result.cluster, path, _HEADER + dump(write_facts(facts)), facts != before)


def _commit(context: RunContext, destination: _Destination, files: Sequence[CollectedFile]) -> str | None:
    """Commit the files that changed. Files of other clusters stay: nobody knows whether these are gone or were not asked."""
    changed = [file for file in files if file.changed]
    if not changed:
        return None
    names = list(dict.fromkeys(file.cluster for file in changed))
    subject = f"facts: {', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"
    contents: Mapping[str, WritableFile | None] = {file.path: NewBlob(file.text.encode()) for file in changed}
    return destination.repository.append(
        destination.branch,
        contents,
        subject,
        history=destination.config.source.facts.history,
        author=destination.author,
        time=context.settings.now.replace(microsecond=0),
    )


def _read_report(
    context: RunContext, destination: _Destination, options: CollectOptions
) -> tuple[CollectedFile | None, tuple[str, ...]]:
    """Return the file with the report of the cluster in which gitsched runs, and notes about what could not be read. None if no delivery
    tool has applied the output branch."""
    before = _read_document(context, destination, REPORT_FILE, CLUSTER_REPORT)
    known = read_cluster_report(before) if before is not None else None
    branch = options.output_branch or destination.config.output.branch
    notes: list[str] = []
    now = context.settings.now.replace(microsecond=0)
    try:
        with ClusterReader(options.kubectl, options.seconds) as reader:
            report = read_report(reader, options.own, branch, known, now, notes.append)
    except GitschedError as error:
        return None, (f"there is no report: {error}",)
    if report is None:
        return None, tuple(notes)
    text = _HEADER + dump(write_cluster_report(report))
    return CollectedFile(options.own, REPORT_FILE, text, report != known), tuple(notes)


class ProposedFile(NamedTuple):
    """A proposed document of a cluster: its path, or why there is none; and notes about what it lacks."""

    cluster: str
    path: Path
    text: str = ""
    reason: str = ""
    notes: tuple[str, ...] = ()


def propose_clusters(collection: Collection, api: str, directory: Path) -> list[ProposedFile]:
    """Return a document for the source for each collected cluster, in a file of its own. A file that exists is not changed."""
    write, files = load_cluster_formats()[api].write, []
    for result in collection.results:
        path = directory / f"{result.cluster}.yaml"
        if result.collected is None:
            continue
        body, notes = drop_invalid_metadata(write(result.collected))
        problem = "it exists" if path.exists() or path.is_symlink() else find_problem(body)
        files.append(ProposedFile(result.cluster, path, "" if problem else dump(body), problem, () if problem else notes))
    return files
