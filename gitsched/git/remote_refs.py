"""Refs of a remote: list, fetch and push them with the git executable.

What a command that failed has done is read from the remote, not from what git prints: it says the same in other words in each version.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from gitsched.git import transport
from gitsched.git.client_hooks import explain_refusal
from gitsched.git.failures import CorruptRepository, is_aborted_by_hook, make_failure, recognize_damage
from gitsched.git.libgit2 import SHA256_REFUSAL, reject_format
from gitsched.git.refs import REF_FORMAT, check_ref, describe_blocking_ref, find_blocking_ref
from gitsched.git.transport import PROTOCOL_2, run_transport
from gitsched.git.urls import is_url, redact
from gitsched.model.errors import Conflict, GitschedError, Permanent, Temporary
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.git.repository import Repository

_PACKET = " packet: "
"""Precedes each packet of the Git protocol in a line of GIT_TRACE_PACKET."""
_SHA256_PACKET = "object-format=sha256"
"""What a server says in one of the first packets if its objects have SHA-256 ids."""
_OBJECT_ID, _SHA256_ID = re.compile(r"[0-9a-f]{40}"), re.compile(r"[0-9a-f]{64}")

_PUSH_RETRY_DELAYS = (0.1, 0.3, 1.0)
"""Seconds between attempts while the server does not move a ref that nobody else moves, as while another push holds its lock."""


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
    return {name: value for value, name in rows if name not in symbolic and REF_FORMAT.fullmatch(name)}


def read_default_branch(url: str, *, repository: Repository | None = None) -> tuple[str, str] | None:
    """Return the branch of the remote's HEAD, and its commit (hex); None when the remote does not report it."""
    values = [value for value, name in _run_ls_remote(url, ["HEAD"], repository) if name == "HEAD"]
    match values:
        case [symbolic, commit] if symbolic.startswith("ref: refs/heads/"):
            return symbolic.removeprefix("ref: refs/heads/"), commit
    return None


def _run_ls_remote(
    url: str, patterns: Sequence[str], repository: Repository | None, *, shows_packets: bool = False
) -> list[tuple[str, str]]:
    """Return rows of value and ref name; the value of a symbolic ref is "ref: " and its target. With the packets of the protocol, which
    are as many as the refs of the remote, git also shows what an empty repository is."""
    arguments = ["ls-remote", "--symref", "--end-of-options", url, *patterns]
    environment, config = ({"GIT_TRACE_PACKET": "1"}, [PROTOCOL_2]) if shows_packets else ({}, [])
    done = run_transport(arguments, url, repository, transport.LS_REMOTE_TIMEOUT, environment, config)
    lines = done.stderr.splitlines()
    packets = [line for line in lines if _PACKET in line]
    rows = [(value, name) for value, _, name in (line.partition("\t") for line in done.stdout.splitlines())]
    if any(_SHA256_PACKET in line for line in packets) or any(_SHA256_ID.fullmatch(value) for value, _ in rows):
        raise Permanent(f"{redact(url)} {SHA256_REFUSAL}")
    action = f"cannot list the refs of {redact(url)}"
    if done.exit_code != 0:
        if url.startswith(("/", "file:///")):
            for directory in (path := Path(unquote(url.removeprefix("file://"))), path / ".git"):
                reject_format(redact(url), directory)
        raise make_failure(action, "\n".join(line for line in lines if _PACKET not in line))
    if not rows and url.startswith("http"):
        # To git, an HTTP response that ends in its headers is an empty repository without the smart protocol.
        if not shows_packets:
            return _run_ls_remote(url, patterns, repository, shows_packets=True)
        if not packets:
            raise Temporary(f"{action}: the response has no content of the Git protocol; it may have been cut off")
    return rows


