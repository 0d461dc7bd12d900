"""Find the REST API and the project of a repository on its forge from the repository's URL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal
from urllib.parse import quote, urlsplit

from gitsched.forge.commit_status import GitHubStatusAPI, GitLabStatusAPI, StatusAPI
from gitsched.git.urls import identify_repository, is_loopback
from gitsched.model.errors import Permanent
from gitsched.named_tuples import NamedTuple

ForgeKind = Literal["github", "gitlab"]
_STATUS_APIS: dict[ForgeKind, Callable[[str, str], StatusAPI]] = {"github": GitHubStatusAPI, "gitlab": GitLabStatusAPI}


class ForgeProject(NamedTuple):
    """The URL of a forge's REST API, and the name of a project there."""

    api: str
    project: str


def open_status_api(kind: ForgeKind, repository: str | None, *, api: str | None, project: str | None) -> StatusAPI:
    """Open the status API for a repository at this URL; see `find_project`."""
    return _STATUS_APIS[kind](*find_project(kind, repository, api=api, project=project))


def find_project(kind: ForgeKind, repository: str | None, *, api: str | None, project: str | None) -> ForgeProject:
    """Find the forge project of a repository URL; `api` and `project` override. Permanent when neither the URL nor the options
    give it."""
    host, path = _split_url(repository)
    if not (api or host) or not (project or path):
        option = "--forge-api" if not (api or host) else "--forge-project"
        raise Permanent(f"cannot find the forge from the source's URL; set {option}")
    address = api or _find_api(kind, host)
    if not address.startswith("https://") and not (address.startswith("http://") and is_loopback(address)):
        raise Permanent("the URL of a forge must begin with https://; anything else would send the token unencrypted")
    if urlsplit(address).username is not None or urlsplit(address).query:
        raise Permanent("the URL of a forge must not contain a user or a query; pass the token separately")
    return ForgeProject(address, project or path)


def link_commit(kind: ForgeKind, repository: str | None, commit: str) -> str:
    """Return the web page of a commit; "" for a local repository."""
    host, path = _split_url(repository)
    if not host:
        return ""
    return f"https://{host}/{quote(path)}/{'-/' if kind == 'gitlab' else ''}commit/{commit}"


def _find_api(kind: ForgeKind, host: str) -> str:
    if kind == "gitlab":
        return f"https://{host}/api/v4"
    return "https://api.github.com" if host == "github.com" else f"https://{host}/api/v3"


def _split_url(repository: str | None) -> tuple[str, str]:
    """Return host and path of a repository, both "" for a local one. The port is kept for https."""
    host, _, path = identify_repository(repository or "/").partition("/")
    if not host or not path:
        return "", ""
    if repository is not None and repository.startswith("https://"):
        host = urlsplit(repository).netloc.rpartition("@")[2]
    return host, path
