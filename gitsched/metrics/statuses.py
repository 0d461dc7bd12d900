"""Commit statuses of a forge: what each cluster says about the output commit that it was given."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from gitsched.apis.gitsched.config import Forge
from gitsched.metrics.failures import Unreachable
from gitsched.metrics.protocols import Request, join
from gitsched.metrics.tokens import find_token
from gitsched.model.observation import STATUS, ObservationKey, Status

if TYPE_CHECKING:
    from gitsched.metrics.client import Client

_PAGE, _PAGES = 100, 50


class Dialect(NamedTuple):
    """How a forge is asked: the path of a commit's statuses below the address, where they are in the answer, and its words.

    `states` has the words that are final; `header` and `scheme` are what a token is sent in.
    """

    address: str
    path: str
    member: str
    context: str
    state: str
    states: Mapping[str, str]
    header: str
    scheme: str


_GITHUB = {"success": "Success", "failure": "Failure", "error": "Failure"}
DIALECTS: Mapping[str, Dialect] = {
    "github": Dialect(
        "https://api.github.com", "repos/{}/commits/{}/status", "statuses", "context", "state", _GITHUB, "Authorization", "Bearer "
    ),
    "gitea": Dialect("", "api/v1/repos/{}/commits/{}/status", "statuses", "context", "status", _GITHUB, "Authorization", "token "),
    "gitlab": Dialect(
        "https://gitlab.com",
        "api/v4/projects/{}/repository/commits/{}/statuses",
        "",
        "name",
        "status",
        {"success": "Success", "failed": "Failure", "canceled": "Failure"},
        "PRIVATE-TOKEN",
        "",
    ),
}


def ask_statuses(
    forge: Forge, commits: Iterable[tuple[str, datetime]], wanted: Collection[str], timeout: float, hosts: Collection[str] | None
) -> dict[ObservationKey, Status]:
    """The last final word of each wanted cluster: `commits` (id and date) are asked in their order, until all have
    spoken.

    The time of a word is the date of the commit that it is about. Raises Unreachable, whose text has nothing secret.
    """
    from gitsched.metrics.client import Client  # httpx takes its time to load

    dialect = DIALECTS[forge.type]
    address = forge.url or dialect.address
    token = find_token({"tokenFrom": forge.token_from})
    headers = ((dialect.header, dialect.scheme + token),) if token else ()
    pattern = re.compile("(.+)".join(map(re.escape, forge.context.split("{cluster}"))))
    deadline, waiting = time.monotonic() + timeout, set(wanted)
    found: dict[ObservationKey, Status] = {}
    with Client(hosts, secure=address.lower().startswith("https:")) as client:
        for commit, date in commits:
            if not waiting:
                break
            path = dialect.path.format(quote(forge.repository, safe="" if forge.type == "gitlab" else "/"), commit)
            for context, word in _list(client, dialect, join(address, path), headers, deadline):
                match, state = pattern.fullmatch(context), dialect.states.get(word)
                if match is not None and state is not None and match[1] in waiting:
                    found[STATUS, "", match[1], commit] = Status(state, date)
                    waiting.discard(match[1])
    return found


def _list(
    client: Client, dialect: Dialect, url: str, headers: tuple[tuple[str, str], ...], deadline: float
) -> Iterator[tuple[str, str]]:
    """Context and state of every status of a commit; a context's last one comes first, or is the only one."""
    for page in range(1, _PAGES + 1):
        answer = client.send(Request(f"{url}?per_page={_PAGE}&limit={_PAGE}&page={page}", None, headers), deadline)
        entries = _read(answer.data, dialect.member)
        yield from ((str(entry.get(dialect.context)), str(entry.get(dialect.state))) for entry in entries)
        if len(entries) < _PAGE:
            break


def _read(data: bytes, member: str) -> list[dict[str, Any]]:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Unreachable("its answer is no JSON") from error
    entries = body.get(member) if member and isinstance(body, dict) else body
    if entries is None:
        return []  # a commit without any status, as some forges say it
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise Unreachable("its answer has no list of statuses")
    return entries
