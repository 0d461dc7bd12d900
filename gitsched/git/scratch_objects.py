"""A temporary directory of objects beside those of a repository, which stays as it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from gitsched.git.loaded_pygit2 import pygit2
from gitsched.git.trees import RawObject
from gitsched.temporary_directory import TemporaryDirectory


class ScratchObjects:
    """Objects that only this process needs. The repository reads them, too; the directory is removed with this object.

    `environment` lets the git executable write here.
    """

    def __init__(self, repository: pygit2.Repository, objects: Path) -> None:
        self._directory = TemporaryDirectory("objects")
        self._repository = pygit2.init_repository(str(self._directory.path), bare=True)
        own = self._directory.path / "objects"
        self._repository.odb.add_disk_alternate(str(objects))
        repository.odb.add_disk_alternate(str(own))
        inherited = os.environ.get("GIT_ALTERNATE_OBJECT_DIRECTORIES")
        alternates = os.pathsep.join((_quote(str(objects)), *((inherited,) if inherited else ())))
        self.environment = {"GIT_OBJECT_DIRECTORY": str(own), "GIT_ALTERNATE_OBJECT_DIRECTORIES": alternates}

    def read_also(self, objects: Path) -> None:
        """Read objects from another directory, too."""
        self._repository.odb.add_disk_alternate(str(objects))

    def write_index(self, index: pygit2.Index) -> str:
        """Write the trees of an index that a merge has returned, and return the id of the root."""
        return str(index.write_tree(self._repository))

    def write_objects(self, objects: Iterable[RawObject]) -> None:
        """Write objects, each with its raw id, type and content."""
        for _, kind, data in objects:
            self._repository.write(kind, data)

    def replace_entry(self, tree: str, name: str, entry: tuple[str, int] | None) -> str:
        """Write a tree in which a name at the root has another object id and mode, or is gone, and return the id of the tree."""
        builder = self._repository.TreeBuilder(tree)
        if entry is not None:
            builder.insert(name, *entry)
        else:
            builder.remove(name)
        return str(builder.write())

    def write_commit(self, tree: str, parents: Sequence[str]) -> str:
        """Write a commit without an author or a date, and return its id. It is the same for the same tree and parents."""
        nobody = pygit2.Signature("gitsched", "gitsched@localhost", 0, 0)
        return str(self._repository.create_commit(None, nobody, nobody, "merge", tree, list(parents)))


def _quote(path: str) -> str:
    """Return a path as git reads it from a list of paths."""
    if os.pathsep not in path and not path.startswith('"'):
        return path
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
