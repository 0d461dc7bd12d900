"""Run the git executable with a clean environment and a time limit."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol

from gitsched.model.errors import Permanent, Temporary
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.git.mirrored_refs import CloneControl

_KEPT_VARIABLES = frozenset(
    {
        "GIT_ASKPASS",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CONFIG_SYSTEM",
        "GIT_EXEC_PATH",
        "GIT_HTTP_LOW_SPEED_LIMIT",
        "GIT_HTTP_LOW_SPEED_TIME",
        "GIT_HTTP_USER_AGENT",
        "GIT_PROXY_SSL_CAINFO",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_SSH_VARIANT",
        "GIT_SSL_CAINFO",
        "GIT_SSL_CAPATH",
        "GIT_SSL_CERT",
        "GIT_SSL_CERT_PASSWORD_PROTECTED",
        "GIT_SSL_KEY",
    }
)
"""The GIT_ variables that configure how to reach a server. All others (GIT_DIR, GIT_INDEX_FILE, GIT_OBJECT_DIRECTORY and so on)
would redirect git to another repository; they are set in a hook or in `git rebase --exec`."""


_NO_CONFIG_FILES = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
"""Variables with which git reads no configuration of the user and of the system."""

MINIMUM_VERSION = (2, 32)
"""The first version of git that reads GIT_CONFIG_GLOBAL. GIT_CONFIG_COUNT, which sets the allowed protocols and checks of each command,
is older."""
_TERMINATION_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""
_VERSION = re.compile(r"git version (\d+)\.(\d+)")


class GitResult(NamedTuple):
    """The result of a git process; `exit_code` is negative when a signal ended it."""

    exit_code: int
    stdout: str
    stderr: str


class GitDirectory(Protocol):
    """A repository in which git runs."""

    @property
    def path(self) -> str:
        """The Git directory."""

    @property
    def private(self) -> CloneControl | None:
        """What belongs to a private clone; None for any other repository."""


def clean_environment(
    config: Sequence[tuple[str, str]] = (), environment: Mapping[str, str] | None = None, *, private: bool = False
) -> dict[str, str]:
    """Return the environment for git: the caller's, for credential helpers and ssh, without variables that redirect git. `config`
    overrides configuration files. In a `private` clone it is all that git reads besides the file of the clone."""
    source = os.environ if environment is None else environment
    allowed = {name: value for name, value in source.items() if not name.startswith("GIT_") or name in _KEPT_VARIABLES}
    count = int(source["GIT_CONFIG_COUNT"]) if source.get("GIT_CONFIG_COUNT", "").isdecimal() and not private else 0
    pairs = [(source.get(f"GIT_CONFIG_KEY_{i}"), source.get(f"GIT_CONFIG_VALUE_{i}")) for i in range(min(count, 1000))]
    inherited = [(key, value) for key, value in pairs if key is not None and value is not None]
    for index, (key, value) in enumerate((*inherited, *config)):
        allowed[f"GIT_CONFIG_KEY_{index}"], allowed[f"GIT_CONFIG_VALUE_{index}"] = key, value
    allowed["GIT_CONFIG_COUNT"] = str(len(inherited) + len(config))
    allowed |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "LANGUAGE": "C"}
    return allowed | (_NO_CONFIG_FILES if private else {})


def run_git(
    arguments: Sequence[str],
    *,
    repository: GitDirectory | None = None,
    config: Sequence[tuple[str, str]] = (),
    data: str | None = None,
    timeout: float = 60.0,
    cwd: str | None = None,
    extra_environment: Mapping[str, str] | None = None,
) -> GitResult:
    """Run git, in a repository or in the directory `cwd`, and return its output with any exit code.

    In a private clone, the configuration of the user and of the system does not count, so that no hook, program or default that it sets
    has an effect, in any version of git; pass what contacting a remote needs as `config`. Git inherits the lock of the clone.

    After `timeout` seconds git and its child processes are ended and Temporary is raised. Permanent when there is no git.
    `extra_environment` is added to the environment. The process has a session of its own, so neither git nor ssh can prompt on the
    caller's terminal.
    """
    _check_version()
    command = ["git", *((f"--git-dir={repository.path}",) if repository is not None else ()), *arguments]
    private = repository.private if repository is not None else None
    environment = clean_environment(config, private=private is not None) | dict(extra_environment or {})
    return _run(command, f"git {arguments[0]}", environment, data, timeout, cwd, private.handles if private is not None else ())


def run_program(
    command: Sequence[str],
    *,
    data: str | None = None,
    timeout: float = 60.0,
    cwd: str | None = None,
    extra_environment: Mapping[str, str] | None = None,
) -> GitResult:
    """Run a program that belongs to git, such as gpg, as `run_git` runs git."""
    return _run(command, command[0], clean_environment() | dict(extra_environment or {}), data, timeout, cwd)


def _run(
    command: Sequence[str],
    title: str,
    environment: Mapping[str, str],
    data: str | None,
    timeout: float,
    cwd: str | None,
    inherited_files: Sequence[int] = (),
) -> GitResult:
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=dict(environment),
            start_new_session=True,
            pass_fds=inherited_files,
            encoding="utf-8",
            errors="backslashreplace",
        )
    except FileNotFoundError as error:
        raise Permanent(f"there is no {'executable' if error.filename == command[0] else 'directory'} {error.filename}") from error
    try:
        out, err = child.communicate(data, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        _terminate(child)
        raise Temporary(f"{title} did not finish within {timeout:g} seconds") from error
    except BaseException:
        _terminate(child)
        raise
    return GitResult(child.returncode, out, err or (f"signal {-child.returncode} ended {title}" if child.returncode < 0 else ""))


@cache
def _check_version() -> None:
    """Check once per process that git is installed and new enough: an older git would silently ignore settings that make fetches
    and pushes safe."""
    try:
        done = subprocess.run(["git", "version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False, text=True)
    except FileNotFoundError as error:
        raise Permanent(
            f"the git executable is not on the PATH; gitsched needs git {_format_version(MINIMUM_VERSION)} or newer"
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Temporary(f"git cannot be started: {error}") from error
    found = _VERSION.search(done.stdout)
    if found is None:
        raise Permanent(f"cannot read the version of git: `git version` printed {(done.stdout or done.stderr).strip()[:200]!r}")
    version = (int(found[1]), int(found[2]))
    if version < MINIMUM_VERSION:
        raise Permanent(
            f"git {_format_version(version)} is too old: gitsched needs git {_format_version(MINIMUM_VERSION)} or newer"
        )


def _format_version(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _terminate(child: subprocess.Popen[str]) -> None:
    """End git and its child processes: with SIGTERM first, so that git removes its lock files, then with SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        # Also when git itself has ended: other processes of its group still hold the pipes.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=_TERMINATION_GRACE)
            return
