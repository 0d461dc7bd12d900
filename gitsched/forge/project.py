"""Find the REST API and the project of a repository on its forge from the repository's URL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple
from urllib.parse import quote, urlsplit

from gitsched.forge.commit_status import GitHubStatusAPI, GitLabStatusAPI, StatusAPI
from gitsched.git.urls import identify_repository, is_loopback
from gitsched.model.errors import Permanent

ForgeKind = Literal["github", "gitlab"]
_STATUS_APIS: dict[ForgeKind, Callable[[str, str], StatusAPI]] = {"github": GitHubStatusAPI, "gitlab": GitLabStatusAPI}


class ForgeProject(NamedTuple):
    """The address of a forge's REST API, and a project's name there."""

    api: str
    project: str


def open_status_api(kind: ForgeKind, repository: str | None, *, api: str | None, project: str | None) -> StatusAPI:
    """The adapter for statuses of a repository at this URL; see `find_place`."""
    return _STATUS_APIS[kind](*find_project(kind, repository, api=api, project=project))


def find_project(kind: ForgeKind, repository: str | None, *, api: str | None, project: str | None) -> ForgeProject:
    """Where a repository at this URL has its forge; `api` and `project` say what the URL does not. Permanent where neither does."""
    host, path = _split_url(repository)
    if not (api or host) or not (project or path):
        lack = "--forge-api" if not (api or host) else "--forge-project"
        raise Permanent(f"the source's address does not say where its forge is; say it with {lack}")
    address = api or _find_api(kind, host)
    if not address.startswith("https://") and not (address.startswith("http://") and is_loopback(address)):
        raise Permanent("the address of a forge begins with https://; anything else would show the token to the network")
    if urlsplit(address).username is not None or urlsplit(address).query:
        raise Permanent("the address of a forge has no user and no query; the token has a place of its own")
    return ForgeProject(address, project or path)


def link_commit(kind: ForgeKind, repository: str | None, commit: str) -> str:
    """The page of a commit; "" where the repository is on no server."""
    host, path = _split_url(repository)
    if not host:
        return ""
    return f"https://{host}/{quote(path)}/{'-/' if kind == 'gitlab' else ''}commit/{commit}"


def _find_api(kind: ForgeKind, host: str) -> str:
    if kind == "gitlab":
        return f"https://{host}/api/v4"
    return "https://api.github.com" if host == "github.com" else f"https://{host}/api/v3"


def _split_url(repository: str | None) -> tuple[str, str]:
    """Host and path of a repository, both "" for one of this machine. A port counts where it is one of HTTP."""
    host, _, path = identify_repository(repository or "/").partition("/")
    if not host or not path:
        return "", ""
    if repository is not None and repository.startswith("https://"):
        host = urlsplit(repository).netloc.rpartition("@")[2]
    return host, path
