"""Fetch, push and list remote refs with the git executable, so that the user's and the CI's credentials apply."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from gitsched.git.process import GitResult, RefLocked, classify_failure, run_git
from gitsched.git.refs import check_ref
from gitsched.git.repository import Repository
from gitsched.git.urls import check_url, is_loopback, is_url, redact
from gitsched.model.errors import Conflict, GitschedError, Permanent, Temporary

LS_REMOTE_TIMEOUT = 60.0
TRANSFER_TIMEOUT = 600.0
"""Seconds until a look at a remote's refs, or a transfer, is given up."""

_PUSH_RETRY_DELAYS = (0.1, 0.3, 1.0)
"""Another writer's push holds the server's lock on a ref for moments; only a lock that stays is worth telling."""

_TRANSPORT_CONFIG = (
    ("protocol.allow", "never"),
    ("protocol.https.allow", "always"),
    ("protocol.ssh.allow", "always"),
    ("protocol.file.allow", "always"),
    ("transfer.fsckObjects", "true"),
    ("transfer.credentialsInUrl", "allow"),
    ("gc.autoDetach", "false"),
    ("maintenance.autoDetach", "false"),
    ("advice.pushUpdateRejected", "false"),
)


def read_remote_ref(url: str, ref: str, *, repository: Repository | None = None) -> str | None:
    """The object id (hex) that the remote's ref has now; None when it has no such ref.

    With a repository, that one's configuration holds: credentials that CI left in it, say.
    """
    return read_remote_refs(url, [ref], repository=repository).get(ref)


def read_remote_refs(url: str, refs: Sequence[str], *, repository: Repository | None = None) -> dict[str, str]:
    """Those of the refs that the remote has, with their object ids. Permanent when one of them is symbolic there."""
    patterns = [ref if ref == "HEAD" else check_ref(ref) for ref in refs]
    done = _run_transport(["ls-remote", "--symref", "--end-of-options", url, *patterns], url, repository, LS_REMOTE_TIMEOUT)
    if done.exit_code != 0:
        raise classify_failure(f"cannot look at {redact(url)}", done.stderr)
    found: dict[str, str] = {}
    for line in done.stdout.splitlines():
        value, _, name = line.partition("\t")
        if name not in refs:
            continue
        if not value.startswith("ref: "):
            found[name] = value
        elif name != "HEAD":
            raise Permanent(f"{name} of {redact(url)} is a symbolic ref to {value[5:]}; gitsched moves only plain branches")
    return found


def read_default_branch(url: str, *, repository: Repository | None = None) -> tuple[str, str] | None:
    """The branch that the remote's HEAD is on, and the commit (hex) it is at; None when the remote does not say."""
    done = _run_transport(["ls-remote", "--symref", "--end-of-options", url, "HEAD"], url, repository, LS_REMOTE_TIMEOUT)
    if done.exit_code != 0:
        raise classify_failure(f"cannot look at {redact(url)}", done.stderr)
    values = [value for value, _, name in (line.partition("\t") for line in done.stdout.splitlines()) if name == "HEAD"]
    match values:
        case [symbolic, commit] if symbolic.startswith("ref: refs/heads/"):
            return symbolic.removeprefix("ref: refs/heads/"), commit
    return None


def fetch(repository: Repository, url: str, refspecs: Sequence[str], depth: int | None = None) -> None:
    """Fetch refs (`[+]source:destination`, either a full ref name) or object ids; no tags, no submodules, every object checked.

    `depth` cuts history off and makes the repository shallow.
    """
    for refspec in refspecs:
        source, colon, destination = refspec.removeprefix("+").partition(":")
        if not (len(source) == 40 and source.isalnum() and not colon):
            check_ref(source)
            check_ref(destination)
    options = ["--no-tags", "--no-prune", "--no-recurse-submodules", "--no-write-fetch-head", "--quiet"]
    if depth is not None:
        options.append(f"--depth={depth:d}")
    done = _run_transport(["fetch", *options, "--end-of-options", url, *refspecs], url, repository, TRANSFER_TIMEOUT)
    if done.exit_code != 0:
        raise classify_failure(f"cannot fetch from {redact(url)}", done.stderr)


