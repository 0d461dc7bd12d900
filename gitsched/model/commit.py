"""A Git commit as the planning code sees it."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class Commit(NamedTuple):
    """`time` is the committer's, in UTC, to the second; `subject` is the message's first paragraph, on one line.

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
