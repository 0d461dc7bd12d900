"""A run that finds nothing to do loads nothing that parses, decides, renders or connects."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

IDLE = """\
import sys
from gitsched.cli import main
assert main(["reconcile"]) == 0
print("loaded", *sorted(sys.modules), file=sys.stderr)
"""
NEEDED = {
    "gitsched",
    "gitsched.cli",
    "gitsched.cli.commands",
    "gitsched.cli.commands.reconcile",
    "gitsched.cli.exit_codes",
    "gitsched.cli.options",
    "gitsched.cli.output",
    "gitsched.cli.reconcile",
    "gitsched.cli.worktree",
    "gitsched.git",
    "gitsched.git.libgit2",
    "gitsched.git.process",
    "gitsched.git.pygit2_loader",
    "gitsched.git.ref_state",
    "gitsched.git.urls",
    "gitsched.model",
    "gitsched.model.errors",
    "gitsched.model.time",
    "gitsched.named_tuples",
    "gitsched.reconcile",
    "gitsched.reconcile.cache",
    "gitsched.reconcile.cache.checked_file",
    "gitsched.reconcile.cache.idle_answers",
    "gitsched.reconcile.cache.ownership",
    "gitsched.reconcile.package_digest",
    "gitsched.schedule",
}
"""The modules of gitsched with which a run answers as the last one did."""
FOUNDATION = "import click, logging, sys; print('loaded', *sys.modules, file=sys.stderr)"
"""What every command imports; how many modules these import in turn depends on the versions of Python and click."""
MAX_OTHER_MODULES = 33
"""Modules of Python and pygit2 that such a run may import besides all of these. Python 3.11 imports 26, 3.13 32."""
UNNEEDED = {
    "asyncio",
    "jinja2",
    "jsonschema",
    "jsonschema_rs",
    "re2",
    "rich",
    "socket",
    "ssl",
    "watchfiles",
    "yaml",
    "gitsched.apis.karmada.engine",
    "gitsched.apis.ocm.engine",
    "gitsched.manifests.parser",
    "gitsched.schedule.pipeline",
    "gitsched.simulate",
}
"""Modules that take a good part of the time in which a run finds nothing to do."""
LOAD = "from gitsched.git.pygit2_loader import load_pygit2; pygit2 = load_pygit2()"
UNKNOWN_LABEL = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: unknown, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]
  placement: {clusterAffinity: {labelSelector: {matchLabels: {missing: label}}}}
"""


def test_a_run_without_changes_imports_no_module_that_it_does_not_need(fleet: Path, commit, environment: dict[str, str]) -> None:
    commit(fleet, unknown=UNKNOWN_LABEL)
    changed = environment | {"GITSCHED_TEST": "changed"}
    runs = [_reconcile(fleet, variables) for variables in (environment, environment, changed, changed)]
    assert "placed" in runs[0].stdout
    assert "unknown.yaml:6:" in runs[0].stdout + runs[0].stderr, "a finding about a field, whose line is found in the file"
    assert len({run.stdout.partition("No changes")[0] for run in runs[1:]}) == 1
    loaded = [_list_modules(run) for run in runs]
    assert "gitsched.apis.karmada.engine" in loaded[0]
    assert "gitsched.reconcile.pipeline" in loaded[2]
    assert not UNNEEDED & loaded[2]
    assert {name for name in loaded[-1] if name.partition(".")[0] == "gitsched"} == NEEDED
    others = loaded[-1] - NEEDED - _list_modules(_run(FOUNDATION, fleet, environment))
    assert {name for name in others if name.startswith("pygit2")} == {"pygit2._pygit2"}
    assert not {"dataclasses", "pickle", "sqlite3", "tempfile"} & others
    assert len(others) <= MAX_OTHER_MODULES, (len(others), sorted(others))


def test_pygit2_reads_no_certificates(environment: dict[str, str]) -> None:
    program = f"import sys; {LOAD}; print(pygit2.settings.ssl_cert_file, 'ssl' in sys.modules)"
    assert _run(program, Path.cwd(), environment).stdout == "None False\n"


def test_pygit2_is_set_up_as_usual_where_ssl_is_loaded(environment: dict[str, str]) -> None:
    program = f"import ssl; {LOAD}; print(pygit2.settings.ssl_cert_file == ssl.get_default_verify_paths().cafile)"
    assert _run(program, Path.cwd(), environment).stdout == "True\n"


def _reconcile(fleet: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return _run(IDLE, fleet, environment)


def _list_modules(done: subprocess.CompletedProcess[str]) -> set[str]:
    return set(done.stderr.rpartition("loaded ")[2].split())


def _run(program: str, at: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=at, env=environment, capture_output=True, text=True, check=True)
