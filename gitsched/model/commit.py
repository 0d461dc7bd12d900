"""A commit of the source or the output branch."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class Commit(NamedTuple):
    """A commit. `time` is the committer's, in UTC, to the second; `subject` is the first paragraph of the message, on one line.

    `name` and `email` are the committer's; `author` is "Name <address>".
    """

    oid: str
    tree: str
    parents: tuple[str, ...]
    time: datetime
    subject: str
    message: str
    trailers: tuple[tuple[str, str], ...]
    name: str = ""
    email: str = ""
    author: str = ""
