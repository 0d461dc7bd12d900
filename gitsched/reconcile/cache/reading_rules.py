"""Which files of a source are read, besides what they contain: the state of a plan keeps it, so that files may come and go."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.named_tuples import NamedTuple


class ReadingRules(NamedTuple):
    """How the files of a source tree were chosen. It holds as long as none of the files that it depends on changes.

    `roots` are the paths that options or settings select, and `ignore_files` the files with rules that hide others. `links` are the paths
    that symbolic links lead to. `is_searched`: files that are not read were searched for documents of delivery tools, and have none.
    `references` are the paths that kustomizations name, whether there is a file or not, and `charts` the directories of Helm charts.
    `definitions` are the files of CustomResourceDefinitions by the group and kind that each defines, and `declared` the custom kinds whose
    scope a definition says.
    """

    roots: tuple[str, ...] = ()
    ignore_files: tuple[str, ...] = ()
    links: frozenset[str] = frozenset()
    is_searched: bool = False
    references: frozenset[str] = frozenset()
    charts: tuple[str, ...] = ()
    definitions: Mapping[tuple[str, str], str] = {}
    declared: frozenset[tuple[str, str]] = frozenset()
