"""Errors of git commands that contact a remote.

What happened to a ref is read from the refs, and the state of a private clone from the clone. Only why a server cannot be used, or does not
give or accept something, is known from words: those of git in the C locale, of ssh, curl and servers. Each of them says that a retry
cannot help. They are listed here and nowhere else, and tests get them from every version of git.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gitsched.git.urls import redact
from gitsched.model.errors import GitschedError, Permanent, Temporary

if TYPE_CHECKING:
    from gitsched.git.repository import Repository

_REASONS = (
    # There is no such repository, or this user may not use it.
    "Authentication failed|could not read (?:Username|Password)|terminal prompts disabled|Permission denied|dubious ownership",
    r"URL returned error: 4(?!08|09|25|29)\d\d|[Rr]epository (?:'.*' )?not found|does not appear to be a git repository",
    "repository .*does not exist|not valid: is this a git repository",
    # The server or its address is not trusted.
    "Host key verification failed|SSL certificate|certificate verif|transport '.*' not allowed|[Uu]nsupported protocol",
    "unable to update url base",
    # The server does not give an object, or git does not accept it.
    "not our ref|Server does not allow|fsck error",
    # The server does not accept a commit.
    "hook declined|protected branch|deny updating|denied by|prohibited|currently checked out|shallow update not allowed",
    r"\[remote rejected\] \(non-fast-forward\)",
)
_ABORTED_BY_HOOK = re.compile("updates? aborted by (?:the reference-transaction )?hook")
_PERMANENT = re.compile("|".join(_REASONS))
_CONTROL_CHARACTERS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_NOISE = (
    *("hint:", "To ", "Done", "Please make sure", "and the repository exists."),
    *(
        "Another git process seems to be running",
        "an editor opened by",
        "are terminated then try again",
        "may have crashed in this",
    ),
)


class CorruptRepository(Temporary):
    """A private clone is damaged, and will be made anew."""


def make_failure(action: str, output: str) -> Permanent | Temporary:
    """Return the error for the output of git (error output, and a push's porcelain) when `action` failed.

    An unknown failure is Temporary: a retry costs little, and only a known failure may stop the retries.
    """
    kind = Permanent if _PERMANENT.search(output) else Temporary
    return kind(f"{action}: {summarize_output(output)}")


def is_aborted_by_hook(output: str) -> bool:
    """Return whether the output says that the hook reference-transaction has refused to move a ref."""
    return _ABORTED_BY_HOOK.search(output) is not None


def recognize_damage(failure: GitschedError, repository: Repository) -> GitschedError:
    """Return the failure of a git command, or that the private clone in which it ran is damaged, if that explains a temporary one."""
    private = repository.private if isinstance(failure, Temporary) else None
    if private is None or not private.find_damage():
        return failure
    return CorruptRepository(f"{failure}; the private clone {repository.path} is damaged and will be made anew")


def summarize_output(output: str) -> str:
    """Return the lines of the output that state the error, at most 600 characters, without credentials and advice."""
    lines = (" ".join(_CONTROL_CHARACTERS.sub("", line).split()) for line in redact(output).splitlines())
    says = ((line, line.removeprefix("remote:").strip()) for line in lines)
    text = "; ".join(dict.fromkeys(line for line, said in says if said and not said.startswith(_NOISE)))
    return (text or "git gave no reason")[:600]