def push(repository: Repository, url: str, ref: str, new: str, expected: str | None) -> bool:
    """Move the remote's ref from `expected` (None: it must not exist) to the commit `new`, or raise Conflict.

    False says that the remote had that very commit already when it came to moving the ref: a second process has decided the same, or
    the answer to our own push was lost and the transport sent it again.

    The lease makes sure that the ref is where it was seen; `expected` must be the one parent of `new` too (ValueError: a bug of the
    caller), since a lease alone lets a push drop history. A push that the server took without our hearing of it is a success.
    """
    parents = repository.commit(new).parents
    if new != expected and parents != ((expected,) if expected else ()):
        raise ValueError(f"commit {new} has the parents {parents}, expected was {expected}")
    lease = f"--force-with-lease={check_ref(ref)}:{expected or ''}"
    doing = f"cannot push to {ref} of {redact(url)}"
    for wait in (*_PUSH_RETRY_DELAYS, None):
        failure: GitschedError
        try:
            done = _run_push(repository, url, [lease], f"{new}:{ref}")
            if done.exit_code == 0:
                return not any(line.startswith("=\t") for line in done.stdout.splitlines())
            failure = classify_failure(doing, f"{done.stdout}\n{done.stderr}")
        except Temporary as error:
            failure = error
        if _verify_push(repository, url, ref, new, expected, failure):
            # Who was refused, and finds the ref where it ought to be, cannot claim to have moved it.
            return not isinstance(failure, Conflict | RefLocked)
        if wait is None or not isinstance(failure, RefLocked):
            raise failure
        time.sleep(wait)
    raise AssertionError("unreachable")


def find_remote_url(repository: Repository, name: str) -> str | None:
    """Where the named remote of a repository is pushed to; None when there is no such remote. A relative path is made absolute."""
    if not name or name.startswith("-") or any(ch in name for ch in "\n\0"):
        raise Permanent(f"not the name of a remote: {name[:100]!r}")
    url = repository.read_config(f"remote.{name}.pushurl") or repository.read_config(f"remote.{name}.url")
    if url is None or is_url(url) or url.startswith("/"):
        return url
    return str((Path(repository.root) / url).resolve())


def _verify_push(repository: Repository, url: str, ref: str, new: str, expected: str | None, failure: GitschedError) -> bool:
    """Whether a push arrived although it failed or its answer was lost; only the remote knows. Conflict when others were faster."""
    if isinstance(failure, Permanent):
        raise failure
    try:
        now = read_remote_ref(url, ref, repository=repository)
    except Temporary:
        raise failure from None
    if now not in (new, expected):
        raise Conflict(f"{ref} of {redact(url)} is no longer {f'at {expected}' if expected else 'absent'}") from failure
    return now == new


def _run_push(repository: Repository, url: str, options: Sequence[str], refspec: str) -> GitResult:
    fixed = ["--porcelain", "--no-follow-tags", "--recurse-submodules=no"]
    return _run_transport(["push", *fixed, *options, "--end-of-options", url, refspec], url, repository, TRANSFER_TIMEOUT)


def push_notes(repository: Repository, url: str, ref: str) -> GitschedError | None:
    """Push a ref of lesser weight as it is here, never by force; what went wrong, or None. Conflict: somebody else pushes it, too."""
    try:
        done = _run_push(repository, url, [], f"{check_ref(ref)}:{ref}")
    except Temporary as error:
        return error
    if done.exit_code == 0:
        return None
    failure = classify_failure(f"cannot push {ref}", f"{done.stdout}\n{done.stderr}")
    return Conflict(str(failure)) if isinstance(failure, RefLocked) else failure


def _run_transport(arguments: Sequence[str], url: str, repository: Repository | None, timeout: float) -> GitResult:
    plain = check_url(url).startswith("http:") and is_loopback(url)
    config = (*_TRANSPORT_CONFIG, ("protocol.http.allow", "always")) if plain else _TRANSPORT_CONFIG
    if repository is None:
        return run_git(arguments, config=config, timeout=timeout, at="/")
    return run_git(arguments, git_dir=repository.path, config=config, timeout=timeout, at=repository.root)
