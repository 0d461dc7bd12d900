"""What git's words about a failed transport mean for the caller: retry, give up, or look again."""

from __future__ import annotations

import re

from gitsched.git.urls import redact
from gitsched.model.errors import Conflict, GitschedError, Permanent, Temporary


def _any(*patterns: str, before: str = "", flags: int = 0) -> re.Pattern[str]:
    return re.compile(before + f"(?:{'|'.join(patterns)})", flags)


_LOCK = re.compile(r"Unable to create '([^'\n]+\.lock)'")
_RACE = _any(
    r"\((?:stale info|fetch first|non-fast-forward|needs force|reference already exists|incorrect old value provided)\)",
    r"but expected [0-9a-f]{40}",
    r": reference already exists",
)
_NETWORK = _any(
    "could not resolve|name resolution|failed to connect|couldn't connect|connection (?:refused|reset|closed|aborted)",
    "network is unreachable|no route to host|timed out|early eof|hung up unexpectedly|unexpected disconnect|empty reply",
    r"error: 5\d\d|error: 4(?:08|09|25|29)|ssl_error|tls connection|kex_exchange|no space left|quota exceeded",
    flags=re.IGNORECASE,
)
_DAMAGE = _any(
    "bad object|bad tree object|bad pack|bad config|bad shallow|bad signature|broken (?:link|ref)|not a valid object",
    "could not parse|is corrupt|is empty|too small|inflate|unable to read|unable to find|does not match index|wrong index",
    "missing (?:blob|tree|commit)|not a git repository: |not a packfile|unresolved deltas|did not send all necessary objects",
    before="^(?:fatal|error): .*",
    flags=re.MULTILINE,
)
_HOPELESS = _any(
    "Authentication failed|could not read (?:Username|Password)|terminal prompts disabled|Permission denied|Host key verification",
    r"URL returned error: 4\d\d|[Rr]epository (?:'.*' )?not found|does not appear to be a git repository|does not exist",
    "transport '.*' not allowed|[Uu]nsupported protocol|hook declined|protected branch|denied by|deny|prohibited",
    "cannot create 'refs/|couldn't find remote ref|not our ref|Server does not allow|SSL certificate|certificate verif|fsck",
    "unable to update url base|unknown option|not valid: is this a git repository|dubious ownership|shallow update not allowed",
)
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0e-\x1f\x7f-\x9f]")


class Damaged(Temporary):
    """The local copy's objects are unreadable; one that is private may be thrown away."""


class Locked(Temporary):
    """Somebody holds a lock on the remote's ref, or died holding it."""


def classify(doing: str, words: str) -> GitschedError:
    """The exception for what git wrote (error output, and a push's porcelain) when `doing` failed.

    What nobody foresaw is Temporary: a retry costs little, and giving up for good is for failures that are understood.
    """
    message = f"{doing}: {_summary(words)}"
    lock = _LOCK.search(words)
    if lock is not None:
        return Locked(f"{doing}: the ref is locked by {lock[1]}; remove that file there if no other Git process is running")
    if "mismatched algorithms" in words:
        return Permanent(f"{doing}: it has SHA-256 object ids; gitsched works with SHA-1 repositories only")
    if _RACE.search(words):
        return Conflict(message)
    if _NETWORK.search(words):
        return Temporary(message)
    if _HOPELESS.search(words):
        return Permanent(message)
    mine = "\n".join(line for line in words.splitlines() if not line.startswith("remote:"))
    return Damaged(message) if _DAMAGE.search(mine) else Temporary(message)


def _summary(words: str) -> str:
    """The lines that say what went wrong, at most 600 characters, without credentials and advice."""
    lines = (_CONTROL.sub("", line).strip() for line in redact(words).splitlines())
    useless = ("hint:", "To ", "Done", "Please make sure", "and the repository exists.")
    text = "; ".join(dict.fromkeys(line for line in lines if line and not line.startswith(useless)))
    return (text or "git gave no reason")[:600]
