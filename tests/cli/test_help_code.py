"""`gitsched help-code` and reports of findings as files."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
BROKEN = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  name: b\n"


@pytest.mark.parametrize("code", ["duplicate-key", "[duplicate-key]"])
def test_help_code_prints_cause_and_fix(gitsched: Run, code: str) -> None:
    done = gitsched("help-code", code)
    assert done.returncode == 0
    assert "Cause: A mapping has a key twice" in done.stdout
    assert "Fix: Keep one." in done.stdout


def test_an_unknown_code_exits_with_2_and_a_suggestion(gitsched: Run) -> None:
    done = gitsched("help-code", "dupplicate-key")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean duplicate-key" in done.stderr


def test_all_codes_are_listed_as_text_and_json(gitsched: Run) -> None:
    text, data = gitsched("help-code").stdout, json.loads(gitsched("help-code", "-o", "json").stdout)
    codes = {code for item in data["items"] for code in item["codes"]}
    assert {"unschedulable", "duplicate-key", "unknown-field"} <= codes
    assert all(code in text for code in codes)
    assert all(item["cause"] and item["cure"] for item in data["items"])


@pytest.mark.parametrize("verb", ["validate", "plan", "reconcile"])
def test_reports_are_written_in_addition_to_the_text(
    gitsched: Run, fleet: Path, commit: Callable[..., None], tmp_path: Path, verb: str
) -> None:
    commit(fleet, bad=BROKEN)
    sarif, junit = tmp_path / "out.sarif", tmp_path / "out.xml"
    done = gitsched(verb, "--report", f"sarif={sarif}", "--report", f"junit={junit}", "--report", "github")
    assert done.returncode == 1
    assert "bad.yaml:5:3: error:" in done.stdout
    assert "::error file=bad.yaml,line=5,col=3,title=duplicate-key::" in done.stderr
    results = json.loads(sarif.read_text())["runs"][0]["results"]
    assert "duplicate-key" in {result["ruleId"] for result in results}
    workloads = ElementTree.fromstring(junit.read_text()).find("testsuite[@name='workloads']")
    assert workloads is not None
    assert len(workloads) == (0 if verb == "validate" else 1)


@pytest.mark.parametrize("value", ["sarif", "sarif=", "pdf=x", "github=x", "sarif=nowhere/x", "junit=."])
def test_an_unwritable_report_is_refused_before_the_run(gitsched: Run, value: str) -> None:
    done = gitsched("reconcile", "--report", value)
    assert (done.returncode, done.stdout) == (2, "")
