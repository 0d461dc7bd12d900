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
"""The GIT_ variables that say how to reach a server. All others (GIT_DIR, GIT_INDEX_FILE, GIT_OBJECT_DIRECTORY ...) would make git
work on something else than what it was told to; a hook or `git rebase --exec` that calls us has them set."""


MINIMUM_VERSION = (2, 31)
"""The first git that takes configuration from GIT_CONFIG_COUNT, by which every command's protocols and checks are set."""
_TERMINATION_GRACE = 2.0
"""Seconds between asking git to end and making it."""
_VERSION = re.compile(r"git version (\d+)\.(\d+)")


class GitResult(NamedTuple):
    """What a git process left: `code` is negative when a signal ended it."""

    exit_code: int
    stdout: str
    stderr: str


def clean_environment(config: Sequence[tuple[str, str]] = (), environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for git: the caller's, for credential helpers and ssh, less what redirects git. `config` wins over files."""
    source = os.environ if environment is None else environment
    kept = {name: value for name, value in source.items() if not name.startswith("GIT_") or name in _KEPT_VARIABLES}
    count = int(source["GIT_CONFIG_COUNT"]) if source.get("GIT_CONFIG_COUNT", "").isdecimal() else 0
    pairs = [(source.get(f"GIT_CONFIG_KEY_{i}"), source.get(f"GIT_CONFIG_VALUE_{i}")) for i in range(min(count, 1000))]
    given = [(key, value) for key, value in pairs if key is not None and value is not None]
    for index, (key, value) in enumerate((*given, *config)):
        kept[f"GIT_CONFIG_KEY_{index}"], kept[f"GIT_CONFIG_VALUE_{index}"] = key, value
    kept["GIT_CONFIG_COUNT"] = str(len(given) + len(config))
    kept |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "LANGUAGE": "C"}
    return kept


def run_git(
    arguments: Sequence[str],
    *,
    git_dir: str | None = None,
    config: Sequence[tuple[str, str]] = (),
    data: str | None = None,
    timeout: float = 60.0,
    at: str | None = None,
    more: Mapping[str, str] | None = None,
) -> GitResult:
    """Run git and return what it said, whatever its exit code.

    `timeout` is in seconds; when it is over, git and all that it started are ended and Temporary is raised. Permanent when there
    is no git. `at` is the directory it starts in, `more` is added to its environment. The process is a session of its own, so that
    neither git nor ssh can ask questions on the caller's terminal.
    """
    _check_version()
    command = ["git", *((f"--git-dir={git_dir}",) if git_dir is not None else ()), *arguments]
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=at,
            env=clean_environment(config) | dict(more or {}),
            start_new_session=True,
            encoding="utf-8",
            errors="backslashreplace",
        )
    except FileNotFoundError as error:
        raise Permanent(f"there is no {'git executable' if error.filename == 'git' else 'directory'} {error.filename}") from error
    try:
        out, err = child.communicate(data, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        _terminate(child)
        raise Temporary(f"git {arguments[0]} did not finish within {timeout:g} seconds") from error
    except BaseException:
        _terminate(child)
        raise
    return GitResult(child.returncode, out, err)


@cache
def _check_version() -> None:
    """Whether git is here and new enough, looked at once a process: an older one would silently ignore what keeps a transport safe."""
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
        raise Permanent(f"`git version` does not say its version, but {(done.stdout or done.stderr).strip()[:200]!r}")
    version = (int(found[1]), int(found[2]))
    if version < MINIMUM_VERSION:
        raise Permanent(
            f"git {_format_version(version)} is too old: gitsched needs git {_format_version(MINIMUM_VERSION)} or newer"
        )


def _format_version(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _terminate(child: subprocess.Popen[str]) -> None:
    """End git and all that it started: asked first, so that it can remove its lock files, then forced."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        # Also when git itself is gone: who is left of its group still holds the pipes.
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
    r"error: 5\d\d|error: 4(?:08|09|25|29)|ssl_error|tls connection|kex_exchange|no space left|quota exceeded",
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
    """The local copy's objects are unreadable; one that is private may be thrown away."""


class RefLocked(Temporary):
    """Somebody holds a lock on the remote's ref, or died holding it."""


def classify_failure(doing: str, words: str) -> GitschedError:
    """The exception for what git wrote (error output, and a push's porcelain) when `doing` failed.

    What nobody foresaw is Temporary: a retry costs little, and giving up for good is for failures that are understood.
    """
    message = f"{doing}: {_summarize_output(words)}"
    lock = _LOCK_ERROR.search(words)
    if lock is not None:
        return RefLocked(f"{doing}: the ref is locked by {lock[1]}; remove that file there if no other Git process is running")
    if "mismatched algorithms" in words:
        return Permanent(f"{doing}: it has SHA-256 object ids; gitsched works with SHA-1 repositories only")
    if _CONFLICT_ERROR.search(words):
        return Conflict(message)
    if _NETWORK_ERROR.search(words):
        return Temporary(message)
    if _PERMANENT_ERROR.search(words):
        return Permanent(message)
    mine = "\n".join(line for line in words.splitlines() if not line.startswith("remote:"))
    return CorruptRepository(message) if _CORRUPTION_ERROR.search(mine) else Temporary(message)


def _summarize_output(words: str) -> str:
    """The lines that say what went wrong, at most 600 characters, without credentials and advice."""
    lines = (_CONTROL_CHARACTERS.sub("", line).strip() for line in redact(words).splitlines())
    useless = ("hint:", "To ", "Done", "Please make sure", "and the repository exists.")
    text = "; ".join(dict.fromkeys(line for line in lines if line and not line.startswith(useless)))
    return (text or "git gave no reason")[:600]
