"""Recognize documents of other tools that say where workloads run, which gitsched does not read. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from gitsched.model.document import Body, parse_api_group
from gitsched.model.finding import format_count


class OtherTool(NamedTuple):
    """A tool: the API groups of its documents (also those below them), the names of its files, and what gitsched does with these."""

    name: str
    groups: tuple[str, ...]
    files: tuple[str, ...]
    effect: str


_TARGETS: Final = "their targets say nothing to gitsched: write the clusters into Bundles or policies"
OTHER_TOOLS: Final = (
    OtherTool("Rancher Fleet", ("fleet.cattle.io",), ("fleet.yaml", "fleet.yml"), _TARGETS),
    OtherTool("Sveltos", ("projectsveltos.io",), (), "their cluster selectors say nothing to gitsched: write them into policies"),
    OtherTool(
        "KubeFleet",
        ("kubernetes-fleet.io",),
        (),
        "their placements and overrides have no effect here: write PropagationPolicies or Placements with the same clusters",
    ),
    OtherTool(
        "Kargo",
        ("kargo.akuity.io",),
        (),
        "gitsched promotes nothing; what Kargo commits to the source is placed as any other commit",
    ),
    OtherTool("kluctl", ("kluctl.io",), (".kluctl.yaml", ".kluctl.yml"), f"projects of kluctl are not rendered, and {_TARGETS}"),
    OtherTool("Helmfile", (), ("helmfile.yaml", "helmfile.yaml.gotmpl"), "its releases are not rendered: write Bundles of charts"),
)
"""The tools, in the order in which they are named."""


def find_tool(group: str) -> OtherTool | None:
    """Return the tool that has an API group."""
    return next((tool for tool in OTHER_TOOLS if any(f".{group}".endswith(f".{own}") for own in tool.groups)), None)


def describe_other_tools(files: Iterable[str], documents: Iterable[tuple[str, Body]]) -> Iterator[str]:
    """Yield a line for each tool that has files or documents, given the paths of all files, and the documents with their paths."""
    found: dict[str, dict[str, None]] = {tool.name: {} for tool in OTHER_TOOLS}
    for path in files:
        for tool in OTHER_TOOLS:
            if posixpath.basename(path) in tool.files:
                found[tool.name][path] = None
    kinds: Mapping[str, set[str]] = {tool.name: set() for tool in OTHER_TOOLS}
    for path, body in documents:
        owner = find_tool(parse_api_group(str(body.get("apiVersion"))))
        if owner is not None:
            found[owner.name][path] = None
            kinds[owner.name].add(str(body.get("kind")))
    for tool in OTHER_TOOLS:
        paths = sorted(found[tool.name])
        if paths:
            shown = f" ({', '.join(sorted(kinds[tool.name])[:4])})" if kinds[tool.name] else ""
            yield f"{tool.name}, {format_count(len(paths), 'file')} such as {paths[0]}{shown}: {tool.effect}"
