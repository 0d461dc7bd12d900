"""Write one comment into a pull or merge request, and update it in place later. It is found by a hidden first line and must have
been written by the token's own account.

It is found by its first line, a comment in HTML that nobody sees. Anybody can write such a line, so only what the token's own account
wrote is ours: whoever may edit the text of a comment could otherwise speak with our voice.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import quote

import httpx

from gitsched import __version__
from gitsched.model.errors import Permanent, Temporary

CommentResult = Literal["written", "renewed", "unchanged"]

MAX_PAGES, PAGE_SIZE = 50, 100
"""Comments looked through, the oldest first, where ours is: in a request of more a second one is written."""
MAX_ATTEMPTS = 4
_MIN_DELAY, _MAX_DELAY = 1.0, 30.0
_TIMEOUT = 20.0
_MAX_RESPONSE_BYTES = 1 << 26
_MARKER = re.compile(r"<!-- gitsched:[a-z]+ id=[A-Za-z0-9._-]{1,64} -->")


class ForgeComment(NamedTuple):
    """A comment that is there. `machine` says that an app wrote it, not a person."""

    number: int
    author_id: int
    is_bot: bool
    body: str


class CommentAPI(Protocol):
    """The contract of an adapter: where the comments of one request are, and what the forge calls things."""

    title: str
    comments_url: str
    update_method: Literal["PATCH", "PUT"]
    account_url: str

    def headers(self, token: str) -> Mapping[str, str]:
        """Who we are."""

    def comment_url(self, number: int) -> str:
        """The address of one comment."""

    def parse_comment(self, entry: Mapping[str, Any]) -> ForgeComment:
        """A comment as the forge lists it."""


class PullRequestComments:
    """GitHub's, REST API version 2022-11-28. The token needs `pull-requests: write`."""

    title = "GitHub"
    update_method: Literal["PATCH", "PUT"] = "PATCH"

    def __init__(self, api: str, project: str, number: int) -> None:
        self._issues = f"{api.rstrip('/')}/repos/{quote(project)}/issues"
        self.comments_url = f"{self._issues}/{number}/comments"
        self.account_url = f"{api.rstrip('/')}/user"

    def headers(self, token: str) -> Mapping[str, str]:
        return {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {token}",
            "X-GitHub-Api-Version": "2022-11-28",
        }

    def comment_url(self, number: int) -> str:
        return f"{self._issues}/comments/{number}"

    def parse_comment(self, entry: Mapping[str, Any]) -> ForgeComment:
        user = entry.get("user") or {}
        return ForgeComment(int(entry["id"]), int(user.get("id") or 0), user.get("type") == "Bot", str(entry.get("body") or ""))


class MergeRequestComments:
    """GitLab's, REST API version 4. The token needs the scope `api` and the role Reporter."""

    title = "GitLab"
    update_method: Literal["PATCH", "PUT"] = "PUT"

    def __init__(self, api: str, project: str, number: int) -> None:
        self.comments_url = f"{api.rstrip('/')}/projects/{quote(project, safe='')}/merge_requests/{number}/notes"
        self.account_url = f"{api.rstrip('/')}/user"

    def headers(self, token: str) -> Mapping[str, str]:
        return {"PRIVATE-TOKEN": token}

    def comment_url(self, number: int) -> str:
        return f"{self.comments_url}/{number}"

    def parse_comment(self, entry: Mapping[str, Any]) -> ForgeComment:
        author = entry.get("author") or {}
        return ForgeComment(int(entry["id"]), int(author.get("id") or 0), False, str(entry.get("body") or ""))


