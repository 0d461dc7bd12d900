"""Refs, local and remote: update by compare-and-swap, list, fetch and push with the git executable."""

from __future__ import annotations

import logging
import re
import shlex
import time
import time as clock
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gitsched.git.process import GitResult, RefLocked, classify_failure, run_git
from gitsched.git.urls import check_url, is_loopback, is_url, redact
from gitsched.model.errors import Conflict, GitschedError, Permanent, Temporary

if TYPE_CHECKING:
    from gitsched.git.repository import Repository

_log = logging.getLogger("gitsched.git")

_LOCK_ERROR = re.compile(r"Unable to create '(.+?\.lock)': File exists")
_CONFLICT_ERROR = re.compile(r"but expected [0-9a-f]+|reference already exists|unable to resolve reference|reference is missing")
_REF_FORMAT = re.compile(r"refs/(?!.*(?://|\.\.|@\{|[\x00-\x20\x7f~^:?*\[\\]|/\.|\.lock(?:/|$)|/$|\.$))[^/].*", re.DOTALL)
_ZERO_OID = "0" * 40
_REF_LOCK_TIMEOUT = 2.0


def check_ref(ref: str) -> str:
    """Return the ref; Permanent unless it is a full name by the rules of git-check-ref-format."""
    if len(ref) > 500 or not _REF_FORMAT.fullmatch(ref):
        raise Permanent(f"not a name for a ref: {ref[:100]!r}")
    return ref


class RefMove(NamedTuple):
    """A ref that is to move from the commit `old` (None: it must not exist) to `new`."""

    ref: str
    new: str
    old: str | None


def update_ref(repository: Repository, ref: str, new: str, old: str | None) -> None:
    """Move one ref as `update_refs` does."""
    update_refs(repository, [RefMove(ref, new, old)])


def update_refs(repository: Repository, moves: Sequence[RefMove]) -> None:
    """Move all refs by compare-and-swap, or none of them.

    Conflict when a ref has another value, Temporary when another process holds a lock, Permanent for a symbolic ref and for a
    name that conflicts with another branch. The files of a worktree in which a branch is checked out are not updated; a warning
    says so.
    """
    for move in moves:
        check_ref_update(repository, check_ref(move.ref))
    branches = [move for move in moves if move.new != move.old and move.ref.startswith("refs/heads/")]
    worktrees = [(move, find_worktree(repository, move.ref)) for move in branches]
    deadline = clock.monotonic() + _REF_LOCK_TIMEOUT
    while True:
        done = _run_update_refs(repository, moves)
        if done.exit_code == 0:
            break
        lock = _LOCK_ERROR.search(done.stderr)
        if lock is None or clock.monotonic() > deadline:
            raise _explain_failure(moves, done.stderr, lock)
        clock.sleep(0.05)
    for (ref, new, old), worktree in worktrees:
        if worktree is not None:
            _log.warning(
                "%s moved to %s, but %s has it checked out and still has the files of %s: run `git -C %s reset --hard` before you "
                "work there; `git worktree add --detach` avoids this",
                ref, new[:12], worktree, old[:12] if old else "no commit", shlex.quote(worktree),
            )  # fmt: skip


def _run_update_refs(repository: Repository, moves: Sequence[RefMove]) -> GitResult:
    arguments = ["update-ref", "-m", "gitsched", "--stdin"]
    data = "".join(f"option no-deref\nupdate {move.ref} {move.new} {move.old or _ZERO_OID}\n" for move in moves)
    if repository.lock is None:
        return run_git(arguments, git_dir=repository.path, data=data)
    with repository.lock.hold():
        return run_git(arguments, git_dir=repository.path, data=data, inherited_files=repository.lock.handles)


def _explain_failure(moves: Sequence[RefMove], output: str, lock: re.Match[str] | None) -> GitschedError:
    refs = " and ".join(move.ref for move in moves)
    if lock is not None:
        return Temporary(f"{refs} is locked by {lock[1]}; remove that file if no other Git process is running")
    if _CONFLICT_ERROR.search(output):
        return Conflict(" or ".join(f"{ref} is no longer {f'at {old}' if old else 'absent'}" for ref, _, old in moves))
    return classify_failure(f"cannot move {' and '.join(f'{move.ref} to {move.new}' for move in moves)}", output)


def find_branch_head(repository: Repository, branch: str) -> str | None:
    """Return the commit (hex) of a local branch; None if neither it nor the branch of origin exists.

    The branch of origin, as of the last fetch, counts instead if there is no local one or if it has all commits of the local one.
    """
    local, origin = (repository.resolve_ref(f"{prefix}{branch}") for prefix in ("refs/heads/", "refs/remotes/origin/"))
    return origin if local is None or (origin is not None and repository.has_ancestor(origin, local)) else local


def find_replaced_head(repository: Repository, branch: str, parent: str | None) -> str | None:
    """Return the commit from which a local branch may move to a commit with this parent: what `find_branch_head` found, or the commit of
    the local branch if that is older; None if there is no local branch."""
    local = repository.resolve_ref(f"refs/heads/{branch}")
    return local if local is None or (parent is not None and repository.has_ancestor(parent, local)) else parent


