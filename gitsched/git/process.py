"""Running the git executable: its own process group, a cleaned environment, a time limit, and its words in English."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from gitsched.model.errors import Permanent, Temporary

_KEEP = frozenset(
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


OLDEST = (2, 31)
"""The first git that takes configuration from GIT_CONFIG_COUNT, by which every command's protocols and checks are set."""
_TIME_TO_END = 2.0
"""Seconds between asking git to end and making it."""
_VERSION = re.compile(r"git version (\d+)\.(\d+)")


class Finished(NamedTuple):
    """What a git process left: `code` is negative when a signal ended it."""

    code: int
    out: str
    err: str


def clean_environment(config: Sequence[tuple[str, str]] = (), environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for git: the caller's, for credential helpers and ssh, less what redirects git. `config` wins over files."""
    source = os.environ if environment is None else environment
    kept = {name: value for name, value in source.items() if not name.startswith("GIT_") or name in _KEEP}
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
) -> Finished:
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
        _end(child)
        raise Temporary(f"git {arguments[0]} did not finish within {timeout:g} seconds") from error
    except BaseException:
        _end(child)
        raise
    return Finished(child.returncode, out, err)


@cache
def _check_version() -> None:
    """Whether git is here and new enough, looked at once a process: an older one would silently ignore what keeps a transport safe."""
    try:
        done = subprocess.run(["git", "version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False, text=True)
    except FileNotFoundError as error:
        raise Permanent(f"the git executable is not on the PATH; gitsched needs git {_say(OLDEST)} or newer") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Temporary(f"git cannot be started: {error}") from error
    found = _VERSION.search(done.stdout)
    if found is None:
        raise Permanent(f"`git version` does not say its version, but {(done.stdout or done.stderr).strip()[:200]!r}")
    version = (int(found[1]), int(found[2]))
    if version < OLDEST:
        raise Permanent(f"git {_say(version)} is too old: gitsched needs git {_say(OLDEST)} or newer")


def _say(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _end(child: subprocess.Popen[str]) -> None:
    """End git and all that it started: asked first, so that it can remove its lock files, then forced."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        # Also when git itself is gone: who is left of its group still holds the pipes.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=_TIME_TO_END)
            return
