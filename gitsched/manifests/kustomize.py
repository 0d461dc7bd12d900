"""The content of a kustomization as gitsched reads it: what it refers to, and what it changes. Found by file name."""

from __future__ import annotations

from typing import Any, Final, Literal, Self

from gitsched.named_tuples import NamedTuple

KUSTOMIZATION_NAMES: Final = frozenset({"kustomization.yaml", "kustomization.yml", "Kustomization"})

Role = Literal["resource", "component", "input"]
"""How a kustomization uses a file or directory: `resource` has objects that it builds, `component` is a directory with objects and changes,
`input` is anything else that it reads, such as a patch, a values file or the content of a ConfigMap."""


class KustomizeReference(NamedTuple):
    """A file, directory or URL that a kustomization names. `path` is as written; `field` is the top-level field."""

    role: Role
    field: str
    path: str
    line: int
    column: int


class KustomizeChange(NamedTuple):
    """A change that a kustomization makes to the objects that it builds.

    `kind` says which objects: `all`; `namespace` (those in another namespace than `value`); `name` (those with this name); `image` (those
    with this image); `mention` (those with a string that is `value`, or contains it if it is a variable); `target` (those that the JSON
    object `value` selects); `patch` (those that the documents of the file `value` name). `text` describes the change.
    """

    kind: str
    value: str
    text: str
    line: int


class KustomizeChart(NamedTuple):
    """A Helm chart that a kustomization renders. `path` is the directory that kustomize looks into before it asks `repository`."""

    name: str
    version: str
    repository: str
    path: str
    line: int


class Kustomization(NamedTuple):
    """A kustomization, or a component.

    `build_metadata` says whether it sets buildMetadata, `helm` whether it has Helm charts in the retired field helmChartInflationGenerator.
    `charts` are those of helmCharts. `misspelt` are the names and lines of fields
    that name files and are written in another case, which kustomize accepts.
    """

    is_component: bool = False
    references: tuple[KustomizeReference, ...] = ()
    changes: tuple[KustomizeChange, ...] = ()
    build_metadata: bool = False
    helm: bool = False
    misspelt: tuple[tuple[str, int], ...] = ()
    charts: tuple[KustomizeChart, ...] = ()

    @classmethod
    def from_json(cls, value: list[Any]) -> Self:
        """Restore a kustomization from its JSON, which is that of a tuple."""
        is_component, references, changes, build_metadata, helm, misspelt, charts = value
        return cls(
            is_component,
            tuple([KustomizeReference(*reference) for reference in references]),
            tuple([KustomizeChange(*change) for change in changes]),
            build_metadata,
            helm,
            tuple([(name, line) for name, line in misspelt]),
            tuple([KustomizeChart(*chart) for chart in charts]),
        )