def fetch(
    repository: Repository, url: str, refspecs: Sequence[str], depth: int | None = None, *, only_commits: bool = False
) -> None:
    """Fetch refs (`[+]source:destination`, full ref names) or object ids, without tags and submodules, and check every object.

    `depth` limits the history and makes the repository shallow. With `only_commits`, trees and files are left out, unless the remote does
    not know how. Raise Permanent if the remote does not have one of the refs.
    """
    refs = dict[str, str]()
    for refspec in refspecs:
        source, colon, destination = refspec.removeprefix("+").partition(":")
        if colon or not _OBJECT_ID.fullmatch(source):
            refs[check_ref(source)] = check_ref(destination)
    options = ["--no-tags", "--no-prune", "--no-recurse-submodules", "--no-write-fetch-head", "--quiet"]
    if depth is not None:
        options.append(f"--depth={depth:d}")
    if only_commits:
        options.append("--filter=tree:0")
    done = run_transport(["fetch", *options, "--end-of-options", url, *refspecs], url, repository, transport.TRANSFER_TIMEOUT)
    if done.exit_code != 0:
        raise recognize_damage(_explain_fetch(repository, url, refs, done.stderr), repository)


def _explain_fetch(repository: Repository, url: str, refs: Mapping[str, str], output: str) -> GitschedError:
    """Return why refs of the remote, with their names here, were not fetched. Raise an error if the remote does not even list its refs."""
    action = f"cannot fetch from {redact(url)}"
    if is_aborted_by_hook(output):
        names = " and ".join(name for name in refs.values() if name)
        refusal = explain_refusal(repository, "reference-transaction", action, output, ref=names)
        if refusal is not None:
            return refusal
    failure = make_failure(action, output)
    if isinstance(failure, Permanent):
        return failure
    found = {name for _, name in _run_ls_remote(url, [*refs] or ["HEAD"], repository)}
    missing = [ref for ref in refs if ref not in found]
    if missing:
        return Permanent(f"{action}: it has no {' and no '.join(missing)}")
    existing = [name for name, _ in repository.list_refs("refs/")]
    blocking = [(name, ref) for ref in refs.values() if (name := find_blocking_ref(ref, existing)) is not None]
    if blocking and repository.private is not None:
        repository.private.report_damage()  # the clone has a ref that the remote has no longer
        return CorruptRepository(str(failure))
    return Permanent(f"{action}: {describe_blocking_ref(*blocking[0], repository.root)}") if blocking else failure


class PushResult(NamedTuple):
    """How a push ended. `flags` has for each ref what `git push --porcelain` says of it: `=` if the remote had the commit, and `!` if the
    ref was refused; `[rejected]` in its line is the decision of git here, because the ref has moved. `output` is what git printed. Where
    git asked the remote for its refs, and then says nothing of any of them, the push was `stopped_here`, as by a hook."""

    succeeded: bool
    stopped_here: bool
    flags: dict[str, str]
    rejected_here: frozenset[str]
    output: str


def run_push(
    repository: Repository,
    url: str,
    options: Sequence[str],
    refspecs: Sequence[str],
    environment: Mapping[str, str] | None = None,
    config: Sequence[tuple[str, str]] = (),
) -> PushResult:
    """Push `source:destination` of each refspec, and return what became of it."""
    fixed = ["--porcelain", "--no-follow-tags", "--recurse-submodules=no"]
    arguments = ["push", *fixed, *options, "--end-of-options", url, *refspecs]
    done = run_transport(arguments, url, repository, transport.TRANSFER_TIMEOUT, environment, config)
    lines = [line.split("\t") for line in done.stdout.splitlines() if line.count("\t") >= 2]
    refs = {fields[1].rpartition(":")[2]: fields for fields in lines}
    rejected = frozenset(ref for ref, fields in refs.items() if fields[2].startswith("[rejected]"))
    flags = {ref: fields[0] for ref, fields in refs.items()}
    return PushResult(done.exit_code == 0, done.exit_code == 1 and not refs, flags, rejected, f"{done.stdout}\n{done.stderr}")


