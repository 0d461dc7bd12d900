"""GitHub's commit statuses, of github.com and of servers of one's own (REST API, version 2022-11-28)."""

from __future__ import annotations

from urllib.parse import quote

from gitsched.forge.status import Post, Status, shorten

_LONGEST = 140


class GitHub:
    """`api` is the REST API's address, `project` is owner/name. The token needs `statuses: write`."""

    title = "GitHub"

    def __init__(self, api: str, project: str) -> None:
        self._base = f"{api.rstrip('/')}/repos/{quote(project)}/statuses/"

    def write(self, status: Status, token: str) -> Post:
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {token}",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        body = {"state": status.state, "context": status.context, "description": shorten(status.description, _LONGEST)}
        return Post(self._base + status.commit, headers, body | ({"target_url": status.link} if status.link else {}))

    def read(self, code: int, _message: str, /) -> bool:
        return code == 201
