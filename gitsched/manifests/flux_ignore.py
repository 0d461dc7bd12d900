"""Which files Flux leaves out of its copy of a source. Source: fluxcd/pkg, sourceignore and artifact/storage.

Unlike git, Flux does not look at the directories of a file first: the last rule that matches the path, or the beginning of it, decides. So
`/*` and `!/kubernetes/main` leave everything out but that directory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from gitsched.manifests.glob import GlobToken, matches_glob, parse_glob
from gitsched.manifests.sourceignore import MAX_RULE_LENGTH, MAX_RULES
from gitsched.named_tuples import NamedTuple

_GIT_FILES: Final = (".git/", ".gitignore", ".gitmodules", ".gitattributes")
"""What Flux always leaves out."""
_DEFAULT_FILES: Final = (
    *("*.jpg", "*.jpeg", "*.gif", "*.png", "*.wmv", "*.flv", "*.tar.gz", "*.zip"),
    *(".github/", ".circleci/", ".travis.yml", ".gitlab-ci.yml", "appveyor.yml", ".drone.yml", "cloudbuild.yaml"),
    *("codeship-services.yml", "codeship-steps.yml", "**/.goreleaser.yml", "**/.sops.yaml", "**/.flux.yaml"),
)
"""What Flux leaves out of a source without rules of its own."""
_ANY_DIRECTORIES: Final = "**"


class _Rule(NamedTuple):
    """`directory` are the names of the directory whose file has the rule, and `parts` those of the pattern with their parsed elements."""

    directory: tuple[str, ...]
    parts: tuple[tuple[str, list[GlobToken] | None], ...]
    excludes: bool
    directories_only: bool

    def matches(self, path: list[str]) -> bool:
        """Return whether the rule is about a file, given the names of its path."""
        depth = len(self.directory)
        if len(path) <= depth or tuple(path[:depth]) != self.directory:
            return False
        return self._matches_name(path[depth:]) if len(self.parts) == 1 else self._matches_path(path[depth:])

    def _matches_name(self, names: list[str]) -> bool:
        """Match a pattern without slashes: the first name of the path that it matches counts."""
        found = next((index for index, name in enumerate(names) if matches_glob(self.parts[0][1], name)), None)
        return found is not None and not (self.directories_only and found == len(names) - 1)

    def _matches_path(self, names: list[str]) -> bool:
        """Match a pattern with slashes: what it matches may be a directory of the file."""
        matched = skips = False
        position = 0
        for index, (part, tokens) in enumerate(self.parts):
            if part == _ANY_DIRECTORIES and index == len(self.parts) - 1:
                break
            if part in ("", _ANY_DIRECTORIES):
                skips = bool(part)
                continue
            if _ANY_DIRECTORIES in part or position == len(names):
                return False
            rest = range(position, len(names)) if skips else range(position, position + 1)
            found = next((place for place in rest if matches_glob(tokens, names[place])), None)
            if found is None and not skips:
                return False
            matched, skips = found is not None, False
            position = len(names) if found is None else found + 1
        return matched and not (self.directories_only and position == len(names))


class FluxIgnore:
    """The rules of a source of Flux; later ones take precedence."""

    __slots__ = ("_rules",)

    def __init__(self, files: Mapping[str, str] | None = None, more: str = "", *, is_artifact: bool = False) -> None:
        """Parse rules: `files` are the texts of the `.sourceignore` files by directory, "" for the root; `more` are those of the source."""
        own = [rule for directory, text in sorted((files or {}).items()) for rule in _parse(text, directory)]
        own += _parse(more, "")
        always = "" if is_artifact else "\n".join(_GIT_FILES if own else (*_GIT_FILES, *_DEFAULT_FILES))
        self._rules = tuple(reversed([*_parse(always, ""), *own][:MAX_RULES]))

    def is_ignored(self, path: str) -> bool:
        """Return whether Flux leaves a file out."""
        names = path.split("/")
        return next((rule.excludes for rule in self._rules if rule.matches(names)), False)


def _parse(text: str, directory: str) -> Iterator[_Rule]:
    for line in text.split("\n"):
        written = line.removesuffix("\r")
        if written.startswith("#") or not written.strip() or len(written) > MAX_RULE_LENGTH:
            continue
        pattern = written.removeprefix("!")
        pattern = pattern if pattern.endswith("\\ ") else pattern.rstrip(" ")
        parts = tuple((part, parse_glob(part)) for part in pattern.removesuffix("/").split("/"))
        domain = tuple(directory.split("/")) if directory else ()
        yield _Rule(domain, parts, not written.startswith("!"), pattern.endswith("/"))
