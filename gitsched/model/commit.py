"""A commit of the source or the output branch."""

from __future__ import annotations

from datetime import datetime

from gitsched.named_tuples import NamedTuple

NO_COMMIT = "0" * 40
"""The commit of the files of a worktree, which have none yet; such a plan is never published."""


RELEASE_TRAILER = "Gitsched-Release"
"""The trailer of a source commit that releases held workloads, as [kind/]namespace/name, separated by commas."""
RELEASE_CLUSTER_TRAILER = "Gitsched-Release-Cluster"
"""The trailer of a source commit that releases all workloads that are held in a cluster."""


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

    @property
    def author_name(self) -> str:
        """The name of the author, without the address."""
        return self.author.partition(" <")[0] or self.name

    @property
    def is_rewritten(self) -> bool:
        """Return whether someone else made the commit from that of its author, as `git commit --amend` and `git rebase` do."""
        return bool(self.author) and self.author != f"{self.name} <{self.email}>"
