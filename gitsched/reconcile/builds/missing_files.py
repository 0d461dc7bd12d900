"""Find files that kustomizations name and that the commit does not have, as far as nothing builds these kustomizations."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.build.remote_base import parse_remote_base
from gitsched.manifests.kustomize_graph import resolve_path
from gitsched.model.finding import Finding, Location

if TYPE_CHECKING:
    from gitsched.manifests.kustomize import Kustomization, KustomizeReference

_FIELDS = frozenset(
    (
        *("bases", "components", "configMapGenerator", "patches", "patchesJson6902", "patchesStrategicMerge", "resources"),
        "secretGenerator",
    )
)


def find_missing_files(
    kustomizations: Mapping[str, tuple[str, Kustomization]],
    files: Container[str],
    ignored: Container[str] = (),
    is_hidden: Callable[[str], bool] = lambda _: False,
) -> Iterator[Finding]:
    """Yield a note about each kustomization that names files or directories which the commit does not have.

    `kustomizations` are (path, kustomization) by directory, of which the `ignored` ones are not considered, and `files` the paths of all
    files of the commit. What `is_hidden` belongs to others.
    """
    for directory, (path, kustomization) in kustomizations.items():
        missing = [
            reference
            for reference in kustomization.references
            if directory not in ignored and reference.field in _FIELDS and _is_missing(directory, reference, kustomizations, files)
        ]
        missing = [one for one in missing if not is_hidden(resolve_path(directory, one.path))]
        if missing:
            first, *others = missing
            what = (
                "no kustomization" if first.role != "input" and not first.path.endswith((".yaml", ".yml", ".json")) else "no file"
            )
            more = f", nor {len(others)} others that it names" if others else ""
            named = f"{first.field} names {first.path}, where this commit has {what}{more}"
            message = f"{named}: kustomize cannot build {directory}; correct the path, or commit what is missing"
            yield Finding("info", "kustomize-missing", message, Location(path, first.line, first.column))


def _is_missing(directory: str, reference: KustomizeReference, kustomizations: Mapping[str, object], files: Container[str]) -> bool:
    target = resolve_path(directory, reference.path)
    if target in files or target in kustomizations or target.startswith(("../", "/")) or target == "..":
        return False
    return not any(mark in reference.path for mark in "${*") and parse_remote_base(reference.path) is None
