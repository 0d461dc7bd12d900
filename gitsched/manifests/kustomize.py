"""Detect kustomizations by file name, and list the files that a kustomization reads and that are not documents."""

from __future__ import annotations

from typing import Any, Final

KUSTOMIZATION_NAMES: Final = frozenset({"kustomization.yaml", "kustomization.yml", "Kustomization"})

_PATH_LISTS = ("patchesStrategicMerge", "configurations", "crds", "transformers", "generators", "validators")
_WITH_PATH = ("patches", "patchesJson6902", "replacements")
_GENERATORS = ("configMapGenerator", "secretGenerator")


def list_inputs(kustomization: Any) -> tuple[str, ...]:
    """Return the relative paths of patches, plug-in configuration and files that generators embed; distinct, in order."""
    if not isinstance(kustomization, dict):
        return ()
    found: list[Any] = []
    for field in _PATH_LISTS:
        found.extend(_get_list(kustomization, field))
    for field in _WITH_PATH:
        found.extend(entry.get("path") for entry in _get_list(kustomization, field) if isinstance(entry, dict))
    for field in _GENERATORS:
        for generator in _get_list(kustomization, field):
            if isinstance(generator, dict):
                files = [*_get_list(generator, "files"), *_get_list(generator, "envs"), generator.get("env")]
                found.extend(file.rpartition("=")[2] for file in files if isinstance(file, str))
    for chart in _get_list(kustomization, "helmCharts"):
        if isinstance(chart, dict):
            found.extend([chart.get("valuesFile"), *_get_list(chart, "additionalValuesFiles")])
    openapi = kustomization.get("openapi")
    found.append(openapi.get("path") if isinstance(openapi, dict) else None)
    return tuple(dict.fromkeys(path for path in found if isinstance(path, str) and path and "\n" not in path))


def _get_list(value: dict[str, Any], field: str) -> list[Any]:
    entries = value.get(field)
    return entries if isinstance(entries, list) else []
