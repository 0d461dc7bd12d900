"""Run the git executable with a clean environment and a time limit, and classify its error output as permanent, temporary or
conflict."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from gitsched.git.urls import redact
from gitsched.model.errors import Conflict, GitschedError, Permanent, Temporary

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


MINIMUM_VERSION = (2, 31)
"""The first version of git that reads configuration from GIT_CONFIG_COUNT, which sets the allowed protocols and checks of each
command."""
_TERMINATION_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""
_VERSION = re.compile(r"git version (\d+)\.(\d+)")


class GitResult(NamedTuple):
    """The result of a git process; `exit_code` is negative when a signal ended it."""

    exit_code: int
    stdout: str
    stderr: str


def clean_environment(config: Sequence[tuple[str, str]] = (), environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for git: the caller's, for credential helpers and ssh, without variables that redirect git. `config`
    overrides configuration files."""
    source = os.environ if environment is None else environment
    allowed = {name: value for name, value in source.items() if not name.startswith("GIT_") or name in _KEPT_VARIABLES}
    count = int(source["GIT_CONFIG_COUNT"]) if source.get("GIT_CONFIG_COUNT", "").isdecimal() else 0
    pairs = [(source.get(f"GIT_CONFIG_KEY_{i}"), source.get(f"GIT_CONFIG_VALUE_{i}")) for i in range(min(count, 1000))]
    inherited = [(key, value) for key, value in pairs if key is not None and value is not None]
    for index, (key, value) in enumerate((*inherited, *config)):
        allowed[f"GIT_CONFIG_KEY_{index}"], allowed[f"GIT_CONFIG_VALUE_{index}"] = key, value
    allowed["GIT_CONFIG_COUNT"] = str(len(inherited) + len(config))
    allowed |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "LANGUAGE": "C"}
    return allowed


def run_git(
    arguments: Sequence[str],
    *,
    git_dir: str | None = None,
    config: Sequence[tuple[str, str]] = (),
    data: str | None = None,
    timeout: float = 60.0,
    cwd: str | None = None,
    extra_environment: Mapping[str, str] | None = None,
    inherited_files: Sequence[int] = (),
) -> GitResult:
    """Run git and return its output with any exit code.

    After `timeout` seconds git and its child processes are ended and Temporary is raised. Permanent when there is no git. `cwd`
    is the working directory, `extra_environment` is added to the environment, and git inherits the open `inherited_files`. The
    process has a session of its own, so neither git nor ssh can prompt on the caller's terminal.
    """
    _check_version()
    command = ["git", *((f"--git-dir={git_dir}",) if git_dir is not None else ()), *arguments]
    environment = clean_environment(config) | dict(extra_environment or {})
    return _run(command, f"git {arguments[0]}", environment, data, timeout, cwd, inherited_files)


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


def _compile_patterns(*patterns: str, before: str = "", flags: int = 0) -> re.Pattern[str]:
    return re.compile(before + f"(?:{'|'.join(patterns)})", flags)


_LOCK_ERROR = re.compile(r"Unable to create '([^'\n]+\.lock)'")
_CONFLICT_ERROR = _compile_patterns(
    r"\((?:stale info|fetch first|non-fast-forward|needs force|reference already exists|incorrect old value provided)\)",
    r"but expected [0-9a-f]{40}",
    r": reference already exists",
)
_NETWORK_ERROR = _compile_patterns(
    "could not resolve|name resolution|failed to connect|couldn't connect|connection (?:refused|reset|closed|aborted)",
    "network is unreachable|no route to host|timed out|early eof|hung up unexpectedly|unexpected disconnect|empty reply",
    r"error: 5\d\d|error: 4(?:08|09|25|29)|ssl_error|tls connection|kex_exchange|no space left|quota exceeded|input/output error",
    flags=re.IGNORECASE,
)
_CORRUPTION_ERROR = _compile_patterns(
    "bad object|bad tree object|bad pack|bad config|bad shallow|bad signature|broken (?:link|ref)|not a valid object",
    "could not parse|is corrupt|is empty|too small|inflate|unable to read|unable to find|does not match index|wrong index",
    "missing (?:blob|tree|commit)|not a git repository: |not a packfile|unresolved deltas|did not send all necessary objects",
    before="^(?:fatal|error): .*",
    flags=re.MULTILINE,
)
_PERMANENT_ERROR = _compile_patterns(
    "Authentication failed|could not read (?:Username|Password)|terminal prompts disabled|Permission denied|Host key verification",
    r"URL returned error: 4\d\d|[Rr]epository (?:'.*' )?not found|does not appear to be a git repository|does not exist",
    "transport '.*' not allowed|[Uu]nsupported protocol|hook declined|protected branch|denied by|deny|prohibited",
    "cannot create 'refs/|couldn't find remote ref|not our ref|Server does not allow|SSL certificate|certificate verif|fsck",
    "unable to update url base|unknown option|not valid: is this a git repository|dubious ownership|shallow update not allowed",
)
_CONTROL_CHARACTERS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0e-\x1f\x7f-\x9f]")


class CorruptRepository(Temporary):
    """Objects of the local repository are unreadable; a private clone may be deleted and fetched again."""


class RefLocked(Temporary):
    """The remote's ref is locked by another process, or a lock file is left over."""


def classify_failure(action: str, output: str) -> GitschedError:
    """Return the exception for the output of git (error output, and a push's porcelain) when `action` failed.

    An unknown failure is Temporary: a retry costs little, and only a known failure may stop the retries.
    """
    message = f"{action}: {_summarize_output(output)}"
    lock = _LOCK_ERROR.search(output)
    if lock is not None:
        return RefLocked(f"{action}: the ref is locked by {lock[1]}; remove that file there if no other Git process is running")
    if "mismatched algorithms" in output:
        return Permanent(f"{action}: it has SHA-256 object ids; gitsched works with SHA-1 repositories only")
    if _CONFLICT_ERROR.search(output):
        return Conflict(message)
    if _NETWORK_ERROR.search(output):
        return Temporary(message)
    if _PERMANENT_ERROR.search(output):
        return Permanent(message)
    own_output = "\n".join(line for line in output.splitlines() if not line.startswith("remote:"))
    return CorruptRepository(message) if _CORRUPTION_ERROR.search(own_output) else Temporary(message)


def _summarize_output(output: str) -> str:
    """Return the lines of the output that state the error, at most 600 characters, without credentials and advice."""
    lines = (_CONTROL_CHARACTERS.sub("", line).strip() for line in redact(output).splitlines())
    noise = ("hint:", "To ", "Done", "Please make sure", "and the repository exists.")
    text = "; ".join(dict.fromkeys(line for line in lines if line and not line.startswith(noise)))
    return (text or "git gave no reason")[:600]
