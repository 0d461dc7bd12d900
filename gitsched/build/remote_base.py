"""Bases in other Git repositories, as kustomizations name them: parse their URLs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qs

from gitsched.named_tuples import NamedTuple

REMOTE = ".gitsched-remote"
"""The directory of a run in which files of other repositories are."""
_OID = re.compile(r"[0-9a-f]{40}")
_URL = re.compile(r"(?:(https|http|ssh|file)://)(?:([^/@]*)@)?([^/@]*)/(.*)", re.IGNORECASE)
_SCP = re.compile(r"([\w.-]+)@([\w.-]+):(.+)")
_RAW_FILE = re.compile(r"(.+?)/(?:-/)?raw/(?:commit/)?([0-9a-f]{40})/(.+)")
_USER = re.compile(r"[\w.+~-]*(?::[\w.+~!$&*=-]*)?", re.ASCII)
_HOST = re.compile(r"(?:[\w.-]+|\[[0-9a-f:.]+\])?(?::[0-9]+)?", re.ASCII)
_AMBIGUOUS = re.compile(r"(?:^|/)\.{1,2}(?:/|$)|[\s\\#?\x00-\x1f\x7f]|%(?:2[ef]|5c|25|[01][0-9a-f]|7f)", re.IGNORECASE)
"""What another program could read as another repository than the one that the settings are asked about."""
_NOT_PLAIN = "the path of its repository has `.`, `..`, white space or encoded characters that gitsched does not accept"
_FILE_SUFFIXES = (".yaml", ".yml", ".json")
_GITHUB, _GITHUB_FILES = "github.com", "raw.githubusercontent.com"


class RemoteBase(NamedTuple):
    """A directory or file in a commit of another repository. `url` is what git fetches from, `name` is host and path of the repository,
    such as github.com/example/app."""

    url: str
    name: str
    oid: str
    path: str

    @property
    def prefix(self) -> str:
        """The directory of a run in which the files of this commit are."""
        parts = (re.sub(r"[^\w.-]", "_", part) for part in self.name.split("/"))
        return "/".join((REMOTE, *(part for part in parts if part.strip(".")), self.oid))


class RemoteTree(NamedTuple):
    """The files of a commit of another repository, with the paths that they have in the directory of a run."""

    entries: Mapping[str, tuple[str, int]]
    directories: frozenset[str]


class RemotePolicy(NamedTuple):
    """What a run may read of other repositories.

    `own` are the prefixes that the settings of the read commit allow, such as github.com/example; `trusted` are those of settings that a
    maintainer has merged. None allows all. Both must allow a repository, so that a commit under review can
    only narrow what is read. Only with `connect` commits are fetched that the cache does not have, and only from the repositories that the
    operator allows (`fetchable`).
    """

    connect: bool = False
    trusted: tuple[str, ...] | None = ()
    own: tuple[str, ...] | None = ()
    fetchable: tuple[str, ...] = ()


def parse_remote_base(text: str) -> RemoteBase | str | None:
    """Return what a reference of a kustomization names in another repository.

    Return why it cannot be read if it is not pinned to a commit id; None if it is no URL. The forms are those of kustomize
    (api/internal/git/repospec.go): with `//`, `.git` or `_git` between repository and path, otherwise the first two members of the
    path are the repository. URLs of raw files of GitHub, GitLab and Gitea name the commit in their paths.
    """
    location, _, query = text.removeprefix("git::").partition("?")
    options = parse_qs(query)
    ref = (options.get("ref") or options.get("version") or [""])[0]
    location = f"https://{_GITHUB}/{location.removeprefix('gh:')}" if location.startswith("gh:") else location
    if location.lower().startswith((f"{_GITHUB}/", f"{_GITHUB}:")):
        location = f"https://{_GITHUB}/{location[len(_GITHUB) + 1 :]}"
    if (short := _SCP.fullmatch(location)) and "://" not in location:
        start, host, rest = f"{short[1]}@{short[2]}:", short[2], short[3]
    elif found := _URL.fullmatch(location):
        user = f"{found[2]}@" if found[2] else ""
        start, host, rest = f"{found[1].lower()}://{user}{found[3]}/", found[3].lower(), found[4]
    else:
        return "it is not a URL that gitsched fetches from" if "://" in location else None
    user = start.partition("://")[2].rpartition("@")[0]
    if not _USER.fullmatch(user) or not _HOST.fullmatch(host) or user.startswith("-") or host.startswith("-"):
        return "its user or host has characters that gitsched does not accept"
    if not ref and (raw := _parse_raw_file(host, rest)):
        return _NOT_PLAIN if _AMBIGUOUS.search(raw.url.partition("://")[2]) else raw
    if not query and rest.endswith(_FILE_SUFFIXES) and "//" not in rest and ".git/" not in rest:
        return "the URL of a file names no commit"
    repository, path = _split(rest, host)
    if not repository:
        return "it names no repository"
    if _AMBIGUOUS.search(repository):
        return _NOT_PLAIN
    if not _OID.fullmatch(ref):
        return f"it is not pinned to a commit, but to {ref}" if ref else "it is not pinned to a commit"
    return RemoteBase(f"{start}{repository}", _name(host, repository), ref, _clean(path))


def is_allowed(base: RemoteBase, prefixes: tuple[str, ...] | None) -> bool:
    """Return whether one of the prefixes is the repository, its organization or its host; True for None."""
    return prefixes is None or any(f"{base.name}/".startswith(f"{prefix.rstrip('/')}/") for prefix in prefixes)


def _parse_raw_file(host: str, rest: str) -> RemoteBase | None:
    if host == _GITHUB_FILES:
        organization, _, more = rest.partition("/")
        name, _, more = more.partition("/")
        oid, _, path = more.partition("/")
        repository, host = f"{organization}/{name}", _GITHUB
    elif raw := _RAW_FILE.fullmatch(rest):
        repository, oid, path = raw[1], raw[2], raw[3]
    else:
        return None
    if not _OID.fullmatch(oid) or not path:
        return None
    return RemoteBase(f"https://{host}/{repository}", _name(host, repository), oid, _clean(path))


def _split(rest: str, host: str) -> tuple[str, str]:
    """Split the path of a URL into the repository and the path in it."""
    if "//" in rest:
        repository, _, path = rest.partition("//")
        return repository.rstrip("/"), path
    if found := re.match(r"(.+?\.git)(?:/(.*))?$", rest):
        return found[1], found[2] or ""
    if found := re.match(r"(.*_git/[^/]+)(?:/(.*))?$", rest):
        return found[1], found[2] or ""
    parts = rest.strip("/").split("/")
    return ("", "") if not host or len(parts) < 2 else ("/".join(parts[:2]), "/".join(parts[2:]))


def _name(host: str, repository: str) -> str:
    return f"{host}/{repository.removesuffix('.git').strip('/')}"


def _clean(path: str) -> str:
    return "/".join(part for part in path.split("/") if part not in ("", "."))
