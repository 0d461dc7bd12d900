"""What selectors of policies read of every template of a plan, so that the template of no unchanged file has to be read."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.model.document import Document, Key
from gitsched.named_tuples import NamedTuple


class PlacementSummary(NamedTuple):
    """What a plan keeps of the outcome of one workload. Many workloads have equal summaries, which a plan stores once.

    `clusters` are all targets, also those where a copy remains until an eviction ends. A workload `is_settled` if it is placed, no finding
    is about it, it names no preferred clusters, it is not held or suspended, no deadline is ahead and it is not being evicted from a
    cluster without a document. Its replicas are `assigned` if they are divided among its clusters without a remainder.
    """

    api: str
    policy: str
    group: str
    clusters: tuple[str, ...]
    is_settled: bool
    assigned: bool


class TemplateEntry(NamedTuple):
    """What a plan keeps of one template.

    `annotations` are those in the domains of policy APIs, such as karmada.io and its subdomains. `path`
    is the file that has it. `placement` is None if no API decides the template.
    """

    api_version: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    path: str
    placement: PlacementSummary | None

    @property
    def policy(self) -> str:
        """The policy that applies to the template; "" for none."""
        return self.placement.policy if self.placement is not None else ""


TemplateIndex = Mapping[Key, TemplateEntry]
"""The entries of all templates of a plan by key, also of those that no policy selects, in no particular order."""


def make_selectable(key: Key, entry: TemplateEntry) -> Document:
    """Return a template with no more than selectors read of it."""
    return Document(key, entry.api_version, {"metadata": {"labels": entry.labels, "annotations": entry.annotations}})