def explain_push(repository: Repository, url: str, ref: str, done: PushResult) -> Permanent | Temporary:
    """Return why a ref was not pushed."""
    action = f"cannot push to {ref} of {redact(url)}"
    refusal = explain_refusal(repository, "pre-push", action, done.output, ref=ref, url=redact(url)) if done.stopped_here else None
    return refusal or make_failure(action, done.output)


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
    for wait in (*_PUSH_RETRY_DELAYS, None):
        failure: GitschedError
        refused = False
        try:
            done = run_push(repository, url, [lease], [f"{new}:{ref}"])
            if done.succeeded:
                return done.flags.get(ref) != "="
            failure, refused = explain_push(repository, url, ref, done), done.flags.get(ref) == "!"
        except Temporary as error:  # it took too long
            failure = error
        if isinstance(failure, Permanent) and not refused:  # the server was not reached
            raise failure
        if _check_remote(repository, url, ref, new, expected, failure):
            # A push that was refused did not move the ref, even if the ref now has the new value.
            return not refused
        if not refused or isinstance(failure, Permanent):
            raise recognize_damage(failure, repository)
        if wait is None:
            raise recognize_damage(Temporary(f"{failure}; {_describe_refusal(ref, done)}"), repository) from failure
        time.sleep(wait)
    raise AssertionError("unreachable")


def _describe_refusal(ref: str, done: PushResult) -> str:
    """Return what can be the reason that a ref was not moved, although it has the expected value."""
    if ref in done.rejected_here:
        return f"the server shows {ref} to who fetches, but not to who pushes (receive.hideRefs)"
    return (
        f"nobody else has moved {ref}: if this remains, remove {ref}.lock from the repository on the server, which an interrupted process "
        "may have left there"
    )


def push_together(
    repository: Repository,
    url: str,
    commits: Mapping[str, str],
    expected: Mapping[str, str],
    environment: Mapping[str, str],
    config: Sequence[tuple[str, str]],
) -> None:
    """Move all refs of the remote to their commits, or none of them. Conflict when one of them does not have its expected value, or exists
    although it has none. No hook of the repository runs before."""
    leases = [f"--force-with-lease={ref}:{expected.get(ref, '')}" for ref in commits]
    refspecs = [f"{commit}:{ref}" for ref, commit in commits.items()]
    done = run_push(repository, url, ["--no-verify", "--atomic", *leases], refspecs, environment, config)
    if done.succeeded:
        return
    failure = make_failure(f"cannot push to {' and '.join(commits)} of {redact(url)}", done.output)
    if isinstance(failure, Temporary):
        found = read_remote_refs(url, list(commits), repository=repository, others=commits)
        if found == commits and not done.flags:
            return  # the response was lost
        if any(found.get(ref) != expected.get(ref) for ref in commits):
            raise Conflict(str(failure))
    raise failure


def _check_remote(repository: Repository, url: str, ref: str, new: str, expected: str | None, failure: GitschedError) -> bool:
    """Return whether the remote has the commit of a push that failed or whose response was lost. Conflict when another push was first, and
    Permanent when another ref is in the way."""
    parents = [f"refs/{'/'.join(ref.split('/')[1:count])}" for count in range(3, ref.count("/") + 1)]
    try:
        rows = _run_ls_remote(url, [ref, *parents, f"{ref}/*"], repository, shows_packets=True)
    except Temporary:
        raise failure from None
    found = {name: value for value, name in rows if not value.startswith("ref: ")}
    now = found.get(ref)
    if now not in (new, expected):
        raise Conflict(f"{ref} of {redact(url)} is no longer {f'at {expected}' if expected else 'absent'}") from failure
    blocking = find_blocking_ref(ref, found) if now is None else None
    if blocking is not None:
        reason = describe_blocking_ref(blocking, ref, redact(url))
        raise Permanent(f"cannot push to {ref} of {redact(url)}: {reason}") from failure
    return now == new


def find_remote_url(repository: Repository, name: str) -> str | None:
    """Return the push URL of a named remote; None when there is no such remote. A relative path is made absolute."""
    if not name or name.startswith("-") or any(ch in name for ch in "\n\0"):
        raise Permanent(f"not the name of a remote: {name[:100]!r}")
    url = repository.read_config(f"remote.{name}.pushurl") or repository.read_config(f"remote.{name}.url")
    if url is None or is_url(url) or url.startswith("/"):
        return url
    return str((Path(repository.root) / url).resolve())
