"""Describe documents of other tools that say where workloads run, which gitsched does not read. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping

from gitsched.kinds.foreign_apis import FOREIGN_APIS, find_foreign_api
from gitsched.model.document import Body, parse_api_group
from gitsched.model.finding import format_count


def describe_other_tools(files: Iterable[str], documents: Iterable[tuple[str, Body]]) -> Iterator[str]:
    """Yield a line for each tool that has files or documents, given the paths of all files, and the documents with their paths."""
    found: dict[str, dict[str, None]] = {tool.name: {} for tool in FOREIGN_APIS}
    for path in files:
        for tool in FOREIGN_APIS:
            if posixpath.basename(path) in tool.files:
                found[tool.name][path] = None
    kinds: Mapping[str, set[str]] = {tool.name: set() for tool in FOREIGN_APIS}
    for path, body in documents:
        kind = str(body.get("kind"))
        owner = find_foreign_api(parse_api_group(str(body.get("apiVersion"))), kind)
        if owner is not None:
            found[owner.name][path] = None
            kinds[owner.name].add(kind)
    for tool in FOREIGN_APIS:
        paths = sorted(found[tool.name])
        if paths:
            shown = f" ({', '.join(sorted(kinds[tool.name])[:4])})" if kinds[tool.name] else ""
            yield f"{tool.name}, {format_count(len(paths), 'file')} such as {paths[0]}{shown}: {tool.instead}; see {tool.documentation}"
