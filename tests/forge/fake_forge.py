"""An HTTP server that behaves like the API of a forge."""

from __future__ import annotations

import json
import re
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.local import LocalServer

GITHUB = re.compile(r"/repos/acme/fleet/issues/(?:(?P<request>\d+)/comments|comments/(?P<number>\d+))")
GITLAB = re.compile(r"/projects/acme%2Ffleet/merge_requests/(?P<request>\d+)/notes(?:/(?P<number>\d+))?")
LIMIT = 65_536
OURS, OTHERS = 41, 7
APP = "github-actions[bot]"


class FakeForge(LocalServer):
    """`comments` are [number, author, is an app, text]. `account` is the account of the token, None for that of a job, which may
    not ask.

    `pulls` are the bodies of the opened pull requests. `refusals` are responses (status, headers) that are sent first. `asked` are the
    requests: method and path.
    """

    def __init__(self, token: str) -> None:
        self.comments: list[tuple[int, int, bool, str]] = []
        self.account: int | None = None
        self.pulls: list[dict[str, Any]] = []
        self.refusals: list[tuple[int, dict[str, str]]] = []
        self.asked: list[tuple[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else {}
                url = urlsplit(self.path)
                outer.asked.append((self.command, url.path))
                sent = {name.lower(): value for name, value in self.headers.items()}
                code, answer, headers = outer._answer(self.command, url.path, parse_qs(url.query), body, sent, token)
                data = json.dumps(answer).encode()
                self.send_response(code)
                for name, value in {**headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_PUT = answer

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(Handler)

    @property
    def texts(self) -> list[str]:
        return [text for *_, text in self.comments]

    def _answer(
        self, method: str, path: str, query: dict[str, list[str]], body: dict[str, Any], headers: dict[str, str], token: str
    ) -> tuple[int, Any, dict[str, str]]:
        if self.refusals:
            code, more = self.refusals.pop(0)
            return code, {"message": "not now"}, more
        if token not in (headers.get("authorization", "").removeprefix("Bearer "), headers.get("private-token", "")):
            return 401, {"message": "Bad credentials"}, {}
        if path == "/user":
            return (200, {"id": self.account}, {}) if self.account is not None else (403, {"message": "not for integrations"}, {})
        if (method, path) == ("POST", "/graphql"):
            return 200, {"data": {"viewer": {"login": APP}}}, {}
        if (method, path) == ("POST", "/repos/acme/fleet/pulls"):
            known = any(entry["head"] == body["head"] for entry in self.pulls)
            self.pulls += [] if known else [body]
            return (422, {"message": "A pull request already exists"}, {}) if known else (201, {}, {})
        match = GITHUB.fullmatch(path) or GITLAB.fullmatch(path)
        if match is None:
            return 404, {"message": "Not Found"}, {}
        if len(body.get("body", "")) > LIMIT:
            return 422, {"message": "Body is too long (maximum is 65536 characters)"}, {}
        return self._keep(method, match, query, body)

    def _keep(
        self, method: str, match: re.Match[str], query: dict[str, list[str]], body: dict[str, Any]
    ) -> tuple[int, Any, dict[str, str]]:
        renewal = "PATCH" if match.re is GITHUB else "PUT"
        if method == "GET":
            page, size = int(query["page"][0]), int(query["per_page"][0])
            return 200, [self._show(entry) for entry in self.comments[(page - 1) * size : page * size]], {}
        ours = OURS if self.account is None else self.account
        if method == "POST" and match["request"] and not match["number"]:
            self.comments.append((len(self.comments) + 1, ours, self.account is None, body["body"]))
            return 201, {}, {}
        if method == renewal and match["number"]:
            at = int(match["number"]) - 1
            number, author, machine, _ = self.comments[at]
            self.comments[at] = (number, author, machine, body["body"])
            return 200, {}, {}
        return 405, {"message": "Method Not Allowed"}, {}

    def _show(self, entry: tuple[int, int, bool, str]) -> dict[str, Any]:
        number, author, machine, text = entry
        name = (APP if author == OURS else "other[bot]") if machine else f"user-{author}"
        who = {"id": author, "type": "Bot" if machine else "User", "login": name}
        return {"id": number, "user": who, "author": who, "body": text.replace("\n", "\r\n").rstrip()}
