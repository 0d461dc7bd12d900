"""Tell whether the last run read a directory of this repository for a document of a delivery tool that names one which is missing now."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gitsched.build.path_recipe import ToolName
from gitsched.decide.catalog import RawDocument
from gitsched.manifests.parsed_file import read_identity
from gitsched.model.document import Body
from gitsched.reconcile.builds.build_context import BuildContext
from gitsched.reconcile.builds.kustomizations import FileReader
from gitsched.reconcile.builds.reconciled_path import name_path
from gitsched.reconcile.source.commit_tree import CommitTree, open_commit_tree


class LastPaths:
    """The documents of delivery tools in the source commit of the last run, or in the commit of which objects are kept since."""

    def __init__(self, context: BuildContext, reader: FileReader) -> None:
        self._context, self._reader = context, reader
        self._trees: dict[str, CommitTree | None] = {}

    def had_directory(self, tool: ToolName, document: RawDocument, list_directories: Callable[[Body], Iterable[str]]) -> bool:
        """Return whether the file of a document had a version of it that named a directory of this repository, among those that
        `list_directories` returns of a version."""
        origin, tree = document.origin, self._open(self._context.find_last_commit(name_path(tool, document)))
        if tree is None or origin is None or origin.path not in tree.entries:
            return False
        file = self._reader.read(tree.entries[origin.path][0], origin.path)
        identity = read_identity(document.body)
        versions = (parsed.body for parsed in file.documents if read_identity(parsed.body) == identity)
        return any(directory in tree.directories for body in versions for directory in list_directories(body))

    def _open(self, oid: str) -> CommitTree | None:
        if oid not in self._trees:
            context, tree = self._context, None
            if oid and context.fetch_commit(oid):
                tree = open_commit_tree(context, context.list_entries(context.repository.commit(oid).tree), self._reader)
            self._trees[oid] = tree
        return self._trees[oid]
