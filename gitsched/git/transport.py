"""Run git commands that contact a URL: allowed protocols, checks of objects, and the configuration that says how to reach the server."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from gitsched.git.process import GitResult, run_git
from gitsched.git.urls import check_url, is_loopback
from gitsched.model.errors import Permanent

if TYPE_CHECKING:
    from gitsched.git.repository import Repository

LS_REMOTE_TIMEOUT = 60.0
TRANSFER_TIMEOUT = 600.0
"""Seconds after which `git ls-remote`, and a fetch or push, are ended."""

_TRANSPORT_NAMES = r"^(credential|http|url|ssh|fetch\.fsck)\..*|^core\.(sshcommand|askpass|gitproxy)$|^protocol\.version$"
"""Names of configuration that says how git contacts remotes, and which objects with mistakes of the past it accepts."""
_TRANSPORT_CONFIG = (
    ("protocol.allow", "never"),
    ("protocol.https.allow", "always"),
    ("protocol.ssh.allow", "always"),
    ("protocol.file.allow", "always"),
    ("transfer.fsckObjects", "true"),
    ("fetch.fsckObjects", "true"),
    ("transfer.credentialsInUrl", "allow"),
    ("gc.autoDetach", "false"),
    ("maintenance.autoDetach", "false"),
    ("advice.pushUpdateRejected", "false"),
)
PROTOCOL_2 = ("protocol.version", "2")
"""Configuration with which servers say which object ids they have, and send objects by id that no ref names."""
_CONFIG_VARIABLES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM")
_SERVERS = {"push": ("receive-pack", "pushinsteadof")}
"""What a command other than a fetch runs on the server, and the configuration that rewrites its URL before url.*.insteadOf does."""


def read_config(git_directory: str, names: str) -> tuple[tuple[str, str], ...]:
    """Return the configuration whose names match an extended regular expression, in the order in which git reads it: that of the system,
    the user, the repository and the environment. A name may occur several times. Raise Permanent if git cannot read it."""
    arguments = ["config", "--includes", "--null", "--get-regexp", names]
    # Not as a command in the repository: in a private clone git reads no configuration of the user.
    done = run_git(arguments, cwd="/", extra_environment={"GIT_DIR": git_directory})
    if done.exit_code not in (0, 1):  # 1: there is none
        raise Permanent(f"git cannot read its configuration: {done.stderr.strip()}")
    entries = (entry.partition("\n") for entry in done.stdout.split("\0") if entry)
    return tuple((name, value if separator else "true") for name, separator, value in entries)


def read_transport_config(git_directory: str) -> tuple[tuple[str, str], ...]:
    """Return what the configuration of a repository says about how git contacts remotes, such as the credentials of a CI job."""
    return read_config(git_directory, _TRANSPORT_NAMES)


def run_transport(
    arguments: Sequence[str],
    url: str,
    repository: Repository | None,
    timeout: float,
    environment: Mapping[str, str] | None = None,
    config: Sequence[tuple[str, str]] = (),
    data: str | None = None,
) -> GitResult:
    """Run a git command that contacts a URL, with allowed protocols and checks of objects only. With a repository, its configuration
    applies; in a private clone, only what says how to contact remotes. `config` takes precedence. The command reads `data`."""
    plain = check_url(url).startswith("http:") and is_loopback(url)
    config = (*_TRANSPORT_CONFIG, *((("protocol.http.allow", "always"),) if plain else ()), *config)
    if repository is None:
        return run_git(arguments, config=config, timeout=timeout, cwd="/", extra_environment=environment)
    command, *others = arguments
    if repository.private is not None:
        own = read_transport_config(repository.private.settings or repository.path)
        others[:0] = _configure_server(command, url, own)
        config = (*own, *config)
    return run_git(
        [command, *others],
        repository=repository,
        config=config,
        data=data,
        timeout=timeout,
        cwd=repository.root,
        extra_environment=environment,
    )


def _configure_server(command: str, url: str, config: Iterable[tuple[str, str]]) -> list[str]:
    """Return the option that gives a server on this machine the configuration of the user, without which git would run in the private
    clone: the directory that it serves may belong to another user, and its hooks are those of the user. A remote server has its own."""
    program, rewritten = _SERVERS.get(command, ("upload-pack", "insteadof"))
    if not _rewrite(url, config, rewritten).startswith(("/", "file:")):
        return []
    kept = (f"{name}={shlex.quote(os.environ[name])} " for name in _CONFIG_VARIABLES if name in os.environ)
    return [f"--{program}=unset {' '.join(_CONFIG_VARIABLES)}; {''.join(kept)}git-{program}"]


def _rewrite(url: str, config: Iterable[tuple[str, str]], *kinds: str) -> str:
    """Return the URL that git contacts instead: the longest prefix counts, and url.*.pushInsteadOf before url.*.insteadOf."""
    for kind in dict.fromkeys((*kinds, "insteadof")):
        bases = [
            (value, name[4 : -len(kind) - 1]) for name, value in config if name.startswith("url.") and name.endswith(f".{kind}")
        ]
        found = max((base for base in bases if url.startswith(base[0])), key=lambda base: len(base[0]), default=None)
        if found is not None:
            return found[1] + url.removeprefix(found[0])
    return url
