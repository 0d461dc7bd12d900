"""Each command in a new process, and the forks in which most tests run commands (tests/fork_server.py)."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from gitsched.cli import COMMANDS
from tests import fork_server
from tests.cli.conftest import PATIENCE
from tests.search_depth import DEEP

WORDS: dict[str, tuple[str, ...]] = {
    "init": ("init", "--api", "ocm"),
    "validate": ("validate", "-o", "json"),
    "plan": ("plan",),
    "reconcile": ("reconcile", "-C", "nowhere"),
    "watch": ("watch", "--listen", "8080"),
    "explain": ("explain", "deploy/web", "-n", "shop"),
    "simulate": ("simulate", "--lose", "one"),
    "fits": ("fits", "--onto", "main", "main"),
    "status": ("status",),
    "tree": ("tree", "one"),
    "history": ("history",),
    "adopt": ("adopt", "missing.yaml"),
    "shadow": ("shadow", "missing.yaml", "missing.yaml"),
    "collect": ("collect", "--context", "missing", "--kubeconfig", "missing", "--dry-run"),
    "cordon": ("cordon", "--dry-run", "one"),
    "drain": ("drain", "--dry-run", "one"),
    "uncordon": ("uncordon", "--dry-run", "one"),
    "rebalance": ("rebalance", "deploy/missing", "-n", "shop"),
    "tidy": ("tidy",),
    "freeze": ("freeze", "--lift"),
    "scores": ("scores",),
    "export": ("export", "flux", "--repo", "https://example.com/fleet.git"),
    "apply": ("apply", "nothing"),
    "comment": ("comment", "-", "--forge", "gitlab", "--request", "5", "--forge-project", "acme/fleet"),
    "schedule": ("schedule", "-f", "one.yaml", "-f", "web.yaml", "-f", "policy.yaml"),
    "schemas": ("schemas",),
    "help-code": ("help-code", "yaml-syntax"),
    "version": ("version",),
}


@pytest.mark.search
@pytest.mark.parametrize("command", COMMANDS if DEEP else ("plan", "explain", "watch", "schedule", "help-code"))
def test_a_new_process_writes_what_a_fork_writes(environment: dict[str, str], fleet: Path, tmp_path: Path, command: str) -> None:
    forked, started = (
        fork_server.run(WORDS[command], fleet, environment | {"XDG_CACHE_HOME": str(tmp_path / name)}, "", fork=fork)
        for name, fork in (("a", True), ("b", False))
    )
    assert forked.stdout + forked.stderr != ""
    if command == "init":
        assert (started.returncode, started.stdout) == (0, forked.stdout.replace("wrote", "kept "))
        return
    logs = [re.sub(r"^[0-9TZ:.-]+ ", "", done.stderr, flags=re.MULTILINE) for done in (started, forked)]
    assert (started.returncode, started.stdout, logs[0]) == (forked.returncode, forked.stdout, logs[1])


def test_a_fork_has_its_own_environment_directory_input_and_exit_code(environment: dict[str, str], tmp_path: Path) -> None:
    program = (
        "import os, sys; print(os.environ['ONLY_HERE'], os.getcwd(), sys.argv[1:], sys.stdin.read());"
        "print('b', file=sys.stderr); sys.exit(7)"
    )
    done = fork_server.run(["a b"], tmp_path, environment | {"ONLY_HERE": "yes"}, "text", program=program)
    assert (done.returncode, done.stdout, done.stderr) == (7, f"yes {tmp_path} ['a b'] text\n", "b\n")
    assert fork_server.run([], tmp_path, environment, program="import os; print('ONLY_HERE' in os.environ)").stdout == "False\n"


@pytest.mark.parametrize(
    ("program", "code", "error"), [("sys.exit('no')", 1, "no\n"), ("raise ValueError('x')", 1, "ValueError: x\n")]
)
def test_a_fork_exits_like_a_process(environment: dict[str, str], tmp_path: Path, program: str, code: int, error: str) -> None:
    done = fork_server.run([], tmp_path, environment, program=f"import sys; {program}")
    assert (done.returncode, done.stderr[-len(error) :]) == (code, error)


def test_forks_run_at_the_same_time_and_can_be_killed(environment: dict[str, str], tmp_path: Path) -> None:
    program = "import sys; print(sys.stdin.read(), flush=True)"
    read, write = (os.fdopen(end, mode) for end, mode in zip(os.pipe(), ("rb", "wb"), strict=True))
    with read, tempfile.TemporaryFile() as output:
        waiting = fork_server.start([], tmp_path, environment, [read, output, output], program=program)
        assert fork_server.run([], tmp_path, environment, program="print('done')").stdout == "done\n"
        assert waiting.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(0.01)
        waiting.kill()
        assert waiting.wait(PATIENCE) == waiting.poll() == -signal.SIGKILL
    write.close()


def test_a_fork_reads_the_configuration_of_git_in_its_home_directory(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text("[user]\n  name = Ada\n")
    program = "import pygit2; print(pygit2.Config.get_global_config()['user.name'])"
    homes = environment | {"HOME": str(tmp_path)}
    found = [fork_server.run([], tmp_path, homes, program=program, fork=fork).stdout for fork in (True, False)]
    assert found == ["Ada\n"] * 2


def test_a_different_locale_is_read_by_a_new_process(environment: dict[str, str], tmp_path: Path) -> None:
    program = "import sys; print('gitsched.reconcile' in sys.modules)"
    assert fork_server.run([], tmp_path, environment, program=program).stdout == "True\n"
    assert fork_server.run([], tmp_path, environment | {"LC_ALL": "C"}, program=program).stdout == "False\n"
