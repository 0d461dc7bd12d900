"""What git's words about a failed transport mean for the caller: retry, give up, or look again."""

from __future__ import annotations

import re

from gitsched.git.urls import redact
from gitsched.model.errors import Conflict, GitschedError, Permanent, Temporary

_LOCK = re.compile(r"Unable to create '([^'\n]+\.lock)'")
_RACE = re.compile(
    r"\[(?:remote )?rejected\][^\n]*\((?:stale info|fetch first|non-fast-forward|needs force|incorrect old value provided"
    r"|reference already exists|remote ref updated since checkout)|but expected [0-9a-f]{40}|reference already exists"
)
_DAMAGE = re.compile(
    r"(?m)^(?:fatal|error): .*(?:bad object|is corrupt|inflate|is empty|too small|unable to read|does not match index|bad pack|unable to find|missing (?:blob|tree|commit)|bad config|not a git repository: |could not parse|bad tree object|wrong index"
    r"|did not send all necessary objects|bad shallow line|broken (?:link|ref)|not a valid object|unresolved deltas|not a packfile)"
)
_HOPELESS = re.compile(
    r"Authentication failed|could not read (?:Username|Password)|terminal prompts disabled|Permission denied|Host key verification"
    r"|requested URL returned error: 4(?!08|09|25|29)\d\d|[Rr]epository (?:'.*' )?not found|does not appear to be a git repository"
    r"|does not exist|transport '.*' not allowed|hook declined|protected branch|couldn't find remote ref|SSL certificate problem"
    r"|certificate verif|shallow update not allowed|unsupported protocol|not our ref|fsck|denied by|prohibited|deny"
    r"|cannot create 'refs/|Server does not allow|redirect|not valid: is this a git repository|dubious ownership|access rights"
)
_NETWORK = re.compile(
    r"(?i)could not resolve|name resolution|failed to connect|couldn't connect|connection (?:refused|reset|closed|aborted)"
    r"|network is unreachable|no route to host|timed out|early eof|hung up unexpectedly|rpc failed|unexpected disconnect"
    r"|error: 5\d\d|error: 4(?:08|09|25|29)|ssl_error|tls connection|kex_exchange|empty reply|no space left|quota exceeded|ssh: connect"
)


class Damaged(Temporary):
    """The local copy's objects are unreadable; one that is private may be thrown away."""


class Locked(Temporary):
    """Somebody holds a lock on the remote's ref, or died holding it."""


def classify(doing: str, words: str, *, local_damage: bool = True) -> GitschedError:
    """The exception for what git wrote to its error output (and, for a push, its porcelain) when `doing` failed.

    What nobody foresaw is Temporary: a retry costs little, and giving up for good is for failures that are understood.
    """
    message = f"{doing}: {_summary(words)}"
    lock = _LOCK.search(words)
    if lock is not None:
        return Locked(f"{doing}: the ref is locked by {lock[1]}; remove that file there if no other Git process is running")
    if _RACE.search(words):
        return Conflict(message)
    mine = "\n".join(line for line in words.splitlines() if not line.startswith("remote:"))
    if _NETWORK.search(words):
        return Temporary(message)
    if local_damage and _DAMAGE.search(mine) and "fsck" not in mine:
        return Damaged(message)
    return Permanent(message) if _HOPELESS.search(words) else Temporary(message)


def _summary(words: str) -> str:
    """The lines that say what went wrong, at most 600 characters, without credentials."""
    lines = [line.strip() for line in redact(words).splitlines() if line.strip() and not line.startswith(("hint:", "To ", "Done"))]
    text = "; ".join(dict.fromkeys(line for line in lines if "Please make sure" not in line and "repository exists." not in line))
    return (text or "git gave no reason")[:600]
