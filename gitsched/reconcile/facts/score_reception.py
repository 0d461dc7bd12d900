"""Commit the scores that a cluster pushed to its facts branch."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from gitsched.apis.policy_api import ClusterScoring
from gitsched.decide.catalog import RawDocument, make_raw_document
from gitsched.decide.registry import policy_apis
from gitsched.decide.validation import validate_document
from gitsched.git import FactsRepository
from gitsched.manifests.parser import parse_file
from gitsched.model.document import Body
from gitsched.model.errors import Conflict, Permanent, RejectedInput
from gitsched.model.planned_files import NewBlob
from gitsched.reconcile.facts.facts_branches import open_facts
from gitsched.reconcile.facts.scores import MAX_ATTEMPTS, find_file, make_author
from gitsched.reconcile.fetch import read_source_config
from gitsched.reconcile.run import open_context
from gitsched.reconcile.run_settings import RunSettings
from gitsched.reconcile.source.source_reader import SourceReader
from gitsched.render.yaml import dump

FILE = "scores.yaml"
MAX_DOCUMENTS = 100
_HEADER = "# Pushed by the cluster {cluster}.\n"


class ScoreReceiver:
    """Commits scores to the facts branches of their clusters. It opens the repository itself, for use in another thread than runs."""

    def __init__(self, settings: RunSettings, clock: Callable[[], datetime]) -> None:
        self._context, self._clock = open_context(settings), clock

    def receive(self, cluster: str, data: bytes, /) -> str | None:
        """Commit the documents in `data` (YAML) and return the commit; None if the branch has their scores, valid for long enough.

        Raises RejectedInput if a document is invalid, is not a score or belongs to another cluster, and Permanent if the settings name no
        branches of clusters.
        """
        documents = _parse_scores(cluster, data)
        config = read_source_config(self._context)
        facts = open_facts(self._context, config, self._context.settings.push)
        if facts is None or not config.source.facts.cluster_branches:
            raise Permanent("source.facts.clusterBranches is not set, so there is no branch for the scores of a cluster")
        branch, now = facts.names.name_cluster_branch(cluster), self._clock().replace(microsecond=0)
        file = NewBlob((_HEADER.format(cluster=cluster) + "---\n".join(dump(document.body) for document in documents)).encode())
        author = make_author(facts.repository, config, self._context.settings)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            if self._has_scores(facts, branch, documents, now):
                return None
            try:
                message = f"scores: {cluster}"
                return facts.append(branch, {FILE: file}, message, history=config.source.facts.history, author=author, time=now)
            except Conflict:
                if attempt == MAX_ATTEMPTS:
                    raise
                facts.fetch()
        raise AssertionError("unreachable")

    def _has_scores(self, facts: FactsRepository, branch: str, documents: list[RawDocument], now: datetime) -> bool:
        head = facts.find(branch)
        blob = find_file(facts.repository, head.tree if head else None, FILE)
        if blob is None:
            return False
        reader = SourceReader(facts.repository, self._context.caches.files)
        known = [make_raw_document(parsed.body) for parsed in reader.read(blob, FILE).documents if not parsed.broken]
        earlier: dict[tuple[str, str, str], Body] = {(one.group, one.kind, one.name): one.body for one in known}
        return len(earlier) == len(documents) and all(
            (before := earlier.get((one.group, one.kind, one.name))) is not None
            and _find_scoring(one).is_current(before, one.body, now)
            for one in documents
        )


def _parse_scores(cluster: str, data: bytes) -> list[RawDocument]:
    file = parse_file(data, path=FILE, validate=validate_document)
    errors = [problem for problem in file.issues if problem.severity == "error"]
    if errors:
        lines = (f"line {problem.line}, column {problem.column}: {problem.message} [{problem.code}]" for problem in errors[:10])
        raise RejectedInput("\n".join(lines))
    documents = [make_raw_document(parsed.body) for parsed in file.documents]
    if not documents or len(documents) > MAX_DOCUMENTS:
        raise RejectedInput(f"the body has {len(documents)} documents: send between 1 and {MAX_DOCUMENTS}")
    kinds = " or ".join(scoring.score[1] for scoring in _list_scorings())
    for document in documents:
        if not any((document.group, document.kind) == scoring.score for scoring in _list_scorings()):
            raise RejectedInput(f"{document.kind or 'a document'} is not {kinds}: send only scores")
        if document.namespace != cluster:
            raise RejectedInput(
                f"{document.kind} {document.name} is of the cluster {document.namespace or 'default'}: {cluster} can only send its own "
                f"scores; set metadata.namespace: {cluster}"
            )
    if len({(document.kind, document.name) for document in documents}) < len(documents):
        raise RejectedInput("two documents have the same name")
    return documents


def _list_scorings() -> list[ClusterScoring]:
    return [api.scoring for api in policy_apis.values() if api.scoring is not None]


def _find_scoring(document: RawDocument) -> ClusterScoring:
    return next(scoring for scoring in _list_scorings() if (document.group, document.kind) == scoring.score)
