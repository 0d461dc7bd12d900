"""Findings as SARIF, JUnit and GitHub annotations: valid for any manifest, with a count of omitted findings."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.model.document import Key
from gitsched.model.finding import SEVERITIES, Finding, Location
from gitsched.model.scheduling import Outcome
from gitsched.report.annotations import write_annotations
from gitsched.report.finding_codes import read_codes
from gitsched.report.junit import write_junit
from gitsched.report.sarif import MAX_RESULTS, write_sarif

SCHEMA = json.loads(Path(__file__).with_name("sarif_schema.json").read_text())
VALIDATOR = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)
CODES = read_codes((Path(__file__).parents[2] / "docs" / "findings.md").read_text())
THEN = datetime(2026, 1, 12, 9, tzinfo=UTC)
HOSTILE = "@team `a` | </details> [x](https://example.org) {0}\n::error::\r%0A ]]> <!-- & \x1b[2J \x00"
PLACE = Location("apps/web.yaml", 3, 5)
BROKEN = Finding("error", "duplicate-key", "the key name is defined twice", PLACE, ("Deployment", "shop", "web"))

texts = st.text(st.characters(codec="utf-8"), min_size=1)
findings = st.builds(
    Finding,
    st.sampled_from(SEVERITIES),
    st.sampled_from(["duplicate-key", "unschedulable", "not-on-the-page"]),
    texts,
    st.none() | st.builds(Location, texts.filter(lambda path: not path.startswith("/")), st.integers(1, 999), st.integers(1, 99)),
    st.none() | st.tuples(texts, st.text(st.characters(codec="utf-8")), texts),
    field=st.none(),
)


def outcome(state: str, name: str = "web", reason: str = "") -> Outcome:
    return Outcome(Key("apps", "Deployment", "shop", name), "karmada", state, "", "", (), None, (), reason, THEN)


@given(st.lists(findings, max_size=5))
def test_sarif_is_valid_for_any_manifest(entries: list[Finding]) -> None:
    log = json.loads(write_sarif(entries, CODES, "1.0"))
    VALIDATOR.validate(log)
    (run,) = log["runs"]
    assert [result["ruleId"] for result in run["results"]] == [finding.code for finding in entries]
    for result, finding in zip(run["results"], entries, strict=True):
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == finding.code
        if finding.location:
            assert unquote(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]) == finding.location.path
    prints = [result["partialFingerprints"]["gitsched/v1"] for result in run["results"]]
    assert len(set(prints)) == len(prints)


def test_sarif_has_the_location_and_the_fix() -> None:
    (run,) = json.loads(write_sarif([BROKEN], CODES, "1.0"))["runs"]
    (result,) = run["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 3, "startColumn": 5}
    assert result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "Deployment/shop/web"
    (rule,) = run["tool"]["driver"]["rules"]
    assert "Fix: Keep one." in rule["help"]["text"]


def test_a_finding_keeps_its_fingerprint_when_lines_move() -> None:
    moved = BROKEN._replace(location=PLACE._replace(line=99))
    prints = {write_sarif([finding], CODES, "1.0").split("gitsched/v1")[1].split("\n")[0] for finding in (BROKEN, moved)}
    assert len(prints) == 1


def test_sarif_is_limited_to_the_results_that_forges_show_and_counts_the_rest() -> None:
    (run,) = json.loads(write_sarif([BROKEN] * (MAX_RESULTS + 7), CODES, "1.0"))["runs"]
    assert len(run["results"]) == MAX_RESULTS
    assert "7 more" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_brackets_in_a_sarif_message_are_escaped() -> None:
    (run,) = json.loads(write_sarif([BROKEN._replace(message=HOSTILE)], CODES, "1.0"))["runs"]
    assert "\\[x\\](https" in run["results"][0]["message"]["text"]


@given(st.lists(findings, max_size=5), texts)
def test_junit_is_well_formed_xml_for_any_manifest(entries: list[Finding], reason: str) -> None:
    root = ElementTree.fromstring(write_junit(entries, [outcome("placed", reason), outcome("pending", reason=reason)]))
    suites = {suite.get("name"): suite for suite in root}
    errors = sum(finding.severity == "error" for finding in entries)
    assert (suites["findings"].get("tests"), suites["findings"].get("failures")) == (str(len(entries)), str(errors))
    assert suites["workloads"].get("failures") == "1"


def test_junit_has_no_characters_that_change_what_a_terminal_shows() -> None:
    text = "a\x1b[31m\x85\u2028\u202e\x9b\ud800"
    written = write_junit([Finding("error", "x", text, Location(text, 1, 1))], [outcome("pending", reason=text)])
    assert all(line.isprintable() for line in written.split("\n"))
    assert "a\\x1b[31m\\x85\\u2028\\u202e\\x9b\\ud800" in written


def test_only_errors_and_unplaced_workloads_are_junit_failures() -> None:
    note = Finding("info", "symlink", "a link")
    text = write_junit(
        [BROKEN, note], [outcome("placed"), outcome("stale", "b"), outcome("pending", "c", "0/2 clusters are available")]
    )
    cases = ElementTree.fromstring(text).findall("testsuite/testcase")
    verdicts = [[child.tag for child in case] for case in cases]
    assert verdicts == [["failure"], ["system-out"], [], ["skipped"], ["failure"]]
    assert cases[0].get("file") == "apps/web.yaml"
    assert cases[4][0].get("message") == "0/2 clusters are available"


@given(st.lists(findings, max_size=40))
def test_annotations_are_one_command_per_line_within_the_github_limit(entries: list[Finding]) -> None:
    lines = write_annotations(entries).splitlines()
    for level in ("error", "warning", "notice"):
        assert sum(line.startswith(f"::{level} ") for line in lines) <= 10
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in lines)


def test_text_of_an_annotation_cannot_start_another_command() -> None:
    (line,) = write_annotations([BROKEN._replace(message=HOSTILE, location=Location("a,line=9:\n.yaml", 1, 2))]).splitlines()
    head, _, message = line.removeprefix("::").partition("::")
    assert head == "error file=a%2Cline=9%3A%0A.yaml,line=1,col=2,title=duplicate-key"
    assert "%0A::error::%0D%250A" in message


@pytest.mark.parametrize(("count", "last"), [(10, ""), (11, "2 more"), (500, "491 more")])
def test_annotations_over_the_limit_are_counted_and_changed_files_come_first(count: int, last: str) -> None:
    entries = [BROKEN._replace(location=Location(f"{number:03}.yaml", 1, 1)) for number in range(count)]
    lines = write_annotations(entries, {f"{count - 1:03}.yaml"}).splitlines()
    assert len(lines) == 10
    assert f"file={count - 1:03}.yaml" in lines[0]
    assert last in lines[-1]
