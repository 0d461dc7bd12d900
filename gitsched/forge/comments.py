"""Create or update the comment of a plan on a GitHub pull request or a GitLab merge request.

The comment is found by its first line, a hidden HTML comment. Anyone can write such a line, so the comment must also have been written by
the account of the token.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any, Literal, Protocol
from urllib.parse import quote

import httpx

from gitsched import __version__
from gitsched.model.errors import Permanent, Temporary
from gitsched.named_tuples import NamedTuple

CommentResult = Literal["written", "renewed", "unchanged", "not written"]

MAX_PAGES, PAGE_SIZE = 50, 100
"""Pages of comments that are searched, oldest first, and comments per page; in longer conversations a second comment is written."""
MAX_ATTEMPTS = 4
_MIN_DELAY, _MAX_DELAY = 1.0, 30.0
_TIMEOUT = 20.0
_MAX_RESPONSE_BYTES = 1 << 26
_MARKER = re.compile(r"<!-- gitsched:[a-z]+ id=[A-Za-z0-9._-]{1,64} -->")


class ForgeComment(NamedTuple):
    """An existing comment. `author` is the name of the account that wrote it, lower-case for GitHub."""

    number: int
    author_id: int
    author: str
    body: str


class Account(NamedTuple):
    """The account of a token; `number` is None where the forge tells only the name."""

    number: int | None
    name: str

    def wrote(self, comment: ForgeComment) -> bool:
        """Return whether the account wrote a comment."""
        return comment.author_id == self.number if self.number is not None else comment.author == self.name


class CommentAPI(Protocol):
    """The comments of one pull or merge request: their URLs and the forge's terms."""

    title: str
    comments_url: str
    update_method: Literal["PATCH", "PUT"]
    account_url: str
    graphql_url: str
    """Where the token of an app, which may not query its account, can learn its name; "" if there is no such URL."""

    def headers(self, token: str) -> Mapping[str, str]:
        """Return the headers that authenticate a request."""

    def comment_url(self, number: int) -> str:
        """Return the URL of one comment."""

    def parse_comment(self, entry: Mapping[str, Any]) -> ForgeComment:
        """Parse a comment of the forge's list."""


class PullRequestComments:
    """GitHub, REST API version 2022-11-28. The token needs `pull-requests: write`."""

    title = "GitHub"
    update_method: Literal["PATCH", "PUT"] = "PATCH"

    def __init__(self, api: str, project: str, number: int) -> None:
        self._issues = f"{api.rstrip('/')}/repos/{quote(project)}/issues"
        self.comments_url = f"{self._issues}/{number}/comments"
        self.account_url = f"{api.rstrip('/')}/user"
        self.graphql_url = f"{api.rstrip('/').removesuffix('/v3')}/graphql"

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
        name = str(user.get("login") or "").lower().removesuffix("[bot]")
        return ForgeComment(int(entry["id"]), int(user.get("id") or 0), name, str(entry.get("body") or ""))


class MergeRequestComments:
    """GitLab, REST API version 4. The token needs the scope `api` and the role Reporter."""

    title = "GitLab"
    update_method: Literal["PATCH", "PUT"] = "PUT"

    def __init__(self, api: str, project: str, number: int) -> None:
        self.comments_url = f"{api.rstrip('/')}/projects/{quote(project, safe='')}/merge_requests/{number}/notes"
        self.account_url = f"{api.rstrip('/')}/user"
        self.graphql_url = ""

    def headers(self, token: str) -> Mapping[str, str]:
        return {"PRIVATE-TOKEN": token}

    def comment_url(self, number: int) -> str:
        return f"{self.comments_url}/{number}"

    def parse_comment(self, entry: Mapping[str, Any]) -> ForgeComment:
        author = entry.get("author") or {}
        return ForgeComment(
            int(entry["id"]), int(author.get("id") or 0), str(author.get("username") or ""), str(entry.get("body") or "")
        )


