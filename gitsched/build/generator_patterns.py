"""The files and directories that a git generator of an ApplicationSet selects, as Argo CD lists them."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from typing import Any

from gitsched.build.generator_steps import Steps
from gitsched.build.go_functions import TemplateError, normalize_name
from gitsched.manifests.glob import GlobToken, matches_glob, parse_glob
from gitsched.model.document import Body, list_objects

Matches = Callable[[str], bool]


def select_directories(entries: Any, directories: list[str], steps: Steps) -> Iterator[str]:
    """Yield the directories that `directories` of a generator selects. Source: filterApps, with path.Match of Go: `*` is a part of one
    name, and so is `**`; a leading or trailing slash matches nothing."""
    visible = (path for path in directories if not path.startswith(".") and "/." not in path)
    return _select(entries, visible, lambda pattern: _match_names(pattern, steps))


def select_files(entries: Any, files: list[str], steps: Steps) -> Iterator[str]:
    """Yield the files that `files` of a generator selects. Source: LsFiles, which is `git ls-files` with its pathspecs: `*` is any text,
    slashes included, and the path of a directory is all files below it. Raises TemplateError for one that git refuses."""
    return _select(entries, files, lambda pattern: _match_pathspec(pattern, steps))


def _select(entries: Any, paths: Any, parse: Callable[[str], Matches]) -> Iterator[str]:
    items = list_objects(entries)
    included = [parse(str(entry.get("path") or "")) for entry in items if entry.get("exclude") is not True]
    excluded = [parse(str(entry.get("path") or "")) for entry in items if entry.get("exclude") is True]
    for path in paths:
        if any(matches(path) for matches in included) and not any(matches(path) for matches in excluded):
            yield path


def _match_names(pattern: str, steps: Steps) -> Matches:
    names = [parse_glob(name) for name in pattern.split("/")]

    def matches(path: str) -> bool:
        parts = path.split("/")
        steps.take(1)
        return len(parts) == len(names) and all(
            tokens is not None and _matches(tokens, part, steps) for tokens, part in zip(names, parts, strict=True)
        )

    return matches


def _match_pathspec(pattern: str, steps: Steps) -> Matches:
    if pattern.startswith(":"):
        raise TemplateError(f"gitsched does not read pathspecs with a colon, such as {pattern}")
    path = posixpath.normpath(pattern or ".")
    if path.startswith(("/", "../")) or path == "..":
        raise TemplateError(f"the path {pattern} is outside of the repository")
    path = "" if path == "." else path
    suffix = "/" if pattern.endswith("/") and path else ""
    directory = f"{path}/" if path else ""
    tokens = parse_glob((path + suffix).replace("[!", "[^"))

    def matches(file: str) -> bool:
        steps.take(1)
        if file.startswith(directory) or (file == path and not suffix):
            return True
        return tokens is not None and _matches(tokens, file, steps)

    return matches


def _matches(tokens: list[GlobToken], text: str, steps: Steps) -> bool:
    steps.take(1 + (len(tokens) * len(text) >> 7))
    return matches_glob(tokens, text)


def describe_path(path: str, filename: str | None, prefix: str, go_template: bool) -> dict[str, Any]:
    """Return the parameters about a directory, and about a file in it where `filename` is not None."""
    segments = path.split("/")
    basename = segments[-1]
    names: dict[str, Any] = {"basename": basename, "basenameNormalized": normalize_name(basename)}
    if filename is not None:
        names |= {"filename": filename, "filenameNormalized": normalize_name(filename)}
    if go_template:
        described = {"path": {"path": path, **names, "segments": segments}}
        return {prefix: described} if prefix else described
    start = f"{prefix}.path" if prefix else "path"
    numbered = {f"{start}[{index}]": segment for index, segment in enumerate(segments) if segment}
    return {start: path, **{f"{start}.{name}": value for name, value in names.items()}, **numbered}


def flatten_values(value: Body, prefix: str = "") -> dict[str, Any]:
    """Return the values in a mapping by their path, such as `a.b.0`. Source: jeremywohl/flatten."""
    found: dict[str, Any] = {}
    pending: list[tuple[str, Any]] = [(prefix, value)]
    while pending:
        start, each = pending.pop()
        for name, inner in each.items() if isinstance(each, dict) else enumerate(each):
            path = f"{start}.{name}" if start else str(name)
            if isinstance(inner, (dict, list)):
                pending.append((path, inner))
            else:
                found[path] = inner
    return found
