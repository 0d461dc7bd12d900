"""Commit statuses: the requests of GitHub (REST API version 2022-11-28) and GitLab (REST API version 4) that set them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol
from urllib.parse import quote

from gitsched.named_tuples import NamedTuple

StatusState = Literal["success", "failure"]


class CommitStatus(NamedTuple):
    """The result for a source commit. `context` distinguishes several statuses of a commit; `link` is "" without a page to link
    to."""

    commit: str
    state: StatusState
    description: str
    context: str
    link: str = ""


class StatusRequest(NamedTuple):
    """A POST request with a JSON body."""

    url: str
    headers: Mapping[str, str]
    body: Mapping[str, str]


class StatusAPI(Protocol):
    """The API of a forge."""

    title: str

    def build_request(self, status: CommitStatus, token: str) -> StatusRequest:
        """Build the request that sets a status."""

    def is_accepted(self, code: int, message: str, /) -> bool:
        """Return whether a response (HTTP status, and the message in its body) means that the status is set."""


def truncate(text: str, length: int) -> str:
    """Shorten a text to the length that a forge accepts."""
    return text if len(text) <= length else text[: length - 1] + "…"


_GITHUB_MAX_DESCRIPTION = 140


class GitHubStatusAPI:
    """`api` is the URL of the REST API, `project` is owner/name. The token needs `statuses: write`."""

    title = "GitHub"

    def __init__(self, api: str, project: str) -> None:
        self._base = f"{api.rstrip('/')}/repos/{quote(project)}/statuses/"

    def build_request(self, status: CommitStatus, token: str) -> StatusRequest:
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {token}",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        body = {
            "state": status.state,
            "context": status.context,
            "description": truncate(status.description, _GITHUB_MAX_DESCRIPTION),
        }
        return StatusRequest(self._base + status.commit, headers, body | ({"target_url": status.link} if status.link else {}))

    def is_accepted(self, code: int, _message: str, /) -> bool:
        return code == 201


_GITLAB_MAX_DESCRIPTION = 255
_GITLAB_STATES = {"success": "success", "failure": "failed"}


class GitLabStatusAPI:
    """`api` is the URL of the REST API, `project` the path with all groups. The token needs the scope `api` and the role
    Developer."""

    title = "GitLab"

    def __init__(self, api: str, project: str) -> None:
        self._base = f"{api.rstrip('/')}/projects/{quote(project, safe='')}/statuses/"

    def build_request(self, status: CommitStatus, token: str) -> StatusRequest:
        body = {
            "state": _GITLAB_STATES[status.state],
            "name": status.context,
            "description": truncate(status.description, _GITLAB_MAX_DESCRIPTION),
        }
        return StatusRequest(
            self._base + status.commit, {"PRIVATE-TOKEN": token}, body | ({"target_url": status.link} if status.link else {})
        )

    def is_accepted(self, code: int, message: str, /) -> bool:
        # GitLab rejects a state that is already set.
        return code == 201 or (code == 400 and "Cannot transition status" in message)