def write_comment(api: CommentAPI, token: str, text: str, *, only_update: bool = False) -> CommentResult:
    """Create or update the comment that has the text's first line; with `only_update`, create none. Raises Permanent or Temporary, neither
    with the token in its message."""
    marker = text.partition("\n")[0].strip()
    if not _MARKER.fullmatch(marker):
        raise Permanent(
            "the first line of a comment must be a marker such as <!-- gitsched:plan id=default -->; gitsched plan writes it"
        )
    with httpx.Client(timeout=_TIMEOUT, follow_redirects=False, headers={"User-Agent": f"gitsched/{__version__}"}) as client:
        comment_client = _CommentClient(client, api, api.headers(token))
        existing = comment_client.find_comment(marker)
        if existing is None and only_update:
            return "not written"
        if existing is None:
            comment_client.request("POST", api.comments_url, text)
            return "written"
        # Forges store line ends as browsers send them, and remove trailing blank lines.
        if existing.body.replace("\r\n", "\n").rstrip() == text.rstrip():
            return "unchanged"
        comment_client.request(api.update_method, api.comment_url(existing.number), text)
        return "renewed"


class _CommentClient(NamedTuple):
    """The HTTP client for one comment."""

    client: httpx.Client
    api: CommentAPI
    headers: Mapping[str, str]

    def find_comment(self, marker: str) -> ForgeComment | None:
        account: Account | None = None
        for page in range(1, MAX_PAGES + 1):
            entries = self.request("GET", f"{self.api.comments_url}?per_page={PAGE_SIZE}&page={page}&sort=asc")
            if not isinstance(entries, list):
                raise Permanent(f"{self.api.title} did not return a list of comments; check that the URL is that of its REST API")
            for comment in map(self.api.parse_comment, entries):
                if not comment.body.startswith(marker):
                    continue
                account = account or self._read_account()
                if account.wrote(comment):
                    return comment
            if len(entries) < PAGE_SIZE:
                return None
        return None

    def _read_account(self) -> Account:
        """Return the account of the token. An app's token, such as that of a GitHub Actions job, may only query its name."""
        answer = self.request("GET", self.api.account_url, may_fail=True)
        if isinstance(answer, dict) and "id" in answer:
            return Account(int(answer["id"]), "")
        if self.api.graphql_url:
            answer = self.request("POST", self.api.graphql_url, content={"query": "{viewer{login}}"}, may_fail=True)
            data = answer.get("data") if isinstance(answer, dict) else None
            viewer = data.get("viewer") if isinstance(data, dict) else None
            login = viewer.get("login") if isinstance(viewer, dict) else None
            if isinstance(login, str) and login:
                return Account(None, login.lower().removesuffix("[bot]"))
        raise Permanent(
            f"{self.api.title} does not tell which account the token belongs to, and another account wrote a comment with the same marker: "
            "use a token that may read its account, or another id of the plan (`gitsched plan --comment-id`)"
        )

    def request(
        self, method: str, url: str, text: str | None = None, *, content: Mapping[str, str] | None = None, may_fail: bool = False
    ) -> Any:
        """Send the text of a comment, or other content, and return the JSON of the response; None for a refusal if `may_fail`."""
        body = {"body": text} if text is not None else content
        delay = _MIN_DELAY
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                code, message, answer, after = self._send(method, url, body)
            except httpx.TransportError as error:
                # The error text may contain the request.
                code, message, answer, after = 0, f"no connection ({type(error).__name__})", None, None
            if 200 <= code < 300:
                return answer
            is_temporary = code in (0, 408, 429) or code >= 500 or (code == 403 and after is not None)
            if not is_temporary:
                if may_fail and code in (403, 404):
                    return None
                raise Permanent(
                    f"{self.api.title} rejected the comment: {_describe_status_code(code)}{f' ({message})' if message else ''}"
                )
            if attempt < MAX_ATTEMPTS:
                time.sleep(min(max(delay, after or 0), _MAX_DELAY))
                delay *= 2
        raise Temporary(f"{self.api.title} does not accept the comment now: {message or f'status {code}'}")

    def _send(self, method: str, url: str, body: Mapping[str, str] | None) -> tuple[int, str, Any, float | None]:
        with self.client.stream(method, url, headers=dict(self.headers), json=body) as response:
            data = bytearray()
            for chunk in response.iter_bytes():
                data += chunk
                if len(data) > _MAX_RESPONSE_BYTES:
                    raise Permanent(f"{self.api.title} returned a response that is too large")
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
        403: "the token may not comment here; for a pull request from a fork it is read-only",
        404: "there is no such pull request, or the token has no access to it",
        413: "the text is too long",
        422: "the text is too long, or the request is locked",
    }
    return f"status {code}, {meanings[code]}" if code in meanings else f"status {code}"
