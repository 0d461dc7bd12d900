"""The Python API: schedule and validate plain documents, without Git and without a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, get_args

from gitsched.apis.gitsched.config import GROUP, KIND, VERSION, parse_config
from gitsched.decide.catalog import RawDocument, make_raw_document
from gitsched.decide.decisions import DecisionSet, decide
from gitsched.decide.fault_isolation import Isolated, isolate_faults, make_fault_finding
from gitsched.decide.garbage_collection import gc_paused
from gitsched.decide.skipped_workloads import OwnedRecords
from gitsched.decide.validation import list_document_findings, validate_document
from gitsched.decide.workload_explanation import explain_workload
from gitsched.manifests.object_meta import RESOURCE, classify_document
from gitsched.manifests.schema import Strictness
from gitsched.model.argument_types import (
    check_choice,
    check_document,
    check_documents,
    check_mapping,
    check_text,
    check_time,
    list_documents,
)
from gitsched.model.document import Body, Key, get_field, is_namespaced, parse_api_group
from gitsched.model.errors import Permanent
from gitsched.model.explanation import Explanation, GroupAttempt
from gitsched.model.finding import Finding, sort_findings
from gitsched.model.plain_documents import describe_defect, describe_kind, describe_unreadable, has_only_json, with_string_keys
from gitsched.model.scheduling import CandidateResult
from gitsched.model.separate_documents import separate_documents
from gitsched.model.system_errors import is_bug
from gitsched.model.time import EPOCH, parse_time
from gitsched.named_tuples import NamedTuple


class Candidates(list[CandidateResult]):
    """The result of every candidate for a workload or another document, sorted by name.

    `explanation` is the whole explanation of `gitsched explain`: the policy and why it applies, the candidates of each group that was
    tried, and the division of replicas. It is computed when it is used first, and None for a document that no policy selects.
    """

    def __init__(self, results: Iterable[CandidateResult], explain: Callable[[], Explanation | None]) -> None:
        super().__init__(results)
        self._explain = explain

    @cached_property
    def explanation(self) -> Explanation | None:
        """The whole explanation."""
        return self._explain()

    @property
    def groups(self) -> tuple[GroupAttempt, ...]:
        """The groups of the policy in the order in which they were tried, each with its verdict; one without a name for a policy without
        groups, and none for a document that no policy selects or whose API has no groups."""
        return self.explanation.attempts if self.explanation is not None else ()


class Schedule(NamedTuple):
    """`documents` are the resources as the upstream's API server would return them after scheduling. `next_wakeup` is the first time at
    which a decision may change without a change of the documents, or None."""

    documents: list[Body]
    findings: list[Finding]
    next_wakeup: datetime | None
    decisions: DecisionSet

    def explain(self, kind: str, name: str, namespace: str = "") -> Candidates:
        """Return the result of every candidate for a workload, or for another document that an API decides about, and the groups that
        were tried. No namespace stands for any.

        Raise KeyError when there is no such document.
        """
        for value, argument in ((kind, "kind"), (name, "name"), (namespace, "namespace")):
            check_text(value, f"`{argument}`")
        decisions = self.decisions
        templates = {key: document for key, document in decisions.templates.items() if (key.kind, key.name) == (kind, name)}
        template = next((document for key, document in templates.items() if namespace in (key.namespace, "")), None)

        def explain() -> Explanation | None:
            return explain_workload(decisions, template) if template is not None else None

        for engine in decisions.engines:
            known = engine.evaluate_own(kind, name, namespace)
            if known is not None:
                return Candidates(known, explain)
        if template is None:
            title = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
            raise KeyError(f"{title} is neither among the documents nor a decision of an API")
        found = next((found for engine in decisions.engines if (found := engine.evaluate_candidates(template))), [])
        return Candidates(found, explain)


def _decide_isolated(
    raw: list[RawDocument],
    records: Mapping[Key, Body],
    decide_all: Callable[[Iterable[RawDocument], Mapping[Key, Body]], DecisionSet],
) -> tuple[DecisionSet, list[Finding], list[Body]]:
    """Return the decisions, the findings about them, and the records that stay of documents that a bug concerns."""
    try:
        decisions = decide_all(raw, records)
    except Exception as error:
        if not is_bug(error):
            raise
    else:
        return decisions, list(decisions.findings), []

    def decide_without(documents: Iterable[RawDocument], isolated: Isolated) -> tuple[DecisionSet, Isolated]:
        owned = OwnedRecords(records).list_of(isolated.skipped) if isolated.skipped else ()
        left_out = {*isolated.records, *owned}
        return decide_all(documents, {key: body for key, body in records.items() if key not in left_out}), isolated

    decisions, isolated = isolate_faults(raw, records, decide_without, lambda made: made[0])
    kept = [records[key] for key in OwnedRecords(records).list_of(isolated.skipped)] if isolated.skipped else []
    return decisions, [*decisions.findings, *isolated.findings], kept


@gc_paused()
def schedule(
    documents: Iterable[Body],
    *,
    previous: Iterable[Body] = (),
    now: datetime | None = None,
    at: datetime | None = None,
    config: Mapping[str, Any] | None = None,
    observations: Mapping[Any, Any] | None = None,
    upstream_defaults: bool = True,
    strictness: Strictness = "upstream",
) -> Schedule:
    """Schedule plain documents, each workload in one scheduling cycle.

    `previous` are the documents of the last run. `now` is what deadlines are compared with (default: the latest timestamp in the
    documents, else 1970-01-01), `at` the time of the documents (default: `now`); both in UTC. `config` is the spec of a gitsched.yaml.
    Without it, the first Config among the documents contains the settings. `observations` are metric values by name. Settings that are
    left out have the values of the upstream schedulers, or with `upstream_defaults=False` the defaults of the commands. Unknown fields are
    ignored with a warning, as by the API servers of the upstreams; `strictness="protective"` makes those errors that may choose workloads
    or clusters, as the commands do, and `strictness="strict"` all.

    Mistakes in documents are findings; a mistake in `config` raises Permanent. An argument of the wrong type raises TypeError, also a
    document with values that no YAML or JSON parser returns.
    """
    now, at = check_time(now, "now"), check_time(at, "at")
    check_mapping(config, "config")
    check_mapping(observations, "observations")
    check_choice(strictness, "strictness", get_args(Strictness))
    usable, unusable = _check_documents(documents)
    records_read, more = _check_previous(previous)
    unusable += more
    bodies, configs = _split_configs(usable)
    time = now or _find_latest_time([checked.body for checked in bodies]) or EPOCH
    findings: list[Finding] = []
    if config is None:
        config, findings = _read_config(configs)
    else:
        findings = _list_argument_findings(config)
        findings += [_make_unread_config_finding(body, "the argument `config` contains the settings") for body in configs]
    try:
        settings = parse_config(config, upstream=upstream_defaults)
    except ValueError as error:
        raise Permanent(str(error)) from error
    ignored = settings.ignored_codes
    raw: list[RawDocument] = []
    for checked in bodies:
        document, issues = _read_document(checked, ignored, strictness)
        raw.append(document)
        findings += issues
    records = {_make_key(body): body for body in records_read}

    def decide_all(documents: Iterable[RawDocument], known: Mapping[Key, Body]) -> DecisionSet:
        return decide(documents, known, settings, at or time, time, None, observations, once=True)

    decisions, found, kept = _decide_isolated(raw, records, decide_all)
    findings += [*found, *unusable]
    for outcome in decisions.outcomes.values():
        findings += outcome.findings
    scheduled = [body for outcome in decisions.outcomes.values() for _, body in outcome.records]
    scheduled += [*(body for _, body in decisions.engine_records), *kept]
    return Schedule(
        list(separate_documents(scheduled)), list(sort_findings(findings)), min(decisions.wakeups, default=None), decisions
    )


def validate(documents: Iterable[Body], *, strictness: Strictness = "upstream") -> list[Finding]:
    """Return the findings of schemas and rules about plain documents, with `strictness` as in `schedule`. Nothing is scheduled."""
    check_choice(strictness, "strictness", get_args(Strictness))
    usable, findings = _check_documents(documents)
    for checked in usable:
        findings += _read_document(checked, frozenset(), strictness)[1]
    return findings


class _CheckedDocument(NamedTuple):
    """A document that can be read; `is_json` says that it has only what JSON has, so that its keys are strings."""

    body: Body
    is_json: bool


def _read_document(checked: _CheckedDocument, ignored: frozenset[str], strictness: Strictness) -> tuple[RawDocument, list[Finding]]:
    """Return a document with its defaults, and the findings about it. One on which a bug shows is broken."""
    body = checked.body
    try:
        result = validate_document(body, ignored, strictness)
        findings = list_document_findings(body, ignored, strictness) if result.issues else []
        broken = any(issue.severity == "error" for issue in result.issues)
        filled = result.body if checked.is_json else with_string_keys(result.body)
        return make_raw_document(filled, None, broken), findings
    except Exception as error:
        if not is_bug(error):
            raise
        document = make_raw_document(with_string_keys(body), None, broken=True)
        return document, [make_fault_finding(document, error)]


def _check_documents(documents: Iterable[Any]) -> tuple[list[_CheckedDocument], list[Finding]]:
    """Return the documents that can be read, and an error finding about each other one."""
    usable: list[_CheckedDocument] = []
    findings: list[Finding] = []
    for index, body in enumerate(list_documents(documents, "documents")):
        is_json = has_only_json(body)
        if not is_json:
            check_document(body, "documents", index)
        defect = describe_kind(body) if is_json else describe_unreadable(body)
        known = classify_document(body) if not defect and body.get("kind") != KIND else RESOURCE
        if defect:
            findings.append(_make_unread_finding(f"document {index + 1}", defect))
        elif known.category == "nameless":
            findings.append(Finding("error", known.code, f"document {index + 1} is not read: {known.reason}"))
        else:
            usable.append(_CheckedDocument(body, is_json))
    return usable, findings


def _check_previous(documents: Iterable[Any]) -> tuple[list[Body], list[Finding]]:
    """Return the documents of the last run that can be read, and an error finding about each other one."""
    defects = [(body, describe_defect(body)) for body in check_documents(documents, "previous")]
    usable = [body for body, defect in defects if not defect]
    numbered = enumerate(defects, 1)
    return usable, [_make_unread_finding(f"previous document {number}", defect) for number, (_, defect) in numbered if defect]


def _make_unread_finding(what: str, defect: str) -> Finding:
    return Finding("error", "invalid-document", f"{what} is not read: {defect}")


def _split_configs(documents: Iterable[_CheckedDocument]) -> tuple[list[_CheckedDocument], list[Body]]:
    """Return the documents without the Configs among them, and the Configs."""
    others: list[_CheckedDocument] = []
    configs: list[Body] = []
    for checked in documents:
        body = checked.body
        if body.get("kind") == KIND and parse_api_group(str(body.get("apiVersion") or "")) == GROUP:
            configs.append(body)
        else:
            others.append(checked)
    return others, configs


def _read_config(configs: list[Body]) -> tuple[Mapping[str, Any], list[Finding]]:
    """Return the spec of the first Config, or nothing if there is none or it is invalid, and findings about all of them."""
    if not configs:
        return {}, []
    findings = list_document_findings(configs[0])
    findings += [_make_unread_config_finding(body, f"only the first {KIND} among the documents is") for body in configs[1:]]
    valid = not any(finding.severity == "error" for finding in findings)
    return (configs[0].get("spec") or {}) if valid else {}, findings


def _list_argument_findings(config: Mapping[str, Any]) -> list[Finding]:
    """Return the warnings about settings that are given as an argument. Permanent for one that no gitsched.yaml may have."""
    body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": {"name": "gitsched"}, "spec": dict(config)}
    usable, unusable = _check_documents([body])
    findings = [*unusable, *(finding for checked in usable for finding in list_document_findings(checked.body))]
    invalid = next((finding for finding in findings if finding.severity == "error"), None)
    if invalid is not None:
        raise Permanent(f"`config`: {invalid.without_severity}")
    return findings


def _make_unread_config_finding(body: Body, reason: str) -> Finding:
    resource = (KIND, "", str(get_field(body, "metadata", "name") or ""))
    return Finding("warning", "stray-config", f"this {KIND} is not read: {reason}", None, resource)


def _make_key(body: Body) -> Key:
    group, kind = parse_api_group(str(body.get("apiVersion") or body.get("api") or "")), str(body.get("kind") or "")
    namespace = str(get_field(body, "metadata", "namespace") or ("default" if is_namespaced(group, kind) else ""))
    return Key(
        group, kind, namespace if is_namespaced(group, kind) is not False else "", str(get_field(body, "metadata", "name") or "")
    )


def _find_latest_time(value: Any) -> datetime | None:
    """Return the latest timestamp in the documents."""
    latest: datetime | None = None
    stack = [value]
    while stack:
        entry = stack.pop()
        if isinstance(entry, dict):
            stack.extend(entry.values())
        elif isinstance(entry, list):
            stack.extend(entry)
        elif isinstance(entry, str) and (time := parse_time(entry)) is not None:
            latest = max(latest or time, time)
    return latest
