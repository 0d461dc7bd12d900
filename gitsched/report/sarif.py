"""Findings as SARIF 2.1.0 for code scanning."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from gitsched.model.finding import Finding, choose_form, format_count
from gitsched.report.finding_codes import CodeDescription, find_description, strip_markup

MAX_RESULTS = 5_000
"""The maximum number of results in one file, which is what forges show; the most severe come first."""
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def write_sarif(findings: Iterable[Finding], meanings: Sequence[CodeDescription], version: str) -> str:
    """Return one run with a result for each finding, in order; paths are relative to the root of the source.

    A fingerprint covers the code, file, resource and message of a finding but not its line, so that a result keeps its history when
    lines move.
    """
    entries = list(findings)
    shown = entries[:MAX_RESULTS]
    rules: dict[str, int] = {}
    for finding in shown:
        rules.setdefault(finding.code, len(rules))
    seen: dict[str, int] = {}
    run: dict[str, Any] = {
        "tool": {"driver": {"name": "gitsched", "version": version, "rules": [_serialize_rule(code, meanings) for code in rules]}},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"SOURCE": {"description": {"text": "the root of the source repository"}}},
        "results": [_serialize_result(finding, rules[finding.code], seen) for finding in shown],
    }
    omitted = len(entries) - len(shown)
    if omitted:
        message = {
            "level": "warning",
            "message": {"text": f"{format_count(omitted, 'more finding')} {choose_form(omitted, 'is', 'are')} not in this file"},
        }
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": [message]}]
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _serialize_rule(code: str, meanings: Sequence[CodeDescription]) -> dict[str, Any]:
    meaning = find_description(meanings, code)
    if meaning is None:
        return {"id": code}
    return {
        "id": code,
        "shortDescription": {"text": _truncate(strip_markup(meaning.cause), 1_000)},
        "help": {
            "text": f"Cause: {strip_markup(meaning.cause)}\nFix: {strip_markup(meaning.fix)}",
            "markdown": f"**Cause:** {meaning.cause}\n\n**Fix:** {meaning.fix}",
        },
        "properties": {"tags": [meaning.section]},
    }


def _serialize_result(finding: Finding, rule: int, seen: dict[str, int]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": _escape_message(finding.text)},
    }
    location: dict[str, Any] = {}
    if finding.location is not None:
        path, line, column, _ = finding.location
        region = {"startLine": max(line, 1), "startColumn": max(column, 1)}
        # Git paths are bytes; bytes that are not UTF-8 were decoded as lone surrogates.
        uri = quote(path.encode("utf-8", "surrogateescape"), safe="/")
        location["physicalLocation"] = {"artifactLocation": {"uri": uri, "uriBaseId": "SOURCE"}, "region": region}
    if finding.resource is not None:
        kind, namespace, name = finding.resource
        location["logicalLocations"] = [
            {"name": name, "kind": "resource", "fullyQualifiedName": "/".join(filter(None, (kind, namespace, name)))}
        ]
    if location:
        result["locations"] = [location]
    result["partialFingerprints"] = {"gitsched/v1": _compute_fingerprint(finding, seen)}
    return result


def _compute_fingerprint(finding: Finding, seen: dict[str, int]) -> str:
    path = finding.location.path if finding.location else ""
    text = json.dumps([finding.code, path, finding.resource, finding.message])
    number = seen[text] = seen.get(text, 0) + 1
    return f"{sha256(text.encode()).hexdigest()[:32]}:{number}"


def _escape_message(text: str) -> str:
    """Escape brackets and braces: viewers render `[text](link)` as a link, even in plain text, and braces as placeholders."""
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace("{", "{{").replace("}", "}}")


def _truncate(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