def check_ref_update(repository: Repository, ref: str) -> None:
    """Raise Permanent when the ref is symbolic."""
    target = repository.read_symbolic_ref(ref)
    if target is not None:
        raise Permanent(f"{ref} is a symbolic ref to {target}; gitsched moves only plain branches")


def find_worktree(repository: Repository, ref: str) -> str | None:
    """Return the worktree in which the branch is checked out, or None. The HEAD of a bare repository is not a worktree."""
    common = Path(repository.common_dir)
    main = {str(common.parent): common / "HEAD"} if repository.read_config("core.bare") != "true" else {}
    heads = main | list_linked_worktrees(repository)
    return next((root for root, head in heads.items() if head.exists() and head.read_text().strip() == f"ref: {ref}"), None)


def list_linked_worktrees(repository: Repository) -> dict[str, Path]:
    """Return the root directory of every linked worktree that exists, with the file that holds its HEAD."""
    found: dict[str, Path] = {}
    for linked in sorted(Path(repository.common_dir, "worktrees").glob("*")):
        pointer = linked / "gitdir"
        if pointer.exists() and (link := Path(linked, pointer.read_text().strip())).exists():
            found[str(link.resolve().parent)] = linked / "HEAD"
    return found


LS_REMOTE_TIMEOUT = 60.0
TRANSFER_TIMEOUT = 600.0
"""Seconds after which `git ls-remote`, and a fetch or push, are ended."""

_PACKET = "packet: "
"""Begins the text of GIT_TRACE_PACKET for each packet of the Git protocol."""

_PUSH_RETRY_DELAYS = (0.1, 0.3, 1.0)
"""Seconds between attempts while another push holds the server's lock on the ref; a lock that remains is an error."""

_TRANSPORT_NAMES = r"^(credential|http|url|ssh)\..*|^core\.(sshcommand|askpass|gitproxy)$"
"""Names of configuration that says how git contacts remotes."""
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
    """Return the object id (hex) of the remote's ref; None when it has no such ref.

    With a repository, its configuration applies, such as credentials that a CI job stored there.
    """
    return read_remote_refs(url, [ref], repository=repository).get(ref)


def read_remote_refs(
    url: str, refs: Sequence[str], *, repository: Repository | None = None, others: Collection[str] = ()
) -> dict[str, str]:
    """Return the refs that the remote has, with their object ids. Permanent when one of them is symbolic on the remote, unless it is one
    of the `others`, which is then left out."""
    rows = _run_ls_remote(url, [ref if ref == "HEAD" else check_ref(ref) for ref in refs], repository)
    symbolic = {name: value for value, name in rows if name in refs and name != "HEAD" and value.startswith("ref: ")}
    for name, value in symbolic.items():
        if name not in others:
            raise Permanent(f"{name} of {redact(url)} is a symbolic ref to {value[5:]}; gitsched moves only plain branches")
    return {name: value for value, name in rows if name in refs and name not in symbolic and not value.startswith("ref: ")}


def list_remote_refs(url: str, patterns: Sequence[str], *, repository: Repository | None = None) -> dict[str, str]:
    """Return the refs of the remote that match a pattern, such as refs/heads/facts/*, with their object ids. Symbolic ones are omitted."""
    rows = _run_ls_remote(url, patterns, repository)
    symbolic = {name for value, name in rows if value.startswith("ref: ")}
    return {name: value for value, name in rows if name not in symbolic and _REF_FORMAT.fullmatch(name)}


def read_default_branch(url: str, *, repository: Repository | None = None) -> tuple[str, str] | None:
    """Return the branch of the remote's HEAD, and its commit (hex); None when the remote does not report it."""
    values = [value for value, name in _run_ls_remote(url, ["HEAD"], repository) if name == "HEAD"]
    match values:
        case [symbolic, commit] if symbolic.startswith("ref: refs/heads/"):
            return symbolic.removeprefix("ref: refs/heads/"), commit
    return None


def _run_ls_remote(url: str, patterns: Sequence[str], repository: Repository | None) -> list[tuple[str, str]]:
    """Return rows of value and ref name; the value of a symbolic ref is "ref: " and its target."""
    arguments = ["ls-remote", "--symref", "--end-of-options", url, *patterns]
    done = run_transport(arguments, url, repository, LS_REMOTE_TIMEOUT)
    if done.exit_code == 0 and not done.stdout and url.startswith("http"):
        # To git, an HTTP response that ends in its headers is an empty repository without the smart protocol.
        done = run_transport(arguments, url, repository, LS_REMOTE_TIMEOUT, environment={"GIT_TRACE_PACKET": "1"})
        if done.exit_code == 0 and _PACKET not in done.stderr:
            raise Temporary(
                f"cannot list the refs of {redact(url)}: the response has no content of the Git protocol; it may have been cut off"
            )
    if done.exit_code != 0:
        raise classify_failure(f"cannot list the refs of {redact(url)}", done.stderr)
    return [(value, name) for value, _, name in (line.partition("\t") for line in done.stdout.splitlines())]


