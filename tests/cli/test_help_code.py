"""Whoever reads a code in square brackets is told what to do about it, and a pipeline gets findings as files."""

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
def test_a_code_has_a_cause_and_a_cure(gitsched: Run, code: str) -> None:
    done = gitsched("help-code", code)
    assert done.returncode == 0
    assert "Cause: a mapping has the same key twice" in done.stdout
    assert "Fix: keep one." in done.stdout


def test_a_mistyped_code_is_wrong_usage_with_a_suggestion(gitsched: Run) -> None:
    done = gitsched("help-code", "dupplicate-key")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean duplicate-key" in done.stderr


def test_without_a_code_all_are_listed_also_for_machines(gitsched: Run) -> None:
    text, data = gitsched("help-code").stdout, json.loads(gitsched("help-code", "-o", "json").stdout)
    codes = {code for item in data["items"] for code in item["codes"]}
    assert {"unschedulable", "duplicate-key", "unknown-field"} <= codes
    assert all(code in text for code in codes)
    assert all(item["cause"] and item["cure"] for item in data["items"])


@pytest.mark.parametrize("verb", ["validate", "plan", "reconcile"])
def test_reports_are_written_beside_what_people_read(
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
def test_a_report_that_cannot_be_written_is_refused_before_anything_is_done(gitsched: Run, value: str) -> None:
    done = gitsched("reconcile", "--report", value)
    assert (done.returncode, done.stdout) == (2, "")
