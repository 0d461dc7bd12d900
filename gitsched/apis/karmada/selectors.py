"""Which workloads a resourceSelector means, and how precisely it says so (spec/karmada.md §2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gitsched.model.document import Body
from gitsched.model.labels import Selector, parse_selector

BY_KIND, BY_LABELS, BY_NAME = 1, 2, 3
"""How specific a selector is: the implicit priority of what it selects."""


class ResourceSelector(NamedTuple):
    """`labels` None matches all; `namespace` and `name` are "" where any will do. An `invalid` one selects nothing."""

    api_version: str
    kind: str
    namespace: str
    name: str
    implicit: int
    labels: Selector | None
    invalid: bool

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether it selects an object that already has its apiVersion, kind and, where it gives one, name."""
        if self.invalid or (self.namespace and self.namespace != namespace):
            return False
        return self.labels is None or self.labels.matches(labels)


def parse_resource_selector(body: Body) -> ResourceSelector:
    """Read one resourceSelector; labels beside a name are ignored."""
    api_version, kind, namespace, name = (str(body.get(part) or "") for part in ("apiVersion", "kind", "namespace", "name"))
    labels = body.get("labelSelector")
    implicit = BY_NAME if name else BY_KIND if labels is None else BY_LABELS
    parsed = parse_selector(labels) if implicit == BY_LABELS else None
    return ResourceSelector(api_version, kind, namespace, name, implicit, parsed, implicit == BY_LABELS and parsed is None)