def fetch(repository: Repository, url: str, refspecs: Sequence[str], depth: int | None = None) -> None:
    """Fetch refs (`[+]source:destination`, full ref names) or object ids, without tags and submodules, and check every object.

    `depth` limits the history and makes the repository shallow.
    """
    for refspec in refspecs:
        source, colon, destination = refspec.removeprefix("+").partition(":")
        if not (len(source) == 40 and source.isalnum() and not colon):
            check_ref(source)
            check_ref(destination)
    options = ["--no-tags", "--no-prune", "--no-recurse-submodules", "--no-write-fetch-head", "--quiet"]
    if depth is not None:
        options.append(f"--depth={depth:d}")
    done = run_transport(["fetch", *options, "--end-of-options", url, *refspecs], url, repository, TRANSFER_TIMEOUT)
    if done.exit_code != 0:
        raise classify_failure(f"cannot fetch from {redact(url)}", done.stderr)


def push(repository: Repository, url: str, ref: str, new: str, expected: str | None, *, rewrite: bool = False) -> bool:
    """Push with force-with-lease: move the remote's ref from `expected` (None: it must not exist) to `new`, or raise Conflict.

    Return False when the remote already had that commit: another process made the same decision, or the response to this push was
    lost and the transport sent it again.

    The lease checks that the ref still has the expected value. `expected` must also be the only parent of
    `new` (ValueError: a bug of the caller), since a lease alone would allow a push to drop history; with `rewrite`, it may. A push that
    the server accepted is a success even if its response is lost.
    """
    parents = repository.commit(new).parents
    if new != expected and not rewrite and parents != ((expected,) if expected else ()):
        raise ValueError(f"commit {new} has the parents {parents}, expected was {expected}")
    lease = f"--force-with-lease={check_ref(ref)}:{expected or ''}"
    action = f"cannot push to {ref} of {redact(url)}"
    for wait in (*_PUSH_RETRY_DELAYS, None):
        failure: GitschedError
        try:
            done = run_push(repository, url, [lease], f"{new}:{ref}")
            if done.exit_code == 0:
                return not any(line.startswith("=\t") for line in done.stdout.splitlines())
            failure = classify_failure(action, f"{done.stdout}\n{done.stderr}")
        except Temporary as error:
            failure = error
        if _verify_push(repository, url, ref, new, expected, failure):
            # A push that was rejected did not move the ref, even if the ref now has the new value.
            return not isinstance(failure, Conflict | RefLocked)
        if wait is None or not isinstance(failure, RefLocked):
            raise failure
        time.sleep(wait)
    raise AssertionError("unreachable")


def find_remote_url(repository: Repository, name: str) -> str | None:
    """Return the push URL of a named remote; None when there is no such remote. A relative path is made absolute."""
    if not name or name.startswith("-") or any(ch in name for ch in "\n\0"):
        raise Permanent(f"not the name of a remote: {name[:100]!r}")
    url = repository.read_config(f"remote.{name}.pushurl") or repository.read_config(f"remote.{name}.url")
    if url is None or is_url(url) or url.startswith("/"):
        return url
    return str((Path(repository.root) / url).resolve())


def _verify_push(repository: Repository, url: str, ref: str, new: str, expected: str | None, failure: GitschedError) -> bool:
    """Return whether the remote applied a push that failed or whose response was lost. Conflict when another push was first."""
    if isinstance(failure, Permanent):
        raise failure
    try:
        now = read_remote_ref(url, ref, repository=repository)
    except Temporary:
        raise failure from None
    if now not in (new, expected):
        raise Conflict(f"{ref} of {redact(url)} is no longer {f'at {expected}' if expected else 'absent'}") from failure
    return now == new


def run_push(repository: Repository, url: str, options: Sequence[str], refspec: str) -> GitResult:
    fixed = ["--porcelain", "--no-follow-tags", "--recurse-submodules=no"]
    return run_transport(["push", *fixed, *options, "--end-of-options", url, refspec], url, repository, TRANSFER_TIMEOUT)


def read_transport_config(repository: Repository) -> tuple[tuple[str, str], ...]:
    """Return what the configuration of a repository says about how git contacts remotes, such as the credentials of a CI job."""
    arguments = ["config", "--local", "--includes", "--null", "--get-regexp", _TRANSPORT_NAMES]
    done = run_git(arguments, git_dir=repository.path)
    entries = (entry.partition("\n") for entry in done.stdout.split("\0") if entry)
    return tuple((name, value if separator else "true") for name, separator, value in entries)


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
    applies; `config` takes precedence. The command reads `data`."""
    plain = check_url(url).startswith("http:") and is_loopback(url)
    own = repository.transport_config if repository is not None else ()
    config = (*own, *_TRANSPORT_CONFIG, *((("protocol.http.allow", "always"),) if plain else ()), *config)
    if repository is None:
        return run_git(arguments, config=config, timeout=timeout, cwd="/", extra_environment=environment)
    return run_git(
        arguments,
        git_dir=repository.path,
        config=config,
        data=data,
        timeout=timeout,
        cwd=repository.root,
        extra_environment=environment,
        inherited_files=repository.lock.handles if repository.lock is not None else (),
    )
