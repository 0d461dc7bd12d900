"""Compute the scores that ClusterScores documents define from current metric values, and write them to the facts branch or to files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from gitsched.apis.gitsched.config import FILE, Config
from gitsched.apis.gitsched.output_config import AuthorConfig
from gitsched.apis.policy_api import ClusterScoring, ScoreInput, ScoreMeasurement
from gitsched.decide.catalog import RawDocument
from gitsched.decide.plan_input import SourceTree
from gitsched.decide.registry import policy_apis
from gitsched.git import FactsRepository, Repository, make_signer
from gitsched.git.facts import CommitAuthor
from gitsched.metrics.observer import ClusterValues, query_vector
from gitsched.metrics.queries import InvalidMetricValue, ProviderUnreachable
from gitsched.model.allow_list import AllowList
from gitsched.model.document import Body
from gitsched.model.errors import Conflict, Permanent
from gitsched.model.finding import Finding, Location, locate_field, locate_origin
from gitsched.model.planned_files import NewBlob, WritableFile
from gitsched.model.similar_names import find_similar
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.facts.facts_branches import open_facts
from gitsched.reconcile.fetch import fetch
from gitsched.reconcile.run import Fetched, RunContext, open_context
from gitsched.reconcile.run_settings import RunSettings
from gitsched.reconcile.source.source_locations import RuleLocations, locate_finding_rules
from gitsched.reconcile.source.source_reader import SourceReader
from gitsched.reconcile.source.source_tree import load
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES
from gitsched.reconcile.source_plan import read_source
from gitsched.render.yaml import dump

MAX_ATTEMPTS = 5
MAX_NAMES, MAX_QUERY_LENGTH = 20, 200
_PATH = re.compile(r"(?!(?:.*/)?\.)(?!/)(?!.*//)[^\x00-\x1f\\]+\.ya?ml")
"""A file below the root whose name and directories do not begin with a dot."""
_HEADER = "# Written by `gitsched scores` from the {kind} {name}. Change that instead.\n"
_MARK = _HEADER.partition("{")[0].encode()


class ScoreFile(NamedTuple):
    """The result of one definition: the text of its file, or why the file does not change. `changed` says whether it differs."""

    name: str
    path: str
    text: str
    clusters: int
    changed: bool
    failure: str = ""


class ScoreRun(NamedTuple):
    """The files of all definitions. `branch` is the facts branch, "" if the files are for the worktree; `commit` is the new commit on it,
    or None."""

    files: tuple[ScoreFile, ...]
    findings: tuple[Finding, ...]
    branch: str
    commit: str | None = None


class _Measured(NamedTuple):
    """A definition with the values of each measurement by cluster; `failure` says which query failed, or is ""."""

    scoring: ClusterScoring
    definition: RawDocument
    clusters: frozenset[str]
    values: Mapping[str, Mapping[str, float]]
    failure: str

    @property
    def path(self) -> str:
        return str(self.definition.body["spec"].get("path") or f"scores/{self.definition.name}.yaml")


def produce_scores(settings: RunSettings, *, write: bool = True) -> ScoreRun:
    """Query the values of all score definitions in the source and compute the scores.

    With `write`, commit them to the facts branch if the settings name one. Raises Permanent if a definition is broken, or there is none.
    """
    context = open_context(settings)
    settings, fetched = context.settings, fetch(context)
    source = read_source(context, fetched, partial(_load_definitions, context, fetched))
    _check_destination(source)
    measured, findings = _measure_all(source, settings)
    facts = open_facts(context, source.config, settings.push)
    branch = source.config.source.facts.branch
    located = locate_finding_rules(findings, RuleLocations(context.source.repository))
    if facts is None or not branch:
        files = _make_files(context, source.config, measured, fetched.source.tree)
        return ScoreRun(tuple(files), located, "")
    for attempt in range(1, MAX_ATTEMPTS + 1):
        head = facts.find(branch)
        files = _make_files(context, source.config, measured, head.tree if head else None)
        if not write:
            return ScoreRun(tuple(files), located, branch)
        try:
            commit = _commit(context, facts, source.config, files)
            return ScoreRun(tuple(files), located, branch, commit)
        except Conflict:
            if attempt == MAX_ATTEMPTS:
                raise
            facts.fetch()
    raise AssertionError("unreachable")


def _load_definitions(context: RunContext, fetched: Fetched) -> SourceTree:
    """Return the source, whose definitions of scores can be read. No value is queried yet."""
    source = load(context, fetched, check_output=False)
    scorings = {api.scoring.definition: api.scoring for api in policy_apis.values() if api.scoring is not None}
    for document in source.documents:
        scoring = scorings.get((document.group, document.kind))
        if scoring is not None and not document.broken:
            list(scoring.list_measurements(document.body))
    return source


def _check_destination(source: SourceTree) -> None:
    """Raise Permanent if gitsched.yaml is broken, so that nobody knows where scores go: it may name a facts branch."""
    findings = (*source.file_findings.get(FILE, ()), *source.other_findings)
    errors = [one for one in findings if one.severity == "error" and one.location is not None and one.location.path == FILE]
    if errors and not source.config.source.facts.branch:
        # The error at the top of the file only says that it has no valid settings; any other one says why.
        first = min(errors, key=lambda one: (one.location == Location(FILE, 1, 1), one.location))
        raise Permanent(
            f"{first.location}: {first.message}; nothing is written, because source.facts.branch may say where scores go"
        )


def _measure_all(source: SourceTree, settings: RunSettings) -> tuple[list[_Measured], list[Finding]]:
    scorings = [api.scoring for api in policy_apis.values() if api.scoring is not None]
    measured: list[_Measured] = []
    findings: list[Finding] = []
    for scoring in scorings:
        clusters = frozenset(d.name for d in source.documents if (d.group, d.kind) == scoring.cluster)
        definitions = [d for d in source.documents if (d.group, d.kind) == scoring.definition]
        for definition in sorted(definitions, key=lambda document: document.name):
            if definition.broken:
                raise Permanent(f"the {definition.kind} {definition.name} is broken; `gitsched validate` shows its errors")
            one, found = _measure(scoring, definition, clusters, source.config.observations.timeout, settings.allow)
            measured.append(one)
            findings += found
    kinds = " or ".join(scoring.definition[1] for scoring in scorings)
    if not measured:
        raise Permanent(f"there is no {kinds} in the source; add one that defines scores")
    for one in measured:
        if not _PATH.fullmatch(one.path):
            raise Permanent(f"{one.path} is not a path inside the repository: set spec.path to a file such as scores/default.yaml")
    if len({one.path for one in measured}) < len(measured):
        raise Permanent(f"two {kinds} write the same file")
    return measured, findings


def _measure(
    scoring: ClusterScoring, definition: RawDocument, clusters: frozenset[str], timeout: float, allow: AllowList
) -> tuple[_Measured, list[Finding]]:
    values: dict[str, Mapping[str, float]] = {}
    findings: list[Finding] = []
    for measurement in scoring.list_measurements(definition.body):
        try:
            found = _query_values(measurement, timeout, allow)
        except (ProviderUnreachable, InvalidMetricValue) as error:
            return _Measured(scoring, definition, clusters, {}, f"{measurement.name}: {error}"), findings
        values[measurement.name] = {cluster: found.values[cluster] for cluster in sorted(clusters & found.values.keys())}
        findings += _list_findings(definition, measurement, clusters, found)
    return _Measured(scoring, definition, clusters, values, ""), findings


def _query_values(measurement: ScoreMeasurement, timeout: float, allow: AllowList) -> ClusterValues:
    if measurement.source == "static":
        values: Mapping[str, Any] = measurement.spec
        return ClusterValues({cluster: float(value) for cluster, value in values.items()}, {}, 0)
    return query_vector(measurement.spec, timeout, allow)


def _list_findings(
    definition: RawDocument, measurement: ScoreMeasurement, clusters: frozenset[str], found: ClusterValues
) -> Iterator[Finding]:
    """Yield what is wrong with single series. Each message names the clusters, the score and the query."""
    is_query = measurement.source == "prometheus"
    query = str(measurement.spec.get("query") or "")
    shown = f" (query: {query[:MAX_QUERY_LENGTH]}{'...' if len(query) > MAX_QUERY_LENGTH else ''})" if is_query else ""
    reasons: dict[str, list[str]] = {}
    for cluster, reason in found.invalid.items():
        if cluster in clusters:
            reasons.setdefault(reason, []).append(cluster)

    def make_value_finding(code: str, message: str) -> Finding:
        pointer = (*measurement.pointer, "query") if is_query else measurement.pointer
        field = locate_field(definition.origin, pointer)
        location = locate_origin(definition.origin) if definition.origin else None
        return Finding("warning", code, message, location, (definition.kind, "", definition.name), field)

    for reason, names in sorted(reasons.items()):
        message = f"{_join(names)} without the score {measurement.name}, which counts as 0: {reason}{shown}"
        yield make_value_finding("score-value-invalid", message)
    missing = clusters - found.values.keys() - found.invalid.keys()
    if missing:
        reason = "the query returns no series for them" if is_query else "static has no value for them"
        yield make_value_finding(
            "score-value-missing", f"{_join(missing)} without the score {measurement.name}, which counts as 0: {reason}{shown}"
        )
    unknown = (found.values.keys() | found.invalid.keys()) - clusters
    if unknown:
        verb = "the query returns series for" if is_query else "static has values for"
        message = (
            f"the score {measurement.name}: {verb} clusters that the source does not have: {_suggest(unknown, clusters)}{shown}"
        )
        yield make_value_finding("score-cluster-unknown", message)._replace(severity="info" if is_query else "warning")
    if found.unlabelled:
        label = measurement.spec.get("label") or "cluster"
        message = f"the score {measurement.name}: {found.unlabelled} series have no label {label!r} and are ignored{shown}"
        yield make_value_finding("score-value-invalid", message)


def _join(names: Iterable[str]) -> str:
    """Return "cluster ash" or "clusters ash, bru and 3 more"."""
    ordered = sorted(names)
    more = f" and {len(ordered) - MAX_NAMES} more" if len(ordered) > MAX_NAMES else ""
    return f"{'cluster' if len(ordered) == 1 else 'clusters'} {', '.join(ordered[:MAX_NAMES])}{more}"


def _suggest(unknown: Iterable[str], clusters: frozenset[str]) -> str:
    ordered = sorted(unknown)
    shown = []
    for name in ordered[:MAX_NAMES]:
        near = find_similar(name, clusters)
        shown.append(f"{name[:100]} (did you mean {near}?)" if near else name[:100])
    return ", ".join(shown) + (f" and {len(ordered) - MAX_NAMES} more" if len(ordered) > MAX_NAMES else "")


def _make_files(context: RunContext, config: Config, measured: list[_Measured], tree: str | None) -> list[ScoreFile]:
    """Return the file of each definition; `tree` has the files of the last time."""
    reader = SourceReader(context.source.repository, context.caches.files, config)
    return [_make_file(context, reader, one, tree) for one in measured]


def _make_file(context: RunContext, reader: SourceReader, one: _Measured, tree: str | None) -> ScoreFile:
    name, path = one.definition.name, one.path
    if one.failure:
        return ScoreFile(name, path, "", 0, False, one.failure)
    before = find_file(reader.repository, tree, path)
    if before is not None:
        check_replaceable(path, reader.repository.blob(before))
    previous = _read_previous(reader, one.scoring, name, path, before)
    documents = one.scoring.build_documents(
        ScoreInput(one.definition.body, one.clusters, one.values, previous, context.settings.now)
    )
    text = _HEADER.format(kind=one.definition.kind, name=name) + "---\n".join(map(dump, documents))
    changed = before is None or reader.repository.blob(before) != text.encode()
    return ScoreFile(name, path, text, len(documents), changed)


def check_replaceable(path: str, content: bytes) -> None:
    """Raise Permanent for a file that `gitsched scores` has not written: spec.path must not replace other documents or settings."""
    if not content.startswith(_MARK):
        raise Permanent(
            f"{path} has other content than scores, and is left alone: set spec.path to another file, or remove this one"
        )


def find_file(repository: Repository, tree: str | None, path: str) -> str | None:
    """Return the blob of a file; None if there is none, or if something else is there, such as a directory or a symlink."""
    entry = repository.find_entry(tree, path) if tree else None
    return entry[0] if entry and entry[1] in REGULAR_FILE_MODES else None


def _read_previous(reader: SourceReader, scoring: ClusterScoring, name: str, path: str, blob: str | None) -> dict[str, Body]:
    """Return the documents of the last time by cluster."""
    if blob is None:
        return {}
    bodies = [parsed.body for parsed in reader.read(blob, path).documents if not parsed.broken]
    return {
        str(body["metadata"]["namespace"]): body
        for body in bodies
        if body.get("kind") == scoring.score[1] and body["metadata"].get("name") == name
    }


def _commit(context: RunContext, facts: FactsRepository, config: Config, files: list[ScoreFile]) -> str | None:
    """Commit the files, and remove those that earlier runs wrote for definitions that no longer exist."""
    branch, history = config.source.facts.branch, config.source.facts.history
    head, paths = facts.find(branch), {one.path for one in files}
    changes: dict[str, WritableFile | None] = {one.path: NewBlob(one.text.encode()) for one in files if not one.failure}
    removed = [
        entry.path
        for entry in (facts.repository.entries(head.tree) if head else [])
        if entry.path not in paths and facts.repository.blob(entry.blob).startswith(_MARK)
    ]
    changes |= dict.fromkeys(removed)
    names = [one.name for one in files if one.changed and not one.failure]
    subject = f"scores: {', '.join(names[:5]) or 'remove unused files'}{' and more' if len(names) > 5 else ''}"
    author = make_author(facts.repository, config, context.settings)
    return facts.append(branch, changes, subject, history=history, author=author, time=context.settings.now)


def make_author(repository: Repository, config: Config, settings: RunSettings) -> CommitAuthor:
    """Return the author and signer of commits on facts branches: those of the output branch."""
    default: AuthorConfig = config.output.author
    name, email = settings.author or (default.name, default.email)
    signing = settings.signing  # gitsched.yaml cannot choose a key of the operator
    signer = make_signer(repository, format=signing[0], key=signing[1]) if signing else None
    return CommitAuthor(name, email, signer)
