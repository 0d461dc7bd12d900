"""Which files of a commit are templates of Helm charts."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import Final

from gitsched.model.document import Body, as_object
from gitsched.model.tool_groups import RELEASE_GROUP, SOURCE_GROUP

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


def find_release_chart(group: str, kind: str, body: Body) -> str | None:
    """Return the directory of the chart that a HelmRelease or a HelmChart takes from the files of a source; None for other objects and for
    charts of other servers."""
    spec = as_object(body.get("spec"))
    if (group, kind) == (RELEASE_GROUP, "HelmRelease"):
        spec = as_object(as_object(spec.get("chart")).get("spec"))
    elif (group, kind) != (SOURCE_GROUP, "HelmChart"):
        return None
    path = spec.get("chart")
    if not isinstance(path, str) or as_object(spec.get("sourceRef")).get("kind") not in ("GitRepository", "Bucket"):
        return None
    return posixpath.normpath(path.strip("/") or ".")
