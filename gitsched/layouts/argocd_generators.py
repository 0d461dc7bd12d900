"""The parameters that the generators of an ApplicationSet produce, as far as the repository says them, and its templates."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any, Final

from gitsched.layouts.repository_files import RepositoryFiles, normalize_path
from gitsched.model.document import Body, as_object, list_objects

MAX_PARAMETERS: Final = 1_000
"""Sets of parameters of one ApplicationSet, which are as many Applications."""
MAX_DEPTH: Final = 3
"""Nesting of generators, as Argo CD limits it to two."""

Parameters = Mapping[str, str]
_PLACEHOLDER = re.compile(r"\{\{\s*\.?([\w.-]+)\s*\}\}")


def list_parameters(generators: Any, files: RepositoryFiles, name: str) -> list[Parameters]:
    """Return the parameters of list, git (directories), clusters, matrix and merge generators. Those of clusters have no names, because
    Argo CD has the clusters, not the repository. `name` is that of the ApplicationSet in a note about parameters beyond the limit."""
    found = list(islice(_generate_all(generators, files, 0), MAX_PARAMETERS + 1))
    if len(found) > MAX_PARAMETERS:
        files.notes[f"{name} makes more than {MAX_PARAMETERS:,} Applications: only the first ones are considered"] = None
    if _is_too_deep(generators, 0):
        files.notes[f"{name} nests more than {MAX_DEPTH} generators, which Argo CD refuses: the inner ones are not considered"] = (
            None
        )
    return found[:MAX_PARAMETERS]


def _is_too_deep(generators: Any, depth: int) -> bool:
    found = list_objects(generators)
    inner = (as_object(generator.get(name)).get("generators") for generator in found for name in ("matrix", "merge"))
    return bool(found) and (depth >= MAX_DEPTH or any(_is_too_deep(each, depth + 1) for each in inner))


def fill_template(text: str, parameters: Parameters) -> str | None:
    """Return a template with its parameters; None if one of them is not known."""
    filled = _PLACEHOLDER.sub(lambda match: parameters.get(match[1], match[0]), text)
    return None if "{{" in filled else filled


def _generate_all(generators: Any, files: RepositoryFiles, depth: int) -> Iterator[Parameters]:
    for generator in list_objects(generators) if depth < MAX_DEPTH else ():
        yield from _generate(generator, files, depth)


def _generate(generator: Body, files: RepositoryFiles, depth: int) -> Iterator[Parameters]:
    for name, spec in generator.items():
        spec = as_object(spec)
        match name:
            case "list":
                yield from (_flatten(element) for element in list_objects(spec.get("elements")))
            case "clusters":
                yield _flatten({"values": as_object(spec.get("values"))})
            case "git":
                yield from _list_directories(spec, files)
            case "matrix":
                rows: list[Parameters] = [{}]
                for other in _generate_each(spec, files, depth):
                    rows = list(islice((_combine(left, right) for left in rows for right in other), MAX_PARAMETERS + 1))
                yield from rows
            case "merge":
                yield from _merge(spec, files, depth)


def _combine(left: Parameters, right: Parameters) -> Parameters:
    return {**left, **right}


def _generate_each(spec: Body, files: RepositoryFiles, depth: int) -> list[list[Parameters]]:
    """Return the parameters of each generator of a matrix or merge generator."""
    inner = list_objects(spec.get("generators"))
    return [list(islice(_generate_all([generator], files, depth + 1), MAX_PARAMETERS + 1)) for generator in inner]


def _merge(spec: Body, files: RepositoryFiles, depth: int) -> Iterator[Parameters]:
    """Yield the first generator's parameters, each with those of the others that have the same keys.

    The names of clusters are not known, so where the keys are names, each set of the others is one of its own.
    """
    keys = [str(key) for key in spec.get("mergeKeys") or ()]
    sets = _generate_each(spec, files, depth)
    rows = [row for other in sets[1:] for row in other]
    for first in sets[0] if sets else ():
        if rows and not all(key in first for key in keys):
            yield from (_combine(first, row) for row in rows)
            continue
        merged = dict(first)
        for row in rows:
            if all(row.get(key) == first.get(key) for key in keys):
                merged |= row
        yield merged


def _list_directories(spec: Body, files: RepositoryFiles) -> Iterator[Parameters]:
    patterns = [(str(entry.get("path")), bool(entry.get("exclude"))) for entry in list_objects(spec.get("directories"))]
    excluded = [normalize_path(pattern) for pattern, exclude in patterns if exclude]
    for pattern in (normalize_path(pattern) for pattern, exclude in patterns if not exclude):
        for path in sorted(files.directories):
            if _matches(pattern, path) and not any(_matches(other, path) for other in excluded):
                name = posixpath.basename(path)
                parts = {f"path[{index}]": part for index, part in enumerate(path.split("/"))}
                yield {"path": path, "path.path": path, "path.basename": name, "path.basenameNormalized": name, **parts}


def _matches(pattern: str, path: str) -> bool:
    wanted, parts = pattern.split("/"), path.split("/")
    if pattern.endswith("/**"):
        wanted, parts = wanted[:-1], parts[: len(wanted) - 1]
    return len(wanted) == len(parts) and all(map(fnmatchcase, parts, wanted))


def _flatten(value: Body, prefix: str = "") -> Parameters:
    found: dict[str, str] = {}
    for name, member in value.items():
        if isinstance(member, dict):
            found |= _flatten(member, f"{prefix}{name}.")
        elif isinstance(member, str | int | float | bool):
            found[f"{prefix}{name}"] = str(member)
    return found
