"""What builds of roots and directories of delivery tools need besides the files of a commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from gitsched.build.remote_base import RemotePolicy
from gitsched.git import Repository, TreeEntry
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.cache.caches import Caches
from gitsched.render.run_metadata import RunMetadata

if TYPE_CHECKING:
    from gitsched.model.commit import Commit


class BuildContext(NamedTuple):
    """What builds need: the repository, the caches, the metadata of the last run, a function that makes a commit available and returns
    whether it is, the id of the commit that is planned ("" for a worktree), what may be read of other repositories, and a function that
    returns the repositories that the settings of another tree of the source allow. `list_earlier` returns at most so many commits
    since the last run, the newest first, without the planned one. `may_read` says of a path whether builds may read it, and
    `is_hidden` whether the commit has a file or directory there that they may not read."""

    repository: Repository
    caches: Caches
    record: RunMetadata | None = None
    fetch_commit: Callable[[str], bool] = lambda _: False
    commit: str = ""
    remotes: RemotePolicy = RemotePolicy()
    list_allowed: Callable[[str], tuple[str, ...]] = lambda _: ()
    list_earlier: Callable[[int], Iterable[Commit]] = lambda _: ()
    may_read: Callable[[str], bool] | None = None
    is_hidden: Callable[[str], bool] = lambda _: False

    def find_last_commit(self, name: str) -> str:
        """Return the commit of which a root or a path has its objects: that of the last run, or an earlier one whose objects are kept; ""
        before the first run."""
        return self.record.builds.kept.get(name, self.record.source) if self.record is not None else ""

    def list_entries(self, tree: str) -> list[TreeEntry]:
        """Return the entries of another tree of the source that builds may read."""
        entries = self.repository.entries(tree)
        return entries if self.may_read is None else [entry for entry in entries if self.may_read(entry.path)]
