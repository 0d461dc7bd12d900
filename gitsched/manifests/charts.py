"""Which files of a commit are templates of Helm charts."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import Final

CHART_FILE: Final = "Chart.yaml"
_TEMPLATE_DIRECTORIES: Final = frozenset(("templates", "crds"))


class ChartIndex:
    """The Helm charts of a commit: the directories with a Chart.yaml, also charts inside of charts."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._charts = frozenset(posixpath.dirname(path) for path in paths if path.rpartition("/")[2] == CHART_FILE)

    def find_chart(self, path: str) -> str | None:
        """Return the chart that a file is a template or CustomResourceDefinition of; None if it is neither. The root is `.`."""
        if not self._charts:
            return None
        directory = posixpath.dirname(path)
        while directory:
            parent, _, name = directory.rpartition("/")
            if name in _TEMPLATE_DIRECTORIES and parent in self._charts:
                return parent or "."
            directory = parent
        return None
