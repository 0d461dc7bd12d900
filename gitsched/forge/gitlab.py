"""GitLab's commit statuses (REST API, version 4), which show up as an external job of the commit's pipeline."""

from __future__ import annotations

from urllib.parse import quote

from gitsched.forge.status import Post, Status, shorten

_LONGEST = 255
_STATES = {"success": "success", "failure": "failed"}


class GitLab:
    """`api` is the REST API's address, `project` the path with all groups. The token needs the scope `api` and the role Developer."""

    title = "GitLab"

    def __init__(self, api: str, project: str) -> None:
        self._base = f"{api.rstrip('/')}/projects/{quote(project, safe='')}/statuses/"

    def write(self, status: Status, token: str) -> Post:
        body = {
            "state": _STATES[status.state],
            "name": status.context,
            "description": shorten(status.description, _LONGEST),
        }
        return Post(
            self._base + status.commit, {"PRIVATE-TOKEN": token}, body | ({"target_url": status.link} if status.link else {})
        )

    def read(self, code: int, message: str, /) -> bool:
        # It declines to set a state that is set already.
        return code == 201 or (code == 400 and "Cannot transition status" in message)