def write_comment(place: CommentAPI, token: str, text: str) -> CommentResult:
    """Let our comment of the text's first line be this text. Raises Permanent or Temporary, neither with the token in it."""
    mark = text.partition("\n")[0].strip()
    if not _MARKER.fullmatch(mark):
        raise Permanent("the first line of a comment is a mark such as <!-- gitsched:plan id=default -->; gitsched plan writes it")
    with httpx.Client(timeout=_TIMEOUT, follow_redirects=False, headers={"User-Agent": f"gitsched/{__version__}"}) as client:
        desk = _CommentClient(client, place, place.headers(token))
        ours = desk.find_comment(mark)
        if ours is None:
            desk.request("POST", place.comments_url, text)
            return "written"
        # Forges keep lines as browsers send them, and no blank ones at the end.
        if ours.body.replace("\r\n", "\n").rstrip() == text.rstrip():
            return "unchanged"
        desk.request(place.update_method, place.comment_url(ours.number), text)
        return "renewed"


class _CommentClient(NamedTuple):
    """One talk with the API."""

    client: httpx.Client
    api: CommentAPI
    headers: Mapping[str, str]

    def find_comment(self, mark: str) -> ForgeComment | None:
        account: int | None = None
        asked = False
        for page in range(1, MAX_PAGES + 1):
            entries = self.request("GET", f"{self.api.comments_url}?per_page={PAGE_SIZE}&page={page}&sort=asc")
            if not isinstance(entries, list):
                raise Permanent(f"{self.api.title} did not answer with comments; is the address that of its API?")
            for said in map(self.api.parse_comment, entries):
                if not said.body.startswith(mark):
                    continue
                if not asked:
                    account, asked = self._read_account(), True
                if said.is_bot if account is None else said.author_id == account:
                    return said
            if len(entries) < PAGE_SIZE:
                return None
        return None

    def _read_account(self) -> int | None:
        """Whose token it is; None for one of an app, such as that of a job of GitHub Actions, which may not ask."""
        answer = self.request("GET", self.api.account_url, may_fail=True)
        return int(answer["id"]) if isinstance(answer, dict) and "id" in answer else None

    def request(self, method: str, url: str, text: str | None = None, *, may_fail: bool = False) -> Any:
        """The answer's JSON; None for a refusal where that may be."""
        pause = _MIN_DELAY
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                code, message, answer, after = self._send(method, url, text)
            except httpx.TransportError as error:
                # Its own text may hold what was sent.
                code, message, answer, after = 0, f"no connection ({type(error).__name__})", None, None
            if 200 <= code < 300:
                return answer
            late = code in (0, 408, 429) or code >= 500 or (code == 403 and after is not None)
            if not late:
                if may_fail and code in (403, 404):
                    return None
                raise Permanent(
                    f"{self.api.title} refused the comment: {_describe_status_code(code)}{f' ({message})' if message else ''}"
                )
            if attempt < MAX_ATTEMPTS:
                time.sleep(min(max(pause, after or 0), _MAX_DELAY))
                pause *= 2
        raise Temporary(f"{self.api.title} does not take the comment now: {message or f'status {code}'}")

    def _send(self, method: str, url: str, text: str | None) -> tuple[int, str, Any, float | None]:
        body = None if text is None else {"body": text}
        with self.client.stream(method, url, headers=dict(self.headers), json=body) as response:
            data = bytearray()
            for chunk in response.iter_bytes():
                data += chunk
                if len(data) > _MAX_RESPONSE_BYTES:
                    raise Permanent(f"{self.api.title} answers with more than anybody could have written")
        try:
            answer = json.loads(data) if data else None
        except (ValueError, RecursionError):
            answer = None
        message = answer.get("message", "") if isinstance(answer, dict) else ""
        shown = message if isinstance(message, str) else json.dumps(message)
        after = response.headers.get("Retry-After", "")
        return response.status_code, " ".join(shown.split())[:200], answer, float(after) if after.isdigit() else None


def _describe_status_code(code: int) -> str:
    meanings = {
        401: "the token is not valid",
        403: "the token may not comment here; in a request from a fork it only reads",
        404: "there is no such request, or the token may not see it",
        413: "the text is too long",
        422: "the text is too long, or the request is locked",
    }
    return f"status {code}, {meanings[code]}" if code in meanings else f"status {code}"
