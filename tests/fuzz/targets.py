"""What is fuzzed: functions that take any bytes, and raise when gitsched breaks a promise about them.

An input is a YAML text, so that the corpus can be read. Each function returns how many documents it handled. It raises AssertionError for a
broken promise; any other exception is one that a command would report as a bug, with exit code 3.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from zlib import crc32

import yaml

import gitsched
from gitsched.apis.gitsched.bundle import parse_bundle
from gitsched.apis.gitsched.config import parse_config
from gitsched.apis.gitsched.facts_document import read_facts
from gitsched.apis.gitsched.tenant import parse_tenant, read_closed_tenant
from gitsched.decide.validation import validate_document
from gitsched.manifests.parser import parse_file
from gitsched.model.document import Body, as_object, get_field, list_objects
from gitsched.model.errors import GitschedError
from gitsched.model.finding import Finding
from gitsched.reconcile.operator_settings import read_operator_config
from tests.collect.test_any_answer import AnsweringReader, read_everything

from .garbage import GARBAGE, NAME, list_broken
from .histories import check_history

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def read_documents(data: bytes) -> list[Body]:
    """Return the documents of a text, as gitsched reads a file."""
    return [document.body for document in parse_file(data, path="a.yaml", validate=validate_document).documents]


def check_parse(data: bytes) -> int:
    """Parse and validate. Every position is inside of the file, and the same text gives the same issues."""
    file = parse_file(data, path="a.yaml", validate=validate_document)
    lines = sum(data.count(end.encode()) for end in ("\n", "\r", "\x85", "\u2028", "\u2029")) + 1
    for issue in file.issues:
        assert issue.line is None or 0 < issue.line <= lines + 1, f"{issue}: the file has {lines} lines"
        assert issue.code != "internal-error", issue
    again = parse_file(data, path="a.yaml", validate=validate_document)
    assert (again.issues, again.status) == (file.issues, file.status)
    return max(1, len(file.documents))


def check_schedule(data: bytes) -> int:
    """Schedule the documents, again from the result, and once more with documents that cannot be used."""
    documents = read_documents(data)
    try:
        first = gitsched.schedule(documents, now=NOW)
    except GitschedError:
        return len(documents)
    check_findings(first.findings)
    check_findings(gitsched.schedule(documents, previous=first.documents, now=NOW).findings)
    check_findings(gitsched.validate(documents))
    garbage = list_broken(GARBAGE[crc32(data) % len(GARBAGE)])
    kinds = {(body["apiVersion"], body["kind"]) for body in garbage if "Cluster" in str(body["kind"]) and "apiVersion" in body}
    groups = {body["apiVersion"].partition("/")[0] for body in garbage if isinstance(body.get("apiVersion"), str)}
    if not (
        kinds <= {(body.get("apiVersion"), body.get("kind")) for body in documents}
        and groups <= {str(body.get("apiVersion")).partition("/")[0] for body in documents}
    ):
        return 2 * len(documents)  # the first document or cluster of an API has its scheduler report what it cannot place
    beside = gitsched.schedule([*documents, *garbage], now=NOW)
    assert list_decided(beside.documents) == list_decided(first.documents), f"other decisions beside {garbage}"
    assert list_about_others(beside.findings) == list_about_others(first.findings), f"other findings beside {garbage}"
    return 2 * len(documents)


def list_about_others(findings: list[Finding]) -> list[str]:
    """Return the errors: notes and warnings count the clusters, also broken ones."""
    return [str(finding) for finding in findings if finding.severity == "error" and NAME not in repr(finding)]


def list_decided(documents: list[Body]) -> list[Body]:
    """Return the documents without the digest of what decisions of Open Cluster Management are made from, and without messages, which count
    all clusters."""
    return [_remove_messages(body) for body in documents if body.get("kind") != "DecisionBasis"]


def _remove_messages(body: Body) -> Body:
    conditions = [{**condition, "message": ""} for condition in list_objects(get_field(body, "status", "conditions"))]
    return {**body, "status": {**as_object(body.get("status")), "conditions": conditions}}


def check_findings(findings: list[Finding] | tuple[Finding, ...]) -> None:
    for finding in findings:
        assert finding.code != "internal-error", finding


def check_settings(data: bytes) -> int:
    """Read settings, Tenants, facts, Bundles and Rollouts. A document without an error can be read."""
    documents = parse_file(data, path="a.yaml", validate=validate_document).documents
    for document in documents:
        body = document.body
        valid = not any(issue.severity == "error" for issue in validate_document(body).issues)
        kind = body.get("kind") if str(body.get("apiVersion")).startswith("gitsched.io/") else None
        if kind == "Config":
            with contextlib.suppress(ValueError):  # it says which setting is wrong
                parse_config(as_object(body.get("spec")))
        elif kind == "Tenant":
            read_closed_tenant(body, None, "broken")
        if not valid:
            continue
        if kind == "Tenant":
            parse_tenant(body)
        elif kind == "ClusterFacts":
            read_facts(body)
        elif kind == "Bundle":
            parse_bundle(body)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "operator.yaml"
        path.write_bytes(data)
        with contextlib.suppress(GitschedError):
            read_operator_config(path)
    return max(1, len(documents))


def check_collect(data: bytes) -> int:
    """Collect from servers that give these answers, by path."""
    for answers in read_documents(data) or [_read_answers(data)]:
        with contextlib.suppress(GitschedError):
            read_everything(AnsweringReader(answers))
    return 1


def _read_answers(data: bytes) -> Body:
    try:
        found = yaml.load(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        json.dumps(found)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) and all(isinstance(path, str) for path in found) else {}


TARGETS: Mapping[str, Callable[[bytes], int]] = {
    "parse": check_parse,
    "schedule": check_schedule,
    "settings": check_settings,
    "history": check_history,
    "collect": check_collect,
}
